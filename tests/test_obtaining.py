"""Which layouts some nodes have room for: against all windows, and as `map --layout` lays them."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest

import topoplace as tp
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.mapping.layouts import Layout
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.pencils.obtaining import Obtained, numbered_layouts, obtained, tables_of
from topoplace.mapping.problem import MappingProblem


def lies_somewhere(problem: MappingProblem, layout: Layout) -> bool:
    """Return whether a window has enough usable routers in every pencil, going through all."""
    torus, levels = problem.torus, layout.extents[-1]
    whole = problem.whole_routers.reshape(torus.shape)
    for depth in range(levels, torus.shape[-1] + 1):
        box = (*layout.extents[:-1], depth)
        begins = [
            range(n if wraps and size <= n else n - size + 1)
            for n, wraps, size in zip(torus.shape, torus.wrap, box, strict=True)
        ]
        for origin in itertools.product(*begins):
            spans = [
                [(at + k) % n for k in range(size)]
                for at, n, size in zip(origin, torus.shape, box, strict=True)
            ]
            pencils = itertools.product(*spans[:-1])
            if all(sum(whole[(*p, z)] for z in spans[-1]) >= levels for p in pencils):
                return True
    return False


def test_layouts_there_is_room_for_are_those_of_all_windows() -> None:
    seen = {True: 0, False: 0}
    for seed in range(25):
        rng = random.Random(seed)
        machine = rng.choice(["torus:4x3x5:2", "mesh:4x3x5:2", "torus:3x3x4"])
        places = load_places(machine)
        kept = [n for n in places.nodes.tolist() if rng.random() < rng.choice((0.85, 0.95))]
        grid = tp.grid(*rng.choice([(4, 4, 4), (6, 4, 5), (5, 3, 4), (8, 6)]))
        try:
            problem = problem_on(places.only(kept), grid, 4)
            ranked = numbered_layouts(problem)
        except InputError:
            continue
        tables = tables_of(problem)
        for entry in ranked[:12]:
            where = obtained(problem, entry.layout, tables)
            assert isinstance(where, Obtained) is lies_somewhere(problem, entry.layout), seed
            seen[isinstance(where, Obtained)] += 1
            if isinstance(where, Obtained):
                assert np.isin(where.nodes, problem.nodes).all()
    assert min(seen.values()) > 20, seen


def has_room(whole: np.ndarray, extents: tuple[int, ...]) -> bool:
    """Return whether a torus has a window of a layout, by turning the torus step by step."""
    *sides, levels = extents
    for depth in range(levels, whole.shape[-1] + 1):
        enough = sum(np.roll(whole, -k, axis=-1).astype(int) for k in range(depth)) >= levels
        for d, side in enumerate(sides):
            enough = np.logical_and.reduce([np.roll(enough, -k, axis=d) for k in range(side)])
        if enough.any():
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "per_node"), [((32, 32, 32), 32), ((168, 132), 16)])
def test_layouts_on_a_busy_blue_waters(
    shape: tuple[int, ...], per_node: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those obtainable are those of all windows, and `map --layout` lays them as listed."""
    on = {"on": "blue_waters_50", "tasks_per_node": per_node}
    words = ["--grid", "x".join(map(str, shape)), "--tasks-per-node", str(per_node), "--json"]
    assert run(["layouts", "--on", "blue_waters_50", "--limit", "200", *words]) == 0
    listed = json.loads(capsys.readouterr().out)["layouts"]
    problem = problem_on(load_places("blue_waters_50"), tp.grid(*shape), per_node)
    whole = problem.whole_routers.reshape(problem.torus.shape)
    ranked = numbered_layouts(problem)
    seen = {True: 0, False: 0}
    for one in listed:
        extents = ranked[one["number"] - 1].layout.extents
        assert has_room(whole, extents) is one["obtainable"], one
        seen[one["obtainable"]] += 1
        if seen[one["obtainable"]] > 3:
            continue
        if one["obtainable"]:
            found = tp.map(tp.grid(*shape), layout=one["number"], time_limit=0.01, **on)
            assert found.objective == one["hop_bytes"]
            assert found.check().holds
        else:
            with pytest.raises(InputError, match="usable"):
                tp.map(tp.grid(*shape), layout=one["number"], time_limit=0.01, **on)
    assert sum(seen.values()) > 40, seen


