"""The end of another process, in words."""

import signal


def ending(code: int) -> str:
    """The text that follows `it ended`: `with exit code 3`, or `by the signal SIGKILL` for the code -9 of a child."""
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by the signal {signal.Signals(-code).name}"
    except ValueError:  # of real time, of which the first and the last have names
        return f"by the signal {-code}"
