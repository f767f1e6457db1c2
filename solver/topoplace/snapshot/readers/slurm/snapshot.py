"""A Slurm cluster at one moment: topology, node states and jobs as a snapshot."""

from __future__ import annotations

from topoplace.errors import InputError
from topoplace.machine.hostlist import expand_host_list, format_host_list
from topoplace.snapshot.readers.slurm.jobs import SlurmJobs
from topoplace.snapshot.readers.slurm.nodes import NodeUse
from topoplace.snapshot.schema import Snapshot, TreeModel
from topoplace.snapshot.tree_state import prepare_tree, tree_of

NO_JOBS = SlurmJobs((), (), 0)


def snapshot_of_slurm(
    machine: TreeModel, uses: dict[str, NodeUse] | None, jobs: SlurmJobs, name: str
) -> tuple[Snapshot, tuple[str, ...]]:
    """Return a checked snapshot, and notes for a person on what was left out or closed.

    Down are the nodes that are closed, those the node states do not tell of, and those that have
    a job which the listing does not name (of another user, or gone since). Jobs larger than the
    machine, and nodes that are on no switch, are left out.

    Parameters
    ----------
    machine, uses, jobs
        What the readers of this package return; `uses` None for all nodes open.
    name
        The snapshot's name.

    Raises
    ------
    InputError
        If the files do not fit together, such as a job on a node that is on no switch.
    """
    names = tree_of(machine).node_names
    there = set(names)
    with_job: set[str] = set()
    for job in jobs.running:
        hosts = expand_host_list(job.nodes)
        if not there.issuperset(hosts):
            stray = next(node for node in hosts if node not in there)
            raise InputError("nodes on a switch", field=f"job {job.id}", value=stray)
        with_job.update(hosts)
    told = dict.fromkeys(names, NodeUse.OPEN) if uses is None else uses
    groups: dict[str, list[str]] = {
        "closed": [n for n in names if told.get(n) is NodeUse.CLOSED],
        "closed, with a job that is not listed": [
            n for n in names if told.get(n) is NodeUse.HELD and n not in with_job
        ],
        "closed, their state not told": [n for n in names if n not in told],
    }
    down = {node for group in groups.values() for node in group}
    fitting = tuple(request for request in jobs.queue if request.nodes <= len(names))
    snapshot = Snapshot(
        schema_version="topoplace.snapshot/1",
        name=name,
        machine=machine,
        down=format_host_list(node for node in names if node in down),
        running=list(jobs.running),
        queue=list(fitting),
        source="a Slurm topology, node states and job list",
    )
    prepare_tree(snapshot)
    counts = {
        **{f"nodes {why}": len(group) for why, group in groups.items()},
        "nodes left out, on no switch": len(told.keys() - there),
        "jobs left out, on hold": jobs.num_held,
        "jobs left out, larger than the machine": len(jobs.queue) - len(fitting),
    }
    notes = [f"{len(jobs.running)} jobs running, {len(fitting)} queued"]
    return snapshot, (*notes, *(f"{what}: {count}" for what, count in counts.items() if count))
