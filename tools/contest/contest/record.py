# SPDX-License-Identifier: Apache-2.0
"""The record of a run: all measurements, and all information needed to judge them. JSON, gzipped if large.

    record = load("build/contest/2026-11-21-0900/record.json")     # or the folder
    save(record, folder)

The fields below are the format. Unknown values are None (null); metrics that a case does not have are absent.
"""
import contextlib
import dataclasses
import gzip
import json
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path

from contest.user_error import UserError
from contest.metrics import METRICS

RESULTS = Path(__file__).resolve().parents[3] / "build" / "contest"  # one folder per run
FORMAT = 1
GZIP_ABOVE = 4_000_000
NAMES = ("record.json", "record.json.gz")

STATES = ("present", "absent", "failed")
BOTTLENECKS = ("client", "server", "neither", None)
COUNTED_BY = ("cgroup", "processes", None)


@dataclass
class Contestant:
    title: str
    state: str  # present, absent (not installed) or failed (could not be started)
    why: str | None = None
    version: str | None = None
    program: str | None = None
    package: str | None = None
    origin: str | None = None
    revision: int = 1
    configuration: dict[str, str] = field(default_factory=dict)  # file name: text as used
    fairness: str = ""
    yardstick: bool = False  # shown, never ranked
    features: list[str] = field(default_factory=list)
    forks: bool = False  # one process per connection: without a cgroup the CPU time of exited processes is lost


@dataclass
class Historical:
    name: str
    then: str
    differs: str


@dataclass
class Case:
    title: str
    about: str
    client: str
    axis: str | None  # the meaning of the steps: connections, rate, or None
    steps: list[float]
    rounds: int
    seconds: float
    base: str
    metrics: list[str]  # the first one decides the winner
    historical: Historical | None = None
    command: list[str] = field(default_factory=list)
    alone: bool = False  # no other contestant was running: memory is comparable
    verify: float | None = None  # seconds spent comparing responses under load before the measurements


@dataclass
class Shot:
    case: str
    contestant: str
    round: int
    step: float
    metrics: dict[str, float | None]
    bottleneck: str | None = None
    samples: list[list[float | None]] = field(default_factory=list)  # [seconds, share of a core, PSS in KB]
    repeated: int = 0  # how often the shot was discarded because other programs used the machine
    noisy: bool = False  # the recorded shot was also disturbed
    noise: float | None = None  # share of the used cores taken by other programs and the hypervisor
    counted_by: str | None = None  # source of the CPU time: cgroup or processes
    doubtful: list[str] = field(default_factory=list)  # latencies omitted because the client may have caused much of them itself


@dataclass
class Exclusion:
    case: str
    contestant: str
    why: str


@dataclass
class Record:
    mode: str
    started: str
    environment: dict
    format: int = FORMAT
    contest: str = "2.0.0"
    ended: str | None = None
    interrupted: bool = False
    contestants: dict[str, Contestant] = field(default_factory=dict)
    cases: dict[str, Case] = field(default_factory=dict)
    shots: list[Shot] = field(default_factory=list)
    seed: int | None = None  # seed of the random order of contestants
    noise: float | None = None  # a shot with a larger share is noisy
    site: str = ""  # name of the real web site that was served
    verified: dict[str, dict[str, int]] = field(default_factory=dict)  # {case: {contestant: responses compared under load}}
    disqualified: list[Exclusion] = field(default_factory=list)  # through their own fault
    unmeasured: list[Exclusion] = field(default_factory=list)  # through a fault of the contest or of a client
    absent_in: list[Exclusion] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def values(self, case, contestant, metric, step=None):
        """Returns the values in the order of rounds: the samples for statistics."""
        return [shot.metrics[metric] for shot in self.shots
                if shot.case == case and shot.contestant == contestant and step in (None, shot.step)
                and shot.metrics.get(metric) is not None]

    def is_disqualified(self, case, contestant):
        return any(e.case == case and e.contestant == contestant for e in self.disqualified)


# ---- From JSON ----

def _wrong(where, expected, found):
    shown = json.dumps(found)
    return UserError(f"{where}: expected {expected}, found {shown if len(shown) < 60 else shown[:57] + '...'}")


def _plain(kind, value, where):
    if kind is dict:
        kind = dict[str, typing.Any]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
        names = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
        raise _wrong(where, names.get(kind, kind.__name__), value)
    return value


