# SPDX-License-Identifier: Apache-2.0
"""Configuration files: valid and invalid ones, and the quality of the error messages."""
import os
import re

import pytest

from monkey import PROGRAM, ROOT
from proc import wait_until

pytestmark = pytest.mark.over("h1", why="how a configuration is read does not depend on what is spoken")

CONFIGURATION = 3

GOOD = "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n[HOST]\n    DocumentRoot site\n"


@pytest.fixture
def check(run, tmp_path, site):
    """`check(text)` runs `monkey -t` with that configuration."""
    def run_check(text, name="monkey.conf", **how):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return run("-t", "-c", path, **how)

    return run_check


def refuses(done, line, message, hint=None):
    assert (done.code, done.out) == (CONFIGURATION, ""), done
    assert re.search(rf"^\S*monkey\.conf:{line}(:\d+)?: error: .*{re.escape(message)}", done.err, re.MULTILINE), done.err
    assert hint is None or f"hint: {hint}" in done.err, done.err


# An entry of [SERVER], a part of its error message, and a part of the hint

SERVER_MISTAKES = [
    ("Wrokers 2", "unknown key `Wrokers` in [SERVER]", "did you mean `Workers`?"),
    ("DocumentRoot /", "unknown key `DocumentRoot` in [SERVER]", None),
    ("worker_processes auto", "unknown key `worker_processes` in [SERVER]", "use `Workers` in [SERVER]"),
    ("bind *:80", "unknown key `bind` in [SERVER]", "use `Listen PORT` in [SERVER]"),
    ("Listen nonsense", "`nonsense` is not an address to listen on: expected PORT, ADDRESS:PORT", None),
    ("Listen 127.0.0.1:65536", "`127.0.0.1:65536` is not an address", None),
    ("Listen ::1:80", "`::1:80` is not an address", None),
    ("Listen 0.0.0.256:80", "`0.0.0.256:80` is not an address", None),
    ("Listen 8081 tls fast", "`fast` is not a flag of Listen: expected `tls`", None),
    ("Listen 8081 fast", "`fast` is not a flag of Listen", None),
    ("Listen 8081\n    Listen 0.0.0.0:8081", "`0.0.0.0:8081` already has a Listen", None),
    ("HeaderTimeout 15x", "expected a time (ms, s, m, h, d) from 100ms to 1d, not `15x`", None),
    ("HeaderTimeout 0", "`0` is too small: expected a time", None),
    ("HeaderTimeout 25h", "`25h` is too large: expected a time", None),
    ("HeaderTimeout -1", "not `-1`", None),
    ("HeaderTimeout 1.5", "not `1.5`", None),
    ("HeaderTimeout 99999999999999999999999", "99999999999999999999999", None),
    ("KeepAlive maybe", "expected on or off, not `maybe`", None),
    ("KeepAliveTimeout", "`KeepAliveTimeout` has no value: expected a time", None),
    ("HeaderTimeout 1\n    HeaderTimeout 2", "`HeaderTimeout` is already set on line 4", None),
    ("HeaderTimeout 1\n    tiMEout 2", "is already set on line 4", None),
    ("FDLimit many", "expected a number", None),
    ("ErrorLog off", "the error log cannot be off: expected a file, `stderr` or `syslog`", None),
    ("HeaderTimeout 99ms", "`99ms` is too small", None),
    ("KeepAliveTimeout 99ms", "`99ms` is too small", None),
    ("LingerTimeout 99ms", "`99ms` is too small", None),
    ("MinRateInterval 999ms", "`999ms` is too small", None),
    ("MinRate 1025M", "`1025M` is too large", None),
    ("MaxHeaderSize 8K\n    MaxURISize 9K", "MaxURISize exceeds MaxHeaderSize, which includes the target", None),
    ("MaxURISize 17K", "MaxURISize exceeds MaxHeaderSize", None),
    ("DefaultMimeType text", "`text` is not a media type", None),
    ("DefaultMimeType text/plain/x", "`text/plain/x` is not a media type", None),
    ("MaxHeaderSize 10", "`10` is too small: expected a size (B, K, M, G) from 256 to 60K", None),
    ("MaxHeaderSize 61K", "`61K` is too large", None),
    ("MaxHeaders 5", "`5` is too small", None),
    ("OverCapacity Resits", "expected one of Drop, Resist, TooBusy, not `Resits`", "did you mean `Resist`?"),
    ("LogLevel loud", "expected one of error, warn, info, debug, not `loud`", None),
    ("AccessLogFormat jason", "expected one of combined, json, short, not `jason`", "did you mean `json`?"),
    ("FollowSymlinks perhaps", "expected one of off, owner, on, not `perhaps`", None),
    ("MaxBodySize ${NOPE}", "`NOPE` is not set", "set it above with @SET"),
    ('UserDir "x', 'the quotes of `"x` do not match', None),
    ("User no such user", "there is no user `no such user`", None),
    ("Group no-such-group\n    User root", "or no group `no-such-group`", None),
    ("AccessLog /no/such/folder/access.log", "cannot open the log `/no/such/folder/access.log`: No such file", None),
    ("ErrorLog .", ": Is a directory", None),
    (" Deep 1", "the indent is 5 spaces: expected 4 spaces, as on line 2", "entries cannot be nested"),
    ("\rTimeout 1", "", None),
]


@pytest.mark.parametrize("entry, message, hint", SERVER_MISTAKES, ids=lambda value: repr(value)[1:40])
def test_config_rejects_invalid_entries_of_server(check, entry, message, hint):
    line = 3 + entry.count("\n    ") + 1
    done = check(f"[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n    {entry}\n[HOST]\n    DocumentRoot site\n")
    refuses(done, line, message, hint)


# The text that replaces [HOST] on line 3, the line of the error, a part of the message, and a part of the hint

