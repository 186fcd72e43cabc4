# %% [markdown]
# # 17 · Inference
#
# **Core · 90 min · 7 exercises · 25 points** · **Further · 85 min · 4 exercises · 12 points**
#
# *How many tokens a second can this machine write, if the text must stay the same?*
#
# A trained model gives you probabilities. The obvious loop around it wrote 265 tokens a second, on one thread of our CPU. You write that loop, then a cache, and a loop that guesses ahead. After each, *your* tokens a second join one table.
#
# At the end you build a small server that writes the same texts with a third of the work.
#
# **You will be able to** write a KV cache; predict the time of a pass and say what limits it; let a small model guess without changing the text; fill a batch so that no row is idle.
#
# **You need** logits (notebook 05) and causal attention (08). No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")`.

# %%
from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.kv_cache import bytes_per_token, cache_bytes
from lmcourse.accounting.parameters import count_parameters
from lmcourse.chapters.inference import figures, measured
from lmcourse.chapters.inference.recorder import print_all_drafts
from lmcourse.inference.own_loop import Dice, InOurModel
from lmcourse.inference.row_cache import RowCache
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.styles import llama_like
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.widgets import Log

start("17-inference")
torch.set_num_threads(1)  # the models are small, and fastest on one

# %% [markdown]
# ## 1 · One token, then another
#
# A language model predicts the next token, one token is appended, and it predicts again. Always taking the likeliest is called **greedy** decoding.

# %%
predict("greedy_or_best")

# %% [markdown]
# By hand, for a language of two-letter texts. The first letter is *a* or *b*:

# %%
FIRST = {"a": 0.6, "b": 0.4}
THEN = {"a": {"c": 0.35, "d": 0.33, "e": 0.32}, "b": {"c": 0.9, "d": 0.05, "e": 0.05}}
print(f"greedy: {0.6 * 0.35:.2f}; the likeliest text: {max(p * q for x, p in FIRST.items() for q in THEN[x].values()):.2f}")
figures.text_tree(FIRST, THEN)

# %% [markdown]
# Greedy decoding (thick) misses the best text. (Further, B searches harder.) The opposite is to **draw** each token with its own probability. A **temperature** $T$ lies in between. It divides the logits:
#
# $$p_i = \frac{e^{z_i / T}}{\sum_j e^{z_j / T}}$$
#
# It gives the likeliest of three tokens with the logits 2, 1, 0 a probability of 0.67 at $T = 1$, of 0.87 at $T = \tfrac12$, and of 0.51 at $T = 2$.
#
# ### Exercise 1 · Temperature  (2 points · 5 min · ●)
#
# Return each row's probabilities at this temperature, in float32. The logits may come in half precision: convert them before you divide. A temperature of 0 means greedy: 1 for the best token of each row, 0 for all others, and of equally good tokens the first. Any temperature above 0, even $10^{-30}$, divides. Logits of $-\infty$ are allowed (but not a whole row of them). A negative temperature raises `ValueError`.

# %% exercise="temperature_probabilities"
def temperature_probabilities(logits: Float[Tensor, "b v"], temperature: float) -> Float[Tensor, "b v"]:
    """Return each row's probabilities at this temperature; at 0 the best token has all."""
    ### BEGIN SOLUTION
    if temperature < 0:
        raise ValueError(f"a temperature cannot be negative: {temperature}")
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(dim=1), logits.shape[1]).float()
    return (logits.float() / temperature).softmax(dim=1)
    ### END SOLUTION


# %% check="temperature_probabilities"

# %% [markdown]
# Now the loop. `model(tokens)` takes token ids of shape (1, s) and returns logits of shape (1, s, v): row i is for the token *after* token i. With `model(tokens, kv_cache=cache)`, `tokens` are only those after the `len(cache)` tokens in the cache, and the model adds them to it.

# %% [markdown]
# ### Exercise 2 · The loop  (3 points · 7 min · ●●)
#
# Return `new` tokens that follow the list `prompt`. `choose(logits)` takes the last row of the logits, of shape (v,), and returns the next token. Without a cache (`None`), show the model the whole text in each pass; with one, what the cache has not read. It may hold a part of the prompt already. Make one pass for each new token, and no more.

# %% exercise="write"
def write(model: Callable, prompt: list[int], new: int, choose: Callable, cache: object = None) -> list[int]:
    """Return the new tokens after a prompt."""
    ### BEGIN SOLUTION
    text = list(prompt)
    for _ in range(new):
        unread = text if cache is None else text[len(cache) :]
        logits = model(torch.tensor([unread]), kv_cache=cache)
        text.append(choose(logits[0, -1]))
    return text[len(prompt) :]
    ### END SOLUTION


# %% check="write"

# %% [markdown]
# 24 requests wait, each a prompt of 4 to 40 tokens, and a number of tokens to write, from 1 to 160. The model comes with the course: four layers, 0.87 million weights. Writing all texts without a cache takes about five seconds.

# %%
predict("tokens_without_cache")

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
orders = measured.waiting_requests()
board = measured.Scoreboard(measured.trained_model(torch.float32).model, orders)


def likeliest(logits: Float[Tensor, " v"]) -> int:
    return int(logits.argmax())


with your("write"):
    board.run({"`write`, no cache": lambda model, orders: [write(model, *order, likeliest) for order in orders]}, repeats=1)

# %% [markdown]
# ## 2 · What was new in that step?
#
# Nearly all of the text was there one step before. Which of the model's intermediate results can you keep? Compare the vectors of the old tokens, in each layer, before and after a step:

# %%
measured.print_what_stays("The value of an expression is the result of")

# %% [markdown]
# Under a causal mask no old token sees the new one, so its vectors stay. In a *window* that drops its first token, the deeper vectors change: they depend on the token that is gone. Of the old tokens only keys and values are needed: their queries are not used again.

# %% [markdown]
# ### Exercise 3 · A cache that can forget  (4 points · 10 min · ●●●)
#
# In notebook 08 `torch.cat` copied the cache at each step. Build one as servers have it, for all layers:
#
# - `append(layer, k, v)` adds the keys and values of `n` new tokens, shape (b, h, n, d), to a layer, and returns *all* that the layer now holds. Allocate memory for `capacity` tokens at the layer's first call (or earlier), in the dtype of `k`. From then on write into it and return views, so that nothing is copied twice. If the tokens do not fit, raise `ValueError` and keep the tokens as they were (a first call may have allocated).
# - `len(cache)` is the number of tokens that *every* layer holds. During a pass the first layers hold more.
# - `truncate(tokens)` makes every layer hold its first `tokens` tokens and no others. Raise `ValueError` if `tokens` is negative or more than `len(cache)`.
# - `nbytes` is the allocated memory, used or not: 0 before the first `append`. The check looks at it after *every* layer has had its first call.

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

# %% [markdown]
# `InOurModel(cache)` gives your cache the form that the course's models ask for. Draw 80 tokens at $T = 0.8$, with your three answers:

# %%
model, tokenizer = measured.trained_model().model, measured.trained_model().tokenizer
prompt, flops, written = tokenizer.encode("If the "), [], []


