# %% [markdown]
# # 14 · Memory
#
# **Core · 90 min · 7 exercises · 22 points** · **Further · 72 min · 4 exercises · 11 points**
#
# *What is in memory at the worst moment, and how do you get it out?*
#
# GPT-3's parameters take 325 GiB in 16 bits: five cards (GPUs) of 80 GiB. Training it on a single text takes forty (Further F adds them up). What is all the rest?
#
# At the end you take over a training script that dies. You find its five leaks, and redesign the step until it fits into a quarter of the memory, with the same losses.
#
# **You will be able to** predict what training keeps, say to the byte what autograd keeps, and measure the *peak* of a step.
#
# **You need** the transformer's parts (notebooks 08 to 12) and the backward pass (03). No GPU.
#
# Stuck in an exercise? `hint("its_name")`.

# %%
import math
from collections import Counter
from inspect import getsource
from itertools import accumulate, chain

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lmcourse.accounting.live import memory_events
from lmcourse.accounting.saved import saved_tensors
from lmcourse.chapters.memory import figures
from lmcourse.chapters.memory.out_of_memory import leaky_training, record
from lmcourse.chapters.memory.small_model import Block, SmallModel, block_alone, measured_step
from lmcourse.notebook import check, explore, hint, predict, start, your

start("14-memory")

# %% [markdown]
# ## 1 · Four things to keep
#
# A training step keeps four things in memory. What reads them later?
#
# | what | read by | depends on |
# | --- | --- | --- |
# | **parameters** | every forward and backward pass | the model |
# | **gradients**, one per parameter | the optimizer | the model |
# | **optimizer state**, such as Adam's two moments | the next step | the model, the optimizer |
# | **activations**: what the forward pass leaves behind | the backward pass | the model *and the batch* |
#
# The first three are the **states**: they stay from step to step. Activations come and go with each batch.
#
# Count a tiny model: two linear layers of $4 \times 4$ and a last one of $4 \times 1$, no biases, so $2 \cdot 16 + 4 = 36$ parameters. Two examples go in, and each of the first two layers leaves $2 \cdot 4 = 8$ numbers: 16 activations. The optimizer is AdaGrad, which keeps one number for each parameter.

# %%
predict("linear_model_memory")

# %%
model = nn.Sequential(*(nn.Linear(4, width, bias=False) for width in (4, 4, 1)))
optimizer, x = torch.optim.Adagrad(model.parameters()), torch.ones(2, 4)
activations = saved_tensors(lambda: model(x).mean(), model, without=[x]).total
model(x).mean().backward()
optimizer.step()
parameters, gradients = (sum(w.nbytes for w in each) for each in zip(*((w, w.grad) for w in model.parameters()), strict=True))
kept = sum(state["sum"].nbytes for state in optimizer.state.values())
print(f"{parameters} + {gradients} + {kept} + {activations} = {parameters + gradients + kept + activations} bytes")

# %% [markdown]
# Every count in this notebook is *numbers × bytes per number*. The letters: $B$ texts in a batch, $S$ tokens of a text, $D$ the width of the model, $A$ heads, $V$ words of the vocabulary, and $p$ bytes per number.
#
# ## 2 · What a parameter costs
#
# A parameter has a gradient, and Adam keeps two moments for it (Kingma and Ba, 2015). In **fp32**:

# %%
layer = nn.Linear(1000, 1000, bias=False)
optimizer = torch.optim.AdamW(layer.parameters())
layer(torch.ones(1, 1000)).sum().backward()
optimizer.step()
w = layer.weight
for part, tensors in {"weights": [w], "gradients": [w.grad], "moments": optimizer.state[w].values()}.items():
    print(f"{part:<10} {sum(t.nbytes for t in tensors if t.shape == w.shape) / w.numel():g} bytes per parameter")

# %% [markdown]
# **Mixed precision** multiplies in 16 bits (notebook 13). You might hope for half of that.

# %%
predict("mixed_states")

# %% [markdown]
# Small updates vanish in 16 bits (notebook 01), so the optimizer updates an fp32 copy, the **master weights**. Gradients are usually summed in fp32, too.

# %% [markdown]
# ### Exercise 1 · Bytes of the states  (2 points · 5 min · ●●)
#
# Return a dict with the bytes of `weights`, `gradients` and `optimizer`. Master weights belong to the optimizer. (In this notebook a whole number may be a float.)
#
# | `precision` | |
# | --- | --- |
# | `"fp32"` | everything in fp32 |
# | `"mixed"` | as above: products in 16 bits, gradients in fp32, master weights |
# | `"mixed-16-bit-gradients"` | the same, but gradients stay in 16 bits |
# | `"inference"` | a model in 16 bits that is not trained, so the optimizer keeps nothing |
#
# `optimizer` is `"sgd"`, which keeps nothing, or `"adamw"`, which keeps two averages of every parameter, in fp32.

# %% exercise="state_bytes"
def state_bytes(parameters: int, precision: str, optimizer: str = "adamw") -> dict[str, int]:
    """Bytes that stay from step to step: 4, 4 and 8 for one parameter in fp32 with AdamW."""
    ### BEGIN SOLUTION
    weights, gradients, kept = {
        "fp32": (4, 4, 0),
        "mixed": (2, 4, 4),
        "mixed-16-bit-gradients": (2, 2, 4),
        "inference": (2, 0, 0),
    }[precision]
    if optimizer == "adamw" and precision != "inference":
        kept += 8
    return {"weights": weights * parameters, "gradients": gradients * parameters, "optimizer": kept * parameters}
    ### END SOLUTION


# %% check="state_bytes"

# %%
with your("state_bytes"):
    states = {name: sum(state_bytes(174_600_000_000, name).values()) for name in ("inference", "fp32", "mixed")}
for name, size in states.items():
    cards, largest = math.ceil(size / 2**30 / 80), 640e9 / size * 174.6
    print(f"GPT-3, {name:<10} {size / 2**30:6,.0f} GiB, {cards:2} cards of 80 GiB; 8 cards of 80 GB hold {largest:5.1f} billion parameters")

# %% [markdown]
# In mixed precision a parameter takes $2 + 4 + 4 + 8 = 18$ bytes, and the optimizer six times as much as the 16-bit weights. With gradients in 16 bits it is 16 (Rajbhandari et al., 2020, §3.1); in all notebooks *mixed precision* means 18. (GB are $10^9$ bytes, GiB $2^{30}$, 7.4 % more.) No activation is in there yet.
#
# ## 3 · What does a backward pass need?
#
# Autograd keeps a tensor if some backward step will read it. Which numbers does the derivative of an operation need?

# %%
predict("keeps_nothing")

# %% [markdown]
# Take $x$ with $2 \cdot 3 \cdot 4 = 24$ numbers in fp32, 96 bytes. `saved_tensors` counts what autograd keeps; you will write your own in section 5.

