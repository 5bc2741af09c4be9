from tests.demo import cast


def test_there_are_twenty_nodes_in_three_zones() -> None:
    nodes = cast.nodes()

    zones = {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes}
    assert len({node["metadata"]["name"] for node in nodes}) == 20
    assert zones == {"zone-a", "zone-b", "zone-c"}
    assert [node["metadata"]["name"] for node in nodes if node["spec"].get("unschedulable")] == [cast.CORDONED]
    assert [node["metadata"]["name"] for node in nodes if node["spec"].get("taints")] == ["a-7", "b-7"]


def test_huge_fits_on_the_big_node_alone() -> None:
    largest = max(int(node["status"]["allocatable"]["cpu"]) for node in cast.nodes())

    assert largest < int(cast.HUGE.cpu) <= cast.BIG_CPUS
    assert cast.BIG_NODE not in {node["metadata"]["name"] for node in cast.nodes()}


def test_a_deployment_makes_pods_for_loadmaster() -> None:
    manifest = cast.TRAIN.manifest()

    template = manifest["spec"]["template"]
    assert template["spec"]["schedulerName"] == "loadmaster"
    assert template["spec"]["nodeSelector"] == {"accelerator": "gpu"}
    assert template["spec"]["containers"][0]["resources"]["limits"] == {cast.GPU: "1"}
    assert manifest["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"] == {"app": "train"}
