# %% [markdown]
# # 15 · FLOPs
#
# **Core · 90 min · 8 exercises · 23 points** · **Further · 72 min · 4 exercises · 9 points**
#
# *How many FLOPs should a run take, and what share of the peak is that?* Seventy billion parameters, fifteen trillion tokens, 1024 H100s: when will it be done? The answer is one line of arithmetic, and every number in it is a trap.
#
# At the end you measure a run of your own, and make it compute more *and* learn more.
#
# **You will be able to** count FLOPs to the last digit, turn them into days, and say what an MFU counts.
#
# **You need** `einsum` (notebook 02), the gradients of a product (03), and what a transformer is made of (12). No GPU.
#
# Stuck in an exercise? `hint("its_name")`.

# %%
import math
from itertools import pairwise

import torch
from torch.utils.benchmark import Timer

from lmcourse.accounting import flops as count
from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.counter import counted_flops
from lmcourse.accounting.flop_rules import six_n_d
from lmcourse.accounting.parameters import count_parameters, matmul_parameters
from lmcourse.chapters.flops import figures
from lmcourse.chapters.flops.counted import counted_backward
from lmcourse.chapters.flops.own_run import GIVEN, train
from lmcourse.chapters.flops.runs import PUBLISHED, RUNS, SIZES
from lmcourse.models.zoo import find_model
from lmcourse.notebook import check, explore, hint, predict, start, your

start("15-flops")

# %% [markdown]
# ## 1 · An amount or a rate?
#
# A FLOP is one floating-point operation, such as an addition. **FLOPs** are an *amount* of work, like kilometres. **FLOP/s**, also written FLOPS, are a *rate*, like kilometres per hour. Divide the FLOPs of a run by the FLOP/s of a chip, and you have seconds.

# %%
predict("flops_or_rate")

# %% [markdown]
# Data sheets print two rates for a format. The larger, *with sparsity*, needs matrices in which two of every four weights are zero. Training has none: half of it is the *dense* rate (NVIDIA, 2021 and 2023).

# %%
for name in ("a100", "h100"):
    chip = find_accelerator(name)
    print(f"{chip.title:24} TFLOP/s:", ", ".join(f"{number} {chip.peak(number) / 1e12:,.1f}" for number in ("fp32", "tf32", "bf16")))

# %% [markdown]
# ## 2 · What does a product cost?
#
# Nearly all work in a model is matrix products. Here is one that hides nothing:

# %%
x, w = torch.ones(2, 3), torch.ones(3, 4)
result, operations = torch.zeros(2, 4), 0
for i in range(2):
    for k in range(4):
        for j in range(3):
            result[i, k] += x[i, j] * w[j, k]
            operations += 2  # a multiplication and an addition
print(f"the same as x @ w: {torch.equal(result, x @ w)};  operations: {operations}")

# %% [markdown]
# Every combination of $i$, $j$ and $k$ is visited once. So an $m \times k$ times a $k \times n$ matrix takes $2mkn$ FLOPs: 8.8 · 10¹² for 16,384 × 32,768 times 32,768 × 8192. (Strictly, $k$ products need only $k - 1$ additions.) We count products only, as papers do. An activation does a few operations per number, a product thousands; but it can take much *time*, waiting for memory (notebooks 11 and 19).
#
# How often would the body of the loop run if both tensors had one more axis, `b`, that stays?

# %% [markdown]
# ### Exercise 1 · Any product  (3 points · 7 min · ●●)
#
# `pattern` has names between spaces: `"b s d, d f -> b s f"`. `first` and `second` are shapes that fit. Every summed axis is in both. Return the FLOPs; 0 where nothing is summed: that is no matrix product. Counts in this notebook are exact, and may be floats. Torch can count FLOPs, too: your answers do without.

# %% exercise="einsum_flops"
def einsum_flops(pattern: str, first: list[int], second: list[int]) -> int:
    """FLOPs of a product of two tensors: 48 for "m k, k n -> m n", [2, 3], [3, 4]."""
    ### BEGIN SOLUTION
    inputs, result = pattern.split("->")
    left, right = inputs.split(",")
    sizes = dict(zip(left.split() + right.split(), [*first, *second], strict=True))
    if set(sizes) == set(result.split()):
        return 0
    return 2 * math.prod(sizes.values())
    ### END SOLUTION


# %% check="einsum_flops"

# %% [markdown]
# One rule: 2 times the product of all sizes, each axis once.
#
# ## 3 · Forward through a model
#
# A weight takes 2 FLOPs per token, so a forward pass about $2 \cdot \text{tokens} \cdot N$ with $N$ parameters. Now without the "about". Take $B$ texts of $S$ tokens, $L$ layers of width $D$, feed-forward layers of width $F$, and a vocabulary of $V$. Fill in the last column:
#
# | part | product | FLOPs per layer |
# | --- | --- | --- |
# | queries, keys, values | $3 \times (BS, D) \cdot (D, D)$ | $6\,B S D^2$ |
# | scores | every query with every key, in each head | ? |
# | values | their weights with every value, in each head | ? |
# | out | $(BS, D) \cdot (D, D)$ | $2\,B S D^2$ |
# | feed-forward | $(BS, D) \cdot (D, F)$, then $(BS, F) \cdot (F, D)$ | ? |
#
# At the end, once, the **head** turns $D$ features into $V$ logits. The embedding is a look-up, no product. A layer of GPT-2, for 1024 tokens:

# %%
tokens, heads = [1024, 768], [12, 1024, 64]
products = [
    ("s d, d e -> s e", tokens, [768, 3 * 768]),
    ("h s c, h t c -> h s t", heads, heads),
    ("h s t, h t c -> h s c", [12, 1024, 1024], heads),
    ("s d, d e -> s e", tokens, [768, 768]),
    ("s d, d f -> s f", tokens, [768, 3072]),
    ("s f, f d -> s d", [1024, 3072], [3072, 768]),
]
whole, head = counted_flops(find_model("gpt-2").decoder, 1, 1024).total, 2 * 1024 * 768 * 50_257
with your("einsum_flops"):
    print(f"six products {sum(einsum_flops(*one) for one in products):,}; torch counts {(whole - head) // 12:,}")

