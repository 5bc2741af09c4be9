"""Distinguishes trouble of the API server, which no restart of ours would cure, from answers that need attention.

trouble     no connection, no answer in time, 429, 5xx
not         other statuses (401, 403), a certificate that cannot be verified, credentials that cannot be read
"""

import aiohttp

from scheduler.kube.http.access import is_ours
from scheduler.kube.http.client import BadStatus, NoReply


def is_trouble(status: int) -> bool:
    """Return whether an answer with this status means that the API server is in trouble."""
    return status == 429 or status >= 500


def is_outage(error: BaseException) -> bool:
    """Return whether a call failed, with an error of ours or of aiohttp, because the API server is in trouble."""
    if isinstance(error, BadStatus):
        return is_trouble(error.status)
    return isinstance(error, NoReply | aiohttp.ClientError | TimeoutError) and not is_ours(error)
