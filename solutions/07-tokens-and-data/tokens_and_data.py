# %% [markdown]
# # 07 · Tokens and data
#
# **100 min · 10 exercises · 23 points**
#
# What does a model read? Not letters, not words: numbers, from a table that was made before the model, by counting. In the first half of this notebook you make that table, and find out what it breaks and which
# readers pay for it. In the second half a text goes from a file to the device: each token once, nothing twice, and tomorrow the same as today.
#
# **You will be able to**
#
# - write byte pair encoding that looks only at what a merge changes, train it on a text, and show that another library reads your tokenizer and makes the same tokens;
# - say why a model miscounts letters, trips over numbers and a blank, and charges some languages many times the price of others;
# - find tokens that a model has never seen, from its weights alone;
# - load batches from a file so that the device does not wait for copies, and a run can be repeated exactly.
#
# **You need** cross-entropy (notebook 05), and a little Python about bytes, which is explained. No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run
# it again for the next one.

# %%
import math
import random
import tempfile
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.chapters.tokens_and_data import figures
from lmcourse.chapters.tokens_and_data.counted_text import CountedText, visits_needed
from lmcourse.chapters.tokens_and_data.figures.boxes import course_tokenizer
from lmcourse.chapters.tokens_and_data.figures.timeline import LOOPS, MEMORY
from lmcourse.chapters.tokens_and_data.figures.words import different_after, words_of
from lmcourse.data.corpora import find_corpus
from lmcourse.data.corpus_sources import stories
from lmcourse.data.loader import Loader
from lmcourse.data.recorded_tokens import SENTENCE_CHARACTERS, SENTENCE_TOKENS
from lmcourse.data.token_file import TokenFile, write_tokens
from lmcourse.data.tokenizers import BPETokenizer, ByteTokenizer, open_tokenizer, save_tokenizer
from lmcourse.data.tokenizers.bpe import learn_merges
from lmcourse.data.tokenizers.pre_tokenizer import split_words
from lmcourse.notebook import check, explore, hint, predict, start, your

start("07-tokens-and-data")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · Why not words?
#
# A word is what people read. So give each word a number? Here is a text: 98 kB of this course's own prose, as it was before this notebook. How many words are in its second half that its first half never had?

# %%
(text,) = find_corpus("course-text").texts()
words = words_of(text)
half = len(words) // 2
known, later = set(words[:half]), words[half:]
once = sum(times == 1 for times in Counter(words).values())
print(f"{len(words):,} words, {len(set(words)):,} different; of these {once / len(set(words)):.0%} occur once")
print(f"second half: {sum(word not in known for word in later) / len(later):.0%} of its words are new,")
print(f"             {len(set(later) - known) / len(set(later)):.0%} of its different words")

# %%
figures.new_words(text)

# %% [markdown]
# One word in ten would be "unknown", although one author wrote both halves on one subject. Names, typos and every other language are still to come. The list never ends.
#
# Letters, then? That list ends, but sequences get long: a word of this text has 5.5 letters with its blank, and a model pays for each position. And which letters? Unicode has more than 150,000, and more every year.

# %%
predict("bytes_of_e")

# %%
for letter in ("e", "é", "人", "😀"):
    print(letter, list(letter.encode()))

# %% [markdown]
# `encode` gives the **bytes** of a text in UTF-8: numbers from 0 to 255. A vocabulary of these 256 can write every text of the world. But its sequences are long: a Chinese character is three tokens. So begin with bytes, and make longer tokens of what is common.

# %% [markdown]
# ## 2 · Merge what is common
#
# **Byte pair encoding** was a way to compress files (Gage, 1994). Sennrich, Haddow and Birch (2016) cut words with it, for translation; Radford et al. (2019) began with bytes, for GPT-2. The rule is one line: *find the pair of neighbours that is most common, and make it a token. Again.*
#
# By hand, with four words: low five times, lower twice, newest six times, widest three times. Which pair is most common? e and s stand side by side in newest (6) and in widest (3): 9 times, and so do s and t. Move the step: which pair is merged, and what does that do to the other counts? Then take another text.

# %%
explore(figures.merge_steps, text="low low low low low lower lower " + "newest " * 6 + "widest widest widest", step=(0, 12))

# %% [markdown]
# The one line leaves three things open, and libraries decide them differently. Here:
#
# - **Ties.** Of equally common pairs we take the one with the smaller left token, then the smaller right one. (Other programs take the greater, or the pair that they met first.)
# - **Borders.** First the text is cut into words, each with its blank in front, and no token reaches across a border. Each different word is stored once, with the number of times that it occurs.
# - **The end.** Merging a pair that occurs once saves a single token in the whole text. Stop before that.
#
# ### Exercise 1 · Count neighbours  (2 points · 5 min · ●)
#
# `words` are lists of tokens, `times` says how often each occurs. Return how often each pair occurs in the text. Pairs may overlap: both count. A pair with a count of 0 is left out. If there is not exactly one number for each word, raise `ValueError`.

# %% exercise="count_pairs"
def count_pairs(words: list[list[int]], times: list[int]) -> dict[tuple[int, int], int]:
    """Count the pairs of neighbours in these words: {(1, 2): 3} for [[1, 2]] and [3]."""
    ### BEGIN SOLUTION
    counts = Counter()
    for word, many in zip(words, times, strict=True):
        for pair in pairwise(word):
            counts[pair] += many
    return {pair: count for pair, count in counts.items() if count}
    ### END SOLUTION


