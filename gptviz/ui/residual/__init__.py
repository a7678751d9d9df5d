"""The parts of the Residual stream page."""