def drawn(dice: Dice, temperature: float = 0.8) -> Callable:
    return lambda logits: dice.draw(temperature_probabilities(logits.view(1, -1), temperature)[0])


with your("temperature_probabilities", "write", "KVCache"):
    cache = KVCache(4, len(prompt) + 80)
    for kept in (None, InOurModel(cache)):
        with FlopCounterMode(display=False) as counter:
            written.append(write(model, prompt, 80, drawn(Dice(0)), kept))
        flops.append(counter.get_total_flops())
    print(f"{sum(map(int.__eq__, *written))} of 80 tokens are the same; without the cache {flops[0] / flops[1]:.0f} times the FLOPs")
    print(f"the cache: {cache.nbytes:,} bytes, predicted {cache_bytes(model.config, 1, len(prompt) + 80, precision='fp64').total:,}")
    print(repr("If the " + tokenizer.decode(written[1])[:120]))

# %% [markdown]
# Without a cache the work grows with the square of the text's length. With it, a step costs the work of one token. And the clock?

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
def with_cache(model: Callable, orders: list) -> list[list[int]]:
    return [write(model, prompt, new, likeliest, InOurModel(KVCache(len(model.blocks), len(prompt) + new))) for prompt, new in orders]


with your("write", "KVCache"):
    board.run({"`write` and `KVCache`": with_cache})

# %% [markdown]
# It reads 46 times fewer tokens, and is nowhere near 46 times as fast. Section 5 says why.
#
# ## 3 · Two phases
#
# **Prefill** reads the prompt in one pass. **Decoding** writes, one token a pass. What does each cost?

# %%
predict("price_of_a_token")

# %% [markdown]
# A pass over $N$ weights reads $n$ new tokens of each of $B$ texts. Every weight takes part in one multiplication and one addition for every new token of every text. But its $w$ bytes are *read* from memory only once per pass. Each text has its own cache of $c$ bytes, read once too. (Attention's own FLOPs and all that a pass writes are left out.) A chip computes and reads at the same time.

# %% [markdown]
# ### Exercise 4 · The time of a pass  (3 points · 6 min · ●●)
#
# Return the seconds of a pass, and `"arithmetic"` or `"memory"` for what limits it (if both take equally long: `"memory"`). `cache_bytes` is the cache of *one* text, `width` the bytes of a weight. `peak` and `bandwidth` are the chip's FLOP/s and bytes/s.

# %% exercise="pass_seconds"
def pass_seconds(
    parameters: int, cache_bytes: int, batch: int, new: int, peak: float, bandwidth: float, width: int = 2
) -> tuple[float, str]:
    """Return the seconds of a pass, and what limits it: "arithmetic" or "memory"."""
    ### BEGIN SOLUTION
    arithmetic = 2 * parameters * batch * new / peak
    memory = (width * parameters + batch * cache_bytes) / bandwidth
    return (arithmetic, "arithmetic") if arithmetic > memory else (memory, "memory")
    ### END SOLUTION


# %% check="pass_seconds"

# %% [markdown]
# The formula is
#
# $$t = \max\Big(\frac{2 N B n}{\text{peak}},\; \frac{w N + B c}{\text{bandwidth}}\Big)$$
#
# Llama 3 8B on an H100, a prompt of 2,048 tokens:

# %%
h100, llama = find_accelerator("h100-sxm"), find_model("llama-3-8b").decoder
weights, chip = count_parameters(llama).total, {"peak": h100.peak("bf16"), "bandwidth": h100.bandwidth}
with your("pass_seconds"):
    reading, limit_reading = pass_seconds(weights, 0, 1, 2048, **chip)
    writing, limit_writing = pass_seconds(weights, 2048 * bytes_per_token(llama), 1, 1, **chip)
    print(f"prefill {1e3 * reading:5.1f} ms, {1e6 * reading / 2048:7.1f} µs a token, limited by {limit_reading}")
    print(f"decode  {1e3 * writing:5.1f} ms, {1e6 * writing:7.1f} µs a token, limited by {limit_writing}")
    print(f"a written token takes {writing / (reading / 2048):.0f} times as long as a read one;", end=" ")
    print(f"while decoding, the arithmetic is idle for {1 - 2 * weights / h100.peak('bf16') / writing:.1%} of the time")

# %% [markdown]
# (Without a cache, each token would cost a pass over the whole text: 33 ms, by arithmetic.)
#
# > **Spot the slip.** A colleague writes: "With a KV cache, decoding is compute-bound: its latency is the bytes of the model divided by the bandwidth." One half contradicts the other. Find both in this figure:

# %%
explore(figures.two_phases, accelerator=["a100-sxm-80gb", "h100-sxm", "h200"], prompt=Log(16, 8192), batch=Log(1, 256))

# %% [markdown]
# The prompt is under the flat roof. The decoding step is far down on the slope: its intensity is one FLOP per byte, and the chip could do 295. So "bytes over bandwidth" is right, and "compute-bound" is wrong.
#
# And on your machine? Take a model that is too large for the processor's caches (29 million weights in fp32). The peak is that of a matrix product; the bandwidth comes from the time of a 100 MB matrix times a vector, which reads memory as a decoding step does. If a measured time is clearly *shorter* than the prediction, the prediction is wrong.

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
larger = Transformer(llama_like(4, 768, 12, 2048, vocab_size=512, context=512)).eval().requires_grad_(False)
with your("KVCache", "pass_seconds"):
    machine = measured.print_phases(larger, 256, lambda: InOurModel(KVCache(4, 257)), pass_seconds)

# %% [markdown]
# Your `pass_seconds` is right for 29 million weights, and for Llama. In a very small model a third term counts, which it does not know: Python and the start of each operation take time, too (section 5).
#
# **In real models.** Pope et al. (2022) worked this out for PaLM. Services charge several times as much for a written token as for a read one.
#
# ## 4 · Guess, then check
#
# A pass over *five* tokens reads the same weights as a pass over one. If you only knew the next four tokens! **Speculative decoding** guesses them (Leviathan et al., 2023; Chen et al., 2023). A small and fast model, the **draft**, writes a few tokens ahead. The large model reads them in one pass, which gives *its* distribution at each place, and keeps the guesses that it can accept.

# %%
predict("draft_changes_the_text")

# %% [markdown]
# *How* does it accept? Let $p$ be the large model's distribution at a place, $q$ the draft's, and $x$ the token drawn from $q$. Keep $x$ with the probability $\min(1, p(x)/q(x))$. If it is not kept, draw one token from another distribution, such that both ways *together* give exactly $p$.

# %% [markdown]
# ### Exercise 5 · Speculate  (4 points · 8 min · ●●●)
#
# Which distribution? Find it by hand for $p = (0.5, 0.3, 0.2)$ and $q = (0.2, 0.3, 0.5)$: how much of each token comes from kept guesses, and what is still missing?
#
# `drafted` holds $n$ tokens (perhaps none), the $i$-th drawn from row $i$ of `q`. Row $i$ of `p` is the large model's distribution at the same place. Its last row, one more, is for the place after the whole draft. `chance[i]` is a uniform random number in [0, 1): token $x$ at place $i$ stays if `chance[i]` · `q[i, x]` < `p[i, x]`. Return how many tokens stay, counted from the left up to the first that does not, and the distribution of the *one* token that is drawn after them, in the dtype of `p`.

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

