"""Write docs/reading: a page for each source of other tools, with what is read of it."""

from __future__ import annotations

from pathlib import Path

from topoplace.formats.declared import Table, Use
from topoplace.formats.sources import SOURCES, Source
from topoplace.snapshot.files import write_text

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reading"

WRITTEN = "Written by `scripts/build_reading_pages.py` from the tables that the readers use."

INDEX = f"""\
# What is read of other tools' files

{WRITTEN}

topoplace reads files that were written for other programs, and proves something about them. So it
says what it takes from them. Every field of a source has one of three uses:

- **read**: it becomes part of the machine, the state or a request;
- **neutral**: it says nothing on where or when a job may run;
- **restricts**: it can keep a job from nodes, or from starting now, and is not modelled.

A request with an option that restricts it is **held**: it does not start, and every command says
so. The option goes into the snapshot as `left_out`, with its value and where it stood
([formats](../reference/formats.md)). `--ignore OPTION` releases the requests that it holds, and the
result records that; `--ignore all` releases all of them. What is of no request alone, such as an
order, holds nobody and is named. Fields that no table knows are named in one line.

| source | |
|---|---|
"""


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
    rows = [_row(*header), "|---|---|---|---|"]
    for (use, about, option), names in _alike(table).items():
        rows.append(_row(", ".join(f"`{name}`" for name in names), use.value, about, option))
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


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def pages() -> dict[Path, str]:
    """Return the text of every page, by its file."""
    rows = [
        f"| [{one.title[0].upper() + one.title[1:]}]({one.page}.md) | {one.about} |"
        for one in SOURCES
    ]
    toc = "\n".join(["```{toctree}", ":hidden:", "", *(one.page for one in SOURCES), "```"])
    found = {FOLDER / "index.md": INDEX + "\n".join(rows) + "\n\n" + toc + "\n"}
    return found | {FOLDER / f"{one.page}.md": page_text(one) for one in SOURCES}


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        write_text(path, text)


if __name__ == "__main__":
    main()
