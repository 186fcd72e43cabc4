# %% [markdown]
# # 20 · Capstone
#
# **Core · 90 min · 6 exercises · 24 points** · **Further · 49 min · 3 exercises · 9 points**
#
# *What will you get for this budget, and how far off may you be?*
#
# You count what can be counted, fit a law for the loss, and correct it by small runs of your own. Then you *seal* your forecast, train, and defend the result with numbers from your own functions. (The defence earns 6 more points.) Until you seal, no cell shows the loss of a run with the whole budget.
#
# At the end you have a model, trained to your own plan, and an honest error bar on its loss.
#
# **You need** notebooks 13 to 15. No GPU. Stuck? `hint("name_of_the_exercise")`.

# %%
import random
from functools import partial

import torch
from safetensors.torch import load_file

from lmcourse.accounting.counter import counted_flops
from lmcourse.chapters.capstone import figures
from lmcourse.chapters.capstone.after import after, differences, given_runs, skills
from lmcourse.chapters.capstone.law import EXPONENTS, by_chance, by_law, hold_out, nearest_times_trend, trend
from lmcourse.chapters.capstone.measured import ENTROPY, small_runs, table
from lmcourse.chapters.capstone.purse import Purse
from lmcourse.chapters.capstone.recipe import BATCHES, ORDER, WIDTHS, Design, texts
from lmcourse.chapters.capstone.sealed import hand_over, seal
from lmcourse.data.grammar import story_grammar
from lmcourse.notebook import check, explore, hint, predict, start, your

start("20-capstone")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · The order
#
# The architecture is what most published models agree on (notebook 12): RMSNorm, RoPE, SwiGLU, no biases, a separate output head. But *how large, how long, how trained?*
#
# > **The order.** A byte-level model of our stories, with at most **100,000 parameters**, **12 MiB of training memory** and **2·10¹¹ training FLOPs**. Use at least 90 % of the FLOPs.
# >
# > *Free:* `layers` of 1, 2 or 4; `d_model` of 24, 32, 48, 64 or 96; the number of `steps`; the `batch`, 4 to 32 texts; the `optimizer`, `"adamw"` or `"muon"`; its peak `rate`, 0.1 to 10 times the given one; the steps of `warm_up`, at most half of all.
# >
# > *Fixed:* 128 byte values, 64-byte texts from random places in the stories, `d_ff` 8/3 of the width rounded up to a multiple of 8, `d_model` / 16 heads (rounded up), fp32, decay over the last 30 % of the steps.
#
# *The given recipe* is AdamW with batches of 16, 30 steps of warm-up and a `rate` of 1. It stands for a peak of $0.064/\sqrt{d}$ (with Muon, for 0.02 in the matrices of the blocks). The language comes from a grammar (notebook 05), so we know its entropy: no loss can be below it.

# %%
print(f"{story_grammar().entropy_per_byte:.4f} nats a byte; {len(texts()[0]):,} bytes to read, for example:")
print(story_grammar().generate(random.Random(3))[:480], "…")

# %% [markdown]
# ## 2 · What can be counted

# %%
predict("which_is_exact")

# %% [markdown]
# By hand, the smallest case: $d = 2$, one block, one head, $d_\text{ff} = 3$, 5 kinds of tokens. The embedding table has 10 numbers, the head 10, attention $4 \cdot 2 \cdot 2$, the feed-forward layer $3 \cdot 2 \cdot 3$, three norms 2 each: 60.
#
# FLOPs of a step on one text of 2 tokens: only matrices that are multiplied count: $16 + 18 + 10$ numbers, each costing 2 FLOPs per token, 176 forward. For each of the $2 \cdot 2$ pairs of positions attention takes two products of 2 numbers: 8 FLOPs, 32. Backward costs twice as much: $3 \cdot 208 = 624$.

# %% [markdown]
# ### Exercise 1 · The account  (4 points · 12 min · ●●●)
#
# For a decoder like that, of any size, return a dict of whole numbers:
#
# - `"parameters"`;
# - `"flops"` of a training step on `batch` texts of `length` tokens: matrix products only, for all pairs of positions, those that the causal mask hides too;
# - `"states"`: bytes of weights, gradients and Adam's two moments, fp32;
# - `"cache"`: bytes of keys and values that one token leaves in an fp32 cache.
#
# The course's package is forbidden.

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

