"""The syntax of label keys and label values.

Rules and messages: k8s.io/apimachinery pkg/api/validate/content/kube.go (IsLabelKey, IsLabelValue) and dns.go
(IsDNS1123Subdomain, IsDNS1123Label) at v0.36.3.
"""

import re
from typing import Final

HOSTNAME: Final = "kubernetes.io/hostname"
"""The label by which each node is a topology of its own."""

ZONES: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
"""The labels with the zone of a node, the newer one first."""

MAX_NAME_BYTES: Final = 63
MAX_PREFIX_BYTES: Final = 253

_NAME_FORM = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORM = f"({_NAME_FORM})?"
_DNS_LABEL_FORM = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX_FORM = rf"{_DNS_LABEL_FORM}(\.{_DNS_LABEL_FORM})*"

_NAME = re.compile(_NAME_FORM)
_VALUE = re.compile(_VALUE_FORM)
_PREFIX = re.compile(_PREFIX_FORM)

_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_FORM}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE_FORM}')"
)
_PREFIX_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_PREFIX_FORM}')"
)


def label_key_problems(key: str) -> list[str]:
    """Return the problems of a label key such as `example.com/name`; none for a valid one."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = _prefix_problems(prefix) if slash else []
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > MAX_NAME_BYTES:
        problems.append(f"name part must be no more than {MAX_NAME_BYTES} bytes")
    if not _NAME.fullmatch(name):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """Return the problems of a label value; none for a valid one."""
    problems = []
    if len(value.encode()) > MAX_NAME_BYTES:
        problems.append(f"must be no more than {MAX_NAME_BYTES} bytes")
    if not _VALUE.fullmatch(value):
        problems.append(_VALUE_RULE)
    return problems


def subdomain_problems(name: str) -> list[str]:
    """Return the problems of the name of an object such as a pod; none for a valid one."""
    problems = []
    if len(name.encode()) > MAX_PREFIX_BYTES:
        problems.append(f"must be no more than {MAX_PREFIX_BYTES} bytes")
    if not _PREFIX.fullmatch(name):
        problems.append(_PREFIX_RULE)
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    return [f"prefix part {problem}" for problem in subdomain_problems(prefix)]
