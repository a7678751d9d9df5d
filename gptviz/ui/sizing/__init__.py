"""The parts of the Sizing page: what is chosen, and a view a question. Needs no torch."""
