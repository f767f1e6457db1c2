"""The project's own files agree with each other and the code: docs, README, Makefile, locks, CI."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

import topoplace
from scripts_of_the_project import script
from topoplace.cli.app import app
from topoplace.result.mapping import MappingCertificate
from topoplace.solving import method_names

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements.lock", "requirements-oldest.lock")


def code_lines(document: str) -> list[str]:
    """Return the lines of the fenced shell blocks of a document."""
    text = (ROOT / document).read_text()
    blocks = re.findall(r"```(?:sh|console|bash)\n(.*?)```", text, re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


def dependencies() -> list[str]:
    """Return what an installation for development depends on: every extra is part of it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    own = f"topoplace[{','.join(name for name in extras if name != 'dev')}]"
    assert own in extras["dev"]
    named = [*project["dependencies"], *(one for extra in extras.values() for one in extra)]
    return [dependency for dependency in named if dependency != own]


def pins(lock: str) -> dict[str, str]:
    found = re.findall(r"^([a-z0-9._-]+)==([^ ;\n]+)", (ROOT / lock).read_text(), re.MULTILINE)
    return dict(found)


def test_the_package_imports_what_it_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = project["dependencies"] + extras["dask"] + extras["minizinc"]
    declared = {dependency.split(">=")[0] for dependency in named}
    imported = set()
    for file in (ROOT / "solver").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported.add(node.module.split(".")[0])
    own = {"topoplace", "mpl_toolkits"}  # the latter is part of matplotlib
    packages = {"PIL": "pillow", "yaml": "pyyaml"}
    imported = {packages.get(name, name) for name in imported}
    assert imported - set(sys.stdlib_module_names) - own == declared


def test_make_commands_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {line.split()[1] for line in code_lines("README.md") if line.startswith("make ")}
    assert {"run", "test"} <= named <= targets
    assert {"test-all", "test-oldest", "check", "docs", "bench", "lock", "clean"} <= targets


def test_topoplace_commands_of_the_readme_exist() -> None:
    known = {command.name for command in app.registered_commands}
    lines = [line for line in code_lines("README.md") if line.startswith("topoplace ")]
    assert {line.split()[1] for line in lines} <= known
    assert lines


def test_ci_runs_the_readme_s_test_command() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "\nmake test\n" in script.read_text()
    assert "make test" in code_lines("README.md")


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_pin_every_dependency_and_name_no_registry(lock: str) -> None:
    pinned = pins(lock)
    for dependency in dependencies():
        name, lowest = re.fullmatch(r"([a-z0-9-]+)>=([0-9.]+)", dependency).groups()
        assert name in pinned, f"make lock: {name} is missing"
        assert _version(pinned[name]) >= _version(lowest), f"make lock: {name}"
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert "--hash" not in text


def test_the_oldest_lock_is_at_the_lower_bounds() -> None:
    pinned = pins("requirements-oldest.lock")
    for dependency in dependencies():
        name, lowest = dependency.split(">=")
        width = len(_version(lowest))
        assert _version(pinned[name])[:width] == _version(lowest)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def test_a_missing_minizinc_fails_only_under_ci(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "check_models.py"
    for ci, code in (("", 0), ("true", 1)):
        done = subprocess.run(
            [sys.executable, str(script)],
            env={"PATH": str(tmp_path), "CI": ci},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code
        assert "MiniZinc is not installed" in done.stderr


# ---- The documentation is complete --------------------------------------------------------------

METHODS = (ROOT / "docs" / "reference" / "methods.md").read_text()


def named_under(heading: str) -> set[str]:
    """Return what stands in the first column of the tables of a section, without backticks."""
    section = METHODS.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `?([\w -]+?)`? \|", section, re.MULTILINE))


@pytest.mark.parametrize(
    ("heading", "problem"),
    [
        ("Jobs on a torus or mesh", "placement"),
        ("Jobs on a tree", "allocation"),
        ("Jobs on a hierarchy", "hierarchy"),
        ("Tasks on nodes", "mapping"),
    ],
)
def test_every_method_has_a_line(heading: str, problem: str) -> None:
    names = set(method_names(problem))
    assert len(names) > 5
    assert names <= named_under(heading)


def test_every_bound_of_mappings_has_a_line() -> None:
    models = get_args(get_args(MappingCertificate)[0])
    kinds = {model.model_fields["kind"].default for model in models}
    assert "star" in kinds
    assert kinds <= named_under("Tasks on nodes")


def test_the_page_of_commands_is_up_to_date() -> None:
    page = script("build_commands")
    text = page.page_text()
    assert "| `--time-limit S` |" in text
    assert page.PAGE.read_text() == text, "python scripts/build_commands.py writes it anew"


def test_every_name_of_the_front_door_is_on_its_page() -> None:
    page = (ROOT / "docs" / "reference" / "api" / "index.rst").read_text()
    assert sorted(n for n in dir(topoplace) if n[0] != "_" and f"tp.{n} <" not in page) == []


def test_links_of_the_readme_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / "README.md").read_text())
    local = [link for link in links if "://" not in link]
    assert "docs/guide/tutorial/index.md" in local
    assert [link for link in local if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("name", ["hierarchies", "recognition", "topology"])
def test_pages_show_what_their_programs_print(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "guide" / f"{name}.md").read_text()
    blocks = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("python", "text"))
    (program,), (shown,) = blocks
    exec(program, {})
    assert capsys.readouterr().out == shown


