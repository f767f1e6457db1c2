"""The documents of instances: snapshots (``topoplace.snapshot/1``) and mappings.

Strict: unknown fields, wrong types and out-of-range numbers are errors. What needs the machine to
be judged (node numbers, geometries, overlaps) is checked by `state.prepare`,
`tree_state.prepare_tree` and `mapping.problem.prepare_mapping`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    Tag,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    model_serializer,
)

from topoplace.errors import UNSEEN, InputError
from topoplace.kinds import kind_of_machine, placing
from topoplace.machine.hostlist import names_by_number

if TYPE_CHECKING:
    from topoplace.machine.matrix import MatrixMachine

SNAPSHOT_SCHEMA: Final = "topoplace.snapshot/1"
MAX_PRIORITY = 1_000_000
LOWEST = -(1 << 31)
MAX_WEIGHT = 1_000

Rank = Annotated[int, Field(ge=LOWEST, le=-LOWEST)]
"""A priority as schedulers compare them, which counts in no value."""

NAME_PATTERN: Final = rf"^[^\s,;{UNSEEN}]+$"
Name = Annotated[str, Field(min_length=1, max_length=128, pattern=NAME_PATTERN)]
MachineName = Annotated[str, Field(min_length=1, max_length=128)]
"""Not a `Name`: what is no machine is told by what machines there are, not by its characters."""

NodeSet = Annotated[str, Field(max_length=4_000_000, pattern=r"^[A-Za-z0-9_.,\[\]\- ]*$")]
"""Node numbers as ranges (torus), or node names as a Slurm host list (tree)."""

MAX_SIZE: Final = 1 << 21
Size = Annotated[int, Field(ge=1, le=MAX_SIZE)]
Coordinate = Annotated[int, Field(ge=0, le=1 << 21)]
Extents = Annotated[list[Size], Field(min_length=1, max_length=8)]
Origin = Annotated[list[Coordinate], Field(min_length=1, max_length=8)]


class Model(BaseModel):
    """Base of all documents: strict, closed and immutable."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        populate_by_name=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
    )


def optional(about: str) -> Any:
    """Return a field that may be null or left out, with what it says."""
    return Field(default=None, description=about)


class _Sparse(Model):
    """A document in which some fields are not written where they have their defaults."""

    sparse: ClassVar[Mapping[str, Any]] = {}
    """The defaults of these fields."""

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        every = write(self).items()
        return {k: v for k, v in every if k not in self.sparse or v != self.sparse[k]}


class Communication(StrEnum):
    """How a job shares links: `strict` never, `tolerant` with tolerant jobs, `none` uses none.

    On a tree a job with `none` is compute-intensive, any other communication-intensive.
    """

    STRICT = "strict"
    TOLERANT = "tolerant"
    NONE = "none"


class Pattern(StrEnum):
    """Communication pattern of a collective or a halo exchange (Mishra 2020, section 3.3)."""

    RECURSIVE_DOUBLING = "rd"
    VECTOR_DOUBLING = "rhvd"
    BINOMIAL = "binomial"
    RING = "ring"
    STENCIL_2D = "stencil2d"
    STENCIL_3D = "stencil3d"


class PatternUse(Model):
    """A pattern of a job: its share of the job's run time in percent, and its message size."""

    pattern: Annotated[Pattern, Field(strict=False)]
    share: Annotated[int, Field(ge=1, le=100)] = 100
    message_bytes: Annotated[int, Field(ge=1, le=1 << 40)] = 1


Tidy = Callable[[str], str]
"""Shortens a node set."""

Machine = TypeVar("Machine", bound="MachineDocument")

Seconds = Annotated[float, Field(ge=0)]

CommunicationField = Annotated[Communication, Field(strict=False)]


FREE_PREFIX: Final = "free:"
"""Begins the names that certificates have for anchored prisms that stay free; no request's does."""

RESERVATION_PREFIX: Final = "reservation:"
"""Begins the names of running jobs that are reservations: these never move or end."""

SPARE_PREFIX: Final = "spare:"
"""Begins the names of running jobs that hold a spare: these never move, and end if it is used."""


class AnchoredModel(Model):
    """A shape that jobs may have, at anchors: ``seed + k * spacing`` in every dimension, wrapped.

    Slurm's `topology/torus3d` calls the fields `dims`, `anchor_seed` and `anchor_spacing`; it names
    dimensions x, y, z, of which x varies fastest, so that its dimensions are ours reversed.
    """

    dims: Extents
    seed: Origin | None = Field(default=None, description="per dimension; default all 0")
    spacing: Extents | None = Field(default=None, description="per dimension; default `dims`")

    def normal(self) -> Self:
        """Return it with its defaults written out."""
        seed, spacing = self.seed or [0] * len(self.dims), self.spacing or self.dims
        return self.model_copy(update={"seed": seed, "spacing": spacing})