# %%
x, y = torch.ones(2, 3, 4, requires_grad=True), torch.ones(2, 3, 4, requires_grad=True)
mask, linear = torch.ones(2, 3, 4, dtype=torch.bool), nn.Linear(4, 16)
operations = {
    "x + y": (lambda: x + y, "nothing"),
    "x · y": (lambda: x * y, "both: each is the other's derivative"),
    "ReLU(x)": (lambda: x.relu(), "its result: where was it positive?"),
    "GELU(x)": (lambda: F.gelu(x), "its input"),
    "softmax(x)": (lambda: x.softmax(-1), "its result"),
    "LayerNorm(x)": (lambda: F.layer_norm(x, (4,)), "its input, and a mean and a spread per token"),
    "linear(x)": (lambda: linear(x), "its input, whatever the width of the result"),
    "x · mask": (lambda: x * mask, "the mask, one byte per number"),
}
for name, (operation, what) in operations.items():
    print(f"{name:<13} {saved_tensors(operation, linear).total:>4} bytes   {what}")

# %% [markdown]
# Two rules follow. *Sums are free*: the residual stream itself keeps nothing. And *a product keeps its inputs, not its result*: what a layer returns is kept only if the next operation needs it.
#
# ## 4 · A layer
#
# Write down each tensor that a backward step of attention will read. Numbers take $p$ bytes; **dropout** multiplies by a mask, whose numbers take 1 byte in any precision. We count a layer as Korthikanti et al. (2022, §4.1) do: as many key heads as query heads, dropout on the weights and on the result, nothing fused.
#
# | operation | keeps | bytes |
# | --- | --- | --- |
# | $q, k, v = xW_q, xW_k, xW_v$ | their input, *once* for all three | $p \cdot BSD$ |
# | scores $q k^\top$ | $q$ and $k$ | $2p \cdot BSD$ |
# | division by $\sqrt{d}$ | nothing: its factor is a constant | 0 |
# | softmax | ? | ? |
# | dropout of the weights | ? | ? |
# | weights $\cdot\, v$ | ? | ? |
# | output matrix | ? | ? |
# | dropout of the result | ? | ? |
#
# There are two kinds of tensors: those with a number for each token and feature, $B \cdot S \cdot D$ (all heads together are $D$ wide), and the **scores**, with a number for each head and *pair* of tokens, $A \cdot B \cdot S^2$.

# %% [markdown]
# ### Exercise 2 · Activations of attention  (3 points · 7 min · ●●)
#
# Fill in the table, and add it up: return the bytes that one attention layer keeps, without its norm.

