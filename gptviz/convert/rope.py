"""Rotary positions in a foreign configuration: `rope_theta` and `rope_scaling`, or `rope_parameters` with both."""

from __future__ import annotations

from typing import Any

from ..errors import GptvizError
from .fields import Fields


def read_rope(hf: Fields, base: str = "rope_theta") -> tuple[dict[str, Any], float | None]:
    """The GPTConfig's fields that say how rotary turns, and the share of each head that it turns, if it is said."""
    old, new = hf.get("rope_scaling"), hf.get("rope_parameters")
    for name, value in (("rope_scaling", old), ("rope_parameters", new)):
        if value is not None and not isinstance(value, dict):
            raise hf.wrong(name, "an object with its parameters")
    rope = Fields({**(old or {}), **(new or {})}, "The configuration's rope")
    first = hf.number(base, 10000.0)
    fields = {"rope_base": rope.number("rope_theta", first), **_scaling(hf, rope)}
    share = rope.get("partial_rotary_factor")
    rope.finish()
    return fields, None if share is None else rope.number("partial_rotary_factor", 1.0)


def _scaling(hf: Fields, rope: Fields) -> dict[str, Any]:
    kind = rope.get("rope_type", rope.get("type", "default"))
    rope.get("type")
    if kind in (None, "default"):
        return {}
    if kind not in list(_READERS):  # a list, as an untrusted name may be unhashable
        raise GptvizError(
            f"The configuration scales its rotary positions by {str(kind)[:40]!r}, which this version can't compute; "
            f"it can: {', '.join(_READERS)}."
        )
    return {"rope_scaling": kind, "rope_factor": rope.number("factor", 1.0), **_READERS[kind](hf, rope)}


def _llama3(hf: Fields, rope: Fields) -> dict[str, Any]:
    for name in ("factor", "low_freq_factor", "high_freq_factor"):
        rope.need(name)
    return dict(
        rope_low=rope.number("low_freq_factor", 1.0),
        rope_high=rope.number("high_freq_factor", 4.0),
        rope_trained=rope.whole("original_max_position_embeddings", hf.whole("max_position_embeddings", 8192)),
    )


def _linear(hf: Fields, rope: Fields) -> dict[str, Any]:
    rope.get("original_max_position_embeddings")  # of no matter to a linear scaling
    return {}


_READERS = {"linear": _linear, "llama3": _llama3}
