# SPDX-License-Identifier: Apache-2.0
"""The metrics: which direction is better, their names, and the format of their values."""
import math
from dataclasses import dataclass

DASH = "–"


@dataclass(frozen=True)
class Metric:
    key: str
    title: str           # title of a column or a plot
    kind: str            # rate, us, time, kb, bytes, flow, share, number
    more: bool | None    # whether more is better; None: shown, never ranked
    word: str = ""       # the comparative: "faster"
    best: str = ""       # the superlative: "fastest"
    noun: str = ""       # for "24 % more <noun>"
    letter: str = ""     # its letter in the matrix of winners

    @property
    def inside(self):
        """The title as it appears within a sentence."""
        return self.title if self.title.startswith("CPU") else self.title[0].lower() + self.title[1:]

    def write(self, value):
        return write(value, self.kind)


METRICS = {m.key: m for m in (
    Metric("rate", "Requests per second", "rate", True, "faster", "fastest", "requests per second", "R"),
    Metric("cpu_us", "CPU per request", "us", False, "cheaper", "cheapest", "CPU time per request", "C"),
    Metric("p90_us", "Latency, 90 %", "time", False, "quicker", "quickest", "latency at 90 %", "N"),
    Metric("p99_us", "Latency, 99 %", "time", False, "quicker", "quickest", "latency at 99 %", "L"),
    Metric("pss_kb", "Memory under load", "kb", False, "smaller", "smallest", "memory", "M"),
    Metric("idle_bytes", "Per idle connection", "bytes", False, "smaller", "smallest", "memory per idle connection", "I"),
    Metric("peak_kb", "Peak memory", "kb", None, noun="peak memory"),
    Metric("user_us", "User time per request", "us", None, noun="user time per request"),
    Metric("system_us", "System time per request", "us", None, noun="system time per request"),
    Metric("mean_us", "Latency, mean", "time", None, noun="mean latency"),
    Metric("p50_us", "Latency, 50 %", "time", None, noun="median latency"),
    Metric("p75_us", "Latency, 75 %", "time", None, noun="latency at 75 %"),
    Metric("p999_us", "Latency, 99.9 %", "time", None, noun="latency at 99.9 %"),
    Metric("max_us", "Latency, longest", "time", None, noun="longest latency"),
    Metric("start_kb", "Memory before the first request", "kb", None, noun="memory before the first request"),
    Metric("bytes_per_second", "Bytes per second", "flow", None, noun="bytes per second"),
    Metric("errors", "Errors", "number", None, noun="errors"),
    Metric("voluntary", "Context switches, voluntary", "number", None, noun="voluntary context switches"),
    Metric("involuntary", "Context switches, forced", "number", None, noun="forced context switches"),
    Metric("instructions", "Instructions per request", "number", None, noun="instructions per request"),
    Metric("syscalls", "System calls per request", "number", None, noun="system calls per request"),
    Metric("server_busy", "Server's cores in use", "share", None, noun="use of the server's cores"),
    Metric("client_busy", "Client's cores in use", "share", None, noun="use of the client's cores"),
    Metric("strangers", "Used by other programs", "share", None, noun="use by other programs"),
    Metric("requests", "Requests", "number", None, noun="requests"),
    Metric("seconds", "Seconds", "number", None, noun="seconds"),
)}
# Metrics that can be ranked.
RANKED = tuple(m.key for m in METRICS.values() if m.more is not None)
# Position on the axis of a percentile curve.
PERCENTILES = {"p50_us": .5, "p75_us": .75, "p90_us": .9, "p99_us": .99, "p999_us": .999}


def metric(key):
    """Returns a metric by its key; an unknown one is shown with its key as title, and not ranked."""
    return METRICS.get(key) or Metric(key, key.replace("_", " "), "number", None, noun=key.replace("_", " "))


def known(value):
    """Returns whether the value is a finite number; unknown values are None, and some programs print NaN."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def digits(value):
    """Formats a number with three significant digits and thousands separators."""
    size = abs(value)
    if size >= 99.95 or size == 0:
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= .0995 else f"{value:.2g}"


def step(value):
    """Formats a step of a sweep: 10, 1,000."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"


def write(value, kind="number"):
    if not known(value):
        return DASH
    if kind == "rate":
        return digits(value) + "/s"
    if kind == "us":
        return digits(value) + " µs"
    if kind == "time":
        return _scaled(value, ((1e6, "s"), (1e3, "ms"), (1, "µs")))
    if kind == "kb":
        return _scaled(value * 1024, ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")))
    if kind == "flow":
        return _scaled(value, ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")))
    if kind == "share":
        return digits(value * 100) + " %"
    if kind == "bytes":
        return digits(value) + " B"
    return digits(value)


def _scaled(value, units):
    for size, unit in units:
        if abs(value) >= size:
            return f"{digits(value / size)} {unit}"
    return f"{digits(value / units[-1][0])} {units[-1][1]}"


def span(low, high, kind):
    """Formats an interval, with the unit only once if both ends have the same unit."""
    if not (known(low) and known(high)):
        return DASH
    a, b = write(low, kind), write(high, kind)
    if a == b:
        return a
    number, space, unit = a.partition(" ")
    if space and b.endswith(" " + unit):
        a = number
    elif kind == "rate":
        a = a.removesuffix("/s")
    return f"{a} {DASH} {b}"
