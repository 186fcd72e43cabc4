"""The figures of notebook 14: the memory of training, and the models that fit."""

from lmcourse.chapters.memory.figures.budget import memory_budget
from lmcourse.chapters.memory.figures.devices import memory_tensor_parallel
from lmcourse.chapters.memory.figures.growth import memory_growth, memory_halving
from lmcourse.chapters.memory.figures.measured import memory_measured, memory_runs
from lmcourse.chapters.memory.figures.segments import memory_segments
from lmcourse.chapters.memory.figures.states import memory_fits, memory_states
from lmcourse.chapters.memory.figures.tensors import memory_saved_tensors
from lmcourse.chapters.memory.figures.timeline import memory_timeline

__all__ = [
    "memory_budget",
    "memory_fits",
    "memory_growth",
    "memory_halving",
    "memory_measured",
    "memory_runs",
    "memory_saved_tensors",
    "memory_segments",
    "memory_states",
    "memory_tensor_parallel",
    "memory_timeline",
]
