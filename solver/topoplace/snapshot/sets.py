"""Expressions over named sets of nodes: which nodes a request may have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping

import numpy as np

from topoplace.errors import InputError, unknown_name
from topoplace.snapshot.schema import Request
from topoplace.types import BoolArray, IntArray

_TOKEN = re.compile(r"\s*([&|!()]|[^\s&|!()]+)")
_MOST_TOKENS = 1000


class HostSet:
    """A set of hosts that can be a key: equal sets are equal.

    Attributes
    ----------
    mask
        Whether each host is in it, shape ``(num_hosts,)``.
    """

    def __init__(self, mask: BoolArray) -> None:
        self.mask = mask
        self._key = np.packbits(mask).tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostSet) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class HostOrder:
    """Hosts in an order that can be a key: equal orders are equal.

    Attributes
    ----------
    hosts
        Their numbers, each once, shape ``(num_hosts_in_it,)``.
    """

    def __init__(self, hosts: IntArray) -> None:
        self.hosts = hosts
        self._key = hosts.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostOrder) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class NodeSets:
    """The named sets of nodes of a snapshot.

    Parameters
    ----------
    nodes_of
        Returns the nodes of a list, called with its text and its field.
    """

    def __init__(
        self, sets: Mapping[str, str], num_nodes: int, nodes_of: Callable[[str, str], IntArray]
    ) -> None:
        self._num_nodes, self._nodes_of = num_nodes, nodes_of
        self._masks: MutableMapping[str, BoolArray] = {
            name: self._mask(text, f"sets.{name}") for name, text in sets.items()
        }

    def _mask(self, text: str, field: str) -> BoolArray:
        mask = np.zeros(self._num_nodes, dtype=bool)
        mask[self._nodes_of(text, field)] = True
        return mask

    def allowed(self, eligible: str | None, excluded: str | None, field: str) -> BoolArray:
        """Return the nodes that a request may have, shape ``(num_nodes,)``."""
        mask = np.ones(self._num_nodes, dtype=bool)
        if eligible is not None:
            mask &= self.named(eligible, f"{field}.eligible")
        if excluded is not None:
            mask &= ~self._mask(excluded, f"{field}.excluded")
        return mask

    def of_request(self, request: Request, field: str) -> list[BoolArray]:
        """Return the sets of nodes of one of which a request has all its nodes."""
        allowed = self.allowed(request.eligible, request.excluded, field)
        if request.one_of is None:
            return [allowed]
        texts = enumerate(request.one_of)
        return [allowed & self.named(text, f"{field}.one_of[{idx}]") for idx, text in texts]

    def named(self, expression: str, field: str) -> BoolArray:
        """Return the nodes that an expression stands for, shape ``(num_nodes,)``."""
        return nodes_in(expression, self._masks, field)


def nodes_in(expression: str, sets: Mapping[str, BoolArray], field: str) -> BoolArray:
    """Return the nodes that an expression such as ``acc & (ib | !slow)`` stands for.

    ``!`` binds closest, then ``&``, then ``|``.

    Parameters
    ----------
    sets
        The named sets, at least one, of shape ``(num_nodes,)`` each.

    Raises
    ------
    InputError
        With the field, for an unknown set, and for what is no expression.
    """
    tokens = _TOKEN.findall(expression)
    if len(tokens) > _MOST_TOKENS:
        expected = f"at most {_MOST_TOKENS} names and operators"
        raise InputError(expected, field=field, found=str(len(tokens)))
    reader = _Reader(tokens, sets, expression, field)
    found = reader.either()
    if reader.at < len(tokens):
        raise reader.fault("& or |")
    return found


class _Reader:
    def __init__(
        self, tokens: list[str], sets: Mapping[str, BoolArray], text: str, field: str
    ) -> None:
        self.at = 0
        self._tokens, self._sets, self._text, self._field = tokens, sets, text, field

    def fault(self, expected: str) -> InputError:
        there = self.at < len(self._tokens)
        found = (
            f"{self._tokens[self.at]} in {self._text!r}" if there else f"the end of {self._text!r}"
        )
        return InputError(expected, field=self._field, found=found)

    def _next_is(self, token: str) -> bool:
        is_next = self._tokens[self.at : self.at + 1] == [token]
        self.at += is_next
        return is_next

    def either(self) -> BoolArray:
        found = self._both()
        while self._next_is("|"):
            found = found | self._both()
        return found

    def _both(self) -> BoolArray:
        found = self._one()
        while self._next_is("&"):
            found = found & self._one()
        return found

    def _one(self) -> BoolArray:
        if self._next_is("!"):
            return np.logical_not(self._one())
        if self._next_is("("):
            found = self.either()
            if not self._next_is(")"):
                raise self.fault(")")
            return found
        if self.at == len(self._tokens) or self._tokens[self.at] in "&|)":
            raise self.fault("the name of a set")
        name = self._tokens[self.at]
        if name not in self._sets:
            raise unknown_name(name, self._sets, field=self._field)
        self.at += 1
        return self._sets[name]