# %% check="count_pairs"
check(count_pairs)
### BEGIN HIDDEN TESTS
check(count_pairs, hidden=True)
### END HIDDEN TESTS


# %% [markdown]
# ### Exercise 2 · Merge  (2 points · 5 min · ●)
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
check(merge)
### BEGIN HIDDEN TESTS
check(merge, hidden=True)
### END HIDDEN TESTS


# %% [markdown]
# ### Most of a text stays as it is
#
# Count all pairs, merge the best in all words, count all pairs again: that works. But after a merge almost nothing has changed. Split as in GPT-2, spaces and signs included, the text above has 2,804 different words. For 256 merges you would look at 256 · 2,804 = 717,824 words.

# %%
predict("words_looked_at")

# %% [markdown]
# By hand, in "newest": merge e·s, and make the token es. The pairs before were n·e, e·w, w·e, e·s, s·t. Now they are n·e, e·w, w·es, es·t. Two pairs stay, three are gone, two are new. All other counts of this word are what they were, and a word without e·s is not touched at all. So count once, remember where each pair is, and correct.
#
# ### Exercise 3 · Merge and keep count  (3 points · 12 min · ●●●)
#
# Put `new` for `pair` everywhere in `words`, and leave `counts` and `where` as a fresh count would make them. `words` and `times` are as in Exercise 1; `counts` says how often each pair occurs, and `where[pair]` is the set of the numbers of the words that hold it (word number 0 is `words[0]`). A pair that is nowhere has no entry in either dict: no 0, no empty set. `new` is in no word yet.
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
check(merge_counted)
### BEGIN HIDDEN TESTS
check(merge_counted, hidden=True)
### END HIDDEN TESTS


# %% [markdown]
# How much do you look at? 256 merges of this text, and then all that it has.

# %%
word_counts = dict(Counter(split_words(text)))
package_merges = learn_merges([text], 5000)
with your("merge_counted"):
    for count in (256, len(package_merges)):
        merges = package_merges[:count]
        looks = CountedText.of_bytes(word_counts).train(merge_counted, merges).looks
        needed = visits_needed(word_counts, merges)
        print(f"{count:5,} merges: all words {count * len(word_counts):9,}   that hold the pair {needed:6,}   merge_counted {looks:6,}")

# %% [markdown]
# The longer a merge waits for its turn, the rarer its pair. The first merges visit hundreds of words, the last ones two or fewer. A tokenizer for a real model makes 100,000 merges in millions of different words, and without this change nobody would wait for it.
#
# ### Exercise 4 · Train  (2 points · 8 min · ●●)
#
# Now the whole training. `words` says how often each word occurs. Tokens 0 to 255 are the bytes of UTF-8, and merge number $i$, counted from 0, makes token $256 + i$. Return at most `merges` pairs, in the order in which they are learned, by the three rules above. Count once, then let your `merge_counted` do the rest. (A new count after each merge is right too, and much slower.)

# %% exercise="train_bpe"
def train_bpe(words: dict[str, int], merges: int) -> list[tuple[int, int]]:
    """The pairs to merge, in the order in which they are learned."""
    ### BEGIN SOLUTION
    texts, times, learned = [list(word.encode()) for word in words], list(words.values()), []
    counts, where = count_pairs(texts, times), {}
    for number, tokens in enumerate(texts):
        for pair in pairwise(tokens):
            where.setdefault(pair, set()).add(number)
    while counts and len(learned) < merges:
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        if counts[best] < 2:
            break
        merge_counted(texts, times, counts, where, best, 256 + len(learned))
        learned.append(best)
    return learned
    ### END SOLUTION


# %% check="train_bpe"
check(train_bpe)
### BEGIN HIDDEN TESTS
check(train_bpe, hidden=True)
### END HIDDEN TESTS


# %% [markdown]
# Is it the real thing? Train it on the whole text: 256 merges, so 512 tokens.

# %%
with your("train_bpe"):
    my_merges = [tuple(pair) for pair in train_bpe(word_counts, 256)]
my_tokenizer = BPETokenizer(my_merges)
print("the first merges:", " | ".join(my_tokenizer.decode([256 + i]) for i in range(12)))
print(f"{sum(mine == theirs for mine, theirs in zip(my_tokenizer.merges, package_merges, strict=False))} of the package's first 256 merges are yours, too")

# %% [markdown]
# " t", " a", "he": the third makes "the" possible. It was given no list of English words.

# %% [markdown]
# ## 3 · Read with merges
#
# Training is over, and the list of merges is fixed for good. A new word comes. How is it cut?

# %%
predict("which_merge_first")

# %% [markdown]
# One might think of the longest piece that fits, as in a dictionary. It is simpler: *do to the word what training would have done to it.*
#
# ### Exercise 5 · Encode  (3 points · 8 min · ●●)
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
check(encode_word)
### BEGIN HIDDEN TESTS
check(encode_word, hidden=True)
### END HIDDEN TESTS


# %% [markdown]
# ### Exercise 6 · Decode  (2 points · 5 min · ●●)
#
# Back to text. Tokens may come from a model, in any order. Bytes that are not UTF-8, such as half of an é, become the character U+FFFD (�), as with `errors="replace"`. For a token that does not exist, raise `ValueError`. Leave both lists as they are.

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
check(decode)
### BEGIN HIDDEN TESTS
check(decode, hidden=True)
### END HIDDEN TESTS


