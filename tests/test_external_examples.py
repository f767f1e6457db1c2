"""The allocators of the documentation, and installed Python functions, good and bad."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from external_answers import tree_document, write_document
from test_replay_cli import QUEUED, write_log
from topoplace.certify import check_document
from topoplace.cli import run
from topoplace.errors import ExitCode
from topoplace.result import PlacementResult
from topoplace.result.tree import AllocationResult
from topoplace.study.external.allocator import entry_point_names
from topoplace.study.external.program import run_program

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "external-allocators.md").read_text()


def example(language: str) -> str:
    """Return the program of the documentation that is written in a language."""
    return re.search(f"```{language}\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.mark.skipif(shutil.which("perl") is None, reason="perl is not installed")
def test_the_example_in_perl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, output = tmp_path / "first_fit.pl", tmp_path / "r.json"
    program.write_text(example("perl"))
    probe = run_program(["perl", "-MJSON::PP", "-e", "1"], b"", 30)
    if probe.code:
        pytest.skip("this perl lacks JSON::PP")
    snapshot = str(ROOT / "instances" / "snapshots" / "tiny_features.json")
    command = f"perl {program}"
    assert run(["place", snapshot, "--command", command, "-o", str(output)]) == ExitCode.DONE
    result = PlacementResult.model_validate_json(output.read_text())
    assert check_document(result).holds
    assert len(result.solution.placements) == 5
    args = ["compare", snapshot, "--methods", "first-fit", "--command", f"perl-first-fit={command}"]
    capsys.readouterr()
    assert run(args) == ExitCode.DONE
    assert re.search(r"\n +perl-first-fit \* +41 ", capsys.readouterr().out)


MODULE = """
import os, time
print("imported")
def raises(snapshot, time_limit): raise ValueError("no room\\nat all")
def hangs(snapshot, time_limit): time.sleep(60)
def dies(snapshot, time_limit): os._exit(7)
def nonsense(snapshot, time_limit): return {1, 2}
def told(snapshot, time_limit): raise ValueError(f"{snapshot['name']} in {time_limit}")
def prints(snapshot, time_limit):
    os.system("echo compiled code prints")
    return {"schema": "topoplace.placements/1", "placements": []}
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a distribution with allocators, and return a folder for other files."""
    site, work = tmp_path / "site", tmp_path / "work"
    info = site / "rivals-1.2.dist-info"
    info.mkdir(parents=True)
    work.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rivals\nVersion: 1.2\n")
    names = ("raises", "hangs", "dies", "nonsense", "told", "prints")
    lines = [f"{name} = rivals:{name}" for name in names]
    lines += ["leaf-order = leaf_order:leaf_order", "gone = no_such_module:f", "first-fit = a:b"]
    (info / "entry_points.txt").write_text("\n".join(["[topoplace.allocators]", *lines, ""]))
    (site / "rivals.py").write_text(MODULE)
    (site / "leaf_order.py").write_text(example("python"))
    monkeypatch.syspath_prepend(site)
    return work


@pytest.mark.parametrize(
    ("name", "code", "named"),
    [
        ("raises", 5, 'failed: exit code 1; it said "at all"'),
        ("hangs", 4, "time-out: no answer within the time limit"),
        ("dies", 5, "failed: exit code 7"),
        ("nonsense", 5, 'failed: exit code 1; it said "TypeError: Object of type set'),
        ("told", 5, 'failed: exit code 1; it said "ValueError: small in 1.0"'),
        ("gone", 5, 'failed: exit code 1; it said "ModuleNotFoundError: No module named'),
    ],
)
def test_python_functions_that_fail(
    name: str, code: int, named: str, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["place", str(write_document(installed)), "--method", name, "--time-limit", "1"]
    assert run(args) == code
    assert f"small: {name}: {named}" in capsys.readouterr().err


def test_python_functions_may_print(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["place", str(write_document(installed)), "--method", "prints"]) == ExitCode.DONE
    assert "prints said: " in capsys.readouterr().out


def test_the_example_in_python(installed: Path) -> None:
    path, output = write_document(installed, tree_document()), installed / "r.json"
    assert run(["place", str(path), "--method", "leaf-order", "-o", str(output)]) == ExitCode.DONE
    result = AllocationResult.model_validate_json(output.read_text())
    assert [a.nodes for a in result.solution.allocations] == [["n1", "n2", "n4"], ["n5", "n6"]]
    assert result.versions["allocator"] == "leaf_order:leaf_order (rivals 1.2)"
    assert run(["compare", str(path), "--methods", "default,leaf-order"]) == ExitCode.DONE


def test_installed_allocators_in_batches_and_replays(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = write_document(installed, tree_document()), installed / "out"
    args = ["batch", str(path), "-o", str(out), "--method", "leaf-order", "--jobs", "1"]
    assert run(args) == ExitCode.DONE
    (result,) = (out / "results").iterdir()
    versions = AllocationResult.model_validate_json(result.read_text()).versions
    assert versions["allocator"] == "leaf_order:leaf_order (rivals 1.2)"
    log = write_log(installed, QUEUED)
    capsys.readouterr()
    args = ["replay", log, "--on", "tree:2x4", "--method", "leaf-order", "--json"]
    assert run(args) == ExitCode.DONE
    default, ours = json.loads(capsys.readouterr().out)["runs"]
    assert (default["method"], ours["method"]) == ("default", "leaf-order")
    assert ours["num_jobs"] == ours["decisions"]["asked"] == len(QUEUED)


def test_our_own_methods_win_where_names_clash(installed: Path) -> None:
    assert "first-fit" in entry_point_names()
    assert run(["place", str(write_document(installed)), "--method", "first-fit"]) == ExitCode.DONE


def test_an_unknown_method_is_told_all_there_are(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["place", "--method"], ["compare", "--methods"]):
        args = [command[0], str(write_document(installed)), command[1], "mystery"]
        assert run(args) == ExitCode.BAD_INPUT
        said = capsys.readouterr().err
        assert "exact" in said
        assert "leaf-order" in said
        assert "imported" not in said
