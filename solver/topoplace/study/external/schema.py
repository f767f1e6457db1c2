"""The answer of an external allocator (``topoplace.placements/1``, docs/external-allocators.md).

Strict like all documents. Which nodes a request may have is judged by the rules, not here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from topoplace.snapshot.schema import Model, Name, NodeSet, PrismModel

PLACEMENTS_SCHEMA = "topoplace.placements/1"

SchemaField = Annotated[Literal["topoplace.placements/1"], Field(alias="schema")]


class PlacedJob(Model):
    """A request that starts on a torus: its nodes, and its prism unless nodes are scattered."""

    request: Name
    nodes: NodeSet
    prism: PrismModel | None = None


class Placements(Model):
    """Who starts where on a torus or mesh; requests that are not listed do not start."""

    schema_version: SchemaField
    placements: list[PlacedJob]


class TreePlacedJob(Model):
    """A request that starts on a tree: the node of every rank, in rank order."""

    request: Name
    nodes: list[Annotated[str, Field(max_length=1024)]]


class TreePlacements(Model):
    """Who starts where on a tree machine; requests that are not listed do not start."""

    schema_version: SchemaField
    placements: list[TreePlacedJob]
