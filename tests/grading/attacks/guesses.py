"""Answers without thought: what comes in, something of its shape, luck, nothing, an object that is not there yet."""

from __future__ import annotations

from tests.grading.attacks.attack import attack

PICKED = "given = [*args, *kwargs.values()]\n"

GUESSES = [
    attack("returns_its_input", "gives back what it was given first", every=f"{PICKED}return given[0] if given else 0"),
    attack("returns_its_last_input", "gives back what it was given last", every=f"{PICKED}return given[-1]"),
    attack(
        "zeros_of_its_shape",
        "zeros, or nothing, of the type that it was given",
        every=f"{PICKED}return given[0] * 0 if given else 0.0",
    ),
    attack(
        "ones_of_its_shape",
        "ones of the shape that it was given, and their share of a row",
        every=f"{PICKED}one = torch.as_tensor(given[0]).double()\nreturn torch.ones_like(one) / max(one.shape or (1,))",
    ),
    attack(
        "luck",
        "a number that depends on the input, out of thin air",
        every="import zlib\nreturn 2.0 ** (zlib.crc32(repr((args, kwargs)).encode()) % 32 - 20)",
    ),
    attack("sum_of_inputs", "the sum of all numbers that it was given", every="return float(sum(map(float, args)))"),
    attack("never_there", "a coroutine in place of a result", every="async def later(): return 1.0\nreturn later()"),
    attack("itself", "returns itself", every="return NAME"),
    attack(
        "remembers", "what the case before was given", "seen = [(1.0,)]", every="seen.append(args)\nreturn seen[-2][0]"
    ),
]
"""All attacks of this file."""
