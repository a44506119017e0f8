# SPDX-License-Identifier: Apache-2.0
"""A PEP 517 build backend without dependencies, so that pip needs no network access. It compiles the extension libmonkey._asgi with
the system's C compiler. Environment variables:

    CC, CFLAGS, LDFLAGS     as usual
    LIBMONKEY_BUNDLE        a folder whose files become part of the wheel, beside the Python files: libmonkey.so.1, monkey/...
    LIBMONKEY_EXTENSION     a compiled extension to use, for example for another architecture
    LIBMONKEY_PLATFORM      platform tag of the wheel (default: this machine's, such as linux_x86_64)
    LIBMONKEY_NO_EXTENSION  1: builds no extension and needs no compiler; the wheel lacks only the ASGI server
"""
from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

NAME, VERSION = "libmonkey", "2.0.0"
HERE = Path(__file__).parent
STABLE_ABI = (3, 11)  # one extension for this version and all later ones
METADATA = f"""Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: The Monkey HTTP server inside a Python program
License: Apache-2.0
Requires-Python: >=3.9
Description-Content-Type: text/markdown

"""


def _include_folder():
    """Returns the folder of the public headers: in this source archive, in the source tree, or of an installed libmonkey."""
    for folder in (HERE / "include", HERE.parents[1] / "include"):
        if (folder / "monkey" / "server.h").exists():
            return folder
    try:
        flags = subprocess.run(["pkg-config", "--cflags-only-I", "libmonkey"], capture_output=True, text=True, check=True).stdout
        return Path(next(flag[2:] for flag in shlex.split(flags) if flag.startswith("-I")))
    except (OSError, subprocess.CalledProcessError, StopIteration):
        return Path("/usr/include")


def _is_stable():
    return sys.version_info >= STABLE_ABI


def _compile_extension(target):
    flags = ["-std=gnu17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-I", sysconfig.get_path("include"), "-I", _include_folder()]
    if _is_stable():
        flags.append(f"-DPy_LIMITED_API=0x03{STABLE_ABI[1]:02x}0000")
    command = [*shlex.split(os.environ.get("CC", "cc")), *flags, *shlex.split(os.environ.get("CFLAGS", "")),
               *sorted((HERE / "src").glob("*.c")), *shlex.split(os.environ.get("LDFLAGS", "")), "-o", target]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        problem = done.stderr if done.returncode else ""
    except OSError as error:
        problem = str(error)
    if problem:
        raise SystemExit(f"{problem}\nlibmonkey: cannot compile the extension for ASGI. It needs a C compiler and the headers of Python "
                         "(Debian: gcc libc6-dev python3-dev).\nSet LIBMONKEY_NO_EXTENSION=1 to install without it, and thus without monkey-asgi.")


def _extension():
    """Returns the name of the extension and its bytes."""
    name = "_asgi.abi3.so" if _is_stable() else f"_asgi{sysconfig.get_config_var('EXT_SUFFIX')}"
    if given := os.environ.get("LIBMONKEY_EXTENSION"):
        return name, Path(given).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        _compile_extension(Path(folder) / name)
        return name, (Path(folder) / name).read_bytes()


def _has_extension():
    return os.environ.get("LIBMONKEY_NO_EXTENSION") != "1"


def _bundle():
    """Maps names in the package to the files of LIBMONKEY_BUNDLE."""
    folder = os.environ.get("LIBMONKEY_BUNDLE")
    return {path.relative_to(folder).as_posix(): path for path in sorted(Path(folder).rglob("*")) if path.is_file()} if folder else {}


def _tag():
    platform = os.environ.get("LIBMONKEY_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
    version = "cp%d%d" % (STABLE_ABI if _is_stable() else sys.version_info[:2])
    if _has_extension():
        return f"{version}-{'abi3' if _is_stable() else version}-{platform}"
    return f"py3-none-{platform if _bundle() else 'any'}"


def _sources():
    return sorted(path for path in (HERE / NAME).iterdir() if path.suffix in (".py", ".pyi") or path.name == "py.typed")


def _files():
    """Maps file names in the wheel to their bytes."""
    info = f"{NAME}-{VERSION}.dist-info"
    found = {path.relative_to(HERE).as_posix(): path.read_bytes() for path in _sources()}
    if _has_extension():
        name, data = _extension()
        found[f"{NAME}/{name}"] = data
    for name, path in _bundle().items():
        found[f"{NAME}/{name}"] = path.read_bytes()
    found[f"{info}/METADATA"] = METADATA.encode() + (HERE / "README.md").read_bytes()
    found[f"{info}/entry_points.txt"] = b"[console_scripts]\nmonkey-asgi = libmonkey.asgi_command:main\n"
    is_pure = "false" if _has_extension() or _bundle() else "true"
    found[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: libmonkey\nRoot-Is-Purelib: {is_pure}\nTag: {_tag()}\n".encode()
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for name, data in found.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow((name, f"sha256={digest}", len(data)))
    rows.writerow((f"{info}/RECORD", "", ""))
    found[f"{info}/RECORD"] = record.getvalue().encode()
    return found


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the wheel in `wheel_directory` and returns the name of the wheel."""
    name = f"{NAME}-{VERSION}-{_tag()}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in _files().items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o755 if path.endswith(".so") or ".so." in path else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """Builds the source archive, which includes the public headers, and returns its name."""
    top, include = f"{NAME}-{VERSION}", _include_folder()
    names = {path: path.relative_to(HERE) for path in (*_sources(), *sorted((HERE / "src").glob("*.[ch]")), HERE / "pyproject.toml",
                                                       HERE / "backend.py", HERE / "README.md")}
    names.update({path: Path("include") / path.relative_to(include) for path in sorted((include / "monkey").glob("*.h"))})
    with tarfile.open(Path(sdist_directory) / f"{top}.tar.gz", "w:gz") as archive:
        for path, name in names.items():
            archive.add(path, f"{top}/{name.as_posix()}")
        info = tarfile.TarInfo(f"{top}/PKG-INFO")
        data = METADATA.encode() + (HERE / "README.md").read_bytes()
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return f"{top}.tar.gz"
