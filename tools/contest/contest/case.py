# SPDX-License-Identifier: Apache-2.0
"""A case: one comparison of all contestants, defined in cases/<name>.toml.

    cases = load_all()
    plan = cases["small"].plan("quick")       # steps, rounds and seconds; None if the quick run omits the case

The keys are the fields of Case, and the tables quick, full and historical; docs/guide/contest.md explains them. In the command,
{url} is the address, {seconds} the length of a shot, {c} the connections (set by wr), {rate} the requests per second and {cases}
the folder of cases.
"""
import dataclasses
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from contest import backends, material, record
from contest.contestant import FEATURES
from contest.user_error import UserError, nearest
from contest.metrics import METRICS
from contest.slow import SETTLE_SECONDS

FOLDER = Path(__file__).resolve().parents[1] / "cases"
KINDS = ("load", "idle")
CLIENTS = ("wrk", "h2load", "weighttp", "ab", "siege", "pace", "hold")
SCHEMES = ("http", "https", "h2", "h2c")
WHOLE_SECONDS = ("wrk", "h2load", "weighttp", "siege")  # clients that accept only whole seconds
AXES = ("connections", "rate")
PATHS = ("many", "site")
PLACEHOLDERS = ("url", "seconds", "c", "rate", "cases")
MODES = ("quick", "full")
# Duration of the comparison of all responses before the shots.
VERIFY_SECONDS = {"quick": 0.4, "full": 0.6}
# Measured overhead for estimates: to start, check and stop a server, and to take a shot in addition to its length.
START_SECONDS = 0.5
SHOT_SECONDS = 0.2


@dataclass(frozen=True)
class Plan:
    """The amount of work in one mode."""
    steps: tuple[float, ...]
    rounds: int
    seconds: float
    verify: float = VERIFY_SECONDS["full"]
    syscalls: bool = False  # count system calls in one more shot of the first round


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    about: str
    client: str
    features: tuple[str, ...]
    metrics: tuple[str, ...]
    kind: str = "load"
    command: tuple[str, ...] = ()
    scheme: str = "http"
    path: str = ""
    paths: str = ""  # a list of files of the material instead of one path
    close: bool = False  # one request per connection
    axis: str | None = "connections"
    connections: int = 0  # number of connections if the axis is the rate
    base: str = "monkey"  # base of the ratios
    alone: bool = False  # runs without other contestants: otherwise PSS would divide shared memory among them
    slow: int = 0  # number of slow clients that run at the same time as the client
    body: str = ""  # the expected response body; written to a file at `path`
    path_of: dict[str, str] = field(default_factory=dict)  # {contestant: its own path for the same response}
    needs: tuple[str, ...] = ()  # programs that the case requires besides the client
    backend: str = ""  # the backend: "php", "data" (PostgreSQL and Redis), or a file of the material that an origin server sends
    plans: dict[str, Plan] = field(default_factory=dict)
    historical: record.Historical | None = None

    def plan(self, mode):
        return self.plans.get(mode)

    def estimate(self, plan, contestants):
        """Returns the estimated seconds for that number of contestants."""
        visits = plan.rounds if self.alone else 1
        shots = (plan.rounds + plan.syscalls) * len(plan.steps)
        start = START_SECONDS + (plan.verify if self.kind == "load" else 0)
        shot = plan.seconds + SHOT_SECONDS + (SETTLE_SECONDS if self.slow else 0)
        return contestants * (visits * start + shots * shot)

    def for_record(self, plan):
        return record.Case(self.title, self.about, self.client, self.axis, list(plan.steps), plan.rounds, plan.seconds,
                           self.base, list(self.metrics), self.historical, list(self.command), self.alone,
                           plan.verify if self.kind == "load" else None)


# ---- Parsing ----

HINTS = {"title": str, "about": str, "client": str, "features": list, "metrics": list, "kind": str, "command": list,
         "scheme": str, "path": str, "paths": str, "close": bool, "axis": str, "connections": int, "base": str,
         "alone": bool, "slow": int, "body": str, "path_of": dict, "needs": list, "backend": str, "quick": dict, "full": dict, "historical": dict}
NEEDED = ("title", "about", "client", "features", "metrics", "full")
NAMES_OF_TYPES = {str: "a text", list: "a list of texts", bool: "true or false", int: "a whole number", dict: "a table"}
KEYS_OF_PLAN = ("steps", "rounds", "seconds", "syscalls")
KEYS_OF_HISTORY = ("name", "then", "differs")


def _check_keys(where, data, known, needed):
    for key in data:
        if key not in known:
            raise UserError(f"{where}: unknown key {key!r}{nearest(key, known)}")
    for key in needed:
        if key not in data:
            raise UserError(f"{where}: key {key!r} is missing")


def _check_type(where, key, value, kind):
    fits = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    if kind is list:
        fits = fits and all(isinstance(each, str) for each in value)
    if not fits:
        raise UserError(f"{where}: {key}: expected {NAMES_OF_TYPES[kind]}, found {value!r}")


