"""Grading a class that is not trusted: a notebook answers from a process of its own, which knows nothing of the marks.

`examine` is the way in. Follow a case: `host` (who starts the process: `plain`, or a nursery) → `examinee` (asks,
believes nothing) → `channel` (messages over a socket) → `child` (the process inside: runs cells, puts cases to answers)
→ back → `examine` (references, hidden cases and points; they never leave). On the text of the cells `rules` judges,
`texts`, `showing` and `needless` say what of it is run, `missing` why an answer is not there, and `suspicious` what a
human should look at. What the references give is kept from one submission to the next (`expectations`).

A plain process is kept from neither files nor network nor other processes: `PlainHost(Jail().prefix())` does that (see
`lmcourse.grading.jail`). Nothing keeps a learner from copying the course's own code.
"""

from lmcourse.grading.examination.examine import examine
from lmcourse.grading.examination.examinee import Patience
from lmcourse.grading.examination.plain import PlainHost

__all__ = ["Patience", "PlainHost", "examine"]
