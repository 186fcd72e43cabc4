# %% [markdown]
# # 13 · Training
#
# **Core · 90 min · 5 exercises · 20 points** · **Further · 127 min · 8 exercises · 18 points**
#
# How do you know that a training loop is right? And then: *how low can you get?*
#
# Almost no mistake in a trainer stops the program: the loss still falls, only not as far.
#
# At the end your own trainer has survived a power cut, you have found five trainers that only look right, and your recipe has climbed on from our best one.
#
# **You need** optimizers (notebook 04), norms and blocks (10). No GPU.
#
# Stuck? `hint("name_of_the_exercise")`.

# %%
import copy
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.chapters.training import figures
from lmcourse.chapters.training.climb import Meter, held_out_loss
from lmcourse.chapters.training.figures.stored_runs import LADDER, RUNGS
from lmcourse.chapters.training.small_run import SmallRun
from lmcourse.chapters.training.strangers import Fit, curves, forgetful_runs, stranger, told
from lmcourse.chapters.training.widths import story_bytes
from lmcourse.chapters.training.writing import story_model, watched, write_help
from lmcourse.data.loader import Loader
from lmcourse.notebook import check, hint, predict, start, your
from lmcourse.training.ablation import Recipe
from lmcourse.training.optimizers.muon import Muon, MuonAdamW
from lmcourse.training.param_groups import matrix_groups
from lmcourse.training.run_settings import Settings
from lmcourse.training.small_model import FailingLoader, PowerCutError, ragged_loader, small_model
from lmcourse.widgets import LivePlot

start("13-training")
torch.set_num_threads(1)  # models this small are fastest on one

# %% [markdown]
# ## 1 · More than fits
#
# Large models are trained on batches of millions of tokens; a device can hold a few thousand. So you add up the gradients of **micro-batches** before the weights change. Take two, one with 64 targets and one with 4. Many trainers averaged the two mean losses: each gets the weight ½, so a target of the short one counts 16 times as much.

# %%
predict("two_texts_one_short")

# %% [markdown]
# ### Exercise 1 · Accumulate  (4 points · 12 min · ●●●)
#
# `batches` has pairs of inputs and targets, each of shape $(b, s)$, of different sizes; `model(inputs)` gives logits $(b, s, v)$. A target of −100 does not count. Return the mean of $-\log p$ over *all* targets that count, in all batches together, as a plain number; and its gradient: one tensor for each of `model.parameters()`, in that order and in the dtype of the parameter. Compute in the dtype of the logits, which may be fp64.
#
# - One batch at a time is in the model, and **its graph is gone before the next batch is computed**. That is the memory you save, and the check counts graphs.
# - Gradients that were in `.grad` before do not count. You may leave anything there.
# - A parameter that nothing uses has a gradient of zeros. If no target counts at all, or there is no batch, the loss and all gradients are zero.


# %% exercise="accumulate"
def accumulate(
    model: nn.Module, batches: list[tuple[Int[Tensor, "b s"], Int[Tensor, "b s"]]]
) -> tuple[float, list[Float[Tensor, "..."]]]:
    """Return the mean loss over all targets of all batches, and its gradient, one tensor a parameter."""
    ### BEGIN SOLUTION
    parameters = list(model.parameters())
    mean, total = 0.0, [torch.zeros_like(p) for p in parameters]
    count = max(1, sum((targets != -100).sum() for _, targets in batches))
    for inputs, targets in batches:
        logits = model(inputs).flatten(0, 1)
        loss = F.cross_entropy(logits, targets.flatten(), reduction="sum") / count
        mean += loss.item()
        for i, gradient in enumerate(torch.autograd.grad(loss, parameters, allow_unused=True)):
            if gradient is not None:
                total[i] += gradient
    return mean, total
    ### END SOLUTION


# %% check="accumulate"
# %% [markdown]
# $$\frac{\sum_b \sum_{t \in b} \ell_t}{\sum_b n_b} \;\ne\; \frac1B \sum_b \frac{1}{n_b} \sum_{t \in b} \ell_t \quad\text{unless all } n_b \text{ are equal.}$$
#
# How wrong is the right-hand side, on new models with three seeds?

# %%
tokens = story_bytes()
long, short = ((part[None, :-1], part[None, 1:]) for part in (tokens[:65], tokens[1000:1005]))
with your("accumulate"):
    for seed in range(3):
        right, *each = (
            torch.cat([part.flatten() for part in accumulate(story_model(seed), texts)[1]])
            for texts in ([long, short], [long], [short])
        )
        error = (sum(each) / 2 - right).norm() / right.norm()
        print(f"seed {seed}: the error of the mean of means is {error:.0%} of the gradient")

# %% [markdown]
# **In real models.** Until October 2024 several popular trainers averaged the means. If you accumulated gradients over texts of different lengths, you minimised a different loss from the one you thought (huggingface/transformers, pull request 34191). The losses looked fine. This test would have caught it: *one large batch, or many small ones, same gradient.*
#
# ## 2 · Stop, and resume
#
# Runs end early: the power fails, or the job's time is over. A run that resumes should match an uninterrupted one to the last bit.

# %%
predict("forgotten_moments")

# %% [markdown]
# ### Exercise 2 · A snapshot  (4 points · 12 min · ●●●)
#
# `SmallRun` (`lmcourse/chapters/training/small_run.py`: read the class first) is the smallest run with all the parts of a real one. `run.train(n)` makes `n` updates and returns their losses. Write a class that keeps *where a run is*: `Snapshot(run)`, after which the run may continue, and `kept.restore(run)`, which brings this run or a new one to that point, any number of times. Losses after that must equal those of the kept run **to the last bit**. The run's objects (`model`, `optimizer`, `loader`) stay; only their contents change. Answers may use the package here.


# %% exercise="Snapshot"
class Snapshot:
    """Everything that a run needs to continue as if it had never stopped."""

    def __init__(self, run: SmallRun) -> None:
        """Keep where the run is; the run may continue."""
        ### BEGIN SOLUTION
        self.parts = copy.deepcopy((run.model.state_dict(), run.optimizer.state_dict(), run.loader.state_dict()))
        self.step, self.chance = run.step, torch.get_rng_state()
        ### END SOLUTION

    def restore(self, run: SmallRun) -> None:
        """Bring a run, this one or a new one, to where the kept one was."""
        ### BEGIN SOLUTION
        model, optimizer, loader = copy.deepcopy(self.parts)
        run.model.load_state_dict(model)
        run.optimizer.load_state_dict(optimizer)
        run.loader.load_state_dict(loader)
        run.step = self.step
        torch.set_rng_state(self.chance)
        ### END SOLUTION


# %% check="Snapshot"
# %% [markdown]
# Why so strict? Forget one part at a time, and compare 20 losses with the right ones:

# %%
forgetful = forgetful_runs()
figures.resumed_runs(forgetful)

# %% [markdown]
# Without the moments, or without the step, the first loss is right *to the last bit*. Then the losses drift, by what looks like noise in a plot. Only bits show it.
#
# Setting all seeds is not enough: workers that load data have their own generators, and some GPU kernels add up in the order in which their threads arrive. You get equal bits only on the same machine, with the same number of threads and deterministic kernels.
#
# ## 3 · Your run

