# SPDX-License-Identifier: Apache-2.0
"""Runs clients on several machines: starts the master of Locust and the local workers, prints the command for the other workers,
waits for them, and writes the results. The manifest has the settings; see spread/README.md."""
import datetime
import hashlib
import http.client
import importlib.util
import json
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

from contest import VERSION
from contest.user_error import UserError
from contest.manifest import load

FOLDER = Path(__file__).resolve().parents[1] / "spread"
LOCUSTFILE = FOLDER / "locustfile.py"
QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
BUSY = 0.9  # share of a core; above it, the worker is the bottleneck
ENDING = 30  # seconds that Locust may take beyond waiting and running


def add_arguments(parser):
    parser.add_argument("manifest", help="such as tools/contest/spread/spread.toml")
    parser.add_argument("-o", "--output", default="build/contest/spread.json", help="file of the record (%(default)s)")
    parser.add_argument("--commands", action="store_true", help="print the command that starts workers, without starting anything")


def say(text):
    print(f"contest: {text}", file=sys.stderr, flush=True)


# ---- Preparation ----

def need_locust():
    if not importlib.util.find_spec("locust"):
        raise UserError("spread needs Locust; `tools/contest/contest.sh spread` runs it with all required modules")


def ask_once(manifest):
    """Returns (status, content) of the target."""
    parts = urlsplit(manifest.url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=manifest.timeout)
    try:
        connection.request("GET", manifest.path, headers={"Accept-Encoding": "identity"})
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        raise UserError(f"{manifest.url}: no response: {error or type(error).__name__}") from None
    finally:
        connection.close()


def check_target(manifest):
    """Checks the first response against the manifest, and fills in the manifest's missing values from the response."""
    status, content = ask_once(manifest)
    found = hashlib.sha256(content).hexdigest()
    if status != manifest.status:
        raise UserError(f"{manifest.url}: status {status}, not {manifest.status}; the measurement did not start")
    if manifest.length not in (None, len(content)):
        raise UserError(f"{manifest.url}: {len(content)} bytes of content, not {manifest.length}; the measurement did not start")
    if manifest.sha256 not in (None, found):
        raise UserError(f"{manifest.url}: SHA-256 of the content {found}, not {manifest.sha256}; the measurement did not start")
    manifest.length, manifest.sha256 = len(content), found


def choose_port(manifest):
    """Chooses a free port. If another process binds the port before the master does, the master reports it and the run ends."""
    if manifest.port:
        return
    family = socket.AF_INET6 if ":" in manifest.bind else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((manifest.bind, 0))
        except OSError as error:
            raise UserError(f"[workers] bind: {manifest.bind}: {error.strerror}; it must be an address of this machine") \
                from None
        manifest.port = probe.getsockname()[1]


# ---- Commands ----

def master_command(manifest, record):
    options = {"path": manifest.path, "status": manifest.status, "length": manifest.length, "sha256": manifest.sha256,
               "rate": manifest.rate or 0, "timeout": manifest.timeout, "record": record}
    return [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--master", "--headless", "--only-summary",
            "--master-bind-host", manifest.bind, "--master-bind-port", str(manifest.port),
            "--expect-workers", str(manifest.workers), "--expect-workers-max-wait", f"{max(1, round(manifest.wait))}",
            "--users", str(manifest.users), "--spawn-rate", str(manifest.users),
            "--run-time", f"{round(manifest.duration)}s", "--stop-timeout", f"{manifest.timeout + 1:g}",
            "--host", manifest.origin, "--exit-code-on-error", "0", "--loglevel", "WARNING",
            *(f"--spread-{name}={value}" for name, value in options.items())]


def worker_arguments(manifest, address):
    return ["-f", "-", "--worker", "--master-host", address, "--master-port", str(manifest.port), "--loglevel", "WARNING"]


def remote_command(manifest):
    return shlex.join(["locust", *worker_arguments(manifest, manifest.address)])


def local_address(manifest):
    return {"0.0.0.0": "127.0.0.1", "*": "127.0.0.1", "::": "::1"}.get(manifest.bind, manifest.bind)


def tell_commands(manifest, out=sys.stderr):
    elsewhere = manifest.workers - manifest.local
    if elsewhere:
        print(f"contest: start {elsewhere} worker{'s' * (elsewhere > 1)} elsewhere within {manifest.wait:g} s:\n"
              f"    pip install {(FOLDER.parent / 'requirements-spread.txt').read_text().split()[-1]}\n"
              f"    {remote_command(manifest)}", file=out, flush=True)


# ---- Processes ----

class Processes:
    """The master and the local workers, with their output in files. Use it in a `with` statement: leaving the block
    stops them all."""

    def __init__(self, folder):
        self.folder, self.running = Path(folder), {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running.values():
            if process.poll() is None:
                process.terminate()
        for process in self.running.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, name, command):
        with open(self.folder / f"{name}.log", "wb") as log:
            self.running[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)

    def last_words(self, name):
        text = (self.folder / f"{name}.log").read_text(errors="replace").strip()
        return text[-2000:] or "no output"

    def wait(self, name, seconds):
        try:
            return self.running[name].wait(seconds)
        except subprocess.TimeoutExpired:
            raise UserError(f"the {name} did not end within {seconds:g} s and was stopped. Its output:\n"
                            f"{self.last_words(name)}") from None


