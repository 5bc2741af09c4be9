from tests.bench.gates import default_gates, unmet

SOURCE = """\
\tOther: {
\t\t{Version: version.MustParse("1.30"), Default: false, PreRelease: featuregate.Alpha},
\t\t{Version: version.MustParse("1.34"), Default: true, PreRelease: featuregate.Beta},
\t\t// a comment
\t},

\tHints: {
\t\t{Version: version.MustParse("1.36"), Default: true, PreRelease: featuregate.GA, LockToDefault: true}, // soon gone
\t\t{Version: version.MustParse("1.37"), Default: false, PreRelease: featuregate.Deprecated},
\t},
"""


def test_the_default_is_that_of_the_last_entry_up_to_the_version() -> None:
    assert default_gates(SOURCE, (1, 36)) == {"Other": True, "Hints": True}
    assert default_gates(SOURCE, (1, 33)) == {"Other": False}


def test_a_gate_that_is_not_as_wanted_is_named() -> None:
    defaults = {"Hints": True, "Other": False}

    assert unmet({"Hints": True, "Other": False}, defaults) == []
    assert unmet({"Hints": False, "Unknown": True}, defaults) == ["Hints=false", "Unknown=true"]
