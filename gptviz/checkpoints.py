"""Models on disk: a folder with config.json, model.safetensors, tokenizer.json and card.json.

Files are untrusted: JSON and safetensors only, and nothing is allocated before the file's shapes agree with its config.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from . import convert, sizing
from .config import GPTConfig
from .errors import GptvizError
from .model import GPT
from .tokenizer import IdsTokenizer, Tokenizer

BUNDLED = Path(__file__).parents[1] / "checkpoints"
DEFAULT = "stories"
CONFIG, WEIGHTS, TOKENIZER, CARD = "config.json", "model.safetensors", "tokenizer.json", "card.json"
LARGEST_JSON = 64 * 2**20  # bytes; Llama 3's tokenizer.json is 9 MB


@dataclass(frozen=True)
class Checkpoint:
    """A model that is ready to run (eval, float32), its vocabulary, and where it came from."""

    model: GPT
    tokenizer: Tokenizer
    card: Mapping[str, Any] = field(default_factory=dict)


def bundled() -> list[str]:
    """The names of the models that come with the repository, the default first."""
    names = sorted(path.parent.name for path in BUNDLED.glob(f"*/{CONFIG}"))
    return sorted(names, key=lambda name: name != DEFAULT)


def load(source: str | Path) -> Checkpoint:
    """A bundled name, a folder, a .safetensors file with its config.json beside it, or "hf:org/name" from the Hub.

    Raises GptvizError, with nothing changed, for whatever can't be read.
    """
    if str(source) in bundled():
        return _load_folder(BUNDLED / str(source), str(source))
    if str(source).startswith("hf:"):
        return _load_folder(_download(str(source).removeprefix("hf:")), str(source))
    path = Path(source)
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:  # a name that is too long, or a place that may not be looked into
        raise GptvizError(f"{str(path)[:80]!r} can't be looked at: {error.strerror}.") from error
    if is_folder:
        return _load_folder(path, path.name)
    if is_file and path.suffix == ".safetensors":
        return _load_folder(path.parent, path.stem, path.name)
    raise GptvizError(_unreadable(path))


def _unreadable(path: Path) -> str:
    names = ", ".join(bundled()) or "none"
    if path.is_file():
        return f"{path} is no checkpoint this version can read: give a .safetensors file or a folder with a {CONFIG}."
    return f"There is no checkpoint {str(path)!r}: it is no folder, no file and no bundled name (bundled: {names})."


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=["*.json", "*.safetensors"]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise GptvizError(f"{name!r} could not be fetched from the Hub: {reason}") from error


class _Naming(NamedTuple):
    """How a file's tensors are called and laid out, seen from here."""

    name: Callable[[str], str | None]
    tensor: Callable[[str, Tensor], Tensor]
    shape: Callable[[str, tuple[int, ...]], tuple[int, ...]]


OWN = _Naming(lambda name: name, lambda name, tensor: tensor, lambda name, shape: shape)
GPT2 = _Naming(convert.name_from_gpt2, convert.tensor_from_gpt2, convert.shape_from_gpt2)


