"""Samples that online queries read: shuffled copies of tables, and random blocks of tables."""

from .blocks import RandomBlocks, random_blocks
from .choosing import best_sample
from .copies import ShuffledCopy, copy_places, discard, find_copy, list_copies, remove_copy
from .making import CopyMaker
from .model import Part, Sample, SampleError
from .shuffling import BeingMade, shuffle

__all__ = [
    "BeingMade",
    "CopyMaker",
    "Part",
    "RandomBlocks",
    "Sample",
    "SampleError",
    "ShuffledCopy",
    "best_sample",
    "copy_places",
    "discard",
    "find_copy",
    "list_copies",
    "random_blocks",
    "remove_copy",
    "shuffle",
]
