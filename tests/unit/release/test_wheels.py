from pathlib import Path

from tests.release import wheels


def test_each_python_of_the_classifiers_is_asked_for() -> None:
    assert wheels.pythons() == ["3.11", "3.12", "3.13", "3.14"]


def test_the_lines_for_one_python_have_their_hashes_and_no_markers(tmp_path: Path) -> None:
    old, new = "a" * 64, "b" * 64
    lock = tmp_path / "lock"
    lock.write_text(
        f"numpy==2.4.6 ; python_full_version < '3.12' \\\n    --hash=sha256:{old}\n    # via loadmaster\n"
        f"numpy==2.5.5 ; python_full_version >= '3.12' \\\n    --hash=sha256:{new} \\\n    --hash=sha256:{old}\n"
        f"colorama==1 ; sys_platform == 'win32' \\\n    --hash=sha256:{old}\n"
    )

    assert wheels.lines(lock, "3.11") == f"numpy==2.4.6 --hash=sha256:{old}"
    assert wheels.lines(lock, "3.14") == f"numpy==2.5.5 --hash=sha256:{new} --hash=sha256:{old}"