# %% [markdown]
# ### Greedy, not shortest
#
# Merging is quick, and it has no plan. Let a second program look for the *fewest* tokens for each word, by trying every cut:

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
# " h" was merged long before "her" was at stake, and after that " hi" + "gher" had no chance. This costs a third of a percent, which is little. Something else costs more. Cut a text in two and encode the halves:

# %%
cuts = []
for seed in range(4):
    source, changed = random.Random(seed), 0
    for _ in range(500):
        at, cut = source.randrange(len(text) - 60), source.randrange(1, 60)
        piece = text[at : at + 60]
        changed += tokenizer.encode(piece[:cut]) + tokenizer.encode(piece[cut:]) != tokenizer.encode(piece)
    cuts.append(changed / 500)
print("cuts that change the tokens:", ", ".join(f"{share:.0%}" for share in cuts))

# %% [markdown]
# Seven cuts of ten change the tokens around the cut. Think of a prompt that ends in a blank: the likely next token is " word", but its blank is in the prompt already. The model has to continue with "word", which it saw rarely in training. *End prompts after a word, not after a blank.*
#
# **In real models.** GPT, Llama and most others read byte pairs. There are two more rules. WordPiece, of BERT, merges the pair that is most common *for how common its two parts are*.
# Unigram (Kudo, 2018), of T5, begins with far too many tokens, and throws out those that the text misses least; it reads a word by the likeliest cut, not by merges.
# SentencePiece is no rule: it is a program that learns byte pairs or Unigram from raw text, blanks included.

# %% [markdown]
# ## 4 · What a real one does
#
# Give it capitals, numbers, code, another language. In the notebook you can type, your name for example.

# %%
explore(
    figures.token_colours,
    text="Aragorn instructed Frodo to mind Lothlorien. instructed, 12345678, naïve",
    vocabulary=[256, 512, 1024, 2048],
)

# %% [markdown]
# A sentence from a lecture, *Aragorn instructed Frodo to mind Lothlorien.*, has 13 tokens in GPT-2, in GPT-4 and in GPT-4o alike. GPT-4's are
#
# > A·rag·orn· instructed· Fro·do· to· mind· Lo·th·lor·ien·.
#
# (The published vocabularies are too large to ship. Their numbers here were counted in November 2026; `lmcourse/data/recorded_tokens.py` says how.)

# %%
predict("a_blank_in_front")

# %% [markdown]
# With a capital, in quotes, or at the start of a line, a word is another string, and is cut into pieces. " strawberry" is one token of GPT-4, "strawberry" three, str·aw·berry, and in neither does the model see an r. A model that can spell has learned the spelling of each token by heart.
#
# Numbers are worse. GPT-2 cuts 2023 into 20·23, and 12345678 into 123·45·678, because these pieces happened to be common: of the numbers 0 to 999, 819 have a token of their own and 181 do not. How should it learn to add? GPT-4 cuts every three digits, from the left: 1234567 is 123·456·7. Carrying goes from the right; Singh and Strouse (2024) show that models add better when the digits are grouped from there.
#
# ### Your tokenizer, in their file
#
# How do you know that your merges are right? Compare with a program by other authors. Hugging Face's `tokenizers` keeps a tokenizer in a file, tokenizer.json, which most tools can read. Write yours into one, let their library open it, and compare:

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "my_tokenizer.json"
    save_tokenizer(my_tokenizer, path)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    theirs.save(str(path))
    again = open_tokenizer(path)

samples = [text, "naïve 東京 😀 12345678", "  two blanks\n\tand a tab "]
for each in samples:
    mine, found = my_tokenizer.encode(each), theirs.encode(each).ids
    equal = sum(a == b for a, b in zip(mine, found, strict=False))
    back = theirs.decode(mine)
    print(f"{each[:16]!r:22} {len(mine):6,} tokens are yours, {len(found):6,} theirs, {equal:6,} equal; decoded {len(back):6,} of {len(each):6,} characters")
print(f"and the file that they saved has {len(again.merges)} merges, as yours has {len(my_merges)}")

# %% [markdown]
# Two things happen before any merge. The **pre-tokenizer** cuts the text into words, each with its blank in front; where does the first of two blanks go? And a **special token** is a number that no merge makes, such as the one that ends a document. A program gives it, not a text. But what if a user types its name?

# %%
for each in ("two blanks", "  two blanks", "don't pay 12345!"):
    print(f"{each!r:20} {split_words(each)}")
theirs.add_special_tokens(["<|endoftext|>"])
prompt = "the end<|endoftext|>"
print("as text:   ", " | ".join(my_tokenizer.decode([token]) for token in my_tokenizer.encode(prompt)))
print("as a token:", " | ".join(theirs.encode(prompt).tokens).replace("Ġ", " "), f"(number {theirs.token_to_id('<|endoftext|>')})")

# %% [markdown]
# With the second program, a user ends the document from inside a prompt, and a page from the web does so in the training text. Most libraries let you choose.
#
# Keep yours, if you like: `save_tokenizer(my_tokenizer, Path("my_tokenizer.json"))`. Later notebooks can open it with `open_tokenizer`, and `lmcourse train --tokenizer my_tokenizer.json` trains a model that reads with it.
#
# ### How many tokens is a word?
#
# > **Spot the slip.** A colleague writes: "A token is about three quarters of a word; a word has 1.3 tokens." With which vocabulary, and for which text?

