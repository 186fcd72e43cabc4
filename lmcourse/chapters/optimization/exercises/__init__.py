"""The exercises and predictions of notebook 04, in the notebook's order."""

from lmcourse.chapters.optimization.exercises.adaptive import AdaGrad, AdamW
from lmcourse.chapters.optimization.exercises.ball import best_momentum
from lmcourse.chapters.optimization.exercises.certificate import descent_certificate
from lmcourse.chapters.optimization.exercises.classifier import softmax_gradient
from lmcourse.chapters.optimization.exercises.entry import my_entry
from lmcourse.chapters.optimization.exercises.noise import gradient_noise
from lmcourse.chapters.optimization.exercises.predictions import PREDICTIONS
from lmcourse.chapters.optimization.exercises.scale import noise_scale
from lmcourse.chapters.optimization.exercises.schedule import rate_factor
from lmcourse.chapters.optimization.exercises.smoothness import smoothness
from lmcourse.chapters.optimization.exercises.sums import Descent, Momentum
from lmcourse.chapters.optimization.exercises.weights import mean_weights

EXERCISES = (
    Descent,
    Momentum,
    mean_weights,
    AdamW,
    rate_factor,
    my_entry,
    smoothness,
    descent_certificate,
    gradient_noise,
    noise_scale,
    best_momentum,
    AdaGrad,
    softmax_gradient,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
