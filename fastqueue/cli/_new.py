"""`fastqueue new`: the first lines of a job's or a listener's module, for its author to go on from."""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from fastqueue.cli._app import fail

__all__ = ["new"]

new = typer.Typer(help="Write the module of a new job or listener. A file that is there already is left alone.")

Folder = Annotated[
    Path, typer.Option("--into", metavar="FOLDER", help="Where it goes, made if need be.", file_okay=False)
]

_JOB = '''"""The job {kind}."""

from fastqueue import Kinds
from pydantic import BaseModel

kinds = Kinds()


class {type}(BaseModel):
    """What the job is pushed with; it is kept as JSON until the job has run."""

    id: int


@kinds.handle("{kind}")
async def {function}(job: {type}) -> None:
    """Do it so that a second time does no harm: a job may run again."""
    print("{kind}", job.id)
'''

_LISTENER = '''"""A listener to {event_type}."""

from fastqueue.events import Events
{imports}
events = Events()

{event_class}
@events.handle("{kind}")
async def {function}(event: {event_type}) -> None:
    """Do it so that a second time does no harm: a job may run again."""
    print("{kind}", event)
'''

_EVENT = '''
class {event_type}(BaseModel):
    """What happened; it is kept as JSON until its listeners have run."""

    id: int

'''


@new.command()
def job(
    name: Annotated[str, typer.Argument(help="Such as SendInvoice or send-invoice.")], into: Folder = Path()
) -> None:
    """A module with a kind of job: its value, and its handler."""
    words = _words(name)
    text = _JOB.format(kind="-".join(words), type=_type(words), function="_".join(words))
    path = _write(into, words, text)
    typer.echo(f"{path} is written. Join it to the queue: queue.include({path.stem}.kinds)")


@new.command()
def listener(
    name: Annotated[str, typer.Argument(help="Such as UpdateStock or update-stock.")],
    event: Annotated[
        str,
        typer.Option("--event", metavar="E", help="OrderShipped: defined there. shop.events:OrderShipped: imported."),
    ],
    into: Folder = Path(),
) -> None:
    """A module with a listener to an event."""
    words = _words(name)
    module, _, event_type = event.rpartition(":")
    if not _is_type(event_type) or (module and not all(map(_is_name, module.split(".")))):
        fail(2, f"--event {event!r} is no class; write OrderShipped, or shop.events:OrderShipped")
    text = _LISTENER.format(
        kind="-".join(words),
        function="_".join(words),
        event_type=event_type,
        imports=f"\nfrom {module} import {event_type}\n" if module else "from pydantic import BaseModel\n",
        event_class="" if module else _EVENT.format(event_type=event_type),
    )
    path = _write(into, words, text)
    typer.echo(f"{path} is written. Join it to the queue: queue.include({path.stem}.events)")


def _words(name: str) -> list[str]:
    """The words of a name, however they are put together."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Za-z][a-z]*|\d+", name)]
    function = "_".join(words)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) or not words:
        fail(2, f"{name!r} is no name for a module; write it as SendInvoice or send-invoice")
    taken = {"kinds", "events", "fastqueue", "pydantic", *sys.stdlib_module_names, *dir(builtins)}
    if keyword.iskeyword(function) or {function, _type(words)} & (taken | {"Kinds", "Events", "BaseModel"}):
        fail(2, f"{name!r} is a name of Python's or of what the module needs; say what it does, as in {name}-order")
    return words


def _type(words: list[str]) -> str:
    return "".join(word.capitalize() for word in words)


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _is_type(text: str) -> bool:
    return _is_name(text) and text[0].isupper() and text not in ("Events", "BaseModel")


def _write(folder: Path, words: list[str], text: str) -> Path:
    path = folder / f"{'_'.join(words)}.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        fail(1, f"{path} is there already and was left alone; give another name, or --into another folder")
    except OSError as error:
        fail(1, f"{path} cannot be written: {error}")
    return path
