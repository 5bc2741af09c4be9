"""What processes and the API server say about themselves: CPU time, memory, requests. Linux only."""

import http.client
import os
import re
import ssl
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.controlplane import Component, ControlPlane

TICKS: Final = os.sysconf("SC_CLK_TCK")

QUIET: Final = 0.04
"""The share of a core below which a process counts as quiet; the API server alone needs about 0.02."""

RARE: Final = 5
"""Requests in half a second that the API server makes of itself, or somebody who looks at a lease."""

Requests = Counter[str]
"""Requests by what they were, such as `POST pods/binding`."""


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, threads included."""
    return cpu_of_stat(Path(f"/proc/{pid}/stat").read_text())


def cpu_of_stat(stat: str) -> float:
    """The same from the text of /proc/PID/stat."""
    fields = stat.rpartition(")")[2].split()  # the name before may hold anything
    return (int(fields[11]) + int(fields[12])) / TICKS


def machine_cpu_seconds() -> float:
    """What all cores of the machine have worked since it started."""
    return busy_of_stat(Path("/proc/stat").read_text())


def busy_of_stat(stat: str) -> float:
    """The same from the text of /proc/stat: everything but waiting."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, stat.split(maxsplit=9)[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def peak_memory(pid: int) -> int:
    """The most resident memory that a process has had, in bytes."""
    return peak_of_status(Path(f"/proc/{pid}/status").read_text())


def resident_memory(pid: int) -> int:
    """The resident memory that a process has now, in bytes. Raises OSError or ValueError if it has ended."""
    return _of_status("VmRSS", Path(f"/proc/{pid}/status").read_text())


def available_memory() -> int:
    """Bytes that new processes may take without swapping."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def peak_of_status(status: str) -> int:
    """The most resident memory, from the text of /proc/PID/status."""
    return _of_status("VmHWM", status)


def _of_status(name: str, status: str) -> int:
    match = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    if match is None:
        raise ValueError(f"no {name}: not a running process of Linux")
    return int(match[1]) * 1024


def wait_quiet(components: Iterable[Component], timeout: float, period: float = 1.0) -> None:
    """Return when no component used more than `QUIET` of a core over a period, or after `timeout` seconds."""
    pids = [component.pid for component in components]
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        before = [cpu_seconds(pid) for pid in pids]
        time.sleep(period)
        used = [cpu_seconds(pid) - earlier for pid, earlier in zip(pids, before, strict=True)]
        if max(used) <= QUIET * period:
            return


def wait_answered(controlplane: ControlPlane, timeout: float, period: float = 0.5) -> tuple[float, Requests]:
    """Return when for two seconds no request came that matters: the time of the last one, and all requests."""
    changed = time.monotonic()
    deadline = changed + timeout
    last = requests(controlplane)
    while (now := time.monotonic()) < min(changed + 2.0, deadline):
        time.sleep(period)
        found = requests(controlplane)
        if (found - last).total() > RARE:
            changed, last = now, found
    return changed, last


def requests(controlplane: ControlPlane) -> Requests:
    """What the API server counted since its start, its own few requests included; watches are not requests here."""
    return requests_of_metrics(metrics(controlplane))


def metrics(controlplane: ControlPlane) -> str:
    """The text of the API server's metrics, 1.5 MB. Not by kubectl, which alone would take as much CPU as 100 pods."""
    context = ssl.create_default_context(cafile=str(controlplane.credentials.ca))
    connection = http.client.HTTPSConnection("127.0.0.1", controlplane.apiserver.port, timeout=10, context=context)
    headers = {"Authorization": f"Bearer {controlplane.credentials.tokens['admin']}"}
    try:
        connection.request("GET", "/metrics", headers=headers)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def requests_of_metrics(text: str) -> Requests:
    """The same from the text of its metrics."""
    found: Requests = Counter()
    for line in text.splitlines():
        if not line.startswith("apiserver_request_total{"):
            continue
        labels, _, value = line.partition("{")[2].rpartition("} ")
        label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if label["resource"] and label["verb"] != "WATCH":
            name = "/".join(filter(None, (label["resource"], label["subresource"])))
            found[f"{label['verb']} {name}"] += int(float(value))
    return found


def per_pod(after: Requests, before: Requests, pods: int) -> dict[str, float]:
    """Requests for each pod, the most frequent first; without what is rarer than one for a thousand pods."""
    difference = {name: (count - before[name]) / pods for name, count in after.most_common()}
    return {name: share for name, share in sorted(difference.items(), key=by_value) if share >= 0.001}


def by_value(item: tuple[str, float]) -> tuple[float, str]:
    return -item[1], item[0]
