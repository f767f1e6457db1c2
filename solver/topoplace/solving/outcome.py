"""What a method hands back at its end and on the way, and how that is shown while it runs."""

from __future__ import annotations

import logging
import math
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TextIO

from topoplace.result import Explanation, Proof

log = logging.getLogger("topoplace")
log.addHandler(logging.NullHandler())

WATCH_SECONDS = 0.25
"""Time between two looks at what a solve has so far."""

PLAIN_SECONDS = 2.0
"""Least time between two lines where lines are not rewritten."""

Number = int | Fraction


@dataclass(frozen=True)
class Bound:
    """A bound of a level, in the sense in which the level is reported.

    Attributes
    ----------
    value
        What no solution surpasses.
    certificate
        Evidence that the checker verifies; without it a search found the bound.
    """

    value: Number
    certificate: Any | None = None

    @property
    def proof(self) -> Proof:
        """What supports the bound."""
        return Proof.SEARCH if self.certificate is None else Proof.CERTIFICATE


def stronger(first: Bound | None, second: Bound | None, sense: str = "min") -> Bound | None:
    """Return the bound that says more on a level of that sense; of equal ones one with evidence."""
    known = [bound for bound in (first, second) if bound is not None]
    sign = 1 if sense == "min" else -1
    return max(known, key=lambda b: (sign * b.value, b.certificate is not None), default=None)


@dataclass(frozen=True)
class Outcome:
    """What a method found, in the problem's own form, and what it can prove.

    Attributes
    ----------
    solution
        For a placement, the candidates and scattered requests that start. For an allocation, the
        node of every rank, by the number of the request. For a mapping, a `Mapped`. None if the
        method found no answer at all.
    bounds
        The bound of each level in turn. None, or the end, where nothing is proven.
    time_limit_hit
        Whether the time limit ended the method.
    versions
        Versions of the programs and libraries that took part.
    explanations
        Why requests do not start.
    notes
        For a mapping: how it was found, in sentences for people.
    link_load
        For a mapping: a lower bound on the largest link load of any mapping.
    first_level
        Whether the method ended after the first level, as asked; None where it cannot.
    witness
        For a packing without an answer: a placement as good on earlier levels as the bounds
        assume.
    """

    solution: Any | None
    bounds: Sequence[Bound | None] = ()
    time_limit_hit: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    explanations: Sequence[Explanation] = ()
    notes: Sequence[str] = ()
    link_load: Bound | None = None
    first_level: bool | None = None
    witness: Any | None = None


@dataclass(frozen=True)
class Progress:
    """Where a solve is.

    Attributes
    ----------
    seconds
        Since it began.
    level
        Name of the level it works on.
    objective, bound
        Of that level, in its own sense; None before there is one.
    phase
        What the method does.
    """

    seconds: float
    instance: str
    method: str
    level: str
    objective: Number | None
    bound: Number | None
    phase: str

    @property
    def gap(self) -> float | None:
        """Their distance, as a share of the objective."""
        return gap_of(self.objective, self.bound)

    def __str__(self) -> str:
        parts = [f"{self.level} {_shown(self.objective)}, bound {_shown(self.bound)}"]
        if self.gap is not None:
            parts[0] += f", gap {100 * self.gap:.2f} %"
        parts += [self.phase] if self.phase else []
        return f"{self.seconds:7.1f} s  {self.instance}, {self.method}: {'; '.join(parts)}"


Watch = Callable[[Progress], None]


def gap_of(objective: Number | None, bound: Number | None) -> float | None:
    """Return how far an objective is from its bound, as a share of it; None if one is missing."""
    if objective is None or bound is None:
        return None
    exact = Fraction(objective), Fraction(bound)
    return float(abs(exact[0] - exact[1]) / max(Fraction(1), abs(exact[0])))


def _shown(value: Number | None) -> str:
    if value is None:
        return "none yet"
    return f"{value:,}" if isinstance(value, int) else f"{float(value):,.2f}"


