"""The exercises on the roofline: the shortest possible time of kernels, and what would help them."""

from __future__ import annotations

from random import Random

import torch

from lmcourse.accounting.accelerators import Accelerator
from lmcourse.accounting.latency import Operation
from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Kernels = list[list[float]]
"""For each kernel: FLOPs and bytes moved."""


def _by_the_course(kernels: Kernels, peak: float, bandwidth: float) -> float:
    chip = Accelerator("chip", "a chip", {"bf16": peak}, bandwidth, 1, None, None, ())
    # FLOPs and bytes are whole numbers, because the package counts nothing smaller.
    return sum(Operation(int(flops), int(moved)).seconds(chip, "bf16") for flops, moved in kernels)


def _roofline_cases(random: Random) -> list[Case]:
    def kernels(pattern: str) -> list[object]:
        """One kernel for each letter: arithmetic or memory takes about ten times as long as the other."""
        peak, bandwidth = random.uniform(1e14, 3e14), random.uniform(5e11, 9e11)
        works = []
        for letter in pattern:
            long, short = random.uniform(2e-3, 4e-3), random.uniform(2e-4, 4e-4)
            computing, moving = (long, short) if letter == "a" else (short, long)
            works.append([float(round(computing * peak)), float(round(moving * bandwidth))])
        return [works, peak, bandwidth]

    return [
        case("a copy", [[0.0, 2048.0]], 256.0, 64.0),
        case("at the ridge", [[1024.0, 256.0], [512.0, 128.0]], 256.0, 64.0),
        edge(case("nothing moves", [[512.0, 0.0], [256.0, 512.0]], 256.0, 64.0)),
        case("the same kernel twice", [[1024.0, 64.0], [256.0, 512.0], [1024.0, 64.0]], 256.0, 64.0),
        case("both kinds", [[1024.0, 64.0], [256.0, 512.0], [768.0, 128.0]], 256.0, 64.0),
        *(case("other kernels", *kernels(pattern)) for pattern in ("a", "m", "aam", "mmama")),
        case("both kinds", *kernels("am")),
    ]


roofline = Exercise(
    "roofline",
    points=3,
    minutes=5,
    difficulty=2,
    reference=_by_the_course,
    cases=[
        case("arithmetic takes longer", [[1000.0, 20.0]], peak=100.0, bandwidth=10.0),
        case("memory takes longer", [[100.0, 50.0]], peak=100.0, bandwidth=10.0),
        case("one of each", [[900.0, 20.0], [100.0, 40.0]], peak=100.0, bandwidth=10.0),
        case("three kernels", [[200.0, 93.0], [930.0, 30.0], [100.0, 26.0]], peak=100.0, bandwidth=10.0),
        case("a copy computes nothing", [[0.0, 40.0]], peak=100.0, bandwidth=10.0),
        edge(case("no kernels", [], peak=100.0, bandwidth=10.0)),
        edge(case("all of it is on the chip", [[500.0, 0.0]], peak=100.0, bandwidth=10.0)),
    ],
    tolerance=Tolerance(1e-6),  # float32 is enough
    hidden_cases=_roofline_cases,
    hints=[
        "Computing takes flops/peak, moving takes moved/bandwidth. Both happen at the same time within a kernel.",
        "So a kernel takes the longer of the two: max, not the sum.",
        "Kernels run one after the other. Take the max for each, and then add up.",
    ],
)


@roofline.variant
def columns_of_a_tensor(kernels: list[list[float]], peak: float, bandwidth: float) -> torch.Tensor:
    work = torch.tensor(kernels).reshape(-1, 2)
    return (work / torch.tensor([peak, bandwidth])).amax(dim=1).sum()


@roofline.variant
def longer_of_two_times(kernels: list[list[float]], peak: float, bandwidth: float) -> float:
    seconds = 0.0
    for flops, moved in kernels:
        computing, moving = flops / peak, moved / bandwidth
        seconds += max(computing, moving)
    return seconds


