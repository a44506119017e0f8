# SPDX-License-Identifier: Apache-2.0
"""A configuration folder of Monkey 1.6 loads, and this server's plugins take the place of the old ones. Features that no longer
exist are reported, and never make protected files public.
"""
import base64
import hashlib
import os
import re

import pytest

from proc import name, status

pytestmark = pytest.mark.over("h1", why="how a configuration is read does not depend on what is spoken")

MONKEY_CONF = """
# Monkey configuration
# ====================
[SERVER]
    # Listen : ports and addresses
    Listen 127.0.0.1:0

    # Workers : 0 is one for each processor
    Workers 0

    # Timeout : seconds
    Timeout 15

    # PidFile : of the master
    PidFile {folder}/monkey.pid

    # UserDir : folder in the home of a user
    UserDir public_html

    # Indexfile : in order
    Indexfile index.html index.htm index.php

    # HideVersion :
    HideVersion On

    # Resume :
    Resume On

    # User :
    User {user}

    # KeepAlive :
    KeepAlive On
    KeepAliveTimeout 5
    MaxKeepAliveRequest 1000

    # MaxRequestSize : in KB
    MaxRequestSize 32

    # SymLink :
    SymLink Off

    # TransportLayer : a network plugin
    TransportLayer liana

    # DefaultMimeType :
    DefaultMimeType text/plain

    # FDT : file descriptor table
    FDT On

    # OverCapacity :
    OverCapacity Resist

    # FDLimit :
    FDLimit 4096
"""

DEFAULT_SITE = """
[HOST]
    # Servername :
    ServerName 127.0.0.1 default.example

    # DocumentRoot :
    DocumentRoot {folder}/htdocs

[LOGGER]
    AccessLog {folder}/access.log
    ErrorLog {folder}/error.log

[ERROR_PAGES]
    404  404.html

[HANDLERS]
    # Match /.*\\.php fastcgi
    Match /cgi-bin/.*\\.cgi cgi
    Match .*\\.php$ fastcgi
    Match /list dirlisting

[AUTH]
    Location /private/
    Title    Members
    Users    {folder}/users.mk
"""

OTHER_SITE = """
[HOST]
	ServerName old.example
	Redirect http://default.example
"""

MIME = """
[MIMETYPES]
    html text/html
    js   application/x-javascript
    mk   application/x-monkey
"""

PLUGINS = """
[PLUGINS]
    Load /usr/lib/monkey/monkey-auth.so
    # Load /usr/lib/monkey/monkey-cheetah.so
    Load /usr/lib/monkey/monkey-cgi.so
    Load /usr/lib/monkey/monkey-dirlisting.so
    # Load /usr/lib/monkey/monkey-fastcgi.so
    Load /usr/lib/monkey/monkey-logger.so
"""

SCRIPT = "#!/bin/sh\necho Content-Type: text/plain\necho\necho secret-script $QUERY_STRING\n"


@pytest.fixture
def folder(tmp_path):
    """The complete configuration folder, with content to serve."""
    conf = tmp_path / "conf"
    for path in ("conf/sites", "conf/plugins/logger", "htdocs/cgi-bin", "htdocs/private", "htdocs/list", "other"):
        (tmp_path / path).mkdir(parents=True)
    values = {"folder": tmp_path, "user": "root" if os.geteuid() == 0 else os.environ.get("USER", "nobody")}
    (conf / "monkey.conf").write_text(MONKEY_CONF.format(**values))
    (conf / "sites/default").write_text(DEFAULT_SITE.format(**values))
    (conf / "sites/another").write_text(OTHER_SITE)
    (conf / "sites/.swp").write_bytes(b"\0not for us")
    (conf / "sites/default~").write_text("neither [is this")
    (conf / "monkey.mime").write_text(MIME)
    (conf / "plugins.load").write_text(PLUGINS)
    (conf / "plugins/logger/logger.conf").write_text("[LOGGER]\n    FlushTimeout 3\n")
    for path, text in {"index.html": "home", "404.html": "nothing here", "a.js": "js", "a.mk": "mk", "unknown.zzz": "z",
                       "x.php": "<?php secret", "cgi-bin/x.cgi": SCRIPT, "private/x": "secret", "list/a.txt": "a"}.items():
        (tmp_path / "htdocs" / path).write_text(text)
    (tmp_path / "htdocs/cgi-bin/x.cgi").chmod(0o755)
    digest = base64.b64encode(hashlib.sha1(b"monkey").digest()).decode()
    (tmp_path / "users.mk").write_text(f"ana:{{SHA1}}{digest}\n")
    (tmp_path / "users.mk").chmod(0o600)
    return tmp_path


