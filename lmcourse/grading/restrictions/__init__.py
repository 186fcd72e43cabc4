"""What an exercise rules out, refused in the process of a notebook: operators, functions of libraries, autograd."""

from lmcourse.grading.restrictions.restrictions import Restrictions, RuledOutError
from lmcourse.grading.restrictions.side_doors import close_side_doors

__all__ = ["Restrictions", "RuledOutError", "close_side_doors"]
