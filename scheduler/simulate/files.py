"""Kubernetes objects in files: YAML or JSON, written by kubectl or by hand."""

import os
from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from scheduler.config.documents import STDIN, Document, name_of, parse_documents, read_file
from scheduler.framework.errors import ConfigError

SUFFIXES: Final = (".yaml", ".yml", ".json")
"""Which files of a directory are read; a file given by its own path may have any name."""


def read_documents(paths: Iterable[str], problems: list[str]) -> list[Document]:
    """Read files, directories recursively, and standard input for `-`; add what is wrong to `problems`."""
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
        matching = []
        for folder, below, names in os.walk(path):
            # Not hidden ones: where Kubernetes mounts a ConfigMap, its files would be read twice.
            below[:] = sorted(name for name in below if not name.startswith("."))
            matching += [os.path.join(folder, name) for name in sorted(names) if name.lower().endswith(SUFFIXES)]
        if not matching:
            problems.append(f"{path}: no file in this directory ends in {', '.join(SUFFIXES)}")
        yield from matching


def _parse(text: str, source: str) -> list[Document]:
    # The fast path for a dump of a large cluster, which is one JSON object.
    if text[:1] == "{":
        try:
            return [Document(source, orjson.loads(text))]
        except orjson.JSONDecodeError:
            pass
    return parse_documents(text, source)
