"""Objects with loads onto nodes, many on each under a cap (Bhatele 2009, section 3.3).

Read `problem` for what is mapped, `applications` and `builders` for where it comes from, `papers`
for the mappings of the paper, `search` for ours, `bounds` and `exact` for what is proven.
"""
