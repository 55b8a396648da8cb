"""The Redis store, one module for each thing it does.

- `store`: the store itself; each verb is a script of the folder `lua`, whose `_jobs.lua` tells what is kept where.
- `_access`: the connections, and how scripts are run and errors told.
- `_server`, `_inspects`: what a server must be, and what is to be said of it.
- `_rows`, `_address`: jobs as the scripts have them; the URL.
- `_faculties`, `_wakes`, `_moves`: what it can do beyond the verbs.
"""

from fastqueue.stores.redis.store import RedisStore

__all__ = ["RedisStore"]
