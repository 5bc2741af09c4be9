"""Errors about files that a command writes."""

from collections.abc import Iterator
from contextlib import contextmanager

from scheduler.framework.errors import ConfigError


@contextmanager
def writing(path: object) -> Iterator[None]:
    """Raise ConfigError for a file that exists already or cannot be written."""
    try:
        yield
    except FileExistsError as error:
        raise ConfigError([f"{path}: is there already"]) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError([f"{path}: cannot be written: {reason}"]) from error
