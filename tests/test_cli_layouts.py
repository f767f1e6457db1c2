"""`topoplace layouts` and the options that describe a virtual grid."""

from __future__ import annotations

import json

from topoplace.cli import run
from topoplace.cli.map import Grid, grid_application


def test_grid_options_describe_an_application():
    found = grid_application(
        "8x4x2",
        Grid(periodic="xz", message_bytes="8/4,8,1", stencil="full", diagonal_bytes="2,1"),
    )
    assert found.shape == [8, 4, 2]
    assert found.periodic == [True, False, True]
    assert found.bytes == [[8, 4], [8, 8], [1, 1]]
    assert (found.stencil, found.diagonal_bytes) == ("full", [2, 1])
    assert grid_application("8x4", Grid()).bytes == [[1, 1], [1, 1]]


def listed(capsys, *args):
    """Return what `layouts` says, and its document."""
    args = ["layouts", *args]
    assert run(args) == 0
    said = capsys.readouterr().out
    assert run([*args, "--json"]) == 0
    return said, json.loads(capsys.readouterr().out)


def test_the_command_lists_layouts(capsys):
    args = ["--grid", "40x30x25", "--tasks-per-node", "32", "--within", "24x24x24", "--balanced"]
    said, _ = listed(capsys, *args, "--limit", "2")
    assert "10x5x10" in said
    assert "20x6x5" not in said
    assert "geometry: 10x5x10:maxz=12/20x5x5:maxz=6/5x5x20:maxz=24" in said
    _, document = listed(capsys, *args)
    assert document["layouts"][0]["logical"] == [10, 5, 10]
    assert document["num_layouts"] == len(document["layouts"])


def test_the_command_says_when_there_is_no_layout(capsys):
    args = ["--grid", "4x4", "--tasks-per-node", "32", "--within", "2x2x2"]
    said, document = listed(capsys, *args)
    assert "no admissible layout" in said
    assert document == {"layouts": [], "num_layouts": 0, "geometry": ""}
