# %% [markdown]
# # 18 · Parallelism
#
# **140 min · 12 exercises · 33 points**
#
# A model does not fit on one device. *Where do you cut, and what must the devices then tell each other, so that the result is the same to the last digit?*
#
# Many people imagine a master who hands out work. There is none: **you write one program, and every worker runs it** (SPMD, *single program, multiple data*). A worker knows its rank, and can do two things: send and receive. Everything in this notebook is made of these two, first in a simulator that counts every byte and finds every deadlock, then, unchanged, on real processes.
#
# **You will be able to**
#
# - write all-reduce, all-gather and reduce-scatter, and say how many bytes each sends;
# - cut a transformer along its texts, its optimiser, its heads, its features, its vocabulary, its tokens and its layers, so that nothing changes but the bytes;
# - say for each cut what travels, how often, and over which wire it may;
# - lay a model out on a cluster, and say what a published layout is good for.
#
# **You need** memory and FLOPs (notebooks 14 and 15), attention (08), gradients (03). No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run
# it again for the next one.

# %%
from contextlib import suppress

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.accounting.parallel import (
    Layout,
    all_gather_bytes,
    all_reduce_bytes,
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
from lmcourse.chapters.parallelism import figures
from lmcourse.chapters.parallelism.simulated import CommunicationError, simulate
from lmcourse.chapters.parallelism.together import together
from lmcourse.chapters.parallelism.worker import CollectiveWorker, Worker
from lmcourse.models.initialize import initialize
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.course import modern
from lmcourse.notebook import check, explore, hint, predict, start
from lmcourse.training.config import TrainingConfig
from lmcourse.training.parallelism import Parallelism

start("18-parallelism")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · Two workers and a wire
#
# Three workers hold 1, 2 and 3. What can they do together? Seven words of the field. Five of them, before and after:
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
# The other two need several numbers each. If they hold (1, 2, 3), (10, 20, 30) and (100, 200, 300), **scatter** from 0 gives 1 to worker 0, 2 to 1, 3 to 2; and **reduce-scatter** gives them 111, 222 and 333: everybody a share of the sum.
#
# All of them can be made of two: send and receive. Here is a first program. Both workers run *the same* function; what they do differs because `worker.rank` does.

# %%
def pass_on(worker: Worker, x: Tensor | None) -> Tensor:
    """x of rank 0, on both workers."""
    if worker.rank == 0:
        worker.send(1, x)
        return x
    return worker.receive(0)


run = simulate(pass_on, [torch.tensor([1.0, 2.0]), None])  # an entry for each worker
print("results:", [result.tolist() for result in run.results])
print("bytes sent by each:", run.sent, "  rounds:", run.rounds)

# %% [markdown]
# `simulate` runs the function once for each entry of its list, copies every message, and counts. A message of two fp32 numbers has 8 bytes. A **round** is the time in which a worker can send one message and receive one.
#
# Now three workers in a ring. Each wants the number of its left neighbour.

# %%
predict("ring_of_receivers")

# %%
def receive_then_send(worker: Worker, x: Tensor) -> Tensor:
    """The left neighbour's x, or so one would think."""
    arrived = worker.receive((worker.rank - 1) % worker.size)
    worker.send((worker.rank + 1) % worker.size, x)
    return arrived


try:
    simulate(receive_then_send, [torch.tensor([rank]) for rank in range(3)])
except CommunicationError as error:
    print(str(error).replace(": ", ":\n", 1))

# %% [markdown]
# On real machines nobody prints that sentence. The job stands still, at full price, until somebody looks.
#
# How does one number reach everybody? If rank 0 sends it to each of $N - 1$ others, that takes $N - 1$ rounds, in which all but two workers do nothing. By hand for four: in round 1, 0 → 1. And in round 2?

# %% [markdown]
# ### Exercise 1 · Broadcast  (2 points · 6 min · ●●)
#
# Rank 0 has $x$, all others are given `None`. Everybody returns $x$. In a round a worker sends one message at most, and everybody who has $x$ already may send. Take no more than $\lceil \log_2 N \rceil$ rounds, for any number $N$ of workers, and send $x$ to nobody twice.


# %% exercise="broadcast"
def broadcast(worker: Worker, x: Float[Tensor, "n"] | None) -> Float[Tensor, "n"]:
    """x of rank 0, on every worker."""
    ### BEGIN SOLUTION
    step = 1
    while step < worker.size:
        if worker.rank < step and worker.rank + step < worker.size:
            worker.send(worker.rank + step, x)
        if step <= worker.rank < 2 * step:
            x = worker.receive(worker.rank - step)
        step *= 2
    return x
    ### END SOLUTION


# %% check="broadcast"
check(broadcast)
### BEGIN HIDDEN TESTS
check(broadcast, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · Adding up: through a chief, or in a ring
#
# Training adds up gradients in every step: an **all-reduce**. The first idea is a chief: all send to rank 0, which adds, and sends the sum back. With 12 numbers in fp64, $M = 96$ bytes:

# %%
def through_rank_0(worker: Worker, x: Tensor) -> Tensor:
    """The sum of everybody's x, by way of rank 0."""
    if worker.rank > 0:
        worker.send(0, x)
        return worker.receive(0)
    total = x + sum(worker.receive(sender) for sender in range(1, worker.size))
    for to in range(1, worker.size):
        worker.send(to, total)
    return total


twelve = torch.arange(12, dtype=torch.float64)
for n in (2, 4, 8):
    run = simulate(through_rank_0, [twelve] * n)
    print(f"{n} workers: rank 0 sends {run.sent[0]} bytes and receives as many, the others send {run.sent[1]}; {run.rounds} rounds")

# %% [markdown]
# The chief's wire carries $(N-1)\,M$ bytes each way, and all other wires lie idle. The **ring** (Patarasuk & Yuan, 2009) keeps all of them busy. By hand, with three workers and three chunks each:
#
# | | worker 0 | worker 1 | worker 2 |
# | --- | --- | --- | --- |
# | at first | a₀ b₀ c₀ | a₁ b₁ c₁ | a₂ b₂ c₂ |
# | round 1: 0 sends a, 1 sends b, 2 sends c, each to the right | a₀ b₀ **c₀₂** | **a₀₁** b₁ c₁ | a₂ **b₁₂** c₂ |
# | round 2: 0 sends c₀₂, 1 sends a₀₁, 2 sends b₁₂ | a₀ **b₀₁₂** c₀₂ | a₀₁ b₁ **c₀₁₂** | **a₀₁₂** b₁₂ c₂ |
#
# After $N - 1$ rounds each chunk's sum is complete *somewhere*, and $N - 1$ rounds more can pass the sums on. How many bytes has each sent then, as a share of $M$?

# %%
predict("ring_of_a_thousand")

# %%
explore(figures.collective, kind=list(figures.COLLECTIVES), workers=(2, 8), step=(0, 14))

# %% [markdown]
# ### Exercise 2 · The ring  (4 points · 15 min · ●●●)
#
# Return the sum of everybody's $x$, on every worker. Cut $x$ with `torch.tensor_split` into as many chunks as there are workers (the first ones are longer if it cannot be cut evenly), and let each worker send one chunk per round, **to its right neighbour only** (rank + 1; the last one's is rank 0): $N - 1$ rounds in which what arrives is added, $N - 1$ in which sums are passed on. Leave $x$ itself as it is. One worker alone sends nothing.


# %% exercise="ring_all_reduce"
def ring_all_reduce(worker: Worker, x: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    """The sum of everybody's x, on every worker."""
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
check(ring_all_reduce)
### BEGIN HIDDEN TESTS
check(ring_all_reduce, hidden=True)
### END HIDDEN TESTS

# %%
with suppress(NotImplementedError):  # until Exercise 2 is solved
    for n in (2, 4, 8):
        run = simulate(ring_all_reduce, [twelve] * n)
        print(f"{n} workers: each sends {run.sent} bytes, on average {sum(run.sent) / n:g}; {run.rounds} rounds")

# %% [markdown]
# $$\text{each sends } \frac{2(N-1)}{N}\,M \text{ bytes, in } 2(N-1) \text{ rounds.}$$
#
# (Twelve numbers cannot be cut evenly into eight chunks. So some send 160 bytes and some 176; the formula's 168 is their mean.) The price is rounds: every round waits for a message to arrive, however short it is. For small tensors a tree is faster, and libraries choose.

# %%
figures.ring_bytes()

# %% [markdown]
# Look at the middle of your function once more. After the first phase each worker holds a share of the sum: that is a *reduce-scatter*. The second phase is an *all-gather*.
#
# $$\text{all-reduce} = \text{reduce-scatter, then all-gather}$$
#
# It looks like bookkeeping, and half of this notebook follows from it.

# %% [markdown]
# ### Exercise 3 · The two halves  (3 points · 9 min · ●●)
#
# Write both halves as collectives of their own, for rows of a matrix. For the kind `"all-gather"`: everybody's rows below each other, in the order of ranks. For `"reduce-scatter"`: rank $r$ gets the rows of the *sum* of all $x$ that are the $r$-th of $N$ equal parts (the number of rows can be divided). Any topology will do, a ring or not, as long as each worker sends only what somebody needs: $N - 1$ parts. For another word raise `ValueError`.


# %% exercise="gather_and_scatter"
def gather_and_scatter(worker: Worker, x: Float[Tensor, "n d"], kind: str) -> Float[Tensor, "m d"]:
    """The rows of all workers, or this worker's share of the rows of their sum."""
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
check(gather_and_scatter)
### BEGIN HIDDEN TESTS
check(gather_and_scatter, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# The two are related in a second way: each is the other's **backward pass**. If all rows are gathered on every worker, and worker $w$ computes a loss from them, then the gradient of a worker's own rows is a *sum over the workers' losses*, cut into shares. Let autograd, who sees all workers at once, be the judge:

# %%
torch.manual_seed(0)
rows = [torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
whole = torch.cat(rows)  # what an all-gather gives to everybody
factors = [torch.randn(6, 3, dtype=torch.float64) for _ in range(3)]
loss = sum((whole * factor).sum() for factor in factors)  # worker w's loss has its own factors
by_autograd = torch.autograd.grad(loss, rows)
with suppress(NotImplementedError):  # until Exercise 3 is solved
    run = simulate(gather_and_scatter, factors, ["reduce-scatter"] * 3)  # the factors are the gradients of `whole`
    print("backward of all-gather = reduce-scatter:", all(map(torch.allclose, run.results, by_autograd)))

# %% [markdown]
# ## 3 · The same on real processes
#
# Was all this real? `together` has the signature of `simulate`. It starts a Python process for each worker, brings your function there, and gives it a worker whose `send` and `receive` are those of `torch.distributed`. The processes end when the function does, and also when you interrupt the cell or close the notebook.

# %%
numbers = [torch.arange(10.0) * 10**rank for rank in range(3)]
with suppress(NotImplementedError):  # until Exercise 2 is solved
    simulated = simulate(ring_all_reduce, numbers)
    real = together(ring_all_reduce, numbers)
    print("bytes sent, simulated:", simulated.sent, "  by three processes:", real.sent)
    print("equal to the last bit:", all(map(torch.equal, simulated.results, real.results)))

# %% [markdown]
# Your function has run on three processes without a change. One trap was kept from you: on many networks a **send waits until somebody takes the message** (gloo's `send` does, and MPI's may). What does your ring do there? The simulator can be patient like that.

# %%
with suppress(NotImplementedError):  # until Exercise 2 is solved
    try:
        simulate(ring_all_reduce, numbers, patient=True)
        print("it comes to an end")
    except CommunicationError as error:
        print(str(error).replace(": ", ":\n", 1))

# %% [markdown]
# A ring in which everybody sends first stands still as well. That is why the real worker uses `isend`: it hands the message over and goes on, and looks later whether it was taken. (The other way out: even ranks send first, odd ranks receive first.)

# %% [markdown]
# ## 4 · Other texts on each: data parallelism
#
# From here on a worker has collectives: `worker.all_reduce(x)`, `worker.all_gather(x, dim=0)` and `worker.reduce_scatter(x, dim=0)`. They count as a ring would.
#
# The oldest way to use many devices: everybody has the whole model, and other texts. After the backward pass the gradients are averaged, all copies take the same step, and so they stay equal for ever. Nobody ever sends a weight.
#
# If several devices share one copy of a model (sections 6 to 10 show how), only the *groups* see different texts. 16 workers in groups of $T = 4$:

# %%
for group in range(4):
    print(f"texts {group}: workers {[rank for rank in range(16) if rank // 4 == group]}")

# %% [markdown]
# Members of a group have neighbouring ranks, so that they sit in one machine: they will talk far more than the groups do.
#
# > **Question.** Worker 0 has a text of 3 counted targets and a mean loss of 2; worker 1, whose batch was mostly padding, has 1 target and a loss of 6. The mean over all four targets is 3. What does averaging the two means give?

# %% [markdown]
# ### Exercise 4 · Average the gradients  (2 points · 7 min · ●●)
#
# Each worker has computed gradients of the mean loss over *its own* counted targets, a tensor per parameter (all of one dtype; a parameter may have any shape). Return, on every worker, the gradients of the mean over **all** counted targets, in the same shapes. Use at most two collectives, however many parameters there are. A worker without targets has NaN for gradients, because it divided by 0. If nobody has any targets, return zeros.


# %% exercise="average_gradients"
def average_gradients(worker: CollectiveWorker, gradients: list[Tensor], targets: int) -> list[Tensor]:
    """Gradients of the mean over all workers' targets, from each worker's gradients of its own mean."""
    ### BEGIN SOLUTION
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    flat = flat * targets if targets else torch.zeros_like(flat)
    summed = worker.all_reduce(torch.cat([flat, flat.new_tensor([targets])]))
    mean = summed[:-1] / summed[-1].clamp(min=1)
    parts = mean.split([gradient.numel() for gradient in gradients])
    return [part.view_as(gradient) for part, gradient in zip(parts, gradients, strict=True)]
    ### END SOLUTION


# %% check="average_gradients"
check(average_gradients)
### BEGIN HIDDEN TESTS
check(average_gradients, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# That is the whole of **DDP** (torch's `DistributedDataParallel`), but for speed. Is it *equal to one process*? A small model, 12 tokens, five steps; the second half of the batch is mostly padding. One worker with everything, then two real processes with a half each, running the same program:

# %%
def train(worker: CollectiveWorker, tokens: Tensor, targets: Tensor) -> list[Tensor]:
    """The weights after five steps of SGD on this worker's share of the batch, gradients averaged by `average_gradients`."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(7, 8), torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 7)).double()
    weights = list(model.parameters())
    for _ in range(5):
        loss = F.cross_entropy(model(tokens), targets, ignore_index=-100)
        gradients = average_gradients(worker, list(torch.autograd.grad(loss, weights)), int((targets != -100).sum()))
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= 0.5 * gradient
    return [weight.detach() for weight in weights]


tokens, targets = torch.arange(12) % 7, (3 * torch.arange(12) + 1) % 7
targets[7:] = -100  # padding: the second half has one target
with suppress(NotImplementedError):  # until Exercise 4 is solved
    (alone,) = simulate(train, [tokens], [targets], collectives=True).results
    first, second = together(train, list(tokens.chunk(2)), list(targets.chunk(2))).results
    print("both copies are equal to the last bit:   ", all(map(torch.equal, first, second)))
    print("equal to one process, to 12 digits:      ", all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(alone, first, strict=True)))

# %% [markdown]
# What does it cost? A model of $N$ parameters computes $6N$ FLOPs per token (notebook 15), and sends $2 \cdot 2N$ bytes of gradients in bf16, since $2(n-1)/n \approx 2$.

# %%
predict("bigger_model_slower_sync")

# %%
PEAK = 989.4e12  # FLOP/s of an H100 in bf16
for link, bandwidth in (("NVLink, 450 GB/s", 450e9), ("network, 50 GB/s", 50e9)):
    tokens_to_hide = (2 * 2 / bandwidth) / (6 / PEAK)  # N cancels
    print(f"{link}: sending hides behind computing from {tokens_to_hide:,.0f} tokens per device on")

# %% [markdown]
# The gradients of the last layers are ready first, so they can travel while the others are still being computed. That is what DDP does, in *buckets* of some 25 MB: one collective for many tensors, as in your exercise. What is left to hide, if anything, are the tokens: too few of them per device, and the wire decides.
#
# ## 5 · Nobody needs a copy of everything
#
# Data parallelism has a memory problem: every device keeps all weights, all gradients, and all of the optimiser. Rajbhandari et al. (2020) asked what an all-reduce really is. After the reduce-scatter each worker knows the gradient of *its share* of the weights. Instead of gathering gradients, let it take the optimiser's step for that share, and gather *weights*.

# %%
predict("zero_one")

# %%
llama = find_model("llama-3-8b").decoder
parameters, recipe = count_parameters(llama).total, find_recipe("mixed")
for stage, name in enumerate(("nothing divided", "optimiser", "and gradients", "and weights")):
    layout = Layout(data=8, zero=stage)
    memory, traffic = state_memory(parameters, recipe, layout).total, data_parallel_traffic(parameters, recipe, layout).total
    print(f"ZeRO {stage}  {name:16} {memory / 1e9:6.1f} GB on each device, {traffic / 1e9:.1f} GB sent per step")

# %% [markdown]
# Stage 1 is free. Stage 3, which torch calls **FSDP** (*fully sharded data parallel*), gathers each layer's weights just before it is computed and forgets them afterwards, forward and again backward: half as many bytes again, for an eighth of the memory.
#
# > **Spot the slip.** "ZeRO is a form of model parallelism." Each device still computes *every* layer, for its own texts. Nothing of the computation is divided; only who keeps what.

# %% [markdown]
# ### Exercise 5 · A sharded step  (3 points · 10 min · ●●)
#
# SGD with momentum: `momentum ← beta · momentum + gradient`, then `weights ← weights − rate · momentum`. Every worker has all $n$ weights (the same) and a gradient of its own, but only its **share** of the momentum: the $r$-th of $N$ equal parts. The gradient that counts is the sum of all. Return all the new weights and the new share of the momentum, on every worker, and send no more than one reduce-scatter and one all-gather do.


# %% exercise="sharded_step"
def sharded_step(
    worker: CollectiveWorker,
    weights: Float[Tensor, "n"],
    gradient: Float[Tensor, "n"],
    momentum: Float[Tensor, "m"],
    rate: float,
    beta: float,
) -> tuple[Float[Tensor, "n"], Float[Tensor, "m"]]:
    """All weights after a step, and this worker's share of the momentum."""
    ### BEGIN SOLUTION
    momentum = beta * momentum + worker.reduce_scatter(gradient)
    share = weights.chunk(worker.size)[worker.rank] - rate * momentum
    return worker.all_gather(share), momentum
    ### END SOLUTION


# %% check="sharded_step"
check(sharded_step)
### BEGIN HIDDEN TESTS
check(sharded_step, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 6 · Cut the matrices
#
# Data parallelism needs a text per device. To compute *one* token faster, or to hold activations that do not fit, the products themselves must be cut: **tensor parallelism** (Shoeybi et al., 2019). By hand, with two hidden features and two workers:
#
# $$x = (1, 2),\quad U = \begin{pmatrix}1&1\\1&-1\end{pmatrix},\quad D = \begin{pmatrix}1&2\\3&4\end{pmatrix}, \qquad y = \text{ReLU}(x\,U^\top)\,D^\top$$
#
# Together: $x U^\top = (3, -1)$, ReLU gives $(3, 0)$, and $y = (3, 9)$. Now worker 0 gets the first *row* of $U$ and the first *column* of $D$: hidden feature 3, result $3 \cdot (1, 3) = (3, 9)$. Worker 1: hidden feature $-1$, ReLU 0, result $(0, 0)$. The **sum** is $(3, 9)$.
#
# So: *outputs first, then inputs.* The first matrix is cut along its outputs, so that each hidden feature lives on one worker, entirely; the second along its inputs, so that the parts add up. Could it be the other way round?

# %%
predict("rows_first")

# %%
torch.manual_seed(0)
x, U, D = torch.randn(5, 8).double(), torch.randn(32, 8).double(), torch.randn(8, 32).double()
y = F.gelu(x @ U.T) @ D.T
outputs_first = sum(F.gelu(x @ u.T) @ d.T for u, d in zip(U.chunk(2), D.chunk(2, dim=1), strict=True))
inputs = zip(x.chunk(2, dim=1), U.chunk(2, dim=1), strict=True)
inputs_first = sum(F.gelu(part @ u.T) for part, u in inputs) @ D.T
print(f"outputs first: wrong by less than 10⁻¹²: {(outputs_first - y).abs().max().item() < 1e-12}")
print(f"inputs first:  wrong by more than 1:     {(inputs_first - y).abs().max().item() > 1}")

# %%
explore(figures.shard_map, devices=[2, 4, 8])

# %% [markdown]
# Forward there is one all-reduce, at the end. And backward? In the paper's words, two operators stand around the pair of matrices: $g$ behind it (all-reduce forward, nothing backward), and $f$ in front of it (nothing forward, and backward …?).
#
# > **Spot the slip.** Lecture notes on this: "no AllReduce is needed for the backwards pass". For which of the two matrices is that true?

# %% [markdown]
# ### Exercise 6 · A feed-forward layer, forward and backward  (4 points · 12 min · ●●●)
#
# The whole layer is $y = \text{GELU}(x\,U^\top)\,D^\top$ with the exact GELU (`F.gelu`). `up` and `down` are this worker's shares of $U$ (F, d) and $D$ (d, F): $f = F/T$ of the hidden features. $x$ and $\partial L/\partial y$ = `dy` are the same everywhere. Return $y$ and $\partial L/\partial x$ of the **whole** layer, on every worker, with two all-reduces of (t, d) and nothing else. Autograd may do what stays on one worker (messages carry no graph).


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
check(tensor_parallel_ffn)
### BEGIN HIDDEN TESTS
check(tensor_parallel_ffn, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# So $f$ is the all-reduce of the backward pass. Both halves of a block are cut like this (the next section cuts the heads):

# %%
explore(figures.tensor_parallel_block, direction=list(figures.DIRECTIONS))

# %% [markdown]
# One all-reduce forward, one backward, in each half of a block. The notes are right about the second matrix: everybody has $\partial L/\partial y$, so everybody can go on alone. They forget $x$, which all workers read. (In the same place they give the partial result the width $E\,A/T$. A sum of parts has the full width $D$, whatever $T$ is.)

# %% [markdown]
# ## 7 · Cut the heads
#
# Attention is cut already: into heads, which know nothing of each other until the output matrix. `qkv` produces them (outputs first), `out` reads them (then inputs). Each worker computes the attention of its own heads, softmax and all, without a word to anybody.
#
# > **Spot the slip.** The same notes: the heads' results are obtained by "concatenating together each such result (via AllReduce)". With two heads $u_1, u_2$ and $O = (O_1\ O_2)$, is the layer's output $(u_1 O_1^\top,\ u_2 O_2^\top)$, side by side, or $u_1 O_1^\top + u_2 O_2^\top$?

# %%
u, out_matrix = torch.randn(5, 8).double(), torch.randn(8, 8).double()
parts = [half @ columns.T for half, columns in zip(u.chunk(2, dim=1), out_matrix.chunk(2, dim=1), strict=True)]
print("the whole layer:", tuple((u @ out_matrix.T).shape))
print("the parts side by side:", tuple(torch.cat(parts, dim=1).shape))
print("the parts added:", tuple(sum(parts).shape), " equal to the layer:", torch.allclose(sum(parts), u @ out_matrix.T))

# %% [markdown]
# ### Exercise 7 · Cut the heads  (3 points · 9 min · ●●)
#
# Causal self-attention without biases and positions. `qkv` (3 · heads · d_head, d) has this worker's rows: the queries of all its `heads`, then their keys, then their values. `out` (d, heads · d_head) has the columns of the output matrix that belong to them. Return the output of the **whole** layer with one all-reduce.


# %% exercise="tensor_parallel_attention"
def tensor_parallel_attention(
    worker: CollectiveWorker, x: Float[Tensor, "t d"], qkv: Float[Tensor, "n d"], out: Float[Tensor, "d m"], heads: int
) -> Float[Tensor, "t d"]:
    """The output of attention with the heads of all workers, on every worker."""
    ### BEGIN SOLUTION
    q, k, v = (part.unflatten(1, (heads, -1)).transpose(0, 1) for part in (x @ qkv.T).chunk(3, dim=1))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return worker.all_reduce(mixed.transpose(0, 1).flatten(1) @ out.T)
    ### END SOLUTION


# %% check="tensor_parallel_attention"
check(tensor_parallel_attention)
### BEGIN HIDDEN TESTS
check(tensor_parallel_attention, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# What if there are more devices than key heads? Llama 3 has 8 of them. With $T = 16$ two devices would need the same key head, and each would keep a copy. Exercise 12 forbids it.

# %% [markdown]
# ## 8 · Cut the vocabulary
#
# The head is the widest matrix of all: 128,256 outputs in Llama 3. Cut along the vocabulary, worker $r$ has the logits of its own tokens, $r\,v$ to $(r+1)\,v - 1$. And then comes a softmax over *all* of them. To gather the logits is dear:

# %%
vocab, length, devices = llama.vocab_size, 8192, 8
logits = all_gather_bytes(2 * length * vocab, devices)  # bf16
scalars = all_reduce_bytes(3 * 4 * length, devices)  # three numbers of fp32 a token
print(f"a device sends {logits / 1e9:.2f} GB of logits, or {scalars / 1e6:.2f} MB of three numbers a token")

# %% [markdown]
# > **Spot the slip.** Notes propose that each worker "computes its own loss where possible", from its own part of the logits, and that the others ignore the token. Two workers, six tokens, a vocabulary of ten:

# %%
generator = torch.Generator().manual_seed(0)
logits, targets = torch.randn(6, 10, generator=generator).double(), torch.tensor([0, 7, 4, 5, 9, 2])
right = F.cross_entropy(logits, targets).item()
own = [F.cross_entropy(logits[i, 5 * (t // 5) : 5 * (t // 5) + 5][None], t[None] % 5) for i, t in enumerate(targets)]
print(f"cross-entropy {right:.4f}, with each worker's own softmax {torch.stack(own).mean().item():.4f}")

# %% [markdown]
# Much too good: each worker thinks that its part of the vocabulary is all there is. Which three small numbers per token must travel?

# %% [markdown]
# ### Exercise 8 · Cross-entropy in parts  (4 points · 12 min · ●●●)
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
check(vocabulary_parallel_loss)
### BEGIN HIDDEN TESTS
check(vocabulary_parallel_loss, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 9 · Cut the tokens between
#
# Between the cut matrices lie norms, residual additions and dropout. Tensor parallelism leaves them **whole on every device**: each of the $T$ devices normalises all tokens, and keeps what backward needs. Of the 34 bytes that a block keeps per token and feature (notebook 14), those are 10.

# %%
figures.kept_per_device()

# %% [markdown]
# But all these operations look at *one token at a time*. So cut the tokens (Korthikanti et al., 2022): each device normalises and keeps $1/T$ of them. Before the matrices all tokens are needed: all-gather. After them each device needs the sum, of its own tokens only. That is …?

# %%
predict("sequence_parallel_traffic")

# %% [markdown]
# ### Exercise 9 · Cut the tokens between  (2 points · 8 min · ●●)
#
# The half block $x + \text{FFN}(N(x))$ with $N(x) = x / \sqrt{\text{mean of squares} + 10^{-6}}$ (an RMSNorm without a scale) and the feed-forward layer of Exercise 6. `x` is this worker's share of the tokens, `up` and `down` its share of the features. Return this worker's tokens after the half block. Two collectives, which together send as much as one all-reduce.


# %% exercise="sequence_parallel_ffn"
def sequence_parallel_ffn(
    worker: CollectiveWorker, x: Float[Tensor, "t d"], up: Float[Tensor, "f d"], down: Float[Tensor, "d f"]
) -> Float[Tensor, "t d"]:
    """This worker's tokens after x + FFN(norm(x))."""
    ### BEGIN SOLUTION
    normed = x / (x.square().mean(dim=1, keepdim=True) + 1e-6).sqrt()
    part = F.gelu(worker.all_gather(normed) @ up.T) @ down.T
    return x + worker.reduce_scatter(part)
    ### END SOLUTION


# %% check="sequence_parallel_ffn"
check(sequence_parallel_ffn)
### BEGIN HIDDEN TESTS
check(sequence_parallel_ffn, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Counted, on two workers with eight tokens of 32 features in fp32, a half block each way:

# %%
torch.manual_seed(0)
x, up, down = torch.randn(8, 32), torch.randn(64, 32), torch.randn(32, 64)
ups, downs = list(up.chunk(2)), list(down.chunk(2, dim=1))
tensor_only = simulate(lambda worker, u, d: worker.all_reduce(F.gelu(x @ u.T) @ d.T), ups, downs, collectives=True)
with suppress(NotImplementedError):  # until Exercise 9 is solved
    sequence = simulate(sequence_parallel_ffn, list(x.chunk(2)), ups, downs, collectives=True)
    print("bytes sent, forward: tensor parallelism", tensor_only.sent, "  with sequence parallelism", sequence.sent)

# %% [markdown]
# Not a byte more. Backward there is one thing to pay for: the gathered input was not kept, so it has to be gathered again. For Llama 3 8B, one text of 8,192 tokens, $T = 8$:

# %%
for sequence_parallel in (False, True):
    traffic = tensor_parallel_traffic(llama, 1, 8192, 8, sequence_parallel=sequence_parallel)
    print(f"sequence parallelism {sequence_parallel!s:5}:", ", ".join(f"{part} {size / 1e9:.1f} GB" for part, size in traffic))

# %% [markdown]
# > **Spot the slip.** Notes count the FLOPs of a device with "the parameters, reduced by tensor- and sequence-parallelism". Which of the two divides a parameter?

# %% [markdown]
# ## 10 · Cut the layers
#
# The simplest cut of all, and the one that our sources leave as an empty heading: the first layers here, the next ones there. Between two **stages** travel only the activations of one layer, so this cut may run over the slowest wire. But a stage waits for the one before it, and in the backward pass for the one behind it. With one batch, $p - 1$ of $p$ devices are always idle.
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
# This is **GPipe** (Huang et al., 2019): all forwards, then all backwards. Its price is memory: at the turning point a stage keeps the activations of all $m$ micro-batches. But look at stage 2: it could start the backward pass of micro-batch 0 right at time 3. **1F1B** (*one forward, one backward*, Narayanan et al., 2021) does that: each stage starts just as many micro-batches as are needed to bridge the way to the end and back, and then does a backward and a forward in turns.

# %% [markdown]
# ### Exercise 10 · Who does what when?  (3 points · 12 min · ●●●)
#
# Return the order in which stage `rank` of `stages` works off `micro` micro-batches: `"F0"` is the forward pass of the first one, `"B0"` its backward pass. Both kinds go through the micro-batches in order.
#
# - `"gpipe"`: all forwards, then all backwards.
# - `"1f1b"`: a stage starts only as many micro-batches as it needs for the gradient of the first one to come back without a pause. From then on each backward makes room for one more forward.
#
# For another schedule, a rank that is not there, or fewer than one micro-batch raise `ValueError`.


# %% exercise="stage_order"
def stage_order(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    """What one stage of a pipeline does, in order: ["F0", "B0"] for one micro-batch."""
    ### BEGIN SOLUTION
    if schedule not in ("gpipe", "1f1b") or not 0 <= rank < stages or micro < 1:
        raise ValueError(f"no stage {rank} of {stages} works off {micro} micro-batches by {schedule!r}")
    alive = micro if schedule == "gpipe" else min(stages - rank, micro)
    order = [f"F{i}" for i in range(alive)]
    for i in range(micro):
        order.append(f"B{i}")
        if i + alive < micro:
            order.append(f"F{i + alive}")
    return order
    ### END SOLUTION


# %% check="stage_order"
check(stage_order)
### BEGIN HIDDEN TESTS
check(stage_order, hidden=True)
### END HIDDEN TESTS

# %%
predict("bubble_of_1f1b")

# %% [markdown]
# Your orders decide who waits for whom; a small event simulation does the rest. (A stage starts a pass as soon as it is its turn, and what it needs has arrived.)

# %%
with suppress(NotImplementedError):  # until Exercise 10 is solved
    for micro in (4, 32):
        for schedule in ("gpipe", "1f1b"):
            orders = [stage_order(rank, 4, micro, schedule) for rank in range(4)]
            passes = run_pipeline(orders, forward=1, backward=2)
            alive = [max_alive(order) for order in orders]
            print(f"{schedule:5} 4 stages, {micro:2} micro-batches: {max(task.end for task in passes):3g} units of time, {idle_share(passes, 4):.1%} waiting, alive {alive}")

# %%
explore(figures.pipeline_schedule, stages=(2, 8), micro=(1, 32), schedule=["gpipe", "1f1b"], backward=(1.0, 3.0))

# %% [markdown]
# Drag `micro` and switch between the two. The bars move; the title's percentage does not:
#
# $$\text{share of waiting} = \frac{p-1}{m+p-1}$$
#
# for both schedules, and whatever a backward pass takes. What 1F1B changes is the line below: stage $r$ keeps at most $p - r$ micro-batches instead of $m$. And because memory no longer grows with $m$, you can afford more of them, and *that* shrinks the bubble.

# %%
figures.bubble()

# %% [markdown]
# ## 11 · Which cut for which machine?
#
# | cut | what travels | how often | divides |
# | --- | --- | --- | --- |
# | texts (data) | gradients, 2 bytes · N | once a step, can hide | nothing; with ZeRO the state |
# | matrices (tensor) | activations of all tokens | 4 times a block, nothing hides it | weights, state, most activations |
# | tokens (sequence) | the same bytes | with tensor parallelism | the rest of the activations |
# | layers (pipeline) | activations at a border | once per border and micro-batch | weights, state |
#
# Tensor parallelism talks most. When is that too much?

# %% [markdown]
# ### Exercise 11 · On the wire  (1 point · 5 min · ●●)
#
# In a forward pass through a block of $12\,d^2$ weights (without the scores of attention), $T$ devices that do tensor parallelism send two ring all-reduces of their tokens in bf16. Return the time on the wire divided by the time of arithmetic, at `peak` FLOP/s per device and `bandwidth` bytes per second that a device can send.


# %% exercise="tensor_share"
def tensor_share(d_model: int, devices: int, peak: float, bandwidth: float) -> float:
    """Time on the wire over time of arithmetic, in the forward pass of a block."""
    ### BEGIN SOLUTION
    sent = 2 * 2 * (devices - 1) / devices * 2 * d_model
    flops = 2 * 12 * d_model**2 / devices
    return (sent / bandwidth) / (flops / peak)
    ### END SOLUTION


# %% check="tensor_share"
check(tensor_share)
### BEGIN HIDDEN TESTS
check(tensor_share, hidden=True)
### END HIDDEN TESTS

# %%
links = {"NVLink, 450 GB/s": 450e9, "PCIe 5, 64 GB/s": 64e9, "network, 50 GB/s": 50e9}
with suppress(NotImplementedError):  # until Exercise 11 is solved
    for d in (4096, 16384):
        print(f"d = {d:6,}, T = 8:", ", ".join(f"{name} {tensor_share(d, 8, PEAK, b):.0%}" for name, b in links.items()))

# %%
figures.link_speeds(16384, PEAK, links)

# %% [markdown]
# The width is in the denominator: arithmetic grows with $d^2$, what travels with $d$. Wide models can be cut; deep and narrow ones cannot. And over a network the devices would spend most of their time on the wire. So **tensor parallelism stays inside a machine; pipeline and data go outside.**

# %% [markdown]
# ### Exercise 12 · All layouts  (2 points · 8 min · ●●)
#
# Return all triples `[data, tensor, pipeline]` whose product is `devices`, sorted, such that
#
# - `tensor` divides the devices of a machine (`per_machine`), so that no group spans two, and divides the key heads;
# - every stage of the pipeline has a layer;
# - a device's part of the state fits: without ZeRO it is `needed` / (tensor · pipeline), and at most `memory`.


# %% exercise="layouts"
def layouts(
    devices: int, per_machine: int, layers: int, kv_heads: int, needed: float, memory: float
) -> list[list[int]]:
    """All ways [data, tensor, pipeline] to lay a model out on a cluster."""
    ### BEGIN SOLUTION
    found = []
    for data in range(1, devices + 1):
        for tensor in range(1, per_machine + 1):
            pipeline, rest = divmod(devices, data * tensor)
            cut = rest == per_machine % tensor == kv_heads % tensor == 0
            if cut and pipeline <= layers and needed <= memory * tensor * pipeline:
                found.append([data, tensor, pipeline])
    return found
    ### END SOLUTION


# %% check="layouts"
check(layouts)
### BEGIN HIDDEN TESTS
check(layouts, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.layout_budget, data=[1, 2, 4, 8, 16], tensor=[1, 2, 4, 8], pipeline=[1, 2, 4, 8, 16], zero=[0, 1, 2, 3], link=list(figures.LINKS), model=list(figures.MODELS))

# %% [markdown]
# Last, the real thing, with torch's own tools: the course's trainer makes a **device mesh** (a grid of processes with an axis for each kind of parallelism), and `torch.distributed.tensor` cuts the matrices by a plan that is your section 6 and 7 in a dictionary (`lmcourse/training/parallel/tensor_parallel.py`). Two processes, each with half of every matrix, against one:

# %%
def first_losses(worker: CollectiveWorker, tokens: Tensor) -> list[float]:
    """Losses of five steps of a small transformer, its matrices cut among the workers."""
    parallel = Parallelism(tensor_parallel=worker.size)
    model = Transformer(modern(2, 32, 4, 64))
    torch.manual_seed(0)
    initialize(model)
    called = model
    if worker.size > 1:
        from lmcourse.training.parallel.parallelize import make_mesh, parallelize

        _, called = parallelize(model, TrainingConfig(steps=5, batch=8, seq_len=32, parallel=parallel), make_mesh(parallel, "cpu"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, foreach=False)
    losses = []
    for _ in range(5):
        loss = next_token_loss(called(tokens[:, :-1]), tokens[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


tokens = torch.randint(256, (8, 33), generator=torch.Generator().manual_seed(0))
(one,) = simulate(first_losses, [tokens], collectives=True).results
two, other = together(first_losses, [tokens] * 2).results
print("it learns:", one[-1] < one[0], "  both processes say the same:", two == other)
print("as one process, to 10⁻⁴:", max(abs(a - b) for a, b in zip(one, two, strict=True)) < 1e-4)

# %% [markdown]
# `lmcourse train --tensor-parallel 2` under `torchrun` is the same with everything around it: data, checkpoints, the rest of the mesh.
#
# **In real models.**
#
# | model | layout | source |
# | --- | --- | --- |
# | Llama 3 405B | tensor 8, pipeline 16, and 64 or 128 copies (FSDP) on 8,192 and 16,384 H100s: 430 and 400 TFLOP/s each, 43 and 40 % of their peak (the paper prints 43 and 41) | Llama Team, 2024, table 4 |
# | the same, texts of 131,072 tokens | tensor 8, *context* 16, pipeline 16, 8 copies: 380 TFLOP/s | the same table |
# | Megatron's 530B and 1T | tensor 8 within a machine, sequence parallelism, pipelines of 35 and 64 | Korthikanti et al., 2022, table 3 |
# | DeepSeek-V3 | no tensor parallelism at all: pipeline 16, experts 64, ZeRO 1 | DeepSeek-AI, 2024, section 3.2 |
#
# Each is a way to spend wires: the fast ones inside a machine on what talks most, the slow ones on what talks least.
#
# ## What to keep
#
# | collective | each sends, of $M$ bytes | is |
# | --- | --- | --- |
# | reduce-scatter | $(N-1)/N \cdot M$ | the backward pass of all-gather |
# | all-gather | $(N-1)/N \cdot M$ | the backward pass of reduce-scatter |
# | all-reduce | $2(N-1)/N \cdot M$ | the two in a row |
#
# | cut | remember |
# | --- | --- |
# | any | everybody runs the same program; deadlocks come from orders that look right line by line |
# | texts | gradients are averaged over *targets*, not over workers |
# | state | ZeRO 1 is free, because an all-reduce has a middle |
# | matrices, heads | outputs first, then inputs: one all-reduce forward, one backward; parts are *added* |
# | vocabulary | the maximum, Σ exp and one logit from everybody |
# | tokens between | no byte more forward, one all-gather more backward |
# | layers | the bubble is $(p-1)/(m+p-1)$; 1F1B saves memory, not time |
#
# ## Check yourself
#
# 1. Eight workers hold 1 GB each. What does each send in an all-reduce, and in a broadcast by a tree? Who sends most?
# 2. Why can ZeRO 1 save memory without sending a byte more, and ZeRO 3 not?
# 3. A SwiGLU layer has a second matrix beside `up`. Which axis of it is cut, and how many all-reduces are there now?
# 4. Which norm must be divided by heads, and not by tokens? (Think of QK-norm, notebook 16.)
# 5. Your pipeline idles 20 % of its time with 8 stages. How many micro-batches has it? And how many would make it 5 %?
# 6. A colleague lays tensor parallelism of 16 over two machines "because it fits". What do you ask first?
#
# ### Slips
#
# What sources of this notebook say, and what is right: partial results of width $E A/T$ (full width $D$) · "no AllReduce is needed for the backwards pass" (one for the first matrix) · heads' results "concatenated via AllReduce" (summed) · each worker "computes its own loss" (maximum and Σ exp of all) · parameters "reduced by … sequence-parallelism" (it cuts activations) · shares of features numbered $t\,EH/T$ to $(t+1)\,EH/T$ *inclusive* (the end belongs to the next one: $(t+1)\,ED/T - 1$) · pipeline parallelism, a heading without a text (section 10).
#
# ## Further reading
#
# - Patarasuk & Yuan (2009), *Bandwidth optimal all-reduce algorithms*; Rajbhandari et al. (2020), *ZeRO*.
# - Shoeybi et al. (2019), *Megatron-LM*; Korthikanti et al. (2022), *Reducing activation recomputation in large transformer models*.
# - Huang et al. (2019), *GPipe*; Narayanan et al. (2021), *Efficient large-scale language model training on GPU clusters*.
# - Austin et al. (2025), *How to scale your model*, chapter 5. In `lmcourse/training/parallel` is what the trainer uses.

# %% tags=["hide-input"]
assert simulate(through_rank_0, [twelve] * 8).sent[0] == 672
assert [2 * (n - 1) / n * 96 for n in (2, 4, 8)] == [96, 144, 168]
assert f"{all_reduce_bytes(1, 8):.2f} {all_reduce_bytes(1, 1000):.3f}" == "1.75 1.998"
assert f"{pipeline_bubble_fraction(4, 4):.1%} {pipeline_bubble_fraction(4, 32):.1%}" == "42.9% 8.6%"
assert (3 * 2 + 1 * 6) / 4 == 3
assert llama.vocab_size == 128_256
by_hand = run_pipeline(pipeline_orders(3, 2, "gpipe"), 1, 2)
assert {(t.stage, t.name): t.start for t in by_hand if t.stage != 1} == {
    (0, "F0"): 0, (0, "F1"): 1, (0, "B0"): 8, (0, "B1"): 10, (2, "F0"): 2, (2, "F1"): 3, (2, "B0"): 4, (2, "B1"): 6,
}  # fmt: skip
assert f"{430 / 989.4:.0%} {400 / 989.4:.0%}" == "43% 40%"
