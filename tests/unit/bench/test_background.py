import threading

from tests.bench.background import Threads
from tests.bench.wire import WireError


def test_a_step_is_repeated_until_it_says_that_it_was_the_last() -> None:
    threads, beats, done = Threads(), [], threading.Event()

    def step() -> bool:
        beats.append(1)
        if len(beats) == 3:
            done.set()
        return len(beats) < 3

    threads.every(0.001, step)

    assert done.wait(10)
    threads.stop()
    assert (len(beats), threads.error) == (3, None)


def test_stopping_ends_what_would_go_on_for_ever() -> None:
    threads, begun = Threads(), threading.Event()

    def step() -> bool:
        begun.set()
        return True

    threads.every(0.001, step)
    assert begun.wait(10)

    threads.stop()


def test_an_api_server_that_is_gone_is_the_reason_of_an_end() -> None:
    threads, tried = Threads(), threading.Event()

    def step() -> bool:
        tried.set()
        raise WireError("gone")

    threads.every(0.001, step)
    assert tried.wait(10)
    threads.stop()

    assert str(threads.error) == "gone"
