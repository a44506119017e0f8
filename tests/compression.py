# SPDX-License-Identifier: Apache-2.0
"""Servers that compress, and the incremental decoders of the libraries that browsers use: all data received so far must be
decodable.
"""
import ctypes
import re
import subprocess
import zlib

import pytest

from monkey import PROGRAM, ROOT


class Gzip:
    """`feed(bytes)` returns the newly decoded bytes; `ended` becomes true at the end of the stream."""

    def __init__(self):
        self._z = zlib.decompressobj(wbits=31)

    def feed(self, data):
        out = self._z.decompress(data)
        assert not self._z.unused_data, "bytes after the end"
        return out

    @property
    def ended(self):
        return self._z.eof


class Brotli:
    ERROR, END, MORE_INPUT = 0, 1, 2

    def __init__(self):
        self._lib = library("libbrotlidec.so.1")
        self._lib.BrotliDecoderCreateInstance.restype = ctypes.c_void_p
        self._state = ctypes.c_void_p(self._lib.BrotliDecoderCreateInstance(None, None, None))
        self.ended = False

    def feed(self, data):
        source, output = ctypes.create_string_buffer(data, len(data)), ctypes.create_string_buffer(1 << 16)
        at, left, out = ctypes.c_void_p(ctypes.addressof(source)), ctypes.c_size_t(len(data)), b""
        while True:
            to, free = ctypes.c_void_p(ctypes.addressof(output)), ctypes.c_size_t(len(output))
            result = self._lib.BrotliDecoderDecompressStream(self._state, ctypes.byref(left), ctypes.byref(at),
                                                             ctypes.byref(free), ctypes.byref(to), None)
            assert result != self.ERROR, "invalid brotli stream"
            out += output.raw[:len(output) - free.value]
            self.ended = result == self.END
            if result in (self.END, self.MORE_INPUT):
                assert left.value == 0, "bytes after the end"
                return out

    def __del__(self):
        if hasattr(self, "_state"):
            self._lib.BrotliDecoderDestroyInstance(self._state)


class Zstd:
    class Buffer(ctypes.Structure):
        _fields_ = [("p", ctypes.c_void_p), ("size", ctypes.c_size_t), ("at", ctypes.c_size_t)]

    def __init__(self):
        self._lib = library("libzstd.so.1")
        self._lib.ZSTD_createDStream.restype = ctypes.c_void_p
        self._lib.ZSTD_decompressStream.restype = ctypes.c_size_t
        self._state = ctypes.c_void_p(self._lib.ZSTD_createDStream())
        self.ended = False

    def feed(self, data):
        source, output = ctypes.create_string_buffer(data, len(data)), ctypes.create_string_buffer(1 << 16)
        given, out = self.Buffer(ctypes.addressof(source), len(data), 0), b""
        while True:
            taken = self.Buffer(ctypes.addressof(output), len(output), 0)
            left = self._lib.ZSTD_decompressStream(self._state, ctypes.byref(taken), ctypes.byref(given))
            assert not self._lib.ZSTD_isError(ctypes.c_size_t(left)), "invalid zstd stream"
            out += output.raw[:taken.at]
            self.ended = left == 0
            assert not self.ended or given.at == given.size, "bytes after the end"
            if self.ended or (taken.at < len(output) and given.at == given.size):
                return out

    def __del__(self):
        if hasattr(self, "_state"):
            self._lib.ZSTD_freeDStream(self._state)


def library(name):
    lib = ctypes.CDLL(name)
    for function in ("BrotliDecoderDestroyInstance", "ZSTD_freeDStream"):
        if hasattr(lib, function):
            getattr(lib, function).argtypes = [ctypes.c_void_p]
    return lib


def decoder(coding):
    return {"gzip": Gzip, "br": Brotli, "zstd": Zstd}[coding]()


def decode(coding, data):
    """Decodes a complete stream."""
    d = decoder(coding)
    out = d.feed(data)
    assert d.ended, "truncated stream"
    return out


def has(coding):
    try:
        decoder(coding)
        return True
    except OSError:
        return False


BUILT = ROOT / "build" / "dev" / "tests" / "plugins"
needs_contents = pytest.mark.skipif(not BUILT.exists() or PROGRAM.parent != BUILT.parents[1],
                                    reason="the plugins of the tests are built with the program in build/dev")
BODY_SOURCES = BUILT / "monkey-body_sources.so"
TEXT = b"".join(b"line %d, and the same as ever\n" % i for i in range(2000))


def built():
    """The codings that this build supports, most preferred first."""
    text = subprocess.run([PROGRAM, "-T", "-c", "/dev/stdin"], input="[SERVER]\n    Listen 1\n[PLUGINS]\n    Load compress\n[HOST]\n"
                          "    DocumentRoot /\n[COMPRESS]\n", capture_output=True, text=True).stdout
    return re.search(r"^    Codings +(.*)$", text, re.MULTILINE)[1].split() if "Codings" in text else []


BUILD = built()
CODINGS = [pytest.param(c, marks=pytest.mark.skipif(c not in BUILD or not has(c), reason=f"no {c} here")) for c in ("zstd", "br", "gzip")]
all_codings = pytest.mark.skipif(BUILD != ["zstd", "br", "gzip"], reason="a build without all of the codings")


@pytest.fixture
def start(monkey, site):
    """Starts a server with the section [COMPRESS] after its host."""
    site.add("a.html", TEXT, mtime=1_600_000_000)

    def run(keys="", routes="", **how):
        section = "[COMPRESS]\n" + "".join(f"    {line.strip()}\n" for line in keys.strip().splitlines())
        if routes:
            section += "[ROUTES]\n" + "".join(f"    {line.strip()}\n" for line in routes.strip().splitlines())
        return monkey(**{"plugins": ["compress"], "sections": section, **how})

    return run


@pytest.fixture
def making(start):
    """Starts a server with the handlers of the test's own plugin."""
    def run(keys="", **how):
        return start(keys, "/made made\n/events events\n/say say\n/* static", plugins=["compress", BODY_SOURCES], **how)

    return run


def ask(server, accept="gzip", target="/a.html", method="GET", **fields):
    fields = {name.replace("_", "-"): value for name, value in fields.items()}
    return server.get(target, method, fields=({} if accept is None else {"Accept-Encoding": accept}) | fields)


def lines(size):
    """The body that the server generates for /made?size=."""
    return b"".join(b"%09d\n" % i for i in range(size // 10 + 1))[:size]
