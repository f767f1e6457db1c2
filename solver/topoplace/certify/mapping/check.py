"""The claims of a mapping (docs/proofs-mapping.md)."""

from __future__ import annotations

from functools import cached_property

from topoplace.certify.figures import Searches
from topoplace.certify.mapping.blocks import blocks_value, total_value
from topoplace.certify.mapping.cuts import cuts_value
from topoplace.certify.mapping.distance_classes import distance_classes_value
from topoplace.certify.mapping.figures import check_figures, read_nodes
from topoplace.certify.mapping.instance import Instance, read_instance
from topoplace.certify.mapping.pencils import Window, check_layout, check_optimum
from topoplace.certify.mapping.star import star_value
from topoplace.certify.report import Claims, RefusedError
from topoplace.errors import InputError
from topoplace.result.mapping import (
    CutsCertificate,
    DistanceClassesCertificate,
    MappingCertificate,
    MappingResult,
    StarCertificate,
    TotalCertificate,
)


class Mapping:
    """A mapping, as the frame asks for it (`certify.check.Problem`)."""

    levels = (("hop-bytes", "min"),)
    together = False
    searches: Searches = "beside"

    def __init__(self, result: MappingResult) -> None:
        self._result = result
        self._instance: Instance
        self.values: list[int | None] = [None]

    def read(self) -> str:
        """Read the instance and return what it is."""
        self._instance = read_instance(self._result.instance)
        return f"{self._instance.machine.text}, {self._instance.num_tasks} tasks"

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution."""
        instance, solution = self._instance, self._result.solution
        if solution is None:
            return True
        nodes = claims.add(
            "solution",
            lambda: read_nodes(instance, solution),
            lambda _: "every task has a node, none is too full",
        )
        if nodes is None:
            return False
        value = claims.add(
            "figures",
            lambda: check_figures(instance, nodes, solution.figures),
            lambda value: f"hop-bytes {value}, {solution.figures.hops} hops",
        )
        if value is None:
            return False
        self.values = [value]
        window: Window | None = None
        layout, optimum = solution.layout, solution.optimum
        if layout is not None:
            window = claims.add(
                "layout",
                lambda: check_layout(instance, nodes, layout),
                lambda window: f"the mapping is its layout, {window.text}",
            )
        if optimum is not None:
            # pencil placements are mappings: what holds of all of these, holds of them
            confirmed = self._proven is not None and optimum.bound <= self._proven
            claims.add(
                "optimum",
                lambda: check_optimum(instance, window, value, optimum),
                lambda text: "by the certificate of any mapping" if confirmed else text,
                by_search=not confirmed,
            )
        return True

    def bound(self, level_idx: int) -> tuple[int, str]:
        """Return the hop-bytes that the certificate proves of any mapping."""
        proven = self._proven
        if proven is None:  # refused before: say why
            certificate = self._result.levels[level_idx].certificate
            assert certificate is not None
            proven = _value_of(self._instance, certificate)
        return proven, ""

    @cached_property
    def _proven(self) -> int | None:
        """The hop-bytes that the certificate proves of any mapping; None without a sound one."""
        certificates = [level.certificate for level in self._result.levels]
        if len(certificates) != 1 or certificates[0] is None:
            return None
        try:
            return _value_of(self._instance, certificates[0])
        except (RefusedError, InputError, OverflowError):
            return None


def _value_of(instance: Instance, certificate: MappingCertificate) -> int:
    if isinstance(certificate, TotalCertificate):
        return total_value(instance)
    if isinstance(certificate, StarCertificate):
        return star_value(instance, certificate)
    if isinstance(certificate, DistanceClassesCertificate):
        return distance_classes_value(instance, certificate)
    if isinstance(certificate, CutsCertificate):
        return cuts_value(instance, certificate)
    return blocks_value(instance, certificate)
