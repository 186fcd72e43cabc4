# %% [markdown]
# # 17 · Inference
#
# **115 min · 10 exercises · 29 points**
#
# A trained model gives you probabilities. *Which text do you make of them, and why does every word of it cost as much as
# reading a page?*
#
# The first half is about choosing: every rule between "always the likeliest" and "draw" trades dull repetition against
# nonsense. The second is about paying: to write one token, all weights and the whole cache pass through the memory's
# bus. What servers do, caches, batches, pages, drafts, follows from that one sentence.
#
# **You will be able to**
#
# - sample with temperature, top-k, top-p and min-p, and say what each does to the text;
# - write a KV cache that can also forget, and make a model write with it;
# - predict the time of a prefill and of a decoding step from data sheets, and say what limits it;
# - let a small model guess for a large one without changing what it writes, and prove it.
#
# **You need** logits and cross-entropy (notebook 05), and causal attention (08). No GPU.
#
# Each exercise has a cell for your answer and a check below it. `hint("name_of_the_exercise")` gives a nudge.

# %%
import math
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.kv_cache import batch_where_cache_exceeds_weights, bytes_per_token, cache_bytes
from lmcourse.accounting.latency import compute_bound_tokens, forward_operations, roofline_seconds
from lmcourse.accounting.machine import copy_bandwidth, matmul_rates
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.timing import time_interleaved
from lmcourse.chapters.inference import figures
from lmcourse.data.token_file import TokenFile
from lmcourse.inference.beam import beam_search
from lmcourse.inference.cache import Cache
from lmcourse.inference.generate import generate
from lmcourse.inference.sampling import Sampling
from lmcourse.models.ngram import NGram
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.styles import llama_like
from lmcourse.notebook import check, explore, hint, predict, start
from lmcourse.plots import alt_text
from lmcourse.pretrained import load_pretrained, pretrained_folder
from lmcourse.root import find_root
from lmcourse.widgets import Log

start("17-inference")
torch.set_num_threads(1)  # the models are small, and fastest on one

# %% [markdown]
# ## 1 · One token, then another
#
# A language model writes by asking itself for the next token, appending one, and asking again. Always taking the
# likeliest is called **greedy** decoding. It looks like the best that one can do.

# %%
predict("greedy_or_best")

# %% [markdown]
# By hand, with a language of two-letter texts. The first letter is *a* or *b*:

# %%
FIRST = {"a": 0.6, "b": 0.4}
THEN = {"a": {"c": 0.35, "d": 0.33, "e": 0.32}, "b": {"c": 0.9, "d": 0.05, "e": 0.05}}
figures.text_tree(FIRST, THEN)

# %% [markdown]
# Greedy decoding walks along the thick line: *a* is likelier than *b*, and *c* the likeliest after it. That text has a
# probability of $0.6 \cdot 0.35 = 0.21$. Look at the numbers on the right for a better one.
#
# ### Exercise 1 · The best text  (2 points · 6 min · ●)
#
# `first` holds the probabilities of the first token, `then[x]` those of what follows `x`; a token that is not in `then`,
# or has an empty dict there, is followed by nothing, and makes no text. Return the likeliest text of *two* tokens, written
# one behind the other, and its probability. Of equally likely texts, the alphabetically first. Raise `ValueError` if
# there is none.

# %% exercise="best_text"
def best_text(first: dict[str, float], then: dict[str, dict[str, float]]) -> tuple[str, float]:
    """The likeliest text of two tokens, and its probability."""
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
# With two tokens one can try everything. With 40 tokens of a vocabulary of 50,000 there are $50{,}000^{40}$ texts, so
# real decoding does not search all of them. Section 4 shows what happens if one searches harder; first, whether one
# *wants* the likeliest text at all.

# %% [markdown]
# ## 2 · Bending the distribution
#
# The opposite of greedy is to **draw**: each token with its own probability. Then a token of one per mille is written
# once in a thousand, and among 50,000 there are many such: their sum, the *tail*, is not small, and one bad token spoils
# all that follows. So nearly everybody bends the distribution before drawing. Four rules are in use. The first divides
# the logits by a **temperature** $T$:
#
# $$p_i = \frac{e^{z_i / T}}{\sum_j e^{z_j / T}}$$
#
# Below 1 likely tokens gain, above 1 unlikely ones. By hand, for the logits 2, 1, 0:

# %%
for T in (0.5, 1.0, 2.0):
    print(f"T = {T}:", [round(p, 4) for p in (torch.tensor([2.0, 1.0, 0.0]) / T).softmax(dim=0).tolist()])

# %% [markdown]
# ### Exercise 2 · Temperature  (2 points · 5 min · ●)
#
# Return each row's probabilities at this temperature, in float32. The logits may come in half precision: divide *after*
# you made them wider. A temperature of 0 stands for greedy: 1 for the best token, 0 for all others; of equal bests the
# first. Logits of $-\infty$ are allowed (not a whole row of them). A negative temperature raises `ValueError`.

# %% exercise="temperature_probabilities"
def temperature_probabilities(logits: Float[Tensor, "b v"], temperature: float) -> Float[Tensor, "b v"]:
    """Each row's probabilities at this temperature; at 0 the best token takes all."""
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
# A temperature per token is not a temperature of the *text*. In the little language of section 1, drawing each letter at
# $T = 0.5$ gives one result, and taking the probabilities of whole *texts*, squaring and normalising them gives another:

# %%
def squared(probabilities: dict[str, float]) -> dict[str, float]:
    """At temperature 1/2: the squares, divided by their sum."""
    total = sum(p**2 for p in probabilities.values())
    return {name: p**2 / total for name, p in probabilities.items()}


texts = {x + y: p * q for x, p in FIRST.items() for y, q in THEN[x].items()}
by_token = {x + y: p * q for x, p in squared(FIRST).items() for y, q in squared(THEN[x]).items()}
print(f"'bc': {texts['bc']:.3f} at T = 1, {by_token['bc']:.3f} token by token, {squared(texts)['bc']:.3f} as a text")