# %%
largest = BPETokenizer.train([text], 5000)
bytes_per_token = {}
for size in (256, 512, 1024, 2048, largest.vocab_size):
    count = len(BPETokenizer(largest.merges[: size - 256]).encode(text))
    bytes_per_token[size] = len(text.encode()) / count
    print(f"{size:6,} tokens: {count / len(words):.2f} per word, {bytes_per_token[size]:.2f} bytes each")

# %% [markdown]
# At 2,978 tokens there is no pair left that occurs twice. That gives 1.43 tokens a word, on the text it was trained on. Vocabularies of 50,000 and more reach 1.3, in English prose.

# %%
figures.vocabulary_trade(bytes_per_token)

# %% [markdown]
# ## 5 · A number is a row
#
# What does the model do with token 1,042? It takes row 1,042 of a matrix $W_{\text{embed}}$ of shape $(|V|, d)$. As in notebook 05, that is a product with a *one-hot* vector:

# %%
torch.manual_seed(0)
W_embed = torch.randn(5, 3)
tokens = torch.tensor([4, 0, 4])
one_hot = F.one_hot(tokens, 5).float()
print("largest difference of product and rows:", (one_hot @ W_embed - W_embed[tokens]).abs().max().item())
try:
    W_embed[torch.tensor([1, 2, 3, 4, 5])]
except IndexError as error:
    print("IndexError:", error)

# %% [markdown]
# Rows count from 0 to $|V| - 1$. With tokens numbered from 1, the last token is an error and the first row is never used.
#
# ### Tokens that never come
#
# Unused rows are common. The tokenizer is trained on one text, the model on another, and some tokens occur only in the first. What happens to their rows?

# %%
predict("unseen_row")

# %% [markdown]
# Try it: a small network guesses the next byte of our stories from the last three. Of 256 bytes the stories have 53. Without weight decay, three seeds, and with it:

# %%
story_bytes = torch.tensor(list("\n\n".join(stories(60)).encode()))
came = torch.zeros(256, dtype=torch.bool)
came[story_bytes] = True


def train_on_stories(decay: float, seed: int, steps: int = 500) -> tuple[Tensor, Tensor, Tensor, list[float]]:
    """Return input rows before and after, output rows, and the probability of absent bytes in the first and last step."""
    torch.manual_seed(seed)
    embedding, hidden, output = nn.Embedding(256, 16), nn.Linear(48, 64), nn.Linear(64, 256, bias=False)
    before, shares = embedding.weight.detach().clone(), []
    weights = [*embedding.parameters(), *hidden.parameters(), *output.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=3e-3, weight_decay=decay, fused=True)
    for step in range(steps):
        at = torch.randint(len(story_bytes) - 3, (64,))
        scores = output(hidden(embedding(story_bytes[at[:, None] + torch.arange(3)]).flatten(1)).tanh())
        if step in (0, steps - 1):
            shares.append(scores.softmax(dim=1)[:, ~came].sum(dim=1).mean().item())
        optimizer.zero_grad()
        F.cross_entropy(scores, story_bytes[at + 3]).backward()
        optimizer.step()
    return before, embedding.weight.detach(), output.weight.detach(), shares


rows = {(decay, seed): train_on_stories(decay, seed) for decay in (0.0, 0.1) for seed in range(3 if decay == 0 else 1)}
for (decay, seed), (before, after, _, shares) in rows.items():
    ratio = (after[~came].norm(dim=1) / before[~came].norm(dim=1)).mean().item()
    moved = (after[~came] - before[~came]).abs().max().item()
    print(f"decay {decay}, seed {seed}: largest change {moved:.1g}   length × {ratio:.4f}   their probability {shares[0]:.2f} → {shares[1]:.2f}")
print(f"(1 − 0.003 · 0.1)^500 = {(1 - 3e-3 * 0.1) ** 500:.4f}")

# %% [markdown]
# Without decay the rows are unchanged to the bit: they still hold their first random numbers. With decay they shrink by the power in the last line, because no gradient acts against it. If a user now types such a token, the network reads noise. This has happened: " SolidGoldMagikarp" is token 43,453 of GPT-2, and models that were asked to repeat it insulted the user or spoke of something else (Rumbelow and Watkins, 2023). It was the name of a very busy user of a forum that was in the *tokenizer's* training text.
#
# The *output* rows show more. Every step raises the score of the token that came and lowers all other scores. The rows of tokens that never come are only ever lowered, all in the same direction, so in the end they point the same way. And some bytes can never come: C0, C1, and F5 to FF, thirteen in all, occur in no UTF-8 text. Take the mean of their rows as a reference, and measure the cosine of each other row with it:

# %%
never_utf8 = [0xC0, 0xC1, *range(0xF5, 0x100)]


def similarity_to_unused(output: Tensor) -> Tensor:
    """Return the cosine of each output row with the mean of the thirteen rows that no text can train."""
    directions = F.normalize(output, dim=1)
    return directions @ F.normalize(directions[never_utf8].mean(dim=0), dim=0)


