"""The namespaces of the cluster, as plugins look them up."""

from collections.abc import Mapping

from scheduler import framework as fw
from scheduler.api.label_selectors import Selector

_NO_LABELS: Mapping[str, str] = {}


def namespace_labels(handle: fw.Handle, name: str) -> Mapping[str, str]:
    """Return the labels of a namespace; none if it is not known."""
    namespace = handle.objects.get(fw.NAMESPACE, name)
    return _NO_LABELS if namespace is None else namespace.metadata.labels or _NO_LABELS


def selected_namespaces(handle: fw.Handle, selector: Selector) -> frozenset[str]:
    """Return the names of the known namespaces that `selector` selects."""
    known = handle.objects.list(fw.NAMESPACE)
    return frozenset(each.metadata.name for each in known if selector.matches(each.metadata.labels))


def namespaces_version(handle: fw.Handle) -> int:
    """Return a number that changes whenever the namespaces change."""
    return handle.objects.version(fw.NAMESPACE)
