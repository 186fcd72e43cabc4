"""Figures of notebook 18: messages, divided matrices, pipelines, overlap, layouts."""

from lmcourse.chapters.parallelism.figures.collectives import COLLECTIVES, all_reduce_seconds, collective
from lmcourse.chapters.parallelism.figures.cuts import shard_map
from lmcourse.chapters.parallelism.figures.explorer import CLUSTERS, MODELS, layout_explorer
from lmcourse.chapters.parallelism.figures.overlap import BUCKETS, bucket_timeline
from lmcourse.chapters.parallelism.figures.pipelines import pipeline_schedule

__all__ = [
    "BUCKETS",
    "CLUSTERS",
    "COLLECTIVES",
    "MODELS",
    "all_reduce_seconds",
    "bucket_timeline",
    "collective",
    "layout_explorer",
    "pipeline_schedule",
    "shard_map",
]
