"""Tables of fields: what of an object restricts, where a name leads, and what is not known."""

from __future__ import annotations

import pytest

from topoplace.formats.declared import (
    MAX_VALUE,
    UNKNOWN,
    Use,
    given_text,
    table,
    unknown_fields,
    values_at,
)

TABLE = table(
    "a job",
    """
    read nodes, parts[].size
    neutral name, owner.name
    restricts pool, parts[].pool: always
    restricts owner.quota -> limit: always: it is counted
    restricts state: it is not ready
    depends late/soon: the reader \
        finds out
    """,
    {"state": lambda value: "" if value == "ready" else "x"},
)
RAW = {
    "nodes": 3,
    "pool": {"a": 1},
    "parts": [{"size": 1, "pool": "b"}, {"pool": ["c", "d"]}, {"pool": "b", "odd": 1}],
    "owner": {"quota": 5, "mail": "m"},
    "state": "ready",
    "late/soon": 1,
    "new": {"x": 1},
}


def test_a_line_says_what_is_done_with_its_fields() -> None:
    uses = {field.name: (field.use, field.about) for field in TABLE.fields}
    assert uses["nodes"] == uses["parts[].size"] == (Use.READ, "")
    assert uses["owner.name"] == (Use.NEUTRAL, "")
    assert uses["owner.quota"] == (Use.RESTRICTS, "always: it is counted")
    assert uses["late/soon"] == (Use.RESTRICTS, "the reader finds out")
    assert [field.held_by for field in TABLE.fields[4:]] == [
        *("pool", "pool", "limit", "state", "soon")
    ]


def test_what_restricts_comes_with_value_option_and_place() -> None:
    found = [(one.option, one.value, one.where) for one in TABLE.left_out(RAW, "jobs[0]")]
    assert found == [
        ("pool", '{"a":1}', "jobs[0].pool"),
        ("pool", "b,c,d", "jobs[0].parts[].pool"),
        ("limit", "5", "jobs[0].owner.quota"),
    ]
    assert [one.value for one in TABLE.left_out({"state": "held"}, "")] == ["x"]
    assert TABLE.left_out({"pool": "", "parts": [{}], "owner": {"quota": 0}}, "") == []


def test_what_is_unknown_is_named_by_its_path() -> None:
    assert TABLE.unknown_in(RAW) == ["new", "owner.mail", "parts[].odd"]
    assert TABLE.unknown(["nodes", "new"]) == ["new"]
    (one,) = unknown_fields(["b", "a", "b"])
    assert (one.option, one.value, one.request) == (UNKNOWN, "a, b", None)
    assert unknown_fields([]) == []
    assert len(unknown_fields(map(str, range(1000)))[0].value) == 1000


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("nodes", [3]),
        ("owner.quota", [5]),
        ("parts[].size", [1]),
        ("parts[].pool", ["b", ["c", "d"], "b"]),
        ("nodes.more", []),
        ("owner[].quota", []),
        ("gone.more", []),
    ],
)
def test_names_lead_into_objects_and_lists(name: str, values: list[object]) -> None:
    assert [*values_at(RAW, name)] == values


def test_keys_with_dots_count_as_they_are() -> None:
    assert [*values_at({"a.b/c": 1, "a": {"b/c": 2}}, "a.b/c")] == [1]
    assert [*values_at({"x": [1, 2]}, "x[]")] == [1, 2]


def test_values_are_texts_and_not_too_long() -> None:
    assert [given_text(value) for value in ("x", 0, [1, {"a": 2}], {}, None)] == [
        *("x", "", '1,{"a":2}', "", "")
    ]
    (one,) = TABLE.left_out({"pool": "y" * 999}, "")
    assert len(one.value) == MAX_VALUE
    assert one.value.endswith("...")
