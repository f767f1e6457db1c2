"""Files that are not read, and broken ones: each is named in one line, at every door."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import topoplace as tp
from mistakes import lines_said
from real_files import real_file
from topoplace.cli import run
from topoplace.snapshot.foreign import foreign_kind

XML = '<?xml version="1.0"?>\n'

FOREIGN: dict[str, tuple[str, str | bytes]] = {
    "R.json": ("a Flux resource set", '{"version": 1, "execution": {"R_lite": [{"rank": "0-3"}]}}'),
    "graph.json": ("a Flux resource graph", '{"graph": {"nodes": [{"id": "0"}], "edges": []}}'),
    "spec.json": (
        "a Flux jobspec",
        '{"version": 1, "resources": [], "tasks": [], "attributes": 0}',
    ),
    "spec.yaml": (
        "a Flux jobspec",
        "version: 1\nresources:\n- type: node\n  count: 4\n",
    ),
    "pbs.json": ("PBS's nodes or jobs", '{"timestamp": 1, "pbs_version": "20", "nodes": {}}'),
    "pbsnodes.txt": (
        "pbsnodes's list of nodes",
        "n01\n     Mom = n01.cluster\n     state\n",
    ),
    "qstat.txt": (
        "PBS's jobs (qstat)",
        "Job id            Name     User\n------  ----\n",
    ),
    "full.txt": ("PBS's jobs (qstat)", "Job Id: 12.server\n    Job_Name = a\n"),
    "bhosts.txt": (
        "LSF's hosts (bhosts)",
        "HOST_NAME          STATUS       JL/U\nh1 ok -\n",
    ),
    "bjobs.txt": (
        "LSF's jobs (bjobs)",
        "JOBID   USER    STAT  QUEUE      FROM_HOST\n",
    ),
    "sge.txt": ("Grid Engine's jobs (qstat)", "job-ID  prior   name       user\n------\n"),
    "qhost.txt": (
        "Grid Engine's hosts (qhost)",
        "HOSTNAME                ARCH         NCPU\n",
    ),
    "condor.txt": (
        "HTCondor's queue or machines",
        "\n\n-- Schedd: s : <1.2.3.4> @ now\n",
    ),
    "slurm.conf": ("a slurm.conf", "# site\nAuthType=auth/munge\nClusterName=c\nNodeName=n[1-4]\n"),
    "config.txt": ("scontrol show config", "Configuration data as of 2026-01-01T00:00:00\nA = b\n"),
    "gres.conf": ("a gres.conf", "NodeName=n[1-4] Name=gpu File=/dev/nvidia[0-3]\n"),
    "sinfo.txt": ("Slurm's sinfo", "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nall* up\n"),
    "sinfo.json": ("Slurm's sinfo --json", '{"sinfo": [{"port": 1}], "meta": {}}'),
    "nodes.json": ("Slurm's nodes as JSON", '{"nodes": [{"architecture": "x86_64"}], "meta": {}}'),
    "parts.json": ("Slurm's partitions as JSON", '{"partitions": [{"name": "a"}], "meta": {}}'),
    "sacct.txt": ("Slurm's accounting (sacct)", "JobID|JobName|Partition|State\n1|a|all|RUNNING\n"),
    "sacct.json": (
        "Slurm's accounting (sacct --json)",
        '{"jobs": [], "meta": {"command": ["sacct", "--json"]}}',
    ),
    "job.sh": ("a batch script", "#!/bin/bash -l\n# mine\n#SBATCH -N 4\nsrun ./a.out\n"),
    "run.py": ("a program", "#!/usr/bin/env python3\nprint(1)\n"),
    "kubeconfig": ("a kubeconfig", "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\n"),
    "describe.txt": ("kubectl describe", "Name:               n1\nRoles:              worker\n"),
    "now.yaml": ("an empty answer of kubectl", "No resources found\n"),
    "compose.yaml": ("a file of Docker Compose", "services:\n  web:\n    image: nginx\n"),
    "job.nomad": ("a Nomad job", 'job "train" {\n  type = "batch"\n}\n'),
    "main.tf": ("a configuration of Terraform", 'provider "aws" {\n  region = "x"\n}\n'),
    "ray.txt": ("Ray's status", "======== Autoscaler status: 2026-01-01 ========\nNode status\n"),
    "links.txt": (
        "iblinkinfo's list of links",
        'CA: n1 HCA-1:\n      0x02 1 1[  ] ==( 4X 25 Active/  LinkUp)==>  2 1[  ] "s" ( )\n',
    ),
    "ports.txt": (
        "ibnetdiscover's list of ports",
        "SW   1  1 0x0002c9 4x QDR - CA 2 1 0x2\n",
    ),
    "topo.txt": (
        "nvidia-smi's matrix of links",
        "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV18\n",
    ),
    "lstopo.txt": ("lstopo's text", "Machine (251GB total)\n  Package L#0\n"),
    "nccl.xml": ("a topology of NCCL", '<system version="1">\n<cpu numaid="0"/></system>\n'),
    "simgrid.xml": (
        "a platform of SimGrid",
        f'{XML}<!DOCTYPE platform SYSTEM "x.dtd">\n<platform version="4.1"></platform>\n',
    ),
    "g.graphml": ("a graph in GraphML or GEXF", f"{XML}<graphml><graph/></graphml>\n"),
    "g.gml": ("a graph in GML", "graph [\n  node [ id 0 ]\n]\n"),
    "g.dot": ("a graph of Graphviz", "digraph g { a -> b }\n"),
    "nx.json": ("a graph of NetworkX", '{"directed": false, "multigraph": false, "nodes": []}'),
    "m.mtx": (
        "a matrix of Matrix Market",
        "%%MatrixMarket matrix coordinate real general\n",
    ),
    "trace.json": ("a trace of a profiler", '{"schemaVersion": 1, "traceEvents": []}'),
    "w.json": ("a workload of Batsim", '{"nb_res": 4, "jobs": [], "profiles": {}}'),
    "n.ipynb": ("a notebook", '{"cells": [], "metadata": {}, "nbformat": 4}'),
    "a.mpiP": ("a report of mpiP", "@ mpiP\n@ Command : ./a.out\n"),
    "a.ipm.xml": ("a report of IPM", f'{XML}<ipm_job_profile><task ipm_version="2"/>\n'),
    "a.rpt": ("a report of CrayPat", "CrayPat/X:  Version 7\nNumber of PEs: 64\n"),
    "a.hlo": ("a program of XLA", "HloModule jit_step, entry\n"),
    "a.gwf": ("a job log of the Grid Workloads Archive", "# GWF 2.0\n1 0 0\n"),
    "a.html": ("a web page", "<!DOCTYPE html>\n<html></html>\n"),
    "a.mps": ("a linear program (MPS)", "NAME          LP\nROWS\n N  COST\n"),
    "a.npy": ("an array of NumPy", b"\x93NUMPY\x01\x00v\x00{}"),
    "a.npz": ("a zip archive, such as npz or xlsx", b"PK\x03\x04\x14\x00"),
    "a.h5": ("an HDF5 file", b"\x89HDF\r\n\x1a\n\x00"),
    "a.gz": ("a file of gzip", b"\x1f\x8b\x08\x00\x00"),
    "a.pkl": ("a pickle of Python", b"\x80\x04\x95\x00\x00"),
    "a.png": ("a picture", b"\x89PNG\r\n\x1a\n"),
}
"""By name of a file: what it is, and what is in it."""

BROKEN: dict[str, str | bytes] = {
    "empty.json": "",
    "blank.json": " \n\n ",
    "cut.json": '{"schema": "topoplace.snapshot/1", "name": "a", "machine": "torus',
    "comma.json": '{"schema": "topoplace.snapshot/1",}',
    "twice.json": '{"name": "x", "name": "y"}',
    "list.json": "[1]",
    "number.json": "7.5",
    "text.json": '"torus:4x4x4"',
    "null.json": "null",
    "nan.json": '{"a": NaN}',
    "huge.json": '{"a": 1e999}',
    "deep.json": "[" * 100_000,
    "other.json": '{"a": 1, "b": [2], "c": {}, "d": 4, "e": 5, "f": 6}',
    "later.json": '{"schema": "topoplace.snapshot/99", "name": "a"}',
    "noise.bin": bytes(range(256)) * 8,
    "utf16.json": '{"schema": "x"}'.encode("utf-16"),
    "latin.txt": "Größe\n".encode("latin-1"),
    "lines.txt": "hello\nworld\n",
    "tab.yaml": "apiVersion: v1\n\tkind: List\n",
    "cut.yaml": "apiVersion: v1\nkind: List\nitems: [",
    "swapped.yaml": "- topology\n",
    "cycle.conf": "SwitchName=a Switches=b\nSwitchName=b Switches=a\n",
}
"""By name of a file that is nothing: what is in it."""

DOORS = (
    "place {}", "compare {}", "audit {}", "whatif {} --worth 1", "repack {} --start a",
    "map --grid 2 --on {}", "map --graph {} --on torus:2x2",
    "replay {} --on torus:4x4 --method first-fit",
    "check {}", "show {} --png made.png", "convert {} --from snapshot",
    "convert {} --from slurm-topology", "convert {} --from kubernetes",
)  # fmt: skip


def write(folder: Path, name: str, content: str | bytes) -> None:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    what, content = FOREIGN[name]
    write(tmp_path, name, content)
    for door in DOORS:
        assert run(door.format(name).split()) == 2, door
        (line,) = capsys.readouterr().err.splitlines()
        said = f"topoplace: error: {name}: expected a file of a kind that topoplace reads, found"
        assert line.startswith(f"{said} {what} (nearest: "), door
    (line,) = lines_said(tp.load, name)
    assert line.startswith(f"{name}: expected a file of a kind that topoplace reads, found {what}")


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, name, BROKEN[name])
    for door in DOORS:
        if name == "later.json" and "--from snapshot" in door:
            continue
        assert run(door.format(name).split()) == 2, door
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"topoplace: error: {name}: "), (door, line)
        assert len(line) < 400
    (line,) = lines_said(tp.load, name)
    assert line.startswith(f"{name}: ")


def test_folders_skip_what_is_foreign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    own = {"schema": "topoplace.snapshot/1", "name": "own", "machine": "torus:2x2", "queue": []}
    write(tmp_path, "own.json", json.dumps(own))
    write(tmp_path, "R.json", FOREIGN["R.json"][1])
    assert run(["compare", ".", "--methods", "first-fit"]) == 0
    assert "skipped 1 of other kinds: R.json" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    [
        "slurm_real/squeue.json",
        "slurm_real/squeue.txt",
        "slurm_real/nodes.txt",
        "slurm_real/topology.conf",
        "kueue_real/decisions.jsonl",
        "field/volcano_partitions/now.yaml",
        "theta/theta_1000.swf",
        "xt3/CrayNeighbourTable",
        "maplib/amg/bytes.csv",
        "qaplib/nug12.dat",
    ],
)
def test_what_is_read_is_not_foreign(name: str) -> None:
    assert foreign_kind(real_file(name).read_bytes()) is None


def test_our_own_files_are_not_foreign() -> None:
    root = Path(__file__).parent.parent / "instances"
    files = list(root.rglob("*.json"))
    assert len(files) > 10
    assert {foreign_kind(path.read_bytes()) for path in files} == {None}
    scenario = {"nodes": [{"a": 1}], "graph": {"a": {"nodes": 1}}, "jobs": []}
    assert foreign_kind(json.dumps(scenario).encode()) is None
