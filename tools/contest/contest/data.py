# SPDX-License-Identifier: Apache-2.0
"""Backend databases of contestants: PostgreSQL with the tables of TechEmpower's tests, and Redis with one key, both on unix
sockets. Also checks the responses that contestants create from them.

    lacks()                                    # why the databases are unavailable, or None
    command = prepare(folder, cluster)         # starts both databases; then sockets(folder) exist
    fault = check(port, "/queries?queries=20") # what is wrong with the responses, or None
"""
from __future__ import annotations

import html
import html.parser
import http.client
import json
import os
import pwd
import re
import shutil
import subprocess
import time
from pathlib import Path

USER = "contest"  # the database user, who needs no password
MESSAGE = 'Redis says: "hello" & <welcome>'
ROWS, MOST = 10000, 500
ADDED = "Additional fortune added at request time."
PROJECT = Path(__file__).resolve().parents[3]
SQL = PROJECT / "examples" / "duda" / "techempower" / "migrations" / "1-world.sql"
PATHS = {"/db": "db", "/queries": "queries", "/fortunes": "fortunes", "/updates": "updates", "/cached-queries": "cached", "/page": "page"}
SECONDS = 20


# ---- Starting the databases ----

def _postgres():
    """Returns the folder of the PostgreSQL programs, which Debian does not put on PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def _as_user():
    """Returns a command prefix to change the user: PostgreSQL refuses to run as root."""
    for name in ("postgres", "nobody") if os.geteuid() == 0 else ():
        try:
            who = pwd.getpwnam(name)
        except KeyError:
            continue
        return ["setpriv", f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}", "--clear-groups"], who
    return [], None


def lacks() -> str | None:
    """Returns why the databases are unavailable on this machine, or None."""
    if not _postgres():
        return "PostgreSQL is not installed"
    return None if shutil.which("redis-server") else "Redis is not installed"


def _own(folder, who):
    if who:
        os.chown(folder, who.pw_uid, who.pw_gid)


def make_cluster(folder: Path) -> None:
    """Creates a cluster with the tables, as a template."""
    prefix, who = _as_user()
    folder.mkdir()
    _own(folder, who)
    statements = re.sub(r"(?m)^--.*\n", "", SQL.read_text()).split(";\n")
    lines = "".join(" ".join(each.split("\n")).strip() + ";\n" for each in statements if each.strip())
    how = {"cwd": "/", "check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 120}
    subprocess.run([*prefix, _postgres() / "initdb", "-D", folder / "data", "-U", USER, "-A", "trust", "-N", "--no-locale", "-E",
                    "UTF8"], **how)
    subprocess.run([*prefix, _postgres() / "postgres", "--single", "-D", folder / "data", "postgres"], input=lines.encode(), **how)


def prepare(folder: Path, cluster: Path, address: str = "") -> list:
    """Returns the command that starts PostgreSQL, with a copy of the template cluster (created if necessary), and Redis. With an
    address, PostgreSQL also listens there, at its default port."""
    prefix, who = _as_user()
    if not cluster.exists():
        make_cluster(cluster)
    subprocess.run(["cp", "-a", cluster / "data", folder / "data"], check=True)
    _own(folder, who)
    keep = folder / "redis.conf"
    keep.write_text(f"port 0\nunixsocket {folder}/redis.sock\nunixsocketperm 777\nsave \"\"\nappendonly no\ndir {folder}\n")
    script = folder / "start.sh"
    script.write_text(f"""\
redis-server {keep} &
exec {' '.join(map(str, prefix))} {_postgres()}/postgres -D {folder}/data -k {folder} -c listen_addresses={address} -c fsync=off \\
    -c synchronous_commit=off -c max_connections=64 -c unix_socket_permissions=0777
""")
    return ["sh", script]


def sockets(folder: Path) -> list[Path]:
    return [folder / ".s.PGSQL.5432", folder / "redis.sock"]


def fill(folder: Path) -> None:
    """Sets the Redis key of the page, once both databases respond: PostgreSQL rejects connections during startup."""
    end = time.monotonic() + SECONDS
    while subprocess.run([_postgres() / "pg_isready", "-q", "-h", folder], cwd="/", check=False, timeout=SECONDS).returncode:
        if time.monotonic() > end:
            raise OSError("PostgreSQL does not respond")
        time.sleep(0.02)
    subprocess.run(["redis-cli", "-s", folder / "redis.sock", "SET", "message", MESSAGE], check=True, stdout=subprocess.DEVNULL,
                   timeout=SECONDS)


def number_of(folder: Path, row: int) -> int:
    """Returns the number in a row of the table `world`, read from the database itself."""
    prefix, _ = _as_user()
    said = subprocess.run([*prefix, _postgres() / "psql", "-h", folder, "-U", USER, "-d", "postgres", "-Atc",
                           f"SELECT randomnumber FROM world WHERE id = {row}"], cwd="/", check=True, capture_output=True,
                          text=True, timeout=SECONDS).stdout
    return int(said)


# ---- Responses ----

class Table(html.parser.HTMLParser):
    """Collects the cells of a table by row, and the names of other elements."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.rows, self.others, self.into = [], set(), None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, _attributes):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.into = len(self.rows[-1])
            self.rows[-1].append("")
        else:
            self.others.add(tag)

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.into = None

    def handle_data(self, data):
        if self.into is not None:
            self.rows[-1][self.into] += data


