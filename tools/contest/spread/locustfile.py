# SPDX-License-Identifier: Apache-2.0
"""The Locust users of `contest spread`. The master sends this file to workers on other machines (`locust -f -`), so it must not
import anything from the contest.

The master's command line defines the requests and the expected responses; the workers receive it from the master. Each worker
keeps a tally and sends it with Locust's reports; the master adds up the tallies and writes the result.
"""
import contextlib
import hashlib
import json
import os
import platform
import random
import socket
import time

import gevent
from locust import FastHttpUser, events, task
from locust.runners import MasterRunner, WorkerRunner

LAST_SECONDS = 30  # how long the master waits for the last tallies
CLASSES = ("connect", "read", "timeout", "status", "content")
OPTIONS = (("path", str, "/"), ("status", int, 200), ("length", int, -1), ("sha256", str, ""), ("rate", float, 0.0),
           ("timeout", float, 5.0), ("record", str, ""))


@events.init_command_line_parser.add_listener
def add_options(parser):
    for name, kind, default in OPTIONS:
        parser.add_argument(f"--spread-{name}", type=kind, default=default, include_in_web_ui=False)


# ---- Workers ----

class Tally:
    """Counts results since the last report. Times are in microseconds, rounded to three significant digits."""

    def __init__(self):
        self.began = self.ended = None  # (clock, CPU time) of the whole run
        self.clear()

    def tick(self):
        self.ended = time.perf_counter(), time.process_time()
        self.began = self.began or self.ended

    def clear(self):
        self.right, self.bytes, self.errors, self.first = 0, 0, dict.fromkeys(CLASSES, 0), {}
        self.latency, self.late = {}, {}

    @staticmethod
    def add(times, microseconds):
        digits = 2 - len(str(int(microseconds))) + 1
        key = int(round(microseconds, min(0, digits)))
        times[key] = times.get(key, 0) + 1

    def fail(self, kind, words):
        self.errors[kind] += 1
        self.first.setdefault(kind, words)

    def take(self):
        report = {"right": self.right, "bytes": self.bytes, "errors": self.errors, "first": self.first,
                  "latency": self.latency, "late": self.late}
        if self.began:
            report |= {"seconds": self.ended[0] - self.began[0], "cpu_seconds": self.ended[1] - self.began[1]}
        self.clear()
        return report


TALLY = Tally()


def judge(response, options):
    """Returns None for a correct response, else (class, message)."""
    failure = response.request_meta["exception"]
    if failure and response.status_code == 0:
        return judge_failure(failure)
    if response.status_code != options.spread_status:
        return "status", f"status {response.status_code}, not {options.spread_status}"
    if failure and response.status_code < 400:  # Locust treats every status of 400 and above as a failure
        return judge_failure(failure)
    content = response.content or b""
    if options.spread_length >= 0 and len(content) != options.spread_length:
        return "content", f"{len(content)} bytes of content, not {options.spread_length}"
    if options.spread_sha256 and (found := hashlib.sha256(content).hexdigest()) != options.spread_sha256:
        return "content", f"SHA-256 of the content {found}, not {options.spread_sha256}"
    return None


def judge_failure(error):
    error = getattr(error, "original", None) or error  # the original error, if Locust has retried too often
    words = f"{type(error).__name__}: {error}"
    if isinstance(error, TimeoutError):
        return "timeout", words
    if isinstance(error, (ConnectionRefusedError, socket.gaierror)):
        return "connect", words
    return "read", words


class Visitor(FastHttpUser):
    """Sends requests at a fixed rate: each is due at a fixed time, from which its latency is measured, so the wait during a
    stall of the server is included. Without a rate, sends each request as soon as the previous response has arrived."""

    max_redirects = 0

    def __init__(self, environment):
        options = environment.parsed_options
        self.network_timeout = self.connection_timeout = options.spread_timeout
        self.period = 1 / options.spread_rate if options.spread_rate > 0 else 0
        self.due = time.perf_counter() + random.random() * self.period
        super().__init__(environment)

    def wait_time(self):
        return max(0, self.due - time.perf_counter()) if self.period else 0

    @task
    def visit(self):
        sent = time.perf_counter()
        if self.period and sent < self.due:
            return  # before the first request: wait until it is due
        due = self.due if self.period else sent
        self.due += self.period
        self.ask(due, sent)

    def ask(self, due, sent):
        options = self.environment.parsed_options
        TALLY.tick()
        with self.client.get(options.spread_path, name="spread", catch_response=True, allow_redirects=False,
                             headers={"Accept-Encoding": "identity"}) as response:
            wrong = judge(response, options)
            TALLY.tick()
            response.request_meta["response_time"] = (time.perf_counter() - due) * 1000
            Tally.add(TALLY.late, (sent - due) * 1e6)
            if wrong:
                TALLY.fail(*wrong)
                response.failure(": ".join(wrong))
                return
            TALLY.right += 1
            TALLY.bytes += len(response.content or b"")
            Tally.add(TALLY.latency, response.request_meta["response_time"] * 1000)
            response.success()


