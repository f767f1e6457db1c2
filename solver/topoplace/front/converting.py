"""Convert files of other tools, for the command line."""

from topoplace.snapshot.convert import ConvertOptions, converted

__all__ = ["ConvertOptions", "converted"]
