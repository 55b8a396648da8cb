"""What is to be said of the file that the SQLite store works with."""

from __future__ import annotations

import os
import re
from pathlib import Path

from fastqueue.finding import Finding, Inspects
from fastqueue.stores.sqlite._access import Access
from fastqueue.stores.sqlite._database import Database

__all__ = ["SQLiteInspects", "file_system_of"]

_MOUNTS = Path("/proc/self/mounts")

_ON_A_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|afs|ceph|gluster\w*|lustre|ocfs2|fuse\.\w*(ssh|gluster|s3|rclone)\w*"
)


class SQLiteInspects(Inspects):
    """Looks at how the file is written, and at the disk that it is on."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def inspect(self) -> list[Finding]:
        mode, synchronous = await self._access.read(Database.writes_by)
        return [_journal(mode, synchronous), _disk(self._access.path, _MOUNTS)]


def _journal(mode: str, synchronous: str) -> Finding:
    if mode != "wal":
        return Finding.error(
            "journal",
            f"the file is in mode {mode!r}, so that reading and writing lock each other out",
            "put it on a disk of this machine: this one's file system does not let processes share memory",
        )
    if synchronous == "NORMAL":
        return Finding("journal", "WAL, synchronous NORMAL: the last pushes may be lost in a power cut")
    return Finding("journal", f"WAL, synchronous {synchronous}")


def _disk(path: str, mounts: Path) -> Finding:
    kind = file_system_of(path, mounts)
    if kind is not None and _ON_A_NETWORK.fullmatch(kind):
        return Finding.error(
            "disk",
            f"{path} is on a file system of a network, {kind}: processes on two machines would damage it",
            "put it on a disk of this machine, or use a database server",
        )
    return Finding("disk", f"{path} is on {kind or 'a file system that this system does not name'}")


def file_system_of(path: str, mounts: Path) -> str | None:
    """The sort of file system that a path is on, by a table of mounts as Linux has it; None: there is no table."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    real, found, kind = os.path.realpath(path), "", None
    for line in lines:
        _, place, sort, *_ = line.split(" ")
        place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), place)
        # The later of two mounts at one place hides the earlier.
        if (real == place or real.startswith(place.rstrip("/") + "/")) and len(place) >= len(found):
            found, kind = place, sort
    return kind
