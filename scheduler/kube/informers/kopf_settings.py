"""kopf's settings for a read-only operator: it writes nothing, stores nothing, and never gives up."""

import logging
from typing import Any, Final

import kopf

from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.informers.intake import POD_FIELD_SELECTOR, PODS

CONNECT_SECONDS: Final = 10.0
RETRIES: Final = RetryPolicy(first=0.1, limit=5.0)
"""Between the tries of a request, and before kopf is started again."""

IDENTITY: Final[Any] = "loadmaster"
"""Our name in kopf. By default it takes that of the user we run as, and a container's user often has none.
Any: kopf does not export the type."""


def watch_settings(frozen_seconds: float) -> kopf.OperatorSettings:
    """kopf's settings for a read-only operator."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.progress_storage = NoProgress()
    settings.watching.field_selectors["v1", PODS] = POD_FIELD_SELECTOR
    settings.watching.inactivity_timeout = frozen_seconds
    settings.watching.connect_timeout = CONNECT_SECONDS
    settings.networking.connect_timeout = CONNECT_SECONDS
    settings.networking.request_timeout = 60.0
    settings.networking.error_backoffs = RETRIES
    settings.queueing.exit_timeout = 0.5
    # Otherwise it kills this process ten minutes after the operator's end, even if it is only restarted.
    settings.process.ultimate_exiting_timeout = None
    return settings


class NoDiffBase(kopf.DiffBaseStorage):
    """kopf copies objects to compare them with the previous ones; event handlers need no comparison."""

    def build(self, **_: Any) -> Any:
        return {}

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None


class NoProgress(kopf.ProgressStorage):
    """Event handlers have no progress to store."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None

    def purge(self, **_: Any) -> None:
        return None

    def touch(self, **_: Any) -> None:
        return None

    def clear(self, *, essence: Any) -> Any:
        return essence


def quiet_kopf() -> None:
    """Show kopf's lines only when debugging: it logs every try and every end twice, with stack traces."""
    if not logging.getLogger().isEnabledFor(logging.DEBUG):
        logging.getLogger("kopf").setLevel(logging.CRITICAL)
