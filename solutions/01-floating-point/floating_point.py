# %% [markdown]
# # 01 · Floating point
#
# **Core · 90 min · 5 exercises · 16 points** · **Further · 67 min · 5 exercises · 14 points**
#
# Add 0.01 a thousand times and you expect 10. On the chip that trains a language model you may get something quite different. Nothing is broken: the machine keeps its promise. *Which bits does a training run need?*
#
# At the end your own rounding will have trained a small model in any format, and in four bits of your design.
#
# **You will be able to**
#
# - read any floating-point number, and say how far and how fine its format reaches;
# - predict when a gradient vanishes and a sum stops growing, and repair both.
#
# **You need** Python and a little PyTorch. No earlier notebook, no GPU.
#
# The check below each exercise shows what differs. Stuck? `hint("its_name")` gives a nudge. Dots (● to ●●●) show the difficulty.

# %%
import math
from functools import partial
from inspect import getsource

import torch
from jaxtyping import Float
from torch import Tensor

from lmcourse import numerics
from lmcourse.chapters.floating_point import figures
from lmcourse.chapters.floating_point.tiny_run import exact, loss_of, tiny_run
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.widgets import Log

start("01-floating-point")

# %% [markdown]
# ## 1 · A number, bit by bit
#
# Avogadro's number is $6.022 \times 10^{23}$: a sign, a **significand** and an **exponent**. It promises that the truth is at most *half* a step of the last digit away, here $0.0005 \times 10^{23}$. A floating-point number promises the same in base two.
#
# How would you squeeze $-2.5$ into sixteen bits? $-2.5 = -10.1_2 = -1.01_2 \times 2^1$. Any number except zero has such a form, with one 1 before the point. It leaves three things to store:
#
# | field | bits in fp16 | holds | here |
# | --- | --- | --- | --- |
# | **sign** | 1 | 0 for +, 1 for − | `1` |
# | **exponent** | 5 | the power of two, plus 15 | $1 + 15 = 16$ = `10000` |
# | **fraction** | 10 | what follows the point | `0100000000` |
#
# The 1 before the point is always there, so it is not stored: the *hidden one*. Only the fraction $f$ is, in the *mantissa bits*; the significand is $1.f$.
#
# Numbers below one need negative exponents, and the field holds only $0 \dots 31$. So a **bias** of $2^{E-1} - 1$ is added, for $E$ exponent bits: 15 for five bits, 127 for eight.
#
# Two exponent fields are special, so the largest exponent of fp16 is 15 and not 16:
#
# | exponent field | fraction | meaning |
# | --- | --- | --- |
# | all zeros | 0 | zero (with a sign: $+0$ and $-0$ are both there) |
# | all zeros | not 0 | **subnormal**: $0.f \times 2^{1 - \text{bias}}$, no hidden one |
# | all ones | 0 | $\pm\infty$ |
# | all ones | not 0 | **NaN**, "not a number": what 0/0 gives |
#
# All of this is IEEE 754. Click bits, or type a number. Can you make the smallest positive number of fp16? Infinity? A NaN?

# %%
figures.BitExplorer("fp16", -2.5)

# %% [markdown]
# More exponent bits reach *farther*, more mantissa bits *finer*:
#
# | format | sign / exponent / mantissa bits | bytes | largest number | gap at 1 |
# | --- | --- | --- | --- | --- |
# | **fp64** (double) | 1 / 11 / 52 | 8 | 1.8e308 | 2.2e-16 |
# | **fp32** (single) | 1 / 8 / 23 | 4 | 3.4e38 | 1.2e-7 |
# | **fp16** (half) | 1 / 5 / 10 | 2 | 65,504 | 0.00098 |
# | **bf16** (brain float) | 1 / 8 / 7 | 2 | 3.39e38 | 0.0078 |
# | **E4M3** (fp8) | 1 / 4 / 3 | 1 | 448 | 0.125 |
# | **E5M2** (fp8) | 1 / 5 / 2 | 1 | 57,344 | 0.25 |
#
# bf16 comes from Google Brain: it is fp32 without its last 16 bits. **E4M3** deviates from IEEE: it has no infinity, and only one pattern per sign, all ones in exponent *and* fraction, is NaN (Micikevicius et al., 2022).

# %% [markdown]
# ## 2 · Mind the gap
#
# Between 1 and 2 the exponent is fixed, so the $2^M$ fractions of $M$ mantissa bits are spread evenly, $2^{-M}$ apart. Between 2 and 4 the same number of fractions covers twice the length: the gap doubles, as at every power of two. The subnormals continue with the last gap, evenly down to zero.
#
# The gap at $x$ is the **ulp** of $x$, the *unit in the last place*. In fp16:
#
# | $\lvert x\rvert$, the upper end not included | gap to the next larger number |
# | --- | --- |
# | $2^{15} \dots 2^{16}$ | $2^{5} = 32$ |
# | … | … |
# | $2 \dots 4$ | $2^{-9}$ |
# | $1 \dots 2$ | $2^{-10}$ |
# | $1/2 \dots 1$ | $2^{-11}$ |
# | … | … |
# | $2^{-14} \dots 2^{-13}$, the smallest normal numbers | $2^{-24}$ |
# | $0 \dots 2^{-14}$, subnormal | $2^{-24}$ |

# %% [markdown]
# ### Exercise 1 · The gap at x  (3 points · 7 min · ●●)
#
# Return the gap from $|x|$ to the next larger number, in an IEEE format with these widths. At zero and among the subnormals it is the subnormal step. (A library's `ulp`, `nextafter`, `spacing` and `finfo` are forbidden.)


