# %% [markdown]
# # 21 · Data and scores
#
# **Core · 90 min · 7 exercises · 19 points** · **Further · 15 min · 1 exercise · 2 points**
#
# *Which number can you trust, and which text?*
#
# At the end you choose 60,000 letters from a dirty pool of 366,000, and a small model trained on them is nearly as good as one trained on new clean text of the same length. The obvious steps, one at a time, gain little.
#
# **You need** language models (notebook 05), tokens (07) and a trainer (13). No GPU.
#
# Stuck? `hint("name_of_the_exercise")`.

# %%
import math
import re
from collections import defaultdict
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse import load_pretrained
from lmcourse.chapters.data_and_scores import figures
from lmcourse.chapters.data_and_scores.filters import bigram_score
from lmcourse.chapters.data_and_scores.letters import fit, held_out_loss, trained_on
from lmcourse.chapters.data_and_scores.near import (
    COEFFICIENTS,
    jaccard,
    shingles,
    similar_pairs,
    true_pairs,
    without_near_copies,
)
from lmcourse.chapters.data_and_scores.pool import kinds, made_of, paragraphs, pool, trusted
from lmcourse.chapters.data_and_scores.questions import (
    COMPARED,
    SCORED,
    draw_questions,
    log_probabilities,
    stored_rights,
    stored_scores,
)
from lmcourse.chapters.data_and_scores.stored import LEAKED
from lmcourse.chapters.data_and_scores.task import BUDGET, chosen
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.own_package import load_parts

start("21-data-and-scores")

# %% [markdown]
# ## 1 · A score from likelihoods
#
# Many benchmarks offer a few answers to each question. A model gives each answer a probability, the product of its tokens' probabilities, and the likeliest counts as its choice. The logarithm is a *sum* over tokens.
#
# Our questions need no teacher. The context is 48 tokens of help text that the shipped model was not trained on. Which of four continuations is the text's own? The other three come from elsewhere, cut to a random length from 3 tokens up to that of the right one.

# %% [markdown]
# ### Exercise 1 · Scores of answers  (2 points · 6 min · ●●)
#
# `log_p` has shape $(n, 4, L)$: for each of $n$ questions and its answers, $\ln p$ of each token. `lengths`, $(n, 4)$, holds how many tokens each answer has, at least one. What comes after an answer's last token is padding: leave it out. (There may be other numbers of answers.) Return two tensors $(n, 4)$: the sum over the answer's tokens, and the mean over them.


# %% exercise="option_scores"
def option_scores(
    log_p: Float[Tensor, "n 4 L"], lengths: Int[Tensor, "n 4"]
) -> tuple[Float[Tensor, "n 4"], Float[Tensor, "n 4"]]:
    """Return the sum and the mean of the log-probabilities of each answer's tokens."""
    ### BEGIN SOLUTION
    inside = torch.arange(log_p.shape[-1]) < lengths[..., None]
    total = log_p.where(inside, 0).sum(dim=-1)
    return total, total / lengths
    ### END SOLUTION


# %% check="option_scores"
# %% [markdown]
# One question, asked now. The first answer is the text's own:

# %% tags=["nbval-ignore-output", "because scores differ in the last digits between processors"]
question, decode = draw_questions(1, longest=8, seed=35), load_pretrained().tokenizer.decode
print(f"…{decode(question.contexts[0, -24:].tolist())}")
with your("option_scores"):
    scores = option_scores(log_probabilities(question), question.lengths)
    for i, length in enumerate(question.lengths[0].tolist()):
        total, mean = (score[0, i].item() for score in scores)
        print(f"sum {total:6.1f}   per token {mean:5.1f}   {decode(question.answers[0, i, :length].tolist())!r}")

# %%
predict("by_sum_at_sixteen")

# %% [markdown]
# Two draws of 200 questions for each length (stored):

# %%
with your("option_scores"):
    print("answers of up to   seed   right by sum   per token   the sum picks a shortest one")
    for seed, longest in SCORED:
        log_p, lengths = stored_scores(seed, longest)
        by_sum, per_token = (each.argmax(dim=1) for each in option_scores(log_p, lengths))
        short = lengths.gather(1, by_sum[:, None])[:, 0] == lengths.amin(dim=1)
        found = [each.float().mean().item() for each in (by_sum == 0, per_token == 0, short)]
        print(f"{longest:9} tokens {seed:8} {found[0]:13.3f} {found[1]:11.3f} {found[2]:16.2f}")

