"""``python -m topoplace``, the same as the `topoplace` command."""

import os
import signal


def main() -> None:
    """Run the command line; a signal before that is ready ends the process at once."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    from topoplace.cli import main as run  # noqa: PLC0415 - heavy

    run()


def _end(number: int, _: object) -> None:
    """End the process without an exception, of which imports might make something else."""
    os.write(2, b"topoplace: interrupted\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
