"""Whatever our methods write `check` accepts, in every mode, and brute force agrees.

A document is what one mode makes of a tiny problem of some kind: a placement, perhaps with
something required of levels, all optima, a frontier, a plan that moves jobs. Some searches are
interrupted. A failing document is named by its seed: `document_of` makes it again.
`TOPOPLACE_TINY_SEED` chooses others, `TOPOPLACE_DOCUMENTS` how many `test_many_documents` makes.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from test_frontier import best_of, points_of
from test_optima import MOST_OPTIMA, best_by_trying
from tiny_kinds import Drawn, Values, drawn
from topoplace import clock, interrupts
from topoplace.certify import check_document
from topoplace.certify.report import exact
from topoplace.placement.optima import optima_of
from topoplace.placement.torus.repack.defragment import defragmented
from topoplace.placement.trade_off import traded_off
from topoplace.result import Proof, Result, Status
from topoplace.result.reading import parse_checkable
from topoplace.result.several import Frontier, OpenBox, Optima
from topoplace.snapshot.files import text_of_document
from topoplace.solving import methods, solve
from topoplace.solving.solve import frame_of

FIRST = os.environ.get("TOPOPLACE_TINY_SEED", "first")
FEW = 400
MANY = int(os.environ.get("TOPOPLACE_DOCUMENTS", "20000"))
PER_CHUNK, PER_PROBLEM = 500, 4

PLACED = {"torus", "anchored", "hierarchy", "cubes"}
"""Kinds whose levels may be set, traded off, and have all their optima found."""

LONG = ("minizinc",)
"""Methods that start another program."""

TREE_SECONDS = 5.0
OPEN = 0.05
"""Largest share of the searches without an interrupt or limit that leave something unproven."""


# ---- Interrupts ----------------------------------------------------------------------------------


class LeftBehind(BaseException):
    """Stands for never returning: what a method has reported is the answer."""


@dataclass
class Interrupt:
    """A signal at a look at the clock, in the place of what marks the clock as stopped.

    Attributes
    ----------
    steps
        Looks until then.
    is_left
        Whether the method does not come back in time, but is left behind.
    """

    steps: float
    is_left: bool = False

    def is_set(self) -> bool:
        self.steps -= 1
        if self.steps > 0:
            return False
        if interrupts._heeding is not None:
            interrupts._heeding.number = signal.SIGINT
        if self.is_left and threading.current_thread() is not threading.main_thread():
            raise LeftBehind
        return True

    def set(self) -> None:
        self.steps = 0

    def clear(self) -> None:
        self.steps = float("inf")


@contextlib.contextmanager
def interrupted(interrupt: Interrupt | None) -> Iterator[None]:
    """Interrupt what searches in the block."""
    if interrupt is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "_stopped", replace(interrupt))
        yield


# ---- Modes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mode:
    """What is done with a problem; printed, it says how to repeat it."""

    seed: str
    name: str
    make: Callable[[Drawn], Any] = field(repr=False)
    details: object = None
    interrupt: Interrupt | None = None
    time_limit: float | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is a search that proves, and nothing ends it early."""
        proves = self.name != "place" or self.details == "exact"
        return proves and self.interrupt is None and self.time_limit is None


