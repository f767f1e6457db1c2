"""What a person reads after a solve: what is proven, what starts and where, why the rest waits."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from small_snapshot import write_small
from topoplace.cli import run
from topoplace.errors import ExitCode
from topoplace.machine import parse_node_set
from topoplace.machine.hostlist import expand_host_list
from topoplace.report.page.pages import result_page
from topoplace.report.summary import headline, summary
from topoplace.report.view import (
    answer_table,
    csv_text,
    hostlist_text,
    view_of,
)
from topoplace.result import PlacementResult, Proof, Status
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.files import write_document
from topoplace.snapshot.hierarchy_state import prepare_contention
from topoplace.snapshot.machines import load_any
from topoplace.snapshot.schema import Communication, Pattern, Request
from topoplace.solving import Options, solve
from tree_cases import apart, model_of, snapshot_on, uses

RING = uses(Pattern.RING)


def on_tree(queue: list[Any], sizes: tuple[int, ...] = (4, 4), method="exact") -> AllocationResult:
    snapshot = snapshot_on(model_of(sizes), [], queue)
    return solve(prepare_contention(snapshot), method, Options(time_limit=2.0))


def on_torus(folder: Path, method: str = "first-fit") -> PlacementResult:
    return solve(load_any(write_small(folder)), method)


# ---- What starts --------------------------------------------------------------------------------


def test_a_tree_lists_the_hosts_of_every_request() -> None:
    result = on_tree([(5, RING), (3, ())])
    lines = dict(line.split(" ") for line in hostlist_text(result).splitlines())
    assert {name: expand_host_list(hosts) for name, hosts in lines.items()} == {
        own.request: own.nodes for own in result.solution.allocations
    }
    table = "\n".join(answer_table(result))
    assert table.splitlines()[0].split() == ["request", "nodes", "cost", "hosts"]
    assert all(hosts in table for hosts in lines.values())
    first, second = csv.DictReader(csv_text(result).splitlines())
    assert float(first["cost"]) > 0 == float(second["cost"])
    assert (first["hosts"], first["nodes"]) == (lines["q0"], "5")
    assert first["prism"] == first["score"] == ""


def test_a_torus_lists_prisms_and_node_numbers(tmp_path: Path) -> None:
    result = on_torus(tmp_path)
    lines = [line.split(" ") for line in hostlist_text(result).splitlines()]
    assert lines == [[own.request, own.nodes] for own in result.solution.placements]
    starts = view_of(result).starts
    for start, (_, nodes) in zip(starts, lines, strict=True):
        assert list(start.nodes) == parse_node_set(nodes, 10_000).tolist()
    table = answer_table(result)[0].splitlines()
    assert table[0].split() == ["request", "nodes", "class", "prism"]
    assert all("@" in line for line in table[2:])
    assert sum(start.score for start in starts) == result.levels[1].objective
    rows = list(csv.DictReader(csv_text(result).splitlines()))
    assert [row["request"] for row in rows] == [start.request for start in starts]
    assert all(row["cost"] == "" and row["score"] and "@" in row["prism"] for row in rows)
    scattered = on_torus(tmp_path, "random-nodes")
    assert "nodes " in answer_table(scattered)[0]
    rows = list(csv.DictReader(csv_text(scattered).splitlines()))
    assert [(row["prism"], row["score"]) for row in rows] == [("", "")] * 3


def test_long_tables_and_places_are_shortened_but_for_pages() -> None:
    result = on_tree([(2, ())] * 20, (40, 40), "random")
    shown = answer_table(result, 60)
    assert len(shown[0].splitlines()) == 2 + 15
    assert shown[1] == "... and 5 more in the result file"
    wide = on_tree([(40, ())], (40, 40), "random")
    for width in (50, 60, 90):
        last = answer_table(wide, width)[0].splitlines()[-1]
        assert len(last) <= width
        assert last.endswith(" ...")
    assert len(hostlist_text(wide)) > 90
    page = result_page(result)
    assert "<h2>Requests</h2>" in page
    assert all(f"<td>{start.hosts}</td>" in page for start in view_of(result).starts)
    assert "more in the result file" not in page


# ---- Files --------------------------------------------------------------------------------------


def test_place_writes_host_lists_and_csv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts, table, result = (tmp_path / name for name in ("hosts.txt", "table.csv", "r.json"))
    snapshot = str(write_small(tmp_path))
    more = ["--hostlist", str(hosts), "--csv", str(table), "-o", str(result)]
    assert run(["place", snapshot, "--method", "first-fit", *more]) == 0
    written = PlacementResult.model_validate_json(result.read_text())
    assert hosts.read_text() == hostlist_text(written)
    assert table.read_text() == csv_text(written)
    said = capsys.readouterr().out
    assert f"host lists: {hosts}" in said
    assert f"csv: {table}" in said
    for option in ("--hostlist", "--csv"):
        assert run(["place", snapshot, option, str(tmp_path)]) == ExitCode.BAD_INPUT
        assert option in capsys.readouterr().err
    write_document(tmp_path / "t.json", snapshot_on(model_of([4, 4]), [], [(3, ()), (2, RING)]))
    more = ["--method", "default", "--hostlist", str(hosts), "--json"]
    assert run(["place", str(tmp_path / "t.json"), *more]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["problem"] == "allocation"
    assert "host lists:" in captured.err


# ---- What is proven -----------------------------------------------------------------------------


def test_the_headline_says_what_is_proven_of_every_level(tmp_path: Path) -> None:
    snapshot = snapshot_on(model_of([4, 4]), [], [(5, ()), (4, ())])
    queue = [request.model_copy(update={"priority": 3}) for request in snapshot.queue]
    weighted = solve(prepare_contention(snapshot.model_copy(update={"queue": queue})))
    assert headline(on_tree([(5, ()), (4, ())])).startswith("case: nodes and cost optimal (exact, ")
    assert headline(weighted).startswith("case: weighted nodes and cost optimal (")
    assert "weighted nodes (max)" in summary(weighted)
    assert "nothing proven (default, " in headline(on_tree([(5, ())], method="default"))
    assert ": nothing proven (first-fit, strict interference, " in summary(on_torus(tmp_path))


def test_the_headline_says_how_far_and_why_it_stopped() -> None:
    result = on_tree([(6, RING)])
    nodes, cost = result.levels
    open_ = {"status": Status.FEASIBLE, "gap": 0.286, "proof": Proof.SEARCH}
    levels = [nodes, cost.model_copy(update=open_)]

    def stopped(seconds: float, limit: float | None) -> str:
        limits = result.limits.model_copy(update={"hit": True, "time_limit": limit})
        changes = {"levels": levels, "limits": limits, "seconds": seconds}
        return headline(result.model_copy(update=changes))

    assert stopped(3.01, 3.0) == (
        "case: nodes optimal; cost within 28.60 %, by search; stopped at 3.01 s because of the "
        "time limit of 3 s (exact, 3.01 s)"
    )
    assert "; stopped at 3.01 s, before all was proven (" in stopped(3.01, None)
    assert "; stopped at 1 s, before the time limit of 3 s (" in stopped(1.0, 3.0)


def test_the_headline_says_that_exact_ended_by_itself_and_how_to_go_on() -> None:
    result = on_tree([(6, RING)])
    nodes, cost = result.levels
    open_ = cost.model_copy(update={"status": Status.FEASIBLE, "gap": 0.286})

    def ended(limit: float | None, first_level: bool | None, *levels: Any) -> str:
        limits = result.limits.model_copy(update={"time_limit": limit, "first_level": first_level})
        changes = {"levels": [nodes, *levels], "limits": limits, "seconds": 1.0}
        return headline(result.model_copy(update=changes))

    gap = "case: nodes optimal; cost within 28.60 %"
    assert ended(60, None, open_) == f"{gap}; ended before the time limit of 60 s (exact, 1.00 s)"
    advice = "all was proven, --time-limit S goes on"
    assert ended(None, False, open_) == f"{gap}; ended before {advice} (exact, 1.00 s)"
    assert "--time-limit" not in ended(None, None, open_)
    assert (
        ended(None, True, open_) == f"{gap}; ended after the first level, as asked (exact, 1.00 s)"
    )
    assert ended(60, False, cost) == "case: nodes and cost optimal (exact, 1.00 s)"


def test_the_headline_without_an_answer() -> None:
    result = on_tree([(6, RING)])
    levels = [level.model_copy(update={"objective": None}) for level in result.levels]
    nothing = result.model_copy(update={"levels": levels, "solution": None})
    assert headline(nothing).startswith("case: nothing found, at most 6 nodes (")
    bare = [level.model_copy(update={"bound": None}) for level in levels]
    assert headline(nothing.model_copy(update={"levels": bare})).startswith("case: nothing found (")
    assert "nothing found that starts any of the 1 request" in summary(nothing)


# ---- Why the rest waits -------------------------------------------------------------------------


def test_why_requests_wait_on_a_tree() -> None:
    queue = [(9, RING), (5, RING), (4, ()), (8, ()), (3, RING)]
    snapshot = snapshot_on(apart([5, 4]), [("n0", Communication.NONE)], queue)
    result = solve(prepare_contention(snapshot), "exact", Options(time_limit=2.0))
    texts = view_of(result).waits
    assert texts["q0"] == "9 nodes wanted, 8 free"
    assert texts["q1"] == "no fabric has 5 free nodes: the most below one root are 4"
    assert "q0 waits: 9 nodes wanted, 8 free" in summary(result)
    alike = summary(on_tree([(4, ())] * 20, (4,)))
    assert "  q1, q2, q3, q4 and 15 more wait: outbid" in alike


def test_who_is_outbid() -> None:
    assert view_of(on_tree([(8, ()), (5, ())])).waits == {
        "q1": "outbid: it fits alone, but the started jobs have the same value or more"
    }
    first = on_tree([(5, ()), (8, ())], method="default")
    assert view_of(first.model_copy(update={"solution": None})).starts == []
    assert view_of(first).waits == {"q1": "it fits alone, but not alongside the started jobs"}
    empty = first.solution.model_copy(update={"allocations": []})
    nobody = first.model_copy(update={"solution": empty})
    assert answer_table(nobody) == []
    header, *rows = csv_text(nobody).splitlines()
    assert header == "request,nodes,prism,hosts,cost,score,waits"
    assert rows[0] == 'q0,5,,,,,"5 nodes wanted, still free, but default left it out"'
    assert view_of(nobody).waits["q0"] == "5 nodes wanted, still free, but default left it out"


def test_requests_of_a_torus_that_wait_without_explanation(tmp_path: Path) -> None:
    result = on_torus(tmp_path)
    queue = [*result.instance.queue, Request(id="late", nodes=80)]
    instance = result.instance.model_copy(update={"queue": queue})
    more = result.model_copy(update={"instance": instance})
    assert "waiting: late (80)" in summary(more, table=False)
    row = '<td>late</td><td>waits</td><td class="num">80</td><td>no reason is known</td>'
    assert row in result_page(more)


def test_a_page_names_every_request_that_waits_and_says_why(tmp_path: Path) -> None:
    result = on_tree([(4, ())] * 20, (4,))
    page, texts = result_page(result), view_of(result).waits
    assert len(texts) == 19
    cells = '<td>{}</td><td>waits</td><td class="num">4</td><td class="long">{}</td>'
    assert all(cells.format(name, why) in page for name, why in texts.items())
    assert "15 more wait" in summary(result)
    assert "more wait" not in page
    nothing = result_page(result.model_copy(update={"solution": None}))
    assert nothing.count(">no reason is known</td>") == 20
