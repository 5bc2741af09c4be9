"""Runs tests that are coroutines, and checks the engines of each test at its end."""

import gc
import inspect
from collections.abc import Generator, Iterator

import pytest

from tests.fakes import run
from tests.fakes.engine import CHECKS


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Forget what another test has made before the fixtures of this one make theirs."""
    CHECKS.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Check at the end of a test that all which its engines believe is consistent."""
    yield
    for check in CHECKS:
        check()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Run an `async def test_…` in a loop of its own; one that hangs fails."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}))
    return True


@pytest.fixture
def frozen_again() -> Iterator[None]:
    """After a test of what freezes and unfreezes: the garbage collector goes on without the tests that were collected.

    Else each collection after it would go through all of them.
    """
    yield
    gc.freeze()
