# SPDX-License-Identifier: Apache-2.0
"""What `make install` puts beside the program: complete, with the right paths, and never over the owner's files."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = "cmake_minimum_required(VERSION 3.20)\nproject(monkey LANGUAGES NONE)\nadd_subdirectory(packaging)\n"


@pytest.fixture(scope="module")
def install(tmp_path_factory):
    """A function that installs below /usr in a folder, and that folder."""
    if not shutil.which("cmake"):
        pytest.skip("no cmake here")
    top = tmp_path_factory.mktemp("install")
    source, build, dest = top / "source", top / "build", top / "dest"
    source.mkdir()
    for name in ("site", "docs", "conf", "packaging"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    (source / "CMakeLists.txt").write_text(PROJECT)
    subprocess.run(["cmake", "-Wno-dev", "-S", source, "-B", build, "-DCMAKE_INSTALL_PREFIX=/usr"], check=True,
                   capture_output=True)

    def again():
        done = subprocess.run(["cmake", "--install", build], env=os.environ | {"DESTDIR": str(dest)}, check=True,
                              capture_output=True, text=True)
        return dest, done.stdout

    return again


def test_everything_is_where_it_belongs(install):
    dest, _ = install()
    for path in ("etc/monkey/monkey.conf", "etc/monkey/sites/default.conf", "usr/share/monkey/site/index.html",
                 "usr/share/doc/monkey/README.md", "usr/lib/systemd/system/monkey.service",
                 "usr/lib/systemd/system/monkey.socket"):
        assert (dest / path).is_file(), path


def test_the_unit_names_installed_paths(install):
    dest, _ = install()
    unit = (dest / "usr/lib/systemd/system/monkey.service").read_text()
    assert not re.search(r"@CMAKE_\w+@", unit)
    assert "ExecStart=/usr/bin/monkey -c /etc/monkey\n" in unit


def test_the_site_is_found_where_it_was_installed(install):
    dest, _ = install()
    conf = (dest / "etc/monkey/sites/default.conf").read_text()
    (root,) = re.findall(r"^ +DocumentRoot +(.+)$", conf, re.MULTILINE)
    assert (dest / root.lstrip("/") / "index.html").is_file()


def test_in_the_source_tree_the_site_is_found_too():
    conf = ROOT / "conf/sites/default.conf"
    (root,) = re.findall(r"^ +DocumentRoot +(.+)$", conf.read_text(), re.MULTILINE)
    (page,) = re.findall(r"^ +404 +(.+)$", conf.read_text(), re.MULTILINE)
    assert (conf.parent / root / page).is_file()


def test_an_owners_configuration_is_kept(install):
    dest, _ = install()
    conf = dest / "etc/monkey/monkey.conf"
    conf.write_text("# mine\n")
    _, said = install()
    assert conf.read_text() == "# mine\n"
    assert f"Kept: {conf}" in said


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_understands_the_units(install, tmp_path):
    dest, _ = install()
    program = tmp_path / "monkey"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    units = dest / "usr/lib/systemd/system"
    text = (units / "monkey.service").read_text().replace("/usr/bin/monkey", str(program))
    (tmp_path / "monkey.service").write_text(text)
    shutil.copy(units / "monkey.socket", tmp_path)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / "monkey.service",
                           tmp_path / "monkey.socket"], capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if "monkey" in line]
    assert done.returncode == 0 and complaints == [], done.stderr
