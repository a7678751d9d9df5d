"""Models that many tests share, read-only: random weights, large enough that no attention pattern is near uniform."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gptviz import GPT, GPTConfig

os.environ["GPTVIZ_HOME"] = str(
    Path(tempfile.gettempdir()) / "gptviz-no-models-added"
)  # not those of who runs the tests
torch.set_num_threads(1)  # with more, sums may be split anew from run to run, and bits differ

SMALL: dict[str, Any] = dict(vocab_size=50, block_size=32, n_layer=2, n_head=4, n_embd=32, init_std=0.2)

MakeModel = Callable[..., GPT]


def randomised(model: GPT) -> GPT:
    """Biases and norms get random values as well: zeros and ones would hide a wrong use of them."""
    for parameter in model.requires_grad_(False).parameters():
        if parameter.ndim == 1:
            parameter += 0.2 * torch.randn_like(parameter)
    return model.eval()


def fingerprint(model: GPT) -> list[float]:
    return [float(parameter.double().abs().sum()) for parameter in model.parameters()]


@pytest.fixture(scope="session")
def make_model() -> Iterator[MakeModel]:
    """make_model(**changes to SMALL) -> GPT, in eval mode and without gradients.

    The same call again gives the same model, so a test that changes one takes a deep copy.
    """
    made: dict[str, tuple[GPT, list[float]]] = {}

    def make(**changes: Any) -> GPT:
        config = GPTConfig(**SMALL | changes)
        if repr(config) not in made:
            with torch.random.fork_rng():
                torch.manual_seed(0)
                model = randomised(GPT(config))
            made[repr(config)] = model, fingerprint(model)
        return made[repr(config)][0]

    yield make
    changed = [name for name, (model, before) in made.items() if fingerprint(model) != before or model.training]
    assert not changed, "a test changed a shared model"


@pytest.fixture(scope="session")
def tiny_model(make_model: MakeModel) -> GPT:
    """Two layers of four heads, learned positions, 50 tokens."""
    return make_model()


@pytest.fixture
def ids() -> torch.Tensor:
    """Ten ids of the small models' vocabulary, one of them three times."""
    return torch.tensor([7, 31, 2, 48, 7, 0, 19, 33, 7, 12])


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)
