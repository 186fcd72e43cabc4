"""Compare the predicted peak of a training step with the allocations of a real step in torch's CPU profiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate

import pytest
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.live import memory_events
from lmcourse.accounting.memory import training_memory
from lmcourse.accounting.parallel import Layout
from lmcourse.accounting.recipes import find_recipe
from lmcourse.data.batch import Batch
from lmcourse.models.config import TransformerConfig
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import gpt_like, llama_like
from lmcourse.training.activation_checkpointing import apply_activation_checkpointing
from lmcourse.training.cost_estimate import RECIPES
from lmcourse.training.optimizers.muon import MuonAdamW
from lmcourse.training.parallel.process_group import make_context
from lmcourse.training.param_groups import make_optimizer
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.step import training_step
from lmcourse.training.training_config import Parallelism, TrainingConfig

pytestmark = pytest.mark.prove

WIDE, TINY = 8192, 256


def llama(
    vocabulary: int, *, tied: bool = False, layers: int = 2, d: int = 64, context: int = 256
) -> TransformerConfig:
    return llama_like(layers, d, 4, 2 * d, vocab_size=vocabulary, context=context, tied=tied)


def gpt(vocabulary: int) -> TransformerConfig:
    return gpt_like(2, 64, 4, vocab_size=vocabulary, context=256)


def measure(config: TransformerConfig, training: TrainingConfig, micro_batches: int = 2) -> int:
    """Return the bytes of weights and optimizer on this process, and the additional peak of the second step."""
    whole, context = Transformer(config), make_context(training.parallel, torch.device("cpu"))
    if training.activation_checkpointing:
        apply_activation_checkpointing(whole)
    model, _ = context.parallelize(whole, training)
    optimizer = make_optimizer(model, training, context)
    precision = MixedPrecision(training.precision, torch.device("cpu"))
    tokens = torch.randint(config.vocab_size, (micro_batches, own_batch(training), training.seq_len + 1))
    batches = [Batch(texts[:, :-1].contiguous(), texts[:, 1:].contiguous()) for texts in tokens]

    def step() -> None:
        training_step(model, batches, optimizer, precision, z_loss=training.z_loss, distributed=context)
        optimizer.zero_grad(set_to_none=True)

    step()
    moments = [value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    assert isinstance(optimizer, MuonAdamW) == (training.optimizer == "muon")
    # The profiler may lose events of a long step, which makes the sum smaller, so take the larger of two runs.
    own = (each.to_local() if isinstance(each, DTensor) else each for each in (*model.parameters(), *moments))
    return sum(tensor.nbytes for tensor in own) + max(most_alive(step), most_alive(step))


def own_batch(training: TrainingConfig) -> int:
    return training.batch // training.parallel.dp_size


def most_alive(step: Callable[[], None]) -> int:
    """Return the largest running sum of allocations and releases."""
    return max(accumulate(memory_events(step)))


@pytest.mark.parametrize(
    ("config", "changes", "worst"),
    [
        (llama(WIDE), {}, "loss backward"),
        (llama(WIDE, tied=True), {"precision": "bf16", "optimizer": "muon"}, "loss backward"),
        (llama(WIDE), {"activation_checkpointing": True}, "loss backward"),
        (llama(WIDE), {"z_loss": 1e-4}, "loss backward"),
        (gpt(WIDE), {"precision": "bf16", "activation_checkpointing": True}, "loss backward"),
        (llama(TINY), {"precision": "bf16"}, "loss backward"),
        (llama(16), {}, "block backward"),
        (llama(TINY, tied=True), {"activation_checkpointing": True}, "recomputed block"),
        (gpt(TINY), {"activation_checkpointing": True}, "recomputed block"),
        (llama(1024, d=128, context=8), {"batch": 1}, "loss backward"),  # the head's gradient is the peak
        (llama(WIDE, context=8), {"batch": 1, "precision": "bf16"}, "loss backward"),
        (llama(WIDE, tied=True, context=8), {"batch": 1}, "embedding backward"),
        (
            llama(TINY, layers=4, d=128, context=16),
            {"batch": 1, "precision": "bf16", "activation_checkpointing": True},
            "weight copies",
        ),
        (llama(TINY, layers=4, d=128, context=16), {"optimizer": "muon"}, "optimizer step"),
        # few tokens: the gradient of the feed-forward layer's last matrix is the peak
        (gpt_like(1, 256, 4, vocab_size=100, context=8), {"batch": 4}, "block backward"),
        (llama_like(1, 256, 4, 1024, vocab_size=16, context=8), {"batch": 1, "precision": "bf16"}, "block backward"),
    ],
)
def test_predicted_peak_matches_the_profiler(config: TransformerConfig, changes: dict[str, object], worst: str) -> None:
    assert config.context is not None
    training = TrainingConfig(**{"steps": 1, "batch": 2, "seq_len": config.context, "precision": "fp32", **changes})  # type: ignore[arg-type]
    predicted = predict(config, training)
    assert worst in predicted.parts
    assert predicted.total == pytest.approx(measure(config, training), rel=0.05)


def predict(config: TransformerConfig, training: TrainingConfig) -> Breakdown[int]:
    return training_memory(
        config,
        own_batch(training),
        training.seq_len,
        find_recipe(RECIPES[training.optimizer][training.precision]),
        activation_checkpointing="blocks" if training.activation_checkpointing else "nothing",
        layout=Layout(training.parallel.fsdp, zero=3 if training.parallel.fsdp > 1 else 0),
        z_loss=training.z_loss > 0,
    )


@pytest.fixture
def one_of_64() -> Iterator[None]:
    """Let this process be one of 64 whose collective operations allocate what they should, and send nothing."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=64)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("config", "changes", "worst"),
    [
        (llama_like(4, 256, 4, 1024, vocab_size=64, context=8), {"batch": 64}, "whole gradients"),
        (llama_like(1, 256, 4, 1024, vocab_size=64, context=8), {"batch": 64}, "gathered weights"),
        (llama(WIDE, layers=4, d=256, context=8), {"batch": 64, "activation_checkpointing": True}, "whole gradients"),
        (llama(WIDE, tied=True, d=256, context=8), {"batch": 64}, "whole gradients"),
        (llama(TINY, layers=4, d=128), {"activation_checkpointing": True}, "recomputed block"),
        (llama(TINY, layers=4, d=128), {}, "block backward"),
        (llama(WIDE), {}, "loss backward"),
    ],
)
@pytest.mark.usefixtures("one_of_64")
def test_predicted_peak_of_fsdp_matches_the_profiler(
    config: TransformerConfig, changes: dict[str, object], worst: str, precision: str
) -> None:
    assert config.context is not None
    parallel = {"parallel": Parallelism(fsdp=64), "precision": precision}
    training = TrainingConfig(**{"steps": 1, "batch": 128, "seq_len": config.context, **parallel, **changes})  # type: ignore[arg-type]
    predicted = predict(config, training)
    assert worst in predicted.parts
    assert predicted.total == pytest.approx(measure(config, training), rel=0.07)
