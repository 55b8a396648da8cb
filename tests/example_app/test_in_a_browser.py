"""A visitor with a real browser: registers, sees the mail fail and sends it again, reads it, verifies, signs in."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLAYWRIGHT = ROOT / ".venv-screenshots" / "bin" / "python"


def test_a_visitor_gets_along_on_a_desk_and_on_a_phone(tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None or not PLAYWRIGHT.exists():
        pytest.skip("no browser: run scripts/screenshots once, which makes what it needs and says what to install")
    walk: list[str | Path] = [PLAYWRIGHT, ROOT / "docs" / "take_pictures.py", browser, tmp_path]
    done = subprocess.run(walk, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert sorted(picture.stem for picture in tmp_path.iterdir()) == sorted(
        picture.stem for picture in (ROOT / "docs" / "images").iterdir()
    )
