"""The open task: one table of merges for the readers of seven languages."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from operator import mul

from lmcourse.chapters.tokens_and_data.everybody import READERS, Pair, inspect_table, measure_table, plain_mix
from lmcourse.chapters.tokens_and_data.exercises.counting import out_and_in as merge_counted
from lmcourse.chapters.tokens_and_data.exercises.training import with_strings as train_bpe
from lmcourse.data.tokenizers.pre_tokenizer import split_words
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.open_task import Band, OpenTask

_TRAINERS = [f"lmcourse.data.tokenizers.{name}" for name in ("bpe", "BPETokenizer", "tokenizer_json")]
_FILES = ["io", "os", "pathlib", "shutil", "subprocess", "numpy.fromfile", "numpy.load", "numpy.memmap", "pickle"]
_WAYS_ROUND = ["sys", "inspect", "gc", "importlib", "pkgutil", "builtins.__import__", "builtins.exec", "builtins.eval"]


def _row(ratio: float, *bill: int) -> dict[str, float]:
    """Return a row of the report: what each reader pays, and the ratio."""
    return {**dict(zip(READERS, bill, strict=True)), "ratio": ratio}


everybodys_table = Exercise(
    "everybodys_table",
    points=5,
    minutes=14,
    difficulty=3,
    reference=plain_mix,
    seconds=60.0,
    cases=[case("letters swapped", seed=0)],
    hints=[
        "What does the dearest reader pay because of the others? Print all bills after a change, not only the ratio.",
        "A word that is counted twice weighs twice: words can be counted by reader, and then added with weights.",
        "The bill so far can be computed while the table grows: times · tokens of each word, for each reader.",
    ],
    forbid=["tokenizers", "tiktoken", "sentencepiece", "babel", *_TRAINERS, *_FILES, *_WAYS_ROUND],
    may_use_package=True,  # split_words
    uses=["merge_counted", "train_bpe", "encode_word"],
    task=OpenTask(
        inspect=inspect_table,
        measure=measure_table,
        baseline={
            "all texts, as they are": _row(1.0, 9463, 10421, 10387, 11282, 10742, 10646, 12253),
            "the English text alone": _row(3.157, 6885, 9735, 24324, 28845, 34083, 33227, 38688),
        },
        finish={"ratio": 0.92},
        bands=[
            Band(1, "a table of merges"),
            Band(1, at_most={"ratio": 1.0}),
            Band(2, at_most={"ratio": 0.96}),
            Band(1, at_most={"ratio": 0.92}),
        ],
        digits=3,
    ),
)


# What these attempts call `merge_counted` and `train_bpe` are the earlier answers of the notebook.


@everybodys_table.idea(5)
def each_merge_for_the_dearest(texts: dict[str, str]) -> list[tuple[int, int]]:
    found = {reader: Counter(split_words(text)) for reader, text in texts.items()}
    words = {reader: [list(word.encode()) for word in of] for reader, of in found.items()}
    times = {reader: list(of.values()) for reader, of in found.items()}
    counts: dict[str, Counter[Pair]] = {reader: Counter() for reader in texts}
    where: dict[str, dict[Pair, set[int]]] = {reader: defaultdict(set) for reader in texts}
    for reader in texts:
        for number, word in enumerate(words[reader]):
            for pair in pairwise(word):
                counts[reader][pair] += times[reader][number]
                where[reader][pair].add(number)
    table: list[Pair] = []
    while len(table) < 256:
        dearest = max(texts, key=lambda reader: sum(map(mul, times[reader], map(len, words[reader]))))
        table.append(min(counts[dearest], key=lambda pair: (-counts[dearest][pair], pair)))
        for reader in texts:
            merge_counted(words[reader], times[reader], counts[reader], where[reader], table[-1], 255 + len(table))
    return table


everybodys_table.slips(
    each_merge_for_the_dearest,
    {
        "< 256 → < 300": "Your table has 300 merges. At most 256 fit into it.",
        "return table → return None": "Return a list of pairs of tokens, not None.",
        "return table → return table[:99] * 2": "Merge 99 of your table makes the same bytes as merge 0.",
        "return table → return [(1092, 32), *table[1:]]": "Merge 0 of your table uses token 1092: before it there are "
        "tokens 0 to 255.",
        "return table → return [511 for pair in table]": "Merge 0 of your table is 511, not a pair of tokens.",
        "return table → texts.popitem()\n    return table": "Your function changes `texts`. Leave the texts as they "
        "are.",
        "return table → return [(left, 32) for left in range(256)]": "Your function returns the same table for other "
        "texts. Learn it from the texts that it is given.",
        "return table → import random\n    return [(random.randrange(256), random.randrange(256))]": "Called again "
        "with the same texts, your function returns another table. Draw and keep nothing.",
    },
)


everybodys_table.edited_ideas(
    each_merge_for_the_dearest,
    {
        "all counted by a power of what they pay": (
            5,
            "dearest = max(texts, key=lambda reader: sum(map(mul, times[reader], map(len, words[reader])))) → pays = "
            "{reader: sum(map(mul, times[reader], map(len, words[reader]))) for reader in texts}\n        score = "
            "Counter()\n        for reader in texts:\n            for pair, many in counts[reader].items():\n"
            "                score[pair] += many * (pays[reader] / max(pays.values())) ** 40 ;; min(counts[dearest], "
            "key=lambda pair: (-counts[dearest][pair], pair)) → max(score, key=score.__getitem__)",
        ),
        "one merge for each in turn": (
            1,
            "max(texts, key=lambda reader: sum(map(mul, times[reader], map(len, words[reader])))) → "
            "list(texts)[len(table) % len(texts)]",
        ),
    },
)


@everybodys_table.idea(2)
def all_texts_as_they_are(texts: dict[str, str]) -> list[tuple[int, int]]:
    return train_bpe(Counter(word for text in texts.values() for word in split_words(text)), 256)


everybodys_table.edited_ideas(
    all_texts_as_they_are,
    {
        "each weighed by its bytes": (4, "split_words(text) → split_words(text) * (len(text.encode()) // 1000)"),
    },
)
