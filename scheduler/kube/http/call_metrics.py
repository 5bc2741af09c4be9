"""Metrics of each call to the API server: our own by kind, and client-go's by host."""

from typing import NamedTuple
from urllib.parse import urlsplit

from scheduler.kube.http.operations import Operation
from scheduler.process.instruments import Counter, Histogram, observe_all
from scheduler.process.metrics import Metrics

NO_ANSWER = "<error>"
"""The code of a request without an answer, in client-go's words."""


class _Observed(NamedTuple):
    calls: Counter
    seconds: Histogram
    requests: Counter
    by_host: Histogram
    waits: Histogram
    sent: Histogram
    received: Histogram


class CallMetrics:
    """The metrics of one client."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._host = ""
        self._observed: dict[tuple[Operation, str], _Observed] = {}

    def talk_to(self, server: str) -> None:
        """From now on the calls go to this server. Raises ValueError if it is no URL."""
        host = urlsplit(server).netloc.rpartition("@")[2]
        if host != self._host:
            self._host = host
            self._observed.clear()

    def observe(self, operation: Operation, code: str, seconds: float, waited: float, sent: int, received: int) -> None:
        """Count a call. `code`: an HTTP status, or why there is none; `waited`: seconds for its turn; sizes: bytes."""
        observed = self._observed.get((operation, code))
        if observed is None:
            observed = self._observed[operation, code] = self._new(operation, code)
        observed.calls.value += 1
        observed.requests.value += 1
        observe_all(
            (observed.seconds, seconds),
            (observed.by_host, seconds),
            (observed.waits, waited),
            (observed.sent, sent),
            (observed.received, received),
        )

    def observe_request(self, method: str, code: str, seconds: float) -> None:
        """Count a request of kopf's, up to the head of its answer."""
        self._metrics.rest_client_requests.labels(code, method, self._host).inc()
        self._metrics.rest_client_request_duration.labels(method, self._host).observe(seconds)

    def _new(self, operation: Operation, code: str) -> _Observed:
        metrics, verb, host = self._metrics, operation.verb, self._host
        return _Observed(
            metrics.api_calls.labels(verb, operation.resource, code),
            metrics.api_call_duration.labels(verb, operation.resource),
            metrics.rest_client_requests.labels(code if code.isdigit() else NO_ANSWER, verb, host),
            metrics.rest_client_request_duration.labels(verb, host),
            metrics.rest_client_rate_limiter_duration.labels(verb, host),
            metrics.rest_client_request_size.labels(verb, host),
            metrics.rest_client_response_size.labels(verb, host),
        )