# %% [markdown]
# Kept guesses give each token $\min(p, q)$, here $(0.2, 0.3, 0.2)$. The rest, $1 - \sum \min(p, q)$, is drawn from $(p - q)_+ / \sum (p - q)_+$, and $\sum (p - q)_+ = 1 - \sum \min(p, q)$. Together that is $\min(p, q) + (p - q)_+ = p$.
#
# And a whole draft? Check exactly: add up every draft of two tokens from a vocabulary of three, and all chances on a grid that is fine enough, each with its probability. In the third line, the token after a miss is drawn from $p$ itself:

# %%
with your("speculate"):
    print_all_drafts(speculate)

# %% [markdown]
# ### Exercise 6 · Write with a draft  (3 points · 7 min · ●●●)
#
# `guess(text)` returns a list of tokens (perhaps empty) and the rows of $q$. In each pass show the model what the cache has not read, followed by the guesses. `probabilities(logits)` makes rows of $p$. Let `speculate` decide, on all guesses, with `torch.tensor(guesses, dtype=torch.long)` and `dice.chances(n)`, n random numbers. Draw the token after the kept guesses with `dice.draw(...)`. Then the cache must forget what is not in the text; the text's last token has not been read yet. The last pass may give too many tokens: return `new` of them.

# %% exercise="write_with_draft"
def write_with_draft(
    model: Callable, prompt: list[int], new: int, guess: Callable, cache: InOurModel, probabilities: Callable, dice: Dice
) -> list[int]:
    """Return the new tokens after a prompt; each pass checks the guesses of a draft."""
    ### BEGIN SOLUTION
    text = list(prompt)
    while len(text) < len(prompt) + new:
        guesses, q = guess(text)
        unread = text[len(cache) :]
        logits = model(torch.tensor([[*unread, *guesses]]), kv_cache=cache)[0]
        p = probabilities(logits[len(unread) - 1 :])
        drafted = torch.tensor(guesses, dtype=torch.long)
        kept, after = speculate(p, q, drafted, dice.chances(len(guesses)))
        text += [*guesses[:kept], dice.draw(after)]
        cache.truncate(len(text) - 1)
    return text[len(prompt) : len(prompt) + new]
    ### END SOLUTION


# %% check="write_with_draft"

# %% [markdown]
# The cheapest draft: counts of which token followed two others (notebook 05), in help texts that the large model has *not* read.

# %%
def with_draft(model: Callable, orders: list, temperature: float = 0, ahead: int = 4, seed: int = 0) -> list[list[int]]:
    probabilities, dice, texts = partial(temperature_probabilities, temperature=temperature), Dice(seed), []
    draft = measured.Draft(probabilities, dice, ahead)
    for prompt, new in orders:
        cache = InOurModel(KVCache(len(model.blocks), len(prompt) + new + ahead))
        texts.append(write_with_draft(model, prompt, new, draft, cache, probabilities, dice))
    return texts


short = [(tokenizer.encode(text), 40) for text in ("The ", "If the ", "A function ")]
with your("temperature_probabilities", "write", "KVCache", "speculate", "write_with_draft"):
    print("greedy, the same as without a draft:", with_cache(model, short) == with_draft(model, short))
    for ahead in (1, 4):
        rates, alpha = measured.tokens_a_pass(partial(with_draft, temperature=1.0, ahead=ahead), short, seeds=3)
        print(f"drawn, {ahead} guessed: {rates} tokens a pass with three seeds; α {alpha:.2f}, the formula below says {sum(alpha**i for i in range(ahead + 1)):.2f}")

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
with your("temperature_probabilities", "write", "KVCache", "speculate", "write_with_draft"):
    board.run({"`write` and `KVCache`": with_cache, "`write_with_draft`": partial(with_draft, ahead=2)})

# %% [markdown]
# (Guesses take time, too, so two a pass are enough here.) A greedy text stays the same. A drawn text differs, because the random numbers are used differently; its distribution is the same.
#
# Suppose each guess is kept with the probability $\alpha$, independent of the others. (On average $\alpha$ is $\sum_x \min(p(x), q(x))$.) Then a draft of $\gamma$ tokens gives $1 + \alpha + \dots + \alpha^\gamma$ tokens a pass. Trained drafts reach an $\alpha$ of 0.5 to 0.9 (Leviathan et al., 2023). And each guess costs a fraction of a large pass:

# %%
explore(figures.speculation, alpha=(0.1, 0.95), draft_cost=(0.0, 0.5))

# %% [markdown]
# **In real models.** A small T5 makes T5-XXL two to three times as fast. It pays only while arithmetic is idle: not in a server with full batches.
#
# ## 5 · Serve
#
# A batch shares the weights. So put several requests into one.

# %%
predict("idle_slots")

# %% [markdown]
# A **static** batch takes as many requests as it has slots and runs until the longest is done. **Continuous batching** (Yu et al., 2022) gives a free slot to the next request at once.

# %%
explore(figures.batch_timeline, continuous=False, slots=(1, 8))

# %%
predict("rows_of_a_pass")

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
board.run({"static batches of 8": measured.in_batches(8)})
board.print_cost(rows=8)

# %% [markdown]
# Before it reads anything, a pass costs about as much as ten tokens, more or less on your machine: this small model waits for Python. A large model waits for its memory instead, and the conclusion is the same: *few passes, many rows, none idle.*
#
# For texts of different lengths there is `RowCache(layers, capacity)`: row i holds `lengths[i]` tokens. A pass adds all of its tokens, padding too; `truncate(lengths)` cuts each row. `keep(rows)` keeps some rows, in this order. `a.join(b)` adds the rows of `b` after those of `a`. The first pass decides how many rows there are:

# %%
rows = RowCache(4, 32)
logits = model(torch.tensor([[5, 6, 7], [8, 0, 0]]), kv_cache=rows)  # the second prompt has one token
rows.truncate([3, 1])
print("next tokens:", int(logits[0, 2].argmax()), int(logits[1, 0].argmax()), "  tokens in the rows:", rows.lengths)

# %% [markdown]
# ### Exercise 7 · Serve 24 requests  (6 points · 9 min · ●●●)
#
# `requests` is a list of pairs: a prompt, and the number of tokens to write. Return the same greedy texts as one after the other, in the order of the requests, with as little work as you can. **Work is 10 · passes + tokens read**, padding included: the cost that you just saw. A pass may have at most 8 rows. Batches, an order, slots that are filled at once, a draft, your own earlier answers: yours to combine.
#
# 2 points for the same texts, 2 more for at most half of the work of one after the other, 2 more for at most a third. The check counts on a small random model in float64, where a wrong cache soon gives a wrong token (and a guess is rarely right); no clock decides. `generate`, beam search, NumPy, threads and files are not allowed.

