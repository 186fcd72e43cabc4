# %% [markdown]
# # 19 · GPU timing
#
# **Core · 90 min · 7 exercises · 25 points** · **Further · 56 min · 2 exercises · 5 points**
#
# *Where does the time of this step go, and how much of it can you get back?*
#
# Two people time the same product on the same GPU, and get two very different times. Both have a clock that works. You build a stopwatch that you can trust, and measure what your machine can do.
#
# At the end you take over a training step that is right, and slow, and make it several times as fast, with the same weights.
#
# **You need** FLOPs and MFU (notebook 15), but no GPU: all cells run on any device.
#
# A busy machine disturbs no check. Stuck? `hint("name_of_the_exercise")`. Do not use `lmcourse` in answers.

# %%
import math
import statistics
from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import record_function

from lmcourse.accounting import machine, timing
from lmcourse.accounting.formats import DTYPES
from lmcourse.accounting.timing import SimulatedDevice
from lmcourse.base.device import best_device
from lmcourse.bench.speedups import StepSetup, make_training_step
from lmcourse.chapters.gpu_timing import figures
from lmcourse.chapters.gpu_timing.figures import MeasuredPoint, Rung
from lmcourse.chapters.gpu_timing.measuring import copy_of, described, in_turns, operations, product_of, said, seconds
from lmcourse.chapters.gpu_timing.profiler_calls import GROUPS, by_group, nested, record, total_time
from lmcourse.chapters.gpu_timing.slow_step import LABELS, PRODUCTS, all_but, counted, mended, running, slow_step
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.course import modern
from lmcourse.notebook import check, explore, hint, predict, start, your

start("19-gpu-timing")

# %% [markdown]
# ## 1 · What does the clock see?

# %%
predict("who_waits")

# %% [markdown]
# A GPU takes orders. `a @ b` puts a product into its queue and returns, long before the product is there. A clock on the CPU sees only the ordering. To see the work, wait until the queue is empty: `torch.cuda.synchronize()`. On a CPU there is nothing to wait for.
#
# Here is a simulated GPU. A run takes 4 s, and the first 9 s, in which a real one would load its kernels. Handing a run over takes 0.01 s.

# %%
simulated = SimulatedDevice([9.0, 4.0], launch=0.01)
for run in range(3):
    begin = simulated.clock()
    simulated.run()
    ordered = simulated.clock()
    simulated.synchronise()
    print(f"run {run}: ordered after {ordered - begin:.2f} s, done after {simulated.clock() - begin:.2f} s")

# %% [markdown]
# > **Spot the slip.** The layers of a colleague's model compute `x @ w` in bf16. She times a product like this, and calls the result the MFU of the model:
# >
# > ```python
# > def run():
# >     a @ b
# >     if torch.cuda.is_available():
# >         torch.cuda.synchronize()
# >
# > actual_time = timeit.timeit(run, number=5) / 5
# > mfu = 2 * B * D * K / actual_time / 67e12  # an H100 does 67 TFLOP/s in fp32
# > ```
# >
# > It waits for the GPU, which is the hard part. Find four mistakes. And what do the five runs give on our device, where a run takes 4.01 s?

# %%
simulated = SimulatedDevice([9.0, 4.0], launch=0.01)
for _ in range(5):
    simulated.run()
    simulated.synchronise()
print(f"her time: {simulated.clock() / 5:.2f} s")

# %% [markdown]
# A quarter too much, because the first run counts. Also, `a` and `b` are not what the model multiplies; one product is not a model; and a model in bf16 does not use the peak of fp32.
#
# So throw the first runs away. The others scatter, because a machine is never alone.

# %%
predict("one_slow_run")

# %%
explore(figures.timing_spread, runs=(5, 60), disturbed=(0.0, 0.6, 0.05), warm_up_counts=False)

# %% [markdown]
# Other programs only *add* to a time, so they pull the mean up. The median ignores disturbed runs, until they are half of all. Report it with the quartiles, between which the middle half of the runs lies: 11.2 ms (10.7 to 12.0) is a measurement, 11.2 ms is a rumour.

# %% [markdown]
# ### Exercise 1 · A stopwatch  (4 points · 8 min · ●●●)
#
# Run `warmup` times, then `repeats` times with the clock. Return the median time of a run. `synchronise()` returns when the device has nothing left to do; `clock()` returns seconds. Time every run by itself: the device must have nothing to do when the clock starts, and be done when it stops. Fewer than 1 run that counts, or fewer than 0 before, is a `ValueError`.


# %% exercise="time_it"
def time_it(run: Callable, synchronise: Callable, clock: Callable, warmup: int = 3, repeats: int = 5) -> float:
    """The median time of a run in seconds, on a device that answers before it is done."""
    ### BEGIN SOLUTION
    if warmup < 0 or repeats < 1:
        raise ValueError(f"{warmup} runs to warm up and {repeats} that count cannot be")
    times = []
    for number in range(warmup + repeats):
        synchronise()
        begin = clock()
        run()
        synchronise()
        if number >= warmup:
            times.append(clock() - begin)
    return statistics.median(times)
    ### END SOLUTION


# %% check="time_it"

# %% [markdown]
# No stopwatch fixes these. *Frequency*: a GPU that was idle runs faster for a moment; keep it busy for some seconds first. *Caches*: a small tensor that was just used is still in the cache; flush it if the model would find it cold. *Neighbours*: to compare two versions, take turns (A, B, B, A, …), so that a busy minute hits both.
#
# Now your device. (On a CPU, one core: with more, threads might wait for each other.)

# %% tags=["nbval-ignore-output", "because it shows the device and a measured time"]
device = best_device()
on_gpu = device.type != "cpu"
torch.set_num_threads(torch.get_num_threads() if on_gpu else 1)
number = "bf16" if device.type == "cuda" and machine.has_units("bf16", device) else "fp32"
title, known = described(device)
a = torch.randn(512, 512, device=device).to(DTYPES[number])
with your("time_it"):
    times = seconds(time_it, lambda: a @ a, device, runs=20)  # calls your stopwatch for each run
print(f"{title}: 512 × 512 in {number} takes {said(times)}")

# %% [markdown]
# ## 2 · What can this machine do?
#
# What is the best possible time? The maker of a GPU publishes a **peak**, in FLOP/s. For your CPU, measure it.
#
# A large product of square matrices comes nearest: it uses every number many times. Too small, and starting costs more than computing; too large, and it does not fit into the caches; so several sizes take part. Since we ask what *can* be done, the shortest time counts, not the median.
#
# A machine also moves numbers. Copy a large tensor: every byte is read and written, and *both* cross the bus. (A small one stays in a cache, and you measure the cache.) Peak over bandwidth is the **ridge** (notebook 11): the FLOPs that fit into the time of moving a byte.

# %% [markdown]
# ### Exercise 2 · What it can do  (3 points · 6 min · ●●)
#
# `products` maps a width $n$ to the times of runs of a product of two $n \times n$ matrices: `{512: [0.011, 0.009], 1024: [0.08]}`. `copies` maps the bytes of a tensor to the times of copying it, and `cache` is the size of the cache in bytes. Return a dict with the best FLOP/s (`"peak"`), the best bytes/s of all tensors *larger* than the cache (`"bandwidth"`) and the `"ridge"`. A size without a time does not count. If nothing is left for one of them, raise `ValueError`.


