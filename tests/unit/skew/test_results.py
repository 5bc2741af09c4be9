from pathlib import Path

from tests.skew.capabilities import CAPABILITIES, OTHERS, files
from tests.skew.page import BEGIN, END, PAGE, table, with_table
from tests.skew.results import Result, read

ONE_PART = """<testsuites><testsuite>
<testcase classname="tests.cluster.test_binding" name="test_a"/>
<testcase classname="tests.cluster.test_status" name="test_b"/>
<testcase classname="tests.cluster.test_dra" name="test_c"><skipped message="the gate is off"/></testcase>
<testcase classname="tests.cluster.test_dra" name="test_d"><failure message="no"/></testcase>
<testcase classname="tests.cluster.test_dra" name="test_e"><error message="no"/></testcase>
</testsuite></testsuites>"""
ANOTHER = (
    '<testsuites><testsuite><testcase classname="tests.cluster.test_traces" name="test_f"/></testsuite></testsuites>'
)


def test_tests_count_for_their_capability(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(ONE_PART)
    (tmp_path / "b.xml").write_text(ANOTHER)

    found = read([tmp_path / "a.xml", tmp_path / "b.xml"])

    assert found == {
        "Binding and status": Result(passed=2),
        "Devices (DRA)": Result(skipped=["the gate is off"], failed=["test_d", "test_e"]),
        OTHERS: Result(passed=1),
    }


def test_a_run_of_one_file_replaces_what_that_file_came_to(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(ONE_PART)
    (tmp_path / "b.xml").write_text(
        '<testsuites><testsuite><testcase classname="tests.cluster.test_dra" name="test_d"/></testsuite></testsuites>'
    )

    found = read([tmp_path / "a.xml", tmp_path / "b.xml"])

    assert found == {"Binding and status": Result(passed=2), "Devices (DRA)": Result(passed=1)}


def test_a_failure_is_seen_in_the_table_and_each_reason_once() -> None:
    binding, dra = "Binding and status", "Devices (DRA)"
    older = {binding: Result(passed=2), dra: Result(1, ["the gate is off", "the gate is off"])}
    newer = {binding: Result(1, failed=["test_b"])}

    text = table({"1.34.4": older, "1.35.4": older, "1.37.2": newer})

    assert text == (
        "| API server | 1.34.4 | 1.35.4 | 1.37.2 |\n"
        "|---|---|---|---|\n"
        "| Binding and status | 2 passed | 2 passed | 1 passed, **1 failed** |\n"
        "| Devices (DRA) | 1 passed, 2 not run | 1 passed, 2 not run | - |\n"
        "\n"
        "Not run, and why:\n"
        "\n"
        "- 1.34.4, 1.35.4: the gate is off\n"
    )


def test_only_the_table_of_the_page_is_replaced() -> None:
    page = f"# Versions\n{BEGIN}\nold\n{END}\nMore.\n"

    assert with_table(page, "new\n") == f"# Versions\n{BEGIN}\nnew\n\n{END}\nMore.\n"


def test_every_file_is_there_and_belongs_to_one_capability() -> None:
    names = [name for each in CAPABILITIES.values() for name in each]

    assert all(file.is_file() for file in files())
    assert len(names) == len(set(names))


def test_the_page_has_a_place_for_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert text.count(BEGIN) == text.count(END) == 1
    assert text.index(BEGIN) < text.index(END)
