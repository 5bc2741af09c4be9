"""Log lines as text and as JSON, and what is logged at which verbosity."""

import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.process.logs import JsonFormatter, Levels, TextFormatter, fields_of, parse_modules, set_up_logging

NOON = 1769860800.123


def a_record(message: str = "Pod placed", *args: object, **fields: object) -> logging.LogRecord:
    record = logging.LogRecord("scheduler.cycle.loop", logging.INFO, "loop.py", 1, message, args, None)
    record.created = NOON
    vars(record).update(fields)
    return record


def with_exception(record: logging.LogRecord) -> logging.LogRecord:
    try:
        raise ValueError("broken")
    except ValueError:
        record.exc_info = sys.exc_info()
    return record


@pytest.fixture
def _loggers_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in (None, "scheduler", "plugins")]
    levels, handlers = [logger.level for logger in loggers], logging.getLogger().handlers[:]
    root = logging.getLogger()
    root.handlers = []  # `force` closes those that it finds, and pytest still needs them
    yield
    logging.setLoggerClass(logging.Logger)
    root.handlers = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.mark.parametrize(
    ("record", "line"),
    [
        pytest.param(a_record(pod="default/web", nodes=3), 'Pod placed pod="default/web" nodes=3', id="fields"),
        pytest.param(a_record(err='two\nlines, "q"'), r'Pod placed err="two\nlines, \"q\""', id="on its line"),
        pytest.param(a_record("%d of %d", 1, 2), "1 of 2", id="arguments"),
    ],
)
def test_a_text_line_has_the_time_the_level_the_message_and_the_fields(record: logging.LogRecord, line: str) -> None:
    assert TextFormatter().format(record) == f"2026-01-31T12:00:00.123Z INFO {line}"


def test_a_text_line_is_followed_by_the_traceback() -> None:
    lines = TextFormatter().format(with_exception(a_record(pod="default/web"))).splitlines()

    assert lines[0].endswith('pod="default/web"')
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: broken"


def test_a_json_line_is_one_object_with_the_fields() -> None:
    line = JsonFormatter().format(a_record(pod="default/web", nodes=3))

    assert json.loads(line) == {
        "ts": "2026-01-31T12:00:00.123Z",
        "level": "info",
        "logger": "scheduler.cycle.loop",
        "msg": "Pod placed",
        "pod": "default/web",
        "nodes": 3,
    }


def test_a_json_line_with_a_traceback_is_still_one_line() -> None:
    line = JsonFormatter().format(with_exception(a_record()))

    assert "\n" not in line
    assert json.loads(line)["exception"].endswith("ValueError: broken")


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_a_field_of_any_kind_can_be_logged(formatter: logging.Formatter) -> None:
    assert "{1}" in formatter.format(a_record(rows={1}))


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_a_line_is_cut_and_a_terminal_obeys_nothing_in_it(formatter: logging.Formatter) -> None:
    long = "\ud800\x00\x1b[31m\r\nINFO forged" + "x" * 10_000_000
    record = a_record(err=long, rows=[long])
    record.msg, record.args = "%s", (long,)
    try:
        raise ValueError(long)
    except ValueError:
        record.exc_info = sys.exc_info()

    line = formatter.format(record)

    assert len(line) < 200_000
    assert not {"\x00", "\x1b", "\r", "\ud800"} & set(line)
    assert line.split("\n")[0].count("forged") >= 3


def test_only_what_the_caller_gave_is_a_field() -> None:
    record = a_record(pod="default/web")
    record.taskName = "bind default/web"
    record.message = record.getMessage()

    assert fields_of(record) == {"pod": "default/web"}


@pytest.mark.parametrize(
    ("verbosity", "ours", "theirs"),
    [
        pytest.param(0, logging.INFO, logging.WARNING, id="little"),
        pytest.param(1, logging.INFO, logging.WARNING, id="no level of its own"),
        pytest.param(2, logging.DEBUG, logging.WARNING, id="each pod"),
        pytest.param(4, logging.DEBUG, logging.DEBUG, id="libraries too"),
    ],
)
@pytest.mark.usefixtures("_loggers_as_before")
def test_verbosity_is_a_level_for_us_and_another_for_libraries(verbosity: int, ours: int, theirs: int) -> None:
    levels = Levels(0)
    set_up_logging(levels, "text")
    levels.set(verbosity)  # while the program runs

    assert logging.getLogger("scheduler.cycle.loop").getEffectiveLevel() == ours
    assert logging.getLogger("plugins.node_name").getEffectiveLevel() == ours
    assert logging.getLogger("some_library").getEffectiveLevel() == theirs


@pytest.mark.parametrize(("form", "start"), [("text", "20"), ("json", "{")])
@pytest.mark.usefixtures("_loggers_as_before")
def test_lines_go_to_standard_error_in_the_form_asked_for(form: str, start: str, capsys: Any) -> None:
    set_up_logging(Levels(0), form)
    logging.getLogger("scheduler").info("Ready", extra={"nodes": 3})

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(start)
    assert told.err.count("\n") == 1


@pytest.mark.usefixtures("_loggers_as_before")
def test_setting_up_twice_does_not_double_the_lines(capsys: Any) -> None:
    set_up_logging(Levels(0), "text")
    set_up_logging(Levels(0), "text")
    logging.getLogger("scheduler").warning("Once")

    assert capsys.readouterr().err.count("Once") == 1


@pytest.mark.parametrize(
    ("modules", "name", "level"),
    [
        pytest.param("loop_of_a_test=2", "scheduler.loop_of_a_test", logging.DEBUG, id="by the name of its file"),
        pytest.param("scheduler.of_*=2", "scheduler.of_a_test", logging.DEBUG, id="by a pattern of the whole name"),
        pytest.param(
            "quiet*=0,*_in_a_test=4", "scheduler.quiet_in_a_test", logging.INFO, id="the first that matches counts"
        ),
        pytest.param("other=4", "scheduler.none_in_a_test", logging.INFO, id="none that matches"),
    ],
)
@pytest.mark.usefixtures("_loggers_as_before")
def test_modules_that_come_later_log_as_their_pattern_says(modules: str, name: str, level: int) -> None:
    set_up_logging(Levels(0, parse_modules(modules)), "text")

    assert logging.getLogger(name).getEffectiveLevel() == level


@pytest.mark.parametrize("text", ["loop", "loop=", "=2", "loop=x", "loop=-1"])
def test_a_pattern_without_a_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected PATTERN=NUMBER"):
        parse_modules(text)
