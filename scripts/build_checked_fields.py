"""Write docs/proofs/checked-fields.md: which claim of `check` covers each field of a result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import EnumType
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from study import ROOT, inserted, line
from topoplace import result as schema
from topoplace.kinds import placing
from topoplace.result import (
    certificate,
    dragonfly,
    fattree,
    mapping,
    placement,
    several,
    tree,
)
from topoplace.snapshot import schema as snapshot
from topoplace.snapshot.files import write_text

PAGE = ROOT / "docs" / "proofs" / "checked-fields.md"

Model = type[BaseModel]
Kind = Literal["claim", "evidence", "question", "harmless", "holder", "parts", "fixed"]


@dataclass(frozen=True)
class Cover:
    """What covers a field.

    Attributes
    ----------
    names
        Claims of `check` that refuse a change.
    reason
        A whole sentence: why no claim is needed, or when another value may stand as well.
    """

    kind: Kind
    names: tuple[str, ...] = ()
    reason: str = ""

    @property
    def text(self) -> str:
        """What the page says of it."""
        claims = ", ".join(f"`{name}`" for name in self.names)
        start = {
            "claim": claims,
            "evidence": f"evidence, followed by {claims}",
            "question": "question",
            "harmless": "no claim",
            "holder": "as the field that holds it",
            "parts": "field by field",
            "fixed": "one value only",
        }[self.kind]
        return f"{start}. {self.reason}" if self.reason else start


def claim(*names: str, unless: str = "") -> Cover:
    """A change is refused by one of these claims, unless it states what is true as well."""
    return Cover("claim", names, unless)


def evidence(*names: str) -> Cover:
    """Any value may stand: what it proves is computed anew."""
    return Cover("evidence", names)


def harmless(reason: str) -> Cover:
    """No claim is needed, for a reason."""
    return Cover("harmless", (), reason)


QUESTION = Cover("question")
HOLDER = Cover("holder")
PARTS = Cover("parts")
FIXED = Cover("fixed")

Covers = dict[str, Cover]


def types_of(model: Model) -> dict[str, Any]:
    """Return the type of every field: names resolved, constraints left out."""
    hints = get_type_hints(model)
    own = vars(model).get("__annotations__", {})
    inherited = {  # of a generic base, whose hints name its parameters
        name: field.annotation for name, field in model.model_fields.items() if name not in own
    }
    hints |= get_type_hints(type(model.__name__, (), {"__annotations__": inherited}))
    return {name: hints[name] for name in model.model_fields}


def models_in(annotation: Any) -> Iterator[Model]:
    """Yield the models that a type names, in any list, mapping or union."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in () if get_origin(annotation) is Literal else get_args(annotation):
        yield from models_in(argument)


def reachable(root: Model, *, beyond: tuple[Model, ...] = ()) -> list[Model]:
    """Return a model and all that its fields lead to, but not those `beyond` and what they do."""
    found = [root]
    for model in found:  # grows meanwhile
        for annotation in types_of(model).values():
            found += [m for m in _once(models_in(annotation)) if m not in (*found, *beyond)]
    return found


def _once(models: Iterator[Model]) -> list[Model]:
    return list(dict.fromkeys(models))


def whole(cover: Cover, model: Model) -> Covers:
    """Return one cover for all fields of a model, except those that have one value only."""

    def of(annotation: Any) -> Cover:
        is_fixed = get_origin(annotation) is Literal and len(get_args(annotation)) == 1
        return FIXED if is_fixed else cover

    return {name: of(kind) for name, kind in types_of(model).items()}


def same(cover: Cover, names: str) -> Covers:
    """Return one cover for several fields, named with spaces between."""
    return dict.fromkeys(names.split(), cover)


def level(names: Cover, figures: Cover, certificate: Cover, **more: Cover) -> Covers:
    """Return the covers of a level: of its name and sense, its figures, and their certificate."""
    return {
        **same(names, "name sense"),
        **same(figures, "status objective bound gap proof"),
        "certificate": certificate,
        **more,
    }


