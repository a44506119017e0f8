# SPDX-License-Identifier: Apache-2.0
"""The data stores of services are killed, frozen, restarted and filled up while clients write and read. No acknowledged
write is lost, every response is correct and belongs to its request, every error has an expected status, no client hangs,
and the service recovers by itself."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

import memcached_server
import postgres_server
import redis_server
import services
from proc import wait_until
from numbered_writers import StoreClients

pytestmark = pytest.mark.processes("an embedded server has no worker processes")

SOURCE = r"""
#include <duda.h>
#include <errno.h>

PACKAGE
static int put(struct duda_ctx *d)
{
    mk_str value;
    int e = duda_read_all(d, 1 << 20, &value);
    return e ? e : keep(d, duda_param(d, "key"), value);
}

/* Only -ENOENT means a missing value. Duda converts any other error to a status. */
static int get(struct duda_ctx *d)
{
    mk_str value;
    int e = look_up(d, duda_param(d, "key"), &value);
    return e == -ENOENT ? 404 : e ? e : duda_write(d, value);
}

DUDA_SERVICE(keeper, DUDA_PUT("/v/:key", put, "Writes."), DUDA_GET("/v/:key", get, "Reads."));
"""
STORE = r"""
#include <duda/store.h>
static int keep(struct duda_ctx *d, mk_str key, mk_str value)
{
    return duda_store_set(d, duda_store_find(d, NULL), key, value, 0);
}

static int look_up(struct duda_ctx *d, mk_str key, mk_str *value)
{
    return duda_store_get(d, duda_store_find(d, NULL), key, value);
}
"""
MEMCACHE = r"""
#include <duda/memcached.h>
static int keep(struct duda_ctx *d, mk_str key, mk_str value)
{
    return duda_memcached_set(d, duda_memcached_find(d, NULL), key, value, 0);
}

static int look_up(struct duda_ctx *d, mk_str key, mk_str *value)
{
    return duda_memcached_get(d, duda_memcached_find(d, NULL), key, value);
}
"""
SQL = r"""
#include <duda/sql.h>
static int keep(struct duda_ctx *d, mk_str key, mk_str value)
{
    struct duda_sql_result result;
    return duda_sql_query(d, duda_sql_find(d, NULL), &result, "INSERT INTO kept (name, value) VALUES ($1, $2)", duda_sql_text(key),
                    duda_sql_text(value));
}

