"""PID 1 of the namespaces: runs one command, and reaps the processes that are left to it.

A shim of containerd is a daemon, so it becomes a child of PID 1; unless somebody waits for it, it stays a zombie.
The end of this process is the end of every other one in the namespace.
"""

import os
import signal
import subprocess
import sys


def main(command: list[str]) -> int:
    """Run `command` and return its exit code; 128 and the signal's number if a signal ended it."""
    child = subprocess.Popen(command)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: child.send_signal(number))
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
