"""The command `lmcourse package`: write a learner's answers as a package that runs without the course."""

from __future__ import annotations

import hashlib
import json
import keyword
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save

from lmcourse.base.atomic import write_all
from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import CHAPTERS, Chapter, find_chapter
from lmcourse.data import tokenizers
from lmcourse.grading.workers import GradingOptions
from lmcourse.own_package import package
from lmcourse.own_package.modules import PARTS, Collection, module_text, parts_text
from lmcourse.own_package.saved_answers import judge, printed_notebooks, read_notebook
from lmcourse.own_package.weights import package_config, package_weights
from lmcourse.pretrained import load_pretrained

COPIED = {
    "model.py": (package, "model.py"),
    "generate.py": (package, "generate.py"),
    "tokenizers/bpe.py": (tokenizers, "bpe.py"),
    "tokenizers/pre_tokenizer.py": (tokenizers, "pre_tokenizer.py"),
    "tokenizers/tokenizer.py": (tokenizers, "tokenizer.py"),
}
"""Files of the course that are copied into a package, by their names in the package."""

TITLE = '''"""A transformer made of your own answers, collected from the notebooks of lmcourse.

A module for each notebook has what you wrote there; `parts` says which functions the model is made of, and `model`
puts them together. Nothing here needs lmcourse: {name} --prompt "The "
"""
'''

MAIN = """import sys

from {name}.generate import main
from {name}.parts import PARTS

sys.exit(main(PARTS))
"""

RECORD = ".collected.json"
"""The file with the SHA-256 of each written file. Files that have changed since then are not overwritten."""


@dataclass(frozen=True)
class Row:
    """The result of collecting one exercise.

    `state` is "passes", "wrong", "missing" or "" (not read); `package` is "yours", "course" or "" (none), with the
    reason.
    """

    notebook: str
    exercise: str
    state: str
    package: str
    reason: str


@dataclass(frozen=True)
class WrittenPackage:
    """A written package: its folder, the result for each exercise, and the files that changed."""

    out: Path
    rows: tuple[Row, ...]
    changed: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the package's description as plain data."""
        return {"out": str(self.out), "exercises": [vars(row) for row in self.rows], "changed": list(self.changed)}


def write_package(
    root: Path,
    out: Path,
    *,
    chapters: Sequence[Chapter] | None = None,
    lend: bool = True,
    force: bool = False,
    options: GradingOptions | None = None,
) -> WrittenPackage:
    """Write a package with the passing answers from the learner's notebooks, by default all; `out` gives its name.

    If `lend`, the course's answer replaces a missing or wrong one that the model needs. If not, wrong answers are
    included unchanged, and missing ones raise an error when they are called. Raises CourseError if the package's name
    is invalid, the notebooks cannot be graded on this machine, or files were changed by hand.
    """
    check_name(out.name)
    if not force:
        check_unchanged(out)  # checked before grading, which takes a minute
    chapters = CHAPTERS if chapters is None else chapters
    needed = [find_chapter(number) for number in PARTS.values()]
    paths = {chapter: root / "notebooks" / chapter.id / f"{chapter.topic}.ipynb" for chapter in chapters}
    own = {chapter: (path, read_notebook(path)) for chapter, path in paths.items() if path.is_file()}
    printed = printed_notebooks(list(dict.fromkeys([*own, *needed])), root)
    answers = judge(own, printed, root, options)
    collection = Collection(answers, {chapter: notebook for chapter, (_, notebook) in own.items()}, printed, lend)
    changed = write_files(package_files(out.name, collection), out, force=force)
    return WrittenPackage(out, tuple(_rows(collection)), tuple(changed))


