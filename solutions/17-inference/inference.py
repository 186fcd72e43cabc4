# %% [markdown]
# # 17 · Inference
#
# **145 min · 10 exercises · 30 points**
#
# A trained model gives you probabilities. *Which text do you make of them, and what does each word of it cost?*
#
# The first half is about choosing. Every rule between "always the likeliest" and "draw" trades dull repetition for
# nonsense. The second half is about paying: to write one token, the chip reads all weights and the whole cache from its
# memory. Servers use caches, batches, pages and drafts because of that one sentence. You will measure it with a cache
# that you wrote yourself.
#
# **You will be able to**
#
# - sample with temperature, top-k, top-p and min-p, and say what each does to the text;
# - write a KV cache that can also forget, and make a model write with it;
# - predict the time of a prefill and of a decoding step, say what limits it, and test the prediction on your machine;
# - let a small model guess for a large one, and prove what that does to the text.
#
# **You need** logits and cross-entropy (notebook 05), and causal attention (08). No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run
# it again for the next one.

# %%
import copy
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.kv_cache import batch_where_cache_exceeds_weights, bytes_per_token, cache_bytes
from lmcourse.accounting.latency import compute_bound_tokens, forward_operations, roofline_seconds
from lmcourse.accounting.machine import matmul_rates
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.timing import make_stopwatch, synchronise, time_interleaved
from lmcourse.chapters.inference import figures
from lmcourse.chapters.inference.shared_keys import LOSSES, config_of
from lmcourse.data.token_file import TokenFile
from lmcourse.inference.beam import beam_search
from lmcourse.inference.cache import Cache
from lmcourse.inference.generate import generate
from lmcourse.inference.sampling import Sampling
from lmcourse.inference.weight_only import narrow_weights
from lmcourse.models.ngram import NGram
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.styles import llama_like
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.plots import alt_text
from lmcourse.pretrained import load_pretrained, pretrained_folder
from lmcourse.root import find_root
from lmcourse.widgets import Log

start("17-inference")
torch.set_num_threads(1)  # the models are small, and fastest on one

# %% [markdown]
# ## 1 · One token, then another
#
# A language model writes in a loop: it predicts the next token, one token is appended, and it predicts again. Always
# taking the likeliest token is called **greedy** decoding. It looks like the best you can do.

# %%
predict("greedy_or_best")

# %% [markdown]
# By hand, for a language of two-letter texts. The first letter is *a* or *b*:

# %%
FIRST = {"a": 0.6, "b": 0.4}
THEN = {"a": {"c": 0.35, "d": 0.33, "e": 0.32}, "b": {"c": 0.9, "d": 0.05, "e": 0.05}}
figures.text_tree(FIRST, THEN)

# %% [markdown]
# Greedy decoding follows the thick line: *a* is likelier than *b*, and *c* is the likeliest after *a*. That text has a
# probability of $0.6 \cdot 0.35 = 0.21$. Look for a better one among the numbers on the right.
#
# ### Exercise 1 · The best text  (2 points · 6 min · ●)
#
# `first` holds the probabilities of the first token. `then[x]` holds the probabilities of the token after `x`. If `x` is
# not in `then`, or `then[x]` is empty, nothing follows `x`, and `x` makes no text. Return the likeliest *pair* of tokens,
# joined to a text, and its probability. Of equally likely pairs, take the one whose text comes first in the alphabet.
# Raise `ValueError` if there is no pair. (Two pairs may make the same text. Their probabilities are not added.)

# %% exercise="best_text"
def best_text(first: dict[str, float], then: dict[str, dict[str, float]]) -> tuple[str, float]:
    """Return the text of the likeliest pair of tokens, and its probability."""
    ### BEGIN SOLUTION
    texts = [(-p * q, x + y) for x, p in first.items() for y, q in then.get(x, {}).items()]
    negative, text = min(texts)  # the least of nothing is a ValueError
    return text, -negative
    ### END SOLUTION


# %% check="best_text"
check(best_text)
### BEGIN HIDDEN TESTS
check(best_text, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# With two tokens you can try everything. With 40 tokens from a vocabulary of 50,000 there are $50{,}000^{40}$ texts, so
# no real decoder tries them all. Section 4 shows what happens if you search harder. First: do you *want* the likeliest
# text at all?

# %% [markdown]
# ## 2 · Bending the distribution
#
# The opposite of greedy is to **draw** each token with its own probability. Then a token with a probability of $10^{-5}$
# is drawn once in a hundred thousand times. But a vocabulary of 50,000 may hold 30,000 of them: together they have 30 %.
# These unlikely tokens are called the *tail*, and one bad token spoils all that follows. So nearly every program bends
# the distribution before it draws. Four rules are common. The first divides the logits by a **temperature** $T$:
#
# $$p_i = \frac{e^{z_i / T}}{\sum_j e^{z_j / T}}$$
#
# Below 1 the likely tokens gain, above 1 the unlikely ones. By hand, for the logits 2, 1, 0:

# %%
for T in (0.5, 1.0, 2.0):
    print(f"T = {T}:", [round(p, 4) for p in (torch.tensor([2.0, 1.0, 0.0]) / T).softmax(dim=0).tolist()])

# %% [markdown]
# ### Exercise 2 · Temperature  (2 points · 5 min · ●)
#
# Return each row's probabilities at this temperature, in float32. The logits may come in half precision: convert them
# before you divide. A temperature of 0 means greedy: 1 for the best token of each row, 0 for all others, and of equally
# good tokens the first. Any temperature above 0, even $10^{-30}$, divides. Logits of $-\infty$ are allowed (but not a whole
# row of them). A negative temperature raises `ValueError`.

# %% exercise="temperature_probabilities"
def temperature_probabilities(logits: Float[Tensor, "b v"], temperature: float) -> Float[Tensor, "b v"]:
    """Return each row's probabilities at this temperature; at 0 the best token has all."""
    ### BEGIN SOLUTION
    if temperature < 0:
        raise ValueError(f"a temperature cannot be negative: {temperature}")
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(dim=-1), logits.shape[-1]).float()
    return (logits.float() / temperature).softmax(dim=-1)
    ### END SOLUTION


