# %% [markdown]
# # 04 · Optimization
#
# **120 min · 11 exercises · 32 points**

# %%
import math
from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.optim import Optimizer

from lmcourse.chapters.optimization import figures
from lmcourse.notebook import check, explore, hint, predict, start
from lmcourse.widgets import Log

start("04-optimization")

# %% [markdown]
# ### Exercise 1 · Descend  (2 points · 5 min · ●)
#
# Task.

# %% exercise="descend"
def descend(
    H: Float[Tensor, "d d"], b: Float[Tensor, "d"], start: Float[Tensor, "d"], rate: float, steps: int
) -> Float[Tensor, "steps+1 d"]:
    """The path of gradient descent in the bowl ½xᵀHx − bᵀx."""
    ### BEGIN SOLUTION
    path = [start]
    for _ in range(steps):
        path.append(path[-1] - rate * (H @ path[-1] - b))
    return torch.stack(path)
    ### END SOLUTION


# %% check="descend"
check(descend)
### BEGIN HIDDEN TESTS
check(descend, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 2 · The largest curvature  (2 points · 5 min · ●●)
#
# Task.

# %% exercise="smoothness"
def smoothness(X: Float[Tensor, "n d"]) -> float:
    """The largest curvature L of ‖Xw − y‖²/2n."""
    ### BEGIN SOLUTION
    return torch.linalg.eigvalsh(X.T @ X / len(X)).max().item()
    ### END SOLUTION


# %% check="smoothness"
check(smoothness)
### BEGIN HIDDEN TESTS
check(smoothness, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 3 · The theorem on data  (3 points · 10 min · ●●)
#
# Task.

# %% exercise="descent_certificate"
def descent_certificate(
    X: Float[Tensor, "n d"], y: Float[Tensor, "n"], rate: float, steps: int
) -> tuple[float, float]:
    """The average of ‖∇f‖² over k = 0 … steps, and the theorem's bound on it."""
    ### BEGIN SOLUTION
    if rate * smoothness(X) > 1 + 1e-9:
        raise ValueError(f"the theorem needs a rate of at most 1/L, not {rate}")
    best = torch.linalg.pinv(X) @ y
    w, squares = torch.zeros_like(best), []
    for _ in range(steps + 1):
        gradient = X.T @ (X @ w - y) / len(X)
        squares.append(gradient.square().sum())
        w = w - rate * gradient
    drop = (y.square().sum() - (X @ best - y).square().sum()) / (2 * len(X))
    return torch.stack(squares).mean().item(), (2 * drop / (rate * len(squares))).item()
    ### END SOLUTION


# %% check="descent_certificate"
check(descent_certificate)
### BEGIN HIDDEN TESTS
check(descent_certificate, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 4 · The noise of a batch  (3 points · 8 min · ●●)
#
# Task.

# %% exercise="gradient_noise"
def gradient_noise(gradients: Float[Tensor, "n d"], batch: int, replacement: bool) -> float:
    """The mean of ‖gradient of a batch − full gradient‖² over all batches."""
    ### BEGIN SOLUTION
    n = len(gradients)
    noise = (gradients - gradients.mean(dim=0)).square().sum(dim=1).mean().item() / batch
    if replacement or n == 1:
        return noise
    return noise * (n - batch) / (n - 1)
    ### END SOLUTION


# %% check="gradient_noise"
check(gradient_noise)
### BEGIN HIDDEN TESTS
check(gradient_noise, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 5 · Momentum  (4 points · 12 min · ●●●)
#
# Task.

# %% exercise="Momentum"
class Momentum(Optimizer):
    """Steps along a sum of gradients, in which older ones fade."""

    def __init__(self, params: Iterable, lr: float, momentum: float = 0.9, nesterov: bool = False):
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov})

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        ### BEGIN SOLUTION
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state, mu = self.state[p], group["momentum"]
                    b = state["b"] = mu * state["b"] + p.grad if "b" in state else p.grad.clone()
                    p -= group["lr"] * (p.grad + mu * b if group["nesterov"] else b)
        ### END SOLUTION


# %% check="Momentum"
check(Momentum)
### BEGIN HIDDEN TESTS
check(Momentum, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 6 · The best memory  (3 points · 10 min · ●●●)
#
# Task.

# %% exercise="best_momentum"
def best_momentum(mu: float, L: float) -> tuple[float, float, float]:
    """The best rate γ and memory β of the heavy ball, and √β."""
    ### BEGIN SOLUTION
    rate = 4 / (math.sqrt(L) + math.sqrt(mu)) ** 2
    factor = 1 - math.sqrt(rate * mu)
    return rate, factor**2, factor
    ### END SOLUTION


# %% check="best_momentum"
check(best_momentum)
### BEGIN HIDDEN TESTS
check(best_momentum, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 7 · AdaGrad  (3 points · 8 min · ●●)
#
# Task.

# %% exercise="AdaGrad"
class AdaGrad(Optimizer):
    """A rate for each coordinate, smaller where gradients have been large."""

    def __init__(self, params: Iterable, lr: float = 1e-2, eps: float = 1e-10):
        ### BEGIN SOLUTION
        super().__init__(params, {"lr": lr, "eps": eps})
        ### END SOLUTION

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        ### BEGIN SOLUTION
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        s = self.state[p]["s"] = self.state[p].get("s", 0.0) + p.grad.square()
                        p -= group["lr"] * p.grad / (s.sqrt() + group["eps"])
        ### END SOLUTION


# %% check="AdaGrad"
check(AdaGrad)
### BEGIN HIDDEN TESTS
check(AdaGrad, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 8 · Adam  (4 points · 12 min · ●●●)
#
# Task.

# %% exercise="Adam"
class Adam(Optimizer):
    """Momentum, divided by the recent size of the gradient."""

    def __init__(
        self, params: Iterable, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        ### BEGIN SOLUTION
        with torch.no_grad():
            for group in self.param_groups:
                beta1, beta2 = group["betas"]
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    k = state["k"] = state.get("k", 0) + 1
                    m = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * p.grad
                    s = state["s"] = beta2 * state.get("s", 0.0) + (1 - beta2) * p.grad.square()
                    root = (s / (1 - beta2**k)).sqrt()
                    p -= group["lr"] * m / (1 - beta1**k) / (root + group["eps"])
        ### END SOLUTION


# %% check="Adam"
check(Adam)
### BEGIN HIDDEN TESTS
check(Adam, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 9 · AdamW  (3 points · 7 min · ●●)
#
# Task.

# %% exercise="AdamW"
class AdamW(Optimizer):
    """Adam with decay beside the gradient, not in it."""

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        ### BEGIN SOLUTION
        with torch.no_grad():
            for group in self.param_groups:
                beta1, beta2 = group["betas"]
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    p *= 1 - group["lr"] * group["weight_decay"]
                    state = self.state[p]
                    k = state["k"] = state.get("k", 0) + 1
                    m = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * p.grad
                    s = state["s"] = beta2 * state.get("s", 0.0) + (1 - beta2) * p.grad.square()
                    root = (s / (1 - beta2**k)).sqrt()
                    p -= group["lr"] * m / (1 - beta1**k) / (root + group["eps"])
        ### END SOLUTION


# %% check="AdamW"
check(AdamW)
### BEGIN HIDDEN TESTS
check(AdamW, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 10 · The rate of a step  (2 points · 6 min · ●●)
#
# Task.

# %% exercise="rate_factor"
def rate_factor(step: int, steps: int, warmup: int, floor: float = 0.0) -> float:
    """The share of the full rate at a step, counted from 0."""
    ### BEGIN SOLUTION
    if step >= steps:
        return floor
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / (steps - warmup)
    return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2
    ### END SOLUTION


# %% check="rate_factor"
check(rate_factor)
### BEGIN HIDDEN TESTS
check(rate_factor, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 11 · The gradient of a choice  (3 points · 8 min · ●●)
#
# Task.

# %% exercise="softmax_gradient"
def softmax_gradient(
    W: Float[Tensor, "c d"], X: Float[Tensor, "n d"], y: Int[Tensor, "n"]
) -> Float[Tensor, "c d"]:
    """The gradient of the mean of −log p of the right classes."""
    ### BEGIN SOLUTION
    error = (X @ W.T).softmax(dim=1)
    error[torch.arange(len(y)), y] -= 1
    return error.T @ X / len(X)
    ### END SOLUTION


# %% check="softmax_gradient"
check(softmax_gradient)
### BEGIN HIDDEN TESTS
check(softmax_gradient, hidden=True)
### END HIDDEN TESTS
