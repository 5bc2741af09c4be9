"""Kubernetes objects in files: YAML or JSON, as kubectl writes it or as people do."""

import os
from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from scheduler.config.documents import STDIN, Document, name_of, parse_documents, read_file
from scheduler.framework.errors import ConfigError

SUFFIXES: Final = (".yaml", ".yml", ".json")
"""Files in a directory that are read; a file that is named itself may have any name."""


def read_documents(paths: Iterable[str], problems: list[str]) -> list[Document]:
    """Read files, directories with all below them, and standard input for `-`. What is wrong goes to `problems`."""
    documents: list[Document] = []
    for path in _files(paths, problems):
        try:
            documents += _parse(read_file(path), name_of(path))
        except ConfigError as error:
            problems += error.problems
    return documents


def _files(paths: Iterable[str], problems: list[str]) -> Iterator[str]:
    for path in paths:
        if path == STDIN or not os.path.isdir(path):
            yield path
            continue
        found = []
        for folder, below, names in os.walk(path):
            # Hidden ones too would be read twice where Kubernetes mounts a ConfigMap.
            below[:] = sorted(name for name in below if not name.startswith("."))
            found += [os.path.join(folder, name) for name in sorted(names) if name.lower().endswith(SUFFIXES)]
        if not found:
            problems.append(f"{path}: no file in this directory ends in {', '.join(SUFFIXES)}")
        yield from found


def _parse(text: str, source: str) -> list[Document]:
    # A dump of a large cluster is one JSON object; nothing reads it quicker.
    if text[:1] == "{":
        try:
            return [Document(source, orjson.loads(text))]
        except orjson.JSONDecodeError:
            pass
    return parse_documents(text, source)
