#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the user-space instructions that features of Duda add to a request, with callgrind.

    features.py PROGRAM [--only WORD] [--write FILE] [--profile]

Each feature is a route of tools/bench/features.c, and is compared with another route that does the same without the feature: for
middleware with a plain handler, for schemas and templates with code written by hand. instructions.py explains how the instructions
of one request are counted; a connection stays open for all requests. Each count is the lower of two, because timers that expire on a
busy machine add to it. The run takes about eight minutes.

--only measures the features whose name contains WORD. --write puts the table into FILE, between two comments. --profile also
prints which functions the instructions of each feature belong to.
"""
import argparse
import contextlib
import os
import pathlib
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile

import instructions

BEGIN, END = "<!-- features -->\n", "<!-- /features -->\n"
HEAD = "| feature | instructions | without it | difference | ratio |\n|---|---|---|---|---|\n"
ORDER = b'{"item": "tea", "count": 3, "urgent": true}'
CUSTOMER = (b'{"id": 1815, "name": "Ada Lovelace", "email": "ada@example.org", "street": "12 St James\'s Square", "city": "London", '
            b'"zip": 10115, "country": "GB", "orders": 27, "discount": 2.5, "active": true}')
PAGE = "<!DOCTYPE html>\n<title>{{name}}</title>\n<p>From {{city}}, with {{orders}} orders.</p>\n"
TYPE = "Content-Type: application/json\r\n"


def request(path, fields="", body=None, method="GET"):
    if body is not None:
        method, fields = "POST", f"{fields}{TYPE}Content-Length: {len(body)}\r\n"
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:2001\r\n{fields}\r\n".encode() + (body or b"")


PLAIN = request("/plain")
ORIGIN = "Origin: https://app.example.org\r\n"
TOKEN = "Authorization: Bearer secret\r\n"
# Name, request with the feature, request without it; "session" stands for the cookie of a session.
FEATURES = [
    ("a handler that writes 3 bytes", PLAIN, PLAIN),
    ("1 `DUDA_BEFORE()`", request("/before-1"), PLAIN),
    ("5 `DUDA_BEFORE()`", request("/before-5"), PLAIN),
    ("1 `DUDA_AFTER()`", request("/after"), PLAIN),
    ("1 `DUDA_AROUND()`", request("/around"), PLAIN),
    ("`.auth` with a bearer token", request("/auth", TOKEN), request("/plain", TOKEN)),
    ("`.rate`", request("/rate"), PLAIN),
    ("`DUDA_CORS()`, request of an allowed origin", request("/cors", ORIGIN), request("/plain", ORIGIN)),
    ("load a session of the memory store", "session /session", "session /plain"),
    ("bind a JSON body to a schema, 3 fields", request("/order/schema", body=ORDER), request("/order/code", body=ORDER)),
    ("bind a JSON body to a schema, 10 fields", request("/customer/schema", body=CUSTOMER), request("/customer/code", body=CUSTOMER)),
    ("`duda_send_json_struct()`, 3 fields, beside `duda_printf()`", request("/order/schema"), request("/order/code")),
    ("`duda_send_json_struct()`, 10 fields, beside `duda_printf()`", request("/customer/schema"), request("/customer/code")),
    ("`duda_render()`, 3 values, beside `duda_html_escape()`", request("/page/template"), request("/page/code")),
    *((f"`duda_sql_bind_rows()`, 5 columns, {n:,} row{'s' * (n > 1)}", request(f"/rows/{n}/schema"), request(f"/rows/{n}/code"))
      for n in (1, 10, 1000)),
    *((f"`duda_sql_query_rows()` with SQLite, 5 columns, {n:,} row{'s' * (n > 1)}", request(f"/sqlite/{n}/schema"),
       request(f"/sqlite/{n}/code"))
      for n in (1, 10, 1000)),
]


def read_cookie(port):
    """Begins a session and returns its cookie."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(request("/session", method="PUT"))
        return re.search(rb"(?i)set-cookie: ([^;]+)", sock.recv(4096))[1].decode()


def client_for(message):
    def send(port, requests):
        if isinstance(message, str):
            instructions.ask(port, requests, request(message.split()[1], f"Cookie: {read_cookie(port)}\r\n"))
        else:
            instructions.ask(port, requests, message)
    return send


def prepare(program, folder):
    """Returns the configuration after [SERVER]."""
    os.makedirs(f"{folder}/www/templates")
    pathlib.Path(folder, "www", "templates", "page.html").write_text(PAGE)
    with contextlib.closing(sqlite3.connect(f"{folder}/products.db")) as db:
        db.execute("CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT, price REAL, stock INTEGER, sold INTEGER)")
        db.executemany("INSERT INTO product VALUES (?, 'green tea', 2.5, 12, 1)", ((i,) for i in range(1000)))
        db.commit()
    service = instructions.build_service(program, f"{folder}/www", "features", "features.c", ("duda-auth", "duda-sql", "readers"))
    return (f"[PLUGINS]\n    Load {service}\n    Load duda-sqlite\n[SQLITE]\n    File {folder}/products.db\n"
            f"[HOST]\n    DocumentRoot {folder}/www\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", default="")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    program, counted, rows = os.path.abspath(options.program), {}, []
    with tempfile.TemporaryDirectory() as folder:
        configuration = prepare(program, folder)

        def count(message):
            if message not in counted:
                tries = [instructions.count(program, folder, configuration, client_for(message)) for _ in range(2)]
                counted[message], profile = min(tries)
                if options.profile:
                    subprocess.run(["callgrind_annotate", str(profile)], check=True)
            return counted[message]

        for name, feature, without in FEATURES:
            if options.only in name:
                a, b = count(feature), count(without)
                rows.append(f"| {name} | {a:,} | {b:,} | {a - b:,} | {a / b:.2f} |\n" if a != b else f"| {name} | {a:,} | | | |\n")
                print(rows[-1], end="", flush=True)
    if options.write:
        text = options.write.read_text()
        if BEGIN not in text:
            sys.exit(f"features.py: {options.write} has no line {BEGIN.strip()}")
        head, rest = text.split(BEGIN, 1)
        options.write.write_text(head + BEGIN + HEAD + "".join(rows) + END + rest.split(END, 1)[1])


if __name__ == "__main__":
    main()