def describe_machine():
    """Describes the machine of a worker for the record."""
    cpu = memory = None
    with contextlib.suppress(OSError, StopIteration), open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    with contextlib.suppress(OSError, ValueError):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024
    return {"host": platform.node(), "cpu": cpu or platform.machine(), "cores": os.cpu_count(), "memory_kb": memory,
            "kernel": platform.release(), "python": platform.python_version(), "load": list(os.getloadavg()),
            "pid": os.getpid()}


@events.report_to_master.add_listener
def report(client_id, data):
    data["spread"] = TALLY.take()


@events.test_start.add_listener
def tell_machine(environment, **_):
    if isinstance(environment.runner, WorkerRunner):
        environment.runner.send_message("machine", describe_machine())


def end(environment, msg, **_):
    environment.runner.stop()
    environment.runner.send_message("ended", {"spread": TALLY.take()})


# ---- Master ----

class Gathering:
    """Collects the reports of the workers."""

    def __init__(self, environment):
        self.environment, self.workers, self.started = environment, {}, None
        self.ended, self.quitting = set(), False

    def worker(self, name):
        return self.workers.setdefault(name, {"machine": None, "seconds": 0, "cpu_seconds": 0, "right": 0, "bytes": 0, "first": {},
                                              "errors": dict.fromkeys(CLASSES, 0), "latency": {}, "late": {}})

    def take_machine(self, environment, msg, **_):
        self.worker(msg.node_id)["machine"] = msg.data

    def take_report(self, client_id, data):
        told, sum_ = data.get("spread"), self.worker(client_id)
        if not told:
            return
        for name in ("seconds", "cpu_seconds"):
            sum_[name] = told.get(name, sum_[name])
        for name in ("right", "bytes"):
            sum_[name] += told[name]
        for name in ("errors", "latency", "late"):
            for key, n in told[name].items():
                sum_[name][key] = sum_[name].get(key, 0) + n
        sum_["first"] = told["first"] | sum_["first"]

    def take_end(self, environment, msg, **_):
        self.take_report(msg.node_id, msg.data)
        self.ended.add(msg.node_id)

    def open_ends(self):
        """Returns the workers that have not sent their last tally."""
        return {node.id for node in self.environment.runner.clients.all} - self.ended

    def wait_for_ends(self, **_):
        """Waits for the last reports. Locust itself waits half a second, which is too short for a busy or distant machine."""
        if self.quitting:
            return
        self.environment.runner.send_message("end")
        with gevent.Timeout(LAST_SECONDS, False):
            while self.open_ends() - {node.id for node in self.environment.runner.clients.missing}:
                gevent.sleep(0.02)

    def write(self, **_):
        runner, options = self.environment.runner, self.environment.parsed_options
        self.quitting = True
        total = self.environment.stats.total
        document = {"locust_requests": total.num_requests, "locust_failures": total.num_failures, "workers": self.workers,
                    "lost": sorted(self.open_ends()), "master": describe_machine()}
        if options.spread_record:
            with open(f"{options.spread_record}.new", "w", encoding="utf-8") as file:
                json.dump(document, file)
            os.replace(f"{options.spread_record}.new", options.spread_record)
        else:
            print(json.dumps(document), flush=True)


@events.init.add_listener
def prepare(environment, **_):
    if isinstance(environment.runner, WorkerRunner):
        environment.runner.register_message("end", end)
    if not isinstance(environment.runner, MasterRunner):
        return
    gathering = Gathering(environment)
    environment.runner.register_message("machine", gathering.take_machine)
    environment.runner.register_message("ended", gathering.take_end)
    events.test_stop.add_listener(gathering.wait_for_ends)
    events.worker_report.add_listener(gathering.take_report)
    events.quitting.add_listener(gathering.write)
