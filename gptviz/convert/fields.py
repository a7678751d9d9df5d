"""A foreign configuration's fields, each asked for by name; what nobody asked for is refused, not passed over."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from ..errors import GptvizError

_MISSING: Any = object()

ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}

# What a configuration says of training, of other heads, of how it is run or where it came from: no forward reads it.
_BESIDE_THE_FORWARD = re.compile(
    r"_.*|model_type|architectures|transformers(_|\.).*|(torch_)?dtype|use_cache|\w+_token_id|vocab_file|unsloth\w*"
    r"|summary_\w+|task_specific_params|finetuning_task|num_labels|id2label|label2id|problem_type|classifier_dropout"
    r"|\w*(dropout|pdrop)|initializer_range|gradient_checkpointing|pretraining_tp|output_\w+|return_dict(_in_generate)?"
    r"|predict_special_tokens|n_special|is_llama_config|is_decoder|name_or_path|tokenizer_class|use_bfloat16|torchscript"
    r"|attn_implementation|attention_probs_dropout_prob|license|prefix|max_length|min_length|do_sample|temperature|top_k"
    r"|top_p|repetition_penalty|num_return_sequences|chunk_size_feed_forward|num_beams|length_penalty|early_stopping"
)


class Fields:
    """The values of a configuration, untrusted; remembers which were asked for. Every method raises GptvizError."""

    def __init__(self, values: Mapping[str, Any], what: str = "The configuration"):
        self._values, self._what = values, what
        self._asked: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or the default where the field is missing. A null is a value."""
        self._asked.add(name)
        return self._values.get(name, default)

    def need(self, name: str) -> Any:
        """A field that there is no sensible default for."""
        value = self.get(name, _MISSING)
        if value is _MISSING:
            raise GptvizError(f"{self._what} lacks {name!r}, which no model of this kind goes without.")
        return value

    def whole(self, name: str, default: Any = _MISSING) -> int:
        """A whole number of at least 0, for arithmetic; a default serves for null as well."""
        value = self.need(name) if default is _MISSING else self.get(name)
        value = default if value is None and default is not _MISSING else value
        if type(value) is not int or not 0 <= value < 2**31:
            raise self.wrong(name, "a whole number")
        return value

    def number(self, name: str, default: float) -> float:
        """A finite number, for arithmetic; the default serves for null as well."""
        value = self.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(_float(value)):
            raise self.wrong(name, "a finite number")
        return _float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false; the default serves for null as well."""
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return default if value is None else value

    def activation(self, name: str, default: str) -> str:
        """This project's name for an activation."""
        value = self.get(name, default)
        if value not in list(ACTIVATIONS):  # a list, as an untrusted name may be unhashable
            raise self.wrong(name, f"one of {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS[value]

    def wrong(self, name: str, wanted: str) -> GptvizError:
        """The refusal of a value that is not what the field holds."""
        return GptvizError(f"{self._what} has {name} = {_shown(self._values.get(name))}, which is not {wanted}.")

    def refuse(self, name: str) -> GptvizError:
        """The refusal of a value that is understood, but not to be computed here."""
        return GptvizError(
            f"{self._what} has {name} = {_shown(self._values.get(name))}, which this version can't compute."
        )

    def finish(self) -> None:
        """Raises GptvizError for a field that nobody asked for, unless it says nothing or is of no matter to a forward.

        A switch that is off (null, false, empty) is how families say that they do without a feature.
        """
        for name, value in self._values.items():
            if (
                name not in self._asked
                and value not in (None, False, {}, [])
                and not _BESIDE_THE_FORWARD.fullmatch(name)
            ):
                raise GptvizError(
                    f"{self._what} has {name[:60]} = {_shown(value)}, which this version does not know, so it can't "
                    "tell whether the mathematics changes. If it does not, take the field out of config.json."
                )


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf


def _shown(value: Any) -> str:
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else text[:57] + "..."
