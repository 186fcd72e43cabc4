"""Bytes that a training step needs in addition to its states, at each moment that can be the peak.

Autograd *keeps* tensors until the backward pass has used them, and the backward pass creates gradients next to them. So
the peak is higher than the kept memory: with a large vocabulary, three times as high.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from math import ceil

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.forward_pass import STATISTIC
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.workload import Workload
from lmcourse.models.config import TransformerConfig
from lmcourse.nn.block import LayerConfig

NORM_BACKWARD = {"rms": 4, "layer": 2}
"""Number of tensors as large as a norm's input that its backward pass holds. On a CPU, RMSNorm is a chain of
products."""


def step_moments(workload: Workload) -> list[Breakdown[int]]:
    """Return the bytes beyond weights, gradients and optimizer at each moment of a step, by part.

    The moments are, in this order: the backward pass of the loss and the head; the end of the forward pass, if autocast
    copies the weights of checkpointed blocks; the backward pass of the last block, after its recomputation if blocks
    are checkpointed; the backward pass of the embedding; and the optimizer step. With ZeRO's stage 3, they are those of
    `_sharded`, with weights and gradients that are whole for a while.

    The backward pass of the loss holds the log-probabilities that `next_token_loss` kept, their gradient, and the
    gradient of the logits, all in fp32: 3 · 4 · batch · seq_len · vocabulary bytes.
    """
    config, recipe, saved = workload.config, workload.recipe, workload.saved_bytes()
    weight, product = recipe.dtype.itemsize, recipe.product_bytes
    tokens, d = workload.tokens, config.d_model
    numbers, stream = tokens * config.vocab_size, tokens * d * weight
    kept = {"activations": saved.total - saved["head and loss"]}
    copies = (2 + 2 * workload.z_loss) * numbers * STATISTIC
    matrix = config.vocab_size * (config.embedding.width or d)
    head = matrix * weight
    # When the head's gradient is computed and added to the existing one, the log-probabilities are already freed.
    made = matrix * product + tokens * d * product
    after_loss = numbers * (product - STATISTIC) + made
    if recipe.autocast:  # adding needs an fp32 copy; the 16-bit copies of logits and head are already freed
        after_loss = max(after_loss, made + head - matrix * product - saved["head and loss"])
    logits = {**kept, "logits": saved["head and loss"]}
    moments = [{**logits, "loss backward": max(copies, after_loss)}]
    forward_end = {**kept, "logits": (numbers + tokens * d) * product}
    recomputes = workload.activation_checkpointing == "blocks"
    if recipe.autocast and recomputes:
        # Autocast keeps its copies of all weights until the end of the forward pass, even with recomputation.
        every = replace(workload, activation_checkpointing="nothing").saved_bytes()["weight copies"]
        forward_end["weight copies"] = every - saved["weight copies"]
        moments.append(forward_end)
    largest_block = workload.largest_block_bytes() if recomputes or workload.sharded else 0
    backward = _block_backward(workload)
    block = {"block backward": max(_norm_backward(workload), backward)}
    if recomputes:  # the block's input is already counted
        block = {"recomputed block": largest_block, "block backward": max(0, backward - stream)}
    # The sum of a tied matrix's two gradients is a third tensor, unless autocast has already copied one of them.
    tables = (3 - recipe.autocast) if config.head.tied else 1
    embedding = {"embedding backward": tables * head + stream}
    if workload.sharded:
        inner = kept["activations"] - matrix * product * recipe.autocast  # without the copy of the head's matrix
        moments = _sharded(
            workload,
            freed=stream if recomputes else largest_block,
            loss={**logits, "loss backward": copies},
            head={**logits, "loss backward": after_loss},
            forward=forward_end,
            block={"activations": inner, **block, "head backward": head},
            embedding=embedding | ({} if config.head.tied else {"head backward": head}),
        )
    else:  # a tied head's gradient is kept until the embedding's is added
        moments += [{**kept, **block, "head backward": head if config.head.tied else 0}, embedding]
    if recipe.matrix_moments is not None:
        moments.append({"optimizer step": muon_bytes(config)})
    return [Breakdown({part: size for part, size in parts.items() if size}) for parts in moments]


def _norm_backward(workload: Workload) -> int:
    """Return the bytes that the backward pass of a norm allocates."""
    config = workload.config
    copies = NORM_BACKWARD[(config.final_norm or config.block.norm).kind]
    return copies * workload.tokens * config.d_model * max(workload.recipe.dtype.itemsize, STATISTIC)


def _block_backward(workload: Workload) -> int:
    """Return the bytes that the backward pass of a feed-forward layer adds to the kept tensors, minus the last norm's
    input, which is already freed.

    These are the gradient of the residual stream and the larger of two: the gradients of all kept hidden vectors; or
    those of one hidden vector and of the last matrix, in the format of products and, with autocast, in fp32, too.
    """
    config, recipe, tokens = workload.config, workload.recipe, workload.tokens
    weight, product, norm = recipe.dtype.itemsize, recipe.product_bytes, config.final_norm
    last = 0 if norm is None else (2 if norm.kind == "rms" else 1) * max(weight, STATISTIC)
    stream = tokens * config.d_model * (weight - last)
    matrix = config.d_model * (product + weight * recipe.autocast)
    layers = {layer.feed_forward for layer in config.layers}
    hidden = (layer.width * (tokens * product + max(layer.gated * tokens * product, matrix)) for layer in layers)
    return max(0, stream + max(hidden))


def _sharded(
    workload: Workload, *, freed: int, block: dict[str, int], **others: dict[str, int]
) -> list[dict[str, int]]:
    """Return the moments of a step with what is whole for a while: measured with FSDP2, whose rules these are.

    Going forward, a gathered buffer is freed when the next block's weights arrive; going back, the weights of the next
    block are gathered while a block computes. At its end a block has its whole gradients, and no longer the `freed`
    bytes of its activations; the gradients of the block after it are still being summed, in the gradients' format. So
    the last block and the one before are apart, each with its start and its end.
    """
    layer, ends = _gathered(workload)
    summed = ceil(layer / workload.recipe.dtype.itemsize * workload.recipe.gradients)
    gathered = {"loss": 0, "head": ends + layer, "forward": ends + 2 * layer, "embedding": ends}
    moments = [{**others[name], "gathered weights": size} for name, size in gathered.items()]
    moments[-1]["whole gradients"] = summed
    for done in range(min(2, len(workload.config.layers))):
        weights = {"gathered weights": ends + layer * (1 + (done + 1 < len(workload.config.layers)))}
        at_end = {"activations": block["activations"] - freed, "head backward": block["head backward"]}
        moments.append({**block, **weights, "whole gradients": done * summed})
        moments.append({**at_end, **weights, "whole gradients": layer + done * summed})
        block = {**block, "activations": at_end["activations"]}
    return moments


def _gathered(workload: Workload) -> tuple[int, int]:
    """Return the bytes of the weights of the largest layer, and of all weights outside the layers.

    FSDP2 gathers each of the two as a whole, in the format of the weights that the forward pass reads.
    """
    config = workload.config

    def size(*layers: LayerConfig) -> int:
        return workload.recipe.dtype.itemsize * count_parameters(config.with_(layers=layers)).total

    layers = {layer: size(layer, layer) - size(layer) for layer in dict.fromkeys(config.layers)}
    return max(layers.values()), size(*config.layers) - sum(layers[layer] for layer in config.layers)


def muon_bytes(config: TransformerConfig) -> int:
    """Return the bytes that a step of Muon allocates. Matrices of the same shape are updated together, in fp32.

    For n numbers in a batch of matrices with m rows, these are: the averages of all matrices that are fused in the same
    way; three times n numbers (the input of Newton–Schulz, and its x before and after a product); and two Gram matrices
    of m × m per matrix.
    """
    fused: dict[tuple[int, ...], Counter[tuple[int, int]]] = defaultdict(Counter)
    for group in config.matrices.layers:
        *qkv, out = group.attention
        *up, down = group.feed_forward
        for matrices in (qkv, up, [out], [down]):
            heights = tuple(matrix.outputs for matrix in matrices) if len(matrices) > 1 else ()
            for matrix in matrices:
                short, long = sorted((matrix.inputs, matrix.outputs))
                fused[heights][short, long] += group.times
    most = 0
    for shapes in fused.values():
        averages = sum(times * short * long for (short, long), times in shapes.items())
        done = 0
        for (short, long), times in shapes.items():
            batch = times * short * long
            most = max(most, averages + done + 3 * batch + 2 * times * short**2)
            done += batch
    return most * STATISTIC