# %% [markdown]
# ### Exercise 3 · Your run  (4 points · 14 min · ●●●)
#
# Write `fit`. It trains `model` on batches from `loader` until `settings.steps` updates are done, and returns the loss of each update that it did: a list of Python floats. Use your `accumulate` and `Snapshot`. All fields: `Settings(steps, rate, warmup, decay, micro_batches, weight_decay, limit, every, snapshots, report, optimizer, factor)`.
#
# - **Optimizer.** `settings.optimizer(model)` makes it, with its groups (as a rule AdamW, in which only matrices decay).
# - **Rate.** Before each update, every group has the rate that it was made with, times `settings.factor(step)`; steps count from 0.
# - **Gradient.** An update takes `settings.micro_batches` batches from the loader (`next(loader)` has `.inputs` and `.targets`). Its loss is the mean over all their targets. The norm of its gradient is at most `settings.limit`.
# - **Report.** After each update call `settings.report(step, loss)`, while `.grad` still holds its gradient; the first update is step 1 here.
# - **Snapshots.** Whenever the number of finished updates is divisible by `settings.every`, append a `Snapshot` to `settings.snapshots`, after the report. It wants an object with `model`, `optimizer`, `loader` and `step`, the number of finished updates: `types.SimpleNamespace` makes one from named arguments.
# - **Resume.** `start` is a snapshot of a run with the same settings, or None. With a snapshot, the run continues from it, to the last bit. The given model and loader then get its contents.


# %% exercise="fit"
def fit(model: nn.Module, loader: Loader, settings: Settings, start: Snapshot | None = None) -> list[float]:
    """Train a model until `settings.steps` updates are done; return the losses of the updates made here."""
    ### BEGIN SOLUTION
    run = SimpleNamespace(model=model, optimizer=settings.optimizer(model), loader=loader, step=0)
    rates = [group["lr"] for group in run.optimizer.param_groups]
    if start is not None:
        start.restore(run)
    losses = []
    while run.step < settings.steps:
        for i, group in enumerate(run.optimizer.param_groups):
            group["lr"] = rates[i] * settings.factor(run.step)
        batches = [next(loader) for _ in range(settings.micro_batches)]
        loss, gradients = accumulate(model, [(batch.inputs, batch.targets) for batch in batches])
        for i, p in enumerate(model.parameters()):
            p.grad = gradients[i]
        nn.utils.clip_grad_norm_(model.parameters(), settings.limit)
        run.optimizer.step()
        run.step += 1
        losses.append(float(loss))
        settings.report(run.step, losses[-1])
        if run.step % settings.every == 0:
            settings.snapshots.append(Snapshot(run))
    return losses
    ### END SOLUTION


# %% check="fit"

# %% [markdown]
# Does it survive a power cut? A model of two blocks and 32 features reads the stories of notebook 05, byte by byte. In the middle of an update the power fails.

# %%
short_run = Settings(24, rate=0.015, warmup=6, decay=6, micro_batches=2, every=5)
with your("Snapshot", "fit"):
    calm = fit(story_model(), Loader(tokens, 4, 64, seed=0, prefetch=0), replace(short_run, snapshots=[]))
    dying = FailingLoader(tokens, 4, 64, seed=0, prefetch=0)
    dying.batches_left = 35  # two for an update: the power fails in the middle of the 18th
    try:
        fit(story_model(), dying, short_run)
    except PowerCutError:
        print(f"the power failed; there are {len(short_run.snapshots)} snapshots")
    resumed = fit(story_model(seed=1), Loader(tokens, 4, 64, seed=0, prefetch=0), short_run, short_run.snapshots[-1])
    equal = sum(a == b for a, b in zip(resumed, calm[-len(resumed) :], strict=True))
    print(f"{len(resumed)} losses after the last snapshot, {equal} of them equal to the last bit")

# %% [markdown]
# (The snapshots of a real process must be in a file by then.)
#
# Now the run itself: 300 updates of 16 windows of 64 bytes. The dotted line is the entropy of the stories, 0.222 nats a byte; no model can be better.

# %%
predict("sixty_updates")

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
long_run, writer = Settings(300, rate=0.02, warmup=15, decay=150), story_model()
with your("fit"), LivePlot(entropy=0.222, unit="byte", clipped=True) as plot:
    written, report = watched(plot, writer, long_run, tokens=16 * 64)
    curve = fit(writer, Loader(tokens, 16, 64, seed=0, prefetch=0), replace(long_run, report=report))
for step, line in written.items():
    print(f"step {step:3}, {fmean(curve[step - 10 : step]):.2f} nats a byte: {line}")

# %% [markdown]
# That is your trainer, and a model that writes.
#
# ## 4 · Trainers of strangers
#
# Ten strangers wrote a `fit`, each with an optimizer of their own (AdamW, SGD with momentum, Adagrad, RMSprop or Adamax, at a multiple of `settings.rate`). Five of the ten are wrong. Which?

# %% tags=["nbval-ignore-output", "because losses differ in the last digits between processors"]
figures.strangers(curves())

# %% [markdown]
# Nobody can tell. Your own `fit` is no help: another optimizer has other losses. But every trainer must keep these promises:
#
# 1. The loss is the mean over all targets of an update.
# 2. It resumes to the last bit.
# 3. Only matrices decay (by `settings.weight_decay`).
# 4. The norm of the gradient is at most `settings.limit`.
# 5. In a warm-up of W steps the first update counts, at 1/W of the rate.

# %% [markdown]
# ### Exercise 4 · A probe  (4 points · 14 min · ●●●)
#
# `suspicious(fit)` returns True if a trainer breaks a promise. Design the measurements: train small models with `fit`, and look. You have
#
# - `small_model(seed, dropout)`: 224 parameters in fp64. Part 0 is an embedding, 1 a norm, 3 a linear layer with a bias;
# - `ragged_loader(batch)`: its windows have different numbers of targets, and `k` batches of one window have the same windows as one batch of `k`;
# - `Settings` as above: `report` is called while `.grad` still holds the gradient of the update. The strangers use `settings.factor`, and an optimizer of their own in place of `settings.optimizer`.
#
# Right trainers differ by rounding, up to $10^{-14}$; except where bits must be equal.


# %% exercise="suspicious"
def suspicious(fit: Fit) -> bool:
    """Return True if a trainer breaks one of its promises."""

    ### BEGIN SOLUTION
    def ran(model, loader, start=None, **changes):
        norms = []

        def report(step, loss):
            norms.append(torch.cat([p.grad.flatten() for p in model.parameters()]).norm())

        given = {"steps": 8, "rate": 0.02, "warmup": 2, "decay": 2, "every": 2, **changes}
        settings = Settings(**given, report=report)
        losses = fit(model, loader, settings, start)
        return losses, [p.detach() for p in model.parameters()], max(norms), settings.snapshots

    def apart(one, other):
        return max((a - b).abs().max() for a, b in zip(one, other, strict=True))

    _, many, norm, _ = ran(small_model(), ragged_loader(1), micro_batches=4, limit=0.01)
    _, one, *_ = ran(small_model(), ragged_loader(4), limit=0.01)
    losses, whole, _, kept = ran(small_model(dropout=0.25), ragged_loader())
    rest, resumed, *_ = ran(small_model(1, dropout=0.25), ragged_loader(), kept[0])
    update = {"steps": 1, "decay": 0, "weight_decay": 0.0}
    before = list(small_model().parameters())
    _, after, *_ = ran(small_model(), ragged_loader(), **{**update, "warmup": 0})
    _, slow, *_ = ran(small_model(), ragged_loader(), **{**update, "warmup": 4})
    _, decayed, *_ = ran(small_model(), ragged_loader(), **{**update, "warmup": 0, "weight_decay": 10.0})
    return bool(
        apart(many, one) > 1e-9
        or rest != losses[2:]
        or apart(resumed, whole) > 0
        or apart(decayed[1:3], after[1:3]) > 1e-9
        or norm > 0.0101
        or abs(apart(slow, before) / apart(after, before) - 0.25) > 1e-3
    )
    ### END SOLUTION


