"""Compare what autograd keeps with counts by hand, in the graph, and on the meta device."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from lmcourse.accounting.saved import SavedTensors, saved_tensors
from lmcourse.models.config import TransformerConfig
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from tests.models.tiny import architectures, tokens

pytestmark = pytest.mark.usefixtures("one_thread")
"""With tiny models several threads cost forty times what they save."""

MODELS = architectures()
SOME = ("gpt-2", "opt-350m", "bert-base", "bloom-560m", "llama-4-scout-dense", "gemma-3-4b")


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 5), nn.Linear(3, 5, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.left(x).relu() * self.right(x)


def batch() -> Tensor:
    return torch.randn(2, 3, requires_grad=True)


def test_counted_tensors_are_freed_afterwards() -> None:
    model, results = nn.Sequential(nn.Linear(3, 5), nn.Softmax(dim=-1)), list[weakref.ref[Tensor]]()

    def forward() -> Tensor:
        result = model(batch())  # softmax keeps its own result
        results.append(weakref.ref(result))
        return result

    assert saved_tensors(forward, model).total == 24 + 40
    gc.collect()
    assert results[0]() is None


def test_each_storage_is_counted_once_for_its_first_module() -> None:
    model, x = Branches(), batch()
    found = saved_tensors(lambda: model(x), model)
    assert [(tensor.module, tensor.shape, tensor.size) for tensor in found] == [
        ("left", (2, 3), 24),  # x, which "right" also keeps
        ("", (2, 5), 40),  # the ReLU's output, which the product also keeps
        ("", (2, 5), 40),
    ]
    assert found.total == 104
    assert dict(found.by()) == {"left": 24, "": 80}
    assert dict(found.by(lambda module: module or "outside")) == {"left": 24, "outside": 80}


def test_the_table_names_the_module_of_each_tensor() -> None:
    model, x = Branches(), batch()
    assert str(saved_tensors(lambda: model(x), model)).splitlines() == [
        "          24  float32   2 × 3                left",
        "          40  float32   2 × 5                ",
        "          40  float32   2 × 5                ",
        "         104  bytes",
    ]


def test_parameters_and_inputs_do_not_count_as_saved() -> None:
    model, x = Branches(), batch()
    model.register_buffer("table", torch.ones(2, 5))
    work = lambda: model(x) * model.table  # noqa: E731
    assert saved_tensors(work, model, without=[x]).total == 80
    assert saved_tensors(work).total == 104 + 2 * 60 + 40  # the last term is two weights and the buffer


def test_a_view_keeps_all_of_its_storage() -> None:
    x = batch()
    found = saved_tensors(lambda: (x * 1.5)[:, :1].exp() + (x * 2.5)[:, :1].sin())
    assert [(tensor.shape, tensor.size) for tensor in found] == [((2, 1), 8), ((2, 1), 24)]


def test_reused_memory_counts_again() -> None:
    x = torch.randn(64, requires_grad=True)

    def work() -> None:
        for _ in range(200):
            (x * 1.5).cos()

    assert saved_tensors(work).total == 200 * x.nbytes


def test_a_pass_that_fails_leaves_no_hooks() -> None:
    model = Branches()
    with pytest.raises(RuntimeError, match="shapes"):
        saved_tensors(lambda: model(torch.ones(2, 4)), model)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    x = batch()
    assert saved_tensors(lambda: model(x), model).total == 104


def saved_in_graph(result: Tensor) -> Iterator[Tensor]:
    """Yield all tensors in the nodes of a graph."""
    seen: set[Any] = set()
    todo: list[Any] = [result.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        held = [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
        # In the graph a Python number, such as 2.5 in 2.5 · x, is a double without dimensions.
        yield from (t for t in held if isinstance(t, Tensor) and (t.dim() or t.dtype != torch.float64))
        todo += [after for after, _ in node.next_functions]


@pytest.mark.parametrize("name", SOME)
def test_saved_bytes_match_the_autograd_graph(name: str) -> None:
    model, text = Transformer(MODELS[name]).train(), tokens()
    found = saved_tensors(lambda: next_token_loss(model(text), text), model, without=[text])
    owned = [*model.parameters(), *model.buffers(), text]
    known = {tensor.untyped_storage().data_ptr() for tensor in owned}
    graph = list(saved_in_graph(next_token_loss(model(text), text)))
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in graph}
    assert found.total == sum(size for place, size in storages.items() if place not in known)


def kept_by(config: TransformerConfig) -> SavedTensors:
    model, text = Transformer(config).train(), torch.zeros(2, 21, dtype=torch.long)
    return saved_tensors(lambda: next_token_loss(model(text), text), model, without=[text])


@pytest.mark.parametrize("name", SOME)
def test_the_meta_device_saves_the_same_bytes(name: str) -> None:
    real = kept_by(MODELS[name])
    with FakeTensorMode():
        assert kept_by(MODELS[name]) == real
