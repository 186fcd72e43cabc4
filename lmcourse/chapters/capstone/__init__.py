"""Capstone: a design under budgets, predicted, trained and defended; and a hunt for slips in the course's sources."""