class MachineDocument(_Sparse):
    """Base of the documents of machines: what others ask of one, whatever its kind.

    Attributes
    ----------
    has_contention
        Whether jobs hold whole nodes below switches and may have patterns, so that the cost of
        their contention can be an objective.
    nameless
        Of a machine whose nodes have numbers and may have `names`, the field with those that may
        have none.
    """

    has_contention: ClassVar[bool] = False
    nameless: ClassVar[str] = ""

    @property
    def num_nodes(self) -> int | None:
        """How many nodes it has, which have numbers; None of a machine whose nodes have names."""
        return None

    def matrix(self) -> MatrixMachine | None:
        """Return the distances between all nodes; None if they follow its grid or its levels."""
        return None

    @property
    def node_names(self) -> Sequence[str]:
        """What nodes that have numbers are called, nothing for one without a name; or none."""
        if not self.nameless or self.num_nodes is None:
            return ()
        names, others = getattr(self, "names", None), getattr(self, self.nameless)
        return names_by_number(names, self.num_nodes, others, self.nameless)

    @property
    def num_dims(self) -> int | None:
        """How many dimensions the prisms of its jobs have; None where jobs have no prisms."""
        return None

    @property
    def domain_levels(self) -> Sequence[str]:
        """The names of its levels of domains, top first; none of a machine that names none."""
        return ()

    @property
    def has_blocks(self) -> bool:
        """Whether its domains are the blocks of Slurm's topology/block, and groups of these."""
        return False

    def only(
        self,
        model: type[Machine],
        expected: str,
        *,
        field: str = "machine.kind",
        value: str | None = None,
    ) -> Machine:
        """Return the machine itself, where just those of one model will do.

        Raises
        ------
        InputError
            Saying what is expected, if it is of another model; of a `value`, by default its kind.
        """
        if not isinstance(self, model):
            raise InputError(expected, field=field, value=value or getattr(self, "kind", None))
        return self

    def normal(self, tidy: Tidy, ordered: Tidy) -> Self:
        """Return it with its defaults written out, and its node sets in their shortest form.

        Parameters
        ----------
        tidy, ordered
            Shorten a node set, and a host list whose order has a meaning.
        """
        return self


