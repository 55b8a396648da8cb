"""At the end of a run: how much of the contract each store was asked, and kept."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from fastqueue.testing.conformance.clause import clause_id


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each store that the conformance kit was run on."""
    checks: defaultdict[str, Counter[str]] = defaultdict(Counter)
    clauses: defaultdict[str, set[str]] = defaultdict(set)
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.getreports(outcome):
            file, _, rest = report.nodeid.partition("::")
            if "test_conformance_" in file and "::" in rest:
                store, _, check = rest.partition("::")
                checks[store][outcome] += 1
                clauses[store].add(clause_id(check.partition("[")[0]))
    if checks:
        terminalreporter.section("store contract")
        for store, counts in sorted(checks.items()):
            told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
            terminalreporter.line(f"{store.removeprefix('Test')}: {len(clauses[store])} clauses in {told}")
