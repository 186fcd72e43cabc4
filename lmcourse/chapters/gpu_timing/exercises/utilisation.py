"""The exercise on MFU from a log, with the right peak or an error."""

from __future__ import annotations

import statistics
from fractions import Fraction
from random import Random

import torch

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.formats import Format
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Peaks = dict[str, dict[str, float]]
"""Dense FLOP/s by the driver's name of the device and by format."""


def _peaks(name: str, *numbers: Format) -> dict[str, float]:
    accelerator = find_accelerator(name)
    return {number: float(accelerator.peak(number)) for number in numbers}


PEAKS: Peaks = {
    "NVIDIA A100-SXM4-80GB": _peaks("a100-sxm-80gb", "fp32", "tf32", "bf16"),
    "NVIDIA H100 PCIe": _peaks("h100-pcie", "fp32", "tf32", "bf16"),
    "NVIDIA H100 80GB HBM3": _peaks("h100-sxm", "fp32", "tf32", "bf16"),
    "Tesla V100-SXM2-32GB": _peaks("v100-sxm-32gb", "fp32", "fp16"),
}
A100, H100_PCIE, H100, V100 = PEAKS


def _mfu(flops: float, seconds: list[float], device: str, number: str, peaks: Peaks) -> float:
    """Divide the time that the work would take at the peak by the time that it took."""
    if device not in peaks or number not in peaks[device]:
        raise ValueError("no peak is known for this device and format")
    share = flops / peaks[device][number] / statistics.median(seconds)
    if share > 1:
        raise ValueError("the rate is above the peak")
    return share


def _cases(random: Random) -> list[Case]:
    def log(share: float, device: str, number: str) -> list[object]:
        seconds = [random.uniform(0.09, 0.11) for _ in range(4)] + [random.uniform(0.3, 0.5)]
        random.shuffle(seconds)
        flops = share * PEAKS[device][number] * statistics.median(seconds)
        return [flops, seconds, device, number, PEAKS]

    toy = {"toy": {"fp8": 1024.0, "bf16": 512.0}, "toy XL": {"bf16": 2048.0}}
    return [
        case("other GPUs", 256.0, [1.0, 4.0, 2.0], "toy", "bf16", toy),
        case("other GPUs", 256.0, [0.5], "toy XL", "bf16", toy),
        case("other GPUs", 3.0, [2.0], "toy", "bf16", toy),
        case("exactly the peak", 512.0, [0.5], "toy", "fp8", toy),
        case("an even number of steps", 256.0, [1.0, 0.5, 4.0, 3.0], "toy", "bf16", toy),
        case("rates that cannot be", 514.0, [1.0, 1.0, 4.0], "toy", "bf16", toy),
        case("unknown GPUs", 256.0, [1.0], "toy X", "bf16", toy),
        case("unknown GPUs", 256.0, [1.0], "TOY", "bf16", toy),
        case("unknown GPUs", 256.0, [1.0], "a toy", "bf16", toy),
        case("formats it does not have", 256.0, [1.0], "toy XL", "fp8", toy),
        case("formats it does not have", 256.0, [1.0], "toy", "BF16", toy),
        *(case("other steps", *log(random.uniform(0.2, 0.6), name, "bf16")) for name in (A100, H100_PCIE, H100)),
        case("other formats", *log(random.uniform(0.2, 0.6), H100, "tf32")),
        case("other formats", *log(random.uniform(0.2, 0.6), V100, "fp16")),
        case("fp32", *log(random.uniform(0.2, 0.6), A100, "fp32")),
        *(case("rates that cannot be", *log(random.uniform(2.1, 2.9), name, "bf16")) for name in (A100, H100)),
    ]


