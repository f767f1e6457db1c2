"""Graph files: the same graph in every format, and what is wrong named with its line."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import topoplace as tp
from real_files import real_file
from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graphfiles import (
    GRAPH_FORMATS,
    graph_format,
    read_graph,
    read_matrix_machine,
    read_qaplib,
)
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.rankfiles import read_mapping


def messages(graph):
    return sorted(zip(graph.sources, graph.targets, graph.bytes, strict=True))


def read(folder, text, form=None, ending=""):
    path = folder / f"graph{ending}"
    path.write_text(text)
    return read_graph(path, form)


# Edges 0-1 of 5, 0-2 of 7, 1-2 of 2; task 3 is silent.
METIS = "% a comment\n4 3 001\n2 5 3 7\n1 5 3 2\n% another\n1 7 2 2\n\n"
METIS_ALL = "4 3 111 2\n9 8 8 2 5 3 7\n9 8 8 1 5 3 2\n9 8 8 1 7 2 2\n9 8 8\n"
GRF = "0\n4 6\n0 010\n2 5 1 7 2\n2 5 0 2 2\n2 7 0 2 1\n0\n"
GRF_ALL = "0 4 6 1 111\n4 9 0\n2 9 2 5 1 2 3\n3 9 2 7 1 2 2\n1 9 2 5 2 7 3"
EDGES = "# tasks 4\n0 1 5\n% a comment\n0\t2 7\n1 2 2\n3 3 4\n2 0 0\n"
EDGES_CSV = "source,target,bytes\n0,1,5\n0,2,7\n1,2,2\n3,3,4\n"
MATRIX = "# bytes\n9,5,7,0\n0,9,2,0\n0,0,9,0\n\n0,0,0,9\n"
QAPLIB = "4\n\n0 5 7 0 0 0 2 0\n0 0 0 0 0 0 0 0\n" + "0 1 2 3 1 0 1 2 2 1 0 1 3 2 1 0\n"


@pytest.mark.parametrize(
    ("form", "ending", "text"),
    [
        ("metis", ".graph", METIS),
        ("metis", "", METIS),
        ("metis", ".metis", METIS_ALL),
        ("grf", ".grf", GRF),
        ("grf", ".txt", GRF),
        ("grf", ".src", GRF_ALL),
        ("edges", ".el", EDGES),
        ("edges", "", EDGES),
        ("edges", ".csv", EDGES_CSV),
        ("edges", ".csv", "target,count,bytes,source\n1,1,5,0\n2,1,7,0\n2,1,2,1\n3,1,4,3\n"),
        ("edges", ".csv", ",source,target,weight\n0,0,1,5\n1,0,2,7\n2,1,2,2\n3,3,3,4\n"),
        ("csv", ".csv", MATRIX),
        ("csv", ".csv", ",0,1,2,3\n0,9,5,7,0\n1,0,9,2,0\n2,0,0,9,0\n3,0,0,0,9\n"),
        ("csv", ".csv", ",3,1,2,0\n1,0,9,2,0\n0,0,5,7,9\n2,0,0,9,0\n3,9,0,0,0\n"),
        ("csv", ".csv", "0,1,2,3\n9,5,7,0\n0,9,2,0\n0,0,9,0\n0,0,0,9\n"),
        ("csv", "", MATRIX.replace(",", ";")),
        ("csv", "", MATRIX.replace(",", "  ")),
        ("qaplib", ".dat", QAPLIB),
        ("qaplib", "", QAPLIB),
    ],
)
def test_the_same_graph_in_every_format(tmp_path, form, ending, text):
    found = read(tmp_path, text, None, ending)
    assert graph_format(tmp_path / f"graph{ending}") == form
    assert found == read(tmp_path, text, form, ending)
    assert found.num_tasks == 4
    assert messages(found) == [(0, 1, 5), (0, 2, 7), (1, 2, 2)]


@pytest.mark.parametrize("seed", range(12))
def test_matrices_are_read_back(seed, tmp_path):
    rng = np.random.default_rng(seed)
    size = 1 + seed // 2
    expected = rng.choice([0, 0, 1, 7, 10**15, (1 << 53) - 1, 1 << 53], size=(size, size))
    found = read(tmp_path, "\n".join(",".join(map(str, row)) for row in expected), "csv")
    back = np.zeros((size, size), dtype=np.int64)
    back[found.sources, found.targets] = found.bytes
    np.fill_diagonal(expected, 0)
    assert (found.num_tasks, back.tolist()) == (size, expected.tolist())


def test_repeated_messages_add_up_and_bytes_default_to_one(tmp_path):
    found = read(tmp_path, "0 1\n0 1\n1 0\n", "edges")
    assert messages(found) == [(0, 1, 1), (0, 1, 1), (1, 0, 1)]


BIG = 1 << 53


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("csv", "1,2\n3,4\n5,6\n", "graph: line 3: .* a square matrix, 2 rows.*row 3"),
        ("csv", "1,2\n3\n", "graph: line 2: expected a square matrix.*1 number"),
        ("csv", "1,2,3\n1,2,3\n", "graph: expected a square matrix, 3 rows.*2 rows"),
        ("csv", "", "graph: expected a matrix.*0 rows"),
        ("csv", "0,1\n-1,0\n", "line 2, field 1: expected an integer from 0 to .*'-1'"),
        *(
            ("csv", f"0,{word}\n1,0\n", f"line 1, field 2: expected an integer.*'{word}'")
            for word in ("x", "1.5", "", "²", "nan")
        ),
        ("csv", f"0,{BIG + 1}\n1,0\n", f"line 1, field 2: expected an integer from 0 to {BIG}"),
        ("csv", f"0,{'9' * 6000}\n1,0\n", f"line 1, field 2: expected an integer from 0 to {BIG}"),
        ("qaplib", "2\n0 1\n1 0\n0 1\n1\n", "line 5: .* entry of the second .*not the end"),
        ("qaplib", "2\n0 1\n1 0\n0 1\n1 0 3", "line 5: expected the end of the file.*'3'"),
        ("qaplib", "0\n", "line 1, the size n: expected an integer from 1"),
        ("qaplib", "5000\n", "line 1, the size n: expected an integer from 1 to 4096"),
        ("qaplib", "2 0 1 1 0 0 1 -1 0", "line 1, entry of the second .*integer from 0.*'-1'"),
        ("metis", METIS.replace("1 5 3", "1 6 3"), "line 4: .*same weight .*1-2.*5 and 6"),
        ("metis", METIS.replace("1 5 3 2", "3 2"), "line 3: .*each edge at both.*'1-2'"),
        ("metis", METIS.replace("7 2 2", "7 2 2 1 7"), "line 6: .*each edge once.*'3-1'"),
        ("metis", METIS.replace("4 3 001", "4 4 001"), "line 2, edges: expected 3.*4"),
        ("metis", METIS.replace("4 3 001", "5 3 001"), "5 lines, one for each vertex.*4 lines"),
        ("metis", METIS.replace("4 3 001", "4 3 002"), "line 2, fmt: expected three digits.*2"),
        ("metis", METIS.replace("4 3 001", "4"), "line 2: expected number of edges, not the"),
        ("metis", METIS.replace("2 5 3 7", "2 5 9 7"), "line 3, neighbour: .* from 1 to 4.*'9'"),
        ("metis", METIS.replace("2 5 3 7", "2 5 3"), "line 3: expected weight, not the end"),
        ("metis", METIS.replace("2 5 3 7", "1 5 3 7"), "line 3: .* no edge from a.*'1-1'"),
        ("metis", METIS_ALL.replace("9 8 8\n", "9\n"), "line 5: .*weight of a vertex, not the"),
        ("metis", "% nothing\n", "graph: .*number of vertices, not the end"),
        ("metis", "0 0\n", "line 1, number of vertices: expected an integer from 1"),
        ("grf", "1\n", "line 1: expected version 0"),
        ("grf", GRF.replace("4 6", "4 8"), "number of arcs: expected 6, the number.*8"),
        ("grf", GRF.replace("010", "020"), "line 3, flags: expected three digits"),
        ("grf", GRF.replace("2 5 1", "2 5 4"), "line 4, end of an arc: .* from 0 to 3.*'4'"),
        ("grf", GRF.replace("2 5 1", "2 -5 1"), "line 4, edge load: .* from 0 to.*'-5'"),
        ("grf", GRF_ALL.replace("\n4 9 0", "\n3 9 0"), "vertex label: .* each label once.*3"),
        ("grf", GRF + "7", "line 8: expected the end of the file"),
        ("grf", "0\n4 6\n0 010\n2 5", "line 4: expected end of an arc, not the end"),
        ("edges", "0 1 5\n0 one 5\n", "line 2, target: expected an integer.*'one'"),
        ("edges", "0 1 5\n0 -1 5\n", "line 2, target: expected an integer from 0 to.*'-1'"),
        ("edges", "0 1 5 6\n", "line 1: expected source, target and bytes.*'0 1 5 6'"),
        ("edges", f"0 1 {BIG + 1}", "line 1, bytes: expected an integer from 0 to"),
        ("edges", "0 99999999 1", "line 1, target: expected an integer from 0 to 2097151"),
        ("edges", "# tasks 2\n0 2 1\n", "graph: expected tasks below 2.*2"),
        ("edges", "source target bytes\n", "graph: expected lines of source"),
        ("edges", "source target\n0 1 5\n", "line 2: expected 2 fields, as in line 1.*'0 1 5'"),
        *(
            (form, f"{header}\n0,1,5\n2,1,4\n1,0,9\n", f"line 1: .*columns source, t.*{header}")
            for form in ("edges", None)
            for header in ("src,dst,bytes", "source,target,wieght", "source,to,bytes", "a,b,c")
        ),
        ("csv", ",a,b\na,0,1\nc,1,0\n", "graph: .* same tasks as rows.*found b as one of"),
        ("matrix", "", "graph format: .* csv, qaplib, metis, grf, edges.*'matrix'"),
        (None, "1,2,3,4\n1,2\n", "a graph file of a known form .*'1,2,3,4'"),
        (None, "", "a graph file of a known form"),
    ],
)
def test_bad_files_are_refused_with_line_and_value(tmp_path, form, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text, form)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_files_that_are_no_text_are_bad_input(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for form in (*GRAPH_FORMATS, None):
        with pytest.raises(InputError, match="text in UTF-8, found UTF-16"):
            read_graph(tmp_path / "binary", form)
        with pytest.raises(InputError, match="a file that exists"):
            read_graph(tmp_path / "nowhere", form)


def test_a_matrix_machine_is_any_distances(tmp_path):
    path = tmp_path / "far away.csv"
    path.write_text("0,1,5\n2,0,1\n1,0,0\n")
    machine = read_matrix_machine(path)
    assert machine.name == "far-away"
    assert machine.distances == [[0, 1, 5], [2, 0, 1], [1, 0, 0]]
    path.write_text("0,1\n2,3\n")
    with pytest.raises(InputError, match=r"row 2: expected zeros on the diagonal.*, found .*3"):
        read_matrix_machine(path)
    path.write_text(f"0,1\n{1 << 21},0\n")
    with pytest.raises(InputError, match=r"line 2, field 1: expected an integer from 0 to 1048576"):
        read_matrix_machine(path)


def test_either_matrix_of_a_qaplib_file_may_be_the_flows(tmp_path):
    path = tmp_path / "two.dat"
    path.write_text("2  0 3  4 0  0 1  0 0")
    assert read_qaplib(path, "first").flows.tolist() == [[0, 3], [4, 0]]
    assert read_qaplib(path, "second").distances.tolist() == [[0, 3], [4, 0]]
    assert read_qaplib(path).flows.tolist() == [[0, 1], [0, 0]]  # more zeros
    with pytest.raises(InputError, match="one of first, second"):
        read_qaplib(path, "third")
    path.write_text("2  0 3  4 0  0 1  0 7")
    with pytest.raises(InputError, match="zeros on the diagonal"):
        _ = read_qaplib(path, "first").machine
    (tmp_path / "list.edges").write_text("0 1 2\n")
    with pytest.raises(InputError, match="QAPLIB"):
        read_graph(tmp_path / "list.edges", flow="first")


def test_qaplib_objectives_are_sums_over_ordered_pairs():
    """The whole objective, written out, is what our evaluation says."""
    instance = read_qaplib(real_file("qaplib/nug12.dat"))
    problem = problem_on(load_places(instance.machine), instance.graph)
    order = np.random.default_rng(1).permutation(12)
    by_hand = int((instance.flows * instance.distances[np.ix_(order, order)]).sum())
    assert hop_bytes(problem, order) == by_hand
    mesh = problem_on(load_places("mesh:3x4"), instance.graph)
    assert hop_bytes(mesh, order) == by_hand


@pytest.mark.parametrize(
    ("application", "listed"),
    [
        ("amg", {"sweep": 5783590656, "hilbert": 12313386568, "topo_aware": 8251699184}),
        ("lulesh", {"sweep": 20824833600, "hilbert": 45312255168, "topo_aware": 30174389280}),
    ],
)
def test_maplib_mappings_cost_what_is_listed(application, listed):
    graph = read_graph(real_file(f"maplib/{application}/bytes.csv"))
    problem = problem_on(load_places("torus:4x4x4"), graph)
    for name, value in listed.items():
        path = real_file(f"maplib/{application}/mapping_torus_{name}.csv")
        assert hop_bytes(problem, read_mapping(path, "maplib", problem)) == value


@pytest.mark.skipif(shutil.which("scotch_gmap") is None, reason="Scotch is not installed")
@pytest.mark.parametrize(
    ("target", "machine"), [("torus3D 5 3 2", "torus:2x3x5"), ("mesh2D 6 5", "mesh:5x6")]
)
def test_scotch_counts_the_same_hop_bytes(target, machine, tmp_path):
    rng = np.random.default_rng(4)
    loads = np.triu(rng.integers(1, 50, (30, 30)) * (rng.random((30, 30)) < 0.2), 1)
    loads += loads.T
    lines = ["0", f"30 {np.count_nonzero(loads)}", "0 010"]
    for row in loads:
        ends = np.flatnonzero(row)
        lines.append(" ".join(map(str, [len(ends), *np.column_stack([row[ends], ends]).ravel()])))
    (tmp_path / "r.grf").write_text("\n".join(lines))
    (tmp_path / "r.tgt").write_text(target)
    words = ["scotch_gmap", "-vm", "r.grf", "r.tgt", "r.map"]
    said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    theirs = re.search(r"CommExpan=\S+\s*\((\d+)\)", said)
    assert theirs is not None
    problem = problem_on(load_places(machine), read_graph(tmp_path / "r.grf"), 4)
    assert hop_bytes(problem, read_mapping(tmp_path / "r.map", "scotch", problem)) == int(theirs[1])


def test_python_hears_what_was_guessed_and_left_out_of_a_list(tmp_path, caplog):
    (tmp_path / "edges.csv").write_text("source,target,bytes\n0,1,7\n1,2\n2,2,5\n1,1,5\n")
    found = tp.map(tmp_path / "edges.csv", "torus:4")
    assert found.objective == 8
    lines = ["no bytes given in 1 line, 1 each", "2 messages of tasks to themselves left out"]
    assert caplog.messages == [f"{tmp_path / 'edges.csv'}: {line}" for line in lines]
    caplog.clear()
    tp.recognise(tmp_path / "edges.csv")
    assert len(caplog.messages) == 2


def test_a_matrix_with_labels(tmp_path):
    frame = pd.DataFrame([[0, 5, 0, 1], [0, 0, 2, 0], [7, 0, 0, 0], [0, 0, 3, 0]])
    frame.index = frame.columns = [*"dcba"]
    frame.to_csv(tmp_path / "m.csv")
    expected = tp.graph(frame)
    assert expected.names == [*"dcba"]
    assert read_graph(tmp_path / "m.csv") == expected
    frame[[*"abcd"]].to_csv(tmp_path / "m.csv")  # columns in another order
    assert read_graph(tmp_path / "m.csv") == expected
    frame.to_csv(tmp_path / "m.csv", index=False)
    assert read_graph(tmp_path / "m.csv") == expected
    frame.to_csv(tmp_path / "m.csv", header=False)
    assert read_graph(tmp_path / "m.csv") == expected


def test_a_matrix_as_numpy_writes_it(tmp_path):
    table = np.array([[0, 5, 1 << 52], [7, 0, 0], [0, 3, 0]])
    for k, more in enumerate(({}, {"delimiter": ","}, {"fmt": "%.2f"}, {"fmt": "%d"})):
        np.savetxt(tmp_path / f"{k}.csv", table.astype(float), **more)
        found = read_graph(tmp_path / f"{k}.csv", "csv")
        assert found.bytes == [5, 1 << 52, 7, 3], more
    np.savetxt(tmp_path / "half.csv", table / 2)
    with pytest.raises(InputError, match="line 1, field 2: expected an integer from 0 to 9007"):
        read_graph(tmp_path / "half.csv", "csv")
