# %% [markdown]
# # 09 · Positions
#
# **Core · 90 min · 7 exercises · 19 points** · **Further · 97 min · 6 exercises · 16 points**
#
# "Dog bites man" is no news, "man bites dog" is. *What should a score know about distance, and what happens beyond the distances that it has seen?*
#
# At the end your own rotation carries a trained model to four times its length, where published recipes fail.
#
# **You will be able to** derive RoPE; to test whether a scheme knows a place or a distance; to say why models fail on longer texts.
#
# **You need** attention (notebook 08), sines and cosines. No GPU.
#
# Stuck? `hint("its_name")` gives a nudge, and another each time.

# %%
import cmath
import math
from collections.abc import Callable

import torch
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.chapters.positions import figures
from lmcourse.chapters.positions.copier import SPEEDS, train_on_32
from lmcourse.chapters.positions.figures.scores import scheme_scores
from lmcourse.chapters.positions.stories import frequency_loss, story_losses, within_and_beyond
from lmcourse.nn import position_bias, rotary
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.widgets import Log

start("09-positions")

# %% [markdown]
# ## 1 · Can attention count?
#
# Attention gives every token a weighted average of all tokens. The weights come from scores $q_i\cdot k_j$, and a score looks at two vectors, not at where they stand.

# %%
predict("shuffled_words")

# %% [markdown]
# No mask, random weights:

# %%
generator = torch.Generator().manual_seed(0)
dog, bites, man = torch.randn(3, 8, generator=generator)
w_q, w_k, w_v = torch.randn(3, 8, 8, generator=generator) / 8**0.5


def attend(x: Float[Tensor, "s d"]) -> Float[Tensor, "s d"]:
    """One head of attention: every token sees every token."""
    scores = (x @ w_q) @ (x @ w_k).T / 8**0.5
    return scores.softmax(dim=-1) @ (x @ w_v)


for name, added in (("alone", 0), ("with a vector for each position", torch.randn(3, 8, generator=generator))):
    there, back = attend(torch.stack([dog, bites, man]) + added), attend(torch.stack([man, bites, dog]) + added)
    print(f"dog, first and last, {name}: largest difference {(there[0] - back[2]).abs().max():.4f}")

# %% [markdown]
# The vectors have moved with their words, and nothing else has happened: the layer is *permutation-equivariant*. A feed-forward layer works token by token, so the whole model reads a bag of words.
#
# The second line shows the oldest cure: add a vector of its own to each position, $\tilde x_s=x_s+p_s$ with $x_s,p_s\in\mathbb{R}^d$. GPT-1 to GPT-3 and OPT **learn** a table of them, $(S, d)$. What did it cost?

# %%
predict("learned_beyond")

# %% [markdown]
# Learned positions end where training ended. And each is learned alone: what a model knows about position 17 tells it nothing about 18.
#
# ## 2 · Waves
#
# Could we *compute* a vector for each position? Think of a number in binary: the last bit changes at every step, the one before it at every second, the next at every fourth. Vaswani et al. (2017, §3.5) do the same with smooth digits: pairs of a sine and a cosine, each pair slower than the one before. The vector of position $p$ has $d/2$ pairs:
#
# $$\text{PE}(p)=(\sin\omega_0p,\ \cos\omega_0p,\ \sin\omega_1p,\ \cos\omega_1p,\ \dots,\ \sin\omega_{d/2-1}p,\ \cos\omega_{d/2-1}p).$$
#
# Pair 0 turns by $\omega_0=1$ radian a token. From pair to pair the speed falls by the same ratio, so that pair $d/2$, one after the last, would turn by 1/10,000. For $d=4$ that makes $\omega_0=1$ and $\omega_1=0.01$: position 2 becomes $(\sin2,\cos2,\sin0.02,\cos0.02)=(0.909,-0.416,0.020,1.000)$. Which speeds does $d=8$ have?

# %% [markdown]
# ### Exercise 1 · The table  (3 points · 7 min · ●●)
#
# Return the sinusoidal vectors of these positions, in float32. At position 20,000, where float32 rounds an angle by up to 0.001, all numbers must be right to 0.0001. For an odd `d` raise `ValueError`.

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

# %% [markdown]
# So $\omega_i=10000^{-2i/d}$. A pair repeats after a full turn, its **wavelength** of $2\pi/\omega_i$ tokens.

# %%
predict("middle_wavelength")

# %% [markdown]
# Can you see the digits?

# %%
explore(figures.position_heatmap, positions=(8, 128), d=[16, 64, 256])

# %% [markdown]
# The dot product of two positions knows only their distance: $p_m\cdot p_n=\sum_i\cos\omega_i(m-n)$. But they were added to words, and the score multiplies it all out:
#
# $$(x+p_m)\cdot(y+p_n)=\underbrace{x\cdot y}_{\text{words}}+\underbrace{x\cdot p_n+p_m\cdot y}_{\text{word and place}}+\underbrace{p_m\cdot p_n}_{\text{distance}}$$

# %%
# Positions 3 and 5, then 103 and 105:
x, y = torch.randn(2, 8, generator=generator)
with your("sinusoidal"):
    waves = sinusoidal(torch.arange(200), 8)
for p, r in (waves[[3, 5]], waves[[103, 105]]):
    print(f"p·p′ = {p @ r:.3f}   x·p′ + p·y = {x @ r + p @ y:6.3f}")

# %% [markdown]
# The cross terms depend on the positions themselves. Adding any vector to the input *leaks the absolute position*: the score of two neighbours changes when a paragraph is put before them.
#
# ## 3 · Into the score
#
# A word does not care that the verb is at position 17, but that it is two back. So put the distance into the score of query $i$ and key $j$:
#
# | scheme | added to $q_i\cdot k_j$ | learned | used by |
# | --- | --- | --- | --- |
# | Shaw et al., 2018 | $q_i\cdot a_{j-i}$: a vector for each offset, clipped to $\pm K$ | $2K+1$ vectors | translation models |
# | T5 (Raffel et al., 2020) | $b_{\text{bucket}(j-i)}$: a number for each range of offsets | 32 numbers a head | T5, mT5 |
# | ALiBi (Press et al., 2022) | $-m_h\,(i-j)$: a price per token | nothing | BLOOM, MPT |
#
# In ALiBi each head has its own price, the **slope** $m_h$: ½, ¼, …, 1/256 for eight heads. By hand: with slope ½ a token ten back is charged 5, and its weight is divided by $e^5=148$. The scheme is three lines:

