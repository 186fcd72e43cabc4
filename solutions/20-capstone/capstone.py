# %% [markdown]
# # 20 · Capstone
#
# **170 min · 10 exercises · 34 points**
#
# A written defence, which a person reads, is worth 6 more points.
#
# You are given a budget. *Before you spend it: what will you get, and how far off may you be? And when the result is there: which of your numbers was wrong, and why?*
#
# That is what this course was for. You count everything that can be counted, fit a law for the one thing that cannot, find out whether the law is worth anything, commit yourself, train, and defend the result. Until you have committed yourself, no cell of this notebook shows a loss of the order's size.
#
# **You will be able to**
#
# - forecast a training run, and say of each number how you know it;
# - fit a scaling law on small runs and judge it by what it adds to a forecast without a law;
# - commit to a design, and explain a miss by a cause that a measurement could refute;
# - read other people's numbers like an engineer.
#
# **You need** parameters and bytes (notebook 14), FLOPs (15), training (13). No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run
# it again for the next one.

# %%
import itertools
import random
import statistics
import sys
import textwrap
import time
from contextlib import suppress

import torch
from IPython.display import Markdown
from safetensors.torch import load_file

from lmcourse.accounting.counter import counted_flops
from lmcourse.accounting.saved import saved_tensors
from lmcourse.chapters.capstone import figures
from lmcourse.chapters.capstone.figures import (
    BATCH,
    BATCHES,
    ENTROPY,
    EXPONENTS,
    GIVEN,
    LENGTH,
    ORDER,
    SMALL_RECIPE,
    STEPS_BY_BATCH,
    WIDTHS,
    Design,
    Purse,
    Recipe,
    after,
    fitted_law,
    hand_over,
    known_words,
    loss_on,
    nearest_times_trend,
    recipe_model,
    show_claims,
    small_runs,
    texts,
    train,
    trend,
    write,
)
from lmcourse.collect.weights import package_config, package_weights
from lmcourse.data.grammar import story_grammar
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.root import find_root
from lmcourse.widgets.training import LivePlot

start("20-capstone")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · The order
#
# Part one of two: design, predict, train, defend.
#
# The architecture of this order is what most published models agree on (notebook 12, section 9): RMSNorm before each layer, RoPE, SwiGLU, no biases, and a separate output head. What no survey answers is open: *how large, how long, and how trained?*
#
# > **The order.** A byte-level model of our stories, with at most **100,000 parameters**, **12 MiB of training memory** and **2·10¹¹ training FLOPs**. Use at least 90 % of the FLOPs.
# >
# > *Free:* `layers` of 1, 2 or 4; `d_model` of 24, 32, 48, 64 or 96; the number of `steps`; the `batch`, 4 to 32 texts; the `optimizer`, `"adamw"` or `"muon"`; its peak `rate`, as a multiple of the given one, 0.1 to 10; the steps of `warm_up`, at most half of all.
# >
# > *Fixed:* 128 byte values, texts of 64 bytes from random places of the stories, heads of 16 features (one head where that does not fit), `d_ff` 8/3 of the width rounded up to a multiple of 8, fp32, decay over the last 30 % of the steps. Everything else is in `lmcourse/chapters/capstone/recipe.py`.
#
# *The given recipe* is AdamW with batches of 16, a rate of 1 and 30 steps of warm-up. (A rate is a multiple of the given one. That is $0.064/\sqrt{d}$ for AdamW; with Muon it is 0.02 for the matrices of the blocks.) The language comes from a grammar (notebook 05). So we know what nobody knows about a real language: its entropy, below which no model's loss can be.

# %%
print(f"{story_grammar().entropy_per_byte:.4f} nats a byte; {len(texts()[0]):,} bytes to read, for example:")
for line in story_grammar().generate(random.Random(3)).splitlines()[:3]:
    print(textwrap.fill(line, 88))

# %% [markdown]
# ## 2 · What can be counted
#
# Before anything is trained you will forecast parameters, FLOPs, bytes and the loss, and, for yourself, the seconds.

# %%
predict("which_is_exact")

# %% [markdown]
# By hand, the smallest case: $d = 2$, one block, one head, $d_\text{ff} = 3$, 5 kinds of tokens. The table has 10 numbers, the head 10, attention $4 \cdot 2 \cdot 2$, the feed-forward layer $3 \cdot 2 \cdot 3$, three norms 2 each: 60.
#
# FLOPs of a step, on one text of 2 tokens: matrices that *multiply* hold $16 + 18 + 10$ numbers. Each costs 2 FLOPs a token: 176 forward. For each of the $2 \cdot 2$ pairs of positions, attention takes two products of 2 numbers: 8 FLOPs a pair, 32. Backward costs twice as much: $3 \cdot 208 = 624$.
#
# ### Exercise 1 · The account  (4 points · 15 min · ●●●)
#
# For a decoder like that, of any size, return a dict of whole numbers:
#
# - `"parameters"`;
# - `"flops"` of a training step on `batch` texts of `length` tokens: matrix products only, all pairs of positions (the hidden ones too, as everywhere in this course), backward twice the forward;
# - `"states"`: bytes of weights, gradients and Adam's two moments, all fp32;
# - `"cache"`: bytes of keys and values that one token leaves in an fp32 cache.
#
# The course's package counts all four and would be the whole answer: do without it.

# %% exercise="account_of"
def account_of(
    layers: int, d_model: int, heads: int, d_ff: int, vocabulary: int, batch: int, length: int
) -> dict[str, int]:
    """Parameters, FLOPs of a step, bytes of states and of a token's cache."""
    ### BEGIN SOLUTION
    blocks = layers * (4 * d_model**2 + 3 * d_model * d_ff)
    table = vocabulary * d_model
    parameters = blocks + 2 * table + (2 * layers + 1) * d_model
    products = 2 * (blocks + table) + 4 * layers * length * d_model
    return {
        "parameters": parameters,
        "flops": 3 * batch * length * products,
        "states": 16 * parameters,
        "cache": 8 * layers * d_model,
    }
    ### END SOLUTION


