"""Placing jobs together with their mappings: hop-bytes of started applications as second level.

`applications` maps the application of a job in its prism, and turns an idle prism into a mapping
instance; `method` has the cost of an application by extents, achieved and at least, searches, and
proves how good the answer is.
"""