# %% exercise="machine_limits"
def machine_limits(products: dict[int, list[float]], copies: dict[int, list[float]], cache: int) -> dict[str, float]:
    """The best FLOP/s and bytes/s of all runs, and how many FLOPs fit into the time of a byte."""
    ### BEGIN SOLUTION
    peak = max(2 * width**3 / run for width, runs in products.items() for run in runs)  # of nothing: ValueError
    bandwidth = max(2 * size / run for size, runs in copies.items() if size > cache for run in runs)
    return {"peak": peak, "bandwidth": bandwidth, "ridge": peak / bandwidth}
    ### END SOLUTION


# %% check="machine_limits"

# %% tags=["nbval-ignore-output", "because it shows measured rates"]
with your("time_it", "machine_limits"):
    sizes = ((2048, 4096, 8192), (2**18, 2**20, 2**30)) if on_gpu else ((128, 256, 512, 1024), (2**18, 2**20, 2**27))
    products = {n: seconds(time_it, product_of(n, device, number), device, 10).seconds for n in sizes[0]}
    copies = {n: seconds(time_it, copy_of(n, device), device, 10).seconds for n in sizes[1]}
    limits = machine_limits(products, copies, cache=2**26)
# If the course's table has your GPU, its published dense peak counts:
peak, bandwidth = (known.peak(number), known.bandwidth) if known else (limits["peak"], limits["bandwidth"])
print(f"products in {number}, GFLOP/s:", {width: f"{2 * width**3 / min(runs) / 1e9:,.1f}" for width, runs in products.items()})
print("copies of so many bytes, GB/s:", {length: f"{2 * length / min(runs) / 1e9:,.1f}" for length, runs in copies.items()})
print(f"peak {peak / 1e9:,.1f} GFLOP/s, bandwidth {bandwidth / 1e9:,.1f} GB/s, ridge {peak / bandwidth:.1f} FLOPs per byte")

# %% [markdown]
# ## 3 · The roofline

# %%
predict("kernel_time")

# %% [markdown]
# A kernel computes, and it moves bytes. How long does it take at best? By hand, with a peak of 100 FLOP/s and 10 bytes/s:
#
# | kernel | FLOPs | bytes | arithmetic alone | moving alone | at best |
# | --- | --- | --- | --- | --- | --- |
# | a product | 1000 | 20 | 10 s | 2 s | 10 s |
# | a sum | 100 | 50 | 1 s | 5 s | 5 s |
# | one after the other | | | | | 15 s |

# %% [markdown]
# ### Exercise 3 · At best  (3 points · 5 min · ●●)
#
# `kernels` is a list of `[flops, bytes]`, run one after the other. Return the seconds they take at best.


# %% exercise="roofline"
def roofline(kernels: list[list[float]], peak: float, bandwidth: float) -> float:
    """Seconds of kernels that run one after the other, each as fast as the machine allows."""
    ### BEGIN SOLUTION
    return sum(max(flops / peak, moved / bandwidth) for flops, moved in kernels)
    ### END SOLUTION


# %% check="roofline"

# %% [markdown]
# In a formula, for a kernel of $F$ FLOPs and $M$ bytes:
#
# $$t = \max\left(\frac{F}{\text{peak}},\; \frac{M}{\text{bandwidth}}\right).$$
#
# $F$ over that time is the **roofline** (Williams et al., 2009): $\min(\text{peak},\; I \cdot \text{bandwidth})$ FLOP/s, where $I = F/M$ is the **arithmetic intensity**. Below the ridge memory limits, above it arithmetic.
#
# When $n$ tokens pass a $D \times D$ matrix of $p$ bytes per number, the matrix moves once, and so do inputs and outputs:
#
# $$I = \frac{2nD^2}{p\,(D^2 + 2nD)} = \frac{2}{p} \cdot \frac{nD}{2n + D}$$
#
# One token gives 1 FLOP per byte in bf16, and an A100 could do 150 in the time of a byte. So memory limits decoding, which computes one token at a time.

# %%
predict("enough_tokens")

# %% [markdown]
# Now put real operations under your machine's roof. The cache is flushed before each run, because in a model hundreds of megabytes pass between two uses of a matrix.

# %% tags=["nbval-ignore-output", "because it shows a roofline measured on this machine"]
flush = timing.cache_flusher(device)
with your("time_it", "roofline"):
    timed = {
        name: [flops, moved, seconds(time_it, run, device, before=flush).median]
        for name, flops, moved, run in operations(device, number)
    }
    best = roofline([[flops, moved] for flops, moved, _ in timed.values()], peak, bandwidth)
print(f"all {len(timed)} together: {best * 1e3:.2f} ms at best, {sum(taken for *_, taken in timed.values()) * 1e3:.2f} ms measured")
dots = [MeasuredPoint(name, flops / moved, flops / taken) for name, (flops, moved, taken) in timed.items()]
figures.measured_roofline(peak, bandwidth, dots, title=f"{title}, {number}")

# %% [markdown]
# More vectors lift the products along the slope until arithmetic takes over. Adding 1 stays low: there is little to compute. The tiny product is far below *both* roofs: its time goes into Python and the launch.

# %% [markdown]
# ## 4 · When neither limits
#
# A **launch** takes some microseconds of the CPU. If the kernels are shorter, the GPU waits, and a faster GPU would wait as well. Larger or fewer kernels help.
#
# So a measured time has two parts: what the roofline needs at best, and a rest that it does not explain. Three remedies are for sale: a chip with twice the peak, a chip with twice the bandwidth, and a recorded graph that makes the rest disappear. Which one is worth its price?
#
# By hand, with 100 FLOP/s and 10 bytes/s: 800 FLOPs and 20 bytes took 10 s, 8 s of arithmetic and 2 s of rest. Twice the peak: 6 s. Twice the bandwidth: still 10 s. No rest: 8 s.

# %% [markdown]
# ### Exercise 4 · What would help?  (3 points · 7 min · ●●)
#
# `kernels` is a list of `[flops, bytes, seconds]`, measured one after the other. Return how many seconds all of them take with each remedy: `{"peak": ..., "bandwidth": ..., "launches": ...}`. On a faster chip the rest of a kernel stays as it is. A kernel that is faster than the roofline was measured wrongly: `ValueError`.


# %% exercise="what_helps"
def what_helps(kernels: list[list[float]], peak: float, bandwidth: float) -> dict[str, float]:
    """Return the seconds of all kernels with twice the peak, with twice the bandwidth, and without the unexplained rest."""
    ### BEGIN SOLUTION
    times = {"peak": 0.0, "bandwidth": 0.0, "launches": 0.0}
    for flops, moved, taken in kernels:
        computing, moving = flops / peak, moved / bandwidth
        best = max(computing, moving)
        if taken < best:
            raise ValueError(f"{taken} s, where the roofline allows {best} s")
        times["peak"] += max(computing / 2, moving) + taken - best
        times["bandwidth"] += max(computing, moving / 2) + taken - best
        times["launches"] += best
    return times
    ### END SOLUTION


# %% check="what_helps"