# %%
predict("head_share")

# %% [markdown]
# ### Exercise 2 · A forward pass  (3 points · 9 min · ●●)
#
# Return a dict with the FLOPs of `"qkv"`, `"scores"`, `"values"`, `"out"`, `"ffn"` and `"head"`, of all layers together. `d_kv` is the width of all key heads together, and of all value heads: less than $D$ if query heads share them (notebook 08). `None` means $D$. A gate (11) is one more $D \times F$ matrix. All $S^2$ pairs of tokens count, masked or not, as in torch and most papers.

# %% exercise="forward_flops"
def forward_flops(
    batch: int,
    length: int,
    layers: int,
    d_model: int,
    d_ff: int,
    vocab_size: int,
    d_kv: int | None = None,
    gated: bool = False,
) -> dict[str, int]:
    """FLOPs of a forward pass, by part."""
    ### BEGIN SOLUTION
    tokens = batch * length
    d_kv = d_model if d_kv is None else d_kv
    pairs = 2 * batch * length**2 * d_model
    return {
        "qkv": layers * 2 * tokens * d_model * (d_model + 2 * d_kv),
        "scores": layers * pairs,
        "values": layers * pairs,
        "out": layers * 2 * tokens * d_model**2,
        "ffn": layers * 2 * tokens * d_model * d_ff * (3 if gated else 2),
        "head": 2 * tokens * d_model * vocab_size,
    }
    ### END SOLUTION


# %% check="forward_flops"

# %% [markdown]
# Do not believe a formula, count. Torch runs whole models on the *meta* device, where tensors have shapes and no numbers. The rule is $2 \cdot \text{tokens} \cdot N$:

# %%
counted = {name: counted_flops(find_model(name).decoder, 1, sizes[0], backward=True) for name, sizes in SIZES.items()}
with your("forward_flops"):
    for name, sizes in SIZES.items():
        forward, rule = counted[name]["forward"], 2 * sizes[0] * matmul_parameters(find_model(name).decoder)
        print(f"{name:12} torch {forward:17,}; forward_flops {sum(forward_flops(1, *sizes).values()):17,}; rule {rule / forward - 1:+.1%}")

# %% [markdown]
# The rule leaves out scores and values, which have no weights.
#
# ## 4 · The way back
#
# Two layers and a loss: $h_1 = x w_1$, $h_2 = h_1 w_2$. Forward, that is two products. And back?

# %%
predict("two_layers_back")

# %% [markdown]
# A product $z = x\,w$ has two gradients, $dw = x^\top dz$ and $dx = dz\,w^\top$ (notebook 03). How many FLOPs does each take? And which gradient of the two layers is never used?

# %% [markdown]
# ### Exercise 3 · The way back  (3 points · 6 min · ●●)
#
# `batch` rows pass a chain of linear layers; `widths` `[128, 128, 32]` are two layers. All weights are trained. Return the FLOPs of the backward pass alone. `input_grad` says whether the gradient of the input is needed, too.

# %% exercise="backward_flops"
def backward_flops(batch: int, widths: list[int], input_grad: bool = False) -> int:
    """FLOPs of the way back through a chain of linear layers."""
    ### BEGIN SOLUTION
    products = [2 * batch * inputs * outputs for inputs, outputs in pairwise(widths)]
    weights, inputs = sum(products), sum(products[0 if input_grad else 1 :])
    return weights + inputs
    ### END SOLUTION


# %% check="backward_flops"

# %%
with your("backward_flops"):
    for widths, input_grad in (([128, 128, 32], True), ([128, 128, 32], False), ([64] * 11, False)):
        forward = sum(2 * 64 * inputs * outputs for inputs, outputs in pairwise(widths))
        ratios = [back(64, widths, input_grad) / forward for back in (backward_flops, counted_backward)]
        print(f"{len(widths) - 1} layers, input_grad {input_grad}: {ratios[0]:.1f} times forward; torch {ratios[1]:.1f}")

# %% [markdown]
# Both gradients take as many FLOPs as $z$ itself. So backward takes twice the forward, with one exception: no gradient is computed for an input that is not learned and comes from nothing learned. What a language model reads is looked up in a table that is learned. So is the first layer's $dx$ needed?

# %%
for name, parts in counted.items():
    print(f"{name:13} backward / forward = {parts['backward'] / parts['forward']}")

# %% [markdown]
# Twice, exactly.
#
# ## 5 · Six N T
#
# Forward 2, backward 4. So training $N$ parameters on $T$ tokens takes about $6 \cdot N \cdot T$ FLOPs (Kaplan et al., 2020, §2.1, call it $6ND$):

# %%
for name, tokens in (("gpt-3", 300e9), ("llama-3-8b", 15e12), ("llama-3.1-405b", 15.6e12)):
    N = count_parameters(find_model(name).config).total
    print(f"{name:15}  6 · {N / 1e9:6.1f}e9 · {tokens:.3g} = {six_n_d(N, int(tokens)):.2e} FLOPs")

# %% [markdown]
# The papers say 3.14e23 (Brown et al., 2020) and 3.8e25 (Grattafiori et al., 2024). In a mixture of experts (notebook 11) $N$ are the *active* parameters: 37 of DeepSeek-V3's 671 billion.
#
# No chip reaches its peak. The share that becomes these **model FLOPs** is a run's **MFU** (*model FLOPs utilisation*; Chowdhery et al., 2022, appendix B). So
#
# $$\text{GPUs} \cdot \text{peak} \cdot \text{MFU} \cdot \text{time} = 6 N T$$
#
# The traps: the wrong format's peak, the sparse one, a percentage for a share.

# %% [markdown]
# ### Exercise 4 · The question from the start  (2 points · 4 min · ●)
#
# Return the days. `peak` is one GPU's, in FLOP/s; `mfu` is a share from 0 to 1.

