"""Feedback pages, sanitized: no script (`display`, `html`), and no hidden test (`hide_tests`)."""
