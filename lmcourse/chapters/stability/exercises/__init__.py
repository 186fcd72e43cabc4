"""The exercises and predictions of notebook 16, in the notebook's order."""

from lmcourse.chapters.stability.exercises.bound import max_logit_bound
from lmcourse.chapters.stability.exercises.cap import soft_cap
from lmcourse.chapters.stability.exercises.clip import clip_by_global_norm
from lmcourse.chapters.stability.exercises.diagnose import diagnose
from lmcourse.chapters.stability.exercises.doctor import doctor
from lmcourse.chapters.stability.exercises.predictions import PREDICTIONS
from lmcourse.chapters.stability.exercises.qk import qk_norm
from lmcourse.chapters.stability.exercises.scaler import LossScaler
from lmcourse.chapters.stability.exercises.spikes import spike_detector
from lmcourse.chapters.stability.exercises.z_loss import z_loss

EXERCISES = (
    spike_detector,
    clip_by_global_norm,
    qk_norm,
    diagnose,
    doctor,
    z_loss,
    max_logit_bound,
    soft_cap,
    LossScaler,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
