# SPDX-License-Identifier: Apache-2.0
"""The compress plugin: streams, their memory and their end, and the cache of compressed files."""
import contextlib
import os
import threading
import zlib

import pytest

from client import Closed
from compression import CODINGS, TEXT, ask, decode, decoder, lines, making, needs_contents, start
from fault_injection import LIBRARIES, Fault
from load import Load
from monkey import Server, Site, write_config
from proc import RELEASE, memory_kb, wait_until


# Without buffering

def read_chunk(c):
    size = int(c.read_until(b"\r\n"), 16)
    data = c.read_exactly(size)
    assert c.read_exactly(2) == b"\r\n"
    return data


@needs_contents
@pytest.mark.parametrize("coding", CODINGS)
def test_compress_events_are_flushed_at_once(making, coding):
    server = making()
    with server.connect() as c:
        c.ask("/events", fields={"Accept-Encoding": coding})
        head = c.read_head()
        assert head["Content-Encoding"] == coding and head["Content-Type"] == "text/event-stream"
        d = decoder(coding)
        for i in range(20):
            text = f"{i}" * (1 + i * 100)
            assert server.get(f"/say?{text}").text == "said\n"
            got = b""
            while not got.endswith(b"\n\n"):
                got += d.feed(read_chunk(c))
            assert got == f"data: {text}\n\n".encode()
        server.get("/say")
        while data := read_chunk(c):
            d.feed(data)
        assert d.ended


@needs_contents
def test_compress_head_is_sent_before_first_data(making):
    server = making()
    with server.connect() as c:
        c.ask("/events", fields={"Accept-Encoding": "gzip"})
        assert c.read_head()["Content-Encoding"] == "gzip"
        server.get("/say")
        assert decode("gzip", read_chunk(c)) == b""


# End of the stream

@needs_contents
@pytest.mark.parametrize("coding", CODINGS)
def test_compress_broken_source_truncates_response(making, coding):
    server = making()
    for query in ("size=3000000&breaks=1", "size=3000000&breaks=1&known=1"):
        with server.connect() as c:
            with pytest.raises(Closed):
                c.get(f"/made?{query}", fields={"Accept-Encoding": coding})
    reply = ask(server, coding, "/made?size=0&breaks=1")
    assert reply.status == 500, "nothing was sent yet, so an error status is possible"
    assert b"500 Internal Server Error" in decode(reply.get("Content-Encoding"), reply.body)
    assert decode(coding, ask(server, coding).body) == TEXT


@pytest.mark.parametrize("coding", CODINGS)
def test_compress_disconnect_frees_stream(start, site, coding):
    """MaxStreams is 1, so a stream that is not freed would prevent all further compression."""
    site.add("big.txt", os.urandom(1 << 20) * 8)
    server = start("MaxStreams 1\nCacheSize off", server="MinRate off")
    for _ in range(5):
        with server.connect(receive_buffer=4096) as c:
            c.ask("/big.txt", fields={"Accept-Encoding": coding})
            assert c.read_head()["Content-Encoding"] == coding
            c.fill()
        wait_until(lambda: "Content-Encoding" in ask(server, coding), "the stream to end with its client")


def test_compress_shrinking_file_truncates_response(start, site):
    path = site.add("big.txt", os.urandom(1 << 20) * 16)
    server = start(server="MinRate off")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big.txt", fields={"Accept-Encoding": "gzip"})
        c.read_head()
        os.truncate(path, 1 << 20)
        with pytest.raises(Closed):
            while read_chunk(c):
                pass


def test_compress_streams_beyond_limit_are_sent_unencoded(start, site):
    site.add("big.txt", os.urandom(1 << 20) * 8)
    server = start("MaxStreams 2\nCacheSize off", server="MinRate off")
    clients = [server.connect(receive_buffer=4096) for _ in range(3)]
    heads = []
    for c in clients:
        c.ask("/big.txt", fields={"Accept-Encoding": "gzip"})
        heads.append(c.read_head())
    assert [head.get("Content-Encoding") for head in heads] == ["gzip", "gzip", None]
    assert all(head.tokens("Vary") == ["accept-encoding"] for head in heads)
    for c in clients:
        c.close()


