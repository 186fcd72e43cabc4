"""The page `docs/conventions.md`, the package and the texts of the notebooks agree."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from lmcourse.accounting.accelerators import Accelerator, find_accelerator
from lmcourse.accounting.formats import Format
from lmcourse.accounting.latency import compute_bound_tokens
from lmcourse.accounting.recipes import find_recipe
from lmcourse.accounting.step_time import Machines
from lmcourse.course.chapters import Chapter
from lmcourse.exercises.cases import Case
from lmcourse.exercises.registry import all_exercises
from tests.course.chapters import EACH, ROOT, source

PAGE = (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8")
TABLE = {name: cells.split(" | ") for name, cells in re.findall(r"^\| `(.*?)` \| (.*) \|$", PAGE, re.MULTILINE)}
"""The cells of each row of the page's tables, by the row's name."""

RECIPES = [name for name, cells in TABLE.items() if len(cells) == 5]
DEVICES = [name for name, cells in TABLE.items() if len(cells) == 4]

INVENTED = ("the chip reads 1 TB/s", "That is for 2.0 TB/s, whose ridge is 156", "one of 139", "whose ridge is 139")
"""A made-up chip, and slips of the exercises on ridges, which are named as slips."""

COUNTED = {"layer", "head", "pair", "unit"}


def half(device: Accelerator) -> Format:
    return "bf16" if "bf16" in device.peaks else "fp16"


@pytest.mark.parametrize("name", RECIPES)
def test_the_page_has_the_bytes_of_a_recipe(name: str) -> None:
    recipe = find_recipe(name)
    sizes = [recipe.weights, recipe.gradients, recipe.master, recipe.moments, recipe.per_parameter]
    assert TABLE[name] == [str(size) for size in sizes]


@pytest.mark.parametrize("name", DEVICES)
def test_the_page_has_the_numbers_of_a_device(name: str) -> None:
    device = find_accelerator(name)
    number = half(device)
    speeds = [device.peak(number) / 1e12, device.bandwidth / 1e12]
    enough = math.ceil(compute_bound_tokens(8192, device, number))
    assert TABLE[name] == [*(f"{speed:g}" for speed in speeds), f"{device.ridge(number):.0f}", str(enough)]


def test_a_cluster_is_made_of_h100s() -> None:
    h100 = find_accelerator("h100-sxm")
    assert h100.link == 2 * Machines.inside


def package(chapter: Chapter) -> Iterator[tuple[Path, ast.Module]]:
    """Yield all modules of a chapter."""
    for path in sorted((ROOT / "lmcourse" / "chapters" / chapter.topic).rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


@cache
def paragraphs(chapter: Chapter) -> list[str]:
    """Return the paragraphs of the notebook, its lines of code, and all strings of the chapter's package."""
    texts: list[str] = []
    for cell in source(chapter).cells:
        texts += re.split(r"\n\n|\n(?=[|-])" if cell.kind == "markdown" else r"\n", cell.text)
    for _, module in package(chapter):
        texts += [
            node.value for node in ast.walk(module) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
    for text in INVENTED:
        texts = [found.replace(text, "") for found in texts]
    return [" ".join(text.replace("*", "").split()) for text in texts]


def wrong_numbers(text: str) -> list[str]:
    """Return what a paragraph says against the page on bandwidths, ridges, bytes of a parameter, and guessing."""
    speeds, ridges = {TABLE[name][1] for name in DEVICES}, {TABLE[name][2] for name in DEVICES}
    wrong = [f"{speed} TB/s" for speed in re.findall(r"([\d.]+) TB/s", text) if speed not in speeds]
    wrong += [f"a ridge of {ridge}" for ridge in re.findall(r"ridge of (\d+)", text) if ridge not in ridges]
    for sentence in re.split(r"(?<=[.?!]) ", text):
        about = re.search(r"\b16 bytes\b", sentence) and re.search("parameter|mixed", sentence)
        if about and not re.search("fp32|mixed-16-bit-gradients|You count", sentence):
            wrong.append(f"16 bytes without a name: {sentence}")
    guesses = re.findall(r"(?<![/\\])(?<!/ )\\?ln ([1-9]\d*)\$? = ([\d.]*\d)", text)
    return wrong + [
        f"ln {tokens} = {nats}"
        for tokens, nats in guesses
        if f"{math.log(int(tokens)):.{len(nats.partition('.')[2])}f}" != nats
    ]


@EACH
def test_texts_use_the_numbers_of_the_page(chapter: Chapter) -> None:
    assert [wrong for text in paragraphs(chapter) for wrong in wrong_numbers(text)] == []


def test_the_page_has_its_own_numbers() -> None:
    assert wrong_numbers(PAGE) == []


def counts_from_one(node: ast.AST) -> bool:
    """Return True for `layer + 1` in an f-string or in str(), and for `for layer, … in enumerate(…, 1)`."""
    if isinstance(node, ast.FormattedValue) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and node.args
    ):
        shown = node.value if isinstance(node, ast.FormattedValue) else node.args[0]
        return isinstance(shown, ast.BinOp) and ast.unparse(shown) in {f"{name} + 1" for name in COUNTED}
    if isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Tuple):
        start = re.fullmatch(r"enumerate\(.*, (start=)?1\)", ast.unparse(node.iter), re.DOTALL)
        return bool(start) and ast.unparse(node.target.elts[0]) in COUNTED
    return False


@EACH
def test_layers_heads_pairs_and_units_count_from_0(chapter: Chapter) -> None:
    cells = [cell.text for cell in source(chapter).cells if cell.kind == "code" and not cell.text.startswith("%")]
    modules = [*(module for _, module in package(chapter)), ast.parse("\n".join(cells))]
    assert [ast.unparse(node) for module in modules for node in ast.walk(module) if counts_from_one(node)] == []


def test_one_place_holds_the_numbers_of_a_device() -> None:
    """Numbers up to 10¹² are left out: a round 0.9 TB/s can be anything."""
    devices = list(map(find_accelerator, DEVICES))
    known = {number for device in devices for number in (device.peak(half(device)), device.bandwidth) if number > 1e12}
    found = [
        f"{path.name}: {node.value:g}"
        for path in sorted((ROOT / "lmcourse").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value in known
    ]
    assert found == []


def test_seeds_of_open_tasks_start_at_0_and_hidden_ones_follow() -> None:
    def seeds(case: Case) -> list[int]:
        return [*case.kwargs.get("seeds", []), *([case.kwargs["seed"]] if "seed" in case.kwargs else [])]

    tasks = [exercise for exercise in all_exercises().values() if exercise.task is not None]
    found = {task.name: [seed for case in [*task.cases, *task.hidden] for seed in seeds(case)] for task in tasks}
    stated = found.pop("choose")  # its text says why seed 1 is left out
    assert stated == [0, 3, 4]
    assert found == {name: [*range(len(drawn))] for name, drawn in found.items()}