# %% check="temperature_probabilities"
check(temperature_probabilities)
### BEGIN HIDDEN TESTS
check(temperature_probabilities, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# A temperature per token is not a temperature of the *text*. Take the little language of section 1. You can draw each
# letter at $T = 0.5$. Or you can square the probabilities of whole *texts* and normalise them. The results differ:

# %%
def squared(probabilities: dict[str, float]) -> dict[str, float]:
    """At temperature 1/2: the squares, divided by their sum."""
    total = sum(p**2 for p in probabilities.values())
    return {name: p**2 / total for name, p in probabilities.items()}


texts = {x + y: p * q for x, p in FIRST.items() for y, q in THEN[x].items()}
by_token = {x + y: p * q for x, p in squared(FIRST).items() for y, q in squared(THEN[x]).items()}
print(f"'bc': {texts['bc']:.3f} at T = 1, {by_token['bc']:.3f} token by token, {squared(texts)['bc']:.3f} as a text")

# %% [markdown]
# Cold tokens do not make cold texts: the first letter is drawn before the second one is known.
#
# The other three rules cut off the tail, and leave the other logits as they are:
#
# - **top-k** keeps the $k$ likeliest tokens (Fan et al., 2018);
# - **top-p**, or nucleus sampling, keeps likely tokens up to a total probability $p$ (Holtzman et al., 2020);
# - **min-p** keeps the tokens that are at least $p$ times as likely as the likeliest (Nguyen et al., 2024).

# %%
predict("top_p_keeps")

# %% [markdown]
# ### Exercise 3 · Three filters  (4 points · 14 min · ●●●)
#
# Return the logits, with $-\infty$ where a token is out. Everything else stays as it came: same dtype, same places. A rule
# that is `None` does nothing. Apply top-k, then top-p, then min-p. Each rule sees the tokens that the rule before it
# has left, normalised again, with probabilities in float32 (or float64).
#
# - top-k keeps the `top_k` likeliest tokens, or all if there are fewer.
# - top-p sorts by probability. A token stays if the tokens *before* it have less than (or at most) `top_p`
#   together. With `top_p` = 1 everything stays.
# - min-p keeps a token if its probability is at least `min_p` times the best token's.
#
# It is up to you which of several equal logits stay at the limit of top-k or top-p, and whether a token stays if those
# before it have exactly `top_p`. Raise `ValueError` if `top_k` is below 1, or if `top_p` or `min_p` is not above 0 and at
# most 1. A logit that is $-\infty$ already stays so.

# %% exercise="filter_logits"
def filter_logits(
    logits: Float[Tensor, "b v"], top_k: int | None, top_p: float | None, min_p: float | None
) -> Float[Tensor, "b v"]:
    """Return the logits, with −∞ where a rule takes a token out: first top-k, then top-p, then min-p."""
    ### BEGIN SOLUTION
    if top_k is not None and top_k < 1:
        raise ValueError(f"top-k keeps at least one token, not {top_k}")
    for share in (top_p, min_p):
        if share is not None and not 0 < share <= 1:
            raise ValueError(f"a share is above 0 and at most 1, not {share}")
    order = logits.argsort(dim=-1, descending=True)
    if top_k is not None:
        logits = logits.scatter(-1, order[:, top_k:], -math.inf)
    if top_p is not None and top_p < 1:
        p = logits.float().softmax(dim=-1).gather(-1, order)
        out = p.cumsum(dim=-1) - p >= top_p
        logits = logits.masked_fill(out.gather(-1, order.argsort(dim=-1)), -math.inf)
    if min_p is not None:
        limit = logits.float().amax(dim=-1, keepdim=True) + math.log(min_p)
        logits = logits.masked_fill(logits.float() < limit, -math.inf)
    return logits
    ### END SOLUTION


# %% check="filter_logits"
check(filter_logits)
### BEGIN HIDDEN TESTS
check(filter_logits, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# See the rules at work on the model that comes with the course: four layers, trained on the help texts of Python. On the
# left you see its prediction in grey, and in blue the same after the rules. On the right are 30 tokens drawn by these
# rules. Try both beginnings. After "The value of the exp" the model is sure; after "The" many tokens are possible. Is
# there a *k* that suits both? Then set the temperature to 2, and try to save the text with each of the three rules alone.

# %%
explore(
    figures.next_token,
    beginning=list(figures.BEGINNINGS),
    temperature=Log(0.1, 4.0),
    top_k=[1, 2, 5, 20, 512],
    top_p=(0.05, 1.0),
    min_p=(0.0, 0.5),
)

# %% [markdown]
# **In real models.** `transformers`, vLLM and llama.cpp have all four rules. Some apply the temperature first, some last,
# and the order changes which tokens top-p and min-p keep. In the paper on min-p, human judges prefer it at high
# temperatures; others have disputed that evaluation.

# %% [markdown]
# ## 3 · Which rule writes well?
#
# Only a reader can say. But one thing can be measured without a reader: how surprised a model is by the text that it
# wrote. The surprise at a token is $-\ln p$ of that token. Before the token is drawn, the model *expects* a surprise: the
# entropy of its prediction.

# %%
predict("surprise_of_its_own_text")

# %%
trained = load_pretrained()
model, tokenizer = trained.model.double(), trained.tokenizer
PROMPTS = [tokenizer.encode(text) for text in ("The ", "If the ", "A function ", "When ", "This ", "It is ", "For ", "An object ")]


@torch.no_grad()
def surprise_and_entropy(written: list[list[int]]) -> tuple[float, float]:
    """Return the mean −ln p of the tokens of texts, and the mean entropy of the predictions, in nats per token."""
    tokens = torch.tensor(written)
    log_p = model(tokens[:, :-1]).log_softmax(dim=-1)
    surprise = -log_p.gather(-1, tokens[:, 1:, None]).mean()
    return surprise.item(), -(log_p.exp() * log_p).sum(dim=-1).mean().item()


def variety(written: list[list[int]], n: int = 4) -> float:
    """Return the fraction of n-grams of tokens that are different, averaged over texts."""
    shares = [len({tuple(text[i : i + n]) for i in range(len(text) - n + 1)}) / (len(text) - n + 1) for text in written]
    return sum(shares) / len(shares)


RULES = {
    "greedy": Sampling(0),
    "T = 0.5": Sampling(0.5),
    "T = 0.7": Sampling(0.7),
    "T = 1": Sampling(1.0),
    "T = 1.5": Sampling(1.5),
    "T = 2": Sampling(2.0),
    "T = 2, top-k 5": Sampling(2.0, top_k=5),
    "T = 2, top-p 0.9": Sampling(2.0, top_p=0.9),
    "T = 2, min-p 0.1": Sampling(2.0, min_p=0.1),
}
samples = {
    name: generate(model, 3 * PROMPTS, 100, rule, generator=torch.Generator().manual_seed(0)) for name, rule in RULES.items()
}
measured = {name: (*surprise_and_entropy(written), variety(written)) for name, written in samples.items()}
print("rule                surprise   entropy   4-grams that differ")
for name, (surprise, entropy, differ) in measured.items():
    print(f"{name:18}{surprise:10.1f}{entropy:10.1f}{differ:16.0%}")

# %%
figures.calibration({name: found[:2] for name, found in measured.items()})

# %% [markdown]
# At $T = 1$ both are nearly the same: the model is as surprised by its own text as it expected to be. Greedy text is *too*
# probable, with half the expected surprise, and it repeats itself. At $T = 2$ the model is more than twice as surprised as
# it expected: one token from the tail leads to a context that it has never seen, and there it can only guess. With the
# tail cut off, the same temperature does little harm. Min-p and top-p both cut. Why does top-p at 0.9 do so little here?
# A hot distribution is flat, and nine tenths of a flat distribution contain most of its tail.

# %%
for name in ("greedy", "T = 0.7", "T = 2", "T = 2, min-p 0.1"):
    print(f"{name}: {tokenizer.decode(samples[name][0])[:80]!r}")

# %% [markdown]
# **In real models.** Holtzman et al. (2020) saw the same in GPT-2. The likeliest text repeats itself, and each repetition
# makes the next one likelier. Human text is full of surprises that greedy decoding would never choose.

# %% [markdown]
# ## 4 · Searching for the best text
#
# Perhaps greedy decoding is dull because it misses the best text, as in section 1. **Beam search** searches harder: it
# keeps the few best beginnings (the *beams*), tries every token after each, and keeps the best ones again. Let it find a
# sentence that begins with "An object ", up to a full stop:

# %%
full_stops = [token for token in range(tokenizer.vocab_size) if tokenizer.decode([token]).endswith(".")]
for prompt in ("An object ", "When the "):
    for beams in (1, 4, 16, 64):
        best = beam_search(model, tokenizer.encode(prompt), 40, beams, full_stops, alpha=0.0)[0]
        print(f"{beams:3} beams   ln p = {best.log_probability:6.2f}   {prompt + tokenizer.decode(best.tokens)!r}")

# %% [markdown]
# With more beams the text gets likelier, or stays the same. But these are not sentences: they are fragments that end at
# once. Every further token lowers the probability, so the likeliest text is a short one. That is why beam search has a
# *length penalty*, and why it is used for translation and transcription, where there is little to choose, and not for
# conversation.
#
# **In real models.** Stahlberg & Byrne (2019) searched a translation model *exactly*. For more than half of the sentences
# its best translation was the empty one.

# %% [markdown]
# ## 5 · What was new in that step?
#
# To write $n$ tokens, the model reads a text that grows by one token each time. Nearly all of it was there before. Which
# of the numbers that it computed can you keep?
#
# A colleague claims that in a cache everything shifts by one place with every new token, in every layer. Write a test for
# such claims, and let a model answer.
#
# ### Exercise 4 · What stays the same?  (2 points · 8 min · ●●)
#
# `before` and `after` hold one tensor for each layer, with a vector for each token: `before` of a text, `after` of the text
# one step later. Return for each layer whether `after[i - shift]` equals `before[i]` for *every* `i` for which both exist
# (an index below 0 does not exist). Two vectors are equal if no entry differs by more than 1e-5. The two texts may have
# different lengths. If there is no such `i`, the test has seen nothing: return `False` for that layer.

# %% exercise="unchanged"
def unchanged(before: list[Float[Tensor, "s d"]], after: list[Float[Tensor, "t d"]], shift: int) -> list[bool]:
    """Return for each layer whether after[i − shift] equals before[i], for every i for which both exist."""
    ### BEGIN SOLUTION
    def agree(old: Tensor, new: Tensor) -> bool:
        gaps = [(x - new[i - shift]).abs().max() for i, x in enumerate(old) if 0 <= i - shift < len(new)]
        return len(gaps) > 0 and bool(max(gaps) <= 1e-5)

    return list(map(agree, before, after))
    ### END SOLUTION


# %% check="unchanged"
check(unchanged)
### BEGIN HIDDEN TESTS
check(unchanged, hidden=True)
### END HIDDEN TESTS

# %%
@torch.no_grad()
def states(tokens: Sequence[int]) -> list[Tensor]:
    """Return what each layer of the trained model reads, a row per token, and at last what the head reads."""
    found: list[Tensor] = []
    handles = [block.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0][0])) for block in model.blocks]
    handles.append(model.head.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0][0])))
    model(torch.tensor([tokens]))
    for handle in handles:
        handle.remove()
    return found


sentence = tokenizer.encode("The value of an expression is the result of")
with your("unchanged"):
    print("one token more, no shift:    ", unchanged(states(sentence[:-1]), states(sentence), 0))
    print("the colleague's claim:       ", unchanged(states(sentence[:-1]), states(sentence), -1))
    print("a window that moved by one:  ", unchanged(states(sentence[:-1]), states(sentence[1:]), 1))

