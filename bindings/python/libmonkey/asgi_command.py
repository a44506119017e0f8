# SPDX-License-Identifier: Apache-2.0
"""The command monkey-asgi: serves an ASGI application in one or more processes."""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import importlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, cast

from .asgi import Host
from .server import Error

PR_SET_PDEATHSIG = 1
RESTART_SECONDS = 1  # the shortest time between two starts of the same worker


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="monkey-asgi", description="Serves an ASGI application, such as one of Starlette or FastAPI.")
    parser.add_argument("app", help="MODULE:NAME of the application, such as main:app")
    parser.add_argument("-b", "--bind", action="append", metavar="ADDRESS", help="HOST:PORT; may be repeated (default: 127.0.0.1:8000)")
    parser.add_argument("-w", "--workers", type=int, default=1, metavar="N", help="number of processes (default: 1)")
    parser.add_argument("-c", "--config", metavar="FILE", help="a configuration of Monkey: limits, TLS, plugins, ...")
    parser.add_argument("--certificate", metavar="FILE", help="serve HTTPS with this certificate (PEM)")
    parser.add_argument("--key", metavar="FILE", help="private key of the certificate (PEM)")
    parser.add_argument("--app-dir", default=".", metavar="FOLDER", help="folder to import the application from (default: .)")
    parser.add_argument("--factory", action="store_true", help="NAME is a function that returns the application")
    parser.add_argument("--root-path", default="", metavar="PATH", help="prefix of the application's paths behind a proxy")
    parser.add_argument("--lifespan", choices=("auto", "on", "off"), default="auto")
    parser.add_argument("--drain", type=float, default=30, metavar="SECONDS", help="time for open requests after SIGTERM (default: 30)")
    options = parser.parse_args(argv)
    if options.workers < 1:
        parser.error("--workers: expected at least 1")
    if bool(options.certificate) != bool(options.key):
        parser.error("--certificate and --key belong together")
    return options


def load_app(options: argparse.Namespace) -> Any:
    """Imports the application. Exits if it does not exist."""
    module, _, name = options.app.partition(":")
    sys.path.insert(0, os.path.abspath(options.app_dir))
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as problem:
        if problem.name != module.partition(".")[0] and problem.name != module:
            raise
        sys.exit(f"monkey-asgi: cannot import {module}: no such module in {os.path.abspath(options.app_dir)} or on the Python path")
    for part in (name or "app").split("."):
        if not hasattr(found, part):
            sys.exit(f"monkey-asgi: {module} has no {name or 'app'}: expected MODULE:NAME, such as main:app")
        found = getattr(found, part)
    return found() if options.factory else found


def bind(address: str) -> socket.socket:
    """Returns a listening socket, which all workers share."""
    host, _, port = address.rpartition(":")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), int(port)))
        listener.listen(2048)
    except (OSError, ValueError) as problem:
        sys.exit(f"monkey-asgi: cannot listen on {address}: {problem}")
    return listener


def print_log(level: str, text: str) -> None:
    if level in ("error", "warn"):
        print(f"monkey-asgi: {level}: {text}", file=sys.stderr, flush=True)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Returns an event loop of uvloop, which is faster, if uvloop is installed."""
    try:
        return cast("asyncio.AbstractEventLoop", importlib.import_module("uvloop").new_event_loop())
    except ImportError:
        return asyncio.new_event_loop()


def close_all(listeners: list[socket.socket]) -> None:
    """Closes the sockets, so that the kernel refuses new connections as soon as all processes have closed them."""
    for listener in listeners:
        listener.close()


def stop_worker(host: Host, listeners: list[socket.socket], seconds: float) -> None:
    close_all(listeners)
    host.server.stop(seconds)


def quote(word: str) -> str:
    """Quotes a word for a configuration file."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def run_worker(options: argparse.Namespace, listeners: list[socket.socket], ready: Callable[[], None] | None = None) -> int:
    """Serves until SIGTERM or SIGINT. Returns the exit code."""
    host = Host(load_app(options), options.root_path, options.lifespan, print_log)
    try:
        if options.config:
            host.server.read(options.config)
        if options.certificate:
            host.server.set("SERVER", "Certificate", " ".join(quote(os.path.abspath(file)) for file in (options.certificate, options.key)))
        for listener in listeners:
            host.server.listen_socket(listener, bool(options.certificate))
        loop = new_event_loop()
        asyncio.set_event_loop(loop)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop_worker, host, listeners, options.drain)
        loop.run_until_complete(host.serve(ready))
    except Error as problem:
        print(f"monkey-asgi: {problem}", file=sys.stderr)
        return 1
    return 0


def stop_with_parent(parent: int) -> None:
    """Makes the kernel send SIGTERM to this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


class Supervisor:
    """Starts the workers, replaces crashed ones, and stops all workers on SIGTERM or SIGINT."""

    def __init__(self, options: argparse.Namespace, listeners: list[socket.socket]) -> None:
        self.options, self.listeners = options, listeners
        self.started: dict[int, float] = {}  # pid -> time
        self.is_stopping = False

    def start_worker(self) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            stop_with_parent(parent)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os._exit(run_worker(self.options, self.listeners))
        self.started[pid] = time.monotonic()

    def stop(self, *_signal: object) -> None:
        self.is_stopping = True
        close_all(self.listeners)
        for pid in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.stop)
        for _ in range(self.options.workers):
            self.start_worker()
        code = 0
        while self.started:
            pid, status = os.wait()
            began = self.started.pop(pid)
            if self.is_stopping:
                continue
            if os.waitstatus_to_exitcode(status) == 1:  # the application or its configuration is broken: a restart would not help
                code = 1
                self.stop()
                continue
            print(f"monkey-asgi: worker {pid} has ended ({os.waitstatus_to_exitcode(status)}); starting another", file=sys.stderr, flush=True)
            time.sleep(max(0.0, began + RESTART_SECONDS - time.monotonic()))
            self.start_worker()
        return code


def main(argv: list[str] | None = None) -> None:
    options = parse(sys.argv[1:] if argv is None else argv)
    listeners = [bind(address) for address in options.bind or ["127.0.0.1:8000"]]

    def announce() -> None:
        for listener in listeners:
            host, port = listener.getsockname()[:2]
            scheme = "https" if options.certificate else "http"
            print(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/", flush=True)

    if options.workers == 1:
        sys.exit(run_worker(options, listeners, announce))
    announce()
    sys.exit(Supervisor(options, listeners).run())


if __name__ == "__main__":
    main()
