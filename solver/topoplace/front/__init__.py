"""The front door: what `import topoplace as tp` offers beside models.

In `documents`, `placing`, `mapping` and `studies`; they share `arguments`.
"""
