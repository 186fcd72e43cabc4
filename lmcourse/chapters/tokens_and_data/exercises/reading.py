"""The exercise on reading some tokens of a raw file."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.tokens_and_data.exercises.right_reading import RIGHT_READING
from lmcourse.chapters.tokens_and_data.exercises.wrong_reading import WRONG_READING
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise

_IMPORTS = "import tempfile, struct, pathlib"
_WRITE = "    path = folder + '/data.bin'\n    _ = pathlib.Path(path).write_bytes(struct.pack(kind, *numbers))"


def _reading(name: str, numbers: list[int], kind: str, start: int, count: int, bytes_each: int) -> Case:
    lines = (
        f"{_IMPORTS}\nwith tempfile.TemporaryDirectory() as folder:\n{_WRITE}\n"
        "    tokens = read_tokens(path, start, count, bytes_each)\ntokens"
    )
    inputs = {"numbers": numbers, "kind": kind, "start": start, "count": count, "bytes_each": bytes_each}
    return script(name, lines, **inputs)


def _untouched(name: str, count: int) -> Case:
    lines = (
        f"{_IMPORTS}\nwith tempfile.TemporaryDirectory() as folder:\n{_WRITE}\n"
        f"    first = read_tokens(path, 0, {count}, 2)\n    first[0] = 99\n"
        f"    second = read_tokens(path, 0, {count}, 2)\nfirst\nsecond"
    )
    return script(name, lines, numbers=[1, 2, 3, 4], kind="<4H")


def _dtype(name: str, kind: str, bytes_each: int) -> Case:
    lines = (
        f"{_IMPORTS}, torch\nwith tempfile.TemporaryDirectory() as folder:\n{_WRITE}\n"
        f"    tokens = read_tokens(path, 0, 2, {bytes_each})\ntorch.as_tensor(tokens).dtype"
    )
    return script(name, lines, numbers=[1, 2, 3], kind=kind)


def _peak(name: str, start: int) -> Case:
    """A file of 8 MiB; reading four tokens may not take more than 1 MiB."""
    lines = (
        "import tempfile, tracemalloc, numpy, torch\nwith tempfile.TemporaryDirectory() as folder:\n"
        "    path = folder + '/data.bin'\n    with open(path, 'wb') as file:\n        _ = file.truncate(2**23)\n"
        "    _ = read_tokens(path, 0, 1, 2)\n    tracemalloc.start()\n    try:\n"
        f"        tokens = read_tokens(path, {start}, 4, 2)\n        peak = tracemalloc.get_traced_memory()[1]\n"
        "    finally:\n        tracemalloc.stop()\ntokens\npeak < 2**20"
    )
    return script(name, lines)


def _reference(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """`seek`, `read`, and `struct`."""
    size = Path(path).stat().st_size
    if bytes_each not in (2, 4) or min(start, count) < 0 or (start + count) * bytes_each > size:
        raise ValueError("there are no such tokens")
    with Path(path).open("rb") as file:
        file.seek(start * bytes_each)
        raw = file.read(count * bytes_each)
    return torch.tensor(struct.unpack(f"<{count}{'H' if bytes_each == 2 else 'I'}", raw), dtype=torch.int64)


def _hidden(random: Random) -> list[Case]:
    eight = [3, 1, 4, 1, 5, 9, 2, 6]
    cases = [
        _reading("large tokens", [40_000, 65_535, 0], "<3H", 0, 3, 2),
        _reading("large tokens", [2**31, 2**32 - 1, 70_000], "<3I", 0, 3, 4),
        _reading("no tokens", eight, "<8H", 3, 0, 2),
        _reading("no tokens", eight, "<8H", 8, 0, 2),
        _reading("the whole file", eight, "<8I", 0, 8, 4),
        _reading("the last tokens", eight, "<8H", 6, 2, 2),
        _reading("the last tokens", eight, "<8I", 6, 2, 4),
        _reading("past the end", eight, "<8H", 7, 2, 2),
        _reading("past the end", eight, "<8I", 0, 9, 4),
        _reading("past the end", eight, "<8H", 9, 0, 2),
        _reading("below the start", eight, "<8H", -1, 1, 2),
        _reading("below the start", eight, "<8H", 3, -1, 2),
        _reading("tokens of another size", eight, "<8H", 0, 1, 3),
        _reading("tokens of another size", eight, "<8Q", 0, 1, 8),
        _untouched("the file stays as it is", 3),
        _peak("a large file", 2**21),
        _dtype("the kind of numbers", "<3H", 2),
    ]
    for wide, kind in ((2, "<12H"), (4, "<12I")):
        numbers, start = [random.randrange(2**15, 2**16) for _ in range(12)], random.randint(1, 6)
        cases.append(_reading("other files", numbers, kind, start, random.randint(2, 12 - start), wide))
    return cases


read_tokens = Exercise(
    "read_tokens",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_reference,
    cases=[
        _reading("two bytes each", [1, 256, 40_000, 4], "<4H", 0, 4, 2),
        _reading("four bytes each", [1, 256, 70_000, 4], "<4I", 0, 4, 4),
        _reading("from the middle", [10, 11, 12, 13, 14, 15], "<6H", 2, 3, 2),
        _untouched("is the file as it was?", 2),
        _reading("past the end", [10, 11, 12, 13], "<4H", 2, 3, 2),
        _dtype("what an embedding takes", "<3I", 4),
        _reading("no tokens", [10, 11, 12, 13], "<4H", 1, 0, 2),
        _peak("four tokens of a file of 8 MiB", 2**20),
    ],
    hidden_cases=_hidden,
    hints=[
        "How many bytes lie before the first token? np.memmap(path, dtype, mode, offset) and file.seek count in bytes.",
        'The dtype is "<u2" or "<u4": little end first, unsigned. mode="r" cannot write to the file.',
        "Compare (start + count) · bytes_each with Path(path).stat().st_size first. astype(np.int64) makes a copy, and "
        "torch.from_numpy a tensor of it.",
    ],
    seconds=20.0,
)

read_tokens.equivalent_mutant(
    "held = Path(path).stat().st_size // bytes_each → held = Path(path).stat().st_size / bytes_each",
    "A whole number is at most 3.5 if it is at most 3.",
)
read_tokens.equivalent_mutant(
    "text = np.memmap(path, dtype=f'<u{bytes_each}', mode='r') → text = np.memmap(path, dtype=f'<u{bytes_each}')",
    "The copy never goes back to the file. (One that may only be read would tell, but not under an administrator's "
    "name, as which some graders run.)",
)
read_tokens.equivalent_mutant(
    "return torch.from_numpy(text[start:start + count].astype(np.int64)) → "
    "return text[start:start + count].astype(np.int64)",
    "An array of NumPy counts as a tensor.",
)

for sentence, wrong in WRONG_READING:
    read_tokens.misconception(sentence)(wrong)
for right in RIGHT_READING:
    read_tokens.variant(right)
