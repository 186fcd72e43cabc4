# %% [markdown]
# # 08 · Attention
#
# **Core · 90 min · 6 exercises · 17 points** · **Further · 139 min · 8 exercises · 24 points**
#
# *Susan thanked Tom because he helped.* You know at once who "he" is. A network that reads each word on its own cannot:
# the answer is two words back. Attention is the layer that goes and looks. **What does a head of attention do, and how
# would you prove it?**
#
# At the end, your attention has run a trained model and grown a head that copies. You have taken its heads apart with
# an experiment of your own, and redesigned attention, so that one layer does what takes two.
#
# **You need** tensors and `einsum` (notebook 02) and softmax (01). No GPU.
#
# Stuck? `hint("name_of_the_exercise")` gives a nudge; run it again for the next one.

# %%
import math
from collections.abc import Callable
from statistics import fmean

import torch
import torch.nn.functional as F
from einops import einsum, rearrange, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.kv_cache import bytes_per_token
from lmcourse.chapters.attention import figures
from lmcourse.chapters.attention.figures.costs import layer_cost
from lmcourse.chapters.attention.figures.heads import scores as scores_of_heads
from lmcourse.chapters.attention.induction import learn_to_copy, looks
from lmcourse.chapters.attention.patching import copying_loss, corrupted_texts, misled
from lmcourse.chapters.attention.replace_attention import loss_of, print_slips, validation_texts, with_attention
from lmcourse.chapters.attention.stored import SHARED_KEYS
from lmcourse.models.zoo import find_model
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.plots import alt_text
from lmcourse.pretrained import load_pretrained
from lmcourse.widgets import Log

start("08-attention")

# %% [markdown]
# ## 1 · Who moves information?
#
# A transformer is a stack of layers: an embedding, then attention, norms (notebook 10) and feed-forward layers (11)
# alternately, then an output. Which of them lets a token learn about another? Change one input token, and see which
# outputs change. How many will it be in these two layers?

# %%
torch.manual_seed(0)
x, w = torch.randn(5, 8), torch.randn(8, 8)
changed = x + torch.eye(5)[:, 1:2]  # the second token

layers = {"feed-forward": lambda x: (x @ w).relu(), "attention": lambda x: F.scaled_dot_product_attention(x, x, x)}
for name, layer in layers.items():
    moved = (layer(x) - layer(changed)).abs().amax(dim=-1) > 1e-6
    print(f"{name:12}  outputs that changed: {[token for token in range(5) if moved[token]]}")

# %% [markdown]
# All other layers work on each token alone. If a model knows who "he" is, attention found out. Compare *the animal did
# not cross the street because **it** was too tired* and *… because **it** was too wide* (Uszkoreit, 2017): one word at
# the end decides where "it" has to look.

# %% [markdown]
# ## 2 · Ask, match, fetch
#
# You type a *query* into a search engine. It compares the query with a *key* that it keeps for each page, and hands you
# the page, the *value*. Attention does this with vectors. Instead of the best match it hands you a blend of all values,
# weighted by how well their keys match. A blend has a gradient, so a model can learn what to look for.
#
# With three learned matrices every token $i$ makes three vectors from its features: a query $q_i$ (what am I looking
# for?), a key $k_i$ (what can I be found by?) and a value $v_i$ (what do I hand over?). If all come from one text, this
# is **self-attention**. A query and a key match if their dot product is large: a sum of $d$ products, where $d$ is the
# width of a *head*.

# %%
predict("score_growth")

# %% [markdown]
# So scores must be brought back to size. For one token, attention is five steps:
#
# 1. take its query $q$;
# 2. **score** every token: $q \cdot k_j$, large if the key points where the query points;
# 3. divide by $\sqrt d$;
# 4. make **weights** with a softmax: positive, and they sum to one;
# 5. **average** the values under these weights.
#
# By hand, with three tokens and $d = 2$:

# %%
q = torch.tensor([2.0, 0.0])
k = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
v = torch.tensor([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])
scores = k @ q
weights = (scores / 2**0.5).softmax(dim=0)
for name, numbers in {"scores": scores, "weights": weights, "result": weights @ v}.items():
    print(f"{name:7}", [round(number, 3) for number in numbers.tolist()])

# %% [markdown]
# The first key points where the query points: the result is mostly its value.
#
# > **Spot the slip.** A colleague writes the result of token $i$ as $o_i = \sum_j \alpha_{ij} v_i$, with weights
# > $\alpha_{ij}$ that sum to one over $j$. Would anybody notice?

# %%
predict("own_value")

# %% [markdown]
# Right is $o_i = \sum_j \alpha_{ij} v_j$: weights of 0.3, 0.2, 0.2 and 0.3 and the values 10, 0, 5 and 20 give 10.
#
# Set a head by hand: can you make "he" look at Susan? With the last button every token looks at the one before it. How?

# %%
figures.AttentionPlayground()

# %% [markdown]
# The result is an average of the values, so it lies *inside* the grey shape that they span, and for fixed weights it is
# linear in them. A stack of such layers would only average averages: one reason why a feed-forward layer follows each.

# %% [markdown]
# ## 3 · Why divide by √d?
#
# At the start of training the entries of $q$ and $k$ roughly have mean 0 and variance 1, and so does the product of two
# of them. The variances of $d$ independent products add up, so a typical score is $\sqrt d$.

# %%
torch.manual_seed(0)
for d in (16, 64, 256, 1024):
    q, k = torch.randn(2, 4000, d, dtype=torch.float64)
    print(f"d = {d:4}   spread of q·k {einsum(q, k, 'n d, n d -> n').std():5.1f}   √d = {d**0.5:4.0f}")

# %% [markdown]
# A softmax looks at *differences* of scores. At $d = 1024$ two scores typically differ by $\sqrt2 \cdot 32 \approx 45$:
# one token gets $e^{45}$ times the weight of the other, which gets hardly any gradient. Dividing by $\sqrt d$ brings
# the spread back to 1, for any width (Vaswani et al., 2017).
#
# Now all tokens at once: $s$ queries are the rows of a matrix, $t$ keys those of another. Two axes come first, texts
# and heads.

# %% [markdown]
# ### Exercise 1 · Attention weights  (2 points · 6 min · ●● · differentiable)
#
# Return how much each query looks at each key. Keep the dtype of `q`. Fused attention functions are off limits;
# `softmax` is fine.

# %% exercise="attention_weights"
def attention_weights(
    q: Float[Tensor, "b h s d"], k: Float[Tensor, "b h t d"]
) -> Float[Tensor, "b h s t"]:
    """How much each query attends to each key; every row sums to one."""
    ### BEGIN SOLUTION
    scores = einsum(q, k, "b h s d, b h t d -> b h s t")
    return (scores / q.shape[-1] ** 0.5).softmax(dim=-1)
    ### END SOLUTION


# %% check="attention_weights"

# %% [markdown]
# With the values as rows of a matrix $V$, all of attention is one line:
#
# $$A = \text{softmax}\Big(\frac{Q K^\top}{\sqrt d}\Big), \qquad O = A V$$
#
# A colleague divides by $d$: "it only has to be smaller". Here is the largest of a query's weights for 20 keys. From
# which width on will the undivided head give at least 0.9 to one token? What is left when you divide by $d$?

# %%
torch.manual_seed(0)
with your("attention_weights"):
    for d in (1, 16, 64, 256, 1024):
        q, k = torch.randn(1000, 1, 1, d), torch.randn(1000, 1, 20, d)
        largest = [attention_weights(each, k).amax(-1).mean() for each in (q * d**0.5, q, q / d**0.5)]
        print("d = {:4}   undivided {:.2f}   by √d {:.2f}   by d {:.2f}".format(d, *largest))

# %% [markdown]
# Undivided, from 256 features on. Divided by $d$, a head is nearly blind: the best of 20 keys gets little more than the
# 0.05 of a plain average.

# %% [markdown]
# ## 4 · No peeking
#
# A language model predicts every token from those before it. If a token could see the next one in training, it would
# copy it: the loss would fall to nearly zero, and the model could write nothing.
#
# So a **mask** sets all scores that point to the future to $-\infty$ *before* the softmax. $e^{-\infty} = 0$, and the
# other weights still sum to one. By hand, the third of four tokens, with equal scores: $\text{softmax}(1, 1, 1,
# -\infty) = (\tfrac13, \tfrac13, \tfrac13, 0)$. A mask *after* the softmax would leave $(\tfrac14, \tfrac14, \tfrac14,
# 0)$: no longer an average, and the future still had a say.
#
# Soon there will be fewer queries than keys: only the newest $s$ of $t$ tokens ask.

