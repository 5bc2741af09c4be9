"""The host ports, claims and disks that the pods on nodes hold."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import HostPort
from scheduler.api.read_only import ReadOnlyDict
from scheduler.api.storage.pod_storage import PodStorage, VolumeKey

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


_NOWHERE: Final[Mapping[int, int]] = ReadOnlyDict()


class VolumeUsers:
    """Implements framework.nodes.VolumeIndex. Sparse: pods without volumes cost nothing."""

    def __init__(self) -> None:
        self._rows: dict[VolumeKey, ReadOnlyDict[int, int]] = {}
        self._volumes: dict[int, int] = {}
        """Row → number of volumes of its pods."""
        self._odd: dict[int, int] = {}
        """Row → number of pods whose volumes are not regular."""

    def users(self, key: VolumeKey) -> Mapping[int, int]:
        return self._rows.get(key, _NOWHERE)

    def most(self, row: int) -> int:
        return self._volumes.get(row, 0)

    def has_odd_pods(self, row: int) -> bool:
        return row in self._odd

    def count(self, row: int, storage: PodStorage, sign: int) -> None:
        """Count a pod with this storage on a row, or with `sign` -1 stop counting it."""
        _add(self._volumes, row, sign * len(storage.volumes))
        if not storage.regular:
            _add(self._odd, row, sign)
        for key in storage.keys:
            rows = self._rows.setdefault(key, ReadOnlyDict())
            _add(rows, row, sign)
            if not rows:
                del self._rows[key]

    def clear(self) -> None:
        for counts in (self._rows, self._volumes, self._odd):
            counts.clear()

    def check_invariants(self, pods_by_row: Iterable[Iterable[Pod]]) -> None:
        """The counts are those of the pods. For tests and debugging."""
        expected = VolumeUsers()
        for row, pods in enumerate(pods_by_row):
            for pod in pods:
                if pod.storage.volumes:
                    expected.count(row, pod.storage, 1)
        assert expected._rows == self._rows
        assert expected._volumes == self._volumes
        assert expected._odd == self._odd


def _add(counts: dict[int, int], row: int, number: int) -> None:
    total = counts.get(row, 0) + number
    if total:
        dict.__setitem__(counts, row, total)
    else:
        dict.__delitem__(counts, row)
