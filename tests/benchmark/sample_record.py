# SPDX-License-Identifier: Apache-2.0
"""A record like that of a real contest, but with invented, reproducible numbers.

    python tests/benchmark/sample_record.py FOLDER      writes the record; view it in a browser
"""
import math
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/contest"))

from contest import record as records  # noqa: E402
from contest.record import Case, Contestant, Exclusion, Historical, Record, Shot  # noqa: E402

# name: title, version, CPU us per request of 100 B, CPU us per new connection, memory in KB, idle bytes
SERVERS = {
    "monkey": ("Monkey", "2.0.0-dev", 5.6, 9.4, 3400, 168),
    "nginx": ("nginx", "1.22.1", 8.3, 10.1, 5200, 489),
    "lighttpd": ("lighttpd", "1.4.69", 6.2, 20.5, 4100, 1990),
    "apache": ("Apache httpd", "2.4.62", 21.0, 32.0, 14800, 9800),
    "h2o": ("h2o", "2.2.5", 5.5, 11.5, 9700, 1009),
    "caddy": ("Caddy", "2.6.2", 38.0, 30.0, 41000, 24800),
    "busybox": ("BusyBox httpd", "1.35.0", 410.0, 30.0, 900, 92000),
    "nodejs": ("Node.js", "18.19.0", 61.0, 45.0, 52000, 11200),
    "varnish": ("Varnish", "7.1.1", 17.0, 21.0, 86000, 15400),
    "monkey-1.8": ("Monkey 1.8", "1.8.9", 13.4, 16.6, 4800, 10534),
    "thttpd": ("thttpd", "2.29", 11.0, 14.0, 1100, 700),
    "floor": ("floor", "1", 5.0, 9.0, 400, 90),
}
KEEPALIVE = {n for n in SERVERS if n not in ("busybox", "thttpd")}
CONFIGURATION = "worker_processes @workers@;\nevents { worker_connections 20000; }\nhttp {\n    access_log off;\n    sendfile on;\n}\n"


def contestants():
    found = {}
    for name, (title, version, *_) in SERVERS.items():
        found[name] = Contestant(
            title=title, state="present", version=version, program=name, package=None if "monkey" in name else f"{name}",
            origin="built here" if "monkey" in name or name == "floor" else "Debian package", revision=2 if name == "h2o" else 1,
            configuration={f"{name}.conf": CONFIGURATION.replace("@workers@", "1")} if name != "floor" else {},
            fairness=f"## What was chosen for {title}\n\n- one worker, since the server has **one** core\n- no log, "
                     "no compression: `access_log off`\n- files go out with `sendfile`\n\nIts defaults stay otherwise. "
                     "See the manual of the server for what each line means.\n",
            yardstick=name == "floor", features=["keepalive", "close"])
    found["gwan"] = Contestant(title="G-WAN", state="absent", why="no program gwan on this machine, and no package has it")
    found["cherokee"] = Contestant(title="Cherokee", state="failed", version="1.2.104", package="cherokee",
                                   why="ended after 0.2 s with code 1: cannot load module 'libssl'")
    return found


def case(title, about, metrics="rate cpu_us p99_us", steps=(100,), axis=None, client="wrk", rounds=5, **more):
    return Case(title=title, about=about, client=client, axis=axis, steps=list(map(float, steps)), rounds=rounds, seconds=2.0,
                base="monkey", metrics=metrics.split(), **more)


def cases():
    sweep = (10, 30, 100, 300, 1000)
    return {
        "small": case("Small files, keep-alive", "100 bytes, over and over, on connections that stay open. Little to send, "
                      "so this shows what a request costs by itself.", steps=sweep, axis="connections"),
        "close": case("One request per connection", "1.4 KB, and a new connection for each request, as visitors with one "
                      "glance do."),
        "large": case("Large files", "200 KB each: most of the time goes into copying and sending.",
                      "rate cpu_us p99_us pss_kb bytes_per_second", alone=True),
        "crowd": case("From 10 to 10,000 connections", "All of them busy. Does a crowd cost more than a few?",
                      "rate cpu_us p99_us pss_kb peak_kb", (10, 100, 1000, 3000, 10000), "connections", client="h2load", rounds=3, alone=True),
        "idle": case("Idle connections", "1,000 connections that say nothing after one request. What does waiting cost?",
                     "idle_bytes", steps=(1000,), axis="connections", client="hold", rounds=3, alone=True),
        "paced": case("A fixed rate", "Requests fall due at a fixed rate, whether the server keeps up or not, and the clock "
                      "of each runs from the moment it was due.", "p99_us p50_us p999_us cpu_us", steps=(1000, 4000, 16000),
                      axis="rate", client="pace"),
        "tls": case("TLS, keep-alive", "100 bytes over TLS 1.3 with AES-128-GCM.", "cpu_us rate p99_us pss_kb", alone=True),
        "gwan-100": case("gwan-100", "One file of 100 bytes, keep-alive, 100 connections.", historical=Historical(
            "the benchmark of 2011", "Laptop (i3-370M), ab, 0 to 1,000 connections by 10, ten rounds: G-WAN about 140,000 "
            "requests/s, nginx 80,000, Traffic Server 60,000, Varnish 28,000 on average.",
            "Another machine, newer servers, wrk in place of ab, shots of two seconds, and G-WAN is not to be had.")),
    }