# %%
slopes = 2.0 ** -torch.arange(1, 9)
offset = torch.arange(6) - torch.arange(6)[:, None]
bias = (slopes[:, None, None] * offset).masked_fill(offset > 0, -math.inf)
print(bias[0])

# %%
predict("flattest_head")

# %% [markdown]
# That is a built-in belief: near is important. A token 10,000 back costs 39 even in the flattest head, and $e^{-39}$ is nothing, however well it matches. All three schemes know the distance alone. But their scores are no longer a query *times* a key, which is what fast kernels compute.
#
# ## 4 · Turn, do not add: RoPE
#
# Wanted (Su et al., 2021): a function $f$ that puts the position into a query and into a key, each on its own, so that their inner product depends on the two vectors and their *distance* alone:
#
# $$f(q,m)\cdot f(k,n)=g(q,k,n-m).$$
#
# Adding a vector fails. What does not? Take vectors of two features. A pair $(a, b)$ is one complex number, $a+bi$, and the inner product of two pairs is the real part of a product: $q\cdot k=\operatorname{Re}(\bar q\,k)$. Check: $(1, 2)\cdot(3, 4)=11$, and $(1-2i)(3+4i)=11-2i$. Now try the simplest $f$ there is, one complex factor for each position: $f(q,m)=q\,c(m)$, with $c(0)=1$. Multiply out:
#
# $$\operatorname{Re}\big(\overline{q\,c(m)}\;k\,c(n)\big)=\operatorname{Re}\big(\bar q\,k\cdot\overline{c(m)}\,c(n)\big).$$
#
# All that is left of the positions is $\overline{c(m)}\,c(n)$. It must be the same for all $m$ and $n$ of the same distance. Take paper.
#
# 1. What follows for $m=n$?
# 2. Compare the step from 0 to 1 with the step from $n$ to $n+1$. What must $c(n+1)/c(n)$ be?

# %% [markdown]
# ### Exercise 2 · The factor of a position  (2 points · 8 min · ●●)
#
# Return $c(m)$, one complex number (Python writes $i$ as `1j`), for a position from 0 to 100,000. `speed`, between 0 and $\pi$, sets how far apart positions are; two speeds below $\pi$ must give two functions. Several answers are right: the check looks only at the properties, to nine digits after the point.

# %% exercise="position_factor"
def position_factor(m: int, speed: float) -> complex:
    """The complex factor of a query or key at position m: 1 at position 0."""
    ### BEGIN SOLUTION
    return cmath.exp(1j * m * speed)
    ### END SOLUTION

# %% check="position_factor"

# %% [markdown]
# All factors have the same length, 1, and each step multiplies by the same number. So with the speed $\theta$
#
# $$c(m)=e^{im\theta}=\cos m\theta+i\sin m\theta,\qquad\overline{e^{im\theta}}\,e^{in\theta}=e^{i(n-m)\theta}.$$
#
# (Or the same with $-\theta$.) To multiply by $e^{im\theta}$ is to *turn* the arrow $(a, b)$ by the angle $m\theta$: a rotary position embedding, **RoPE**. In "we know", *we* is at 0 and *know* at 1; in "of course we know" at 2 and 3. Both arrows have turned by two more steps, and the angle between them is what it was.

# %%
explore(figures.rotating_pair, words_before=(0, 12), words_between=(0, 6), turned=["both", "only know"])

# %% [markdown]
# > **Spot the slip.** A colleague writes: "Inner products are invariant to arbitrary rotations, so rotating is free." Choose *only know* and move the first slider. What is missing?
#
# A real head has 64 or 128 features. Cut them into pairs, and turn pair $i$ at a speed $\theta_i$ of its own, usually that of section 2, with the width of a *head* for $d$.

# %% [markdown]
# ### Exercise 3 · RoPE  (3 points · 8 min · ●●)
#
# Turn `x`, whose last two axes are tokens and features, to the given positions, which may be fractions. Neighbouring features $2i$ and $2i+1$ are a pair: $a+bi$ becomes $(a+bi)\,e^{im\theta_i}$, with $\theta_i$ in `speeds`. Compute in float32, whatever comes in, and give back the dtype of `x` (near 1,000, five positions in a row are one number in bf16). Gradients must reach `x`. For an odd width raise `ValueError`. Write it without `transformers`.

# %% exercise="rope"
def rope(
    x: Float[Tensor, "*batch s d"], positions: Float[Tensor, " s"], speeds: Float[Tensor, " d/2"]
) -> Float[Tensor, "*batch s d"]:
    """Each pair (x₂ᵢ, x₂ᵢ₊₁) turned by the angle position · speed of the pair."""
    ### BEGIN SOLUTION
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"RoPE turns features in pairs: the width must be even, not {d}")
    angle = positions[:, None] * speeds
    a, b = x.float()[..., ::2], x.float()[..., 1::2]
    turned = [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
    return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)
    ### END SOLUTION

# %% check="rope"

# %% [markdown]
# ## 5 · Is it relative?
#
# How would you test whether a scheme knows the distance alone? Put the *same* query and the *same* key at every position, and write the scores into a matrix. If a score depends on $j-i$ only, each diagonal is constant: a **Toeplitz** matrix.

# %% [markdown]
# ### Exercise 4 · The Toeplitz test  (3 points · 6 min · ●●)
#
# Return True if every diagonal of every matrix in `scores` is constant: its largest entry minus its smallest is at most `tolerance`. Masked entries are $-\infty$, and a diagonal of nothing else is constant.

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

# %% [markdown]
# First one pair, turned by your factor; then one query and one key at ten places. Shift the text: in which pictures does anything move?

