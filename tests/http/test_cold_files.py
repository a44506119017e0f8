# SPDX-License-Identifier: Apache-2.0
"""Files that are not in the page cache: threads read them for the event loop, which makes no difference to the client."""
import os

import pytest

from client import Closed
from sockets import reset


def is_cold(path):
    with open(path, "rb") as f:
        try:
            os.preadv(f.fileno(), [bytearray(4096)], 0, os.RWF_NOWAIT)
        except BlockingIOError:
            return True
        return False


def cool(path):
    """Evicts a file from the page cache, if the file system supports that."""
    with open(path, "rb") as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.fixture
def files(site):
    content = {f"/{size}.bin": os.urandom(size) for size in (20_000, 300_000, 1 << 20, (1 << 20) + 1, 5_000_000)}
    for name, data in content.items():
        cool(site.add(name[1:], data))
    try:
        if not is_cold(site / "300000.bin"):
            pytest.skip("this file system keeps everything in memory")
    except OSError:
        pytest.skip("this file system cannot tell what is in memory")
    return content


def test_cold_files_arrive_complete(monkey, site, files):
    with monkey(server="OpenFileCacheTTL 0").connect() as c:
        for _ in range(3):
            for name, data in files.items():
                cool(site / name[1:])
                assert c.get(name).body == data


def test_cold_file_ranges_arrive_complete(monkey, site, files):
    data = files["/5000000.bin"]
    with monkey(server="OpenFileCacheTTL 0").connect() as c:
        for first, last in ((0, 10), (4_000_000, 4_999_999), (1_048_570, 3_000_000)):
            cool(site / "5000000.bin")
            assert c.get("/5000000.bin", fields={"Range": f"bytes={first}-{last}"}).body == data[first:last + 1]
        cool(site / "5000000.bin")
        reply = c.get("/5000000.bin", fields={"Range": "bytes=0-99999,3000000-3099999,4900000-4999999"})
        for first in (0, 3_000_000, 4_900_000):
            assert data[first:first + 100_000] in reply.body


def test_cold_files_pipelined_stay_in_order(monkey, site, files):
    names = list(files) * 3
    with monkey(server="OpenFileCacheTTL 0").connect() as c:
        for name in names:
            c.ask(name)
        for name in names:
            assert c.read().body == files[name]


def test_cold_file_reads_do_not_block_other_clients(monkey, site, files):
    site.add("a.txt", "warm")
    server = monkey()
    clients = [(server.connect(), name) for name in files for _ in range(8)]
    for c, name in clients:
        c.ask(name)
    assert server.get("/a.txt").text == "warm"
    for c, name in clients:
        assert c.read().body == files[name]
        c.close()


def test_client_disconnect_during_cold_read_is_harmless(monkey, site, files):
    server = monkey(server="OpenFileCacheTTL 0")
    for i in range(40):
        for name in files:
            cool(site / name[1:])
        c = server.connect()
        for name in files:
            c.ask(name)
        (reset(c.sock) if i % 2 else c.close())
    assert server.get("/20000.bin").body == files["/20000.bin"]


def test_server_stop_during_cold_reads_is_clean(monkey, site, files):
    for _ in range(3):
        for name in files:
            cool(site / name[1:])
        server = monkey()
        clients = [server.connect() for _ in files]
        for c, name in zip(clients, files):
            c.ask(name)
        server.stop()
        for c in clients:
            c.close()


def test_cold_file_that_shrinks_ends_response_early(monkey, site, files):
    path = site / "5000000.bin"
    server = monkey(server="OpenFileCacheTTL 1h")
    with server.connect(receive_buffer=4096) as c:
        c.ask("/5000000.bin")
        c.read_head()
        os.truncate(path, 10)
        with pytest.raises((Closed, ConnectionResetError)):
            c.read_exactly(5_000_000)
    assert server.get("/5000000.bin").body == files["/5000000.bin"][:10]
