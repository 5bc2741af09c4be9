"""What a plugin would change of the whole process when it is imported is refused; what libraries do is not."""

from pathlib import Path
from typing import Final

import pytest

from plugins import IN_TREE
from scheduler.plugin_loading.sources import PluginSources, read_sources
from scheduler.plugin_loading.trial import try_out

pytestmark = pytest.mark.programs

PLUGIN: Final = """
from scheduler import framework as fw

class Plugin{number}(fw.FilterPlugin):
    name = "Plugin{number}"

    def filter(self, state, pod, node):
        return None
"""

PATH: Final = (
    "it changes sys.path other than at its end, which may hide libraries: the files of a directory import each other "
    "by `from .name import …`"
)
THREAD: Final = "it leaves the thread 'mine' running: what goes on in the background begins in `start`"


def changes(what: str) -> str:
    return f"it changes {what}"


DIRECTORY: Final = changes("the working directory (os.chdir)")
LOG: Final = changes("what is logged (logging.disable, a level of the root logger, disable_existing_loggers)")
SIGNALS: Final = changes("what signals do (signal.signal, signal.alarm, signal.pthread_sigmask)")

ACCIDENTS: Final = {
    "import os; os.chdir('/')": DIRECTORY,
    "import os, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)": DIRECTORY,
    "import os; os.umask(0o123)": changes("the mask of new files (os.umask)"),
    "import os; os.environ['PATH'] = '/nowhere'": changes("the environment variable PATH"),
    "import os; os.environ.pop('KEPT_BY_US')": changes("the environment variable KEPT_BY_US"),
    "import os; os.environ = dict(os.environ)": changes("os.environ to another object"),
    "import logging; logging.disable(logging.CRITICAL)": LOG,
    "import logging; logging.getLogger().setLevel(logging.DEBUG)": LOG,
    "import logging.config; logging.config.dictConfig({'version': 1})": LOG,
    "import logging; logging.basicConfig(force=True)": (
        "it takes away handlers of the root logger (force=True of logging.basicConfig?)"
    ),
    "import socket; socket.setdefaulttimeout(5)": changes("the timeout of all sockets (socket.setdefaulttimeout)"),
    "import gc; gc.disable()": changes("the garbage collector (gc.disable, gc.set_threshold)"),
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)": SIGNALS,
    "import signal; signal.setitimer(signal.ITIMER_REAL, 3600)": SIGNALS,
    "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])": SIGNALS,
    "import locale; locale.setlocale(locale.LC_TIME, 'C.UTF-8')": changes("the locale (locale.setlocale)"),
    "import sys; sys.setprofile(lambda *_: None)": changes("how calls are traced (sys.settrace, sys.setprofile)"),
    "import sys; sys.path.insert(0, '/nowhere')": PATH,
    "import sys; sys.path.clear()": PATH,
    "import sys; sys.stdout.close()": changes("sys.stdout or sys.stderr, which it closes"),
    "import numpy; numpy.seterr(all='raise')": changes(
        "what numpy does about faulty numbers (numpy.seterr; numpy.errstate does it for a while)"
    ),
    "import threading; threading.Thread(target=threading.Event().wait, name='mine').start()": THREAD,
    "import threading\ndef forever(): threading.Event().wait()\n"
    "threading.Thread(target=forever, name='mine', daemon=True).start()": THREAD,
}

HABITS: Final = (
    "import os; os.environ['OMP_NUM_THREADS'] = '1'",
    "import os; os.environ.setdefault('KMP_DUPLICATE_LIB_OK', 'True')",
    "import warnings; warnings.filterwarnings('ignore'); warnings.simplefilter('default')",
    "import logging; logging.basicConfig(level=logging.DEBUG); logging.getLogger('mine').setLevel(logging.DEBUG)",
    "import logging; logging.root.addHandler(logging.NullHandler())",
    "import sys; sys.setrecursionlimit(10_000); sys.path.append('/nowhere')",
    "import random; random.seed(0); import numpy; numpy.random.seed(0)",
    "import numpy; numpy.float = float; numpy.set_printoptions(precision=3)",
    "import threading; t = threading.Thread(target=print); t.start(); t.join()",
    "from concurrent.futures import ThreadPoolExecutor as Pool\nwith Pool() as pool: list(pool.map(abs, range(9)))",
    "import atexit; atexit.register(print)",
    "import gc; gc.collect()",
    "import asyncio; asyncio.run(asyncio.sleep(0))",
    "import subprocess; subprocess.run(['true'])",
    "import aiohttp, cel_expr_python, hypothesis, kopf, kubernetes, msgspec, opentelemetry, orjson, prometheus_client",
    "import pytest, uvloop, yaml",
    "import ctypes, curses, decimal, multiprocessing, sqlite3, unittest, xml.dom, zoneinfo",
)


def sources_of(directory: Path, statements: list[str]) -> PluginSources:
    """A plugin for each of these, in files by number."""
    for number, statement in enumerate(statements):
        (directory / f"p{number:02}.py").write_text(statement + "\n" + PLUGIN.format(number=number))
    problems: list[str] = []
    sources = read_sources([str(directory)], [], [], problems)
    assert problems == []
    return sources


def test_an_accident_is_refused_with_a_word_on_what_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPT_BY_US", "yes")
    expected = [
        f"{tmp_path}/p{number:02}.py: while it is imported, {text}" for number, text in enumerate(ACCIDENTS.values())
    ]

    assert try_out(sources_of(tmp_path, list(ACCIDENTS)), IN_TREE) == expected


def test_what_libraries_and_authors_do_by_habit_is_none(tmp_path: Path) -> None:
    assert try_out(sources_of(tmp_path, list(HABITS)), IN_TREE) == []


@pytest.mark.parametrize("statement", ["import os; os.environ = None", "import threading; threading.enumerate = None"])
def test_what_is_needed_to_look_for_accidents_may_be_replaced_by_one(statement: str, tmp_path: Path) -> None:
    problems = try_out(sources_of(tmp_path, [statement]), IN_TREE)

    assert problems[0].startswith(f"{tmp_path}/p00.py: ")
