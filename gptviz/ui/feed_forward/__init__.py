"""The parts of the Feed-forward page."""