BOUNDS = ("nodes.bound", "shape.bound", "fragmentation.bound")
DOMAINS = ("nodes", "block", "rack", "host", "balance", "stranded")  # of the samples' machine
DOMAIN_BOUNDS = tuple(f"{name}.bound" for name in DOMAINS)
PLANS = ("placements", "exclusive", "links", "steps", "started", "moves", "moved_nodes")
PLAN_BOUNDS = ("started.bound", "moves.bound", "moved_nodes.bound")
CUBES = ("placements", "exclusive", "nodes", "free_cubes")
GROUPS = ("nodes", "group", "router", "node", "stranded")
GROUP_BOUNDS = tuple(f"{name}.bound" for name in GROUPS)
FLIES = ("placements", "hosts", "links", *GROUPS)
PROOF = evidence(
    *BOUNDS, *DOMAIN_BOUNDS[1:], *GROUP_BOUNDS[1:4], "free_cubes.bound", "links.bound", "steps"
)
FAT_TREES = ("placements", "exclusive", "isolated", "nodes", "links")
LINK_BOUNDS = ("nodes.bound", "links.bound")
NODES_PROOF = evidence("nodes.bound", "steps")
LEVELS = ("levels", "nodes", "shape", "fragmentation", "hop-bytes")
HOP_BOUND = evidence("hop-bytes.bound")
COST_BOUND = evidence("cost.bound")
OBJECTS = ("hop-bytes", "largest-load", "hop-bytes.bound", "largest-load.bound")
OF_SPREAD = ("spread", "spread.bound")
TREE_LEVELS = ("levels", "nodes", "nodes.bound", "cost", "cost.bound")

METHOD = harmless("It says who found the answer, and the answer is as good no matter who found it.")
SECONDS = harmless("How long a solve took cannot be seen from what it found.")
SEED = harmless("It helps to run the solve again, and nothing in the answer depends on it.")
VERSIONS = harmless("They help to run the solve again, and nothing in the answer depends on them.")
TIME_LIMIT = harmless("It says what the solve was allowed to take, not what it found.")
HIT = harmless("It says why a gap may have been left, and the gap itself is checked.")
FIRST_LEVEL = harmless("It says where a method ended, as asked, not what it found.")
ANOTHER = "Another choice of as many free nodes of the same value is an answer as true."

ANOTHER_PLAN = "Steps in another order that can be carried out are a plan as true."
ANOTHER_MAPPING = "Tasks that cost the same on each other's nodes make another mapping as true."
ANOTHER_LAYOUT = "Layouts of the same cells in windows that hold them describe the same mapping."
LESS = "A lower bound, or one without a proof, says less of the same mapping, and is as true."
NO_OPTIMUM = "Without it, less is said of the same mapping."

REQUIRED = claim(
    *("nodes", "shape", "fragmentation", *DOMAINS[1:], *CUBES[2:], *GROUPS[1:4], "links"),
    *(*BOUNDS, *DOMAIN_BOUNDS[1:], "free_cubes.bound", *GROUP_BOUNDS[1:4], "links.bound"),
    unless="What the placement reaches may as well be required, or nothing be.",
)
POINTS = ("points", "open")
AS_GOOD = "Another placement of the same value is as true."
WITNESS: Covers = {"values": claim("witness"), "solution": claim("witness", unless=AS_GOOD)}

DOCUMENT: Covers = {
    "schema_version": FIXED,
    "method": METHOD,
    "levels": claim("levels"),
    "seconds": SECONDS,
    "limits": PARTS,
    "seed": SEED,
    "versions": VERSIONS,
    "instance": QUESTION,
}
RESULT: Covers = {
    **DOCUMENT,
    "problem": FIXED,
    **same(claim("levels"), "status objective bound gap proof"),
}
PLACED: Covers = {
    **RESULT,
    "waits": harmless("It says for people why requests wait, and nothing rests on it."),
}
ANSWERS = ("points", "distinct", "steps", "complete")
STEPS = ("steps", "open", "complete")
SEVERAL: Covers = {**DOCUMENT, "problem": claim("instance")}

