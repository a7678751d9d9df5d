"""A page run without a browser: `open_page(name, prompt=..., ...)`, and what its components were given to draw."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz import checkpoints
from gptviz.tokenizer import IdsTokenizer, Tokenizer
from gptviz.ui import live
from tests.conftest import MakeModel

PROMPT = "The cat sat on the mat. The cat"
PAGES = Path(__file__).parents[2] / "pages"
OpenPage = Callable[..., AppTest]
OnlyModel = Callable[..., Path]


@pytest.fixture(scope="session")
def checkpoint() -> gptviz.Checkpoint:
    return gptviz.load("stories")


@pytest.fixture(scope="session")
def run(checkpoint: gptviz.Checkpoint) -> gptviz.Trace:
    """The forward pass of PROMPT; only to be read."""
    return gptviz.trace(checkpoint.model, checkpoint.tokenizer.encode(PROMPT, bos=True))


@pytest.fixture(autouse=True)
def pages_are_drawn_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest forgets what the last run did not draw. That a part can be drawn alone is for a real browser to show."""
    monkeypatch.setattr(live, "end", lambda: None)


@pytest.fixture
def open_page() -> OpenPage:
    """open_page("attention", prompt="the the", bos="false"): the page as that link opens it, run once."""

    def run(page: str, **params: str) -> AppTest:
        at = AppTest.from_file(str(PAGES / f"{page}.py"), default_timeout=120)
        at.query_params.update(params)
        return at.run()

    return run


@pytest.fixture
def only_model(make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnlyModel]:
    """only_model(tokenizer, **changes to SMALL): the one model there is; returns its folder. None: ids alone."""

    def install(tokenizer: Tokenizer | None, **changes: Any) -> Path:
        model = make_model(**changes)
        config = model.config
        words = tokenizer or IdsTokenizer(config.vocab_size, config.bos_token_id)
        return checkpoints.save(checkpoints.Checkpoint(model, words), tmp_path / "only")

    monkeypatch.setattr(checkpoints, "BUNDLED", tmp_path)
    _forget()
    yield install
    _forget()


def _forget() -> None:
    """Caches go by name, and here a name means another model in every test."""
    st.cache_resource.clear()
    st.cache_data.clear()


@dataclass(frozen=True)
class Drawn:
    """A figure as the plot component was given it; reads like a plotly figure."""

    text: str

    def to_json(self) -> str:
        return self.text


def figure(at: AppTest, key: str) -> Drawn:
    """The figure of the plot component with that key."""
    return Drawn(json.dumps(json.loads(_component(at, key).bytes)["figure"]))


def tile_header(at: AppTest, key: str) -> dict[str, Any]:
    """What the tiles component was told, pixels apart."""
    return _tiles(at, key)[0]


def tile_pixels(at: AppTest, key: str) -> dict[str, np.ndarray]:
    """Tile id -> pixels (h, w)."""
    header, data = _tiles(at, key)
    every, offset = {}, 0
    for tile in (tile for row in header["rows"] for tile in row["tiles"]):
        shape = tile["height"], tile["width"]
        every[tile["id"]] = np.frombuffer(data, np.uint8, shape[0] * shape[1], offset).reshape(shape)
        offset += shape[0] * shape[1]
    return every


def _tiles(at: AppTest, key: str) -> tuple[dict[str, Any], bytes]:
    data = _component(at, key).bytes
    (length,) = struct.unpack_from("<I", data)
    return json.loads(data[4 : 4 + length]), data[4 + length :]


def _component(at: AppTest, key: str) -> Any:
    return next(e.proto for e in at.get("bidi_component") if e.proto.id.endswith(f"-{key}"))


def chip_texts(at: AppTest) -> list[str]:
    """What the chips show, in order."""
    return [unescape(text) for text in re.findall(r'<span role="listitem"[^>]*>(.*?)</span>', chip_html(at), re.DOTALL)]


def chip_html(at: AppTest) -> str:
    return next(e.proto.body for e in at.get("html") if "gptviz-chips" in e.proto.body and "listitem" in e.proto.body)


def said(at: AppTest) -> str:
    """Everything that the page says in words."""
    return " ".join(e.value for kind in ("caption", "text", "markdown", "info", "warning") for e in at.get(kind))
