"""No task is started but by the files whose business that is: any other could fail, hang or end unseen."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

MAY_START = {
    "scheduler/process/tasks.py",  # parts and jobs
    "scheduler/framework/awaited.py",  # tasks that their starter awaits
    "scheduler/process/virtual_time.py",  # the event loop's own, which only counts threads
}

STARTS = {
    "create_task",
    "ensure_future",
    "gather",
    "run_coroutine_threadsafe",
    "run_in_executor",
    "to_thread",
    "TaskGroup",
}
"""What starts a task, or a thread that no task waits for once it is cancelled."""


def starts_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Attribute | ast.Name):
            continue
        name = node.attr if isinstance(node, ast.Attribute) else node.id
        if name in STARTS:
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {name}"


def test_tasks_are_started_in_one_way_only() -> None:
    sources = [path for room in ("scheduler", "plugins") for path in (ROOT / room).rglob("*.py")]
    found = [start for path in sources for start in starts_in(path)]

    elsewhere = [start for start in found if start.partition(":")[0] not in MAY_START]

    assert elsewhere == []
    assert {start.partition(":")[0] for start in found} == MAY_START  # so the search works
