# %% [markdown]
# # 05 · Language models
#
# **90 min · 10 exercises · 24 points**
#
# x

# %%
import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.notebook import check, explore, hint, predict, start

start("05-language-models")

# %% [markdown]
# ### Exercise 1 · Is it a distribution?  (1 point · 4 min · ●)

# %% exercise="is_distribution"
def is_distribution(v: Float[Tensor, "v"]) -> bool:
    """Whether v is a probability distribution over its entries, up to rounding."""
    ### BEGIN SOLUTION
    tolerance = 1e-2 if v.dtype in (torch.float16, torch.bfloat16) else 1e-5
    wide = v.double()
    return bool((wide >= 0).all() and abs(wide.sum().item() - 1) <= tolerance)
    ### END SOLUTION


# %% check="is_distribution"
check(is_distribution)
### BEGIN HIDDEN TESTS
check(is_distribution, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 2 · The probability of a text  (2 points · 6 min · ●●)

# %% exercise="text_log_probability"
def text_log_probability(next_probabilities: Callable[[tuple[int, ...]], list[float]], text: list[int]) -> float:
    """ln of the probability of the whole text, in nats."""
    ### BEGIN SOLUTION
    total = 0.0
    for t, word in enumerate(text):
        p = next_probabilities(tuple(text[:t]))[word]
        if p == 0:
            return -math.inf
        total += math.log(p)
    return total
    ### END SOLUTION


# %% check="text_log_probability"
check(text_log_probability)
### BEGIN HIDDEN TESTS
check(text_log_probability, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 3 · The price  (2 points · 5 min · ●)

# %% exercise="cross_entropy"
def cross_entropy(p: list[float], q: list[float], base: float = math.e) -> float:
    """The mean surprise of q's owner where p is the truth, in units of log base `base`."""
    ### BEGIN SOLUTION
    total = 0.0
    for truth, model in zip(p, q, strict=True):
        if truth > 0:
            total -= truth * math.log(model) if model > 0 else -math.inf
    return total / math.log(base)
    ### END SOLUTION


# %% check="cross_entropy"
check(cross_entropy)
### BEGIN HIDDEN TESTS
check(cross_entropy, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 4 · The loss of training  (4 points · 9 min · ●●)

# %% exercise="next_token_loss"
def next_token_loss(logits: Float[Tensor, "b s v"], tokens: Int[Tensor, "b s"]) -> Float[Tensor, ""]:
    """The mean of −ln p over all next tokens of a batch."""
    ### BEGIN SOLUTION
    if tokens.shape[1] < 2:
        raise ValueError("a text of one token holds nothing to predict")
    if logits.dtype != torch.float64:
        logits = logits.float()
    log_p = logits[:, :-1].log_softmax(dim=-1)
    return -log_p.gather(-1, tokens[:, 1:, None]).mean()
    ### END SOLUTION


# %% check="next_token_loss"
check(next_token_loss)
### BEGIN HIDDEN TESTS
check(next_token_loss, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 5 · The first loss  (1 point · 2 min · ●)

# %% exercise="first_loss"
first_loss = None  # a number in place of None
### BEGIN SOLUTION
first_loss = math.log(128_256)
### END SOLUTION

# %% check="first_loss"
check(first_loss=first_loss)
### BEGIN HIDDEN TESTS
check(first_loss=first_loss, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 6 · Count  (3 points · 9 min · ●●)

# %% exercise="ngram"
def ngram(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    """The probability of each word 0 … vocabulary − 1 after the context, counted in the text."""
    ### BEGIN SOLUTION
    n, counts = len(context), [0] * vocabulary
    for start in range(len(text) - n):
        if text[start : start + n] == context:
            counts[text[start + n]] += 1
    if not any(counts):
        raise ValueError(f"nothing was ever seen after {context}")
    return [count / sum(counts) for count in counts]
    ### END SOLUTION


# %% check="ngram"
check(ngram)
### BEGIN HIDDEN TESTS
check(ngram, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 7 · The entropy of a source  (4 points · 10 min · ●●●)

# %% exercise="entropy_rate"
def entropy_rate(P: Float[Tensor, "v v"]) -> float:
    """Nats per word of an endless text in which word j follows word i with probability P[i, j]."""
    ### BEGIN SOLUTION
    v = len(P)
    balance = P.T - torch.eye(v)
    balance[-1] = 1
    total = torch.zeros(v, dtype=P.dtype)
    total[-1] = 1
    shares = torch.linalg.solve(balance, total)
    return -(shares @ torch.special.xlogy(P, P).sum(dim=1)).item()
    ### END SOLUTION


# %% check="entropy_rate"
check(entropy_rate)
### BEGIN HIDDEN TESTS
check(entropy_rate, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 8 · Bits per byte  (2 points · 4 min · ●)

# %% exercise="bits_per_byte"
def bits_per_byte(loss: float, tokens: int, text: str) -> float:
    """The price of the text in bits per byte, from the mean loss in nats per token."""
    ### BEGIN SOLUTION
    return loss * tokens / math.log(2) / len(text.encode())
    ### END SOLUTION


# %% check="bits_per_byte"
check(bits_per_byte)
### BEGIN HIDDEN TESTS
check(bits_per_byte, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 9 · a is to b as c is to …  (3 points · 7 min · ●●)

# %% exercise="analogy"
def analogy(E: Float[Tensor, "v d"], a: int, b: int, c: int) -> int:
    """The word whose vector is most like E[b] − E[a] + E[c] in direction, other than a, b and c."""
    ### BEGIN SOLUTION
    target = E[b] - E[a] + E[c]
    lengths = E.norm(dim=1)
    cosines = E @ target / lengths
    cosines[lengths == 0] = -math.inf
    cosines[[a, b, c]] = -math.inf
    return cosines.argmax().item()
    ### END SOLUTION


# %% check="analogy"
check(analogy)
### BEGIN HIDDEN TESTS
check(analogy, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 10 · Reading to write  (2 points · 4 min · ●)

# %% exercise="tokens_read"
def tokens_read(prompt: int, new: int, reuse: bool) -> int:
    """How many tokens a model computes to write `new` tokens after a prompt."""
    ### BEGIN SOLUTION
    if prompt < 1:
        raise ValueError("there is nothing to continue")
    if new == 0:
        return 0
    return prompt + new - 1 if reuse else sum(range(prompt, prompt + new))
    ### END SOLUTION


# %% check="tokens_read"
check(tokens_read)
### BEGIN HIDDEN TESTS
check(tokens_read, hidden=True)
### END HIDDEN TESTS
