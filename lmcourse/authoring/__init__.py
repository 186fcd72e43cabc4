"""Authoring: from one source file to the executed solution and the student's notebook."""

from lmcourse.authoring.build import Built, build, check_built
from lmcourse.authoring.folders import chapters_in

__all__ = ["Built", "build", "chapters_in", "check_built"]
