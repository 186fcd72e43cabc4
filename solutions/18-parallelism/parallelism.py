# %% [markdown]
# # 18 · Parallelism
#
# **Core · 89 min · 6 exercises · 22 points** · **Further · 124 min · 5 exercises · 17 points**
#
# *What does it cost to agree?*
#
# Devices that share a model must tell each other what they found, and every message takes time.
#
# At the end you have measured what a message costs on your machine, and designed an all-reduce that is fast at every size.
#
# No master hands out work: **you write one program, and every worker runs it** (SPMD, *single program, multiple data*). A worker knows its rank, and can send and receive. Everything here is made of these two, first in a simulator that counts every byte, then on real processes.
#
# **You will be able to** write the collectives of training, say what each costs, and cut a model along its texts and its matrices.
#
# **You need** gradients (notebook 03) and the transformer's matrices (08 to 12). No GPU.
#
# Each exercise has a cell for your answer and a check. Stuck? `hint("name_of_the_exercise")`.

# %%
import os

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.chapters.parallelism import figures
from lmcourse.chapters.parallelism.clock import ALONE, ROUND, backward_pass, clocked, compared, seconds_for
from lmcourse.chapters.parallelism.data_parallel import train, with_ddp
from lmcourse.chapters.parallelism.fastest import seconds_of, through_rank_0, times_the_least
from lmcourse.chapters.parallelism.real_processes import together
from lmcourse.chapters.parallelism.simulated import CommunicationError, simulate
from lmcourse.chapters.parallelism.worker import CollectiveWorker, Worker
from lmcourse.notebook import check, explore, hint, predict, start, your

start("18-parallelism")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · Two workers and a wire
#
# Three workers hold 1, 2 and 3. What can they do together? Each answer is a **collective**:
#
# | | worker 0 | worker 1 | worker 2 |
# | --- | --- | --- | --- |
# | before | 1 | 2 | 3 |
# | **broadcast** from 0 | 1 | 1 | 1 |
# | **gather** to 0 | (1, 2, 3) | 2 | 3 |
# | **reduce** to 0 | 6 | 2 | 3 |
# | **all-gather** | (1, 2, 3) | (1, 2, 3) | (1, 2, 3) |
# | **all-reduce** | 6 | 6 | 6 |
#
# If they hold (1, 2, 3), (10, 20, 30) and (100, 200, 300), a **reduce-scatter** gives them 111, 222 and 333, each its part of the sum.
#
# In the next cell two workers run *the same* function; only `worker.rank` differs.


# %%
def pass_on(worker: Worker, x: Tensor | None) -> Tensor:
    """x of rank 0, on both workers."""
    if worker.rank == 0:
        worker.send(1, x)
    return worker.receive(0) if worker.rank else x


run = simulate(pass_on, [torch.tensor([1.0, 2.0]), None])  # an entry for each worker
print([result.tolist() for result in run.results], "bytes sent:", run.sent, " rounds:", run.rounds)

# %% [markdown]
# `simulate` runs the function for each entry of its list, copies every message, and counts. A **round** is the time in which a worker can send one message and receive one.
#
# A broadcast takes $N - 1$ rounds if rank 0 sends to all others. But a worker that has the number can send it, too: in a **tree** 1, 2, 4, 8 … workers have it, and 64 workers take 6 rounds.
#
# Now three workers in a ring: each wants the number of its left neighbour.

# %%
predict("ring_of_receivers")


# %%
def receive_then_send(worker: Worker, x: Tensor) -> Tensor:
    """The left neighbour's x."""
    arrived = worker.receive((worker.rank - 1) % worker.size)
    worker.send((worker.rank + 1) % worker.size, x)
    return arrived


try:
    simulate(receive_then_send, [torch.tensor([rank]) for rank in range(3)])
except CommunicationError as error:
    print(error)

# %% [markdown]
# On real machines nobody prints that sentence: the job stands still.
#
# ## 2 · Adding up
#
# Training adds up gradients in every step: an **all-reduce**. The first idea, `through_rank_0`: all send to rank 0, which adds, and sends the sum back.
#
# The link of rank 0 carries $(N-1)\,M$ bytes each way; the other links carry $M$ and are idle most of the time. The **ring** (Patarasuk & Yuan, 2009) keeps all of them busy. By hand, with three workers and three chunks each:
#
# | | worker 0 | worker 1 | worker 2 |
# | --- | --- | --- | --- |
# | at first | a₀ b₀ c₀ | a₁ b₁ c₁ | a₂ b₂ c₂ |
# | 0 sends a, 1 b, 2 c, to the right | a₀ b₀ **c₀₂** | **a₀₁** b₁ c₁ | a₂ **b₁₂** c₂ |
# | 0 sends c₀₂, 1 a₀₁, 2 b₁₂ | a₀ **b₀₁₂** c₀₂ | a₀₁ b₁ **c₀₁₂** | **a₀₁₂** b₁₂ c₂ |
#
# After $N - 1$ rounds each chunk's sum is complete *somewhere*, and $N - 1$ rounds more pass the sums on. How many bytes has each worker sent then?

# %%
predict("ring_of_a_thousand")

# %%
explore(figures.collective, kind=list(figures.COLLECTIVES), workers=(2, 8), step=(0, 14))

# %% [markdown]
# **For all exercises:** an answer leaves its inputs as they are. (`+=` on a view of $x$, such as a chunk, changes $x$.)

# %% [markdown]
# ### Exercise 1 · The ring  (4 points · 12 min · ●●●)
#
# Return the sum of all workers' $x$, on every worker. Cut $x$ with `torch.tensor_split` into a chunk for each worker (the first ones are longer if it cannot be cut evenly). Each worker sends one chunk per round, also an empty one, **to its right neighbour only** (rank + 1; the last one's is rank 0): $N - 1$ rounds in which what arrives is added, $N - 1$ in which sums are passed on. One worker alone sends nothing.