MAPPED: Covers = {
    **RESULT,
    "notes": harmless("They say how the mapping came about, and it is as good however it did."),
    "link_load": claim("link-load.bound", unless=LESS),
}
FIGURES = same(
    claim("figures"),
    "hop_bytes hops off_router_messages off_router_bytes max_hops histogram max_link_load "
    "level_bytes largest_load used_nodes moved spans",
)

FIELDS: dict[Model, Covers] = {
    schema.PlacementResult: {
        **PLACED,
        "solution": claim("placements", "links", "explanations", "nodes", "witness"),
        "witness": claim("witness", *LEVELS, *BOUNDS),
        "explanations": claim(
            "explanations",
            unless="Requests need no explanation and come in any order, "
            "so those that are left say what is true.",
        ),
    },
    schema.PlacementLimits: {
        "time_limit": TIME_LIMIT,
        "interference": Cover(
            "question", (), "Stored next to the instance; every claim is checked under this rule."
        ),
        "hit": HIT,
        "first_level": FIRST_LEVEL,
    },
    schema.PlacementLevel: level(
        claim("levels"),
        claim(*LEVELS),
        evidence(*LEVELS, *BOUNDS, "hop-bytes", "hop-bytes.bound"),
        required=REQUIRED,
    ),
    placement.HopBytesCertificate: {
        "kind": FIXED,
        "mappings": evidence("hop-bytes", "hop-bytes.bound"),
        "packing": evidence("hop-bytes", "hop-bytes.bound"),
    },
    placement.MappingBound: same(
        evidence("hop-bytes", "hop-bytes.bound"), "request extents certificate"
    ),
    placement.TaskMapping: {
        "nodes": claim("mappings", unless=ANOTHER_MAPPING),
        "hop_bytes": claim("mappings"),
    },
    schema.Solution: {
        "placements": claim(
            "placements", "links", "explanations", "nodes", unless="Their order says nothing."
        ),
        "num_shared_links": claim("links"),
        "conforming": claim("links"),
    },
    schema.Placement: {
        "request": claim("placements", "explanations", "nodes", unless=ANOTHER),
        "prism": claim(
            "placements", "exclusive", "links", "explanations", "shape", "fragmentation"
        ),
        "other_prisms": claim("placements", "exclusive", "fragmentation"),
        "nodes": claim("placements", "exclusive", "mappings", unless=ANOTHER),
        "mapping": claim("placements", "mappings"),
    },
    schema.Explanation: {
        "request": claim(
            "explanations", unless="It may be true of another request that waits as well."
        ),
        "reason": claim("explanations"),
        "text": harmless("It says for people what the other fields say, and those are checked."),
        "prism": claim("explanations", unless="Another prism may be as near to free."),
        "jobs": claim("explanations", unless="Their order says nothing."),
        "nodes_to_free": claim("explanations"),
    },
    schema.Fraction: {
        "numerator": HOLDER,
        "denominator": Cover("holder", (), "Zero over any number is zero."),
    },
    mapping.MappingResult: {
        **MAPPED,
        "solution": claim("solution", "figures", "spread", *OBJECTS[:2]),
    },
    schema.Limits: {"time_limit": TIME_LIMIT, "hit": HIT, "first_level": FIRST_LEVEL},
    mapping.MappingLevel: {
        "name": claim("levels"),
        "sense": FIXED,
        **same(claim("levels", *OF_SPREAD, *OBJECTS), "status objective bound gap proof"),
        "certificate": evidence(*OF_SPREAD, *OBJECTS),
    },
    mapping.MappingSolution: {
        "nodes": claim("solution", "figures", "layout", unless=ANOTHER_MAPPING),
        "figures": claim("figures"),
        "layout": claim("layout", "optimum"),
        "optimum": claim("optimum", unless=NO_OPTIMUM),
    },
    mapping.MappingFigures: FIGURES,
    mapping.LinkLoad: {
        "bound": claim("link-load.bound", unless=LESS),
        "certificate": evidence("link-load.bound"),
    },
    mapping.LayoutModel: same(
        claim("layout", "optimum", unless=ANOTHER_LAYOUT),
        "axes logical partitions whole folds layer_order stagger path pencil origin depth",
    ),
    mapping.PathModel: same(
        claim("layout", "optimum", unless=ANOTHER_LAYOUT), "dim partitions block"
    ),
    mapping.ClassOptimum: {
        "scope": FIXED,
        "objective": claim("optimum"),
        **same(claim("optimum", unless=LESS), "bound proof window_bound"),
        "layouts": harmless("It counts what a search went through that the checker does not."),
        "windows": harmless("It counts what a search went through that the checker does not."),
        "max_depth": claim(
            "optimum",
            unless="Windows between the one chosen and the machine may all have been searched, "
            "which the checker does not repeat.",
        ),
        "flow": evidence("optimum"),
    },
    tree.AllocationResult: {
        **PLACED,
        "solution": claim("allocations", "costs", "nodes", "cost"),
    },
    tree.TreeLevel: level(claim("levels"), claim(*TREE_LEVELS), evidence(*TREE_LEVELS)),
    tree.TreeSolution: {
        "allocations": claim("allocations", "costs", "nodes", unless="Their order says nothing."),
        "cost": claim("costs"),
    },
    tree.Allocation: {
        "request": claim("allocations", "costs", unless=ANOTHER),
        "nodes": claim("allocations", "costs", unless=ANOTHER),
        "cost": claim("costs"),
    },
    placement.HierarchyResult: {
        **PLACED,
        "solution": claim("placements", "hosts", "witness", *DOMAINS),
        "witness": claim("witness", *DOMAINS, *DOMAIN_BOUNDS),
    },
    placement.HierarchyLevel: level(
        claim("levels"),
        claim("levels", *DOMAINS, *DOMAIN_BOUNDS),
        evidence(*DOMAINS, *DOMAIN_BOUNDS),
        required=REQUIRED,
    ),
    placement.HierarchySolution: {
        "placements": claim("placements", "hosts", *DOMAINS, unless="Their order says nothing.")
    },
    placement.HierarchyPlacement: {
        "nodes": claim(
            "placements", unless="The same hosts may be written otherwise, or not at all."
        ),
        "request": claim("placements", "hosts", *DOMAINS, "nodes.bound", unless=ANOTHER),
        "parts": claim("placements", "hosts", *DOMAINS, "nodes.bound", unless=ANOTHER),
    },
    certificate.Reserved: {
        **dict.fromkeys(("request", "at", "parts", "prism", "other_prisms", "before"), NODES_PROOF),
        "now": PARTS,
    },
    certificate.PlacedPart: {
        "part": claim("placements", "nodes.bound"),
        "shares": claim("placements", "hosts", *DOMAINS, "nodes.bound", unless=ANOTHER),
    },
    certificate.Share: {
        "hosts": claim("placements", "hosts", *DOMAINS, "nodes.bound", unless=ANOTHER),
        "units": claim("placements", "hosts", *DOMAINS, "nodes.bound", unless=ANOTHER),
    },
    placement.CubesResult: {
        **PLACED,
        "solution": claim(*CUBES, "witness"),
        "witness": claim("witness", *CUBES, "nodes.bound", "free_cubes.bound"),
    },
    placement.CubesLevel: level(
        claim("levels"),
        claim("levels", *CUBES, "nodes.bound", "free_cubes.bound"),
        evidence(*CUBES, "nodes.bound", "free_cubes.bound"),
        required=REQUIRED,
    ),
    placement.CubesSolution: {"placements": claim(*CUBES, unless="Their order says nothing.")},
    dragonfly.DragonflyResult: {
        **PLACED,
        "solution": claim(*FLIES, "witness"),
        "witness": claim("witness", *FLIES, *GROUP_BOUNDS),
    },
    dragonfly.DragonflyLevel: level(
        claim("levels"),
        claim("levels", *FLIES, *GROUP_BOUNDS),
        evidence(*FLIES, *GROUP_BOUNDS),
        required=REQUIRED,
    ),
    dragonfly.DragonflySolution: {"placements": claim(*FLIES, unless="Their order says nothing.")},
    fattree.FatTreeResult: {
        **PLACED,
        "solution": claim(*FAT_TREES, "witness"),
        "witness": claim("witness", *FAT_TREES, *LINK_BOUNDS),
    },
    fattree.FatTreeLevel: level(
        claim("levels"),
        claim("levels", *FAT_TREES, *LINK_BOUNDS),
        evidence(*FAT_TREES, *LINK_BOUNDS),
        required=REQUIRED,
    ),
    fattree.FatTreeSolution: {"placements": claim(*FAT_TREES, unless="Their order says nothing.")},
    several.Frontier: {
        **SEVERAL,
        "traded": claim("traded", *POINTS, unless="Less may be claimed of the same points."),
        "complete": claim("open"),
        "points": claim(*POINTS),
        "steps": claim("steps", "open", unless="Other steps may prove as much."),
        "open": claim("open"),
    },
    several.Optima: {
        **SEVERAL,
        "chosen": claim("chosen", *ANSWERS, unless="Less may be claimed of the same points."),
        "distinct": claim("distinct", "complete", unless="Less may be claimed of the same points."),
        "equal": claim("distinct", "complete", unless="Less may be claimed of the same points."),
        "asked": claim("points", unless="It says how many were enough, and more would have been."),
        "complete": claim("complete"),
        "points": claim(*ANSWERS, unless=AS_GOOD),
        "steps": claim("steps", "complete", unless="Other steps may prove as much."),
        "rest": claim("complete", unless="Another step may prove as much, or is none needed."),
    },
    **{
        certificate.Witness[kind]: WITNESS
        for kind in (
            *(schema.Solution, placement.HierarchySolution, placement.CubesSolution),
            dragonfly.DragonflySolution,
            fattree.FatTreeSolution,
        )
    },
    several.NamedLevel: same(claim("levels"), "name sense"),
    several.Point: {
        "values": claim("points"),
        "solution": claim("points", "distinct", "steps", "complete", unless=AS_GOOD),
    },
    several.Step: {
        "required": claim(*STEPS, unless="More may be required for the same bound."),
        "level": claim("steps", "complete"),
        "bound": claim(*STEPS, unless="A weaker bound may do as well."),
        "certificate": evidence("steps", "complete"),
    },
    several.OpenBox: same(claim("open"), "worst best"),
    placement.RepackResult: {**RESULT, "solution": claim(*PLANS)},
    placement.RepackLevel: level(
        claim("levels"), claim("levels", *PLANS, *PLAN_BOUNDS), evidence(*PLANS, *PLAN_BOUNDS)
    ),
}

