"""Tables that tools write, as text, with one reader; nothing in here is edited by hand.

    known_fields.txt     the fields of Kubernetes objects, from the API's description: `make reference`
    feature_gates.txt    kube-scheduler's feature gates, from itself: `python -m tests.conformance.feature_gates`

A line is a name and words about it; the module that reads the table says what they mean.
"""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent


def table(name: str) -> dict[str, list[str]]:
    """Return the lines of a table: name → words."""
    lines = (line.split() for line in (FOLDER / f"{name}.txt").read_text().splitlines())
    return {name: words for name, *words in lines}
