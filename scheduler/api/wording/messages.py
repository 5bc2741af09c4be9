"""Values and several errors in one message, formatted as Kubernetes' libraries do."""

import json
from collections.abc import Iterable, Sequence

_SAFE_IN_HTML = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def quoted(value: str | Sequence[str] | None) -> str:
    """Write a value as a field error does: a string in quotes, a list in brackets, None as `null`."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # Go writes lists as JSON that is safe within HTML, but not single strings.
    return text if isinstance(value, str) else text.translate(_SAFE_IN_HTML)


def aggregated(messages: Iterable[str]) -> str:
    """Join messages as an aggregate of errors does: each once, in brackets if there are several."""
    texts = list(dict.fromkeys(messages))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
