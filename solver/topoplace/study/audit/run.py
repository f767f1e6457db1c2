"""Many decisions judged, and their sums."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from topoplace import clock
from topoplace.errors import ExitCode, InputError, number_of, unknown_name
from topoplace.formats.decisions import Decided
from topoplace.interrupts import Interrupted, heeded, is_asked
from topoplace.placement.hierarchy.contract import CONTRACTS
from topoplace.placement.hierarchy.fragmentation import Fragmentation
from topoplace.shown import Tabled
from topoplace.snapshot.files import make_folder, write_document
from topoplace.snapshot.held import NOT_SEEN
from topoplace.snapshot.schema import Order
from topoplace.solving import Options
from topoplace.study.audit.cases import Case
from topoplace.study.audit.in_order import judge_in_order
from topoplace.study.audit.judging import (
    FREE,
    AnyResult,
    Row,
    Standing,
    Verdict,
    in_doubt,
    is_of_blocks,
    judge,
)

AUDIT_SCHEMA = "topoplace.audit/1"

KeepRow = Callable[[int, Row, Sequence[tuple[str, AnyResult]]], None]
"""Takes the number of a decision, its row, and the results behind it with their rules."""


@dataclass(frozen=True)
class Domains:
    """Domains used and fewest, added up over decisions that started something.

    Each counts on the level of its regret (`Standing.level`). Decisions that break a rule, whose
    snapshot is incomplete, or of which no bound is known, do not count.
    """

    started: int
    above: int
    used: int
    fewest: int

    @classmethod
    def of(cls, standings: Iterable[Standing]) -> Domains:
        """Add up decisions under the same rules."""
        pairs = [
            (one.used, one.fewest)
            for one in standings
            if one.used is not None and one.fewest is not None
            if one.verdict is not Verdict.UNJUDGED
        ]
        return cls(
            len(pairs),
            sum(used > fewest for used, fewest in pairs),
            sum(used for used, _ in pairs),
            sum(fewest for _, fewest in pairs),
        )

    @property
    def percent(self) -> Fraction:
        """Domains above the fewest, in percent of the fewest; 0 where nothing was started."""
        return Fraction(100 * (self.used - self.fewest), max(1, self.fewest))


@dataclass(frozen=True)
class Group:
    """Decisions that are counted together: those of a kind, or all.

    Attributes
    ----------
    waiting, with_room
        Decisions that started nothing, and those of them for which hosts have enough free units.
    fits, fits_contract
        Those of them that could have started something, without and under the contract.
    fragmentation
        Slurm's own figure added up over decisions on its blocks that keep the rules and whose
        optimum is known; None without any.
    free, contract, domains
        Domains: without a contract, under it (None if it applies to no decision), and under all
        rules that apply to each decision.
    """

    name: str
    decisions: int
    verdicts: dict[Verdict, int]
    waiting: int
    with_room: int
    fits: int
    fits_contract: int | None
    stranded_more: int
    fragmentation: Fragmentation | None
    free: Domains
    contract: Domains | None
    domains: Domains

    @classmethod
    def of(cls, name: str, rows: Sequence[Row]) -> Group:
        """Count some decisions."""
        waiting = [row for row in rows if row.outcome is not Decided.STARTED]
        contracts = [row.contract for row in rows if row.contract is not None]
        counts = Counter(row.verdict for row in rows)
        return cls(
            name,
            len(rows),
            {verdict: counts[verdict] for verdict in Verdict},
            len(waiting),
            sum(row.has_room for row in waiting),
            sum(_missed(row.free) for row in waiting),
            sum(_missed(row.contract) for row in waiting if row.contract) if contracts else None,
            sum(bool(row.standing.strands) for row in rows),
            _fragmentation_of(rows),
            Domains.of(row.free for row in rows),
            Domains.of(contracts) if contracts else None,
            Domains.of(row.standing for row in rows),
        )


def _fragmentation_of(rows: Sequence[Row]) -> Fragmentation | None:
    own = [row.fragmentation for row in rows if row.fragmentation is not None]
    figures = [
        (one.before, one.after, one.optimum)
        for one in own
        if one.after is not None and one.optimum is not None
    ]
    return Fragmentation(*map(sum, zip(*figures, strict=True))) if figures else None


def _missed(standing: Standing) -> bool:
    return standing.verdict is Verdict.MISSED


@dataclass(frozen=True, repr=False)
class Audit(Tabled):
    """The result of an audit: a row per decision.

    Attributes
    ----------
    notes
        Lines on decisions that were judged under assumptions, and on those that were not judged.
    num_left
        Decisions left out because of an interrupt or the time limit.
    order
        The order in which requests were judged, if there is one.
    """

    rows: tuple[Row, ...]
    contract: str | None = None
    notes: tuple[str, ...] = ()
    num_left: int = 0
    order: str | None = None

    @property
    def groups(self) -> list[Group]:
        """The counts by group, in the order in which these first occur."""
        names = dict.fromkeys(row.group for row in self.rows)
        return [Group.of(name, [r for r in self.rows if r.group == name]) for name in names]

    @property
    def total(self) -> Group:
        """The counts over all decisions."""
        return Group.of("all", self.rows)

    def exit_code(self, tolerate: float = 0.0) -> ExitCode:
        """Return the exit code.

        Parameters
        ----------
        tolerate
            The most domains above the fewest, in percent of the fewest, over all that started.

        Returns
        -------
        ExitCode
            `CHECK_FAILED` if a decision breaks a rule, or else `REGRET` if a request that fits
            waits, or more domains are used than tolerated, or one of these is not ruled out.
        """
        total = self.total
        if total.verdicts[Verdict.INVALID]:
            return ExitCode.CHECK_FAILED
        open_ends = any(
            row.verdict is Verdict.UNPROVEN and row.standing.fewest is None for row in self.rows
        )
        late = total.verdicts[Verdict.MISSED] or total.verdicts[Verdict.OUT_OF_TURN]
        bad = late or open_ends or self.num_left
        return ExitCode.REGRET if bad or total.domains.percent > tolerate else ExitCode.DONE

    def document(self) -> dict[str, Any]:
        """Return it ready for JSON; percentages are floats."""
        rows = [
            dataclasses.asdict(row) | {"verdict": row.verdict, "why": row.why} for row in self.rows
        ]
        found = {
            "schema": AUDIT_SCHEMA,
            "contract": self.contract,
            "rows": rows,
            "groups": [dataclasses.asdict(group) for group in self.groups],
            "total": dataclasses.asdict(self.total),
            "regret_percent": float(self.total.domains.percent),
            "notes": self.notes,
            "left_out": self.num_left,
        }
        return dict(json.loads(json.dumps(found, default=str)))


@heeded()
def audit_cases(
    cases: Sequence[Case],
    *,
    contract: str | None = None,
    options: Options | None = None,
    notes: Sequence[str] = (),
    keep: KeepRow | None = None,
    progress: Callable[[int, int], None] | None = None,
    order: str | None = None,
) -> Audit:
    """Judge decisions one after another.

    A signal or the time limit ends it: the answer has the decisions judged so far, and how many
    are left out. What is left of the time is shared out among the decisions that are left.

    Parameters
    ----------
    contract
        A name of `CONTRACTS`: decisions are also judged by its rules; in an order by these alone.
    options
        Time limit of the whole audit, and the seed of each solve.
    keep
        Called with every row and the results that prove its optimum: these are not kept here.
    progress
        Called with the number of judged decisions and the number of all.
    order
        ``priority`` or ``backfill``: rounds of several requests have a row for each request.

    Raises
    ------
    InputError
        If the requests cannot be held to the contract.
    TopoplaceError
        If the checker does not confirm an optimum, or a decision beats it: one is wrong then.
    """
    options = options or Options()
    require_order(cases, order)
    blocks = sum(map(is_of_blocks, cases))
    if contract is not None and not blocks:
        raise InputError("decisions on machines with block sizes", field="contract", value=contract)
    if contract is not None and blocks < len(cases):
        held = f"{number_of(len(cases) - blocks, 'decision')} on machines without block sizes"
        notes = [*notes, f"{held}: not held to {contract}"]
    rows: list[Row] = []
    done, end = 0, clock.deadline(options.time_limit)
    for number, case in enumerate(cases, start=1):
        left = end - clock.ticks()
        if is_asked() or left <= 0:
            break
        case = in_doubt(case, contract)  # noqa: PLW2901 - as it is judged
        results: list[tuple[str, AnyResult]] = []
        own = _with_share(options, left / (len(cases) - done), case, contract, order)
        try:
            judged = (
                [judge(case, contract, own, results.append)]
                if order is None
                else judge_in_order(case, Order(order), own, results.append, contract)
            )
        except Interrupted:
            break
        open_ends = Verdict.UNPROVEN, Verdict.UNJUDGED
        if order is None and is_asked() and judged[0].verdict in open_ends:
            break  # given its time, it would have been proven
        judged = _without_doubt(case, [_with_care(case, row) for row in judged])
        rows += judged
        if keep is not None and judged:
            keep(number, judged[0], results)
        done = number
        if progress is not None:
            progress(number, len(cases))
    left_out = len(cases) - done
    if left_out:
        why = "interrupted" if is_asked() else "time limit"
        of = number_of(len(cases), "decision")
        notes = [*notes, f"{why}: {left_out} of {of} not judged"]
    judged_twice = contract if order is None else None
    return Audit(tuple(rows), judged_twice, tuple(notes), left_out, order)


def _with_share(
    options: Options, seconds: float, case: Case, contract: str | None, order: str | None
) -> Options:
    """Return the options of each solve of a decision that has some seconds of a time limit."""
    if options.time_limit is None:
        return options
    solves = 1 if order is not None else (1 + (contract is not None)) * (1 + case.by_order)
    return replace(options, time_limit=seconds / solves)


_BLAME = Verdict.MISSED, Verdict.OUT_OF_TURN, Verdict.INVALID, Verdict.SUBOPTIMAL


def _with_care(case: Case, row: Row) -> Row:
    """Return a row without blame for what its snapshot's listing cannot show."""
    left_out = case.snapshot.left_out
    unseen = [one.value for one in left_out if (one.request, one.option) == (None, NOT_SEEN)]
    return _unblamed(row, f"not seen in the listing: {unseen[0]}", _BLAME) if unseen else row