class TorusModel(MachineDocument):
    """A torus or mesh machine.

    Every node is of `default_class` unless `classes` or `service` names it; service nodes run
    no job, but their routers route.
    """

    sparse: ClassVar[Mapping[str, Any]] = {"names": None}
    nameless: ClassVar[str] = "service"

    kind: Literal["torus"] = "torus"
    name: Name
    shape: Extents
    wrap: list[bool] | None = optional("per dimension; default all true")
    bandwidth: list[Size] | None = optional("per dimension; default all 1")
    nodes_per_router: Annotated[int, Field(ge=1, le=1024)] = 1
    default_class: Name = "compute"
    classes: dict[Name, NodeSet] = Field(
        default_factory=dict, description="nodes of every class but the default one"
    )
    service: NodeSet = Field(default="", description="service nodes")
    names: NodeSet | None = optional(
        "what nodes are called, as a host list in the order of their numbers: all of them, or all "
        "but the service nodes"
    )
    anchored: Annotated[list[AnchoredModel], Field(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="the only prisms that jobs may have (Slurm's topology/torus3d: `placements`)",
    )
    source: str | None = optional("where the figures come from")

    @property
    def num_nodes(self) -> int:
        """How many nodes it has."""
        return math.prod(self.shape) * self.nodes_per_router

    @property
    def num_dims(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    def normal(self, tidy: Tidy, ordered: Tidy) -> Self:
        """Return it with its defaults written out, and its node sets in their shortest form."""
        update = {
            "wrap": self.wrap or [True] * len(self.shape),
            "bandwidth": self.bandwidth or [1] * len(self.shape),
            "classes": {name: tidy(nodes) for name, nodes in self.classes.items()},
            "service": tidy(self.service),
            "names": self.names and ordered(self.names),
            "anchored": self.anchored and [one.normal() for one in self.anchored],
        }
        return self.model_copy(update=update)


class SwitchModel(Model):
    """A switch: a leaf lists its nodes, any other one its child switches, as host lists."""

    name: Name
    nodes: NodeSet | None = None
    switches: NodeSet | None = None


class TreeModel(MachineDocument):
    """A switch tree, or a fat tree whose upper switches share children (Slurm topology.conf).

    A switch has either nodes or switches. The order of the leaves, and of the nodes on each, is
    the order in which ties are broken.
    """

    has_contention = True

    kind: Literal["tree"]
    name: Name
    switches: Annotated[list[SwitchModel], Field(min_length=1)]
    source: str | None = optional("where the figures come from")

    def normal(self, tidy: Tidy, ordered: Tidy) -> Self:
        """Return it with its host lists in their shortest form."""
        switches = []
        for switch in self.switches:
            lists = switch.model_dump(include={"nodes", "switches"}, exclude_none=True)
            update = {field: ordered(text) for field, text in lists.items()}
            switches.append(switch.model_copy(update=update))
        return self.model_copy(update={"switches": switches})


class TreeObjective(StrEnum):
    """What counts on a switch tree after the nodes that start.

    The fewest `domains` used, level by level, or the least cost of `contention` (Mishra 2020).
    """

    DOMAINS = "domains"
    CONTENTION = "contention"


Amounts = Annotated[
    dict[Name, Annotated[int, Field(ge=0, le=1 << 30)]], Field(min_length=1, max_length=16)
]
"""How much of every resource, by its name."""


class HostsModel(Model):
    """Hosts of one domain that have the same capacity.

    `domains` names the domains they are in, one for each level above the hosts, top first; a name
    says which domain of its parent it is, so that two parents may use the same.
    """

    hosts: NodeSet
    domains: list[Name] = Field(default_factory=list, max_length=15)
    capacity: Amounts = Field(default={"slots": 1}, description="of each host, by resource")


class HierarchyModel(MachineDocument):
    """Domains within domains, and hosts that hold several units of several resources.

    `levels` names the levels, top first; the last one is that of the hosts. The order of the hosts
    is the order in which ties are broken.
    """

    sparse = {"fabrics": False}

    kind: Literal["hierarchy"]
    name: Name
    levels: Annotated[list[Name], Field(min_length=1, max_length=16)]
    hosts: Annotated[list[HostsModel], Field(min_length=1)]
    block_sizes: Annotated[list[Size], Field(max_length=16)] | None = Field(
        default=None,
        description="of Slurm's topology/block: BlockSizes; base blocks are the level above hosts",
    )
    fabrics: bool = Field(
        default=False,
        description="whether nothing joins the domains of the top level: what is together lies in "
        "one of them",
    )
    source: str | None = optional("where the figures come from")

    @property
    def domain_levels(self) -> Sequence[str]:
        """The names of its levels of domains, top first."""
        return self.levels

    @property
    def has_blocks(self) -> bool:
        """Whether its domains are the blocks of Slurm's topology/block, and groups of these."""
        return self.block_sizes is not None


class CubesModel(MachineDocument):
    """A pod of equal cubes of chips that optical switches join (TPU v4).

    Chips are numbered cube by cube, the last dimension fastest.
    """

    kind: Literal["cubes"]
    name: Name
    cubes: Size
    side: Annotated[list[Size], Field(min_length=1, max_length=4)] = Field(
        default=[4, 4, 4], description="chips of a cube along each dimension"
    )
    source: str | None = optional("where the figures come from")

    @property
    def num_nodes(self) -> int:
        """How many chips it has."""
        return self.cubes * math.prod(self.side)


MachineModel = TorusModel | TreeModel | HierarchyModel | CubesModel
"""A machine of any kind."""


class PrismModel(Model):
    """A prism: origin and extents in routers."""

    origin: Origin
    extents: Extents


# ---- Applications: what their tasks send each other ----------------------------------------------

MAX_TASKS = 1 << 21

Bytes = Annotated[int, Field(ge=0, le=1 << 53)]
Task = Annotated[int, Field(ge=0, lt=MAX_TASKS)]


TaskName = Annotated[str, Field(min_length=1, max_length=128, pattern=rf"^[^{UNSEEN}]+$")]


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

    @property
    def num_tasks(self) -> int:
        """Number of tasks."""
        return math.prod(self.shape)


class GraphApplication(_Sparse):
    """Tasks with any communication graph: message i goes from `sources[i]` to `targets[i]`."""

    sparse = {"names": None}

    kind: Literal["graph"] = "graph"
    num_tasks: Annotated[int, Field(ge=1, le=MAX_TASKS)]
    sources: list[Task]
    targets: list[Task]
    bytes: list[Bytes]
    names: list[TaskName] | None = optional("what the tasks are called, for people")


class AxisModel(Model):
    """An axis of a parallelism grid, and what ranks that differ on it alone send each other.

    Every rank sends `bytes` to all others of its line (``all``), to the next one round a ``ring``,
    or to its neighbours on a ``line``.
    """

    name: Name
    size: Size
    pattern: Literal["all", "ring", "line"]
    bytes: Bytes


class ParallelismApplication(Model):
    """Ranks of a training job on a grid of data, tensor, pipeline, expert groups and the like.

    Ranks are numbered row-major: the last axis varies fastest.
    """

    kind: Literal["parallelism"] = "parallelism"
    axes: Annotated[list[AxisModel], Field(min_length=1, max_length=6)]

    @property
    def num_tasks(self) -> int:
        """Number of ranks."""
        return math.prod(axis.size for axis in self.axes)


AnyApplication = GridApplication | GraphApplication | ParallelismApplication

MAX_LOAD = 1 << 40
"""Largest load of an object."""

Load = Annotated[int, Field(ge=0, le=MAX_LOAD)]
Extent = Annotated[int, Field(ge=1, le=MAX_TASKS)]
TreeKind = Literal["multicast", "reduction"]


class FixedObject(Model):
    """An object that stays on a node."""

    object: Task
    node: Annotated[int, Field(ge=0)]


class Moves(Model):
    """Where tasks are now, and how many of them at most may go to another node."""

    nodes: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=MAX_TASKS)] = Field(
        description="node of every task now"
    )
    most: Annotated[int, Field(ge=0, le=MAX_TASKS)]


