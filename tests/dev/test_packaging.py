# SPDX-License-Identifier: Apache-2.0
"""The files that `make install` installs besides the program are complete, contain the correct paths, and never overwrite a file
that the administrator has edited. Also checks which files `make uninstall` leaves."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = "cmake_minimum_required(VERSION 3.21)\nproject(monkey LANGUAGES NONE)\nadd_subdirectory(packaging)\n"
sys.path.append(str(ROOT / "tests" / "house"))


class Installation:
    """An installation, below `prefix`, of all files except the program itself."""

    def __init__(self, top, prefix="/usr"):
        self.source, self.build, self.dest, self.prefix = top / "source", top / "build", top / "dest", prefix
        self.source.mkdir()
        for name in ("site", "docs", "conf", "packaging", "plugins", "examples"):
            shutil.copytree(ROOT / name, self.source / name)
        for name in ("README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md"):
            shutil.copy(ROOT / name, self.source / name)
        (self.source / "CMakeLists.txt").write_text(PROJECT)
        self.cmake("-Wno-dev", "-S", self.source, "-B", self.build, f"-DCMAKE_INSTALL_PREFIX={prefix}")

    def cmake(self, *args):
        return subprocess.run(["cmake", *args], env=os.environ | {"DESTDIR": str(self.dest)}, check=True,
                              capture_output=True, text=True).stdout

    def install(self):
        return self.cmake("--install", self.build)

    def uninstall(self):
        return self.cmake(f"-DPREFIX={self.prefix}", "-P", ROOT / "packaging" / "uninstall.cmake")

    def files(self):
        return sorted(path.relative_to(self.dest).as_posix() for path in self.dest.rglob("*") if not path.is_dir())


@pytest.fixture(scope="module")
def install(tmp_path_factory):
    """Returns a function that installs into a folder, with the prefix /usr, and returns the folder and the output."""
    if not shutil.which("cmake"):
        pytest.skip("no cmake here")
    it = Installation(tmp_path_factory.mktemp("install"))
    return lambda: (it.dest, it.install())


@pytest.fixture
def installation(tmp_path):
    if not shutil.which("cmake"):
        pytest.skip("no cmake here")
    it = Installation(tmp_path)
    it.install()
    return it


def test_install_puts_files_into_their_folders(install):
    dest, _ = install()
    for path in ("etc/monkey/monkey.conf", "etc/monkey/sites/default.conf", "usr/share/monkey/site/index.html",
                 "usr/share/doc/monkey/README.md", "usr/share/doc/monkey/docs/README.md", "usr/share/doc/monkey/plugins/auth/README.md",
                 "usr/share/monkey/installed.txt", "usr/lib/systemd/system/monkey.service",
                 "usr/lib/systemd/system/monkey.socket"):
        assert (dest / path).is_file(), path


def test_unit_names_installed_paths(install):
    dest, _ = install()
    unit = (dest / "usr/lib/systemd/system/monkey.service").read_text()
    assert not re.search(r"@CMAKE_\w+@", unit)
    assert "ExecStart=/usr/bin/monkey -c /etc/monkey -I /run/monkey/monkey.pid\n" in unit


def test_installed_configuration_finds_the_installed_site(install):
    dest, _ = install()
    conf = (dest / "etc/monkey/sites/default.conf").read_text()
    (root,) = re.findall(r"^ +DocumentRoot +(.+)$", conf, re.MULTILINE)
    assert (dest / root.lstrip("/") / "index.html").is_file()


def test_installed_manual_has_no_broken_link(install):
    import check_links
    dest, _ = install()
    assert check_links.check_tree(dest / "usr/share/doc/monkey") == []


def test_links_to_files_not_installed_become_text(install):
    dest, _ = install()
    page = (dest / "usr/share/doc/monkey/README.md").read_text()
    assert "](CONTRIBUTING.md)" in (ROOT / "README.md").read_text()
    assert "](CONTRIBUTING.md)" not in page and len(page) > 1000


def test_installed_configuration_drops_root_and_logs_requests(install):
    dest, _ = install()
    conf = (dest / "etc/monkey/monkey.conf").read_text()
    assert re.search(r"^    User +www-data http nobody$", conf, re.MULTILINE)
    assert re.search(r"^    AccessLog +/var/log/monkey/access.log$", conf, re.MULTILINE)
    assert re.search(r"^    PidFile +/run/monkey.pid$", conf, re.MULTILINE)
    assert (dest / "var/log/monkey").is_dir()


def test_prefix_usr_local_puts_logs_into_var_log(tmp_path):
    it = Installation(tmp_path, prefix="/usr/local")
    it.install()
    conf = (it.dest / "usr/local/etc/monkey/monkey.conf").read_text()
    assert re.search(r"^    AccessLog +/var/log/monkey/access.log$", conf, re.MULTILINE)
    assert re.search(r"^    PidFile +/run/monkey.pid$", conf, re.MULTILINE)
    unit = (it.dest / "usr/local/lib/systemd/system/monkey.service").read_text()
    assert "ReadWritePaths=-/var/log/monkey\n" in unit and "LogsDirectory=monkey\n" in unit
    assert (it.dest / "var/log/monkey").is_dir() and not (it.dest / "usr/local/var").exists()


def test_unit_and_logrotate_name_the_log_folder(tmp_path):
    it = Installation(tmp_path, prefix="/srv/web")
    it.install()
    share = it.dest / "srv/web"
    assert "ReadWritePaths=-/srv/web/var/log/monkey\n" in (share / "lib/systemd/system/monkey.service").read_text()
    assert "\n/srv/web/var/log/monkey/*.log {" in (share / "share/monkey/monkey.logrotate").read_text()
    conf = (share / "etc/monkey/monkey.conf").read_text()
    assert "AccessLog            /srv/web/var/log/monkey/access.log" in conf
    assert "PidFile              /srv/web/var/run/monkey.pid" in conf and (share / "var/run").is_dir()


def test_uninstall_removes_all_files(installation):
    assert len(installation.files()) > 50
    installation.uninstall()
    assert installation.files() == []
    assert [path for path in installation.dest.rglob("monkey")] == []


def test_uninstall_removes_its_own_folders(tmp_path):
    if not shutil.which("cmake"):
        pytest.skip("no cmake here")
    it = Installation(tmp_path, "/usr/local")
    of_the_system = ["usr/local/bin", "usr/local/share/man", "usr/local/lib", "usr/local/share/zsh/site-functions"]
    for name in of_the_system:
        (it.dest / name).mkdir(parents=True)
    (it.dest / "usr/local/share/zsh/site-functions/_other").write_text("")
    it.install()
    it.uninstall()
    left = {path.relative_to(it.dest).as_posix() for path in it.dest.rglob("*") if path.is_dir()}
    assert left <= {"usr", "usr/local", "usr/local/share", "usr/local/etc", "usr/local/include", "usr/local/share/zsh", "var", "var/log",
                    *of_the_system}
    assert set(of_the_system) <= left


def test_uninstall_removes_files_of_an_earlier_version(installation):
    (installation.source / "docs" / "performance.md").unlink()
    installation.install()
    installation.uninstall()
    assert installation.files() == []


def test_uninstall_keeps_files_that_the_administrator_wrote(installation):
    etc = installation.dest / "etc/monkey"
    (etc / "monkey.conf").write_text("# mine\n")
    (etc / "sites/mine.conf").write_text("[HOST]\n")
    (installation.dest / "var/log/monkey/access.log").write_text("a line\n")
    output = installation.uninstall()
    assert installation.files() == ["etc/monkey/monkey.conf", "etc/monkey/sites/mine.conf", "var/log/monkey/access.log"]
    assert f"Kept, since you changed it: {etc}/monkey.conf" in output


def test_uninstall_after_reinstall_removes_the_configuration(installation):
    installation.install()
    installation.uninstall()
    assert installation.files() == []


def test_uninstall_without_installation_fails(installation):
    installation.uninstall()
    with pytest.raises(subprocess.CalledProcessError) as error:
        installation.uninstall()
    assert "is not installed below" in error.value.stderr


def test_installed_server_drops_root_and_writes_its_log(tmp_path, monkey):
    it = Installation(tmp_path, prefix=str(tmp_path / "usr"))
    it.dest = ""  # without DESTDIR, because the paths in the configuration must exist
    it.install()
    server = monkey(args=["-c", tmp_path / "usr/etc/monkey", "-p", "127.0.0.1:0", "-w", "1"])
    if os.geteuid() == 0:
        uids = re.search(r"^Uid:\s+(.+)$", Path(f"/proc/{server.workers[0]}/status").read_text(), re.MULTILINE)[1]
        assert "0" not in uids.split()
    server.get("/")
    assert (tmp_path / "usr/var/run/monkey.pid").read_text() == f"{server.pid}\n"
    server.stop()
    assert '"GET / HTTP/1.1"' in (tmp_path / "usr/var/log/monkey/access.log").read_text()


def test_configuration_in_the_source_tree_finds_the_site():
    conf = ROOT / "conf/sites/default.conf"
    (root,) = re.findall(r"^ +DocumentRoot +(.+)$", conf.read_text(), re.MULTILINE)
    (page,) = re.findall(r"^ +404 +(.+)$", conf.read_text(), re.MULTILINE)
    assert (conf.parent / root / page).is_file()


def test_install_keeps_an_edited_configuration(install):
    dest, _ = install()
    conf = dest / "etc/monkey/monkey.conf"
    conf.write_text("# mine\n")
    _, output = install()
    assert conf.read_text() == "# mine\n"
    assert f"Kept: {conf}" in output


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_accepts_the_units(install, tmp_path):
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
