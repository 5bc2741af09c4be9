"""Connections through a proxy: HTTP proxies by aiohttp, SOCKS5 here, as Go's client supports both."""

import asyncio
import socket
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from python_socks import ProxyError, ProxyType
from python_socks.async_.asyncio import Proxy

from scheduler.kube.http.sockets import LoopsSocket, loops_socket

SOCKS_PORT: Final = 1080


def http_proxy(proxy: str | None) -> str | None:
    """Return the proxy that a session is to know of: none if its connector leads through SOCKS."""
    return None if _is_socks(proxy) else proxy


def connector(proxy: str | None, **options: Any) -> aiohttp.TCPConnector:
    """Return a connector of a session through a proxy, with options of TCPConnector."""
    if proxy is None or not _is_socks(proxy):
        return aiohttp.TCPConnector(limit=0, socket_factory=loops_socket, **options)
    return _SocksConnector(proxy, **options)


def _is_socks(proxy: str | None) -> bool:
    return (proxy or "").startswith(("socks5://", "socks5h://"))


class _Unresolved(AbstractResolver):
    """Leaves names to the proxy, which may be the only one that knows them."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host=host, port=port, family=family, proto=0, flags=0)]

    async def close(self) -> None:
        """There is nothing to close."""


class _SocksConnector(aiohttp.TCPConnector):
    """Overrides how aiohttp connects a socket. TLS stays aiohttp's, with the name that the certificate must carry."""

    def __init__(self, proxy: str, **options: Any) -> None:
        super().__init__(limit=0, resolver=_Unresolved(), **options)
        self._socks = urlsplit(proxy)

    async def _wrap_create_connection(
        self, *args: Any, addr_infos: Any, **options: Any
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        host, port = addr_infos[0][4][:2]
        try:
            plain = await self._proxy().connect(host, port, options["timeout"].sock_connect)
        except TimeoutError:
            raise
        except (ProxyError, OSError) as error:
            why = error if isinstance(error, OSError) else OSError(None, f"the proxy refused: {error}")
            raise options["client_error"](options["req"].connection_key, why) from error
        return await self._wrap_existing_connection(*args, sock=LoopsSocket(fileno=plain.detach()), **options)

    def _proxy(self) -> Proxy:
        socks = self._socks
        user, password = (unquote(text) if text else None for text in (socks.username, socks.password))
        return Proxy(ProxyType.SOCKS5, socks.hostname or "", socks.port or SOCKS_PORT, user, password, rdns=True)
