"""Allocators that are not ours: every way of being wrong has its verdict and its exit code."""

from __future__ import annotations

import json
import random
import re
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batch_runs import alive, wait_until
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
from small_snapshot import small_document
from topoplace.certify import check_document
from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.starts import check_exclusive, count_shared_links, read_starts
from topoplace.cli import run
from topoplace.errors import ExitCode, InputError
from topoplace.machine import Prism, format_node_set
from topoplace.result import Interference, Placement, PlacementResult, Solution
from topoplace.snapshot.schema import Snapshot
from topoplace.study.external.allocator import (
    MAX_STDERR_BYTES,
    command_allocator,
    command_allocators,
    run_program,
)
from topoplace.study.external.trial import PlacedJob, Placements, torus_breaches

RING = [placed("wide", "3-11", [3], [9]), placed("narrow", "13-14", [13], [2])]

# Of each document what an answer is told, if anything, and its placements.
CASES: list[tuple[dict[str, Any], list[tuple[Any, ...]]]] = [
    (
        small_document(),
        [
            (None, placed("second", "28,30,31,29")),
            (None, placed("second", "6-7,10-11", [0, 1, 2], [1, 1, 2]), FIRST),
            ("first has node 24 on router 12, held by running job busy (and 3 more)",
             placed("first", "24-31")),
            ("second has node 0, a service node (and 1 more)", placed("second", "0-3")),
            ("second has node 9, which is down", placed("second", "8-11")),
            ("second has 3 nodes and wants 4", placed("second", "4-6")),
            ("third has node 4, which is not of its class or sets (and 3 more)",
             placed("third", "4-7")),
            ("second has nodes: expected each node once, found node 4 twice",
             placed("second", "4-6,4")),
            ("second has nodes: expected node numbers from 0 to 95", placed("second", "94-97")),
            ("nobody is no request of the queue", placed("nobody", "4-7")),
            ("busy runs already", placed("busy", "24-27")),
            ("second is placed twice", placed("second", "4-7"), placed("second", "30-33")),
            ("first has node 7 of second", placed("second", "4-7"), placed("first", "7,30-36")),
            ("first has node 32 outside its prism 2x1x2@0,0,0",
             placed("first", "32-39", [0, 0, 0], [2, 1, 2])),
            ("the prism of second has router 13, held by a running job",
             placed("second", "2-5", [0, 0, 1], [2, 1, 2])),
            ("the prism of first is none that its geometry allows",
             placed("first", "60-67", [2, 2, 0], [1, 2, 3])),
            ("second has prism: expected an origin inside torus 4x4x3",
             placed("second", "4-7", [0, 0, 9], [1, 1, 2])),
            ("second and first both have router 30",
             FIRST, placed("second", "56-57,62-63", [2, 1, 0], [1, 2, 2])),
        ],
    ),
    (
        ring_document(),
        [
            (None, RING[1]),
            ("wide shares link 0 (0 to 1) with busy (and 1 more)", RING[0]),
        ],
    ),
    (
        ring_document() | {"running": []},
        [("wide shares link 13 (13 to 14) with narrow", RING[1], RING[0])],
    ),
    (
        tree_document(),
        [
            (None, placed("talks", ["n1", "n2", "n4"]), placed("quiet", ["n8", "n9"])),
            ("quiet has n1 and n8: no switch is above both", placed("quiet", ["n1", "n8"])),
            ("talks has node n0, held by running job busy", placed("talks", ["n0", "n1", "n2"])),
            ("talks has node n3, which is down", placed("talks", ["n1", "n2", "n3"])),
            ("talks has node n1 twice", placed("talks", ["n1", "n2", "n1"])),
            ("talks has 2 nodes and wants 3", placed("talks", ["n1", "n2"])),
            ("talks has x, which is no node of the machine", placed("talks", ["n1", "n2", "x"])),
            ("talks has n1 and n8: no switch is above both", placed("talks", ["n1", "n2", "n8"])),
            ("busy runs already", placed("busy", ["n1"])),
            ("talks has node n4 of quiet",
             placed("quiet", ["n1", "n4"]), placed("talks", ["n5", "n4", "n6"])),
        ],
    ),
    (
        tree_document() | {"queue": [{"id": "quiet", "nodes": 2}]},  # of which domains count
        [
            (None, placed("quiet", ["n1", "n5"])),
            ("quiet has n1 and n8: no switch is above both", placed("quiet", ["n1", "n8"])),
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "named", "placements"),
    [(document, named, given) for document, cases in CASES for named, *given in cases],
)
def test_breaches_of_the_rules(
    document: dict[str, Any],
    named: str | None,
    placements: list[dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command, output = command_printing(tmp_path, answer_of(placements)), tmp_path / "r.json"
    if named is not None:
        code, said = verdict_of(tmp_path, command, capsys, document)
        assert code == ExitCode.CHECK_FAILED
        assert f"{document['name']}: command: breach: {named}" in said
        return
    path = write_document(tmp_path, document)
    assert run(["place", str(path), "--command", command, "-o", str(output)]) == ExitCode.DONE
    result = json.loads(output.read_text())
    solution = result["solution"]
    found = solution["placements"] if "placements" in solution else solution["allocations"]
    requests = {placement["request"] for placement in placements}
    assert {placement["request"] for placement in found} == requests
    assert result["proof"] == "none"


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

    def result_of(*arguments: str) -> PlacementResult:
        assert run(["place", str(path), *arguments, "-o", str(output)]) == 0
        return PlacementResult.model_validate_json(output.read_text())

    ours = result_of("--method", "first-fit")
    placements = [p.model_dump(mode="json") for p in ours.solution.placements]
    command = command_printing(tmp_path, answer_of(placements))
    theirs = result_of("--command", f"mine={command}")
    assert (theirs.method, theirs.proof) == ("mine", "none")
    assert theirs.versions["allocator"] == command
    assert (theirs.levels, theirs.solution) == (ours.levels, ours.solution)
    second = placed("second", "85,87,86,84", [3, 2, 0], [1, 1, 3])  # the last of six nodes
    own_nodes = result_of("--command", command_printing(tmp_path, answer_of([second])))
    assert [p.nodes for p in own_nodes.solution.placements] == ["84-87"]
    assert own_nodes.solution.conforming
    assert check_document(theirs).holds
    assert check_document(own_nodes).holds


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "answer: expected a JSON document"),
        ("[" * 100_000, "answer: expected a JSON document"),
        ("\xff\xfe", "answer: expected a JSON document"),
        ("[]", "answer: expected a JSON object"),
        ("{}", 'answer: schema: expected "topoplace.placements/1"'),
        (answer_of([{"request": "first"}]), "answer: placements[0].nodes: expected a value"),
        (answer_of([{**FIRST, "note": 1}]), "answer: placements[0].note: expected one of"),
    ],
)
def test_what_is_no_placements_document(
    text: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = verdict_of(tmp_path, command_printing(tmp_path, text), capsys)
    assert code == ExitCode.CHECK_FAILED
    assert f"small: command: bad-output: {named}" in said


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
    for request in rng.sample(instance.requests, rng.randint(1, 3)):
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


# ---- Runs ----------------------------------------------------------------------------------------


def shell(script: str) -> str:
    return f"sh -c '{script}'"


@pytest.mark.parametrize(
    ("script", "code", "named"),
    [
        ("exit 3", 5, "failed: exit code 3"),
        ("echo no database >&2; exit 3", 5, 'failed: exit code 3; it said "no database"'),
        ("kill -SEGV $$", 5, "failed: ended by signal 11"),
        ("kill -36 $$", 5, "failed: ended by signal 36"),
        ("true", 5, "bad-output: answer: expected a JSON document"),
        ('printf "\\033[2Jbye" >&2; exit 1', 5, 'failed: exit code 1; it said "[2Jbye"'),
    ],
)
def test_programs_that_fail(
    script: str, code: int, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, said = verdict_of(tmp_path, shell(script), capsys)
    assert found == code
    assert f"small: command: {named}" in said


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_program_that_hangs_is_killed_with_its_children(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pid = tmp_path / "pid"
    began = time.perf_counter()
    command = shell(f"sleep 60 & echo $! > {pid}; wait")
    code, said = verdict_of(tmp_path, command, capsys, None, "--time-limit", "1")
    assert code == ExitCode.NO_SOLUTION
    assert "small: command: time-out: no answer within the time limit" in said
    assert time.perf_counter() - began < 20
    wait_until(lambda: not alive(int(pid.read_text())), 10)


def test_what_is_printed_before_the_time_limit_counts(tmp_path: Path) -> None:
    path, output = write_document(tmp_path), tmp_path / "r.json"
    printing = command_printing(tmp_path, answer_of([FIRST]))
    command = shell(f"{printing}; sleep 60")
    args = ["place", str(path), "--command", command, "--time-limit", "0.3", "-o", str(output)]
    assert run(args) == ExitCode.DONE
    result = PlacementResult.model_validate_json(output.read_text())
    assert result.limits.hit
    assert result.objective == 8
    assert check_document(result).holds


def test_what_a_program_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    printing = command_printing(tmp_path, answer_of([]))
    command = shell(f"{printing}; sleep 60 &")
    began = time.perf_counter()
    assert run(["place", str(write_document(tmp_path)), "--command", command]) == ExitCode.DONE
    assert time.perf_counter() - began < 20


def test_a_program_that_prints_a_gigabyte_is_cut_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict_of(tmp_path, "true", capsys)  # what is imported counts for neither
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    code, said = verdict_of(tmp_path, "head -c 1000000000 /dev/zero", capsys)
    assert code == ExitCode.CHECK_FAILED
    assert "small: command: bad-output: it printed more than 16 MiB" in said
    assert time.perf_counter() - began < 20
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100 << 10  # KiB


def test_neither_a_long_stderr_nor_an_unread_stdin_blocks_anybody() -> None:
    script = "head -c 9000000 /dev/zero >&2; echo last >&2"
    done = run_program(["sh", "-c", script], b"x" * (8 << 20), 9)
    assert (done.code, done.stdout, len(done.stderr)) == (0, b"", MAX_STDERR_BYTES)
    assert done.stderr.endswith("\0last\n")


def test_names_of_commands() -> None:
    named = command_allocator("mine=perl -w 'a b.pl' x=1")
    assert (named.name, named.arguments) == ("mine", ("perl", "-w", "a b.pl", "x=1"))
    names = [one.name for one in command_allocators(["true", "b=true", "true"], ["exact"])]
    assert names == ["command", "b", "command-3"]
    with pytest.raises(InputError, match="a name no other method has"):
        command_allocators(["b=true", "b=false"], [])


def test_the_program_is_told_the_options_and_its_stderr_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, printing = tmp_path / "stderr.txt", command_printing(tmp_path, answer_of([FIRST]))
    told = "$TOPOPLACE_TIME_LIMIT $TOPOPLACE_INTERFERENCE $TOPOPLACE_SEED"
    command = shell(f"echo one >&2; echo {told} >&2; {printing}")
    args = ["place", str(write_document(tmp_path)), "--command", command, "--stderr", str(kept)]
    args += ["--time-limit", "7", "--interference", "off", "--seed", "5"]
    assert run(args) == ExitCode.DONE
    assert "small: command said: 7 off 5" in capsys.readouterr().out
    assert kept.read_text() == "== command on small\none\n7 off 5\n"


def test_compare_goes_on_and_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = command_printing(tmp_path, answer_of([FIRST]))
    args = ["compare", str(write_document(tmp_path)), "--methods", "exact", "--time-limit", "0.3"]
    args += ["--command", f"good={good}", "--command", "false", "--command", "slow=sleep 60"]
    assert run([*args, "--json"]) == ExitCode.CHECK_FAILED
    captured = capsys.readouterr()
    assert re.search(r"\n +good +8 +16 +100.00 % .* 1/3 +0 +feasible", captured.err)
    assert re.search(r"\n +command-2 +- +16 +- ", captured.err)
    assert "\nsmall: command-2: failed: exit code 1\n" in captured.err
    assert "\nsmall: slow: time-out: no answer within the time limit\n" in captured.err
    document = json.loads(captured.out)
    rows = {row["method"]: row for row in document["rows"]}
    assert (rows["good"]["levels"][0]["bound"], rows["good"]["conforming"]) == (16, True)
    assert rows["slow"]["levels"][0]["objective"] is None
    assert [verdict["fault"] for verdict in document["verdicts"]] == ["failed", "time-out"]
