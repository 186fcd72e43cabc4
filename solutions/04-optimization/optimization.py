# %% [markdown]
# # 04 · Optimization
#
# **Core · 89 min · 6 exercises · 19 points** · **Further · 146 min · 7 exercises · 20 points**
#
# After notebook 03 you know which way is down, for every parameter at once. *How far do you step?*
#
# At the end you will have written the optimizers from 1847 to those of today, sent each into a race on one language model, and designed an entry that beats the best AdamW we found.
#
# **You will be able to**
#
# - find the largest rate that a problem allows, and say what happens above it;
# - derive and write momentum, Adam and AdamW, which the checks compare with PyTorch's own;
# - say what a schedule does to a run.
#
# **You need** gradients (notebook 03). Eigenvalues help. No GPU. Stuck in an exercise? `hint("its_name")` gives a nudge; run it again for the next one.

# %%
import math
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import hessian, vmap
from torch.optim import Optimizer

from lmcourse.chapters.optimization import figures
from lmcourse.chapters.optimization.figures.bounds import measured_and_bound
from lmcourse.chapters.optimization.figures.paths import METHODS
from lmcourse.chapters.optimization.figures.schedules import SHAPES
from lmcourse.chapters.optimization.race import Race, story_bytes
from lmcourse.chapters.optimization.runs import decayed_runs, excess_loss
from lmcourse.data.loader import Loader
from lmcourse.models.initialize import initialize
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.training.schedules import Cosine, WarmupStableDecay
from lmcourse.widgets import Log

start("04-optimization")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · One bowl, one knob
#
# The smallest problem with all the trouble in it is a bowl, with a symmetric matrix $H$ of shape $(d, d)$:
#
# $$f(x) = \tfrac12\,x^\top H x, \qquad x_{k+1} = x_k - \gamma\,\nabla f(x_k)$$
#
# The rate $\gamma$ is the only knob of Cauchy's rule, from 1847. In one dimension the slope of $\tfrac12\lambda x^2$ is $\lambda x$, so a step is
#
# $$x \;\leftarrow\; x - \gamma\lambda x = (1 - \gamma\lambda)\,x.$$
#
# In several dimensions this happens along each eigenvector of $H$, with its own curvature $\lambda$; the largest is called $L$, the smallest $\mu$. One rate has to serve them all.

# %%
predict("hair_above")

# %% [markdown]
# All optimizers of PyTorch, and yours, are classes with the same contract:
#
# - parameters come in **groups**: `self.param_groups` is a list of dictionaries, each with its `"params"` and its settings, such as `"lr"`;
# - `step()` reads each parameter's `.grad`, which is `None` for one that was not used, and changes the parameter in place, under `torch.no_grad()`. It leaves `.grad` as it was.

# %% [markdown]
# ### Exercise 1 · Descent  (2 points · 5 min · ●)
#
# Write `step`. A parameter without a gradient is left alone. A schedule may change a group's rate at any time.

# %% exercise="Descent"
class Descent(Optimizer):
    """Steps against the gradient."""

    def __init__(self, params: Iterable, lr: float):
        super().__init__(params, {"lr": lr})

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        ### BEGIN SOLUTION
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p -= group["lr"] * p.grad
        ### END SOLUTION


# %% check="Descent"

# %% [markdown]
# Count steps: curvatures 1 and 10, from 1 in both directions until both are below $10^{-6}$.

# %%
with your("Descent"):
    for scale in (0.5, 1.0, 1.8, 1.9, 2.0, 2.01):
        x, steps = torch.ones(2, dtype=torch.float64, requires_grad=True), 0
        optimizer = Descent([x], lr=scale / 10)
        while x.abs().max() > 1e-6 and steps < 1000:
            x.grad, steps = torch.tensor([1.0, 10.0]) * x.detach(), steps + 1
            optimizer.step()
        print(f"γL = {scale:4}  {steps:5} steps, then at {x[0]:8.1e}, {x[1]:8.1e}")

# %% [markdown]
# Below the edge a larger rate is better, up to a point: at 1.9 it is the *steep* direction that needs most steps. At 2.01 it explodes, slowly: after ten steps you would hardly notice ($x$ has grown by a tenth).
#
# > **Spot the slip.** A colleague sums the loss over the batch instead of averaging: "the minimum is the same, so it does not matter". What does it do to $L$, and to the rate?
#
# ## 2 · The race
#
# No language model is a bowl. Here is a small one, which everything that you write will train. It turns twelve bytes into scores of the next one, with a table of 16 numbers for each byte and three matrices:
#
# ```python
# x = F.rms_norm(self.table(context).flatten(1), (192,))
# for layer in (self.first, self.second):
#     x = F.rms_norm(layer(x).relu(), (64,))
# return self.head(x)
# ```
#
# `race.enter(name, make)` calls `make(model)` for an optimizer and takes 500 steps, each on 64 places of short stories, the same for every entry:
#
# ```python
# loss = F.cross_entropy(model(context), following)
# model.zero_grad()
# loss.backward()
# for group, rate in zip(optimizer.param_groups, rates):
#     group["lr"] = rate * schedule(step, steps)
# optimizer.step()
# ```
#
# It does so with seeds 0, 1 and 2 and prints the loss on held-out text in nats per byte: the mean, then each seed. Guessing among 128 bytes gives 4.85. An entry takes 3 to 10 seconds.

# %%
predict("best_rate_of_descent")

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
text, race = story_bytes(), Race()
with your("Descent"):
    for rate in (0.1, 0.5, 2.0):
        race.enter(f"descent, {rate}", lambda model, rate=rate: Descent(model.parameters(), lr=rate))

# %% [markdown]
# Here, too, the best rate is not far below an edge. Enter rates of your own.
#
# ## 3 · Memory
#
# In a bowl with curvatures 1 and 100, descent crawls along the valley, and near its highest rate it zig-zags across, too. A heavy ball gathers speed. Polyak's (1964) keeps a fraction $\beta$ of its last step, and Nesterov's (1983) first rolls and then asks for the gradient:
#
# $$\text{heavy ball:}\quad x_{k+1} = x_k - \gamma\nabla f(x_k) + \beta\,(x_k - x_{k-1})$$
#
# $$\text{Nesterov:}\quad y_k = x_k + \beta\,(x_k - x_{k-1}), \qquad x_{k+1} = y_k - \gamma\nabla f(y_k)$$
#
# By hand: where the gradient is always $g$, each step $s$ is $\gamma g$ plus $\beta$ times the last one. Steps grow until $s = \gamma g + \beta s$. So $s = \gamma g/(1 - \beta)$: ten times as long, for $\beta = 0.9$.

# %%
predict("rate_with_momentum")

# %%
explore(figures.zig_zag, rate=Log(0.001, 0.05), momentum=(0.0, 0.95), kappa=Log(1.0, 200.0))

# %% [markdown]
# ### Exercise 2 · Momentum  (4 points · 12 min · ●●●)
#
# Turn the two rules into PyTorch's form. It keeps one buffer for each parameter, $b = -(x_k - x_{k-1})/\gamma$, which is 0 at first, and calls $\beta$ `momentum`. The heavy ball's parameter is $x$. Nesterov's is $y$, the place where the gradient $g$ will be asked for. What is the new $b$, and how does the parameter move? Take pen and paper. (When a schedule changes $\gamma$, $b$ keeps its numbers.)
#
# What must be remembered about a parameter `p` belongs in `self.state[p]`, a dictionary that is empty at first; `state_dict()` saves it. A parameter without a gradient is left alone, and so is its buffer. Gradients must come out of `step` as they went in.

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

# %% [markdown]
# Both rules have the same buffer:
#
# $$b \leftarrow \beta\,b + g, \qquad p \leftarrow p - \gamma\,b \quad\text{or, with Nesterov,}\quad p \leftarrow p - \gamma\,(g + \beta\,b).$$
#
# Now find the edge: curvature 1, 500 steps from 1, a rate 1 % below and 1 % above.

# %%
with your("Momentum"):
    for name, beta, edge in (("descent", 0.0, 2.0), ("heavy ball", 0.9, 3.8), ("Nesterov", 0.9, 3.8 / 2.8)):
        for share in (0.99, 1.01):
            x = torch.ones(1, dtype=torch.float64, requires_grad=True)
            optimizer = Momentum([x], share * edge, beta, nesterov=name == "Nesterov")
            for _ in range(500):
                x.grad = x.detach().clone()
                optimizer.step()
            print(f"{name:11} edge {edge:.3f}/L; at {share} of it, {abs(x.item()):.0e} after 500 steps")

# %% [markdown]
# The edge of the heavy ball is $2(1 + \beta)/L$, *above* that of descent; Nesterov's is $\frac{2 + 2\beta}{1 + 2\beta}\cdot\frac1L$, *below* it. In the race, each at the better of 0.05 and 0.1:

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
with your("Momentum"):
    race.enter("heavy ball, 0.05", lambda model: Momentum(model.parameters(), 0.05))
    race.enter("Nesterov, 0.1", lambda model: Momentum(model.parameters(), 0.1, nesterov=True))

