"""docs/configuration.md shows configurations that load, and names every field with its default."""

import re
from pathlib import Path
from typing import Any

import pytest

from plugins import IN_TREE
from scheduler.config.defaults import DEFAULT_PLUGINS
from scheduler.config.documents import parse_documents
from scheduler.config.load import config_from_dict, load_config
from scheduler.config.types import Config
from scheduler.framework.arguments import arguments_of
from scheduler.runtime.profile_spec import PLUGIN_SETS

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text()
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([\w.]+)` \| (`[^`]*`|none) \|", re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_loads(example: str) -> None:
    (document,) = parse_documents(example, "configuration.md")

    assert config_from_dict(document.value, IN_TREE).profiles


def test_the_first_example_is_the_default_configuration() -> None:
    (document,) = parse_documents(EXAMPLES[0], "configuration.md")

    assert config_from_dict(document.value, IN_TREE) == load_config(None, IN_TREE)


def test_every_field_is_there_with_its_default() -> None:
    documented = {path: default.strip("`") for path, default in ROW.findall(PAGE)}

    settings = arguments_of(Config(profiles=()))
    assert documented == flat({k: v for k, v in settings.items() if k not in ("profiles", "gates")})


def test_every_extension_point_and_default_plugin_is_there() -> None:
    points = [re.sub(r"_(\w)", lambda match: match[1].upper(), name) for name in PLUGIN_SETS]
    plugins = ", ".join(
        f"{ref.name} ({ref.weight})" if ref.weight else ref.name for ref in DEFAULT_PLUGINS.multi_point.enabled
    )

    assert [point for point in points if f"`{point}`" not in PAGE] == []
    assert plugins in " ".join(PAGE.split())


def flat(values: dict[str, Any], path: str = "") -> dict[str, str]:
    """Path → value as the page writes it."""
    found: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= flat(value, f"{path}{key}.")
        elif isinstance(value, list):
            found[path + key] = ", ".join(map(str, value)) or "none"
        elif isinstance(value, float):
            found[path + key] = f"{value:g}"
        else:
            found[path + key] = str(value).lower() if isinstance(value, bool) else str(value) or "none"
    return found