def _check_words(where, key, words, known):
    for word in words:
        if word not in known:
            raise UserError(f"{where}: {key}: unknown {word!r}{nearest(word, known)}")


def _positive(where, key, value, whole=True):
    kinds = int if whole else (int, float)
    if not isinstance(value, kinds) or isinstance(value, bool) or value <= 0:
        raise UserError(f"{where}: {key}: expected a {'whole ' if whole else ''}number above 0, found {value!r}")


def _plan(where, data, mode):
    _check_keys(where, data, KEYS_OF_PLAN, KEYS_OF_PLAN[:3])
    _check_type(where, "syscalls", data.get("syscalls", False), bool)
    if not isinstance(data["steps"], list) or not data["steps"]:
        raise UserError(f"{where}: steps: expected a list of numbers, found {data['steps']!r}")
    for step in data["steps"]:
        _positive(where, "steps", step)
    if sorted(set(data["steps"])) != data["steps"]:
        raise UserError(f"{where}: steps: expected increasing numbers, found {data['steps']!r}")
    _positive(where, "rounds", data["rounds"])
    _positive(where, "seconds", data["seconds"], whole=False)
    return Plan(tuple(data["steps"]), data["rounds"], data["seconds"], VERIFY_SECONDS[mode],
                data.get("syscalls", False))


def _historical(where, data):
    _check_keys(where, data, KEYS_OF_HISTORY, KEYS_OF_HISTORY)
    for key, value in data.items():
        _check_type(where, key, value, str)
    return record.Historical(**data)


def _check_command(where, case):
    if case.kind == "idle":
        return
    if not case.command:
        raise UserError(f"{where}: key 'command' is missing")
    used = {name for part in case.command for name in re.findall(r"\{(\w+)\}", part)}
    _check_words(where, "command", sorted(used), PLACEHOLDERS)
    if "url" not in used:
        raise UserError(f"{where}: command: {{url}} is missing")
    if "seconds" not in used:
        raise UserError(f"{where}: command: {{seconds}} is missing, so the client might never exit")
    if case.axis == "rate" and ("rate" not in used or not case.connections):
        raise UserError(f"{where}: axis: a rate needs {{rate}} in the command, and the key 'connections'")


def _check(where, case):
    _check_words(where, "kind", [case.kind], KINDS)
    _check_words(where, "client", [case.client], CLIENTS)
    _check_words(where, "scheme", [case.scheme], SCHEMES)
    _check_words(where, "axis", [case.axis], AXES)
    _check_words(where, "features", case.features, FEATURES)
    _check_words(where, "metrics", case.metrics, METRICS)
    if bool(case.path) == bool(case.paths):
        raise UserError(f"{where}: path: exactly one of 'path' and 'paths' is needed")
    if case.paths:
        _check_words(where, "paths", [case.paths], PATHS)
    for key, path in [("path", case.path or "/"), *((f"path_of.{name}", path) for name, path in case.path_of.items())]:
        if not isinstance(path, str) or not path.startswith("/"):
            raise UserError(f"{where}: {key}: expected a path that begins with /, found {path!r}")
    if case.backend:
        _check_words(where, "backend", [case.backend], (backends.PHP, backends.DATA, *material.FIXED))
    if not case.metrics:
        raise UserError(f"{where}: metrics: expected at least one; the first one decides the ranking")
    _check_command(where, case)


def load(path):
    path = Path(path)
    where = f"{path.parent.name}/{path.name}"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{where}: {error}") from None
    _check_keys(where, data, HINTS, NEEDED)
    for key, value in data.items():
        _check_type(where, key, value, HINTS[key])
    plans = {mode: _plan(f"{where}: [{mode}]", data.pop(mode), mode) for mode in MODES if mode in data}
    history = _historical(f"{where}: [historical]", data.pop("historical")) if "historical" in data else None
    data = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    case = Case(name=path.stem, plans=plans, historical=history, **data)
    _check(where, case)
    return case


def load_all(folder=FOLDER):
    """Returns {name: case} in the order of the report."""
    found = {path.stem: load(path) for path in sorted(Path(folder).glob("*.toml"))}
    return {name: found[name] for name in sorted(found, key=lambda n: (ORDER.index(n) if n in ORDER else len(ORDER), n))}


ORDER = ("small", "logged", "page", "medium", "large", "close", "connections", "many", "site", "idle", "tls", "tls-new", "h2", "h2c",
         "dynamic", "json", "plaintext", "proxy", "proxy-200k", "php", "node-redis", "db", "queries", "fortunes",
         "updates", "cached", "slow", "paced", "gwan-100", "monkey-200k", "node-hello", "raspberry", "nbonvin-sweep")


def change(plan, rounds=None, seconds=None):
    """Returns the plan with the overrides of the command line."""
    given = {key: value for key, value in (("rounds", rounds), ("seconds", seconds)) if value is not None}
    return dataclasses.replace(plan, **given)