# %% [markdown]
# The heavy ball ties with descent at 0.5, at a tenth of its rate: the means differ by less than the seeds do. Nesterov ends lower than both.
#
# ## 4 · Adam
#
# Could every coordinate have its own rate? **AdaGrad** (Duchi et al., 2011) divides each coordinate's gradient by the root of the sum of its squares so far, $g/\sqrt s$ with $s \leftarrow s + g^2$. Only how a gradient compares with those before it counts, not its size.
#
# But AdaGrad never forgets, so its rates $\gamma/\sqrt s$ can only fall. **Adam** (Kingma & Ba, 2015) takes running means instead, of the gradient as well (that is momentum), and of its square:
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\,g, \qquad s \leftarrow \beta_2 s + (1 - \beta_2)\,g^2 .$$
#
# Both start at 0. Suppose you step along $m/(\sqrt s + \varepsilon)$ with $m$ and $s$ as they are.

# %%
predict("first_step")

# %%
explore(figures.adam_steps, beta1=(0.0, 0.99, 0.01), beta2=[0.9, 0.95, 0.99, 0.999], corrected=False)

# %% [markdown]
# ### Exercise 3 · What a running mean weighs  (2 points · 6 min · ●●)
#
# $m \leftarrow \beta m + (1 - \beta)\,g$ begins at 0. After $k$ steps, $m$ is a sum of $g_1, \dots, g_k$ with certain weights. Return these weights, oldest first, each divided by the sum of all. $\beta$ may be another number in each step, at least 0 and less than 1; no steps give `[]`.
#
# By hand: with β = 0.5, 0.9, 0.9 the weights are 0.405, 0.09 and 0.1 before the division. Where does 0.405 come from? And is there a short way to their sum, 0.595?

# %% exercise="mean_weights"
def mean_weights(betas: list[float]) -> list[float]:
    """The weights of g₁ … g_k in a running mean that began at 0, divided by their sum."""
    ### BEGIN SOLUTION
    weights, later = [], 1.0
    for beta in reversed(betas):
        weights.append((1 - beta) * later)
        later *= beta
    return [weight / (1 - later) for weight in reversed(weights)]
    ### END SOLUTION


# %% check="mean_weights"

# %% [markdown]
# ### Exercise 4 · AdamW  (5 points · 12 min · ●●●)
#
# Use what you found: the step is $-\gamma\,\hat m/(\sqrt{\hat s} + \varepsilon)$, where $\hat m$ and $\hat s$ are the means with weights that sum to 1. Here $\beta$ is the same in all steps. A parameter that gets its first gradient late is new then, even if the others have taken many steps.
#
# That is Adam. Now adding $\frac\lambda2\lVert p\rVert^2$ to the loss adds $\lambda p$ to the gradient, a *decay* towards 0. In Adam it would be divided by $\sqrt{\hat s}$ like everything else. **AdamW** (Loshchilov & Hutter, 2019) keeps it out of the means: first $p \leftarrow (1 - \gamma\lambda)\,p$, then Adam's step, with the gradient alone. Groups may have their own decay $\lambda$; by default it is 0.

# %% exercise="AdamW"
class AdamW(Optimizer):
    """Momentum, divided by the recent size of the gradient, with decay beside it."""

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
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

# %% [markdown]
# The weights sum to $1 - \beta^k$; the rest still belongs to the 0 at the beginning. That is the paper's correction:
#
# $$\hat m = \frac m{1 - \beta_1^k}, \qquad \hat s = \frac s{1 - \beta_2^k}, \qquad p \leftarrow p - \gamma\,\frac{\hat m}{\sqrt{\hat s} + \varepsilon}, \qquad k = 1, 2, \dots$$
#
# Do your two answers agree? With $\beta_2 = 0$ the root is the last gradient's size, so a step shows $\hat m$:

# %%
gradients = [4.0, -1.0, 2.0]
with your("mean_weights", "AdamW"):
    p = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = AdamW([p], lr=1.0, betas=(0.9, 0.0))
    for k, g in enumerate(gradients, 1):
        before, p.grad = p.item(), torch.tensor([g], dtype=torch.float64)
        optimizer.step()
        mean = sum(w * each for w, each in zip(mean_weights([0.9] * k), gradients, strict=False))
        print(f"step {k}: m̂ from the weights {mean:.4f}, from the step {(before - p.item()) * abs(g):.4f}")

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
with your("AdamW"):
    for rate in (0.001, 0.01, 0.04):
        race.enter(f"AdamW, {rate}", lambda model, rate=rate: AdamW(model.parameters(), rate, betas=(0.9, 0.95)))

# %% [markdown]
# At 0.001, PyTorch's default rate, AdamW loses against plain descent at 0.5, with all three seeds: **the rate matters more than the method.** At 0.01 it ties with Nesterov, and 0.04 is too high for a constant rate.
#
# **In real models.** The price is memory: two numbers for every weight. GPT-3 and Llama take $\beta_2 = 0.95$, a memory of about 20 steps in place of 1,000 (Brown et al., 2020; Touvron et al., 2023).
#
# ## 5 · Two experiments with your classes
#
# ### Why language models need it
#
# Words are rare: the frequency of the word of rank $r$ falls about as $1/r$ (Zipf). Here is a language of 166 words, in which each is followed by one of four, with probabilities ½, ¼, 0.15 and 0.1, and a table of scores that learns it, all of the text in every step. (The lowest loss possible is the language's *entropy*, notebook 05.) The gradient of a word's row is as small as the word is rare. `excess_loss` takes 200 steps:

# %%
with your("Momentum", "AdamW"):
    contenders = {f"momentum, rate {rate}": partial(Momentum, lr=rate) for rate in (10.0, 30.0, 100.0)}
    contenders["Adam, rate 0.3"] = partial(AdamW, lr=0.3)
    for name, optimizer in contenders.items():
        common, rare = (f"{nats:.4f}" if nats < 0.5 else "over 0.5" for nats in excess_loss(optimizer, 0))
        print(f"{name:21} nats above the entropy: after common words {common + ',':10} after rare ones {rare}")

# %% [markdown]
# Momentum at its best rate has learned the common words and is far behind with the rare ones; a larger rate destroys the common ones. Adam learns all words equally fast, because the size of a gradient does not count. Kunstner et al. (2024) show the same on GPT-2, and that rare classes alone suffice.
#
# ### Who decays?
#
# Two weights of 1; one has gradients of ±0.01, the other of ±10, with random signs, each sign 1,000 times. The gradients cancel, so 2,000 steps with $\gamma = 0.001$ and $\lambda = 0.1$ should shrink both to about $(1 - \gamma\lambda)^{2000} = 0.819$.

# %%
predict("who_decays")

# %%
def who_decays(make: Callable[..., Optimizer], seed: int, beside: bool) -> list[float]:
    """Two weights after 2,000 steps, with the decay beside the gradient or in it."""
    order = torch.rand(2000, 2, generator=torch.Generator().manual_seed(seed)).argsort(dim=0)
    signs = torch.where(order < 1000, 1, -1)  # as many of each
    p = torch.ones(2, requires_grad=True)
    optimizer = make([p], lr=1e-3, weight_decay=0.1 * beside)
    for row in signs:
        p.grad = row * torch.tensor([0.01, 10.0]) + 0.1 * p.detach() * (not beside)
        optimizer.step()
    return p.tolist()


with your("AdamW"):
    for name, beside in (("in the gradient", False), ("beside it", True)):
        small, large = zip(*(who_decays(AdamW, seed, beside) for seed in range(3)), strict=True)
        small, large = (", ".join(f"{each:.2f}" for each in ends) for ends in (small, large))
        print(f"{name:15} small gradients: the weight ends at {small}; large: {large}")

# %% [markdown]
# In the gradient, decay takes the first weight nearly to 0 and leaves the second alone. Beside it, both shrink by the same factor.
#
# **In real models.** A decay of 0.1 is usual, in two groups: matrices decay; biases and the scales of norms do not. That is why your optimizer had to respect its groups.
#
# ## 6 · High first, low at the end
#
# Each batch has another gradient, so at a constant rate the weights swing about the bottom: the higher the rate, the wider. So rates are high first, to come down soon, and low at the end, to come down far: usually by half a wave of the cosine (Loshchilov & Hutter, 2017). And the way *up*? Adam's first step moves every weight by $\gamma$ in the direction of a sign, however small and noisy its gradient was; after a few steps $\hat s$ measures the size. So the rate starts small and grows in a straight line: a **warm-up**.

# %% [markdown]
# ### Exercise 5 · The rate of a step  (2 points · 5 min · ●●)
#
# Return the fraction of the full rate at `step`, counted from 0, in a run of `steps`. In the warm-up it is $1/W, 2/W, \dots, 1$, so that no step is wasted. Step number `warmup` is the first of the cosine and still has the full rate; step number `steps`, which would be the one after the last, has `floor`, and so have all later ones. A warm-up may be as long as the run, not longer; then step number `steps` has `floor`, too.

# %% exercise="rate_factor"
def rate_factor(step: int, steps: int, warmup: int, floor: float = 0.0) -> float:
    """The fraction of the full rate at a step, counted from 0."""
    ### BEGIN SOLUTION
    if step >= steps:
        return floor
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / (steps - warmup)
    return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2
    ### END SOLUTION


