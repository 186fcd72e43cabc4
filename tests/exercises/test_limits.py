"""Endless loops end even if they catch exceptions, huge allocations fail, and the process's state is restored."""

from __future__ import annotations

import cProfile
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lmcourse.exercises import case
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.limits import TimeLimitExceeded, memory_limit, time_limit
from lmcourse.exercises.outcome import run_case

pytestmark = pytest.mark.prove

CASE = case("one", 1.0)
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process limit its own memory")


def failure_of(answer: Callable[..., Any], seconds: float = 0.2) -> Failure:
    begin = time.thread_time()
    outcome = run_case(answer, CASE, seconds=seconds, forbid=("lmcourse",))
    assert time.thread_time() - begin < 5
    assert outcome.failure is not None
    return outcome.failure


def catches_everything(x: float) -> None:
    while True:
        try:
            time.sleep(1)
        except:  # noqa: E722
            x += 1


def catches_everything_around_calls(x: float) -> None:
    def guarded() -> float:
        try:
            return x + 1
        except BaseException:
            return x

    while x:
        x = guarded()


def tries_again_when_it_fails(x: float) -> None:
    while True:
        try:
            time.sleep(1)
        except BaseException:
            try:
                time.sleep(1)
            except BaseException:
                continue


def goes_on_finally(x: float) -> None:
    while True:
        try:
            time.sleep(1)
        finally:
            continue  # noqa: B012


def catches_and_returns(x: float) -> float:
    try:
        while True:
            pass
    except BaseException:
        return x


def prints_for_ever(x: float) -> None:
    while True:
        print("over and over")


def never_ends_to_count(x: float) -> Any:
    return range(10**13)


def never_ends_to_tell(x: float) -> None:
    class EndlessError(Exception):
        def __str__(self) -> str:
            while True:
                pass

    raise EndlessError


@pytest.mark.parametrize(
    "answer",
    [
        catches_everything,
        catches_everything_around_calls,
        tries_again_when_it_fails,
        goes_on_finally,
        catches_and_returns,
        prints_for_ever,
        never_ends_to_tell,
    ],
    ids=lambda answer: answer.__name__,
)
def test_every_endless_answer_is_stopped(answer: Callable[..., Any]) -> None:
    failure = failure_of(answer)
    assert failure.kinds == ("TimeLimitExceeded",)
    assert failure.message == "still running after 0.2 s"


def test_the_profiler_of_a_cell_continues_after_a_check() -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        assert run_case(lambda x: 2 * x, CASE, forbid=("lmcourse",)).value == 2.0
        assert run_case(lambda x: 2 * x, CASE).value == 2.0
        assert sys.getprofile() is profiler
    finally:
        profiler.disable()


def test_a_handler_for_exceptions_never_sees_the_limit() -> None:
    seen: list[Exception] = []

    def handles(x: float) -> None:
        while True:
            try:
                x += 1
            except Exception as error:
                seen.append(error)

    assert failure_of(handles).kind == "TimeLimitExceeded"
    assert seen == []


def test_the_line_that_never_ends_is_reported() -> None:
    assert failure_of(catches_everything).line in ("time.sleep(1)", "x += 1", "except:  # noqa: E722")


@LINUX
def test_an_import_is_not_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "takes_long.py").write_text("import time\ntime.sleep(0.6)\nwhole = True\n")
    monkeypatch.syspath_prepend(tmp_path)

    def answer() -> bool:
        import takes_long

        return bool(takes_long.whole)

    assert run_case(answer, case("an import"), seconds=0.2).value is True
    sys.modules.pop("takes_long")


def test_a_result_that_is_too_large_to_copy_is_rejected() -> None:
    assert failure_of(never_ends_to_count, seconds=3).kind in ("MemoryError", "TimeLimitExceeded")


@LINUX
@pytest.mark.parametrize(
    "allocate",
    [lambda: torch.zeros(10**12), lambda: np.ones(10**12), lambda: [0] * 10**11, lambda: "x" * 10**12],
    ids=["torch", "numpy", "list", "string"],
)
def test_a_huge_allocation_is_reported_in_one_line(allocate: Callable[[], Any]) -> None:
    failure = failure_of(lambda x: allocate(), seconds=5)
    assert failure.kind == "MemoryError"
    assert failure.message == "it asked for more memory than this check allows"
    assert "allocate()" in failure.line or "lambda: " in failure.line


def state() -> tuple[Any, ...]:
    timer = signal.getitimer(signal.ITIMER_REAL)[1]
    return (
        signal.getsignal(signal.SIGALRM),
        timer,
        sys.gettrace(),
        sys.getprofile(),
        torch.overrides._get_current_function_mode(),
    )


def address_space() -> Any:
    """Return this process's address-space limit, if the system has one."""
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrlimit(resource.RLIMIT_AS)


@pytest.mark.parametrize("answer", [catches_everything, lambda x: x, lambda x: 1 / 0])
def test_a_time_limit_leaves_no_trace(answer: Callable[..., Any]) -> None:
    before = state(), address_space()
    run_case(answer, CASE, seconds=0.2, forbid=("lmcourse",))
    assert (state(), address_space()) == before
    time.sleep(0.3)  # an unwanted further interrupt would come now


def test_an_inner_time_limit_keeps_the_outer_limit() -> None:
    with pytest.raises(TimeLimitExceeded), time_limit(0.4):  # noqa: PT012
        with time_limit(5):
            pass
        time.sleep(5)


def elsewhere(action: Callable[[], None]) -> list[BaseException]:
    """Run a function in a separate thread, which gets no signals, and return its exception."""
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            action()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    return raised


def test_the_time_limit_works_without_signals() -> None:
    def endless() -> None:
        with time_limit(0.2):
            while True:
                pass

    def quick() -> None:
        with time_limit(0.2):
            pass
        time.sleep(0.4)

    def stubborn() -> None:
        with time_limit(0.2):
            for _ in range(3):
                with suppress(TimeLimitExceeded):
                    time.sleep(0.3)

    assert [type(error) for error in elsewhere(endless)] == [TimeLimitExceeded]
    assert elsewhere(quick) == []
    assert [type(error) for error in elsewhere(stubborn)] == [TimeLimitExceeded]


def test_a_limit_in_a_thread_does_not_stop_a_later_profiler() -> None:
    test_the_time_limit_works_without_signals()
    assert run_case(lambda x: sum(x for _ in range(100)), CASE, seconds=5, forbid=("lmcourse",)).value == 100


@LINUX
def test_answers_within_the_limits_run() -> None:
    with memory_limit(2**30):
        assert len(bytearray(2**29)) == 2**29
    with pytest.raises(MemoryError), memory_limit(2**30):
        bytearray(2**31)
    assert len(bytearray(2**31)) == 2**31


@LINUX
def test_time_of_other_work_does_not_count() -> None:
    def computes(x: float) -> float:
        pause = f"sleep 0.1; kill -STOP {os.getpid()}; sleep 1.2; kill -CONT {os.getpid()}"
        with subprocess.Popen(["sh", "-c", pause]):
            end = time.thread_time() + 0.3
            while time.thread_time() < end:
                x += 1
        return 1.0

    assert run_case(computes, CASE, seconds=1).value == 1.0