roofline.slips(
    longer_of_two_times,
    {
        "max(computing, moving) → computing + moving": "You add the time of arithmetic and of memory. A kernel loads "
        "the next numbers while it computes: the longer of the two times counts.",
        "return seconds → return max(sum(flops for flops, _ in kernels) / peak, sum(moved for _, moved in kernels) / "
        "bandwidth)": "You add up all FLOPs and all bytes, and then compare. One kernel's bytes do not move while "
        "another computes: compare for each kernel.",
        "max(computing, moving) → min(computing, moving)": "You take the shorter of the two times. The work is done "
        "when both are.",
        "max(computing, moving) → computing": "You look at FLOPs alone. A kernel that computes little still waits for "
        "its bytes.",
        "max(computing, moving) → moving": "You look at bytes alone. A large product waits for arithmetic.",
        "seconds += max(computing, moving) → seconds = max(seconds, computing, moving)": "You return the slowest "
        "kernel. They run one after the other: add them up.",
        "moved / bandwidth → 2 * moved / bandwidth": "You count each byte twice. `moved` already includes reads and "
        "writes.",
        "max(computing, moving) → max(computing, moving) if flops else 0": "In your sum a kernel without FLOPs takes "
        "no time, as if you divided FLOPs by the attainable rate. It still moves its bytes.",
        "max(computing, moving) → computing if flops > moved else moving": "You compare FLOPs with bytes, two "
        "different units. Compare the *times* that the two need.",
        "return seconds → return seconds / max(1, len(kernels))": "You return the mean of the kernels' times. They "
        "run one after the other: return the sum.",
        "max(computing, moving) → min(peak, flops / moved * bandwidth) if moved else peak": "You return the "
        "attainable FLOP/s of the kernels. Return how many seconds they take.",
        "moved / bandwidth → moved * bandwidth": "You multiply bytes by the bandwidth. Seconds are bytes divided by "
        "bytes per second.",
        "flops / peak, moved / bandwidth → flops / bandwidth, moved / peak": "You divide FLOPs by the bandwidth and "
        "bytes by the peak. It is the other way round.",
        "return seconds → return max((flops / peak for flops, _ in kernels), default=0.0) + max((moved / bandwidth for "
        "_, moved in kernels), default=0.0)": "You add the longest computing time and the longest moving time. For "
        "each kernel take the longer of its own two times, and then add up.",
        "max(computing, moving) → (computing + moving) / 2": "You take the mean of the two times. Both run at once, so "
        "the kernel takes the longer one.",
        "computing, moving = flops / peak, → computing, moving = peak / flops if flops else 0.0,": "You divide the "
        "peak by the FLOPs. Seconds are FLOPs divided by FLOPs per second.",
        "max(computing, moving) → max(computing, moving) if flops and moved else 0": "A kernel without FLOPs, or "
        "without bytes, takes no time in your sum. A copy still moves its bytes, and a kernel on the chip still "
        "computes.",
    },
)


roofline.equivalent_mutant(
    "return sum((max(flops / peak, moved / bandwidth) for flops, moved in kernels)) → "
    "return sum((max(moved / bandwidth, flops / peak) for flops, moved in kernels))",
    "The longer of two times is the same in either order.",
)


def kernel_by_kernel(kernels: list[list[float]], peak: float, bandwidth: float) -> dict[str, float]:
    times = {"peak": 0.0, "bandwidth": 0.0, "launches": 0.0}
    for flops, moved, seconds in kernels:
        computing, moving = flops / peak, moved / bandwidth
        best = max(computing, moving)
        rest = seconds - best
        if rest < 0:
            raise ValueError("the rate is above the peak")
        times["peak"] += max(computing / 2, moving) + rest
        times["bandwidth"] += max(computing, moving / 2) + rest
        times["launches"] += best
    return times


REMEDIES = ("peak", "bandwidth", "launches")


def _each(name: str, kernels: Kernels, *remedies: str) -> list[Case]:
    """A case for each remedy, so that each earns points alone."""
    call = f"what_helps({kernels!r}, peak=100.0, bandwidth=10.0)"
    return [script(f"{name}: {remedy}", f'{call}["{remedy}"]') for remedy in remedies]


