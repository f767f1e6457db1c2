"""Nodes as text: Slurm host lists such as ``n[01-16,20]``, and numbers such as ``0-47,60``."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.types import IntArray

MAX_HOSTS = 1 << 21
"""Longer lists are refused before they are expanded."""

_MAX_DIGITS = 18  # of a number in a range
_MAX_NAME = 256  # characters of an item without its ranges, so that lists stay small
_ITEM = re.compile(r"\s*((?:[^\s,\[\]]|\[[^\[\]]*\])+)\s*(?:(,)|$)")
_GROUP = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(rf"([0-9]{{1,{_MAX_DIGITS}}})(?:-([0-9]{{1,{_MAX_DIGITS}}}))?")
_LITERAL = re.compile(r"[A-Za-z0-9_.-]*")
_NUMBER = re.compile(r"([0-9]+)")


_Spans = list[tuple[int, int, int]]
"""The ranges of a bracket group: first, last, digits."""


def expand_host_list(text: str, field: str = "nodes") -> list[str]:
    """Return the names of a host list, in its order, with its repetitions.

    An item may have several bracket groups and text between and after them; the last group
    varies fastest. Numbers have at least the digits of their range's first: ``n[08-10]`` is
    n08, n09, n10. For several lists of a document, see `NodeLists`.

    Raises
    ------
    InputError
        With the malformed part, or if there would be more than `MAX_HOSTS` names.
    """
    return NodeLists().hosts(text, field)


def count_hosts(text: str, field: str = "nodes") -> int:
    """Return the number of names of a host list, without expanding it.

    Raises
    ------
    InputError
        As `expand_host_list` does.
    """
    return sum(
        math.prod(map(_size, groups)) for _, groups in _items(text, field, MAX_HOSTS, MAX_HOSTS)
    )


class NodeLists:
    """Expands host lists and node sets of a document, which name at most `MAX_HOSTS` in all.

    Lists with more names are refused before they are expanded: a file of some kilobytes can name
    millions of nodes in each of its lines. On larger machines, `num_nodes` names are allowed in
    all.
    """

    def __init__(self, num_nodes: int = 0) -> None:
        self._most = self._left = max(MAX_HOSTS, num_nodes)

    def hosts(self, text: str, field: str = "nodes", times: int = 1) -> list[str]:
        """Return the names of a host list as `expand_host_list` does, the list `times` times."""
        items = _items(text, field, self._left // times, self._most)
        names: list[str] = []
        for pieces, groups in items:
            if not groups:
                names += pieces
                continue
            choices: list[list[str]] = [[piece] for piece in pieces]
            choices[1::2] = [
                [str(n).zfill(width) for low, high, width in group for n in range(low, high + 1)]
                for group in groups
            ]
            names += map("".join, itertools.product(*choices))
        self._left -= len(names) * times
        return names * times

    def numbers(self, text: str, num_nodes: int, field: str = "nodes") -> IntArray:
        """Return the nodes of a set of numbers, as `parse_node_set` does."""
        spans = _spans_of_numbers(text, num_nodes, field)
        self._left -= sum(high - low + 1 for low, high in spans)
        if self._left < 0:
            raise InputError(f"at most {self._most} nodes in all", field=field, value=text)
        if not spans:
            return np.zeros(0, dtype=np.int64)
        return np.concatenate([np.arange(a, b + 1, dtype=np.int64) for a, b in spans])


@lru_cache(maxsize=8)
def names_by_number(text: str | None, num_nodes: int, others: str, what: str) -> tuple[str, ...]:
    """Return what every node of a machine is called, by its number; nothing for one without a name.

    Parameters
    ----------
    text
        The field ``names`` of the machine: names of all nodes, or of all but the `others`; None for
        no names.
    others, what
        The numbers of these, and the field that has them.

    Raises
    ------
    InputError
        If there are not as many names, or two nodes have the same.
    """
    if text is None:
        return ()
    listed, nodes = NodeLists(num_nodes).hosts(text, "names"), np.arange(num_nodes)
    if len(listed) != num_nodes:
        nodes = np.setdiff1d(nodes, parse_node_set(others, num_nodes, what))
    if len(listed) != len(nodes):
        expected = f"a name for each of {number_of(num_nodes, 'node')}"
        if len(nodes) < num_nodes:
            expected += f", or of {len(nodes):,} without the nodes of {what}"
        raise InputError(expected, field="names", found=number_of(len(listed), "name"))
    require_each_once(listed, "names")
    names = [""] * num_nodes
    for node, name in zip(nodes.tolist(), listed, strict=True):
        names[node] = name
    return tuple(names)


def require_each_once(names: Sequence[str], field: str) -> None:
    """Raise `InputError` if a node is named twice."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError("each node once", field=field, value=twice)


def _items(text: str, field: str, left: int, most: int) -> list[tuple[list[str], list[_Spans]]]:
    """Return text and bracket groups of every item; `left` of `most` names are still allowed."""
    items = []
    at = 0
    more = bool(text.strip())
    while more:
        match = _ITEM.match(text, at)
        if match is None:
            raise InputError(
                "a host list such as n[01-16,20],m3", field=field, value=text[at:].strip()
            )
        pieces = _GROUP.split(match[1])  # text and bracket groups alternate
        groups = [_spans(group, match[1], field) for group in pieces[1::2]]
        _require_names(pieces[::2], match[1], field)
        left -= math.prod(map(_size, groups))
        if left < 0:
            raise InputError(f"at most {most} names", field=field, value=match[1])
        items.append((pieces, groups))
        at, more = match.end(), match[2] is not None
    return items


