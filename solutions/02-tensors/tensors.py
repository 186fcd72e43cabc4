# %% [markdown]
# # 02 · Tensors
#
# **Core · 89 min · 5 exercises · 16 points** · **Further · 83 min · 6 exercises · 16 points**
#
# Transposing a matrix takes a few microseconds, however large it is. Adding 1 to each of four million numbers takes a thousand times as long. *What does a line of a model do to memory?*
#
# At the end your functions will have predicted attention to the byte, line by line, and you will have written it with a fortieth of a textbook's memory.
#
# **You will be able to**
#
# - say where an element of a view is in memory, and when a `view` needs a copy;
# - explain from shapes and strides a loss that learns nothing, and heads that are mixed;
# - count the memory of a line of code, and write it so that it needs less.
#
# **You need** Python and matrix products; notebook 01 for "bytes". No GPU.
#
# Stuck? `hint("name_of_the_exercise")` gives a nudge, and the next one when you run it again.

# %%
import itertools
import math
import warnings
from contextlib import suppress
from itertools import zip_longest

import torch
import torch.nn.functional as F
from einops import einsum, rearrange, reduce
from jaxtyping import Float, Int, jaxtyped, print_bindings
from torch import Tensor

from lmcourse.accounting.live import live_bytes
from lmcourse.accounting.timing import time_it
from lmcourse.chapters.tensors import figures
from lmcourse.chapters.tensors.figures.memory import EXPRESSIONS
from lmcourse.chapters.tensors.figures.strides import PLAIN_VIEWS, RESHAPED, VIEWS, shares_with_x
from lmcourse.chapters.tensors.lines import print_lines
from lmcourse.chapters.tensors.operators import operators
from lmcourse.chapters.tensors.thrifty import fused, print_attention, print_other_ways
from lmcourse.exercises.measured import one_thread
from lmcourse.notebook import check, explore, hint, predict, start, your

start("02-tensors")

# %% [markdown]
# ## 1 · A row of numbers and a few notes
#
# Memory is one long row of numbers. So where is `x[1, 2]`?

# %%
x = torch.arange(12).view(3, 4)
print(x)
print("shape", tuple(x.shape), "  strides", x.stride(), "  offset", x.storage_offset(), "  dtype", x.dtype)

# %% [markdown]
# These four say how to read the numbers:
#
# | note | says | here |
# | --- | --- | --- |
# | **shape** | how many elements each axis has | 3 and 4 |
# | **strides** | how many elements further in memory one step along each axis leads | 4 and 1 |
# | **offset** | where in memory the first element is | 0 |
# | **dtype** | how many bytes an element has, and what they mean | 8 bytes, an integer |
#
# By hand: `x[1, 2]` is one step of 4 elements and two steps of 1: $0 + 1 \cdot 4 + 2 \cdot 1 = 6$. For any number of axes $K$, sizes $n_k$ and strides $s_k$:
#
# $$\text{place}(i_1, \dots, i_K) = \text{offset} + \sum_{k=1}^{K} i_k\, s_k, \qquad 0 \le i_k < n_k$$
#
# The strides need not fit the shape. Choose a view of the same twelve numbers and follow the arrow. Which view reads one number three times?

# %%
explore(figures.stride_map, view=list(PLAIN_VIEWS), row=(0, 3), column=(0, 3))

# %% [markdown]
# ### Exercise 1 · Who is there?  (2 points · 8 min · ●●)
#
# Now the way back. Given a place in memory and the notes of a view, return the index of the element there. If there are several, return the first in reading order, the last axis fastest. If the view does not show the place, return `None`. A view without axes has one element, with the index `[]`. Strides are 0 or larger. Do it without torch and NumPy.

# %% exercise="index_at"
def index_at(place: int, shape: list[int], strides: list[int], offset: int = 0) -> list[int] | None:
    """The first index whose element is at this place: [1, 2] at 6 of a fresh 3 × 4 tensor; None if there is none."""
    ### BEGIN SOLUTION
    for index in itertools.product(*map(range, shape)):
        if offset + sum(i * strides[axis] for axis, i in enumerate(index)) == place:
            return list(index)
    return None
    ### END SOLUTION

# %% check="index_at"

# %% [markdown]
# ## 2 · Views: the same numbers, other notes
#
# You write into `y = x[0]`. Does `x` change?

# %%
y = x[0]
y[1] = 100
print(x[0].tolist(), f"  x[0] starts {y.data_ptr() - x.data_ptr()} bytes after x, x[1] {x[1].data_ptr() - x.data_ptr()} bytes")

# %% [markdown]
# It does. A **view** is a second set of notes on the same memory. Slices, transposes, `view`, `expand`, `diagonal` and `detach` are views, and cost a few microseconds whatever the size.
#
# Memory is freed when its *last* view is gone. Keep one row of a large tensor, and you keep all of it: this has filled many GPUs.

# %%
row = torch.zeros(1000, 5000)[0]
print(f"shown: {row.nbytes:,} bytes   kept alive: {row.untyped_storage().nbytes():,} bytes")
print(f"after clone(): {row.clone().untyped_storage().nbytes():,} bytes")

# %% [markdown]
# Which operations share, and which copy? Cover the words on the right and guess. (`i` is a tensor of indices.)

# %%
figures.sharing_table()

# %% [markdown]
# ## 3 · When a view is impossible
#
# `z.view(6)` asks for the same elements in the same order, with other notes. Sometimes there are no such notes.

# %%
predict("which_view_fails")

# %%
predict("flat_every_other")

# %%
z, y = torch.arange(6).view(2, 3).t(), torch.arange(24).view(3, 8)[:, ::2]
for line in ("z[1:]", "z.t()", "z.view(3, 1, 2)", "z.unfold(0, 2, 1)", "z.view(2, 3)", "z.view(6)", "y.view(12)"):
    try:
        print(f"{line:18} strides {eval(line).stride()}")
    except RuntimeError as refusal:
        print(f"{line:18} RuntimeError: {str(refusal)[:45]} ...")