# %% [markdown]
# By sum the model falls *below* guessing (0.25): each token costs something, and the right answer is the longest. Per token it loses much less. One can also divide by letters, or by the answer's probability without the question (Brown et al., 2020; Holtzman et al., 2021; harnesses offer several, Gao et al., 2021). **A score belongs to a prompt, a normalisation and a set of questions.**
#
# The loss has the same disease: per token it depends on the tokenizer, so notebooks 05 and 07 count bits per byte.
#
# ## 2 · How sure are you?
#
# A model gets 84 % of 300 questions with 48 tokens of context, and 79 % with only the last 8. Other questions would give other scores. Is 48 better?
#
# A score is a mean of zeros and ones. A mean of $n$ independent numbers with variance $s^2$ has the **standard error** $s/\sqrt n$, a difference of two *independent* scores $\sqrt{(s_a^2 + s_b^2)/n}$. In 95 % of all cases the truth is within two errors.

# %%
predict("halve_the_error")

# %% [markdown]
# But both answered *the same* questions, and a hard question is hard for both. So look at each question's difference, 1, 0 or −1, and take the error of *its* mean.

# %% [markdown]
# ### Exercise 2 · A paired difference  (2 points · 6 min · ●●)
#
# `a` and `b` have a 1 for each question that the model got right and a 0 for each other, in the same order; there are at least two questions. Return three numbers: the accuracy of `a` minus that of `b`; the standard error of this difference, from the differences; and the error that it would have if the two scores were independent. Variances divide by $n - 1$.


# %% exercise="paired_difference"
def paired_difference(a: list[int], b: list[int]) -> tuple[float, float, float]:
    """Return the difference of two accuracies, its paired standard error, and the error as if independent."""
    ### BEGIN SOLUTION
    x, y = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    d = x - y
    paired, independent = (d.var() / len(a)).sqrt(), ((x.var() + y.var()) / len(a)).sqrt()
    return d.mean().item(), paired.item(), independent.item()
    ### END SOLUTION


# %% check="paired_difference"
# %%
with your("paired_difference"):
    differences = {}
    for context in (8, 16, 32):
        pairs = [(stored_rights(seed, 48), stored_rights(seed, context)) for seed in COMPARED]
        found = differences[f"against {context} tokens"] = [paired_difference(*pair) for pair in pairs]
        print(f"{context:2} tokens", *(f"  {d:.3f} ± {paired:.3f} (± {apart:.3f})" for d, paired, apart in found))
figures.intervals(differences)

# %% [markdown]
# Against 8 tokens, the three differences are 1.3 to 1.8 independent errors: nothing is decided. They are 2.5 to 3.6 paired errors, in all three draws. Against 32 tokens they are 0.6 to 1.9 paired errors: 300 questions are too few. The paired error against 8 is half of the other, which is worth four times the questions, for free.
#
# > **Spot the slip.** "Two models get 71 % and 69 % of the same 1,000 questions, with an error of 1.4 % each. The bars overlap, so nothing is decided."
#
# Some answers are *samples*, such as programs that pass their tests or fail. **pass@k** is the chance that at least one of $k$ is right. To estimate it, draw $n \ge k$ samples and count the $c$ right ones.

# %% [markdown]
# ### Exercise 3 · pass@k  (2 points · 5 min · ●●)
#
# Draw $k$ of the $n$ samples at random, without putting any back. Return the probability that at least one of the $c$ right ones is among them. $1 \le k \le n$ and $0 \le c \le n$; $n$ may be 200.


