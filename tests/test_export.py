"""Models and proofs that are exported: the proofs by VeriPB, which is not ours."""

from __future__ import annotations

import itertools
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import dragonfly_cases
import tiny_fattrees
import tiny_trees
import topoplace as tp
from anchored_cases import random_anchored
from few import few_of
from minizinc_cases import needs_minizinc
from opb_files import optimum_of, optimum_of_mps
from random_instances import random_snapshot
from tiny_cubes import random_pod
from tiny_hierarchies import random_hierarchy
from tiny_instances import tiny_mapping
from topoplace.errors import InputError
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Interference
from topoplace.solving import Options, solve
from veripb import assert_verified, mutants, needs_veripb, sides, verdict

MODES = list(Interference)
MODELS = Path(__file__).resolve().parent.parent / "models"
LIMIT = {"exact": 300.0, "cp-sat": 300.0, "minizinc": 15.0}
HAS_MINIZINC = shutil.which("minizinc") is not None


def busy_torus(seed: int | str, shape: tuple[int, ...], requests: int, sizes: list[int]) -> Any:
    """Return a torus that is a third busy, and a queue."""
    rng = random.Random(seed)
    model = tp.Model(tp.torus(*shape), name=f"busy-{seed}")
    num = model.snapshot.machine.shape  # type: ignore[union-attr]
    routers = num[0] * num[1] * num[2]
    for k, router in enumerate(rng.sample(range(routers), routers // 6)):
        model.add_running(f"r{k}", nodes=str(router))
    for k in range(requests):
        model.add_request(f"j{k}", rng.choice(sizes), priority=rng.choice([1, 1, 1, 2]))
    return model


# ---- Proofs of placements ------------------------------------------------------------------------


@needs_veripb
def test_the_shipped_example_is_verified(tmp_path: Path) -> None:
    assert_verified(tp.place("tiny_features"), tmp_path)


@needs_veripb
@pytest.mark.parametrize("required", ["shape>=9000", "nodes>=30,shape>=9000", "nodes>=30"])
def test_levels_with_thresholds_are_verified(required: str, tmp_path: Path) -> None:
    result = tp.place("tiny_features", required=required)
    assert (result.levels[1].status == "infeasible") == ("shape" in required)
    assert_verified(result, tmp_path)


@needs_veripb
@pytest.mark.parametrize("seed", few_of(range(60), 5))
def test_random_tori_are_verified(seed: int, tmp_path: Path) -> None:
    snapshot = random_snapshot(random.Random(f"veripb-{seed}"), 40)
    assert_verified(tp.place(snapshot, interference=MODES[seed % 3]), tmp_path)


@needs_veripb
@pytest.mark.parametrize("seed", few_of(range(60), 3))
def test_pods_and_anchored_tori_are_verified(seed: int, tmp_path: Path) -> None:
    assert_verified(tp.place(random_pod(random.Random(f"veripb-{seed}"))), tmp_path)
    anchored = random_anchored(f"veripb-{seed}", 24, segmented=seed % 3 == 0)
    assert_verified(tp.place(anchored, interference="off"), tmp_path)


@needs_veripb
def test_several_places_of_the_same_nodes_are_exchanged_one_by_one(tmp_path: Path) -> None:
    result = tp.place(random_anchored("veripb-54", 24, segmented=True), interference="off")
    assert_verified(result, tmp_path)


@needs_veripb
def test_distances_that_differ_by_direction_are_searched(tmp_path: Path) -> None:
    assert_verified(solve(small_mapping(46), "exact", Options(time_limit=60)), tmp_path)


@needs_veripb
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_tori_of_64_routers_are_verified_on_all_levels(seed: int, tmp_path: Path) -> None:
    model = busy_torus(seed, (4, 4, 4), 10, [4, 6, 8, 8, 12, 16, 20, 24])
    assert_verified(tp.place(model, time_limit=60), tmp_path)


@needs_veripb
@pytest.mark.slow
def test_a_torus_of_512_routers_is_verified(tmp_path: Path) -> None:
    model = busy_torus(1, (8, 8, 8), 20, [8, 16, 16, 24, 32, 40, 48, 64, 64])
    assert_verified(tp.place(model, time_limit=60), tmp_path, "nodes")


@needs_veripb
@pytest.mark.parametrize("count", few_of([20, 200], 1))
def test_mutants_are_refused(count: int, tmp_path: Path) -> None:
    result = tp.place(busy_torus(4, (2, 3, 3), 6, [2, 3, 4, 6]))
    rng, refused = random.Random(f"mutants-{count}"), 0
    texts = tp.export(result, to_format="veripb", level="shape").texts
    assert result.levels[1].status == "optimal"
    for model, proof in itertools.islice(mutants(*texts.values(), rng), count):
        (tmp_path / "model.opb").write_text(model)
        (tmp_path / "proof.pbp").write_text(proof)
        assert verdict(tmp_path).startswith("refused"), (model, proof)
        refused += 1
    assert refused == count


# ---- What is not exported ------------------------------------------------------------------------


def test_levels_and_sizes_that_are_refused() -> None:
    with pytest.raises(InputError, match=r"4194304 prisms.* found 169112377"):
        tp.export("blue_waters_60")
    with pytest.raises(InputError, match="expected a result, for a level after the first"):
        tp.export("tiny_features", level="shape")
    with pytest.raises(InputError, match="a result with a bound"):
        tp.export("tiny_features", to_format="veripb")
    with pytest.raises(InputError, match="--to"):
        tp.export("tiny_features", to_format="sudoku")


# ---- Models: the same optimum everywhere ---------------------------------------------------------


def assert_same(placed: Callable[[str], Any]) -> None:
    """Compare what methods reach, and the models of all levels by code of the tests' own."""
    exact = placed("exact")
    assert {v.status for v in exact.levels} <= {"optimal"}
    optima = [v.objective for v in exact.levels]
    for name in ("cp-sat", "minizinc") if HAS_MINIZINC else ("cp-sat",):
        other = placed(name)
        assert other.check().holds
        if name == "cp-sat" or not other.limits.hit:
            assert [v.objective for v in other.levels] == optima, name
            assert [v.bound for v in other.levels] == optima, name
    for level in exact.levels:
        text = tp.export(exact, to_format="opb", level=level.name).text
        assert optimum_of(text) == level.objective, level.name


@pytest.mark.parametrize("seed", few_of(range(300), 2))
def test_models_of_tori_have_the_same_optimum(seed: int) -> None:
    snapshot, mode = random_snapshot(random.Random(f"same-{seed}"), 16), MODES[seed % 3]
    assert_same(lambda name: tp.place(snapshot, name, interference=mode, time_limit=LIMIT[name]))


@pytest.mark.parametrize("kind", ["torus:2x3", "hierarchy:2x2x2", "dragonfly:2x2x2"])
def test_models_of_an_empty_queue_have_the_same_optimum(kind: str) -> None:
    assert_same(lambda name: tp.place(tp.Model(kind), name, time_limit=LIMIT[name]))


@pytest.mark.parametrize("seed", few_of(range(300), 2))
def test_models_of_pods_have_the_same_optimum(seed: int) -> None:
    pod = random_pod(random.Random(f"same-{seed}"))
    assert_same(lambda name: tp.place(pod, name, time_limit=LIMIT[name]))


@pytest.mark.parametrize("seed", few_of(range(300), 2))
def test_models_of_anchored_tori_have_the_same_optimum(seed: int) -> None:
    snapshot = random_anchored(f"same-{seed}", segmented=seed % 3 == 0)
    assert_same(lambda name: tp.place(snapshot, name, interference="off", time_limit=LIMIT[name]))


@pytest.mark.parametrize("seed", few_of(range(300), 2))
def test_models_of_hierarchies_have_the_same_optimum(seed: int) -> None:
    document = random_hierarchy(random.Random(f"same-{seed}"))
    assert_same(lambda name: tp.place(document, name, time_limit=LIMIT[name]))


@pytest.mark.parametrize("seed", few_of(range(300), 1))
def test_models_of_trees_have_the_same_optimum(seed: int) -> None:
    snapshot = tiny_trees.random_snapshot(f"same-{seed}")
    assert_same(lambda name: tp.place(snapshot, name, time_limit=LIMIT[name]))


@pytest.mark.parametrize("seed", few_of(range(300), 2))
def test_models_of_dragonflies_have_the_same_optimum(seed: int) -> None:
    document, rule = dragonfly_cases.drawn(f"same-{seed}"), MODES[seed % 2 * 2]
    assert_same(lambda name: tp.place(document, name, interference=rule, time_limit=LIMIT[name]))


@pytest.mark.parametrize("seed", few_of(range(300), 2))
def test_models_of_fat_trees_have_the_same_optimum(seed: int) -> None:
    snapshot = tiny_fattrees.random_tree(random.Random(f"same-{seed}"))
    assert_same(lambda name: tp.place(snapshot, name, time_limit=LIMIT[name]))


@pytest.mark.parametrize("seed", few_of(range(300), 2))
def test_models_of_mappings_have_the_same_optimum(seed: int) -> None:
    problem = small_mapping(seed)
    assert_same(lambda name: solve(problem, name, Options(time_limit=LIMIT[name])))


def small_mapping(seed: int) -> MappingProblem:
    """Return a mapping of tasks, with few bytes."""
    for k in itertools.count():
        problem = tiny_mapping(f"same-{seed}-{k}")
        if problem.of_tasks and problem.graph.total_bytes < 1 << 30:
            return problem
    raise AssertionError


def test_rows_of_a_model_have_different_names() -> None:
    for seed in range(11, 14):
        document = random_hierarchy(random.Random(f"same-{seed}"))
        lines = tp.export(document, to_format="mps").text.splitlines()
        names = [line.split()[1] for line in lines if line[:3] in (" E ", " L ", " G ")]
        assert len({*names}) == len(names)


def test_mps_is_read_by_others() -> None:
    snapshot = tp.place(random_pod(random.Random("mps-1")))
    for result in (snapshot, tp.place("tiny_features"), tp.place(dragonfly_cases.drawn("mps"))):
        for level in result.levels:
            text = tp.export(result, to_format="mps", level=level.name).text
            assert optimum_of_mps(text) == level.objective, level.name


@pytest.mark.skipif(find_spec("highspy") is None, reason="no package highspy")
def test_highs_reads_mps_and_lp(tmp_path: Path) -> None:
    read = """if True:
        import highspy, sys
        highs = highspy.Highs()
        assert highs.readModel(sys.argv[1]) == highspy.HighsStatus.kOk
        highs.run()
        print(round(highs.getObjectiveValue()))
    """
    result = tp.place("tiny_features")
    for level, form in itertools.product(result.levels, ("mps", "lp")):
        file = tmp_path / f"model.{form}"
        tp.export(result, to_format=form, level=level.name).save(file)
        command = [sys.executable, "-c", read, str(file)]  # ortools is not in that process
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert int(run.stdout.split()[-1]) == sides(result, level.name)[1]


@needs_minizinc
@pytest.mark.parametrize("kind", ["torus", "pod", "anchored", "hierarchy", "dragonfly", "fattree"])
def test_the_command_that_export_prints_solves_the_level(kind: str, tmp_path: Path) -> None:
    rng = random.Random(f"command-{kind}")
    result = tp.place(
        {
            "torus": lambda: random_snapshot(rng, 12),
            "pod": lambda: random_pod(rng),
            "anchored": lambda: random_anchored("command", 12),
            "hierarchy": lambda: random_hierarchy(rng),
            "dragonfly": lambda: dragonfly_cases.drawn("command"),
            "fattree": lambda: tiny_fattrees.random_tree(rng),
        }[kind](),
        interference="off" if kind == "anchored" else "strict",
    )
    second = result.levels[1]
    own = tp.export(result, to_format="minizinc", level=second.name)
    own.save(tmp_path / "data.json")
    command = own.notes[1].removeprefix("in the folder models: ")
    command = command.replace("data.json", str(tmp_path / "data.json"))
    run = subprocess.run(
        command, shell=True, cwd=MODELS, capture_output=True, text=True, check=True
    )
    assert run.stdout.endswith("==========\n")
    assert second.objective is not None
    model = sides(result, second.name)[1] if kind in ("pod", "anchored", "fattree") else None
    value = re.search(r"(?:level 2|goal \d+|value): (-?\d+)", run.stdout)
    assert value is not None
    assert abs(int(value[1])) == abs(second.objective if model is None else model)


# ---- Proofs of hierarchies and mappings ----------------------------------------------------------


@needs_veripb
@pytest.mark.parametrize("seed", few_of(range(60), 3))
def test_dragonflies_and_fat_trees_are_verified(seed: int, tmp_path: Path) -> None:
    rule, snapshot = MODES[seed % 2 * 2], dragonfly_cases.drawn(f"veripb-{seed}")
    assert_verified(tp.place(snapshot, interference=rule), tmp_path)
    assert_verified(tp.place(tiny_fattrees.random_tree(random.Random(f"veripb-{seed}"))), tmp_path)


@needs_veripb
@pytest.mark.parametrize("seed", few_of(range(60), 3))
def test_hierarchies_and_mappings_are_verified(seed: int, tmp_path: Path) -> None:
    assert_verified(tp.place(random_hierarchy(random.Random(f"veripb-{seed}"))), tmp_path)
    assert_verified(solve(small_mapping(seed), "exact", Options(time_limit=60)), tmp_path)


@needs_veripb
def test_the_hierarchy_of_the_guide_and_a_mapping_are_verified(tmp_path: Path) -> None:
    model = tp.Model(tp.hierarchy({"block": 2, "rack": 3, "host": 6}, capacity={"gpus": 4}))
    model.add_running("old", nodes="h[0-3],h[6-9]")
    gpu = {"gpus": 1}
    model.add_request("train", 32, takes=gpu, segments=[{"size": 16, "level": "rack"}])
    model.add_request("serve", 3, takes={"gpus": 4}, spread={"size": 1, "level": "rack"})
    model.add_request("large", 80, takes=gpu, required="block")
    assert_verified(tp.place(model), tmp_path)
    assert_verified(tp.map(tp.grid(4, 4), tp.torus(4, 4)), tmp_path)
