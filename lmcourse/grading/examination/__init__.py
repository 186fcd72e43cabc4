"""Grade untrusted notebooks: each runs in processes of its own, which answer cases and know nothing of the marks.

`examine` is the way in. Follow a case: `notebook_examination` (in which process: one without rules, or one where those
of the exercise hold from the first cell on, `rule_runs`) → `notebook_run` (has run the cells, replaces a process that
is lost) → `launchers` (who starts it: a plain one, or a fork server) → `notebook_process` (asks, believes nothing) →
`channel` (`messages` over a socket, by `encoding` and `decoding`) → `child` (the program inside: runs cells,
`running_cells`, and puts cases to answers) → back → `notebook_examination` (references, hidden cases and points; they
never leave). What the references give is kept from one submission to the next (`expectations`).

On the text of the cells (`code_cells`, `statements`) `source_rules` judges, `skipped_cells` says what of it is not run,
`missing_answers` why an answer is not there, and `suspicious_code` what a human should look at.

A plain process is kept from neither files nor network nor other processes: `lmcourse.grading.fork_server` does that.
Nothing keeps a learner from copying the course's own code.
"""

from lmcourse.grading.examination.examine import examine
from lmcourse.grading.examination.launchers import PlainLauncher
from lmcourse.grading.examination.notebook_process import Timeouts

__all__ = ["PlainLauncher", "Timeouts", "examine"]
