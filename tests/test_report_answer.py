"""What a person reads after a solve: what is proven, what starts and where, why the rest waits."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from small_snapshot import write_small
from topoplace.cli import run
from topoplace.errors import ExitCode
from topoplace.machine.hostlist import expand_host_list
from topoplace.machine.nodeset import parse_node_set
from topoplace.report.answer import (
    answer_table,
    csv_text,
    hostlist_text,
    shortened,
    starts_of,
    waiting_texts,
)
from topoplace.report.page import result_page
from topoplace.report.summary import headline, summary
from topoplace.result import PlacementResult, Proof, Status
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.files import write_document
from topoplace.snapshot.load import load_any
from topoplace.snapshot.schema import Communication, Pattern, Request, Snapshot
from topoplace.snapshot.tree_state import prepare_tree
from topoplace.solving import Options, solve
from tree_cases import apart, model_of, snapshot_on, uses

RING = uses(Pattern.RING)


def on_tree(snapshot: Snapshot, method: str = "exact") -> AllocationResult:
    result = solve(prepare_tree(snapshot), method, Options(time_limit=2.0))
    assert isinstance(result, AllocationResult)
    return result


def on_torus(folder: Path, **changes: object) -> PlacementResult:
    state = load_any(write_small(folder, **changes))
    result = solve(state, "first-fit")
    assert isinstance(result, PlacementResult)
    return result


def with_priority(snapshot: Snapshot, priority: int) -> Snapshot:
    queue = [request.model_copy(update={"priority": priority}) for request in snapshot.queue]
    return snapshot.model_copy(update={"queue": queue})


# ---- What starts --------------------------------------------------------------------------------


def test_a_tree_lists_the_hosts_of_every_request() -> None:
    result = on_tree(snapshot_on(model_of([4, 4]), [], [(4, RING), (3, ())]))
    assert result.solution is not None
    lines = dict(line.split(" ") for line in hostlist_text(result).splitlines())
    assert {name: expand_host_list(hosts) for name, hosts in lines.items()} == {
        own.request: own.nodes for own in result.solution.allocations
    }
    table = "\n".join(answer_table(result))
    assert table.splitlines()[0].split() == ["request", "nodes", "cost", "hosts"]
    assert all(hosts in table for hosts in lines.values())


def test_a_torus_lists_prisms_and_node_numbers(tmp_path: Path) -> None:
    result = on_torus(tmp_path)
    assert result.solution is not None
    for line, own in zip(
        hostlist_text(result).splitlines(), result.solution.placements, strict=True
    ):
        name, nodes = line.split(" ")
        assert (name, nodes) == (own.request, own.nodes)
        assert len(parse_node_set(nodes, 10_000)) > 0
    lines = answer_table(result)[0].splitlines()
    assert lines[0].split() == ["request", "nodes", "class", "prism"]
    assert all("@" in line for line in lines[2:])


def test_scores_add_up_to_the_level_of_shapes(tmp_path: Path) -> None:
    result = on_torus(tmp_path)
    scores = [start.score for start in starts_of(result)]
    assert sum(score or 0 for score in scores) == result.levels[1].objective


def test_nodes_that_form_no_prism_are_listed(tmp_path: Path) -> None:
    result = solve(load_any(write_small(tmp_path)), "random-nodes")
    assert isinstance(result, PlacementResult)
    assert "nodes " in answer_table(result)[0]
    assert [start.score for start in starts_of(result)] == [None] * 3
    assert [row["prism"] for row in csv.DictReader(csv_text(result).splitlines())] == [""] * 3


def test_csv_has_a_row_per_request(tmp_path: Path) -> None:
    result = on_torus(tmp_path)
    rows = list(csv.DictReader(csv_text(result).splitlines()))
    assert [row["request"] for row in rows] == [start.request for start in starts_of(result)]
    assert all(row["cost"] == "" and row["score"] and "@" in row["prism"] for row in rows)
    tree = on_tree(snapshot_on(model_of([4, 4]), [], [(5, RING), (3, ())]))
    first, second = csv.DictReader(csv_text(tree).splitlines())
    assert float(first["cost"]) > 0 == float(second["cost"])
    assert len(expand_host_list(first["hosts"])) == int(first["nodes"]) == 5
    assert first["prism"] == first["score"] == ""


def test_long_tables_and_places_are_shortened() -> None:
    result = on_tree(snapshot_on(model_of([40, 40]), [], [(2, ())] * 20), "random")
    shown = answer_table(result, 60)
    rows = shown[0].splitlines()
    assert len(rows) == 2 + 15
    assert shown[1] == "... and 5 more in the result file"
    wide = on_tree(snapshot_on(model_of([40, 40]), [], [(40, ())]), "random")
    for width in (50, 60, 90):
        last = answer_table(wide, width)[0].splitlines()[-1]
        assert len(last) <= width
        assert last.endswith(" ...")
    assert len(hostlist_text(wide)) > 90
    assert shortened("n[1,2,3,4,5]", 12) == "n[1,2,3,4,5]"
    assert shortened("n[1,2,3,4,5]", 11) == "n[1,2,3 ..."


def test_nothing_to_list() -> None:
    result = on_tree(snapshot_on(model_of([4]), [], []))
    assert answer_table(result) == []
    assert hostlist_text(result) == ""
    assert csv_text(result) == "request,nodes,prism,hosts,cost,score\n"
    nobody = result.model_copy(update={"solution": None})
    assert starts_of(nobody) == []


def test_the_page_has_the_table_in_full() -> None:
    result = on_tree(snapshot_on(model_of([40, 40]), [], [(2, ())] * 20), "random")
    page = result_page(result)
    assert "<h2>What starts</h2>" in page
    assert all(f"<td>{start.hosts}</td>" in page for start in starts_of(result))
    assert "more in the result file" not in page


# ---- Files --------------------------------------------------------------------------------------


def test_place_writes_host_lists_and_csv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts, table = tmp_path / "hosts.txt", tmp_path / "table.csv"
    result = tmp_path / "r.json"
    more = ["--hostlist", str(hosts), "--csv", str(table), "-o", str(result)]
    assert run(["place", str(write_small(tmp_path)), "--method", "first-fit", *more]) == 0
    written = PlacementResult.model_validate_json(result.read_text())
    assert hosts.read_text() == hostlist_text(written)
    assert table.read_text() == csv_text(written)
    said = capsys.readouterr().out
    assert f"host lists: {hosts}" in said
    assert f"csv: {table}" in said


@pytest.mark.parametrize("option", ["--hostlist", "--csv"])
def test_files_that_cannot_be_written_are_refused_first(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["place", str(write_small(tmp_path)), option, str(tmp_path)]
    assert run(arguments) == ExitCode.BAD_INPUT
    assert option in capsys.readouterr().err


def test_json_stays_alone_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = tmp_path / "tree.json"
    write_document(snapshot, snapshot_on(model_of([4, 4]), [], [(3, ()), (9, ()), (2, RING)][::2]))
    more = ["--hostlist", str(tmp_path / "hosts"), "--json"]
    assert run(["place", str(snapshot), "--method", "default", *more]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["problem"] == "allocation"
    assert "host lists:" in captured.err


# ---- What is proven -----------------------------------------------------------------------------


def test_the_headline_says_what_is_proven_of_every_level() -> None:
    snapshot = snapshot_on(model_of([4, 4]), [], [(5, ()), (4, ())])
    result = on_tree(snapshot)
    assert headline(result).startswith("case: nodes and cost optimal (exact, ")
    weighted = on_tree(with_priority(snapshot, 3))
    assert headline(weighted).startswith("case: weighted nodes and cost optimal (")
    assert "weighted nodes (max)" in summary(weighted)
    assert "nothing proven (default, " in headline(on_tree(snapshot, "default"))


def test_the_headline_says_how_far_and_why_it_stopped() -> None:
    result = on_tree(snapshot_on(model_of([4, 4]), [], [(6, RING)]))
    nodes, cost = result.levels
    within = cost.model_copy(
        update={"status": Status.FEASIBLE, "gap": 0.286, "proof": Proof.SEARCH}
    )
    limits = result.limits.model_copy(update={"hit": True, "time_limit": 3.0})
    far = result.model_copy(update={"levels": [nodes, within], "limits": limits, "seconds": 3.01})
    assert headline(far) == (
        "case: nodes optimal; cost within 28.60 % by search; stopped at 3.01 s because of the time "
        "limit of 3 s (exact, 3.01 s)"
    )
    open_end = far.model_copy(update={"limits": limits.model_copy(update={"time_limit": None})})
    assert "; stopped at 3.01 s, before all was proven (" in headline(open_end)
    early = far.model_copy(update={"seconds": 1.0})
    assert "; stopped at 1 s, before the time limit of 3 s (" in headline(early)


def test_the_headline_without_an_answer() -> None:
    result = on_tree(snapshot_on(model_of([4, 4]), [], [(6, RING)]))
    levels = [level.model_copy(update={"objective": None}) for level in result.levels]
    nothing = result.model_copy(update={"levels": levels, "solution": None})
    assert headline(nothing).startswith("case: nothing found, at most 6 nodes (")
    bare = [level.model_copy(update={"bound": None}) for level in levels]
    assert headline(nothing.model_copy(update={"levels": bare})).startswith("case: nothing found (")
    assert "nothing found that starts any of the 1 requests" in summary(nothing)


def test_the_headline_of_a_torus_names_the_rule(tmp_path: Path) -> None:
    result = on_torus(tmp_path)
    assert ": nothing proven (first-fit, strict interference, " in summary(result)


# ---- Why the rest waits -------------------------------------------------------------------------


def test_why_requests_wait_on_a_tree() -> None:
    queue = [(9, RING), (5, RING), (4, ()), (8, ()), (3, RING)]
    result = on_tree(snapshot_on(apart([5, 4]), [("n0", Communication.NONE)], queue))
    texts = waiting_texts(result)
    assert texts["q0"] == "9 nodes wanted, 8 free"
    assert texts["q1"] == ("no domain has 5 free nodes: the most with a common switch are 4")
    assert "q0 waits: 9 nodes wanted, 8 free" in summary(result)


def test_who_is_outbid() -> None:
    result = on_tree(snapshot_on(model_of([4, 4]), [], [(8, ()), (5, ())]))
    assert waiting_texts(result) == {
        "q1": "outbid: it fits alone, but the started jobs are worth as much or more"
    }
    first = on_tree(snapshot_on(model_of([4, 4]), [], [(5, ()), (8, ())]), "default")
    assert waiting_texts(first) == {"q1": "it fits alone, but not beside the started jobs"}
    assert first.solution is not None
    empty = first.solution.model_copy(update={"allocations": []})
    nobody = first.model_copy(update={"solution": empty})
    assert waiting_texts(nobody)["q0"] == ("5 nodes wanted are still free, but default left it out")


def test_many_that_wait_are_counted() -> None:
    result = on_tree(snapshot_on(model_of([4]), [], [(4, ())] * 20))
    assert "  ... and 11 more wait" in summary(result)


def test_requests_of_a_torus_that_wait_without_explanation(tmp_path: Path) -> None:
    result = on_torus(tmp_path)
    queue = [*result.instance.queue, Request(id="late", nodes=1000)]
    instance = result.instance.model_copy(update={"queue": queue})
    more = result.model_copy(update={"instance": instance})
    assert "waiting: late (1,000)" in summary(more, table=False)
