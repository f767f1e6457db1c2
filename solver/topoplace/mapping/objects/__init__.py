"""Objects with loads onto nodes, many on each under a cap (Bhatele 2009, section 3.3).

`problem` is what is mapped, `applications` and `builders` are where it comes from, `papers` has the
mappings of the paper, `search` ours, `bounds` and `exact` the proofs.
"""
