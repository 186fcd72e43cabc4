# %% [markdown]
# # 09 · Positions
#
# **120 min · 11 exercises · 28 points**
#
# "Dog bites man" is no news, "man bites dog" is. Attention, as you know it from notebook 08, cannot tell the two apart.
# In eight years people have found half a dozen ways to tell it, and nearly every large model of today uses the same
# one. Here you build all of them, and see why that one won.
#
# **You will be able to**
#
# - write down every scheme in use, from sines over T5's buckets and ALiBi to RoPE, in a few lines each;
# - say of any scheme what it knows: the place of a token, or only how far apart two tokens are;
# - find the mistakes that make a checkpoint talk nonsense: a swapped layout, a wrong base, an angle in bf16.
#
# **You need** attention (notebook 08: queries, keys, scores, the causal mask), sines and cosines. No GPU.

# %%
import math
import random

import torch
import torch.nn.functional as F
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.chapters.positions import figures
from lmcourse.data.grammar import story_grammar
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.nn import embedding, position_bias, rotary
from lmcourse.nn.embedding import EmbeddingConfig
from lmcourse.notebook import check, explore, hint, predict, start
from lmcourse.widgets import Log

start("09-positions")

# %% [markdown]
# ## 1 · Can attention count?
#
# A layer of attention gives every token a weighted average of all tokens. The weights come from scores $q_i \cdot k_j$,
# and a score looks at two vectors, not at the two places where they stand.

# %%
predict("shuffled_words")

# %% [markdown]
# Try it. Three words, random weights, one layer of attention without a mask:

# %%
generator = torch.Generator().manual_seed(0)
dog, bites, man = torch.randn(3, 8, generator=generator)
w_q, w_k, w_v = torch.randn(3, 8, 8, generator=generator) / 8**0.5


def attend(x: Float[Tensor, "s d"]) -> Float[Tensor, "s d"]:
    """One head of attention, everybody sees everybody."""
    scores = (x @ w_q) @ (x @ w_k).T / 8**0.5
    return scores.softmax(dim=-1) @ (x @ w_v)


there, back = attend(torch.stack([dog, bites, man])), attend(torch.stack([man, bites, dog]))
print(f"dog, first and last:   largest difference {(there[0] - back[2]).abs().max():.4f}")
print(f"man, last and first:   largest difference {(there[2] - back[0]).abs().max():.4f}")

# %% [markdown]
# The vectors have moved with their words, and nothing else has happened. Shuffle the input, and the output is shuffled
# the same way: the layer is *permutation-equivariant*. A feed-forward layer works token by token,
# and the next attention is as blind as this one, so a whole model of such layers reads a bag of words.
#
# The oldest cure is to give each place a vector of its own, and to add it to the token that stands there:
#
# $$\tilde x_s = x_s + p_s, \qquad x_s, p_s \in \mathbb{R}^d.$$
#
# Where does $p_s$ come from? The simplest answer: **learn it**, like the vector of a word. A table of shape $(S, d)$,
# one row per position. GPT-1, GPT-2, GPT-3 and OPT do that (Radford et al., 2018 and 2019; Brown et al., 2020; Zhang et
# al., 2022).

# %%
learned = torch.randn(3, 8, generator=generator)
there, back = attend(torch.stack([dog, bites, man]) + learned), attend(torch.stack([man, bites, dog]) + learned)
print(f"dog, first and last:   largest difference {(there[0] - back[2]).abs().max():.4f}")

# %% [markdown]
# Now the two sentences differ. What did it cost?

# %%
predict("learned_beyond")

# %% [markdown]
# Learned positions end where training ended. And each is learned alone: what a model has found out about position 17
# tells it nothing about 18, and late positions, which only long texts reach, are trained rarely.
#
# **In real models.** The tables are small: GPT-2's has 1,024 rows, GPT-3's and OPT's 2,048, the original GPT's 512.
# OPT's starts at row 2, a leftover of a padding convention; whoever forgets this shifts every position by two when
# loading its weights.

# %% [markdown]
# ## 2 · Waves
#
# Could we *compute* a vector for each position instead, for as many as we like?
#
# Think of how you write a number. In binary, the last bit changes at every step, the one before it at every second, the
# next at every fourth. Slow digits give the ballpark, fast ones the exact place. Vaswani et al. (2017, §3.5) do the
# same with smooth digits: pairs of a sine and a cosine, each pair slower than the one before. Pair
# $i = 0 \dots d/2 - 1$ fills features $2i$ and $2i + 1$:
#
# $$\text{PE}(pos, 2i) = \sin(\omega_i\, pos), \qquad \text{PE}(pos, 2i + 1) = \cos(\omega_i\, pos), \qquad \omega_i = 10000^{-2i/d}.$$
#
# By hand, for $d = 4$: two pairs, $\omega_0 = 1$ and $\omega_1 = 10000^{-2/4} = 0.01$. Position 2 becomes
# $(\sin 2, \cos 2, \sin 0.02, \cos 0.02) = (0.909, -0.416, 0.020, 1.000)$.

# %%
omega = [10_000 ** (-2 * i / 4) for i in range(2)]
for position in range(3):
    row = [f(w * position) for w in omega for f in (math.sin, math.cos)]
    print(f"position {position}:", "  ".join(f"{value:6.3f}" for value in row))

# %% [markdown]
# ### Exercise 1 · The table  (3 points · 8 min · ●●)
#
# Return the sinusoidal vectors of these positions, in float32. The sine stands first in each pair. For an odd `d` raise
# `ValueError`.


# %% exercise="sinusoidal"
def sinusoidal(positions: Int[Tensor, " s"], d: int) -> Float[Tensor, "s d"]:
    """One row per position: sin(ω₀ p), cos(ω₀ p), sin(ω₁ p), cos(ω₁ p), …"""
    ### BEGIN SOLUTION
    if d % 2:
        raise ValueError(f"sines and cosines come in pairs: the width must be even, not {d}")
    omega = 10_000.0 ** (-torch.arange(0, d, 2) / d)
    angles = positions[:, None] * omega
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    ### END SOLUTION