def run(manifest, folder):
    """Runs the measurement and returns the results of the master."""
    record = Path(folder) / "gathered.json"
    with Processes(folder) as processes:
        processes.start("master", master_command(manifest, record))
        for n in range(1, manifest.local + 1):
            processes.start(f"worker {n}", [sys.executable, "-m", "locust",
                                            *worker_arguments(manifest, local_address(manifest))])
        tell_commands(manifest)
        code = processes.wait("master", manifest.wait + manifest.duration + manifest.timeout + ENDING)
        if code or not record.exists():
            raise UserError(f"the master ended with {code} without a measurement. Its output:\n{processes.last_words('master')}")
        gathered = json.loads(record.read_text())
        if not gathered["locust_requests"]:
            words = "\n".join(processes.last_words(name) for name in processes.running)
            raise UserError(f"the workers sent no requests. Their output:\n{words}")
        return gathered


# ---- The record ----

def add_up(workers):
    """Returns the sum of all workers' tallies."""
    total = {"right": 0, "bytes": 0, "errors": {}, "first": {}, "latency": {}, "late": {}}
    for worker in workers:
        total["right"] += worker["right"]
        total["bytes"] += worker["bytes"]
        for kind in ("errors", "latency", "late"):
            for key, n in worker[kind].items():
                total[kind][key] = total[kind].get(key, 0) + n
        total["first"] = worker["first"] | total["first"]
    return total


def times(counts):
    """Returns the quantiles of {microseconds: count}. A quantile is unknown if there are too few values above it."""
    rows = sorted((int(value), n) for value, n in counts.items())
    total = sum(n for _, n in rows)
    found = {"mean": sum(value * n for value, n in rows) / total if total else None} | dict.fromkeys(QUANTILES)
    for name, share in QUANTILES.items():
        seen = 0
        for value, n in rows:
            seen += n
            if seen >= share * total and total * (1 - share) >= 1:
                found[name] = value
                break
    return found | {"max": rows[-1][0] if rows else None}


def busy_of(worker):
    """Returns the share of one core that the worker used; a worker cannot use more than one."""
    return worker["cpu_seconds"] / worker["seconds"] if worker["seconds"] else 0.0


def describe_worker(name, worker):
    return {"name": name, "machine": worker["machine"], "busy": busy_of(worker), "requests": worker["right"],
            "errors": sum(worker["errors"].values())}


def remark(manifest, gathered, shot):
    """Returns notes that readers must not overlook."""
    notes = [f"worker {name} was busy for {busy_of(worker):.0%} of its core: the client is the bottleneck"
             for name, worker in gathered["workers"].items() if busy_of(worker) > BUSY]
    notes += [f"worker {name} was lost, and so were its unreported results" for name in gathered["lost"]]
    reporting = sum(worker["machine"] is not None for worker in gathered["workers"].values())
    if reporting < manifest.workers:
        notes.append(f"{reporting} of {manifest.workers} workers took part")
    asked = manifest.asked_rate
    if asked and shot["rate"] < 0.95 * asked:
        notes.append(f"{shot['rate']:.1f} of {asked:g} requests a second got a correct response")
    return notes


def make_record(manifest, gathered, started):
    total = add_up(gathered["workers"].values())
    seconds = max((worker["seconds"] for worker in gathered["workers"].values()), default=0)
    shot = {"seconds": seconds, "requests": total["right"], "rate": total["right"] / seconds if seconds else 0.0,
            "bytes": total["bytes"], "errors": total["errors"], "first_errors": total["first"],
            "latency_us": times(total["latency"]), "late_us": times(total["late"])}
    notes = remark(manifest, gathered, shot)
    return {"format": 1, "kind": "spread", "contest": VERSION, "started": started, "ended": now(),
            "manifest": asdict(manifest), "asked_rate": manifest.asked_rate, "shot": shot,
            "bottleneck": "client" if any("bottleneck" in note for note in notes) else None,
            "environment": gathered["master"], "workers": [describe_worker(*item) for item in gathered["workers"].items()],
            "notes": notes}


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def save(record, path):
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; -o selects another file for the record") from None


def milliseconds(us):
    return "-" if us is None else f"{us / 1000:.1f} ms"


def summary(record):
    shot = record["shot"]
    lines = [f"{record['manifest']['title']}: {shot['requests']} correct responses in {shot['seconds']:.1f} s, "
             f"{shot['rate']:.1f} a second"]
    lines += [f"errors: {n} {kind}, the first: {shot['first_errors'].get(kind)}" for kind, n in shot["errors"].items() if n]
    lines.append("latency: " + ", ".join(f"{name} {milliseconds(shot['latency_us'][name])}"
                                         for name in ("p50", "p90", "p99", "p999", "max")))
    lines += [f"worker {worker['name']}: {worker['requests']} right, {worker['errors']} wrong, "
              f"{worker['busy']:.0%} busy" for worker in record["workers"]]
    return "\n".join(lines + [f"note: {note}" for note in record["notes"]])


def main(options):
    manifest = load(options.manifest)
    if options.commands:
        manifest.port = manifest.port or 5557
        print(remote_command(manifest))
        return 0
    need_locust()
    check_target(manifest)
    choose_port(manifest)
    folder = tempfile.mkdtemp(prefix="contest-spread-")
    started = now()
    try:
        record = make_record(manifest, run(manifest, folder), started)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    save(record, options.output)
    print(summary(record))
    say(f"the record is in {options.output}")
    return 0
