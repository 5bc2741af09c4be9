"""Fuzzes one target, in a process that may crash: `python -m tests.fuzz.one TARGET ENGINE`."""

import argparse
import logging
import random
import sys
import time
import traceback
import warnings
from typing import Final

FOUND: Final = "something came out"
SIZES: Final = (0, 1, 2, 4, 8, 16, 40, 100, 400)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("engine", choices=("atheris", "random"))
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    return with_atheris(options) if options.engine == "atheris" else at_random(options)


def at_random(options: argparse.Namespace) -> int:
    """Feed random bytes until the runs or the seconds are used up."""
    from tests.fuzz.targets import TARGETS

    run, dice = TARGETS[options.target], random.Random(options.seed)
    until, inputs = time.monotonic() + options.seconds, 0
    while inputs < options.runs if options.runs else time.monotonic() < until:
        data = dice.randbytes(dice.choice(SIZES))
        inputs += 1
        try:
            run(data)
        except Exception:  # noqa: BLE001  what is looked for
            print(f"INPUTS {inputs}\n{FOUND}: input {data.hex()}\n{traceback.format_exc()}")
            return 1
    print(f"INPUTS {inputs}")
    return 0


def with_atheris(options: argparse.Namespace) -> int:
    """Let atheris look for inputs that reach new code. It ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=["scheduler", "plugins"]):
        from tests.fuzz.targets import SEEDS, TARGETS

    run = TARGETS[options.target]

    def once(data: bytes) -> None:
        try:
            run(data)
        except Exception as error:
            print(f"{FOUND}: input {data.hex()}", flush=True)
            raise error

    for seed in SEEDS:
        once(seed)
    limit = f"-runs={options.runs}" if options.runs else f"-max_total_time={int(options.seconds)}"
    atheris.Setup([sys.argv[0], limit, f"-seed={options.seed}", "-max_len=4096", "-rss_limit_mb=2048"], once)
    atheris.Fuzz()
    return 0


def done(output: str) -> bool:
    """Whether the engine came to its end."""
    return "INPUTS " in output or "Done " in output


if __name__ == "__main__":
    sys.exit(main())