# %% check="rate_factor"

# %%
predict("constant_or_cosine")

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
with your("AdamW", "rate_factor"):
    for rate in (0.001, 0.01, 0.04):
        race.enter(
            f"AdamW, {rate}, cosine",
            lambda model, rate=rate: AdamW(model.parameters(), rate, betas=(0.9, 0.95)),
            partial(rate_factor, warmup=25),
        )

# %% tags=["nbval-ignore-output", "because it shows the losses of the cells above"]
figures.race(race.runs)

# %% [markdown]
# At 0.01 the cosine ends lower, with all three seeds. At 0.001 it *hurts*: the rate was too low already, and the cosine takes away half of it. At 0.04 it helps most, and makes the best entry so far.
#
# ## 7 · Your entry
#
# **End at 0.447 nats or below, the mean of seeds 0 to 5.** AdamW at 0.04 with that cosine ends at 0.465, on some processors 0.001 higher or lower. (Seeds of an entry differ by 0.02, so three are not enough.)

# %% [markdown]
# ### Exercise 6 · Your entry  (4 points · 13 min · ●●●)
#
# `my_entry(model)` returns an optimizer and a schedule (`None` for a constant rate). Change your AdamW, use several optimizers behind one `step`, treat `model.table.weight`, `model.first.weight`, `model.second.weight` and `model.head.weight` differently, or treat matrices as matrices. Anything with a method `step` and a list `param_groups` is an optimizer.
#
# Not allowed: another model, other initial weights or data, PyTorch's own optimizers, and more gradients than the 500 of the race. (Each seed numbers the bytes anew, so learned weights do not carry over.) Points: 0.6, 0.48, 0.458 and 0.447. Most single ideas do not reach the last point, but ideas add up. The next cell tries three seeds; the check tries six and takes twice as long.

# %% exercise="my_entry"
def my_entry(model: nn.Module) -> tuple[Optimizer, Callable[[int, int], float] | None]:
    """Your optimizer for the race, and your schedule: the fraction of the rate at (step, steps)."""
    ### BEGIN SOLUTION
    class Ahead(Optimizer):
        def step(self) -> None:
            with torch.no_grad():
                for group in self.param_groups:
                    k = group["k"] = group.get("k", 0) + 1
                    for p in group["params"]:
                        state = self.state[p]
                        m = state["m"] = 0.9 * state.get("m", 0.0) + 0.1 * p.grad
                        s = state["s"] = 0.95 * state.get("s", 0.0) + 0.05 * p.grad.square()
                        ahead = 0.9 * m / (1 - 0.9 ** (k + 1)) + 0.1 * p.grad / (1 - 0.9**k)
                        p -= group["lr"] * ahead / ((s / (1 - 0.95**k)).sqrt() + 1e-8)

    optimizer = Ahead(model.parameters(), {"lr": 0.04})
    return optimizer, lambda step, steps: min((step + 1) / 25, (steps - step) / (steps - 25))
    ### END SOLUTION


# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
with your("my_entry"):
    race.enter("my_entry", my_entry)

# %% check="my_entry"

# %% [markdown]
# How much is that worth? AdamW at 0.04 with the same cosine, and a fifth more steps:

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
with your("AdamW", "rate_factor"):
    race.enter(
        "AdamW, 0.04, cosine, 600 steps",
        lambda model: AdamW(model.parameters(), 0.04, betas=(0.9, 0.95)),
        partial(rate_factor, warmup=25),
        steps=600,
    )

# %% [markdown]
# Compare the gain of a fifth more steps with that of your entry: many good ideas are worth no more.
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | how large may the rate be? | in a bowl below $2/L$, where $L$ is the largest curvature |
# | what is momentum good for? | steps $1/(1 - \beta)$ times as long where gradients agree |
# | Adam? | divides by the recent size of the gradients, per coordinate; rare words learn as fast as common ones |
# | AdamW? | $p \leftarrow (1 - \gamma\lambda)\,p$ beside the gradient; not for biases and norms |
# | schedule? | warm-up, then cosine; it helps at a high rate and hurts at a low one; steps count from 0 |
#
# ## Check yourself
#
# 1. Gradient descent at $1.9/L$ needs more steps in the *steep* direction. Why does $1/L$ need more in the flat one?
# 2. Your loss is summed over the tokens of a batch, not averaged (the slip of section 1). Which optimizers are affected, and how?
# 3. Momentum 0.9 is switched on in the middle of a run. What do you change?
# 4. Why does AdamW's decay need the rate in it?
#
# <details><summary>Answers</summary>
#
# 1. At $1/L$ the steep direction is done in one step, and a direction of curvature $\mu$ still has $1 - \mu/L$ of its error.
# 2. Descent and momentum: gradients and $L$ grow by the number of tokens, so the largest rate shrinks by it. AdaGrad and Adam divide by the size of gradients, so (except for $\varepsilon$) they are not.
# 3. Divide the rate by about 10: where gradients agree, steps become $1/(1 - 0.9) = 10$ times as long.
# 4. So that a schedule reaches both. With a falling rate and a constant fraction, decay would win in the end.
#
# </details>
#
# The folded cell checks the numbers in the text above.

# %% tags=["hide-input"]
assert [round(1 - scale, 2) for scale in (1.9, 2.0, 2.01)] == [-0.9, -1.0, -1.01]
assert round(1.01**10, 1) == 1.1 and round(1.01**1000, -3) == 21_000
assert round(1 / (1 - 0.9)) == 10 and round(math.log(128), 2) == 4.85
assert round((1 - 0.9) / math.sqrt(1 - 0.999), 1) == 3.2 and round(0.405 + 0.09 + 0.1, 3) == round(1 - 0.5 * 0.9 * 0.9, 3) == 0.595
longest = [(1 - 0.9**k) / math.sqrt(1 - 0.999**k) for k in range(1, 51)]
assert (round(longest[0], 2), round(max(longest), 2), longest.index(max(longest)) + 1) == (3.16, 6.57, 12)
assert [round(1 / (1 - beta)) for beta in (0.95, 0.999)] == [20, 1000]
momentum = {rate: excess_loss(partial(torch.optim.SGD, lr=rate, momentum=0.9, foreach=False), 0) for rate in (10, 30, 100)}
assert max(momentum.values(), key=min) is momentum[30] or momentum[30][1] > 50 * momentum[30][0]
assert momentum[30][1] < momentum[10][1] and momentum[100][0] > 1
assert max(excess_loss(partial(torch.optim.Adam, lr=0.3, foreach=False), 0)) < 1e-3
assert round((1 - 1e-4) ** 2000, 3) == 0.819
for seed in range(3):
    beside, (small, large) = (who_decays(partial(torch.optim.AdamW, foreach=False), seed, each) for each in (True, False))
    assert small < 0.1 and large > 0.8 and all(abs(end - 0.819) < 0.05 for end in beside)

# %% [markdown]
# ## Further
#
# Each section needs the core, and no other section.

# %% [markdown]
# ### A · Shapes one can trust  (33 min)
#
# Which functions are as friendly as a bowl? First, where do you meet bowls? Linear regression is one. For data $X$ of shape $(n, d)$ and targets $y$ of shape $(n)$,
#
# $$f(w) = \frac1{2n}\,\lVert Xw - y\rVert^2, \qquad \nabla f(w) = \frac1n X^\top(Xw - y).$$

# %% [markdown]
# ### Exercise 7 · The largest curvature  (2 points · 5 min · ●●)
#
# Return $L$, the largest curvature of the loss of linear regression as defined above, with the $1/n$.

# %% exercise="smoothness"
def smoothness(X: Float[Tensor, "n d"]) -> float:
    """The largest curvature L of ‖Xw − y‖²/2n."""
    ### BEGIN SOLUTION
    return torch.linalg.eigvalsh(X.T @ X / len(X)).max().item()
    ### END SOLUTION


# %% check="smoothness"

# %%
torch.manual_seed(0)
X, y = torch.randn(50, 3, dtype=torch.float64), torch.randn(50, dtype=torch.float64)
with your("smoothness"):
    for name, n in (("with 1/n", 50), ("without", 1)):
        w, rate = torch.zeros(3, dtype=torch.float64), 1 / float(smoothness(X))
        for _ in range(20):
            w = w - rate * X.T @ (X @ w - y) / n
        curvature = float(smoothness(X)) * 50 / n
        print(f"{name:8} L is {curvature:6.2f}; after 20 steps of {rate:.2f} the weights have length {w.norm():.2g}")

