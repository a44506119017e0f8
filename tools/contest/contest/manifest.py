# SPDX-License-Identifier: Apache-2.0
"""Parses spread.toml: what `contest spread` requests, the expected responses, and the workers."""
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from contest.user_error import UserError, nearest

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
KEYS = {
    "": {"title": str, "target": dict, "load": dict, "workers": dict},
    "target": {"url": str, "status": int, "length": int, "sha256": str},
    "load": {"users": int, "rate": float, "rate_per_user": float, "duration": str, "timeout": str},
    "workers": {"total": int, "local": int, "bind": str, "port": int, "address": str, "wait": str},
}


@dataclass
class Manifest:
    title: str
    url: str
    status: int
    length: int | None  # None: the length of the first response
    sha256: str | None
    users: int
    rate: float | None  # requests per second and user; None: a closed loop
    duration: float  # in seconds, like all times
    timeout: float
    workers: int
    local: int
    bind: str
    port: int  # 0: any free port
    address: str  # address of the master, for workers on other machines
    wait: float

    @property
    def origin(self):
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def path(self):
        parts = urlsplit(self.url)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    @property
    def asked_rate(self):
        return self.rate * self.users if self.rate else None


class Reader:
    """Reads values of the tables; errors name the file and the key."""

    def __init__(self, path):
        self.path = path
        try:
            self.tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}; tools/contest/spread/spread.toml is an example") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: {error}") from None
        self.check("", self.tables)
        for name in ("target", "load", "workers"):
            self.check(name, self.tables.setdefault(name, {}))

    def wrong(self, table, key, expected):
        where = f"[{table}] {key}" if table else key
        return UserError(f"{self.path}: {where}: expected {expected}")

    def check(self, table, values):
        for key, value in values.items():
            kind = KEYS[table].get(key)
            if not kind:
                raise UserError(f"{self.path}: {f'[{table}] ' if table else ''}{key}: unknown key"
                                f"{nearest(key, KEYS[table])}")
            if kind is float and type(value) is int:
                values[key] = float(value)
            elif type(value) is not kind:
                raise self.wrong(table, key, {int: "a whole number", float: "a number", dict: "a table"}.get(kind, "text"))

    def get(self, table, key, default=None):
        return self.tables[table].get(key, default)

    def need(self, table, key, expected):
        value = self.get(table, key)
        if value is None:
            raise self.wrong(table, key, f"{expected}, but the key is missing")
        return value

    def number(self, table, key, default, least, most):
        value = self.get(table, key, default)
        if value is not None and not least <= value <= most:
            raise self.wrong(table, key, f"{least:g} to {most:g}, found {value:g}")
        return value

    def seconds(self, table, key, default):
        text = self.get(table, key, default)
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
        if not match or float(match[1]) == 0:
            raise self.wrong(table, key, f"a time such as 500ms, 30s or 2m, found {text!r}")
        return float(match[1]) * UNITS[match[2]]


def read_url(reader):
    url = reader.need("target", "url", "http://HOST[:PORT]/PATH")
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not parts.fragment
    except ValueError:
        good = False
    if not good or re.search(r"[^!-~]", url):
        raise reader.wrong("target", "url", f"http://HOST[:PORT]/PATH, found {url!r}")
    return url


def read_rate(reader, users):
    total, each = (reader.number("load", key, None, 1e-6, 1e7) for key in ("rate", "rate_per_user"))
    if total and each:
        raise reader.wrong("load", "rate", "either this key or rate_per_user, not both")
    return total / users if total else each


def read_sum(reader):
    text = reader.get("target", "sha256")
    if text is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise reader.wrong("target", "sha256", "64 hexadecimal digits")
    return text.lower() if text else None


def load(path):
    reader = Reader(path)
    users = reader.need("load", "users", "the number of users")
    reader.number("load", "users", None, 1, 1_000_000)
    total = reader.number("workers", "total", 1, 1, 1000)
    local = reader.number("workers", "local", total, 0, total)
    bind = reader.get("workers", "bind", "127.0.0.1")
    if users < total:
        raise reader.wrong("load", "users", f"at least one user for each of the {total} workers, found {users}")
    return Manifest(title=reader.tables.get("title", Path(path).stem), url=read_url(reader),
                    status=reader.number("target", "status", 200, 100, 599),
                    length=reader.number("target", "length", None, 0, 1 << 40), sha256=read_sum(reader), users=users,
                    rate=read_rate(reader, users), duration=max(1, reader.seconds("load", "duration", "30s")),
                    timeout=reader.seconds("load", "timeout", "5s"), workers=total, local=local, bind=bind,
                    port=reader.number("workers", "port", 0 if local == total else 5557, 0, 65535),
                    address=reader.get("workers", "address", bind), wait=reader.seconds("workers", "wait", "60s"))
