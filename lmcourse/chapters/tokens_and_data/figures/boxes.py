"""Tokens as coloured boxes: a text split by a vocabulary, and a text during merges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from lmcourse.data.corpora import find_corpus
from lmcourse.data.tokenizers.bpe import BPETokenizer, learn_merges
from lmcourse.data.tokenizers.pre_tokenizer import split_words
from lmcourse.plots import stops
from lmcourse.plots.style import GREY, LAST_DRAWN, PALETTE, describe, new_axes, new_drawing_axes, new_figure

MAX_VOCABULARY = 2048
MAX_BYTES = 300
"""Largest number of bytes of a text that are drawn."""

_COLUMNS = 84
_LINE = 1.6
_FILLS = ("#CCDDEE", "#FFEEBB", "#CCEEDD", "#FFDDEE")  # multiples of LEVEL in site/frames.py, kept as they are
_BLANKS = {" ": "·", "\n": "↵", "\t": "→"}
_TIMES = "\u00d7 "
"""Pattern of text before a count, which gets no box."""


@lru_cache(maxsize=1)
def _largest() -> BPETokenizer:
    return BPETokenizer.train(find_corpus("course-text").texts(), MAX_VOCABULARY)


def course_tokenizer(vocabulary: int) -> BPETokenizer:
    """The tokenizer of this size, learned from the course's own text.

    Raises:
        ValueError: `vocabulary` is below 256, the number of bytes, or above 2,048.
    """
    if not 256 <= vocabulary <= MAX_VOCABULARY:
        raise ValueError(f"vocabulary must be from 256 to {MAX_VOCABULARY} tokens, not {vocabulary}")
    return BPETokenizer(_largest().merges[: vocabulary - 256])


def shown(raw: bytes) -> str:
    """A token as text for a drawing: · for a space, ↵ for a new line, and bytes where there is no letter."""
    text = raw.decode(errors="replace")
    if any(letter > LAST_DRAWN or (not letter.isprintable() and letter not in _BLANKS) for letter in text):
        return " ".join(f"{byte:02X}" for byte in raw)
    return "".join(_BLANKS.get(letter, letter) for letter in text)


def _beginning(text: str) -> str:
    return text.encode(errors="replace")[:MAX_BYTES].decode(errors="ignore")


def _cut(text: str) -> str:
    """Return the caption's note on a text that is longer than its drawing."""
    return f" Drawn are its first {MAX_BYTES} bytes." if _beginning(text) != text else ""


def _boxes(axes: Axes, pieces: Sequence[str], breaks: Sequence[int] = ()) -> int:
    """Draw the pieces in lines, with a wider gap before the pieces at `breaks`; return the number of lines."""
    column = line = 0.0
    for index, piece in enumerate(pieces):
        column += 1.0 if index in breaks else 0.0
        width = min(len(piece), _COLUMNS) + 0.5
        if column + width > _COLUMNS:
            column, line = 0.0, line + _LINE
        fill = "none" if piece.startswith(_TIMES) else _FILLS[index % 4]
        axes.add_patch(Rectangle((column, -line - 0.55), width - 0.08, 1.2, facecolor=fill, edgecolor="white"))
        text = piece[: _COLUMNS - 1]
        axes.text(column + width / 2, -line, text, ha="center", va="center", fontsize=10, family="monospace")
        column += width
    axes.set_xlim(0, _COLUMNS)
    axes.set_ylim(-line - 1, 1)
    return round(line / _LINE) + 1


@stops(text=("def softmax(x): return x.exp() / x.exp().sum()", "Übermut tut selten gut. 今日は"))
def token_colours(
    text: str = "Aragorn instructed Frodo to mind Lothlorien. instructed, 12345678, naïve", vocabulary: int = 1024
) -> Figure:
    """A text in tokens of the course's own byte pairs, one box each.

    Args:
        text: its first 300 bytes are drawn.
        vocabulary: the number of different tokens, 256 to 2,048.
    """
    tokenizer = course_tokenizer(vocabulary)
    part = _beginning(text)
    pieces = [shown(tokenizer.token_bytes[token]) for token in tokenizer.encode(part)]
    figure = new_figure(8.0, 1.5 + 0.28 * (1 + sum(map(len, pieces)) * 1.3 // _COLUMNS))
    words = len(part.split())
    axes = new_drawing_axes(figure, f"{len(pieces)} tokens, {len(part)} characters, {words} words")
    _boxes(axes, pieces)
    caption = (
        f"A vocabulary of {vocabulary:,} tokens, learned from 98 kB of this course's own prose. · is a space. Two "
        "hexadecimal digits are a byte that is not a letter by itself." + _cut(text)
    )
    told = " | ".join(pieces[:60])
    return describe(figure, caption=caption, alt=f"{len(pieces)} tokens of a vocabulary of {vocabulary}: {told}")


@stops(text=("she sells sea shells by the sea shore",))
def merge_steps(text: str = "low " * 5 + "lower " * 2 + "newest " * 6 + "widest " * 3, step: int = 0) -> Figure:
    """The words of a text after some merges, and the number of times that each pair of neighbours occurs.

    Args:
        text: the text to merge and count.
        step: the number of merges.
    """
    times = Counter(word.strip() for word in split_words(_beginning(text)) if word.strip())
    merges = learn_merges([word for word, count in times.items() for _ in range(count)], step)
    tokenizer = BPETokenizer(merges)
    words = {word: tokenizer.encode(word) for word in times}
    pieces: list[str] = []
    breaks: list[int] = []
    for word, tokens in words.items():
        breaks.append(len(pieces))
        pieces += [*(shown(tokenizer.token_bytes[token]) for token in tokens), f"{_TIMES}{times[word]}"]
    figure = new_figure(8.0, 4.4)
    grid = figure.add_gridspec(2, 1, height_ratios=(2, 3))
    total = sum(len(tokens) * times[word] for word, tokens in words.items())
    axes = new_drawing_axes(figure, f"After {len(merges)} {'merge' if len(merges) == 1 else 'merges'}: {total} tokens")
    axes.set_subplotspec(grid[0])
    _boxes(axes, pieces, breaks)
    counts: Counter[tuple[int, int]] = Counter()
    for word, tokens in words.items():
        for pair in pairwise(tokens):
            counts[pair] += times[word]
    best = sorted(counts, key=lambda pair: (-counts[pair], pair))[:7]
    names = ["+".join(shown(tokenizer.token_bytes[token]) for token in pair) for pair in best]
    bars = new_axes(figure, "", "how often the pair occurs")
    bars.set_subplotspec(grid[1])
    merged = bool(best) and counts[best[0]] > 1
    colours = [PALETTE["vermilion"] if merged and index == 0 else GREY for index in range(len(best))]
    bars.barh(range(len(best)), [counts[pair] for pair in best], color=colours)
    bars.set_yticks(range(len(best)), names, family="monospace")
    bars.invert_yaxis()
    bars.xaxis.set_major_locator(MaxNLocator(integer=True))
    bars.set_xlim(0, None if best else 1)
    end = f"Merged next: {names[0]}." if merged else "No pair occurs twice: the end."
    caption = (
        f"{end} Of equally common pairs, the one with the smaller numbers is merged. "
        "Each word is drawn once, with its count." + _cut(text)
    )
    found = ", ".join(f"{name} {counts[pair]}" for name, pair in zip(names, best, strict=True))
    return describe(figure, caption=caption, alt=f"After {len(merges)} merges {total} tokens; pairs: {found}. {end}")
