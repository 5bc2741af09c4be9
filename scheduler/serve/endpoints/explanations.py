"""`/debug/explain?namespace=NAMESPACE&name=POD`, or `&podgroup=NAME`: why a pod, or a group, is pending, as JSON.

`/debug/explain?shares=true`: the shares of the cluster.
"""

from collections.abc import Awaitable, Mapping
from typing import Final, Protocol

from msgspec import to_builtins

from scheduler.api.wording.text import to_json
from scheduler.explain.documents import GroupReport, PodReport, SharesReport
from scheduler.serve.port.answers import JSON, LEADING, TEXT, Answer

PATH: Final = "/debug/explain"

MAX_WAITING: Final = 8
"""Questions at once: they are answered one after the other, between decisions."""


class Explains(Protocol):
    """Implemented in scheduler.explain.explainer."""

    def about_pod_or_group(self, namespace: str, name: str) -> Awaitable[PodReport | GroupReport]: ...
    def about_group(self, namespace: str, name: str) -> Awaitable[GroupReport]: ...
    def about_shares(self) -> Awaitable[SharesReport]: ...


class Explanations:
    """Answers the questions."""

    def __init__(self, explainer: Explains) -> None:
        self._explainer = explainer
        self._waiting = 0

    async def __call__(self, query: Mapping[str, str]) -> Answer:
        namespace, name, group = (query.get(key, "") for key in ("namespace", "name", "podgroup"))
        asks_about_shares = query.get("shares") == "true"
        if not asks_about_shares and not (namespace and (name or group)):
            return Answer(400, f"expected {PATH}?namespace=NAMESPACE&name=POD\n".encode(), TEXT)
        if self._waiting >= MAX_WAITING:
            return Answer(429, b"too many questions at once; ask again in a moment\n", TEXT)
        self._waiting += 1
        try:
            report: PodReport | GroupReport | SharesReport
            if asks_about_shares:
                report = await self._explainer.about_shares()
            elif group:
                report = await self._explainer.about_group(namespace, group)
            else:
                report = await self._explainer.about_pod_or_group(namespace, name)
        finally:
            self._waiting -= 1
        leading = ((LEADING, "true" if report.leading else "false"),)
        return Answer(200 if report.found else 404, to_json(to_builtins(report)) + b"\n", JSON, headers=leading)
