# %% [markdown]
# # 10 · Normalization and blocks
#
# **Core · 90 min · 6 exercises · 18 points** · **Further · 66 min · 3 exercises · 8 points**
#
# A transformer is a long sum: a vector per token, the **residual stream**, to which a hundred layers add, one after the other. *Why does the sum neither explode nor drown what came first?*
#
# At the end you will have rescued deep models that learn nothing, with a rule of your own, and a formula of yours will have predicted it.
#
# **You will be able to**
#
# - write LayerNorm and RMSNorm that survive 16 bits;
# - split a block's gradient in two: the part that bypasses the branch, and the rest;
# - predict what a deep model keeps of the first word, and make it learn.
#
# **You need** attention (notebook 08), floating-point formats (01) and gradients of functions of vectors (03). No GPU.
#
# Stuck in an exercise? `hint("its_name")` gives a nudge; run it again for the next one.

# %%
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.timing import time_interleaved
from lmcourse.chapters.normalization_and_blocks import figures
from lmcourse.chapters.normalization_and_blocks.figures.models import STEPS, published_norms
from lmcourse.chapters.normalization_and_blocks.gpt2 import small_gpt2, table_weights
from lmcourse.chapters.normalization_and_blocks.gradients import input_gradient, split_gradients, split_table, untrained
from lmcourse.chapters.normalization_and_blocks.rescued import KNOWN_RUNS, rescued
from lmcourse.chapters.normalization_and_blocks.runs import branch_and_share, byte_entropy, tiny_llama, train
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import all_models, find_model
from lmcourse.notebook import check, explore, hint, predict, start, your

start("10-normalization-and-blocks")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · How large is a number?
#
# A layer was built for features of about 1. Now they arrive 100 times as large.
#
# A **LayerNorm** (Ba et al., 2016) in front of it takes the size away, for each token from the token's own $d$ features:
#
# $$\mu = \frac1d\sum_i x_i, \qquad \sigma^2 = \frac1d\sum_i (x_i - \mu)^2, \qquad y = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta$$
#
# with $x$ of shape $(\dots, d)$; scale $\gamma$ and shift $\beta$, $(d)$, are learned and start as 1 and 0.
#
# By hand: $(100, 200, 100, 0)$ has the mean 100. The deviations are $(0, 100, 0, -100)$, their mean square is 5,000, its root 70.71. The result is $(0, 1.414, 0, -1.414)$. What about the gradient?

# %%
predict("scale_of_the_gradient")

# %%
SCALES = (0.01, 0.1, 1.0, 10.0, 100.0)
fronts: dict[str, Callable] = {"through a norm": lambda x: F.layer_norm(x, (64,), eps=1e-12), "without a norm": lambda x: x}
sizes = {name: [input_gradient(scale, front)[1].norm().item() for scale in SCALES] for name, front in fronts.items()}
figures.gradient_by_scale(SCALES, sizes)

# %% [markdown]
# The loss here is half the layer's squared output: without a norm, its gradient grows with the input. Through a norm it is *exactly* the other way round, for every loss. A norm is a brake.
#
# > **Spot the slip.** A colleague normalises over the sequence instead of over the features. Another one leaves out $\varepsilon$. Both programs run. What do they do?

# %%
x = torch.randn(5, 8)
changed = torch.cat([x[:4], x[4:] + 3 * torch.eye(1, 8)])
for axis, norm in (("features", lambda x: F.layer_norm(x, (8,))), ("sequence", lambda x: F.layer_norm(x.T, (5,)).T)):
    moved = (norm(x) - norm(changed))[0].abs().max()
    print(f"over the {axis}: the last of five tokens changes, and the first one moves by {moved:.2f}")
print("equal features, without ε:", F.layer_norm(torch.full((4,), 3.0), (4,), eps=0.0).tolist())

# %% [markdown]
# Over the sequence, the first word knows about the last: the model reads the future, and its training loss looks wonderful.

# %% [markdown]
# ### Exercise 1 · LayerNorm  (2 points · 6 min · ● · differentiable)
#
# Write it without torch's own norms, for the last of any number of axes. Gradients must pass. Three rules:
#
# - **compute in fp32, or in fp64 if $x$ is fp64**; $x$ may be fp16 or bf16;
# - return **the dtype of $x$**, whatever `scale` and `shift` have, and **round once, in the very last step**;
# - numbers far from zero must come out right: one mean is 10,000.

