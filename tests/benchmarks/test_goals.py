"""The tables of a run: ratios within it, and whether the goals were reached."""

from __future__ import annotations

from tests.benchmarks.bench import markdown, table
from tests.benchmarks.case import Row
from tests.benchmarks.goals import goals
from tests.benchmarks.goals import markdown as goals_markdown
from tests.benchmarks.page import DOCS, page
from tests.benchmarks.plot import plot

DRAIN = "drain, defaults"
ROWS = [
    Row("raw", "postgres", DRAIN, 40_000, "jobs/s"),
    Row("fastqueue", "postgres", DRAIN, 30_000, "jobs/s"),
    Row("fastqueue", "postgres", DRAIN, 32_000, "jobs/s"),
    Row("fastqueue", "postgres", DRAIN, 10_000, "jobs/s"),
    Row("oban", "postgres", DRAIN, 2_000, "jobs/s"),
    Row("pgqueuer", "postgres", DRAIN, 6_000, "jobs/s"),
    Row("fastqueue", "postgres", "drain, a tenth limited", 12_000, "jobs/s"),
    Row("fastqueue", "postgres", "pick-up from another process, p50", 0.5, "ms"),
]


def test_the_median_of_a_figure_is_compared_with_the_raw_loop_and_with_the_best_peer() -> None:
    (ours,) = (line for line in table(ROWS) if line["measure"] == DRAIN and line["who"] == "fastqueue")
    assert (ours["value"], ours["lowest"], ours["highest"], ours["rounds"]) == (30_000, 10_000, 32_000, 3)
    assert (ours["to raw"], ours["to best peer"]) == (0.75, 5.0)
    assert "| postgres | drain, defaults | fastqueue | 30,000 jobs/s | 10,000 – 32,000 | 0.75 | 5.00 |" in markdown(
        table(ROWS)
    )


def test_each_goal_that_was_measured_is_told_with_what_was_reached() -> None:
    reached = {(goal.measure, goal.against): round(value, 2) for goal, value, _ in goals(table(ROWS))}
    assert reached == {
        (DRAIN, "raw"): 0.75,
        (DRAIN, "best peer"): 5.0,
        ("drain, a tenth limited", ("raw", DRAIN)): 0.3,
        ("pick-up from another process, p50", None): 0.5,
    }
    lines = goals_markdown(table(ROWS)).splitlines()
    assert "| postgres | drain, defaults | raw | ≥ 0.6 | 0.75 | yes |" in lines
    assert "| postgres | drain, a tenth limited | raw: drain, defaults | ≥ 0.5 | 0.30 | **no** |" in lines
    assert "| postgres | pick-up from another process, p50 |  | ≤ 0.6 ms | 0.50 ms | yes |" in lines


def test_the_page_gets_its_tables_anew_and_keeps_its_words() -> None:
    before = (DOCS / "performance.md").read_text()
    after = page(before, {"rows": table(ROWS)})
    assert "| postgres | drain, a tenth limited | raw: drain, defaults | ≥ 0.5 | 0.30 | **no** |" in after
    assert "| postgres | drain, defaults | oban | 2,000 jobs/s |" in after
    assert page(after, {"rows": table(ROWS)}) == after
    assert [line for line in after.splitlines() if line and not line.startswith("|")] == [
        line for line in before.splitlines() if line and not line.startswith("|")
    ]


def test_the_plot_has_a_bar_for_each_figure_of_a_drain() -> None:
    drawn = plot(table(ROWS))
    assert drawn.count("<rect") == 4
    assert "oban on postgres" in drawn