# %%
predict("which_mask")

# %% [markdown]
# ### Exercise 2 · The causal mask  (2 points · 3 min · ●)
#
# There are `t` tokens; the last `s` are the queries. Return an $s \times t$ tensor of `bool`, `True` where a query may
# look. $s$ may be 0. Raise `ValueError` if $s > t$.

# %% exercise="causal_mask"
def causal_mask(s: int, t: int) -> Bool[Tensor, "s t"]:
    """A mask for the last s queries: each sees its own key and all before it."""
    ### BEGIN SOLUTION
    if s > t:
        raise ValueError(f"{s} queries cannot be the last of {t} tokens")
    query_positions = torch.arange(t - s, t)
    return torch.arange(t) <= query_positions[:, None]
    ### END SOLUTION


# %% check="causal_mask"

# %% [markdown]
# > **Spot the slip.** A colleague defines the mask for a query $s$ and a key $s'$ as "0 if $s \le s'$, else $-\infty$".
# > Who sees whom?
#
# The first token sees everything, the last only itself. Right is, for the last $s$ of $t$ tokens
# $\text{softmax}(QK^\top/\sqrt d + M)$ with $M_{ij} = 0$ if $j \le t - s + i$, else $-\infty$.

# %% [markdown]
# ### Exercise 3 · Causal attention  (3 points · 7 min · ●● · differentiable)
#
# Scores, mask, softmax, average, for the last `s` of `t` tokens. The values may be of another width than the keys. You
# may use your `causal_mask`. Fused functions stay off limits until the next exercise.

# %% exercise="causal_attention"
def causal_attention(
    q: Float[Tensor, "b h s d"], k: Float[Tensor, "b h t d"], v: Float[Tensor, "b h t dv"]
) -> Float[Tensor, "b h s dv"]:
    """Each query's average of the values that it may see."""
    ### BEGIN SOLUTION
    scores = einsum(q, k, "b h s d, b h t d -> b h s t") / q.shape[-1] ** 0.5
    visible = causal_mask(q.shape[2], k.shape[2])
    weights = scores.masked_fill(~visible, -torch.inf).softmax(dim=-1)
    return einsum(weights, v, "b h s t, b h t d -> b h s d")
    ### END SOLUTION


# %% check="causal_attention"

# %% [markdown]
# PyTorch's `F.scaled_dot_product_attention` has a switch `is_causal=True`, with a trap: with fewer queries than keys,
# it puts the first query at position 0. One new token, four keys:

# %%
torch.manual_seed(0)
q, k, v = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 4, 8), torch.randn(1, 1, 4, 3)
with your("causal_attention"):
    print("causal_attention", causal_attention(q, k, v).flatten())
print("is_causal=True  ", F.scaled_dot_product_attention(q, k, v, is_causal=True).flatten())
print("the oldest value", v[0, 0, 0])

# %% [markdown]
# The newest token sees only the oldest. Another trap: `True` means "may look" in this function's mask, and "is hidden"
# in that of `nn.MultiheadAttention`. One formula, three layers:
#
# | layer | queries from | keys, values from | mask | found in |
# | --- | --- | --- | --- | --- |
# | **encoder** self-attention | the text | the text | none: reads both ways | BERT, T5's encoder |
# | **decoder** self-attention | the text | the text | causal: reads one way | GPT, Llama |
# | **cross-attention** | the new text | another, encoded text | none | T5's decoder |

# %% [markdown]
# ## 5 · Many heads
#
# A word needs several answers at once: its subject, its tense, the word before it. A single average would blur them. So
# the width, from here on $d$, is cut into $h$ **heads** of width $d / h$, the number under their root. Each asks,
# matches and fetches on its own slice of the features; the results are laid side by side, and one more matrix $W_O$
# mixes them:
#
# $$\text{MultiHead}(x) = [o^1|o^2|\dots|o^h]\; W_O, \qquad o^i = \text{Attention}(x W_Q^i, x W_K^i, x W_V^i)$$

# %%
predict("cut_into_heads")

# %% [markdown]
# The $W_Q^i$ lie side by side in one $d \times d$ matrix, so one product makes all queries, and to cut the result into
# heads is to *read* it differently: a head is a block of neighbouring features, the same block for every token
# (notebook 02).

# %% [markdown]
# ### Exercise 4 · Many heads  (3 points · 12 min · ●● · differentiable)
#
# All three layers of the table in one function. Queries come from `x`, keys and values from `source`. The weights are
# as in `nn.Linear`, (out, in): a projection is `x @ w.T`. If given,
#
# - `visible` is `True` where a query may look;
# - `turn` is a function of (b, heads, tokens, d / heads), applied to queries and keys after they are cut into heads: it
#   tells positions apart (notebook 09);
# - `change` is a function of the heads' results, (b, heads, s, d / heads), applied before they are laid side by side:
#   your switch in section 8.
#
# Now you may use `F.scaled_dot_product_attention`, but not `nn.MultiheadAttention`.

# %% exercise="multi_head"
def multi_head(
    x: Float[Tensor, "b s d"],
    source: Float[Tensor, "b t d"],
    w_q: Float[Tensor, "d d"],
    w_k: Float[Tensor, "d d"],
    w_v: Float[Tensor, "d d"],
    w_out: Float[Tensor, "d d"],
    heads: int,
    visible: Bool[Tensor, "s t"] | None = None,
    turn: Callable[[Tensor], Tensor] | None = None,
    change: Callable[[Tensor], Tensor] | None = None,
) -> Float[Tensor, "b s d"]:
    """Project, cut into heads, turn, attend, change, lay side by side, mix."""
    ### BEGIN SOLUTION
    pairs = (x, w_q), (source, w_k), (source, w_v)
    q, k, v = (rearrange(y @ w.T, "b s (h d) -> b h s d", h=heads) for y, w in pairs)
    if turn is not None:
        q, k = turn(q), turn(k)
    results = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
    if change is not None:
        results = change(results)
    return rearrange(results, "b h s d -> b s (h d)") @ w_out.T
    ### END SOLUTION


# %% check="multi_head"

# %% [markdown]
# The course comes with a small model: four layers of four heads, trained on the help texts of Python. `with_attention`
# puts your function into every layer. On 1,024 new tokens:

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
trained = load_pretrained()
tokens = validation_texts()
with your("multi_head", "causal_mask"), torch.no_grad():
    expected = trained.model(tokens)
    with with_attention(trained.model, multi_head, causal_mask):
        received = trained.model(tokens)
print(f"loss {loss_of(expected, tokens):.2f}, with multi_head {loss_of(received, tokens):.2f} nats per token")

# %% [markdown]
# Now break it. There are famous ways to cut heads wrongly, and all keep the shapes right.

# %%
predict("wrong_heads")

# %%
predict("future_shown")

# %%
print_slips()

# %% [markdown]
# No line raised an error. **Weights that were trained one way are nonsense read another way**: a `view` at *both* ends
# is not one slip that undoes the other. Without `turn` no query knows how far away a key is. And without its mask the
# model gets *worse*, because it has never seen a future. What three readings put into the first of two heads:

# %%
rows = torch.tensor([[0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15]])  # two tokens of six features, two heads
print("right        head 0:", rearrange(rows, "s (h d) -> h s d", h=2)[0].tolist())
print("no transpose head 0:", rows.reshape(2, 2, 3)[0].tolist(), " (the first token twice)")
print("interleaved  head 0:", rearrange(rows, "s (d h) -> h s d", h=2)[0].tolist())

# %% [markdown]
# ## 6 · What heads look at
#
# Heads specialise. Below are four patterns, drawn by hand after trained models. Which copies the previous token? Which
# finds an earlier copy of the same word? One seems to do nothing.

# %%
figures.head_gallery()

# %% [markdown]
# C looks one back, A looks for earlier copies, D averages over all so far. B puts nearly everything on the first token:
# a head that has nothing to say must still spend all its attention, and learns to spend it where it does no harm. A
# cache that drops these *attention sinks* breaks a large model (Xiao et al., 2024).
#
# And the 16 heads of the small model?

# %%
explore(figures.head_scores, pattern=[*figures.PATTERNS])

# %% [markdown]
# Head 3 of layer 3 gives more than half of its attention to the token one back. Two famous patterns are missing: no
# head rests on the first token, and none looks at the token after an earlier copy.

