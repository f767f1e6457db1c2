"""Readers of other tools' files."""

from topoplace.snapshot.readers.cray_neighbour_table import CrayTable, read_cray_neighbours
from topoplace.snapshot.readers.swf import SwfLog, read_swf, snapshot_of_swf

__all__ = ["CrayTable", "SwfLog", "read_cray_neighbours", "read_swf", "snapshot_of_swf"]
