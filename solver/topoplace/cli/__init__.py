"""The `topoplace` command: parses, calls the library, prints. No logic lives here."""

from topoplace.cli.entry import main, run

__all__ = ["main", "run"]
