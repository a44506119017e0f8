# SPDX-License-Identifier: Apache-2.0
"""The samples of examples/duda that use databases, with real database servers."""
import json
import shutil

import pytest

import postgres_server
import redis_server
import services
from contest import data
from samples import needs, starter

pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here")


@pytest.fixture
def start(monkey, tmp_path, tmp_path_factory):
    return starter(monkey, tmp_path, tmp_path_factory)


@needs("postgres", "store")
@pytest.mark.skipif(not postgres_server.is_usable(), reason="PostgreSQL is not installed")
def test_techempower_sample_follows_the_rules(start):
    """Checks the rules of TechEmpower's tests with the code of the benchmark tools (tools/contest)."""
    postgres = postgres_server.Postgres()
    try:
        server = start("techempower", conf={"postgresql:///techempower?host=/run/postgresql": postgres.database()})
        for path in ("/db", "/queries?queries=20", "/fortunes", "/updates?queries=20", "/cached-queries?count=20"):
            assert data.check(server.port, path, lambda row: int(
                postgres.sql(f"SELECT randomnumber FROM world WHERE id = {row}", "d1"))) is None, server.err.text + server.get(path).text
        assert postgres.sql("SELECT count(*), min(id), max(id) FROM world", "d1") == "10000|1|10000"
        answer = server.get("/json")
        assert json.loads(answer.text) == {"message": "Hello, World!"} and answer["Content-Type"] == "application/json"
        answer = server.get("/plaintext")
        assert answer.text == "Hello, World!" and answer["Content-Type"].startswith("text/plain")
        # The cache keeps the old values of changed rows, and does not query the database.
        seen = {row["id"]: row["randomNumber"] for _ in range(30) for row in json.loads(server.get("/cached-queries?count=500").text)}
        postgres.sql("UPDATE world SET randomnumber = 10001", "d1")
        again = [row for row in json.loads(server.get("/cached-queries?count=500").text) if row["id"] in seen]
        assert len(again) > 200 and all(row["randomNumber"] == seen[row["id"]] for row in again)
    finally:
        postgres.stop()
    assert server.get("/db").status >= 500


@needs("redis")
@pytest.mark.skipif(not redis_server.PROGRAM, reason="Redis is not installed")
def test_motd_sample_stores_the_message_in_redis(start):
    redis = redis_server.Redis()
    try:
        server = start("motd", conf={"127.0.0.1:6379": f"unix:{redis.socket}"})
        assert "There is no message today." in server.get("/page").text
        body = json.dumps({"text": data.MESSAGE}).encode()
        assert server.get("/page", "PUT", [("Content-Type", "application/json")], body).status == 204
        assert data.check(server.port, "/page") is None
        assert server.get("/page", "PUT", [("Content-Type", "application/json")], b'{"text": ""}').status == 422
    finally:
        redis.stop()
