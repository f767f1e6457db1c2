"""What is wrong with a command line, told as all other bad input: expected X, found Y."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from topoplace.cli.app import COMMANDS
from topoplace.errors import InputError

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
