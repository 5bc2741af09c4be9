"""What all tests need, wherever they run."""

import gc
import signal


def pytest_configure() -> None:
    """Let what tests start end at Ctrl-C: a shell starts what runs in the background with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection() -> None:
    """Collect tests without the garbage collector: thousands of them are made, and all of them stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Let the garbage collector look only at what the tests make from here on."""
    gc.freeze()
    gc.enable()
