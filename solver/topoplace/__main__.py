"""``python -m topoplace``, the same as the `topoplace` command."""

from topoplace.cli import main

main()
