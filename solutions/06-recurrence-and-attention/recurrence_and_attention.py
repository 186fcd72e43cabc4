# %% [markdown]
# # 06 · Recurrence and attention
#
# **115 min · 10 exercises · 29 points**
#
# A text is long and a memory is small. What do you keep? For twenty-five years the answer was *a state*: read a word,
# change the state, forget the word. Since 2015 there is another: keep everything, and look. This notebook builds
# both, and measures the three complaints about the first: what is far is lost, everything waits, gradients fade.
#
# **You will be able to**
#
# - write a recurrent language model and its gradient through time; read an LSTM;
# - measure how far any cell remembers, and say what the spectral radius and the forget gate have to do with it;
# - train two translators, with attention and without, and read what the one with attention looks at;
# - say what teacher forcing costs when the teacher leaves, and what it does not cost.
#
# **You need** the chain rule (notebook 03) and softmax (01). Cross-entropy and n-grams (05) help. No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge;
# run it again for the next one.

# %%
import math
import time
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.chapters.recurrence_and_attention import figures
from lmcourse.chapters.recurrence_and_attention.remembering import REMEMBERED
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.widgets import Log

start("06-recurrence-and-attention")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · One state for everything
#
# *The keys that the man in the red coat lost on the way to the station* **were** *found.* Not *was*: the verb belongs
# to the keys, fifteen words back. An n-gram model forgets after $n - 1$ words, and a table that looks fifteen words
# back does not fit on this planet. A **recurrent network** (Elman, 1990) has no such limit. It keeps a *state* $h$, and
# changes it with every word. Here is one with a single number for the state, which reads the words 1, −½ and 1:

# %%
h = 0.0
for e in (1.0, -0.5, 1.0):
    h = math.tanh(0.5 * h + e)
    print(f"read {e:4}: the state is {h:6.3f}")