# %% [markdown]
# > **Spot the slip.** A colleague writes: "After a transpose a tensor is not contiguous, and you cannot do further view operations on it." Five of the seven lines above are views of a tensor that is not contiguous. What should the sentence say?
#
# A tensor is **contiguous** if its strides are those of a fresh one, axes of size 1 aside: the last is 1, each other one the product of the sizes after it. That is enough for any `view`, but not needed. Two neighbouring axes $k$ and $k+1$ can be read as *one* if a step along the left one leads exactly as far as all steps of the right one:
#
# $$s_k = s_{k+1}\, n_{k+1}$$
#
# By hand, `y` has shape (3, 4) and strides (8, 2), and $8 = 2 \cdot 4$: three rows of four steps of 2 are twelve steps of 2. The transpose `z`, with shape (3, 2) and strides (1, 3), would need $1 = 3 \cdot 2$. *Splitting* an axis always works: six steps are two times three, whatever the stride. So the sentence should be: "you cannot *merge* axes whose strides do not fit".
#
# And more axes? Take shape (3, 2, 4) with strides (8, 1, 2): $8 \ne 1 \cdot 2$ and $1 \ne 2 \cdot 4$, so nothing merges. (3, 2, 2, 2) only splits, a view with strides (8, 1, 4, 2). In (6, 4) the 6 would reach across two axes: a copy. A fresh (4, 6) can be read as one axis of 24, and cut anew as (6, 4).

# %% [markdown]
# ### Exercise 2 · When a view is possible  (4 points · 13 min · ●●●)
#
# Given the shape and strides of a tensor, return the strides of `x.view(new_shape)`, or `None` if only a copy can have that shape. Raise `ValueError` if the two shapes have different numbers of elements. All sizes are at least 1, and a shape may be `[]`. The stride of an axis of size 1 is never used; return 0 for it. Do it without torch and NumPy.

# %% exercise="view_strides"
def view_strides(shape: list[int], strides: list[int], new_shape: list[int]) -> list[int] | None:
    """The strides of x.view(new_shape), 0 for axes of size 1; None if only a copy has that shape."""
    ### BEGIN SOLUTION
    if math.prod(shape) != math.prod(new_shape):
        raise ValueError(f"{shape} and {new_shape} hold different numbers of elements")
    runs: list[tuple[int, int]] = []  # elements and stride of what can be read as one axis
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * strides[axis]:
            n *= runs.pop()[0]
        runs.append((n, strides[axis]))
    result = []
    left = step = 1
    for n in reversed(new_shape):
        if n > 1 and left == 1:
            left, step = runs.pop()
        left, rest = divmod(left, n)
        if rest:
            return None
        result.append(step if n > 1 else 0)
        step *= n
    return result[::-1]
    ### END SOLUTION

# %% check="view_strides"

# %% [markdown]
# `reshape` is `view` where that is possible, and a *silent copy* where it is not; `view` raises an error when you are about to pay.
#
# ## 4 · The axis you did not write
#
# A model predicts 64 numbers, of shape (64,). The targets are a column, (64, 1). What is their difference?
#
# **Broadcasting** has three rules. Align the shapes at the *right*. An axis that is missing counts as 1. Along each axis all sizes that are not 1 must be equal; a 1 is stretched to that size, with a stride of 0, so nothing is copied. By hand: (3, 1) with (4,) is (3, 1) with (1, 4), and both stretch to (3, 4).
#
# So (64,) − (64, 1) is (64, 64): every prediction against every target. What happens in a training run?

# %%
predict("first_loss")

# %%
def train(seed: int, column: bool) -> tuple[list[float], Tensor, Tensor]:
    """A linear model, 200 steps: losses, weights with the bias as the last, and the targets; `column` is the slip."""
    torch.manual_seed(seed)
    inputs = torch.cat([torch.randn(64, 3), torch.ones(64, 1)], dim=1).double()
    targets = inputs @ torch.tensor([*torch.randn(3), 1.0]).double() + 0.1 * torch.randn(64)
    w, losses = torch.zeros(4, dtype=torch.float64, requires_grad=True), []
    for _ in range(200):
        loss = ((inputs @ w - (targets[:, None] if column else targets)) ** 2).mean()
        losses.append(loss.item())
        w.data -= 0.1 * torch.autograd.grad(loss, w)[0]
    return losses, w.detach(), targets


for seed in (0, 1, 2):
    (right, *_), (wrong, w, targets) = train(seed, False), train(seed, True)
    print(f"seed {seed}   right: {right[0]:.3f} → {right[-1]:.3f}   with (64, 1): {wrong[0]:.3f} → {wrong[-1]:.3f}")
    print(f"         weights {[abs(round(n, 3)) for n in w[:3].tolist()]}, bias {w[3]:.3f}; mean {targets.mean():.3f} and variance {targets.var(correction=0):.3f} of the targets")

# %% [markdown]
# ### The loss that learns the mean
#
# No error, no NaN. The first losses are the same, the last ones are not. With the (64, 1) targets all weights go to 0, the bias becomes the mean of the targets, and the loss their variance. That is not the seed: averaged over all pairs,
#
# $$\frac1{n^2}\sum_{i,j} (p_i - y_j)^2 = \underbrace{(\bar p - \bar y)^2}_{\text{the means}} + \underbrace{\operatorname{var}(p) + \operatorname{var}(y)}_{\text{no pairing of } i \text{ and } j \text{ left}}$$
#
# which is smallest if all predictions are equal to $\bar y$. The model learns the mean, and the curve looks like a hard problem. `F.mse_loss` warns of it; `((p - y) ** 2).mean()` does not.
#
# ## 5 · Heads
#
# The features of a token are cut into **heads**. A head is a block of neighbouring features, the same block for every token. Six features, two heads:
#
# | features of a token | 0 1 2 3 4 5 |
# | --- | --- |
# | head 0 | 0 1 2 |
# | head 1 | 3 4 5 |
#
# `rearrange(x, "b s (h d) -> b h s d", h=2)` of einops cuts them, as a view. And merging? Attention returns a tensor `x` of shape (b, h, s, d), and the blocks of a token have to come together again.

