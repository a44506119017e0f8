# SPDX-License-Identifier: Apache-2.0
"""Statements sent to a PostgreSQL server over TCP: all statements of one loop iteration share a packet, and no packet is
delayed."""
import contextlib
import os
import socket
import struct

import pytest

import postgres_server
import proc
import redis_server
import services
from proc import wait_until

pytestmark = pytest.mark.skipif(not services.has("postgres") or not postgres_server.is_usable(),
                                reason="this build has no libpq, or there is no PostgreSQL")

SOURCE = r"""
#define DUDA_USE "duda-sql", "duda-postgres"
#include <duda.h>
#include <duda/postgres.h>
#include <duda/sql.h>

/* /all?sql=TEXT&in=1: executes the statement 20 times with one call, inside a transaction if `in` is
   set. */
static int ask_all(struct duda_ctx *d)
{
    struct duda_sql_db *db = duda_sql_find(d, NULL);
    struct duda_sql_statement queries[20];
    struct duda_sql_result results[MK_LEN(queries)];
    bool in = duda_query(d, "in").p != NULL;
    for (size_t i = 0; i < MK_LEN(queries); i++)
        queries[i] = (struct duda_sql_statement){duda_query_or(d, "sql", ""), NULL, 0};
    int e = in ? duda_sql_begin(d, db) : 0;
    e = e ? e : duda_sql_batch(d, db, queries, MK_LEN(queries), results);
    e = e || !in ? e : duda_sql_commit(d, db);
    return e ? e : duda_puts(d, "done");
}

static int ask_one(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result, duda_query_or(d, "sql", ""));
    return e ? e : duda_puts(d, "done");
}

static int copy_one(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_postgres_copy *copy;
    int e = duda_postgres_copy(d, duda_sql_find(d, NULL), &result, "COPY goods FROM STDIN", &copy);
    e = e ? e : duda_postgres_copy_write(d, copy, MK_STR("1\n"));
    e = e ? e : duda_postgres_copy_end(d, copy);
    return e ? e : duda_puts(d, "done");
}

static int hear_one(struct duda_ctx *d)
{
    struct duda_sql_db *db = duda_sql_find(d, NULL);
    struct duda_sql_result result;
    struct duda_postgres_sub *sub;
    mk_str text;
    int e = duda_postgres_subscribe(d, db, MK_STR("x"), &sub);
    e = e ? e : duda_sql_query(d, db, &result, "SELECT pg_notify('x', 'done')");
    e = e ? e : duda_postgres_receive(d, sub, MK_FOREVER, &text);
    return e ? e : duda_write(d, text);
}

DUDA_SERVICE(packets,
    DUDA_GET("/all", ask_all, "Many statements."), DUDA_GET("/one", ask_one, "One."), DUDA_GET("/copy", copy_one, "A row."),
    DUDA_GET("/hear", hear_one, "A message."));
"""


def sent(server, port):
    """Returns the number of data packets sent to the port, and whether any connection holds data back."""
    packets, holds, seen = 0, False, set()
    for each in proc.sockets(server.workers):
        with contextlib.suppress(OSError), each:
            inode = os.fstat(each.fileno()).st_ino
            if each.getpeername()[1:] == (port,) and inode not in seen:
                seen.add(inode)
                packets += struct.unpack_from("I", each.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192), 156)[0]
                holds |= bool(each.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK))
    return packets, holds


def test_batch_is_sent_as_one_packet_without_delay(monkey, tmp_path):
    plugins = [services.build(tmp_path, "packets", SOURCE, packages=["sql", "postgres"])]
    postgres = redis_server.start_at_port(lambda port: postgres_server.Postgres(port=port))
    try:
        name = postgres.database().rpartition("=")[2]
        server = monkey(plugins=plugins, top=f"[POSTGRES]\n    Server host=127.0.0.1 port={postgres.port} user=ana dbname={name}\n"
                                             "    PoolSize 1\n")
        assert server.get("/one?sql=CREATE+TABLE+goods+(id+INT)").text == "done"

        def ask(path, most):
            before, _ = sent(server, postgres.port)
            assert before and server.get(path).text == "done"
            packets, holds = sent(server, postgres.port)
            assert packets - before < most and not holds

        for _ in range(2):
            ask("/all?sql=SELECT+1", 8)
            ask("/all?sql=SELECT+1&in=1", 12)
            ask("/one?sql=SELECT+1", 4)
            ask("/copy", 40)
            ask("/hear", 40)
        with server.connect() as c:
            c.ask("/all?sql=SELECT+pg_sleep(3600)&in=1")
            wait_until(lambda: "pg_sleep" in postgres.sql("SELECT max(query) FROM pg_stat_activity WHERE state = 'active' AND "
                                                          "pid <> pg_backend_pid()"), "the statements are running")
        ask("/all?sql=SELECT+1", 99)
    finally:
        postgres.stop()


def test_socket_held_by_another_process_causes_no_events(monkey, tmp_path):
    """The server closes a connection and libpq closes its socket, but another process still holds that socket open: none
    of its events may reach the worker."""
    plugins = [services.build(tmp_path, "packets", SOURCE, packages=["sql", "postgres"])]
    postgres = postgres_server.Postgres()
    with contextlib.ExitStack() as held:
        held.callback(postgres.stop)
        server = monkey(plugins=plugins, top=f"[POSTGRES]\n    Server {postgres.database()}\n    PoolSize 1\n")
        assert server.get("/one?sql=CREATE+TABLE+goods+(id+INT)").text == "done"
        for ask in ("/one?sql=SELECT+1", "/copy", "/hear"):
            for each in proc.sockets(server.workers):
                held.enter_context(each)
            postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'd1'")
            wait_until(lambda ask=ask: server.get(ask).text == "done", "the server answers again")
            assert server.get(ask).text == "done"
