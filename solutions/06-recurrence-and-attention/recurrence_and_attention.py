# %% [markdown]
# # 06 · Recurrence and attention
#
# **Core · 90 min · 6 exercises · 19 points** · **Further · 79 min · 5 exercises · 14 points**
#
# A text is long and a memory is small. **Do you keep a state, or do you keep everything and look?**
#
# At the end you have trained translators with your attention, and invented a task for which one state would not do.
#
# **You need** the chain rule (notebook 03) and softmax (01). No GPU. Stuck? `hint("name_of_the_exercise")` gives a
# nudge.

# %%
import itertools
import math
import timeit
from functools import partial
from inspect import getsource
from statistics import fmean

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.chapters.recurrence_and_attention import figures
from lmcourse.chapters.recurrence_and_attention.invented import REVERSE, agreement, lesson, try_task
from lmcourse.chapters.recurrence_and_attention.remembering import STORED, lstm_gradients, random_network, remember
from lmcourse.chapters.recurrence_and_attention.translator import Translator, batched, by_length, reversals, rows, train
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.widgets import Log

start("06-recurrence-and-attention")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · One state for everything
#
# *The keys that the man in the red coat lost on the way to the station* **were** *found.* The verb belongs to the keys,
# fifteen words back. A table of n-grams that looks fifteen words back does not fit on this planet. A **recurrent
# network** (Elman, 1990) keeps a *state* $h$, and changes it with every word. Here both are single numbers:

# %%
h = 0.0
for e in (1.0, -0.5, 1.0):
    h = math.tanh(0.5 * h + e)
    print(f"read {e:4}: the state is {h:6.3f}")

# %% [markdown]
# The first word and the third are the same, the states after them are not: 0.762 and 0.736. The difference is all that
# this network knows of its past. In a real one the state is a vector of $d$ numbers, and each word $t$ a *column* $e_t$
# of $e$ numbers in the table $E$. From the state, $U$ and $b_2$ make a score for each of $v$ words:
#
# $$h_t=\tanh(W_hh_{t-1}+W_ee_t+b_1),\qquad\hat y_t=\text{softmax}(Uh_t+b_2)$$

# %% [markdown]
# ### Exercise 1 · A network that reads  (3 points · 8 min · ●●)
#
# Return the probabilities $\hat y_t$ after each token, a row for each, in the dtype of `E`. There is at least one
# token. The first state is `h0`. PyTorch's own recurrent layers are off limits; `softmax` is fine.


# %% exercise="rnn_probabilities"
def rnn_probabilities(
    tokens: Int[Tensor, "s"],
    E: Float[Tensor, "e v"],
    W_h: Float[Tensor, "d d"],
    W_e: Float[Tensor, "d e"],
    b1: Float[Tensor, "d"],
    U: Float[Tensor, "v d"],
    b2: Float[Tensor, "v"],
    h0: Float[Tensor, "d"],
) -> Float[Tensor, "s v"]:
    """Row t: the probability of every word after the tokens up to t."""
    ### BEGIN SOLUTION
    h, rows = h0, []
    for token in tokens:
        h = torch.tanh(W_h @ h + W_e @ E[:, token] + b1)
        rows.append((U @ h + b2).softmax(dim=0))
    return torch.stack(rows)
    ### END SOLUTION


# %% check="rnn_probabilities"

# %% [markdown]
# Can a single number carry the *keys* to the end? Let a word's number be 1 for *keys*, −1 for *key*, *man*, *coat*,
# *way* and *station*, and 0 for all others. A positive state speaks for *were*, a negative one for *was*.

# %%
predict("which_memory")

# %%
text = "the keys that the man in the red coat lost on the way to the station"
words = ["was", "were", "key", *sorted(set(text.split()))]
nouns = {"keys": 1.0, "key": -1.0, "man": -1.0, "coat": -1.0, "way": -1.0, "station": -1.0}
E = torch.tensor([[nouns.get(word, 0.0) for word in words]])
b2 = torch.tensor([0.0 if word in ("was", "were") else -20.0 for word in words])  # only these two can follow
U = torch.tensor([[{"was": -2.0, "were": 2.0}.get(word, 0.0)] for word in words])
one, none, were = torch.ones(1, 1), torch.zeros(1), {}
with your("rnn_probabilities"):
    for first, w in itertools.product(("keys", "key"), (0.5, 1.0, 2.0)):
        read = torch.tensor([words.index(word) for word in text.replace("keys", first).split()])
        were[first, w] = rnn_probabilities(read, E, w * one, 0.3 * one, none, U, b2, none)[-1, 1].item()
        print(f"the {first:4} ...  with w = {w:g}: were {were[first, w]:.2f}")

# %% [markdown]
# With 2 both are right. After *keys* the state settles near 0.96, where $\tanh(2h) = h$. A later noun takes it to
# $\tanh(2 \cdot 0.96 - 0.3) = 0.92$, and the words between the nouns back up. We chose the numbers by hand. Does
# training find them?

# %% [markdown]
# ## 2 · How far does it remember?
#
# A gradient that goes back from $h_T$ to $h_{T-k}$ meets $k$ matrices, $J_T\, J_{T-1} \cdots J_{T-k+1}$, with
#
# $$J_t=\frac{\partial h_t}{\partial h_{t-1}}=\text{diag}(1-h_t^2)\,W_h$$
#
# The textbooks' rule looks at the *spectral radius* of $W_h$, the size of its largest eigenvalue: below 1 the gradient
# vanishes, above 1 it explodes, at 1 it survives.

# %%
predict("radius_one")

# %% [markdown]
# ### Exercise 2 · How far does it remember?  (3 points · 10 min · ●●●)
#
# Measure it. `step(s, x)` is any recurrent cell: it returns the next state. From $s_0$ = `state`, the cell reads the $T
# \ge 1$ rows of `inputs`, and a gradient `v` arrives at the last state. Return its *span*: the smallest lag $k \ge 1$
# at which $\lVert \partial (v \cdot s_T) / \partial s_{T-k} \rVert$ is below `share` times $\lVert v \rVert$, or None
# if there is none up to $T$. The cell $0.9 s + x$ loses half of a gradient at lag 7, because $0.9^7 = 0.48$. Call
# `step` $T$ times. Autograd is allowed.


