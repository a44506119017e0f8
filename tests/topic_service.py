# SPDX-License-Identifier: Apache-2.0
"""A service with topics that keep their messages, and an event stream that reconnects like a browser."""
import contextlib
import http.client
import socket
import threading
import time

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

from proc import wait_until

SOURCE = r"""
#include <duda.h>
#include <duda/topic.h>
#include <errno.h>

static uint32_t number(struct duda_ctx *d, const char *name)
{
    int64_t n;
    return duda_query_int_or(d, name, 0, &n) ? (uint32_t)n : 0;
}

/* The topic of the path; `.keep` and `.keep_s` are those of the query. */
DUDA_TOPIC_FAMILY(topics, "", .keep = 100);

static struct duda_topic topic(struct duda_ctx *d)
{
    struct duda_topic t = duda_topic_named(&topics, duda_param(d, "topic"));
    int64_t n;
    t.keep = duda_query_int_or(d, "keep", 100, &n) ? (uint32_t)n : 0;
    t.keep_s = number(d, "seconds");
    return t;
}

static int say(struct duda_ctx *d)
{
    const struct duda_topic t = topic(d);
    mk_str text;
    int e = duda_read_all(d, 40000, &text);
    e = e ? e : duda_topic_publish(d, &t, text);
    return e ? e : duda_puts(d, "said\n");
}

/* Handles each message after a pause, so that the queue of the handler overflows. */
static int events(struct duda_ctx *d)
{
    struct duda_topic_message m;
    const struct duda_topic t = topic(d);
    uint32_t pause = number(d, "pause");
    int e = duda_topic_subscribe_after(d, &t, duda_header(d, "Last-Event-ID"));
    size_t mark = duda_arena_mark(d);
    e = e ? e : duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("open"), .data = MK_STR("-")});
    while (!e && !(e = duda_topic_receive_message(d, MK_FOREVER, &m))) {
        e = m.has_gap ? duda_sse_send(d, &(struct mk_sse_event){.id = m.id, .name = MK_STR("gap"), .data = MK_STR("-")})
                      : duda_sse_send(d, &(struct mk_sse_event){.id = m.id, .data = duda_sprintf(d, "%.*s%s", MK_STR_ARG(m.data), m.dropped ? " dropped" : "")});
        if (!e && pause)
            e = duda_sleep(d, pause);
        duda_arena_rewind(d, mark);
    }
    return e;
}

/* Publishes the messages of the client, which gets the messages of the topic. */
static int chat(struct duda_ctx *d)
{
    static const struct duda_websocket_options options = {.queue_max = 65536, .slow = DUDA_SLOW_DROP};
    const struct duda_topic t = topic(d);
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, &options, NULL, &s);
    e = e ? e : duda_topic_attach_after(d, s, &t, duda_query(d, "last_event_id"));
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        e = duda_topic_publish(d, &t, m.data);
    return e;
}

static void on_message(struct duda_websocket *s, enum mk_websocket_kind kind, mk_str data, void *ctx)
{
    (void)kind, (void)ctx;
    if (mk_str_eq(data, MK_STR("leave"))) {
        const struct duda_topic t = duda_topic_named(&topics, MK_STR("callbacks"));
        duda_topic_detach(s, &t);
    } else if (mk_str_starts(data, MK_STR("say "))) {
        const struct duda_topic t = duda_topic_named(&topics, MK_STR("callbacks"));
        if (duda_topic_publish_from(s, &t, mk_str_skip(data, 4)))
            duda_websocket_close(s, 1011, MK_STR("not published"));
    } else if (mk_str_eq(data, MK_STR("raw"))) {
        (void)mk_websocket_send(duda_websocket_raw(s), MK_WEBSOCKET_TEXT, MK_STR("message 0\nsent by the server"));
    }
}

static void on_close(struct duda_websocket *s, unsigned code, void *ctx)
{
    (void)s;
    mk_worker_log(ctx, MK_LOG_WARN, "callback closed %u", code);
}

/* The WebSocket outlives its handler. */
static int callbacks(struct duda_ctx *d)
{
    static const struct duda_websocket_options options = {
        .on_message = on_message, .on_close = on_close, .queue_max = 65536};
    const struct duda_topic t = duda_topic_named(&topics, MK_STR("callbacks"));
    struct duda_websocket *s;
    int e = duda_websocket_open(d, &options, duda_worker(d), &s);
    return e ? e : duda_topic_attach_after(d, s, &t, duda_query(d, "last_event_id"));
}

DUDA_SERVICE(news, DUDA_POST("/say/:topic", say), DUDA_GET("/events/:topic", events),
             DUDA_GET("/socket/:topic", chat), DUDA_GET("/callbacks", callbacks));
"""


