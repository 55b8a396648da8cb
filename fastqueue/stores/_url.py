"""A store's URL in its parts, or an error that shows nothing of it: what was read amiss may be a password."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from fastqueue.errors import OptionError

__all__ = ["split_url"]


def split_url(what: str, url: str) -> SplitResult:
    """The parts of a URL; PostgreSQL's may name several hosts, with commas between them.

    Raises:
        OptionError: it cannot be read, or a "#", "/" or "?" of its password ends the host; the message names `what`.
    """
    try:
        parts = urlsplit(url)
        _, at, place = parts.netloc.rpartition("@")
        ports = [host.rpartition("]")[2].partition(":")[2] for host in place.split(",")]
        if any(int(port) > 65535 for port in ports if port) or (
            place and not at and "@" in parts.path + parts.fragment
        ):
            raise ValueError
    except ValueError:
        raise OptionError(
            f"{what} cannot be read: look at its host and port, and write signs such as #, /, ? and @ in a user or "
            "password as %23, %2F, %3F and %40"
        ) from None
    return parts
