"""Text that is not ours within Markdown that is."""

import re


def literal(text: str) -> str:
    """A text within Markdown that is shown as it is: a code span with a fence longer than any run of backticks."""
    text = " ".join(text.splitlines())
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    padding = " " if "`" in text else ""
    return f"{fence}{padding}{text}{padding}{fence}"