def _remedy_cases(random: Random) -> list[Case]:
    toy = {"peak": 128.0, "bandwidth": 16.0}

    def kernel(arithmetic: float, memory: float, rest: float) -> list[float]:
        return [arithmetic * 128.0, memory * 16.0, max(arithmetic, memory) + rest]

    def eighths(low: int, high: int) -> float:
        return random.randint(low, high) / 8

    mixed = [kernel(eighths(1, 80), eighths(1, 80), eighths(1, 60)) for _ in range(6)]
    return [
        edge(case("exactly the roofline", [kernel(8.0, 3.0, 0.0)], **toy)),
        edge(case("exactly the roofline", [kernel(3.0, 8.0, 0.0), kernel(5.0, 5.0, 0.0)], **toy)),
        edge(case("a copy", [[0.0, 96.0, 8.0]], **toy)),
        edge(case("nothing moves", [[512.0, 0.0, 8.0]], **toy)),
        edge(case("no kernels", [], **toy)),
        case("the other limit takes over", [kernel(8.0, 6.0, 1.0), kernel(4.0, 7.0, 2.0)], **toy),
        *_each("two products", [[550.0, 20.0, 9.0], [310.0, 19.0, 4.0]], *REMEDIES),
        *_each("two copies", [[0.0, 55.0, 9.0], [120.0, 39.0, 4.0]], *REMEDIES),
        case("large products", [kernel(eighths(40, 80), eighths(1, 20), eighths(1, 20)) for _ in range(2)], **toy),
        case("copies and the like", [kernel(eighths(1, 20), eighths(40, 80), eighths(1, 20)) for _ in range(2)], **toy),
        case("tiny kernels", [kernel(eighths(1, 4), eighths(1, 4), eighths(60, 90)) for _ in range(3)], **toy),
        case("several kernels", mixed[:3], **toy),
        case("several kernels", mixed[3:], **toy),
        case("faster than the roofline", [kernel(8.0, 3.0, 1.0), kernel(8.0, 3.0, -0.5)], **toy),
        case("faster than the roofline", [kernel(3.0, 8.0, -1.0), kernel(8.0, 3.0, 2.0)], **toy),
    ]


what_helps = Exercise(
    "what_helps",
    points=3,
    minutes=7,
    difficulty=2,
    reference=kernel_by_kernel,
    cases=[
        *_each("a large product", [[800.0, 20.0, 10.0]], "peak", "bandwidth"),
        *_each("a sum", [[100.0, 60.0, 8.0]], "bandwidth", "launches"),
        *_each("both nearly equal", [[600.0, 50.0, 8.0]], "peak", "launches"),
        *_each("three kernels", [[900.0, 30.0, 11.0], [40.0, 5.0, 4.0], [200.0, 70.0, 7.5]], *REMEDIES),
        edge(case("exactly the roofline", [[800.0, 20.0, 8.0]], peak=100.0, bandwidth=10.0)),
        edge(case("exactly the roofline, by its bytes", [[300.0, 80.0, 8.0]], peak=100.0, bandwidth=10.0)),
        case("only one is faster than it can be", [[800.0, 20.0, 7.5], [40.0, 5.0, 4.0]], peak=100.0, bandwidth=10.0),
        case("faster than the peak", [[1200.0, 20.0, 10.0]], peak=100.0, bandwidth=10.0),
        case("faster than the memory", [[50.0, 150.0, 10.0]], peak=100.0, bandwidth=10.0),
    ],
    hidden_cases=_remedy_cases,
    tolerance=Tolerance(1e-6),  # float32 is enough
    hints=[
        "Split a measured time in two: the time of the roofline, and the rest. Which remedy changes which?",
        "With twice the peak a kernel takes max(flops / (2·peak), moved / bandwidth) at best, plus the same rest as "
        "before.",
        "Without launches only the roofline's time is left. A negative rest is impossible: raise ValueError. Add up "
        "the kernels for each remedy.",
    ],
)


