"""The host ports that are taken, by row."""

from collections.abc import Iterable
from typing import Final, TypeAlias

from scheduler.api.pods.requests import HostPort
from scheduler.api.read_only import ReadOnlyDict

ANY_ADDRESS: Final = "0.0.0.0"

_Ports: TypeAlias = ReadOnlyDict[tuple[str, int], ReadOnlyDict[str, ReadOnlyDict[int, int]]]


class HostPorts:
    """Counts the host ports of pods as they come and go."""

    def __init__(self) -> None:
        self.rows: _Ports = ReadOnlyDict()
        """(protocol, port) → address → row → number of pods that hold it."""

    def count(self, row: int, ports: Iterable[HostPort], sign: int) -> None:
        """Count the ports of a pod on a row, or with `sign` -1 stop counting them."""
        for ip, protocol, port in ports:
            by_ip = dict.setdefault(self.rows, (protocol, port), ReadOnlyDict())
            rows = dict.setdefault(by_ip, ip or ANY_ADDRESS, ReadOnlyDict())
            dict.__setitem__(rows, row, rows.get(row, 0) + sign)
            if not rows[row]:
                self._drop(row, protocol, port, ip or ANY_ADDRESS)

    def clear(self) -> None:
        dict.clear(self.rows)

    def _drop(self, row: int, protocol: str, port: int, ip: str) -> None:
        by_ip = self.rows[protocol, port]
        dict.__delitem__(by_ip[ip], row)
        if not by_ip[ip]:
            dict.__delitem__(by_ip, ip)
        if not by_ip:
            dict.__delitem__(self.rows, (protocol, port))