# %%
with your("suspicious", "fit"):
    for number in range(1, 11):
        print(f"trainer {number:2}: {told(number, suspicious(stranger(number)))}")
    print(f"`fit`: {'your probe finds fault with your own trainer' if suspicious(fit) else 'nothing found'}")

# %% check="suspicious"

# %% [markdown]
# Of all fifteen faults, a plot of the loss would have shown one: gradients that are never cleared. With SGD that trainer ends at 1.57, and a right one at 1.23.
#
# ## 5 · The ladder, climbed by you
#
# Now use it. `Recipe` is a short run of a small model: two blocks, $d = 64$, 200 steps of 16 × 64 tokens of Python's help texts, in a vocabulary of 512. Four changes: a head of its own instead of the transposed embedding, a longer warm-up, QK-norm (notebook 16), and twice the rate.

# %%
predict("largest_gain")

# %%
for before, after in pairwise(RUNGS):
    gain, spread = fmean(LADDER[before]) - fmean(LADDER[after]), max(LADDER[after]) - min(LADDER[after])
    print(f"{after:22} ends at {fmean(LADDER[after]):.2f}, gains {gain:.2f}; its three seeds spread by {spread:.2f}")

# %% [markdown]
# Each rung keeps the changes before it. The first is worth more than all others together: a tied model uses the same 64 numbers a token for reading *and* writing. The last two are hardly larger than the spread of their seeds; with one seed each, you would believe any order.

# %% [markdown]
# ### Exercise 5 · Climb on  (4 points · 10 min · ●●●)
#
# `recipe(meter, seed)` returns a model, a loader and `Settings`; your `fit` does the rest.
#
# | loss on held-out text, nats a token | |
# | --- | --- |
# | naive: tied, AdamW at 0.001, constant | 3.99 |
# | the ladder's last rung | 3.34 |
# | **finish line** | 3.10 |
#
# - The loader is `meter(batch, length, seed)`. The meter hands out 204,800 tokens at most: 200 updates of 16 × 64, or more of less. Nothing else may be read.
# - The model turns tokens $(b, s)$ into logits $(b, s, 512)$, has at most 172,416 parameters (those of the last rung) and keeps nothing else. It starts knowing nothing.
#
# The rungs above ran in the package's trainer, with a cosine and other AdamW settings; the table's runs used `fit`, so the same recipe ends elsewhere. Naive has a fifth of the ladder's first rate.
#
# Everything else is free: batch, optimizer, a rate for each group, schedule, first weights, averages of weights. `MuonAdamW(Muon(matrix_groups(model), lr=…), adamw)` is one optimizer made of two (notebook 04): `adamw` is torch's, for the rest. Four seeds of the last rung end between 3.25 and 3.46, of our best recipe within 0.07. The check takes seed 0, grading seed 1: keep a margin. A run takes 5 to 20 seconds.


# %% exercise="recipe"
def recipe(meter: Meter, seed: int) -> tuple[nn.Module, Loader, Settings]:
    """Return a new model, the loader that feeds it, and the settings of its run."""
    ### BEGIN SOLUTION
    model = Recipe(tied=False, qk_norm=True).model(512, seed)

    def optimizer(model):
        taken = {p for group in matrix_groups(model) for p in group["params"]}
        rest = {name: p for name, p in model.named_parameters() if p not in taken}
        embedding = [p for name, p in rest.items() if "embedding" in name]
        others = [p for name, p in rest.items() if "embedding" not in name]
        groups = [{"params": others}, {"params": embedding, "lr": 0.04}]
        adamw = torch.optim.AdamW(groups, lr=0.006, betas=(0.9, 0.95), weight_decay=0.0)
        return MuonAdamW(Muon(matrix_groups(model), lr=0.02, weight_decay=0.0), adamw)

    return model, meter(8, 64, seed), Settings(400, rate=0.02, warmup=40, decay=360, optimizer=optimizer)
    ### END SOLUTION


# %% tags=["nbval-ignore-output", "because losses differ between processors"]
with your("recipe", "fit"):
    torch.manual_seed(0)
    climber, loader, settings = recipe(Meter(), seed=0)
    fit(climber, loader, settings)
print(f"`recipe`, seed 0: {held_out_loss(climber):.2f} nats a token. It writes: {write_help(climber)!r}")
figures.ladder(yours={"`recipe`": [held_out_loss(climber)]})

# %% check="recipe"

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | accumulation? | divide the *sum* over all targets by their number |
# | a checkpoint has | weights, moments, place in the text, step, generators |
# | is a trainer right? | measure its five promises (section 4) |
# | an ablation? | one change, several seeds, and the place on the ladder |
# | a budget of tokens? | smaller batches, and a rate for each group |
#
# ## Check yourself
#
# 1. A resumed run shows the right loss at once. What have you shown?
# 2. A paper reports that QK-norm gains 0.05 nats, with one seed. What do you ask for?
#
# <details><summary>Answers</summary>
#
# 1. That the weights and the place in the text are right, and perhaps dropout's generator. Nothing about the optimizer or the schedule.
# 2. More seeds: our runs with QK-norm differ by 0.05 from each other.
#
# </details>

# %% [markdown]
# This folded cell checks the numbers in the text above.

# %% tags=["hide-input"]
from lmcourse.chapters.training import strangers

mean = {name: fmean(ends) for name, ends in LADDER.items()}
gains = [mean[a] - mean[b] for a, b in pairwise(RUNGS)]
assert round(gains[0], 2) == 0.85 and gains[0] > sum(gains[1:]) and max(gains[2:]) < 0.07
assert not any(forgetful["nothing forgotten"]) and all(map(any, list(forgetful.values())[1:]))
assert [name for name, errors in forgetful.items() if errors[0]] == ["without the place in the text"]
assert round(max(LADDER["QK-norm"]) - min(LADDER["QK-norm"]), 2) == 0.05
assert equal == len(resumed) == 9 and len(short_run.snapshots) == 4
assert 1.1 < fmean(curve[50:60]) < 1.9 and 0.35 < fmean(curve[-10:]) < 0.65
assert sum(p.numel() for p in Recipe(tied=False, qk_norm=True).model(512, 0).parameters()) == 172_416
assert sum(p.numel() for p in small_model().parameters()) == 224 and 200 * 16 * 64 == 204_800

# %% [markdown]
# ## Further
#
# Each section needs the core and nothing else from Further.

# %%
import math
import sys

from jaxtyping import Bool

from lmcourse.chapters.training.figures.schedules import KINDS
from lmcourse.chapters.training.figures.stored import CHOICES
from lmcourse.chapters.training.figures.stored_runs import BATCHES, TWO_TEXTS
from lmcourse.chapters.training.figures.stored_sweeps import SCALED, STANDARD
from lmcourse.chapters.training.mixed import dtypes_of_a_step
from lmcourse.chapters.training.widths import RATES, changes_by_part, end_of_run
from lmcourse.course.root import find_root
from lmcourse.notebook import explore
from lmcourse.training.ablation import documentation, run_recipe
from lmcourse.widgets import Log

# %% [markdown]
# ### A · First weights  (28 min)
#
# A linear layer adds up products. With $n$ inputs and weights that are all drawn from a standard normal distribution, each output is a sum of $n$ products of two
# independent numbers of mean 0 and variance 1. Such a product has variance 1 again, the terms are independent of each other, so variances add up: $n$. The *spread* is its root. By hand: $n = 16{,}384$ inputs give a spread of $\sqrt{16{,}384} = 128$.
#
# (Means always add up. For variances to add up, the terms must be uncorrelated: if $Y = X$, the variance of $X + Y$ is four times that of $X$, not twice.)

