# %% [markdown]
# # 05 · Language models
#
# **Core · 90 min · 7 exercises · 19 points** · **Further · 83 min · 5 exercises · 12 points**
#
# A language model is a bookmaker. Before every word it lays odds on all words there are; then the word comes, and the model pays for its surprise. **What does a text have to cost, and for what do you pay more?**
#
# We made the language ourselves, little stories, so we know its price.
#
# At the end, you have decided what your model's next letter depends on, and lowered its bill item by item, towards that known floor.
#
# **You need** logarithms and softmax (notebook 01), and a little PyTorch. No GPU. Stuck? `hint("name_of_the_exercise")` gives a nudge; run it again for the next one.

# %%
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise, product

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.chapters.language_models import figures
from lmcourse.chapters.language_models.figures.stories import losses_by_order
from lmcourse.chapters.language_models.judged import compare_with_counts
from lmcourse.chapters.language_models.kinds import counted_table, kinds_source, new_text_price, train_table, write
from lmcourse.chapters.language_models.stories import bill, print_bills, stories
from lmcourse.chapters.language_models.story_contexts import LENGTHS, last_letters, overpaid
from lmcourse.chapters.language_models.word_vectors import judge_vectors
from lmcourse.data.grammar import story_grammar
from lmcourse.data.window_order import WindowOrder
from lmcourse.models.ngram import NGram
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.widgets import Log

start("05-language-models")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · the students opened their ___
#
# Books? Laptops? Minds? A **language model** does not choose. Given the words so far, it gives each word of a finite **vocabulary** $V$ a probability to come next:
#
# $$p(w_{T+1} \mid w_1, \dots, w_T;\, \theta), \qquad \text{a vector with one entry for each word of } V.$$
#
# $\theta$ stands for whatever the model has learned. A word may be a letter or a byte, too: a *token*. The entries are not negative and sum to one. The set of all such vectors is the **simplex** (Further A).
#
# ## 2 · A whole text
#
# Odds for the next word give odds for a whole text. Each word comes with its probability after all words before it:
#
# $$p(w_1, \dots, w_T) = \prod_{t=1}^{T} p(w_t \mid w_1, \dots, w_{t-1}).$$
#
# Take a model of three words that looks one word back:

# %%
FOLLOWERS = [[0.1, 0.6, 0.3], [0.7, 0.1, 0.2], [0.25, 0.25, 0.5]]


def toy_model(past: tuple[int, ...]) -> list[float]:  # p(next word) for the words a, b and c
    return FOLLOWERS[past[-1]] if past else [0.5, 0.3, 0.2]


figures.probability_tree(("a", "b", "c"), toy_model, 2)

# %% [markdown]
# The texts of one length share a probability of 1. By brute force, and what goes wrong with long texts:

# %%
texts = list(product(range(3), repeat=4))
total = sum(math.prod(toy_model(text[:t])[text[t]] for t in range(4)) for text in texts)
print(f"{len(texts)} texts of four words, together {total:.9f}")
print("a thousand words of 0.01: product", math.prod([0.01] * 1000), "  sum of logarithms", round(1000 * math.log(0.01), 1))

# %% [markdown]
# ### Exercise 1 · The probability of a text  (2 points · 6 min · ●●)
#
# `next_probabilities` is a model: called with a *tuple* of all words so far, `()` at the beginning, it returns a list with the probability of each word. Return the natural logarithm of the probability of `text`, which may be thousands of words long. The empty text has probability 1. If a word cannot come, the result is $-\infty$.

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

# %% [markdown]
# ## 3 · Surprise
#
# The word $w$ comes. What does the bookmaker pay? Bills of two words should add up while their probabilities multiply, so there is no choice but a logarithm: the **surprise** of a word is $-\log p(w)$ (Shannon, 1948). A certain word costs nothing, an impossible one infinitely much. The base is the unit: $\ln$ gives **nats**, $\log_2$ **bits**; a nat is $1/\ln 2 = 1.443$ bits.
#
# Suppose the words really occur with probabilities $p$, and the model believes $q$. On average over what comes, it pays the **cross-entropy**
#
# $$H(p, q) = -\sum_{w} p(w)\,\log q(w), \qquad p, q \text{ of shape } (|V|).$$
#
# By hand: a coin shows heads nine times of ten. A model that believes it is fair pays one bit, whatever comes. A model that knows the coin pays $0.9 \cdot 0.152 + 0.1 \cdot 3.322 = 0.469$ bits.

# %% [markdown]
# ### Exercise 2 · The price  (2 points · 5 min · ●)
#
# Return $H(p, q)$ with logarithms to the given base. A word that cannot come ($p = 0$) costs nothing, whatever the model says of it: $0 \cdot \log 0$ is 0. If the model calls impossible what can come, the price is infinite. Lists of different lengths: raise `ValueError`.

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

# %% [markdown]
# > **A colleague writes:** "For $p = (1, 0, 0, 0)$, $q = (¼, ¼, ¼, ¼)$ has $H = 2$, and $q = (0.91, 0.03, 0.03, 0.03)$ has 0.136. My training loop prints 1.386 and 0.0943, so it has a bug." Your function answers:

# %%
with your("cross_entropy"):
    for q in ([0.25] * 4, [0.91, 0.03, 0.03, 0.03]):
        print(f"q = {q}: {cross_entropy([1, 0, 0, 0], q, base=2):.3f} bits, {cross_entropy([1, 0, 0, 0], q):.4f} nats")

# %% [markdown]
# No bug: the loop counts in nats. Now compare two models:

# %%
predict("two_cross_entropies")