# %% exercise="memory_span"
def memory_span(
    step, state: Float[Tensor, "d"], inputs: Float[Tensor, "t e"], v: Float[Tensor, "d"], share: float = 0.5
) -> int | None:
    """The first lag at which less than this share of the gradient v is left."""
    ### BEGIN SOLUTION
    states = [state.detach().requires_grad_()]
    for x in inputs:
        states.append(step(states[-1], x))
    gradients = torch.autograd.grad(states[-1] @ v, states)
    for lag in range(1, len(states)):
        if gradients[-1 - lag].norm() < share * v.norm():
            return lag
    return None
    ### END SOLUTION


# %% check="memory_span"

# %% [markdown]
# When have networks with a state of 64 less than a hundredth left? Random inputs, three seeds; None is never in 200
# steps.


# %%
def span_of(radius: float, squash, size: float, seed: int) -> int | None:
    W, x, v, first = random_network(radius, seed)  # inputs x, a gradient v, a first state
    return memory_span(lambda h, row: squash(W @ h + row), first, size * x, v, share=0.01)


kinds, plain_spans = {"linear": (lambda h: h, 1), "tanh": (torch.tanh, 1), "tanh, inputs 0": (torch.tanh, 0)}, {}
with your("memory_span"):
    for r in (0.5, 0.9, 1.0, 1.1, 1.5):
        plain_spans[r] = {kind: [span_of(r, *kinds[kind], seed) for seed in range(3)] for kind in kinds}
        print(f"radius {r}  ", "   ".join(f"{kind} {found}" for kind, found in plain_spans[r].items()))

# %% [markdown]
# The rule is right about *linear* networks. With a tanh and ordinary inputs **all of them fade**, at a radius of 1
# after some ten words. Inputs push the states to where tanh is flat, and each step multiplies by $1-h^2$. Even a
# radius of 1.5 lasts for some twenty steps only: what $W_h$ multiplies, the flat tanh takes away. With inputs of 0 the rule is back, as long as the states
# stay small.
#
# An exploding gradient can be scaled down (Pascanu et al., 2013; notebook 16). A vanished one cannot be
# scaled up: the gradients of nearby words, which are added to it, are far larger.
#
# **A gate that stays open.** If multiplying is the trouble, add. The **LSTM** (Hochreiter & Schmidhuber, 1997) keeps a
# second vector, the *cell* $c$, and does not squeeze it through a matrix:
#
# $$\begin{aligned}(i,f,g,o)&=Wx_t+Uh_{t-1}+b\\c_t&=\sigma(f)\odot c_{t-1}+\sigma(i)\odot\tanh(g)\\h_t&=\sigma(o)\odot\tanh(c_t)\end{aligned}$$
#
# Of three *gates* between 0 and 1, $f$ says how much of the cell to keep, $i$ how much to write, $o$ how much to show.
# From step to step the cell is only multiplied by $\sigma(f)$. A cell of 0.8, $\sigma(f) = 0.9$, $\sigma(i) = 0.5$ and
# $\tanh(g) = -0.4$ make $0.9 \cdot 0.8 - 0.5 \cdot 0.4 = 0.52$.

# %%
predict("fresh_lstm")

# %% [markdown]
# One number opens the gate, its bias. The line is the span by the gate alone: the first lag with
# $\sigma(\text{bias})^\text{lag} < \tfrac12$.


# %%
def lstm_span(bias: float, seed: int) -> int | None:
    """The span of an untrained LSTM whose forget gates have this bias; h and c are one vector."""
    torch.manual_seed(seed)
    W, U, *biases = (weight.detach() for weight in nn.LSTM(8, 32, dtype=torch.float64).parameters())
    b = sum(biases)
    b[32:64] = bias

    def lstm_step(s: Float[Tensor, "2d"], x: Float[Tensor, "e"]) -> Float[Tensor, "2d"]:
        h, c = s.chunk(2)
        i, f, g, o = (W @ x + U @ h + b).chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return torch.cat([o.sigmoid() * c.tanh(), c])

    at_the_cell = torch.cat([torch.zeros(32), torch.randn(32)]).double()
    return memory_span(lstm_step, torch.zeros(64).double(), torch.randn(200, 8, dtype=torch.float64), at_the_cell)


with your("memory_span"):
    spans = {bias: [lstm_span(bias, seed) for seed in range(3)] for bias in range(5)}
figures.spans(spans)

# %% [markdown]
# "LSTMs solve vanishing gradients." A fresh one does not: it has a *way* that can be opened. Up to a bias of 1 the
# spans are those of the gate alone. At 2 they are longer, and at 3 two to eight times as long, because the gates and
# $h$ are other ways back. There, one network remembers 29 steps and another 120.
#
# And training? A text begins with one of two words, and random words follow. A network with a state
# of 32 has to say which it was.

# %%
predict("trained_to_remember")

# %% [markdown]
# Train it, or put another name of the printed table into the first line.

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
name, between, seed = "LSTM as PyTorch makes it", 20, 0
print(f"{name}, {between} words, seed {seed}: right in {remember(name, between, seed):.2f} of the texts\n{STORED}")

# %% [markdown]
# Training can open the gates, but only where some gradient arrives. Over 20 words the fresh LSTM learns nothing, tanh
# with one of three seeds, and a forget bias of 1 with all three. A bias of 3 is enough for 40 words, and with two seeds
# for 80.

# %% [markdown]
# ## 3 · Two networks and a bottleneck
#
# To translate, an **encoder** reads the source; its last state is handed to the **decoder**, a language model of the
# target that starts from there (Sutskever et al., 2014). All that the decoder knows of the source has to fit through
# that one state.
#
# What does the decoder read? In use, what it has just said. In training, what it *should* have said: **teacher
# forcing**. So, to say $y_1, y_2, y_3$, it reads a start symbol, $y_1$ and $y_2$.

# %% [markdown]
# ### Exercise 3 · What the decoder reads  (1 point · 3 min · ●)
#
# `target` holds what the decoder should say, a row for each text of at least one word. Return what it reads while it
# does, in the same shape and dtype. Leave `target` as it is.