# %% [markdown]
# ## 7 · Grow an induction head
#
# "What came after this word last time?" A head that answers this is an *induction head*. Olsson et al. (2022) saw them
# form in models that had read billions of tokens. You can have one in a few seconds, with an embedding, one layer or
# two of *your* `multi_head`, and an output. Each layer *adds* its result to the tokens' features, and `turn` tells
# positions apart. The texts are random tokens that begin again after 8 to 16 of them, 7 2 9 4 … 7 2 …: only looking
# back helps.

# %%
predict("layers_to_copy")

# %%
copying = {}
with your("multi_head", "causal_mask", "attention_weights"):
    for name, layers in (("one layer", 1), ("two layers", 2)):
        copying[name] = learn_to_copy(multi_head, layers, mask=causal_mask, weights=attention_weights)
        print(f"{name}: {copying[name].end:.2f} nats per copied token; guessing costs {math.log(32):.2f}")

# %% [markdown]
# Your `attention_weights` noted where the heads look.

# %%
predict("copying_starts")

# %%
figures.copying_runs(copying)

# %% [markdown]
# One layer sees which tokens are there, and little more: a key knows its own token, and the query needs the token
# *after* its copy. Two layers share the work. In layer 0 a head looks one back, so every token holds the name of its
# predecessor. In layer 1 a head looks for the token whose predecessor is the present one, and copies it. For 140 steps
# only layer 1 moves a little. When a head of layer 0 begins to look back, the loss falls from 2.8 to 1.1 in 40 steps.

# %% [markdown]
# ## 8 · Switch a head
#
# A picture of where a head looks is no proof that it does anything. To test it, take this head's result from another
# run and watch the loss: *activation patching*.
#
# Text A repeats. Text B begins with other tokens and goes on like A: what comes next stands nowhere before.
# `loss(text)` is the copier's loss on A's copied tokens, low for A, high for B. `loss(text, change)` calls
# `change(layer, results)` in each layer, in order, with the results of its heads, (b, heads, s, d / heads), and
# continues with what it returns.

# %% [markdown]
# ### Exercise 5 · What a head does  (3 points · 8 min · ●●●)
#
# Return two numbers for a head (A is `clean`, B is `corrupted`):
#
# - *restored* = (loss(B) − loss(B with this head's result from A)) / (loss(B) − loss(A)): is it **enough**?
# - *destroyed* = (loss(A with this head's result from B) − loss(A)) / (loss(B) − loss(A)): is it **needed**?

# %% exercise="head_effect"
def head_effect(
    loss: Callable[..., float], clean: Int[Tensor, "b s"], corrupted: Int[Tensor, "b s"], layer: int, head: int
) -> tuple[float, float]:
    """The fraction of the difference in loss that one head restores in B, and that it destroys in A."""
    ### BEGIN SOLUTION
    def with_head_from(other: Tensor, text: Tensor) -> float:
        recorded = {}
        loss(other, lambda at, results: recorded.setdefault(at, results))

        def change(at: int, results: Tensor) -> Tensor:
            changed = results.clone()
            if at == layer:
                changed[:, head] = recorded[at][:, head]
            return changed

        return loss(text, change)

    low, high = loss(clean), loss(corrupted)
    restored = (high - with_head_from(clean, corrupted)) / (high - low)
    destroyed = (with_head_from(corrupted, clean) - low) / (high - low)
    return restored, destroyed
    ### END SOLUTION


# %% check="head_effect"

# %%
predict("without_the_first_head")

# %%
texts, effects = corrupted_texts(), {}
with your("multi_head", "head_effect"):
    for seed, run in enumerate((copying["two layers"], learn_to_copy(multi_head, 2, seed=1))):
        loss = copying_loss(run.model, texts)
        print(f"seed {seed}: loss of A {loss(texts.clean):.2f}, of B {loss(texts.corrupted):.2f}")
        for layer, head in ((0, 0), (0, 1), (1, 0), (1, 1)):
            restored, destroyed = head_effect(loss, texts.clean, texts.corrupted, layer, head)
            effects[seed, layer, head] = restored, destroyed
            seen = "one back {:.2f}, after the copy {:.2f}".format(*looks(run.model)[layer][head])
            print(f"  layer {layer}, head {head}: {seen}   restored {restored:5.2f}   destroyed {destroyed:5.2f}")

# %% [markdown]
# A picture is a hypothesis, and half of this one was wrong: with seed 0 two heads look back, and one of them does next
# to nothing. (With seed 1 only head 1 looks back.) The rest holds for both seeds. Head 1 of layer 0 is needed, and not
# enough. On its own, in a run on B, it even harms: layer 1 now finds the right place, and copies what B has there,
# whose probability rises from 0.1 to 0.7. The heads of layer 1 stand in for each other: either restores more than half,
# and without one less than half is lost.

# %% [markdown]
# ## 9 · One layer
#
# **Change the attention so that one layer can copy.** The baseline is the one layer of section 7:

# %%
print(f"{copying['one layer'].end:.2f} nats per copied token")

# %% [markdown]
# ### Exercise 6 · One layer  (4 points · 10 min · ●●●)
#
# `one_layer` has the arguments of `multi_head` and uses its four weights. It must be causal. The rest is your design.
# As in section 7, the model adds its result to the features. The next cell tries it; the check after that trains it
# with three seeds, in 5 to 20 seconds. **Finish line: a mean of at most 0.9 nats per copied token.** Grading uses other
# seeds.

# %% exercise="one_layer"
def one_layer(
    x: Float[Tensor, "b s d"],
    source: Float[Tensor, "b t d"],
    w_q: Float[Tensor, "d d"],
    w_k: Float[Tensor, "d d"],
    w_v: Float[Tensor, "d d"],
    w_out: Float[Tensor, "d d"],
    heads: int,
    visible: Bool[Tensor, "s t"] | None = None,
    turn: Callable[[Tensor], Tensor] | None = None,
    change: Callable[[Tensor], Tensor] | None = None,
) -> Float[Tensor, "b s d"]:
    """Attention with which one layer can continue a text that repeats."""
    ### BEGIN SOLUTION
    late = F.pad(source, (0, 0, 1, 0))[:, :-1]  # for each token the features of the token before it
    pairs = (x, w_q), (late, w_k), (source, w_v)
    q, k, v = (rearrange(y @ w.T, "b s (h d) -> b h s d", h=heads) for y, w in pairs)
    if turn is not None:
        q, k = turn(q), turn(k)
    results = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
    if change is not None:
        results = change(results)
    return rearrange(results, "b h s d -> b s (h d)") @ w_out.T
    ### END SOLUTION


# %% [markdown]
# Which of its heads does the work? One with about 1 and 1 does it alone; if none has, they share it.

# %%
with your("one_layer", "head_effect"):
    mine = learn_to_copy(one_layer, layers=1)
    print(f"{mine.end:.2f} nats per copied token")
    for head in (0, 1):
        restored, destroyed = head_effect(copying_loss(mine.model, texts), texts.clean, texts.corrupted, 0, head)
        print(f"head {head}: restored {restored:5.2f}   destroyed {destroyed:5.2f}")

# %% check="one_layer"

# %%
figures.copying_losses(copying | {"Exercise 6, or its baseline": mine}, finish=0.9)

# %% [markdown]
# <details><summary>Afterwards: how others did it</summary>
#
# With a *smeared key*, mixed from two neighbours, one layer learned to copy (Olsson et al., 2022).
# RWKV's *token shift* (Peng et al., 2023) and the *short convolutions* of linear-attention models (Yang et al., 2024)
# also let a key know the token before it.
#
# </details>

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what is attention? | $\text{softmax}(QK^\top/\sqrt d + M)\,V$: an average of values |
# | why $\sqrt d$? | it is the spread of a random $q \cdot k$ |
# | how is the future hidden? | $-\infty$ before the softmax; query $i$ of the last $s$ of $t$ is at $t - s + i$ |
# | what is a head? | a block of $d/h$ neighbouring features: `"b s (h d) -> b h s d"`; more heads, same weights |
# | what does an induction head need? | keys that know the token before them, or values that know the one after |
# | what does a head do? | patch it: is it enough, is it needed? |
#
# ## Check yourself
#
# 1. You permute the tokens of a text. What happens to the outputs of self-attention without a mask?
# 2. When is masking with $-10^4$ instead of $-\infty$ not harmless?
# 3. You write `q.view(b, heads, s, d_head)` for a `q` of shape (b, s, heads · d_head). What is in head 0?
# 4. A head's picture is perfect, and *destroyed* is 0. Give two explanations.
#
# <details><summary>Answers</summary>
#
# 1. They are permuted in the same way and change in nothing else: attention knows no order (notebook 09).
# 2. If visible scores are as low (*filled* in) or as far apart (*added*). If all keys are hidden, it gives an average,
#    not NaN.
# 3. The features of the first $s / \text{heads}$ tokens, chopped into pieces.
# 4. The model does not use what the head copies. Or another head stands in for it.
#
# </details>