# %% tags=["nbval-ignore-output", "because it shows times measured on this machine"]
with your("what_helps"):
    print(f"{'times as fast with':20}  2 × peak  2 × bandwidth  no rest")
    for name, (flops, moved, taken) in timed.items():
        allowed = max(taken, 1.001 * flops / peak, 1.001 * moved / bandwidth)  # a dot above the roof: as if on it
        helped = what_helps([[flops, moved, allowed]], peak, bandwidth)
        print(f"{name:20} {allowed / helped['peak']:9.2f} {allowed / helped['bandwidth']:14.2f} {allowed / helped['launches']:8.2f}")

# %% [markdown]
# ## 5 · Where does the time go?
#
# In a whole step you cannot tell the FLOPs and bytes of each kernel. A **profiler** (`torch.profiler`) writes down when every operation begins and ends.

# %%
predict("products_on_a_core")

# %% tags=["nbval-ignore-output", "because it shows calls and times of this machine"]
config, length = (find_model("course-124m").decoder, 512) if on_gpu else (modern(2, 128, 4, 128), 64)
step = make_training_step(config, StepSetup(batch=8), length, device, wait=True)
for _ in range(3):
    step()
recorded = [record(step) for _ in range(3)]
calls, phases, _ = recorded[0]
print(f"{len(calls):,} calls in one step. Some of them, in µs:", nested(calls, "aten::linear"), sep="\n")

# %% [markdown]
# Calls are inside calls. `aten::linear` holds `aten::matmul`, which holds `aten::mm`, and only the last one multiplies. Add up all these times, and a product counts four times.

# %% [markdown]
# ### Exercise 5 · Time in itself  (4 points · 10 min · ●●●)
#
# `events` are the calls of one thread, each a list `[name, begin, end]`, in any order. Two calls are one after the other or one inside the other; they never have the same begin *and* the same end. Return for each name the share of the time that its calls together spend *in themselves*: the time of calls inside them belongs to those. The whole is the time from the first begin to the last end, and `"idle"` is the share in which no call is open. No events give `{}`.


# %% exercise="time_shares"
def time_shares(events: list[list]) -> dict[str, float]:
    """Return the share of time that the calls of each name spend in themselves, and "idle"."""
    ### BEGIN SOLUTION
    if not events:
        return {}
    span = max(end for _, _, end in events) - min(begin for _, begin, _ in events)
    own = {name: 0.0 for name, _, _ in events} | {"idle": span}
    open_calls: list[tuple[str, float]] = []  # names and ends, the innermost last
    for name, begin, end in sorted(events, key=lambda event: (event[1], -event[2])):
        while open_calls and open_calls[-1][1] <= begin:
            open_calls.pop()
        parent = open_calls[-1][0] if open_calls else "idle"
        own[parent] -= end - begin
        own[name] += end - begin
        open_calls.append((name, end))
    return {name: time / span for name, time in own.items()}
    ### END SOLUTION


# %% check="time_shares"

# %% [markdown]
# The three recorded steps, by the names that take most, then in groups:

# %% tags=["nbval-ignore-output", "because it shows shares measured on this machine"]
with your("time_shares"):
    by_name = [time_shares(calls) for calls, _, _ in recorded]
    in_groups = [time_shares(by_group(calls, phases)) for calls, phases, _ in recorded]
for name in sorted(by_name[0], key=by_name[0].get, reverse=True)[:6]:
    print(" ".join(f"{shares.get(name, 0):6.1%}" for shares in by_name), "", name[:60])
print(f"sum of the shares: {sum(by_name[0].values()):.0%}; sum of all total times: {total_time(calls):.0%} of the step")
figures.time_by_group(in_groups, title=f"{title}: a training step, profiled")

# %% [markdown]
# On a CPU core often half of the step is not products, and MFU cannot exceed the share of the products. On a GPU, large *idle* gaps mean that launches limit it.
#
# ## 6 · What can a change bring?
#
# Shares of time say what a change can bring *before* you write it. A step takes 1 s, and half of it are products. You are offered products that are twice as fast: how long does it take then? Now take several offers at once. (A colleague multiplies their speed-ups. Is that right?)

# %% [markdown]
# ### Exercise 6 · At most  (2 points · 5 min · ●●)
#
# `shares` are the shares of a step's time by name. `offers` maps an offer to `[names, factor]`: it makes these operations `factor` times as fast (with `math.inf` they take no time). Return how many times as fast the step becomes with each offer, and under `"all"` with all together. A name that is not in `shares` takes no time. If the shares add up to less than 1, the rest of the step stays as it is. No name is in two offers.


# %% exercise="speedup_bounds"
def speedup_bounds(shares: dict[str, float], offers: dict[str, list]) -> dict[str, float]:
    """Return how many times as fast a step becomes by each offer, and by "all" of them."""
    ### BEGIN SOLUTION
    saved = {}
    for offer, (names, factor) in offers.items():
        share = sum(shares.get(name, 0.0) for name in names)
        saved[offer] = share - share / factor
    saved["all"] = sum(saved.values())
    return {offer: 1 / (1 - time) for offer, time in saved.items()}
    ### END SOLUTION


# %% check="speedup_bounds"

# %% [markdown]
# This is **Amdahl's law** (1967). A share $s$ that becomes $f$ times as fast leaves $1 - s + s/f$ of the time, so the whole becomes
#
# $$\frac{1}{1 - s + s/f}$$
#
# times as fast, and never more than $1/(1 - s)$. Speed-ups do not multiply: make both halves of a step twice as fast, and it becomes twice as fast, not 1.33 · 1.33 = 1.78 times.

# %% tags=["nbval-ignore-output", "because it shows bounds of this machine"]
with your("speedup_bounds"):
    mean = {group: statistics.mean(shares.get(group, 0.0) for shares in in_groups) for group in GROUPS}
    offers = {
        "products twice as fast": [["matrix products"], 2.0],
        "all element-wise work fused, 4 trips become 1": [["element-wise, sums", "copies"], 4.0],
        "an optimizer that takes no time": [["optimizer"], math.inf],
        "no Python, no views, no gaps": [["Python, views, autograd", "idle"], math.inf],
    }
    for offer, gain in speedup_bounds(mean, offers).items():
        print(f"{offer:48} at most {gain:.2f} times as fast")

# %% [markdown]
# ## 7 · The slow step
#
# A colleague's training step is right, and slow: two layers, 128 wide, and 8 texts of 128 bytes. Labels such as `@record_function("norm")` show its parts to the profiler. Where does the time go?

# %% tags=["nbval-ignore-output", "because it shows times measured on this machine"]
place = "cpu" if device.type == "mps" else device  # Apple's GPUs have no fp64
given, tried, rungs = running(slow_step, place), [slow_step], []
with your("time_it", "roofline", "time_shares", "speedup_bounds"):
    slow, best = seconds(time_it, given, place).median, roofline(PRODUCTS, peak, bandwidth)
    calls, labels, _ = record(given, LABELS)
    names, shares = time_shares(calls), time_shares(labels)
    bounds = speedup_bounds(shares, {label: [[label], math.inf] for label in LABELS})
