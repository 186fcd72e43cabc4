# %% [markdown]
# # 09 · Positions
#
# **140 min · 12 exercises · 32 points**
#
# "Dog bites man" is no news, "man bites dog" is. Attention, as you know it from notebook 08, cannot tell the two apart.
# In eight years people have found half a dozen ways to tell it where a word stands, and nearly every large model of
# today uses the same one. Here you build them, derive that one yourself, and take a trained model beyond its length.
#
# **You will be able to**
#
# - write down every scheme in use, from sines over T5's buckets and ALiBi to RoPE, in a few lines each;
# - derive RoPE from what it is for, and say of any scheme what it knows: a token's place, or the distance of two;
# - find the mistakes that make a checkpoint talk nonsense: a swapped layout, a wrong base, an angle in bf16;
# - make a model that was trained on short texts read longer ones.
#
# **You need** attention (notebook 08: queries, keys, scores, the causal mask), sines and cosines. No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run it again for the next one.

# %%
import cmath
import copy
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
from lmcourse.nn.rope_scaling import Yarn
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.widgets import Log

start("09-positions")

# %% [markdown]
# ## 1 · Can attention count?
#
# A layer of attention gives every token a weighted average of all tokens. The weights come from scores $q_i \cdot k_j$,
# and a score looks at two vectors, not at the two positions they come from.

# %%
predict("shuffled_words")

# %% [markdown]
# Try it. Three words, random weights, one layer of attention without a mask:

# %%
generator = torch.Generator().manual_seed(0)
dog, bites, man = torch.randn(3, 8, generator=generator)
w_q, w_k, w_v = torch.randn(3, 8, 8, generator=generator) / 8**0.5


def attend(x: Float[Tensor, "s d"]) -> Float[Tensor, "s d"]:
    """One head of attention: every token sees every token."""
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
# The oldest cure is to give each position a vector of its own, and to add it to the token at that position:
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
# **In real models.** The tables are small: GPT-2's has 1,024 rows, GPT-3's 2,048, the original GPT's 512.
# OPT's has 2,050: two rows come before position 0, a leftover of a padding convention. Forget them when you load the
# weights, and every position is off by two.

# %% [markdown]
# ## 2 · Waves
#
# Could we *compute* a vector for each position instead, for as many as we like?
#
# Think of how you write a number. In binary, the last bit changes at every step, the one before it at every second, the
# next at every fourth. Slow digits give the ballpark, fast ones the exact place. Vaswani et al. (2017, §3.5) do the
# same with smooth digits: pairs of a sine and a cosine, each pair slower than the one before. The vector of position
# $p$ has $d/2$ pairs:
#
# $$\text{PE}(p) = (\sin \omega_0 p,\ \cos \omega_0 p,\ \sin \omega_1 p,\ \cos \omega_1 p,\ \dots,\ \sin \omega_{d/2-1}\, p,\ \cos \omega_{d/2-1}\, p).$$
#
# Pair 0 turns by $\omega_0 = 1$ radian a token. From pair to pair the speed falls by the same ratio, so that pair $d/2$,
# one after the last, would turn by 1/10,000.
#
# For $d = 4$ that makes two pairs, $\omega_0 = 1$ and $\omega_1 = 0.01$. Position 2 becomes
# $(\sin 2, \cos 2, \sin 0.02, \cos 0.02) = (0.909, -0.416, 0.020, 1.000)$. Which speeds does $d = 8$ have?
#
# ### Exercise 1 · The table  (3 points · 8 min · ●●)
#
# Return the sinusoidal vectors of these positions, in float32. Find the formula for $\omega_i$ first. Far positions
# count, too: at position 20,000, where an angle in float32 is rounded by up to 0.001, all numbers must be right to 0.0001.
# For an odd `d` raise `ValueError`.


# %% exercise="sinusoidal"
def sinusoidal(positions: Int[Tensor, " s"], d: int) -> Float[Tensor, "s d"]:
    """One row per position: sin(ω₀ p), cos(ω₀ p), sin(ω₁ p), cos(ω₁ p), …"""
    ### BEGIN SOLUTION
    if d % 2:
        raise ValueError(f"sines and cosines come in pairs: the width must be even, not {d}")
    omega = 10_000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = positions[:, None] * omega
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).float()
    ### END SOLUTION


