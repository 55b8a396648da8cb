"""The conformance kit: every promise of `fastqueue.store`, as a check that a store passes or fails.

With pytest (pytest-asyncio in auto mode), a store's author writes one fixture, which gives a factory of store objects
on one new and empty database. Each call gives another store object on the same jobs, as another process would have:

    from functools import partial
    from fastqueue.testing import StoreContract

    class TestSQLite(StoreContract):
        processes = True  # the factory can be pickled: run the races from several processes too

        @pytest.fixture
        async def make_store(self, tmp_path):
            return partial(SQLiteStore, tmp_path / "jobs.db")

    pytest tests/test_conformance.py            # everything, the random tests in their short form
    FASTQUEUE_KIT_ROUNDS=50 pytest tests/test_conformance.py -k "tasks or processes"   # the races, 50 times each
    pytest tests/test_conformance.py -m long    # the random tests in their long form

Without pytest, the same database is made by an async context manager:

    @asynccontextmanager
    async def fresh():
        with TemporaryDirectory() as folder:
            yield partial(SQLiteStore, Path(folder) / "jobs.db")

    print(asyncio.run(exercise(fresh, processes=True)))

A check is named after its clause: `test_b7_...` is clause B7. What a store neither keeps nor has is skipped, with the
reason. The store is opened and closed by the kit.
"""
