# SPDX-License-Identifier: Apache-2.0
"""server.py PORT ROOT [POSTGRES-FOLDER REDIS-SOCKET]: TechEmpower's database tests, and a page with one Redis GET. uvicorn with
uvloop and httptools, asyncpg (which prepares its statements), redis-py with hiredis; one process, ASGI without a framework."""
import html
import json
import mimetypes
import random
import sys
import urllib.parse
from pathlib import Path

import asyncpg
import redis.asyncio
import uvicorn

ROWS = 10000
READ = "SELECT id, randomnumber FROM world WHERE id = $1"
UPDATE = ("UPDATE world SET randomnumber = new.number FROM (SELECT unnest($1::int[]) AS id, unnest($2::int[]) AS number ORDER BY 1) "
          "AS new WHERE world.id = new.id")


class Service:
    def __init__(self, root, folder, redis_path):
        self.root, self.folder, self.redis_path = root, folder, redis_path
        self.routes = {"/json": self.json, "/plaintext": self.plaintext, "/db": self.db, "/queries": self.queries,
                       "/fortunes": self.fortunes, "/updates": self.updates, "/cached-queries": self.cached, "/page": self.page}

    async def begin(self):
        self.pool = await asyncpg.create_pool(host=self.folder, user="contest", database="postgres", min_size=16, max_size=16)
        self.cache = {row["id"]: {"id": row["id"], "randomNumber": row["randomnumber"]}
                      for row in await self.pool.fetch("SELECT id, randomnumber FROM world")}
        self.redis = self.redis_path and redis.asyncio.Redis(unix_socket_path=self.redis_path)

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            if self.folder:
                await self.begin()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        route = self.routes.get(scope["path"])
        kind, body = await route(scope["query_string"]) if route else self.file(scope["path"])
        await send({"type": "http.response.start", "status": 404 if body is None else 200,
                    "headers": [(b"content-type", kind), (b"content-length", str(len(body or b"")).encode())]})
        await send({"type": "http.response.body", "body": body or b""})

    def file(self, path):
        place = (self.root / path.lstrip("/")).resolve()
        kind = mimetypes.guess_type(place.name)[0] or "application/octet-stream"
        return kind.encode(), place.read_bytes() if place.is_relative_to(self.root) and place.is_file() else None

    async def json(self, _query):
        return as_json({"message": "Hello, World!"})

    async def plaintext(self, _query):
        return b"text/plain", b"Hello, World!"

    async def read(self, n):
        async with self.pool.acquire() as connection:
            statement = await connection.prepare(READ)
            rows = [await statement.fetchrow(random.randint(1, ROWS)) for _ in range(n)]
        return [{"id": row[0], "randomNumber": row[1]} for row in rows]

    async def db(self, _query):
        return as_json((await self.read(1))[0])

    async def queries(self, query):
        return as_json(await self.read(asked(query, "queries")))

    async def fortunes(self, _query):
        rows = [(row[0], row[1]) for row in await self.pool.fetch("SELECT id, message FROM fortune")]
        rows.append((0, "Additional fortune added at request time."))
        rows.sort(key=lambda row: row[1])
        table = "".join(f"<tr><td>{number}</td><td>{html.escape(message)}</td></tr>" for number, message in rows)
        return b"text/html; charset=utf-8", (
            "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>"
            f"<tr><th>id</th><th>message</th></tr>{table}</table></body></html>").encode()

    async def updates(self, query):
        rows = sorted(await self.read(asked(query, "queries")), key=lambda row: row["id"])
        for row in rows:
            row["randomNumber"] = random.randint(1, ROWS)
        last = {row["id"]: row["randomNumber"] for row in rows}  # if a row occurs twice, the last one counts
        await self.pool.execute(UPDATE, list(last), list(last.values()))
        return as_json(rows)

    async def cached(self, query):
        return as_json([self.cache[random.randint(1, ROWS)] for _ in range(asked(query, "count"))])

    async def page(self, _query):
        message = (await self.redis.get("message")).decode()
        return b"text/html; charset=utf-8", f"<!DOCTYPE html><p>{html.escape(message)}</p>\n".encode()


def asked(query, name):
    value = urllib.parse.parse_qs(query.decode()).get(name, ["1"])[0]
    return min(max(int(value), 1), 500) if value.isdecimal() else 1


def as_json(value):
    return b"application/json", json.dumps(value, separators=(",", ":")).encode()


if __name__ == "__main__":
    port, root, folder, redis_path = (*sys.argv[1:], "", "")[:4]
    uvicorn.run(Service(Path(root).resolve(), folder, redis_path), host="127.0.0.1", port=int(port), loop="uvloop", http="httptools", log_level="error",
                access_log=False, backlog=4096, timeout_keep_alive=65)