# %% [markdown]
# The first word and the third are the same, and the states after them are not: 0.762 and 0.736. The difference is all
# that this network knows of its past.
#
# In a real one the state is a vector of $d$ numbers, and so is each word: a *column* of $e$ numbers in the table $E$.
# Matrices are in the place of ½ and 1: $W_h$ for the state, $W_e$ for the word. A bias $b_1$ is added inside the
# tanh. From the new state, $U$ and $b_2$ make a score for each of the $v$ words, and softmax makes the scores
# probabilities: $\hat y_t$, the model's belief about the word after $t$.
#
# ### Exercise 1 · A network that reads  (3 points · 9 min · ●●)
#
# Return the probabilities $\hat y_t$ after each token, a row for each, in the dtype of `E`. There is at least one
# token. The first state is `h0`. The shapes say what multiplies what, and on which side. PyTorch's own recurrent
# layers are off limits; `softmax` is fine.

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
check(rnn_probabilities)
### BEGIN HIDDEN TESTS
check(rnn_probabilities, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# As formulas, with vectors as columns, as in the papers (where notebooks 03, 05 and 11 write $x W$, a vector is a row):
#
# $$h_t = \tanh(W_h h_{t-1} + W_e e_t + b_1), \qquad \hat y_t = \text{softmax}(U h_t + b_2)$$
#
# Can a single number carry the *keys* over fifteen words? Let a word's number be 1 for *keys*, −1 for *key*, *man*, *coat*, *way* and *station*, and 0 for all
# others, with $W_e = 0.3$. A positive state speaks for *were*, a negative one for *was*.

# %%
predict("which_memory")

# %%
text = "the keys that the man in the red coat lost on the way to the station"
words = ["was", "were", "key", *sorted(set(text.split()))]
nouns = {"keys": 1.0, "key": -1.0, "man": -1.0, "coat": -1.0, "way": -1.0, "station": -1.0}
E = torch.tensor([[nouns.get(word, 0.0) for word in words]])
U = torch.tensor([[{"was": -2.0, "were": 2.0}.get(word, 0.0)] for word in words])
b2 = torch.tensor([0.0 if word in ("was", "were") else -20.0 for word in words])  # only these two can follow
were = {}
with your("rnn_probabilities"):
    for first in ("keys", "key"):
        read = torch.tensor([words.index(first if word == "keys" else word) for word in text.split()])
        for w in (0.5, 1.0, 2.0):
            W_h, W_e = torch.tensor([[w]]), torch.tensor([[0.3]])
            were[first, w] = float(rnn_probabilities(read, E, W_h, W_e, torch.zeros(1), U, b2, torch.zeros(1))[-1, 1])
        print(f"the {first:4} ...", "  ".join(f"W_h = {w:g}: were {were[first, w]:.2f}" for w in (0.5, 1.0, 2.0)))

# %% [markdown]
# With 2 the network gets both sentences right. Its state stays near the first noun's side: $\tanh(2 \cdot 0.96 - 0.3) = 0.92$, so
# one later noun cannot turn it. We chose the numbers by hand; whether training finds them is the question of sections 2 to 4.
#
# ### Exercise 2 · How many numbers it learns  (2 points · 4 min · ●)
#
# A model knows $v$ words, has $e$ numbers for each, and a state of $d$. How many numbers are learned, if *everything*
# that can be learned is? Compare the formula with the arguments of your function.

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
check(rnn_parameters)
### BEGIN HIDDEN TESTS
check(rnn_parameters, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# $E$ and the first state $h_0$ are easily forgotten. With 10,000 words, $e = 128$ and $d = 512$ these are 1,280,512 of
# 6,738,704 numbers: nearly a fifth of the model. (PyTorch's `nn.RNN` does not learn $h_0$, but has two biases where
# one would do. Count, and you find the same total, for another reason.)
#
# Three gains over a table of n-grams: texts of any length; in principle a memory without end; and a size that does
# not grow with how far one looks.

# %%
figures.size_against_context()

# %% [markdown]
# *In principle.* The figure says what it costs to look back, not whether anybody sees anything there. That is what
# the next three sections measure.
#
# **In real models.** On a billion words of news a 5-gram model has a perplexity of 67.6, and a large LSTM one of 30.0
# (Józefowicz et al., 2016).
#
# ## 2 · Backwards through time
#
# To train the network we need the gradient of $W_h$. The same matrix acts in every step: this is the fan-out of
# notebook 03, where what is used twice gets *two* gradients, and they add up.

# %%
figures.unrolled()

# %% [markdown]
# By hand, with one number for the state and no words at all: $h_t = \tanh(w\,h_{t-1})$, $w = \tfrac12$, $h_0 = 1$,
# two steps. Then $h_1 = 0.462$ and $h_2 = 0.227$. How does $h_2$ change with $w$? It was used twice. Had only the
# *second* step used a slightly larger $w$, the slope would be 0.438; had only the *first*, it would be 0.373, because
# that one has to travel through the second step. Together 0.811, and nudging $w$ says the same:

# %%
def two_steps(first: float, second: float) -> float:
    """h₂ where each step has a weight of its own."""
    return math.tanh(second * math.tanh(first * 1.0))


nudge, base = 1e-6, two_steps(0.5, 0.5)
pairs = {"second": (0.5, 0.5 + nudge), "first": (0.5 + nudge, 0.5), "both": (0.5 + nudge, 0.5 + nudge)}
for name, nudged in pairs.items():
    print(f"a larger w in {name:6}: slope {(two_steps(*nudged) - base) / nudge:.3f}")

# %% [markdown]
# In general
#
# $$\frac{dh_T}{dw} = \sum_{t=1}^{T} \frac{\partial h_T}{\partial h_t} \cdot \frac{\partial h_t}{\partial w}\Big|_{h_{t-1}\text{ held fixed}}$$
#
# ### Exercise 3 · Through time  (3 points · 12 min · ●●●)
#
# `inputs` are the numbers $x_1 \dots x_T$, and $h_t = \tanh(w\,h_{t-1} + x_t)$. Return $dh_T/dw$
# with an error below $10^{-13}$ (nudging to both sides gives about $10^{-10}$, to one side $10^{-6}$), and 0 if there are no inputs. It has to work however
# many inputs there are, and however large they are. Python's `math` is all you need; `torch` is off limits, because it would do the exercise for you.

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
check(through_time)
### BEGIN HIDDEN TESTS
check(through_time, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# You can walk forwards, as a pair of state and slope, or backwards, as autograd does. Forwards needs no memory of old
# states, but one slope for *each* weight; with $d^2$ weights backwards wins, and keeps all states for it. If they do
# not fit in memory, you cut the sum after, say, twenty steps back (**truncated** backpropagation through time), and
# give up on learning what lies further back. How much do you give up? The next section measures it.
#
# ## 3 · Fifty matrices
#
# A gradient that goes back from $h_T$ to $h_{T-k}$ passes $k$ steps, and each multiplies it by a matrix:
#
# $$\frac{\partial h_T}{\partial h_{T-k}} = J_T\, J_{T-1} \cdots J_{T-k+1}, \qquad J_t = \text{diag}(1 - h_t^2)\; W_h$$
#
# A product of fifty matrices is rarely about as large as one. What decides is the *spectral radius* of $W_h$, the
# size of its largest eigenvalue: below 1 the gradient vanishes, above 1 it explodes, at 1 it lives (Hochreiter, in 1991,
# said it first, and more carefully).

# %%
predict("radius_one")

# %% [markdown]
# ### Exercise 4 · What is left of a gradient  (3 points · 8 min · ●●)
#
# `hidden` holds the states $h_1 \dots h_T$ of a tanh network, a row each. A gradient `v` arrives at the last. Return
# its length at each lag: entry $k$ is $\lVert \partial (v \cdot h_T) / \partial h_{T-k} \rVert$ for $k = 0 \dots T -
# 1$, in the dtype of `v`. Work with the matrices above; autograd is off limits.

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
check(gradient_at_lag)
### BEGIN HIDDEN TESTS
check(gradient_at_lag, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now an ordinary network: a state of 64, 60 steps, random inputs, three seeds, and a $W_h$ scaled to a spectral radius
# of 1.

# %%
figures.compare_networks({"tanh, radius 1": {"kind": "tanh", "radius": 1.0}})

# %%
predict("without_tanh")

# %%
predict("radius_one_and_a_half")

# %%
figures.compare_networks(
    {
        "linear, radius 1.1": {"kind": "linear", "radius": 1.1},
        "linear, radius 1": {"kind": "linear", "radius": 1.0},
        "tanh, radius 1.5": {"kind": "tanh", "radius": 1.5},
        "tanh, radius 1": {"kind": "tanh", "radius": 1.0},
    }
)

# %% [markdown]
# The rule is right about *linear* networks. With a tanh and ordinary inputs **all of them fade**: at a radius of 1
# less than a billionth is left after fifty steps, at 1.5, where a linear network explodes to a hundred million or so,
# less than a thousandth. Inputs push the states to where tanh is flat, and $1 - h^2$ is what each step multiplies by.
# A larger $W_h$ pushes harder. Take the inputs away (the last control) and the rule comes back, for as long as the
# states stay small.

# %%
explore(figures.gradient_lag, kind=["tanh", "linear"], radius=[1.0, 0.5, 1.5], inputs=[1.0, 0.0])

# %%
for radius in (1.0, 1.5):
    parts = [figures.gradient_norms("tanh", radius, seed=seed) for seed in range(3)]
    beyond = [(lengths[21:].sum() / lengths.sum()).item() for lengths in parts]
    told = ", ".join(f"{share:.0e}" for share in beyond)
    print(f"radius {radius}: beyond lag 20 lies {told} of all gradient lengths")

# %% [markdown]
# So cutting at twenty steps costs these networks at most 3% of their gradient: they could not have learned from
# further back anyway. Exploding is the harmless half of the trouble: you scale the gradient down to a fixed
# length and continue (Pascanu et al., 2013; notebook 16). What has vanished cannot be scaled back, because it is drowned by the gradients of nearby words.
# A model whose gradient ends after twenty steps just reaches *the keys*, fifteen words back; of a longer sentence it learns nothing. And the words
# themselves have gone through $O(n)$ layers on their way: fading backwards and forgetting forwards are the same
# matrices, read from two sides.
#
# **In real models.** LSTM language models used about 200 words of context, and knew the order of the last 50
# (Khandelwal et al., 2018).
#
# ## 4 · A gate that stays open
#
# If multiplying is the trouble, add. The **LSTM** (Hochreiter & Schmidhuber, 1997) keeps a second vector, the *cell*
# $c$, and does not squeeze it through a matrix in each step:
#
# $$\begin{aligned} (i, f, g, o) &= W x_t + U h_{t-1} + b \\ c_t &= \sigma(f) \odot c_{t-1} + \sigma(i) \odot \tanh(g) \\ h_t &= \sigma(o) \odot \tanh(c_t) \end{aligned}$$
#
# Three *gates* between 0 and 1: $f$ says how much of the cell to keep, $i$ how much to write, $o$ how much to show;
# $g$ is what could be written. Each has $d$ numbers, so $W$ is $(4d, e)$, $U$ is $(4d, d)$, $b$ is $(4d)$. From step
# to step the cell is only multiplied by $\sigma(f)$: if that is 1, nothing fades.
#
# By hand: a cell of 0.8, $\sigma(f) = 0.9$, $\sigma(i) = 0.5$ and $\tanh(g) = -0.4$ make $0.9 \cdot 0.8 - 0.5 \cdot
# 0.4 = 0.52$.

# %%
predict("fresh_lstm")

# %%
def lstm_step(
    x: Float[Tensor, "e"],
    h: Float[Tensor, "d"],
    c: Float[Tensor, "d"],
    W: Float[Tensor, "4d e"],
    U: Float[Tensor, "4d d"],
    b: Float[Tensor, "4d"],
) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
    """The new h and c after one more input; the rows of W, U and b are in PyTorch's order i, f, g, o."""
    i, f, g, o = (W @ x + U @ h + b).chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


torch.manual_seed(0)
theirs = nn.LSTM(8, 32, dtype=torch.float64)
W, U, *biases = (weight.detach() for weight in theirs.parameters())  # PyTorch has two biases; only their sum matters
x = torch.randn(20, 8, dtype=torch.float64)
h = c = torch.zeros(32, dtype=torch.float64)
for row in x:
    h, c = lstm_step(row, h, c, W, U, sum(biases))
with torch.no_grad():
    difference = (theirs(x)[0][-1] - h).abs().max().item()
print(f"after 20 steps, the difference from nn.LSTM is at most {max(difference, 1e-15):.0e}")

# %%
figures.compare_networks(
    {
        "tanh, radius 1": {"kind": "tanh"},
        "LSTM, as PyTorch makes it": {"kind": "lstm"},
        "LSTM, forget bias 1": {"kind": "lstm", "forget_bias": 1.0},
    }
)

# %% [markdown]
# "LSTMs solve vanishing gradients." A fresh one does not: it fades like the others. Its forget gates start near
# $\sigma(0) = \tfrac12$, and $(\tfrac12)^{50} \approx 10^{-15}$. What the LSTM has is a *way* that can be opened, and
# one number opens it: the bias of the forget gate. How far must you open it, if the cell should remember a hundred
# steps? Do not guess: build the instrument, and open the gate step by step.
#
# ### Exercise 5 · How far does it remember?  (3 points · 12 min · ●●●)
#
# `step(s, x)` is any recurrent cell: it returns the next state. An LSTM's $h$ and $c$ come as one vector. From
# $s_0$ = `state`, the cell reads the $T \ge 1$ rows of `inputs`, and a gradient `v` arrives at the last state. Return
# its *span*: the smallest lag $k \ge 1$ at which $\lVert \partial (v \cdot s_T) / \partial s_{T-k} \rVert$ is below
# `share` times $\lVert v \rVert$. Return None if there is no such lag up to $T$. Call `step` $T$ times. Autograd is
# allowed this time: there is no formula for a cell you have never seen.

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
check(memory_span)
### BEGIN HIDDEN TESTS
check(memory_span, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now open the gate step by step: an untrained LSTM with a state of 32 reads 200 random inputs, and a gradient arrives at its
# cell. If the forget gate were the only way back, the span would be $\ln \tfrac12 / \ln \sigma(\text{bias})$. The bias
# goes from 0 to 4, three seeds each.

# %%
predict("bias_three")

# %%
def lstm_span(bias: float, seed: int, steps: int = 200) -> int | None:
    """The span of an untrained LSTM whose forget gates have this bias."""
    torch.manual_seed(seed)
    W, U, *biases = (weight.detach() for weight in nn.LSTM(8, 32, dtype=torch.float64).parameters())
    b = sum(biases)
    b[32:64] = bias
    v = torch.cat([torch.zeros(32), torch.randn(32)]).double()  # none of it arrives at h
    inputs = torch.randn(steps, 8, dtype=torch.float64)
    return memory_span(lambda s, x: torch.cat(lstm_step(x, *s.chunk(2), W, U, b)), torch.zeros(64).double(), inputs, v)


with your("memory_span"):
    spans = {bias: [lstm_span(bias, seed) for seed in range(3)] for bias in range(5)}
for bias, measured in spans.items():
    gate = 1 / (1 + math.exp(-bias))
    print(f"bias {bias}: σ = {gate:.2f}, by the gate alone {math.log(0.5) / math.log(gate):4.1f}, measured {measured}")

# %%
figures.spans(spans)

# %%
ways = [figures.gradient_norms("lstm", forget_bias=3.0, seed=seed)[50].item() for seed in range(8)]
gate_alone = figures.sigmoid(3) ** 50
print(f"bias 3, left at lag 50: {min(ways):.2f} to {max(ways):.2f} in eight networks; the gate alone {gate_alone:.2f}")

# %% [markdown]
# Up to a bias of 2 the forget gate explains the span to within four steps. At 3 it does not: the spans are two
# to nine times as long, and at lag 50 at least four times the gate's $0.953^{50} = 0.09$ is left. The gates read $h_{t-1}$ and $h$ reads the cell, so the gradient has other ways back:
# through the writing, the forgetting and the showing. Wide open, they give back most of what the gate lets fade, and in some networks more. One network
# remembers 29 steps at a bias of 3, another 120: a rule of thumb is no measurement.
#
# Section 1 left a question: does *training* find such a memory? Let a text begin with one of two words, as *keys* or
# *key*, and let random other words follow. At the end a network with a state of 32 has to say which word came first.

# %%
predict("trained_to_remember")

# %%
print("fraction of right answers after 500 steps, three seeds (stored runs; half of them are right by guessing)")
for between, networks in REMEMBERED.items():
    for name, shares in networks.items():
        print(f"{between} words between, {name:24} " + "  ".join(f"{share:.2f}" for share in shares))

# %% [markdown]
# Training can open the gates, but only where some gradient arrives. Over twenty words the fresh LSTM learns nothing
# with any seed; the tanh network does with one of three. The same LSTM that starts with a forget bias of 1 learns to remember over 20
# words, and with a bias of 3 over 40, and over 80 with two of three seeds.
#
# **In real models.** The forget gate came three years after the LSTM (Gers et al., 2000), which at first could only
# add. Starting its bias at 1 was found to matter more than most variations of the architecture (Józefowicz et al.,
# 2015). PyTorch starts all biases at small random numbers. The **GRU** (Cho et al., 2014) makes do with two gates and
# without a separate cell: its state is a blend of the old state and a new one. The way without a matrix lives on in every transformer, as
# the residual stream (notebook 10).
#
# ## 5 · Waiting
#
# State 1,000 needs state 999, which needs state 998. A thousand small steps, one after the other, however many
# processors there are. Attention (sections 7 and 8) compares all words with all others, which is more arithmetic, and
# none of it waits. What does the clock say?

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


def milliseconds(layer, *inputs: Tensor) -> float:
    """The shortest of five runs."""
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        layer(*inputs)
        seconds.append(time.perf_counter() - began)
    return 1000 * min(seconds)


W = torch.randn(64, 64) / 8
for n in (64, 256, 1024, 8192):
    x = torch.randn(n, 64)
    times = [milliseconds(layer, x, W) for layer in (read_in_turn, look_at_all)]
    more = f"{n // 64} times the arithmetic"
    print(f"{n:5} words: in turn {times[0]:6.2f} ms, all at once {times[1]:6.2f} ms, with {more}")

# %% [markdown]
# With 256 words attention does four times the arithmetic of the recurrent layer ($4 n^2 d$ against $4 n d^2$ FLOPs: a
# factor $n/d$) and is done sooner. Arithmetic is not time, if steps wait. With 8,192 words the factor of 128 wins on this
# single core. A GPU has thousands of cores to share the products among; there the waiting decides for much longer.
#
# Count both then: the *steps* that must come one after the other, and the *moves* that information makes from one
# position to another on its way from the first word to the last. Each layer of a **window** sees the $W$ newest
# words, itself included.

# %%
figures.dependency_grid()

# %% [markdown]
# ### Exercise 6 · Who waits for whom?  (3 points · 7 min · ●●)
#
# `kind` is "rnn", "attention" or "window"; a model of `layers` layers reads `n` words (both at least 1). Return two
# whole numbers:
#
# 1. In how many steps can all states be computed, if everything that can run at once does?
# 2. In how many moves, at the fewest, does something get from the first word to the last word's state in the top layer?
#    Going up to the next layer at the same position is no move. With one word there is no move.
#
# Attention to 100 words in 3 layers takes 3 steps and 1 move. The other kinds ignore `window`. Raise `ValueError` for an unknown kind, a
# window below 2, and for layers that do not reach from the first word to the last.

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
check(waiting)
### BEGIN HIDDEN TESTS
check(waiting, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# | | steps, one after the other | moves from first to last | FLOPs per layer, about |
# | --- | --- | --- | --- |
# | RNN, $L$ layers | $n + L - 1$ | $n - 1$ | $4nd^2$ |
# | attention | $L$ | 1 (0 for one word) | $4n^2d$, and its projections |
# | window of $W$ | $L$ | $\lceil (n-1)/(W-1) \rceil$, each in a layer of its own | $4nWd$, and its projections |
#
# **The tanh is what waits.** Drop it, and let a state be $h_t = a_t h_{t-1} + b_t$. Two such steps in a row are again
# such a step, so they can be joined in pairs, the pairs in fours, and all $n$ states are there after $\log_2 n$
# rounds (Hillis & Steele, 1986). Six lines:

# %%
def scan(a: Tensor, b: Tensor) -> tuple[Tensor, int]:
    """All states of h ← a h + b from 0, and how many rounds it took."""
    rounds, span = 0, 1
    while span < len(a):
        b = torch.cat([b[:span], a[span:] * b[:-span] + b[span:]])
        a = torch.cat([a[:span], a[span:] * a[:-span]])
        rounds, span = rounds + 1, 2 * span
    return b, rounds


a, b = torch.rand(100, dtype=torch.float64), torch.randn(100, dtype=torch.float64)
states, rounds = scan(a, b)
h = torch.zeros((), dtype=torch.float64)
for step in range(100):
    h = a[step] * h + b[step]
    assert torch.allclose(h, states[step])
print(f"100 states in {rounds} rounds, equal to the loop")

# %% [markdown]
# **In real models.** That is how state-space models such as Mamba train (Gu & Dao, 2023): recurrence without its
# tanh, gates that depend on the word alone, and a scan. Table 1 of Vaswani et al. (2017) is the one above, in its
# first form.
#
# ## 6 · Two networks and a bottleneck
#
# Translation has two texts. The **encoder** reads the source; its last state is handed to the **decoder**, a language
# model of the target that starts from there (Sutskever et al., 2014). Whatever the decoder knows of the source has to
# fit through that one state.
#
# What does the decoder read? In use, what it has just said. In training we know what it *should* have said, and hand
# it that: **teacher forcing**. So, to say $y_1, y_2, y_3$, it reads a start symbol, $y_1$ and $y_2$.
#
# ### Exercise 7 · What the decoder reads  (1 point · 3 min · ●)
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
check(teacher_inputs)
### BEGIN HIDDEN TESTS
check(teacher_inputs, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Our translators have a simple job: read a row of up to twelve symbols out of ten, and write it in reverse. Nothing
# has to be understood, everything has to be remembered. Here are both models, the one of this section and the one of
# section 8; `attend` is where they differ. Your `teacher_inputs` is what the decoder reads in training.

# %%
class Translator(nn.Module):
    """An LSTM reads a row of symbols, another writes one; symbol 0 is the start."""

    def __init__(self, attend=None, symbols: int = 11, d: int = 64) -> None:
        super().__init__()
        self.attend = attend
        self.source, self.target = nn.Embedding(symbols, d), nn.Embedding(symbols, d)
        self.encoder, self.decoder = nn.LSTM(d, d, batch_first=True), nn.LSTM(d, d, batch_first=True)
        self.head = nn.Linear(2 * d if attend else d, symbols)

    def forward(self, source: Int[Tensor, "b n"], read: Int[Tensor, "b t"]) -> Float[Tensor, "b t v"]:
        """Logits for each step, when the decoder reads `read`."""
        h, state = self.encoder(self.source(source))
        s, _ = self.decoder(self.target(read), state)
        return self.head(self.attend(s, h) if self.attend else s)

    @torch.no_grad()
    def write(self, source: Int[Tensor, "b n"], teacher: Int[Tensor, "b n"] | None = None) -> Int[Tensor, "b n"]:
        """The likeliest symbol at each step, which reads the teacher's words, or else its own."""
        h, state = self.encoder(self.source(source))
        word, said = torch.zeros_like(source[:, :1]), []
        for step in range(source.shape[1]):
            s, state = self.decoder(self.target(word), state)
            said.append(self.head(self.attend(s, h) if self.attend else s).argmax(dim=-1))
            word = said[-1] if teacher is None else teacher[:, step : step + 1]
        return torch.cat(said, dim=1)

# %%
def rows(count: int, length: int, generator: torch.Generator) -> Int[Tensor, "b n"]:
    """Rows of symbols from 1 to 10."""
    return torch.randint(1, 11, (count, length), generator=generator)


def train(seed: int, attend=None, steps: int = 400) -> Translator:
    """Return a translator trained for `steps` batches of 64 rows, each row of 2 to 12 symbols."""
    print(f"training with seed {seed} ...", flush=True)
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = Translator(attend)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        source = rows(64, int(torch.randint(2, 13, (), generator=generator)), generator)
        target = source.flip(1)
        loss = F.cross_entropy(model(source, teacher_inputs(target, 0)).flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


def perfect_rows(model: Translator, length: int) -> float:
    """Return the fraction of 512 new rows that a model reverses without an error, reading its own words."""
    source = rows(512, length, torch.Generator().manual_seed(99))
    return (model.write(source) == source.flip(1)).all(dim=1).double().mean().item()

# %%
predict("one_vector")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
LENGTHS = (2, 3, 4, 6, 8, 9, 10, 12, 14, 16, 20)
with your("teacher_inputs"):
    plain = [train(seed) for seed in range(3)]
shares = {"one state": {length: [perfect_rows(model, length) for model in plain] for length in LENGTHS}}
for length in (3, 6, 9, 12):
    print(f"{length:2} symbols: " + "  ".join(f"{share:4.0%}" for share in shares["one state"][length]))

# %% [markdown]
# A column for each seed. Three symbols are no trouble, twelve come out right in fewer than one row of ten. And yet
# $10^{12}$ rows need 40 bits, and the state has 128 floats, $h$ and $c$: there is room. What fails is *learning* to
# pack them so that they can be unpacked, one by one, through up to 23 steps.
#
# **In real models.** Sutskever et al. (2014) translated English to French through one vector, and well: 34.8 BLEU with five networks together (of 100; it counts
# the runs of one to four words that a translation shares with those of people).
# What helped markedly was to *reverse the source*, which puts its first words next to those that are said first.
# Section 3 says why.
#
# ## 7 · Look it up
#
# You would not learn the row by heart. You would look at it again. For a network to look something up there has to be
# a table: *keys*, and for each key a *value*. A Python dict gives back the value of the one key that is equal to the
# query. For vectors nothing is ever quite equal, and "the best match" has no slope to learn from. So blend: score
# every key by its dot product with the query, softmax the scores, average the values.
#
# $$\alpha_i = \frac{e^{q \cdot k_i / T}}{\sum_j e^{q \cdot k_j / T}}, \qquad \text{answer} = \sum_i \alpha_i v_i$$
#
# The **temperature** $T$ says how decided the look-up is. At $T = 0$ it is hard: the best match alone counts, and
# equally good ones share. By hand: the query $(2, 0)$ and the keys $(1, 0)$, $(0, 1)$ and $(-1, 0)$ have the scores
# 2, 0 and −2. With the values 10, 20 and 30:

# %%
def soft_lookup(
    query: Float[Tensor, "d"], keys: Float[Tensor, "n d"], values: Float[Tensor, "n v"], temperature: float
) -> Float[Tensor, "v"]:
    """The average of the values, weighted by how well their keys match the query."""
    scores = keys @ query
    if temperature == 0:
        return values[scores == scores.max()].mean(dim=0)
    return (scores / temperature).softmax(dim=0) @ values


query, keys = torch.tensor([2.0, 0.0]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
values = torch.tensor([[10.0], [20.0], [30.0]])
for temperature in (0, 0.1, 1, 10, 1e6):
    print(f"T = {temperature:9}: {soft_lookup(query, keys, values, temperature).item():.4f}")

# %%
explore(figures.soft_table, temperature=Log(0.01, 100))

# %% [markdown]
# Cold, the blend is a table: 10. Hot, it is the plain average: 20. At $T = 1$ it is 11.49, mostly the first, and
# every score has a gradient. This is all that attention is. The rest is who asks, and what is in the table.
#
# ### Exercise 8 · How cold?  (3 points · 9 min · ●●)
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
check(temperature_for)
### BEGIN HIDDEN TESTS
check(temperature_for, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · Attention between two texts
#
# Now give the decoder the whole source to look at. Its state $s_t$ is the query; the encoder's states $h_1 \dots h_n$
# are keys *and* values; the temperature is 1. What was found, $a_t$, and the state are put side by side, $[a_t; s_t] \in
# \mathbb R^{2d}$, for the layer that chooses the word
# (Bahdanau et al., 2015; in this form, with the dot product and nothing dividing it, Luong et al., 2015). Texts of a
# batch differ in length, and the shorter ones are filled up with *padding*, which must get no weight at all.
#
# ### Exercise 9 · Attention to the source  (4 points · 9 min · ●●)
#
# `s` holds $t$ states of the decoder, `h` those of $n$ source words, of which at least one is real; `real` is False
# where there is padding. Return $[a; s]$, a row for each step, in the dtype of `s`. Fused attention functions are off
# limits. (If you use only tensor operations that do not depend on values, no loops over `.tolist()` and no `h[real]`,
# the translator below is trained with *your* function. Other styles are just as right.)

# %% exercise="attend_source"
def attend_source(
    s: Float[Tensor, "t d"], h: Float[Tensor, "n d"], real: Bool[Tensor, "n"]
) -> Float[Tensor, "t 2d"]:
    """For each decoder step what it finds in the source, and its own state beside it."""
    ### BEGIN SOLUTION
    scores = (s @ h.T).masked_fill(~real, -torch.inf)
    found = scores.softmax(dim=1) @ h
    return torch.cat([found, s], dim=1)
    ### END SOLUTION


# %% check="attend_source"
check(attend_source)
### BEGIN HIDDEN TESTS
check(attend_source, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# As a formula, as the papers print it:
#
# $$e^t_i = s_t^\top h_i, \qquad \alpha^t = \text{softmax}(e^t), \qquad a_t = \sum_i \alpha^t_i\, h_i$$
#
# By hand: $s = (1, 0)$ looks at the words $(2, 0)$ and $(0, 2)$. The scores are 2 and 0, the weights 0.881 and 0.119,
# and the next layer reads $(1.76, 0.24, 1, 0)$.

# %%
predict("where_it_looks")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
with your("teacher_inputs", "attend_source"):
    attend = figures.in_batches(attend_source)
    looking = [train(seed, attend) for seed in range(3)]
shares["attention"] = {length: [perfect_rows(model, length) for model in looking] for length in LENGTHS}
for length in (3, 6, 9, 12):
    print(f"{length:2} symbols: " + "  ".join(f"{share:4.0%}" for share in shares["attention"][length]))

# %%
figures.right_rows(shares, trained=(2, 12))

# %% [markdown]
# The same data, the same 400 steps, and most rows of twelve are right now. Beyond the lengths it was trained on
# (unshaded) the share falls for both: attention removes the bottleneck, but it does not teach a model to count
# beyond the lengths it has seen.
#
# What does it look at? Here is one row as the first of the three models says it. Move the step.

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
@torch.no_grad()
def looked_at(model: Translator, source: Int[Tensor, "b n"]) -> Float[Tensor, "b t n"]:
    """The attention weights of each step, with the true words to read."""
    h, state = model.encoder(model.source(source))
    s, _ = model.decoder(model.target(F.pad(source.flip(1), (1, -1))), state)
    return figures.looks(s, h)


row = torch.tensor([[3, 8, 1, 10, 5, 7, 2, 9, 4, 6]])
names = [str(symbol) for symbol in row[0].tolist()]
explore(partial(figures.alignment, looked_at(looking[0], row)[0], names, names[::-1]), step=(0, 10))

# %% [markdown]
# Nobody told it. There was no word "reverse", no alignment in the data and no loss on the weights, and yet step $t$
# looks at word $n + 1 - t$, because that is what lowers the loss. In how many of all steps?

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
source = rows(512, 12, torch.Generator().manual_seed(99))
where = torch.arange(11, -1, -1)
mirrored = [(looked_at(model, source).argmax(dim=-1) == where).double().mean().item() for model in looking]
print("the right word has the largest weight in", "  ".join(f"{share:.0%}" for share in mirrored), "of the steps")

# %% [markdown]
# Real languages are not mirrors. Here is a matrix as a French–English translator might have it (drawn by us, not
# trained). Which word goes with which? And where is the order turned round?

# %%
given = torch.tensor([[0.85, 0.1, 0.05, 0.0], [0.05, 0.15, 0.8, 0.0], [0.0, 0.9, 0.1, 0.0], [0.0, 0.0, 0.05, 0.95]])
french, english = ["la", "maison", "blanche", "dort"], ["the", "white", "house", "sleeps"]
figures.alignment(given, french, english, name="A given alignment")

# %% [markdown]
# <details><summary>Answer</summary>
#
# The largest weight of each row: *the* looks at *la*, *white* at *blanche*, *house* at *maison*, *sleeps* at *dort*.
# Where the two in the middle cross, French puts the adjective after its noun.
#
# </details>
#
# Three reasons why attention was liked at once: translations became better, most of all long ones; every source word
# is one move away, so gradients have a short way back; and word alignments, once a field of their own, come for free.
#
# A caution on the alignments: weights show where a model looked, which is not *why* it said what it said. Other weights
# can give the same word (Jain & Wallace, 2019), and $h_i$ is a state, which has heard of its neighbours too.
#
# **In real models.** A fixed state cannot copy a text that is long enough; attention can (Jelassi et al., 2024):
# recurrent models of today are often mixed with a few layers of attention for that reason. In a transformer the
# decoder's recurrence goes as well, and words of *one* text look at each other: notebook 08.
#
# ## 9 · When the teacher leaves
#
# In training our decoder read true words. In use it reads its own, and was never shown what a mistake looks like.
# That difference is called **exposure bias** (Ranzato et al., 2016).
#
# > **Spot the slip.** A colleague writes: "Teacher forcing is used to avoid the accumulation of errors." Whose errors, and when?
#
# In training, where the words are true, none can accumulate. In use there is no teacher, and they are back. What the
# teacher does buy is time: all true words are known from the start, so no step has to wait for the word of the step
# before. A recurrent decoder still waits for its own state; masked attention trains on all steps at once.
#
# How bad is it? We take the models without attention, rows of nine symbols, and let each say every row twice.

# %%
predict("perfect_rows")

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
source = rows(512, 9, torch.Generator().manual_seed(5))
gold = source.flip(1)
runs = [(model.write(source, gold), model.write(source)) for model in plain]
for forced, free in runs:
    symbols = [(said == gold).double().mean().item() for said in (forced, free)]
    perfect = [int((said == gold).all(dim=1).sum()) for said in (forced, free)]
    told = f"perfect rows of 512: {perfect[0]} and {perfect[1]}"
    print(f"symbols right: {symbols[0]:.1%} forced, {symbols[1]:.1%} free; {told}")
    assert perfect[0] == perfect[1]

# %% [markdown]
# Free running costs five to ten symbols in a hundred, and **not one perfect row**. The two counts are equal, to the
# row, for every model and every seed, and this is no measurement but a proof. Try to find it before you read on.
#
# <details><summary>The proof</summary>
#
# Both runs start with the same symbol and the same state. As long as all they have said is right, the free run has
# read exactly the true words. So up to the *first* error they are one and the same run, and make that error together.
# A row without an error is never left by either.
#
# </details>
#
# So exposure bias is only what comes *after* the first error. To measure it, count there.
#
# ### Exercise 10 · After the first error  (4 points · 8 min · ●●)
#
# Three rows of equal length, of at least one word: what the forced run said, what the free run said, and what is
# right. Up to the first error the two runs say the same, and make that error together. Return the list
# `[forced, free]` (not an array): the share of words that each got right on the places *after* the first error. Return None if there is no error, or
# nothing after it.

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
check(after_the_first_error)
### BEGIN HIDDEN TESTS
check(after_the_first_error, hidden=True)
### END HIDDEN TESTS

# %%
figures.forced_and_free(runs[0][0] == gold, runs[0][1] == gold)

# %% tags=["nbval-ignore-output", "because training ends in other digits on another processor"]
def after_errors(forced: Tensor, free: Tensor, gold: Tensor) -> list[float]:
    """The shares of right symbols after the first error of each row, over all rows."""
    wrong = free != gold
    after = wrong.cumsum(dim=1) - wrong.long() > 0
    return [(said == gold)[after].double().mean().item() for said in (forced, free)]


afterwards = [after_errors(forced, free, gold) for forced, free in runs]
for number, (forced_share, free_share) in enumerate(afterwards):
    print(f"seed {number}: after the first error {forced_share:.0%} right with a teacher, {free_share:.0%} without")

# %% [markdown]
# With the teacher, an error changes nothing: the next word is as good as any. Without, four in ten of the following
# words are wrong: the decoder reads a wrong word as if it were true, and continues a row that was never asked for.
#
# **In real models.** *Scheduled sampling* lets the model read its own words now and then in training (Bengio et al.,
# 2015). For open-ended text the harm was found limited, and models recover by themselves (He et al., 2021): a story
# has many good next words, our task has one. What the proof says holds for them all: a model that always says the
# likeliest word makes the same first error with a teacher and without.
#
# ## What to keep
#
# | | recurrent network | LSTM | attention |
# | --- | --- | --- | --- |
# | keeps of $n$ words | $d$ numbers | $2d$ numbers | $n \cdot d$ numbers |
# | memory per word of context | none | none | $d$ numbers |
# | steps one after the other | $n$ | $n$ | 1 |
# | moves from first to last | $n - 1$ | $n - 1$ | 1 |
# | a gradient 50 steps back | below a billionth at a radius of 1 | the same, until the forget gate is opened | one step away |
# | arithmetic of a layer | $\propto n$ | $\propto n$ | $\propto n^2$ |
#
# ## Check yourself
#
# 1. A network with $W_h = 0$: what does it still know of the word before?
# 2. Your `through_time` for $w = 0$ is not zero. Why not?
# 3. A tanh network with a radius of 1.5 fades with inputs, and does not without. What changes in $J_t$?
# 4. A forget gate of 0.99: after how many steps is half of the cell left? And with 0.9?
# 5. A window of 4,096 words and 32 layers. How far apart may two words be, so that one can hear of the other?
# 6. You set $T = 10^{-4}$ in a trained attention layer. What happens to the gradients of the scores?
# 7. Why is the largest weight not always on the right word, although the model says the right one?
#
# <details><summary>Answers</summary>
#
# 1. Nothing. Each state depends on its own word alone.
# 2. The last step multiplies $w$ by $h_{T-1}$, which is not zero: $(1 - h_T^2)\,h_{T-1}$ is left.
# 3. The slopes $1 - h_t^2$. Inputs push states towards ±1, where they are small.
# 4. $\ln 2 / -\ln 0.99 = 69$ steps; with 0.9 fewer than seven.
# 5. $32 \cdot 4095 = 131{,}040$ words: each layer carries 4,095 further.
# 6. The weights become 0 and 1, and the gradients vanish nearly everywhere: it is a table again.
# 7. The encoder's states know their neighbours, so a word can be read from the state next to it; and the decoder's
#    own state remembers something as well.
#
# </details>
#
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
#   *Mamba*.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you
# like.)

# %% tags=["hide-input"]
assert max(were["keys", 0.5], were["keys", 1.0], were["key", 2.0]) < 0.3 and were["keys", 2.0] > 0.95
assert round(math.tanh(2 * 0.96 - 0.3), 2) == 0.92
assert [round(math.tanh(1), 3), round(math.tanh(0.5 * math.tanh(0.5 * math.tanh(1) - 0.5) + 1), 3)] == [0.762, 0.736]
parameters = 10_000 * 128 + 512 * 512 + 512 * 128 + 512 + 10_000 * 512 + 10_000 + 512
assert (parameters, 10_000 * 128 + 512) == (6_738_704, 1_280_512) and 0.18 < 1_280_512 / 6_738_704 < 0.2
assert [round(number, 3) for number in (math.tanh(0.5), math.tanh(math.tanh(0.5) / 2))] == [0.462, 0.227]
left = {
    name: [figures.gradient_norms(*settings, seed=seed)[50].item() for seed in range(3)]
    for name, settings in {
        "tanh 1": ("tanh", 1.0), "tanh 1.5": ("tanh", 1.5), "linear 1": ("linear", 1.0), "linear 1.5": ("linear", 1.5),
        "fresh": ("lstm",), "bias 1": ("lstm", 1.0, 1.0), "bias 3": ("lstm", 1.0, 3.0), "no inputs": ("tanh", 1.0, None, 0.0),
    }.items()
}  # fmt: skip
assert max(left["tanh 1"]) < 1e-9 and max(left["tanh 1.5"]) < 1e-3 and min(left["linear 1.5"]) > 1e7
assert max(left["fresh"]) < 1e-9 and min(left["bias 1"]) > 1e-6 and max(left["bias 1"]) < 1e-3
assert min(left["bias 3"]) > 0.1 and max(left["bias 3"]) < 10 and min(left["linear 1"] + left["no inputs"]) > 0.01
assert max(left["linear 1"]) < 1
assert max(beyond) < 0.03 and difference < 1e-12 and min(ways) > 4 * figures.sigmoid(3) ** 50
alone = {bias: math.log(0.5) / math.log(figures.sigmoid(bias)) for bias in spans}
assert all(max(spans[bias]) < alone[bias] + 4 for bias in (0, 1, 2)) and [min(spans[3]), max(spans[3])] == [29, 120]
assert 2 * alone[3] < min(spans[3]) and max(spans[3]) < 9 * alone[3] and None in spans[4]
gates = [round(1 / (1 + math.exp(-bias)), 2) for bias in (1, 3)]
assert round(figures.sigmoid(3), 3) == 0.953 and round(0.953**50, 2) == 0.09
assert gates == [0.73, 0.95] and -15.1 < math.log10(0.5**50) < -15 and round(0.9 * 0.8 - 0.5 * 0.4, 2) == 0.52
assert 39 < math.log2(10**12) < 40 and rounds == 7 and 32 * 4095 == 131_040
answers = [
    sum(math.exp(score / T) * value for score, value in zip((2, 0, -2), (10, 20, 30), strict=True))
    / sum(math.exp(score / T) for score in (2, 0, -2))
    for T in (0.1, 1, 1e6)
]
assert [round(answer, 2) for answer in answers] == [10.0, 11.49, 20.0]
assert [round(math.exp(2) / (math.exp(2) + 1) * scale, 3) for scale in (1, 2)] == [0.881, 1.762]
assert min(shares["one state"][3]) > 0.9 and max(shares["one state"][12]) < 0.2
assert min(shares["attention"][12]) > 0.5 and min(mirrored) > 0.85
assert max(shares["attention"][20] + shares["one state"][20]) < 0.15
for forced, free in runs:
    same = (forced == gold).all(dim=1) == (free == gold).all(dim=1)
    assert same.all() and 0.045 < ((forced == gold).double().mean() - (free == gold).double().mean()).item() < 0.105
assert all(forced_share > 0.85 and 0.4 < free_share < 0.75 for forced_share, free_share in afterwards)
assert round(math.log(2) / -math.log(0.99)) == 69 and math.log(2) / -math.log(0.9) < 7
