"""What comes from outside is decoded in one way, which lets one kind of error out."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIRECT = re.compile(r"\b(?:msgspec\.json\.(?:decode|Decoder)|msgspec\.convert|orjson\.loads|json\.loads?)\(")
MAY = {
    "scheduler/api/decoding.py": "is that way",
    "scheduler/kube/election/lease.py": "writes all of the Lease back, which no tenant may edit",
    "scheduler/kube/election/lease_watch.py": "the same",
}


def test_nothing_else_decodes_json() -> None:
    found = {
        str(path.relative_to(ROOT))
        for room in ("scheduler", "plugins")
        for path in (ROOT / room).rglob("*.py")
        if DIRECT.search(path.read_text())
    }

    assert found == MAY.keys()
