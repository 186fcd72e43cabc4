"""Many submissions at once: `job` (one notebook to examine) → `pool` or `cluster` (who does it) → `worker` (a process
that examines one after the other) → back, as JSON. Nothing here writes a mark: that is the one writer's business
(`lmcourse.grading.grader`).
"""

from lmcourse.grading.batch.job import Job, Setting
from lmcourse.grading.batch.pool import Pool, open_pool, processors

__all__ = ["Job", "Pool", "Setting", "open_pool", "processors"]
