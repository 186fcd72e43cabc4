"""The exercises and predictions of notebook 04, in the notebook's order."""

from lmcourse.chapters.optimization.exercises.adagrad import AdaGrad
from lmcourse.chapters.optimization.exercises.adam import Adam
from lmcourse.chapters.optimization.exercises.adamw import AdamW
from lmcourse.chapters.optimization.exercises.ball import best_momentum
from lmcourse.chapters.optimization.exercises.certificate import descent_certificate
from lmcourse.chapters.optimization.exercises.classifier import softmax_gradient
from lmcourse.chapters.optimization.exercises.descent import descend
from lmcourse.chapters.optimization.exercises.momentum import Momentum
from lmcourse.chapters.optimization.exercises.noise import gradient_noise
from lmcourse.chapters.optimization.exercises.predictions import PREDICTIONS
from lmcourse.chapters.optimization.exercises.scale import noise_scale
from lmcourse.chapters.optimization.exercises.schedule import rate_factor
from lmcourse.chapters.optimization.exercises.smoothness import smoothness
from lmcourse.chapters.optimization.exercises.weights import mean_weights

EXERCISES = (
    descend,
    smoothness,
    descent_certificate,
    gradient_noise,
    noise_scale,
    Momentum,
    best_momentum,
    AdaGrad,
    mean_weights,
    Adam,
    AdamW,
    rate_factor,
    softmax_gradient,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
