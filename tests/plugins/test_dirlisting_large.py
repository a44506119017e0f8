# SPDX-License-Identifier: Apache-2.0
"""Listings of large folders: bounded memory, streamed output, and no leaked descriptors after either side disconnects."""
import contextlib
import json
import os
import shutil
import threading
import time

import pytest

from client import Closed
from fault_injection import LIBRARIES, Fault, failing_allocations
from listing import listed, listed_json, lister, names_of, open_below
from proc import RELEASE, status, wait_until



def fill(path, n):
    """Creates n entries: up to ten thousand hard links share one file, because creating files is slow."""
    os.makedirs(path, exist_ok=True)
    for i in range(n):
        name = f"{path}/file-{i:06}.txt"
        if i % 10_000 == 0:
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644))
            first = name
        else:
            os.link(first, name)


def test_dirlisting_too_large_to_sort_says_so(monkey, site):
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


def test_dirlisting_sort_memory_limits_sorting(monkey, site):
    fill(site / "big", 1000)
    server = lister(monkey, "[DIRLISTING]\n    SortMemory 32K\n")
    assert listed_json(server, "/big/")["sort"] == "none" and len(names_of(server, "/big/")) == 1000
    site.add("small/a")
    assert listed_json(server, "/small/")["sort"] == "name"


def test_dirlisting_sorting_can_be_disabled(monkey, site):
    fill(site, 50)
    for section in ("SortMax 0", "SortMemory 0", "Sort none"):
        server = lister(monkey, f"[DIRLISTING]\n    {section}\n")
        assert names_of(server) == os.listdir(site)


def test_dirlisting_sort_memory_is_shared_by_all_listings(monkey, site):
    fill(site / "big", 4000)
    server = lister(monkey, "[DIRLISTING]\n    SortMemory 256K\n")
    stuck = server.connect(receive_buffer=4096)
    try:
        stuck.ask("/big/")
        assert b"ascending" in stuck.read_until(b"file-000000")  # this listing holds the memory that it has reserved
        wait_until(lambda: listed_json(server, "/big/")["sort"] == "none", "the memory is exhausted")
        assert len(names_of(server, "/big/")) == 4000
    finally:
        stuck.close()
    wait_until(lambda: listed_json(server, "/big/")["sort"] == "name", "the memory is available again")


def test_dirlisting_concurrent_listings_are_correct(monkey, site):
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
    wait_until(lambda: not open_below(server, site / "big"), "the folder is closed")


def test_dirlisting_disconnects_leave_nothing_open(monkey, site):
    fill(site / "big", 3000)
    server = lister(monkey)
    for i in range(30):
        with server.connect(receive_buffer=4096) as c:
            c.ask("/big/" + ("?sort=none" if i % 2 else ""))
            if i % 3:
                c.read_until(b"\r\n\r\n")
            if i % 5 == 0:
                c.fill()
    wait_until(lambda: not open_below(server, site / "big"), "the folder is closed")
    assert len(names_of(server, "/big/")) == 3000


def test_dirlisting_is_cancelled_on_server_stop(monkey, site):
    fill(site / "big", 5000)
    server = lister(monkey)
    clients = [server.connect(receive_buffer=4096) for _ in range(5)]
    for c in clients:
        c.ask("/big/")
    server.stop()
    for c in clients:
        c.close()


def test_dirlisting_of_removed_folder_truncates_or_fails(monkey, site):
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
    wait_until(lambda: not open_below(server, site / "big"), "the folder is closed")


def test_dirlisting_does_not_block_the_loop(monkey, site):
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
                                   reason="the optimized program is not built")


@needs_release
@pytest.mark.skipif(not (LIBRARIES / "failmalloc.so").exists(), reason="failmalloc is not built")
@pytest.mark.parametrize("query", ["", "&sort=none"])
def test_dirlisting_survives_failure_of_any_allocation(monkey, site, tmp_path, query):
    """The listing is complete (sorted or not) or visibly truncated, or the response is an error."""
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
    wait_until(lambda: not open_below(server, site / "big"), "the folder is closed")
    assert len(names_of(server, "/big/")) == 700


@needs_release
@pytest.mark.timeout(180)
def test_dirlisting_of_hundred_thousand_files_uses_less_than_2_mb(monkey, site):
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
