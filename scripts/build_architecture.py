"""Draw docs/_static/architecture.svg: a snapshot's way, and the package's rooms by their imports.

A room is a folder of the package; its row is found from the imports, so that a room stands above
all that it uses. Rooms that use each other stand in one row. The docs build draws it again.
"""

from __future__ import annotations

import ast
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "solver" / "topoplace"
PICTURE = ROOT / "docs" / "_static" / "architecture.svg"

WAY = (
    ("files", "a document", "snapshot.files"),
    ("instance", "checked, fixed", "snapshot.state"),
    ("problem", "rows and an oracle", "placement"),
    ("engine", "branch and price", "packing"),
    ("result", "with certificate", "result"),
    ("checker", "recomputes it all", "certify"),
)
"""The way of a snapshot to its certificate: what it is there, and the module that makes it so."""

WIDTH, WAY_HEIGHT, ROW, BOX = 780, 110, 78, 44

HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
font-family="sans-serif" font-size="14">
<style>
.room {{ fill: #2b5c8a }} .way {{ fill: #2f6b3a }}
text {{ text-anchor: middle; fill: #fff }} .small {{ font-size: 11px }}
.label {{ fill: #808080; font-size: 13px; text-anchor: start }}
path {{ stroke: #888; stroke-width: 1.3; fill: none }} .arrow {{ marker-end: url(#head) }}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" \
orient="auto">
<path d="M0 0L8 4L0 8z" style="fill: #888; stroke: none"/></marker></defs>
"""


def imports() -> dict[str, set[str]]:
    """Return the rooms of the package, and the other rooms that each imports when it is loaded."""
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return {
        room: {
            name
            for path in (PACKAGE / room).rglob("*.py")
            for name in _named(ast.parse(path.read_text()))
            if name in rooms and name != room
        }
        for room in sorted(rooms)
    }


def _named(module: ast.Module) -> set[str]:
    """Return the first names behind `topoplace.` of what a module imports at its top level."""
    found = set()
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("topoplace"):
            inside = (node.module or "").split(".")[1:]
            found |= {inside[0]} if inside else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found |= {name[1] for name in names if name[0] == "topoplace" and len(name) > 1}
    return found


def closure(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return all rooms that each room uses, itself included, directly or through others."""
    reached = {room: {room} | used for room, used in uses.items()}
    for _ in uses:
        reached = {a: set(chain.from_iterable(reached[b] for b in bs)) for a, bs in reached.items()}
    return reached


def rows(reached: dict[str, set[str]]) -> list[list[str]]:
    """Return the rooms in rows from the bottom, each above all that it uses and is not used by."""
    below = {a: {b for b in bs if a not in reached[b]} for a, bs in reached.items()}
    found: list[list[str]] = []
    placed: set[str] = set()
    while len(placed) < len(below):
        found.append([a for a in sorted(below) if a not in placed and below[a] <= placed])
        placed |= set(found[-1])
    return found


def _box(kind: str, x: float, y: float, width: float, name: str, small: str) -> str:
    middle = x + width / 2
    return (
        f'<rect class="{kind}" x="{x:.0f}" y="{y}" width="{width:.0f}" height="{BOX}" rx="6"/>'
        f'<text x="{middle:.0f}" y="{y + 19}">{name}</text>'
        f'<text class="small" x="{middle:.0f}" y="{y + 35}">{small}</text>\n'
    )


def picture() -> str:
    """Return the picture as SVG, in colours that do on light and on dark pages."""
    floors = rows(closure(imports()))
    height = WAY_HEIGHT + 30 + ROW * len(floors)
    drawn = [HEAD.format(width=WIDTH, height=height)]
    drawn.append(
        '<text class="label" x="10" y="18">The way of a snapshot to its certificate</text>\n'
    )
    step = WIDTH / len(WAY)
    for i, (name, what, module) in enumerate(WAY):
        if find_spec(f"topoplace.{module}") is None:
            raise ValueError(f"expected a module topoplace.{module} on the way, found none")
        drawn.append(_box("way", 8 + step * i, 30, step - 22, name, what))
        drawn.append(f'<text class="label" x="{10 + step * i:.0f}" y="92">{module}</text>\n')
        if i:
            drawn.append(f'<path class="arrow" d="M{step * i - 13:.0f} 52h19"/>\n')
    label = "The rooms: each imports from rooms below it, and perhaps from those of its own row"
    drawn.append(f'<text class="label" x="10" y="{WAY_HEIGHT + 18}">{label}</text>\n')
    for floor, names in enumerate(reversed(floors)):
        step = WIDTH / len(names)
        width = min(step - 16, 170)
        for i, name in enumerate(names):
            files = len(list((PACKAGE / name).rglob("*.py")))
            small = f"{files} files"
            x = step * (i + 0.5) - width / 2
            drawn.append(_box("room", x, WAY_HEIGHT + 30 + ROW * floor, width, name, small))
        if floor:
            y = WAY_HEIGHT + 30 + ROW * floor
            drawn.append(f'<path class="arrow" d="M{WIDTH // 2} {y - ROW + BOX + 3}V{y - 3}"/>\n')
    return "".join([*drawn, "</svg>\n"])


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(picture())


if __name__ == "__main__":
    main()
