"""What extenders said is in a trace: attempts that asked them are decided again, whatever happened meanwhile."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from scheduler.extenders.chain import FilterVerdict
from scheduler.extenders.conversation import FILTER, PREEMPT, PRIORITIZE
from scheduler.extenders.extender import CallFailed
from scheduler.framework.preemption.dry_run import Victims
from scheduler.framework.status import unresolvable, unschedulable
from scheduler.replay.recorder import without_secrets
from scheduler.replay.trace import lines
from scheduler.replay.trace.extender_answers import Agreed, VictimsOnNode, verdict_of, written_answer
from tests.fakes.extenders import FakeExtender, an_extender, extender_access
from tests.unit.replay.stage import Stage
from tests.unit.replay.traces import MOST_ALLOCATED, RecordedTrace

NAMES: Final = tuple(f"node-{number}" for number in range(10))


@dataclass
class Moods:
    """How an extender answers: never twice the same."""

    random: random.Random

    def filter(self, question: dict[str, Any]) -> Any:
        names = question["NodeNames"]
        mood = self.random.randrange(10)
        if mood == 0:
            return CallFailed("it is away", "connection")
        left = names if mood < 3 else [name for name in names if self.random.random() < mood / 10]
        gone = [name for name in names if name not in left]
        half = len(gone) // 2
        refused, for_good = gone[:half], gone[half : half * 2]
        return {
            "NodeNames": left,
            "FailedNodes": dict.fromkeys(refused, f"mood {mood % 2}"),
            "FailedAndUnresolvableNodes": dict.fromkeys(for_good, "never"),
        }

    def prioritize(self, question: dict[str, Any]) -> Any:
        return [{"Host": name, "Score": self.random.randrange(11)} for name in (*question["NodeNames"], "elsewhere")]

    def preempt(self, question: dict[str, Any]) -> Any:
        if self.random.random() < 0.4:
            return CallFailed("it is away", "connection")
        victims = question["NodeNameToMetaVictims"]
        left = {name: each for name, each in victims.items() if self.random.random() < 0.7}
        return {"NodeNameToMetaVictims": left or victims}


class AskingStage(Stage):
    """A scheduler whose extender thinks while other pods are decided about, and nodes come and go."""

    def __init__(self, **settings: Any) -> None:
        self.random = random.Random(3)
        moods = Moods(self.random)
        answers = {verb: getattr(moods, verb) for verb in (FILTER, PRIORITIZE, PREEMPT)}
        self.extender: FakeExtender = an_extender(answers, hangs=True)
        super().__init__(extender_access=extender_access(self.extender), **settings)

    async def schedule(self) -> None:
        await super().schedule()
        if self.random.random() < 0.7:
            await self.extender.answer(self.random.randrange(4))


def record(trace: RecordedTrace, *, pods: int = 150, **settings: Any) -> None:
    trace.record_hour(before=40, pods=pods, kind=AskingStage, **settings)


def test_attempts_that_ask_extenders_are_decided_again(trace: RecordedTrace, tmp_path: Path) -> None:
    record(trace)

    code, report = trace.replay(f"--decisions={tmp_path}/decisions")

    assert (code, report["differences"]) == (0, [])
    decided = [line[3] for line in trace.lines("decided")]
    assert report["decisions"] > 150
    assert len((tmp_path / "decisions").read_text().splitlines()) == report["decisions"]
    assert sum(bool(decision[0]) for decision in decided) > 50, "many are placed"
    assert any(decision[7] for decision in decided), "room is made for some"
    texts = str(decided)
    assert "mood 1" in texts
    assert "ExtenderError: it is away" in texts
    assert "preemption: it is away" in texts
    assert len(trace.lines("asking")) >= report["decisions"]
    assert {"extenders", "gave up"} <= set(trace.kinds())


def test_searches_of_a_part_of_the_nodes_begin_where_they_began(trace: RecordedTrace) -> None:
    record(trace, pods=40, nodes=150, percentageOfNodesToScore=1)
    assert trace.decided_again()["decisions"] > 30
    assert len({line[3] for line in trace.lines("search")}) > 10


def test_those_that_were_asked_about_before_the_recording_count_as_recorded(trace: RecordedTrace) -> None:
    async def early(stage: Stage) -> None:
        stage.pod("early")
        await Stage.schedule(stage)

    async def late(stage: Stage) -> None:
        assert isinstance(stage, AskingStage)
        for _ in range(3):
            await stage.extender.answer()
        stage.pod("late")
        await Stage.schedule(stage)
        for _ in range(3):
            await stage.extender.answer()

    trace.record(late, before=early, kind=AskingStage)

    report = trace.decided_again()
    assert report["decisions"] == 1
    assert report["notes"][0].startswith("decisions that count as recorded: 1; extenders had a say in them")


def test_another_configuration_leaves_them_as_they_are(trace: RecordedTrace) -> None:
    record(trace, pods=40)

    report = trace.decided_by(MOST_ALLOCATED)

    assert (report["decisions"], report["different"]) == (0, 0)
    assert f"decisions that count as recorded: {len(trace.lines('decided')):,};" in report["notes"][0]
    found = report["carriedOn"]
    assert abs(found["now"]["pods"] - found["then"]["pods"]) <= 5


def test_a_configuration_with_extenders_is_read_again_without_their_addresses(trace: RecordedTrace) -> None:
    extenders = [{"urlPrefix": f"http://user:secret@{name}", "filterVerb": "filter"} for name in "ab"]
    record(trace, pods=5, **without_secrets({"extenders": extenders}))
    trace.decided_again()
    assert "secret" not in str(trace.header)


@pytest.mark.parametrize("left", [(), NAMES[:2], NAMES[:8], NAMES])
def test_what_is_left_of_nodes_takes_as_few_names_as_may_be(left: tuple[str, ...]) -> None:
    refusals = {name: unschedulable("full") if name < "node-5" else unresolvable("never") for name in NAMES}
    verdict = FilterVerdict(NAMES, left, {name: refusals[name] for name in NAMES if name not in left})
    made = written_answer(FILTER, verdict)
    assert len(made.names) <= len(NAMES) // 2  # type: ignore[union-attr]
    assert verdict_of(made, NAMES) == FilterVerdict(NAMES, list(left), verdict.refusals)  # type: ignore[arg-type]


def test_a_long_reason_for_many_nodes_is_written_once() -> None:
    names = tuple(f"node-{number}" for number in range(5_000))
    refusals = {name: unschedulable("x" * 60_000) for name in names}
    answer = written_answer(FILTER, FilterVerdict(names, (), refusals))
    assert len(lines.encode(lines.ExtenderAnswer(0, "uid", answer))) < 150_000


def test_victims_are_written_by_their_uids() -> None:
    assert written_answer(PREEMPT, {"n1": Victims([], 2)}) == Agreed((VictimsOnNode("n1", (), 2),))
    assert written_answer(PREEMPT, {}) == Agreed(())
