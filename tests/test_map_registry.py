"""The table of shipped mapping methods."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from topoplace.errors import InputError
from topoplace.mapping import methods as package
from topoplace.solving import method_of, methods
from topoplace.solving.registry import SHIPPED

MODULES = SHIPPED["mapping"]


def test_the_table_names_every_module_that_registers_a_method() -> None:
    modules = {
        f"{package.__name__}.{m.name}"
        for m in pkgutil.iter_modules(package.__path__)
        if m.name[0] != "_"
    }
    for module in modules:
        importlib.import_module(module)
    assert set(methods("mapping")) == set(MODULES)
    assert set(MODULES.values()) == modules


@pytest.mark.parametrize("name", MODULES)
def test_a_method_is_registered_by_the_module_the_table_names(name: str) -> None:
    assert method_of("mapping", name).name == name


def test_an_unknown_method_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InputError, match="pencils"):
        method_of("mapping", "no-such-method")
