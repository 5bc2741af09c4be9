"""Kubernetes' words for an invalid field, so that a message means the same in both schedulers.

Rule: k8s.io/apimachinery pkg/util/validation/field/errors.go. The field's path goes before the text.
"""

import json
from collections.abc import Iterable


def invalid(value: object, detail: str) -> str:
    """The value is not allowed there; `detail` has the allowed ones."""
    return f"Invalid value: {_quoted(value)}: {detail}"


def duplicate(value: object) -> str:
    """The value is there a second time."""
    return f"Duplicate value: {_quoted(value)}"


def not_supported(value: object, supported: Iterable[object]) -> str:
    """The value is none of the supported ones."""
    return f"Unsupported value: {_quoted(value)}: supported values: {', '.join(map(_quoted, supported))}"


def required(detail: str = "") -> str:
    """A value is missing."""
    return f"Required value: {detail}" if detail else "Required value"


def forbidden(detail: str) -> str:
    """There may be no value."""
    return f"Forbidden: {detail}"


def _quoted(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, default=str, ensure_ascii=False)