# %% [markdown]
# The folded cell checks these numbers.

# %% tags=["hide-input"]
assert round(2**0.5 * 32) == 45 and 0.3 * 10 + 0.2 * 0 + 0.2 * 5 + 0.3 * 20 == 10
assert (received - expected).abs().max() < 1e-4
assert round(loss_of(expected, tokens), 2) == 1.79 and tokens.numel() == 1024
previous, _, first, after_copy = map(scores_of_heads, figures.PATTERNS)
assert previous.argmax() == 15 and previous.max() > 0.5
assert max(first.max(), after_copy.max()) < 0.1
answers = "The numbers of sections 7 and 8 are those of the course's answers. Yours gave others."
assert copying["one layer"].end > 2 and copying["two layers"].end < 0.6, answers
steps = [each.first_below(2) for each in (copying["two layers"], run)]
assert abs(steps[0] - 160) < 10 > abs(steps[1] - 144), answers
assert [round(copying["two layers"].losses[step], 1) for step in (140, 180)] == [2.8, 1.1], answers
for seed in (0, 1):
    nothing, needed = effects[seed, 0, 0], effects[seed, 0, 1]
    assert max(map(abs, nothing)) < 0.1 and needed[1] > 0.7 and needed[0] < -0.1, answers
    assert all(effects[seed, 1, head][0] > 0.5 > effects[seed, 1, head][1] for head in (0, 1)), answers
for each, two_look_back in ((copying["two layers"].model, True), (run.model, False)):
    assert (looks(each)[0][0][0] > 0.25) == two_look_back and looks(each)[0][1][0] > 0.45, answers
    before, after = misled(each, texts), misled(each, texts, patched=(0, 1))
    assert [round(before, 1), round(after, 1)] == [0.1, 0.7], answers

# %% [markdown]
# ## Further
#
# What attention costs, and how models pay less. Read the blocks in any order: each needs the core, and no other block.

# %% [markdown]
# ### A · Other scales  (3 min)
#
# Dividing by $d$ is not always a slip. Section 3 was about queries and keys that know nothing of each other, as at the
# start of training. A head that has learned something has queries and keys that *agree*. Mix each key half from its
# query, and measure again:

# %%
torch.manual_seed(0)
for d in (16, 256, 4096):
    q, noise = torch.randn(2, 1000, d, dtype=torch.float64)
    for name, k in (("independent", noise), ("correlated", 0.5 * q + 0.75**0.5 * noise)):
        size = einsum(q, k, "n d, n d -> n").square().mean().sqrt()
        print(f"d = {d:4}  {name:11}  typical q·k / √d {size / d**0.5:5.1f}   q·k / d {size / d:.2f}")

# %% [markdown]
# For correlated queries and keys the products are positive on average, and the sum grows like $d$. Divided by $\sqrt d$
# a wide head is sharper than a narrow one; divided by $d$ both are equally sharp. µP (notebook 13) therefore takes
# $1/d$, so that wide models learn at the same rate as narrow ones (Yang et al., 2022).
#
# **In real models.** Nearly all use $1/\sqrt d$. Gemma 2 27B divides by $\sqrt{144}$ although its heads are 128 wide
# (Gemma Team, 2024). T5 uses no scale: it initialises the query weights $\sqrt d$ times smaller instead (Raffel et al.,
# 2020). Does that do the same, for a new model with 512 features?

# %%
torch.manual_seed(0)
for d in (16, 64, 256):
    x, y = torch.randn(2, 1000, 512, dtype=torch.float64)
    w_q, w_k = torch.randn(2, 512, d, dtype=torch.float64) / 512**0.5
    spreads = [einsum(x @ w, y @ w_k, "n d, n d -> n").std() for w in (w_q, w_q / d**0.5)]
    print(f"d = {d:3}   spread of q·k: {spreads[0]:5.1f}, and with T5's first queries {spreads[1]:.2f}")

# %% [markdown]
# At the start it does. Training may undo it, and a scale in the formula stays.

# %% [markdown]
# ### B · One token at a time  (13 min)
#
# A model writes one token, appends it, and reads everything again to write the next. After a thousand tokens it has
# read the first one a thousand times. Which part of that work was new?

# %%
predict("what_is_kept")

# %% [markdown]
# Under a causal mask no token sees what comes after it. So nothing about an old token changes when a new one arrives:
# its key and its value are what they were. Keep them, in a **KV cache**, and a step needs only the new token's own
# query, key and value:
#
# $$o_t = \text{softmax}\Big(\frac{q_t\,[k_1 \dots k_t]^\top}{\sqrt d}\Big)\,[v_1 \dots v_t]$$
#
# Reading the prompt is the **prefill**: many new tokens at once, nothing in the cache yet. Writing is **decoding**: one
# new token, everything else in the cache. Between the two there is a third case, a chunk of new tokens after an old
# text, when a user answers in a chat for instance. Its queries must see all of the cache, and of the new tokens only
# those up to themselves. You have a mask for that.

# %% [markdown]
# ### Exercise 7 · Attention with a cache  (4 points · 10 min · ●●● · differentiable)
#
# `q`, `k` and `v` belong to `n` new tokens, `past_k` and `past_v` to the `m` before them (`m` may be 0). Return the
# output of the new tokens, and all keys and all values, ready for the next step. Token by token it must equal the full
# pass. Your own functions help; fused ones are off limits again.

# %% exercise="attend_with_cache"
def attend_with_cache(
    q: Float[Tensor, "b h n d"],
    k: Float[Tensor, "b h n d"],
    v: Float[Tensor, "b h n d"],
    past_k: Float[Tensor, "b h m d"],
    past_v: Float[Tensor, "b h m d"],
) -> tuple[Float[Tensor, "b h n d"], Float[Tensor, "b h m+n d"], Float[Tensor, "b h m+n d"]]:
    """The new tokens' output, all keys, all values."""
    ### BEGIN SOLUTION
    keys = torch.cat([past_k, k], dim=2)
    values = torch.cat([past_v, v], dim=2)
    return causal_attention(q, keys, values), keys, values
    ### END SOLUTION


# %% check="attend_with_cache"

# %% [markdown]
# How many bytes does the cache take? Per token a key and a value (2), in each layer, for each head that has its own
# keys, `d_head` numbers of two bytes. For Llama 2 7B, 32 layers with 32 heads of 128:
#
# $$2 \cdot 32 \cdot 32 \cdot 128 \cdot 2 \text{ bytes} = 524{,}288 \text{ bytes, half a MiB for every token of every text.}$$
#
# **In real models.** `torch.cat` copies the whole cache at each step. Production code takes memory for the longest text
# once and writes into it (`lmcourse.inference.cache_layouts`), or divides it into pages like an operating system (vLLM;
# Kwon et al., 2023).

# %% [markdown]
# ### C · Share the keys  (26 min)
#
# A model that writes keeps the keys and values of all tokens before, in a *KV cache*, and reads them for every new
# token: for Llama 2 7B $2 \cdot 32 \text{ layers} \cdot 32 \text{ heads} \cdot 128 \text{ features} \cdot 2$ bytes,
# half a MiB per token. Which number in this product can be made smaller without making the model smaller?
#
# The number of *key* heads. In **multi-query attention** (MQA; Shazeer, 2019) all query heads share one key head and
# one value head. In **grouped-query attention** (GQA; Ainslie et al., 2023) there are $g$ of them, and $h / g$ query
# heads share each. $g = h$ is the attention you know, MHA; $g = 1$ is MQA.

# %%
predict("sharing_saves")

# %% [markdown]
# Who shares with whom? Neighbours. With six query heads and two key heads:
#
# | query head | 0 | 1 | 2 | 3 | 4 | 5 |
# | --- | --- | --- | --- | --- | --- | --- |
# | looks at key head | 0 | 0 | 0 | 1 | 1 | 1 |

# %% [markdown]
# ### Exercise 8 · Grouped-query attention  (3 points · 8 min · ●● · differentiable)
#
# Causal, as before: the queries are the last `s` of `t` tokens. Raise `ValueError` if the query heads cannot be shared
# out evenly. Once more without fused functions.

