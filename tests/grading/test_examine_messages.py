"""Messages: what is plain arrives as it was, and no bytes do harm."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lmcourse.exercises.cases import Case
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.exercises.registry import all_exercises
from lmcourse.exercises.values import Plain, copy_input, same
from lmcourse.grading.examination.decoding import decode
from lmcourse.grading.examination.encoding import DTYPES, LENGTH_BYTES, MessageLimits, ProtocolError, encode
from lmcourse.grading.examination.messages import case_from_plain, case_to_plain, outcome_from_plain, outcome_to_plain

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")  # once in a process

SMALL = MessageLimits(text=2_000, data=2_000, depth=6, items=60, digits=40)


def message(tree: Any, data: bytes = b"") -> bytes:
    text = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
    return len(text).to_bytes(LENGTH_BYTES, "little") + text + data


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    dtype = DTYPES[draw(st.sampled_from(sorted(DTYPES)))]
    shape = draw(st.lists(st.integers(0, 3), max_size=4))
    count = math.prod(shape) * dtype.itemsize
    raw = draw(st.binary(min_size=count, max_size=count))
    if dtype == torch.bool:
        raw = bytes(byte & 1 for byte in raw)
    values = torch.tensor(list(raw), dtype=torch.uint8).view(dtype).reshape(shape)
    order = draw(st.permutations(range(len(shape))))
    grad = draw(st.booleans()) and (dtype.is_floating_point or dtype.is_complex)
    return values.permute(order).requires_grad_(grad)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**40), 10**40), st.floats(), st.complex_numbers(allow_nan=True), TEXTS
)
SIMPLE_KEYS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS)
KEYS = SIMPLE_KEYS | st.tuples(SIMPLE_KEYS, st.tuples(SIMPLE_KEYS))
PLAIN = st.recursive(
    SCALARS | tensors(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@settings(deadline=None, max_examples=150)
@given(PLAIN)
def test_everything_plain_arrives_as_it_was(value: Plain) -> None:
    assert same(decode(encode(value)), value)


@settings(deadline=None, max_examples=60)
@given(tensors())
def test_a_tensor_keeps_its_gradient_and_its_place_in_memory(tensor: Tensor) -> None:
    arrived = decode(encode(tensor))
    assert arrived.requires_grad == tensor.requires_grad
    if tensor.numel() > 1 and 1 not in tensor.shape:
        assert arrived.stride() == tensor.stride()


def test_numpy_and_tuples_arrive_as_in_a_check() -> None:
    assert same(decode(encode((np.arange(3), np.float64(2.5)))), [torch.arange(3), 2.5])


@pytest.mark.parametrize(
    "empty", [np.zeros(0, np.int64), torch.from_numpy(np.zeros(0, np.int64))], ids=["array", "tensor"]
)
def test_nothing_from_numpy_arrives(empty: Any) -> None:
    """Its stride is 0, so torch refuses to view it as bytes."""
    assert same(decode(encode([empty])), [torch.zeros(0, dtype=torch.int64)])


def test_what_arrives_can_be_written_to() -> None:
    arrived = decode(encode(torch.zeros(2, 2)))
    assert arrived.add_(1).sum() == 4


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (object(), "cannot be sent"),
        ("\ud800", "surrogate"),
        (torch.eye(2).to_sparse(), "cannot be sent"),
        (torch.empty(2, device="meta"), "on meta cannot be sent"),
        (10**40, "more than 40 digits"),
        ([[[[[[[1]]]]]]], "nested more than 6 deep"),
        ([0] * 60, "more than 60 values"),
        ("x" * 2_000, "bytes of text"),
        (torch.zeros(501), "bytes of tensors"),
    ],
)
def test_what_cannot_be_sent_is_said_in_a_line(value: Any, says: str) -> None:
    with pytest.raises(ProtocolError, match=says) as caught:
        encode(value, SMALL)
    assert "\n" not in str(caught.value)


GARBAGE = {
    "nothing": b"",
    "a length without text": b"\xff\xff\xff\xff",
    "text cut short": message([1, 2, 3])[:-1],
    "no JSON": message(b"{"),
    "no UTF-8": message(b'"\xff"'),
    "two values": message(b"1 2"),
    "NaN": message(b"NaN"),
    "infinity": message(b"-Infinity"),
    "beyond all floats": message(b"1e999"),
    "a huge int": message(b"1" * 500),
    "an int that Python will not read": message(b"1" * 5_000),
    "half a surrogate pair": message(b'"\\ud800"'),
    "half a pair in a key": message(b'{"dict": [["\\ud800", 1]]}'),
    "deep": message(b"[" * 40 + b"]" * 40),
    "deeper than Python": message(b"[" * 100_000),
    "deep objects": message(b'{"tuple":[' * 20_000),
    "an unknown tag": message({"pickle": "gASVEAAAAAAAAACMAm9zlIwGc3lzdGVtlJOULg=="}),
    "a tag of two": message({"float": "nan", "tensor": []}),
    "no tag": message({}),
    "a key twice": message(b'{"float": "nan", "float": "inf"}'),
    "a dict's key twice": message({"dict": [[1, 2], [True, 3]]}),
    "a list as key": message({"dict": [[[1], 2]]}),
    "a tensor as key": message({"dict": [[{"tensor": ["uint8", [1], [0], False]}, 2]]}, b"\0"),
    "an odd pair": message({"dict": [[1, 2, 3]]}),
    "a dict of nothing": message({"dict": 5}),
    "a float of another name": message({"float": "1.5"}),
    "a float that is a list": message({"float": ["nan"]}),
    "a complex of strings": message({"complex": ["1", "2"]}),
    "bytes left over": message([], b"x"),
    "a tensor without bytes": message({"tensor": ["float32", [2], [0], False]}, b"1234567"),
    "a tensor too large": message({"tensor": ["float32", [10**12, 10**12], [0, 1], False]}),
    "nothing, but very wide": message({"tensor": ["float32", [0, 10**18], [0, 1], False]}),
    "a negative shape": message({"tensor": ["float32", [-1, -1], [0, 1], False]}, b"1234"),
    "a shape of bools": message({"tensor": ["uint8", [True], [0], False]}, b"1"),
    "many axes": message({"tensor": ["uint8", [1] * 70, [*range(70)], False]}, b"1"),
    "axes twice": message({"tensor": ["uint8", [1, 1], [0, 0], False]}, b"1"),
    "an object as dtype": message({"tensor": ["Tensor", [1], [0], False]}, b"1"),
    "a list as dtype": message({"tensor": [["uint8"], [1], [0], False]}, b"1"),
    "a bool that is 2": message({"tensor": ["bool", [1], [0], False]}, b"\2"),
    "a gradient of ints": message({"tensor": ["int8", [1], [0], True]}, b"\2"),
    "a gradient of 1": message({"tensor": ["float16", [1], [0], 1]}, b"\2\2"),
    "a tensor of three": message({"tensor": ["uint8", [1], [0]]}, b"1"),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_refused_in_a_line(name: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(GARBAGE[name])
    assert 0 < len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_damaged_bytes_raise_nothing_but_protocol_error(data: st.DataObject) -> None:
    whole = bytearray(encode(data.draw(PLAIN)))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole)))
        whole[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        value = decode(bytes(whole), SMALL)
    except ProtocolError:
        return
    encode(value)  # what is let in is plain


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=60))
def test_random_bytes_raise_nothing_but_protocol_error(body: bytes) -> None:
    for bytes_ in (body, message(body)):
        try:
            decode(bytes_)
        except ProtocolError:
            continue


@pytest.mark.parametrize("part", [b"[],", b"1,", b'{"tuple":[]},', b'"",', b'{"dict":[]},'])
def test_a_message_cannot_fill_the_memory(part: bytes) -> None:
    limits = MessageLimits(text=100_000, data=0, items=1_000)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode(message(b"[" + part * (99_000 // len(part)) + b"1]"), limits)
        assert tracemalloc.get_traced_memory()[1] < 60 * limits.text
    finally:
        tracemalloc.stop()


def test_a_case_travels_without_its_name() -> None:
    case = Case("a secret category", (torch.ones(2, requires_grad=True), math.inf), {"b": [1, (2, 3)]}, "b\nb[0]")
    packed = encode(case_to_plain(case))
    arrived = case_from_plain(decode(packed))
    assert b"secret" not in packed
    assert (arrived.name, arrived.script) == ("", case.script)
    assert arrived.args[0].requires_grad
    assert same(list(arrived.args), [torch.ones(2), math.inf])
    assert arrived.kwargs == {"b": [1, [2, 3]]}


def test_every_case_of_the_course_can_be_sent() -> None:
    for exercise in all_exercises().values():
        for case in (*exercise.cases, *exercise.hidden(0)):
            arrived = case_from_plain(decode(encode(case_to_plain(case))))
            assert same(copy_input(arrived.args), copy_input(case.args)), exercise.name
            assert same(copy_input(arrived.kwargs), copy_input(case.kwargs)), exercise.name
            assert arrived.script == case.script


def test_an_outcome_arrives_as_it_was() -> None:
    def careless(x: Tensor) -> Tensor:
        print("so far so good")
        x += 1
        raise ValueError("no\nfurther")

    outcome = run_case(careless, Case("", (torch.ones(2),)))
    assert outcome.failure
    assert outcome.changed == ("input `x`",)
    assert outcome_from_plain(decode(encode(outcome_to_plain(outcome)))) == outcome


FAILURE = {"kinds": ["ValueError"], "number": 1, "message": "", "line": "", "cause": ""}
OUTCOME: dict[str, Any] = {"value": 1, "failure": None, "printed": "", "warned": [], "changed": [], "forbidden": []}


@pytest.mark.parametrize(
    "change",
    [
        {"failure": FAILURE},
        {"value": None, "failure": FAILURE | {"kinds": []}},
        {"value": None, "failure": FAILURE | {"kinds": "ValueError"}},
        {"value": None, "failure": FAILURE | {"number": -1}},
        {"value": None, "failure": FAILURE | {"number": True}},
        {"value": None, "failure": FAILURE | {"message": "two\nlines"}},
        {"value": None, "failure": FAILURE | {"message": "\x1b[2J"}},
        {"value": None, "failure": FAILURE | {"line": "x" * 301}},
        {"value": None, "failure": FAILURE | {"cause": 3}},
        {"value": None, "failure": {}},
        {"printed": "x" * 10_001},
        {"printed": None},
        {"warned": ["w"] * 101},
        {"changed": "input 1"},
        {"forbidden": [1]},
        {"points": 5},
    ],
)
def test_an_outcome_that_no_check_gives_is_refused(change: dict[str, Any]) -> None:
    assert outcome_from_plain(OUTCOME) == Outcome(1)
    with pytest.raises(ProtocolError):
        outcome_from_plain(OUTCOME | change)


@pytest.mark.parametrize("change", [{"args": {}}, {"kwargs": {1: 2}}, {"script": 3}, {"script": "1 +"}, {"name": "x"}])
def test_a_case_that_is_none_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        case_from_plain({"args": [], "kwargs": {}, "script": None} | change)


def test_long_and_strange_texts_of_an_outcome_are_cut_to_what_a_report_shows() -> None:
    strange = Outcome(None, Failure(("A\nB",), "m" * 999), "\ud800" + "p" * 20_000, ("w",) * 200)
    arrived = outcome_from_plain(decode(encode(outcome_to_plain(strange))))
    assert arrived.failure
    assert arrived.failure.kinds == ("A ⏎ B",)
    assert (len(arrived.failure.message), len(arrived.printed), len(arrived.warned)) == (300, 10_000, 100)
