"""Authoring: build the executed solution and the student's notebook from one source file."""