# %% exercise="grouped_query_attention"
def grouped_query_attention(
    q: Float[Tensor, "b h s d"], k: Float[Tensor, "b g t d"], v: Float[Tensor, "b g t d"]
) -> Float[Tensor, "b h s d"]:
    """Causal attention in which h / g neighbouring query heads share a key and value head."""
    ### BEGIN SOLUTION
    group, left_over = divmod(q.shape[1], k.shape[1])
    if left_over:
        raise ValueError(f"{q.shape[1]} query heads cannot share {k.shape[1]} key heads evenly")
    k, v = (repeat(y, "b g t d -> b (g group) t d", group=group) for y in (k, v))
    return causal_attention(q, k, v)
    ### END SOLUTION


# %% check="grouped_query_attention"

# %% [markdown]
# Two ways to copy key heads look alike. `repeat(k, "b g t d -> b (g group) t d", group=3)` puts the copies of a head
# side by side: 0 0 0 1 1 1. `k.repeat(1, 3, 1, 1)` copies all heads three times over: 0 1 0 1 0 1. The second has the
# right shape and the wrong heads, and you have seen what that does to a trained model.
#
# Slide from MHA over GQA to MQA, and make the text longer. The projections to keys and values shrink as well: from 33.6
# to 8.4 million weights a layer at eight key heads.

# %%
explore(figures.shared_keys, kv_heads=Log(1, 32), context=Log(1024, 131072), batch=Log(1, 64))

# %% [markdown]
# Does it cost quality? Two layers of eight heads, trained on the stories of notebook 05 with three seeds each (stored
# runs). The last two rows have wider feed-forward layers, which give back the weights that sharing saved:

# %%
for key_heads, width, parameters, ends in SHARED_KEYS:
    size = f"{parameters:,} parameters, {2 * 2 * key_heads * 8 * 2:3} bytes of cache per token"
    print(f"{key_heads} key heads, feed-forward {width}: {size}, loss {' '.join(f'{end:.3f}' for end in ends)}")

# %% [markdown]
# At the same width the mean loss rises by 0.02 from eight key heads to one, about as much as the seeds scatter. With as
# many weights, two key heads are as good as eight here, for a quarter of the cache.
#
# **In real models.** Llama 3 8B has 8 key heads for 32 query heads, groups of 4; the 405B has 8 for 128, groups of 16
# (Grattafiori et al., 2024). PaLM and Falcon 7B use MQA. Ainslie et al. (2023) found GQA with 8 groups nearly as good
# as MHA and nearly as fast as MQA, and eight is what many models have taken since.

# %%
for name in ("llama-2-7b", "llama-3-8b", "llama-3.1-405b", "falcon-7b"):
    model = find_model(name).decoder
    heads, key_heads = model.layers[0].attention.heads, model.layers[0].attention.key_heads
    print(f"{name:15} {heads:4} query heads {key_heads:3} key heads   {bytes_per_token(model):8,} bytes per token")

# %% [markdown]
# #### Or keep a summary
#
# Sharing makes heads more similar. **Multi-head latent attention** (MLA; DeepSeek-AI, 2024) leaves every head its own
# keys and values, and does not keep them. For each token the layer makes one short vector, the *latent* $c_j = W_D
# x_j$, and only $c_j$ goes into the cache. From it each head makes its keys $k_j = W_{UK}\, c_j$ and its values
# $W_{UV}\, c_j$, with its own matrices.
#
# That saves memory. But does it save traffic? If every step first makes the keys of all heads from all latents, it
# writes and reads as many numbers as before. Can you have the scores without ever making a key?

# %% [markdown]
# ### Exercise 9 · Scores from latents  (2 points · 7 min · ●● · differentiable)
#
# `w_uk` holds the matrix of each head: a head's key of token $j$ is `w_uk[head] @ latent[j]`. Return the scores $q
# \cdot k_j$, not scaled, in the dtype of `q`, and make no key on the way: no tensor of $t \cdot d$ numbers, the keys of
# one head, and no more than $h s d c + h s c t$ multiplications.

# %% exercise="absorbed_scores"
def absorbed_scores(
    q: Float[Tensor, "h s d"], latent: Float[Tensor, "t c"], w_uk: Float[Tensor, "h d c"]
) -> Float[Tensor, "h s t"]:
    """Every query's dot product with every key, from the latents alone."""
    ### BEGIN SOLUTION
    absorbed = einsum(q, w_uk, "h s d, h d c -> h s c")
    return einsum(absorbed, latent, "h s c, t c -> h s t")
    ### END SOLUTION


# %% check="absorbed_scores"

# %% [markdown]
# The matrix has moved to the side of the query: $q \cdot (W_{UK}\, c_j) = (W_{UK}^\top q) \cdot c_j$. There are few
# queries and many tokens. The cache now works as in multi-query attention, with one vector per token that all heads
# look at. $W_{UV}$ moves in the same way: first average the latents, then multiply.
#
# There is one obstacle. Trained models turn queries and keys by their positions (`turn` in exercise 4). The rotation
# comes between $q$ and $W_{UK}$, and it is a different one for each pair of tokens, so no matrix can absorb it.
# DeepSeek therefore keeps 64 more features per token. They are turned, and all heads share them; their products are
# added to the scores.

# %%
predict("latent_cache")

# %%
layers, heads, d_head, latent, turned = 61, 128, 128, 512, 64  # DeepSeek-V3
kept = {"MHA": 2 * heads * d_head, "GQA, 8 key heads": 2 * 8 * d_head}
kept |= {"MLA": latent + turned, "MQA": 2 * d_head}
for name, numbers in kept.items():
    print(f"{name:17} {layers * numbers * 2:9,} bytes per token")

# %% [markdown]
# MLA keeps 2.25 times as much as MQA, and every head has its own keys. It pays with arithmetic: a score is a dot
# product over 512 + 64 numbers, not over 128 + 64. Decoding waits for memory (block D), so the arithmetic costs little.
#
# **In real models.** DeepSeek-V2 and V3 have it (DeepSeek-AI, 2024), and Kimi K2 (Kimi Team, 2025). In DeepSeek's own
# comparison it was better than MHA.

# %% [markdown]
# ### D · The layer's price  (21 min)
#
# A product of an $m \times k$ and a $k \times n$ matrix takes $2mkn$ FLOPs (notebook 03). Go through the layer, for $b$
# texts of $n$ tokens, width $d$, $h$ heads:
#
# | step | FLOPs | numbers that come out |
# | --- | --- | --- |
# | to queries, keys, values | $6\,bnd^2$ | $3\,bnd$ |
# | scores $QK^\top$ | $2\,bn^2d$ | $b\,h\,n^2$ |
# | softmax | a few per number | $b\,h\,n^2$ |
# | weights times values | $2\,bn^2d$ | $bnd$ |
# | output projection | $2\,bnd^2$ | $bnd$ |
# | **together** | $8\,bnd^2 + 4\,bn^2d$ | $O(bnd + b\,h\,n^2)$, and $4d^2$ weights |
#
# Look for $h$. It is in no entry of the FLOPs, and it multiplies the score matrix: cutting into more heads changes the
# memory, not the work. The quadratic part overtakes the projections at $n = 2d$, 8,192 tokens at Llama 2 7B's
# width of 4,096.
#
# Work is one side. The other is *traffic*: every number has to come from memory once and go back once. The **arithmetic
# intensity**, FLOPs divided by bytes, decides which of the two takes longer. An H100 computes 295 bf16 FLOPs in the
# time in which it moves one byte. A layer with fewer FLOPs per byte waits for memory.
#
# **Training, with a score matrix in memory.** For long texts the matrix outweighs all else: it is written and read
# again, $2 \cdot 2\,b h n^2$ bytes for $4\,b n^2 d$ FLOPs. Their ratio is $d/h = d_\text{head}$, the *width* of a head.
# At 4,096 tokens the projections still add to it. Are more heads good for it?

# %%
b, n, d = 8, 4096, 4096
for h in (8, 32, 128):
    print(f"{h:3} heads of {d // h:3}: {layer_cost(b, n, n, h, h, fused=False).intensity:6.1f} FLOPs per byte")

# %% [markdown]
# More heads are narrower: with 128 of them the intensity is far below the H100's 295. Kernels that never write the
# matrix (block F) escape from this.
#
# **Decoding.** A model that writes has one new token for each of $b$ texts. Every weight is read for $b$ tokens' worth
# of work. For a single query per text the layer reads the *cache*, the keys and values of all $t$ tokens so far, $2
# \cdot b\,t \cdot g \cdot d_\text{head}$ numbers with $g$ key heads. A larger batch shares the weights among more
# texts. It does not share the cache: each text has its own.

