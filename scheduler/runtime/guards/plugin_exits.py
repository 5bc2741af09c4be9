"""Plugins that would end the program, or never come back, while a command makes and starts them.

Plugins from files and packages are tried out in a process of their own before (`scheduler.plugin_loading.trial`), which
finds those that hang; this module is for all others, too, such as those given to `main`.
"""

import faulthandler
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from scheduler.framework.errors import ConfigError
from scheduler.framework.tracebacks import described_with_place

START_SECONDS: Final = 30.0
"""For all plugins of a configuration to be made and started. The kubelet gives 60 s, by the manifest and the chart."""


@contextmanager
def refused_exits() -> Iterator[None]:
    """Turn what would end the program, such as a plugin's SystemExit, into a ConfigError. Nothing is awaited within."""
    try:
        yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise ConfigError([described_with_place(error)]) from error


@contextmanager
def ended_hangs(seconds: float) -> Iterator[None]:
    """End the program with exit code 1 and its stacks on standard error if the body is not done after `seconds`."""
    with suppress(OSError, ValueError, AttributeError, RuntimeError):  # standard error may be closed, or no file
        faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
