"""The exercises and predictions of notebook 16, in the notebook's order."""

from lmcourse.exercises.stability.blocks import norms_per_block
from lmcourse.exercises.stability.bound import max_logit_bound
from lmcourse.exercises.stability.cap import soft_cap
from lmcourse.exercises.stability.clip import clip_by_global_norm
from lmcourse.exercises.stability.predictions import PREDICTIONS
from lmcourse.exercises.stability.qk import qk_norm
from lmcourse.exercises.stability.scaler import LossScaler
from lmcourse.exercises.stability.spikes import spike_detector
from lmcourse.exercises.stability.z_loss import log_z_after, z_loss

EXERCISES = (
    spike_detector,
    clip_by_global_norm,
    z_loss,
    log_z_after,
    qk_norm,
    max_logit_bound,
    norms_per_block,
    soft_cap,
    LossScaler,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