def test_compress_large_file_does_not_block_other_clients(start, site):
    """Compression for a fast client must not delay others, although a single write accepts megabytes of compressible data."""
    site.add("zeroes.txt", bytes(64 << 20))
    site.add("small.bin", b"x")
    server = start("CacheSize off", server="KeepAliveRequests unlimited")
    with server.connect() as c, server.connect() as other:
        other.get("/small.bin")
        c.ask("/zeroes.txt", fields={"Accept-Encoding": "gzip"})
        c.read_head()
        got, answers = b"", 0
        done = threading.Event()

        def read():
            nonlocal got
            while data := read_chunk(c):
                got += data
            done.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        while not done.is_set():
            assert other.get("/small.bin").text == "x"
            answers += 1
        reader.join()
    assert answers > 20, "the other clients waited for all of it"
    assert zlib.decompress(got, 31) == bytes(64 << 20)


# Memory

@pytest.fixture
def release(tmp_path):
    """Uses the release program, because sanitizers would distort the measurement."""
    if not (RELEASE.exists() and (RELEASE.parent / "plugins" / "monkey-compress.so").exists()):
        pytest.skip(f"{RELEASE} is not built, or has no compress")
    servers = []

    def start(keys):
        config = write_config(tmp_path / "release.conf", "MinRate off", plugins=["compress"],
                              sections="[COMPRESS]\n" + "".join(f"    {k}\n" for k in keys.splitlines()))
        servers.append(Server(tmp_path, ["-c", config], config, program=RELEASE))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.mark.parametrize("coding, most", [("gzip", 700), ("br", 3000), ("zstd", 2000)])
def test_compress_large_file_uses_little_memory(release, tmp_path, coding, most):
    site = Site(tmp_path / "site")
    with open(site / "large.txt", "wb") as f:
        for i in range(40):
            f.write(b"".join(b"%06d %06d of a large file\n" % (i * 7919 + j * 104729 & 0xfffff, j) for j in range(32768)))
    site.add("small.txt", TEXT)
    server = release("CacheSize off")
    if ask(server, coding, "/small.txt").get("Content-Encoding") != coding:
        pytest.skip(f"no {coding} here")
    worker, = server.workers
    before, grown, size, d = memory_kb(worker), [], 0, decoder(coding)
    with server.connect(receive_buffer=65536) as c:
        c.ask("/large.txt", fields={"Accept-Encoding": coding})
        c.read_head()
        while data := read_chunk(c):
            if len(grown) * (64 << 10) < size:
                grown.append(memory_kb(worker) - before)
            size += len(data)
            d.feed(data)
    assert d.ended and size > 1 << 20
    assert max(grown) < most, f"{max(grown)} KB"


@pytest.mark.parametrize("coding", CODINGS)
def test_compress_stream_memory_is_freed(release, tmp_path, coding):
    """After many concurrent streams, an idle worker keeps the memory of at most one stream."""
    site = Site(tmp_path / "site")
    site.add("large.txt", os.urandom(1 << 20).hex())
    server = release("CacheSize off\nMaxStreams 64")
    if ask(server, coding, "/large.txt").get("Content-Encoding") != coding:
        pytest.skip(f"no {coding} here")
    worker, = server.workers
    before = memory_kb(worker)
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            c = stack.enter_context(server.connect(receive_buffer=4096))
            c.ask("/large.txt", fields={"Accept-Encoding": coding})
            c.read_head()
        assert memory_kb(worker) - before > 8000
    wait_until(lambda: memory_kb(worker) - before < 2000, "the memory is freed")


@pytest.mark.skipif(not (LIBRARIES / "failmalloc.so").exists() or not (RELEASE.parent / "plugins" / "monkey-compress.so").exists(),
                    reason="failmalloc, or the optimized program, is not built")
@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("size", [3_000, 300_000])
def test_compress_survives_failure_of_any_allocation(start, site, tmp_path, coding, size):
    """A response with a Content-Encoding is valid or visibly truncated. The stream is always freed: MaxStreams is 1,
    so no response would be compressed after a leak."""
    site.add("lines.txt", lines(size))
    fault = Fault("failmalloc", tmp_path)
    server = start("MaxStreams 1\nCacheSize 1M", server="OpenFileCacheSize 0\nKeepAliveRequests unlimited", **fault.how)
    worker, seen = server.workers, set()
    # Each iteration changes the file and thus empties the cache: otherwise the first failure would affect the later ones.
    for n in range(1, 300):
        site.add("lines.txt", lines(size), mtime=1_600_000_000 + n)
        fault.failed, fault.count, fault.after = 0, 1, n
        with contextlib.suppress(Closed, ConnectionResetError):
            for _ in range(2):
                reply = ask(server, coding, "/lines.txt")
                assert reply.status in (200, 500, 503)
                if reply.status == 200:
                    coded = reply.get("Content-Encoding")
                    seen.add(coded)
                    assert (decode(coded, reply.body) if coded else reply.body) == lines(size), n
        failed, fault.after = fault.failed, 0
        assert server.workers == worker, f"allocation {n} killed a worker:\n{server.log}"
        if not failed:
            break
        wait_until(lambda: "Content-Encoding" in ask(server, coding), f"its stream to be freed, after {n}")
    assert 5 < n < 299 and seen == {None, coding}


