"""`python -m example_app`: serve the app, or look after its failed jobs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import uvicorn

from example_app import command, logs
from example_app.kinds import queue_for
from example_app.settings import Settings, SettingsError
from fastqueue import FastQueueError

_HELP = {"help", "-h", "-help", "--help"}


def main(words: Sequence[str]) -> int:
    """Do what the words say and return the exit status: 0, 1 for an error, 2 for words that it does not know."""
    try:
        return _main(words)
    except command.UsageError as error:
        print(f"error: {error}\n\n{command.USAGE}", end="", file=sys.stderr)
        return 2
    except (SettingsError, FastQueueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _main(words: Sequence[str]) -> int:
    match words:
        case []:
            return _serve(Settings.from_environ())
        case [word] if word in _HELP:
            print(command.USAGE, end="")
            return 0
        case ["jobs", *rest]:
            return asyncio.run(command.jobs(queue_for(Settings.from_environ()), rest))
        case _:
            raise command.UsageError(f"{' '.join(words)}: there is no such command")


def _serve(settings: Settings) -> int:
    logs.set_up()
    uvicorn.run(
        "example_app.main:app",
        host=settings.host,
        port=settings.port,
        log_config=None,
        timeout_graceful_shutdown=int(settings.shutdown_timeout) or 1,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
