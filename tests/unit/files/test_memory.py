"""How much memory there is: the least of what the machine has and what others leave of it."""

import resource
from contextlib import nullcontext
from pathlib import Path

import pytest

from scheduler.files import memory
from scheduler.files.memory import RESERVE, check_memory, memory_of_process

MIB = 1 << 20


@pytest.fixture
def no_limits(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    monkeypatch.setattr(memory, "_CGROUPS", ())
    return monkeypatch


def test_without_any_limit_it_is_what_the_machine_has_and_ulimit_counts(no_limits: pytest.MonkeyPatch) -> None:
    assert memory_of_process() > 100 * MIB

    no_limits.setattr(resource, "getrlimit", lambda _: (40 * MIB, resource.RLIM_INFINITY))
    assert memory_of_process() == 40 * MIB


@pytest.mark.parametrize(
    ("text", "counts"), [(f"{30 * MIB}\n", True), ("max\n", False), ("", False), (f"{1 << 63}\n", False)]
)
def test_that_of_a_container_counts(text: str, counts: bool, no_limits: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(text)
    no_limits.setattr(memory, "_CGROUPS", (str(tmp_path / "memory.max"), str(tmp_path / "missing")))

    assert (memory_of_process() == 30 * MIB) is counts


def test_there_is_enough_until_little_is_left(no_limits: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "statm").write_text(f"{1000 * MIB // resource.getpagesize()} 1 2 3 4 5 6\n")
    no_limits.setattr(memory, "_STATM", str(tmp_path / "statm"))
    for left, is_enough in ((RESERVE, True), (RESERVE - 1, False)):
        no_limits.setattr(resource, "getrlimit", lambda _, left=left: (1000 * MIB + left, -1))

        with nullcontext() if is_enough else pytest.raises(MemoryError):
            check_memory()


def test_what_the_container_leaves_is_compared_with_what_is_resident(
    no_limits: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "memory.max").write_text(f"{200 * MIB}\n")
    no_limits.setattr(memory, "_CGROUPS", (str(tmp_path / "memory.max"),))
    no_limits.setattr(memory, "_STATM", str(tmp_path / "statm"))
    for resident, is_enough in ((100, True), (150, False)):
        (tmp_path / "statm").write_text(f"9999999 {resident * MIB // resource.getpagesize()} 2 3 4 5 6\n")

        with nullcontext() if is_enough else pytest.raises(MemoryError):
            check_memory()


def test_without_linux_nothing_is_checked(no_limits: pytest.MonkeyPatch) -> None:
    no_limits.setattr(memory, "_STATM", "/nowhere")

    check_memory()
