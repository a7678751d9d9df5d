"""The one exception whose message is written for the person at the screen."""


class GptvizError(ValueError):
    """Bad input: the message names the value that was wrong and what to do about it."""