# %% exercise="serve"
def serve(model: Transformer, requests: list[tuple[list[int], int]]) -> list[list[int]]:
    """Return the greedy text of each request."""
    ### BEGIN SOLUTION
    texts = [list(prompt) for prompt, _ in requests]
    ends = [len(prompt) + new for prompt, new in requests]
    waiting, rows = sorted(range(len(texts)), key=lambda i: requests[i][1]), []  # the longest is served first
    cache = RowCache(len(model.blocks), max(ends))
    while waiting or rows:
        joining = [waiting.pop() for _ in range(min(8 - len(rows), len(waiting)))]
        if joining:  # a pass over the new prompts alone
            sizes = [len(texts[i]) for i in joining]
            padded = [texts[i] + [0] * (max(sizes) - len(texts[i])) for i in joining]
            fresh = RowCache(len(model.blocks), max(ends))
            logits = model(torch.tensor(padded), kv_cache=fresh)[range(len(sizes)), [size - 1 for size in sizes]]
            fresh.truncate(sizes)
            cache.join(fresh)
            rows += joining
        else:
            logits = model(torch.tensor([texts[i][-1:] for i in rows]), kv_cache=cache)[:, -1]
        for i, token in zip(joining or rows, logits.argmax(-1).tolist(), strict=True):
            texts[i].append(token)
        left = [row for row, i in enumerate(rows) if len(texts[i]) < ends[i]]
        cache.keep(left)
        rows = [rows[row] for row in left]
    return [text[len(prompt) :] for text, (prompt, _) in zip(texts, requests, strict=True)]
    ### END SOLUTION


# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
with your("serve", "write", "KVCache"):
    board.run({"`write` and `KVCache`": with_cache, "`serve`": serve})

# %% check="serve"

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
print(f"What you made of {board.rate('`write`, no cache'):.0f} tokens a second:")
board.bars()

# %% [markdown]
# <details><summary>What real servers add</summary>
#
# Filling slots at once is Orca's idea (Yu et al., 2022). Real servers cannot sort: they do not know how long an answer will be. They keep caches in *pages* (Further, E), read long prompts in pieces between decoding steps (*chunked prefill*), and share the pages of equal beginnings. Int8 or bf16 weights are no way out: they write *another text* (Further, C).
#
# </details>
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what does a cache hold? | keys and values of every layer; under a causal mask they never change |
# | how long does a pass take? | $\max(2NBn/\text{peak}, (wN + Bc)/\text{bandwidth})$: prefill by arithmetic, decoding by memory; small models wait for Python |
# | how does a single text get faster? | guess with a small model, check in one pass; keep with $\min(1, p/q)$, else draw from $(p - q)_+$: exactly $p$ |
# | how do many texts get faster? | few passes with many rows, and a free slot takes the next request at once |
#
# ## Check yourself
#
# 1. A model has 7 billion weights in bf16, and the chip reads 1 TB/s. How many tokens per second can one text get at most?
# 2. Your draft is the large model itself. What are $\alpha$ and the speed-up?
#
# <details><summary>Answers</summary>
#
# 1. It reads 14 GB for each token: 71 tokens a second, whatever the arithmetic.
# 2. $\alpha = 1$, and no speed-up at all: every guess costs a whole pass. A draft must be cheap *and* right.
#
# </details>

# %% [markdown]
# The numbers in the text are checked here. (The cell is folded.)