def _load_folder(folder: Path, name: str, weights: str = WEIGHTS) -> Checkpoint:
    values = _read_json(folder / CONFIG)
    foreign = "model_type" in values
    config = convert.config_from_hf(values) if foreign else GPTConfig.from_dict(values)
    model = _build(config, _read_weights(folder / weights, config, GPT2 if foreign else OWN))
    card = _read_json(folder / CARD) if (folder / CARD).exists() else {}
    return Checkpoint(model, _read_tokenizer(folder / TOKENIZER, config), {"name": name} | card)


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise GptvizError(f"{path.name} is {path.stat().st_size / 2**20:,.0f} MB: no real one is over 64 MB.")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise GptvizError(f"There is no {path.name} in {path.parent}: this folder is no checkpoint.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise GptvizError(f"{path.name} can't be read: {error}") from error


def _read_json(path: Path) -> dict[str, Any]:
    text = _read_text(path)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: a whole number of thousands of digits, too
        raise GptvizError(f"{path.name} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise GptvizError(f"{path.name} holds no JSON object, but a {type(values).__name__}.")
    return values


def _read_tokenizer(path: Path, config: GPTConfig) -> Tokenizer:
    if not path.exists():
        return IdsTokenizer(config.vocab_size, config.bos_token_id)
    tokenizer = Tokenizer.from_json(_read_text(path), config.bos_token_id)
    if len(tokenizer) > config.vocab_size:
        raise GptvizError(
            f"The tokenizer has {len(tokenizer)} entries, more than the {config.vocab_size} rows of the embedding: "
            "it belongs to another model."
        )
    return tokenizer


def _read_weights(path: Path, config: GPTConfig, naming: _Naming) -> dict[str, Tensor]:
    """The parameters by this project's names, float32. Shapes are checked in the header, before any tensor is read."""
    try:
        with safe_open(path, framework="pt") as file:
            ours = {theirs: name for theirs in file.keys() if (name := naming.name(theirs)) is not None}  # noqa: SIM118
            if config.tie_weights:
                ours = {theirs: name for theirs, name in ours.items() if name != "unembed.weight"}
            shapes = {
                name: naming.shape(theirs, tuple(file.get_slice(theirs).get_shape())) for theirs, name in ours.items()
            }
            _check_shapes(shapes, config)
            read = {name: naming.tensor(theirs, file.get_tensor(theirs)) for theirs, name in ours.items()}
    except FileNotFoundError:
        raise GptvizError(f"There is no {path.name} in {path.parent}: this folder is no checkpoint.") from None
    except (SafetensorError, OSError) as error:
        raise GptvizError(f"{path.name} is not a whole safetensors file: {error}") from error
    return {name: _finite(name, tensor) for name, tensor in read.items()}


def _check_shapes(found: Mapping[str, tuple[int, ...]], config: GPTConfig) -> None:
    """Raises GptvizError unless the file holds exactly the parameters of such a model."""
    if config.n_layer > len(found):
        raise GptvizError(
            f"The configuration says n_layer = {config.n_layer}; the file holds only {len(found)} tensors."
        )
    wanted = {row.name: tuple(row.shape) for row in sizing.parameter_table(config)}
    _name_some(set(wanted) - set(found), "lacks", "the configuration asks for")
    _name_some(set(found) - set(wanted), "holds", "this architecture does not have")
    for name, shape in wanted.items():
        if found[name] != shape:
            raise GptvizError(f"{name} has the shape {found[name]} in the file and {shape} by the configuration.")


def _name_some(names: Iterable[str], verb: str, why: str) -> None:
    if some := sorted(names):
        more = f" and {len(some) - 3} more" if len(some) > 3 else ""
        raise GptvizError(f"The file {verb} {', '.join(some[:3])}{more}, which {why}.")


def _finite(name: str, tensor: Tensor) -> Tensor:
    if not tensor.is_floating_point():
        raise GptvizError(f"{name} holds {tensor.dtype}, not floating-point weights.")
    stored, tensor = str(tensor.dtype).removeprefix("torch."), tensor.to(torch.float32).contiguous()
    if not bool(torch.isfinite(tensor).all()):
        raise GptvizError(f"{name} holds NaN, or more than {stored} can hold: these weights are broken.")
    return tensor


def _build(config: GPTConfig, weights: Mapping[str, Tensor]) -> GPT:
    with torch.device("meta"):
        model = GPT(config)
    model.load_state_dict(weights, strict=False, assign=True)
    model.tie()
    return model.eval()


def save(checkpoint: Checkpoint, folder: str | Path, dtype: torch.dtype | None = None) -> Path:
    """Write the folder, whole or not at all, in place of a checkpoint that stood there. Weights are float32 by default.

    Raises GptvizError where anything else stands there.
    """
    folder = Path(folder).resolve()
    check_replaceable(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _write(checkpoint, partial, dtype or torch.float32)
        partial.chmod(0o755)
        _swap(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def check_replaceable(folder: str | Path) -> None:
    """Raises GptvizError unless saving there would replace nothing but a checkpoint."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise GptvizError(f"{folder} is a file: a checkpoint is a folder.")
    others = sorted(path.name for path in folder.glob("*") if path.name not in (CONFIG, WEIGHTS, TOKENIZER, CARD))
    if others:
        raise GptvizError(
            f"{folder} holds {others[0]!r}, which saving here would remove: give the checkpoint its own folder."
        )


def _write(checkpoint: Checkpoint, folder: Path, dtype: torch.dtype) -> None:
    parameters = checkpoint.model.named_parameters()
    weights = {name: parameter.detach().to("cpu", dtype).contiguous() for name, parameter in parameters}
    for name, tensor in weights.items():
        _finite(name, tensor)
    save_file(weights, folder / WEIGHTS)
    (folder / WEIGHTS).chmod(0o644)
    (folder / CONFIG).write_text(json.dumps(checkpoint.model.config.to_dict(), indent=2) + "\n", encoding="utf-8")
    (folder / CARD).write_text(json.dumps(dict(checkpoint.card), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if not isinstance(checkpoint.tokenizer, IdsTokenizer):
        (folder / TOKENIZER).write_text(checkpoint.tokenizer.to_json(), encoding="utf-8")


def _swap(new: Path, folder: Path) -> None:
    """Put the folder `new` where `folder` is; what was there goes only once the new one stands."""
    old = new.with_name(new.name + "-old")
    with suppress(FileNotFoundError):
        folder.replace(old)
    try:
        new.replace(folder)
    except OSError:
        with suppress(FileNotFoundError):
            old.replace(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
