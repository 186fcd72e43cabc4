"""AdamW: Adam with weight decay beside the gradient, not in it."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.optim.optimizer import ParamsT

from lmcourse.training.optimizers.adam import Adam
from lmcourse.training.optimizers.base import Group


class AdamW(Adam):
    """Adam whose weight decay does not pass through the means (Loshchilov and Hutter, 2019, algorithm 2).

        w ← (1 − η λ) w
        w ← Adam's step with g = ∇f(w)

    In the gradient, decay would be divided by √ŝ like everything else, and weights with large gradients would hardly
    decay. The gradient is that of the weights before they shrink.

    The decay follows the schedule here: in torch's form a step takes the share η λ, with the current η. The paper
    multiplies a schedule φ into both, w ← w − φ (α m̂/(√ŝ + ε) + λ' w), so its λ' is our λ times the peak rate α.

    Args:
        params, lr, betas, eps: as in Adam.
        weight_decay: λ.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        *,
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps=eps, weight_decay=weight_decay)

    def update(self, w: Tensor, gradient: Tensor, state: dict[str, Any], group: Group) -> None:
        """Shrink the weights by 1 − η λ, then `descend` along the gradient alone."""
        w.mul_(1 - group["lr"] * group["weight_decay"])
        self.descend(w, gradient, state, group)
