"""The program inside the sandbox: runs the cells of a submission and, on request, runs answers on cases.

Only this process holds the learner's objects. It has neither the correct results nor the purposes of the cases, and the
grader accepts only plain values from it. Cells run statement by statement in one namespace, with IPython's own shell as
`get_ipython()`: if one statement fails, for example because a package is missing, the rest of the cell still runs.
"""

from __future__ import annotations
import __future__ as future

import ast
import asyncio
import importlib
import inspect
import linecache
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, redirect_stderr, redirect_stdout, suppress
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.text import LSString, SList
from traitlets.config import Config

import lmcourse.exercises
import lmcourse.notebook
from lmcourse.base.text import one_line, replace_surrogates
from lmcourse.exercises import rules
from lmcourse.exercises.failure import NOT_PLAIN, Failure, failure_of
from lmcourse.exercises.forbidden_names import forbidden_in_source
from lmcourse.exercises.isolated_state import BoundedBuffer
from lmcourse.exercises.limits import TimeLimitExceeded, time_limit
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.grading.missing_answers import not_defined
from lmcourse.grading.system_calls import deny_system_calls
from lmcourse.grading.wire import Channel, ProtocolError, case_from_plain, failure_to_plain, outcome_to_plain

KEPT_CHARS = 2_000

# Line magics that are ignored, because grading does not install packages or show figures
NO_MAGIC = ("pip", "conda", "mamba", "uv", "matplotlib")

_FIGURES = re.compile(r"lmcourse\.chapters\.\w+\.figures")
_INSTALLS = re.compile(r"\s*(sudo +)?(\S*python\S* +-m +)?(pip3?|conda|mamba|uv|apt|apt-get|brew)\b")


def main() -> None:
    """Answer requests on the socket that is the standard input, until the grader closes it."""
    channel = Channel(socket.socket(fileno=os.dup(0)))
    devnull = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(devnull, stream)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    deny_system_calls()
    _disable_checks()
    sys.meta_path.insert(0, LazyFigures())
    rules.warm_up()
    notebook = Notebook()
    channel.send({})
    while True:
        try:
            request: Any = channel.receive()
            reply = getattr(notebook, request.pop("do"))(**request)
            _send(channel, reply)
        except OSError:
            os._exit(0)


def _send(channel: Channel, reply: Any) -> None:
    try:
        channel.send(reply)
    except ProtocolError as error:
        failure = Failure((NOT_PLAIN,), f"returned what cannot be graded: {error}")
        channel.send(outcome_to_plain(Outcome(failure=failure)))


class LazyFigures:
    """Delays loading the figures of a chapter until they are used, because Matplotlib is slow to load."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module of figures; None for any other module."""
        spec = PathFinder.find_spec(name, path) if _FIGURES.fullmatch(name) else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


class Notebook:
    """The namespace of a submission, and the answers that its cells defined."""

    def __init__(self) -> None:
        module = ModuleType("__main__")
        config = Config()
        config.HistoryManager.enabled = False
        self.names: dict[str, Any] = vars(module)
        self.shell = Shell.instance(user_module=module, user_ns=self.names, config=config)
        for name in NO_MAGIC:
            register: Any = self.shell.register_magic_function
            register(_nothing, "line", name)
        sys.path.insert(0, str(Path.cwd()))  # as in a kernel: a cell may write a file that a later one imports
        self.answers: dict[str, Any] = {}

    def start(self, text: str, files: dict[str, torch.Tensor]) -> Any:
        """Write files, but not over the assignment's data, and run import statements; ignore those that fail."""
        for name, data in files.items():
            with suppress(OSError):
                Path(name).write_bytes(bytes(data.tolist()))
        for statement in ast.parse(text).body:
            with suppress(Exception):
                exec(compile(ast.Module([statement], []), "<imports>", "exec"), self.names)
        return {}

    def cell(self, text: str, number: int, answer: str, seconds: float) -> Any:
        """Run a cell; return its output, the first failure, and the value of its last line as text."""
        file, printed, before = f"<cell {number}>", BoundedBuffer(KEPT_CHARS), self.names.get(answer)
        importlib.invalidate_caches()
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        run = _Statements(ast.parse(text, file), file, self.names)
        with redirect_stdout(printed), redirect_stderr(printed):
            try:
                with time_limit(seconds):
                    run.all()
            except TimeLimitExceeded as error:
                line = failure_of(error)
                run.failure = Failure(("TimeLimitExceeded",), f"stopped after {seconds:g} s", line.line, line.number)
        after = self.names.get(answer)
        if answer in self.names and not (run.failure and after is before):
            # the answer is the value after its own cell, even if later cells redefine the name
            self.answers[answer] = after
        return {
            "printed": replace_surrogates(printed.getvalue()),
            "failure": failure_to_plain(run.failure) if run.failure else None,
            "result": run.result,
        }

    def last_value(self, name: str) -> Any:
        """Use the value that the answer to an exercise has at the end of the notebook."""
        if name in self.names:
            self.answers[name] = self.names[name]
        return name in self.answers

    def forbidden(self, name: str, forbid: list[str]) -> Any:
        """Return the forbidden names in the source of an answer."""
        with suppress(Exception):  # unusual objects can make it fail
            return [[use.name, use.line, use.number] for use in forbidden_in_source(self.answers[name], tuple(forbid))]
        return []

    def case(self, name: str, value: bool, case: Any, seconds: float, forbid: list[str]) -> Any:
        """Run the answer to an exercise on a case; return the outcome."""
        if name not in self.answers:
            return outcome_to_plain(Outcome(failure=not_defined(name)))
        found = self.answers[name]
        answer = (lambda: found) if value else found
        outcome = run_case(answer, case_from_plain(case), name=name, seconds=seconds, forbid=tuple(forbid))
        return outcome_to_plain(outcome)


