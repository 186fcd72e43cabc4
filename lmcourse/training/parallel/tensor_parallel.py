"""Tensor and sequence parallelism: which matrix is sharded along which dimension.

Of two successive matrices, the first is sharded by its outputs (column-wise) and the second by its inputs (row-wise).
Each process computes some heads, or some hidden features, and one all-reduce adds the results (Shoeybi et al., 2019,
section 3). With sequence parallelism the activations in between (norms, dropout, the residual stream) are sharded along
the tokens: they are gathered before the first matrix, and reduced and scattered after the second (Korthikanti et al.,
2022, section 4.2).

Embedding and head are both sharded along the vocabulary, so they can be tied; the logits are gathered for the loss.
"""

from __future__ import annotations

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from lmcourse.nn.attention import Attention
from lmcourse.nn.embedding import Embedding, Head
from lmcourse.nn.feed_forward import FeedForward, GatedFeedForward
from lmcourse.nn.norm import Norm

Plan = dict[str, ParallelStyle]
"""The names of layers, and the style in which torch shards each."""


def apply_plan(model: nn.Module, mesh: DeviceMesh, *, sequence: bool) -> None:
    """Shard a checked model, or a stage of it, in place. Its fused matrices must be split already (`split_linear`).

    `mesh` is the dimension "tensor_parallel". With `sequence` the residual stream is sharded along the tokens.
    """
    parallelize_module(model, mesh, make_plan(model, sequence=sequence))
    for module in model.modules():
        if isinstance(module, Attention):
            _set_local_heads(module, mesh.size())
    _tie(model)


def make_plan(model: nn.Module, *, sequence: bool) -> Plan:
    """Return the style of each layer to be sharded, by its name in the model; `sequence` as in `apply_plan`."""
    stream: Placement = Shard(1) if sequence else Replicate()
    plan: Plan = {}
    inside = set()  # modules in which norms are not on the residual stream
    for name, module in model.named_modules():
        match module:
            case Attention():
                plan |= _attention(name, module, stream)
                inside |= set(module.qk_transform.modules())
            case FeedForward() | GatedFeedForward():
                plan |= _feed_forward(name, module, stream)
            case Embedding():
                plan |= _embedding(name, stream)
                inside |= set(module.modules())
            case Head():
                plan |= _head(name, stream)
            case Norm() if sequence and module not in inside:
                plan[name] = SequenceParallel(use_local_output=True)
    return plan


def _gather(stream: Placement, *, more: int = 0) -> PrepareModuleInput:
    """All-gather a layer's first input along the tokens, once for all matrices; `more` further inputs do not change."""
    rest = (None,) * more
    return PrepareModuleInput(
        input_layouts=(stream, *rest), desired_input_layouts=(Replicate(), *rest), use_local_output=False
    )


def _attention(name: str, attention: Attention, stream: Placement) -> Plan:
    plan: Plan = {name: _gather(stream, more=1), f"{name}.out": RowwiseParallel(output_layouts=stream)}
    plan |= {f"{name}.qkv.{part}": ColwiseParallel() for part in ("q", "k", "v")}
    for norm in ("norm_q", "norm_k"):
        # The norm's inputs [batch, heads, tokens, d_head] are sharded by heads, dimension 1.
        if isinstance(getattr(attention.qk_transform, norm), Norm):
            plan[f"{name}.qk_transform.{norm}"] = SequenceParallel(sequence_dim=1, use_local_output=True)
    return plan


def _feed_forward(name: str, layer: FeedForward | GatedFeedForward, stream: Placement) -> Plan:
    ups = ("gate_up.gate", "gate_up.up") if isinstance(layer, GatedFeedForward) else ("up",)
    plan: Plan = {name: _gather(stream), f"{name}.down": RowwiseParallel(output_layouts=stream)}
    return plan | {f"{name}.{up}": ColwiseParallel() for up in ups}


def _embedding(name: str, stream: Placement) -> Plan:
    """Shard the tokens after positions are added to the whole sequence."""
    return {
        f"{name}.tokens": RowwiseParallel(input_layouts=Replicate()),
        name: PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=stream),
    }


def _head(name: str, stream: Placement) -> Plan:
    return {name: _gather(stream), f"{name}.linear": ColwiseParallel(output_layouts=Replicate())}


def _tie(model: nn.Module) -> None:
    """Tie embedding and head again if they were tied, because they were sharded separately and both are here."""
    embedding, head = getattr(model, "embedding", None), getattr(model, "head", None)
    if embedding is None or not isinstance(head, Head) or not model.config.head.tied:  # type: ignore[union-attr]
        return
    if isinstance(embedding, Embedding):
        head.linear.weight = embedding.tokens.weight
    else:
        embedding.get_submodule("tokens").weight = head.linear.weight


def _set_local_heads(attention: Attention, processes: int) -> None:
    """Set the numbers of heads in a layer to the numbers that one process computes."""
    attention.heads //= processes
    attention.kv_heads //= processes
    attention.qk_transform.heads = [attention.heads, attention.kv_heads]


def reduce_partial_grad(parameter: nn.Parameter) -> None:
    """Sum a gradient over processes if DTensor has not done so (`Partial`), as for norms with sequence parallelism."""
    if isinstance(parameter, DTensor) and isinstance(parameter.grad, DTensor):
        parameter.grad = parameter.grad.redistribute(placements=parameter.placements)
