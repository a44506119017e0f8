# SPDX-License-Identifier: Apache-2.0
"""tools/dev/mirror.sh with a stub for apt-get and mirrors that do not exist."""
import os
import subprocess

import pytest

from monkey import ROOT

MIRROR = ROOT / "tools" / "dev" / "mirror.sh"
ARCHIVE, SECURITY = "http://mirror.test/debian/", "http://mirror.test/debian-security/"
TARGETS = f"{SECURITY} trixie-security\n{ARCHIVE} trixie\n{ARCHIVE} trixie\n"
URIS = (f"'{ARCHIVE}dists/trixie/InRelease' a 0\n'{ARCHIVE}dists/trixie-updates/InRelease' b 0\n"
        f"'{ARCHIVE}dists/trixie/main/binary-amd64/Packages.xz' c 0\n"
        f"'{SECURITY}dists/trixie-security/InRelease' d 0\n"
        "'https://vendor.test/apt/dists/nodistro/InRelease' e 0\n'https://vendor.test/apt/dists/vendor-trixie/InRelease' f 0\n")


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "os-release").write_text("ID=debian\nVERSION_CODENAME=trixie\n")
    return tmp_path


def mirror(machine, downloaded="", configured=""):
    (machine / "downloaded").write_text(downloaded)
    (machine / "configured").write_text(configured)
    apt = machine / "apt-get"
    apt.write_text(f"#!/bin/sh\ncase \"$1 $2\" in\n    indextargets*) cat {machine}/downloaded ;;\n"
                   f"    'update --print-uris') cat {machine}/configured ;;\n    *) exit 100 ;;\nesac\n")
    apt.chmod(0o755)
    return subprocess.run([MIRROR], capture_output=True, text=True, timeout=30, check=False,
                          env={"PATH": f"{machine}:{os.environ['PATH']}", "MIRROR_OS_RELEASE": str(machine / "os-release")})


def test_mirror_with_downloaded_lists_prints_each_suite_once(machine):
    done = mirror(machine, TARGETS, URIS)
    assert (done.returncode, done.stdout) == (0, f"{SECURITY} trixie-security\n{ARCHIVE} trixie\n")


def test_mirror_without_lists_derives_suites_from_the_sources(machine):
    done = mirror(machine, "", URIS)
    assert (done.returncode, done.stdout) == (0, f"{SECURITY} trixie-security\n{ARCHIVE} trixie\n{ARCHIVE} trixie-updates\n")


@pytest.mark.parametrize("release", ["ID=ubuntu\nVERSION_CODENAME=trixie\n", "ID=debian\n", ""])
def test_mirror_on_another_system_fails(machine, release):
    (machine / "os-release").write_text(release)
    done = mirror(machine, "", URIS)
    assert (done.returncode, done.stdout) == (1, "")


def test_mirror_without_an_archive_fails(machine):
    assert mirror(machine, "", "").returncode == 1
