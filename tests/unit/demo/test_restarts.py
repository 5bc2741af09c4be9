"""The scheduler of the demo ends: what then?"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane import ProcessError
from tests.demo.restarts import RETRY_SECONDS, STAYS, Restarts, must_run


@dataclass
class AProcess:
    pid: int = 7
    exit_code: int | None = None
    starts: bool = True

    @property
    def running(self) -> bool:
        return self.exit_code is None

    def start(self) -> None:
        if not self.starts:
            raise ProcessError("it ended")
        self.pid, self.exit_code = self.pid + 1, None

    def log_tail(self, lines: int = 25) -> str:
        return "profiles: a name twice"


def test_a_scheduler_that_ends_ends_the_demo() -> None:
    assert must_run(AProcess()) == ""
    with pytest.raises(ProcessError, match="ended with code 1:\nprofiles: a name twice"):
        must_run(AProcess(exit_code=1))


def test_with_keep_it_is_started_again_and_its_new_id_is_written(tmp_path: Path) -> None:
    process, restarts = AProcess(), Restarts(tmp_path / "pid")
    assert restarts.check(process) == ""
    process.exit_code = 0

    said = restarts.check(process)

    assert said == f"The scheduler ended with code 0, and runs again. {STAYS}"
    assert (restarts.check(process), (tmp_path / "pid").read_text()) == ("", "8\n")


def test_one_that_does_not_start_is_tried_again_after_a_pause(tmp_path: Path) -> None:
    times = iter([10.0, 10.0, 11.0, 10.0 + RETRY_SECONDS])
    process = AProcess(exit_code=1, starts=False)
    restarts = Restarts(tmp_path / "pid", lambda: next(times))

    assert "does not start" in restarts.check(process)
    process.starts = True
    assert restarts.check(process) == ""
    assert "runs again" in restarts.check(process)
