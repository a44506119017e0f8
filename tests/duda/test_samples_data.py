# SPDX-License-Identifier: Apache-2.0
"""The samples of examples/duda that use tables, images, mail, memcached, subprocesses or features of PostgreSQL, with
real servers."""
import csv
import email
import email.policy
import gzip
import io
import json
import re
import shutil

import pytest
import zxingcpp

import mail_server
import memcached_server
import postgres_server
from proc import wait_until
from samples import CAN_RUN, UserAgent, needs, starter

pytestmark = CAN_RUN
CSV, GZIP = [("Content-Type", "text/csv; charset=utf-8")], [("Content-Type", "application/gzip")]


@pytest.fixture
def start(monkey, tmp_path, tmp_path_factory):
    return starter(monkey, tmp_path, tmp_path_factory)


def read_qr(svg):
    """Decodes a QR code that is rendered with four pixels per module."""
    edge, scale = int(re.search(r'viewBox="0 0 (\d+)', svg)[1]), 4
    lines = [bytearray(b"\xff" * edge * scale) for _ in range(edge)]
    for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", svg):
        lines[int(y)][int(x) * scale:(int(x) + int(width)) * scale] = bytes(int(width) * scale)
    picture = b"".join(bytes(line) * scale for line in lines)
    (code,) = zxingcpp.read_barcodes(memoryview(picture).cast("B", (edge * scale, edge * scale)))
    return code.text


@needs("kv", "gzip", "qr", "small")
def test_expenses_sample_imports_and_draws_a_table(start):
    server = start("expenses")
    assert "There are no expenses." in server.get("/").text
    table = b'rent,800\r\n"food, ""good""",312.5\n=1+1,3\n<b>,4\n'
    assert server.get("/", "POST", GZIP, gzip.compress(table)).status == 204
    page = server.get("/").text
    assert page.count("<svg") == 2 and "food, &quot;good&quot;" in page and "&lt;b&gt;" in page and "<b>" not in page
    assert read_qr(page[page.rindex("<svg"):]) == "http://localhost/expenses.csv", "the host name of the request"
    answer = server.get("/expenses.csv")
    assert answer["Content-Type"].startswith("text/csv") and list(csv.reader(io.StringIO(answer.text, newline=""))) == [
        ["rent", "800.00"], ['food, "good"', "312.50"], ["'=1+1", "3.00"], ["<b>", "4.00"]]
    packed = server.get("/expenses.csv.gz")
    assert packed["Content-Type"] == "application/gzip" and gzip.decompress(packed.body) == answer.body
    assert server.get("/", "POST", CSV, b"water,20\n").status == 204
    assert server.get("/expenses.csv").text == "water,20.00\r\n"
    for wrong, message in ((b"a,1\nb\n", "line 2: a row must have a name and an amount"), (b"a,1,2\n", "line 1: a row has more than two"),
                        (b"a,-1\n", "line 1: the second cell must be an amount"), (b'a,1\n"b', "line 2: "), (b"a,1e9x\n", "amount"),
                        (b"a,1\n" * 101, "line 101: there are too many rows")):
        answer = server.get("/", "POST", CSV, wrong)
        assert answer.status == 422 and message in json.loads(answer.text)["detail"], answer.text
    assert server.get("/", "POST", GZIP, b"no gzip").status == 422
    assert server.get("/", "POST", GZIP, gzip.compress(bytes(1 << 20))).status == 413, "a kilobyte that expands to a megabyte"
    assert server.get("/", "POST", [("Content-Type", "text/plain")], b"a,1\n").status == 415
    assert server.get("/expenses.csv").text == "water,20.00\r\n", "rejected requests have changed nothing"


