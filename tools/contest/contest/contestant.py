# SPDX-License-Identifier: Apache-2.0
"""A contestant: how a web server is found, configured, started and stopped. Each folder in contestants/ defines one, with a
contestant.toml, configuration templates and a fairness.md.

    for name, each in load_all().items():
        found = each.find()                      # found.program, or found.why it is absent
        prepared = each.prepare(Setup(folder, root, port, ...))
        with prepared.start(["taskset", "-c", "0"]) as running:
            ...running.pid, running.pids()
"""
from __future__ import annotations

import functools
import os
import pwd
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from contest import running, template
from contest.user_error import UserError
from contest.ports import free_port
from contest.running import Failed, PortTaken, Running  # noqa: F401: part of the interface

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "contestants"
PROJECT = HERE.parents[2]
PLACES = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/go/bin")
FEATURES = ("files", "keepalive", "close", "tls", "h2", "h2c", "dynamic", "services", "log", "index", "listing", "ranges", "proxy", "php",
            "data")
KEYS = {"title", "about", "home", "revision", "yardstick", "package", "origin", "programs", "features", "requires",
        "version", "forks", "files", "folders", "writable", "build", "command", "environment", "companions", "variables", "dynamic",
        "stop_seconds", "cases"}


ACCESS_LOG = "access.log"
HELLO = "Hello, world!"
DYNAMIC = "/hello"


@dataclass(frozen=True)
class Found:
    """The program, or the reason for its absence."""
    program: str | None = None
    why: str | None = None

    def __bool__(self):
        return self.program is not None


@dataclass
class Setup:
    """Settings common to all contestants. Ports that are None are not opened."""
    folder: Path  # for configuration, sockets and logs; must exist and be empty
    root: Path  # the document root
    port: int  # HTTP/1.1 in clear text
    tls_port: int | None = None  # HTTPS: HTTP/1.1, and HTTP/2 by ALPN if the contestant supports it
    h2c_port: int | None = None  # HTTP/2 in clear text, with prior knowledge
    workers: int = 1  # number of cores available to the server
    cert: Path | None = None
    key: Path | None = None
    log: bool = False  # write an access log to folder/access.log
    hello: str = HELLO  # the dynamic response
    connections: int = 16384  # the number of connections the server must support
    file: str = "100.html"  # the only file that a yardstick serves
    origin: int | None = None  # port of the origin server for paths below /origin/
    php: Path | None = None  # socket of a PHP-FPM with `children` processes, for paths that end in .php
    children: int = 0
    postgres: Path | None = None  # folder with the socket of a PostgreSQL with TechEmpower's tables
    redis: Path | None = None  # socket of a Redis server


@dataclass
class Prepared:
    """A contestant that is ready to start. It may be started repeatedly, after the previous process has been stopped."""
    contestant: Contestant
    setup: Setup
    program: str
    command: list[str]
    environment: dict[str, str]
    configuration: dict[str, str]  # {file name: text as used}
    dynamic: str  # the path of the dynamic response
    companion: Prepared | None = None  # the origin server of a cache

    def start(self, wrapper=(), cgroup: Path | None = None, seconds: float = 30) -> Running:
        """Starts the server with a command prefix such as taskset, in the cgroup v2 folder if given, and waits until it responds.
        Raises Failed with the end of its output."""
        return Running(self, list(wrapper), cgroup, seconds)