class NamedArray(Model):
    """Some consecutive objects, which are the elements of an array in row-major order."""

    name: Name
    shape: Annotated[list[Extent], Field(min_length=1, max_length=8)]


class MessageTree(Model):
    """A message to many, or of many to one (docs/guide/objects.md).

    A multicast goes from the root to the members, a reduction the other way: over every link of a
    tree once, or once between the root and every node that has members.
    """

    kind: TreeKind
    root: Task
    members: Annotated[list[Task], Field(min_length=1)]
    bytes: Annotated[Bytes, Field(ge=1)]
    once: Literal["link", "node"] = Field(
        default="link", description="with `node` the nodes of a router with pooled caps are one"
    )


class ObjectsGraph(Model):
    """Objects with loads: message i goes from `sources[i]` to `targets[i]`; `trees` join others."""

    kind: Literal["objects"] = "objects"
    loads: Annotated[list[Load], Field(min_length=1, max_length=MAX_TASKS)]
    sources: list[Task]
    targets: list[Task]
    bytes: list[Bytes]
    trees: list[MessageTree] = Field(
        default_factory=list,
        description="multicasts and reductions; those once per link on tori and meshes alone",
    )
    arrays: list[NamedArray] = Field(
        default_factory=list, description="of which the objects are, in their order; all or none"
    )

    @property
    def num_tasks(self) -> int:
        """Number of objects."""
        return len(self.loads)


class TasksModel(Model):
    """The tasks of a job, and how many of them a node takes at most."""

    application: Annotated[AnyApplication, Field(discriminator="kind")]
    per_node: Annotated[int, Field(ge=1, le=1 << 20)] = 1


# ---- Jobs ----------------------------------------------------------------------------------------

ON_HIERARCHIES = frozenset(
    (
        *("takes", "segments", "required", "preferred", "exclusive"),
        *("spread", "balance", "at_most", "parts", "apart", "contiguous"),
    )
)
"""Fields of jobs that only hierarchies have; on other machines documents leave them out."""

BY_SETS = frozenset(("eligible", "excluded", "one_of"))
"""Fields of jobs by which they may have some nodes alone, on tori, hierarchies and trees."""

ON_TORI = frozenset(("tasks", "segment", "near"))
"""Fields of jobs that only tori have; on other machines documents leave them out."""

OF_GANGS = frozenset(("gang", "asked"))
"""Fields of running jobs that only hierarchies and trees have."""


class _Job(_Sparse):
    """What running and waiting jobs share: how they are written."""

    sparse = dict.fromkeys(
        ON_HIERARCHIES | ON_TORI | BY_SETS | {"ends", "planned", "rank", "evicts"}
    )


class Order(StrEnum):
    """What decides who starts.

    ``value`` is the most nodes, each times its priority. In the order ``priority`` each request
    starts that fits alongside those before it that do; those of higher priority come first, and
    equal ones stand as in the queue. With ``backfill``, the first that waits has a reservation
    also, at the earliest time at which it can start, and others start only if they do not delay it.
    One that cannot start within the `window` of the snapshot has none, and the next one has it.
    """

    VALUE = "value"
    PRIORITY = "priority"
    BACKFILL = "backfill"


class Counted(StrEnum):
    """What the value of a request that starts counts, each times its priority.

    Of ``gpus``, requests without any have no value; their nodes are a level of their own.
    """

    NODES = "nodes"
    GPUS = "gpus"
    JOBS = "jobs"


WITHOUT_GPUS: Final = "without_gpus"
"""The level of the nodes of requests without GPUs, where these count."""


class Apart(Model):
    """Jobs of one `name` share no domain of a level with each other; others may be in it."""

    level: Name
    name: Name


SET_PATTERN: Final = r"^[^\s&|!()]+$"
SetName = Annotated[str, Field(pattern=SET_PATTERN, max_length=1024)]
"""Of a set of nodes, such as a partition or a feature."""

Expression = Annotated[str, Field(min_length=1, max_length=10_000)]
"""Names of sets, joined by ``&`` and ``|``, with ``!`` and parentheses."""


class Segment(Model):
    """So many units of a domain of a level: of `segments`, every domain gets a multiple of them."""

    size: Size
    level: Name


class Near(Model):
    """At least so many routers with a node of a set, inside a prism or linked to one of its own.

    Nodes that are down do not count; service nodes do, whoever else has them near.
    """

    routers: Size
    of: Expression


class Part(Model):
    """A part of a request on a hierarchy, such as a leader or its workers.

    Attributes
    ----------
    nodes
        Units of the part; several may share a host.
    takes
        What a unit takes of its host.
    required, preferred
        Level of which one domain has to hold, or should hold, all units.
    exclusive
        Level whose domains it shares with nobody else, running or waiting.
    spread
        A level, and how many units a domain of it gets at most.
    apart
        Levels and names: no two jobs with the same name share a domain of the level.
    balance
        Level whose domains, where the part uses them, should have as many units each as can be.
    group
        Parts of a group count as one: they have one required domain, and a domain that several of
        them use counts once. A part without group is alone.
    eligible
        The hosts it may have, as an expression over the `sets` of the snapshot; all by default.
    excluded
        Hosts it may not have.
    """

    id: Name
    nodes: Size
    takes: Amounts = Field(default={"slots": 1})
    segments: Annotated[list[Segment], Field(max_length=15)] = Field(default_factory=list)
    required: Name | None = None
    preferred: Name | None = None
    exclusive: Name | None = None
    spread: Segment | None = None
    apart: Annotated[list[Apart], Field(max_length=15)] = Field(default_factory=list)
    balance: Name | None = None
    group: Name | None = None
    eligible: Expression | None = optional("hosts it may have")
    excluded: NodeSet | None = optional("hosts it may not have")


