"""The models there are: those that come with the repository, and those that were added on this machine.

Needs no torch: a page can list them before a model is read. Added ones are folders under GPTVIZ_HOME (~/.gptviz).
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from .config import GPTConfig, PosEncoding
from .errors import GptvizError

BUNDLED = Path(__file__).parents[1] / "checkpoints"
CONFIG, CARD, WEIGHTS, TOKENIZER = "config.json", "card.json", "model.safetensors", "tokenizer.json"
DEFAULT = "stories"  # of the bundled ones, where no other was chosen to come first
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Entry:
    """One model: what is known of it without reading its weights. A config of None says why in `fault`."""

    name: str
    folder: Path
    added: bool
    config: GPTConfig | None
    card: Mapping[str, Any]
    fault: str = ""


def home() -> Path:
    """Where this machine keeps what was added."""
    return Path(os.environ.get("GPTVIZ_HOME") or Path.home() / ".gptviz")


def added() -> list[str]:
    """The names of added models, in alphabetical order."""
    try:
        return sorted(
            path.parent.name for path in (home() / "models").glob(f"*/{CONFIG}") if _is_name(path.parent.name)
        )
    except OSError:
        return []


def folder(name: str) -> Path:
    """Where an added model lies, or would. Raises GptvizError for a name that could lead elsewhere."""
    if not _is_name(name):
        raise GptvizError(f"{name[:80]!r} is no name for a model: letters, digits, '.', '_' and '-', 64 at most.")
    return home() / "models" / name


def _is_name(name: str) -> bool:
    return bool(NAME.fullmatch(name)) and ".." not in name


def free_name(wanted: str) -> str:
    """A name like the wanted one that no model has yet."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted.rsplit("/", 1)[-1]).strip("-._")
    plain = re.sub(r"\.{2,}", ".", plain)[:56] or "model"
    taken = {name.lower() for name in [*_bundled(), *added()]}
    names = [plain, *(f"{plain}-{n}" for n in range(2, 1000))]
    return next(name for name in names if name.lower() not in taken)


def _bundled() -> list[str]:
    """The default first."""
    names = sorted(path.parent.name for path in BUNDLED.glob(f"*/{CONFIG}"))
    return sorted(names, key=lambda name: name != DEFAULT)


def entries() -> list[Entry]:
    """Every model, the bundled ones first."""
    ours = [_entry(name, BUNDLED / name, False) for name in _bundled()]
    return ours + [_entry(name, folder(name), True) for name in added()]


def _entry(name: str, where: Path, is_added: bool) -> Entry:
    try:
        config = GPTConfig.from_dict(_read(where / CONFIG))
        card = _read(where / CARD) if (where / CARD).exists() else {}
        return Entry(name, where, is_added, config, card)
    except (GptvizError, OSError, ValueError, RecursionError, TypeError) as error:
        return Entry(name, where, is_added, None, {}, str(error) or type(error).__name__)


def _read(path: Path) -> dict[str, Any]:
    values = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(values, dict):
        raise GptvizError(f"{path.name} holds no JSON object.")
    return values


def counterpart(name: str, causal: bool, pos_encoding: str) -> str | None:
    """The model that was trained with that mask and encoding and is like `name` in all else, its vocabulary too.

    Of several, the one that saw about as many tokens.
    """
    every = {entry.name: entry for entry in entries() if entry.config is not None}
    if name not in every or every[name].config is None:
        return None
    own = every[name]
    wanted = _architecture(own, causal=causal, pos_encoding=pos_encoding)
    twins = [e for e in every.values() if e.name != name and _architecture(e) == wanted and _shares_words(own, e)]
    return min(twins, key=lambda twin: abs(_tokens_seen(twin) - _tokens_seen(own))).name if twins else None


def has_counterparts(name: str) -> bool:
    """Whether there is a model that differs from this one in its mask or encoding alone."""
    encodings = get_args(PosEncoding)
    return any(counterpart(name, causal, encoding) for causal in (True, False) for encoding in encodings)


def _architecture(entry: Entry, **changes: Any) -> dict[str, Any]:
    """What the weights are shaped by and run with; dropout is of training alone, a scale is of its encoding."""
    config = {} if entry.config is None else entry.config.to_dict()
    return {key: value for key, value in {**config, **changes}.items() if key not in ("dropout", "pos_scale")}


def _shares_words(one: Entry, other: Entry) -> bool:
    try:
        return (one.folder / TOKENIZER).read_bytes() == (other.folder / TOKENIZER).read_bytes()
    except OSError:
        return False


def _tokens_seen(entry: Entry) -> int:
    seen = entry.card.get("tokens_seen")
    return seen if isinstance(seen, int) else 0


def remove(name: str) -> None:
    """Delete an added model. Raises GptvizError for one that was not added."""
    if name not in added():
        raise GptvizError(f"{name!r} can't be removed: it is no model that was added here.")
    shutil.rmtree(folder(name))


def default() -> str | None:
    """The model that was chosen to come first, if there still is one."""
    try:
        chosen = (home() / "default").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return chosen if chosen in [*_bundled(), *added()] else None


def set_default(name: str) -> None:
    """Let a model come first from now on. Raises GptvizError for one that is not there."""
    if name not in [*_bundled(), *added()]:
        raise GptvizError(f"There is no model {name!r} to come first.")
    home().mkdir(parents=True, exist_ok=True)
    (home() / "default").write_text(name + "\n", encoding="utf-8")


_POSITIONS = {
    "learned": "learned positions",
    "sinusoidal": "sinusoidal positions",
    "rotary": "rotary positions",
    "alibi": "ALiBi",
    "none": "no positions",
}
_NORMS = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}
_ACTIVATIONS = {"gelu": "GELU", "gelu_tanh": "GELU (tanh)", "relu": "ReLU", "silu": "SiLU"}


def in_words(config: GPTConfig) -> str:
    """What kind of a model it is: "4 layers × 4 heads, width 256, context 128; learned positions, LayerNorm, ..."."""
    grouped = f" on {config.n_kv_head} of keys and values" if config.n_kv_head < config.n_head else ""
    shape = f"{many(config.n_layer, 'layer')} × {many(config.n_head, 'head')}{grouped}, width {config.n_embd:,}"
    size = f"context {config.block_size:,}, vocabulary {config.vocab_size:,}"
    return f"{shape}, {size}; {', '.join(_traits(config))}."


def many(n: int, what: str) -> str:
    """ "1 layer", "2 layers"."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def _traits(config: GPTConfig) -> list[str]:
    windows = sorted({window for window in config.windows if 0 < window < config.block_size})
    gate = "SwiGLU" if config.activation == "silu" else f"gated {_ACTIVATIONS[config.activation]}"
    optional = {
        f"a window of {' and '.join(map(str, windows))} tokens": bool(windows),
        "a norm on queries and keys": config.qk_norm,
        "attention and FFN side by side": config.parallel_residual,
    }
    return [
        _POSITIONS[config.pos_encoding],
        _NORMS[config.norm],
        gate if config.gated_mlp else _ACTIVATIONS[config.activation],
        "embeddings tied" if config.tie_weights else "an unembedding of its own",
        *(trait for trait, has in optional.items() if has),
    ]