# %% [markdown]
# ### Exercise 3 · What the bug mixes  (2 points · 7 min · ●●)
#
# A colleague merges with `x.reshape(b, s, h * d)`, where `x` is a fresh tensor of shape (b, h, s, d). The shape is right. Take one text, so `x` is (h, s, d). For each token and feature of her result, return where its number came from: two tensors of whole numbers of shape (s, h·d), first the token, then the head.

# %% exercise="came_from"
def came_from(heads: int, tokens: int, width: int) -> tuple[Int[Tensor, "s hd"], Int[Tensor, "s hd"]]:
    """The token and the head that each number of the wrongly merged tensor belongs to."""
    ### BEGIN SOLUTION
    token = torch.arange(tokens)[:, None].expand(heads, tokens, width)
    head = torch.arange(heads)[:, None, None].expand_as(token)
    return token.reshape(tokens, heads * width), head.reshape(tokens, heads * width)
    ### END SOLUTION

# %% check="came_from"

# %%
with your("came_from"):
    for heads, tokens in ((2, 6), (4, 6), (8, 64)):
        token, head = came_from(heads, tokens, 3)
        own = (token == torch.arange(tokens)[:, None]).float().mean()
        print(f"{heads} heads, {tokens} tokens: {100 * own:.0f} % of the numbers are in the row of their token")

# %% [markdown]
# The first rows hold numbers of head 0 alone, the last rows only the last head, and nothing raises an error. The right merge is the split read backwards, `"b h s d -> b s (h d)"`: swap heads and tokens, then merge two axes. Does it copy? Attention written out makes a *new* tensor (b, h, s, d). *Fused* kernels compute all of attention in one go, and write their result in the layout of the queries. Ask your `view_strides`:

# %%
b, s, h, d = 2, 5, 4, 8
q = rearrange(torch.ones(b, s, h * d), "b s (h d) -> b h s d", h=h)
with your("view_strides"):
    for name, o in {"written out": (q @ q.mT).softmax(-1) @ q, "fused": F.scaled_dot_product_attention(q, q, q)}.items():
        moved = o.transpose(1, 2)
        merged = view_strides([*moved.shape], [*moved.stride()], [b, s, h * d])
        print(f"{name:12} strides {o.stride()}, moved {moved.stride()}, merged {merged}")

# %% [markdown]
# After attention written out, merging has to copy; after a fused kernel it is a matter of notes.
#
# ## 6 · What a line costs
#
# Views are free. Everything else needs memory for its result.

# %%
predict("buffers_of_a_line")

# %% [markdown]
# Three rules say what a line needs. An operation takes memory for its result while its arguments are *still there*. A result that only served as an argument, a **temporary**, is freed right after that. And the left argument is computed before the right one, and *waits*. (A named tensor stays as long as its name: `x = f(x)` makes the new one beside the old one, in a loop, too.)
#
# By hand, `sqrt(x*x + y*y)`: the first product is there, 1; the second joins it, 2; the sum is made beside both, 3; both products go, 1; the root is made beside the sum, 2. The most is 3, although the line makes four tensors.

# %%
explore(figures.memory_timeline, line=list(EXPRESSIONS))

# %% [markdown]
# Operations whose name ends in `_` make no new tensor. They write into their first argument: `x.add_(y)`, `x.sqrt_()`, `torch.relu_(x)`. So does `x *= 2`; a function that is given `out=` writes there. So the hypotenuse needs 2:

# %%
x, y = torch.ones(2, 100_000).unbind()
for name, line in {"as it is": lambda x, y: (x * x + y * y).sqrt(), "in place": lambda x, y: (x * x).add_(y * y).sqrt_()}.items():
    print(f"{name}: x has {x.nbytes:,} bytes, the peak is {live_bytes(line, x, y).peak:,}")

# %% [markdown]
# ### Exercise 4 · What a line needs  (4 points · 12 min · ●●●)
#
# An expression is a name, `"x"`, or a list: an operation and its arguments, `["add", ["mul", "x", "x"], "y"]`. Return the most bytes alive at once while it is computed, beyond the inputs, which are there already.
#
# - Arguments are computed from left to right; each result waits until the operation that uses it has run.
# - An operation takes memory for its result before its arguments are freed: `sizes[operation]` bytes if `sizes` has it, else `size`. A size may be 0.
# - `"view"`, with one argument, takes nothing: its result lies in its argument's memory.
# - A name that ends in `_` writes into the memory of its first argument and returns it. If that is an input, or a view of one, raise `ValueError`: inputs must not change.

# %% exercise="peak_bytes"
def peak_bytes(expression: list | str, size: int, sizes: dict[str, int]) -> int:
    """The most bytes alive at once, beyond the inputs, while the expression is computed."""

    ### BEGIN SOLUTION
    def in_an_input(part: list | str) -> bool:
        return isinstance(part, str) or (part[0] == "view" and in_an_input(part[1]))

    def compute(part: list | str) -> tuple[int, int]:
        """The most bytes alive on the way, and those of the memory that holds the result: 0 for an input."""
        if isinstance(part, str):
            return 0, 0
        operation, *arguments = part
        alive, left = [], []
        for argument in arguments:
            inside, stays = compute(argument)
            alive.append(sum(left) + inside)
            left.append(stays)
        if operation.endswith("_") and in_an_input(arguments[0]):
            raise ValueError(f"{operation} would write into an input")
        if operation == "view" or operation.endswith("_"):
            return max(alive), left[0]
        new = sizes.get(operation, size)
        return max([*alive, sum(left) + new]), new

    return compute(expression)[0]
    ### END SOLUTION

# %% check="peak_bytes"

# %% [markdown]
# **In real models.** GELU written out as in GPT-2's code (choose it in the figure) makes eight tensors and needs three at once; the fused `F.gelu` makes one. On a GPU each is also a trip to memory and back, and these take the time (notebooks 11 and 19).
#
# ## 7 · Attention, line by line
#
# In most models q, k and v are slices of one tensor, here of shape (2, 512, 192): texts, tokens, features. Each is cut into four heads of 16. In a small one, with 5 tokens and heads of 8, who is at place 200? Ask your `index_at`:

# %%
q, k, v = (rearrange(x, "b s (h d) -> b h s d", h=h) for x in torch.empty(b, s, 3 * h * d).chunk(3, -1))
with your("index_at"):
    for name, x in {"q": q, "k": k}.items():
        print(f"place 200 in {name}:", index_at(200, [*x.shape], [*x.stride()], x.storage_offset()))