# %% exercise="pass_at_k"
def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the probability that k of n samples, of which c are right, contain a right one."""
    ### BEGIN SOLUTION
    return 1 - math.comb(n - c, k) / math.comb(n, k)
    ### END SOLUTION


# %% check="pass_at_k"
# %% [markdown]
# Why not $1 - (1 - c/n)^k$? Here are 4,000 made-up questions of known $p$, with $n = 8$:

# %%
generator = torch.Generator().manual_seed(0)
p = torch.rand(4000, generator=generator) ** 3
counts = (torch.rand(4000, 8, generator=generator) < p[:, None]).sum(dim=1).tolist()
with your("pass_at_k"):
    print("k   truth   pass_at_k   1 − (1 − c/n)^k")
    for k in (1, 2, 4, 8):
        truth = (1 - (1 - p) ** k).mean()
        unbiased = sum(pass_at_k(8, c, k) for c in counts) / 4000
        naive = sum(1 - (1 - c / 8) ** k for c in counts) / 4000
        print(f"{k} {truth:7.3f} {unbiased:10.3f} {naive:14.3f}")

# %% [markdown]
# The naive estimate is too low, because it takes $c/n$ for $p$: a question with $c = 0$ counts as hopeless. (The other one is by Chen et al., 2021.)
#
# ## 3 · Has it seen the test?
#
# A model that has read the test can repeat it. So look in the training text for the test's **n-grams**, runs of $n$ words.

# %% [markdown]
# ### Exercise 4 · Overlap  (2 points · 5 min · ●●)
#
# Words are what `split()` gives. For each passage return the fraction of its *different* n-grams that occur in at least one training document. An n-gram lies within one text. A passage with fewer than $n$ words has the overlap 0.0. A training text may have thousands of documents: go through it once.


# %% exercise="overlap"
def overlap(passages: list[str], training: list[str], n: int) -> list[float]:
    """Return the fraction of each passage's different n-grams of words that the training documents contain."""

    ### BEGIN SOLUTION
    def grams_of(text: str) -> set[tuple[str, ...]]:
        words = text.split()
        return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}

    known = {gram for document in training for gram in grams_of(document)}
    found = []
    for passage in passages:
        grams = grams_of(passage)
        found.append(len(grams & known) / len(grams) if grams else 0.0)
    return found
    ### END SOLUTION


# %% check="overlap"
# %% [markdown]
# From here on we read stories (notebook 05). There are 260 new paragraphs, and a **pool** of 1,770 documents, many of them by the same grammar. Nothing was copied from one to the other:

# %%
new = list(paragraphs(999, 260))
with your("overlap"):
    shares = {n: overlap(new, list(pool()), n) for n in (3, 5, 8, 13)}
for n, each in shares.items():
    print(f"{n:2} words: mean {sum(each) / 260:.3f}, more than half in {sum(s > 0.5 for s in each) / 260:.1%} of them")

# %% [markdown]
# Texts of one kind share phrases. With 3 words every new paragraph looks copied, with 13 hardly one does: GPT-3's authors (Brown et al., 2020) looked for runs of 13 words, too. Neither finds paraphrases.
#
# Does a leak matter? Train two small models on 60,000 letters. A reads clean paragraphs. B reads the same, but nearly half of its text is replaced: 60 of the 260 test paragraphs are in it, three times each.

# %%
predict("the_honest_loss")

# %%
print("loss, nats a letter   all 260   the 60   the others   the 60 − the others")
for (name, seed), (everything, leaked, rest) in LEAKED.items():
    print(f"{name}, seed {seed} {everything:17.3f} {leaked:8.3f} {rest:12.3f} {leaked - rest:+17.3f}")

# %% [markdown]
# The loss on all 260 says with seed 0 that B is better, with seed 1 that A is: the leak changes it less than a seed does. The *last* column shows the leak: the 60 are a little easier for A, too, and 0.04 to 0.05 easier for B.
#
# Repetition makes it stronger: notebook 07 (Further) planted passages 0, 1, 3, 10 and 30 times, and their loss was 3.36, 3.27, 3.14, 2.89 and 1.92 nats. Carlini et al. (2023) measured the same in large models.
#
# ## 4 · Nearly the same
#
# `dict.fromkeys(documents)` drops exact copies. But a copy with typos is a different string. So compare *sets*: a document's **shingles** are its different runs of three words, and the **Jaccard similarity** of two documents is $J = |A \cap B| / |A \cup B|$. One changed word breaks three shingles. In our pool, two copies with a typo in every sixtieth letter have J = 0.30 in the mean.
#
# **MinHash** (Broder, 1997) makes this cheap. Give every shingle a random number, a *hash*, and keep a document's least one. In the union of two documents, each shingle is equally likely to have the least hash. If a shared one has it, both documents keep the same number, else they do not. So **the least hashes agree with probability $J$**. The least hashes of $h$ different functions are a **signature**, and the fraction of agreeing entries estimates $J$.

