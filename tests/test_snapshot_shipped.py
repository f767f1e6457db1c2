"""The shipped machines and snapshots: what they claim, and that the scripts rebuild them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from scripts_of_the_project import script
from topoplace.errors import InputError
from topoplace.machine import parse_node_set, prism_links, scattered_links
from topoplace.snapshot.files import machine_names
from topoplace.snapshot.machines import load_machine, load_snapshot
from topoplace.snapshot.schema import Communication
from topoplace.snapshot.state import prism_of, torus_of

ROOT = Path(__file__).resolve().parent.parent
BUILD, GENERATE = script("build_instances"), script("generate_snapshots")
XK_BLOCK = GENERATE.XK_BLOCK
SNAPSHOTS = ROOT / "instances" / "snapshots"
PERCENTS = (20, 30, 40, 50, 60, 70, 80)


def test_blue_waters_agrees_with_the_counts_of_enos_2014():
    model = load_machine("blue_waters")
    torus = torus_of(model)
    xk = parse_node_set(model.classes["xk"], torus.num_nodes)
    service = parse_node_set(model.service, torus.num_nodes)
    assert torus.shape == (24, 24, 24)
    assert torus.bandwidth == (2, 1, 2)
    assert len(xk) == 4224
    assert torus.num_nodes - len(xk) - len(service) == 22640
    assert XK_BLOCK.extents == (15, 6, 24)
    block = XK_BLOCK.routers(torus)
    in_block = np.isin(np.arange(torus.num_nodes) // 2, block)
    is_service = np.isin(np.arange(torus.num_nodes), service)
    assert np.flatnonzero(in_block & ~is_service).tolist() == xk.tolist()

    compute = []
    features = GENERATE.blue_waters_features()
    assert list(features) == [f"s{k}" for k in range(1, 14)]
    for prisms in features.values():
        (prism,) = (prism_of(torus, p, "feature") for p in prisms)
        routers = prism.routers(torus)
        assert not np.isin(routers, block).any()
        compute.append(2 * len(routers) - int(is_service.reshape(-1, 2)[routers].sum()))
    assert (min(compute), max(compute)) == (6724, 6760)


def test_blue_waters_service_routers_are_whole_blades():
    model = load_machine("blue_waters")
    torus = torus_of(model)
    is_service = np.zeros(torus.num_nodes, dtype=bool)
    is_service[parse_node_set(model.service, torus.num_nodes)] = True
    per_blade = is_service.reshape(24, 12, 2, 24, 2).sum(axis=(2, 4))
    assert set(np.unique(per_blade).tolist()) == {0, 4}


def test_workload_is_table_ii_of_enos_2014():
    jobs = GENERATE.workload_jobs(GENERATE.load_workload())
    assert len(jobs) == 45
    assert len({job.id for job in jobs}) == 45
    assert [j.id for j in jobs if j.application == "NAMD"][:3] == [
        "namd-xe-1",
        "namd-xk-1",
        "namd-xe-2",
    ]
    assert sum(j.application == "NAMD" for j in jobs) == 28
    assert {(j.nodes, j.walltime) for j in jobs if j.application == "NWChem"} == {
        (400, 2700),
        (1000, 2700),
        (7000, 2700),
    }


@pytest.mark.parametrize("percent", [0, *PERCENTS])
def test_a_generated_snapshot_is_as_promised(percent):
    path = SNAPSHOTS / f"blue_waters_{percent or 'empty'}.json"
    assert path.stat().st_size < 1_000_000
    state = load_snapshot(path)
    jobs = GENERATE.workload_jobs(GENERATE.load_workload())
    assert [(r.id, r.nodes) for r in state.queue] == [(job.id, job.nodes) for job in jobs]
    assert all(r.value == r.nodes for r in state.queue)
    assert {r.communication for r in state.queue} == {Communication.STRICT}
    assert bool(state.running) == bool(percent)

    sizes = {job.id: job.nodes for job in jobs}
    down = parse_node_set(state.snapshot.down, state.torus.num_nodes)
    assert len(down) == 80
    num_nodes = np.bincount(state.node_class[state.node_class >= 0])
    busy, scattered = np.zeros(2, dtype=int), np.zeros(2, dtype=int)
    in_prisms = np.zeros(state.torus.num_links, dtype=int)
    on_lists = np.zeros(state.torus.num_links, dtype=bool)
    for job in state.running:
        _, _, name = job.id.partition("-")
        node_class = state.classes.index(name.split("-")[-2])
        assert len(job.nodes) == sizes[name]
        assert not np.isin(job.nodes, down).any()
        assert set(state.node_class[job.nodes].tolist()) == {node_class}
        busy[node_class] += len(job.nodes)
        if job.prism is None:
            scattered[node_class] += len(job.nodes)
            on_lists[scattered_links(state.torus, job.routers)] = True
        else:
            in_prisms[prism_links(state.torus, job.prism)] += 1
    assert busy.tolist() == pytest.approx(percent / 100 * num_nodes, rel=0.01)
    assert in_prisms.max() <= 1
    assert not (on_lists & (in_prisms > 0)).any()
    if percent:
        assert 0.02 <= scattered[0] / busy[0] <= 0.07


@pytest.mark.parametrize("percent", [0, 20])
def test_the_script_rebuilds_the_same_bytes(percent, tmp_path, monkeypatch):
    monkeypatch.setattr(BUILD, "BUSY_PERCENTS", (percent,))
    monkeypatch.setattr(BUILD, "INSTANCES", tmp_path)
    for folder in ("machines", "snapshots", "applications"):
        (tmp_path / folder).mkdir()
    BUILD.main()
    written = sorted(tmp_path.rglob("*.json"))
    machines = sorted(path.stem for path in written if path.parent.name == "machines")
    assert machines == machine_names()
    shipped = [path.name for path in (ROOT / "instances" / "applications").iterdir()]
    applications = {path.name for path in written if path.parent.name == "applications"}
    assert applications == {*shipped}
    assert len(written) == len(machines) + len(shipped) + 1
    for path in written:
        assert path.read_bytes() == (ROOT / "instances" / path.relative_to(tmp_path)).read_bytes()


def test_another_seed_gives_another_snapshot():
    machine, workload = load_machine("blue_waters"), GENERATE.load_workload()
    one, other = (GENERATE.generate_snapshot(machine, workload, 0, seed) for seed in (1, 2))
    assert one.down != other.down


def test_a_share_that_cannot_be_reached_is_refused():
    machine = load_machine("torus:4x4x4").model_copy(update={"default_class": "xe"})
    with pytest.raises(InputError, match="busy nodes that can be reached"):
        GENERATE.generate_snapshot(machine, GENERATE.load_workload(), 150, 1)


def test_tiny_features_shows_every_feature():
    state = load_snapshot(SNAPSHOTS / "tiny_features.json")
    snapshot, model = state.snapshot, state.snapshot.machine
    assert set(state.torus.wrap) == {True, False}
    assert model.classes
    assert model.service
    assert snapshot.down
    assert snapshot.regions
    assert {job.prism is None for job in state.running} == {True, False}
    used = {field for request in snapshot.queue for field in request.model_fields_set}
    assert used == {
        *("id", "nodes", "node_class", "priority", "shapes", "region", "communication"),
        *("walltime", "submitted"),
    }
    assert {r.communication for r in state.queue} == set(Communication)
    shapes = itertools.chain.from_iterable(r.geometries for r in state.queue)
    assert {g.max_depth is None for g in shapes} == {True, False}


SCHEMAS = ["snapshot", "machine", "result", "placements", "tree-placements"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_files_are_up_to_date(name):
    build = script("build_schemas")
    written = (ROOT / "docs" / "schema" / f"{name}.schema.json").read_text()
    assert written == build.schema_text(name), "run scripts/build_schemas.py"
    assert json.loads(written)["additionalProperties"] is False