def check_name(name: str) -> None:
    """Raise CourseError if Python could not import a package of this name, or would find another one."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise CourseError(f"a package cannot be called {name!r}: give --out a name of letters, digits and _")
    if name in sys.stdlib_module_names or name in ("lmcourse", "torch", "einops", "jaxtyping", "safetensors"):
        raise CourseError(f"{name} is the name of another package: choose another name with --out")


def package_files(name: str, collection: Collection) -> dict[str, bytes]:
    """Return the files of a package by their paths in it: modules, copied code, and the shipped model's weights."""
    texts = {
        "__init__.py": TITLE.format(name=f"python -m {name}"),
        "__main__.py": f'"""`python -m {name}`."""\n\n' + MAIN.format(name=name),
        "parts.py": parts_text(name, collection),
        "tokenizers/__init__.py": '"""The tokenizer of the weights: byte pair encoding."""\n',
    }
    for target, (owner, source) in COPIED.items():
        text = (Path(str(owner.__file__)).parent / source).read_text(encoding="utf-8")
        text = text.replace(package.__name__, name).replace(tokenizers.__name__, f"{name}.tokenizers")
        texts[target] = text
    for chapter, parts in collection.parts.items():
        if any(part.statements for part in parts.values()):
            texts[f"{chapter.topic}.py"] = module_text(chapter, collection.ordered(chapter))
    trained = load_pretrained()
    sizes = json.dumps(package_config(trained.model.config), indent=2) + "\n"
    texts |= {"weights/config.json": sizes, "weights/tokenizer.json": json.dumps(trained.tokenizer.to_json()) + "\n"}
    files = {path: text.encode() for path, text in texts.items()}
    return files | {"weights/model.safetensors": save(package_weights(trained.model))}


def _rows(collection: Collection) -> list[Row]:
    """Return the result for each exercise of the learner's notebooks, and for all other parts that the model needs."""
    judged = {answer.exercise: answer for answer in collection.answers}
    rows = []
    for answer in collection.answers:
        part = collection.parts[answer.chapter].get(answer.exercise)
        package, reason = (part.origin, part.reason) if part else ("", answer.reason)
        rows.append(Row(answer.chapter.number, answer.exercise, answer.state, package, reason))
    for chapter, parts in collection.parts.items():
        added = (part for name, part in parts.items() if name not in judged)
        rows += [Row(chapter.number, part.exercise, "", part.origin, part.reason) for part in added]
    return sorted(rows, key=lambda row: row.notebook)


def check_unchanged(out: Path, files: Mapping[str, bytes] | None = None) -> None:
    """Raise CourseError if `out` is a file, or if a file in it was changed by hand after an earlier call wrote it.

    A file that already has its new contents counts as unchanged.
    """
    if out.exists() and not out.is_dir():
        raise CourseError(f"{out} is a file: choose another folder with --out")
    known, files = _read_record(out), files or {}
    here = {name: (out / name).read_bytes() for name in {**files, **known} if (out / name).is_file()}
    edited = [name for name, found in here.items() if _digest(found) != known.get(name) and found != files.get(name)]
    if edited:
        raise CourseError(
            f"{', '.join(edited)} in {out} changed after lmcourse package wrote it: choose another --out to keep "
            "it, or overwrite it with --force"
        )


def write_files(files: Mapping[str, bytes], out: Path, *, force: bool = False) -> list[str]:
    """Write all files into a folder, or none of them, and return the names of the files that changed.

    Files that an earlier call wrote and that are no longer needed are removed. Raises CourseError if a file was changed
    by hand, or if the folder is not writable.
    """
    if not force:
        check_unchanged(out, files)
    obsolete = [out / name for name in _read_record(out) if name not in files]
    changed = [name for name in files if not (out / name).is_file() or (out / name).read_bytes() != files[name]]
    record = json.dumps({name: _digest(content) for name, content in files.items()}, indent=2) + "\n"
    write_all({**{out / name: files[name] for name in changed}, out / RECORD: record})
    for path in obsolete:
        path.unlink(missing_ok=True)
    return changed


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_record(out: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that was written before; empty if the record is missing or damaged."""
    try:
        record = json.loads((out / RECORD).read_text(encoding="utf-8"))
        return {str(name): str(digest) for name, digest in record.items()}
    except (OSError, ValueError, AttributeError):
        return {}
