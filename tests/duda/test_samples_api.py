# SPDX-License-Identifier: Apache-2.0
"""The sample examples/duda/api: what a JSON API needs in production."""
import base64
import hashlib
import hmac
import json
import re
import time

import pytest

from proc import wait_until
from samples import CAN_RUN, needs, starter

pytestmark = [CAN_RUN, needs("sqlite", "auth", "jwt")]
JSON = [("Content-Type", "application/json")]
JWT_KEY = "a secret that the issuer and the API share"
ORIGIN = [("Origin", "https://app.example.org")]


@pytest.fixture
def start(monkey, tmp_path, tmp_path_factory):
    return starter(monkey, tmp_path, tmp_path_factory)


@pytest.fixture
def api(start):
    server = start("api")  # its secrets are in the file .env
    wait_until(lambda: server.get("/ready").status == 200, "the database responds")
    return server


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def token(roles=("editor",), **claims):
    claims = {"iss": "https://login.example.org", "aud": "books", "sub": "ana", "exp": int(time.time()) + 600, "roles": list(roles), **claims}
    text = encode(b'{"alg":"HS256"}') + b"." + encode(json.dumps(claims).encode())
    return (text + b"." + encode(hmac.new(JWT_KEY.encode(), text, hashlib.sha256).digest())).decode()


def key_of(server, user="ana"):
    made = server.get("/api/keys", "POST", [("Authorization", f"Bearer {token(sub=user)}")])
    assert made.status == 201, made.text
    return [("X-API-Key", json.loads(made.text)["key"])]


def add(server, key, n, first=1):
    for i in range(first, first + n):
        made = server.get("/api/books", "POST", JSON + key, json.dumps({"title": f"Part {i:02}", "author": "N. N.", "year": 2000}).encode())
        assert made.status == 201, made.text
    return made


def links(answer):
    return {rel: target for line in answer.all("Link") for target, rel in re.findall(r'<([^>]+)>; rel="(\w+)"', line)}


def titles(answer):
    return [book["title"] for book in json.loads(answer.text)]


def test_api_sample_lists_pages(api):
    first = api.get("/api/books?per_page=2")
    assert titles(first) == ["Around the Moon", "From the Earth to the Moon"] and first["X-Total-Count"] == "3"
    assert links(first) == {"next": "/api/books?per_page=2&page=2", "last": "/api/books?per_page=2&page=2"}
    second = api.get(links(first)["next"])
    assert titles(second) == ["The Time Machine"]
    assert links(second) == {rel: f"/api/books?per_page=2&page={n}" for rel, n in (("first", 1), ("prev", 1), ("last", 2))}
    assert titles(api.get("/api/books?q=MOON")) == ["Around the Moon", "From the Earth to the Moon"]
    assert titles(api.get("/api/books?q=%25")) == titles(api.get("/api/books?q=m__n")) == [], "wildcards match only themselves"
    for bad in ("page=0", "page=x", "per_page=101", "per_page=0"):
        answer = api.get("/api/books?" + bad)
        assert answer.status == 400 and answer["Content-Type"] == "application/problem+json", bad


def test_api_sample_lists_all_books_with_cursors(api):
    for user in ("ana", "bo", "cy"):
        add(api, key_of(api, user), 5)
    seen, target, n_pages = [], "/api/books/all?x=y", 0
    while target:
        answer = api.get(target)
        seen += [book["id"] for book in json.loads(answer.text)]
        target, n_pages = links(answer).get("next"), n_pages + 1
        assert target is None or target.startswith("/api/books/all?x=y&after=")
    assert seen == list(range(1, 19)) and n_pages == 2
    assert api.get("/api/books/all?after=abc").status == 400