# %%
with your("cross_entropy"):
    for p, q in (([0.25] * 4, [0.25] * 4), ([0.97, 0.01, 0.01, 0.01], [0.7, 0.1, 0.1, 0.1])):
        price, own = cross_entropy(p, q, base=2), cross_entropy(p, p, base=2)
        print(f"p = {p}, q = {q}: {price:.3f} bits = {own:.3f} entropy + {price - own:.3f} difference")

# %% [markdown]
# The price has two parts:
#
# $$H(p, q) = \underbrace{-\textstyle\sum p \log p}_{\text{entropy } H(p)} + \underbrace{\textstyle\sum p \log \frac pq}_{\mathrm{KL}(p \,\Vert\, q)\, \ge\, 0}$$
#
# The first is what the *language* costs. The second is paid for what the model does not know (by Gibbs' inequality never negative, and 0 only for $q = p$). So cross-entropy compares models of the same truth, and nothing else. Lay your own odds; can you make the orange part vanish?

# %%
explore(figures.cross_entropy_bars, books=(0.01, 0.98, 0.01), laptops=(0.01, 0.98, 0.01), unit=["nats", "bits"])

# %% [markdown]
# ## 4 · The loss of training
#
# For a real text we do not know $p$, but what came. So the mean over its tokens replaces the average,
#
# $$\mathcal L = -\frac1{B\,(S - 1)} \sum_{b=1}^{B} \sum_{s=1}^{S-1} \ln p_{b,s}\big[x_{b,s+1}\big], \qquad p_{b,s} = \text{softmax}(z_{b,s}),$$
#
# with tokens $x$ of shape $(B, S)$ and logits $z$ of shape $(B, S, |V|)$, the model's scores. *The logits at $s$ predict token $s + 1$.*

# %% [markdown]
# ### Exercise 3 · The loss of training  (3 points · 8 min · ●● · differentiable)
#
# Return this mean as a zero-dimensional tensor. Convert 16-bit logits to float32 first; the loss is float32, or float64 for float64 logits. Logits may be as large as 10,000. Texts of a single token: raise `ValueError`. PyTorch's own losses and `torch.nn` are forbidden; the tensor method `.log_softmax` is allowed.

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

# %% [markdown]
# > **Spot the slip.** A colleague writes the loss as $\frac1{|D|} \sum_{d} \sum_{t} \log p(x_{d,t} \mid x_{d,<t})$, "to minimize", over the tokens of each document $d$ and all $|D|$ documents. There are two slips.
#
# <details><summary>Answer</summary>
#
# Without the minus, a model learns to be wrong. The other slip is quieter. Take a document of one token that costs 1 nat, and one of three tokens that cost 2 nats each. The colleague's mean (with a minus) is 3.5, the mean over tokens 1.75. The first, and the size of its gradient, depends on how the text was cut into documents. The usual loss is the second.
#
# </details>
#
# Which loss do you expect at the start of a training?

# %%
predict("first_loss_of_llama")

# %%
torch.manual_seed(0)
logits, tokens = 0.02 * torch.randn(1, 9, 128_256), torch.randint(128_256, (1, 9))
with your("next_token_loss"):
    print(f"a first loss: {next_token_loss(logits, tokens):.2f} nats; ln 128,256 = {math.log(128_256):.2f}")

# %% [markdown]
# A first loss well above $\ln |V|$ means that the model is *sure* of something before it has seen a word: most often its last layer is too large.
#
# ## 5 · Count
#
# One *assumes* that only the last $n - 1$ words matter (the **Markov assumption**, 1913), and counts: of all the times that this context was followed by a word, how often by this one? That is an **n-gram** model (bigram, trigram for $n = 2, 3$).
#
# By hand, in *a b c a b a a b c*: after *b* come *c*, *a* and *c*. So $p(c \mid b) = ⅔$. Three colleagues have programmed it, with letters for words:

# %%
def model_a(text: str, context: str) -> dict[str, float]:
    return {letter: text.count(context + letter) / text.count(context) for letter in sorted(set(text))}


def model_b(text: str, context: str) -> dict[str, float]:
    after = re.findall(re.escape(context) + "(.)", text)
    return {letter: after.count(letter) / len(after) for letter in sorted(set(text))}


def model_c(text: str, context: str) -> dict[str, float]:
    after = [following for before, following in pairwise(text) if context in ("", before)]
    return {letter: after.count(letter) / len(after) for letter in sorted(set(text))}


for model in (model_a, model_b, model_c):
    print(model.__name__, {letter: round(p, 3) for letter, p in model("abcabaabc", "b").items()})

# %% [markdown]
# ### Exercise 4 · Find the fault  (2 points · 6 min · ●●)
#
# Here all three are right. But each is wrong on other texts. Return for each model, under its name, a text and a context for which it gives a wrong probability, or divides by zero although something follows the context. The context may be empty: then every letter of the text counts. `model_c` is meant for contexts of at most one letter.

# %% exercise="faults"
def faults() -> dict[str, tuple[str, str]]:
    """For each model, by name: a text and a context on which it is wrong."""
    ### BEGIN SOLUTION
    return {
        "model_a": ("abcab", "b"),  # the last b is counted, and followed by nothing
        "model_b": ("aab", "a"),  # the second a is used up as the letter after the first
        "model_c": ("ab", ""),  # the first letter comes after no other
    }
    ### END SOLUTION


# %% check="faults"

# %% [markdown]
# ### Exercise 5 · Count  (3 points · 7 min · ●●)
#
# `text` and `context` are lists of words, numbered from 0 to `vocabulary` − 1. Return the probability of each word to follow the context, counted in the text: a list (not an array) of `vocabulary` floats that sums to one. The context may be empty: then every place of the text counts. Occurrences may overlap. If the context was never followed by anything, raise `ValueError`.