# The cache: only responses from it have a Content-Length

def is_hit(reply):
    assert reply.status == 200 and reply["Content-Encoding"]
    return reply.framing == "length"


@pytest.mark.parametrize("coding", CODINGS)
def test_compress_cache_serves_second_request(start, site, coding):
    server = start()
    first, second, third = (ask(server, coding) for _ in range(3))
    assert [is_hit(reply) for reply in (first, second, third)] == [False, True, True]
    assert second["Content-Length"] == str(len(first.body)) and first.body == second.body == third.body
    names = ("ETag", "Vary", "Content-Encoding", "Content-Type", "Last-Modified", "Accept-Ranges")
    assert [first.get(name) for name in names] == [second.get(name) for name in names]
    assert decode(coding, second.body) == TEXT
    assert "Content-Encoding" not in ask(server, None) and ask(server, None).body == TEXT


def test_compress_cache_separates_codings_hosts_and_paths(start, site, tmp_path):
    (tmp_path / "other").mkdir()
    Site(tmp_path / "other").add("a.html", TEXT[::-1], mtime=1_600_000_000)  # same size and time, and so the same ETag
    site.add("b.html", TEXT.swapcase(), mtime=1_600_000_000)
    server = start(host="ServerName one.example", top="[COMPRESS]\n", sections="[HOST]\n    ServerName two.example\n    DocumentRoot other\n")
    wanted = {("one", "/a.html"): TEXT, ("one", "/b.html"): TEXT.swapcase(), ("two", "/a.html"): TEXT[::-1]}
    for hit in (False, True):
        for (name, path), content in wanted.items():
            reply = server.get(path, fields={"Accept-Encoding": "gzip"}, host=f"{name}.example")
            assert is_hit(reply) == hit and decode("gzip", reply.body) == content


def test_compress_cache_notices_changed_file(start, site):
    server = start(server="OpenFileCacheTTL 0")
    assert [is_hit(ask(server)) for _ in range(2)] == [False, True]
    site.add("a.html", TEXT[::-1], mtime=1_600_000_001)
    replies = [ask(server) for _ in range(2)]
    assert [is_hit(reply) for reply in replies] == [False, True]
    assert [decode("gzip", reply.body) for reply in replies] == [TEXT[::-1]] * 2


@pytest.mark.parametrize("how", ["by rename", "in place"])
def test_compress_cache_notices_change_with_same_size_and_time(start, site, how):
    """The ETag stays the same, but the compressed body must be as fresh as the plain body."""
    server = start(server="OpenFileCacheTTL 0")
    path = site.add("a.html", TEXT, mtime=1_600_000_000)
    assert [is_hit(ask(server)) for _ in range(2)] == [False, True]
    if how == "by rename":
        os.rename(site.add("new.html", TEXT[::-1], mtime=1_600_000_000), path)
    else:
        site.add("a.html", TEXT[::-1], mtime=1_600_000_000)
    assert ask(server, None).body == TEXT[::-1]
    replies = [ask(server) for _ in range(2)]
    assert [decode("gzip", reply.body) for reply in replies] == [TEXT[::-1]] * 2
    assert [is_hit(reply) for reply in replies] == [False, True]


def test_compress_cache_shares_entry_between_paths_of_one_file(start, site):
    site.add("app.html", TEXT)
    os.link(site / "app.html", site / "linked.html")
    server = start(host="Fallback app.html\nServerName one.example", top="[COMPRESS]\n",
                   sections="[HOST]\n    ServerName two.example\n    DocumentRoot site\n")
    targets = ["/users/1", "/users/2", "/app.html", "/linked.html", "/app.html?x"]
    replies = [server.get(t, fields={"Accept-Encoding": "gzip"}, host="one.example") for t in targets]
    replies.append(server.get("/app.html", fields={"Accept-Encoding": "gzip"}, host="two.example"))
    assert [is_hit(reply) for reply in replies] == [False] + [True] * 5
    assert [decode("gzip", reply.body) for reply in replies] == [TEXT] * 6


