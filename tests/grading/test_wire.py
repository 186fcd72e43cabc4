"""Sent messages arrive unchanged, and invalid messages raise only ProtocolError."""

from __future__ import annotations

import math
import socket
import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import torch

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.forbidden_names import Use
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.values import same
from lmcourse.grading.wire import (
    MAX_BYTES,
    Channel,
    ProtocolError,
    case_from_plain,
    case_to_plain,
    decode,
    encode,
    outcome_from_plain,
    outcome_to_plain,
)

OUTCOME = Outcome(
    [torch.tensor([1.0, math.nan]), {"a": 1, 2: None}],
    None,
    "printed\n",
    ("a warning",),
    ("input `x`",),
    (Use("torch.softmax", "return x.softmax(0)", 3),),
)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(10**30),
        1.5,
        -0.0,
        math.inf,
        math.nan,
        2 + 3j,
        "größer 🙂\x00",
        [],
        [1, [2.0, "three"]],
        {"a": 1, 2: [3], (4, "x"): None},
        torch.empty(0, 3),
        torch.arange(6.0, dtype=torch.bfloat16).reshape(2, 3).T,
        torch.tensor([1.0, 2.0], dtype=torch.float8_e4m3fn),
        torch.tensor(True),
    ],
    ids=repr,
)
def test_a_sent_value_is_received_unchanged(value: Any) -> None:
    assert same(decode(encode(value)), value) or repr(decode(encode(value))) == repr(value)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        *((value, None) for value in (object(), {"x": object()}, torch.ones(2, device="meta"), "\ud800", {1.5: {2}})),
        *((value, "too many") for value in (torch.zeros(MAX_BYTES // 4 + 1), "x" * (3 * 2**20))),
    ],
)
def test_value_that_is_not_plain_or_too_large_is_not_sent(value: Any, told: str | None) -> None:
    with pytest.raises(ProtocolError, match=told):
        encode(value)


@pytest.mark.parametrize("place", range(0, 120, 12))
def test_changed_bytes_give_a_value_or_a_protocol_error(place: int) -> None:
    message = bytearray(encode([torch.ones(3, 4), {"a": 1.0}]))
    for byte in (0, 0x22, 0x7B, 0xFF):
        changed = bytes(message[:place] + bytes([byte]) + message[place + 1 :])
        with suppress(ProtocolError):
            decode(changed)


def test_a_sent_outcome_is_received_unchanged() -> None:
    got = outcome_from_plain(decode(encode(outcome_to_plain(OUTCOME))))
    assert same(got.value, OUTCOME.value)
    assert replace(got, value=None) == replace(OUTCOME, value=None)
    failed = Outcome(failure=Failure(("ValueError", "Exception"), "no bits", "return x / y", 3, "a cause", ("push",)))
    assert outcome_from_plain(decode(encode(outcome_to_plain(failed)))) == failed


@pytest.mark.parametrize(
    "change",
    [
        {"printed": "x" * 10**6},
        {"printed": None},
        {"warned": ["two\nlines"]},
        {"warned": ["\x1b[31m"]},
        {"changed": ["x"] * 1000},
        {"forbidden": [["name", "line"]]},
        {"forbidden": [["name", "line", "3"]]},
        {"failure": {"kinds": [], "number": 0, "message": "", "line": "", "cause": ""}},
        {"failure": {"kinds": ["E"], "number": -1, "message": "", "line": "", "cause": ""}, "value": None},
        {"failure": {"kinds": ["E"], "number": 1, "message": "", "line": "", "cause": ""}},
        {"points": 3},
    ],
    ids=str,
)
def test_an_invalid_outcome_raises_protocol_error(change: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        outcome_from_plain(outcome_to_plain(OUTCOME) | change)


@pytest.mark.parametrize("one", [case("a", 1, x=torch.ones(2)), script("b", "a = f(x)\na", x=3)])
def test_case_arrives_without_its_name(one: Case) -> None:
    got = case_from_plain(decode(encode(case_to_plain(one))))
    assert got.name == ""
    assert same([list(got.args), dict(got.kwargs), got.script], [list(one.args), dict(one.kwargs), one.script])


def test_channel_distinguishes_silence_from_a_closed_end() -> None:
    here, there = socket.socketpair()
    ticks: list[int] = []
    channel, other = Channel(here, lambda: ticks.append(1)), Channel(there)
    with pytest.raises(TimeoutError):
        channel.receive(1.2)
    assert ticks
    sender = threading.Thread(target=other.send, args=(torch.zeros(10**6),))
    sender.start()
    assert channel.receive(10.0).shape == (10**6,)
    sender.join()
    other.close()
    with pytest.raises(OSError, match="closed the connection"):
        channel.receive(1.0)
    channel.close()