# %%
predict("sixteen_layers")

# %% [markdown]
# Measure it, with and without a ReLU between layers, for three ways to draw the weights:

# %%
torch.manual_seed(0)


def spreads(std: float, relu: bool) -> list[float]:
    """Return the root mean square of the features before and after each of 16 layers of width 512."""
    x = torch.randn(64, 512, dtype=torch.float64)
    found = [1.0]
    for _ in range(16):
        x = (x.relu() if relu else x) @ (std * torch.randn(512, 512, dtype=torch.float64))
        found.append(x.square().mean().sqrt().item())
    return found


by_rule = {
    "standard normal": spreads(1.0, relu=False),
    "1/√512": spreads(512**-0.5, relu=False),
    "1/√512, ReLU": spreads(512**-0.5, relu=True),
    "√(2/512), ReLU": spreads((2 / 512) ** 0.5, relu=True),
}
print(f"standard normal: {by_rule['standard normal'][-1]:.0e} after 16 layers")
figures.spread_by_layer(by_rule)

# %% [markdown]
# Each rule makes the spread neither grow nor shrink, for its own kind of layer. All three draw with mean 0. Their variances:
#
# | rule | variance | made for |
# | --- | --- | --- |
# | LeCun (1998) | one over the inputs | layers without a nonlinearity, or with a tanh near 0 |
# | Xavier (Glorot & Bengio, 2010) | one over the mean of inputs and outputs | features on the way forward *and* gradients on the way back |
# | He (2015) | twice LeCun's | layers after a ReLU, which halves the mean square |
#
# A draw may be far from 0 by bad luck. You can forbid it: a **truncated** normal distribution draws every number again that is further out than some number of standard deviations. Cutting at ±2, as BERT's code does, removes only 4.55% of the numbers. Move the limit, and watch the spread:

# %%
explore(figures.truncated_normal, limit=(0.5, 4.0))

# %% [markdown]
# The numbers that go are the farthest out, so the spread falls by more than one might expect:

# %%
for limit in (2.0, 3.0):
    outside = 2 * torch.special.ndtr(torch.tensor(-limit, dtype=torch.float64)).item()
    left = 1 - 2 * limit * math.exp(-(limit**2) / 2) / math.sqrt(2 * math.pi) / (1 - outside)
    print(f"cut at ±{limit:g}: {left**0.5:.3f} of the standard deviation, {left:.3f} of the variance")

# %% [markdown]
# > **Spot the slip.** A colleague cuts at three standard deviations: `nn.init.trunc_normal_(w, std=1 / np.sqrt(d_in), a=-3, b=3)`. Look at $d = 1024$:

# %%
torch.manual_seed(0)
spread, matrix = 1024**-0.5, torch.empty(1024, 1024)
for name, low in (("a=-3", -3.0), ("a=-3 * std", -3 * spread)):
    nn.init.trunc_normal_(matrix, std=spread, a=low, b=-low)
    print(f"{name:10} the largest weight is {matrix.abs().max() / spread:.1f} standard deviations from 0")

# %% [markdown]
# ### Exercise 6 · First weights  (2 points · 6 min · ●)
#
# For a rule, "lecun", "xavier" or "he", return three numbers for `trunc_normal_`: the standard deviation before the cut, and `a` and `b`, which cut everything beyond `cut` standard deviations. (Leave the small loss of variance by the cut as it is.) Any other rule is a
# `ValueError`, "Xavier" with a capital letter too. Without `torch.nn.init`, which has two of the three ready made.


# %% exercise="initial_bounds"
def initial_bounds(rule: str, fan_in: int, fan_out: int, cut: float) -> tuple[float, float, float]:
    """Return the standard deviation of the weights, and the two numbers between which they lie."""
    ### BEGIN SOLUTION
    inputs = {"lecun": fan_in, "xavier": (fan_in + fan_out) / 2, "he": fan_in / 2}
    if rule not in inputs:
        raise ValueError(f"there is no rule {rule!r}: take lecun, xavier or he")
    std = 1 / math.sqrt(inputs[rule])
    return std, -cut * std, cut * std
    ### END SOLUTION


# %% check="initial_bounds"
# %% [markdown]
# From 512 to 2048 features, LeCun's rule gives 0.0442 and Xavier's 0.0280. They agree where a layer is square, which is why one is often called by the other's name.
#
# **In real models.** GPT-2 draws nearly everything with 0.02 and divides what writes into the residual stream by $\sqrt{2L}$, because the stream grows with every branch (notebook 10); so does `lmcourse.models.initialize`. If a norm follows, the size of the weights matters little for the forward pass. It still decides how far a step of a given size turns them, and with it the learning rate.
#
# **What may change?** A module has three kinds of tensors, and PyTorch tells them apart by what you wrap them in:


