"""Authoring: from one source file to the executed solution and the student's notebook."""
