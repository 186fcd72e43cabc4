# %% [markdown]
# # 07 · Tokens and data
#
# **Core · 90 min · 6 exercises · 20 points** · **Further · 77 min · 5 exercises · 10 points**
#
# A model reads numbers from a table that was made before it, by counting. **Who decides what a model reads, and who pays for it?**
#
# At the end, your code has made a table that a model reads with, and one table for readers of seven languages, with a bill that says what each of them pays.
#
# **You need** cross-entropy (notebook 05) and a little about bytes in Python (explained here). No GPU.
#
# Stuck? `hint("name_of_the_exercise")` gives a nudge.

# %%
import json
import math
import random
import re
import tempfile
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import islice, pairwise
from operator import mul
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from tokenizers import Tokenizer, models, trainers
from torch import Tensor, nn

from lmcourse import Transformer, llama_like
from lmcourse.chapters.tokens_and_data import figures
from lmcourse.chapters.tokens_and_data.counted_text import CountedText
from lmcourse.chapters.tokens_and_data.everybody import bill_rows, bills, names_for_everybody, plain_mix, swap_letters
from lmcourse.chapters.tokens_and_data.figures.boxes import course_tokenizer
from lmcourse.chapters.tokens_and_data.figures.timeline import LOOPS, MEMORY, STREAMS, Clocks
from lmcourse.chapters.tokens_and_data.figures.words import words_of
from lmcourse.data.corpora import find_corpus
from lmcourse.data.corpus_sources import stories
from lmcourse.data.loader import Loader
from lmcourse.data.recorded_tokens import SENTENCE_TOKENS
from lmcourse.data.token_file import TokenFile, write_tokens
from lmcourse.data.tokenizers import BPETokenizer, ByteTokenizer, save_tokenizer
from lmcourse.data.tokenizers.bpe import learn_merges
from lmcourse.data.tokenizers.pre_tokenizer import split_words
from lmcourse.notebook import check, explore, hint, predict, start, your

start("07-tokens-and-data")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · Why not words?
#
# People read words. So give each word a number? Here are 98 kB of this course's own prose, from before this notebook.

# %%
(text,) = find_corpus("course-text").texts()
figures.new_words(text)

# %% [markdown]
# In its second half, one word in ten is one that never came in the first (of the different words, four in ten), although one author wrote both on one subject.
#
# Letters, then? A word of this text has 5.5 with its space, and a model pays for each position. And Unicode has more than 150,000.

# %%
predict("bytes_of_e")

# %%
print({letter: list(letter.encode()) for letter in "eé人😀"})

# %% [markdown]
# `encode` gives the **bytes** of a text in UTF-8: numbers from 0 to 255. These 256 can write every text of the world, but sequences are long. So begin with bytes, and merge what is common.

# %% [markdown]
# ## 2 · Merge what is common
#
# **Byte pair encoding** compressed files (Gage, 1994), then cut words for translation (Sennrich, Haddow and Birch, 2016). GPT-2 (Radford et al., 2019) began with bytes. The rule: *find the pair of neighbours that is most common, and make it a token. Again.*
#
# By hand, with four words: low five times, lower twice, newest six times, widest three times. Which pair is most common? e and s are neighbours in newest (6) and in widest (3): 9 times, and so are s and t. Move the step: which pair is merged, and what does that do to the other counts?

# %%
explore(figures.merge_steps, text="low low low low low lower lower " + "newest " * 6 + "widest widest widest", step=(0, 12))

# %% [markdown]
# The rule leaves ties open, borders and the end. Here:
#
# - **Ties.** Of equally common pairs we take the one whose left token has the smaller number, then the one whose right token has.
# - **Borders.** First the text is cut into words, each with its space in front, and no token reaches across a border. Each different word is stored once, with the number of times that it occurs.
# - **The end.** Merging a pair that occurs once saves a single token in the whole text. Stop before that.

# %% [markdown]
# ### Exercise 1 · Merge  (2 points · 4 min · ●)
#
# Return a new list with the token `new` in place of every `pair`, found from left to right. A token that was used for a merge is used up, and a new token does not merge again in the same call. The input stays as it is.

# %% exercise="merge"
def merge(tokens: list[int], pair: tuple[int, int], new: int) -> list[int]:
    """The tokens with `new` in place of each `pair`, found from left to right."""
    ### BEGIN SOLUTION
    merged, i = [], 0
    while i < len(tokens):
        found = tuple(tokens[i : i + 2]) == pair
        merged.append(new if found else tokens[i])
        i += 2 if found else 1
    return merged
    ### END SOLUTION

# %% check="merge"

# %% [markdown]
# ### Most of a text stays as it is
#
# Count all pairs, merge the best, count again: that works. But after a merge almost nothing has changed. Cut nearly as in GPT-2 (Further B), spaces and punctuation included, the text above has 2,804 different words. For 256 merges you would look at 256 · 2,804 = 717,824 words.

# %%
predict("words_looked_at")

# %% [markdown]
# By hand, in "newest": merge e·s, and make the token es. The pairs before were n·e, e·w, w·e, e·s, s·t. Now they are n·e, e·w, w·es, es·t. Two pairs stay, three are gone, two are new, and a word without e·s is not touched at all. So count once, remember where each pair is, and then only update:
#
#     counts, where = Counter(), defaultdict(set)
#     for number, word in enumerate(words):       # words: lists of tokens
#         for pair in pairwise(word):
#             counts[pair] += times[number]       # times: how often each word occurs in the text
#             where[pair].add(number)

# %% [markdown]
# ### Exercise 2 · Merge and keep count  (4 points · 12 min · ●●●)
#
# Put `new` for `pair` everywhere in `words`, and leave `counts` and `where` as the five lines above would make them from the new words. `where[pair]` is the set of the numbers of the words that hold a pair (word number 0 is `words[0]`). A pair that is nowhere has no entry in either: no 0, no empty set. `counts` is a `Counter` and `where` a `defaultdict(set)`, as above, so reading `where[pair]` of such a pair adds an entry. `new` is in no word yet.
#
# Change `words`, `counts` and `where` in place, and return nothing. Look only at words that hold the pair, and write only counts of pairs in them: the check records which words you read and which counts you write. Your `merge` can be used.

# %% exercise="merge_counted"
def merge_counted(
    words: list[list[int]],
    times: list[int],
    counts: dict[tuple[int, int], int],
    where: dict[tuple[int, int], set[int]],
    pair: tuple[int, int],
    new: int,
) -> None:
    """Put `new` for `pair` in all words, and correct the counts and places of pairs."""
    ### BEGIN SOLUTION
    for number in list(where.get(pair, ())):
        before = Counter(pairwise(words[number]))
        words[number] = merge(words[number], pair, new)
        after = Counter(pairwise(words[number]))
        for each in before | after:
            counts[each] = counts.get(each, 0) + times[number] * (after[each] - before[each])
            holders = where.setdefault(each, set())
            holders.add(number) if each in after else holders.discard(number)
            if not holders:
                del counts[each], where[each]
    ### END SOLUTION

# %% check="merge_counted"

# %% [markdown]
# How much do you look at, for 256 merges, and for all that this text has?

