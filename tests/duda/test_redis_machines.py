# SPDX-License-Identifier: Apache-2.0
"""Three machines (network namespaces) each run a node of a service and two nodes of a Redis Cluster; a fourth machine
runs PostgreSQL, and a proxy forwards the requests. Under load, one machine is disconnected, and nodes of Redis and of
the service, and PostgreSQL, are killed, frozen and restarted. No acknowledged write is lost, and a message published to a
topic arrives on every node. The test prints and records the longest time without an acknowledged write (shown by -s
and --junit-xml).

`make check` runs half of these events. The following command runs all of them in two minutes:

    MONKEY_MACHINES=all build/venv/bin/python -m pytest -c tests/pytest.ini -s tests/duda/test_redis_machines.py
"""
import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from websockets.sync.client import connect

import postgres_server
import redis_server
import services
from proc import wait_until
from redis_client_service import SOURCE
from numbered_writers import StoreClients

pytestmark = [pytest.mark.slow,
              pytest.mark.skipif(not services.has("redis") or not redis_server.PROGRAM,
                                 reason="the package is not in this build, or there is no redis-server"),
              pytest.mark.skipif(not services.has("postgres") or not postgres_server.is_usable(),
                                 reason="this build has no libpq, or there is no PostgreSQL"),
              pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="network namespaces need root and ip")]

TALK = r"""
DUDA_TOPIC(chat, "chat");

static int talk(struct duda_ctx *d)
{
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, NULL, NULL, &s);
    e = e ? e : duda_topic_attach(s, &chat);
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        e = duda_topic_publish(d, &chat, m.data);
    return e;
}

/* Checks no backend: the outage of a backend that all nodes share must not make a node unhealthy. */
static int health(struct duda_ctx *d)
{
    return duda_puts(d, "well");
}

static int put_redis(struct duda_ctx *d)
{
    struct duda_redis_reply reply;
    mk_str value;
    int e = duda_read_all(d, 1 << 16, &value);
    const mk_str parts[] = {MK_STR("SET"), duda_param(d, "key"), value};
    e = e ? e : duda_redis_write_replicated(d, redis(d), &reply, 1, 500, parts, 3);
    return e == -ENOLINK ? 503 : e;
}

static int get_redis(struct duda_ctx *d)
{
    struct duda_redis_reply reply;
    int e = duda_redis(d, redis(d), &reply, MK_STR("GET"), duda_param(d, "key"));
    return e ? e : reply.type == DUDA_REDIS_NIL ? 404 : duda_write(d, reply.text);
}

/* Idempotent, as PUT requires: the proxy may retry on a second node when the first one dies before it
   has responded. */
static int put_sql(struct duda_ctx *d)
{
    struct duda_sql_result result;
    mk_str value;
    int e = duda_read_all(d, 1 << 16, &value);
    return e ? e : duda_sql_query(d, duda_sql_find(d, NULL), &result,
                            "INSERT INTO kept (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = $2",
                            duda_sql_text(duda_param(d, "key")), duda_sql_text(value));
}

static int get_sql(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result, "SELECT value FROM kept WHERE name = $1", duda_sql_text(duda_param(d, "key")));
    return e ? e : result.n_rows ? duda_write(d, duda_sql_cell(&result, 0, 0)->text) : 404;
}

DUDA_SERVICE(asks,
    DUDA_GET("/socket", talk, "The chat."), DUDA_GET("/health", health, "The health check."),
    DUDA_PUT("/redis/:key", put_redis, "Writes."), DUDA_GET("/redis/:key", get_redis, "Reads."),
    DUDA_PUT("/sql/:key", put_sql, "Writes."), DUDA_GET("/sql/:key", get_sql, "Reads."),"""


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0


class Machine:
    """A network namespace with an address on the bridge."""

    def __init__(self, net, number):
        self.name, self.host = f"{net.name}{number}", f"{net.prefix}.{number}"
        self.inside = ["ip", "netns", "exec", self.name]
        for words in (("netns", "add", self.name),
                      ("link", "add", f"{self.name}a", "type", "veth", "peer", "name", "eth0", "netns", self.name),
                      ("link", "set", f"{self.name}a", "master", net.name, "up"),
                      ("-n", self.name, "addr", "add", f"{self.host}/24", "dev", "eth0"),
                      ("-n", self.name, "link", "set", "eth0", "up"), ("-n", self.name, "link", "set", "lo", "up")):
            if not ip(*words):
                pytest.skip(f"ip {' '.join(words)} fails here")

    def cut(self):
        assert ip("link", "set", f"{self.name}a", "down")

    def reconnect(self):
        assert ip("link", "set", f"{self.name}a", "up")


