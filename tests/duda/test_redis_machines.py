# SPDX-License-Identifier: Apache-2.0
"""Three machines, which are network namespaces: on each a node of a service and two nodes of a Redis Cluster. A proxy is in front.
A machine is cut off under load, and comes back: no write that was acknowledged is lost, what is said in a room arrives on every
node, and the longest time between two acknowledged writes is recorded (--junit-xml shows it)."""
import concurrent.futures
import contextlib
import itertools
import os
import shutil
import subprocess
import threading
import time

import pytest
from websockets.sync.client import connect

import redis_server
import services
from proc import wait_until
from redis_asks import SOURCE, ask

pytestmark = [pytest.mark.slow,
              pytest.mark.skipif(not services.has("redis") or not redis_server.PROGRAM,
                                 reason="there is no hiredis in this build, or no redis-server"),
              pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="network namespaces need root and ip")]

TALK = r"""
static int talk(struct duda *d)
{
    struct duda_socket *s;
    struct duda_message m;
    int e = duda_socket_open(d, NULL, NULL, &s);
    e = e ? e : duda_room_join(s, MK_STR("chat"));
    while (!e && (e = duda_socket_receive(d, s, &m)) > 0)
        e = duda_room_say(duda_worker(d), MK_STR("chat"), m.kind, m.data);
    return e;
}

DUDA_SERVICE(asks,
    DUDA_GET("/socket", talk, "The chat."),"""


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0


class Machine:
    """A namespace with an address on the bridge."""

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

    def mend(self):
        assert ip("link", "set", f"{self.name}a", "up")


class Net:
    """A bridge, and machines on it. Names and addresses are those of this process."""

    def __init__(self):
        number = os.getpid() % 65000
        self.name, self.prefix = f"mk{number:x}", f"10.{number // 256 % 256}.{number % 256}"
        if not ip("link", "add", self.name, "type", "bridge"):
            pytest.skip("this machine makes no bridges")
        assert ip("addr", "add", f"{self.prefix}.254/24", "dev", self.name) and ip("link", "set", self.name, "up")

    def close(self):
        for number in range(1, 4):
            ip("netns", "del", f"{self.name}{number}")
        ip("link", "del", self.name)


@pytest.fixture
def machines():
    net = Net()
    try:
        yield [Machine(net, number) for number in range(1, 4)]
    finally:
        net.close()


class Load:
    """Clients that write through the proxy, one key after the other."""

    def __init__(self, server, clients=4):
        self.server, self.acknowledged, self.over = server, [], threading.Event()
        pool = concurrent.futures.ThreadPoolExecutor(clients)
        self.ends = [pool.submit(self.write, i) for i in range(clients)]

    def write(self, client):
        n = 0
        while not self.over.is_set():
            key = f"key{client}-{n}"
            n += 1
            if self.server.get(f"/write?a={key}&b={key}").text == "OK":
                self.acknowledged.append((time.monotonic(), key))

    def wait_for(self, more):
        at = len(self.acknowledged)
        wait_until(lambda: len(self.acknowledged) >= at + more or any(end.done() for end in self.ends), "writes are acknowledged")

    def stop(self):
        """The keys, and the longest time between two answers."""
        self.over.set()
        for end in self.ends:
            end.result(60)
        times = sorted(at for at, _ in self.acknowledged)
        return [key for _, key in self.acknowledged], max(b - a for a, b in zip(times, times[1:]))


def start_nodes(monkey, site, machines, seeds):
    source = SOURCE.replace("DUDA_SERVICE(asks,", TALK)
    service = services.build(site.path.parent, "asks", source, packages=["redis"])
    listed = "".join(f"    Server {s.host}:{s.port}\n" for s in seeds)
    top = (f"[UPSTREAM]\n    Name seeds\n    ConnectTimeout 500ms\n{listed}"
           "[REDIS]\n    Server seeds\n    Timeout 5s\n    Cluster on\n    Rooms town\n")
    return [monkey(plugins=[service], top=top, listen=f"{m.host}:0", wrapper=m.inside) for m in machines]


def start_proxy(monkey, nodes):
    listed = "".join(f"    Server {node.addresses[0][0]}:{node.port}\n" for node in nodes)
    return monkey(plugins=["upstream", "proxy"], sections="[ROUTES]\n    /* proxy http://nodes wait=8s\n",
                  top=f"[UPSTREAM]\n    Name nodes\n    ConnectTimeout 500ms\n    HealthCheck /ask?c=PING\n    HealthTime 500ms\n{listed}")


def heard(chat, text):
    """Has every one of them heard it? What came before is of no interest."""
    with contextlib.suppress(TimeoutError):
        for socket in chat:
            while socket.recv(2) != text:
                pass
        return True
    return False


def all_hear(nodes, text):
    """Says something on each node until all have heard it: a node may still be on its way to Redis."""
    with contextlib.ExitStack() as stack:
        chat = [stack.enter_context(connect(f"ws://{n.addresses[0][0]}:{n.port}/socket")) for n in nodes]
        tries = itertools.count()

        def say(talker):
            words = f"{text} {next(tries)}"
            talker.send(words)
            return heard(chat, words)
        for talker in chat:
            wait_until(lambda talker=talker: say(talker), "all nodes hear it")


def test_a_machine_is_cut_off(monkey, site, machines, record_property):
    places = [machines[i] for i in (0, 1, 2, 1, 2, 0)]  # the replica of a master is on another machine
    spots = iter(places)

    class Placed(redis_server.Redis):
        def command(self):
            if not hasattr(self, "machine"):
                self.machine = next(spots)
            return [*self.machine.inside, *super().command(), "--protected-mode", "no"]

    cluster = redis_server.Cluster(hosts=[m.host for m in places], make=Placed)
    try:
        nodes = start_nodes(monkey, site, machines, cluster.servers)
        proxy = start_proxy(monkey, nodes)
        all_hear(nodes, "before")
        load = Load(proxy)
        load.wait_for(40)
        machines[0].cut()
        alive = [s for s in cluster.servers if s.machine is not machines[0]]
        wait_until(lambda: sum(s.info("replication", "role") == "master" for s in alive) == 3, "a replica is the master")
        load.wait_for(12)  # two masters have no replica now: writes of their keys are not acknowledged
        machines[0].mend()
        wait_until(lambda: cluster.servers[0].info("replication", "master_link_status") == "up", "the old master follows")
        load.wait_for(12)
        keys, longest = load.stop()
        lost = [key for key in keys if ask(proxy, "GET", key) != key]
        record_property("seconds_without_service", longest)
        assert not lost
        wait_until(lambda: all(node.get("/spread").text == "100" for node in nodes), "all nodes serve")
        all_hear(nodes, "after")
    finally:
        cluster.stop()
