"""Grade untrusted notebooks: each runs in a process of its own, which answers cases and knows nothing of the marks.

`examine` is the way in. Follow a case: `launchers` (who starts the process: a plain one, or a fork server) →
`notebook_process` (asks, believes nothing) → `channel` (`messages` over a socket, by `encoding` and `decoding`) →
`child` (the program inside: runs cells, puts cases to answers) → back → `examine` (references, hidden cases and points;
they never leave). What the references give is kept from one submission to the next (`expectations`).

On the text of the cells (`code_cells`) `source_rules` judges, `skipped_cells` says what of it is not run,
`missing_answers` why an answer is not there, and `suspicious_code` what a human should look at.

A plain process is kept from neither files nor network nor other processes: `lmcourse.grading.fork_server` does that.
Nothing keeps a learner from copying the course's own code.
"""

from lmcourse.grading.examination.examine import examine
from lmcourse.grading.examination.launchers import PlainLauncher
from lmcourse.grading.examination.notebook_process import Timeouts

__all__ = ["PlainLauncher", "Timeouts", "examine"]
