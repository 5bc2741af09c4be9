"""Tracing's settings, by OpenTelemetry's standard environment variables. Nothing of OpenTelemetry is loaded here.

They are off unless an exporter is named or an endpoint is given; values that the library would replace by its default,
with a warning, are refused, as few people read the first lines of a log.
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
"""

from collections.abc import Mapping
from enum import Enum
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from scheduler.framework.errors import ConfigError

LIBRARY: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL: Final = "http/protobuf"
RATIOS: Final = ("traceidratio", "parentbased_traceidratio")
SAMPLERS: Final = ("always_on", "always_off", "parentbased_always_on", "parentbased_always_off", *RATIOS)
NUMBERS: Final = ("OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "OTEL_BSP_SCHEDULE_DELAY")


class Exporter(Enum):
    """The destination of spans."""

    OTLP = "otlp"
    """To a collector, by HTTP."""

    CONSOLE = "console"
    """To standard output, for a first look."""


def exporter(environ: Mapping[str, str]) -> Exporter | None:
    """The destination of spans; None if there is none. Raises ConfigError with all that is wrong."""
    values = {name: value.strip() for name, value in environ.items() if value.strip()}
    named = values.get("OTEL_TRACES_EXPORTER", "").lower()
    if values.get("OTEL_SDK_DISABLED", "").lower() == "true" or named == "none":
        return None
    if not named and not any(name in values for name in ENDPOINTS):
        return None
    problems: list[str] = []
    found = _exporter(named or Exporter.OTLP.value, problems)
    _check_otlp(values, problems)
    _check_sampler(values, problems)
    wrong = (name for name in NUMBERS if not _is_whole(values.get(name, "1")))
    problems += (f"{name}: {values[name]!r} is no whole number above 0" for name in wrong)
    if not _is_there(LIBRARY):
        problems.append("traces need OpenTelemetry, which is not installed: pip install 'loadmaster[traces]'")
    if problems:
        raise ConfigError(problems)
    return found


def _exporter(name: str, problems: list[str]) -> Exporter | None:
    try:
        return Exporter(name)
    except ValueError:
        problems.append(f"OTEL_TRACES_EXPORTER: {name!r} is none of otlp, console, none")
        return None


def _check_otlp(values: Mapping[str, str], problems: list[str]) -> None:
    wrong = (name for name in ENDPOINTS if name in values and not _is_url(values[name]))
    problems += (f"{name}: {values[name]!r} is no URL of a collector, such as http://collector:4318" for name in wrong)
    others = (name for name in PROTOCOLS if values.get(name, PROTOCOL) != PROTOCOL)
    problems += (f"{name}: {values[name]!r} is not spoken here, only {PROTOCOL}" for name in others)


def _check_sampler(values: Mapping[str, str], problems: list[str]) -> None:
    sampler = values.get("OTEL_TRACES_SAMPLER", SAMPLERS[0]).lower()
    if sampler not in SAMPLERS:
        problems.append(f"OTEL_TRACES_SAMPLER: {sampler!r} is none of {', '.join(SAMPLERS)}")
    elif sampler in RATIOS and not _is_share(values.get("OTEL_TRACES_SAMPLER_ARG", "1")):
        problems.append(f"OTEL_TRACES_SAMPLER_ARG: {values['OTEL_TRACES_SAMPLER_ARG']!r} is no number from 0 to 1")


def _is_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False


def _is_share(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text[:10]) > 0 and len(text) <= 9


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package above it
        return False
