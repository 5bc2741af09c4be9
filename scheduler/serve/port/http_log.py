"""aiohttp's log while it serves. Malformed requests are not logged: anyone may send them at any rate.

aiohttp would log each with its traceback. Their senders get a 400. What else it logs are errors of ours.
"""

import logging
from typing import Final

from aiohttp.http_exceptions import HttpProcessingError

HTTP_LOG: Final = logging.getLogger(__name__)


def _is_ours(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


HTTP_LOG.addFilter(_is_ours)
