"""ImageLocality: nodes that have the images already."""

import pytest
from msgspec.structs import replace

from plugins.image_locality import MEBIBYTE, ImageLocality
from scheduler import framework as fw
from scheduler.api.objects import ContainerImage, ImageVolumeSource, Volume
from scheduler.testing import a_container, a_node, a_pod, node_from_dict
from tests.unit.plugins.cluster import a_cluster, scores


def pod_of(*images: str, init: str = "") -> fw.Pod:
    return a_pod(
        containers=[a_container(f"c{i}", image=image) for i, image in enumerate(images)],
        init_containers=[a_container("init", image=init)] if init else (),
    )


@pytest.mark.parametrize(
    ("pod", "image", "bytes_", "expected"),
    [
        pytest.param(pod_of("app:1"), "app:1", 500 * MEBIBYTE, 23, id="half of 500 MiB, for half of the nodes have it"),
        pytest.param(pod_of("app:1"), "app:2", 500 * MEBIBYTE, 0, id="another tag is another image"),
        pytest.param(pod_of("app"), "app:latest", 500 * MEBIBYTE, 23, id="no tag means latest"),
        pytest.param(pod_of("app:latest"), "app", 500 * MEBIBYTE, 0, id="what a node reports is taken as it is"),
        pytest.param(
            pod_of("reg:5000/app"), "reg:5000/app:latest", 500 * MEBIBYTE, 23, id="a registry's port is no tag"
        ),
        pytest.param(pod_of("app@sha256:ab"), "app@sha256:ab", 500 * MEBIBYTE, 23, id="a digest"),
        pytest.param(pod_of("app:1"), "app:1", 46 * MEBIBYTE, 0, id="23 MiB, once spread, do not count"),
        pytest.param(pod_of("app:1"), "app:1", 4000 * MEBIBYTE, 100, id="1000 MiB a container is the most"),
        pytest.param(pod_of("app:1", "b:1"), "app:1", 2000 * MEBIBYTE, 49, id="two containers may have twice as much"),
        pytest.param(pod_of("app:1", "app:1"), "app:1", 500 * MEBIBYTE, 24, id="each container of an image counts"),
        pytest.param(pod_of("b:1", init="app:1"), "app:1", 2000 * MEBIBYTE, 49, id="init containers count"),
        pytest.param(pod_of("app:1"), "app:1", 2**63 - 1, 100, id="an absurd size"),
    ],
)
def test_a_node_with_the_image_scores_by_its_size(pod: fw.Pod, image: str, bytes_: int, expected: int) -> None:
    cluster = a_cluster(a_node("with", images={image: bytes_}), a_node("without"))

    assert scores(ImageLocality(), pod, cluster) == {"with": expected, "without": 0}


def test_an_image_that_more_nodes_have_counts_more() -> None:
    images = {"app:1": 500 * MEBIBYTE}
    cluster = a_cluster(a_node("a", images=images), a_node("b", images=images))

    assert scores(ImageLocality(), pod_of("app:1"), cluster) == {"a": 48, "b": 48}


def test_the_first_node_that_reported_a_name_says_how_large_it_is() -> None:
    cluster = a_cluster(a_node("a", images={"app:1": 500 * MEBIBYTE}), a_node("b", images={"app:1": 5}))

    assert scores(ImageLocality(), pod_of("app:1"), cluster) == {"a": 48, "b": 48}


def test_an_image_has_several_names() -> None:
    node = node_from_dict(
        {
            "metadata": {"name": "a"},
            "status": {"images": [{"names": ["x@sha256:1", "x:1"], "sizeBytes": 500 * MEBIBYTE}]},
        }
    )

    assert node.status.images == (ContainerImage(names=("x@sha256:1", "x:1"), size_bytes=500 * MEBIBYTE),)
    assert scores(ImageLocality(), pod_of("x:1"), a_cluster(node)) == {"a": 48}


def test_an_image_that_is_a_volume_counts_as_a_containers_does() -> None:
    images = {"app:1": 300 * MEBIBYTE, "data:latest": 500 * MEBIBYTE}

    assert scores(ImageLocality(), with_data("app:1"), a_cluster(a_node("a", images=images))) == {"a": 39}


def test_a_huge_image_volume_does_not_hide_which_node_has_the_containers_image() -> None:
    data = {"data:latest": 9000 * MEBIBYTE}
    cluster = a_cluster(a_node("both", images={"app:1": 1000 * MEBIBYTE, **data}), a_node("data", images=data))

    assert scores(ImageLocality(), with_data("app:1"), cluster) == {"both": 74, "data": 49}


def with_data(*images: str) -> fw.Pod:
    pod = pod_of(*images)
    image = Volume(name="data", image=ImageVolumeSource(reference="data"))
    return replace(pod, spec=replace(pod.spec, volumes=(image,)))


def test_two_images_add_up() -> None:
    cluster = a_cluster(a_node("a", images={"a:1": 500 * MEBIBYTE, "b:1": 300 * MEBIBYTE}))

    assert scores(ImageLocality(), pod_of("a:1", "b:1"), cluster) == {"a": 39}
