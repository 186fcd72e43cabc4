# %% [markdown]
# # 01 · Floating point
#
# **115 min · 10 exercises · 27 points**
#
# Add 0.01 a thousand times and you expect 10. On the chip that trains a language model you may get something quite
# different. Nothing is broken: the machine keeps its promise exactly, and by the end of this notebook you will know what
# it promised.
#
# **You will be able to**
#
# - read any floating-point number, bit by bit, and say how far and how fine its format reaches;
# - predict when a gradient vanishes, when a sum stops growing and when a softmax blows up, and repair all three;
# - say what a tensor costs in bytes, without mixing up MB and MiB.
#
# **You need** Python and a little PyTorch. No earlier notebook, no GPU.
#
# Each exercise has a cell for your answer and a check below it. The check shows what differs, and often why. Stuck? Open
# the hint in its report, or type `hint()` in a new cell and run it again for the next one.
#
# - The dots in a heading are the difficulty: ● a few minutes, ●● some thought, ●●● hard.
# - *Differentiable* in a heading: autograd has to be able to follow your answer from the result back to its inputs.
# - Leave the inputs as they are: work on a copy.
# - A number may be Python's, NumPy's or a tensor of one number without axes; a whole number must be exact; a list may be
#   a tuple; where a tensor is asked for, an array must be converted.

# %%
import math
import random
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lmcourse import numerics
from lmcourse.chapters.floating_point import figures
from lmcourse.data.grammar import story_grammar
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.pretrained import load_pretrained
from lmcourse.widgets import Log

start("01-floating-point")

# %% [markdown]
# ## 1 · What does a written number promise?
#
# Chemists write Avogadro's number as $6.022 \times 10^{23}$. Nobody counted. What exactly is claimed?
#
# A number in scientific notation has three parts: a sign, a **significand** (6.022) and an **exponent** (23). Four
# digits of significand mean: of all four-digit numbers, this is the nearest to the truth. The last digit stands for
# $0.001 \times 10^{23}$. Had the truth been more than *half* such a step away, we would have written another digit.
#
# So the promise is an interval around the written number, half a step to each side. Move the slider and watch what every further
# digit buys.

# %%
explore(figures.significant_digits, digits=(1, 6))

# %% [markdown]
# ### Exercise 1 · The error of a decimal  (1 point · 3 min · ●)
#
# A number is written with `digits` significant digits, one of them before the point, and the power $10^\text{exponent}$. Return the largest distance between it and the number it was rounded from.

# %% exercise="decimal_error"
def decimal_error(digits: int, exponent: int) -> float:
    """Half a step of the last digit: 6.022e23 has 4 digits and exponent 23."""
    ### BEGIN SOLUTION
    step = 10.0 ** (exponent - (digits - 1))
    return step / 2
    ### END SOLUTION