# %%
class Scaled(nn.Module):
    """A layer with one tensor of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("mean", torch.zeros(3))
        self.factor = torch.ones(3)


module = Scaled()
kinds = {"trained": dict(module.named_parameters()), "saved": module.state_dict()}
kinds["moved by .to"] = dict(module.half().named_buffers()) | dict(module.named_parameters())
for verb, names in kinds.items():
    print(f"{verb:13} {', '.join(sorted(names))}")

# %% [markdown]
# A `Parameter` is trained, saved and moved; a buffer is saved and moved; `factor` is none of these. It stays on the CPU when the model moves to a GPU, and after a restart it is lost. If you wanted it trained, no error will tell you that it is not.
#
# An optimizer gets its parameters in **groups**, each with settings of its own. The usual two: parameters that *decay* and parameters that do not (AdamW, notebook 04). Matrices decay. Biases and the scales of norms do not: pull a scale to 0, and the next matrix grows to undo it.

# %% [markdown]
# ### Exercise 7 · What decays  (2 points · 6 min · ●)
#
# `shapes` has every parameter's shape by its name; `norms` are the names of those that belong to norms. Only matrices decay. Here a matrix is any parameter with two axes or more, embeddings included. A parameter of a norm never decays; some norms have a scale for each head, and so two axes. Return two lists of names: first those that decay, then all others, each sorted.


# %% exercise="decay_groups"
def decay_groups(shapes: dict[str, list[int]], norms: list[str]) -> tuple[list[str], list[str]]:
    """Return the names that decay, and all others, both sorted."""
    ### BEGIN SOLUTION
    decay = [name for name in sorted(shapes) if len(shapes[name]) >= 2 and name not in norms]
    return decay, [name for name in sorted(shapes) if name not in decay]
    ### END SOLUTION


# %% check="decay_groups"
# %% [markdown]
# Embeddings are a matter of taste: most code decays them, OLMo 2 (2025) leaves them out.
#
# > **Spot the slip.** `AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others}])`: nothing is said about the others, and AdamW's default decay is 0.01, not 0.
#
# A run with your weights and your groups, through `settings.optimizer`:


# %% tags=["nbval-ignore-output", "because losses differ between processors"]
def with_groups(model: nn.Module) -> torch.optim.Optimizer:
    """Return AdamW with your two groups."""
    named = dict(model.named_parameters())
    two = decay_groups({name: list(p.shape) for name, p in named.items()}, [name for name in named if "norm" in name])
    groups = [
        {"params": [named[name] for name in names], "weight_decay": d} for names, d in zip(two, (0.1, 0.0), strict=True)
    ]
    return torch.optim.AdamW(groups, lr=0.02)


drawn = story_model()
with your("initial_bounds", "decay_groups", "fit"):
    for p in drawn.parameters():
        if p.dim() == 2:
            std, low, high = initial_bounds("lecun", p.shape[1], p.shape[0], 3.0)
            nn.init.trunc_normal_(p, std=std, a=low, b=high)
    drawn_run = Settings(40, rate=0.02, warmup=10, optimizer=with_groups)
    print(f"after 40 updates: {fit(drawn, Loader(tokens, 16, 64, seed=0, prefetch=0), drawn_run)[-1]:.2f} nats a byte")

# %% [markdown]
# ### B · The rate and the batch  (23 min)
#
# Most papers warm up for a hundredth of a run or less. Let us be extreme: the first recipe of the ladder, 200 steps, with a warm-up of 100.

# %%
predict("warm_up_of_half")

# %%
for steps, name in ((10, "where we start"), (100, "warm-up of 100, still tied")):
    print(f"warm-up of {steps:3} steps: validation loss {', '.join(f'{loss:.2f}' for loss in LADDER[name])}")

# %% [markdown]
# Half of the steps run below the full rate, and the loss is 0.6 to 0.9 nats lower, depending on the seed. Notebook 04 showed why: Adam's first steps are the largest relative to the evidence it has, and a model that they have thrown far away needs hundreds of steps to come back. In a long run the same hundred steps are one percent.
#
# After the warm-up the rate may fall like half a cosine, which you wrote in 04. But the cosine must know at step 0 where the run will end. **WSD**, warm-up, stable, decay (Zhai et al., 2022; Hu et al., 2024), need not know it until the decay begins:

# %%
explore(figures.schedule, kind=KINDS, warmup=(0.0, 0.5, 0.05), decay=(0.0, 0.5, 0.05), floor=(0.0, 1.0, 0.1))

# %% [markdown]
# ### Exercise 8 · Stable, then down  (2 points · 7 min · ●●)
#
# Return what the peak rate is multiplied by at `step`, counted from 0. In a warm-up of W steps it is 1/W, 2/W, …, 1, so the first update is not lost. Then it is 1. In the last `decay` steps it falls in a straight line: 1 at the first of them, and it would reach `floor` one step after the last. After the end of the run it stays at `floor`. Either phase may have no steps. If both together are longer than the run, raise `ValueError`, at any step.


# %% exercise="wsd_factor"
def wsd_factor(step: int, steps: int, warmup: int, decay: int, floor: float = 0.0) -> float:
    """Return the factor of the peak rate at a step, counted from 0."""
    ### BEGIN SOLUTION
    if warmup + decay > steps:
        raise ValueError(f"a warm-up of {warmup} and a decay of {decay} do not fit into {steps} steps")
    if step < warmup:
        return (step + 1) / warmup
    if step < steps - decay:
        return 1.0
    return floor + (1 - floor) * (steps - step) / decay if step < steps else floor
    ### END SOLUTION


# %% check="wsd_factor"
# %% [markdown]
# By hand, for 100 steps with a warm-up of 10 and a decay of 20: 0.1 at step 0, 1 at steps 9 to 80, 0.5 at step 90, 0.05 at step 99. It runs as `settings.factor`:

# %%
with your("wsd_factor", "fit"):
    by_wsd = Settings(20, rate=0.02, factor=lambda step: wsd_factor(step, 20, 5, 5, floor=0.1))
    last = fit(story_model(), Loader(tokens, 16, 64, seed=0, prefetch=0), by_wsd)[-1]
print(f"after 20 updates: {last:.1f} nats a byte")

# %% [markdown]
# What is it good for? Suppose you want to know how the loss depends on the length of a run: 100, 200, 400 steps and so on, each with a rate that falls to 0 at its end.

# %% [markdown]
# ### Exercise 9 · What a sweep costs  (2 points · 6 min · ●●)
#
# You want a result for each of `lengths` (in steps); the run of length `lengths[i]` ends with a decay of `decays[i]` steps. Return how many steps you train in all: first if each length is a cosine, then with WSD. With WSD, the steps at the constant rate are one trunk that all runs share, trained once. Each run then pays for all steps of its own decay, even if two runs are equal. The warm-up is the same for all and shorter than anything else. The lists need not be sorted, and may be empty.


# %% exercise="sweep_steps"
def sweep_steps(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    """Return the steps to pay for with cosines, and with one trunk and its branches."""
    ### BEGIN SOLUTION
    trunk = max((length - decays[i] for i, length in enumerate(lengths)), default=0)
    return sum(lengths), trunk + sum(decays)
    ### END SOLUTION


# %% check="sweep_steps"
# %% [markdown]
# Hägele et al. (2024) plan scaling laws like this, for about half of the compute. In our short runs (`figures.ladder("beside it")`), constant rate, cosine and WSD end within 0.1 of each other: with so few steps the schedule matters less than the warm-up.
#
# **In real models.** Llama 3 405B (2024): peak rate 8e-5, 8,000 steps of warm-up, cosine over 1.2 million steps.
#
# **How large a batch?**

# %%
predict("four_times_the_batch")

# %%
print("windows  updates to 1 nat, three seeds   windows read   50 · (1 + 14 / windows)")
for count, updates in BATCHES.items():
    print(f"{count:7} {updates!s:>29} {count * fmean(updates):14,.0f} {50 * (1 + 14 / count):21.0f}")

# %% [markdown]
# From 1 window to 4, four times the batch takes about a third of the updates. From 64 to 256 it takes four fifths of them. In between, here at about 14 windows, you need twice the fewest updates: below that more windows save updates, above it they are mostly wasted. The **noise scale** of notebook 04 (exercise 5 there) estimates this size from gradients alone, of batches of two sizes. Here it is for the new model and for the one that has learned to write:

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
pieces = tokens[: 65 * 96].view(96, 65)


def noise_in_windows(model: nn.Module) -> float:
    """Return the number of windows whose mean gradient is as much noise as gradient."""
    groups = [*pieces.split(1), pieces]  # each window alone, then all in one batch
    batches = ([(group[:, :-1], group[:, 1:])] for group in groups)
    *single, together = (sum(part.square().sum().item() for part in accumulate(model, batch)[1]) for batch in batches)
    one, n = fmean(single), len(pieces)
    return (one - together) * n / (n * together - one)


with your("accumulate"):
    at_first, in_the_end = noise_in_windows(story_model()), noise_in_windows(writer)
    print(f"noise scale of a new model: {at_first:.1f} windows, of the writer: {in_the_end:.0f}")

# %% [markdown]
# It grows as the loss falls: what is left to learn differs from window to window. That is one reason why large runs begin with smaller batches and end with larger ones: Llama 3 405B went from 4 to 16 million tokens (Grattafiori et al., 2024).
#
# ### C · One step, in sixteen bits  (29 min)
#
# **Mixed precision** (Micikevicius et al., 2018) multiplies matrices in 16 bits, where GPUs are several times as fast, and keeps in 32 what needs more digits. In PyTorch this is a context: `torch.autocast(device_type, dtype, enabled=True)`. Inside it, PyTorch chooses a dtype for each operation from a list.

# %%
predict("sixteen_bit_parts")

# %%
for what, dtype in dtypes_of_a_step(torch.bfloat16).items():
    print(f"{what:28} {dtype}")

# %% [markdown]
# Matrix products convert their inputs to 16 bits. The weights themselves stay in fp32; so does the stream, a sum that starts with an embedding in fp32. The list differs between devices: on a CPU, `softmax` and `layer_norm` of a 16-bit tensor stay in 16 bits, and only the cross-entropy is converted; on CUDA, autocast runs all three in fp32.
#
# fp16 cannot hold small gradients. So a *loss scaler* multiplies the loss by a large number before the backward pass, and divides the gradients afterwards (notebook 16 builds one). In bf16 and fp32 it is switched off, and the same code runs.
#
# A step with all of this has seven parts. In alphabetical order: *backward* through the scaled loss, *clear* old gradients, *clip* the gradients, compute the *loss*, *unscale* the gradients, *update* the scaler, *update* the weights. In almost any order, the program runs.

# %% [markdown]
# ### Exercise 10 · One step  (3 points · 10 min · ●●)
#
# `model(inputs)` gives logits of shape $(b, s, v)$; `targets` has the next token for each position. The loss is the mean of $-\log p$ over all $b \cdot s$ targets. If `dtype` is not None, the forward pass runs under autocast with that dtype; the loss itself is computed in fp32 (under autocast `F.cross_entropy` does that), and weights and gradients stay in fp32. The backward pass belongs outside of autocast.
#
# `scaler` is a `torch.amp.GradScaler` with the methods `scale`, `step`, `unscale_` and `update`. When the weights change, the norm of all gradients together is at most `limit`; `nn.utils.clip_grad_norm_` does that. Gradients from before do not count. If gradients overflow, the weights stay as they are, and the scale goes down. Return the loss as a plain number, unscaled: a list of losses that still have their graphs would keep the memory of every step.


# %% exercise="train_step"
def train_step(
    model: nn.Module,
    inputs: Int[Tensor, "b s"],
    targets: Int[Tensor, "b s"],
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    limit: float,
    dtype: torch.dtype | None = None,
) -> float:
    """Update the weights once; return the mean loss in nats, without its graph."""
    ### BEGIN SOLUTION
    optimizer.zero_grad()
    with torch.autocast(inputs.device.type, dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), limit)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()
    ### END SOLUTION


# %% check="train_step"
# %% [markdown]
# Is it right? Two tests that every trainer should pass before anything else (Karpathy, 2019). A new model knows nothing, so its first loss is $\ln v$. And a model must be able to learn *one* batch by heart.

# %%
torch.manual_seed(0)
table = nn.Sequential(nn.Embedding(16, 32), nn.ReLU(), nn.Linear(32, 16))
with torch.no_grad():
    table[2].weight.mul_(0.1)
symbols, following = torch.arange(16)[None], torch.randperm(16)[None]
adam, off = torch.optim.AdamW(table.parameters(), lr=0.02), torch.amp.GradScaler("cpu", enabled=False)
with your("train_step"):
    losses = [train_step(table, symbols, following, adam, off, 1.0) for _ in range(200)]
    print(f"ln 16 = {math.log(16):.2f}; first loss {losses[0]:.2f}; after 200 steps on one batch {losses[-1]:.3f}")

# %% [markdown]
# And in fp16: how large should the scale be? The scaler tries. It halves the scale after an overflow, whose update it skips, and doubles it after a number of good steps (2,000 as a rule, 4 here). From 2²² on:

# %%
torch.manual_seed(0)
fresh = nn.Sequential(nn.Embedding(16, 32), nn.ReLU(), nn.Linear(32, 16))
adam = torch.optim.AdamW(fresh.parameters(), lr=0.02)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22, growth_interval=4)
with your("train_step"):
    for step in range(10):
        scale = scaler.get_scale()
        found = train_step(fresh, symbols, following, adam, scaler, 1.0, torch.float16)
        print(f"step {step}: scale 2^{math.log2(scale):.0f}, loss {found:.2f}")

# %% [markdown]
# As long as the scale is too large, the loss stays where it is: those updates were skipped.

# %% [markdown]
# In mixed precision the weights stay in 32 bits: a **master copy**, which alone is updated. Why not store the weights in the 16 bits that the products use?

# %% [markdown]
# ### Exercise 11 · A weight in sixteen bits  (2 points · 6 min · ●●)
#
# A weight gets `updates`, one after the other. Without a master copy it is stored in bf16: each sum is formed in fp32 and rounded to the nearest bf16 number (ties to even) before the next update. With a `master` copy each update is added to the weight in fp32, and the weight is rounded to bf16 once, at the end. Return the bf16 weight. `weight` itself is a bf16 number.


# %% exercise="train_in_half"
def train_in_half(weight: float, updates: list[float], master: bool) -> float:
    """Return the weight in bf16 after all updates."""
    ### BEGIN SOLUTION
    stored = torch.tensor(weight, dtype=torch.float32 if master else torch.bfloat16)
    for update in updates:
        stored = (stored.float() + update).to(stored.dtype)
    return stored.bfloat16().item()
    ### END SOLUTION


# %% check="train_in_half"
# %%
with your("train_in_half"):
    for update, count in ((0.001, 1000), (0.005, 100)):
        without, with_copy = (train_in_half(1.0, [update] * count, master) for master in (False, True))
        print(f"1 and {count:4} times {update}: {without} in bf16 alone, {with_copy} with a master copy")
tiny = torch.tensor(1.0)
for _ in range(1000):
    tiny += 2.0**-25
print(f"1 and 1000 times 2⁻²⁵ = 3e-8, in fp32: {tiny.item()}")

# %% [markdown]
# Updates below half the gap are lost, and those just above it are rounded *up* to a whole gap: both are wrong. An fp32 copy loses updates as well, only much smaller ones. If you have no memory for two copies, round by chance (**stochastic rounding**, notebook 01).
#
# And gradients? Here are 256 micro-gradients, each computed in bf16. Add them up in bf16, and in fp32:

# %%
torch.manual_seed(0)
parts = (0.01 + 0.02 * torch.randn(256, 10_000)).bfloat16()
exact = parts.double().sum(dim=0)
for dtype in (torch.bfloat16, torch.float32):
    total = torch.zeros(10_000, dtype=dtype)
    for part in parts:
        total += part
    error = (total - exact).norm() / exact.norm()
    print(f"added up in {str(dtype).removeprefix('torch.'):9} relative error {error:.1e}")

# %% [markdown]
# Gradients that were *computed* in two bytes are therefore *added up* in four.
#
# **Eight bits.** FP8 has two formats: **E4M3**, up to 448, and **E5M2**, up to 57,344 and coarser, for gradients. Such small ranges need a *scale* for each tensor: store $s_x x$ and $s_w w$, multiply, and divide the product by $s_x s_w$. Here is one product, with and without scales:

# %%
torch.manual_seed(0)
x, w = 0.02 * torch.randn(64, 256), 0.001 * torch.randn(256, 64)
for name, scales in (("no scales", (1.0, 1.0)), ("scales 448 / max", (448 / x.abs().max(), 448 / w.abs().max()))):
    x8, w8 = ((scale * part).to(torch.float8_e4m3fn) for scale, part in zip(scales, (x, w), strict=True))
    y = x8.float() @ w8.float() / (scales[0] * scales[1])
    print(f"{name:17} relative error {(y - x @ w).norm() / (x @ w).norm():.1%}")

# %% [markdown]
# To know a tensor's largest number, one must have computed the tensor. **Delayed scaling** therefore takes the scale from the past: each step records the largest $|x|$ that it saw, and the next scale is made for the largest of the last few steps.

# %%
explore(figures.delayed_scaling, history=(1, 64, 1), margin=(0, 3, 1), jump=Log(1.0, 100.0))

# %% [markdown]
# With a short history, new numbers often exceed the old ones. A long history wastes range if the numbers become smaller. Neither foresees a jump.

# %% [markdown]
# ### D · One rate for all widths  (22 min)
#
# Large models are too expensive to sweep. So sweep a small one, and use its best rate for the large one? Here is one block with 16, 32 and 64 features, trained by AdamW for 100 steps on stories, at six rates and with three seeds each:

# %%
figures.sweep(widest=64)

# %%
predict("best_at_128")

# %%
figures.sweep()

# %% [markdown]
# The best rate of a narrow model ruins the wide one: at 0.016 the model with 128 features ends *above* the one with 64. How would the rates have to change, so that one sweep is enough?
#
# Think of one output of a linear layer, $y = \sum_i w_i x_i$. Adam moves every $w_i$ by about the rate, and by a sign that depends on the gradient. The signs are not random: they are chosen so that all terms push $y$ in the same direction. So how much does $y$ move, if there are $n$ inputs? And what is $n$ for an embedding, from which one row is looked up, or for the scale of a norm?

# %% [markdown]
# ### Exercise 12 · Rates by width  (3 points · 10 min · ●●)
#
# `shapes` has every parameter's shape by its name, and `base` the shapes of the model on which the rate was found; the names are the same. A single number has the shape []. A matrix has the shape (outputs, inputs); `embeddings` are the names of matrices that are looked up instead. For each parameter name, return the number its learning rate must be multiplied by so that one update moves its outputs as far as in the base model, whatever the width.


# %% exercise="width_factors"
def width_factors(shapes: dict[str, list[int]], base: dict[str, list[int]], embeddings: list[str]) -> dict[str, float]:
    """Return the factor of each parameter's learning rate, by its name."""
    ### BEGIN SOLUTION
    factors = dict.fromkeys(shapes, 1.0)
    for name, shape in shapes.items():
        if len(shape) == 2 and name not in embeddings:
            factors[name] = base[name][1] / shape[1]
    return factors
    ### END SOLUTION


