"""The `fastqueue` command: what the person on call needs. It is documented in docs/command.md."""

from __future__ import annotations

import sys

__all__ = ["main"]

_EXTRA = {"typer", "rich", "click"}


def main() -> None:
    """Run the command with this process's arguments, and exit with its status."""
    try:
        from fastqueue.cli._commands import app
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        print(f"fastqueue: the command needs {error.name}: pip install 'fastqueue[cli]'", file=sys.stderr)
        sys.exit(2)
    app(prog_name="fastqueue")