others = ~came
others[never_utf8] = False
for (decay, seed), (_, _, output, _) in rows.items():
    cosine = similarity_to_unused(output)
    print(
        f"decay {decay}, seed {seed}: above 0.75 are {int((cosine[others] > 0.75).sum())} of {int(others.sum())} that never came (lowest {cosine[others].min():.1f}) "
        f"and {int((cosine[came] > 0.75).sum())} of {int(came.sum())} that came (highest {cosine[came].max():.1f})"
    )
cosine = similarity_to_unused(rows[0.0, 0][2])
figures.output_rows({"bytes that came": cosine[came].tolist(), "others that never came": cosine[others].tolist()})

# %% [markdown]
# With every seed, this finds all bytes that never came and no other, without a look at the training text. Land and Bartolo (2024) search published models in this way, and find such tokens in most of them.

# %% [markdown]
# ## 6 · Longer tokens, better model?

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
    print(
        f"{size} tokens: perplexity {perplexities[size][0]:5.1f} and {perplexities[size][1]:4.2f},  "
        f"bits per byte {bits[0]:.2f} and {bits[1]:.2f}"
    )

# %% [markdown]
# (Training stops at 571 tokens: the language of the stories is small.) By perplexity, the unigrams of 400 tokens are four times as bad as those of bytes. By bits per byte (notebook 05) they are twice as good, and that is the fair comparison. *Never compare losses per token across tokenizers.*
#
# Then why not a million tokens? Each is a row of the embedding and a row of the output, to be stored, multiplied and above all *trained*, and the rare ones seldom come. Section 5 has shown what becomes of such rows.
#
# **In real models.** GPT-2: 50,257 = 256 bytes + 50,000 merges + 1 for the end of a text. Llama 2: 32,000; Llama 3: 128,256; Gemma 3: 262,144, padded to 262,208 in the larger models. Of GPT-2's tokens, 344 are no valid UTF-8 by themselves: pieces of characters.

# %% [markdown]
# ## 7 · Who pays?
#
# A user pays per token, waits per token, and has a context that is measured in tokens. Here is one text that exists in nearly every language, article 1 of the Universal Declaration of Human Rights (1948): *All human beings are born free and equal in dignity and rights. They are endowed with reason …*

# %%
print(f"{'':9} {'characters':>10} {'GPT-2':>6} {'GPT-4':>6} {'GPT-4o':>6}")


def print_row(language: str) -> None:
    """Print the characters and the tokens of article 1 in a language."""
    counts = [table[language] for table in SENTENCE_TOKENS.values()]
    print(f"{language:9} {SENTENCE_CHARACTERS[language]:10} {counts[0]:6} {counts[1]:6} {counts[2]:6}")


for language in SENTENCE_CHARACTERS:
    if language != "English":
        print_row(language)

# %% [markdown]
# A student asks: *do multilingual vocabularies help English, too?*

# %%
predict("what_english_gains")

# %%
print_row("English")

# %% [markdown]
# Not here: 33, 33 and 33, although GPT-4o's table is twice GPT-4's and four times GPT-2's. The larger table helps the other languages, and every user pays for it: in each model, two more rows for every token of the table.

# %%
explore(figures.sentence_price, base=["English", "Chinese", "Hindi", "Burmese"])

# %% [markdown]
# A reader of Burmese paid 22 times the English price with GPT-2, 15.5 times with GPT-4, and still pays four times with GPT-4o. Petrov et al. (2023) and Ahia et al. (2023) measured it over many languages: the same text differs in length by up to 15 times.

# %% [markdown]
# ## 8 · Windows
#
# From here on a text is a long row of integers. A model reads windows of it: a batch has shape $(B, S)$, inputs $x$ and targets $y$, and the targets are the same text one later:
#
# $$y_{b,s} = x_{b,s+1}.$$
#
# How many windows of $S$ are there in $n$ tokens? A window needs $S$ inputs and one more token for its last target. By hand, $n = 5$ and $S = 2$: windows can begin at 0, 1 and 2, so at $n - S$ places. Side by side, without overlap, there are $\lfloor (n-1)/S \rfloor = 2$.
#
# ### Exercise 7 · Windows  (3 points · 7 min · ●●)
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
check(batch_at)
### BEGIN HIDDEN TESTS
check(batch_at, hidden=True)
### END HIDDEN TESTS


# %% [markdown]
# How much does the model see where? At position $s$, counted from zero, it sees tokens $0 \dots s$: $s + 1$ of them. So a window of $S$ tokens is $S$ examples with $S$ lengths of context, and the mean hides it.

# %%
predict("first_position")

# %% [markdown]
# A model by counting shows it without training. It knows how often each byte followed each context of up to eight bytes, and mixes the lengths (long contexts count more the more often they were seen). Windows of 16, on stories that it has not counted:

# %%
def count_contexts(read: bytes, longest: int = 8) -> dict[bytes, Counter]:
    """How often each byte followed each context of 0 to `longest` bytes."""
    found = defaultdict(Counter)
    for at in range(len(read)):
        for length in range(min(at, longest) + 1):
            found[read[at - length : at]][read[at]] += 1
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
    losses = [0.0] * window
    full = 0.0
    for begin in starts:
        for s in range(window):
            at = begin + s + 1
            losses[s] -= math.log(probability(counts, unseen[begin:at], unseen[at])) / len(starts)
            full -= math.log(probability(counts, unseen[at - 8 : at], unseen[at])) / len(starts) / window
    return losses, full


