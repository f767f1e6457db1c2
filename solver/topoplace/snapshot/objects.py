"""Documents of applications: arrays of objects, and rules of who sends to whom."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Discriminator, Field, Tag

from topoplace.snapshot.schema import Bytes, Load, Model, Name, NamedArray, Task

APPLICATION_SCHEMA: Final = "topoplace.application/1"


class ObjectArray(NamedArray):
    """An array of objects, all with one load, or each with its own, row-major."""

    load: Load = 1
    loads: list[Load] | None = None


class RuleMessages(Model):
    """Messages by a rule such as ``G(s,*) -> R(s,*)``, each by itself or joined in trees.

    As multicasts, all messages of an element on the left are one tree; as reductions all of an
    element on the right. Several rules, with ``;`` between them, are joined like one.
    """

    rule: Annotated[str, Field(min_length=1, max_length=4096)]
    bytes: Bytes
    periodic: bool = Field(default=False, description="whether sums of an index wrap round")
    cost: Literal["hops", "multicast", "reduction"] = Field(
        default="hops", description="the hops of every message, or the links of trees"
    )
    once: Literal["link", "node"] = Field(
        default="link",
        description="`node`: a tree costs the hops to every node that has members, and without a "
        "`cost` it is a multicast",
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
