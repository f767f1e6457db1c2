"""The entry point: runs a command and turns whatever happens into an exit code and one line."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NoReturn

import typer

from topoplace import interrupts
from topoplace.cli.app import app
from topoplace.cli.signals import Interrupted, interruptible, swallowed_interrupt
from topoplace.cli.usage import of_option, usage_error
from topoplace.errors import ExitCode, InputError, TopoplaceError

_FEW_LOOKS = 1_000_000  # new objects that may be garbage from one look for it to the next
_FRAME_SLOTS = 33_000  # just above 256 KiB: the chunk is the next power of two, the rest is free


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    # imports make hundreds of thousands of objects that stay: looking for garbage among them
    # takes a tenth of a second, and so does the last look before the process ends
    gc.set_threshold(_FEW_LOOKS, 20, 20)
    code = _with_room(lambda: run(sys.argv[1:]))
    for number in interrupts.SIGNALS:  # what there is to say is said
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()
    if interrupts.left_behind:  # native code still at work would be waited for, or see the ruins
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _call(function: Callable[[], int]) -> int:
    return function()


# CPython keeps the frames of Python functions in chunks of 16 KB and gives a chunk back to the
# system once it is empty: a loop whose calls happen to reach over the end of one costs a page
# fault a call (numba's import made 16,000 of them). Below one large frame there is room for all.
_with_room = FunctionType(_call.__code__.replace(co_stacksize=_FRAME_SLOTS), globals())


def run(args: Sequence[str]) -> int:
    """Run `topoplace` with the given arguments and return its exit code.

    Never raises: bad input and failures become one line on stderr.
    """
    try:
        with interruptible():
            return _run_command(args)
    except Interrupted as error:
        return _complain("interrupted", 128 + error.signal_number)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", 128 + signal.SIGINT)
    except BrokenPipeError:
        # The reader of a pipe left (`| head`); what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _run_command(args: Sequence[str]) -> int:
    try:
        code = app(args=list(args), prog_name="topoplace", standalone_mode=False)
        sys.stdout.flush()
        return int(code or ExitCode.DONE)
    except (BrokenPipeError, typer.Abort):
        raise
    except InputError as error:
        return _fail(args, error, of_option(error, args).lines, error.exit_code)
    except TopoplaceError as error:
        return _fail(args, error, [str(error)], error.exit_code)
    except Exception as error:
        # What typer says of wrong arguments; its class has moved between releases of typer.
        if hasattr(error, "format_message"):
            return _usage(error, args)
        if interrupt := swallowed_interrupt():
            raise interrupt from error
        named = f"internal error, {type(error).__name__}: {error}"
        return _fail(args, error, [named], ExitCode.INTERNAL)


def _usage(error: Any, args: Sequence[str]) -> int:
    if error.format_message():
        return _complain(f"error: {usage_error(error, args)}", ExitCode.BAD_INPUT)
    return ExitCode.BAD_INPUT  # `topoplace` alone has printed its help already


def _fail(args: Sequence[str], error: Exception, lines: Sequence[str], code: int) -> int:
    """Print a line for each thing that is wrong."""
    hint = ""
    if _debugging(args):
        traceback.print_exception(error)
    elif code == ExitCode.INTERNAL:
        hint = " (--debug before the command shows the traceback)"
    for line in lines:
        _complain(f"error: {line}{hint}", code)
    return code


def _complain(message: str, code: int) -> int:
    print("topoplace:", " ".join(message.split()), file=sys.stderr)
    return code


def _debugging(args: Sequence[str]) -> bool:
    return "--debug" in args or os.environ.get("TOPOPLACE_DEBUG", "") not in ("", "0", "false")
