# SPDX-License-Identifier: Apache-2.0
"""Runs the program for a test in its own folder, on ports that the kernel chooses, and checks its output for sanitizer reports.

The program is build/dev/monkey unless MONKEY_PROGRAM names another one. See the fixture `monkey` in conftest.py.
"""
import codecs
import functools
import os
import re
import select
import shutil
import signal
import subprocess
import textwrap
import threading
from pathlib import Path

import pytest

from certificates import make_authority
from client import Client
from http2 import Http2Client

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = Path(os.environ.get("MONKEY_PROGRAM", ROOT / "build" / "dev" / "monkey")).resolve()
# With MONKEY_EMBEDDED=1, a program that embeds the server (tests/lib/embedded.c) serves every configuration.
EMBEDDED = PROGRAM.parent / "embedded" if os.environ.get("MONKEY_EMBEDDED") else None
NOT_STARTED = 3 if EMBEDDED else 1  # exit code if a plugin cannot start: the library does not distinguish such errors
# Plugins that start programs; the library leaves this to the embedding program.
STARTERS = re.compile(r"^[ \t]*Load[ \t].*\b(acme|cgi|otlp)\b", re.MULTILINE)
PIPE_SIZE = 1 << 16
SECONDS = 30  # time limit for the program to start, to exit, or to print the expected text

# No log may contain these: reports of sanitizers and assertions, and workers that a signal killed.
BUGS = re.compile(r"ERROR: \w+Sanitizer|runtime error:|SUMMARY: \w+Sanitizer|LeakSanitizer has encountered|"
                  r"monkey: bug:|worker \d+ was killed by signal|worker \d+ exited unexpectedly|killed workers that did not exit|"
                  r"stack smashing|free\(\): |malloc\(\): |double free|corrupted |"
                  r"== (Invalid |Conditional jump|Use of uninit|Syscall param|Process terminating|"
                  r".* (definitely|possibly) lost)", re.IGNORECASE)

ENVIRONMENT = {
    # handle_sigill=2: undefined behavior traps (cmake/flags.cmake), and no handler of the program replaces the report.
    "ASAN_OPTIONS": "handle_sigill=2:detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1:"
                    "abort_on_error=1:disable_coredump=1:intercept_tls_get_addr=0",  # intercept_tls_get_addr: see tests/CMakeLists.txt
    "UBSAN_OPTIONS": "print_stacktrace=1:abort_on_error=1",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
}


def needs_processes(reason):
    """Skips the test if the server is embedded: then there is no master, and workers are threads."""
    if EMBEDDED:
        pytest.skip(f"the server is inside a program: {reason}")