def mode_of(seed: str, case: Drawn) -> Mode:
    """Return a random mode of a problem."""
    rng = random.Random(f"mode-{seed}")
    interrupt, limit = None, None
    if rng.random() < 0.35:
        interrupt = Interrupt(int(10 ** rng.uniform(0, 3.5)), rng.random() < 0.4)
    elif rng.random() < 0.05:
        limit = 0.0
    options = replace(case.options, seed=rng.randrange(1 << 31), time_limit=limit)
    if case.kind == "tree" and limit is None:
        options = replace(options, time_limit=TREE_SECONDS)
    levels = [name for name, _ in frame_of(case.problem.kind).levels(case.problem)]
    kinds = {"defragment": ["defragment"]}.get(case.kind, ["place"])
    if case.kind in PLACED:
        kinds = ["place", "set", "set", "set", "all", "all", "pareto", "pareto"]
    name, details = rng.choice(kinds), None
    if name == "defragment":
        make = lambda own: defragmented(own.problem, options)  # noqa: E731
    elif name == "place":
        known = [m for m in methods(case.problem.kind) if m not in LONG and _fits(m, case)]
        details = "exact" if rng.random() < 0.6 else rng.choice(known)
        options = replace(options, thorough=rng.random() < 0.5)
        make = lambda own: solve(own.problem, details, options)  # noqa: E731
    elif name == "set":
        details = _required(rng, case, levels)
        options = replace(options, required=details)
        make = lambda own: solve(own.problem, "exact", options)  # noqa: E731
    elif name == "all":
        chosen, most = levels[: rng.randint(1, len(levels))], rng.choice((1, 3, MOST_OPTIMA + 1))
        apart = rng.choice(("started", "prisms", "nodes") if case.kind == "torus" else ("started",))
        details = chosen, most, apart
        make = lambda own: optima_of(own.problem, most, chosen, apart, options)  # noqa: E731
    else:
        num = min(len(levels), rng.choice((2, 2, 3)))
        details = sorted(rng.sample(levels, num), key=levels.index)
        make = lambda own: traded_off(own.problem, details, options)  # noqa: E731
    return Mode(seed, name, make, details, interrupt, limit)


def _fits(method: str, case: Drawn) -> bool:
    if case.kind == "joint":
        return method == "exact"
    return (method != "slurm-torus3d") if case.kind == "torus" else _fits_anchored(method, case)


def _fits_anchored(method: str, case: Drawn) -> bool:
    return case.kind != "anchored" or method in {"exact", "best-fit", "first-fit", "slurm-torus3d"}


def _required(rng: random.Random, case: Drawn, levels: Sequence[str]) -> dict[str, int]:
    """Return what is required of one level or several, mostly near what can be reached."""
    senses = dict(frame_of(case.problem.kind).levels(case.problem))
    near = rng.choice(sorted(case.totals)) if case.totals else (rng.randint(-3, 9),) * len(levels)
    best = max(case.totals) if case.totals and rng.random() < 0.6 else near
    found = {}
    for k in sorted(rng.sample(range(len(levels)), rng.choice((1, 1, 1, 2, len(levels))))):
        more = rng.choice((0, 0, 1, 1, 2, -1, -3, 10**6))
        sign = 1 if senses[levels[k]] == "max" else -1
        found[levels[k]] = sign * (int(best[k]) + more)
    return found


# ---- What documents say, and brute force ---------------------------------------------------------


def hold_result(result: Result[Any, Any, Any], totals: Collection[Values], mode: Mode) -> bool:
    """Hold the figures of all levels against all placements; tell whether all is settled."""
    pool = lexicographic = list(totals)
    witness = getattr(result, "witness", None)
    conforms = getattr(result.solution, "conforming", True)
    for k, level in enumerate(result.levels):
        sign = 1 if level.sense == "max" else -1
        required = getattr(level, "required", None)
        floor = None if required is None else sign * required
        if level.status is Status.INFEASIBLE:
            assert floor is not None
            assert all(total[k] < floor for total in lexicographic), (mode, level.name)
            return True
        best = max((total[k] for total in pool), default=None)
        if level.bound is not None and best is not None:
            assert sign * exact(level.bound) >= best, (mode, level.name)
        value = None if level.objective is None else sign * exact(level.objective)
        if value is not None and conforms:
            assert best is not None, (mode, level.name)
            assert value <= best, (mode, level.name)
            assert floor is None or value >= floor, (mode, level.name)
            assert value == best or level.status is not Status.OPTIMAL, (mode, level.name)
        if value is None and witness is not None:
            value = sign * witness.values[k]
        reached = value if floor is None else floor
        if reached is None:
            return False
        if floor is None and level.status is not Status.OPTIMAL and result.solution is not None:
            return False
        pool = [total for total in pool if total[k] >= reached]
        able = [t for t in lexicographic if floor is None or t[k] >= floor]
        top = max((total[k] for total in able), default=None)
        lexicographic = [t for t in able if floor is not None or t[k] == top]
    return result.solution is not None