print(f"{title}: {slow * 1e3:.0f} ms; its products alone {best * 1e3:.1f} ms at best. MFU {sum(flops for flops, _ in PRODUCTS) / slow / peak:.1%}")
print(f"{len(calls):,} calls; most time:", ", ".join(f"{name} {names[name]:.0%}" for name in sorted(names, key=names.get)[:-6:-1]))
for label in (*LABELS, "idle"):
    print(f"{label:10} {shares.get(label, 0):6.1%}", f"at most × {bounds[label]:.2f}" if label in bounds else "(no label)")

# %%
predict("which_mend")

# %% [markdown]
# A label sees the forward pass only: the backward pass of `norm` is in `backward`, so the bound for `norm` is too low.

# %% [markdown]
# ### Exercise 7 · A faster step  (6 points · 9 min · ●●●)
#
# Make the step as fast as you can. Losses and weights after every step must be those of the given step, to $10^{-4}$. `weights` and `moments` are dicts that your step changes, `texts` holds tokens, a row for each text, and `t` is 1 in the first step. Change one thing at a time: share, bound, change, measure.
#
# `check` uses no clock. In steps two and three of a run it counts operations, and the bytes that they read and write (a view moves none).
#
# | points | for |
# | --- | --- |
# | 1 | the same losses and weights |
# | 1 | at most 7,000 operations; the given step has 25,207 |
# | 1 | nothing in fp64, and at most one wait, such as `.item()` |
# | 1 | at most 650 operations |
# | 2 | and at most 325 MB: the finish line |
#
# Any way is fine, but no threads, files, NumPy or compilers: nobody counts there. `check` also takes shorter texts. The cell under the answer compares your step with the last one: run it after each change.


# %% exercise="fast_step"
def fast_step(weights: dict[str, Tensor], moments: dict[str, list[Tensor]], texts: Tensor, t: int) -> float | Tensor:
    """Train on the texts: change the weights and their two moments, and return the loss."""
    ### BEGIN SOLUTION
    T, D, heads = texts.shape[1] - 1, 128, 4
    p, i = torch.arange(T, device=texts.device), torch.arange(0, D, 2, device=texts.device)
    angles = p[:, None] / 10000 ** (i / D)
    positions = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
    h = weights["embed"][texts[:, :-1]] + positions
    for layer in "01":
        qkv = F.rms_norm(h, (D,), weights["norm1" + layer], 1e-6) @ weights["qkv" + layer].T
        q, k, v = qkv.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + mixed.transpose(1, 2).flatten(2) @ weights["out" + layer].T
        up = F.rms_norm(h, (D,), weights["norm2" + layer], 1e-6) @ weights["up" + layer].T
        h = h + F.gelu(up, approximate="tanh") @ weights["down" + layer].T
    loss = F.cross_entropy((h @ weights["head"].T).flatten(0, 1), texts[:, 1:].flatten())
    for w in weights.values():
        w.grad = None
    loss.backward()
    gradients = [w.grad for w in weights.values()]
    scale = (1 / torch.stack([g.norm() for g in gradients]).norm()).clamp(max=1.0)
    means, squares = ([moments[name][i] for name in weights] for i in (0, 1))
    with torch.no_grad():
        torch._foreach_mul_(gradients, scale)
        torch._foreach_lerp_(means, gradients, 0.1)
        torch._foreach_mul_(squares, 0.99)
        torch._foreach_addcmul_(squares, gradients, gradients, 0.01)
        roots = torch._foreach_sqrt(squares)
        torch._foreach_div_(roots, math.sqrt(1 - 0.99**t))
        torch._foreach_add_(roots, 1e-8)
        torch._foreach_addcdiv_([*weights.values()], means, roots, -0.001 / (1 - 0.9**t))
    return loss.detach()
    ### END SOLUTION
    # The step that you are given, to edit:
    T, D, heads = texts.shape[1] - 1, 128, 4

    @record_function("positions")
    def positions() -> Tensor:
        table = torch.zeros(T, D, dtype=torch.float64, device=texts.device)
        for p in range(T):
            angles = p / 10000 ** (torch.arange(0, D, 2, dtype=torch.float64, device=texts.device) / D)
            table[p, 0::2], table[p, 1::2] = angles.sin(), angles.cos()
        return table.float()

    @record_function("mask")
    def mask() -> Tensor:
        table = torch.full((T, T), -math.inf, dtype=torch.float64, device=texts.device)
        for row in range(T):
            table[row, : row + 1] = 0
        return table

    @record_function("norm")
    def norm(x: Tensor, scale: Tensor) -> Tensor:
        mean = (x * x).sum(-1, keepdim=True) / D
        return x * (1 / torch.sqrt(mean + 1e-6)) * scale

    @record_function("gelu")
    def gelu(x: Tensor) -> Tensor:
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))

    @record_function("attention")
    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.mT / math.sqrt(D / heads) + mask()
        return (scores.softmax(-1) @ v.double()).float()

    def loss_of(some: Tensor) -> Tensor:
        h = weights["embed"][some[:, :-1]] + positions()
        for layer in "01":
            qkv = norm(h, weights["norm1" + layer]) @ weights["qkv" + layer].T
            mixed = attention(*qkv.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4))
            h = h + mixed.transpose(1, 2).flatten(2) @ weights["out" + layer].T
            h = h + gelu(norm(h, weights["norm2" + layer]) @ weights["up" + layer].T) @ weights["down" + layer].T
        return F.cross_entropy((h @ weights["head"].T).flatten(0, 1), some[:, 1:].flatten())

    loss = 0.0
    for w in weights.values():
        w.grad = None
    for text in texts.split(1):
        part = loss_of(text) / len(texts)
        with record_function("backward"):
            part.backward()
        loss += part.item()
    length = math.sqrt(sum(w.grad.norm().item() ** 2 for w in weights.values()))
    scale = 1.0 / max(1.0, length)  # the gradient is at most 1 long
    with torch.no_grad(), record_function("optimizer"):  # AdamW without decay
        for name, w in weights.items():
            gradient = w.grad * scale
            mean = moments[name][0] = 0.9 * moments[name][0] + 0.1 * gradient
            square = moments[name][1] = 0.99 * moments[name][1] + 0.01 * gradient * gradient
            w -= 0.001 * (mean / (1 - 0.9**t)) / ((square / (1 - 0.99**t)).sqrt() + 1e-8)
    return loss


# %% tags=["nbval-ignore-output", "because it shows times measured on this machine"]
change, concerned = "your changes", []  # what you changed, and which labels it concerns
with your("fast_step", "time_it", "time_shares", "speedup_bounds"):
    tried.append(fast_step)
    before, after = in_turns(time_it, *(running(each, place) for each in tried[-2:]), device=place)
    bound = speedup_bounds(shares, {change: [concerned, math.inf]})[change]
    shares = time_shares(record(running(fast_step, place), LABELS)[1])
rungs.append(Rung(change, before.median / after.median, bound if concerned else math.inf))
print(f"before {said(before)}, after {said(after)}; counted:", counted(tried[-1]))
print("labels left:", {label: f"{share:.0%}" for label, share in shares.items() if label != "idle"})
figures.speed_ladder(rungs, title=f"{title}: the step")

# %% check="fast_step"

