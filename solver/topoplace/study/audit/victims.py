"""Who was ended so that others start: the victims of a decision against the fewest possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from topoplace.certify.hierarchy.instance import read_instance, require_room
from topoplace.certify.report import RefusedError
from topoplace.errors import InputError
from topoplace.formats.decisions import Taken
from topoplace.options import Repack
from topoplace.placement.repack.problem import instance_of, repack_problem
from topoplace.result.placement import RepackResult
from topoplace.snapshot.held import PREEMPTION_RULES
from topoplace.snapshot.running import job_name
from topoplace.snapshot.schema import RepackInstance, Snapshot
from topoplace.solving import Options, solve
from topoplace.study.audit.cases import Case, case_of_pair
from topoplace.study.audit.judging import (
    FREE,
    SAID,
    Keep,
    Level,
    Row,
    Standing,
    Verdict,
    in_words,
    not_modelled,
    require_checked,
    started_in,
)

Evict = Sequence[str] | Mapping[str, int] | str


def judge_victims(
    before: Snapshot,
    after: Snapshot,
    evict: Evict,
    options: Options,
    keep: Keep,
) -> tuple[Row, list[str]]:
    """Judge who was ended between two snapshots, and return notes.

    Victims are jobs that run in the first and wait in the second. The question is how few have to
    end, of those that `evict` allows, so that the same requests start beside all that still runs.

    Raises
    ------
    InputError
        If nobody was ended.
    TopoplaceError
        If the checker does not confirm the optimum.
    """
    case, notes = case_of_pair(before, after)
    waiting = {request.id for request in after.queue}
    entries = [job for job in before.running if job_name(job) in waiting]
    victims = sorted({*map(job_name, entries)})
    if not victims:
        raise InputError("jobs that run before and wait afterwards", field="victims", found="none")
    start = [name for name, _ in case.started]
    queue = [request for request in case.snapshot.queue if request.id in start]
    broken, level = case.broken_text, _level(len(victims), 0, 0)
    verdict = Verdict.SUBOPTIMAL if broken is None else Verdict.INVALID
    standing = Standing(verdict, broken, (level,), "ended")
    if start:
        running = [*case.snapshot.running, *entries]
        base = case.snapshot.model_copy(update={"running": running, "queue": queue, "left_out": []})
        asked = instance_of(base, Repack(base, start=start, evict=evict, no_moves=True))
        assert isinstance(asked, RepackInstance)
        result = solve(repack_problem(asked), "exact", options)
        require_checked(base, result)
        keep((FREE, result))
        broken = broken or _broken(case.snapshot, case.started)
        standing = _standing(victims, asked, result, broken)
    if broken is None:
        standing = _unblamed(case, standing)
    level = standing.levels[0]
    used = None if standing.verdict is Verdict.INVALID else len(victims)
    row = Row(
        case.snapshot.name,
        case.group,
        in_words(queue),
        case.outcome,
        has_room=False,
        left_out=case.left_out,
        free=replace(standing, level="ended", used=used, fewest=level.bound, jobs=tuple(victims)),
        contract=None,
    )
    return row, notes


def _level(decision: int, best: int | None, bound: int | None) -> Level:
    return Level("ended", "min", decision, best, bound, "ended")


def _unblamed(case: Case, standing: Standing) -> Standing:
    """Return a verdict that blames nobody for ended jobs where something is not modelled.

    Such as a quota: a job may have to end for that, though there is room.
    """
    why = not_modelled(case.snapshot, SAID - {PREEMPTION_RULES})
    if not why or standing.verdict not in (Verdict.SUBOPTIMAL, Verdict.INVALID):
        return standing
    return replace(standing, verdict=Verdict.UNJUDGED, broken=None, reason=why)


def _broken(snapshot: Snapshot, started: Sequence[tuple[str, Taken]]) -> str | None:
    """Return the rule that a started request breaks; None if all keep theirs."""
    instance = read_instance(snapshot)
    try:
        require_room(instance, [*started_in(instance, started)])
    except RefusedError as error:
        return str(error)
    return None


def _standing(
    victims: Sequence[str], asked: RepackInstance, result: RepackResult, broken: str | None
) -> Standing:
    """Compare victims with the fewest."""
    alien = [name for name in victims if name not in asked.ends]
    if alien:
        broken = broken or f"{alien[0]} was ended, and may not be"
    ended = result.levels[1]
    level = _level(len(victims), ended.objective, ended.bound)
    if broken is not None:
        return Standing(Verdict.INVALID, broken, (level,))
    if len(victims) == level.bound:
        return Standing(Verdict.OPTIMAL, None, (level,))
    beaten = level.best is not None and len(victims) > level.best
    return Standing(Verdict.SUBOPTIMAL if beaten else Verdict.UNPROVEN, None, (level,), "ended")