@dataclass
class Contestant:
    name: str
    folder: Path
    title: str
    about: str
    revision: int  # revision of the configuration, incremented with each change
    yardstick: bool  # shown, but never ranked
    package: str  # the Debian package; empty if there is none
    programs: list[str]  # names or paths, the preferred one first
    features: list[str]
    fairness: str
    data: dict = field(repr=False, default_factory=dict)
    forks: bool = field(default=False, kw_only=True)  # one process per connection

    @property
    def variable(self) -> str:
        """The environment variable that overrides the program."""
        return "CONTEST_" + self.name.upper().replace("-", "_")

    @property
    def dynamic(self) -> str:
        """The path of the dynamic response; servers that support only CGI use /cgi-bin/hello of the material."""
        return self.data.get("dynamic", DYNAMIC)

    def joins(self, case: str) -> bool:
        """Returns whether the contestant takes part in the case. The key `cases` excludes a contestant from cases in which it
        would serve files just as another contestant does."""
        return case in self.data.get("cases", [case])

    @functools.cached_property
    def _found(self) -> Found:
        return _find(self)

    def find(self) -> Found:
        """Looks for the program once and caches the result."""
        return self._found

    @functools.cached_property
    def _version(self) -> tuple[str, str]:
        return _version(self, self.find().program) if self.find() else ("", "")

    def version(self) -> str:
        """Returns the version that the program prints; empty if it is absent or prints none."""
        return self._version[0]

    def origin(self) -> str:
        """Returns the origin of the program: "Debian package nginx-light 1.22.1-9", "built here", or a path."""
        return _origin(self)

    def missing(self) -> dict[str, str]:
        """Returns {feature: reason} for the claimed features that are unavailable on this machine."""
        return _missing(self)

    def can(self) -> list[str]:
        """Returns the features available on this machine."""
        missing = self.missing()
        return [each for each in self.features if each not in missing]

    def prepare(self, setup: Setup) -> Prepared:
        """Writes the configuration into setup.folder. Raises Failed if the program is absent or cannot be prepared."""
        return _prepare(self, setup)


def load_all(folder: Path = FOLDER) -> dict[str, Contestant]:
    """Returns all contestants by name."""
    return {each.parent.name: load(each.parent) for each in sorted(folder.glob("*/contestant.toml"))}


def load(folder: Path) -> Contestant:
    path = folder / "contestant.toml"
    try:
        data = tomllib.loads(path.read_text())
        fairness = (folder / "fairness.md").read_text()
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: {error}") from error
    for key in data.keys() - KEYS:
        raise UserError(f"{path}: unknown key {key}; there are {', '.join(sorted(KEYS))}")
    for key in {"title", "about", "revision", "programs", "features", "version", "command"} - data.keys():
        raise UserError(f"{path}: no {key}")
    for feature in set(data["features"]) - set(FEATURES):
        raise UserError(f"{path}: unknown feature {feature}; there are {', '.join(FEATURES)}")
    return Contestant(folder.name, folder, data["title"], data["about"], data["revision"], data.get("yardstick", False),
                      data.get("package", ""), data["programs"], data["features"], fairness, data, forks=data.get("forks", False))


