"""Flags, settings and documents agree: each name occurs in all of them."""

from __future__ import annotations

import argparse
import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from lmcourse.cli.parser import make_parser
from lmcourse.training.command.main import make_parser as make_train_parser
from lmcourse.training.run_config import ModelChanges, RunConfig
from lmcourse.training.training_config import Parallelism, TrainingConfig

DOCUMENTS = {
    "train": "training.md",
    "generate": "training.md",
    "export": "training.md",
    "package": "training.md",
    "account": "accounting.md",
    "bench": "accounting.md",
}

NO_FLAG = {
    "training": "RunConfig holds a TrainingConfig, whose fields have flags",
    "model": "RunConfig holds a ModelChanges, whose fields have flags",
    "parallel": "TrainingConfig holds a Parallelism, whose fields have flags",
}
"""Fields without a flag of the same name, with the reason."""

NOT_OURS = {
    "--nproc-per-node": "torchrun's",
    "--shutdown-timeout": "torchrun's",
    "--no-": "how a yes or no is turned into a no, as in --no-compile",
    "--ffn-hidden-size": "of another calculator",
    "--kv-size-ratio": "of another calculator",
}
"""Flags in documents that belong to other programs, with these programs."""

EVERYWHERE = {"--help": "of every command", "--course": "of every command"}
"""Flags that a command's document need not name."""


def flags(command: str) -> set[str]:
    """Return the long flags of a command."""
    parser: argparse.ArgumentParser = make_train_parser("lmcourse train")
    if command != "train":
        [group] = [a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction)]
        parser = group.choices[command]
    return {flag for flag in parser._option_string_actions if flag.startswith("--")}


def documented(course: Path, document: str) -> set[str]:
    """Return the flags that a document mentions."""
    text = (course / "docs" / document).read_text(encoding="utf-8")
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


@pytest.mark.parametrize("owner", [RunConfig, ModelChanges, TrainingConfig, Parallelism])
def test_every_field_has_a_flag_with_its_name(owner: type) -> None:
    names = {field.name for field in fields(owner)} - NO_FLAG.keys()
    assert {f"--{name.replace('_', '-')}" for name in names} <= flags("train")


@pytest.mark.parametrize("command", DOCUMENTS)
def test_every_flag_is_in_the_document(command: str, course: Path) -> None:
    wanted = {flag for flag in flags(command) - EVERYWHERE.keys() if not flag.startswith("--no-")}
    assert wanted - documented(course, DOCUMENTS[command]) == set()


@pytest.mark.parametrize("document", sorted(set(DOCUMENTS.values())))
def test_every_flag_of_the_document_exists(document: str, course: Path) -> None:
    known = set().union(*(flags(command) for command, where in DOCUMENTS.items() if where == document))
    assert documented(course, document) - known == NOT_OURS.keys() & documented(course, document)


@pytest.mark.prove
def test_files_of_a_class_that_the_docs_name_are_ignored_by_git(course: Path) -> None:
    text = (course / "docs" / "teaching.md").read_text(encoding="utf-8")
    commands = "\n".join(re.findall(r"```console\n(.*?)```", text, re.DOTALL))
    named = {*re.findall(r"[\w.-]+\.(?:csv|zip|db)\b", text), *re.findall(r"--report (\w+)", commands)}
    files = [f"{name}/students.csv" if "." not in name else name for name in named]
    files += ["Grades-LM101-graded.csv", "submitted/ada/x.ipynb", "autograded/ada/x.ipynb", "feedback/ada/x.html"]
    ran = subprocess.run(["git", "check-ignore", *files], cwd=course, capture_output=True, text=True, check=False)
    assert len(named) > 5
    assert set(files) == {*ran.stdout.split()}
