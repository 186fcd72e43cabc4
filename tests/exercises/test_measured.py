"""A measured call counts memory, operators and FLOPs, and rejects answers that work where nothing is counted."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from lmcourse.exercises import measured
from lmcourse.exercises.measured import MeasuredCall, measured_call
from lmcourse.exercises.open_task import Unfit

BYTES = 64 * 16 * 4


def product(a: Tensor, w: Tensor) -> Tensor:
    return a @ w


def measure(answer: Callable[[Tensor, Tensor], object], keep: bool = True) -> MeasuredCall:
    a, w = torch.ones(64, 32), torch.ones(32, 16)
    found = measured_call(answer, a, w, keep=keep)
    assert bool((a == 1).all()), "the answer gets copies"
    return found


def in_place(a: Tensor, w: Tensor) -> Tensor:
    return torch.zeros(64, 16).addmm_(a, w)


def in_parts(a: Tensor, w: Tensor) -> Tensor:
    return torch.cat([part @ w for part in a.split(32)])


@pytest.mark.parametrize("inference", [False, True])
def test_memory_operators_and_flops_are_counted(inference: bool) -> None:
    with torch.inference_mode(inference):
        assert measure(product) == MeasuredCall(pytest.approx(torch.full((64, 16), 32.0)), BYTES, 1, 2 * 64 * 32 * 16)
        assert [measure(in_place).operators, measure(in_place).flops] == [2, 2 * 64 * 32 * 16]
        assert [measure(in_parts).peak, measure(in_parts).flops] == [2 * BYTES, 2 * 64 * 32 * 16]


def in_a_thread(a: Tensor, w: Tensor) -> Tensor:
    found: list[Tensor] = []
    thread = threading.Thread(target=lambda: found.append(a @ w))
    thread.start()
    thread.join()
    return found[0]


def in_a_process(a: Tensor, w: Tensor) -> Tensor:
    if not os.fork():
        os._exit(0)
    return a @ w


def in_numpy(a: Tensor, w: Tensor) -> Tensor:
    return torch.from_numpy(np.asarray(a.repeat(8, 1))[:64] @ w.numpy())


def in_lists(a: Tensor, w: Tensor) -> Tensor:
    return torch.tensor([[sum(row)] * 16 for row in a.repeat(8, 1).tolist()[:64]])


def in_single_numbers(a: Tensor, w: Tensor) -> Tensor:
    return torch.tensor([[number.item() for number in row] for row in a.repeat(8, 1)])


def in_bytes(a: Tensor, w: Tensor) -> Tensor:
    return torch.tensor([*a.repeat(8, 1).untyped_storage()])


def in_hooks(a: Tensor, w: Tensor) -> Tensor:
    a = a.repeat(8, 1).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(Tensor.tolist, torch.tensor):
        a.square().sum().backward()  # type: ignore[no-untyped-call]
    return a


def a_few_numbers(a: Tensor, w: Tensor) -> Tensor:
    assert a.tolist()[0] == [1.0] * 32 == a[0].numpy().tolist()
    print(w)
    return a @ w * len({part.untyped_storage().data_ptr() for part in a})


def without_modes(a: Tensor, w: Tensor) -> Tensor:
    with _disable_current_modes():
        return a @ w


def changed(a: Tensor, w: Tensor) -> Tensor:
    return a.mul_(2) @ w


def shared(a: Tensor, w: Tensor) -> list[Tensor]:
    return [a @ w, w[:2]]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (in_a_thread, measured.ELSEWHERE),
        (in_a_process, measured.ELSEWHERE),
        (in_numpy, measured.OUTSIDE.format(name="numpy")),
        (in_lists, measured.OUTSIDE.format(name="tolist")),
        (in_single_numbers, measured.OUTSIDE.format(name="item")),
        (in_bytes, measured.OUTSIDE.format(name="__getitem__")),
        (in_hooks, measured.OUTSIDE.format(name="tolist")),
        (without_modes, measured.SWITCHED_OFF),
        (changed, measured.CHANGED),
        (shared, measured.SHARED),
    ],
)
def test_evasions_and_changes_are_unfit(answer: Callable[[Tensor, Tensor], object], sentence: str) -> None:
    with pytest.raises(Unfit) as caught:
        measure(answer)
    assert str(caught.value) == sentence


def test_writing_a_file_is_unfit_and_reading_is_not(tmp_path: Path) -> None:
    def write(a: Tensor, w: Tensor) -> Tensor:
        torch.save(a.repeat(8, 1), tmp_path / "result")
        return a

    def read(a: Tensor, w: Tensor) -> Tensor:
        return a @ w * len(Path(__file__).read_text(encoding="utf-8"))

    with pytest.raises(Unfit):
        measure(write)
    with pytest.raises(Unfit, match=r"writes a file"):
        measure(lambda a, w: (tmp_path / "note").write_text("kept"))
    assert measure(read).operators == 2


def test_a_few_numbers_and_addresses_may_leave_torch() -> None:
    assert measure(a_few_numbers).flops == measure(product).flops
    assert "tolist" not in vars(Tensor)


def test_training_may_change_its_inputs() -> None:
    assert measure(changed, keep=False).operators == 2


def test_a_call_leaves_no_guard_behind(tmp_path: Path) -> None:
    for answer in (product, in_a_thread):
        with suppress(Unfit):
            measure(answer)
        assert torch.equal(in_a_thread(torch.ones(2, 2), torch.eye(2)), torch.ones(2, 2))
        (tmp_path / "free").write_text("written")