# %% check="decimal_error"
check(decimal_error)
### BEGIN HIDDEN TESTS
check(decimal_error, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Keep this picture. A floating-point number makes the same promise in base two: a few digits, an exponent, and half a step
# of doubt on either side.

# %% [markdown]
# ## 2 · A number, bit by bit
#
# A computer has no decimal point to write down, only bits. How would you squeeze $-2.5$ into sixteen of them?
#
# Write it in base two first: $-2.5 = -10.1_2 = -1.01_2 \times 2^1$. Any number except zero can be brought into that form, with
# one single 1 before the point. That gives three things to store:
#
# | field | bits in fp16 | holds | here |
# | --- | --- | --- | --- |
# | **sign** | 1 | 0 for +, 1 for − | `1` |
# | **exponent** | 5 | the power of two, plus 15 | $1 + 15 = 16$ = `10000` |
# | **fraction** | 10 | what follows the point | `0100000000` |
#
# The 1 before the point is always there, so it is not stored: the *hidden one*. The fraction $f$ is only what comes after;
# the whole $1.f$ is the significand. (Texts often use "fraction", "significand" and "mantissa" for each other. We say
# *mantissa bits* for the stored ones, as everybody does, and mean $f$.)
#
# Why "plus 15"? The field can only hold $0 \dots 31$, and numbers below one need negative exponents. So a fixed **bias** of
# $2^{E-1} - 1$ is added, for $E$ exponent bits: 15 for five bits, 127 for eight.

# %%
sign, exponent, fraction = 0b1, 0b10000, 0b0100000000
value = (-1) ** sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
print(f"(-1)^{sign} · (1 + {fraction}/1024) · 2^({exponent} - 15) = {value}")

# %% [markdown]
# Two exponent fields are kept for special purposes, which is why the largest exponent of fp16 is 15 and not 16:
#
# | exponent field | fraction | meaning |
# | --- | --- | --- |
# | all zeros | 0 | zero (with a sign: $+0$ and $-0$ are both there) |
# | all zeros | not 0 | **subnormal**: $0.f \times 2^{1 - \text{bias}}$, no hidden one |
# | all ones | 0 | $\pm\infty$ |
# | all ones | not 0 | **NaN**, "not a number": what 0/0 gives |
#
# All of this is IEEE 754. The fp8 format **E4M3** is the first of several in deep learning that deviate: it has no infinity.
# There the exponent of all ones is an ordinary exponent, and only one pattern per sign, all ones in exponent *and* fraction,
# is NaN (Micikevicius et al., 2022). The sign bit does not matter: `0x7F` is NaN, and so is `0xFF`.
#
# Now play. Click a bit and see what it is worth; type a number and see how it is stored; change the format and watch your
# number move. Can you make the smallest positive number of fp16? Infinity? A NaN?

# %%
figures.BitExplorer("fp16", -2.5)

# %% [markdown]
# ### Exercise 2 · Decode  (4 points · 12 min · ●●●)
#
# `bits` is a number's bit pattern as an integer: sign first, then `exponent_bits` bits, then `mantissa_bits` bits. Return its
# value:
#
# $$(-1)^s \cdot 1.f \cdot 2^{e - \text{bias}} \qquad\text{or, if } e = 0, \qquad (-1)^s \cdot 0.f \cdot 2^{1 - \text{bias}}$$
#
# With `has_infinity` (IEEE) an exponent of all ones means `math.inf` or `math.nan`; without it (E4M3) only all ones everywhere is
# NaN. Keep the sign of zero: `-0.0` is not `0.0` here. Raise `ValueError` if `bits` is negative
# or does not fit into these widths. Use Python's own numbers: `struct`, PyTorch and NumPy, which could reread the bits for you, are forbidden.

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
check(decode_bits)
### BEGIN HIDDEN TESTS
check(decode_bits, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Is that really what the hardware does? Do not believe it, count. Here is every bit pattern of every small format, decoded by
# the course's own decoder and by PyTorch:

# %%
for name in ("fp16", "bf16", "e4m3", "e5m2"):
    format = numerics.find_format(name)
    integers = torch.int16 if format.bits == 16 else torch.uint8
    codes = torch.arange(2**format.bits).to(integers)
    by_torch = codes.view(format.torch_dtype).double()
    ours = torch.tensor([numerics.decode(code, format) for code in range(2**format.bits)], dtype=torch.float64)
    same = torch.isclose(ours, by_torch, rtol=0, atol=0, equal_nan=True)
    print(f"{name}: {int(same.sum()):6,} of {len(codes):6,} codes agree")

# %% [markdown]
# ## 3 · How far, how fine
#
# Sixteen bits can be spent in two ways. More exponent bits reach *farther*; more mantissa bits reach *finer*. You cannot have both, and
# every format of deep learning is one answer to that trade:
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
# fp32 is PyTorch's default. Scientific computing lives in fp64; deep learning does not, because it would pay twice the bytes
# for digits that the noise of training drowns anyway. bf16 comes from Google Brain: it is fp32 with the last 16 bits cut off,
# so it has fp32's range and little more than two decimal digits. fp16 has three digits, and a narrow range.
#
# The figure has one more, **tf32**: the exponent of fp32 and the mantissa bits of fp16. Nothing is stored in it; a GPU's *tensor cores*, its
# units for matrix products, may read fp32 numbers that way.

# %%
explore(figures.range_precision_map, highlight=["bf16", "fp16", "fp32", "fp64", "tf32", "e4m3", "e5m2"])

# %% [markdown]
# ### Exercise 3 · The largest number  (2 points · 5 min · ●●)
#
# From the two widths alone (without `finfo`): what is the largest finite number of a format? IEEE reserves the top exponent; a
# format without infinity uses it.

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
check(max_finite)
### BEGIN HIDDEN TESTS
check(max_finite, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Eight bits
#
# An fp8 number has 256 codes, few enough to see all at once. Each row below is 16 of them, one after the other: two exponents of
# E4M3, or four of E5M2. Look for the NaNs, and for the infinities that only one of the two formats has.

# %%
explore(figures.code_grid, format=["e4m3", "e5m2"], code=(0, 255))

# %% [markdown]
# A format is only fast on a chip that multiplies in it. Do you know yours?

# %%
predict("fp8_hardware")

# %% [markdown]
# **In real models.** Llama 3 is published in bf16, GPT-2 in fp32. DeepSeek-V3 was trained with most of its matrix products in fp8
# (DeepSeek-AI, 2024). The proposal of the fp8 formats itself suggests E4M3 for weights and activations in the forward pass,
# where precision counts, and E5M2 for gradients in the backward pass, where range counts (Micikevicius et al., 2022).

# %% [markdown]
# ## 4 · Mind the gap
#
# How far is it from one number to the next? That depends on where you stand.

# %%
predict("numbers_per_binade")

# %% [markdown]
# Between 1 and 2 the exponent is fixed, so the $2^M$ fractions are spread evenly, $2^{-M}$ apart. Between 2 and 4 the same
# number of fractions covers twice the length: the gap doubles. And so on, at every power of two. Below the smallest normal number
# the subnormals continue with the last gap, evenly down to zero.

# %%
explore(figures.number_line, format=["e4m3", "e5m2", "fp16"], high=Log(0.0625, 64))

# %% [markdown]
# The gap at $x$ is called the **ulp** of $x$, the *unit in the last place*. In fp16:
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
#
# ### Exercise 4 · The gap at x  (3 points · 7 min · ●●)
#
# Return the gap from $|x|$ to the next larger number, in an IEEE format with these widths. At zero and among the subnormals it is
# the subnormal step. (A library's `ulp`, `nextafter`, `spacing` and `finfo` are forbidden: you are building them here.)

# %% exercise="ulp"
def ulp(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    """The gap above |x|: 2**-7 at x = 1 in bf16 (8, 7)."""
    ### BEGIN SOLUTION
    lowest = 2 - 2 ** (exponent_bits - 1)
    exponent = math.frexp(x)[1] - 1 if x else lowest
    return 2.0 ** (max(exponent, lowest) - mantissa_bits)
    ### END SOLUTION


# %% check="ulp"
check(ulp)
### BEGIN HIDDEN TESTS
check(ulp, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Relative to $x$ the gap is about the same for all normal numbers: between $2^{-M-1}$ and $2^{-M}$. That is why it is called
# *floating* point: the precision travels with the number.
#
# In the figure below every format is a staircase. Find in it the magnitude from which bf16 can no longer tell $n$ from $n + 1$.

# %%
explore(figures.spacing)

# %% [markdown]
# In a formula, with $2^e \le |x| < 2^{e+1}$:
#
# $$\text{ulp}(x) = 2^{\max(e,\; 1 - \text{bias}) - M}.$$
#
# At 256 the gap of bf16 is 2. A bf16 counter cannot count to 300, and 257 is the first position that bf16 gets wrong: it becomes
# 256. A transformer turns each position into angles (notebook 09), and its fastest angle is the position itself, in radians. So this is how
# far that angle is off near position 1000:

# %%
positions = torch.arange(998, 1004)
print(positions.tolist(), "→", positions.bfloat16().tolist())
print("largest error:", (positions - positions.bfloat16().float()).abs().max().item(), "radians")

# %% [markdown]
# Real code had this bug: under autocast to bf16, Llama's and Gemma's rotary angles were computed in bf16 (huggingface/transformers,
# pull request 29285, 2024). Careful implementations compute positions and angles in fp32 and cast at the end.

# %% [markdown]
# ## 5 · To the nearest
#
# A result that falls into a gap has to move to one of its ends. IEEE's default rule: to the nearer one, and on a **tie**, exactly in the
# middle, to the *even* one, whose last bit is 0. Rounding ties up, as at school, would push every long sum a little upwards;
# going to even pushes up as often as down.
#
# By hand, in bf16, where the gap at 1 is $2^{-7}$:
#
# - $1 + 2^{-8}$ lies in the middle between $1$ (fraction 0, even) and $1 + 2^{-7}$ (fraction 1, odd). It goes down, to 1.
# - $1 + 3 \cdot 2^{-8}$ lies in the middle between fractions 1 and 2. It goes up, to 2, which is even.

# %%
for steps in (1, 3):
    x = 1 + steps * 2**-8
    print(f"1 + {steps}·2^-8 = {x:.8f}  →  bf16 {torch.tensor(x).bfloat16().item():.8f}")

# %% [markdown]
# What if the nearest value is beyond the largest one? Round as if the exponent had no limit; if the result is larger than the
# largest finite number, it becomes infinity. So fp16 still rounds 65,519 down to 65,504, but 65,520 is the tie, and its even neighbour
# would be $2^{16}$, which does not exist: infinity.
#
# ### Exercise 5 · Round  (3 points · 12 min · ●●●)
#
# Round the finite `x` to the nearest number of an IEEE format with these widths, ties to even. Subnormals count, overflow gives
# infinity, and the sign is kept, also that of zero. You may use your `ulp`. PyTorch and NumPy,
# whose dtypes would round for you, are forbidden.

# %% exercise="round_to"
def round_to(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    """The nearest number of the format: 0.1 becomes 0.0999755859375 in fp16 (5, 10)."""
    ### BEGIN SOLUTION
    lowest = 2 - 2 ** (exponent_bits - 1)
    step = 2.0 ** (max(math.frexp(x)[1] - 1, lowest) - mantissa_bits)
    result = round(abs(x) / step) * step
    too_large = 2.0 ** (2 ** (exponent_bits - 1))  # the first power of two that does not exist
    return math.copysign(result if result < too_large else math.inf, x)
    ### END SOLUTION


# %% check="round_to"
check(round_to)
### BEGIN HIDDEN TESTS
check(round_to, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 6 · Too small to be seen

# %%
predict("tiny_gradient")

# %%
tiny = torch.tensor(1e-8)
print("fp16:", tiny.half().item(), "  bf16:", f"{tiny.bfloat16().item():.4e}")
print("the smallest positive number of fp16:", numerics.FP16.min_subnormal)

# %% [markdown]
# A gradient that rounds to zero changes no weight. This is **underflow**. Does a whole training run notice? Here is a real one, small enough
# to read: it sees 8 bytes of a story and predicts the next. Each byte becomes 16 numbers, a hidden layer of 64 with ReLU follows, then
# the *head*: 128 scores, the **logits**, one for each possible next byte. (Section 9 makes probabilities of them.) As in practice, the weights are kept in fp32,
# and each step casts them to `dtype` for the forward and backward pass.
#
# Why is the loss divided by `pieces`? A large model's step has millions of tokens, too many for one pass. They come in pieces, and the gradients of the pieces
# are added up, so each piece counts $1/\text{pieces}$. With 256 bytes a piece, 16,384 pieces would be a step of 4.2 million. We compute one piece and
# pretend that the others are like it. (`scale` comes later. The optimizer, Adam, is the subject of notebook 04.)

# %% tags=["nbval-ignore-output", "because rounding in 16 bits may grow into the last digit shown"]
stories, source = story_grammar(), random.Random(0)
text = torch.tensor(list("".join(stories.generate(source) for _ in range(200)).encode()))


def tiny_run(dtype, scale=1.0, pieces=16_384, seed=0, halve=False):
    """Train for 100 steps: the mean of the last ten losses, the first step's gradients, and how many steps were skipped."""
    draw = torch.Generator().manual_seed(seed)
    embedding, hidden, head = (torch.randn(128, width, generator=draw) for width in (16, 64, 128))
    weights = [embedding, hidden / 128**0.5, 0.1 * head[:64] / 64**0.5]
    optimizer = torch.optim.Adam([weight.requires_grad_() for weight in weights], lr=0.01)
    losses, first, skipped = [], None, 0
    for _ in range(100):
        windows = text[torch.randint(len(text) - 8, (256, 1), generator=draw) + torch.arange(9)]
        embedding, hidden, head = copies = [weight.detach().to(dtype).requires_grad_() for weight in weights]
        logits = (embedding[windows[:, :8]].flatten(1) @ hidden).relu() @ head
        loss = cross_entropy(logits.float(), windows[:, 8])
        (loss / pieces * scale).backward()
        losses.append(loss.item())
        gradients = [copy.grad.float() for copy in copies]
        first = first or gradients
        if all(gradient.isfinite().all() for gradient in gradients):
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.grad = gradient / scale * pieces
            optimizer.step()
        else:  # an infinite gradient would ruin the weights
            skipped, scale = skipped + 1, scale / 2 if halve else scale
    return sum(losses[-10:]) / 10, first, skipped


for dtype in (torch.float32, torch.bfloat16):
    ends = [tiny_run(dtype, seed=seed)[0] for seed in range(3)]
    print(f"{dtype!s:15}  end of the loss, three seeds:", "  ".join(f"{end:5.2f}" for end in ends))
    assert max(ends) < 0.8

# %%
predict("fp16_unscaled")

# %% tags=["nbval-ignore-output", "because this run blows up every rounding"]
ends = [tiny_run(torch.float16, seed=seed)[0] for seed in range(3)]
print("torch.float16    end of the loss, three seeds:", "  ".join(f"{end:5.2f}" for end in ends))
assert min(ends) > 6

# %% [markdown]
# Guessing among 128 bytes costs $\ln 128 = 4.85$. So the run did not stand still: it learned the wrong thing. Which gradients are 0 in its first step?

# %%
gradients = tiny_run(torch.float32)[1]
for dtype in (torch.float32, torch.float16):
    embedding, hidden, head = (f"{100 * (gradient == 0).float().mean():3.0f} %" for gradient in tiny_run(dtype)[1])
    print(f"{dtype!s:15}  gradients that are 0: embedding {embedding}, hidden layer {hidden}, head {head}")

# %% [markdown]
# (In fp32 the zeros of the embedding are bytes that do not occur in the batch.) In fp16 only the head still learns, and it learns one-sidedly. Of a token's 128 logits, the right one gets the
# gradient $(p - 1) / (256 \cdot 16{,}384)$, where $p$ is its probability, at first about $1/128$. That is $-2.4 \cdot 10^{-7}$, which survives. The 127 wrong ones get
# $p / (256 \cdot 16{,}384)$ with their own $p$, about $2 \cdot 10^{-9}$ each, which become 0. (Notebook 03 derives the two formulas.) So at first logits are only pushed up. A wrong one is pushed down only once its own $p$ is above $1/8$.
#
# The cure is simple: multiply the loss by a large number, the **loss scale**, before the backward pass. All gradients
# grow by it. Divide them by it, in fp32, before the update (Micikevicius et al., 2018). How large should it be?

# %% tags=["nbval-ignore-output", "because rounding in 16 bits may grow into the last digit shown"]
for power, more in ((4, {}), (8, {}), (16, {}), (34, {}), (34, {"halve": True})):
    end, _, skipped = tiny_run(torch.float16, scale=2.0**power, **more)
    note = ", halved after each overflow" if more else ""
    print(f"scale 2^{power:<2}  end of the loss {end:.2f}, {skipped:2} of 100 steps skipped{note}")
end, _, _ = tiny_run(torch.float16, pieces=1024)
print(f"no scale, but 1024 pieces instead of 16,384: {end:.2f}")

# %% [markdown]
# - A wide range of scales works, and the run ends as in fp32.
# - At $2^{34}$ the other edge bites: gradients become infinite, and the step must be skipped. In practice one starts high and halves the scale after each
#   overflow; then a few skipped steps at the start are the only cost. (PyTorch's `GradScaler` does so, and doubles it again after 2,000 good steps.)
# - Without a scale, this model gets through with 1024 pieces: the gradients are 16 times as large, and enough of them survive. So it is large batches, among others, that need a scale.
#
# bf16 needs none of this: its exponent is as wide as fp32's. That is the main reason why it has replaced fp16 in training.
#
# ### Exercise 6 · The scales that work  (3 points · 12 min · ●●●)
#
# `gradients` is a list of tensors, and an IEEE format has these widths. Return `[smallest, largest]`, two powers of two from $2^{-200}$ to $2^{200}$, both included:
#
# - multiplied by `smallest`, at most 1 % of the *nonzero* gradients round to 0 in the format; no smaller power does that;
# - multiplied by `largest`, none of them becomes infinite; no larger power does that.
#
# Raise `ValueError` if no scale does both. All gradients are finite, and at least one is not 0. Multiply in `float64`, so that only the format's own edges count.

# %% exercise="loss_scales"
def loss_scales(gradients: list[Tensor], exponent_bits: int, mantissa_bits: int) -> list[float]:
    """The smallest and the largest loss scale: [0.5, 2.0**25] for [1e-3, -2e-6, 7e-8] in fp16 (5, 10)."""
    ### BEGIN SOLUTION
    sizes = torch.cat([gradient.flatten().double().abs() for gradient in gradients])
    sizes = sizes[sizes > 0].sort().values
    bias = 2 ** (exponent_bits - 1) - 1
    half_smallest = 2.0 ** (-bias - mantissa_bits)  # and all below: rounds to 0
    overflow = (2 - 2.0 ** (-mantissa_bits - 1)) * 2.0**bias  # and all above: rounds to infinity
    survivor = sizes[len(sizes) // 100]  # the smallest that must not be lost
    smallest = 2.0 ** max(-200, math.floor(math.log2(half_smallest / survivor)) + 1)
    largest = 2.0 ** min(200, math.ceil(math.log2(overflow / sizes[-1])) - 1)
    if smallest > largest:
        raise ValueError("no scale saves the small gradients and keeps the large ones finite")
    return [smallest, largest]
    ### END SOLUTION


# %% check="loss_scales"
check(loss_scales)
### BEGIN HIDDEN TESTS
check(loss_scales, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Here are the gradients of the *fp32* run's first step that are not 0. (The fp16 run lost more: inside the backward pass, gradients that are
# not yet summed over the batch are smaller still.) Move the scale: it multiplies the gradients, and the two dashed lines with
# them. At your `smallest`, the left dashed line is exactly on the lower edge of fp16; at your `largest`, the right one is on the upper edge.
# (`with your("loss_scales"):` runs its lines with your function if it passes its check, and with the course's if not. It says which.)

# %%
with your("loss_scales"):
    yours = loss_scales(gradients, 5, 10)
    print(f"fp16: from 2^{math.log2(yours[0]):.0f} to 2^{math.log2(yours[1]):.0f}")
explore(partial(figures.gradient_histogram, gradients, yours), scale=Log(2.0**-4, 2.0**36), format=["fp16", "bf16", "e5m2"])

# %% [markdown]
# The two fp8 formats have edges on both sides, close together. So each tensor is multiplied by its own scale before it is cast to
# fp8. The figure shows what the scale decides. Within its range, E4M3 has half the error of E5M2, because it has one more mantissa
# bit. Outside, E5M2 works for many more powers of two.

# %%
explore(figures.quantisation_error, scale=Log(0.001, 10000.0, 10))

# %% [markdown]
# ### A scale for every 32 numbers
#
# The newest formats go one step further, down to four bits: **E2M1** has the numbers 0, 0.5, 1, 1.5, 2, 3, 4, 6, and their negatives. There is almost no range left in it. So
# every block of 32 numbers gets its own scale, in one more byte: **E8M0**, eight exponent bits, a power of two. That makes MXFP4, of
# $4 + 8/32 = 4.25$ bits a number, and with E4M3 in the blocks MXFP8, of 8.25 (Open Compute Project, 2023).
#
# Here are both formats, with one scale for the whole matrix and with one for every block, on a matrix of a small trained model. The error is the size of the difference, relative to the size of the matrix.

# %%
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
CASTS = {
    "E4M3": (lambda x: x.clamp(-448, 448).to(torch.float8_e4m3fn).float(), 448.0),
    "E2M1": (lambda x: x.sign() * E2M1[(x.abs()[..., None] - E2M1).abs().argmin(-1)], 6.0),
}


def errors(matrix):
    """Print the relative error of all numbers but the first."""
    for name, (cast, largest) in CASTS.items():
        blocks, shared = matrix.reshape(-1, 32), matrix.abs().max() / largest
        scales = 2.0 ** (blocks.abs().amax(1, keepdim=True).log2().floor() - math.floor(math.log2(largest)))
        for what, scale in (("one scale     ", shared), ("scales for 32 ", scales)):
            off = (cast(blocks / scale) * scale - blocks).flatten()[1:]
            print(f"{name}, {what}: {100 * off.norm() / blocks.flatten()[1:].norm():5.1f} %")


matrix = load_pretrained().model.get_parameter("blocks.0.attention.layer.qkv.weight").detach().clone()
errors(matrix)

# %% [markdown]
# Blocks help E2M1, but not E4M3, which has exponents of its own. It even loses a little: a block's scale is rounded down to a power of two, as the specification
# proposes, and 0.7 % of the numbers then lie above 448 and are cut off.

# %%
predict("one_outlier")

# %%
matrix[0, 0] = 100 * matrix.abs().max()
errors(matrix)

# %% [markdown]
# With one scale, the outlier takes E2M1's whole range and all other numbers become 0. With blocks, only its 31 neighbours do. E4M3 does not care: its own exponents
# reach over 17 powers of two, from $2^{-9}$ to 448.

# %% [markdown]
# ## 7 · A sum that stops growing
#
# Back to the riddle from the start.

# %%
predict("sum_of_hundredths")

# %%
for dtype in (torch.bfloat16, torch.float16, torch.float32):
    total = torch.zeros((), dtype=dtype)
    for _ in range(1000):
        total = total + torch.tensor(0.01, dtype=dtype)
    print(f"{dtype!s:15}  1000 × 0.01 = {total.item():.4f}")

# %% [markdown]
# Does every sum stop at 4? Move the increment. Where do the sums of bf16 stop, and what do these numbers have in common? How large is the increment
# there, measured in gaps (Exercise 4)?

# %%
explore(figures.running_sums, increment=Log(0.001, 1.0, 10), count=(100, 2000, 100))

# %% [markdown]
# ### Exercise 7 · The stall point  (3 points · 6 min · ●●)
#
# Start at zero and keep adding the same positive `increment`, rounding after every addition. Return the sum that is
# never left again. (The increment is a number of the format, and the format's range is wide enough.)

# %% exercise="stall_point"
def stall_point(increment: float, exponent_bits: int, mantissa_bits: int) -> float:
    """Where a running sum stops: 4.0 for 0.01 in bf16 (8, 7)."""
    ### BEGIN SOLUTION
    return 2.0 ** (math.ceil(math.log2(increment)) + mantissa_bits + 1)
    ### END SOLUTION


# %% check="stall_point"
check(stall_point)
### BEGIN HIDDEN TESTS
check(stall_point, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Walk it through. At $s = 4$ the gap in bf16 is $2^{2-7} = 1/32$. Adding 0.01 moves the sum by less than half of that, so it rounds
# back to 4. The next addition finds the same 4. Forever.
#
# A sum does not stall because its parts are small. It stalls because they are small *compared to the sum*: as soon as
#
# $$\text{increment} \le \tfrac{1}{2}\,\text{ulp}(s).$$
#
# On a tie, the even neighbour wins; a sum that has just reached a power of two has a fraction of all zeros, so it is even, and stays.
#
# ### Let chance round
#
# There is a way out, even in 16 bits. Round up or down *by chance*, to the nearer number more often:
# 4.01 is about a third of the way from 4 to $4 + 1/32$, so it goes up in one case of three.
# Each addition is wrong, and on average the sum is right. This is **stochastic rounding** (Gupta et al., 2015).
# bf16 is fp32 without its last 16 bits, so it takes two lines: add 16 random bits, and cut them off. A thousand sums at once:

# %%
generator, totals = torch.Generator().manual_seed(0), torch.zeros(1000)
for _ in range(1000):
    noise = torch.randint(2**16, (1000,), generator=generator, dtype=torch.int32)
    bits = (totals + torch.tensor(0.01)).view(torch.int32) + noise
    totals = (bits & -(2**16)).view(torch.float32)
print("the first five:", [round(total, 2) for total in totals[:5].tolist()])
print(f"all thousand: mean {totals.mean():.2f}, standard deviation {totals.std():.2f}, largest {totals.max():.2f}")

# %% [markdown]
# No sum stalls at 4. Each is off by half a unit or so, because a thousand roundings are a thousand coins. Some optimizers keep their weights in bf16 in this way.
#
# A dot product is a running sum, and a matrix product is nothing but dot products, each as long as the model is wide. So tensor cores
# multiply in 16 bits but **accumulate in fp32**. What would it cost not to?
#
# ### Exercise 8 · Accumulate  (3 points · 6 min · ●●)
#
# `a` and `b` are fp16 vectors of one length, perhaps 0. Cast them to the dtype named by `accumulator` ("float16" or "float32"), multiply, and add the products one
# after the other to a running total of that dtype. Return how far the result is from the exact dot product (computed in float64), as
# a positive number; it is infinite if the total overflows (or NaN, if infinite products of both signs meet).

# %% exercise="dot_product_error"
def dot_product_error(a: Tensor, b: Tensor, accumulator: str) -> float:
    """The absolute error of a dot product that is summed in the accumulator's precision."""
    ### BEGIN SOLUTION
    dtype = getattr(torch, accumulator)
    total = torch.zeros((), dtype=dtype)
    x, y = torch.stack([a, b]).to(dtype)
    for product in x * y:
        total = total + product
    exact = torch.dot(a.double(), b.double())
    return abs(total.item() - exact.item())
    ### END SOLUTION


# %% check="dot_product_error"
check(dot_product_error)
### BEGIN HIDDEN TESTS
check(dot_product_error, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# One rule covers most of what practice has learned: **whatever you accumulate, accumulate in higher precision.**
#
# | what | is a running sum of | kept in |
# | --- | --- | --- |
# | a dot product | many products | fp32, inside the tensor core; for fp8, NVIDIA's H800 (an H100 with slower links) keeps only about 14 bits (DeepSeek-AI, 2024) |
# | a weight | all its updates | fp32 "master copy" |
# | Adam's two averages (notebook 04) | all gradients of a weight | fp32, as a rule; DeepSeek-V3 takes bf16 |
# | a softmax or a norm | a whole row | fp32, then cast back |
# | the residual stream (notebook 10) | what each layer adds | bf16, as a rule: some hundred terms, not a million |
# | activations inside a layer | nothing | bf16 or fp16; fp8 with scales |
#
# Working this way is called **mixed precision**: cheap formats for the products, fp32 for whatever has to remember. What that costs
# in bytes is the subject of notebook 14; how to do it, of notebook 13.

# %% [markdown]
# ## 8 · What a tensor weighs
#
# Memory is the number of elements times the bytes of each: a (4, 8) matrix in fp32 takes $4 \cdot 8 \cdot 4 = 128$ bytes, or
# 1024 bits. In formulas we write $p$ for the bytes per element.
#
# One surprise: a `torch.bool` tells true from false, one bit, and takes a whole **byte**. Dropout masks and attention masks pay for
# that.
#
# ### Exercise 9 · Bytes of a tensor  (2 points · 4 min · ●)
#
# Return the bytes of a tensor of this shape. `dtype` is a name as in torch: "float64", "float32", "float16", "bfloat16",
# "float8_e4m3fn", "int64" or "bool". A size may be 0, and the shape of a scalar is `[]`. Some would not fit into your memory: make none.

# %% exercise="tensor_bytes"
def tensor_bytes(shape: list[int], dtype: str) -> int:
    """The bytes of a tensor: 128 for [4, 8] in "float32"."""
    ### BEGIN SOLUTION
    sizes = {"float64": 8, "int64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "bool": 1}
    return math.prod(shape) * sizes[dtype]
    ### END SOLUTION


# %% check="tensor_bytes"
check(tensor_bytes)
### BEGIN HIDDEN TESTS
check(tensor_bytes, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now divide by what? A **MB** is a million bytes and a **GB** a thousand million; a **MiB** is $2^{20}$ bytes and a **GiB** is
# $2^{30}$. They differ by 4.9 and 7.4 percent. Disks are sold in GB; `nvidia-smi` counts in MiB. Many a "does it fit?" was
# lost in between.
#
# > **Spot the slip.** One weight matrix of GPT-3's feed-forward layers is $12{,}288 \times 49{,}152$. A colleague says that it takes 2306 MB in
# > fp32. (The answer is under *Check yourself*.)

# %% [markdown]
# ## 9 · The softmax, where it all comes together
#
# A language model ends in a **softmax**. It turns any $n$ numbers, the logits $v$, into probabilities:
#
# $$\text{softmax}(v)_i = \frac{e^{v_i}}{\sum_j e^{v_j}}.$$
#
# All results are positive and sum to one, and a larger logit always gets the larger probability. Dividing the logits by a
# *temperature* sharpens or flattens them. And one more property, which is about to save us: adding the same number $c$ to all logits changes nothing,
# because $e^{v+c} = e^v e^c$ and $e^c$ cancels. See for yourself: which of the two sliders moves the bars?

# %%
explore(figures.softmax_bars, temperature=Log(0.1, 10.0), shift=(-20.0, 20.0, 1.0))

# %%
predict("softmax_overflow")

# %% [markdown]
# Written down as it stands, the formula has three ways to fail: $e^{v}$ overflows to infinity for a large logit, and
# $\infty / \infty$ is NaN; the *sum* overflows although each term is finite; or, if all logits are very negative, every
# term underflows and $0 / 0$ is NaN again. One NaN in the loss, and after the next update every weight is NaN.

# %%
explore(figures.softmax_overflow, format=["fp16", "bf16", "fp32"], logit=(-30.0, 120.0, 1.0), count=Log(1, 131072))

# %% [markdown]
# ### Exercise 10 · A softmax that cannot blow up  (3 points · 6 min · ●●)
#
# Softmax over the last axis, for rows of up to 1,000 logits of any size. Some may be
# $-\infty$, though never a whole row: a masked logit, whose probability is 0.
# Return the dtype of the logits; you may compute in float32. A library's `softmax` and `logsumexp` are forbidden.

# %% exercise="stable_softmax"
def stable_softmax(logits: Tensor) -> Tensor:
    """Softmax over the last axis that never overflows; same shape and dtype as the logits."""
    ### BEGIN SOLUTION
    weights = (logits - logits.amax(dim=-1, keepdim=True)).exp()
    return weights / weights.sum(dim=-1, keepdim=True)
    ### END SOLUTION


# %% check="stable_softmax"
check(stable_softmax)
### BEGIN HIDDEN TESTS
check(stable_softmax, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# **In real models.** PyTorch subtracts the maximum, and computes in fp32 even when the tensors are bf16. That repairs the arithmetic; it
# does not keep the logits from growing, step after step, until one token takes everything. Against that there are tricks with names, z-loss, QK-norm and
# soft-capping, in notebook 16.

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what is a float worth? | $(-1)^s \cdot 1.f \cdot 2^{e - \text{bias}}$, with bias $2^{E-1} - 1$; subnormals $0.f \cdot 2^{1-\text{bias}}$ |
# | how far does it reach? | exponent bits decide: fp16 to 65,504, bf16 and fp32 to about 3.4e38 |
# | how fine is it? | mantissa bits decide: the gap is $2^{e-M}$, doubling at each power of two |
# | how is it rounded? | to the nearest, ties to even, overflow to infinity |
# | when does a value vanish? | at half the smallest subnormal: 3e-8 in fp16 |
# | how does fp16 training survive? | loss × scale, gradients / scale in fp32, halve it after an overflow; bf16 needs none |
# | when does a sum stall? | when the increment is at most half a gap: accumulate in fp32 |
# | what does it weigh? | elements × bytes; MiB are not MB |
# | how is softmax kept safe? | subtract each row's maximum first |
#
# ## Check yourself
#
# 1. Why does bf16 need no loss scaling, although it is *less* precise than fp16?
# 2. fp16 and bf16 have 65,536 codes each. Which of them has more NaNs, and why?
# 3. You sum a million losses of about 3 in fp32, one by one. Should you worry? What if you sum them in pairs, then pairs of pairs?
# 4. A colleague stores a dropout mask of shape (32, 16, 2048, 2048) as `torch.bool`. What does it weigh, and what would it weigh at one bit each?
# 5. Why is $x - \max(x)$ safe, and $x / \max(x)$ no softmax at all?
# 6. How many MB and how many MiB is GPT-3's matrix of section 8? Is 2306 right in either unit?
# 7. Which value would the pattern `0 1111 111` of E4M3 have, if it were not NaN?
# 8. Why does the scale of a block, E8M0, need neither a sign nor a mantissa?
#
# <details><summary>Answers</summary>
#
# 1. Underflow is a matter of range, not of precision. bf16 has the eight exponent bits of fp32.
# 2. fp16. Every code with an exponent of all ones and a fraction other than 0 is NaN, so there are $2\,(2^{M} - 1)$: 2,046 in fp16, 254 in bf16.
# 3. It does not stall, but near 3 million the gap is 0.25, so each addition may be off by 0.125, four percent of a loss. Summed in pairs, no number goes
#    through more than 20 additions instead of a million, and the error all but vanishes. `torch.sum` adds in a similar way.
# 4. $32 \cdot 16 \cdot 2048 \cdot 2048 = 2^{31}$ elements: 2 GiB as bytes, 256 MiB as bits.
# 5. Softmax does not change when a constant is *subtracted*, because it cancels. *Dividing* changes the differences between logits: it is a temperature,
#    and one that depends on the data.
# 6. $12{,}288 \cdot 49{,}152 \cdot 4 = 2{,}415{,}919{,}104$ bytes: 2416 MB, 2304 MiB or 2.25 GiB. 2306 is right in no unit.
# 7. The exponent field 1111 means $15 - 7 = 8$, so it would be $(1 + 7/8) \cdot 2^8 = 480$, one step of 32 after 448.
# 8. A scale is positive: each number keeps its own sign. And the scale only has to bring the block into range. A power of two does so without rounding, because it changes exponents alone; the digits are
#    in the numbers themselves.
#
# </details>
#
# ## Further reading
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
assert [16 >> formats[name].mantissa_bits for name in ("e4m3", "e5m2")] == [2, 4]
assert torch.equal(totals.bfloat16().float(), totals) and abs(totals.mean() - 10) < 0.1 and 0.3 < totals.std() < 0.6 and totals.min() > 4
assert numerics.stall_point(0.01, formats["bf16"]) == 4 and numerics.ulp(4.0, formats["bf16"]) == 1 / 32
assert math.isclose((1 / 128 - 1) / (256 * 16_384), -2.4e-7, rel_tol=0.02) and math.isclose(1 / 128 / (256 * 16_384), 2e-9, rel_tol=0.1)
assert numerics.round_to(2.4e-7, formats["fp16"]) > 0 == numerics.round_to(2e-9, formats["fp16"])
assert f"{256 * 16_384 / 1e6:.1f}" == "4.2" and f"{math.log(128):.2f}" == "4.85"
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