@what_helps.variant
def columns_in_double_precision(kernels: list[list[float]], peak: float, bandwidth: float) -> dict[str, torch.Tensor]:
    work = torch.tensor(kernels, dtype=torch.float64).reshape(-1, 3)
    computing, moving, seconds = work[:, 0] / peak, work[:, 1] / bandwidth, work[:, 2]
    rest = seconds - torch.maximum(computing, moving)
    if (rest < 0).any():
        raise ValueError(rest)
    return {
        "peak": (torch.maximum(computing / 2, moving) + rest).sum(),
        "bandwidth": (torch.maximum(computing, moving / 2) + rest).sum(),
        "launches": torch.maximum(computing, moving).sum(),
    }


for _change in (
    "best = max(computing, moving) → best = max(moving, computing)",
    "times['peak'] += max(computing / 2, moving) + taken - best → "
    "times['peak'] += max(moving, computing / 2) + taken - best",
    "times['bandwidth'] += max(computing, moving / 2) + taken - best → "
    "times['bandwidth'] += max(moving / 2, computing) + taken - best",
):
    what_helps.equivalent_mutant(_change, "The longer of two times is the same in either order.")


what_helps.variant(kernel_by_kernel)

REST = "Your rest is the time minus computing *and* moving. They happen at the same time: subtract only the longer one."

