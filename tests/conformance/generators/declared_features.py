"""What kubelets declare, and pods that need it."""

from typing import Final

from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, containers

FEATURES: Final = (
    "ExtendWebSocketsToKubelet",
    "RestartAllContainersOnContainerExits",
    "UnheardOf",
    "UserNamespacesHostNetworkSupport",
)


class DeclaredFeatures(Topic):
    """node.status.declaredFeatures, and the few fields of a pod that need some of them."""

    def dress_node(self, draw: Draw, node: Json) -> None:
        if draw.chance(0.8):
            node["status"]["declaredFeatures"] = sorted(draw.some(FEATURES, 4))

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        spec = pod["spec"]
        # Host network without host users needs a feature as well, but by default no API server stores such a pod.
        if draw.chance(0.2):
            spec["hostUsers"] = "hostNetwork" in spec or draw.chance(0.3)
        elif draw.chance(0.2) and not any("ports" in container for container in containers(pod)):
            spec["hostNetwork"] = True
        if draw.chance(0.25):
            container = draw.choice(containers(pod))
            container.setdefault("restartPolicy", draw.choice(("Never", "OnFailure")))
            container["restartPolicyRules"] = [
                {"action": action, "exitCodes": {"operator": "In", "values": [42]}}
                for action in draw.several(("Restart", "RestartAllContainers"), 2)
            ]