# %% [markdown]
# If the quartiles of both overlap, the factor may be noise: run the cell again. A bar beyond its bound is noise, or the change also helped the backward pass.
#
# What is one change worth? Here are three, alone on the given step and as the last one, by the fastest runs. (It takes ten seconds.)

# %% tags=["nbval-ignore-output", "because it shows times measured on this machine"]
with your("time_it"):
    for mend in ("attention", "gelu", "waits"):
        for where, pair in {"alone": (slow_step, mended(mend)), "last": (all_but(mend), all_but())}.items():
            runs = in_turns(time_it, *(running(each, place) for each in pair), device=place)
            before, after = (times.fastest * 1e3 for times in runs)
            print(f"{mend:9} {where:5} {before:6.1f} → {after:6.1f} ms  × {before / after:.2f}")

# %% [markdown]
# A millisecond is a larger *share* of a short step. So what a change is worth depends on the others, speed-ups neither add nor multiply, and each change makes the profile out of date. And `.item()`, which everyone names first, costs a CPU nothing beyond the noise: it has nothing to wait for. On a GPU it does.
#
# <details><summary>The course's step, and torch.compile</summary>
#
# It stands in `solutions/19-gpu-timing`. `torch.compile` could fuse the norm, the GELU and the optimizer of the given step (not measured).
#
# </details>
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | how do I time a GPU? | warm up, synchronise before *and* after, each run by itself; median and quartiles |
# | how long does a kernel take at best? | $\max(F/\text{peak}, M/\text{bandwidth})$, and kernels add up |
# | far below both roofs? | launches, Python, small batches |
# | what can a change save at most? | its share of the *time*, in itself: $1/(1 - s)$ times as fast |
#
# ## Check yourself
#
# 1. Your loop prints `loss.item()` after every step. Does its timing need a `synchronize`? And what does the line cost?
# 2. You decode with a batch of 8 on an A100 and double the batch. How much longer do the products with its weights take?
# 3. A step takes 300 ms, 60 of them in the optimizer, which becomes three times as fast. And the step?
#
# <details><summary>Answers</summary>
#
# 1. `.item()` waits, so the clock is right there. The cost: every step begins with an empty queue.
# 2. No longer: 8 and 16 tokens are both far below the 159 of section 3, so fetching the weights decides.
# 3. It saves 40 of 300 ms: 300/260 = 1.15 times as fast.
#
# </details>

# %% tags=["hide-input"]
from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.latency import compute_bound_tokens, matmul_intensity
from lmcourse.plots import alt_text

