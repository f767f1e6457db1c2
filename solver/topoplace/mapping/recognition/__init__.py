"""What a communication graph is: a grid, all-to-all in parts, a tree (Bhatele 2009, section 4.3).

`factors` takes graphs apart into lines, rings and all-to-alls; `arrangement` says which task is
where in such a product; `recognise` tries what is left of a graph without its small messages, and
keeps what explains most bytes; `pattern` is what comes out.
"""

from topoplace.mapping.recognition.pattern import Recognition as Recognition
from topoplace.mapping.recognition.recognise import recognise as recognise
