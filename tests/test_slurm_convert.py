"""A Slurm cluster, made here or real, as a snapshot; topologies as machines and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from real_files import real_file
from slurm_files import TOPOLOGY, job_line, written
from topoplace.cli import run
from topoplace.errors import ExitCode, InputError
from topoplace.machine.hostlist import expand_host_list
from topoplace.snapshot import load_any, load_machine
from topoplace.snapshot.convert import ConvertOptions, convert, converted


def cluster(folder: Path, states: dict[str, str], *lines: str) -> list[str]:
    """Write a cluster's files and return the options that name them."""
    nodes = "".join(f"NodeName={name} State={state}\n" for name, state in states.items())
    files = {
        "topology": written(folder, TOPOLOGY, "topology.conf"),
        "nodes": written(folder, nodes, "nodes.txt"),
        "jobs": written(folder, "\n".join(lines), "squeue.txt"),
    }
    return [part for option, path in files.items() for part in (f"--{option}", str(path))]


def test_what_is_closed_and_left_out(tmp_path, capsys):
    states = {f"n{k}": "IDLE" for k in range(6)}
    states |= {"n0": "ALLOCATED", "n1": "ALLOCATED+DRAIN", "n2": "MIXED", "n3": "DOWN*"}
    options = cluster(
        tmp_path,
        states | {"login": "IDLE"},
        job_line(id=1, state="RUNNING", hosts="n[0-1]", comment="pattern=none"),
        job_line(id=2, nodes=9),
        job_line(id=3, nodes=8),
        job_line(id=4, priority=0),
    )
    out = tmp_path / "out.json"
    assert run(["convert", "--from", "slurm", *options, "-o", str(out)]) == 0
    state = load_any(out)
    assert state.snapshot.down == "n[1-3,6-7]"
    assert [state.tree.node_names[k] for k in state.free.nonzero()[0]] == ["n4", "n5"]
    assert (state.busy.tolist(), state.comm.tolist()) == ([2, 0], [0, 0])
    assert [request.id for request in state.requests] == ["3"]
    assert capsys.readouterr().out.splitlines() == [
        "1 jobs running, 1 queued",
        "nodes closed: 2",
        "nodes closed, with a job that is not listed: 1",
        "nodes closed, their state not told: 2",
        "nodes left out, on no switch: 1",
        "jobs left out, on hold: 1",
        "jobs left out, larger than the machine: 1",
        f"written: {out}",
    ]


def test_without_output_the_snapshot_goes_to_stdout(tmp_path, capsys):
    options = cluster(tmp_path, {"n0": "IDLE"}, job_line())
    assert run(["convert", "--from", "slurm", "--to", "snapshot", *options]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["down"] == "n[1-7]"
    assert "1 queued" in said.err
    assert run(["convert", "--from", "slurm", *options, "--json"]) == ExitCode.BAD_INPUT


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            [job_line(state="RUNNING", hosts="n[7-8]")],
            "job 1: expected nodes on a switch, found 'n8'",
        ),
        (
            [job_line(id=k, state="RUNNING", nodes=1, hosts="n1") for k in (1, 2)],
            "nodes no other job holds, found n1, held by 1",
        ),
    ],
)
def test_jobs_that_do_not_fit_the_topology(tmp_path, lines, expected, capsys):
    options = cluster(tmp_path, {}, *lines)[:2] + cluster(tmp_path, {}, *lines)[4:]
    out = tmp_path / "out.json"
    assert run(["convert", "--from", "slurm", *options, "-o", str(out)]) == ExitCode.BAD_INPUT
    said = capsys.readouterr().err
    assert expected in said
    assert "squeue.txt" in said
    assert not out.exists()


def test_a_topology_becomes_a_machine_and_back(tmp_path):
    topology = written(tmp_path, TOPOLOGY, "topology.conf")
    machine, back = tmp_path / "machine.json", tmp_path / "back.conf"
    notes = convert(topology, "slurm-topology", "machine", machine)
    assert notes == ("8 nodes on 2 leaves below 1 switches",)
    convert(machine, "machine", "slurm-topology", back)
    assert back.read_text() == TOPOLOGY
    assert load_machine(str(machine)) == load_machine(str(topology))


@pytest.mark.parametrize(
    ("source", "pair", "options", "expected"),
    [
        (None, ("slurm", None), ConvertOptions(), "FILE: expected one file to read"),
        ("a", ("slurm", None), ConvertOptions(topology="b"), "FILE: expected one file to read"),
        ("mesh:4", ("machine", None), ConvertOptions(), "mesh:4: kind: expected a tree machine"),
        ("a", ("slurm", "machine"), ConvertOptions(), "--to: expected a known conversion"),
        ("a", ("lsf", None), ConvertOptions(), "--from: expected a known conversion"),
        ("a", ("swf", "snapshot"), ConvertOptions(machine="tree:2x2"), "a: "),
    ],
)
def test_bad_conversions(source, pair, options, expected):
    with pytest.raises(InputError) as caught:
        converted(source, *pair, options)
    assert str(caught.value).startswith(expected)


def test_the_real_cluster_reads_the_same_from_both_listings(tmp_path):
    states = []
    for listing in ("squeue.json", "squeue.txt"):
        out = tmp_path / f"{listing}.snapshot"
        options = ConvertOptions(
            topology=real_file("slurm_real/topology.conf"),
            nodes=real_file("slurm_real/nodes.txt"),
            jobs=real_file(f"slurm_real/{listing}"),
        )
        convert(None, "slurm", None, out, options)
        states.append(load_any(out))
    one, other = states
    assert one.snapshot == other.snapshot
    assert [job.id for job in one.running] == ["44", "52", "59", "60", "64"]
    assert [request.id for request in one.requests] == ["61", "62", "63"]
    assert {request.nodes for request in one.requests} == {40}
    assert [job.patterns[0].pattern for job in one.snapshot.running if job.patterns] == ["rhvd"]


def test_the_real_nodes_are_free_closed_or_held():
    """Against the states in the file, looked at with nothing but string search."""
    nodes, listing = real_file("slurm_real/nodes.txt"), real_file("slurm_real/squeue.json")
    options = ConvertOptions(nodes=nodes, jobs=listing)
    snapshot = converted(
        real_file("slurm_real/topology.conf"), "slurm", "snapshot", options
    ).document
    lines = nodes.read_text().splitlines()
    closed = [line.split()[0][9:] for line in lines if "DRAIN" in line or "State=DOWN" in line]
    held = {line.split()[0][9:] for line in lines if "State=ALLOCATED" in line}
    assert len(closed) == 2
    assert expand_host_list(snapshot.down) == closed
    assert {n for job in snapshot.running for n in expand_host_list(job.nodes)} == held