LOCATION = "[HOST]\n    DocumentRoot site\n[LOCATION]\n"
OTHER_MISTAKES = [
    ("[SEVRER]\n    A 1\n", 4, "unknown section [SEVRER]", "did you mean [SERVER]?"),
    ("", 0, "", "add a [HOST] with a DocumentRoot"),
    ("[HOST]\n    DocumentRoot nowhere\n", 5, "cannot serve the folder `", None),
    ("[HOST]\n    DocumentRoot monkey.conf\n", 5, "cannot serve the folder `", None),
    ("[HOST]\n    ServerName x\n", 4, "this [HOST] has no DocumentRoot (and no Redirect)", None),
    ("[HOST]\n    DocumentRoot site\n    ServerName a.*.b\n", 6, "`a.*.b` is not a host name", None),
    ("[HOST]\n    DocumentRoot site\n    ServerName http://a/\n", 6, "`http://a/` is not a host name", None),
    ("[HOST]\n    DocumentRoot site\n    ServerName a b:80\n", 6, "`b:80` is not a host name: expected letters", None),
    ("[HOST]\n    DocumentRoot site\n    ServerName a,b\n", 6, "`a,b` is not a host name: expected letters", None),
    ("[HOST]\n    DocumentRoot site\n    ServerName a.org, b.org\n", 6, "`a.org,` is not a host name: expected letters, digits, `-`, `_` and "
     "dots, or [ADDRESS6], without a port, separated by blanks", None),
    ("[HOST]\n    DocumentRoot site\n    Root /srv\n", 6, "unknown key `Root` in [HOST]", "use `DocumentRoot FOLDER` in [HOST]"),
    ("[HOST]\n    DocumentRoot site\n    server_name a.org\n", 6, "unknown key `server_name` in [HOST]", "did you mean `ServerName`?"),
    ("[HOST]\n    DocumentRoot site\n    proxy_pass http://127.0.0.1:3000;\n", 6, "unknown key `proxy_pass` in [HOST]", "add `Load proxy` to [PLUGINS]"),
    ("[HOST]\n    DocumentRoot site\n    location /a\n", 6, "unknown key `location` in [HOST]", "write `PATTERN HANDLER` in [ROUTES]"),
    ("[HOST]\n    DocumentRoot site\n    ssl_certificate a.pem\n", 6, "unknown key `ssl_certificate`", "use `Certificate FILE KEYFILE`"),
    ("[HOST]\n    DocumentRoot site\n[ROUTES]\n    /* proxy_pass http://127.0.0.1:1\n", 7, "there is no handler `proxy_pass`", "add `Load proxy` to [PLUGINS]"),
    ("[HOST]\n    DocumentRoot site\n[ROUTES]\n    /a return 301 /b\n", 7, "there is no handler `return`", "write `/old  redirect 301 /new`"),
    ("[HOST]\n    DocumentRoot site\n[VirtualHost]\n    ServerName a\n", 6, "unknown section [VirtualHost]", "begin a section [HOST] for each virtual host"),
    ("[HOST]\n    DocumentRoot site\n    gzip on\n", 6, "unknown key `gzip` in [HOST]", "add `Load compress` to [PLUGINS]"),
    ("[HOST]\n    DocumentRoot site\n    access_log a.log\n", 6, "unknown key `access_log`", "use `AccessLog FILE`"),
    ("[HOST]\n    DocumentRoot site\n    client_max_body_size 8m\n", 6, "unknown key `client_max_body_size`", "use `MaxBodySize SIZE`"),
    ("[HOST]\n    DocumentRoot site\n    serveralias b.org\n", 6, "unknown key `serveralias`", "use `ServerName` in [HOST]"),
    ("[HOST]\n    DocumentRoot site\n[LOCATION]\n    Path /x\n    limit_req zone=a\n", 8, "unknown key `limit_req` in [LOCATION]",
     "add `Load limits` to [PLUGINS]"),
    ("[HOST]\n    DocumentRoot site\n    ServerName a..b\n", 6, "`a..b` is not a host name: expected letters", None),
    ("[HOST]\n    DocumentRoot site\n    ServerName ::1\n", 6, "`::1` is not a host name: expected letters", None),
    ("[HOST]\n    DocumentRoot site\n    ServerName [::1]:80\n", 6, "`[::1]:80` is not a host name: expected letters", None),
    ("[HOST]\n    DocumentRoot site\n    ServerName m\u00fcll\n", 6, "is not a host name: expected letters", None),
    ("[HOST]\n    DocumentRoot site\n    Default on\n[HOST]\n    DocumentRoot site\n    ServerName x\n    Default on\n", 10,
     "another [HOST] is already the default: the one in ", None),
    ("[HOST]\n    Redirect example.org\n", 5, "`example.org` is not a URL to redirect to", None),
    ("[HOST]\n    Redirect //example.org\n", 5, "`//example.org` is not a URL to redirect to", None),
    ("[HOST]\n    Redirect http:///x\n", 5, "`http:///x` is not a URL to redirect to", None),
    ("[HOST]\n    Redirect http://a/ b\n", 5, "`http://a/ b` is not a URL to redirect to", None),
    ("[HOST]\n    DocumentRoot site\n[ROUTES]\n    /b redirect 301 x.org\n", 7, "`redirect` expects STATUS URL", None),
    ("[HOST]\n    DocumentRoot site\n[ERROR_PAGES]\n    404 a\n    404 b\n", 8, "there is already a page for 404", None),
    ("[HOST]\n    DocumentRoot site\n[MIMETYPES]\n    x a/b/c\n", 7, "`a/b/c` is not a media type", None),
    ("[HOST]\n    DocumentRoot site\n[MIMETYPES]\n    x a/b c\n", 7, "`a/b c` is not a media type", None),
    ("[HOST]\n    DocumentRoot site\n    Timeout 1\n", 6, "unknown key `Timeout` in [HOST]", "`Timeout` belongs in [SERVER]"),
    ("[HOST]\n    DocumentRoot site\n    Path /x\n", 6, "unknown key `Path` in [HOST]", "`Path` belongs in [LOCATION]"),
    (LOCATION + "    Path /x\n    KeepAliveTimeout 1\n", 8, "unknown key `KeepAliveTimeout` in [LOCATION]",
     "`KeepAliveTimeout` belongs in [SERVER]"),
    (LOCATION + "    Path /x\n    Index x\n", 8, "unknown key `Index` in [LOCATION]", "`Index` belongs in [HOST]"),
    (LOCATION + "    Path /x\n    MinRat 1\n", 8, "unknown key `MinRat` in [LOCATION]", "did you mean `MinRate`?"),
    (LOCATION + "    MaxBodySize 1\n", 6, "[LOCATION] must have `Path`", "name its paths as in [ROUTES]: `Path /upload/*`"),
    (LOCATION + "    Path /x\n    Path /y upload\n", 8, "`upload` is not a pattern: it must begin with /, * or ~", None),
    (LOCATION + "    Path /x ~a(b\n", 7, "regular expression", None),
    (LOCATION + "    Path /x\n    MinRateInterval 1ms\n", 8, "`1ms` is too small", None),
    (LOCATION + "    Path /x\n    AccessLog none/x\n", 8, "cannot open the log `", None),
    (LOCATION + "    Path /x\n    AccessLogFormat xml\n", 8, "expected one of combined, json, short, not `xml`", None),
    ("[LOCATION]\n    Path /x\n[HOST]\n    DocumentRoot site\n", 4, "[LOCATION] belongs below a [HOST]", None),
    ("[HOST]\n    DocumentRoot site\n    Workers 1\n", 6, "unknown key `Workers` in [HOST]", "`Workers` belongs in [SERVER]"),
    ("[HOST]\n    DocumentRoot site\n[HEADERS]\n    Set X y\n", 6, "unknown section [HEADERS]",
     "the plugin `headers` has it: add `Load headers` to [PLUGINS]"),
    ("[HOST]\n    DocumentRoot site;\n", 5, "cannot serve the folder", "a value must not end with `;`"),
    ("[HOST]\n    DocumentRoot site\n    Ranges on # off\n", 6, "expected on or off", "write the comment on a line of its own"),
    ("[HOST]\n    DocumentRoot site\n[ROUTES]\n    /a static # b\n", 7, "`static` expects nothing after it",
     "write the comment on a line of its own"),
    ("[HOST]\n    ServerName a b\n    DocumentRoot site\n[HOST]\n    ServerName B\n    DocumentRoot site\n", 7,
     "another [HOST] already has the ServerName `B`", None),
    ("[HOST]\n    DocumentRoot site\n[HOST]\n    ServerName *.x\n    DocumentRoot site\n[HOST]\n    ServerName *.X.\n"
     "    DocumentRoot site\n", 9, "another [HOST] already has the ServerName `*.X.`", None),
    ("[ROUTES]\n    /* static\n[HOST]\n    DocumentRoot site\n", 4, "[ROUTES] belongs below a [HOST]", None),
    ("[HOST]\n    DocumentRoot site\n[ROUTES]\n    x static\n", 7, "`x` is not a pattern: it must begin with /, * or ~", None),
    ("[HOST]\n    DocumentRoot site\n[ROUTES]\n    /a statci\n", 7, "there is no handler `statci`", "did you mean `static`?"),
    ("[HOST]\n    DocumentRoot site\n[ROUTES]\n    /b redirect 200 x\n", 7, "`redirect` expects STATUS URL", None),
    ("[HOST]\n    DocumentRoot site\n[ROUTES]\n    /b redirect 304 x\n", 7, "`redirect` expects STATUS URL", None),
    ("[HOST]\n    DocumentRoot site\n[ROUTES]\n    /b redirect 301\n", 7, "`redirect` expects STATUS URL", "write, for example, `/old/* redirect 301 /new/`"),
    ("[HOST]\n    DocumentRoot site\n[ROUTES]\n    /c status 304\n", 7, "`status` expects STATUS [TEXT]", "write, for example, `/old/* status 410`"),
    ("[HOST]\n    DocumentRoot site\n[ROUTES]\n    /d static more\n", 7, "`static` expects nothing after it", None),
    ("[HOST]\n    DocumentRoot site\n[ERROR_PAGES]\n    404 ../x\n", 7, "not a file beneath the document root", None),
    ("[HOST]\n    DocumentRoot site\n[ERROR_PAGES]\n    200 x\n", 7, "`200` is neither a status from 400 to 599 nor `4xx` or `5xx`", None),
    ("[HOST]\n    DocumentRoot site\n[CACHE_CONTROL]\n    x y\n", 7, "`x` is not a pattern", None),
    *[(f"[HOST]\n    DocumentRoot site\n[CACHE_CONTROL]\n    {line}\n", 7, says, hint) for line, says, hint in [
        ("*.css *.js", "a directive is missing: expected `PATTERN... DIRECTIVE, ...`", None),
        ("*.css *.js ,", "a directive is missing", None),
        ("*.css max_age=60", "`max_age` is not a directive of Cache-Control", "did you mean `max-age`?"),
        ("*.css *.js publik, max-age=60", "`publik` is not a directive of Cache-Control", "did you mean `public`?"),
        ("*.css public max-age=60", "`public max-age=60` is more than one directive", "write a comma between directives"),
        ("*.css max-age=1h", "`max-age` takes a number of seconds: `max-age=3600`", None),
        ("*.css max-age", "`max-age` takes a number of seconds: `max-age=3600`", None),
        ("*.css no-store=1", "`no-store` takes no value", None),
        ("*.css private=Set-Cookie", "`private` takes header names in quotes", None),
        ("*.css max-age=1, MAX-AGE=2", "`max-age` appears twice", None),
        ("*.css x.js max-age=1", "`x.js max-age` is not a directive of Cache-Control", None)]],
    ("[HOST]\n    DocumentRoot site\n[HANDLERS]\n    Match ( static\n", 7, "`(` is not a regular expression", None),
    ("[HOST]\n    DocumentRoot site\n[HANDLERS]\n    Macth x static\n", 7, "expected `Match REGEX HANDLER", None),
    ("[HOST]\n    DocumentRoot site\n[HANDLERS]\n    Match x\n", 7, "expected `Match REGEX HANDLER", None),
    ("[HOST]\n    DocumentRoot site\n[CGI]\n    MaxRunTime 1\n", 6, "unknown section [CGI]", "the plugin `cgi` has it: add `Load cgi` to [PLUGINS]"),
    ("[HOST]\n    DocumentRoot site\n[ROUTES]\n    /x cgi\n", 7, "there is no handler `cgi`", "the plugin `cgi` has it: add `Load cgi` to [PLUGINS]"),
    ("[PLUGINS]\n    Load nosuch\n[HOST]\n    DocumentRoot site\n", 5, "cannot load the plugin `nosuch`: it is not built in, and monkey-nosuch.so is not in /", None),
    ("[PLUGINS]\n    Load ./monkey-nosuch.so\n[HOST]\n    DocumentRoot site\n", 5, "cannot load the plugin `./monkey-nosuch.so`: No such file", None),
    ("[PLUGINS]\n    Laod cgi\n[HOST]\n    DocumentRoot site\n", 5, "unknown key `Laod` in [PLUGINS]: expected `Load NAME|FILE`", None),
    ("[PLUGINS]\n    Load\n[HOST]\n    DocumentRoot site\n", 5, "`Load` has no value: expected Load NAME|FILE", None),
    ("[HOST]\n    DocumentRoot site\n[MIMETYPES]\n    x noslash\n", 7, "`noslash` is not a media type", None),
    ("[SERVER]\n    HeaderTimeout 1\n[HOST]\n    DocumentRoot site\n", 4, "", None),
    ("Stray\n", 4, "expected `[SECTION]`, `@INCLUDE`, `@SET`, a comment or an indented entry", None),
    ("[HOST\n    DocumentRoot site\n", 4, "a section name must be closed by `]`", None),
    ("[HOST] x\n    DocumentRoot site\n", 4, "", None),
    ("@INCLUDE nothere.conf\n[HOST]\n    DocumentRoot site\n", 4, "nothere.conf` cannot be read: No such file", None),
    ("@INCLUDE monkey.conf\n[HOST]\n    DocumentRoot site\n", 4, "", None),
    ("@INCLUED x\n[HOST]\n    DocumentRoot site\n", 4, "unknown directive `@INCLUED`", "did you mean `@INCLUDE`?"),
    ("@SET 1x y\n[HOST]\n    DocumentRoot site\n", 4, "expected `@SET NAME value`", None),
]


