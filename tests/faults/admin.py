"""What an administrator does to the connections of a database, and what others do who use them up."""

from __future__ import annotations

import random
import time
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql
from redis import Redis
from redis.exceptions import RedisError

from tests.servers import mysql

__all__ = ["end_some_connections", "old_snapshot", "take_every_connection"]

REFUSED = (psycopg.OperationalError, pymysql.OperationalError, RedisError)


def end_some_connections(url: str) -> None:
    """End about half of a database's connections."""
    with closing(_connect(url)) as admin:
        for id in _others(admin, url, {_id(admin)}):
            if random.random() < 0.5:
                _end(admin, id)


def take_every_connection(url: str, seconds: float) -> None:
    """Take every connection that a server has to give, for so many seconds; others on the database lose theirs."""
    with ExitStack() as around:
        taken = {_id(admin := around.enter_context(closing(_connect(url))))}
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                taken.add(_id(around.enter_context(closing(_connect(url)))))
            except REFUSED:
                for id in _others(admin, url, taken):
                    _end(admin, id)
                time.sleep(0.01)


def _connect(url: str) -> Any:
    match urlsplit(url).scheme:
        case "postgresql":
            return psycopg.connect(url, autocommit=True)
        case "mysql":
            return mysql.connect(url)
        case _:
            return Redis.from_url(url, single_connection_client=True)


def _id(connection: Any) -> int:
    """What its server knows a connection by."""
    match connection:
        case psycopg.Connection():
            return connection.info.backend_pid
        case Redis():
            return int(connection.client_id())
        case _:
            return int(connection.thread_id())


def _others(admin: Any, url: str, own: set[int]) -> set[int]:
    """The connections to a database that are not our own."""
    match admin:
        case psycopg.Connection():
            rows = admin.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()").fetchall()
            found = {pid for (pid,) in rows}
        case Redis():
            database = urlsplit(url).path.lstrip("/")
            found = {int(client["id"]) for client in admin.client_list() if client["db"] == database}
        case _:
            with admin.cursor() as cursor:
                cursor.execute("SELECT id FROM information_schema.processlist WHERE db = database()")
                found = {id for (id,) in cursor.fetchall()}
    return found - own


def _end(admin: Any, id: int) -> None:
    """End a connection, if it is still there."""
    match admin:
        case psycopg.Connection():
            admin.execute("SELECT pg_terminate_backend(%s)", (id,))
        case Redis():
            admin.client_kill_filter(_id=str(id))
        case _:
            with suppress(pymysql.OperationalError), admin.cursor() as cursor:
                cursor.execute("KILL %s", (id,))


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
