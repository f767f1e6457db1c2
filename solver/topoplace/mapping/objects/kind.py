"""Objects with loads onto nodes."""

from topoplace.kinds import Kind

_OBJECTS = "topoplace.mapping.objects.search"
_PAPERS = "topoplace.mapping.objects.papers"
_FEW = "topoplace.mapping.objects.exact"

KIND = Kind(
    name="objects",
    title="for objects (--objects)",
    result="topoplace.result.objects:ObjectsResult",
    frame="topoplace.mapping.objects.outcome:FRAME",
    checker="topoplace.certify.objects.check:Objects",
    prepare="topoplace.mapping.objects.problem:prepare_objects",
    schema="topoplace.objects/1",
    instance="topoplace.snapshot.objects:ObjectsInstance",
    view="topoplace.mapping.objects.view:ObjectsView",
    methods={
        "search": (_OBJECTS, "annealing under the caps, from the best of the others"),
        "bisection": (_OBJECTS, "machine and objects halved together, again and again"),
        "bricks": (_PAPERS, "patches by bisection, computes between theirs (Bhatele 2009, 3.3.2)"),
        "exact": (_FEW, "all mappings of a few objects; more by search"),
        "in-order": (_OBJECTS, "consecutive objects, the average load on node after node"),
        "oblivious": (_OBJECTS, "the largest load first, on the emptiest node"),
        "prisms": (_PAPERS, "GSpace, RealSpace, PairCalculators in prisms (Bhatele 2009, 3.3.1)"),
    },
    usual="search",
    kernels=("mapping.objects", "mapping.halving", "mapping.local_search"),
    needed={
        "search": ("mapping.objects", "mapping.halving", "mapping.local_search"),
        "exact": ("mapping.objects", "mapping.halving", "mapping.local_search"),
        None: ("mapping.objects", "mapping.halving"),
    },
)
