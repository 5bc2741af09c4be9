"""CEL expressions over devices with other names hold for the devices for which they held."""

import json
from typing import Any

import pytest

from plugins.dynamic_resources.allocation.selectors import Expression, SelectorError, view_of
from scheduler.api.decoding import convert
from scheduler.api.devices import ResourceSlice
from scheduler.snapshots.aliases import Aliases
from scheduler.snapshots.kept_fields import KINDS
from scheduler.snapshots.reduction import Reduction

BY_NAME = {kind.name: kind for kind in KINDS}
DRIVER = "gpu.corp.example"


def a_device(name: str, **attributes: Any) -> dict[str, Any]:
    kinds = {str: "string", bool: "bool", int: "int"}
    made = {
        key.replace("__", "/"): {"version" if key == "version" else kinds[type(value)]: value}
        for key, value in attributes.items()
    }
    return {"name": name, "attributes": made, "capacity": {"memory": {"value": "40Gi"}}}


SLICE: dict[str, Any] = {
    "metadata": {"name": "slice"},
    "spec": {
        "driver": DRIVER,
        "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            a_device("a", model="NVIDIA A100-SXM4", cores=64, fast=True, version="1.20.3-corp.1"),
            a_device("b", model="NVIDIA H100", cores=16, fast=False, version="2.0.0-rc.1"),
            a_device("c", model='it\'s "odd" \\ ünï', cores=0, version="2.0.0", size="10Gi", driver="x"),
            {"name": "d"},
        ],
    },
}
EXPRESSIONS = (
    f'device.driver == "{DRIVER}"',
    f"device.driver != r'{DRIVER}'",
    f'device.attributes["{DRIVER}"].model == "NVIDIA H100"',
    f'device.attributes["{DRIVER}"].model in ["NVIDIA H100", "T4"]',
    f'device.attributes["{DRIVER}"]["model"] == """NVIDIA H100"""',
    f'device.attributes["{DRIVER}"].model.startsWith("NVIDIA A1")',
    f'device.attributes["{DRIVER}"].model . endsWith ( "100" )',
    f'device.attributes["{DRIVER}"].model.contains("00-S")',
    f'device.attributes["{DRIVER}"].model.matches("^NVIDIA [AH]\\\\d+")',
    f"device.attributes['{DRIVER}'].model.matches(r'\\d{{3}}$')",
    f'device.attributes["{DRIVER}"].model.matches("(")',
    f'device.attributes["{DRIVER}"].model == "it\'s \\"odd\\" \\\\ \\u00fcn\\xef"',
    f'device.attributes["{DRIVER}"].cores > 40 // of corp',
    f'device.attributes["{DRIVER}"].size == "10Gi"',
    f'device.attributes["{DRIVER}"].driver == "x"',
    f'device.attributes["{DRIVER}"].version.isLessThan(semver("2.0.0"))',
    f'device.attributes["{DRIVER}"].version == semver("1.20.3-corp.1")',
    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("30Gi")) >= 0',
    f'has(device.attributes["{DRIVER}"].fast) && device.attributes["{DRIVER}"].fast',
    f'cel.bind(d, device.attributes["{DRIVER}"], has(d.model) && d.model.startsWith("N"))',
    f'device.attributes["{DRIVER}"].exists(k, k == "model")',
    'device.attributes.all(d, d.startsWith("gpu."))',
    f'"model" in device.attributes["{DRIVER}"] ? device.attributes["{DRIVER}"].cores == 64 : false',
    '!("absent.corp.example" in device.attributes)',
    "device.attributes.corp.x == 1",
    "device.driver ==",
    "unknown(device)",
    "device.driver == 'unfinished",
    "device.driver == 1 § 2",
)


def results(reduction: Reduction, expression: str) -> list[str]:
    """What an expression says of each device, with the names that the reduction gives to all of them."""
    content = json.loads(reduction.reduced(json.dumps(SLICE).encode(), BY_NAME["ResourceSlice"]))
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    named = {"metadata": {"name": "class"}, "spec": spec}
    class_ = json.loads(reduction.reduced(json.dumps(named).encode(), BY_NAME["DeviceClass"]))
    selector = Expression(class_["spec"]["selectors"][0]["cel"]["expression"])
    slice_ = convert(content, ResourceSlice)
    return [verdict(selector, slice_.spec.driver, device) for device in slice_.spec.devices or ()]


def verdict(selector: Expression, driver: str, device: Any) -> str:
    try:
        return str(selector.matches(view_of(driver, device)))
    except SelectorError as error:
        return str(error).partition(":")[0]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_holds_for_the_same_devices(expression: str) -> None:
    assert results(Reduction(Aliases()), expression) == results(Reduction(), expression)


def test_the_expressions_tell_devices_apart() -> None:
    told = {tuple(results(Reduction(), expression)) for expression in EXPRESSIONS}

    assert len(told) > 8


def test_what_expressions_say_is_not_told() -> None:
    written = "".join(EXPRESSIONS)
    aliases = Aliases()

    alias = aliases.of_class("expression", written.replace("device.driver == 'unfinished", "").replace("§", ""))

    assert not any(word in alias for word in ("corp", "example", "model", "NVIDIA", "cores", "fast", "unknown"))
