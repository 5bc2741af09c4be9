import json

from licences import Licences

from scheduler import framework as fw
from scheduler.testing import HttpAnswers, a_node, a_pod, a_scheduler

ONE, TWO, THREE = (a_pod(name, labels={"example.com/licence": "cad"}) for name in ("one", "two", "three"))


class Server:
    """A licence server: `a_scheduler` asks it instead of the network."""

    def __init__(self, licences: int) -> None:
        self.licences = licences
        self.taken: set[str] = set()

    def __call__(self, url: str, body: bytes | None) -> bytes:
        if body is None:
            return json.dumps({"free": self.licences - len(self.taken)}).encode()
        pod = json.loads(body)["pod"]
        if url.endswith("/give"):
            self.taken.discard(pod)
        elif len(self.taken | {pod}) > self.licences:
            raise fw.ApiError(409, "none is free")
        else:
            self.taken.add(pod)
        return b"{}"


def test_a_pod_takes_a_licence_and_the_next_one_waits_until_it_is_given_back() -> None:
    server = Server(1)
    with a_scheduler(Licences("http://licences"), nodes=[a_node("a")], reader=HttpAnswers(server)) as scheduler:
        scheduler.create(ONE, TWO)
        assert scheduler.outcome(ONE).node == "a"
        assert server.taken == {ONE.uid}
        assert "no licence is free" in scheduler.outcome(TWO).message

        server.taken.clear()
        scheduler.advance(6)

        assert scheduler.outcome(TWO).node == "a"


def test_what_the_last_answer_does_not_count_yet_counts_here() -> None:
    with a_scheduler(Licences("http://licences"), nodes=[a_node("a")], reader=HttpAnswers(Server(2))) as scheduler:
        scheduler.create(ONE, TWO)
        scheduler.create(THREE)  # the server was last asked before all of them came

        assert "no licence is free" in scheduler.outcome(THREE).message


def test_a_licence_that_was_taken_meanwhile_is_not_taken_twice() -> None:
    server = Server(1)
    with a_scheduler(Licences("http://licences"), nodes=[a_node("a")], reader=HttpAnswers(server)) as scheduler:
        server.taken.add("another")
        scheduler.create(ONE)

        assert scheduler.outcome(ONE).message == "no licence is free"


class Veto(fw.PreBindPlugin):
    """Refuses after Licences has taken one."""

    name = "Veto"

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        return fw.unschedulable("veto")


def test_a_pod_that_is_not_bound_in_the_end_gives_its_licence_back() -> None:
    server, plugins = Server(1), (Licences("http://licences"), Veto())
    with a_scheduler(*plugins, nodes=[a_node("a")], reader=HttpAnswers(server)) as scheduler:
        scheduler.create(ONE)

        assert scheduler.outcome(ONE).message == "veto"
        assert server.taken == set()
