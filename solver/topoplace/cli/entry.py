"""The entry point: runs a command and turns whatever happens into an exit code and one line.

SIGINT and SIGTERM end a command soon and in order. A solve takes care of itself
(`topoplace.interrupts`), and once there is an answer, a signal does not keep it from being
delivered. Anything else is interrupted.
"""

from __future__ import annotations

import codecs
import contextlib
import gc
import io
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import typer

from topoplace import interrupts, rescue
from topoplace.cli.app import COMMANDS, app
from topoplace.errors import ExitCode, InputError, TopoplaceError

ONE_THREAD = "OPENBLAS_DEFAULT_NUM_THREADS"
"""The threads of numpy's linear algebra unless OPENBLAS_NUM_THREADS says otherwise."""

AGAIN_SECONDS = 0.8
"""When a command that goes on after an interrupt is interrupted again, and then ended."""

_FEW_LOOKS = 1_000_000  # new objects that may be garbage from one look for it to the next


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    # matrices here are small: with several threads on a busy machine, an eigenvalue problem of 384
    # rows takes 20 times the CPU time of one thread
    os.environ.setdefault(ONE_THREAD, "1")
    # imports make hundreds of thousands of objects that stay: looking for garbage among them
    # takes a tenth of a second, and so does the last look before the process ends
    gc.set_threshold(_FEW_LOOKS, 20, 20)
    _open_streams()
    code = run(sys.argv[1:])
    for number in interrupts.SIGNALS:  # what there is to say is said
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()
    if interrupts.left_behind:  # native code still at work would be waited for, or see the ruins
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run(args: Sequence[str]) -> int:
    """Run `topoplace` with the given arguments and return its exit code.

    Never raises: bad input and failures become one line on stderr.
    """
    try:
        with _interruptible():
            code = _run_command(args)
            return _not_written(args, code)
    except _InterruptedError as error:
        return _complain("interrupted", 128 + error.signal_number)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", 128 + signal.SIGINT)
    except BrokenPipeError:
        return _without_reader()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # which typer made an exit of
            return _without_reader()
        raise
    finally:
        rescue.begin(wanted=False)


def _without_reader() -> int:
    """Return the exit code of a command whose stdout nobody reads any more (`| head`)."""
    _give_up_stdout()
    return 128 + signal.SIGPIPE


def _give_up_stdout() -> None:
    """Let what is still buffered for stdout, and has nowhere to go, go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_streams() -> None:
    """Make empty streams of those that whoever started the process closed (`>&-`).

    Characters that the encoding of a stream does not have are written as in JSON, by number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - to the end
    codecs.register_error("topoplace", _as_in_json)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="topoplace")


def _as_in_json(error: UnicodeError) -> tuple[str, int]:
    """Return what stands for characters that cannot be encoded, and where to go on."""
    assert isinstance(error, UnicodeEncodeError)
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return re.sub("(....)", r"\\u\1", units), error.end


def _run_command(args: Sequence[str]) -> int:
    try:
        code = int(app(args=list(args), prog_name="topoplace", standalone_mode=False) or 0)
        sys.stdout.flush()
        return code
    except (BrokenPipeError, typer.Abort):
        raise
    except InputError as error:
        return _fail(args, error, of_option(error, args).lines, error.exit_code)
    except TopoplaceError as error:
        return _fail(args, error, [str(error)], error.exit_code)
    except Exception as error:
        # What typer says of wrong arguments; its class has moved between releases of typer.
        if hasattr(error, "format_message"):
            if error.format_message():  # else `topoplace` alone has printed its help already
                _complain(f"error: {usage_error(error, args)}", ExitCode.BAD_INPUT)
            return ExitCode.BAD_INPUT
        if _raised:  # of which a library may have made an error
            raise _raised[0] from error
        return _unexpected(args, error)


def _not_written(args: Sequence[str], code: int) -> int:
    """Say which files could not be written; return the exit code."""
    for error in rescue.rescued:
        code = _fail(args, error, of_option(error, args).lines, error.exit_code)
    return code


def _unexpected(args: Sequence[str], error: Exception) -> int:
    if isinstance(error, OSError) and error.filename is None:
        # what goes wrong with a file is told where it is read or written: this is stdout
        _give_up_stdout()
        full = InputError(f"an output that can be written ({error.strerror})", field="stdout")
        return _fail(args, error, full.lines, full.exit_code)
    named = f"internal error, {type(error).__name__}: {error}"
    return _fail(args, error, [named], ExitCode.INTERNAL)


def _fail(args: Sequence[str], error: Exception, lines: Sequence[str], code: int) -> int:
    """Print a line for each thing that is wrong."""
    hint = ""
    debugging = os.environ.get("TOPOPLACE_DEBUG", "") not in ("", "0", "false")
    if debugging or "--debug" in args:
        traceback.print_exception(error)
    elif code == ExitCode.INTERNAL:
        hint = " (--debug before the command shows the traceback)"
    for line in lines:
        _complain(f"error: {line}{hint}", code)
    return code


def _complain(message: str, code: int) -> int:
    print("topoplace:", " ".join(message.split()), file=sys.stderr)
    return code


