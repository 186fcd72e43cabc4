"""Right answers to the exercise on the time of a pass, in other styles than the printed one."""

from __future__ import annotations


def with_intensity(
    parameters: int,
    cache_bytes: int,
    batch: int,
    new: int,
    peak: float,
    bandwidth: float,
    devices: int = 1,
    width: int = 2,
) -> tuple[float, str]:
    flops, moved = 2 * parameters * batch * new, width * parameters + batch * cache_bytes
    if flops / moved > peak / bandwidth:
        return flops / peak / devices, "arithmetic"
    return moved / bandwidth / devices, "memory"


def with_a_dict(
    parameters: int,
    cache_bytes: int,
    batch: int,
    new: int,
    peak: float,
    bandwidth: float,
    devices: int = 1,
    width: int = 2,
) -> list[object]:
    seconds = {
        "memory": (parameters * width + cache_bytes * batch) / (bandwidth * devices),
        "arithmetic": 2.0 * parameters * (batch * new) / (peak * devices),
    }
    limit = max(seconds, key=lambda name: seconds[name])
    return [seconds[limit], limit]


def sorted_pairs(
    parameters: int,
    cache_bytes: int,
    batch: int,
    new: int,
    peak: float,
    bandwidth: float,
    devices: int = 1,
    width: int = 2,
) -> tuple[float, str]:
    share = parameters / devices
    computing = share * 2 * new * batch / peak
    reading = (share * width + cache_bytes / devices * batch) / bandwidth
    return sorted([(computing, "arithmetic"), (reading, "memory")])[-1]


RIGHT_SECONDS = (with_intensity, with_a_dict, sorted_pairs)