# %% [markdown]
# Without the $1/n$ the curvature is $n$ times as large, so the rate that was safe explodes. Sum or mean is the question of notebook 03 again, and the reason why a rate from a paper may be off by the size of a batch.
#
# #### Sets and functions
#
# A set is **convex** if it holds, with any two points, the whole segment between them: $\theta x + (1 - \theta) y$ for
# $0 \le \theta \le 1$. A *hyperplane* $\{a \cdot x = b\}$ is, a *half-space* $\{a \cdot x \le b\}$ too, and a *ball*, and what is left when you intersect
# several half-spaces, a *polyhedron*.
#
# A *function* is **convex** if its chords lie above it: $f(\theta x + (1 - \theta) y) \le \theta f(x) + (1 - \theta) f(y)$. Among them are $e^{ax}$, every norm, $\lVert Ax - b\rVert^2$, and the logistic loss $\log(1 + e^{-y\,w \cdot x})$. So between two places where $f \le c$ there is no hill: the places with $f \le c$ form a convex *set*, and there are no two separate valleys. For smooth functions there is a second test: the matrix of second derivatives has no negative eigenvalue anywhere. Draw two points at random from a set and look at the middle, and two low places of a loss. A network's loss fails both tests:

# %%
sets = {
    "half-space": lambda x: x[..., 0] + 2 * x[..., 1] <= 1,
    "ball": lambda x: x.square().sum(-1) <= 4,
    "polyhedron": lambda x: (x.abs().amax(-1) <= 2) & (x.sum(-1) <= 1),
    "ring": lambda x: (x.square().sum(-1) <= 4) & (x.square().sum(-1) >= 1),
}
torch.manual_seed(0)
points = 6 * torch.rand(40_000, 2) - 3
for name, inside in sets.items():
    members = points[inside(points)]
    pairs = members[: len(members) // 2 * 2].reshape(-1, 2, 2)
    outside = (~inside(pairs.mean(dim=1))).sum().item()
    print(f"{name:11} {outside:5,} of {len(pairs):6,} middles of two members are outside")

data, labels = torch.randn(30, 3), torch.randn(30).sign()


def logistic_loss(w: Tensor) -> Tensor:
    """The mean of log(1 + e^(−y w·x)); w (3)."""
    return F.softplus(-labels * (data @ w)).mean()


def network_loss(w: Tensor) -> Tensor:
    """The same for a network with three hidden units; w (12)."""
    return F.softplus(-labels * ((data @ w[:9].reshape(3, 3)).tanh() @ w[9:])).mean()


for name, loss, size in (("logistic", logistic_loss, 3), ("network", network_loss, 12)):
    places = 2 * torch.randn(1000, size)
    heights = vmap(loss)(places)
    level = heights.quantile(0.2)
    pairs = places[heights <= level].reshape(-1, 2, size)
    higher = (vmap(loss)(pairs.mean(dim=1)) > level).sum().item()
    print(f"{name:9} {higher:2} of {len(pairs)} middles of two low places are higher")
    lowest = torch.linalg.eigvalsh(vmap(hessian(loss))(places[:50]))[:, 0].min().item()
    print(f"{name:9} the lowest eigenvalue at 50 random places: {lowest:6.3f}")

# %% [markdown]
# Deep networks are not convex. What survives is the other good property of a bowl: it does not bend too fast. $f$ is **L-smooth** if
#
# $$\lVert \nabla f(x) - \nabla f(y)\rVert \le L\,\lVert x - y\rVert :$$
#
# the gradient changes at most $L$ times as fast as $x$. For a bowl that is the largest eigenvalue again, and you have computed it.
#
# #### The parabola above
#
# What is smoothness good for? It puts a lid on the function. If $f$ is L-smooth, then for all $x$ and $y$
#
# $$f(y) \;\le\; f(x) + \nabla f(x) \cdot (y - x) + \tfrac L2\,\lVert y - x\rVert^2 ,$$
#
# a parabola of curvature $L$ that touches $f$ at $x$ and lies above it everywhere. (This is called the *descent lemma*.) Move the point, and lower
# $L$ until the lid breaks:

# %%
explore(figures.chord_and_parabola, at=(-4.0, 4.0, 0.1), L=(0.2, 2.0, 0.05))

# %% [markdown]
# Smooth functions have the lid. And the other way round?

# %%
predict("below_every_parabola")

# %%
x = torch.linspace(-2, 2, 401, dtype=torch.float64)
f, slope = -(x**4), -4 * x**3
parabola = f[:, None] + slope[:, None] * (x - x[:, None]) + 0.01 / 2 * (x - x[:, None]) ** 2
print("−x⁴ above a parabola of curvature 0.01, at most:", max(0.0, (f - parabola).max().item()))
for reach in (2, 40):
    change = 4 * (reach**3 - (reach - 0.1) ** 3) / 0.1
    print(f"its slope between {reach - 0.1:g} and {reach} changes {change:,.0f} times as fast as x")

# %% [markdown]
# So smooth implies the lid, and the lid alone does not imply smooth. (For a *convex* function it does.)
#
# #### What a step is sure of
#
# Put $y = x - \gamma\nabla f(x)$ into the lid. What comes out is a promise: one step wins at least $\gamma\,(1 - \tfrac{\gamma L}2)\,\lVert\nabla f(x)\rVert^2$. It is positive up to $\gamma = 2/L$, the edge again, now for any smooth function. Lengthen the step:

# %%
explore(figures.chord_and_parabola, step=(0.1, 2.5, 0.1))

# %% [markdown]
# **Theorem** (gradient descent on a smooth function). With $0 < \gamma \le 1/L$ and $f^*$ the lowest value of $f$,
#
# $$\frac1{K+1}\sum_{k=0}^{K} \lVert\nabla f(x_k)\rVert^2 \;\le\; \frac{2\,(f(x_0) - f^*)}{\gamma\,(K+1)}.$$
#
# Here is its proof, in four lines. Before you open the reasons: why does each line follow?
#
# 1. $f(x_{k+1}) \le f(x_k) + \nabla f(x_k)\cdot(x_{k+1} - x_k) + \frac L2\lVert x_{k+1} - x_k\rVert^2$
# 2. $f(x_{k+1}) \le f(x_k) - \gamma\,(1 - \frac{\gamma L}2)\,\lVert\nabla f(x_k)\rVert^2$
# 3. $f(x_{k+1}) \le f(x_k) - \frac\gamma2\,\lVert\nabla f(x_k)\rVert^2$
# 4. $\frac\gamma2\sum_{k=0}^K \lVert\nabla f(x_k)\rVert^2 \le f(x_0) - f(x_{K+1}) \le f(x_0) - f^*$
#
# <details><summary>The reasons</summary>
#
# 1. $f$ is smooth: the lid, with $x = x_k$ and $y = x_{k+1}$.
# 2. Insert the step, $x_{k+1} - x_k = -\gamma\nabla f(x_k)$.
# 3. $\gamma \le 1/L$, so the bracket is at least $\frac12$.
# 4. Sum over $k$: everything between the first and the last value cancels, and the last is no lower than $f^*$.
#
# </details>
#
# It does not say that you arrive at a minimum. It says that the gradients get small: their average falls like $1/K$, so at least one is as small as that.

# %% [markdown]
# ### Exercise 8 · The theorem on data  (3 points · 10 min · ●●)
#
# For linear regression, from $w = 0$, return both sides of the theorem after $K$ = `steps` steps: the average, and the bound. All numbers are in double precision. A rate above $1/L$ is not covered: raise `ValueError`. $1/L$ itself must pass, although rounding may make its product with $L$ a last digit larger than 1. Columns of $X$ may be equal to each other. You may call your `smoothness`.

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

# %%
explore(figures.certificate, scale=(0.1, 1.95, 0.05), seed=[0, 1, 2])

# %% [markdown]
# Up to $1/L$ the bound holds for every $K$ and every seed, as it must. At $1.9/L$ descent still goes down, and the *printed* bound is wrong: there the bracket of line 2 is only
# 0.05. A bound is true where it was proved; look up where that was.
#
# **In real models.** $L$ of a language model is not computed before training. What you take from the theorem is its shape: halve the rate and the guarantee needs twice the steps; go beyond $2/L$ and there is none.

# %% [markdown]
# ### B · The edge  (8 min)
#
# So you find $L$ and choose $\gamma < 2/L$. For a bowl, yes. But the curvature of a network changes while it learns. Twenty points of a sine, twenty tanh units, gradient descent on all the data: 61 parameters, so the whole matrix of second derivatives fits on a page.

# %%
predict("sharper_or_flatter")

# %% [markdown]
# Three high rates for 2,000 steps, and a low one for 8,000, with three seeds each. (This takes 5 to 20 seconds.)

# %% tags=["nbval-ignore-output", "because at the edge rounding decides which steps rise"]
points = torch.linspace(-1, 1, 20)
targets = torch.sin(4 * points)


def sine_loss(p: Tensor) -> Tensor:
    """Half the mean squared error of networks with 20 tanh units; p (..., 61) → (...)."""
    w, b, v = p[..., None, :60].unflatten(-1, (3, 20)).unbind(-2)
    heights = ((points[:, None] * w + b).tanh() * v).sum(dim=-1)
    return (heights + p[..., 60:] - targets).square().mean(dim=-1) / 2


def first_weights(seed: int) -> Tensor:
    """Random weights of that network: (61)."""
    w, b, v = torch.randn(3, 20, generator=torch.Generator().manual_seed(seed))
    return torch.cat([w, b / 2, v / 80**0.5, torch.zeros(1)])


def train_on_edge(rates: tuple[float, ...], steps: int, every: int) -> tuple[dict[float, Tensor], Tensor]:
    """The largest curvature at every so many steps by rate, a column per seed; and all losses (steps, runs)."""
    p = torch.stack([first_weights(seed) for seed in range(3)]).repeat(len(rates), 1).requires_grad_()
    each, sharpest, losses = torch.tensor(rates).repeat_interleave(3)[:, None], [], []
    for step in range(steps + 1):
        if step % every == 0:
            sharpest.append(torch.linalg.eigvalsh(vmap(hessian(sine_loss))(p.detach()))[:, -1])
        heights = sine_loss(p)
        losses.append(heights.detach())
        p.data -= each * torch.autograd.grad(heights.sum(), p)[0]
    return dict(zip(rates, torch.stack(sharpest).chunk(len(rates), dim=1), strict=True)), torch.stack(losses)


curvatures, edge_losses = train_on_edge((0.5, 0.4, 0.35), 2000, 100)
slow, slow_losses = train_on_edge((0.1,), 8000, 400)
for rate, values in (curvatures | slow).items():
    ends = ", ".join(f"{end:5.1f}" for end in values[-5:].mean(dim=0).tolist())
    print(f"rate {rate:4}: 2/γ = {2 / rate:4.1f}; the largest curvature at the end, three seeds: {ends}")
for name, heights in (("0.4", edge_losses[:, 3:6]), ("0.1", slow_losses)):
    rises = (heights[1:] > heights[:-1]).sum(dim=0).tolist()
    falls = ", ".join(f"{first:.2f} → {last:.4f}" for first, last in heights[[0, -1]].T.tolist())
    print(f"rate {name}: the loss rose in {rises} of {len(heights) - 1:,} steps and fell all the same:\n  {falls}")

# %%
figures.sharpness(curvatures | slow)

# %% [markdown]
# The curvature *rises* until it meets $2/\gamma$, and stays there, for each of the three high rates (at 0.5 it begins there). At 0.4 the loss goes up in hundreds of single steps, and down all the same. At 0.1 the edge would be 20: without an edge, after as much training ($\gamma$ times steps), the curvature ends at 7 to 8, and no step rises. If training lasts long enough, choosing $\gamma$ means choosing the curvature at which it ends: "choose $\gamma < 2/L$" has it backwards. Wu, Ma & E (2018) saw that descent ends where the curvature is near $2/\gamma$; Cohen et al. (2021) showed it in detail.

# %% [markdown]
# ### C · How large a batch?  (38 min)
#
# GPT-3 was trained on 300 billion tokens (Brown et al., 2020). A gradient over all of them for a single step is out of the question. The problem really is
#
# $$\min_x\; f(x) = \mathbb E_\xi\big[F(x; \xi)\big],$$
#
# where $\xi$ is an example and its distribution is unknown: all you can do is draw. For least squares, $F(w; (x, y)) = \frac12 (x \cdot w - y)^2$. **Stochastic gradient descent** (Robbins & Monro, 1951) takes the gradient of what was drawn for the real one. On average it is right:

# %%
gradients = torch.tensor([[4.0, 0.0], [0.0, 2.0], [-2.0, 2.0], [2.0, -4.0]])  # of four examples, at some w
print("full gradient        ", gradients.mean(dim=0).tolist())
pairs = torch.combinations(torch.arange(4))
batches = gradients[pairs].mean(dim=1)
print("mean over all 6 pairs", batches.mean(dim=0).tolist())
print("the pairs            ", batches.tolist())

# %% [markdown]
# Two things are assumed of the noise, whatever was drawn before: its mean is zero, and its variance is at most $\sigma^2$. The first holds exactly, as you see. How large is the second?

# %% [markdown]
# ### Exercise 9 · The noise of a batch  (3 points · 8 min · ●●)
#
# `gradients` holds the gradient of each of $n$ examples, at some fixed $w$. A batch of `batch` examples is drawn, with replacement or without, and its gradients are averaged. Return the mean of $\lVert\text{batch gradient} - \text{full gradient}\rVert^2$ over all batches, by a formula that neither lists the batches nor samples them (of 30 examples there are 155 million batches of 15). There may be a single example.

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

# %% [markdown]
# With replacement it is $\sigma^2/B$, where $\sigma^2 = \frac1n\sum_i \lVert g_i - \bar g\rVert^2$; without, $\frac{n - B}{n - 1}$ of that. Four times the batch is half the spread. When do you stop paying for it?

# %% [markdown]
# ### Exercise 10 · The noise scale  (3 points · 12 min · ●●●)
#
# During training you see neither $\lVert G\rVert^2$, the squared length of the full gradient, nor $\sigma^2$. But you can measure the mean of $\lVert g\rVert^2$ over many batches of
# `b_small` examples (`small`), and over many of `b_large` (`large`), drawn with replacement. Return $\lVert G\rVert^2$, $\sigma^2$, and their quotient $B = \sigma^2/\lVert G\rVert^2$, the batch whose noise is as large as the gradient.
#
# Equal sizes say nothing: raise `ValueError`. Measurements are noisy, and $\lVert G\rVert^2$ or $\sigma^2$ may come out below 0: return them as they are. Where $\lVert G\rVert^2$ is 0 or below, $B$ is `math.inf`.

# %% exercise="noise_scale"
def noise_scale(small: float, large: float, b_small: int, b_large: int) -> tuple[float, float, float]:
    """‖G‖², σ² and σ²/‖G‖² from the mean ‖g‖² of batches of two sizes."""
    ### BEGIN SOLUTION
    if b_small == b_large:
        raise ValueError("two different sizes are needed")
    sigma2 = (small - large) / (1 / b_small - 1 / b_large)
    G2 = large - sigma2 / b_large
    return G2, sigma2, sigma2 / G2 if G2 > 0 else math.inf
    ### END SOLUTION


# %% check="noise_scale"

# %% [markdown]
# Now look at the price. A net predicts a byte of stories from the three before it, with plain SGD. (Its loss is in *nats*: the mean of $-\ln p$ for the right byte.)

# %%
predict("eight_times_the_batch")

# %% tags=["nbval-ignore-output", "because rounding differs between processors and may shift a step"]
three = torch.arange(3)


def first_net(seed: int) -> list[Tensor]:
    """A table of 32 numbers for each byte at each of three places, and 128 scores from their tanh."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((384, 32), (32, 128), (1, 128))
    return [torch.randn(shape, generator=generator).div_(4).requires_grad_() for shape in shapes]


def byte_loss(net: list[Tensor], at: Tensor) -> Tensor:
    """Nats per byte after the three bytes that begin at these places of the text."""
    table, scores, bias = net
    return F.cross_entropy(table[text[at[:, None] + three] + 128 * three].sum(dim=1).tanh() @ scores + bias, text[at + 3])


def slopes(net: list[Tensor], batch: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """The gradient on a batch of random places."""
    at = torch.randint(len(text) - 3, (batch,), generator=generator)
    return torch.autograd.grad(byte_loss(net, at), net)


def steps_to_goal(batch: int, rate: float, seed: int, limit: int) -> int:
    """Steps of SGD until the loss on 1,000 fixed places is below 1.6 nats, looked at in every fourth step."""
    net, generator = first_net(seed), torch.Generator().manual_seed(seed)
    fixed = torch.randint(len(text) - 3, (1000,), generator=torch.Generator().manual_seed(99))
    for step in range(limit):
        if step % 4 == 0 and byte_loss(net, fixed).item() < 1.6:
            return step
        for p, slope in zip(net, slopes(net, batch, generator), strict=True):
            p.data -= rate * slope
    return limit


def best_steps(batch: int, rates: Iterable[float], seed: int) -> int:
    """The fewest steps to the goal with any of these rates."""
    best = 600
    for rate in rates:
        best = min(best, steps_to_goal(batch, rate, seed, best))
    return best


needed = {
    batch: [best_steps(batch, rates, seed) for seed in range(3)]
    for batch, rates in ((8, (1.0, 0.5, 2.0)), (64, (4.0, 2.0, 8.0)), (512, (8.0, 4.0, 16.0)))
}
for batch, steps in needed.items():
    print(f"batches of {batch:3}: {steps} steps (three seeds), {batch * sum(steps) / 3:6,.0f} examples")
few, more, most = (sum(steps) / 3 for steps in needed.values())
knee = (few - more) / (1 / 8 - 1 / 64)
least = more - knee / 64
print(f"S · (1 + B/batch) through the first two: S = {least:.0f} steps, B = {knee / least:.0f} examples")
print(f"for batches of 512 that would be {least + knee / 512:.0f} steps; measured {most:.0f}")

# %% [markdown]
# From 8 to 64 examples the steps fall to less than a fifth, and you pay about half as many examples again. From 64 to 512 they fall to about a third, and you pay about three times as many examples. In between lies a batch size $B$ at which you need twice the fewest steps; $S\,(1 + B/\text{batch})$ is the curve that McCandlish et al. (2018) found. Now measure the noise scale during such a run:

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
with your("noise_scale"):
    scales = []
    net, generator = first_net(0), torch.Generator().manual_seed(0)
    for step in range(201):
        if step in (10, 30, 100, 200):
            small, large = (
                sum(sum(slope.square().sum().item() for slope in slopes(net, b, generator)) for _ in range(n)) / n
                for b, n in ((8, 200), (512, 20))
            )
            scales.append(noise_scale(small, large, 8, 512)[2])
            now = byte_loss(net, torch.arange(4000)).item()
            print(f"step {step:3}: loss {now:.2f}, σ²/‖G‖² = {scales[-1]:4.0f}")
        for p, slope in zip(net, slopes(net, 64, generator), strict=True):
            p.data -= 2.0 * slope

# %% [markdown]
# It has the order of magnitude of the $B$ above, and that is all: it grows about fivefold while the loss falls, because the full gradient shrinks faster than the noise. That is an argument for small batches at the beginning of a run and larger ones later.
#
# **Theorem** (SGD). With $\gamma \le 1/L$, and $\Delta_0 = f(x_0) - f^*$,
#
# $$\frac1{K+1}\sum_{k=0}^K \mathbb E\,\lVert\nabla f(x_k)\rVert^2 \;\le\; \frac{2\Delta_0}{\gamma(K+1)} + \gamma L\sigma^2.$$
#
# The first part is the old one. What happens to the second as $K$ grows?

# %%
predict("constant_rate")

# %% tags=["nbval-ignore-output", "because of a floor that is made of rounding"]
RATES_B = (0.1, 0.05, 0.025, 0.0125)


def squared_gradients(seed: int, label_noise: float, steps: int = 4000) -> Tensor:
    """‖∇f‖² at each step (rows) for four rates (columns); the same example for all of them."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(64, 3, generator=generator, dtype=torch.float64)
    noise = torch.randn(64, generator=generator, dtype=torch.float64)
    y = X @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64) + label_noise * noise
    rates, w, found = torch.tensor(RATES_B, dtype=torch.float64), torch.zeros(4, 3, dtype=torch.float64), []
    for i in torch.randint(64, (steps,), generator=generator).tolist():
        found.append(((w @ X.T - y) @ X / 64).square().sum(dim=1))
        w = w - rates[:, None] * (w @ X[i] - y[i])[:, None] * X[i]
    return torch.stack(found)