# %% exercise="ulp"
def ulp(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    """The gap above |x|: 2**-7 at x = 1 in bf16 (8, 7)."""
    ### BEGIN SOLUTION
    lowest = 2 - 2 ** (exponent_bits - 1)
    exponent = math.frexp(x)[1] - 1 if x else lowest
    return 2.0 ** (max(exponent, lowest) - mantissa_bits)
    ### END SOLUTION


# %% check="ulp"

# %% [markdown]
# In a formula, with $2^e \le |x| < 2^{e+1}$: $\;\text{ulp}(x) = 2^{\max(e,\; 1 - \text{bias}) - M}$. Relative to $x$ it is between $2^{-M-1}$ and $2^{-M}$ for all normal numbers. Hence *floating* point: the precision travels with the number. Find the magnitude from which bf16 can no longer tell $n$ from $n + 1$:

# %%
explore(figures.spacing)

# %% [markdown]
# A bf16 counter cannot count to 300: at 256 its gap is 2, and 257 becomes 256. A transformer turns positions into angles (notebook 09); the fastest is the position itself, in radians. How far is it off near 1000? (`with your(…)` runs your function if it passes its check, or else the course's.)

# %%
positions = torch.arange(998, 1004)
print(positions.tolist(), "→", positions.bfloat16().tolist())
print("largest error:", (positions - positions.bfloat16().float()).abs().max().item(), "radians")
with your("ulp"):
    print("half of your gap at 1000:", ulp(1000.0, 8, 7) / 2)

# %% [markdown]
# Why are the two numbers equal? Rounded to the nearest, no number moves by more than half a gap.
#
# ## 3 · To the nearest
#
# A result that falls into a gap moves to one of its ends. IEEE's default rule: to the nearer one, and on a **tie**, exactly in the middle, to the *even* one, whose last bit is 0. If every tie went up, as at school, a long sum would drift upwards.
#
# By hand, in bf16, where the gap at 1 is $2^{-7}$:
#
# - $1 + 2^{-8}$ lies in the middle between $1$ (fraction 0, even) and $1 + 2^{-7}$ (fraction 1, odd). It goes down, to 1.
# - $1 + 3 \cdot 2^{-8}$ lies in the middle between fractions 1 and 2. It goes up, to 2, which is even.
#
# Beyond the largest number, round as if the exponent had no limit; a result that does not exist becomes infinity. So fp16 still rounds 65,519 down to 65,504, but 65,520 is the tie, and its even neighbour would be $2^{16}$: infinity.

# %% [markdown]
# ### Exercise 2 · Round  (3 points · 12 min · ●●●)
#
# `x` is a float64 tensor of any shape. Round each number, of any size, to the nearest one of an IEEE format with these widths, fp32's perhaps, ties to even. Subnormals count, overflow gives infinity, and the sign is kept, also that of zero. `frexp`, `round` and `ldexp` of torch work on whole tensors; Python's loops are too slow for the runs below. Casts to another dtype and NumPy are forbidden.


# %% exercise="round_to"
def round_to(x: Float[Tensor, "..."], exponent_bits: int, mantissa_bits: int) -> Float[Tensor, "..."]:
    """The nearest numbers of the format, in float64: 0.1 becomes 0.0999755859375 in fp16 (5, 10)."""
    ### BEGIN SOLUTION
    lowest = 2 - 2 ** (exponent_bits - 1)
    exponent = (x.frexp().exponent - 1).clamp(min=lowest)
    step = torch.ldexp(torch.ones_like(x), exponent - mantissa_bits)
    result = (x / step).round() * step
    too_large = 2.0 ** (2 ** (exponent_bits - 1))  # the first power of two that does not exist
    return torch.where(result.abs() < too_large, result, x * math.inf)
    ### END SOLUTION


# %% check="round_to"

# %% [markdown]
# ## 4 · A run in your format

# %%
predict("tiny_gradient")

# %%
with your("round_to"):
    rounding = round_to  # yours from here on, if it passes its check
tiny = torch.tensor(1e-8).double()
print("fp16:", rounding(tiny, 5, 10).item(), "  bf16:", f"{rounding(tiny, 8, 7).item():.4e}")

# %% [markdown]
# A gradient that rounds to zero changes no weight. This is **underflow**. Does a training run notice? Here is one that is small enough to read: it sees 8 bytes of a story and predicts the next. Each byte becomes 16 numbers, a hidden layer of 64 with ReLU follows, then the *head*: 128 scores, the **logits**, one for each next byte. `store` is where **your function** rounds, forward a tensor and backward its gradient:

# %%
print(getsource(loss_of))

# %% [markdown]
# The weights that the optimizer updates (Adam: notebook 04) stay exact. A large model's step has millions of tokens, in pieces whose gradients are added up, so the loss of each counts $1/\text{pieces}$. `tiny_run` computes one piece, takes all others to be like it, and multiplies its gradients by `pieces` after the backward pass: in exact numbers, the division changes nothing. With 256 bytes a piece, 16,384 pieces are a step of 4.2 million. Guessing among 128 bytes costs $\ln 128 = 4.85$. After 100 steps:


# %% tags=["nbval-ignore-output", "because rounding may grow into the last digit shown"]
def stored_in(widths):
    return lambda x, role: rounding(x, *widths)


def ends(keep, **settings):
    return [round(tiny_run(keep, seed=seed, **settings).end, 3) for seed in (0, 1, 2)]


print("end of the loss, three seeds, exact:", ends(exact), " in bf16:", ends(stored_in((8, 7))))

# %%
predict("fp16_unscaled")

# %% tags=["nbval-ignore-output", "because this run blows up every rounding"]
print("in fp16:", ends(stored_in((5, 10))))
gradients = tiny_run(exact, steps=1).gradients
for name, first in (("exact", gradients), ("fp16", tiny_run(stored_in((5, 10)), steps=1).gradients)):
    embedding, hidden, head = (f"{100 * (gradient == 0).double().mean():3.0f} %" for gradient in first)
    print(f"{name:5}  first gradients that are 0: embedding {embedding}, hidden layer {hidden}, head {head}")

# %% [markdown]
# The run did not stand still: it learned the wrong thing. (In the exact run, the embedding's zeros are bytes that the batch does not have.) In fp16 only the head still learns, and it learns only half of its lesson. Of a token's 128 logits, the right one gets the gradient $(p - 1) / (256 \cdot 16{,}384)$, where $p$ is its probability, at first about $1/128$. That is $-2.4 \cdot 10^{-7}$, which survives. The 127 wrong ones get $p / (256 \cdot 16{,}384)$ with their own $p$, about $2 \cdot 10^{-9}$ each, which become 0. (Notebook 03 derives the two formulas.) So at first logits are only pushed up. A wrong one is pushed down only once its own $p$ is above $1/8$.
#
# The cure: multiply the loss by a large number, the **loss scale**, before the backward pass, and divide the gradients by it before the update (Micikevicius et al., 2018). How large should it be?

# %% tags=["nbval-ignore-output", "because rounding may grow into the last digit shown"]
for power, more in ((4, {}), (16, {}), (34, {}), (34, {"halve": True})):
    run = tiny_run(stored_in((5, 10)), scale=2.0**power, **more)
    note = ", halved after each overflow" if more else ""
    print(f"scale 2^{power:<2}  end of the loss {run.end:.2f}, {run.skipped:3} of 100 steps skipped{note}")
print(f"no scale, but 1024 pieces instead of 16,384: {tiny_run(stored_in((5, 10)), pieces=1024).end:.2f}")

# %% [markdown]
# - A wide range of scales works. At $2^{34}$ the other edge bites: gradients become infinite, and the step must be skipped. So one starts high and halves the scale after each overflow. (PyTorch's `GradScaler` does so, and doubles it again after 2,000 good steps.)
# - With 1024 pieces, gradients are 16 times as large and enough survive: it is large batches that need a scale.
# - bf16 needs none of this: its exponent is as wide as fp32's. So it has replaced fp16 in training.

# %% [markdown]
# ### Exercise 3 · The scales that work  (3 points · 12 min · ●●●)
#
# `gradients` is a list of tensors, and an IEEE format has these widths. Return `[smallest, largest]`, two powers of two from $2^{-200}$ to $2^{200}$, both included:
#
# - multiplied by `smallest`, at most 1 % of the *nonzero* gradients round to 0 in the format; no smaller power does that;
# - multiplied by `largest`, none of them becomes infinite; no larger power does that.
#
# Raise `ValueError` if no scale does both. All gradients are finite, and at least one is not 0. Multiply in `float64`, so that only the format's own edges count.


# %% exercise="loss_scales"
def loss_scales(gradients: list[Tensor], exponent_bits: int, mantissa_bits: int) -> list[float]:
    """The smallest and the largest loss scale: [0.5, 2.0**25] for 1e-3, -2e-6 and 7e-8 in fp16 (5, 10)."""
    ### BEGIN SOLUTION
    sizes = torch.cat([gradient.flatten().double().abs() for gradient in gradients])
    sizes = sizes[sizes > 0].sort().values
    bias = 2 ** (exponent_bits - 1) - 1
    half_smallest = 2.0 ** (-bias - mantissa_bits)  # and all below: rounds to 0
    overflow = sum(2.0 ** (bias - bit) for bit in range(mantissa_bits + 2))  # and all above: rounds to infinity
    survivor = sizes[len(sizes) // 100]  # the smallest that must not be lost
    # the exponent of frexp belongs to the first power of two above a number
    smallest = 2.0 ** (half_smallest / survivor).frexp().exponent.clamp(min=-200).item()
    largest = 2.0 ** -(sizes[-1] / overflow).frexp().exponent.clamp(min=-200).item()
    if smallest > largest:
        raise ValueError("no scale saves the small gradients and keeps the large ones finite")
    return [smallest, largest]
    ### END SOLUTION


# %% check="loss_scales"

# %% [markdown]
# Here are the *exact* run's first gradients that are not 0. Move the scale: it multiplies them all. The dashed lines are your two scales: at your `smallest`, the left dashed line is on the lower edge of fp16; at your `largest`, the right one on the upper edge.

# %%
with your("loss_scales"):
    yours = loss_scales(gradients, 5, 10)
histogram = partial(figures.gradient_histogram, gradients, yours)
explore(histogram, scale=Log(2.0**-4, 2.0**36), format=["fp16", "bf16", "e5m2"])

# %% [markdown]
# Unscaled, fp16 loses 29 % of them. In the fp16 run it was far more: most gradients of the logits became 0 first, and then reach no weight.
#
# Still, one step of the exact run forecasts which formats can train. Guess first: the cell then trains for up to a minute. (With an infinity, (4, 3) ends at 240, not at 448.)

# %%
predict("fp8_unscaled")

# %%
predict("fewest_bits")

# %% tags=["nbval-ignore-output", "because rounding may grow into the last digit shown"]
with your("loss_scales"):
    for widths in ((5, 2), (4, 3), (4, 2), (5, 1), (3, 4)):
        try:
            smallest, largest = (math.log2(scale) for scale in loss_scales(gradients, *widths))
        except ValueError:
            print(widths, "no scale does both")
            continue
        middle = (smallest + largest) // 2
        found = f"{1 + sum(widths):2} bits, scales 2^{smallest:.0f} to 2^{largest:.0f}"
        print(f"{widths!s:7} {found}, at 2^{middle:.0f}:", ends(stored_in(widths), scale=2.0**middle))
print(f"(4, 3) without a scale: {tiny_run(stored_in((4, 3))).end:.3f}")

# %% [markdown]
# Two mantissa bits are enough for this model, and one is not quite. Range comes from exponent bits or from a scale; with (3, 4) no scale works. And the edge is a real one: (4, 3) fails at $2^{24}$ with two of these seeds, because the scale was read off the first step, and later gradients are larger:

# %%
explore(partial(figures.loss_in_format, rounding), exponent_bits=(3, 8), mantissa_bits=(0, 7), scale=Log(1, 2.0**24))

# %% [markdown]
# ## 5 · A sum that stops growing

# %%
predict("sum_of_hundredths")

# %%
for dtype in (torch.bfloat16, torch.float16, torch.float32):
    total = torch.zeros((), dtype=dtype)
    for _ in range(1000):
        total = total + torch.tensor(0.01, dtype=dtype)
    print(f"{dtype!s:15}  1000 × 0.01 = {total.item():.4f}")

# %% [markdown]
# Move the increment. Where do the sums of bf16 stop, and what do these numbers have in common? How large is the increment there, measured in gaps?

# %%
explore(figures.running_sums, increment=Log(0.001, 1.0, 10), count=(100, 2000, 100))

# %% [markdown]
# ### Exercise 4 · The stall point  (3 points · 6 min · ●●)
#
# Start at zero and keep adding the same positive `increment`, rounding after every addition. Return the sum that is never left again. (The increment is a number of the format, and the sum stays far below the largest one.)


# %% exercise="stall_point"
def stall_point(increment: float, exponent_bits: int, mantissa_bits: int) -> float:
    """The sum that no longer grows: 256.0 for an increment of 1 in bf16 (8, 7)."""
    ### BEGIN SOLUTION
    return 2.0 ** (math.ceil(math.log2(increment)) + mantissa_bits + 1)
    ### END SOLUTION


# %% check="stall_point"

# %%
with your("stall_point"):
    for widths in ((8, 7), (5, 10), (4, 3), (5, 2)):
        x, sums = rounding(torch.tensor(0.01).double(), *widths), [torch.tensor(0.0)]
        while (after := rounding(sums[-1] + x, *widths)) != sums[-1]:
            sums.append(after)
        point = stall_point(x.item(), *widths)
        print(f"{widths!s:7} stays at {sums[-1]} after {len(sums) - 1:4} additions; `stall_point` says {point}")

# %% [markdown]
# At $s = 4$ the gap in bf16 is $2^{2-7} = 1/32$. Adding 0.01 moves the sum by less than half of that, so it rounds back to 4. The next addition finds the same 4. Forever. A sum stalls because its parts are small *compared to the sum*: as soon as
#
# $$\text{increment} \le \tfrac{1}{2}\,\text{ulp}(s).$$
#
# Why always at a power of two? The gap changes nowhere else: a sum that moves just above one power of two moves on to the next. On a tie, a sum that has just reached a power of two has a fraction of all zeros, so it is even, and stays.
#
# ### Let chance round
#
# Round up or down *by chance*, more often to the nearer number: 4.01 is about a third of the way from 4 to $4 + 1/32$, so it goes up in one case of three. Each addition is wrong, and on average the sum is right. This is **stochastic rounding** (Gupta et al., 2015). In bf16 it takes two lines: add 16 random bits, and cut them off:

# %%
generator, totals = torch.Generator().manual_seed(0), torch.zeros(1000)
for _ in range(1000):
    noise = torch.randint(2**16, (1000,), generator=generator, dtype=torch.int32)
    bits = (totals + torch.tensor(0.01)).view(torch.int32) + noise
    totals = (bits & -(2**16)).view(torch.float32)
print("the first five:", [round(total, 2) for total in totals[:5].tolist()])
print(f"all thousand: mean {totals.mean():.2f}, standard deviation {totals.std():.2f}, largest {totals.max():.2f}")

# %% [markdown]
# No sum stalls at 4. Each is off by half a unit or so: a thousand roundings are a thousand coin tosses.
#
# The rule: **whatever you accumulate, accumulate in higher precision.**
#
# | what | is a running sum of | kept in |
# | --- | --- | --- |
# | a dot product | many products | fp32, inside the tensor core |
# | a weight | all its updates | fp32 "master copy" |
# | a softmax or a norm | a row | fp32, then cast back |
# | activations inside a layer | nothing | bf16 or fp16; fp8 with scales |
#
# Working this way is called **mixed precision**: cheap formats for the products, fp32 for whatever has to remember.
#
# ## 6 · Sixteen numbers

# %% [markdown]
# ### Exercise 5 · Sixteen numbers  (4 points · 14 min · ●●●)
#
# Write `my_store(x, role)`. It returns a tensor like the float64 tensor `x` with **at most 16 different numbers** in it: which ones, you choose, for each tensor anew. (A scale for each tensor is free.) `role` is `"weight"`, `"activation"` or `"gradient"`. It rounds, and does no more. Weights and activations stay like `x`: their cosine with it is at least 0.9, and they are at most 1.05 times as large. Gradients keep the direction of `x`, on average over a run.
#
# The mean of the last ten of 100 losses counts, over three seeds. Exact: 0.71. Guessing: 4.85. On the way: 1.5 and 1.1. **Finish line: 0.97.** A natural start is **E2M1**: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. The cell below tries your function in 5 to 20 seconds.


# %% exercise="my_store"
def my_store(x: Float[Tensor, "..."], role: str) -> Float[Tensor, "..."]:
    """A tensor like x with at most 16 different numbers in it."""
    ### BEGIN SOLUTION
    positive = 2.0 ** torch.arange(7) if role == "gradient" else torch.tensor([0.5, 1, 1.5, 2, 3, 4, 6])
    numbers = torch.cat([-positive.flip(0), torch.zeros(1), positive]).double()
    scale = x.abs().max().clamp(min=1e-300) / numbers[-1]
    place = torch.bucketize(x / scale, numbers[1:-1])
    low, high = numbers[place], numbers[place + 1]
    up = (x / scale - low) / (high - low)
    return torch.where(up > (torch.rand_like(x) if role == "gradient" else 0.5), high, low) * scale
    ### END SOLUTION


# %% tags=["nbval-ignore-output", "because rounding may grow into the last digit shown"]
with your("my_store"):
    losses = ends(my_store)
print("end of the loss, three seeds:", losses, f" mean {sum(losses) / 3:.3f}")
if not max(losses) < 4.9:
    print("A run ended worse than guessing. In which role is rounding one-sided? Round that one differently.")

# %% check="my_store"

# %% [markdown]
# Which part of the loss is due to which role?

# %% tags=["nbval-ignore-output", "because rounding may grow into the last digit shown"]
with your("my_store"):
    for what, forward in (("gradients alone", False), ("weights and activations alone", True)):
        run = tiny_run(lambda x, role, on=forward: my_store(x, role) if on == (role != "gradient") else x)
        print(f"in 16 numbers are {what}, seed 0: {run.end:.2f}")

# %% [markdown]
# <details><summary>Afterwards: what to conclude</summary>
#
# Rounding to the nearest is biased for a sum of many gradients: the small ones always become 0. Chance is right on average. That leaves the 16 numbers for each role: gradients differ by powers of ten, and an activation after a ReLU is never negative. The industry's answers, MXFP4 and NVFP4, are in Further.
#
# </details>
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what is a float worth? | $(-1)^s \cdot 1.f \cdot 2^{e - \text{bias}}$, with bias $2^{E-1} - 1$; subnormals $0.f \cdot 2^{1-\text{bias}}$ |
# | how far, and how fine? | exponent bits decide the range; the gap is $2^{e-M}$, for $M$ mantissa bits |
# | how does fp16 training survive? | loss × scale, gradients / scale; bf16 needs none |
# | when does a sum stall? | when the increment is at most half a gap: accumulate in fp32, or let chance round |
#
# ## Check yourself
#
# 1. What exactly does $6.022 \times 10^{23}$ claim? And $6.0220 \times 10^{23}$?
# 2. Why does bf16 need no loss scale, although it is *less* precise than fp16?
#
# <details><summary>Answers</summary>
#
# 1. That the truth is within half a step of the last digit, $\pm 0.0005 \times 10^{23}$. One digit more promises ten times as much.
# 2. Underflow is a matter of range, and bf16 has the exponent bits of fp32.
#
# </details>

# %% tags=["hide-input"]
formats = numerics.FORMATS
assert [formats[name].bits // 8 for name in ("fp64", "fp32", "fp16", "bf16", "e4m3", "e5m2")] == [8, 4, 2, 2, 1, 1]
assert [f"{formats[name].max_finite:.2g}" for name in ("fp64", "fp32")] == ["1.8e+308", "3.4e+38"]
assert f"{formats['bf16'].max_finite:.3g}" == "3.39e+38"
assert [formats[name].max_finite for name in ("fp16", "e4m3", "e5m2")] == [65504, 448, 57344]
gaps = [f"{formats[name].epsilon:.2g}" for name in ("fp64", "fp32", "fp16", "bf16", "e4m3", "e5m2")]
assert gaps == ["2.2e-16", "1.2e-07", "0.00098", "0.0078", "0.12", "0.25"] and formats["e4m3"].epsilon == 0.125
assert numerics.ulp(256.0, formats["bf16"]) == 2 and numerics.round_to(257.0, formats["bf16"]) == 256
assert numerics.round_to(65519.0, formats["fp16"]) == 65504 and numerics.round_to(65520.0, formats["fp16"]) == math.inf
assert f"{formats['fp16'].min_subnormal:.3g}" == "5.96e-08" and f"{formats['fp16'].min_subnormal / 2:.0e}" == "3e-08"
assert f"{formats['bf16'].min_subnormal:.2g}" == "9.2e-41"
exponents = {-20: -24, -14: -24, -1: -11, 0: -10, 1: -9, 15: 5}
assert {e: math.log2(numerics.ulp(2.0**e, formats["fp16"])) for e in exponents} == exponents
assert totals.min() > 4 and abs(totals.mean() - 10) < 0.1 and 0.3 < totals.std() < 0.6
assert numerics.stall_point(0.01, formats["bf16"]) == 4 and numerics.ulp(4.0, formats["bf16"]) == 1 / 32
assert [f"{p / (256 * 16_384):.1e}" for p in (1 / 128 - 1, 1 / 128)] == ["-2.4e-07", "1.9e-09"]
sizes = torch.cat([gradient[gradient != 0] for gradient in gradients])
assert f"{100 * (rounding(sizes, 5, 10) == 0).double().mean():.0f}" == "29"
assert numerics.round_to(2.4e-7, formats["fp16"]) > 0 == numerics.round_to(2e-9, formats["fp16"])
assert [tiny_run(stored_in((4, 3)), scale=2.0**24, seed=seed).skipped > 50 for seed in range(3)] == [True, False, True]
assert rounding(torch.tensor([247.9, 248.0]).double(), 4, 3).tolist() == [240, math.inf] and round((4.01 - 4) * 32, 2) == 0.32
assert f"{256 * 16_384 / 1e6:.1f}" == "4.2" and f"{math.log(128):.2f}" == "4.85"

# %% [markdown]
# ## Further
#
# Each block needs the core, and no other block. Read them in any order.

# %% [markdown]
# ### A · Decode  (14 min)
#
# Is the formula of section 1 what the hardware does? Write the decoder, and count.

# %% [markdown]
# ### Exercise 6 · Decode  (4 points · 12 min · ●●●)
#
# `bits` is a number's bit pattern as an integer: sign first, then `exponent_bits` bits, then `mantissa_bits` bits. Return its value:
#
# $$(-1)^s \cdot 1.f \cdot 2^{e - \text{bias}} \qquad\text{or, if } e = 0, \qquad (-1)^s \cdot 0.f \cdot 2^{1 - \text{bias}}$$
#
# With `has_infinity` (IEEE) an exponent of all ones means `math.inf` or `math.nan`; without it (E4M3) only all ones everywhere is NaN, with either sign: `0x7F` and `0xFF`. Keep the sign of zero: `-0.0` is not `0.0` here. Raise `ValueError` if `bits` is negative or does not fit into these widths. Use Python's own numbers: `struct`, PyTorch and NumPy, which could reread the bits for you, are forbidden.


# %% exercise="decode_bits"
def decode_bits(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    """The value of a bit pattern: 0xC100 is -2.5 in fp16 (5 exponent bits, 10 mantissa bits)."""
    ### BEGIN SOLUTION
    if not 0 <= bits < 2 ** (1 + exponent_bits + mantissa_bits):
        raise ValueError(f"{bits} does not fit in {1 + exponent_bits + mantissa_bits} bits")
    mantissa = bits & (2**mantissa_bits - 1)
    exponent = (bits >> mantissa_bits) & (2**exponent_bits - 1)
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    bias = 2 ** (exponent_bits - 1) - 1
    fraction = mantissa / 2**mantissa_bits
    if exponent == 2**exponent_bits - 1:
        if has_infinity:
            return sign * math.inf if mantissa == 0 else math.nan
        if mantissa == 2**mantissa_bits - 1:
            return math.nan
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - bias)
    return sign * (1 + fraction) * 2.0 ** (exponent - bias)
    ### END SOLUTION


# %% check="decode_bits"

# %% [markdown]
# Here is every bit pattern of every small format, decoded by your function and by PyTorch:

# %%
with your("decode_bits"):
    for name in ("fp16", "bf16", "e4m3", "e5m2"):
        format = numerics.find_format(name)
        widths = format.exponent_bits, format.mantissa_bits, format.has_infinity
        codes = torch.arange(2**format.bits).to(torch.int16 if format.bits == 16 else torch.uint8)
        by_torch = codes.view(format.torch_dtype).double()
        decoded = torch.tensor([decode_bits(code, *widths) for code in range(2**format.bits)], dtype=torch.float64)
        same = torch.isclose(decoded, by_torch, rtol=0, atol=0, equal_nan=True)
        print(f"{name}: {int(same.sum()):6,} of {len(codes):6,} codes agree")

# %% [markdown]
# ### B · The largest number, and eight bits  (15 min)
#
# fp32 is PyTorch's default. Scientific computing lives in fp64; deep learning does not, because it would pay twice the bytes for digits that the noise of training drowns anyway. The figure shows one more format, **tf32**: the exponent of fp32 and the mantissa bits of fp16. Nothing is stored in it; a GPU's *tensor cores*, its units for matrix products, may read fp32 numbers that way.

# %%
explore(figures.range_precision_map, highlight=["bf16", "fp16", "fp32", "fp64", "tf32", "e4m3", "e5m2"])

# %% [markdown]
# ### Exercise 7 · The largest number  (2 points · 5 min · ●●)
#
# From the two widths alone (without `finfo`): what is the largest finite number of a format? IEEE reserves the top exponent; a format without infinity uses it.


# %% exercise="max_finite"
def max_finite(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    """The largest finite number: 65504.0 for fp16 (5, 10), 448.0 for E4M3 (4, 3, has_infinity=False)."""
    ### BEGIN SOLUTION
    bias = 2 ** (exponent_bits - 1) - 1
    if has_infinity:
        return (2 - 2.0**-mantissa_bits) * 2.0 ** (2**exponent_bits - 2 - bias)
    return (2 - 2 * 2.0**-mantissa_bits) * 2.0 ** (2**exponent_bits - 1 - bias)
    ### END SOLUTION


# %% check="max_finite"

# %%
with your("max_finite"):
    torchs = {"float16": (5, 10), "bfloat16": (8, 7), "float8_e5m2": (5, 2), "float8_e4m3fn": (4, 3, False)}
    for name, widths in torchs.items():
        print(f"{name:13} yours {max_finite(*widths):.6g}, torch's {torch.finfo(getattr(torch, name)).max:.6g}")

# %% [markdown]
# An fp8 number has 256 codes, few enough to see all at once. Each row below is 16 of them, one after the other: two exponents of E4M3, or four of E5M2. Look for the NaNs, and for the infinities that only one of the two formats has.

# %%
explore(figures.code_grid, format=["e4m3", "e5m2"], code=(0, 255))

# %%
predict("numbers_per_binade")

# %%
explore(figures.number_line, format=["e4m3", "e5m2", "fp16"], high=Log(0.0625, 64))

# %% [markdown]
# A format is fast only on a chip that can multiply in it. For fp8 that is NVIDIA's H100, its successors and the Ada cards (L4, L40S, RTX 40), but not the A100.
#
# **In real models.** Llama 3 is published in bf16, GPT-2 in fp32. Llama's and Gemma's rotary angles were once computed in bf16, under autocast: the bug of section 2 (huggingface/transformers, pull request 29285, 2024). DeepSeek-V3 was trained with most of its matrix products in fp8 (DeepSeek-AI, 2024). The proposal of the fp8 formats itself suggests E4M3 for weights and activations in the forward pass, where precision counts, and E5M2 for gradients in the backward pass, where range counts (Micikevicius et al., 2022).

# %% [markdown]
# ### C · Fp8, and a scale for every 32 numbers  (8 min)
#
# The two fp8 formats have edges on both sides, close together. So each tensor is multiplied by its own scale before it is cast to fp8. The figure shows what the scale decides. Within its range, E4M3 has half the error of E5M2, because it has one more mantissa bit. Outside, E5M2 works for many more powers of two.

# %%
explore(figures.quantisation_error, scale=Log(0.001, 10000.0, 10))

# %% [markdown]
# The newest formats go one step further, down to four bits: **E2M1** has the numbers 0, 0.5, 1, 1.5, 2, 3, 4, 6, and their negatives. There is almost no range left in it. So every block of 32 numbers gets its own scale, in one more byte: **E8M0**, eight exponent bits, a power of two. That makes MXFP4, of $4 + 8/32 = 4.25$ bits a number, and with E4M3 in the blocks MXFP8, of 8.25 (Open Compute Project, 2023).
#
# **NVFP4** (NVIDIA, 2025) has blocks of 16, and a scale in E4M3 for each: 4.5 bits a number. Here are both number formats, with one scale for a whole matrix of a small trained model and with one for every block. The error is the size of the difference, relative to the size of the matrix.

# %%
from lmcourse.pretrained import load_pretrained

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
CASTS = {
    "E4M3": (lambda x: x.clamp(-448, 448).to(torch.float8_e4m3fn).float(), 448),
    "E2M1": (lambda x: x.sign() * E2M1[(x.abs()[..., None] - E2M1).abs().argmin(-1)], 6),
}


def power_of_two(sizes, largest):
    return 2.0 ** (sizes.log2().floor() - math.floor(math.log2(largest)))


def in_e4m3(sizes, largest):
    shared = sizes.max() / largest / 448  # one fp32 number for the tensor
    return CASTS["E4M3"][0](sizes / largest / shared) * shared


def show_errors(matrix):
    """Print the relative error of all numbers but the first."""
    for name, (cast, largest) in CASTS.items():
        for block, scale_of in ((matrix.numel(), power_of_two), (32, power_of_two), (16, power_of_two), (16, in_e4m3)):
            blocks = matrix.reshape(-1, block)
            scale = scale_of(blocks.abs().amax(1, keepdim=True), largest)
            off = (cast(blocks / scale) * scale - blocks).flatten()[1:]
            error = off.norm() / blocks.flatten()[1:].norm()
            print(f"{name}, a scale for {block:6,}, {scale_of.__name__:12} {100 * error:5.1f} %")


matrix = load_pretrained().model.get_parameter("blocks.0.attention.layer.qkv.weight").detach().clone()
show_errors(matrix)

# %% [markdown]
# Blocks help E2M1, but not E4M3, which has exponents of its own. It even loses a little: a block's scale is rounded down to a power of two, as the specification proposes, and 0.7 % of the numbers then lie above 448 and are cut off.
#
# Which of its two changes makes NVFP4 better than MXFP4? Smaller blocks alone do not. The mantissa of the scale does: the largest number of each block lands near 6, the largest of E2M1, and not anywhere between 4 and 8.

# %%
predict("one_outlier")

# %%
matrix[0, 0] = 100 * matrix.abs().max()
show_errors(matrix)

# %% [markdown]
# With one scale, the outlier takes E2M1's whole range and all other numbers become 0. With blocks, only its 31 or 15 neighbours do. E4M3 does not care: its own exponents reach over 17 powers of two, from $2^{-9}$ to 448.

# %% [markdown]
# ### D · Accumulate  (8 min)
#
# A dot product is a running sum, and a matrix product is nothing but dot products, each as long as the model is wide. So tensor cores multiply in 16 bits but **accumulate in fp32**. What would it cost not to?

# %% [markdown]
# ### Exercise 8 · Accumulate  (3 points · 6 min · ●●)
#
# `a` and `b` are fp16 vectors of one length, perhaps 0. Cast them to the dtype named by `accumulator` ("float16" or "float32"), multiply, and add the products one after the other to a running total of that dtype. Return how far the result is from the exact dot product (computed in float64), as a positive number; it is infinite if the total overflows (or NaN, if infinite products of both signs meet).


# %% exercise="dot_product_error"
def dot_product_error(a: Tensor, b: Tensor, accumulator: str) -> float:
    """The absolute error of a dot product that is summed in the accumulator's precision."""
    ### BEGIN SOLUTION
    dtype = getattr(torch, accumulator)
    total = torch.zeros((), dtype=dtype)
    pair = torch.stack([a, b])
    x, y = pair.to(dtype)
    for product in x * y:
        total = total + product
    exact = torch.dot(*pair.double())
    return abs(total.item() - exact.item())
    ### END SOLUTION


# %% check="dot_product_error"

# %%
generator = torch.Generator().manual_seed(0)
a, b = torch.rand(2, 4096, generator=generator).half()
with your("dot_product_error"):
    for length in (16, 64, 256, 1024, 4096):
        off = [dot_product_error(a[:length], b[:length], accumulator) for accumulator in ("float16", "float32")]
        print(f"{length:5} products: off by {off[0]:.4f} in fp16, by {off[1]:.6f} in fp32")

# %% [markdown]
# For fp8, NVIDIA's H800 (an H100 with slower links) accumulates in only about 14 bits (DeepSeek-AI, 2024). Two more running sums belong into the table of section 5. Adam's two averages (notebook 04) sum all gradients of a weight: fp32 as a rule; DeepSeek-V3 takes bf16. The residual stream (notebook 10) sums what each layer adds: bf16 as a rule, because these are some hundred terms, not a million. What mixed precision costs in bytes is the subject of notebook 14; how to do it, of notebook 13.

# %% [markdown]
# ### E · What a tensor weighs  (6 min)
#
# Memory is the number of elements times the bytes of each: a (4, 8) matrix in fp32 takes $4 \cdot 8 \cdot 4 = 128$ bytes, or 1024 bits. In formulas we write $p$ for the bytes per element.
#
# One surprise: a `torch.bool` tells true from false, one bit, and takes a whole **byte**. Dropout masks and attention masks pay for that.

# %% [markdown]
# ### Exercise 9 · Bytes of a tensor  (2 points · 4 min · ●)
#
# Return the bytes of a tensor of this shape. `dtype` is a name as in torch: "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "int64" or "bool". A size may be 0, and the shape of a scalar is `[]`. Some would not fit into your memory: make none.


# %% exercise="tensor_bytes"
def tensor_bytes(shape: list[int], dtype: str) -> int:
    """The bytes of a tensor: 128 for [4, 8] in "float32"."""
    ### BEGIN SOLUTION
    sizes = {"float64": 8, "int64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "bool": 1}
    return math.prod(shape) * sizes[dtype]
    ### END SOLUTION


# %% check="tensor_bytes"

# %% [markdown]
# Now divide by what? A **MB** is a million bytes and a **GB** a thousand million; a **MiB** is $2^{20}$ bytes and a **GiB** is $2^{30}$. They differ by 4.9 and 7.4 percent. Disks are sold in GB; `nvidia-smi` counts in MiB. Many a "does it fit?" was lost in between.
#
# > **Spot the slip.** One weight matrix of GPT-3's feed-forward layers is $12{,}288 \times 49{,}152$. A colleague says that it takes 2306 MB in
# > fp32. Your function knows better:

# %%
with your("tensor_bytes"):
    for dtype in ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "int64", "bool"):
        size = tensor_bytes([12_288, 49_152], dtype)
        print(
            f"{dtype:14} {size:13,} bytes = {size / 1e6:7,.1f} MB = {size / 2**20:6,.0f} MiB = {size / 2**30:.3f} GiB"
        )

# %% [markdown]
# ### F · The softmax, where it all comes together  (14 min)
#
# A language model ends in a **softmax**. It turns any $n$ numbers, the logits $v$, into probabilities:
#
# $$\text{softmax}(v)_i = \frac{e^{v_i}}{\sum_j e^{v_j}}.$$
#
# All results are positive and sum to one, and a larger logit always gets the larger probability. Dividing the logits by a *temperature* sharpens or flattens them. And one more property, which is about to save us: adding the same number $c$ to all logits changes nothing, because $e^{v+c} = e^v e^c$ and $e^c$ cancels. See for yourself: which of the two sliders moves the bars?

# %%
explore(figures.softmax_bars, temperature=Log(0.1, 10.0), shift=(-20.0, 20.0, 1.0))

# %%
predict("softmax_overflow")

# %% [markdown]
# Written down as it stands, the formula has three ways to fail: $e^{v}$ overflows to infinity for a large logit, and $\infty / \infty$ is NaN; the *sum* overflows although each term is finite; or, if all logits are very negative, every term underflows and $0 / 0$ is NaN again. One NaN in the loss, and after the next update every weight is NaN.

# %%
explore(figures.softmax_overflow, format=["fp16", "bf16", "fp32"], logit=(-30.0, 120.0, 1.0), count=Log(1, 131072))

# %% [markdown]
# ### Exercise 10 · A softmax that cannot blow up  (3 points · 6 min · ●●)
#
# Softmax over the last axis, for rows of up to 1,000 logits of any size. Some may be $-\infty$, though never a whole row: a masked logit, whose probability is 0. Return the dtype of the logits; you may compute in float32. A library's `softmax` and `logsumexp` are forbidden.


# %% exercise="stable_softmax"
def stable_softmax(logits: Tensor) -> Tensor:
    """Softmax over the last axis that never overflows; same shape and dtype as the logits."""
    ### BEGIN SOLUTION
    weights = (logits - logits.amax(dim=-1, keepdim=True)).exp()
    return weights / weights.sum(dim=-1, keepdim=True)
    ### END SOLUTION


# %% check="stable_softmax"

# %%
logits = torch.tensor([[1.2, 1.0, 0.7]]).half()
with your("stable_softmax"):
    for factor in (1, 10, 100):
        plain = (factor * logits).exp() / (factor * logits).exp().sum(dim=-1, keepdim=True)
        print(f"fp16 logits times {factor:3}: plain {plain.tolist()[0]}, yours {stable_softmax(factor * logits).tolist()[0]}")

# %% [markdown]
# **In real models.** PyTorch subtracts the maximum, and computes in fp32 even when the tensors are bf16. That repairs the arithmetic; it does not keep the logits from growing, step after step, until one token takes everything. Notebook 16 has the tricks against that: z-loss, QK-norm and soft-capping.

# %% [markdown]
# ### Check yourself
#
# 1. fp16 and bf16 have 65,536 codes each. Which of them has more NaNs, and why?
# 2. A colleague stores a dropout mask of shape (32, 16, 2048, 2048) as `torch.bool`. What does it weigh, and what would it weigh at one bit each?
# 3. Why is $x - \max(x)$ safe, and $x / \max(x)$ no softmax at all?
# 4. Is 2306 right in any unit?
# 5. Which value would the pattern `0 1111 111` of E4M3 have, if it were not NaN?
# 6. Why does the scale of a block, E8M0, need neither a sign nor a mantissa?
# 7. You sum a million losses of about 3 in fp32, one by one. Should you worry? What if you sum them in pairs, then pairs of pairs?
#
# <details><summary>Answers</summary>
#
# 1. fp16. Every code with an exponent of all ones and a fraction other than 0 is NaN, so there are $2\,(2^{M} - 1)$: 2,046 in fp16, 254 in bf16.
# 2. $32 \cdot 16 \cdot 2048 \cdot 2048 = 2^{31}$ elements: 2 GiB as bytes, 256 MiB as bits.
# 3. Softmax does not change when a constant is *subtracted*, because it cancels. *Dividing* changes the differences between logits: it is a temperature, and one that depends on the data.
# 4. No. $12{,}288 \cdot 49{,}152 \cdot 4 = 2{,}415{,}919{,}104$ bytes: 2416 MB, 2304 MiB or 2.25 GiB.
# 5. The exponent field 1111 means $15 - 7 = 8$, so it would be $(1 + 7/8) \cdot 2^8 = 480$, one step of 32 after 448.
# 6. A scale is positive: each number keeps its own sign. And the scale only has to bring the block into range. A power of two does so without rounding, because it changes exponents alone; the digits are in the numbers themselves.
# 7. It does not stall, but near 3 million the gap is 0.25, so each addition may be off by 0.125, four percent of a loss. Summed in pairs, no number goes through more than 20 additions instead of a million, and the error all but vanishes. `torch.sum` adds in a similar way.
#
# </details>
#
# ### Further reading
#
# - IEEE 754-2019, *Standard for Floating-Point Arithmetic*, §3 and §4.
# - Goldberg, 1991, *What every computer scientist should know about floating-point arithmetic*.
# - Micikevicius et al., 2018, *Mixed precision training*; and 2022, *FP8 formats for deep learning*.
# - Gupta et al., 2015, *Deep learning with limited numerical precision*.
# - Open Compute Project, 2023, *OCP Microscaling Formats (MX) Specification*, version 1.0.
# - Kalamkar et al., 2019, *A study of BFLOAT16 for deep learning training*.
# - In this package: `lmcourse/numerics/`, which is short, and does all of the above.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you like.)

# %% tags=["hide-input"]
assert [16 >> formats[name].mantissa_bits for name in ("e4m3", "e5m2")] == [2, 4]
weight = load_pretrained().model.get_parameter("blocks.0.attention.layer.qkv.weight").detach().reshape(-1, 32)
cut = weight.abs() / 2.0 ** (weight.abs().amax(1, keepdim=True).log2().floor() - 8) > 448
assert f"{100 * cut.float().mean():.1f}" == "0.7"
assert formats["e4m3"].min_subnormal == 2**-9 and math.floor(math.log2(448)) + 9 == 17
assert 12_288 * 49_152 * 4 == 2_415_919_104 == 2304 * 2**20 == 2.25 * 2**30 and (1 + 7 / 8) * 2**8 == 448 + 32 == 480
assert round((2**20 / 1e6 - 1) * 100, 1) == 4.9 and round((2**30 / 1e9 - 1) * 100, 1) == 7.4
limits = [math.log(formats[name].max_finite) for name in ("fp16", "bf16", "fp32", "fp64")]
assert [round(limit, 1) for limit in limits] == [11.1, 88.7, 88.7, 709.8] and round(limits[0], 2) == 11.09
nans = [2 * (2 ** formats[name].mantissa_bits - 1) for name in ("fp16", "bf16")]
assert nans == [2046, 254] and 32 * 16 * 2048 * 2048 == 2 * 2**30 == 8 * 256 * 2**20
assert torch.tensor([0x7F, 0xFF], dtype=torch.uint8).view(torch.float8_e4m3fn).isnan().all()
assert numerics.ulp(3e6, formats["fp32"]) == 0.25 and round(0.125 / 3 * 100) == 4 and 2**19 < 1_000_000 <= 2**20
