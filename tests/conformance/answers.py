"""Answers of extenders as encoding/json of Go reads them: `python -m tests.conformance.answers --cases 20000`.

Generated bodies are read by the oracle, as kube-scheduler does, and by us, and must mean the same: which members are
which fields, whatever their case. `--record` keeps cases that run without Go.
"""

import base64
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from scheduler.api.decoding import Unreadable
from scheduler.extenders import wire
from tests.conformance.readings import compare

Json = dict[str, Any]
RECORDED: Final = Path(__file__).parent / "answers" / "generated.jsonl.gz"
NULL: Final = "null"
EMPTY: Final[Json] = {
    "error": "",
    "nodes": None,
    "nodeNames": None,
    "failed": None,
    "failedForGood": None,
    "said": "",
    "scores": None,
    "victims": None,
}

Write = Callable[[random.Random], str]
"""Writes one value of a type."""

_TEXTS: Final = ("a", "b", "n1", "N1", "\u212a", "", "\ud83d\ude00", '\\"', "\\u0041")
_NUMBERS: Final = ("0", "7", "-3", "9223372036854775807", "9223372036854775808", "1.0", "1e2", "-0")
_WRONG: Final = ("true", "7", '"text"', "[]", "{}", "[1]", '{"a":{}}', "1.5")


def cases(numbers: range) -> Iterator[Json]:
    """A body for each number, with the question to which it is the answer."""
    for number in numbers:
        dice = random.Random(number)
        verb = dice.choice(tuple(_BODIES))
        body = _BODIES[verb](dice).encode("utf-8", "surrogatepass")
        yield {"verb": verb, "body": base64.b64encode(body).decode()}


def text(dice: random.Random) -> str:
    return _quoted(dice.choice(_TEXTS))


def _quoted(written: str) -> str:
    return f'"{written}"'.encode("utf-16", "surrogatepass").decode("utf-16")


def number(dice: random.Random) -> str:
    return dice.choice(_NUMBERS)


def listed(item: Write) -> Write:
    return lambda dice: f"[{', '.join(odd(item)(dice) for _ in range(dice.randint(0, 3)))}]"


def mapped(item: Write) -> Write:
    def write(dice: random.Random) -> str:
        keys = map(_quoted, dice.sample(_TEXTS, dice.randint(0, 3)))
        return "{" + ",".join(f"{key}: {odd(item)(dice)}" for key in keys) + "}"

    return write


def struct(**fields: Write) -> Write:
    """An object with some of the fields, in any order, and other members."""

    def write(dice: random.Random) -> str:
        members = [
            f'"{spelled(dice, name)}":{odd(fields[name])(dice)}'
            for name in dice.sample(tuple(fields), k=min(dice.choice((0, 1, 2, 2, 3, 5)), len(fields)))
        ]
        if dice.random() < 0.1:
            members.append(f'"other": {dice.choice(_WRONG)}')
        return "{" + ",".join(members) + "}"

    return write


def spelled(dice: random.Random, name: str) -> str:
    """A name as it is, or in another case; some letters have others that Go takes for them, and some only seem to."""
    choice = dice.random()
    if choice < 0.4:
        return name
    if choice < 0.8:
        return "".join(dice.choice((letter.lower(), letter.upper())) for letter in name)
    if choice < 0.9:
        return name.replace("s", "\u017f").replace("S", "\u017f")
    return dice.choice((name.replace("i", "\u0131"), name + "s", name[:-1], name.replace("o", "\u00f6"), f"{name} "))


def odd(write: Write) -> Write:
    """Now and then null, or something of another type."""

    def maybe(dice: random.Random) -> str:
        choice = dice.random()
        return NULL if choice < 0.1 else dice.choice(_WRONG) if choice < 0.12 else write(dice)

    return maybe


_NODES: Final = struct(items=listed(struct(metadata=struct(name=text))))
_BODIES: Final[dict[str, Write]] = {
    "filter": odd(
        struct(
            Nodes=_NODES,
            NodeNames=listed(text),
            FailedNodes=mapped(text),
            FailedAndUnresolvableNodes=mapped(text),
            Error=text,
        )
    ),
    "prioritize": odd(listed(struct(Host=text, Score=number))),
    "preempt": odd(
        struct(NodeNameToMetaVictims=mapped(struct(Pods=listed(struct(UID=text)), NumPDBViolations=number)))
    ),
    "bind": odd(struct(Error=text)),
}


def ours(case: Json) -> Json:
    """What a body means to us."""
    body = base64.b64decode(case["body"])
    try:
        return EMPTY | _READ[case["verb"]](body)
    except Unreadable as error:
        return EMPTY | {"error": str(error)}


def _filter(body: bytes) -> Json:
    found = wire.filter_result(body)
    return {
        "nodes": found.nodes,
        "nodeNames": found.node_names,
        "failed": found.failed or None,
        "failedForGood": found.failed_for_good or None,
        "said": found.error,
    }


def _scores(body: bytes) -> Json:
    return {"scores": [[each.host, each.score] for each in wire.priorities(body)]}


def _victims(body: bytes) -> Json:
    found = wire.preemption_result(body)
    return {"victims": {name: {"uids": each.uids, "violations": each.violations} for name, each in found.items()}}


_READ: Final[dict[str, Callable[[bytes], Json]]] = {
    "filter": _filter,
    "prioritize": _scores,
    "preempt": _victims,
    "bind": lambda body: {"said": wire.binding_error(body)},
}


def differences(case: Json, expected: Json) -> list[str]:
    """A line if a body means something else to us.

    Problems are described in other words, and null among victims is one: kube-scheduler panics.
    """
    expected = expected | {name: expected[name] or None for name in ("failed", "failedForGood")}
    found = ours(case)
    would_panic = any(each is None or None in each["uids"] for each in (expected["victims"] or {}).values())
    if found == expected or (found["error"] and (would_panic or expected["error"])):
        return []
    differing = [name for name in EMPTY if found[name] != expected[name]]
    told = ", ".join(f"{name}: Go {expected[name]!r}, ours {found[name]!r}" for name in differing)
    return [f"{case['verb']} {base64.b64decode(case['body'])!r}: {told}"]


if __name__ == "__main__":
    sys.exit(compare("answers", cases, differences, RECORDED, 2000))
