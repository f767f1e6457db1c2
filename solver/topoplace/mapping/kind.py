"""Tasks of an application onto nodes."""

from topoplace.kinds import Kind

_BEST = "topoplace.mapping.methods.best"
_BUILT = "topoplace.mapping.methods.constructions"
_ORDERS = "topoplace.mapping.methods.orders"
_SEARCHES = "topoplace.mapping.methods.searches"
_NESTED = "topoplace.mapping.methods.nested"
_SPLIT = "topoplace.mapping.methods.split_axes"
_PAPERS = "topoplace.mapping.methods.papers"

_BOUNDS, _EMBED, _GROW = "mapping.bounds", "mapping.embedding", "mapping.growing"
_HALVE, _ANNEAL, _TABU = "mapping.halving", "mapping.local_search", "mapping.tabu_search"
_OBJECTS = "mapping.objects"
_SEARCH = (_BOUNDS, _GROW, _HALVE, _ANNEAL, _TABU, _OBJECTS)
_MINIZINC = "topoplace.explicit.reference:mapping_minizinc"
_CP_SAT = "topoplace.explicit.method:cp_sat"

KIND = Kind(
    name="mapping",
    title="of mapping",
    result="topoplace.result.mapping:MappingResult",
    frame="topoplace.mapping.outcome:FRAME",
    checker="topoplace.certify.mapping.check:Mapping",
    prepare="topoplace.mapping.problem:prepare_mapping",
    schema="topoplace.mapping/1",
    instance="topoplace.snapshot.schema:MappingInstance",
    reference="topoplace.explicit.reference:data_of_mapping",
    exported="topoplace.explicit.mapping:model_of",
    view="topoplace.mapping.view:MappingView",
    methods={
        "auto": (_BEST, "the best of the constructions; for graphs as exact, within a time"),
        "bisection": (_BUILT, "machine and graph halved together, again and again"),
        "blocks": (_BUILT, "equal boxes of the grid on a full prism of routers"),
        "bricks": (_PAPERS, "patches by bisection, computes between theirs (Bhatele 2009, 3.3.2)"),
        "cp-sat": (_CP_SAT, "the explicit model of each level, by CP-SAT; for comparison"),
        "default": (_ORDERS, "consecutive tasks fill node after node (SMP order)"),
        "exact": (_BEST, "embedding with one hop per message, else branch and bound if small"),
        "fold-2d": (_BUILT, "a 2D grid folded over the layers of a full prism"),
        "given": (_ORDERS, "a mapping made elsewhere, only evaluated and bounded"),
        "greedy": (_BUILT, "the most connected task next to its placed partners"),
        "grid-order": (_ORDERS, "cells of the grid, in grid order, fill node after node"),
        "hilbert": (_ORDERS, "tasks in the best of three orders along Hilbert's curve"),
        "in-order": (_PAPERS, "consecutive objects, the average load on node after node"),
        "local-search": (_SEARCHES, "simulated annealing from a mapping or the best simple method"),
        "minizinc": (_MINIZINC, "reference MiniZinc model, for a dozen tasks"),
        "nested-boxes": (_NESTED, "trees and hierarchies: a grid cut into boxes within boxes"),
        "oblivious": (_PAPERS, "the largest load first, on the emptiest node"),
        "patches": (_PAPERS, "patches by bisection, computes where proxies are (Bhatele 2009)"),
        "pencils": (_BUILT, "best layout, window and routers of every pencil"),
        "prisms": (_PAPERS, "GSpace, RealSpace, PairCalculators in prisms (Bhatele 2009, 3.3.1)"),
        "proxies": (_PAPERS, "patches in order, computes where proxies are (Bhatele 2009)"),
        "random-blocks": (_BUILT, "equal boxes of the grid on random nodes"),
        "round-robin": (_ORDERS, "tasks dealt out one by one to as many nodes as are needed"),
        "scotch": (_BEST, "the external program gmap of Scotch, where installed"),
        "search": (
            _SEARCHES,
            "constructions, annealing and tabu search, as long as the time limit says",
        ),
        "split-axes": (_SPLIT, "tori: axes of a grid over parts of the machine's, all ways tried"),
        "tabu": (_SEARCHES, "robust tabu search, for machines of few places"),
        "topaware": (_BUILT, "best-ranked layout, leftmost routers of every pencil"),
    },
    usual="auto",
    kernels=(*_SEARCH, _EMBED, "mapping.branch", "mapping.spread", "mapping.certify"),
    needed={
        "auto": (*_SEARCH, _EMBED),
        "exact": (*_SEARCH, _EMBED),
        "search": _SEARCH,
        "local-search": (_BOUNDS, _ANNEAL),
        "bisection": (_BOUNDS, _HALVE, _OBJECTS),
        "greedy": (_BOUNDS, _GROW),
        "tabu": (_BOUNDS, _GROW, _TABU),
        "bricks": (_BOUNDS, _OBJECTS),
        "in-order": (_BOUNDS, _OBJECTS),
        "patches": (_BOUNDS, _OBJECTS),
        "prisms": (_BOUNDS, _OBJECTS),
        "proxies": (_BOUNDS, _OBJECTS),
        None: (_BOUNDS,),
    },
)