what_helps.slips(
    kernel_by_kernel,
    {
        "max(computing / 2, moving) + rest → seconds - best / 2 * (computing > moving) ;; max(computing, moving / 2) + "
        "rest → seconds - best / 2 * (moving >= computing)": "You halve the longer of the two times, all of it. The "
        "other time stays as it is, and may then be the longer one.",
        "max(computing / 2, moving) + rest → seconds - computing / 2 ;; max(computing, moving / 2) + rest → seconds - "
        "moving / 2": "You subtract half of the computing and half of the moving time, whichever is the limit. The "
        "two overlap, so making the shorter one even shorter does not help.",
        "max(computing / 2, moving) + rest → seconds / 2 if computing > moving else seconds ;; max(computing, moving / "
        "2) + rest → seconds if computing > moving else seconds / 2": "You halve the measured time. The part that "
        "neither computing nor moving explains stays as it is.",
        "max(computing / 2, moving) + rest → seconds * max(computing / 2, moving) / best ;; max(computing, moving / 2) "
        "+ rest → seconds * max(computing, moving / 2) / best": "You scale the whole measured time, so the part that "
        "neither computing nor moving explains shrinks, too. It stays the same on a faster chip.",
        "moving) + rest → moving) ;; moving / 2) + rest → moving / 2)": "With a faster chip your kernels take only "
        "the roofline's time. The rest, launches and Python, remains on any chip.",
        "max(computing / 2, moving) + rest → seconds - computing / 2 ;; max(computing, moving / 2) + rest → seconds - "
        "moving / 2 ;; += best → += computing + moving": "You add computing and moving. They happen at the same time: "
        "the roofline is the longer of the two.",
        "+= best → += rest": "You return the time that neither explains. Without it, the roofline's time is left.",
        "return times → return kernel_by_kernel([list(map(sum, zip(*kernels)))], peak, bandwidth) if len(kernels) > 1 "
        "else times": "You add up FLOPs, bytes and seconds, and then draw one roof for all. One kernel's bytes do not "
        "move while another computes: split the time of each kernel.",
        "if rest < 0: → if False:": "You accept a kernel that is faster than the roofline. Something was measured "
        "wrongly: raise ValueError.",
        'times["peak"] += → times["bandwidth"] += ;; times["bandwidth"] += → times["peak"] +=': "You swapped the peak "
        "and the bandwidth.",
        "max(computing / 2, moving) + rest → best - max(computing / 2, moving) ;; max(computing, moving / 2) + rest → "
        "best - max(computing, moving / 2) ;; += best → += rest": "You return what each remedy saves. Return how long "
        "the kernels take with it.",
        'times["peak"] += → times["peak"] = ;; times["bandwidth"] += → times["bandwidth"] = ;; times["launches"] += → '
        'times["launches"] =': "You return the last kernel's time. Add up all kernels.",
        "rest < 0 → sum(kernel[2] for kernel in kernels) < sum(max(kernel[0] / peak, kernel[1] / bandwidth) for kernel "
        "in kernels)": "You compare the sum of all times with the roofline. A kernel that is too fast is then hidden "
        "by a slow one.",
        "seconds - best → seconds - computing - moving": REST,
        "moving) + rest → moving) + rest + best - computing - moving ;; moving / 2) + rest → moving / 2) + rest + best "
        "- computing - moving": REST,
        "moving) + rest → moving) + rest / 2 ;; moving / 2) + rest → moving / 2) + rest / 2": "You halve the rest, "
        "too. A faster chip leaves it as it is.",
        "+= best → += best + rest / 2": "Without launches you keep half of the rest. All of it disappears.",
        "rest < 0 → rest <= 0": "You reject a kernel that takes exactly the roofline's time. It is perfect, not "
        "impossible: reject only a shorter time.",
        "max(computing / 2, moving) + rest → seconds - best / 2 ;; max(computing, moving / 2) + rest → seconds - best "
        "/ 2": "You halve the roofline's time with either chip. Twice the peak shortens only computing, twice the "
        "bandwidth only moving.",
        "return times → taken = sum(kernel[2] for kernel in kernels)\n    return {remedy: taken / time if time else "
        "1.0 for remedy, time in times.items()}": "You return how many times as fast. Return seconds.",
        "max(computing / 2, moving) + rest → seconds ;; max(computing, moving / 2) + rest → seconds": "Nothing "
        "becomes faster with your new chips, as if you computed the rest with their times. The rest is what *this* "
        "chip's roofline leaves unexplained.",
        '{"peak": 0.0, "bandwidth": 0.0, "launches": 0.0} → {"peak": [], "bandwidth": [], "launches": []} ;; '
        "max(computing / 2, moving) + rest → [max(computing / 2, moving) + rest] ;; max(computing, moving / 2) + rest "
        "→ [max(computing, moving / 2) + rest] ;; += best → += [best]": "You return a list with a time for each "
        "kernel. Add them up: one number for each remedy.",
        "max(computing / 2, moving) + rest → seconds / 2 ;; max(computing, moving / 2) + rest → seconds / "
        "2": "You halve the whole measured time with either chip. Only computing or only moving becomes faster, and "
        "the rest stays as it is.",
        "+= best → += computing + moving": "Without the rest you add computing and moving. They happen at the same "
        "time: the roofline is the longer of the two.",
        "max(computing / 2, moving) + rest → computing / 2 + rest ;; max(computing, moving / 2) + rest → moving / 2 + "
        "rest": "With a faster chip you count only what it makes faster. The other of the two times may now be the "
        "longer one: take the maximum.",
        "max(computing / 2, moving) + rest → max(computing * 2, moving) + rest ;; max(computing, moving / 2) + rest → "
        "max(computing, moving * 2) + rest": "You double the times. A chip with twice the peak computes in half the "
        "time.",
        "max(computing, moving)\n → min(computing, moving)\n": "You take the shorter of computing and moving for the "
        "roofline. A kernel is done when both are: take the longer one.",
        "max(computing / 2, moving) + rest → max(computing / 2, moving, rest) ;; max(computing, moving / 2) + rest → "
        "max(computing, moving / 2, rest)": "You take the longest of computing, moving and the rest. The rest comes on "
        "top of the roofline's time: add it.",
        "rest = seconds - best → rest = max(seconds - best, 0.0)": "You set a negative rest to 0. A kernel that is "
        "faster than the roofline was measured wrongly: raise ValueError.",
        "+= best → += 0.0": "Without the rest your kernels take no time. The roofline's time is left.",
        "+= best → += seconds": "You return the measured time for `launches`. Without the rest, the roofline's time is "
        "left.",
    },
)