by_position, full = losses_by_position(0)
figures.loss_by_position(by_position, full)

# %% [markdown]
# The first bytes of a window cost several times the later ones. Over the whole window the mean is about 0.14 nats above what the same model does with full context. So the same model has a lower loss with longer windows. Compare losses at equal windows, or slide the window and count its last position only.

# %% [markdown]
# ## 9 · From disk
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
# Here is a reader that does what a reader can. (What was cut off in writing stays lost, and with a wrong width it still reads wrong numbers.) First find the line for each accident that it prevents.

# %%
def read_tokens(path: str, first: int, count: int, bytes_each: int) -> Int[Tensor, "count"]:
    """Return `count` tokens of a raw file, from token number `first` on."""
    held = Path(path).stat().st_size // bytes_each
    if bytes_each not in (2, 4) or not 0 <= first <= first + count <= held:
        raise ValueError(f"the file has {held} tokens of {bytes_each} bytes")
    text = np.memmap(path, dtype=f"<u{bytes_each}", mode="r")
    return torch.from_numpy(text[first : first + count].astype(np.int64))


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "tokens.bin"
    np.array([1, 256, 40_000, 4], dtype="<u2").tofile(path)
    crop = read_tokens(str(path), 1, 2, 2)
    crop[0] = 99
    print("crop", crop.tolist(), "and the file as it was:", read_tokens(str(path), 0, 4, 2).tolist())
    try:
        read_tokens(str(path), 3, 2, 2)
    except ValueError as error:
        print("ValueError:", error)

# %% [markdown]
# A map costs nothing until it is touched. Watch the memory that Python and NumPy take, with a file of 64 MiB:

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "tokens.bin"
    np.zeros(2**25, dtype=np.uint16).tofile(path)
    peaks = {}
    for name, read in {
        "open the map": lambda: np.memmap(path, "<u2", mode="r"),
        "64 crops of 256": lambda: [np.memmap(path, "<u2", mode="r")[i * 1000 :][:256].astype(np.int64) for i in range(64)],
        "read the file": lambda: np.fromfile(path, "<u2"),
    }.items():
        tracemalloc.start()
        kept = read()
        peaks[name] = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        del kept
        print(f"{name:16} {'below 1' if peaks[name] < 1 else f'{peaks[name]:.0f}'} MiB")

# %% [markdown]
# The package's `TokenFile` begins with a header: a magic word, the width, the count, the size of the vocabulary and the tokenizer itself. So a wrong file gives an error that names the problem, not noise. (nanoGPT keeps raw uint16, and opens its map anew for each batch, because pages that were touched count as the process's memory for as long as the map is open.)

# %% [markdown]
# ## 10 · Never wait
#
# A GPU computes, and its next batch is in main memory. The copy takes time, too. Must the GPU wait for it? A copy can run during the computation if it starts from *pinned* memory, which the operating system promises not to move. Ordinary, *pageable* memory may be swapped out at any moment, so the driver first copies it to a pinned place of its own: two copies, and the program waits for the first. In PyTorch:
#
#     batch = batch.pin_memory()                    # on a machine with an accelerator only: else a RuntimeError
#     batch = batch.to("cuda", non_blocking=True)   # returns at once
#
# ### Exercise 8 · Two copies  (1 point · 4 min · ●)
#
# A batch of `size` bytes is ready in main memory. Copies inside main memory run at `host` bytes per second, copies over the bus to the device at `link`. You order the copy with `non_blocking=True`. Return two times in seconds from then on: when your program continues, and when the batch is on the device. Let the copies run one after the other. (A real driver copies in pieces, so that they overlap in part.)

# %% exercise="copy_seconds"
def copy_seconds(size: float, host: float, link: float, pinned: bool) -> tuple[float, float]:
    """Return when the program continues, and when the batch is on the device."""
    ### BEGIN SOLUTION
    waits = 0.0 if pinned else size / host
    return waits, waits + size / link
    ### END SOLUTION


# %% check="copy_seconds"
check(copy_seconds)
### BEGIN HIDDEN TESTS
check(copy_seconds, hidden=True)
### END HIDDEN TESTS


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
# And now the loop: order the copy of the *next* batch before you train on this one. A colleague's loop orders it only `if i + 2 != len(loader)`, and runs without an error. Which batches are trained on? Choose the loop in the picture, and change the times until the *copy* decides. Then take pageable memory: which loop loses more?

# %%
explore(figures.prefetch_timeline, copy=[4.0, 10.0, 20.0], compute=[5.0, 10.0, 20.0], loop=list(LOOPS), memory=list(MEMORY))

# %% [markdown]
# With six batches it trains on 0 1 2 3 4 4; with two on 0 0; with one it stops with an error. The loss does not show it. And from pageable memory both other loops lose the same time: nothing hides a copy that the program waits for.

# %%
for copy_time, staging in ((2.0, 0.0), (12.0, 0.0), (2.0, 2.0)):
    ends = {name: LOOPS[name](copy_time, 10.0, 100, staging)[1][-1].end for name in ("copy, then train", "one ahead")}
    memory = "pageable" if staging else "pinned"
    print(f"100 batches, step 10 ms, copy {copy_time:g} ms, {memory}:", ", ".join(f"{name} {end:,.0f} ms" for name, end in ends.items()))

