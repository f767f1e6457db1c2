"""How Sphinx builds the documentation: `make docs`, or `make check` with warnings as errors."""

from __future__ import annotations

import logging
import os
import re
import runpy
import sys
from enum import Enum
from pathlib import Path

from pydantic import BaseModel
from sphinx.application import Sphinx

SOURCE = str(Path(__file__).resolve().parent.parent / "solver")
sys.path.insert(0, SOURCE)
# The notebook's kernel is a process of its own.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")]))

from topoplace import __version__  # noqa: E402

project = "topoplace"
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["schema"]

# Links between pages name files and anchors as web views of the repository make them.
myst_heading_anchors = 4

# The notebook is stored without outputs.
logging.getLogger("traitlets").setLevel(logging.WARNING)
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_merge_streams = True

napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # a list, as Parameters
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_default_options = {"exclude-members": "model_config"}
default_role = "py:obj"  # single backticks in docstrings
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "topoplace"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False


def plain_signature(
    app: Sphinx, what: str, name: str, obj: object, *signature: object
) -> tuple[str, None] | None:
    """Show documents and enumerations without their generated constructors."""
    generated = isinstance(obj, type) and issubclass(obj, BaseModel | Enum)
    return ("", None) if generated else None


def whole_sentence(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Undo what napoleon does to a constant whose docstring has a colon: a type it is not."""
    types = [line for line in lines if line.startswith(":type: ")]
    if what in ("data", "attribute", "property") and types:
        lines.remove(types[0])
        lines[0] = f"{types[0].removeprefix(':type: ')}: {lines[0]}"


def captioned(app: Sphinx, page: str, source: list[str]) -> None:
    """Show the file names of blocks that a reader is to save (see `scripts/build_tutorial.py`)."""
    block = r"```{code-block} \1\n:caption: \2\n\n"
    source[0] = re.sub(r"^```(\w+) ([\w.-]+)\n", block, source[0], flags=re.MULTILINE)


def setup(app: Sphinx) -> None:
    """Draw the picture of the package, and connect what is ours to Sphinx."""
    scripts = Path(SOURCE).parent / "scripts"
    runpy.run_path(str(scripts / "build_architecture.py"), run_name="__main__")
    app.connect("source-read", captioned)
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("autodoc-process-docstring", whole_sentence, priority=600)  # napoleon: 500
