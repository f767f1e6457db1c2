"""`topoplace layouts`: list the layouts of a virtual grid."""

from __future__ import annotations

from typing import Annotated

import typer

from topoplace.cli.grid_options import (
    DiagonalBytes,
    MessageBytes,
    Periodic,
    Stencil,
    grid_application,
    parse_extents,
)
from topoplace.cli.options import Json
from topoplace.cli.output import print_json, say
from topoplace.cli.shipped_names import machines_like
from topoplace.errors import InputError


def layouts(
    *,
    grid: Annotated[str, typer.Option(metavar="32x32x32", help="Tasks per dimension.")],
    tasks_per_node: Annotated[int, typer.Option(metavar="N", help="Most tasks on a node.")],
    within: Annotated[str, typer.Option(metavar="12x8x12", help="Region, in routers.")],
    on: Annotated[
        str,
        typer.Option(
            metavar="MACHINE",
            help="A machine: a file, a shipped name or torus:4x4x4.",
            autocompletion=machines_like,
        ),
    ] = "blue_waters",
    periodic: Periodic = "",
    message_bytes: MessageBytes = None,
    stencil: Stencil = "nearest",
    diagonal_bytes: DiagonalBytes = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Only layouts with equal cells.")
    ] = False,
    stagger: Annotated[
        bool, typer.Option("--stagger", help="List staggered folded layouts too.")
    ] = False,
    limit: Annotated[int, typer.Option(metavar="N", help="List at most so many.")] = 20,
    as_json: Json = False,
) -> None:
    """List every admissible layout of a virtual grid in a region, best first."""
    from topoplace.mapping.graph import grid_of  # noqa: PLC0415 - heavy
    from topoplace.mapping.layouts.candidates import (  # noqa: PLC0415 - heavy
        enumerate_layouts,
        geometry_request,
        one_per_prism,
        rank_layouts,
    )
    from topoplace.report.layouts import layout_document, layouts_table  # noqa: PLC0415 - heavy
    from topoplace.snapshot.machines import load_torus  # noqa: PLC0415 - heavy
    from topoplace.snapshot.state import torus_of  # noqa: PLC0415 - heavy

    if tasks_per_node < 1:
        raise InputError("a positive integer", field="--tasks-per-node", value=tasks_per_node)
    if limit < 1:
        raise InputError("a positive integer", field="--limit", value=limit)
    torus = torus_of(load_torus(on))
    region = parse_extents(within, "--within")
    if len(region) != torus.num_dims or any(
        e > n for e, n in zip(region, torus.shape, strict=True)
    ):
        raise InputError(f"a region inside {torus.text}", field="--within", value=within)
    virtual = grid_of(grid_application(grid, periodic, message_bytes, stencil, diagonal_bytes))
    found = enumerate_layouts(
        virtual,
        tasks_per_node,
        torus.nodes_per_router,
        region,
        rings=[w and e == n for e, n, w in zip(region, torus.shape, torus.wrap, strict=True)],
        balanced=balanced,
        stagger=stagger,
    )
    ranked = one_per_prism(rank_layouts(found, virtual, torus, tasks_per_node))
    geometry = geometry_request(ranked, torus)
    if as_json:
        print_json(
            {
                "layouts": [layout_document(entry) for entry in ranked[:limit]],
                "num_layouts": len(ranked),
                "geometry": geometry,
            }
        )
        return
    if not ranked:
        say(f"no admissible layout of {grid} in {within}", as_json=False)
        return
    say(layouts_table(ranked[:limit]), as_json=False)
    shown = min(limit, len(ranked))
    say(f"{shown} of {len(ranked)} layouts, best first", as_json=False)
    say(f"geometry: {geometry}", as_json=False)