# %%
predict("decoding_intensity")

# %% [markdown]
# Together the $n$ steps read $b\,n^2 d$ numbers of cache and $n d^2$ of weights. With the weights alone the intensity
# would be 32, the batch size. Divide $b\,n\,d^2$ operations by this sum, and it is $(n/d + 1/b)^{-1}$: with long texts
# the first term wins, and no batch size helps. If several query heads share a key head (block C), exactly that term
# shrinks, by $h/g$. With 32 query heads and one key head for each (MHA), for four (GQA) and for all (MQA):

# %%
b, n, d, h = 32, 2048, 4096, 32
for name, g in (("MHA", 32), ("GQA", 8), ("MQA", 1)):
    print(f"{name}: {g:2} key heads, {1 / (n * g / (d * h) + 1 / b):5.2f}")

# %% [markdown]
# Now count it all, exactly.

# %% [markdown]
# ### Exercise 10 · FLOPs and bytes  (3 points · 12 min · ●●●)
#
# One attention layer, in bf16 (two bytes a number). Each of `batch` texts has `context` tokens; the last `new` of them
# are new. (Training: `new == context`. Decoding: `new == 1`.) Return two whole numbers, by your own count and not by
# `torch.utils.flop_counter`:
#
# - **FLOPs** of all matrix products: four projections of the new tokens, scores, and weights times values. Count all
#   pairs, also those that a mask would hide.
# - **Bytes** that move: the four weight matrices, the layer's input and its output for the new tokens, the keys and the
#   values of the whole context; each once. If not `fused`, add the score matrix of all query heads, twice: written and
#   read.

# %% exercise="attention_flops_bytes"
def attention_flops_bytes(
    batch: int, new: int, context: int, d_model: int, heads: int, kv_heads: int, fused: bool = True
) -> tuple[int, int]:
    """FLOPs of the products, and bytes that move, of an attention layer in bf16."""
    ### BEGIN SOLUTION
    d_head = d_model // heads
    weights = 2 * d_model**2 + 2 * d_model * kv_heads * d_head
    scores = batch * heads * new * context
    cache = 2 * batch * kv_heads * context * d_head
    flops = 2 * batch * new * weights + 2 * 2 * scores * d_head
    moved = weights + 2 * batch * new * d_model + cache + (0 if fused else 2 * scores)
    return flops, 2 * moved
    ### END SOLUTION


# %% check="attention_flops_bytes"

# %% [markdown]
# Your FLOPs were compared with what PyTorch's own counter sees when it runs the layer, and your bytes with those of the
# tensors. Put them on a *roofline*: on the slope memory limits, on the flat part arithmetic does. Which slider moves
# the circles to the right? Which does not?

# %%
explore(
    figures.attention_roofline,
    batch=Log(1, 256),
    context=Log(256, 32768),
    accelerator=["a100-sxm-80gb", "h100-sxm", "h200"],
)

# %% [markdown]
# A longer context moves the circles of MHA and GQA to the left. A larger batch moves MHA's only a little: even 256
# texts of 2,048 tokens leave MHA at 5 FLOPs per byte, because each brings its own cache. Sharing keys helps, or looking
# at less (block E).
#
# The bars on the right are the reason why sharing was invented for inference. In training it saves no more than the
# narrower projections do. In decoding with 8 key heads the layer takes less than a third of the time, because less than
# a third of the bytes is left to read.
#
# **In real models.** The same sums explain why servers put many requests into one batch, and why reading a token of the
# prompt costs so much less than writing a token of the answer: the prefill is one pass, like training (Pope et al.,
# 2022).

# %% [markdown]
# ### E · See less  (23 min)
#
# The scores of a text of $n$ tokens are $n^2$ numbers. Does every token really have to look at all of them?
#
# Most of what a word needs is close by. A **sliding window** lets each token see itself and the $W - 1$ before it: $nW$
# pairs instead of $n^2$. A model that writes keeps the keys and values of earlier tokens in a *cache*; with a window it
# never holds more than $W$ of them.

# %% [markdown]
# ### Exercise 11 · A sliding window  (2 points · 4 min · ●)
#
# As `causal_mask`, for $s \le t$, with a window: each query sees the `window` latest keys up to and including itself.
# Raise `ValueError` for a window below 1.

# %% exercise="sliding_window_mask"
def sliding_window_mask(s: int, t: int, window: int) -> Bool[Tensor, "s t"]:
    """A mask for the last s of t tokens: each sees itself and the window - 1 before it."""
    ### BEGIN SOLUTION
    if window < 1:
        raise ValueError(f"a window holds at least the token itself, not {window}")
    distance = torch.arange(t - s, t)[:, None] - torch.arange(t)
    return (distance >= 0) & (distance < window)
    ### END SOLUTION


# %% check="sliding_window_mask"

# %% [markdown]
# A token that is further back is lost to this layer. **Sparse attention** (Child et al., 2019) adds far-away keys: a
# window of `stride` tokens, and from there on every `stride`-th. With a stride near $\sqrt n$ both parts have about
# $\sqrt n$ keys, and every token reaches every earlier one in two hops: one to the right column, one within the window.
#
# The zoo of masks starts with this one, "strided". For each mask: how many pairs are left? Which rows stop growing?
# Which token can a query *not* see under "chunk" although it is its direct neighbour?

# %%
explore(
    figures.mask_zoo,
    kind=["everything", "causal", "prefix", "window", "chunk", "strided", "fixed"],
    size=(1, 8),
    query=(0, 19),
)

# %% [markdown]
# (The first token of a chunk does not see the token right before it. Blocks that do not slide have this price.)
#
# #### How far does a word carry?

# %%
predict("window_reach")

# %% [markdown]
# A window of $W$ does not mean that a model remembers $W$ tokens. In the second layer a token sees $W$ tokens, each of
# which has already seen $W$ in the first. By hand, with $W = 3$: after one layer token 9 knows of 7, 8 and 9. In the
# second it looks at 7 again, and by then 7 knows of 5 and 6. Each layer adds $W - 1$:
#
# $$\text{receptive field} = L\,(W - 1) + 1.$$
#
# For other masks there is no formula, but there is an algorithm. Find it.

# %% [markdown]
# ### Exercise 12 · The receptive field  (3 points · 8 min · ●●)
#
# `masks` holds one mask per layer, the bottom layer first; row $i$ is True where token $i$ sees in that layer (always
# itself, too). Return, for each token, how many input tokens its output depends on, as integers.

# %% exercise="receptive_field"
def receptive_field(masks: list[Bool[Tensor, "t t"]]) -> Int[Tensor, "t"]:
    """Count the input tokens that each token of the top layer depends on."""
    ### BEGIN SOLUTION
    heard = masks[0]
    for mask in masks[1:]:
        heard = (mask.float() @ heard.float()) > 0
    return heard.sum(dim=1)
    ### END SOLUTION


# %% check="receptive_field"

# %%
explore(figures.receptive_field, window=(1, 8), layers=(1, 8), full_layers=["none", "every 4th"])

# %% [markdown]
# A path exists; that does not make it a good one. Over twenty hops a message is averaged twenty times. So many models
# **interleave**: a few layers with a window, then one that sees everything. Switch "full layers" to "every 4th" above:
# a single one opens the whole text. And the cache? Only the full layers keep everything.

# %%
explore(figures.cache_against_context, batch=Log(1, 64))

# %% [markdown]
# At 131,072 tokens Llama 3 8B keeps 16 GiB per text. With a window of 4,096 in three of four layers it would be 4.4
# GiB.
#
# **In real models.** GPT-3 alternates dense and banded sparse layers (Brown et al., 2020). Mistral 7B v0.1 has a window
# of 4,096 in all its 32 layers (Jiang et al., 2023); v0.2 and v0.3 have none. Of the models of 2025, Command A has
# three windowed layers for each full one (Cohere, 2025), Gemma 3 five (Gemma Team, 2025), and Llama 4 three with chunks
# of 8,192 (Meta, 2025).