h100 = find_accelerator("h100")
assert f"{((9.0 + 4 * 4.0) / 5 + 0.01) / 4.01:.2f}" == "1.25" and round(h100.peak("bf16") / find_accelerator("h100-pcie").peak("bf16"), 1) == 1.3
assert (max(800 / 2 / 100, 20 / 10) + 2, max(800 / 100, 20 / 20) + 2) == (6, 10)
assert f"{(1 / (1 - 0.5 + 0.5 / 2)) ** 2:.2f}" == "1.78" and round(300 / 260, 2) == 1.15 and round(matmul_intensity(1, 8192, 8192)) == 1
assert round(compute_bound_tokens(8192, find_accelerator("a100-80gb"))) == 159 and round(312 / 2.039) == 153
assert round(153 * 8192 / (8192 - 306), 2) == 158.94 and round(matmul_intensity(158, 8192, 8192), 1) == 152.1
assert -(-156 * 8192 // (8192 - 2 * 156)) == 163
spread = figures.timing_spread
times = alt_text(spread())
assert "median 11.2 ms" in times and "middle half 10.7 to 12.0 ms" in times
if torch.__version__.startswith("2.13"):  # other versions may split operations differently
    assert counted(slow_step)["operations"] == 25207 and counted(all_but())["operations"] < 400

# %% [markdown]
# ## Further
#
# Every section below needs the core above, and no other section.

# %%
import os

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # for the kernel in section E: Triton reads this when it is imported

from lmcourse.accounting.accelerators import recognise
from lmcourse.accounting.flops import training_flops
from lmcourse.accounting.latency import decode_attention_intensity, elementwise_intensity, forward_operations
from lmcourse.accounting.mfu import throughput_mfu
from lmcourse.bench.speedups import measure_speedups

# %% [markdown]
# ### A · Chips  (11 min)
#
# From one generation of GPUs to the next, which number grows faster?

# %%
predict("ridge_over_time")

# %%
print("                          16-bit TFLOP/s    GB/s   TiB/s   ridge")
for name in ("v100-sxm", "v100s", "a100-40gb", "a100-80gb", "h100"):
    chip = find_accelerator(name)
    best = chip.peaks.get("bf16", chip.peaks["fp16"])
    row = f"{best / 1e12:14,.1f}  {chip.bandwidth / 1e9:6,.0f}  {chip.bandwidth / 2**40:6.2f}  {best / chip.bandwidth:6.1f}"
    print(f"{chip.title:26}{row}")

# %% [markdown]
# Mind the unit: 312 TFLOP/s and 2.039 *TB/s* make a ridge of 153, but 2.039 *TiB/s* one of 139.

# %% [markdown]
# ### Exercise 8 · The ridge point  (2 points · 5 min · ●)
#
# From the numbers as data sheets print them: `tflops` in TFLOP/s (`sparse` says that it is the figure for sparse matrices, twice the dense one) and `bandwidth` in `unit`, one of `"GB/s"`, `"TB/s"`, `"GiB/s"`, `"TiB/s"`. Return FLOPs per byte. Any other unit, also one in small letters, is a `ValueError`.


# %% exercise="ridge_point"
def ridge_point(tflops: float, bandwidth: float, unit: str = "GB/s", sparse: bool = False) -> float:
    """FLOPs per byte from which on arithmetic limits: 10.0 for 1 TFLOP/s and 100 GB/s."""
    ### BEGIN SOLUTION
    units = {"GB/s": 10**9, "TB/s": 10**12, "GiB/s": 2**30, "TiB/s": 2**40}
    if unit not in units:
        raise ValueError(f"{unit} is not one of {', '.join(units)}")
    peak = tflops * 10**12 / (2 if sparse else 1)
    return peak / (bandwidth * units[unit])
    ### END SOLUTION


# %% check="ridge_point"

# %%
explore(figures.ridge_points, sparse=False, binary=False)

# %% [markdown]
# The bandwidth in these ridges is that of the memory on the card. Every step further away is slower: another GPU over NVLink, the main memory over PCIe. And one step nearer, on the chip itself, it is ten times faster, but there are only some megabytes. How long does it take to move all weights of a 7B model?

# %%
paths = {"PCIe 4.0, one way": 32e9, "PCIe 5.0, one way": 64e9, "NVLink of an H100, one way": 450e9}
paths |= {f"memory of an {chip.title}": chip.bandwidth for chip in map(find_accelerator, ("a100-40gb", "h100"))}
for path, speed in (paths | {"on the chip of an A100": 19e12}).items():  # the last one: Dao et al., 2022
    print(f"{path:33} {speed / 1e9:6,.0f} GB/s: 14 GB in {14e9 / speed * 1e3:6.1f} ms")

# %% [markdown]
# Weights that lie in main memory (*offloading*) cost nearly half a second per pass over PCIe 4, against 4 ms from an H100's own memory. (PCIe is to blame, not the main memory: eight channels of DDR4-3200 read at 205 GB/s.) The last row is why *fusing* and *tiling* pay: what stays on the chip between two operations need not move at all. FlashAttention is that idea, applied to attention (Dao et al., 2022).
#
# H100s come as SXM, PCIe and NVL, and differ by a third. Where the course's table is not sure, it gives no peak:

# %%
for name in ("NVIDIA H100 PCIe", "NVIDIA H100 80GB HBM3", "NVIDIA H100"):
    found = recognise(name)
    print(f"{name:22}", "unknown: no peak, no MFU" if found is None else f"{found.peak('bf16') / 1e12:,.1f} TFLOP/s")

# %% [markdown]
# ### B · How many tokens are enough?  (6 min)

# %%
predict("one_token_more")

# %% [markdown]
# > **Spot the slip.** A colleague has $\frac{1}{p} \cdot \frac{nD}{2n + D}$ for a product of $n$ tokens, and writes that products are "essentially always compute-bound". What did she count once, and what about *always*? Here is $D = 8192$ in bf16:

# %%
for n in (1, 200, 2048, 4_000_000):
    print(f"{n:9,} tokens: {matmul_intensity(n, 8192, 8192):7.1f} FLOPs per byte")

# %% [markdown]
# (Each step of a product multiplies *and* adds: the factor is 2.) Now see from how many tokens on arithmetic limits, for other widths:

# %%
explore(figures.product_intensity, tokens=[1, 16, 159, 512, 4096, 65536, 1048576], width=[256, 512, 1024, 4096, 8192, 12288])

# %% [markdown]
# Make the matrix narrow. With a width of 512 the highest intensity, $D/p = 256$, stays below an H100's ridge: no number of tokens makes it compute-bound.
#
# > **Spot the slip.** A colleague writes: "Training moves $O(N)$ bytes, so its intensity is $O(n)$, the tokens of a batch." That is the dashed line, and it holds while $n$ is small beside $D$. Training is on the other side: with four million tokens in a batch and $D = 12{,}288$ the dashed line promises
# > four million FLOPs per byte, and there are 6135, about $D/2$. More tokens change nothing.
#
# Decoding is $O(B)$ for a batch of $B$ texts, but only for the weights. Each text reads its *own* keys and values: 1 FLOP per byte in bf16 if every head has its own, whatever the batch. Here are reading and writing, for all of Llama 3 8B, with texts of 2048 tokens:

# %%
llama = find_model("llama-3-8b").decoder
works = {"reading 4 texts": forward_operations(llama, 4, 2048, logits="all")}
works |= {f"one more token, batch of {B}": forward_operations(llama, B, 1, past=2047) for B in (1, 16, 256)}
for name, groups in works.items():
    flops, moved = (sum(getattr(group, what) for group in groups.values()) for what in ("flops", "moved"))
    attention = groups["attention"].intensity
    print(f"{name:28} {flops / moved:7.1f} FLOPs per byte, scores and values alone {attention:6.1f}")
print(f"a cached key that 4 heads share: {decode_attention_intensity(4):.0f} FLOPs per byte at most; not shared: 1")

# %% [markdown]
# **In real models.** Servers therefore decode many texts together, and designers let heads share keys (notebook 08), which lifts the part that no batch can lift. Notebook 17 turns this into latencies.

# %% [markdown]
# ### C · Many small things  (10 min)
#
# An element-wise operation reads a number, does $C$ operations on it, and writes it back.

# %%
predict("three_kernels_in_one")

# %%
for name, each in (("ReLU, or scale, or add a bias", 1), ("GELU", 20), ("scale, add, GELU in one kernel", 22)):
    print(f"{name:32} {each:2} operations per number: {elementwise_intensity(each):5.2f} FLOPs per byte")
print(f"the three one after the other:                         {(1 + 1 + 20) / (3 * 2 * 2):5.2f}")

# %% [markdown]
# **Fusing** means: one kernel that reads once, does everything, and writes once. A colleague's formula for one kernel is $C/p$. She counts the reading and forgets the writing:
#
# $$I = \frac{C}{2p}$$
#
# A residual sum reads *two* numbers and writes one: $1/6$ in bf16. A LayerNorm or a softmax does some five operations per number, $5/4$ at best, if it reads its input only once. The ridge is 150 to 300. So all of these wait for memory, on every GPU there is. A faster chip does not help; moving less does.
#
# What does that mean for a whole layer?

# %%
predict("free_flops")

# %%
explore(figures.runtime_shares, free=["nothing", "softmax and norms", "element-wise", "both"])

# %% [markdown]
# The measurements are by Ivanov et al. (2021), *Data movement is all you need*. (The paper puts softmax and layer norm into one class, "statistical normalization". So the 25.5 % are not the norms alone.) What you make faster can save its own share of the *time*, and no more; its share of the FLOPs says nothing.
#
# Short kernels cost in another way, too: on a GPU they wait for their launches.

# %%
explore(figures.launch_queue, work=(1.0, 20.0, 0.5), launch=(2.0, 20.0, 1.0), fused=[1, 2, 4, 8])

# %% [markdown]
# A CUDA graph saves launches. Here are a thousand kernels on the simulated device, where a launch takes 5 µs, and then the same work, launched as a whole:

# %%
for kernel in (3e-6, 20e-6):
    for name, runs, work in (("1,000 launches", 1000, kernel), ("one launch", 1, 1000 * kernel)):
        simulated = SimulatedDevice([work], launch=5e-6)
        for _ in range(runs):
            simulated.run()
        simulated.synchronise()
        print(f"kernels of {kernel * 1e6:2.0f} µs, {name:14} {simulated.clock() * 1e3:6.3f} ms")

# %% [markdown]
# Short kernels wait for their launches, so launching them as a whole helps. Kernels of 20 µs hide the launches already.
#
# On an H100 1,000 launches on 1,024 numbers took 7.5 and 10.6 ms in two tries, and 1.0 and 1.4 ms as a CUDA graph: a launch costs 8 to 11 µs, the kernel itself about 1 µs. On 16.8 million numbers a kernel takes 47 µs, and the graph saved 3 and 4 %. On a GPU, `torch.compile(..., mode="reduce-overhead")` does both: it compiles, and records the result as a CUDA graph.

# %% [markdown]
# ### D · A step, and its ladder  (21 min)
#
# Thousands of kernels, some on the slope, some under the roof, some waiting for a launch. MFU sums it up: model FLOPs of the step, divided by what the machine could have done in that time (notebook 15). Most mistakes are in the *peak*. Which GPU exactly? Which format? Dense? The same rate, as a share of three peaks of an H100:

# %%
h100 = find_accelerator("h100")
for promised in ("fp32", "tf32", "bf16"):
    print(f"40 TFLOP/s are {40e12 / h100.peak(promised):5.1%} of its {promised} peak, {h100.peak(promised) / 1e12:.1f} TFLOP/s")
per_token = 6 * 7e9
share = throughput_mfu(1e5, per_token, find_accelerator("a100"), "bf16", devices=32)
print(f"7B parameters, 100,000 tokens/s on 32 A100s: {share:.0%} of the bf16 peak")

# %% [markdown]
# The last line has a rate in *tokens*, from a log; so multiply by the FLOPs of one token, $6N$, not of a whole batch.

# %% [markdown]
# ### Exercise 9 · MFU from a log  (3 points · 8 min · ●●)
#
# `flops` are the model FLOPs of a step, `seconds` the times of several steps; take their median. `device` is what the driver calls the GPU, `number` the format of the products. `peaks` is a table of dense peaks, `peaks["NVIDIA H100 PCIe"]["bf16"]`. Return MFU as a share. Raise `ValueError` if the table does not have exactly this name of a GPU or a format (do not guess), and if the share comes out above 1.


# %% exercise="mfu_of_step"
def mfu_of_step(flops: float, seconds: list[float], device: str, number: str, peaks: dict[str, dict[str, float]]) -> float:
    """The share of the dense peak that model FLOPs are."""
    ### BEGIN SOLUTION
    if number not in peaks.get(device, {}):
        raise ValueError(f"no {number} peak is known for {device}: measure it")
    share = flops / statistics.median(seconds) / peaks[device][number]
    if share > 1:
        raise ValueError(f"{share:.0%} of the peak cannot be")
    return share
    ### END SOLUTION


# %% check="mfu_of_step"

# %% [markdown]
# Here are small models of growing width, trained with batches of growing size on your device. On a GPU the peak is the cited one; on a CPU it is that of one core, from section 2, so 100 % would mean that a step is one perfect product. Where does MFU rise, and why?

# %% tags=["nbval-ignore-output", "because it shows steps measured on this machine"]
widths, batches, length = ((256, 1024, 2048), (1, 8, 64), 512) if on_gpu else ((64, 128, 256), (1, 4, 16), 64)
for width in widths:
    model = modern(2, width, max(4, width // 64), length)  # heads of at most 64: FlashAttention ends at 256
    for batch in batches:
        setup = StepSetup(batch, fused_optimizer=True, fused_attention=True, bf16=number == "bf16")
        taken = timing.time_it(make_training_step(model, setup, length, device), warmup=1, repeats=3, device=device).median
        share = training_flops(model, batch, length).model.total / taken / peak
        print(f"width {width:5}, batch {batch:3}: MFU {share:6.1%}", "  above 100 %: measure the peak again" * (share > 1))

# %% [markdown]
# **In real models.** PaLM reached 46 % (Chowdhery et al., 2022), Llama 3 405B 38 to 43 % on up to 16,384 H100s (Grattafiori et al., 2024, table 4). If your log says 81 %, look up the peak before you celebrate. A GPT trained on an A100 whose "peak" was taken as 78 TFLOP/s shows four times its MFU: 78 is what the ordinary units do in fp16, and the products ran on tensor cores, at 312. Keep $\text{MFU} > 1$ an error, and you will notice the worst of these mistakes. (A question: code shows 52 % on an H100 PCIe, computed with the peak of the SXM version. What is the right MFU? Answer: 0.52 · 989.4/756 = 68 %.)
#
# The step of section 5 has names for its three phases, and the profiler adds up calls of the same name. Its *self* time is the time in themselves, its *total* includes what is inside. (On a GPU these are the times of the kernels that an operation launched.) And what does looking cost?

# %% tags=["nbval-ignore-output", "because it shows times measured on this machine"]
with your("time_shares"):
    in_phases = [time_shares(phases) for _, phases, _ in recorded]
for name in in_phases[0]:
    print(f"{name:10}", " ".join(f"{each[name]:6.1%}" for each in in_phases))
clock, profiler = "device" if device.type == "cuda" else "cpu", recorded[0][2]
operations = [each for each in profiler.key_averages() if each.device_type.name == "CPU" and each.key not in in_phases[0]]
print(f"{'':30} calls        self       total")
for each in sorted(operations, key=lambda each: getattr(each, f"self_{clock}_time_total"), reverse=True)[:6]:
    own, total = (getattr(each, f"{part}{clock}_time_total") / 1e3 for part in ("self_", ""))
    print(f"{each.key[:30]:30} {each.count:5} {own:8.2f} ms {total:8.2f} ms")
plain, watched = [], []
for _ in range(5):  # alternately, so that a busy minute hits both
    plain.append(timing.time_it(step, warmup=0, repeats=1, device=device).median)
    seen, _, _ = record(step)
    watched.append(max(end for *_, end in seen) - min(begin for _, begin, _ in seen))
print(f"\na step, fastest of five: {min(plain) * 1e3:.1f} ms; while it is recorded: {min(watched) / 1e3:.1f} ms")

# %% [markdown]
# Recording adds a little to every call. In a step like this one it can be lost in the noise. Very small operations look larger than they are.
#
# Now five well-known changes, each timed alternately with the fastest step so far, and kept only if it helped.

# %%
predict("bf16_on_a_cpu")

# %% [markdown]
# | change | what it does |
# | --- | --- |
# | more texts at once | longer kernels, the weights are fetched once for all texts |
# | fused optimizer | AdamW in one kernel, not a dozen for each tensor of weights |
# | fused attention | the matrix of scores never goes to memory (FlashAttention; Dao et al., 2022) |
# | bf16 | half the bytes, and units that are 8 to 16 times as fast, where there are such units |
# | compiled | `torch.compile` fuses element-wise operations, and cuts launches |
#
# The fused optimizer has a phase of its own, and so a bound: it cannot save more than the optimizer's share. (Its profile was taken with 8 texts, as in the first change.) The others change products and element-wise work everywhere.

# %% tags=["nbval-ignore-output", "because it shows steps measured on this machine"]
optimizer_share = statistics.mean(shares["optimizer"] for shares in in_phases)
with your("speedup_bounds"):
    bounds = speedup_bounds({"optimizer": optimizer_share}, {"fused optimizer": [["optimizer"], math.inf]})
speedups = measure_speedups(config, length, batch=8, device=device, warmup=1, repeats=5)
ladder = [Rung(one.name, one.ratio, bounds.get(one.name, math.inf), one.kept) for one in speedups]
for one in speedups:
    print(f"{one.name:20} {one.before:10,.0f} → {one.after:10,.0f} tokens/s  × {one.ratio:.2f}")
figures.speed_ladder(ladder, title=f"{title}: a training step")

# %% [markdown]
# Read your ladder with section 1 in mind: on a busy machine a factor of 0.95 or 1.05 is noise. Run the cell again, and see which factors stay. A bar beyond its line *must* be noise or a wrong measurement.
#
# On an H100 we saw, with a model of GPT-2's size: 8 texts × 3.3 and 4.2 in two tries, fused optimizer × 1.03 and 1.04, fused attention × 1.09, bf16 × 2.3 and 2.5, compiled × 1.5 and 1.7. Together that is 13 and 20 times as fast. (There the cell takes about a minute, because it compiles.)
#
# On a CPU the last change is missing, because compiling takes long: 67 s on a busy core of an AMD EPYC. Set `compiled=True` in a `StepSetup` to try it yourself. Fused attention brings little at 64 tokens, because the matrix of scores is small; it grows with the square. And bf16 depends on your processor: recent ones have instructions for it, others convert every number to fp32 and back. What does yours have, and how fast does it multiply?

# %% tags=["nbval-ignore-output", "because it shows rates measured on this machine"]
print("vector instructions of the CPU:", torch.backends.cpu.get_cpu_capability())
for format_name in ("fp32", "bf16"):
    (rate,) = machine.matmul_rates(format_name, (512,), device=device, seconds=0.1).values()
    print(f"products of 512 × 512 in {format_name}: {rate / 1e9:10,.1f} GFLOP/s")

# %% [markdown]
# Does your CPU multiply faster in bf16, and is the step still not faster? At this width products are half of the time or less, and each of them needs conversions, because the weights stay in fp32.
#
# These few changes are most of what separates a first script from a production trainer. After them comes parallelism (notebook 18).

# %% [markdown]
# ### E · Who fuses, and who launches?  (7 min)
#
# Three tools save bytes or launches. They change different things:
#
# | tool | you write | what it changes | what it leaves |
# | --- | --- | --- | --- |
# | `torch.compile` | PyTorch, as before | element-wise operations and sums that follow each other become one kernel: C++ for a CPU, Triton for a GPU | large products, by default: the library has good kernels for them |
# | a CUDA graph | PyTorch, for shapes and addresses that stay the same | a recorded step is launched as a whole | every kernel, and the bytes it moves |
# | Triton (Tillet et al., 2019) | the kernel, in Python, for one block of the data | you decide what stays on the chip between two operations | everything outside of your kernel |
#
# The first and the last save bytes.

# %%
predict("norm_in_one_kernel")

# %% tags=["nbval-ignore-output", "because it shows times measured on this machine"]
def five_operations(x: torch.Tensor) -> torch.Tensor:
    """LayerNorm, as you would write it."""
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)


COMPILE = device.type == "cuda"  # on a CPU it takes up to a minute, and needs a C++ compiler: set it to True to try it
stream = torch.randn(2**14 if on_gpu else 2**11, 2**11, device=device)
versions: dict[str, Callable[[], object]] = {
    "five operations": lambda: five_operations(stream),
    "one kernel of the library": lambda: torch.nn.functional.layer_norm(stream, stream.shape[-1:]),
}
if COMPILE:
    compiled = torch.compile(five_operations)
    versions["five operations, compiled"] = lambda: compiled(stream)
times = timing.time_interleaved(versions, repeats=9, device=device)
for name, timed_runs in times.items():
    print(f"{name:26} {timed_runs.median * 1e3:8.2f} ms, × {times['five operations'].median / timed_runs.median:.1f}")

# %% [markdown]
# We set `COMPILE` to True and measured in three tries. (Compiling took 11 s on a CPU core.)
#
# | times as fast as the five operations | CPU core | H100 |
# | --- | --- | --- |
# | compiled | 4.1 to 4.6 | 2.4 to 3.0 |
# | the library's kernel | | 3.0 to 3.8 |
# | compiled, beside the library's kernel | 1.6 to 2.1 | |
#
# With the third tool you write the kernel yourself. Triton runs this one once for each row: it reads the row once, keeps it on the chip and writes it once. Without a GPU, Triton's interpreter runs the same kernel on the CPU, but slowly: look at its results, not at its time.

# %% tags=["nbval-ignore-output", "because Triton is not part of the course and may be missing"]
try:
    import triton
    import triton.language as tl

    @triton.jit
    def norm(source, target, n, BLOCK: tl.constexpr):
        """A row of a LayerNorm."""
        place = tl.arange(0, BLOCK)
        row = tl.load(source + tl.program_id(0) * n + place, mask=place < n, other=0.0)
        centred = tl.where(place < n, row - tl.sum(row, 0) / n, 0.0)
        scale = tl.rsqrt(tl.sum(centred * centred, 0) / n + 1e-5)
        tl.store(target + tl.program_id(0) * n + place, centred * scale, mask=place < n)

    rows = torch.randn(64, 2000, device=device)
    fused = torch.empty_like(rows)
    norm[(64,)](rows, fused, 2000, BLOCK=2048)
    gap = (fused - torch.nn.functional.layer_norm(rows, (2000,))).abs().max().item()
    print(f"largest difference from torch's LayerNorm: {gap:.0e}")
    print(f"bytes moved: {8 * rows.nbytes:,} by five operations, {2 * rows.nbytes:,} by this kernel")
except ImportError:
    print("To run this kernel on Linux, install Triton: pip install triton")

# %% [markdown]
# On the H100, and on a tensor as large as the one that we timed, this kernel took 0.118 ms, the library's kernel 0.119 ms, and the five operations 0.450 ms: 3.8 times as fast, where we predicted four.

# %% [markdown]
# ## Further reading
#
# - Williams, Waterman, Patterson, 2009, *Roofline: an insightful visual performance model for multicore architectures*.
# - Amdahl, 1967, *Validity of the single processor approach to achieving large scale computing capabilities*: three pages.
# - Tillet, Kung, Cox, 2019, *Triton: an intermediate language and compiler for tiled neural network computations*.
# - Ivanov et al., 2021, *Data movement is all you need: a case study on optimizing transformers*.
# - Dao et al., 2022, *FlashAttention: fast and memory-efficient exact attention with IO-awareness*, §2.1 on memory.
# - Pope et al., 2022, *Efficiently scaling transformer inference*: the same arithmetic for decoding.
# - Chowdhery et al., 2022, *PaLM*, appendix B: MFU.
# - In this package: `lmcourse/accounting/timing.py`, `machine.py` and `accelerators.py`, and `lmcourse bench` on the command line; [docs/gpu.md](../../docs/gpu.md) for running the course on a GPU.

# %% [markdown]
# The numbers of Further are checked here. (The cell is folded.)

# %% tags=["hide-input"]
v100, a100_40, a100_80 = (find_accelerator(name) for name in ("v100", "a100-40gb", "a100-80gb"))
assert round(312 / 2.039 / (2**40 / 1e12)) == 139 and elementwise_intensity(1) * 2 / 3 == 1 / 6
assert [elementwise_intensity(each) for each in (1, 20, 22, 5)] == [0.25, 5, 5.5, 1.25]
assert [round(v100.ridge("fp16")), round(h100.ridge("bf16"))] == [139, 295]
assert round(h100.peak("bf16") / v100.peak("fp16")) == 8 and round(h100.bandwidth / v100.bandwidth, 1) == 3.7
assert round(8 * 3200e6 * 8 / 1e9) == 205 and round(7e9 * 2 / 32e9, 1) == 0.4 and round(7e9 * 2 / h100.bandwidth * 1000) == 4
assert [round(matmul_intensity(n, 8192, 8192), 1) for n in (200, 2048)] == [190.7, 1365.3]
assert round(matmul_intensity(2**22, 12_288, 12_288)) == 6135
assert math.isinf(compute_bound_tokens(512, h100)) and 512 / 2 == 256
assert [round(compute_bound_tokens(8192, chip)) for chip in (a100_80, a100_40)] == [159, 211]
assert round(100 / 74.5, 2) == 1.34 and 312 / 78 == 4 and round(0.52 * 989.4 / 756, 2) == 0.68
assert [round(v100.peak("fp16") / v100.peak("fp32")), a100_80.peak("bf16") / a100_80.peak("fp32")] == [8, 16]