# %% check="sinusoidal"
check(sinusoidal)
### BEGIN HIDDEN TESTS
check(sinusoidal, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# This is the whole table for the first positions. Can you see the digits?

# %%
explore(figures.position_heatmap, positions=(8, 128), d=[16, 64, 256])

# %% [markdown]
# ## 3 · How long is a wave?
#
# A pair repeats when its angle has grown by a full turn. How many tokens that takes is its **wavelength**. Take $d = 1024$. Pair 2 turns by $\omega_2 = 0.9647$ radians a token, pair 500 by 0.000124, which is 7,774 times
# slower. Slide the two numbers and look at the dots: that is all a model sees.

# %%
explore(figures.two_waves, first=(0, 511), second=(0, 511), length=(10, 200))

# %% [markdown]
# Pair 2 tells position 2 from 3 at a glance, but not from 15: two turns later it is back where it was. Pair 500 is the
# converse: 2 and 3 differ by 0.0001, but over thousands of tokens it never repeats. Together they are a number, with
# digits of every size.
#
# | pair of $d = 1024$ | radians a token | tokens for a full turn |
# | --- | --- | --- |
# | 0 | 1 | 6.28 |
# | 2 | 0.9647 | 6.51 |
# | 500 | 0.000124 | 50,632.6 |
#
# ### Exercise 2 · The wavelength  (1 point · 3 min · ●)
#
# Return the wavelength of a pair, in tokens. `base` takes the place of the 10,000, because later on it will not always
# be that.


# %% exercise="wavelength"
def wavelength(pair: int, d: int, base: float = 10_000.0) -> float:
    """How many tokens one turn of a pair takes: 2π for pair 0."""
    ### BEGIN SOLUTION
    return 2 * math.pi * base ** (2 * pair / d)
    ### END SOLUTION


# %% check="wavelength"
check(wavelength)
### BEGIN HIDDEN TESTS
check(wavelength, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# In a formula: from $\omega T = 2\pi$ follows
#
# $$T_i = \frac{2\pi}{\omega_i} = 2\pi \cdot \text{base}^{2i/d}.$$
#
# Pick a pair and read its wavelength. All 512 lie between 6.28 and 61,712 tokens, in equal ratios:

# %%
explore(figures.wavelengths, pair=(0, 511), context=[512, 2048, 8192, 131072])

# %% [markdown]
# ### Why a cosine as well?
#
# One wave per frequency would do half the work in half the space. Why two?

# %%
predict("sine_collision")

# %% [markdown]
# A sine alone is ambiguous even within one turn, because $\sin x = \sin(\pi - x)$: it passes each height twice, once on
# its way up and once on its way down. The cosine knows which. Together they are a point on a circle, and a point on a
# circle is unique for a whole turn.

# %%
explore(figures.sine_circle, first=(0, 50), second=(0, 50), pair=(0, 20))

# %% [markdown]
# ## 4 · A step is a turn
#
# Why *these* waves? The authors give a reason: they hoped that a model would easily learn to attend by *relative*
# position.

# %%
predict("one_matrix")

# %% [markdown]
# One pair is a point on a circle. Whoever walks $k$ tokens turns it by $\omega k$, no matter where the walk began. In
# formulas, the addition theorems:
#
# $$\begin{pmatrix} \sin \omega(pos + k) \\ \cos \omega(pos + k) \end{pmatrix} =
# \underbrace{\begin{pmatrix} \cos \omega k & \sin \omega k \\ -\sin \omega k & \cos \omega k \end{pmatrix}}_{A_k}
# \begin{pmatrix} \sin \omega\, pos \\ \cos \omega\, pos \end{pmatrix}$$
#
# The matrix contains $k$ but not $pos$. For all $d/2$ pairs together it is a $(d, d)$ matrix with $d/2$ such blocks
# along its diagonal and zeros elsewhere. Does the $\omega$ matter? Pair 2 of $d = 1024$, five tokens on from position 7,
# with and without it:

# %%
speed, position, step = 10_000 ** (-4 / 1024), 7, 5
here = torch.tensor([math.sin(speed * position), math.cos(speed * position)])
print("the truth:       ", [round(f(speed * (position + step)), 3) for f in (math.sin, math.cos)])
for name, angle in (("with ω:          ", speed * step), ("without ω:       ", step)):
    turn = torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    print(name, [round(value, 3) for value in (turn @ here).tolist()])

# %% [markdown]
# ### Exercise 3 · The matrix of a step  (3 points · 8 min · ●●)
#
# Return the float32 matrix $A_k$ for which $A_k\,\text{PE}(pos) = \text{PE}(pos + k)$ at every position, with the
# features in the order of exercise 1. Steps back (negative $k$) count as well.


# %% exercise="shift_matrix"
def shift_matrix(k: int, d: int) -> Float[Tensor, "d d"]:
    """What takes the positions' vectors k tokens on: one 2 × 2 rotation per pair."""
    ### BEGIN SOLUTION
    blocks = []
    for i in range(d // 2):
        angle = k * 10_000 ** (-2 * i / d)
        cos, sin = math.cos(angle), math.sin(angle)
        blocks.append(torch.tensor([[cos, sin], [-sin, cos]]))
    return torch.block_diag(*blocks)
    ### END SOLUTION


# %% check="shift_matrix"
check(shift_matrix)
### BEGIN HIDDEN TESTS
check(shift_matrix, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# So the dot product of two positions knows only their distance: $p_m \cdot p_n = \sum_i \cos \omega_i (m - n)$. But
# positions are not compared alone. They were added to words, and the score multiplies it all out. Leaving the weights
# aside:
#
# $$(x + p_m) \cdot (y + p_n) = \underbrace{x \cdot y}_{\text{words}} + \underbrace{x \cdot p_n + p_m \cdot y}_{\text{word and place}} + \underbrace{p_m \cdot p_n}_{\text{distance}}$$

# %%
waves = embedding.sinusoidal(torch.arange(200), 8)
x, y = torch.randn(2, 8, generator=generator)
for m, n in ((3, 5), (103, 105)):
    p, r = waves[m], waves[n]
    print(f"m = {m:3}, n = {n:3}:  p·p′ = {p @ r:.3f}   x·p′ + p·y = {x @ r + p @ y:6.3f}")

# %% [markdown]
# The two cross terms do not look at the distance but at the place. Adding any vector to the input, learned or not, *leaks
# the absolute position*: the score of two neighbours changes when a paragraph is put in front of them. And with the
# weight matrices $W_Q, W_K$ in between, not even the last term stays a function of the distance.
#
# **In real models.** In the original paper, learned and sinusoidal positions gave nearly the same quality (Vaswani et
# al., 2017, table 3, row E). The hope for relative positions was not fulfilled by itself; the next four schemes put the
# distance where it is needed: into the score.

# %% [markdown]
# ## 5 · A vector for each distance
#
# What matters to a word is not that the verb is at place 17, but that it is two places back. Shaw et al. (2018) give
# each *offset* $j - i$, key minus query, a learned vector $a_{j-i}$ and add it to the key, for this query only:
#
# $$e_{ij} = \frac{q_i \cdot (k_j + a_{j-i})}{\sqrt d}.$$
#
# (A second set of vectors may be added to the values in the same manner: $z_i = \sum_j \alpha_{ij} (v_j + a'_{j-i})$,
# with $\alpha$ the softmax of $e$.)
#
# A text of a million tokens has two million offsets, and who needs to tell 800 back from 801 back? So offsets are
# **clipped** to $\pm K$: everything farther shares the outermost vector, and $2K + 1$ vectors remain. They are stored in a table,
# where row $\text{clip}(j - i) + K$ belongs to the offset.

# %%
explore(figures.relative_bands, clip=(0, 7), length=(4, 12))

# %%
predict("relative_cost")

# %% [markdown]
# The formula says to build a different key for every pair: an $(s, s, d)$ tensor. But multiply out:
# $q \cdot (k + a) = q \cdot k + q \cdot a$. The first part is the usual product. The second has only $2K + 1$ different
# values for each query: compute those, $(s, 2K + 1)$, and pick the right one for each key.

# %%
s, d, clip = 4096, 64, 16
mib = 2**20 / 4  # numbers in a MiB, in fp32
print(f"a vector for each pair:  {s * s * d / mib:7,.1f} MiB per head")
print(f"q·a for each vector:     {s * (2 * clip + 1) / mib:7,.1f} MiB per head")
print(f"the scores themselves:   {s * s / mib:7,.1f} MiB per head")

# %% [markdown]
# ### Exercise 4 · Shaw's scores, efficiently  (3 points · 9 min · ●●● · differentiable)
#
# Return the scores $e_{ij}$ of every head. `vectors` holds the $2K + 1$ relative vectors, shared by the heads, from
# offset $-K$ to $+K$. Do not build an $(s, s, d)$ tensor.


# %% exercise="shaw_scores"
def shaw_scores(
    q: Float[Tensor, "h s d"], k: Float[Tensor, "h s d"], vectors: Float[Tensor, "r d"]
) -> Float[Tensor, "h s s"]:
    """(q·k + q·a) / √d, where a is the vector of the clipped offset key − query."""
    ### BEGIN SOLUTION
    heads, length, d = q.shape
    clip = len(vectors) // 2
    position = torch.arange(length)
    index = (position - position[:, None]).clamp(-clip, clip) + clip
    content = einsum(q, k, "h i d, h j d -> h i j")
    per_vector = einsum(q, vectors, "h i d, r d -> h i r")
    relative = per_vector.gather(-1, index.expand(heads, -1, -1))
    return (content + relative) / d**0.5
    ### END SOLUTION


# %% check="shaw_scores"
check(shaw_scores)
### BEGIN HIDDEN TESTS
check(shaw_scores, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# **In real models.** Shaw et al. clipped at 16 in their base model, and report that anything from 2 on works about as
# well, and that the vectors on the keys suffice (§4.3). Vectors of this kind live on in speech: SeamlessM4T v2 uses
# them, clipped at 64 to the past and 8 to the future.

# %% [markdown]
# ## 6 · A number for each distance
#
# A vector in every key, only to change a score: would not a *number* be enough?
#
# T5 (Raffel et al., 2020, §2.1) adds one learned number to the score, for each head and range of offsets:
#
# $$e_{ij} = q_i \cdot k_j + b_{\text{head},\, \text{bucket}(j - i)}.$$
#
# (T5 does not divide by $\sqrt d$; its initialisation makes up for it.) There are 32 **buckets**. Half of them hold one
# distance each: 0, 1, 2, …, 15. The other half share all that is farther away, in ranges that grow in equal ratios up
# to 128; beyond, everything is in the last bucket. Precise near by, vague far off, like your own memory of a book.
#
# By hand, for the decoder, with $n = 32$ buckets for the past. A distance below $n/2 = 16$ is its own bucket. Distance
# 100: from 16 to 128 is a factor of 8; to 100 it is 6.25, which is $\ln 6.25 / \ln 8 = 0.881$ of the way, so
# $0.881 \cdot 16 = 14.1$ buckets on: bucket $16 + 14 = 30$.
#
# $$\text{bucket} = \min\left(n - 1,\ \frac n2 + \left\lfloor \frac{\ln (\text{distance} / \frac n2)}{\ln(\text{max\_distance} / \frac n2)} \cdot \Big(n - \frac n2\Big) \right\rfloor\right)$$

# %%
explore(figures.t5_buckets, bidirectional=[False, True], buckets=[8, 16, 32, 64], max_distance=[64, 128, 256])

# %%
predict("far_away")

# %% [markdown]
# The encoder looks both ways. There each side has half of the buckets ($n = 16$): the past the lower half, the future
# the upper. In the decoder there is no future; offsets that point to it, which the mask removes anyway, fall into
# bucket 0.
#
# ### Exercise 5 · T5's buckets  (3 points · 10 min · ●●●)
#
# Return the bucket of each offset, key minus query: the past is negative. Integers of the same shape come out.


# %% exercise="t5_bucket"
def t5_bucket(
    offset: Int[Tensor, "*shape"], bidirectional: bool, buckets: int = 32, max_distance: int = 128
) -> Int[Tensor, "*shape"]:
    """The bucket of each offset: 30 for −100 in the decoder."""
    ### BEGIN SOLUTION
    side = buckets // 2 if bidirectional else buckets
    distance = offset.abs() if bidirectional else (-offset).clamp(min=0)
    exact = side // 2
    share = torch.log(distance.clamp(min=exact) / exact) / math.log(max_distance / exact)
    steps = (share * (side - exact)).long()  # none for a distance below exact
    bucket = (distance.clamp(max=exact) + steps).clamp(max=side - 1)
    return bucket + side * (offset > 0) if bidirectional else bucket
    ### END SOLUTION


# %% check="t5_bucket"
check(t5_bucket)
### BEGIN HIDDEN TESTS
check(t5_bucket, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# The learned numbers are few, 32 per head, and all layers share them. T5 was trained on 512 tokens and can read more,
# since the last bucket has no end; it just cannot tell how far "far" is.
#
# ### A third way: Transformer-XL
#
# Remember the four terms of section 4. Dai et al. (2019, §3.3) start there and repair each one: the key's place $p_n$
# becomes a *wave of the distance*, $r_{m-n}$, with a weight matrix of its own, and the query's place $p_m$, which must
# not matter, becomes one learned vector, $u$ beside words and $v$ beside waves:
#
# $$e_{mn} = \underbrace{q_m \cdot k_n}_{\text{words}} + \underbrace{q_m \cdot W_R\, r_{m-n}}_{\text{word and distance}} + \underbrace{u \cdot k_n}_{\text{word alone}} + \underbrace{v \cdot W_R\, r_{m-n}}_{\text{distance alone}}$$
#
# Every place has become a distance. A check in small, with the same query and key at two places, first two apart, then
# three:

# %%
w_r, (u, v), (q, k) = (torch.randn(*shape, 8, generator=generator) for shape in ((8,), (2,), (2,)))


def transformer_xl(m: int, n: int) -> float:
    """The score of the query q at place m and the key k at place n."""
    r = embedding.sinusoidal(torch.tensor(m - n), 8)
    return ((q + u) @ k + (q + v) @ w_r @ r).item()


for m, n in ((5, 3), (105, 103), (105, 102)):
    print(f"query at {m:3}, key at {n:3}:  score {transformer_xl(m, n):.3f}")

# %% [markdown]
# **In real models.** Gopher (Rae et al., 2021) and Chinchilla (Hoffmann et al., 2022) use this scheme. "Relative" is a
# family, not a formula.

# %% [markdown]
# ## 7 · Nothing to learn: ALiBi
#
# T5 *learns* how much a distance costs. Press et al. (2022) asked what happens if one simply decides it. Their
# **attention with linear biases** charges a fixed price per token:
#
# $$e_{ij} = \frac{q_i \cdot k_j}{\sqrt d} - m_h\, (i - j), \qquad j \le i.$$
#
# The price, the **slope** $m_h$, is different for each head, so that some heads look at their neighbourhood and others
# far back. By hand: in a head with slope ½ a token ten back is charged 5, and its weight is divided by $e^5 = 148$.
# With slope 1/256 the same distance costs 0.04, and nearly nothing is lost.

# %%
explore(figures.alibi_heads, heads=[2, 4, 8, 12], length=(8, 128))

# %% [markdown]
# For $n$ heads, $n$ a power of two, the slopes are a geometric series that starts at its own ratio:
# $2^{-8/n}, 2^{-16/n}, \dots, 2^{-8}$. Eight heads have $\tfrac12, \tfrac14, \dots, \tfrac1{256}$; sixteen begin at
# $2^{-1/2} = 0.707$ and end at the same 1/256.
#
# And for other numbers? The authors' code has a rule: take the slopes of the next *smaller* power of two; then add,
# from the series of *twice* that power, the first, third, fifth … slope, as many as are missing. Those lie in the gaps.

# %%
explore(figures.slopes_by_head, heads=(1, 40))

# %% [markdown]
# ### Exercise 6 · Slopes for any number of heads  (2 points · 7 min · ●●)
#
# Return the slopes as a float32 tensor, in the order above.


# %% exercise="alibi_slopes"
def alibi_slopes(heads: int) -> Float[Tensor, " heads"]:
    """The slope of each head: ½, ¼, …, 1/256 for eight."""
    ### BEGIN SOLUTION
    power = 2 ** math.floor(math.log2(heads))
    own = 2.0 ** (-8 / power * torch.arange(1, power + 1))
    borrowed = 2.0 ** (-4 / power * (2 * torch.arange(heads - power) + 1))
    return torch.cat([own, borrowed])
    ### END SOLUTION


# %% check="alibi_slopes"
check(alibi_slopes)
### BEGIN HIDDEN TESTS
check(alibi_slopes, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now the bias itself. When a model generates text with a cache (notebook 17), only the newest tokens ask, but all
# earlier ones are keys. So there may be fewer queries than keys, and the queries are the *last* tokens.
#
# ### Exercise 7 · The bias  (2 points · 6 min · ●●)
#
# Return what is added to the scores: $m_h\,(j - i)$ for keys that are not ahead of the query, $-\infty$ for those that
# are, in the dtype of the slopes. With more queries than keys raise `ValueError`.


# %% exercise="alibi_bias"
def alibi_bias(slopes: Float[Tensor, " h"], queries: int, keys: int) -> Float[Tensor, "h queries keys"]:
    """ALiBi and the causal mask in one; the queries are the last tokens of the text."""
    ### BEGIN SOLUTION
    if queries > keys:
        raise ValueError(f"{queries} queries cannot be the last of {keys} tokens")
    query = torch.arange(keys - queries, keys)
    offset = torch.arange(keys) - query[:, None]
    return (slopes[:, None, None] * offset).masked_fill(offset > 0, -math.inf)
    ### END SOLUTION


# %% check="alibi_bias"
check(alibi_bias)
### BEGIN HIDDEN TESTS
check(alibi_bias, hidden=True)
### END HIDDEN TESTS

# %%
predict("flattest_head")

# %% [markdown]
# Where all words are alike, a head's attention falls off exponentially with the distance. How much of it reaches the
# beginning of the text?

# %%
explore(figures.alibi_reach, context=Log(64, 8192), heads=[2, 4, 8])

# %% [markdown]
# That is a built-in belief: near is important. It is why ALiBi models can read texts longer than any they were trained
# on (trained on 1,024 tokens, Press et al.'s model reads 2,048 as well as a sinusoidal one that was trained on 2,048):
# new distances only carry on a straight line. It is also its price. What is 10,000 tokens back costs even the flattest
# head 39, and $e^{-39}$ is nothing, however well it matches.
#
# **In real models.** BLOOM (Le Scao et al., 2022; 112 heads, which is no power of two) and MPT (MosaicML, 2023).
# BLOOM's code adds $m_h \cdot j$, the key's place, instead of the distance. Within a row that differs by a constant,
# and softmax does not see constants (notebook 01).

# %% [markdown]
# ## 8 · Turn, do not add: RoPE
#
# Here is what we should like to have (Su et al., 2021). Some function $f$ puts the position into a query and into a
# key, each on its own, so that their inner product knows the two words and the *distance*, and nothing else:
#
# $$\langle f(q, m),\ f(k, n) \rangle = g(q, k, m - n).$$
#
# Adding a vector fails, as we saw. What operation on two vectors leaves their inner product alone if both are moved
# equally?

# %%
predict("which_rotation")

# %% [markdown]
# So let a position be a *turn*. Take vectors with two features, and turn the word at position $m$ by the angle
# $m\theta$. In "we know", *we* is at 0 and *know* at 1. In "of course we know" they are at 2 and 3: both arrows have
# turned by two more steps, and the angle between them is what it was.

# %%
explore(figures.rotating_pair, words_before=(0, 12), words_between=(0, 6), turned=["both", "only know"])

# %% [markdown]
# Now choose *only know* and move the first slider. Inner products are invariant to a **common** rotation; the relative
# one is exactly what they do care about.
#
# ### From two features to $d$
#
# A real head has 64 or 128 features. Cut them into pairs, and turn each pair at a speed of its own, the speeds you know
# from section 2, with $d$ now the width of a *head*:
#
# $$\begin{pmatrix} a_i' \\ b_i' \end{pmatrix} = \begin{pmatrix} \cos m\theta_i & -\sin m\theta_i \\ \sin m\theta_i & \cos m\theta_i \end{pmatrix} \begin{pmatrix} a_i \\ b_i \end{pmatrix},
# \qquad \theta_i = 10000^{-2i/d}, \quad i = 0 \dots d/2 - 1.$$
#
# All pairs together are one large rotation $R_m$, block by block. Now the proof is one line. A rotation's transpose
# turns back, and turning by $n$ after turning back by $m$ is turning by $n - m$:
#
# $$(R_m q) \cdot (R_n k) = q^\top R_m^\top R_n\, k = q^\top R_{n-m}\, k.$$
#
# And a head is a set of clocks, from a second hand to one that needs days:

# %%
explore(figures.rotation_clocks, position=(0, 1000), base=[10_000.0, 500_000.0])

# %% [markdown]
# With the projections written out, $q = W_q x_m$ and $k = W_k x_n$, the score is $x_m^\top W_q^\top R_{n-m} W_k x_n$. The
# transpose on $W_q$ is easily lost. In numbers:

# %%
rope8 = rotary.Rotary(rotary.RotaryConfig(layout="interleaved"), 8)
x_m, x_n, m, n = *torch.randn(2, 8, generator=generator), torch.tensor([5]), torch.tensor([11])


def turn(x: Tensor, position: Tensor) -> Tensor:
    """One vector, turned to its position."""
    return rope8(x[None, None, None], position[None])[0, 0, 0]


print(f"(R_m W_q x_m)·(R_n W_k x_n)       {turn(w_q @ x_m, m) @ turn(w_k @ x_n, n):.2f}")
print(f"x_mᵀ W_qᵀ R_(n−m) W_k x_n         {(w_q @ x_m) @ turn(w_k @ x_n, n - m):.2f}")
print(f"x_mᵀ W_q  R_(n−m) W_k x_n         {(x_m @ w_q) @ turn(w_k @ x_n, n - m):.2f}")

# %% [markdown]
# ### Without a matrix
#
# $R_m$ is $d \times d$ and nearly all zeros. Nobody multiplies by it. Written out, each pair needs four products:
#
# $$a_i' = a_i \cos m\theta_i - b_i \sin m\theta_i, \qquad b_i' = a_i \sin m\theta_i + b_i \cos m\theta_i.$$
#
# As one line for a whole vector, with $c$ and $s$ the cosines and sines of each feature's angle:
# $x \odot c + \text{swap}(x) \odot s$, where $\text{swap}$ exchanges the two of a pair and puts a minus before the one
# that comes first: $(-b_0, a_0, -b_1, a_1, \dots)$.
#
# ### Exercise 8 · RoPE  (3 points · 9 min · ●● · differentiable)
#
# Turn `x`, whose last two axes are tokens and features, to the given positions. Neighbouring features $2i$ and $2i + 1$
# are a pair. Compute in float32, whatever comes in, and give back the dtype of `x`. For an odd width raise
# `ValueError`. Write it yourself, without `transformers`; so in the next exercise.


# %% exercise="rope"
def rope(
    x: Float[Tensor, "*batch s d"], positions: Int[Tensor, " s"], base: float = 10_000.0
) -> Float[Tensor, "*batch s d"]:
    """Each pair (x₂ᵢ, x₂ᵢ₊₁) turned by the angle position · base^(−2i/d)."""
    ### BEGIN SOLUTION
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"RoPE turns features in pairs: the width must be even, not {d}")
    angle = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    a, b = x.float()[..., ::2], x.float()[..., 1::2]
    turned = [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
    return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)
    ### END SOLUTION


# %% check="rope"
check(rope)
### BEGIN HIDDEN TESTS
check(rope, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Why float32? bf16 counts to 256 and no further (notebook 01). In bf16, positions 1,000 and 1,001 are one and the same,
# and the fastest pair is off by a radian (Wang et al., 2024, saw the damage in long texts).

# %% [markdown]
# ## 9 · RoPE in real models
#
# The formula is settled. What is left to get wrong?
#
# ### Which features are a pair?
#
# The paper pairs neighbours. GPT-NeoX, and after it nearly all code on Hugging Face, pairs feature $i$ with feature
# $i + d/2$: two halves are easier to slice.

# %%
explore(figures.pair_layouts, d=[4, 8, 16])

# %% [markdown]
# It is the same operation under another order of the features: even ones first, then the odd ones,
# $\pi = (0, 2, 4, \dots, 1, 3, 5, \dots)$. If the features of queries *and* keys are permuted alike, no score changes.
# So a checkpoint made for one layout can be used with code for the other: permute the rows of $W_Q$ and $W_K$ in each
# head, once. That is what the conversion of Meta's Llama weights does. Forget it, and the model loads without an error
# and talks nonsense.
#
# ### Exercise 9 · RoPE in halves, and the way there  (3 points · 8 min · ●● · differentiable)
#
# Turn pairs $(i,\ i + d/2)$, at base 10,000. With `interleaved=True` the features come in the order of exercise 8:
# bring them into halves *first* (and leave the result in halves). So `rope_half(x, p, interleaved=True)` is
# `rope(x, p)[..., π]`.


# %% exercise="rope_half"
def rope_half(
    x: Float[Tensor, "*batch s d"], positions: Int[Tensor, " s"], interleaved: bool = False
) -> Float[Tensor, "*batch s d"]:
    """RoPE with feature i and feature i + d/2 as a pair; the dtype of x, computed in float32."""
    ### BEGIN SOLUTION
    if interleaved:
        x = torch.cat([x[..., ::2], x[..., 1::2]], dim=-1)
    d = x.shape[-1]
    angle = positions[:, None] * 10_000.0 ** (-torch.arange(0, d, 2) / d)
    a, b = x.float().chunk(2, dim=-1)
    turned = [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
    return torch.cat(turned, dim=-1).to(x.dtype)
    ### END SOLUTION


# %% check="rope_half"
check(rope_half)
### BEGIN HIDDEN TESTS
check(rope_half, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Where does it go?
#
# Not at the bottom of the model, where $p_s$ used to be added, but into *every* attention layer, after the projections
# and before the scores. Llama's order of events:
#
# ```python
# q, k, v = split_heads(x @ W_q), split_heads(x @ W_k), split_heads(x @ W_v)
# cos, sin = angles(positions)                    # computed once, shared by all layers and heads
# q, k = rope(q, cos, sin), rope(k, cos, sin)     # not v
# z = attention(q, k, v, mask)                    # any kernel: it never hears of positions
# ```
#
# The values carry no position, so the sum that a layer passes on is made of words alone, and the next layer turns its
# queries and keys afresh.
#
# ### How fast?
#
# Questions that students of the lecture asked: are the angles the same in all models? Are they trained? Does all that
# turning not hurt training?
#
# They are not trained. They are a fixed schedule, and a rotation is a fixed orthogonal matrix: it keeps every length,
# forwards and backwards, so gradients pass it unharmed. But the **base** is a hyperparameter (the answer in the
# lecture, that the angles are "not hyperparameters", is half right: they are not trained, and they are chosen), and it
# has grown with the contexts. A larger base slows all pairs but the first, the last ones most. See what is left of the
# slow pairs within a context, at each base:

# %%
explore(figures.wavelengths, d=128, pair=(0, 63), base=[10_000, 500_000, 1_000_000], context=[4096, 8192, 131072])

# %% [markdown]
# With a base of 10,000 a head of 128 has wavelengths up to 54,410 tokens; with Llama 3's 500,000 up to 2,559,196.
#
# ### And beyond?
#
# A model that was trained on 8,192 tokens has seen only part of a turn of its slow pairs. In a longer text these reach
# angles that are new to it, and it loses its way. The cures squeeze the angles back into the known range: divide all
# positions by a factor (*position interpolation*, Chen et al., 2023), or slow down the slow pairs only and leave the
# fast ones, which tell neighbours apart (YaRN, Peng et al., 2024; Llama 3.1 has a variant). A little training
# afterwards does the rest. Which scaling leaves the fastest pair alone?

# %%
explore(figures.rope_scaling, scaling=["none", "interpolation", "Llama 3.1"], factor=(1, 16), base=[10_000, 500_000])

# %% [markdown]
# **In real models.**
#
# | model | pairs | base | which features and layers |
# | --- | --- | --- | --- |
# | GPT-J (Wang and Komatsuzaki, 2021) | neighbours | 10,000 | 64 of each head's 256 features |
# | GPT-NeoX-20B (Black et al., 2022) | halves | 10,000 | a quarter of the features |
# | Llama, Llama 2 (Touvron et al., 2023) | neighbours at Meta, halves on Hugging Face | 10,000 | all |
# | Llama 3 (Grattafiori et al., 2024) | as before | 500,000 | all |
# | Gemma 3 (Gemma Team, 2025) | halves | 10,000 in local layers, 1,000,000 in global ones | all |

# %%
figures.position_timeline()

# %% [markdown]
# ## 10 · Is it relative?
#
# Half a dozen schemes, and each claims to know about distance. How would you test such a claim?
#
# Put the *same* query and the *same* key at every position, and write the scores into a matrix. If a score depends on
# $j - i$ only, each diagonal is constant. Such a matrix is called a **Toeplitz** matrix.
#
# ### Exercise 10 · The Toeplitz test  (3 points · 7 min · ●●)
#
# Return whether every diagonal of every matrix in `scores` is constant: its largest entry minus its smallest is at most
# `tolerance`. Masked entries are $-\infty$; a diagonal of nothing but $-\infty$ is constant. The check tries your test
# on the schemes of this notebook.


# %% exercise="is_relative"
def is_relative(scores: Float[Tensor, "*batch s t"], tolerance: float = 1e-4) -> bool:
    """Whether the scores are a function of the offset key − query alone."""
    ### BEGIN SOLUTION
    rows, columns = scores.shape[-2:]
    for offset in range(2 - rows, columns - 1):  # the two in the corners are single scores
        diagonal = scores.diagonal(offset, -2, -1)
        spread = diagonal.amax(dim=-1) - diagonal.amin(dim=-1)  # NaN where all is −∞, and NaN > tolerance is False
        if (spread > tolerance).any():
            return False
    return True
    ### END SOLUTION


# %% check="is_relative"
check(is_relative)
### BEGIN HIDDEN TESTS
check(is_relative, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now look at them, without a mask. Each picture shows one query and one key at ten places. Shift the text: in which
# pictures does anything move?

# %%
schemes = ["none", "sinusoidal", "learned", "Shaw", "Transformer-XL", "T5", "ALiBi", "RoPE"]
explore(figures.position_scores, scheme=schemes, shift=(0, 100))

# %% [markdown]
# Shaw, Transformer-XL, T5, ALiBi and RoPE all pass. Why then did RoPE win? There is a second property, hidden in our
# wish of section 8. In RoPE the score is an **inner product of two vectors**, each of which knows only its own token
# and its own place: $f(q, m) \cdot f(k, n)$.
#
# That can be tested too. A matrix of inner products of vectors with $d$ numbers has rank $d$ at most, however long the
# text is. Here are 64 different words in a row, with $d = 16$:

# %%
for scheme in schemes:
    rank = int(torch.linalg.matrix_rank(figures.scheme_scores(scheme, tokens=64, same_words=False), rtol=1e-4))
    print(f"{scheme:15} rank {rank:2}: {'inner products' if rank <= 16 else 'not inner products'} of 16 numbers")

# %% [markdown]
# What is *added to the score* does not fit into queries and keys of the given width. It has to be brought into the
# $s \times s$ matrix of scores, and so into the inside of the attention kernel. RoPE changes the vectors before the
# kernel begins: it works with any fast kernel as it is, and a cache stores keys that are turned already (notebook 17).
# Of the eight pictures, only "none" and RoPE are both relative and inner products.
#
# (Causal ALiBi is a near miss. Its bias is $m j - m i$; the second part is the same for a whole row, where softmax does
# not see it. So one feature more, which holds $j$, would do.)

# %% [markdown]
# ## 11 · Nothing at all
#
# One scheme is left: none. Does a causal model need positions?

# %%
predict("no_positions")

# %% [markdown]
# The causal mask breaks the symmetry. The first token can see one token, the tenth ten. Suppose a head attends to all
# of them equally, and the tokens are noise: independent features with mean 0 and variance 1. Then token $s$ receives an
# average of $s$ vectors, and the variance of an average is $1/s$. So the mean square of what it receives is about
# $1/s$, and its inverse is about $s$: the position.
#
# By hand: the average of four random signs is 0, ±½ or ±1, and its mean square is
# $0 \cdot \tfrac{6}{16} + \tfrac14 \cdot \tfrac{8}{16} + 1 \cdot \tfrac{2}{16} = \tfrac14$.
#
# ### Exercise 11 · The signal in the mask  (2 points · 6 min · ●●)
#
# Let every token attend equally to itself and all tokens before it (all scores equal, values unchanged). Return, for
# each token, 1 over the mean square (over the features) of what it receives.


# %% exercise="nope_position_signal"
def nope_position_signal(x: Float[Tensor, "b s d"]) -> Float[Tensor, "b s"]:
    """1 / mean square of uniform causal attention: about 1, 2, 3, … for noise."""
    ### BEGIN SOLUTION
    count = torch.arange(1, x.shape[1] + 1)
    average = x.cumsum(dim=1) / count[:, None]
    return 1 / average.square().mean(dim=-1)
    ### END SOLUTION


# %% check="nope_position_signal"
check(nope_position_signal)
### BEGIN HIDDEN TESTS
check(nope_position_signal, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.nope_estimate, features=Log(8, 512), length=(16, 128))

# %% [markdown]
# So a mask knows positions without a single weight: nothing in it is learned. Only positions and the mask know the
# length at all. Double $S$, and this is what changes:
#
# | tensor | shape | learned | twice as long a text |
# | --- | --- | --- | --- |
# | token embedding | $(V, d)$ | yes | the same |
# | learned positions | $(S, d)$ | yes | more rows to train |
# | sinusoidal table, RoPE's angles | $(S, d)$, $(S, d/2)$ | no | computed for more positions |
# | T5's buckets, ALiBi's slopes | $(32, h)$, $(h)$ | yes, no | the same |
# | weights of attention and feed-forward | $(d, \cdot)$ | yes | the same |
# | mask and scores | $(S, S)$ | no | four times as large |
#
# **In real models.** Models without positions were trained in earnest: Haviv et al. (2022) found them competitive with
# others of their size, and Kazemnejad et al. (2023) better at going beyond the trained length on small reasoning tasks.
# Today NoPE appears in mixtures. In Command A (Cohere, 2025) three layers with a sliding window and RoPE are followed
# by one that sees everything and has no positions; Llama 4 also leaves RoPE out of every fourth layer. The windowed
# layers know the order near by, the others look anywhere, and no pair of tokens ever meets at an angle that training
# has not shown.

# %% [markdown]
# ## 12 · Longer than in training
#
# Most of these schemes *can* read a text that is longer than all that training has shown. How well? Here four tiny models
# of two layers and 22,000 weights learn our little stories, 32 characters at a time: one without positions, one with a
# learned table (of 128 rows, of which training reaches 32), one with ALiBi and one with RoPE. Then each reads 128
# characters of new stories.

# %%
predict("rope_beyond")

# %%
torch.set_num_threads(1)  # models this small are fastest on one
stories, source = story_grammar(), random.Random(0)
story = "".join(stories.generate(source) for _ in range(300))
characters = sorted(set(story))
text = torch.tensor([characters.index(character) for character in story])
train_text, new_text = text[:-20_000], text[-20_000:]


def windows(text: Int[Tensor, " n"], count: int, length: int) -> Int[Tensor, "count length+1"]:
    """So many pieces of the text, each with the character after it."""
    first = torch.randint(len(text) - length, (count, 1))
    return text[first + torch.arange(length + 1)]


def losses(model: Transformer, rows: Int[Tensor, "n s+1"]) -> Float[Tensor, "n s"]:
    return F.cross_entropy(model(rows[:, :-1]).mT, rows[:, 1:], reduction="none")


def loss_at_each_position(scheme: str, seed: int = 0, steps: int = 400) -> list[float]:
    """Train a tiny LLaMA with these positions on 32 characters at a time; its loss at 128 positions of new text."""
    torch.manual_seed(seed)
    table = EmbeddingConfig("learned", max_positions=128) if scheme == "learned" else None
    attention = {} if scheme == "RoPE" else {"rotary": None}
    config = llama_like(
        2, 32, 4, 64, vocab_size=len(characters), context=128, tied=True, embedding=table, layer_pattern=(attention,)
    )
    model = Transformer(config.with_(position_bias=position_bias.AlibiConfig() if scheme == "ALiBi" else None))
    initialize(model)
    optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = 0.01 * min(1, (step + 1) / 20) * (1 - step / steps)
        optimiser.zero_grad()
        losses(model, windows(train_text, 16, 32)).mean().backward()
        optimiser.step()
    with torch.no_grad():
        return losses(model, windows(new_text, 256, 128)).mean(dim=0).tolist()


measured = {scheme: loss_at_each_position(scheme) for scheme in ("none", "learned", "ALiBi", "RoPE")}
share = text.bincount() / len(text)
frequencies = -(share * share.log()).sum().item()  # the loss of who knows only how frequent each character is
figures.loss_by_position(measured, 32, frequencies)

# %% [markdown]
# Within the trained length ALiBi and RoPE are ahead. Beyond it:
#
# - **ALiBi** holds. Far tokens are charged more and more and hardly count, so a long text looks like a short one. It does
#   not get *better* either, with four times as much to read.
# - **RoPE** falls apart, until it is worse than somebody who reads nothing and only knows how frequent each character
#   is. Its heads have 8 features, and their second pair turns once in 63 tokens: in 32 it has shown half of its angles.
#   The scores are relative, and that does not help with distances that are new. Hence the cures in section 9.
# - **The learned table** stops at its row 32. What the other rows add was never learned.
# - **No positions**: slowly worse, and already behind within the 32. A mask tells early places apart, 1 from 1/2, better than
#   late ones, 1/100 from 1/101.
#
# These are four tiny models; with other seeds the curves lie elsewhere, and the four sentences hold. Press et al. (2022)
# trained models of 247 million parameters: theirs with RoPE got worse beyond the trained length as well, and those with
# ALiBi did not.

# %% [markdown]
# ## What to keep
#
# | scheme | where it acts | learned | relative | beyond the trained length |
# | --- | --- | --- | --- | --- |
# | learned | added to the input | a row per position | no | impossible |
# | sinusoidal | added to the input | nothing | no | defined, but poor |
# | Shaw | $q \cdot a_{j-i}$ in the score | $2K + 1$ vectors | yes | yes: clipped |
# | Transformer-XL | waves of the distance in the score | $W_R, u, v$ | yes | yes |
# | T5 | a number in the score | 32 numbers a head | yes | yes: last bucket |
# | ALiBi | $-m_h (i - j)$ in the score | nothing | yes | yes, with a fixed recency bias |
# | RoPE | turns $q$ and $k$ | nothing | yes, *and* an inner product | poor, unless slowed down |
# | none | the causal mask | nothing | – | slowly worse |
#
# And the three formulas: $\omega_i = \text{base}^{-2i/d}$; wavelength $2\pi/\omega_i$;
# $(R_m q) \cdot (R_n k) = q^\top R_{n-m} k$.

# %% [markdown]
# ### Slips
#
# **Spot the slip.** Sentences from lecture notes and talks on this subject, as printed or spoken. Each is wrong; by now
# you can say why.
#
# > - The slow wave, pair 500, completes its cycle "in around 50645 positions", as $T \approx 2 \times 3.14 / 0.000124$.
# >   (Wrong from the fourth digit on: *two* numbers were rounded, and a quotient inherits the error of both.)
# > - At $i = 2$ the sines of positions 3 and 6 "will have almost exactly the same value". (0.245 and −0.475. The idea is
# >   right, the example is not.)
# > - $\sin(pos + k) = \sin(pos)\cos(k) + \dots$ (Right for one pair of the 512, whose $\omega$ is 1.)
# > - "T5, Gopher, Chinchilla" use Shaw's vectors. (T5 adds scalars, the other two use the scheme of Transformer-XL.)
# > - ALiBi's slopes are "going up to $1/2^8$". (They go *down* to it: the first head is the steepest.)
# > - Inner products are "invariant to arbitrary rotation". (To a common one.)
# > - RoPE means "rotating the query vector and value vector". (Values are never turned.)
# > - The causal mask "carries weights with a dimension of size $S$", and without positional encodings a transformer could
# >   not read the index off pure noise. (It has no weights; exercise 11 reads it.)

# %% [markdown]
# ## Check yourself
#
# 1. Why can a model with learned positions not read token 1,025 after training on 1,024, and why would it not help to
#    give it a longer table?
# 2. Which pair of $d = 1024$ would you ask to tell position 2 from 3: pair 2 or pair 500? And to tell 2 from 15? And 2
#    from 20,000?
# 3. A colleague turns values as well as queries and keys. Does the score still depend on the distance only? What does
#    the layer's output depend on?
# 4. You load a Llama checkpoint, and the model produces fluent words in senseless order. All tensors had the right
#    shapes. What do you check first?
# 5. ALiBi with slope ½: by what factor is a token 20 back weakened against the token itself, if both match the query
#    equally?
# 6. Name the scheme: OPT, T5, BLOOM, Gopher, Mistral, and the full-attention layers of Command A.
#
# <details><summary>Answers</summary>
#
# 1. The row does not exist. New rows would be random numbers that no training has touched: each position is learned by
#    itself.
# 2. Pair 2, whose sine changes by 0.69 from 2 to 3; pair 500 changes by 0.0001. Positions 2 and 15 are two turns of
#    pair 2 apart (13 of 13.03 tokens), and it cannot tell them; a pair that is somewhat slower can. For 2 and 20,000
#    pair 500: it has made two fifths of a turn.
# 3. The score does. But the output is now a sum of *turned* values, so it depends on where the tokens stand, and moving
#    the text changes it.
# 4. The layout of RoPE's pairs: neighbours or halves. The permutation of $W_Q$ and $W_K$ changes no shape. Then the
#    base.
# 5. The bias is −10, so by $e^{10} \approx 22{,}000$.
# 6. Learned, buckets, ALiBi, Transformer-XL's, RoPE, none.
#
# </details>
#
# ## Further reading
#
# - Vaswani et al., 2017, *Attention is all you need*, §3.5.
# - Shaw et al., 2018, *Self-attention with relative position representations*; Dai et al., 2019, *Transformer-XL*;
#   Raffel et al., 2020, *Exploring the limits of transfer learning* (T5), §2.1.
# - Press et al., 2022, *Train short, test long* (ALiBi).
# - Su et al., 2021, *RoFormer: enhanced transformer with rotary position embedding*.
# - Peng et al., 2024, *YaRN: efficient context window extension of large language models*.
# - Kazemnejad et al., 2023, *The impact of positional encoding on length generalization in transformers*.
# - In this package: `lmcourse/nn/rotary.py`, `rope_scaling.py` and `position_bias.py`.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you
# like.)

# %% tags=["hide-input"]
speeds = {pair: 10_000 ** (-2 * pair / 1024) for pair in (0, 2, 500, 511)}
assert [round(value, 3) for value in (math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02))] == [
    0.909,
    -0.416,
    0.02,
    1.0,
]
assert f"{speeds[2]:.4f}" == "0.9647" and f"{speeds[500]:.6f}" == "0.000124" and round(speeds[2] / speeds[500]) == 7774
turns = {pair: 2 * math.pi / speed for pair, speed in speeds.items()}
assert f"{turns[2]:.2f}" == "6.51" and f"{turns[0]:.2f}" == "6.28" and f"{turns[511]:,.0f}" == "61,712"
assert f"{turns[500]:,.1f}" == "50,632.6" and int(2 * 3.14 / 0.000124) == 50645
sines = {position: math.sin(speeds[2] * position) for position in (2, 3, 6, 15, 28, 47)}
assert [f"{sines[position]:.3f}" for position in (3, 6, 28, 47)] == ["0.245", "-0.475", "0.953", "0.977"]
assert [f"{math.cos(speeds[2] * position):.3f}" for position in (28, 47)] == ["-0.302", "0.212"]
assert (
    f"{sines[2] - sines[3]:.2f}" == "0.69"
    and f"{math.sin(3 * speeds[500]) - math.sin(2 * speeds[500]):.4f}" == "0.0001"
)
assert abs(sines[2] - sines[15]) < 0.01 and f"{2 * turns[2]:.2f}" == "13.03" and 0.39 < 19_998 / turns[500] < 0.4
assert 4096 * 4096 * 64 * 4 == 4 * 2**30
assert f"{math.log(6.25) / math.log(8):.3f}" == "0.881" and int(0.881 * 16) == 14 and 100 / 16 == 6.25
last = [distance for distance in range(300) if position_bias.bucket(torch.tensor(distance), position_bias.RelativePositionBiasConfig()) == 31]
assert last[0] == 113 and position_bias.bucket(torch.tensor(100), position_bias.RelativePositionBiasConfig()) == 30
assert (
    round(math.exp(5)) == 148
    and round(10 / 256, 2) == 0.04
    and round(10_000 / 256) == 39
    and f"{math.exp(-1):.2f}" == "0.37"
)
assert position_bias.alibi_slopes(8)[-1] == 1 / 256 == position_bias.alibi_slopes(16)[-1] and f"{position_bias.alibi_slopes(16)[0]:.3f}" == "0.707"
assert math.exp(8) // 1000 == 2 and 22_000 < math.exp(10) < 22_050
longest = [2 * math.pi * base ** (126 / 128) for base in (10_000, 500_000)]
assert [f"{tokens:,.0f}" for tokens in longest] == ["54,410", "2,559,196"]
assert torch.tensor(1001.0).bfloat16() == torch.tensor(1000.0).bfloat16()
assert [math.comb(4, ones) for ones in range(5)] == [1, 4, 6, 4, 1]
inside = {scheme: sum(values[16:32]) / 16 for scheme, values in measured.items()}
beyond = {scheme: sum(values[96:]) / 32 for scheme, values in measured.items()}
assert max(inside["ALiBi"], inside["RoPE"]) < min(inside["none"], inside["learned"]) - 0.1, inside
assert beyond["ALiBi"] < inside["ALiBi"] + 0.2 and beyond["RoPE"] > frequencies, beyond
assert beyond["learned"] > inside["learned"] + 0.5 and beyond["none"] > inside["none"] + 0.5, beyond
assert round(2 * math.pi * 10_000 ** (2 / 8)) == 63