# %% check="width_factors"
# %% [markdown]
# This is the core of **µP** (Yang et al., 2022), for Adam. It has a second half: the first weights of the head, which adds up $n$ features as well, are LeCun's times $\sqrt{32/n}$. LeCun's alone give a new model logits of one size at every width. But once updates push the features in directions that the head favours, its sum would grow with $\sqrt n$. Does it work? Measure how far one update of each part at 0.016 moves the logits, at each width (a *coordinate check*):

# %%
with your("width_factors"):
    moved = {name: changes_by_part(rule) for name, rule in (("one rate", None), ("your factors", width_factors))}
print(f"{'width':27}16    32    64   128")
for name, parts in moved.items():
    for part, changes in parts.items():
        print(f"{name:13} {part:12} {'  '.join(f'{change:.2f}' for change in changes)}")

# %% [markdown]
# The head proves the sum: with one rate, eight times the inputs move the logits eight times as far, and with your factors equally far. The other parts move them less and less, because the head's smaller first weights pass less of a change on.
#
# And the sweep, with these factors and a base of 32:

# %%
figures.sweep(scaled=True)

# %%
print("nats a byte that are lost by using the best rate of width 32:")
for name, stored in (("one rate", STANDARD), ("rates by width", SCALED)):
    rows = {width: [fmean(losses) for losses in sweep] for width, sweep in stored.items()}
    best = {width: RATES[row.index(min(row))] for width, row in rows.items()}
    found = [f"d = {width}: {row[RATES.index(best[32])] - min(row):.2f}" for width, row in rows.items()]
    print(f"{name:15} {'   '.join(found)}")