# %%
word_counts = dict(Counter(split_words(text)))
package_merges = learn_merges([text], 5000)
with your("merge", "merge_counted"):
    print("newest:", [256 if token == 256 else chr(token) for token in merge(list(b"newest"), (101, 115), 256)])
    for count in (256, len(package_merges)):
        seen = CountedText.of_bytes(word_counts).train(merge_counted, package_merges[:count])
        print(f"{count:5,} merges: all words {count * len(word_counts):9,}   merge_counted {seen.looks:6,}, or {count * len(word_counts) / seen.looks:.0f} times fewer")

# %% [markdown]
# The longer a merge waits for its turn, the rarer its pair. So updating gains more with more merges, and real tokenizers make 100,000 and more.

# %% [markdown]
# ### Exercise 3 · Train  (3 points · 8 min · ●●)
#
# Now the whole training. `words` says how often each word occurs. Tokens 0 to 255 are the bytes of UTF-8, and merge number $i$, counted from 0, makes token $256 + i$. Return at most `merges` pairs, in the order in which they are learned, by the three rules above. The first lines of the answer count. Use your `merge_counted`, or count everything again after each merge: as right, and slower.

# %% exercise="train_bpe"
def train_bpe(words: dict[str, int], merges: int) -> list[tuple[int, int]]:
    """The pairs to merge, in the order in which they are learned."""
    texts, times = [list(word.encode()) for word in words], list(words.values())
    counts, where = Counter(), defaultdict(set)
    for number, tokens in enumerate(texts):
        for pair in pairwise(tokens):
            counts[pair] += times[number]
            where[pair].add(number)
    ### BEGIN SOLUTION
    learned = []
    while counts and len(learned) < merges:
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        if counts[best] < 2:
            break
        merge_counted(texts, times, counts, where, best, 256 + len(learned))
        learned.append(best)
    return learned
    ### END SOLUTION

# %% check="train_bpe"

# %% [markdown]
# 256 merges of the whole text, so 512 tokens:

# %%
with your("train_bpe"):
    my_merges = [tuple(pair) for pair in train_bpe(word_counts, 256)]
my_tokenizer = BPETokenizer(my_merges)
print("the first merges:", " | ".join(my_tokenizer.decode([256 + i]) for i in range(12)))

# %% [markdown]
# " t", " a", "he": the third makes "the" possible. It was given no list of English words.

# %% [markdown]
# ## 3 · Ask a program by other authors
#
# Are your merges right? Let the *trainer* of Hugging Face's `tokenizers` learn from the same words, with a character for each byte.

# %%
predict("their_merges")

# %%
spelled = ["".join(chr(256 + byte) for byte in word.encode()) for word in split_words(text)]
library = Tokenizer(models.BPE())
rules = trainers.BpeTrainer(vocab_size=5256, min_frequency=2, initial_alphabet=list(map(chr, range(256, 512))), show_progress=False)
library.train_from_iterator(spelled, rules)
model = json.loads(library.to_str())["model"]
their_merges = [tuple(model["vocab"][piece] for piece in pair) for pair in model["merges"]]
equal = [mine == theirs for mine, theirs in zip(my_merges, their_merges, strict=False)]
print(f"{sum(equal)} of {len(my_merges)} merges are equal; the first that differs: {equal.index(False) if False in equal else 'none'}")

# %% [markdown]
# This comparison can fail: with ties decided the other way round, 111 of 256 merges are equal. And until no pair occurs twice, their program and the package learn the same 2,722.

# %% [markdown]
# ## 4 · Read with merges
#
# The list of merges is fixed for good. A new word comes. How is it cut?

# %%
predict("which_merge_first")

# %% [markdown]
# Not by the longest piece that fits. *Do to the word what training would have done to it.*

# %% [markdown]
# ### Exercise 4 · Encode  (3 points · 7 min · ●●)
#
# Return the tokens of a word, given the merges in the order in which they were learned. (Each pair is in the list once, and is made of bytes and of tokens that were made before it.) Bytes that no merge uses stay as they are. Leave `merges` as it is.

# %% exercise="encode_word"
def encode_word(word: str, merges: list[tuple[int, int]]) -> list[int]:
    """The tokens of a word."""
    ### BEGIN SOLUTION
    tokens = list(word.encode())
    for new, pair in enumerate(merges, start=256):
        tokens = merge(tokens, pair, new)
    return tokens
    ### END SOLUTION

# %% check="encode_word"

# %% [markdown]
# Ask the other program again: it gets your merges in a file, tokenizer.json, and reads the whole text.

# %%
with tempfile.TemporaryDirectory() as folder:
    save_tokenizer(my_tokenizer, Path(folder) / "tokenizer.json")
    theirs = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
with your("encode_word"):
    cut_words = {word: encode_word(word, my_merges) for word in word_counts}
mine = [token for word in split_words(text) for token in cut_words[word]]
found = theirs.encode(text).ids
print(f"{len(mine):,} tokens by encode_word, {len(found):,} by their program, {sum(a == b for a, b in zip(mine, found, strict=False)):,} equal")

# %% [markdown]
# Merging has no plan. A program that tries every cut needs a third of a percent fewer tokens (Further C).

# %% [markdown]
# ## 5 · Tokens that never come
#
# For token 300 a model takes row 300 of a matrix $W_{\text{embed}}$ of shape $(|V|, d)$, which is the product with a *one-hot* vector (notebook 05). Papers number tokens from 1 to $|V|$, code from 0: the papers' last token would be an error.
#
# A model reads windows of a long row of tokens: inputs $x$ and targets $y$ of shape $(B, S)$, the targets one token later:
#
# $$y_{b,s} = x_{b,s+1}.$$
#
# By hand, the windows of $S = 2$ in 7 1 8 2 9, which begin at 0, 1 and 2:
#
#     x =  7 1    1 8    8 2
#     y =  1 8    8 2    2 9
#
# A window needs $S$ inputs and one more token for its last target. So windows can begin at $n - S$ of $n$ places. Without overlap there are $\lfloor (n-1)/S \rfloor = 2$.

# %% [markdown]
# ### Exercise 5 · Windows  (3 points · 6 min · ●●)
#
# `tokens` is a text as a tensor of whole numbers, of any integer dtype; `starts` are the places where windows of `length` ≥ 1 inputs begin. Return inputs and targets, two int64 tensors of shape $(B, S)$; with no starts, of shape $(0, S)$. If a window, its last target included, does not lie inside the text, raise `ValueError`.

# %% exercise="batch_at"
def batch_at(
    tokens: Int[Tensor, "n"], starts: list[int], length: int
) -> tuple[Int[Tensor, "b s"], Int[Tensor, "b s"]]:
    """Inputs and targets of the windows that begin at these places, as int64."""
    ### BEGIN SOLUTION
    windows = torch.empty(len(starts), length + 1, dtype=torch.int64)
    for row, begin in enumerate(starts):
        if not 0 <= begin < len(tokens) - length:
            raise ValueError(f"no window of {length} and its last target begins at {begin}")
        windows[row] = tokens[begin : begin + length + 1]
    return windows[:, :-1], windows[:, 1:]
    ### END SOLUTION

# %% check="batch_at"

