"""The parts of a trace as a scheduler sends them: members of a gzip file."""

import gzip
import json
from typing import Any, Final


def line(*fields: Any) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def member(*lines: tuple[Any, ...]) -> bytes:
    return gzip.compress(b"".join(line(*each) for each in lines), mtime=0)


BEGINNING: Final = gzip.compress(b'{"loadmasterTrace":1}\n' + line("begin", 0), mtime=0)
