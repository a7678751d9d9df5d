"""A text, a vocabulary and a configuration that train in a moment."""

import random
from pathlib import Path

import pytest

from gptviz import GPTConfig, Tokenizer
from gptviz.tokenizer import END_OF_TEXT, train_bpe


def made_up(seed: int) -> str:
    draw = random.Random(seed)
    who, what, where = (draw.choice(words) for words in (["Lily", "Ben", "Tom"], ["ball", "cake"], ["park", "house"]))
    return f"Once upon a time, {who} went to the {where}. {who} saw a {what}. " * draw.randint(1, 3) + "The end."


@pytest.fixture(scope="session")
def stories() -> list[str]:
    return [made_up(seed) for seed in range(60)]


@pytest.fixture(scope="session")
def tokenizer(stories: list[str]) -> Tokenizer:
    return train_bpe(stories, 280)


@pytest.fixture(scope="session")
def config(tokenizer: Tokenizer) -> GPTConfig:
    shape = dict(n_layer=2, n_head=2, n_embd=16, block_size=24, dropout=0.1)
    return GPTConfig(vocab_size=len(tokenizer), bos_token_id=tokenizer.bos_id, **shape)


@pytest.fixture(scope="session")
def text_file(stories: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "stories.txt"
    path.write_text("".join(f"{story}\n{END_OF_TEXT}\n" for story in stories), encoding="utf-8")
    return path