MACHINES = tuple(kind.get("model") for kind in placing())

WHOLE: tuple[tuple[Cover, tuple[Model, ...]], ...] = (
    (HOLDER, (snapshot.PrismModel,)),
    (QUESTION, (snapshot.Snapshot, snapshot.MappingInstance, *MACHINES)),
    (QUESTION, (snapshot.RepackInstance, snapshot.DefragmentInstance)),
    (evidence("optimum"), (mapping.FlowCertificate,)),
    (claim(*CUBES, unless=ANOTHER), (placement.CubesPlacement,)),
    (claim(*FLIES, unless=ANOTHER), (placement.NodesPlacement,)),
    (claim(*FAT_TREES, unless=ANOTHER), (fattree.FatTreePlacement,)),
    (claim(*PLANS, unless=ANOTHER_PLAN), (placement.RepackSolution,)),
    (
        evidence("spread.bound", "hop-bytes.bound", "largest-load.bound"),
        (
            mapping.SharesCertificate,
            *(mapping.EnumerationCertificate, mapping.SpreadCertificate),
            mapping.FewMovesCertificate,
        ),
    ),
    (evidence("spread.bound"), (mapping.CountingCertificate, mapping.TouchingCertificate)),
    (HOP_BOUND, (mapping.MappingLevel, mapping.LinkLoad)),
    (NODES_PROOF, (schema.LeafRef, certificate.InOrder)),
    (PROOF, (schema.Leaf, schema.StartBranch, schema.CoverBranch)),
    (NODES_PROOF, (schema.SharedLeaves, schema.Parts)),
    (COST_BOUND, (tree.TreeLevel,)),
)
"""What covers these models, and those that they lead to, where nothing else does: the first."""