# ---- Signals -------------------------------------------------------------------------------------


class _InterruptedError(BaseException):
    """A signal asked the run to end. Not an `Exception`: nothing should swallow it."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        super().__init__(signal.Signals(signal_number).name)


_raised: list[_InterruptedError] = []
"""The interrupt of this run, once for every time that it was raised."""


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Raise an interrupt on SIGINT and SIGTERM in the block, as long as there is no answer.

    Outside the main thread, where Python has no signals, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _raised.clear()
    interrupts.answered.clear()
    before = {number: signal.signal(number, _take) for number in interrupts.SIGNALS}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, _insist)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _take(number: int, frame: FrameType | None) -> None:
    if not interrupts.answered.is_set():
        _raised.append(_InterruptedError(number))
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS, AGAIN_SECONDS)
        raise _raised[0]


def _insist(number: int, frame: FrameType | None) -> None:
    """Raise the interrupt again, which some library has swallowed; the next time, end the run."""
    _raised.append(_raised[0])
    if len(_raised) > 2:
        os._exit(128 + _raised[0].signal_number)
    raise _raised[0]


# ---- What is wrong with a command line: expected X, found Y --------------------------------------


_WRONG_VALUES: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (r"valid integer|valid int\b", lambda _: "an integer"),
    (r"valid number|valid float", lambda _: "a number"),
    (r"greater than or equal to (\S+)", lambda m: f"a number of at least {m[1]}"),
    (r"less than or equal to (\S+)", lambda m: f"a number of at most {m[1]}"),
    (r"not in the range (.+?)\.?$", lambda m: f"a number in the range {m[1]}"),
)
"""What typer says of the value of an option, before and since it says so in pydantic's words."""

_ALSO = {
    "bytes": "message_bytes", "class": "node_class", "command": "commands",
    "format": "mapping_format", "graph format": "graph_format", "machine": "on",
    "method": "methods", "num_tasks": "grid", "output": "results", "shape": "grid",
}  # fmt: skip
"""Fields of options by what the library calls them, where that is another name."""


def of_option(error: InputError, args: Sequence[str]) -> InputError:
    """Return an error that is about no file with its field named as the option given is."""
    name = re.split(r"[.\[]", error.field or "")[0]
    command = next((COMMANDS[arg][0] for arg in args if arg in COMMANDS), None)
    if command is None or error.file is not None:
        return error
    given = {arg.partition("=")[0] for arg in args}
    if name == "levels" and "--pareto" in given:
        return error.at("--pareto")
    if name in ("num_tasks", "axes"):
        own_option = given & {"--parallelism", "--graph"}
        return error.at(*own_option) if len(own_option) == 1 else error.at("--grid")
    own = {of.name: one.names_of(of.name) for of, one in command.options}  # type: ignore[attr-defined]
    found = own.get(name) or own.get(_ALSO.get(name, ""))
    return error if found is None else error.at(found[-1])


def usage_error(error: Any, args: Sequence[str]) -> InputError:
    """Return what typer says of a command line; of its errors only `format_message` stays."""
    command = getattr(getattr(error, "ctx", None), "command", None) or getattr(error, "cmd", None)
    message = str(error.format_message())
    param = getattr(error, "param", None)
    option = getattr(error, "option_name", None)
    if getattr(error, "possibilities", "") != "":
        known = [name for p in getattr(command, "params", ()) for name in p.opts]
        return InputError(f"an option of {_name(error)}", value=option, known=known)
    if option is not None:
        takes = "a value" if "requires" in message else "no value"
        return InputError(takes, field=option, found="nothing" if takes == "a value" else "one")
    if param is not None:
        return _of_parameter(param, message, args)
    quoted = re.search(r"No such command '(.*?)'", message)
    if quoted is not None:
        names = list(getattr(command, "commands", {}))
        return InputError(f"one of {', '.join(names)}", value=quoted[1], known=names)
    more = re.search(r"extra arguments?(?:\(s\))? \((.*)\)", message)
    if more is not None:
        return InputError(f"no more arguments of {_name(error)}", value=more[1])
    return InputError(message)


def _of_parameter(param: Any, message: str, args: Sequence[str]) -> InputError:
    is_option = param.param_type_name == "option"
    field = max(param.opts, key=len) if is_option else str(param.metavar).strip("{}")
    if message.startswith("Missing"):
        told = str(param.help or "a value").rstrip(".")
        return InputError(told[:1].lower() + told[1:], field=field, found="nothing")
    for pattern, expected in _WRONG_VALUES:
        match = re.search(pattern, message)
        if match is not None:
            return InputError(expected(match), field=field, value=_given(param.opts, args))
    return InputError(message.partition(": ")[2] or message, field=field)


def _given(options: Sequence[str], args: Sequence[str]) -> str | None:
    """Return the value that an option was last given."""
    value = None
    for at, arg in enumerate(args):
        name, equals, rest = arg.partition("=")
        if name in options:
            value = rest if equals else args[at + 1] if at + 1 < len(args) else None
    return value


def _name(error: Any) -> str:
    path = getattr(getattr(error, "ctx", None), "command_path", None)
    return f"{path or 'topoplace'} (-h lists them)"
