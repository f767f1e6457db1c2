"""Placing with the mapping in mind: hop-bytes of the applications that start as the second level.

`applications` maps the application of a job in its prism, and says what an idle prism is as an
instance of mapping; `costs` has what an application costs by extents, as achieved and at least;
`method` searches, and proves how good the answer is.
"""