# %% [markdown]
# ### F · The matrix that is never written  (42 min)
#
# Scores and weights are the only tensors of the layer that grow with $n^2$. At 8,192 tokens and 32 heads the weights of
# one layer and one text are 4 GiB in bf16. All that for numbers that are used once. Can you compute the result without
# them?
#
# Take the keys in blocks, and carry three things along for each query: the largest score so far, $m$; the sum of
# $e^{\text{score} - m}$, the softmax's denominator; and the sum of the values, each times its $e^{\text{score} - m}$.
# After the last block, divide the third by the second. This is the *online softmax* (Milakov & Gimelshein, 2018).
#
# By hand, with one query, values that are numbers, and two blocks. The first has scores 0 and 1 and values 10 and 20,
# the second a score of 3 with a value of 40:
#
# | | $m$ | denominator | sum of the values |
# | --- | --- | --- | --- |
# | at the start | −∞ | 0 | 0 |
# | after the first block | 1 | $e^{-1} + e^0 = 1.368$ | $10\,e^{-1} + 20\,e^0 = 23.68$ |
# | after the second | 3 | 1.185 | 43.20 |
#
# Divided, $43.20 / 1.185 = 36.46$, which is what a softmax over 0, 1 and 3 gives. How did 1.368 become 1.185?

# %% [markdown]
# ### Exercise 13 · A block of keys  (3 points · 12 min · ●●●)
#
# `scores` holds the scores of $s$ queries for the $t$ keys of the next block, already scaled, and `v` their values.
# `top`, `total` and `numerator` are the three things from the blocks before, a row for each query. Return them as they
# are after this block, in the same order, shapes and dtype, and do not change the inputs. Scores of hidden keys are
# $-\infty$. A query that has seen no key at all has a `top` of $-\infty$ and zeros. That may last for several blocks.

# %% exercise="block_update"
def block_update(
    top: Float[Tensor, "s 1"],
    total: Float[Tensor, "s 1"],
    numerator: Float[Tensor, "s dv"],
    scores: Float[Tensor, "s t"],
    v: Float[Tensor, "t dv"],
) -> tuple[Float[Tensor, "s 1"], Float[Tensor, "s 1"], Float[Tensor, "s dv"]]:
    """The largest score, the denominator and the sum of the values, with one more block of keys."""
    ### BEGIN SOLUTION
    new_top = top.maximum(scores.amax(dim=1, keepdim=True))
    base = new_top.masked_fill(new_top == -torch.inf, 0.0)
    raised, shrink = (scores - base).exp(), (top - base).exp()
    return new_top, total * shrink + raised.sum(dim=1, keepdim=True), numerator * shrink + raised @ v
    ### END SOLUTION


# %% check="block_update"

# %% [markdown]
# When a larger score comes, both sums shrink by $e^{m_\text{old} - m_\text{new}}$: $1.368\,e^{-2} + e^0 = 1.185$.
# Nothing is approximated; 1,000 keys at once or one at a time give the same average. Here your update runs a causal
# layer block by block, with at most `block` scores of a query at a time:

# %%
def streamed_attention(
    q: Tensor, k: Tensor, v: Tensor, block: int, update: Callable[..., tuple[Tensor, ...]]
) -> tuple[Tensor, Tensor]:
    """Causal attention with at most `block` scores of a query at a time; and m + log(denominator) of each row."""
    top, total = torch.full((len(q), 1), -torch.inf, dtype=q.dtype), torch.zeros(len(q), 1, dtype=q.dtype)
    numerator = torch.zeros(len(q), v.shape[1], dtype=q.dtype)
    position = torch.arange(len(q))[:, None]
    for keys in torch.arange(len(k)).split(block):
        scores = (q @ k[keys].T / q.shape[-1] ** 0.5).masked_fill(keys > position, -torch.inf)
        top, total, numerator = update(top, total, numerator, scores, v[keys])
    return numerator / total, top + total.log()

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
with your("block_update"):
    figures.compare_block_sizes(streamed_attention, block_update)

# %% [markdown]
# **FlashAttention** (Dao et al., 2022) does this inside one GPU kernel, with blocks small enough for the chip's own
# fast memory. The score matrix never reaches the slow memory.
#
# #### And backwards?
#
# Autograd would need the weights again, all $s \times s$ of them. FlashAttention keeps one number per row instead,
# `log_sum` $= m + \log(\text{denominator})$, and *recomputes* the scores block by block. That is more arithmetic and
# still faster, because the layer was waiting for memory and not for arithmetic.
#
# There is one difficulty. You know the softmax's backward pass from notebook 03: if $P$ are the weights of a row and
# $dP$ the gradient that arrives at them, it needs $\sum_j P_{ij}\, dP_{ij}$, a sum over the *whole* row. A block of
# keys sees a part of the row. Where can you get that number without the row? Two lines on paper are enough: write down
# what $dP_{ij}$ is made of, and swap the two sums.

# %% [markdown]
# ### Exercise 14 · Backwards, block by block  (4 points · 18 min · ●●●)
#
# One causal head, with scores divided by $\sqrt d$. `out` is its result, `log_sum` as above, and `d_out` the gradient
# that arrives at `out`. Return the gradients at `q`, `k` and `v`, in the dtype of `q`, with at most `block` keys at a
# time: no tensor and no product may have more keys. Autograd and fused attention are off limits.

# %% exercise="flash_backward"
def flash_backward(
    q: Float[Tensor, "s d"],
    k: Float[Tensor, "s d"],
    v: Float[Tensor, "s dv"],
    out: Float[Tensor, "s dv"],
    log_sum: Float[Tensor, "s 1"],
    d_out: Float[Tensor, "s dv"],
    block: int,
) -> tuple[Float[Tensor, "s d"], Float[Tensor, "s d"], Float[Tensor, "s dv"]]:
    """The gradients at queries, keys and values of causal attention, from blocks of keys."""
    ### BEGIN SOLUTION
    scale, position = q.shape[1] ** -0.5, torch.arange(len(q))[:, None]
    shared = (d_out * out).sum(dim=1, keepdim=True)
    dq, dk, dv = torch.zeros_like(q), torch.empty_like(k), torch.empty_like(v)
    for keys in torch.arange(len(k)).split(block):
        scores = (scale * q @ k[keys].T).masked_fill(keys > position, -torch.inf)
        weights = (scores - log_sum).exp()
        d_scores = weights * (d_out @ v[keys].T - shared) * scale
        dq += d_scores @ k[keys]
        dk[keys] = d_scores.T @ q
        dv[keys] = weights.T @ d_out
    return dq, dk, dv
    ### END SOLUTION


# %% check="flash_backward"

# %% [markdown]
# With $O = PV$ the gradient at the weights is $dP_{ij} = dO_i \cdot v_j$. So $\sum_j P_{ij}\, dP_{ij} = dO_i \cdot
# \sum_j P_{ij} v_j = dO_i \cdot O_i$: the sum over the row was already in the result. If you summed it in a pass of its
# own, `out` saves you that pass. Your update and your backward pass together, 300 tokens of 64 features, against
# autograd:

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
with your("block_update", "flash_backward"):
    figures.compare_gradients(streamed_attention, block_update, flash_backward)

# %%
explore(figures.score_matrix_bytes, length=Log(256, 131072), heads=[8, 32, 128])

# %% [markdown]
# **In real models.** `F.scaled_dot_product_attention` calls such a kernel where it can, and because of it models can be
# trained on texts of a hundred thousand tokens. It computes the same function, up to rounding. Sliding windows, shared
# keys and latents change the model; this changes only the order of the work.

# %% [markdown]
# ### G · Loose ends  (6 min)
#
# **What it takes.** Four $d \times d$ matrices: $4d^2$ weights a layer, $3d^2$ to make queries, keys and values and
# $d^2$ to bring the results back. The three can be *fused* into one $d \times 3d$ matrix: one large product instead of
# three small ones, and the result is cut into three. The numbers are the same:

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
torch.manual_seed(0)
x = torch.randn(6, 16, dtype=torch.float64)
w_q, w_k, w_v = torch.randn(3, 16, 16, dtype=torch.float64)
fused = x @ torch.cat([w_q, w_k, w_v]).T
for name, part, w in zip("qkv", fused.chunk(3, dim=-1), (w_q, w_k, w_v), strict=True):
    print(f"{name}: largest difference {(part - x @ w.T).abs().max().item():.0e}")

# %% [markdown]
# **Where it goes.** In a block the layer reads *normalised* features and adds its result to what was there: $h
# \leftarrow h + \text{MultiHead}(\text{LN}(h))$ (notebook 10). There is another way to read the formula for many heads.
# Each head's part of $W_O$ gives a result of the full width, and the layer's output is their sum, $\sum_i o^i W_O^i$.
# So each head writes its own message into the residual stream. (This also shows how to split heads over several GPUs:
# notebook 18.)
#
# **In real models.** GPT-3 has 96 heads of 128, Llama 3 8B has 32 of 128. The width of a head has hardly moved since
# 2017, when it was 64; the number has. `lmcourse.nn.attention` is `multi_head` as one class for every model of
# the zoo: fused projection, `unflatten`, `transpose`, one call of attention, and back.
#
# **Dropout** sets random entries to zero in training (notebook 13), here among the weights of attention:

