# SPDX-License-Identifier: Apache-2.0
"""A PEP 517 build backend. The wheel contains only Python files, so pip can install it without network access."""
import base64
import csv
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

NAME, VERSION = "libmonkey", "2.0.0"
HERE = Path(__file__).parent
METADATA = f"""Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: The Monkey HTTP server inside a Python program
License: Apache-2.0
Requires-Python: >=3.9
Description-Content-Type: text/markdown

"""
WHEEL = """Wheel-Version: 1.0
Generator: libmonkey
Root-Is-Purelib: true
Tag: py3-none-any
"""


def _files():
    """Maps file names in the wheel to their bytes."""
    info = f"{NAME}-{VERSION}.dist-info"
    found = {path.relative_to(HERE).as_posix(): path.read_bytes() for path in sorted((HERE / NAME).glob("*.py"))}
    found[f"{info}/METADATA"] = METADATA.encode() + (HERE / "README.md").read_bytes()
    found[f"{info}/entry_points.txt"] = b"[console_scripts]\nmonkey-asgi = libmonkey.asgi_command:main\n"
    found[f"{info}/WHEEL"] = WHEEL.encode()
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for name, data in found.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow((name, f"sha256={digest}", len(data)))
    rows.writerow((f"{info}/RECORD", "", ""))
    found[f"{info}/RECORD"] = record.getvalue().encode()
    return found


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the wheel in that folder and returns its name."""
    name = f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in _files().items():
            wheel.writestr(path, data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """Builds the source archive and returns its name."""
    top = f"{NAME}-{VERSION}"
    with tarfile.open(Path(sdist_directory) / f"{top}.tar.gz", "w:gz") as archive:
        for path in (*sorted((HERE / NAME).glob("*.py")), HERE / "pyproject.toml", HERE / "backend.py", HERE / "README.md"):
            archive.add(path, f"{top}/{path.relative_to(HERE)}")
        info = tarfile.TarInfo(f"{top}/PKG-INFO")
        data = METADATA.encode() + (HERE / "README.md").read_bytes()
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return f"{top}.tar.gz"
