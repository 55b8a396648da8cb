"""PgBouncer in transaction mode, in front of a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests.servers.throwaway import find_program, free_port, sandbox


def system_binaries() -> Path | None:
    """This machine's PgBouncer."""
    return find_program("pgbouncer")


@contextmanager
def launched(program: Path, server: str, *, connections: int) -> Generator[str]:
    """A pooler of so many connections to each database of a server; the DSN of the server's own database through it."""
    parts = urlsplit(server)
    with sandbox() as box:
        port = free_port()
        settings = box.folder / "pgbouncer.ini"
        settings.write_text(
            "[databases]\n"
            f"* = host={parts.hostname} port={parts.port or 5432} user={parts.username}\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            f"pool_mode = transaction\ndefault_pool_size = {connections}\n"
        )
        dsn = parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl()
        with box.serve(program, settings, answers=lambda: psycopg.connect(dsn, connect_timeout=5).close()):
            yield dsn
