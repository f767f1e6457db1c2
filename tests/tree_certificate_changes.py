"""Changes of certificates that are lists of nogoods, each with a tree."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

Document = dict[str, Any]
Change = Callable[[random.Random, Document], bool | None]


class Changes:
    """Named changes of a document in place; False from one if it does not apply.

    `nogoods` is where the document has them.
    """

    def __init__(self, nogoods: str) -> None:
        self.nogoods = nogoods
        self.named: dict[str, Change] = {}

    def change(self, function: Change) -> Change:
        """Register what changes a proof."""
        self.named[function.__name__] = function
        return function

    def change_of(self, kind: str) -> Callable[[Change], Change]:
        """Register what changes a part of some kind."""

        def register(function: Change) -> Change:
            def on_any(rng: random.Random, document: Document) -> bool | None:
                found = [part for part in self.parts(document) if part["kind"] == kind]
                return bool(found) and function(rng, rng.choice(found))

            self.named[function.__name__] = on_any
            return function

        return register

    def parts(self, document: Document) -> Iterator[Document]:
        """Yield every part of every tree."""
        stack = [nogood["proof"] for nogood in document[self.nogoods]]
        while stack:
            part = stack.pop()
            yield part
            if part["kind"] == "branch":
                stack += [part["without"], part["more"]]
