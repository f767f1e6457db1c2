"""The pattern of a communication graph: a grid, all-to-all in parts, a tree (Bhatele 2009, 4.3).

`factors` factors graphs into lines, rings and all-to-alls; `arrangement` says which task is where
in such a product; `recognise` tries a graph without its small messages, and keeps the pattern that
explains the most bytes; `pattern` is the answer.
"""

from topoplace.mapping.recognition.pattern import Recognition as Recognition
from topoplace.mapping.recognition.recognise import recognise as recognise
