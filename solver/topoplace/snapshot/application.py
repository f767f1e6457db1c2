"""The mapping instance (``topoplace.mapping/1``): an application, and where its tasks may go.

Strict, like the snapshot. What needs the machine to be judged is checked by
`topoplace.mapping.problem.prepare_mapping`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from topoplace.snapshot.schema import Model, Name, NodeSet, Size, TorusModel

MAPPING_SCHEMA = "topoplace.mapping/1"
MAX_TASKS = 1 << 21

Bytes = Annotated[int, Field(ge=0, le=1 << 53)]
Task = Annotated[int, Field(ge=0, lt=MAX_TASKS)]


class GridApplication(Model):
    """Tasks on a Cartesian grid that exchange halos.

    Task numbers are row-major (the last dimension varies fastest, as `MPI_Cart_create`). Every
    task sends `bytes[d][0]` to its neighbour in the positive direction of dimension d and
    `bytes[d][1]` to the one in the negative direction. With the stencil ``full`` (9-point in two
    dimensions, 27-point in three) it also sends ``diagonal_bytes[k - 2]`` to each of the
    neighbours that differ by one in exactly k dimensions.
    """

    kind: Literal["grid"] = "grid"
    shape: Annotated[list[Size], Field(min_length=1, max_length=4)]
    periodic: Annotated[list[bool], Field(min_length=1, max_length=4)]
    bytes: Annotated[
        list[Annotated[list[Bytes], Field(min_length=2, max_length=2)]],
        Field(min_length=1, max_length=4),
    ]
    stencil: Literal["nearest", "full"] = "nearest"
    diagonal_bytes: Annotated[list[Bytes], Field(max_length=3)] = Field(default_factory=list)


class GraphApplication(Model):
    """Tasks with any communication graph: message i goes from `sources[i]` to `targets[i]`."""

    kind: Literal["graph"] = "graph"
    num_tasks: Annotated[int, Field(ge=1, le=MAX_TASKS)]
    sources: list[Task]
    targets: list[Task]
    bytes: list[Bytes]


class MatrixModel(Model):
    """A machine of routers with one node each, given by the distances between them."""

    kind: Literal["matrix"]
    name: Name
    distances: Annotated[
        list[list[Annotated[int, Field(ge=0, le=1 << 20)]]], Field(min_length=1, max_length=1 << 12)
    ]
    source: str | None = Field(default=None, description="where the figures come from")


def _machine_kind(value: object) -> str:
    """Tell which form of machine a value has, so that errors speak of that form alone."""
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return "matrix" if kind == "matrix" else "torus"


class MappingInstance(Model):
    """An application and the nodes its tasks may go to, at most `tasks_per_node` on each."""

    schema_version: Annotated[Literal["topoplace.mapping/1"], Field(alias="schema")]
    name: Name
    machine: Annotated[
        Annotated[TorusModel, Tag("torus")] | Annotated[MatrixModel, Tag("matrix")],
        Discriminator(_machine_kind),
    ]
    nodes: NodeSet = Field(description="nodes that tasks may go to")
    tasks_per_node: Annotated[int, Field(ge=1, le=1 << 20)]
    application: Annotated[GridApplication | GraphApplication, Field(discriminator="kind")]
    source: str | None = Field(default=None, description="where the instance comes from")
