# %% [markdown]
# # 05 · Language models
#
# **110 min · 11 exercises · 25 points**
#
# A language model is a bookmaker. Before every word it lays odds on all words there are; then the word comes, and it pays for its surprise. This notebook keeps its accounts: what a text costs, in which unit, and what it *has to* cost, however good the model is. For once we can know that, because we made the language
# ourselves. The first models only count, and they are enough to meet nearly everything that matters. The last one you train yourself.
#
# **You will be able to**
#
# - say what it means that one model of a text is better than another, and by how much, even if their tokens differ;
# - write the loss that every language model is trained with, and know its value before the first step;
# - build an n-gram model, and say where it loses against the best model possible, and why;
# - train a small model on too little text, and read its loss against the entropy of the language.
#
# **You need** logarithms and softmax (notebook 01), and a little PyTorch. No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run it again for the next one.

# %%
import math
import random
import re
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise, product

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.chapters.language_models import figures
from lmcourse.chapters.language_models.kinds import counted_table, kinds_source, new_text_price, train_table, write
from lmcourse.data.grammar import story_grammar
from lmcourse.data.grammar.roles import word_roles
from lmcourse.data.window_order import WindowOrder
from lmcourse.models.ngram import NGram
from lmcourse.notebook import check, explore, hint, predict, start
from lmcourse.widgets import Log

start("05-language-models")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · the students opened their ___
#
# Books? Laptops? Minds? A **language model** does not choose. Given the words so far, $w_1, \dots, w_T$, it says for each word of a finite **vocabulary** $V$ how probable it is to come next:
#
# $$p(w_{T+1} \mid w_1, \dots, w_T;\, \theta), \qquad \text{a vector with one entry for each word of } V.$$
#
# $\theta$ stands for whatever the model has learned. (Words, letters, bytes: what counts as a *token* is notebook 07's subject. Here a word is whatever we say it is.) Entries are not negative, and they sum to one. The set of all such vectors is called the **simplex**.

# %%
predict("simplex_of_three")

# %%
explore(figures.your_odds, books=(0.0, 1.0, 0.1), laptops=(0.0, 1.0, 0.1))

# %% [markdown]
# Two sliders reach every point of the triangle: *windows* gets what the other two leave of 1. (If they leave less than nothing, both are divided by their
# sum.) Where are all the models that give *books* a half? And those that call *windows* impossible?
#
# A model with GPT-2's vocabulary ends in 50,257 numbers. Here are such numbers, from a softmax, in four formats. What do they sum to?

# %%
torch.manual_seed(0)
scores = 5 * torch.randn(50_257)
p = scores.softmax(dim=0)
for name, numbers in (("fp64", scores.double().softmax(dim=0)), ("fp32", p), ("fp16", p.half()), ("bf16", p.bfloat16())):
    error = abs(math.fsum(numbers.tolist()) - 1)
    print(f"{name}: the sum is off by more than", max((e for e in (0, 1e-12, 1e-7, 1e-4, 1e-3) if error > e), default=0))

