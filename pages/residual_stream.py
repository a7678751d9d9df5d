"""What every part writes into the stream, what would be read from it after each layer, and who wrote a logit."""

from gptviz.ui.frame import Selection, frame, page
from gptviz.ui.residual.attribution import attribution
from gptviz.ui.residual.lens import lens
from gptviz.ui.residual.prediction import prediction
from gptviz.ui.residual.stream import stream


def draw(chosen: Selection) -> None:
    stream(chosen)
    position = lens(chosen)
    attribution(chosen, position)
    prediction(chosen)


frame("Residual stream", "One vector a token, to which every part adds: from the embedding to the logits.", page(draw))
