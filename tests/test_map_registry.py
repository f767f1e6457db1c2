"""The table of shipped mapping methods."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from topoplace.errors import InputError
from topoplace.mapping import methods
from topoplace.mapping.registered import MODULES
from topoplace.mapping.solve import map_method, map_methods


def test_the_table_names_every_module_that_registers_a_method() -> None:
    modules = {m.name for m in pkgutil.iter_modules(methods.__path__) if m.name[0] != "_"}
    for module in modules:
        importlib.import_module(f"topoplace.mapping.methods.{module}")
    assert set(map_methods()) == set(MODULES)
    assert set(MODULES.values()) == modules


@pytest.mark.parametrize("name", MODULES)
def test_a_method_is_registered_by_the_module_the_table_names(name: str) -> None:
    assert map_method(name).name == name


def test_an_unknown_method_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InputError, match="pencils"):
        map_method("no-such-method")
