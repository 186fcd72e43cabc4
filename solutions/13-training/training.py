# %% [markdown]
# # 13 · Training
#
# **135 min · 12 exercises · 29 points**
#
# Same model, same text, same number of steps. One run ends at 4.4 nats a token, another at 3.3. Nothing that you learned so far about
# architectures explains it. *What does?*
#
# A training run is a chain of small decisions. Each is one line of code, each has its usual mistake, and hardly a mistake stops the program: the loss
# still falls, only not as far. So to each belongs a *measurement* that would have told.
#
# **You will be able to**
#
# - write a step of training whose parts are in the right order, in 16 bits, and on more text than fits into memory;
# - go from an empty folder to a model that writes, kill it, and see it go on as if nothing had happened, to the last bit;
# - say what each choice of a recipe is worth, with a number and its noise;
# - say when to decay, when to drop, and when to leave both alone.
#
# **You need** optimizers (notebook 04), norms and blocks (10), the floating-point formats (01). No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run
# it again for the next one.

# %%
import copy
import logging
import math
import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.chapters.training import figures
from lmcourse.chapters.training.ablation import Recipe, run_recipe, time_recipe
from lmcourse.chapters.training.figures.schedules import KINDS
from lmcourse.chapters.training.figures.stored import CHOICES
from lmcourse.chapters.training.figures.stored_runs import LADDER, RUNGS, TWO_TEXTS
from lmcourse.chapters.training.small_run import SmallRun
from lmcourse.inference.generate import generate
from lmcourse.inference.sampling import Sampling
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.notebook import check, explore, hint, predict, start
from lmcourse.root import find_root
from lmcourse.training.activation_checkpointing import apply_activation_checkpointing
from lmcourse.training.command.settings import new_run
from lmcourse.training.command.train_run import train, train_and_kill
from lmcourse.training.command.trained_model import load_trained_model
from lmcourse.training.command.training_data import open_data
from lmcourse.training.config import TrainingConfig
from lmcourse.training.metrics import read_metrics
from lmcourse.training.trainer import Trainer
from lmcourse.widgets import LivePlot, Log

start("13-training")
torch.set_num_threads(1)  # models this small are fastest on one
logging.getLogger("lmcourse").setLevel(logging.ERROR)  # spikes are marked in the plots

# %% [markdown]
# ## 1 · Before the first step
#
# A linear layer adds up products. With $n$ inputs and weights that are all drawn from a standard normal distribution, each output is a sum of $n$ products of two
# independent numbers of mean 0 and variance 1. Such a product has variance 1 again, the terms are independent of each other, so variances add up: $n$. The *spread* is its root. By hand: $n = 16{,}384$ inputs give a spread of $\sqrt{16{,}384} = 128$.
#
# > **Spot the slip.** Lecture notes derive this with "$Z = X + Y$, so $\mu_Z = \mu_X + \mu_Y$ and $\sigma^2_Z = \sigma^2_X + \sigma^2_Y$". The first always holds. What does the second need? (Try $Y = X$.)

# %%
predict("sixteen_layers")

# %% [markdown]
# Measure it, with and without a ReLU between layers, for three ways to draw the weights:

# %%
torch.manual_seed(0)


def spreads(std: float, relu: bool) -> list[float]:
    """The root mean square of the features before and behind each of 16 layers of width 512."""
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
# Each rule makes the spread neither grow nor shrink, for its own kind of layer. All three have a mean of 0 and a variance of
#
# | rule | variance | made for |
# | --- | --- | --- |
# | LeCun (1998) | one over the inputs | layers without a nonlinearity, or with a tanh near 0 |
# | Xavier (Glorot & Bengio, 2010) | one over the mean of inputs and outputs | features on the way forward *and* gradients on the way back |
# | He (2015) | twice LeCun's | a ReLU in front, which takes away half of the second moment |
#
# Large weights are bad luck that you can forbid: a **truncated** normal distribution draws again every number that is further out than some number of deviations. Cutting at ±2, as BERT's code does, removes only 4.55 % of the numbers, and yet the spread falls to 0.88, because the numbers that go were the farthest out:

# %%
explore(figures.truncated_normal, limit=(0.5, 4.0))

# %% [markdown]
# > **Spot the slip.** "We use Xavier initialization: `nn.Parameter(torch.randn(d_in, d_out) / np.sqrt(d_in))`. To be extra safe, we truncate: `nn.init.trunc_normal_(w, std=1 / np.sqrt(d_in), a=-3, b=3)`." Two mistakes. The next cell shows the second at $d = 1024$.

# %%
torch.manual_seed(0)
spread, matrix = 1024**-0.5, torch.empty(1024, 1024)
for name, low in (("a=-3", -3.0), ("a=-3 * std", -3 * spread)):
    nn.init.trunc_normal_(matrix, std=spread, a=low, b=-low)
    print(f"{name:10} the largest weight is {matrix.abs().max() / spread:.1f} deviations from 0")

# %% [markdown]
# ### Exercise 1 · First weights  (2 points · 6 min · ●)
#
# For a rule, "lecun", "xavier" or "he", return what `trunc_normal_` needs: the standard deviation, and the numbers `a` and `b`, so that everything beyond `cut` deviations is cut. Any other rule, "Xavier" with a capital letter too, is a
# `ValueError`. Without `torch.nn.init`, which has two of the three ready made.

# %% exercise="initial_bounds"
def initial_bounds(rule: str, fan_in: int, fan_out: int, cut: float) -> tuple[float, float, float]:
    """The deviation of the weights, and the two numbers between which they are cut."""
    ### BEGIN SOLUTION
    inputs = {"lecun": fan_in, "xavier": (fan_in + fan_out) / 2, "he": fan_in / 2}
    if rule not in inputs:
        raise ValueError(f"there is no rule {rule!r}: take lecun, xavier or he")
    std = 1 / math.sqrt(inputs[rule])
    return std, -cut * std, cut * std
    ### END SOLUTION


