"""The figures of notebook 18: what they show, read from the alt text, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
import torch
from matplotlib.figure import Figure

from lmcourse.accounting.parallel import all_reduce_bytes
from lmcourse.chapters.parallelism import exercises, figures
from lmcourse.chapters.parallelism.figures.collectives import after
from lmcourse.plots import alt_text
from lmcourse.training.parallel.simulated import simulate
from tests.plots.figures import check_figure

LINKS = {"fast": 450e9, "slow": 50e9}
DRAWINGS: list[Callable[..., Figure]] = [
    *(partial(figures.collective, kind, *at) for kind in figures.COLLECTIVES for at in ((2, 0), (8, 14))),
    figures.ring_bytes,
    *(partial(figures.pipeline_schedule, *at) for at in ((2, 1, "gpipe", 1.0), (8, 32, "1f1b", 3.0), (4, 4, "1f1b"))),
    figures.bubble,
    *(partial(figures.shard_map, devices) for devices in (2, 4, 8)),
    figures.kept_per_device,
    partial(figures.link_speeds, 16384, 989.4e12, LINKS),
    *(partial(figures.layout_budget, *at) for at in ((1, 1, 1, 0), (16, 8, 8, 3, "network, 50 GB/s"), (8, 1, 1, 1))),
    *(partial(figures.layout_budget, model=model) for model in figures.MODELS),
    *(partial(figures.tensor_parallel_block, direction) for direction in figures.DIRECTIONS),
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=range(len(DRAWINGS)))
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


@pytest.mark.parametrize(("kind", "workers"), [*product(figures.COLLECTIVES, range(2, 9))])
def test_every_collective_ends_as_its_name_says(kind: str, workers: int) -> None:
    held, sent, rounds = after(kind, workers, 100)
    everybody = frozenset(range(workers))
    for r, row in enumerate(held):
        match kind:
            case "broadcast":
                assert row == [frozenset({0})] * workers
            case "all-gather":
                assert row == [frozenset({c}) for c in range(workers)]
            case "reduce-scatter":
                assert [c for c, owners in enumerate(row) if owners == everybody] == [r]
            case _:
                assert row == [everybody] * workers
    if kind == "ring all-reduce":
        assert [float(share) for share in sent] == pytest.approx([all_reduce_bytes(1, workers)] * workers)
        assert rounds == 2 * (workers - 1)
        run = simulate(exercises.ring_all_reduce.reference, [torch.ones(workers)] * workers)
        assert (run.rounds, run.sent) == (rounds, [share * 4 * workers for share in sent])
    if kind == "through rank 0":
        assert (sent[0], set(sent[1:])) == (workers - 1, {1})


def test_the_pictures_say_what_the_text_says() -> None:
    assert "21 units of time, stages wait 42.9%" in alt_text(figures.pipeline_schedule(4, 4, "gpipe"))
    assert "21 units of time, stages wait 42.9%" in alt_text(figures.pipeline_schedule(4, 4, "1f1b"))
    assert alt_text(figures.pipeline_schedule(4, 32, "1f1b")).endswith("4, 3, 2, 1")
    assert "state 128.5 GB each, does not fit" in alt_text(figures.layout_budget())
    assert "state 16.1 GB each, fits" in alt_text(figures.layout_budget(data=8, zero=3))
    assert "405b, 128 devices" in alt_text(figures.layout_budget(tensor=8, pipeline=16, model="llama-3.1-405b"))
    assert "state 50.7 GB each, fits" in alt_text(figures.layout_budget(tensor=8, pipeline=16, model="llama-3.1-405b"))
    assert "g is an all-reduce, f is nothing" in alt_text(figures.tensor_parallel_block("forward"))
    assert "f is an all-reduce, g is nothing" in alt_text(figures.tensor_parallel_block("backward"))
    assert "8 devices 13.0 against 4.2" in alt_text(figures.kept_per_device())
    assert "fast: 0.31 at 8 devices; slow: 2.82" in alt_text(figures.link_speeds(16384, 989.4e12, LINKS))
    drawn = alt_text(figures.pipeline_times([["F0", "B0"]], backward=1.0))
    assert drawn.startswith("2 units of time, stages wait 0.0%")


def test_words_that_name_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no collective 'gossip'"):
        figures.collective("gossip")
    with pytest.raises(ValueError, match="goes forward or backward, not 'sideways'"):
        figures.tensor_parallel_block("sideways")
    with pytest.raises(ValueError, match="there is no schedule 'zigzag'"):
        figures.pipeline_schedule(schedule="zigzag")