def say(server, text, topic="news", keep=100, seconds=0):
    reply = server.get(f"/say/{topic}?keep={keep}&seconds={seconds}", "POST", body=text.encode())
    assert reply.status == 200, reply.text


def runs(server):
    """Returns whether the server still runs. After its end, another test's server may listen on its port."""
    return server.process.poll() is None


class Socket(threading.Thread):
    """A WebSocket that reconnects like the script of the guide, until close() or the end of the server. `seen` has the data of
    the messages, and "GAP". `codes` has the close codes."""

    def __init__(self, server, path="/socket/news", last="", reconnects=True):
        super().__init__(daemon=True)
        self.server, self.path, self.last, self.reconnects = server, path, last, reconnects
        self.seen, self.codes, self.opened, self.closed, self.socket = [], [], 0, False, None
        self.start()
        wait_until(lambda: self.opened, "the WebSocket is open")

    def run(self):
        while not self.closed and runs(self.server):
            try:
                self.read()
            except ConnectionClosed as e:
                self.codes.append(e.rcvd.code if e.rcvd else 1006)
            except (OSError, InvalidHandshake):
                time.sleep(0.05)
            if not self.reconnects:
                return

    def read(self):
        host, port = self.server.addresses[0]
        query = f"{'&' if '?' in self.path else '?'}last_event_id={self.last}" if self.last else ""
        with connect(f"ws://{host}:{port}{self.path}{query}", open_timeout=60, max_size=None) as socket:
            self.socket = socket
            if self.last:
                self.opened += 1
            for frame in socket:
                line, _, data = frame.partition("\n" if isinstance(frame, str) else b"\n")
                word, self.last = (line if isinstance(line, str) else line.decode()).split(" ")
                if word == "start":
                    self.opened += 1
                elif word == "gap":
                    assert not data
                    self.seen.append("GAP")
                else:
                    assert word == "message"
                    self.seen.append(data)
            raise ConnectionClosed(socket.protocol.close_rcvd, None)

    def cut(self):
        """Breaks the connection."""
        with contextlib.suppress(OSError):
            self.socket.socket.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.closed = True
        self.cut()
        self.join(20)


class Stream:
    """An event stream that reconnects like a browser, until close() or the end of the server. `seen` has the data of the
    messages, and "GAP"."""

    def __init__(self, server, topic="news", last="", pause=0, reconnects=True, reads=True):
        self.server, self.target, self.last, self.reconnects = server, f"/events/{topic}?pause={pause}", last, reconnects
        self.seen, self.opened, self.closed, self.socket, self.reads = [], 0, False, None, threading.Event()
        if reads:
            self.reads.set()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        wait_until(lambda: self.opened, "the stream is open")

    def run(self):
        while not self.closed and runs(self.server):
            try:
                self.read()
            except (OSError, http.client.HTTPException, ValueError, AttributeError):
                time.sleep(0.05)
            if not self.reconnects:
                return

    def read(self):
        host, port = self.server.addresses[0]
        connection = http.client.HTTPConnection(host, port, timeout=60)
        connection.request("GET", self.target, headers={"Last-Event-ID": self.last} if self.last else {})
        answer = connection.getresponse()
        self.socket = connection.sock
        name, identifier, data = "message", self.last, None
        for line in answer:
            self.reads.wait()
            key, _, value = line.decode().rstrip("\n").partition(": ")
            if key == "event":
                name = value
            elif key == "id":
                identifier = value
            elif key == "data":
                data = value
            elif not key and data is not None:
                if name == "open":
                    self.opened += 1
                else:
                    self.last = identifier
                    self.seen.append("GAP" if name == "gap" else data)
                name, data = "message", None
            if self.closed:
                break

    def cut(self):
        """Ends the connection, which the stream then opens again."""
        n = self.opened
        if self.socket:
            self.socket.shutdown(2)
        wait_until(lambda: self.opened > n, "the stream is open again")

    def close(self):
        self.closed = True
        if self.socket:
            self.socket.shutdown(2)


def numbers(begin, end):
    return [str(i) for i in range(begin, end)]
