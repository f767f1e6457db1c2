"""Snapshots written on the way through a log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from topoplace.snapshot.files import write_document
from topoplace.study.replay.scheduler import Replay


class SnapshotWriter:
    """Writes the machine and its queue to files, at the points asked for.

    A point is due after a number of starts, or at a time; the snapshot is taken at the next event
    at which someone waits, before it is decided who starts. Hand it to `Replay.run` as
    `before_starts`. Files are named ``NAME-0001.json`` and so on, and are written whole or not
    at all.

    Parameters
    ----------
    folder
        Where to write; it exists.
    name
        Begins the names of the snapshots and of their files.
    every
        Take one after every so many starts.
    times
        Take one at each of these seconds since the log's start.
    """

    def __init__(
        self, folder: Path, name: str, every: int | None = None, times: Iterable[int] = ()
    ) -> None:
        self.written: list[Path] = []
        self._folder = folder
        self._name = name
        self._every = every
        self._next_start = every or 0
        self._times = sorted(times)

    def __call__(self, replay: Replay) -> None:
        """Write a snapshot if one is due."""
        num_started = len(replay.records)
        due = False
        if self._every is not None and num_started >= self._next_start:
            due = True
            self._next_start = (num_started // self._every + 1) * self._every
        while self._times and self._times[0] <= replay.now:
            self._times.pop(0)
            due = True
        if due:
            name = f"{self._name}-{len(self.written) + 1:04d}"
            path = self._folder / f"{name}.json"
            write_document(path, replay.snapshot(name))
            self.written.append(path)