# %% exercise="training_days"
def training_days(parameters: float, tokens: float, gpus: int, peak: float, mfu: float) -> float:
    """Days of a training run, by 6·N·T."""
    ### BEGIN SOLUTION
    return 6 * parameters * tokens / (gpus * peak * mfu) / 86_400
    ### END SOLUTION


# %% check="training_days"

# %%
bf16 = find_accelerator("h100").peak("bf16")
with your("training_days"):
    print(f"the question from the start, at an MFU of 0.5: {training_days(70e9, 15e12, 1024, bf16, 0.5):.1f} days")
    print(f"Llama 3.1 405B, 16,384 H100s, MFU 0.4: {training_days(405e9, 15.6e12, 16_384, bf16, 0.4):.1f} days")

# %%
predict("more_gpus")

# %% [markdown]
# ## 6 · How much of the peak?
#
# How many GFLOP/s of fp32 products does one core of your processor do?

# %% tags=["nbval-ignore-output", "because it shows a rate"]
my_guess = 100  # GFLOP/s
a, b = torch.randn(2, 512, 512)
timer = Timer("a @ b", globals={"a": a, "b": b})  # warms up; on a GPU it synchronises before each look at the clock
rate = 2 * 512**3 / timer.blocked_autorange().median  # of many runs
print(f"guessed {my_guess} GFLOP/s, measured {rate / 1e9:.3g}; an H100 is rated at {chip.peak('fp32') / 1e9:,.0f} in fp32")

# %%
predict("which_is_faster")

# %% [markdown]
# > **Spot the slip.** Logs print tokens per second, $\tau$. With the model FLOPs of a step, $C$, a colleague computes $C \cdot \tau / (\text{GPUs} \cdot \text{peak})$. For a 7B model at $10^5$ tokens per second on 32 A100s, in batches of 32 texts of 2048 tokens, she finds an MFU of 27,569. Where is the mistake?
#
# <details><summary>Answer</summary>
#
# Divide $C$ by the tokens of the step, and the MFU is 0.42.
#
# </details>
#
# ## 7 · Which MFU is it?
#
# In May 2024 a program in C and CUDA trained GPT-2 small again on one A100, and its log was published (Karpathy, *llm.c*, discussion 481). Each line is a step of 524,288 tokens:
#
# ```text
# step 80/18865 | ... | 2950.68 ms | 49.0% A100 fp16 MFU
# ```
#
# Is that much? A week later the program's formula was changed, and the same 2950.68 ms would print 45.8 %. By 6·N·T it is 42.5 %. None of these is a mistake: they are **conventions**. Four are in use:
#
# | convention | counts for a token |
# | --- | --- |
# | `6N` | six FLOPs for each of $N$ parameters |
# | `all pairs` | and scores and values, forward and backward, with every query meeting all $S$ keys of its text (PaLM's formula) |
# | `causal` | the same with half of the keys |
# | `hardware` | `all pairs`, and what is computed a second time to save memory (notebook 14); this share is the **HFU** |

# %% [markdown]
# ### Exercise 5 · One run, four shares  (4 points · 12 min · ●●●)
#
# Return a dict with the shares of the peak (0 to 1) under these four names.
#
# - `parameters` is $N$ as a paper gives it. It contains the head's `vocab_size` × `d_model` weights.
# - `d_attn` is the width of all query heads of a layer together. Not every model has `d_attn` = `d_model`.
# - `tokens_per_second` is of all devices together, `peak` the FLOP/s of one.
# - `recompute` says what is computed a second time: `"nothing"`; `"scores"`, which means both products, scores and values; or `"blocks"`, which means the forward pass of everything but the head.
# - If any of the four shares is above 1, raise `ValueError`.

# %% exercise="four_shares"
def four_shares(
    layers: int,
    d_model: int,
    d_attn: int,
    vocab_size: int,
    parameters: int,
    context: int,
    tokens_per_second: float,
    devices: int,
    peak: float,
    recompute: str,
) -> dict[str, float]:
    """The shares of the peak of a run under four conventions: "6N", "all pairs", "causal" and "hardware"."""
    ### BEGIN SOLUTION
    pairs = 4 * layers * d_attn * context  # forward
    again = {"nothing": 0, "scores": pairs, "blocks": 2 * (parameters - vocab_size * d_model) + pairs}
    model = 6 * parameters + 3 * pairs
    flops = {
        "6N": 6 * parameters,
        "all pairs": model,
        "causal": model - 3 * pairs / 2,
        "hardware": model + again[recompute],
    }
    shares = {name: count * tokens_per_second / (devices * peak) for name, count in flops.items()}
    if max(shares.values()) > 1:
        raise ValueError(f"{max(shares.values()):.0%} of the peak cannot be")
    return shares
    ### END SOLUTION


# %% check="four_shares"

# %% [markdown]
# Now real runs: PaLM (Chowdhery et al., 2022, table 3), LLaMA 65B (Touvron et al., 2023, §2.4), the log line above, a 175B model on 64 A100s with two ways of recomputing (Korthikanti et al., 2022, table 5), GPT-3 (Patterson et al., 2021) and OPT-175B (closing note of its team, 2022). GPT-3 and OPT publish no share but a total, 3.14e23 and "4.30E+23 FLOPs" for 300 billion tokens; the last column has the share that this amounts to. (`recompute` is "nothing" unless the source says what was computed again, so some hardware shares are too small: PaLM's paper gives 57.8 %.)

# %%
with your("four_shares"):
    print(f"{'':20}      6N  all pairs  causal  hardware   published")
    shares_of = {name: four_shares(**run) for name, run in RUNS.items()}
for name, shares in shares_of.items():
    row = "  ".join(f"{100 * share:7.1f}" for share in shares.values())
    print(f"{name:20} {row}   {f'{100 * PUBLISHED[name]:9.1f}' if name in PUBLISHED else '        –'}")

