"""Blocks certificates: what boxes of routers must emit, whatever tasks they hold."""

from topoplace.bounds.blocks.certificate import blocks_bound
from topoplace.bounds.blocks.inside import inside_bound

__all__ = ["blocks_bound", "inside_bound"]