# %% [markdown]
# Place 200 is q's: text 0, head 1, token 2, feature 0. In memory q, k and v alternate, 32 numbers of each for every token.
#
# Now six lines of attention, with scores x and weights w of 8,388,608 bytes each, (2, 4, 512, 512) in fp32. `amax` and `sum` return 16,384 bytes, and `w @ v`, called `mix`, is as large as q, 262,144 bytes. Your `peak_bytes` predicts each line from the expression below it, and for the last one `view_strides` decides whether `reshape` copies. Beside the prediction is what PyTorch allocates:

# %%
with your("view_strides", "peak_bytes"):
    print_lines(peak_bytes, view_strides)

# %%
predict("two_lines_need_more")

# %%
with your("view_strides", "peak_bytes"):
    print("q as one batch of matrices:", view_strides([2, 4, 512, 16], [98_304, 16, 192, 1], [8, 512, 16]))
    print_lines(peak_bytes, view_strides, batched=True)

# %% [markdown]
# All six agree to the byte: the expressions now name the copies. A batched product wants *one* batch axis. In q a step from text to text is 98,304 numbers, and four heads are only $4 \cdot 16$: the axes cannot merge, so q is copied.
#
# ## 8 · Attention in little memory
#
# All of attention, as in a textbook (notebook 08 explains it). `triu(1)` keeps what is above the diagonal: −∞ where a token would see a later one. It always copies: the zeros have to be stored somewhere.

# %%
def textbook(q: Float[Tensor, "b s hd"], k: Float[Tensor, "b s hd"], v: Float[Tensor, "b s hd"], heads: int) -> Float[Tensor, "b s hd"]:
    q, k, v = (rearrange(x, "b s (h d) -> b h s d", h=heads) for x in (q, k, v))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores + torch.full((q.shape[2], q.shape[2]), -torch.inf).triu(1)
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    return rearrange(weights @ v, "b h s d -> b s (h d)")

# %%
predict("scores_at_once")

# %% tags=["nbval-ignore-output", "because it shows times measured on this machine"]
print_attention("the textbook", textbook)
print_attention("a fused kernel", fused)

# %% [markdown]
# Three tensors of 8,192 KiB, for a result of 256 KiB. (Inputs and the memory inside a kernel do not count.) Predict your lines before you write them:

# %%
with your("peak_bytes"):
    print(f'{peak_bytes(["mul_", ["matmul", "q", "k"], "0.25"], 8192, {}):,} KiB')

# %% [markdown]
# ### Exercise 5 · Attention in little memory  (4 points · 14 min · ●●●)
#
# Write the same function so that for 2 texts of 512 tokens and 4 heads of 16 **at most 560 KiB** are alive at once, the result included, and at most 3,200 of torch's operators run, views included.
#
# - At most 12,000 KiB, 5,000, 2,000 and 560 earn a point each, but only with at most 3,200 operators.
# - Fused attention is forbidden. Compute both products as matrix products, `@` or `einsum`: their FLOPs are counted.
# - The results must be right for any sizes, also for one token and for scores of ±1,000. Do not change the inputs.
# - Stay in torch: no threads, files, NumPy or lists of numbers. Many ways lead there.

# %% exercise="thrifty_attention"
def thrifty_attention(q: Float[Tensor, "b s hd"], k: Float[Tensor, "b s hd"], v: Float[Tensor, "b s hd"], heads: int) -> Float[Tensor, "b s hd"]:
    """Return what `textbook` returns, in at most 560 KiB for 2 texts of 512 tokens and 4 heads of 16."""
    ### BEGIN SOLUTION
    places, out = torch.arange(q.shape[1]), torch.empty_like(q)
    for text in zip(q, k, v, out, strict=True):
        for a, b, c, result in zip(*(x.chunk(heads, -1) for x in text), strict=True):
            for first in range(0, len(a), 64):
                rows, seen = slice(first, first + 64), slice(0, first + 64)
                scores = (a[rows] @ b[seen].T).mul_(a.shape[-1] ** -0.5)
                scores.masked_fill_(places[seen] > places[rows, None], -torch.inf)
                scores.sub_(scores.amax(-1, keepdim=True)).exp_()
                result[rows] = scores.div_(scores.sum(-1, keepdim=True)) @ c[seen]
    return out
    ### END SOLUTION

# %% tags=["nbval-ignore-output", "because it shows times measured on this machine"]
with your("thrifty_attention"):
    print_attention("thrifty_attention", thrifty_attention)

# %% check="thrifty_attention"

# %% [markdown]
# At the finish line, the next cell prints what others did, and fused kernels do:

# %%
with your("thrifty_attention"):
    print_other_ways(thrifty_attention)

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what is a tensor? | a row of numbers, and notes: shape, strides, offset, dtype |
# | what is a view? | other notes on the same numbers; free, and writing into it changes all of them |
# | when does `view` fail? | where axes would have to merge for which $s_k \ne s_{k+1}\, n_{k+1}$; splitting always works |
# | how do shapes broadcast? | aligned at the right, missing axes are 1, only a 1 stretches (stride 0) |
# | what is a head? | a block of neighbouring features, never a reshape across tokens |
# | what does a line need? | the most results alive at once; an operation makes its result beside its arguments, and left sides wait |
# | what does `@` copy? | a factor whose batch axes cannot merge |

# %% [markdown]
# ## Check yourself
#
# 1. A tensor has shape (5, 7) and strides (7, 1). What are the shape, strides and offset of `x[2:, ::3]`? And of its transpose?
# 2. Which of these can be a view of a tensor of shape (4, 6) and strides (1, 4): (24,), (2, 2, 6), (4, 3, 2), (8, 3)?
#
# <details><summary>Answers</summary>
#
# 1. Shape (3, 3), strides (7, 3), offset 14. Transposed: (3, 3), (3, 7), 14.
# 2. (2, 2, 6) and (4, 3, 2): they only split. (24,) and (8, 3) would have to merge 4 with (a part of) 6, and $1 \ne 4 \cdot 6$.
#
# </details>