@pytest.mark.parametrize("text, line, message, hint", OTHER_MISTAKES, ids=lambda value: repr(value)[1:50])
def test_config_rejects_invalid_entries_of_other_sections(check, text, line, message, hint):
    done = check("[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n" + text)
    if line:
        refuses(done, line, message, hint)
    else:
        assert done.code == CONFIGURATION and f"hint: {hint}" in done.err


def test_config_reports_every_error_in_one_run(check):
    text = "[SERVER]\n    Listen 127.0.0.1:0\n"
    entries = ["Wrokers 2", "HeaderTimeout 15x", "KeepAlive maybe", "OverCapacity Resits", "MaxHeaderSize 10", "User nobody-at-all"]
    text += "".join(f"    {entry}\n" for entry in entries)
    text += "[HOST]\n    DocumentRoot nowhere\n[ROUTES]\n    /a statci\n[SEVRER]\n@INCLUED x\n"
    done = check(text)
    lines = sorted(int(line) for line in re.findall(r"monkey\.conf:(\d+):\d+: error:", done.err))
    assert lines == [3, 4, 5, 6, 7, 8, 10, 12, 13, 14], done.err
    for line, entry in enumerate(entries, 3):  # each message quotes the entry verbatim, with a marker below it
        assert re.search(rf"monkey\.conf:{line}:\d+: .+\n +{entry}\n +\^\n", done.err)


