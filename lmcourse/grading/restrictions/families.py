"""Which of torch's operators a ruled-out name stands for: softmax in public, in private, backward and fused variants.

The operators are looked up in torch's own list, so that what a new version of torch adds is among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

import torch

_ATTENTION = r"attention|transformer_encoder"
_SOFTMAX = rf"softmax|softmin|softplus|logsumexp|logcumsumexp|cross_entropy|{_ATTENTION}"
_NORM = (
    r"(layer|group|batch|instance|rms|response|weight)_?norm|(^|_)normalize|renorm|transformer_encoder"
    r"|cosine_(similarity|embedding)|clip_grad|(^|_)qr(_|\.|$)"
)
_FUSED = r"_pointwise|addmm_activation|transformer_encoder"
_GELU = rf"gelu|ndtr|{_FUSED}"
_RELU = rf"relu|(^|_)s?c?elu|hardtanh|margin|hinge|{_FUSED}"
_RECURRENT = r"lstm|(^|_)gru|rnn_?(tanh|relu|cell|base)|(cudnn|miopen|mkldnn)_rnn"
_SIGMOID = rf"silu|sigmoid|expit|mish|swish|glu(_|$)|lstm|(^|_)gru|soft_margin|{_FUSED}"

FAMILIES: dict[str, str] = {
    **dict.fromkeys((".softmax", ".log_softmax", ".logsumexp", ".softmin", ".Softmax", ".LogSoftmax"), _SOFTMAX),
    ".Softmin": _SOFTMAX,
    ".scaled_dot_product_attention": _ATTENTION,
    ".multi_head_attention_forward": r"multi_?head|transformer_encoder",
    "torch.nn.MultiheadAttention": r"multi_?head|transformer_encoder",
    **dict.fromkeys((".gelu", ".ndtr", ".log_ndtr"), _GELU),
    **dict.fromkeys((".relu", ".relu_"), _RELU),
    **dict.fromkeys((".silu", ".sigmoid", ".sigmoid_", ".logsigmoid", ".expit"), _SIGMOID),
    **dict.fromkeys((".layer_norm", ".rms_norm", ".LayerNorm", ".RMSNorm", ".normalize"), _NORM),
    **dict.fromkeys((".cross_entropy", ".nll_loss"), r"nll_loss|(^|_)cross_entropy|ctc_loss|kl_div|categorical"),
    **dict.fromkeys((".lstm", ".lstm_cell", ".LSTM", ".LSTMCell"), _RECURRENT),
    **dict.fromkeys((".rnn_tanh", ".rnn_tanh_cell", ".RNN", ".RNNCell", ".RNNBase"), _RECURRENT),
    "torch.amp": r"(^|_)amp_",
    "torch.autograd": r"^(_make_dual|_fw_primal|_unpack_dual)",
    **dict.fromkeys(("torch.optim.Adam", "torch.optim.adam", "torch.optim.AdamW", "torch.optim.adamw"), "^_fused_adam"),
    **dict.fromkeys(("torch.optim.SGD", "torch.optim.sgd"), "^_fused_sgd"),
    **dict.fromkeys(("torch.optim.Adagrad", "torch.optim.adagrad"), "^_fused_adagrad"),
    "torch.optim": "^_fused_",
    "torch.gradient": r"^gradient(\.|$)",
    "torch": r"^(?!empty|clone|copy_|detach|alias|item|_local_scalar_dense|is_|set_|lift|resize_)",
}
"""For a rule the pattern of the operators' names, with overload ("view.dtype"). A rule that is not here and starts with
a dot stands for the operators that have its word in their name."""

NO_OPERATOR = (".normalize",)
"""Names of functions in Python."""

AUTOGRAD_RULE, COUNTING_RULE, EVERYTHING_RULE = "torch.autograd", "torch.utils.flop_counter", "torch"


def operators(rule: str) -> tuple[str, ...]:
    """The full names of the operators that a rule covers, as torch's dispatcher knows them."""
    pattern = family(rule)
    return _matching(pattern) if pattern else ()


@cache
def _matching(pattern: str) -> tuple[str, ...]:
    """The full names of the operators whose name without its namespace a pattern is found in."""
    found = re.compile(pattern).search
    return tuple(name for name, bare in zip(_all(), _bare(), strict=True) if found(bare))


def family(rule: str) -> str:
    """The pattern of a rule's operators, or nothing."""
    if rule in FAMILIES:
        return FAMILIES[rule]
    return rf"(^|_){re.escape(rule[1:])}(_|\.|$)" if rule.startswith(".") and rule not in NO_OPERATOR else ""


def warm_up() -> None:
    """Find the operators of the known rules: a process that is forked has them then."""
    for rule in FAMILIES:
        operators(rule)
    differentiable()


@cache
def _all() -> tuple[str, ...]:
    return tuple(torch._C._dispatch_get_all_op_names())


@cache
def _bare() -> tuple[str, ...]:
    """The names of all operators without their namespace."""
    return tuple(name.partition("::")[2] for name in _all())


@cache
def differentiable() -> tuple[str, ...]:
    """The operators that would note how to differentiate what they compute."""
    known = torch._C._dispatch_has_kernel_for_dispatch_key
    return tuple(name for name in _all() if name.startswith("aten::") and known(name, "Autograd"))


def without_values() -> Iterator[str]:
    """The operators from which tensors without values, on the device "meta", come."""
    return (name for name in _all() if name.startswith(("aten::empty", "aten::_to_copy", "aten::new_empty")))


def by_namespace(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of operators without their namespace, by namespace."""
    found: dict[str, list[str]] = {}
    for name in names:
        namespace, _, rest = name.partition("::")
        found.setdefault(namespace, []).append(rest)
    return found