static int look_up(struct duda_ctx *d, mk_str key, mk_str *value)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result, "SELECT value FROM kept WHERE name = $1", duda_sql_text(key));
    if (!e && result.n_rows)
        *value = duda_sql_cell(&result, 0, 0)->text;
    return e ? e : result.n_rows ? 0 : -ENOENT;
}
"""
TABLE = "CREATE TABLE kept (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
TIMEOUT = "    Timeout 300ms\n"



class Disk:
    """A small file system."""

    def __init__(self, size):
        # The database server runs as another user, who may not enter the test's folder.
        self.folder = Path(tempfile.mkdtemp(prefix="mk-disk-"))
        self.ballast = self.folder / "ballast"
        if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "small", self.folder], check=False).returncode:
            self.folder.rmdir()
            pytest.skip("no file system can be mounted here")

    def fill(self):
        with open(self.ballast, "ab", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)):
                        pass

    def make_room(self):
        self.ballast.unlink()

    def unmount(self):
        subprocess.run(["umount", "--lazy", self.folder], check=True)
        self.folder.rmdir()


# ---- Storage ----

class Storage:
    """`lasts`: acknowledged writes are durable. `size`: bytes per value, large enough to fill the store quickly."""

    lasts, size, disk_size = True, 300, "16m"

    def __init__(self, folder, disk):
        self.folder, self.disk = folder, disk
        self.prepare()

    def fill(self):
        self.disk.fill()

    def make_room(self):
        self.disk.make_room()


class ServerStorage(Storage):
    """A server that the test starts. While it is down, most requests fail immediately, but a few try to connect:
    `n_away` requests are enough to include some of these."""

    n_away = 150

    def kill(self):
        self.server.kill()

    def start(self):
        self.server.start()

    def end(self):
        """Shuts the server down cleanly."""
        self.server.process.terminate()
        self.server.process.wait()

    def freeze(self):
        self.server.freeze()

    def thaw(self):
        self.server.thaw()

    def stop(self):
        self.server.stop()


class RedisStorage(ServerStorage):
    """A write is on disk before it is acknowledged."""

    source, packages, plugins = STORE, ["store"], ["duda-redis"]

    def prepare(self):
        self.server = redis_server.Redis("--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
        self.section = f"[REDIS]\n    Server unix:{self.server.socket}\n{TIMEOUT}"

    def fill(self):
        self.limit(int(self.server.info("memory", "used_memory")) + 300_000)

    def make_room(self):
        self.limit(0)

    def limit(self, size):
        assert self.server.ask("CONFIG", "SET", "maxmemory", str(size)) == b"+OK\r\n"


class MemcachedStorage(ServerStorage):
    """The store loses all values when its process ends, and rejects writes when its memory is full."""

    source, packages, plugins, lasts, size = MEMCACHE, ["memcached"], ["duda-memcached"], False, 100_000

    def prepare(self):
        self.server = memcached_server.Memcached("-M", "-m", "64")
        self.section = f"[MEMCACHED]\n    Servers unix:{self.server.socket}\n{TIMEOUT}"

    def fill(self):
        self.limit(8)

    def make_room(self):
        self.limit(64)

    def limit(self, megabytes):
        assert self.server.ask(f"cache_memlimit {megabytes}") == b"OK\r\n"


class PostgresStorage(ServerStorage):
    source, packages, plugins = SQL, ["sql"], ["duda-postgres"]
    n_away = 4  # each request waits until Timeout

    def prepare(self):
        self.server = postgres_server.Postgres()
        address, space = self.server.database(), ""
        if self.disk:
            account = postgres_server.user()
            os.chown(self.disk.folder, account.pw_uid, account.pw_gid)
            self.server.sql(f"CREATE TABLESPACE small LOCATION '{self.disk.folder}'")
            space = " TABLESPACE small"
        self.server.sql(TABLE + space, address.rpartition("=")[2])
        self.section = f"[POSTGRES]\n    Server {address}\n    PoolSize 2\n{TIMEOUT}"

    def end(self):
        self.server.process.send_signal(signal.SIGINT)
        self.server.process.wait()

    def freeze(self):
        self.server.each(signal.SIGSTOP)

    def thaw(self):
        self.server.each(signal.SIGCONT)


class PostgresLogStorage(PostgresStorage):
    """Only the write-ahead log is on a small disk. When the disk is full, PostgreSQL exits; it recovers after a
    restart."""

    disk_size = "40m"  # holds two and a half WAL files

    def prepare(self):
        disk, self.disk = self.disk, None
        super().prepare()
        self.disk = disk
        self.end()
        log = Path(self.server.folder, "data", "pg_wal")
        subprocess.run(["cp", "-a", log, disk.folder], check=True)
        shutil.rmtree(log)
        log.symlink_to(disk.folder / "pg_wal")
        self.server.start()

    def fill(self):
        super().fill()
        with contextlib.suppress(AssertionError):  # this statement may fill the disk
            self.server.sql("SELECT pg_switch_wal()")

    def make_room(self):
        self.server.process.wait(60)
        super().make_room()
        self.server.start()


class OwnStorage(Storage):
    """Storage in files that the service opens itself, without a database server."""

    def data(self):
        folder = self.disk.folder if self.disk else self.folder / "data"
        folder.mkdir(exist_ok=True)
        return folder

    def stop(self):
        pass


class KvStorage(OwnStorage):
    source, packages, plugins = STORE, ["store"], ["duda-kv"]

    def prepare(self):
        self.section = f"[KV]\n    Folder {self.data()}\n    MaxSize 1G\n"


class SqliteStorage(OwnStorage):
    source, packages, plugins = SQL, ["sql"], ["duda-sqlite"]

    def prepare(self):
        folder = self.folder / "migrations"
        folder.mkdir()
        (folder / "1-first.sql").write_text(f"{TABLE};\n")
        self.section = f"[SQLITE]\n    File {self.data()}/kept.db\n    Migrations {folder}\n    Timeout 5s\n"


STORAGES = {
    "redis": (RedisStorage, services.has("redis") and redis_server.PROGRAM),
    "memcached": (MemcachedStorage, services.has("memcached") and memcached_server.PROGRAM),
    "postgres": (PostgresStorage, services.has("postgres") and postgres_server.is_usable()),
    "postgres-log": (PostgresLogStorage, services.has("postgres") and postgres_server.is_usable()),
    "kv": (KvStorage, services.has("kv")),
    "sqlite": (SqliteStorage, services.has("sqlite")),
}


# ---- Outages ----

@contextlib.contextmanager
def killed(storage, _):
    storage.kill()
    yield
    storage.start()


@contextlib.contextmanager
def restarted(storage, _):
    storage.end()
    yield
    storage.start()


@contextlib.contextmanager
def frozen(storage, _):
    storage.freeze()
    yield
    storage.thaw()


@contextlib.contextmanager
def full(storage, _):
    storage.fill()
    yield
    storage.make_room()


@contextlib.contextmanager
def workers_killed(_, node):
    node.server.allow("was killed by signal")
    gone = node.server.workers
    for pid in gone:
        os.kill(pid, signal.SIGKILL)
    yield
    wait_until(lambda: len(set(node.server.workers) - set(gone)) == 2, "new workers have started")


@contextlib.contextmanager
def service_killed(_, node):
    node.server.exit_code = -signal.SIGKILL
    for pid in (node.server.pid, *node.server.workers):
        os.kill(pid, signal.SIGKILL)
    yield
    node.start()


class Node:
    """The running service; the test may restart it."""

    def __init__(self, monkey, folder, storage):
        self.monkey, self.storage = monkey, storage
        head = ", ".join(f'"duda-{each}"' for each in storage.packages)
        self.object = services.build(folder, "keeper", SOURCE.replace("PACKAGE", storage.source).replace(
            "#include <duda.h>", f"#define DUDA_USE {head}\n#include <duda.h>", 1), packages=storage.packages)
        self.start()

    def start(self):
        self.server = self.monkey(plugins=[*self.storage.plugins, self.object], top=self.storage.section, workers=2)

    def connect(self):
        return self.server.connect()


OUTAGES = [(name, how, statuses) for name in ("redis", "memcached", "postgres")
           for how, statuses in ((killed, (503, 504)), (restarted, (503, 504)), (frozen, (503, 504)), (full, (507,)))]
OUTAGES += [("postgres-log", full, (503, 504))]
OUTAGES += [(name, how, statuses) for name in ("kv", "sqlite")
            for how, statuses in ((workers_killed, ("broken",)), (service_killed, ("broken",)), (full, (507,)))]


@pytest.fixture
def storage(request, tmp_path):
    name, needs_disk = request.param
    make, is_there = STORAGES[name]
    if not is_there:
        pytest.skip(f"this build has no {name}, or its server is not there")
    with contextlib.ExitStack() as stack:
        disk = Disk(make.disk_size) if needs_disk else None
        if disk:
            stack.callback(disk.unmount)
        made = make(tmp_path, disk)
        stack.callback(made.stop)
        yield made


def needs_disk(name, how):
    return how is full and name not in ("redis", "memcached")


@pytest.mark.parametrize("storage, how, statuses", [((name, needs_disk(name, how)), how, statuses) for name, how, statuses in OUTAGES],
                         indirect=["storage"], ids=[f"{name}-{how.__name__}" for name, how, _ in OUTAGES])
def test_store_outage_loses_no_acknowledged_write(monkey, tmp_path, storage, how, statuses):
    node = Node(monkey, tmp_path, storage)
    with StoreClients(node.connect, "/v", size=storage.size if how is full else 300, lasts=storage.lasts) as clients:
        clients.more(5)
        with how(storage, node):  # after workers_killed, new workers start immediately
            clients.refused(storage.n_away if how in (killed, restarted) else 0 if how is workers_killed else 3)
        clients.more(5)
        clients.check(*statuses)
