"""The parts of the Sampling page."""