# %% exercise="attention_activations"
def attention_activations(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    """Bytes that attention keeps of B texts of S tokens: 16 for one token, one number wide, with one head."""
    ### BEGIN SOLUTION
    stream, pairs = B * S * D, A * B * S**2
    return (5 * p + 1) * stream + (2 * p + 1) * pairs
    ### END SOLUTION


# %% check="attention_activations"

# %% [markdown]
# The other half is shorter: $\text{dropout}(\text{down}(\text{GELU}(\text{up}(x))))$. The token vectors are $D$ wide, the hidden layer is $d_\text{ff}$ wide.

# %% [markdown]
# ### Exercise 3 · Activations of the feed-forward layer  (2 points · 4 min · ●●)
#
# Return the bytes that one feed-forward layer keeps, without its norm.

# %% exercise="mlp_activations"
def mlp_activations(B: int, S: int, D: int, d_ff: int, p: int = 2) -> int:
    """Bytes that a feed-forward layer keeps of B texts of S tokens: 19 for one token with D = 1 and d_ff = 4."""
    ### BEGIN SOLUTION
    return B * S * (p * D + 2 * p * d_ff + D)
    ### END SOLUTION


# %% check="mlp_activations"

# %% [markdown]
# Each of the two **norms** keeps its input, $p \cdot BSD$, and two numbers per token, which we leave out. With $d_\text{ff} = 4D$ and $p = 2$ a layer keeps $BS\,(34\,D + 5\,AS)$ bytes, the formula of Korthikanti et al. (2022, equation 1).
#
# > **Spot the slip.** For fp32, $p = 4$, a colleague writes $BS\,(66\,D + 15\,AS)$. One of the two coefficients does not follow from your functions. Which one?

# %%
predict("twice_the_length")

# %% [markdown]
# For short texts memory grows with the length, for long ones with its square. **Fused attention** removes the square: it never stores the scores, and computes them again in the backward pass (Dao et al., 2022).
#
# ## 5 · Predicted and measured
#
# Such formulas are easy to get wrong, so measure. This is a block as they assume it. (`drop` keeps a mask of one byte per number, as on a GPU.)

# %%
print(getsource(Block))

# %% [markdown]
# `torch.autograd.graph.saved_tensors_hooks(pack, unpack)` (notebook 03) calls `pack(tensor)` for each tensor that autograd keeps, and `unpack` when the backward pass needs it. Three things can go wrong when you add the sizes up. The same tensor may be kept twice, but its memory exists once. A kept tensor may be a *view*, and then the whole storage behind it stays alive. And some of the kept tensors are parameters, or views of them, which are in memory anyway.

# %% [markdown]
# ### Exercise 4 · Measure it  (4 points · 10 min · ●●●)
#
# Run `block(x)` and return how many bytes autograd keeps, by dtype: `{"torch.float32": ..., "torch.bool": ...}`. Count every storage once and as a whole, under the dtype of the tensor through which it was kept first. Leave out the block's parameters and buffers, and all views of their storage, such as the $W^\top$ of a linear layer, which is no `nn.Parameter`; a copy of a parameter has its own storage, and counts. The input `x` counts if it is kept. A block that keeps nothing gives `{}`. You build `saved_tensors` here, so do not use it.
#
# One warning: PyTorch uses an address again as soon as its tensor is gone. Keep the tensors that the hook gives you until you have counted them.

# %% exercise="measured_activations"
def measured_activations(block: nn.Module, x: Tensor) -> dict[str, int]:
    """Bytes that autograd keeps of block(x), by dtype."""
    ### BEGIN SOLUTION
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        block(x)
    seen = {tensor.untyped_storage().data_ptr() for tensor in (*block.parameters(), *block.buffers())}
    sizes: Counter[str] = Counter()
    for tensor in kept:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            sizes[str(tensor.dtype)] += storage.nbytes()
    return sizes
    ### END SOLUTION


# %% check="measured_activations"

# %% [markdown]
# Compare formulas and measurement. Then make the text four times as long, again and again:

# %%
D, A = 64, 4
with your("attention_activations", "mlp_activations", "measured_activations"):
    for dtype, p in ((torch.float32, 4), (torch.bfloat16, 2)):
        block, x = Block(D, A).to(dtype), torch.ones(2, 48, D, dtype=dtype, requires_grad=True)
        predicted = 2 * p * x.numel() + attention_activations(2, 48, D, A, p) + mlp_activations(2, 48, D, 4 * D, p)
        measured = sum(measured_activations(block, x).values())
        print(f"{dtype}: predicted {predicted:,} bytes, measured {measured:,}: {measured - predicted:,} more")
    block, sizes = Block(D, A), {}
    for S in (8, 32, 128, 512, 2048):
        sizes[S] = sum(measured_activations(block, torch.ones(1, S, D, requires_grad=True)).values())
        print(f"S = {S:>4}: {sizes[S]:>11,} bytes", f"× {sizes[S] / sizes[S // 4]:.1f}" if S > 8 else "")

# %% [markdown]
# Predicted equals measured, except for the mean and spread that each norm keeps per token. So it is 9, not 15. And the factor goes from near 4 towards 16: from $S$ to $S^2$.
#
# ## 6 · The peak
#
# A card runs out of memory at the worst moment, the **peak**, and a backward pass makes tensors of its own. PyTorch can record every allocation and every release. A release has a minus:

# %%
x = torch.ones(1000)  # 4000 bytes
print(memory_events(lambda: x.exp().sin().cos()))

# %% [markdown]
# Three results are allocated. How many are in memory at once?

# %% [markdown]
# ### Exercise 5 · Find the peak  (2 points · 5 min · ●)
#
# From the sizes of such a record, return two numbers: the most bytes in use at once, and the index of the event after which it is reached for the first time. The first event is an allocation. Later ones may release memory that was allocated before the record began.

# %% exercise="peak_and_moment"
def peak_and_moment(events: list[int]) -> tuple[int, int]:
    """The most bytes in use at once, and the index of the event that reaches it: (12, 1) for [8, 4, -8, -4]."""
    ### BEGIN SOLUTION
    in_use = list(accumulate(events))
    peak = max(in_use)
    return peak, in_use.index(peak)
    ### END SOLUTION


# %% check="peak_and_moment"

# %% [markdown]
# The last layer, the **head**, multiplies every token vector by a matrix with a row for each word of the vocabulary. Its result, the **logits**, has $B \cdot S \cdot V$ numbers. So has what the loss keeps.

# %%
predict("logits_in_a_variable")

# %% [markdown]
# Measure it: two blocks, a head for a vocabulary of 8192, one text of 512 tokens. `measured_step` records the three phases of a training step, by default without that variable.

# %%
S, V = 512, 8192
blocks, head = [Block(D, A), Block(D, A)], nn.Linear(D, V, bias=False)
x, y = torch.randn(1, S, D), torch.randint(V, (S,))
figures.memory_measured(measured_step(blocks, head, x, y), 4 * S * V)

# %% [markdown]
# How many copies of the logits are that, with and without the variable?

# %% tags=["nbval-ignore-output", "because other versions of torch keep other tensors"]
with your("peak_and_moment"):
    for keep in (False, True):
        forward, loss, backward = measured_step(blocks, head, x, y, keep_logits=keep)
        peak, moment = peak_and_moment([*forward, *loss, *backward])
        print(f"logits in a variable: {keep!s:<5}  {(peak - sum(forward)) / (4 * S * V):.2f} copies more than the blocks keep,")
        print(f"  at event {moment}; the backward pass begins at event {len(forward) + len(loss)}")

# %% [markdown]
# The peak comes at the very start of the backward pass, and most of it is the loss. When is that not so? **Recomputation** (Chen et al., 2016) keeps the input of each block only, and runs a block again when the backward pass arrives there: `checkpoint(block, h, use_reentrant=False)` in place of `block(h)`. In the table, `activations` is what the blocks keep until the backward pass, and `block` the most that one block uses alone, forward and backward. Which rule is behind the last column?

# %% tags=["nbval-ignore-output", "because other versions of torch keep other tensors"]
x, rows = torch.randn(1, 256, D), []
with your("peak_and_moment"):
    print("in MiB    V  recompute  variable  activations  block  one copy of the logits   peak")
    for V, recompute in ((4096, False), (4096, True), (128, True)):
        head, y = nn.Linear(D, V, bias=False), torch.randint(V, (256,))
        for keep in (False, True):
            phases = measured_step(blocks, head, x, y, recompute, keep)
            rows.append((sum(phases[0]), V, block_alone(blocks[0], x), recompute, keep, peak_and_moment([*chain(*phases)])[0]))
            kept, _, block, *_, peak = (size / 2**20 for size in rows[-1])
            print(f"{V:>11}  {recompute!s:<9}  {keep!s:<8}  {kept:11.2f} {block:6.2f} {4 * 256 * V / 2**20:23.2f} {peak:6.2f}")

# %% [markdown]
# ### Exercise 6 · Predict the peak  (3 points · 8 min · ●●●)
#
# Return the bytes in use at the peak of a step in fp32. `activations` and `block` are as above: what the blocks keep (with `recompute` only their inputs), and what one needs alone. With `keep_logits` a variable holds the logits until the end of the step. List the moments that can be the worst, and what is in memory at each. Take the largest. (Without recomputation, take the moment of the loss.)

# %% exercise="step_peak"
def step_peak(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    """The bytes that a step adds at its worst moment to weights, gradients and optimizer."""
    ### BEGIN SOLUTION
    logits = 4 * B * S * V
    worst = max(3 * logits, block) if recompute else 3 * logits
    return activations + worst + (logits if keep_logits else 0)
    ### END SOLUTION


# %% check="step_peak"

# %% tags=["nbval-ignore-output", "because other versions of torch keep other tensors"]
with your("step_peak"):
    for kept, V, block, recompute, keep, peak in rows:
        predicted = step_peak(kept, 1, 256, V, block, recompute, keep)
        print(f"V {V:>5}  predicted {predicted / 2**20:6.2f} MiB  measured {peak / 2**20:6.2f}  ratio {predicted / peak:.3f}")

# %% [markdown]
# At the loss, three tensors of $4\,BSV$ bytes are in memory: the log-probabilities that the loss has kept, their gradient, and the gradient of the logits. All are gone when the blocks' backward pass begins, so the peak is the larger of the two moments. So is the head's input, $4\,BSD$ bytes: the last two rows predict 1.3 % too much.
#
# The cure is to recompute the loss as well, a few rows at a time. Each chunk throws its logits away, and makes them again in the backward pass:

# %% tags=["nbval-ignore-output", "because other versions of torch keep other tensors"]
h, y, head = torch.randn(1024, D, requires_grad=True), torch.randint(8000, (1024,)), nn.Linear(D, 8000, bias=False)


def summed_loss(h: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(head(h), y, reduction="sum")


def loss_in_chunks(size: int) -> Tensor:
    chunks = zip(h.split(size), y.split(size), strict=True)
    return sum(checkpoint(summed_loss, *chunk, use_reentrant=False) for chunk in chunks) / len(h)


summed_loss(h, y).backward()  # allocates the gradients of h and the head
for size in (1024, 256, 64):
    events = memory_events(lambda size=size: loss_in_chunks(size).backward())
    print(f"chunks of {size:>4} rows: peak {max(accumulate(events)) / 2**20:6.1f} MiB")

# %% [markdown]
# ## 7 · Out of memory
#
# A colleague hands you a script that dies on their card. `model.features(x)` runs `model.embed` and then all of `model.blocks`, without dropout, and `model.head` makes logits. Four layers, $D = 64$, $V = 4096$; 12 steps of 4 texts of 128 tokens with AdamW in fp32, and a validation after every fourth. What *should* it need?

# %% tags=["nbval-ignore-output", "because other versions of torch keep other tensors"]
with your("state_bytes", "measured_activations", "step_peak"):
    model = SmallModel()
    states = state_bytes(sum(w.numel() for w in model.parameters()), "fp32")
    kept = sum(measured_activations(model, torch.zeros(4, 128, dtype=torch.long)).values())
    should = states["optimizer"] + step_peak(kept, 4, 128, 4096, block=0)
print(f"weights {states['weights'] / 2**20:.2f} MiB; moments {states['optimizer'] / 2**20:.2f}, activations {kept / 2**20:.2f}")
print(f"moments and the peak of a step: {should / 2**20:.1f} MiB. The script:", given := record(leaky_training), sep="\n")

# %% [markdown]
# (The weights were there before the record began, and gradients come while activations go.) The script takes three times what it should. One of its lists looks worse than it is:

# %%
predict("list_of_losses")

# %% [markdown]
# ### Exercise 7 · Out of memory  (6 points · 14 min · ●●●)
#
# Delete the line with `raise`, and edit the script below it. **Mend it**: five leaks make up the difference. **Then redesign the step**: the tools are in section 6, and fewer texts at a time are another; anything else is allowed.
#
# | points | MiB at most |
# | --- | --- |
# | 1 | 40 in the validation |
# | 1, and 1 more | 51 in training, 43 in training |
# | 2, and 1 more | 16 in both, 12 in both |
#
# All losses and accuracies must stay as they are (to $10^{-4}$), and the redesigned step may do at most 1.3 times the work: the FLOPs of all products. `check` also runs your function on a tiny model with SGD and 5 texts in a batch. Read every text with `model.embed`. Threads, files and NumPy are not allowed: nothing is measured there.
#
# The cell under the answer records your run and shows where the peak is. One leak hides another, so run it after each change.


# %% exercise="mended_training"
def mended_training(
    model: SmallModel, optimizer: torch.optim.Optimizer, batches: list[Tensor], validation: list[Tensor]
) -> dict[str, list[float]]:
    """Train on every batch, and validate after every fourth; return all losses and accuracies."""
    ### BEGIN SOLUTION
    at_once, rows = 4, 64

    def chunk_loss(h: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(model.head(h), y, reduction="sum")

    def summed_loss(texts: Tensor) -> Tensor:
        h = model.embed(texts[:, :-1])
        for block in model.blocks:
            h = checkpoint(block, h, use_reentrant=False)
        chunks = zip(h.flatten(0, 1).split(rows), texts[:, 1:].flatten().split(rows), strict=True)
        return sum(checkpoint(chunk_loss, *chunk, use_reentrant=False) for chunk in chunks)

    @torch.no_grad()
    def validate() -> tuple[float, float]:
        loss, right, targets = 0.0, 0, 0
        for texts in chain.from_iterable(whole.split(1) for whole in validation):
            logits, y = model(texts[:, :-1])[0], texts[0, 1:]
            loss += F.cross_entropy(logits, y, reduction="sum").item()
            right += int((logits.argmax(-1) == y).sum())
            targets += y.numel()
        return loss / targets, right / targets

    losses, validated = [], []
    for step, texts in enumerate(batches, start=1):
        total = 0.0
        for part in texts.split(at_once):
            loss = summed_loss(part) / texts[:, 1:].numel()
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total)
        if step % 4 == 0:
            validated.append(validate())
    return {
        "losses": losses,
        "validation": [loss for loss, _ in validated],
        "accuracy": [accuracy for _, accuracy in validated],
    }
    ### END SOLUTION
    # The script that you are given:
    features = []

    def validate() -> tuple[float, float]:
        total, outputs = torch.zeros(()), []
        for texts in validation:
            h = model.features(texts[:, :-1])
            features.append(h.detach())
            outputs.append(model.head(h).flatten(0, 1))
            total += F.cross_entropy(outputs[-1], texts[:, 1:].flatten())
        targets = torch.cat([texts[:, 1:].flatten() for texts in validation])
        right = torch.cat([logits.argmax(-1) for logits in outputs]) == targets
        return (total / len(validation)).item(), right.float().mean().item()

    losses, validated = [], []
    for step, texts in enumerate(batches, start=1):
        h = model.features(texts[:, :-1])
        features.append(h.detach())  # for a plot, later
        logits = model.head(h).flatten(0, 1)
        loss = F.cross_entropy(logits, texts[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        losses.append(loss)
        if step % 4 == 0:
            validated.append(validate())
    return {
        "losses": [loss.item() for loss in losses],
        "validation": [loss for loss, _ in validated],
        "accuracy": [accuracy for _, accuracy in validated],
    }


# %% tags=["nbval-ignore-output", "because other versions of torch keep other tensors"]
with your("mended_training", "peak_and_moment"):
    mine = record(mended_training)
    peak, moment = peak_and_moment(mine.events)
    larger = peak_and_moment(record(mended_training, texts=8).events)[0]
print(f"`mended_training`: {peak / 2**20:.1f} MiB at event {moment:,} of {len(mine.events):,};", mine, sep="\n")
figures.memory_runs({"the given script": given.events, "`mended_training`": mine.events})

# %% check="mended_training"

# %%
predict("twice_the_texts")

# %% tags=["nbval-ignore-output", "because other versions of torch keep other tensors"]
print(f"`mended_training`: {peak / 2**20:.1f} MiB with 4 texts, {larger / 2**20:.1f} with 8. The given script, 8:", record(leaky_training, texts=8))

# %% [markdown]
# The fewer tensors of a whole batch a design keeps, the less the batch matters. The floor is the moments: 5.5 MiB.
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what fills the memory? | weights, gradients, optimizer; and activations, which grow with the batch |
# | what does a parameter take? | 16 bytes in fp32 with Adam; 18 in mixed precision; 2 for inference |
# | what does autograd keep? | what a derivative needs: inputs of products, the result of softmax, masks; nothing for sums |
# | what does a layer keep? | $BS\,(34D + 5AS)$ bytes in 16 bits; the second term goes with fused attention |
# | what is the peak? | the backward pass of the loss: activations and $3 \cdot 4\,BSV$; or one recomputed block |
# | what leaks? | names and lists that hold tensors; graphs that no backward pass frees; gradients between two steps |
#
# ## Check yourself
#
# 1. You swap AdamW for SGD, in fp32. What happens to the states, and what to the activations?
# 2. A colleague finds that twice the batch takes 1.2 times the memory. What does that say?
# 3. Your run is out of memory by 2 GiB, at the loss. The loop says `logits = model(x)`. What do you try first?
#
# <details><summary>Answers</summary>
#
# 1. The states fall from 16 to 8 bytes per parameter: weights and gradients. The activations stay.
# 2. With states $M$ and activations $a$ per batch, $(M + 2a) = 1.2\,(M + a)$, so $a = M/4$: a fifth of their memory is activations. Their batch can be much larger.
# 3. Do not hold the logits in a variable during the backward pass: that is one copy of four. Then a loss in chunks.
#
# </details>

# %% [markdown]
# The numbers in the text are checked here. (The cell is folded.)

# %% tags=["hide-input"]
from lmcourse.accounting.activation_rules import korthikanti
from lmcourse.accounting.recipes import find_recipe
from lmcourse.models.zoo import find_model

GIB, gpt3 = 2**30, find_model("gpt-3").decoder
N = 12 * 96 * 12_288**2 + (50_257 + 2048) * 12_288
assert 4 * (36 + 16 + 36 + 36) == 496 and f"{N / 1e9:.1f}" == "174.6" and round(2 * N / GIB) == 325 <= 5 * 80
assert 39 < (18 * N + korthikanti(gpt3, 1, 2048) + 3 * 4 * 2048 * 50_257) / GIB / 80 < 40
assert [find_recipe(name).per_parameter for name in ("fp32", "mixed", "mixed-16-bit-gradients", "sgd")] == [16, 18, 16, 8]
assert round((GIB / 1e9 - 1) * 100, 1) == 7.4 and f"{80e9 / 18:.2g}" == "4.4e+09" and (2 + 4 + 4 + 8, 12 / 2) == (18, 6)
lines, squares = 34 * 12_288, 5 * 96 * 2048
assert f"{2 * (lines + 2 * squares) / (lines + squares):.1f}" == "3.4" and f"{squares / (lines + squares):.0%}" == "70%"
assert (16 + 4) / 4 / 4 == 1.25 and 0.25 / 1.25 == 0.2
assert "leaky_training" in getsource(leaky_training) and 2.9 < given.peak(validation=True) / (should / 2**20) < 3.3

# %% [markdown]
# ## Further
#
# Every section below needs the core above, and no other section.

# %%
from lmcourse.accounting.activation_rules import break_even_batch, rule_errors
from lmcourse.accounting.memory import training_memory
from lmcourse.accounting.parallel import Layout
from lmcourse.accounting.parameters import count_parameters
from lmcourse.widgets import Log

# %% [markdown]
# ### A · How many parameters?  (12 min)
#
# The states take a fixed number of bytes per parameter, so the first question is how many parameters there are. You need not build the model for that: the configuration gives the shape of every matrix. By hand, for one layer of a model like GPT-2 with $D = 4$, two heads, $d_\text{ff} = 16$, a vocabulary of 10 and 8 positions:
#
# | part | shapes | numbers |
# | --- | --- | --- |
# | embedding, positions | $10 \times 4$, $8 \times 4$ | 72 |
# | q, k, v, output | four of $4 \times 4$, biases of 4 | 80 |
# | up, down | $4 \times 16$ and $16 \times 4$, biases of 16 and 4 | 148 |
# | two norms, and a last one | scale and shift of 4 each | 24 |
# | head | the embedding's matrix again (*tied*) | 0 |
#
# Together 324. In wide models the matrices of the layers are nearly everything: $q, k, v$ and output have $4D^2$ numbers, up and down $8D^2$. So a layer has about $12 D^2$ and a model of $L$ layers $12\,L\,D^2$: twice the depth doubles it, twice the width makes it four times as large.

# %% [markdown]
# ### Exercise 8 · Count the parameters  (3 points · 10 min · ●●)
#
# `config` is a dict with `layers`, `d_model`, `heads`, `kv_heads` (key and value heads, each as wide as a query head), `d_ff`, `vocab_size`, `positions` (learned ones; 0 if there are none), `gated` (a third matrix in the feed-forward layer), `biases` and `tied`. With `biases`, every matrix but the embedding and the head has a bias and every norm a scale and a shift; without, a norm has a scale only. Each layer has two norms, and one more follows the last layer.

# %% exercise="parameter_count"
def parameter_count(config: dict) -> int:
    """The parameters of a model: 324 for the one in the table."""
    ### BEGIN SOLUTION
    d, d_ff, biases = config["d_model"], config["d_ff"], config["biases"]
    kv, inner = d // config["heads"] * config["kv_heads"], 2 if config["gated"] else 1
    norm = 2 * d if biases else d
    layer = 2 * d * d + 2 * d * kv + (inner + 1) * d * d_ff + 2 * norm
    if biases:
        layer += (d + 2 * kv + d) + (inner * d_ff + d)
    ends = config["vocab_size"] * d * (1 if config["tied"] else 2) + config["positions"] * d
    return config["layers"] * layer + norm + ends
    ### END SOLUTION


# %% check="parameter_count"

# %% [markdown]
# For which models is the rule of thumb good enough?

# %%
for name in ("gpt-2", "gpt-3", "llama-3-8b", "llama-3.1-405b"):
    config = find_model(name).decoder
    count, rule = count_parameters(config).total, 12 * len(config.layers) * config.d_model**2
    print(f"{name:<15} {count:>15,} parameters   12·L·D² is {rule / count:6.1%} of them")

# %% [markdown]
# In GPT-2, a small model, the embedding is a third of everything. In GPT-3 it is 0.35 %, and $12LD^2$ is enough. Llama's layers have a gate (more parameters) and fewer key heads (fewer), so for them the rule is only a guess. (For the 405B both differences happen to cancel.)
#
# ### B · How large a model fits?  (11 min)
#
# Divide the memory by the bytes per parameter.

# %%
predict("train_or_write")

# %% [markdown]
# That is why training needs so much more than inference, before any arithmetic: 18 bytes per parameter instead of 2. Mind the unit: cards are *sold* in GB and *report* GiB, and manufacturers differ in what they mean. In the course's table a card of "80 GB" has 80 GiB; the exercise takes the word literally: $80 \cdot 10^9$.

# %% [markdown]
# ### Exercise 9 · The largest model  (2 points · 4 min · ●)
#
# `devices` cards of `gigabytes` GB ($10^9$ bytes) each share one model, trained with AdamW; leave activations out. How many parameters can it have, at most? Precisions are those of `state_bytes`, which you may use.

# %% exercise="largest_model"
def largest_model(gigabytes: int, devices: int, precision: str) -> int:
    """The largest number of parameters that fits: 40,000,000,000 into 8 cards of 80 GB, in fp32."""
    ### BEGIN SOLUTION
    per_parameter = sum(state_bytes(1, precision).values())
    return gigabytes * devices * 10**9 // per_parameter
    ### END SOLUTION


# %% check="largest_model"

# %% [markdown]
# Eight cards of 80 GB hold 40 billion parameters in fp32, and fewer in mixed precision: 35.6 billion. These are upper limits, with no byte left for a single activation.

# %%
explore(figures.memory_fits, card=["rtx-4090", "a100-sxm-40gb", "h100-sxm", "h200", "b200", "mi300x"], cards=Log(1, 64))

# %%
figures.memory_states()

# %% [markdown]
# **In real models.** Llama 3 was trained in bf16 with gradients summed in fp32 (Grattafiori et al., 2024, §3.3). DeepSeek-V3 keeps master weights and gradients in fp32, but both moments in bf16 (DeepSeek-AI, 2024, §3.3), which saves 4 of the 18 bytes. Dettmers et al. (2022) store moments in 8 bits, with a scale for each block of 2048 numbers, and their models train just as well.
#
# ### C · When scores take over  (8 min)
#
# All that a layer keeps, tensor by tensor:

# %%
explore(figures.memory_saved_tensors, length=Log(256, 32768), number=["16 bits", "32 bits"], feed_forward=["GELU, 4 d", "SwiGLU, 8/3 d"])

# %% [markdown]
# Move the length. Which bars grow faster than the others? And how many hidden tensors does a **gated** layer keep, $\text{dropout}(\text{down}(f(\text{gate}(x)) \odot \text{up}(x)))$, where $f$ keeps its input as GELU does? Guess, then measure:

# %%
x = torch.ones(1, 10, 64, requires_grad=True)
gate, up, down = nn.Linear(64, 100), nn.Linear(64, 100), nn.Linear(100, 64)
kept = saved_tensors(lambda: down(F.silu(gate(x)) * up(x)), gate, up, down)
print(f"{sum(tensor.shape[-1] == 100 for tensor in kept)} tensors of the hidden width, and {sum(tensor.shape[-1] == 64 for tensor in kept)} input")

# %% [markdown]
# Four: the gate before $f$, the result of $f$, the result of up, and their product, the input of down. With the same number of parameters, a gated layer is $\tfrac83 D$ wide instead of $4D$ (notebook 11). So it keeps $4 \cdot \tfrac83 = 10.7$ numbers per feature instead of $2 \cdot 4 = 8$: you pay in memory for SwiGLU's better loss. (A ReLU before the last matrix costs less than a GELU. It keeps its *result*, and that is the input of the matrix, which is kept anyway: one tensor for both.)
#
# For $L$ layers with a hidden layer of $E \cdot D$, sorted by how it grows:
#
# $$\underbrace{2\,BLSD\,\big(p\,(E + 4) + 1\big)}_{O(BLSD)} + \underbrace{ABLS^2\,(2p + 1)}_{O(BALS^2)}$$

# %%
explore(figures.memory_growth, model=["gpt-2", "gpt-2-xl", "gpt-3-6.7b", "gpt-neox-20b", "gpt-3"], number=["16 bits", "32 bits"])

# %% [markdown]
# Scores take more than half from $34\,D / (5\,A)$ tokens on: for GPT-3 from 871. Few models are built just as the formula assumes. Compare it with what PyTorch's CPU kernels keep of the blocks of published models, in bf16 and with unfused attention, for 1024 tokens:

# %%
for name in ("gpt-2", "gpt-3", "llama-3-8b"):
    error = rule_errors(find_model(name).decoder, 1, 1024)["Korthikanti et al., 34 + 5as/h"]
    print(f"{name:<11} BLS·(34·D + 5·A·S) is {abs(error):.0%} too {'large' if error > 0 else 'small'}")

# %% [markdown]
# Each gap has its reasons. GPT-2 has dropout, whose noise takes two bytes a number on a CPU, not one; and the package's LayerNorm works in fp32, and keeps its input so. GPT-3 is counted without dropout, so two of the three tensors of $A \cdot S^2$ do not exist. In Llama the gate and RMSNorm add about as much as the missing dropout and the shared key heads take away: the formula is right by luck. Use it to think with. For a budget that must hold, count tensors as `lmcourse account` does.
#
# And count the peak. The loss is computed in fp32 even when the model computes in 16 bits, so its three copies are as large there. For Llama 3, with $V = 128{,}256$, one text of 8192 tokens makes 3.9 GiB of logits, and so 11.7 GiB at the peak. With blocks recomputed, that is five times as much as all else that this text leaves in memory:

# %%
llama, recipe = find_model("llama-3-8b").decoder, find_recipe("mixed")
for recompute in ("nothing", "blocks"):
    for attention in ("readable", "fused"):
        memory = training_memory(llama, 1, 8192, recipe, activation_checkpointing=recompute, attention=attention)
        parts = ", ".join(f"{part} {size / 2**30:.1f} GiB" for part, size in memory if part not in recipe.memory(1).parts)
        print(f"recompute {recompute:<8} attention {attention:<9} {parts}")

# %% [markdown]
# "logits" is what head and loss keep: the 3.9 GiB, and 0.1 for the input of the head. "loss backward" is what their backward pass adds.
#
# ### D · When does mixed precision pay?  (1 min)
#
# It costs 2 bytes more for each parameter, and halves the activations except for the masks. A layer has $12D^2$ parameters, and a text saves $S\,(66D + 9AS) - S\,(34D + 5AS) = S\,(32D + 4AS)$ bytes. So it pays from some batch on: which one? (One layer is enough. Why?)
#
# <details><summary>Answer</summary>
#
# $$B_\text{min} = \frac{2 \cdot 12 D^2}{32\,DS + 4\,AS^2} = \frac{6D^2}{8\,DS + AS^2}$$
#
# Layers multiply both sides alike, and so do $T$ devices that share all of it. That is 0.61 texts for GPT-NeoX-20B and 1.5 for GPT-3, at 2048 tokens. With any usual batch mixed precision takes less memory. The main reason to use it is a different one: matrix products in 16 bits are many times faster.
#
# </details>
#
# ### E · Segments  (13 min)
#
# In the core every block was recomputed alone. Chen et al. (2016) cut $L$ layers into **segments** of $s$. The forward pass keeps one unit of memory, the input, for each segment. Inside a segment, each layer makes one unit; these are thrown away when the next segment begins. The backward pass computes the inside of a segment again from its input, and all of it stays until the gradient has passed. Then the inside *and* the input of the segment are gone. The last segment is still in memory when the backward pass begins.
#
# By hand, for nine layers and $s = 3$: at the end of the forward pass there are three inputs, and three units inside the last segment, so six. On the way back, the middle segment has two inputs and three units, so five. Six layers are computed twice.

# %% [markdown]
# ### Exercise 10 · Compute it twice  (3 points · 9 min · ●●)
#
# Return the most units in memory at any moment, and the number of layers that are computed a second time. The last segment may be shorter. Raise `ValueError` for less than one layer, or segments of less than one layer.

# %% exercise="compute_twice"
def compute_twice(layers: int, every: int) -> tuple[int, int]:
    """The most units in memory at any moment, and how many layers are computed a second time."""
    ### BEGIN SOLUTION
    if every < 1:
        raise ValueError(f"a segment has at least one layer, not {every}")
    lengths = [min(every, layers - start) for start in range(0, layers, every)]
    most = max(number + length for number, length in enumerate(lengths, start=1))
    return most, layers - lengths[-1]
    ### END SOLUTION


# %% check="compute_twice"

# %%
explore(figures.memory_segments, layers=(4, 128, 1))

# %% [markdown]
# Few long segments keep a lot inside, many short ones keep many inputs. In between, near $s = \sqrt L$, the peak is about $2\sqrt L$: 19 units instead of 96, for not quite one more forward pass.
#
# ### F · Many devices, GPT-3  (15 min)
#
# **Tensor parallelism** cuts every matrix in $T$ parts (Shoeybi et al., 2019). Each of $T$ devices has $A/T$ heads and $d_\text{ff}/T$ hidden numbers, so the states of $N$ parameters shrink to $18N/T$. And the activations?

# %%
predict("eight_devices")

# %% [markdown]
# Only what is *inside* a half of the layer is divided. Before and after it, every device has the whole token vectors:
#
# | | tensors of a layer |
# | --- | --- |
# | whole on each device | inputs of two norms, inputs of both halves, two masks |
# | shared | $q, k, v$, the input of the output matrix, two hidden tensors |
# | shared, by heads | the three tensors of scores |
#
# You know the width of each, and the bytes of its numbers, from section 4.

# %% [markdown]
# ### Exercise 11 · One of T devices  (3 points · 8 min · ●●●)
#
# $T$ devices share a model of $N$ parameters in mixed precision, with $p = 2$ and $d_\text{ff} = 4D$. Return a dict with the bytes of `states` and `activations` on each, not rounded. Raise `ValueError` if the heads cannot be shared evenly.

# %% exercise="tensor_parallel_bytes"
def tensor_parallel_bytes(T: int, N: int, L: int, B: int, S: int, D: int, A: int) -> dict[str, float]:
    """Bytes on each of T devices that share every matrix."""
    ### BEGIN SOLUTION
    if A % T:
        raise ValueError(f"{T} devices cannot share {A} heads evenly")
    whole, shared = 10 * D, 24 * D + 5 * A * S
    return {"states": 18 * N / T, "activations": L * B * S * (whole + shared / T)}
    ### END SOLUTION


# %% check="tensor_parallel_bytes"

# %% [markdown]
# Of the 34 bytes per token and feature 10 stay whole, 4 for the norms, 4 for the inputs of both halves and 2 for the masks; 24 are shared.

# %%
explore(figures.memory_tensor_parallel, batch=Log(1, 64), length=Log(256, 8192), sequence_parallel=False)

# %% [markdown]
# Tick *sequence parallel*: norms and dropout work on each token alone, so the devices can share the tokens there, and the 10 becomes $10/T$ (Korthikanti et al., 2022). What it costs in traffic is the subject of notebook 18.
#
# Now GPT-3 as a whole: $L = 96$, $D = 12{,}288$, $A = 96$, $V = 50{,}257$, 2048 learned positions. Count $12LD^2$ and both embeddings: $N$ is 174.6 billion.

# %%
predict("batch_of_gpt3")

# %%
with your("tensor_parallel_bytes"):
    for T in (1, 8):
        each = tensor_parallel_bytes(T, 12 * 96 * 12_288**2 + (50_257 + 2048) * 12_288, 96, 1, 2048, 12_288, 96)
        print(f"GPT-3, one text, T = {T}: " + ", ".join(f"{part} {size / 2**30:,.1f} GiB" for part, size in each.items()))

# %% [markdown]
# Per token, GPT-3 keeps $34\,DL = 40.1$ million bytes, and the scores. With $T = 8$ the activations shrink less than the states do.
#
# **In real models.** Llama 3.1 405B was trained with $T = 8$, the cards of one machine; with 16 groups of layers, one after the other; and with 128 copies of all that, which share their states (Grattafiori et al., 2024, table 4). None of these alone would have been enough. And heads limit $T$: 64 does not divide 96, so some devices would get two heads, some one. 48 or 32 devices share evenly; use the others for more copies, or divide the model between layers.
#
# ### G · Your own budget  (12 min)
#
# Which size is worth attacking? The figure halves each one, and leaves the others as they are. Start at 128 tokens, and go up.

# %%
explore(figures.memory_halving, model=["gpt-2", "gpt-2-xl", "gpt-3-6.7b", "gpt-neox-20b", "gpt-3"], length=Log(128, 65536))

# %% [markdown]
# Half the batch always means half the activations, and so do half as many layers. Half the length does better, because the
# scores depend on it twice. The number of heads matters only there.
#
# And when in a step is the memory fullest? Follow it through forward pass, loss, backward pass and optimizer.

# %%
explore(
    figures.memory_timeline,
    model=["gpt-2", "llama-3.2-1b", "llama-3-8b", "llama-3-70b"],
    batch=Log(1, 64),
    length=Log(512, 131072),
    recompute_blocks=False,
    accumulated=False,
)

# %% [markdown]
# In the backward pass of the loss, when all layers have left their activations and the logits are there three times. Gradients
# come while activations go, so the two do not add up, unless gradients are there already, from an earlier batch of the same
# step: tick *accumulated*. With *recompute blocks* the top may be elsewhere: at a recomputed block, or at the end of the
# backward pass, when all gradients are there.
#
# Two more ways need more cards or more time. **Copies** of a model (data parallelism) read different texts, and they need
# not all keep the same states: **ZeRO** divides the optimizer among them (stage 1), gradients too (2), weights too (3;
# Rajbhandari et al., 2020). In stage 3 the copies still need whole layers for a while: the weights of two and the gradients of
# two, as PyTorch does it. Activations stay as they are: each copy has its own texts. And **gradient accumulation** reads
# several batches, one after the other, before the optimizer steps. The activations of a batch are gone when the next one
# comes, so a step can be as large as you like. Only the gradients stay in memory between two batches. (The budget always
# counts them.)
#
# The budget puts all of it together, for published models and cards of the course's table. It counts tensor by tensor, at the
# peak, as PyTorch's CPU kernels need them. (A GPU keeps less for RMSNorm and dropout. It also needs memory that no tensor
# explains: for the driver, and for gaps between tensors that the allocator cannot fill.) The list has no mixture of experts:
# its states would count all experts, its activations only those that a token passes.
#
# It opens with Llama 3 8B and one text of 8192 tokens on two cards, and does not fit. Find at least three single changes that make it fit. Then: how many B200s does
# Llama 3.1 405B need for such a text, if all of them share every matrix?

# %%
explore(
    figures.memory_budget,
    model=["gpt-2", "smollm2-1.7b", "llama-3.2-1b", "llama-3-8b", "qwen3-32b", "llama-3-70b", "gpt-3", "llama-3.1-405b"],
    card=["rtx-4090", "a100-sxm-40gb", "a100-sxm-80gb", "h100-sxm", "h200", "b200", "mi300x"],
    precision=["fp32", "autocast", "mixed", "mixed-16-bit-gradients", "bf16", "adam-8bit", "momentum", "sgd"],
    batch=Log(1, 64),
    length=Log(512, 131072),
    devices=Log(1, 64),
    recompute_blocks=False,
    fused_attention=True,
    copies=Log(1, 64),
    zero=[0, 1, 2, 3],
    accumulate=Log(1, 64),
)

# %% [markdown]
# <details><summary>Some answers</summary>
#
# It fits with recomputed blocks (74 GiB a card), on four cards (50), on H200s (100 of 141), with texts of 2048 tokens (75), and
# with everything in bf16 (62). It does not fit with texts of 4096 tokens (84), with SGD in fp32 (81), or with
# `mixed-16-bit-gradients` (92). Llama 3.1 405B takes 64 B200s, with 127 of 180 GiB on each: 48 would have enough memory, but
# 48 does not divide its 128 heads. Its 8 key heads are fewer than the devices, so each is on 8 of them: the copies take 8
# of the 127 GiB.
#
# </details>
#
# `lmcourse account --model llama-3-8b --gpu h100 --seq-len 8192` prints such a budget on the command line, with FLOPs and
# times, which are the subject of the next notebook.
#
# ## Further reading
#
# - Korthikanti et al., 2022, *Reducing activation recomputation in large transformer models*: the formulas of section 4, C and F.
# - Rajbhandari et al., 2020, *ZeRO: memory optimizations toward training trillion parameter models*: states, and how to share them among copies.
# - Chen et al., 2016, *Training deep nets with sublinear memory cost*: recomputation.
# - Dao et al., 2022, *FlashAttention: fast and memory-efficient exact attention with IO-awareness*.
# - Micikevicius et al., 2018, *Mixed precision training*: why there are master weights.
# - In this package: `docs/accounting.md`; `lmcourse/accounting/activations.py` predicts to the byte what autograd keeps of any model of the zoo, and `moments.py` the peak of a step.

# %% [markdown]
# The numbers of Further are checked here. (The cell is folded.)

# %% tags=["hide-input"]
assert f"{N / 1e9:.1f}" == "174.6" and f"{50_257 * 12_288 / N:.2%}" == "0.35%" and 72 + 80 + 148 + 24 == 324
assert 0.3 < 50_257 * 768 / count_parameters(find_model("gpt-2").decoder).total < 0.34
assert [round(per * N / GIB) for per in (1, 2, 4, 12, 18)] == [163, 325, 650, 1951, 2927] and 325 / 80 <= 5
assert round(4 * 8 / 3, 1) == 10.7 and round(34 * 12_288 / (5 * 96)) == 870
assert 34 * 12_288 * 96 == 40_108_032
text = korthikanti(gpt3, 1, 2048) / GIB
assert f"{text:.1f}" == "256.5" and f"{18 * N / GIB / text:.1f}" == "11.4"
assert 640e9 / 16 == 40e9 and f"{640e9 / 18 / 1e9:.1f}" == "35.6"
assert squares / 12_288 == 80 and f"{(10 + 24 / 8 + 80 / 8) / 114:.2f}" == "0.20"
assert round(18 * N / 8 / GIB) == 366 and round(korthikanti(gpt3, 1, 2048, tensor=8) / GIB) == 52
assert min(max(k + min(s, 96 - (k - 1) * s) for k in range(1, -(-96 // s) + 1)) for s in range(1, 97)) == 19
assert f"{break_even_batch(find_model('gpt-neox-20b').decoder, 2048):.2f}" == "0.61"
assert f"{break_even_batch(gpt3, 2048):.1f}" == "1.5"
logits = training_memory(find_model("llama-3-8b").decoder, 1, 8192, find_recipe("mixed"))["logits"]
recomputed = training_memory(
    find_model("llama-3-8b").decoder,
    1,
    8192,
    find_recipe("mixed"),
    activation_checkpointing="blocks",
)
assert f"{recomputed['activations'] / GIB:.1f}" == "2.3" and 5 * recomputed["activations"] < 12 * 8192 * 128_256
assert 0 < recomputed["loss backward"] + recomputed["logits"] - 12 * 8192 * 128_256 < 0.1 * GIB
assert 0 <= logits - (4 * 8192 * 128_256 + 2 * 8192 * 4096) < 100 and f"{logits / GIB:.1f}" == "4.0"
assert f"{4 * 8192 * 128_256 / GIB:.1f}" == "3.9" and f"{3 * 4 * 8192 * 128_256 / GIB:.1f}" == "11.7"


def on_each(model: str, devices: int, length: int = 8192, precision: str = "mixed", **rest: str) -> int:
    layout, config = Layout(tensor=devices), find_model(model).decoder
    return round(training_memory(config, 1, length, find_recipe(precision), layout=layout, **rest).total / GIB)


assert on_each("llama-3-8b", 2) == 100 and on_each("llama-3-8b", 2, activation_checkpointing="blocks") == 74
assert on_each("llama-3-8b", 4) == 50 and [on_each("llama-3-8b", 2, S) for S in (4096, 2048)] == [84, 75]
assert [on_each("llama-3-8b", 2, precision=name) for name in ("sgd", "mixed-16-bit-gradients", "bf16")] == [81, 92, 62]
assert on_each("llama-3.1-405b", 64) == 127 and on_each("llama-3.1-405b", 48) < 180 and 128 % 48
assert 127 - round(on_each("llama-3.1-405b", 8) / 8) == 8
