"""When traces are on, and what of the environment is refused."""

import sys

import pytest

from scheduler.framework.errors import ConfigError
from scheduler.tracing.settings import Exporter, exporter

COLLECTOR = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


@pytest.mark.parametrize(
    "environ",
    [
        pytest.param({}, id="nothing is said"),
        pytest.param({"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "always_on"}, id="nothing of where they go"),
        pytest.param({**COLLECTOR, "OTEL_TRACES_EXPORTER": "none"}, id="no exporter"),
        pytest.param({**COLLECTOR, "OTEL_SDK_DISABLED": "TRUE"}, id="all of it is disabled"),
        pytest.param({"OTEL_TRACES_EXPORTER": " ", "OTEL_EXPORTER_OTLP_ENDPOINT": ""}, id="empty values"),
        pytest.param({"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "zipkin"}, id="disabled, whatever is wrong"),
    ],
)
def test_traces_are_off(environ: dict[str, str]) -> None:
    assert exporter(environ) is None


@pytest.mark.parametrize(
    ("environ", "where"),
    [
        pytest.param(COLLECTOR, Exporter.OTLP, id="an endpoint"),
        pytest.param({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://c/v1/traces"}, Exporter.OTLP, id="one for traces"),
        pytest.param({"OTEL_TRACES_EXPORTER": "otlp"}, Exporter.OTLP, id="the exporter alone"),
        pytest.param({"OTEL_TRACES_EXPORTER": "console"}, Exporter.CONSOLE, id="for a first look"),
        pytest.param({**COLLECTOR, "OTEL_SDK_DISABLED": "no"}, Exporter.OTLP, id="only true disables"),
        pytest.param({**COLLECTOR, "OTEL_TRACES_SAMPLER": "traceidratio"}, Exporter.OTLP, id="a ratio of 1 by default"),
        pytest.param(
            {**COLLECTOR, "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"},
            Exporter.OTLP,
            id="a hundredth",
        ),
    ],
)
def test_traces_are_on(environ: dict[str, str], where: Exporter) -> None:
    assert exporter(environ) is where


@pytest.mark.parametrize(
    ("environ", "problem"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER: 'zipkin' is none of otlp, console, none"),
        ({"OTEL_TRACES_EXPORTER": "otlp,console"}, "OTEL_TRACES_EXPORTER: 'otlp,console' is none of"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' is no URL"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://[x"}, "OTEL_EXPORTER_OTLP_ENDPOINT: 'http://[x' is no URL"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:port"}, "OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x:port' is no URL"),
        (COLLECTOR | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' is not spoken here"),
        (COLLECTOR | {"OTEL_TRACES_SAMPLER": "often"}, "OTEL_TRACES_SAMPLER: 'often' is none of always_on"),
        (
            COLLECTOR | {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "1%"},
            "OTEL_TRACES_SAMPLER_ARG: '1%' is no number from 0 to 1",
        ),
        (
            COLLECTOR | {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "nan"},
            "OTEL_TRACES_SAMPLER_ARG: 'nan' is no number from 0 to 1",
        ),
        (COLLECTOR | {"OTEL_BSP_MAX_QUEUE_SIZE": "0"}, "OTEL_BSP_MAX_QUEUE_SIZE: '0' is no whole number above 0"),
        (COLLECTOR | {"OTEL_BSP_SCHEDULE_DELAY": "9" * 5000}, "is no whole number above 0"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(environ: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        exporter(environ)

    (found,) = raised.value.problems
    assert problem in found


def test_all_that_is_wrong_is_told_at_once() -> None:
    environ = {"OTEL_TRACES_EXPORTER": "x", "OTEL_EXPORTER_OTLP_ENDPOINT": "y", "OTEL_TRACES_SAMPLER": "z"}

    with pytest.raises(ConfigError) as raised:
        exporter(environ)

    assert [each.partition(":")[0] for each in raised.value.problems] == list(environ)


def test_without_the_library_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    for name in tuple(sys.modules):
        if name.startswith("opentelemetry."):
            monkeypatch.delitem(sys.modules, name)

    with pytest.raises(ConfigError, match=r"not installed: pip install 'loadmaster\[traces\]'"):
        exporter(COLLECTOR)