# ---- What the checker shares with the solvers ---------------------------------------------------

SHARED = (
    "has code of its own to decide which placements are allowed, to compute the value of a "
    "solution, and to compute what a certificate proves. It shares with the solvers the geometry "
    "of machines, the models of documents, and the reading of texts such as host lists and shapes."
)
SAYING_SO = (
    *(
        "README.md",
        "docs/index.md",
        "docs/guide/tutorial/place.md",
        "docs/proofs/placement.md",
        "docs/develop/architecture.md",
    ),
    "solver/topoplace/certify/__init__.py",
)


@pytest.mark.parametrize("page", SAYING_SO)
def test_pages_say_what_the_checker_shares_in_the_same_words(page: str) -> None:
    assert SHARED in " ".join((ROOT / page).read_text().split())


def test_the_checker_loads_what_it_shares_and_no_more() -> None:
    program = "import sys, topoplace.certify as _; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    ours = {name.split(".", 1)[1] for name in done.stdout.split() if name.startswith("topoplace.")}
    snapshot = {name for name in ours if name.startswith("snapshot.")}
    shared = ("faults", "files", "foreign", "normal", "schema")
    assert snapshot == {f"snapshot.{name}" for name in shared}
    rooms = {name.split(".")[0] for name in ours}
    assert rooms == {
        *("certify", "errors", "importing", "kinds", "machine", "rescue", "result", "shown"),
        *("snapshot", "types", "version"),
    }


def test_a_check_loads_the_checker_of_its_kind_alone(tmp_path: Path) -> None:
    model = topoplace.Model("tree:2x2x2")
    model.add_request("a", 3, patterns={"rd": 100})
    topoplace.place(model, "greedy", objective="contention").save(tmp_path / "result.json")
    program = "import sys; from topoplace.certify import check_file; check_file(sys.argv[1]); "
    program += "print(*(name for name in sys.modules if name.startswith('topoplace')))"
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "result.json"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = done.stdout.split()
    assert len(loaded) <= 56, loaded
    assert "topoplace.result.several" not in loaded
    assert "topoplace.certify.torus.check" not in loaded


OF_ROOMS = {  # what a place loads of them, if anything; of the command also what it shows
    "formats": {"formats", "formats.beginnings", "formats.text"},
    "certify": set[str](),
    "explicit": set[str](),
    "front": {"front", "front.documents", "front.placing"},
}


@pytest.mark.parametrize("machine", ["torus:4x4x4", "hierarchy:2x4x4"])
@pytest.mark.parametrize("by_command", [False, True], ids=["python", "command"])
def test_a_place_loads_what_it_needs(machine: str, by_command: bool, tmp_path: Path) -> None:
    """Not readers of other tools' files, the checker, or what moves jobs: that is slow to load."""
    model = topoplace.Model(machine)
    model.add_request("a", 8)
    model.add_request("b", 16)
    model.save(tmp_path / "now.json")
    run = "from topoplace.cli import run; run(['place', sys.argv[1]])"
    if not by_command:
        run = "import topoplace as tp; tp.place(tp.load(sys.argv[1]))"
    program = f"import sys; {run}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "now.json"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    heavy = {"matplotlib", "pandas", "scipy.linalg", "scipy.optimize"}
    of_models = {"pandas"} if machine.startswith("hierarchy") else set[str]()  # of OR-Tools
    assert not (heavy - of_models) & loaded
    ours = {name.removeprefix("topoplace.") for name in loaded if name.startswith("topoplace.")}
    for room, most in OF_ROOMS.items():
        shown = {"front.writing"} if by_command and room == "front" else set()
        assert {name for name in ours if name.split(".")[0] == room} <= most | shown
    others = ("placement.repack.problem", "placement.several", "result.several")
    others += ("snapshot.convert", "study.external.trial")
    assert not {*others} & ours
    if not by_command:
        assert len(ours) <= 150
        assert not {"mapping.problem", "report.summary"} & ours
