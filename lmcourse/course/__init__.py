"""The map of the course, where its files are, and how far a learner has come."""
