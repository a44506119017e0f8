# SPDX-License-Identifier: Apache-2.0
"""Parses Prometheus' text format 0.0.4 strictly: every ambiguity that could confuse a scraper is an error.

    numbers = parse(text)
    numbers["monkey_http_requests_total", {"method": "GET", "code": "200"}]   the sum of all samples with these labels
"""
import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")
VALUE = re.compile(r"[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Inf)|NaN")
TYPES = {"counter", "gauge", "histogram", "summary", "untyped"}


class Numbers:
    def __init__(self):
        self.families = {}  # name: (type, help)
        self.samples = {}  # (name, ((label, value), ...)): number

    def all(self, name):
        """Returns [(labels, value)] for the samples of one name."""
        return [(dict(labels), value) for (n, labels), value in self.samples.items() if n == name]

    def __getitem__(self, key):
        name, wanted = key if isinstance(key, tuple) else (key, {})
        assert any(name in (family, *(family + s for s in ("_bucket", "_sum", "_count"))) for family in self.families), name
        return sum(value for labels, value in self.all(name) if wanted.items() <= labels.items())

    @property
    def counters(self):
        """Returns all values that must never decrease."""
        return {key: value for key, value in self.samples.items() if self.families.get(key[0], ("",))[0] == "counter" or
                re.sub(r"_(bucket|sum|count)$", "", key[0]) in
                {name for name, (kind, _) in self.families.items() if kind == "histogram"}}


def parse(text):
    assert text.endswith("\n"), "the last line is not terminated"
    numbers, family, closed = Numbers(), None, set()
    for line in text[:-1].split("\n"):
        assert line == line.strip() and line, f"blanks: {line!r}"
        if comment := re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line):
            kind, name, rest = comment.groups()
            if kind == "HELP":
                assert name not in closed and name != family, f"{name} occurs twice"
                assert re.fullmatch(r"(?:[^\\\n]|\\[\\n])*", rest), line
                if family:
                    closed.add(family)
                family, numbers.families[name] = name, (None, rest)
            else:
                assert name == family and numbers.families[name][0] is None and rest in TYPES, line
                numbers.families[name] = (rest, numbers.families[name][1])
            continue
        take_sample(numbers, family, line)
    for name, (kind, _) in numbers.families.items():
        assert kind, f"{name} has no type"
        assert (kind == "counter") == name.endswith("_total"), f"{name} is a {kind}"
        if kind == "histogram":
            check_histogram(numbers, name)
    return numbers


def take_sample(numbers, family, line):
    match = SAMPLE.fullmatch(line)
    assert match and VALUE.fullmatch(match[match.lastindex]), f"not a sample: {line!r}"
    name, labels, value = match[1], match[2] or "", float(match[match.lastindex].replace("Inf", "inf"))
    kind = numbers.families[family][0]
    endings = {"histogram": ("_bucket", "_sum", "_count")}.get(kind, ("",))
    assert name in [family + ending for ending in endings], f"{name} is below {family}"
    pairs = tuple(sorted((k, re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], v))
                         for k, v in re.findall(LABEL, labels)))
    assert len(dict(pairs)) == len(pairs), f"duplicate label: {line}"
    assert (name, pairs) not in numbers.samples, f"duplicate sample: {line}"
    assert kind != "counter" or (value >= 0 and math.isfinite(value)), line
    numbers.samples[name, pairs] = value


def check_histogram(numbers, name):
    series = {}
    for labels, value in numbers.all(name + "_bucket"):
        bound = float(labels.pop("le").replace("Inf", "inf"))
        series.setdefault(tuple(sorted(labels.items())), []).append((bound, value))
    for labels, buckets in series.items():
        assert buckets == sorted(buckets), f"{name}: buckets are not in order"
        assert all(a[1] <= b[1] for a, b in zip(buckets, buckets[1:])), f"{name} decreases"
        assert buckets[-1][0] == math.inf, f"{name} has no +Inf"
        assert numbers.samples[name + "_count", labels] == buckets[-1][1]
        assert (name + "_sum", labels) in numbers.samples