# %% exercise="ring_all_reduce"
def ring_all_reduce(worker: Worker, x: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    """The sum of all workers' x, on every worker."""
    ### BEGIN SOLUTION
    size, rank = worker.size, worker.rank
    right, left = (rank + 1) % size, (rank - 1) % size
    chunks = list(torch.tensor_split(x, size))
    for turn in range(size - 1):
        worker.send(right, chunks[(rank - turn) % size])
        place = (rank - turn - 1) % size
        chunks[place] = chunks[place] + worker.receive(left)
    for turn in range(size - 1):
        worker.send(right, chunks[(rank + 1 - turn) % size])
        chunks[(rank - turn) % size] = worker.receive(left)
    return torch.cat(chunks)
    ### END SOLUTION


# %% check="ring_all_reduce"

# %% [markdown]
# $$\frac{2(N-1)}{N}\,M \text{ bytes each, in } 2(N-1) \text{ rounds}$$
#
# The price is rounds. A third way, **doubling**, has few of them: each worker exchanges all it has with a partner, first at distance 1, then 2, then 4, and adds. ($N$ is a power of two here; `^` flips one bit of the rank.)


# %%
def doubling(worker: Worker, x: Tensor) -> Tensor:
    distance = 1
    while distance < worker.size:
        worker.send(worker.rank ^ distance, x)
        x = x + worker.receive(worker.rank ^ distance)
        distance *= 2
    return x


# %%
predict("rounds_of_eight")

# %%
with your("ring_all_reduce"):
    for way in (through_rank_0, ring_all_reduce, doubling):
        run = simulate(way, [torch.arange(16.0)] * 8)  # M = 64 bytes
        print(f"{way.__name__:15} {run.rounds:2} rounds; sent by each: {run.sent}")

# %% [markdown]
# Look at the middle of your ring. After the first phase each worker holds a part of the sum: a *reduce-scatter*. The second phase is an *all-gather*. **An all-reduce is the two in a row.**

# %% [markdown]
# ### Exercise 2 · The two halves  (3 points · 7 min · ●●)
#
# Write both halves as separate collectives, for rows of a matrix. For the kind `"all-gather"`: all workers' rows below each other, in the order of ranks. For `"reduce-scatter"`: rank $r$ gets the $r$-th of $N$ equal parts of the rows of the *sum* of all $x$ (the number of rows can be divided). Any topology will do, as long as each worker sends only $N - 1$ parts. For another word raise `ValueError`.


# %% exercise="gather_and_scatter"
def gather_and_scatter(worker: Worker, x: Float[Tensor, "n d"], kind: str) -> Float[Tensor, "m d"]:
    """The rows of all workers, or this worker's part of the rows of their sum."""
    ### BEGIN SOLUTION
    if kind not in ("all-gather", "reduce-scatter"):
        raise ValueError(f"kind is 'all-gather' or 'reduce-scatter', not {kind!r}")
    size, rank = worker.size, worker.rank
    right, left = (rank + 1) % size, (rank - 1) % size
    chunks = [x] * size if kind == "all-gather" else list(x.chunk(size))
    start = rank if kind == "all-gather" else rank - 1
    for turn in range(size - 1):
        worker.send(right, chunks[(start - turn) % size])
        place, arrived = (start - turn - 1) % size, worker.receive(left)
        chunks[place] = arrived if kind == "all-gather" else chunks[place] + arrived
    return torch.cat(chunks) if kind == "all-gather" else chunks[rank]
    ### END SOLUTION


# %% check="gather_and_scatter"

# %% [markdown]
# If all rows are gathered on every worker, and each computes a loss from them, which collective computes the gradient of a worker's own rows? Autograd, which sees all workers at once, can judge:

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
torch.manual_seed(0)
rows = [torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
factors = [torch.randn(6, 3, dtype=torch.float64) for _ in range(3)]
loss = sum((torch.cat(rows) * factor).sum() for factor in factors)  # worker w's loss has its own factors
by_autograd = torch.autograd.grad(loss, rows)
with your("gather_and_scatter"):
    run = simulate(gather_and_scatter, factors, ["reduce-scatter"] * 3)  # the factors are gradients of all rows
    gap = max((a - b).abs().max().item() for a, b in zip(run.results, by_autograd, strict=True))
    print(f"largest gradient {torch.cat(by_autograd).abs().max():.2f}; reduce-scatter is off by at most {gap:.0e}")

# %% [markdown]
# It is a *sum over the workers' losses*, cut into parts: the backward pass of an all-gather is a reduce-scatter, and the other way round.
#
# ## 3 · On real processes, with a clock
#
# `together` has the signature of `simulate`. It starts a process for each worker, which takes seconds, and sends your function there; `send` and `receive` are those of `torch.distributed`.
#
# On many networks a **send waits until the receiver takes the message** (gloo's does). What does your ring do there? With `patient=True` the simulator's sends wait, too.

# %%
numbers = [torch.arange(10.0) * 10**rank for rank in range(2)]
with your("ring_all_reduce"):
    simulated, real = simulate(ring_all_reduce, numbers), together(ring_all_reduce, numbers)
    gap = max((a - b).abs().max().item() for a, b in zip(simulated.results, real.results, strict=True))
    print("bytes sent, simulated:", simulated.sent, "  by processes:", real.sent, "  largest difference:", gap)
    try:
        simulate(ring_all_reduce, numbers, patient=True)
        print("it comes to an end")
    except CommunicationError as error:
        print(error)

# %% [markdown]
# Your function ran without a change. But a ring in which all send first stands still if sends wait. So the real worker uses `isend`: it hands the message over, and continues.
#
# Now the clock. Suppose that a message of $M$ bytes takes $\alpha + \beta M$ seconds: $\alpha$ to start, $\beta$ for each byte. Four processes measure one *round* (all send to the right and receive from the left), six rounds in a row, the ring, and doubling. This takes about half a minute.

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
SIZES = [4, 65_536, 524_288, 1_048_576, 2_097_152, 4_194_304]
with your("ring_all_reduce"):
    times = clocked({"ring": ring_all_reduce, "doubling": doubling}, SIZES)
alone, in_a_row, ring = (1e3 * times[name][0] for name in (ALONE, ROUND, "ring"))
print(f"{os.cpu_count()} processors; 4 bytes: a round alone {alone:.2f} ms, in a row {in_a_row:.2f} ms each;", end=" ")
print(f"the ring's six rounds take {ring:.1f} ms, {ring / alone:.0f} times a round alone")

# %% [markdown]
# You expect six times. On our two busy processors it was far more: in a chain each worker must be *woken* by the message of the worker before it. (If your factor is near 6, each worker has a processor of its own.) Rounds in a row contain the waking, so fit those.

# %% [markdown]
# ### Exercise 3 · The wire  (3 points · 6 min · ●●)
#
# Return $(\alpha, \beta)$ of seconds $= \alpha + \beta\,\cdot$ bytes, in seconds and in seconds per byte: the least squares of the *relative* errors, $\sum\big((\alpha + \beta\,\text{bytes} - \text{seconds}) / \text{seconds}\big)^2$. If the best $\alpha$ is below 0, return $\alpha = 0$ and the $\beta$ that fits best with it. For fewer than two different sizes raise `ValueError`.


# %% exercise="fit_wire"
def fit_wire(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """α and β of a wire: (0.001, 2e-06) for 1000 bytes in 3 ms and 5000 bytes in 11 ms."""
    ### BEGIN SOLUTION
    if len(set(sizes)) < 2:
        raise ValueError("a line needs two different sizes")
    s, t = torch.tensor([sizes, seconds], dtype=torch.float64)
    rows = torch.stack([1 / t, s / t], dim=1)
    alpha, beta = torch.linalg.lstsq(rows, torch.ones_like(rows[:, :1])).solution.flatten().tolist()
    if alpha < 0:
        alpha, beta = 0.0, (s / t).sum().item() / (s / t).square().sum().item()
    return alpha, beta
    ### END SOLUTION


# %% check="fit_wire"

# %% [markdown]
# With errors in seconds the largest message alone would count, and $\alpha$ would be what is left over.

# %%
predict("ring_from_here")

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
with your("fit_wire"):
    alpha, beta = fit_wire(SIZES, times[ROUND])
print(f"your wire: α = {1e3 * alpha:.2f} ms, β = {1e9 * beta:.2f} ns a byte;", end=" ")
print(f"by the fit the ring is faster from {8 * alpha / beta / 1e6:.1f} MB on")
print(compared(SIZES, times, alpha, beta))
figures.all_reduce_seconds(SIZES, times, alpha, beta)

# %% [markdown]
# With $N = 4$ the ring takes $6\alpha + 1.5\,\beta M$ and doubling $2\alpha + 2\,\beta M$. Two numbers predict twelve times: on our machine most within a factor of 2.4. If the ring becomes faster within a factor of four of the size by the fit (or that size is above your largest), the model is good enough to design with.
#
# ## 4 · Other texts on each: data parallelism
#
# From here on a worker has `all_reduce(x)`, `all_gather(x, dim=0)` and `reduce_scatter(x, dim=0)`, counted as in a ring.
#
# Each device has the whole model, and other texts. Padding leaves some with fewer counted targets. After the backward pass the gradients are averaged, and all copies take the same step.

# %% [markdown]
# ### Exercise 4 · Average the gradients  (2 points · 6 min · ●●)
#
# Each worker has computed gradients of the mean loss over *its own* counted targets, a tensor per parameter (all of one dtype, of any shape). Return, on every worker, the gradients of the mean over **all** counted targets, in the same shapes and dtype. bf16 cannot hold the number 257, and fp16 no number above 65,504, so compute sums in fp32 or fp64. Use at most two collectives, however many parameters there are. A worker without targets has NaN for gradients, because it divided by 0: take zeros where `targets` is 0, and only there. If there are no targets at all, return zeros.


# %% exercise="average_gradients"
def average_gradients(worker: CollectiveWorker, gradients: list[Tensor], targets: int) -> list[Tensor]:
    """Gradients of the mean over all workers' targets, from each worker's gradients of its own mean."""
    ### BEGIN SOLUTION
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    wide = flat.double() * targets if targets else torch.zeros_like(flat, dtype=torch.float64)
    summed = worker.all_reduce(torch.cat([wide, wide.new_tensor([targets])]))
    mean = (summed[:-1] / summed[-1].clamp(min=1)).to(flat.dtype)
    parts = mean.split([gradient.numel() for gradient in gradients])
    return [part.view_as(gradient) for part, gradient in zip(parts, gradients, strict=True)]
    ### END SOLUTION


# %% check="average_gradients"

# %% [markdown]
# Is your average *equal to one process*? `train` takes five steps on 12 tokens, the second half mostly padding: one worker with everything, then two processes with a half each.

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
tokens, targets = torch.arange(12) % 7, (3 * torch.arange(12) + 1) % 7
targets[7:] = -100  # padding: the second half has one target
halves = list(tokens.chunk(2)), list(targets.chunk(2))
with your("average_gradients"):
    (of_one,) = simulate(train, [tokens], [targets], [average_gradients], collectives=True).results
    first, second = together(train, *halves, [average_gradients] * 2).results
    for name, other in (("the other copy", second), ("one process", of_one)):
        gap = max((a - b).abs().max().item() for a, b in zip(first, other, strict=True))
        print(f"weights of the first copy and of {name}: largest difference {gap:.0e}")

# %% [markdown]
# Now torch's own tool, **DDP** (`DistributedDataParallel`): wrap the model, call `backward()`, and find averaged gradients in `.grad`. The first of two workers has 3 targets, and its mean loss has the gradient 1; the second has 1 target and the gradient 10.

# %%
predict("what_ddp_averages")

# %%
ddp = together(with_ddp, [1.0, 10.0], [3, 1]).results
for rank, (before, after, plain, cured) in enumerate(ddp):
    print(f"worker {rank}: weight {before:g}, wrapped {after:g}; gradient of the mean {plain:g}, cured {cured:g}")

# %% [markdown]
# - The weight of worker 1 changed **when it was wrapped**: DDP first sends rank 0's weights to all workers, and later only gradients and buffers.
# - DDP divides the sum of the gradients by the number of *workers*: $(1 + 10)/2 = 5.5$. The mean over the four targets has the gradient $(3 \cdot 1 + 1 \cdot 10)/4 = 3.25$. So plain DDP gives more weight to each token of an emptier batch.
#
# The cure is in the loss: the **sum** over this worker's targets, times workers / all targets. DDP's division then cancels.
#
# DDP sends the gradients of the last layers while earlier layers still compute. How much of it can your backward pass hide?

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
backward, size = backward_pass(layers=4, width=512, tokens=1024)
sending = 6 * alpha + 1.5 * beta * size
print(f"a ring of four takes {1e3 * sending:.0f} ms for {size / 1e6:.1f} MB of gradients by your fit;", end=" ")
print(f"a backward pass of {1e3 * backward:.0f} ms hides {min(1, backward / sending):.0%} of it at most")

# %% [markdown]
# ## 5 · Cut the matrices: tensor parallelism
#
# To compute *one* token faster, cut the products themselves: **tensor parallelism** (Shoeybi et al., 2019). By hand, with two workers:
#
# $$x = (1, 2),\quad U = \begin{pmatrix}1&1\\1&-1\end{pmatrix},\quad D = \begin{pmatrix}1&2\\3&4\end{pmatrix},\quad y = \text{ReLU}(x\,U^\top)\,D^\top$$
#
# Together: $x U^\top = (3, -1)$, ReLU gives $(3, 0)$, and $y = (3, 9)$. Now worker 0 gets the first *row* of $U$ and the first *column* of $D$: hidden feature 3, result $3 \cdot (1, 3) = (3, 9)$. Worker 1: hidden feature $-1$, ReLU 0, result $(0, 0)$. The **sum** is $(3, 9)$.
#
# The first matrix is cut along its outputs, the second along its inputs. Could it be the other way round?

# %%
predict("rows_first")

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
torch.manual_seed(0)
x, U, D = torch.randn(6, 8).double(), torch.randn(32, 8).double(), torch.randn(8, 32).double()
y = F.gelu(x @ U.T) @ D.T
inputs_first = sum(F.gelu(part @ u.T) for part, u in zip(x.chunk(2, 1), U.chunk(2, 1), strict=True)) @ D.T
print(f"inputs first, then outputs: off by {(inputs_first - y).abs().max():.1f}")

# %% [markdown]
# So *outputs first, then inputs*: each hidden feature is complete on one worker, and the parts add up. Other matrices follow the same rule:

# %%
explore(figures.shard_map, devices=[2, 4, 8])

# %% [markdown]
# Forward there is one all-reduce, at the end.
#
# > **Spot the slip.** "Every worker has $\partial L/\partial y$, and the derivative of a matrix product needs nothing else. So the backward pass needs no all-reduce." Through which of the two matrices is that true?

# %% [markdown]
# ### Exercise 5 · A feed-forward layer, forward and backward  (4 points · 9 min · ●●●)
#
# The whole layer is $y = \text{GELU}(x\,U^\top)\,D^\top$ with the exact GELU (`F.gelu`). `up` and `down` are this worker's parts of $U$ and $D$, with $f$ of the hidden features. $x$ and $\partial L/\partial y$ = `dy` are the same on all workers. Return $y$ and $\partial L/\partial x$ of the **whole** layer, on every worker. Send no more bytes than two all-reduces of (t, d) do. Autograd may do what stays on one worker (messages carry no graph).


# %% exercise="tensor_parallel_ffn"
def tensor_parallel_ffn(
    worker: CollectiveWorker,
    x: Float[Tensor, "t d"],
    up: Float[Tensor, "f d"],
    down: Float[Tensor, "d f"],
    dy: Float[Tensor, "t d"],
) -> tuple[Float[Tensor, "t d"], Float[Tensor, "t d"]]:
    """y of the whole layer and dL/dx for dL/dy = dy, on every worker."""
    ### BEGIN SOLUTION
    leaf = x.detach().requires_grad_()
    part = F.gelu(leaf @ up.T) @ down.T
    (slope,) = torch.autograd.grad(part, leaf, dy)
    return worker.all_reduce(part), worker.all_reduce(slope)
    ### END SOLUTION


# %% check="tensor_parallel_ffn"

# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
ups, downs = list(U.chunk(2)), list(D.chunk(2, dim=1))
with your("tensor_parallel_ffn", "gather_and_scatter"):
    run = simulate(tensor_parallel_ffn, [x] * 2, ups, downs, [torch.ones_like(x)] * 2, collectives=True)
    parts = [F.gelu(x @ u.T) @ d.T for u, d in zip(ups, downs, strict=True)]
    sums = simulate(gather_and_scatter, parts, ["reduce-scatter"] * 2).results
    whole = simulate(gather_and_scatter, sums, ["all-gather"] * 2).results[0]
    gaps = [f"{(result - y).abs().max():.0e}" for result in (run.results[0][0], whole)]
print(f"two workers are off by {gaps[0]}, with the two halves of an all-reduce by {gaps[1]}; sent {run.sent}")
x, w = torch.randn(512, 1024), torch.randn(1024, 2048)
products, wire = seconds_for(lambda: F.gelu(x @ w) @ w.T), 2 * alpha + beta * 4 * x.numel()
print(f"512 tokens of 1,024 features: products {1e3 * products:.0f} ms, all-reduce of two {1e3 * wire:.0f} ms by your fit")

# %% [markdown]
# Back through $D$ each worker needs nothing from the others. But all read the same $x$, so its gradient has a part from each: an all-reduce. (In the paper this one is the operator $f$, and the one after $D$ is $g$.) Both halves of a transformer's block are cut like this, attention along its heads: one all-reduce forward and one backward in each half.
#
# ## 6 · The fastest all-reduce
#
# Could one all-reduce be fast at every size? **Eight workers; a message of $M$ bytes takes $\alpha + \beta M$; a worker sends one and receives one at a time.** No algorithm can be faster than
#
# $$\log_2 N \cdot \alpha + \frac{2(N-1)}{N}\,\beta M$$
#
# (Chan et al., 2007): a round can at most double what a worker knows, and the second term is the ring's. `times_the_least` simulates the clock for 16 sizes from $\alpha/\beta/512$ to $64\,\alpha/\beta$ bytes, and divides by that time.

# %%
with your("ring_all_reduce"):
    for way in (through_rank_0, ring_all_reduce, doubling):
        found = times_the_least(lambda worker, x, alpha, beta, way=way: way(worker, x), 2e-4, 1e-8)
        some = {size: round(found[size], 2) for size in [*found][::5]}
        print(f"{way.__name__:15} worst {max(found.values()):.2f};", some)

# %% [markdown]
# ### Exercise 6 · The fastest all-reduce  (6 points · 9 min · ●●●)
#
# Write an all-reduce that is never far from the least. It gets the wire's $\alpha$ and $\beta$: cut, decide by size, or find a way that is good for both ends.
#
# - 2 points: the right sum (to $10^{-5}$), the same to the last bit on every worker, for 1, 2, 4 and 8 workers, and for 3 and 5, where any way will do.
# - 1 point: with 8 workers the *worst* of the 16 sizes takes at most 1.65 times the least.
# - 3 points, the finish line: at most **1.45** times.
#
# Messages have the dtype of $x$, and workers meet in their messages only: each runs a copy of your function with its own variables.


# %% exercise="my_all_reduce"
def my_all_reduce(worker: Worker, x: Float[Tensor, "n"], alpha: float, beta: float) -> Float[Tensor, "n"]:
    """The sum of all workers' x, on every worker; a message of M bytes takes alpha + beta · M seconds."""
    ### BEGIN SOLUTION
    n, rank = worker.size, worker.rank
    if n & (n - 1):  # no power of two: by way of rank 0
        if rank:
            worker.send(0, x)
            return worker.receive(0)
        total = x + sum(worker.receive(sender) for sender in range(1, n))
        for to in range(1, n):
            worker.send(to, total)
        return total

    def add_up(x: Tensor, distance: int) -> Tensor:
        """The sum over the workers whose ranks differ from this one's in the bits up to `distance`."""
        if not distance:
            return x
        partner = rank ^ distance
        if (distance.bit_length() - 1) * beta * x.nbytes <= 2 * alpha:  # short: exchange all of it
            worker.send(partner, x)
            return add_up(x + worker.receive(partner), distance // 2)
        low, high = x.tensor_split(2)
        keep, give = (low, high) if rank < partner else (high, low)
        worker.send(partner, give)
        own = add_up(keep + worker.receive(partner), distance // 2)
        worker.send(partner, own)
        parts = own, worker.receive(partner)
        return torch.cat(parts if rank < partner else parts[::-1])

    return add_up(x, n // 2)
    ### END SOLUTION


# %% check="my_all_reduce"

# %% [markdown]
# Now on your own wire. The training of section 4 adds up with it, and four processes run it beside the ring:


# %% tags=["nbval-ignore-output", "because it shows times of this machine"]
with your("my_all_reduce", "ring_all_reduce", "average_gradients"):
    ways = {"mine": lambda worker, x: my_all_reduce(worker, x, alpha, beta), "ring": ring_all_reduce}
    weights, _ = simulate(train, *halves, [average_gradients] * 2, [ways["mine"]] * 2, collectives=True).results
    print(f"trained with it: off by {max((a - b).abs().max() for a, b in zip(weights, of_one, strict=True)):.0e}")
    *_, seconds, ring = clocked(ways, SIZES[1::2]).values()
    for size, a, b in zip(SIZES[1::2], seconds, ring, strict=True):
        by_fit = seconds_of(my_all_reduce, [torch.ones(size // 4)] * 4, alpha, beta).seconds
        print(f"{size:>9,} bytes: my_all_reduce {1e3 * a:.1f} ms ({1e3 * by_fit:.1f} by fit), ring {1e3 * b:.1f} ms")

# %% [markdown]
# <details><summary>What others found</summary>
#
# Rabenseifner (2004) replaces the ring by *halving*: partners at distance 4, 2, 1 exchange halves of what is left, so the ring's bytes take $2\log_2 N$ messages. Halving or doubling, by size, stays within 1.42 of the least. MPI (Thakur et al., 2005) and NCCL choose by size, too. The best that we know halves while that pays, doubles on the piece, and gathers back: 1.26. A last halving, at distance 1, never pays: exchanging all sends as many bytes, in one message less.
#
# </details>
#
# ## What to keep
#
# | of $M$ bytes in all | each sends | in rounds |
# | --- | --- | --- |
# | reduce-scatter | $(N-1)/N \cdot M$ | $N - 1$ |
# | all-gather, its backward pass | $(N-1)/N \cdot M$ | $N - 1$ |
# | all-reduce in a ring, the two in a row | $2(N-1)/N \cdot M$ | $2(N-1)$ |
# | all-reduce by doubling | $\log_2 N \cdot M$ | $\log_2 N$ |
#
# Short messages cost rounds, long ones bytes. Average over *targets*; DDP averages over workers. Cut matrices by outputs, then by inputs, and *add* the parts.
#
# ## Check yourself
#
# 1. Your network has $\alpha = 50$ µs and $\beta = 0.02$ ns. Is a tensor of 100 kB short or long for it?
# 2. Worker 0 has 3 counted targets and a mean loss of 2, worker 1 has 1 target and a loss of 6. What is the mean over all targets?
#
# <details><summary>Answers</summary>
#
# 1. Short: $\alpha/\beta = 2.5$ MB, and 100 kB take 2 µs beside 50. Send few messages, by putting many tensors into one.
# 2. $(3 \cdot 2 + 1 \cdot 6)/4 = 3$. The average of the means is 4.
#
# </details>

# %% [markdown]
# The numbers in the text are checked here. (The cell is folded.)

# %% tags=["hide-input"]
from lmcourse.accounting.parallel import all_reduce_bytes

assert simulate(through_rank_0, [torch.ones(16)] * 8).sent[0] == 7 * 64 and (64 - 1).bit_length() == 6
assert f"{all_reduce_bytes(1, 8):.2f} {all_reduce_bytes(1, 1000):.3f}" == "1.75 1.998"
assert (3 * 2 + 1 * 6) / 4 == 3 and (2 + 6) / 2 == 4
assert ddp == [[10.0, 10.0, 5.5, 3.25], [20.0, 10.0, 5.5, 3.25]]
assert round(50e-6 / 0.02e-9) == 2_500_000 and round(100e3 * 0.02e-9 * 1e6) == 2

# %% [markdown]
# ## Further
#
# Every section below needs the core above, and no other section.

# %%
from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.parallel import (
    Layout,
    all_gather_bytes,
    data_parallel_traffic,
    idle_share,
    max_alive,
    pipeline_bubble_fraction,
    pipeline_orders,
    run_pipeline,
    state_memory,
    tensor_parallel_traffic,
)
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.accounting.step_time import Machines, TrainingStep, candidates, step_parts, step_time
from lmcourse.models.zoo import find_model
from lmcourse.nn.attend import block_update
from lmcourse.widgets import Log

PEAK = find_accelerator("h100").peak("bf16")  # FLOP/s
llama = find_model("llama-3-8b").decoder

# %% [markdown]
# ### A · Hide it, and cut the optimizer  (10 min)
#
# What does the averaging of gradients cost on large devices? A model of $N$ parameters computes $6N$ FLOPs per token (notebook 15), 4 of the 6 in the backward pass. It sends $2 \cdot 2N$ bytes of gradients in bf16, since $2(n-1)/n \approx 2$. NVLink connects the GPUs of one machine; a network connects the machines.

# %%
predict("bigger_model_slower_sync")

# %%
for link, bandwidth in (("NVLink, 450 GB/s", 450e9), ("network, 50 GB/s", 50e9)):
    tokens_to_hide = (2 * 2 / bandwidth) / (4 / PEAK)  # N cancels
    print(f"{link}: an H100's backward pass is as long as the sending with {tokens_to_hide:,.0f} tokens")

# %% [markdown]
# The gradients of the last layers are ready first, so they can be sent while earlier layers still compute. DDP puts them into **buckets**, of 25 MB by default: one collective for many tensors, as in Exercise 4. In the figure below, 0.39 s of sending are not hidden. Take more tokens until almost all is hidden. Then choose a bucket that is too small, and one that is too large.

# %%
explore(figures.bucket_timeline, tokens=Log(1024, 65536), bucket=list(figures.BUCKETS))

# %% [markdown]
# With few tokens the wire takes longer than the backward pass, and no bucket helps. Tiny buckets pay for their start thousands of times. One huge bucket leaves when the last gradient is ready, so nothing is hidden.
#
# Data parallelism also has a memory problem: every device keeps all weights, all gradients, and all of the optimizer. In this notebook gradients are in bf16, as they are sent, so that is 16 bytes a parameter, the recipe `mixed-16-bit-gradients`; notebook 14's mixed precision has fp32 gradients and takes 18. Rajbhandari et al. (2020) let each device keep only its *part* of the optimizer: with 8 devices, the moments and master weights of an eighth of the model. Who then takes the step for the other seven eighths?

# %%
predict("zero_one")

# %%
parameters, recipe = count_parameters(llama).total, find_recipe("mixed-16-bit-gradients")
for stage, name in enumerate(("nothing divided", "optimizer", "and gradients", "and weights")):
    layout = Layout(data=8, zero=stage)
    memory = state_memory(parameters, recipe, layout).total
    traffic = data_parallel_traffic(parameters, recipe, layout).total
    print(f"ZeRO {stage}  {name:16} {memory / 1e9:6.1f} GB on each device, {traffic / 1e9:.1f} GB sent per step")

# %% [markdown]
# Stage 1 sends no byte more. After the reduce-scatter each worker has the summed gradient of *its part* of the weights. It takes the step for this part, and then *weights* are gathered in the place of gradients. Stage 3, which torch calls **FSDP** (*fully sharded data parallel*), gathers each layer's weights just before it is computed and drops them afterwards, forward and again backward: half as many bytes again, for an eighth of the memory. Only what computes or travels is whole for a while: the weights of two layers, and the gradients of two (1.7 GB here; embedding and head come on top).
#
# Can that hide behind arithmetic? Forward, $2N$ bytes are gathered beside $2N$ FLOPs a token; backward, $4N$ bytes are sent beside $4N$ FLOPs. So it takes peak / bandwidth tokens again, 2,199 or 19,788 as above. But ZeRO 3 gathers for every micro-batch, so each of them needs as many.
#
# > **Question.** A colleague writes: "ZeRO is a form of model parallelism." Which part of the *computation* of a layer is divided among the devices?
# > <details><summary>Answer</summary>None. Each device computes whole layers, on its own texts. ZeRO divides what is stored.</details>

# %% [markdown]
# With your two halves, a step of SGD with momentum is three lines. Every worker has all weights, its own gradient, and a third of the momentum:


# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
def sharded_step(worker: Worker, weights: Tensor, gradient: Tensor, momentum: Tensor) -> tuple[Tensor, Tensor]:
    """All weights after a step, and this worker's part of the momentum."""
    momentum = 0.9 * momentum + gather_and_scatter(worker, gradient, "reduce-scatter")
    part = weights.chunk(worker.size)[worker.rank] - 0.1 * momentum
    return gather_and_scatter(worker, part, "all-gather"), momentum


torch.manual_seed(0)
weights, gradients, momenta = torch.randn(6, 1), list(torch.randn(3, 6, 1)), list(torch.randn(3, 2, 1))
with your("gather_and_scatter"):
    run = simulate(sharded_step, [weights] * 3, gradients, momenta)
one = weights - 0.1 * (0.9 * torch.cat(momenta) + sum(gradients))
print(
    f"off by {(run.results[0][0] - one).abs().max():.0e} from one worker; each sends {run.sent[0]} bytes, as in an all-reduce"
)

# %% [markdown]
# ### B · Cut the vocabulary  (16 min)
#
# The head is the widest matrix of all: 128,256 outputs in Llama 3. Cut along the vocabulary, worker $r$ has the logits of its own tokens, $r\,v$ to $(r+1)\,v - 1$. And then comes a softmax over *all* of them. Gathering the logits is expensive:

# %%
vocab, length, devices = llama.vocab_size, 8192, 8
logits = all_gather_bytes(2 * length * vocab, devices)  # bf16
scalars = all_reduce_bytes(3 * 4 * length, devices)  # three numbers of fp32 a token
print(f"a device sends {logits / 1e9:.2f} GB of logits, or {scalars / 1e6:.2f} MB of three numbers a token")

# %% [markdown]
# > **Question.** A colleague lets the worker that has a token's target compute the loss, from its own part of the logits; the others ignore the token. Is the loss too high or too low? Two workers, six tokens, a vocabulary of ten:

# %%
generator = torch.Generator().manual_seed(0)
logits, targets = torch.randn(6, 10, generator=generator).double(), torch.tensor([0, 7, 4, 5, 9, 2])
right = F.cross_entropy(logits, targets).item()
own = [F.cross_entropy(logits[i, 5 * (t // 5) : 5 * (t // 5) + 5][None], t[None] % 5) for i, t in enumerate(targets)]
print(f"cross-entropy {right:.4f}, with each worker's own softmax {torch.stack(own).mean().item():.4f}")

# %% [markdown]
# Much too low: each worker's softmax divides by its own part of the vocabulary only. Which three small numbers per token must be sent?

# %% [markdown]
# ### Exercise 7 · Cross-entropy in parts  (4 points · 12 min · ●●●)
#
# `logits` (t, v) are those of tokens $r\,v$ to $(r + 1)\,v - 1$ on rank $r$; `targets` (t) are numbers in the whole vocabulary. Return the mean cross-entropy over the $t$ tokens in nats, on every worker. Compute in fp32 or fp64, whatever the dtype of the logits is; logits may be 1000, −1000 or −∞. A worker may send 48 bytes per token in all: the vocabulary is larger than that. `worker.all_reduce(x, op="max")` gives the larger of each number.


# %% exercise="vocabulary_parallel_loss"
def vocabulary_parallel_loss(
    worker: CollectiveWorker, logits: Float[Tensor, "t v"], targets: Int[Tensor, "t"]
) -> float:
    """The mean cross-entropy of the whole vocabulary."""
    ### BEGIN SOLUTION
    wide = logits.double()
    vocab = wide.shape[1]
    largest = worker.all_reduce(wide.amax(dim=1), op="max")
    local = targets - worker.rank * vocab
    here = (local >= 0) & (local < vocab)
    gold = wide.gather(1, local.where(here, 0)[:, None])[:, 0].where(here, 0)
    total = worker.all_reduce((wide - largest[:, None]).exp().sum(dim=1))
    return (largest + total.log() - worker.all_reduce(gold)).mean().item()
    ### END SOLUTION


# %% check="vocabulary_parallel_loss"

# %% [markdown]
# The other end of the model is cut the same way: each worker has the embeddings of its own tokens. For a token of another worker it takes zeros, and an all-reduce adds up one row and zeros.


# %%
def cut_embedding(worker: CollectiveWorker, tokens: Tensor, rows: Tensor) -> Tensor:
    """The embeddings of all tokens; `rows` are those of this worker's tokens."""
    local = tokens - worker.rank * len(rows)
    here = (local >= 0) & (local < len(rows))
    return worker.all_reduce(rows[local.where(here, 0)] * here[:, None])


table, ids = torch.arange(12.0).view(6, 2), torch.tensor([4, 0, 2])
run = simulate(cut_embedding, [ids] * 3, list(table.chunk(3)), collectives=True)
print(run.results[0].tolist(), "is", table[ids].tolist())

# %% [markdown]
# ### C · Cut the heads, and the tokens between  (7 min)
#
# Attention is cut already: into heads, which know nothing of each other until the output matrix. `qkv` produces them (outputs first), `out` reads them (then inputs). Each worker computes the attention of its own heads, softmax and all, without a message.
#
# > **Question.** With two heads $u_1, u_2$ and $O = (O_1\ O_2)$, is the layer's output $(u_1 O_1^\top,\ u_2 O_2^\top)$, side by side, or $u_1 O_1^\top + u_2 O_2^\top$? And what if there are more devices than key heads?
# > <details><summary>Answer</summary>The sum: each part has the full width already. Llama 3 has 8 key heads; with $T = 16$ two devices need the same one, and each keeps a copy.</details>
#
# > **Question.** A SwiGLU layer has a second matrix beside `up`. Which axis of it is cut, and how many all-reduces are there now?
# > <details><summary>Answer</summary>`gate` is cut like `up`, along its outputs, the hidden features. There is still one all-reduce forward and one backward: each worker adds the two gradients of $x$ before it sends.</details>
#
# Dropout needs care. Inside attention and the hidden features each worker has *other* numbers, so its random stream must differ from the others'. On the residual stream all workers have the *same* numbers, and must drop the same ones: there they share a stream.
#
# Between the cut matrices lie norms, residual additions and dropout. Tensor parallelism leaves them **whole on every device**: each of the $T$ devices normalizes all tokens, and keeps what backward needs. Of the 34 bytes that a block keeps per token and feature (notebook 14), those are 10.

# %%
for devices in (1, 2, 4, 8, 16):
    print(f"{devices:2} devices: {10 + 24 / devices:4.1f} bytes; with the tokens cut, too, {34 / devices:4.1f}")

# %% [markdown]
# But all these operations look at *one token at a time*. So cut the tokens (Korthikanti et al., 2022): each device normalizes and keeps $1/T$ of them. Before the matrices it needs all tokens; after them it needs the sum, of its own tokens only. Which two collectives are that?

# %%
predict("sequence_parallel_traffic")

# %% [markdown]
# Half a block is $x + \text{FFN}(N(x))$, here with $N(x) = x / \sqrt{\text{mean of squares} + 10^{-6}}$, an RMSNorm without a scale. With your two halves, on two workers with eight tokens of 32 features in fp32:


# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
def norm(x: Tensor) -> Tensor:
    return x / (x.square().mean(dim=1, keepdim=True) + 1e-6).sqrt()


def half_block(worker: Worker, x: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """This worker's tokens after x + FFN(norm(x))."""
    everything = gather_and_scatter(worker, norm(x), "all-gather")
    return x + gather_and_scatter(worker, F.gelu(everything @ up.T) @ down.T, "reduce-scatter")


torch.manual_seed(0)
x, up, down = torch.randn(8, 32), torch.randn(64, 32) / 6, torch.randn(32, 64) / 8
ups, downs = list(up.chunk(2)), list(down.chunk(2, dim=1))
tensor_only = simulate(
    lambda worker, u, d: worker.all_reduce(F.gelu(norm(x) @ u.T) @ d.T), ups, downs, collectives=True
)
with your("gather_and_scatter"):
    sequence = simulate(half_block, list(x.chunk(2)), ups, downs)
gap = (torch.cat(sequence.results) - x - tensor_only.results[0]).abs().max()
print(
    f"largest difference {gap:.0e}; bytes sent, forward: {tensor_only.sent}, with sequence parallelism {sequence.sent}"
)

# %% [markdown]
# No byte more. The backward pass pays: the gathered input was not kept, so it is gathered again. For Llama 3 8B, one text of 8,192 tokens, $T = 8$:

# %%
for sequence_parallel in (False, True):
    traffic = tensor_parallel_traffic(llama, 1, 8192, 8, sequence_parallel=sequence_parallel)
    told = ", ".join(f"{part} {size / 1e9:.1f} GB" for part, size in traffic)
    told = told.replace("backward, inputs again", "backward (inputs again)")
    print(f"{'with' if sequence_parallel else 'without':7} sequence parallelism: {told}")

# %% [markdown]
# > **Question.** Tensor and sequence parallelism come together, and each divides something by $T$. Which of the two divides a parameter?
# > <details><summary>Answer</summary>Tensor parallelism. Sequence parallelism divides tokens: the scales of the norms are whole on each device, and their gradients have to be added up.</details>

# %% [markdown]
# ### D · Cut the layers  (19 min)
#
# The simplest cut of all: the first layers here, the next ones there. Two **stages** exchange only the activations of one layer, so this cut may cross the slowest link. But a stage waits for the one before it, and in the backward pass for the one after it. With one batch, $p - 1$ of $p$ devices are always idle.
#
# So the batch is cut into $m$ **micro-batches**. By hand: three stages, two micro-batches, forward takes 1 and backward 2. (A number is a micro-batch, a dot is waiting. A forward pass fills one column, a backward pass two.)
#
# ```text
#            time 0  1  2  3  4  5  6  7  8  9 10 11
# stage 0         0  1  .  .  .  .  .  .  0  0  1  1
# stage 1         .  0  1  .  .  .  0  0  1  1  .  .
# stage 2         .  .  0  1  0  0  1  1  .  .  .  .
# ```
#
# This is **GPipe** (Huang et al., 2019): all forwards, then all backwards. Its price is memory: at the turning point a stage keeps the activations of all $m$ micro-batches. But look at stage 2: it could start the backward pass of micro-batch 0 right at time 3. **1F1B** (*one forward, one backward*, from PipeDream: Narayanan et al., 2019) does that: each stage starts a few micro-batches, and then alternates a backward and a forward pass.

# %% [markdown]
# ### Exercise 8 · Who does what when?  (3 points · 12 min · ●●●)
#
# Return the order in which stage `rank` of `stages` works through `micro` micro-batches: `"F0"` is the forward pass of the first one, `"B0"` its backward pass. Both kinds go through the micro-batches in order.
#
# - `"gpipe"`: all forwards, then all backwards.
# - `"1f1b"`: the last stage goes backward with a micro-batch right after its forward pass. Every earlier stage starts one micro-batch more than the stage after it. From then on each backward makes room for one more forward.
#
# Raise `ValueError` for any other schedule (capitals count), a rank that does not exist, or fewer than one micro-batch.


# %% exercise="stage_order"
def stage_order(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    """What one stage of a pipeline does, in order: ["F0", "B0"] for one micro-batch."""
    ### BEGIN SOLUTION
    if schedule not in ("gpipe", "1f1b") or not 0 <= rank < stages or micro < 1:
        raise ValueError(f"no stage {rank} of {stages} works through {micro} micro-batches by {schedule!r}")
    alive = micro if schedule == "gpipe" else min(stages - rank, micro)
    order = [f"F{i}" for i in range(alive)]
    for i in range(micro):
        order.append(f"B{i}")
        if i + alive < micro:
            order.append(f"F{i + alive}")
    return order
    ### END SOLUTION


# %% check="stage_order"

# %%
predict("bubble_of_1f1b")

# %% [markdown]
# Your orders decide who waits for whom; a small event simulation does the rest. (A stage starts a pass as soon as it is next in its order, and its inputs have arrived.)

# %%
with your("stage_order"):
    for micro in (4, 32):
        for schedule in ("gpipe", "1f1b"):
            orders = [stage_order(rank, 4, micro, schedule) for rank in range(4)]
            passes = run_pipeline(orders, forward=1, backward=2)
            alive = [max_alive(order) for order in orders]
            time, waiting = max(task.end for task in passes), idle_share(passes, 4)
            print(f"{schedule:5} 4 stages, {micro:2} micro-batches: {time:3g} units of time, ", end="")
            print(f"{waiting:.1%} waiting, alive {alive}")

# %%
explore(figures.pipeline_schedule, stages=[2, 4, 8], micro=[1, 4, 8, 32], schedule=["gpipe", "1f1b"])

# %% [markdown]
# Choose `micro`, and switch between the two schedules. The bars move; the title's percentage stays:
#
# $$\text{fraction of waiting} = \frac{p-1}{m+p-1}$$
#
# for both schedules, and however long a backward pass takes. 1F1B changes the line below: stage $r$ keeps at most $p - r$ micro-batches instead of $m$. And because memory no longer grows with $m$, you can afford more of them, and *that* shrinks the bubble.

# %% [markdown]
# > **Question.** Your pipeline idles 20% of its time with 8 stages. How many micro-batches has it? And how many would make it 5%?
# > <details><summary>Answer</summary>$7/(m + 7) = 0.2$ gives $m = 28$, and 5% takes 133.</details>

# %% [markdown]
# ### E · Which cut for which machine?  (31 min)
#
# Texts and matrices are two of the cuts. The others, in short:
#
# | cut | what is sent | how often | divides |
# | --- | --- | --- | --- |
# | texts (data) | gradients, 2 bytes · N | once a step, hidden by backward | nothing; with ZeRO the state |
# | matrices (tensor) | activations of all tokens | 4 times a block, little of it hidden | weights, state, most activations |
# | tokens (sequence) | the same bytes | with tensor parallelism | the rest of the activations |
# | layers (pipeline) | activations at a border, and their gradients | twice per border and micro-batch, forward and backward | weights, state |
# | experts (mixtures) | each token to the workers of its experts, and back: two all-to-alls | twice a block, forward and backward | the experts |
#
# The cuts multiply: data · tensor · pipeline devices. Neighbouring ranks share a machine, so the cut that sends most gets the neighbours. 16 workers with $T = 4$:

# %%
for group in range(4):
    neighbours, apart = [rank for rank in range(16) if rank // 4 == group], list(range(group, 16, 4))
    print(f"tensor parallelism among workers {neighbours}; data parallelism among {apart}")

# %% [markdown]
# Tensor parallelism sends most. How much is too much? Take a forward pass through a block of $12\,d^2$ weights, without the scores of attention: two ring all-reduces of bf16 tokens, on $T$ devices.
#
# > **Question.** The time on the wire, divided by the time of arithmetic, depends on the width $d$. Does it grow with $d$ or shrink? Count both for one token before you run the cell.

# %%
links = {"NVLink, 450 GB/s": 450e9, "PCIe 5, 64 GB/s": 64e9, "network, 50 GB/s": 50e9}
for d in (4096, 16384):
    arithmetic = 2 * 12 * d**2 / 8 / PEAK  # seconds for one token on 8 devices
    wire = {name: 2 * all_reduce_bytes(2 * d, 8) / bandwidth for name, bandwidth in links.items()}
    told = "; ".join(f"{name}: {seconds / arithmetic:.0%}" for name, seconds in wire.items())
    print(f"d = {d:6,}, T = 8, wire / arithmetic over {told}")

# %% [markdown]
# Arithmetic grows with $d^2$, the bytes with $d$. Wide models can be cut; deep and narrow ones cannot. And over a network the devices would spend most of their time on the wire. So **tensor parallelism stays inside a machine; pipeline and data go outside.**
#
# That is a rule of thumb. A real choice weighs five things at once: arithmetic, both kinds of traffic, the bubble, gradients that are not hidden, memory. Double the pipeline: which two bars move? Then find a layout for 256 devices that is faster than the best one you find with ZeRO 0.

# %%
explore(
    figures.layout_explorer,
    model=list(figures.MODELS),
    cluster=list(figures.CLUSTERS),
    tensor=[1, 2, 4, 8],
    pipeline=[1, 2, 4, 8, 16],
    zero=[0, 1, 2, 3],
    micro=[1, 2, 4, 8],
    interleave=[1, 2, 4],
    recompute=False,
)

# %% [markdown]
# (`interleave`: each stage holds several pieces of the model that lie apart, so that filling the pipeline takes a fraction of the time, and the borders are crossed more often. `recompute`: only the inputs of blocks are kept, notebook 14. ZeRO 2 sends as much as ZeRO 1 for each reduction, but here it reduces after every micro-batch, because it does not keep whole gradients.)
#
# Let the machine search. `candidates` yields all layouts that a cluster allows: tensor parallelism inside a machine and with whole key heads, a layer for each stage, whole micro-batches. `step_parts` gives the ingredients of one layout: seconds and bytes of the busiest device.

# %%
llama_70b = find_model("llama-3-70b").decoder
step, machines = TrainingStep.of(llama_70b, texts=128), Machines(devices=64)
everything = list(candidates(step, machines))
print(len(everything), "layouts (data, tensor, pipeline, zero, micro), from", everything[0], "to", everything[-1])
parts = step_parts(step, machines, 4, 4, 4, 1, 1)
print(f"of (4, 4, 4, 1, 1): micro_batches {parts.micro_batches}")
for part in ("arithmetic", "tensor", "border", "gradients"):
    print(f"{part:11} {getattr(parts, part):6.3f} s")
for part in ("state", "activations"):
    print(f"{part:11} {getattr(parts, part) / 1e9:6.2f} GB")

# %% [markdown]
# ### Exercise 9 · The best layout  (4 points · 18 min · ●●●)
#
# Return the fastest layout whose memory fits into `machines.memory`, as a list, and its seconds a step. Put the parts together like this:
#
# - `arithmetic`, `tensor` and `border` are the seconds in which a stage is busy with all micro-batches of a step. The schedule is 1F1B, so the bubble comes on top.
# - `gradients` are seconds on the wire. The arithmetic of the backward pass hides them as far as it is long enough; nothing else hides them. The seconds that are not hidden come on top.
# - `state` and `activations` are bytes; `activations` are those that *one* micro-batch keeps. Count as many micro-batches as the first stage holds when it holds most.
#
# Of equally fast layouts take the first in the order of `candidates`. If nothing fits, raise `ValueError`. (The package's `step_time` is what you write here, so it is forbidden.)


# %% exercise="best_layout"
def best_layout(step: TrainingStep, machines: Machines) -> tuple[list[int], float]:
    """The fastest layout [data, tensor, pipeline, zero, micro] that fits, and its seconds."""
    ### BEGIN SOLUTION
    best = None
    for layout in candidates(step, machines):
        parts, pipeline = step_parts(step, machines, *layout), layout[2]
        alive = min(pipeline, parts.micro_batches)
        if parts.state + alive * parts.activations > machines.memory:
            continue
        busy = parts.arithmetic + parts.tensor + parts.border
        bubble = busy * (pipeline - 1) / parts.micro_batches
        seconds = busy + bubble + max(0.0, parts.gradients - 2 / 3 * parts.arithmetic)
        if best is None or seconds < best[1]:
            best = list(layout), seconds
    if best is None:
        raise ValueError("no layout fits into memory")
    return best
    ### END SOLUTION


# %% check="best_layout"


# %%
def show_best(name: str, texts: int, machines: Machines, remark: str = "") -> None:
    """Print the best layout of a model of the zoo."""
    step = TrainingStep.of(find_model(name).decoder, texts)
    (data, tensor, pipeline, zero, micro), seconds = best_layout(step, machines)
    time = step_time(step, machines, data, tensor, pipeline, zero, micro)
    print(f"{name:14} {machines.devices:6,} devices: {data:4} × {tensor} × {pipeline:2}, ZeRO {zero}, ", end="")
    mfu = time.mfu(step, machines)
    print(f"{seconds:5.2f} s, MFU {mfu:.0%}, bubble {time.bubble:.2f} s  {remark}")


with your("best_layout"):
    show_best("llama-3-8b", 512, Machines(64))
    show_best("llama-3-70b", 128, Machines(64))
    show_best("llama-3-70b", 512, Machines(256))
    show_best("llama-3.1-405b", 2048, Machines(16_384))
    show_best("llama-3-70b", 128, Machines(64, outside=450e9), "as fast outside as inside")
    show_best("llama-3-70b", 128, Machines(64, outside=10e9), "a network of 10 GB/s")
    show_best("llama-3-70b", 128, Machines(64, memory=141e9), "141 GB a device")

# %% [markdown]
# If weights, gradients and a part of the optimizer fit on one device, the model is simply copied. The 70B model has to be cut, and gets a little of every cut. With 2,048 texts on 16,384 devices there is an eighth of a text for each device, so 405B has no good layout: a deep pipeline has too few micro-batches, and ZeRO 3 sends more than the backward pass hides.
#
# Llama 3 405B was trained with 128 copies × 8 × 16 on these 16,384 devices, and reached 400 TFLOP/s on each. What does the model say of that layout?

# %%
step, machines = TrainingStep.of(find_model("llama-3.1-405b").decoder, 2048), Machines(16_384)
for interleave in (1, 2):
    time = step_time(step, machines, 128, 8, 16, 1, 1, interleave=interleave)
    mfu, memory = time.mfu(step, machines), time.memory / 1e9
    print(f"interleave {interleave}: {time.seconds:.2f} s, MFU {mfu:.0%}, {memory:.0f} GB on a device")
print(f"measured: {step.flops / (400e12 * 16_384):.2f} s, MFU {400e12 / machines.peak:.0%}")

# %% [markdown]
# With interleaving the published layout takes about as long as measured, and beats the best one that your search finds. Part of this agreement is luck: that matrix products reach 70% of the peak was our guess. And the layout does not fit into 80 GB. The Llama team freed tensors that backward does not need and tuned how many micro-batches are alive; our model knows no such tricks. It also leaves out latency, the scores of attention, embedding and head as layers, failures, and the slowest of 16,384 devices. Use it to rule layouts out, then measure the rest.
#
# `lmcourse train --tensor-parallel 2` under `torchrun` does it with torch's own tools: the trainer makes a **device mesh** (a grid of processes with an axis for each kind of parallelism), and `torch.distributed.tensor` cuts the matrices by a plan that is the rule of section 5 as a dictionary (`lmcourse/training/parallel/tensor_parallel.py`).

# %% [markdown]
# ### F · Cut one long text  (20 min)
#
# All cuts so far leave a whole text on a device. With 131,072 tokens that no longer fits. **Context parallelism** leaves $s/N$ tokens of a text on each worker everywhere, also in attention: worker $r$ has tokens $r\,s/N$ to $(r+1)\,s/N - 1$. Each query then needs keys that other workers hold.
#
# **Ring attention** (Liu et al., 2023) never gathers them. Keys and values go round the ring, and each worker digests the block that it holds while the next one arrives. Notebook 08 wrote the update that makes this possible: `block_update(top, total, numerator, scores, v)` adds a block of keys to a softmax, and needs only the largest score and two sums of what came before. The package's version is imported above.

# %%
top, total, numerator = torch.full((1, 1), -torch.inf), torch.zeros(1, 1), torch.zeros(1, 1)
for scores, v in (([[0.0, 1.0]], [[10.0], [20.0]]), ([[3.0]], [[30.0]])):
    top, total, numerator = block_update(top, total, numerator, torch.tensor(scores), torch.tensor(v))
at_once = torch.tensor([0.0, 1.0, 3.0]).softmax(0) @ torch.tensor([10.0, 20.0, 30.0])
print(f"two blocks {(numerator / total).item():.4f}, at once {at_once.item():.4f}")

# %% [markdown]
# ### Exercise 10 · Ring attention  (3 points · 15 min · ●●●)
#
# One head of *causal* attention, with scores $q k^\top/\sqrt d$. Each worker has the queries, keys and values of its own $t = s/N$ tokens. Return the output for these tokens, as if one worker had the whole text. Keys and values travel to the right neighbour only (rank + 1; the last one's is rank 0), in $N - 1$ rounds: $2 \cdot t \cdot d$ numbers a round, for all workers. Scores may be in the thousands.


# %% exercise="ring_attention"
def ring_attention(
    worker: Worker, q: Float[Tensor, "t d"], k: Float[Tensor, "t d"], v: Float[Tensor, "t d"]
) -> Float[Tensor, "t d"]:
    """The output of this worker's tokens in causal attention over the tokens of all."""
    ### BEGIN SOLUTION
    size, rank, scale = worker.size, worker.rank, q.shape[1] ** -0.5
    state = q.new_full((len(q), 1), -torch.inf), q.new_zeros(len(q), 1), torch.zeros_like(q)
    future = torch.ones(len(q), len(q), dtype=torch.bool).triu(1)
    state = block_update(*state, (q @ k.T * scale).masked_fill(future, -torch.inf), v)
    for turn in range(1, size):
        worker.send((rank + 1) % size, torch.stack([k, v]))
        k, v = worker.receive((rank - 1) % size)
        if turn <= rank:  # the block of rank - turn; later ranks are hidden
            state = block_update(*state, q @ k.T * scale, v)
    return state[2] / state[1]
    ### END SOLUTION


# %% check="ring_attention"

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
torch.manual_seed(0)
q, k, v = torch.randn(3, 32, 8, dtype=torch.float64)
with your("ring_attention"):
    run = simulate(ring_attention, list(q.chunk(4)), list(k.chunk(4)), list(v.chunk(4)))
    whole = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    gap = (torch.cat(run.results) - whole).abs().max().item()
    print(f"four workers differ from one by at most {gap:.0e}; each sent {run.sent} bytes")

# %%
predict("idle_in_the_ring")

# %%
for name, owned in (("in order", [[r] for r in range(4)]), ("zigzag", [[r, 7 - r] for r in range(4)])):
    size = 32 // 4 // len(owned[0])  # tokens of a piece
    work = [sum(i + 1 for piece in pieces for i in range(piece * size, (piece + 1) * size)) for pieces in owned]
    print(f"{name:8} visible pairs of query and key for workers 0 to 3: {work}")

# %% [markdown]
# All wait for the slowest. So real systems cut a text into $2N$ pieces and give worker $r$ the pieces $r$ and $2N - 1 - r$ (zigzag): an early and a late one, and the same work for all.
#
# **In real models.**
#
# | model | layout | source |
# | --- | --- | --- |
# | Llama 3 405B | tensor 8, pipeline 16, and 64 or 128 copies (FSDP) on 8,192 and 16,384 H100s: 430 and 400 TFLOP/s each, 43 and 40% of their peak (the paper prints 43 and 41) | Llama Team, 2024, table 4 |
# | the same, texts of 131,072 tokens | tensor 8, *context* 16, pipeline 16, 8 copies: 380 TFLOP/s | the same table |
# | Megatron's 530B and 1T | tensor 8 within a machine, sequence parallelism, pipelines of 35 and 64 | Korthikanti et al., 2022, table 3 |
# | DeepSeek-V3 | no tensor parallelism at all: pipeline 16, experts 64, ZeRO 1 | DeepSeek-AI, 2024, section 3.2 |
#
# The first three keep the cut that sends most inside a machine.

# %% [markdown]
# ### G · Experts on other devices  (18 min)
#
# In a mixture of experts (notebook 11, exercise 12) a router sends each token to $k$ of $E$ small layers. The experts are most of the model, and a token needs few of them. So put $E/N$ experts on each worker, and let the *tokens* travel: **expert parallelism**. `worker.all_to_all(parts)` sends `parts[r]` to worker $r$, and returns what each worker has sent to this one, in the order of ranks. The parts may differ in length.


# %%
def swap(worker: CollectiveWorker, parts: list[Tensor]) -> list[list[float]]:
    """The rows that each worker has sent to this one."""
    return [part.tolist() for part in worker.all_to_all(parts)]


run = simulate(
    swap, [[torch.arange(0.0, n) for n in (1, 2)], [torch.arange(7.0, 7 + n) for n in (3, 0)]], collectives=True
)
print(run.results, "bytes sent:", run.sent)

# %% [markdown]
# ### Exercise 11 · Experts on other devices  (3 points · 15 min · ●●●)
#
# Each worker has $t$ tokens `x` of its own, and the whole router. Worker $r$ has the experts $r\,E/N$ to $(r+1)\,E/N - 1$: `w_gate[0]` is the first of its own. For each token $p = \text{softmax}(x\,W_r)$ over all $E$ experts; it goes to the $k$ experts with the largest $p$. Expert $e$ computes $(\text{SiLU}(x\,G_e) \cdot (x\,V_e))\,D_e$. The results are added with the weights $p$, for $k > 1$ divided by the sum of these $k$. Return the result of this worker's tokens. For each choice that lies on another worker, send one token there, one result back, and at most 16 bytes more. (With three all-to-alls it is short.)


# %% exercise="experts"
def experts(
    worker: CollectiveWorker,
    x: Float[Tensor, "t d"],
    router: Float[Tensor, "d E"],
    w_gate: Float[Tensor, "e d w"],
    w_value: Float[Tensor, "e d w"],
    w_down: Float[Tensor, "e w d"],
    k: int,
) -> Float[Tensor, "t d"]:
    """This worker's tokens, each through its k experts."""
    ### BEGIN SOLUTION
    each = len(w_gate)
    weights, chosen = (x @ router).softmax(1).topk(k)
    if k > 1:
        weights = weights / weights.sum(1, keepdim=True)
    places = [(chosen // each == rank).nonzero(as_tuple=True) for rank in range(worker.size)]
    arrived = worker.all_to_all([x[token] for token, _ in places])
    numbers = worker.all_to_all([chosen[place] % each for place in places])
    for rank in range(worker.size):
        for e in range(each):
            here = numbers[rank] == e
            own = arrived[rank][here]
            arrived[rank][here] = (F.silu(own @ w_gate[e]) * (own @ w_value[e])) @ w_down[e]
    results, y = worker.all_to_all(arrived), torch.zeros_like(x)
    for rank, place in enumerate(places):
        y = y.index_add(0, place[0], weights[place][:, None] * results[rank])
    return y
    ### END SOLUTION


# %% check="experts"

# %%
torch.manual_seed(0)
x, router, down = torch.randn(64, 16), torch.randn(16, 8), torch.randn(8, 24, 16) / 5
gate, value = torch.randn(2, 8, 16, 24) / 4
with your("experts"):
    for k in (1, 2, 4):
        weights = [list(w.chunk(4)) for w in (gate, value, down)]
        run = simulate(experts, list(x.chunk(4)), [router] * 4, *weights, [k] * 4, collectives=True)
        (alone,) = simulate(experts, [x], [router], [gate], [value], [down], [k], collectives=True).results
        off = "no" if torch.allclose(torch.cat(run.results), alone, atol=1e-5) else "a"
        print(f"top {k}: {off} difference from one worker; bytes sent by each of four: {run.sent}")

# %% [markdown]
# The bytes grow with $k$, not with $E$: with even routing a worker sends $\tfrac34 \cdot 16\,k$ of its choices away and as many results back, 1,536 bytes for $k = 1$ and 6,144 for $k = 4$, without the numbers of the experts. And they differ from worker to worker: all wait for the one whose experts are popular. DeepSeek-V3 spreads its experts over eight machines, and lets a token go to at most four of them, so that a token crosses the network at most four times, however many experts it has there.
#
# ### Further reading
#
# - Patarasuk & Yuan, 2009, *Bandwidth optimal all-reduce algorithms*; Rajbhandari et al., 2020, *ZeRO*.
# - Rabenseifner, 2004, *Optimization of collective reduction operations*; Thakur et al., 2005, *Optimization of collective communication operations in MPICH*; Chan et al., 2007, *Collective communication: theory, practice, and experience*.
# - Shoeybi et al., 2019, *Megatron-LM*; Korthikanti et al., 2022, *Reducing activation recomputation in large transformer models*.
# - Huang et al., 2019, *GPipe*; Narayanan et al., 2019, *PipeDream*; Narayanan et al., 2021, *Efficient large-scale language model training on GPU clusters*; Liu et al., 2023, *Ring attention*.
# - Austin et al., 2025, *How to scale your model*, chapter 5. The trainer's code is in `lmcourse/training/parallel`.

# %% [markdown]
# The numbers of these sections are checked here.

# %% tags=["hide-input"]
assert f"{pipeline_bubble_fraction(4, 4):.1%} {pipeline_bubble_fraction(4, 32):.1%}" == "42.9% 8.6%"
assert (pipeline_bubble_fraction(8, 28), pipeline_bubble_fraction(8, 133)) == (0.2, 0.05)
assert [round(PEAK / bandwidth) for bandwidth in (450e9, 50e9)] == [2199, 19_788]
assert llama.vocab_size == 128_256 and [3 / 4 * 16 * k * 2 * 16 * 4 for k in (1, 4)] == [1536, 6144]
by_hand = run_pipeline(pipeline_orders(3, 2, "gpipe"), 1, 2)
assert {(t.stage, t.name): t.start for t in by_hand if t.stage != 1} == {
    (0, "F0"): 0, (0, "F1"): 1, (0, "B0"): 8, (0, "B1"): 10, (2, "F0"): 2, (2, "F1"): 3, (2, "B0"): 4, (2, "B1"): 6,
}  # fmt: skip
assert f"{430 / 989.4:.0%} {400 / 989.4:.0%}" == "43% 40%"