class _Statements:
    """Runs the statements of a cell. If one fails, the others still run."""

    def __init__(self, tree: ast.Module, file: str, names: dict[str, Any]) -> None:
        self.failure: Failure | None = None
        self.result = ""
        self._tree, self._file, self._names = tree, file, names
        self._flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    def all(self) -> None:
        """Run the statements in order."""
        for place, statement in enumerate(self._tree.body):
            last = place == len(self._tree.body) - 1
            try:
                value = self._run(statement)
                if last and isinstance(statement, ast.Expr) and value is not None:
                    self.result = one_line(repr(value), 40)
            except TimeLimitExceeded:
                raise
            except BaseException as error:  # sys.exit() ends only the cell, not the notebook
                self.failure = self.failure or failure_of(error)

    def _run(self, statement: ast.stmt) -> Any:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for alias in statement.names:
                self._flags |= getattr(future, alias.name).compiler_flag
        expression = isinstance(statement, ast.Expr)
        tree: Any = ast.Expression(statement.value) if isinstance(statement, ast.Expr) else ast.Module([statement], [])
        code = compile(tree, self._file, "eval" if expression else "exec", self._flags, dont_inherit=True)
        value = eval(code, self._names)
        return asyncio.run(value) if code.co_flags & inspect.CO_COROUTINE else value


class Shell(InteractiveShell):
    """IPython's shell without a terminal: commands print their output, and installation commands are ignored."""

    def ask_exit(self) -> None:
        """End the cell that calls `exit()` or `quit()`, as `sys.exit()` does here."""
        raise SystemExit

    def system(self, cmd: str) -> None:
        """Run `!command`."""
        expanded = self.var_expand(cmd, depth=1)  # type: ignore[no-untyped-call]
        print(self._output(expanded), end="")

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        """Run the command of `lines = !command`."""
        output = self._output(self.var_expand(cmd, depth=depth + 1))  # type: ignore[no-untyped-call]
        return SList(output.splitlines()) if split else LSString(output)

    def _output(self, command: str) -> str:
        if _INSTALLS.match(command):
            return "Grading installs nothing.\n"
        run = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return (run.stdout + run.stderr).decode(errors="replace")


def _nothing(*_: object, **__: object) -> None:
    pass


def _only_seed(chapter: str) -> None:
    torch.manual_seed(0)


def _tried(*names: str) -> AbstractContextManager[None]:
    """Run the block, which in a notebook might run with the course's answers, and ignore that it fails."""
    return suppress(Exception)


def _not_compiled(model: Any = None, **_: Any) -> Any:
    """Return what `torch.compile` is given, as it is: compiling takes minutes and changes no result."""
    print("Grading compiles nothing.")
    return (lambda inner: inner) if model is None else model


def _disable_checks() -> None:
    """Replace `check`, `hint`, `inputs`, `predict` and `explore` by functions that do nothing; let `start` only set the
    seed, and `your` run its block with what is there, because right answers are not."""
    for module in (lmcourse.notebook, lmcourse.exercises):
        for name in {"check", "check_exercise", "explore", "hint", "inputs", "predict"} & vars(module).keys():
            setattr(module, name, _nothing)
    lmcourse.notebook.start = _only_seed
    lmcourse.notebook.your = _tried
    torch.compile = _not_compiled
    torch.nn.Module.compile = _nothing  # type: ignore[method-assign]
