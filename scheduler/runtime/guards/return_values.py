"""Checks plugins' answers, and describes wrong ones in one sentence.

Nothing is checked where a plugin answers None, as most of them do to most questions.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from scheduler.api.wording.text import MAX_REASON, MAX_REASONS, encodable, shortened
from scheduler.framework.errors import PluginError, WrongAnswer
from scheduler.framework.groups.placements import Placement
from scheduler.framework.plugin import MAX_PERMIT_SECONDS, PermitWait, PostFilterResult, PreFilterResult
from scheduler.framework.status import Code, Status
from scheduler.runtime.guards.plugin_faults import place_of

STATUS: Final = "None or a Status"
PRE_FILTER: Final = "None, a PreFilterResult or a Status"
POST_FILTER: Final = "a pair: None or a PostFilterResult, then None or a Status"
PERMIT: Final = "None, a Status or a PermitWait"
WHOLE_NUMBER: Final = "a whole number of 64 bits"
NODE_NAME: Final = "a PostFilterResult with the name of a node, or none"
PLACEMENTS: Final = "a list of Placements or a Status"
AWAITABLE: Final = "`async def`, as it is awaited"

_REFUSALS: Final = "unschedulable(…), unresolvable(…) or pending(…)"

MAY_ANSWER: Final = {
    "PreEnqueue": f"None, {_REFUSALS}",
    "PreFilter": "None, a PreFilterResult, SKIP, unschedulable(…) or unresolvable(…)",
    "PreFilterExtensionAddPod": "None",
    "PreFilterExtensionRemovePod": "None",
    "Filter": f"None, {_REFUSALS}",
    "PostFilter": f"a pair whose second is None, {_REFUSALS}",
    "PreScore": "None or SKIP",
    "Reserve": f"None, {_REFUSALS}",
    "Permit": f"None, a PermitWait, {_REFUSALS}",
    "PreBindPreFlight": "None or SKIP",
    "PreBind": f"None, {_REFUSALS}",
    "Bind": f"None, SKIP, {_REFUSALS}",
    "PlacementFeasible": "None, wait(…) or unschedulable(…)",
    "PlacementGenerate": f"Placements, {_REFUSALS}",
}
"""Extension point → what its plugins may answer. All may answer a Status with the code Error, too."""

MAX_NODE_NAME: Final = 253
"""Characters."""

MAX_SHOWN: Final = 60
"""Characters of an answer that a sentence quotes."""


def wrong_answer(plugin: str, point: str, method: Callable[..., Any], answer: object, expected: str) -> WrongAnswer:
    """The problem with an answer of `method`, for the plugin's author."""
    name = getattr(method, "__name__", point)
    if expected == AWAITABLE:
        detail = f"{name} is not {expected}"
    elif inspect.iscoroutine(answer):
        answer.close()  # or Python warns that it was never awaited
        detail = f"{name} is `async def`, but nothing awaits it: make it `def`"
    else:
        detail = f"{name} answered {_shown(answer)}, expected {expected}"
    return WrongAnswer(plugin, point, detail, place_of(method) or name)


def check_status(plugin: str, point: str, method: Callable[..., Any], answer: object, expected: str = STATUS) -> Status:
    """Return an answer other than None if it is a Status, as long as answers may be. Raises WrongAnswer."""
    if not isinstance(answer, Status):
        raise wrong_answer(plugin, point, method, answer, expected)
    reasons: object = answer.reasons
    if isinstance(reasons, tuple):
        for reason in reasons:
            if not isinstance(reason, str):
                break
        else:
            return bounded(answer)
    raise wrong_answer(plugin, point, method, reasons, "a Status whose reasons are a tuple of texts")


def bounded(status: Status) -> Status:
    """Return the answer with reasons that are fit for UTF-8, and no longer and no more than they may be."""
    reasons = status.reasons
    if len(reasons) <= MAX_REASONS:
        for reason in reasons:
            if len(reason) > MAX_REASON or not reason.isascii():
                break
        else:
            return status
    fit = [encodable(shortened(reason, MAX_REASON)) for reason in reasons[:MAX_REASONS]]
    if len(reasons) > MAX_REASONS:
        fit[-1] = f"and {len(reasons) - MAX_REASONS + 1:,} more reasons"
    return msgspec.structs.replace(status, reasons=tuple(fit))


