"""Test the package of a learner's answers: the result of each, and that it runs alone like the course's model."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from lmcourse.base.errors import CourseError
from lmcourse.cli import main
from lmcourse.course.chapters import CHAPTERS, find_chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.workers import GradingOptions
from lmcourse.inference.generate import generate
from lmcourse.models.interop import from_hugging_face
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.styles import llama_like
from lmcourse.own_package.modules import PARTS, Collection
from lmcourse.own_package.saved_answers import Answer, printed_notebooks
from lmcourse.own_package.weights import package_config, package_weights
from lmcourse.own_package.write import package_files, write_files, write_package
from lmcourse.pretrained import load_pretrained
from tests.interop.reference import build_reference
from tests.interop.samples import SAMPLES

pytestmark = pytest.mark.prove

WITHOUT_COURSE = "import sys; sys.modules['lmcourse'] = None\n"
"""Code that makes `import lmcourse` fail in a program."""

LOGITS_ERROR = 1e-6
"""Tolerance relative to the largest logit in fp32: each is a sum of a few hundred products with a relative error of
6e-8."""


def check_same(found: Tensor, expected: Tensor) -> None:
    """Check that two models are equal up to rounding: to 1e-5 for logits of up to ten."""
    error = LOGITS_ERROR * max(10.0, expected.abs().max().item())
    torch.testing.assert_close(found, expected, rtol=0, atol=error)


READ_ALL = """
import importlib, json, pathlib, pkgutil
import torch
from safetensors.torch import load_file, save_file
import my_transformer
for found in pkgutil.walk_packages(my_transformer.__path__, "my_transformer."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
from my_transformer.model import load
from my_transformer.parts import PARTS
results = {}
for folder in sorted(pathlib.Path("models").iterdir()):
    model, tokens = load(folder, PARTS), load_file(folder / "tokens")["tokens"]
    with torch.no_grad():
        results[folder.name], results[folder.name + " loss"] = model(tokens), model.loss(tokens)
    results[folder.name + " greedy"] = torch.tensor(model.generate(tokens[0, :5].tolist(), 20))
save_file(results, "results.safetensors")
"""


def alone(folder: Path, code: str, *words: str) -> str:
    """Return the output of a program that runs in a folder without the course."""
    command = [sys.executable, "-c", WITHOUT_COURSE + code, *words]
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_model(folder: Path, model: Transformer, tokens: Tensor) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(package_config(model.config)))
    save_file(package_weights(model), folder / "model.safetensors")
    save_file({"tokens": tokens}, folder / "tokens")


# A learner who has solved everything


@pytest.fixture(scope="module")
def solved(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package of a learner whose answers are the printed solutions."""
    folder = tmp_path_factory.mktemp("solved")
    chapters = list(CHAPTERS)
    printed = printed_notebooks(chapters, course)
    answers = [
        Answer(chapter, exercise.name, "passes")
        for chapter in chapters
        for exercise in exercises_of(chapter)
        if not exercise.value
    ]
    collection = Collection(answers, printed, printed)
    origins = {part.exercise: part for parts in collection.parts.values() for part in parts.values()}
    left_out = {name: part.reason for name, part in origins.items() if not part.origin}
    numbers = {int(answer.chapter.number) for answer in answers if answer.exercise in left_out}
    assert numbers == {7, 10, 11, 13, 14, 15, 17, 18, 20, 22}
    assert all("from lmcourse, but your package must run without lmcourse" in reason for reason in left_out.values())
    assert {answer.exercise for answer in answers} <= origins.keys()
    write_files(package_files("my_transformer", collection), folder / "my_transformer")
    return folder


def models() -> Mapping[str, Transformer]:
    """Four models: the trained one, one with another RoPE base, a smaller one of the zoo, one of transformers."""
    torch.manual_seed(0)
    llama = find_model("llama-3-8b").decoder.layers[0].attention
    heads = {"kv_heads": llama.key_heads // 4, "theta": llama.rotary.theta if llama.rotary else 0.0}
    sample = next(one for one in SAMPLES if one.name == "llama2")
    theirs = from_hugging_face(build_reference(sample))
    assert isinstance(theirs, Transformer)
    return {
        "trained": load_pretrained().model,
        "grouped": Transformer(llama_like(3, 48, 6, 96, vocab_size=80, context=64, kv_heads=2, theta=300.0)).eval(),
        "llama": Transformer(llama_like(2, 64, llama.heads // 4, 96, vocab_size=80, context=64, **heads)).eval(),
        "transformers": theirs,
    }


def test_the_package_runs_without_the_course_and_is_the_same_model(solved: Path) -> None:
    expected = models()
    generator = torch.Generator().manual_seed(1)
    texts = {
        name: torch.randint(2, model.config.vocab_size, (2, 40), generator=generator)
        for name, model in expected.items()
    }
    for name, model in expected.items():
        write_model(solved / "models" / name, model, texts[name])
    alone(solved, READ_ALL)
    found = load_file(solved / "results.safetensors")
    for name, model in expected.items():
        with torch.no_grad():
            logits = model(texts[name])
        check_same(found[name], logits)
        nats = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), texts[name][:, 1:].flatten())
        check_same(found[f"{name} loss"], nats)
        assert found[f"{name} greedy"].tolist() == generate(model, [texts[name][0, :5].tolist()], 20)[0]
    theirs = build_reference(next(one for one in SAMPLES if one.name == "llama2"))
    with torch.no_grad():
        logits = theirs(input_ids=texts["transformers"], use_cache=False).logits
    check_same(found["transformers"], logits)


def test_the_collected_model_generates_the_courses_text(solved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = "import runpy; runpy.run_module('my_transformer', run_name='__main__', alter_sys=True)"
    text = alone(solved, run, "--prompt", "The ", "--tokens", "30")
    words = ["--prompt", "The ", "--tokens", "30", "--temperature", "0"]
    assert main(["generate", "--checkpoint", "micro-python-docs", *words]) == 0
    assert text == capsys.readouterr().out


def test_no_module_has_more_than_its_answers_need(solved: Path) -> None:
    """Every import and every helper is used, docstrings are kept, and nothing comes from the course."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", "--ignore", "F722,F821", "."]
    checked = subprocess.run(command, cwd=solved / "my_transformer", text=True, capture_output=True)
    assert checked.returncode == 0, checked.stdout
    for path in (solved / "my_transformer").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "from lmcourse" not in text
        assert "import lmcourse" not in text
        assert "### BEGIN" not in text
    tree = ast.parse((solved / "my_transformer" / "attention.py").read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert ast.get_docstring(functions["causal_mask"]) == (
        "A mask for the last s queries: each sees its own key and all before it."
    )


# A learner who has solved only a little


GLU = '''def glu_ffn(x, w_gate, w_value, w_down, kind, change=None):
    """Mine."""
    hidden = gated(x @ w_gate, x @ w_value, kind)
    return (hidden if change is None else change(hidden)) @ w_down'''

HELPER = """def gated(gate, value, kind):
    gates = {"glu": torch.sigmoid, "bilinear": lambda z: z, "reglu": F.relu, "geglu": F.gelu, "swiglu": F.silu}
    if kind not in gates:
        raise ValueError(kind)
    return gates[kind](gate) * value"""

WRONG_INTENSITY = "def elementwise_intensity(kernels, bytes_each):\n    return -1.0"


@pytest.fixture(scope="module")
def learner(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course folder whose notebook 11 has only a right answer with a helper cell, a wrong answer, and no `moe`."""
    root = tmp_path_factory.mktemp("learner")
    shutil.copy(course / "nbgrader_config.py", root)
    for chapter in {find_chapter(number) for number in PARTS.values()}:
        shutil.copytree(course / "solutions" / chapter.id, root / "solutions" / chapter.id)
    chapter = find_chapter("11")
    notebook = nbformat.read(course / "notebooks" / chapter.id / f"{chapter.topic}.ipynb", as_version=4)
    for index, cell in reversed(list(enumerate(notebook.cells))):
        match cell.metadata.get("nbgrader", {}).get("grade_id"):
            case "glu_ffn":
                cell.source = GLU
                notebook.cells.insert(index, nbformat.v4.new_code_cell(HELPER))
            case "elementwise_intensity":
                cell.source = WRONG_INTENSITY
            case "moe" | "check_moe":
                del notebook.cells[index]
    path = root / "notebooks" / chapter.id / f"{chapter.topic}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)
    return root


@pytest.fixture(scope="module")
def collected(learner: Path) -> dict[str, Any]:
    """The command's description of that learner's package."""
    return told(learner, "11")


def told(learner: Path, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "lmcourse", "--course", str(learner), "package", "--json"]
    done = subprocess.run([*command, *words], cwd=learner, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_each_answer_has_its_verdict(collected: dict[str, Any]) -> None:
    rows = {row["exercise"]: row for row in collected["exercises"]}
    assert (rows["glu_ffn"]["state"], rows["glu_ffn"]["package"], rows["glu_ffn"]["reason"]) == ("passes", "yours", "")
    assert (rows["elementwise_intensity"]["state"], rows["elementwise_intensity"]["package"]) == ("wrong", "")
    assert rows["elementwise_intensity"]["reason"].startswith("0 of 2 points")
    assert (rows["gelu"]["state"], rows["gelu"]["package"], rows["gelu"]["reason"]) == ("missing", "", "")
    assert (rows["moe"]["state"], rows["moe"]["reason"]) == ("missing", "not in this release")
    for name in PARTS.keys() - {"glu_ffn"}:
        assert (rows[name]["state"], rows[name]["package"]) == ("", "course")
        assert rows[name]["reason"] == f"notebook {PARTS[name]} was not read"


def test_helpers_are_copied_and_course_answers_are_marked(collected: dict[str, Any], learner: Path) -> None:
    module = (learner / "my_transformer" / "feed_forward.py").read_text(encoding="utf-8")
    assert module.startswith('"""Notebook 11, Feed-forward layers: the answers."""\n\nimport torch\n')
    assert [node.name for node in ast.parse(module).body if isinstance(node, ast.FunctionDef)] == ["gated", "glu_ffn"]
    assert '    """Mine."""\n' in module
    replaced = (learner / "my_transformer" / "positions.py").read_text(encoding="utf-8")
    assert "# The course's version, in place of yours: notebook 09 was not read\ndef rope(" in replaced
    run = "import runpy; runpy.run_module('my_transformer', run_name='__main__', alter_sys=True)"
    assert alone(learner, run, "--prompt", "The ", "--tokens", "5").startswith("The ")


def test_files_changed_by_hand_are_reported_before_grading(collected: dict[str, Any], learner: Path) -> None:
    """The isolation does not exist, so grading would raise another error."""
    module = learner / "my_transformer" / "attention.py"
    text = module.read_text(encoding="utf-8")
    module.write_text(f"{text}# mine\n", encoding="utf-8")
    try:
        with pytest.raises(
            CourseError, match=r"^attention\.py in .* changed after lmcourse package wrote it: .*--force$"
        ):
            write_package(learner, learner / "my_transformer", options=GradingOptions("hope"))
    finally:
        module.write_text(text, encoding="utf-8")
    with pytest.raises(CourseError, match="no isolation 'hope'"):
        write_package(learner, learner / "my_transformer", options=GradingOptions("hope"))
