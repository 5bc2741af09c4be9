"""What a run tells: its violations with all that is needed to look into them, and a summary."""

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.chaos.rounds import Outcome
from tests.chaos.stage import Stage

KEPT: Final = Path("build") / "chaos"


def keep(stage: Stage, outcome: Outcome) -> str:
    """Keep the violations of a round, its plan and the schedulers' logs; return the text and where they are."""
    plan = outcome.plan
    directory = KEPT / f"seed-{plan.seed}-round-{plan.number}"
    directory.mkdir(parents=True, exist_ok=True)
    lines = [f"VIOLATED  SEED={plan.seed} ROUND={plan.number}: {problem}" for problem in outcome.violations]
    text = "\n".join((f"plan: {plan}", *lines, ""))
    (directory / "violations.txt").write_text(text)
    for replica in stage.replicas:
        shutil.copy(replica.log, directory)
    return f"{text}logs: {directory}"


def summary(outcomes: Sequence[Outcome]) -> str:
    """How often there was each fault, what became of the pods, how long rounds took; at least one round."""
    faults = Counter(fault.kind for outcome in outcomes for fault in outcome.plan.faults)
    treated: Counter[str] = Counter()
    for outcome in outcomes:
        treated += outcome.treated
    pods, bound, sent = (sum(getattr(outcome, name) for outcome in outcomes) for name in ("pods", "bound", "bindings"))
    times = sorted(outcome.seconds for outcome in outcomes)
    quiet = sorted(outcome.quiet_after for outcome in outcomes)
    middle = len(times) // 2
    return "\n".join(
        (
            f"faults: {counts(faults)}",
            f"answers that were spoilt: {counts(treated)}",
            f"{sum(outcome.lost_leases for outcome in outcomes)} leaders ended because they lost the Lease",
            f"{pods} pods, {bound} of them bound at the end, {sent} binding requests",
            f"{len(times)} rounds of {times[middle]:.1f} s (median; {times[-1]:.1f} s at most), "
            f"quiet {quiet[middle]:.1f} s after the last fault (median; {quiet[-1]:.1f} s at most)",
            f"{sum(len(outcome.violations) for outcome in outcomes)} violations",
        )
    )


def counts(counter: Counter[str]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counter.items())) or "none"
