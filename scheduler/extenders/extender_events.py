"""Extenders' answers, which decisions depend on."""

from collections.abc import Mapping
from typing import TypeAlias

from scheduler.extenders.chain import FilterVerdict
from scheduler.framework.extenders import Victims
from scheduler.runtime.event_stream import EngineEvent

FILTER, PRIORITIZE, PREEMPT = "filter", "prioritize", "preempt"
"""The verbs of requests to extenders."""

ExtenderAnswer: TypeAlias = FilterVerdict | Mapping[str, int] | Mapping[str, Victims]
"""And what they answer, all of them together."""


class ExtendersAnswered(EngineEvent, frozen=True, gc=False):
    """The extenders that are asked about a pod have answered: its attempt goes on right after this."""

    uid: str
    verb: str
    """FILTER, PRIORITIZE or PREEMPT."""
    answer: ExtenderAnswer | Exception