# %% [markdown]
# ### Exercise 5 · MinHash  (3 points · 8 min · ●●)
#
# `shingles` are a document's shingles as numbers below $2^{32}$, at least one. Each pair $(a, b)$ of `coefficients` is a hash function, $x \mapsto (a x + b) \bmod (2^{61} - 1)$, with $a$ and $b$ below $2^{61}$. Return the least hash for each pair, exactly, as a list of integers.


# %% exercise="minhash"
def minhash(shingles: list[int], coefficients: list[tuple[int, int]]) -> list[int]:
    """Return the least hash of the shingles for each hash function."""
    ### BEGIN SOLUTION
    return [min((a * x + b) % (2**61 - 1) for x in shingles) for a, b in coefficients]
    ### END SOLUTION


# %% check="minhash"
# %%
predict("error_of_64")

# %%
pairs = similar_pairs(400)
truth = torch.tensor([jaccard(*pair) for pair in pairs])
with your("minhash"):
    table = torch.tensor([[minhash(one, COEFFICIENTS) for one in pair] for pair in pairs])
for h in (4, 16, 64):
    error = (table[:, 0, :h] == table[:, 1, :h]).float().mean(dim=1) - truth
    expected = (truth * (1 - truth) / h).mean().sqrt()
    print(f"{h:2} hash functions: error {error.square().mean().sqrt():.3f}, and √(J(1 − J)/h) = {expected:.3f}")

# %% [markdown]
# But which two of 1,770 should you compare? **Banding** (Indyk and Motwani, 1998): cut each signature into bands, and compare only *candidates*, documents that agree in at least one whole band.

# %% [markdown]
# ### Exercise 6 · Candidates  (3 points · 8 min · ●●●)
#
# All signatures have the same length, which is a multiple of `bands`. A band is a run of neighbouring entries. Return all pairs $(i, j)$ of documents with $i < j$ whose signatures agree in a whole band, at its own place: a sorted list, each pair once. Without documents it is empty. Put documents into boxes by their band; comparing all pairs takes too long for the pool.


# %% exercise="candidates"
def candidates(signatures: list[list[int]], bands: int) -> list[tuple[int, int]]:
    """Return the pairs of documents whose signatures agree in at least one band."""
    ### BEGIN SOLUTION
    found = set()
    for band in range(bands):
        boxes = defaultdict(list)
        for i, signature in enumerate(signatures):
            rows = len(signature) // bands
            for j in boxes[tuple(signature[band * rows : (band + 1) * rows])]:
                found.add((j, i))
            boxes[tuple(signature[band * rows : (band + 1) * rows])].append(i)
    return sorted(found)
    ### END SOLUTION


# %% check="candidates"
# %% [markdown]
# The whole pool, with 64 hash functions cut in five ways. "True" pairs have $J > ½$: 7,838 of 1,565,565. (This takes some seconds.)

# %%
near = true_pairs(pool())
with your("minhash", "candidates"):
    known = {text: minhash(shingles(text), COEFFICIENTS) for text in set(pool())}
    print("bands × rows   candidates   of the true pairs   candidates that are true")
    for bands in (64, 32, 16, 8, 1):
        found = set(candidates([known[text] for text in pool()], bands))
        caught = len(found & near)
        print(f"{bands:5} × {64 // bands:2} {len(found):15,} {caught / len(near):15.3f} {caught / len(found):20.3f}")

# %% [markdown]
# Many bands of few rows find all pairs, and many others. One band of 64 finds hardly more than exact copies. In between is an S: a pair of similarity $J$ agrees in a band of $r$ rows with probability $J^r$, so it is a candidate with probability $1 - (1 - J^r)^b$. Try to catch the red ticks:

# %%
explore(figures.s_curve, bands=(1, 64, 1), rows=(1, 16, 1))

# %% [markdown]
# ## 5 · What is in the pool?
#
# Look at ten documents, each with its nearest neighbour:

# %%
explore(figures.document, number=(0, 40, 1))

# %% [markdown]
# There are stories, copies, typos, false sums, shuffled words, and Python's help texts. Which text is *good*? We have twenty **trusted** paragraphs, five of each place in which stories happen: at the sea, in the wood, in the town, among the stars. In the stories that test a model, all four are equally frequent.
#
# The oldest filter keeps what looks like trusted text: `bigram_score(document, trusted)` is the mean of $\ln p$ of each letter given the one before it, by counts in the trusted paragraphs.

# %%
predict("past_the_bigrams")