# %% tags=["hide-input"]
x = torch.arange(12).view(3, 4)
assert x.flatten()[6] == x[1, 2] == 6 and (x.itemsize, x.stride()) == (8, (4, 1))
assert torch.empty_strided((2, 1, 3), (3, 50, 1)).is_contiguous()  # axes of size 1 aside
flat = torch.arange(24).view(3, 8)[:, ::2]
assert not flat.is_contiguous() and flat.stride() == (8, 2) and flat.view(12).data_ptr() == flat.data_ptr()
assert all(map(shares_with_x, ("x.diagonal()", "x.detach()"))) and not shares_with_x("x.triu()")
for seed in range(6):
    (right, *_), (wrong, w, targets) = train(seed, False), train(seed, True)
    assert math.isclose(right[0], wrong[0], rel_tol=1e-12) and right[-1] < 0.1 < wrong[-1]
    assert w[:3].abs().max() < 1e-6 and math.isclose(w[3], targets.mean(), rel_tol=1e-9)
    assert math.isclose(wrong[-1], targets.var(correction=0), rel_tol=1e-9)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    F.mse_loss(torch.ones(4), torch.ones(4, 1))
    assert "broadcasting" in str(caught[0].message)
p, y = torch.arange(5.0), torch.tensor([2.0, -1.0, 7.0, 3.0, 3.0])
pairs = ((p[:, None] - y) ** 2).mean()
assert torch.isclose(pairs, (p.mean() - y.mean()) ** 2 + p.var(correction=0) + y.var(correction=0))
assert pairs.data_ptr() == pairs.add_(1).mul_(2).relu_().data_ptr() == torch.exp(pairs, out=pairs).data_ptr()
for line, most in ((lambda x, y, z, w: x * y + (y * z + (z * w + w * x)), 5), (lambda x, y, z, w: x * y + y * z + z * w + w * x, 3)):
    assert live_bytes(line, *torch.ones(4, 1000)).peak == 4000 * most
gelu = live_bytes(lambda x: 0.5 * x * (1 + torch.tanh(0.798 * (x + 0.0447 * x**3))), torch.ones(1000))
fused_gelu = live_bytes(F.gelu, torch.ones(1000))
assert (gelu.peak, gelu.allocated, fused_gelu.peak, fused_gelu.allocated) == (12_000, 32_000, 4000, 4000)
qkv = torch.empty(2, 512, 192)
assert rearrange(qkv[..., :64], "b s (h d) -> b h s d", h=4).stride() == (98_304, 16, 192, 1)
assert (2 * 4 * 512 * 512 * 4, 2 * 4 * 512 * 4, 2 * 512 * 64 * 4) == (8_388_608, 16_384, 262_144)
part = torch.empty_strided((5, 7), (7, 1))[2:, ::3]
assert (tuple(part.shape), part.stride(), part.storage_offset(), part.T.stride()) == ((3, 3), (7, 3), 14, (3, 7))
assert torch.empty_strided((3, 2, 4), (8, 1, 2)).view(3, 2, 2, 2).stride() == (8, 1, 4, 2)
turned = torch.empty_strided((4, 6), (1, 4))
assert turned.view(2, 2, 6).shape + turned.view(4, 3, 2).shape == (2, 2, 6, 4, 3, 2)
for shape in ((24,), (8, 3)):
    with suppress(RuntimeError):
        raise AssertionError(f"{turned.view(shape).shape} is possible")

# %% [markdown]
# ## Further
#
# Each section needs the core, and no other section. Read them in any order.

# %% [markdown]
# ### A · Transpose by hand, who shares  (17 min)
#
# An element's place is found with its strides, and counted from 0:

# %%
predict("place_in_the_row")

# %% [markdown]
# The notes of some views of that `x`, by hand:
#
# | view | shape | strides | offset |
# | --- | --- | --- | --- |
# | `x` | (3, 4) | (4, 1) | 0 |
# | `x.t()` | (4, 3) | (1, 4) | 0 |
# | `x[1:]` | (2, 4) | (4, 1) | 4 |
# | `x[:, ::2]` | (3, 2) | (4, 2) | 0 |
# | `x[0].expand(3, 4)` | (3, 4) | (0, 1) | 0 |
#
# A step along an axis with stride 0 leads nowhere: three rows, one piece of memory. (So PyTorch refuses most writes into such a tensor, `add_` and `copy_` for example. `fill_` and `zero_` run: they write the same number everywhere.)
#
# Here are four other shapes. The first one is impossible: what does it lack? The last is a copy.

# %%
explore(figures.stride_map, view=list(RESHAPED), row=(0, 1), column=(0, 5))

# %% [markdown]
# ### Exercise 6 · Turn it without touching it  (2 points · 4 min · ●)
#
# Return `x` with axes `i` and `j` swapped, as a view: with `torch.as_strided`, which takes a tensor, sizes and strides. Functions that swap axes are forbidden. Axes may be negative, and there may be any number of them.

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

# %% [markdown]
# ### Exercise 7 · Who shares memory  (2 points · 6 min · ●●)
#
# Return True if `a` and `b` are in the same memory, whatever part of it each of them shows, else False. Two halves of one tensor share memory, although they have no element in common. A tensor's piece of memory is its *untyped storage*: `a.untyped_storage()`. Two tensors without any element, made separately, share nothing. Do it without NumPy.

# %% exercise="shares_storage"
def shares_storage(a: Tensor, b: Tensor) -> bool:
    """True if both are in the same memory, whatever part of it each shows."""
    ### BEGIN SOLUTION
    address = a.untyped_storage().data_ptr()
    return address == b.untyped_storage().data_ptr() and address != 0
    ### END SOLUTION

# %% check="shares_storage"

# %% [markdown]
# The table of section 2 again. Does your function agree?

# %%
with your("shares_storage"):
    judged = figures.sharing_table(yours=shares_storage)
judged

# %% [markdown]
# **In real models.** Tied embeddings (notebook 12) are two names for one memory, and a checkpoint that forgets this stores the embedding twice. The `safetensors` format refuses to save tensors that share memory for this reason. NumPy has strides, too, but in bytes, and they may be negative: `a[::-1]` is a view there. PyTorch has none below 0, so `flip` copies.
#
# ### B · What a stride costs  (6 min)
#
# A copy costs its bytes. What does a stride cost without one?

