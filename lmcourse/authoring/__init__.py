"""Authoring: from one source file to the executed solution and the student's notebook."""

from lmcourse.authoring.build import Built, build, check_built

__all__ = ["Built", "build", "check_built"]
