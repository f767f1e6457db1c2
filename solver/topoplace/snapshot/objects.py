"""Documents of interacting objects: arrays with rules of messages, and what is to be mapped."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Discriminator, Field, Tag

from topoplace.snapshot.schema import MAX_TASKS, Bytes, Model, Name, NodeSet, RoutedMachine, Task

OBJECTS_SCHEMA: Final = "topoplace.objects/1"
APPLICATION_SCHEMA: Final = "topoplace.application/1"

MAX_LOAD = 1 << 40
"""Largest load of an object."""

Load = Annotated[int, Field(ge=0, le=MAX_LOAD)]
Extent = Annotated[int, Field(ge=1, le=MAX_TASKS)]
Shape = Annotated[list[Extent], Field(min_length=1, max_length=8)]


TreeKind = Literal["multicast", "reduction"]


class FixedObject(Model):
    """An object that stays on a node."""

    object: Task
    node: Annotated[int, Field(ge=0)]


class NamedArray(Model):
    """Some consecutive objects, which are the elements of an array in row-major order."""

    name: Name
    shape: Shape


class MessageTree(Model):
    """A message to many, or of many to one, over every link of a tree once (docs/guide/objects.md).

    A multicast goes from the root to the members, a reduction the other way.
    """

    kind: TreeKind
    root: Task
    members: Annotated[list[Task], Field(min_length=1)]
    bytes: Annotated[Bytes, Field(ge=1)]


class ObjectsInstance(Model):
    """Objects with loads, their messages, and the nodes that they may go to, any number on each.

    Message i goes from `sources[i]` to `targets[i]`; beside these there are `trees`. The objects of
    a node have a load of at most `cap` together. If routers pool theirs, it is the objects of a
    router that have a load of at most `cap` for each of its usable nodes.
    """

    schema_version: Annotated[Literal["topoplace.objects/1"], Field(alias="schema")]
    name: Name
    machine: RoutedMachine
    nodes: NodeSet = Field(description="nodes that objects may go to")
    cap: Annotated[int, Field(ge=0, le=MAX_LOAD * MAX_TASKS)]
    pooled: bool = Field(default=False, description="whether the nodes of a router share their cap")
    loads: Annotated[list[Load], Field(min_length=1, max_length=MAX_TASKS)]
    sources: list[Task]
    targets: list[Task]
    bytes: list[Bytes]
    trees: list[MessageTree] = Field(
        default_factory=list, description="multicasts and reductions, on tori and meshes alone"
    )
    fixed: list[FixedObject] = Field(default_factory=list)
    arrays: list[NamedArray] = Field(
        default_factory=list, description="of which the objects are, in their order; all or none"
    )
    source: str | None = Field(default=None, description="where the instance comes from")


# ---- Applications: arrays of objects, and rules of who sends to whom (docs/guide/objects.md) ----


class ObjectArray(NamedArray):
    """An array of objects, all with one load, or each with its own, row-major."""

    load: Load = 1
    loads: list[Load] | None = None


class RuleMessages(Model):
    """Messages by a rule such as ``G(s,*) -> R(s,*)``, each by itself or joined in trees.

    As multicasts, all messages of an element on the left are one tree; as reductions all of an
    element on the right.
    """

    rule: Annotated[str, Field(min_length=1, max_length=256)]
    bytes: Bytes
    periodic: bool = Field(default=False, description="whether sums of an index wrap round")
    cost: Literal["hops", "multicast", "reduction"] = Field(
        default="hops", description="the hops of every message, or the links of trees"
    )


class ListedMessages(Model):
    """Messages between listed elements (row-major numbers) of two arrays, each with its bytes."""

    sender: Name
    receiver: Name
    pairs: list[Annotated[list[Task], Field(min_length=2, max_length=2)]]
    bytes: list[Bytes]


def _form_of_messages(value: object) -> str:
    """Return which form messages have, so that errors speak of that alone."""
    fields = value if isinstance(value, dict) else vars(value) if isinstance(value, Model) else {}
    return "listed" if "pairs" in fields else "by-rule"


class ObjectsApplication(Model):
    """Arrays of objects that send messages to each other."""

    schema_version: Annotated[Literal["topoplace.application/1"], Field(alias="schema")]
    name: Name
    arrays: Annotated[list[ObjectArray], Field(min_length=1, max_length=64)]
    messages: list[
        Annotated[
            Annotated[RuleMessages, Tag("by-rule")] | Annotated[ListedMessages, Tag("listed")],
            Discriminator(_form_of_messages),
        ]
    ]
    source: str | None = Field(default=None, description="where sizes come from, what is assumed")
