from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fastqueue import _zones
from fastqueue._zones import Change, load_zone, zone_data_version
from fastqueue.errors import ScheduleError
from fastqueue.schedule import cron

EPOCH = datetime(1970, 1, 1)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """Leave nothing behind that was read from other zone data, and no other place to read it from."""
    path = zoneinfo.TZPATH
    yield
    if path != zoneinfo.TZPATH:
        zoneinfo.reset_tzpath(path)
    forget_zones()


def forget_zones() -> None:
    zoneinfo.ZoneInfo.clear_cache()
    _zones._named.cache_clear()
    _zones._hash_of.cache_clear()


@pytest.fixture
def no_zone_data(monkeypatch: pytest.MonkeyPatch) -> None:
    zoneinfo.reset_tzpath([])
    for name in [name for name in sys.modules if name.startswith("tzdata")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tzdata", None)
    forget_zones()


# zones by name


def test_a_zone_has_the_name_it_was_asked_by() -> None:
    zone = load_zone("Europe/Paris")
    assert zone.name == "Europe/Paris"
    assert zone.reading(datetime(2026, 9, 26, 10)) == datetime(2026, 9, 26, 12)
    assert load_zone("Europe/Paris") is zone


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("Mars/Olympus_Mons", "use a name of the IANA database"),
        ("", "use a name of the IANA database"),
        ("Paris", "did you mean 'Europe/Paris'?"),
        ("Europe/Pari", "did you mean 'Europe/Paris'?"),
        ("europe/pariss", "did you mean 'Europe/Paris'?"),
        ("New York", "did you mean 'America/New_York'?"),
        ("America/New York", "did you mean 'America/New_York'?"),
        ("LOCAL", "did you mean 'Local'?"),
        ("Europe", ""),
        ("Europe/", ""),
        ("/etc/localtime", ""),
        ("../../etc/passwd", ""),
        ("tzdata.zi", ""),
        ("zone.tab", ""),
        ("Europe/Paris\0", ""),
        ("Europe/\ud800", ""),
        (zoneinfo.ZoneInfo("Europe/Paris"), ""),
        (None, ""),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_name(name: Any, advice: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        cron("@daily", name)
    assert str(caught.value).startswith(f"no time zone {name!r}: ")
    assert advice in str(caught.value)


@pytest.mark.usefixtures("no_zone_data")
def test_utc_needs_no_zone_data_and_any_other_zone_says_what_to_install() -> None:
    assert cron("@daily").next(datetime(2026, 9, 26, tzinfo=UTC)) == datetime(2026, 9, 27, tzinfo=UTC)
    with pytest.raises(ScheduleError, match="this machine has no zone data; install the package tzdata"):
        load_zone("Europe/Paris")
    assert zone_data_version() == "none"


# the server's own zone


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("Europe/Paris", "Europe/Paris"),
        (":Pacific/Apia", "Pacific/Apia"),
        ("", "UTC"),
        ("UTC", "UTC"),
        (":Etc/UTC", "Etc/UTC"),
    ],
)
def test_local_is_the_zone_that_tz_names(setting: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", setting)
    assert load_zone("Local").name == name


def test_local_is_a_real_zone_and_not_the_offset_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Paris")
    nightly = cron("30 2 * * *", tz="Local")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert nightly == cron("30 2 * * *", "Europe/Paris")
    assert nightly.next(datetime(2026, 10, 24, 12, tzinfo=UTC)) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert nightly.next(datetime(2026, 10, 25, 12, tzinfo=UTC)) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize("setting", ["CET-1CEST,M3.5.0,M10.5.0/3", "Mars/Olympus_Mons", "/nowhere/at/all"])
def test_local_is_refused_when_tz_names_no_zone(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", setting)
    with pytest.raises(ScheduleError, match=f'"Local" is what the variable TZ names: .*{re.escape(setting)}'):
        cron("@daily", "Local")


def zone_file(name: str) -> Traversable:
    """Where zoneinfo reads a zone from."""
    for root in zoneinfo.TZPATH:
        if (Path(root) / name).is_file():
            return Path(root) / name
    return resources.files("tzdata") / "zoneinfo" / name


@pytest.fixture
def system_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's zone file as the tests see it; there is none yet."""
    path = tmp_path / "localtime"
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr(_zones, "_SYSTEM_ZONE", path)
    return path


def test_local_without_tz_is_the_zone_the_system_file_links_to(system_zone: Path) -> None:
    target = system_zone.parent / "share" / "zoneinfo" / "Europe" / "Paris"
    target.parent.mkdir(parents=True)
    target.write_bytes(zone_file("Europe/Paris").read_bytes())
    system_zone.symlink_to(target)
    assert cron("@daily", "Local") == cron("@daily", "Europe/Paris")


def test_local_without_tz_may_link_to_utc_without_zone_data(system_zone: Path) -> None:
    system_zone.symlink_to("/nowhere/zoneinfo/Etc/UTC")
    assert load_zone("Local").name == "Etc/UTC"


def test_local_without_a_name_is_read_from_the_file_itself(system_zone: Path) -> None:
    system_zone.write_bytes(zone_file("Europe/Paris").read_bytes())
    nightly = cron("30 2 * * *", "Local")
    assert nightly.tz == "Local"
    assert nightly.next(datetime(2027, 3, 27, 12, tzinfo=UTC)) == datetime(2027, 3, 28, 1, tzinfo=UTC)


def test_local_is_read_from_a_file_that_tz_names(
    system_zone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system_zone.write_bytes(zone_file("Europe/Paris").read_bytes())
    own = tmp_path / "own"
    own.write_bytes(zone_file("Asia/Kolkata").read_bytes())
    monkeypatch.setenv("TZ", f":{own}")
    assert load_zone("Local").reading(EPOCH) == datetime(1970, 1, 1, 5, 30)


@pytest.mark.skipif(os.name == "nt", reason="there is no such file on Windows")
def test_local_is_utc_on_a_system_that_was_never_told_its_zone(system_zone: Path) -> None:
    assert not system_zone.exists()
    assert load_zone("Local").name == "UTC"


def test_local_is_refused_when_the_system_file_holds_no_zone(system_zone: Path) -> None:
    system_zone.write_text("Europe/Paris")
    with pytest.raises(ScheduleError, match="holds no time zone: name the zone, or set TZ to its name"):
        load_zone("Local")


# changes


@cache
def kept_changes(name: str) -> tuple[Change, ...]:
    """The changes written in a zone's file (RFC 8536), read here by hand since zoneinfo does not tell them."""
    data = zone_file(name).read_bytes()

    def counts(at: int) -> tuple[int, ...]:
        return struct.unpack(">6l", data[at + 20 : at + 44])

    isut, isstd, leap, times, types, chars = counts(0)
    start = 44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isut  # the second block has 64-bit times
    _, _, _, times, types, _ = counts(start)
    start += 44
    instants = struct.unpack(f">{times}q", data[start : start + 8 * times])
    start += 8 * times
    chosen = data[start : start + times]
    start += times
    offsets = [struct.unpack(">l", data[start + 6 * n : start + 6 * n + 4])[0] for n in range(types)]
    found: list[Change] = []
    before = offsets[0]
    for instant, after in zip(instants, (offsets[number] for number in chosen), strict=True):
        if after != before and instant > -(2**35):
            at = EPOCH + timedelta(seconds=instant)
            found.append(Change(at, at + timedelta(seconds=before), at + timedelta(seconds=after)))
        before = after
    return tuple(found)


def check_changes(name: str, start: datetime) -> int:
    zone, kept = load_zone(name), [change for change in kept_changes(name) if change.at > start]
    for change in kept:
        found = zone.first_change(start, change.at)
        assert found == change, name
        start = change.at
    return len(kept)


def test_changes_are_found_as_the_zone_data_has_them() -> None:
    names = (
        "Europe/Paris America/Sao_Paulo Asia/Gaza Africa/Casablanca Australia/Lord_Howe Pacific/Apia Antarctica/Troll"
    )
    assert sum(check_changes(name, datetime(1970, 1, 1)) for name in names.split()) > 300


@pytest.mark.long
def test_changes_of_every_zone_are_found_as_the_zone_data_has_them() -> None:
    assert sum(check_changes(name, datetime(1900, 1, 1)) for name in zoneinfo.available_timezones()) > 10_000


def test_no_zone_changes_twice_between_two_probes() -> None:
    changes = [kept_changes(name) for name in zoneinfo.available_timezones()]
    shortest = min(later.at - earlier.at for found in changes for earlier, later in pairwise(found))
    assert shortest > _zones._PROBE_EVERY


def test_a_zone_without_changes_has_none() -> None:
    for name in ("UTC", "Asia/Kolkata", "Etc/GMT+5"):
        assert load_zone(name).first_change(datetime(2026, 1, 1), datetime(2034, 1, 1)) is None


def test_a_change_at_the_turn_of_the_year_is_found_once() -> None:
    # As 1986 began, 18:30 before in UTC, Kathmandu went from 5:30 ahead to 5:45.
    kathmandu = load_zone("Asia/Kathmandu")
    change = Change(datetime(1985, 12, 31, 18, 30), datetime(1986, 1, 1), datetime(1986, 1, 1, 0, 15))
    assert kathmandu.first_change(datetime(1985, 6, 1), datetime(1987, 1, 1)) == change
    assert kathmandu.first_change(change.at, datetime(1987, 1, 1)) is None
    assert kathmandu.first_change(datetime(1985, 6, 1), change.at - timedelta(seconds=1)) is None


# the version of the data


def test_the_version_of_the_systems_data_is_told(tmp_path: Path) -> None:
    (tmp_path / "tzdata.zi").write_text("# version 2025b\n# This zic input file is in the public domain.\n")
    zoneinfo.reset_tzpath([tmp_path])
    assert zone_data_version() == "2025b"


def test_the_version_of_a_mac_or_bsd_is_told(tmp_path: Path) -> None:
    (tmp_path / "+VERSION").write_text("2024a\n")
    zoneinfo.reset_tzpath(["/nowhere/zoneinfo", tmp_path])
    assert zone_data_version() == "2024a"


def test_data_that_does_not_tell_its_version_is_known_by_its_hash(tmp_path: Path) -> None:
    found: list[str] = []
    for folder, name in (("one", "Europe/Paris"), ("same", "Europe/Paris"), ("other", "Asia/Tokyo")):
        target = tmp_path / folder / "Europe" / "Paris"
        target.parent.mkdir(parents=True)
        target.write_bytes(zone_file(name).read_bytes())
        zoneinfo.reset_tzpath([tmp_path / folder])
        found.append(zone_data_version())
        zoneinfo.reset_tzpath()
    assert found[0] == found[1] != found[2]
    assert all(re.fullmatch("sha256:[0-9a-f]{12}", version) for version in found)


def test_the_package_is_named_when_the_system_has_no_data(tmp_path: Path) -> None:
    zoneinfo.reset_tzpath([tmp_path, "/nowhere/zoneinfo"])
    assert zone_data_version() == import_module("tzdata").IANA_VERSION


def test_this_process_knows_the_version_of_its_own_data() -> None:
    assert re.fullmatch(r"20\d\d[a-z]+\S*|sha256:[0-9a-f]{12}", zone_data_version())


# the zone of the process


def check_under_other_zones(*arguments: str) -> None:
    """Run tests of schedules in processes of their own, each in another zone."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    runs = {
        zone: subprocess.Popen(
            command, cwd=Path(__file__).parent, env={**os.environ, "TZ": zone}, stdout=subprocess.PIPE, text=True
        )
        for zone in ("Europe/London", "Pacific/Apia", "UTC")
    }
    for zone, run in runs.items():
        report, _ = run.communicate()
        assert run.returncode == 0, f"under TZ={zone}:\n{report}"


@pytest.mark.processes
def test_schedules_are_the_same_whatever_zone_the_process_is_in() -> None:
    check_under_other_zones("test_schedule.py", "test_cron.py", "-k", "not beat")


@pytest.mark.long
@pytest.mark.processes
def test_the_walk_is_the_same_whatever_zone_the_process_is_in() -> None:
    check_under_other_zones("test_schedule.py", "test_cron_property.py")
