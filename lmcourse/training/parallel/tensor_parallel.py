"""Tensor and sequence parallelism: which matrix is cut along which side. All of it is in this file.

Of two matrices that follow each other the first is cut by its outputs and the second by its inputs: each process has
some heads, or some hidden features, from beginning to end, and their results are added once (Shoeybi et al., 2019).
With sequence parallelism what lies between (norms, dropout, the residual stream) is cut along the tokens
(Korthikanti et al., 2022): they are gathered before the first matrix and cut again after the second.

The embedding is cut by its tokens and the head likewise, so they can be one matrix; logits are gathered for the loss.
"""

from __future__ import annotations

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Placement, Replicate, Shard
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
"""The names of layers, and what becomes of them."""


def apply_plan(model: nn.Module, mesh: DeviceMesh, *, sequence: bool) -> None:
    """Cut a model, in place. It has been checked (`checks`) and its fused matrices are split (`split_linear`).

    Args:
        model: the model, or a stage of it.
        mesh: the side "tensor".
        sequence: whether the residual stream is cut too.
    """
    parallelize_module(model, mesh, make_plan(model, sequence=sequence))
    for module in model.modules():
        if isinstance(module, Attention):
            _keep_own_heads(module, mesh.size())
    _tie(model)


def make_plan(model: nn.Module, *, sequence: bool) -> Plan:
    """The tensor-parallel style of each layer of a model."""
    stream: Placement = Shard(1) if sequence else Replicate()
    plan: Plan = {}
    inside = set()  # norms that are not on the residual stream
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
    """Before a layer: all tokens. Layers that read the same gather it, and add up its gradients, once."""
    rest = (None,) * more
    return PrepareModuleInput(
        input_layouts=(stream, *rest), desired_input_layouts=(Replicate(), *rest), use_local_output=False
    )


def _attention(name: str, attention: Attention, stream: Placement) -> Plan:
    plan: Plan = {name: _gather(stream, more=1), f"{name}.out": RowwiseParallel(output_layouts=stream)}
    plan |= {f"{name}.qkv.{part}": ColwiseParallel() for part in ("q", "k", "v")}
    for norm in ("norm_q", "norm_k"):
        if isinstance(
            getattr(attention.qk_transform, norm), Norm
        ):  # its inputs are cut by heads, which are axis 1 there
            plan[f"{name}.qk_transform.{norm}"] = SequenceParallel(sequence_dim=1, use_local_output=True)
    return plan


def _feed_forward(name: str, layer: FeedForward | GatedFeedForward, stream: Placement) -> Plan:
    ups = ("gate_up.gate", "gate_up.up") if isinstance(layer, GatedFeedForward) else ("up",)
    plan: Plan = {name: _gather(stream), f"{name}.down": RowwiseParallel(output_layouts=stream)}
    return plan | {f"{name}.{up}": ColwiseParallel() for up in ups}


def _embedding(name: str, stream: Placement) -> Plan:
    """Positions are added to all tokens; only then are they cut."""
    return {
        f"{name}.tokens": RowwiseParallel(input_layouts=Replicate()),
        name: PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=stream),
    }


def _head(name: str, stream: Placement) -> Plan:
    return {name: _gather(stream), f"{name}.linear": ColwiseParallel(output_layouts=Replicate())}


def _tie(model: nn.Module) -> None:
    """Embedding and head that were one matrix are one again: each was cut. A last stage has only the head."""
    embedding, head = getattr(model, "embedding", None), getattr(model, "head", None)
    if embedding is None or not isinstance(head, Head) or not model.config.head.tied:  # type: ignore[union-attr]
        return
    if isinstance(embedding, Embedding):
        head.linear.weight = embedding.tokens.weight
    else:
        embedding.get_submodule("tokens").weight = head.linear.weight


def _keep_own_heads(attention: Attention, process_group: int) -> None:
    attention.heads //= process_group
    attention.kv_heads //= process_group
    attention.qk_transform.heads = [attention.heads, attention.kv_heads]
