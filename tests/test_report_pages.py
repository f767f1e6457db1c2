"""Pages of results: every request with its status and reason, and the script that sorts them."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from baseline_instances import grid, problem_on, random_graph
from topoplace.machine import parse_node_set
from topoplace.report.page.pages import result_page
from topoplace.solving import solve

NASTY = "<script>alert('a&b')</script>"
RACKS: dict[str, Any] = {
    "schema": "topoplace.snapshot/1",
    "name": NASTY,
    "machine": {
        "kind": "hierarchy",
        "name": "racks",
        "levels": ["rack", "host"],
        "hosts": [{"hosts": f"{r}[0-3]", "domains": [f"<{r}>"]} for r in "ab"],
    },
    "running": [{"id": "old&<b>", "nodes": "b[2-3]", "ends": 3600}],
    "queue": [
        {"id": NASTY, "nodes": 4, "priority": 3, "required": "rack"},
        {"id": "wide", "nodes": 7},
        {"id": "after", "nodes": 1},
        {"id": "free", "nodes": 1},
    ],
    "left_out": [
        {"request": "after", "option": "dependency", "value": "afterok:1<2"},
        {"request": "free", "option": "licenses", "value": "x"},
    ],
    "ignored": ["licenses"],
}


class Tables(HTMLParser):
    """The tables of a page, by the names of their boxes: rows of the texts of their cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self.heads: list[dict[str, str | None]] = []
        self.name, self.scripts, self.inside = "", 0, False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.scripts += tag == "script"
        if tag == "div" and "aria-label" in given:
            self.name = given["aria-label"] or ""
        elif tag == "tr":
            self.rows.setdefault(self.name, []).append([])
        elif tag in ("td", "th"):
            self.inside = True
            self.rows[self.name][-1].append("")
            self.heads += [given] if tag == "th" else []

    def handle_endtag(self, tag: str) -> None:
        self.inside &= tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.rows[self.name][-1][-1] += data


@pytest.fixture(scope="module")
def page() -> str:
    return result_page(tp.place(RACKS))


def test_every_request_and_running_job_has_a_row_with_its_status_and_reason(page: str) -> None:
    tables = Tables(page)
    header, *rows = tables.rows["Requests"]
    assert header == [
        *("no.", "request", "status", "units", "priority", "within one", "why", "hosts")
    ]
    found = {row[1]: [*row[2:7], row[7].strip()] for row in rows}
    assert found[NASTY] == ["started", "4", "3", "rack", "", "a[0-3]"]
    assert found["wide"][:2] == ["waits", "7"]
    assert "7 units wanted, 6 free" in found["wide"][4]
    assert found["after"][:5] == ["held", "1", "1", "", "held: dependency afterok:1<2"]
    assert found["free"][0] == "started"
    assert found["free"][4] == "ignored: licenses x"
    assert found["old&<b>"] == ["running", "2", "", "", "ends in 3,600 s at the latest", "b[2-3]"]
    assert [row[0].strip() for row in rows] == ["2", "", "", "4", ""]  # by size, as in the picture
    assert all(head["scope"] in ("col", "row") for head in tables.heads)


def test_without_a_solution_nothing_starts(page: str) -> None:
    nothing = tp.place(RACKS).model_copy(update={"solution": None})
    rows = Tables(result_page(nothing)).rows["Requests"][1:]
    assert [row[2] for row in rows] == ["waits", "waits", "held", "waits", "running"]


def test_what_counts_is_a_column_where_nodes_do_not() -> None:
    header, first, *_ = Tables(result_page(tp.place(RACKS | {"value": "jobs"}))).rows["Requests"]
    assert dict(zip(header, first, strict=True))["value"] == "3"


def test_names_are_escaped_and_no_script_but_ours_may_run(page: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert Tables(page).scripts == 1
    assert NASTY not in page
    assert len(script.splitlines()) <= 60


def test_a_mapping_lists_the_tasks_of_every_router_or_host() -> None:
    graph = random_graph(np.random.default_rng(3), 8, 20)
    page = Tables(result_page(solve(problem_on(graph, [3, 3]), "greedy")))
    header, *rows = page.rows["Tasks by router"]
    assert header == ["router", "tasks", "mean hops", "which"]
    assert sorted(row[3] for row in rows) == list("01234567")
    named = graph.model_copy(update={"names": [f"<{k}>" for k in range(8)]})
    header, *rows = Tables(result_page(tp.map(named, "torus:2x2", tasks_per_node=2))).rows[
        "Tasks by router"
    ]
    assert header[3:] == ["which", "names"]
    assert all(
        row[4] == ", ".join(f"<{task}>" for task in sorted(parse_node_set(row[3], 8)))
        for row in rows
    )
    mapped = tp.map(tp.grid(4, 2), "hierarchy:2x2", tasks_per_node=2)
    header, *rows = Tables(result_page(mapped)).rows["Tasks by host"]
    assert header[:2] == ["host", "tasks"]
    assert [row[1] for row in rows] == ["2"] * 4
    header, *halves = Tables(result_page(mapped)).rows["Domains"]
    assert header == ["level", "domain", "hosts", "tasks", "of its bytes, those that leave"]
    assert halves == [["rack", f"rack{k}", "2", "4", "33.3 %"] for k in (0, 1)]
    pencils = result_page(solve(problem_on(grid((4, 4, 2)), [4, 4, 2]), "pencils"))
    assert len(Tables(pencils).rows["Tasks by router"]) == 33


def test_the_script_is_valid(page: str, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here to parse the script")
    file = tmp_path / "table.js"
    file.write_text(re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[0])
    subprocess.run([node, "--check", file], check=True, timeout=60)


def test_a_browser_sorts_and_filters(tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium here to open the page in")
    queue = [{"id": f"q{k:02}", "nodes": 1 + 7 * k % 30} for k in range(30)]
    page = result_page(tp.place(RACKS | {"queue": queue, "left_out": [], "ignored": []}))
    clicks = """<script>
      const button = (name) => [...document.querySelectorAll("table.list button")].find(
        (one) => one.textContent === name);
      button("units").click(), button("units").click();
      const select = document.querySelector("form.bar select");
      select.value = "=waits", select.dispatchEvent(new Event("input", {bubbles: true}));
      const width = document.documentElement.clientWidth;
      const beyond = (one) => one.getBoundingClientRect().right > width;
      const texts = [...document.querySelectorAll("td.long")].filter((one) => one.textContent);
      document.body.dataset.beyond = `${texts.filter(beyond).length} of ${texts.length > 9}`;
    </script></body>"""
    page = re.sub("<meta http-equiv[^>]*>", "", page).replace("</body>", clicks)
    file = tmp_path / "page.html"
    file.write_text(page)
    command = [chromium, "--headless", "--no-sandbox", f"--user-data-dir={tmp_path / 'p'}"]
    command += ["--window-size=400,900", "--dump-dom", file.as_uri()]
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    text = run.stdout
    assert 'data-beyond="0 of true"' in text  # reasons are read without scrolling
    rows = Tables(text).rows["Requests"][1:]
    sizes = [int(row[3]) for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 31
    assert text.count('aria-sort="descending"') == 1
    waiting = sum(row[2] == "waits" for row in rows)
    assert f"{waiting} of 31 rows" in text
    assert text.count('<tr hidden=""') == 31 - waiting