# %%
q, k = 1 + 2j, 3 - 1j
with your("position_factor", "is_relative"):
    c = [complex(position_factor(m, 0.5)) for m in range(10)]
    pair = torch.tensor([[((q * a).conjugate() * k * b).real for b in c] for a in c])
    print("one pair:", "relative" if is_relative(pair) else "not relative")

# %%
schemes = ["none", "sinusoidal", "learned", "Shaw", "Transformer-XL", "T5", "ALiBi", "RoPE"]
explore(figures.position_scores, scheme=schemes, shift=(0, 100))

# %% [markdown]
# Why do so many models use RoPE? Its score is also an **inner product of two vectors**, each of which knows only its own token and position. That can be tested, too: a matrix of inner products of vectors with $d$ numbers has rank $d$ at most, however long the text. With 64 different words, $d = 16$:

# %%
with your("sinusoidal", "rope", "is_relative"):
    own = {"waves": sinusoidal, "turn": rope}
    for scheme in schemes:
        verdict = "relative" if is_relative(scheme_scores(scheme, **own)) else "not relative"
        words = scheme_scores(scheme, tokens=64, same_words=False, **own)
        rank = int(torch.linalg.matrix_rank(words, rtol=1e-4))
        print(f"{scheme:15} {verdict:13} rank {rank:2}: {'inner products' if rank <= 16 else 'no inner products'}")

# %% [markdown]
# Only "none" and RoPE are both. What is *added to the score* has to be brought into the $s \times s$ matrix, inside the kernel. RoPE changes the vectors before the kernel begins, and a cache stores turned keys (notebook 17).
#
# ## 6 · Longer than in training
#
# Most schemes *can* read texts longer than in training. How well? Four tiny models learn our little stories, 32 characters at a time: without positions, with a learned table of 128 rows, with ALiBi and with RoPE. Then each reads 128 characters of new stories. (Four runs of 3 to 10 seconds.)

# %%
predict("rope_beyond")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
measured = {scheme: story_losses(scheme) for scheme in ("none", "learned")}

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
measured |= {scheme: story_losses(scheme) for scheme in ("ALiBi", "RoPE")}
for scheme, losses in measured.items():
    print(f"{scheme:10} positions 16 to 32: {within_and_beyond(losses)[0]:.2f}   96 to 128: {within_and_beyond(losses)[1]:.2f}")

# %%
figures.loss_by_position(measured, 32, frequency_loss())

# %% [markdown]
# - **ALiBi** holds. Far tokens hardly count, so a long text looks like a short one.
# - **RoPE** falls apart, until it is worse than a table of how frequent each character is. The second pair of its small heads turns once in 63 tokens: in 32 it has shown half of its angles. The scores are relative, and that does not help with distances that are new.
# - **The learned table** stops at row 32: the other rows were never learned.
# - **No positions**: slowly worse, and already behind within the 32.
#
# The last column with seeds 0 to 3: RoPE 4.1 to 4.8, table 2.6 to 3.3, none 2.0 to 2.2, ALiBi 0.6 to 0.95.
#
# ## 7 · Slower clocks
#
# Stories need little more than their last 30 characters. **The copier** of notebook 08, two layers of attention alone, needs what is far away. It is trained on 32 random tokens that begin again after 8 to 16 of them. Then it reads 128 that begin again after 32 to 64: what it has to find is farther back than anything it has seen.
#
# The eight pairs of its heads, of base 100, turn 5.09, 2.86, 1.61, 0.91, 0.51, 0.29, 0.16 and 0.09 times within 32 tokens. In a longer text, slow them down so that they stay within the angles they know. Which ones?

# %%
predict("which_to_keep")

# %% [markdown]
# Published recipes, for texts `factor` times longer than in training:
#
# - **Interpolation** (Chen et al., 2023): divide all speeds by the factor.
# - **NTK-aware** (bloc97, 2023, in a post on Reddit): change the base alone, so that the last pair slows down by exactly the factor. Which base is that? (The last pair's exponent is not −1.)
# - **By parts** (the idea of YaRN, Peng et al., 2024; with these two limits, of Llama 3.1): count the turns of a pair within the trained length. At one turn or fewer its speed is divided by the factor; at four or more it stays; in between it is a mix of the two, and the share that is kept grows linearly with the turns.

# %% [markdown]
# ### Exercise 5 · The speeds  (3 points · 8 min · ●●)
#
# Return the speeds of all `width // 2` pairs in radians a token, in float32, for the kinds `"none"` (as trained), `"interpolation"`, `"ntk"` and `"by parts"`. `trained` is the trained length in tokens.

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

# %% [markdown]
# Now your `rope` turns the queries and keys of two copiers in training (5 to 15 seconds each). Then they read with other speeds.

# %%
predict("at_once")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
KINDS = ("none", "interpolation", "ntk", "by parts")
with your("rope"):
    copiers = [train_on_32(rope, seed) for seed in (0, 1)]
with your("rope_speeds"):
    speeds = {kind: rope_speeds(16, 100.0, kind, 4.0, 32) for kind in KINDS}
before = {kind: [[one.loss(n, speeds[kind]) for one in copiers] for n in (32, 128)] for kind in KINDS}
print(f"nats per copied token, seeds 0 and 1; guessing costs {math.log(64):.2f}")
for kind, (old, new) in before.items():
    print(f"{kind:14} 32 tokens: {old[0]:.2f} {old[1]:.2f}   128 tokens: {new[0]:.2f} {new[1]:.2f}")

# %% [markdown]
# With seeds 0 to 3 (digits differ between processors):
#
# | speeds | 32 tokens | 128 tokens |
# | --- | --- | --- |
# | as trained | 0.12 to 0.18 | 5.0 to 5.6 |
# | interpolation | 4.1 to 4.9 | 6.4 to 7.0 |
# | NTK | 0.4 to 1.0 | 3.9 to 5.1 |
# | by parts | 1.0 to 2.6 | 2.2 to 3.1 |
#
# Every recipe harms the old length, interpolation most: the neighbour is no longer where pair 0 looks for it. And at 128 even the best is far from copying. Which pairs does it take?

