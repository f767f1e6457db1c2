"""Check every claim of a mapping result, from the instance inside it alone."""

from __future__ import annotations

from topoplace.certify.figures import check_figures as check_level
from topoplace.certify.figures import check_proven, check_top
from topoplace.certify.integers import IntArray
from topoplace.certify.mapping.blocks import blocks_value, total_value
from topoplace.certify.mapping.cuts import cuts_value
from topoplace.certify.mapping.distance_classes import distance_classes_value
from topoplace.certify.mapping.figures import check_figures
from topoplace.certify.mapping.instance import Instance, read_instance
from topoplace.certify.mapping.layout import Window, check_layout
from topoplace.certify.mapping.optimum import check_optimum
from topoplace.certify.mapping.solution import read_nodes
from topoplace.certify.mapping.star import star_value
from topoplace.certify.report import Claims, RefusedError, Report
from topoplace.result import Proof
from topoplace.result.mapping import (
    CutsCertificate,
    DistanceClassesCertificate,
    LayoutModel,
    MappingCertificate,
    MappingLevel,
    MappingResult,
    MappingSolution,
    StarCertificate,
    TotalCertificate,
)


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
    """The claims of one result."""

    def __init__(self, result: MappingResult) -> None:
        self._result = result
        self._claims = Claims()

    def report(self) -> Report:
        level = self._claims.add("levels", lambda: _level(self._result))
        instance = self._claims.add("instance", lambda: _instance(self._result))
        if level is None or instance is None:
            return self._claims.report()
        solution = self._result.solution
        value: int | None = None
        if solution is not None:
            nodes = self._claims.add("solution", lambda: _nodes(instance, solution))
            if nodes is None:
                return self._claims.report()
            value = self._claims.add("figures", lambda: _figures(instance, nodes, solution))
            if value is None:
                return self._claims.report()
            self._solution(instance, solution, nodes, value)
        self._claims.add("hop-bytes", lambda: (True, check_level(level, value, searches=True)))
        if level.bound is not None:
            by_search = level.proof is Proof.SEARCH
            self._claims.add(
                "hop-bytes.bound", lambda: _bound(instance, level, value), by_search=by_search
            )
        return self._claims.report()

    def _solution(
        self, instance: Instance, solution: MappingSolution, nodes: IntArray, value: int
    ) -> None:
        """Check what a solution says of itself besides its figures."""
        window: Window | None = None
        layout, optimum = solution.layout, solution.optimum
        if layout is not None:
            window = self._claims.add("layout", lambda: _layout(instance, nodes, layout))
        if optimum is not None:
            self._claims.add(
                "optimum",
                lambda: (True, check_optimum(instance, window, value, optimum)),
                by_search=True,
            )


def _level(result: MappingResult) -> tuple[MappingLevel, str]:
    if len(result.levels) != 1:
        raise RefusedError(f"{len(result.levels)} levels, a mapping has one")
    check_top(result)
    return result.levels[0], result.levels[0].name


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


def _bound(instance: Instance, level: MappingLevel, value: int | None) -> tuple[bool, str]:
    """Check what supports the bound: a search is not repeated, and may not hide a certificate."""
    if level.certificate is None:
        return True, "found by search, not repeated"
    proven = _proven(instance, level.certificate)
    summary = check_proven(level, value, proven)
    if level.proof is Proof.CERTIFICATE:
        return True, summary
    if level.bound is not None and level.bound <= proven:
        raise RefusedError(f"proof is search, but the certificate proves {proven}")
    return True, f"found by search, not repeated; {summary}"


def _proven(instance: Instance, certificate: MappingCertificate) -> int:
    """Return the hop-bytes that a certificate proves of any mapping."""
    if isinstance(certificate, TotalCertificate):
        return total_value(instance)
    if isinstance(certificate, StarCertificate):
        return star_value(instance, certificate)
    if isinstance(certificate, DistanceClassesCertificate):
        return distance_classes_value(instance, certificate)
    if isinstance(certificate, CutsCertificate):
        return cuts_value(instance, certificate)
    return blocks_value(instance, certificate)
