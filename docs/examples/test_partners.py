from partners import Partners

from scheduler.testing import a_node, a_pod, a_scheduler

PAIR = {"example.com/pair": "web"}
LEFT, RIGHT = a_pod("left", labels=PAIR), a_pod("right", labels=PAIR)


def test_the_first_waits_for_the_second() -> None:
    with a_scheduler(Partners(), nodes=[a_node("a")]) as scheduler:
        scheduler.create(LEFT)
        scheduler.advance(59)
        assert scheduler.outcome(LEFT).held_by == ("Partners",)

        scheduler.create(RIGHT)

        assert scheduler.outcome(LEFT).node == scheduler.outcome(RIGHT).node == "a"


def test_a_pod_that_waited_in_vain_is_tried_again_when_its_partner_comes() -> None:
    with a_scheduler(Partners(), nodes=[a_node("a")]) as scheduler:
        scheduler.create(LEFT)
        scheduler.advance(61)
        assert scheduler.outcome(LEFT).held_by == ()
        assert "after waiting 1m0s at plugin Partners" in scheduler.outcome(LEFT).message

        scheduler.create(RIGHT)

        assert scheduler.outcome(LEFT).node == scheduler.outcome(RIGHT).node == "a"


def test_a_pod_whose_partner_runs_does_not_wait() -> None:
    with a_scheduler(Partners(), nodes=[a_node("a")]) as scheduler:
        scheduler.create(LEFT, RIGHT)
        scheduler.delete(LEFT)

        again = a_pod("again", labels=PAIR)
        scheduler.create(again)

        assert scheduler.outcome(again).node == "a"


def test_other_pods_and_other_namespaces_are_left_alone() -> None:
    alone, elsewhere = a_pod("alone"), a_pod("elsewhere", namespace="other", labels=PAIR)
    with a_scheduler(Partners(), nodes=[a_node("a")]) as scheduler:
        scheduler.create(LEFT, alone, elsewhere)

        assert scheduler.outcome(alone).node == "a"
        assert scheduler.outcome(LEFT).held_by == scheduler.outcome(elsewhere).held_by == ("Partners",)
