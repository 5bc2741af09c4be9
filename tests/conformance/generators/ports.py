"""Host ports: addresses, protocols, host networking."""

from typing import Final

from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, containers

PORTS: Final = (80, 443, 8080)
ADDRESSES: Final = ("", "", "0.0.0.0", "127.0.0.1", "10.0.0.5", "::", "fd00::1")
PROTOCOLS: Final = ("TCP", "TCP", "UDP", "SCTP")


class Ports(Topic):
    """Which ports of its node a pod takes."""

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        host_network = draw.chance(0.15)
        if host_network:
            pod["spec"]["hostNetwork"] = True
        taken: set[tuple[str, str, int]] = set()
        for container in containers(pod):
            for number in draw.some(PORTS, most=2):
                port = container_port(draw, number, host_network=host_network)
                # The API refuses a host port that a pod takes twice.
                key = (port["protocol"], port.get("hostIP", ""), port.get("hostPort", 0))
                if key not in taken:
                    taken.add(key)
                    container.setdefault("ports", []).append(port)


def container_port(draw: Draw, number: int, *, host_network: bool) -> Json:
    """A port as an API server stores it: with a protocol, and on the host's network with the same host port."""
    port: Json = {"containerPort": number, "protocol": draw.choice(PROTOCOLS)}
    if host_network or draw.chance(0.6):
        port["hostPort"] = number
        address = draw.choice(ADDRESSES)
        if address:
            port["hostIP"] = address
    return port
