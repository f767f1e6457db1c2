"""Attacks on the checker: certificates and claims that are legal by the schema, and brute truth.

`attack` draws documents of one kind for tiny problems whose truth brute force knows, and searches
from the best of them for others that prove more. Whatever the checker accepts has to be on the
right side of the truth. The files beside this one each hold the problems and the generators of a
family of kinds: `packing_kinds`, `mapping_kinds` and `tree_kinds`. `naive` reads certificates of
packings candidate by candidate, and `results` bends whole results.
"""
