"""The exercise on what share of a step tensor parallelism spends on the wire."""

from __future__ import annotations

from random import Random

from lmcourse.accounting.parallel import all_reduce_bytes
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _by_parts(d_model: int, devices: int, peak: float, bandwidth: float) -> float:
    """Seconds on the wire over seconds of arithmetic, for one token."""
    tensor = 2 * d_model
    sent = 2 * (2 * (devices - 1) / devices * tensor)
    flops = 2 * (12 * d_model**2) / devices
    return (sent / bandwidth) / (flops / peak)


def _hidden(random: Random) -> list[Case]:
    return [
        case("one device", 4096, 1, 1e15, 1e11),
        case("two devices", 4096, 2, 1e15, 4e11),
        case("other devices", 5120, 16, 312e12, 300e9),
        case("other devices", 768, 3, 1e12, 1e9),
        case("other devices", random.randint(1000, 9000), random.randint(2, 64), 9e14, 9e11),
    ]


tensor_share = Exercise(
    "tensor_share",
    points=1,
    minutes=5,
    difficulty=2,
    reference=_by_parts,
    cases=[
        case("d = 16,384 on 8 H100s over NVLink", 16_384, 8, 989.4e12, 450e9),
        case("the same over 50 GB/s", 16_384, 8, 989.4e12, 50e9),
        case("d = 4,096", 4_096, 8, 989.4e12, 450e9),
        case("two devices", 4_096, 2, 989.4e12, 450e9),
    ],
    hidden_cases=_hidden,
    hints=[
        "Take one token. How many FLOPs does it cost in 12·d² weights, and how many of them fall to each device?",
        "An all-reduce of its d numbers of 2 bytes makes each device send 2(T − 1)/T times as many bytes. There are "
        "two.",
        "bytes / bandwidth, over FLOPs / (devices · peak).",
    ],
    may_use_package=True,
)


@tensor_share.variant
def simplified(d_model: int, devices: int, peak: float, bandwidth: float) -> float:
    return (devices - 1) * peak / (3 * d_model * bandwidth)


@tensor_share.variant
def for_many_tokens(d_model: int, devices: int, peak: float, bandwidth: float) -> float:
    tokens = 1024
    wire = 2 * 2 * (devices - 1) / devices * tokens * d_model * 2 / bandwidth
    return wire / (2 * 12 * d_model * d_model * tokens / devices / peak)


@tensor_share.variant
def by_intensities(d_model: int, devices: int, peak: float, bandwidth: float) -> float:
    flops_per_byte = (24 * d_model**2 / devices) / (8 * d_model * (1 - 1 / devices)) if devices > 1 else float("inf")
    return peak / bandwidth / flops_per_byte


@tensor_share.variant
def with_the_courses_own(d_model: int, devices: int, peak: float, bandwidth: float) -> float:
    tokens = 100
    wire = 2 * all_reduce_bytes(2 * d_model * tokens, devices) / bandwidth
    return wire / (2 * 12 * d_model**2 * tokens / devices / peak)


@tensor_share.misconception(
    "Yours is half of it. There are two all-reduces in a block, one after attention and one after the feed-forward "
    "layer, and a number in bf16 has two bytes."
)
def half(d_model: int, devices: int, peak: float, bandwidth: float) -> float:
    return _by_parts(d_model, devices, peak, bandwidth) / 2


@tensor_share.misconception("You took backward in. It has twice the arithmetic, and as much traffic as forward.")
def backward_too(d_model: int, devices: int, peak: float, bandwidth: float) -> float:
    return _by_parts(d_model, devices, peak, bandwidth) * 2 / 3


@tensor_share.misconception(
    "That is arithmetic over communication. Asked is the time on the wire over that of arithmetic."
)
def inverted(d_model: int, devices: int, peak: float, bandwidth: float) -> float:
    return 1 / _by_parts(d_model, devices, peak, bandwidth)


@tensor_share.misconception("In a ring each device sends 2(T − 1)/T times the tensor, not 2(T − 1) times.")
def whole_ring(d_model: int, devices: int, peak: float, bandwidth: float) -> float:
    return _by_parts(d_model, devices, peak, bandwidth) * devices


@tensor_share.misconception("The devices share the products: each does one part of T.")
def arithmetic_not_shared(d_model: int, devices: int, peak: float, bandwidth: float) -> float:
    return _by_parts(d_model, devices, peak, bandwidth) / devices


@tensor_share.misconception("A multiplication and an addition for each weight: 2 FLOPs.")
def one_flop(d_model: int, devices: int, peak: float, bandwidth: float) -> float:
    return _by_parts(d_model, devices, peak, bandwidth) * 2


@tensor_share.misconception("You count the tensor once whole for each all-reduce. Each device sends 2(T − 1)/T of it.")
def one_tensor(d_model: int, devices: int, peak: float, bandwidth: float) -> float:
    return (4 * d_model / bandwidth) / (24 * d_model**2 / devices / peak)
