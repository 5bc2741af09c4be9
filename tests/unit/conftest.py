"""Runs tests that are coroutines."""

import gc
import inspect
from collections.abc import Iterator

import pytest

from tests.fakes import run


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