# %%
for kind in sorted({*kinds().values()}):
    passed = [bigram_score(text, trusted()) > -2.6 for text, each in kinds().items() if each == kind]
    print(f"{kind:23} {sum(passed) / len(passed):.2f} of the different documents pass")

# %% [markdown]
# Letters know the language, but neither order nor truth, nor how often you have read something.
#
# **In real models.** Large pools are filtered by rules (C4: Raffel et al., 2020) and by classifiers of documents (FineWeb-Edu: Penedo et al., 2024; DataComp-LM: Li et al., 2024).
#
# ## 6 · Sixty thousand letters
#
# A model of two blocks and 32 features reads your text for 300 updates of 16 windows of 64 letters, five times through 60,000. Its score is the **loss on 43,000 letters of new stories**. A try takes ten seconds or more.

# %%
predict("copies_out")

# %% [markdown]
# ### Exercise 7 · Choose  (5 points · 17 min · ●●●)
#
# `choose(pool, trusted, budget, without_near_copies, bigram_score)` returns a list of documents of the pool, as they are, in the order in which they will be read. A document may come more than once. All together they have at most `budget` letters (and at least 1,000). You may take at most 10 seconds for a pool.
#
# - `pool` and `trusted` are lists of strings.
# - `without_near_copies(documents, above=0.5)` returns the documents without each that is more similar than `above` to an earlier one: your `minhash` and `candidates` in the cell below, the course's in the check.
# - `bigram_score` is that of section 5. These two are all of `lmcourse` that your function may call.
#
# | mean loss of seeds 0, 2, 3 | first pool |
# | --- | --- |
# | as it comes | 0.77 |
# | only exact copies out | 0.80 |
# | only what passes the bigrams of section 5 | 0.59 |
# | 60,000 letters of new clean text | 0.45 |
#
# The check takes the mean over two pools and seeds 0 and 3; in the *second pool*, which you do not see, other paragraphs are copied. Grading has two other pools, and seed 4. (Seeds 1, 6 and 7 are left out: even on clean text they end at 0.50 to 0.53.) The **finish line** is 0.51. Other seeds and pools move a mean by 0.02: keep a margin.


# %% exercise="choose"
def choose(
    pool: list[str], trusted: list[str], budget: int, without_near_copies: Any, bigram_score: Any
) -> list[str]:
    """Return documents of the pool with at most `budget` letters, to train on."""
    ### BEGIN SOLUTION
    by_place: dict[str, list[str]] = defaultdict(list)
    for document in without_near_copies(pool):
        start = re.match(r"\w+ is (at the sea|in the wood|in the town|among the stars)\. ", document)
        if start and re.search(r"So \w+ goes home\.\n$", document):
            by_place[start[1]].append(document)
    found, left = [], budget
    for turn in range(3 * max(map(len, by_place.values()), default=0)):
        for documents in by_place.values():
            document = documents[turn % len(documents)]
            if turn < 3 * len(documents) and len(document) <= left:
                found.append(document)
                left -= len(document)
    return found
    ### END SOLUTION


# %%
with your("minhash", "candidates", "choose"):
    without = partial(without_near_copies, minhash=minhash, candidates=candidates)
    taken = chosen(choose, pool(), BUDGET, lambda documents, above=0.5: without(documents, above))
print("letters of each kind:", ", ".join(f"{kind} {count:,}" for kind, count in made_of(taken).items()))

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
(trainer,) = load_parts(["fit"])
print(trainer)
losses = [held_out_loss(trained_on(taken, seed, fit if trainer.reason else trainer.function)) for seed in (0, 2, 3)]
print(f"`choose`: {', '.join(f'{loss:.3f}' for loss in losses)}, mean {sum(losses) / 3:.3f} nats a letter")

# %% check="choose"