# %% [markdown]
# ### Exercise 9 · One batch ahead  (3 points · 8 min · ●●)
#
# Write the loop. `loader` gives the batches, one after the other: it may be any iterable, can be gone through once, and may not know how many there are. `copy(batch)` starts a copy and returns it; `train(copied)` trains on it. Copy each batch once and train on each copy once, in order. Start the copy of batch $i + 1$ *before* you train on batch $i$, but no earlier. No batches are no error. A batch may be 0 or an empty list, but not `None`. Return nothing. If `copy` or `train` raises an error, do not catch it.

# %% exercise="train_ahead"
def train_ahead(
    loader: Iterable[Any], copy: Callable[[Any], Any], train: Callable[[Any], None]
) -> None:
    """Train on the copy of every batch, and order the next copy before each step."""
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
check(train_ahead)
### BEGIN HIDDEN TESTS
check(train_ahead, hidden=True)
### END HIDDEN TESTS


# %% [markdown]
# ## 11 · The same tomorrow
#
# A run that cannot be repeated cannot be debugged. Seeding torch, NumPy and Python's `random` is a start. But the workers of a data loader have generators, too, some kernels add in another order each time, and, most often, other code draws from the same generator as you:

# %%
def two_draws(other_code_draws: bool) -> Tensor:
    """Draw two numbers from the generator that all code shares."""
    torch.manual_seed(0)
    if other_code_draws:
        torch.rand(1)  # a new layer is made, a picture is cropped
    return torch.rand(2)


for other_code_draws in (False, True):
    print([round(number, 3) for number in two_draws(other_code_draws).tolist()])

# %% [markdown]
# ### Exercise 10 · Your own generator  (2 points · 5 min · ●)
#
# Return the numbers that `torch.rand(count)` gives to a generator which was just seeded with `seed`, always the same for the same seed, whatever was drawn before. And leave no trace: torch, NumPy and Python's `random` draw the same numbers after your call as they would without it.

# %% exercise="own_numbers"
def own_numbers(seed: int, count: int) -> Float[Tensor, "count"]:
    """Return `count` uniform numbers that depend on the seed alone."""
    ### BEGIN SOLUTION
    return torch.rand(count, generator=torch.Generator().manual_seed(seed))
    ### END SOLUTION


# %% check="own_numbers"
check(own_numbers)
### BEGIN HIDDEN TESTS
check(own_numbers, hidden=True)
### END HIDDEN TESTS


