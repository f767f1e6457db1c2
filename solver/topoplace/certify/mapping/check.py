"""Check every claim of a mapping result, from the instance inside it alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from topoplace.certify.mapping.blocks import blocks_value, total_value
from topoplace.certify.mapping.distance_classes import distance_classes_value
from topoplace.certify.mapping.figures import check_figures
from topoplace.certify.mapping.instance import Instance, IntArray, read_instance
from topoplace.certify.mapping.layout import Window, check_layout
from topoplace.certify.mapping.levels import check_level, check_levels
from topoplace.certify.mapping.optimum import check_optimum
from topoplace.certify.mapping.solution import read_nodes
from topoplace.certify.mapping.star import star_value
from topoplace.certify.report import Claim, RefusedError, Report
from topoplace.errors import InputError
from topoplace.result import Proof
from topoplace.result.mapping import (
    DistanceClassesCertificate,
    LayoutModel,
    MappingCertificate,
    MappingLevel,
    MappingResult,
    MappingSolution,
    StarCertificate,
    TotalCertificate,
)

Found = TypeVar("Found")


def check_mapping(result: MappingResult) -> Report:
    """Check every claim of a mapping result (docs/proofs-mapping.md).

    Returns
    -------
    Report
        One claim per statement; a result whose instance or solution does not hold is not
        followed further.
    """
    return _Checker(result).report()


class _Checker:
    """Collects claims, one method call each."""

    def __init__(self, result: MappingResult) -> None:
        self._result = result
        self._claims: list[Claim] = []

    def report(self) -> Report:
        level = self._claim("levels", lambda: _level(self._result))
        instance = self._claim("instance", lambda: _instance(self._result))
        if level is None or instance is None:
            return Report(tuple(self._claims))
        solution = self._result.solution
        value: int | None = None
        if solution is not None:
            nodes = self._claim("solution", lambda: _nodes(instance, solution))
            if nodes is None:
                return Report(tuple(self._claims))
            value = self._claim("figures", lambda: _figures(instance, nodes, solution))
            if value is None:
                return Report(tuple(self._claims))
            self._solution(instance, solution, nodes, value)
        self._claim("hop-bytes", lambda: (True, check_level(level, value)))
        if level.bound is not None:
            by_search = level.proof is Proof.SEARCH
            self._claim("hop-bytes.bound", lambda: _bound(instance, level), by_search)
        return Report(tuple(self._claims))

    def _solution(
        self, instance: Instance, solution: MappingSolution, nodes: IntArray, value: int
    ) -> None:
        """Check what a solution says of itself besides its figures."""
        window: Window | None = None
        layout, optimum = solution.layout, solution.optimum
        if layout is not None:
            window = self._claim("layout", lambda: _layout(instance, nodes, layout))
        if optimum is not None:
            self._claim("optimum", lambda: (True, check_optimum(instance, window, value, optimum)))

    def _claim(
        self, name: str, check: Callable[[], tuple[Found, str]], by_search: bool = False
    ) -> Found | None:
        """Add a claim: it holds if the check returns (value, detail), fails if it refuses."""
        try:
            found, detail = check()
        except (RefusedError, InputError, OverflowError) as error:
            self._claims.append(Claim(name, False, str(error)))
            return None
        self._claims.append(Claim(name, True, detail, by_search))
        return found


def _level(result: MappingResult) -> tuple[MappingLevel, str]:
    level = check_levels(result)
    return level, level.name


def _instance(result: MappingResult) -> tuple[Instance, str]:
    instance = read_instance(result.instance)
    return instance, f"{instance.machine.text}, {instance.num_tasks} tasks"


def _nodes(instance: Instance, solution: MappingSolution) -> tuple[IntArray, str]:
    return read_nodes(instance, solution), "every task has a node, none is too full"


def _figures(instance: Instance, nodes: IntArray, solution: MappingSolution) -> tuple[int, str]:
    value = check_figures(instance, nodes, solution.figures)
    return value, f"hop-bytes {value}, {solution.figures.hops} hops"


def _layout(instance: Instance, nodes: IntArray, layout: LayoutModel) -> tuple[Window, str]:
    window = check_layout(instance, nodes, layout)
    pencils = f"{len(window.usable)} pencils of {window.levels} in depth {window.depth}"
    return window, f"the mapping is its layout, {pencils}"


def _bound(instance: Instance, level: MappingLevel) -> tuple[bool, str]:
    """Check what supports the bound: a search is not repeated, and may not hide a certificate."""
    if level.bound is None:
        raise RefusedError("a certificate without a bound")
    if level.certificate is None:
        return True, "found by search, not repeated"
    proven = _proven(instance, level.certificate)
    if level.proof is Proof.SEARCH:
        if level.bound <= proven:
            raise RefusedError(f"proof is search, but the certificate proves {proven}")
        return True, f"found by search, not repeated; the certificate proves {proven}"
    if level.bound > proven:
        raise RefusedError(f"bound is {level.bound}, the certificate only proves {proven}")
    return True, f"the certificate proves {proven}"


def _proven(instance: Instance, certificate: MappingCertificate) -> int:
    """Return the hop-bytes that a certificate proves of any mapping."""
    if isinstance(certificate, TotalCertificate):
        return total_value(instance)
    if isinstance(certificate, StarCertificate):
        return star_value(instance, certificate)
    if isinstance(certificate, DistanceClassesCertificate):
        return distance_classes_value(instance, certificate)
    return blocks_value(instance, certificate)