# %% [markdown]
# Cold tokens do not make cold texts: the first letter is chosen before anybody knows how well it goes on.
#
# The other three rules cut off the tail, and leave the rest as it is:
#
# - **top-k** keeps the $k$ likeliest tokens (Fan et al., 2018);
# - **top-p**, or nucleus sampling, keeps the fewest likeliest ones that together have *at least* the probability $p$
#   (Holtzman et al., 2020);
# - **min-p** keeps those that are at least $p$ times as likely as the likeliest (Nguyen et al., 2024).

# %%
predict("top_p_keeps")

# %% [markdown]
# ### Exercise 3 · Three filters  (4 points · 14 min · ●●●)
#
# Return the logits, with $-\infty$ where a token is out, and everything else as it came: same dtype, same places. `None`
# leaves a rule out. The rules come in the order top-k, top-p, min-p, and each looks at what the one before has left, as a
# distribution of its own.
#
# - top-k keeps exactly `top_k` tokens, or all if there are no more. Of equals the lower ids.
# - top-p: a token stays if the tokens *before* it, in order of probability and among equals of id, have less than `top_p`
#   together. With `top_p` = 1 everything stays.
# - min-p: a token stays if its probability is at least `min_p` times the best one's.
#
# `top_k` below 1, and a `top_p` or `min_p` that is not above 0 and at most 1, raise `ValueError`. Do not change your
# input. $-\infty$ may be among the logits: such a token is out already.

# %% exercise="filter_logits"
def filter_logits(
    logits: Float[Tensor, "b v"], top_k: int | None, top_p: float | None, min_p: float | None
) -> Float[Tensor, "b v"]:
    """The logits, with −∞ where a rule takes a token out: first top-k, then top-p, then min-p."""
    ### BEGIN SOLUTION
    if top_k is not None and top_k < 1:
        raise ValueError(f"top-k keeps at least one token, not {top_k}")
    for share in (top_p, min_p):
        if share is not None and not 0 < share <= 1:
            raise ValueError(f"a share is above 0 and at most 1, not {share}")
    order = logits.argsort(dim=-1, descending=True, stable=True)
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
# Now see them at work, on the model that comes with the course: four layers, trained on the help texts of Python. On the
# left is what it expects next, in grey, and what the rules make of that; on the right 30 tokens that are drawn so. Take
# both beginnings. After "The value of the exp" the model is sure, after "The" anything may come. Is there a *k* that suits both? Then set
# the temperature to 2, and try to save the text with each of the three rules alone.

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
# **In real models.** `transformers`, vLLM and llama.cpp have all four rules, and apply the temperature first, or last, as
# they please: the order changes what top-p and min-p keep. Min-p's paper reports human judges who prefer it at high
# temperatures; others have disputed that evaluation.

# %% [markdown]
# ## 3 · Which rule writes well?
#
# Somebody who reads would have to say. But there is something that can be measured without a reader: whether a text looks
# to its own model like a text. The surprise per token is $-\ln p$ of what was written. For ordinary text it is near the
# entropy of the model's predictions.

# %%
predict("surprise_of_its_own_text")

# %%
trained = load_pretrained()
model, tokenizer = trained.model.double(), trained.tokenizer
PROMPTS = [tokenizer.encode(text) for text in ("The ", "If the ", "A function ", "When ", "This ", "It is ", "For ", "An object ")]


@torch.no_grad()
def surprise_and_entropy(written: list[list[int]]) -> tuple[float, float]:
    """Of the model at texts of equal length: mean −ln p of what stands there, and mean entropy, nats per token."""
    tokens = torch.tensor(written)
    log_p = model(tokens[:, :-1]).log_softmax(dim=-1)
    surprise = -log_p.gather(-1, tokens[:, 1:, None]).mean()
    return surprise.item(), -(log_p.exp() * log_p).sum(dim=-1).mean().item()


def variety(written: list[list[int]], n: int = 4) -> float:
    """The share of n-grams of tokens that differ, averaged over texts."""
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
# At $T = 1$ both are the same: the model is as surprised by its own text as it expected to be. Greedy text is *too*
# probable, half the surprise that was expected, and it goes round in circles. Text is not a sequence of likeliest words, and
# who always says the likeliest says nothing. At $T = 2$ the model is thoroughly surprised: one token of the tail leads to a
# context that it has never seen, and there it can only guess. And with the tail cut off, the same temperature does
# little harm. Min-p and top-p both cut. Why does top-p at 0.9 do so little here? A hot distribution is flat, and nine
# tenths of a flat distribution are most of its tail.

# %%
for name in ("greedy", "T = 0.7", "T = 2", "T = 2, min-p 0.1"):
    print(f"{name}: {tokenizer.decode(samples[name][0])[:80]!r}")

# %% [markdown]
# **In real models.** Holtzman et al. (2020) saw the same in GPT-2: the likeliest text repeats itself, the probability of a
# repeated sentence grows with every repetition, and human text is full of surprises that no decoder would choose.

# %% [markdown]
# ## 4 · Searching for the best text
#
# Perhaps greedy decoding is dull because it misses the best text, as in section 1. **Beam search** looks harder: it keeps
# the best few beginnings (the *beams*), tries every token behind each, and keeps the best again. Let it find a sentence
# that begins with "An object ", up to a full stop:

# %%
full_stops = [token for token in range(tokenizer.vocab_size) if tokenizer.decode([token]).endswith(".")]
for prompt in ("An object ", "When the "):
    for beams in (1, 4, 16, 64):
        best = beam_search(model, tokenizer.encode(prompt), 40, beams, full_stops, alpha=0.0)[0]
        print(f"{beams:3} beams   ln p = {best.log_probability:6.2f}   {prompt + tokenizer.decode(best.tokens)!r}")

# %% [markdown]
# The harder the search, the likelier the text. But these are no sentences: they are fragments that end at once. That is
# what likelihood prefers: every further token costs, and the shortest way to the end is the cheapest. So beam search comes
# with a *length penalty* that makes up for it, and is used where there is little to choose, in translation and
# transcription, and not to converse.
#
# **In real models.** Stahlberg & Byrne (2019) searched a translation model *exactly*. For more than half of the sentences
# the best translation was the empty one.