# %% [markdown]
# Your table was learned from prose, and now a model reads stories with it, which a program makes from few words: "One robot guides one planet. One comet lands. So Felix goes home." They have no "and" and no "of", and "he" always merges on, to "the": some tokens of your table never come. What happens to their rows?

# %%
predict("unseen_row")

# %% [markdown]
# A small network guesses the next token from the last three.

# %%
def train_on_stories(tokens: Int[Tensor, "n"], decay: float, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the input rows before and after 500 steps, and the output rows."""
    torch.manual_seed(seed)
    embedding, hidden, output = nn.Embedding(512, 16), nn.Linear(48, 64), nn.Linear(64, 512, bias=False)
    before = embedding.weight.detach().clone()
    weights = [*embedding.parameters(), *hidden.parameters(), *output.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=3e-3, weight_decay=decay, fused=True)
    for _ in range(500):
        inputs, targets = batch_at(tokens, torch.randint(len(tokens) - 8, (16,)).tolist(), 8)
        # At each place the rows of the last three tokens, side by side; before the first token, zeros.
        last_three = F.pad(embedding(inputs), (0, 0, 2, 0)).unfold(1, 3, 1).flatten(2)
        scores = output(hidden(last_three).tanh())
        optimizer.zero_grad()
        F.cross_entropy(scores.flatten(0, 1), targets.flatten()).backward()
        optimizer.step()
    return before, embedding.weight.detach(), output.weight.detach()

# %%
with your("encode_word", "batch_at"):
    words = split_words("\n\n".join(stories(60)))
    story_words = {word: encode_word(word, my_merges) for word in set(words)}
    story_tokens = torch.tensor([token for word in words for token in story_words[word]])
    rows = {(decay, seed): train_on_stories(story_tokens, decay, seed) for decay, seed in ((0.0, 0), (0.0, 1), (0.0, 2), (0.1, 0))}
came = torch.bincount(story_tokens, minlength=512) > 0
print(f"{int((~came).sum())} of 512 tokens never come, such as", [my_tokenizer.decode([i]) for i in range(256, 300) if not came[i]][:6])
for (decay, seed), (before, after, _) in rows.items():
    print(f"decay {decay}, seed {seed}: rows change by at most {(after[~came] - before[~came]).abs().max().item():.1g}, to {(after[~came].norm() / before[~came].norm()).item():.4f} of their length")

# %% [markdown]
# Without decay the rows are unchanged to the bit: they still hold their first random numbers. With decay 0.1 they shrink to $(1 - 0.003 \cdot 0.1)^{500} = 0.8607$ of their length, because no gradient acts against it. If a user types such a token, the network reads noise. This has happened: " SolidGoldMagikarp" is token 43,453 of GPT-2, and models that were asked to repeat it insulted the user or spoke of something else (Rumbelow and Watkins, 2023). It was the name of a busy user of a forum in the *tokenizer's* training text.
#
# The *output* rows show more. Every step raises the score of the token that came and lowers all other scores, so the rows of tokens that never come end up pointing the same way. Some bytes can never come: C0, C1, and F5 to FF, thirteen in all, occur in no UTF-8 text. Measure the cosine of each other row with the mean of theirs:

# %%
never_utf8 = [0xC0, 0xC1, *range(0xF5, 0x100)]


def similarity_to_unused(output: Tensor) -> Tensor:
    """Return the cosine of each output row with the mean of the thirteen rows that no text can train."""
    directions = F.normalize(output, dim=1)
    return directions @ F.normalize(directions[never_utf8].mean(dim=0), dim=0)


others = ~came
others[never_utf8] = False
for (decay, seed), (_, _, output) in rows.items():
    cosine = similarity_to_unused(output)
    print(f"decay {decay}, seed {seed}: above 0.9 are {int((cosine[others] > 0.9).sum())} of {int(others.sum())} that never came and {int((cosine[came] > 0.9).sum())} of {int(came.sum())} that came")
cosine = similarity_to_unused(rows[0.0, 0][2])
figures.output_rows({"tokens that came": cosine[came].tolist(), "others that never came": cosine[others].tolist()})

# %% [markdown]
# With every seed, 0.9 divides all tokens that never came from all others, without a look at the training text. The nearest of the others is "nd", which came twice among 23,317 tokens. Land and Bartolo (2024) find such tokens in most published models.

# %% [markdown]
# ## 6 · Who pays?
#
# A user pays per token, waits per token, and has a context that is measured in tokens. Article 1 of the Universal Declaration of Human Rights (1948) exists in nearly every language: *All human beings are born free and equal in dignity and rights …* Its tokens were counted in November 2026 (`lmcourse/data/recorded_tokens.py` says how).
#
# A student asks: *do multilingual vocabularies help English, too?*

# %%
predict("what_english_gains")

# %%
for language in SENTENCE_TOKENS["GPT-2"]:
    print(f"{language:9}", "   ".join(f"{name} {counts[language]:4}" for name, counts in SENTENCE_TOKENS.items()))

# %% [markdown]
# Not here: 33, 33 and 33, although GPT-4o's table is twice GPT-4's and four times GPT-2's. The larger table helps the other languages.

# %%
explore(figures.sentence_price, base=["English", "Chinese", "Hindi", "Burmese"])

# %% [markdown]
# A reader of Burmese paid 22 times the English price with GPT-2, 15.5 times with GPT-4, and still pays four times with GPT-4o. With other texts and more tokenizers, others measured up to 15 times between languages (Petrov et al., 2023; Ahia et al., 2023).

# %% [markdown]
# ## 7 · A table for everybody
#
# Seven readers share one table of 512 tokens. Their texts name the same 1,049 things (territories, languages, currencies, time zones), with the names of Unicode's CLDR, which the library Babel brings. Line $i$ names the same things in all seven, so a reader's bill is a number of tokens.

# %%
names = names_for_everybody()
for reader, lines in names.items():
    print(f"{reader:10} {len(lines.encode()) / 1000:2.0f} kB   {lines.splitlines()[0]}")

# %%
predict("the_plain_mix")

# %% [markdown]
# **The bill.** Three times, a third of the lines is kept aside and paid with a table that never read it. The score is the *ratio*: what the dearest reader pays, divided by what the dearest pays with the seven texts as they are.
#
# So that a table written down beforehand fits no text, letters of the same kind and length are swapped first, in all texts in the same way, and in grading as in the next cell.

# %%
texts = swap_letters(names, seed=0)
plain = bills(plain_mix, texts)
alone = bills(lambda texts: learn_merges([texts["English"]], 256), texts)
print(*bill_rows({"as they are": plain, "English alone": alone}), sep="\n")

# %% [markdown]
# Burmese pays most: nobody shares its letters. Then comes Ukrainian. Its letters have two bytes, Hindi's three, and yet Hindi pays less: Marathi shares its letters and many words.

# %% [markdown]
# ### Exercise 6 · A table for everybody  (5 points · 14 min · ●●●)
#
# `texts` has the text of each reader. Return at most 256 merges, pairs of earlier tokens that make new bytes, as `train_bpe` does. The rest is your design: texts may be repeated, words weighed, each merge chosen for somebody. Use `split_words`, `merge_counted`, `train_bpe` and `encode_word`, but no other trainer, no file and no Babel. **Finish line: a ratio of at most 0.92.**
#
# A valid table earns 1 point, a ratio of 1.0 one more, 0.96 two, 0.92 the last. The next cell and the check make three tables. The check makes a fourth, for other swaps, which must serve the dearest reader as well, to 5 %; all four may take 60 seconds.

# %% exercise="everybodys_table"
def everybodys_table(texts: dict[str, str]) -> list[tuple[int, int]]:
    """At most 256 merges for all these readers."""
    ### BEGIN SOLUTION
    found = {reader: Counter(split_words(text)) for reader, text in texts.items()}
    words = {reader: [list(word.encode()) for word in of] for reader, of in found.items()}
    times = {reader: list(of.values()) for reader, of in found.items()}
    counts, where = {reader: Counter() for reader in texts}, {reader: defaultdict(set) for reader in texts}
    for reader in texts:
        for number, word in enumerate(words[reader]):
            for pair in pairwise(word):
                counts[reader][pair] += times[reader][number]
                where[reader][pair].add(number)
    table = []
    while len(table) < 256:  # each merge is for the reader who pays most so far
        dearest = max(texts, key=lambda reader: sum(map(mul, times[reader], map(len, words[reader]))))
        table.append(min(counts[dearest], key=lambda pair: (-counts[dearest][pair], pair)))
        for reader in texts:
            merge_counted(words[reader], times[reader], counts[reader], where[reader], table[-1], 255 + len(table))
    return table
    ### END SOLUTION

# %%
with your("everybodys_table"):
    paid = bills(everybodys_table, texts)
print(*bill_rows({"as they are": plain, "everybodys_table": paid}), sep="\n")

# %% check="everybodys_table"

# %% [markdown]
# Such a table has a price. With our best (a ratio of 0.90), English pays 1.6 times what it pays with its own, and all together pay 2 % more than with the texts as they are. Would you ship it?

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what is a token? | bytes that often occur together, found by merging the commonest pair again and again |
# | how is a word read? | by the merges in the order of learning; not longest first, not fewest tokens |
# | a window of $S$? | $S + 1$ tokens; the targets are the inputs one later |
# | tokens that never come? | input rows stay random, output rows all point the same way |
# | what does a language pay? | more, the less of it is in the table: here up to 22 times the English price |
#
# ## Check yourself
#
# 1. Two tokenizers of 50,000 tokens give 1.30 and 1.35 tokens a word on your text. Which one makes the better model?
# 2. Why does a merge of a pair that occurs once help so little?
# 3. `encode(a) + encode(b) == encode(a + b)`: when does it hold?
#
# <details><summary>Answers</summary>
#
# 1. The length alone does not decide it. Train both and compare bits per byte.
# 2. It shortens one place by one token, and its row is trained by that one place.
# 3. Surely when `a` and `b` are cut into the same words as `a + b`, such as “two” and “ words”: no merge reaches across a border.
#
# </details>

# %% [markdown]
# The folded cell checks the numbers.

# %% tags=["hide-input"]
all_words = words_of(text)
half = len(all_words) // 2
known, later = set(all_words[:half]), all_words[half:]
assert round(len(set(later) - known) / len(set(later)), 1) == 0.4
assert round(len(text.encode()), -3) == 98_000 and round(len(text.encode()) / len(all_words), 1) == 5.5
assert round(sum(word not in known for word in later) / len(later), 1) == 0.1
assert [len(letter.encode()) for letter in "é人😀"] == [2, 3, 4] and ByteTokenizer().vocab_size == 256
toy = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
toy_pairs = Counter()
for word, times in toy.items():
    for left, right in pairwise(word):
        toy_pairs[left + right] += times
assert toy_pairs["es"] == toy_pairs["st"] == 9 == max(toy_pairs.values())
assert [BPETokenizer(package_merges).decode([256 + i]) for i in range(3)] == [" t", " a", "he"]
assert len(word_counts) == 2804 and len(package_merges) == 2722 and package_merges == their_merges
assert [(n - s, (n - 1) // s) for n, s in ((5, 2),)] == [(3, 2)] and len(never_utf8) == 13
assert len(story_tokens) == 23_317 and sum(came).item() == 146
for (decay, _), (before, after, output) in rows.items():
    cosine = similarity_to_unused(output)
    assert cosine[~came].min() > 0.92 and cosine[came].max() < 0.84 and my_tokenizer.decode([int((cosine - 2.0 * ~came).argmax())]) == "nd"
    assert torch.equal(before[~came], after[~came]) if decay == 0 else torch.allclose(after[~came], before[~came] * (1 - 3e-3 * 0.1) ** 500, rtol=1e-4)
assert all(table["English"] == 33 for table in SENTENCE_TOKENS.values())
assert [round(table["Burmese"] / table["English"], 1) for table in SENTENCE_TOKENS.values()] == [22.0, 15.5, 4.1]
assert sorted(plain, key=plain.get)[-2:] == ["Ukrainian", "Burmese"] and plain["Hindi"] < plain["Ukrainian"]

# %% [markdown]
# ## Further
#
# What surrounds a table: text back from tokens, the cut before any merge, and the way from a file to the device. Read the parts in any order: each needs the core, and no other part.

# %% [markdown]
# ### A · Back to text  (6 min)

# %% [markdown]
# ### Exercise 7 · Decode  (2 points · 5 min · ●●)
#
# Tokens may come from a model, in any order. Bytes that are not UTF-8, such as half of an é, become the character U+FFFD (�), as with `errors="replace"`. For a token that does not exist, raise `ValueError`. A merged token may be made of merged tokens. Leave both lists as they are.

# %% exercise="decode"
def decode(tokens: list[int], merges: list[tuple[int, int]]) -> str:
    """The text of these tokens."""
    ### BEGIN SOLUTION
    pieces = [bytes([value]) for value in range(256)]
    for left, right in merges:
        pieces.append(pieces[left] + pieces[right])
    if any(not 0 <= token < len(pieces) for token in tokens):
        raise ValueError(f"the tokens go from 0 to {len(pieces) - 1}")
    return b"".join(pieces[token] for token in tokens).decode(errors="replace")
    ### END SOLUTION

# %% check="decode"

# %%
with your("decode"):
    for each in ("Aragorn instructed Frodo", "naïve 東京"):
        print(" | ".join(decode([token], my_merges) for token in my_tokenizer.encode(each)))

# %% [markdown]
# Token by token, half a letter is a �. Together the tokens are the text. Keep your table, if you like: `save_tokenizer(my_tokenizer, Path("my_tokenizer.json"))`; `lmcourse train --tokenizer my_tokenizer.json` trains a model with it.

# %% [markdown]
# ### B · Cut first  (15 min)
#
# Before any merge, the **pre-tokenizer** cuts the text into words, each with its space in front; where does the first of two spaces go? Give ours capitals, numbers, code, another language. In the notebook you can type, your name for example.

# %%
explore(figures.token_colours, text="Aragorn instructed Frodo to mind Lothlorien. instructed, 12345678, naïve", vocabulary=[256, 512, 1024, 2048])

# %% [markdown]
# ### Exercise 8 · Cut  (2 points · 8 min · ●●)
#
# Write GPT-4's kind of cut, with `re.findall`. At each place take the first of these that fits:
#
# 1. an ending: 's, 'd, 'm, 't, 'll, 've or 're;
# 2. letters, with one space in front if there is one. A letter is A to Z, a to z, or anything beyond ASCII;
# 3. one to three digits, with one space in front if there is one;
# 4. other characters that are no white space, with one space in front if there is one;
# 5. white space that other white space or the end follows;
# 6. what is left of the white space.
#
# Nothing is lost: `"".join(cut(text)) == text`.

# %% exercise="cut"
def cut(text: str) -> list[str]:
    """The words of a text: ["It", "'s", " 123", "4", "!"] for "It's 1234!"."""
    ### BEGIN SOLUTION
    letter = r"A-Za-z\u0080-\U0010ffff"
    kinds = ["'(?:[sdmt]|ll|ve|re)", rf" ?[{letter}]+", " ?[0-9]{1,3}", rf" ?[^\s{letter}0-9]+", r"\s+(?!\S)", r"\s+"]
    return re.findall("|".join(kinds), text)
    ### END SOLUTION

# %% check="cut"

# %%
with your("cut"):
    for each in ("two spaces", "  two spaces", "don't pay 12345!"):
        print(f"{each!r:20} {split_words(each)}   cut: {cut(each)}")
    print(f"{len(set(cut(text))):,} different words in our text, {len(word_counts):,} with whole numbers")

# %% [markdown]
# GPT-2 takes only what Unicode calls a letter for one, and cuts don’t into three words and हिन्दी, whose vowels are signs, into six. Ours takes everything beyond ASCII for a letter, also “, — and §, so that Python and other programs agree: 2,804 different words here, 2,805 by GPT-2's rule.
#
# A sentence from a lecture, *Aragorn instructed Frodo to mind Lothlorien.*, has 13 tokens in GPT-2, GPT-4 and GPT-4o. GPT-4's are
#
# > A·rag·orn· instructed· Fro·do· to· mind· Lo·th·lor·ien·.

# %%
predict("a_space_in_front")

# %% [markdown]
# With a capital, in quotes, or at the start of a line, a word is another string, and is cut into pieces. " strawberry" is one token of GPT-4, "strawberry" three, str·aw·berry, and in neither does the model see an r. A model that can spell has learned the spelling of each token by heart.
#
# Numbers are worse. GPT-2 cuts 2023 into 20·23, and 12345678 into 123·45·678, because these pieces happened to be common: of the numbers 0 to 999, 819 have a token of their own and 181 do not. How should it learn to add? GPT-4 cuts after every third digit, from the left: 1234567 is 123·456·7. Carrying goes from the right; Singh and Strouse (2024) show that models add better when the digits are grouped from there.
#
# A **special token** is a number that no merge makes, such as the one that ends a document. A program inserts it; no text produces it. But what if a user types its name?

# %%
theirs.add_special_tokens(["<|endoftext|>"])
prompt = "the end<|endoftext|>"
print("as text:   ", " | ".join(my_tokenizer.decode([token]) for token in my_tokenizer.encode(prompt)))
print("as a token:", " | ".join(theirs.encode(prompt).tokens).replace("Ġ", " "), f"(number {theirs.token_to_id('<|endoftext|>')})")

# %% [markdown]
# With the second program, a user ends the document from inside a prompt, and a page from the web does so in the training text. Most libraries let you choose: `tiktoken`'s `encode` rejects `<|endoftext|>` in a prompt, `encode_ordinary` cuts it into seven harmless tokens, and if you allow it, it becomes the one token that ends a document.

# %% [markdown]
# ### C · Greedy, not shortest  (4 min)
#
# Merging has no plan: with 2,048 tokens " higher" becomes " h" + "ig" + "her". Let a second program look for the *fewest* tokens for each word, by trying every cut:

# %%
tokenizer = course_tokenizer(2048)


def fewest_tokens(raw: bytes, pieces: set[bytes], longest: int) -> int:
    """The smallest number of pieces that together are these bytes."""
    best = [0]
    for end in range(1, len(raw) + 1):
        begins = range(max(0, end - longest), end)
        best.append(min(best[begin] + 1 for begin in begins if raw[begin:end] in pieces))
    return best[-1]


pieces = set(tokenizer.token_bytes)
longest = max(map(len, pieces))
lengths = {word: len(tokenizer.encode(word)) for word in word_counts}
too_long = {word: n - fewest_tokens(word.encode(), pieces, longest) for word, n in lengths.items()}
extra = sum(too_long[word] * word_counts[word] for word in word_counts)
total = sum(lengths[word] * word_counts[word] for word in word_counts)
print(f"{sum(n > 0 for n in too_long.values()) / len(lengths):.1%} of the words could be shorter, by {extra / total:.2%} of all tokens")
for word in (" stored", " higher"):
    print(" + ".join(tokenizer.decode([token]) for token in tokenizer.encode(word)))

# %% [markdown]
# The h went into "her" long before "igh" was at stake, and after that " high" + "er" had no chance. This costs a third of a percent, which is little. Something else costs more. Cut a text in two and encode the halves:

# %%
cuts = []
for seed in range(4):
    source, changed = random.Random(seed), 0
    for _ in range(500):
        at, border = source.randrange(len(text) - 60), source.randrange(1, 60)
        piece = text[at : at + 60]
        changed += tokenizer.encode(piece[:border]) + tokenizer.encode(piece[border:]) != tokenizer.encode(piece)
    cuts.append(changed / 500)
print("cuts that change the tokens:", ", ".join(f"{share:.0%}" for share in cuts))

# %% [markdown]
# Seven cuts of ten change the tokens around the cut. Think of a prompt that ends in a space: the likely next token is " word", but its space is in the prompt already. The model has to continue with "word", which it saw rarely in training. *End prompts after a word, not after a space.*
#
# **In real models.** GPT, Llama and most others read byte pairs. There are two more rules. WordPiece, of BERT, merges the pair that is most common *for how common its two parts are*. Unigram (Kudo, 2018), of T5, begins with far too many tokens, and throws out those that the text would miss least; it reads a word by the likeliest cut, not by merges.
# SentencePiece is no rule: it is a program that learns byte pairs or Unigram from raw text, spaces included.

# %% [markdown]
# ### D · Longer tokens, better model?  (5 min)
#
# > **Spot the slip.** A colleague writes: "A token is about three quarters of a word; a word has 1.3 tokens." With which vocabulary, and for which text?

# %%
largest = BPETokenizer.train([text], 5000)
for size in (256, 512, 1024, 2048, largest.vocab_size):
    count = len(BPETokenizer(largest.merges[: size - 256]).encode(text))
    per_word, length = count / len(words_of(text)), len(text.encode()) / count
    print(f"{size:6,} tokens: {per_word:.2f} per word, {length:.2f} bytes each; {size * 768 / 1e6:.1f} million numbers in rows of 768")

# %% [markdown]
# At 2,978 tokens there is no pair left that occurs twice. That gives 1.43 tokens a word, on the text it was trained on. Vocabularies of 50,000 and more reach 1.3, in English prose.
#
# Each doubling gains less, and costs as many new rows. Does a model gain from longer tokens?

# %%
predict("larger_vocabulary")

# %% [markdown]
# Measure it. The simplest models are counts: how common is a token (*unigram*), and how common is it after another (*pair*)? Count on 600 stories, and score 100 other stories:

# %%
many_stories = "\n\n".join(stories(600))
story_tokenizer = BPETokenizer.train([many_stories], 1000)
other_stories = "\n\n".join(stories(100, seed=1))
size_in_bytes = len(other_stories.encode())
perplexities, bits_per_byte = {}, {}
for size in (256, 400, story_tokenizer.vocab_size):
    cutter = BPETokenizer(story_tokenizer.merges[: size - 256])
    counted, scored = cutter.encode(many_stories), cutter.encode(other_stories)
    n, singles, pairs = len(scored), Counter(counted), Counter(pairwise(counted))
    # What was never counted gets a little of the shorter model's probability.
    chance = [(singles[token] + 1 / size) / (len(counted) + 1) for token in range(size)]
    single = -sum(math.log(chance[token]) for token in scored)
    pair = -sum(math.log((pairs[a, b] + chance[b]) / (singles[a] + 1)) for a, b in pairwise(scored))
    perplexities[size] = [math.exp(nats / n) for nats in (single, pair)]
    bits_per_byte[size] = bits = [nats / size_in_bytes / math.log(2) for nats in (single, pair)]
    print(f"{size} tokens: perplexity {perplexities[size][0]:5.1f} and {perplexities[size][1]:4.2f},  bits per byte {bits[0]:.2f} and {bits[1]:.2f}")

# %% [markdown]
# (Training stops at 571 tokens: the language of the stories is small.) By perplexity, the unigrams of 400 tokens are four times as bad as those of bytes. By bits per byte (notebook 05) they are twice as good, and that is the fair comparison. *Never compare losses per token across tokenizers.*
#
# Then why not a million tokens? Each is a row of the embedding and a row of the output, to be stored, multiplied and above all *trained*, and the rare ones seldom come. Section 5 has shown what becomes of such rows.
#
# **In real models.** GPT-2: 50,257 = 256 bytes + 50,000 merges + 1 for the end of a text. Llama 2: 32,000; Llama 3: 128,256; Gemma 3: 262,144, padded to 262,208 in the larger models. Of GPT-2's tokens, 344 are no valid UTF-8 by themselves: pieces of characters.

# %% [markdown]
# ### E · Loss by position  (7 min)
#
# At position $s$ of a window, counted from zero, a model sees tokens $0 \dots s$: $s + 1$ of them. So a window of $S$ tokens is $S$ examples with $S$ lengths of context, and the mean hides it.
#
# A model by counting shows it without training. It knows how often each byte of 150 stories followed each context of up to eight bytes, and mixes the lengths (long contexts count more the more often they were seen). It reads other stories in windows of 16.

# %%
predict("first_position")

# %%
def count_contexts(read: bytes, longest: int = 8) -> dict[bytes, Counter]:
    """How often each byte followed each context of 0 to `longest` bytes."""
    found = defaultdict(Counter)
    for at, byte in enumerate(read):
        for begin in range(max(0, at - longest), at + 1):
            found[read[begin:at]][byte] += 1
    return found


def probability(counts: dict[bytes, Counter], context: bytes, byte: int) -> float:
    """Return the probability of a byte after a context: each longer context that was seen corrects the shorter one."""
    p = 1 / 256
    for length in range(min(len(context), 8) + 1):
        if (seen := counts.get(context[len(context) - length :])) is None:
            break
        p = (seen[byte] + p) / (seen.total() + 1)
    return p


def losses_by_position(seed: int, window: int = 16) -> tuple[list[float], float]:
    """Return the mean loss at each position of a window, and the mean loss with full context."""
    counts = count_contexts("\n\n".join(stories(150, seed)).encode())
    unseen = "\n\n".join(stories(40, seed + 100)).encode()
    starts = range(8, len(unseen) - window, window)

    def loss(begin: int, at: int) -> float:
        return -math.log(probability(counts, unseen[begin:at], unseen[at]))

    losses = [fmean(loss(begin, begin + s + 1) for begin in starts) for s in range(window)]
    return losses, fmean(loss(at - 8, at) for begin in starts for at in range(begin + 1, begin + window + 1))


by_position, full = losses_by_position(0)
figures.loss_by_position(by_position, full)

# %% [markdown]
# The first bytes of a window cost several times the later ones. Over the whole window the mean is about 0.14 nats above what the same model does with full context. So the same model has a lower loss with longer windows. Compare losses at equal windows, or slide the window and count its last position only.

# %% [markdown]
# ### F · From disk  (4 min)
#
# A corpus does not fit into memory. So write it with `tokens.tofile("data.npy")` and map it into memory with `np.memmap`? Four things can go wrong, three of them in silence:

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "data.npy"
    np.array([1, 2, 70_000], dtype=np.int32).tofile(path)
    try:
        np.load(path)
    except ValueError:
        print("np.load: ValueError. The file is raw, it has no header, whatever its name says")
    print("read as uint16:", np.fromfile(path, np.uint16).tolist())
    print("70,000 written as uint16:", np.array([70_000]).astype(np.uint16).tolist())
    np.memmap(path, np.int32)[0] = 99
    print("memmap's mode is r+ if you do not say another; the file is now", np.fromfile(path, np.int32).tolist())

# %% [markdown]
# Little end first: the four bytes of 1 are 1 0 0 0, which are two tokens of two bytes.
#
# Here is a reader that does what a reader can. (What was cut off in writing stays lost, and with a wrong width it still reads wrong numbers.) For each accident, find the line that prevents it.
#
#     def read_tokens(path, first, count, bytes_each):
#         held = Path(path).stat().st_size // bytes_each
#         if bytes_each not in (2, 4) or not 0 <= first <= first + count <= held:
#             raise ValueError(f"the file has {held} tokens of {bytes_each} bytes")
#         text = np.memmap(path, dtype=f"<u{bytes_each}", mode="r")
#         return torch.from_numpy(text[first : first + count].astype(np.int64))
#
# <details><summary>Which line prevents which accident?</summary>
#
# `mode="r"`: the file is not written to. `<u`: another machine's byte order. The `if`: a crop that ends past the file would silently be shorter. `.astype(np.int64)`: a copy of its own, in the dtype that an embedding takes. And `np.memmap` does not look for the header that `np.load` misses.
#
# </details>
#
# A map costs nothing until it is touched:

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "tokens.bin"
    np.zeros(2**25, dtype="<u2").tofile(path)
    tracemalloc.start()
    crops = [np.memmap(path, "<u2", "r")[i * 1000 :][:256].astype(int) for i in range(64)]
    crops_peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    whole = np.fromfile(path, "<u2").nbytes / 2**20
print(f"64 crops of 256 tokens take at most {-(-crops_peak // 1):.0f} MiB, the file {whole:.0f} MiB")

# %% [markdown]
# The package's `TokenFile` begins with a header: a magic word, the width, the count, the size of the vocabulary and the tokenizer itself. So a wrong file gives an error that names the problem, not noise. (nanoGPT keeps raw uint16, and opens its map anew for each batch, because pages that were touched count as the process's memory for as long as the map is open.)

# %% [markdown]
# ### G · Never wait  (20 min)
#
# A GPU computes, and its next batch is in main memory. Must it wait for the copy? A copy can run during the computation if it starts from *pinned* memory, which the operating system promises not to move. Ordinary, *pageable* memory may be swapped out at any moment, so the driver first copies it to a pinned place of its own: two copies, and the program waits for the first. (`batch.pin_memory()` needs an accelerator: else it is a RuntimeError.)

# %% [markdown]
# ### Exercise 9 · Two copies  (1 point · 4 min · ●)
#
# A batch of `size` bytes is ready in main memory. Copies inside main memory run at `host` bytes per second, copies over the bus to the device at `link`. You start the copy with `non_blocking=True`. Return two times in seconds from then on: when your program continues, and when the batch is on the device. Let the copies run one after the other. (A real driver copies in pieces, so that they overlap in part.)

# %% exercise="copy_seconds"
def copy_seconds(size: float, host: float, link: float, pinned: bool) -> tuple[float, float]:
    """Return when the program continues, and when the batch is on the device."""
    ### BEGIN SOLUTION
    waits = 0.0 if pinned else size / host
    return waits, waits + size / link
    ### END SOLUTION

# %% check="copy_seconds"

# %% [markdown]
# The bandwidths of an ordinary machine are 10 GB/s inside main memory for one thread, and 25 GB/s over the bus:

# %%
with your("copy_seconds"):
    for name, size in {"64 windows of 2,048 tokens": 64 * 2049 * 8, "256 pictures of 224 · 224 pixels": 256 * 224 * 224 * 3 * 4}.items():
        for pinned in (True, False):
            waits, arrives = copy_seconds(size, 10e9, 25e9, pinned)
            print(f"{name:32} {'pinned' if pinned else 'pageable':8} the program waits {1e3 * waits:5.2f} ms, there after {1e3 * arrives:5.2f} ms")

# %% [markdown]
# Tokens are small. For pictures, and for everything that a GPU reads step by step from main memory, it matters.
#
# A GPU has queues, called **streams**. In one stream everything runs in order. The program only fills the streams, and waits where it reads a result, such as `loss.item()`. `batch.to("cuda", non_blocking=True)` puts the copy into the *current* stream, where it and the steps run one after the other, however early it was started. So three things must be right: pinned memory, a stream for the copies, and a start before the program waits.
#
#     side = torch.cuda.Stream()
#     def copy(batch):
#         with torch.cuda.stream(side):
#             return batch.to("cuda", non_blocking=True), side.record_event()
#     def train(copied, there):
#         torch.cuda.current_stream().wait_event(there)      # this copy, and no later one
#         copied.record_stream(torch.cuda.current_stream())  # its memory is in use here
#         step(copied)
#
# > **Spot the slip.** A colleague writes `torch.cuda.current_stream().wait_stream(side)` in `train`.
#
# And the order: start the copy of the *next* batch before you train on this one. Another colleague starts it only `if i + 2 != len(loader)`, and the loop runs without an error. Which batches are trained on? Choose the loop in the picture. Then change the times until the *copy* decides, and take the current stream or pageable memory: which loop slows down more?

# %%
explore(figures.prefetch_timeline, copy=[4.0, 10.0, 20.0], compute=[5.0, 10.0, 20.0], loop=list(LOOPS), stream=list(STREAMS), memory=list(MEMORY), waits=True)

# %% [markdown]
# With six batches the colleague trains on 0 1 2 3 4 4; with two on 0 0; with one it stops with an error. The loss does not show it.

# %% [markdown]
# ### Exercise 10 · One batch ahead  (3 points · 8 min · ●●)
#
# Write the loop. `loader` gives the batches, one after the other: it may be any iterable, can be gone through once, and may not know how many there are. `copy(batch)` starts a copy and returns it; `train(copied)` trains on it, and waits until the step is over. Copy each batch once and train on each copy once, in order. Start the copy of batch $i + 1$ *before* you train on batch $i$, but no earlier. No batches are no error. A batch may be 0 or an empty list, but not `None`. Return nothing. If `copy` or `train` raises an error, do not catch it.

# %% exercise="train_ahead"
def train_ahead(
    loader: Iterable[Any], copy: Callable[[Any], Any], train: Callable[[Any], None]
) -> None:
    """Train on the copy of every batch, and start the next copy before each step."""
    ### BEGIN SOLUTION
    waiting = []
    for batch in loader:
        waiting.append(copy(batch))
        if len(waiting) > 1:
            train(waiting.pop(0))
    for batch in waiting:
        train(batch)
    ### END SOLUTION

# %% check="train_ahead"

# %% [markdown]
# Run it on the model's clocks: 100 batches, a step of 10 ms, a copy of 2 ms. (Computed from a model; it was not measured on a GPU.)

# %%
with your("train_ahead"):
    for pinned, waits in ((True, False), (True, True), (False, True)):
        print(f"{'pinned' if pinned else 'pageable'}, the program {'waits for each step' if waits else 'runs ahead'}:")
        for own_stream in (False, True):
            ends = []
            for loop in (LOOPS["copy, then train"], train_ahead):
                clocks = Clocks(2.0, 10.0, own_stream=own_stream, pinned=pinned, waits=waits)
                loop(range(100), clocks.copy, clocks.train)
                ends.append(clocks.end)
            print(f"    {STREAMS[own_stream]:15} copy, then train {ends[0]:5,.0f} ms   train_ahead {ends[1]:5,.0f} ms")
    clocks = Clocks(2.0, 10.0, own_stream=True, pinned=True, waits=True, for_all=True)
    train_ahead(range(100), clocks.copy, clocks.train)
    print(f"pinned, waits, own stream, with wait_stream: {clocks.end:,.0f} ms")

# %% [markdown]
# Pinned, own stream, started early: then the longer of copy and step decides. The order of your loop matters where the program waits for its steps; a program that runs ahead has filled the queues anyway. And `wait_stream` waits for *every* copy started so far, the next one too.

# %% [markdown]
# ### H · The same tomorrow  (9 min)
#
# A run that cannot be repeated cannot be debugged. Seeding torch, NumPy and Python's `random` is a start. But the workers of a data loader have generators, too, some kernels add in another order each time, and, most often, other code draws from the same generator as you:

# %%
for others_draw in (0, 1):
    torch.manual_seed(0)
    torch.rand(others_draw)  # a new layer is made, a picture is cropped
    print([round(number, 3) for number in torch.rand(2).tolist()])

# %% [markdown]
# ### Exercise 11 · Your own generator  (2 points · 5 min · ●)
#
# Return the numbers that `torch.rand(count)` gives to a generator which was just seeded with `seed`, always the same for the same seed, whatever was drawn before. And leave no trace: torch, NumPy and Python's `random` draw the same numbers after your call as they would without it.

# %% exercise="own_numbers"
def own_numbers(seed: int, count: int) -> Float[Tensor, "count"]:
    """Return `count` uniform numbers that depend on the seed alone."""
    ### BEGIN SOLUTION
    return torch.rand(count, generator=torch.Generator().manual_seed(seed))
    ### END SOLUTION

# %% check="own_numbers"

# %%
with your("own_numbers"):
    print([round(number, 3) for number in own_numbers(7, 3).tolist()], "whoever else draws")

# %% [markdown]
# Text → tokens → file → shuffled windows → batches: the package's `Loader` has its own seed, a thread that makes batches ahead, pinned memory where there is a GPU, and a `state_dict` from which a stopped run resumes. Is every window read once in an epoch?

# %%
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "text.tokens"
written = write_tokens(path, [my_tokenizer.encode(text)], my_tokenizer.vocab_size, my_tokenizer.to_json())
tokens_on_disk = TokenFile(path)


def read(batches: int, seed: int = 1, position: dict[str, Any] | None = None) -> tuple[list[Tensor], dict[str, Any]]:
    """Read batches of 4 windows of 64, from the start or a position; return their inputs and the position after them."""
    with Loader(tokens_on_disk, batch=4, seq_len=64, seed=seed) as loader:
        if position:
            loader.load_state_dict(position)
        return [batch.inputs for batch in islice(loader, batches)], loader.state_dict()


epoch = (written // 64 - 1) // 4
first, _ = read(epoch)
print("windows read twice:", epoch * 4 - len(torch.cat(first).unique(dim=0)))

# %% [markdown]
# Does the same seed give the same batches, and another seed others?

# %%
for seed in (1, 2):
    print(f"seed {seed}: {sum(map(torch.equal, first, read(epoch, seed)[0]))} of {epoch} batches are the same")

# %% [markdown]
# Does a resumed run read what it would have read?

# %%
_, position = read(10)
rest, _ = read(epoch - 10, position=position)
print(f"resumed after 10 batches: {sum(map(torch.equal, first[10:], rest))} of the other {len(rest)} are the same")
tokens_on_disk.close()
folder.cleanup()

# %% [markdown]
# **In real models.** Before PyTorch 1.9, on Linux, all workers of a `DataLoader` drew the *same* numbers from NumPy, so that every worker augmented its pictures in the same way.

# %% [markdown]
# ### I · Twice the same text  (4 min)
#
# The web repeats itself. What does a model do with a passage that its training text has several times? Keep 40 passages of 64 tokens aside, and plant them 0, 1, 3, 10 or 30 times among 2,400 rows of our text, which a small transformer (notebook 12) reads once.

# %%
predict("planted_thirty_times")

# %%
def planted(seed: int, times: tuple[int, ...] = (0, 1, 3, 10, 30)) -> list[float]:
    """Return the loss on passages that were among the 2,400 rows so many times."""
    torch.manual_seed(seed)
    passages = torch.tensor(my_tokenizer.encode(text)).unfold(0, 64, 64)
    passages = passages[torch.randperm(len(passages))]
    aside, others = passages[:40].view(5, 8, 64), passages[40:]
    plan = torch.cat([each.repeat(many, 1) for many, each in zip(times, aside, strict=True)])
    rows = torch.cat([plan, others[torch.randint(len(others), (2400 - len(plan),))]])[torch.randperm(2400)]
    model = Transformer(llama_like(2, 64, 4, 128, vocab_size=512, context=64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, step / 30) * (1 - step / 150))
    for batch in rows.split(16):
        optimizer.zero_grad()
        F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten()).backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        return [F.cross_entropy(model(each[:, :-1]).flatten(0, 1), each[:, 1:].flatten()).item() for each in aside]


losses = [planted(seed) for seed in (0, 1)]
for many, both in zip((0, 1, 3, 10, 30), zip(*losses, strict=True), strict=True):
    print(f"{many:2} times: " + " and ".join(f"{loss:.1f}" for loss in both) + " nats a token")

# %% [markdown]
# Ten times are enough for a part of the text to be known by heart, and thirty for a large part. Notebook 21 searches a pool for repeats before training.

# %% [markdown]
# ### Check yourself
#
# 1. You add 1,000 tokens to a trained model's vocabulary for a new subject. What do their rows look like, and what do you do about it?
# 2. Your colleague's loss is 0.1 lower than yours; they train with windows of 4,096, you with 256. What do you ask them for?
# 3. Copying takes 3 ms, training 10. Does a second batch ahead help?
#
# <details><summary>Answers</summary>
#
# 1. Random, and untrained: start them from something sensible (the mean of the rows of the tokens that they replace), and train on texts that have them.
# 2. For the loss at equal windows, or by position: theirs has far fewer tokens near the start of a window.
# 3. Not if every copy takes 3 ms. It helps where times vary: then an occasional slow copy has the time of two steps.
#
# </details>
#
# ## Further reading
#
# - Gage, 1994, *A new algorithm for data compression*; Sennrich, Haddow and Birch, 2016, *Neural machine translation of rare words with subword units*; Radford et al., 2019, *Language models are unsupervised multitask learners*, section 2.2; Kudo, 2018, *Subword regularization*, which has Unigram.
# - Petrov et al., 2023, *Language model tokenizers introduce unfairness between languages*; Ahia et al., 2023, *Do all languages cost the same?*
# - Rumbelow and Watkins, 2023, *SolidGoldMagikarp*; Land and Bartolo, 2024, *Fishing for Magikarp*.
# - Singh and Strouse, 2024, *Tokenization counts: the impact of tokenization on arithmetic in frontier LLMs*.
# - In this package: `lmcourse/data/tokenizers/bpe.py`, byte pairs to be read; `lmcourse/data/loader.py` and `token_file.py`, from a file to batches.

# %% [markdown]
# The numbers of these parts are checked here.

# %% tags=["hide-input"]
assert 0.003 < extra / total < 0.004 and all(0.6 < share < 0.8 for share in cuts)
assert {b" high", b"er"} < pieces and len(tokenizer.encode(" higher")) == 3
assert largest.vocab_size == 2978 and round(len(largest.encode(text)) / len(words_of(text)), 2) == 1.43
assert story_tokenizer.vocab_size == 571 and 3.9 < perplexities[400][0] / perplexities[256][0] < 4.3
assert 1.9 < bits_per_byte[256][0] / bits_per_byte[400][0] < 2.1 and 50_257 == 256 + 50_000 + 1
for seed in range(4):
    by_position, full = losses_by_position(seed)
    assert 4 < by_position[0] / by_position[7] < 6 and by_position[0] > 1.9 * by_position[1]
    assert 0.13 < sum(by_position) / 16 - full < 0.15
for batches, expected in ((6, [0, 1, 2, 3, 4, 4]), (2, [0, 0])):
    clocks = Clocks(4.0, 10.0, own_stream=True, pinned=True, waits=True)
    LOOPS["i + 2"](range(batches), clocks.copy, clocks.train)
    assert [work.batch for work in clocks.lanes["train"]] == expected
assert crops_peak < 1 and whole == 64
for of_seed in losses:
    assert 3.8 < of_seed[0] < 4.0 and 2.1 < of_seed[4] < 2.6 and of_seed[3] < of_seed[0] - 0.4