class Incumbent:
    """The best that a method has reported, and what it is doing.

    Methods report as often as they like: who watches looks here a few times a second. Each change
    is one assignment, so that a look sees the old state or the new one.

    Parameters
    ----------
    levels
        Name and sense of every level of the objective.
    instance, method
        Their names, for who watches.
    """

    def __init__(
        self,
        levels: Sequence[tuple[str, str]] = (("hop-bytes", "min"),),
        instance: str = "",
        method: str = "",
    ) -> None:
        self.levels, self.instance, self.method = levels, instance, method
        self._began = time.perf_counter()
        self._best: tuple[Any, tuple[Number, ...], tuple[Bound | None, ...]] = (None, (), ())
        self._doing: tuple[int, str, Number | None] = (-1, "", None)
        self._reporting = threading.Lock()  # bounds and solutions may come from two threads

    @property
    def outcome(self) -> Outcome | None:
        """What is reported, as the outcome of a method ended early; None without a solution."""
        solution, _, bounds = self._best
        return None if solution is None else Outcome(solution, bounds, time_limit_hit=True)

    def report(
        self, solution: Any, values: Sequence[Number], bounds: Sequence[Bound | None] = ()
    ) -> None:
        """Keep a solution that is no worse than all before, and what it says of the bounds.

        Parameters
        ----------
        solution
            In the form of `Outcome.solution`, and not changed afterwards; None for bounds alone.
        values
            Its values on the levels, or on the first of them.
        bounds
            Of the levels, or of the first of them; the first one's holds for any solution.
        """
        with self._reporting:
            best, worth, known = self._best
            before, now = (next(iter(own), None) for own in (known, bounds))
            first = stronger(before, now, self.levels[0][1])
            if solution is not None and self._rank(values) >= self._rank(worth):
                best, worth, known = solution, tuple(values), tuple(bounds)
            self._best = (best, worth, (first, *known[1:]))

    def say(self, phase: str, level: int = 0, bound: Number | None = None) -> None:
        """Tell what the method does, on which level, and a bound that it has no evidence for yet.

        A bound stands until the level changes.
        """
        before, last_phase, last_bound = self._doing
        if level != before and before >= 0:
            log.info("%s", self.progress())
        if level == before and bound is None:
            bound = last_bound
        self._doing = (level, phase, bound)
        if (level, phase) != (before, last_phase):
            log.log(logging.DEBUG if level == before else logging.INFO, "%s", self.progress())

    def progress(self) -> Progress:
        """Return where the solve is."""
        (_, values, bounds), (level, phase, hint) = self._best, self._doing
        level = max(0, level)
        name, sense = self.levels[level]
        proven = bounds[level] if level < len(bounds) else None
        known = stronger(proven, None if hint is None else Bound(hint), sense)
        return Progress(
            time.perf_counter() - self._began,
            self.instance,
            self.method,
            name,
            values[level] if level < len(values) else None,
            None if known is None else known.value,
            phase,
        )

    def _rank(self, values: Sequence[Number]) -> tuple[Number, ...]:
        """Return values so that the better ones are larger."""
        signs = [1 if sense == "max" else -1 for _, sense in self.levels]
        return tuple(sign * value for sign, value in zip(signs, values, strict=False))


class Display:
    """Prints the progress of solves on stderr: one live line at a terminal, else line after line.

    A live line is written anew a few times a second, and gone when the block ends.

    Parameters
    ----------
    stream
        Where to print; stderr by default.
    live
        Whether lines are rewritten; by default if the stream is a terminal.
    once
        Seconds after which the only line is printed, where lines are not rewritten; it says how to
        end the solve. By default there are lines now and then.
    """

    def __init__(
        self, stream: TextIO | None = None, live: bool | None = None, once: float | None = None
    ) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty() if live is None else live
        self._once = once is not None
        self._next = 0.0 if once is None else time.monotonic() + once

    def __call__(self, progress: Progress) -> None:
        """Show where a solve is."""
        self.show(str(progress))

    def show(self, text: str) -> None:
        """Show a line; where lines are not rewritten, not so soon after another one."""
        if self._live:
            width = shutil.get_terminal_size().columns
            print(f"\r\x1b[K{text[: width - 1]}", end="", file=self._stream, flush=True)
        elif time.monotonic() >= self._next:
            self._next = math.inf if self._once else time.monotonic() + PLAIN_SECONDS
            text += " (--time-limit or Ctrl-C ends it with what it has)" if self._once else ""
            print(text, file=self._stream, flush=True)

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
