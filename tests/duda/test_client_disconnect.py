# SPDX-License-Identifier: Apache-2.0
"""A handler learns that its client has disconnected: over every protocol, after every kind of disconnect, with and
without a proxy in between. The service counts its handlers by the reason for their end."""
import socket

import pytest

import services
from monkey import PROTOCOLS
from proc import wait_until
from sockets import reset
from wsframes import Peer

pytestmark = [pytest.mark.skipif(not services.has("subprocess"), reason="this build has no Duda"),
              pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)]

SOURCE = r"""
#include <duda.h>
#include <errno.h>

enum { LONG_MS = 3600000 };

static unsigned n_live, n_cancelled, n_done, n_other;

static void leave(void *ctx)
{
    int e = duda_cancelled(ctx);
    n_live--;
    *(e == -ECANCELED ? &n_cancelled : e == 0 ? &n_done : &n_other) += 1;
}

static int begin(struct duda_ctx *d)
{
    n_live++;
    return duda_defer(d, leave, d);
}

static int waits(struct duda_ctx *d)
{
    int e = begin(d);
    return e ? e : duda_sleep(d, LONG_MS);
}

static int streams(struct duda_ctx *d)
{
    int e = begin(d);
    e = e ? e : duda_puts(d, "begun\n");
    e = e ? e : duda_flush(d);
    return e ? e : duda_sleep(d, LONG_MS);
}

/* The client does not read, so the handler waits for the output buffer to drain. */
static int fills(struct duda_ctx *d)
{
    static char much[60000];
    int e = begin(d);
    while (!e) {
        e = duda_write(d, mk_str_of(much, sizeof much));
        e = e ? e : duda_flush(d);
    }
    return e;
}

static int content(struct duda_ctx *d)
{
    mk_str text;
    int e = begin(d);
    return e ? e : duda_read_all(d, 1 << 20, &text);
}

static int hello(struct duda_ctx *d)
{
    int e = begin(d);
    return e ? e : duda_puts(d, "hello\n");
}

static int sockets(struct duda_ctx *d)
{
    struct duda_websocket *s;
    struct duda_message m;
    int e = begin(d);
    e = e ? e : duda_websocket_open(d, NULL, NULL, &s);
    while (!e && duda_websocket_receive(d, s, &m) > 0)
        continue;
    return e ? e : duda_sleep(d, LONG_MS); /* fails immediately because the client has disconnected */
}

static int count(struct duda_ctx *d)
{
    return duda_printf(d, "%u %u %u %u", n_live, n_cancelled, n_done, n_other);
}

DUDA_SERVICE(leaves, DUDA_ANY("/waits", waits, ""), DUDA_ANY("/streams", streams, ""), DUDA_ANY("/fills", fills, ""),
             DUDA_ANY("/content", content, ""), DUDA_ANY("/hello", hello, ""), DUDA_GET("/sockets", sockets, ""),
             DUDA_GET("/count", count, ""));
"""


def prepare(monkey, site):
    at = site.path.parent / "self.sock"
    service = services.build(site.path.parent, "leaves", SOURCE)
    monkey(plugins=["proxy", service], workers=1, listen=["127.0.0.1:0", f"unix:{at}"],
           sections=f"[ROUTES]\n    /proxied/* proxy http://unix:{at}:/\n")


@pytest.fixture
def server(lasting):
    return lasting(prepare)


@pytest.fixture(params=["", "/proxied"], ids=["direct", "proxied"])
def path(request):
    return request.param


class Counts:
    """Compares the counters of the service with those at the creation of this object."""

    def __init__(self, server):
        self.server = server
        self.before = self.now()

    def now(self):
        return [int(n) for n in self.server.get("/count").text.split()]

    def expect(self, live=0, cancelled=0, done=0):
        def is_so():
            return [a - b for a, b in zip(self.now(), self.before, strict=True)] == [live, cancelled, done, 0]

        wait_until(is_so, f"{live} handlers run, {cancelled} were cancelled and {done} have returned")


def close(client):
    client.close()


def half_close(client):
    client.sock.shutdown(socket.SHUT_WR)


def abort(client):
    reset(client.sock)


def cancel(client):
    """Sends RST_STREAM over HTTP/2. HTTP/1 has no equivalent, so this closes the connection."""
    if hasattr(client, "cancel"):
        client.cancel()
    else:
        client.close()


LEAVE = [close, half_close, abort, cancel]


@pytest.mark.parametrize("how", LEAVE)
@pytest.mark.parametrize("phase", ["waits", "streams", "content"])
def test_client_disconnect_cancels_handler(server, path, phase, how):
    counts = Counts(server)
    with server.connect() as client:
        client.ask(f"{path}/{phase}", "POST", body=b"x", fields=[("Content-Length", "2" if phase == "content" else "1")])
        if not (path and phase == "content"):  # the proxy spools the request body first
            counts.expect(live=1)
        if phase == "streams":
            client.read_head()
        how(client)
        counts.expect(cancelled=0 if path and phase == "content" else 1)


@pytest.mark.parametrize("how", [close, abort, cancel])  # a client that only half-closes may still read the response
def test_disconnect_of_a_client_that_reads_nothing_cancels_handler(server, path, how):
    counts = Counts(server)
    with server.connect(receive_buffer=4096) as client:
        client.ask(f"{path}/fills")
        counts.expect(live=1)
        how(client)
        counts.expect(cancelled=1)


@pytest.mark.parametrize("how", LEAVE)
def test_client_disconnect_after_its_response_cancels_nothing(server, path, how):
    counts = Counts(server)
    with server.connect() as client:
        assert client.get(f"{path}/hello").text == "hello\n"
        how(client)
        counts.expect(done=1)


@pytest.mark.parametrize("how", LEAVE[:3])
def test_client_disconnect_before_its_request_runs_no_handler(server, how):
    counts = Counts(server)
    with server.connect() as client:
        client.send(b"GET /hel" if not server.is_h2 else b"\0\0\x08\1\4\0\0")
        how(client)
        counts.expect()


@pytest.mark.parametrize("how", LEAVE)
def test_websocket_disconnect_cancels_handler(server, path, how):
    counts = Counts(server)
    with Peer(server, f"{path}/sockets") as peer:
        counts.expect(live=1)
        how(peer.c)
        counts.expect(cancelled=1)
