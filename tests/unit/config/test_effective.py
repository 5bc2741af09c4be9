"""What is in effect, written out: a file that means the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from plugins import IN_TREE
from scheduler.config.effective import as_document, as_shown, as_yaml, write_effective
from scheduler.config.load import config_from_dict, load_config
from scheduler.framework.errors import ConfigError
from tests.conformance.configurations import RECORDED
from tests.conformance.recorded import read_cases
from tests.unit.config.fakes import a_config, config_from_text

ACCEPTED = [each["case"] for each in read_cases(RECORDED.parent) if each["expected"].get("config")]


@pytest.mark.parametrize("case", ACCEPTED, ids=[case["name"] for case in ACCEPTED])
def test_what_is_written_means_the_same(case: dict[str, Any]) -> None:
    config = config_from_text(case["text"], IN_TREE)

    document = as_document(config, IN_TREE)
    again = config_from_text(as_yaml(document), IN_TREE)

    assert as_document(again, IN_TREE) == document
    assert json.loads(json.dumps(document)) == document


def test_defaults_are_written_out() -> None:
    document = as_document(load_config(None, IN_TREE), IN_TREE)

    (profile,) = document["profiles"]
    arguments = {entry["name"]: entry["args"] for entry in profile["pluginConfig"]}
    assert document["leaderElection"]["leaseDuration"] == "15s"
    assert document["clientConnection"]["qps"] == 50
    assert profile["plugins"]["multiPoint"]["enabled"][4] == {"name": "TaintToleration", "weight": 3}
    assert arguments["InterPodAffinity"]["hardPodAffinityWeight"] == 1


def test_arguments_for_what_is_no_plugin_are_kept() -> None:
    args = {"name": "Foo", "args": {"x": 1}}
    config = config_from_dict(a_config(profiles=[{"pluginConfig": [args]}]), IN_TREE)

    assert args in as_document(config, IN_TREE)["profiles"][0]["pluginConfig"]


def test_a_file_is_written(tmp_path: Path) -> None:
    config = load_config(None, IN_TREE)

    write_effective(config, IN_TREE, str(tmp_path / "config.yaml"))

    assert load_config(str(tmp_path / "config.yaml"), IN_TREE).profiles[0].scheduler_name == "loadmaster"


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory"):
        write_effective(load_config(None, IN_TREE), IN_TREE, str(tmp_path / "missing" / "config.yaml"))


KEY = "c2VjcmV0"
EXTENDER = {
    "urlPrefix": "https://me:secret@gpu.example/x",
    "filterVerb": "f",
    "tlsConfig": {"keyData": KEY, "caData": KEY},
}


def test_what_is_shown_has_no_keys_and_no_passwords() -> None:
    config = config_from_dict(a_config(extenders=[EXTENDER, {"urlPrefix": "http://plain:80/a@b"}, {}]), IN_TREE)

    secret, plain, nowhere = as_shown(config, IN_TREE)["extenders"]

    assert secret["tlsConfig"]["keyData"] == "DATA+OMITTED"
    assert secret["tlsConfig"]["caData"] == KEY, "an authority is no secret"
    assert secret["urlPrefix"] == "https://me:***@gpu.example/x"
    assert plain["urlPrefix"] == "http://plain:80/a@b"
    assert nowhere["urlPrefix"] == ""


def test_what_was_shown_is_not_taken_for_a_key() -> None:
    config = config_from_dict(a_config(extenders=[EXTENDER]), IN_TREE)

    with pytest.raises(ConfigError) as error:
        config_from_text(as_yaml(as_shown(config, IN_TREE)), IN_TREE)

    (problem,) = error.value.problems
    assert problem.endswith(
        "extenders[0].tlsConfig.keyData: DATA+OMITTED stands for what is not shown; the data itself is needed"
    )


@pytest.mark.parametrize(
    ("extenders", "readable"),
    [pytest.param([EXTENDER], False, id="with a key"), pytest.param([], True, id="without")],
)
def test_a_file_is_written_with_its_keys_and_only_for_us_then(
    tmp_path: Path, extenders: list[Any], readable: bool
) -> None:
    config = config_from_dict(a_config(extenders=extenders), IN_TREE)
    path = tmp_path / "config.yaml"

    write_effective(config, IN_TREE, str(path))

    assert load_config(str(path), IN_TREE).extenders == config.extenders
    assert bool(path.stat().st_mode & 0o040) == readable
