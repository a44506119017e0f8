# SPDX-License-Identifier: Apache-2.0
"""The material that all contestants serve: files of the classic sizes, a tree of many different files, and a real web site, each
file with its length and SHA-256. The module also creates the certificate."""
from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from contest.contestant import HELLO, PROJECT

SEED = 2011
FIXED = {"100.html": 100, "1400.html": 1400, "200k.bin": 200_000, "10m.bin": 10_000_000}
# More files than any configured cache of open files holds, but fewer than the descriptor limit, which is only 20,000 on some
# machines: lighttpd responds with 403 when it runs out of descriptors.
TREE_FILES, TREE_BYTES, TREE_PER_FOLDER = 12_000, 4096, 200
# A real, published web site: pages, style sheets, scripts and pictures of many sizes.
SITE_PACKAGE, SITE = "sqlite3-doc", Path("/usr/share/doc/sqlite3")
SITE_TYPES = {".html", ".css", ".js", ".txt", ".svg", ".png", ".jpg", ".gif", ".ico", ".pdf", ".md"}


class NoMaterial(Exception):
    """Something required to create the material is missing."""


@dataclass(frozen=True)
class File:
    length: int
    sha256: str


@dataclass
class Material:
    root: Path
    files: dict[str, File] = field(default_factory=dict)  # path without a leading slash: the expected content
    tree: list[str] = field(default_factory=list)  # many small files, all different
    site: list[str] = field(default_factory=list)  # the real web site
    site_name: str = ""
    cert: Path | None = None
    key: Path | None = None

    @property
    def fixed(self) -> list[str]:
        return list(FIXED)


def make(folder: Path, tree: int = TREE_FILES, site: bool = True, tls: bool = True) -> Material:
    """Creates the material below `folder`; `tree` is the number of small files."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # servers started as root switch to another user
    material = Material(folder / "www")
    material.root.mkdir()
    rng = random.Random(SEED)
    for name, size in FIXED.items():
        _add(material, name, _html(name, size) if name.endswith(".html") else rng.randbytes(size))
    _add_cgi(material)
    _add_php(material)
    for number in range(tree):
        material.tree.append(_add_leaf(material, number, rng))
    if site:
        _add_site(material)
    if tls:
        material.cert, material.key = certificate(folder)
    return material


def _add(material: Material, name: str, data: bytes) -> None:
    path = material.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    material.files[name] = File(len(data), hashlib.sha256(data).hexdigest())


def _add_cgi(material: Material) -> None:
    """Writes a CGI script, for servers that generate a dynamic response in no other way."""
    path = material.root / "cgi-bin" / "hello"
    path.parent.mkdir()
    fields = ["Content-Type: text/plain", f"Content-Length: {len(HELLO)}", "Connection: close", "", HELLO]
    path.write_text("#!/bin/sh\nprintf '{}'\n".format("\\r\\n".join(fields)))
    path.chmod(0o755)


def _add_php(material: Material) -> None:
    path = material.root / "php" / "hello.php"
    path.parent.mkdir()
    path.write_text(f"<?php header('Content-Type: text/plain'); echo '{HELLO}';\n")


def _html(title: str, size: int) -> bytes:
    """Returns a page of exactly that size."""
    head, tail = f"<!doctype html>\n<title>{title}</title>\n<p>".encode(), b"\n"
    words = b"Lorem ipsum dolor sit amet, consectetur adipiscing elit. " * (size // 57 + 1)
    return head + words[:size - len(head) - len(tail)] + tail


def _add_leaf(material: Material, number: int, rng: random.Random) -> str:
    name = f"tree/{number // TREE_PER_FOLDER:03}/{number:05}.txt"
    _add(material, name, f"{number:<15}\n".encode() + rng.randbytes((TREE_BYTES - 16) // 2).hex().encode())
    return name


def site_source() -> tuple[str, Path]:
    """Returns (name, folder): Debian's copy of SQLite's web site if it is installed, otherwise this project's manuals."""
    if (SITE / "about.html").is_file():  # the package sqlite3 alone installs only its change log there
        return f"the web site of SQLite from Debian's {SITE_PACKAGE}", SITE
    return "the manuals in this project's source tree", PROJECT / "docs"


def _add_site(material: Material) -> None:
    material.site_name, source = site_source()
    target = material.root / "site"
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.suffix in SITE_TYPES:
            _copy(material, path, target, path.relative_to(source))


def _copy(material: Material, path: Path, target: Path, name: Path) -> None:
    to = target / name
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)
    data = to.read_bytes()
    material.files[f"site/{name}"] = File(len(data), hashlib.sha256(data).hexdigest())
    material.site.append(f"site/{name}")


def certificate(folder: Path) -> tuple[Path, Path]:
    """Creates a P-256 key and a self-signed certificate for localhost."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    if not shutil.which("openssl"):
        raise NoMaterial("openssl, which creates the certificate, is missing; install the package openssl")
    done = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", key, "-out", cert], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoMaterial(f"openssl could not create a certificate: {done.stderr.strip()[-400:]}")
    return cert, key
