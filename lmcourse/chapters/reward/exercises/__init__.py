"""The exercises and predictions of notebook 22, those of the core first."""

from lmcourse.chapters.reward.exercises.dpo_loss import dpo_loss
from lmcourse.chapters.reward.exercises.group_advantages import group_advantages
from lmcourse.chapters.reward.exercises.improve import improve
from lmcourse.chapters.reward.exercises.kl_terms import kl_terms
from lmcourse.chapters.reward.exercises.merged import merged
from lmcourse.chapters.reward.exercises.policy_loss import policy_loss
from lmcourse.chapters.reward.exercises.predictions import PREDICTIONS
from lmcourse.chapters.reward.exercises.trained_targets import trained_targets

EXERCISES = (trained_targets, policy_loss, group_advantages, kl_terms, improve, merged, dpo_loss)

__all__ = ["EXERCISES", "PREDICTIONS"]