def _require_names(literals: list[str], item: str, field: str) -> None:
    if not all(map(_LITERAL.fullmatch, literals)):
        raise InputError("names of letters, digits, '_', '.' and '-'", field=field, value=item)
    if sum(map(len, literals)) > _MAX_NAME:
        raise InputError(f"names of at most {_MAX_NAME} characters", field=field, value=item)


def _size(group: _Spans) -> int:
    return sum(high - low + 1 for low, high, _ in group)


def _spans(group: str, item: str, field: str) -> _Spans:
    spans = []
    for part in group.split(","):
        if part.isdecimal() and part.isascii() and len(part) <= _MAX_DIGITS:
            spans.append((int(part), int(part), len(part)))
            continue
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise InputError(
                f"ranges such as 01-16 in {item}", field=field, value=part.strip() or "[]"
            )
        low, high = match[1], match[2] or match[1]
        if int(high) < int(low) or (high.startswith("0") and len(high) != len(low)):
            raise InputError(f"ranges that ascend in {item}", field=field, value=part.strip())
        spans.append((int(low), int(high), len(low)))
    return spans


def format_host_list(names: Iterable[str]) -> str:
    """Return names as a host list that expands to exactly these, in this order.

    Neighbours in the order that differ in one number share a bracket group.

    Raises
    ------
    InputError
        For a name that cannot be in a host list.
    """
    return _joined([_NUMBER.split(_checked(name)) for name in names])


def sorted_host_list(names: Iterable[str]) -> str:
    """Return names as a host list, n2 before n10.

    Raises
    ------
    InputError
        For a name that cannot be in a host list.
    """
    return _joined(sorted((_NUMBER.split(_checked(name)) for name in names), key=_by_numbers))


def _by_numbers(pieces: list[str]) -> list[str | int]:
    """Return what sorts split names: text and numbers in turn."""
    found: list[str | int] = [*pieces]
    found[1::2] = map(int, pieces[1::2])
    return found


def _joined(pieces: Sequence[list[str]]) -> str:
    """Return split names as a host list."""
    items: list[str] = []
    start = 0
    while start < len(pieces):
        first = pieces[start]
        place = _difference(first, pieces[start + 1]) if start + 1 < len(pieces) else None
        end = start + 1
        if place is None:
            items.append("".join(first))
        else:
            before, after = first[:place], first[place + 1 :]
            numbers = [first[place]]
            for piece in itertools.islice(pieces, end, None):
                if piece[:place] != before or piece[place + 1 :] != after:
                    break
                if piece[place] == first[place] or len(piece[place]) > _MAX_DIGITS:
                    break
                numbers.append(piece[place])
            end = start + len(numbers)
            items.append("".join([*before, f"[{_format_ranges(numbers)}]", *after]))
        start = end
    return ",".join(items)


def _checked(name: str) -> str:
    if not name or _LITERAL.fullmatch(name) is None:
        raise InputError("a name of letters, digits, '_', '.' and '-'", field="nodes", value=name)
    return name


def _difference(a: list[str], b: list[str]) -> int | None:
    """Return the place of the one number in which two split names differ, if there is only one."""
    if len(a) != len(b):
        return None
    place = next((k for k in range(len(a)) if a[k] != b[k]), 0)
    if place % 2 == 0 or a[place + 1 :] != b[place + 1 :]:
        return None
    return place if max(len(a[place]), len(b[place])) <= _MAX_DIGITS else None


def _format_ranges(numbers: Sequence[str]) -> str:
    parts: list[str] = []
    start = 0
    for k in range(1, len(numbers) + 1):
        low = numbers[start]
        following = str(int(low) + k - start).zfill(len(low))
        if k == len(numbers) or numbers[k] != following:
            parts.append(low if k == start + 1 else f"{low}-{numbers[k - 1]}")
            start = k
    return ",".join(parts)


# ---- Sets of node numbers written as ranges, such as ``"0-47,60,62-63"`` -------------------------

_NUMBERS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def parse_node_set(text: str, num_nodes: int, field: str = "nodes") -> IntArray:
    """Return the node numbers of a range list, ascending.

    Raises
    ------
    InputError
        If the text is malformed, names a node twice or a node outside ``0..num_nodes-1``.
    """
    return NodeLists(num_nodes).numbers(text, num_nodes, field)


def _spans_of_numbers(text: str, num_nodes: int, field: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for part in text.split(",") if text.strip() else []:
        match = _NUMBERS.fullmatch(part.strip())
        if match is None:
            raise InputError('ranges such as "0-47,60"', field=field, value=part)
        low = int(match[1])
        high = int(match[2]) if match[2] else low
        if high < low:
            raise InputError("ranges that ascend", field=field, value=part)
        if high >= num_nodes:
            raise InputError(f"node numbers from 0 to {num_nodes - 1}", field=field, value=part)
        spans.append((low, high))
    spans.sort()
    for (_, end), (start, _) in itertools.pairwise(spans):
        if start <= end:
            raise InputError("each node once", field=field, found=f"node {start} twice")
    return spans


def format_node_set(nodes: Iterable[int]) -> str:
    """Return node numbers as a range list, ascending and without repetition."""
    parts = []
    ordered = np.unique(np.fromiter(nodes, dtype=np.int64))
    for run in np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1) if len(ordered) else ():
        parts.append(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]))
    return ",".join(parts)
