"""The help of every command shows its texts as they are written."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer.main

from topoplace.cli import run
from topoplace.cli.app import app

GROUP: Any = typer.main.get_command(app)  # Any: as in scripts/build_commands.py
COMMANDS = {"": GROUP, **GROUP.commands}


def words(text: str) -> str:
    """Return a text without the frames of panels and white space."""
    return "".join(re.sub("[╭╮╰╯─│]", " ", text).split())


def texts_of(command: Any) -> list[str]:
    texts = [command.help, command.epilog, *(param.help for param in command.params)]
    texts += [param.metavar for param in command.params if param.metavar]
    return [text for text in texts if text]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_texts_as_they_are_written(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert run([*name.split(), "--help"]) == 0
    shown = words(capsys.readouterr().out)
    texts = texts_of(COMMANDS[name])
    assert len(texts) > 3
    assert [text for text in texts if words(text) not in shown] == []


def test_help_is_no_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GROUP.commands["map"], "help", "axes=:ring:, [bold]kept[/bold], :line:")
    monkeypatch.setattr(typer.main, "get_command", lambda _: GROUP)
    monkeypatch.setattr("topoplace.cli.entry.app", GROUP)
    assert run(["map", "--help"]) == 0
    assert "axes=:ring:, [bold]kept[/bold], :line:" in capsys.readouterr().out
