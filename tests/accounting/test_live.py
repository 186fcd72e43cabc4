"""Storages are counted from allocation to release; views and arguments are not counted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from lmcourse.accounting.live import live_bytes, memory_events

SIZE = 4 * 1000

LINES: dict[str, tuple[Callable[..., Tensor], int, int]] = {
    "one result": (lambda x, y: x + y, 1, 1),
    "a sum of products": (lambda x, y: x * x + y * y, 3, 3),
    "in place": (lambda x, y: (x * x).add_(y), 1, 1),
    "into an argument": (lambda x, y: x.add_(y), 0, 0),
    "a view of an argument": (lambda x, y: x.view(10, 100).t(), 0, 0),
    "a view of a temporary": (lambda x, y: (x + y).view(10, 100).t().exp(), 2, 2),
    "a chain": (lambda x, y: x.exp().exp().exp().exp(), 2, 4),
    "left first": (lambda x, y: x.exp() + y.exp().exp(), 3, 4),
    "out=": (lambda x, y: torch.add(x, y, out=y), 0, 0),
    "out= an empty tensor": (lambda x, y: torch.add(x, y, out=torch.empty(0)), 1, 1),
    "a tensor that grows": (lambda x, y: torch.empty(10).resize_(1000), 1, 1),
}


@pytest.mark.parametrize("name", LINES)
def test_live_bytes_counts_peak_and_sum_of_an_expression(name: str) -> None:
    function, peak, allocated = LINES[name]
    x, y = torch.rand(1000), torch.rand(1000)
    counted = live_bytes(function, x, y)
    assert (counted.peak, counted.allocated) == (peak * SIZE, allocated * SIZE)


def test_a_second_count_starts_from_zero() -> None:
    x = torch.rand(1000)
    assert live_bytes(torch.exp, x) == live_bytes(torch.exp, x)


def test_a_tensor_outside_the_arguments_counts_only_if_returned() -> None:
    bias = torch.rand(1000)
    assert live_bytes(lambda x: x + bias, torch.rand(1000)).allocated == SIZE


def test_all_results_of_an_operation_count() -> None:
    counted = live_bytes(lambda x: x.sort(), torch.rand(1000))
    assert counted.peak == counted.allocated == SIZE + 2 * SIZE  # floats and int64 indices


def test_memory_events_are_in_order_with_negative_releases() -> None:
    def step() -> None:
        x = torch.ones(1000)
        y = torch.cat([x, x])
        del x
        y.exp_()

    assert [size for size in memory_events(step) if abs(size) >= SIZE] == [SIZE, 2 * SIZE, -SIZE, -2 * SIZE]


def test_a_release_counts_in_a_later_record_than_its_allocation() -> None:
    held: list[Tensor] = []
    assert memory_events(lambda: held.append(torch.empty(1000))) == [SIZE]
    assert memory_events(held.clear) == [-SIZE]
