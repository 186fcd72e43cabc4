"""Compare the simulated device with hand calculations for a queue."""

from __future__ import annotations

import pytest

from lmcourse.accounting.timing import SimulatedDevice


def test_the_cpu_waits_only_for_launches_and_synchronise() -> None:
    device = SimulatedDevice([4.0, 1.0], launch=0.5)
    device.run()
    assert device.clock() == 0.5
    device.run()
    device.run()
    assert (device.clock(), device.runs) == (1.5, 3)
    device.synchronise()
    assert device.clock() == 0.5 + 4.0 + 1.0 + 1.0
    device.synchronise()
    assert device.clock() == 6.5


def test_an_idle_device_starts_a_run_at_once() -> None:
    device = SimulatedDevice([1.0], launch=3.0)
    for runs in (1, 2, 3):
        device.run()
        device.synchronise()
        assert device.clock() == pytest.approx(runs * 4.0)


def test_a_full_queue_blocks_the_cpu() -> None:
    device, seen = SimulatedDevice([2.0], launch=0.5, room=2), []
    for _ in range(4):
        device.run()
        seen.append(device.clock())
    assert seen == [0.5, 1.0, 3.0, 5.0], "the third waits until the first is done, at 2.5"


@pytest.mark.parametrize(
    ("seconds", "launch", "room"), [([], 0.0, 1), ([-1.0], 0.0, 1), ([1.0], -1.0, 1), ([1.0], 0.0, 0)]
)
def test_impossible_arguments_are_rejected(seconds: list[float], launch: float, room: int) -> None:
    with pytest.raises(ValueError, match="needs a run time"):
        SimulatedDevice(seconds, launch, room)
