# %% [markdown]
# # 10 · Normalization and blocks
#
# **110 min · 10 exercises · 24 points**

# %%
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from lmcourse.notebook import check, explore, hint, predict, start

start("10-normalization-and-blocks")

# %%
predict("scale_of_the_gradient")

# %%
predict("twice_as_large_in_fp16")

# %%
predict("from_layer_to_rms")

# %%
predict("faster_norm")

# %%
predict("left_after_12_blocks")

# %%
predict("post_norm_gradients")

# %%
predict("deep_post_norm")

# %%
predict("parallel_flops")

# %% [markdown]
# ### Exercise 1 · T  (2 points · 6 min · ●)

# %% exercise="layer_norm"
def layer_norm(
    x: Float[Tensor, "*batch d"], scale: Float[Tensor, "d"], shift: Float[Tensor, "d"], eps: float = 1e-5
) -> Float[Tensor, "*batch d"]:
    """(x − mean) / √(variance + eps), feature by feature times scale plus shift; in the dtype of x."""
    ### BEGIN SOLUTION
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = wide - wide.mean(dim=-1, keepdim=True)
    root = (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return (centred / root * scale + shift).to(x.dtype)
    ### END SOLUTION


# %% check="layer_norm"
check(layer_norm)
### BEGIN HIDDEN TESTS
check(layer_norm, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 2 · T  (2 points · 6 min · ●)

# %% exercise="rms_norm"
def rms_norm(x: Float[Tensor, "*batch d"], scale: Float[Tensor, "d"], eps: float = 1e-6) -> Float[Tensor, "*batch d"]:
    """x / √(mean square + eps), feature by feature times scale; in the dtype of x."""
    ### BEGIN SOLUTION
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    root = (wide.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return (wide / root * scale).to(x.dtype)
    ### END SOLUTION


# %% check="rms_norm"
check(rms_norm)
### BEGIN HIDDEN TESTS
check(rms_norm, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 3 · T  (3 points · 10 min · ●●●)

# %% exercise="centre_writers"
def centre_writers(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a model that computes the same, and whose residual stream has mean 0 everywhere."""
    ### BEGIN SOLUTION
    centred = {}
    for name, weight in weights.items():
        kind = name.split(".")[0]
        if kind in ("embedding", "positions"):
            weight = weight - weight.mean(dim=-1, keepdim=True)
        elif kind in ("out", "out_bias", "down", "down_bias"):
            weight = weight - weight.mean(dim=0)
        centred[name] = weight
    return centred
    ### END SOLUTION


# %% check="centre_writers"
check(centre_writers)
### BEGIN HIDDEN TESTS
check(centre_writers, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 4 · T  (2 points · 6 min · ●●)

# %% exercise="fold_norm"
def fold_norm(
    scale: Float[Tensor, "d"],
    shift: Float[Tensor, "d"],
    weight: Float[Tensor, "n d"],
    bias: Float[Tensor, "n"] | None,
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n"]]:
    """Weight and bias of a layer that does on x̂ what this one does on scale · x̂ + shift."""
    ### BEGIN SOLUTION
    moved = weight @ shift
    return weight * scale, moved if bias is None else moved + bias
    ### END SOLUTION


# %% check="fold_norm"
check(fold_norm)
### BEGIN HIDDEN TESTS
check(fold_norm, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 5 · T  (1 point · 3 min · ●)

# %% exercise="narang_gain"
narang_gain = None  # {"faster": ..., "time_saved": ...} in place of None
### BEGIN SOLUTION
narang_gain = {"faster": 3.68 / 3.5 - 1, "time_saved": 1 - 3.5 / 3.68}
### END SOLUTION

# %% check="narang_gain"
check(narang_gain=narang_gain)
### BEGIN HIDDEN TESTS
check(narang_gain=narang_gain, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 6 · T  (3 points · 8 min · ●●●)

# %% exercise="contributions"
def contributions(
    parts: Float[Tensor, "n d"], scale: Float[Tensor, "d"], row: Float[Tensor, "d"], eps: float = 1e-6
) -> Float[Tensor, "n"]:
    """What each part of the stream adds to the logit of the token whose row of the head is `row`."""
    ### BEGIN SOLUTION
    root = (parts.sum(dim=0).square().mean() + eps).sqrt()
    return parts @ (scale * row) / root
    ### END SOLUTION


# %% check="contributions"
check(contributions)
### BEGIN HIDDEN TESTS
check(contributions, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 7 · T  (4 points · 10 min · ●●)

# %% exercise="residual"
def residual(
    x: Float[Tensor, "*batch d"], f: Callable, before: Callable | None, after: Callable | None, placement: str
) -> Float[Tensor, "*batch d"]:
    """The stream after a branch f with its norms: "pre", "post", "double" or "output"."""
    ### BEGIN SOLUTION
    if placement == "pre":
        return x + f(before(x))
    if placement == "post":
        return after(x + f(x))
    if placement == "double":
        return x + after(f(before(x)))
    if placement == "output":
        return x + after(f(x))
    raise ValueError(f"a norm's placement is pre, post, double or output, not {placement!r}")
    ### END SOLUTION


# %% check="residual"
check(residual)
### BEGIN HIDDEN TESTS
check(residual, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 8 · T  (2 points · 6 min · ●●)

# %% exercise="embedding_share"
def embedding_share(blocks: int, placement: str) -> float:
    """The cosine of the embedding with the stream after so many blocks."""
    ### BEGIN SOLUTION
    if placement not in ("pre", "post", "double", "output") or blocks < 0:
        raise ValueError(f"no model has {blocks} blocks with norms {placement!r}")
    return 0.5**blocks if placement == "post" else (1 + 2 * blocks) ** -0.5
    ### END SOLUTION


# %% check="embedding_share"
check(embedding_share)
### BEGIN HIDDEN TESTS
check(embedding_share, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 9 · T  (3 points · 8 min · ●●)

# %% exercise="block"
def block(
    x: Float[Tensor, "b s d"],
    attention: Callable,
    feed_forward: Callable,
    norm_1: Callable,
    norm_2: Callable | None,
    parallel: bool,
) -> Float[Tensor, "b s d"]:
    """The stream after a pre-norm block, serial or parallel."""
    ### BEGIN SOLUTION
    normed = norm_1(x)
    added = attention(normed)
    if parallel:
        return x + added + feed_forward(normed)
    stream = x + added
    return stream + feed_forward(norm_2(stream))
    ### END SOLUTION


# %% check="block"
check(block)
### BEGIN HIDDEN TESTS
check(block, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 10 · T  (2 points · 5 min · ●)

# %% exercise="norm_parameters"
def norm_parameters(layers: int, d_model: int, kind: str, placement: str) -> int:
    """The numbers in all norms of a model."""
    ### BEGIN SOLUTION
    per_block = {"pre": 2, "post": 2, "double": 4, "output": 2}
    per_norm = {"layer": 2 * d_model, "rms": d_model}
    if placement not in per_block or kind not in per_norm:
        raise ValueError(f"no model has {kind!r} norms placed {placement!r}")
    norms = layers * per_block[placement] + (placement != "post")
    return norms * per_norm[kind]
    ### END SOLUTION


# %% check="norm_parameters"
check(norm_parameters)
### BEGIN HIDDEN TESTS
check(norm_parameters, hidden=True)
### END HIDDEN TESTS

