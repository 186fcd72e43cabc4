# %% [markdown]
# # 19 · GPU timing
#
# **125 min · 10 exercises · 29 points**
#
# Two people time the same product on the same GPU, and get two very different times. Both have a clock that works. This notebook is about the number you can
# trust, about what to compare it with, and about what to change when it is too large.
#
# **You will be able to**
#
# - time anything on a CPU or a GPU, and say how sure you are;
# - measure what your machine can do at best, and place any operation under its roofline;
# - say whether arithmetic, memory or neither limits it, and what would help;
# - see with a profiler where the time of a training step goes, say what a change can bring at most, and then measure it.
#
# **You need** FLOPs and MFU (notebook 15). No GPU: everything runs on whatever device is there. On a GPU the same cells show the GPU.
#
# Each exercise has a cell for your answer and a check below it. The checks use a simulated device, so a busy machine costs no points.
# Stuck? `hint("name_of_the_exercise")` gives a nudge; run it again for the next one. Write your answers without the package `lmcourse`: it has stopwatches and peaks of its own.

# %%
import math
import os
import statistics
from collections.abc import Callable
from functools import partial

import torch
from torch.profiler import profile

from lmcourse.accounting import machine, timing
from lmcourse.accounting.accelerators import find_accelerator, present_gpu, recognise
from lmcourse.accounting.flops import training_flops
from lmcourse.accounting.formats import BYTES_PER_NUMBER, DTYPES
from lmcourse.accounting.latency import (
    compute_bound_tokens,
    decode_attention_intensity,
    elementwise_intensity,
    forward_operations,
    matmul_intensity,
)
from lmcourse.accounting.mfu import throughput_mfu
from lmcourse.accounting.timing import SimulatedDevice
from lmcourse.bench.speedups import StepSetup, make_training_step, measure_speedups
from lmcourse.chapters.gpu_timing import figures
from lmcourse.chapters.gpu_timing.events import GROUPS, PHASES, Event, by_group
from lmcourse.chapters.gpu_timing.figures.roofline import MeasuredPoint
from lmcourse.device import best_device, cpu_name
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.course import modern
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.plots import alt_text

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # for the kernel in section 10: Triton reads this when it is imported
start("19-gpu-timing")

# %% [markdown]
# ## 1 · What does the clock see?

# %%
predict("who_waits")

# %% [markdown]
# A GPU takes orders. `a @ b` puts a product into its queue and returns, long before the product is there. That is good: the CPU can prepare what comes next.
# But a clock on the CPU sees only the ordering. To see the work, wait until the queue is empty: `torch.cuda.synchronize()`. On a CPU there
# is nothing to wait for, because it does the work itself.
#
# To practise without a GPU, and without luck, here is a simulated one. It needs 4 s for a run, and 9 s for the first run, in which a real GPU would load its kernels. Handing a run over takes 0.01 s.

# %%
device_of_paper = SimulatedDevice([9.0, 4.0], launch=0.01)
for run in range(3):
    begin = device_of_paper.clock()
    device_of_paper.run()
    ordered = device_of_paper.clock()
    device_of_paper.synchronise()
    print(f"run {run}: ordered after {ordered - begin:.2f} s, done after {device_of_paper.clock() - begin:.2f} s")

# %% [markdown]
# > **Spot the slip.** A colleague's model computes `x @ w`. She times it like this, and calls the result the MFU of the model:
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
device_of_paper = SimulatedDevice([9.0, 4.0], launch=0.01)
for _ in range(5):
    device_of_paper.run()
    device_of_paper.synchronise()
print(f"her time: {device_of_paper.clock() / 5:.2f} s")

# %% [markdown]
# A quarter too much, because the first run counts like the others. Also, `a` and `b` are not what the model multiplies; one product is not a model; and the peak is that of fp32, which a model in bf16 does not use.
#
# So run a few times first, and throw these runs away. What is left scatters all the same, because a machine is never alone.

# %%
predict("one_slow_run")

# %%
explore(figures.timing_spread, runs=(5, 60), disturbed=(0.0, 0.6, 0.05), warm_up_counts=False)

# %% [markdown]
# Other programs only *add* to a time. (The clock frequency of the chip can do either; see below.) So the mean is pulled up, and by how much depends on what else was running. The median ignores disturbed runs, until half of all runs are disturbed. Report it
# with the quartiles, between which the middle half of the runs lies: 11.2 ms (10.7 to 12.0) is a measurement, 11.2 ms is a rumour. The fastest run answers another question:
# what *can* be done?
#
# ### Exercise 1 · A stopwatch  (4 points · 10 min · ●●●)
#
# Run `warmup` times, then `repeats` times with the clock. Return the median time of a run. `synchronise()` returns when the device has
# nothing left to do; `clock()` returns the time in seconds. Time every run by itself: the device must have nothing to do when the clock starts, and be done when it stops.
# Fewer than 1 run that counts, or fewer than 0 before, is a `ValueError`.


