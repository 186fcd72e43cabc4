"""The loader reads every window once, in the same order with any number of processes, without losing batches."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lmcourse.base.device import best_device
from lmcourse.data.batch import IGNORE_INDEX, Batch
from lmcourse.data.loader import Loader, evaluation_batches
from lmcourse.data.token_file import TokenFile, write_tokens
from lmcourse.data.window_order import WindowOrder

SIZES = {"seq_len": st.integers(1, 7), "seed": st.integers(0, 2**40)}


def starts(batches: Iterator[Batch]) -> list[int]:
    """Return the starts of windows: the text is 0, 1, 2, …, so the first token is the start. Windows must be
    complete."""
    found = []
    for batch in batches:
        assert batch.inputs.dtype == batch.targets.dtype == torch.int64
        assert batch.inputs.is_contiguous()
        assert batch.targets.is_contiguous()
        assert torch.equal(batch.targets, batch.inputs + 1)
        assert not batch.inputs.shape[1] or (batch.inputs.diff(dim=1) == 1).all()
        found += batch.inputs[:, 0].tolist()
    return found


@given(tokens=st.integers(2, 90), **SIZES)
@settings(deadline=None)
def test_an_epoch_has_every_window_once(tokens: int, seq_len: int, seed: int) -> None:
    seq_len = min(seq_len, tokens - 1)
    order = WindowOrder(tokens, seq_len, seed)
    for epoch in range(3):
        begun = sorted(order.starts(epoch * order.per_epoch, order.per_epoch))
        assert all(second - first == seq_len for first, second in pairwise(begun))
        left_out = begun[0] + tokens - 1 - (begun[-1] + seq_len)
        assert 0 <= begun[0] < seq_len
        assert 0 <= left_out < 2 * seq_len


@given(tokens=st.integers(40, 200), **SIZES)
@settings(deadline=None, max_examples=20)
def test_window_borders_and_order_change_each_epoch(tokens: int, seq_len: int, seed: int) -> None:
    order = WindowOrder(tokens, seq_len, seed)
    epochs = [order.starts(epoch * order.per_epoch, order.per_epoch) for epoch in range(150)]
    assert {min(epoch) for epoch in epochs} == set(range(seq_len))
    assert len({tuple(start // seq_len for start in epoch) for epoch in epochs}) > 1
    other = WindowOrder(tokens, seq_len, seed + 1).starts(0, 150 * order.per_epoch)
    assert other != list(chain.from_iterable(epochs))
    assert other[: -order.per_epoch] != list(chain.from_iterable(epochs[1:]))


@given(
    tokens=st.integers(8, 60), batch=st.integers(1, 5), world_size=st.integers(1, 4), steps=st.integers(1, 9), **SIZES
)
@settings(deadline=None, max_examples=40)
def test_the_ranks_together_see_the_data_of_one_process(
    tokens: int, batch: int, world_size: int, steps: int, seq_len: int, seed: int
) -> None:
    text = torch.arange(tokens)
    whole = Loader(text, batch * world_size, seq_len, seed=seed, prefetch=0)
    ranks = [
        Loader(text, batch, seq_len, seed=seed, rank=rank, world_size=world_size, prefetch=0)
        for rank in range(world_size)
    ]
    for expected in islice(whole, steps):
        got = [next(rank) for rank in ranks]
        assert torch.equal(torch.cat([part.inputs for part in got]), expected.inputs)
        assert all(rank.state_dict() == whole.state_dict() for rank in ranks)


@given(
    before=st.integers(0, 12),
    first=st.tuples(st.integers(1, 4), st.integers(1, 3)),
    then=st.tuples(st.integers(1, 4), st.integers(1, 3)),
    prefetch=st.integers(0, 4),
    **SIZES,
)
@settings(deadline=None, max_examples=40)
def test_a_loader_resumes_on_any_number_of_processes(
    before: int, first: tuple[int, int], then: tuple[int, int], prefetch: int, seq_len: int, seed: int
) -> None:
    """For any batch and number of ranks, before and after, the windows equal those of one process with batch 1."""
    text = torch.arange(40)

    def read(batch: int, world_size: int, steps: int, state: dict[str, int] | None) -> tuple[list[int], dict[str, int]]:
        loaders = [
            Loader(text, batch, seq_len, seed=seed, rank=r, world_size=world_size, prefetch=prefetch)
            for r in range(world_size)
        ]
        if state is not None:
            for loader in loaders:
                loader.load_state_dict(state)
        found = [starts(iter([next(loader)])) for _ in range(steps) for loader in loaders]
        state = loaders[-1].state_dict()
        for loader in loaders:
            loader.close()
        return list(chain.from_iterable(found)), state

    head, state = read(*first, before, None)
    tail, state = read(*then, 4, state)
    assert head + tail == starts(islice(Loader(text, 1, seq_len, seed=seed, prefetch=0), len(head + tail)))
    assert state["windows"] == len(head + tail)


def test_a_file_gives_the_same_batches_as_a_tensor(tmp_path: Path) -> None:
    write_tokens(tmp_path / "a", [range(300)], 300)
    with TokenFile(tmp_path / "a") as tokens, Loader(tokens, 3, 7, seed=5) as one:
        with Loader(torch.arange(300, dtype=torch.int32), 3, 7, seed=5) as other:
            assert starts(islice(one, 30)) == starts(islice(other, 30))
        evaluated = list(evaluation_batches(tokens, 3, 7))
        assert torch.equal(evaluated[1].inputs, torch.arange(21, 42).view(3, 7))


class Threads:
    """Finds the threads that were started since its creation."""

    def __init__(self) -> None:
        self.before = set(threading.enumerate())

    def started(self) -> set[threading.Thread]:
        return set(threading.enumerate()) - self.before

    def all_end(self) -> bool:
        for thread in self.started():
            thread.join(timeout=30)
        return not self.started()


class Breaks:
    """A text whose second half cannot be read."""

    def __len__(self) -> int:
        return 60

    def __getitem__(self, part: slice) -> Tensor:
        if part.start >= 30:
            raise OSError("the disk is gone")
        return torch.arange(60)[part]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_error_is_raised_at_its_batch_and_ends_the_thread(prefetch: int) -> None:
    threads, text = Threads(), torch.arange(60)
    good = next(n for n, batch in enumerate(Loader(text, 1, 3, seed=0, prefetch=0)) if batch.inputs[0, 0] >= 30)
    assert good > 0
    loader = Loader(Breaks(), 1, 3, seed=0, prefetch=prefetch)
    assert len(starts(islice(loader, good))) == good
    for _ in range(2):  # a second request tries again
        with pytest.raises(OSError, match="the disk is gone"):
            next(loader)
        assert not threads.started()
        assert loader.state_dict()["windows"] == good


def test_the_thread_ends_with_the_block() -> None:
    threads = Threads()
    with pytest.raises(ZeroDivisionError), Loader(torch.arange(60), 1, 3, seed=0) as loader:  # noqa: PT012
        next(loader)
        assert len(threads.started()) == 1
        raise ZeroDivisionError
    assert not threads.started()


def test_the_thread_ends_when_the_loader_is_deleted() -> None:
    threads = Threads()
    loader = Loader(torch.arange(60), 1, 3, seed=0)
    next(loader)
    assert len(threads.started()) == 1
    del loader
    gc.collect()
    assert threads.all_end()


def test_a_closed_loader_can_be_used_again() -> None:
    with Loader(torch.arange(60), 2, 3, seed=0) as loader, Loader(torch.arange(60), 2, 3, seed=0) as other:
        head = starts(islice(loader, 5))
        loader.close()
        loader.close()
        assert head + starts(islice(loader, 20)) == starts(islice(other, 25))


@pytest.mark.parametrize("device", [torch.device("meta"), best_device()])
def test_batches_are_on_the_requested_device(device: torch.device) -> None:
    with Loader(torch.arange(60), 2, 3, seed=0, device=device) as loader:
        batches = [next(loader), *evaluation_batches(torch.arange(60), 2, 3, device=device)]
    for batch in batches:
        assert (batch.inputs.device.type, batch.targets.device.type) == (device.type, device.type)


def test_gpu_batches_are_pinned_in_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def note(what: str) -> Any:
        def method(batch: Batch, device: torch.device) -> Batch:
            seen.append((what, device, threading.current_thread() is threading.main_thread()))
            return batch

        return method

    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(Batch, "pinned_for", note("pinned"))
    monkeypatch.setattr(Batch, "to", note("copied"))
    with Loader(torch.arange(60), 2, 3, seed=0, device=torch.device("cuda"), prefetch=1) as loader:
        next(loader)
    gpu = torch.device("cuda:3")
    assert set(seen) == {("pinned", gpu, False), ("copied", gpu, True)}
    assert seen.count(("copied", gpu, True)) == 1


@given(tokens=st.integers(2, 90), batch=st.integers(1, 5), seq_len=st.integers(1, 12))
@settings(deadline=None)
def test_evaluation_has_every_token_once_as_a_target(tokens: int, batch: int, seq_len: int) -> None:
    batches = list(evaluation_batches(torch.arange(tokens), batch, seq_len))
    targets = torch.cat([part.targets.flatten() for part in batches])
    inputs = torch.cat([part.inputs.flatten() for part in batches])
    counted = tokens - 1
    assert targets[:counted].tolist() == list(range(1, tokens))
    assert inputs[:counted].tolist() == list(range(tokens - 1))
    assert (targets[counted:] == IGNORE_INDEX).all()
    assert not inputs[counted:].any()
    assert len(targets) - counted < seq_len
    assert [len(part.inputs) for part in batches[:-1]] == [batch] * (len(batches) - 1)
    assert 1 <= len(batches[-1].inputs) <= batch
    assert {part.inputs.shape[1] for part in batches} == {seq_len}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seq_len": 60}, "the text has 60 tokens, and a window of 60 needs 61"),
        ({"seq_len": 0}, "seq_len of at least 1"),
        ({"seed": -1}, "seed of at least 0"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"prefetch": -1}, "prefetch at least 0"),
        ({"rank": 2, "world_size": 2}, "there is no rank 2 among 2 processes"),
        ({"rank": -1}, "there is no rank -1"),
    ],
)
def test_impossible_arguments_are_rejected_in_one_line(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Loader(torch.arange(60), **{"batch": 2, "seq_len": 3, "seed": 0, **changes})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"tokens": 60, "seq_len": 4, "seed": 7, "windows": 1}, "seq_len 4 instead of 3, seed 7 instead of 0"),
        ({"tokens": 61, "seq_len": 3, "seed": 0, "windows": 1}, "tokens 61 instead of 60"),
        ({"step": 3}, "needs tokens, seq_len, seed, windows; this one has step"),
        ({}, "this one has nothing"),
    ],
)
def test_a_position_in_another_window_order_is_rejected(state: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Loader(torch.arange(60), 2, 3, seed=0).load_state_dict(state)


@pytest.mark.parametrize(("batch", "seq_len", "tokens"), [(0, 3, 9), (2, 0, 9), (2, 3, 1), (2, 3, 0)])
def test_evaluation_of_nothing_is_rejected_at_once(batch: int, seq_len: int, tokens: int) -> None:
    with pytest.raises(ValueError, match=r"must be at least 1|there is nothing to predict"):
        evaluation_batches(torch.arange(tokens), batch, seq_len)