# %% [markdown]
# A growing text shifts nothing. Under a causal mask no old token sees the new one, so in every layer the vectors of the
# old tokens stay as they are. A *window* that drops its first token moves everything one place to the front. And then
# only the input of the first layer is the same: the deeper vectors depend on the token that is gone. (So a cache for a
# window keeps keys that still depend on dropped tokens. That is a different model, not a mistake.)
#
# Of the old tokens, only the keys and values are needed again, because an old query has had its answer. A cache that
# keeps the queries too is half as large again as it must be. A cache of keys and queries lacks half of what it needs.
#
# ### Exercise 5 · A cache that can forget  (4 points · 14 min · ●●●)
#
# In notebook 08 you attended with a cache, and `torch.cat` copied it at each step. Now build one as servers have it, for
# all layers of a model:
#
# - `append(layer, k, v)` adds the keys and values of `n` new tokens, shape (b, h, n, d), to a layer, and returns *all*
#   that the layer now holds. Allocate memory for `capacity` tokens at the layer's first call (or earlier), in the dtype of
#   `k`. From then on write into it and return views of it, so that nothing is copied twice. If the tokens do not fit,
#   raise `ValueError` and keep the tokens as they were (a first call may have allocated).
# - `len(cache)` is the number of tokens that *every* layer holds. In the middle of a pass the first layers hold more.
# - `truncate(tokens)` makes every layer hold its first `tokens` tokens and no others. Raise `ValueError` if `tokens` is
#   negative or more than `len(cache)`. (Sections 7 and 10 need it.)
# - `nbytes` is the allocated memory, used or not. Before the first `append` nothing is allocated. The check looks at
#   `nbytes` after *every* layer has had its first call.

# %% exercise="KVCache"
class KVCache:
    """Keys and values of earlier tokens, in memory that is allocated once per layer.

    Args:
        layers: the number of layers of the model.
        capacity: the longest text, in tokens.
    """

    def __init__(self, layers: int, capacity: int) -> None:
        ### BEGIN SOLUTION
        self.capacity = capacity
        self.memory: list[Tensor | None] = [None] * layers
        self.lengths = [0] * layers
        ### END SOLUTION

    def __len__(self) -> int:
        """Return the number of tokens that every layer holds."""
        ### BEGIN SOLUTION
        return min(self.lengths)
        ### END SOLUTION

    @property
    def nbytes(self) -> int:
        """The allocated memory, in bytes."""
        ### BEGIN SOLUTION
        return sum(memory.nbytes for memory in self.memory if memory is not None)
        ### END SOLUTION

    def append(
        self, layer: int, k: Float[Tensor, "b h n d"], v: Float[Tensor, "b h n d"]
    ) -> tuple[Float[Tensor, "b h t d"], Float[Tensor, "b h t d"]]:
        """Add the keys and values of n new tokens to a layer; return all that it holds now."""
        ### BEGIN SOLUTION
        b, h, n, d = k.shape
        start, end = self.lengths[layer], self.lengths[layer] + n
        if end > self.capacity:
            raise ValueError(f"{end} tokens in a cache for {self.capacity}")
        if self.memory[layer] is None:
            self.memory[layer] = k.new_zeros(2, b, h, self.capacity, d)
        keys, values = self.memory[layer]
        keys[:, :, start:end], values[:, :, start:end] = k, v
        self.lengths[layer] = end
        return keys[:, :, :end], values[:, :, :end]
        ### END SOLUTION

    def truncate(self, tokens: int) -> None:
        """Keep the first `tokens` tokens of every layer and forget the rest."""
        ### BEGIN SOLUTION
        if not 0 <= tokens <= len(self):
            raise ValueError(f"cannot keep {tokens} of {len(self)} tokens")
        self.lengths = [tokens] * len(self.lengths)
        ### END SOLUTION