# %% exercise="teacher_inputs"
def teacher_inputs(target: Int[Tensor, "b s"], start: int) -> Int[Tensor, "b s"]:
    """The tokens that the decoder reads while it has to write `target`."""
    ### BEGIN SOLUTION
    first = torch.full_like(target[:, :1], start)
    return torch.cat([first, target[:, :-1]], dim=1)
    ### END SOLUTION


# %% check="teacher_inputs"

# %% [markdown]
# Our translators read a row of 2 to 12 symbols out of ten, and write it in reverse. `read` is your `teacher_inputs`;
# `attend` comes in section 4.

# %%
print(getsource(Translator.forward), getsource(train), sep="\n")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
with your("teacher_inputs"):
    plain = [train(seed, reversals(seed), teacher_inputs) for seed in range(3)]
shares = {"one state": by_length(plain)}
print("rows without an error:", {length: shares["one state"][length] for length in (3, 6, 9, 12)})

# %% [markdown]
# Of rows of twelve, fewer than one in five comes out right. And yet $10^{12}$ rows need 40 bits, and the state of these
# LSTMs has 128 floats, 64 each in $h$ and $c$. There is room: 400 steps of training have not found a way to use it.

# %% [markdown]
# ## 4 · Look it up
#
# You would not learn the row by heart. You would look at it again. A Python dict returns the *value* of the one *key*
# that is equal to the query. For vectors nothing is ever quite equal, and "the best match" has no slope to learn from.
# So blend: score every key by its dot product with the query, softmax the scores, average the values. By hand, with
# scores of 2, 0 and −2, divided by a *temperature* $T$, and values of 10, 20 and 30:

# %%
scores, values = torch.tensor([2.0, 0.0, -2.0]), torch.tensor([10.0, 20.0, 30.0])
for temperature in (0.1, 1, 1e6):
    print(f"T = {temperature:9}: {(scores / temperature).softmax(dim=0) @ values:.2f}")

# %% [markdown]
# Cold, the blend is a table: 10. Hot, it is the plain average: 20. At $T = 1$ it is 11.49, mostly the first, and every
# score has a gradient. This is all that attention is. The rest is who asks, and what is in the table.
#
# Here the decoder's state $s_t$ asks, and the encoder's states $h_1 \dots h_n$ are keys *and* values. What was found,
# $a_t$, goes with $s_t$ to the layer that chooses the word (Bahdanau et al., 2015; with the dot product Luong et al.,
# 2015):
#
# $$\alpha^t=\text{softmax}(s_t^\top h_1,\dots,s_t^\top h_n),\qquad a_t=\sum_i\alpha^t_ih_i,\qquad[a_t;s_t]\in\mathbb R^{2d}$$

# %% [markdown]
# ### Exercise 4 · Attention to the source  (4 points · 8 min · ●●)
#
# `s` holds $t$ states of the decoder, `h` those of $n$ source words. Shorter texts of a batch are filled up with
# *padding*, which must get no weight at all: `real` is False there. At least one word is real. Return $[a; s]$, a row
# for each step, in the dtype of `s`. Fused attention functions are off limits. (`.tolist()` and `h[real]` are right, but
# cannot run on a batch: then ours trains the translator.)


# %% exercise="attend_source"
def attend_source(s: Float[Tensor, "t d"], h: Float[Tensor, "n d"], real: Bool[Tensor, "n"]) -> Float[Tensor, "t 2d"]:
    """For each decoder step what it finds in the source, and its own state beside it."""
    ### BEGIN SOLUTION
    scores = (s @ h.T).masked_fill(~real, -torch.inf)
    found = scores.softmax(dim=1) @ h
    return torch.cat([found, s], dim=1)
    ### END SOLUTION


# %% check="attend_source"

# %% [markdown]
# The same data, the same 400 steps, with your attention:

# %%
predict("where_it_looks")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
with your("teacher_inputs", "attend_source"):
    attend = batched(attend_source)
    looking = [train(seed, reversals(seed), teacher_inputs, attend) for seed in range(3)]
shares["attention"] = by_length(looking)
figures.right_rows(shares, trained=(2, 12))

# %% [markdown]
# Most rows of twelve are right now. Beyond the lengths of training (unshaded) both get worse. What does it look at?

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
row, source = torch.tensor([[3, 8, 1, 10, 5, 7, 2, 9, 4, 6]]), rows(512, 12)
mirrored = [agreement(model, source, source.flip(1), torch.arange(11, -1, -1)) for model in looking]
print("largest weight on the mirror place:", "  ".join(f"{share:.0%}" for share in mirrored), "of the steps")
figures.alignment(looking[0].looks(row, row.flip(1))[0], row[0].tolist(), row[0].flip(0).tolist())

# %% [markdown]
# Nobody told it. There was no alignment in the data and no loss on the weights, and yet step $t$ looks at word $n+1-t$.

# %% [markdown]
# ## 5 · When the teacher leaves
#
# In use the decoder reads its own words, and was never shown what a mistake looks like: **exposure bias** (Ranzato et
# al., 2016).
#
# > **Spot the slip.** "Teacher forcing is used to avoid the accumulation of errors." Whose errors, and when?
#
# In training, where the words are true, none can accumulate. In use there is no teacher, and they are back. What the
# teacher does buy is time: no step has to wait for the word of the step before.

# %%
predict("perfect_rows")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
source = rows(512, 9, seed=5)
gold = source.flip(1)
runs = [(model.write(source, gold), model.write(source)) for model in plain]
for run in runs:
    right, flawless = [(said == gold).double().mean() for said in run], [(said == gold).all(1).sum() for said in run]
    print("symbols right: {:.1%} forced, {:.1%} free; perfect rows of 512: {} and {}".format(*right, *flawless))

# %% [markdown]
# Free running costs five to ten symbols in a hundred, and **not one perfect row**. The two counts are equal for every
# seed, and this is no measurement but a proof. Try to find it before you read on.
#
# <details><summary>The proof</summary>
#
# Both runs start with the same symbol and the same state. As long as all they have said is right, the free run has read
# exactly the true words. So up to the *first* error they are one and the same run, and make that error together.
#
# </details>