# %% [markdown]
# ### Exercise 6 · Slow down some  (1 point · 3 min · ●)
#
# Return a copy of the speeds in which those of the given pairs are divided by the factor.

# %% exercise="slow_down"
def slow_down(speeds: Float[Tensor, " pairs"], pairs: list[int], factor: float) -> Float[Tensor, " pairs"]:
    """The speeds, with those of these pairs divided by the factor."""
    ### BEGIN SOLUTION
    slowed = speeds.clone()
    slowed[pairs] /= factor
    return slowed
    ### END SOLUTION

# %% check="slow_down"

# %%
predict("best_single_pair")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
ablation = {}
with your("slow_down"):
    for seed, copier in enumerate(copiers):
        for name, first_to in (("only this pair", 1), ("this and all slower", 8)):
            chosen = [slow_down(SPEEDS, [*range(pair, min(8, pair + first_to))], 4.0) for pair in range(8)]
            for n in (32, 128):
                ablation[seed, name, n] = [copier.loss(n, slowed) for slowed in chosen]
                print(f"seed {seed}, {name:19} {n:3} tokens", *(f"{loss:5.2f}" for loss in ablation[seed, name, n]))

# %% [markdown]
# Pair 0 is at the left. For seeds 0 to 3: **pair 0 must stay**, because it finds the neighbour; and **no pair alone helps**: the best one leaves 4.6 to 5.1 at 128 tokens. Pairs 2 to 7 *together* bring 1.7 to 2.6. Switching one thing at a time would have said that none matters.
#
# ## 8 · Four times as long
#
# The copier stays as it is. Make it read 64 and 128 tokens, and lose nothing at 32: **write the scores**.
#
# **Finish line: at most 0.4 nats per copied token at 32 tokens, 1.0 at 64 and 1.0 at 128**, for the worse of seeds 0 and 1. As trained, about 0.1, 4.1 and 5.6; by parts beyond 32, about 0.1, 1.7 and 2.9 (the last digits depend on the machine).

# %% [markdown]
# ### Exercise 7 · Far scores  (4 points · 8 min · ●●●)
#
# `far_scores` gets queries and keys that are not turned, the speeds and the length (32) of the training, and your `rope`. Return all scores. Each may depend on its own query and key, their positions and the length of the text alone. Hide no key: scale, causal mask and softmax follow, in both layers. As trained: `rope(q, positions, speeds) @ rope(k, positions, speeds).mT`.
#
# Many ways reach the line. A try takes seconds; only the first check trains two copiers. Until your answer is valid, the next cell shows a baseline in its place: interpolation by 4, that is, `positions / 4`. Ask first: what does layer 0 need to know about distance, and what layer 1?

# %% exercise="far_scores"
def far_scores(
    q: Float[Tensor, "b h s d"], k: Float[Tensor, "b h s d"], speeds: Float[Tensor, " pairs"], trained: int, rope: Callable
) -> Float[Tensor, "b h s s"]:
    """The scores of all queries and keys, with which a copier of 32 tokens reads longer texts."""
    ### BEGIN SOLUTION
    positions = torch.arange(q.shape[-2])
    exact = rope(q, positions, speeds) @ rope(k, positions, speeds).mT
    as_if_12_back = rope(q, torch.full_like(positions, 12), speeds) @ k.mT
    return torch.where(positions[:, None] - positions < 8, exact, as_if_12_back)
    ### END SOLUTION

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
lengths = [32, 48, 64, 80, 96, 112, 128]
curves = {}
for name, kind in (("as trained", "none"), ("by parts", "by parts")):
    curves[name] = [max(one.loss(n, speeds[kind]) for one in copiers) for n in lengths]
with your("rope", "far_scores"):
    curves["far_scores"] = [
        max(one.loss(n, scores=lambda q, k: far_scores(q, k, SPEEDS, 32, rope)) for one in copiers) for n in lengths
    ]
for name, losses in curves.items():
    print(f"{name:11}", *(f"{n}: {loss:.2f}  " for n, loss in zip(lengths, losses, strict=True)))

# %% check="far_scores"

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
figures.loss_by_length(curves, lengths, 32, math.log(64))

# %% [markdown]
# <details><summary>How others do it, and why it works (open it when you are done)</summary>
#
# Layer 0 needs exact neighbours. Layer 1 recognises the right key by its content, and needs only *some* distance that it knows: the induction head of notebook 08. So: exact near by, coarse far away. Clipping at 31 fails, because no copy was ever 31 back. Self-Extend (Jin et al., 2024) puts far positions into groups; ReRoPE (Su, 2023) gives all far keys one distance; dynamic NTK changes the base with the length; YaRN also raises the scores a little.
#
# </details>
#
# ## What to keep
#
# | scheme | where it acts | relative | beyond the trained length |
# | --- | --- | --- | --- |
# | learned, sinusoidal | added to the input | no | impossible, poor |
# | Shaw, T5, ALiBi | in the score | yes | yes, vague far away |
# | RoPE | turns $q$ and $k$ | yes, *and* an inner product | poor, unless far angles stay known |
# | none | the causal mask | – | slowly worse |
#
# ## Check yourself
#
# 1. A colleague turns values, too. What do score and output depend on?
# 2. A model was trained on 8,192 tokens. To read 32,768, why not divide all positions by four?
# 3. You switch off parts, one at a time, and nothing changes. What have you learned?
#
# <details><summary>Answers</summary>
#
# 1. The score on the distance; the output on places: it is a sum of *turned* values.
# 2. Neighbours would come four times closer than training has shown. Keep the fast pairs, slow down those that did not complete a turn, and train a little on long texts.
# 3. That no part matters alone.
#
# </details>

