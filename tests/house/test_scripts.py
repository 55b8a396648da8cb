from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "scripts").iterdir())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_can_be_run_and_says_first_what_it_is_for(script: Path) -> None:
    assert script.stat().st_mode & 0o111
    shebang, purpose, *_ = script.read_text().splitlines()
    assert shebang == "#!/bin/sh"
    assert purpose.startswith("# ")


def test_a_machine_without_a_new_enough_python_is_told_so(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "dirname", "basename"):
        (programs / name).symlink_to(shutil.which(name) or name)
    old = programs / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / "scripts", clone / "scripts")

    done = subprocess.run([clone / "scripts" / "install"], env={"PATH": str(programs)}, capture_output=True, text=True)

    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert not (clone / ".venv").exists()
