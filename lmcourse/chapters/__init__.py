"""A room for each notebook: its exercises, which a graded process cannot read, and its figures."""