# %% [markdown]
# ### Exercise 5 · After the first error  (3 points · 6 min · ●●)
#
# Three rows of equal length, of at least one word: what the forced run and the free run said, and what is right.
# Return the list `[forced, free]` (not an array): the share of words that each got right on the places *after* the
# first error, which both make together. Return None if there is no error, or nothing after it.


# %% exercise="after_the_first_error"
def after_the_first_error(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    """The share of words that the forced run and the free one got right after the first error."""
    ### BEGIN SOLUTION
    errors = [place for place in range(len(gold) - 1) if free[place] != gold[place]]
    if not errors:
        return None
    rest = range(errors[0] + 1, len(gold))
    return [sum(said[place] == gold[place] for place in rest) / len(rest) for said in (forced, free)]
    ### END SOLUTION


# %% check="after_the_first_error"


# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
def after_errors(*runs: Int[Tensor, "b n"]) -> list[float]:  # the mean over rows with an error; empty if there is none
    found = [after_the_first_error(*row) for row in zip(*(run.tolist() for run in runs), strict=True)]
    return [round(fmean(side), 2) for side in zip(*(each for each in found if each is not None), strict=True)]


with your("after_the_first_error"):
    afterwards = [after_errors(*run, gold) for run in runs]
print("right after the first error, forced and free:", afterwards)
figures.forced_and_free(runs[0][0] == gold, runs[0][1] == gold)

# %% [markdown]
# With the teacher, an error changes little. Without, nearly half of the following words are wrong.

# %% [markdown]
# ## 6 · What is attention for?
#
# **Invent a task that attention learns, that one state cannot do, and in which attention has to read what it looks
# at.** The rows now have 2 to 10 *different* symbols out of 1 to 10. Three translators with attention and three with one
# state get 400 steps. The best of each kind is judged on 512 new rows of nine:
#
# - *perfect*: the share of rows without an error, with attention;
# - *agreement*: how often the largest weight is on the place that you predicted;
# - *by content*: agreement, less that of the best *fixed* picture, the same for every row;
# - *one state*: the share of rows without an error, without attention.
#
# The baseline is to reverse, which is easier for rows of different symbols. A mirror is a fixed picture: one could look
# without reading.

# %%
print("reverse:", REVERSE)
predict("can_one_state_sort")

# %% [markdown]
# ### Exercise 6 · What is attention for?  (5 points · 14 min · ●●●)
#
# Return the target, of symbols from 1 to 10, and for each of its steps the place in the source (from 0) that attention
# will look at, both in the shape of `source`. A row decides alone: draw nothing, count no calls. The check trains six translators, which takes half a
# minute or more, and the cell below it shows your task at work. **Finish line: perfect at least 0.8, agreement 0.9, by
# content 0.3, one state at most 0.7.** Grading uses three other seeds: for our own tasks *one state* differed by up to 0.15,
# the rest by up to 0.1.


# %% exercise="my_task"
def my_task(source: Int[Tensor, "b n"]) -> tuple[Int[Tensor, "b n"], Int[Tensor, "b n"]]:
    """The target of each row, and the place that each step looks at."""
    ### BEGIN SOLUTION
    n = source.shape[1]
    places = (source.argmax(dim=1, keepdim=True) + torch.arange(n)) % n  # begin at the largest, go round
    return source.gather(1, places), places
    ### END SOLUTION


# %% check="my_task"

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
with your("my_task", "attend_source", "teacher_inputs"):
    given = lesson(my_task)
    (attending,), (one_state,) = try_task(given, [0], batched(attend_source), teacher_inputs)
source, target = given.source[:3], given.target[:3]
print("three rows:", *zip(source.tolist(), target.tolist(), strict=True), sep="\n")
with your("after_the_first_error"):
    runs_of_one = [one_state.write(given.source, teacher) for teacher in (given.target, None)]
    print("one state, after the first error, forced and free:", after_errors(*runs_of_one, given.target))
figures.alignment(attending.looks(source, target)[0], source[0].tolist(), target[0].tolist())

# %% [markdown]
# ## What to keep
#
# | | recurrent network | LSTM | attention |
# | --- | --- | --- | --- |
# | keeps of $n$ words | $d$ numbers | $2d$ numbers | $n \cdot d$ numbers |
# | a gradient fades to 1% in | some ten steps, at a radius of 1 | some ten steps, until the gate opens | – (every word is one step away) |
# | finds a word | in its state | if a gate kept it | by a product |
# | reads next | the state | the state | every word |
#
# ## Check yourself
#
# 1. A network with $W_h = 0$: what does it still know of the word before?
# 2. A forget gate of 0.99: after how many steps is half of the cell left? And with 0.9?
# 3. Why is the largest weight not always on the right word, although the model says the right one?
#
# <details><summary>Answers</summary>
#
# 1. Nothing. Each state depends on its own word alone.
# 2. $\ln 2 / -\ln 0.99 = 69$ steps; with 0.9 fewer than seven.
# 3. The encoder's states know their neighbours, so a word can be read from the state next to it.
#
# </details>

# %% [markdown]
# The folded cell checks these numbers.

# %% tags=["hide-input"]
assert max(were["keys", 0.5], were["keys", 1.0], were["key", 2.0]) < 0.3 and were["keys", 2.0] > 0.95
assert [round(math.tanh(2 * 0.96 - noun), 2) for noun in (0, 0.3)] == [0.96, 0.92] and text.split().index("keys") == len(text.split()) - 15
assert [round(math.tanh(1), 3), round(math.tanh(0.5 * math.tanh(0.5 * math.tanh(1) - 0.5) + 1), 3)] == [0.762, 0.736]
assert round(0.9**7, 2) == 0.48 and 0.9**6 > 0.5
assert plain_spans[1.0]["tanh"] == [9, 9, 10] and plain_spans[1.5]["tanh"] == [23, 17, 26]
assert all(plain_spans[r]["linear"] == [None] * 3 for r in (1.0, 1.1, 1.5)) and max(plain_spans[0.9]["linear"]) <= 40
assert all(found["linear"] == found["tanh, inputs 0"] for r, found in plain_spans.items() if r < 1.5)
alone = {bias: math.floor(math.log(0.5) / -math.log1p(math.exp(-bias))) + 1 for bias in spans}
assert all(spans[bias] == [alone[bias]] * 3 for bias in (0, 1)) and min(spans[2]) > alone[2]
assert [min(spans[3]), max(spans[3])] == [29, 120] and 1.9 * alone[3] < 29 and 8 * alone[3] == 120
assert round(0.9 * 0.8 - 0.5 * 0.4, 2) == 0.52 and 39 < math.log2(10**12) < 40
assert min(shares["one state"][3]) > 0.9 and max(shares["one state"][12]) < 0.2
assert min(shares["attention"][12]) > 0.5 and min(mirrored) > 0.85
assert max(shares["attention"][20] + shares["one state"][20]) < 0.15
for forced, free in runs:
    same = (forced == gold).all(dim=1) == (free == gold).all(dim=1)
    assert same.all() and 0.045 < ((forced == gold).double().mean() - (free == gold).double().mean()).item() < 0.105
assert all(forced_share > 0.85 and 0.45 < free_share < 0.6 for forced_share, free_share in afterwards)
assert all(lstm_gradients(0.0, seed)[6] > 0.01 > lstm_gradients(0.0, seed)[11] for seed in range(3))
assert round(math.log(2) / -math.log(0.99)) == 69 and math.log(2) / -math.log(0.9) < 7

# %% [markdown]
# ## Further
#
# Read the blocks in any order: each needs the core, and no other block.
#
# <details><summary>Section 6: what others found (spoils it)</summary>
#
# | task, best of three seeds | perfect | agreement | by content | one state |
# | --- | --- | --- | --- | --- |
# | begin at the largest, go round | 0.99 | 1.00 | 0.86 | 0.24 |
# | begin at symbol 1, go round | 0.99 | 1.00 | 0.77 | 0.44 |
# | by size of the symbol before | 0.86 | 0.98 | 0.74 | 0.54 |
# | from the largest to the end, then back | 0.87 | 0.97 | 0.47 | 0.35 |
# | sort | 1.00 | 1.00 | 0.87 | 1.00 |
# | small ones (1 to 5) first, in their order | 0.98 | 1.00 | 0.68 | 0.98 |
# | copy | 1.00 | 1.00 | 0.00 | 0.59 |
#
# A single state sorts, because a *set* of symbols is ten bits; only the *order* is long. To copy, the order must be
# kept, and nothing is read. To begin at the largest symbol and go round takes both.
#
# </details>

# %% [markdown]
# ### A · How many numbers it learns  (7 min)

# %% [markdown]
# ### Exercise 7 · How many numbers it learns  (2 points · 4 min · ●)
#
# A model knows $v$ words, has $e$ numbers for each, and a state of $d$. How many numbers are learned, if everything
# that can be learned is? Compare the formula with the arguments of your first function.


# %% exercise="rnn_parameters"
def rnn_parameters(v: int, e: int, d: int) -> int:
    """How many numbers a network of v words, e per word and d per state learns."""
    ### BEGIN SOLUTION
    embedding_and_first_state = e * v + d
    step = d * d + d * e + d
    head = v * d + v
    return embedding_and_first_state + step + head
    ### END SOLUTION


# %% check="rnn_parameters"

# %%
with your("rnn_parameters"):
    learned = rnn_parameters(10_000, 128, 512)
print(f"10,000 words, e = 128, d = 512: {learned:,} numbers")
figures.size_against_context(learned)

# %% [markdown]
# $E$ and the first state $h_0$ are easily forgotten: 1,280,512 of 6,738,704 numbers, nearly a fifth of the model.
# (PyTorch's `nn.RNN` does not learn $h_0$, but has two biases where one would do. Count, and you find the same total,
# for another reason.)
#
# Three gains over a table of n-grams: texts of any length; in principle a memory without end; and a size that does not
# grow with how far one looks. *In principle*: section 2 measured it.
#
# **In real models.** On a billion words of news a 5-gram model has a perplexity of 67.6, and a large LSTM one of 30.0
# (Józefowicz et al., 2016).

# %% [markdown]
# ### B · Backwards through time  (31 min)
#
# To train the network we need the gradient of $W_h$. The same matrix acts in every step: this is the fan-out of
# notebook 03, where what is used twice gets *two* gradients, and they add up.

# %%
figures.unrolled()

# %% [markdown]
# By hand, with one number for the state and no words at all: $h_t = \tanh(w\,h_{t-1})$, $w = \tfrac12$, $h_0 = 1$, two
# steps. Then $h_1 = 0.462$ and $h_2 = 0.227$. How does $h_2$ change with $w$? It was used twice. Had only the *second*
# step used a slightly larger $w$, the slope would be 0.438; had only the *first*, it would be 0.373, because that one
# has to travel through the second step. Together 0.811, and nudging $w$ says the same:


# %%
def two_steps(first: float, second: float) -> float:
    """h₂ where each step has a weight of its own."""
    return math.tanh(second * math.tanh(first * 1.0))


for name, first, second in (("second", 0, 1), ("first", 1, 0), ("both", 1, 1)):
    nudged = two_steps(0.5 + 1e-6 * first, 0.5 + 1e-6 * second)
    print(f"a larger w in {name:6}: slope {(nudged - two_steps(0.5, 0.5)) / 1e-6:.3f}")

# %% [markdown]
# In general
#
# $$\frac{dh_T}{dw} = \sum_{t=1}^{T} \frac{\partial h_T}{\partial h_t} \cdot \frac{\partial h_t}{\partial w}\Big|_{h_{t-1}\text{ held fixed}}$$

# %% [markdown]
# ### Exercise 8 · Through time  (3 points · 12 min · ●●●)
#
# `inputs` are the numbers $x_1 \dots x_T$, and $h_t = \tanh(w\,h_{t-1} + x_t)$. Return $dh_T/dw$ with an error below
# $10^{-13}$ (nudging to both sides gives about $10^{-10}$, to one side $10^{-6}$), and 0 if there are no inputs. It has
# to work however many inputs there are, and however large they are. Python's `math` is all you need; `torch` is off
# limits, because it would do the exercise for you.


# %% exercise="through_time"
def through_time(w: float, inputs: list[float], h0: float) -> float:
    """How the last of the states h ← tanh(w h + x) changes with w: dh_T/dw."""
    ### BEGIN SOLUTION
    h, slope = h0, 0.0
    for x in inputs:
        new = math.tanh(w * h + x)
        slope = (1 - new**2) * (h + w * slope)
        h = new
    return slope
    ### END SOLUTION


# %% check="through_time"

# %% [markdown]
# You can walk forwards, as a pair of state and slope, or backwards, as autograd does. Forwards needs no memory of old
# states, but one slope for *each* weight; with $d^2$ weights backwards wins, and keeps all states for it. If they do
# not fit in memory, you cut the sum after, say, twenty steps back (**truncated** backpropagation through time), and
# give up on learning what lies further back. (For $w = 0$ your slope is not zero: the last step leaves $(1 -
# h_T^2)\,h_{T-1}$.)
#
# How much do you give up?

# %% [markdown]
# ### Exercise 9 · What is left of a gradient  (3 points · 8 min · ●●)
#
# `hidden` holds the states $h_1 \dots h_T$ of a tanh network, a row each. A gradient `v` arrives at the last. Return
# its length at each lag: entry $k$ is $\lVert \partial (v \cdot h_T) / \partial h_{T-k} \rVert$ for $k = 0 \dots T -
# 1$, in the dtype of `v`. Work with the matrices $J_t$ of section 2; autograd is off limits.


# %% exercise="gradient_at_lag"
def gradient_at_lag(
    W_h: Float[Tensor, "d d"], hidden: Float[Tensor, "t d"], v: Float[Tensor, "d"]
) -> Float[Tensor, "t"]:
    """The length of ∂(v·h_T)/∂h_{T−k} for k = 0 ... T − 1."""
    ### BEGIN SOLUTION
    gradient, lengths = v, []
    for h in hidden.flip(0):
        lengths.append(gradient.norm())
        gradient = W_h.T @ ((1 - h**2) * gradient)
    return torch.stack(lengths)
    ### END SOLUTION


# %% check="gradient_at_lag"

# %%
def tanh_network(radius: float, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """A matrix, 60 states with random inputs, and a gradient of length 1."""
    W, inputs, v, h = random_network(radius, seed)
    states = []
    for x in inputs[:60]:
        h = torch.tanh(W @ h + x)
        states.append(h)
    return W, torch.stack(states), v / v.norm()


with your("gradient_at_lag"):
    left = {f"tanh, radius {r:g}": [gradient_at_lag(*tanh_network(r, seed)) for seed in range(3)] for r in (1.0, 1.5)}
    for r in (1.0, 1.5):  # where the slopes of tanh are 1, as at a state of 0, the network is linear
        networks = [tanh_network(r, seed) for seed in range(3)]
        left[f"linear, radius {r:g}"] = [gradient_at_lag(W, 0 * hidden, v) for W, hidden, v in networks]
for name, bias in {"LSTM, as PyTorch makes it": None, "LSTM, forget bias 1": 1.0}.items():
    left[name] = [lstm_gradients(bias, seed) for seed in range(3)]
for name in ("tanh, radius 1", "tanh, radius 1.5"):
    beyond = [f"{(lengths[21:].sum() / lengths.sum()).item():.0e}" for lengths in left[name]]
    print(f"{name}: beyond lag 20 lies {', '.join(beyond)} of all gradient lengths")
figures.compare_networks(left)

# %% [markdown]
# At a radius of 1 less than a billionth is left after fifty steps. At 1.5 it is less than a thousandth, where the
# linear network has exploded to more than ten million. A fresh LSTM fades like the others, $(\tfrac12)^{50} \approx
# 10^{-15}$, and a forget bias of 1 brings back many powers of ten.
#
# (Hochreiter, in 1991, said the rule first, and more carefully.) LSTM language models used about 200 words of context,
# and knew the order of the last 50 (Khandelwal et al., 2018). The forget gate came three years after the LSTM (Gers et
# al., 2000). Starting its bias at 1 was found to matter more than most variations of the architecture (Józefowicz et
# al., 2015). The **GRU** (Cho et al., 2014) makes do with two gates and without a separate cell. The way without a
# matrix lives on in every transformer, as the residual stream (notebook 10).
#
# So cutting at twenty steps costs these tanh networks at most 3% of their gradient: they could not have learned from
# further back anyway. And the words themselves have gone through $O(n)$ layers on their way: fading backwards and
# forgetting forwards are the same matrices, read from two sides.

# %% [markdown]
# ### C · Waiting  (17 min)
#
# State 1,000 needs state 999, which needs state 998. A thousand small steps, one after the other, however many
# processors there are. Attention compares all words with all others, which is more arithmetic, and none of it waits.
# What does the clock say?

# %%
predict("more_arithmetic")


# %% tags=["nbval-ignore-output", "because it shows the time"]
def read_in_turn(x: Tensor, W: Tensor) -> Tensor:
    """A recurrent layer: every state waits for the one before."""
    h, states = torch.zeros(x.shape[1]), []
    for row in x @ W.T:
        h = torch.tanh(W @ h + row)
        states.append(h)
    return torch.stack(states)


def look_at_all(x: Tensor, W: Tensor) -> Tensor:
    """Every word compared with all others at once (W is not used)."""
    return F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])[0, 0]