# %%
predict("every_eighth")

# %% tags=["nbval-ignore-output", "because it shows times measured on this machine"]
@one_thread()
def fastest_ms(function, runs: int = 40) -> float:
    """The shortest of some runs on one thread, in ms: other work on the machine can only add time."""
    return 1000 * time_it(function, repeats=runs).fastest


numbers = torch.ones(2**24)
for step in (1, 2, 4, 8, 16):
    print(f"numbers[::{step}].sum()".ljust(22), f"{len(numbers) // step:>10,} numbers {fastest_ms(numbers[::step].sum):8.3f} ms")
for n in (2048, 2064):
    square = torch.ones(n, n)
    free, plain, turned = [fastest_ms(f, 10) for f in (square.t, lambda s=square: s + 1, lambda s=square: s + s.t())]
    print(f"n = {n}   square.t() {free:.3f} ms   square + 1 {plain:.2f} ms   square + square.t() {turned:.1f} ms, {turned / plain:.0f} times")
print(f"lines alone: (1 + 16 + 1) / (1 + 1) = {(1 + 16 + 1) / (1 + 1):.0f} times")

# %% [markdown]
# An eighth of the numbers, about the same time. (On your machine they may differ by a factor of two.) Memory does not come by the number but by the **cache line**, 64 bytes on most processors: 16 floats of four bytes. From a step of 16 on each number costs a separate line, and the time may even rise there.

# %%
explore(figures.lines_touched, step=(1, 32))

# %% [markdown]
# Then why does `square + square.t()` take so much longer than `square + 1`? One of the two is read across its lines. If each of these reads fetched a line of its own, 16 lines would come where 1 is needed; with one line read and one written beside them that is 18 lines for 2, and the time would be 9 times as long. The rest is something else. Which lines a cache can keep at once depends on how far apart they are, and how fast an address is found depends on how many pages are in use. So the factor changes with the machine and with the size: on our machines it was between 14 and 137, the largest for 2048, whose rows begin exactly 8,192 bytes apart.
#
# **In real models.** "view size is not compatible with input tensor's size and stride" is one of the most quoted error messages of PyTorch; a release candidate of version 1.7 broke PyTorch's own ImageNet example with it (pytorch/examples, issue 836). GPUs read memory in sectors of 32 bytes and lines of 128, so neighbouring threads should read neighbouring numbers. GPU programs (*kernels*) are written around this.
#
# ### C · The common shape  (8 min)

# %% [markdown]
# ### Exercise 8 · The common shape  (2 points · 5 min · ●)
#
# Return the shape that any number of shapes broadcast to, as a list; raise `ValueError` if they do not fit together. No shapes at all give `[]`. A size may be 0. Do it without torch and NumPy.

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

# %% [markdown]
# Your function on some pairs. The last four are scores (b, h, s, t) and a mask that says which keys of each text are padding, (b, t) or (b, 1, 1, t). Predict each line before you run it:

# %%
pairs = [([64], [64, 1]), ([2, 1, 64], [3, 64]), ([3, 64], [64, 1]), ([2, 4, 2, 2], [2, 2]), ([2, 4, 2, 2], [2, 1, 1, 2])]
with your("broadcast_shape"):
    for one, other in [*pairs, ([2, 4, 5, 5], [2, 5]), ([2, 4, 5, 5], [2, 1, 1, 5])]:
        found = "ValueError"
        with suppress(ValueError):
            found = broadcast_shape(one, other)
        print(f"{one!s:14} with {other!s:14} {found}")

# %% [markdown]
# With 2 texts of 2 tokens there is no error: (2, t) is read as (s, t), and the mask of a *text* hides keys from a *query*. With 5 tokens there is one, fortunately. Write `mask[:, None, None, :]`.
#
# For `@` the last two axes multiply, and all others broadcast. So all dot products within each text are one line:

# %%
x, y = torch.ones(2, 3, 4), torch.ones(2, 3, 4)
print(tuple((x @ y.transpose(-2, -1)).shape), "  one matrix for all texts:", tuple((x @ torch.ones(4, 5)).shape))

# %% [markdown]
# **In real models.** Broadcasting is everywhere on purpose: a bias (d,) on activations (b, s, d), a mask (s, t) on scores (b, h, s, t), positions (s, d) on a batch. Alexander Rush argued in "Tensor Considered Harmful" (2019) that rules by position are the root of such bugs, and that axes should have names.
#
# ### D · Names for axes  (4 min)
#
# So give them names. `Float[Tensor, "batch seq hidden"]` is a type annotation by jaxtyping: a tensor of floats with three axes of these names. Most exercises of this course that take tensors are written that way.

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
# An annotation is documentation until something looks. `isinstance` does look: at the dtype, the number of axes, and whether equal names have equal sizes. Across several tensors the names have to be *bound*, which happens inside a context. One of the claims below is wrong, and the code runs all the same: its *result* has the shape that is promised. What is summed is another matter.

# %%
x, w = torch.ones(2, 5, 8), torch.ones(8, 12)
y = einsum(x, w, "b s d, d e -> b s e")
z = y.transpose(1, 2)
with jaxtyped("context"):
    for name, tensor, axes in (("x", x, "b s d"), ("y", y, "b s e"), ("z", z, "b s e"), ("z.sum(-1)", z.sum(-1), "b e")):
        print(f'{name:9} of shape {tuple(tensor.shape)!s:11} is "{axes}":', isinstance(tensor, Float[Tensor, axes]))
    print_bindings()

# %% [markdown]
# **In real models.** To check every call, jaxtyping needs a run-time type checker such as beartype or typeguard beside it. Most code bases use neither and write shapes in comments, which no program checks.
#
# ### E · From formula to code  (16 min)
#
# Papers write with indices: $C_{ik} = A_{ij} B_{jk}$. The convention behind it, as deep learning uses it: an index that the result does not have is **summed**; one that it has **stays**, and is computed for each of its values. The sum sign is left out; that was Einstein's idea.
#
# `einsum` is that formula as code. `einsum(a, b, "i j, j k -> i k")`: letters of the factors, an arrow, letters of the result. einops lets you write whole words, `"batch query width, batch key width -> batch query key"`, and `...` for all axes that are not named.