# %% [markdown]
# ### Exercise 6 · Which one did they use?  (2 points · 4 min · ●●)
#
# Give the convention of each published number: `"6N"`, `"all pairs"`, `"causal"` or `"hardware"`. Where two fit, take the first in the table. `"GPT-2 124M, later"` is the same log line with the 45.8 % of the program's later formula. (GPT-3's 3.14e23 is rounded, so its share agrees to 0.1 only.)

# %% exercise="which_convention"
which_convention = None  # a dict in place of None, with the six names below
# "GPT-3", "PaLM 540B", "GPT-2 124M", "GPT-2 124M, later", "175B, scores again", "OPT-175B"
### BEGIN SOLUTION
which_convention = {
    "GPT-3": "6N",
    "PaLM 540B": "all pairs",
    "GPT-2 124M": "all pairs",
    "GPT-2 124M, later": "causal",
    "175B, scores again": "all pairs",
    "OPT-175B": "hardware",
}
### END SOLUTION

# %% check="which_convention"

# %%
with your("which_convention"):
    for name, convention in which_convention.items():
        share = shares_of[name.removesuffix(", later")][convention]
        print(f"{name:20} {convention:10} {100 * share:.1f}   published {100 * PUBLISHED.get(name, 0.458):.1f}")

# %% [markdown]
# LLaMA's paper gives a speed and no MFU; by 6·N·T it is 47.7 %. Beside PaLM's published 46.2 % that looks like 1.5 more. Counted in the same way, the distance is larger: 49.7 and 46.2 by PaLM's formula, 47.7 and 45.7 by 6·N·T.
#
# OPT's total is 37 % more than 6·N·T. It is what the GPUs compute if everything goes forward twice (also the head: 0.1 % more):

# %%
opt, tokens = RUNS["OPT-175B"], 300e9
pairs = opt["layers"] * opt["d_attn"] * opt["context"]
print(f"OPT-175B: 6NT = {6 * opt['parameters'] * tokens:.2e}   8NT + 16·L·d·S·T = {(8 * opt['parameters'] + 16 * pairs) * tokens:.2e}")

# %% [markdown]
# ### What MFU is for
#
# Korthikanti et al. trained the same 175B model on the same 64 GPUs twice. The step that recomputes all blocks takes 18.13 s, the step that recomputes only scores and values 13.75 s.

# %%
predict("recompute_less")

# %%
for name in ("175B, blocks again", "175B, scores again"):
    shares = shares_of[name]
    print(f"{name}: MFU (all pairs) {100 * shares['all pairs']:.1f} %, HFU {100 * shares['hardware']:.1f} %")

# %% [markdown]
# HFU asks how busy the machine is, MFU how fast you get where you want to go.
#
# One number is left. For the second run your function gives an HFU of 51.8 %. The paper prints 52.8 %.

# %%
predict("their_factor")

# %%
for size, layers, d_model, texts, seconds, printed in (
    ("22B", 48, 6144, 4, 1.10, 43.7),
    ("175B", 96, 12_288, 64, 13.75, 52.8),
    ("530B", 105, 20_480, 280, 37.83, 57.0),
    ("1T", 128, 25_600, 512, 71.49, 57.0),
):
    matrices = 6 * (12 * layers * d_model**2 + 51_200 * d_model)
    pairs = 12 * layers * d_model * 2048
    found = [100 * (matrices + factor * pairs) * texts * 2048 / seconds / (max(8, texts) * 312e12) for factor in (1, 4 / 3, 2)]
    print(f"{size:5} MFU {found[0]:.1f}   HFU with 4/3 {found[1]:.1f}, with 2 {found[2]:.1f}   printed {printed}")

# %% [markdown]
# All four of the paper's models agree with a factor of 2 (the first within the rounding of its 1.10 s): for the HFU, scores and values are counted as if their recomputation were a whole training step. You have found what looks like a slip in a paper.
#
# **In real models.** Llama 3 405B reached 38 to 43 % on up to 16,384 H100s (Grattafiori et al., 2024, table 4). Half of a peak is good. Whatever you report, write the formula beside it.

# %% [markdown]
# ## 8 · Your own MFU
#
# `train` trains a small model on stories, byte by byte: AdamW, fp32, one thread. Between its steps it measures the rate of large products, which stands in for the peak. Both count processor seconds: a busy machine lowers the rate of section 6, and not these.

# %%
predict("given_mfu")

# %% [markdown]
# ### Exercise 7 · Your MFU  (3 points · 6 min · ●●)
#
# `settings` has `"batch"` and `"length"` of the texts; `"shape"`, a tuple of $L$, $D$ and $F$; and `"rate"`, the learning rate. The feed-forward layers have a gate, no keys are shared, and $V$ is 128. The run made `steps` steps in `seconds`; products alone reach `peak` FLOP/s. Return the MFU by `all pairs`, with your `forward_flops`.

# %% exercise="my_mfu"
def my_mfu(settings: dict, steps: int, seconds: float, peak: float) -> float:
    """Model FLOPs of the run over what its processor could have done: a share from 0 to 1."""
    ### BEGIN SOLUTION
    forward = forward_flops(settings["batch"], settings["length"], *settings["shape"], 128, gated=True)
    return 3 * sum(forward.values()) * steps / (seconds * peak)
    ### END SOLUTION


# %% check="my_mfu"

# %%
predict("half_the_layers")

# %% tags=["nbval-ignore-output", "because it shows times"]
run, half = train(GIVEN, steps=400), train({**GIVEN, "shape": (2, 128, 256)}, steps=200)
with your("my_mfu"):
    mfu, after = (my_mfu(one.settings, one.steps, one.seconds, one.rate) for one in (run, half))
tries = {"given": (mfu, run.loss)}
print(f"{run}: MFU {mfu:.1%}; with half the layers, twice as wide, {after:.1%}")