# %% [markdown]
# The best rate no longer moves, and what is found at 32 holds at 128. Try one run yourself, with your factors:

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
with your("width_factors"):
    mine = end_of_run(64, 0.016, width_factors)
    print(f"width 64, rate 0.016, your factors: {mine:.2f}; the stored run of this seed: {SCALED[64][3][0]:.2f}")

# %% [markdown]
# **In real models.** GPT-3 had a smaller rate for each larger model: from 6e-4 at 125 million parameters to 0.6e-4 at 175 billion. MiniCPM (2024), and some models of the Cerebras-GPT family (2023), took theirs from small models by µP.
#
# ### E · Forget a little, drop a little  (16 min)
#
# A student asks about weight decay: "If it does not close the gap between training and validation, why do we care?" Ask first whether there is a gap. How often does a run read its text?

# %%
predict("epochs_of_the_run")

# %% [markdown]
# Now the same model twice, for 300 steps each: on stories from a grammar, each read once, and on 20,000 tokens of documentation, read fifteen times. (Stored runs, two seeds each, by `experiments/ladder.py`.)

# %%
predict("what_decay_does")

# %%
figures.two_texts()

# %% [markdown]
# Read once, there is no gap to close: training text and new text are the same thing, nothing can be learned by heart, and both remedies only hurt. Read fifteen times, the model gets to 1.6 on the training text and 4.1 on new text. Decay and dropout both make the first number worse, and improve the second by 0.3 and 0.1.
#
# So why do models that read everything once decay? Notebook 04 showed it on small ones: if a norm follows, decay acts on the *speed* of learning, and pays when the rate falls. D'Angelo, Andriushchenko et al. (2023) say of modern deep networks, vision models included, that decay is "never useful as an explicit regularizer", and that it keeps bf16 training from diverging: large weights have large gaps, in which updates are lost (exercise 11; notebook 16). In our figure, on the right, it *is* a regularizer. It depends on how often text comes back.
#
# **Dropout** (Srivastava et al., 2014) sets each feature to 0 with probability $p$ while the model is trained. A block has three places for it: the attention weights, and the outputs of attention and of the feed-forward layer. Without a mask, in use, the model runs as if nothing had happened. So during training, the *average* over all masks must be what the model computes in use.

# %% [markdown]
# ### Exercise 13 · Dropout  (2 points · 8 min · ●●)
#
# `keep` is True where an entry of $x$ stays; it was drawn with probability $1 - p$ for True, each entry independently. Return two tensors in the dtype of $x$. The first is the result of dropout with this mask, rescaled so that its average over all masks is $x$. The second is the variance of each entry of the result over all masks. If $p$ is such that this is impossible, or no probability, raise `ValueError`. Every `dropout` of torch is forbidden.