# %% check="initial_bounds"
check(initial_bounds)
### BEGIN HIDDEN TESTS
check(initial_bounds, hidden=True)
### END HIDDEN TESTS
# %% [markdown]
# From 512 to 2048 features, LeCun's rule gives 0.0442 and Xavier's 0.0280. They agree where a layer is square, and that is how one gets mistaken for the other.
#
# **In real models.** GPT-2 draws everything with 0.02 and divides what writes into the residual stream by $\sqrt{2L}$, as notebook 10 explains; so does `lmcourse.models.initialize`. Behind a norm the size of weights matters little for the forward pass. It still decides how far a step of given size turns them, and with it the learning rate.

# %% [markdown]
# ## 2 · What may change
#
# A module has three kinds of tensors, and PyTorch tells them apart by what you wrap them in:

# %%
class Scaled(nn.Module):
    """A layer with one tensor of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("mean", torch.zeros(3))
        self.factor = torch.ones(3)


module = Scaled()
kinds = {"trained": dict(module.named_parameters()), "saved": module.state_dict(), "moved by .to": dict(module.half().named_buffers())}
kinds["moved by .to"] |= dict(module.named_parameters())
for verb, names in kinds.items():
    print(f"{verb:13} {', '.join(sorted(names))}")

# %% [markdown]
# A `Parameter` is trained, saved and moved; a buffer is saved and moved; `factor` is none of it. It stays behind when the model goes to a GPU, and after a restart it is lost. If you wanted it trained, nothing will tell you that it is not.
#
# An optimizer gets its parameters in **groups**, each with settings of its own. The usual two: what *decays* and what does not (AdamW, notebook 04). Matrices decay. Biases and the scales of norms do not: pull a scale to 0, and the next matrix grows to undo it.
#
# ### Exercise 2 · What decays  (2 points · 6 min · ●)
#
# `shapes` has every parameter's shape by its name; `norms` are the names of those that belong to norms. Matrices decay: what has two axes or more and belongs to no norm (some norms have a scale for each head, so two axes). Embeddings are matrices here. Return both lists of names, first those that decay, each sorted.

# %% exercise="decay_groups"
def decay_groups(shapes: dict[str, list[int]], norms: list[str]) -> tuple[list[str], list[str]]:
    """The names that decay, and all others, both sorted."""
    ### BEGIN SOLUTION
    decay = [name for name in sorted(shapes) if len(shapes[name]) >= 2 and name not in norms]
    return decay, [name for name in sorted(shapes) if name not in decay]
    ### END SOLUTION


# %% check="decay_groups"
check(decay_groups)
### BEGIN HIDDEN TESTS
check(decay_groups, hidden=True)
### END HIDDEN TESTS
# %% [markdown]
# Embeddings are a matter of taste: most code decays them, OLMo 2 (2025) leaves them out. `lmcourse.training.param_groups` does as you did.

# %% [markdown]
# ## 3 · One step
#
# Seven things happen in one step of training in fp16: the gradients are *clipped*, the weights are *updated*, old gradients are *cleared*, the loss is *computed*, gradients are *unscaled*, the scaler is *told* how it went, and the scaled loss goes *backward*. (A *loss scaler* multiplies the loss by a large number first, because fp16 cannot hold small gradients; you build one in notebook 16. In bf16 and fp32 it is switched off, and the same code runs.)
#
# Above, they are in no order at all. What is the right one? Whatever the order, the program runs.
#
# ### Exercise 3 · One step  (3 points · 8 min · ●●)
#
# `model(inputs)` gives logits of shape $(b, s, v)$. The loss is the mean of $-\log p$ over all $b \cdot s$ targets. `scaler` is a `torch.amp.GradScaler`: look at its methods `scale`, `unscale_`, `step` and `update`. The norm of all gradients together is at most `limit` when the weights change; `nn.utils.clip_grad_norm_` does that. There may be gradients from before; they must not count. If gradients overflow, the weights stay, and the scale goes down. Return the loss, unscaled and without its graph: a list of all losses must not keep the memory of every step.

# %% exercise="train_step"
def train_step(
    model: nn.Module,
    inputs: Int[Tensor, "b s"],
    targets: Int[Tensor, "b s"],
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    limit: float,
) -> float:
    """One update of the weights; returns the mean loss in nats, without its graph."""
    ### BEGIN SOLUTION
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), limit)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()
    ### END SOLUTION


# %% check="train_step"
check(train_step)
### BEGIN HIDDEN TESTS
check(train_step, hidden=True)
### END HIDDEN TESTS
# %% [markdown]
# Is it right? Two tests that every trainer should pass before anything else (Karpathy, 2019). A new model knows nothing, so its first loss is $\ln v$. And a model must be able to learn *one* batch by heart.

# %%
torch.manual_seed(0)
table = nn.Sequential(nn.Embedding(16, 32), nn.ReLU(), nn.Linear(32, 16))
with torch.no_grad():
    table[2].weight.mul_(0.1)
tokens, following = torch.arange(16)[None], torch.randperm(16)[None]
adam, off = torch.optim.AdamW(table.parameters(), lr=0.02), torch.amp.GradScaler("cpu", enabled=False)
with suppress(NotImplementedError):
    losses = [train_step(table, tokens, following, adam, off, 1.0) for _ in range(200)]
    print(f"ln 16 = {math.log(16):.1f}; first loss {losses[0]:.1f}; after 200 steps on one batch below 0.01: {losses[-1] < 0.01}")

# %% [markdown]
# ## 4 · A real run
#
# Enough parts. Here is an empty folder, and the settings of a run: the help texts that come with Python, cut into tokens by a BPE of 512, and `nano`, a model of two blocks and $d = 64$. All this is what `lmcourse train` does; its trainer, `lmcourse/training/trainer.py`, is 200 lines that you could now write yourself. Read it.

# %%
space = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # Windows keeps files that are open
home = Path(space.name)
os.environ["LMCOURSE_DEVICE"] = "cpu"  # where there is a GPU, too: it rounds otherwise, and not twice alike
settings = new_run({"steps": 300, "batch": 16, "warmup_steps": 75})
print(f"{settings.preset} on {settings.corpus}: {settings.training.steps} steps of {settings.training.tokens_per_step:,} tokens")

# %%
predict("beats_the_pairs")

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
with LivePlot() as plot:
    result = train(settings, home / "first", callbacks=[plot])

# %% [markdown]
# What is the number at the end worth? Compare it with models that only count: one that guesses, one that knows how often each token comes, and one that knows which follows which.

# %%
data = open_data(settings, home / "first")
learned, held_out = (part[: len(part)].long() for part in (data.training, data.validation))
size = data.tokenizer.vocab_size
single = torch.bincount(learned, minlength=size).double() + 0.5
single /= single.sum()
pairs = torch.bincount(learned[:-1] * size + learned[1:], minlength=size * size).reshape(size, size).double()
pairs = (pairs + 10 * single) / (pairs.sum(dim=1, keepdim=True) + 10)
yardsticks = {
    "guessing": math.log(size),
    "single tokens": -single[held_out[1:]].log().mean().item(),
    "a table of pairs": -pairs[held_out[:-1], held_out[1:]].log().mean().item(),
}
records = read_metrics(home / "first" / "metrics.jsonl")
measured = {record["step"]: record["validation_loss"] for record in records if "validation_loss" in record}
first_below = min(step for step, loss in measured.items() if loss < yardsticks["a table of pairs"])
for step in (min(measured), max(measured)):
    print(f"step {step:3}, below the table of pairs: {measured[step] < yardsticks['a table of pairs']}")

# %%
figures.run_with_yardsticks(records, yardsticks)

# %% [markdown]
# On its way down the model passes all three. First it learns how often each token comes, then which follows which; whatever it gains below the table of pairs it gains from more than one token of context. And towards the end training and validation part: the text has been read three times. Let it write:

# %% tags=["nbval-ignore-output", "because the text depends on the last digits of the weights"]
trained = load_trained_model(home / "first")
prompt = trained.tokenizer.encode("The ")
chance = torch.Generator().manual_seed(1)
(new,) = generate(trained.model, [prompt], 90, Sampling(temperature=0.7, top_p=0.95), generator=chance)
print(trained.tokenizer.decode([*prompt, *new]))

# %% [markdown]
# Words, and endings that fit them; no sense. `lmcourse train --recipe adamw --out runs/first` makes twice the steps with twice the batch, takes two or three minutes and ends at 2.67; without `--recipe adamw` it takes a recipe that is there sooner, and what is in it you will race below. `lmcourse generate --checkpoint runs/first` then writes for you. Any text file or folder of yours is a corpus: `--corpus ~/letters`.

# %% [markdown]
# ## 5 · The rate, and how it moves
#
# A quarter of that run was warm-up. Is that not a waste? The defaults of most papers are a hundredth or less.

# %%
predict("warm_up_of_half")

# %% [markdown]
# To find out what a choice is worth one changes *it alone*. `Recipe` (`lmcourse/chapters/training/ablation.py`) is a short run of the smallest model, 200 steps of 16 windows of 64 tokens, with a few things to choose. On the text that lies in our folder:

# %%
def last_loss(recipe: Recipe, seed: int = 0) -> float:
    """The validation loss at the end of a short run, nats per token."""
    return run_recipe(recipe, size, learned, held_out, seed)[-1]["validation_loss"]


warmed = {steps: last_loss(Recipe(warmup_steps=steps)) for steps in (10, 100)}
print(f"100 steps of warm-up instead of 10 gain more than half a nat: {warmed[10] - warmed[100] > 0.5}")

# %% [markdown]
# Half the steps below the full rate, and 0.6 to 0.9 nats better, depending on the seed (section 12 shows all three). (Notebook 04 showed why: Adam's first steps are the largest relative to what it knows, and a model that they have thrown far away needs hundreds of steps to come back.) In a long run the same hundred steps are a percent.
#
# After the warm-up the rate may fall like half a cosine, which you wrote in 04. Its trouble: the cosine must know at step 0 where the run will end. **WSD**, warm-up, stable, decay (Zhai et al., 2022; Hu et al., 2024), need not know it until the decay begins:

# %%
explore(figures.schedule, kind=KINDS, warmup=(0.0, 0.5, 0.05), decay=(0.0, 0.5, 0.05), floor=(0.0, 1.0, 0.1))

# %% [markdown]
# ### Exercise 4 · Stable, then down  (2 points · 7 min · ●●)
#
# Return the factor of the peak rate at `step`, counted from 0. Warm-up: 1/W, 2/W, …, 1, so no update is wasted. Then 1. The last `decay` steps fall in a straight line that begins at 1, and would be at `floor` one step after the last. After the end it stays at `floor`. Either phase may have no steps. If both together are longer than the run: `ValueError`, at any step.

# %% exercise="wsd_factor"
def wsd_factor(step: int, steps: int, warmup: int, decay: int, floor: float = 0.0) -> float:
    """The factor of the peak rate at a step, counted from 0."""
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
check(wsd_factor)
### BEGIN HIDDEN TESTS
check(wsd_factor, hidden=True)
### END HIDDEN TESTS
# %% [markdown]
# By hand, for 100 steps with a warm-up of 10 and a decay of 20: 0.1 at step 0, 1 at steps 9 to 80, 0.5 at step 90, 0.05 at step 99.
#
# What is it good for? Somebody wants to know how the loss depends on the length of a run: 100, 200, 400 steps and so on, each with its rate at 0 in the end.

# %%
explore(figures.trunk_and_branches, lengths=(2, 6, 1), decay=(0.05, 0.5, 0.05))

# %% [markdown]
# ### Exercise 5 · What a sweep costs  (2 points · 6 min · ●●)
#
# You want a result for each of `lengths` (in steps), and the run of length `lengths[i]` ends with a decay of `decays[i]` steps. Return how many steps have to be trained in all: first if each length is a cosine, then with WSD, if steps that several runs have in common are trained once. The warm-up is the same for all and shorter than anything else. The lists need not be sorted, and may be empty.

# %% exercise="sweep_steps"
def sweep_steps(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    """The steps to pay for with cosines, and with one trunk and its branches."""
    ### BEGIN SOLUTION
    trunk = max((length - decay for length, decay in zip(lengths, decays, strict=True)), default=0)
    return sum(lengths), trunk + sum(decays)
    ### END SOLUTION


# %% check="sweep_steps"
check(sweep_steps)
### BEGIN HIDDEN TESTS
check(sweep_steps, hidden=True)
### END HIDDEN TESTS
# %% [markdown]
# Hägele et al. (2024) plan scaling laws like this, for about half of the compute. In our short runs, the stored ones of section 12, constant rate, cosine and WSD end within 0.1 of each other: with so few steps the schedule matters less than the warm-up.
#
# **In real models.** Llama 3 405B (2024): peak rate 8e-5, 8,000 steps of warm-up, cosine over 1.2 million steps.

# %% [markdown]
# ## 6 · More than fits
#
# Large models are trained on batches of millions of tokens, of which a device can hold a few thousand. One computes gradients of **micro-batches** and adds them up before the weights change. Nothing is easier, and hardly anything has been wrong in more places.

# %%
predict("two_texts_one_short")

# %% [markdown]
# See it on the model that we just trained, with two texts of our corpus:

# %%
def gradient(texts: list[Tensor], averaged: bool) -> Tensor:
    """The gradient of the mean loss of all tokens of some texts, or of the mean of their mean losses."""
    trained.model.zero_grad()
    total = sum(len(text) - 1 for text in texts)
    for text in texts:
        loss = F.cross_entropy(trained.model(text[None, :-1])[0], text[1:])
        (loss / len(texts) if averaged else loss * (len(text) - 1) / total).backward()
    return torch.cat([p.grad.flatten() for p in trained.model.parameters()])


long, short = held_out[:65], held_out[1000:1005]
right, wrong = (gradient([long, short], averaged) for averaged in (False, True))
print(f"off by more than half of its length: {bool((wrong - right).norm() > right.norm() / 2)}")
print(f"weight of a token, long text: {1 / 2 / 64:.5f}, short text: {1 / 2 / 4:.5f}, sixteen times as much")

# %% [markdown]
# $$\frac{\sum_b \sum_{t \in b} \ell_t}{\sum_b n_b} \;\ne\; \frac1B \sum_b \frac{1}{n_b} \sum_{t \in b} \ell_t \quad\text{unless all } n_b \text{ are equal.}$$
#
# ### Exercise 6 · Accumulate  (4 points · 12 min · ●●●)
#
# `batches` has pairs of inputs and targets, each of shape $(b, s)$, of different sizes; `model(inputs)` gives logits $(b, s, v)$. A target of −100 does not count. Return the gradient of the mean of $-\log p$ over *all* targets that count, in all batches together: one tensor for each of `model.parameters()`, in that order.
#
# - One batch at a time is in the model, and **its graph is gone before the next one is computed**: this is what it is all about. Checks count.
# - Whatever lies in `.grad` before is not part of the result. What lies there afterwards is up to you.
# - A parameter that nothing uses has a gradient of zeros. Where no target counts at all, or there is no batch, all gradients are zeros.

# %% exercise="accumulate"
def accumulate(
    model: nn.Module, batches: list[tuple[Int[Tensor, "b s"], Int[Tensor, "b s"]]]
) -> list[Float[Tensor, "..."]]:
    """The gradient of the mean loss over all targets of all batches, one tensor a parameter."""
    ### BEGIN SOLUTION
    parameters = list(model.parameters())
    total = [torch.zeros_like(p) for p in parameters]
    count = sum((targets != -100).sum() for _, targets in batches)
    for inputs, targets in batches:
        logits = model(inputs).flatten(0, 1)
        loss = F.cross_entropy(logits, targets.flatten(), reduction="sum") / count
        for found, gradient in zip(total, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True):
            if gradient is not None:
                found += gradient
    return total
    ### END SOLUTION


# %% check="accumulate"
check(accumulate)
### BEGIN HIDDEN TESTS
check(accumulate, hidden=True)
### END HIDDEN TESTS
# %% [markdown]
# **In real models.** Until October 2024 a popular trainer averaged the means, as did several others that had copied the idea: every user who accumulated gradients over texts of different lengths trained on something else than they thought (huggingface/transformers, pull request 34191). Its losses looked fine. The test that would have told is the one that you just passed: *one large batch, or many small ones, same gradient.*
#
# And the sum itself: add 1,000 micro-gradients of 0.01 in bf16 and you have 4.0, not 10 (notebook 01). So gradients that were *computed* in two bytes are *added up* in four.

# %% [markdown]
# ## 7 · Sixteen bits, and eight
#
# **Mixed precision** (Micikevicius et al., 2018): products in 16 bits, and a **master copy** of the weights in 32, which alone is updated. Why keep a second copy if the model computes with the first? Because of what becomes of an update.
#
# ### Exercise 7 · A weight in sixteen bits  (2 points · 6 min · ●●)
#
# A weight gets `updates`, one after the other. Without a master copy it is stored in bf16: it is rounded to the nearest bf16 number (ties to even) after each update; the sum before the rounding is formed in fp32. With a `master` copy it is added up in fp32, and rounded to bf16 once, at the end, for use. Return the bf16 weight. `weight` itself is a bf16 number.

# %% exercise="train_in_half"
def train_in_half(weight: float, updates: list[float], master: bool) -> float:
    """The weight in bf16 after all updates."""
    ### BEGIN SOLUTION
    stored = torch.tensor(weight, dtype=torch.float32 if master else torch.bfloat16)
    for update in updates:
        stored = (stored.float() + update).to(stored.dtype)
    return stored.bfloat16().item()
    ### END SOLUTION


# %% check="train_in_half"
check(train_in_half)
### BEGIN HIDDEN TESTS
check(train_in_half, hidden=True)
### END HIDDEN TESTS
# %%
with suppress(NotImplementedError):
    for update, count in ((0.001, 1000), (0.005, 100)):
        without, with_copy = (train_in_half(1.0, [update] * count, master) for master in (False, True))
        print(f"1 and {count:4} times {update}: {without} in bf16 alone, {with_copy} with a master copy")

# %% [markdown]
# Updates below half the gap are lost, and those just above it are rounded *up* to a whole gap: both are wrong. There is a third way, if memory for two copies is short: **stochastic rounding**, up or down by chance, with probabilities that make the *average* right.

# %%
def stochastic(x: Tensor) -> Tensor:
    """Round to bf16, up or down by chance: add random low bits, then cut them off."""
    bits = x.float().view(torch.int32)
    return ((bits + torch.randint_like(bits, 2**16)) & -(2**16)).view(torch.float32)


torch.manual_seed(0)
weights = torch.ones(1000)
for _ in range(1000):
    weights = stochastic(weights + 0.001)
print(f"1 and 1000 times 0.001, rounded by chance: {weights.mean():.1f} on average over 1000 weights")

# %% [markdown]
# *Slip.* A set of notes shows the loss scaler for "`torch.float16`, or e.g. `torch.bfloat16`". bf16 has the range of fp32 and needs none: 1e-8 is 1.0012e-8 in bf16, and 0 in fp16.
#
# ### Eight bits
#
# FP8 has two formats: **E4M3**, up to 448, and **E5M2**, up to 57,344 and coarser, for gradients. Ranges so small need a scale for each tensor, and to know a tensor's largest number one must have computed it. **Delayed scaling** takes the scale from the past: each step keeps the largest $|x|$ that it saw, and the next scale is made for the largest of the last few.

# %%
predict("which_format")

# %% [markdown]
# ### Exercise 8 · Delayed scaling  (2 points · 7 min · ●●)
#
# `history` has the largest $|x|$ of each of the last steps; numbers will be stored as `scale` $\cdot\,x$ in a format whose largest number is `largest`. Return the scale that puts the largest number of the history on the largest number of the format, divided by $2^{\text{margin}}$. If the history has an infinity or NaN in it, or nothing but zeros, or nothing at all, it is no use: return the old `scale`.

# %% exercise="delayed_scale"
def delayed_scale(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    """The scale for the next step."""
    ### BEGIN SOLUTION
    if not all(map(math.isfinite, history)) or not any(history):
        return scale
    return largest / max(history) / 2**margin
    ### END SOLUTION


# %% check="delayed_scale"
check(delayed_scale)
### BEGIN HIDDEN TESTS
check(delayed_scale, hidden=True)
### END HIDDEN TESTS
# %%
explore(figures.delayed_scaling, history=(1, 64, 1), margin=(0, 3, 1), jump=Log(1.0, 100.0))

# %% [markdown]
# A short history is surprised often; a long one never forgets a spike, and wastes range. A jump surprises both, once.
#
# *Slips.* Three, from notes on NVIDIA's Transformer Engine. "`Format.E4M3`, for the forward pass": that recipe takes E4M3 for *all* tensors; E4M3 forward and E5M2 backward is `Format.HYBRID`. "The backward pass is done in full precision": its matrix products run in FP8 as well, because the forward pass did; only sums are kept in 32 bits. And `inp = torch.randn(hidden_size, in_features)`: the first axis of an input is the batch, whatever the variable is called.

# %% [markdown]
# ## 8 · Stop, and go on
#
# Runs end before they are over: a machine is needed by somebody else, a power supply fails, a clock runs out. Below, another process trains, and we kill it, with no chance to tidy up, at a step that nobody chose:

# %%
brief = {"steps": 60, "batch": 8, "checkpoint_every": 20, "evaluate_every": 60}
train_and_kill(brief, home / "killed", after=30)
print("it left", ", ".join(sorted(path.name for path in (home / "killed").iterdir())))

# %% [markdown]
# Then it goes on, here, after its newest checkpoint (step 20 or 40; the steps after it are done again). And a third run, with the same settings, is never disturbed:

# %%
train(new_run(brief), home / "killed", resume=True)
train(new_run(brief), home / "calm")
killed, calm = (read_metrics(home / name / "metrics.jsonl") for name in ("killed", "calm"))
same = [a["loss"] == b["loss"] for a, b in zip(killed, calm, strict=True)]
print(f"{len(same)} steps, every loss equal to the last bit: {all(same)}")
print("validation equal, too:", killed[-1]["validation_loss"] == calm[-1]["validation_loss"])

# %% [markdown]
# What must a checkpoint hold, for that? More than weights.

# %%
predict("forgotten_moments")

# %% [markdown]
# ### Exercise 9 · A snapshot  (4 points · 14 min · ●●●)
#
# `SmallRun` (`lmcourse/chapters/training/small_run.py`, 60 lines: read it first) is the smallest run with all the parts of a real one. `run.train(n)` makes `n` updates and returns their losses. Write a class that keeps *where a run is*: `Snapshot(run)` while the run may go on, and `kept.restore(run)`, which brings this run or a new one to that point, as often as one likes. Losses after that must equal those that the kept run would have had, **to the last bit**. The run's objects (`model`, `optimizer`, `loader`) stay the same ones; only what is in them changes. Answers may use the package here.

# %% exercise="Snapshot"
class Snapshot:
    """Everything that a run needs to go on as if nothing had happened."""

    def __init__(self, run: SmallRun) -> None:
        """Keep where the run is; the run may go on."""
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
check(Snapshot)
### BEGIN HIDDEN TESTS
check(Snapshot, hidden=True)
### END HIDDEN TESTS
# %% [markdown]
# Why so strict? Forget one part after the other, and look:

# %%
def resumed(forget: str) -> list[float]:
    """How far the 20 losses after a restart are from the right ones if something is forgotten."""
    run = SmallRun()
    run.train(8)
    kept = copy.deepcopy((run.model, run.optimizer.state_dict(), run.loader.state_dict(), run.step, torch.get_rng_state()))
    right, other = run.train(20), SmallRun()
    other.model.load_state_dict(kept[0].state_dict())
    if forget != "moments":
        other.optimizer.load_state_dict(kept[1])
    if forget != "place in the text":
        other.loader.load_state_dict(kept[2])
    other.step = 0 if forget == "step" else kept[3]
    torch.set_rng_state(kept[4])
    return [abs(a - b) for a, b in zip(other.train(20), right, strict=True)]


forgetful = {"nothing forgotten": resumed(""), **{f"without the {part}": resumed(part) for part in ("moments", "step", "place in the text")}}
for name, differences in forgetful.items():
    print(f"{name:27} first loss right: {differences[0] == 0}, all right: {not any(differences)}")
figures.resumed_runs(forgetful)

# %% [markdown]
# Without the moments the first loss is right *to the last bit*, and without the step as well. Then they drift, by what passes for noise in a plot of a loss, and the run ends a little worse than it should, or a little better. Nobody notices a wrong resume by looking. Only bits tell.
#
# Where else does chance come from? A course on this says that there are "three places to set the seed": PyTorch, NumPy and Python. Workers that load data have generators of their own, and some GPU kernels add up in whatever order their threads arrive. Equal bits need the same machine, the same number of threads, and deterministic kernels.
#
# **In real models.** `lmcourse/training/checkpoint_format.py` shows the rest of the craft: a checkpoint is written beside its place and moved there when all of it is on the disk, and has a digest of each file. A power cut leaves the old one whole.

# %% [markdown]
# ## 9 · Forget a little
#
# A student asks in a lecture on weight decay: "if it does not close the gap between training and validation, why do we care?" To answer, ask first whether there is a gap.

# %%
predict("epochs_of_the_run")

# %% [markdown]
# ### Exercise 10 · Epochs  (1 point · 3 min · ●)
#
# Return how many times a run reads its text: `steps` updates, each of `accumulate` micro-batches of `batch` windows of `length` tokens.

# %% exercise="epochs"
def epochs(steps: int, batch: int, length: int, accumulate: int, tokens: int) -> float:
    """How often a run reads its text."""
    ### BEGIN SOLUTION
    return steps * accumulate * batch * length / tokens
    ### END SOLUTION


# %% check="epochs"
check(epochs)
### BEGIN HIDDEN TESTS
check(epochs, hidden=True)
### END HIDDEN TESTS
# %%
predict("what_decay_does")

# %% [markdown]
# The same model twice, for 300 steps each: on stories from a grammar, each read once, and on 20,000 tokens of documentation, read fifteen times. (Runs of ours, two seeds each, by `benchmarks/ladder.py`.)

# %%
figures.two_texts()

# %% [markdown]
# Read once, there is no gap to close: training and new text are the same thing, so nothing can be learned by heart, and both cures only cost. Read fifteen times, the model gets to 1.6 on what it knows and 4.1 on what it does not; decay and dropout both give up some of the first and gain 0.3 and 0.1 of the second.
#
# So why do models that read everything once decay? Notebook 04 showed it on small ones: behind norms decay acts on the *speed* of learning, and pays when the rate falls. D'Angelo, Andriushchenko et al. (2023) say of large ones that decay is "never useful as an explicit regularizer", and that it keeps bf16 training from diverging: large weights have large gaps, in which updates are lost (exercise 7; notebook 16). Ours, on the right of the figure, *is* a regularizer. Both are true: it depends on how often text comes back.
#
# ## 10 · Drop a little
#
# **Dropout** (Srivastava et al., 2014) sets each feature to 0 with probability $p$ while the model is trained, in three places of a transformer: on attention weights, and on what each branch adds, attention and feed-forward. What is kept is divided by $1 - p$, so that the *mean* is as if nothing had been dropped. (The variance is not: it grows by $p/(1-p)$ times the square.)
#
# ### Exercise 11 · Dropout  (2 points · 6 min · ●)
#
# `keep` says what stays; in a model it is drawn anew each time, with probability $1 - p$ for True. Return the result in the dtype of $x$. When `training` is False, $x$ comes out as it is. With $p = 1$ everything is 0, whatever the mask says. What is dropped is 0 even if it was infinite. A $p$ outside of 0 to 1 is a `ValueError`, always. Write it yourself: every `dropout` of torch is forbidden.

# %% exercise="dropout"
def dropout(
    x: Float[Tensor, "..."], keep: Bool[Tensor, "..."], p: float, training: bool
) -> Float[Tensor, "..."]:
    """Drop what is not kept, so that the average stays."""
    ### BEGIN SOLUTION
    if not 0 <= p <= 1:
        raise ValueError(f"p is a probability, not {p}")
    if not training:
        return x
    return torch.zeros_like(x) if p == 1 else torch.where(keep, x, 0) / (1 - p)
    ### END SOLUTION


# %% check="dropout"
check(dropout)
### BEGIN HIDDEN TESTS
check(dropout, hidden=True)
### END HIDDEN TESTS
# %%
torch.manual_seed(0)
features = torch.full((100_000,), 2.0)
dropped = F.dropout(features, 0.25)
print(f"mean {dropped.mean():.2f}, variance {dropped.var():.1f}; p/(1 − p) · 2² = {0.25 / 0.75 * 4:.1f}")

# %% [markdown]
# **In real models.** GPT-2 and BERT dropped 0.1 everywhere. Llama, and nearly all that read their text once, drop nothing. A mask costs a byte a feature for the backward pass (notebook 14 counts them).
#
# ## 11 · Compute it twice
#
# The backward pass needs what every layer has computed on the way. In a deep model that is most of the memory. Chen et al. (2016): throw it away, and compute it again.
#
# Cut $L$ layers into segments of $s$. On the way forward keep one unit, the input, in front of each segment; what is inside a segment is thrown away when the next one begins. Inside, each layer makes one unit. On the way back, the inside of a segment is computed once more from its kept input, and all of it stays until the gradient has passed; then the segment's inside *and* its kept input are gone. The last segment was never thrown away. By hand, for nine layers and $s = 3$: three inputs, and three units inside the last segment, so six at once; on the way back the middle segment has two inputs and three units, five. Six layers are computed twice.
#
# ### Exercise 12 · Compute it twice  (3 points · 9 min · ●●)
#
# Return the most units that are alive at any moment, and how many layers are computed a second time. The last segment may be shorter. Less than one layer, or segments of less than one layer: `ValueError`.

# %% exercise="recompute"
def recompute(layers: int, every: int) -> tuple[int, int]:
    """The most units alive at any moment, and how many layers are computed a second time."""
    ### BEGIN SOLUTION
    if every < 1:
        raise ValueError(f"a segment has at least one layer, not {every}")
    lengths = [min(every, layers - start) for start in range(0, layers, every)]
    most = max(number + length for number, length in enumerate(lengths, start=1))
    return most, layers - lengths[-1]
    ### END SOLUTION


# %% check="recompute"
check(recompute)
### BEGIN HIDDEN TESTS
check(recompute, hidden=True)
### END HIDDEN TESTS
# %%
explore(figures.memory_and_work, layers=(4, 128, 1))

# %% [markdown]
# Few long segments keep a lot inside, many short ones keep a lot of inputs. In between, near $s = \sqrt L$, is about $2\sqrt L$: 19 units instead of 96, for not quite one more forward pass. The course's trainer makes each block a segment (`--activation-checkpointing`):

# %%
torch.manual_seed(0)
deep = Transformer(find_model("micro").decoder.with_(vocab_size=64, context=16))
calls = [0]
for each in deep.blocks:
    each.feed_forward.layer.register_forward_pre_hook(lambda *_: calls.__setitem__(0, calls[0] + 1))
sentence, found = torch.arange(16)[None], {}
for name in ("kept", "computed again"):
    calls[0] = 0
    deep.zero_grad()
    deep(sentence).square().mean().backward()
    found[name] = [p.grad.clone() for p in deep.parameters()]
    print(f"{name:15} {calls[0]} calls of {len(deep.blocks)} feed-forward layers")
    apply_activation_checkpointing(deep)
print("same gradients, bit for bit:", all(map(torch.equal, *found.values())))

# %% [markdown]
# It counts 8 rather than 7, because PyTorch does not know which segment is the last.
#
# ## 12 · The ladder
#
# Back to the question. Four changes take the first recipe to the last: a head of its own instead of the transposed embedding, a longer warm-up, QK-norm (notebook 16), and twice the learning rate. Put them in order before you look.

# %%
predict("largest_gain")

# %%
explore(figures.ladder, show=list(CHOICES))

# %% [markdown]
# Each row keeps what the rows above it changed, and each has three seeds: the noise. The first change is worth more than all others together, because this small model has to fit reading *and* writing into the same 64 numbers a token. The last two are hardly larger than the spread of their dots; with one seed each, you would have believed any order.
#
# But order matters. Beside the ladder, a warm-up of 50 alone, with the head still tied, gains 0.6; on top of the untied head it gains 0.15. Two changes that cure the same trouble do not add up. That is why a list of what each choice "is worth" holds for one place on one ladder.
#
# Try your own. One run takes a few seconds:

# %%
mine = RUNGS["twice the rate"]  # or, say, Recipe(tied=False, warmup_steps=50, learning_rate=2e-2, schedule="wsd")
top = last_loss(mine)
print(f"a nat better than where we started, on average over three seeds: {fmean(LADDER['where we start']) - top > 1}")

# %% [markdown]
# ### A race
#
# A reader waits for seconds, not for steps. So let recipes race by the clock. All rungs have AdamW; **Muon** (Jordan et al., 2024) makes the momentum of each matrix orthogonal before it steps along it, so that it moves in all directions equally far. That costs fifteen matrix products per matrix and step. Which is ahead?

# %%
predict("race")

# %%
lanes = {  # any two recipes
    "AdamW": RUNGS["twice the rate"],
    "Muon": replace(RUNGS["twice the rate"], optimizer="muon"),
}
runs = {name: time_recipe(recipe, size, learned) for name, recipe in lanes.items()}
ends = [sum(loss for _, loss in run[-20:]) / 20 for run in runs.values()]
print(f"after as many steps the second is lower: {ends[1] < ends[0]}")

# %% tags=["nbval-ignore-output", "because seconds differ between machines"]
figures.race(runs)

# %% [markdown]
# Now your own lanes: change one, say before you run the cell which will win and by how much, and run it again with another seed (`time_recipe(..., seed=1)`) before you believe it. `benchmarks/quality.py` is the same race at full length, with nanoGPT in a lane of its own; `docs/training.md` has its table.

# %% [markdown]
# ### Yours
#
# `lmcourse collect` makes a package of your answers to notebooks 01 to 11, a transformer that is your own. Made in the course's folder, it can be trained by the same trainer, here for 30 steps:

# %%
sys.path.insert(0, str(find_root()))
try:
    from my_transformer.model import Config
    from my_transformer.model import Transformer as MyTransformer
    from my_transformer.parts import PARTS
except ImportError:
    print("There is no my_transformer yet: `lmcourse collect` makes it of your answers.")
else:
    torch.manual_seed(0)
    own = MyTransformer(Config(size, 64, 2, 4, 4, 16, 192, 64), PARTS)
    for p in own.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.02)
    short_run = TrainingConfig(30, batch=16, seq_len=64, learning_rate=5e-3, warmup_steps=10)
    Trainer(own, short_run, learned, home / "own").run()
    print(f"your transformer, after 30 steps: {read_metrics(home / 'own' / 'metrics.jsonl')[-1]['loss']:.2f} nats a token")

# %% [markdown]
# **In real models.** The speed-run of GPT-2 with 124 million parameters (modded-nanogpt) is a ladder of its own. Its record fell from 45 minutes on eight GPUs in May 2024 to 31.4 with a tuned rate and rotary positions, 24.9 with another optimizer (Muon), 15.2 with a padded vocabulary, squared ReLU, projections that start at 0 and QK-norm, 10.8 with an *untied head* among other things, and to less than two minutes since. Results do not always travel: nanochat's log finds SwiGLU worse than squared ReLU at 12 and 24 layers. Measure on your own.

# %%
space.cleanup()

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | first weights? | variance one over the inputs, twice that behind a ReLU; cut in deviations, not in plain numbers |
# | what decays? | matrices; no biases, no scales |
# | the order of a step? | clear, forward, backward, unscale, clip, step, update |
# | first tests of a trainer? | $\ln v$ at the start; one batch to zero; many small batches give the gradient of one large; resume to the last bit |
# | warm-up? | in short runs worth more than the schedule |
# | accumulation? | divide the *sum* over all targets by their number |
# | weights in 16 bits? | only with a master copy, or rounded by chance |
# | a checkpoint holds | weights, moments, place in the text, step, generators |
# | decay and dropout? | regularize where text comes back; where it is read once they do not |
# | checkpoint activations? | $2\sqrt L$ units instead of $L$, for less than one forward pass |
# | an ablation? | one change, several seeds, and the place on the ladder |
#
# ### Slips
#
# From lecture notes on this subject. Each looks right.
#
# | it says | but |
# | --- | --- |
# | $\sigma_Z^2 = \sigma_X^2 + \sigma_Y^2$ | if $X$ and $Y$ are independent (section 1) |
# | dividing by $\sqrt{d_\text{in}}$ "is Xavier" | it is LeCun's; Xavier's variance is $2/(d_\text{in} + d_\text{out})$ |
# | `trunc_normal_(w, std=s, a=-3, b=3)` | write $a = -3s$, $b = 3s$; else nothing is cut |
# | "three places to set the seed" | and the workers of loaders, and kernels that add up in any order |
# | a loss scaler for bf16 | only fp16 needs one |
# | `Format.E4M3` "for the forward pass" | for all tensors; `Format.HYBRID` has E5M2 for gradients |
# | backward "in full precision" | its products are in FP8; sums are in 32 bits |
# | `torch.randn(hidden_size, in_features)` as input | the first axis is the batch |
#
# ## Check yourself
#
# 1. Your loss starts at 12 with a vocabulary of 512. What is wrong, and what is it not?
# 2. You clip at 1.0 before unscaling, with a scale of 65,536. What does your run look like?
# 3. A run with accumulation over 8 micro-batches reads texts of equal length. Does the mistake of section 6 matter?
# 4. A resumed run shows the right loss at once. What have you shown?
# 5. Somebody sweeps the learning rate with a run in which it grows from step to step, and takes the largest that does not diverge. For our nano the loss never diverges below 0.4. What do you think of a rate of 0.4?
# 6. A paper reports that QK-norm gains 0.05 nats, with one seed. What do you ask for?
#
# <details><summary>Answers</summary>
#
# 1. $\ln 512 = 6.2$: the model is sure of wrong answers, so its last layer is too large. It is not a matter of the data or of the rate: nothing has been learned yet.
# 2. Every gradient is clipped, to a norm of 1/65,536 after the division. With plain descent hardly anything moves; Adam divides by the size of gradients and hides the mistake, all but its $\varepsilon$, until the scale changes.
# 3. No. All means have the same number of terms. (It will, once the last batch is shorter.)
# 4. That the weights are right, and the place in the text, and perhaps dropout's chance. Nothing about the optimizer or the schedule.
# 5. It is eighty times the rate that we used. That nothing diverges, behind norms, does not mean that anything is learned.
# 6. For more seeds: our dots with QK-norm lie 0.05 apart from each other.
#
# </details>
#
# ## Further reading
#
# - Glorot & Bengio, 2010, *Understanding the difficulty of training deep feedforward neural networks*; He et al., 2015, *Delving deep into rectifiers*.
# - Micikevicius et al., 2018, *Mixed precision training*; Micikevicius et al., 2022, *FP8 formats for deep learning*.
# - Chen et al., 2016, *Training deep nets with sublinear memory cost*; Srivastava et al., 2014, *Dropout*.
# - Karpathy, 2019, *A recipe for training neural networks*.
# - Hu et al., 2024, *MiniCPM*; Hägele et al., 2024, *Scaling laws and compute-optimal training beyond fixed training durations*.
# - D'Angelo, Andriushchenko et al., 2023, *Why do we need weight decay in modern deep learning?*
# - In this package: `lmcourse/training/`, from `step.py` and `trainer.py` on; `docs/training.md`.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you like.)

# %% tags=["hide-input"]
assert math.sqrt(16_384) == 128 and 21 < math.log10(by_rule["standard normal"][-1]) < 22
outside = 2 * torch.special.ndtr(torch.tensor(-2.0, dtype=torch.float64)).item()
cut_spread = math.sqrt(1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / (1 - outside))
assert (round(100 * outside, 2), round(cut_spread, 2)) == (4.55, 0.88)
assert round((1 / 512) ** 0.5, 4) == 0.0442 and round((2 / (512 + 2048)) ** 0.5, 4) == 0.028
assert by_rule["1/√512, ReLU"][-1] < 0.01 and all(0.5 < by_rule[name][-1] < 2 for name in ("1/√512", "√(2/512), ReLU"))
assert round(math.log(512), 2) == 6.24 and 3 < 300 * 16 * 128 / len(learned) < 3.5
mean = {name: sum(ends) / len(ends) for name, ends in LADDER.items()}
assert (round(mean["where we start"], 1), round(mean["twice the rate"], 1)) == (4.4, 3.3)
gains = [mean[a] - mean[b] for a, b in zip(list(RUNGS), list(RUNGS)[1:], strict=False)]
assert round(gains[0], 2) == 0.85 and round(sum(gains), 2) == 1.11 and gains[0] > sum(gains[1:]) and round(mean["where we start"] - mean["warm-up of 50, still tied"], 1) == 0.6
assert round(gains[1], 2) in (0.14, 0.15) and max(gains[2:]) < 0.07
warm_up_gains = [a - b for a, b in zip(LADDER["where we start"], LADDER["warm-up of 100, still tied"], strict=True)]
assert round(min(warm_up_gains), 1) == 0.6 and round(max(warm_up_gains), 1) == 0.9
schedules = [mean[name] for name in ("a warm-up of 50 steps", "constant rate", "warm-up, stable, decay")]
assert max(schedules) - min(schedules) < 0.1
assert warmed[10] - warmed[100] > 0.5 and abs(top - LADDER["twice the rate"][0]) < 0.2
assert 5.0 < yardsticks["single tokens"] < 5.5 and 3.3 < yardsticks["a table of pairs"] < 3.7
assert 30 < first_below <= 210 and measured[300] < yardsticks["a table of pairs"] - 0.2
ends = {key: [sum(column) / 2 for column in zip(*seeds, strict=True)] for key, seeds in TWO_TEXTS.items()}
assert all(ends["once", "nothing"][1] < ends["once", name][1] for name in ("weight decay 1", "dropout 0.3"))
assert [round(value, 1) for value in ends["fifteen times", "nothing"]] == [1.6, 4.1]
gained = [ends["fifteen times", "nothing"][1] - ends["fifteen times", n][1] for n in ("weight decay 1", "dropout 0.3")]
assert [round(gain, 1) for gain in gained] == [0.3, 0.1] and 300 * 16 * 64 / 20_000 > 15
assert 600 * 32 * 128 == 2_457_600 and round(2_457_600 / 194_606, 1) == 12.6
assert not any(forgetful["nothing forgotten"]) and all(map(any, list(forgetful.values())[1:]))
assert [forgetful[f"without the {part}"][0] == 0 for part in ("moments", "step", "place in the text")] == [True, True, False]
assert round(torch.tensor(1e-8).bfloat16().item() * 1e8, 4) == 1.0012 and torch.tensor(1e-8).half() == 0
spread_of_qk = max(LADDER["QK-norm"]) - min(LADDER["QK-norm"])
assert round(spread_of_qk, 2) == 0.05 and round(0.4 / 5e-3) == 80