# %% [markdown]
# ### Exercise 8 · Compute more, learn more  (3 points · 6 min · ●●●)
#
# Change at most **two** of the four settings, as in `{**GIVEN, "batch": 2}` (`GIVEN` is read-only), so that in the same time the run does 2.5 times the model FLOP/s *and* learns more. The loss is on held-out text (nats a byte).
#
# | | FLOP/s, given = 1 | loss |
# | --- | --- | --- |
# | given: `{"batch": 1, "length": 64, "shape": (4, 64, 128), "rate": 0.001}` | 1 | 1.13 |
# | naive: a batch of 64 | 3.4 | 3.1 |
# | **finish line** | 2.5 | 0.90 |
#
# In the check both train in turns; yours gets the time of 400 given steps. $D$ is a multiple of 32, a step has at most 2 · 10¹⁰ FLOPs, the model 10 million weights. Seeds, and a few steps more, change a loss by 10 %, also the 1.13, and times vary. The check takes seed 0, grading seed 1: keep a margin.

# %% exercise="my_settings"
def my_settings() -> dict:
    """Return the settings of a run that computes more, and learns more, in the same time."""
    ### BEGIN SOLUTION
    return {**GIVEN, "batch": 8, "shape": (1, 128, 256)}
    ### END SOLUTION


# %% tags=["nbval-ignore-output", "because it shows times"]
with your("my_settings", "my_mfu", "four_shares", "training_days"):
    changed = my_settings()
    own = train(changed, seconds=run.seconds)
    tries[str([*changed.values()])] = mfu, _ = (my_mfu(changed, own.steps, own.seconds, own.rate), own.loss)
    print(own)
    print("shares:", *(f"{name} {share:.1%}" for name, share in four_shares(**own.published).items()), sep="  ")
    print(f"GPT-2 on 10 billion tokens: {training_days(124e6, 10e9, 1, own.rate, mfu):,.0f} days like this")
figures.tries(tries)

# %% check="my_settings"

# %% [markdown]
# MFU says how fast FLOPs are done, not what they are good for: the highest may belong to the worst loss. Most of a small step is no product. A larger batch is worth its size only up to a point (notebook 04). Notebook 19 asks where the rest goes.
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | a forward pass? | $2 \cdot \text{tokens} \cdot N$, and $4\,B S^2 D$ per layer for scores and values |
# | a backward pass? | twice the forward; less only if an input needs no gradient |
# | training? | $6 \cdot N \cdot T$, with the active parameters |
# | how many days? | FLOPs / (GPUs · dense peak · MFU · 86,400) |
# | MFU from a log? | FLOPs per *token* · tokens/s / (GPUs · peak); never above 1 |
# | whose MFU? | 6N, all pairs, causal or hardware: one run had 42.5, 49.0 and 45.8 |
#
# ## Check yourself
#
# 1. LoRA freezes all weights and adds small ones. How many FLOPs per weight and token are left of the 6?
# 2. A log prints an MFU of 55 % for 32,768 tokens of context; with 2048 it was 48 %. Is the program faster now?
#
# <details><summary>Answers</summary>
#
# 1. About 4: a frozen weight has no $dw$, but the gradient still passes through.
# 2. Perhaps not: scores and values are a larger part, and a causal kernel skips half of them. Ask for the tokens per second.
#
# </details>

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you like.)

# %% tags=["hide-input"]
a100, h100, gpt_2 = find_accelerator("a100"), find_accelerator("h100"), find_model("gpt-2").decoder
assert (a100.peak("bf16"), h100.peak("bf16"), h100.peak("fp32")) == (312e12, 989.4e12, 67e12)
assert round(3e18 / 312e12) == 9615
assert 2 * 16_384 * 32_768 * 8192 == 8_796_093_022_208
parts = count.forward_flops(gpt_2, 1, 1024)
assert f"{parts['head'] / parts.total:.0%}" == "27%"
assert (4 * 32 + 2 * 128) / (2 * 32 + 2 * 128) == 1.2
assert [parts["backward"] / parts["forward"] for parts in counted.values()] == [2, 2, 2]
assert f"{six_n_d(count_parameters(find_model('gpt-3').config).total, 300 * 10**9):.2e}" == "3.14e+23"
assert f"{six_n_d(count_parameters(find_model('llama-3.1-405b').config).total, 156 * 10**11):.1e}" == "3.8e+25"
assert 60 / 2 * 0.5 / 0.4 == 37.5
assert round(6 * 70e9 * 15e12 / (1024 * 989.4e12 * 0.5 * 86_400), 1) == 143.9
assert [round(0.7 * 67), round(0.35 * 989.4), round(0.35 * 989.4 / (0.7 * 67))] == [47, 346, 7]
slip = 6 * 7e9 * 32 * 2048 * 1e5 / (32 * 312e12)
assert (round(slip), round(slip / (32 * 2048), 2)) == (27_569, 0.42)
shown = {name: {key: round(100 * share, 1) for key, share in shares.items()} for name, shares in shares_of.items()}
assert list(shown["GPT-2 124M"].values()) == [42.5, 49.0, 45.8, 49.0]
assert (shown["PaLM 540B"]["6N"], shown["PaLM 540B"]["all pairs"]) == (45.7, 46.2)
assert (shown["LLaMA 65B"]["6N"], shown["LLaMA 65B"]["all pairs"]) == (47.7, 49.7)
assert [shown[f"175B, {what} again"]["hardware"] for what in ("blocks", "scores")] == [51.9, 51.8]
assert [shown[f"175B, {what} again"]["all pairs"] for what in ("blocks", "scores")] == [39.0, 51.4]
assert shown["OPT-175B"]["hardware"] == round(100 * PUBLISHED["OPT-175B"], 1) == 47.2
assert round(4.30e23 / (6 * RUNS["OPT-175B"]["parameters"] * 300e9) - 1, 2) == 0.37

# %% [markdown]
# ## Further
#
# Each section needs the core and nothing else from Further.

# %%
from lmcourse.accounting.accelerators import all_accelerators
from lmcourse.accounting.flop_rules import kaplan_forward
from lmcourse.accounting.flops import training_flops
from lmcourse.accounting.mfu import Cluster
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import all_models
from lmcourse.widgets import Log

# %% [markdown]
# ### A · Where the FLOPs are  (13 min)
#
# The cubes are the combinations that the loop of section 2 visits. Move the sizes.

