"""Many submissions at once: a `job` (one notebook to examine) goes to one of the `worker_processes`, here or in a
cluster; the program that they run is `worker`. Answers come back as JSON. Nothing here writes a mark: that is the one
writer's business (`lmcourse.grading.grader`).
"""

from lmcourse.grading.batch.job import ExaminationJob, ExaminationSettings
from lmcourse.grading.batch.worker_processes import Pool, available_cpus, open_pool

__all__ = ["ExaminationJob", "ExaminationSettings", "Pool", "available_cpus", "open_pool"]
