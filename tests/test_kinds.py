"""Kinds of problems: the registry, and a kind from outside the package that every command takes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import topoplace as tp
from ring_cases import packings
from topoplace import kinds
from topoplace.cli import run
from topoplace.errors import ExitCode, InputError
from topoplace.report.view import view_of
from toy_ring import KIND, Ring, jobs_of, left_on


@pytest.fixture(scope="module", autouse=True)
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Install a package, as far as Python knows, whose entry point is the kind."""
    folder = tmp_path_factory.mktemp("packages")
    about = folder / "toy_ring-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-ring\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[topoplace.kinds]\nring = toy_ring:KIND\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        kinds._of_others.cache_clear()
        yield
    kinds._of_others.cache_clear()


def drawn(seed: object) -> dict[str, object]:
    """Return a random snapshot of a ring."""
    rng = random.Random(f"ring-kind-{seed}")
    slots = [rng.randint(1, 3) for _ in range(rng.randint(2, 5))]
    queue = [
        {"id": f"j{k}", "nodes": rng.randint(1, 4), "priority": rng.randint(1, 3)}
        for k in range(rng.randint(1, 4))
    ]
    running = [{"id": "r", "nodes": "0"}] if rng.random() < 0.5 else []
    machine = {"kind": "ring", "name": "ring", "slots": slots}
    fields = {"machine": machine, "queue": queue, "running": running}
    return {"schema": "topoplace.snapshot/1", "name": f"ring-{seed}", **fields}


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    path = tmp_path / "ring.json"
    path.write_text(json.dumps(drawn(1)))
    return str(path)


@pytest.mark.usefixtures("batches_here")
def test_commands_take_a_kind_of_others(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, page = str(tmp_path / "result.json"), str(tmp_path / "page.html")
    assert run(["place", snapshot, "-o", result, "--png", str(tmp_path / "ring.png")]) == 0
    assert "nodes and spare optimal" in capsys.readouterr().out
    assert run(["check", result]) == 0
    assert "every claim holds" in capsys.readouterr().out
    assert run(["show", result, "--html", page]) == 0
    assert run(["compare", snapshot, "--methods", "exact,first-fit", "--html", page]) == 0
    assert "first-fit" in capsys.readouterr().out
    assert run(["batch", snapshot, "-o", str(tmp_path / "batch"), "--method", "exact"]) == 0
    table = (tmp_path / "batch" / "table.csv").read_text()
    assert "ring-1" in table
    assert run(["place", "ring:0:1"]) == ExitCode.BAD_INPUT


def test_what_a_kind_does_not_offer_is_told_in_a_line(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, log = str(tmp_path / "result.json"), tmp_path / "log.swf"
    log.write_text(" ".join(["1"] * 18) + "\n")
    assert run(["place", snapshot, "-o", result]) == 0
    capsys.readouterr()
    calls = (
        (
            ["replay", str(log), "--on", "ring:6:2"],
            "--on: expected a machine of kind torus or tree",
        ),
        (["audit", result], "problem: expected a result of kind hierarchy, found 'ring'"),
        (
            ["place", snapshot, "--command", "true"],
            "machine.kind: expected a machine of kind torus",
        ),
        (["audit", snapshot, "--after", snapshot], "machine: expected a hierarchy or a tree"),
        (["map", "--grid", "2x2", "--on", snapshot], "expected"),
    )
    for call, line in calls:
        more = ["--method", "exact"] if call[0] == "replay" else []
        assert run([*call, *more]) == ExitCode.BAD_INPUT, call
        said = capsys.readouterr().err.strip()
        assert line in said
        assert len(said.splitlines()) == 1, said


def test_a_kind_of_others_has_scenarios(snapshot: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["whatif", snapshot, "--add-down", "1", "--without-job", "j0", "--worth", "2"]) == 0
    assert "without-job j0" in capsys.readouterr().out


def test_help_lists_the_methods_of_a_kind_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("place", "whatif", "compare", "batch"):
        for _ in range(2):
            assert run([command, "--help"]) == 0
            shown = capsys.readouterr().out
            assert shown.count("Methods on a ring:") == 1, command
            assert "- first-fit: in queue order" in shown, command


def test_what_is_not_for_kinds_of_others_is_refused_in_one_line(
    snapshot: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for several in (["--all", "2"], ["--pareto", "nodes,spare"]):
        assert run(["place", snapshot, *several]) == ExitCode.BAD_INPUT
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert (
            "expected a machine of kind torus or hierarchy or cubes or dragonfly or fattree" in told
        )


@pytest.mark.parametrize(
    ("name", "of_its_own"), [("fattree", set()), ("dragonfly", {"simulators.py"})]
)
def test_a_kind_is_named_in_three_files_besides_its_own(name: str, of_its_own: set[str]) -> None:
    package = Path(tp.__file__).parent
    others = [
        file
        for file in package.rglob("*.py")
        if name not in file.relative_to(package).as_posix() and file.name not in of_its_own
    ]
    naming = [
        file.relative_to(package).as_posix()
        for file in others
        if name in file.read_text().replace(f"docs/proofs/{name}.md", "").lower()
    ]
    assert "kinds.py" in naming
    assert len(naming) <= 3, naming


def test_wrong_machines_are_named_by_the_kind_of_others() -> None:
    wrong = drawn(1)
    with pytest.raises(InputError, match=r"found 'slot' \(did you mean 'slots'"):
        tp.load(wrong | {"machine": {"kind": "ring", "name": "ring", "slots": [1], "slot": [1]}})
    with pytest.raises(
        InputError, match=r"cubes, .*fattree, ring, found 'rings' \(did you"
    ) as told:
        tp.load(wrong | {"machine": {"kind": "rings", "name": "ring", "slots": [1]}})
    assert len(told.value.faults) == 1


def test_cells_have_the_name_that_the_view_gives_them() -> None:
    assert view_of(tp.place(tp.load(drawn(1)))).tiles.across == "slot"


def test_python_takes_a_kind_of_others() -> None:
    model = tp.Model("ring:5:2")
    model.add_request("a", 4)
    model.add_request("b", 6)
    result = tp.place(model)
    assert (result.objective, result.proof) == (10, "certificate")
    assert tp.check(result).holds
    frame = result.to_frame()
    assert frame.starts.all()
    assert frame.hosts.notna().all()
    assert tp.methods()["ring exact"] == "optimal"


def test_the_optimum_is_that_of_all_packings_and_its_claims_hold() -> None:
    for seed in range(60):
        result = tp.place(tp.load(drawn(seed)))
        instance = result.instance
        every = packings(Ring(tuple(left_on(instance))), jobs_of(instance))
        assert tuple(level.objective for level in result.levels) == max(every), seed
        assert tp.check(result).holds, seed
        worse = result.model_copy(update={"objective": result.objective + 1})
        assert not tp.check(worse).holds, seed


def test_a_kind_is_registered_once() -> None:
    with pytest.raises(ValueError, match="registered already"):
        kinds.register(KIND)
    with pytest.raises(InputError, match=r"one of .*placement"):
        kinds.kind_named("rings")
