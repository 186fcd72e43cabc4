# %% [markdown]
# # 06 · Recurrence and attention
#
# **110 min · 10 exercises · 29 points**
#
# x
#
# **You will be able to**
#
# - x
#
# **You need** x

# %%
import math
from fractions import Fraction

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.notebook import check, explore, hint, predict, start

start("06-recurrence-and-attention")

# %% [markdown]
# ### Exercise 1 · A network that reads  (3 points · 9 min · ●●)

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
# ### Exercise 2 · How many numbers it learns  (2 points · 4 min · ●)

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
# ### Exercise 3 · Through time  (3 points · 10 min · ●●●)

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
# ### Exercise 4 · What is left of a gradient  (3 points · 8 min · ●●)

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
# ### Exercise 5 · A step of an LSTM  (3 points · 9 min · ●●)

# %% exercise="lstm_step"
def lstm_step(
    x: Float[Tensor, "b e"],
    h: Float[Tensor, "b d"],
    c: Float[Tensor, "b d"],
    W: Float[Tensor, "4d e"],
    U: Float[Tensor, "4d d"],
    b: Float[Tensor, "4d"],
) -> tuple[Float[Tensor, "b d"], Float[Tensor, "b d"]]:
    """The new h and c after one more input."""
    ### BEGIN SOLUTION
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c
    ### END SOLUTION


# %% check="lstm_step"
check(lstm_step)
### BEGIN HIDDEN TESTS
check(lstm_step, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 6 · Who waits for whom?  (3 points · 7 min · ●●)

# %% exercise="waiting"
def waiting(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    """Steps one after the other, and moves from the first word to the last."""
    ### BEGIN SOLUTION
    if kind == "rnn":
        return n + layers - 1, n - 1
    if kind == "attention":
        return layers, min(n - 1, 1)
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
# ### Exercise 7 · A table that blends  (3 points · 7 min · ●●)

# %% exercise="soft_lookup"
def soft_lookup(
    query: Float[Tensor, "d"], keys: Float[Tensor, "n d"], values: Float[Tensor, "n v"], temperature: float
) -> Float[Tensor, "v"]:
    """The average of the values, weighted by how well their keys match the query."""
    ### BEGIN SOLUTION
    scores = keys @ query
    if temperature == 0:
        return values[scores == scores.max()].mean(dim=0)
    return (scores / temperature).softmax(dim=0) @ values
    ### END SOLUTION


# %% check="soft_lookup"
check(soft_lookup)
### BEGIN HIDDEN TESTS
check(soft_lookup, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 8 · Attention to the source  (4 points · 9 min · ●●)

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
# ### Exercise 9 · What the decoder reads  (1 point · 3 min · ●)

# %% exercise="teacher_inputs"
def teacher_inputs(target: Int[Tensor, "b s"], start: int) -> Int[Tensor, "b s"]:
    """What the decoder reads while it has to say `target`."""
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
# ### Exercise 10 · After the first error  (4 points · 8 min · ●●)

# %% exercise="after_the_first_error"
def after_the_first_error(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    """The share of words that the forced run and the free one got right after the first error."""
    ### BEGIN SOLUTION
    errors = [place for place in range(len(gold)) if free[place] != gold[place]]
    if not errors or errors[0] == len(gold) - 1:
        return None
    rest = range(errors[0] + 1, len(gold))
    return [sum(said[place] == gold[place] for place in rest) / len(rest) for said in (forced, free)]
    ### END SOLUTION


# %% check="after_the_first_error"
check(after_the_first_error)
### BEGIN HIDDEN TESTS
check(after_the_first_error, hidden=True)
### END HIDDEN TESTS
