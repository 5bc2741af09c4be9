"""Whatever is given as a trace: a replay, or one clear sentence and exit code 2, in bounded memory and time."""

import gzip
import json
import os
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from scheduler.__main__ import main
from scheduler.replay.trace.lines import Checksum
from tests.fakes.trace import line

LINES = list[bytes]


def header(**fields: Any) -> bytes:
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    values = {
        "loadmasterTrace": 1,
        "version": metadata.version("loadmaster"),
        "recordedAt": 1.7e9,
        "config": config,
        **fields,
    }
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def a_node(name: str = "n") -> dict[str, Any]:
    meta = {"name": name, "uid": name, "resourceVersion": "1"}
    return {"metadata": meta, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}


def a_pod(name: str = "web") -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}
    return {"metadata": meta, "spec": {"schedulerName": "loadmaster", "containers": [{"name": "main"}]}}


def decided(node: str = "n") -> list[Any]:
    return [node, 1, 1, 0, "", [], [], "", ""]


def decide(*, decision: Any = None, uid: str = "web", profile: str = "loadmaster") -> bytes:
    return line("decide", 1, uid, profile, 1, 0, decided() if decision is None else decision)


WHOLE: Final = [
    header(),
    line("layout", 0, ["n"], []),
    line("node", 0, a_node()),
    line("pod", 0, a_pod()),
    line("begin", 0),
    decide(),
    line("assume", 1, "web", "n"),
    line("bound", 2, "web"),
    line("end", 3, "the time was up"),
]


def packed(texts: LINES) -> bytes:
    return gzip.compress(b"".join(texts))


def at(place: int, *instead: bytes) -> bytes:
    """The trace with one line replaced."""
    return packed([*WHOLE[:place], *instead, *WHOLE[place + 1 :]])


Replay = Callable[..., tuple[int, str, str]]