# %% exercise="dropout"
def dropout(
    x: Float[Tensor, "..."], keep: Bool[Tensor, "..."], p: float
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    """Return x with dropout, and the variance of each entry over all masks."""
    ### BEGIN SOLUTION
    if not 0 <= p < 1:
        raise ValueError(f"dropout needs a probability below 1, not {p}")
    return torch.where(keep, x, 0) / (1 - p), x.square() * p / (1 - p)
    ### END SOLUTION


# %% check="dropout"
# %%
torch.manual_seed(0)
features = torch.full((100_000,), 2.0)
dropped = F.dropout(features, 0.25)
print(f"torch, 100,000 entries of 2, p = 0.25: mean {dropped.mean():.2f}, variance {dropped.var():.2f}")
with your("dropout"):
    print(f"by your formula, variance {dropout(features, dropped != 0, 0.25)[1][0]:.2f}")

# %% [markdown]
# **In real models.** GPT-1 and BERT dropped 0.1 in all three places, and after the embedding. Llama, and nearly all models that read their text once, drop nothing. A mask costs one byte for each feature until the backward pass (notebook 14 counts them).
#
# ### F · Side steps  (6 min)
#
# Order matters. Beside the ladder we tried other recipes, with three seeds each.

# %%
predict("warm_up_on_top")

# %%
explore(figures.ladder, show=list(CHOICES))

# %% [markdown]
# A warm-up of 50 with the head still tied gains 0.6, and on top of the untied head 0.14. So a list of what each choice "is worth" holds for one place on one ladder.

# %% [markdown]
# Try your own: put a recipe in place of None. Two seeds take some seconds.

# %%
own_recipe = None  # or, say, Recipe(tied=False, warmup_steps=50, learning_rate=2e-2, schedule="wsd")
if own_recipe is not None:
    ends = [run_recipe(own_recipe, *documentation(), seed)[-1]["validation_loss"] for seed in (0, 1)]
    print(f"seeds 0 and 1 end at {ends[0]:.2f} and {ends[1]:.2f} nats a token")

# %% [markdown]
# `lmcourse package` makes a package of your answers, with a transformer that is all yours. If you have made it in the course's folder, your `fit` can train it:

# %%
sys.path.insert(0, str(find_root()))
try:
    from my_transformer.model import Config
    from my_transformer.model import Transformer as MyTransformer
    from my_transformer.parts import PARTS
except ImportError:
    print("There is no my_transformer yet: `lmcourse package` makes it from your answers.")
else:
    torch.manual_seed(0)
    own = MyTransformer(Config(128, 64, 2, 4, 4, 16, 192, 64), PARTS)
    for p in own.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.02)
    with your("fit"):
        last = fit(own, Loader(tokens, 16, 64, seed=0), Settings(30, rate=0.01, warmup=10))[-1]
    print(f"your transformer, after 30 updates: {last:.2f} nats a byte")

# %% [markdown]
# **In real models.** The speed-run of GPT-2 with 124 million parameters (modded-nanogpt) is a ladder too: from 45 minutes on eight GPUs in May 2024 to 1.23 in July 2026. Untying the head was one of its rungs, Muon another (notebook 04; `experiments/quality.py` races it against AdamW by the clock, and `docs/training.md` has the table). Results do not always carry over to other models: nanochat's log finds SwiGLU worse than squared ReLU at 12 and 24 layers. Measure on your own model.
#
# ### Check yourself
#
# 1. Your loss starts at 12 with a vocabulary of 512. What may be wrong, and what is surely not?
# 2. You clip at 1.0 before unscaling, with a scale of 65,536. What does your run look like?
# 3. A colleague finds that our small model never diverges below a rate of 0.4, and takes 0.4. What do you think?
# 4. The best rate at width 256 is 0.002. Which would you try first at width 1024, if all parameters have one rate?
# 5. A run with accumulation over 8 micro-batches reads texts of equal length. Does the mistake of section 1 matter?
#
# <details><summary>Answers</summary>
#
# 1. $\ln 512 = 6.2$: the model is sure of wrong answers, so its last layer is too large. It is neither the data nor the rate: nothing has been learned yet.
# 2. Every gradient is clipped, to a norm of 1/65,536 after the division. With plain gradient descent almost nothing moves. Adam divides by the size of the gradients and hides the mistake, except for its $\varepsilon$, until the scale changes.
# 3. It is forty times the rate of our last rung. If norms keep a model from diverging, that does not mean that it learns.
# 4. 0.0005: four times the inputs, a quarter of the rate.
# 5. No. All means have the same number of terms. (It will, once the last batch is shorter.)
#
# </details>
#
# ## Further reading
#
# - Glorot & Bengio, 2010, *Understanding the difficulty of training deep feedforward neural networks*; He et al., 2015, *Delving deep into rectifiers*.
# - Micikevicius et al., 2018, *Mixed precision training*; Micikevicius et al., 2022, *FP8 formats for deep learning*.
# - Yang et al., 2022, *Tuning large neural networks via zero-shot hyperparameter transfer*; Srivastava et al., 2014, *Dropout*.
# - Karpathy, 2019, *A recipe for training neural networks*; McCandlish et al., 2018, *An empirical model of large-batch training*.
# - Hu et al., 2024, *MiniCPM*; Hägele et al., 2024, *Scaling laws and compute-optimal training beyond fixed training durations*.
# - D'Angelo, Andriushchenko et al., 2023, *Why do we need weight decay in modern deep learning?*
# - In this package: `lmcourse/training/`, from `step.py` and `trainer.py` on; `docs/training.md`.

# %% tags=["hide-input"]
assert math.sqrt(16_384) == 128 and 21 < math.log10(by_rule["standard normal"][-1]) < 22
outside = 2 * torch.special.ndtr(torch.tensor(-2.0, dtype=torch.float64)).item()
cut_spread = math.sqrt(1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / (1 - outside))
assert (round(100 * outside, 2), round(cut_spread, 2)) == (4.55, 0.88)
assert round((1 / 512) ** 0.5, 4) == 0.0442 and round((2 / (512 + 2048)) ** 0.5, 4) == 0.028
assert by_rule["1/√512, ReLU"][-1] < 0.01 and all(0.5 < by_rule[name][-1] < 2 for name in ("1/√512", "√(2/512), ReLU"))
assert round(math.log(512), 2) == 6.24
assert round(mean["where we start"] - mean["warm-up of 50, still tied"], 1) == 0.6 and round(gains[1], 2) == 0.14
warm_up_gains = [a - b for a, b in zip(LADDER["where we start"], LADDER["warm-up of 100, still tied"], strict=True)]
assert round(min(warm_up_gains), 1) == 0.6 and round(max(warm_up_gains), 1) == 0.9
schedules = [mean[name] for name in ("a warm-up of 50 steps", "constant rate", "warm-up, stable, decay")]
assert max(schedules) - min(schedules) < 0.1
assert all(abs(50 * (1 + 14 / count) / fmean(updates) - 1) < 0.2 for count, updates in BATCHES.items())
assert (
    round(fmean(BATCHES[64]) / fmean(BATCHES[16]), 1) == 0.7 and round(fmean(BATCHES[4]) / fmean(BATCHES[1]), 2) == 0.36
)
best_of = {
    scaled: {width: RATES[min(range(6), key=lambda at, row=row: fmean(row[at]))] for width, row in stored.items()}
    for scaled, stored in ((False, STANDARD), (True, SCALED))
}
assert best_of[False] == {16: 0.064, 32: 0.016, 64: 0.008, 128: 0.004} and set(best_of[True].values()) == {0.016}
assert fmean(STANDARD[128][3]) > fmean(STANDARD[64][3]) and STANDARD[32] == SCALED[32]
head, flat = moved["one rate"]["head"], moved["your factors"]["head"]
assert 7.5 < head[-1] / head[0] < 9 and max(flat) / min(flat) < 1.3
ends = {key: [sum(column) / 2 for column in zip(*seeds, strict=True)] for key, seeds in TWO_TEXTS.items()}
assert all(ends["once", "nothing"][1] < ends["once", name][1] for name in ("weight decay 1", "dropout 0.3"))
assert [round(value, 1) for value in ends["fifteen times", "nothing"]] == [1.6, 4.1]
gained = [ends["fifteen times", "nothing"][1] - ends["fifteen times", n][1] for n in ("weight decay 1", "dropout 0.3")]
assert [round(gain, 1) for gain in gained] == [0.3, 0.1] and 300 * 16 * 64 / 20_000 > 15
assert 600 * 32 * 128 == 2_457_600 and round(2_457_600 / 194_606, 1) == 12.6
assert tiny == 1 and round(0.4 / 1e-2) == 40
assert abs(mine - SCALED[64][3][0]) < 0.2 and in_the_end > 5 * at_first
