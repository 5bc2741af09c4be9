"""Whatever is in a kubeconfig costs one clear line for each problem, and no secret is shown."""

import os
from pathlib import Path

import pytest

from scheduler.__main__ import main
from scheduler.kube.identity import kubeconfig
from scheduler.kube.identity.kubeconfig import read_context
from tests.unit.kube.bad_kubeconfigs import BAD_KUBECONFIGS, SECRET, Bad
from tests.unit.kube.fake_api import kubeconfig_text


@pytest.mark.parametrize("case", [pytest.param(case, id=case.what) for case in BAD_KUBECONFIGS])
def test_a_kubeconfig_of_no_use_is_told_in_a_line_for_each_problem(
    case: Bad, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "kubeconfig"
    path.write_bytes(case.content)

    code = main(["snapshot", "--out=out", f"--kubeconfig={path}"])

    out, err = capsys.readouterr()
    lines = [line.replace(str(path), "f") for line in err.splitlines()]
    assert (code, out, lines) == (2, "", list(case.problems))
    assert SECRET not in err
    assert all(line.isprintable() and len(line) < 1000 for line in lines)
    assert [each.name for each in tmp_path.iterdir()] == ["kubeconfig"]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("missing", "missing: no such kubeconfig file"),
        ("missing:also-missing", "missing:also-missing: no such kubeconfig file"),
        ("~nobody-is-called-so/config", "~nobody-is-called-so/config: no such kubeconfig file"),
        ("/", "/: cannot be read: Is a directory"),
        ("/dev/null", "/dev/null: not a kubeconfig: expected a mapping, got nothing"),
        ("/dev/zero", "/dev/zero: not a kubeconfig: larger than 4194304 bytes"),
        ("a\0b", "a\\x00b: cannot be read: embedded null byte"),
        ("x" * 300, "x" * 300 + ": cannot be read: File name too long"),
        ("\udcff", "\\udcff: no such kubeconfig file"),
    ],
)
def test_a_path_of_no_use_is_said(
    path: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["snapshot", "--kubeconfig", path]) == 2
    assert capsys.readouterr().err == problem + "\n"


def test_a_kubeconfig_may_come_through_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    os.write(writing, kubeconfig_text("http://127.0.0.1:9").encode())
    os.close(writing)

    assert main(["snapshot", "--out=-", "--kubeconfig", f"/dev/fd/{reading}"]) == 2
    os.close(reading)
    assert "Cannot connect to host 127.0.0.1:9" in capfd.readouterr().err


def test_a_pipe_in_which_no_kubeconfig_comes_is_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfig, "PIPE_SECONDS", 0.01)
    os.mkfifo(tmp_path / "pipe")

    assert main(["snapshot", "--kubeconfig", f"{tmp_path}/pipe"]) == 2
    said = f"{tmp_path}/pipe: cannot be read: nothing has come through this pipe for 0.01 s\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("context", "shown"), [("other", "'other'"), ("a\nb", "'a\\nb'"), ("\udcff", "'\\udcff'"), ("", None)]
)
def test_a_context_that_is_not_there_is_named(
    context: str, shown: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig_text("http://127.0.0.1:9"))

    assert main(["snapshot", f"--out={tmp_path / 'out'}", f"--kubeconfig={path}", "--context", context]) == 2
    said = capsys.readouterr().err
    if shown is None:  # the current one
        assert "Cannot connect to host 127.0.0.1:9" in said
    else:
        assert said == f"{path}: there is no context {shown}; there is 'main'\n"


def test_of_several_files_the_first_that_has_an_entry_counts(tmp_path: Path) -> None:
    first, second, odd = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    first.write_text("current-context: main\ncontexts: [{name: main, context: {cluster: main, namespace: one}}]")
    second.write_text(kubeconfig_text("http://127.0.0.1:9"))
    odd.write_text("clusters: [{name: main, cluster: {server: 7}}]")
    paths = os.pathsep.join(map(str, (first, second, tmp_path / "missing", odd)))

    context = read_context(paths)
    assert (context.namespace, context.cluster.content["server"]) == ("one", "http://127.0.0.1:9")


def test_what_is_not_in_use_may_be_a_name_alone(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        kubeconfig_text("http://127.0.0.1:9")
        .replace("users:\n", "users:\n- {name: other}\n")
        .replace("clusters:\n", "clusters:\n- {name: other, cluster: null}\n")
    )

    assert read_context(str(path)).user is not None
