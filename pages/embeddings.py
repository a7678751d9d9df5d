"""From text to the vectors that enter the first block: tokens, embeddings, positions."""

from gptviz.ui.embeddings.positions import positions
from gptviz.ui.embeddings.tokens import tokens
from gptviz.ui.embeddings.vectors import vectors
from gptviz.ui.embeddings.vocabulary import vocabulary
from gptviz.ui.frame import Selection, frame, page


def draw(chosen: Selection) -> None:
    tokens(chosen)
    vectors(chosen)
    positions(chosen)
    vocabulary(chosen)


SENTENCE = "Text becomes tokens, every token a vector; and where a token stands is told in one way or another."
frame("Embeddings", SENTENCE, page(draw))