for _cover, _roots in WHOLE:
    for _model in (model for root in _roots for model in reachable(root)):
        FIELDS.setdefault(_model, whole(_cover, _model))

_IN_WITNESSES = (
    *(schema.Solution, schema.Placement, placement.HierarchySolution, placement.HierarchyPlacement),
    *(certificate.PlacedPart, certificate.Share, placement.CubesSolution, placement.CubesPlacement),
    *(dragonfly.DragonflySolution, placement.NodesPlacement),
    *(fattree.FatTreeSolution, fattree.FatTreePlacement),
)
_IN_POINTS = (*_IN_WITNESSES, placement.RepackSolution, placement.Step)
_RESERVED = certificate.PlacedPart, certificate.Share
for _models, _claims in (
    (_IN_WITNESSES, ("witness",)),
    (_IN_POINTS, ANSWERS),
    (_RESERVED, ("nodes.bound",)),
):
    for _model in _models:  # which are part of other documents as well
        for _name, _cover in FIELDS[_model].items():
            FIELDS[_model][_name] = replace(_cover, names=(*_cover.names, *_claims))

RESULTS_BY_TITLE: dict[str, Model] = {
    "A placement on a torus or mesh": schema.PlacementResult,
    "A mapping": mapping.MappingResult,
    "An allocation on a tree": tree.AllocationResult,
    "A placement on a hierarchy": placement.HierarchyResult,
    "A placement on a pod of cubes": placement.CubesResult,
    "A placement on a dragonfly": dragonfly.DragonflyResult,
    "A placement on a fat tree": fattree.FatTreeResult,
    "A frontier": several.Frontier,
    "All optima": several.Optima,
    "A plan of repacking": placement.RepackResult,
}
RESULTS = tuple(RESULTS_BY_TITLE.values())
DOCUMENTS: dict[str, Model] = RESULTS_BY_TITLE | {
    "The instance of a placement or an allocation": snapshot.Snapshot,
    "The instance of a mapping": snapshot.MappingInstance,
}