def _unblamed(row: Row, why: str, blame: Sequence[Verdict]) -> Row:
    """Return a row that does not judge what it would blame."""

    def judged(one: Standing) -> Standing:
        changes: dict[str, Any] = {"verdict": Verdict.UNJUDGED, "broken": None, "reason": why}
        return replace(one, **changes) if one.verdict in blame else one

    contract = None if row.contract is None else judged(row.contract)
    return replace(row, free=judged(row.free), contract=contract)


def _without_doubt(case: Case, rows: Sequence[Row]) -> list[Row]:
    """Return rows in the order of the queue without blame from the first in doubt on."""
    doubts = [name for name in (one.id for one in case.snapshot.queue) if name in case.doubts]
    if not doubts:
        return [*rows]
    first, found = doubts[0], list[Row]()
    about, blame = f"{first}: {case.doubts[first]}", (Verdict.MISSED, Verdict.OUT_OF_TURN)
    names = [one.standing.jobs[:1] for one in rows]
    start = names.index((first,)) if len(rows) > 1 and (first,) in names else 0
    for row, name in zip(rows[start:], names[start:], strict=True):
        own = case.doubts.get(name[0]) if name else None
        found.append(_unblamed(row, own or about, blame))
    return [*rows[:start], *found]


def require_order(cases: Sequence[Case], order: str | None) -> None:
    """Raise `InputError` unless all cases can be judged in an order, if one is named."""
    if order is None:
        return
    known = [Order.PRIORITY, Order.BACKFILL]
    if order not in known:
        raise unknown_name(order, known, field="order")
    if any(not case.snapshot.written.domain_levels for case in cases):
        raise InputError("hierarchies or trees", field="order", found="a pod of cubes")


def require_contract(contract: str | None) -> None:
    """Raise `InputError` unless a contract, if one is named, is known."""
    if contract is not None and contract not in CONTRACTS:
        raise unknown_name(contract, CONTRACTS, field="contract")


class ResultFiles:
    """Writes the results that prove optima into a folder, as they are found.

    Without a folder it writes nothing. `names` are the files by number of the decision and rules.

    Raises
    ------
    InputError
        If the folder cannot be made.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.names: dict[tuple[int, str], Path] = {}
        make_folder(folder, "output")

    def keep(self, number: int, row: Row, results: Sequence[tuple[str, AnyResult]]) -> None:
        """Write the results behind a row: ``0007-NAME.json``, ``0007-NAME-CONTRACT.json``."""
        if self.folder is None:
            return
        stem = re.sub(r"[^A-Za-z0-9._-]", "_", row.instance)
        for rules, result in results:
            end = "" if rules == FREE else f"-{rules}"
            path = self.folder / f"{number:04d}-{stem}{end}.json"
            write_document(path, result)
            self.names[number, rules] = path