def test_map_lays_each_of_the_eight_layouts_as_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Enos 2014 IV.F, in a feature of Blue Waters; one of the eight has no room in this one."""
    words = ["--grid", "32x32x32", "--tasks-per-node", "32", "--within", "12x8x12@0,12,0"]
    assert run(["layouts", *words, "--rank-files", str(tmp_path), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["layouts"]
    assert [one["number"] for one in listed if not one["obtainable"]] == [6]
    for one in listed:
        asked = {"tasks_per_node": 32, "within": "12x8x12@0,12,0", "layout": one["number"]}
        if not one["obtainable"]:
            with pytest.raises(InputError, match="at most 64 of 66 pencils have 11 usable"):
                tp.map(tp.grid(32, 32, 32), "blue_waters", **asked)
            continue
        found = tp.map(tp.grid(32, 32, 32), "blue_waters", time_limit=0.01, **asked)
        assert found.objective == one["hop_bytes"]
        assert found.solution is not None
        assert found.solution.layout is not None
        assert found.solution.layout.logical == one["logical"]
        assert found.check().holds
        order = f"MPICH_RANK_ORDER-{one['number']}"
        again = tp.map(
            tp.grid(32, 32, 32), "blue_waters", "given", tasks_per_node=32,
            mapping=tmp_path / order, mapping_format="rank-order", time_limit=0.01,
        )  # fmt: skip
        assert again.objective == found.objective


def test_layouts_on_a_snapshot_and_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["layouts", "--grid", "32x32x32", "--tasks-per-node", "32", "--limit", "3"]
    assert run([*words, "--on", "blue_waters_50"]) == 0
    said = capsys.readouterr().out
    assert "at 18,8,13 depth 9" in said
    for more, told in (
        (["--rank-files", "x"], "a snapshot, --subset or --within 4x4@0,0 with this option"),
        (["--within", "12x8x30"], "a region inside"),
    ):
        assert run([*words, *more]) != 0
        assert told in capsys.readouterr().err
    for options, told in (
        ({"layout": 1000}, "--layout"),
        ({"layout": 1, "method": "pencils"}, "topaware with --layout"),
    ):
        with pytest.raises(InputError, match=told):
            tp.map(tp.grid(4, 4), "torus:4x4", **options)


@pytest.mark.parametrize(
    ("shape", "per_node", "within"),
    [((110, 120), 16, "12x4x12@0,12,0"), ((11, 12, 11, 12), 24, "12x4x12@4,12,0")],
)
def test_folded_staggered_and_4d_layouts_are_laid_as_listed(
    shape: tuple[int, ...], per_node: int, within: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "x".join(map(str, shape))
    words = ["--grid", text, "--tasks-per-node", str(per_node), "--within", within, "--stagger"]
    assert run(["layouts", *words, "--json"]) == 0
    listed = [one for one in json.loads(capsys.readouterr().out)["layouts"] if one["obtainable"]]
    assert len(shape) == 4 or {one["stagger"] for one in listed} == {False, True}
    chosen = {(one["stagger"], one["whole"]): one for one in listed}
    for one in chosen.values():
        found = tp.map(
            tp.grid(*shape), "blue_waters", tasks_per_node=per_node, within=within,
            layout=one["number"], time_limit=0.01,
        )  # fmt: skip
        assert found.objective == one["hop_bytes"]
        assert found.check().holds


def test_layouts_on_paths_are_laid_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """A grid of four dimensions on a flat torus; the checker has its own rule for paths."""
    words = ["--grid", "3x4x4x4", "--tasks-per-node", "2", "--within", "6x2x6@0,0,0", "--json"]
    assert run(["layouts", "--on", "torus:6x2x6:2", *words]) == 0
    listed = json.loads(capsys.readouterr().out)["layouts"]
    assert all(one["path"] and one["obtainable"] for one in listed)
    refused = 0
    for one in listed[:4]:
        found = tp.map(
            tp.grid(3, 4, 4, 4), "torus:6x2x6:2", tasks_per_node=2, layout=one["number"],
            time_limit=0.01,
        )  # fmt: skip
        assert found.objective == one["hop_bytes"]
        assert found.check().holds
        document = found.model_dump(mode="json")
        layout = document["solution"]["layout"]
        assert layout["path"] == one["path"]
        path = one["path"]
        for wrong in (
            {"block": path["block"][::-1]},
            {"block": [*path["block"], 1]},
            {"dim": (path["dim"] + 1) % 4},
            {"partitions": path["partitions"] + 1},
            {"block": [1 << 20] * 3},
        ):
            layout["path"] = path | wrong
            same = layout["path"] == path
            refused += not same
            assert tp.check(document).holds is same, (one["number"], wrong)
        layout["path"] = None
        assert not tp.check(document).holds
    assert refused >= 10