# %% exercise="ngram"
def ngram(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    """The probability of each word 0 … vocabulary − 1 after the context, counted in the text."""
    ### BEGIN SOLUTION
    n, counts = len(context), [0] * vocabulary
    for place in range(len(text) - n):
        if text[place : place + n] == context:
            counts[text[place + n]] += 1
    if not any(counts):
        raise ValueError(f"nothing was ever seen after {context}")
    return [count / sum(counts) for count in counts]
    ### END SOLUTION


# %% check="ngram"

# %%
with your("faults", "ngram"):
    compare_with_counts(faults(), ngram)

# %% [markdown]
# Now the stories, letter by letter. A bigram model can be counted with your `ngram`. Or trained: take a table of logits, a row for each letter before, all zeros, and lower your `next_token_loss` on fifty stories with Adam (notebook 04). Where will it arrive?

# %%
predict("counts_or_training")

# %%
fifty, new_ones = "".join(stories(50, seed=0)), sorted(stories(50, seed=1000), key=len)
print(*stories(2, seed=7), sep="")
letters = sorted(set(fifty))
text = [letters.index(letter) for letter in fifty]
tokens, table = torch.tensor([text]), torch.zeros(len(letters), len(letters), requires_grad=True)
optimizer, costs = torch.optim.Adam([table], lr=0.5), []
with your("next_token_loss", "ngram"):
    for _ in range(101):
        loss = next_token_loss(table[tokens], tokens)
        costs.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    counts = torch.tensor([ngram(text, [letter], len(letters)) for letter in range(len(letters))])
    by_counts = next_token_loss(counts.log()[tokens], tokens).item()
print("trained:", *(f"{costs[step]:.4f} after {step} steps;" for step in (0, 10, 50, 100)), f"counted: {by_counts:.4f}")

# %% [markdown]
# Counting solves a training problem, and training is a way to count. Let counts write, with longer and longer contexts (¶ is the end of a line):

# %%
for n in (1, 2, 3, 5, 8):
    written = NGram(n, 128).count(fifty.encode()).generate(b"\n", 76, torch.Generator().manual_seed(0))
    print(n, bytes(written).decode().replace("\n", "¶"))

# %% [markdown]
# From 5 on it looks like our language. But did the counts see every letter of a new story after its context?

# %%
on_fifty, on_new, impossible = losses_by_order(50)
print("impossible by counts, of new letters:", *(f"{impossible[n - 1]:.1%} with n = {n};" for n in (2, 4, 6, 8, 10)))

# %% [markdown]
# One impossible letter, and the whole text costs $\infty$. **Smoothing** gives a little to what was never seen: more general contexts help out, the rarer the special one, the more. Witten and Bell (1991) start with equal odds, here $p = 1/128$, go from the most general context to the most special, and for each replace
#
# $$p \;\leftarrow\; \frac{\text{count}(w) + t\,p}{n + t},$$
#
# where $\text{count}(w)$ is how often $w$ followed this context, $n$ how often anything did, and $t$ how many *different* words did.

# %% [markdown]
# ### Exercise 6 · Mix  (2 points · 7 min · ●●)
#
# `counts` holds a `Counter` for each context, from the most general to the most special: how often each letter followed it. Return the probability of `letter`, mixed by this rule. An empty counter, of a context that was never seen, changes nothing.

# %% exercise="mixed"
def mixed(counts: list[Counter], letter: str) -> float:
    """p(letter): start from 1/128, and let each context's counts change it, from the most general to the most special."""
    ### BEGIN SOLUTION
    p = 1 / 128
    for seen in counts:
        if seen:
            p = (seen[letter] + len(seen) * p) / (seen.total() + len(seen))
    return p
    ### END SOLUTION


# %% check="mixed"

# %% [markdown]
# ## 6 · The floor
#
# We made the language, so we know its entropy. Can a model pay less?

# %%
predict("scored_on_the_same")

# %%
H = story_grammar().entropy_per_byte
on_five, new_after_five, _ = losses_by_order(5)
print(f"entropy of the stories: {H:.5f} nats per byte, {H / math.log(2):.4f} bits, a choice among {math.exp(H):.3f}")
print("  n    five stories: on them, on new ones    fifty stories: on them, on new ones")
for n in (1, 2, 3, 4, 6, 8, 10):
    print("{:3}{:27.3f}{:13.3f}{:28.3f}{:13.3f}".format(n, *(x[n - 1] for x in (on_five, new_after_five, on_fifty, on_new))))

# %% [markdown]
# A model that knows the grammar pays the entropy of its choices, and no model pays less on *new* text, on average. On the stories that it has counted, a model can: it remembers what nobody could predict. A loss so far below the entropy is memory. (Luck moves it little: twenty samples of ten stories cost 0.207 to 0.228 under the grammar itself.) Which $n$ is best for new text, and how does it change with more text?

# %%
explore(figures.ngram_loss, n=(1, 10), count=Log(5, 40))

# %% [markdown]
# ### What is the difference paid for?
#
# With $n = 6$ and fifty stories, a letter of new text costs 0.44 nats, and the language 0.22. The grammar knows the true price of every piece of a story: a noun, a verb, a bracket. What does a model pay above it?

# %%
counted_ones = stories(50, seed=0)
by_n = {f"n = {n}": overpaid(last_letters(*range(n)), counted_ones, new_ones) for n in (3, 6, 8)}
more_text = overpaid(last_letters(*range(6)), stories(500, seed=0), new_ones)
start_bill = overpaid(last_letters(*LENGTHS), counted_ones, new_ones)
print_bills(by_n | {"500 stories": more_text, "six lengths": start_bill}, details="n = 6")

# %% [markdown]
# There are three reasons to pay too much. Where ten times the text helps, the model had *counted too little*: sums become half as expensive, and verbs cheaper. That is about a sixth of the difference. For the rest, the model does not *see* what decides. Nouns and verbs are the largest items: the place that says which may come is several sentences back. The hero is the dearest *per piece*, for the same reason, but comes rarely. That is the Markov assumption, in nats.
#
# The third reason is the mixing rule: contexts of six and of seven letters have mostly seen the same few cases, and it counts them twice. With fewer lengths, the last 0, 1, 2, 3, 6 and 12 letters, the ten stories of the bill cost 0.37 instead of 0.42.
#
# ## 7 · What does the next letter depend on?
#
# **Decide what your model looks at.** A context can be anything that you compute from the story so far. This kit counts which letter came next, and mixes the counts with your `mixed`. Each paragraph of a story plays at one place (look at the two stories above):

# %%
def counted(texts: list[str], contexts: Callable) -> dict:  # for each key: how often each letter came next
    seen = defaultdict(Counter)
    for text in texts:
        for at, letter in enumerate(text):
            for key in contexts(text[:at]):
                seen[key][letter] += 1
    return seen


def odds(seen: dict, contexts: Callable, past: str, letter: str) -> float:  # p(letter) after this past
    return mixed([seen[key] for key in contexts(past) if key in seen], letter)

# %%
predict("one_letter")

# %% [markdown]
# ### Exercise 7 · What decides  (5 points · 16 min · ●●●)
#
# `past` is a story so far, from its first letter. Return a list of at most 20 keys, from the most general to the most special. A key is a text, a number, `None` or a tuple of these; the same past must always give the same keys. The cell starts with the six lengths. Read the bill: its dearest lines say what is missing. The grammar's code is off limits; what you have *understood* of the stories is not.
#
# The check (5 to 20 seconds) counts in fifty stories and prices fifty others, three times; grading takes other stories. Costs differ by up to 0.02 between such pairs, so points go by the gain over the start on the same stories (which costs 0.381 nats per byte, the mean of three): 0.008, 0.036 and 0.05. **The finish line is 0.05.** No other lengths that we tried gain anything.

# %% exercise="contexts"
def contexts(past: str) -> list:
    """The keys that decide the next letter, from the most general to the most special."""
    keys = [past[len(past) - k :] for k in (0, 1, 2, 3, 6, 12) if k <= len(past)]
    ### BEGIN SOLUTION
    paragraph = past[past.rfind("\n") + 1 :]
    sentence = paragraph[paragraph.rfind(".") + 1 :]
    place = re.search(r"is (\w+ the \w+)\.", paragraph)
    if place and not sentence.startswith(" Now"):
        keys += [(place[1], key) for key in keys[1:]]
    if sentence.startswith(" So ") and " " not in sentence[4:]:
        keys.append(("hero", paragraph.split(" ")[0], sentence))
    ### END SOLUTION
    return keys


# %% [markdown]
# Your `text_log_probability` prices the shortest new story:

# %%
with your("contexts", "mixed", "text_log_probability"):
    seen = counted(counted_ones, contexts)
    losses = [-math.log(odds(seen, contexts, text[:at], letter)) for text in new_ones for at, letter in enumerate(text)]

    def next_letters(past: tuple[int, ...]) -> list[float]:
        return [odds(seen, contexts, "".join(map(chr, past)), chr(letter)) for letter in range(128)]

    log_p = text_log_probability(next_letters, list(new_ones[0].encode()))
paid = bill("".join(new_ones), losses)
print(f"{sum(losses) / len(losses):.3f} nats per byte; the shortest: {-log_p:.3f} nats = {sum(losses[: len(new_ones[0])]):.3f}")
print_bills({"the start": start_bill, "Exercise 7": paid}, details="Exercise 7")
print("dearer than at the start:", *(f"{name};" for name in paid if paid[name].per_byte > start_bill[name].per_byte + 1e-9))

# %% check="contexts"

# %% [markdown]
# You told the model where to look. Could it find out by itself? That is attention (notebooks 06 and 08).
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what is a language model? | odds for the next word, given those before; a point of a simplex |
# | the probability of a text? | the product of the odds of what came; in practice a sum of logarithms |
# | cross-entropy? | mean surprise: $H(p, q) = H(p) + \mathrm{KL}(p \Vert q)$; compare only models of the same truth |
# | the loss? | $-\frac1{B(S-1)}\sum \ln \text{softmax}(z_s)[x_{s+1}]$, in nats per token; $\ln \lvert V\rvert$ before the first step |
# | an n-gram model? | count(context and word) / count(context and anything); smoothing for what was never seen |
# | how good is the best model? | its loss on new text is the entropy of the language; below it there is only memory |
# | for what does a model pay more? | for what it counted too rarely, and for what it does not look at |
#
# ## Check yourself
#
# 1. A model gives every word of your text a probability of at least 0.5. What is the most its loss can be, in bits?
# 2. Your training loss on these stories is 0.15 nats per byte. What do you suspect?
# 3. A colleague's bigram probabilities sum to 0.9996 after one of the words. Which word?
#
# <details><summary>Answers</summary>
#
# 1. One bit per word: $-\log_2 0.5$.
# 2. It is far below 0.222, so it is memory. Look at the loss on new stories.
# 3. The last word of the text: its last occurrence is followed by nothing, but was counted.
#
# </details>

# %% tags=["hide-input"]
assert round(1 / math.log(2), 3) == 1.443 and round(-math.log2(0.9), 3) == 0.152 and round(-math.log2(0.1), 3) == 3.322
assert round(0.9 * 0.152 + 0.1 * 3.322, 3) == 0.469 and abs(total - 1) < 1e-12
assert [(round(-math.log2(x), 3), round(-math.log(x), 4)) for x in (0.25, 0.91)] == [(2.0, 1.3863), (0.136, 0.0943)]
assert (1 + 2 + 2 + 2) / 2 == 3.5 and (1 + 2 + 2 + 2) / 4 == 1.75 and round(math.log(128_256), 2) == 11.76
assert round(H, 5) == 0.22215 and 0.43 < on_new[5] < 0.46
for seed in range(5):  # five stories, again and again
    five = "".join(stories(5, seed)).encode()
    assert NGram(8, 128).count(five).losses(five).mean() < H
own = [-story_grammar().log_probability(one) / len(one) for one in ("".join(stories(10, seed)) for seed in range(20))]
assert (round(min(own), 3), round(max(own), 3)) == (0.207, 0.228)
assert on_five[7] < H < min(on_new) and on_new.argmin() > new_after_five.argmin()
six, eight = by_n["n = 6"], by_n["n = 8"]
gap, less = (sum(item.per_byte for item in items.values()) for items in (six, more_text))
assert 0.14 < 1 - less / gap < 0.2 and 0.43 < gap + H < 0.46
cheaper = {name: more_text[name].each / item.each for name, item in six.items()}
assert cheaper["a sum or bracket"] < 0.6 and cheaper["a verb"] < 0.75 < 0.8 < min(cheaper["a noun"], cheaper["the hero comes back"])
assert sorted(six, key=lambda name: six[name].per_byte)[-2:] == ["a verb", "a noun"]
assert max(six, key=lambda name: six[name].each) == "the hero comes back" and eight["a noun"].each < six["a noun"].each
assert eight["the hero comes back"].each > six["the hero comes back"].each
assert [round(sum(item.per_byte for item in one.values()) + H, 2) for one in (start_bill, eight)] == [0.37, 0.42]

# %% [markdown]
# ## Further
#
# Read the blocks in any order: each needs the core, and no other block.

# %% [markdown]
# ### A · The simplex  (9 min)
#
# All probability distributions over three words form a set in space.

# %%
predict("simplex_of_three")

# %%
explore(figures.your_odds, books=(0.0, 1.0, 0.1), laptops=(0.0, 1.0, 0.1))

# %% [markdown]
# Two sliders reach every point of the triangle: *windows* gets what the other two leave of 1. (If they leave less than nothing, both are divided by their sum.) The models that give *books* a half are a line parallel to the side where *books* has 0. Those that call *windows* impossible are the side between *books* and *laptops*.

# %% [markdown]
# ### Exercise 8 · Is it a distribution?  (1 point · 4 min · ●)
#
# Return whether `v` is a distribution: all entries are numbers (neither infinite nor NaN), none is negative, however slightly, and the sum, computed in float64, is at most $10^{-5}$ away from 1, or $10^{-2}$ if `v` comes in 16 bits (`torch.float16`, `torch.bfloat16`). An empty `v` is not a distribution.

# %% exercise="is_distribution"
def is_distribution(v: Float[Tensor, "v"]) -> bool:
    """Return True if v is a probability distribution over its entries, up to rounding."""
    ### BEGIN SOLUTION
    tolerance = 1e-2 if v.dtype in (torch.float16, torch.bfloat16) else 1e-5
    wide = v.double()
    return bool((wide >= 0).all() and abs(wide.sum().item() - 1) <= tolerance)
    ### END SOLUTION


# %% check="is_distribution"

# %% [markdown]
# A model with GPT-2's vocabulary ends in 50,257 numbers. Here are such numbers, from a softmax, in four formats:

# %%
torch.manual_seed(0)
scores = 5 * torch.randn(50_257, dtype=torch.float64)
with your("is_distribution"):
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        p = scores.softmax(dim=0).to(dtype)
        bound = max((e for e in (0, 1e-12, 1e-9, 1e-7, 1e-4, 1e-3) if abs(math.fsum(p.tolist()) - 1) > e), default=0)
        print(f"{dtype}: the sum is off by more than {bound}; a distribution: {bool(is_distribution(p))}")

# %% [markdown]
# **In real models.** PyTorch's samplers reject a negative or NaN entry, but they do not ask for a sum of one: they divide by it. A loss does not divide. If you compute a softmax in 16 bits, or filter a distribution (notebook 17) and forget to divide by what is left, your odds do not sum to one, and the loss means nothing.

# %% [markdown]
# ### B · The entropy of a source  (14 min)
#
# For the stories we took the computer's word. For a simpler source, compute the entropy yourself.

# %% [markdown]
# ### Exercise 9 · The entropy of a source  (4 points · 12 min · ●●●)
#
# A source writes an endless text; after word $i$ comes word $j$ with probability $P_{ij}$, whatever was before. Every word can be reached from every other, perhaps in several steps (and some sources alternate forever between two sets of words). What does a word of this text cost the best model there is, on average, in nats? $P$ is a float64 tensor; zeros in it are allowed, and $0 \ln 0$ is 0. Be exact to nine digits.

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

# %%
P_coin = torch.tensor([[0.9, 0.1], [0.5, 0.5]], dtype=torch.float64)
with your("entropy_rate"):
    print(f"the entropy of a source: {float(entropy_rate(P_coin)):.2f} nats per word")
hundred_thousand = write(P_coin, 100_000, seed=0).tolist()
for n in (1, 2, 3):
    cost = NGram(n, 2).count(hundred_thousand).losses(hundred_thousand).mean().item()
    print(f"n = {n}: counted in 100,000 words of it: {cost:.2f} nats per word")

# %% [markdown]
# For this source two words are all that counts: a bigram model reaches the floor, a trigram model finds nothing more. Shannon (1951) asked the same about English, in two ways. From tables of letter counts, as in this notebook, he found 4.03 bits for a letter alone, 3.32 if one letter before it is known, 3.1 if two are. Then he let people guess, with 100 letters before their eyes: the entropy must be between 0.6 and 1.3 bits. For today's language models the floor is not known; it is fitted to their losses (Hoffmann et al., 2022: 1.69 nats per token, for their text and tokens).

# %% [markdown]
# ### C · Perplexity of what?  (8 min)
#
# The exponential of a loss is called **perplexity**: $\exp(\mathcal L)$, the number of equally likely words among which the model seems to choose. It is the same for nats and bits if you take the right base.

# %%
predict("bytes_or_words")

# %% [markdown]
# Perplexity counts per *token*, and tokens are a choice. Longer tokens make harder guesses, and fewer of them. The text is the same for both, and so are its bytes: the price per byte of two models can be compared whatever their tokens.

# %% [markdown]
# ### Exercise 10 · Bits per byte  (1 point · 4 min · ●)
#
# A model reads `text` as `tokens` tokens, with a mean loss of `loss` nats per token. Return what the text costs in bits per byte. Bytes are those of UTF-8; the text is not empty.

# %% exercise="bits_per_byte"
def bits_per_byte(loss: float, tokens: int, text: str) -> float:
    """The price of the text in bits per byte, from the mean loss in nats per token."""
    ### BEGIN SOLUTION
    return loss * tokens / math.log(2) / len(text.encode())
    ### END SOLUTION


# %% check="bits_per_byte"

# %%
many, held_out = "".join(stories(300, seed=0)), "".join(stories(60, seed=1000))
rows = []
for name, cut in (("bytes", list), ("words", re.compile(r" ?\w+|\W").findall)):
    number: dict[str, int] = {}
    train, test = ([number.setdefault(token, len(number)) for token in cut(whole)] for whole in (many, held_out))
    by_order = NGram(3, len(number), witten_bell=True).count(train).losses_by_order(test).mean(dim=1).tolist()
    rows += [(name, n, each, len(test)) for n, each in enumerate(by_order, start=1)]
    print(f"{name}: {len(number)} different tokens, {len(held_out) / len(test):.2f} bytes each on average")
with your("bits_per_byte"):
    for name, n, each, count in rows:
        print(f"{name}, n = {n}: perplexity {math.exp(each):6.2f} per token, {bits_per_byte(each, count, held_out):.3f} bits per byte")
print(f"the floor:    perplexity {math.exp(H):6.3f} per byte, {H / math.log(2):13.3f} bits per byte")

# %% [markdown]
# **In real models.** GPT-2's paper reports perplexities and bits per byte (Radford et al., 2019), and *The Pile* is scored in bits per byte for this reason (Gao et al., 2020). With a model that costs 1 bit per byte, a file of $N$ bytes can be compressed to $N/8$ bytes: loss is file size (arithmetic coding; Delétang et al., 2024).

# %% [markdown]
# ### D · Words as vectors  (10 min)
#
# An n-gram model knows nothing about *bears* from having read about *bear*. A network does better, because it does not start from numbers of words but from vectors. Formally, a word is a **one-hot** vector $o$, of zeros with a single one, and the vector of the word is $e = o\,E$, with $E$ of shape $(|V|, d)$: the product picks a row.

# %%
torch.manual_seed(0)
E, word = torch.randn(8, 3), 5
one_hot = torch.eye(8)[word]
print("one_hot @ E:", one_hot @ E, "  the row of the word:", E[word])
print(f"as a product {2 * 50_257 * 768:,} operations for GPT-2's 50,257 words and 768 features; as a look-up, none")

# %% [markdown]
# What could be in such a vector? Here is a table made by hand, after a well-known one in Andrew Ng's lectures. Its four columns are gender, royal, age and food.

# %%
BY_HAND = {
    "man": [-1.00, 0.01, 0.51, 0.04],
    "woman": [1.00, 0.02, 0.47, 0.01],
    "king": [-0.95, 0.93, 0.70, 0.02],
    "queen": [0.97, 0.95, 0.69, 0.01],
    "apple": [0.00, -0.01, 0.03, 0.95],
    "orange": [0.01, 0.00, -0.02, 0.97],
}

# %%
predict("least_alike")

# %%
figures.similarity(tuple(BY_HAND), list(BY_HAND.values()))

# %% [markdown]
# *Closeness* is not what this table shows: man and woman have a cosine of $-0.61$, king and queen of 0.19. Its point is a **direction**. Start at king, subtract man, and add woman. Where do you arrive?

# %%
predict("king_minus_man")

# %%
vectors = torch.tensor(list(BY_HAND.values()), dtype=torch.float64)
arrived = vectors[2] - vectors[0] + vectors[1]
print("you arrive at", [round(entry, 2) for entry in arrived.tolist()])
for name, cosine in zip(BY_HAND, torch.cosine_similarity(vectors, arrived, dim=1).tolist(), strict=True):
    print(f"  cosine with {name:6} {cosine:7.4f}")

# %% [markdown]
# On this table it works beautifully. But the table was made for it. Is it so with vectors that were *learned*? One learns a word from the company it keeps (Firth, 1957): count which words occur near which, and take the logarithm of how much more often they meet than by chance, where it is positive. The rows of this matrix are long vectors, one for each word. The **singular value decomposition** finds the 16 directions in which these vectors differ most, and each word keeps its coordinates along them (`word_vectors.py`). For the words of our stories we know what they are: a topic, and a role.

# %%
predict("owl_to_owls")

# %%
learned = {window: judge_vectors("".join(stories(500, seed=0)), window) for window in (2, 5, 20)}
for window, (kept, topic, role, plurals) in learned.items():
    print(f"window {window:2}: {kept:.0%} of the squares kept; nearest has the topic {topic:.0%}, the role {role:.0%}; plural found {plurals:.0%}")

# %% [markdown]
# The vectors know a great deal: the nearest word always has the same topic, and with a narrow window always the same role. A narrow window finds what could stand *in a word's place*, a wide one what goes *with* it (Levy & Goldberg, 2014). But "bear + plural" is no direction that one can add. Where analogies work on real vectors (Mikolov et al., 2013), a good part of it is that the answer is near $c$ anyway, and that the inputs are left out: with them, the answer is most often one of them (Linzen, 2016).

# %% [markdown]
# ### E · Learned instead of counted  (28 min)
#
# A bigram model as a table of logits has $|V|^2$ numbers. Here is a source of 80 words. They belong to six hidden kinds, and what comes next depends on the kind of the last word alone. The model is told nothing about kinds, and gets 30 words of text for each of the 80:

# %%
v = 80
P = kinds_source(words=v, kinds=6, seed=3)
little = write(P, 30 * v + 1, seed=3)
entropy = new_text_price(P.log(), P)
counting = new_text_price(counted_table(little, v), P)
different = len(set(pairwise(little.tolist())))
print(f"{len(little) - 1:,} pairs of words, {different:,} different ones of {v * v:,} that are possible")
print(f"entropy {entropy:.3f} nats per word; counts (Witten and Bell) cost {counting - entropy:.3f} more on new text")

# %% [markdown]
# (`new_text_price` needs no sample: $-\sum_i \pi_i \sum_j P_{ij} \ln q_{ij}$ is the exact price of endless new text, where $\pi_i$ is how frequent word $i$ is in it.) Can fewer numbers know more?

# %% [markdown]
# ### Exercise 11 · Learn what counting cannot  (4 points · 20 min · ●●●)
#
# Let each word have a few features: in place of the table of logits put $E\,F + b$, with $E$ of shape $(|V|, r)$, $F$ of shape $(r, |V|)$ and $b$ of shape $(|V|)$. Words that are used in the same way can then share what is learned about them.
#
# `text` holds words, numbered from 0 to `v` − 1. Of its pairs of neighbours, in their order, train on the first nine tenths and keep the last tenth aside. Return a dict with
#
# - `log_p`, of shape (`v`, `v`): in row $i$ the log-probability of each word after word $i$;
# - `train` and `held_out`: what this table costs, in nats per word, on the pairs that you trained on, and on those kept aside.
#
# The rank $r$, the optimizer and the number of steps are your choice, and a call may take five seconds. The course's own functions, such as `counted_table`, may not be used. The check asks four things, of sources like the one above, one point for each: the rows are distributions; on endless new text the table is cheaper than a model that ignores the word before; `train` and `held_out` are right; and its cost above the entropy is at most 0.8 times that of the counts.

# %% exercise="learn"
def learn(text: Int[Tensor, "n"], v: int) -> dict:
    """Log-probabilities of each word after each, trained on nine tenths of a text, and what they cost."""
    ### BEGIN SOLUTION
    first, second = text[:-1], text[1:]
    kept = len(first) // 10
    model = torch.nn.Sequential(torch.nn.Embedding(v, 4), torch.nn.Linear(4, v))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    best = {"held_out": math.inf}
    for _ in range(200):
        log_p = model(torch.arange(v)).log_softmax(dim=1)
        prices = -log_p[first, second]
        train, held_out = prices[:-kept].mean(), prices[-kept:].mean()
        if held_out < best["held_out"]:
            best = {"log_p": log_p.detach(), "train": train.item(), "held_out": held_out.item()}
        optimizer.zero_grad()
        train.backward()
        optimizer.step()
    return best
    ### END SOLUTION


# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
with your("learn"):
    print(f"above the entropy: {new_text_price(learn(little, v)['log_p'], P) - entropy:.3f}; counts: {counting - entropy:.3f}")

# %% check="learn"

# %% [markdown]
# How many numbers are too many, and what if you do not stop? Each line is one run of 300 steps; costs are on new text, above the entropy:

# %%
rank_4 = [train_table(P, little, rank=4, seed=seed) for seed in range(3)]
runs = [("rank 2", train_table(P, little, rank=2)), *((f"rank 4, seed {seed}", run) for seed, run in enumerate(rank_4))]
runs += [("rank 8", train_table(P, little, rank=8)), ("the whole table", train_table(P, little, rank=None))]
print(f"{'counting':16}{counting - entropy:6.2f}")
for name, run in runs:
    at_stop, at_end = run.new[run.stopped] - entropy, run.new[-1] - entropy
    print(f"{name:16}{at_stop:6.2f} if stopped where the last tenth is cheapest, {at_end:.2f} at the end; "
          f"on its own text then {run.train[-1] - entropy:+.2f}")

# %% [markdown]
# At the end each run costs less than the entropy on its own text: this is the memory of section 6, and this time it was trained. The whole table costs no less than counting, even if it is stopped in time: what it learns about one word helps no other. A few features per word do better, because words of one kind come to share them. At rank 2 it costs little not to stop; at rank 8 it costs more than a nat. (The whole table has more numbers and ends lower: it starts at 0, and learns only about words that it has seen together, so the rest of a row stays equally likely.) Put a network in place of $E\,F$ and keep the loss: contexts that were never seen then get odds from contexts that are like them.
#
# What may the network look at? For a product of conditionals, at the past: such a model is called **autoregressive**. BERT (Devlin et al., 2019) is not: a few words are hidden, and it sees those on both sides.

# %%
figures.contexts_seen()

# %% [markdown]
# Seeing both sides makes better guesses, but gives no probability of a text. Take two words that mostly agree, and multiply the probability of each given the other:

# %%
joint = torch.tensor([[0.4, 0.1], [0.1, 0.4]], dtype=torch.float64)
forward, backward = joint / joint.sum(dim=1, keepdim=True), joint / joint.sum(dim=0, keepdim=True)
print(f"p(first) p(second | first), over all texts:          {(joint.sum(dim=1, keepdim=True) * forward).sum():.2f}")
print(f"p(first | second) p(second | first), over all texts: {(backward * forward).sum():.2f}")

# %% [markdown]
# So a lower loss of a model that sees both sides does not make it the better language model: the two numbers price different questions.

# %% [markdown]
# ### F · Once through the data, and writing  (10 min)
#
# With $N$ tokens of text, batches of $B$ windows and $S$ predictions in each, one pass takes $N / (B\,S)$ steps. Large models are trained for about one pass (Llama 3: $15 \cdot 10^{12}$ tokens; Grattafiori et al., 2024), or a few over the best parts: up to four passes help nearly as much as new text (Muennighoff et al., 2023). In the first pass the training loss is honest: what is read once cannot be looked up. But is it read once? Many training loops draw windows at random.

# %%
predict("one_epoch")

# %%
draws = np.random.default_rng(0)
for n in (1000, 100_000):
    once, twice = (len(np.unique(draws.integers(n, size=size))) / n for size in (n, 2 * n))
    print(f"{n:7,} windows: seen after as many draws {once:.1%}, after twice as many {twice:.1%}; 1 − 1/e = {1 - 1 / math.e:.1%}")
order = WindowOrder(tokens=32_001, seq_len=32, seed=0)
print("shuffled instead:", len(set(order.starts(0, order.per_epoch))), "different windows of", order.per_epoch)

# %% [markdown]
# **Writing.** A trained model writes as ours did: draw a word from its odds, append it, ask again. This does not change the old text, so what the model computed for it could be kept. This is a design goal of every architecture in this course.

# %% [markdown]
# ### Exercise 12 · Reading to write  (2 points · 4 min · ●)
#
# A model writes `new` tokens after a prompt of `prompt` tokens. For each new token it must have computed all tokens before it: all of them again each time, or, with `reuse`, only those that it has not computed yet. Return how many tokens it computes altogether, as an exact whole number. `new` may be 0. A prompt of less than one token: raise `ValueError`.

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

# %%
with your("tokens_read"):
    for reuse in (False, True):
        print(f"a prompt of 100 and an answer of 1,000, reuse={reuse}: {tokens_read(100, 1000, reuse):,} tokens")

# %% [markdown]
# A recurrent network keeps a state of fixed size (notebook 06), a transformer keeps keys and values of every token (notebook 08): two answers to the same wish. Tick `reuse`: what is left of the triangle?

# %%
explore(figures.work_grid, prompt=(1, 10), new=(1, 12), reuse=False)

# %% [markdown]
# ### G · Scores, and counting today  (3 min)
#
# Here is the bill of a sentence, letter by letter, from the 6-gram model of fifty stories. Type your own. Tests of language models are scored with such bills, by their sum or per token: notebook 21 measures what that changes.
#
# **In real models.** Brants et al. (2007) counted 5-grams in $2 \cdot 10^{12}$ tokens, for translation, with a remedy for what was never seen that they called "stupid backoff". Liu et al. (2024, *Infini-gram*) count in $5 \cdot 10^{12}$ tokens with contexts as long as there are, and find the next token in 47 % of all places; mixing these counts into a network's predictions lowers its loss.

# %%
explore(figures.token_surprise, text="Clara is in the wood. So Clara goes home.")

# %% [markdown]
# ### Further reading
#
# - Shannon, 1948, *A mathematical theory of communication*: entropy, n-grams, and texts written by them; and 1951, *Prediction and entropy of printed English*.
# - Jurafsky & Martin, *Speech and language processing*, the chapter on n-gram models; Chen & Goodman, 1999, on smoothing.
# - Bengio et al., 2003, *A neural probabilistic language model*: the step from counting to vectors; Mikolov et al., 2013, *Linguistic regularities in continuous space word representations*; Levy & Goldberg, 2014; Linzen, 2016, *Issues in evaluating semantic spaces using word analogies*.
# - Liu et al., 2024, *Infini-gram: scaling unbounded n-gram language models to a trillion tokens*; Muennighoff et al., 2023, *Scaling data-constrained language models*.
# - In this package: `lmcourse/models/ngram.py`, `lmcourse/data/grammar/`, `lmcourse/data/window_order.py`.

# %% tags=["hide-input"]
costs_of = {(name, n): (math.exp(each), each * count / len(held_out) / math.log(2)) for name, n, each, count in rows}
assert 2.1 < costs_of["bytes", 3][0] < 2.3 and 4.5 < costs_of["words", 2][0] < 5.3 and round(2.2**4) == 23
assert costs_of["words", 2][1] < 0.6 * costs_of["bytes", 3][1] and all(each > H / math.log(2) for _, each in costs_of.values())
unit = vectors / vectors.norm(dim=1, keepdim=True)
cosines = unit @ unit.T
assert cosines.min() == cosines[0, 1] and round(cosines[0, 1].item(), 2) == -0.61 and round(cosines[2, 3].item(), 2) == 0.19
assert learned[2][1] == learned[2][2] == 1.0 and learned[20][2] < 0.9 and all(each[1] == 1 and each[3] < 1 / 6 for each in learned.values())
assert all(run.train[-1] < entropy for _, run in runs) and all(run.new[-1] > run.new[run.stopped] + 0.2 for run in rank_4)
assert all(run.new[run.stopped] - entropy < 0.8 * (counting - entropy) for name, run in runs[:-1])
assert runs[-1][1].new[runs[-1][1].stopped] > counting and runs[-1][1].new[-1] < runs[-2][1].new[-1]
assert runs[0][1].new[-1] - min(runs[0][1].new) < 0.1 and runs[-2][1].new[-1] - min(runs[-2][1].new) > 1
