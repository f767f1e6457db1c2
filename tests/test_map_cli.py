"""`topoplace map` with graph files, end to end: answers that check, errors of one line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import topoplace as tp
from test_cli_bad_input import one_line_error
from topoplace.cli import output, run
from topoplace.solving import Bound, Display, Incumbent, Outcome

SQUARE = "0,9,0,9\n9,0,9,0\n0,9,0,9\n9,0,9,0\n"
QAPLIB = "3\n0 1 2\n1 0 1\n2 1 0\n\n0 0 7\n0 0 5\n7 5 0\n"


def mapped(capsys, *args):
    """Run `map`, which must succeed, and return its result."""
    assert run(["map", *map(str, args), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def checked(path, capsys):
    """Tell whether `check` says of a result what its proof deserves, and refuses nothing."""
    code, said = run(["check", str(path)]), capsys.readouterr().out
    if json.loads(path.read_text())["proof"] == "search":
        return code == 5 and "trust  hop-bytes.bound" in said and "NOT verified" in said
    return code == 0 and "every claim holds" in said


@pytest.fixture
def square(tmp_path: Path) -> Path:
    path = tmp_path / "square.csv"
    path.write_text(SQUARE)
    return path


@pytest.mark.parametrize(
    ("name", "text", "machine", "objective"),
    [
        ("g.csv", SQUARE, "torus:4", 72),
        ("g.graph", "4 4 1\n2 9 4 9\n1 9 3 9\n2 9 4 9\n1 9 3 9\n", "torus:4", 36),
        ("g.grf", "0 4 8 0 10 2 9 1 9 3 2 9 0 9 2 2 9 1 9 3 2 9 0 9 2", "torus:4", 36),
        ("g.el", "0 1 9\n1 2 9\n2 3 9\n3 0 9\n", "torus:4", 36),
        ("one.csv", "0\n", "mesh:2x3", 0),
        ("diagonal.csv", "7\n", "mesh:2x3", 0),
        ("zeros.csv", "0,0\n0,0\n", "mesh:2x3", 0),
        ("disconnected.csv", "0,3,0,0\n0,0,0,0\n0,0,0,4\n0,0,0,0\n", "mesh:2x3", 7),
    ],
)
def test_graphs_of_any_format_and_of_little_content(
    tmp_path, capsys, name, text, machine, objective
):
    path, out = tmp_path / name, tmp_path / "r.json"
    path.write_text(text)
    found = mapped(capsys, "--graph", path, "--on", machine, "-o", out)
    assert (found["objective"], found["bound"], found["status"]) == (objective,) * 2 + ("optimal",)
    assert found["instance"]["name"] == path.stem
    assert checked(out, capsys)


def test_qaplib_on_its_own_distances_and_on_the_mesh_they_are(tmp_path, capsys):
    (tmp_path / "q.dat").write_text(QAPLIB)
    out = tmp_path / "r.json"
    args = ["--graph", tmp_path / "q.dat"]
    own = mapped(capsys, *args, "--on", "qaplib", "-o", out)
    assert checked(out, capsys)
    mesh = mapped(capsys, *args, "--on", "mesh:3", "-o", out)
    assert checked(out, capsys)
    swapped = mapped(capsys, *args, "--on", "qaplib", "--flow", "first")
    assert own["objective"] == mesh["objective"] == swapped["objective"] == 24
    assert own["instance"]["application"] != swapped["instance"]["application"]


def test_a_machine_by_its_distances_and_some_of_its_nodes(square, tmp_path, capsys):
    (tmp_path / "d.csv").write_text(
        "\n".join(",".join(str(abs(a - b)) for b in range(6)) for a in range(6))
    )
    out = tmp_path / "r.json"
    args = ["--graph", square, "--on", f"matrix:{tmp_path / 'd.csv'}"]
    anywhere = mapped(capsys, *args, "-o", out)
    assert checked(out, capsys)
    assert anywhere["objective"] == 9 * 2 * 6  # a ring folded onto a line
    apart = mapped(capsys, *args, "--subset", "0,2-3,5", "-o", out)
    assert checked(out, capsys)
    assert set(apart["solution"]["nodes"]) == {0, 2, 3, 5}
    assert apart["objective"] == 9 * 2 * 10


def test_the_mapping_files_written_are_read_again(square, tmp_path, capsys):
    files = {"csv": "csv", "maplib": "maplib", "scotch-map": "scotch", "hostfile": "hostfile"}
    args = ["--graph", square, "--on", "mesh:2x3"]
    asked = [word for name in files for word in (f"--{name}", tmp_path / name)]
    found = mapped(capsys, *args, *asked)
    for name, form in files.items():
        again = mapped(capsys, *args, "--mapping", tmp_path / name, "--format", form)
        assert again["solution"]["nodes"] == found["solution"]["nodes"]
        assert again["method"] == "given"


HUGE = str(1 << 53)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1\n-4,0\n", "g.csv: line 2, field 1: expected an integer from 0 to"),
        (f"0,1\n{HUGE}9,0\n", f"g.csv: line 2, field 1: expected an integer from 0 to {HUGE}"),
        ("\n".join([",".join([HUGE] * 32)] * 32), "g.csv: bytes: expected bytes x hops below"),
    ],
)
def test_a_bad_graph_is_one_line(text, message, tmp_path, capsys):
    path = tmp_path / "g.csv"
    path.write_text(text)
    assert run(["map", "--graph", str(path), "--on", "torus:32"]) == 2
    assert message in one_line_error(capsys)


@pytest.mark.parametrize("live", [True, False], ids=["terminal", "lines"])
def test_progress_is_one_live_line_or_a_line_now_and_then(live):
    stream, incumbent = io.StringIO(), Incumbent(instance="square", method="tabu")
    with Display(stream, live) as display:
        for value in (1000, 900):
            incumbent.report("a mapping", [value], [Bound(700)])
            display(incumbent.progress())
    shown = stream.getvalue()
    assert "square, tabu: hop-bytes 1,000, bound 700, gap 30.00 %" in shown
    assert ("hop-bytes 900" in shown) == live
    assert shown.endswith("\r\x1b[K" if live else "\n")
    assert ("\n" in shown) != live


def test_progress_is_shown_when_asked_for(square, capsys):
    args = ["map", "--graph", str(square), "--on", "torus:4"]
    assert run([*args, "--progress"]) == 0
    assert "hop-bytes 72" in capsys.readouterr().err
    assert run(args) == 0
    assert capsys.readouterr().err == ""
    assert run([*args, "-v"]) == 0
    assert "recognition" in capsys.readouterr().err
    for words in (["-q", *args], [*args, "-q"]):
        assert run(words) == 0
        assert capsys.readouterr() == ("", "")
    assert run([*args, "-q", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["objective"] == 72


def test_elsewhere_a_long_solve_says_once_where_it_is(square, capsys, monkeypatch):
    stream, incumbent = io.StringIO(), Incumbent(instance="square", method="default")
    with Display(stream, live=False, once=0.0) as display:
        for phase in ("default", "bound"):
            incumbent.say(phase)
            display(incumbent.progress())
    assert stream.getvalue().count("\n") == 1
    assert "default (--time-limit or Ctrl-C ends it with what it has)" in stream.getvalue()
    monkeypatch.setattr(output, "PATIENCE", 0.0)  # said if it takes a moment, or of its end
    for words, count in (([], 1), (["--time-limit", "9"], 0), (["-q"], 0)):
        assert run(["map", "--graph", str(square), "--on", "torus:4", *words]) == 0
        assert capsys.readouterr().err.count("Ctrl-C") == count


def test_the_incumbent_keeps_what_is_better():
    incumbent = Incumbent((("nodes", "max"), ("cost", "min")))
    low, high = Bound(30), Bound(50)
    assert incumbent.outcome is None
    incumbent.report("first", [9, 4], [high])
    incumbent.report("worse", [9, 5], [high, Bound(3)])
    incumbent.report(None, [], [low])
    assert incumbent.outcome == Outcome("first", (low,), time_limit_hit=True)
    incumbent.report("better", [9, 3], [high, Bound(3)])
    assert incumbent.outcome == Outcome("better", (low, Bound(3)), time_limit_hit=True)
    incumbent.say("branches", 1, 2)
    assert (incumbent.progress().objective, incumbent.progress().gap) == (3, 0)


def test_what_a_check_and_a_graph_say(tmp_path, monkeypatch, capsys):
    """A check says which problem was solved, and where another instance differs."""
    monkeypatch.chdir(tmp_path)
    asked = ["map", "--grid", "4x2", "--on", "torus:4x4", "--method", "default", "-o"]
    assert run([*asked, "a.json", "--periodic", "x", "--bytes", "8/4,1", "--subset", "0-8"]) == 0
    assert run([*asked, "b.json", "--subset", "0-7"]) == 0
    capsys.readouterr()
    assert run(["check", "a.json"]) == 0
    said = "instance: torus 4x4, 9 of 16 nodes, at most 1 task on each; grid 4x2, stencil nearest, "
    said += "periodic x, bytes 8/4,1, 8 tasks, 24 messages of 104 bytes\n"
    assert said in capsys.readouterr().out
    assert run(["check", "a.json", "--instance", "b.json"]) == 5
    said = 'b.json: nodes is "0-8", not "0-7"; application.periodic[0] is true, not false; '
    assert said in capsys.readouterr().out
    Path("edges.csv").write_text("source,target\n0,1\n1,2\n")
    assert run(["map", "--graph", "edges.csv", "--on", "torus:4"]) == 0
    assert "edges.csv: no bytes given, 1 each\n" in capsys.readouterr().err
    Path("edges.csv").write_text("source,target,bytes\n0,1,7\n1,2\n")
    assert run(["map", "--graph", "edges.csv", "--on", "torus:4"]) == 0
    assert "edges.csv: no bytes given in 1 line, 1 each\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("--parallelism tensor=16 --on torus:2x2x2", "--parallelism: expected at most 8 tasks"),
        ("--parallelism tensor=16 --on torus:2x2x2", "(see --tasks-per-node), found 16"),
        ("--parallelism dp=2000,pp=2000,ep=9 --on torus:2", "--parallelism: expected at most"),
        ("--parallelism tpp=8 --on torus:8", "found 'tpp' (did you mean 'tp'?)"),
        ("--grid 2x2 --on torrus:8x8x8", "found 'torrus:8x8x8' (did you mean 'torus:8x8x8'?)"),
        ("--grid 2x2 --on torus:2x2 --method bisecton", "(did you mean 'bisection'?)"),
    ],
)
def test_errors_name_the_option_and_what_was_meant(asked, said, capsys):
    assert run(["map", *asked.split()]) == 2
    assert said in capsys.readouterr().err


def test_python_takes_what_the_command_line_takes():
    axes = tp.parallelism({"pp": 2, "dp": 4})
    assert axes == tp.parallelism("pipeline=2,data=4")
    assert tp.grid("8x8x4", periodic="xz") == tp.grid(8, 8, 4, periodic=[True, False, True])
    with pytest.raises(tp.InputError, match=r"periodic: expected letters of xy, found 'z'"):
        tp.grid(8, 8, periodic="z")
    with pytest.raises(tp.InputError, match=r"timelimit: .*did you mean 'time_limit'"):
        tp.map(tp.grid(2), "torus:2", timelimit=3)