# %% exercise="layer_norm"
def layer_norm(
    x: Float[Tensor, "*batch d"], scale: Float[Tensor, "d"], shift: Float[Tensor, "d"], eps: float = 1e-5
) -> Float[Tensor, "*batch d"]:
    """(x − mean) / √(variance + eps), feature by feature times scale plus shift; in the dtype of x."""
    ### BEGIN SOLUTION
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = wide - wide.mean(dim=-1, keepdim=True)
    root = (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return (centred / root * scale + shift).to(x.dtype)
    ### END SOLUTION


# %% check="layer_norm"

# %% [markdown]
# ## 2 · Only the length
#
# Which does the work, subtracting the mean or dividing? **RMSNorm** (Zhang & Sennrich, 2019) only divides:
#
# $$y = \gamma \odot \frac{x}{\sqrt{\frac1d\sum_i x_i^2 + \varepsilon}}$$
#
# By hand, the same vector: the mean square is 15,000, its root 122.47, the result $(0.816, 1.633, 0.816, 0)$. The direction stays: RMSNorm puts the vector on a sphere of radius $\sqrt d$. In two dimensions:

# %%
explore(figures.norm_circle, kind=["rms", "layer"], eps=[1e-6, 0.0001, 0.01, 0.1, 1.0])

# %% [markdown]
# Try `layer`, too: a LayerNorm leaves just *two* points. Without its mean, $(a, b)$ is $(c, -c)$, and $|c|$ becomes 1. LayerNorm throws two numbers of $d$ away, RMSNorm one.
#
# $\varepsilon$ is added to *squares*. Features of ±0.001 have squares of $10^{-6}$. With its usual $\varepsilon$ of $10^{-6}$, RMSNorm makes of them not ±1, but ±0.71; LayerNorm, with $10^{-5}$, ±0.30.

# %%
predict("twice_as_large_in_fp16")

# %%
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    x = torch.tensor([200.0, 400.0, 200.0, 0.0], dtype=dtype)
    result = [round(number, 3) for number in (x / x.square().mean().sqrt()).tolist()]
    print(f"{dtype!s:15} squares {x.square().tolist()}\n{'':15} result {result}")

# %% [markdown]
# Zeros, without a warning. bf16 has the range of fp32, but only 2.4 decimal digits. So norms compute in fp32, even in 16-bit models.

# %% [markdown]
# ### Exercise 2 · RMSNorm  (2 points · 5 min · ● · differentiable)
#
# The rules of Exercise 1 hold.

# %% exercise="rms_norm"
def rms_norm(x: Float[Tensor, "*batch d"], scale: Float[Tensor, "d"], eps: float = 1e-6) -> Float[Tensor, "*batch d"]:
    """x / √(mean square + eps), feature by feature times scale; in the dtype of x."""
    ### BEGIN SOLUTION
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    root = (wide.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return (wide / root * scale).to(x.dtype)
    ### END SOLUTION


# %% check="rms_norm"

# %% [markdown]
# Neither norm notices a factor: $N(cx) = N(x)$. So the gradient is proportional to $1/c$. And a step along $x$ itself changes nothing, so the gradient is **at a right angle to $x$**:

# %%
cosines = [F.cosine_similarity(*input_gradient(scale, fronts["through a norm"]), dim=-1).abs().max() for scale in SCALES]
print(f"largest cosine of an input and its gradient: {max(cosines):.5f}")

# %% [markdown]
# ## 3 · What the mean was good for
#
# Most models of today have RMSNorms.

# %%
predict("from_layer_to_rms")

# %% [markdown]
# GPT-2 is **pre-norm**: every layer reads the stream through a norm, and adds its result to it. A LayerNorm first subtracts the mean. So *no layer ever reads the mean* of the stream. Could it be 0 from the start?
#
# By hand: a layer writes $W h$ into the stream, with $W = \begin{pmatrix}1&2\\3&4\end{pmatrix}$ and $h = (1, 1)$. It writes $(3, 7)$, whose mean is 5; without the mean that is $(-2, 2)$. Another matrix writes without its mean for *every* $h$: $\begin{pmatrix}-1&-1\\1&1\end{pmatrix}$.
#
# If every vector in the sum has mean 0, so has the sum. Then the variance *is* the mean square, and LayerNorm and RMSNorm are the same function.

# %% [markdown]
# ### Exercise 3 · Centre the writers  (3 points · 10 min · ●●●)
#
# `weights` holds the tensors of a pre-norm model with LayerNorms, by name. Matrices are (out, in), as in `nn.Linear`, and act as $Wh + b$.
#
# | name | shape | what it does |
# | --- | --- | --- |
# | `embedding`, `positions` | (v, d), (t, d) | their rows, added, start the stream |
# | `qkv.0`, `qkv_bias.0` | (3d, d), (3d) | reads the stream, through a norm |
# | `out.0`, `out_bias.0` | (d, d), (d) | the output of attention |
# | `up.0`, `up_bias.0` | (f, d), (f) | the input of the feed-forward layer |
# | `down.0`, `down_bias.0` | (d, f), (d) | its output |
# | `qkv.1` … | | any number of further blocks |
# | `head` | (v, d) | the logits, after the last norm |
#
# Every model has an embedding; the others may be missing. Return a new dictionary with all names, in which the mean of the stream is gone and nothing else: all LayerNorms may then be RMSNorms. Do not change the given tensors.

# %% exercise="centre_writers"
def centre_writers(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a model that computes the same, and whose residual stream has mean 0 everywhere."""
    ### BEGIN SOLUTION
    centred = {}
    for name, weight in weights.items():
        kind = name.split(".")[0]
        if kind in ("embedding", "positions"):
            weight = weight - weight.mean(dim=-1, keepdim=True)
        elif kind in ("out", "out_bias", "down", "down_bias"):
            weight = weight - weight.mean(dim=0)
        centred[name] = weight
    return centred
    ### END SOLUTION


# %% check="centre_writers"

# %% [markdown]
# Does it hold in a GPT-2? This one has three blocks, random weights *and random biases*, and its norms run on your functions:

# %%
text = torch.randint(50, (4, 16))
with your("layer_norm", "rms_norm", "centre_writers"), torch.no_grad():
    old = small_gpt2(layer_norm)
    for name, weights in (("as they are", None), ("centred", centre_writers(table_weights(old)))):
        new = small_gpt2(lambda x, scale, shift, eps: rms_norm(x, scale, eps) + shift, weights)
        apart = (new(text) - old(text)).abs().max()
        print(f"rms_norm for layer_norm, writers {name:12} the logits differ by up to {apart:.12f}")

# %% [markdown]
# To the last digits. The mean was never a feature of the model: it is one direction of the stream that layers can write and cannot read.

# %% [markdown]
# ## 4 · One plus sign, four places
#
# Each block has two **branches**: attention adds $a_\ell$ to the stream, the feed-forward layer adds $m_\ell$. Unless a norm is in the way, the embedding $e$ becomes
#
# $$h = e + \sum_{\ell=1}^{L} (a_\ell + m_\ell)$$
#
# Published models put a branch $f$, a norm $N$ and a plus sign together in four ways:
#
# | placement | the stream after the branch | used by |
# | --- | --- | --- |
# | post | $N(x + f(x))$ | the original transformer, GPT-1, BERT |
# | pre | $x + f(N(x))$ | GPT-2 and nearly all since |
# | double | $x + N'(f(N(x)))$ | Gemma 2 and 3 |
# | output | $x + N'(f(x))$ | OLMo 2 |
#
# *Why not norm after the feed-forward layer?* a student asks. "output" does, and "double" does both. All but "post" have one more norm before the head.

# %%
def residual(x: Tensor, f: Callable, before: Callable | None, after: Callable | None, placement: str) -> Tensor:
    """The stream after a branch f; `before` is the norm before it, `after` the norm after it or after the sum."""
    if placement == "pre":
        return x + f(before(x))
    if placement == "post":
        return after(x + f(x))
    if placement == "double":
        return x + after(f(before(x)))
    return x + after(f(x))  # output


PLACEMENTS = ("pre", "post", "double", "output")
explore(figures.block_wiring, placement=["pre", "post", "double", "output"])

# %% [markdown]
# And on the way back? A change of $x$ reaches the plus sign straight, and through the branch. So the gradient at $x$ has two parts. By hand: $x = 3$, no norm, $f(h) = h^2$. The gradient 1 of $y = x + x^2$ comes back as 1 on the straight way, and as 6 through the branch. *With norms in place, which part decides?*
#
# To find out, functions return their value *and their* **pullback**, which turns the gradient at the value into the gradient at $h$:

# %%
def square(h: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The squares of h, and their pullback at h."""
    return h * h, lambda g: 2 * h * g


value, pullback = square(torch.tensor(3.0))
print(value, pullback(torch.tensor(1.0)))

# %% [markdown]
# ### Exercise 4 · Two ways back  (4 points · 12 min · ●●●)
#
# `dy` is the gradient with respect to what `residual` returns. Return both parts of the gradient at $x$: `straight`, which bypassed `f`, and `through`. `f`, `before` and `after` return a value and its pullback, as `square` does; an unused norm may be `None`. Call each function and each pullback once, do without autograd, and do not change `x` and `dy`. Another placement: `ValueError`.

# %% exercise="ways_back"
def ways_back(
    x: Float[Tensor, "*batch d"],
    dy: Float[Tensor, "*batch d"],
    f: Callable,
    before: Callable | None,
    after: Callable | None,
    placement: str,
) -> tuple[Float[Tensor, "*batch d"], Float[Tensor, "*batch d"]]:
    """The parts of the gradient at x that came straight and through the branch."""
    ### BEGIN SOLUTION
    if placement not in ("pre", "post", "double", "output"):
        raise ValueError(f"a norm's placement is pre, post, double or output, not {placement!r}")
    h, pullbacks = x, []
    if placement in ("pre", "double"):
        h, back = before(h)
        pullbacks.append(back)
    h, back = f(h)
    pullbacks.append(back)
    if placement in ("double", "output"):
        h, back = after(h)
        pullbacks.append(back)
    straight = after(x + h)[1](dy) if placement == "post" else dy
    through = straight
    for back in reversed(pullbacks):
        through = back(through)
    return straight, through
    ### END SOLUTION


# %% check="ways_back"

# %% [markdown]
# ## 5 · What is left of the first word?
#
# *Why is a norm* in *the stream bad?* a student asks. By hand: the stream has length 4, and a branch adds a vector of length 3 at a right angle. The sum has length 5 (Pythagoras). A post-norm takes it back to length 4, and the old vector in it to 4 · 4/5 = 3.2.

# %%
predict("left_after_12_blocks")

# %% [markdown]
# ### Exercise 5 · What is left  (2 points · 5 min · ●●)
#
# Return the cosine between the embedding and the stream after `blocks` blocks, of *two* branches each. Every branch adds a vector at a right angle to all others. With "post" it is `ratio` times as long as the stream that it joins, else `ratio` times as long as the embedding. Unknown placement, or fewer than 0 blocks: `ValueError`.

# %% exercise="embedding_share"
def embedding_share(blocks: int, placement: str, ratio: float) -> float:
    """The cosine of the embedding with the stream after this many blocks, whose branches add vectors of this relative length."""
    ### BEGIN SOLUTION
    if placement not in ("pre", "post", "double", "output") or blocks < 0:
        raise ValueError(f"no model has {blocks} blocks with norms {placement!r}")
    return (1 + ratio**2) ** -blocks if placement == "post" else (1 + 2 * blocks * ratio**2) ** -0.5
    ### END SOLUTION


# %% check="embedding_share"

# %% [markdown]
# Branches as long as the stream leave $2^{-12}$ = 0.024 % of it after 12 post-norm blocks. Where no norm is in the stream, branches *as long as the embedding* leave a fifth. Here are 4 post-norm blocks of random vectors, nearly at right angles (cosines of about $1/\sqrt{65536}$ = 0.004), and 12 pre-norm blocks of an untrained model:

# %%
torch.manual_seed(0)
embedding, *branches = F.normalize(torch.randn(9, 65_536), dim=1)
with your("embedding_share"):
    stream = embedding
    for added in branches:
        stream = F.normalize(stream + added, dim=0)
    print(f"post,  4 blocks, ratio 1.0: cosine {stream @ embedding:.3f}, predicted {embedding_share(4, 'post', 1.0):.3f}")
    ratio, cosine = branch_and_share(tiny_llama(12, "pre", seed=0))
    print(f"pre,  12 blocks, ratio {ratio:.1f}: cosine {cosine:.2f}, predicted {embedding_share(12, 'pre', ratio):.2f}")

# %% [markdown]
# A post-norm model has to write the first word again and again, or it is gone. A pre-norm stream *grows* instead. If branches keep the embedding's length, after 90 blocks they add to a vector $\sqrt{1 + 2 \cdot 90}$ = 13 times as long. In the tiny model they are *four* times as long as its small embedding, and the formula with that ratio gives what is left, 0.05 (measured for four seeds: 0.02 to 0.10).

# %% [markdown]
# ## 6 · Gradients, measured
#
# On the straight way back, each post-norm divides the gradient, too. So it vanishes, many people conclude. Take 48 blocks with SwiGLU (notebook 11) and fan-in weights (of size 1/√inputs, notebook 13), before any training:

# %%
predict("straight_alone")

# %% [markdown]
# `split_gradients` runs a model forwards and backwards, records each branch's input and the gradient at its output, and splits that gradient with your `ways_back`:

# %% tags=["nbval-ignore-output", "because the digits of large gradients differ between processors"]
STARTS = [(placement, "fan_in") for placement in PLACEMENTS] + [("post", "gpt2"), ("output", "gpt2")]
with your("ways_back"):
    split = {start: split_gradients(ways_back, *untrained(48, *start)) for start in STARTS}
print(split_table({f"{placement:6} {rule}": found for (placement, rule), found in split.items()}))

# %% [markdown]
# (Geometric means over the branches of blocks 2 to 48: block 1 reads the bare embedding, whose length differs. 1 is the gradient at the branch's output.)
#
# *On the straight path* a post-norm does divide, and 94 of them leave a billionth: section 5 is right. But what the norm has taken away, the branch gives back: attention about all of it, SwiGLU more. (SwiGLU multiplies two functions of its input, so 1 % more input makes more than 1 % more output.) The two parts are nearly at right angles, so Pythagoras adds them: through attention, √(0.733² + 0.702²) = 1.015, nearly the table's number. Factors of 1.02 and 1.12 look harmless, and 47 of each *explode*. In "pre" a branch adds 2 to 3 %. In "output" attention adds 18 %: there the two parts partly agree.
#
# The start decides as much. With GPT-2's small weights (0.02 or less) a post-norm model keeps its gradient: each branch is tiny beside the stream. With output norms the gradient still grows several hundred times. Placement and initialisation are *one* decision: OLMo 2 starts all weights at 0.02 (OLMo Team, 2025).

# %% [markdown]
# ## 7 · Deep post-norm
#
# Before the first step nothing vanishes. Do such models learn to write stories, byte by byte? (The runs take 15 to 60 seconds.)

# %%
predict("deep_post_norm")

# %% tags=["nbval-ignore-output", "because losses of runs differ in the last digits between processors"]
def run_twice(blocks: int, placement: str, warmup: int = 1) -> list:
    """Two runs of 60 steps, AdamW at 0.005, which differ in their seed."""
    return [train(tiny_llama(blocks, placement, seed), seed, warmup=warmup) for seed in (0, 1)]


runs = {2: {p: run_twice(2, p) for p in ("pre", "post")}, 16: {p: run_twice(16, p) for p in PLACEMENTS}}
runs[16]["post, warm-up of 30 steps"] = run_twice(16, "post", warmup=30)
print(f"Loss at the end, in nats per byte, for two seeds. Knowing only how frequent each byte is: {byte_entropy():.1f}")
for blocks, by_name in runs.items():
    for name, seeds in by_name.items():
        print(f"{blocks:2} blocks, {name:25} {', '.join(f'{run.end:.2f}' for run in seeds)}")

# %% tags=["nbval-ignore-output", "because losses of runs differ in the last digits between processors"]
figures.depth_runs(runs, byte_entropy())

# %% [markdown]
# Large models show both: post-norm is better with six layers or fewer, and "is often unstable" with ten or more (Takase et al., 2022). A warm-up saves many a post-norm run (Xiong et al., 2020), and not this one. Look at the lower picture.
#
# At the start the post-norm gradient is larger than the pre-norm one: the explosion of section 6. After 10 to 25 steps many people are right after all: the gradient *vanishes* on its way back, and the first block stops learning. A warm-up only delays it. The last cell of section 8 shows what has changed. ("output" learns nothing either, though its gradient stays: our figures do not explain that.)

# %% [markdown]
# ## 8 · Rescue it
#
# A norm shortens the old stream only as much as the branch is *long*. What if branches are short?

# %%
predict("left_with_short_branches")

# %% [markdown]
# Multiply every branch by a factor, in untrained models. What is left of the embedding?

# %% tags=["nbval-ignore-output", "because the last digits differ between processors"]
with your("embedding_share"):
    for factor in (1.0, 0.7, 0.5, 0.42):
        for blocks in (16, 32):
            ratio, measured = branch_and_share(tiny_llama(blocks, "post", 0, factor))
            left = f"{embedding_share(blocks, 'post', ratio):.2f} is left as predicted, {measured:.2f} as measured"
            print(f"{blocks} blocks, branch times {factor:<4}: branch / stream {ratio:.2f}, {left}")

# %% [markdown]
# ### Exercise 6 · Rescue deep post-norm  (5 points · 9 min · ●●●)
#
# Make deep post-norm learn. Change what you like, but **the last thing that happens to the stream in every branch is the norm**. One rule is judged at two depths, after 60 steps as in section 7:
#
# | nats per byte | 16 blocks | 32 blocks |
# | --- | --- | --- |
# | post-norm as it is | 3.10 | 3.10 |
# | pre-norm | 2.48 | 2.56 |
# | **finish line** (about what *two* blocks of post-norm reach) | 1.90 | 1.90 |
#
# `rescue(model)` gets an untrained post-norm model and returns `stream`, the rule that joins a branch to the stream. As it is: `norm(x + f(x))`. The rule's result must be the result of its last call of `norm`. The rule may use the branch's number, but no tensor of earlier calls. The docstring says what else you may change. Many ways reach the line; the cell below tries yours in 5 to 20 seconds.

# %% exercise="rescue"
def rescue(model: Transformer) -> Callable[[Tensor, Callable, Callable, int], Tensor]:
    """A rule for the stream after a branch, with which deep post-norm models learn.

    Before it returns the rule, it may change the numbers in the model's weights. The layers `block.attention.layer.out`
    and `block.feed_forward.layer.down`, for `block` in `model.blocks`, write into the stream. It may also register new
    parameters on `model`, at most d numbers a branch; they are trained with the others.
    """

    def stream(x: Float[Tensor, "b s d"], f: Callable, norm: Callable, branch: int) -> Float[Tensor, "b s d"]:
        """The stream after branch number `branch`: 0, 2, 4 … are attention, 1, 3, 5 … feed-forward layers."""
        ### BEGIN SOLUTION
        left = 0.5  # of the embedding, if branches were as long as the stream: (1 + factor²) ** -blocks
        return norm(x + (left ** (-1 / len(model.blocks)) - 1) ** 0.5 * f(x))
        ### END SOLUTION

    return stream


# %% tags=["nbval-ignore-output", "because losses of runs differ in the last digits between processors"]
with your("rescue"):
    tries = {blocks: train(rescued(rescue, blocks), seed=0) for blocks in (16, 32)}
    outcome = {blocks: (branch_and_share(rescued(rescue, blocks))[1], run.end) for blocks, run in tries.items()}
for blocks, (left, loss) in outcome.items():
    print(f"{blocks} blocks with `rescue`: {left:.2f} of the embedding is left, and the loss ends at {loss:.2f}")

# %% check="rescue"

# %% tags=["nbval-ignore-output", "because losses of runs differ in the last digits between processors"]
figures.rescue_runs({"pre": runs[16]["pre"], "post": runs[16]["post"], "rescue": [tries[16]]}, KNOWN_RUNS, outcome, byte_entropy())

# %% [markdown]
# The dots are other rules: fixed factors, and GPT-2's weights. With fixed factors, about a quarter of the embedding or less is too little to learn from; near 1, branches say little. What is left does not decide alone: layers that write 0 at the start leave all of it, and reach 1.52. Pre-norm learns with 0.02 to 0.08.
#
# And the two ways back, with 16 blocks, before the first step and after 20?

# %% tags=["nbval-ignore-output", "because the digits of large gradients differ between processors"]
from lmcourse.chapters.normalization_and_blocks.runs import story_bytes

with your("ways_back"):
    for factor, steps in ((1.0, 0), (1.0, 20), (0.21, 0), (0.21, 20)):
        train(model := tiny_llama(16, "post", 0, factor), seed=0, steps=steps)
        found = split_gradients(ways_back, model, story_bytes()[:264].view(8, 33))
        ratio = branch_and_share(model)[0]
        print(f"branch times {factor:<4} step {steps:2}: branch / stream {ratio:.2f}, straight {found.straight:.1e}, both {found.both:.1e}")

# %% [markdown]
# Training makes branches longer beside the stream. Each norm then divides by more, and long branches no longer give it back: the gradient that exploded now vanishes. With short branches, more than half of it arrives.
#
# So post-norm **with long branches** does not learn when it is deep: the first word is gone, and soon the gradient. (Which of the two does the harm, we have not separated.) With short branches, it is the best of all runs here. No duel: pre-norm with branches times 0.21 gains, too (1.81, 1.75).
#
# <details><summary>Afterwards: how others did it</summary>
#
# **DeepNorm** (Wang et al., 2022; GLM-130B trained with it) multiplies $x$ and starts with small weights; without these it fails here at 32 blocks. **Admin** (Liu et al., 2020) measures the branches first, as you did. **ReZero** (Bachlechner et al., 2020) gives each branch a learned factor that starts at 0; weights that start at 0 do the same.
#
# </details>
#
# ## What to keep
#
# | | LayerNorm | RMSNorm |
# | --- | --- | --- |
# | takes away | mean and length | length |
# | parameters | $2d$ | $d$ |
#
# | placement | left after 12 blocks, if branches are as long as the embedding (post: the stream) | straight part of the gradient | 16 blocks, no warm-up |
# | --- | --- | --- | --- |
# | post | 0.024 % | passes every norm | as in 2017: byte frequencies; with short branches: best |
# | pre | 20 % (4 times as long: 5 %) | untouched | 2.48, 2.31 |
# | double | 20 % | untouched | 2.51, 2.29 |
# | output | 20 % | untouched | 3.08, 3.07; wants small weights |
#
# ## Check yourself
#
# 1. Why can a post-norm model *not* be turned into one with RMSNorms by centring its writers?
# 2. A pre-norm model lacks its final norm. What do the logits do as it gets deeper?
# 3. Branches times 0.5 help at 16 blocks and not at 32. Which number says so before any training?
#
# <details><summary>Answers</summary>
#
# 1. Each norm in the stream gives it a new mean, by its scale and shift. No writer has written it.
# 2. They grow like the stream: with the root of the number of blocks (notebook 12).
# 3. What is left of the embedding: by your formula a quarter at 16 blocks, a twentieth at 32.
#
# </details>

# %% tags=["hide-input"]
assert f"{100 / math.sqrt(15_000):.3f} {200 / math.sqrt(15_000):.3f}" == "0.816 1.633"
assert f"{math.sqrt(5_000):.2f} {math.sqrt(15_000):.2f} {math.sqrt(2):.3f}" == "70.71 122.47 1.414"
assert f"{8 * math.log10(2):.1f}" == "2.4"  # the digits of bf16
assert [f"{0.001 / math.sqrt(0.001**2 + eps):.2f}" for eps in (1e-6, 1e-5)] == ["0.71", "0.30"]
assert (f"{0.5**12:.3%}", (1 + 2 * 12) ** -0.5, f"{(1 + 2 * 90) ** 0.5:.0f}") == ("0.024%", 0.2, "13")
for placement in PLACEMENTS:  # `residual` computes what the package does
    branch, x = tiny_llama(1, placement, seed=0).blocks[0].feed_forward, torch.randn(3, 32)
    norm_after = branch.post_norm if placement == "post" else branch.output_norm
    assert torch.equal(residual(x, branch.layer, branch.input_norm, norm_after, placement), branch(x))
before_training = {blocks: [branch_and_share(tiny_llama(blocks, "pre", seed)) for seed in range(4)] for blocks in (12, 16)}
assert all(3.5 < ratio < 4.5 and f"{(1 + 24 * ratio**2) ** -0.5:.2f}" == "0.05" for ratio, _ in before_training[12])
assert all(0.015 < share < 0.105 for _, share in before_training[12])
assert all(0.015 < share < 0.085 for _, share in before_training[16])
assert 0.5 < ((1 + 0.9**2) * (1 + 0.6**2)) ** -23.5 / split["post", "fan_in"].straight < 2
assert math.hypot(4, 3) == 5 and 4 * 4 / 5 == 3.2 and f"{65_536**-0.5:.3f}" == "0.004"
assert f"{math.hypot(0.733, 0.702):.3f}" == "1.015"
means = [*split["post", "fan_in"].means[:2], split["output", "fan_in"].means[2]]  # the last digit differs between processors
assert all(abs(mean - number) < 0.004 for mean, number in zip(means, (0.733, 0.702, 1.182), strict=True))
rounded = {start: [f"{mean:.2f}" for mean in found.means] for start, found in split.items()}
assert rounded["post", "fan_in"][2::3] == ["1.02", "1.12"] and rounded["pre", "fan_in"][2::3] == ["1.02", "1.03"]
assert 5e-10 < split["post", "fan_in"].straight < 2e-9 and split["post", "fan_in"].both > 50
assert 0.95 < split["post", "gpt2"].both < 1.02 and 200 < split["output", "gpt2"].both < 1000 < split["output", "fan_in"].both
assert (split["pre", "fan_in"].parts[:, 0] == 1).all()
ends = {blocks: {name: [run.end for run in seeds] for name, seeds in by_name.items()} for blocks, by_name in runs.items()}
assert all(post < pre - 0.1 for pre, post in zip(ends[2]["pre"], ends[2]["post"], strict=True))
stated = {"post": (3.10, 3.09), "pre": (2.48, 2.31), "double": (2.51, 2.29), "output": (3.08, 3.07)}
assert all(abs(end - number) < 0.06 for p, numbers in stated.items() for end, number in zip(ends[16][p], numbers, strict=True))
for run in (*runs[16]["post"], *runs[16]["post, warm-up of 30 steps"]):  # large at first, nothing in the end
    assert run.end > 2.9 and run.gradients[0] > max(each.gradients[0] for each in runs[16]["pre"])
    assert run.gradients[-1] < 0.01 < 0.1 < min(each.gradients[-1] for each in runs[16]["pre"])
assert min(run.gradients[-1] for run in runs[16]["output"]) > 0.03
assert f"{(0.3**2 + 1) ** -16:.2f} {(0.3**2 + 1) ** -32:.2f}" == "0.25 0.06"
known = {(run.name, run.blocks): run.loss for run in KNOWN_RUNS}
assert known["branch times 1", 32] == 3.1 == known["branch times 0.35", 32] and f"{64**-0.25:.2f}" == "0.35"
assert all(run.loss > 3.05 for run in KNOWN_RUNS if run.share < 0.27) and len(KNOWN_RUNS) > 10
short = [train(tiny_llama(16, "pre", seed, 0.21), seed).end for seed in (0, 1)]
silent = tiny_llama(16, "post", 0)
for block_of in silent.blocks:
    nn.init.zeros_(block_of.attention.layer.out.weight)
    nn.init.zeros_(block_of.feed_forward.layer.down.weight)
assert abs(train(silent, 0).end - 1.52) < 0.06
assert all(abs(end - number) < 0.06 for end, number in zip(short, (1.81, 1.75), strict=True))
assert all(1.65 < end < before - 0.3 for end, before in zip(short, ends[16]["pre"], strict=True))

# %% [markdown]
# ## Further
#
# Each block needs the core, and no other block. Read them in any order.

# %% [markdown]
# ### A · Fold the norm  (8 min)
#
# Section 3 removed the means from a model. The second step of the same surgery removes scale and shift. A norm's $\gamma$ and $\beta$ come right before a matrix, and two linear maps in a row are one.

# %% [markdown]
# ### Exercise 7 · Fold the norm  (2 points · 6 min · ●●)
#
# A linear layer reads $\gamma \odot \hat x + \beta$. Return weight and bias of the layer that reads $\hat x$ itself and computes the same. `bias` may be `None`, as in most models today; return a new bias all the same.

# %% exercise="fold_norm"
def fold_norm(
    scale: Float[Tensor, "d"],
    shift: Float[Tensor, "d"],
    weight: Float[Tensor, "n d"],
    bias: Float[Tensor, "n"] | None,
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n"]]:
    """Weight and bias of a layer that does on x̂ what this one does on scale · x̂ + shift."""
    ### BEGIN SOLUTION
    moved = weight @ shift
    return weight * scale, moved if bias is None else moved + bias
    ### END SOLUTION


# %% check="fold_norm"

# %%
gamma, beta, x = torch.tensor([2.0, 0.5, -1.0]), torch.tensor([1.0, 0.0, 3.0]), torch.randn(4, 3)
layer = nn.Linear(3, 2)
normed = F.layer_norm(x, (3,))
with your("fold_norm"):
    folded = fold_norm(gamma, beta, layer.weight.detach(), layer.bias.detach())
    apart = (F.linear(normed, *folded) - layer(gamma * normed + beta)).abs().max()
    print(f"the folded layer on x̂ and the old one after the norm differ by up to {apart:.5f}")

# %% [markdown]
# **In real models.** SliceGPT (Ashkboos et al., 2024) does both to published models before it cuts features away. Without means and scales you may rotate the stream like any vector, and cut off the least important directions. Count in the zoo which models use which norm:

# %%
kinds = [entry.decoder.block.norm.kind for entry in all_models() if "norm" not in entry.survey_overrides]
print(f"of {len(all_models())} entries: RMSNorm {kinds.count('rms')}, LayerNorm {kinds.count('layer')}, not said {len(all_models()) - len(kinds)}")

# %% [markdown]
# ### B · What a norm costs  (9 min)
#
# Section 2 said that bf16 is too coarse for a norm. How coarse? LayerNorm, of features that spread by 1 around a mean, with every step in bf16:

# %%
generator = torch.Generator().manual_seed(0)
spread, scale_16, shift_16 = (torch.randn(*shape, generator=generator) for shape in ((8, 64), (64,), (64,)))


def layer_norm_in(dtype: torch.dtype, x: Tensor) -> Tensor:
    """LayerNorm with every step in one dtype."""
    wide, scale, shift = x.to(dtype), (1 + 0.3 * scale_16).to(dtype), shift_16.to(dtype)
    centred = wide - wide.mean(dim=-1, keepdim=True)
    return centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * scale + shift


print("mean   all in bf16: off by at most   all in fp32, rounded once: off by at most")
for mean in (0, 3, 10, 30, 100):
    x = (spread + mean).bfloat16()
    exact = layer_norm_in(torch.float64, x).bfloat16()
    off = [(layer_norm_in(dtype, x).bfloat16() - exact).abs().max().item() for dtype in (torch.bfloat16, torch.float32)]
    print(f"{mean:4} {off[0]:28.2f} {off[1]:42.2f}")

# %% [markdown]
# The further the features are from zero, the fewer of bf16's digits are left for what makes them different. (Rounding once more than needed is a smaller matter: the LLaMA in Hugging Face's `transformers` rounds before the scale and after it, which changes every fourth number in its last digit.)
#
# That is a cost in precision. And in time? RMSNorm does 4 operations on each number where LayerNorm does 7. Look at the bytes as well:

# %%
explore(figures.norm_costs, kernels=["fused", "one by one"])

# %% [markdown]
# A multiplication is far quicker than fetching the number that is multiplied (notebook 19). What counts is how often the features are read from memory and written back. A **fused** kernel does it once, for either norm.

# %%
predict("faster_norm")

# %% tags=["nbval-ignore-output", "because it is a clock"]
x, ones, zeros = torch.randn(2048, 4096), torch.ones(4096), torch.zeros(4096)
with your("layer_norm", "rms_norm"):
    functions: dict[str, Callable[[], object]] = {
        "F.layer_norm": lambda: F.layer_norm(x, (4096,), ones, zeros),
        "F.rms_norm": lambda: F.rms_norm(x, (4096,), ones),
        "layer_norm": lambda: layer_norm(x, ones, zeros),
        "rms_norm": lambda: rms_norm(x, ones),
    }
    timings = time_interleaved(functions | {"copy": x.clone}, repeats=5)
    times = {name: timings[name].median / timings["copy"].median for name in functions}
for name, copies in times.items():
    print(f"{name:16} takes {copies:4.1f} times as long as a copy of x")
for less, more in (("F.rms_norm", "F.layer_norm"), ("rms_norm", "layer_norm")):
    print(f"{less} takes {times[less] / times[more]:.1f} times as long as {more}")

# %% [markdown]
# Torch's RMSNorm lost on every processor that we tried, because it is put together from several operations. If it wins on yours, your PyTorch has a fused kernel for it. Now compare the two that are written out: the one with fewer steps reads and writes less. So "RMSNorm is faster" is a statement about kernels, not about formulas.
#
# How much is there to win? In a BERT on a GPU, LayerNorms and softmaxes together were 0.17 % of the FLOPs and 25.5 % of the time (Ivanov et al., 2021).

# %%
predict("faster_kernels")

# %% [markdown]
# Kernels that took no time at all would give 1/(1 − 0.255) = 1.34 times the steps, and no more. A large comparison of transformers (Narang et al., 2021) measured 3.50 steps per second with LayerNorm and 3.68 with RMSNorm, at a slightly better loss: 5.1 % more. If norms alone took 25.5 % of the time there, RMSNorm saved 19 % of *the norms'* time.
#
# ### C · Who made the logit?  (14 min)
#
# The stream is a sum (section 4). Hooks show that it is true, in a model that has learned to write stories for a moment:

# %%
writer = tiny_llama(2, "pre", seed=0)
train(writer, seed=0, steps=200)
prompt = torch.tensor([list(b"The dog saw the ")])
parts: dict[str, Tensor] = {}


def listen(name: str) -> Callable:
    """A hook that keeps what a module returns for the last token."""
    return lambda module, inputs, output: parts.__setitem__(name, output[0, -1].detach())


writer.embedding.register_forward_hook(listen("embedding"))
for number, each in enumerate(writer.blocks):
    each.attention.layer.register_forward_hook(listen(f"block {number}, attention"))
    each.feed_forward.layer.register_forward_hook(listen(f"block {number}, feed-forward"))
streams: list[Tensor] = []
writer.norm.register_forward_pre_hook(lambda module, inputs: streams.append(inputs[0][0, -1].detach()))
with torch.no_grad():
    logits = writer(prompt)[0, -1]
print("parts:", ", ".join(parts))
print(f"their sum differs from the stream by up to {(torch.stack(list(parts.values())).sum(dim=0) - streams[-1]).abs().max():.5f}")

# %% [markdown]
# So a logit, too, is a sum: the head reads the stream through a norm, and multiplies it by a token's row. *Which layer wanted this word?* has an answer in numbers. There is one catch, and it is the norm.

# %% [markdown]
# ### Exercise 8 · Who made the logit?  (3 points · 8 min · ●●●)
#
# `parts[0]` is the embedding of one token, the other rows are what each branch has added to it. The head reads an RMSNorm (`scale`, `eps`) of their sum; `row` is the row of the head for one token of the vocabulary. Keep the norm's divisor fixed. How much does each part add to the logit? The results add up to the logit.

# %% exercise="contributions"
def contributions(
    parts: Float[Tensor, "n d"], scale: Float[Tensor, "d"], row: Float[Tensor, "d"], eps: float = 1e-6
) -> Float[Tensor, "n"]:
    """The contribution of each part of the stream to the logit of the token whose row of the head is `row`."""
    ### BEGIN SOLUTION
    root = (parts.sum(dim=0).square().mean() + eps).sqrt()
    return parts @ (scale * row) / root
    ### END SOLUTION


# %% check="contributions"

# %% tags=["nbval-ignore-output", "because the digits of a trained model differ between processors"]
best = int(logits.argmax())
with your("contributions"):
    added = contributions(torch.stack(list(parts.values())), writer.norm.weight.detach(), writer.head.linear.weight[best].detach(), eps=1e-5)
bars = figures.contribution_bars(dict(zip(parts, added.tolist(), strict=True)), f"“{chr(best)}” after “{bytes(prompt[0].tolist()).decode()}”")
bars

# %% tags=["nbval-ignore-output", "because the digits of a trained model differ between processors"]
print(f"the contributions add up to {added.sum():.3f}, and the logit is {logits[best]:.3f}")

# %% [markdown]
# Such sums are an everyday tool for looking into models. Elhage et al. (2021) call the stream a channel: every layer reads from some of its directions and writes into others, and layers that are far apart can talk, since nothing in between is overwritten.
#
# ### D · Shake the weights  (5 min)
#
# A gradient looks at infinitely small steps. Optimizers take real ones. So change every weight of all blocks by 1 %, at random, and see how far the output moves. The idea comes from Liu et al. (2020). A post-norm model breaks, they found, not because its gradients are small or large, but because small changes are amplified from layer to layer.

# %% tags=["nbval-ignore-output", "because the last digit of a percentage may differ between processors"]
def shaken(blocks: int, placement: str, seed: int, noise: float = 0.01) -> float:
    """The relative change of the last hidden states when every weight of the blocks is multiplied by 1 + noise."""
    model = tiny_llama(blocks, placement, seed)
    tokens, generator = story_bytes()[:256].view(8, 32), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        before = model.encode(tokens)
        for parameter in model.blocks.parameters():
            if parameter.ndim == 2:
                parameter *= 1 + noise * torch.randn(parameter.shape, generator=generator)
        return ((model.encode(tokens) - before).norm() / before.norm()).item()


jitter = {
    placement: {blocks: sum(shaken(blocks, placement, seed) for seed in range(3)) / 3 for blocks in (2, 4, 8, 16, 32)}
    for placement in PLACEMENTS
}
for placement, by_depth in jitter.items():
    print(f"{placement:6} " + "   ".join(f"{blocks} blocks: {change:5.1%}" for blocks, change in by_depth.items()))

# %% tags=["nbval-ignore-output", "because the last digit of a percentage may differ between processors"]
figures.weight_jitter(jitter, 0.01)

# %% [markdown]
# With 2 blocks, the post-norm model is the *calmest* of the four. With 32, 1 % of noise makes it nearly another function. The pre-norm model moves by 6 % then, only twice as far as with 2 blocks: each branch is a small part of a long sum. The runs of section 7 ended as this picture says.
#
# ### E · Serial and parallel  (16 min)
#
# In the usual, **serial** block, attention comes first, and the feed-forward layer reads what the stream is *after* it: two pre-norm branches in a row, each with its own norm. GPT-J (Wang & Komatsuzaki, 2021) put them **in parallel**: both branches read one and the same normalised $x$, and what they return is added to $x$ together.

# %%
explore(figures.block_wiring, branches=["serial", "parallel", "parallel_two_norms"])

# %% [markdown]
# A colleague writes the serial block in one line, $y = x + M(N(x + A(N(x))))$, with $A$ for attention and $M$ for the feed-forward layer. It looks right. Let attention find something that the feed-forward layer does not care about, so that $M$ is 0. What is in $y$?

# %% [markdown]
# ### Exercise 9 · Serial and parallel  (3 points · 8 min · ●● · differentiable)
#
# Write both blocks as one function. `attention`, `feed_forward`, `norm_1` and `norm_2` are functions of a tensor of shape (b, s, d). The parallel block has one norm, `norm_1`, and `norm_2` may be `None`. Call each function at most once, and do not change `x`.

# %% exercise="block"
def block(
    x: Float[Tensor, "b s d"],
    attention: Callable,
    feed_forward: Callable,
    norm_1: Callable,
    norm_2: Callable | None,
    parallel: bool,
) -> Float[Tensor, "b s d"]:
    """The stream after a pre-norm block, serial or parallel."""
    ### BEGIN SOLUTION
    normed = norm_1(x)
    added = attention(normed)
    if parallel:
        return x + added + feed_forward(normed)
    stream = x + added
    return stream + feed_forward(norm_2(stream))
    ### END SOLUTION


# %% check="block"

# %%
predict("parallel_flops")

# %%
explore(figures.block_timeline, branches=["serial", "parallel"])

# %% [markdown]
# Four products in a row become two: stack matrices that read the same input on top of each other, and put matrices whose results are added side by side. Your `block`, with attention to oneself only to keep it short, and the same in two products:

# %%
torch.manual_seed(0)
n, v_in, up = torch.randn(1, 5, 8).double(), torch.randn(8, 8).double(), torch.randn(32, 8).double()
out, down = torch.randn(8, 8).double(), torch.randn(8, 32).double()
with your("block"):
    four = block(n, lambda x: (x @ v_in.T) @ out.T, lambda x: (x @ up.T).relu() @ down.T, lambda x: x, None, parallel=True)
values, hidden = (n @ torch.cat([v_in, up]).T).split([8, 32], dim=-1)
two = n + torch.cat([values, hidden.relu()], dim=-1) @ torch.cat([out, down], dim=1).T
print(f"four products and two differ by up to {(four - two).abs().max():.12f}, in numbers up to {four.abs().max():.0f}")
zoo_parallel = [entry for entry in all_models() if entry.decoder.block.branches != "serial"]
layer_norms = sum(entry.decoder.block.norm.kind == "layer" for entry in zoo_parallel)
print(f"parallel blocks in the zoo: {len(zoo_parallel)}, of them with LayerNorm: {layer_norms}")

# %% [markdown]
# *Which of the two is more efficient?* asks a student. The parallel one: about 15 % faster training at PaLM's scale, where larger products keep the hardware busy, with a small loss of quality at 8 billion parameters and none at 62 billion (Chowdhery et al., 2022). The serial one is more *expressive*: its feed-forward layer can react to what attention found in the same block. Models with parallel blocks in the zoo are GPT-J, PaLM, GPT-NeoX, Pythia, Falcon, Phi and Command, whose latest is from 2025.
#
# ### F · What models chose  (4 min)
#
# The rule is pre-norm, and few models break it. Find the late one with post-norm:

# %%
figures.norm_placement_grid()

# %%
print("post-norm:", ", ".join(f"{e.name} ({e.year})" for e in all_models() if e.decoder.block.placement == "post"))

# %% [markdown]
# OPT-350M (Zhang et al., 2022) is the odd one out of its own family: all its sisters are pre-norm.
#
# How much of a model are its norms? A LayerNorm has $2d$ numbers, so a block with two has $4d$; an RMSNorm has $d$. And the biases of all linear layers, in GPT-3?

# %%
for name in ("gpt-3", "llama-3.1-405b", "gemma-2-9b"):
    sizes_of = count_parameters(find_model(name).config)
    print(f"{name:15} {sizes_of['norms']:9,} numbers in norms: {sizes_of['norms'] / sizes_of.total:.5%} of the model")
gpt3 = find_model("gpt-3")
d, blocks_of = gpt3.decoder.d_model, len(gpt3.decoder.layers)
biases = 9 * blocks_of * d  # 3 of queries, keys and values, 1 of out, 4 of up, 1 of down
total = count_parameters(gpt3.config).total
print(f"biases of gpt-3: {biases / 1e6:.1f} million of {total / 1e9:.0f} billion parameters: {biases / total:.3%}")

# %% [markdown]
# Today's models drop biases, LLaMA all of them, but not to save parameters. A bias is one more thing to read from memory, and large models trained more stably without (Chowdhery et al., 2022).
#
# *Which of all this will still be true in five years?* a student asks. Four lessons, each of which comes back elsewhere in this course:
#
# | lesson | here | and again |
# | --- | --- | --- |
# | keep a path on which nothing happens | the stream | the LSTM's cell (06) |
# | normalise what is read | pre-norm | QK-norm, z-loss (16) |
# | let one thing gate another | SwiGLU in the blocks above (11) | the LSTM's gates (06) |
# | think of the machine | fused norms, parallel blocks | FlashAttention and GQA (08) |
#
# ### G · Two more pictures  (7 min)
#
# Section 5 in one picture: whose is the stream, block by block, if every branch is as long as the embedding?

# %%
explore(figures.stream_share, placement=["pre", "post", "double", "output"], blocks=(1, 96))

# %% [markdown]
# The second picture begins with Xiong et al. (2020). They looked at gradients *near the output*, before any training.

# %%
predict("post_norm_gradients")

# %% tags=["nbval-ignore-output", "because the digits of large gradients differ between processors"]
from lmcourse.chapters.normalization_and_blocks.gradients import block_gradients

DEPTHS = (2, 6, 12, 24, 48)
profiles = {p: {blocks: block_gradients(blocks, p) for blocks in DEPTHS} for p in PLACEMENTS}
for placement in ("pre", "post"):
    last = ", ".join(f"{by_block[-1]:.2f}" for by_block in profiles[placement].values())
    print(f"{placement:6} last block, {', '.join(map(str, DEPTHS))} blocks: {last}")
for placement in PLACEMENTS:
    found = [profiles[placement][48], *(block_gradients(48, placement, seed) for seed in (1, 2))]
    print(f"{placement:6} 48 blocks, first block over last, three seeds: {', '.join(f'{g[0] / g[-1]:.2g}' for g in found)}")

# %%
figures.gradient_by_block(profiles)

# %% [markdown]
# The claim holds: in post-norm models the last block's gradient is large at any depth, and in pre-norm models it falls like $1/\sqrt L$. That is why post-norm wants a warm-up. Towards the first blocks the post-norm gradient *explodes*, and with output norms even more so: section 6 has the mechanism.
#
# ### Check yourself
#
# 1. (G) You remove block 80 of 96 from a pre-norm model and it hardly gets worse. Which picture says so?
# 2. (A) You fold all norms of a model into its matrices. Does it become smaller, or faster?
# 3. (E) Why can two layers in a parallel block be one product, and in a serial block not?
#
# <details><summary>Answers</summary>
#
# 1. The fractions of the stream: after 80 blocks one block is a small part of a long sum.
# 2. Neither, to speak of: the division stays, and scale and shift are a thousandth of a percent of the model. What you win is a stream that may be rotated.
# 3. They read the same input. In a serial block the second layer waits for what the first one adds.
#
# </details>
#
# ### Further reading
#
# - Ba, Kiros & Hinton (2016), *Layer normalization*; Zhang & Sennrich (2019), *Root mean square layer normalization*.
# - Xiong et al. (2020), *On layer normalization in the transformer architecture*; Liu et al. (2020), *Understanding the difficulty of training transformers*.
# - Wang et al. (2022), *DeepNet: scaling transformers to 1,000 layers*; Bachlechner et al. (2020), *ReZero is all you need*.
# - Ashkboos et al. (2024), *SliceGPT*; Kim et al. (2025), *Peri-LN*, on norms on both sides; Elhage et al. (2021), *A mathematical framework for transformer circuits*.
# - Zhu et al. (2025), *Transformers without normalization*, replaces norms by a tanh. In `lmcourse/nn`, `norm.py` and `block.py` have the norms and placements of this notebook.

# %% tags=["hide-input"]
assert [len(steps) for steps in STEPS.values()] == [7, 4]
assert f"{1 / (1 - 0.255):.2f} {3.68 / 3.5 - 1:.1%} {(1 - 3.5 / 3.68) / 0.255:.0%} {1 / (1 - 0.3 * 0.255) - 1:.1%}" == "1.34 5.1% 19% 8.3%"
assert sum(published_norms().values()) == len(all_models()) - 5  # four of the course's own, and one that does not say
assert min(jitter, key=lambda placement: jitter[placement][2]) == "post"
assert 1.5 < jitter["pre"][32] / jitter["pre"][2] < 2.5 and f"{jitter['pre'][32]:.0%}" in ("5%", "6%") and jitter["post"][32] > 0.5
assert {e.name for e in all_models() if e.name.startswith("opt") and e.decoder.block.placement == "post"} == {"opt-350m"}
assert max(entry.year for entry in zoo_parallel) == find_model("command-a").year == 2025
for placement, (low, high) in {"pre": (5, 30), "post": (60, 1000), "double": (5, 50), "output": (3e3, 1e5)}.items():
    assert low < profiles[placement][48][0] / profiles[placement][48][-1] < high, placement
assert profiles["pre"][48][-1] < profiles["pre"][2][-1] / 4
assert max(by_block[-1] for by_block in profiles["post"].values()) < 2 * min(by_block[-1] for by_block in profiles["post"].values())
