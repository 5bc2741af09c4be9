"""A folder that is links to another one, but for some files: a Go module to be built with other files in it."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path


def link_all(there: Path, at: Path, changed: Mapping[str, str]) -> None:
    """Make the folder `at` with links to all that is `there`, but for files that are `changed`: name below it → text.

    Go's `overlay` would do the same, but refuses to replace what is in its module cache.
    """
    at.mkdir()
    own: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for name, text in changed.items():
        first, _, rest = name.partition("/")
        own[first][rest] = text
    for path in there.iterdir():
        if path.name not in own:
            (at / path.name).symlink_to(path)
    for first, inside in own.items():
        if "" in inside:
            (at / first).write_text(inside[""])
        else:
            link_all(there / first, at / first, inside)