noisy, exact = squared_gradients(0, 1.0), squared_gradients(0, 0.0)
floors = noisy[2000:].mean(dim=0)
print("noisy labels, floors by rate:", [f"{floor:.2f}" for floor in floors.tolist()])
print("labels that a line fits, at the end:", [f"{end:.0e}" for end in exact[-1].tolist()])

# %%
figures.noise_floor(noisy, RATES_B)

# %% [markdown]
# Halve the rate, and the floor is halved as well (a little more than that here). And with labels that a line fits exactly there is no floor at all. "SGD with a constant rate cannot converge" is true if $\sigma^2 > 0$ where it arrives. A model that can fit *all* of its data has $\sigma^2 = 0$ at the solution, and large networks are not far from that.
#
# **In real models.** This is why rates fall during training (section 6).
#
# <details><summary>You double the batch and average over it. What happens to $L$, what to $\sigma^2$, and what to the largest rate?</summary>
#
# $L$ belongs to the function and stays, up to chance; the noise is halved; the largest rate stays at $2/L$. (That one *may* raise the rate with the batch is about the floor, not about the edge.)
#
# </details>

# %% [markdown]
# ### D · The best memory  (21 min)
#
# How much memory is best? In a bowl this can be answered. Along a direction of curvature $\lambda$ the heavy ball takes $(x_k, x_{k-1})$ one step on with a $2 \times 2$ matrix, whose larger eigenvalue (in absolute value) says what is left after each step. It is $\sqrt\beta$, as long as
#
# $$\big|1 - \sqrt{\gamma\lambda}\,\big| \le \sqrt\beta\,,$$
#
# and larger where this inequality fails. It must hold for the flattest direction, $\mu$, and for the steepest, $L$.

