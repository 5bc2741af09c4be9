"""YAML files as documents in JSON: what kubectl prints by its lines, all else by libyaml."""

from collections.abc import Iterator

import msgspec
import yaml

from scheduler.config.documents import Document, parse_documents
from scheduler.simulate.files.plain_yaml import find_list, read_items
from scheduler.simulate.files.written import as_written


def yaml_documents(text: str, source: str) -> Iterator[Document]:
    """Yield the documents in `text`, which came from `source`. Raises ConfigError."""
    plain = _plain_list(text)
    if plain is not None:
        yield Document(f"{source}:1", plain)
        return
    yield from as_written(parse_documents(text, source))


def _plain_list(text: str) -> msgspec.Raw | None:
    """Return the only document in `text` if it is a list as kubectl prints it."""
    found = find_list(text)
    if found is None:
        return None
    rest = msgspec.json.encode(found.rest)
    pieces = [rest[:-1], b',"items":[' if found.rest else b'"items":[']
    try:
        for index, value in enumerate(read_items(text, found.items)):
            pieces += (b"," if index else b"", value)
    except (yaml.YAMLError, ValueError):
        return None  # for a message with the place, all of it has to be read
    return msgspec.Raw(b"".join((*pieces, b"]}")))
