"""Imports go one way. This walks the syntax tree of every module, so an import inside a function counts as well."""

import ast
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]

# From the bottom up: each may import all that stand before it.
CHAIN = ("config", "positions", "model", "edits", "capture")
EVERYWHERE = {"errors", "config"}

# Beside the chain: what these may import, apart from `errors` and `config`.
ASIDE: dict[str, set[str]] = {
    "errors": set(),
    "presets": set(),
    "tokenizer": set(),
    "merges": {"tokenizer"},
    "sizing": set(),
    "library": set(),
}

# Above the chain: what these may import of each other and from aside. All but figures may import the whole chain.
MIDDLE: dict[str, set[str]] = {
    "figures": set(),
    "analysis": set(),
    "sampling": set(),
    "generation": {"sampling"},
    "convert": {"tokenizer"},
    "checkpoints": {"convert", "tokenizer", "sizing", "library"},
    "training": {"checkpoints", "library", "tokenizer", "sampling", "sizing", "analysis"},
}
BELOW_THE_UI = {*CHAIN, *ASIDE, *MIDDLE}

# `gptviz` is the package's own __init__: the public names, for those who use the package and not for its parts.
ALLOWED: dict[str, set[str]] = {
    **{name: EVERYWHERE | set(CHAIN[: CHAIN.index(name)]) for name in CHAIN},
    **{name: EVERYWHERE | beside for name, beside in ASIDE.items()},
    **{name: EVERYWHERE | set(CHAIN) | beside for name, beside in MIDDLE.items()},
    "figures": EVERYWHERE,
    "gptviz": BELOW_THE_UI,
    "ui": BELOW_THE_UI | {"gptviz"},
    "pages": BELOW_THE_UI | {"gptviz", "ui"},
    "app": BELOW_THE_UI | {"gptviz", "ui", "pages"},
}
ALLOWED["errors"] = ALLOWED["presets"] = set()
ALLOWED["config"] = {"errors", "presets"}

STREAMLIT_IN = {"app", "pages", "ui"}
TORCH_NEVER_IN = {"errors", "presets", "config", "sizing", "library", "figures", "pages", "app"}
TORCH_ONLY_LAZILY_IN = {"gptviz", "tokenizer", "ui"}  # importing these must not cost torch's second


def unit_of(path: PurePosixPath) -> str:
    """gptviz/training/data.py -> training, gptviz/__init__.py -> gptviz, pages/overview.py -> pages."""
    parts = path.with_suffix("").parts
    if parts[0] != "gptviz":
        return parts[0]
    return "gptviz" if parts[1] == "__init__" else parts[1]


def unit_of_name(name: str) -> str | None:
    """gptviz.training.data -> training, gptviz.load -> gptviz, pages.overview -> pages, numpy -> None."""
    head, *rest = name.split(".")
    if head != "gptviz":
        return head if head in ("app", "pages") else None
    return rest[0] if rest and rest[0] in ALLOWED else "gptviz"


