"""``python -m topoplace``, the same as the `topoplace` command."""

import os
import signal


def main() -> None:
    """Run the command line; a signal before that is ready ends the process at once."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os._exit(128 + number))
    from topoplace.cli import main as run  # noqa: PLC0415 - heavy

    run()


if __name__ == "__main__":
    main()