# %% [markdown]
# Drop one of your steps, and look at the kinds again. Which steps work without the *trusted* sample?
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | which of four answers? | say how you normalise: a sum favours short ones |
# | is A better than B? | the same questions, paired differences, ± 2 errors |
# | was the test in the text? | long n-grams; then the loss on the leaked and on the other part |
# | near copies? | shingles, MinHash, bands, then compare the candidates |
# | which text? | read it; filter; mix as the test is mixed; repeat what is rare |
#
# ## Check yourself
#
# 1. pass@1 is 30 %. How large can pass@8 be, and how small?
# 2. With $J > ½$ as the threshold, 136 of 300 near copies stay. Which threshold do you try, and which bands does it need?
# 3. A training text has a benchmark's questions, without the answers. Is the score honest?
# 4. Exact copies out gains nothing here. When would it?
#
# <details><summary>Answers</summary>
#
# 1. Up to 94 % ($1 - 0.7^8$), if all questions are equally hard; 30 %, if each is solved always or never.
# 2. With 0.3 only 59 stay, and some true paragraphs go. Bands of 4 rows hardly see such pairs: take 32 bands of 2.
# 3. Not quite: the model knows these words. Compare with questions that it has not seen.
# 4. If nothing worse moves up: in a pool of clean text and its copies.
#
# </details>

# %% [markdown]
# This folded cell checks the numbers in the text above.

# %% tags=["hide-input"]
from lmcourse.chapters.data_and_scores import task
from lmcourse.chapters.data_and_scores.pool import letters_of

assert len(pool()) == 1770 and letters_of(pool()) // 1000 == 366 and letters_of(new) // 1000 == 43
assert len(near) == 7838 and 1770 * 1769 // 2 == 1_565_565
for context, low, high in ((8, 2.5, 3.6), (32, 0.6, 1.9)):
    ratios = [d / paired for d, paired, _ in differences[f"against {context} tokens"]]
    assert (round(min(ratios), 1), round(max(ratios), 1)) == (low, high)
ratios = [d / independent for d, _, independent in differences["against 8 tokens"]]
assert (round(min(ratios), 1), round(max(ratios), 1)) == (1.3, 1.8)
assert LEAKED["B", 0][0] < LEAKED["A", 0][0] and LEAKED["B", 1][0] > LEAKED["A", 1][0]
assert all(-0.05 < leaked - rest < -0.04 for (name, _), (_, leaked, rest) in LEAKED.items() if name == "B")
for above, left in ((0.5, 136), (0.3, 59)):
    assert [*map(kinds().get, task.without_near_copies(pool(), above))].count("near copies") == left
assert round(1 - 0.7**8, 2) == 0.94
assert round(truth.mean().item(), 1) == 0.3 and 300 * 16 * 64 / BUDGET > 5

# %% [markdown]
# ## Further
#
# Each section needs the core and nothing else from Further.

# %%
from itertools import pairwise

from lmcourse.chapters.data_and_scores.stored import REPEATED

# %% [markdown]
# ### A · How often may a text come again?  (2 min)
#
# Good text is rare. Is it better to read thirty good paragraphs of each place three times, or to read new text? All of it is clean here, with 60,000 letters in all, and all places in turn.

# %%
predict("three_times")

# %%
for count, seeds in REPEATED.items():
    print(f"{count:3} paragraphs of each place: {', '.join(f'{loss:.3f}' for loss in seeds)}")

# %% [markdown]
# Thirty paragraphs, about three times each, cost 0.04 nats in the mean, less than the seeds differ. Ten cost 0.14, five 0.28. (And a run of 300 updates reads its 60,000 letters five times: a paragraph of thirty is read some fifteen times.)
#
# Muennighoff et al. (2023) find the same for large models: up to four times, repeated text is worth nearly as much as new text. Then its worth decays, in the end to nothing.
#
# ### B · A learned filter  (10 min)
#
# A threshold on one likelihood asks: is this *likely* in trusted text? Short common words always are. The better question is: is it likelier there than *here*? Xie et al. (2023) choose documents by the ratio of two models of n-grams (DSIR), and Moore and Lewis (2010) took the difference of two models' losses.

# %% [markdown]
# ### Exercise 8 · A ratio of bigrams  (2 points · 8 min · ●●)
#
# For a text $T$, let $N(a)$ be how often the letter $a$ has a successor in it, and $N(ab)$ how often that is $b$. Then $P_T(b \mid a) = (N(ab) + 0.1)/(N(a) + 12.8)$. For each document, at least two letters long, return the mean of $\ln P_\text{trusted}(b \mid a) - \ln P_\text{pool}(b \mid a)$ over its pairs of neighbouring letters. Count in each text once. Letters that a text never shows are fine: the formula gives 0.1/12.8.