class Wrong(Exception):
    """A response violates the rules."""


def _need(holds, why):
    if not holds:
        raise Wrong(why)


def _ask(connection, path, kind):
    connection.request("GET", path)
    response = connection.getresponse()
    text = response.read().decode()
    _need(response.status == 200, f"status {response.status}")
    _need(response.getheader("Content-Type", "").partition(";")[0] == kind, f"Content-Type {response.getheader('Content-Type')!r}")
    _need(response.getheader("Server") and response.getheader("Date"), "Server or Date is missing")
    return text


def _is_row(row):
    return (isinstance(row, dict) and {key.lower() for key in row} == {"id", "randomnumber"}
            and all(type(value) is int and 1 <= value <= ROWS for value in row.values()))


def _number(row):
    return next(value for key, value in row.items() if key.lower() == "randomnumber")


def _rows(connection, path, n):
    rows = json.loads(_ask(connection, path, "application/json"))
    _need(isinstance(rows, list) and len(rows) == n, f"{len(rows)} rows instead of {n}")
    _need(all(map(_is_row, rows)), f"{rows[:1]} is not a row")
    _need(n < 20 or len({row["id"] for row in rows}) > n // 2, "the rows are not random")
    return rows


def _check_db(connection, path, _n, _number_of):
    rows = [json.loads(_ask(connection, path, "application/json")) for _ in range(10)]
    _need(all(map(_is_row, rows)), f"{rows[0]} is not a row")
    _need(len({row["id"] for row in rows}) > 1, "every response has the same row")


# Query values and the expected counts: the count is clamped to the range 1 to 500.
ASKED = {"": 1, "foo": 1, "0": 1, "-3": 1, "1": 1, "20": 20, "500": 500, "501": 500, "1000000": 500}


def _check_rows(connection, path, n, _number_of):
    path, _, name = path.partition("?")
    name = name.partition("=")[0]
    for asked, count in {**ASKED, str(n): n}.items():
        _rows(connection, f"{path}?{name}={asked}", count)
    _rows(connection, path, 1)


def _check_updates(connection, path, n, number_of):
    _check_rows(connection, path, n, number_of)
    said = {row["id"]: _number(row) for row in _rows(connection, path, n)}  # if a row occurs twice, the last one counts
    for row, number in list(said.items())[-3:] if number_of else ():
        written = number_of(row)
        _need(written == number, f"row {row} was said to be {number}, but is {written}")


def _check_fortunes(connection, path, _n, _number_of):
    text = _ask(connection, path, "text/html")
    _need(text.lower().startswith("<!doctype html>"), "the page does not begin with <!DOCTYPE html>")
    table = Table(text)
    messages = [row[1] for row in table.rows[1:]]
    _need(table.rows[0] == ["id", "message"] and len(messages) == 13, f"{len(messages)} fortunes instead of 13")
    _need(messages == sorted(messages, key=str.encode), "the fortunes are not sorted")
    _need(["0", ADDED] in table.rows and "script" not in table.others, "one is missing, or one is not escaped")
    _need(any("<script>alert(" in each for each in messages) and "フレームワークのベンチマーク" in messages, "the text of a row has changed")


def _check_page(connection, path, _n, _number_of):
    text = _ask(connection, path, "text/html")
    _need(html.unescape(text) == f"<!DOCTYPE html><p>{MESSAGE}</p>\n" and "<welcome>" not in text, f"the page is {text[:80]!r}")


CHECKS = {"db": _check_db, "queries": _check_rows, "cached": _check_rows, "updates": _check_updates, "fortunes": _check_fortunes,
          "page": _check_page}


def check(port: int, path: str, number_of=None) -> str | None:
    """Sends every request that TechEmpower's rules require for this path, and checks the responses. Returns an error message, or
    None. `number_of` reads the value of a row from the database; no other client may change rows during the check."""
    n = int(path.rpartition("=")[2]) if "=" in path else 1
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        CHECKS[PATHS[path.partition("?")[0]]](connection, path, n, number_of)
    except Wrong as why:
        return f"{path}: {why}"
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"{path}: {error or type(error).__name__}"
    finally:
        connection.close()
    return None
