"""Servers that plugins ask repeatedly and that do not answer: not a bug, so counted and logged apart from bugs.

answers ──ApiError──► logged ──the same again──► counted; logged once more after REMIND_SECONDS
   └──────────────────an answer─────────────────┘ logged, if a line said that it failed
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from scheduler.framework.errors import ApiError
from scheduler.process.metrics import Metrics

REMIND_SECONDS: Final = 600.0

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Source:
    """The last report about the source of one operation, and when it was."""

    reason: str = ""
    at: float = 0.0
    is_said_to_fail: bool = False


class Sources:
    """The sources of all operations."""

    def __init__(self, metrics: Metrics) -> None:
        self._faults = metrics.plugin_data_faults
        self._sources: dict[str, _Source] = {}

    async def asked(self, operation: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work. An ApiError is counted, and logged if that is news."""
        try:
            await work()
        except ApiError as error:
            self._failed(operation, error)
        else:
            self._answered(operation)

    def _failed(self, operation: str, error: ApiError) -> None:
        reason = "no answer" if error.status == 0 else f"HTTP {error.status // 100}xx"
        self._faults.labels(operation, reason).inc()
        source, now = self._sources.get(operation, _Source()), asyncio.get_running_loop().time()
        if source.reason != reason or now - source.at >= REMIND_SECONDS:
            self._sources[operation] = _Source(reason, now, is_said_to_fail=True)
            _logger.warning("What a plugin asks fails", extra={"operation": operation, "err": str(error)})

    def _answered(self, operation: str) -> None:
        source = self._sources.get(operation)
        if source is not None and source.is_said_to_fail:
            source.is_said_to_fail = False
            _logger.info("What a plugin asks answers again", extra={"operation": operation})
