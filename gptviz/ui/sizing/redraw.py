"""The parts of the Sizing page that are drawn again on their own, so that a change costs what it changes and no more.

What does not look different after a change is not sent again: a field names the parts that follow it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gptviz.ui import live

# Keys of the page's fragments. A rerun of several goes in this order, as some read what an earlier one has settled.
EDITOR = "sizing_editor"  # the fields of the configuration
WORKLOAD = "sizing_workload"
HEADLINE = "sizing_headline"  # what is chosen, once it makes a model, and its most asked-for numbers
OPTIONS = "sizing_options"  # what the view alone asks
VIEW = "sizing_view"
FORMULA = "sizing_formula"
ORDER = (EDITOR, WORKLOAD, HEADLINE, OPTIONS, VIEW, FORMULA)


def again(*parts: str) -> None:
    """A callback: draw these parts again."""
    live.redraw(*(part for part in ORDER if part in parts))


def after(more: Mapping[str, tuple[str, ...]] | None = None) -> Callable[[set[str]], None]:
    """What follows a form: all numbers; and where one of these fields has changed, the parts that `more` gives it."""

    def follow(changed: set[str]) -> None:
        again(HEADLINE, VIEW, *(part for name, parts in (more or {}).items() if name in changed for part in parts))

    return follow