mfu_of_step = Exercise(
    "mfu_of_step",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_mfu,
    cases=[
        case("half the bf16 peak", 49.47e12, [0.1, 0.1, 0.1], H100, "bf16", PEAKS),
        case("one disturbed step", 0.624e12, [0.1, 0.09, 0.12, 0.4, 0.1], A100, "bf16", PEAKS),
        case("four steps", 1.1e12, [0.13, 0.1, 0.2, 0.11], H100, "tf32", PEAKS),
        case("another variant, two steps", 18.9e12, [0.03125, 0.0625], H100_PCIE, "bf16", PEAKS),
        case("a V100 in fp16", 12.5e12, [0.25, 0.2, 0.25], V100, "fp16", PEAKS),
        case("in fp32", 1.95e12, [0.2], A100, "fp32", PEAKS),
        case("a GPU that is not listed", 15.6e12, [0.1], "NVIDIA H100 NVL", "bf16", PEAKS),
        case("in small letters", 15.6e12, [0.1], A100.lower(), "bf16", PEAKS),
        case("a part of two names", 15.6e12, [0.1], "NVIDIA H100", "bf16", PEAKS),
        case("more than a listed name", 15.6e12, [0.1], f"{H100_PCIE} 80GB", "bf16", PEAKS),
        case("a format in capitals", 15.6e12, [0.1], A100, "BF16", PEAKS),
        case("a V100 has no bf16", 1.0e12, [0.1], V100, "bf16", PEAKS),
        case("more than the peak", 40.0e12, [0.1], A100, "bf16", PEAKS),
        edge(case("exactly the peak", 156e12, [0.5], A100, "bf16", PEAKS)),
    ],
    tolerance=Tolerance(1e-6),  # float32 is enough
    hidden_cases=_cases,
    hints=[
        "The typical step is the median of seconds. flops divided by it is the achieved rate.",
        "peaks[device][number] is the peak to divide by. If it is not in the table, raise ValueError: do not guess.",
        "If the share is above 1, something was counted or timed wrongly: raise ValueError.",
    ],
)


@mfu_of_step.variant
def a_table_of_pairs(
    flops: float, seconds: list[float], device: str, number: str, peaks: dict[str, dict[str, float]]
) -> Fraction:
    table = {(name, kind): peak for name, row in peaks.items() for kind, peak in row.items()}
    if (device, number) not in table:
        raise ValueError((device, number))
    share = Fraction(flops) / Fraction(table[device, number]) / statistics.median(map(Fraction, seconds))
    if share <= 1:
        return share
    raise ValueError(str(share))


@mfu_of_step.variant
def in_single_precision(
    flops: float, seconds: list[float], device: str, number: str, peaks: dict[str, dict[str, float]]
) -> torch.Tensor:
    peak = dict(peaks.get(device) or {}).get(number)
    if peak is None:
        raise ValueError("no peak is known for this device and format")
    share = torch.tensor(flops / peak) / torch.quantile(torch.tensor(seconds), 0.5)
    if share.item() > 1:
        raise ValueError("the share is above 100 %")
    return share


@mfu_of_step.variant
def time_at_the_peak(
    flops: float, seconds: list[float], device: str, number: str, peaks: dict[str, dict[str, float]]
) -> float:
    if device not in peaks or number not in peaks[device]:
        raise ValueError("no peak is known for this device and format")
    share = flops / peaks[device][number] / statistics.median(seconds)
    if share > 1:
        raise ValueError("the rate is above the peak")
    return share


