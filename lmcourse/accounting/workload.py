"""The work to account for: a model, its batch, its number formats, and the devices that share it."""

from __future__ import annotations

from dataclasses import dataclass

from lmcourse.accounting.activations import ActivationCheckpointing, predict_block_bytes, predict_saved_bytes
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.forward_pass import Form
from lmcourse.accounting.parallel import ONE_DEVICE, Layout
from lmcourse.accounting.recipes import PrecisionRecipe
from lmcourse.models.config import TransformerConfig
from lmcourse.nn.checks import check_type


@dataclass(frozen=True)
class Workload:
    """The work to account for. A model or a recipe of the wrong type, for example a name, raises TypeError.

    Attributes:
        config: the model.
        batch: number of texts that a replica of the model reads at once. A replica is one device, or the devices that
            divide one copy of the model.
        seq_len: tokens per text.
        recipe: the formats of weights, gradients and optimizer state.
        activation_checkpointing: "blocks" recomputes blocks in the backward pass.
        layout: the numbers of devices for each kind of parallelism.
        attention: the form of attention in training, as in `predict_saved_bytes`.
        z_loss: whether the loss has a z-loss, which needs another copy of the logits and of their gradient.

    Example:
        >>> work = Workload(find_model("llama-3-8b").config, batch=1, seq_len=8192, recipe=find_recipe("mixed"))
        >>> work.recipe.per_parameter
        18
    """

    config: TransformerConfig
    batch: int
    seq_len: int
    recipe: PrecisionRecipe
    activation_checkpointing: ActivationCheckpointing = "nothing"
    layout: Layout = ONE_DEVICE
    attention: Form = "fused"
    z_loss: bool = False

    def __post_init__(self) -> None:
        check_type("config", self.config, TransformerConfig, 'such as find_model("llama-3-8b").config')
        check_type("recipe", self.recipe, PrecisionRecipe, 'such as find_recipe("mixed")')

    @property
    def tokens(self) -> int:
        """Tokens in the batch of a replica."""
        return self.batch * self.seq_len

    @property
    def writes(self) -> bool:
        """True if the model can generate texts, that is, if no layer sees later tokens."""
        return all(layer.attention.pattern.causal for layer in self.config.layers)

    @property
    def sharded(self) -> bool:
        """True if each device keeps only a part of every weight (ZeRO's stage 3)."""
        return self.layout.zero == 3 and self.layout.data > 1

    def saved_bytes(self) -> Breakdown[int]:
        """Return the bytes that autograd keeps for the batch of a replica; errors as in `predict_saved_bytes`."""
        return predict_saved_bytes(
            self.config,
            self.batch,
            self.seq_len,
            dtype=self.recipe.dtype,
            attention=self.attention,
            activation_checkpointing=self.activation_checkpointing,
            autocast=self.recipe.autocast,
        )

    def largest_block_bytes(self) -> int:
        """Return the bytes that autograd keeps for the largest block."""
        return max(
            predict_block_bytes(
                self.config,
                self.batch,
                self.seq_len,
                layer=self.config.layers.index(layer),
                dtype=self.recipe.dtype,
                attention=self.attention,
                autocast=self.recipe.autocast,
            ).total
            for layer in dict.fromkeys(self.config.layers)
        )