# %%
explore(figures.formula_to_code, formula=list(figures.FORMULAS))

# %% [markdown]
# $C_{ij} = A_{ij} B_{ij}$ sums nothing: it is the product element by element. And operators carry indices, too: $\text{softmax}_v(x_{bv})$ means "normalise over $v$, for each $b$". Written out, the sum needs a letter of its own:
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
# ### Exercise 9 · Four formulas  (4 points · 9 min · ●●)
#
# Translate these four, where $q$ has axes $b\,s\,h\,d$, $k$ has $b\,t\,h\,d$, $x$ has $b\,s\,e$, and $w$ has $e$. Return a dict with the four tensors under the names on the left. Every index that is missing on the left is summed. Keep the order of the axes on the left, and the dtype.
#
# $$\text{scores}_{bhst} = q_{bshd}\, k_{bthd} \qquad \text{gated}_{bse} = x_{bse}\, w_e \qquad \text{gram}_{ef} = x_{bse}\, x_{bsf} \qquad \text{norms}_{bh} = q_{bshd}\, q_{bshd}$$

# %% exercise="index_notation"
def index_notation(q: Float[Tensor, "b s h d"], k: Float[Tensor, "b t h d"], x: Float[Tensor, "b s e"], w: Float[Tensor, "e"]) -> dict[str, Tensor]:
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
# Wherever two factors share a summed index there is the same batched matrix product as under `@`, `bmm`: axes are moved and merged into (batch, rows, columns), multiplied, and moved back. So its price is that of `@`, plus a copy (`clone`) where merging needs one. Without such an index it is an ordinary product or sum.
#
# **In real models.** The first line is the heart of attention (notebook 08), the second is the matrix that K-FAC collects from the inputs of each layer (Martens and Grosse, 2015), the third a gain vector as in RMSNorm (10).

# %% [markdown]
# The scores of four heads of small slices, by your formula and by the line of section 7:

# %%
q, k, v = (rearrange(x, "b s (h d) -> b s h d", h=4) for x in torch.randn(2, 5, 96).chunk(3, -1))
with your("index_notation"):
    formula = index_notation(q, k, torch.ones(2, 5, 3), torch.ones(3))["scores"]
print(f"largest difference {(formula - q.transpose(1, 2) @ k.transpose(1, 2).mT).abs().max():.5f}")

# %% [markdown]
# ### F · Cut into heads  (8 min)
#
# `reduce(x, "... hidden -> ...", "sum")` is `x.sum(-1)`, and names the axis that goes. `rearrange` splits, merges and moves axes by name:

# %%
x = torch.arange(24.0).view(2, 3, 4)
shorter = reduce(x, "... hidden -> ...", "max")
print("reduce:", tuple(shorter.shape), "  largest difference from amax:", (shorter - x.amax(-1)).abs().max().item())
print("rearrange:", tuple(rearrange(x, "b s d -> (b s) d").shape), tuple(rearrange(x, "b s d -> d s b").shape))

# %% [markdown]
# ### Exercise 10 · Cut into heads  (2 points · 4 min · ●●)
#
# Split the last axis into `heads` blocks of neighbouring features, and put the heads in front of the tokens. The result must be a *view*: no number is copied. Raise `ValueError` if the features cannot be divided evenly. (The error that einops raises there is not a ValueError.)

# %% exercise="split_heads"
def split_heads(x: Float[Tensor, "b s hd"], heads: int) -> Float[Tensor, "b h s d"]:
    """Each head's block of neighbouring features, as a view."""
    ### BEGIN SOLUTION
    if x.shape[-1] % heads:
        raise ValueError(f"{x.shape[-1]} features do not make {heads} heads")
    return rearrange(x, "b s (h d) -> b h s d", h=heads)
    ### END SOLUTION

# %% check="split_heads"

# %% [markdown]
# There are other ways to get the shapes right, and no error tells them apart. Only the numbers do:

# %%
explore(figures.head_blocks, heads=[2, 3])

# %% [markdown]
# Attention with your split, beside the textbook of section 8:

# %%
x = torch.randn(3, 2, 7, 12).unbind()
with your("split_heads"):
    q, k, v = (split_heads(each, 3) for each in x)
    blend = F.scaled_dot_product_attention(q, k, v, is_causal=True)
print(f"largest difference {(rearrange(blend, 'b h s d -> b s (h d)') - textbook(*x, 3)).abs().max():.5f}")

# %% [markdown]
# **In real models.** The code of GPT-2 and Llama cuts heads with `view(b, s, h, d).transpose(1, 2)` and merges them with `transpose(1, 2)` and `reshape` or `contiguous().view`. einops says the same in one readable line (Rogozhnikov, 2022) and ends in the same strides.

# %% [markdown]
# ### G · Pick, and put back  (22 min)
#
# Two thousand texts end at different places. Where is the last word of each, without a loop? A slice cannot say: it takes the same places of every row. A tensor can be indexed with other tensors instead.

# %%
x = torch.arange(12).view(3, 4)
i = torch.tensor([[0, 3], [1, 1], [2, 0]])
for line in figures.PICKS:
    y = eval(line)
    shares = y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    print(f"{line:18} shape {tuple(y.shape)!s:10} {'shares' if shares else 'copies'}  {y.flatten().tolist()}")

# %% [markdown]
# The first line is a slice, a view. For the others there are five rules:
#
# - A **mask** of truth values picks the numbers where it is True, and returns them in a row: the shape is gone.
# - Two **lists pair up**: `x[[0, 1], [2, 3]]` is `x[0, 2]` and `x[1, 3]`, two numbers and not four. (Lists of different shapes are broadcast against each other first.)
# - Beside a `:` a list picks columns of every row.
# - An index tensor puts *its own shape* where the axis was: `x[:, i]` is (3,) and then (3, 2).
# - `gather` picks along one axis, and differently in each row: row 0 takes columns 0 and 3, row 1 column 1 twice. Its index has as many axes as `x`, and the result has the shape of the index.
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
# `scatter` is `gather` backwards: each number of the index says where one number goes. Which of two equal places wins is not promised. Where every number has to count, use the family that *adds*: `index_add` for whole rows, `scatter_add` for single numbers.