# %% check="KVCache"
check(KVCache)
### BEGIN HIDDEN TESTS
check(KVCache, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Give it to the trained model. The course's models ask a cache for two things: the positions of the new tokens, and all
# keys and values of a layer. With your cache:

# %%
class InOurModel:
    """Your cache, in the form in which the course's models ask for one."""

    def __init__(self, cache: "KVCache") -> None:
        self.cache = cache

    def begin(self, tokens: Int[Tensor, "b s"], positions: None) -> tuple[Int[Tensor, "b s"], bool]:
        """Return the positions of the new tokens: after the tokens in the cache."""
        past = len(self.cache)
        return torch.arange(past, past + tokens.shape[1]).expand(tokens.shape), True

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return all keys and values of a layer, and their positions."""
        keys, values = self.cache.append(layer, k, v)
        return keys, values, torch.arange(keys.shape[2]).expand(len(keys), -1)


def next_distribution(
    logits: Float[Tensor, "b v"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> Float[Tensor, "b v"]:
    """Return the probabilities with which your sampler draws the next token."""
    kept = filter_logits(logits / (temperature or 1.0), top_k, top_p, min_p)
    return temperature_probabilities(kept, 1.0 if temperature else 0.0)


@torch.no_grad()
def write(prompt: list[int], new: int, cached: bool = True, seed: int = 0, **rules: float | None) -> tuple[list[int], int]:
    """Return new tokens after a prompt, drawn by your sampler, with your cache or without; and the cache's bytes."""
    text, dice = list(prompt), torch.Generator().manual_seed(seed)
    cache = KVCache(len(model.blocks), len(prompt) + new)
    for _ in range(new):
        unread = text[len(cache) :] if cached else text
        logits = model(torch.tensor([unread]), kv_cache=InOurModel(cache) if cached else None)[:, -1]
        text.append(int(torch.multinomial(next_distribution(logits, **rules), 1, generator=dice)))
    return text[len(prompt) :], cache.nbytes if cached else 0


flops, written = {}, {}
with your("temperature_probabilities", "filter_logits", "KVCache"):
    for cached in (False, True):
        with FlopCounterMode(display=False) as counter:
            written[cached], size = write(PROMPTS[1], 80, cached, temperature=0.8, min_p=0.05)
        flops[cached] = counter.get_total_flops()
    same = sum(a == b for a, b in zip(written[False], written[True], strict=True))
    print(f"{same} of {len(written[True])} tokens are the same with the cache and without")
    print(f"without the cache {flops[False] / flops[True]:.0f} times the FLOPs")
    print(f"the cache: {size:,} bytes; predicted for {len(PROMPTS[1]) + 80} tokens: "
          f"{cache_bytes(model.config, 1, len(PROMPTS[1]) + 80, precision='fp64').total:,}")
    print(repr("If the " + tokenizer.decode(written[True])[:200]))

# %% [markdown]
# Your cache and your sampler wrote that. (In float64, so that a near-tie is decided the same way on every processor.)
# Without a cache the work grows with the square of the text's length. With it, a step costs the work of one token, and a
# look at the cache.
#
# Have you collected your answers of 08 to 11 into a model (`lmcourse collect` in the course's folder makes
# `my_transformer`; see `docs/training.md`)? Your cache fits that model too. Only two functions change: rotation must start
# where the cache ends, and attention must see the cached keys. Nothing else in a transformer looks at other tokens.

# %%
def with_cache(parts: dict[str, Callable], cache: "KVCache", layers: int) -> dict[str, Callable]:
    """Return the functions of your model, with an attention that keeps keys and values from pass to pass."""
    calls = 0

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        nonlocal calls
        layer, calls = calls % layers, calls + 1
        return parts["grouped_query_attention"](q, *cache.append(layer, k, v))

    def rope(x: Tensor, positions: Tensor, *rest: float) -> Tensor:
        return parts["rope"](x, positions + len(cache), *rest)

    return {**parts, "grouped_query_attention": attend, "rope": rope}


sys.path.insert(0, str(find_root()))
try:
    from my_transformer.model import load
    from my_transformer.parts import PARTS
except ImportError:
    print("There is no my_transformer yet: `lmcourse collect` makes it from your answers.")
else:
    folder = find_root() / "my_transformer" / "weights"
    plain = load(folder, PARTS)
    with your("KVCache"), torch.no_grad():
        own = KVCache(4, 64)
        yours = load(folder, with_cache(PARTS, own, 4))
        passes = [yours(torch.tensor([part])) for part in (sentence[:5], sentence[5:])]
        gap = (torch.cat(passes, dim=1) - plain(torch.tensor([sentence]))).abs().max().item()
    print(f"your model with a cache: logits within {gap:.0e} of the full pass, {own.nbytes:,} bytes kept")

# %% [markdown]
# ## 6 · Two phases
#
# A request has two parts. **Prefill** reads the prompt, all of its tokens in one pass. **Decoding** writes, one token a
# pass. What does each cost?

# %%
predict("price_of_a_token")

# %% [markdown]
# A pass over $N$ weights reads $n$ new tokens of each of $B$ texts. Every weight takes part in one multiplication and one
# addition for every new token of every text. But it is *read* from memory only once per pass, with its $w$ bytes. Each
# text has its own cache of $c$ bytes, which is read once too. (Attention's own FLOPs and all that a pass writes are left
# out. Section 8 checks how much that matters.) A chip computes and reads at the same time.
#
# ### Exercise 6 · The time of a pass  (3 points · 10 min · ●●)
#
# Find the formula, and return the seconds of a pass, and `"arithmetic"` or `"memory"` for what limits it (if both take
# equally long: `"memory"`). `cache_bytes` is the cache of *one* text. `peak` and `bandwidth` are the FLOP/s and bytes/s of
# one device. The `devices` share the weights, the caches and the work evenly, and lose no time to each other.

# %% exercise="pass_seconds"
def pass_seconds(
    parameters: int,
    cache_bytes: int,
    batch: int,
    new: int,
    peak: float,
    bandwidth: float,
    devices: int = 1,
    width: int = 2,
) -> tuple[float, str]:
    """Return the seconds of a pass, and what limits it: "arithmetic" or "memory"."""
    ### BEGIN SOLUTION
    arithmetic = 2 * parameters * batch * new / (peak * devices)
    memory = (width * parameters + batch * cache_bytes) / (bandwidth * devices)
    return (arithmetic, "arithmetic") if arithmetic > memory else (memory, "memory")
    ### END SOLUTION


# %% check="pass_seconds"
check(pass_seconds)
### BEGIN HIDDEN TESTS
check(pass_seconds, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# On one device, the formula is
#
# $$t = \max\Big(\frac{2 N B n}{\text{peak}},\; \frac{w N + B c}{\text{bandwidth}}\Big)$$
#
# Llama 3 8B on an H100. The prompt has 2,048 tokens; then the model writes the answer, one token after the other:

# %%
h100, llama = find_accelerator("h100-sxm"), find_model("llama-3-8b").decoder
weights = count_parameters(llama).total
of_the_chip = {"peak": h100.peak("bf16"), "bandwidth": h100.bandwidth}
with your("pass_seconds"):
    reading, limit_reading = pass_seconds(weights, 0, 1, 2048, **of_the_chip)
    writing, limit_writing = pass_seconds(weights, 2048 * bytes_per_token(llama), 1, 1, **of_the_chip)
    idle = 1 - 2 * weights / h100.peak("bf16") / writing
    print(f"prefill {1e3 * reading:5.1f} ms, {1e6 * reading / 2048:7.1f} µs a token, limited by {limit_reading}")
    print(f"decode  {1e3 * writing:5.1f} ms, {1e6 * writing:7.1f} µs a token, limited by {limit_writing}")
    print(f"a written token takes {writing / (reading / 2048):.0f} times as long as a read one")
    print(f"during decoding, the H100's arithmetic is idle for {idle:.1%} of the time")

# %% [markdown]
# > **Spot the slip.** A colleague writes: "With a KV cache, decoding is compute-bound: its latency is the bytes of the
# > model divided by the bandwidth." One half contradicts the other. Find both in this figure:

# %%
explore(figures.two_phases, accelerator=["a100-sxm-80gb", "h100-sxm", "h200"], prompt=Log(16, 8192), batch=Log(1, 256))

# %% [markdown]
# The prompt is under the flat roof. The decoding step is far down on the slope: its intensity is one FLOP per byte, and the
# chip could do 295. So "bytes over bandwidth" is right, and "compute-bound" is wrong.
#
# Is that so on your machine? Take a model that is too large for the processor's caches (29 million weights in fp32).
# Measure both phases, and compare them with your `pass_seconds`. It needs a peak and a bandwidth: the best matrix product
# of `torch.mm`, and the best product of a matrix of 100 MB with a vector, which *reads* as a decoding step does. A measured
# time can be longer than the prediction. If it is clearly shorter, the prediction or its inputs are wrong: that is the test.

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
torch.manual_seed(0)
larger = Transformer(llama_like(4, 768, 12, 2048, vocab_size=512, context=512)).eval()
size = count_parameters(larger.config).total
prompt_tokens, one_token = torch.randint(512, (1, 256)), torch.randint(512, (1, 1))
kept = Cache(larger.config, 512)


own_time = make_stopwatch("cpu", time.process_time)  # the time of this program alone, without others on the machine
large_table, one_vector = torch.ones(5000, 5000), torch.ones(5000)


def read_memory() -> None:
    """Read 100 MB once."""
    large_table @ one_vector


@torch.inference_mode()
def prefill() -> None:
    """Read 256 tokens into an empty cache."""
    kept.reset()
    larger(prompt_tokens, kv_cache=kept)


@torch.inference_mode()
def decode() -> None:
    """Read one more token."""
    larger(one_token, kv_cache=kept)


prefill()
timings = time_interleaved({"prefill": prefill, "decode": decode, "read": read_memory}, warmup=1, repeats=3, stopwatch=own_time)
seconds = {name: timing.fastest for name, timing in timings.items()}
machine = {
    "peak": max(matmul_rates("fp32", (512, 1024), seconds=0.1, stopwatch=own_time).values()),
    "bandwidth": large_table.nbytes / seconds["read"],
}
print(f"this machine, one thread: {machine['peak'] / 1e9:.0f} GFLOP/s, {machine['bandwidth'] / 1e9:.1f} GB/s")
with your("pass_seconds"):
    for name, new in (("prefill", 256), ("decode", 1)):
        least, limit = pass_seconds(size, cache_bytes(larger.config, 1, 256, precision="fp32").total, 1, new, **machine, width=4)
        print(f"{name:8} {1e3 * seconds[name]:7.1f} ms, {1e3 * seconds[name] / new:6.2f} a token; at least {1e3 * least:7.1f} ms, by {limit}")
    print(f"a written token takes {seconds['decode'] / (seconds['prefill'] / 256):.0f} times as long as a read one")
    print(f"without a cache, token 257 would take a pass over all: {seconds['prefill'] / seconds['decode']:.0f} times as long as with it")

# %% [markdown]
# A written token takes several times as long as a read one. How many times depends on the ratio of the machine's
# arithmetic to its bandwidth, and on how close the code comes to both.
#
# A very small model follows a third law. Here are decoding steps of ever narrower models, all with four layers:

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # or else the profiler reports its own start and stop


@torch.inference_mode()
def small_step(model: Transformer, cache: Cache) -> None:
    """Read one more token."""
    model(one_token, kv_cache=cache)


small_steps, small_sizes, calls = {}, {}, {}
for width in (768, 384, 192, 96, 48):
    narrow = Transformer(llama_like(4, width, max(1, width // 64), 8 * width // 3, vocab_size=512, context=512)).eval()
    small_steps[width] = partial(small_step, narrow, Cache(narrow.config, 512))
    small_sizes[width] = count_parameters(narrow.config).total
    small_steps[width]()
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        small_steps[width]()
    calls[width] = sum(event.cpu_parent is None for event in seen.events())
print("width       weights   calls     at least    measured")
for width, timing in time_interleaved(small_steps, warmup=1, repeats=20, stopwatch=own_time).items():
    least = 4 * small_sizes[width] / machine["bandwidth"]
    print(f"{width:5}{small_sizes[width]:14,}{calls[width]:8}{1e3 * least:10.2f} ms{1e3 * timing.median:9.2f} ms")

# %% [markdown]
# The narrowest model has 182 times fewer weights than the widest, and its step is nowhere near 182 times as fast. The
# number of calls is the same, and Python and torch spend some microseconds on each. Notebook 19 names the tools against
# that: `torch.compile` turns many calls into few, and a CUDA graph launches a whole step at once. A CUDA graph needs
# shapes that stay the same. So does the compiled step of `lmcourse generate --compile`: its cache is as large from the
# beginning as it will ever be. The small model `nano` then wrote 4,978 tokens in a second of a busy CPU, and 1,283
# without compiling ([docs/training.md](../../docs/training.md)). On an H100 a model of GPT-2's size wrote 153 to 165
# tokens in a second, and 365 to 381 compiled. The memory alone would allow some ten thousand.
#
# **In real models.** Pope et al. (2022) worked this out for PaLM. Services charge several times as much for a token of the
# answer as for a token of the prompt, and large services run the two phases on separate machines.

# %% [markdown]
# ## 7 · Faster, on your machine
#
# A decoding step reads every weight. There are two ways to get more from each reading: more texts in the batch, or fewer
# bytes for each weight. Try both, with *your* cache.

# %%
predict("batch_of_64")

# %%
predict("int8_gains")

# %% [markdown]
# Your `pass_seconds` has an answer, before anything is measured. The dotted lines are the **knees**: where arithmetic
# begins to limit, at a batch of about $w \cdot \text{peak} / (2 \cdot \text{bandwidth})$. `past` is 64: each text has
# 64 tokens in the cache.

# %% tags=["nbval-ignore-output", "because it shows rates of this machine"]
BATCHES, PAST = (1, 2, 4, 8, 16, 32, 64), 64
WIDTHS = {"fp32": 4, "int8": 1}
cache_of_a_text = cache_bytes(larger.config, 1, PAST, precision="fp32").total
knees = {name: width * machine["peak"] / (2 * machine["bandwidth"]) for name, width in WIDTHS.items()}
with your("pass_seconds"):
    predicted = {
        name: {batch: pass_seconds(size, cache_of_a_text, batch, 1, **machine, width=width)[0] for batch in BATCHES}
        for name, width in WIDTHS.items()
    }
figures.tokens_per_second(predicted, knees)

# %% [markdown]
# ### Exercise 7 · Time a decoding step  (4 points · 15 min · ●●)
#
# `step()` reads one token for each text of a batch into `cache`, your `KVCache`, which already holds `past` tokens.
# Return the median seconds of a step over `repeats` steps (fewer than 1: `ValueError`). The measurement must be fair:
#
# - the very first step loads and allocates, so it does not count, and `repeats` others do (you may leave out more at
#   the beginning);
# - all steps do the same work: each one begins with exactly `past` tokens in the cache, and at the end `past` remain;
# - a step's time contains that step, from an idle device to an idle device, and nothing else. `clock()` returns seconds,
#   and `synchronise()` waits until the device is idle.

# %% exercise="decode_seconds"
def decode_seconds(
    step: Callable[[], object],
    cache: "KVCache",
    synchronise: Callable[[], object],
    clock: Callable[[], float],
    past: int,
    repeats: int,
) -> float:
    """Return the median seconds of a decoding step after `past` tokens."""
    ### BEGIN SOLUTION
    if repeats < 1:
        raise ValueError(f"at least one step must count, not {repeats}")
    seconds = []
    for _ in range(repeats + 1):
        start = clock()  # the device is idle: each step that counts begins after a wait
        step()
        synchronise()
        seconds.append(clock() - start)
        cache.truncate(past)
    return statistics.median(seconds[1:])
    ### END SOLUTION


# %% check="decode_seconds"
check(decode_seconds)
### BEGIN HIDDEN TESTS
check(decode_seconds, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# (The check uses a simulated device, so no real clock decides a point.) Now the real one. `narrow_weights` makes a copy of
# the model whose linear layers have int8 weights, one byte each, with a scale for each row. Both models take turns at each
# batch, so that a busy neighbour disturbs both.

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
models = {"fp32": larger, "int8": narrow_weights(larger, "int8")}
by_batch: dict[str, dict[int, float]] = {"fp32": {}, "int8": {}}


@torch.inference_mode()
def step_seconds(model: Transformer, batch: int, repeats: int = 5) -> float:
    """Return your median time of a decoding step for a batch of texts, each with PAST random keys and values."""
    cache, token = KVCache(4, PAST + 1), torch.randint(512, (batch, 1))
    for layer in range(4):
        cache.append(layer, *torch.randn(2, batch, 12, PAST, 64))
    return decode_seconds(
        partial(model, token, kv_cache=InOurModel(cache)), cache, partial(synchronise, "cpu"), time.process_time, PAST, repeats
    )


with your("KVCache", "decode_seconds"):
    print("batch   fp32: at least   measured   tokens/s     int8: at least   measured   tokens/s")
    for batch in BATCHES:
        row = f"{batch:5}"
        for name, each in models.items():
            by_batch[name][batch] = step_seconds(each, batch)
            row += f"{1e3 * predicted[name][batch]:16.1f} ms{1e3 * by_batch[name][batch]:8.1f} ms{batch / by_batch[name][batch]:11.0f}"
        print(row)
    for name, times in by_batch.items():
        print(f"{name}: 64 texts give {64 * times[1] / times[64]:.0f} times the tokens a second of one text")
    print("int8 is faster by", ", ".join(f"{by_batch['fp32'][batch] / by_batch['int8'][batch]:.1f}" for batch in BATCHES))
figures.tokens_per_second(predicted, knees, by_batch)

# %% [markdown]
# Below the knee, eight times the texts take far less than eight times as long, because they share the reading of the
# weights. Beyond the knee, every text brings its own arithmetic, and the curve bends. That is the roofline. Int8 gains
# fully up to its own knee, less and less up to that of fp32, and nothing after that: the arithmetic is the same, and the int8
# weights are converted first. (Some processors have slow kernels for int8, and there it loses.)
#
# Is a measured point far below its line? Then look for what two terms leave out. An example: in fp32, a step for two or four
# texts may take twice as long as a step for one. A batch of one is a matrix times a *vector*, which is read in order. From
# two or four on, as the library decides, it is a product of matrices, and the weights are first copied into another layout.
# Try it:

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
fourteen = [torch.randn(2304, 768) for _ in range(14)]  # 99 MB of weights


def all_products(rows: Tensor) -> None:
    """Multiply the rows with each of the matrices."""
    for matrix in fourteen:
        F.linear(rows, matrix)


products = {f"{rows} rows": partial(all_products, torch.randn(rows, 768)) for rows in (1, 2, 4, 8)}
for name, timing in time_interleaved(products, warmup=1, repeats=5, stopwatch=own_time).items():
    low, high = timing.quartiles
    print(f"{name}: {1e3 * timing.median:5.1f} ms (quartiles {1e3 * low:.1f} to {1e3 * high:.1f})")

# %% [markdown]
# What do fewer bits do to the model? A row's scale fits its largest weight, and with four bits only 15 steps are left for
# all others. So **int4** gives a scale of 16 bits to each *group* of weights. On the trained model, with 20 windows of the
# text that it has not read:

# %%
def in_groups(weight: Float[Tensor, "n d"], bits: int, group: int) -> Float[Tensor, "n d"]:
    """Round the weights of each group to whole numbers times the group's own scale."""
    groups = weight.unflatten(1, (-1, group))
    scales = groups.abs().amax(dim=-1, keepdim=True) / (2 ** (bits - 1) - 1)
    return ((groups / scales).round() * scales).flatten(1)


with TokenFile(pretrained_folder() / "validation.tokens") as held_out:
    windows = torch.tensor(held_out[: 20 * 256].tolist()).view(20, 256)
with torch.no_grad():
    exact = model(windows)
    print("weights                   bits with scales   error of the logits    loss")
    losses = {}
    for name, bits, group in (
        ("fp64", 64, 0),
        ("int8, a scale for each row", 8, 0),
        ("int4, a scale for each row", 4, 0),
        *((f"int4, groups of {group}", 4, group) for group in (32, 16, 8)),
    ):
        rounded, scales = copy.deepcopy(model), 0.0  # bits of scales for each weight of a layer, at most
        for layer in rounded.blocks.modules():
            if isinstance(layer, torch.nn.Linear) and bits < 64:
                size_of_group = group or layer.in_features
                layer.weight.data = in_groups(layer.weight, bits, size_of_group)
                scales = max(scales, 16 / size_of_group)
        logits = rounded(windows)
        error = (logits - exact).square().mean().sqrt().item()
        losses[name] = F.cross_entropy(logits[:, :-1].flatten(0, 1), windows[:, 1:].flatten()).item()
        print(f"{name:28}{bits + scales:14.1f}{error:22.2f}{losses[name]:8.3f}")

# %% [markdown]
# Eight bits cost nothing here. Four bits cost 0.03 nats with a scale for each row, and 0.01 with groups of 8, whose scales
# add two bits to each weight. Groups of 32 (llama.cpp's `Q4_0`) and 128 (most GPTQ and AWQ models) are usual.

# %% [markdown]
# ## 8 · The bill of a step
#
# In section 7 the caches were small. On servers they are not, and a batch does not share them: every text brings its own.

# %%
predict("cache_beyond_weights")

# %%
print("model             weights   cache of a token   of 2,048    heavier than the model from")
for name in ("gpt-3", "llama-2-7b", "llama-3-8b", "llama-3.1-405b", "falcon-40b"):
    config = find_model(name).decoder
    whole = cache_bytes(config, 1, 2048).total
    print(f"{name:15}{2 * count_parameters(config).total / 2**30:7.0f} GiB{bytes_per_token(config) / 1024:11.0f} KiB"
          f"{whole / 2**30:12.2f} GiB{batch_where_cache_exceeds_weights(config, 2048):12} texts")

# %% [markdown]
# (2,048 tokens are all that GPT-3 and Falcon-40B can read.) As a formula, take a model of $L$ layers of width $D$ with
# $12 L D^2$ weights and one key head per query head. The cache of a token has $2 L D$ numbers. So the caches of $B$ texts of
# $S$ tokens outweigh the weights if $2 BSLD > 12 LD^2$, which is $BS > 6D$. For GPT-3, $6D = 73{,}728$ tokens: 36 texts
# of 2,048. The table counts all weights, not only $12 L D^2$, and agrees to one text. Models that share keys
# (notebook 08) carry more texts, and that is why they share.
#
# In the figure a step for 512 texts of 512 tokens is limited by arithmetic. From which batch on? Then make the texts
# four times as long. Why is there no such batch any more?

# %%
explore(
    figures.decode_step,
    model=["llama-2-7b", "llama-3-8b", "llama-3-70b", "falcon-40b"],
    accelerator=["a100-sxm-80gb", "h100-sxm", "h200", "mi300x"],
    batch=Log(1, 1024),
    context=Log(256, 8192),
)

# %% [markdown]
# Arithmetic can become the limit only if one more text adds more time for arithmetic than for reading its cache. For
# this model, a cache of 2,048 tokens takes longer to read than its text takes to compute.
#
# How good is a formula with two terms? The course's own accounting adds up all operators, attention and activations
# included. Compare the two for a step of 32 texts of 2,048 tokens, in milliseconds (yours | all operators). Peaks and
# bandwidths come from the data sheets; whether it all fits in memory is another question.

# %%
print("32 texts of 2,048      " + "".join(f"{chip:>20}" for chip in ("a100-sxm-80gb", "h100-sxm", "mi300x")))
farthest = 0.0
with your("pass_seconds"):
    for name in ("llama-2-7b", "llama-3-8b", "llama-3-70b", "falcon-40b"):
        config, row = find_model(name).decoder, []
        for chip in map(find_accelerator, ("a100-sxm-80gb", "h100-sxm", "mi300x")):
            short, _ = pass_seconds(
                count_parameters(config).total, cache_bytes(config, 1, 2048).total, 32, 1, chip.peak("bf16"), chip.bandwidth
            )
            full = roofline_seconds(forward_operations(config, 32, 1, past=2047), chip, "bf16").total
            farthest = max(farthest, abs(short / full - 1))
            row.append(f"{1e3 * short:11.1f} | {1e3 * full:6.1f}")
        print(f"{name:23}" + "".join(row))
    print(f"never further apart than {farthest:.0%}")

# %% [markdown]
# **In real models.** Attention's part of a decoding step has an intensity of about one FLOP per byte *for every* batch (or
# as many as query heads share a key head). No batch size makes it compute-bound (Austin et al., 2025).
#
# **A question.** A colleague wants to serve 200 texts of 2,048 tokens with a model of 40 billion parameters in bf16. All
# heads have their own keys, so the cache of a text takes 4 GiB. He plans four A100s with 80 GiB each. "The arithmetic of
# a step takes 13 ms, and the reading takes about as long." What do you answer? Your `pass_seconds` helps:

# %%
a100, forty_billion, four_gib = find_accelerator("a100-sxm-80gb"), 40 * 10**9, 4 * 2**30
needed = 2 * forty_billion + 200 * four_gib
print(f"weights and caches: {needed / 2**30:.0f} GiB, that is {math.ceil(needed / a100.memory)} devices; "
      f"four have place for {(4 * a100.memory - 2 * forty_billion) // four_gib} texts")
falcon = find_model("falcon-40b").decoder
real_weights, real_cache = 2 * count_parameters(falcon).total, cache_bytes(falcon, 1, 2048).total
with your("pass_seconds"):
    for name, parameters, cache in (("own keys", forty_billion, four_gib), ("Falcon-40B, 8 key heads", real_weights // 2, real_cache)):
        step_time, limit = pass_seconds(parameters, cache, 200, 1, a100.peak("bf16"), a100.bandwidth, devices=4)
        arithmetic = 2 * parameters * 200 / (4 * a100.peak("bf16"))
        print(f"{name}: {1e3 * step_time:.1f} ms on four devices, limited by {limit}; arithmetic {1e3 * arithmetic:.1f} ms")
print(f"Falcon-40B: {real_cache / 2**30:.2f} GiB a text; {(2 * a100.memory - real_weights) // real_cache} texts fit on two devices")

# %% [markdown]
# It does not fit, and the reading takes nine times as long as the arithmetic. Another text adds 0.26 ms of arithmetic
# (on one device) and 2.1 ms of reading, so no batch is ever limited by arithmetic. The real Falcon-40B has 8 key heads. Its texts
# add only 0.12 ms of reading each, so arithmetic limits the step from 287 texts on.

# %% [markdown]
# ## 9 · Fill the machine
#
# Batches make inference cheap. How many texts does it take until arithmetic limits the weights' part? As many as make
# $2BN/\text{peak}$ longer than $2N/\text{bandwidth}$: the ridge point of the chip. (Real matrices need a
# few more.)

# %%
for name in ("a100-sxm-80gb", "h100-sxm"):
    chip = find_accelerator(name)
    print(f"{name:14} ridge {chip.ridge('bf16'):3.0f} FLOPs per byte; {compute_bound_tokens(8192, chip):3.0f} tokens at a width of 8,192")

# %% [markdown]
# Now find 200 people who ask at the same moment, and whose answers have the same length.

# %%
predict("idle_slots")

# %% [markdown]
# A **static** batch takes as many requests as it has slots and runs until the longest is done. Short answers leave their
# slots empty. **Continuous batching** (Yu et al., 2022) gives a free slot to the next request at once, while the other
# texts continue.
#
# ### Exercise 8 · Batches  (3 points · 9 min · ●●)
#
# All requests wait from the beginning, in this order. Request `i` writes `lengths[i]` tokens (at least 1), one per step.
# Return the fraction of slot-steps in which a token is written: all tokens, divided by `slots` times the number of steps
# until the last request is done.
#
# - static: the first `slots` requests run until all of them are done, then the next `slots`, and so on;
# - continuous: a free slot takes the next request at the next step.
#
# Slots that never get a request count as well. Without requests return 1.0. Fewer than one slot: `ValueError`.

# %% exercise="batch_use"
def batch_use(lengths: list[int], slots: int, continuous: bool) -> float:
    """Return the fraction of slot-steps in which a token is written."""
    ### BEGIN SOLUTION
    if slots < 1:
        raise ValueError(f"a batch has at least one slot, not {slots}")
    if not lengths:
        return 1.0
    if continuous:
        free = [0] * slots  # the step at which each slot becomes free
        for length in lengths:
            free[free.index(min(free))] += length
        steps = max(free)
    else:
        steps = sum(max(lengths[start : start + slots]) for start in range(0, len(lengths), slots))
    return sum(lengths) / (slots * steps)
    ### END SOLUTION


# %% check="batch_use"
check(batch_use)
### BEGIN HIDDEN TESTS
check(batch_use, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.batch_timeline, continuous=False, slots=(1, 8))

# %%
dice = random.Random(0)
lengths = [1 + int(dice.expovariate(1 / 300)) for _ in range(3200)]
with your("batch_use"):
    print("slots   static: counted, 1/(1 + 1/2 + … + 1/slots)   continuous")
    for slots in (4, 8, 32):
        harmonic = sum(1 / i for i in range(1, slots + 1))
        print(f"{slots:5}{batch_use(lengths, slots, False):15.0%}{1 / harmonic:21.0%}{batch_use(lengths, slots, True):26.0%}")

# %% [markdown]
# For random (exponential) lengths, the longest of $B$ is on average $1 + \tfrac12 + \dots + \tfrac1B$ times the mean, and
# all slots wait for it. Filling slots at once is worth a factor of four at 32.
#
# Memory is wasted too. The length of an answer is not known in advance, so early servers reserved the longest possible
# cache for every text. **Pages** work as in operating systems: a text gets its cache in pages of, say, 16 tokens,
# anywhere in memory, and a new page when the last one is full.
#
# ### Exercise 9 · Pages  (2 points · 5 min · ●)
#
# Texts of these lengths (0 or more tokens) keep their caches in pages of `page` tokens. Two texts never share a page.
# Return the number of pages, and the fraction of their capacity, in tokens, that is used. If there is no page, nothing is
# wasted: 1.0. A page of less than one token: `ValueError`.

# %% exercise="pages"
def pages(lengths: list[int], page: int) -> tuple[int, float]:
    """Return the number of pages that the texts need, and the fraction of them that is used."""
    ### BEGIN SOLUTION
    if page < 1:
        raise ValueError(f"a page holds at least one token, not {page}")
    taken = sum(-(-length // page) for length in lengths)
    return taken, sum(lengths) / (taken * page) if taken else 1.0
    ### END SOLUTION


# %% check="pages"
check(pages)
### BEGIN HIDDEN TESTS
check(pages, hidden=True)
### END HIDDEN TESTS

# %%
shorter = [min(length, 2048) for length in lengths]
with your("pages"):
    print(f"2,048 reserved for every text: {sum(shorter) / (2048 * len(shorter)):.0%} used; pages of 16: {pages(shorter, 16)[1]:.1%}")

# %% [markdown]
# **In real models.** Kwon et al. (2023) found that earlier systems used 20 to 38 % of the memory that they reserved for
# caches. Their vLLM has pages and continuous batches, and so has nearly every server since. Texts that begin with the same
# prompt can share its pages. And a long prompt is read in pieces, between the decoding steps of the other texts, so that
# they need not wait for all of it (*chunked prefill*; Agrawal et al., 2023).

# %% [markdown]
# ## 10 · Guess, then check
#
# A decoding step reads all weights to write one token, and the arithmetic is idle. A pass over *five* tokens reads the
# same weights once, and takes almost the same time. If you only knew the next four tokens!
#
# **Speculative decoding** guesses them (Leviathan et al., 2023; Chen et al., 2023). A small and fast model, the **draft**,
# writes a few tokens ahead. The large model reads them all in one pass. That pass gives *its* distribution at each place,
# and the guesses that it can accept stay.

# %%
predict("draft_changes_the_text")

# %% [markdown]
# The trick is *how* to accept. Let $p$ be the large model's distribution at a place, $q$ the draft's, and $x$ the token
# drawn from $q$. Keep $x$ with the probability $\min(1, p(x)/q(x))$. If it is not kept, draw one token from another
# distribution instead. That distribution must be such that the two ways *together* give exactly $p$.
#
# ### Exercise 10 · Speculate  (4 points · 13 min · ●●●)
#
# Which distribution? Find it by hand for $p = (0.5, 0.3, 0.2)$ and $q = (0.2, 0.3, 0.5)$: how much of each token comes
# from kept guesses, and what is still missing?
#
# `drafted` holds $n$ tokens (perhaps none), the $i$-th drawn from row $i$ of `q`. Row $i$ of `p` is the large model's
# distribution at the same place. Its last row, one more, is for the place after the whole draft. `chance[i]` is a uniform
# random number in [0, 1): token $x$ at place $i$ stays if `chance[i]` · `q[i, x]` < `p[i, x]`. Return how many tokens stay,
# counted from the left up to the first that does not, and the distribution of the *one* token that is drawn after
# them, in the dtype of `p`.

# %% exercise="speculate"
def speculate(
    p: Float[Tensor, "n+1 v"], q: Float[Tensor, "n v"], drafted: Int[Tensor, " n"], chance: Float[Tensor, " n"]
) -> tuple[int, Float[Tensor, " v"]]:
    """Return how many drafted tokens stay, and the distribution of the token after them."""
    ### BEGIN SOLUTION
    for i, token in enumerate(drafted.tolist()):
        if chance[i] * q[i, token] >= p[i, token]:
            missing = (p[i] - q[i]).clamp(min=0)
            return i, missing / missing.sum()
    return len(drafted), p[-1]
    ### END SOLUTION


# %% check="speculate"
check(speculate)
### BEGIN HIDDEN TESTS
check(speculate, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# By hand: tokens 0 and 1 are always kept. The draft says token 2 too often; it is kept with $0.2/0.5 = 0.4$. So kept
# guesses give $(0.2, 0.3, 0.2)$, the smaller of $p$ and $q$ at each token. What is missing is $(0.3, 0, 0)$: that is $p - q$
# where it is positive. Divided by its sum, it is the second distribution.
#
# Is that enough for a whole draft? You can prove it by counting. Take a draft of two tokens from a vocabulary of three,
# where the distribution of the second token depends on the first. Run your function for every draft, and for chances on a
# grid that is fine enough for these numbers to come out exactly. Weight each case by its probability, and add up where the
# first two tokens of text end up:

# %%
numbers = partial(torch.tensor, dtype=torch.float64)
P0, Q0 = numbers([0.5, 0.3, 0.2]), numbers([0.2, 0.3, 0.5])
P = numbers([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
Q = numbers([[0.2, 0.3, 0.5], [0.5, 0.25, 0.25], [0.3, 0.6, 0.1]])
GRID = [(step + 0.5) / 10 for step in range(10)]


def two_tokens(accept: Callable) -> Float[Tensor, "v v"]:
    """Return the distribution of the first two tokens of text, over all drafts and chances."""
    text = torch.zeros(3, 3, dtype=torch.float64)
    for a, b in ((a, b) for a in range(3) for b in range(3)):
        for chance in ((u, v) for u in GRID for v in GRID):
            weight = Q0[a] * Q[a, b] / len(GRID) ** 2
            drafted = torch.tensor([a, b]), numbers(chance)
            kept, after = accept(torch.stack([P0, P[a], P[b]]), torch.stack([Q0, Q[a]]), *drafted)
            if kept == 0:
                text += weight * after[:, None] * P  # the second token comes with the next draft
            elif kept == 1:
                text[a] += weight * after
            else:
                text[a, b] += weight
    return text


def from_p(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> tuple[int, Tensor]:
    """Do as your function does, but draw the token after a miss from p."""
    kept, _ = speculate(p, q, drafted, chance)
    return kept, p[kept]


with your("speculate"):
    print("plain sampling, first token:    ", [round(x, 4) for x in P0.tolist()])
    print("speculated:                     ", [round(x, 4) for x in two_tokens(speculate).sum(dim=1).tolist()])
    print("drawn from p after a miss:      ", [round(x, 4) for x in two_tokens(from_p).sum(dim=1).tolist()])
    gap = (two_tokens(speculate) - P0[:, None] * P).abs().max().item()
    print(f"both tokens, all nine texts: largest difference {gap:.0e}")

# %% [markdown]
# Now with real models. The large model is the trained one. The draft is the cheapest there is: an n-gram model (notebook 05)
# that has counted the part of the help texts on which the large model was *not* trained. When a guess is wrong, your cache
# forgets the tokens after it:

# %%
with TokenFile(pretrained_folder() / "validation.tokens") as held_out:
    counted = NGram(3, tokenizer.vocab_size, witten_bell=True).count(held_out[:].tolist())


@torch.no_grad()
def write_with_draft(prompt: list[int], new: int, ahead: int, seed: int = 0, temperature: float = 1.0) -> tuple[list[int], int, list[float]]:
    """Return new tokens, the number of passes of the large model, and what p and q have in common at each place."""
    dice, text, passes, common = torch.Generator().manual_seed(seed), list(prompt), 0, []
    cache = KVCache(len(model.blocks), len(prompt) + new + ahead + 1)
    model(torch.tensor([text[:-1]]), kv_cache=InOurModel(cache))
    while len(text) < len(prompt) + new:
        drafted, q = [], []
        for _ in range(ahead):
            q.append(next_distribution(counted.probabilities(text + drafted)[None].log(), temperature)[0])
            drafted.append(int(torch.multinomial(q[-1], 1, generator=dice)))
        p = next_distribution(model(torch.tensor([[text[-1], *drafted]]), kv_cache=InOurModel(cache))[0], temperature)
        chance = torch.rand(ahead, generator=dice)
        kept, after = speculate(p, torch.stack(q), torch.tensor(drafted), chance)
        common += [torch.minimum(p[i], q[i]).sum().item() for i in range(min(kept + 1, ahead))]
        text += [*drafted[:kept], int(torch.multinomial(after, 1, generator=dice))]
        cache.truncate(len(text) - 1)
        passes += 1
    return text[len(prompt) : len(prompt) + new], passes, common


with your("temperature_probabilities", "filter_logits", "KVCache", "speculate"):
    plain, _ = write(PROMPTS[1], 60, temperature=0)
    guessed, passes, _ = write_with_draft(PROMPTS[1], 60, 4, temperature=0)
    same = sum(a == b for a, b in zip(plain, guessed, strict=True))
    print(f"greedy: {same} of 60 tokens are the same as without a draft; {60 / passes:.2f} tokens a pass")
    tokens_a_pass, in_common = {}, []
    for ahead in (1, 4):
        tokens_a_pass[ahead] = []
        for seed in range(3):
            runs = [write_with_draft(prompt, 40, ahead, seed) for prompt in PROMPTS[:3]]
            tokens_a_pass[ahead].append(3 * 40 / sum(passes for _, passes, _ in runs))
            in_common += [common for *_, places in runs for common in places]
    alpha = sum(in_common) / len(in_common)
    print(f"drawn at T = 1: p and q have {alpha:.2f} in common")
    for ahead, rates in tokens_a_pass.items():
        shown = ", ".join(f"{rate:.2f}" for rate in rates)
        print(f"{ahead} guessed: {shown} tokens a pass with three seeds; the formula below says {(1 - alpha ** (ahead + 1)) / (1 - alpha):.2f}")

# %% [markdown]
# The greedy text is the same, token for token. A drawn text differs from the one without a draft, because the random
# numbers are used differently. Its distribution is the same, as you have proved.
#
# Suppose each guess is kept with the probability $\alpha$, independent of the guesses before. (On average $\alpha$ is
# $\sum_x \min(p(x), q(x))$: what the two have in common.) Then a draft of $\gamma$ tokens gives
# $1 + \alpha + \dots + \alpha^\gamma = (1 - \alpha^{\gamma+1})/(1 - \alpha)$ tokens a pass. With a few hundred tokens, the
# measured rate varies from seed to seed as you see. An n-gram is a poor draft for this model: trained drafts reach an
# $\alpha$ of 0.5 to 0.9 (Leviathan et al., 2023). And each guess costs a fraction $c$ of a large pass:

# %%
explore(figures.speculation, alpha=(0.1, 0.95), draft_cost=(0.0, 0.5))

# %% [markdown]
# **In real models.** Leviathan et al. (2023) make T5-XXL two to three times as fast with a small T5 as its draft, with
# identical outputs. Newer drafts are a few extra heads or a layer on the large model, or look up what followed the same words
# earlier in the prompt. All of it pays only while the chip waits for its memory: a server with full batches has no idle
# arithmetic.

# %% [markdown]
# ## 11 · Smaller caches
#
# Everything that makes a cache smaller makes decoding cheaper. For 32 layers with 32 query heads of 128, in bf16:

# %%
print("                                       4,096 tokens   131,072 tokens")
LAYERS, HEADS, D_HEAD, WINDOW = 32, 32, 128, 4096
for name, key_heads, full in (
    ("every head its own keys (MHA)", 32, 32),
    ("8 key heads (GQA)", 8, 32),
    ("one key head (MQA)", 1, 32),
    ("GQA, window of 4,096 in 3 of 4 layers", 8, 8),
    ("GQA, window of 4,096 in all layers", 8, 0),
):
    sizes = [
        2 * 2 * key_heads * D_HEAD * (full * tokens + (LAYERS - full) * min(tokens, WINDOW)) / 2**30 for tokens in (4096, 131_072)
    ]
    print(f"{name:38}{sizes[0]:8.4g} GiB{sizes[1]:13.4g} GiB")

# %% [markdown]
# At 4,096 tokens windows save nothing. At 131,072, a window in every layer leaves a 32nd of the keys. Eight key heads leave
# a quarter, at any length. The two multiply.
#
# What does sharing cost? We trained a small model with eight query heads (`nano`, with heads of 8 features) on the help
# texts, three seeds each, all with the same FLOPs. The cache is in 16 bits, the loss in nats per character of text held
# out:

# %%
print("key heads   cache of a token   loss, three seeds         mean   standard deviation")
for key_heads, found in LOSSES.items():
    seeds = ", ".join(f"{loss:.3f}" for loss in found)
    cache_of_token = f"{bytes_per_token(config_of(key_heads))} bytes"
    print(f"{key_heads:9}{cache_of_token:>19}{seeds:>22}{statistics.mean(found):10.3f}{statistics.stdev(found):13.3f}")

# %% [markdown]
# With an eighth of the cache the mean loss is higher by 0.013. But seeds of one design lie up to 0.024 apart, so three of
# them cannot say which design is best: only that sharing costs a few hundredths of a nat here at most. (Notebook 08 has
# what larger models lose.)

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | which text? | greedy is not the likeliest text; the likeliest text is short, dull and repeats itself |
# | how to bend? | temperature divides logits; top-k, top-p and min-p cut the tail; top-p keeps the token that crosses $p$ |
# | what does a cache hold? | keys and values of every layer; under a causal mask they never change |
# | how long does a pass take? | $\max(2NBn/\text{peak}, (wN + Bc)/\text{bandwidth})$: prefill by arithmetic, decoding by memory |
# | what does a batch share? | the reading of the weights, up to the knee; not the caches, which outweigh the weights from $BS > 6D$ on, without shared keys |
# | what do int8 weights gain? | time, as long as memory limits the step |
# | how do servers fill machines? | a free slot takes the next request at once; caches come in pages |
# | how does a single text get faster? | guess with a small model, check in one pass; keep with $\min(1, p/q)$, else draw from $(p - q)_+$: exactly $p$ |

# %% [markdown]
# ## Check yourself
#
# 1. At temperature 0.01, does top-p still do anything?
# 2. Why does min-p need no sorting?
# 3. A cache for a sliding window drops its oldest token. Are the remaining keys of layer 3 the same as after a fresh pass over the window?
# 4. A model has 7 billion weights in bf16, and the chip reads 1 TB/s. How many tokens per second can one text get at most?
# 5. You quantise the weights to four bits. What happens to prefill, and to decoding?
# 6. Your draft is the large model itself. What are $\alpha$ and the speed-up?
#
# <details><summary>Answers</summary>
#
# 1. Almost nothing: unless two tokens are nearly equal, the best one has nearly all the probability already.
# 2. It compares each token only with the best one, so a maximum is enough.
# 3. No. They were computed when the dropped token was still there, and depend on it. Only those of the first layer are equal.
# 4. It reads 14 GB for each token: 71 tokens a second, whatever the arithmetic.
# 5. Decoding gets up to four times as fast, because it reads a quarter of the bytes. Prefill is limited by arithmetic, and gains
#    nothing unless the chip computes faster in four bits.
# 6. $\alpha = 1$, and no speed-up at all: every guess costs a whole pass. A draft must be cheap *and* right.
#
# </details>
#
# ## Further reading
#
# - Holtzman et al., 2020, *The curious case of neural text degeneration*; Fan et al., 2018, *Hierarchical neural story generation*; Nguyen et al., 2024, *Turning up the heat: min-p sampling*.
# - Stahlberg & Byrne, 2019, *On NMT search errors and model errors: cat got your tongue?*
# - Pope et al., 2022, *Efficiently scaling transformer inference*; Austin et al., 2025, *How to scale your model*, chapter 7.
# - Agrawal et al., 2023, *SARATHI: efficient LLM inference by piggybacking decodes with chunked prefills*.
# - Yu et al., 2022, *Orca*; Kwon et al., 2023, *Efficient memory management for large language model serving with PagedAttention*.
# - Leviathan et al., 2023, *Fast inference from transformers via speculative decoding*; Chen et al., 2023, *Accelerating large language model decoding with speculative sampling*.
# - In this package: `lmcourse.inference`, about 1,200 lines for most of the above; `lmcourse.accounting.latency`.

# %% [markdown]
# This folded cell checks the numbers in the text above, each time the notebook is built.

# %% tags=["hide-input"]
assert round(0.6 * 0.35, 2) == 0.21 and abs(measured["T = 1"][0] - measured["T = 1"][1]) < 0.15
assert measured["greedy"][0] < 0.65 * measured["greedy"][1] and measured["T = 2"][0] > 2 * measured["T = 2"][1]
assert [measured[f"T = 2{rule}"][0] for rule in ("", ", top-p 0.9", ", min-p 0.1")] == sorted(
    (measured[f"T = 2{rule}"][0] for rule in ("", ", top-p 0.9", ", min-p 0.1")), reverse=True
)
assert measured["greedy"][2] < measured["T = 1"][2] - 0.1
means = {key_heads: statistics.mean(found) for key_heads, found in LOSSES.items()}
assert f"{means[1] - means[8]:.3f} {max(max(found) - min(found) for found in LOSSES.values()):.3f}" == "0.013 0.024"
costs = [loss - losses["fp64"] for loss in losses.values()]
assert abs(costs[1]) < 0.001 and f"{costs[2]:.2f} {costs[-1]:.2f}" == "0.03 0.01" and 16 / 8 == 2
assert round(h100.ridge("bf16")) == 295 and round(writing / (reading / 2048)) == 300 and round(1000 * idle) == 997
gpt3 = find_model("gpt-3").decoder
assert batch_where_cache_exceeds_weights(gpt3, 2048) == 37 and 6 * gpt3.d_model == 73_728 == 36 * 2048
assert round(bytes_per_token(gpt3) / 1e6, 1) == 4.7 and round(cache_bytes(gpt3, 1, 2048).total / 1e9, 1) == 9.7
assert farthest < 0.03
reading_time = needed / (4 * a100.bandwidth)
arithmetic = 2 * forty_billion * 200 / (4 * a100.peak("bf16"))
assert round(1e3 * arithmetic) == 13 and round(reading_time / arithmetic) == 9
assert round(1e3 * 2 * 40e9 / a100.peak("bf16"), 2) == 0.26 and round(1e3 * four_gib / a100.bandwidth, 1) == 2.1
assert round(1e3 * real_cache / a100.bandwidth, 2) == 0.12
assert 286 < real_weights / a100.bandwidth / (real_weights / a100.peak("bf16") - real_cache / a100.bandwidth) < 287
seventy, per_text = find_model("llama-3-70b").decoder, {}
for tokens in (512, 2048):
    per_text[tokens] = cache_bytes(seventy, 1, tokens).total / h100.bandwidth
compute = 2 * count_parameters(seventy).total / h100.peak("bf16")
assert per_text[512] < compute < per_text[2048] and 512 * (compute - per_text[512]) > 2 * count_parameters(seventy).total / h100.bandwidth
assert round(small_sizes[768] / small_sizes[48]) == 182 and len(set(calls.values())) == 1
assert round(count_parameters(larger.config).total / 1e6) == 29 and round(1000 / 14) == 71
assert 0.9 < sum(1 / i for i in range(1, 33)) / 4 < 1.1
static_steps = sum(max(lengths[start : start + 32]) for start in range(0, len(lengths), 32))
assert round(0.97 * 32 * static_steps / sum(lengths)) == 4  # 0.97: the printed use with continuous batches
