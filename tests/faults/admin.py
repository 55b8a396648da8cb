"""What an administrator does to the connections of a database."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from redis import Redis

from tests.servers import mysql

__all__ = ["end_some_connections", "old_snapshot"]


def end_some_connections(url: str) -> None:
    """End about half of a database's connections, but for this one."""
    match urlsplit(url).scheme:
        case "postgresql":
            with psycopg.connect(url, autocommit=True) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5"
                )
        case "mysql":
            with mysql.connect(url) as admin, admin.cursor() as cursor:
                cursor.execute(
                    "SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id()"
                )
                for (id,) in cursor.fetchall():
                    if random.random() < 0.5:
                        cursor.execute("KILL %s", (id,))
        case _:
            with Redis.from_url(url) as admin:
                database = urlsplit(url).path.lstrip("/")
                for client in admin.client_list():
                    if client["db"] == database and client["id"] != str(admin.client_id()) and random.random() < 0.5:
                        admin.client_kill_filter(_id=client["id"])


@contextmanager
def old_snapshot(url: str) -> Generator[None]:
    """A transaction that goes on seeing the database as it is now, as a long report or a forgotten shell does."""
    if urlsplit(url).scheme == "postgresql":
        with psycopg.connect(url) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute("SELECT count(*) FROM fastqueue_jobs")
            yield
    else:
        with mysql.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            cursor.execute("SELECT count(*) FROM fastqueue_jobs")
            yield
