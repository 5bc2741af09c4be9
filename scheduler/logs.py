"""Log lines: a constant message plus fields, as text for people or JSON for machines."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

from scheduler.api.text import encodable

_PLAIN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; the rest are the fields of this one."""


def set_up_logging(verbosity: int, form: str) -> None:
    """Log to standard error. `verbosity`, as klog's: 2 adds a line for each pod's outcome, 4 the libraries' own lines.

    At 0 a healthy scheduler says little: outcomes are counted in metrics and told in Events anyway.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=logging.DEBUG if verbosity >= 4 else logging.WARNING, handlers=[handler], force=True)
    if verbosity < 4:  # it repeats what ours say, with less
        logging.getLogger("kubernetes.aio.leaderelection").setLevel(logging.CRITICAL)
    for ours in ("scheduler", "plugins"):
        logging.getLogger(ours).setLevel(logging.DEBUG if verbosity >= 2 else logging.INFO)


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return what the caller gave as `extra`."""
    given = ((key, value) for key, value in vars(record).items() if key not in _PLAIN)
    return {key: encodable(value) if isinstance(value, str) else value for key, value in given}


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.000Z INFO Successfully bound pod to node pod="default/web" node="n1"`."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {key}={json.dumps(value, default=str)}" for key, value in fields_of(record).items())
        text = f"{_time(record)} {record.levelname} {record.getMessage()}{fields}"
        return encodable(text + "\n" + self.formatException(record.exc_info) if record.exc_info else text)


class JsonFormatter(logging.Formatter):
    """One object a line: `ts`, `level`, `logger`, `msg`, the fields, and `exception` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            line["exception"] = encodable(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
