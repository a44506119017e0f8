# SPDX-License-Identifier: Apache-2.0
"""Lists of large folders: in bounded memory, in pieces, and with nothing left open when either side goes away."""
import contextlib
import json
import os
import shutil
import threading
import time

import pytest

from client import Closed
from faults import LIBRARIES, Fault, failing_allocations
from listing import listed, listed_json, lister, names_of, open_below
from proc import RELEASE, status, wait_until



def fill(path, n):
    """Names are what counts: ten thousand are of one file, for a file of its own takes long to make."""
    os.makedirs(path, exist_ok=True)
    for i in range(n):
        name = f"{path}/file-{i:06}.txt"
        if i % 10_000 == 0:
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644))
            first = name
        else:
            os.link(first, name)


def test_a_folder_that_is_too_large_to_be_sorted_says_so(monkey, site):
    fill(site / "big", 1000)
    server = lister(monkey, "[DIRLISTING]\n    SortMax 999\n")
    page = listed(server, "/big/?sort=size")
    assert "too large to sort" in page.text
    assert page.heads == [None, None, None] and not [link for link in page.links if link.startswith("?sort")]
    assert page.names == os.listdir(site / "big")
    assert "1000 entries" in page.text
    assert listed_json(server, "/big/", "?format=json&sort=size")["sort"] == "none"
    assert names_of(server, "/big/") == os.listdir(site / "big")
    text = server.get("/big/?format=text").text.splitlines()
    assert text[0].startswith("# too many") and len(text) == 1001
    os.unlink(site / "big" / "file-000000.txt")
    assert names_of(server, "/big/") == [f"file-{i:06}.txt" for i in range(1, 1000)]


def test_sorting_stays_in_its_memory(monkey, site):
    fill(site / "big", 1000)
    server = lister(monkey, "[DIRLISTING]\n    SortMemory 32K\n")
    assert listed_json(server, "/big/")["sort"] == "none" and len(names_of(server, "/big/")) == 1000
    site.add("small/a")
    assert listed_json(server, "/small/")["sort"] == "name"


def test_sorting_can_be_off(monkey, site):
    fill(site, 50)
    for section in ("SortMax 0", "SortMemory 0", "Sort none"):
        server = lister(monkey, f"[DIRLISTING]\n    {section}\n")
        assert names_of(server) == os.listdir(site)


def test_all_lists_of_a_worker_share_the_memory(monkey, site):
    fill(site / "big", 4000)
    server = lister(monkey, "[DIRLISTING]\n    SortMemory 256K\n")
    stuck = server.connect(receive_buffer=4096)
    try:
        stuck.ask("/big/")
        assert b"ascending" in stuck.read_until(b"file-000000")  # it has the memory, and keeps it
        wait_until(lambda: listed_json(server, "/big/")["sort"] == "none", "there is no memory")
        assert len(names_of(server, "/big/")) == 4000
    finally:
        stuck.close()
    wait_until(lambda: listed_json(server, "/big/")["sort"] == "name", "there is memory again")


def test_many_lists_at_once(monkey, site):
    fill(site / "big", 2000)
    expected = sorted(os.listdir(site / "big"))
    server = lister(monkey, "[DIRLISTING]\n    SortMemory 16M\n")
    wrong = []

    def read():
        with server.connect() as c:
            for query in ("", "&sort=none", "&sort=size") * 2:
                names = [e["name"] for e in json.loads(c.get("/big/?format=json" + query).body)["entries"]]
                if sorted(names) != expected or ("none" not in query and names != expected):
                    wrong.append(query)

    threads = [threading.Thread(target=read) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    wait_until(lambda: not open_below(server, site / "big"), "it is closed")


def test_clients_that_go_away_leave_nothing_open(monkey, site):
    fill(site / "big", 3000)
    server = lister(monkey)
    for i in range(30):
        with server.connect(receive_buffer=4096) as c:
            c.ask("/big/" + ("?sort=none" if i % 2 else ""))
            if i % 3:
                c.read_until(b"\r\n\r\n")
            if i % 5 == 0:
                c.fill()
    wait_until(lambda: not open_below(server, site / "big"), "it is closed")
    assert len(names_of(server, "/big/")) == 3000


def test_a_server_that_stops_gives_up_its_lists(monkey, site):
    fill(site / "big", 5000)
    server = lister(monkey)
    clients = [server.connect(receive_buffer=4096) for _ in range(5)]
    for c in clients:
        c.ask("/big/")
    server.stop()
    for c in clients:
        c.close()


def test_a_folder_that_vanishes(monkey, site):
    fill(site / "big", 5000)
    server = lister(monkey)
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big/?sort=none&format=json")
        head = c.read_head()
        assert head.status == 200
        shutil.rmtree(site / "big")
        c.read_chunks(head)
        names = [e["name"] for e in json.loads(head.body)["entries"]]
        assert len(set(names)) == len(names) < 5000
        assert c.get("/big/").status == 404
    wait_until(lambda: not open_below(server, site / "big"), "it is closed")


def test_the_loop_goes_on(monkey, site):
    fill(site / "big", 20000)
    site.add("small.txt", "small")
    server = lister(monkey, "[DIRLISTING]\n    SortMax 100000\n    SortMemory 16M\n", server="KeepAliveRequests 0\n")
    done = threading.Event()

    def read():
        listed_json(server, "/big/")
        done.set()

    reader = threading.Thread(target=read)
    with server.connect() as c:
        c.get("/small.txt")
        reader.start()
        answers, longest = 0, 0.0
        while not done.is_set():
            begun = time.monotonic()
            assert c.get("/small.txt").text == "small"
            longest = max(longest, time.monotonic() - begun)
            answers += 1
        reader.join()
    assert answers > 10 and longest < 5


needs_release = pytest.mark.skipif(not (RELEASE.parent / "plugins" / "monkey-dirlisting.so").exists(),
                                   reason="the optimised program is not built")


@needs_release
@pytest.mark.skipif(not (LIBRARIES / "failmalloc.so").exists(), reason="failmalloc is not built")
@pytest.mark.parametrize("query", ["", "&sort=none"])
def test_any_allocation_may_fail(monkey, site, tmp_path, query):
    """The list is whole, sorted or not, or it is not there, or is seen to be cut off."""
    fill(site / "big", 700)
    fault = Fault("failmalloc", tmp_path)
    server = lister(monkey, server="MinRate off\nKeepAliveRequests unlimited", **fault.how)
    whole = 0
    assert len(names_of(server, "/big/")) == 700
    for n in failing_allocations(fault, server, 500):
        with contextlib.suppress(Closed, ConnectionResetError):
            reply = server.get("/big/?format=json" + query)
            assert reply.status in (200, 500, 503)
            if reply.status == 200:
                assert len(json.loads(reply.body)["entries"]) == 700
                whole += 1
    assert n > 5 and 2 < whole < n - 2
    wait_until(lambda: not open_below(server, site / "big"), "it is closed")
    assert len(names_of(server, "/big/")) == 700


@needs_release
@pytest.mark.timeout(180)
def test_a_hundred_thousand_files_take_less_than_2_mb(monkey, site):
    fill(site / "big", 100_000)
    server = lister(monkey, program=RELEASE)

    def peak():
        worker, = server.workers
        return int(status(worker)["VmHWM"].split()[0])

    server.get("/none")
    idle = peak()
    for query in ("", "?format=json", "?sort=none", "?format=text&sort=size"):
        reply = server.get("/big/" + query)
        assert reply.body.count(b"file-") >= 100_000
    assert peak() - idle < 2048, f"{peak() - idle} kB"