# %% tags=["hide-input"]
assert [f"{f(a):.3f}" for a in (2, 0.02) for f in (math.sin, math.cos)] == ["0.909", "-0.416", "0.020", "1.000"]
assert f"{2 * math.pi * 10_000**0.5:.0f}" == "628" and round(2 * math.pi * 10_000 ** (2 / 8)) == 63
assert round(math.exp(5)) == 148 and round(10_000 / 256) == 39 and f"{math.exp(-1):.2f}" == "0.37"
assert torch.equal(slopes, position_bias.alibi_slopes(8)) and (1 - 2j) * (3 + 4j) == 11 - 2j
assert {torch.tensor(float(position)).bfloat16().item() for position in range(998, 1003)} == {1000.0}
turns = (32 * SPEEDS / (2 * math.pi)).tolist()
assert [f"{each:.2f}" for each in turns] == ["5.09", "2.86", "1.61", "0.91", "0.51", "0.29", "0.16", "0.09"]
inside, beyond = ({scheme: within_and_beyond(values)[k] for scheme, values in measured.items()} for k in (0, 1))
assert max(inside["ALiBi"], inside["RoPE"]) < min(inside["none"], inside["learned"]) - 0.1, inside
assert beyond["ALiBi"] < inside["ALiBi"] + 0.2 and beyond["RoPE"] > frequency_loss() + 0.5, beyond
assert beyond["learned"] > inside["learned"] + 0.5 and beyond["none"] > inside["none"] + 0.5, beyond
ranges = {"none": (0, 0.3, 4.5, 6.1), "interpolation": (3.6, 5.4, 6, 7.5), "ntk": (0.2, 1.3, 3.4, 5.6), "by parts": (0.7, 3, 1.8, 3.5)}
for kind, (low, high, far_low, far_high) in ranges.items():
    assert all(low < loss < high for loss in before[kind][0]) and all(far_low < loss < far_high for loss in before[kind][1]), before
for seed in (0, 1):
    only, slower = (ablation[seed, name, 128] for name in ("only this pair", "this and all slower"))
    assert ablation[seed, "only this pair", 32][0] > 4 < min(only) and slower[2] < 3, ablation
assert curves["as trained"][0] < 0.4 and min(curves["as trained"][2], curves["as trained"][-1]) > 3, curves

# %% [markdown]
# ## Further
#
# Each section needs the core and nothing else from Further.

# %% [markdown]
# ### A · Why these waves?  (15 min)
#
# Take $d = 1024$. Pair 2 turns by $\omega_2 = 0.9647$ radians a token, pair 500 by 0.000124, which is 7,774 times slower. Pair 2 tells position 2 from 3 at a glance, but not from 15: two turns later it is back where it was. Pair 500 is the converse: 2 and 3 differ by 0.0001, but over thousands of tokens it never repeats. Together they are a number, with digits of every size.
#
# Pick a pair, work out its wavelength from $\omega_i$, and compare:

# %%
explore(figures.wavelengths, pair=(0, 511), context=[512, 2048, 8192, 131072])

# %% [markdown]
# From $\omega_i T_i = 2\pi$ follows $T_i = 2\pi \cdot 10000^{2i/d}$: equal ratios again, from 6.28 tokens to 61,712.
#
# One wave per frequency would do half the work in half the space. Why two?

# %%
predict("sine_collision")

# %% [markdown]
# A sine alone is ambiguous even within one turn, because $\sin x = \sin(\pi - x)$: it passes each height twice, once on its way up and once on its way down. The cosine knows which. Together they are a point on a circle, and a point on a circle is unique for a whole turn.
#
# The authors give a reason: they hoped that a model would easily learn to attend by *relative* position.

# %%
predict("one_matrix")

# %% [markdown]
# So for each pair there is a 2 × 2 matrix that contains $k$ and $\omega$, but not the position $p$, with
#
# $$\begin{pmatrix} \sin \omega(p + k) \\ \cos \omega(p + k) \end{pmatrix} = \begin{pmatrix} ? & ? \\ ? & ? \end{pmatrix} \begin{pmatrix} \sin \omega p \\ \cos \omega p \end{pmatrix}.$$
#
# For all $d/2$ pairs together it is a $(d, d)$ matrix with $d/2$ such blocks along its diagonal and zeros elsewhere.

# %% [markdown]
# ### Exercise 8 · The matrix of a step  (3 points · 8 min · ●●)
#
# Return the float32 matrix $A_k$ for which $A_k\,\text{PE}(p) = \text{PE}(p + k)$ at every position, with the features in the order of Exercise 1. Steps back (negative $k$) count as well, and far ones, as there.

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

# %% [markdown]
# The addition theorems of sine and cosine fill the four places: $\cos \omega k,\ \sin \omega k$ above, $-\sin \omega k,\ \cos \omega k$ below, a rotation. In the original paper, learned and sinusoidal positions gave nearly the same quality (table 3, row E). Learned tables are small: GPT-2's has 1,024 rows, OPT's 2,050, of which two come before position 0, a leftover of a padding convention. Forget them when you load the weights, and every position is off by two.

# %% [markdown]
# ### B · A vector for each distance  (15 min)
#
# Shaw et al. (2018) give each *offset* $j - i$, key minus query, a learned vector $a_{j-i}$ and add it to the key, for this query only:
#
# $$e_{ij} = \frac{q_i \cdot (k_j + a_{j-i})}{\sqrt d}.$$
#
# (A second set of vectors may be added to the values in the same manner: $z_i = \sum_j \alpha_{ij} (v_j + a'_{j-i})$, with $\alpha$ the softmax of $e$.)
#
# A text of a million tokens has two million offsets, and who needs to tell 800 back from 801 back? So offsets are **clipped** to $\pm K$: all keys that are farther away share the outermost vector, and $2K + 1$ vectors remain, from offset $-K$ in the first row of a table to $+K$ in the last.

# %%
explore(figures.relative_bands, clip=(0, 7), length=(4, 12))

# %%
predict("relative_cost")

# %% [markdown]
# The formula says to build a different key for every pair: an $(s, s, d)$ tensor. But multiply out: $q \cdot (k + a) = q \cdot k + q \cdot a$. The first part is the usual product. The second has only $2K + 1$ different values for each query: compute those, $(s, 2K + 1)$, and pick the right one for each key.