def every_model() -> set[Model]:
    """Return all models that results are made of."""
    return {model for root in (*RESULTS, *MACHINES) for model in reachable(root)}


# ---- The page -----------------------------------------------------------------------------------

BEGIN = "<!-- fields: written by scripts/build_checked_fields.py -->"

_WORDS = {int: "integer", str: "text", bool: "true or false", float: "number", type(None): "null"}


def type_text(annotation: Any) -> str:
    """Return a type in a few words."""
    if isinstance(annotation, EnumType):
        return " or ".join(f"`{member.value}`" for member in annotation)
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(annotation))
    if not get_args(annotation):
        return str(_WORDS.get(annotation, annotation.__name__))
    return _compound(get_origin(annotation), [type_text(part) for part in get_args(annotation)])


def _compound(origin: Any, parts: list[str]) -> str:
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(parts))
    if origin is tuple:
        return f"({', '.join(parts)})"
    return f"list of {parts[0]}" if origin is list else f"{parts[1]} by {parts[0]}"


def page_text() -> str:
    """Return the page with a table for each document."""
    beyond = tuple(DOCUMENTS.values())
    sections = []
    for title, root in DOCUMENTS.items():
        rows = [row for model in reachable(root, beyond=beyond) for row in _rows(model)]
        table = ["| field | type | covered by |", "|---|---|---|", *rows]
        sections.append("\n".join([f"## {title}", "", *table, ""]))
    return inserted(PAGE.read_text(encoding="utf-8"), BEGIN, "\n".join(sections))


def _rows(model: Model) -> list[str]:
    found = []
    for name, annotation in types_of(model).items():
        field = model.model_fields[name].alias or name
        cells = (f"`{model.__name__}.{field}`", type_text(annotation), FIELDS[model][name].text)
        found.append(line(cells))
    return found


def main() -> None:
    """Write the page."""
    write_text(PAGE, page_text())


if __name__ == "__main__":
    main()