def is_lazy(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def imports(node: ast.AST, lazy: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import below the node, and whether importing the module itself does without it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, lazy
        else:
            yield from imports(child, lazy or is_lazy(child))


def names(node: ast.Import | ast.ImportFrom, path: PurePosixPath) -> list[str]:
    """The absolute dotted names that an import in the file at `path` asks for."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    package = path.parent.parts[: len(path.parent.parts) - node.level + 1] if node.level else ()
    base = ".".join((*package, *filter(None, [node.module])))
    return [f"{base}.{alias.name}" for alias in node.names]


def fault(unit: str, name: str, lazy: bool) -> str | None:
    library, target = name.split(".")[0], unit_of_name(name)
    if library == "streamlit" and unit not in STREAMLIT_IN:
        return "streamlit belongs to app.py, pages/ and gptviz/ui/"
    if library == "torch" and unit in TORCH_NEVER_IN:
        return f"{unit} does without torch"
    if library == "torch" and unit in TORCH_ONLY_LAZILY_IN and not lazy:
        return f"{unit} may import torch inside functions only"
    if target and target != unit and target not in ALLOWED[unit]:
        return f"{unit} may not import {target}"
    return None


def faults(source: str, path: str) -> list[str]:
    """What the module at `path`, relative to the project, imports against the rules: one sentence each."""
    where = PurePosixPath(path)
    unit = unit_of(where)
    if unit not in ALLOWED:
        return [f"{path}: {unit} has no place in the import direction yet: give it one in {Path(__file__).name}"]
    found = [
        (node.lineno, fault(unit, name, lazy))
        for node, lazy in imports(ast.parse(source))
        for name in names(node, where)
    ]
    return [f"{path}:{line}: {what}" for line, what in found if what]


def test_imports_go_one_way():
    modules = [ROOT / "app.py", *sorted(ROOT.glob("pages/**/*.py")), *sorted(ROOT.glob("gptviz/**/*.py"))]
    found = [
        sentence
        for module in modules
        for sentence in faults(module.read_text(encoding="utf-8"), module.relative_to(ROOT).as_posix())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source", "complaint"),
    [
        ("gptviz/model.py", "from . import capture", "model may not import capture"),
        ("gptviz/model.py", "from .capture import trace", "model may not import capture"),
        ("gptviz/model.py", "import gptviz.capture as c", "model may not import capture"),
        ("gptviz/model.py", "from gptviz import config, capture", "model may not import capture"),
        ("gptviz/model.py", "def f():\n    from .ui.frame import frame", "model may not import ui"),
        ("gptviz/model.py", "from gptviz import load", "model may not import gptviz"),
        ("gptviz/edits.py", "import pages.overview", "edits may not import pages"),
        ("gptviz/sizing.py", "from .model import GPT", "sizing may not import model"),
        ("gptviz/sampling.py", "from .checkpoints import load", "sampling may not import checkpoints"),
        ("gptviz/training/data.py", "from ..ui import state", "training may not import ui"),
        ("gptviz/training/__init__.py", "from ..figures.style import BLUE", "training may not import figures"),
        ("gptviz/analysis/attention.py", "from .. import training", "analysis may not import training"),
        ("gptviz/figures/attention.py", "from ..capture import Trace", "figures may not import capture"),
        ("gptviz/figures/attention.py", "def f():\n    import torch", "figures does without torch"),
        ("gptviz/figures/attention.py", "import streamlit as st", "streamlit belongs to"),
        ("gptviz/tokenizer.py", "import torch", "tokenizer may import torch inside functions only"),
        ("gptviz/ui/frame.py", "from torch import Tensor", "ui may import torch inside functions only"),
        ("gptviz/ui/frame.py", "from pages import overview", "ui may not import pages"),
        ("pages/attention.py", "from torch.nn import functional", "pages does without torch"),
        ("gptviz/helpers.py", "", "helpers has no place"),
    ],
)
def test_an_import_against_the_direction_is_found(path, source, complaint):
    (sentence,) = faults(source, path)
    assert complaint in sentence


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "gptviz/capture.py",
            "import torch\nfrom . import edits\nfrom .model import view\nfrom .errors import GptvizError",
        ),
        (
            "gptviz/training/__main__.py",
            "from . import train\nfrom .data import windows\nfrom ..checkpoints import save",
        ),
        ("gptviz/tokenizer.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from torch import Tensor"),
        ("gptviz/tokenizer.py", "import tokenizers\ndef encode():\n    import torch"),
        ("gptviz/figures/attention.py", "import numpy as np\nfrom . import style\nfrom .style import BLUE"),
        (
            "gptviz/ui/frame.py",
            "import streamlit as st\nimport gptviz\nfrom gptviz.figures import style\nfrom . import state",
        ),
        ("pages/attention.py", "import streamlit as st\nfrom gptviz import trace\nfrom gptviz.ui.frame import frame"),
    ],
)
def test_an_import_along_the_direction_is_left_alone(path, source):
    assert faults(source, path) == []
