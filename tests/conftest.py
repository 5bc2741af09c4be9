"""What all tests need, wherever they run."""

import signal


def pytest_configure() -> None:
    """Let what tests start end at Ctrl-C: a shell starts what runs in the background with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
