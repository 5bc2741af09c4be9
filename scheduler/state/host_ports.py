"""Which host ports are taken on which rows."""

from collections.abc import Iterable, Mapping
from typing import Final

from scheduler.api.requests import HostPort

ANY_ADDRESS: Final = "0.0.0.0"


class HostPorts:
    """Counts the host ports of pods as they come and go."""

    def __init__(self) -> None:
        self._ports: dict[tuple[str, int], dict[str, dict[int, int]]] = {}

    @property
    def rows(self) -> Mapping[tuple[str, int], Mapping[str, Mapping[int, int]]]:
        """(protocol, port) → address → row → number of pods that hold it."""
        return self._ports

    def count(self, row: int, ports: Iterable[HostPort], sign: int) -> None:
        """Count the ports of a pod on a row, or with `sign` -1 stop counting them."""
        for ip, protocol, port in ports:
            rows = self._ports.setdefault((protocol, port), {}).setdefault(ip or ANY_ADDRESS, {})
            rows[row] = rows.get(row, 0) + sign
            if not rows[row]:
                self._drop(row, protocol, port, ip or ANY_ADDRESS)

    def clear(self) -> None:
        self._ports.clear()

    def _drop(self, row: int, protocol: str, port: int, ip: str) -> None:
        by_ip = self._ports[protocol, port]
        del by_ip[ip][row]
        if not by_ip[ip]:
            del by_ip[ip]
        if not by_ip:
            del self._ports[protocol, port]