def hold_frontier(frontier: Frontier, totals: Collection[Values], mode: Mode) -> bool:
    """Hold points and boxes against all placements; tell whether no box is open."""
    traded = [k for k, level in enumerate(frontier.levels) if level.name in frontier.traded]
    signs = [1 if frontier.levels[k].sense == "max" else -1 for k in traded]
    best, points = best_of(totals, traded), points_of(frontier)
    if frontier.complete:
        assert points == best, mode
    for point in points:
        assert any(_reaches(other, point) for other in best), (mode, point)
    for values in best:
        covered = any(_reaches(point, values) for point in points)
        assert covered or any(_inside(box, signs, values) for box in frontier.open), (mode, values)
    return frontier.complete


def _reaches(values: Values, others: Values) -> bool:
    return all(v >= o for v, o in zip(values, others, strict=True))


def _inside(box: OpenBox, signs: Sequence[int], values: Values) -> bool:
    ends = zip(signs, box.worst, box.best, values, strict=True)
    return all(
        (worst is None or sign * worst <= v) and (best is None or v <= sign * best)
        for sign, worst, best, v in ends
    )


def hold_optima(optima: Optima, case: Drawn, mode: Mode) -> bool:
    """Hold points against all placements; tell whether they are all, or as many as asked for."""
    num = len(optima.chosen)
    signs = [1 if level.sense == "max" else -1 for level in optima.levels[:num]]
    assert case.totals is not None
    best = max(total[:num] for total in case.totals)
    for point in optima.points:
        values = tuple(s * v for s, v in zip(signs, point.values, strict=False))
        assert values <= best, mode
        assert values == best or not optima.complete, mode
    if optima.complete and case.snapshot is not None:
        rule = case.options.interference
        every = best_by_trying(case.snapshot, rule, num, optima.distinct)
        assert every is None or len(every) == len(optima.points), mode
    return optima.complete or len(optima.points) == optima.asked


def held(case: Drawn, mode: Mode) -> str:
    """Make the document of a mode, hold it against the truth, and say what became of it."""
    with interrupted(mode.interrupt):
        try:
            written = mode.make(case)
        except KeyboardInterrupt:
            assert mode.interrupt is not None, mode
            return "no answer"
    document = parse_checkable(text_of_document(written).encode(), "document")
    report = check_document(document)
    assert report.holds, (mode, *report.failures)
    by_search = isinstance(document, Result) and any(
        level.proof is Proof.SEARCH for level in document.levels
    )
    assert report.verified or by_search, mode
    if case.totals is None:
        return "only checked"
    if isinstance(document, Frontier):
        done = hold_frontier(document, case.totals, mode)
    elif isinstance(document, Optima):
        done = hold_optima(document, case, mode)
    else:
        done = hold_result(document, case.totals, mode)
    return "settled" if done else "open"


@functools.lru_cache(maxsize=1)
def case_of(number: int) -> Drawn:
    return drawn(f"{FIRST}-{number}")


def document_of(number: int) -> tuple[Drawn, Mode]:
    """Return the problem and the mode of a document; some documents are of one problem."""
    case = case_of(number // PER_PROBLEM)
    return case, mode_of(f"{FIRST}-{number}", case)


def hold(numbers: range) -> None:
    """Hold some documents against the truth; say what there were."""
    tally: Counter[str] = Counter()
    whole: Counter[bool] = Counter()
    for number in numbers:
        case, mode = document_of(number)
        try:
            found = held(case, mode)
        except Exception as error:
            raise AssertionError(f"document {number}: {case.kind}, {mode}") from error
        tally[f"{case.kind} {mode.name}: {found}"] += 1
        if mode.is_whole:
            whole[found == "open"] += 1
    print(*(f"{name}: {times}" for name, times in sorted(tally.items())), sep="\n")
    assert whole[True] <= max(2, OPEN * whole.total()), whole


def test_some_documents() -> None:
    hold(range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FEW, MANY, PER_CHUNK))
def test_many_documents(first: int) -> None:
    hold(range(first, min(MANY, first + PER_CHUNK)))
