"""The exercise on the ridge point, from the numbers in data sheets."""

from __future__ import annotations

import re
from fractions import Fraction
from random import Random

import numpy as np

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

UNITS = {"GB/s": 10**9, "TB/s": 10**12, "GiB/s": 2**30, "TiB/s": 2**40}


def _ridge(tflops: float, bandwidth: float, unit: str = "GB/s", sparse: bool = False) -> float:
    """Compute the ridge point in exact fractions."""
    if unit not in UNITS:
        raise ValueError(f"unknown unit of bandwidth {unit!r}")
    peak = Fraction(tflops) * 10**12 / (2 if sparse else 1)
    return float(peak / (Fraction(bandwidth) * UNITS[unit]))


def _cases(random: Random) -> list[Case]:
    def tflops() -> float:
        return round(random.uniform(50, 3000), 1)

    return [
        case("powers of two", 128.0, 512, unit="GiB/s"),
        case("powers of two", 256.0, 0.5, unit="TiB/s", sparse=True),
        case("terabytes", 100.0, 2, unit="TB/s"),
        *(case("unknown units", 312.0, 600.0, unit=unit) for unit in ("gb/s", "TB", "PB/s", "MB/s", " GB/s", "")),
        *(case("other chips", tflops(), random.randint(300, 9000)) for _ in range(3)),
        case("sparse peaks", tflops(), random.randint(300, 9000), sparse=True),
        *(case("terabytes", tflops(), round(random.uniform(0.3, 9), 2), unit="TB/s") for _ in range(2)),
        case("powers of two", tflops(), round(random.uniform(0.3, 9), 2), unit="TiB/s"),
        case("powers of two", tflops(), random.randint(300, 9000), unit="GiB/s", sparse=True),
    ]


ridge_point = Exercise(
    "ridge_point",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_ridge,
    cases=[
        case("a toy: 1 TFLOP/s and 100 GB/s", 1.0, 100.0),
        case("A100 80 GB, from its data sheet", 312.0, 2039.0),
        case("the same bandwidth in TiB/s", 312.0, 1.8545, unit="TiB/s"),
        case("the same bandwidth in GiB/s", 312.0, 1899.0, unit="GiB/s"),
        case("H100, from the sparse figure", 1978.9, 3.35, unit="TB/s", sparse=True),
        case("gigabits", 312.0, 600.0, unit="Gbit/s"),
        case("small letters", 312.0, 600.0, unit="gb/s"),
        case("a space before the unit", 312.0, 600.0, unit=" GB/s"),
    ],
    tolerance=Tolerance(1e-6),  # float32 is enough
    hidden_cases=_cases,
    hints=[
        "Convert both to base units first: FLOP/s and bytes/s. A tera is 10¹², a giga 10⁹.",
        'A dict holds what each unit is worth: {"GB/s": 1e9, "TB/s": 1e12, "GiB/s": 2**30, "TiB/s": 2**40}.',
        "Peak divided by bandwidth; half the peak if it is the sparse one. An unknown unit is a ValueError.",
    ],
)


@ridge_point.variant
def one_branch_for_each_unit(tflops: float, bandwidth: float, unit: str = "GB/s", sparse: bool = False) -> float:
    if unit == "GB/s":
        giga = bandwidth
    elif unit == "TB/s":
        giga = 1000 * bandwidth
    elif unit == "GiB/s":
        giga = bandwidth * 1.073741824
    elif unit == "TiB/s":
        giga = bandwidth * 1024**4 / 1000**3
    else:
        raise ValueError(unit)
    ridge = tflops * 1000 / giga
    return ridge / 2 if sparse else ridge


@ridge_point.variant
def the_unit_taken_apart(tflops: float, bandwidth: float, unit: str = "GB/s", sparse: bool = False) -> np.float32:
    found = re.fullmatch(r"([GT])(i?)B/s", unit)
    if found is None:
        raise ValueError(f"unknown unit {unit}")
    power = {"G": 3, "T": 4}[found[1]]
    return np.float32(tflops * (0.5 if sparse else 1.0)) / np.float32(
        bandwidth * (1024 if found[2] else 1000) ** power / 1e12
    )


@ridge_point.variant
def exactly(tflops: float, bandwidth: float, unit: str = "GB/s", sparse: bool = False) -> Fraction:
    names = ["GB/s", "TB/s", "GiB/s", "TiB/s"]
    worth = [10**9, 10**12, 2**30, 2**40][names.index(unit)]
    return Fraction(tflops) / (1 + sparse) * 10**12 / worth / Fraction(bandwidth)