# %%
explore(figures.matmul_cube, m=(1, 8), k=(1, 8), n=(1, 8))

# %% [markdown]
# And everything else? Take a feed-forward layer: its activation works on $4d$ numbers per token, and the products before and after take $2 \cdot d \cdot 4d + 2 \cdot 4d \cdot d = 16 d^2$ FLOPs. Even a GELU, at twenty operations each, comes to $80\,d$.

# %%
explore(figures.elementwise_share, operations=(1, 60))

# %% [markdown]
# These are the weights of a layer. What grows how fast when a model gets larger?

# %%
explore(figures.layer_drawing, shared_keys=True, gated=True)

# %%
predict("twice_as_wide")

# %% [markdown]
# Slide the length, and watch the two oranges grow (beyond what some of these models can read; the arithmetic still holds). In which models is the head a large part?

# %%
explore(figures.flops_by_part, length=Log(128, 131072), pairs=["all", "visible"])

# %% [markdown]
# With `visible`, only pairs that the causal mask lets through count. Fused kernels skip most of the others (Dao, 2023, §3.1), so *time* is closer to that.
#
# A colleague's formula for a step has $4\,BSDV$ for the vocabulary, not $2\,BSDV$: "one product at each end of the model". The other end is a look-up. What does the mistake do?

# %%
for name, length in (("gpt-2", 1024), ("gpt-3", 2048)):
    whole = count.forward_flops(find_model(name).decoder, 1, length)
    one, two = whole["head"] / whole.total, 2 * whole["head"] / (whole.total + whole["head"])
    print(f"{name}: the head is {one:.2%} of a forward pass; with a second product of that size the two are {two:.2%}")

# %% [markdown]
# In a large model it is invisible, in a small one it makes a quarter of the work look like nearly half. And the way back through two layers, product by product (an activation between them changes nothing, because $\varphi'$ is element-wise):

# %%
explore(figures.backward_bars, batch=Log(1, 1024), width=Log(16, 4096), outputs=Log(16, 4096), input_grad=False)

# %% [markdown]
# ### B · What is N, and how good is the rule?  (8 min)
#
# Kaplan et al. leave both ends of the model out. Their $N$ are the weights of the layers: in each of `layers` layers three matrices from `d_model` to `d_attn`, one back, and the two of a feed-forward layer of `d_ff`. Their compute is forward, per *token*. Count scores and values in it: under a causal mask a query sees half of the `context` on average.

# %% [markdown]
# ### Exercise 9 · Size and compute  (1 point · 4 min · ●)
#
# Return Kaplan's two numbers, `[parameters, flops]`: $N$, and the forward FLOPs of a token.