# %%
with your("account_of"):
    account, card = account_of(*Design(2, 48).sizes, 16, 64), partial(figures.budget_card, account_of)
counted, rule = counted_flops(Design(2, 48).config, 16, 64, backward=True).total, 6 * 16 * 64 * account["parameters"]
print(f"2 × 48: {account['parameters']:,} parameters by `account_of`, in the model {Design(2, 48).parameters:,};")
print(f"FLOPs of a step {account['flops']:,}, counted by torch {counted:,}. 6ND: {rule:,}, {1 - rule / account['flops']:.1%} less.")
print(f"Per token it lacks {24 * 64 * 48:,} FLOPs of scores, and counts {6 * 133 * 48:,} for the table and norms, which multiply no matrix.")

# %% [markdown]
# Most of the memory is activations (notebook 14), counted for you.

# %%
explore(card, d_model=[*WIDTHS], layers=[1, 2, 4], batch=[*BATCHES])

# %% [markdown]
# Find the design whose parameters fit and whose activations do not, with batches of 16. Which width can never be taken?
#
# <details><summary>Answers</summary>4 × 32 needs 12.34 MiB. 96: one block of that width has 135,456 parameters.</details>
#
# ## 3 · A law from small runs
#
# The loss cannot be counted. You have small runs, with a tenth and three tenths of the order's FLOPs. They read batches of 4 texts, not 16, at half the rate, for four times as many steps. Each loss is the mean of up to three seeds; the last column says how far apart the seeds are.

# %%
runs = small_runs()
print(table())

# %% [markdown]
# Too small a model is bad, and so is too little text (Hoffmann et al., 2022):
#
# $$L(N, D) = E + \frac{A}{N^a} + \frac{B}{D^b}$$
#
# $N$ are parameters, $D$ bytes read; $E$ is what no model can learn. By hand: $E = 0.2$, $a = b = 0.5$, $N = 10^4$, $D = 10^6$, $A = 10$, $B = 100$ give $0.2 + 0.1 + 0.1 = 0.4$. Four times the parameters: 0.35. Four times the text as well: 0.3.

# %% [markdown]
# ### Exercise 2 · Fit the law  (4 points · 13 min · ●●●)
#
# `runs` are triples (N, D, loss), `floor` is $E$, `exponents` a list. For every pair $a, b$ from the list find the $A, B \ge 0$ with the smallest sum of squared *relative* errors,
#
# $$\sum \left(\frac{E + A/N^a + B/D^b}{L} - 1\right)^2,$$
#
# and return the best of all as `{"A": …, "B": …, "a": …, "b": …}`, right to four digits. Where $A$ or $B$ would be negative, the best law that is allowed has it at 0. Compute in fp64, without fitting libraries (`scipy`, `sklearn`).

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

# %%
with your("fit_law"):
    for name, depths in {"one block": (1,), "two and four": (2, 4), "all runs": (1, 2, 4)}.items():
        chosen = [(run.parameters, run.text, run.loss) for run in runs if run.layers in depths]
        law = fit_law(chosen, ENTROPY, EXPONENTS)
        off = max(abs(by_law(law, n, d) - loss) for n, d, loss in chosen)
        print(f"{name:13} {', '.join(f'{key} = {value:,.4g}' for key, value in law.items()):43} largest error {off:.3f}")

# %% [markdown]
# The law does not know depth and width. Compare one, two and four blocks with a law fitted to all runs:

# %%
explore(partial(figures.iso_flop, law), depth=[1, 2, 4])

# %% [markdown]
# ## 4 · Is the law worth anything?
#
# A law that fits the runs it was fitted to proves nothing. It must forecast others, better than two honest forecasts without a law:
#
# - **the trend**: continue the best losses of the two budgets as a power law of the excess $L - E$. One number for all designs;
# - **nearest × trend**: take the longer small run with the design's depth and the nearest $N$, and shrink its excess by the same power law.

# %%
print(f"for the order, with the given recipe: the trend {trend(ORDER['flops']):.3f} for every design; nearest × trend")
for layers, width in ((1, 32), (1, 64), (2, 24), (2, 32), (2, 48), (4, 24)):
    print(f"{layers} × {width}: {nearest_times_trend(layers, Design(layers, width).parameters, ORDER['flops']):.3f}")