W = torch.randn(64, 64) / 8
for n in (256, 8192):
    x = torch.randn(n, 64)
    times = [1000 * min(timeit.repeat(partial(layer, x, W), number=1)) for layer in (read_in_turn, look_at_all)]
    sooner = "attention is done sooner" if times[1] < times[0] else "the recurrent layer is done sooner"
    print(
        f"{n:5} words: in turn {times[0]:.2f} ms, all at once {times[1]:.2f} ms, with {n // 64} times the FLOPs: {sooner}"
    )

# %% [markdown]
# Attention does $4 n^2 d$ FLOPs against $4 n d^2$ of the recurrent layer: a factor of $n/d$. Arithmetic is not time, if
# steps wait. With 8,192 words a factor of 128 can win on a single core. A GPU has thousands of cores to share the
# products among; there the waiting decides for much longer.
#
# Count both then: the *steps* that must come one after the other, and the *moves* that information makes from one
# position to another. Each layer of a **window** sees the $W$ newest words, itself included.

# %%
figures.dependency_grid()

# %% [markdown]
# ### Exercise 10 · Who waits for whom?  (3 points · 7 min · ●●)
#
# `kind` is "rnn", "attention" or "window"; a model of `layers` layers reads `n` words (both at least 1). Return two
# whole numbers:
#
# 1. In how many steps can all states be computed, if everything that can run at once does?
# 2. In how many moves, at the fewest, does something get from the first word to the last word's state in the top layer?
#    Going up to the next layer at the same position is no move. With one word there is no move.
#
# Attention to 100 words in 3 layers takes 3 steps and 1 move. The other kinds ignore `window`. Raise `ValueError` for
# an unknown kind, a window below 2, and for layers that do not reach from the first word to the last.