# %% exercise="log_ratio"
def log_ratio(documents: list[str], trusted: str, pool: str) -> list[float]:
    """Return the mean log-ratio of the bigrams of each document, trusted text against pool."""
    ### BEGIN SOLUTION
    counts: list[tuple[dict[str, int], dict[str, int]]] = []
    for text in (trusted, pool):
        pairs: dict[str, int] = defaultdict(int)
        firsts: dict[str, int] = defaultdict(int)
        for a, b in pairwise(text):
            pairs[a + b] += 1
            firsts[a] += 1
        counts.append((pairs, firsts))

    def log_p(a: str, b: str, pairs: dict[str, int], firsts: dict[str, int]) -> float:
        return math.log((pairs.get(a + b, 0) + 0.1) / (firsts.get(a, 0) + 12.8))

    found = []
    for document in documents:
        ratios = [log_p(a, b, *counts[0]) - log_p(a, b, *counts[1]) for a, b in pairwise(document)]
        found.append(sum(ratios) / len(ratios))
    return found
    ### END SOLUTION


# %% check="log_ratio"
# %%
with your("log_ratio"):
    ratios = log_ratio(list(kinds()), "".join(trusted()), "".join(pool()))
for kind in sorted({*kinds().values()}):
    each = [ratio for ratio, one in zip(ratios, kinds().values(), strict=True) if one == kind]
    above = [sum(ratio > low for ratio in each) / len(each) for low in (0, -0.5)]
    print(f"{kind:23} above 0: {above[0]:.2f}, above −0.5: {above[1]:.2f}")

# %% [markdown]
# Zero is no natural threshold here. Most of the pool *are* stories, so the ratio of a story is near 0, and whole places fall below it. At −0.5 it lets through what the likelihood let through. A ratio pays where pool and trusted text share their likely words and differ in the others; DSIR therefore uses words and pairs of words, and *draws* documents by their ratio.
#
# ### C · In real pipelines  (3 min)

# %%
predict("half_caught")

# %%
for j in (0.5, 0.6, 0.7, 0.75, 0.8, 0.9):
    print(f"14 bands of 8: a pair with J = {j:.2f} is a candidate with probability {1 - (1 - j**8) ** 14:.2f}")

# %% [markdown]
# **Filters.** A document of the web passes a filter for its language, rules (does it end with a full stop? how many words repeat?), a classifier of quality, and lists of addresses to leave out. DataComp-LM (Li et al., 2024) keeps the shape of our task: the training is fixed, and the text is what you choose.
#
# **Near copies at scale.** Lee et al. (2022) found copies in all data sets that they looked at; a model trained without them repeats its text ten times less. FineWeb (Penedo et al., 2024) takes 112 hash functions in 14 bands of 8. Its authors first removed near copies from all crawls at once, and gained hardly anything: what stayed of the oldest crawl was worse than what went. Within each crawl it paid. You have seen something like it.
#
# **Mixing.** How much code, how much mathematics? DoReMi (Xie et al., 2023) lets a small model find weights for a large one.
#
# **Leaks.** Authors of benchmarks put a *canary* into their files, a string that says: do not train on this. Others keep the questions secret, or write new ones every month.
#
# **Judges.** Where no answer is right or wrong, people or models compare two answers. Then the order of the two and their lengths matter, which is section 1 again.
#
# Whose text it is, and whether you may use it, is a question that no filter answers.

# %% [markdown]
# ## Further reading
#
# - McNemar, 1947, who uses only the questions on which two models disagree; Dietterich, 1998, who compares such tests; Miller, 2024, *Adding error bars to evals*, who recommends paired errors for language models; Chen et al., 2021, *Evaluating large language models trained on code*.
# - Broder, 1997, *On the resemblance and containment of documents*; Lee et al., 2022, *Deduplicating training data makes language models better*.
# - Penedo et al., 2024, *The FineWeb datasets*; Li et al., 2024, *DataComp-LM*; Muennighoff et al., 2023, *Scaling data-constrained language models*.
# - Sainz et al., 2023, *NLP evaluation in trouble*; Oren et al., 2024, *Proving test set contamination in black-box language models*.

# %% tags=["hide-input"]
means = {count: sum(seeds) / 3 for count, seeds in REPEATED.items()}
assert [round(means[count] - means[80], 2) for count in (30, 10, 5)] == [0.04, 0.14, 0.28]
assert [round(1 - (1 - j**8) ** 14, 1) for j in (0.5, 0.69)] == [0.1, 0.5]
