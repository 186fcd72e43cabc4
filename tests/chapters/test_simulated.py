"""Programs on simulated workers: results, bytes, rounds, and a sentence for each kind of error."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from lmcourse.accounting.parallel import all_gather_bytes, all_reduce_bytes, reduce_scatter_bytes
from lmcourse.chapters.parallelism.simulated import CommunicationError, simulate

X = [torch.arange(8.0) * 10**rank for rank in range(4)]


def _to_the_right(worker: Any, x: Tensor) -> Tensor:
    worker.send((worker.rank + 1) % worker.size, x)
    return worker.receive((worker.rank - 1) % worker.size)  # type: ignore[no-any-return]


def _down_a_line(worker: Any, x: Tensor) -> Tensor:
    if worker.rank:
        x = worker.receive(worker.rank - 1)
    if worker.rank + 1 < worker.size:
        worker.send(worker.rank + 1, x)
    return x


def test_messages_are_copies_and_every_byte_counts() -> None:
    run = simulate(_to_the_right, X)
    assert [torch.equal(a, b) for a, b in zip(run.results, [X[3], *X[:3]], strict=True)] == [True] * 4
    assert run.sent == [32] * 4
    assert (run.rounds, run.links) == (1, ((0, 1), (1, 2), (2, 3), (3, 0)))
    assert not any(result.data_ptr() == x.data_ptr() for result in run.results for x in X)


def test_a_round_is_one_sent_and_one_received_message() -> None:
    assert simulate(_down_a_line, X).rounds == 3

    def chief(worker: Any, x: Tensor) -> None:
        if worker.rank:
            worker.send(0, x)
        else:
            for sender in range(1, worker.size):
                worker.receive(sender)

    assert simulate(chief, X).rounds == 3


def test_the_clock_adds_up_the_longest_chain() -> None:
    assert simulate(_down_a_line, X, wire=(2.0, 0.5)).seconds == 3 * (2 + 0.5 * 32)
    assert simulate(_to_the_right, X, wire=(2.0, 0.5)).seconds == 2 + 0.5 * 32


def test_an_all_to_all_swaps_parts_of_any_length() -> None:
    parts = [[torch.full((n,), 10.0 * rank) for n in (1, 2)] for rank in range(2)]
    run = simulate(lambda worker, mine: worker.all_to_all(mine), parts, collectives=True)
    assert [[part.tolist() for part in result] for result in run.results] == [[[0.0], [10.0]], [[0.0] * 2, [10.0] * 2]]
    assert run.sent == [8, 4]


def test_messages_between_two_keep_their_order() -> None:
    def program(worker: Any) -> list[float]:
        if worker.rank:
            return [worker.receive(0).item() for _ in range(3)]
        for number in (1.0, 2.0, 3.0):
            worker.send(1, torch.tensor(number))
        return []

    assert simulate(lambda worker, _: program(worker), [0, 0]).results == [[], [1.0, 2.0, 3.0]]


def test_a_message_carries_no_graph_and_does_not_change_later() -> None:
    def program(worker: Any, x: Tensor) -> Any:
        if worker.rank:
            return worker.receive(0)
        sent = (2 * x.requires_grad_()).clone()
        worker.send(1, sent)
        sent.data.zero_()
        return None

    arrived = simulate(program, [torch.ones(2)] * 2).results[1]
    assert arrived.tolist() == [2.0, 2.0]
    assert not arrived.requires_grad


def test_output_of_a_program_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    def program(worker: Any, x: Tensor) -> None:
        print("begin", worker.rank)
        _to_the_right(worker, x)

    simulate(program, X[:2])
    assert capsys.readouterr().out == "begin 0\nbegin 1\n"


def test_inputs_are_copies_and_changes_are_reported() -> None:
    def program(worker: Any, x: Tensor) -> None:
        _to_the_right(worker, x)
        if worker.rank == 1:
            x += 1

    before = [x.clone() for x in X]
    assert simulate(program, X).changed == (1,)
    assert all(map(torch.equal, X, before))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_collectives_give_their_results_and_count_as_rings(size: int) -> None:
    def program(worker: Any, x: Tensor) -> Any:
        return worker.all_reduce(x), worker.all_reduce(x, "max"), worker.all_gather(x, 1), worker.reduce_scatter(x, 1)

    xs = [x.view(2, 4) - 10 for x in X[:size]]
    run = simulate(program, xs, collectives=True)
    for rank, (total, largest, gathered, share) in enumerate(run.results):
        assert torch.equal(total, torch.stack(xs).sum(0))
        assert torch.equal(largest, torch.stack(xs).amax(0))
        assert torch.equal(gathered, torch.cat(xs, 1))
        assert torch.equal(share, torch.stack(xs).sum(0).chunk(size, 1)[rank])
    whole = 2 * all_reduce_bytes(32, size) + all_gather_bytes(size * 32, size) + reduce_scatter_bytes(32, size)
    assert run.sent == [whole] * size
    assert (run.collectives, run.rounds, run.links) == (4, 0, ())


def test_a_sum_keeps_its_dtype() -> None:
    for dtype in (torch.float16, torch.int32, torch.uint8):
        (total, _) = simulate(lambda w, x: w.all_reduce(x), [torch.ones(2, dtype=dtype)] * 2, collectives=True).results
        assert (total.dtype, total.tolist()) == (dtype, [2, 2])


@pytest.mark.parametrize(
    ("program", "error", "says"),
    [
        (lambda w, x: w.receive(1 - w.rank), CommunicationError, "worker 0 waits for worker 1, worker 1 waits for w"),
        (lambda w, x: w.rank and w.receive(0), CommunicationError, "worker 0 has ended, worker 1 waits for worker 0"),
        (lambda w, x: w.send(1 - w.rank, x), CommunicationError, "worker 1 never receives a message that worker 0"),
        (lambda w, x: w.send(w.rank, x), ValueError, "worker 0 cannot send to itself"),
        (lambda w, x: w.receive(w.rank), ValueError, "worker 0 cannot send to itself or receive from itself"),
        (lambda w, x: w.send(2, x), ValueError, "there is no worker 2: ranks go from 0 to 1"),
        (lambda w, x: w.receive(-1), ValueError, "there is no worker -1"),
        (lambda w, x: w.send(1 - w.rank, 3.0), TypeError, "worker 0 sends a value of type float: send a tensor"),
        (lambda w, x: w.all_reduce(x, "mean"), ValueError, "op must be 'sum' or 'max', not 'mean'"),
        (lambda w, x: w.all_reduce(1), TypeError, "worker 0 calls all_reduce with a value of type int"),
        (
            lambda w, x: w.rank or w.all_reduce(x),
            CommunicationError,
            "waits for everybody to call all_reduce, worker 1 h",
        ),
        (lambda w, x: w.all_reduce(x) if w.rank else w.all_gather(x), CommunicationError, "worker 0 calls all_gather"),
        (lambda w, x: w.all_reduce(x[w.rank :]), CommunicationError, "(8,) torch.float32 on worker 0, (7,)"),
        (lambda w, x: w.reduce_scatter(x[:3]), ValueError, "shape (3,) cannot be cut into 2 equal parts"),
    ],
)
def test_every_mistake_has_a_sentence(program: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        simulate(program, X[:2], collectives=True)
    assert says in str(caught.value)


def test_an_error_in_a_program_names_its_worker() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        simulate(lambda worker, x: 1 / (1 - worker.rank), X[:2])
    assert caught.value.__notes__ == ["on worker 1"]


def test_a_patient_send_waits_until_it_is_taken() -> None:
    with pytest.raises(CommunicationError, match="worker 0 waits for worker 1 to take its message"):
        simulate(_to_the_right, X, patient=True)
    assert simulate(_down_a_line, X, patient=True).results[3].tolist() == X[0].tolist()

    def odd_ranks_receive_first(worker: Any, x: Tensor) -> Tensor:
        if worker.rank % 2:
            arrived = worker.receive(worker.rank - 1)
            worker.send((worker.rank + 1) % worker.size, x)
            return arrived  # type: ignore[no-any-return]
        worker.send(worker.rank + 1, x)
        return worker.receive((worker.rank - 1) % worker.size)  # type: ignore[no-any-return]

    assert simulate(odd_ranks_receive_first, X, patient=True).results[0].tolist() == X[3].tolist()


def test_inputs_have_an_entry_for_every_worker() -> None:
    for columns in ([], [[]], [[1, 2], [1]]):
        with pytest.raises(ValueError, match="one entry per worker"):
            simulate(_to_the_right, *columns)
