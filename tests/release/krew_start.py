"""What the self-contained kubectl-loadmaster runs: the command, or code for a child process of it.

There is no `python` in it to start a child with. So `sys.executable` is this program, which takes `-c` as Python does:
plugins are tried out that way.
"""

import sys


def main() -> None:
    """Run the command `loadmaster`."""
    options = sys.argv[1:4]
    if "-c" in options:
        at = 1 + options.index("-c")
        code = sys.argv[at + 1]
        sys.argv = ["-c", *sys.argv[at + 2 :]]
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        return
    from scheduler.commands.loadmaster_start import main as run

    run()


if __name__ == "__main__":
    main()