# %%
s, d, clip = 4096, 64, 16
mib = 2**20 / 4  # numbers in a MiB, in fp32
print(f"a vector for each pair:  {s * s * d / mib:7,.1f} MiB per head")
print(f"q·a for each vector:     {s * (2 * clip + 1) / mib:7,.1f} MiB per head")
print(f"the scores themselves:   {s * s / mib:7,.1f} MiB per head")

# %% [markdown]
# ### Exercise 9 · Shaw's scores, efficiently  (3 points · 9 min · ●●● · differentiable)
#
# Return the scores $e_{ij}$ of every head. `vectors` holds the $2K + 1$ relative vectors, shared by the heads, from offset $-K$ to $+K$. Do not make a vector for each pair, neither all at once, an $(s, s, d)$ tensor, nor query by query.

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

# %% [markdown]
# **In real models.** Shaw et al. clipped at 16 in their base model, and report that anything from 2 on works about as well, and that the vectors on the keys suffice (§4.3). Vectors of this kind live on in speech: SeamlessM4T v2 uses them, clipped at 64 to the past and 8 to the future.

# %% [markdown]
# ### C · A number for each distance  (16 min)
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
# Half of the buckets hold one distance each. The other half share all that is farther away, in ranges that grow in equal ratios up to a maximum distance: precise near by, vague far off, like your own memory of a book. In the decoder, with a maximum of 128, the buckets begin at these distances:

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
# The encoder looks both ways. There each side has half of the buckets, 16: the past the lower half, the future the upper. In the decoder there is no future; offsets that point to it, which the mask removes anyway, fall into bucket 0.

# %% [markdown]
# ### Exercise 10 · T5's buckets  (3 points · 10 min · ●●●)
#
# Return the bucket of each offset, key minus query: the past is negative. Integers of the same shape come out. The rule is in the numbers above: from distance 16 to 128, a factor of 8, there are 16 buckets. `buckets` is an even number, of both sides together where there are two.

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

# %% [markdown]
# In one formula, with $n$ buckets for a side and the maximum distance $D$:
#
# $$\text{bucket} = \min\left(n - 1,\ \frac n2 + \left\lfloor \frac{\ln (\text{distance} / \frac n2)}{\ln(D / \frac n2)} \cdot \frac n2 \right\rfloor\right)$$
#
# The learned numbers are few, 32 per head, and all layers share them. T5 was trained on 512 tokens and can read more, since the last bucket has no end; it just cannot tell how far "far" is.
#
# **A third way: Transformer-XL.** Dai et al. (2019, §3.3) start at the four terms of section 2 and make a distance of every position: $p_n$ becomes a wave of the distance, $r_{m-n}$, with a weight matrix $W_R$ of its own, and $p_m$ becomes two learned vectors, $u$ and $v$:
#
# $$e_{mn} = \underbrace{q_m \cdot k_n}_{\text{words}} + \underbrace{q_m \cdot W_R\, r_{m-n}}_{\text{word and distance}} + \underbrace{u \cdot k_n}_{\text{word alone}} + \underbrace{v \cdot W_R\, r_{m-n}}_{\text{distance alone}}$$
#
# **In real models.** Gopher (Rae et al., 2021) and Chinchilla (Hoffmann et al., 2022) use it.

# %% [markdown]
# ### D · ALiBi in full  (12 min)
#
# T5 *learns* how much a distance costs. Press et al. (2022) simply decided it. Their **attention with linear biases** charges a fixed price per token:
#
# $$e_{ij} = \frac{q_i \cdot k_j}{\sqrt d} - m_h\, (i - j), \qquad j \le i.$$
#
# The price, the **slope** $m_h$, is different for each head, so that some heads look at their neighbourhood and others far back. With slope 1/256 a token ten back costs 0.04, and nearly nothing is lost.
#
# For $n$ heads, $n$ a power of two, the slopes are a geometric series that starts at its own ratio: $2^{-8/n}, 2^{-16/n}, \dots, 2^{-8}$. Eight heads have $\tfrac12, \tfrac14, \dots, \tfrac1{256}$; sixteen begin at $2^{-1/2} = 0.707$ and end at the same 1/256.
#
# And for other numbers? The authors' code has a rule: take the slopes of the next *smaller* power of two; then add, from the series of *twice* that power, the first, third, fifth … slope, as many as are missing. Those lie in the gaps.

# %%
explore(figures.slopes_by_head, heads=(1, 40))

# %% [markdown]
# Now the bias itself. When a model generates text with a cache (notebook 17), only the newest tokens ask, but all earlier ones are keys. So there may be fewer queries than keys, and the queries are the *last* tokens.

# %% [markdown]
# ### Exercise 11 · The bias  (2 points · 6 min · ●●)
#
# Return what is added to the scores: $m_h\,(j - i)$ for keys that are not ahead of the query, $-\infty$ for those that are, in the dtype of the slopes. With more queries than keys raise `ValueError`.

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

# %% [markdown]
# Where all words are alike, a head's attention falls off exponentially with the distance. How much of it reaches the beginning of the text?

# %%
explore(figures.alibi_reach, context=Log(64, 8192), heads=[2, 4, 8])

# %% [markdown]
# The belief that near is important is why ALiBi models can read texts longer than any they were trained on (trained on 1,024 tokens, Press et al.'s model reads 2,048 as well as a sinusoidal one that was trained on 2,048): new distances only continue a straight line.
#
# **In real models.** BLOOM (Le Scao et al., 2022; 112 heads, which is no power of two) and MPT (MosaicML, 2023). BLOOM's code adds $m_h \cdot j$, the key's place, instead of the distance. Within a row that differs by a constant, and softmax does not see constants (notebook 01).

# %% [markdown]
# ### E · RoPE in real models  (19 min)
#
# A head as a set of clocks, of 16 features:

# %%
explore(figures.rotation_clocks, position=(0, 1000), base=[10_000, 500_000])

