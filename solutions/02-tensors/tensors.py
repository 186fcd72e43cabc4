# %% [markdown]
# # 02 · Tensors
#
# **120 min · 10 exercises · 28 points**
#
# Transposing a matrix takes a few microseconds, however large it is. Adding 1 to a large one takes a thousand times as
# long. The transpose moved nothing: it changed two notes on how the numbers are to be read. Nearly every surprise of
# the coming notebooks, a `view` that fails, a head that is cut wrongly, a loss that learns nothing, a line that runs
# out of memory, is a misreading of these notes.
#
# **You will be able to**
#
# - say which element of a view is where in memory, which tensors share memory, and when a `view` needs a copy;
# - predict the shape of an operation on two shapes, and turn a formula with indices into one line of code;
# - cut features into heads and find what a wrong cut mixes; pick numbers by index, and add them up again, without a
#   loop;
# - count the memory that a line of code needs.
#
# **You need** Python and matrix products; notebook 01 for "bytes". No GPU.
#
# Each exercise has a cell for your answer and a check below it. The check shows what differs, and often why. Stuck?
# `hint("name_of_the_exercise")` gives a nudge; run it again for the next one.

# %%
import itertools
import math
import time
import warnings
from contextlib import suppress
from itertools import zip_longest

import torch
import torch.nn.functional as F
from einops import einsum, rearrange, reduce
from jaxtyping import Float, Int, jaxtyped, print_bindings
from torch import Tensor

from lmcourse.accounting.live import live_bytes
from lmcourse.chapters.tensors import figures
from lmcourse.chapters.tensors.figures.allocator import measured_buffers
from lmcourse.chapters.tensors.figures.memory import EXPRESSIONS
from lmcourse.chapters.tensors.figures.strides import PLAIN_VIEWS, RESHAPED, VIEWS, shares_with_x
from lmcourse.chapters.tensors.operators import operators
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.plots import alt_text

start("02-tensors")

# %% [markdown]
# ## 1 · A row of numbers and a few notes
#
# Memory has no rows and columns. It is one long row of numbers. So where is `x[1, 2]`?

# %%
predict("place_in_the_row")

# %%
x = torch.arange(12).view(3, 4)
print(x)
print("shape", tuple(x.shape), "  strides", x.stride(), "  offset", x.storage_offset(), "  dtype", x.dtype)

# %% [markdown]
# These four say how the numbers are read:
#
# | note | says | here |
# | --- | --- | --- |
# | **shape** | how many elements each axis has | 3 and 4 |
# | **strides** | how many elements further in memory one step along each axis leads | 4 and 1 |
# | **offset** | where in memory the first element is | 0 |
# | **dtype** | how many bytes an element has, and what they mean | 8 bytes, an integer |
#
# By hand: `x[1, 2]` is one step along the first axis, 4 elements, and two along the second, 1 element each: $0 + 1
# \cdot 4 + 2 \cdot 1 = 6$. For any number of axes $K$, sizes $n_k$ and strides $s_k$:
#
# $$\text{place}(i_1, \dots, i_K) = \text{offset} + \sum_{k=1}^{K} i_k\, s_k, \qquad 0 \le i_k < n_k$$
#
# The formula does not ask that the strides fit the shape. The next two sections use that freedom. Choose a view of the same
# twelve numbers, pick an element, and follow the arrow. Which view reads one number three times?

# %%
explore(figures.stride_map, view=list(PLAIN_VIEWS), row=(0, 3), column=(0, 3))

# %% [markdown]
# ### Exercise 1 · Who is there?  (2 points · 8 min · ●●)
#
# Now the way back. Given a place in memory and the notes of a view, return the index of the view's element at this
# place. If several elements are there, return the first in reading order, the last axis fastest. If the view does not
# show the place, return `None`. A view without axes has one element, whose index is `[]`. Strides are 0 or larger. PyTorch will judge; do it without torch and NumPy.


# %% exercise="index_at"
def index_at(place: int, shape: list[int], strides: list[int], offset: int = 0) -> list[int] | None:
    """The first index whose element is at this place: [1, 2] at 6 of a fresh 3 × 4 tensor; None if there is none."""
    ### BEGIN SOLUTION
    for index in itertools.product(*map(range, shape)):
        if offset + sum(i * stride for i, stride in zip(index, strides, strict=True)) == place:
            return list(index)
    return None
    ### END SOLUTION


