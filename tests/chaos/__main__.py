"""Plays rounds of chaos: a line for each, and a summary. The exit code is 1 after a violation."""

import argparse
import asyncio
import itertools
import sys

from tests.chaos.plan import KINDS, Plan, plan_round
from tests.chaos.report import keep, summary
from tests.chaos.rounds import Outcome, Rounds
from tests.chaos.stage import a_stage
from tests.controlplane import BuildError, ProcessError


async def run(plans: list[Plan]) -> list[Outcome]:
    """Play the rounds and tell about each."""
    outcomes = []
    async with a_stage() as stage:
        if not stage.clock.can_step:
            print("no C compiler: clocks are not stepped")
        rounds = Rounds(stage)
        if problems := await rounds.begin():
            raise ProcessError(f"before the first round: {problems}")
        for plan in plans:
            outcome = await rounds.play(plan)
            outcomes.append(outcome)
            print(f"SEED={plan.seed} ROUND={plan.number}: {outcome}", flush=True)
            if outcome.violations:
                print(keep(stage, outcome), flush=True)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int, help="play this round only")
    parser.add_argument("--fault", choices=sorted(KINDS), help="play as many rounds that have this kind of fault")
    parser.add_argument("--show", action="store_true", help="print the plans and play nothing")
    given = parser.parse_args()
    numbers = [given.round] if given.round else itertools.count(1)
    found = (plan_round(given.seed, number) for number in numbers)
    plans = [*itertools.islice((plan for plan in found if not given.fault or plan.has(given.fault)), given.rounds)]
    if given.show:
        print("\n".join(f"SEED={plan.seed} ROUND={plan.number}: {plan}" for plan in plans))
        return 0
    try:
        outcomes = asyncio.run(run(plans))
    except (BuildError, ProcessError) as error:
        print(error, file=sys.stderr)
        return 2
    print(summary(outcomes))
    return 1 if any(outcome.violations for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
