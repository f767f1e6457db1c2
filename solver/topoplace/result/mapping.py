"""The result of a mapping (``topoplace.result/4`` with ``"problem": "mapping"``)."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from topoplace.result.base import Fraction, Level, Proof, Result
from topoplace.result.certificate import Packed
from topoplace.shown import work
from topoplace.snapshot.schema import (
    Coordinate,
    GridApplication,
    MappingInstance,
    Model,
    Name,
    Size,
    Task,
)

Numbers = list[int]


class BlockFamily(Model):
    """One inequality of a blocks certificate (docs/proofs/mapping.md, "Blocks").

    `extents` is the block in routers, per dimension of the machine; 0 in a dimension stands for
    the family of single cuts. `slope` is the price of a task, `multiplier` the weight of the
    inequality in the sum.
    """

    extents: Annotated[list[Annotated[int, Field(ge=0, le=1 << 21)]], Field(min_length=1)]
    slope: Fraction
    multiplier: Fraction


class BlocksCertificate(Model):
    """Bounds hop-bytes of any mapping of a virtual grid by what blocks of routers must emit."""

    kind: Literal["blocks"] = "blocks"
    families: list[BlockFamily]


class TotalCertificate(Model):
    """Every message between different tasks of a full machine crosses at least one link.

    Holds where no router can take two tasks: the bound is the sum of all bytes.
    """

    kind: Literal["total"] = "total"


STAR_ROUTERS = 1 << 12
"""With more usable routers on a torus or mesh, a star certificate takes all to be the best one."""


class StarCertificate(Model):
    """Every task by itself, its heaviest partners on the nearest places, at prices of routers.

    See docs/proofs/graphs.md, "Star". `prices` has one entry per router; empty stands for zeros.
    """

    kind: Literal["star"] = "star"
    prices: list[Annotated[int, Field(ge=0)]]


class DistanceClassesCertificate(Model):
    """Multipliers of the semidefinite bound (docs/proofs/graphs.md, "Distance classes").

    Any integers are valid; they only decide how much is proven. `shape` is a host
    torus with the same number of places on every router; task i is place i.
    """

    kind: Literal["distance-classes"] = "distance-classes"
    shape: Annotated[list[Size], Field(min_length=1, max_length=8)]
    routers: list[Annotated[int, Field(ge=0)]] = Field(
        description="host router of every router of the machine"
    )
    classes: list[Annotated[int, Field(ge=0)]] = Field(
        description="class of every coordinate difference, row-major; 0 for no difference alone"
    )
    scale: Annotated[int, Field(ge=1)]
    filters: list[Numbers] = Field(
        description="per space: coefficient of the identity, then of every class; it is squared"
    )
    factors: list[list[Numbers]] = Field(
        description="per space: vectors with an entry per place, whose outer products add up"
    )
    rows: list[Numbers] = Field(description="row multipliers, per class and place")


CUT_TASKS = 1 << 12
"""Tasks up to which certificates of cuts are offered and checked."""

CUT_LAYERS = 1 << 9
"""Largest size of a dimension for certificates of cuts."""

MOST_TRIANGLES = 1 << 17
"""Most triangles of a certificate."""


class Triangles(Model):
    """Triangle inequalities: two tasks are apart only if one between them is apart from either."""

    number: Annotated[int, Field(ge=1, le=MOST_TRIANGLES)]
    corners: Packed = Field(description="of every triangle the task in the middle and the two ends")
    amounts: Packed = Field(description="per triangle, not negative")


class Bisection(Model):
    """Multipliers that bound the bytes over any cut (docs/proofs/graphs.md, "Cuts").

    With Laplacian L of the bytes between tasks, or objects, and their loads l (ones for tasks),
    scale x L + diag(prices) + balance x l l' must be positive semidefinite. Before that,
    the amount of every triangle is subtracted between its middle and each end, and added between
    its two ends.
    """

    scale: Annotated[int, Field(ge=1)]
    balance: Annotated[int, Field(ge=0)]
    prices: Packed = Field(description="per task or object")
    triangles: Triangles | None = None


class CutsCertificate(Bisection):
    """What the cuts of the machine cost, all together (docs/proofs/graphs.md, "Cuts")."""

    kind: Literal["cuts"] = "cuts"


ROUTES_WORK = 1 << 26
"""Most tasks in the trees of a certificate of routes, each counted as often as it is in one."""

LONGEST = 1 << 20
"""Longest length of a pair in a certificate of routes."""


class Trees(Model):
    """Trees of shortest paths from many tasks (docs/proofs/graphs.md, "Routes")."""

    lengths: Packed = Field(description="of every pair of partners, ascending; 1 or more")
    sizes: Packed = Field(description="tasks in the tree of every task, with itself; 0: no tree")
    times: Packed = Field(description="how often every tree is sent")


class Routes(Model):
    """What must be apart: tasks send their loads to others along trees, over the bytes of pairs.

    `unit` is what loads are counted in, rounded down.
    """

    unit: Annotated[int, Field(ge=1)] = 1
    rounds: Annotated[list[Trees], Field(min_length=1, max_length=16)]


class RoutesCertificate(Routes):
    """What tasks send each other bounds hop-bytes (docs/proofs/graphs.md, "Routes")."""

    kind: Literal["routes"] = "routes"


MOST_LAYERS = 1 << 30
"""Most additions for a line of a product in a certificate of levels."""


class InsideLevel(Model):
    """What leaves the domains of a level, by the most bytes inside any set of tasks.

    `slope` is the price of a task. With an `order` the grid is taken as a product of lines, put
    together in this order (axes of one task left out); without one its inside is that of blocks.
    """

    kind: Literal["inside"] = "inside"
    slope: Fraction
    order: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=6)]


class DegreesLevel(Model):
    """What leaves the domains of a level if every task keeps its heaviest partners."""

    kind: Literal["degrees"] = "degrees"


class SpectralLevel(Bisection):
    """What leaves the domains of a level, by how many tasks a domain has room for."""

    kind: Literal["spectral"] = "spectral"


class RoutesLevel(Routes):
    """What leaves the domains of a level, by what tasks send to those that do not fit with them."""

    kind: Literal["routes"] = "routes"


LevelBound = Annotated[
    InsideLevel | DegreesLevel | SpectralLevel | RoutesLevel, Field(discriminator="kind")
]


class LevelsCertificate(Model):
    """Bounds the cost on a tree or hierarchy level by level (docs/proofs/levels.md)."""

    kind: Literal["levels"] = "levels"
    levels: Annotated[list[LevelBound], Field(min_length=1, max_length=17)] = Field(
        description="of the bytes that leave the domains of every level, the leaves first"
    )


class RecognisedCertificate(Model):
    """The bound of a grid that lies below a graph, and of what the graph has beyond it.

    See docs/proofs/graphs.md, "Recognised grids". Between the tasks of any two cells the graph has
    at least the bytes of the grid, both ways together.
    """

    kind: Literal["recognised"] = "recognised"
    grid: GridApplication
    tasks: list[Annotated[int, Field(ge=0)]] = Field(
        description="task of every cell of the grid, cells row-major; each task once"
    )
    below: Annotated[
        BlocksCertificate | TotalCertificate | LevelsCertificate, Field(discriminator="kind")
    ] = Field(description="of the grid, on the same nodes")
    beyond: Annotated[StarCertificate | TotalCertificate, Field(discriminator="kind")] = Field(
        description="of the bytes that are left of the graph without the grid"
    )


PAIRS_PLACES = 50
"""Most places for a certificate of pairs."""

MIRRORS = 6
"""Most mirrors of a certificate of pairs."""


class PairsCertificate(Model):
    """What pairs of assignments cost beside a semidefinite part (docs/proofs/graphs.md, "Pairs").

    Any integers are valid as long as the rest is semidefinite; they decide how much is proven.
    """

    kind: Literal["pairs"] = "pairs"
    scale: Fraction = Field(description="what costs are multiplied by before they are cut down")
    mirrors: Annotated[list[list[Annotated[int, Field(ge=0)]]], Field(max_length=MIRRORS)] = Field(
        description="symmetries of the places that are their own inverse and commute"
    )
    least: int = Field(description="no eigenvalue of the semidefinite part is below")
    costs: Packed = Field(
        description="of every pair of tasks i <= j, for the first place of every orbit and any "
        "place: what is left of their costs"
    )


TREE_NODES = 1 << 22
"""Most nodes of a certificate of partial mappings."""

TREE_TASKS, TREE_ROUTERS = 24, 256
"""Most tasks that send or receive, and routers, for such a certificate."""

Permutations = Annotated[list[list[Annotated[int, Field(ge=0)]]], Field(max_length=1 << 14)]


class TreeCertificate(Model):
    """A tree of partial mappings with a bound at every leaf (docs/proofs/graphs.md, "Trees").

    Tasks are those that send or receive, routers those with places, both ascending.
    """

    kind: Literal["tree"] = "tree"
    guests: Permutations = Field(description="symmetries of the tasks")
    hosts: Permutations = Field(description="symmetries of the routers")
    size: Annotated[int, Field(ge=1, le=TREE_NODES)]
    nodes: Packed = Field(
        description="parents before their children, these ascending: 0 at a leaf, t + 1 where "
        "task t goes to every router, -r - 1 where router r gets every task"
    )


DENOMINATOR = 1 << 8
"""The parts into which a certificate of shares divides the bytes of every pair."""

ENUMERATION_WORK = 1 << 34
"""Most steps of an enumeration, times the squares of the numbers of objects and of their places."""


SPREAD_STEPS = 1 << 17
"""Most steps of an enumeration of tasks in groups."""


class SharesCertificate(Model):
    """Every object by itself, its partners around it as close as the caps allow.

    See docs/proofs/objects.md, "Shares". The bytes of a pair count at its two ends.
    """

    kind: Literal["shares"] = "shares"
    shares: Packed = Field(
        description="of every pair, ascending by its lower object, then its higher one: how many "
        "256ths of its bytes count at the lower one"
    )


class EnumerationCertificate(Model):
    """All ways to put the objects on nodes, one after the other, as far as they may be cheap.

    See docs/proofs/objects.md, "Enumeration", and for tasks in groups docs/proofs/spread.md: the
    checker goes through them itself.
    """

    kind: Literal["enumeration"] = "enumeration"
    order: list[Task] = Field(description="objects in the order in which they are placed")


class CountingCertificate(Model):
    """How many domains the largest group needs, or what hangs together and fits into none.

    See docs/proofs/spread.md, "Counting".
    """

    kind: Literal["counting"] = "counting"


class TouchingCertificate(Model):
    """How many groups the tasks of a domain belong to at least (docs/proofs/spread.md, "Touching").

    `weights` has an integer for each of the `spread` of the instance, 0 for those left out; `slope`
    is the price of a task.
    """

    kind: Literal["touching"] = "touching"
    level: Name = Field(description="whose domains are meant")
    weights: list[Annotated[int, Field(ge=0, le=1 << 32)]]
    slope: Fraction


class FewMovesCertificate(Model):
    """What the tasks that gain most by a move can gain (docs/proofs/mapping.md, "Few moves")."""

    kind: Literal["few-moves"] = "few-moves"


class SpreadCertificate(Model):
    """Somebody has the average load, the largest object, or two of the largest ones."""

    kind: Literal["spread"] = "spread"


MappingCertificate = Annotated[
    BlocksCertificate
    | TotalCertificate
    | StarCertificate
    | DistanceClassesCertificate
    | CutsCertificate
    | RoutesCertificate
    | RecognisedCertificate
    | PairsCertificate
    | TreeCertificate
    | LevelsCertificate,
    Field(discriminator="kind"),
]


class MeanLoad(Model):
    """The hop-bytes that their certificate proves, over all links that messages may take."""

    kind: Literal["mean"] = "mean"


class TaskLoad(Model):
    """What a task sends, or gets, over the links of its router, its heaviest partners with it."""

    kind: Literal["task"] = "task"
    task: Task


class InsideCrossing(Model):
    """What crosses a cut, by the most bytes inside the tasks on either side.

    `order` is that of `InsideLevel`: lines of a product, or none for the blocks of a grid.
    """

    kind: Literal["inside"] = "inside"
    order: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=6)]


class SpectralCrossing(Bisection):
    """What crosses a cut, by how uneven the loads of its sides can be."""

    kind: Literal["spectral"] = "spectral"


class CutLoad(Model):
    """What crosses between some consecutive layers of routers and the others, over their links."""

    kind: Literal["cut"] = "cut"
    dimension: Coordinate
    first: Coordinate
    layers: Size
    crossing: Annotated[InsideCrossing | SpectralCrossing, Field(discriminator="kind")]


class LinkLoad(Model):
    """Bounds the largest link load of any mapping (docs/proofs/mapping.md, "Link loads").

    In bytes over a link in one direction, divided by its bandwidth.
    """

    bound: Fraction
    certificate: Annotated[MeanLoad | TaskLoad | CutLoad, Field(discriminator="kind")]


class MappingLevel(
    Level[
        int,
        Annotated[
            SharesCertificate
            | EnumerationCertificate
            | FewMovesCertificate
            | SpreadCertificate
            | CountingCertificate
            | TouchingCertificate
            | MappingCertificate,
            Field(discriminator="kind"),
        ],
    ]
):
    """A level: hop-bytes, and under a cap the largest load; its bound holds for any mapping.

    Where groups are kept together, `spread` comes first: the most domains that a group spans.
    """

    name: Literal["spread", "hop-bytes", "largest-load"]
    sense: Literal["min"] = "min"


class PathModel(Model):
    """A virtual dimension laid along a path through blocks of routers, for want of a free axis."""

    dim: Coordinate = Field(description="the virtual dimension")
    partitions: Size = Field(description="its partitions per router")
    block: list[Size] = Field(
        description="routers of a block along each machine dimension; the path goes through them "
        "in rows along the last one, every second of which it goes backwards"
    )


class LayoutModel(Model):
    """A Topaware layout (Enos 2014 IV.A, IV.C, IV.E) and where it lies.

    Lists have one entry per machine dimension unless said otherwise. See docs/proofs/mapping.md,
    "Layouts", for the task -> cell rule.
    """

    axes: list[int] = Field(
        description="virtual dimension on each machine dimension; -1 for the layers of a fold"
    )
    logical: list[Size] = Field(description="L: logical routers along each machine dimension")
    partitions: list[Size] = Field(description="N: partitions per router; 1 for layers")
    whole: int | None = Field(default=None, description="virtual dimension kept on each router")
    folds: Numbers = Field(
        default_factory=list, description="folds of the virtual dimension on each machine dimension"
    )
    layer_order: Numbers = Field(
        default_factory=list, description="layer at which each supertile lies, row-major"
    )
    stagger: bool = False
    path: PathModel | None = Field(
        default=None, description="a virtual dimension that lies on no machine dimension of its own"
    )
    pencil: Coordinate = Field(description="machine dimension of the pencils")
    origin: list[Coordinate]
    depth: Size = Field(description="extent of the window along the pencils")


class FlowCertificate(Model):
    """An integer flow in the threshold network of a pencil selection; parallel lists of arcs.

    Vertices are numbered ``((pencil * levels + level) * (depth - 1)) + threshold - 1``; -1 is the
    source, -2 the sink. Its value bounds every selection in the window (docs/proofs/mapping.md,
    "Pencils").
    """

    tails: Numbers
    heads: Numbers
    flows: Numbers


class ClassOptimum(Model):
    """What is proven among the pencil placements of all admissible layouts in the region.

    `bound` is the least hop-bytes of that class; `proof` is ``search`` because the checker
    verifies the flow of the chosen window, not that every other window was ruled out.
    """

    scope: Literal["pencils"] = "pencils"
    objective: Annotated[int, Field(ge=0)]
    bound: Annotated[int, Field(ge=0)]
    proof: Annotated[Proof, Field(strict=False)]
    layouts: int = Field(ge=1, description="layouts considered")
    windows: int = Field(ge=1, description="windows considered")
    max_depth: list[Size] = Field(description="largest window extents searched, per dimension")
    window_bound: int | None = Field(
        default=None, description="least hop-bytes of any selection in the chosen window"
    )
    flow: FlowCertificate | None = None


class MappingFigures(Model):
    """What a mapping costs, recomputed by the checker.

    `hops` counts links over messages, `histogram[h]` messages that take h hops (0: on the
    router). Link loads are bytes over a link in one direction, divided by its bandwidth.
    """

    hop_bytes: int
    hops: int
    off_router_messages: int
    off_router_bytes: int
    max_hops: int
    histogram: Numbers
    max_link_load: Fraction | None = Field(description="null on a machine without links")
    level_bytes: Numbers | None = Field(
        default=None,
        description="bytes by the level at which their ends meet, first those on one node; null "
        "but on trees and hierarchies",
    )
    largest_load: int | None = Field(
        default=None,
        description="of a node; with pooled caps of a router for each of its usable nodes, rounded "
        "up; null without a cap, as is the next one",
    )
    used_nodes: int | None = Field(default=None, description="nodes with objects")
    spans: Numbers | None = Field(
        default=None,
        description="for each `spread` of the instance the most domains that one of its groups "
        "spans; null without any",
    )
    moved: int | None = Field(
        default=None,
        description="tasks on another node than before; null without a limit of moves",
    )


class MappingSolution(Model):
    """The node of every task, and what that costs."""

    nodes: list[Annotated[int, Field(ge=0)]]
    figures: MappingFigures
    layout: LayoutModel | None = None
    optimum: ClassOptimum | None = None


class MappingResult(Result[MappingLevel, MappingSolution, MappingInstance]):
    """One mapping of one application."""

    problem: Literal["mapping"]
    link_load: LinkLoad | None = Field(default=None, description="null if nothing is proven")
    notes: list[str] = Field(
        default_factory=list, description="how the mapping came about, for people"
    )

    def write_ranks(self, *, names: Any = None, tpu_host: Any = None, **files: str | Path) -> None:
        """Write where the ranks are, for launchers: ``result.write_ranks(hostfile="hosts")``.

        Parameters
        ----------
        names
            What the nodes of a torus or mesh are called, in the order of their numbers.
        tpu_host
            With ``ranks``, the chips of a host: ``(2, 2, 1)``.
        files
            By form: ``hostfile``, ``rankfile``, ``rank_order`` with its ``node_list``, ``ranks``,
            ``csv``, ``maplib`` or ``scotch_map``, as the options of `topoplace map`.

        Raises
        ------
        InputError
            If there is no mapping, or no such form, or a file cannot be written.
        """
        forms = {name: Path(path) for name, path in files.items()}
        note = work("ranks", self)(self, names, tpu_host=tpu_host, **forms)
        if note is not None:
            warnings.warn(note, stacklevel=2)