def disallowed(plugin: str, point: str, method: Callable[..., Any], answer: Status) -> PluginError:
    """The error for a Status with a code that the extension point does not allow.

    The code Error is allowed everywhere: a plugin reports a problem in its own words.
    """
    if answer.code is Code.ERROR:
        return PluginError(plugin, point, answer.message or answer.code.label)
    name = getattr(method, "__name__", point)
    said = f"{answer.code.label}: {answer.message}" if answer.message else answer.code.label
    detail = f"{name} answered {said}; it may answer {MAY_ANSWER[point]}"
    return WrongAnswer(plugin, point, detail, place_of(method) or name)


def check_pre_filter(plugin: str, method: Callable[..., Any], answer: object) -> PreFilterResult | Status:
    """The same for PreFilter."""
    if not isinstance(answer, PreFilterResult):
        return check_status(plugin, "PreFilter", method, answer, PRE_FILTER)
    names: object = answer.node_names
    if not isinstance(names, frozenset | set):
        raise wrong_answer(plugin, "PreFilter", method, names, "a PreFilterResult with a set of names")
    return answer


def check_post_filter(
    plugin: str, method: Callable[..., Any], answer: object
) -> tuple[PostFilterResult | None, Status | None]:
    """The same for PostFilter, whose second part is a refusal or a success. Raises PluginError for any other."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise wrong_answer(plugin, "PostFilter", method, answer, POST_FILTER)
    found, status = answer
    if found is not None and not isinstance(found, PostFilterResult):
        raise wrong_answer(plugin, "PostFilter", method, answer, POST_FILTER)
    if found is not None and not is_node_name(found.nominated_node_name):
        raise wrong_answer(plugin, "PostFilter", method, found.nominated_node_name, NODE_NAME)
    if status is None:
        return found, None
    status = check_status(plugin, "PostFilter", method, status, POST_FILTER)
    if not status.is_rejected and status.code is not Code.SUCCESS:
        raise disallowed(plugin, "PostFilter", method, status)
    return found, status


def is_node_name(name: object) -> bool:
    """Return whether it may be the name of a node, or is empty."""
    return isinstance(name, str) and len(name) <= MAX_NODE_NAME and name.isascii()


def check_permit(plugin: str, method: Callable[..., Any], answer: object) -> Status | PermitWait:
    """The same for Permit: a refusal, or for how long the pod is held, MAX_PERMIT_SECONDS at most."""
    if not isinstance(answer, PermitWait):
        return check_status(plugin, "Permit", method, answer, PERMIT)
    timeout: object = answer.timeout
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or math.isnan(timeout) or timeout < 0:
        raise wrong_answer(plugin, "Permit", method, timeout, "a PermitWait of seconds, 0 or more")
    message: object = answer.message
    if not isinstance(message, str):
        raise wrong_answer(plugin, "Permit", method, message, "a PermitWait with a text")
    is_fit = len(message) <= MAX_REASON and message.isascii()
    if is_fit and type(answer) is PermitWait and type(timeout) is float and timeout <= MAX_PERMIT_SECONDS:
        return answer  # each member of a gang gets the same
    return PermitWait(min(float(timeout), MAX_PERMIT_SECONDS), encodable(shortened(message, MAX_REASON)))


def check_score(plugin: str, method: Callable[..., Any], answer: object, point: str = "Score") -> int:
    """The same for Score, of anything but an int."""
    if not isinstance(answer, np.integer):
        raise wrong_answer(plugin, point, method, answer, WHOLE_NUMBER)
    return int(answer)


def check_placements(plugin: str, method: Callable[..., Any], answer: object) -> Sequence[Placement]:
    """The same for PlacementGenerate, of anything but a Status."""
    if not isinstance(answer, list | tuple):
        raise wrong_answer(plugin, "PlacementGenerate", method, answer, PLACEMENTS)
    for each in answer:
        if not isinstance(each, Placement) or not isinstance(each.name, str):
            raise wrong_answer(plugin, "PlacementGenerate", method, each, PLACEMENTS)
        rows: object = each.rows
        if not isinstance(rows, np.ndarray) or rows.ndim != 1 or rows.dtype.kind != "i":
            raise wrong_answer(plugin, "PlacementGenerate", method, rows, "a Placement with an array of rows")
    return answer


def _shown(answer: object) -> str:
    try:
        text = repr(answer)
    except Exception:  # noqa: BLE001  the plugin's own code
        text = "something"
    text = shortened(text, MAX_SHOWN)
    return text if answer is None else f"{text} ({type(answer).__name__})"