class Network:
    """A bridge with machines attached. Names and addresses contain the process ID, so that they are unique."""

    def __init__(self):
        number = os.getpid() % 65000
        self.name, self.prefix = f"mk{number:x}", f"10.{number // 256 % 256}.{number % 256}"
        if not ip("link", "add", self.name, "type", "bridge"):
            pytest.skip("this machine cannot create bridges")
        assert ip("addr", "add", f"{self.prefix}.254/24", "dev", self.name) and ip("link", "set", self.name, "up")

    def close(self):
        for number in range(1, 5):
            ip("netns", "del", f"{self.name}{number}")
        ip("link", "del", self.name)


@pytest.fixture
def machines():
    net = Network()
    try:
        yield [Machine(net, number) for number in range(1, 5)]
    finally:
        net.close()


class Node:
    """A node of the service on one machine."""

    def __init__(self, monkey, service, top, machine):
        self.monkey, self.service, self.top, self.machine, self.port = monkey, service, top, machine, 0
        self.start()

    def start(self):
        """Starts the node, always on the same port; no other process of its machine uses that port."""
        self.server = self.monkey(plugins=["duda-postgres", self.service], top=self.top, listen=f"{self.machine.host}:{self.port}",
                                  wrapper=self.machine.inside)
        self.server.allow("POSTGRES")
        self.port = self.server.port

    def signal(self, number):
        for pid in (self.server.pid, *self.server.workers):
            with contextlib.suppress(ProcessLookupError):  # the workers exit when their master dies
                os.kill(pid, number)

    def kill(self):
        self.server.exit_code = -signal.SIGKILL
        self.signal(signal.SIGKILL)
        self.server.wait()


def start_nodes(monkey, site, machines, seeds, postgres):
    source = SOURCE.replace("DUDA_SERVICE(asks,", TALK).replace('#define DUDA_USE "duda-redis"', '#define DUDA_USE "duda-redis", "duda-sql"').replace(
        "#include <duda/redis.h>", "#include <duda/redis.h>\n#include <duda/sql.h>")
    service = services.build(site.path.parent, "asks", source, packages=["redis", "sql"])
    listed = "".join(f"    Server {s.host}:{s.port}\n" for s in seeds)
    top = (f"[UPSTREAM]\n    Name seeds\n    ConnectTimeout 500ms\n{listed}"
           "[REDIS]\n    Name far\n    Server seeds\n    Timeout 5s\n    Cluster on\n    TopicRelay town\n"
           f"[POSTGRES]\n    Server {postgres}\n    PoolSize 2\n    Timeout 5s\n")
    return [Node(monkey, service, top, m) for m in machines]


def start_proxy(monkey, nodes):
    listed = "".join(f"    Server {node.machine.host}:{node.port}\n" for node in nodes)
    return monkey(plugins=["upstream", "proxy"], sections="[ROUTES]\n    /* proxy http://nodes response_timeout=8s\n",
                  top=f"[UPSTREAM]\n    Name nodes\n    ConnectTimeout 500ms\n    HealthCheck /health\n    HealthInterval 500ms\n{listed}")


def all_received(chat, text):
    """Have all clients received the text? Earlier messages are skipped."""
    with contextlib.suppress(TimeoutError):
        for socket in chat:
            while socket.recv(2) != text:
                pass
        return True
    return False


def wait_for_delivery(nodes, text):
    """Publishes on every node until all clients have received a message: a node may still be connecting to Redis."""
    with contextlib.ExitStack() as stack:
        chat = [stack.enter_context(connect(f"ws://{n.machine.host}:{n.port}/socket")) for n in nodes]
        tries = itertools.count()

        def publish(talker):
            words = f"{text} {next(tries)}"
            talker.send(words)
            return all_received(chat, words)
        for talker in chat:
            wait_until(lambda talker=talker: publish(talker), "all nodes receive the message")


