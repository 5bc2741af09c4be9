"""Standard output has results and nothing else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.process.results import only_results_on_stdout, results

ROOT = Path(__file__).parents[3]
MAY_KNOW_STDOUT = {
    f"scheduler/{name}.py" for name in ("__main__", "process/ending", "process/results", "plugin_loading/accidents")
}


def test_what_is_printed_meanwhile_goes_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    with only_results_on_stdout():
        print("a plugin's")
        print("the answer", file=results())
    print("afterwards", file=results())

    assert capsys.readouterr() == ("the answer\nafterwards\n", "a plugin's\n")


def test_no_command_writes_its_results_to_where_plugins_print() -> None:
    files = [path for folder in ("scheduler", "plugins") for path in (ROOT / folder).rglob("*.py")]
    names = {path.relative_to(ROOT).as_posix(): path for path in files}

    assert [place for name in sorted(names.keys() - MAY_KNOW_STDOUT) for place in _uses(name, names[name])] == []


def _uses(name: str, path: Path) -> Iterator[str]:
    """Where `print` is called without a file, or `sys.stdout` is named."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Name(id="print"), keywords=keywords) if not any(k.arg == "file" for k in keywords):
                yield f"{name}:{node.lineno}: print without file=results()"
            case ast.Attribute(value=ast.Name(id="sys"), attr="stdout"):
                yield f"{name}:{node.lineno}: sys.stdout in place of results()"
            case _:
                pass