def test_config_error_marks_the_column(check):
    done = check("[SERVER]\n    KeepAlive     maybe\n[HOST]\n    DocumentRoot site\n")
    assert re.search(r":2:19: error: .+\n        KeepAlive     maybe\n {22}\^\n", done.err), done.err


def test_config_error_in_included_file_names_that_file(check, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/part.conf").write_text("[HOST]\n    DocumentRoot ../site\n    Nonsense 1\n")
    done = check("[SERVER]\n    Listen 127.0.0.1:0\n@INCLUDE sub/*.conf\n")
    assert done.code == CONFIGURATION
    assert re.search(r"/sub/part\.conf:3:5: error: unknown key `Nonsense` in \[HOST\]", done.err), done.err


# Invalid files

@pytest.mark.parametrize("text", [b"", b"\n", b"\n\n  \n", b"# nothing\n", b"\xef\xbb\xbf"], ids=repr)
def test_config_without_host_serves_nothing(check, text):
    done = check(text)
    assert done.code == CONFIGURATION and "there is no [HOST]: nothing to serve" in done.err


@pytest.mark.parametrize("junk", [b"\0", b"[SERVER]\n    Time\0out 1\n", b"\x7fELF\x02\x01\x01\0\0\0\n", bytes(range(256)) * 10,
                                  b"[HOST]\n    DocumentRoot \xff\xfe\n", b"[SERVER]\n    HeaderTimeout 1\x1b[2J\n"],
                         ids=["NUL", "NUL in a key", "program", "every byte", "no UTF-8", "escape"])
def test_config_binary_file_is_rejected_without_control_characters(check, junk):
    done = check(junk)
    assert done.code == CONFIGURATION and re.search(r"monkey\.conf:\d+:\d+: error: ", done.err)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", done.err), repr(done.err)


def test_config_huge_file_is_rejected(check):
    done = check(b"# " + b"x" * 1000 + b"\n" * (2 << 20))
    assert done.code == CONFIGURATION and "monkey.conf" in done.err and len(done.err) < 10000


def test_config_with_thousands_of_errors_prints_a_limited_number(check):
    done = check("[SERVER]\n" + "    Nonsense 1\n" * 5000)
    assert done.code == CONFIGURATION
    assert "unknown key `Nonsense`" in done.err and len(done.err) < 1 << 16


def test_config_line_that_is_too_long_is_rejected(check):
    done = check("[SERVER]\n    UserDir " + "x" * 70000 + "\n[HOST]\n    DocumentRoot site\n")
    refuses(done, 2, "", None)


def test_config_folder_without_file_is_an_error(run, tmp_path):
    (tmp_path / "empty").mkdir()
    done = run("-t", "-c", tmp_path / "empty")
    assert done.code == CONFIGURATION and "/empty/monkey.conf` cannot be read: No such file" in done.err


def test_config_symlink_loop_is_an_error(run, tmp_path):
    os.symlink("monkey.conf", tmp_path / "monkey.conf")
    done = run("-t", "-c", tmp_path / "monkey.conf")
    assert done.code == CONFIGURATION and "Too many levels of symbolic links" in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to a user that may not read")
def test_config_file_without_read_permission_is_an_error(run, tmp_path):
    (tmp_path / "monkey.conf").write_text(GOOD)
    (tmp_path / "monkey.conf").chmod(0o600)
    with open(PROGRAM, "rb") as program, open(tmp_path / "monkey.conf", "rb") as conf:  # other users cannot enter their folders
        path = f"/proc/self/fd/{conf.fileno()}"
        done = run("-t", "-c", path, user=65534, group=65534, extra_groups=[], folder="/",
                   pass_fds=[program.fileno(), conf.fileno()], executable=f"/proc/self/fd/{program.fileno()}")
    assert done.code == CONFIGURATION and f"`{path}` cannot be read: Permission denied" in done.err, done


@pytest.mark.parametrize("deep", [1, 15, 16, 40])
def test_config_includes_nest_up_to_a_limit(check, tmp_path, deep):
    for i in range(deep):
        (tmp_path / f"{i}.conf").write_text(f"@INCLUDE {i + 1}.conf\n")
    (tmp_path / f"{deep}.conf").write_text("[HOST]\n    DocumentRoot site\n")
    done = check("[SERVER]\n    Listen 127.0.0.1:0\n@INCLUDE 0.conf\n")
    assert done.code == (0 if deep < 15 else CONFIGURATION), done.err


def test_config_include_cycle_is_an_error(check, tmp_path):
    (tmp_path / "a.conf").write_text("@INCLUDE b.conf\n")
    (tmp_path / "b.conf").write_text("@INCLUDE a.conf\n")
    done = check(GOOD + "@INCLUDE a.conf\n")
    assert done.code == CONFIGURATION and re.search(r"b\.conf:1:\d+: error: ", done.err), done.err


# Valid files

def test_config_max_uri_size_may_equal_max_header_size(check):
    assert check(GOOD.replace("[HOST]", "    MaxHeaderSize 4K\n    MaxURISize 4K\n[HOST]")).code == 0
    assert check(GOOD.replace("[HOST]", "    MaxHeaderSize 4K\n[HOST]")).code == 0, "even where the default is larger"


@pytest.mark.parametrize("names", ["a", "a.b.", "A-1_x.example", "*.example.org x", "127.0.0.1", "[::1]", "xn--mll-hoa"])
def test_config_accepts_valid_server_names(check, names):
    done = check(GOOD + f"    ServerName {names}\n")
    assert done.code == 0 and "warning" not in done.err, done


def test_config_warns_of_unreachable_host(check):
    done = check(GOOD + "[HOST]\n    DocumentRoot site\n")
    assert done.code == 0
    assert re.search(r"monkey\.conf:6:1: warning: no request can reach this \[HOST\]: it has no ServerName", done.err), done.err
    done = check(GOOD + "[HOST]\n    DocumentRoot site\n    Default on\n")
    assert done.code == 0 and re.search(r"monkey\.conf:4:1: warning: no request can reach", done.err), done.err
    done = check(GOOD + "[HOST]\n    DocumentRoot site\n    ServerName x\n")
    assert done.code == 0 and "no request can reach" not in done.err, done.err


def test_config_includes_sites_in_order_of_their_names(monkey, tmp_path):
    sites = tmp_path / "sites"
    for name in ("b", "a", ".hidden", "c~"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "who").write_text(name)
        sites.mkdir(exist_ok=True)
        ending = "" if name.endswith("~") else ".conf"
        (sites / (name + ending)).write_text(f"[HOST]\n    ServerName {name.strip('.~')}.example\n    DocumentRoot ../{name}\n")
    server = monkey(config="[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n@INCLUDE sites/*\n")
    for name in ("a", "b"):
        assert server.get("/who", fields=[("Host", f"{name}.example")]).text == name
    for name in ("hidden", "c", "other"):
        assert server.get("/who", fields=[("Host", f"{name}.example")]).text == "a", "the first host is the default"


def test_config_variables_are_expanded(monkey, tmp_path, site):
    site.add("one/who", "one")
    site.add("two/who", "two")
    (tmp_path / "more.conf").write_text("[HOST]\n    ServerName two.${DOMAIN}\n    DocumentRoot ${ROOT}/two\n")
    server = monkey(config="""
@SET ROOT site
@SET DOMAIN example
[SERVER]
    Listen ${ADDRESS:-127.0.0.1}:${PORT:-0}
    Workers ${WORKERS}
[HOST]
    ServerName one.${DOMAIN}
    DocumentRoot ${ROOT}/one
@INCLUDE ${WHICH}.conf
""", environment={"WORKERS": "1", "WHICH": "more", "ROOT": "/nowhere", "ADDRESS": ""})
    for name in ("one", "two"):
        assert server.get("/who", fields=[("Host", f"{name}.example")]).text == name


def test_config_undefined_variable_is_an_error(check):
    """A variable that is not set, or whose value contains a newline, is an error."""
    text = GOOD.replace("site", "${FOLDER}")
    assert check(text, environment={"FOLDER": "site"}).code == 0
    refuses(check(text), 5, "`FOLDER` is not set")
    refuses(check(text, environment={"FOLDER": "si\nte"}), 5, "FOLDER")


@pytest.mark.parametrize("secret", ["s3cret", "much longer secret", "back\\slash", "two\\\\slashes", "a", "{braces}"])
def test_printed_configuration_has_references_instead_of_secrets(run, tmp_path, secret):
    (tmp_path / "site").mkdir()
    (tmp_path / "monkey.conf").write_text("""[SERVER]
    Listen 127.0.0.1:${PORT}
@SET COPY prefix-${LONG}
[PLUGINS]
    Load headers
[HOST]
    ServerName literal.example
    DocumentRoot site
[REQUEST_HEADERS]
    Set Authorization "Bearer ${TOKEN}"
    Set X-Tenant ${TOKEN:-none}
    Set X-Copy ${COPY}
    Set X-Literal literal
""")
    environment = {"TOKEN": secret, "PORT": "0", "LONG": "a-long-secret", "UNUSED": "literal"}
    done = run("-T", "-c", tmp_path / "monkey.conf", environment=environment)
    assert done.code == 0, done.err
    assert "Bearer ${TOKEN}" in done.out and "X-Tenant ${TOKEN}" in done.out and "127.0.0.1:${PORT}" in done.out and "prefix-${LONG}" in done.out
    assert "literal.example" in done.out and "X-Literal literal" in done.out and "a-long-secret" not in done.out
    if len(secret) > 1:
        assert secret not in done.out.replace("${TOKEN}", "")
    (tmp_path / "again.conf").write_text(done.out)
    again = run("-T", "-c", tmp_path / "again.conf", environment=environment)
    assert again.out == done.out, again.err


@pytest.mark.parametrize("value, printed", [
    ('"longsecret1"', "longsecret1"), ("longsecret1 ", "longsecret1"), ("  longsecret1", "longsecret1"),
    ('"long secret\\\\"', "long secret"), ("a\\longsecret\\", "longsecret"), ('"$${a\\"longsecret"', "longsecret"), ("pw7", "pw7")])
def test_secret_is_printed_as_reference_although_parsing_changes_it(run, tmp_path, value, printed):
    (tmp_path / "site").mkdir()
    (tmp_path / "monkey.conf").write_text("""@SET COPY ${TOKEN}
@SET COPY_OF_COPY ${COPY}
@SET COPY_OF_COPY ${COPY_OF_COPY}
[PLUGINS]
    Load headers
[HOST]
    DocumentRoot site
[REQUEST_HEADERS]
    Set X-Copy ${COPY}
    Set X-Third ${COPY_OF_COPY}
""")
    environment = {"TOKEN": value}
    done = run("-T", "-c", tmp_path / "monkey.conf", environment=environment)
    assert done.code == 0, done.err
    assert printed not in done.out and done.out.count("${TOKEN}") == 2, done.out
    (tmp_path / "again.conf").write_text(done.out)
    again = run("-T", "-c", tmp_path / "again.conf", environment=environment)
    assert again.out == done.out, again.err


@pytest.mark.parametrize("value", ['"secret/type"', 'secret/type; a="${${"', 'secret/type; a="$${$$${"', "  secret/type  "])
def test_secret_is_printed_as_reference_without_quotes_and_escapes(run, tmp_path, value):
    (tmp_path / "site").mkdir()
    (tmp_path / "monkey.conf").write_text("[SERVER]\n    DefaultMimeType ${TYPE}\n[HOST]\n    DocumentRoot site\n")
    environment = {"TYPE": value}
    done = run("-T", "-c", tmp_path / "monkey.conf", environment=environment)
    assert "${TYPE}\n" in done.out and "secret/" not in done.out, done.err
    (tmp_path / "again.conf").write_text(done.out)
    again = run("-T", "-c", tmp_path / "again.conf", environment=environment)
    assert again.out == done.out, again.err


@pytest.mark.parametrize("value", [" ".join(f"part{i}.secret" for i in range(30)), "one.secret two.secret", '"one.secret"  two.secret'])
def test_secret_list_of_words_is_printed_as_reference_over_several_lines(run, tmp_path, value):
    (tmp_path / "site").mkdir()
    plain = " ".join(f"plain{i}.example" for i in range(4))
    (tmp_path / "monkey.conf").write_text(f"[HOST]\n    ServerName {plain} ${{NAMES}} last.example\n    DocumentRoot site\n"
                                          "[HOST]\n    ServerName other.example\n    DocumentRoot site\n")
    environment = {"NAMES": value}
    done = run("-T", "-c", tmp_path / "monkey.conf", environment=environment)
    lines = "\n".join(line for line in done.out.splitlines() if "ServerName" in line)
    assert done.code == 0 and "secret" not in lines and lines.count("${NAMES}") == 1, done.out
    assert all(name in done.out for name in (*plain.split(), "last.example", "other.example"))
    (tmp_path / "again.conf").write_text(done.out)
    again = run("-T", "-c", tmp_path / "again.conf", environment=environment)
    assert again.out == done.out, again.err


@pytest.mark.parametrize("plugin, section, alias, key", [("", "SERVER", "Indexfile", "Index"), ("auth", "AUTH", "Title", "Realm")])
def test_short_secret_under_an_alias_is_printed_as_reference(run, tmp_path, plugin, section, alias, key):
    (tmp_path / "site").mkdir()
    (tmp_path / "users").write_text("ana:{SHA1}hvfkN/qlp/zhXR3cuerq6jd2Z7g=\n")
    (tmp_path / "users").chmod(0o600)
    load = f"[PLUGINS]\n    Load {plugin}\n" if plugin else ""
    more = "    Location /\n    UserFile users\n" if plugin else ""
    host = "[HOST]\n    DocumentRoot site\n"
    body = f"[{section}]\n    {alias} ${{WORD}}\n{more}"
    (tmp_path / "monkey.conf").write_text(load + (host + body if plugin else body + host))
    done = run("-T", "-c", tmp_path / "monkey.conf", environment={"WORD": "pw7"})
    assert done.code == 0, done.err
    assert "pw7" not in done.out and any(line.split()[:1] == [key] and "${WORD}" in line for line in done.out.splitlines())


def test_secret_in_quotes_may_end_in_a_backslash(run, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "monkey.conf").write_text("""[PLUGINS]
    Load headers
[HOST]
    DocumentRoot site
[REQUEST_HEADERS]
    Set X-Key "a b ${TOKEN}\\"
""")
    environment = {"TOKEN": "long\\secret\\"}
    done = run("-T", "-c", tmp_path / "monkey.conf", environment=environment)
    assert done.code == 0 and "long" not in done.out, done.err
    (tmp_path / "again.conf").write_text(done.out)
    again = run("-T", "-c", tmp_path / "again.conf", environment=environment)
    assert again.out == done.out, again.err


@pytest.mark.parametrize("text", [
    GOOD.replace("\n", "\r\n"),
    GOOD.replace("    ", "\t"),
    GOOD.replace("    ", " "),
    "\ufeff" + GOOD,
    GOOD.rstrip("\n"),
    GOOD.lower().replace("documentroot", "dOCUMENTrOOT"),
    "# comment\n\n" + GOOD + "    # comment\n    ----\n",
    GOOD.replace("site", '"site"'),
], ids=["CRLF", "tabs", "one space", "byte order mark", "no last line end", "case", "comments", "quotes"])
def test_config_accepts_alternative_spellings(check, text):
    done = check(text)
    assert (done.code, done.err) == (0, "")


def test_config_default_host_is_the_first_or_the_marked_one(monkey, site):
    for name in ("one", "two"):
        site.add(f"{name}/who", name)
    hosts = "".join(f"[HOST]\n    ServerName {name}\n    DocumentRoot site/{name}\n" for name in ("one", "two"))
    listen = "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n"
    assert monkey(config=listen + hosts).get("/who", fields=[("Host", "other")]).text == "one"
    assert monkey(config=listen + hosts + "    Default on\n").get("/who", fields=[("Host", "other")]).text == "two"


def test_config_print_contains_every_section(run, tmp_path, site):
    """The printed configuration quotes every value, and has the same meaning in another folder."""
    (tmp_path / "conf").mkdir()
    site.add("404.html", "none")
    (tmp_path / "conf/monkey.conf").write_text(r'''
[SERVER]
    Listen        127.0.0.1:0
    Workers       3
    User          root
    PidFile       monkey.pid
    AccessLog     access.log
    ErrorLog      error.log
    Index     "my index.html" index.html
    UserDir       "  strange \" folder "
    MinRate       1234
    HeaderTimeout       1500ms
    MaxBodySize   unlimited
    MaxRequestSize 32
    DefaultMimeType "a/b; c=\"$${D}\""
[MIMETYPES]
    x  a/x
[PLUGINS]
    Load dirlisting
[HOST]
    ServerName    one.example *.one.example
    DocumentRoot  ../site
    FollowSymlinks       owner
[ROUTES]
    /a  redirect 301 http://x/$${y}
    /*  static
[ERROR_PAGES]
    404 /404.html
[CACHE_CONTROL]
    *.js  *.mjs max-age=60, private="x, y"
[HANDLERS]
    Match /c.*\.x status 403
[DIRLISTING]
    Theme plain
[HOST]
    Redirect      http://one.example
''')
    first = run("-T", "-c", "conf/monkey.conf")
    assert first.code == 0
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/again.conf").write_text(first.out)
    again = run("-T", "-c", "again.conf", folder=tmp_path / "elsewhere")
    assert (again.code, again.out) == (0, first.out), again.err
    for name in ("monkey.pid", "access.log", "error.log"):
        assert re.search(rf"^    \w+ +{tmp_path}/conf/{re.escape(name)}$", first.out, re.MULTILINE), name
    for line in ("HeaderTimeout +1500ms", "MaxRequestSize +32K?", "MinRate +1234", "FollowSymlinks +owner", "MaxBodySize +unlimited",
                 "Redirect +http://one.example", "Workers +3", r'Index +"my index.html" index.html',
                 r"Match /c\.\*\\\.x status 403", "404 +/404.html", r'\*\.js +\*\.mjs max-age=60, private="x, y"', "x a/x",
                 r"/a +redirect 301 http://x/\$\$\{y\}", "Load dirlisting", "Theme +plain"):
        assert re.search(rf"^    {line}$", first.out, re.MULTILINE), (line, first.out)


@pytest.mark.parametrize("text, server, line", [
    ("server {\n    listen 80;\n    root /srv;\n    location / {\n        try_files $uri =404;\n    }\n}\n", "nginx", 1),
    ("# by hand\nlisten 80;\n", "nginx", 2),
    ("<VirtualHost *:80>\n    ServerName x\n    DocumentRoot /srv\n</VirtualHost>\n", "Apache", 1),
    ("ServerRoot \"/etc/httpd\"\nListen 80\n", "Apache", 1),
    ("example.org {\n\troot * /srv\n\tfile_server\n}\n", "Caddy", 1),
    (":8080\nfile_server\n", "Caddy", 2),
    ("# /etc/haproxy\nglobal\n    daemon\n\nfrontend www\n    bind *:80\n", "HAProxy", 2),
    ("backend app\n    server a 127.0.0.1:80 check\n", "HAProxy", 1),
    ("[SERVER]\n    Listen 0\n[HOST]\n    DocumentRoot .\n    location /a {\n        deny all;\n    }\n", "nginx", 5)])
def test_config_of_another_server_is_a_single_error(run, tmp_path, text, server, line):
    (tmp_path / "it.conf").write_text(text)
    done = run("-t", "-c", "it.conf")
    assert done.code == 3 and done.err.count("error:") == 1, done.err
    assert f"it.conf:{line}: error: this is a configuration for {server}, not for Monkey" in done.err
    assert "hint: " in done.err and "[HOST]" in done.err


def test_config_warns_of_comment_inside_value(run, tmp_path):
    (tmp_path / "it.conf").write_text("[SERVER]\n    Listen 0\n[HOST]\n    DocumentRoot .\n"
                                      "    Index index.html # main\n    Fallback \"a # b;\"\n")
    done = run("-t", "-c", "it.conf")
    assert done.code == 0 and done.err.count("warning:") == 1, done.err
    assert "it.conf:5:22: warning: `# main` is part of the value" in done.err
    assert "hint: write the comment on a line of its own" in done.err


def test_shipped_config_loads(run):
    done = run("-t", "-c", ROOT / "conf")
    assert (done.code, done.err) == (0, "")
    assert run("-t", "-c", ROOT / "conf" / "monkey.conf").code == 0


def test_shipped_config_serves_welcome_site(monkey):
    server = monkey(args=["-c", ROOT / "conf", "-p", "127.0.0.1:0", "-w", "1"])
    assert server.get("/").body == (ROOT / "site" / "index.html").read_bytes()
    missing = server.get("/none")
    assert missing.status == 404 and missing.body == (ROOT / "site" / "404.html").read_bytes()


def test_config_check_leaves_files_of_running_server_alone(run, tmp_path, site, monkey):
    """A check while the server runs changes neither the server's PID file nor its socket and logs."""
    text = GOOD.replace("127.0.0.1:0", f"unix:{tmp_path}/socket").replace("Workers 1", "Workers 1\n    PidFile pid\n    AccessLog access.log")
    server = monkey(config=text)
    wait_until((tmp_path / "pid").exists, "the PID file")
    server.get("/")
    assert run("-t", "-c", "monkey.conf").code == 0
    assert (tmp_path / "pid").read_text() == f"{server.pid}\n"
    assert server.get("/").status == 403
    server.stop()
    assert len((tmp_path / "access.log").read_text().splitlines()) == 2


# Valid, but probably unintended

HABITS = [
    ("/ proxy http://127.0.0.1:9", "`/` matches only this path, not the paths below it", "did you mean `/*`?"),
    ("/api/ proxy http://127.0.0.1:9\n    /* static", "`/api/` matches only this path", "did you mean `/api/*`?"),
    ("/php/ fastcgi unix:/run/php.sock\n    /* static", "`/php/` matches only this path", "did you mean `/php/*`?"),
    ("/app/ uwsgi 127.0.0.1:9\n    /* static", "`/app/` matches only this path", "did you mean `/app/*`?"),
    ("/health status 200 ok", "no route of this host leads to its files", "add `/* static` as its last route"),
    ("/old redirect 301 /new", "no route of this host leads to its files", "add `/* static` as its last route"),
    ("/api/* proxy http://127.0.0.1:9", "no route of this host leads to its files", "add `/* static` as its last route"),
]
PLUGINS = "[PLUGINS]\n    Load proxy\n    Load fastcgi\n    Load uwsgi\n"


@pytest.mark.parametrize("routes, message, hint", HABITS)
def test_config_warns_of_habits_from_other_servers(check, routes, message, hint):
    done = check(PLUGINS + GOOD + "[ROUTES]\n    " + routes + "\n")
    assert done.code == 0 and message in done.err and hint in done.err, done


UNREACHED = "the page `/healthz` of the plugin `metrics` is never reached: this route handles it"
PAGES = "[PLUGINS]\n    Load metrics\n    Load proxy\n[METRICS]\n    Health /healthz\n"


@pytest.mark.parametrize("route", ["/* proxy http://127.0.0.1:9", "/health* proxy http://127.0.0.1:9", "/* redirect 301 https://example.org/",
                                   "/healthz status 503 closed"])
def test_config_warns_of_page_of_plugin_that_is_never_reached(check, route):
    done = check(PAGES + GOOD + f"[ROUTES]\n    /a status 200 ok\n    {route}\n")
    assert done.code == 0 and re.search(rf"monkey\.conf:13:5: warning: {re.escape(UNREACHED)}", done.err), done
    assert done.err.count("never reached") == 1 and "add a route above it: `/healthz metrics ...`" in done.err


@pytest.mark.parametrize("routes", [
    "[ROUTES]\n    /healthz metrics health\n    /* proxy http://127.0.0.1:9\n",
    "[ROUTES]\n    When method POST\n    /* proxy http://127.0.0.1:9\n    /* static\n",
    "[ROUTES]\n    /api/* proxy http://127.0.0.1:9\n    /* static\n",
    "[ROUTES]\n    /* proxy http://127.0.0.1:9\n[HOST]\n    ServerName status\n    DocumentRoot .\n",
    "",
])
def test_config_does_not_warn_of_page_of_plugin_that_is_reached(check, routes):
    done = check(PAGES + GOOD + routes)
    assert done.code == 0 and "never reached" not in done.err, done


def test_config_with_invalid_route_does_not_warn_of_unserved_files(check):
    done = check(PLUGINS + GOOD + "[ROUTES]\n    /health status 200 ok\n    /* statik\n")
    assert done.code == 3 and "there is no handler `statik`" in done.err and "leads to its files" not in done.err, done


@pytest.mark.parametrize("routes", [
    "/* proxy http://127.0.0.1:9",
    "/ proxy http://127.0.0.1:9\n    /* proxy http://127.0.0.1:8",
    "/ proxy http://127.0.0.1:9\n    ~ ^/. proxy http://127.0.0.1:8\n    /* static",
    "/graphql proxy http://127.0.0.1:9\n    /* static",
    "/docs/ redirect 301 /docs/index.html\n    /* static",
    "*.php fastcgi unix:/run/php.sock",
    "/health status 200 ok\n    *.html static",
    "/* status 503 closed",
])
def test_config_does_not_warn_of_deliberate_routes(check, routes):
    done = check(PLUGINS + GOOD + "[ROUTES]\n    " + routes + "\n")
    assert (done.code, done.err) == (0, ""), done


def test_config_host_without_static_routes_needs_no_folder(check, monkey):
    text = PLUGINS + GOOD.replace("    DocumentRoot site\n", "    ServerName x\n") + "[ROUTES]\n    /health status 200 ok\n"
    assert (check(text).code, check(text).err) == (0, "")
    for route in ("/* static", "*.php fastcgi unix:/run/php.sock"):
        refuses(check(text + f"    {route}\n"), 8, "this [HOST] has no DocumentRoot (and no Redirect)")
    server = monkey(root=None, sections="[HOST]\n    ServerName x\n[ROUTES]\n    /health status 200 ok\n")
    assert server.get("/health").text == "ok" and server.get("/other").status == 404


# Large configurations

def test_config_with_thousands_of_files_and_routes_loads(check, tmp_path):
    (tmp_path / "sites").mkdir()
    for i in range(1500):
        (tmp_path / "sites" / f"{i}.conf").write_text(f"[HOST]\n    ServerName h{i}\n    DocumentRoot ../site\n")
    routes = "".join(f"    /old/{i} redirect 301 /new/{i}\n" for i in range(40000))
    assert len(routes) > 1 << 20
    done = check("@INCLUDE sites/*.conf\n" + GOOD + "[ROUTES]\n" + routes + "    /* static\n")
    assert done.code == 0, done.err[:500]
    assert "1501 hosts" in done.out


def test_config_line_may_have_64_kilobytes(check):
    names = " ".join(f"name-{i}.example" for i in range(3000))
    assert 40_000 < len(names) < 65_000
    assert check(GOOD + f"    ServerName {names}\n").code == 0


# Sections in several pieces

def test_config_sections_of_a_host_are_merged(monkey, site, tmp_path):
    site.add("c", "text")
    (tmp_path / "more.conf").write_text("[REWRITE]\n    Rewrite glob /b /c\n[SECURITY]\n    Deny /secret\n[HEADERS]\n    Set X-B 2\n")
    server = monkey(plugins=["rewrite", "security", "headers"], sections="""
[REWRITE]
    Rewrite glob /a /b
[HEADERS]
    Set X-A 1
[SECURITY]
    Deny /hidden
@INCLUDE more.conf
[REWRITE]
    Rewrite glob /d /c
[HOST]
    ServerName other
    DocumentRoot site
""")
    for path in ("/b", "/d", "/c"):
        reply = server.get(path)
        assert reply.text == "text" and reply["X-A"] == "1" and reply["X-B"] == "2"
    assert server.get("/secret").status == server.get("/hidden").status == 403
    assert server.get("/d", fields=[("Host", "other")]).status == 404
    assert server.get("/secret", fields=[("Host", "other")]).status == 404


def test_config_key_set_in_two_pieces_is_an_error(check):
    done = check("[PLUGINS]\n    Load security\n" + GOOD + "[SECURITY]\n    Status 404\n[SECURITY]\n    Status 403\n")
    assert done.code == CONFIGURATION and "`Status` is already set on line 9" in done.err


def test_config_print_merges_pieces_of_a_section(check, run, tmp_path):
    assert check("[PLUGINS]\n    Load rewrite\n" + GOOD + "[REWRITE]\n    Rewrite glob /a /b\n[REWRITE]\n    Rewrite glob /c /d\n").code == 0
    printed = run("-T", "-c", tmp_path / "monkey.conf").out
    assert printed.count("[REWRITE]") == 1 and "/c" in printed


@pytest.mark.parametrize("problem", ["missing", "folder", "denied"])
def test_config_unreadable_file_is_the_only_error(run, tmp_path, problem):
    """If the main file cannot be read, the other files of the configuration are not parsed."""
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites" / "broken").write_text("[HOST]\n    NONSENSE x\n")
    path = tmp_path / "monkey.conf"
    if problem == "folder":
        path = tmp_path
    elif problem == "denied":
        if os.geteuid() == 0:
            path.symlink_to("/proc/1/mem")
        else:
            path.write_text("")
            path.chmod(0)
    done = run("-t", "-c", path)
    assert done.code == CONFIGURATION
    assert done.err.count("error:") == 1 and "NONSENSE" not in done.err, done.err
