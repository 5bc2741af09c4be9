"""How a pod is named on the command line."""

from scheduler.commands.explain import pod_reference


def test_a_pod_is_named_with_or_without_its_namespace() -> None:
    assert pod_reference("shop/web", "default") == ("shop", "web")
    assert pod_reference("web", "default") == ("default", "web")