# %% [markdown]
# ### Exercise 11 · The best memory  (3 points · 12 min · ●●●)
#
# For a bowl with curvatures from $\mu$ to $L$, return the rate $\gamma$ and the memory $\beta$ with which the error falls fastest, and the factor $\sqrt\beta$ by which it falls per step.

# %% exercise="best_momentum"
def best_momentum(mu: float, L: float) -> tuple[float, float, float]:
    """The best rate γ and memory β of the heavy ball, and √β."""
    ### BEGIN SOLUTION
    rate = 4 / (math.sqrt(L) + math.sqrt(mu)) ** 2
    factor = 1 - math.sqrt(rate * mu)
    return rate, factor**2, factor
    ### END SOLUTION


# %% check="best_momentum"

# %% [markdown]
# With $\kappa = L/\mu$ the best factor is $\dfrac{\sqrt\kappa - 1}{\sqrt\kappa + 1}$; without memory it is $\dfrac{\kappa - 1}{\kappa + 1}$, at $\gamma = 2/(L + \mu)$. The root is the whole point of momentum. Steps until the error of both ends is below $10^{-6}$:

# %%
def steps_needed(rate: float, beta: float, kappa: float, nesterov: bool = False) -> int:
    """Steps from 1 to below 10⁻⁶ for good, in directions of curvature 1 and kappa."""
    worst = 0
    for curvature in (1.0, kappa):
        x = before = 1.0
        steps, last = 0, 0
        while steps < last + 300:
            y = x + beta * (x - before)
            x, before = y - rate * curvature * (y if nesterov else x), x
            steps += 1
            last = steps if abs(x) > 1e-6 else last
        worst = max(worst, last + 1)
    return worst


for kappa in (10, 100, 1000, 10_000):
    root = math.sqrt(kappa)
    q = (root - 1) / (root + 1)
    descent = steps_needed(2 / (1 + kappa), 0.0, kappa)
    ball = steps_needed(4 / (root + 1) ** 2, q**2, kappa)
    nesterov = steps_needed(1 / kappa, q, kappa, nesterov=True)
    print(f"κ = {kappa:6,}   descent {descent:7,}   heavy ball {ball:6,}   Nesterov {nesterov:6,}")

# %%
with your("best_momentum", "Momentum"):
    rate, beta, factor = best_momentum(1.0, 1000.0)
    x, steps = torch.ones(2, dtype=torch.float64, requires_grad=True), 0
    optimizer = Momentum([x], rate, beta)
    while x.abs().max() > 1e-6:
        x.grad, steps = torch.tensor([1.0, 1000.0]) * x.detach(), steps + 1
        optimizer.step()
    print(f"κ = 1,000 with γ = {rate:.5f} and β = {beta:.3f}: {steps} steps; each multiplies by about {factor:.3f}")

# %% [markdown]
# **In real models.** No loss of a network is a bowl, and $\beta = 0.9$ is the usual choice. That is the best memory of a bowl with $\kappa$ of about 1,400. Goh (2017), *Why momentum really works*, has the most beautiful pictures of all this.
#
# #### Out of a dip
#
# GELU (notebook 11) falls before it rises: at $z = -0.75$ it has a dip, where its slope is 0. Does a unit get stuck there? Let a unit want $\text{GELU}(z) = 1$, with the loss $\frac12(\text{GELU}(z) - 1)^2$. Exactly in the dip its gradient is 0; a little to the right it points out of it, a little to the left it points further left, where the slope is nearly 0 for ever. First, three units 0.001, 0.01 and 0.1 to the right of the dip: the number of steps in which their outputs are below 0.9. Then 200 units 0.25 to the left of it, 500 steps, with noise of size 0.3 in their gradients, as batches bring it: the share whose output is above 0.5 in the end, with three seeds.

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
def slope_of_unit(z: Tensor) -> Tensor:
    """The slope of ½(GELU(z) − 1)²."""
    bell = torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return (F.gelu(z) - 1) * (torch.special.ndtr(z) + z * bell)


with your("Momentum"):
    for rate in (0.01, 0.3):
        for beta in (0.0, 0.9):
            z, left = (-0.7518 + torch.tensor([0.001, 0.01, 0.1])).requires_grad_(), torch.zeros(3, dtype=torch.long)
            optimizer = Momentum([z], rate, beta)
            for _ in range(2000):
                left += F.gelu(z.detach()) < 0.9
                z.grad = slope_of_unit(z.detach())
                optimizer.step()
            crossed = []
            for seed in range(3):
                z, generator = torch.full((200,), -1.0, requires_grad=True), torch.Generator().manual_seed(seed)
                optimizer = Momentum([z], rate, beta)
                for _ in range(500):
                    z.grad = slope_of_unit(z.detach()) + 0.3 * torch.randn(200, generator=generator)
                    optimizer.step()
                crossed.append(f"{(F.gelu(z) > 0.5).float().mean():.0%}")
            print(f"γ = {rate}, β = {beta}: steps from the right {left.tolist()}; share from the left {', '.join(crossed)}")

# %% [markdown]
# No unit stays in the dip: from its right side a low rate without momentum needs up to 1,500 steps, a high rate with momentum fewer than 40. From its left side a unit needs a push. At a low rate without momentum none gets one; with both, a third of the units are carried over. This is the usual answer to the question if a function that falls before it rises is a problem: with high rates and momentum, activations do not stand still. (With much larger noise, the same rate and momentum throw units back as well.)