# %% [markdown]
# ### Exercise 1 · Is it a distribution?  (1 point · 4 min · ●)
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
check(is_distribution)
### BEGIN HIDDEN TESTS
check(is_distribution, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# **In real models.** PyTorch's samplers reject a negative or NaN entry, but they do not ask for a sum of one: they divide by it. A loss does not divide. If you compute a softmax in 16 bits, or filter a distribution (notebook 17) and forget to divide by what is left, your odds do not sum to one, and the loss means nothing.
#
# ## 2 · A whole text
#
# With odds for the next word one also has odds for a whole text. Each word comes with its probability after all words before it, the first one after nothing:
#
# $$p(w_1, \dots, w_T) = \prod_{t=1}^{T} p(w_t \mid w_1, \dots, w_{t-1}).$$
#
# Take a model of three words that looks one word back:

# %%
FOLLOWERS = [[0.1, 0.6, 0.3], [0.7, 0.1, 0.2], [0.25, 0.25, 0.5]]


def toy_model(past: tuple[int, ...]) -> list[float]:
    """p(next word) for the words a, b and c."""
    return FOLLOWERS[past[-1]] if past else [0.5, 0.3, 0.2]


figures.probability_tree(("a", "b", "c"), toy_model, 2)

# %% [markdown]
# Each fork passes on exactly what it got. So the texts of any one length share a probability of 1, and the model does not have to arrange it. By force, for length 4:

# %%
total = 0.0
for text in product(range(3), repeat=4):
    probability = 1.0
    for t in range(4):
        probability *= toy_model(text[:t])[text[t]]
    total += probability
print(f"{3**4} texts of four words, together {total:.9f}")

# %% [markdown]
# Long texts have a practical problem. Each of a thousand words may well have a probability of 0.01:

# %%
print("product of a thousand:", math.prod([0.01] * 1000), "  sum of the logarithms:", round(1000 * math.log(0.01), 1))

# %% [markdown]
# ### Exercise 2 · The probability of a text  (2 points · 6 min · ●●)
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
check(text_log_probability)
### BEGIN HIDDEN TESTS
check(text_log_probability, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · Surprise
#
# The odds are laid, the word $w$ comes. What does the bookmaker pay? If we want the bills of two words in a row to add up while their probabilities multiply, there is no choice but a logarithm: the **surprise** of a word is $-\log p(w)$ (Shannon, 1948). A certain word costs nothing, an impossible one costs infinitely much. The base of the logarithm is the unit: $\ln$ gives
# **nats**, $\log_2$ **bits**, and a nat is $1/\ln 2 = 1.443$ bits. A coin costs one bit.
#
# Let words really come with probabilities $p$, while the model says $q$. On average over what comes, it pays the **cross-entropy**
#
# $$H(p, q) = -\sum_{w} p(w)\,\log q(w), \qquad p, q \text{ of shape } (|V|).$$
#
# By hand: a coin that shows heads nine times of ten, and a model that believes it is fair. Whatever comes, the model pays one bit. A model that knows the coin pays $0.9 \cdot 0.152 + 0.1 \cdot 3.322 = 0.469$ bits.
#
# ### Exercise 3 · The price  (2 points · 5 min · ●)
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
check(cross_entropy)
### BEGIN HIDDEN TESTS
check(cross_entropy, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# > **A colleague writes:** "For $p = (1, 0, 0, 0)$ the model $q = (¼, ¼, ¼, ¼)$ has $H = 2$, and $q = (0.91, 0.03, 0.03, 0.03)$ has $H = 0.136$. My training loop prints 1.386 and 0.0943 for them, so it has a bug." Has it? Your function knows.
#
# Another colleague says: "The smaller the cross-entropy, the closer is the model to the truth."

# %%
predict("cheaper_but_farther")

# %%
def bits(p: list[float], q: list[float]) -> float:
    """H(p, q) for lists without zeros."""
    return -sum(truth * math.log2(model) for truth, model in zip(p, q, strict=True))


for truth, model in (([0.25] * 4, [0.25] * 4), ([0.97, 0.01, 0.01, 0.01], [0.7, 0.1, 0.1, 0.1])):
    price, own = bits(truth, model), bits(truth, truth)
    print(f"p = {truth}, q = {model}: {price:.3f} bits = {own:.3f} entropy + {price - own:.3f} difference")

# %% [markdown]
# The price has two parts:
#
# $$H(p, q) = \underbrace{-\textstyle\sum p \log p}_{\text{entropy } H(p)} + \underbrace{\textstyle\sum p \log \frac pq}_{\mathrm{KL}(p \,\Vert\, q)\, \ge\, 0}$$
#
# The first is what the *language* costs, and every model has to pay it. The second is what the model does not know (Gibbs' inequality: it is never negative, and 0 only for $q = p$). Cross-entropy compares two models of one and the same truth, and nothing else. Lay your own odds; can you make the coloured part vanish?

# %%
explore(figures.cross_entropy_bars, books=(0.01, 0.98, 0.01), laptops=(0.01, 0.98, 0.01), unit=["nats", "bits"])

# %% [markdown]
# ## 4 · The loss of training
#
# For a real text we do not know $p$. We have what came: a sample. So instead of the average over $p$ one takes the mean over the tokens of a text,
#
# $$\mathcal L = -\frac1{B\,(S - 1)} \sum_{b=1}^{B} \sum_{s=1}^{S-1} \ln p_{b,s}\big[x_{b,s+1}\big], \qquad p_{b,s} = \text{softmax}(z_{b,s}),$$
#
# with tokens $x$ of shape $(B, S)$ and logits $z$ of shape $(B, S, |V|)$, the scores that the model gives the words. *The logits at $s$ speak of token $s + 1$.* The last ones have nothing to be compared with. In PyTorch it is in nats.
#
# ### Exercise 4 · The loss of training  (4 points · 9 min · ●● · differentiable)
#
# Return this mean as a zero-dimensional tensor. Logits in 16 bits are turned to float32 first, and the result is float32 too; the loss of float64 logits is float64. Logits may be as large as 10,000. Texts of a single token: raise `ValueError`. PyTorch's own losses and `torch.nn` are forbidden, because that is what you are writing; the tensor method
# `.log_softmax` is allowed.

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
# > **Spot the slip.** A colleague writes the loss as $\frac1{|D|} \sum_{d} \sum_{t} \log p(x_{d,t} \mid x_{d,<t})$, a sum over the tokens of each document $d$ and a mean over the $|D|$ documents, "to minimize". What does a model learn that minimizes it?
#
# One mistake you will have seen: without the minus it learns to be wrong. The other is quieter. Here are two documents, one token that costs 1 nat, and three tokens that cost 2 nats each:

# %%
documents = [[1.0], [2.0, 2.0, 2.0]]
print("mean over documents of the sum:", sum(map(sum, documents)) / 2)
print("mean over tokens:              ", sum(map(sum, documents)) / 4)

# %% [markdown]
# In both all *tokens* weigh the same. But the first divides by the number of documents, so the number, and with it the size of the gradient, depends on how the text was cut into documents. The second does not. It is the usual loss.
#
# ### Exercise 5 · The first loss  (1 point · 2 min · ●)
#
# Llama 3 has a vocabulary of 128,256 tokens. You start its training, with small random weights, and look at the loss of the first step. What should it be, near enough?

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
# It is the first thing to look at in any run. A first loss well above that means that the model is *sure* of something before it has seen a word: too large a last layer, most often.
#
# The mean hides a lot. Here is the bill of a sentence, letter by letter, from a model that you will know in a moment. Type your own (it has read nothing but little stories like this one):

# %%
explore(figures.token_surprise, text="Clara is in the wood. So Clara goes home.")

# %% [markdown]
# ## 5 · Count
#
# Where do the odds come from? Before there were networks, from counting. To keep it possible one *assumes* that only the last $n - 1$ words matter (the **Markov assumption**; Markov counted vowels in *Eugene Onegin*, 1913). Then the model counts: of all the times that the context was followed by a word, how often by this one? For $n = 2$ this is called a bigram model, for $n = 3$ a trigram model, in general an **n-gram** model.
#
# By hand, in *a b c a b a a b c*: after *b* come *c*, *a* and *c*. So $p(c \mid b) = ⅔$ and $p(a \mid b) = ⅓$. Three colleagues have programmed it, each in a line or two, with letters for words:

# %%
def model_a(text: str, context: str) -> dict[str, float]:
    return {letter: text.count(context + letter) / text.count(context) for letter in sorted(set(text))}


def model_b(text: str, context: str) -> dict[str, float]:
    after = re.findall(re.escape(context) + "(.)", text)
    return {letter: after.count(letter) / len(after) for letter in sorted(set(text))}


def model_c(text: str, context: str) -> dict[str, float]:  # for contexts of at most one letter
    after = [following for before, following in pairwise(text) if context in ("", before)]
    return {letter: after.count(letter) / len(after) for letter in sorted(set(text))}


for model in (model_a, model_b, model_c):
    print(model.__name__, {letter: round(p, 3) for letter, p in model("abcabaabc", "b").items()})

# %% [markdown]
# ### Exercise 6 · Find the fault  (1 point · 6 min · ●●)
#
# Here all three are right. But each of them is wrong on other texts. Return for each model, under its name, a text and a context for which it gives a wrong probability, or divides by zero although the context was followed by something. The context may be empty: then every letter of the text counts.

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
check(faults)
### BEGIN HIDDEN TESTS
check(faults, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# One more question about such counts:

# %%
predict("last_word")

# %% [markdown]
# ### Exercise 7 · Count  (3 points · 8 min · ●●)
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
check(ngram)
### BEGIN HIDDEN TESTS
check(ngram, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now the real thing. Our texts are little stories from a grammar (`lmcourse/data/grammar`): a hero, a place, sentences with clauses in clauses, sums in brackets that are always true. A byte is a letter here. `NGram` counts as you do, for all contexts up to a length at once.

# %%
grammar = story_grammar()


def stories(count: int, seed: int) -> str:
    """That many stories, one after the other."""
    source = random.Random(seed)
    return "".join(grammar.generate(source) for _ in range(count))


fifty, new = stories(50, 0), stories(50, 1000)
print("\n".join([line for line in fifty.splitlines() if 60 < len(line) < 110][:4]))

# %% [markdown]
# Let it write, with longer and longer contexts (¶ is the end of a line):

# %%
for n in (1, 2, 3, 5, 8):
    model = NGram(n, 128).count(fifty.encode())
    written = model.generate(b"\n", 76, torch.Generator().manual_seed(0))
    print(n, bytes(written).decode().replace("\n", "¶"))

# %% [markdown]
# From 5 on it looks like our language. Does every context that comes up in new stories occur in the counted ones?

# %%
letters = len(set(fifty))
windows = {fifty[at : at + 8] for at in range(len(fifty) - 7)}
print(f"{letters}⁸ = {letters**8:.0e} texts of 8 letters are possible; {len(windows):,} occur in fifty stories")
counted = NGram(10, 128).count(fifty.encode())
impossible = counted.losses_by_order(new.encode()).isinf().double().mean(dim=1)
for n in (2, 4, 6, 8, 10):
    print(f"n = {n:2}: letters of new stories that counts call impossible {impossible[n - 1]:.1%}")

# %% [markdown]
# One impossible letter, and the whole text costs $\infty$. The remedy is called **smoothing**: give a little to what was never seen. Laplace added one to every count. Better remedies let the shorter context help out, and the less the long one is known, the more it helps. In what follows it is the rule of Witten and Bell (1991):
#
# $$p_n(w \mid c) = \frac{\text{count}(c\,w) + t(c)\; p_{n-1}(w \mid c')}{\text{count}(c) + t(c)},$$
#
# where $t(c)$ is how many *different* words followed $c$, and $c'$ is $c$ without its first word.
#
# **In real models.** Brants et al. (2007) counted 5-grams in $2 \cdot 10^{12}$ tokens, for translation, with a remedy that they called "stupid backoff". Liu et al. (2024, *Infini-gram*) count in $5 \cdot 10^{12}$ tokens with contexts as long as there are, and find the next token in 47 % of all places; mixing these counts into a network's predictions lowers its loss.
#
# ## 6 · The floor
#
# How good can a model of our stories be? We made the language, so we know: a model that knows the grammar pays the entropy of its choices, and no model can pay less on average. It is a number:

# %%
H = grammar.entropy_per_byte
print(f"entropy of the stories: {H:.5f} nats per byte, {H / math.log(2):.4f} bits, a choice among {math.exp(H):.3f}")

# %%
predict("below_the_floor")

# %%
def seen_and_new(text: str, other: str, order: int = 10) -> tuple[Tensor, Tensor]:
    """For n = 1 … order: nats per byte on the counted text (by counts alone), and on another (Witten and Bell)."""
    model = NGram(order, 128).count(text.encode())
    seen = model.losses_by_order(text.encode()).mean(dim=1)
    model.witten_bell = True
    return seen, model.losses_by_order(other.encode()).mean(dim=1)


of_five, of_fifty = seen_and_new(stories(5, 0), new), seen_and_new(fifty, new)
print("  n    five stories: on them, on new ones    fifty stories: on them, on new ones")
for n in (1, 2, 3, 4, 6, 8, 10):
    (a, b), (c, d) = ((seen[n - 1], other[n - 1]) for seen, other in (of_five, of_fifty))
    print(f"{n:3}{a:27.3f}{b:13.3f}{c:28.3f}{d:13.3f}")

# %% [markdown]
# On the five stories that it has counted, the model with $n = 8$ pays *less* than the language costs. It knows things about these stories that nobody could predict: it remembers them. On new stories the same model is far above. A loss so far below the entropy is always memory (chance moves it by a hundredth or two, as you will see). This is what "training loss" can mean when there is little text. With fifty stories there is less to remember per letter,
# and the best $n$ for new text is larger. Find it:

# %%
explore(figures.ngram_loss, n=(1, 10), count=Log(5, 40))

# %% [markdown]
# "No model can pay less on *new* text" holds on average. A small sample may be an easy one. Then its own $-\ln p$ under the grammar is the fair line:

# %%
own = [-grammar.log_probability(sample) / len(sample) for sample in (stories(10, seed) for seed in range(20))]
print(f"20 samples of ten stories: from {min(own):.3f} to {max(own):.3f} nats per byte, {sum(x < H for x in own)} below {H:.3f}")

# %% [markdown]
# ### What lies between 0.44 and 0.22?
#
# With $n = 6$ and fifty stories, a letter of new text costs 0.44 nats; the language costs 0.22. What lies between is KL, and since we know the grammar, we can say *for what* it is paid. The grammar has the true probability of every piece of a story, its noun, its verb, its closing bracket. The model's bill for the same letters minus the true one is what the model did not know there:

# %%
ROLES = word_roles()


def kind(piece: str) -> str:
    """Return the kind of choice that a piece of a story makes."""
    if "goes home" in piece:
        return "the hero comes back"
    if role := ROLES.get(piece.strip()):
        return "a noun" if role[1].startswith("noun") else "a verb"
    return "a sum or bracket" if re.search(r"[\d)]", piece) else "the rest"


def overpaid(order: int, text: str, other: str) -> dict[str, float]:
    """Nats above the true price per piece, by kind, of a model that counted `text` and reads `other`."""
    bill = NGram(order, 128, witten_bell=True).count(text.encode()).losses(other.encode()).tolist()
    at, above = 0, defaultdict(list)
    for rule in grammar.parse(other):
        above[kind(rule.text)].append(math.fsum(bill[at : at + len(rule.text)]) + math.log(rule.probability))
        at += len(rule.text)
    return {name: sum(each) / len(each) for name, each in sorted(above.items())}


by_order = {order: overpaid(order, fifty, new) for order in (3, 6, 9)}
more_text = overpaid(6, stories(500, 0), new)
print("nats too much per piece   n = 3   n = 6   n = 9   n = 6, of 500 stories")
for name in by_order[3]:
    print(f"{name:22}" + "".join(f"{above[name]:8.2f}" for above in (*by_order.values(), more_text)))

# %% [markdown]
# There are two reasons to pay too much. The last column has counted ten times as many stories. Where it falls, the model had *counted too little*: sums become half as expensive, and verbs cheaper. Where it hardly moves, the model does not *see* what decides: the hero's name is several sentences back, and so is the place that says which nouns may come. That is the Markov
# assumption, in nats. A longer context helps with nouns, but it is no cure, as $n = 9$ shows: it does not reach the hero either, and costs *more* there, because long contexts have been seen less often. To pay less, a model has to look far back without counting every context that there is. The rest of the course is about that.
#
# ### Exercise 8 · The entropy of a source  (4 points · 12 min · ●●●)
#
# For the stories we took the computer's word. For a simpler source, do it yourself. A source writes an endless text; after word $i$ comes word $j$ with probability $P_{ij}$, whatever was before. Every word can be reached from every other, perhaps in several steps (and some sources alternate forever between two sets of words). What does a word of this text cost the best model there is, on
# average, in nats? $P$ is a float64 tensor; zeros in it are allowed, and $0 \ln 0$ is 0. Be exact to nine digits.

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

# %%
P = torch.tensor([[0.9, 0.1], [0.5, 0.5]], dtype=torch.float64)
source, word, written = random.Random(0), 0, [0]
for _ in range(100_000):
    word = int(source.random() < P[word, 1].item())
    written.append(word)
for n in (1, 2, 3):
    loss = NGram(n, 2).count(written).losses(written).mean().item()
    print(f"n = {n}: counted in 100,000 words of such a source: {loss:.2f} nats per word")

# %% [markdown]
# For this source two words are all that counts: a bigram model reaches the floor, a trigram model finds nothing more. Shannon (1951) asked the same about English, in two ways. From tables of letter counts, as in this notebook, he found 4.03 bits for a letter alone, 3.32 if one letter before it is known, 3.1 if two are. Then he let people guess, with 100 letters before their eyes: the entropy must
# be between 0.6 and 1.3 bits. For today's language models the floor is not known; it is fitted to their losses (Hoffmann et al., 2022: 1.69 nats per token, for their text and tokens).
#
# ## 7 · Perplexity of what?
#
# The exponential of a loss is called **perplexity**: $\exp(\mathcal L)$, the number of equally likely words among which the model seems to choose. It is the same for nats and bits if you take the right base.

# %%
predict("better_perplexity")

# %%
many, held_out = stories(300, 0), stories(60, 1000)
rows = []
for name, cut in (("bytes", list), ("words", re.compile(r" ?\w+|\W").findall)):
    number: dict[str, int] = {}
    train, test = ([number.setdefault(token, len(number)) for token in cut(text)] for text in (many, held_out))
    losses = NGram(3, len(number), witten_bell=True).count(train).losses_by_order(test).mean(dim=1).tolist()
    for n, loss in enumerate(losses, start=1):
        rows.append((name, n, math.exp(loss), loss * len(test) / len(held_out) / math.log(2)))
    print(f"{name}: {len(number)} different tokens, {len(held_out) / len(test):.2f} bytes each on average")
for name, n, perplexity, per_byte in rows:
    print(f"{name}, n = {n}: perplexity {perplexity:6.2f} per token, {per_byte:.3f} bits per byte")
print(f"the floor:    perplexity {math.exp(H):6.3f} per byte, {H / math.log(2):13.3f} bits per byte")

# %% [markdown]
# Perplexity counts per *token*, and tokens are a choice. Longer tokens make harder guesses, and fewer of them. The text is the same for both, and so are its bytes: the price per byte of two models can be compared whatever their tokens.
#
# ### Exercise 9 · Bits per byte  (1 point · 4 min · ●)
#
# A model reads `text` as `tokens` tokens, with a mean loss of `loss` nats per token. Return what the text costs in bits per byte. Bytes are those of UTF-8; the text is not empty.

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
# **In real models.** GPT-2's paper reports perplexities and bits per byte (Radford et al., 2019), and *The Pile* is scored in bits per byte for this reason (Gao et al., 2020). With a model that costs 1 bit per byte, a file of $N$ bytes can be compressed to $N/8$ bytes: loss is file size (arithmetic coding; Delétang et al., 2024).
#
# ## 8 · Words as vectors
#
# An n-gram model knows nothing about *bears* from having read about *bear*. A network does better, because it does not start from numbers of words but from vectors. Formally, a word is a **one-hot** vector $o$, of zeros with a single one, and the vector of the word is $e = o\,E$, with $E$ of shape $(|V|, d)$: the product picks a row.

# %%
torch.manual_seed(0)
E, word = torch.randn(8, 3), 5
one_hot = torch.zeros(8)
one_hot[word] = 1.0
print("one_hot @ E:", one_hot @ E, "  the row of the word:", E[word])
print(f"as a product {2 * 50_257 * 768:,} operations for GPT-2's 50,257 words and 768 features; as a look-up, none")

# %% [markdown]
# What could be in such a vector? Here is a table made by hand, after a well-known one in Andrew Ng's lectures. Its four columns are gender, royal, age and food.

# %%
WORDS = ("man", "woman", "king", "queen", "apple", "orange")
BY_HAND = torch.tensor(
    [
        [-1.00, 0.01, 0.51, 0.04],
        [1.00, 0.02, 0.47, 0.01],
        [-0.95, 0.93, 0.70, 0.02],
        [0.97, 0.95, 0.69, 0.01],
        [0.00, -0.01, 0.03, 0.95],
        [0.01, 0.00, -0.02, 0.97],
    ],
    dtype=torch.float64,
)

# %%
predict("least_alike")

# %%
figures.similarity(WORDS, BY_HAND.tolist())

# %% [markdown]
# *Closeness* is not what this table shows: man and woman have a cosine of $-0.61$, king and queen of 0.19. Its point is a **direction**. Start at king, subtract man, and add woman. Where do you arrive?

# %%
predict("king_minus_man")

# %%
arrived = BY_HAND[2] - BY_HAND[0] + BY_HAND[1]
print("you arrive at", [round(number, 2) for number in arrived.tolist()])
for name, cosine in zip(WORDS, torch.cosine_similarity(BY_HAND, arrived, dim=1).tolist(), strict=True):
    print(f"  cosine with {name:6} {cosine:7.4f}")

# %% [markdown]
# On this table it works beautifully. But the table was made for it. Is it so with vectors that were *learned*? One learns a word from the company it keeps (Firth, 1957): count which words occur near which, and take the logarithm of how much more often they meet than by chance, where it is positive. The rows of this matrix are long vectors, one for each word.
# The **singular value decomposition** finds the 16 directions in which these vectors differ most, and each word keeps its coordinates along them. For the words of our stories we know what they are: a topic, and a role.

# %%
predict("owl_to_owls")

# %%
def word_vectors(text: str, window: int, size: int = 16) -> tuple[list[str], np.ndarray]:
    """The different words, and a vector for each from the words up to `window` places away."""
    tokens = re.findall(r"\w+|[^\w\s]", text)
    words = sorted(set(tokens))
    place = {word: index for index, word in enumerate(words)}
    t = np.array([place[token] for token in tokens])
    met = np.zeros((len(words), len(words)))
    for distance in range(1, window + 1):
        np.add.at(met, (t[:-distance], t[distance:]), 1)
    joint = (met + met.T) / (2 * met.sum())
    chance = np.outer(joint.sum(axis=0), joint.sum(axis=0))
    more = np.log(np.maximum(joint / chance, 1))
    left, strength, _ = np.linalg.svd(more)
    print(f"window {window:2}: the {size} strongest of {len(words)} directions hold "
          f"{(strength[:size] ** 2).sum() / (strength**2).sum():.0%} of the squares of the matrix")
    return words, left[:, :size] * strength[:size]


def judged(words: list[str], vectors: np.ndarray) -> tuple[float, float, float]:
    """The fraction of nearest neighbours of the same topic, of the same role, and of plural analogies that come out."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    known = [index for index, word in enumerate(words) if word in ROLES]
    likeness = unit[known] @ unit[known].T - 2 * np.eye(len(known))
    pairs = [(ROLES[words[i]], ROLES[words[known[j]]]) for i, j in zip(known, likeness.argmax(axis=1), strict=True)]
    topic, role = (sum(a[k] == b[k] for a, b in pairs) / len(pairs) for k in (0, 1))
    place = {word: index for index, word in enumerate(words)}
    nouns = [word for word in words if ROLES.get(word, ("", ""))[1] == "noun" and f"{word}s" in place]
    right = []
    for a, c in product(nouns, nouns):
        if a != c:
            score = unit @ (vectors[place[f"{a}s"]] - vectors[place[a]] + vectors[place[c]])
            score[[place[a], place[f"{a}s"], place[c]]] = -np.inf
            right.append(score.argmax() == place[f"{c}s"])
    return topic, role, sum(right) / len(right)


learned = {window: judged(*word_vectors(stories(500, 0), window)) for window in (2, 5, 20)}
for window, (topic, role, plurals) in learned.items():
    print(f"window {window:2}: nearest has the topic {topic:.0%}, the role {role:.0%}; plural found {plurals:.0%}")

# %% [markdown]
# The vectors know a great deal: the nearest word always has the same topic, and with a narrow window always the same role. A narrow window finds what could stand *in a word's place*, a wide one what goes *with* it (Levy & Goldberg, 2014). But "bear + plural" is no direction that one can add. Where analogies work on real vectors (Mikolov et al., 2013), a good part of it is that the
# answer is near $c$ anyway, and that the inputs are left out: with them, the answer is most often one of them (Linzen, 2016).
#
# ## 9 · Learned instead of counted
#
# Counting has no parameters. Or does it? A bigram model is a table of logits of shape $(|V|, |V|)$, a row for each word before, and gradient descent can lower the loss of section 4. Where would it arrive? For the text that was counted, no table is better than the counts: row by row, this is Gibbs' inequality again. So counting is the solution of a training problem, and training is a way to count.
#
# But such a table has $|V|^2$ numbers. Here is a source of 80 words. They belong to six hidden kinds, and what comes next depends on the kind of the last word alone. The model is told nothing about kinds, and gets 30 words of text for each of the 80:

# %%
v = 80
P = kinds_source(words=v, kinds=6, seed=3)
little = write(P, 30 * v + 1, seed=3)
entropy = new_text_price(P.log(), P)
counting = new_text_price(counted_table(little, v), P)
different = len(set(zip(little[:-1].tolist(), little[1:].tolist(), strict=True)))
print(f"{len(little) - 1:,} pairs of words, {different:,} different ones of {v * v:,} that are possible")
print(f"entropy {entropy:.3f} nats per word; counts (Witten and Bell) cost {counting - entropy:.3f} more on new text")

# %% [markdown]
# (`new_text_price` needs no sample: $-\sum_i \pi_i \sum_j P_{ij} \ln q_{ij}$ is the exact price of endless new text, with $\pi$ from your Exercise 8.) Can fewer numbers know more?
#
# ### Exercise 10 · Learn what counting cannot  (4 points · 14 min · ●●●)
#
# Let each word have a few features: in place of the table of logits put $E\,F + b$, with $E$ of shape $(|V|, r)$, $F$ of shape $(r, |V|)$ and $b$ of shape $(|V|)$. Words that are used in the same way can then share what is learned about them.
#
# `text` holds words, numbered from 0 to `v` − 1. Of its pairs of neighbours, in their order, train on the first nine tenths and keep the last tenth aside. Return a dict with
#
# - `log_p`, of shape (`v`, `v`): in row $i$ the log-probability of each word after word $i$;
# - `train` and `held_out`: what this table costs, in nats per word, on the pairs that you trained on, and on those kept aside.
#
# The rank $r$, the optimizer and the number of steps are your choice, and a call may take five seconds. The course's own functions, such as `counted_table`, may not be used. The check asks four things, of sources like the one above, one point for each: the rows are distributions; on endless new text the table is cheaper than a model that ignores the word before; `train` and `held_out` are right; and its cost
# above the entropy is at most 0.8 times that of the counts. Try it: `new_text_price(learn(little, v)["log_p"], P) - entropy`.

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


# %% check="learn"
check(learn)
### BEGIN HIDDEN TESTS
check(learn, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now train such a model of rank 4 for 300 steps and do *not* stop. Its training loss comes down to the entropy, and passes it.

# %%
predict("past_the_entropy")

# %%
rank_4 = [train_table(P, little, rank=4, seed=seed) for seed in range(3)]
figures.learning_curves(rank_4[0], entropy, counting)

# %% [markdown]
# This is the memory of section 6, and this time it was trained. How many numbers are too many? Each line is one run; costs are on new text, above the entropy:

# %%
runs = [("rank 2", train_table(P, little, rank=2)), *((f"rank 4, seed {seed}", run) for seed, run in enumerate(rank_4))]
runs += [("rank 8", train_table(P, little, rank=8)), ("the whole table", train_table(P, little, rank=None))]
print(f"{'counting':16}{counting - entropy:6.2f}")
for name, run in runs:
    at_stop, at_end = run.new[run.stopped] - entropy, run.new[-1] - entropy
    print(f"{name:16}{at_stop:6.2f} if stopped where the last tenth is cheapest, {at_end:.2f} after 300 steps")

# %% [markdown]
# The whole table costs no less than counting, even if it is stopped in time: what it learns about one word helps no other. A few features per word do better, because words of one kind come to share them. At rank 2 it costs little not to stop; at rank 8 it costs more than a nat. Put a network in place of $E\,F$ and keep the loss: contexts that were never seen then get odds from contexts that are like them.
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
# ## 10 · Once through the data, and writing
#
# With $N$ tokens of text, batches of $B$ windows and $S$ predictions in each, one pass takes $N / (B\,S)$ steps. Large models are trained for about one pass (Llama 3: $15 \cdot 10^{12}$ tokens; Grattafiori et al., 2024), or a few over the best parts: up to four passes over the same text help nearly as much as new text (Muennighoff et al., 2023). In the first pass the training loss is honest: what is read once cannot be looked up.
#
# But is it read once? Many training loops draw windows at random.

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
# ### Writing
#
# A trained model writes as ours did: draw a word from its odds, append it, ask again. This does not change the old text, so what the model computed for it could be kept. This is a design goal of every architecture in this course. Say a model computes something for each token that it reads. How many tokens does it read to write `new` ones?
#
# ### Exercise 11 · Reading to write  (2 points · 4 min · ●)
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
check(tokens_read)
### BEGIN HIDDEN TESTS
check(tokens_read, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.work_grid, prompt=(1, 10), new=(1, 12), reuse=False)

# %% [markdown]
# For a prompt of 100 tokens and an answer of 1,000, that is 599,500 tokens without reuse, and 1,099 with it. A recurrent network keeps a state of fixed size (notebook 06), a transformer keeps keys and values of every token (notebook 08): two answers to the same wish.
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what is a language model? | odds for the next word, given those before; a point of a simplex with $\lvert V\rvert - 1$ dimensions |
# | the probability of a text? | the product of the odds of what came; in practice the sum of logarithms |
# | cross-entropy? | mean surprise: $H(p, q) = H(p) + \mathrm{KL}(p \Vert q)$; compare only models of the same truth |
# | the loss? | $-\frac1{B(S-1)}\sum \ln \text{softmax}(z_s)[x_{s+1}]$, in nats per token; $\ln \lvert V\rvert$ before the first step |
# | an n-gram model? | count(context and word) / count(context followed by anything); smoothing for what was never seen |
# | how good is the best model? | its loss on new text is the entropy of the language; below it there is only memory |
# | how to compare different tokens? | bits per byte |
# | what do vectors add? | what is learned about one word helps with the words that are like it; stop where text kept aside is cheapest |
# | why one direction? | conditionals multiply to the probability of a text, and work on the past can be kept |
#
# ## Check yourself
#
# 1. A model gives every word of your text a probability of at least 0.5. What is the most its loss can be, in bits?
# 2. Two models of one text have losses of 3.0 nats per token, with 4 bytes per token, and 0.8 nats per byte. Which is better?
# 3. Your training loss is 0.15 nats per byte on stories of this language. What do you suspect, and what do you do?
# 4. Why can a model's loss on one *short* new text be below the entropy of the language?
# 5. A colleague's bigram probabilities sum to 0.9996 after one of the words. Which word?
# 6. A model that sees both sides guesses a hidden word with a loss of 1.2 nats, an autoregressive one with 2.0. Is the first the better language model?
#
# <details><summary>Answers</summary>
#
# 1. One bit per word: $-\log_2 0.5$.
# 2. The first: 3.0 / 4 = 0.75 nats per byte.
# 3. It is far below 0.222, so it is memory. Look at the loss on new stories.
# 4. The entropy is a mean over all texts. This one may have taken likely turns; its own $-\ln p$ is the line to compare with.
# 5. The last word of the text: its last occurrence is followed by nothing, but was counted.
# 6. That cannot be said: the two numbers price different questions, and the first model gives no probability of a text.
#
# </details>
#
# ## Further reading
#
# - Shannon, 1948, *A mathematical theory of communication*: entropy, n-grams, and texts written by them; and 1951, *Prediction and entropy of printed English*.
# - Jurafsky & Martin, *Speech and language processing*, the chapter on n-gram models; Chen & Goodman, 1999, on smoothing.
# - Bengio et al., 2003, *A neural probabilistic language model*: the step from counting to vectors.
# - Mikolov et al., 2013, *Linguistic regularities in continuous space word representations*; Levy & Goldberg, 2014; Linzen, 2016, *Issues in evaluating semantic spaces using word analogies*.
# - Liu et al., 2024, *Infini-gram: scaling unbounded n-gram language models to a trillion tokens*.
# - Muennighoff et al., 2023, *Scaling data-constrained language models*: what a second and a fifth pass over the text are worth.
# - In this package: `lmcourse/models/ngram.py`, `lmcourse/data/grammar/`, `lmcourse/data/window_order.py`.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you like.)

# %% tags=["hide-input"]
assert round(1 / math.log(2), 3) == 1.443 and round(-math.log2(0.9), 3) == 0.152 and round(-math.log2(0.1), 3) == 3.322
assert round(0.9 * 0.152 + 0.1 * 3.322, 3) == 0.469 and round(bits([0.9, 0.1], [0.9, 0.1]), 3) == 0.469
assert [round(-math.log2(x), 3) for x in (0.25, 0.91)] == [2.0, 0.136]
assert [round(-math.log(x), 4) for x in (0.25, 0.91)] == [1.3863, 0.0943]
assert round(H, 5) == 0.22215 and abs(total - 1) < 1e-12
assert all(seen[7] < H and other[7] > H for seen, other in (seen_and_new(stories(5, s), stories(10, 1000 + s)) for s in range(5)))
assert of_fifty[1][9] > of_fifty[1][7] and of_fifty[1].argmin() > of_five[1].argmin() and all(of_fifty[1] > H)
assert 0.43 < of_fifty[1][5] < 0.45
for order, less in ((6, 9), (3, 6)):
    assert all(by_order[less][name] < by_order[order][name] for name in ("a noun", "the rest"))
assert by_order[9]["the hero comes back"] > by_order[6]["the hero comes back"]
assert by_order[6]["the hero comes back"] == max(by_order[6].values())
cheaper = {name: more_text[name] / above for name, above in by_order[6].items()}
assert cheaper["a sum or bracket"] < 0.6 and cheaper["a verb"] < 0.75
assert cheaper["a noun"] > 0.9 and cheaper["the hero comes back"] > 0.8
assert round(math.log(128_256), 2) == 11.76 and round(2.2**4) == 23
costs = {(name, n): (perplexity, per_byte) for name, n, perplexity, per_byte in rows}
assert 2.1 < costs["bytes", 3][0] < 2.3 and 4.5 < costs["words", 2][0] < 5.3
assert costs["words", 2][1] < 0.6 * costs["bytes", 3][1] and all(per_byte > H / math.log(2) for _, per_byte in costs.values())
unit = BY_HAND / BY_HAND.norm(dim=1, keepdim=True)
cosines = unit @ unit.T
assert cosines.min() == cosines[0, 1] and round(cosines[0, 1].item(), 2) == -0.61 and round(cosines[2, 3].item(), 2) == 0.19
assert torch.equal((100 * arrived).round(), torch.tensor([105.0, 94.0, 66.0, -1.0], dtype=torch.float64))
assert round((arrived @ BY_HAND[3] / arrived.norm() / BY_HAND[3].norm()).item(), 4) == 0.9986
assert learned[2][0] == learned[2][1] == 1.0 and learned[20][1] < 0.9 and all(plurals < 1 / 6 for _, _, plurals in learned.values())
assert all(run.train[-1] < entropy - 0.15 and run.new[-1] > run.new[run.stopped] + 0.2 for run in rank_4)
assert all(run.new[run.stopped] - entropy < 0.8 * (counting - entropy) for name, run in runs[:-1])
assert runs[-1][1].new[runs[-1][1].stopped] > counting
unstopped = [run.new[-1] - run.new[run.stopped] for _, run in runs]
assert unstopped[0] < 0.1 and unstopped[-2] > 1
assert sum(range(100, 1100)) == 599_500 and 100 + 1000 - 1 == 1_099
assert round((1 - 1 / 1000) ** 1000, 2) == 0.37 and 3.0 / 4 < 0.8
