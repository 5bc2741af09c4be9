"""Log lines: a constant message plus fields, as text for people or JSON for machines."""

import json
import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import ClassVar, Final

from scheduler.api.wording.text import MAX_MESSAGE, encodable, printable, shortened

_PLAIN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The attributes of every record; all others are fields of this one."""

OUTCOMES: Final = 2
"""The verbosity that adds a line for each pod's outcome."""

LIBRARIES: Final = 4
"""The verbosity that adds the libraries' own lines."""

OURS: Final = ("scheduler", "plugins")


class Levels:
    """The verbosity of the log, as klog's `-v` and `--vmodule` say it; it may change while the program runs.

    2 adds a line for each pod's outcome, 4 the libraries' own lines. At 0 a healthy scheduler says little: outcomes are
    counted in metrics and reported in Events anyway.
    """

    def __init__(self, verbosity: int, modules: Sequence[tuple[str, int]] = ()) -> None:
        """`modules`: pattern, verbosity, of which the first that matches counts: see `parse_modules`."""
        self._modules = tuple(modules)
        self.verbosity = verbosity

    def set(self, verbosity: int) -> None:
        """Use this verbosity from now on, except for modules that have their own."""
        self.verbosity = verbosity
        self.apply()

    def apply(self) -> None:
        """Have all loggers obey: those that there are, and those that come later."""
        _Logger.levels = self
        logging.setLoggerClass(_Logger)
        logging.getLogger().setLevel(logging.DEBUG if self.verbosity >= LIBRARIES else logging.WARNING)
        # It repeats what ours say, with less.
        calm = logging.NOTSET if self.verbosity >= LIBRARIES else logging.CRITICAL
        logging.getLogger("kubernetes.aio.leaderelection").setLevel(calm)
        for ours in OURS:
            logging.getLogger(ours).setLevel(_level(self.verbosity))
        for name, logger in tuple(logging.root.manager.loggerDict.items()):
            if isinstance(logger, logging.Logger) and (level := self.level_of(name)) is not None:
                logger.setLevel(level)

    def level_of(self, name: str) -> int | None:
        """The level that `modules` give to a logger of that name, if any does."""
        last = name.rpartition(".")[2]
        for pattern, verbosity in self._modules:
            if fnmatchcase(name if "." in pattern else last, pattern):
                return _level(verbosity)
        return None


class _Logger(logging.Logger):
    """A logger of a module that is imported after logging was set up."""

    levels: ClassVar[Levels]

    def __init__(self, name: str, level: int = logging.NOTSET) -> None:
        super().__init__(name, level)
        own = self.levels.level_of(name)
        if own is not None:
            self.setLevel(own)


def set_up_logging(levels: Levels, form: str) -> None:
    """Log to standard error, as text or JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], force=True)
    levels.apply()


def parse_modules(text: str) -> tuple[tuple[str, int], ...]:
    """Read `--vmodule`: `loop=4,scheduler.kube.*=4`, patterns of the last part of a logger's name, or all of it.

    klog takes the name of a source file for it, which is the last part here. Raises ValueError.
    """
    return tuple(map(_module, filter(None, text.split(","))))


def _module(text: str) -> tuple[str, int]:
    pattern, equals, verbosity = text.partition("=")
    if not (pattern and equals and verbosity.isascii() and verbosity.isdigit()):
        raise ValueError(f"expected PATTERN=NUMBER, got {text!r}")
    return pattern, int(verbosity)


def _level(verbosity: int) -> int:
    return logging.DEBUG if verbosity >= OUTCOMES else logging.INFO


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return what the caller gave as `extra`."""
    return {key: _fit(value) for key, value in vars(record).items() if key not in _PLAIN}


def _fit(value: object) -> object:
    """A field's value, if it is not too long for a line; else the beginning of its JSON."""
    if isinstance(value, str):
        return encodable(shortened(value, MAX_MESSAGE))
    if value is None or isinstance(value, int | float):
        return value
    text = json.dumps(value, default=str)
    return value if len(text) <= MAX_MESSAGE else shortened(text, MAX_MESSAGE)


def _message(record: logging.LogRecord) -> str:
    return encodable(shortened(record.getMessage(), MAX_MESSAGE))


def _exception(text: str) -> str:
    """A traceback: of a long one its beginning and its end, which says what was raised."""
    half = MAX_MESSAGE // 2
    return encodable(text if len(text) <= MAX_MESSAGE else f"{text[:half]}\n…\n{text[-half:]}")


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.000Z INFO Successfully bound pod to node pod="default/web" node="n1"`."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {key}={json.dumps(value, default=str)}" for key, value in fields_of(record).items())
        line = f"{_time(record)} {record.levelname} {printable(_message(record))}{fields}"
        if not record.exc_info:
            return line
        frames = _exception(self.formatException(record.exc_info)).split("\n")
        return "\n".join([line, *map(printable, frames)])


class JsonFormatter(logging.Formatter):
    """One object a line: `ts`, `level`, `logger`, `msg`, the fields, and `exception` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": _message(record),
            **fields_of(record),
        }
        if record.exc_info:
            line["exception"] = _exception(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
