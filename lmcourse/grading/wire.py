"""Messages between the grader and a submission's process: plain values, sent as bytes through a socket.

    length of the rest (4 bytes) | length of the JSON (4 bytes) | JSON | safetensors

JSON has the tree (`lmcourse.exercises.plain_json`), and safetensors has the numbers of its tensors. Neither can contain
code. The grader does not trust the other process: for any bytes, `receive` returns a plain value or raises
ProtocolError, and the functions `…_from_plain` check each field.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from time import monotonic
from typing import Any

from safetensors.torch import load, save
from torch import Tensor

from lmcourse.base.text import one_line, replace_surrogates
from lmcourse.base.units import MIB
from lmcourse.exercises.cases import Case
from lmcourse.exercises.failure import MAX_MESSAGE_CHARS, Failure
from lmcourse.exercises.forbidden_names import Use
from lmcourse.exercises.isolated_state import MAX_PRINTED_CHARS
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.plain_json import from_json_tree, to_json_tree
from lmcourse.exercises.values import Plain, to_plain

LENGTH_BYTES = 4

MAX_BYTES = 16 * MIB  # largest number of bytes in one message; the course's messages have less than one MiB
# Largest size in bytes of a message's JSON, and of the header of its tensors, because the grader checks their contents
# piece by piece
MAX_JSON_BYTES = MIB // 2
# Longest axis of a tensor without numbers, because a tensor of shape (2**40, 0) would fill any memory as a list
MAX_EMPTY_AXIS = 2**16
MAX_LINES = 100

TICK_SECONDS = 0.5


class ProtocolError(ValueError):
    """The received bytes are not a message, or a value cannot be sent; the text gives the reason in one line."""


def encode(value: Plain) -> bytes:
    """Return the bytes of a plain value; raise ProtocolError if the value is not plain, or is too large."""
    tensors: dict[str, Tensor] = {}
    try:
        text = json.dumps(to_json_tree(value, tensors)).encode()
        numbers = save(tensors) if tensors else b""
    except (ValueError, TypeError, RecursionError, RuntimeError) as error:
        raise ProtocolError(one_line(str(error), MAX_MESSAGE_CHARS)) from error
    _check_empty(tensors)
    if len(text) > MAX_JSON_BYTES or len(text) + len(numbers) > MAX_BYTES - LENGTH_BYTES:
        raise ProtocolError(f"{len(text) + len(numbers):,} bytes are too many: the limit is {MAX_BYTES:,}")
    return len(text).to_bytes(LENGTH_BYTES, "little") + text + numbers


def decode(message: bytes) -> Plain:
    """Return the plain value in these bytes; raise only ProtocolError, for any invalid bytes."""
    size = int.from_bytes(message[:LENGTH_BYTES], "little")
    text, numbers = message[LENGTH_BYTES : LENGTH_BYTES + size], message[LENGTH_BYTES + size :]
    if len(text) < size or size > MAX_JSON_BYTES or int.from_bytes(numbers[:8], "little") > MAX_JSON_BYTES:
        raise ProtocolError("the text of a message is missing or too long")
    try:
        tensors = load(numbers) if numbers else {}
        _check_empty(tensors)
        return from_json_tree(json.loads(text), tensors)
    except Exception as error:  # the parsers of JSON and safetensors raise many exceptions
        raise ProtocolError(f"a value is not plain data ({type(error).__name__})") from error


def _check_empty(tensors: Mapping[str, Tensor]) -> None:
    if any(not tensor.numel() and max(tensor.shape) > MAX_EMPTY_AXIS for tensor in tensors.values()):
        raise ProtocolError("a tensor has a long axis but no numbers")


class Channel:
    """One end of a connection, which calls `tick` every TICK_SECONDS, no matter how often the other end sends or reads.

    Every method raises OSError if the other end is closed, and TimeoutError if it is late.
    """

    def __init__(self, connection: socket.socket, tick: Callable[[], None] = lambda: None) -> None:
        self._connection = connection
        self._tick, self._ticked = tick, monotonic()

    def send(self, value: Plain, seconds: float | None = None) -> None:
        """Send a value. If it cannot be sent, raise ProtocolError and send nothing."""
        message = encode(value)
        end = None if seconds is None else monotonic() + seconds
        unsent = memoryview(len(message).to_bytes(LENGTH_BYTES, "little") + message)
        while unsent:
            sent = self._within(end, self._connection.send, unsent)
            unsent = unsent[sent:]

    def receive(self, seconds: float | None = None) -> Plain:
        """Return the next value. Raise ProtocolError if it is not valid."""
        end = None if seconds is None else monotonic() + seconds
        length = int.from_bytes(self._read(LENGTH_BYTES, end), "little")
        if length > MAX_BYTES:
            raise ProtocolError(f"a message has {length:,} bytes, more than the limit of {MAX_BYTES:,}")
        return decode(self._read(length, end))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _read(self, count: int, end: float | None) -> bytes:
        read = bytearray()
        while len(read) < count:
            part = self._within(end, self._connection.recv, min(count - len(read), MIB))
            if not part:
                raise ConnectionResetError("the other process closed the connection")
            read += part
        return bytes(read)

    def _within(self, end: float | None, act: Callable[[Any], Any], argument: Any) -> Any:
        while True:
            now = monotonic()
            if now >= self._ticked + TICK_SECONDS:
                self._tick()
                self._ticked = now
            if end is not None and now >= end:
                raise TimeoutError
            self._connection.settimeout(None if end is None else min(end - now, TICK_SECONDS))
            with suppress(TimeoutError):
                return act(argument)


def case_to_plain(case: Case) -> Plain:
    """Return the inputs and the script of a case as a plain value, without its name."""
    run = {"layout": case.layout, "gradients": list(case.gradients), "by": list(case.by)}
    return {"args": list(case.args), "kwargs": dict(case.kwargs), "script": case.script, **run}


def case_from_plain(value: Any) -> Case:
    """Return the case from the result of `case_to_plain`. It comes from the grader, so it is not checked."""
    run = {"layout": value["layout"], "gradients": tuple(value["gradients"]), "by": tuple(value["by"])}
    return Case("", tuple(value["args"]), value["kwargs"], value["script"], **run)


def outcome_to_plain(outcome: Outcome) -> Plain:
    """Return an outcome as a plain value, with texts cut to the length that a report can show."""
    return {
        "value": outcome.value,
        "failure": failure_to_plain(outcome.failure) if outcome.failure else None,
        "printed": replace_surrogates(outcome.printed[:MAX_PRINTED_CHARS]),
        "forbidden": [[_line(use.name), _line(use.line), use.number] for use in outcome.forbidden[:MAX_LINES]],
        **{name: _lines(getattr(outcome, name)) for name in ("warned", "changed", "shared")},
    }


def outcome_from_plain(value: Plain) -> Outcome:
    """Return the outcome in a value from an untrusted sender; raise ProtocolError if it is invalid or too long."""
    record = record_of(value, *(field.name for field in fields(Outcome)))
    failure = None if record["failure"] is None else failure_from_plain(record["failure"])
    if failure and record["value"] is not None:
        raise ProtocolError("an outcome has both a value and a failure")
    try:
        result = to_plain(record["value"])
    except TypeError as error:
        raise ProtocolError(str(error)) from error
    lines = {name: _checked_lines(record[name]) for name in ("warned", "changed", "shared")}
    printed, forbidden = text_from(record["printed"], MAX_PRINTED_CHARS), uses_from_plain(record["forbidden"])
    return Outcome(result, failure, printed, forbidden=forbidden, **lines)


def failure_to_plain(failure: Failure) -> Plain:
    """Return a failure as a plain value, with each text on one line."""
    texts = {name: _line(getattr(failure, name)) for name in ("message", "line", "cause")}
    return {"kinds": _lines(failure.kinds), "number": failure.number, "written": _lines(failure.written), **texts}


def failure_from_plain(value: Plain) -> Failure:
    """Return the failure in a value from an untrusted sender; raise ProtocolError if it is invalid."""
    record = record_of(value, *(field.name for field in fields(Failure)))
    kinds, number = _checked_lines(record["kinds"]), record["number"]
    if not kinds or type(number) is not int or not 0 <= number < 10**6:
        raise ProtocolError("a failure lacks its kind or its line")
    message, line, cause = (_checked(record[name]) for name in ("message", "line", "cause"))
    return Failure(kinds, message, line, number, cause, _checked_lines(record["written"]))


def uses_from_plain(value: Plain) -> tuple[Use, ...]:
    """Return the uses of forbidden names from an untrusted sender; raise ProtocolError if they are invalid."""
    if not isinstance(value, list) or len(value) > MAX_LINES:
        raise ProtocolError("the forbidden names are not a list, or too many")
    for use in value:
        if not isinstance(use, list) or len(use) != 3 or type(use[2]) is not int:
            raise ProtocolError("a use of a forbidden name must have a name, a line and its number")
    return tuple(Use(_checked(name), _checked(line), number) for name, line, number in value)


def record_of(value: Plain, *names: str) -> dict[str, Any]:
    """Return a dict with exactly these keys, or raise ProtocolError."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise ProtocolError(f"a record must have exactly the keys {', '.join(names)}")
    return value


def text_from(value: Plain, max_chars: int) -> str:
    """Return a text from an untrusted sender; raise ProtocolError if it is not a text, or too long."""
    if not isinstance(value, str) or len(value) > max_chars:
        raise ProtocolError("a text is missing or too long")
    return replace_surrogates(value)


def _line(text: str) -> str:
    return one_line(text, MAX_MESSAGE_CHARS)


def _lines(texts: tuple[str, ...]) -> list[str]:
    return [_line(text) for text in texts[:MAX_LINES]]


def _checked(text: Plain) -> str:
    """Return a text if a page or a terminal can show it unchanged: one printable line, not too long."""
    if not isinstance(text, str) or text != one_line(text, MAX_MESSAGE_CHARS):
        raise ProtocolError("a text is not one short line")
    return text


def _checked_lines(texts: Plain) -> tuple[str, ...]:
    if not isinstance(texts, list) or len(texts) > MAX_LINES:
        raise ProtocolError("a list of lines is missing or too long")
    return tuple(map(_checked, texts))