class Plan(Model):
    """When and where a scheduler plans to start a job: it is no rule, and audits read it."""

    at: Annotated[int, Field(ge=0, le=1 << 40)] = Field(description="seconds from now")
    nodes: NodeSet


class Request(_Job):
    """A job that waits.

    `shapes` is a geometry string (default: any prism); `region` names a region the whole prism
    must lie in, or several, of which it is the first with enough usable nodes; `priority`
    multiplies the value of each node started.

    On hierarchies `nodes` counts units: what a host has room for, several perhaps.
    """

    id: Name
    nodes: Annotated[int, Field(ge=1, le=1 << 31)]
    node_class: Annotated[Name | None, Field(alias="class")] = None
    priority: Annotated[int, Field(ge=1, le=MAX_PRIORITY)] = 1
    shapes: Annotated[str, Field(max_length=100_000)] | None = None
    region: Name | Annotated[list[Name], Field(min_length=1, max_length=256)] | None = None
    communication: CommunicationField = Communication.STRICT
    application: str | None = None
    tasks: TasksModel | None = optional(
        "tori and meshes: what is mapped to its nodes (level `hop-bytes`)"
    )
    patterns: list[PatternUse] | None = optional(
        "tree machines: what it minimises the cost of; shares add up to 100 at most"
    )
    segment: Size | None = optional(
        "anchored prisms: nodes of every prism, of which the job has several"
    )
    near: Near | None = optional(
        "tori and meshes: routers, such as those of I/O nodes, in its prism or next to it"
    )
    takes: Amounts | None = optional("hierarchies: what a unit takes of its host; default one slot")
    segments: Annotated[list[Segment], Field(max_length=15)] | None = Field(
        default=None, description="hierarchies: units that stay together, by level"
    )
    required: Name | None = optional("hierarchies: level of which one domain holds all units")
    preferred: Name | None = optional(
        "hierarchies: level of which one domain should hold all units"
    )
    exclusive: Name | None = optional("hierarchies: level whose domains it shares with nobody")
    spread: Segment | None = optional("hierarchies: units that a domain of a level gets at most")
    apart: Annotated[list[Apart], Field(max_length=15)] | None = Field(
        default=None, description="hierarchies: jobs with which it shares no domain"
    )
    balance: Name | None = optional("hierarchies: level over whose domains to be even")
    at_most: Segment | None = optional("hierarchies: the most domains of a level")
    contiguous: SetName | None = optional(
        "hierarchies: a set; its units are on hosts that follow each other there, one on each"
    )
    eligible: Expression | None = optional(
        "the nodes it may have, such as `acc & (ib | !slow)` of the `sets`"
    )
    excluded: NodeSet | None = optional("nodes it may not have")
    one_of: Annotated[list[Expression], Field(min_length=1, max_length=256)] | None = optional(
        "sets of nodes, as expressions; all its nodes are in one of these"
    )
    parts: Annotated[list[Part], Field(min_length=1, max_length=4)] | None = Field(
        default=None, description="hierarchies: parts that start together, instead of the above"
    )
    walltime: Annotated[int, Field(ge=0, le=1 << 40)] | None = Field(
        default=None, description="requested seconds"
    )
    submitted: Annotated[int, Field(ge=0, le=1 << 40)] | None = Field(
        default=None, description="seconds since the log's start"
    )
    planned: Plan | None = optional("hierarchies: when and where its scheduler plans to start it")
    rank: Rank | None = optional(
        "what `repack --evict lower` compares with the `priority` of running jobs; null: `priority`"
    )
    evicts: list[Name] | None = optional(
        "`repack --evict lower` ends jobs of these queues only for it; null: of any"
    )