def test_api_sample_authenticates(api):
    assert api.get("/api/keys", "POST").status == 401
    assert api.get("/api/keys", "POST", [("Authorization", f"Bearer {token(exp=1)}")]).status == 401
    assert api.get("/api/keys", "POST", [("Authorization", f"Bearer {token(roles=['reader'])}")]).status == 403
    assert api.get("/api/books", "POST", JSON, b"{}").status == 401
    assert api.get("/api/books", "POST", [*JSON, ("X-API-Key", "books_x")], b"{}").status == 401
    assert api.get("/api/books", "POST", JSON + key_of(api), b"{}").status == 422


def test_api_sample_lets_the_administrator_delete_keys(api):
    def delete(password):
        return api.get("/api/keys/ana", "DELETE", [("Authorization", "Basic " + base64.b64encode(f"admin:{password}".encode()).decode())])

    key = key_of(api)
    assert api.get("/api/keys/ana", "DELETE")["WWW-Authenticate"].startswith('Basic realm="books"')
    assert delete("wrong").status == 401 and api.get("/api/books", "POST", JSON + key, b"{}").status == 422
    assert delete("correct horse").status == 204 and api.get("/api/books", "POST", JSON + key, b"{}").status == 401


def test_api_sample_adds_books_and_reports_them(api):
    made = add(api, key_of(api), 1)
    assert made["Location"] == "/api/books/4" and json.loads(made.text)["id"] == 4
    assert json.loads(api.get(made["Location"]).text)["title"] == "Part 01"
    api.err.wait_for(r"book added book=4 user=\"?ana")
    api.err.wait_for(r"book indexed book=4 title=\"Part 01\"")
    numbers = api.get("/metrics").text
    assert 'books_added_total{user="ana"} 1' in numbers and re.search(r'books_call_seconds_count\{kind="write"\} \d', numbers), numbers


def test_api_sample_limits_the_rate_of_a_user(api):
    key = key_of(api)
    last = add(api, key, 5)
    assert (last["RateLimit-Limit"], last["RateLimit-Remaining"]) == ("5", "0")
    over = api.get("/api/books", "POST", JSON + key, b"{}")
    assert over.status == 429 and 1 <= int(over["Retry-After"]) <= 60 and over["Content-Type"] == "application/problem+json"


def test_api_sample_allows_other_origins(api):
    asked = api.get("/api/books", "OPTIONS", [*ORIGIN, ("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "x-api-key")])
    assert asked.status == 204 and asked["Access-Control-Allow-Origin"] == ORIGIN[0][1] and "X-API-Key" in asked["Access-Control-Allow-Headers"]
    for path, status in (("/api/books", 200), ("/api/nothing", 404), ("/api/books/77", 404)):
        answer = api.get(path, fields=ORIGIN)
        assert answer.status == status and answer["Access-Control-Allow-Origin"] == ORIGIN[0][1] and "Link" in answer["Access-Control-Expose-Headers"]
    assert api.get("/api/books", fields=[("Origin", "https://evil.example")]).get("Access-Control-Allow-Origin") is None


def test_api_sample_exports_a_file_with_ranges(api):
    whole = api.get("/api/books.csv")
    assert whole["Content-Disposition"] == 'attachment; filename="books.csv"' and whole.text.count("\r\n") == 3
    part = api.get("/api/books.csv", fields=[("Range", "bytes=4-7"), ("If-Range", whole["ETag"])])
    assert (part.status, part.text) == (206, whole.text[4:8])
    assert api.get("/api/books.csv", fields=[("If-None-Match", whole["ETag"])]).status == 304
    assert api.get("/api/books", fields=[("If-None-Match", api.get("/api/books")["ETag"])]).status == 304


def test_api_sample_saves_a_cover(api, tmp_path):
    key, picture = key_of(api), bytes(range(256)) * 9000
    assert api.get("/api/books/1/cover", "PUT", key, picture).status == 201
    assert (tmp_path / "api/covers/1.png").read_bytes() == picture
    assert api.get("/api/books/1/cover", "PUT", key, b"other").status == 409
    assert api.get("/api/books/9/cover", "PUT", key, b"x").status == 404
    assert api.get("/api/books/2/cover", "PUT", key, bytes((8 << 20) + 1)).status == 413
