"""Grading a class that is not trusted: a notebook answers from a process of its own, which knows nothing of the marks.

`examine` is the way in. Follow a case: `examinee` (starts the process, asks, believes nothing) → `channel` (messages
over a socket) → `child` (the process inside: runs cells, puts cases to answers) → back → `examine` (references, hidden
cases and points; they never leave). `rules` judges on the text of the cells, `texts` says what of them is run.

Alone it keeps the process from neither files nor network nor other processes: `jail=Jail().prefix()` does (see
`lmcourse.grading.jail`). Nothing keeps a learner from copying the course's own code. It is for a grader's own script,
`examine(cells, exercises_of(chapter), seed)`: the run of `lmcourse grade` is still nbgrader's (`lmcourse.grading.run`).
"""

from lmcourse.grading.examination.examine import examine
from lmcourse.grading.examination.examinee import Patience

__all__ = ["Patience", "examine"]