@needs("jobs", "kv", "smtp")
def test_contact_sample_sends_mail(start):
    with mail_server.boxes() as box:
        mail = box()
        server = start("contact", conf={"127.0.0.1:25": mail.address})
        agent = UserAgent(server)
        assert "Write to us" in agent.get("/").text
        answer = agent.post("/", address="ana@example.org", text="Hello,\n.\nGrüße")
        assert (answer.status, answer["Location"]) == (303, "/?sent=1"), answer.text
        assert "is on its way" in agent.get("/?sent=1").text
        wait_until(lambda: mail.got, "the mail has arrived")
        sender, to, content = mail.got[0]
        read = email.message_from_bytes(content, policy=email.policy.default)
        assert (sender, to, read["Reply-To"]) == ("site@example.org", ["owner@example.org"], "ana@example.org")
        assert read.get_content().splitlines() == ["Hello,", ".", "Grüße"]
        for address in ("ana", "ana@example.org\nBcc: eve@example.org", "a@b.org,c@d.org", ""):
            answer = agent.post("/", address=address, text="x")
            assert answer.status == 422 and "Please give your address" in answer.text, address
        assert agent.post("/", address="ana@example.org", text="").status == 422
        forged = server.get("/", "POST", [("Content-Type", "application/x-www-form-urlencoded")], b"address=a@example.org&text=x")
        assert forged.status == 403 and len(mail.got) == 1


@needs("memcached")
@pytest.mark.skipif(not memcached_server.PROGRAM, reason="memcached is not installed")
def test_primes_sample_caches_results(start):
    memcached = memcached_server.Memcached()
    try:
        server = start("primes", conf={"127.0.0.1:11211": f"unix:{memcached.socket}"})
        answers = [server.get("/100000") for _ in range(2)]
        assert [(answer.text, answer["X-Cache"]) for answer in answers] == [
            ("9592 primes are below 100000\n", "miss"), ("9592 primes are below 100000\n", "hit")]
        assert memcached.ask("mg primes/100000 v").startswith(b"VA 29\r\n9592 primes")
        assert [server.get(f"/{n}").text.split()[0] for n in (0, 2, 3, 10)] == ["0", "0", "1", "4"]
        assert [server.get(path).status for path in ("/10000001", "/x", "/-1")] == [400, 404, 400]
    finally:
        memcached.stop()
    server.allow("not cached|MEMCACHE")
    answer = server.get("/100000")
    assert (answer.text, answer["X-Cache"]) == ("9592 primes are below 100000\n", "miss"), "works without the cache, only slower"


@needs("subprocess")
@pytest.mark.skipif(not shutil.which("factor"), reason="factor is not installed")
def test_factor_sample_runs_a_subprocess(start):
    server = start("factor")
    server.allow("factor")
    assert server.get("/1001").text == "1001: 7 11 13\n"
    assert server.get("/x").status == server.get("/--help").status == 422


@needs("sql", "postgres")
@pytest.mark.skipif(not postgres_server.is_usable(), reason="PostgreSQL is not installed")
def test_orders_sample_streams_and_copies_rows(start):
    postgres = postgres_server.Postgres()
    try:
        server = start("orders", conf={"postgresql:///orders?host=/run/postgresql": postgres.database()})
        kind = [("Content-Type", "application/json")]
        with server.connect() as c:
            c.ask("/events").read_head()
            c.read_until(b"event: sum\ndata: 0\n\n")
            assert server.get("/orders", "POST", kind, b'{"goods": "lamp", "pieces": 2}').status == 201
            c.read_until(b"event: order\ndata: 2 x lamp\n\n")
            postgres.sql("INSERT INTO orders (goods, pieces) VALUES ('sofa', 1)", "d1")
            c.read_until(b"event: order\ndata: 1 x sofa\n\n")
            assert server.get("/orders.csv", "POST", CSV, b'"cup, red",6\nplate,6\n').text == "2 orders\n"
            c.read_until(b"event: order\ndata: 6 x cup, red\n\n")
        assert server.get("/orders.csv").text == 'lamp,2\nsofa,1\n"cup, red",6\nplate,6\n'
        wrong = server.get("/orders.csv", "POST", CSV, b"cup,1\nplate,many\n")
        assert wrong.status == 422 and "line 2, column pieces" in json.loads(wrong.text)["detail"]
        assert server.get("/orders.csv", "POST", CSV, b"cup,0\n").status == 422
        assert server.get("/orders", "POST", kind, b'{"goods": "", "pieces": 0}').status == 422
        assert server.get("/orders.csv").text.count("\n") == 4, "rejected requests have changed nothing"
    finally:
        postgres.stop()