# %% check="index_at"
check(index_at)
### BEGIN HIDDEN TESTS
check(index_at, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# A tensor can have notes before it has numbers: `torch.empty(4, 8)` takes a piece of memory, and the numbers are whatever
# was there. Notebook 13 shows how weights get their first numbers.
#
# ## 2 · Views: the same numbers, other notes
#
# You write into `y = x[0]`. Does `x` change?

# %%
x = torch.arange(12).view(3, 4)
y = x[0]
y[1] = 100
print(x[0].tolist(), f"  x[0] starts {y.data_ptr() - x.data_ptr()} bytes after x, x[1] {x[1].data_ptr() - x.data_ptr()} bytes")

# %% [markdown]
# It does. A **view** is a second set of notes on the same memory: it copies the notes, never the numbers. Slices,
# transposes, `view`, `expand`, `diagonal` and `detach` are views, and cost a few microseconds whatever the size. By hand,
# for our 3 × 4:
#
# | view | shape | strides | offset |
# | --- | --- | --- | --- |
# | `x` | (3, 4) | (4, 1) | 0 |
# | `x.t()` | (4, 3) | (1, 4) | 0 |
# | `x[1:]` | (2, 4) | (4, 1) | 4 |
# | `x[:, ::2]` | (3, 2) | (4, 2) | 0 |
# | `x[0].expand(3, 4)` | (3, 4) | (0, 1) | 0 |
#
# A step along an axis with stride 0 leads nowhere: three rows, one piece of memory. (So PyTorch refuses most writes into
# such a tensor, `add_` and `copy_` for example. `fill_` and `zero_` run: they write the same number everywhere.)
#
# ### Exercise 2 · Turn it without touching it  (2 points · 4 min · ●)
#
# Return `x` with axes `i` and `j` swapped, as a view: with `torch.as_strided`, which takes a tensor, sizes and strides.
# Functions that swap axes are forbidden. Axes may be negative, and there may be any number of them.


# %% exercise="as_transposed"
def as_transposed(x: Float[Tensor, "..."], i: int, j: int) -> Float[Tensor, "..."]:
    """x with axes i and j swapped, in the same memory."""
    ### BEGIN SOLUTION
    sizes, strides = list(x.shape), list(x.stride())
    sizes[i], sizes[j] = sizes[j], sizes[i]
    strides[i], strides[j] = strides[j], strides[i]
    return torch.as_strided(x, sizes, strides)
    ### END SOLUTION


# %% check="as_transposed"
check(as_transposed)
### BEGIN HIDDEN TESTS
check(as_transposed, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# A consequence that has filled many GPUs: memory is freed when its *last* view is gone. Keep a single row of a large
# tensor, and you keep all of it.

# %%
logits = torch.zeros(1000, 5000)
row = logits[0]
del logits
print(f"shown: {row.nbytes:,} bytes   kept alive: {row.untyped_storage().nbytes():,} bytes")
row = row.clone()
print(f"after clone(): {row.untyped_storage().nbytes():,} bytes")

# %% [markdown]
# Which operations share, and which copy? Each one was run here, and the addresses compared. Cover the right half of a
# column and guess. (`i` is a tensor of indices; more on those in section 8.)

# %%
figures.sharing_table()

# %% [markdown]
# ### Exercise 3 · Who shares memory  (2 points · 6 min · ●●)
#
# Return True if `a` and `b` are in the same memory, whatever part of it each of them shows, else False. Two halves of
# one tensor share memory, although they have no element in common. A tensor's piece of memory is its *untyped storage*:
# `a.untyped_storage()`. Two tensors without any element, made separately, share nothing. Do it without NumPy.


# %% exercise="shares_storage"
def shares_storage(a: Tensor, b: Tensor) -> bool:
    """True if both are in the same memory, whatever part of it each shows."""
    ### BEGIN SOLUTION
    address = a.untyped_storage().data_ptr()
    return address == b.untyped_storage().data_ptr() and address != 0
    ### END SOLUTION


# %% check="shares_storage"
check(shares_storage)
### BEGIN HIDDEN TESTS
check(shares_storage, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# **In real models.** Tied embeddings (notebook 12) are two names for one memory, and a checkpoint that forgets this
# stores the embedding twice. The `safetensors` format refuses to save tensors that share memory for this reason. NumPy
# has strides, too, but in bytes, and they may be negative: `a[::-1]` is a view there. PyTorch has none below 0, so
# `flip` copies.

# %% [markdown]
# ## 3 · When a view is impossible
#
# `x.view(6)` asks for the same elements in the same order, with other notes. Sometimes there are no such notes.

# %%
predict("which_view_fails")

# %%
predict("flat_every_other")

# %%
x, y = torch.arange(6).view(2, 3).t(), torch.arange(24).view(3, 8)[:, ::2]
tries = {
    "x[1:]": lambda: x[1:],
    "x.t()": lambda: x.t(),
    "x.view(3, 1, 2)": lambda: x.view(3, 1, 2),
    "x.unfold(0, 2, 1)": lambda: x.unfold(0, 2, 1),
    "x.view(2, 3)": lambda: x.view(2, 3),
    "x.view(6)": lambda: x.view(6),
    "y.view(12)": lambda: y.view(12),
}
for name, attempt in tries.items():
    try:
        print(f"{name:18} strides {attempt().stride()}")
    except RuntimeError as refusal:
        print(f"{name:18} RuntimeError: {str(refusal)[:45]} ...")

# %% [markdown]
# > **Spot the slip.** A colleague writes: "After a transpose a tensor is not contiguous, and you cannot do further view
# > operations on it." Five of the seven lines above are views of a tensor that is not contiguous. What should the
# > sentence say? The figure shows two views, one that is impossible, and a copy: what do the two views have that the
# > impossible one lacks?

# %%
explore(figures.stride_map, view=list(RESHAPED), row=(0, 1), column=(0, 5))

# %% [markdown]
# A tensor is **contiguous** if its strides are those of a fresh one, axes of size 1 aside: the last is 1, each other one
# the product of the sizes after it. That is enough for any `view`, but it is not needed. What is needed is local. Two
# neighbouring axes $k$ and $k+1$ can be read as *one* if a step along the left one leads exactly as far as all steps of
# the right one:
#
# $$s_k = s_{k+1}\, n_{k+1}$$
#
# By hand, the slice `arange(24).view(3, 8)[:, ::2]` has shape (3, 4) and strides (8, 2), and $8 = 2 \cdot 4$: three
# rows of four steps of 2 are twelve steps of 2. The transpose above, with shape (3, 2) and strides (1, 3), would need
# $1 = 3 \cdot 2$. *Splitting* an axis, on the other hand, always works: the six steps of an axis are two times three
# steps, whatever the stride. So the sentence should be: "you cannot *merge* axes whose strides do not fit".
#
# ### Exercise 4 · When a view is possible  (4 points · 12 min · ●●●)
#
# Given the shape and strides of a tensor, return the strides that `x.view(new_shape)` has, or `None` if only a copy can
# have that shape. Raise `ValueError` if the two shapes have different numbers of elements. All sizes are at least 1, and a shape may be `[]`.
# The stride of an axis of size 1 is never used; return 0 for it. PyTorch will judge; do it without torch and NumPy.


# %% exercise="view_strides"
def view_strides(shape: list[int], strides: list[int], new_shape: list[int]) -> list[int] | None:
    """The strides of x.view(new_shape), 0 for axes of size 1; None if only a copy has that shape."""
    ### BEGIN SOLUTION
    if math.prod(shape) != math.prod(new_shape):
        raise ValueError(f"{shape} and {new_shape} hold different numbers of elements")
    runs: list[tuple[int, int]] = []  # elements and stride of what can be read as one axis
    for n, stride in zip(shape, strides, strict=True):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * stride:
            n *= runs.pop()[0]
        runs.append((n, stride))
    result = []
    left, step = 1, 0
    for n in reversed(new_shape):
        if n > 1 and left == 1:
            left, step = runs.pop()
        if left % n:
            return None
        result.append(step if n > 1 else 0)
        left, step = left // n, step * n
    return result[::-1]
    ### END SOLUTION


# %% check="view_strides"
check(view_strides)
### BEGIN HIDDEN TESTS
check(view_strides, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# `reshape` is `view` where that is possible, and a *silent copy* where it is not. `contiguous()` copies too, unless there
# is nothing to do. So which is better? `view` raises an error when you are about to pay.
#
# ### What a copy costs, and what a stride costs without one

# %%
predict("every_eighth")

# %% tags=["nbval-ignore-output", "because it shows times measured on this machine"]
def fastest_ms(function, runs: int = 40) -> float:
    """The shortest of some runs on one thread, in ms: other work on the machine can only add time."""
    threads, times = torch.get_num_threads(), []
    torch.set_num_threads(1)
    for _ in range(runs):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    torch.set_num_threads(threads)
    return 1000 * min(times)


row = torch.ones(2**24)
for step in (1, 2, 4, 8, 16):
    print(f"row[::{step}].sum()".ljust(19), f"{len(row) // step:>10,} numbers {fastest_ms(row[::step].sum):8.3f} ms")
for n in (2048, 2064):
    square = torch.ones(n, n)
    times = [fastest_ms(f, 10) for f in (square.t, lambda s=square: s + 1, lambda s=square: s + s.t())]
    print(f"n = {n}   square.t() {times[0]:.3f} ms   square + 1 {times[1]:.2f} ms   square + square.t() {times[2]:.1f} ms")

# %% [markdown]
# An eighth of the numbers, about the same time. (How even the times are depends on the machine: a few percent, or a
# factor of two.) Memory does not come by the number but by the **cache line**, 64 bytes on most processors: 16
# floats of four bytes. From a step of 16 on each number costs a line of its own, and the time may even rise there.

# %%
explore(figures.lines_touched, step=(1, 32))

# %% [markdown]
# Then why does `square + square.t()` take more than *ten* times as long as `square + 1`, although it only reads one more
# tensor? One of the two is read across its lines, so up to 16 times as many lines have to come. That can be a part of it,
# not all. Which lines a cache can keep at once depends on how far apart they are, and how fast an address is found depends
# on how many pages are in use. So the factor changes with the machine and with the size: on our machines it was 14 at
# least and 137 at most, the largest for 2048, whose rows begin exactly 8,192 bytes apart.
#
# **In real models.** "view size is not compatible with input tensor's size and stride" is one of the most quoted error
# messages of PyTorch; a release candidate of version 1.7 broke PyTorch's own ImageNet example with it
# (pytorch/examples, issue 836). GPUs read memory in sectors of 32 bytes and lines of 128, so neighbouring threads
# should read neighbouring numbers. GPU programs (*kernels*) are written around this.

# %% [markdown]
# ## 4 · The axis you did not write
#
# A model predicts 64 numbers: shape (64,). The targets come from a file as a column: (64, 1). What is their difference?

# %%
explore(figures.broadcast_shapes, a=["(64,)", "(3, 64)", "(2, 1, 64)", "()"], b=["(64, 1)", "(1, 64)", "(64,)", "(3, 64)"])

# %% [markdown]
# **Broadcasting** has three rules. Align the shapes at the *right*. An axis that is missing counts as 1. In each column
# all sizes that are not 1 must be equal; a 1 is stretched to that size, with a stride of 0, so nothing is copied.
#
# By hand: (3, 1) with (4,) is (3, 1) with (1, 4). Both stretch, and the result is (3, 4): a column and a row make a
# table.
#
# ### Exercise 5 · The common shape  (2 points · 5 min · ●)
#
# Return the shape that any number of shapes broadcast to, as a list; raise `ValueError` if they do not fit together. No
# shapes at all give `[]`. A size may be 0. Do it without torch and NumPy.


# %% exercise="broadcast_shape"
def broadcast_shape(*shapes: list[int]) -> list[int]:
    """The shape that all of them stretch to: [3, 4] for [3, 1] and [4]."""
    ### BEGIN SOLUTION
    result = []
    for sizes in zip_longest(*map(reversed, shapes), fillvalue=1):
        stretched = set(sizes) - {1}
        if len(stretched) > 1:
            raise ValueError(f"sizes {sorted(stretched)} do not fit together")
        result.append(stretched.pop() if stretched else 1)
    return result[::-1]
    ### END SOLUTION


# %% check="broadcast_shape"
check(broadcast_shape)
### BEGIN HIDDEN TESTS
check(broadcast_shape, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### A training run with a column
#
# So (64,) − (64, 1) is (64, 64): every prediction against every target. What happens in a training run?

# %%
predict("first_loss")

# %%
def train(seed: int, column: bool) -> tuple[float, float, Tensor, Tensor, Tensor]:
    """A linear model, 200 steps: first and last loss, weights, bias and the targets; `column` is the slip."""
    generator = torch.Generator().manual_seed(seed)
    inputs, true = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((64, 3), (3,)))
    targets = inputs @ true + 1 + 0.1 * torch.randn(64, generator=generator, dtype=torch.float64)
    w, b = torch.zeros(3, dtype=torch.float64, requires_grad=True), torch.zeros((), dtype=torch.float64, requires_grad=True)
    losses = []
    for _ in range(200):
        predictions = inputs @ w + b
        loss = ((predictions - (targets[:, None] if column else targets)) ** 2).mean()
        losses.append(loss.item())
        for parameter, gradient in zip((w, b), torch.autograd.grad(loss, (w, b)), strict=True):
            parameter.data -= 0.1 * gradient
    return losses[0], losses[-1], w.detach(), b.detach(), targets


for seed in (0, 1, 2):
    (first, last, *_), (first_column, last_column, w, b, targets) = train(seed, False), train(seed, True)
    print(f"seed {seed}   right: {first:.3f} → {last:.3f}   with (64, 1): {first_column:.3f} → {last_column:.3f}")
    print(f"         weights {[abs(round(n, 3)) for n in w.tolist()]}, bias {b:.3f}; mean {targets.mean():.3f} and variance "
          f"{targets.var(correction=0):.3f} of the targets")

# %% [markdown]
# ### The loss that learns the mean
#
# No error, no NaN. The first losses are the same, the last ones are not. With the column all weights go to zero, the
# bias becomes the mean of the targets, and the loss their variance. That is not the seed: averaged over all pairs,
#
# $$\frac1{n^2}\sum_{i,j} (p_i - y_j)^2 = \underbrace{(\bar p - \bar y)^2}_{\text{the means}} + \underbrace{\operatorname{var}(p) + \operatorname{var}(y)}_{\text{no pairing of } i \text{ and } j \text{ left}}$$
#
# which is smallest if all predictions are equal to $\bar y$. The model learns the mean, and the curve looks like a hard
# problem. `F.mse_loss` warns of it; `((p - y) ** 2).mean()` does not.
#
# ### Products in a batch
#
# For `@` the last two axes multiply, and all others broadcast. With two batches of rows, $x$ of shape (2, 3, 4) and $y$
# of shape (2, 3, 4), all dot products within each text are one line:

# %%
x, y = torch.ones(2, 3, 4), torch.ones(2, 3, 4)
print(tuple((x @ y.transpose(-2, -1)).shape), "  one matrix for all texts:", tuple((x @ torch.ones(4, 5)).shape))

# %% [markdown]
# **In real models.** Broadcasting is everywhere on purpose: a bias (d,) on activations (b, s, d), a mask (s, t) on
# scores (b, h, s, t), positions (s, d) on a batch. Alexander Rush argued in "Tensor Considered Harmful" (2019) that
# rules by position are the root of such bugs, and that axes should have names.

# %% [markdown]
# ## 5 · Names for axes
#
# So give them names. `Float[Tensor, "batch seq hidden"]` is a type annotation by jaxtyping: a tensor of floats with
# three axes of these names. Most exercises of this course that take tensors are written that way.

# %%
predict("a_wrong_annotation")

# %%
def swapped(x: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
    """Claims to keep the shape."""
    return x.T


print("from", tuple(torch.ones(2, 3).shape), "to", tuple(swapped(torch.ones(2, 3)).shape), "without an error or a warning")
for tensor in (torch.ones(2, 3), torch.ones(2, 3).int(), torch.ones(2, 2)):
    answers = [isinstance(tensor, Float[Tensor, axes]) for axes in ("b d", "b b", "b s d")]
    print(tuple(tensor.shape), f"{tensor.dtype!s:13}", 'is a Float "b d", "b b", "b s d":', *answers)

# %% [markdown]
# An annotation is documentation until something looks. `isinstance` does look: at the dtype, the number of axes, and
# whether equal names have equal sizes. Across several tensors the names have to be *bound*, which happens inside a
# context:

# %%
with jaxtyped("context"):
    x = torch.ones(2, 3)
    assert isinstance(x, Float[Tensor, "b d"])  # binds b = 2 and d = 3
    print_bindings()
    print('x.T of shape', tuple(x.T.shape), 'is "b d":', isinstance(swapped(x), Float[Tensor, "b d"]), '  is "d b":', isinstance(x.T, Float[Tensor, "d b"]))

# %% [markdown]
# One of the four claims in this function is wrong, and it runs all the same. Its *result* has the shape that is
# promised; what is summed is another matter.

# %%
figures.annotated_code()

# %% [markdown]
# **In real models.** To check every call, jaxtyping needs a run-time type checker such as beartype or typeguard beside
# it. Most code bases use neither and write shapes in comments, which no program checks.

# %% [markdown]
# ## 6 · From formula to code
#
# Papers write with indices: $C_{ik} = A_{ij} B_{jk}$. The convention behind it, as deep learning uses it: an index that
# the result does not have is **summed**; one that it has **stays**, and is computed for each of its values. The sum sign
# is left out; that was Einstein's idea.
#
# `einsum` is that formula as code. `einsum(a, b, "i j, j k -> i k")`: letters of the factors, an arrow, letters of the
# result. einops lets you write whole words, `"batch query width, batch key width -> batch query key"`, and `...` for
# all axes that are not named.

# %%
explore(figures.formula_to_code, formula=list(figures.FORMULAS))

# %% [markdown]
# $C_{ij} = A_{ij} B_{ij}$ sums nothing: it is the product element by element. And operators carry indices, too:
# $\text{softmax}_v(x_{bv})$ means "normalise over $v$, for each $b$". Written out, the sum needs a letter of its own:
#
# $$p_{bv} = \frac{e^{x_{bv}}}{\sum_{v'} e^{x_{bv'}}}$$
#
# Which axis that is can be computed. The one that sums to 1 is the one that was normalised:

# %%
torch.manual_seed(0)
x = torch.randn(2, 3)
p = x.exp() / einsum(x.exp(), "b v -> b")[:, None]
print("sums over v:", [round(n, 3) for n in p.sum(1).tolist()], "   sums over b:", [round(n, 3) for n in p.sum(0).tolist()])

# %% [markdown]
# ### Exercise 6 · Four formulas  (4 points · 9 min · ●●)
#
# Translate these four, where $q$ has axes $b\,s\,h\,d$, $k$ has $b\,t\,h\,d$, $x$ has $b\,s\,e$, and $w$ has $e$.
# Return a dict with the four tensors under the names on the left. Every index that is missing on the left is summed.
# Keep the order of the axes on the left, and the dtype.
#
# $$\text{scores}_{bhst} = q_{bshd}\, k_{bthd} \qquad \text{gated}_{bse} = x_{bse}\, w_e \qquad \text{gram}_{ef} = x_{bse}\, x_{bsf} \qquad \text{norms}_{bh} = q_{bshd}\, q_{bshd}$$


# %% exercise="index_notation"
def index_notation(
    q: Float[Tensor, "b s h d"], k: Float[Tensor, "b t h d"], x: Float[Tensor, "b s e"], w: Float[Tensor, "e"]
) -> dict[str, Tensor]:
    """The four tensors by name."""
    ### BEGIN SOLUTION
    return {
        "scores": einsum(q, k, "b s h d, b t h d -> b h s t"),
        "gated": einsum(x, w, "b s e, e -> b s e"),
        "gram": einsum(x, x, "b s e, b s f -> e f"),
        "norms": einsum(q, q, "b s h d, b s h d -> b h"),
    }
    ### END SOLUTION


# %% check="index_notation"
check(index_notation)
### BEGIN HIDDEN TESTS
check(index_notation, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# What does `einsum` run? Ask torch for its operators, views left out:

# %%
q, k, x, w = torch.ones(2, 3, 4, 5), torch.ones(2, 6, 4, 5), torch.ones(2, 3, 7), torch.ones(7)
for pattern, factors in {
    "b s h d, b t h d -> b h s t": (q, k),
    "b s e, b s f -> e f": (x, x),
    "b s e, e -> b s e": (x, w),
    "b s e -> b": (x,),
}.items():
    print(f"{pattern:28}", *operators(einsum, *factors, pattern))

# %% [markdown]
# Wherever two factors share a summed index there is the same batched matrix product as under `@`, `bmm`: axes are moved
# and merged into (batch, rows, columns), multiplied, and moved back. So its price is that of `@`, plus a copy (`clone`)
# where merging needs one. Without such an index it is an ordinary product or sum.
#
# **In real models.** The first line is the heart of attention (notebook 08), the second what K-FAC collects of each layer's
# inputs (Martens and Grosse, 2015), the third a gain vector as in RMSNorm (10).

# %% [markdown]
# ## 7 · Fold and unfold
#
# `reduce(x, "... hidden -> ...", "sum")` is `x.sum(-1)`, and names the axis that goes. `rearrange` splits, merges and
# moves axes by name:

# %%
x = torch.arange(24.0).view(2, 3, 4)
shorter = reduce(x, "... hidden -> ...", "max")
print("reduce:", tuple(shorter.shape), "  largest difference from amax:", (shorter - x.amax(-1)).abs().max().item())
print("rearrange:", tuple(rearrange(x, "b s d -> (b s) d").shape), tuple(rearrange(x, "b s d -> d s b").shape))

# %% [markdown]
# Its most frequent use in a transformer is cutting features into **heads**. A head is a block of neighbouring features,
# the same block for every token. Six features, two heads, by hand:
#
# | features of a token | 0 1 2 3 4 5 |
# | --- | --- |
# | head 0 | 0 1 2 |
# | head 1 | 3 4 5 |
#
# ### Exercise 7 · Cut into heads  (2 points · 4 min · ●●)
#
# Split the last axis into `heads` blocks of neighbouring features, and put the heads in front of the tokens. The result
# must be a *view*: no number is copied. Raise `ValueError` if the features cannot be divided evenly. (The error that
# einops raises there is not a ValueError.)


# %% exercise="split_heads"
def split_heads(x: Float[Tensor, "b s hd"], heads: int) -> Float[Tensor, "b h s d"]:
    """Each head's block of neighbouring features, as a view."""
    ### BEGIN SOLUTION
    if x.shape[-1] % heads:
        raise ValueError(f"{x.shape[-1]} features do not make {heads} heads")
    return rearrange(x, "b s (h d) -> b h s d", h=heads)
    ### END SOLUTION


# %% check="split_heads"
check(split_heads)
### BEGIN HIDDEN TESTS
check(split_heads, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# There are other ways to get the shapes right, and no error tells them apart. Only the numbers do:

# %%
explore(figures.head_blocks, heads=[2, 3])

# %% [markdown]
# Splitting is free. And merging? Attention returns a tensor `x` of shape (b, h, s, d), and the features of a token have
# to come together again: head 0's block, head 1's block, and so on.
#
# ### Exercise 8 · What the bug mixes  (2 points · 7 min · ●●)
#
# A colleague merges with `x.reshape(b, s, h * d)`, where `x` is a fresh tensor of shape (b, h, s, d). The shape is right,
# and no number leaves its text. Take one text, so `x` is (h, s, d). For each token and feature of her result, return
# where its number came from: two tensors of whole numbers of shape (s, h·d), first the token, then the head.


# %% exercise="came_from"
def came_from(heads: int, tokens: int, width: int) -> tuple[Int[Tensor, "s hd"], Int[Tensor, "s hd"]]:
    """The token and the head that each number of the wrongly merged tensor belongs to."""
    ### BEGIN SOLUTION
    token = torch.arange(tokens)[:, None].expand(heads, tokens, width)
    head = torch.arange(heads)[:, None, None].expand(heads, tokens, width)
    return token.reshape(tokens, heads * width), head.reshape(tokens, heads * width)
    ### END SOLUTION


# %% check="came_from"
check(came_from)
### BEGIN HIDDEN TESTS
check(came_from, hidden=True)
### END HIDDEN TESTS

# %%
with your("came_from"):
    for heads, tokens in ((2, 6), (4, 6), (8, 64)):
        token, head = came_from(heads, tokens, 3)
        own = (token == torch.arange(tokens)[:, None]).float().mean()
        print(f"{heads} heads, {tokens} tokens: {100 * own:.0f} % of the numbers are in the row of their token")

# %% [markdown]
# So the rows of the first tokens hold numbers of head 0 alone, those of the last tokens only the last head, and nothing
# raises an error. The right merge is the pattern of the split read backwards, `"b h s d -> b s (h d)"`. Does it copy? In
# the result of a split the heads are side by side in memory already, so merging is only a matter of notes. But attention
# written out makes a *new* tensor (b, h, s, d), and merging has to copy it. *Fused* kernels, which compute
# all of attention in one go, avoid this by writing their
# result in the layout of the queries. (`live_bytes` counts the memory that a line takes; section 9 is about that.)

# %%
b, s, h, d = 2, 5, 4, 8
q = rearrange(torch.ones(b, s, h * d), "b s (h d) -> b h s d", h=h)
fused = F.scaled_dot_product_attention(q, q, q)
plain = (q @ q.mT).softmax(-1) @ q
for name, result in {"fused": fused, "written out": plain}.items():
    copied = live_bytes(lambda x: rearrange(x, "b h s d -> b s (h d)"), result).peak
    print(f"{name:12} strides {result.stride()}   merging copies {copied:,} bytes of {result.nbytes:,}")

# %% [markdown]
# One more that always copies is `triu`, which keeps what is on or above a diagonal: the zeros have to be stored
# somewhere. It makes the mask of notebook 08, which hides the future, in one line:

# %%
print(torch.ones(4, 4).triu(1).int())  # 1: hidden

# %% [markdown]
# **In real models.** The code of GPT-2 and Llama cuts heads with `view(b, s, h, d).transpose(1, 2)` and merges them
# with `transpose(1, 2)` and `reshape` or `contiguous().view`. einops says the same in one readable line (Rogozhnikov,
# 2022) and ends in the same strides.

# %% [markdown]
# ## 8 · Pick, and put back
#
# Two thousand texts end at different places. Where is the last word of each, without a loop? A slice cannot say: it
# takes the same places of every row. A tensor can be indexed with other tensors instead.

# %%
x = torch.arange(12).view(3, 4)
i = torch.tensor([[0, 3], [1, 1], [2, 0]])
for name, pick in figures.PICKS.items():
    shares = pick(x, i).untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    print(f"{name:18} shape {tuple(pick(x, i).shape)!s:10} {'shares' if shares else 'copies'}  {pick(x, i).flatten().tolist()}")

# %% [markdown]
# The first line is a slice, a view. For the others there are five rules:
#
# - A **mask** of truth values picks the numbers where it is True, and returns them in a row: the shape is gone.
# - Two **lists pair up**: `x[[0, 1], [2, 3]]` is `x[0, 2]` and `x[1, 3]`, two numbers and not four. (Lists of different
#   shapes are broadcast against each other first.)
# - Beside a `:` a list picks columns of every row.
# - An index tensor puts *its own shape* where the axis was: `x[:, i]` is (3,) and then (3, 2).
# - `gather` picks along one axis, and differently in each row: row 0 takes columns 0 and 3, row 1 column 1 twice. Its
#   index has as many axes as `x`, and the result has the shape of the index.
#
# All five copy: no stride leads through places that follow no rule. Choose a line and see what it reads:

# %%
explore(figures.picked_cells, line=list(figures.PICKS))

# %% [markdown]
# The same brackets on the left of `=` put numbers *back*.

# %%
predict("added_twice")

# %%
def add_one(out: Tensor) -> None:
    out[places] += 1


out, places = torch.zeros(3), torch.tensor([0, 0, 2])
print("torch's operators:", *operators(add_one, out), "  out:", out.tolist())
print("scatter, one stays:", torch.zeros(3).scatter(0, places, torch.tensor([5.0, 6.0, 7.0])).tolist())
print("index_add, all are added:", torch.zeros(3).index_add(0, places, torch.tensor([5.0, 6.0, 7.0])).tolist())

# %% [markdown]
# `scatter` is `gather` backwards: each number of the index says where one number goes. Which of two equal places wins is
# not promised. Where every number has to count, use the family that *adds*: `index_add` for whole rows, `scatter_add` for
# single numbers.
#
# ### Exercise 9 · Four pictures without a loop  (4 points · 14 min · ●●●)
#
# A batch has b texts of s tokens, a vocabulary of v, and states of d features. Return a dict with four tensors:
#
# - `"said"` (b, s): of `scores` (b, s, v), at each place the score of the token that is there, `tokens` (b, s);
# - `"last"` (b, d): of `states` (b, s, d), the state of the last real token of each text; `lengths` (b) says how many
#   tokens of each text are real, at least 1, and the rest is padding;
# - `"sums"` (count, d): row i is the sum of all `rows` (n, d) whose `owner` (n) is i, and 0 for an owner without rows
#   (this is the gradient of a look-up: notebook 03);
# - `"best"` (b, s, v), truth values: True at the `k` best scores of each place, exactly `k` of them even if scores are
#   equal.
#
# No loop, no comprehension, no `.tolist()`, `.item()`, NumPy or `torch.vmap`: the number of torch's operators must not
# depend on the number of texts. Gradients must pass through `"said"` and `"sums"`. Grading adds other sizes, 200,000 rows,
# texts without padding, and tokens of 32 bits.


# %% exercise="picked"
def picked(
    scores: Float[Tensor, "b s v"],
    tokens: Int[Tensor, "b s"],
    states: Float[Tensor, "b s d"],
    lengths: Int[Tensor, "b"],
    rows: Float[Tensor, "n d"],
    owner: Int[Tensor, "n"],
    count: int,
    k: int,
) -> dict[str, Tensor]:
    """The four tensors by name: said, last, sums and best."""
    ### BEGIN SOLUTION
    return {
        "said": scores.gather(-1, tokens[:, :, None]).squeeze(-1),
        "last": states[torch.arange(len(states)), lengths - 1],
        "sums": rows.new_zeros(count, rows.shape[1]).index_add(0, owner, rows),
        "best": torch.zeros_like(scores, dtype=torch.bool).scatter(-1, scores.topk(k).indices, True),
    }
    ### END SOLUTION


# %% check="picked"
check(picked)
### BEGIN HIDDEN TESTS
check(picked, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# **In real models.** The first is half of every language model's loss (notebook 05), the second how a classifier reads
# padded texts, the third what the backward pass of an embedding does, and the fourth top-k sampling (17) and the choice of
# experts in a mixture. On a GPU the adding kinds are fast but do not repeat to the last bit: the threads add in the order
# in which they arrive, and sums of floats depend on it (01).

# %% [markdown]
# ## 9 · What a line costs
#
# Views are free. Everything else needs memory for its result, and Python computes one operation at a time.

# %%
predict("buffers_of_a_line")

# %% [markdown]
# Three rules say what a line needs. An operation takes memory for its result while its arguments are *still there*. A
# result that only served as an argument, a **temporary**, is freed right after that. And the left argument is computed
# before the right one, and *waits*.
#
# By hand, `sqrt(x*x + y*y)`: the first product is there, 1; the second joins it, 2; the sum is made beside both, 3; both
# products go, 1; the root is made beside the sum, 2. The most is 3, although the line makes four tensors.

# %%
explore(figures.memory_timeline, line=list(EXPRESSIONS))

# %% [markdown]
# The order of the two sides matters: the one that needs more should go first. Compilers have known this for long (Sethi
# and Ullman, 1970, on registers); Python does not do it for you.
#
# Not every operation makes a new tensor. Those whose name ends in `_` write into their first argument: `x.add_(y)`,
# `x.sqrt_()`, `torch.relu_(x)`. So does `x *= 2`; a function that is given `out=` writes there. With them the hypotenuse needs 2
# instead of 3:

# %%
x, y = torch.ones(2, 100_000).unbind()
hypotenuse = live_bytes(lambda x, y: (x * x + y * y).sqrt(), x, y)
in_place = live_bytes(lambda x, y: (x * x).add_(y * y).sqrt_(), x, y)
print(f"bytes of x {x.nbytes:,}   peak {hypotenuse.peak:,}   in place {in_place.peak:,}")

# %% [markdown]
# ### Exercise 10 · What a line needs  (4 points · 12 min · ●●●)
#
# An expression is a name, `"x"`, or a list: an operation and its arguments, `["add", ["mul", "x", "x"], "y"]`. All
# tensors have `size` bytes, perhaps 0. Return the most bytes alive at once while it is computed, beyond the inputs, which are
# there already.
#
# - Arguments are computed from left to right; each result waits until its operation has run.
# - An operation takes `size` bytes for its result before its arguments are freed.
# - `"view"`, with one argument, takes nothing: its result lies in its argument's memory.
# - A name that ends in `_` writes into the memory of its first argument and returns it. If that is an input, or a view
#   of one, raise `ValueError`: inputs must not change.


# %% exercise="peak_bytes"
def peak_bytes(expression: list | str, size: int) -> int:
    """The most bytes alive at once, beyond the inputs, while the expression is computed."""

    ### BEGIN SOLUTION
    def compute(part: list | str) -> tuple[int, int]:
        """The most buffers alive on the way, and how many are left at the end."""
        if isinstance(part, str):
            return 0, 0
        operation, *arguments = part
        most, left = 0, []
        for argument in arguments:
            inside, stays = compute(argument)
            most = max(most, sum(left) + inside)
            left.append(stays)
        if operation == "view":
            return most, left[0]
        if operation.endswith("_"):
            if not left[0]:
                raise ValueError(f"{operation} would write into an input")
            return most, 1
        return max(most, sum(left) + 1), 1

    most, _ = compute(expression)
    return most * size
    ### END SOLUTION


# %% check="peak_bytes"
check(peak_bytes)
### BEGIN HIDDEN TESTS
check(peak_bytes, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Is the model true? Every line of the figure above was run on real tensors, and each storage counted from its birth to
# its release, by `lmcourse.accounting.live`. `peak_bytes` is compared with it:

# %%
with your("peak_bytes"):
    compared = figures.against_the_allocator(peak_bytes)
compared

# %% [markdown]
# **In real models.** GELU written out, as in GPT-2's published code, makes eight tensors and needs three at once; the
# fused `F.gelu` makes one. On a GPU each of the eight is also a trip to memory and back, and these trips take the time
# (notebooks 11 and 19). And in training, freeing is not always possible: what the backward pass will need has to stay
# (notebooks 03 and 14). That is why an in-place operation on such a tensor is an error there.

# %% [markdown]
# ## 10 · Over the bus
#
# Tensors start in main memory. `x.to("cuda")` copies them to the memory of a GPU, over PCIe. How long that takes is bytes
# over bandwidth, and a GB/s is $10^9$ bytes per second.

# %%
explore(figures.moving_time, link=["PCIe 3.0", "PCIe 4.0", "PCIe 5.0"])

# %% [markdown]
# One matrix of GPT-3's feed-forward layers, 12,288 × 49,152 in fp32, is 2,415,919,104 bytes: 75.5 ms over PCIe 4.0 with
# its 32 GB/s. The chip could multiply with it many times meanwhile. So weights move once and stay, and what moves in
# every step, the token ids, is small: 131,072 bytes for 8 texts of 2,048 tokens.
#
# **In real models.** 7 billion weights in bf16 take 0.44 s over PCIe 4.0 at its best, which is why loading a model is
# usually limited by the disk. Where weights do not fit and are fetched for every token ("offloading"), each *token* costs
# the same 0.44 s. Pinned memory, which makes such copies fast, comes in notebook 07.

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what is a tensor? | a row of numbers, and notes: shape, strides, offset, dtype |
# | where is an element? | at offset $+ \sum_k i_k s_k$ |
# | what is a view? | other notes on the same numbers; free, and writing into it changes all of them |
# | when does `view` fail? | where axes would have to merge for which $s_k \ne s_{k+1}\, n_{k+1}$; splitting always works |
# | how do shapes broadcast? | aligned at the right, missing axes are 1, only a 1 stretches (stride 0) |
# | which index is summed? | one that the result does not have |
# | what is a head? | a block of neighbouring features: `"b s (h d) -> b h s d"`, never a reshape across tokens |
# | how are numbers picked? | lists pair up; an index puts its shape in the place of the axis; `gather` picks along one axis; all of them copy |
# | how are they put back? | `scatter` writes, `index_add` and `scatter_add` add; `out[i] += 1` writes equal places once |
# | what does a line need? | the most results alive at once; an operation makes its result beside its arguments, and left sides wait |
# | what does moving cost? | bytes over bandwidth; a GB/s is $10^9$ bytes per second |

# %% [markdown]
# ## Check yourself
#
# 1. A tensor has shape (5, 7) and strides (7, 1). What are the shape, strides and offset of `x[2:, ::3]`? And of its
#    transpose?
# 2. `y = x[:10]`, and `x` is never used again. How much memory can be freed? What would you write instead?
# 3. Which of these can be a view of a tensor of shape (4, 6) and strides (1, 4): (24,), (2, 2, 6), (4, 3, 2), (8, 3)?
# 4. A mask of shape (b, t) has to hide keys in scores of shape (b, h, s, t). What happens if you add it as it is, with b
#    = 2, s = 2? What with b = 2, s = 5?
# 5. Write a matrix product of two transposed matrices, $C = A^\top B^\top$, as an `einsum`.
# 6. A colleague writes "softmax over the $b$-index" above $p_{bv} = e^{x_{bv}} / \sum_v e^{x_{bv}}$. Two things are wrong.
#    Which?
# 7. `x` is (5, 6), and `i` and `j` are index tensors of shapes (3, 1) and (4,). What shape has `x[i, j]`? And `x[:, i]`?
# 8. How many buffers does `(x + y) * (x - y)` need at once? Write it so that it needs one less.
# 9. How long does a tensor of shape (4096, 4096) in bf16 take over a link of 32 GB/s?
#
# <details><summary>Answers</summary>
#
# 1. Shape (3, 3), strides (7, 3), offset 14. Transposed: (3, 3), (3, 7), 14.
# 2. None: the view keeps all of it alive. `x[:10].clone()`.
# 3. (2, 2, 6) and (4, 3, 2): they only split. (24,) and (8, 3) would have to merge 4 with (a part of) 6, and $1 \ne 4
#    \cdot 6$.
# 4. With s = 2 no error, and a mask that belongs to the texts is applied to the queries: (2, t) is read as (s, t). With
#    s = 5 an error, fortunately. Write `mask[:, None, None, :]`.
# 5. `einsum(a, b, "k i, j k -> i j")`.
# 6. It is normalised over $v$: for each $b$ the sum over $v$ is 1. And the summed letter is not the free one: it needs its
#    own, $\sum_{v'} e^{x_{bv'}}$.
# 7. The two indices are broadcast to (3, 4), and that is the shape: a table of pairs. `x[:, i]` is (5, 3, 1).
# 8. 3: both sides, and the product beside them. `(x + y).mul_(x - y)` needs 2.
# 9. 33,554,432 bytes over $32 \cdot 10^9$ bytes per second: 1.05 ms.
#
# </details>
#
# ## Further reading
#
# - The PyTorch reference on `Tensor.view`, which states the rule of section 3, and on tensor views, which lists them
#   all; Edward Yang's "PyTorch internals" (2019), with pictures of strides.
# - Rogozhnikov, 2022, *Einops: clear and reliable tensor manipulations with Einstein-like notation*; Rush, 2019,
#   *Tensor considered harmful*.
# - The documentation of NumPy on broadcasting and on advanced indexing, and of jaxtyping on what its annotations can say.
# - Rush, *Tensor Puzzles*: 21 more tasks of the kind of Exercise 9.
# - Sethi and Ullman, 1970, *The generation of optimal code for arithmetic expressions*.
# - In this package: `lmcourse.accounting.live`, which counts storages while they live, and `lmcourse.accounting.saved`,
#   which lists what autograd keeps.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you
# like.)

# %% tags=["hide-input"]
x = torch.arange(12).view(3, 4)
assert x.flatten()[6] == x[1, 2] == 6 and (x.itemsize, x.stride()) == (8, (4, 1))
views = {name: view(x) for name, view in VIEWS.items() if name != "x.t().view(2, 6)"}
notes = {name: (tuple(y.shape), y.stride(), y.storage_offset()) for name, y in views.items()}
assert notes["x.t()"] == ((4, 3), (1, 4), 0) and notes["x[1:]"] == ((2, 4), (4, 1), 4)
assert notes["x[:, ::2]"] == ((3, 2), (4, 2), 0) and x[0].expand(3, 4).stride() == (0, 1)
assert torch.empty_strided((2, 1, 3), (3, 50, 1)).is_contiguous()  # axes of size 1 aside
flat = torch.arange(24).view(3, 8)[:, ::2]
x[0].expand(3, 4).fill_(1)
x[0].expand(3, 4).zero_()
for write in (lambda y: y.add_(1), lambda y: y.copy_(torch.ones(3, 4))):
    with suppress(RuntimeError):
        write(x[0].expand(3, 4))
        raise AssertionError("an expanded tensor can be written into")
assert not flat.is_contiguous() and flat.stride() == (8, 2) and flat.view(12).data_ptr() == flat.data_ptr()
assert all(map(shares_with_x, ("x.diagonal()", "x.detach()"))) and not shares_with_x("x.triu()")
assert (2**24, 64 // 4) == (16_777_216, 16)
for seed in range(6):
    (first, last, *_), (first_column, last_column, w, b, targets) = train(seed, False), train(seed, True)
    assert math.isclose(first, first_column, rel_tol=1e-12) and last < 0.1 < last_column
    assert w.abs().max() < 1e-6 and math.isclose(b, targets.mean(), rel_tol=1e-9)
    assert math.isclose(last_column, targets.var(correction=0), rel_tol=1e-9)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    F.mse_loss(torch.ones(4), torch.ones(4, 1))
    assert "broadcasting" in str(caught[0].message)
p, y = torch.arange(5.0), torch.tensor([2.0, -1.0, 7.0, 3.0, 3.0])
pairs = ((p[:, None] - y) ** 2).mean()
assert torch.isclose(pairs, (p.mean() - y.mean()) ** 2 + p.var(correction=0) + y.var(correction=0))
kept = torch.ones(3)
start_of_it = kept.data_ptr()
assert kept.add_(1).mul_(2).relu_().data_ptr() == torch.exp(kept, out=kept).data_ptr() == start_of_it
counted = [measured_buffers(expression) for expression in EXPRESSIONS.values()]
assert dict(zip(EXPRESSIONS, counted, strict=True))["x*y + (y*z + (z*w + w*x))"] == 5 and counted[3] == 3
gelu = live_bytes(lambda x: 0.5 * x * (1 + torch.tanh(0.798 * (x + 0.0447 * x**3))), torch.ones(1000))
fused = live_bytes(F.gelu, torch.ones(1000))
assert (gelu.peak, gelu.allocated, fused.peak, fused.allocated) == (12_000, 32_000, 4000, 4000)
assert 12_288 * 49_152 * 4 == 2_415_919_104 and 8 * 2048 * 8 == 131_072
assert "75.5 ms" in alt_text(figures.moving_time()) and round(14 / 32, 2) == 0.44
x, i, j = torch.ones(5, 6), torch.zeros(3, 1).long(), torch.zeros(4).long()
assert (x[i, j].shape, x[:, i].shape) == ((3, 4), (5, 3, 1))
assert (4096**2 * 2, round(1000 * 4096**2 * 2 / 32e9, 2)) == (33_554_432, 1.05)
part = torch.empty_strided((5, 7), (7, 1))[2:, ::3]
assert (tuple(part.shape), part.stride(), part.storage_offset(), part.T.stride()) == ((3, 3), (7, 3), 14, (3, 7))
turned, possible = torch.empty_strided((4, 6), (1, 4)), []
for shape in ((24,), (2, 2, 6), (4, 3, 2), (8, 3)):
    with suppress(RuntimeError):
        possible.append(turned.view(shape).shape)
assert possible == [(2, 2, 6), (4, 3, 2)]
assert (torch.ones(2, 3, 2, 4) + torch.ones(2, 4)).shape == (2, 3, 2, 4)
a, c = torch.rand(3, 4), torch.rand(5, 3)
assert torch.allclose(einsum(a, c, "k i, j k -> i j"), a.T @ c.T)
assert measured_buffers(["mul", ["add", "x", "y"], ["sub", "x", "y"]]) == 3
assert measured_buffers(["mul_", ["add", "x", "y"], ["sub", "x", "y"]]) == 2
