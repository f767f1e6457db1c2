"""Ways to spoil the certificate of a mapping result."""

from __future__ import annotations

from typing import Any

from mapping_mutations import level_of, mutation
from mapping_results import Document

BLOCKS = ("blocks", "rough", "pencils", "ring", "folded")


def families_of(document: Document) -> list[Any]:
    found: list[Any] = level_of(document)["certificate"]["families"]
    return found


@mutation(("blocks", "pencils", "ring"), "hop-bytes.bound")
def total_claimed_where_routers_share(document: Document) -> None:
    level_of(document)["certificate"] = {"kind": "total"}


@mutation(("graph",), "hop-bytes.bound")
def blocks_claimed_of_a_graph(document: Document) -> None:
    level_of(document)["certificate"] = {"kind": "blocks", "families": []}


@mutation(BLOCKS, "hop-bytes.bound")
def multiplier_raised(document: Document) -> None:
    multiplier = families_of(document)[0]["multiplier"]
    multiplier["numerator"] = 1000 * multiplier["numerator"] + 1
    multiplier["denominator"] *= 1000


@mutation(BLOCKS, "hop-bytes.bound")
def multiplier_lowered(document: Document) -> None:
    families_of(document)[0]["multiplier"]["denominator"] *= 2


@mutation(BLOCKS, "hop-bytes.bound")
def multiplier_negative(document: Document) -> None:
    multiplier = families_of(document)[0]["multiplier"]
    multiplier["numerator"] *= -1


@mutation(BLOCKS, "hop-bytes.bound")
def slope_raised(document: Document) -> None:
    slope = families_of(document)[0]["slope"]
    slope["numerator"] += 10 * slope["denominator"]


@mutation(("rough", "pencils", "folded"), "hop-bytes.bound")
def slope_dropped(document: Document) -> None:
    families_of(document)[0]["slope"]["numerator"] = 0


@mutation(BLOCKS, "hop-bytes.bound")
def family_widened(document: Document) -> None:
    extents = families_of(document)[0]["extents"]
    shape = document["instance"]["machine"]["shape"]
    extents[:] = [max(1, n // 2) if n > 2 else n for n in shape]


@mutation(BLOCKS, "hop-bytes.bound")
def family_beyond_the_machine(document: Document) -> None:
    families_of(document)[0]["extents"][0] = 99


@mutation(BLOCKS, "hop-bytes.bound")
def family_of_fewer_dimensions(document: Document) -> None:
    families_of(document)[0]["extents"].pop()


@mutation(("blocks", "ring"), "hop-bytes.bound")
def single_cuts_of_a_ring(document: Document) -> None:
    families_of(document)[0]["extents"][-1] = 0


@mutation(BLOCKS, "hop-bytes.bound")
def family_doubled(document: Document) -> None:
    families_of(document).append(families_of(document)[0])


@mutation(BLOCKS, "hop-bytes.bound")
def families_dropped(document: Document) -> None:
    families_of(document).clear()