# %% [markdown]
# **As a matrix.** Real and imaginary part of $(a + bi)(\cos m\theta + i \sin m\theta)$, written one above the other, are a 2 × 2 matrix times $(a, b)$:
#
# $$R_m \begin{pmatrix} a \\ b \end{pmatrix} = \begin{pmatrix} \cos m\theta & -\sin m\theta \\ \sin m\theta & \cos m\theta \end{pmatrix} \begin{pmatrix} a \\ b \end{pmatrix}, \qquad R_m^\top R_n = R_{n-m}.$$
#
# For all pairs, $R_m$ is $d \times d$ and nearly all zeros; no program multiplies by it. But with it one can write the score of a whole head. With $q = W_q x_m$ and $k = W_k x_n$ it is $x_m^\top W_q^\top R_{n-m} W_k x_n$. The transpose on $W_q$ is easily lost. In numbers:

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
# **Which features are a pair?** The formula is settled. What is left to get wrong? The paper pairs neighbours. GPT-NeoX, and after it nearly all code on Hugging Face, pairs feature $i$ with feature $i + d/2$: two halves are easier to slice.

# %%
explore(figures.pair_layouts, d=[4, 8, 16])

# %% [markdown]
# It is the same operation with another order of the features: even ones first, then the odd ones, $\pi = (0, 2, 4, \dots, 1, 3, 5, \dots)$. If queries *and* keys get the same permutation, no score changes. So a checkpoint made for one layout can be used with code for the other: permute the rows of $W_Q$ and $W_K$ in each head, once. That is what the conversion of Meta's Llama weights does. Forget it, and the model loads without an error and talks nonsense.

# %% [markdown]
# ### Exercise 12 · RoPE in halves, and the way there  (3 points · 8 min · ●● · differentiable)
#
# Turn pairs $(i,\ i + d/2)$, at base 10,000. With `interleaved=True` the features come in the order of Exercise 3: bring them into halves *first* (and leave the result in halves). So `rope_half(x, p, interleaved=True)` is `rope(x, p, speeds)[..., π]` with the speeds of this base.

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

# %% [markdown]
# **Where does it go?** Not at the bottom of the model, where $p_s$ used to be added, but into *every* attention layer, after the projections and before the scores. Llama's order of events:
#
# ```python
# q, k, v = split_heads(x @ W_q), split_heads(x @ W_k), split_heads(x @ W_v)
# cos, sin = angles(positions)                    # computed once, shared by all layers and heads
# q, k = rope(q, cos, sin), rope(k, cos, sin)     # not v
# z = attention(q, k, v, mask)                    # any kernel: it never hears of positions
# ```
#
# The values carry no position, so the sum that a layer passes on is made of words alone, and the next layer turns its own queries and keys.
#
# **How fast?** The angles are not trained. They are a fixed schedule, and a rotation is an orthogonal matrix: it keeps every length, forwards and backwards, so gradients pass it unharmed. But the **base** is a hyperparameter, and it has grown with the contexts. A larger base slows all pairs but the first, the last ones most. See what is left of the slow pairs within a context, at each base:

# %%
explore(figures.wavelengths, d=128, pair=(0, 63), base=[10_000, 500_000, 1_000_000], context=[4096, 8192, 131072])

# %% [markdown]
# With a base of 10,000 a head of 128 has wavelengths up to 54,410 tokens; with Llama 3's 500,000 up to 2,559,196. A context of 8,192 tokens shows the slowest pair 0.15 of a turn, or less.
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
#
# Until 2022 models differed. Since 2023 nearly all large models use RoPE: Llama, Mistral, Falcon, Gemma, OLMo, Qwen. What varies is the base, the share of features, and which layers go without.

# %% [markdown]
# ### F · Nothing at all  (11 min)
#
# Does a causal model need positions?

# %%
predict("no_positions")

# %% [markdown]
# The causal mask breaks the symmetry. The first token can see one token, the tenth ten. Suppose a head attends to all of them equally, and the tokens are noise: independent features with mean 0 and variance 1. Then token $s$ receives an average of $s$ vectors, and the variance of an average is $1/s$. So the mean square of what it receives is about $1/s$, and its inverse is about $s$: the position.
#
# By hand: the average of four random signs is 0, ±½ or ±1, and its mean square is $0 \cdot \tfrac{6}{16} + \tfrac14 \cdot \tfrac{8}{16} + 1 \cdot \tfrac{2}{16} = \tfrac14$.

# %% [markdown]
# ### Exercise 13 · The signal in the mask  (2 points · 6 min · ●●)
#
# Let every token attend equally to itself and all tokens before it (all scores equal, values unchanged). Return, for each token, 1 over the mean square (over the features) of what it receives.

# %% exercise="nope_position_signal"
def nope_position_signal(x: Float[Tensor, "b s d"]) -> Float[Tensor, "b s"]:
    """1 / mean square of uniform causal attention: about 1, 2, 3, … for noise."""
    ### BEGIN SOLUTION
    count = torch.arange(1, x.shape[1] + 1)
    average = x.cumsum(dim=1) / count[:, None]
    return 1 / average.square().mean(dim=-1)
    ### END SOLUTION

# %% check="nope_position_signal"

# %%
explore(figures.nope_estimate, features=Log(8, 512), length=(16, 128))

# %% [markdown]
# So the mask tells positions without a single weight: nothing in it is learned. Which tensors know how long a text is? Double $S$, and this is what changes:
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
# **In real models.** Models without positions were trained in earnest: Haviv et al. (2022) found them competitive with others of their size, and Kazemnejad et al. (2023) better at going beyond the trained length on small reasoning tasks. Today NoPE appears in mixtures. In Command A (Cohere, 2025) three layers with a sliding window and RoPE are followed by one that sees everything and has no positions; Llama 4 also leaves RoPE out of every fourth layer. The windowed layers know the order near by, the others look anywhere, and no pair of tokens ever meets at an angle that training has not shown.

# %% [markdown]
# ### G · Longer in real models  (5 min)
#
# How far do the pairs of a real head turn, as trained and slowed down? Yellow: angles that training has not shown.

# %%
explore(figures.rope_scaling, kind=["none", "interpolation", "ntk", "by parts"], factor=(1, 16), base=[10_000, 500_000])

# %% [markdown]
# Real models are trained a little more after their speeds have changed. The copier, too: 50 steps on 128 tokens, a tenth of the first training (10 to 20 seconds).

