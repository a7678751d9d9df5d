"""What was published of the presets' sizes, beside what their configurations come to. Knows no tensors."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ..config import PRESETS, GPTConfig
from .parameters import n_params


@dataclass(frozen=True, kw_only=True)
class Published:
    """exact: the number, where one is given to the last digit; text: as it is written; source: where, in words."""

    text: str
    source: str
    exact: int | None = None

    def compared(self, counted: int) -> tuple[bool, float]:
        """Whether the text is that count, rounded; and by which share the count is more."""
        number, unit = float(self.text[:-1]), {"M": 1e6, "B": 1e9}[self.text[-1]]
        half = 0.5 * 10 ** -len(self.text.partition(".")[2][:-1])
        return abs(counted / unit - number) <= half, counted / unit / number - 1


def _counted(number: int, source: str) -> Published:
    return Published(text=f"{number:,}", source=source, exact=number)


_GPT2 = "OpenAI's repository, which says that the paper's 117M, 345M, 762M and 1542M were wrong"
_GPT3 = "Brown et al. 2020, table 2.1"
_PYTHIA = "EleutherAI's model cards"
_HUB = "the published weights' own count on the Hugging Face Hub"
_QWEN = "Qwen's model card"

PUBLISHED = {
    "gpt2": Published(text="124M", source=_GPT2),
    "gpt2-medium": Published(text="355M", source=_GPT2),
    "gpt2-large": Published(text="774M", source=_GPT2),
    "gpt2-xl": Published(text="1558M", source=_GPT2),
    "gpt3-175b": Published(text="175.0B", source=_GPT3),
    "pythia-70m": _counted(70_426_624, _PYTHIA),
    "pythia-160m": _counted(162_322_944, _PYTHIA),
    "pythia-410m": _counted(405_334_016, _PYTHIA),
    "pythia-1b": _counted(1_011_781_632, _PYTHIA),
    "pythia-1.4b": _counted(1_414_647_808, _PYTHIA),
    "pythia-2.8b": _counted(2_775_208_960, _PYTHIA),
    "pythia-6.9b": _counted(6_857_302_016, _PYTHIA),
    "pythia-12b": _counted(11_846_072_320, _PYTHIA),
    "llama2-7b": _counted(6_738_415_616, _HUB),
    "llama3-8b": _counted(8_030_261_248, _HUB),
    "llama3-70b": _counted(70_553_706_496, _HUB),
    "qwen3-0.6b": Published(text="0.6B", source=_QWEN),
    "qwen3-1.7b": Published(text="1.7B", source=_QWEN),
    "qwen3-4b": Published(text="4.0B", source=_QWEN),
    "qwen3-8b": Published(text="8.2B", source=_QWEN),
    "qwen3-14b": Published(text="14.8B", source=_QWEN),
    "qwen3-32b": Published(text="32.8B", source=_QWEN),
}


@functools.cache
def _preset(name: str) -> GPTConfig:
    return GPTConfig.from_dict(PRESETS[name])


def published_sentence(name: str, config: GPTConfig) -> str:
    """How the configuration's count compares with what was published under that name; "" where nothing was.

    A configuration that was edited is another model's: nothing is said of it.
    """
    known = PUBLISHED.get(name)
    if known is None or config != _preset(name):
        return ""
    counted = n_params(config)
    if known.exact is None:
        rounded, off = known.compared(counted)
        words = ", rounded" if rounded else ""
        apart = "" if rounded else f", {abs(off) * 100:.2g} % {'more' if off > 0 else 'less'}"
        return f"Published: {known.text}{words} ({known.source}). Its configuration comes to {counted:,}{apart}."
    verdict = "the same" if counted == known.exact else f"not the {counted:,} counted here"
    return f"Published: {known.text}, {verdict} ({known.source})."
