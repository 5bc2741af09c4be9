"""Images on nodes and in pods, under several names each."""

from typing import Final

from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, containers

DIGEST: Final = "sha256:" + "ab" * 32
IMAGES: Final = (
    ["nginx:latest", f"nginx@{DIGEST}"],
    ["nginx:1.25"],
    ["registry.example:5000/team/app:latest", "registry.example:5000/team/app:v1"],
    [f"registry.example/tool@{DIGEST}"],
    ["busybox:latest"],
)
WANTED: Final = (
    "nginx",
    "nginx:latest",
    "nginx:1.25",
    f"nginx@{DIGEST}",
    "registry.example:5000/team/app",
    "registry.example:5000/team/app:v1",
    f"registry.example/tool@{DIGEST}",
    "registry.example/tool",
    "busybox",
    "absent:v9",
)
SIZES: Final = (0, 5_000_000, 30_000_000, 200_000_000, 999_999_999, 1_500_000_000, 4_000_000_000)


class Images(Topic):
    """What a node need not pull."""

    def dress_node(self, draw: Draw, node: Json) -> None:
        node["status"]["images"] = [
            {"names": draw.several(names, most=2), "sizeBytes": draw.choice(SIZES)}
            for names in draw.some(IMAGES, most=4)
        ]

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        for container in containers(pod):
            container["image"] = draw.choice(WANTED)
        if draw.chance(0.1):
            pod["spec"]["volumes"] = [{"name": "data", "image": {"reference": draw.choice(WANTED)}}]