@ridge_point.variant
def what_a_unit_is_worth(tflops: float, bandwidth: float, unit: str = "GB/s", sparse: bool = False) -> float:
    worth = {"GB/s": 1e9, "TB/s": 1e12, "GiB/s": 2**30, "TiB/s": 2**40}
    if unit not in worth:
        raise ValueError(f"unknown unit of bandwidth {unit!r}")
    peak = tflops * 10**12 / (2 if sparse else 1)
    return peak / (bandwidth * worth[unit])


ridge_point.slips(
    what_a_unit_is_worth,
    {
        "2**30 → 1e9 ;; 2**40 → 1e12": "You read a TiB as a TB (and a GiB as a GB). A TiB is 2⁴⁰ bytes, a tenth more "
        "than a TB.",
        '10**12 → (2**40 if "i" in unit else 10**12)': "With binary units you count the peak in powers of 1024, too. "
        "Only the bandwidth is in such a unit: a TFLOP is 10¹² FLOPs.",
        "1e9 → 2**30 ;; 1e12 → 2**40": "You read a TB as a TiB. Data sheets count in powers of ten: a TB/s is 10¹² "
        "bytes/s.",
        " / (2 if sparse else 1) → ": "You use the sparse peak. Weights in training are dense: half of it.",
        "/ (2 if sparse else 1) → * (2 if sparse else 1)": "You double the figure for sparse matrices. It is already "
        "twice the dense peak: halve it.",
        "(2 if sparse else 1) → 2": "You halve every peak. Only the figure for sparse matrices needs that.",
        "peak / (bandwidth * worth[unit]) → bandwidth * worth[unit] / peak": "You return bandwidth / peak, bytes per "
        "FLOP. The ridge is FLOPs per byte.",
        '10**12 → (10**9 if unit.startswith("G") else 10**12)': "You divide tera by giga, so the result is a thousand "
        "times too small. Convert both to base units.",
        "return peak → return 2 * peak": "You return FLOPs per bf16 number. The ridge is FLOPs per byte.",
        'raise ValueError(f"unknown unit of bandwidth {unit!r}") → unit = "GB/s"': "You guess what an unknown unit "
        "means. A gigabit is an eighth of a gigabyte: raise ValueError.",
        "if unit not in worth: → unit = {name.lower(): name for name in worth}.get(unit.lower(), unit)\n    if unit "
        "not in worth:": "You accept units in small letters. In “gb/s” the b may be a bit: accept only the four names "
        "as they are written.",
        'if unit not in worth: → unit = f"{unit[:1]}B/s"\n    if unit not in worth:': "You look only at the first "
        "letter of the unit. GiB and Gbit begin with the same letter as GB, and mean something else.",
        "2**30 → 1e18 / 2**30 ;; 2**40 → 1e24 / 2**40": "You make a TiB (and a GiB) smaller than a TB. It is larger: "
        "1,024⁴ bytes, not 1,000⁴.",
        '"GiB/s": 2**30, "TiB/s": 2**40 → "GiB/s": 2**40, "TiB/s": 2**30': "You swapped GiB and TiB. A GiB is 2³⁰ "
        "bytes, a TiB 2⁴⁰.",
        '"GB/s": 1e9, "TB/s": 1e12 → "GB/s": 1e12, "TB/s": 1e9': "You swapped GB and TB. A GB is 10⁹ bytes, a TB 10¹².",
        "2**30 → 2**20 ;; 2**40 → 2**30": "A GiB of yours is 2²⁰ bytes, and a TiB 2³⁰. A GiB has 2³⁰ bytes, a TiB 2⁴⁰.",
        "bandwidth * worth[unit] → bandwidth / worth[unit]": "You divide the bandwidth by the size of its unit. "
        "Multiply: a TB/s is 10¹² bytes/s.",
        "tflops * 10**12 → tflops": "You leave the peak in TFLOP/s. A tera is 10¹²: convert both to base units.",
        "tflops * 10**12 → tflops * 10**9": "You take a tera for 10⁹. It is 10¹².",
        "return peak / (bandwidth * worth[unit]) → return round(peak / (bandwidth * worth[unit]), 1)": "You round the "
        "ridge point. Return it as it is: others compute with it.",
        "2 if sparse else 1 → 1 if sparse else 2": "You halve the dense peak, and keep the sparse one. The figure for "
        "sparse matrices is the one to halve.",
        "if unit not in worth: → unit = unit.strip()\n    if unit not in worth:": "You accept a unit with a space "
        "before it. Accept only the four names as they are written.",
    },
)
