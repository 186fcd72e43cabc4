"""Authoring: from one source file to the executed solution and the student's notebook."""

from lmcourse.authoring.answers import answers
from lmcourse.authoring.build import Built, build, check_built

__all__ = ["Built", "answers", "build", "check_built"]
