"""What a card tells, and what it cannot make the app say."""

import dataclasses

import pytest

from gptviz.config import preset
from gptviz.ui.card import validation

CONFIG = preset("gpt_from_scratch")
MEASURED = {"validation": {"nats_per_token": 1.5914, "bits_per_byte": 0.97578, "tokens": 9}}


def test_the_loss_is_told_in_all_units_or_in_those_asked_for():
    assert validation(MEASURED, CONFIG) == "1.59 nats per token, 0.976 bits per byte"
    assert validation(MEASURED, CONFIG, "bits_per_byte") == "0.976 bits per byte"


def test_a_model_that_sees_the_answer_is_not_praised_for_finding_it():
    cheat = dataclasses.replace(CONFIG, causal=False)
    assert validation(MEASURED, cheat, "bits_per_byte").startswith("0.976 bits per byte (no measure of prediction")


@pytest.mark.parametrize(
    "card",
    [{}, {"validation": "good"}, {"validation": None}, {"validation": [1]}, {"validation": {"bits_per_byte": "low"}}]
    + [{"validation": {"bits_per_byte": value}} for value in (None, True, float("nan"), float("inf"), [1.0], 10**400)],
)
def test_what_is_no_number_is_not_told(card):
    assert validation(card, CONFIG) == ""