mfu_of_step.slips(
    time_at_the_peak,
    {
        'if device not in → family = device.split("-")[0].split()[1][:4]\n    device = device if device in peaks else '
        "next(name for name in peaks if family in name)\n    if device not in": "For a GPU that is not listed you use "
        "one with a similar name. Variants of an H100 differ by a third: raise an error.",
        "if device not in → device = next((name for name in peaks if name.startswith(device) or "
        "device.startswith(name)), device)\n    if device not in": "You accept a name that begins like a listed one. "
        "Several GPUs can begin alike: only the whole name shows which one it is.",
        'peaks[device][number] → peaks[device]["fp32"] ;; the rate is above the peak → cannot be': "You always divide "
        "by the fp32 peak. Use the peak of the format `number`.",
        " or number not in peaks[device] →  ;; peaks[device][number] → peaks[device].get(number, "
        "max(peaks[device].values()))": "If a GPU lacks the format, you use its highest peak. A V100 has no bf16 "
        "units: raise an error.",
        "peaks[device][number] → (2 * peaks[device][number])": "You double the peak. The table already lists dense "
        "peaks, and training does not use sparse ones.",
        "statistics.median → statistics.mean": "You take the mean of the steps, so one disturbed step lowers the "
        "result. Take the median.",
        "statistics.median(seconds) → seconds[len(seconds) // 2]": "You take the step in the middle of the log. The "
        "median is in the middle of the sorted times.",
        "statistics.median → min": "You take the fastest step. A run is made of all of them: take the median.",
        "if share > 1: → if False:": "You return a share above 1. It is impossible: raise ValueError, so that the "
        "mistake is noticed.",
        'raise ValueError("the rate is above the peak") → return 1.0': "You cap the share at 1, which hides a "
        "mistake. Raise ValueError.",
        "share > 1 → share >= 1": "You reject a share of exactly 1. Only a share above 1 is impossible.",
        "return share → return 100 * share": "You return percentages. A share is between 0 and 1.",
        "statistics.median → sum": "You divide by the time of all steps together. `flops` is for one step.",
        "return share → return 1 / share": "You return the peak divided by the rate. MFU is the rate divided by the "
        "peak.",
        "if device not in → peaks = {name.lower(): {kind.lower(): peak for kind, peak in row.items()} for name, "
        "row in peaks.items()}\n    device, number = device.lower().strip(), number.lower().strip()\n    if device not "
        "in": "You ignore capitals in a name. Only a name as it is written in the table is known.",
        "statistics.median → statistics.median_high": "Of an even number of steps you take the slower of the two in "
        "the middle. The median is the mean of both.",
        "if device not in → device = next((name for name in peaks if name in device), device)\n    if device not "
        "in": "You accept a name that contains a listed one. With 80 GB an H100 may be another chip: only the whole "
        "name shows which one it is.",
        "if device not in → number = number.lower()\n    if device not in": "You ignore capitals in a format. Only a "
        "format as it is written in the table is known.",
        "if device not in → device = next((name for name in peaks if name.lower() == device.lower()), device)\n    if "
        "device not in": "You ignore capitals in the name of a GPU. Only a name as it is written in the table is "
        "known.",
        "statistics.median → statistics.median_low": "Of an even number of steps you take the faster of the two in the "
        "middle, as torch.median does. The median is the mean of both.",
        "statistics.median(seconds) → seconds[0]": "You take the first step of the log. The median is in the middle of "
        "the sorted times.",
        "statistics.median → max": "You take the slowest step. One disturbed step then decides: take the median.",
        "share = flops → share = 3 * flops": "You multiply the FLOPs by three. `flops` are those of a whole step, "
        "backward too.",
        "share = flops → share = 6 * flops": "You multiply the FLOPs by six. `flops` are those of a whole step "
        "already.",
        " / peaks[device][number] → ": "You return FLOP/s, or compare them with 1. Divide by the peak.",
        " or number not in peaks[device] →  ;; peaks[device][number] → peaks[device].get(number, "
        'peaks[device]["fp32"])': "If a GPU lacks the format, you use its fp32 peak. A V100 has no bf16 units: raise "
        "an error.",
        "flops / peaks[device][number] / statistics.median(seconds) → statistics.median([flops / peaks[device][number] "
        "/ each for each in seconds])": "You take the median of the rates. For an even number of steps it is not the "
        "rate of the median time: take the median of `seconds` first.",
        "flops / peaks[device][number] / statistics.median(seconds) → statistics.mean([flops / peaks[device][number] / "
        "each for each in seconds])": "You average the rates of the steps. Take the median of `seconds`, and divide by "
        "it.",
    },
)
