"""A visitor of a web server, and the page it asks for: `python -m tests.benchmarks.visitor PORT` prints its waits."""

from __future__ import annotations

import http.client
import json
import sys
import time
from typing import Any

__all__ = ["hello"]

SECONDS = 1.0


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI app that says hello."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


def main() -> None:
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    waits: list[float] = []
    until = time.perf_counter() + SECONDS
    while (begun := time.perf_counter()) < until:
        connection.request("GET", "/")
        connection.getresponse().read()
        waits.append((time.perf_counter() - begun) * 1000)
    print(json.dumps(waits))


if __name__ == "__main__":
    main()
