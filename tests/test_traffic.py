"""Traffic from arrays, data frames, sparse matrices and graphs of other libraries."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sparse

import topoplace as tp
from mistakes import lines_said

TRIPLES = [(0, 1, 5), (2, 3, 7)]
MATRIX = np.zeros((4, 4))
MATRIX[0, 1], MATRIX[2, 3] = 5, 7
LETTERS = list("abcd")


class Graph:
    """A graph with the interface of NetworkX that is used, which need not be installed."""

    def __init__(self, edges: Iterable[tuple[Any, Any, Any]], name: str) -> None:
        self._edges, self._name = list(edges), name
        self.nodes = list(dict.fromkeys(end for *ends, _ in self._edges for end in ends))

    def is_directed(self) -> bool:
        return False

    def edges(self, data: str | bool, default: int | None = None) -> list[tuple[Any, Any, Any]]:
        own = [{} if weight is None else {self._name: weight} for *_, weight in self._edges]
        given = [
            attributes if data is True else attributes.get(data, default) for attributes in own
        ]
        return [(u, v, one) for (u, v, _), one in zip(self._edges, given, strict=True)]


def graph_of(edges: Iterable[tuple[Any, Any, Any]], name: str = "weight") -> Any:
    """Return a graph of NetworkX where that is installed, else its stand-in."""
    if importlib.util.find_spec("networkx") is None:
        return Graph(edges, name)
    import networkx  # noqa: PLC0415 - optional

    graph = networkx.Graph()
    for source, target, weight in edges:
        graph.add_edge(source, target, **({} if weight is None else {name: weight}))
    return graph


def edges_of(names: Any) -> pd.DataFrame:
    ends = {"source": [names[0], names[2]], "target": [names[1], names[3]]}
    return pd.DataFrame({**ends, "weight": [5.0, 7.0]})


@pytest.mark.parametrize(
    "given",
    [
        MATRIX,
        MATRIX.astype(np.uint16),
        MATRIX.astype(object),
        np.array(TRIPLES),
        sparse.csr_array(MATRIX),
        sparse.coo_matrix(MATRIX.astype(int)),
        pd.DataFrame(MATRIX),
        edges_of(range(4)),
        edges_of(range(4)).rename(columns={"weight": "bytes"}),
        graph_of(TRIPLES),
        graph_of(TRIPLES, "bytes"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_all_that_hold_traffic_are_taken(given: Any) -> None:
    assert tp.graph(given) == tp.graph(TRIPLES)
    assert tp.map(given, "torus:2x2", "default").instance.application == tp.graph(TRIPLES)


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame(MATRIX, index=LETTERS, columns=LETTERS),
        edges_of(LETTERS),
        graph_of((LETTERS[s], LETTERS[t], size) for s, t, size in TRIPLES),
    ],
    ids=["matrix", "edges", "graph"],
)
def test_names_are_those_of_tasks(given: Any) -> None:
    graph = tp.graph(given)
    assert (graph.names, graph.sources, graph.targets) == (LETTERS, [0, 2], [1, 3])
    for options in ({}, {"balance": 1.5, "time_limit": 1}):
        result = tp.map(given, "torus:2x2", "default" if not options else "auto", **options)
        assert list(result.to_frame().name) == LETTERS
        assert tp.check(json.loads(result.model_dump_json())).holds


def test_labels_of_nodes_may_be_anything() -> None:
    graph = tp.graph(graph_of([("a b", (1, 2), None), ((1, 2), 3.5, 2)]))
    assert graph.names == ["a b", "(1, 2)", "3.5"]
    assert (graph.sources, graph.targets, graph.bytes) == ([0, 1], [1, 2], [1, 2])
    numbers = tp.graph(graph_of([(2, 1, 4), (1, 0, 4)]))  # in another order
    assert (numbers.names, {*numbers.sources, *numbers.targets}) == (None, {0, 1, 2})


@pytest.mark.parametrize("labels", [LETTERS, [str(k) for k in range(4)], [*range(4)]])
def test_columns_are_those_of_the_rows_by_label(labels: list[Any]) -> None:
    traffic = np.arange(16).reshape(4, 4)
    np.fill_diagonal(traffic, 0)
    frame = pd.DataFrame(traffic, index=labels, columns=labels)
    for rows, columns in ([3, 2, 1, 0], [0, 1, 2, 3]), ([1, 3, 0, 2], [2, 0, 1, 3]):
        graph = tp.graph(frame.iloc[rows, columns])
        names = graph.names or [str(labels[k]) for k in range(4)]
        found = pd.DataFrame(0, index=map(str, labels), columns=map(str, labels))
        for source, target, size in zip(graph.sources, graph.targets, graph.bytes, strict=True):
            found.loc[names[source], names[target]] = size
        assert (found.to_numpy() == traffic).all()
        assert (graph.names is None) is (labels is not LETTERS)


def test_bytes_go_before_weights_and_what_has_none_is_said(caplog: Any) -> None:
    both = edges_of(range(4)).assign(bytes=[8, 9], count=1)
    assert tp.graph(both).bytes == [8, 9]
    assert not caplog.messages
    mixed = Graph([(0, 1, None), (1, 2, None), (2, 3, None)], "")
    own: list[Any] = [(0, 1, {"bytes": 4000, "weight": 3}), (1, 2, {"weight": 2}), (2, 3, {})]
    mixed.edges = lambda data: own
    assert tp.graph(mixed).bytes == [4000, 2, 1]
    assert tp.graph(edges_of(range(4))[["source", "target"]]).bytes == [1, 1]
    lines = ["no bytes given in 1 edge, 1 each", "no bytes given, 1 each"]
    assert [line.partition(": ")[2] for line in caplog.messages] == lines


def test_requests_and_recognise_take_them() -> None:
    ring = sparse.coo_array((np.ones(8), (np.arange(8), (np.arange(8) + 1) % 8)), shape=(8, 8))
    assert "a ring of 8 tasks" in str(tp.recognise(ring))
    model = tp.Model("torus:4x4")
    model.add_request("talks", 8, application=ring)
    tasks = tp.load(model.snapshot.model_dump()).queue[0].tasks
    assert tasks.application == tp.graph(ring)


def test_a_square_array_is_a_machine() -> None:
    distances = abs(np.subtract.outer(np.arange(4), np.arange(4)))
    result = tp.map(np.eye(4, k=1), distances, "exact")
    assert (result.objective, result.check().holds) == (3, True)
    assert tp.topology(distances).num_ranks == 4


def test_nothing_is_imported_for_them() -> None:
    code = "import sys, topoplace.traffic; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pandas", "scipy", "networkx"} & {*run.stdout.split()}


HALF = MATRIX.copy()
HALF[1, 2] = 2.5


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (HALF, "application[1, 2]: expected a whole number, found 2.5"),
        (-MATRIX, "application[0, 1]: expected a whole number of at least 0, found -5"),
        (MATRIX * np.nan, "application[0, 0]: expected a whole number, found nan"),
        (sparse.csr_array(HALF), "application[1, 2]: expected a whole number, found 2.5"),
        (sparse.csr_array(MATRIX[:2]), "application: expected a square matrix, found an array of"),
        (MATRIX[:2], "application: expected a square matrix, triples of source, target and bytes"),
        (
            edges_of(LETTERS).assign(weight=[1, 0.5]),
            "application.weight[1]: expected a whole number, found 0.5",
        ),
        (
            edges_of(LETTERS).assign(weight=["x", "y"]),
            "application.weight[0]: expected a whole number, found 'x'",
        ),
        (
            edges_of([0, 1, 2, None]),
            "application.target[1]: expected a task, found nan",
        ),
        (
            pd.DataFrame({"from": list("aab"), "target": list("bcc"), "weight": [4, 9, 5]}),
            "application: expected columns source, target and bytes (or weight), each once, "
            "found columns from, target, weight",
        ),
        (
            edges_of(LETTERS).rename(columns={"source": "from"}),
            "application: expected columns source, target and bytes (or weight), each once, "
            "found columns from, target, weight",
        ),
        (
            pd.DataFrame(MATRIX, index=LETTERS, columns=list("abcx")),
            "application: expected the same tasks as rows and as columns, found d as one of them "
            "alone",
        ),
        (
            pd.DataFrame(MATRIX, columns=range(1, 5)),
            "application: expected the same tasks as rows and as columns, found 0 as one of them "
            "alone",
        ),
        (
            pd.DataFrame(MATRIX, index=list("aabc"), columns=list("caba")),
            "application: expected the same tasks as rows and as columns, each once",
        ),
        (
            edges_of(LETTERS).rename(columns={"weight": "wieght"}),
            "application: expected columns source, target and bytes (or weight), each once, "
            "found columns source, target, wieght",
        ),
        (
            graph_of([("a", "b", 3), ("b", "c", 4)], "volume"),
            "application.edges['a', 'b']: expected bytes or weight as an attribute, found volume",
        ),
        (
            np.ma.masked_equal(MATRIX, 7),
            "application: expected an array without masked entries (filled(0) makes them 0), "
            "found 1 of them",
        ),
        (
            graph_of([("a", "b", 0.5)]),
            "application.edges['a', 'b']: expected a whole number, found 0.5",
        ),
        ([(0, 1, 5)], "application: expected an application such as tp.grid(4, 4), its file or"),
    ],
)
def test_what_is_no_traffic_is_told_in_a_line(given: Any, line: str) -> None:
    said = lines_said(tp.map, given, "torus:2x2", "default")
    assert len(said) == 1
    assert line in said[0]


@pytest.mark.parametrize(
    ("on", "line"),
    [
        (np.ones((3, 2)), "on: expected a square matrix, found an array of shape (3, 2)"),
        (np.full((4, 4), 0.5), "on[0, 0]: expected a whole number, found 0.5"),
        (np.ones((4, 4)), "distances: expected zeros on the diagonal"),
        (
            graph_of([("a", "b", 1)]),
            "on: expected a machine, a snapshot, a result, a square array of distances, or a file, "
            "found Graph",
        ),
    ],
)
def test_distances_that_are_none(on: Any, line: str) -> None:
    assert lines_said(tp.map, MATRIX, on, "default") == [line]


def test_names_are_as_many_as_tasks(tmp_path: Path) -> None:
    document = tp.map(MATRIX, "torus:2x2", "default").instance.model_dump(mode="json")
    assert "names" not in document["application"]
    document["application"]["names"] = ["a"]
    line = "document: names: expected a name for each of 4 tasks, found 1"
    assert lines_said(tp.load, document) == [line]


def test_a_series_is_a_mapping_by_its_index() -> None:
    for given, labels in ((MATRIX, range(4)), (tp.graph(edges_of(LETTERS)), LETTERS)):
        for order in ([3, 2, 1, 0], [2, 0, 3, 1]):
            nodes = pd.Series([3, 1, 0, 2], index=labels).iloc[order]
            result = tp.map(given, "torus:2x2", mapping=nodes)
            assert result.solution is not None
            assert result.solution.nodes == [3, 1, 0, 2]
    counted = tp.map(edges_of(LETTERS), "torus:2x2", mapping=pd.Series([3, 1, 0, 2]))
    assert counted.solution is not None
    assert counted.solution.nodes == [3, 1, 0, 2]
    for index in ([1, 2, 3, 4], [0, 0, 1, 2], list("abce")):
        series = pd.Series([3, 1, 0, 2], index=index)
        (line,) = lines_said(tp.map, MATRIX, "torus:2x2", mapping=series)
        assert line.startswith("mapping: expected the tasks as the index of a series, found ")