@pytest.fixture
def replay(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Replay:
    """Replay a file with this content; return the exit code, and what was printed."""
    monkeypatch.chdir(tmp_path)

    def run(content: bytes | None, *options: str, path: str = "a.trace") -> tuple[int, str, str]:
        if content is not None:
            Path(path).write_bytes(content)
        return main(["replay", path, *options]), *capsys.readouterr()

    return run


BAD: Final[dict[str, tuple[bytes | Callable[[], bytes], str]]] = {
    "empty": (b"", "the file is empty"),
    "text": (b"hello\n", "not a trace of Loadmaster: no gzip data"),
    "one byte": (b"\x1f", "not a trace of Loadmaster"),
    "half of gzip's head": (b"\x1f\x8b", "not a trace of Loadmaster"),
    "another gzip file": (gzip.compress(b"hello\n"), "not a trace of Loadmaster"),
    "a snapshot": (gzip.compress(b'{"kind":"List","apiVersion":"v1","items":[]}\n'), "not a trace of Loadmaster"),
    "damaged data": (packed(WHOLE)[:40] + b"\xff" * 20 + packed(WHOLE)[60:], "damaged"),
    "a wrong checksum": (packed(WHOLE)[:-8] + b"\0" * 8, "damaged after about"),
    "garbage behind": (packed(WHOLE[:-1]) + b"garbage", "no gzip data"),
    "an older format": (at(0, header(loadmasterTrace=0)), "a trace of format 0; this program reads format 1"),
    "a newer format": (at(0, header(loadmasterTrace=2)), "a trace of format 2; this program reads format 1"),
    "a format that is text": (at(0, header(loadmasterTrace="x")), 'a trace of format "x"; this program'),
    "a format of many digits": (
        at(0, header().replace(b":1,", b":1" + b"0" * 5000 + b",", 1)),
        "this program reads format 1",
    ),
    "no version": (at(0, b'{"loadmasterTrace":1}\n'), "the first line of the trace cannot be read"),
    "half a header": (packed([WHOLE[0][:50]]), "no more than its beginning: its last line is cut off"),
    "a time beyond all calendars": (at(0, header(recordedAt=1e300)), "the first line of the trace cannot be read"),
    "a search that begins before the first node": (at(0, header(nextStart=-1)), "the first line of the trace cannot"),
    "a configuration of another kind": (at(0, header(config={"kind": "Pod"})), "the configuration in it: apiVersion"),
    "a plugin that is not there": (
        at(
            0,
            header(
                config={
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "TeamNodes"}]}}}],
                }
            ),
        ),
        "TeamNodes",
    ),
    "a profile that is not there": (at(5, decide(profile="teams")), "there is no profile 'teams'"),
    "a pod that is not there": (at(5, decide(uid="db")), "line 6 cannot be replayed: decide: 'db'"),
    "a line that is no JSON": (at(3, b"{\n"), "line 4 cannot be read"),
    "a line that is an object": (at(3, b"{}\n"), "line 4 cannot be read"),
    "a kind that is unknown": (at(3, line("dance", 0)), "a kind of line that this program does not know"),
    "parts that are missing": (at(3, line("pod", 0)), "line 4 cannot be read: Expected `array` of at least length 3"),
    "a time of a line that is text": (at(3, line("pod", "x", a_pod())), "line 4 cannot be read"),
    "a time of a line beyond all clocks": (
        at(3, b'["pod",1' + b"0" * 400 + b"," + json.dumps(a_pod()).encode() + b"]\n"),
        "line 4 cannot be read",
    ),
    "a pod that is a node name": (at(3, line("pod", 0, "web")), "line 4 cannot be replayed: pod: Expected"),
    "a quantity that is none": (
        at(2, line("node", 0, a_node() | {"status": {"allocatable": {"cpu": "many"}}})),
        "line 3 cannot be replayed: node",
    ),
    "rows that are free and not": (at(1, line("layout", 0, ["n"], [0])), "rows that are free have names"),
    "a row that is not there": (at(1, line("layout", 0, ["n"], [7])), "rows that are free have names"),
    "a node with two rows": (at(1, line("layout", 0, ["n", "n"], [])), "a node has two rows"),
    "a pod that is assumed twice": (at(7, WHOLE[6]), "is in the cache already"),
    "a decision that is none": (at(5, decide(decision="n")), "line 6 cannot be read: Expected"),
    "deep nesting": (at(3, b"[" * 100_000 + b"]" * 100_000 + b"\n"), "line 4 cannot be read"),
    "an answer to no call": (at(7, line("answer", 2, ["patch"], None, {})), "line 8 cannot be read: Expected"),
    "bytes that are no UTF-8": (at(3, b'["pod",0,"\xff\xfe"]\n'), "line 4 cannot be re"),
    "a bomb": (lambda: gzip.compress(b"\0" * (64 << 20)), "unpacks to more than 400 times its size"),
    "a bomb in a line": (
        lambda: gzip.compress(WHOLE[0] + b'["pod",0,"' + b"x" * (64 << 20)),
        "unpacks to more than 400 times its size",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_replayed_is_one_sentence(name: str, replay: Replay) -> None:
    content, sentence = BAD[name]

    code, out, err = replay(content if isinstance(content, bytes) else content())

    assert (code, out) == (2, "")
    assert sentence in err
    assert "a.trace" in err
    assert "Traceback" not in err
    assert max(map(len, err.splitlines())) < 800


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_changed_in_a_trace_is_a_replay_or_one_sentence(seed: int, replay: Replay) -> None:
    random = Random(seed)
    for _ in range(40):
        texts = [json.loads(text) for text in WHOLE[1:]]
        spoil(random, texts)
        odd = packed([WHOLE[0], *(line(*text) if isinstance(text, list) else b"7\n" for text in texts)])
        code, _, err = replay(odd)
        assert code in (0, 1, 2), texts
        assert (code == 2) == bool(err), texts


def spoil(random: Random, value: Any) -> None:
    """Put something odd somewhere within lists and objects."""
    while True:
        place: Any = random.choice(list(value)) if isinstance(value, dict) else random.randrange(len(value))
        within = value[place]
        if not (isinstance(within, dict | list) and within) or random.random() < 0.15:
            value[place] = random.choice(ODD)
            return
        value = within


ODD: Final[tuple[Any, ...]] = (
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    "",
    "x",
    "\ud800",
    "10" * 50,
    [],
    {},
    [[]],
    {"a": None},
    [None],
    ["n", "n"],
)


def with_checksum(texts: LINES) -> LINES:
    return [*texts, line("sum", 3, Checksum(b"".join(texts)).hexdigest())]


RECORDED: Final = with_checksum(WHOLE)

EDITS: Final[dict[str, Callable[[LINES], LINES]]] = {
    "a value": lambda texts: [text.replace(b'"cpu":"4"', b'"cpu":"8"') for text in texts],
    "the header": lambda texts: [texts[0].replace(b"1700000000.0", b"1700000001.0"), *texts[1:]],
    "a line that is gone": lambda texts: [*texts[:7], *texts[8:]],
    "a line that is new": lambda texts: [*texts[:4], line("pod", 0, a_pod("other")), *texts[4:]],
    "two lines exchanged": lambda texts: [*texts[:2], texts[3], texts[2], *texts[4:]],
    "the reason of its end": lambda texts: [*texts[:8], line("end", 3, "I liked it so"), *texts[9:]],
    "a space": lambda texts: [*texts[:3], texts[3].replace(b",", b", ", 1), *texts[4:]],
    "the checksum": lambda texts: [*texts[:9], line("sum", 3, "0" * 32)],
    "the checksum's kind": lambda texts: [*texts[:9], line("sum", 3, [])],
    "half of the checksum": lambda texts: [*texts[:9], texts[9][:20] + b"\n"],
}


@pytest.mark.parametrize("name", EDITS)
def test_a_trace_that_was_edited_says_so_and_is_replayed_if_that_is_wanted(name: str, replay: Replay) -> None:
    edited = EDITS[name](RECORDED)
    assert edited != RECORDED

    refused = replay(packed(edited))
    code, out, err = replay(packed(edited), "--edited")

    said = "its checksum is that of other lines; --edited replays it all the same"
    assert refused == (2, "", f"a.trace: edited after it was recorded, or damaged: {said}\n")
    assert (code, err) == (0, "")
    assert "the trace was edited after it was recorded" in out


@pytest.mark.parametrize("options", [[], ["--edited"]])
def test_a_trace_as_it_was_recorded_is_not_called_edited(options: list[str], replay: Replay) -> None:
    code, out, err = replay(packed(RECORDED[:3]) + packed(RECORDED[3:]), *options)

    assert (code, err) == (0, "")
    assert "edited" not in out


def test_a_trace_may_come_through_a_pipe(replay: Replay) -> None:
    reading, writing = os.pipe()
    os.write(writing, packed(RECORDED))
    os.close(writing)

    code, out, _ = replay(None, path=f"/dev/fd/{reading}")

    os.close(reading)
    assert code == 0
    assert "its checksum was not looked at" in out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            packed(WHOLE),
            [
                *("1 decision, ", "all as recorded", "It ended because the time was up."),
                "the trace has no checksum: whether it was edited is not known",
            ],
        ),
        (at(0, header(version="0.0.9")), ["1 decision, ", "Note: recorded by Loadmaster 0.0.9, replayed by "]),
        (packed(WHOLE[:-1]), ["1 decision, ", "the trace is not whole: its end is missing"]),
        (packed(WHOLE)[:-20], ["1 decision, ", "the trace is not whole: the file is cut off"]),
        (packed(WHOLE[:6]) + packed(WHOLE[6:])[:30], ["1 decision, ", "the trace is not whole: the file is cut off"]),
        (packed([*WHOLE[:6], WHOLE[6][:20]]), ["1 decision, ", "the trace is not whole: its last line is cut off"]),
        (packed(WHOLE[:3]), ["the trace ends before the state at its start is whole"]),
    ],
    ids=[
        *("whole", "of another version", "without an end", "cut off in its last bytes", "in a later part", "in a line"),
        "before its beginning",
    ],
)
def test_a_trace_is_replayed_as_far_as_it_goes_and_what_it_lacks_is_said(
    content: bytes, said: list[str], replay: Replay
) -> None:
    code, out, err = replay(content)

    assert (code, err) == (0, "")
    assert [each for each in said if each not in out] == []


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (decided("m"), ["1 differs: 1 other node", "then: placed on m", "now:  placed on n"]),
        (["", 0, 0, 0, "\x1b[2Jgone", [], [], "", ""], []),
    ],
    ids=["another node", "names that a terminal obeys"],
)
def test_another_decision_than_recorded_is_an_error(decision: list[Any], said: list[str], replay: Replay) -> None:
    code, out, _ = replay(at(5, decide(decision=decision)))

    assert code == 1
    assert [each for each in said if each not in out] == []
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("path", "sentence"),
    [("missing.trace", "No such file"), (".", "Is a directory"), ("a\0b", "cannot be read")],
)
def test_a_file_that_is_not_there_is_one_sentence(path: str, sentence: str, replay: Replay) -> None:
    code, _, err = replay(None, path=path)

    assert code == 2
    assert sentence in err