# %% [markdown]
# ## 5 · What was new in that step?
#
# To write $n$ tokens, the model reads a text that grows by one each time. Nearly all of it was there before. Which of the
# numbers that it computed may be kept?
#
# > **Spot the slip.** A footnote in lecture notes says that with every new token *all* tensors of the model shift by one
# > place: $z^{(t+1)}_s = z^{(t)}_{s-1}$, in every layer. That would be a strange cache.
#
# Write a test for such claims, and let a model answer.
#
# ### Exercise 4 · What stays the same?  (2 points · 8 min · ●●)
#
# `before` and `after` hold, layer by layer, a vector per token, of the same width: of a text, and of the text a step
# later. Say for each layer whether `after[i - shift]` equals `before[i]` for *every* `i` for which both exist (no index
# below 0), up to a difference of 1e-5 in each entry. The two may have different lengths. Where no such `i` exists, nothing
# was seen to be equal: `False`.

# %% exercise="unchanged"
def unchanged(before: list[Float[Tensor, "s d"]], after: list[Float[Tensor, "t d"]], shift: int) -> list[bool]:
    """Per layer: whether after[i − shift] is before[i], for every i that both have."""
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
    """What each of the trained model's layers reads, a row per token; the last is what the head reads."""
    found: list[Tensor] = []
    handles = [block.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0][0])) for block in model.blocks]
    handles.append(model.head.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0][0])))
    model(torch.tensor([tokens]))
    for handle in handles:
        handle.remove()
    return found


sentence = tokenizer.encode("The value of an expression is the result of")
with suppress(NotImplementedError):
    print("a token more, no shift:        ", unchanged(states(sentence[:-1]), states(sentence), 0))
    print("as the footnote has it:        ", unchanged(states(sentence[:-1]), states(sentence), -1))
    print("a window that moved on by one: ", unchanged(states(sentence[:-1]), states(sentence[1:]), 1))

# %% [markdown]
# A growing text shifts nothing: under a causal mask no old token sees the new one, so every layer's vectors of old
# tokens are what they were. A *window* that drops its first token moves everything forward by one, the other way than the
# footnote says, and then only what the first layer reads is the same: deeper vectors have seen the token that is gone.
# (So a cache for a window keeps keys that know of dropped tokens. That is a model of its own, and not a mistake.)
#
# And of the old tokens, only keys and values are ever asked for again: an old query has had its answer. To keep "key and
# query vectors", as another line of the notes says, would be a third too much or a half too little.
#
# ### Exercise 5 · A cache that can forget  (4 points · 14 min · ●●●)
#
# In notebook 08 you attended with a cache, and let `torch.cat` copy it at each step. Now build one as servers have it,
# for all layers of a model:
#
# - `append(layer, k, v)` keeps the keys and values of `n` new tokens, shape (b, h, n, d), behind those that the layer
#   holds, and returns *all* that it holds now. At a layer's first call (at the latest) memory for `capacity` tokens is
#   taken, in the dtype of `k`; from then on you write into it, and what you return are views of it, so that nothing is
#   copied again. Beyond the capacity it raises `ValueError`, and keeps everything as it was.
# - `len(cache)` is the number of tokens that *every* layer holds. In the middle of a pass the first layers have more.
# - `truncate(tokens)` makes every layer hold the first `tokens` tokens and no others. `ValueError` if that is negative or
#   more than `len(cache)`. (Section 10 will need it: guesses turn out wrong.)
# - `nbytes` is the memory that is taken, used or not. Nothing is taken before the first `append`. What a test compares is
#   the memory after *every* layer had its first call.

# %% exercise="KVCache"
class KVCache:
    """Keys and values of earlier tokens, in memory that is taken once per layer.

    Args:
        layers: of the model.
        capacity: the longest text, in tokens.
    """

    def __init__(self, layers: int, capacity: int) -> None:
        ### BEGIN SOLUTION
        self.capacity = capacity
        self.memory: list[Tensor | None] = [None] * layers
        self.lengths = [0] * layers
        ### END SOLUTION

    def __len__(self) -> int:
        """How many tokens every layer holds."""
        ### BEGIN SOLUTION
        return min(self.lengths)
        ### END SOLUTION

    @property
    def nbytes(self) -> int:
        """The memory that is taken, in bytes."""
        ### BEGIN SOLUTION
        return sum(memory.nbytes for memory in self.memory if memory is not None)
        ### END SOLUTION

    def append(
        self, layer: int, k: Float[Tensor, "b h n d"], v: Float[Tensor, "b h n d"]
    ) -> tuple[Float[Tensor, "b h t d"], Float[Tensor, "b h t d"]]:
        """Keep the keys and values of n new tokens of a layer; return all that it holds now."""
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
# Give it to the trained model. The course's models ask a cache for two things: where a pass begins, and what a layer may
# see. With your cache that is:

# %%
class InOurModel:
    """Your cache, in the form in which the course's models ask for one."""

    def __init__(self, cache: "KVCache") -> None:
        self.cache = cache

    def begin(self, tokens: Int[Tensor, "b s"], positions: None) -> tuple[Int[Tensor, "b s"], bool]:
        """Where the new tokens stand: behind those that are kept."""
        past = len(self.cache)
        return torch.arange(past, past + tokens.shape[1]).expand(tokens.shape), True

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All keys and values, and their positions."""
        keys, values = self.cache.append(layer, k, v)
        return keys, values, torch.arange(keys.shape[2]).expand(len(keys), -1)


def next_distribution(
    logits: Float[Tensor, "b v"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> Float[Tensor, "b v"]:
    """Your sampler: from logits to the probabilities with which the next token is drawn."""
    kept = filter_logits(logits / (temperature or 1.0), top_k, top_p, min_p)
    return temperature_probabilities(kept, 1.0 if temperature else 0.0)


@torch.no_grad()
def write(prompt: list[int], new: int, cached: bool = True, seed: int = 0, **rules: float | None) -> tuple[list[int], int]:
    """New tokens behind a prompt, by your sampler, with your cache or without; and the bytes of the cache."""
    text, dice = list(prompt), torch.Generator().manual_seed(seed)
    cache = KVCache(len(model.blocks), len(prompt) + new)
    for _ in range(new):
        unread = text[len(cache) :] if cached else text
        logits = model(torch.tensor([unread]), kv_cache=InOurModel(cache) if cached else None)[:, -1]
        text.append(int(torch.multinomial(next_distribution(logits, **rules), 1, generator=dice)))
    return text[len(prompt) :], cache.nbytes


flops, written = {}, {}
with suppress(NotImplementedError):
    for cached in (False, True):
        with FlopCounterMode(display=False) as counter:
            written[cached], size = write(PROMPTS[1], 80, cached, temperature=0.8, min_p=0.05)
        flops[cached] = counter.get_total_flops()
    print("the same text:", written[False] == written[True])
    print(f"without the cache {flops[False] / flops[True]:.0f} times the FLOPs")
    print(f"its memory: {size:,} bytes; predicted for {len(PROMPTS[1]) + 80} tokens: "
          f"{cache_bytes(model.config, 1, len(PROMPTS[1]) + 80, precision='fp64').total:,}")
    print(repr("If the " + tokenizer.decode(written[True])[:200]))

# %% [markdown]
# Your cache and your sampler wrote that. (In float64, so that a near-tie falls alike on every processor.) Without a cache
# the work grows with the square of the text's length; with it a step costs one token's work and a look at what is kept.
#
# If you have collected your answers of 08 to 11 into a model of your own (`lmcourse collect` in the course's folder makes
# `my_transformer`; `docs/training.md` says more), your cache fits that one, too. Two of its functions have to know of it:
# rotation must begin where the cache ends, and attention must see what is kept. Nothing else in a transformer knows that
# there are other tokens.

# %%
def with_cache(parts: dict[str, Callable], cache: "KVCache", layers: int) -> dict[str, Callable]:
    """The functions of your model, such that attention keeps keys and values from pass to pass."""
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
    print("There is no my_transformer yet: `lmcourse collect` makes it of your answers.")
else:
    folder = find_root() / "my_transformer" / "weights"
    plain, own = load(folder, PARTS), KVCache(4, 64)
    yours = load(folder, with_cache(PARTS, own, 4))
    with torch.no_grad():
        passes = [yours(torch.tensor([part])) for part in (sentence[:5], sentence[5:])]
        gap = (torch.cat(passes, dim=1) - plain(torch.tensor([sentence]))).abs().max().item()
    print(f"your model with your cache: logits within {gap:.0e} of the full pass, {own.nbytes:,} bytes kept")

# %% [markdown]
# ## 6 · Two phases
#
# So a request has two parts. **Prefill** reads the prompt, all of its tokens in one pass. **Decoding** writes, one token a
# pass. What does each cost?

# %%
predict("price_of_a_token")

# %% [markdown]
# Count what a pass does. With $N$ weights, $B$ texts and $n$ new tokens in each, it takes about $2N \cdot Bn$ FLOPs, a
# multiplication and an addition for each weight and token. It reads every weight *once*, whatever $B$ and $n$ are,
# and every text's cache: $wN + B \cdot c$ bytes, at $w$ bytes a weight and $c$ bytes of cache a text. (Attention's own FLOPs
# are left out, as well as what a pass writes. Section 7 checks how much that matters.)
#
# A chip computes and reads at the same time. So the time is not the sum but the longer of the two:
#
# $$t = \max\Big(\frac{2 N B n}{\lambda_\text{FLOP/s}},\; \frac{w N + B c}{\lambda_\text{bytes/s}}\Big)$$
#
# > **Spot the slip.** Notes on inference say that with a KV cache generation "is now compute bound", and give its latency as
# > "$M / \lambda_\text{mem}$", in one sentence. Which half is right?
#
# ### Exercise 6 · The time of a pass  (3 points · 10 min · ●●)
#
# Return the seconds that a pass takes by this formula, and `"arithmetic"` or `"memory"` for what takes longer (if both
# take equally long: `"memory"`). `cache_bytes` is the cache of *one* text, `peak` and `bandwidth` are of one device, in FLOP/s
# and bytes/s. `devices` of them share the weights, the caches and the work evenly, and lose no time to one another.

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
    """Seconds of a pass, and what limits it: "arithmetic" or "memory"."""
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
# Llama 3 8B on an H100. The prompt has 2,048 tokens; then the answer is written, one token after the other:

# %%
h100, llama = find_accelerator("h100-sxm"), find_model("llama-3-8b").decoder
weights = count_parameters(llama).total
of_the_chip = {"peak": h100.peak("bf16"), "bandwidth": h100.bandwidth}
with suppress(NotImplementedError):
    reading, limit_reading = pass_seconds(weights, 0, 1, 2048, **of_the_chip)
    writing, limit_writing = pass_seconds(weights, 2048 * bytes_per_token(llama), 1, 1, **of_the_chip)
    print(f"prefill {1e3 * reading:5.1f} ms, {1e6 * reading / 2048:7.1f} µs a token, limited by {limit_reading}")
    print(f"decode  {1e3 * writing:5.1f} ms, {1e6 * writing:7.1f} µs a token, limited by {limit_writing}")
    print(f"a written token takes {writing / (reading / 2048):.0f} times as long as a read one")

# %%
explore(figures.two_phases, accelerator=["a100-sxm-80gb", "h100-sxm", "h200"], prompt=Log(16, 8192), batch=Log(1, 256))

# %% [markdown]
# The prompt sits under the flat roof, the step of decoding far down on the slope: its intensity is one FLOP per byte, and
# the chip could do 295. So "memory bound" is right, and "$M/\lambda_\text{mem}$" too. While it decodes a single text, the H100's
# arithmetic is idle for 99.7 % of the time: $1 - t_\text{arithmetic} / t_\text{memory}$.
#
# Is that so on your machine? Take a model that is too large for the processor's caches (29 million weights in fp32), and measure
# both phases beside what your `pass_seconds` says. For its peak and bandwidth it gets what `torch.mm` and a copy reach here.

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
torch.manual_seed(0)
larger = Transformer(llama_like(4, 768, 12, 2048, vocab_size=512, context=512)).eval()
size = count_parameters(larger.config).total
prompt_tokens, one_token = torch.randint(512, (1, 256)), torch.randint(512, (1, 1))
kept = Cache(larger.config, 512)


@torch.inference_mode()
def prefill() -> None:
    """Read 256 tokens into an empty cache."""
    kept.reset()
    larger(prompt_tokens, kv_cache=kept)


@torch.inference_mode()
def decode() -> None:
    """Read one token more."""
    larger(one_token, kv_cache=kept)


machine = {"peak": max(matmul_rates("fp32", (512, 1024), seconds=0.1).values()), "bandwidth": copy_bandwidth(2**26, seconds=0.1)}
prefill()
timings = time_interleaved({"prefill": prefill, "decode": decode}, warmup=1, repeats=3)
seconds = {name: timing.fastest for name, timing in timings.items()}
with suppress(NotImplementedError):
    for name, new in (("prefill", 256), ("decode", 1)):
        least, limit = pass_seconds(size, cache_bytes(larger.config, 1, 256, precision="fp32").total, 1, new, **machine, width=4)
        print(f"{name:8} {1e3 * seconds[name]:7.1f} ms, {1e3 * seconds[name] / new:6.2f} a token; at least {1e3 * least:7.1f} ms, by {limit}")
    print(f"a written token takes {seconds['decode'] / (seconds['prefill'] / 256):.0f} times as long as a read one")

# %% [markdown]
# On any machine a written token is several times as dear as a read one. How many times depends on the ratio of its arithmetic to
# its bandwidth, and on how near the code comes to either. (A very small model obeys a third law: a step takes as long as
# Python needs to say what is to be done. Notebook 19 is about that.)
#
# **In real models.** Pope et al. (2022) worked this out for PaLM. Services charge several times as much for a token of the answer
# as for one of the prompt, and large ones keep separate machines for the two phases.

# %% [markdown]
# ## 7 · The bill of a step
#
# A larger batch shares the reading of the weights: 64 texts get 64 tokens for the price of one. It does not share the
# caches. So there are three regimes, and a batch moves you from one to the next.

# %%
predict("cache_beyond_weights")

# %%
print("model             weights   cache of a token   of 4,096    heavier than the model from")
for name in ("gpt-3", "llama-2-7b", "llama-3-8b", "llama-3.1-405b", "falcon-40b"):
    config = find_model(name).decoder
    whole = cache_bytes(config, 1, 4096).total
    print(f"{name:15}{2 * count_parameters(config).total / 2**30:7.0f} GiB{bytes_per_token(config) / 1024:11.0f} KiB"
          f"{whole / 2**30:12.2f} GiB{batch_where_cache_exceeds_weights(config, 4096):12} texts")

# %% [markdown]
# In a formula, for a model of $L$ layers of width $D$ with $12 L D^2$ weights and a key head per query head: a token's
# cache has $2 L D$ numbers, so $B$ texts of $S$ tokens outweigh the weights from $2 BSLD > 12 LD^2$ on, which is $BS > 6D$.
# (The notes say $BS \gtrsim D$.) For GPT-3 that is $6 \cdot 12{,}288 = 73{,}728$ tokens: 18 texts of 4,096. Models that share keys
# (notebook 08) hold out for longer, and that is what sharing is for.
#
# Move the batch, and look for the point from which on a larger one gives no more tokens a second. Then make the texts
# longer. Why does it disappear?

# %%
explore(
    figures.decode_step,
    model=["llama-2-7b", "llama-3-8b", "llama-3-70b", "falcon-40b"],
    accelerator=["a100-sxm-80gb", "h100-sxm", "h200", "mi300x"],
    batch=Log(1, 1024),
    context=Log(512, 131072),
)

# %% [markdown]
# How good is a formula with two terms? The course's own accounting goes through all operators, attention and activations
# included. Model by model and chip by chip, a step for 32 texts of 4,096 tokens, in milliseconds by each (peaks and bandwidths are those
# of the data sheets; whether it all fits is another question):

# %%
print("32 texts of 4,096      " + "".join(f"{chip:>20}" for chip in ("a100-sxm-80gb", "h100-sxm", "mi300x")))
farthest = 0.0
with suppress(NotImplementedError):
    for name in ("llama-2-7b", "llama-3-8b", "llama-3-70b", "falcon-40b"):
        config, row = find_model(name).decoder, []
        for chip in map(find_accelerator, ("a100-sxm-80gb", "h100-sxm", "mi300x")):
            short, _ = pass_seconds(
                count_parameters(config).total, cache_bytes(config, 1, 4096).total, 32, 1, chip.peak("bf16"), chip.bandwidth
            )
            full = roofline_seconds(forward_operations(config, 32, 1, past=4095), chip, "bf16").total
            farthest = max(farthest, abs(short / full - 1))
            row.append(f"{1e3 * short:11.1f} | {1e3 * full:6.1f}")
        print(f"{name:23}" + "".join(row))
    print(f"never farther apart than {farthest:.0%}")

# %% [markdown]
# **In real models.** Attention's part of a decoding step has an intensity of about one FLOP per byte *whatever* the batch
# (or as many as query heads share a key head): no batch size makes it compute-bound (Austin et al., 2025).

# %% [markdown]
# ## 8 · Forty billion parameters, redone
#
# Lecture notes serve a model of 40 billion parameters, "Falcon", to $B = 200$ texts of 2,048 tokens at once. They take 80 GiB for the
# weights and, pretending that every head has keys of its own, 4 GiB for each text's cache, on A100s with 80 GiB, 312 TFLOP/s
# and 2 TiB/s.
#
# > **Spot the slip.** They go on: so $B \approx 200$ needs "at least $T = 4$" devices. The latency is
# > $pN/(\lambda_\text{FLOP/s}\, T) \approx 13$ ms, and reading the memory takes a time "of a comparable size".
#
# ### Exercise 7 · Falcon  (3 points · 9 min · ●●)
#
# Do the case again, and give five numbers under these names:
#
# - `devices`: how many it takes for 200 texts, in memory;
# - `texts`: how many texts fit on four;
# - `compute_ms`: the milliseconds of arithmetic of a step for 200 texts on four devices, $2BN$ FLOPs, $N = 40 \cdot 10^9$;
# - `memory_ms`: the milliseconds to read weights and 200 caches, again shared by four, whether they fit or not;
# - `real_texts`: the real Falcon-40B has 76.9 GiB of weights, 60 layers and only 8 key heads of 64. How many texts of 2,048 tokens in bf16
#   fit beside it on *two* such devices (160 GiB in all)?
#
# Milliseconds to one digit after the point, and where things are counted, whole numbers.

# %% exercise="falcon"
falcon = None  # {"devices": ..., "texts": ..., "compute_ms": ..., "memory_ms": ..., "real_texts": ...}
### BEGIN SOLUTION
falcon = {"devices": 11, "texts": 60, "compute_ms": 12.82, "memory_ms": 107.42, "real_texts": 354}
### END SOLUTION


# %% check="falcon"
check(falcon=falcon)
### BEGIN HIDDEN TESTS
check(falcon=falcon, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# More text than that will not help the original case. A single text adds 0.256 ms of arithmetic (on one device), and its 4 GiB add
# 1.95 ms of reading: with full attention and 2,048 tokens no batch is ever limited by arithmetic. Sharing keys makes it 0.23 GiB and
# 0.11 ms, and turns that round.

# %% [markdown]
# ## 9 · Fill the machine
#
# So batches are what makes inference cheap. How many texts until arithmetic limits the weights' part? As many as make
# $2BN/\lambda_\text{FLOP/s}$ longer than $2N/\lambda_\text{bytes/s}$: the ridge point itself, a little more for real matrices:

# %%
for name in ("a100-sxm-80gb", "h100-sxm"):
    chip = find_accelerator(name)
    print(f"{name:14} ridge {chip.ridge('bf16'):3.0f} FLOPs per byte; {compute_bound_tokens(8192, chip):3.0f} tokens at a width of 8,192")

# %% [markdown]
# Notes say "about 200". Now find 200 people who ask at the same moment, and whose answers have the same length.

# %%
predict("idle_slots")

# %% [markdown]
# A **static** batch takes the next requests, as many as it has slots, and runs until the longest is done; short answers leave their
# slots empty. **Continuous batching** (Yu et al., 2022) gives a free slot to the next request at once, in the middle of everybody else's text.
#
# ### Exercise 8 · Batches  (3 points · 9 min · ●●)
#
# Requests come in this order, all at the beginning, and write `lengths[i]` tokens each (at least 1), one per step. Return the
# share of slot-steps in which a token is written: tokens, divided by `slots` times the steps until the last request is done.
#
# - static: the first `slots` requests, until all of them are done; then the next `slots`, and so on;
# - continuous: a slot that is free takes the next request at the next step.
#
# Slots that never get a request count as well. No requests: 1.0. Fewer than one slot: `ValueError`.

# %% exercise="batch_use"
def batch_use(lengths: list[int], slots: int, continuous: bool) -> float:
    """The share of slot-steps in which a token is written."""
    ### BEGIN SOLUTION
    if slots < 1:
        raise ValueError(f"a batch has at least one slot, not {slots}")
    if not lengths:
        return 1.0
    if continuous:
        free = [0] * slots  # the step at which each slot gets free
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
print("slots   static: counted, 1/(1 + 1/2 + … + 1/slots)   continuous")
with suppress(NotImplementedError):
    for slots in (4, 8, 32):
        harmonic = sum(1 / i for i in range(1, slots + 1))
        print(f"{slots:5}{batch_use(lengths, slots, False):15.0%}{1 / harmonic:21.0%}{batch_use(lengths, slots, True):26.0%}")

# %% [markdown]
# For random (exponential) lengths the longest of $B$ is on average $1 + \tfrac12 + \dots + \tfrac1B$ times the mean, and everybody waits
# for it. Filling slots at once is worth a factor of four at 32.
#
# The other waste is room. Nobody knows how long an answer will be, so early servers reserved the longest for everybody. **Pages**
# do what operating systems do: a text gets its cache in pages of, say, 16 tokens, from anywhere in the memory, and the next one when the last is full.
#
# ### Exercise 9 · Pages  (2 points · 5 min · ●)
#
# Texts of these lengths (0 or more tokens) take their caches in pages of `page` tokens; two texts never share one. Return the number of pages that are
# taken, and the share of their room that is used, by tokens. If no page is taken, nothing is wasted: 1.0. A page of less than one token:
# `ValueError`.

# %% exercise="pages"
def pages(lengths: list[int], page: int) -> tuple[int, float]:
    """How many pages the texts take, and which share of them is used."""
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
with suppress(NotImplementedError):
    print(f"2,048 reserved for everybody: {sum(shorter) / (2048 * len(shorter)):.0%} used; pages of 16: {pages(shorter, 16)[1]:.1%}")

# %% [markdown]
# **In real models.** Kwon et al. (2023) found that earlier systems used 20 to 38 % of the memory that they reserved for caches; their
# vLLM has pages and continuous batches, and so has nearly every server since. Equal prompts share their pages, too.

# %% [markdown]
# ## 10 · Guess, then check
#
# A step of decoding reads all weights to write one token, and the arithmetic is idle. A pass over *five* tokens reads
# the same weights once, and takes hardly longer. If only one knew the next four tokens!
#
# **Speculative decoding** guesses them (Leviathan et al., 2023; Chen et al., 2023). Something small and fast, the **draft**, writes a few tokens ahead.
# The large model reads them all in one pass, which tells what *it* would have expected at each place, and keeps those that it can accept.

# %%
predict("draft_changes_the_text")

# %% [markdown]
# The trick is *how* to accept. Let $p$ be the large model's distribution at a place, $q$ the draft's, and $x$ the token drawn from $q$. Keep
# $x$ with the probability $\min(1, p(x)/q(x))$. If it is not kept, draw from what $p$ has more than $q$: from $\max(p - q, 0)$, divided by its sum.
#
# By hand, $p = (0.5, 0.3, 0.2)$ and $q = (0.2, 0.3, 0.5)$. The draft says token 2 too often; it is kept with $0.2/0.5 = 0.4$. Tokens 0 and 1
# are always kept. So the kept part is $(0.2, 0.3, 0.2)$, the smaller one of each pair, and 0.3 are left for the second draw. It has to give $(0.3, 0, 0)$:
# that is $p - q$ where it is positive. Together: $(0.5, 0.3, 0.2)$, exactly $p$.
#
# ### Exercise 10 · Speculate  (4 points · 13 min · ●●●)
#
# `drafted` are $n$ tokens (perhaps none), the $i$-th drawn from row $i$ of `q`. Row $i$ of `p` is what the large model expects at that place; its last row,
# one more, stands behind the whole draft. `chance[i]` is a uniform random number, in [0, 1). Return how many drafted tokens stay, counted
# from the left, and the distribution of the *one* token that is drawn behind them, in the dtype of `p`.
#
# - token $x$ at place $i$ stays while `chance[i]` · `q[i, x]` < `p[i, x]`; the first that does not stay ends the draft;
# - behind it comes a token from the positive part of $p - q$ of that place;
# - if all stay, one more comes from the last row of `p`, for free.

# %% exercise="speculate"
def speculate(
    p: Float[Tensor, "n+1 v"], q: Float[Tensor, "n v"], drafted: Int[Tensor, " n"], chance: Float[Tensor, " n"]
) -> tuple[int, Float[Tensor, " v"]]:
    """How many drafted tokens stay, and the distribution of the token behind them."""
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
# A proof is better than a belief, and this one can be done by counting. Let a draft of two tokens go through your function, for every
# draft and for chances on a grid that is fine enough for these numbers to come out exactly; weigh each case by its probability, and write down where
# two tokens of text end up. Three tokens, and what comes depends on the token before:

# %%
numbers = partial(torch.tensor, dtype=torch.float64)
P0, Q0 = numbers([0.5, 0.3, 0.2]), numbers([0.2, 0.3, 0.5])
P = numbers([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
Q = numbers([[0.2, 0.3, 0.5], [0.5, 0.25, 0.25], [0.3, 0.6, 0.1]])
GRID = [(step + 0.5) / 10 for step in range(10)]


def two_tokens(accept: Callable) -> Float[Tensor, "v v"]:
    """The distribution of the first two tokens of text, over all drafts and chances."""
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
    """As yours, but after a miss the token is drawn from p."""
    kept, _ = speculate(p, q, drafted, chance)
    return kept, p[kept]


with suppress(NotImplementedError):
    print("plain sampling, first token:    ", [round(x, 4) for x in P0.tolist()])
    print("speculated:                     ", [round(x, 4) for x in two_tokens(speculate).sum(dim=1).tolist()])
    print("drawn from p after a miss:      ", [round(x, 4) for x in two_tokens(from_p).sum(dim=1).tolist()])
    gap = (two_tokens(speculate) - P0[:, None] * P).abs().max().item()
    print("both tokens, all nine texts, differ by less than 1e-12:", gap < 1e-12)

# %% [markdown]
# Now for real. The large model is the trained one; the draft is the cheapest there is, an n-gram model (notebook 05) that has counted the part of the help texts on
# which the model was *not* trained. When a guess is wrong, your cache has to forget what was read in vain:

# %%
with TokenFile(pretrained_folder() / "validation.tokens") as held_out:
    counted = NGram(3, tokenizer.vocab_size, witten_bell=True).count(held_out[:].tolist())


@torch.no_grad()
def write_with_draft(prompt: list[int], new: int, ahead: int, seed: int = 0, temperature: float = 1.0) -> tuple[list[int], int, list[float]]:
    """New tokens, how many passes of the large model they took, and how much p and q had in common at each place."""
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


with suppress(NotImplementedError):
    plain, _ = write(PROMPTS[1], 60, temperature=0)
    guessed, passes, _ = write_with_draft(PROMPTS[1], 60, 4, temperature=0)
    print(f"greedy: the same text as without a draft: {plain == guessed}; {60 / passes:.2f} tokens a pass")
    tokens_a_pass, in_common = {}, []
    for ahead in (1, 2, 4, 8):
        runs = [write_with_draft(prompt, 40, ahead, seed) for seed, prompt in enumerate(PROMPTS[:4])]
        tokens_a_pass[ahead] = 4 * 40 / sum(passes for _, passes, _ in runs)
        in_common += [share for *_, shares in runs for share in shares]
    alpha = sum(in_common) / len(in_common)
    print(f"drawn at T = 1: p and q have {alpha:.2f} in common")
    for ahead, rate in tokens_a_pass.items():
        print(f"{ahead} guessed: {rate:.2f} tokens a pass; by the formula {(1 - alpha ** (ahead + 1)) / (1 - alpha):.2f}")

# %% [markdown]
# The greedy text is the same, token for token. A drawn text is another one than without a draft, because the dice fall otherwise; its
# distribution is the same, as you have proved.
#
# If a guess is kept with the probability $\alpha$ (on average $\sum_x \min(p(x), q(x))$, what the two have in common) and nothing depends on what was
# before, a draft of $\gamma$ tokens gives $1 + \alpha + \dots + \alpha^\gamma = (1 - \alpha^{\gamma+1})/(1 - \alpha)$ tokens a pass.
# An n-gram is a poor draft for this model: trained ones reach 0.5 to 0.9 (Leviathan et al., 2023). And a draft costs something, a share $c$ of a large pass for each guess:

# %%
explore(figures.speculation, alpha=(0.1, 0.95), draft_cost=(0.0, 0.5))

# %% [markdown]
# **In real models.** Leviathan et al. (2023) make T5-XXL two to three times as fast with a small T5 as its draft, with identical outputs. Newer drafts are a
# head or two on the large model itself, or what followed the same words earlier in the prompt. All of it pays only while the chip waits for its memory: a server with full
# batches has no idle arithmetic to give away.

# %% [markdown]
# ## 11 · Smaller caches, and who pays
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
# At 4,096 tokens windows save nothing. At 131,072 a window in every layer takes a 32nd of what is left of the keys; eight key heads take a quarter.
#
# And the last factor of the price is not in the model at all. A sentence costs as many tokens as the tokenizer cuts it into, and a tokenizer that has learned on English cuts other languages into crumbs. The same sentence, with the trained model's tokenizer:

# %%
SENTENCES = {
    "English": "The cat sleeps on the warm roof.",
    "German": "Die Katze schläft auf dem warmen Dach.",
    "French": "Le chat dort sur le toit chaud.",
    "Chinese": "猫睡在温暖的屋顶上。",
    "Greek": "Η γάτα κοιμάται στη ζεστή στέγη.",
    "Hindi": "बिल्ली गर्म छत पर सोती है।",
}
prices = {name: len(tokenizer.encode(text)) for name, text in SENTENCES.items()}
for name, count in prices.items():
    print(f"{name:8} {count:3} tokens, {count / prices['English']:.1f} times the price and the time")

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | which text? | greedy is not the likeliest, and the likeliest is not what one wants: it is short, dull and repeats itself |
# | how to bend? | temperature divides logits; top-k, top-p and min-p cut the tail; top-p keeps the token that crosses $p$ |
# | what is kept? | keys and values of every layer; under a causal mask they never change |
# | how long does a pass take? | $\max(2NBn/\lambda_\text{FLOP/s}, (wN + Bc)/\lambda_\text{bytes/s})$: prefill by arithmetic, decoding by memory |
# | what does a batch share? | the reading of the weights, not the caches; those outweigh the weights from $BS > 6D$ on, without sharing |
# | how are machines filled? | a free slot takes the next request at once; caches come in pages |
# | how is one fast for a single text? | guess with something small, check in one pass; keep with $\min(1, p/q)$, else draw from $(p - q)_+$: exactly $p$ |

# %% [markdown]
# ### Slips
#
# From lectures and notes. Each is wrong; by now you can say why.
#
# > - A cache keeps "old key and query vectors"; "keys, queries and values". (Keys and values. A query is asked once.)
# > - "KV cache (for key-vector)". (Key–value.)
# > - A step with a cache is "dominated by the $O(td^2)$ portion", and the memory is "at most $O(T)$". (It is $O(Td^2)$ for the whole text and
# >   $O(Td)$ numbers per layer: both lost a factor.)
# > - The model of 40 billion parameters "just fits" while all heads have their own keys. ($12 L D^2$ are then 48.3 billion, 90 GiB.)
# > - All the other slips of this chapter were exercises.

# %% [markdown]
# ## Check yourself
#
# 1. At temperature 0.01, does top-p still do anything?
# 2. Why does min-p need no sorting?
# 3. A cache for a sliding window drops its oldest token. Are the remaining keys of layer 3 those that a fresh pass over the window would give?
# 4. A model with 7 billion weights in bf16, on a chip with 1 TB/s. What is the most tokens per second that one text can get?
# 5. You quantise the weights to four bits. What happens to prefill, and to decoding?
# 6. Your draft is the large model itself. What are $\alpha$ and the speed-up?
#
# <details><summary>Answers</summary>
#
# 1. Hardly: the best token has nearly all the probability, and the rest was out of reach before.
# 2. It compares each token with the best one only: a maximum will do.
# 3. No. They were computed when the dropped token was still there, and have seen it. Only those of the first layer are equal.
# 4. 14 GB have to be read for each: 71 tokens a second, whatever its arithmetic.
# 5. Decoding gets up to four times as fast, because a quarter of the bytes is read. Prefill is limited by arithmetic, and gains nothing unless the chip computes faster
#    in four bits.
# 6. $\alpha = 1$, and no speed-up at all: every guess costs a whole pass. The draft has to be cheap *and* right.
#
# </details>
#
# ## Further reading
#
# - Holtzman et al., 2020, *The curious case of neural text degeneration*; Fan et al., 2018, *Hierarchical neural story generation*; Nguyen et al., 2024, *Turning up the heat: min-p sampling*.
# - Stahlberg & Byrne, 2019, *On NMT search errors and model errors: cat got your tongue?*
# - Pope et al., 2022, *Efficiently scaling transformer inference*; Austin et al., 2025, *How to scale your model*, chapter 7.
# - Yu et al., 2022, *Orca*; Kwon et al., 2023, *Efficient memory management for large language model serving with PagedAttention*.
# - Leviathan et al., 2023, *Fast inference from transformers via speculative decoding*; Chen et al., 2023, *Accelerating large language model decoding with speculative sampling*.
# - In this package: `lmcourse.inference`, about 1,100 lines for most of the above; `lmcourse.accounting.latency`.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded.)

# %% tags=["hide-input"]
assert round(0.6 * 0.35, 2) == 0.21 and abs(measured["T = 1"][0] - measured["T = 1"][1]) < 0.15
assert measured["greedy"][0] < 0.65 * measured["greedy"][1] and measured["T = 2"][0] > 2 * measured["T = 2"][1]
assert [measured[f"T = 2{rule}"][0] for rule in ("", ", top-p 0.9", ", min-p 0.1")] == sorted(
    (measured[f"T = 2{rule}"][0] for rule in ("", ", top-p 0.9", ", min-p 0.1")), reverse=True
)
assert measured["greedy"][2] < measured["T = 1"][2] - 0.1
with suppress(NotImplementedError):
    pass_seconds(weights, 0, 1, 1, **of_the_chip)
    assert round(h100.ridge("bf16")) == 295 and round(writing / (reading / 2048)) == 300
    arithmetic_of_a_step = 2 * weights / h100.peak("bf16")
    assert round(100 * (1 - arithmetic_of_a_step / writing), 1) == 99.7
    gpt3 = find_model("gpt-3").decoder
    assert batch_where_cache_exceeds_weights(gpt3, 4096) == 19 and 6 * gpt3.d_model == 73_728 == 18 * 4096
    assert round(bytes_per_token(gpt3) / 1e6, 1) == 4.7 and round(cache_bytes(gpt3, 1, 4096).total / 1e9) == 19
    assert 12 * 60 * 8192**2 == 48_318_382_080 and 2 * 12 * 60 * 8192**2 / 2**30 == 90
    assert round(1e3 * 2 * 40e9 / 312e12, 3) == 0.256 and round(1e3 * 4 / 2048, 2) == 1.95
    real = cache_bytes(find_model("falcon-40b").decoder, 1, 2048).total / 2**30
    assert round(real, 2) == 0.23 and round(1e3 * real / 2048, 2) == 0.11
    assert round(2 * count_parameters(find_model("falcon-40b").decoder).total / 2**30, 1) == 76.9
    assert round(count_parameters(larger.config).total / 1e6) == 29 and round(1000 / 14) == 71
    assert 0.9 < sum(1 / i for i in range(1, 33)) / 4 < 1.1 and round(batch_use(lengths, 32, True) / batch_use(lengths, 32, False)) == 4

