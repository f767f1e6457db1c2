"""What a person wants to read after a mapping: a few lines of plain text."""

from __future__ import annotations

from topoplace.report.text import gap_text, plain_table
from topoplace.result import Proof, Status
from topoplace.result.mapping import LayoutModel, MappingResult, MappingSolution
from topoplace.snapshot.application import GridApplication

_MOST_HOPS = 12


def mapping_summary(result: MappingResult) -> str:
    """Return a mapping result as text: hop-bytes against the bound, hops, the layout."""
    instance = result.instance
    application = instance.application
    if isinstance(application, GridApplication):
        what = f"grid {'x'.join(map(str, application.shape))}"
    else:
        what = f"graph of {application.num_tasks} tasks"
    hit = ", time limit hit" if result.limits.hit else ""
    lines = [
        f"{instance.name}: {what}, {instance.tasks_per_node} tasks per node on "
        f"{instance.machine.name}: {result.status} by {result.method}, {result.seconds:.2f} s{hit}",
        plain_table(
            ["hop-bytes", "bound", "gap", "status", "proof"],
            [
                [
                    _number(result.objective),
                    _number(result.bound),
                    gap_text(result.gap),
                    result.status,
                    result.proof,
                ]
            ],
            right=(0, 1, 2),
        ),
    ]
    if result.solution is not None:
        lines += _solution(result.solution)
    if result.status is Status.UNKNOWN:
        lines.append("no mapping found")
    return "\n".join(lines)


def _solution(solution: MappingSolution) -> list[str]:
    figures = solution.figures
    load = figures.max_link_load
    shown = [f"{hops}: {count:,}" for hops, count in enumerate(figures.histogram)]
    if len(shown) > _MOST_HOPS:
        shown = [*shown[:_MOST_HOPS], "..."]
    lines = [
        f"hops {figures.hops:,}, largest {figures.max_hops}; "
        f"{figures.off_router_messages:,} messages and {figures.off_router_bytes:,} bytes "
        "leave their router",
        f"messages by hops: {', '.join(shown)}",
    ]
    if load is not None:
        heaviest = load.numerator / load.denominator
        lines.append(f"largest link load {heaviest:,.6g} bytes per unit of bandwidth")
    if solution.layout is not None:
        lines.append(layout_text(solution.layout))
    optimum = solution.optimum
    if optimum is not None:
        best = (
            "the optimum" if optimum.bound == optimum.objective else f"at least {optimum.bound:,}"
        )
        how = "" if optimum.proof is Proof.NONE else f" (by {optimum.proof})"
        lines.append(
            f"among pencil placements: {best}{how}; {optimum.layouts} layouts, "
            f"{optimum.windows:,} windows"
        )
    return lines


def layout_text(layout: LayoutModel) -> str:
    """Return a layout and its window in one line."""
    logical = "x".join(map(str, layout.logical))
    partitions = "x".join(map(str, layout.partitions))
    text = f"layout {logical} routers, {partitions} tasks each"
    if layout.whole is not None:
        text += f" times dimension {layout.whole + 1}"
    if any(layout.folds):
        text += f", folds {','.join(map(str, layout.folds))}"
    origin = ",".join(map(str, layout.origin))
    return f"{text}; at {origin}, pencils along dimension {layout.pencil + 1}, depth {layout.depth}"


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
