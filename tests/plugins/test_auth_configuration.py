# SPDX-License-Identifier: Apache-2.0
"""The auth plugin: valid and invalid sections and user files."""
import os
import re
import subprocess

import pytest

from users import add, get


@pytest.fixture
def users(tmp_path):
    """The users ana (password secret) and bob (hidden), with cheap hashes."""
    file = tmp_path / "users"
    add(file, "ana", "secret", "-b", "bcrypt", "-r", "4")
    add(file, "bob", "hidden", "-b", "bcrypt", "-r", "4")
    return file


@pytest.mark.parametrize("keys, message", [
    ("Location /x", r":\d+:\d+: error: `UserFile` is missing"),
    ("UserFile users", r"Location"),
    ("Location x\nUserFile users", r"a path, such as /private/"),
    ("Location /x*\nUserFile users", r"`Location` is not a pattern"),
    ("Location /x//y\nUserFile users", r"no path matches this"),
    ("Location /x/../y\nUserFile users", r"no path matches this"),
    ("Location /x\nUserFile none", r"cannot open .*/none: No such file"),
    ("Location /x\nUserFile site", r"cannot read .*/site: it is not a regular file"),
    ("Location /x\nUserFile users\nType Kerberos", r"Basic.*Digest"),
    ("Location /x\nUserFile users\nRequire group a", r"valid-user, user NAME"),
    ("Location /x\nUserFile users\nRequire user", r"valid-user, user NAME"),
    ("Location /x\nUserFile users\nRequire address", r"or address NETWORK"),
    ("Location /x\nUserFile users\nRequire address 10.0.0.1/8", r"`10.0.0.1/8` is not an address, a network"),
    ("Location /x\nUserFile users\nRequire address 10.0.0.1 all", r"`all` would allow every client without a password"),
    ("Location /x\nUserFile users\nMaxAttempts 1001", r"1000"),
    ("Location /x\nUserFile users\nAttemptWindow 2d", r"AttemptWindow"),
    ("Location /x\nUserFile users\nRealm \"\"", r"Realm"),
    ("Location /x\nUserFile users\nRealm \"a:b\"\nType Digest", r"with Digest, the realm must not contain"),
    ("Location /x\nUserFile users\nRelam y", r"Realm"),
    ("Location /x\nUserFile users\n[AUTH]\nLocation /x\nUserFile users", r"duplicate section \[AUTH\] for /x"),
])
def test_auth_invalid_configuration_is_rejected(monkey, users, site, keys, message):
    lines = "".join(line + "\n" if line.startswith("[") else f"    {line}\n" for line in keys.splitlines())
    server = monkey(plugins=["auth"], sections="[AUTH]\n" + lines, expect_start=False)
    server.exit_code = 3
    server.wait()
    assert re.search(r"monkey\.conf:\d+:\d+: error: ", server.err.text) and re.search(message, server.err.text), (
        server.err.text)


@pytest.mark.parametrize("line, message", [
    ("rubbish", "expected name:hash or name:realm:hash"),
    ("name:", "expected name:hash or name:realm:hash"),
    (":$5$x", "a name has 1 to 255 bytes"),
    ("n" * 256 + ":x", "a name has 1 to 255 bytes"),
    ("name:secret", "unknown hash: expected yescrypt"),
    ("name:$1$abc$9cvVXGvzOqkpgiD4Kp5PZ0", "unknown hash: expected yescrypt"),
    ("name:$apr1$abc$9cvVXGvzOqkpgiD4Kp5PZ0", "unknown hash: expected yescrypt"),
    ("name:rqXexS6ZhobKA", "unknown hash: expected yescrypt"),
    ("name:$2b$05$short", "the hash is not complete"),
    ("name:$y$j9T$", "the hash is not complete"),
    ("name:$6$salt$" + "x" * 85, "the hash is not complete"),
    ("name:{SHA1}abc", "must be followed by 20 bytes"),
    ("name:{SHA1}" + "!" * 28, "must be followed by 20 bytes"),
    ("na\x01me:$5$x", "control characters are not allowed"),
    ("name::" + "0" * 64, "the realm is empty"),
    ("name:realm:abc", "expected 64 .* or 32"),
    ("name:realm:" + "g" * 64, "expected 64 .* or 32"),
    ("name:realm:" + "0" * 64 + ":more", "expected 64 .* or 32"),
    ("ana:{SHA1}" + "A" * 27 + "=", "ana is already on line 2"),
])
def test_auth_invalid_line_of_user_file_is_rejected(monkey, users, line, message):
    before = users.read_text()
    users.write_text("# people\n" + before + "\n\r\n" + line + "\n")
    server = monkey(plugins=["auth"], sections="[AUTH]\n    Location /x\n    UserFile users\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert re.search(r"users:6: .*" + message, server.err.text), server.err.text
    assert "secret" not in server.err.text.replace("sections", ""), "the line may contain a password"


def test_auth_user_file_errors_are_reported_together(monkey, users):
    users.write_text("".join(f"user{i}\n" for i in range(30)))
    server = monkey(plugins=["auth"], expect_start=False, sections="[AUTH]\n    Location /x\n    UserFile users\n"
                                                                    "[AUTH]\n    Location /y\n    UserFile users\n")
    server.exit_code = 3
    server.wait()
    assert len(re.findall(r"users:\d+: expected", server.err.text)) == 20
    assert "10 more invalid lines" in server.err.text


def test_auth_unusual_user_file_is_accepted(monkey, users, site):
    users.write_bytes(b"\r\n# comment: here\r\n   \r\n" + users.read_bytes().replace(b"\n", b"\r\n").rstrip(b"\r\n"))
    users.chmod(0o644)
    server = monkey(plugins=["auth"], sections="[AUTH]\n    Location /\n    UserFile users\n")
    site.add("a")
    assert get(server, "bob", "hidden", "/a").status == 200
    server.err.wait_for(r"warning: every user of this machine can read .*users")


def test_auth_empty_user_file_admits_nobody(monkey, tmp_path, site):
    (tmp_path / "users").touch(0o600)
    site.add("a")
    server = monkey(plugins=["auth"], sections="[AUTH]\n    Location /\n    UserFile users\n")
    server.err.wait_for("warning: .*users has no Basic entry: no client will get access")
    assert server.get("/a").status == 401
    assert get(server, "ana", "secret", "/a").status == 401


@pytest.mark.processes("it prints no configuration")
def test_auth_printed_config_loads_again(monkey, users, tmp_path):
    server = monkey(plugins=["auth"], sections="[AUTH]\n    Location /private\n    UserFile users\n    Require user ana bob\n"
                    "    Require address 192.0.2.7 10.0.0.0/8 unix:\n")
    done = subprocess.run([server.process.args[0], "-c", server.config, "-T"], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0 and "address 10.0.0.0/8" in done.stdout
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "monkey.conf").write_text(done.stdout)
    again = subprocess.run([server.process.args[0], "-c", tmp_path / "again" / "monkey.conf", "-T"],
                           capture_output=True, text=True, timeout=60)
    assert again.stdout == done.stdout and again.returncode == 0, again.stderr


def test_auth_shipped_config_loads(monkey, tmp_path, site):
    conf = os.path.join(os.path.dirname(__file__), "..", "..", "plugins", "auth", "auth.conf")
    server = monkey(config=f"[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n@INCLUDE {os.path.abspath(conf)}\n"
                           "[HOST]\n    DocumentRoot site\n")
    site.add("a", "a")
    assert server.get("/a").text == "a"
