"""What a look at a queue's surroundings found: said by stores and by the command, shown to the person on call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "Inspects", "Level"]


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        about: What it is about, in a word or two.
        text: What was found.
        level: Whether that is as it should be. A warning costs speed or certainty, an error jobs.
        remedy: What to do about it; empty when nothing is to be done.
    """

    about: str
    text: str
    level: Level = Level.OK
    remedy: str = ""

    @classmethod
    def warning(cls, about: str, text: str, remedy: str) -> Finding:
        """One that costs speed or certainty."""
        return cls(about, text, Level.WARNING, remedy)

    @classmethod
    def error(cls, about: str, text: str, remedy: str) -> Finding:
        """One that costs jobs."""
        return cls(about, text, Level.ERROR, remedy)


class Inspects(ABC):
    """Faculty of a store: once open, it can say what of the database around it is not as it should be."""

    @abstractmethod
    async def inspect(self) -> list[Finding]:
        """What was looked at, and what to do about it."""