@pytest.fixture
def server(monkey, folder):
    server = monkey(args=["-c", folder / "conf", "-w", "1"])
    server.config = None
    return server


def test_monkey16_config_is_valid(run, folder):
    done = run("-t", "-c", folder / "conf")
    assert done.code == 0 and done.out == "The configuration is valid: 2 hosts, 1 address.\n"
    assert ": error:" not in done.err


def test_monkey16_changes_are_warned_of_once_with_location(run, folder):
    warnings = run("-t", "-c", folder / "conf").err
    taken = [rf"plugins\.load:\d+:\d+: warning: there is no `/usr/lib/monkey/monkey-{plugin}\.so`: using the `{plugin}` of this "
             "server instead" for plugin in ("auth", "cgi", "dirlisting", "logger")]
    for pattern in taken + [r"monkey\.conf:\d+:\d+: warning: .*`TransportLayer`",
                                   r"sites/default:\d+:\d+: warning: there is no handler `fastcgi`: matching requests get 501",
                                   r"sites/default:\d+:\d+: warning: \S+/users\.mk: 1 password is hashed with {SHA1}"]:
        assert len(re.findall(pattern, warnings)) == 1, (pattern, warnings)


@pytest.mark.parametrize("plugin, hint", [
    ("liana", "if it is a plugin of Monkey 1 that you do not need, remove the line"),
    ("mandril", "it is now called `security`: write `Load security`, and include its old configuration"),
])
def test_monkey16_removed_plugin_is_an_error(run, folder, plugin, hint):
    path = folder / "conf/plugins.load"
    path.write_text(path.read_text() + f"    Load /usr/lib/monkey/monkey-{plugin}.so\n")
    done = run("-t", "-c", folder / "conf")
    assert done.code == 3
    assert re.search(rf"plugins\.load:\d+:10: error: there is no `/usr/lib/monkey/monkey-{plugin}\.so`, and this server has no plugin "
                     rf"`{plugin}`\n.*\n.*\n    hint: {hint}\n", done.err), done.err


def test_monkey16_sites_are_served_with_default_first(server):
    assert server.get("/").text == "home"
    assert server.get("/", fields=[("Host", "unheard.example")]).text == "home"
    moved = server.get("/x?y", fields=[("Host", "old.example")])
    assert (moved.status, moved["Location"]) == (301, "http://default.example/x?y")


def test_monkey16_mime_types_and_error_pages_apply(server):
    assert server.get("/a.js")["Content-Type"].startswith("application/x-javascript")
    assert server.get("/a.mk")["Content-Type"] == "application/x-monkey"
    assert server.get("/unknown.zzz")["Content-Type"].startswith("text/plain")
    missing = server.get("/none")
    assert (missing.status, missing.text) == (404, "nothing here")


def test_monkey16_scripts_run_or_are_refused(server):
    assert server.get("/cgi-bin/x.cgi?now").text == "secret-script now\n"
    for target in ("/x.php", "/X.PHP", "/x.php?y"):
        reply = server.get(target)
        assert reply.status == 501 and "secret" not in reply.text, target


def test_monkey16_folders_are_listed_where_configured(server):
    assert "a.txt" in server.get("/list/").text
    assert server.get("/list/a.txt").text == "a"
    assert server.get("/cgi-bin/").status == 403


def test_monkey16_protected_files_require_old_passwords(server):
    for target in ("/private/x", "/private/", "/private/none", "/%70rivate/x", "//private/x", "/private/./x"):
        reply = server.get(target)
        assert reply.status == 401 and "secret" not in reply.text, target
        assert 'Basic realm="Members"' in reply["WWW-Authenticate"]
    def ask(password):
        word = base64.b64encode(f"ana:{password}".encode()).decode()
        return server.get("/private/x", fields=[("Authorization", f"Basic {word}")])

    assert ask("monkey").text == "secret" and ask("donkey").status == 401