# %%
predict("dropped_weights")

# %% [markdown]
# Many models also drop entries of the layer's output.
#
# **All 16 heads.** In section 6 you saw in numbers where the heads of the small model look. Here they are, on three
# texts. Which of them do you recognise without the numbers?

# %%
explore(figures.heads, text=["a sentence", "a repetition", "code"])

# %% [markdown]
# The text is cut into pieces of words (notebook 07), so the previous token is often the beginning of the same word. In
# a larger model, heads were found that look from a verb to its object, or from a pronoun to its noun (Clark et al.,
# 2019).

# %% [markdown]
# ### H · Since 2024  (1 min)
#
# - **Learned sinks.** A head that has nothing to say puts its attention on the first token (section 6). gpt-oss gives
#   each head one more score in the softmax, a learned number, whose weight goes to no value (OpenAI, 2025). So the
#   weights of the tokens may sum to nearly nothing.
# - **Document masks.** In training, several short texts are packed into one sequence. With `owner` as the number of
#   each token's text, `owner[:, None] == owner` beside `causal_mask` keeps them apart (Grattafiori et al., 2024).
# - **Trained selection.** In DeepSeek-V3.2 a small, cheap scorer picks 2,048 earlier tokens for each query, and
#   attention reads only these (DeepSeek-AI, 2025). Unlike the patterns of block E, this one depends on the text.
# - **Linear layers between full ones.** Qwen3-Next and Kimi Linear have three layers with a state of fixed size
#   (notebook 06) for each layer of full attention (Qwen Team, 2025; Kimi Team, 2025).

# %% [markdown]
# ### What to keep of Further
#
# | question | answer |
# | --- | --- |
# | what is kept in decoding? | keys and values: 2 · layers · key heads · d_head · bytes, per token |
# | what does sharing keys save? | bytes that decoding reads, by $h/g$; no FLOPs of the scores |
# | what does MLA keep? | one latent per token for all heads; scores are $(W_{UK}^\top q) \cdot c$, and no key is made |
# | what limits what? | training without a score matrix in memory: arithmetic. Decoding: memory, at about $(n/d + 1/b)^{-1}$ operations per number |
# | how does FlashAttention go back? | recompute scores from `log_sum`; the row's sum of $P\,dP$ is $dO \cdot O$ |
# | how far does a window reach? | $L(W - 1) + 1$ tokens; one full layer in four reaches everything |
#
# ### Check yourself on Further
#
# 1. A model has 32 layers, 8 key heads of 128 and bf16. How many tokens of context fit into 16 GiB of cache? What if it
#    is served to 16 users at once? (B, C)
# 2. Decoding is limited by memory. You double the batch. By how much does the time of a step grow if the weights
#    dominate? If the cache dominates? (D)
# 3. Three layers of a window of 4 and one full layer below them. What is the receptive field of token 100? And with the
#    full layer on top? (E)
#
# <details><summary>Answers</summary>
#
# 1. $2 \cdot 32 \cdot 8 \cdot 128 \cdot 2 = 131{,}072$ bytes a token, so 131,072 tokens; 8,192 for each of 16 users.
# 2. Very little: the same weights serve twice as many texts. If the cache dominates it doubles, because every text has
#    its own.
# 3. 101 in both cases (tokens 0 to 100). On top, the full layer sees every token of the layer below. At the bottom,
#    token 100 itself has seen them all.
#
# </details>
#
# ### Further reading
#
# - Vaswani et al., 2017, *Attention is all you need*, §3.2.
# - Shazeer, 2019, *Fast transformer decoding: one write-head is all you need*; Ainslie et al., 2023, *GQA*; Pope et
#   al., 2022, *Efficiently scaling transformer inference*; DeepSeek-AI, 2024, *DeepSeek-V2*, §2.1.
# - Child et al., 2019, *Generating long sequences with sparse transformers*.
# - Dao et al., 2022, *FlashAttention*, appendix B.2 for the backward pass; Milakov & Gimelshein, 2018, *Online
#   normalizer calculation for softmax*.
# - Clark et al., 2019, *What does BERT look at?*; Olsson et al., 2022, *In-context learning and induction heads*; Xiao
#   et al., 2024, *Efficient streaming language models with attention sinks*.
# - In this package: `lmcourse.nn.attend`, `.attention_pattern` and `.attention`, about 300 lines for all of the above;
#   `lmcourse.accounting.kv_cache`.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you
# like.)

# %% tags=["hide-input"]
zoo = {name: find_model(name).decoder for name in ("llama-2-7b", "llama-3-8b", "llama-3.1-405b", "gpt-3", "mistral-7b")}
attention = {name: model.layers[0].attention for name, model in zoo.items()}
assert bytes_per_token(zoo["llama-2-7b"]) == 2 * 32 * 32 * 128 * 2 == 524_288 == 2**20 // 2
assert bytes_per_token(zoo["llama-3-8b"]) == 2 * 32 * 8 * 128 * 2 == 131_072
assert [(a.heads, a.key_heads) for a in (attention["llama-3-8b"], attention["llama-3.1-405b"])] == [(32, 8), (128, 8)]
assert (attention["gpt-3"].heads, zoo["gpt-3"].d_model // 96) == (96, 128) and zoo["llama-3-8b"].d_model // 32 == 128
assert [find_model(name).decoder.layers[0].attention.key_heads for name in ("palm-540b", "falcon-7b")] == [1, 1]
assert find_model("gemma-2-27b").decoder.layers[0].attention.scale == 144**-0.5
assert find_model("gemma-2-27b").decoder.layers[0].attention.d_head == 128
assert [2 * 4096 * heads * 128 / 1e6 for heads in (32, 8)] == [33.554432, 8.388608]
assert 2 * zoo["llama-2-7b"].d_model == 8192 and attention["llama-2-7b"].key_heads == 32
assert round(find_accelerator("h100-sxm").ridge("bf16")) == 295
assert (len(zoo["mistral-7b"].layers), attention["mistral-7b"].pattern.size) == (32, 4096) and 32 * 4095 + 1 == 131_041
cache_at_131072 = alt_text(figures.cache_against_context())
assert "GQA, 8 (Llama 3 8B): 16;" in cache_at_131072 and "3 of 4 layers: 4.375" in cache_at_131072
assert 32 * 8192**2 * 2 == 4 * 2**30 and 16 * 2**30 // 131_072 == 131_072 == 16 * 8192
gemma, scout = (find_model(name).decoder.layers for name in ("gemma-3-27b", "llama-4-scout-dense"))
assert [layer.attention.pattern.kind for layer in gemma[:6]] == ["window"] * 5 + ["full"] and gemma[5].attention.rotary
assert [layer.attention.pattern.kind for layer in scout[:4]] == ["chunk"] * 3 + ["full"] and not scout[3].attention.rotary
assert scout[0].attention.pattern.size == 8192
assert [61 * numbers * 2 for numbers in (2 * 128 * 128, 2 * 8 * 128, 576, 256)] == [3_997_696, 249_856, 70_272, 31_232]
assert 70_272 / 31_232 == 2.25
decoding = [layer_cost(32, 1, 2048, 32, g).seconds(find_accelerator("h100-sxm")) for g in (32, 8)]
assert 0.25 < decoding[1] / decoding[0] < 0.34
assert 32 * 2048 * 4096**2 / (2048 * 4096**2) == 32
assert round(1 / (2048 / 4096 + 1 / 32), 2) == 1.88
assert [round(math.exp(-1) + 1, 3), round(10 * math.exp(-1) + 20, 2)] == [1.368, 23.68]
assert [round(x, 3) for x in (math.exp(-3) + math.exp(-2) + 1, 1.368 * math.exp(-2) + 1)] == [1.185, 1.185]
assert round(10 * math.exp(-3) + 20 * math.exp(-2) + 40, 2) == 43.20 and round(43.2046 / 1.18512, 2) == 36.46
assert round(layer_cost(256, 1, 2048, 32, 32).intensity) == 5
shared = [fmean(ends) for *_, ends in SHARED_KEYS]
assert round(shared[3] - shared[0], 2) == 0.02 and abs(shared[4] - shared[0]) < 0.005
