"""Figures of notebook 08: who looks at whom, and what it costs."""