class RunningJob(_Job):
    """A job that runs and stays.

    With `prism`, the job holds all routers of the prism and uses the links of its rows; without,
    it holds the routers of its nodes and uses the links of all routes between them.
    """

    sparse = _Job.sparse | dict.fromkeys(
        ("priority", "exclusive", "queue", "turn", "left_out", *OF_GANGS)
    )

    id: Name
    nodes: NodeSet
    prism: PrismModel | None = None
    communication: CommunicationField = Communication.STRICT
    patterns: list[PatternUse] | None = optional("tree machines: how the job communicates")
    takes: Amounts | None = optional("hierarchies: of each of its hosts; default all they have")
    apart: list[Apart] | None = optional("hierarchies: jobs with which it shares no domain")
    ends: Annotated[int, Field(ge=0, le=1 << 40)] | None = optional(
        "seconds from now by which it ends, as its time limit says; null if it has none"
    )
    application: str | None = None
    priority: Rank | None = optional(
        "`repack --evict lower` ends jobs of lower priority only; null: none is lower"
    )
    exclusive: Name | None = optional("hierarchies: level whose domains it shares with nobody")
    queue: Name | None = optional("in which it waited before: see `evicts` of a request")
    gang: Name | None = optional("hierarchies: jobs of one gang move and end together")
    asked: Request | None = optional(
        "hierarchies: what it, or its gang, asked for: the rules that hold wherever it moves"
    )
    left_out: list[LeftOut] | None = optional(
        "what restricts it, or its gang, and is not modelled: it neither moves nor is replaced"
    )
    turn: Annotated[int, Field(ge=0, le=1 << 31)] | None = optional(
        "how many requests of the queue its scheduler would look at before it"
    )


class LeftOut(_Sparse):
    """An option of another tool's file that restricts where or when a job runs: not modelled.

    A request that has one is held: it does not start. Without a request it holds nobody, but
    decisions in which it could matter are not judged.
    """

    sparse = {"certain": False}

    request: Name | None = optional("of the queue")
    option: Name = Field(description="what releases the request: `place --ignore OPTION`")
    value: Annotated[str, Field(max_length=1000)] = ""
    where: Annotated[str, Field(max_length=1000)] | None = Field(
        default=None, description="where in the file it stood"
    )
    certain: bool = Field(
        default=False,
        description="whether it keeps the request from starting now, whatever is free",
    )


Weight = Annotated[int, Field(ge=0, le=MAX_WEIGHT)]


class ShapeWeights(Model):
    """Site weights of the shape score (Fiedler 2014, "T-A Scheduler's Criteria").

    The score of a prism is ``bisection * b - volume * v - hops * h - idle * i - wrap * w`` with
    b the bisection bandwidth per node (`machine.bisection_per_node`) in thousandths of the
    slowest link's bandwidth, rounded down; v the prism's routers, h its largest hop count, i the
    idle usable nodes of the job's class left inside, w the number of dimensions in which traffic
    leaves the prism.
    """

    bisection: Weight = 4
    volume: Weight = 1
    hops: Weight = 4
    idle: Weight = 1
    wrap: Weight = 100


def _form(*known: str, of_text: str) -> Callable[[object], str]:
    """Return what tells which form of machine a value has, so that errors speak of that alone."""

    def form(value: object) -> str:
        if isinstance(value, str):
            return of_text
        kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
        return kind if kind in known else "torus"

    return form


def _of_any_kind(value: object, validate: ValidatorFunctionWrapHandler) -> Any:
    """Return a machine; that of a kind of another package by its own model."""
    raw = isinstance(value, dict)
    machine = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    kind = None if machine in _MACHINES else kind_of_machine(str(machine))
    if kind is None:
        if isinstance(machine, str) and machine not in _MACHINES:
            one_of: Any = Literal
            known = one_of[tuple(one.machine for one in placing())]
            create_model("Machine", kind=(known, ...)).model_validate({"kind": machine})
        return validate(value)
    return kind.get("model").model_validate(value) if raw else value


_MACHINES = (None, "torus", "tree", "hierarchy", "cubes", "matrix")


class Snapshot(_Sparse):
    """A machine at one moment: node states, running jobs, the queue, and the site's weights."""

    sparse = dict(  # noqa: C408
        left_out=[],
        ignored=[],
        sets={},
        order=Order.VALUE,
        window=None,
        value=Counted.NODES,
        free=None,
    )

    schema_version: Annotated[Literal["topoplace.snapshot/1"], Field(alias="schema")]
    name: Name
    machine: Annotated[
        Annotated[TorusModel, Tag("torus")]
        | Annotated[TreeModel, Tag("tree")]
        | Annotated[HierarchyModel, Tag("hierarchy")]
        | Annotated[CubesModel, Tag("cubes")]
        | Annotated[MachineName, Tag("name")],
        Discriminator(_form("tree", "hierarchy", "cubes", of_text="name")),
        WrapValidator(_of_any_kind),
        SerializeAsAny(),
    ] = Field(description="a machine, or the name of a shipped one")
    down: NodeSet = Field(default="", description="nodes that are down or draining")
    running: list[RunningJob] = Field(default_factory=list)
    regions: dict[Name, list[PrismModel]] = Field(
        default_factory=dict, description="named router sets, each a union of prisms"
    )
    sets: dict[SetName, NodeSet] = Field(
        default_factory=dict, description="tori, hierarchies and trees: named sets of nodes"
    )
    queue: list[Request] = Field(default_factory=list)
    order: Annotated[Order, Field(strict=False)] = Field(
        default=Order.VALUE, description="what decides who starts"
    )
    window: Annotated[int, Field(ge=0, le=1 << 40)] | None = optional(
        "order `backfill`: seconds from now within which a reservation begins; one later is none"
    )
    value: Annotated[Counted, Field(strict=False)] = Field(
        default=Counted.NODES, description="what the value of requests counts; `gpus`: hierarchies"
    )
    free: Name | None = optional(
        "hierarchies and trees: a level whose domains that stay free count after who starts"
    )
    left_out: Annotated[list[LeftOut], Field(max_length=1 << 20)] = Field(
        default_factory=list, description="what restricts requests and is not modelled"
    )
    ignored: list[Name] = Field(
        default_factory=list, description="options of `left_out` that hold no request"
    )
    weights: ShapeWeights = Field(default_factory=ShapeWeights)
    seed: int | None = optional("seed of the generator that wrote it")
    source: str | None = optional("where the snapshot comes from")

    @property
    def written(self) -> MachineModel:
        """The machine, where it is written out; `InputError` if it is only named."""
        if isinstance(self.machine, str):
            expected = "a machine that is written out"
            raise InputError(expected, field="machine", value=self.machine)
        return self.machine

    def on(self, model: type[Machine], expected: str) -> Machine:
        """Return the machine, which is written out and of one model (`MachineDocument.only`)."""
        if isinstance(self.machine, str):
            raise InputError(expected, field="machine.kind", value=self.machine)
        return self.machine.only(model, expected)


