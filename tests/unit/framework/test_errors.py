from scheduler.framework.errors import ConfigError


def test_a_problem_is_one_printable_line_whatever_the_file_has() -> None:
    error = ConfigError(["a\nb\x1b[31m: \ud800 é", "plain"])

    assert error.problems == ("a\\nb\\x1b[31m: \\ud800 é", "plain")
    assert str(error).splitlines() == list(error.problems)
