#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Monkey and nginx as gateways by the cost of a request to a backend, in one run, and checks the results against
the goals.

    gateways.py [--build build/release] [--rounds 7] [--seconds 1] [--connections 50] [--apart] [--only small,large,kept,each,grpc,streams]

`small` and `large`: 100 bytes and 200 KB through `proxy`, with the floor as the backend. `kept` and `each`: a hello response of
PHP-FPM over FastCGI, with persistent connections and with a new connection per request. `grpc` and `streams`: a unary gRPC call
to nghttpd, from clients with one call each, and from a tenth of them with ten concurrent calls each. nginx runs with its defaults, and as
`nginx tuned`: `proxy_buffering off`, with buffers of 64 KB. PHP-FPM has one pool per server with one child per client. With
fewer children, nginx with persistent connections would serve only as many clients as there are children and let the others wait,
so the results would not be comparable.

CPU time is the user and system time of the server's own processes, from procfs. All processes share the last core, so that the
results do not depend on which core wakes which; with --apart the servers run on the first core. Servers take turns; results are
medians with the minimum and maximum round. Needs wrk, h2load, nghttpd, nginx and PHP-FPM; --nginx names
another nginx. Run the script on an idle machine: it prints the load.
Exits with 1 if a goal is missed.
"""
import argparse
import contextlib
import functools
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from duda import FIRST, LAST, ROOT, ROWS, Bench, Server, cpu, free_port, pss_kb, say, say_times

LARGE = 200 * 1024
NGINX = """daemon off;
pid {folder}/{port}.pid;
error_log {folder}/{port}.log;
worker_processes 1;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/php;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream behind {{ server {behind}; keepalive {connections}; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port}{protocol};
        root {folder};
        location {location} {{ {directives} }}
    }}
}}
"""
SCRIPTS = r"~ \.php$"
PROXY = 'proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection "";'
TUNED = PROXY + " proxy_buffering off; proxy_buffer_size 64k; proxy_buffers 8 64k; proxy_busy_buffers_size 128k;"
PHP = "include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;"
EACH = PHP + " fastcgi_pass {behind};"
KEPT = PHP + " fastcgi_keep_conn on; fastcgi_pass behind;"


class Gateway(Server):
    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)


class Gateways(Bench):
    """Monkey and nginx as gateways, and their backends."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.program = options.build.resolve() / "monkey"
        self.cores = FIRST if options.apart else LAST
        self.php = next(iter(sorted(Path("/usr/sbin").glob("php-fpm*"))), None)
        self.compile("floor", ROOT / "tools" / "bench" / "floor.c")
        (folder / "hello.php").write_text('<?php echo "hello\\n";\n')

    def floor(self, size):
        port = free_port()
        return Server("floor", port, [self.folder / "floor", port, size], LAST)

    def nginx(self, name, behind, directives, location="/", protocol=""):
        port = free_port()
        conf = self.folder / f"{port}.nginx"
        conf.write_text(NGINX.format(folder=self.folder, port=port, behind=behind, connections=self.options.connections,
                                     location=location, protocol=protocol, directives=directives.format(behind=behind)))
        return Gateway(name, port, [self.options.nginx, "-c", conf], self.cores)

    def nghttpd(self):
        """Responds to each gRPC call with the same message and the trailer `grpc-status: 0`."""
        port = free_port()
        (self.folder / "call").write_bytes(b"\0\0\0\0\5hello")
        return Server("nghttpd", port, ["nghttpd", "--no-tls", "-d", self.folder, "--trailer", "grpc-status: 0", port], LAST)

    def monkey(self, plugin, route, rest="", protocol=""):
        port = free_port()
        conf = self.folder / f"{port}.conf"
        conf.write_text(f"[SERVER]\n    Listen 127.0.0.1:{port}{protocol}\n    Workers 1\n    KeepAliveRequests unlimited\n    LogLevel error\n"
                        f"    AccessLog off\n[PLUGINS]\n    Load {plugin}\n[HOST]\n    DocumentRoot {self.folder}\n{rest}"
                        f"[ROUTES]\n    {route}\n")
        return Gateway("monkey", port, [self.program, "-c", conf], self.cores)

    @contextlib.contextmanager
    def pools(self, *names):
        """Runs PHP-FPM; yields the addresses of its pools."""
        conf, addresses = self.folder / "fpm.conf", [self.folder / f"{name}.sock" for name in names]
        pools = (f"[{path.stem}]\nuser = nobody\ngroup = nogroup\nlisten = {path}\nlisten.mode = 0666\nlisten.backlog = 4096\npm = static\n"
                 f"pm.max_children = {self.options.connections}\n" for path in addresses)
        conf.write_text(f"[global]\nerror_log = {self.folder}/fpm.log\ndaemonize = no\n" + "".join(pools))
        process = subprocess.Popen(["taskset", "-c", LAST, self.php, "-R", "-y", conf], stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 60
            while not all(path.exists() for path in addresses) and time.monotonic() < end:
                time.sleep(0.05)
            yield [f"unix:{path}" for path in addresses]
        finally:
            process.terminate()
            process.wait(30)


# ---- Measurements ----

def compare(what, bench, path, servers, aims):
    """Measures the servers and checks the ratios of their times against the goals. If a server fails to start, the servers that
    were started before it are stopped."""
    with contextlib.ExitStack() as stack:
        times, memory = bench.compare(path, [stack.enter_context(each) for each in servers], bench.options.connections)
    say_times(what, times, memory)
    us = {name: statistics.median(each) for name, each in times.items()}
    for name, aim in aims.items():
        say(f"{what}, against {name}", f"{us['monkey'] / us[name]:.2f}", f"at most {aim}", us["monkey"] <= aim * us[name])


def proxies(bench, behind):
    yield bench.monkey("proxy", f"/* proxy http://{behind}")
    yield bench.nginx("nginx", behind, PROXY)
    yield bench.nginx("nginx tuned", behind, TUNED)


def proxied(bench, what, size, aims):
    with bench.floor(size) as floor:
        compare(what, bench, "/", proxies(bench, f"127.0.0.1:{floor.port}"), aims)


def that_keep(bench, ours, theirs):
    children = bench.options.connections
    yield bench.monkey("fastcgi", "*.php fastcgi php", f"[UPSTREAM]\n    Name php\n    Server {ours}\n    MaxConnections {children}\n")
    yield bench.nginx("nginx", theirs, KEPT, SCRIPTS)


def that_connect(bench, ours, theirs):
    yield bench.monkey("fastcgi", f"*.php fastcgi {ours}")
    yield bench.nginx("nginx", theirs, EACH, SCRIPTS)


def by_fastcgi(bench, what, servers, aim):
    with bench.pools("ours", "theirs") as addresses:
        compare(what, bench, "/hello.php", servers(bench, *addresses), {"nginx": aim})


def unary_calls(bench, server, connections, streams):
    """Runs h2load with gRPC calls for the given time; returns the CPU time of a call in microseconds."""
    before = cpu(server.pids)
    done = subprocess.run(["taskset", "-c", LAST, "h2load", "-D", str(bench.options.seconds), "-c", str(connections), "-m", str(streams),
                           "-d", bench.folder / "call", "-H", "content-type: application/grpc", "-H", "te: trailers",
                           f"http://127.0.0.1:{server.port}/call"], capture_output=True, text=True, check=True).stdout
    calls, failed = (int(re.search(rf"(\d+) {word}", done)[1]) for word in ("2xx", "failed"))
    if failed or not calls:
        sys.exit(f"gateways.py: {server.name} failed {failed} calls:\n{done}")
    return 1e6 * (cpu(server.pids) - before) / calls


def grpc(bench, what, streams):
    connections = bench.options.connections // streams
    with contextlib.ExitStack() as stack:
        backend = f"127.0.0.1:{stack.enter_context(bench.nghttpd()).port}"
        servers = [stack.enter_context(bench.monkey("proxy", f"/* proxy h2c://{backend}", protocol=" h2c")),
                   stack.enter_context(bench.nginx("nginx", backend, "grpc_pass grpc://behind;", protocol=" http2"))]
        times = {s.name: [] for s in servers}
        for i in range(bench.options.rounds):
            for s in servers[i % 2:] + servers[:i % 2]:
                times[s.name].append(unary_calls(bench, s, connections, streams))
        say_times(what, times, {s.name: pss_kb(s.pids) for s in servers})
    ratio = statistics.median(times["monkey"]) / statistics.median(times["nginx"])
    say(f"{what}, against nginx", f"{ratio:.2f}", "at most 0.8", ratio <= 0.8)


FIGURES = {"small": functools.partial(proxied, what="proxy, 100 B", size=100, aims={"nginx": 0.8, "nginx tuned": 0.95}),
           "large": functools.partial(proxied, what="proxy, 200 KB", size=LARGE, aims={"nginx tuned": 0.9}),
           "kept": functools.partial(by_fastcgi, what="FastCGI, kept", servers=that_keep, aim=0.75),
           "each": functools.partial(by_fastcgi, what="FastCGI, each", servers=that_connect, aim=0.85),
           "grpc": functools.partial(grpc, what="gRPC, a call per connection", streams=1),
           "streams": functools.partial(grpc, what="gRPC, ten calls per connection", streams=10)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--nginx", default="nginx")
    parser.add_argument("--only", default=",".join(FIGURES))
    options = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="gateways-") as folder:
        os.chmod(folder, 0o755)
        bench = Gateways(options, Path(folder))
        missing = [name for name in ("wrk", "h2load", "nghttpd", options.nginx) if not shutil.which(name)] + ["PHP-FPM"] * (not bench.php)
        if missing:
            sys.exit(f"gateways.py: {', '.join(missing)}: missing: apt-get install wrk nghttp2-client nghttp2-server nginx php-fpm")
        for name in options.only.split(","):
            FIGURES[name](bench)
    print(f"load after: {os.getloadavg()[0]:.2f}")
    return 1 if False in ROWS else 0


if __name__ == "__main__":
    sys.exit(main())