# %%
predict("after_fifty_steps")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
afterwards = {}
with your("rope_speeds"):
    for kind in KINDS:
        slowed = rope_speeds(16, 100.0, kind, 4.0, 32)
        longer = copiers[0].trained_longer(slowed)
        afterwards[kind] = longer.loss(32, slowed), longer.loss(128, slowed)
        print(f"{kind:14} 32 tokens: {afterwards[kind][0]:.2f}   128 tokens: {afterwards[kind][1]:.2f}")

# %% [markdown]
# By parts now copies at 128 (0.08 to 0.12 with seeds 0 to 3), and has forgotten the old length: 1.4 to 1.9 in place of 0.1 to 0.2. Trained on 128 tokens from the start, for 500 steps, the copier does not learn to copy at all (4.1 nats, seed 0). So short texts first, then stretched, is cheaper, and better. (YaRN's code mixes by the number of the pair, not by its turns.)
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
# ### Check yourself
#
# 1. Pair 2 of $d = 1024$ confuses positions 2 and 15, and pair 500 has hardly moved between them. Which of its 512 pairs would you ask? And which to tell 2 from 20,000?
# 2. Shaw's second vectors, $a'_{j-i}$, are added to the values. Does the score still depend on the distance only, and what can the output tell that it could not before?
# 3. You load a Llama checkpoint, and the model produces fluent words in senseless order. All tensors had the right shapes. What do you check first?
# 4. ALiBi with slope ½: by what factor is a token 20 back weakened against the token itself, if both match the query equally?
# 5. A colleague writes: "The causal mask carries weights with a dimension of the context's length, so a longer context needs a new mask to be trained." True?
# 6. Name the scheme: OPT, T5, BLOOM, Gopher, Mistral, and the full-attention layers of Command A.
#
# <details><summary>Answers</summary>
#
# 1. One that is somewhat slower than pair 2: two turns of pair 2 are 13.03 tokens, and the two positions are 13 apart. A pair that makes half a turn in 13 tokens tells them best: pair 79. For 2 and 20,000 pair 500: it has made two fifths of a turn.
# 2. The score does. The output then tells *how far away* the tokens were that it attended to, and still not where they stand.
# 3. The layout of RoPE's pairs: neighbours or halves. The permutation of $W_Q$ and $W_K$ changes no shape. Then the base.
# 4. The bias is −10, so by $e^{10} \approx 22{,}000$.
# 5. No. It has no weights, and is computed for any length. (It does tell positions: section F.)
# 6. Learned, buckets, ALiBi, Transformer-XL's, RoPE, none.
#
# </details>
#
# ### Further reading
#
# - Vaswani et al., 2017, *Attention is all you need*, §3.5.
# - Shaw et al., 2018, *Self-attention with relative position representations*; Dai et al., 2019, *Transformer-XL*; Raffel et al., 2020, *Exploring the limits of transfer learning* (T5), §2.1.
# - Press et al., 2022, *Train short, test long* (ALiBi).
# - Su et al., 2021, *RoFormer: enhanced transformer with rotary position embedding*.
# - Chen et al., 2023, *Extending context window of large language models via positional interpolation*; Peng et al., 2024, *YaRN: efficient context window extension of large language models*; Jin et al., 2024, *LLM maybe LongLM: self-extend LLM context window without tuning*.
# - Kazemnejad et al., 2023, *The impact of positional encoding on length generalization in transformers*.
# - In this package: `lmcourse/nn/rotary.py`, `rope_scaling.py` and `position_bias.py`.

# %% tags=["hide-input"]
wave_speeds = {pair: 10_000 ** (-2 * pair / 1024) for pair in (0, 2, 500, 511)}
wave_turns = {pair: 2 * math.pi / speed for pair, speed in wave_speeds.items()}
assert f"{wave_speeds[2]:.4f}" == "0.9647" and f"{wave_speeds[500]:.6f}" == "0.000124"
assert round(wave_speeds[2] / wave_speeds[500]) == 7774
assert [f"{wave_turns[pair]:,.2f}" for pair in (0, 2, 500)] == ["6.28", "6.51", "50,632.56"] and f"{wave_turns[511]:,.0f}" == "61,712"
sines = {position: math.sin(wave_speeds[2] * position) for position in (2, 3, 6, 15, 28, 47)}
assert [f"{sines[position]:.3f}" for position in (3, 6, 28, 47)] == ["0.245", "-0.475", "0.953", "0.977"]
assert [f"{math.cos(wave_speeds[2] * position):.3f}" for position in (28, 47)] == ["-0.302", "0.212"]
assert f"{math.sin(3 * wave_speeds[500]) - math.sin(2 * wave_speeds[500]):.4f}" == "0.0001"
assert round(-math.log(math.pi / 13) / math.log(10_000) * 512) == 79 and 0.39 < 19_998 / wave_turns[500] < 0.4
assert abs(sines[2] - sines[15]) < 0.01 and f"{2 * wave_turns[2]:.2f}" == "13.03"
assert 4096 * 4096 * 64 * 4 == 4 * 2**30
assert first_distance[31] == 113 and [first_distance[bucket] for bucket in range(16)] == [*range(16)]
assert position_bias.alibi_slopes(8)[-1] == 1 / 256 == position_bias.alibi_slopes(16)[-1] and round(10 / 256, 2) == 0.04
assert f"{position_bias.alibi_slopes(16)[0]:.3f}" == "0.707" and 22_000 < math.exp(10) < 22_050
longest = [2 * math.pi * base ** (126 / 128) for base in (10_000, 500_000)]
assert [f"{tokens:,.0f}" for tokens in longest] == ["54,410", "2,559,196"] and 1 / 7 < 8192 / longest[0] < 0.16
assert [math.comb(4, ones) for ones in range(5)] == [1, 4, 6, 4, 1]
assert afterwards["by parts"][1] < 0.2 < min(loss for kind, (_, loss) in afterwards.items() if kind != "by parts"), afterwards
assert afterwards["by parts"][0] > 1, afterwards
