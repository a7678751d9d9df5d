"""From logits to one token, and on: every step of the draw, the ways not taken, and how fast tokens come."""

from gptviz.ui.frame import frame
from gptviz.ui.sampling.change import change
from gptviz.ui.sampling.openness import openness
from gptviz.ui.sampling.pace import pace
from gptviz.ui.sampling.steps import steps
from gptviz.ui.sampling.texts import texts
from gptviz.ui.sampling.ways import ways


def body() -> None:
    steps()
    openness()
    ways()
    texts()
    change()
    pace()


frame("Sampling", "Of all tokens one: what each setting does to the choice, and what else might have been.", body)
