"""How often a replay asked for a place, and what it got."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Decisions:
    """What came of asking for places, so far.

    Attributes
    ----------
    asked
        How often the method or allocator was asked.
    nowhere
        It found no place, although there was room.
    timed_out
        It met its time limit.
    proven
        It proved its place to be best on all three levels (docs/proofs.md, "The objective").
    """

    asked: int = 0
    nowhere: int = 0
    timed_out: int = 0
    proven: int = 0

    def count(self, *, found: bool, timed_out: bool, proven: bool = False) -> None:
        """Count one more."""
        self.asked += 1
        self.nowhere += not found
        self.timed_out += timed_out
        self.proven += proven

    @property
    def text(self) -> str:
        """The counts in words; those that are 0 are left out."""
        words = [f"{self.asked:,}"]
        if self.proven:
            words.append(f"{self.proven:,} proven best")
        if self.timed_out:
            words.append(f"{self.timed_out:,} at the time limit")
        if self.nowhere:
            words.append(f"{self.nowhere:,} found no place")
        return ", ".join(words)
