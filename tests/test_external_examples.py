"""The allocators of the documentation, and installed Python functions, good and bad."""

from __future__ import annotations

import json
import random
import re
import shlex
import sys
from pathlib import Path

import pytest

from external_answers import tree_document, write_document
from random_instances import random_snapshot
from test_replay_cli import QUEUED, write_log
from topoplace.certify import check_document
from topoplace.cli import run
from topoplace.errors import ExitCode
from topoplace.result import Interference
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.state import prepare
from topoplace.solving import Options
from topoplace.study.external.allocator import command_allocator
from topoplace.study.external.trial import try_on

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "guide" / "external-allocators.md").read_text()


def example(language: str, number: int = 0) -> str:
    """Return a program of the documentation that is written in a language."""
    return re.findall(f"```{language}\n(.*?)```", PAGE, re.DOTALL)[number]


@pytest.fixture
def first_fit(tmp_path: Path) -> str:
    """Return the command line of the program of the documentation."""
    program = tmp_path / "first_fit.py"
    program.write_text(example("python"))
    return shlex.join([sys.executable, "-I", str(program)])


@pytest.mark.parametrize("rule", list(Interference))
def test_the_example_shares_no_link_whatever_is_asked(rule: Interference, first_fit: str) -> None:
    started = 0
    for seed in range(8):
        state = prepare(random_snapshot(random.Random(f"example-{seed}"), 24))
        trial = try_on(state, command_allocator(first_fit), Options(interference=rule))
        assert trial.refusal is None
        assert trial.result.solution.num_shared_links == 0
        assert check_document(trial.result).holds
        started += len(trial.result.solution.placements)
    assert started > 8


def test_functions_print_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```(python|text)\n(.*?)```", PAGE.partition("## A Python")[2], re.DOTALL)
    names: dict[str, object] = {}
    for language, text in blocks:
        if language == "python":
            exec(text, names)
        else:
            assert capsys.readouterr().out == text


def test_what_a_program_reads(tmp_path: Path) -> None:
    args = ["place", str(write_document(tmp_path)), "--command", f"sh -c 'cat > {tmp_path}/told'"]
    assert run(args) == ExitCode.CHECK_FAILED
    told = json.loads((tmp_path / "told").read_text())
    assert told["schema"] == "topoplace.allocator-input/1"
    assert [request["room"] for request in told["queue"]] == [0, 0, 1]
    common, special = told["rooms"]
    assert common["routers"] == special["routers"] == [r for r in range(48) if r not in (12, 13)]
    assert common["nodes"] == [*range(2, 9), *range(10, 24), *range(28, 48), *range(56, 96)]
    assert special["nodes"] == list(range(48, 56))
    assert common["closed_links"] == [2 * 48 + 12]
    write_document(tmp_path, tree_document())
    assert run(args) == ExitCode.CHECK_FAILED
    told = json.loads((tmp_path / "told").read_text())
    assert told["free"] == {
        "s0": ["n1", "n2"],
        "s1": ["n4", "n5", "n6", "n7"],
        "s2": ["n8", "n9", "n10", "n11"],
    }


MODULE = """
import os, time
print("imported")
def raises(snapshot, time_limit): raise ValueError(f"{snapshot['name']}\\nin {time_limit}")
def hangs(snapshot, time_limit): time.sleep(60)
def dies(snapshot, time_limit): os._exit(7)
def nonsense(snapshot, time_limit): return {1, 2}
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
    lines = [f"{name} = rivals:{name}" for name in ("raises", "hangs", "dies", "nonsense")]
    lines += ["prints = rivals:prints", "leaf-order = leaf_order:leaf_order"]
    lines += ["gone = no_such_module:f", "first-fit = a:b"]
    (info / "entry_points.txt").write_text("\n".join(["[topoplace.allocators]", *lines, ""]))
    (site / "rivals.py").write_text(MODULE)
    (site / "leaf_order.py").write_text(example("python", 1))
    monkeypatch.syspath_prepend(site)
    return work


@pytest.mark.parametrize(
    ("name", "code", "named"),
    [
        ("raises", 5, 'failed: exit code 1; it said "in 20.0"'),
        ("hangs", 4, "time-out: no answer within the time limit"),
        ("dies", 5, "failed: exit code 7"),
        ("nonsense", 5, 'failed: exit code 1; it said "TypeError: Object of type set'),
        ("gone", 5, 'failed: exit code 1; it said "ModuleNotFoundError: No module named'),
        ("prints", 0, ""),
        ("first-fit", 0, ""),  # our own methods win where names clash
    ],
)
def test_python_functions(
    name: str, code: int, named: str, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = "1" if name == "hangs" else "20"
    args = ["place", str(write_document(installed)), "--method", name, "--time-limit", limit]
    assert run(args) == code
    said = capsys.readouterr()
    assert (f"small: {name}: {named}" in said.err) == bool(named)
    assert ("prints said: " in said.out) == (name == "prints")


@pytest.mark.usefixtures("batches_here")
def test_the_example_in_python(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = write_document(installed, tree_document()), installed / "r.json"
    assert run(["place", str(path), "--method", "leaf-order", "-o", str(output)]) == ExitCode.DONE
    placed = AllocationResult.model_validate_json(output.read_text())
    assert [a.nodes for a in placed.solution.allocations] == [["n1", "n2", "n4"], ["n5", "n6"]]
    assert run(["compare", str(path), "--methods", "default,leaf-order"]) == ExitCode.DONE
    out = installed / "out"
    args = ["batch", str(path), "-o", str(out), "--method", "leaf-order", "--jobs", "1"]
    assert run(args) == ExitCode.DONE
    (result,) = (out / "results").iterdir()
    for one in (placed, AllocationResult.model_validate_json(result.read_text())):
        assert one.versions["allocator"] == "leaf_order:leaf_order (rivals 1.2)"
    log = write_log(installed, QUEUED)
    capsys.readouterr()
    args = ["replay", log, "--on", "tree:2x4", "--method", "leaf-order", "--json"]
    assert run(args) == ExitCode.DONE
    default, ours = json.loads(capsys.readouterr().out)["runs"]
    assert (default["method"], ours["method"]) == ("default", "leaf-order")
    assert ours["num_jobs"] == ours["decisions"]["asked"] == len(QUEUED)


def test_an_unknown_method_is_told_all_there_are(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["place", "--method"], ["compare", "--methods"]):
        args = [command[0], str(write_document(installed)), command[1], "mystery"]
        assert run(args) == ExitCode.BAD_INPUT
        said = capsys.readouterr().err
        assert all(name in said for name in ("exact", "leaf-order"))
        assert "imported" not in said