# %% tags=["hide-input"]
lengths = [(len(prompt), new) for prompt, new in orders]
assert sum(before for before, _ in lengths) == 513 and sum(new for _, new in lengths) == 1215 and round(1215 / 24) == 51
assert sum(new * before + new * (new - 1) // 2 for before, new in lengths) == 79_066 and round(79_066 / 1704) == 46
assert sum(before + new - 1 for before, new in lengths) == 1704 and max(new for _, new in lengths) == 160
assert round(sum(w.numel() for w in model.parameters()) / 1e6, 2) == 0.87 and len(model.blocks) == 4
decoding = (2 * weights + 2048 * bytes_per_token(llama)) / h100.bandwidth
reading_time = 2 * weights * 2048 / h100.peak("bf16")
assert (f"{1e3 * reading_time:.1f}", f"{1e3 * decoding:.2f}", round(decoding / reading_time * 2048)) == ("33.2", "4.87", 300)
assert round(h100.ridge("bf16")) == 295 and round(count_parameters(larger.config).total / 1e6) == 29 and round(1000 / 14) == 71
assert [round((torch.tensor([2.0, 1.0, 0.0]) / T).softmax(dim=0)[0].item(), 2) for T in (1, 0.5, 2)] == [0.67, 0.87, 0.51]
assert f"{(1.2 + 8 * 0.13) / (1.2 + 0.13):.1f} {1.2 + 8 * 0.13:.1f} {1.2 + 0.13:.1f}" == "1.7 2.2 1.3" and round(1.2 / 0.13) in (9, 10)

# %% [markdown]
# ## Further
#
# Every section below needs the core above, and no other section.

# %%
import copy
import math
import random
import statistics
import time

import torch.nn.functional as F

from lmcourse.accounting.kv_cache import batch_where_cache_exceeds_weights
from lmcourse.accounting.latency import compute_bound_tokens, forward_operations, roofline_seconds
from lmcourse.accounting.timing import synchronise, time_interleaved
from lmcourse.inference.beam import beam_search
from lmcourse.inference.generate import generate
from lmcourse.inference.sampling import Sampling
from lmcourse.inference.weight_only import narrow_weights

# %% [markdown]
# ### A · Choosing the token  (26 min)
#
# If you draw each token with its own probability, a token with a probability of $10^{-5}$ is drawn once in a hundred thousand times. But a vocabulary of 50,000 may hold 30,000 of them: together they have 30 %. These unlikely tokens are called the *tail*, and one bad token spoils all that follows. So nearly every program bends the distribution before it draws. Temperature is one way, with a trap: a temperature per token is not a temperature of the *text*. Take the little language of section 1. You can draw each letter at $T = 0.5$. Or you can square the probabilities of whole *texts* and normalise them. The results differ:

# %%
def squared(probabilities: dict[str, float]) -> dict[str, float]:
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
# ### Exercise 8 · Three filters  (4 points · 14 min · ●●●)
#
# Return the logits, with $-\infty$ where a token is out. Everything else stays as it came: same dtype, same places. A rule that is `None` does nothing. Apply top-k, then top-p, then min-p. Each rule sees the tokens that the rule before it has left, normalised again, with probabilities in float32 (or float64).
#
# - top-k keeps the `top_k` likeliest tokens, or all if there are fewer.
# - top-p sorts by probability. A token stays if the tokens *before* it have less than (or at most) `top_p` together. With `top_p` = 1 everything stays.
# - min-p keeps a token if its probability is at least `min_p` times the best token's.
#
# It is up to you which of several equal logits stay at the limit of top-k or top-p, and whether a token stays if those before it have exactly `top_p`. Raise `ValueError` if `top_k` is below 1, or if `top_p` or `min_p` is not above 0 and at most 1. A logit that is $-\infty$ already stays so.

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
    order = logits.argsort(descending=True)
    if top_k is not None:
        logits = logits.scatter(1, order[:, top_k:], -math.inf)
    if top_p is not None and top_p < 1:
        p = logits.float().softmax(dim=1).gather(1, order)
        out = p.cumsum(dim=1) - p >= top_p
        logits = logits.masked_fill(out.gather(1, order.argsort()), -math.inf)
    if min_p is not None:
        limit = logits.float().amax(dim=1, keepdim=True) + math.log(min_p)
        logits = logits.masked_fill(logits < limit, -math.inf)
    return logits
    ### END SOLUTION


# %% check="filter_logits"

# %% [markdown]
# See the rules at work on the model of this notebook. On the left you see its prediction in grey, and in blue the same after the rules. On the right are 30 tokens drawn by these rules. Try both beginnings. After "The value of the exp" the model is sure; after "The" many tokens are possible. Is there a *k* that suits both? Then set the temperature to 2, and try to save the text with each of the three rules alone.

# %%
explore(figures.next_token, beginning=list(figures.BEGINNINGS), temperature=Log(0.1, 4.0), top_k=[1, 2, 5, 20, 512], top_p=(0.05, 1.0), min_p=(0.0, 0.5))

# %% [markdown]
# **In real models.** `transformers`, vLLM and llama.cpp have all four rules. Some apply the temperature first, some last, and the order changes which tokens top-p and min-p keep. In the paper on min-p, human judges prefer it at high temperatures; others have disputed that evaluation.
#
# **Which rule writes well?** Only a reader can say. But one thing can be measured without a reader: how surprised a model is by the text that it wrote. The surprise at a token is $-\ln p$ of that token. Before the token is drawn, the model *expects* a surprise: the entropy of its prediction.

# %%
predict("surprise_of_its_own_text")

# %%
PROMPTS = [tokenizer.encode(text) for text in ("The ", "If the ", "A function ", "When ", "This ", "It is ", "For ", "An object ")]


def surprise_and_entropy(written: list[list[int]]) -> tuple[float, float]:
    """Return the mean −ln p of the tokens of texts, and the mean entropy of the predictions, in nats per token."""
    tokens = torch.tensor(written)
    log_p = model(tokens[:, :-1]).log_softmax(dim=-1)
    surprise = -log_p.gather(-1, tokens[:, 1:, None]).mean()
    return surprise.item(), -(log_p.exp() * log_p).sum(dim=-1).mean().item()


def variety(written: list[list[int]]) -> float:
    """Return the fraction of 4-grams of tokens that are different, averaged over texts."""
    return statistics.mean(len({tuple(text[i : i + 4]) for i in range(len(text) - 3)}) / (len(text) - 3) for text in written)


RULES = {"greedy": Sampling(0)} | {f"T = {T}": Sampling(T) for T in (0.5, 0.7, 1, 1.5, 2)}
RULES |= {"T = 2, top-k 5": Sampling(2, top_k=5), "T = 2, top-p 0.9": Sampling(2, top_p=0.9), "T = 2, min-p 0.1": Sampling(2, min_p=0.1)}
samples = {name: generate(model, 3 * PROMPTS, 100, rule, generator=torch.Generator().manual_seed(0)) for name, rule in RULES.items()}
surprises = {name: (*surprise_and_entropy(written), variety(written)) for name, written in samples.items()}
print("rule                surprise   entropy   4-grams that differ")
for name, (surprise, entropy, differ) in surprises.items():
    print(f"{name:18}{surprise:10.1f}{entropy:10.1f}{differ:16.0%}")

# %% [markdown]
# At $T = 1$ both are nearly the same: the model is as surprised by its own text as it expected to be. Greedy text is *too* probable, with half the expected surprise, and it repeats itself. At $T = 2$ the model is more than twice as surprised as it expected. Is that because it gets lost in its own strange text? Compute the surprise that drawing at $T = 2$ gives on average, $\sum q\,(-\ln p)$, in ordinary text too:

# %%
for name, tokens in (("held-out text", torch.tensor(measured.held_out()[:2560]).view(20, 128)), ("its own text at T = 2", torch.tensor(samples["T = 2"]))):
    log_p = model(tokens).log_softmax(dim=-1)
    drawn_surprise, entropy = (-((log_p / T).softmax(dim=-1) * log_p).sum(dim=-1).mean().item() for T in (2, 1))
    print(f"{name:22} entropy {entropy:.1f}, surprise when drawn at T = 2: {drawn_surprise:.1f} nats")

# %% [markdown]
# At $T = 2$ it draws tokens that it holds unlikely; this alone costs 5.2 nats in ordinary text. The strange contexts that follow add only 0.3. With the tail cut off, the same temperature does little harm. Min-p and top-p both cut. Why does top-p at 0.9 do so little here? A hot distribution is flat, and nine tenths of a flat distribution contain most of its tail.

# %%
print(*(f"{name}: {tokenizer.decode(samples[name][0])[:80]!r}" for name in ("greedy", "T = 0.7", "T = 2", "T = 2, min-p 0.1")), sep="\n")

# %% [markdown]
# The model is tiny, so reading cannot judge the rules: half of the text at $T = 0.7$ is nonsense, too. The table can.
#
# **In real models.** Holtzman et al. (2020) saw the same in GPT-2. The likeliest text repeats itself, and each repetition makes the next one likelier. Human text is full of surprises that greedy decoding would never choose.
#
# ### B · Searching  (1 min)
#
# Perhaps greedy decoding is dull because it misses the best text, as in section 1. **Beam search** searches harder: it keeps the few best beginnings (the *beams*), tries every token after each, and keeps the best ones again. Let it find a sentence that begins with "An object ", up to a full stop:

# %%
full_stops = [token for token in range(tokenizer.vocab_size) if tokenizer.decode([token]).endswith(".")]
for prompt in ("An object ", "When the "):
    for beams in (1, 4, 16, 64):
        best = beam_search(model, tokenizer.encode(prompt), 40, beams, full_stops, alpha=0.0)[0]
        print(f"{beams:3} beams   ln p = {best.log_probability:6.2f}   {prompt + tokenizer.decode(best.tokens)!r}")

# %% [markdown]
# With more beams the text gets likelier, or stays the same. But these are not sentences: they are fragments that end at once. Every further token lowers the probability, so the likeliest text is a short one. That is why beam search has a *length penalty*, and why it is used for translation and transcription, where there is little to choose, and not for conversation.
#
# **In real models.** Stahlberg & Byrne (2019) searched a translation model *exactly*. For more than half of the sentences its best translation was the empty one.
#
# ### C · Faster, on your machine  (24 min)
#
# A decoding step of a large model reads every weight. There are two ways to get more from each reading: more texts in the batch, or fewer bytes for each weight. Try both, with *your* cache.

# %%
predict("batch_of_64")

# %%
predict("int8_gains")

# %% [markdown]
# Your `pass_seconds` has an answer, before anything is measured. Arithmetic begins to limit at the **knee**, a batch of about $w \cdot \text{peak} / (2 \cdot \text{bandwidth})$. `past` is 64: each text has 64 tokens in the cache.

# %% tags=["nbval-ignore-output", "because it shows rates of this machine"]
BATCHES, PAST, WIDTHS = (1, 2, 4, 8, 16, 32, 64), 64, {"fp32": 4, "int8": 1}
size, cache_of_a_text = count_parameters(larger.config).total, cache_bytes(larger.config, 1, PAST, precision="fp32").total
knees = {name: width * machine["peak"] / (2 * machine["bandwidth"]) for name, width in WIDTHS.items()}
with your("pass_seconds"):
    predicted = {name: {batch: pass_seconds(size, cache_of_a_text, batch, 1, **machine, width=width)[0] for batch in BATCHES} for name, width in WIDTHS.items()}
print(f"knees of this machine: {knees['fp32']:.0f} texts in fp32, {knees['int8']:.0f} in int8")

# %% [markdown]
# ### Exercise 9 · Time a decoding step  (4 points · 15 min · ●●)
#
# `step()` reads one token for each text of a batch into `cache`, your `KVCache`, which already holds `past` tokens. Return the median seconds of a step over `repeats` steps (fewer than 1: `ValueError`). The measurement must be fair:
#
# - the very first step loads and allocates, so it does not count, and `repeats` others do (you may leave out more at the beginning);
# - all steps do the same work: each one begins with exactly `past` tokens in the cache, and at the end `past` remain;
# - a step's time contains that step, from an idle device to an idle device, and nothing else. `clock()` returns seconds, and `synchronise()` waits until the device is idle.

# %% exercise="decode_seconds"
def decode_seconds(step: Callable, cache: "KVCache", synchronise: Callable, clock: Callable, past: int, repeats: int) -> float:
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

# %% [markdown]
# (The check uses a simulated device, so no real clock decides a point.) Now the real one. `narrow_weights` makes a copy of the model whose linear layers have int8 weights, one byte each, with a scale for each row. Both models take turns at each batch, so that a busy neighbour disturbs both.

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
models, by_batch = {"fp32": larger, "int8": narrow_weights(larger, "int8")}, {"fp32": {}, "int8": {}}


@torch.inference_mode()
def step_seconds(model: Transformer, batch: int, repeats: int = 5) -> float:
    cache, token = KVCache(4, PAST + 1), torch.randint(512, (batch, 1))
    for layer in range(4):
        cache.append(layer, *torch.randn(2, batch, 12, PAST, 64))
    step = partial(model, token, kv_cache=InOurModel(cache))
    return decode_seconds(step, cache, partial(synchronise, "cpu"), time.process_time, PAST, repeats)


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
    gains = {batch: by_batch["fp32"][batch] / by_batch["int8"][batch] for batch in BATCHES}
    print("int8 is faster by", ", ".join(f"{gain:.1f}" for gain in gains.values()), f"- most for {max(gains, key=gains.get)} texts;", end=" ")
    print("for 64 it", "loses: converting the weights costs more than it saves" if gains[64] < 0.95 else "does not lose")

# %% [markdown]
# Below the knee, eight times the texts take far less than eight times as long, because they share the reading of the weights. Beyond the knee, every text brings its own arithmetic, and the curve bends. That is the roofline. According to your `pass_seconds`, int8 gains a factor of four for one text and nothing beyond the knee of fp32. Measured, it gains less: its weights are converted before each product, a third term. On three machines it gained most for 2 to 8 texts, a factor of 1.7 to 2.9; from 32 texts on it gained nothing, or lost up to a third. The last line above says what yours does.
#
# Is a measured time far above "at least"? Then look for what a formula with two terms leaves out. An example: in fp32, a step for two or four texts may take twice as long as a step for one. A batch of one is a matrix times a *vector*, which is read in order. From two or four on, as the library decides, it is a product of matrices, and the weights are first copied into another layout.
#
# (A step after $t$ tokens also reads $2td$ numbers of keys and values in each layer of width $d$, and does as many multiplications. With 64 tokens that is little; D has long texts.)
#
# Back to the 24 requests of the core. Does your `serve` get faster with narrower weights?

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
narrow_models = {"int8": narrow_weights(board.model, "int8"), "bf16": copy.deepcopy(board.model).bfloat16()}
with your("serve"):
    board.run({f"`serve`, {name} weights": lambda _, orders, other=other: serve(other, orders) for name, other in narrow_models.items()})

# %% [markdown]
# Narrow weights write *another text* in some ten of 24 cases, because a near-tie is decided differently, and then everything after it differs. (Passes of copies are not counted.) What helps is to compile a step, which turns the many calls of a pass into few (notebook 19).
#
# ### D · The bill of a step  (11 min)
#
# In the core the caches were small. On servers they are not, and a batch does not share them: every text brings its own.

# %%
predict("cache_beyond_weights")

# %%
print("model             weights   cache of a token   of 2,048    heavier than the model from")
for name in ("gpt-3", "llama-2-7b", "llama-3-8b", "llama-3.1-405b", "falcon-40b"):
    config = find_model(name).decoder
    whole = cache_bytes(config, 1, 2048).total
    print(f"{name:15}{2 * count_parameters(config).total / 2**30:7.0f} GiB{bytes_per_token(config) / 1024:11.0f} KiB{whole / 2**30:12.2f} GiB{batch_where_cache_exceeds_weights(config, 2048):12} texts")

# %% [markdown]
# (2,048 tokens are all that GPT-3 and Falcon-40B can read.) As a formula, take a model of $L$ layers of width $D$ with $12 L D^2$ weights and one key head per query head. The cache of a token has $2 L D$ numbers. So the caches of $B$ texts of $S$ tokens outweigh the weights if $2 BSLD > 12 LD^2$, which is $BS > 6D$. For GPT-3, $6D = 73{,}728$ tokens: 36 texts of 2,048. The table counts all weights, not only $12 L D^2$, and agrees to one text. Models that share keys (notebook 08) carry more texts, and that is why they share.
#
# In the figure a step for 512 texts of 512 tokens is limited by arithmetic. From which batch on? Then make the texts four times as long. Why is there no such batch any more?

# %%
explore(
    figures.decode_step,
    model=["llama-2-7b", "llama-3-8b", "llama-3-70b", "falcon-40b"],
    accelerator=["a100-sxm-80gb", "h100-sxm", "h200", "mi300x"],
    batch=Log(1, 1024),
    context=Log(256, 8192),
)

# %% [markdown]
# From 455 texts on: one more text adds 0.143 ms of arithmetic and 0.050 ms of reading its cache, and 455 times the difference is what the weights take, 42 ms. Arithmetic can become the limit only if one more text adds more time for arithmetic than for reading its cache. For this model, a cache of 2,048 tokens takes longer to read than its text takes to compute.
#
# How good is a formula with two terms? The course's own accounting adds up all operators, attention and activations included. Compare the two for a step of 32 texts of 2,048 tokens, in milliseconds (yours | all operators). Peaks and bandwidths come from the data sheets; whether it all fits in memory is another question.

# %%
farthest = 0.0
with your("pass_seconds"):
    print("32 texts of 2,048      " + "".join(f"{chip:>20}" for chip in ("a100-sxm-80gb", "h100-sxm", "mi300x")))
    for name in ("llama-2-7b", "llama-3-8b", "llama-3-70b", "falcon-40b"):
        config, row = find_model(name).decoder, []
        for chip in map(find_accelerator, ("a100-sxm-80gb", "h100-sxm", "mi300x")):
            cache = cache_bytes(config, 1, 2048).total
            short, _ = pass_seconds(count_parameters(config).total, cache, 32, 1, chip.peak("bf16"), chip.bandwidth)
            full = roofline_seconds(forward_operations(config, 32, 1, past=2047), chip, "bf16").total
            farthest = max(farthest, abs(short / full - 1))
            row.append(f"{1e3 * short:11.1f} | {1e3 * full:6.1f}")
        print(f"{name:23}" + "".join(row))
    print(f"never further apart than {farthest:.0%}")

# %% [markdown]
# **In real models.** Attention's part of a decoding step has an intensity of about one FLOP per byte *for every* batch (or as many as query heads share a key head). No batch size makes it compute-bound (Austin et al., 2025).
#
# **A question.** A colleague wants to serve 200 texts of 2,048 tokens with a model of 40 billion parameters in bf16. All heads have their own keys, so the cache of a text takes 4 GiB. He plans four A100s with 80 GiB each. "The arithmetic of a step takes 13 ms, and the reading takes about as long." What do you answer? Your `pass_seconds` helps; four devices that share everything evenly take a quarter of each time:

# %%
a100, forty_billion, four_gib = find_accelerator("a100-sxm-80gb"), 40 * 10**9, 4 * 2**30
needed = 2 * forty_billion + 200 * four_gib
print(f"weights and caches: {needed / 2**30:.0f} GiB, that is {math.ceil(needed / a100.memory)} devices; "
      f"four have place for {(4 * a100.memory - 2 * forty_billion) // four_gib} texts")
falcon = find_model("falcon-40b").decoder
real_weights, real_cache = 2 * count_parameters(falcon).total, cache_bytes(falcon, 1, 2048).total
with your("pass_seconds"):
    for name, parameters, cache in (("own keys", forty_billion, four_gib), ("Falcon-40B, 8 key heads", real_weights // 2, real_cache)):
        step_time, limit = pass_seconds(parameters, cache, 200, 1, a100.peak("bf16"), a100.bandwidth)
        arithmetic = 2 * parameters * 200 / (4 * a100.peak("bf16"))
        print(f"{name}: {1e3 * step_time / 4:.1f} ms on four devices, limited by {limit}; arithmetic {1e3 * arithmetic:.1f} ms")
print(f"Falcon-40B: {real_cache / 2**30:.2f} GiB a text; {(2 * a100.memory - real_weights) // real_cache} texts fit on two devices")

# %% [markdown]
# It does not fit, and the reading takes nine times as long as the arithmetic. Another text adds 0.26 ms of arithmetic (on one device) and 2.1 ms of reading, so no batch is ever limited by arithmetic. The real Falcon-40B has 8 key heads. Its texts add only 0.12 ms of reading each, so arithmetic limits the step from 287 texts on.
#
# How many texts does it take until arithmetic limits the weights' part of a step? As many as make $2BN/\text{peak}$ longer than $2N/\text{bandwidth}$: the ridge point of the chip. (Real matrices need a few more.)

# %%
for name in ("a100-sxm-80gb", "h100-sxm"):
    chip = find_accelerator(name)
    print(f"{name:14} ridge {chip.ridge('bf16'):3.0f} FLOPs per byte; {compute_bound_tokens(8192, chip):3.0f} tokens at a width of 8,192")

# %% [markdown]
# ### E · Slots and pages  (12 min)
#
# Find 200 people who ask at the same moment, and whose answers have the same length! How much of a batch is used otherwise? Count it, without a model and without a clock.

# %% [markdown]
# ### Exercise 10 · Batches  (3 points · 9 min · ●●)
#
# All requests wait from the beginning, in this order. Request `i` writes `lengths[i]` tokens (at least 1), one per step. Return the fraction of slot-steps in which a token is written: all tokens, divided by `slots` times the number of steps until the last request is done.
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

# %%
dice = random.Random(0)
answers = [1 + int(dice.expovariate(1 / 300)) for _ in range(3200)]
with your("batch_use"):
    print("slots   static: counted, 1/(1 + 1/2 + … + 1/slots)   continuous")
    for slots in (4, 8, 32):
        harmonic = sum(1 / i for i in range(1, slots + 1))
        print(f"{slots:5}{batch_use(answers, slots, False):15.0%}{1 / harmonic:21.0%}{batch_use(answers, slots, True):26.0%}")

# %% [markdown]
# For random (exponential) lengths, the longest of $B$ is on average $1 + \tfrac12 + \dots + \tfrac1B$ times the mean, and all slots wait for it. Filling slots at once is worth a factor of four at 32.
#
# Memory is wasted too. The length of an answer is not known in advance, so early servers reserved the longest possible cache for every text. **Pages** work as in operating systems: a text gets its cache in pages of, say, 16 tokens, anywhere in memory, and a new page when the last one is full.

# %%
shorter = [min(length, 2048) for length in answers]
print(f"2,048 tokens reserved for each text: {sum(shorter) / (2048 * len(shorter)):.0%} used;", end=" ")
print(f"pages of 16: {sum(shorter) / sum(16 * math.ceil(length / 16) for length in shorter):.1%}")

# %% [markdown]
# **In real models.** Kwon et al. (2023) found that earlier systems used 20 to 38 % of the memory that they reserved for caches. Their vLLM has pages and continuous batches, and so has nearly every server since. Texts that begin with the same prompt can share its pages. And a long prompt is read in pieces, between the decoding steps of the other texts, so that they need not wait for all of it (*chunked prefill*; Agrawal et al., 2023).
#
# ### F · Smaller caches  (10 min)
#
# Everything that makes a cache smaller makes decoding cheaper. For 32 layers with 32 query heads of 128, in bf16:

# %%
print("                                       4,096 tokens   131,072 tokens")
LAYERS, HEADS, D_HEAD, WINDOW = 32, 32, 128, 4096
kinds = {"every head its own keys (MHA)": (32, 32), "8 key heads (GQA)": (8, 32), "one key head (MQA)": (1, 32)}
kinds |= {"GQA, window of 4,096 in 3 of 4 layers": (8, 8), "GQA, window of 4,096 in all layers": (8, 0)}
for name, (key_heads, full) in kinds.items():
    cached = [full * tokens + (LAYERS - full) * min(tokens, WINDOW) for tokens in (4096, 131_072)]
    sizes = [2 * 2 * key_heads * D_HEAD * tokens / 2**30 for tokens in cached]
    print(f"{name:38}{sizes[0]:8.4g} GiB{sizes[1]:13.4g} GiB")

# %% [markdown]
# At 4,096 tokens windows save nothing. At 131,072, a window in every layer leaves a 32nd of the keys. Eight key heads leave a quarter, at any length. The two multiply. (Notebook 08 has what sharing costs.)
#
# **Two bits for the cache.** Or keep each number in fewer bits: store its distance from the smallest number, in steps. Which numbers share a scale? Either all channels of a token, or all tokens of a channel.

# %% [markdown]
# ### Exercise 11 · Round the keys  (1 point · 4 min · ●●)
#
# `keys` of a head has a row for each token and a column for each channel. The line `low, high = keys.amin(axis, keepdim=True), keys.amax(axis, keepdim=True)` decides. Which axis loses less, 0 or 1? First look at the keys of layer 3, 128 channels of four heads:

# %%
seen = []
handle = model.blocks[3].attention.layer.qkv.register_forward_hook(lambda _, __, qkv: seen.append(qkv[0, :, 128:256]))
model(torch.tensor([measured.held_out()[:256]]))
handle.remove()
means, spread = seen[0].mean(dim=0).abs().sort().values, seen[0].std(dim=0).mean()
print(f"|mean| of a channel: median {means[64]:.1f}, the largest {[round(x, 1) for x in means[-4:].tolist()]}; spread within a channel {spread:.1f}")

# %% exercise="key_axis"
key_axis = None  # 0 or 1 in place of None
### BEGIN SOLUTION
key_axis = 0
### END SOLUTION

# %% check="key_axis"

# %%
def rounded_cache(bits: int, axis: int, layer: object, inputs: object, qkv: Float[Tensor, "b s d"]) -> Float[Tensor, "b s d"]:
    _, k, v = qkv.chunk(3, dim=-1)
    for part, along in ((k, (1, 3)[axis]), (v, 3)):
        heads = part.unflatten(-1, (4, 32))
        low, high = heads.amin(along, keepdim=True), heads.amax(along, keepdim=True)
        step = (high - low) / (2**bits - 1)
        part.copy_((((heads - low) / step).round() * step + low).flatten(2))
    return qkv


some = torch.tensor(measured.held_out()[: 12 * 256]).view(12, 256)
for name, bits, axis in (("exact", 0, 0), *((f"{bits} bits, axis {axis}", bits, axis) for bits in (4, 2) for axis in (0, 1))):
    hooks = [block.attention.layer.qkv.register_forward_hook(partial(rounded_cache, bits, axis)) for block in model.blocks if bits]
    print(f"{name:15} {F.cross_entropy(model(some)[:, :-1].flatten(0, 1), some[:, 1:].flatten()).item():.2f} nats")
    for hook in hooks:
        hook.remove()

# %% [markdown]
# (Values always had a scale per token.) With four bits little is lost. With two, a scale for each channel of the keys (axis 0) loses much less: a few channels are always large, and a scale for a whole token then leaves hardly any steps for the others. KIVI (Liu et al., 2024) rounds keys per channel and values per token, for this reason.
#
# **Four bits for the weights.** A scale for a whole row fits the row's largest weight, and with four bits only 15 steps are left for all others. So **int4** gives a scale of 16 bits to each *group*: of 32 weights in llama.cpp's `Q4_0` (half a bit more for each weight), of 128 in most GPTQ and AWQ models.
#
# **Your own model.** `lmcourse package` makes a model, `my_transformer`, of your answers of 08 to 11 (see `docs/training.md`). Your cache fits it too, if you change two of its functions: rotation must start where the cache ends, and attention must see the cached keys. Nothing else in a transformer looks at other tokens.

# %% [markdown]
# ## Further reading
#
# - Holtzman et al., 2020, *The curious case of neural text degeneration*; Fan et al., 2018, *Hierarchical neural story generation*; Nguyen et al., 2024, *Turning up the heat: min-p sampling*.
# - Stahlberg & Byrne, 2019, *On NMT search errors and model errors: cat got your tongue?*
# - Pope et al., 2022, *Efficiently scaling transformer inference*; Austin et al., 2025, *How to scale your model*, chapter 7.
# - Agrawal et al., 2023, *SARATHI: efficient LLM inference by piggybacking decodes with chunked prefills*.
# - Yu et al., 2022, *Orca: a distributed serving system for Transformer-based generative models*; Kwon et al., 2023, *Efficient memory management for large language model serving with PagedAttention*.
# - Leviathan et al., 2023, *Fast inference from transformers via speculative decoding*; Chen et al., 2023, *Accelerating large language model decoding with speculative sampling*.
# - Liu et al., 2024, *KIVI: a tuning-free asymmetric 2bit quantization for KV cache*.
# - In this package: `lmcourse.inference`, about 1,300 lines for most of the above; `lmcourse.accounting.latency`.

# %% [markdown]
# The numbers of Further are checked here. (The cell is folded.)

# %% tags=["hide-input"]
assert abs(surprises["T = 1"][0] - surprises["T = 1"][1]) < 0.15
assert surprises["greedy"][0] < 0.65 * surprises["greedy"][1] and surprises["T = 2"][0] > 2 * surprises["T = 2"][1]
assert surprises["T = 2"][0] > surprises["T = 2, top-p 0.9"][0] > surprises["T = 2, min-p 0.1"][0]
assert surprises["greedy"][2] < surprises["T = 1"][2] - 0.1
gpt3 = find_model("gpt-3").decoder
assert batch_where_cache_exceeds_weights(gpt3, 2048) == 37 and 6 * gpt3.d_model == 73_728 == 36 * 2048
assert round(bytes_per_token(gpt3) / 1e6, 1) == 4.7 and round(cache_bytes(gpt3, 1, 2048).total / 1e9, 1) == 9.7
arithmetic = 2 * forty_billion * 200 / (4 * a100.peak("bf16"))
assert round(1e3 * arithmetic) == 13 and farthest < 0.03 and round(needed / (4 * a100.bandwidth) / arithmetic) == 9
assert round(1e3 * 2 * 40e9 / a100.peak("bf16"), 2) == 0.26 and round(1e3 * four_gib / a100.bandwidth, 1) == 2.1
assert round(1e3 * real_cache / a100.bandwidth, 2) == 0.12
assert 286 < real_weights / a100.bandwidth / (real_weights / a100.peak("bf16") - real_cache / a100.bandwidth) < 287
seventy = find_model("llama-3-70b").decoder
per_text = {tokens: cache_bytes(seventy, 1, tokens).total / h100.bandwidth for tokens in (512, 2048)}
compute = 2 * count_parameters(seventy).total / h100.peak("bf16")
reading_weights = 2 * count_parameters(seventy).total / h100.bandwidth
assert per_text[512] < compute < per_text[2048] and 512 * (compute - per_text[512]) > reading_weights
assert round(reading_weights / (compute - per_text[512])) == 455 and f"{1e3 * reading_weights:.0f} {1e3 * compute:.3f} {1e3 * per_text[512]:.3f}" == "42 0.143 0.050"
assert 0.9 < sum(1 / i for i in range(1, 33)) / 4 < 1.1
assert round(0.97 * 32 * sum(max(answers[i : i + 32]) for i in range(0, 3200, 32)) / sum(answers)) == 4  # 0.97: as printed