def test_monkey16_auth_section_without_plugin_is_an_error(run, folder):
    path = folder / "conf/plugins.load"
    path.write_text(path.read_text().replace("    Load /usr/lib/monkey/monkey-auth.so\n", ""))
    done = run("-t", "-c", folder / "conf")
    assert done.code == 3 and re.search(r"sites/default:\d+:1: error: unknown section \[AUTH\]", done.err)
    assert "hint: the plugin `auth` has it: add `Load auth` to [PLUGINS]" in done.err


def test_monkey16_other_keys_apply(server, folder):
    assert server.get("/")["Server"] == "Monkey", "HideVersion"
    assert (folder / "monkey.pid").read_text() == f"{server.pid}\n"
    limit = open(f"/proc/{server.workers[0]}/limits").read()
    assert re.search(r"Max open files +4096 ", limit), "FDLimit"
    assert [name(pid) for pid in server.workers] == ["monkey: worker"]
    assert status(server.workers[0])["NoNewPrivs"] == "1"
    body = b"x" * 40000
    assert server.get("/", method="POST", body=body, fields=[("Content-Length", "40000")]).status == 413, "MaxRequestSize"
    server.stop()
    assert '"GET / HTTP/1.1" 200 4 ' in (folder / "access.log").read_text()


def test_monkey16_config_prints_as_valid_config(run, folder):
    first = run("-T", "-c", folder / "conf")
    (folder / "printed.conf").write_text(first.out)
    again = run("-T", "-c", folder / "printed.conf")
    assert again.code == 0 and again.out == first.out
    assert "[AUTH]" in first.out and "Match" in first.out and "x-monkey" in first.out


@pytest.mark.parametrize("old, new", [
    ("Listen 127.0.0.1:0", "Port 8080\n    Listen 127.0.0.1"),
    ("Listen 127.0.0.1:0", "Listen 127.0.0.1\n    Port 8080"),
    ("Listen 127.0.0.1:0", "Port 8080"),
])
def test_monkey16_port_and_address_keys_are_combined(run, folder, old, new):
    path = folder / "conf/monkey.conf"
    path.write_text(path.read_text().replace(old, new))
    done = run("-T", "-c", folder / "conf")
    assert done.code == 0
    wanted = "127.0.0.1:8080" if "Listen" in new else "0.0.0.0:8080"
    assert re.findall(r"^    Listen +(\S+)$", done.out, re.MULTILINE) == [wanted]
    assert re.search(r"monkey\.conf:\d+:\d+: warning: .*`Port` is deprecated", done.err)


@pytest.mark.parametrize("of_server", ["Index", "Indexfile"])
@pytest.mark.parametrize("of_host", ["Index", "Indexfile"])
def test_monkey16_key_and_new_name_override_each_other(monkey, site, of_server, of_host):
    (site / "first.html").write_text("first")
    (site / "second.html").write_text("second")
    server = monkey(server=f"{of_server} first.html", host=f"{of_host} second.html")
    assert server.get("/").text == "second"


def mistakes(run, tmp_path, text):
    """Returns the messages of `monkey -t` for an invalid configuration."""
    (tmp_path / "checked.conf").write_text(text)
    checked = run("-t", "-c", tmp_path / "checked.conf")
    assert checked.code == 3
    return checked.err


def test_monkey16_key_and_new_name_are_one_key(run, tmp_path):
    err = mistakes(run, tmp_path, "[SERVER]\n    Timeout 5\n    HeaderTimeout 6\n")
    assert "checked.conf:3:5: error: `HeaderTimeout` is already set on line 2" in err


def test_monkey16_key_error_shows_its_line(run, tmp_path):
    err = mistakes(run, tmp_path, "[PLUGINS]\n    Load auth\n[HOST]\n    DocumentRoot .\n[AUTH]\n    Location /x\n    Type Digest\n"
                             '    Users users\n    Title "a:b"\n')
    assert "checked.conf:8:11: error: cannot open" in err and "checked.conf:9:11: error: with Digest, the realm must not contain" in err
