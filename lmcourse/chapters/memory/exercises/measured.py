"""The exercise on measuring the tensors that autograd keeps from a module's forward pass."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import torch
from torch import Tensor, nn

from lmcourse.accounting.saved import saved_tensors
from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise


def _by_the_course(block: nn.Module, x: Tensor) -> dict[str, int]:
    sizes: Counter[str] = Counter()
    for tensor in saved_tensors(lambda: block(x), block):
        sizes[str(tensor.dtype)] += tensor.size
    return dict(sizes)


CALL = "measured_activations(block, x)"
CALL_WITH_GRADIENT = "measured_activations(block, x.clone().requires_grad_())"
BRANCH = """\
import functools
import torch
from torch import nn
class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside = {inside}
    def forward(self, x):
        return {result}
block = Branch()
"""


def _layers(name: str, layers: str, x: Tensor) -> Case:
    return script(name, f"from torch import nn\nblock = nn.Sequential({layers})\n{CALL}", x=x)


def _branch(name: str, inside: str, result: str, x: Tensor, call: str = CALL) -> Case:
    return script(name, BRANCH.format(inside=inside, result=result) + call, x=x)


X = torch.arange(24.0).view(2, 3, 4)


def _hidden_cases(random: Random) -> list[Case]:
    B, S, D = random.randint(2, 5), random.choice([2, 3, 4, 6, 8, 9]), random.choice([7, 11, 13])
    x, wide = torch.ones(B, S, D), torch.ones(B, S, D, dtype=torch.float64)
    linear = f"nn.Linear({D}, {D})"
    return [
        _branch("parts of parameters", "nn.Linear(4, 4)", "self.inside(x) * self.inside.weight.detach()[1]", X),
        _branch(
            "copies of parameters",
            "nn.Linear(4, 4)",
            "nn.functional.linear(x.bfloat16(), self.inside.weight.bfloat16())",
            X,
            CALL_WITH_GRADIENT,
        ),
        _layers("an input that wants a gradient", "nn.Tanh()", X[:1, 0, 1].clone().requires_grad_()),
        _branch("an input that wants a gradient", "nn.LayerNorm(4)", "self.inside(x)", X, CALL_WITH_GRADIENT),
        _branch("modules in modules", "nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.GELU()))", "self.inside(x)", X),
        _branch(
            "buffers",
            'self.register_buffer("table", torch.ones(2, 4)[1], persistent=False)',
            "x.exp() * self.table",
            X,
            CALL_WITH_GRADIENT,
        ),
        _branch("indices", "nn.Embedding(24, 5)", "self.inside(x.long())", X),
        _branch(
            "views",
            "nn.Linear(4, 2)",
            "(lambda y: torch.view_as_complex(y).square().real + y.square().sum(-1))(self.inside(x))",
            X,
        ),
        _branch("views", "nn.Linear(4, 8)", "(lambda y: y[..., :4] * y[..., 4:].detach())(self.inside(x))", X),
        _branch("views", "nn.Linear(4, 1)", "self.inside(x).expand(2, 3, 100).square()", X),
        _layers("other sizes", f"nn.LayerNorm({D}), nn.Linear({D}, {2 * D}), nn.Tanh(), nn.Linear({2 * D}, {D})", x),
        _branch("other sizes", linear, "x + self.inside(x).softmax(dim=-1)", x),
        _branch("other precisions", f"{linear}.double()", "self.inside(x).exp() * x", wide),
        _branch("other precisions", linear, "self.inside(x).bfloat16().exp().float()", x),
        _branch("views", f"nn.Linear({D}, {2 * D})", f"self.inside(x)[..., :{D}].exp()", x),
        _layers("nothing wants a gradient", "nn.Tanh(), nn.GELU()", x),
        _branch("views", linear, "self.inside(x)", x, "measured_activations(block, x[1:])"),
        _branch("masks", linear, "self.inside(x) * (x > 0)", x),
        _branch("nothing to keep", linear, "x + x", x),
        _layers("buffers", f"nn.Linear({S}, 3), nn.BatchNorm1d({D})", x.mT.contiguous()),
    ]


measured_activations = Exercise(
    "measured_activations",
    points=4,
    minutes=10,
    difficulty=3,
    reference=_by_the_course,
    cases=[
        _layers("a linear layer keeps its input", "nn.Linear(4, 8)", X),
        _layers("a norm keeps two numbers per token more", "nn.LayerNorm(4)", X),
        _layers("GELU keeps its input, ReLU its result", "nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 8), nn.ReLU()", X),
        _branch("a sum keeps nothing", "nn.Linear(4, 4)", "x + self.inside(x)", X),
        _branch("a mask of one byte", "nn.Linear(4, 4)", "x + self.inside(x) * (x > 5)", X),
        _branch("one tensor, kept twice", "nn.Linear(4, 4)", "(lambda y: y * y)(self.inside(x))", X),
        _branch(
            "two views of one storage", "nn.Linear(4, 8)", "(lambda y: y[..., :4] * y[..., 4:])(self.inside(x))", X
        ),
        _branch("half of a storage", "nn.Linear(4, 8)", "self.inside(x)[..., :4].square()", X, CALL_WITH_GRADIENT),
        _branch(
            "an input that wants a gradient", "nn.Linear(4, 4)", "self.inside(x) + x.sin().cos()", X, CALL_WITH_GRADIENT
        ),
        _layers("nothing wants a gradient", "nn.GELU()", X),
        _branch(
            "an input that is a view", "nn.Linear(4, 8)", "self.inside(x)", X, "measured_activations(block, x[:1])"
        ),
        _layers("buffers are no activations", "nn.Linear(4, 4), nn.BatchNorm1d(3)", X),
        edge(
            _branch(
                "a buffer that is a row of a table",
                'self.register_buffer("table", torch.ones(3, 4)[2], persistent=False)',
                "x.exp() * self.table",
                X,
                CALL_WITH_GRADIENT,
            )
        ),
        _branch(
            "one storage in two formats",
            "nn.Linear(4, 2)",
            "(lambda y: torch.view_as_complex(y).square().real + y.square().sum(-1))(self.inside(x))",
            X,
        ),
        _branch(
            "200 results that only your list keeps alive",
            "nn.Linear(4, 4)",
            "functools.reduce(lambda y, _: y.sin(), range(200), self.inside(x))",
            X,
        ),
        _layers(
            "as large as the weights", "nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4)", X[0, :1].expand(4, 4).clone()
        ),
    ],
    hidden_cases=_hidden_cases,
    hints=[
        "with torch.autograd.graph.saved_tensors_hooks(pack, unpack): calls pack(tensor) for every tensor that "
        "autograd keeps. Let pack put it into a list and return it.",
        "Views share memory: tensor.untyped_storage().data_ptr() is different for each storage, and .nbytes() is the "
        "size of all of it. Leave out those of block.parameters() and block.buffers().",
        "Go through the list with a set of the storages seen so far, and add each new one to sizes[str(tensor.dtype)]. "
        "The list keeps all tensors alive, so that no address is used twice.",
    ],
)


@measured_activations.variant
def storages_seen(block: nn.Module, x: Tensor) -> dict[str, int]:
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    def place(tensor: Tensor) -> int:
        return tensor.untyped_storage().data_ptr()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        block(x)
    own = [*block.parameters(), *block.buffers()]
    seen = set(map(place, own))
    sizes: dict[str, int] = {}
    for tensor in kept:
        if place(tensor) not in seen:
            seen.add(place(tensor))
            dtype = str(tensor.dtype)
            sizes[dtype] = sizes.get(dtype, 0) + tensor.untyped_storage().nbytes()
    return sizes


measured_activations.slips(
    storages_seen,
    {
        "            seen.add(place(tensor))\n → ": "You count a tensor each time it is kept. Two operations that "
        "keep the same tensor share its memory.",
        ".untyped_storage().data_ptr() → .data_ptr()": "You compare the addresses of tensors. Two views of one "
        "storage may have different ones: compare the addresses of their storages.",
        "set(map(place, own)) → set()": "Your sum contains the block's own tensors, such as its weights. Leave them "
        "out.",
        "not in seen → not in seen and tensor.is_floating_point()": "You leave out tensors that are not "
        "floating-point. Masks and indices are kept, too.",
        "str(tensor.dtype) → tensor.dtype": "Your keys are dtypes of torch. They should be texts: str(tensor.dtype).",
        ", *block.buffers() → ": "Your sum contains the module's buffers, such as BatchNorm's running means. They "
        "belong to the module, as parameters do.",
        ".nbytes() → .nbytes() // tensor.element_size()": "You count numbers, not bytes: a float32 takes four, a bool "
        "one.",
        ".untyped_storage().nbytes() → .nbytes": "You count only the part that a view shows. The whole storage behind "
        "it stays alive: use tensor.untyped_storage().",
        "*block.buffers()] → *block.buffers(), x]": "You leave out the input. It is kept like every other tensor, if "
        "the backward pass needs it.",
        "torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor) → "
        "nn.modules.module.register_module_forward_hook(lambda module, _, result: None if [*module.children()] else "
        "pack(result))": "You add up the outputs of the modules. Autograd keeps what the backward pass needs: often "
        "the input, sometimes a mask, sometimes nothing.",
        "tensor.untyped_storage().data_ptr() → id(tensor)": "You tell tensors apart by `id`. Two objects may share a "
        "storage, and a view of a parameter is another object. Compare untyped_storage().data_ptr().",
        "set(map(place, own)) → set() ;; not in seen → not in seen and id(tensor) not in map(id, own)": "You leave "
        "out the parameters as objects. A linear layer keeps a view of its weight, which is another object: compare "
        "their storages.",
        "str(tensor.dtype) → str(x.dtype)": "You put all bytes under one dtype. Group them: masks and statistics have "
        "other dtypes.",
        "*block.parameters(),  →  ;; not in seen → not in seen and tensor.shape not in [shape for own in "
        "block.parameters() for shape in (own.shape, own.t().shape)]": "You leave out tensors of the same size as a "
        "parameter. Compare memory, not sizes.",
        "        block(x) →         block.eval()(x)": "You switch the block to `eval`, where dropout keeps nothing. "
        "Measure the block in the mode it is in.",
        "set(map(place, own)) → set() ;; not in seen → not in seen and not isinstance(tensor, nn.Parameter)": "You "
        "leave out tensors that are parameters themselves. Autograd keeps W.T, a view that is no Parameter, and "
        "buffers are none either: compare storages.",
        "tensor: tensor):\n        block(x) → tensor: tensor), torch.no_grad():\n        block(x)": "You run the "
        "block without gradients, so autograd keeps nothing.",
        "        block(x)\n →         block(x.detach())\n": "You detach `x`, so autograd keeps what belongs to "
        "another graph. Run `block(x)` as it is.",
        "        block(x)\n →         block(x.detach().requires_grad_())\n": "You make an input that wants a gradient. "
        "Run `block(x)` as it is: what autograd keeps depends on that.",
        "        block(x)\n →         block(x.clone())\n": "You run the block on a copy. If `x` is a view, autograd "
        "keeps the whole storage behind it. Run `block(x)` as it is.",
        "        block(x)\n →         kept.append(block(x))\n": "You count the result of the block. Autograd keeps "
        "what the backward pass needs: the hook gets all of it.",
        "in kept: → in reversed(kept):": "You begin with the tensor that was kept last. A storage counts under the "
        "dtype of the tensor through which it was kept *first*.",
        "place(tensor) not in seen → {place(tensor), (place(tensor), tensor.dtype)}.isdisjoint(seen) ;; "
        "seen.add(place(tensor)) → seen.add((place(tensor), tensor.dtype))": "You count a storage once for each dtype. "
        "It is in memory once: count it under the first.",
        "return sizes → return sizes | {'total': sum(sizes.values())}": "Your dict has a key that is no dtype. Return "
        "the bytes by dtype, and no sum.",
        "        kept.append(tensor)\n        return tensor → "
        "        kept.append((place(tensor), str(tensor.dtype), tensor.untyped_storage().nbytes())) ;; "
        "place(tensor) not in seen → tensor[0] not in seen ;; seen.add(place(tensor)) → seen.add(tensor[0]) ;; "
        "dtype = str(tensor.dtype) → dtype = tensor[1] ;; + tensor.untyped_storage().nbytes() → + tensor[2]": "You "
        "keep addresses and not the tensors, so these are freed, and PyTorch uses their addresses again. Keep the "
        "tensors.",
        "tensor.untyped_storage().nbytes() → 4 * tensor.numel()": "You count 4 bytes for each number of a tensor. A "
        "bool takes one, and a view keeps its whole storage alive.",
        "sizes[dtype] = sizes.get(dtype, 0) + tensor → sizes[dtype] = tensor": "Each tensor replaces the one before "
        "it with the same dtype. Add up their bytes.",
        "str(tensor.dtype) → str(tensor.dtype)[6:]": 'Your keys lack "torch.": str(tensor.dtype) is "torch.float32".',
        "            seen.add(place(tensor))\n →  ;; set(map(place, own)) → set() ;; .untyped_storage().nbytes() → "
        ".nbytes": "You add up all tensors that the hook gives you. Some are kept twice, some are the block's own, "
        "and a view keeps its whole storage alive.",
    },
)


@measured_activations.variant
def kept_by_number(block: nn.Module, x: Tensor) -> dict[str, int]:
    """Count with a hook that returns numbers, like a hook that moves tensors to another place."""
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> int:
        kept.append(tensor)
        return len(kept) - 1

    result = None
    with torch.autograd.graph.saved_tensors_hooks(pack, kept.__getitem__):
        result = block(x)
    del result
    own = [tensor.untyped_storage().data_ptr() for tensor in (*block.parameters(), *block.buffers())]
    counted: list[int] = []
    sizes: Counter[str] = Counter()
    for tensor in kept:
        place = tensor.untyped_storage().data_ptr()
        if place in own or place in counted:
            continue
        counted.append(place)
        sizes.update({f"{tensor.dtype}": tensor.untyped_storage().size()})
    return sizes


@measured_activations.variant
def dtype_after_dtype(block: nn.Module, x: Tensor) -> dict[str, np.int64]:
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.extend([tensor])
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        block(x)
    there = {tensor.untyped_storage().data_ptr() for tensor in [*block.parameters(), *block.buffers()]}
    first = {tensor.untyped_storage().data_ptr(): tensor for tensor in kept[::-1]}
    mine = [tensor for place, tensor in first.items() if place not in there]
    return {
        str(dtype): np.sum([tensor.untyped_storage().nbytes() for tensor in mine if tensor.dtype == dtype])
        for dtype in {tensor.dtype for tensor in mine}
    }