class World:
    """The whole setup: machines, cluster, database, nodes and proxy."""

    def __init__(self, monkey, site, machines, stack):
        *self.machines, self.vault = machines
        machines = [self.machines[i] for i in (0, 1, 2, 1, 2, 0)]  # no replica runs on the machine of its master
        spots = iter(machines)

        class MachineRedis(redis_server.Redis):
            def command(self):
                if not hasattr(self, "machine"):
                    self.machine = next(spots)
                return [*self.machine.inside, *super().command(), "--protected-mode", "no"]

        self.cluster = redis_server.Cluster(hosts=[m.host for m in machines], make=MachineRedis)
        stack.callback(self.cluster.stop)
        self.postgres = redis_server.start_at_port(
            lambda port: postgres_server.Postgres(port=port, host=self.vault.host, inside=self.vault.inside))
        stack.callback(self.postgres.stop)
        name = self.postgres.database().rpartition("=")[2]
        self.postgres.sql("CREATE TABLE kept (name TEXT PRIMARY KEY, value TEXT NOT NULL)", name)
        address = f"host={self.vault.host} port={self.postgres.port} user=ana dbname={name}"
        self.nodes = start_nodes(monkey, site, self.machines, self.cluster.servers, address)
        self.proxy = start_proxy(monkey, self.nodes)

    def wait_for_masters(self, alive):
        wait_until(lambda: sum(s.info("replication", "role") == "master" for s in alive) == 3, "a replica is the master")

    def wait_for_replicas(self):
        """Waits until every master has a replica, so that all writes can be acknowledged."""
        wait_until(lambda: [s.info("replication", "connected_slaves") for s in self.cluster.masters()] == ["1"] * 3,
                   "each master has a replica")


@contextlib.contextmanager
def machine_cut_off(world):
    machine = world.machines[0]
    machine.cut()
    world.wait_for_masters([s for s in world.cluster.servers if s.machine is not machine])
    yield
    machine.reconnect()


@contextlib.contextmanager
def redis_killed(world):
    victim = world.cluster.masters()[0]
    victim.kill()
    world.wait_for_masters([s for s in world.cluster.servers if s is not victim])
    yield
    victim.start_again()


@contextlib.contextmanager
def redis_frozen(world):
    victim = world.cluster.masters()[0]
    victim.freeze()
    world.wait_for_masters([s for s in world.cluster.servers if s is not victim])
    yield
    victim.thaw()


@contextlib.contextmanager
def node_killed(world):
    world.nodes[1].kill()
    yield
    world.nodes[1].start()


@contextlib.contextmanager
def node_frozen(world):
    world.nodes[2].signal(signal.SIGSTOP)
    yield
    world.nodes[2].signal(signal.SIGCONT)


@contextlib.contextmanager
def postgres_killed(world):
    world.postgres.kill()
    yield
    world.postgres.start()


EVENTS = [machine_cut_off, node_killed, postgres_killed]
if os.environ.get("MONKEY_MACHINES"):
    EVENTS += [redis_killed, redis_frozen, node_frozen]


@pytest.mark.timeout(240)
def test_cluster_keeps_acknowledged_writes_when_a_machine_is_lost(monkey, site, machines, record_property):
    with contextlib.ExitStack() as stack:
        world = World(monkey, site, machines, stack)
        wait_for_delivery(world.nodes, "before")
        load = {name: stack.enter_context(StoreClients(world.proxy.connect, f"/{name}", clients=10, pause=0.3)) for name in ("redis", "sql")}
        for clients in load.values():
            clients.more(3)
        for event in EVENTS:
            began = time.monotonic()
            with event(world):
                load["redis"].more(2)
                if event is not postgres_killed:
                    load["sql"].more(2)
            world.wait_for_replicas()
            for name, clients in load.items():
                clients.more(3)
                longest = clients.longest(since=began)
                print(f"{event.__name__}: {longest:.1f} s without a write to {name}")
                record_property(f"seconds_without_{name}_{event.__name__}", longest)
            wait_for_delivery(world.nodes, event.__name__)
        print(*re.findall(r".*answered -.*", "".join(node.server.log for node in world.nodes))[-20:], sep="\n")
        for name, clients in load.items():
            print(f"{name}: {len(clients.times)} writes, refused {dict(clients.refusals)}")
            clients.check(502, 503, 504)
        assert all(node.server.get("/spread").text == "100" for node in world.nodes)