class Bench:
    """Generates shots. With the same seed, all servers get the same random deviations."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.shots = []

    def wobble(self, value, share=.02):
        return value * (1 + self.random.gauss(0, share))

    def samples(self, seconds, busy, memory):
        return [[round(t * .25, 2), round(min(1, max(0, self.wobble(busy * (.6 if t == 0 else 1), .03))), 3),
                 round(self.wobble(memory * (.8 + .2 * min(1, t / 4)), .004))] for t in range(int(seconds * 4) + 1)]

    def shoot(self, name, case_name, about, number, step, cpu, memory, limit=None, rate=None, latency=1.0):
        cpu = self.wobble(cpu)
        able = 1e6 / cpu
        bottleneck = "server"
        if rate:
            got, bottleneck = min(rate, able), "neither" if rate < able * .95 else "server"
        else:
            got = able
            if limit and able > limit:
                got, bottleneck = self.wobble(limit, .008), "client"
        load = min(1, got * cpu / 1e6)
        base = latency * (1e6 * step / got if not rate else cpu * 6 / max(.03, 1 - load * .97))
        shape = {"mean_us": 1.05, "p50_us": 1, "p75_us": 1.25, "p90_us": 1.6, "p99_us": 2.6, "p999_us": 5.1, "max_us": 9}
        metrics = {k: round(self.wobble(base * v, .05), 1) for k, v in shape.items()}
        if about.client == "wrk":
            metrics["p999_us"] = None
        metrics |= {"rate": round(got, 1), "cpu_us": round(cpu, 3), "user_us": round(cpu * .24, 3),
                    "system_us": round(cpu * .76, 3), "pss_kb": round(self.wobble(memory, .006)),
                    "peak_kb": round(memory * 1.02), "errors": 0, "voluntary": .02, "involuntary": .001,
                    "bytes_per_second": round(got * 204800), "seconds": 2.0, "requests": round(got * 2)}
        self.shots.append(Shot(case_name, name, number, float(step), metrics, bottleneck,
                               self.samples(about.seconds, load, memory) if number == 1 else []))


def costs(name, case_name, step):
    _, _, small, fresh, memory, _ = SERVERS[name]
    crowd = 1 + .06 * math.log10(step / 10) if step >= 10 else 1
    many = memory + step * SERVERS[name][5] / 1024 * 3
    return {"small": (small * crowd, many), "close": (small + fresh, memory * 1.1), "large": (24 + small * 1.4, memory * 1.1),
            "crowd": (small * crowd ** 2, many), "paced": (small * 1.3, memory), "tls": (small * 1.25 + 3, memory + 2600),
            "gwan-100": (small, memory)}[case_name], memory


def shoot_all(record, seed):
    bench = Bench(seed)
    for case_name, about in record.cases.items():
        for number in range(1, about.rounds + 1):
            for name in SERVERS:
                if any((e.case, e.contestant) == (case_name, name) for e in record.absent_in):
                    continue
                for step in about.steps:
                    if case_name == "idle":
                        value = bench.wobble(SERVERS[name][5], .01)
                        bench.shots.append(Shot(case_name, name, number, step, {"idle_bytes": round(value, 1)}))
                        continue
                    if name == "nodejs" and case_name == "crowd" and step > 3000:
                        continue
                    (cpu, memory), _ = costs(name, case_name, step)
                    limit = {"small": 150000 if step <= 30 else None, "gwan-100": 120000}.get(case_name)
                    bench.shoot(name, case_name, about, number, step, cpu, memory, limit,
                                rate=step if case_name == "paced" else None)
    return bench.shots


def make(seed=1, mode="full", only=None):
    """`only`: the names of the cases to generate."""
    record = Record(mode=mode, started="2026-11-21T09:00:00+00:00", ended="2026-11-21T09:41:12+00:00", environment={
        "cpu": "Example CPU @ 2.90GHz", "cores": 2, "memory_kb": 8123456, "kernel": "6.18.5", "os": "Debian GNU/Linux 12 (bookworm)",
        "virtual": "kvm", "governor": None, "mitigations": {"spectre_v2": "Mitigation: Retpolines", "meltdown": "Not affected"},
        "load_before": [.11, .2, .3], "load_after": [1.9, 1.7, 1.2], "clients": {"wrk": "4.1.0", "h2load": "1.52.0", "pace": "2.0.0"},
        "server_cores": [0], "client_cores": [1], "cpu_counted_by": "cgroup",
        "limits": {"nofile": 1048576, "somaxconn": 4096, "port range": [1024, 65535]}})
    record.contestants, record.cases = contestants(), cases()
    for name in SERVERS:
        for case_name in ("small", "gwan-100", "crowd", "idle", "paced"):
            if name not in KEEPALIVE and case_name != "gwan-100":
                record.absent_in.append(Exclusion(case_name, name, "does not keep connections"))
    for name in ("busybox", "thttpd", "varnish", "monkey-1.8", "floor"):
        record.absent_in.append(Exclusion("tls", name, "does not speak TLS"))
    record.shots = shoot_all(record, seed)
    record.disqualified.append(Exclusion("gwan-100", "thttpd", "round 2 answered with 98 bytes in place of 100"))
    record.disqualified.append(Exclusion("large", "busybox", "the hash of the answer is wrong"))
    for shot in record.shots:
        if (shot.case, shot.contestant, shot.step) == ("crowd", "apache", 10000.0):
            shot.metrics["errors"] = 412
        if (shot.case, shot.contestant) == ("tls", "caddy"):
            shot.metrics["pss_kb"] = None
    record.notes = ["The governor of this virtual machine cannot be seen."]
    if only:
        record.cases = {name: about for name, about in record.cases.items() if name in only}
        for part in ("shots", "disqualified", "absent_in"):
            setattr(record, part, [each for each in getattr(record, part) if each.case in only])
    records.validate(record)
    return record


if __name__ == "__main__":
    print(records.save(make(), sys.argv[1]))
