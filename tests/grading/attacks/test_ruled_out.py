"""Nobody earns a point with what an exercise rules out, nor by guessing."""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from textwrap import dedent

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from lmcourse.course import find_chapter
from lmcourse.exercises import case
from lmcourse.exercises.limits import TimeLimitExceeded
from lmcourse.exercises.registry import all_exercises, exercises_of, find_exercise
from lmcourse.grading.examination.decoding import decode
from lmcourse.grading.examination.encoding import encode
from lmcourse.grading.examination.launchers import Launcher
from lmcourse.grading.fork_server import ForkServer
from lmcourse.grading.restrictions.families import EVERYTHING_RULE
from lmcourse.grading.sandbox.isolation import isolation_problem
from tests.exercises.toy import doubling
from tests.grading.attacks import ruled_out
from tests.grading.attacks.rule_attack import FIRST, RuleAttack
from tests.grading.attacks.ruled_out import RULE_ATTACKS
from tests.grading.examining import RESTRICTIONS, ForkLauncher, examined


@pytest.fixture(scope="module")
def launcher_of() -> Iterator[Callable[[RuleAttack], Launcher]]:
    """Gives what examines an attack: a fork of the test, or the sandbox, started for the first that needs it."""
    with ExitStack() as stack:
        rules = [find_exercise(attack.exercise).rules for attack in RULE_ATTACKS if attack.sandboxed]
        server = cache(lambda: stack.enter_context(ForkServer(rules=rules)))

        def launcher(attack: RuleAttack) -> Launcher:
            if attack.sandboxed and isolation_problem():
                pytest.skip(str(isolation_problem()))
            return server() if attack.sandboxed else ForkLauncher()

        yield launcher


@pytest.mark.parametrize("attack", RULE_ATTACKS, ids=lambda attack: attack.name)
def test_what_is_ruled_out_earns_nothing(attack: RuleAttack, launcher_of: Callable[[RuleAttack], Launcher]) -> None:
    everyone = exercises_of(find_chapter(attack.number))
    uses_others = bool(find_exercise(attack.exercise).uses)
    exercises = everyone if uses_others else [one for one in everyone if one.name == attack.exercise]
    report = examined([FIRST, attack.code], exercises, launcher=launcher_of(attack)).reports[attack.exercise]
    assert report.points == 0, report
    assert report.answered or not attack.right


@pytest.fixture(scope="module")
def throw_away() -> Iterator[ProcessPoolExecutor]:
    """A fork of the test in which attacks are tried, each in a fork of it: nothing of them is left for others."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork"), slow_imports) as process:
        yield process


def slow_imports() -> None:
    """What attacks import, once for all of them."""
    torch.set_num_threads(1)  # the threads of the test are not in its fork
    importlib.import_module("torch._dynamo")


@pytest.mark.parametrize("attack", [one for one in RULE_ATTACKS if one.right], ids=lambda attack: attack.name)
def test_it_would_be_right_if_nothing_were_refused(attack: RuleAttack, throw_away: ProcessPoolExecutor) -> None:
    wrong = throw_away.submit(verdicts_in_a_fork, attack).result()
    assert wrong.count(None) > len(wrong) / 2, wrong


def verdicts_in_a_fork(attack: RuleAttack) -> list[str | None]:
    """The verdicts on an attack that may patch what it likes."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as process:
        return process.submit(ruled_out.verdicts_if_nothing_is_refused, attack).result()


def test_tensors_come_and_go_while_every_way_to_turn_them_is_refused() -> None:
    answer = """
    def as_transposed(x, i, j):
        sizes, strides = list(x.shape), list(x.stride())
        sizes[i], sizes[j], strides[i], strides[j] = sizes[j], sizes[i], strides[j], strides[i]
        return x.as_strided(sizes, strides)
    """
    exercise = find_exercise("as_transposed")
    report = examined([FIRST, dedent(answer)], [exercise], launcher=ForkLauncher()).reports[exercise.name]
    assert report.points == exercise.points, report


def test_a_tensor_where_all_of_torch_is_ruled_out_does_not_end_the_process() -> None:
    exercise = doubling(
        cases=[case("two", 2)],
        hidden_cases=lambda random: [case("another", random.randrange(9))],
        reference=lambda x: [2 * x],
        forbid=["torch"],
    )
    made_before = f"{FIRST}\nmade = torch.ones(2, 3)"
    found = examined([made_before, "def double(x): return made"], [exercise], launcher=ForkLauncher())
    assert not found.reports["double"].points
    assert not found.evidence
    assert "torch" in str(found.reports["double"])


def test_tensors_can_be_sent_under_the_rules_of_every_exercise() -> None:
    """In both directions: neither encoding nor decoding may need an operator that is refused then."""
    rules = {rule for exercise in all_exercises().values() for rule in exercise.rules} - {EVERYTHING_RULE}
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as process:
        assert process.submit(tensors_arrive_under, sorted(rules)).result()


def tensors_arrive_under(rules: list[str]) -> bool:
    """To be called in a process of its own, as the rules then hold there."""
    torch.set_num_threads(1)
    plain = torch.arange(6.0).reshape(2, 3)
    samples = [plain, plain.t(), plain.bfloat16(), plain > 2, plain.int()[:, ::2], plain[0, 0], plain.clone()[:0]]
    message = encode(samples)
    RESTRICTIONS.enforce((*rules, ".as_strided", ".contiguous", ".flatten", ".reshape"))
    arrived = encode(decode(message)) == message
    RESTRICTIONS.enforce(())  # with which Python sends what is said here
    return arrived


def test_what_is_imported_when_the_time_limit_strikes_is_refused_in_the_next_case() -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as process:
        assert process.submit(means_around_an_interruption).result() == [1.5, "RuledOutError"]


def means_around_an_interruption() -> list[object]:
    """To be called in a process of its own: the limit strikes while it is noted what a new module defines."""
    sys.modules.pop("statistics", None)
    RESTRICTIONS.watch_imports()
    RESTRICTIONS.enforce((".fmean",))
    take = RESTRICTIONS._known._take

    def interrupted(new: object) -> None:
        RESTRICTIONS._known._take = take
        raise TimeLimitExceeded

    RESTRICTIONS._known._take = interrupted
    with suppress(TimeLimitExceeded):
        importlib.import_module("statistics")
    found: list[object] = []
    for _ in range(2):
        try:
            found.append(importlib.import_module("statistics").fmean([1, 2]))
        except Exception as error:
            found.append(type(error).__name__)
        RESTRICTIONS.take_broken()
    RESTRICTIONS.enforce(())  # with which Python sends what is said here
    return found


def test_what_was_refused_is_computed_again_under_modes() -> None:
    """torch keeps a kernel in Python for them, whatever has taken its place since."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as process:
        assert process.submit(shape_under_a_mode_after, sorted(all_exercises()["matmul_flops"].rules)).result() == [3]


def shape_under_a_mode_after(rules: list[str]) -> list[int]:
    """To be called in a process of its own."""
    RESTRICTIONS.enforce((*rules, EVERYTHING_RULE))
    RESTRICTIONS.enforce(())
    with FakeTensorMode():
        return [*torch.empty(3).normal_().shape]
