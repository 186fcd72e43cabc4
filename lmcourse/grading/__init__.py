"""nbgrader grading, sandboxed and parallel, that leaks neither points nor hidden tests.

`config` is the list of what is plugged into nbgrader, and where. Follow a submission: `intake` (from the disk) →
`preprocessors` (the course's cells put back, then examined) → the gradebook → `pages` (what may be shown),
`class_report` (the report on a class), `feedback` (to learners) and `grade_tables` (back to Moodle or Canvas).

Examining is done elsewhere: `batch` (workers, here or in a cluster) → `examination` (asks a notebook's process, and
judges) → `fork_server` (forks that process) and `sandbox` (locks it in).

`grader` does all of it in a temporary course for `lmcourse grade`, `record` in the course's own for `--record`;
`workspace` is where nbgrader works for both.
"""
