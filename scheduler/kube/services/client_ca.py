"""The authorities of client certificates: the API server keeps a ConfigMap for servers that delegate to it.

kube-scheduler watches it. We read it every minute: authorities overlap for longer than that when they are exchanged.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec

from scheduler.api.decoding import Decoder
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import BadStatus, Client
from scheduler.kube.http.operations import CallLimit, Operation

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
KEY: Final = "client-ca-file"

PERIOD_SECONDS: Final = 60.0

log = logging.getLogger(__name__)


class NoClientCA(ClusterError):
    """The cluster accepts no client certificates."""


class ClusterClientCA:
    """Follows the authorities in the ConfigMap."""

    def __init__(self, client: Client, trust: Callable[[str], object]) -> None:
        """`trust`: takes them, in PEM; raises OSError or ValueError if they make no sense."""
        self._client = client
        self._trust = trust
        self._operation = Operation("GET", "configmaps", CallLimit(1))
        self._last_error = ""

    async def read(self) -> None:
        """Read them once. Raises ClusterError; what was known stays."""
        reply = await self._client.call(self._operation, f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}")
        if reply.status == 404:
            raise NoClientCA(f"there is no configmap {NAMESPACE}/{NAME}")
        if not reply.ok:
            raise BadStatus(f"reading configmap {NAMESPACE}/{NAME}", reply)
        try:
            client_ca = _decoder.decode(reply.body).data.get(KEY, "")
            if client_ca.strip():
                self._trust(client_ca)
        except (OSError, ValueError) as error:  # Unreadable is one
            raise ClusterError(f"configmap {NAMESPACE}/{NAME}: {error}") from error
        if not client_ca.strip():
            raise NoClientCA(f"configmap {NAMESPACE}/{NAME} has no {KEY}")

    async def follow(self) -> None:
        """Read them for ever; each failure is logged once."""
        while True:
            try:
                await self.read()
                self._last_error = ""
            except ClusterError as error:
                if str(error) != self._last_error:
                    self._last_error = str(error)
                    if isinstance(error, NoClientCA):
                        log.info("The cluster accepts no client certificates", extra={"why": self._last_error})
                    else:
                        log.warning("The cluster's client CA cannot be read", extra={"err": self._last_error})
            await asyncio.sleep(PERIOD_SECONDS)


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


_decoder: Decoder[_ConfigMap] = Decoder(_ConfigMap)
