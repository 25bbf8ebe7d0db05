"""Samples that online queries read: shuffled copies of tables, and random blocks of tables."""

from .blocks import RandomBlocks, random_blocks
from .copies import ShuffledCopy, copy_places, discard, find_copy, list_copies, remove_copy
from .making import CopyMaker
from .model import Part, Sample, SampleError
from .shuffling import BeingMade, shuffle, shuffle_in_turn

__all__ = [
    "BeingMade",
    "CopyMaker",
    "Part",
    "RandomBlocks",
    "Sample",
    "SampleError",
    "ShuffledCopy",
    "copy_places",
    "discard",
    "find_copy",
    "list_copies",
    "random_blocks",
    "remove_copy",
    "shuffle",
    "shuffle_in_turn",
]