# %% [markdown]
# ### Exercise 3 · Skill  (2 points · 6 min · ●)
#
# `forecast`, `measured` and `baseline` are dicts from names to losses. Return by which share the mean absolute error of the forecast is smaller than the baseline's: 1 is perfect, 0 as good as the baseline, less than 0 worse. If the names differ or there are none, or if the baseline is perfect: `ValueError`.

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

# %% [markdown]
# ### A test of your own
#
# Choose two of the sixteen runs. The cell fits the other fourteen, forecasts yours, and refuses a second choice.

# %%
held_out = [(2, 32, 6e10), (4, 24, 6e10)]  # yours: two runs as (blocks, width, FLOPs)
with your("fit_law", "skill"):
    print(hold_out(held_out, fit_law, skill))

# %% [markdown]
# ### A purse
#
# Small runs read batches of 4, the order 16. Does it matter?

# %%
predict("recipe_of_the_order")

# %% [markdown]
# `small(layers, d_model, flops)` trains with the given recipe and prints how far off the law was; `optimizer`, `rate`, `batch`, `warm_up` and `seed` are options. These runs are on us. The last two are a *pair*: same design and seed.

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
with your("skill"):
    ours, purse = Purse(law, skill, 8e10), Purse(law, skill)
ours.small(2, 24, 6e10)
ours.small(2, 48, 1e10, batch=4, rate=0.5)
_ = ours.small(2, 48, 1e10, batch=4, rate=0.5, optimizer="muon")

# %% [markdown]
# Is a difference luck? If two recipes were equally good, each pair's difference could as well have the other sign. The p-value is the fraction of all patterns of signs whose sum is at least as far from 0: 0.25 for three pairs that agree, 0.03 for six.
#
# Now `purse`, yours: $4\cdot10^{11}$ FLOPs, half a minute of training. Twice the order: finding out costs more than the run. Few long runs or many short ones? Spend it in your own cells.

# %% [markdown]
# ### Exercise 4 · Forecast what you have not seen  (4 points · 14 min · ●●●)
#
# A single number cannot say how sure it is. Each row of `asked` is a design: (blocks, $N$, $D$, batch, steps). Return for each an interval `(low, high)` that holds its loss *in four cases of five*. Rows of `runs` have the loss as a sixth number. Call your `fit_law` with `EXPONENTS`, and no other function of the course. The **interval score** judges: the mean of width + 10 · (distance to the interval, if the loss lies outside).
#
# | asked for | score at most | points |
# | --- | --- | --- |
# | small runs that are left out of `runs`, twice; two runs with the given recipe | 0.085; 0.10 | 2 |
# | in the grade: **14 designs with the given recipe that you never see**, with all or half of the order's FLOPs | 0.10; 0.065 | ½ + ½ |
# | the same, and the intervals depend on the runs with that recipe, or on batch and steps | 0.053 | 1 |
#
# In the grade `runs` are the sixteen, and four of ours with the given recipe, whatever you bought.

# %% exercise="forecasts"
def forecasts(
    runs: list[tuple[int, int, int, int, int, float]], floor: float, asked: list[tuple[int, int, int, int, int]]
) -> list[tuple[float, float]]:
    """Intervals for the losses of designs that were not trained; each should hold its loss in four cases of five."""
    ### BEGIN SOLUTION
    _, n, d, batch, _, loss = torch.tensor(runs, dtype=torch.float64).T
    small = batch == batch.min()  # the law is fitted to these
    law = fit_law(torch.stack([n, d, loss], dim=1)[small].tolist(), floor, EXPONENTS)

    def excess(n, d):
        return law["A"] / n ** law["a"] + law["B"] / d ** law["b"]

    # by which factor each run lies above the law, those with the order's recipe too
    ratios = (loss - floor) / excess(n, d)
    low, high = ratios.quantile(torch.tensor([0.1, 0.9], dtype=torch.float64)).tolist()
    return [(floor + low * excess(n, d), floor + high * excess(n, d)) for _, n, d, _, _ in asked]
    ### END SOLUTION