# %% [markdown]
# ### All of it together
#
# Text → tokens → file → shuffled windows → batches: the package's `Loader` has its own seed, a thread that makes batches ahead, pinned memory where there is a GPU, and a `state_dict` from which a stopped run resumes. Three tests. Is every window read once in an epoch? Does the same seed give the same batches? Does a resumed run read what it would have read?

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "text.tokens"
    write_tokens(path, [my_tokenizer.encode(text)], my_tokenizer.vocab_size, my_tokenizer.to_json())
    with TokenFile(path) as tokens_on_disk:

        def loader(seed: int = 1) -> Loader:
            """Batches of 4 windows of 64."""
            return Loader(tokens_on_disk, batch=4, seq_len=64, seed=seed)

        with loader() as one, loader() as same, loader(2) as other, loader() as resumed:
            windows = one.order.per_epoch
            batches = list(islice(one, windows // 4))
            first = torch.cat([batch.inputs for batch in batches])
            print("windows read twice:", windows // 4 * 4 - len(first.unique(dim=0)))
            for name, again_read in {"the same seed": same, "another seed": other}.items():
                equal = sum(torch.equal(a.inputs, b.inputs) for a, b in zip(batches, again_read, strict=False))
                print(f"{name}: {equal} of {len(batches)} batches are the same")
            for _ in islice(resumed, 10):
                pass
            position = resumed.state_dict()
        with loader() as resumed:
            resumed.load_state_dict(position)
            rest = list(islice(resumed, len(batches) - 10))
            equal = sum(torch.equal(a.inputs, b.inputs) for a, b in zip(batches[10:], rest, strict=True))
            print(f"resumed after 10 batches: {equal} of the other {len(rest)} are the same")

# %% [markdown]
# **In real models.** Before PyTorch 1.9, on Linux, all workers of a `DataLoader` drew the *same* numbers from NumPy, so that every worker augmented its pictures in the same way. And decide what a user may type: `tiktoken`'s `encode` rejects `<|endoftext|>` in a prompt, `encode_ordinary` cuts it into seven harmless tokens, and if you allow it, it becomes the one token that ends a document.

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what is a token? | bytes that often occur together, found by merging the commonest pair again and again |
# | how is a word read? | by the merges, in the order in which they were learned; not longest first, not fewest tokens |
# | why does "strawberry" have no r? | the model sees numbers of tokens; spelling has to be learned for each |
# | which tokenizer is better? | compare bits per byte, never perplexity per token |
# | what about tokens that never come? | input rows keep their first random numbers, output rows all point the same way |
# | what does a language pay? | more, the less of it the tokenizer was trained on: up to 22 times the English price here |
# | a window of $S$? | $S + 1$ tokens; the targets are the inputs one later; position $s$ sees $s + 1$ |
# | a file of tokens? | mapped with mode "r", its width and byte order known, a copy of what you need |
# | loading in time? | order the next copy before you train; the longer of copy and step decides |
# | the same tomorrow? | your own generator, and a state that can be saved |
#
# ## Check yourself
#
# 1. Two tokenizers of 50,000 tokens give 1.30 and 1.35 tokens a word on your text. Which one makes the better model?
# 2. Why does a merge of a pair that occurs once help so little?
# 3. You add 1,000 tokens to a trained model's vocabulary for a new subject. What do their rows look like, and what do you do about it?
# 4. Your colleague's loss is 0.1 lower than yours; they train with windows of 4,096, you with 256. What do you ask them for?
# 5. `encode(a) + encode(b) == encode(a + b)`: when does it hold?
# 6. Copying takes 3 ms, training 10. Does a second batch ahead help?
#
# <details><summary>Answers</summary>
#
# 1. The length alone does not decide it. Train both and compare bits per byte.
# 2. It shortens one place by one token, and its row is trained by that one place.
# 3. Random, and untrained: start them from something sensible (the mean of the rows of the tokens that they replace), and train on texts that have them.
# 4. For the loss at equal windows, or by position: theirs has far fewer tokens near the start of a window.
# 5. When the cut is at a border of words, such as before a blank: no merge reaches across it.
# 6. Not if every copy takes 3 ms. It helps where times vary: then an occasional slow copy has the time of two steps.
#
# </details>
#
# ## Further reading
#
# - Gage, 1994, *A new algorithm for data compression*; Sennrich, Haddow and Birch, 2016, *Neural machine translation of rare words with subword units*; Radford et al., 2019, *Language models are unsupervised multitask learners*, section 2.2; Kudo, 2018, *Subword regularization*, which has Unigram.
# - Petrov et al., 2023, *Language model tokenizers introduce unfairness between languages*; Ahia et al., 2023, *Do all languages cost the same?*
# - Rumbelow and Watkins, 2023, *SolidGoldMagikarp*; Land and Bartolo, 2024, *Fishing for Magikarp*.
# - Singh and Strouse, 2024, *Tokenization counts: the impact of tokenization on arithmetic in frontier LLMs*.
# - In this package: `lmcourse/data/tokenizers/bpe.py`, byte pairs to be read; `lmcourse/data/loader.py` and `token_file.py`, the second half.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you like.)

# %% tags=["hide-input"]
assert round(len(text.encode()), -3) == 98_000 and round(len(text.encode()) / len(words), 1) == 5.5
assert different_after(words)[-1] == len(set(words)) and 0.05 < sum(word not in known for word in later) / len(later) < 0.15
assert [len(letter.encode()) for letter in "é人😀"] == [2, 3, 4] and ByteTokenizer().vocab_size == 256
toy = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
toy_pairs = Counter()
for word, times in toy.items():
    for left, right in pairwise(word):
        toy_pairs[left + right] += times
assert toy_pairs["es"] == toy_pairs["st"] == 9 == max(toy_pairs.values())
assert my_merges == learn_merges([text], 256) and [my_tokenizer.decode([256 + i]) for i in range(3)] == [" t", " a", "he"]
assert len(word_counts) == 2804 and visits_needed(word_counts, package_merges[:256]) == 7318 and len(package_merges) == 2722
assert visits_needed(word_counts, package_merges) == 12_691
assert 0.003 < extra / total < 0.004 and all(0.6 < share < 0.8 for share in cuts)
assert fewest_tokens(b" higher", pieces, longest) < len(tokenizer.encode(" higher"))
assert largest.vocab_size == 2978 and round(len(largest.encode(text)) / len(words), 2) == 1.43
assert sum(came).item() == 53 and len(never_utf8) == 13 and 50_257 == 256 + 50_000 + 1
for seed in range(3):
    before, after, output, (begin, end) = rows[0.0, seed]
    assert torch.equal(before[~came], after[~came]) and begin > 0.7 and end < 0.01
    cosine = similarity_to_unused(output)
    assert cosine[~came].min() > 0.85 and cosine[came].max() < 0.7
before, after, _, _ = rows[0.1, 0]
assert torch.allclose(after[~came], before[~came] * (1 - 3e-3 * 0.1) ** 500, rtol=1e-4)
assert story_tokenizer.vocab_size == 571 and 3.9 < perplexities[400][0] / perplexities[256][0] < 4.3
assert 1.9 < bits_per_byte[256][0] / bits_per_byte[400][0] < 2.1
assert all(table["English"] == 33 for table in SENTENCE_TOKENS.values())
burmese = [table["Burmese"] / table["English"] for table in SENTENCE_TOKENS.values()]
assert [round(price, 1) for price in burmese] == [22.0, 15.5, 4.1]
for seed in range(4):
    by_position, full = losses_by_position(seed)
    assert 4 < by_position[0] / by_position[7] < 6 and by_position[0] > 1.9 * by_position[1]
    assert 0.13 < sum(by_position) / 16 - full < 0.15
assert [(n - s, (n - 1) // s) for n, s in ((5, 2),)] == [(3, 2)]
assert [work.batch for work in LOOPS["i + 2"](4, 10, 6)[1]] == [0, 1, 2, 3, 4, 4] and [w.batch for w in LOOPS["i + 2"](4, 10, 2)[1]] == [0, 0]
assert peaks["open the map"] < 1 and peaks["64 crops of 256"] < 1 and round(peaks["read the file"]) == 64
