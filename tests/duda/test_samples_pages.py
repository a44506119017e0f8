# SPDX-License-Identifier: Apache-2.0
"""The samples of examples/duda with forms, sessions, files and WebSockets; the test acts as a browser."""
import hashlib
import re

import pytest

import browser
from proc import wait_until
from samples import CAN_RUN, UserAgent, needs, starter

pytestmark = CAN_RUN


@pytest.fixture
def start(monkey, tmp_path, tmp_path_factory):
    return starter(monkey, tmp_path, tmp_path_factory)


@needs("kv")
def test_guestbook_sample_stores_escaped_entries(start):
    server = start("guestbook")
    ana = UserAgent(server)
    assert "Nothing was written yet" in ana.get("/").text, ana.get("/").text
    answer = ana.post("/", name="Ana", text="Hello <b>all</b>\nand a line")
    assert (answer.status, answer["Location"]) == (303, "/"), answer.text
    assert ana.post("/", name="Bob", text="second").status == 303
    page = ana.get("/").text
    assert "<h2>Ana</h2><p>Hello &lt;b&gt;all&lt;/b&gt;\nand a line</p>" in page
    assert page.index("Bob") < page.index("Ana"), "newest entries come first"
    bad = ana.post("/", name="", text="kept")
    assert bad.status == 422 and "class=error" in bad.text and ">kept</textarea>" in bad.text
    forged = server.get("/", "POST", [("Content-Type", "application/x-www-form-urlencoded")], b"name=x&text=y")
    assert forged.status == 403 and "<h2>x</h2>" not in ana.get("/").text
    style = server.get(re.search(r'href="(/static/guestbook\.\w+\.css)"', page)[1])
    assert style["Content-Type"].startswith("text/css") and "immutable" in style["Cache-Control"]


@needs("kv", "auth")
def test_login_sample_signs_up_and_logs_in(start):
    server = start("login")
    ana, other = UserAgent(server), UserAgent(server)
    assert "Log in, or sign up" in ana.get("/").text
    assert ana.post("/in", user="ana", password="long enough").status == 403
    assert ana.post("/new", user="ana", password="short").status == 403
    assert ana.post("/new", user="ana", password="long enough").status == 303
    assert "<h1>Hello ana</h1>" in ana.get("/").text
    other.get("/")
    taken = other.post("/new", user="ana", password="another one")
    assert taken.status == 403 and "taken" in taken.text
    assert other.post("/in", user="ana", password="wrong, but long").status == 403
    before = dict(other.cookies)
    assert other.post("/in", user="ana", password="long enough").status == 303
    page = other.get("/").text
    assert other.cookies != before and "Hello ana" in page and "<p>Welcome.</p>" in page
    assert page.count("<li>") == 2 and page.count(", this one") == 1
    assert "Welcome" not in other.get("/").text
    assert ana.post("/out").status == 303
    page = other.get("/").text
    assert "Log in, or sign up" in ana.get("/").text and "Hello ana" in page and page.count("<li>") == 1
    assert ana.post("/in", user="ana", password="long enough").status == 303
    assert other.post("/out/everywhere").status == 303
    for browser in (ana, other):
        assert "Log in, or sign up" in browser.get("/").text


@needs("crypto")
def test_upload_sample_hashes_the_file(start, tmp_path):
    server = start("upload")
    data = bytes(range(256)) * 12000
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="../../a b.bin"\r\n\r\n'
    answer = server.get("/", "POST", [("Content-Type", "multipart/form-data; boundary=b")], head + data + b"\r\n--b--\r\n")
    assert answer.text == f"a_b.bin: {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}\n", answer.text
    none = b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n--b--\r\n'
    assert server.get("/", "POST", [("Content-Type", "multipart/form-data; boundary=b")], none).status == 422
    assert server.get("/", "POST", [("Content-Type", "text/plain")], b"x").status == 415
    assert server.get("/", "POST", [("Content-Type", "multipart/form-data; boundary=b")], head + b"cut").status == 400


@needs("kv")
def test_minipedia_sample_edits_articles(start):
    server = start("minipedia")
    ana = UserAgent(server)
    assert "no articles yet" in ana.get("/").text
    assert ana.get("/wiki/monkey").status == 404
    answer = ana.post("/wiki/monkey", text="A server.\n\nA small <one>.")
    assert (answer.status, answer["Location"]) == (303, "/wiki/monkey")
    page = ana.get("/wiki/monkey")
    assert page.status == 200 and "<p>A server.</p>\n<p>A small &lt;one&gt;.</p>" in page.text
    assert '<a href="/wiki/monkey">monkey</a>' in ana.get("/").text
    assert ana.post("/wiki/monkey", text="").status == 303 and ana.get("/wiki/monkey").status == 404
    assert server.get("/fibonacci/20").text == "6765\n" and server.get("/fibonacci/41").status == 400


def test_chat_sample_connects_browsers(start, tmp_path):
    server = start("chat")
    assert server.get("/socket").status in (400, 426), "not a WebSocket request"
    if not browser.FOUND:
        pytest.skip("no Chromium here")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with browser.Browser(tmp_path / "one") as first, browser.Browser(tmp_path / "two") as second:
        for b in (first, second):
            b.goto(server.url + "/")
            b.wait_for("document.title == 'connected'")
        first.run("document.getElementById('text').value = 'hello <i>'; document.querySelector('button').click()")
        for b in (first, second):
            b.wait_for("document.getElementById('messages').textContent == 'hello <i>'")
        second.run("document.getElementById('text').value = 'you'; document.querySelector('button').click()")
        first.wait_for("document.querySelectorAll('li').length == 2")


@needs("jobs", "kv")
def test_queue_sample_runs_and_retries_jobs(start):
    server = start("queue")
    server.allow("has failed")
    agent = UserAgent(server)
    agent.get("/")
    for text in ("lamp", "glass", "nonsense"):
        assert agent.post("/", text=text).status == 303
    wait_until(lambda: "<b>0</b> wait, <b>0</b> are handled, <b>2</b> are done" in agent.get("/").text, "two jobs are done")
    page = agent.get("/").text
    assert "nonsense: nobody sells nonsense" in page
    number = re.search(r'name=id value="([0-9a-f]+)"', page)[1]
    assert agent.post("/dead", id=number, what="revive").status == 303
    wait_until(lambda: "nobody sells nonsense" in agent.get("/").text, "the job has failed again")
    assert agent.post("/dead", id=number, what="drop").status == 303
    assert "None is dead" in agent.get("/").text
    assert agent.post("/dead", id=number, what="drop").status == 404
    assert server.get("/", "POST", [("Content-Type", "application/x-www-form-urlencoded")], b"text=x").status == 403