# %% [markdown]
# ### Exercise 11 · Four pictures without a loop  (4 points · 14 min · ●●●)
#
# A batch has b texts of s tokens, a vocabulary of v, and states of d features. Return a dict with four tensors:
#
# - `"said"` (b, s): of `scores` (b, s, v), at each place the score of the token that is there, `tokens` (b, s);
# - `"last"` (b, d): of `states` (b, s, d), the state of the last real token of each text; `lengths` (b) says how many tokens of each text are real, at least 1, and the rest is padding;
# - `"sums"` (count, d): row i is the sum of all `rows` (n, d) whose `owner` (n) is i, and 0 for an owner without rows (this is the gradient of a look-up: notebook 03);
# - `"best"` (b, s, v), truth values: True at the `k` best scores of each place, exactly `k` of them even if scores are equal.
#
# No loop, no comprehension, no `.tolist()`, `.item()`, NumPy or `torch.vmap`: the number of torch's operators must not depend on the number of texts. Gradients must pass through `"said"` and `"sums"`. Grading adds other sizes, 200,000 rows, texts without padding, and tokens of 32 bits.

# %% exercise="picked"
def picked(
    scores: Float[Tensor, "b s v"], tokens: Int[Tensor, "b s"], states: Float[Tensor, "b s d"], lengths: Int[Tensor, "b"],
    rows: Float[Tensor, "n d"], owner: Int[Tensor, "n"], count: int, k: int
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

# %% [markdown]
# `picked(...)["said"]` is half of a language model's loss. Three words, a vocabulary of four, and what the model gave to each word:

# %%
p = torch.tensor([[[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25], [0.1, 0.2, 0.6, 0.1]]])
words, states = torch.tensor([[0, 3, 1]]), torch.zeros(1, 3, 2)
with your("picked"):
    said = picked(p.log(), words, states, torch.tensor([3]), states[0], words[0], 4, 1)["said"]
    print("log p of the words", [round(n, 3) for n in said[0].tolist()], f"  loss {-said.mean():.3f}")

# %% [markdown]
# **In real models.** The first is half of every language model's loss (notebook 05), the second how a classifier reads padded texts, the third what the backward pass of an embedding does, and the fourth top-k sampling (17) and the choice of experts in a mixture. On a GPU the adding kinds are fast but do not repeat to the last bit: the threads add in the order in which they arrive, and sums of floats depend on it (01).
#
# ### H · Created empty, moved over a bus  (2 min)
#
# A tensor can have notes before it has numbers: `torch.empty(4, 8)` takes a piece of memory, and the numbers are whatever was there. Then weights get their first numbers. `trunc_normal_` draws from a normal distribution and draws again what is outside −2 and 2, so the spread is smaller than the 1 that you asked for:

# %%
generator = torch.Generator().manual_seed(0)
weight = torch.nn.init.trunc_normal_(torch.empty(1000, 1000), 0.0, 1.0, -2.0, 2.0, generator=generator)
print(f"largest {weight.abs().max():.2f}, standard deviation {weight.std():.2f}")

# %% [markdown]
# Tensors start in main memory. `x.to("cuda")` copies them to the memory of a GPU, over PCIe. How long that takes is bytes over bandwidth, and a GB/s is $10^9$ bytes per second:

# %%
for name, size in {"token ids, 8 × 2,048, int64": 8 * 2048 * 8, "GPT-3's 12,288 × 49,152, fp32": 12_288 * 49_152 * 4, "7 billion weights, bf16": 14 * 10**9}.items():
    print(f"{name:30} {size:14,} bytes   PCIe 4.0 {1000 * size / 32e9:9.3f} ms   PCIe 5.0 {1000 * size / 63e9:9.3f} ms")

# %% [markdown]
# In that time the GPU could use the matrix many times. So weights move once and stay, and what moves in every step, the token ids, is small. Loading a model of 7 billion weights is usually limited by the disk, not by these 0.44 s. Where weights do not fit and are fetched for every token ("offloading"), each *token* costs them. Pinned memory, which makes such copies fast, comes in notebook 07.

# %% [markdown]
# ## Further reading
#
# - The PyTorch reference on `Tensor.view`, which states the rule of section 3, and on tensor views, which lists them all; Edward Yang's "PyTorch internals" (2019), with pictures of strides.
# - Rogozhnikov, 2022, *Einops: clear and reliable tensor manipulations with Einstein-like notation*; Rush, 2019, *Tensor considered harmful*.
# - The documentation of NumPy on broadcasting and on advanced indexing, and of jaxtyping on what its annotations can say.
# - Rush, *Tensor Puzzles*: 21 more tasks of the kind of Exercise 11.
# - Sethi and Ullman, 1970, *The generation of optimal code for arithmetic expressions*: which side of an operation to compute first.
# - In this package: `lmcourse.accounting.live`, which counts storages while they live, and `lmcourse.accounting.saved`, which lists what autograd keeps.

# %% tags=["hide-input"]
x = torch.arange(12).view(3, 4)
views = {name: eval(name) for name in VIEWS if name != "x.t().view(2, 6)"}
notes = {name: (tuple(y.shape), y.stride(), y.storage_offset()) for name, y in views.items()}
assert notes["x.t()"] == ((4, 3), (1, 4), 0) and notes["x[1:]"] == ((2, 4), (4, 1), 4)
assert notes["x[:, ::2]"] == ((3, 2), (4, 2), 0) and x[0].expand(3, 4).stride() == (0, 1)
x[0].expand(3, 4).fill_(1)
x[0].expand(3, 4).zero_()
for write in (lambda y: y.add_(1), lambda y: y.copy_(torch.ones(3, 4))):
    with suppress(RuntimeError):
        write(x[0].expand(3, 4))
        raise AssertionError("an expanded tensor can be written into")
assert (2**24, 64 // 4, 2048 * 4) == (16_777_216, 16, 8192)
assert round(14 / 32, 2) == 0.44
