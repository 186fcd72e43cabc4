"""The exercises and predictions of notebook 15, in the notebook's order."""

from lmcourse.chapters.flops.exercises.backward import backward_flops
from lmcourse.chapters.flops.exercises.budget import cheapest_offer, training_days
from lmcourse.chapters.flops.exercises.conventions import four_shares, which_convention
from lmcourse.chapters.flops.exercises.einsum import einsum_flops
from lmcourse.chapters.flops.exercises.forward import forward_flops
from lmcourse.chapters.flops.exercises.generation import generation_flops
from lmcourse.chapters.flops.exercises.kaplan import kaplan_total
from lmcourse.chapters.flops.exercises.own import my_mfu, my_settings
from lmcourse.chapters.flops.exercises.predictions import PREDICTIONS
from lmcourse.chapters.flops.exercises.training import model_flops

EXERCISES = (
    einsum_flops,
    forward_flops,
    backward_flops,
    training_days,
    four_shares,
    which_convention,
    my_mfu,
    my_settings,
    kaplan_total,
    model_flops,
    cheapest_offer,
    generation_flops,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
