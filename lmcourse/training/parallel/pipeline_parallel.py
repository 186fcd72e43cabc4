"""Pipeline parallelism: each process has a stage of the model, and micro-batches pass from stage to stage.

The schedules are GPipe (Huang et al., 2019) and 1F1B (Narayanan et al., 2021, section 2.2), both in torch's
implementation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor

from lmcourse.data.batch import IGNORE_INDEX, Batch
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.nn.context import ForwardContext
from lmcourse.nn.embedding import Embedding
from lmcourse.training.distributed_context import DistributedContext
from lmcourse.training.parallel.tensor_parallel import reduce_partial_grad
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.step import accumulate_gradients, mean_loss
from lmcourse.training.training_config import TrainingConfig

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


class ModelStage(nn.Module):
    """Some of a model's blocks, with the embedding in the first stage and the head in the last.

    Parameters keep their names in the model. If the head is tied to the embedding, the first and the last
    stage both have that matrix.

    The stage uses the layers of the whole model, not copies. If the blocks do not divide evenly among the stages, the
    first stages have one more. `sequence_shards` processes divide the tokens between two stages (sequence parallelism).
    """

    def __init__(self, model: Transformer, index: int, stages: int, sequence_shards: int = 1) -> None:
        super().__init__()
        own = np.array_split(np.arange(len(model.blocks)), stages)[index].tolist()
        self.config, self.index, self.stages, self.sequence_shards = model.config, index, stages, sequence_shards
        self.embedding: nn.Module | None = model.embedding if index == 0 else None
        if self.last and model.config.head.tied:
            self.embedding = nn.ModuleDict({"tokens": model.embedding.tokens})
        self.position_bias = model.position_bias
        self.blocks = nn.ModuleDict({str(number): model.blocks[number] for number in own})
        self.norm = model.norm if self.last else None
        self.head = model.head if self.last else None

    @property
    def last(self) -> bool:
        """True on the last stage, which has the head."""
        return self.index == self.stages - 1

    @property
    def tied_weight(self) -> nn.Parameter | None:
        """The tied matrix [vocab_size, d_model] on the first and the last stage; otherwise None."""
        if self.embedding is None or not self.config.head.tied:
            return None
        return self.embedding.get_parameter("tokens.weight")

    def forward(self, x: Tensor) -> Tensor:
        """Run the blocks of this stage on tokens [batch, seq_len] or on the output of the previous stage.

        Returns logits [batch, seq_len, vocab_size] in the last stage, else hidden states [batch, seq_len, d_model].
        With sequence parallelism each process has a part of the tokens.
        """
        rows, seq_len = len(x), x.shape[1] if self.index == 0 else x.shape[1] * self.sequence_shards
        context = ForwardContext(
            torch.arange(seq_len, device=x.device).expand(rows, seq_len), position_bias=self.position_bias
        )
        if isinstance(self.embedding, Embedding):
            self.embedding.check_seq_len(seq_len)
            x = self.embedding(x, context.shared_positions)
        for block in self.blocks.values():
            x = block(x, context)
        if self.norm is not None and self.head is not None:
            x = self.head(self.norm(x))
        return x


class Pipeline(nn.Module):
    """The stage of this process, and how it exchanges micro-batches with the stages before and after it.

    Do not call it like a module: `accumulate_gradients` and `mean_loss` of `lmcourse.training.step` use its methods.

    `call` is the stage after `wrap_data_parallel`, and `mesh` that of all processes.
    """

    def __init__(self, stage: ModelStage, call: nn.Module, config: TrainingConfig, mesh: DeviceMesh) -> None:
        super().__init__()
        self.stage, self.call, self.group = stage, call, mesh.get_group("pipeline_parallel")
        self.device = next(stage.parameters()).device
        torch_stage = PipelineStage(call, stage.index, stage.stages, self.device, group=self.group)
        self.schedule = SCHEDULES[config.parallel.pipeline_schedule](
            torch_stage, config.grad_accum_steps, loss_fn=self._loss, scale_grads=False
        )
        self._targets, self._z_loss, self._dp_size = torch.ones(()), 0.0, 1
        ends = mesh.mesh[[0, -1]].flatten(start_dim=1).T.tolist()
        self._ends, _ = dist.new_subgroups_by_enumeration(ends)  # type: ignore[no-untyped-call]  # torch leaves it bare

    def accumulate_gradients(
        self, batches: Sequence[Batch], precision: MixedPrecision, z_loss: float, distributed: DistributedContext
    ) -> Tensor:
        """Do what `step.accumulate_gradients` does, for all micro-batches; every stage gets the result."""
        inputs = torch.cat([batch.inputs for batch in batches])
        targets = torch.cat([batch.targets for batch in batches])
        self._targets = distributed.all_reduce_sum((targets != IGNORE_INDEX).sum()).clamp(min=1)
        self._z_loss, self._dp_size = z_loss, distributed.dp_size
        losses: list[Tensor] = []
        first_inputs = [inputs] if self.stage.index == 0 else []
        with precision.autocast():
            self.schedule.step(*first_inputs, target=targets, losses=losses, return_outputs=False)
        self._sum_tied_grads()
        mine = torch.stack(losses).detach().sum() if losses else torch.zeros((), device=self.device)
        return distributed.all_reduce_sum(self._broadcast_from_last(mine / distributed.dp_size))

    def mean_loss(self, batch: Batch, precision: MixedPrecision, z_loss: float = 0.0) -> Tensor:
        """Do what `lmcourse.training.step.mean_loss` does, one stage after the other; every stage gets the result."""
        index, (rows, seq_len) = self.stage.index, batch.inputs.shape
        x = batch.inputs
        if index > 0:
            x = torch.empty(rows, seq_len // self.stage.sequence_shards, self.stage.config.d_model, device=self.device)
            dist.recv(x, group=self.group, group_src=index - 1)
        with precision.autocast():
            x = self.call(x)
        if not self.stage.last:
            dist.send(x.float(), group=self.group, group_dst=index + 1)
            return self._broadcast_from_last(torch.zeros((), device=self.device))
        return self._broadcast_from_last(next_token_loss(x, batch.targets, z_loss=z_loss))

    def _sum_tied_grads(self) -> None:
        """Sum the gradients of the tied matrix over the first and last stage, so that both copies stay the same."""
        tied_weight = self.stage.tied_weight
        if tied_weight is None:
            return
        reduce_partial_grad(tied_weight)
        grad = tied_weight.grad
        if grad is not None:
            dist.all_reduce(grad.to_local() if isinstance(grad, DTensor) else grad, group=self._ends)

    def _loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return a micro-batch's part of the mean loss, times `dp_size` because DDP and FSDP average gradients."""
        share = (targets != IGNORE_INDEX).sum() / self._targets
        return share * self._dp_size * next_token_loss(logits, targets, z_loss=self._z_loss)

    def _broadcast_from_last(self, value: Tensor) -> Tensor:
        """Return the value of the last stage, on every stage."""
        dist.broadcast(value, group=self.group, group_src=self.stage.stages - 1)
        return value


accumulate_gradients.register(Pipeline, Pipeline.accumulate_gradients)
mean_loss.register(Pipeline, Pipeline.mean_loss)
