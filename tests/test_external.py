"""Allocators that are not ours: every way of being wrong has its verdict and its exit code."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from external_answers import (
    FIRST,
    answer_of,
    command_printing,
    placed,
    ring_document,
    tree_document,
    verdict_of,
    write_document,
)
from scripts_of_the_project import script
from small_snapshot import small_document
from topoplace.certify import check_document
from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.solution import check_exclusive, count_shared_links, read_starts
from topoplace.cli import run
from topoplace.errors import ExitCode, InputError
from topoplace.machine import Prism, format_node_set
from topoplace.result import Interference, Placement, PlacementResult, Solution
from topoplace.result.tree import AllocationResult
from topoplace.snapshot import Snapshot
from topoplace.study.external.answer import PlacedJob, Placements, torus_breaches

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("placements", "named"),
    [
        ([placed("first", "24-31")], r"first has node 24 on router 12, held by running job busy"),
        ([placed("second", "28,30,31,29")], None),
        ([placed("second", "0-3")], r"second has node 0, a service node \(and 1 more\)"),
        ([placed("second", "8-11")], r"second has node 9, which is down"),
        ([placed("second", "4-6")], r"second has 3 nodes and wants 4"),
        ([placed("second", "4-8")], r"second has 5 nodes and wants 4"),
        ([placed("third", "4-7")], r"third has node 4, which is not of its class \(and 3 more\)"),
        (
            [placed("second", "4-6,4")],
            r"second has nodes: expected each node once, found node 4 twice",
        ),
        ([placed("second", "94-97")], r"second has nodes: expected node numbers from 0 to 95"),
        ([placed("second", "n[1-4]")], r"second has nodes: expected ranges such as"),
        ([placed("nobody", "4-7")], r"nobody is no request of the queue"),
        ([placed("busy", "24-27")], r"busy runs already"),
        ([placed("second", "4-7"), placed("second", "30-33")], r"second is placed twice"),
        ([placed("second", "4-7"), placed("first", "7,30-36")], r"first has node 7 of second"),
        (
            [placed("first", "32-39", [0, 0, 0], [2, 1, 2])],
            r"first has node 32 outside its prism 2x1x2@0,0,0",
        ),
        (
            [placed("second", "2-5", [0, 0, 1], [2, 1, 2])],
            r"second has a prism with router 13, held by running job busy",
        ),
        (
            [placed("first", "60-67", [2, 2, 0], [1, 2, 3])],
            r"first has the prism 1x2x3@2,2,0, which does not fit 2x1x2/1x2x2",
        ),
        (
            [placed("second", "6-7,10-11", [0, 1, 2], [1, 1, 2]), FIRST],
            None,
        ),
        (
            [placed("second", "4-7", [0, 0, 9], [1, 1, 2])],
            r"second has prism: expected an origin inside torus 4x4x3",
        ),
        (
            [FIRST, placed("second", "56-57,62-63", [2, 1, 0], [1, 2, 2])],
            r"second and first both have router 30",
        ),
    ],
)
def test_breaches_of_the_rules_on_a_torus(
    placements: list[dict[str, Any]],
    named: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = command_printing(tmp_path, answer_of(placements))
    if named is None:
        assert run(["place", str(write_document(tmp_path)), "--command", command]) == ExitCode.DONE
        return
    code, said = verdict_of(tmp_path, command, capsys)
    assert code == ExitCode.CHECK_FAILED
    assert re.search(f"small: command: breach: {named}", said), said


RING_PRISMS = [placed("wide", "3-11", [3], [9]), placed("narrow", "13-14", [13], [2])]


@pytest.mark.parametrize(
    ("placements", "interference", "named"),
    [
        (RING_PRISMS[:1], "strict", r"wide shares link 0 \(0 to 1\) with busy \(and 1 more\)"),
        (RING_PRISMS[:1], "tolerant", r"wide shares link 0 \(0 to 1\) with busy \(and 1 more\)"),
        (RING_PRISMS[:1], "off", None),
        (RING_PRISMS[1:], "strict", None),
        (RING_PRISMS[::-1], "strict", r"wide shares link 13 \(13 to 14\) with narrow"),
    ],
)
def test_shared_links(
    placements: list[dict[str, Any]],
    interference: str,
    named: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = ring_document()
    if placements[0]["request"] == "narrow" and named is not None:
        document["running"] = []  # only the two of them
    command = command_printing(tmp_path, answer_of(placements))
    more = ["--interference", interference]
    if named is None:
        path = write_document(tmp_path, document)
        assert run(["place", str(path), "--command", command, *more]) == ExitCode.DONE
        return
    code, said = verdict_of(tmp_path, command, capsys, document, *more)
    assert code == ExitCode.CHECK_FAILED
    assert re.search(f"ring: command: breach: {named}", said), said


def test_tolerant_jobs_may_share_links(tmp_path: Path) -> None:
    path = write_document(tmp_path, ring_document("tolerant"))
    command = command_printing(tmp_path, answer_of(RING_PRISMS))
    args = ["place", str(path), "--command", command, "--interference"]
    assert run([*args, "tolerant"]) == ExitCode.DONE
    assert run([*args, "strict"]) == ExitCode.CHECK_FAILED


@pytest.mark.parametrize(
    ("placements", "named"),
    [
        ([placed("talks", ["n1", "n2", "n4"]), placed("quiet", ["n8", "n5"])], None),
        ([placed("talks", ["n0", "n1", "n2"])], "talks has node n0, held by running job busy"),
        ([placed("talks", ["n1", "n2", "n3"])], "talks has node n3, which is down"),
        ([placed("talks", ["n1", "n2", "n1"])], "talks has node n1 twice"),
        ([placed("talks", ["n1", "n2"])], "talks has 2 nodes and wants 3"),
        ([placed("talks", ["n1", "n2", "x"])], "talks has x, which is no node of the machine"),
        ([placed("talks", ["n1", "n2", "n8"])], "talks communicates between n1 and n8"),
        ([placed("quiet", ["n1", "n8"])], None),
        ([placed("busy", ["n1"])], "busy runs already"),
        ([placed("nobody", ["n1"])], "nobody is no request of the queue"),
        ([placed("quiet", ["n1", "n2"])] * 2, "quiet is placed twice"),
        (
            [placed("quiet", ["n1", "n4"]), placed("talks", ["n5", "n4", "n6"])],
            "talks has node n4 of quiet",
        ),
    ],
)
def test_breaches_of_the_rules_on_a_tree(
    placements: list[dict[str, Any]],
    named: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = command_printing(tmp_path, answer_of(placements))
    if named is not None:
        code, said = verdict_of(tmp_path, command, capsys, tree_document())
        assert code == ExitCode.CHECK_FAILED
        assert f"grove: command: breach: {named}" in said
        return
    path, output = write_document(tmp_path, tree_document()), tmp_path / "r.json"
    assert run(["place", str(path), "--command", command, "-o", str(output)]) == ExitCode.DONE
    result = AllocationResult.model_validate_json(output.read_text())
    assert {a.request: a.nodes for a in result.solution.allocations} == {
        p["request"]: p["nodes"] for p in placements
    }
    assert result.proof == "none"


def test_every_breach_is_told_and_in_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    placements = [placed("second", "0-3"), placed("third", "9,48-50"), placed("x", "")]
    command = command_printing(tmp_path, answer_of(placements))
    args = ["place", str(write_document(tmp_path)), "--command", command]
    assert run(args) == ExitCode.CHECK_FAILED
    captured = capsys.readouterr()
    assert "(and 3 more)" in captured.err
    assert captured.out.splitlines()[-1] == "  x is no request of the queue"
    assert run([*args, "--json"]) == ExitCode.CHECK_FAILED
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "topoplace.verdict/1"
    assert (document["fault"], document["method"]) == ("breach", "command")
    assert [(b["request"], b["node"]) for b in document["breaches"]] == [
        ("second", 0),
        ("third", 9),
        ("third", 9),
        ("x", None),
    ]


def test_a_good_answer_is_scored_like_our_own(tmp_path: Path) -> None:
    path, output = write_document(tmp_path), tmp_path / "r.json"
    assert run(["place", str(path), "--method", "first-fit", "-o", str(output)]) == 0
    ours = PlacementResult.model_validate_json(output.read_text())
    placements = [p.model_dump(mode="json") for p in ours.solution.placements]
    command = command_printing(tmp_path, answer_of(placements))
    assert run(["place", str(path), "--command", f"mine={command}", "-o", str(output)]) == 0
    theirs = PlacementResult.model_validate_json(output.read_text())
    assert (theirs.method, theirs.proof) == ("mine", "none")
    assert theirs.levels == ours.levels
    assert theirs.solution == ours.solution
    assert theirs.versions["allocator"] == command
    assert check_document(theirs).holds


def test_the_nodes_are_those_of_the_answer(tmp_path: Path) -> None:
    path, output = write_document(tmp_path), tmp_path / "r.json"
    second = placed("second", "85,87,86,84", [3, 2, 0], [1, 1, 3])
    command = command_printing(tmp_path, answer_of([second]))
    assert run(["place", str(path), "--command", command, "-o", str(output)]) == 0
    result = PlacementResult.model_validate_json(output.read_text())
    assert [p.nodes for p in result.solution.placements] == ["84-87"]
    assert result.solution.conforming
    assert check_document(result).holds


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "answer: expected a JSON document"),
        ("{", "answer: expected a JSON document"),
        ("[" * 100_000, "answer: expected a JSON document"),
        ("\xff\xfe", "answer: expected a JSON document"),
        ("[]", "answer: expected a JSON object"),
        ("{}", 'answer: schema: expected "topoplace.placements/1"'),
        (
            answer_of([{"request": "first"}]),
            "answer: placements[0].nodes: expected a value, found nothing",
        ),
        (answer_of([placed("first", 7)]), "answer: placements[0].nodes: expected text, found 7"),
        (
            answer_of([{**FIRST, "note": 1}]),
            "answer: placements[0].note: expected one of the known fields, found 'note'",
        ),
        (answer_of([placed("a b", "1")]), "answer: placements[0].request"),
    ],
)
def test_what_is_no_placements_document(
    text: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = verdict_of(tmp_path, command_printing(tmp_path, text), capsys)
    assert code == ExitCode.CHECK_FAILED
    assert f"small: command: bad-output: {named}" in said


@pytest.mark.parametrize("name", ["placements", "tree-placements"])
def test_schema_files_are_up_to_date(name: str) -> None:
    written = (ROOT / "docs" / "schema" / f"{name}.schema.json").read_text()
    assert written == script("build_schemas").schema_text(name), "run scripts/build_schemas.py"


def test_nothing_is_called_a_breach_that_the_checker_accepts() -> None:
    document = small_document()
    document["queue"][1] |= {"communication": "tolerant", "region": "half"}
    document["queue"][2] |= {"communication": "none"}
    document["regions"] = {"half": [{"origin": [0, 0, 0], "extents": [4, 2, 3]}]}
    snapshot = Snapshot.model_validate(document)
    seen = set()
    for seed in range(300):
        rng = random.Random(seed)
        answer = _random_answer(rng, snapshot)
        rule = rng.choice(list(Interference))
        accepted = not torus_breaches(snapshot, rule, answer)
        assert accepted == _checker_accepts(snapshot, rule, answer), answer
        seen.add((accepted, any(p.prism is not None for p in answer.placements)))
    assert len(seen) == 4


def _random_answer(rng: random.Random, snapshot: Snapshot) -> Placements:
    """Return placements that often keep the rules: few, in prisms with their usual nodes."""
    instance = read_instance(snapshot, Interference.STRICT)
    torus, jobs = instance.torus, []
    for request in rng.sample(instance.wishes, rng.randint(1, 3)):
        prism = Prism(
            *zip(*[(rng.randrange(n), rng.randint(1, n - 1)) for n in torus.shape], strict=True)
        )
        per = torus.nodes_per_router
        inside = (prism.routers(torus)[:, None] * per + np.arange(per)).ravel()
        if rng.random() < 0.9:
            of_class = instance.node_class[inside] == request.class_idx
            inside = inside[of_class & instance.usable[inside]]
        model = {"origin": list(prism.origin), "extents": list(prism.extents)}
        jobs.append(
            PlacedJob(
                request=request.id,
                nodes=format_node_set(inside[: request.nodes].tolist()),
                prism=model if rng.random() < 0.6 else None,
            )
        )
    return Placements(schema_version="topoplace.placements/1", placements=jobs)


def _checker_accepts(snapshot: Snapshot, rule: Interference, answer: Placements) -> bool:
    """Ask the checker; of links that started jobs share it speaks only if all have prisms."""
    instance = read_instance(snapshot, rule)
    placements = [Placement(**p.model_dump()) for p in answer.placements]
    solution = Solution(placements=placements, num_shared_links=0, conforming=True)
    try:
        starts = read_starts(instance, solution)
        check_exclusive(instance, starts)
    except (RefusedError, InputError):
        return False
    on_prisms = [start for start in starts if start.prism is not None]
    return count_shared_links(instance, on_prisms) == 0