def test_compress_cache_holds_only_files(start, site):
    site.add("index.html", TEXT[:10_000])
    server = start("MaxCacheFile 60K", host="Fallback index.html")
    site.add("large.txt", lines(60 * 1024 + 1))
    site.add("fits.txt", lines(60 * 1024))
    assert [is_hit(ask(server, target="/fits.txt")) for _ in range(2)] == [False, True]
    assert [is_hit(ask(server, target="/large.txt")) for _ in range(2)] == [False, False]
    assert [is_hit(ask(server, target="/")) for _ in range(2)] == [False, True]
    server = start("CacheSize off")
    assert [is_hit(ask(server)) for _ in range(2)] == [False, False]


@needs_contents
def test_compress_cache_ignores_generated_responses(making):
    server = making()
    target = "/made?size=5000&known=1&field=ETag:%22a%22&field=Last-Modified:Sun,%2006%20Nov%201994%2008:49:37%20GMT"
    assert [is_hit(ask(server, target=target)) for _ in range(2)] == [False, False]


def test_compress_cache_ignores_interrupted_responses(start, site):
    content = os.urandom(3 << 20)
    site.add("big.txt", content)
    server = start("MaxCacheFile 8M", server="MinRate off")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big.txt", fields={"Accept-Encoding": "gzip"})
        c.read_head()
        c.fill()
    replies = [ask(server, target="/big.txt") for _ in range(2)]
    assert not is_hit(replies[0])
    assert [decode("gzip", reply.body) for reply in replies] == [content] * 2


def test_compress_cache_evicts_least_recently_used(start, site):
    """The cache has space for three entries and their overhead."""
    for i in range(4):
        site.add(f"{i}.txt", os.urandom(15_000).hex())
    server = start("CacheSize 60K")

    def hits(*names):
        return [is_hit(ask(server, target=f"/{i}.txt")) for i in names]

    assert hits(0, 1, 2) == [False] * 3
    assert hits(0, 1, 2) == [True] * 3
    assert hits(0, 3) == [True, False]  # file 1 was the least recently used
    assert hits(3, 0, 2) == [True] * 3
    assert hits(1) == [False]


def test_compress_cache_respects_its_size(release, tmp_path):
    """The server compresses 400 files, which need far more space than CacheSize."""
    site = Site(tmp_path / "site")
    for i in range(400):
        site.add(f"{i}.txt", os.urandom(20_000).hex())
    server = release("CacheSize 1M")
    worker, = server.workers
    ask(server, target="/0.txt")
    before = memory_kb(worker)
    for i in range(400):
        assert ask(server, target=f"/{i}.txt").status == 200
    assert memory_kb(worker) - before < 4096


def test_compress_cache_keeps_evicted_entry_for_its_readers(start, site):
    """The entry is evicted, but its readers keep it alive."""
    content = os.urandom(600_000).hex().encode()
    site.add("big.txt", content)
    for i in range(20):
        site.add(f"{i}.txt", os.urandom(20_000).hex())
    server = start("CacheSize 1M\nMaxCacheFile 2M", server="MinRate off")
    assert not is_hit(ask(server, target="/big.txt"))
    with server.connect(receive_buffer=4096) as c:
        c.ask("/big.txt", fields={"Accept-Encoding": "gzip"})
        head = c.read_head()
        for i in range(20):
            ask(server, target=f"/{i}.txt")
        assert decode("gzip", c.read_exactly(int(head["Content-Length"]))) == content


def test_compress_cache_under_load_stays_correct(start, site):
    """Many clients request the same and different files; the cache has space for few of them."""
    for i in range(5):
        site.add(f"{i}.txt", lines(30_000 + i))
    server = start("CacheSize 20K\nMaxStreams 3", workers=2)
    loads = [Load(server, f"/{i}.txt") for i in range(5)]
    stop, wrong = threading.Event(), []

    def check(i):
        while not stop.is_set():
            try:
                reply = ask(server, "gzip, br, zstd", f"/{i}.txt")
                coding = reply.get("Content-Encoding")
                if (decode(coding, reply.body) if coding else reply.body) != lines(30_000 + i):
                    wrong.append(i)
            except (AssertionError, OSError) as error:
                wrong.append(repr(error))

    threads = [threading.Thread(target=check, args=(i,), daemon=True) for i in range(5)]
    for thread in threads:
        thread.start()
    for load in loads[:2]:
        with load:
            load.more(20).check()
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:5]
