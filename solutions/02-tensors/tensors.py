# %% [markdown]
# # 02 · Tensors
#
# **90 min · 10 exercises · 25 points**

# %%
import math
from itertools import zip_longest

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from lmcourse.notebook import check, explore, hint, predict, start

start("02-tensors")

# %% [markdown]
# ### Exercise 1 · Where an element lies  (2 points · 4 min · ●)


# %% exercise="element_offset"
def element_offset(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    """Where in memory the element with this index lies: [1, 2] of a fresh 3 × 4 tensor at 6."""
    ### BEGIN SOLUTION
    for i, n, stride in zip(index, shape, strides, strict=True):
        if not -n <= i < n:
            raise IndexError(f"{i} is no index of an axis of size {n}")
        offset += i % n * stride
    return offset
    ### END SOLUTION


# %% check="element_offset"
check(element_offset)
### BEGIN HIDDEN TESTS
check(element_offset, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 2 · Turn it without touching it  (2 points · 4 min · ●)


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
# ### Exercise 3 · Who shares memory  (2 points · 6 min · ●●)


# %% exercise="shares_storage"
def shares_storage(a: Tensor, b: Tensor) -> bool:
    """Whether both lie in the same memory, whatever part of it each shows."""
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
# ### Exercise 4 · When a view is possible  (4 points · 12 min · ●●●)


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
# ### Exercise 5 · The common shape  (2 points · 5 min · ●)


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
# ### Exercise 6 · Four formulas  (4 points · 9 min · ●●)


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
# ### Exercise 7 · Cut into heads  (2 points · 4 min · ●●)


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
# ### Exercise 8 · And back  (2 points · 4 min · ●●)


# %% exercise="merge_heads"
def merge_heads(x: Float[Tensor, "b h s d"]) -> Float[Tensor, "b s hd"]:
    """The heads of each token side by side: the way back."""
    ### BEGIN SOLUTION
    return rearrange(x, "b h s d -> b s (h d)")
    ### END SOLUTION


# %% check="merge_heads"
check(merge_heads)
### BEGIN HIDDEN TESTS
check(merge_heads, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 9 · What a line needs  (4 points · 10 min · ●●●)


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
# ### Exercise 10 · Over the bus  (1 point · 3 min · ●)


# %% exercise="transfer_seconds"
def transfer_seconds(shape: list[int], bytes_each: int, gigabytes_per_second: float) -> float:
    """How long a tensor takes over the link, in seconds."""
    ### BEGIN SOLUTION
    return math.prod(shape) * bytes_each / (gigabytes_per_second * 1e9)
    ### END SOLUTION


# %% check="transfer_seconds"
check(transfer_seconds)
### BEGIN HIDDEN TESTS
check(transfer_seconds, hidden=True)
### END HIDDEN TESTS
