# SPDX-License-Identifier: Apache-2.0
"""The reference of Duda's sections, whose examples can be loaded, and the manual pages of its commands."""
import re
import shutil
import subprocess

import pytest

import services
from monkey import PROGRAM, ROOT, SECONDS

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="no Duda here")

PAGE = (ROOT / "docs/reference/duda.md").read_text()
PACKAGES = re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
PAGES = PROGRAM.parent / "docs"


def examples():
    for package, text in PACKAGES:
        for example in re.findall(r"^```\n(\[\w+\]\n.*?)^```", text, re.MULTILINE | re.DOTALL):
            yield pytest.param(package, example, id=re.match(r"\[(\w+)\]", example)[1])


@pytest.mark.parametrize("package, example", examples())
def test_examples(run, tmp_path, package, example):
    if not (services.OBJECTS / f"monkey-{package}.so").exists():
        pytest.skip(f"this build has no {package}")
    for folder in ("lib/shop", "uploads", "migrations"):
        (tmp_path / folder).mkdir(parents=True)
    keys = tmp_path / "keys"
    keys.write_text("0123456789" * 4 + "\n")
    keys.chmod(0o600)
    for before, after in (("/var/lib/shop", tmp_path / "lib/shop"), ("/srv/uploads", tmp_path / "uploads"),
                          ("/usr/share/shop/migrations", tmp_path / "migrations"), ("/etc/monkey/shop.keys", keys)):
        example = example.replace(before, str(after))
    (tmp_path / "root").mkdir()
    (tmp_path / "monkey.conf").write_text("[SERVER]\n    Listen unix:s\n[PLUGINS]\n    Load " + package + "\n" + example +
                                          "[HOST]\n    DocumentRoot root\n")
    done = run("-t", "-c", tmp_path / "monkey.conf", environment={"REDIS_PASSWORD": "secret"})
    assert done.code == 0, done


def test_each_section_has_an_example():
    sections = set(re.findall(r"^### \[(\w+)\]", PAGE, re.MULTILINE))
    assert {"DUDA", "SESSIONS", "KV", "REDIS", "SQLITE", "POSTGRES", "HTTP"} <= sections
    assert sections == set(re.findall(r"^```\n\[(\w+)\]", PAGE, re.MULTILINE))


@pytest.mark.parametrize("verb", ["run", "new", "test", "routes", "doc", "build"])
def test_manual_pages(run, verb):
    page = PAGES / f"monkey-{verb}.1"
    if not page.exists():
        pytest.skip("the pages are not built here")
    text, told = page.read_text().replace("\\-", "-"), run(verb, "--help").out
    for option in re.findall(r"^  (-.*?)  ", told, re.MULTILINE):
        assert f"\\fB{option}\\fR" in text, option
    assert f"monkey {verb} " in text.split(".SH EXAMPLES")[1]
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True, timeout=SECONDS, check=True)
        assert done.stderr == "" and len(done.stdout) > 500
