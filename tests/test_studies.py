"""The scripts of the studies of pencils and of filling machines, on tiny settings."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from scripts_of_the_project import SCRIPTS, script
from topoplace.errors import TopoplaceError
from topoplace.machine import Torus
from topoplace.snapshot import load_torus
from topoplace.snapshot.generate import load_workload
from topoplace.study.batch.solving import solve_task
from topoplace.study.batch.task import Ending, Task


@pytest.fixture(autouse=True)
def _scripts_import_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)


def rows_in(path: Path) -> list[dict[str, str]]:
    with path.open() as stream:
        return list(csv.DictReader(stream))


def pictures_in(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.glob("*.png")}


def test_pencils_no_step_is_worse_than_the_one_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pencils, cases = script("study_pencils"), script("pencils_cases")
    tiny = cases.Grid((8, 8, 8), 4, (5, 5, 7))
    for module in (pencils, cases):
        monkeypatch.setattr(module, "GRIDS", (tiny,))
    arguments = ["--snapshots", "--percents", "0", "5", "60", "--seeds", "1", "--jobs", "1"]
    pencils.main([*arguments, "--time-limit", "5", "--search", "0.1", "-o", str(tmp_path)])
    rows = rows_in(tmp_path / "pencils.csv")
    assert [int(row["percent"]) for row in rows] == [0, 5, 5, 60, 60]
    fit = [row for row in rows if row["topaware"]]
    assert {row["percent"] for row in fit} == {"0", "5"}
    for row in fit:
        steps = [int(row[name]) for name in ("topaware", "window", "pencils", "searched", "bound")]
        assert steps == sorted(steps, reverse=True)
        assert (row["window_proven"], row["pencils_complete"]) == ("True", "True")
    whole = fit[0]
    assert whole["topaware"] == whole["layout_ideal"]
    assert whole["pencils"] == whole["needed"]
    assert any(int(row["pencils"]) < int(row["topaware"]) for row in fit)
    page = (tmp_path / "pencils.md").read_text()
    assert "| prisms | 60 % | 0 of 1 | - |" in page
    assert str(tmp_path) not in page
    sizes = pictures_in(tmp_path)
    assert set(sizes) == {"pencils_excess.png", "pencils_removed.png"}
    assert max(sizes.values()) < 100_000


def test_what_is_written_around_the_tables_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    write = script("study_page").write_between_markers
    write(page, "<!-- a -->", "<!-- b -->", "Title", "old")
    page.write_text(page.read_text().replace("# Title", "# Title\n\nBy hand."))
    write(page, "<!-- a -->", "<!-- b -->", "Other", "new")
    assert page.read_text() == "# Title\n\nBy hand.\n\n<!-- a -->\nnew\n<!-- b -->\n"


@pytest.mark.parametrize("setting", ["scattered", "prisms"])
def test_unusable_routers_are_as_many_as_asked_and_in_the_region(setting: str) -> None:
    cases = script("pencils_cases")
    torus = Torus((6, 6, 6))
    region = np.arange(100, 200)
    draws = [
        cases.unusable(torus, region, cases.Case(setting, cases.GRIDS[0], 8, seed))
        for seed in (0, 0, 1)
    ]
    for drawn in draws:
        assert len(np.unique(drawn)) == len(drawn) == 8
        assert np.isin(drawn, region).all()
    assert draws[0].tolist() == draws[1].tolist()
    assert set(draws[0].tolist()) != set(draws[2].tolist())


class InProcess:
    """An executor of batches that starts no process."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Ending]]:
        for task in tasks:
            yield task, solve_task(task)

    def close(self) -> None:
        pass


class Idle(InProcess):
    """One that has nothing to do, or fails."""

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Ending]]:
        for task in tasks:
            raise AssertionError(f"{task.key} is solved again")
        yield from ()


def test_fill_holds_every_prism_method_against_the_bound_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fill = script("study_fill")
    work, out = tmp_path / "work", tmp_path / "out"
    arguments = ["--machines", "bluegene_8x8x8", "--fills", "70", "--seeds", "1", "1"]
    arguments += ["--time-limits", "1", "1.5", "--jobs", "1", "--work", str(work), "-o", str(out)]
    monkeypatch.setattr(fill, "Pool", InProcess)
    fill.main(arguments)
    rows = rows_in(out / "fill.csv")
    assert [(row["fill"], row["method"]) for row in rows] == [("70", m) for m in fill.METHODS]
    for row in rows:
        started, incumbent, bound = (int(row[k]) for k in ("started", "incumbent", "bound"))
        assert incumbent <= bound <= int(row["idle"])
        if row["method"] in fill.NODE_ORDERS:
            assert row["gap"] == ""
        else:
            assert started <= incumbent
            assert float(row["gap"]) >= 0
            assert row["shared_links"] == "0"
        if row["method"] == "exact":
            assert started == incumbent
            assert (row["status"] == "optimal") == (started == bound)
    assert set(pictures_in(out)) == {"fill_bluegene_8x8x8.png"}
    before = (out / "fill.csv").read_bytes()
    monkeypatch.setattr(fill, "Pool", Idle)
    fill.main(arguments)
    assert (out / "fill.csv").read_bytes() == before


def test_fill_stops_at_a_result_that_the_checker_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fill = script("study_fill")
    monkeypatch.setattr(fill, "Pool", InProcess)
    machine = load_torus("bluegene_8x8x8")
    drawn = fill.draw(machine, [80], 1, tmp_path / "snapshots")
    done = fill.solve("first-fit", drawn, tmp_path / "first-fit", 1, 1)
    result = tmp_path / "first-fit" / done.rows[0].result
    assert fill.verified(result)
    document = json.loads(result.read_text())
    document["objective"] += 1
    result.write_text(json.dumps(document))
    with pytest.raises(TopoplaceError, match="does not verify"):
        fill.require_verified([result], 1)


def test_the_small_machine_s_workload_is_scaled_to_it() -> None:
    fill = script("study_fill")
    workload = load_workload()
    assert fill.workload_for(load_torus("blue_waters")) == workload
    scaled = fill.workload_for(load_torus("bluegene_8x8x8"))
    assert {name for row in scaled.rows for name in row.classes} == {"compute"}
    largest = max(size for row in scaled.rows for size in row.nodes)
    assert largest == round(max(s for row in workload.rows for s in row.nodes) * 512 / 22_640)
    assert min(size for row in scaled.rows for size in row.nodes) == 1