# %% check="forecasts"

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
mine, known = Design(2, 32), [*(run.row for run in runs), *ours.rows, *purse.rows]  # put the design that you think of
with your("forecasts"):
    [(low, high)] = forecasts(known, ENTROPY, [mine.asked(ORDER["flops"])])
print(f"given recipe: {low:.3f} to {high:.3f}; trend {trend(ORDER['flops']):.3f}, nearest × trend {nearest_times_trend(mine.layers, mine.parameters, ORDER['flops']):.3f}")

# %% [markdown]
# Fit again to each seed alone:

# %%
predict("agreement")

# %%
with your("fit_law"):
    for seed in (0, 1):
        fitted = fit_law([(run.parameters, run.text, run.loss) for run in small_runs(seed)], ENTROPY, EXPONENTS)
        loss = by_law(fitted, *Design(2, 32).asked(ORDER["flops"])[1:3])
        print(f"seed {seed}: a = {fitted['a']:.2f}, b = {fitted['b']:.2f}; 2 × 32 with the whole order: {loss:.3f}")

# %% [markdown]
# > **Spot the slip.** "Two independent fits agree, so the forecast is right to within their difference." If the formula, the recipe or the designs are wrong, both fits are wrong in the same way, and their agreement does not show it.
#
# ## 5 · Commit, and seal

# %% [markdown]
# ### Exercise 5 · Design and forecast  (4 points · 12 min · ●●●)
#
# Return a dict with your choice, `layers`, `d_model`, `steps`, `batch`, `optimizer`, `rate` and `warm_up`, and your forecasts: `parameters`, `flops` (of the *whole* training), bytes of `states` (as in Exercise 1, for Muon too), and `loss` (on fresh text, nats a byte). Call your `account_of`, and no other function of the course.
#
# | judged | points |
# | --- | --- |
# | the order is kept, and 90 % of its FLOPs are used. If not, nothing below counts | 1 |
# | `parameters`, `flops`, `states` are exact | 1 + 1 + 1 |
#
# The loss is judged in Exercise 6.

