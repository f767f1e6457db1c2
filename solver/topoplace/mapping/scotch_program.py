"""The static mapper of Scotch, run as the external program ``gmap`` (Pellegrini 1994)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import MatrixMachine, Torus
from topoplace.mapping.compact import compact_routers
from topoplace.mapping.graph import IntArray, TaskGraph
from topoplace.mapping.local_search.arrays import guest_arrays
from topoplace.mapping.problem import MappingProblem

MAPPERS = ("scotch_gmap", "gmap")
"""Debian's name comes first: there, ``gmap`` is a program of another kind."""

TARGET_MAKER = "amk_grf"

MOST_DIMS = 5
"""Dimensions of a torus or mesh that Scotch knows."""

MOST_ROUTERS = 1024
"""Routers for which a table of all distances is given to Scotch."""

LOADS = 1 << 30
"""Scotch reckons with 32 bits: the sum of all loads times distances stays below this."""


def is_installed() -> bool:
    """Tell whether the programs that `run_scotch` needs are installed."""
    return _mapper() is not None and shutil.which(TARGET_MAKER) is not None


def run_scotch(problem: MappingProblem, time_limit: float | None = None) -> IntArray:
    """Return the router that Scotch gives every task, among a compact set of just enough routers.

    The load imbalance asked for is 0, but routers may get more tasks than they have room for.
    A machine with both rings and lines is described as a torus.

    Raises
    ------
    InputError
        If the programs are missing, Scotch cannot describe the machine, or it fails.
    TimeoutError
        If the time limit ends the program.
    """
    mapper = _mapper()
    if mapper is None or not is_installed():
        raise InputError(
            "the programs gmap and amk_grf of Scotch, for the method scotch", field="method"
        )
    chosen = np.sort(compact_routers(problem)[0])
    if len(chosen) == 1:
        return np.full(problem.num_tasks, chosen[0])
    with tempfile.TemporaryDirectory() as folder:
        graph, target, mapped = (Path(folder) / name for name in ("tasks.grf", "to.tgt", "out.map"))
        graph.write_text(_graph_text(problem.graph, problem.machine.diameter))
        whole = _write_target(problem.machine, chosen, target)
        _run([mapper, str(graph), str(target), str(mapped), "-b0"], time_limit)
        numbers = np.array(mapped.read_text().split()[1:], dtype=np.int64).reshape(-1, 2)
    found = np.empty(problem.num_tasks, dtype=np.int64)
    found[numbers[:, 0]] = numbers[:, 1]
    return found if whole else chosen[found]


def _mapper() -> str | None:
    return next((path for name in MAPPERS if (path := shutil.which(name))), None)


def _run(command: list[str], time_limit: float | None = None) -> None:
    """Run one of Scotch's programs; its complaints become the error."""
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=time_limit
        )
    except subprocess.TimeoutExpired as late:
        raise TimeoutError from late
    if done.returncode:
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise InputError("an instance that Scotch can map", field="method", value=said)


def _graph_text(graph: TaskGraph, diameter: int) -> str:
    """Return the messages in Scotch's graph format, loads scaled to its integers."""
    guest = guest_arrays(graph)
    scale = LOADS // max(1, diameter)
    total = max(1, graph.total_bytes)
    loads = [max(1, weight * min(scale, total) // total) for weight in guest.weight.tolist()]
    pairs = [f"{load} {other}" for load, other in zip(loads, guest.other.tolist(), strict=True)]
    return _grf([pairs[a:b] for a, b in zip(guest.first[:-1], guest.first[1:], strict=True)])


def _grf(rows: list[list[str]]) -> str:
    """Return a graph file of rows of partners, each a load and a vertex."""
    head = f"0\n{len(rows)} {sum(map(len, rows))}\n0 010\n"
    return head + "".join(f"{len(row)} {' '.join(row)}\n" for row in rows)


def _write_target(machine: Torus | MatrixMachine, chosen: IntArray, path: Path) -> bool:
    """Write the machine; return whether Scotch numbers all its routers, or the chosen ones."""
    if isinstance(machine, Torus) and machine.num_dims <= MOST_DIMS:
        kind = "torusXD" if any(machine.wrap) else "meshXD"
        # Scotch numbers vertices with the first dimension fastest
        text = f"{kind} {machine.num_dims} {' '.join(map(str, machine.shape[::-1]))}\n"
        whole = len(chosen) == machine.num_routers
        if not whole:
            text = f"sub\n{len(chosen)} {' '.join(map(str, chosen.tolist()))}\n{text}"
        path.write_text(text)
        return whole
    if len(chosen) > MOST_ROUTERS:
        raise InputError(
            f"for Scotch, a torus or mesh of at most {MOST_DIMS} dimensions, or "
            f"{MOST_ROUTERS} routers to use",
            field="machine",
            value=machine.text,
        )
    distances = np.maximum(1, machine.hops(chosen[:, None], chosen[None, :]))
    links = [
        [f"{away} {s}" for s, away in enumerate(row) if s != r]
        for r, row in enumerate(distances.tolist())
    ]
    graph = path.with_suffix(".machine.grf")
    graph.write_text(_grf(links))
    _run([TARGET_MAKER, str(graph), str(path)])
    return False