# ---- The mapping instance (``topoplace.mapping/1``): an application, and where its tasks may go --

MAPPING_SCHEMA: Final = "topoplace.mapping/1"


class MatrixModel(MachineDocument):
    """A machine of routers with one node each, given by the distances between them."""

    kind: Literal["matrix"]
    name: Name
    distances: Annotated[
        list[list[Annotated[int, Field(ge=0, le=1 << 20)]]], Field(min_length=1, max_length=1 << 12)
    ]
    source: str | None = optional("where the figures come from")

    @property
    def num_nodes(self) -> int:
        """How many nodes it has."""
        return len(self.distances)


LevelCosts = Annotated[
    list[Annotated[int, Field(ge=0, le=1 << 20)]], Field(min_length=1, max_length=17)
]
"""What a byte costs by the level at which its ends meet on a tree or hierarchy, lowest first."""


class SpreadGroups(_Sparse):
    """Groups of tasks, none of which should span many domains of a level.

    Either `axes` or `groups` says which they are.
    """

    sparse = dict(level=None, axes=None, groups=None)  # noqa: C408

    level: Name | None = optional("of the machine; by default the one above its hosts")
    axes: Annotated[list[Name], Field(min_length=1, max_length=6)] | None = optional(
        "of a training job: ranks that differ along these axes only are a group"
    )
    groups: (
        Annotated[list[Annotated[list[Task], Field(min_length=1)]], Field(min_length=1)] | None
    ) = optional("or the tasks of every group")


class MappingInstance(_Sparse):
    """An application and the nodes its tasks may go to, at most `tasks_per_node` on each.

    With a `cap` in its place tasks are objects, of load 1 if the application says no other: those
    of a node have at most that load together, and the largest load of a node counts second. If
    routers pool theirs, it is the objects of a router that have a load of at most `cap` for each of
    its usable nodes.

    With a `spread` the first thing that counts, before hop-bytes, is the largest number of domains
    that any of these groups spans (docs/proofs/spread.md).
    """

    sparse = dict(  # noqa: C408
        level_costs=None,
        tasks_per_node=None,
        cap=None,
        pooled=False,
        fixed=[],
        moves=None,
        spread=[],
    )

    schema_version: Annotated[Literal["topoplace.mapping/1"], Field(alias="schema")]
    name: Name
    machine: Annotated[
        Annotated[TorusModel, Tag("torus")]
        | Annotated[MatrixModel, Tag("matrix")]
        | Annotated[TreeModel, Tag("tree")]
        | Annotated[HierarchyModel, Tag("hierarchy")],
        Discriminator(_form("matrix", "tree", "hierarchy", of_text="torus")),
        WrapValidator(_of_any_kind),
        SerializeAsAny(),
    ]
    level_costs: LevelCosts | None = optional(
        "of a byte by the level at which its ends meet, lowest first; by default two hops per level"
    )
    nodes: NodeSet = Field(description="numbers of nodes that tasks may go to")
    tasks_per_node: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    cap: Annotated[int, Field(ge=0, le=MAX_LOAD * MAX_TASKS)] | None = None
    pooled: bool = Field(default=False, description="whether the nodes of a router share their cap")
    fixed: list[FixedObject] = Field(default_factory=list, description="objects that stay")
    spread: Annotated[list[SpreadGroups], Field(max_length=16)] = Field(
        default_factory=list, description="trees and hierarchies: groups to keep together"
    )
    moves: Moves | None = optional("a mapping of which only some tasks may move")
    application: Annotated[AnyApplication | ObjectsGraph, Field(discriminator="kind")]
    source: str | None = optional("where the instance comes from")


# ---- Repacking -----------------------------------------------------------------------------------

REPACK_SCHEMA: Final = "topoplace.repack/1"
DEFRAGMENT_SCHEMA: Final = "topoplace.defragment/1"

