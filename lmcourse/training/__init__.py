"""Train a model on token files: optimizers, schedules, the trainer, its checkpoints; public names in `__init__.pyi`.

Read `optimizers` and `schedules` along with notebooks 04 and 13; then `step`, `trainer` and `state`. `command`
implements `lmcourse train`, `callbacks` has functions to call after every step, and `parallel` divides a model among
processes.
"""

from lmcourse.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
