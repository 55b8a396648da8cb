"""Time zones: found by name, asked for the moments at which their clocks change, told apart by version.

Instants here are naive datetimes in UTC, and readings are naive datetimes on the zone's own clock.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import zoneinfo
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from fastqueue.errors import ScheduleError

__all__ = ["Change", "Zone", "load_zone", "zone_data_version"]

_SYSTEM_ZONE = Path("/etc/localtime")
_SECOND = timedelta(seconds=1)
_PROBE_EVERY = timedelta(days=3)
"""No zone has ever kept an offset for less than 95 hours, so no two changes lie between two probes."""


@dataclass(frozen=True, slots=True)
class Change:
    """An instant at which a clock jumped: it would have shown `old`, and shows `new`."""

    at: datetime
    old: datetime
    new: datetime


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """A time zone under the name it was found by; there is one of each name."""

    name: str
    rules: tzinfo

    def reading(self, instant: datetime) -> datetime:
        """What the zone's clock shows at an instant."""
        return self.rules.fromutc(instant.replace(tzinfo=self.rules)).replace(tzinfo=None, fold=0)

    def first_change(self, after: datetime, until: datetime) -> Change | None:
        """The first change later than `after`, and not later than `until`."""
        for year in range(after.year, until.year + 1):
            for change in _changes(self, year):
                if after < change.at <= until:
                    return change
        return None


@lru_cache(maxsize=1024)
def _changes(zone: Zone, year: int) -> tuple[Change, ...]:
    """The changes later than the start of a year in UTC, and not later than the start of the next.

    zoneinfo keeps no list that may be read, so they are found by bisection between probes.
    """
    changes: list[Change] = []
    low, end = datetime(year, 1, 1), datetime(year + 1, 1, 1)
    offset = zone.reading(low) - low
    while low < end:
        high = min(low + _PROBE_EVERY, end)
        if zone.reading(high) - high != offset:
            at = _bisect(zone, low, high, offset)
            changes.append(Change(at, old=at + offset, new=zone.reading(at)))
            offset = zone.reading(high) - high
        low = high
    return tuple(changes)


def _bisect(zone: Zone, low: datetime, high: datetime, offset: timedelta) -> datetime:
    """The first second at which the clock no longer has the offset that it has at `low`."""
    while high - low > _SECOND:
        middle = low + (high - low) // _SECOND // 2 * _SECOND
        if zone.reading(middle) - middle == offset:
            low = middle
        else:
            high = middle
    return high


def load_zone(name: str) -> Zone:
    """The zone that the IANA database knows by a name; "Local" is the server's own, found anew at each call.

    Raises:
        ScheduleError: There is none of that name, or the server's own cannot be told.
    """
    return _local() if name == "Local" else _named(name)


@lru_cache(maxsize=256)
def _named(name: str) -> Zone:
    if name in ("UTC", "Etc/UTC"):  # these need no zone data, which a small image may lack
        return Zone(name, UTC)
    try:
        return Zone(name, zoneinfo.ZoneInfo(name))
    except (KeyError, ValueError, TypeError, OSError):
        raise ScheduleError(f"no time zone {name!r}: {_advice(str(name))}") from None


def _advice(name: str) -> str:
    known = zoneinfo.available_timezones()
    if not known:
        return "this machine has no zone data; install the package tzdata"
    zones = {text.casefold(): zone for zone in sorted(known) for text in (zone, zone.rpartition("/")[2])}
    zones["local"] = "Local"
    near = difflib.get_close_matches(name.casefold().replace(" ", "_"), zones, n=1)
    if not near:
        return 'use a name of the IANA database such as "Europe/Paris", "UTC", or "Local" for the server\'s own'
    return f"did you mean {zones[near[0]]!r}?"


def _local() -> Zone:
    """The server's own zone as the C library finds it: TZ, else the system's zone file, else UTC."""
    setting = os.environ.get("TZ")
    if setting is None:
        return _system_zone()
    setting = setting.removeprefix(":")
    try:
        return _from_file(Path(setting)) if setting.startswith("/") else _named(setting or "UTC")
    except ScheduleError as error:
        raise ScheduleError(f'the zone "Local" is what the variable TZ names: {error}') from None


def _system_zone() -> Zone:
    if _SYSTEM_ZONE.is_symlink() or _SYSTEM_ZONE.exists():
        return _from_file(_SYSTEM_ZONE)
    if os.name == "nt":
        raise ScheduleError('the zone "Local" cannot be told on Windows: name the zone, or set TZ to its name')
    return _named("UTC")


def _from_file(path: Path) -> Zone:
    real = path.resolve()
    _, inside, name = real.as_posix().partition("/zoneinfo/")
    with suppress(ScheduleError):
        if inside:
            return _named(name)
    try:
        with real.open("rb") as file:
            return Zone("Local", zoneinfo.ZoneInfo.from_file(file, key="Local"))
    except (OSError, ValueError):
        raise ScheduleError(f"{path} holds no time zone: name the zone, or set TZ to its name") from None


def zone_data_version() -> str:
    """The version of the zone data this process uses, such as "2026b".

    zoneinfo takes a zone from the system's copy, and from the package tzdata if that has none. Two instances
    with different versions may differ by an hour, so `health` reports it. Data that does not tell its version
    is named by a hash; "none" is no data at all, which leaves UTC.
    """
    for root in map(Path, zoneinfo.TZPATH):
        if root.is_dir() and (version := _version_in(root) or _hash_of(root)):
            return version
    try:
        return str(import_module("tzdata").IANA_VERSION)
    except ImportError:
        return "none"


def _version_in(root: Path) -> str:
    for name in ("tzdata.zi", "+VERSION"):
        try:
            with (root / name).open(encoding="ascii") as file:
                return file.readline().removeprefix("# version ").strip()
        except (OSError, ValueError):
            continue
    return ""


@lru_cache
def _hash_of(root: Path) -> str:
    files = [file for name in sorted(zoneinfo.available_timezones()) if (file := root / name).is_file()]
    data = hashlib.sha256(b"".join(file.read_bytes() for file in files))
    return f"sha256:{data.hexdigest()[:12]}" if files else ""
