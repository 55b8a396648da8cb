"""How the jobs of a kind are run: what was asked for, a queue's defaults, and what one push sets differently."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fastqueue.backoff import Backoff, exponential, parse_backoff, quartic, spec
from fastqueue.codec import check_name
from fastqueue.errors import OptionError
from fastqueue.job import DEFAULT_QUEUE, Claimed
from fastqueue.limits import Limiter
from fastqueue.settings import UNSET, Seconds, Unset, as_count, as_ms
from fastqueue.unique import Unique

__all__ = ["Defaults", "Given", "Options", "options_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the jobs of a kind are run, after the queue's defaults were filled in."""

    attempts: int
    backoff: Backoff
    timeout_ms: int | None
    queue: str
    unique: Unique | None
    at_once: int
    rate: Limiter | None
    interruptions: int
    margin_ms: int
    hold_at_most_ms: int

    @property
    def hold_ms(self) -> int:
        """How long a claim holds a job: its timeout and a margin, within bounds; a longer run renews it."""
        within = self.hold_at_most_ms if self.timeout_ms is None else min(self.timeout_ms, self.hold_at_most_ms)
        return within + self.margin_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a queue's kinds take for the options they were not given.

    Args:
        attempts: Runs in all, the first included. Default 10.
        backoff: The wait after a failed attempt. Default `quartic()`.
        timeout: The time limit of one run, as seconds or a timedelta; None: none. Default 60 s.
        queue: The named queue they wait in. Default "default".
        interruptions: How many times in a row a job that the queue's stop interrupted is put back without using an
            attempt. Default 3. After that an interruption uses one, but never the last.
        margin: How long after its timeout a job stays held by a worker that has died. Default 60 s.
        hold_at_most: A claim holds a job for its timeout, and at most this long, and the margin; a run that takes
            longer has its hold renewed while it lives. Default 300 s.

    Raises:
        OptionError: a value that cannot be; the message names it.

    Example:
        >>> Defaults(attempts=3, timeout=None).attempts
        3
    """

    attempts: int = 10
    backoff: Backoff = field(default_factory=quartic)
    timeout: Seconds | None = 60
    queue: str = DEFAULT_QUEUE
    interruptions: int = 3
    margin: Seconds = 60
    hold_at_most: Seconds = 300

    def __post_init__(self) -> None:
        Given(attempts=self.attempts, backoff=self.backoff, timeout=self.timeout, queue=self.queue).check("defaults")
        as_count("interruptions", self.interruptions, least=0)
        if as_ms("margin", self.margin) < 1 or as_ms("hold_at_most", self.hold_at_most) < 1:
            raise OptionError(
                f"defaults: margin={self.margin!r} and hold_at_most={self.hold_at_most!r}; "
                "each takes more than 0 seconds"
            )

    @classmethod
    def vukem(cls) -> Defaults:
        """3 retries after the first run, 1 s, 2 s and 4 s apart, and an hour at most where there are more."""
        return cls(attempts=4, backoff=exponential(1, 3600))


class Given(NamedTuple):
    """The options as they were given to `handle` or to a push, before the queue's defaults are known."""

    attempts: int | None = None
    retries: int | None = None
    backoff: Backoff | None = None
    timeout: Seconds | Unset | None = UNSET
    queue: str | None = None
    unique: Unique | bool | None = None
    at_once: int | None = None
    rate: Limiter | None = None

    def check(self, whose: str) -> None:
        """Refuse what cannot be, naming whose option it is."""
        try:
            self._check()
        except OptionError as error:
            raise OptionError(f"{whose}: {error}") from None

    def _check(self) -> None:
        if self.attempts is not None and self.retries is not None:
            raise OptionError(
                f"attempts={self.attempts} and retries={self.retries}; give one: attempts=n is retries=n-1"
            )
        if self.attempts is not None:
            as_count("attempts", self.attempts)
        if self.retries is not None:
            as_count("retries", self.retries, least=0)
        if self.backoff is not None and not callable(self.backoff):
            raise OptionError(
                f"backoff={self.backoff!r}; it takes quartic(), exponential(...), constant(...) or a function"
            )
        if self.timeout is not None and not isinstance(self.timeout, Unset) and as_ms("timeout", self.timeout) < 1:
            raise OptionError(f"timeout={self.timeout!r}; it takes more than 0 seconds, or None for no limit")
        if self.queue is not None:
            check_name("queue", self.queue)
        if self.unique is not None and not isinstance(self.unique, Unique | bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"unique={self.unique!r}; it takes True or Unique(...)")
        if self.at_once is not None:
            as_count("at_once", self.at_once)
        if self.rate is not None and not callable(getattr(self.rate, "ask", None)):
            raise OptionError(f"rate={self.rate!r}; it takes Throttle(...) or any object with an ask(kind) method")

    @property
    def runs(self) -> int | None:
        """How many runs in all were asked for; None: not said."""
        return self.retries + 1 if self.retries is not None else self.attempts

    @property
    def sets_timeout(self) -> bool:
        """Whether a time limit, or none, was asked for."""
        return not isinstance(self.timeout, Unset)

    @property
    def timeout_ms(self) -> int | None:
        """The time limit asked for; None: none."""
        return None if self.timeout is None or isinstance(self.timeout, Unset) else as_ms("timeout", self.timeout)

    def resolved(self, defaults: Defaults) -> Options:
        """The options with the queue's defaults filled in."""
        unique = Unique() if self.unique is True else self.unique or None
        return Options(
            attempts=self.runs or defaults.attempts,
            backoff=self.backoff or defaults.backoff,
            timeout_ms=self.timeout_ms if self.sets_timeout else Given(timeout=defaults.timeout).timeout_ms,
            queue=self.queue or defaults.queue,
            unique=unique,
            at_once=self.at_once or 0,
            rate=self.rate,
            interruptions=defaults.interruptions,
            margin_ms=as_ms("margin", defaults.margin),
            hold_at_most_ms=as_ms("hold_at_most", defaults.hold_at_most),
        )

    def text(self) -> str | None:
        """What a push set differently, as the text that is kept with the job."""
        kept: dict[str, Any] = {}
        if self.runs is not None:
            kept["attempts"] = self.runs
        if self.sets_timeout:
            kept["timeout_ms"] = self.timeout_ms
        if self.backoff is not None:
            kept["backoff"] = spec(self.backoff)
        return json.dumps(kept, separators=(",", ":")) if kept else None


def options_of(job: Claimed, options: Options) -> Options:
    """A kind's options with what the job's own push set; what this version does not understand is left out."""
    if job.options is None:
        return options
    try:
        kept = json.loads(job.options)
        attempts = int(kept.get("attempts", options.attempts))
        timeout = kept.get("timeout_ms", options.timeout_ms)
        backoff = parse_backoff(str(kept.get("backoff"))) or options.backoff
        timeout_ms = None if timeout is None else int(timeout)
    except (ValueError, TypeError, AttributeError):
        return options
    return replace(options, attempts=attempts, timeout_ms=timeout_ms, backoff=backoff)
