"""Write docs/reading: a page for each source of other tools, with what is read of it."""

from __future__ import annotations

from pathlib import Path

from study import ROOT, inserted, line
from topoplace.formats.declared import Table, Use
from topoplace.formats.sources import SOURCES, Source
from topoplace.snapshot.files import write_text

FOLDER = ROOT / "docs" / "reading"

WRITTEN = "Written by `scripts/build_reading_pages.py` from the tables that the readers use."

BEGIN = "<!-- sources: written by scripts/build_reading_pages.py -->"


def page_text(source: Source) -> str:
    """Return the page of a source: a table for each of its parts."""
    tables = source.tables()
    parts = [f"# What is read of {source.title}", WRITTEN, source.about]
    for table in tables:
        parts += [f"## {table.title}"] if len(tables) > 1 else []
        parts.append("\n".join(_rows(table)))
    return "\n\n".join(parts) + "\n"


def _rows(table: Table) -> list[str]:
    header = ("field", "use", "what it says, or when it holds a job", "option for `--ignore`")
    rows = [line(header), "|---|---|---|---|"]
    for (use, about, option), names in _alike(table).items():
        named = ", ".join(f"`{name}`" for name in names)
        rows.append(line((named, use.value, about, option)))
    return rows


def _alike(table: Table) -> dict[tuple[Use, str, str], list[str]]:
    """Return fields of which the same is said: those read first, neutral ones last."""
    order = (Use.READ, Use.RESTRICTS, Use.NEUTRAL)
    found: dict[tuple[Use, str, str], list[str]] = {}
    for field in sorted(table.fields, key=lambda field: order.index(field.use)):
        holds = field.use is Use.RESTRICTS and not field.about.startswith("nobody")
        option = f"`{field.held_by}`" if holds else ""
        found.setdefault((field.use, field.about, option), []).append(field.name)
    return found


def pages() -> dict[Path, str]:
    """Return the text of every page, by its file."""
    rows = [
        f"| [{one.title[0].upper() + one.title[1:]}]({one.page}.md) | {one.about} |"
        for one in SOURCES
    ]
    toc = "\n".join(["```{toctree}", ":hidden:", "", *(one.page for one in SOURCES), "```"])
    index = FOLDER / "index.md"
    lines = "\n".join(["| source | |", "|---|---|", *rows])
    written = inserted(index.read_text(encoding="utf-8"), BEGIN, f"{lines}\n\n{toc}\n")
    return {index: written} | {FOLDER / f"{one.page}.md": page_text(one) for one in SOURCES}


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        write_text(path, text)


if __name__ == "__main__":
    main()