def _read(kind, value, where):
    """Converts the value to `kind`, a type hint; errors name the location of a mismatch."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind in (typing.Any, dict):
        return value if kind is not dict or isinstance(value, dict) else _plain(types.NoneType, value, where)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _read(next(k for k in inner if k is not types.NoneType), value, where)
    if origin is list:
        if not isinstance(value, list):
            raise _wrong(where, "a list", value)
        return [_read(inner[0], item, f"{where}[{i}]") for i, item in enumerate(value)]
    if origin is dict:
        if not isinstance(value, dict):
            raise _wrong(where, "an object", value)
        return {name: _read(inner[1], item, f"{where}.{name}") for name, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return _read_object(kind, value, where)
    return _plain(kind, value, where)


def _read_object(kind, value, where):
    if not isinstance(value, dict):
        raise _wrong(where, "an object", value)
    hints, given = typing.get_type_hints(kind), {}
    for each in dataclasses.fields(kind):
        if each.name in value:
            given[each.name] = _read(hints[each.name], value[each.name], f"{where}.{each.name}")
        elif each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING:
            raise UserError(f"{where}: {each.name} is missing")
    return kind(**given)  # ignores fields of later versions


def from_json(value, where="record"):
    """Returns a validated Record from parsed JSON."""
    if isinstance(value, dict) and value.get("format") != FORMAT:
        raise UserError(f"{where}: the format is {value.get('format')!r}, but this program reads {FORMAT}")
    record = _read(Record, value, where)
    validate(record, where)
    return record


def _known(where, name, names, what):
    if name not in names:
        raise UserError(f"{where}: there is no {what} {name!r} in this record")


def validate(record, where="record"):
    """Checks what types cannot express: references between names, and the names of metrics."""
    if record.mode not in ("quick", "full", "custom"):
        raise _wrong(f"{where}.mode", "quick, full or custom", record.mode)
    for name, contestant in record.contestants.items():
        if contestant.state not in STATES:
            raise _wrong(f"{where}.contestants.{name}.state", " or ".join(STATES), contestant.state)
    for name, case in record.cases.items():
        for metric in case.metrics:
            _known(f"{where}.cases.{name}.metrics", metric, METRICS, "metric")
    for i, shot in enumerate(record.shots):
        here = f"{where}.shots[{i}]"
        _known(here, shot.case, record.cases, "case")
        _known(here, shot.contestant, record.contestants, "contestant")
        for metric in shot.metrics:
            _known(f"{here}.metrics", metric, METRICS, "metric")
        if shot.bottleneck not in BOTTLENECKS:
            raise _wrong(f"{here}.bottleneck", "client, server, neither or null", shot.bottleneck)
        if shot.counted_by not in COUNTED_BY:
            raise _wrong(f"{here}.counted_by", "cgroup, processes or null", shot.counted_by)
    for kind in ("disqualified", "unmeasured", "absent_in"):
        for i, each in enumerate(getattr(record, kind)):
            _known(f"{where}.{kind}[{i}]", each.case, record.cases, "case")
            _known(f"{where}.{kind}[{i}]", each.contestant, record.contestants, "contestant")


# ---- Files ----

def find(path):
    """Returns the file of a record: the path itself, or the record in the folder."""
    path = Path(path)
    if path.is_dir():
        for name in NAMES:
            if (path / name).exists():
                return path / name
        raise UserError(f"{path}: no {NAMES[0]} in this folder; `contest run` writes one")
    if not path.exists():
        raise UserError(f"{path}: no such file; name a record or the folder of a run")
    return path


def load(path):
    path = find(path)
    try:
        data = path.read_bytes()
        text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        value = json.loads(text)
    except (OSError, EOFError, ValueError) as error:
        raise UserError(f"{path}: not a record: {error}") from None
    return from_json(value, str(path))


def to_json(record):
    value = dataclasses.asdict(record)
    for shot in value["shots"]:
        if not shot["samples"]:
            del shot["samples"]
    return value


def _text(value):
    """Formats JSON with one line per shot, for reading and diffing."""
    parts = []
    for name, each in value.items():
        rows = isinstance(each, list) and each and isinstance(each[0], dict)
        text = "[\n  " + ",\n  ".join(map(json.dumps, each)) + "\n ]" if rows else json.dumps(each, indent=1)
        parts.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def save(record, folder):
    """Writes the record into the folder atomically. Returns its path."""
    validate(record)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = _text(to_json(record)).encode()
    name, other = NAMES if len(text) <= GZIP_ABOVE else NAMES[::-1]
    if name.endswith(".gz"):
        text = gzip.compress(text, mtime=0)
    fresh = folder / (name + ".new")
    try:
        fresh.write_bytes(text)
        fresh.rename(folder / name)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
    (folder / other).unlink(missing_ok=True)
    return folder / name


def latest(folder):
    """Returns the newest run below a folder, or None."""
    runs = [p.parent for name in NAMES for p in Path(folder).glob(f"*/{name}")]
    return max(runs, key=lambda p: p.name, default=None)