# %% [markdown]
# ### E · AdaGrad and the turned valley  (19 min)
#
# Section 4 gave AdaGrad two sentences; here is its class. It adds up the squares of each coordinate's gradients, and divides the gradient by the root of the sum.
#
# By hand: gradients 4, 4, 4. The steps are $\gamma \cdot 4/\sqrt{16} = \gamma$, then $4/\sqrt{32}$, then $4/\sqrt{48}$: $\gamma$, $0.71\,\gamma$, $0.58\,\gamma$. And for gradients of 0.001? The same. The size of a gradient does not matter, only how it compares with those before.
#
# > **Spot the slip.** A colleague's `step` begins with `grad = p.grad.data` for each parameter, and has always worked. When does it stop with an `AttributeError`?

# %% [markdown]
# ### Exercise 12 · AdaGrad  (3 points · 8 min · ●●)
#
# The whole class this time, and its memory in `self.state[p]` again. So that 0 is not divided by 0, $\varepsilon$ is added to the root (not under it), as in PyTorch.

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

# %% [markdown]
# A part of a model may be unused in a step, such as an expert that no token chose: that is when `.grad` is `None`. (Words are rows of one table; the row of a word that did not occur gets a gradient of 0, not None.) As a formula, coordinate by coordinate:
#
# $$s \leftarrow s + g^2, \qquad p \leftarrow p - \gamma\,\frac{g}{\sqrt s + \varepsilon}$$
#
# An $\varepsilon$ of $10^{-5}$ *under* the root would be another rule: coordinates whose gradients are far below 0.003 would take almost no step.
#
# Now turn the valley. Whose path changes?

# %%
predict("who_notices")

# %%
def steps_to_a_thousandth(makes: list[partial[Optimizer]], seed: int) -> str:
    """The fewest steps in which one of these optimizers takes a bowl of ten curvatures from 1 to 1,000 down to 1/1000.

    Before and after a random rotation of the bowl.
    """
    generator = torch.Generator().manual_seed(seed)
    rotation = torch.linalg.qr(torch.randn(10, 10, generator=generator, dtype=torch.float64))[0]
    begin = torch.randn(10, generator=generator, dtype=torch.float64)
    fewest = []
    for turn in (torch.eye(10, dtype=torch.float64), rotation):
        H, counts = turn @ torch.logspace(0, 3, 10, dtype=torch.float64).diag() @ turn.T, []
        for make in makes:
            p, steps = (turn @ begin).requires_grad_(), 0
            optimizer, p.grad = make([p]), H @ turn @ begin
            goal = 1e-3 * (p.detach() @ p.grad)
            while p.detach() @ p.grad >= goal and steps < 3000:
                optimizer.step()
                p.grad, steps = H @ p.detach(), steps + 1
            counts.append(steps)
        fewest.append(min(counts))
    return " → ".join(map(str, fewest))


q = (math.sqrt(1000) - 1) / (math.sqrt(1000) + 1)
with your("Descent", "Momentum", "AdaGrad", "AdamW"):
    for name, makes in {
        "descent": [partial(Descent, lr=2 / 1001)],
        "heavy ball": [partial(Momentum, lr=4 / (math.sqrt(1000) + 1) ** 2, momentum=q**2)],
        "AdaGrad": [partial(AdaGrad, lr=rate) for rate in (0.1, 0.3, 1.0, 3.0)],
        "Adam": [partial(AdamW, lr=rate) for rate in (0.03, 0.1, 0.3, 1.0)],
    }.items():
        found = ", ".join(steps_to_a_thousandth(makes, seed) for seed in range(3))
        print(f"{name:11} steps before → after turning, three seeds: {found}")

# %% [markdown]
# Aligned with the axes, AdaGrad needs a handful of steps for a valley of 1,000. Turned, it needs many times as many, while descent and the heavy ball do not change by a single step. Turning costs Adam steps too, though fewer than AdaGrad. A rate for each coordinate is as good as the coordinates. In a language model they mean something: a row of the embedding belongs to one word. Here are all methods on one map: which of them mind the size of the valley, which its rotation?

# %%
explore(
    figures.descent_path,
    method=list(METHODS),
    rate=Log(0.001, 3.0),
    momentum=(0.0, 0.99),
    kappa=Log(1.0, 1000.0),
    rotation=(0.0, 90.0),
)

# %% [markdown]
# In the race, and in memory:

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
with your("Descent", "Momentum", "AdaGrad", "AdamW"):
    Race().enter("AdaGrad, 0.1", lambda model: AdaGrad(model.parameters(), 0.1))
    for name, kind in (("Descent", Descent), ("Momentum", Momentum), ("AdaGrad", AdaGrad), ("AdamW", AdamW)):
        w = torch.zeros(1000, requires_grad=True)
        w.grad, optimizer = torch.ones(1000), kind([w], lr=0.1)
        optimizer.step()
        kept = [each for each in optimizer.state[w].values() if isinstance(each, Tensor) and each.numel() == 1000]
        print(f"{name:9} keeps {4 * len(kept)} bytes for each weight, beside 4 of the weight and 4 of its gradient")

# %% [markdown]
# **Muon** (Jordan et al., 2024) treats a matrix as a whole: it keeps momentum only and makes the matrix of each step nearly orthogonal, so that all directions in which it acts get steps of about the same length. `torch.optim.Muon` is this rule.
#
# <details><summary>A colleague sets Adam's $\varepsilon$ to 1. What have they got?</summary>
#
# Where gradients are much smaller than 1, $\sqrt{\hat s} + 1 \approx 1$: momentum with corrected means.
#
# </details>

# %% [markdown]
# ### F · Who needs the warm-up?  (4 min)
#
# "Post-norm needs warm-up" is often said (notebook 10 has the two placements of the norm). Train tiny transformers on stories, byte by byte, for 100 steps each, with two seeds:

# %% tags=["nbval-ignore-output", "because at a reckless rate rounding grows into the last digit shown"]
def final_loss(placement: str, rate: float, warmup: int, seed: int) -> float:
    """Nats per byte of a two-layer transformer, mean of the last ten of 100 steps."""
    torch.manual_seed(seed)
    model = Transformer(llama_like(2, 64, 2, 128, vocab_size=128, context=32, block={"placement": placement}))
    initialize(model)
    optimizer = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    losses = []
    with Loader(text[:40_000], batch=8, seq_len=32, seed=seed, prefetch=0) as batches:
        for step in range(100):
            optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / max(warmup, 1))
            batch = next(batches)
            loss = next_token_loss(model(batch.inputs), batch.targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-10:]) / 10


warmed = {
    (placement, rate, warmup): [final_loss(placement, rate, warmup, seed) for seed in (0, 1)]
    for placement, rate in (("post", 0.03), ("pre", 0.03), ("post", 0.01))
    for warmup in (0, 60)
}
counts = torch.bincount(text).double()
letters = -torch.special.xlogy(counts / len(text), counts / len(text)).sum().item()
print(f"knowing only how frequent each letter is: {letters:.2f} nats")
for (placement, rate, warmup), ends in warmed.items():
    print(f"{placement + '-norm':9} rate {rate}, warm-up of {warmup:2}: {sum(ends) / 2:.1f} nats")

# %% [markdown]
# At 0.03, a reckless rate, post-norm without warm-up has learned how frequent the letters are, and almost nothing else; with warm-up it gets far below. Pre-norm suffers less, and gains from a warm-up all the same. And at 0.01 post-norm does *better* without: the warm-up is only lost time there. So the sentence is true at high rates, and "a warm-up allows a higher rate" is the better one.

# %% [markdown]
# ### G · Decay and schedule, three runs  (11 min)
#
# A question about the rate:

# %%
predict("decay_and_rate")

# %%
for rate, steps, decay in ((1e-3, 2000, 0.1), (5e-4, 4000, 0.05), (5e-4, 4000, 0.1), (5e-4, 4000, 0.2)):
    print(f"γ = {rate:g}, {steps:,} steps, λ = {decay:<4g}: {(1 - rate * decay) ** steps:.4f} of a weight is left")

# %% [markdown]
# A **constant rate with a drop** at the end (*cool-down*, or WSD for warm-up, stable, decay) has one advantage over the cosine: until the drop begins, you need not know how long the run will be.

# %%
explore(figures.rate_schedule, shape=list(SHAPES), warmup=(0, 400, 10), floor=(0.0, 0.5, 0.05), drop=(0.1, 0.6, 0.05))

# %% [markdown]
# And what does decay do, if nothing is overfitted? A language model sees most of its text once. Its loss on text that it has not seen is the same as in training. Still, decay of 0.1 is usual.

# %%
predict("decay_and_validation")

# %% [markdown]
# The model of the race, for 2,000 steps, so that no byte has to be predicted twice. The rate goes up to 0.0015 in 50 steps; then it follows a cosine to 0, or stays there until a straight line takes it to 0 in the last 400 steps. Only the matrices in front of a norm decay. All runs of a seed begin with the same weights and see the same batches. (Each of the next three cells trains the runs of a seed, for 10 to 30 seconds.)

