"""Other tools' formats, on real files where they are present and on small ones made here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bending import bent
from mistakes import MISTAKES, lines_said
from real_files import real_file
from topoplace.errors import InputError
from topoplace.formats.cray import read_cray_neighbours
from topoplace.formats.swf import read_swf, snapshot_of_swf
from topoplace.formats.yaml_text import parsed_text
from topoplace.options import ConvertOptions
from topoplace.snapshot.convert import converted
from topoplace.snapshot.machines import load_machine, load_snapshot
from topoplace.snapshot.state import torus_of

ROOT = Path(__file__).resolve().parent.parent
TINY = ROOT / "instances" / "snapshots" / "tiny_features.json"


def neighbour_table(*sizes: int) -> list[list[int]]:
    """A table of a torus whose nids are 10 apart and run backwards."""
    torus = torus_of(load_machine("torus:" + "x".join(map(str, sizes))))
    nid = [10 * (torus.num_routers - r) for r in range(torus.num_routers)]
    rows = []
    for r, coords in enumerate(torus.coordinates.tolist()):
        row = [nid[r]]
        for d in range(3):
            for step in (1, -1):
                there = [(c + step * (e == d)) % sizes[e] for e, c in enumerate(coords)]
                row.append(nid[torus.router(there)])
        rows.append(row + coords)
    return rows


def written(folder: Path, rows: list[list[int]]) -> Path:
    path = folder / "a table"
    lines = ["# nid and so on", *(" ".join(map(str, row)) for row in rows), ""]
    path.write_text("\n".join(lines))
    return path


def swf_line(**fields: object) -> str:
    order = ("job", "submit", "wait", "run", "allocated", "cpu", "memory", "requested", "time")
    known = dict.fromkeys(("executable", "partition", "preceding", *order), -1)
    known |= {"job": 1, "status": 1} | fields
    tail = [-1, known["status"], -1, -1, known["executable"], -1]
    tail += [known["partition"], known["preceding"], -1]
    return " ".join(str(v) for v in [*(known[name] for name in order), *tail])


def swf_file(folder: Path, *lines: str) -> Path:
    path = folder / "log.swf"
    path.write_text("\n".join(["; Version: 2", "", *lines]) + "\n")
    return path


def test_partitions_and_preceding_jobs_of_a_log_hold_its_jobs(tmp_path):
    lines = [swf_line(job=k, requested=1, partition=k % 2) for k in (1, 2)]
    lines += [swf_line(job=3, requested=1, preceding=2), swf_line(job=4, requested=99)]
    options = ConvertOptions(machine="torus:4x4x4")
    made = converted(swf_file(tmp_path, *lines), "swf", options=options)
    assert [(one.request, one.option, one.value, one.where) for one in made.document.left_out] == [
        ("1", "partition", "1", "line 3, field 16"),
        ("2", "partition", "0", "line 4, field 16"),
        ("3", "preceding-job", "2", "line 5, field 17"),
    ]
    assert "3 of 3 requests held (partition 2, preceding-job 1; see place --ignore)" in made.notes
    one = [swf_line(job=k, requested=1, partition=7) for k in (1, 2)]
    assert converted(swf_file(tmp_path, *one), "swf", options=options).document.left_out == []


def test_the_real_xt3_table_is_the_shipped_machine():
    machine = read_cray_neighbours(real_file("xt3/CrayNeighbourTable"))
    assert machine.shape == [11, 12, 16] == load_machine("xt3").shape
    names = machine.node_names
    assert len(set(names)) == 2112
    assert max(names) == "nid02783"
    assert names[torus_of(machine).router((5, 3, 8))] == "nid02783"


def test_a_made_table_is_read(tmp_path):
    machine = read_cray_neighbours(written(tmp_path, neighbour_table(2, 3, 4)))
    assert machine.name == "a-table"
    assert machine.shape == [2, 3, 4]
    assert machine.node_names == tuple(f"nid{10 * (24 - r):05d}" for r in range(24))


@pytest.mark.parametrize(("changes", "lines"), MISTAKES["Neighbours"])
def test_a_bad_table_is_refused(tmp_path, changes, lines):
    path = written(tmp_path, bent(neighbour_table(3, 3, 3), changes))
    assert lines_said(read_cray_neighbours, path) == [f"{path}: {lines[0]}"]


@pytest.mark.parametrize(("text", "lines"), MISTAKES["Tables"])
def test_no_table_at_all(tmp_path, text, lines):
    path = tmp_path / "table"
    path.write_text(text.replace("/", "\n"))
    assert lines_said(read_cray_neighbours, path) == [f"{path}: {lines[0]}"]


def test_the_real_theta_log_has_1000_jobs():
    log = read_swf(real_file("theta/theta_1000.swf"))
    assert len(log.requests) == 1000
    assert (log.num_without_size, log.num_partial) == (0, 0)
    sizes = [request.nodes for request in log.requests]
    assert (min(sizes), max(sizes)) == (128, 2048)
    first = log.requests[0]
    assert (first.id, first.nodes, first.walltime) == ("1", 128, 10800)


def test_swf_fields(tmp_path):
    log = read_swf(
        swf_file(
            tmp_path,
            swf_line(job=7, submit=5, requested=33, allocated=64, time=60, run=50, executable=3),
            swf_line(job=8, allocated=16, run=50),
            swf_line(job=9, run=50),
            swf_line(job=7, requested=33, status=3),
            swf_line(job=10, requested=1, cpu=12.5),
        ),
        procs_per_node=16,
        node_class="xe",
    )
    assert (log.num_without_size, log.num_partial) == (1, 1)
    rows = [(r.id, r.nodes, r.walltime, r.submitted, r.application) for r in log.requests]
    assert rows == [
        ("7", 3, 60, 5, "executable-3"),
        ("8", 1, 50, None, None),
        ("10", 1, None, None, None),
    ]
    assert {r.node_class for r in log.requests} == {"xe"}


@pytest.mark.parametrize(("changes", "lines"), MISTAKES["Log lines"])
def test_bad_log_lines_are_named(tmp_path, changes, lines):
    bad = swf_line(**bent({"job": 2, "requested": 1}, changes))
    path = swf_file(tmp_path, swf_line(job=1, requested=4), bad)
    assert lines_said(read_swf, path) == [f"{path}: {lines[0]}"]


def test_log_on_a_machine(tmp_path):
    lines = [swf_line(job=k, requested=size) for k, size in enumerate([8, 65, 64, 1, 2])]
    log = read_swf(swf_file(tmp_path, *lines))
    machine = load_machine("torus:4x4x4")
    snapshot, too_large = snapshot_of_swf(log, machine, "log", limit=3)
    assert [request.nodes for request in snapshot.queue] == [8, 64, 1]
    assert too_large == 1
    everything, _ = snapshot_of_swf(log, machine, "log")
    assert len(everything.queue) == 4


def test_log_for_a_class_the_machine_has_not(tmp_path):
    log = read_swf(swf_file(tmp_path, swf_line(requested=1)), node_class="gpu")
    with pytest.raises(InputError, match="one of compute"):
        snapshot_of_swf(log, load_machine("torus:4x4x4"), "log")


def test_convert_normalises_a_snapshot(tmp_path):
    source, once = tmp_path / "a.json", tmp_path / "b.json"
    source.write_text(json.dumps(json.loads(TINY.read_text()) | {"down": " 41 , 40,22"}))
    text = converted(source, "snapshot").text
    once.write_text(text)
    assert json.loads(text)["down"] == "22,40-41"
    assert converted(once, "snapshot", "snapshot").text == text
    before, after = load_snapshot(source), load_snapshot(once)
    assert (before.usable == after.usable).all()
    assert before.queue == after.queue
    named = converted("blue_waters_20", "snapshot").text
    assert json.loads(named)["machine"]["shape"] == [24, 24, 24]


def test_convert_a_table_to_a_machine(tmp_path):
    made = converted(written(tmp_path, neighbour_table(3, 4, 5)), "cray-neighbours")
    assert made.notes == ("60 nodes; all 360 neighbours are those of the torus",)
    assert made.document.shape == [3, 4, 5]


def test_convert_a_log_to_a_snapshot(tmp_path):
    lines = [swf_line(job=1, requested=8), swf_line(job=2, requested=500), swf_line(job=3)]
    made = converted(
        swf_file(tmp_path, *lines), "swf", options=ConvertOptions(machine="mesh:4x4x4")
    )
    assert made.notes == (
        "1 job queued",
        "left out, larger than the machine: 1",
        "left out, without a size: 1",
    )
    assert [request.id for request in made.document.queue] == ["1"]


class Copied(str):
    """A text that counts the characters that are copied of it."""

    __slots__ = ()
    count = 0

    def __getitem__(self, at):
        part = super().__getitem__(at)
        Copied.count += len(part)
        return part


def test_objects_one_after_another_are_read_without_copies_of_the_rest():
    text = Copied('{"a": 1}\n' * 2000)
    assert len(parsed_text(text)) == 2000
    assert Copied.count <= 2 * len(text)
