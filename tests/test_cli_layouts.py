"""`topoplace layouts` and the options that describe a virtual grid."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from topoplace.cli.grid import grid_application
from topoplace.cli.grid import layouts as layouts_command
from topoplace.errors import InputError


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"extents": "4x"}, "--grid"),
        ({"extents": "2x2x2x2x2"}, "--grid"),
        ({"extents": "4096x4096"}, "--grid"),
        ({"extents": "4x4", "periodic": "z"}, "--periodic"),
        ({"extents": "4x4", "periodic": "xx"}, "--periodic"),
        ({"extents": "4x4", "message_bytes": "1,2,3"}, "--bytes"),
        ({"extents": "4x4", "message_bytes": "1/2/3,1"}, "--bytes"),
        ({"extents": "4x4", "message_bytes": "-1,1"}, "--bytes"),
        ({"extents": "4x4", "stencil": "half"}, "--stencil"),
        ({"extents": "4x4", "diagonal_bytes": "1"}, "--diagonal-bytes"),
        ({"extents": "4x4", "stencil": "full", "diagonal_bytes": "1,1"}, "--diagonal-bytes"),
    ],
)
def test_bad_grid_options_name_the_option(options: dict[str, str], field: str) -> None:
    with pytest.raises(InputError) as caught:
        grid_application(**options)
    assert caught.value.field == field


def test_grid_options_describe_an_application() -> None:
    found = grid_application("8x4x2", "xz", "8/4,8,1", "full", "2,1")
    assert found.shape == [8, 4, 2]
    assert found.periodic == [True, False, True]
    assert found.bytes == [[8, 4], [8, 8], [1, 1]]
    assert (found.stencil, found.diagonal_bytes) == ("full", [2, 1])
    assert grid_application("8x4").bytes == [[1, 1], [1, 1]]


@pytest.fixture
def command() -> typer.Typer:
    app = typer.Typer()
    app.command()(layouts_command)
    return app


def test_the_command_lists_layouts(command: typer.Typer) -> None:
    args = ["--grid", "40x30x25", "--tasks-per-node", "32", "--within", "24x24x24"]
    said = CliRunner().invoke(command, [*args, "--balanced", "--limit", "2"])
    assert said.exit_code == 0
    assert "10x5x10" in said.output
    assert "20x6x5" not in said.output
    assert "geometry: 10x5x10:maxz=12/20x5x5:maxz=6/5x5x20:maxz=24" in said.output
    document = json.loads(CliRunner().invoke(command, [*args, "--balanced", "--json"]).output)
    assert document["layouts"][0]["logical"] == [10, 5, 10]
    assert document["num_layouts"] == len(document["layouts"])


def test_the_command_says_when_there_is_no_layout(command: typer.Typer) -> None:
    args = ["--grid", "4x4", "--tasks-per-node", "32", "--within", "2x2x2"]
    said = CliRunner().invoke(command, args)
    assert said.exit_code == 0
    assert "no admissible layout" in said.output
    document = json.loads(CliRunner().invoke(command, [*args, "--json"]).output)
    assert document == {"layouts": [], "num_layouts": 0, "geometry": ""}


@pytest.mark.parametrize("region", ["25x1x1", "4x4", "x"])
def test_the_command_refuses_a_region_outside_the_machine(region: str) -> None:
    with pytest.raises(InputError, match="within"):
        layouts_command(grid="4x4", tasks_per_node=4, within=region)