# %% exercise="commitment"
def commitment() -> dict[str, float | str]:
    """Your choice, and the forecasts of parameters, flops, states and loss."""
    ### BEGIN SOLUTION
    batch = 16
    costs = account_of(2, 24, 2, 64, 128, batch, 64)
    steps = int(2e11 // costs["flops"])
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

# %% [markdown]
# `seal` prints a digest of choice, forecast and seed. From here on the sealed numbers count. You may seal another plan; that is counted. Nothing keeps you from starting over: that is a matter of honour.

# %% tags=["nbval-ignore-output", "because it counts what was sealed in this folder"]
with your("account_of"):
    sealed = seal(commitment, seed=0)

# %% [markdown]
# ## 6 · Train, hand in, defend
#
# Half a minute:

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
if sealed:
    model, loss, written = sealed.train("Ben is in the wood. ")
    print(f"loss on fresh text: {loss:.4f}, forecast {sealed.plan['loss']}\n{written}")

# %% [markdown]
# `hand_over` puts weights, plan and loss into `trained.safetensors` and into this notebook: save it with its outputs.

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
if sealed:
    hand_over(sealed, model, loss)

# %% [markdown]
# ### Exercise 6 · What you trained  (6 points · 2 min · ●)
#
# Return what `trained.safetensors` holds, a dict, with `load_file`. The points are for the model, measured on 262,144 bytes of other stories:
#
# | judged | points |
# | --- | --- |
# | the weights give the reported loss to 0.01, on the notebook's fresh text. If not, nothing below counts | 1 |
# | on the other stories, too | 1 |
# | the forecast is the sealed one, and within 0.02 of that loss | 1 |
# | that loss is at most 0.005 above the best of the given recipe | 1 |
# | it is at least 0.004 below that best; at least 0.010 below it | 1 + 1 |
#
# That best is of all eight designs that keep the order with batches of 16. Two seeds of a run differ by up to 0.005 with AdamW, 0.008 with Muon. The check judges by the notebook's fresh text.

# %% exercise="trained"
def trained() -> dict[str, torch.Tensor]:
    """Weights, design, forecast and reported loss, as `trained.safetensors` holds them."""
    ### BEGIN SOLUTION
    return load_file("trained.safetensors")
    ### END SOLUTION


# %% check="trained"

# %% tags=["nbval-ignore-output", "because the text depends on the last digits of the weights"]
if sealed:
    with your("trained", "account_of"):
        print(sealed.speaks(trained(), "Clara is at the sea. Many "), sealed.compared(account_of, model), sep="\n\n")

# %% [markdown]
# And the designs that you did not choose, with the given recipe:

# %% tags=["nbval-ignore-output", "because your intervals depend on what you bought"]
if sealed:
    given = given_runs(after(sealed))
    with your("skill", "forecasts"):
        bars = forecasts(known, ENTROPY, [run.asked for run in given])
        print(skills(given, law, bars, skill))
figures.law_check(given, law, bars) if sealed else None

# %% [markdown]
# For two and four blocks the law is within 0.016, closer than both forecasts without a law. For one block it is too low by 0.010 to 0.035: it does not know what one block cannot do. It is too low nearly everywhere, as our first run from a purse said.
#
# An honest report says one more thing. *We* had seen the large runs when we chose which small ones to give you (at most 50,000 parameters, at least 300 steps). With every small run that we made, the law's skill on these designs was between −0.06 and 0.25. So the numbers show that a law from small runs *can* be worth something. A clean test needs designs that nobody had looked at when the runs were chosen; you sealed before you saw, and your forecast is one.
#
# And the other optimizer:

# %%
predict("six_longer_pairs")

# %%
if sealed:
    for name, optimizer, seed in (("Muon against AdamW", "muon", 0), ("seed 1 against seed 0", "adamw", 1)):
        found = differences(after(sealed), optimizer, seed)
        print(f"{name}: {', '.join(f'{each:+.3f}' for each in found)}; p = {by_chance(found):.3f}")

# %% [markdown]
# Muon is better in all eight designs, by 0.010 to 0.031; two seeds differ by less than 0.005. That all eight agree convinces, though each has one seed: of 256 patterns of signs only two are so extreme. The purse's first pair said the opposite. A run of 88 steps with 30 of warm-up is no small picture of a run of 441: a few longer runs beat many short ones.
#
# ### Your defence
#
# Written work beside the core, about 15 minutes.

# %% [markdown] task="defence" points="6"
# Take three numbers of your functions: the loss, one that was right to the last digit, and one that was off. For each: **what** you promised and what came; **why**, with a testable cause; **what you would measure** before a larger order to know whether it is the cause.
#
# What did you buy, what did it tell you, and how many plans did you seal? Would you sign a forecast for a hundred times this budget with the same law, and in which direction do you expect it to miss?
#
# Write below this cell.
#
# ### BEGIN MARK SCHEME
#
# - 0.5 · three numbers with units, one of them the loss: promised and measured
# - 0.5 · they agree with the notebook's own output
# - 0.5 · each error is compared with something: a baseline's error, or the spread of seeds
# - 1 · a cause of the loss's error that could be wrong
# - 1 · a cause of the other error that could be wrong
# - 1 · a measurement that would distinguish one of the causes from another (a second seed; the rate halved at 64 wide; depth against width at equal N)
# - 0.5 · what the purse was spent on, and what that can and cannot show
# - 1 · the last question: a direction with a reason, outside what was fitted
#
# Good causes: the scores and the table in 6ND; the law knows N but not how it is divided into width and depth; it was fitted to another batch and rate; the rate of the recipe falls as 1/√d; two seeds differ. "Randomness" alone, without the spread of seeds: nothing.
#
# Good reasons for a direction: the term with the smaller exponent decides in the end; the loss can only be near the floor; so errors become small in nats and large as a share of what is left.
#
# A defence that blames nothing and explains a forecast that was right counts as much as one of a miss.
# ### END MARK SCHEME

# %% [markdown]
# <details><summary>How others defended theirs (open this when yours is written)</summary>
#
# *The law's favourite had one block.* "I forecast 1 × 48. Small runs with one block lie above the law of two and four; I saw that and did not use it. I would train 1 × 32 and 2 × 24, of nearly equal N."
#
# *Muon, on one seed.* "Muon was 0.02 better in one pair. Seeds of short runs differ by as much: I was lucky. Six pairs would have fitted."
#
# </details>
#
# ## What to keep
#
# | forecast | by | how far off |
# | --- | --- | --- |
# | parameters, states | tensors | not at all |
# | FLOPs | products | not at all |
# | loss | $E + A/N^a + B/D^b$, from runs like the order | errors on unseen runs |
# | a better recipe | pairs, in runs that are long against their warm-up | p-value |
#
# ## Check yourself
#
# 1. Why does 6ND put you over the budget here, and hardly at all in GPT-3?
# 2. An interval holds all 14 losses. Is that good?
# 3. Your run beat the given recipe by 0.006. Two seeds differ by 0.004. What do you need?
#
# <details><summary>Answers</summary>
#
# 1. It leaves out the scores, $2\,n\,d$ beside the $12\,d^2$ of a layer. Here $n$ is more than $d$, in GPT-3 a sixth of it.
# 2. Not for four of five: the width costs.
# 3. More seeds of both, in pairs. Three never give a p-value below 0.25, six can give 0.03.
#
# </details>

# %% tags=["hide-input"]
assert f"{story_grammar().entropy_per_byte:.4f}" == f"{ENTROPY}" == "0.2221"
assert 10 + 10 + 16 + 18 + 6 == 60 and 3 * (2 * 2 * 44 + 32) == 624
assert (Design(2, 48).parameters, Design(2, 48).flops_of_step(), Design(2, 48).steps(2e11)) == (67_824, 452_984_832, 441)
assert min(Design(1, 96).parameters, Design(2, 96).parameters) > 100_000
assert Design(4, 32).parameters < 100_000 and Design(4, 32).memory() > 12 * 2**20
from lmcourse.chapters.capstone.after import check_text

assert [round(by_chance([0.01] * pairs), 2) for pairs in (3, 6)] == [0.25, 0.03]
assert len(runs) == 16 and max(run.parameters for run in runs) < 50_000
check_text()

# %% [markdown]
# ## Further
#
# Each block needs the core and nothing of the other blocks.
#
# ### A · Seconds  (11 min)
#
# The FLOPs belong to the model, the seconds to the machine. The usual way is to divide by a rate. Which rate?

# %%
predict("one_rate_for_all")

# %% tags=["nbval-ignore-output", "because it is a clock"]
import statistics

from lmcourse.chapters.capstone.recipe import probe

probes = {}
for width in (16, 48, 96):
    print(f"10 steps of 2 × {width} ...", flush=True)
    probes[width] = probe(Design(2, width), 10)
rates = {width: Design(2, width).flops_of_step() / statistics.median(times[3:]) for width, times in probes.items()}
print(f"96 wide reaches {rates[96] / rates[16]:.1f} times the rate of 16 wide")
figures.rate_by_width(rates)

# %% [markdown]
# So probe the model that you are going to train. Its first steps also pay for memory and caches.

# %% [markdown]
# ### Exercise 7 · Predicted seconds  (2 points · 6 min · ●)
#
# `probe` has the seconds of the first steps. Drop the first `warm` of them, and predict the seconds of a run of `steps` steps by the median of the others: one that another program disturbed does not move it. If no step is left: `ValueError`.

# %% exercise="predicted_seconds"
def predicted_seconds(probe: list[float], warm: int, steps: int) -> float:
    """Median seconds of a warm step, times the steps."""
    ### BEGIN SOLUTION
    return statistics.median(probe[warm:]) * steps  # of nothing it raises a StatisticsError, which is a ValueError
    ### END SOLUTION


# %% check="predicted_seconds"

# %% tags=["nbval-ignore-output", "because it is a clock"]
with your("predicted_seconds"):
    expected = predicted_seconds(probes[48], 3, Design(2, 48).steps(ORDER["flops"]))
print(f"2 × 48 with the whole order: about {expected:.0f} s by these ten steps")

# %% [markdown]
# ### B · Larger or longer?  (15 min)
#
# Given the law and a budget $C = 6ND$: which $N$? Every budget is a valley. On its left the model is too small, on its right it has read too little. At the bottom, one percent more of either helps equally.

# %% [markdown]
# ### Exercise 8 · The best split  (3 points · 9 min · ●●)
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

# %%
predict("tokens_per_parameter")

# %%
with your("best_split"):
    for flops in (2e10, 6e10, 2e11):
        size, text = best_split(law["A"], law["B"], law["a"], law["b"], flops)
        lost = [by_law(law, size * k, text / k) - by_law(law, size, text) for k in (1 / 3, 2 / 3, 1.5, 3)]
        print(f"{flops:.0e} FLOPs: {size:7,.0f} parameters, {text:9,.0f} bytes, {text / size:.1f} bytes a parameter;")
        print("   N times 1/3, 2/3, 1.5, 3 costs " + ", ".join(f"{each:.3f}" for each in lost) + " by the law")
with your("fit_law", "best_split"):
    for seed in (0, 1):
        own = fit_law([(run.parameters, run.text, run.loss) for run in small_runs(seed)], ENTROPY, EXPONENTS)
        splits = [best_split(own["A"], own["B"], own["a"], own["b"], flops) for flops in (2e10, 2e11)]
        print(f"seed {seed}: a = {own['a']}, b = {own['b']};", *(f"{d / n:.1f}" for n, d in splits), "bytes a parameter")

# %% [markdown]
# The valley is flat: for a size that is off by a factor of 1.5, by the law it costs 0.005, out of an excess of about 0.1. And sixteen runs do not determine the exponents: with one seed bytes per parameter fall with the budget, with the other they rise. *Twenty tokens a parameter* was found for one tokenizer, one kind of text and one range of budgets. Kaplan et al. (2020) had found something else, in part because of their warm-up and of what they did not count (Pearce & Song, 2024; Porian et al., 2024). And a model with many readers is trained *smaller* and for longer than any law says: Llama 3 8B read almost 1,900 tokens a parameter (Grattafiori et al., 2024), because serving is paid for every day.
#
# **Without the floor.** A laboratory does not know $E$: it fits $E$ together with the rest, to hundreds of runs. You have it. What is it worth?

# %%
predict("unknown_floor")

# %%
with your("fit_law"):
    for name, known_floor in (("the entropy", ENTROPY), ("0", 0.0)):
        own = fit_law([(run.parameters, run.text, run.loss) for run in runs], known_floor, EXPONENTS)
        errors = [abs(by_law(own, run.parameters, run.text, known_floor) - run.loss) for run in runs]
        print(f"floor {name}: mean error {sum(errors) / len(errors):.3f} on the small runs; the best loss by the law is")
        for flops in (6e10, 2e12, 2e13):
            lowest = min(by_law(own, n, flops / (6 * n), known_floor) for n in (10 ** (k / 100) for k in range(300, 800)))
            print(f"   {lowest:.3f} at {flops:.0e} FLOPs")

# %% [markdown]
# Both fit the small runs. One of them promises losses below the entropy, which no model can have.
#
# ### C · Which batch?  (2 min)
#
# Two runs that read the same texts cost the same FLOPs, whatever their batches are. Larger batches make fewer steps. Do they learn as much?

# %%
predict("small_batch_first")

# %%
from lmcourse.chapters.capstone.measured import STEPS_BY_BATCH, line_of_texts

print("2 × 24: steps to a loss of 0.5, at the better of two constant rates, after 30 steps of warm-up; mean of two seeds")
least_texts, least_steps = line_of_texts()
for batch, counts in STEPS_BY_BATCH.items():
    steps, line = sum(counts) / len(counts), least_texts + least_steps * batch
    print(f"batches of {batch:3}: {steps:6,.0f} steps, {batch * steps:7,.0f} texts; on the line {line:7,.0f}")
print(f"the line: {least_texts:,.0f} texts + {least_steps:.0f} steps · batch, so the critical batch is {least_texts / least_steps:.0f}")

# %% [markdown]
# The texts that a run reads grow with its batch $b$, about along a line, as on the small problem of notebook 04 (McCandlish et al., 2018): $S_\text{min}\,(b_c + b)$. However large the batch, it takes $S_\text{min}$ steps; however small, $S_\text{min}\,b_c$ texts. At the **critical batch size** $b_c$ a run needs twice the least of both. Far below it, twice the batch halves the steps and costs nothing. Far above it, twice the batch costs twice the texts.
#
# A laboratory with many GPUs pays for seconds too, and goes near $b_c$. Your order counts FLOPs, and so texts, and it allows no batch above 32: all are below $b_c$. (The line is for one loss and one model. McCandlish et al. find that $b_c$ grows as the loss falls.)
#
# ### D · Hand over  (4 min)
#
# What does the customer get? A model that writes, with a card that says what it is. Put a beginning of your own in place of ours; it should be of the stories' words, for it has read nothing else. Beside yours writes the best model of the given recipe.

# %% tags=["nbval-ignore-output", "because the text depends on the last digits of the weights"]
import sys
import textwrap
from contextlib import suppress

from lmcourse.chapters.capstone.after import recipe_model
from lmcourse.chapters.capstone.recipe import known_words, loss_on, write
from lmcourse.course.root import find_root
from lmcourse.own_package.weights import package_config, package_weights

if sealed:
    yours_to_choose = "Clara is at the sea. Many "
    for name, writer in (("yours", model), ("the given recipe's best, 4 × 24", recipe_model(sealed))):
        sample = write(writer, yours_to_choose, 250, seed=1)
        print(f"{name}: {loss_on(writer, texts()[1]):.3f} nats a byte, {known_words(sample):.0%} known words")
        print(textwrap.indent(textwrap.fill(yours_to_choose + sample, 84), "    "))
    print(f"\n{sealed.design.parameters:,} parameters · {loss - ENTROPY:.3f} nats a byte above the entropy of the language")
    cache = 8 * sealed.design.layers * sealed.design.d_model
    print(f"serving: {4 * sealed.design.parameters / 1024:.0f} KiB of weights in fp32, {cache} bytes of cache a byte of text")

# %% [markdown]
# Is it yours? The design is, and so may be the program: `lmcourse package`, in the course's folder, makes a model of your own answers to notebooks 02 to 12 (notebook 12). The trained weights fit into it.

# %% tags=["nbval-ignore-output", "because it depends on what was collected"]
sys.path.insert(0, str(find_root()))
with suppress(ImportError):  # there is none until `lmcourse package` has made it
    from my_transformer.model import Config as MyConfig
    from my_transformer.model import Transformer as MyTransformer
    from my_transformer.parts import PARTS

    if sealed:
        own_model = MyTransformer(MyConfig(**package_config(sealed.design.config)), PARTS)
        own_model.load_state_dict(package_weights(model))
        with torch.no_grad():
            first = texts()[0][:64].view(1, -1)
            gap = (own_model(first) - model(first)).abs().max().item()
        print(f"your program: {sum(p.numel() for p in own_model.parameters()):,} parameters, logits within {gap:.0e} of these")

# %% [markdown]
# `lmcourse train --help` trains larger ones, and `lmcourse generate` lets them write.
#
# ### E · The hunt  (16 min)
#
# You are the examiner. A colleague's notes make five claims. **Two of them are right.** A reader who doubts everything learns as little as one who believes everything.

# %%
from IPython.display import Markdown

from lmcourse.chapters.capstone.claims import show_claims

Markdown(show_claims())

# %% [markdown]
# ### Exercise 9 · The hunt  (4 points · 15 min · ●●)
#
# Return a list of five verdicts. A verdict is the word `"right"`, or the right number in place of the wrong one: a whole number exactly, any other to 1 %.

# %% exercise="hunt"
def hunt() -> list[float | str]:
    """The verdicts on the five claims."""
    ### BEGIN SOLUTION
    return ["right", 640, 1, "right", 11_274_289_152]
    ### END SOLUTION


# %% check="hunt"

# %% [markdown]
# ### Six questions to leave with
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
# ### Further reading
#
# - Kaplan et al. (2020), *Scaling laws for neural language models*; Hoffmann et al. (2022), *Training compute-optimal large language models*; Besiroglu et al. (2024), *Chinchilla scaling: a replication attempt*.
# - Pearce & Song (2024), *Reconciling Kaplan and Chinchilla scaling laws*; Porian et al. (2024), *Resolving discrepancies in compute-optimal scaling of language models*.
# - Grattafiori et al. (2024), *The Llama 3 herd of models*, section 3.2.1 on forecasting.

# %% tags=["hide-input"]
assert [round(sum(STEPS_BY_BATCH[batch]) / 2) for batch in (4, 16)] == [976, 312] and 35 < least_texts / least_steps < 50
assert all(abs((least_texts + least_steps * batch) / (batch * sum(counts) / 2) - 1) < 0.05 for batch, counts in STEPS_BY_BATCH.items())