# %% exercise="waiting"
def waiting(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    """Steps one after the other, and moves from the first word to the last."""
    ### BEGIN SOLUTION
    if kind == "rnn":
        return n + layers - 1, n - 1
    if kind == "attention":
        return layers, int(n > 1)
    if kind != "window" or window < 2:
        raise ValueError(f"{kind!r} with a window of {window}")
    moves = math.ceil((n - 1) / (window - 1))
    if moves > layers:
        raise ValueError(f"{layers} layers do not reach {n - 1} places back")
    return layers, moves
    ### END SOLUTION


# %% check="waiting"

# %%
with your("waiting"):
    for kind, n, layers, window in (("rnn", 1000, 4, 0), ("attention", 1000, 4, 0), ("window", 1000, 32, 64)):
        steps, moves = waiting(kind, n, layers, window)
        print(f"{kind:9}  {n} words, {layers:2} layers: {steps:4} steps, {moves:3} moves")

# %% [markdown]
# | | steps, one after the other | moves from first to last | FLOPs per layer, about |
# | --- | --- | --- | --- |
# | RNN, $L$ layers | $n + L - 1$ | $n - 1$ | $4nd^2$ |
# | attention | $L$ | 1 (0 for one word) | $4n^2d$, and its projections |
# | window of $W$ | $L$ | $\lceil (n-1)/(W-1) \rceil$, each in a layer of its own | $4nWd$, and its projections |
#
# A window of 4,096 words and 32 layers: two words may be $32 \cdot 4095 = 131{,}040$ apart, so that one can hear of the
# other.
#
# **The tanh is what waits.** Drop it, and let a state be $h_t = a_t h_{t-1} + b_t$. Two such steps in a row are again
# such a step, so they can be joined in pairs, the pairs in fours, and all $n$ states are there after $\log_2 n$ rounds
# (Hillis & Steele, 1986):

# %%
a, b = torch.rand(100, dtype=torch.float64), torch.randn(100, dtype=torch.float64)
states, gains, rounds, reach = b, a, 0, 1
while reach < len(a):
    states = torch.cat([states[:reach], gains[reach:] * states[:-reach] + states[reach:]])
    gains = torch.cat([gains[:reach], gains[reach:] * gains[:-reach]])
    rounds, reach = rounds + 1, 2 * reach
print(
    f"100 states in {rounds} rounds; each is a h + b of the one before:",
    torch.allclose(states[1:], a[1:] * states[:-1] + b[1:]),
)

# %% [markdown]
# **In real models.** That is how state-space models such as Mamba train (Gu & Dao, 2023): recurrence without its tanh,
# gates that depend on the word alone, and a scan. Table 1 of Vaswani et al. (2017) is the one above, in its first form.

# %% [markdown]
# ### D · How cold?  (12 min)
#
# At $T = 0$ the look-up of section 4 is hard: the best match alone counts, and equally good ones share.

# %%
explore(figures.soft_table, temperature=Log(0.01, 100))

# %% [markdown]
# ### Exercise 11 · How cold?  (3 points · 9 min · ●●)
#
# The same scores make any decision, from nearly a coin toss to nearly a certainty. Return the temperature at which the
# best match gets the weight `share`, to five digits. Of equally good matches *each* gets this weight. Scores come in
# any order; they may be as large as thousands or as small as millionths. If no temperature above 0 gives this weight,
# or every temperature does, raise `ValueError`: find out which weights are possible.


# %% exercise="temperature_for"
def temperature_for(scores: Float[Tensor, "n"], share: float) -> float:
    """The temperature at which the best of these scores gets the weight `share`."""
    ### BEGIN SOLUTION
    gaps = scores.max() - scores
    if not 1 / len(gaps) < share < 1 / (gaps == 0).sum().item():
        raise ValueError(f"no temperature gives the best of {len(gaps)} scores a weight of {share}")
    low, high = -40.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        if 1 / (-gaps / math.exp(middle)).exp().sum() > share:
            low = middle
        else:
            high = middle
    return math.exp(low)
    ### END SOLUTION


# %% check="temperature_for"

# %%
with your("temperature_for"):
    for share in (0.4, 0.6, 0.99):
        found = temperature_for(torch.tensor([2.0, 0.0, -2.0], dtype=torch.float64), share)
        print(f"the best of 2, 0 and −2 gets {share} at T = {found:.2f}")

# %% [markdown]
# And in a trained layer at $T = 10^{-4}$? The weights become 0 and 1, and the gradients of the scores vanish nearly
# everywhere: it is a table again.

# %% [markdown]
# ### E · Alignments, and what came of them  (4 min)
#
# Real languages are not mirrors. Here is a matrix as a French–English translator might have it (drawn by us, not
# trained). Which word goes with which? And where is the order turned round?

# %%
drawn = torch.tensor([[0.85, 0.1, 0.05, 0.0], [0.05, 0.15, 0.8, 0.0], [0.0, 0.9, 0.1, 0.0], [0.0, 0.0, 0.05, 0.95]])
french, english = ["la", "maison", "blanche", "dort"], ["the", "white", "house", "sleeps"]
figures.alignment(drawn, french, english, name="A given alignment")

# %% [markdown]
# <details><summary>Answer</summary>
#
# The largest weight of each row: *the* looks at *la*, *white* at *blanche*, *house* at *maison*, *sleeps* at *dort*.
# Where the two in the middle cross, French puts the adjective after its noun.
#
# </details>
#
# Sutskever et al. (2014) translated English to French through one vector, with 34.8 BLEU (of 100; it counts the runs of
# one to four words that a translation shares with those of people). What helped markedly was to *reverse the source*,
# which puts its first words next to those that are said first: section 2 says why. Attention was liked at once for
# three reasons: translations became better, most of all long ones; every source word is one move away, so gradients
# have a short way back; and word alignments, once a field of their own, come for free. A fixed state cannot copy a text
# that is long enough; attention can (Jelassi et al., 2024). And against exposure bias, *scheduled sampling* lets a
# model read its own words now and then in training (Bengio et al., 2015). For open-ended text the harm was found
# limited (He et al., 2021): a story has many good next words.
#
# A caution: weights show where a model looked, which is not *why* it said what it said. Other weights can give the same
# word (Jain & Wallace, 2019), and $h_i$ is a state, which has heard of its neighbours too.

# %% [markdown]
# ### F · A state that can be overwritten  (5 min)
#
# Is there something between one state and everything? Let the state be a matrix $S$ that is a table. To store a value
# $v$ under a key $k$, add $v k^\top$; to ask, compute $S k$. This is attention without its softmax (*linear attention*;
# Katharopoulos et al., 2020). The **delta rule** first takes away what is there: $S \leftarrow S + (v - S k)\,k^\top$
# (Schlag et al., 2021).

# %%
predict("overwritten")


# %%
def store(keys: Tensor, values: Tensor, delta: bool) -> Tensor:
    """The state after all pairs have been written into it, one after the other."""
    S = torch.zeros(64, 64)
    for key, value in zip(keys, values, strict=True):
        S = S + torch.outer(value - S @ key if delta else value, key)
    return S


def found_in(answers: Tensor, values: Tensor, first: int = 0) -> float:
    """In what share of the answers the best match is the right value: answer i asks for value first + i."""
    best = (answers @ F.normalize(values).T).argmax(dim=1)
    return (best == first + torch.arange(len(answers))).double().mean().item()


recalled = {}
for seed, pairs in itertools.product(range(3), (32, 64, 128, 256)):
    keys, values, new = torch.randn(3, pairs, 64, generator=torch.Generator().manual_seed(seed))
    keys = F.normalize(keys)
    softmax = found_in((8 * keys @ keys.T).softmax(dim=1) @ values, values)
    for rule in ("sum", "delta"):
        S = store(keys, values, rule == "delta")
        renewed = store(keys.repeat(2, 1), torch.cat([values, new]), rule == "delta")
        shares_found = (
            found_in(keys @ S.T, values),
            softmax,
            found_in(keys @ renewed.T, torch.cat([values, new]), pairs),
        )
        recalled.setdefault((pairs, rule), []).append(shares_found)
for (pairs, rule), seeds in recalled.items():
    told = pairs, rule, *(fmean(column) for column in zip(*seeds, strict=True))
    print("{:3} pairs, {:5} found {:.2f} (softmax {:.2f}); when all values are new: {:.2f}".format(*told))

# %% [markdown]
# The sum keeps more pairs, but it cannot forget: old and new values have equal weight. The delta rule finds nearly all
# new values of 32 keys, and pays for it with old pairs, because keys that are not at right angles overwrite each other.
# Softmax attention finds all of them, and keeps all of them.
#
# **In real models.** The delta rule with a forget gate is the recurrent layer of several models that mix it with a few
# layers of full attention (Yang et al., 2025; notebook 08).

# %% [markdown]
# ## Further reading
#
# - Elman, 1990, *Finding structure in time*; Hochreiter & Schmidhuber, 1997, *Long short-term memory*; Gers,
#   Schmidhuber & Cummins, 2000, *Learning to forget*.
# - Pascanu, Mikolov & Bengio, 2013, *On the difficulty of training recurrent neural networks*; Józefowicz, Zaremba &
#   Sutskever, 2015, *An empirical exploration of recurrent network architectures*; Khandelwal et al., 2018, *Sharp
#   nearby, fuzzy far away*.
# - Sutskever, Vinyals & Le, 2014, *Sequence to sequence learning with neural networks*; Bahdanau, Cho & Bengio, 2015,
#   *Neural machine translation by jointly learning to align and translate*; Luong, Pham & Manning, 2015, *Effective
#   approaches to attention-based neural machine translation*.
# - Ranzato et al., 2016, *Sequence level training with recurrent neural networks*; Bengio et al., 2015, *Scheduled
#   sampling*; He et al., 2021, *Exposure bias versus self-recovery*.
# - Jain & Wallace, 2019, *Attention is not explanation*; Jelassi et al., 2024, *Repeat after me*; Gu & Dao, 2023,
#   *Mamba*; Schlag, Irie & Schmidhuber, 2021, *Linear transformers are secretly fast weight programmers*; Yang, Kautz &
#   Hatamizadeh, 2025, *Gated delta networks*.

# %% [markdown]
# The folded cell checks the numbers of Further.

# %% tags=["hide-input"]
parameters = 10_000 * 128 + 512 * 512 + 512 * 128 + 512 + 10_000 * 512 + 10_000 + 512
assert (parameters, 10_000 * 128 + 512) == (6_738_704, 1_280_512) and 0.18 < 1_280_512 / 6_738_704 < 0.2
assert [round(number, 3) for number in (math.tanh(0.5), math.tanh(math.tanh(0.5) / 2))] == [0.462, 0.227]
at_50 = {name: [lengths[50].item() for lengths in each] for name, each in left.items()}
assert (
    max(at_50["tanh, radius 1"] + at_50["LSTM, as PyTorch makes it"]) < 1e-9 and max(at_50["tanh, radius 1.5"]) < 1e-3
)
assert min(at_50["linear, radius 1.5"]) > 1e7 and min(at_50["LSTM, forget bias 1"]) > 1e-6
assert max(float(share) for share in beyond) <= 0.03 and -15.1 < math.log10(0.5**50) < -15
assert 32 * 4095 == 131_040 and rounds == 7
overwritten = [[share for *_, share in recalled[32, rule]] for rule in ("sum", "delta")]
assert round(fmean(overwritten[0]), 2) == 0.53 and max(overwritten[0]) < 0.6 and min(overwritten[1]) > 0.9
assert all(softmax == 1 for seeds in recalled.values() for _, softmax, _ in seeds)
