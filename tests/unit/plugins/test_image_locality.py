"""ImageLocality: nodes that have the images already."""

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
