"""Many integers as one short text of a document: planes of bytes, deflated, in base 64."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from topoplace.errors import InputError, number_of
from topoplace.snapshot.schema import Model
from topoplace.types import IntArray


class Packed(Model):
    """Integers x, each as the number 2x, or -2x - 1 if x is negative, of `width` bytes.

    The lowest bytes of all numbers come first, then the next ones, and so on; zlib deflates
    (RFC 1950) them, and base 64 (RFC 4648) makes a text of them.
    """

    width: Annotated[int, Field(ge=1, le=8)]
    text: str


def packed(numbers: IntArray) -> Packed:
    """Return integers as a document has them; their shape is not kept."""
    flat = numbers.astype(np.int64).ravel()
    folded = ((flat << 1) ^ (flat >> 63)).view(np.uint64)
    width = max(1, -(-int(folded.max(initial=0)).bit_length() // 8))
    planes = folded.astype("<u8").view(np.uint8).reshape(-1, 8).T[:width]
    deflated = zlib.compress(np.ascontiguousarray(planes).tobytes(), 9)
    return Packed(width=width, text=base64.b64encode(deflated).decode("ascii"))


def unpacked(document: Packed, count: int, field: str) -> IntArray:
    """Return the integers of a document; `InputError` unless there are `count` of them."""
    size, width = count * document.width, document.width
    inflating = zlib.decompressobj()
    try:
        found = inflating.decompress(base64.b64decode(document.text, validate=True), size + 1)
    except (ValueError, binascii.Error, zlib.error):
        raise InputError("a deflated list in base 64", field=field) from None
    if len(found) != size or not inflating.eof:
        raise InputError(f"a list of {number_of(count, 'number')} of {width} bytes", field=field)
    planes: NDArray[np.uint8] = np.zeros((8, count), dtype=np.uint8)
    planes[:width] = np.frombuffer(found, dtype=np.uint8).reshape(width, count)
    folded = np.ascontiguousarray(planes.T).view("<u8").ravel().astype(np.uint64)
    halves = (folded >> np.uint64(1)).astype(np.int64)
    numbers: IntArray = halves ^ -(folded & np.uint64(1)).astype(np.int64)
    return numbers
