"""What people install: the wheel's files, and what importing it brings along."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]


def files(folder: Path) -> set[str]:
    """The names of the files in a wheel that is built into a folder."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*build, folder, ROOT], check=True, capture_output=True)
    [wheel] = folder.glob("fastqueue-*.whl")
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(tmp_path: Path) -> None:
    source = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "fastqueue").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {"fastqueue/py.typed", "fastqueue/stores/sql/sqlite.sql", "fastqueue/stores/lua/claim.lua"} <= source
    found = {name for name in files(tmp_path) if ".dist-info/" not in name}
    assert found == source | {"fastqueue_pytest.py"}


def test_importing_the_package_brings_no_driver_no_framework_and_no_command() -> None:
    asks = "import sys, fastqueue; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    brought = subprocess.run([sys.executable, "-c", asks], check=True, capture_output=True, text=True).stdout.split()
    optional = "aiosmtplib asyncmy asyncpg cryptography fastapi opentelemetry prometheus_client pytest redis rich"
    assert not {*optional.split(), "sqlalchemy", "starlette", "typer"} & set(brought)
    assert "pydantic" in brought
