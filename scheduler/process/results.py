"""Standard output is for a command's results: whatever else is printed, as by plugins, goes to standard error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

_kept: list[TextIO] = []
"""Standard output, while `print` writes elsewhere."""


@contextmanager
def only_results_on_stdout() -> Iterator[None]:
    """Within a `with` block, `sys.stdout` is standard error; `results` is what it was before."""
    _kept.append(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _kept.pop()


def results() -> TextIO:
    """The stream to which a command writes its results."""
    return _kept[-1] if _kept else sys.stdout
