"""The rounds of a run share a control plane and the scheduler."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tests.chaos.plan import Plan
from tests.chaos.report import keep
from tests.chaos.rounds import Outcome, Rounds
from tests.chaos.stage import a_stage
from tests.controlplane import BuildError, ProcessError

Play = Callable[[Plan], Outcome]


@pytest.fixture(scope="session")
def play(pytestconfig: pytest.Config) -> Iterator[Play]:
    """Plays a round and returns what came of it."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with asyncio.Runner() as runner:
        entering = a_stage()
        try:
            with capture.global_and_fixture_disabled():  # a first build takes minutes and shows how far it is
                stage = runner.run(entering.__aenter__())
        except (BuildError, ProcessError) as error:
            pytest.exit(str(error), returncode=2)  # once, not for every round
        rounds = Rounds(stage)
        try:
            assert not runner.run(rounds.begin())

            def play_one(plan: Plan) -> Outcome:
                outcome = runner.run(rounds.play(plan))
                if outcome.violations:
                    keep(stage, outcome)
                return outcome

            yield play_one
        finally:
            runner.run(entering.__aexit__(None, None, None))