# %% check="account_of"
check(account_of)
### BEGIN HIDDEN TESTS
check(account_of, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Check it against a real model and a real step, with torch's own counter:

# %%
with your("account_of"):
    yours = account_of(2, 48, 3, 128, 128, 16, 64)
    real = Transformer(llama_like(2, 48, 3, 128, vocab_size=128, context=64))
    counted = counted_flops(Design(2, 48).config, 16, 64, backward=True).total
    print(f"parameters: yours {yours['parameters']:,}, of the model {sum(p.numel() for p in real.parameters()):,}")
    print(f"FLOPs of a step: yours {yours['flops']:,}, counted by torch {counted:,}")
    rule = 6 * yours["parameters"] * 16 * 64
    scores, table = 4 * 3 * 2 * 64 * 48, 6 * (128 * 48 + 5 * 48)
    print(f"6ND: {rule:,}, {1 - rule / yours['flops']:.1%} less. Per token it leaves out {scores:,} FLOPs of scores")
    print(f"and counts {table:,} for the table and the norms, which multiply no matrix.")

# %% [markdown]
# Memory has one more part, and it is the largest: the activations. You wrote their formula in notebook 14. Here they are counted for you.

# %%
explore(figures.budget_card, d_model=[*WIDTHS], layers=[1, 2, 4], batch=[*BATCHES])

# %% [markdown]
# With batches of 16, find the design whose parameters fit and whose activations do not.
#
# ### Exercise 2 · How many steps?  (1 point · 3 min · ●)
#
# Return how many whole steps the budget pays for.

# %% exercise="steps_within"
def steps_within(budget: float, flops_per_step: int) -> int:
    """Steps that cost at most the budget together."""
    ### BEGIN SOLUTION
    return int(budget // flops_per_step)
    ### END SOLUTION


# %% check="steps_within"
check(steps_within)
### BEGIN HIDDEN TESTS
check(steps_within, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · Seconds
#
# The FLOPs belong to the model, the seconds to the machine. The usual way is to divide by a rate. Which rate?

# %%
predict("one_rate_for_all")

# %% tags=["nbval-ignore-output", "because it is a clock"]
STEPS_OF_PROBE = 10


def probe(design: Design, recipe: Recipe = GIVEN) -> list[float]:
    """Seconds of each of the first steps of a run."""
    seconds = [time.perf_counter()]
    train(design, STEPS_OF_PROBE, callbacks=[lambda record: seconds.append(time.perf_counter())], recipe=recipe)
    return [end - begin for begin, end in itertools.pairwise(seconds)]


probes = {}
for width in (16, 48, 96):
    print(f"{STEPS_OF_PROBE} steps of 2 × {width} ...", flush=True)
    probes[width] = probe(Design(2, width))
rates = {width: Design(2, width).flops_of_step() / statistics.median(times[3:]) for width, times in probes.items()}
print(f"96 wide reaches {rates[96] / rates[16]:.1f} times the rate of 16 wide")
figures.rate_by_width(rates)

# %% [markdown]
# So probe the model that you are going to train. Its first steps also pay for memory and caches.
#
# ### Exercise 3 · Predicted seconds  (2 points · 6 min · ●)
#
# `probe` has the seconds of the first steps. Drop the first `warm` of them, and predict the seconds of a run of `steps` steps by the median of the others: one that another program disturbed does not move it. If no step is left: `ValueError`.

# %% exercise="predicted_seconds"
def predicted_seconds(probe: list[float], warm: int, steps: int) -> float:
    """Median seconds of a warm step, times the steps."""
    ### BEGIN SOLUTION
    return statistics.median(probe[warm:]) * steps  # of nothing it raises a StatisticsError, which is a ValueError
    ### END SOLUTION


# %% check="predicted_seconds"
check(predicted_seconds)
### BEGIN HIDDEN TESTS
check(predicted_seconds, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · A law from small runs
#
# The loss cannot be counted. What you have are small runs, with $2\cdot10^{10}$ or $6\cdot10^{10}$ FLOPs each: a tenth and three tenths of the order, in eight designs of at most half of its parameters. They read batches of 4 texts instead of 16, at half the learning rate. For the same FLOPs that makes four times as many steps, so the warm-up is a small part of them. Train two of them yourself to see that the table is real (ten seconds):

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
for layers, width in ((1, 48), (2, 32)):
    design = Design(layers, width)
    _, loss = train(design, design.steps(2e10, SMALL_RECIPE.batch), recipe=SMALL_RECIPE)
    [stored] = [run for run in small_runs(seed=0) if run[:3] == (layers, width, 2e10)]
    print(f"{layers} × {width}, seed 0: here {loss:.4f}, in the table {stored.loss:.4f}")

# %% [markdown]
# All of them, each the mean of up to three seeds (`python benchmarks/capstone.py small` printed them). $N$ are parameters, $D$ bytes read. The last column says how far the seeds are apart, where there is more than one.

# %%
runs = small_runs()
print("blocks width   FLOPs         N          D   D/N    loss  spread")
for run in runs:
    print(
        f"{run.layers:6} {run.d_model:5}   {run.flops:.0e} {run.parameters:9,} {run.text:10,} "
        f"{run.text / run.parameters:5.1f}   {run.loss:.4f}   {f'{run.spread:.3f}' if run.spread else '    -'}"
    )

# %% [markdown]
# Small models with much text, large ones with little: neither is good. Hoffmann et al. (2022) describe both in one formula:
#
# $$L(N, D) = E + \frac{A}{N^a} + \frac{B}{D^b}$$
#
# $E$ is what no model can learn, $A/N^a$ the price of too few parameters, $B/D^b$ the price of too little text. By hand: with $E = 0.2$, $a = b = 0.5$, a model of 10,000 parameters that has read 1,000,000 bytes, $A = 10$ and $B = 100$: $0.2 + 0.1 + 0.1 = 0.4$. Four times the parameters: 0.35. Four times the text as well: 0.3.
#
# ### Exercise 4 · Fit the law  (4 points · 15 min · ●●●)
#
# `runs` are triples (N, D, loss), `floor` is $E$, `exponents` a list. For every pair of exponents $a, b$ from the list find the $A, B \ge 0$ with the smallest sum of squared *relative* errors,
#
# $$\sum \left(\frac{E + A/N^a + B/D^b}{L} - 1\right)^2,$$
#
# and return the best of all as `{"A": …, "B": …, "a": …, "b": …}`, right to four digits. If the best $A$ or $B$ would be negative, the best law that is allowed has it at 0. Compute in fp64. torch and NumPy are welcome; fitting libraries (`scipy`, `sklearn`) are not.

# %% exercise="fit_law"
def fit_law(runs: list[tuple[float, float, float]], floor: float, exponents: list[float]) -> dict[str, float]:
    """The A, B, a, b that fit the runs best."""
    ### BEGIN SOLUTION
    size, text, loss = torch.tensor(runs, dtype=torch.float64).unbind(dim=1)
    target = 1 - floor / loss
    best: dict[str, float] = {}
    least = float("inf")
    for a in exponents:
        for b in exponents:
            columns = torch.stack([size**-a / loss, text**-b / loss], dim=1)
            for used in ([True, True], [True, False], [False, True]):
                chosen = columns * torch.tensor(used)
                factors = torch.linalg.pinv(chosen) @ target
                error = (chosen @ factors - target).square().sum().item()
                if factors.min() >= 0 and error < least:
                    least = error
                    best = {"A": factors[0].item(), "B": factors[1].item(), "a": a, "b": b}
    return best
    ### END SOLUTION


# %% check="fit_law"
check(fit_law)
### BEGIN HIDDEN TESTS
check(fit_law, hidden=True)
### END HIDDEN TESTS

# %%
with your("fit_law"):
    for name, depths in (("all runs", (1, 2, 4)), ("two and four blocks", (2, 4)), ("one block", (1,))):
        chosen = [(run.parameters, run.text, run.loss) for run in runs if run.layers in depths]
        law = fit_law(chosen, ENTROPY, EXPONENTS)
        errors = [ENTROPY + law["A"] / n ** law["a"] + law["B"] / d ** law["b"] - loss for n, d, loss in chosen]
        constants = ", ".join(f"{key} = {value:,.4g}" for key, value in law.items())
        print(f"{name:20} {constants:43} largest error {max(map(abs, errors)):.3f}")

# %% [markdown]
# The law knows $N$, and nothing of how $N$ is divided into depth and width. Look where the runs with one, two and four blocks lie against a law that was fitted on all of them:

# %%
explore(figures.iso_flop, floor=["known", "zero"], depth=[1, 2, 4])

# %% [markdown]
# ### Without the floor
#
# A laboratory does not know $E$: it fits $E$ together with the rest, on hundreds of runs. You have it. What is it worth?

# %%
predict("unknown_floor")

# %%
for name, known in (("the entropy", ENTROPY), ("0", 0.0)):
    fitted = fitted_law(known)
    errors = [abs(fitted.loss(run.parameters, run.text) - run.loss) for run in runs]
    lowest = {}
    for flops in (6e10, 2e12, 2e13):
        sizes = [10 ** (k / 100) for k in range(300, 800)]
        lowest[flops] = min(fitted.loss(size, flops / (6 * size)) for size in sizes)
    promised = ", ".join(f"{loss:.3f} at {flops:.0e}" for flops, loss in lowest.items())
    print(f"floor {name}: mean error {statistics.mean(errors):.3f} on the small runs;")
    print(f"   the best loss by the law is {promised} FLOPs")

# %% [markdown]
# Both fit the small runs. One of them promises losses below the entropy, which no model can have.
#
# ## 5 · Larger or longer?
#
# Given the law and a budget $C = 6ND$: which $N$? Every budget is a valley. On its left the model is too small, on its right it has read too little. At the bottom, one percent more of either helps equally.
#
# ### Exercise 5 · The best split  (3 points · 9 min · ●●)
#
# Return $N$ and $D$ of the smallest loss $E + A/N^a + B/D^b$ with $6ND = C$, as two floats, right to six digits (no search on a grid is that fine). All arguments are positive.

# %% exercise="best_split"
def best_split(A: float, B: float, a: float, b: float, flops: float) -> tuple[float, float]:
    """Parameters and tokens at the bottom of the valley of this budget."""
    ### BEGIN SOLUTION
    pairs = flops / 6
    size = (a * A / (b * B) * pairs**b) ** (1 / (a + b))
    return size, pairs / size
    ### END SOLUTION


# %% check="best_split"
check(best_split)
### BEGIN HIDDEN TESTS
check(best_split, hidden=True)
### END HIDDEN TESTS

# %%
predict("tokens_per_parameter")

# %%
fitted = fitted_law()
with your("best_split"):
    print(f"a = {fitted.a}, b = {fitted.b}")
    for flops in (2e10, 6e10, 2e11):
        size, text = best_split(fitted.A, fitted.B, fitted.a, fitted.b, flops)
        lost = [fitted.loss(size * k, text / k) - fitted.loss(size, text) for k in (1 / 3, 2 / 3, 1.5, 3)]
        print(f"{flops:.0e} FLOPs: {size:7,.0f} parameters, {text:9,.0f} bytes, {text / size:.1f} bytes a parameter;")
        print("   N times 1/3, 2/3, 1.5, 3 costs " + ", ".join(f"{loss:.3f}" for loss in lost) + " by the law")
    for seed in (0, 1):
        law = fitted_law(seed=seed)
        splits = [best_split(law.A, law.B, law.a, law.b, flops) for flops in (2e10, 2e11)]
        print(f"seed {seed}: a = {law.a}, b = {law.b};", *(f"{text / size:.1f}" for size, text in splits), "bytes a parameter")

# %% [markdown]
# The valley is flat: a size that is off by a factor of 1.5 costs 0.005 of an excess of about 0.1, by the law. And sixteen runs do not determine the exponents: with one seed bytes per parameter fall with the budget, with the other they rise. *Twenty tokens a parameter* was found for one tokenizer, one kind of text and one range of budgets. Kaplan et al. (2020) had found something else, in part because of their warm-up and of what they did not count (Pearce & Song, 2024; Porian et al., 2024). And a model with many readers is trained *smaller* and for longer than any law says: Llama 3 8B read almost 1,900 tokens a parameter (Grattafiori et al., 2024), because serving is paid for every day.
#
# ## 6 · Is the law worth anything?
#
# A law that fits the runs it was fitted on proves nothing. It must forecast others, and better than forecasts that need no law. There are two honest ones, made of the small runs alone:
#
# - **the trend**: continue the best losses of the two budgets as a power law of the excess $L - E$. One number for all designs;
# - **nearest × trend**: take the small run that is most like the design, and let its excess fall with the same power.

# %%
print("forecasts for the order, with the given recipe, without a law:")
print(f"the trend: {trend(ORDER['flops']):.3f} for every design")
for layers, width in ((1, 32), (1, 64), (2, 24), (2, 32), (2, 48), (4, 24)):
    nearest = nearest_times_trend(layers, Design(layers, width).parameters, ORDER["flops"])
    print(f"{layers} × {width}: nearest × trend {nearest:.3f}")

# %% [markdown]
# ### Exercise 6 · Skill  (2 points · 8 min · ●)
#
# Three dicts from names to losses: a `forecast`, what was `measured`, and the forecast of a `baseline`. Return the skill: how much smaller the mean absolute error of the forecast is than that of the baseline, as a share of the baseline's. A perfect forecast has a skill of 1, one that is as good as the baseline 0, a worse one less than 0. If the names differ or there are none, or if the baseline is perfect: `ValueError`.

# %% exercise="skill"
def skill(forecast: dict[str, float], measured: dict[str, float], baseline: dict[str, float]) -> float:
    """One minus the forecast's mean absolute error over the baseline's."""
    ### BEGIN SOLUTION
    if not forecast.keys() == measured.keys() == baseline.keys():
        raise ValueError("the three need the same names")
    missed = sum(abs(forecast[name] - loss) for name, loss in measured.items())
    missed_without = sum(abs(baseline[name] - loss) for name, loss in measured.items())
    if missed_without == 0:
        raise ValueError("there is no name, or the baseline is perfect")
    return 1 - missed / missed_without
    ### END SOLUTION


# %% check="skill"
check(skill)
### BEGIN HIDDEN TESTS
check(skill, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 7 · Forecast what you have not seen  (4 points · 25 min · ●●●)
#
# Given small `runs`, tuples (blocks, $N$, $D$, loss), and the `floor`, forecast the losses of other designs: `asked` is a list of (blocks, $N$, $D$). Return a list of losses. How you do it is yours: which runs to use, what to do about depth. You may call your `fit_law`, and use `EXPONENTS`, the list from 0.2 to 1.4.
#
# - Here, small runs are left out and asked for. You need a skill of 0.3 against the better of two baselines, the mean loss and the loss of the nearest run.
# - The grade asks, with all the runs of the table, for **six designs with the given recipe that this notebook never shows**: some outside the order's limits, some with half of its FLOPs. The baseline is the better of the trend and nearest × trend. A skill of 0.4, 0.5 and 0.6 each earn a point. One number for all designs earns nothing.

# %% exercise="forecasts"
def forecasts(
    runs: list[tuple[int, int, int, float]], floor: float, asked: list[tuple[int, int, int]]
) -> list[float]:
    """Losses of designs that were not trained."""
    ### BEGIN SOLUTION
    law = fit_law([(n, d, loss) for layers, n, d, loss in runs], floor, EXPONENTS)
    return [floor + law["A"] / n ** law["a"] + law["B"] / d ** law["b"] for layers, n, d in asked]
    ### END SOLUTION


# %% check="forecasts"
check(forecasts)
### BEGIN HIDDEN TESTS
check(forecasts, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# How sure can you be? Fit again on the runs of each seed alone (the second was run in all but two of the 16 cases):

# %%
predict("agreement")

# %%
for seed in (0, 1):
    fitted = fitted_law(seed=seed)
    design = Design(2, 32)
    loss = fitted.loss(design.parameters, design.steps(ORDER["flops"]) * BATCH * LENGTH)
    print(f"seed {seed}: a = {fitted.a:.2f}, b = {fitted.b:.2f}; 2 × 32 with the whole order: {loss:.3f}")

# %% [markdown]
# > **Spot the slip.** A colleague writes: "Two independent fits agree, so the forecast is right to within their difference." The two fits share the formula, the recipe and the designs. What follows if one of these is wrong?
#
# The famous fit of the literature has been repeated by others, with other constants (Besiroglu et al., 2024).
#
# ### Which batch?
#
# Two runs that read the same texts cost the same FLOPs, whatever their batches are. Larger batches make fewer steps. Do they learn as much?

# %%
predict("small_batch_first")

# %%
print("2 × 24: steps to a loss of 0.5, at the better of two constant rates, after 30 steps of warm-up; mean of two seeds")
mean_steps = {batch: statistics.mean(steps) for batch, steps in STEPS_BY_BATCH.items()}
read = torch.tensor([batch * steps for batch, steps in mean_steps.items()], dtype=torch.float64)
columns = torch.stack([1 / read, torch.tensor([*mean_steps]) / read], dim=1)  # relative errors, as in Exercise 4
least_texts, least_steps = torch.linalg.lstsq(columns, torch.ones(len(read), 1, dtype=torch.float64)).solution.flatten().tolist()
for batch, steps in mean_steps.items():
    line = least_texts + least_steps * batch
    print(f"batches of {batch:3}: {steps:6,.0f} steps, {batch * steps:7,.0f} texts; on the line {line:7,.0f}")
print(f"the line: {least_texts:,.0f} texts + {least_steps:.0f} steps · batch, so the critical batch is {least_texts / least_steps:.0f}")

# %% [markdown]
# The texts that a run reads grow with its batch $b$, about along a line, as on the small problem of notebook 04 (McCandlish et al., 2018): $S_\text{min}\,(b_c + b)$. However large the batch, it takes $S_\text{min}$ steps; however small, $S_\text{min}\,b_c$ texts. At the **critical batch size** $b_c$ a run needs twice the least of both. Far below it, twice the batch halves the steps and costs nothing. Far above it, twice the batch costs twice the texts.
#
# A laboratory with many GPUs pays for seconds too, and goes near $b_c$. Your order counts FLOPs, and so texts, and it allows no batch above 32: all are below $b_c$. (The line is for one loss and one model. McCandlish et al. find that $b_c$ grows as the loss falls.)
#
# ### Your own small runs
#
# The law is about the given recipe. Does the other optimizer help, another rate, another batch? Do they help wide and deep models alike? You have a purse of $6\cdot10^{10}$ FLOPs. `purse.small(layers, d_model, flops)` trains, prints the loss and what is left, and refuses a run that costs more than that; `optimizer`, `rate`, `batch`, `warm_up` and `seed` are options. A run of $10^{10}$ FLOPs takes a few seconds. How you spend the purse is part of your defence.
#
# Before you say "better", look at the spread of seeds in the table above, and test the difference. Two recipes with the same design and seed are a *pair*. If the recipes were equally good, each pair's difference could as well have the other sign. How many of all patterns of signs give a sum that is as far from 0?

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
def by_chance(differences: list[float]) -> float:
    """Return the fraction of all patterns of signs whose sum is at least as far from 0: the p-value of a paired test."""
    patterns = itertools.product((1, -1), repeat=len(differences))
    sums = [abs(sum(sign * each for sign, each in zip(signs, differences, strict=True))) for signs in patterns]
    return sum(each >= abs(sum(differences)) - 1e-12 for each in sums) / len(sums)


print("smallest p-value:", ", ".join(f"{pairs} pairs {by_chance([0.01] * pairs):.3f}" for pairs in (2, 3, 6, 8)))
purse = Purse()
for optimizer in ("adamw", "muon"):
    purse.small(2, 48, 1e10, optimizer=optimizer)

# %% [markdown]
# ## 7 · Commit
#
# ### Exercise 8 · Design and forecast  (4 points · 25 min · ●●●)
#
# Return a dict with your choice, `layers`, `d_model`, `steps`, `batch`, `optimizer`, `rate` and `warm_up`, and your forecasts before training: `parameters`, `flops` (of the *whole* training), bytes of `states` (as in Exercise 1, with Adam's two moments, for Muon too), and `loss` (on fresh text, nats a byte, of *your* recipe). You may call what you wrote above, and use numbers that you have read off; the course's own `Design` would count for you and is forbidden.
#
# | judged | points |
# | --- | --- |
# | the order is kept, and at least 90 % of its FLOPs are used. If not, nothing below counts | 1 |
# | `parameters`, `flops`, `states` are exact | 3 |
#
# The loss is judged in Exercise 9, by the model that you train. Here it only has to be possible: at least the entropy, at most the loss of a model that has learned nothing, $\ln 128$. If it is not, nothing counts.

# %% exercise="commitment"
def commitment() -> dict[str, float | str]:
    """Your choice, and the forecasts of parameters, flops, states and loss."""
    ### BEGIN SOLUTION
    batch = 16
    costs = account_of(2, 24, 2, 64, 128, batch, 64)
    steps = steps_within(2e11, costs["flops"])
    return {
        "layers": 2,
        "d_model": 24,
        "steps": steps,
        "batch": batch,
        "optimizer": "muon",
        "rate": 1,
        "warm_up": 30,
        "parameters": costs["parameters"],
        "flops": steps * costs["flops"],
        "states": costs["states"],
        "loss": 0.325,
    }
    ### END SOLUTION


# %% check="commitment"
check(commitment)
### BEGIN HIDDEN TESTS
check(commitment, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · Train
#
# First the seconds, by a probe of your own design:

# %% tags=["nbval-ignore-output", "because it is a clock"]
plan: dict[str, float | str] = {}
try:
    with your("account_of", "steps_within"):
        plan = commitment()
    design, steps = Design(int(plan["layers"]), int(plan["d_model"])), int(plan["steps"])
    recipe = Recipe(int(plan["batch"]), float(plan["rate"]), plan["optimizer"], int(plan["warm_up"]))
except NotImplementedError:
    print("This cell and those below, up to section 10, need your commitment: solve Exercise 8 first.")
if plan:
    with your("predicted_seconds"):
        expected_seconds = predicted_seconds(probe(design, recipe), 3, steps)
        print(f"{design.layers} × {design.d_model}: {steps:,} steps, about {expected_seconds:.0f} s")

# %% [markdown]
# Now the run. While it trains, it writes four times. Small batches take longer: for the same FLOPs, batches of 4 are four times as many steps.

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
PROMPT = "Ben is in the wood. "
done: dict[str, float] = {}
written: dict[int, str] = {}
if plan:
    stages = {30, steps // 8, steps // 3, steps}

    def write_at_stages(model: Transformer, step: int) -> None:
        """Let the model write, at a few steps of its training."""
        if step in stages:
            written[step] = write(model, PROMPT, 160)

    begin = time.perf_counter()
    with LivePlot(entropy=ENTROPY) as plot:
        model, done["loss"] = train(design, steps, callbacks=[plot], recipe=recipe, watch=write_at_stages)
    done["seconds"] = time.perf_counter() - begin

# %% tags=["nbval-ignore-output", "because the text depends on the last digits of the weights"]
for step, text in written.items():
    print(f"after {step:,} steps, {known_words(text):.0%} of its words are words of the stories:")
    print(textwrap.indent(textwrap.fill(PROMPT + text, 84), "    "))

# %% [markdown]
# ### Hand it in
#
# `hand_over` writes `trained.safetensors`: your weights in fp16, the design, your forecast, and the loss of the run. It also puts the file into this notebook, as the output of the cell below: save the notebook with its outputs. Such a file holds names and numbers and no code.

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
if done:
    print(f"reported loss: {done['loss']:.4f}")
    hand_over(plan, model, done["loss"])

# %% [markdown]
# The grade measures this loss again, on 262,144 bytes of other stories. How much may chance change it? Measure on the quarters of the fresh text, 32,768 bytes each:

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
if done:
    losses = [loss_on(model, quarter) for quarter in texts()[1].chunk(4)]
    print("loss on four quarters:", ", ".join(f"{loss:.3f}" for loss in losses))
    print(f"they differ by {statistics.stdev(losses):.4f} (standard deviation); eight times the text: a third of it")

# %% [markdown]
# ### Exercise 9 · What you trained  (6 points · 10 min · ●)
#
# Return what `trained.safetensors` holds, a dict from names to tensors, with `load_file`. The line is short; the points are for the model. The grade builds the design, gives it your weights and measures:
#
# | judged | points |
# | --- | --- |
# | on the notebook's fresh text the weights give the loss that you report, to 0.01. If not, nothing below counts | 1 |
# | on the other stories, too, to 0.01 | 1 |
# | your forecast is within 0.02 of the loss on them | 1 |
# | that loss is at most 0.005 above the best of the given recipe, measured on the same stories | 1 |
# | it is at least 0.004 below that best; at least 0.010 below it | 1 + 1 |
#
# "The best of the given recipe" is the best of eight: all designs that keep the order with batches of 16, trained once each. The check below judges all this by the notebook's own fresh text. The other stories are only in the grade, so a run near a limit may gain or lose a point there. What your run has cost is taken on trust. If you trained several models and chose one, say so in your defence.

# %% exercise="trained"
def trained() -> dict[str, torch.Tensor]:
    """Weights, design, forecast and reported loss, as `trained.safetensors` holds them."""
    ### BEGIN SOLUTION
    return load_file("trained.safetensors")
    ### END SOLUTION


# %% check="trained"
check(trained)
### BEGIN HIDDEN TESTS
check(trained, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 9 · Defend
#
# Now everything is measured: parameters from the tensors, FLOPs by torch's counter, states from a real optimizer after a real step, and what autograd keeps for the backward pass.

# %%
if done:
    inputs = texts()[0][: recipe.batch * LENGTH].view(recipe.batch, LENGTH)
    kept = saved_tensors(lambda: next_token_loss(model(inputs), inputs), model, without=[inputs]).total
    optimizer = torch.optim.AdamW(model.parameters())
    next_token_loss(model(inputs), inputs).backward()
    weights = {parameter: parameter.detach().clone() for parameter in model.parameters()}
    optimizer.step()
    moments = [state[name] for state in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")]
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    for parameter, before in weights.items():  # that step was for measuring
        parameter.data.copy_(before)
    done["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    done["flops"] = steps * counted_flops(design.config, recipe.batch, LENGTH, backward=True).total
    done["states"] = sum(t.numel() * t.element_size() for t in [*weights, *gradients, *moments])
    for name in ("parameters", "flops", "states"):
        print(f"{name:10} forecast {plan[name]:15,}, measured {done[name]:15,}")
    print(f"memory     forecast {design.memory(recipe.batch) / 2**20:11.2f} MiB, measured {(done['states'] + kept) / 2**20:11.2f} MiB")

# %% tags=["nbval-ignore-output", "because losses and seconds differ between processors"]
if done:
    print(f"loss    forecast {plan['loss']:.3f}, measured {done['loss']:.3f} ({plan['loss'] - done['loss']:+.3f})")
    print(f"seconds forecast {expected_seconds:.0f}, measured {done['seconds']:.0f}, with the plot and four texts")

# %% [markdown]
# The choices that you did not make: `after` returns our runs of the order's size. First the given recipe, about which the law and the baselines made forecasts.

# %%
if done:
    large = after(plan)
    law = fitted_law()
    given = [run for run in large if run.recipe == GIVEN and run.seed == 0]
    measured, by_law, by_nearest = {}, {}, {}
    for run in given:
        name = f"{run.layers} × {run.d_model}"
        measured[name] = run.loss
        by_law[name] = law.loss(run.parameters, run.text)
        by_nearest[name] = nearest_times_trend(run.layers, run.parameters, run.flops)
        print(f"{name}: measured {run.loss:.3f}, law {by_law[name]:.3f}, nearest × trend {by_nearest[name]:.3f}")
    by_trend = dict.fromkeys(measured, trend(ORDER["flops"]))

# %%
if done:
    with your("skill"):
        for depths, chosen in (("all", measured), ("two and four blocks", [name for name in measured if name[0] > "1"])):
            parts = [{name: losses[name] for name in chosen} for losses in (by_law, measured, by_trend, by_nearest)]
            print(
                f"{depths}: skill of the law {skill(parts[0], parts[1], parts[2]):+.2f} against the trend, "
                f"{skill(parts[0], parts[1], parts[3]):+.2f} against nearest × trend"
            )

# %%
figures.law_check(large, law) if done else None

# %% [markdown]
# For two and four blocks the law is within 0.016, and it is nearer than both forecasts without a law. For one block it is too low by 0.010 to 0.035, most for the widest. That is not luck: the law does not know what one block cannot do. And it is too low nearly everywhere, as if something that all small runs share were missing at the order's size. They read batches of 4, the order reads batches of 16: a fourth of the steps for the same bytes.
#
# An honest report says one more thing. *We* had seen the large runs when we chose which small ones to give you (at most 50,000 parameters, at least 300 steps). With every small run that we made, the law's skill on these designs was between −0.06 and 0.25, depending on how it was fitted. So the numbers above show that a law from small runs *can* be worth something. A clean test needs designs that nobody had looked at when the runs were chosen; you chose before you saw, and your forecast is one.
#
# And the other optimizer:

# %%
if done:
    print("design  AdamW, seeds 0 and 1    Muon, seed 0")
    for run in given:
        losses = {(each.recipe.optimizer, each.seed): each.loss for each in large if each[:2] == run[:2]}
        print(
            f"{run.layers} × {run.d_model}  {losses['adamw', 0]:.4f}  {losses['adamw', 1]:.4f}"
            f"          {losses['muon', 0]:.4f}"
        )
    found = {(each[:2], each.recipe.optimizer, each.seed): each.loss for each in large}
    for name, (optimizer, seed) in {"Muon against AdamW": ("muon", 0), "seed 1 against seed 0": ("adamw", 1)}.items():
        differences = [found[run[:2], optimizer, seed] - run.loss for run in given]
        print(f"{name}: {statistics.mean(differences):+.4f} on average, p = {by_chance(differences):.3f}")

# %% [markdown]
# Muon is better in all eight designs, by 0.010 to 0.031, and two seeds of one design differ by less than 0.005. Each Muon run has one seed only; that all eight agree is what convinces: of 256 patterns of signs only two are so extreme. A difference of 0.004 in a single design would show nothing.
#
# ### Your defence
#
# Written work, read by a person.

# %% [markdown] task="defence" points="6"
# Take three forecasts: the loss, one that was right to the last digit, and one that was off (the seconds, if nothing else was).
#
# For each write two or three sentences: **what** you promised and what came, with numbers; **why**, with a cause that could be tested; and **what you would measure** before the next, larger order to know whether that cause is the right one. Say what you bought with your purse and what it told you. Last, one sentence: would you sign a forecast for a hundred times this budget with the same law? In which direction do you expect it to miss?
#
# Write below this cell.
#
# ### BEGIN MARK SCHEME
#
# Six points, in halves:
#
# - 1½ · numbers with units, predicted and measured, that agree with the notebook's own output, and the error compared with something: a baseline's error or the spread of seeds.
# - 2 · causes that could be wrong. Good ones: the scores and the table in 6ND; caches of processors and other programs (seconds); the law knows N but not how it is divided into width and depth; it was fitted on another batch and rate; the rate of the recipe falls as 1/√d; two seeds differ. "Randomness" alone, without the spread of seeds: 0.
# - 1 · a measurement that would distinguish the cause from another one (a second seed; the rate halved at 64 wide; depth against width at equal N; a probe at another hour).
# - ½ · what the purse was spent on, and what that can and cannot show.
# - 1 · the last question: outside what was fitted; the term with the smaller exponent decides in the end; the loss can only be near the floor; so errors become small in nats and large as a share of what is left. Any reasoned direction counts.
#
# A defence that blames nothing and explains a forecast that was right counts as much as one of a miss.
# ### END MARK SCHEME

# %% [markdown]
# <details><summary>How others defended theirs (open this when yours is written)</summary>
#
# *The law's favourite had one block.* "I forecast 1 × 48 by a law fitted on all runs. In the small runs with one block the losses lie above the law that fits two and four; I saw that in the figure and did not use it. I would train 1 × 32 and 2 × 24, with nearly equal N, equal FLOPs and three seeds."
#
# *Muon, on one seed.* "In my purse Muon was 0.02 better with 10¹⁰ FLOPs. The seeds of such small runs differ by as much, so I had not shown anything; I was lucky. With the rest of the purse I should have bought two more seeds."
#
# *6ND.* "I broke the order without noticing: the rule leaves out the scores, which are not small where a text of 64 meets 48 features, and counts a table that only looks up. Counted, it is 441 steps, not 479."
#
# </details>
#
# ## 10 · Hand over
#
# What does the customer get? A model that writes, with a card that says what it is. Put a beginning of your own in place of ours; it should be of the stories' words, for it has read nothing else. Beside yours writes the best model of the given recipe.

# %% tags=["nbval-ignore-output", "because the text depends on the last digits of the weights"]
if done:
    yours_to_choose = "Clara is at the sea. Many "
    for name, writer in (("yours", model), ("the given recipe's best, 4 × 24", recipe_model(plan))):
        text = write(writer, yours_to_choose, 250, seed=1)
        print(f"{name}: {loss_on(writer, texts()[1]):.3f} nats a byte, {known_words(text):.0%} known words")
        print(textwrap.indent(textwrap.fill(yours_to_choose + text, 84), "    "))
    print(f"\n{done['parameters']:,.0f} parameters · {done['loss'] - ENTROPY:.3f} nats a byte above the entropy of the language")
    print(f"serving: {4 * done['parameters'] / 1024:.0f} KiB of weights in fp32, {8 * design.layers * design.d_model} bytes of cache a byte of text")

# %% [markdown]
# Is it yours? The design is, and so may be the program: `lmcourse collect`, in the course's folder, makes a model of your own answers to notebooks 02 to 12 (notebook 12). The trained weights fit into it.

# %% tags=["nbval-ignore-output", "because it depends on what was collected"]
sys.path.insert(0, str(find_root()))
with suppress(ImportError):  # there is none until `lmcourse collect` has made it
    from my_transformer.model import Config as MyConfig
    from my_transformer.model import Transformer as MyTransformer
    from my_transformer.parts import PARTS

    if done:
        own = MyTransformer(MyConfig(**package_config(design.config)), PARTS)
        own.load_state_dict(package_weights(model))
        with torch.no_grad():
            gap = (own(inputs) - model(inputs)).abs().max().item()
        print(f"your program: {sum(p.numel() for p in own.parameters()):,} parameters, logits within {gap:.0e} of these")

# %% [markdown]
# `lmcourse train --help` trains larger ones, and `lmcourse generate` lets them write.
#
# ## 11 · The hunt
#
# Part two: you are the examiner. A colleague's notes make five claims. **Two of them are right.** A reader who doubts everything learns as little as one who believes everything.

# %%
Markdown(show_claims())

# %% [markdown]
# ### Exercise 10 · The hunt  (4 points · 15 min · ●●)
#
# Return a list of five verdicts. A verdict is the word `"right"`, or the right number in place of the wrong one: a whole number exactly, any other to 1 %.

# %% exercise="hunt"
def hunt() -> list[float | str]:
    """The verdicts on the five claims."""
    ### BEGIN SOLUTION
    return ["right", 640, 1, "right", 11_274_289_152]
    ### END SOLUTION


# %% check="hunt"
check(hunt)
### BEGIN HIDDEN TESTS
check(hunt, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 12 · Six questions to leave with
#
# Answer each in your head, then open it. The notebook in brackets computes it.
#
# <details><summary>A norm <em>in</em> the residual stream: what is wrong with it?</summary>It rescales everything that earlier blocks wrote, at each block. (Notebook 10)</details>
# <details><summary>What does the ratio of d_ff to d mean?</summary>How the parameters are divided between mixing tokens and computing on each. (Notebook 11)</details>
# <details><summary>How fast does RoPE rotate, and is that trained?</summary>Pair <em>i</em> turns by base<sup>−2i/d</sup> a position; the base is chosen, not trained. (Notebook 09)</details>
# <details><summary>How large a vocabulary, for many languages?</summary>It depends on which language pays for the tokens. (Notebook 07)</details>
# <details><summary>Why care how weight decay moves the weights?</summary>It works through the learning rate: it sets the size at which they settle. (Notebook 04)</details>
# <details><summary>Why divide scores by √d?</summary>The variance of a sum of <em>d</em> products is <em>d</em>. (Notebook 08)</details>
#
# **In real models.** Llama 3 had a law of its own, fitted on small runs, to forecast the score of its largest model, and came close (Grattafiori et al., 2024). Open speed-runs of small models ask for p < 0.01 over several seeds before a record counts.
#
# ## What to keep
#
# | forecast | by | how far off |
# | --- | --- | --- |
# | parameters, states, cache | counting tensors | not at all |
# | FLOPs of a step | $6 \cdot$ tokens $\cdot$ (matrices $+ 2\,L\,n\,d$) | not at all |
# | activations | the tensors that backward needs | not at all, for what torch keeps |
# | seconds | a probe *of the same model*, median, times steps | as the machine is disturbed |
# | loss | $E + A/N^a + B/D^b$, with a known floor, from runs that are like the order | judged by skill, against a forecast without a law |
# | the best $N$ | $\left(\frac{aA}{bB}\right)^{1/(a+b)} (C/6)^{b/(a+b)}$ | within a factor of 1.5 it costs little |
#
# ## Check yourself
#
# 1. Why does 6ND put you over the budget here, and hardly at all in GPT-3?
# 2. Which of the three limits binds 4 × 32? What would you change in the recipe to make it fit?
# 3. A law fits 16 runs well. What has it shown about the fifteenth?
# 4. Which inequality between $a$ and $b$ decides whether bytes per parameter rise with the budget? Do your runs determine it?
# 5. Your run beat the given recipe by 0.006. Two seeds of one run differ by 0.004. What do you need before you say "better"?
# 6. A forecast was within 0.01 of the measurement, and so was the mean of all designs. What is its skill?
#
# <details><summary>Answers</summary>
#
# 1. It leaves out the scores, $2\,n\,d$ beside the $12\,d^2$ of a layer's matrices. Texts of 64 bytes are longer than 48 features; the 2048 tokens of GPT-3 are a sixth of its width.
# 2. The memory: with batches of 16 its activations need more than 12 MiB. Smaller batches.
# 3. Nothing, if the fifteenth is one of the 16. A law shows something about runs that it was not fitted on.
# 4. $a > b$: then they rise. With one seed they rise, with the other they fall, so these runs do not determine it.
# 5. More seeds of both recipes, in pairs: a difference that is hardly larger than that of two seeds can be luck. Three pairs never give a p-value below 0.25, six can give 0.03.
# 6. It cannot be told: compare the two *errors*. If the mean was as near, the skill is 0.
#
# </details>
#
# ## Further reading
#
# - Kaplan et al. (2020), *Scaling laws for neural language models*; Hoffmann et al. (2022), *Training compute-optimal large language models*; Besiroglu et al. (2024), *Chinchilla scaling: a replication attempt*.
# - Pearce & Song (2024), *Reconciling Kaplan and Chinchilla scaling laws*; Porian et al. (2024), *Resolving discrepancies in compute-optimal scaling of language models*.
# - Grattafiori et al. (2024), *The Llama 3 herd of models*, section 3.2.1 on forecasting.

# %% tags=["hide-input"]
assert f"{story_grammar().entropy_per_byte:.4f}" == f"{ENTROPY}" == "0.2221"
assert 10 + 10 + 16 + 18 + 6 == 60 and 3 * (2 * 2 * 44 + 32) == 624
assert (Design(2, 48).parameters, Design(2, 48).flops_of_step(), Design(2, 48).steps(2e11)) == (67_824, 452_984_832, 441)
assert int(2e11 / (6 * 67_824 * 1024)) == 479
assert Design(4, 32).parameters < 100_000 and Design(4, 32).memory() > 12 * 2**20
shown = after({"loss": 0.3})
losses_by_run = {(run.layers, run.d_model, run.recipe.optimizer, run.seed): run.loss for run in shown}
by_design = {run[:2]: fitted_law().loss(run.parameters, run.text) - run.loss for run in shown if run[5:7] == (GIVEN, 0)}
assert max(abs(error) for (layers, _), error in by_design.items() if layers > 1) < 0.016
assert [round(by_design[1, width], 3) for width in (24, 32, 48, 64)] == [-0.01, -0.01, -0.029, -0.035]
gains = [losses_by_run[*name, "adamw", 0] - losses_by_run[*name, "muon", 0] for name in by_design]
assert len(gains) == 8 and min(gains) > 0.0095 and max(gains) < 0.0315 and by_chance(gains) == 2 / 256
assert max(abs(losses_by_run[*name, "adamw", 0] - losses_by_run[*name, "adamw", 1]) for name in by_design) < 0.005
assert [round(mean_steps[batch]) for batch in (4, 16)] == [976, 312] and 35 < least_texts / least_steps < 50
assert all(abs((least_texts + least_steps * batch) / (batch * steps) - 1) < 0.05 for batch, steps in mean_steps.items())
assert len(runs) == 16 and max(run.parameters for run in runs) < 50_000
