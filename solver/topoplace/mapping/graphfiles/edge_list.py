"""Lists of messages: source, target and bytes, one message per line."""

from __future__ import annotations

from pathlib import Path

from topoplace.errors import InputError
from topoplace.mapping.graphfiles._fields import MAX_BYTES, count
from topoplace.mapping.graphfiles.matrix import split_fields
from topoplace.snapshot.application import MAX_TASKS, GraphApplication
from topoplace.snapshot.readers.lines import text_of

_DIRECTIVE = "# tasks "


def read_edge_list(path: str | Path) -> GraphApplication:
    """Read lines ``source target bytes``, separated by blanks or by commas; tasks from 0.

    Every line is one directed message; without the third number it has one byte. A pair may come
    more than once: its messages add up. A first line of names, such as ``source,target,bytes``, is
    left out, and so are empty lines and comments (``#``, ``%``). There are as many tasks as the
    highest number says, or as a line ``# tasks N``, so that the last tasks may be silent.

    Raises
    ------
    InputError
        Naming file, line, field and value.
    """
    file = str(path)
    num_tasks = 0
    messages: list[tuple[int, int, int]] = []
    heading_allowed = True
    for number, text in enumerate(text_of(path).splitlines(), start=1):
        line, stripped = f"line {number}", text.strip()
        if stripped.startswith(_DIRECTIVE):
            told = stripped.removeprefix(_DIRECTIVE).strip()
            num_tasks = count(told, MAX_TASKS, file=file, field=f"{line}, tasks")
        if not stripped or stripped[0] in "#%":
            continue
        fields = split_fields(stripped)
        if heading_allowed and all(field[:1].isalpha() for field in fields):
            heading_allowed = False
            continue
        heading_allowed = False
        messages.append(_message(fields, file, line))
    most = max((max(source, target) + 1 for source, target, _ in messages), default=0)
    if num_tasks and most > num_tasks:
        raise InputError(f"tasks below {num_tasks}, as said", file=file, value=most - 1)
    if not (num_tasks or most):
        raise InputError("lines of source, target and bytes", file=file)
    kept = [message for message in messages if message[0] != message[1] and message[2]]
    return GraphApplication(
        num_tasks=num_tasks or most,
        sources=[source for source, _, _ in kept],
        targets=[target for _, target, _ in kept],
        bytes=[size for _, _, size in kept],
    )


def _message(fields: list[str], file: str, line: str) -> tuple[int, int, int]:
    if not 2 <= len(fields) <= 3:
        raise InputError("source, target and bytes", file=file, field=line, value=" ".join(fields))
    source, target = (
        count(text, MAX_TASKS - 1, file=file, field=f"{line}, {name}")
        for text, name in zip(fields, ("source", "target"), strict=False)
    )
    size = count(fields[2], MAX_BYTES, file=file, field=f"{line}, bytes") if fields[2:] else 1
    return source, target, size
