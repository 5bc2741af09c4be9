"""Facts about a running scheduler for its operator: `/configz`, `/flagz`, `/statusz`; and `/debug/flags/v`, to set.

Forms and words are kube-scheduler's: k8s.io/component-base/configz, k8s.io/apiserver/pkg/server/flagz and statusz,
routes/flags.go at v0.36.3. Of flagz and statusz there is a text for people and, if asked for as there, JSON.
"""

import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from scheduler.serve.port.answers import JSON, NOT_ACCEPTABLE, TEXT, Answer

GROUP: Final = "config.k8s.io"
VERSIONS: Final = ("v1beta1", "v1alpha1")

_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only.\n"
)


class Configz:
    """The configuration in effect, as JSON."""

    def __init__(self, document: Callable[[], Mapping[str, Any]]) -> None:
        self._document = document

    async def __call__(self, _accept: str) -> Answer:
        return _as_json({"componentconfig": self._document()})


class Flagz:
    """The flags and their values."""

    def __init__(self, component: str, flags: Mapping[str, str]) -> None:
        self._component = component
        self._flags = dict(sorted(flags.items()))

    async def __call__(self, accept: str) -> Answer:
        version = _structured("Flagz", accept)
        if version is None:
            return NOT_ACCEPTABLE
        if version:
            return _as_json({**_header("Flagz", version, self._component), "flags": self._flags})
        lines = "".join(f"{name}={value}\n" for name, value in self._flags.items())
        return Answer(200, f"\n{self._component} flagz\n{_WARNING}{lines}".encode(errors="replace"), TEXT)


class Statusz:
    """The version, the start time, and the list of pages."""

    def __init__(
        self,
        component: str,
        version: str,
        emulates: str,
        paths: Sequence[str],
        now: Callable[[], float] = time.time,
    ) -> None:
        """`version`: ours; `emulates`: the Kubernetes version whose scheduler this is equal to."""
        self._component = component
        self._version, self._emulates = version, emulates
        self._paths = sorted(paths)
        self._now = now
        self._started = now()

    async def __call__(self, accept: str) -> Answer:
        version = _structured("Statusz", accept)
        if version is None:
            return NOT_ACCEPTABLE
        started = datetime.fromtimestamp(self._started, UTC)
        up = max(0, int(self._now() - self._started))
        language = f"python{platform.python_version()}"
        if version:
            status = {
                "startTime": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "uptimeSeconds": up,
                "goVersion": language,
                "binaryVersion": self._version,
                "emulationVersion": self._emulates,
                "paths": self._paths,
            }
            return _as_json({**_header("Statusz", version, self._component), **status})
        text = (
            f"\n{self._component} statusz\n{_WARNING}\n"
            f"Started: {started:%a %b %e %H:%M:%S UTC %Y}\n"
            f"Up: {up // 3600} hr {up // 60 % 60:02} min {up % 60:02} sec\n"
            f"Python version: {language}\n"
            f"Binary version: {self._version}\n"
            f"Emulation version: {self._emulates}\n"
            f"Paths: {' '.join(self._paths)}\n"
        )
        return Answer(200, text.encode(), TEXT)


def set_verbosity(use: Callable[[int], None], body: bytes) -> Answer:
    """Use the number that was `PUT` as the verbosity of the log."""
    text = body.decode("ascii", "replace").strip()
    if not (text.isascii() and text.isdigit() and int(text) < 2**31):
        return Answer(400, f"expected a number of at most 2147483647, got {text[:40]!r}\n".encode(), TEXT)
    use(int(text))
    return Answer(200, f"successfully set klog.logging.verbosity to {text}".encode(), TEXT)


def _structured(kind: str, accept: str) -> str | None:
    """The version of the object that an Accept header asks for; empty for text, None for an unknown one."""
    if not accept.strip():
        return ""
    for media_type, *rest in (each.split(";") for each in accept.split(",")):
        wanted = {key.strip(): value.strip() for key, _, value in (part.partition("=") for part in rest)}
        if media_type.strip() == "application/json" and wanted.get("as") == kind and wanted.get("g") == GROUP:
            if wanted.get("v") in VERSIONS:
                return wanted["v"]
        elif media_type.strip() in ("text/plain", "text/*", "*/*"):
            return ""
    return None


def _header(kind: str, version: str, component: str) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": f"{GROUP}/{version}", "metadata": {"name": component}}


def _as_json(value: Any) -> Answer:
    return Answer(200, json.dumps(value, ensure_ascii=False).encode(errors="replace") + b"\n", JSON)