# %% exercise="time_it"
def time_it(
    run: Callable[[], object],
    synchronise: Callable[[], object],
    clock: Callable[[], float],
    warmup: int = 3,
    repeats: int = 5,
) -> float:
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
check(time_it)
### BEGIN HIDDEN TESTS
check(time_it, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# `lmcourse.accounting.timing` has a stopwatch like yours. It also stops the garbage collector, and on a CUDA GPU reads the GPU's own clock between two events in its queue. (If the GPU gets to the first event before the
# kernel is launched, it waits for the launch, and that wait is in the time: repeat a tiny kernel many times between the events.) Let us meet your device. On a CPU we use a single core from here on: with more, a busy machine would make us measure threads that wait for each other. (Cells like the next one print a time or a name, so their output on your machine differs from the one here.)

# %% tags=["nbval-ignore-output", "because it shows the device and a measured time"]
device = best_device()
on_gpu = device.type != "cpu"
if not on_gpu:
    torch.set_num_threads(1)
number = "bf16" if device.type == "cuda" and machine.has_units("bf16", device) else "fp32"
known, caveats = present_gpu(device) if device.type == "cuda" else (None, ())
title = torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()

a = torch.randn(512, 512, device=device)
product = timing.time_it(lambda: a @ a, warmup=3, repeats=20, device=device)
low, high = product.quartiles
print(title, *caveats, sep="\n")
print(f"512 × 512 in fp32: {product.median * 1e6:,.0f} µs ({low * 1e6:,.0f} to {high * 1e6:,.0f}); from section 2 on, products are in {number}")

# %% [markdown]
# **In real models.** Three things that no stopwatch can fix. *Frequency*: a GPU that was idle runs faster for a moment than a warm one; keep it busy for some seconds first. *Caches*: a small tensor that was just used is still in the
# cache; flush it if the model would find it cold. *Neighbours*: to compare two versions, take turns (A, B, B, A, …), so that a busy minute hits both. `timing.time_interleaved` does that.

# %% [markdown]
# ## 2 · What can this machine do?
#
# A time means little without the best possible one. For a GPU the maker publishes a peak. For your CPU there is usually no such number, so measure it.
#
# Which operation comes nearest to the peak? A large product of square matrices: it uses every number thousands of times. How large? Too small, and starting costs more than computing; too large, and it does not fit into the caches. Try several, and take the
# best. And since we ask what *can* be done, the shortest time counts here, not the median.
#
# ### Exercise 2 · The peak, measured  (3 points · 6 min · ●●)
#
# `seconds` maps a width $n$ to the times of runs of a product of two $n \times n$ matrices: `{512: [0.011, 0.009], 1024: [0.08]}`. Return the highest FLOP/s. A width without a time does not count; if nothing was measured at all, raise `ValueError`.


# %% exercise="matmul_peak"
def matmul_peak(seconds: dict[int, list[float]]) -> float:
    """The best rate of all runs, in FLOP/s."""
    ### BEGIN SOLUTION
    return max(2 * width**3 / run for width, runs in seconds.items() for run in runs)  # of nothing: ValueError
    ### END SOLUTION


# %% check="matmul_peak"
check(matmul_peak)
### BEGIN HIDDEN TESTS
check(matmul_peak, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# The other thing a machine does is move numbers. Copy a large tensor: every byte is read once and written once, and *both* cross the bus.
# "Large" matters. What fits into a cache of some megabytes stays there, and you measure the cache, which is ten times as fast.
#
# ### Exercise 3 · The bandwidth, measured  (3 points · 6 min · ●●)
#
# `seconds` maps the bytes of a tensor to the times of copying it; `cache` is how many bytes the cache holds. Return the best bytes/s over all tensors *larger* than the cache.
# If no such tensor has a time, raise `ValueError`.


# %% exercise="copy_bandwidth"
def copy_bandwidth(seconds: dict[int, list[float]], cache: int) -> float:
    """Bytes per second to and from memory, at best."""
    ### BEGIN SOLUTION
    return max(2 * size / run for size, runs in seconds.items() if size > cache for run in runs)  # of nothing: ValueError
    ### END SOLUTION


# %% check="copy_bandwidth"
check(copy_bandwidth)
### BEGIN HIDDEN TESTS
check(copy_bandwidth, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now yours, with the package's functions. If your GPU is in the course's table, its published dense peak is printed as well. One that is *not* in the table gets no peak: H100s alone come as SXM, PCIe and NVL, and differ by a third.

# %% tags=["nbval-ignore-output", "because it shows measured rates"]
widths, copied = ((2048, 4096, 8192), 2**30) if on_gpu else ((128, 256, 512, 1024), 2**27)
rates = machine.matmul_rates(number, widths, device=device, seconds=0.2)
bandwidth = machine.copy_bandwidth(copied, device=device, seconds=0.2)
for width, rate in rates.items():
    print(f"{width:5} × {width:<5} {number}: {rate / 1e9:10,.1f} GFLOP/s")
print(f"copy of {copied / 2**20:.0f} MiB:   {bandwidth / 1e9:10,.1f} GB/s")
peak = max(rates.values())
if known is not None:
    print(f"cited: {known.peak(number) / 1e9:,.0f} GFLOP/s dense, {known.bandwidth / 1e9:,.0f} GB/s ({known.sources[0]})")
    peak, bandwidth = known.peak(number), known.bandwidth

# %%
for name in ("NVIDIA H100 PCIe", "NVIDIA H100 80GB HBM3", "NVIDIA H100"):
    found = recognise(name)
    print(f"{name:22}", "unknown: no peak, no MFU" if found is None else f"{found.peak('bf16') / 1e12:,.1f} TFLOP/s")

# %% [markdown]
# ## 3 · The ridge
#
# The ridge of notebook 11 says how many FLOPs a machine can do in the time it takes to move a byte: peak over bandwidth.
#
# $$\lambda = \frac{\text{peak}}{\text{bandwidth}} \quad \left[\frac{\text{FLOP/s}}{\text{byte/s}} = \text{FLOPs per byte}\right]$$

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
#
# ### Exercise 4 · The ridge point  (2 points · 5 min · ●)
#
# From the numbers as data sheets print them: `tflops` in TFLOP/s (`sparse` says that it is the figure for sparse matrices, twice the dense one) and `bandwidth` in `unit`, one of `"GB/s"`, `"TB/s"`, `"GiB/s"`, `"TiB/s"`. Return FLOPs per
# byte. Any other unit, also one in small letters, is a `ValueError`.


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
check(ridge_point)
### BEGIN HIDDEN TESTS
check(ridge_point, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.ridge_points, sparse=False, binary=False)

# %% [markdown]
# **In real models.** The bandwidth is that of the memory on the card. Every step further away is slower: another GPU over NVLink, the main memory over PCIe. And one step nearer, on the chip itself, it is ten times faster, but there are only some megabytes. How long
# does it take to move all weights of a 7B model?

# %%
explore(figures.transfer_time, parameters_in_billions=(1.0, 70.0, 1.0), bytes_each=[1, 2, 4])

# %% [markdown]
# Weights that lie in main memory (*offloading*) cost nearly half a second per pass over PCIe 4, for 4 ms of reading from an H100's own memory. (PCIe is to blame, not the main memory: eight channels of DDR4-3200 read at 205 GB/s.) The last row is why *fusing* and *tiling* pay: what stays on the chip between two operations need not
# move at all. FlashAttention is that idea, applied to attention (Dao et al., 2022).

# %% [markdown]
# ## 4 · The roofline

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
#
# ### Exercise 5 · At best  (3 points · 6 min · ●●)
#
# `kernels` is a list of `[flops, bytes]`. They run one after the other. Return the seconds they take at best.


# %% exercise="roofline"
def roofline(kernels: list[list[float]], peak: float, bandwidth: float) -> float:
    """Seconds of kernels that run one after the other, each as fast as the machine allows."""
    ### BEGIN SOLUTION
    return sum(max(flops / peak, moved / bandwidth) for flops, moved in kernels)
    ### END SOLUTION


# %% check="roofline"
check(roofline)
### BEGIN HIDDEN TESTS
check(roofline, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# In a formula, for a kernel of $F$ FLOPs and $M$ bytes:
#
# $$t = \max\left(\frac{F}{\text{peak}},\; \frac{M}{\text{bandwidth}}\right).$$
#
# Divide $F$ by that time and you have the **roofline** (Williams et al., 2009): attainable FLOP/s $= \min(\text{peak},\; I \cdot \text{bandwidth})$, where $I = F/M$ is the **arithmetic intensity**. Below the ridge memory limits, above it arithmetic.
#
# Now put real operations under the roof of the machine before you: a weight matrix that is multiplied with few and with many vectors, element-wise operations on a large tensor, and a tiny product. The cache is flushed before each run, because in a model
# hundreds of megabytes pass between two uses of a matrix.

# %% tags=["nbval-ignore-output", "because it shows a roofline measured on this machine"]
dtype, size = DTYPES[number], BYTES_PER_NUMBER[number]
flush = timing.cache_flusher(device)
timed: dict[str, list[float]] = {}  # FLOPs, bytes and seconds of each kernel


def dot(name: str, flops: float, moved: float, run: Callable[[], object], repeats: int = 5) -> MeasuredPoint:
    """Time a run, and place it."""
    taken = timing.time_it(run, warmup=2, repeats=repeats, device=device, before=flush).median
    timed[name] = [flops, moved, taken]
    return MeasuredPoint(name, flops / moved, flops / taken)


def product_dot(tokens: int, width: int, name: str) -> MeasuredPoint:
    x, w = (torch.randn(rows, width, device=device).to(dtype) for rows in (tokens, width))
    out = torch.empty_like(x)
    flops, moved = 2 * tokens * width**2, size * (width**2 + 2 * tokens * width)
    return dot(name, flops, moved, lambda: torch.mm(x, w, out=out))


width = 8192 if on_gpu else 1536
dots = [product_dot(n, width, f"{n} × {width} · W") for n in ((1, 32, 256, 4096) if on_gpu else (1, 8, 64, 512))]
x = torch.randn(2**26 if on_gpu else 2**23, device=device).to(dtype)
y = torch.empty_like(x)
dots.append(dot("add 1 to each", x.numel(), 2 * size * x.numel(), lambda: torch.add(x, 1, out=y)))
dots.append(dot("GELU, as 20 FLOPs", 20 * x.numel(), 2 * size * x.numel(), lambda: torch.ops.aten.gelu.out(x, out=y)))
dots.append(product_dot(16, 16, "16 × 16 · W"))
figures.measured_roofline(peak, bandwidth, dots, title=f"{title}, {number}")

# %% [markdown]
# Follow the products from left to right: more vectors lift them along the slope until arithmetic takes over. Adding 1 stays low whatever you do: there is almost nothing to compute. And the tiny product is far below *both* roofs. It waits for neither; its time goes into Python and into the
# launch. (A dot a little above the slope is possible: a matrix that is only read moves faster than a copy, which also writes.)

# %% [markdown]
# ## 5 · How many tokens are enough?

# %%
predict("one_token_more")

# %% [markdown]
# $n$ tokens pass a $D \times D$ matrix: $2nD^2$ FLOPs. The matrix moves once, $D^2$ numbers, and so do inputs and outputs, $2nD$, at $p$ bytes each:
#
# $$I = \frac{2nD^2}{p\,(D^2 + 2nD)} = \frac{2}{p} \cdot \frac{nD}{2n + D}$$
#
# > **Spot the slip.** A colleague has $\frac{1}{p} \cdot \frac{nD}{2n + D}$, and writes that products are "essentially always compute-bound". What did she count once, and what about *always*? Here is $D = 8192$ in bf16:

# %%
for n in (1, 200, 2048, 4_000_000):
    print(f"{n:9,} tokens: {matmul_intensity(n, 8192, 8192):7.1f} FLOPs per byte")

# %% [markdown]
# (Each step of a product multiplies *and* adds: the factor is 2.) One token: 1 FLOP per byte, on a machine that could do 150. That is decoding, and memory limits it. When is a product compute-bound?
#
# ### Exercise 6 · Enough tokens  (2 points · 5 min · ●●)
#
# An A100 with 312 TFLOP/s and 2.039 TB/s has a ridge of 153 FLOPs per byte. A product with an $8192 \times 8192$ matrix in bf16 is limited by memory if few tokens pass. What is the first whole number of tokens with which arithmetic limits it?

# %% exercise="enough_tokens"
enough_tokens = None  # a whole number in place of None
### BEGIN SOLUTION
enough_tokens = 159  # the first beyond 153 · 8192/(8192 − 2 · 153) = 158.94
### END SOLUTION

# %% check="enough_tokens"
check(enough_tokens=enough_tokens)
### BEGIN HIDDEN TESTS
check(enough_tokens=enough_tokens, hidden=True)
### END HIDDEN TESTS

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
# ## 6 · Many small things
#
# An element-wise operation reads a number, does $C$ operations on it, and writes it back.

# %%
predict("three_kernels_in_one")

# %%
for name, operations in (("ReLU, or scale, or add a bias", 1), ("GELU", 20), ("scale, add, GELU in one kernel", 22)):
    print(f"{name:32} {operations:2} operations per number: {elementwise_intensity(operations):5.2f} FLOPs per byte")
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
# The measurements are by Ivanov et al. (2021), *Data movement is all you need*. (The paper puts softmax and layer norm into one class, "statistical normalization". So the 25.5 % are not the norms alone.) What you make faster can save its own share of the *time*, and no more; its share of the FLOPs says nothing. Section 9 measures such shares on your machine.
#
# ## 7 · When neither limits
#
# The tiny product of section 4 was far below both roofs. On a GPU the most common reason is this:

# %%
explore(figures.launch_queue, work=(1.0, 20.0, 0.5), launch=(2.0, 20.0, 1.0), fused=[1, 2, 4, 8])

# %% [markdown]
# A launch takes some microseconds of the CPU. If the kernels are shorter, the GPU waits for the next order, and a faster GPU would wait as well. Longer kernels (larger batches) or fewer launches (fused, compiled, recorded as a CUDA graph) help.
#
# So a measured time has two parts: what the roofline needs at best, and a rest that neither arithmetic nor memory explains. Three remedies are for sale: a chip with twice the peak, a chip with twice the bandwidth, and a recorded graph that makes the rest disappear. Which one is worth its price?
#
# By hand, with a peak of 100 FLOP/s and 10 bytes/s: 800 FLOPs and 20 bytes took 10 s. That is 8 s of arithmetic and 2 s of rest. Twice the peak: 6 s. Twice the bandwidth: still 10 s. No rest: 8 s.
#
# ### Exercise 7 · What would help?  (3 points · 8 min · ●●)
#
# `kernels` is a list of `[flops, bytes, seconds]`, with the measured seconds. The kernels run one after the other. Return how long all of them would take with each remedy: `{"peak": ..., "bandwidth": ..., "launches": ...}`, in seconds. The rest of a kernel stays on a faster chip as it is. A kernel that is faster than the roofline was measured wrongly: `ValueError`.


# %% exercise="what_helps"
def what_helps(kernels: list[list[float]], peak: float, bandwidth: float) -> dict[str, float]:
    """Return the seconds of all kernels with twice the peak, with twice the bandwidth, and without the unexplained rest."""
    ### BEGIN SOLUTION
    times = {"peak": 0.0, "bandwidth": 0.0, "launches": 0.0}
    for flops, moved, seconds in kernels:
        computing, moving = flops / peak, moved / bandwidth
        best = max(computing, moving)
        if seconds < best:
            raise ValueError(f"{seconds} s, where the roofline allows {best} s")
        times["peak"] += max(computing / 2, moving) + seconds - best
        times["bandwidth"] += max(computing, moving / 2) + seconds - best
        times["launches"] += best
    return times
    ### END SOLUTION


# %% check="what_helps"
check(what_helps)
### BEGIN HIDDEN TESTS
check(what_helps, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Your function, on the kernels of section 4. How many times as fast would each be?

# %% tags=["nbval-ignore-output", "because it shows times measured on this machine"]
with your("what_helps"):
    print(f"{'':20}  2 × peak  2 × bandwidth  no rest")
    for name, (flops, moved, taken) in timed.items():
        allowed = max(taken, 1.001 * flops / peak, 1.001 * moved / bandwidth)  # a dot above the roof: as if on it
        helped = what_helps([[flops, moved, allowed]], peak, bandwidth)
        print(f"{name:20} {allowed / helped['peak']:9.2f} {allowed / helped['bandwidth']:14.2f} {allowed / helped['launches']:8.2f}")

# %% [markdown]
# In a *whole* step you cannot tell the rest of each kernel from its FLOPs and bytes any more. Two things help: one number for everything (section 8), and a look at each kernel (section 9).

# %% [markdown]
# ## 8 · A whole training step
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
# The last line has a rate in *tokens*, from a log; so it takes the FLOPs of a token, $6N$, and not those of a whole batch.
#
# ### Exercise 8 · MFU from a log  (3 points · 8 min · ●●)
#
# `flops` are the model FLOPs of a step, `seconds` the times of several steps; take their median. `device` is what the driver calls the GPU, `number` the format of the products. `peaks` is a table of dense peaks, `peaks["NVIDIA H100 PCIe"]["bf16"]`. Return MFU as a share. Raise `ValueError` if the table does not have exactly this name of a GPU or a format (do not guess), and if the share comes out above 1.


# %% exercise="mfu_of_step"
def mfu_of_step(
    flops: float, seconds: list[float], device: str, number: str, peaks: dict[str, dict[str, float]]
) -> float:
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
check(mfu_of_step)
### BEGIN HIDDEN TESTS
check(mfu_of_step, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Here are small models of growing width, trained with batches of growing size on your device. On a GPU the peak is the cited one; on a CPU it is that of one core, from section 2, so 100 % would mean that a step is one perfect product. Where does MFU rise, and why?

# %% tags=["nbval-ignore-output", "because it shows steps measured on this machine"]
widths, batches, length = ((256, 1024, 2048), (1, 8, 64), 512) if on_gpu else ((64, 128, 256), (1, 4, 16), 64)
shares = {}
for width in widths:
    config = modern(2, width, max(4, width // 64), length)  # heads of at most 64: FlashAttention ends at 256
    for batch in batches:
        fast = StepSetup(batch, fused_optimizer=True, fused_attention=True, bf16=number == "bf16")
        step = make_training_step(config, fast, length, device)
        taken = timing.time_it(step, warmup=1, repeats=3, device=device).median
        shares[width, batch] = training_flops(config, batch, length).model.total / taken / peak
figures.utilisation_by_batch(shares, title=f"{title}: MFU of training steps, texts of {length}")

# %% tags=["nbval-ignore-output", "because it shows steps measured on this machine"]
for (width, batch), share in shares.items():
    print(f"width {width:5}, batch {batch:3}: MFU {share:6.1%}", "  above 100 %: measure the peak again" * (share > 1))

# %% [markdown]
# **In real models.** PaLM reached 46 % (Chowdhery et al., 2022), Llama 3 405B 38 to 43 % on up to 16,384 H100s (Grattafiori et al., 2024, table 4). If your log says 81 %, look up the peak before you celebrate. A GPT trained on an A100 whose "peak" was taken as 78 TFLOP/s shows four times its MFU: 78 is what the ordinary units do in fp16, and the
# products ran on tensor cores, at 312. Keep $\text{MFU} > 1$ an error, and you will notice the worst of these mistakes.

# %% [markdown]
# ## 9 · Where does the time go?
#
# MFU says how much of the peak you reach, and not where the rest went. A **profiler** looks: it writes down when every operation begins and ends.

# %%
predict("products_on_a_core")

# %% [markdown]
# `torch.profiler` records the operations by itself. The step adds names for its three phases:
#
# ```python
# with record_function("backward"):
#     loss.backward()
# ```
#
# On a GPU there are two rows. The CPU's row shows when work was *ordered*, the CUDA row when it was *done*; the cell takes the CUDA row if there is one. (There each phase also waits until its work is done, so that the length of a phase is the time of its work.)

# %% tags=["nbval-ignore-output", "because it shows calls and times of this machine"]
os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # or else the profiler reports its own start and stop


def record(step: Callable[[], object]) -> tuple[list[Event], list[Event], profile]:
    """Record one step. Return its calls as [name, begin, end] in µs, its three phases, and the profiler."""
    with profile() as profiler:  # all activities that torch can record here: the CPU's, and CUDA's
        step()
    rows: dict[str, list[Event]] = {"CPU": [], "CUDA": []}
    for call in profiler.events():
        row = call.device_type.name
        if row == "CPU" or not call.is_user_annotation:
            rows[row].append([call.name, call.time_range.start, call.time_range.end])
    return rows["CUDA"] or rows["CPU"], [event for event in rows["CPU"] if event[0] in PHASES], profiler


config, length = (find_model("course-124m").decoder, 512) if on_gpu else (modern(2, 128, 4, 128), 64)
step = make_training_step(config, StepSetup(batch=8), length, device, wait=True)
for _ in range(3):
    step()
recorded = [record(step) for _ in range(3)]
calls, phases, profiler = recorded[0]
in_order = sorted(calls, key=lambda call: (call[1], -call[2]))
first_layer = next((place for place, call in enumerate(in_order) if call[0] == "aten::linear"), 2)  # 2: no such name on a GPU
print(f"{len(calls):,} calls in one step. Some of them:")
for name, begin, end in [*in_order[:2], *in_order[first_layer : first_layer + 9]]:
    depth = sum(other[1] <= begin and end <= other[2] for other in calls) - 1
    print(f"{begin - in_order[0][1]:9.1f} to {end - in_order[0][1]:9.1f} µs  {'    ' * depth}{name[:60]}")

# %% [markdown]
# Calls are inside calls. (On a GPU the CUDA row is flat: one kernel after the other.) `forward` holds `aten::linear`, which holds `aten::matmul`, which holds `aten::mm`, and only the last one multiplies. Add up all these times, and a product counts four times.
#
# ### Exercise 9 · Time in itself  (4 points · 15 min · ●●●)
#
# `events` are the calls of one thread, each a list `[name, begin, end]`, in any order. Two calls are one after the other or one inside the other; they never have the same begin *and* the same end. Return for each name the share of the time that its calls, all together, spend *in themselves*: the time of the calls inside them belongs to those. The whole is the time from the first begin to the last end, and `"idle"` is the share in which no call is open. No events give `{}`.


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
check(time_shares)
### BEGIN HIDDEN TESTS
check(time_shares, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now the three steps that were recorded, by your function: first the names that take most, then the same calls in groups, then the phases. (Phases hold no other phase. Given to your function alone, their time in themselves *is* their total time.)

# %% tags=["nbval-ignore-output", "because it shows shares measured on this machine"]
with your("time_shares"):
    by_name = [time_shares(calls) for calls, _, _ in recorded]
    for name in sorted(by_name[0], key=by_name[0].get, reverse=True)[:10]:
        shares_of_steps = " ".join(f"{shares.get(name, 0):6.1%}" for shares in by_name)
        print(f"{shares_of_steps}  {name[:60]}")
    span = max(end for *_, end in calls) - min(begin for _, begin, _ in calls)
    total = sum(end - begin for _, begin, end in calls) / span
    print(f"sum of the shares: {sum(by_name[0].values()):.0%}; sum of all total times: {total:.0%} of the step")

# %% tags=["nbval-ignore-output", "because it shows shares measured on this machine"]
with your("time_shares"):
    in_groups = [time_shares(by_group(calls, phases)) for calls, phases, _ in recorded]
    in_phases = [time_shares(phases) for _, phases, _ in recorded]
    for name in (*PHASES, "idle"):
        print(f"{name:10}", " ".join(f"{shares[name]:6.1%}" for shares in in_phases))
figures.time_by_group(in_groups, title=f"{title}: a training step, profiled")

# %% [markdown]
# (Is a name large in only one of the three steps? Then another program interrupted the step just there.) On a CPU core half of the step or more is no product. So MFU cannot be much above a half here, however well the products run. On a GPU, look at *idle* in the CUDA row: these are the gaps of section 7, now seen. If they are large, launches limit your step.
#
# The profiler adds up calls of the same name, too. Its *self* time is the time in themselves, its *total* includes what is inside. (On a GPU these are the times of the kernels that an operation launched.) And what does looking cost?

# %% tags=["nbval-ignore-output", "because it shows times measured on this machine"]
clock = "device" if device.type == "cuda" else "cpu"
operations = [each for each in profiler.key_averages() if each.device_type.name == "CPU" and each.key not in PHASES]
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
# Shares of time are good for one thing above all: they say what a change can bring *before* you write it. A step takes 1 s, and half of it are products. You are offered products that are twice as fast: how long does the step take then? Now take several offers at once. (A colleague multiplies their speed-ups. Is that right?)
#
# ### Exercise 10 · At most  (2 points · 8 min · ●●)
#
# `shares` are the shares of a step's time by name. `offers` maps an offer to `[names, factor]`: it makes these operations `factor` times as fast (with `math.inf` they take no time). Return for each offer, how many times as fast the step becomes, and under `"all"`, what all offers do together. A name that is not in `shares` takes no time. The shares may add up to less than 1: the rest of the step stays as it is. No name is in two offers.


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
check(speedup_bounds)
### BEGIN HIDDEN TESTS
check(speedup_bounds, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# This is **Amdahl's law** (1967). A share $s$ that becomes $f$ times as fast leaves $1 - s + s/f$ of the time, so the whole becomes
#
# $$\frac{1}{1 - s + s/f}$$
#
# times as fast, and never more than $1/(1 - s)$. Speed-ups do not multiply: make both halves of a step twice as fast, and the step becomes twice as fast, not 1.33 · 1.33 = 1.78 times. What could be gained in your step?

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
# ## 10 · One change, one measurement
#
# Now make the step faster. The rule is in the title: change one thing, time it alternately with what you had, keep it only if it helped. If you change five things and find a factor of three, you do not know which of them helped, and which of them hurt.

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

# %% [markdown]
# One of these changes has a phase of its own, and so a bound: the fused optimizer cannot save more than the optimizer's share. (Its profile was taken with 8 texts, as in the first change.) The others change products and element-wise work everywhere.

# %% tags=["nbval-ignore-output", "because it shows steps measured on this machine"]
optimizer_share = statistics.mean(shares["optimizer"] for shares in in_phases)
with your("speedup_bounds"):
    bounds = speedup_bounds({"optimizer": optimizer_share}, {"fused optimizer": [["optimizer"], math.inf]})
speedups = measure_speedups(config, length, batch=8, device=device, warmup=1, repeats=5)
figures.speed_ladder(speedups, title=f"{title}: a training step", bounds=bounds)

# %% tags=["nbval-ignore-output", "because it shows steps measured on this machine"]
for speedup in speedups:
    verdict = "kept" if speedup.kept else "taken back"
    print(f"{speedup.name:20} {speedup.before:10,.0f} → {speedup.after:10,.0f} tokens/s  × {speedup.ratio:.2f}  {verdict}")

# %% [markdown]
# Read your ladder with section 1 in mind: on a busy machine a factor of 0.95 or 1.05 is noise. Run the cell again, and see which factors stay. A bar beyond its line *must* be noise or a wrong measurement.
#
# On an H100 we saw, with a model of GPT-2's size: 8 texts × 3.3 and 4.2 in two tries, fused optimizer × 1.03 and 1.04, fused attention × 1.09, bf16 × 2.3 and 2.5, compiled × 1.5 and 1.7. Together that is 13 and 20 times as fast. (There the cell takes about a minute, because it compiles.)
#
# On a CPU the last change is missing, because compiling takes long: 67 s on a busy core of an AMD EPYC. Set `compiled=True` in a `StepSetup` to try it yourself. Fused attention brings little at 64 tokens, because the matrix of scores is small; it grows with the square. And bf16 depends on your processor: recent ones have instructions for it, others
# convert every number to fp32 and back. What does yours have, and how fast does it multiply?

# %% tags=["nbval-ignore-output", "because it shows rates measured on this machine"]
print("vector instructions of the CPU:", torch.backends.cpu.get_cpu_capability())
for format_name in ("fp32", "bf16"):
    (rate,) = machine.matmul_rates(format_name, (512,), device=device, seconds=0.1).values()
    print(f"products of 512 × 512 in {format_name}: {rate / 1e9:10,.1f} GFLOP/s")

# %% [markdown]
# Does your CPU multiply faster in bf16, and is the step still not faster? At this width products are half of the time or less, and each of them needs conversions, because the weights stay in fp32.
#
# ### Who fuses, and who launches?
#
# Three tools save bytes or launches. They change different things:
#
# | tool | you write | what it changes | what it leaves |
# | --- | --- | --- | --- |
# | `torch.compile` | PyTorch, as before | element-wise operations and sums that follow each other become one kernel: C++ for a CPU, Triton for a GPU | large products, by default: the library has good kernels for them |
# | a CUDA graph | PyTorch, for shapes and addresses that stay the same | a recorded step is launched as a whole | every kernel, and the bytes it moves |
# | Triton (Tillet et al., 2019) | the kernel, in Python, for one block of the data | you decide what stays on the chip between two operations | everything outside of your kernel |
#
# The first and the last save bytes. A LayerNorm of five operations reads a large tensor five times and writes one three times. One kernel reads once and writes once. These are 8 passes and 2: about four times as fast, if passes are all that counts.


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
# We set `COMPILE` to True on a CPU core. Compiling took 11 s. Then the compiled kernel was 4.1 to 4.6 times as fast as the five operations in three tries, and 1.6 to 2.1 times as fast as the library's. On an H100 it was 2.4 to 3.0 times as fast in three tries, and the library's kernel 3.0 to 3.8 times.
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
#
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
# Short kernels wait for their launches, so launching them as a whole helps. Kernels of 20 µs hide the launches already. Now on a real GPU, if you have one:

# %% tags=["nbval-ignore-output", "because it shows times measured on this machine"]
def thousand_launches(numbers: torch.Tensor) -> None:
    for _ in range(1000):
        numbers.add_(1)


if torch.version.cuda and on_gpu:
    for size in (2**10, 2**24):
        one_by_one = partial(thousand_launches, torch.zeros(size, device=device))
        one_by_one()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            one_by_one()
        both_ways = {"1,000 launches": one_by_one, "one CUDA graph": graph.replay}
        for name, timed_runs in timing.time_interleaved(both_ways, repeats=5, device=device).items():
            print(f"add 1 to {size:10,} numbers, {name}: {timed_runs.median * 1e3:6.2f} ms")
else:
    print("A CUDA graph needs an NVIDIA GPU.")

# %% [markdown]
# On an H100 1,000 launches on 1,024 numbers took 7.5 and 10.6 ms in two tries, and 1.0 and 1.4 ms as a CUDA graph: a launch costs 8 to 11 µs, the kernel itself about 1 µs. On 16.8 million numbers a kernel takes 47 µs, and the graph saved 3 and 4 %. On a GPU, `torch.compile(..., mode="reduce-overhead")` does both: it compiles, and records the result as a CUDA graph.
#
# **In real models.** These few changes are most of what separates a first script from a production trainer. After them comes parallelism (notebook 18).
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | how do I time a GPU? | warm up, synchronise before *and* after, each run by itself, median and quartiles |
# | and a peak? | the shortest of many times, over several sizes |
# | and two versions? | alternately: A, B, B, A |
# | what is the ridge? | dense peak / bandwidth, in FLOPs per byte: 150 to 300 |
# | how long does a kernel take at best? | $\max(F/\text{peak}, M/\text{bandwidth})$, and kernels add up |
# | a product of $n$ tokens? | $(2/p) \cdot nD/(2n + D)$: about $n$ in bf16 for few, $D/2$ for many |
# | an element-wise operation? | $C/(2p)$: always limited by memory, so fuse |
# | where does a step's time go? | a profiler; time in itself, not total time; on a GPU the CUDA row |
# | far below both roofs? | launches, Python, small batches |
# | what can a change save at most? | its share of the *time*: $1/(1 - s)$ times as fast (Amdahl); speed-ups do not multiply |
# | more than 100 %? | impossible: wrong GPU, wrong format, no synchronise |
#
# ## Check yourself
#
# 1. Your loop prints `loss.item()` after every step. Does its timing need a `synchronize`? And what does the line cost?
# 2. A kernel reaches 5 % of the peak and 92 % of the bandwidth. Would a GPU with twice the peak help? One with twice the bandwidth?
# 3. You decode with a batch of 8 on an A100 and double the batch. How much longer does a step take, as far as weights are concerned?
# 4. A step takes 300 ms, 60 of them in the optimizer. You make the optimizer three times as fast. How many times as fast is the step?
# 5. Code shows an MFU of 52 % on an H100 PCIe, computed with the peak of the SXM version. What is the right MFU?
# 6. A profile shows `aten::linear` with 40 % of the time in total and 1 % in itself. Should you make `aten::linear` faster?
#
# <details><summary>Answers</summary>
#
# 1. `.item()` waits for the result, so it synchronises, and the clock is right at that point. The cost: the CPU cannot run ahead, so every step begins with an empty queue.
# 2. Twice the peak: no. Twice the bandwidth: nearly twice as fast.
# 3. It does not: 8 and 16 tokens are both far below 159, so the time is that of fetching the weights. (The caches of the texts double.)
# 4. It saves 40 of 300 ms: 300/260 = 1.15 times as fast.
# 5. 0.52 · 989.4/756 = 68 %.
# 6. The time is in what it calls, a product. Look at `aten::mm`: how far is it from its roof?
#
# </details>
#
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
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you like.)

# %% tags=["hide-input"]
v100 = find_accelerator("v100")
a100_40, a100_80, h100 = (find_accelerator(name) for name in ("a100-40gb", "a100-80gb", "h100"))
assert round(312 / 2.039) == 153
tib = 2**40 / 1e12
assert round(312 / 2.039 / tib) == 139
assert (max(800 / 2 / 100, 20 / 10) + 2, max(800 / 100, 20 / 20) + 2) == (6, 10) and elementwise_intensity(1) * 2 / 3 == 1 / 6
assert [elementwise_intensity(operations) for operations in (1, 20, 22, 5)] == [0.25, 5, 5.5, 1.25]
assert f"{(1 / (1 - 0.5 + 0.5 / 2)) ** 2:.2f}" == "1.78"
assert [round(v100.ridge("fp16")), round(h100.ridge("bf16"))] == [139, 295]
assert round(h100.peak("bf16") / v100.peak("fp16")) == 8 and round(h100.bandwidth / v100.bandwidth, 1) == 3.7
assert round(8 * 3200e6 * 8 / 1e9) == 205 and round(7e9 * 2 / 32e9, 1) == 0.4 and round(7e9 * 2 / h100.bandwidth * 1000) == 4
assert round(153 * 8192 / (8192 - 306), 2) == 158.94 and f"{((9.0 + 4 * 4.0) / 5 + 0.01) / 4.01:.2f}" == "1.25"
assert [round(matmul_intensity(n, 8192, 8192), 1) for n in (200, 2048)] == [190.7, 1365.3]
assert round(matmul_intensity(2**22, 12_288, 12_288)) == 6135
assert math.isinf(compute_bound_tokens(512, h100)) and 512 / 2 == 256
assert [round(compute_bound_tokens(8192, chip)) for chip in (a100_80, a100_40)] == [159, 211]
assert round(100 / 74.5, 2) == 1.34 and round(0.52 * 989.4 / 756, 2) == 0.68 and round(300 / 260, 2) == 1.15
assert 312 / 78 == 4
assert round(h100.peak("bf16") / find_accelerator("h100-pcie").peak("bf16"), 1) == 1.3
assert [round(v100.peak("fp16") / v100.peak("fp32")), a100_80.peak("bf16") / a100_80.peak("fp32")] == [8, 16]
times = alt_text(figures.timing_spread())
assert "median 11.2 ms" in times and "middle half 10.7 to 12.0 ms" in times

