"""A tenth of Kueue's baseline; `python -m tests.bench.kueue_baseline` plays all of it."""

from tests.bench.kueue_baseline import CLASSES, COHORTS, QUEUES, Baseline


async def test_all_jobs_of_the_baseline_end_and_the_important_ones_hardly_wait() -> None:
    outcome = await Baseline(0.1).run()

    jobs = {kind: round(of.jobs * 0.1) * COHORTS * QUEUES for kind, of in CLASSES.items()}
    assert {kind: len(waits) for kind, waits in outcome.admitted_after.items()} == jobs
    assert sum(outcome.admitted_after["large"]) / jobs["large"] < 1