class Output:
    """Collects the output of a pipe, so that the pipe never fills up and tests can wait for a text."""

    def __init__(self, pipe, name):
        self._pipe, self._name, self._text = pipe, name, ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may arrive in two pieces
        self._changed, self._ended = threading.Condition(), False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while not self._ended:
            self._has_more(None)
            with self._changed:
                self._take()

    def _has_more(self, milliseconds):
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        return bool(poll.poll(milliseconds))

    def _take(self):
        """Reads the current contents of the pipe with at most one read(). The caller holds the lock."""
        if not self._ended and self._has_more(0):
            data = os.read(self._pipe.fileno(), PIPE_SIZE)
            self._text += self._decoder.decode(data, final=not data)
            self._ended = not data
            self._changed.notify_all()

    @property
    def text(self):
        """Everything written so far, even if the thread has not read it yet."""
        with self._changed:
            self._take()
            return self._text

    def wait_for(self, pattern, count=1, seconds=SECONDS):
        """Waits until `pattern` has matched `count` times; returns the last match."""
        def find():
            return list(re.finditer(pattern, self._text, re.MULTILINE))

        with self._changed:
            self._changed.wait_for(lambda: self._ended or len(find()) >= count, seconds)
            assert len(find()) >= count, f"{self._name} does not contain {pattern!r}:\n{self._text}"
            return find()[count - 1]

    def wait_for_end(self, seconds=SECONDS):
        """Waits until no process can write to the pipe; returns False if one still can after the given time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


PROTOCOLS = ("h1", "h1-tls", "h2", "h2-tls")


class Encryption:
    """A server certificate in files, and clients that trust its authority (the file `trust`)."""

    def __init__(self, folder):
        self.authority = make_authority(folder)
        pair = self.authority.issue(["localhost", "*.localhost", "127.0.0.1", "127.0.0.2", "::1"])
        self.certificate, self.key, self.trust = pair.certificate, pair.key, self.authority.file
        self.key_hash = pair.key_hash
        self._contexts = {}

    def context(self, protocol):
        """Returns a context for a client that offers the given protocol by ALPN."""
        if protocol not in self._contexts:
            self._contexts[protocol] = self.authority.client_context(alpn=[protocol])
        return self._contexts[protocol]


def over_tls(text, encryption):
    """Changes a configuration so that its servers use TLS on all listeners except unix sockets."""
    words = rf"\1 tls\n    Certificate {encryption.certificate} {encryption.key}"
    text, n = re.subn(r"^(\s+Listen\s+(?!unix:)\S+)$", r"\1 tls", text, flags=re.MULTILINE)
    assert n, "no Listen line that could use TLS"
    return re.sub(r"^(\s+Listen .*) tls$", words, text, count=1, flags=re.MULTILINE)


def write_config(path, server="", host="", sections="", root="site", listen="127.0.0.1:0", workers=1, plugins=(), top="",
                 tls=None):
    """Writes a configuration with one host (root=None: with only the hosts in `sections`). `plugins` are loaded; `top` has the
    sections above the host, `sections` those below it. `tls`: an Encryption, for over_tls()."""
    def keys(text):
        return textwrap.indent(textwrap.dedent(text).strip("\n"), "    ") + "\n" if text.strip() else ""

    listens = "".join(f"Listen {each}\n" for each in ([listen] if isinstance(listen, str) else listen))
    text = "[SERVER]\n" + keys(f"{listens}Workers {workers}\n" + textwrap.dedent(server))
    if plugins:
        text += "\n[PLUGINS]\n" + keys("".join(f"Load {name}\n" for name in plugins))
    text += "\n" + textwrap.dedent(top)
    if root is not None:
        text += "\n[HOST]\n" + keys(f"DocumentRoot {root}\n" + textwrap.dedent(host))
    text += "\n" + textwrap.dedent(sections)
    path.write_text(over_tls(text, tls) if tls else text)
    return path


class Server:
    """A running server. The fixture `monkey` creates it, stops it and checks it for errors."""

    def __init__(self, folder, args, config=None, environment=None, program=None, expect_start=True, wrapper=(),
                 protocol="h1", encryption=None, **popen):
        self.folder, self.config = folder, config
        self.protocol, self.encryption = protocol, encryption  # for connect(): the protocol, and the trusted authority
        self.allowed = []  # patterns of log lines that would be errors in other tests
        self.exit_code = 0  # the expected exit code
        program = program or (config and EMBEDDED) or PROGRAM
        environment = environment or {}
        if not {"MONKEY_STATE", "STATE_DIRECTORY", "HOME"} & set(environment):
            environment = environment | {"MONKEY_STATE": str(Path(folder) / ".state")}
        self.process = subprocess.Popen([*wrapper, program, *map(str, args)], cwd=folder,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=os.environ | ENVIRONMENT | environment, **popen)
        self.pid = self.process.pid
        self.out = Output(self.process.stdout, "stdout")
        self.err = Output(self.process.stderr, "stderr")
        self.addresses, self.encrypts = [], []
        if expect_start:
            self.wait_until_serving()

    # Addresses

    def wait_until_serving(self):
        # The program prints all addresses with a single write, so the first one implies the others.
        try:
            self.out.wait_for(r"^  (https?://|unix:)\S+\n")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.err.text}") from None
        urls = re.findall(r"^  (\S+)$", self.out.text, re.MULTILINE)
        self.addresses = [parse_url(url) for url in urls]
        self.encrypts = [url.startswith("https:") for url in urls]

    def is_encrypted(self, listener):
        """Does this listener use TLS? False if unknown, which is the case for an address that the test itself has found."""
        return listener < len(self.encrypts) and self.encrypts[listener]

    @property
    def port(self):
        return self.addresses[0][1]

    @property
    def url(self):
        host, port = self.addresses[0][:2]
        scheme = "https" if self.is_encrypted(0) else "http"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    # Requests

    @property
    def is_h2(self):
        """Does connect() open HTTP/2 connections?"""
        return self.protocol.startswith("h2")

    def way(self, listener=0, protocol=None):
        """Returns a client constructor for an address. The client uses `protocol` ("h1", "h2"), by default the test's."""
        is_h2 = protocol == "h2" if protocol else self.is_h2
        tls = self.encryption.context("h2" if is_h2 else "http/1.1") if self.is_encrypted(listener) else None
        return functools.partial(Http2Client if is_h2 else Client, tls=tls)

    def connect(self, listener=0, protocol=None, **how):
        return self.way(listener, protocol)(self.addresses[listener], **how)

    def get(self, target="/", method="GET", fields=(), body=b"", listener=0, **how):
        """Sends one request on a connection of its own."""
        with self.connect(listener) as c:
            return c.get(target, method, fields, body, **how)

    def send(self, data, method="GET", listener=0):
        """Sends raw bytes on a connection of their own, and reads the only response."""
        assert not self.is_h2, "raw HTTP/1 bytes sent over HTTP/2"
        with self.connect(listener) as c:
            return c.send(data).read(method)

    # Observation

    @property
    def error_logs(self):
        """Returns the files that the configuration names as ErrorLog."""
        names = re.findall(r"^\s+ErrorLog\s+(\S+)", self.config.read_text(), re.MULTILINE) if self.config else []
        return [self.config.parent / name for name in names if name not in ("stderr", "syslog")]

    @property
    def log(self):
        """Returns everything that the server logged to stderr and to its error logs."""
        return self.err.text + "".join(path.read_text(errors="replace") for path in self.error_logs if path.exists())

    @property
    def workers(self):
        """The process IDs of the server's children."""
        needs_processes("it has no processes of workers")
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    # Shutdown

    def tell(self, number):
        if number not in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            needs_processes(f"it does nothing at {signal.Signals(number).name}")
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        """Stops the server and checks how it exits."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()

    def wait(self, seconds=SECONDS):
        """Waits for the server to exit and checks how it exits."""
        try:
            code = end_of(self.process, seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"it did not end:\n{self.log}") from None
        alone = self.err.wait_for_end(10)
        self.check_log()
        assert code == self.exit_code, f"exit code {code}, not {self.exit_code}:\n{self.log}"
        assert alone, f"a process of the server still holds its stderr open:\n{self.log}"
        return code

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def check_log(self):
        lines = self.log.splitlines()
        for i, line in enumerate(lines):
            if BUGS.search(line) and not any(re.search(pattern, line) for pattern in self.allowed):
                raise AssertionError("a bug was reported:\n" + "\n".join(map(with_place, lines[max(0, i - 5):i + 60])))

    def allow(self, *patterns):
        """Accepts these log lines in this test, for example because the test kills workers."""
        self.allowed += patterns


def with_place(line):
    """Adds function, file and line to a frame of a report: the sandbox keeps workers from reading the debug information."""
    frame = re.fullmatch(r"( +#(\d+) 0x[0-9a-f]+) +\((/\S+)\+(0x[0-9a-f]+)\)(?: \(BuildId: [0-9a-f]+\))?", line)
    if not frame or not shutil.which("addr2line"):
        return line
    calls = int(frame[2]) > 0  # the address of a caller is that of its next instruction
    done = subprocess.run(["addr2line", "-fpe", frame[3], hex(int(frame[4], 16) - calls)], capture_output=True, text=True, check=False)
    return f"{frame[1]} in {done.stdout.strip()}" if done.returncode == 0 else line


def end_of(process, seconds):
    """Returns the exit code of a Popen as soon as it exits: Popen.wait(seconds) polls at growing intervals."""
    if process.poll() is None:
        fd = os.pidfd_open(process.pid)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(seconds * 1000)
        os.close(fd)
    return process.wait(0)


def parse_url(url):
    """Returns the socket address of a URL: (host, port), or the path of a unix socket."""
    if url.startswith("unix:"):
        return url.removeprefix("unix:")
    match = re.fullmatch(r"(https?)://(?:\[([^]]+)]|([^:/]+))(?::(\d+))?/", url)
    assert match, url
    return (match[2] or match[3], int(match[4] or (443 if match[1] == "https" else 80)))


class Site:
    """The document root of a test."""

    def __init__(self, path):
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def __truediv__(self, name):
        return self.path / name

    def __fspath__(self):
        return str(self.path)

    __str__ = __fspath__

    def add(self, name, content=b"", mtime=None, mode=None):
        """Writes a file and creates its folders; `mtime` is in seconds."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if mtime is not None:
            os.utime(path, (mtime, mtime))
        if mode is not None:
            path.chmod(mode)
        return path
