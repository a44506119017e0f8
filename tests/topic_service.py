# SPDX-License-Identifier: Apache-2.0
"""A service with topics that keep their messages, and an event stream that reconnects like a browser."""
import http.client
import threading
import time

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

static int say(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_read_all(d, 40000, &text);
    e = e ? e : duda_topic_publish_kept(d, duda_param(d, "topic"), MK_WEBSOCKET_TEXT, text, number(d, "keep"));
    return e ? e : duda_puts(d, "said\n");
}

/* Handles each message after a pause, so that the queue of the handler overflows. */
static int events(struct duda_ctx *d)
{
    struct duda_topic_message m;
    uint32_t pause = number(d, "pause");
    int e = duda_topic_subscribe_after(d, duda_param(d, "topic"), duda_header(d, "Last-Event-ID"));
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

DUDA_SERVICE(news, DUDA_POST("/say/:topic", say), DUDA_GET("/events/:topic", events));
"""


def say(server, text, topic="news", keep=100):
    reply = server.get(f"/say/{topic}?keep={keep}", "POST", body=text.encode())
    assert reply.status == 200, reply.text


class Stream:
    """An event stream that reconnects like a browser, until close(). `seen` has the data of the messages, and "GAP"."""

    def __init__(self, server, topic="news", last="", pause=0, reconnects=True, reads=True):
        self.server, self.target, self.last, self.reconnects = server, f"/events/{topic}?pause={pause}", last, reconnects
        self.seen, self.opened, self.closed, self.socket, self.reads = [], 0, False, None, threading.Event()
        if reads:
            self.reads.set()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        wait_until(lambda: self.opened, "the stream is open")

    def run(self):
        while not self.closed:
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