# %%
half_wave, drop = Cosine(2000, 50), WarmupStableDecay(2000, 50, 400)
settings = {"decay 0": (half_wave, 0.0), "decay 1.5": (half_wave, 1.5), "drop, decay 0": (drop, 0.0), "drop, decay 1.5": (drop, 1.5)}
decayed = {0: decayed_runs(settings, 0, 2000)}

# %%
decayed[1] = decayed_runs(settings, 1, 2000)

# %% tags=["nbval-ignore-output", "because rounding differs between processors and grows in two thousand steps"]
decayed[2] = decayed_runs(settings, 2, 2000)
for name in settings:
    parts = [
        ", ".join(f"{by[name].average(*steps):.3f}" for by in decayed.values())
        for steps in ((900, 1100), (1500, 1600), (1900, 2000))
    ]
    held_out, norms = (", ".join(f"{by[name][which]:.{digits}f}" for by in decayed.values()) for which, digits in ((1, 3), (2, 0)))
    print(f"{name:15} half-way {parts[0]}; before the drop {parts[1]}; in the end {parts[2]}")
    print(f"{'':15} held out {held_out}; norm of the second layer {norms}")

# %%
figures.crossing_losses({name: run.losses for name, run in decayed[0].items()})

# %% [markdown]
# With each seed, the cosine run with decay is behind half-way and ahead in the end, in training and on held-out text. (The picture shows seed 0.) In all six cosine runs the held-out loss is the lower one, so there was no overfitting to prevent. Decay changed the *training*. Before a norm only the direction of a matrix counts, and a step at rate $\gamma$ turns a matrix of norm $\lVert W\rVert$ by an angle in proportion to $\gamma/\lVert W\rVert$. Decay keeps $\lVert W\rVert$ small, so each step turns it further, as a higher rate would. The loss is noisier in the middle of the run, and lower once the cosine has taken the rate to 0.
#
# Half-way and before the drop, the constant run without decay is behind the cosine. (Early on it is a little ahead, in the picture by 0.01.) With each seed, the drop takes it below the cosine, whose average rate is only 56 % of the drop's. With decay, the constant run is far behind before the drop, falls much further in it, and is still behind at the end: decay raises the true rate here, and a constant schedule leaves only the drop to bring it down. (This is one rate and one size of decay. Under the cosine, the same decay helped.) How long should a drop be? Hu et al. (2024) take a tenth of the run, Hägele et al. (2024) find that a fifth keeps up with the cosine on larger models.
#
# **In real models.** Cosine to a tenth of the peak and decay 0.1 is the recipe of GPT-3 and Llama; D'Angelo, Andriushchenko et al. (2023) show on such models what you have just seen, and that decay is "never useful as an explicit regularizer" there. Constant rates with a final drop are described by Hu et al. (2024) and Hägele et al. (2024). Notebook 13 trains a real model with all of this.

# %% [markdown]
# ### H · Choosing among words  (11 min)
#
# A language model ends in a choice. The simplest model that chooses is a **linear classifier**: a row of $W$, of shape $(c, d)$, for each class, scores $z = W x$, and a softmax that makes probabilities of them. The loss is the mean over $n$ examples of $-\log p_{y_i}$, with $p_i = \text{softmax}(W x_i)$.
#
# You met the smallest case in notebook 03: for two scores, the gradients were $p - 1$ for the right score, and its own probability for the other. By hand: $W = 0$, two classes, $x = (1, 2)$, and the first is right. Both probabilities are ½. Nudge the first score: the loss falls with slope $-½$. What does that make of the four entries of the gradient?

# %% [markdown]
# ### Exercise 13 · The gradient of a choice  (3 points · 8 min · ●●)
#
# Return the gradient of that mean with respect to $W$, by hand: no autograd. Scores of 1,000 must work.

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

# %% [markdown]
# Each row of $W$ collects, from every example, $x$ times the row's probability, less 1 where its class was right. The last layer of every language model learns like this, with a row for each token of the vocabulary. Here it learns the 200 first bytes of the stories, each from the byte before it, with your momentum:

# %%
bytes_before, bytes_after = F.one_hot(text[:200], 128).float(), text[1:201]
with your("softmax_gradient", "Momentum"):
    W = torch.zeros(128, 128, requires_grad=True)
    optimizer = Momentum([W], lr=10.0)
    for step in range(101):
        if step in (0, 10, 100):
            loss = F.cross_entropy(bytes_before @ W.detach().T, bytes_after).item()
            print(f"step {step:3}: {loss:.2f} nats per byte")
        W.grad = softmax_gradient(W.detach(), bytes_before, bytes_after)
        optimizer.step()

# %% [markdown]
# ### Further reading
#
# - Polyak, 1964, *Some methods of speeding up the convergence of iteration methods*; Nesterov, 1983; Goh, 2017, *Why momentum really works* (Distill).
# - Duchi, Hazan & Singer, 2011, *Adaptive subgradient methods*; Kingma & Ba, 2015, *Adam*; Loshchilov & Hutter, 2019, *Decoupled weight decay regularization*.
# - McCandlish et al., 2018, *An empirical model of large-batch training*.
# - Wu, Ma & E, 2018, *How SGD selects the global minima in over-parameterized learning*; Cohen et al., 2021, *Gradient descent on neural networks typically occurs at the edge of stability*.
# - Kunstner et al., 2024, *Heavy-tailed class imbalance and why Adam outperforms gradient descent on language models*.
# - D'Angelo, Andriushchenko et al., 2023, *Why do we need weight decay in modern deep learning?*
# - Hägele et al., 2024, *Scaling laws and compute-optimal training beyond fixed training durations*, on constant rates with a cool-down.
# - In this package: `lmcourse/training/optimizers/`, all five rules as PyTorch computes them; `lmcourse/training/schedules.py`.
#
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you like.)

# %% tags=["hide-input"]
assert round(1 - 1.9 / 2, 2) == 0.05 and 61 == 3 * 20 + 1 and math.comb(30, 15) // 10**6 == 155
for seed in (0, 1, 2):
    for scale in (0.3, 1.0):
        measured, bound = measured_and_bound(scale, seed)
        assert (measured <= bound * (1 + 1e-9)).all()
measured, bound = measured_and_bound(1.9)
assert (measured > bound).any() and (measured[1:] < measured[:-1]).all()
for rate, values in curvatures.items():
    assert ((values[-5:].mean(dim=0) * rate / 2 - 1).abs() < 0.1).all() and (values[0] < 1.1 * 2 / rate).all()
assert slow[0.1][-1].min() > 6.5 and slow[0.1][-1].max() < 9 and (slow_losses[1:] <= slow_losses[:-1]).all()
assert (edge_losses[1:, 3:6] > edge_losses[:-1, 3:6]).sum(dim=0).min() > 100
assert few > 5 * more and 1.2 < 64 * more / (8 * few) < 1.8 and 2 < more / most < 4 and 50 < knee / least < 250
assert 2 < 512 * most / (64 * more) < 4
assert 1e-4 < (floors[0] / floors[1] - 2) < 1.5 and all(1.5 < a / b < 3.5 for a, b in pairwise(floors.tolist()))
assert round(((1 + math.sqrt(0.9)) / (1 - math.sqrt(0.9))) ** 2, -2) == 1400
assert [round(4 / math.sqrt(16 * k), 2) for k in (1, 2, 3)] == [1.0, 0.71, 0.58] and round(1e-5**0.5, 3) == 0.003
assert F.gelu(torch.tensor(-0.7518)) < min(F.gelu(torch.tensor(z)) for z in (-0.7618, -0.7418))
mean_of = {key: sum(ends) / 2 for key, ends in warmed.items()}
for placement, rate, better, by in (("post", 0.03, 60, 0.6), ("pre", 0.03, 60, 0.1), ("post", 0.01, 0, 0.1)):
    assert mean_of[placement, rate, better] < mean_of[placement, rate, 60 - better] - by
assert mean_of["post", 0.03, 0] > letters - 0.35 and mean_of["post", 0.03, 0] > mean_of["pre", 0.03, 0] + 0.1
for by in decayed.values():
    half, before, ends = ({name: run.average(*steps) for name, run in by.items()} for steps in ((900, 1100), (1500, 1600), (1900, 2000)))
    assert half["decay 0"] < half["decay 1.5"] and ends["decay 0"] > ends["decay 1.5"]
    assert max(half["decay 0"] - half["drop, decay 0"], before["decay 0"] - before["drop, decay 0"]) < 0
    assert ends["decay 0"] > ends["drop, decay 0"] + 0.005 and before["drop, decay 1.5"] > before["drop, decay 0"] + 0.05
    assert ends["drop, decay 1.5"] > ends["drop, decay 0"] + 0.005
    plain, with_decay = by["decay 0"], by["decay 1.5"]
    assert plain.held_out > with_decay.held_out and plain.norm > 3 * with_decay.norm
    assert all(run.held_out < run.average(1900, 2000) for run in (plain, with_decay))
assert round(sum(map(half_wave, range(2000))) / sum(map(drop, range(2000))), 2) == 0.56
