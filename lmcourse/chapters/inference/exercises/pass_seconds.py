"""The exercise on the time of a pass through the model: the longer of arithmetic and memory."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

(H100, H100_BANDWIDTH), (A100, A100_BANDWIDTH) = (
    (float(chip.peak("bf16")), chip.bandwidth) for chip in map(find_accelerator, ("h100-sxm", "a100-sxm-80gb"))
)
LLAMA, LLAMA_TOKEN = 8_030_261_248, 131_072
"""Llama 3 8B: its parameters, and the bytes that a token adds to the cache."""
GIB = 2**30


def _exactly(
    parameters: int, cache_bytes: int, batch: int, new: int, peak: float, bandwidth: float, width: int = 2
) -> tuple[float, str]:
    """Add up per token and per text, in fractions."""
    flops = sum(2 * parameters for _ in range(batch * new))
    moved = parameters * width + sum(cache_bytes for _ in range(batch))
    arithmetic, memory = (Fraction(n) / Fraction(rate) for n, rate in ((flops, peak), (moved, bandwidth)))
    return float(max(arithmetic, memory)), "arithmetic" if arithmetic > memory else "memory"


def _hidden(random: Random) -> list[Case]:
    n, tokens = random.randint(10**10, 10**11), (random.randint(100, 5000), random.randint(10, 99))
    return [
        case("prefill", 70_553_706_496, 0, 1, 4096, A100, A100_BANDWIDTH),
        case("prefill", LLAMA, 0, 16, 128, H100, H100_BANDWIDTH),
        case("decoding", LLAMA, 131_072 * LLAMA_TOKEN, 1, 1, H100, H100_BANDWIDTH),
        case("decoding", LLAMA, 0, 1, 1, A100, A100_BANDWIDTH),
        case("a large batch", LLAMA, 100 * LLAMA_TOKEN, 512, 1, H100, H100_BANDWIDTH),
        case("a large batch", LLAMA, 10_000 * LLAMA_TOKEN, 512, 1, H100, H100_BANDWIDTH),
        case("a large batch", 175_000_000_000, GIB // 64, 600, 3, A100, A100_BANDWIDTH),
        case("other widths", LLAMA, GIB, 4, 1, H100, H100_BANDWIDTH, 1),
        case("other widths", LLAMA, GIB, 4, 1, H100 / 8, H100_BANDWIDTH, width=4),
        case("other widths", LLAMA, 0, 4, 100, H100 / 8, H100_BANDWIDTH, width=4),
        case("a few new tokens", LLAMA, GIB, 1, 5, H100, H100_BANDWIDTH),
        case("a few new tokens", LLAMA, GIB, 64, 5, A100, A100_BANDWIDTH),
        case("equally long", 1024, 0, 1, 2, 2.0, 1.0),
        case("equally long", 512, 1024, 4, 5, 1.0, 1.0),
        case("a tiny model", 7, 3, 2, 1, 0.5, 8.0),
        case("a tiny model", 7, 3, 2, 1, 1e3, 8.0),
        case("other models", n, tokens[0] * 2**16, random.randint(2, 9), 1, H100, H100_BANDWIDTH),
        case("other models", n, tokens[1] * 2**16, random.randint(100, 300), 7, A100, A100_BANDWIDTH, 1),
    ]


pass_seconds = Exercise(
    "pass_seconds",
    points=3,
    minutes=6,
    difficulty=2,
    reference=_exactly,
    cases=[
        case("Llama 3 8B reads a prompt of 2,048", LLAMA, 0, 1, 2048, H100, H100_BANDWIDTH),
        case("it writes a token", LLAMA, 2048 * LLAMA_TOKEN, 1, 1, H100, H100_BANDWIDTH),
        case("a token for each of 64 texts", LLAMA, 2048 * LLAMA_TOKEN, 64, 1, H100, H100_BANDWIDTH),
        case("a byte per weight", LLAMA, 2048 * LLAMA_TOKEN, 1, 1, H100, H100_BANDWIDTH, 1),
        case("four bytes per weight, a prompt of 2,048", LLAMA, 0, 1, 2048, H100, H100_BANDWIDTH, width=4),
        case("five new tokens of one text", LLAMA, GIB, 1, 5, H100, H100_BANDWIDTH),
        case("four new tokens for each of 128 texts", LLAMA, 64 * LLAMA_TOKEN, 128, 4, H100, H100_BANDWIDTH),
        case("two tokens of each of 768 texts, four bytes per weight", LLAMA, 0, 768, 2, H100, H100_BANDWIDTH, width=4),
        case("equally long", 1024, 0, 1, 1, 1.0, 1.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "Find two numbers first: FLOPs, and bytes. Every weight multiplies and adds once for every new token of "
        "every text.",
        "FLOPs = 2 · parameters · batch · new. Bytes = width · parameters, once for the batch, plus a cache per text.",
        "Divide the FLOPs by peak and the bytes by bandwidth. The longer time counts.",
    ],
)


@pass_seconds.variant
def the_longer_of_two(
    parameters: int, cache_bytes: int, batch: int, new: int, peak: float, bandwidth: float, width: int = 2
) -> tuple[float, str]:
    flops = 2 * parameters * batch * new
    moved = width * parameters + batch * cache_bytes
    arithmetic = flops / peak
    memory = moved / bandwidth
    return max(arithmetic, memory), "arithmetic" if arithmetic > memory else "memory"


pass_seconds.slips(
    the_longer_of_two,
    {
        "max( → min(": "You return the shorter time. The longer of the two decides.",
        "width * parameters + → parameters +": "You read one byte per weight. A weight has `width` bytes.",
        "max(arithmetic, memory) → max(arithmetic, memory) / (batch * new)": "You return the time of a token. Return "
        "that of the whole pass.",
        "batch * cache_bytes → 2 * batch * cache_bytes": "You read each cache twice. `cache_bytes` counts keys and "
        "values together.",
        "max(arithmetic, memory) → arithmetic + memory": "You add the two times. A chip computes while it reads: the "
        "longer one counts.",
        'max( → min( ;; "arithmetic" if → "memory" if ;; else "memory" → else "arithmetic"': "You return the shorter "
        "time. The longer of the two decides.",
        '"arithmetic" if → "memory" if ;; else "memory" → else "arithmetic"': "You swapped the two names of the limit.",
        "width * parameters + batch * cache_bytes → 0": "You count only the arithmetic. With few new tokens a chip "
        "waits for its memory.",
        "2 * parameters * batch * new → 0": "You count only the memory. With many new tokens the arithmetic takes "
        "longer.",
        "batch * cache_bytes → cache_bytes": "You read one cache for all texts. Each text has its own.",
        "width * parameters + batch * cache_bytes → batch * (width * parameters + cache_bytes)": "You read the "
        "weights for every text. One reading serves the whole batch.",
        "flops / → flops // ;; moved / → moved //": "You round the times down to whole numbers (`//`). Divide with "
        "`/`: most passes take less than a second.",
        "batch * cache_bytes → batch * width * cache_bytes": "You multiply the cache by `width`. `cache_bytes` is in "
        "bytes already.",
        "batch * cache_bytes → batch * new * cache_bytes": "You read the cache for every new token. A pass reads it "
        "once for each text.",
        "batch * new → new": "You leave out the batch: the arithmetic is done for every text.",
        "2 * parameters * batch → width * parameters * batch": "You take the 2 FLOPs of a weight for its bytes. 2 is "
        "one multiplication and one addition, whatever the width.",
        "2 * parameters * batch → 2 * width * parameters * batch": "You multiply the FLOPs by `width`. A weight "
        "multiplies and adds once, however many bytes it has.",
        "2 * parameters * batch → 6 * parameters * batch": "You count six FLOPs per weight and token. That is a step "
        "of training; reading tokens takes two.",
        "width * parameters → width / 8 * parameters": "You divide `width` by 8. It is in bytes already.",
        "width * parameters → new * width * parameters": "You read the weights for every new token. One pass serves "
        "all new tokens of a text.",
        "max(arithmetic, memory) → 1000 * max(arithmetic, memory)": "You return milliseconds. Return seconds.",
        "flops / peak → flops / bandwidth ;; moved / bandwidth → moved / peak": "You divide FLOPs by bytes/s and "
        "bytes by FLOP/s. Swap the two rates.",
        "> memory → >= memory": 'If both take equally long, the task asks for "memory". You return "arithmetic".',
        "width * parameters + batch * cache_bytes → new * (width * parameters + batch * cache_bytes)": "You read "
        "everything for every new token. One pass serves all new tokens of a text.",
        "2 * parameters → parameters": "You count one FLOP per weight and token. A weight multiplies *and* adds: two "
        "FLOPs.",
        "batch * new → batch": "You count one token per text, whatever `new` says.",
        "max( → min( ;; > memory → < memory": "You return the shorter time, and its name. The pass ends when the "
        "longer of the two is over.",
        "width * parameters → 2 * parameters": "You take two bytes per weight, whatever `width` says.",
        " + batch * cache_bytes → ": "You leave out the cache. A pass reads it as well as the weights.",
    },
)
