"""A form in one element: numbers, choices and switches, each with its meaning, folded into groups.

In a page of Streamlit's own widgets each of them is rendered anew at every run, whether or not anything about it has
changed. Here the values live in the session under the fields' names, while other pages are shown too, and in the
address as far as they differ from the start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import streamlit as st

HERE = Path(__file__).parent

_mount = st.components.v2.component(
    "gptviz_form",
    css=(HERE / "form.css").read_text(encoding="utf-8"),
    js=(HERE / "form.js").read_text(encoding="utf-8"),
)


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field. name: its key in the session and in the address; start: before any edit, None for an empty number.

    startable: whether the button that starts again concerns it.
    """

    name: str
    label: str
    help: str
    kind: Literal["number", "choice", "switch"]
    start: Any
    options: tuple[str, ...] = ()
    placeholder: str = ""
    step: float = 1
    disabled: bool = False
    startable: bool = True

    @property
    def value(self) -> Any:
        """What it says; to begin with what the link says."""
        if self.name not in st.session_state:
            linked = _read(self, st.query_params[self.name]) if self.name in st.query_params else self.start
            st.session_state[self.name] = linked if _possible(self, linked) else self.start
        return st.session_state[self.name]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Fields side by side. title: of what is folded away; "" for what is always there."""

    fields: Sequence[Field]
    title: str = ""


Follow = Callable[[set[str]], None]


def form(groups: Sequence[Group], *, key: str, follow: Follow, width: int = 112, reset: str = "") -> None:
    """Draw the fields, at least `width` pixels wide each; `follow` is called with the names of those that changed.

    reset: what the button that starts again says; "" for none.
    """
    fields = {field.name: field for group in groups for field in group.fields}
    look = {"groups": [_described(group) for group in groups], "width": width, "reset": reset}
    _mount(key=key, data=json.dumps(look).encode(), on_edits_change=lambda: _keep(key, fields, follow))


def _described(group: Group) -> dict[str, Any]:
    fields = [{**asdict(field), "value": field.value} for field in group.fields]
    return {"title": group.title, "fields": fields}


def _keep(key: str, fields: Mapping[str, Field], follow: Follow) -> None:
    """The browser's edits into the session. It sends all that it has made: only some of them are new."""
    edits = (st.session_state[key].get("edits") or {}).get("edits", {})
    new = {
        name: value
        for name, value in edits.items()
        if name in fields and value != fields[name].value and _possible(fields[name], value)
    }
    for name, value in new.items():
        st.session_state[name] = value
    follow(set(new))


def _possible(field: Field, value: Any) -> bool:
    """Whether the form could have said that: whoever speaks may be no browser."""
    if field.kind == "switch":
        return isinstance(value, bool)
    if field.kind == "choice":
        return value in field.options
    return value is None or (isinstance(value, int | float | str) and not isinstance(value, bool))


def _read(field: Field, text: str) -> Any:
    """The value that a link gives; what is none stays a text, for whoever needs the value to refuse."""
    if field.kind == "switch":
        return {"true": True, "false": False}.get(text, text)
    if field.kind == "choice":
        return text
    if re.fullmatch(r"-?\d{1,40}", text):
        return int(text)
    if re.fullmatch(r"-?\d{1,40}\.\d{1,40}(e-?\d{1,3})?", text):
        return float(text)
    return text[:40] or None
