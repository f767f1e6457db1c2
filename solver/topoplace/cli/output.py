"""Where a command's words go: the answer to stdout, or JSON there and the words to stderr."""

from __future__ import annotations

import json
import sys


def say(text: str, *, as_json: bool) -> None:
    """Print talk: to stdout, or to stderr when stdout belongs to a JSON document."""
    print(text, file=sys.stderr if as_json else sys.stdout)


def print_json(document: object) -> None:
    """Print a JSON document on stdout."""
    print(json_text(document))


def json_text(document: object) -> str:
    """Return a document as one line of JSON."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False)
