"""Individual runs: every job alone on the same partly occupied machine (Mishra 2020, 5.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from topoplace.errors import InputError
from topoplace.interrupts import is_asked
from topoplace.placement.tree.occupancy import Occupancy
from topoplace.placement.tree.problem import TreeProblem
from topoplace.snapshot.tree_state import TreeState
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.metrics import JobRecord
from topoplace.study.replay.placing import Placer


def occupied(state: TreeState, jobs: Iterable[LogJob], percent: int) -> Occupancy:
    """Return a machine on which Slurm's default has started jobs, as many as keep below a share.

    Parameters
    ----------
    state
        The machine to begin with.
    jobs
        Who may start, in this order; those that would exceed the share are passed over.
    percent
        Largest share of the machine's free nodes to occupy.

    Raises
    ------
    InputError
        If `percent` is not between 0 and 100.
    """
    if not 0 <= percent <= 100:
        raise InputError("a number from 0 to 100", field="percent", value=percent)
    occupancy = TreeProblem(state).occupancy()
    placer = Placer(state, "default")
    left = int(occupancy.free.sum()) * percent // 100
    for job in jobs:
        if job.nodes > left:
            continue
        decision = placer.place(occupancy, job)
        if decision is not None:
            occupancy.start(decision.nodes, job.request.intensive)
            left -= job.nodes
    return occupancy


def individual_runs(
    occupancy: Occupancy,
    jobs: Iterable[LogJob],
    placer: Placer,
    progress: Callable[[int], None] | None = None,
) -> tuple[JobRecord, ...]:
    """Return what becomes of each job if it alone starts, at once, beside those that run.

    Jobs that do not fit are left out, the same ones for every method.

    Parameters
    ----------
    occupancy
        The partly occupied machine; it is not changed.
    progress
        Called with the number of jobs done.
    """
    records = []
    for done, job in enumerate(jobs, start=1):
        if is_asked():
            break
        decision = placer.place(occupancy, job)
        if decision is not None:
            end = job.submitted + decision.seconds
            records.append(JobRecord(job, job.submitted, end, decision.cost, decision.default_cost))
        if progress is not None:
            progress(done)
    return tuple(records)
