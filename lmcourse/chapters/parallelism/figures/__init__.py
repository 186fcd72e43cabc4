"""Figures of notebook 18: messages, divided matrices, pipelines, overlap, layouts."""

from lmcourse.chapters.parallelism.figures.collectives import COLLECTIVES, all_reduce_seconds, collective
from lmcourse.chapters.parallelism.figures.cuts import kept_per_device, link_speeds, shard_map
from lmcourse.chapters.parallelism.figures.explorer import CLUSTERS, MODELS, layout_explorer
from lmcourse.chapters.parallelism.figures.overlap import BUCKETS, bucket_timeline
from lmcourse.chapters.parallelism.figures.pipelines import bubble, pipeline_schedule, pipeline_times

__all__ = [
    "BUCKETS",
    "CLUSTERS",
    "COLLECTIVES",
    "MODELS",
    "all_reduce_seconds",
    "bubble",
    "bucket_timeline",
    "collective",
    "kept_per_device",
    "layout_explorer",
    "link_speeds",
    "pipeline_schedule",
    "pipeline_times",
    "shard_map",
]