# %% check="sinusoidal"
check(sinusoidal)
### BEGIN HIDDEN TESTS
check(sinusoidal, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# So $\omega_i = 10000^{-2i/d}$. This is the whole table for the first positions. Can you see the digits?

# %%
explore(figures.position_heatmap, positions=(8, 128), d=[16, 64, 256])

# %% [markdown]
# ## 3 · How long is a wave?
#
# A pair repeats when its angle has grown by a full turn. How many tokens that takes is its **wavelength**. Take
# $d = 1024$. Pair 2 turns by $\omega_2 = 0.9647$ radians a token, pair 500 by 0.000124, which is 7,774 times slower. Slide
# the two numbers and look at the dots: that is all a model sees.

# %%
explore(figures.two_waves, first=(0, 511), second=(0, 511), length=(10, 200))

# %% [markdown]
# Pair 2 tells position 2 from 3 at a glance, but not from 15: two turns later it is back where it was. Pair 500 is the
# converse: 2 and 3 differ by 0.0001, but over thousands of tokens it never repeats. Together they are a number, with
# digits of every size.

# %%
predict("middle_wavelength")

# %% [markdown]
# Pick a pair, work out its wavelength from $\omega_i$, and compare:

# %%
explore(figures.wavelengths, pair=(0, 511), context=[512, 2048, 8192, 131072])

# %% [markdown]
# From $\omega_i T_i = 2\pi$ follows $T_i = 2\pi \cdot 10000^{2i/d}$: equal ratios again, from 6.28 tokens to 61,712.
#
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
# ## 4 · Why these waves?
#
# The authors give a reason: they hoped that a model would easily learn to attend by *relative* position.

# %%
predict("one_matrix")

# %% [markdown]
# So for each pair there is a 2 × 2 matrix that contains $k$ and $\omega$, but not the position $p$, with
#
# $$\begin{pmatrix} \sin \omega(p + k) \\ \cos \omega(p + k) \end{pmatrix} =
# \begin{pmatrix} ? & ? \\ ? & ? \end{pmatrix}
# \begin{pmatrix} \sin \omega p \\ \cos \omega p \end{pmatrix}.$$
#
# For all $d/2$ pairs together it is a $(d, d)$ matrix with $d/2$ such blocks along its diagonal and zeros elsewhere.
#
# ### Exercise 2 · The matrix of a step  (3 points · 8 min · ●●)
#
# Return the float32 matrix $A_k$ for which $A_k\,\text{PE}(p) = \text{PE}(p + k)$ at every position, with the
# features in the order of exercise 1. Steps back (negative $k$) count as well, and far ones, as in exercise 1.


# %% exercise="shift_matrix"
def shift_matrix(k: int, d: int) -> Float[Tensor, "d d"]:
    """The matrix that takes every position's vector k tokens on."""
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
# The addition theorems of sine and cosine fill the four places: $\cos \omega k,\ \sin \omega k$ above,
# $-\sin \omega k,\ \cos \omega k$ below, a rotation.
#
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
# The two cross terms depend on the positions themselves, not on the distance. Adding any vector to the input, learned
# or not, *leaks the absolute position*: the score of two neighbours changes when a paragraph is put in front of them. And with the
# weight matrices $W_Q, W_K$ in between, not even the last term stays a function of the distance.
#
# **In real models.** In the original paper, learned and sinusoidal positions gave nearly the same quality (Vaswani et
# al., 2017, table 3, row E). The next schemes do not hope that a model finds the distance: they put it where it is
# needed, into the score.

# %% [markdown]
# ## 5 · A vector for each distance
#
# A word does not care that the verb is at position 17, but that it is two positions back. Shaw et al. (2018) give
# each *offset* $j - i$, key minus query, a learned vector $a_{j-i}$ and add it to the key, for this query only:
#
# $$e_{ij} = \frac{q_i \cdot (k_j + a_{j-i})}{\sqrt d}.$$
#
# (A second set of vectors may be added to the values in the same manner: $z_i = \sum_j \alpha_{ij} (v_j + a'_{j-i})$,
# with $\alpha$ the softmax of $e$.)
#
# A text of a million tokens has two million offsets, and who needs to tell 800 back from 801 back? So offsets are
# **clipped** to $\pm K$: all keys that are farther away share the outermost vector, and $2K + 1$ vectors remain, from
# offset $-K$ in the first row of a table to $+K$ in the last.

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
# ### Exercise 3 · Shaw's scores, efficiently  (3 points · 9 min · ●●● · differentiable)
#
# Return the scores $e_{ij}$ of every head. `vectors` holds the $2K + 1$ relative vectors, shared by the heads, from
# offset $-K$ to $+K$. Do not make a vector for each pair, neither all at once, an $(s, s, d)$ tensor, nor query by query.


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
# (T5 does not divide by $\sqrt d$; its initialisation makes up for it.) There are 32 such ranges, called **buckets**.

# %%
predict("far_away")

# %% [markdown]
# Half of the buckets hold one distance each. The other half share all that is farther away, in ranges that grow in equal
# ratios up to a maximum distance: precise near by, vague far off, like your own memory of a book. In the decoder, with a
# maximum of 128, the buckets begin at these distances:

# %%
first_distance = {}
for distance in range(129):
    bucket = position_bias.bucket(torch.tensor(distance), position_bias.RelativePositionBiasConfig()).item()
    first_distance.setdefault(bucket, distance)
for row in (range(16), range(16, 32)):
    print("bucket   ", *(f"{bucket:3}" for bucket in row))
    print("begins at", *(f"{first_distance[bucket]:3}" for bucket in row), "\n")

# %%
explore(figures.t5_buckets, bidirectional=[False, True], max_distance=[64, 128, 256])

# %% [markdown]
# The encoder looks both ways. There each side has half of the buckets, 16: the past the lower half, the future
# the upper. In the decoder there is no future; offsets that point to it, which the mask removes anyway, fall into
# bucket 0.
#
# ### Exercise 4 · T5's buckets  (3 points · 10 min · ●●●)
#
# Return the bucket of each offset, key minus query: the past is negative. Integers of the same shape come out. The rule
# is in the numbers above: from distance 16 to 128, a factor of 8, there are 16 buckets. `buckets` is an even number, of
# both sides together where there are two.


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
# In one formula, with $n$ buckets for a side and the maximum distance $D$:
#
# $$\text{bucket} = \min\left(n - 1,\ \frac n2 + \left\lfloor \frac{\ln (\text{distance} / \frac n2)}{\ln(D / \frac n2)} \cdot \frac n2 \right\rfloor\right)$$
#
# The learned numbers are few, 32 per head, and all layers share them. T5 was trained on 512 tokens and can read more,
# since the last bucket has no end; it just cannot tell how far "far" is.
#
# ### A third way: Transformer-XL
#
# Dai et al. (2019, §3.3) start at the four terms of section 4 and make a distance of every position: $p_n$ becomes a wave
# of the distance, $r_{m-n}$, with a weight matrix $W_R$ of its own, and $p_m$ becomes two learned vectors, $u$ and $v$:
#
# $$e_{mn} = \underbrace{q_m \cdot k_n}_{\text{words}} + \underbrace{q_m \cdot W_R\, r_{m-n}}_{\text{word and distance}} + \underbrace{u \cdot k_n}_{\text{word alone}} + \underbrace{v \cdot W_R\, r_{m-n}}_{\text{distance alone}}$$
#
# **In real models.** Gopher (Rae et al., 2021) and Chinchilla (Hoffmann et al., 2022) use it.

# %% [markdown]
# ## 7 · Nothing to learn: ALiBi
#
# T5 *learns* how much a distance costs. Press et al. (2022) simply decided it. Their
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
# ### Exercise 5 · Slopes for any number of heads  (2 points · 7 min · ●●)
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
# ### Exercise 6 · The bias  (2 points · 6 min · ●●)
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
# new distances only continue a straight line. It is also its price. Even the flattest head charges 39 for a token that is
# 10,000 back, and $e^{-39}$ is nothing, however well the token matches.
#
# **In real models.** BLOOM (Le Scao et al., 2022; 112 heads, which is no power of two) and MPT (MosaicML, 2023).
# BLOOM's code adds $m_h \cdot j$, the key's place, instead of the distance. Within a row that differs by a constant,
# and softmax does not see constants (notebook 01).

# %% [markdown]
# ## 8 · Turn, do not add: RoPE
#
# Wanted (Su et al., 2021): a function $f$ that puts the position into a query and into a key, each on its own, so that
# their inner product depends on the two vectors and on the *distance*, and on nothing else:
#
# $$f(q, m) \cdot f(k, n) = g(q, k, n - m).$$
#
# Adding a vector fails, as we saw. You are going to find what does not fail. Take vectors of two features. A pair
# $(a, b)$ is one complex number, $a + bi$, and the inner product of two pairs is the real part of a product:
#
# $$q \cdot k = \operatorname{Re}(\bar q\, k).$$
#
# Check: $(1, 2) \cdot (3, 4) = 11$, and $(1 - 2i)(3 + 4i) = 11 - 2i$. Now try the simplest $f$ there is, one complex factor
# for each position: $f(q, m) = q\, c(m)$, with $c(0) = 1$. Multiply out:
#
# $$\operatorname{Re}\big(\overline{q\, c(m)}\; k\, c(n)\big) = \operatorname{Re}\big(\bar q\, k \cdot \overline{c(m)}\, c(n)\big).$$
#
# All that is left of the positions is $\overline{c(m)}\, c(n)$. It must be the same for all $m$ and $n$ of the same distance.
# Take paper.
#
# 1. What follows for $m = n$?
# 2. Compare the step from 0 to 1 with the step from $n$ to $n + 1$. What must $c(n + 1) / c(n)$ be?
#
# ### Exercise 7 · The factor of a position  (2 points · 8 min · ●●)
#
# Return $c(m)$, one complex number (Python writes $i$ as `1j`), for a position from 0 to 100,000. `speed`, between 0 and
# $\pi$, sets how far apart positions are; two speeds below $\pi$ must give two functions. There is more than one right
# answer: the check looks only at the properties, to nine digits after the point.


# %% exercise="position_factor"
def position_factor(m: int, speed: float) -> complex:
    """The complex factor of a query or key at position m: 1 at position 0."""
    ### BEGIN SOLUTION
    return cmath.exp(1j * m * speed)
    ### END SOLUTION


# %% check="position_factor"
check(position_factor)
### BEGIN HIDDEN TESTS
check(position_factor, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# All factors have the same length, 1, and each step multiplies by the same number. So with the speed $\theta$
#
# $$c(m) = e^{im\theta} = \cos m\theta + i \sin m\theta, \qquad \overline{e^{im\theta}}\, e^{in\theta} = e^{i(n - m)\theta}.$$
#
# (Or the same with $-\theta$.) To multiply by $e^{im\theta}$ is to *turn* the arrow $(a, b)$ by the angle $m\theta$: a
# rotary position embedding, **RoPE**. In "we know", *we* is at 0 and *know* at 1. In "of course we know" they are at 2
# and 3: both arrows have turned by two more steps, and the angle between them is what it was.

# %%
explore(figures.rotating_pair, words_before=(0, 12), words_between=(0, 6), turned=["both", "only know"])

# %% [markdown]
# > **Spot the slip.** A colleague writes: "Inner products are invariant to arbitrary rotations, so rotating is free."
# > Choose *only know* and move the first slider. What is missing in the sentence?
#
# ### From two features to $d$
#
# A real head has 64 or 128 features. Cut them into pairs, and turn each pair at a speed of its own, the speeds you know
# from section 2, with $d$ now the width of a *head*: $\theta_i = 10000^{-2i/d}$. A head is a set of clocks, from a second
# hand to one that needs days:

# %%
explore(figures.rotation_clocks, position=(0, 1000), base=[10_000, 500_000])

# %% [markdown]
# ### Exercise 8 · RoPE  (3 points · 9 min · ●● · differentiable)
#
# Turn `x`, whose last two axes are tokens and features, to the given positions. Neighbouring features $2i$ and $2i + 1$
# are a pair: $a + bi$ becomes $(a + bi)\, e^{im\theta_i}$. Use complex tensors (`torch.polar` makes $e^{i\varphi}$), or
# multiply out. Compute in float32, whatever comes in, and give back the dtype of `x`. For an odd width raise
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
# Why float32? Near 1,000 the numbers of bf16 are 4 apart, and five positions in a row share one angle (notebook 01).
#
# ### As a matrix
#
# Real and imaginary part of $(a + bi)(\cos m\theta + i \sin m\theta)$, written one above the other, are a 2 × 2 matrix
# times $(a, b)$:
#
# $$R_m \begin{pmatrix} a \\ b \end{pmatrix} = \begin{pmatrix} \cos m\theta & -\sin m\theta \\ \sin m\theta & \cos m\theta \end{pmatrix} \begin{pmatrix} a \\ b \end{pmatrix},
# \qquad R_m^\top R_n = R_{n-m}.$$
#
# For all pairs, $R_m$ is $d \times d$ and nearly all zeros; no program multiplies by it. But with it one can write the
# score of a whole head. With $q = W_q x_m$ and $k = W_k x_n$ it is $x_m^\top W_q^\top R_{n-m} W_k x_n$. The transpose on
# $W_q$ is easily lost. In numbers:

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
# It is the same operation with another order of the features: even ones first, then the odd ones,
# $\pi = (0, 2, 4, \dots, 1, 3, 5, \dots)$. If queries *and* keys get the same permutation, no score changes.
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
# own queries and keys.
#
# ### How fast?
#
# The angles are not trained. They are a fixed schedule, and a rotation is an orthogonal matrix: it keeps every length,
# forwards and backwards, so gradients pass it unharmed. But the **base** is a hyperparameter, and it has grown with the
# contexts. A larger base slows all pairs but the first, the last ones most. See what is left of the slow pairs within a
# context, at each base:

# %%
explore(figures.wavelengths, d=128, pair=(0, 63), base=[10_000, 500_000, 1_000_000], context=[4096, 8192, 131072])

# %% [markdown]
# With a base of 10,000 a head of 128 has wavelengths up to 54,410 tokens; with Llama 3's 500,000 up to 2,559,196. A
# context of 8,192 tokens shows the slowest pair 0.15 of a turn, or less.
#
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
# Return True if every diagonal of every matrix in `scores` is constant: its largest entry minus its smallest is at most
# `tolerance`. Masked entries are $-\infty$; a diagonal of nothing but $-\infty$ is constant. The check tries your test
# on the schemes of this notebook.


# %% exercise="is_relative"
def is_relative(scores: Float[Tensor, "*batch s t"], tolerance: float = 1e-4) -> bool:
    """True if the scores depend on the offset key − query alone."""
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
# Shaw, Transformer-XL, T5, ALiBi and RoPE all pass. Why then do so many models use RoPE? Section 8 asked for a second
# property. In RoPE the score is an **inner product of two vectors**, each of which knows only its own token and its own
# position: $f(q, m) \cdot f(k, n)$.
#
# That can be tested too. A matrix of inner products of vectors with $d$ numbers has rank $d$ at most, however long the
# text is. Here are 64 different words in a row, with $d = 16$:

# %%
for scheme in schemes:
    rank = int(torch.linalg.matrix_rank(figures.scheme_scores(scheme, tokens=64, same_words=False), rtol=1e-4))
    print(f"{scheme:15} rank {rank:2}: {'inner products' if rank <= 16 else 'not inner products'} of 16 numbers")

# %% [markdown]
# A bias that is *added to the score* does not fit into queries and keys of the given width. It has to be brought into the
# $s \times s$ matrix of scores, and so into the inside of the attention kernel. RoPE changes the vectors before the
# kernel begins: it works with any fast kernel as it is, and a cache stores keys that are turned already (notebook 17).
# Of the eight pictures, only "none" and RoPE are both relative and inner products.
#
# (Causal ALiBi is a near miss: in BLOOM's form, $m_h \cdot j$, one feature more would do, which holds $j$.)

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
# So the mask tells positions without a single weight: nothing in it is learned. Which tensors know how long a text is?
# Double $S$, and this is what changes:
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
# learned table (4,096 weights more, in 128 rows, of which training reaches 32), one with ALiBi and one with RoPE. Then each reads 128
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
share = text.bincount() / len(text)
frequencies = -(share * share.log()).sum().item()  # the loss of a table of how frequent each character is


def windows(text: Int[Tensor, " n"], count: int, length: int) -> Int[Tensor, "count length+1"]:
    """This many pieces of the text, each with the character after it."""
    first = torch.randint(len(text) - length, (count, 1))
    return text[first + torch.arange(length + 1)]


def losses(model: Transformer, rows: Int[Tensor, "n s+1"]) -> Float[Tensor, "n s"]:
    return F.cross_entropy(model(rows[:, :-1]).mT, rows[:, 1:], reduction="none")


def train(model: Transformer, length: int, rate: float, steps: int, warmup: int = 20) -> None:
    """Train on 16 windows a step, at a rate that rises for a few steps and then falls to 0."""
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / warmup) * (1 - step / steps)
        optimizer.zero_grad()
        losses(model, windows(train_text, 16, length)).mean().backward()
        optimizer.step()


def trained(scheme: str, seed: int = 0) -> Transformer:
    """A tiny LLaMA with these positions, trained on 32 characters at a time."""
    torch.manual_seed(seed)
    table = EmbeddingConfig("learned", max_positions=128) if scheme == "learned" else None
    attention = {} if scheme == "RoPE" else {"rotary": None}
    config = llama_like(
        2, 32, 4, 64, vocab_size=len(characters), context=128, tied=True, embedding=table, layer_pattern=(attention,)
    )
    model = Transformer(config.with_(position_bias=position_bias.AlibiConfig() if scheme == "ALiBi" else None))
    initialize(model)
    train(model, length=32, rate=0.01, steps=400)
    return model


@torch.no_grad()
def loss_at_each_position(model: Transformer) -> list[float]:
    """The mean loss at each of 128 positions of new text, the same 256 windows for every model."""
    torch.manual_seed(0)
    return losses(model, windows(new_text, 256, 128)).mean(dim=0).tolist()


def within_and_beyond(values: list[float]) -> tuple[float, float]:
    """The mean loss at positions 16 to 32, which training knew, and at 96 to 128."""
    return sum(values[16:32]) / 16, sum(values[96:]) / 32


# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
models, measured = {}, {}


def train_and_read(scheme: str) -> None:
    models[scheme] = trained(scheme)
    measured[scheme] = loss_at_each_position(models[scheme])
    within, beyond = within_and_beyond(measured[scheme])
    print(f"{scheme:10} positions 16 to 32: {within:.2f}   96 to 128: {beyond:.2f}")


print(f"by how frequent each character is: {frequencies:.2f} nats")
train_and_read("none")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
train_and_read("learned")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
train_and_read("ALiBi")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
train_and_read("RoPE")

# %%
figures.loss_by_position(measured, 32, frequencies)

# %% [markdown]
# Within the trained length ALiBi and RoPE are ahead. Beyond it:
#
# - **ALiBi** holds. Far tokens are charged more and more and hardly count, so a long text looks like a short one. It does
#   not get *better* either, with four times as much to read.
# - **RoPE** falls apart, until it is worse than a table that reads nothing and only holds how frequent each character is.
#   Its heads have 8 features, and their second pair turns once in 63 tokens: in 32 it has shown half of its angles.
#   The scores are relative, and that does not help with distances that are new.
# - **The learned table** stops at its row 32. What the other rows add was never learned.
# - **No positions**: slowly worse, and already behind within the 32. A mask tells early positions apart, 1 from 1/2, better
#   than late ones, 1/100 from 1/101.
#
# That is one seed. With seeds 0 to 3 the losses at positions 96 to 128 are 4.1 to 4.8 for RoPE, 2.6 to 3.3 for the learned
# table, 2.0 to 2.2 without positions and 0.6 to 0.95 for ALiBi: the four sentences hold. Press et al. (2022) trained models
# of 247 million parameters: theirs with RoPE got worse not far beyond the trained length, and those with ALiBi did not.

# %% [markdown]
# ## 13 · Longer texts, slower clocks
#
# Nearly all models with RoPE that read long texts today were trained on shorter ones first. The cure is in the angles: in
# a text four times as long, slow the pairs down so that they stay within the angles they know. Which pairs, and how much?

# %%
predict("which_to_keep")

# %% [markdown]
# Here is what has been tried, for texts that are `factor` times longer than in training:
#
# - **Position interpolation** (Chen et al., 2023): divide all speeds by the factor. Then position 128 has the angles that
#   position 32 had.
# - **NTK-aware** (bloc97, 2023, in a post on Reddit): change the base alone, so that the last pair slows down by exactly
#   the factor, and the first not at all. Which base is that? (The last pair's exponent is not −1.)
# - **By parts** (the idea of YaRN, Peng et al., 2024; with these two limits, of Llama 3.1): count the turns of a pair
#   within the trained length. At one turn or fewer its speed is divided by the factor; at four or more it keeps its speed;
#   in between its speed is a mix of the two, and the share that is kept grows linearly with the number of turns.
#
# ### Exercise 12 · The speeds  (3 points · 10 min · ●●)
#
# Return the speeds of all `width // 2` pairs in radians a token, in float32, for the kinds `"none"` (as trained),
# `"interpolation"`, `"ntk"` and `"by parts"`. `trained` is the trained length in tokens.


# %% exercise="rope_speeds"
def rope_speeds(width: int, base: float, kind: str, factor: float, trained: int) -> Float[Tensor, " width/2"]:
    """How fast each pair turns in a text that is `factor` times longer than those of the training."""
    ### BEGIN SOLUTION
    if kind == "ntk":
        base *= factor ** (width / (width - 2))
    speeds = base ** (-torch.arange(0, width, 2) / width)
    if kind == "interpolation":
        return speeds / factor
    if kind == "by parts":
        kept = ((trained * speeds / (2 * math.pi) - 1) / 3).clamp(0, 1)
        return speeds * (kept + (1 - kept) / factor)
    return speeds
    ### END SOLUTION


# %% check="rope_speeds"
check(rope_speeds)
### BEGIN HIDDEN TESTS
check(rope_speeds, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# How far do the pairs of a real head turn, as trained and slowed down? Yellow: angles that training has not shown.

# %%
explore(
    figures.rope_scaling, kind=["none", "interpolation", "ntk", "by parts"], factor=(1, 16), base=[10_000, 500_000]
)

# %% [markdown]
# Now into the model of section 12, which was trained on 32 characters and now has to read 128. Its heads have four pairs.
# First we only change the speeds, and train nothing.

# %%
predict("at_once")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
def with_speeds(model: Transformer, speeds: Float[Tensor, " pairs"]) -> Transformer:
    """A copy of the model whose pairs turn at these speeds."""
    model = copy.deepcopy(model)
    for part in model.modules():
        if isinstance(part, rotary.Rotary):
            part.frequencies.tensor = speeds
    return model


slowed, at_once = {}, {}
with your("rope_speeds"):
    for kind in ("none", "interpolation", "ntk", "by parts"):
        speeds = rope_speeds(8, 10_000.0, kind, 4.0, 32)
        slowed[kind] = with_speeds(models["RoPE"], speeds)
        at_once[kind] = within_and_beyond(loss_at_each_position(slowed[kind]))
        listed = " ".join(f"{speed:6.4f}" for speed in speeds.tolist())
        print(f"{kind:14} speeds {listed}   positions 16 to 32: {at_once[kind][0]:.2f}   96 to 128: {at_once[kind][1]:.2f}")

# %% [markdown]
# Interpolation makes the model fail even where it was good: its fastest pair now turns by a quarter of what it did, and
# the model mistakes the neighbour four back for the last character. NTK and no change at all keep the neighbours, and are
# lost at the end: NTK slows the pairs in the middle by less than the factor, so they meet new angles. By parts is the compromise, at once better at the end than the table of frequencies.
#
# Now 50 steps of training on 128 characters, an eighth of the steps of the first training:

# %%
predict("after_fifty_steps")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
afterwards = {}
for kind, model in slowed.items():
    torch.manual_seed(1)
    train(model, length=128, rate=0.002, steps=50, warmup=1)
    afterwards[kind] = within_and_beyond(loss_at_each_position(model))
    print(f"{kind:14} positions 16 to 32: {afterwards[kind][0]:.2f}   96 to 128: {afterwards[kind][1]:.2f}")

# %% [markdown]
# By parts is almost as good at the end as within the old length. Interpolation has no angle that is new, and still is
# behind: it has to learn its neighbours again. The other two have their neighbours, and at the end angles that 50 steps do
# not teach. The same with seeds 1 to 3, at positions 96 to 128, in nats a character (digits differ between processors):
#
# | speeds | at once | after 50 steps |
# | --- | --- | --- |
# | as trained | 4.1 to 4.5 | 1.6 to 1.9 |
# | interpolation | 3.4 to 3.5 | 1.2 to 1.4 |
# | NTK | 4.0 to 4.4 | 1.8 to 2.1 |
# | by parts | 1.4 to 1.8 | 0.6 to 0.8 |
#
# (YaRN has a second part, which is left out here: it multiplies all scores by a little more than 1, which makes attention
# sharper over a longer text. And its code mixes by the number of the pair, not by its turns; with our four pairs that
# gives the same speeds.)
#
# **In real models.**
#
# | model | trained on, first | speeds | then reads |
# | --- | --- | --- | --- |
# | Code Llama (Rozière et al., 2023) | 4,096 | base 10,000 → 1,000,000 | 16,384, and up to 100,000 |
# | Llama 3.1 (Grattafiori et al., 2024) | 8,192 | by parts, factor 8 | 131,072, after training in six stages |
# | Qwen2.5 (Qwen Team, 2024) | 4,096 | base 10,000 → 1,000,000 for 32,768; then YaRN, factor 4 | 131,072 |
# | Gemma 3 (Gemma Team, 2025) | 32,768 | interpolation, factor 8, in global layers alone | 131,072 |

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
# | RoPE | turns $q$ and $k$ | nothing | yes, *and* an inner product | poor; good with slow pairs slowed down and a little training |
# | none | the causal mask | nothing | – | slowly worse |
#
# And the three formulas: $\omega_i = \text{base}^{-2i/d}$; wavelength $2\pi/\omega_i$;
# $\overline{e^{im\theta}}\, e^{in\theta} = e^{i(n-m)\theta}$, so $(R_m q) \cdot (R_n k) = q^\top R_{n-m} k$.

# %% [markdown]
# ## Check yourself
#
# 1. Why can a model with learned positions not read token 1,025 after training on 1,024, and why would it not help to
#    give it a longer table?
# 2. Pair 2 of $d = 1024$ confuses positions 2 and 15, and pair 500 has hardly moved between them. Which of its 512 pairs
#    would you ask? And which to tell 2 from 20,000?
# 3. A colleague turns values as well as queries and keys. Does the score still depend on the distance only? What does
#    the layer's output depend on? And with Shaw's second vectors, $a'_{j-i}$ added to the values: does the score still
#    depend on the distance only, and what can the output tell that it could not before?
# 4. You load a Llama checkpoint, and the model produces fluent words in senseless order. All tensors had the right
#    shapes. What do you check first?
# 5. ALiBi with slope ½: by what factor is a token 20 back weakened against the token itself, if both match the query
#    equally?
# 6. A colleague writes: "The causal mask carries weights with a dimension of the context's length, so a longer context
#    needs a new mask to be trained." True?
# 7. A model was trained on 8,192 tokens and is to read 32,768. Why not simply divide all positions by four, and what
#    would you do?
# 8. Name the scheme: OPT, T5, BLOOM, Gopher, Mistral, and the full-attention layers of Command A.
#
# <details><summary>Answers</summary>
#
# 1. The row does not exist. New rows would be random numbers that no training has touched: each position is learned by
#    itself.
# 2. One that is somewhat slower than pair 2: two turns of pair 2 are 13.03 tokens, and the two positions are 13 apart. A
#    pair that makes half a turn in 13 tokens tells them best: pair 79. For 2 and 20,000 pair 500: it has made two fifths of a turn.
# 3. The score does. But the output is now a sum of *turned* values, so it depends on where the tokens stand, and moving
#    the text changes it. Shaw's vectors on the values leave the score alone; the output then tells *how far away* the
#    tokens were that it attended to, and still not where they stand.
# 4. The layout of RoPE's pairs: neighbours or halves. The permutation of $W_Q$ and $W_K$ changes no shape. Then the
#    base.
# 5. The bias is −10, so by $e^{10} \approx 22{,}000$.
# 6. No. It has no weights, and is computed for any length. (It does tell positions: exercise 11.)
# 7. All neighbours would come four times closer than training has shown. Slow down the pairs that did not complete a turn,
#    keep the fast ones, and train a little on long texts.
# 8. Learned, buckets, ALiBi, Transformer-XL's, RoPE, none.
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
# - Chen et al., 2023, *Extending context window of large language models via positional interpolation*; Peng et al.,
#   2024, *YaRN: efficient context window extension of large language models*.
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
assert f"{turns[500]:,.1f}" == "50,632.6"
assert f"{2 * math.pi / 10_000 ** (-2 * 256 / 1024):.0f}" == "628"
sines = {position: math.sin(speeds[2] * position) for position in (2, 3, 6, 15, 28, 47)}
assert [f"{sines[position]:.3f}" for position in (3, 6, 28, 47)] == ["0.245", "-0.475", "0.953", "0.977"]
assert [f"{math.cos(speeds[2] * position):.3f}" for position in (28, 47)] == ["-0.302", "0.212"]
assert f"{math.sin(3 * speeds[500]) - math.sin(2 * speeds[500]):.4f}" == "0.0001"
assert round(-math.log(math.pi / 13) / math.log(10_000) * 512) == 79
assert abs(sines[2] - sines[15]) < 0.01 and f"{2 * turns[2]:.2f}" == "13.03" and 0.39 < 19_998 / turns[500] < 0.4
assert 4096 * 4096 * 64 * 4 == 4 * 2**30
assert first_distance[31] == 113 and [first_distance[bucket] for bucket in range(16)] == [*range(16)]
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
assert (1 - 2j) * (3 + 4j) == 11 - 2j
assert {torch.tensor(float(position)).bfloat16().item() for position in range(998, 1003)} == {1000.0}
assert 1 / 7 < 8192 / longest[0] < 0.16
assert [math.comb(4, ones) for ones in range(5)] == [1, 4, 6, 4, 1]
inside, beyond = ({scheme: within_and_beyond(values)[k] for scheme, values in measured.items()} for k in (0, 1))
assert max(inside["ALiBi"], inside["RoPE"]) < min(inside["none"], inside["learned"]) - 0.1, inside
assert beyond["ALiBi"] < inside["ALiBi"] + 0.2 and beyond["RoPE"] > frequencies + 0.5, beyond
assert beyond["learned"] > inside["learned"] + 0.5 and beyond["none"] > inside["none"] + 0.5, beyond
assert at_once["interpolation"][0] > frequencies > at_once["by parts"][1], at_once
assert at_once["none"][0] < min(loss for kind, (loss, _) in at_once.items() if kind != "none"), at_once
assert max(at_once["ntk"][0], at_once["none"][0]) < 1 and min(at_once["ntk"][1], at_once["none"][1]) > frequencies
assert afterwards["by parts"][1] + 0.3 < min(loss for kind, (_, loss) in afterwards.items() if kind != "by parts")
assert abs(afterwards["by parts"][1] - afterwards["by parts"][0]) < 0.15, afterwards
yarn = Yarn(4.0, 32)(10_000.0 ** (-torch.arange(0, 8, 2) / 8))
torch.testing.assert_close(yarn, torch.tensor([1, 0.025, 0.0025, 0.00025]))
assert round(2 * math.pi * 10_000 ** (2 / 8)) == 63