# %% exercise="kaplan_total"
def kaplan_total(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[int]:
    """Non-embedding parameters and forward FLOPs per token, as Kaplan et al. (2020) count them."""
    ### BEGIN SOLUTION
    N = layers * (4 * d_model * d_attn + 2 * d_model * d_ff)
    return [N, 2 * N + 2 * layers * context * d_attn]
    ### END SOLUTION


# %% check="kaplan_total"

# %% [markdown]
# In the paper's table, the row `mask` is $2 \cdot n_{ctx} \cdot d_{attn}$ per layer. A colleague reads it as $QK^\top$ for all pairs, "with $AV$ left out". Your function has the same number. What is in it?

# %%
context, width = 2048, 1600
both = sum(4 * width * (query + 1) for query in range(context)) / context
print(f"scores and values of a token, causal mean {both:,.0f}; the table's 2·n_ctx·d {2 * context * width:,}")
gpt3 = kaplan_forward(find_model("gpt-3").decoder, 2048)
print(f"GPT-3: {gpt3['mask'] / (gpt3['qkv'] + gpt3['project'] + gpt3['feed-forward']):.1%} of 2N")

# %% [markdown]
# Both products, for the pairs that a causal mask lets through. (The paper does not say which of the two it means.) Our count of section 3, all pairs, is twice as much.
#
# **How good is the rule?** Hoffmann et al. (2022, appendix F) counted every product of their Chinchilla models and found 6·N·T close enough. Here are all decoders of the zoo. What $N$ is matters as much as the rule: try all three.

# %%
explore(figures.six_n_gap, length=Log(128, 131072), N=["all parameters", "layers only", "layers and head"])

# %% [markdown]
# Large models on short texts: within a few percent. Small models: the head, and attention, are too large to be left out. With "all parameters" two mistakes sometimes cancel: an embedding that is counted although it is only looked up, and scores that are not counted although they are computed.
#
# ### C · A step to the last digit  (15 min)
#
# Add up your table of section 3, and think of the way back. What comes out are the **model FLOPs** of a step: what has to be computed, whatever the implementation does.

# %% [markdown]
# ### Exercise 10 · Model FLOPs  (3 points · 7 min · ●●)
#
# Return the model FLOPs of a training step on `batch` texts of `length` tokens, with all pairs counted, and with the head. The feed-forward layers have the width $F = E \cdot D$; `expansion` is $E$.

# %% exercise="model_flops"
def model_flops(batch: int, length: int, layers: int, d_model: int, expansion: int, vocab_size: int) -> int:
    """FLOPs of forward and backward for a whole batch."""
    ### BEGIN SOLUTION
    blocks = 12 * batch * d_model * layers * length * (length + (2 + expansion) * d_model)
    return blocks + 6 * batch * length * d_model * vocab_size
    ### END SOLUTION


# %% check="model_flops"

# %% [markdown]
# The layers make
#
# $$12 \cdot B D L S \cdot \big(S + (2 + E)\,D\big), \qquad\text{and the head}\qquad 6 \cdot B S D V.$$
#
# Take $D \gg S$, and $12 (2 + E) L D^2$ is six times the weights of the layers: the rule of 6·N·T is the first term, and the correction is of the order $S/D$.
#
# **When does the square matter?**

# %%
predict("as_long_as_wide")

# %% [markdown]
# "Attention is quadratic" is true and says little: what matters is how large the factor is. Of a layer's forward FLOPs, scores and values are
#
# $$\frac{S}{S + (2 + E)\,D}.$$
#
# At which $S$ is that one half? At $S = (2 + E)\,D$, with $E = 4$ at $S = 6D$: 4608 tokens for GPT-2 small, 24,576 for a width of 4096, and 73,728 for GPT-3. Wide models can read long texts before attention costs more than the rest.

# %%
explore(figures.attention_by_length, length=Log(128, 1048576), pairs=["all", "visible"])

# %% [markdown]
# **Computed twice.** To save memory, activations are often thrown away and computed again on the way back (notebooks 03 and 14). With them a step has more **hardware FLOPs** than model FLOPs. Recomputing every layer is a second forward pass of everything but the head: nearly 8 in place of 6.

# %%
explore(figures.recompute_bars, model=["gpt-2", "llama-3-8b", "gpt-3"], length=Log(512, 131072))

# %% [markdown]
# The middle bar is what a fused kernel does: it never stores the scores, so its backward pass computes that one product again (Dao et al., 2022). Whether an account lists this is a choice. `lmcourse account` and notebook 14 count a fused kernel as "nothing again".

# %% [markdown]
# ### D · What does it cost?  (17 min)
#
# First, which peak? One rate, against every peak of the data sheet. Which of these shares would you notice to be wrong?

# %%
explore(figures.utilisation_by_peak, tflops=(10, 1200, 10), accelerator=["a100-sxm-80gb", "h100-sxm", "rtx-4090"])

# %% [markdown]
# A bf16 rate divided by the fp32 peak gives more than 100 %, and you notice. Divided by the sparse peak it gives half of the truth, and that looks plausible.

# %% [markdown]
# ### Exercise 11 · The cheapest of four  (2 points · 7 min · ●●)
#
# You have a model to train on `tokens` tokens within `days`, and four offers. `offers` maps each name to `[gpus, price, peak, mfu]`: how many GPUs you may rent, dollars for one GPU-hour, dense FLOP/s of one GPU, and the MFU that you expect there. All GPUs of an offer work together, from start to end. Return `[name, dollars]` of the cheapest offer that is done in time, by 6·N·T; one that takes exactly `days` is in time. Raise `ValueError` if none is.

# %% exercise="cheapest_offer"
def cheapest_offer(
    parameters: float, tokens: float, days: float, offers: dict[str, list[float]]
) -> list[str | float]:
    """Name and bill of the cheapest offer that is done in time."""
    ### BEGIN SOLUTION
    bills = {}
    for name, (gpus, price, peak, mfu) in offers.items():
        gpu_hours = 6 * parameters * tokens / (peak * mfu) / 3600
        if gpu_hours / gpus <= 24 * days:
            bills[name] = gpu_hours * price
    if not bills:
        raise ValueError(f"no offer is done within {days} days")
    name = min(bills, key=bills.get)
    return [name, bills[name]]
    ### END SOLUTION


# %% check="cheapest_offer"

# %% [markdown]
# A reality check. Touvron et al. (2023, table 15) report 82,432 A100-hours for LLaMA 7B on a trillion tokens.

# %%
flops = six_n_d(count_parameters(find_model("llama-7b").config).total, 10**12)
print(f"LLaMA 7B: {flops:.2e} FLOPs in 82,432 hours of an A100 are an MFU of {flops / (82_432 * 3600 * 312e12):.2f}")

# %% [markdown]
# Here is a whole budget, with models of the zoo and GPUs of the table. It counts scores and values, too. Which costs more: ten times the tokens, or half the MFU? How many GPUs do you need to be done within a month?

# %%
explore(
    figures.training_budget,
    model=[entry.name for entry in all_models() if isinstance(entry.config, TransformerConfig)],
    accelerator=[chip.name for chip in all_accelerators() if {"bf16", "fp16"} & set(chip.peaks)],
    gpus=Log(1, 65536),
    tokens_in_billions=[1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 15_000, 30_000],
    mfu=(0.05, 0.7, 0.01),
    dollars_per_gpu_hour=(0.5, 10.0, 0.1),
)

# %% [markdown]
# Prices change by the month; slide to yours. The other way round, your days and GPUs pay for
# $\text{days} \cdot 86{,}400 \cdot \text{GPUs} \cdot \text{peak} \cdot \text{MFU} / 6N$ tokens.

# %%
cluster = Cluster(find_accelerator("h100"), devices=64, mfu=0.4)
tokens = cluster.tokens(days=30, flops_per_token=6 * 1e9)
print(f"a month of 64 H100s at MFU 0.4 takes a model of 1B parameters through {tokens / 1e12:.1f} trillion tokens")

# %% [markdown]
# Where do published models lie? The scale has a factor of ten between two lines.

# %%
explore(figures.training_landmarks, accelerator=["a100-sxm-80gb", "h100-sxm", "b200"], gpus=Log(1, 65536), mfu=(0.05, 0.7, 0.01))

# %% [markdown]
# GPT-4 is drawn differently, because 2e25 is a guess from outside. OPT read its corpus of 180 billion tokens more than once, 300 billion tokens in all.

# %% [markdown]
# ### E · Generation  (17 min)
#
# Reading is one pass over all tokens. Generation is a pass *per token*: each needs the one before. With a KV cache (notebooks 08 and 17) only the newest token passes the matrices, and its query meets all keys so far. Without one, every pass reads everything again.

# %%
predict("writing_a_text")

# %% [markdown]
# ### Exercise 12 · Token by token  (3 points · 9 min · ●●●)
#
# A model of `layers` layers, width `d_model`, feed-forward layers of $4d$ (not gated) and its own keys for every head reads a prompt and generates `new` tokens. Return the FLOPs.
#
# - The first pass reads the whole prompt and gives the first new token. Every later pass reads the token that the pass before gave. The last token is never read. With `new` = 0 there is no pass.
# - A token that is read sees itself. All pairs of a pass count.
# - Logits are only needed for the *last* token of each pass.
# - Without `cache`, every pass reads the prompt and all new tokens so far.

# %% exercise="generation_flops"
def generation_flops(prompt: int, new: int, layers: int, d_model: int, vocab_size: int, cache: bool = True) -> int:
    """FLOPs of reading a prompt and generating new tokens after it."""
    ### BEGIN SOLUTION
    total = 0
    for length in range(prompt, prompt + new):
        queries = 1 if cache and length > prompt else length
        layer = 24 * queries * d_model**2 + 4 * queries * length * d_model
        total += layers * layer + 2 * d_model * vocab_size
    return total
    ### END SOLUTION


# %% check="generation_flops"

# %% [markdown]
# With a cache, step $t$ takes $24\,d^2 + 4\,t\,d$ FLOPs per layer. Over a text of $T$ tokens:
#
# $$\sum_{t=1}^{T} L\,\big(24\,d^2 + 4\,t\,d\big) \;\approx\; L\,\big(24\,T d^2 + 2\,T^2 d\big).$$
#
# Slide the length. With a cache, from which length on does attention take as much as the matrices? And how does the work grow without one?

# %%
explore(figures.generation_cost, d_model=Log(256, 16384), tokens=Log(128, 131072))

# %% [markdown]
# At $t = 6d$ a new token pays as much for looking back as for everything else. (The whole text has paid as much at $T = 12d$.) Without a cache the work grows with the square from the start.
#
# **In real models.** A step with a cache uses every weight once for a single token, so the GPU spends its time fetching weights. What bounds the *time* depends on how many FLOPs there are per byte that is moved (notebooks 17 and 19):

# %%
weights = matmul_parameters(find_model("llama-3-8b").decoder)
chip = find_accelerator("h100")
print(f"token 2048 of Llama 3 8B, H100, at best: without a cache {2 * weights * 2048 / chip.peak('bf16') * 1000:.1f} ms of arithmetic,")
print(f"with one {2 * weights / chip.peak('bf16') * 1000:.3f} ms of arithmetic and {2 * weights / chip.bandwidth * 1000:.1f} ms to fetch the weights")

# %% [markdown]
# A new chip has four times the peak and the same memory. Which of these six products does it help? Decide, then move `faster`.

# %%
explore(figures.products_on_the_roof, accelerator=["a100-sxm-80gb", "h100-sxm", "b200"], faster=(1.0, 8.0, 1.0))

# %% [markdown]
# Only products under the flat roof, and only until they reach the slope. In training and prefill the scores are on the slope because they are written to memory; a fused kernel, which keeps them on the chip, moves them to the right. In decoding all keys and values are read for a single query, and no kernel changes that.

# %% [markdown]
# **Four more questions**
#
# 1. GPT-3 was trained on texts of 2048 tokens. By how much would a training token get more expensive with 8192, all pairs counted?
# 2. A paper reports an HFU of 0.60 and recomputes all blocks. What is its MFU, about?
# 3. You have 30 days and 512 A100s at an MFU of 0.45. On how many tokens can you train a 13B model?
# 4. A vocabulary grows from 50,000 to 200,000. Which model of the figure in A gets much more expensive, and why do the others not?
#
# <details><summary>Answers</summary>
#
# 1. Per token and layer, scores and values grow from $4 \cdot 2048 \cdot d$ to $4 \cdot 8192 \cdot d$ beside $24 d^2$ with $d = 12{,}288$: from 2.8 to 11.1 % of the matrices. So 8 % more.
# 2. About 0.45, six eighths of it.
# 3. $30 \cdot 86{,}400 \cdot 512 \cdot 312 \cdot 10^{12} \cdot 0.45 / (6 \cdot 13 \cdot 10^9)$ = 2.4 trillion tokens.
# 4. GPT-2: its head is a quarter of the work already. The head grows with $D$, the layers with $L D^2$, so in large models it is a small part.
#
# </details>
#
# ## Further reading
#
# - Kaplan et al., 2020, *Scaling laws for neural language models*, §2.1 and table 1.
# - Hoffmann et al., 2022, *Training compute-optimal large language models*, appendix F.
# - Chowdhery et al., 2022, *PaLM*, appendix B: where MFU was defined.
# - Narayanan et al., 2021, *Efficient large-scale language model training on GPU clusters using Megatron-LM*, §5.1 and appendix: the
#   formula with recomputation.
# - Korthikanti et al., 2022, *Reducing activation recomputation in large transformer models*: table 5, and the appendix on FLOPs.
# - Zhang et al., 2022, *175B training run completed*, in the logbook of OPT: 33 days, and 90 restarts.
# - In this package: `lmcourse/accounting/`, and `lmcourse account --model llama-3-8b --gpu h100` on the command line.

# %% tags=["hide-input"]
shares = {}
for name, length in (("gpt-2", 1024), ("gpt-3", 2048)):
    whole = count.forward_flops(find_model(name).decoder, 1, length)
    shares[name] = (whole["head"] / whole.total, 2 * whole["head"] / (whole.total + whole["head"]))
assert [f"{share:.0%}" for share in shares["gpt-2"]] == ["27%", "43%"] and max(shares["gpt-3"]) < 0.01
assert [6 * width for width in (768, 4096, 12_288)] == [4608, 24_576, 73_728]
step = training_flops(find_model("gpt-3").decoder, 1, 2048, recompute="blocks")
assert 1.33 < step.hardware.total / step.model.total < 8 / 6
T, d = 2048, 4096
assert round(4 * d * T * (T + 1) / 2 / (24 * d**2 * T + 4 * d * T * (T + 1) / 2) * 100) == 4
before, after = 4 * 2048 / (24 * 12_288), 4 * 8192 / (24 * 12_288)
assert [f"{before:.1%}", f"{after:.1%}", f"{(1 + after) / (1 + before) - 1:.0%}"] == ["2.8%", "11.1%", "8%"]
assert round(30 * 86_400 * 512 * 312e12 * 0.45 / (6 * 13e9) / 1e12, 1) == 2.4
