"""The formulas that are found in what was measured, and the page that is written from them."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.results import setting_of, write
from tests.sizing.clusters import REAL, SIMULATED
from tests.sizing.fit import fit
from tests.sizing.measure import Sizing
from tests.sizing.objects import KINDS
from tests.sizing.report import BEGIN, END, main, size_text

MIB = 1 << 20


def a_sizing(nodes: int, pods: int, server: str = SIMULATED) -> Sizing:
    memory = int((100 + nodes / 50 + pods / 200) * MIB)
    return Sizing(
        server=server,
        nodes=nodes,
        pods=pods,
        ready=10.0,
        ready_cpu=2 + nodes / 1000,
        ready_peak=memory,
        first_bound=11.0,
        first_bound_cpu=3.0,
        idle_cpu=0.001 + nodes / 1e6,
        steady=memory,
        decision_cpu=dict.fromkeys(KINDS, 0.0005),
        bound_rate=dict.fromkeys(KINDS, 500.0),
        peak=memory,
        takeover=1.0,
        takeover_cpu=0.5 + pods / 1e5,
        takeover_peak=2 * memory,
    )


FOUND = [a_sizing(100, 3_000), a_sizing(1_000, 30_000), a_sizing(5_000, 50_000), a_sizing(100_000, 300_000)]


def test_a_formula_is_found_again_in_its_own_figures() -> None:
    formula = fit(FOUND, lambda one: one.steady / MIB)

    assert formula.constant == pytest.approx(100, rel=1e-3)
    assert formula.per_node == pytest.approx(1 / 50, rel=1e-3)
    assert formula.per_pod == pytest.approx(1 / 200, rel=1e-3)
    assert formula.error < 0.001
    assert formula.at(50, 200) == pytest.approx(102, rel=1e-3)


def test_no_term_is_below_zero() -> None:
    found = [replace(one, ready_cpu=10 - one.pods / 100_000) for one in FOUND]

    formula = fit(found, lambda one: one.ready_cpu)

    assert min(formula.constant, formula.per_node, formula.per_pod) >= 0
    assert 0 < formula.error < 0.5


def test_three_terms_need_three_sizes() -> None:
    with pytest.raises(ValueError, match="three sizes"):
        fit(FOUND[:2], lambda one: one.steady)


def test_the_page_gets_tables_and_plots_of_all_that_was_measured(tmp_path: Path) -> None:
    results, page = tmp_path / "sizing.jsonl", tmp_path / "sizing.md"
    with results.open("w") as stream:
        for line in (setting_of(1, 0, "python -m tests.sizing"), *FOUND, a_sizing(1_000, 30_000, REAL)):
            write(stream, line)
    page.write_text(f"# Sizing\n\n{BEGIN}\n{END}\n\nThe end.\n")

    assert main([str(results), "--page", str(page)]) == 0

    text = page.read_text()
    assert "| 100,000 | 300,000 |" in text
    assert "| 1,000 | 30,000 | memory, MiB |" in text
    assert text.endswith("The end.\n")
    assert {file.name for file in (tmp_path / "benchmarks").iterdir()} == {
        "sizing-memory.svg",
        "sizing-start.svg",
        "sizing-pod.svg",
    }


def test_amounts_of_memory_are_written_as_kubernetes_reads_them() -> None:
    assert [size_text(one) for one in (512, 1024, 1536)] == ["512Mi", "1Gi", "1536Mi"]