def _candidates(contestant: Contestant):
    """Yields (search description, path or None)."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *PLACES])
    for name in contestant.programs:
        name = name.replace("@project@", str(PROJECT))
        yield name, shutil.which(name, path=path)


def _find(contestant: Contestant) -> Found:
    named = os.environ.get(contestant.variable)
    if named:
        program = shutil.which(named)
        return Found(os.path.abspath(program)) if program else Found(
            why=f"{contestant.variable} names {named}, which is not a program")
    looked, others = [], []
    for name, program in _candidates(contestant):
        looked.append(os.path.relpath(name, PROJECT) if name.startswith(str(PROJECT)) else name)
        if program and _version(contestant, program)[0]:
            return Found(program)
        if program:
            others.append(f"{program} is a different program; it prints {_version(contestant, program)[1][:60]!r}")
    why = f"looked for {' or '.join(looked)} on PATH and in {', '.join(PLACES)}"
    hint = f"Debian's package is {contestant.package}" if contestant.package else \
        f"Debian does not package it; {contestant.variable}=PROGRAM selects a program"
    return Found(why="; ".join([why, *others, hint]))


def _version(contestant: Contestant, program: str) -> tuple[str, str]:
    """Returns (version, first line of output). If the output does not match the pattern, the program is a different one."""
    how = contestant.data["version"]
    if "fixed" in how:
        return how["fixed"], how["fixed"]
    try:
        done = subprocess.run([program, *how["arguments"]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=20, text=True, errors="replace", check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    match = re.search(how["pattern"], done.stdout)
    return (match[1] if match else ""), (done.stdout.strip().splitlines() or ["nothing"])[0]


def _origin(contestant: Contestant) -> str:
    if "origin" in contestant.data:
        return contestant.data["origin"]
    program = contestant.find().program
    if not program:
        return ""
    if not shutil.which("dpkg-query"):
        return program
    return _package_of(program) or program


@functools.cache  # dpkg-query parses the lists of all packages each time
def _package_of(program: str) -> str:
    for path in dict.fromkeys((program, os.path.realpath(program), program.removeprefix("/usr"))):
        owner = subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True, check=False).stdout
        if owner:
            package = owner.split(":")[0]
            about = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True,
                                   check=False)
            return f"package {package} {about.stdout}"
    return ""


def _missing(contestant: Contestant) -> dict[str, str]:
    missing = {}
    beside = str(Path(contestant.find().program or ".").parent)
    for feature, paths in contestant.data.get("requires", {}).items():
        paths = [path.replace("@beside@", beside).replace("@project@", str(PROJECT)) for path in paths]
        if not any(Path(path).exists() or shutil.which(path) for path in paths):
            missing[feature] = f"needs {' or '.join(paths)}"
    return missing


def values(contestant: Contestant, setup: Setup, program: str) -> dict[str, str]:
    """Returns the values of @names@ in templates and commands."""
    known = {key: str(value) for key, value in vars(setup).items() if value is not None and value is not False}
    known |= {"program": program, "source": str(contestant.folder), "project": str(PROJECT),
              "dynamic": contestant.dynamic, "descriptors": str(running.descriptors())}
    return known | contestant.data.get("variables", {})


def switches(contestant: Contestant, setup: Setup) -> set[str]:
    """Returns the names for which @if name@ is true."""
    can = set(contestant.can())
    on = {"dynamic", "root" if os.geteuid() == 0 else "unprivileged"}
    on |= {"tls", "h2"} if setup.tls_port else set()
    on |= {"h2c"} if setup.h2c_port else set()
    on |= {"log"} if setup.log else set()
    on |= {"proxy"} if setup.origin else set()
    on |= {"php"} if setup.php else set()
    on |= {"data"} if setup.postgres else set()
    on |= {"several"} if setup.workers > 1 else set()
    return {each for each in on if each in can or each not in FEATURES}


def _companion(contestant: Contestant, setup: Setup) -> Prepared | None:
    """Prepares the first available server of the list."""
    names = contestant.data.get("companions", [])
    if not names:
        return None
    others = load_all(contestant.folder.parent)
    for name in names:
        if name in others and others[name].find():
            folder = Path(setup.folder, "behind")
            folder.mkdir(exist_ok=True)
            return others[name].prepare(Setup(folder, setup.root, free_port(), workers=setup.workers))
    raise Failed(f"{contestant.name}: none of the origin servers {', '.join(names)} is present")


def _prepare(contestant: Contestant, setup: Setup) -> Prepared:
    found = contestant.find()
    if not found:
        raise Failed(f"{contestant.name} is absent: {found.why}")
    data, known, on = contestant.data, values(contestant, setup, found.program), switches(contestant, setup)
    companion = _companion(contestant, setup)
    if companion:
        known |= {"behind": str(companion.setup.port), "behind_name": companion.contestant.name}
    for name in data.get("folders", []):
        Path(setup.folder, name).mkdir(parents=True, exist_ok=True)
    configuration = {}
    for name, source in data.get("files", {}).items():
        text = template.render((contestant.folder / source).read_text(), known, on, f"{contestant.name}/{source}")
        Path(setup.folder, name).write_text(text)
        configuration[name] = text
    for step in data.get("build", []):
        if command := template.words(step, known, on, contestant.name):
            _build(contestant, command)
    _give_away(setup, data.get("writable", []))
    command = template.words(data["command"], known, on, contestant.name)
    environment = {key: template.fill(value, known, contestant.name)
                   for key, value in data.get("environment", {}).items()}
    if companion:
        configuration |= {f"behind/{name}": text for name, text in companion.configuration.items()}
    return Prepared(contestant, setup, found.program, command, environment, configuration,
                    contestant.dynamic, companion)


def _give_away(setup: Setup, names: list[str]) -> None:
    """Gives these files and folders to the user `nobody`: servers started as root write to them as that user. Everything else
    still belongs to root, because the server reads its configuration and starts programs from these folders as root."""
    for path in [setup.folder / name for name in names if setup.log or name != ACCESS_LOG]:
        if path.suffix == ".log":
            path.touch()
        else:
            path.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            os.chown(path, pwd.getpwnam("nobody").pw_uid, -1, follow_symlinks=False)


def _build(contestant: Contestant, command: list[str]) -> None:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                              check=False)
    except OSError as error:
        raise Failed(f"{contestant.name}: {command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{contestant.name}: {' '.join(command)}: not finished within {error.timeout:.0f} s") from error
    if done.returncode:
        raise Failed(f"{contestant.name}: {' '.join(command)}: {done.stderr.strip()[-800:]}")
