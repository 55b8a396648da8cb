"""The examples on the pages of the documentation run, each page from its top to its end."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", ["metrics", "schedules", "unique-and-limits"])
def test_the_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parser = PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS)
    document = Sybil([parser], name=page).parse(DOCS / f"{page}.md")
    examples = list(document.examples())
    assert len(examples) >= (DOCS / f"{page}.md").read_text().count("```python")
    for example in examples:
        example.evaluate()