MAX_COST: Final = 1_000_000
MAX_MOVES: Final = 1_000_000_000
"""What moves may cost in all."""


class KeepShape(StrEnum):
    """What prisms a job that moves may get: as good a shape as it has, the same extents, or any."""

    AS_GOOD = "as-good"
    SAME = "same"
    ANY = "any"


class Budget(Model):
    """Running jobs, or gangs, of which some at most may move or end."""

    jobs: Annotated[list[Name], Field(min_length=1)]
    most: Annotated[int, Field(ge=0, le=MAX_SIZE)]


Cost = Annotated[int, Field(ge=1, le=MAX_COST)]


class _Moving(_Sparse):
    """A snapshot, and what its running jobs may do; a gang is one job, called by its name.

    On a torus or mesh, who has a prism, nodes of one class, and shares no link against the rule
    with another running job may move, unless it is `fixed`. The pages of docs/proofs have other
    machines.
    """

    sparse = dict(ends={}, moving=True, budgets=[], replace=[])  # noqa: C408

    name: Name
    snapshot: Snapshot
    fixed: list[Name] = Field(default_factory=list, description="running jobs that stay")
    costs: dict[Name, Cost] = Field(
        default_factory=dict, description="what it costs to move a running job; default 1"
    )
    budgets: list[Budget] = Field(default_factory=list, description="how many may move or end")
    keep_shape: Annotated[KeepShape, Field(strict=False)] = KeepShape.AS_GOOD

    @property
    def aim(self) -> Snapshot:
        """The snapshot of whose queue moves start requests."""
        return self.snapshot


class RepackInstance(_Moving):
    """A snapshot, the requests that have to start, and what the running jobs may do."""

    schema_version: Annotated[Literal["topoplace.repack/1"], Field(alias="schema")] = REPACK_SCHEMA
    start: list[Name] = Field(description="requests of the snapshot's queue that have to start")
    ends: dict[Name, Cost] = Field(
        default_factory=dict, description="running jobs that may be ended, and what that costs"
    )
    moving: bool = Field(default=True, description="whether jobs may move; else they stay or end")
    replace: list[Name] = Field(
        default_factory=list,
        description="hierarchies: running jobs that get hosts in place of those that are down",
    )

    @property
    def spares(self) -> list[str]:
        """Running jobs that hold spares: those end, at the cost of a level of their own."""
        return [name for name in self.ends if name.startswith(SPARE_PREFIX)]

    def wanted(self, waiting: Iterable[str]) -> list[str]:
        """Return the requests that moves make room for, of those that wait."""
        return self.start


class Room(StrEnum):
    """What moves make room for: requests of the queue, one job as large as can be, or domains.

    Domains of a level, or the cubes of a pod, are made free as a whole.
    """

    QUEUE = "queue"
    PRISM = "prism"
    DOMAINS = "domains"


class DefragmentInstance(_Moving):
    """A snapshot in which moves that cost `most` in all, or less, make room; nobody ends."""

    ends: ClassVar[Mapping[str, int]] = {}
    moving: ClassVar[bool] = True

    schema_version: Annotated[Literal["topoplace.defragment/1"], Field(alias="schema")] = (
        DEFRAGMENT_SCHEMA
    )
    most: Annotated[int, Field(ge=0, le=MAX_MOVES)]
    room: Annotated[Room, Field(strict=False)]
    node_class: Annotated[Name | None, Field(alias="class")] = Field(
        default=None, description="of the nodes that a prism is made room for; of the machine's"
    )
    level: Name | None = optional("room `domains`: of a hierarchy or tree")

    def sparing(self, number: int, **asked: Any) -> Snapshot:
        """Return the snapshot in which equal requests wait, each of which keeps a domain free."""
        names = {job.id for job in self.snapshot.running} | {
            job.gang for job in self.snapshot.running
        }
        stem = self.room_id
        while any(name and name.startswith(f"{stem}-") for name in names):
            stem += "-"
        queue = [Request(id=f"{stem}-{k}", exclusive=self.level, **asked) for k in range(number)]
        update = {"queue": queue, "left_out": [], "value": Counted.NODES, "order": Order.VALUE}
        return self.snapshot.model_copy(update=update)

    def wanted(self, waiting: Iterable[str]) -> list[str]:
        """Return the requests that moves make room for, of those that wait: all."""
        return [*waiting]

    @property
    def aim(self) -> Snapshot:
        """The snapshot of whose queue moves start requests: with one node to begin a prism."""
        return self.wanting(1) if self.room is Room.PRISM else self.snapshot

    def wanting(self, nodes: int) -> Snapshot:
        """Return the snapshot with just one job waiting, of `nodes` nodes."""
        request = Request(id=self.room_id, nodes=nodes, node_class=self.node_class)
        update = {"queue": [request], "left_out": []}  # a held request may have the same name
        return self.snapshot.model_copy(update=update)

    @property
    def room_id(self) -> str:
        """What a job in the largest prism is called: no running job is."""
        names = {job.id for job in self.snapshot.running}
        return next(name for k in itertools.count() if (name := f"room{k or ''}") not in names)
