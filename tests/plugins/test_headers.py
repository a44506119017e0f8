# SPDX-License-Identifier: Apache-2.0
"""Response headers: rules, Expires, CORS, security headers, and headers that no rule may change."""
import base64
import hashlib
import re
import time
from email.utils import parsedate_to_datetime

import pytest

from monkey import ROOT


def with_headers(monkey, rules, plugins=("headers",), more="", **keys):
    lines = "".join(f"    {line.strip()}\n" for line in rules.strip().splitlines())
    return monkey(plugins=plugins, sections=f"[HEADERS]\n{lines}{more}", **keys)


@pytest.fixture
def files(site):
    site.add("index.html", "<p>hello")
    site.add("style.css", "p{}")
    site.add("logo.svg", "<svg/>")
    site.add("app/data.json", "{}")
    site.add("a b.txt", "text")
    return site


# ---- Rules ----

def test_headers_add_set_and_remove_apply(monkey, files):
    server = with_headers(monkey, """
        Add X-One 1
        Add X-One 2
        Set X-Two first
        Set X-Two "second, with \\"quotes\\" and \\\\"
        Set X-Three  all of   the line; even=this
        Set X-Four ""
        Remove ETag
        Remove X-Never
        Set last-modified never
    """)
    reply = server.get("/")
    assert reply.all("X-One") == ["1", "2"]
    assert reply["X-Two"] == 'second, with "quotes" and \\'
    assert reply["X-Three"] == "all of   the line; even=this"
    assert reply["X-Four"] == ""
    assert "ETag" not in reply
    assert reply["Last-Modified"] == "never"
    assert reply.text == "<p>hello" and reply["Content-Length"] == "8"


def test_headers_rules_apply_in_order(monkey, files):
    server = with_headers(monkey, "Add X-A 1\nRemove X-A\nAdd X-A 2\nSet X-B 1\nAdd X-B 2\nSet X-C 1\nRemove x-c")
    reply = server.get("/")
    assert reply.all("X-A") == ["2"] and reply.all("X-B") == ["1", "2"] and "X-C" not in reply


@pytest.mark.parametrize("condition, path", [
    ("/style.css", ["/style.css"]), ("*.css", ["/style.css"]), ("/app/*", ["/app", "/app/data.json"]),
    ("/", ["/"]), ("/*", ["/", "/style.css", "/logo.svg", "/app/data.json", "/a%20b.txt", "/none", "/app"]),
    ('"/a b.txt"', ["/a%20b.txt"]), ("type:text/css", ["/style.css"]), ("type:TEXT/CSS", ["/style.css"]),
    ("type:text/*", ["/", "/style.css", "/a%20b.txt", "/none", "/app"]), ("type:text/cs", []), ("type:tex/*", []),
    ("type:image/svg+xml", ["/logo.svg"]), ("status:404", ["/none"]), ("status:4xx", ["/none"]),
    ("status:3xx", ["/app"]), ("status:301", ["/app"]), ("status:5XX", []),
    ("status:2xx", ["/", "/style.css", "/logo.svg", "/app/data.json", "/a%20b.txt"]),
    ("type:text/* status:2xx *.css", ["/style.css"]), ("status:404 /app/*", []), ("status:200 /app/*", ["/app/data.json"]),
])
def test_headers_conditions_select_responses(monkey, files, condition, path):
    server = with_headers(monkey, f"Set {condition} X-Here yes")
    for target in ("/", "/style.css", "/logo.svg", "/app/data.json", "/a%20b.txt", "/none", "/app"):
        assert ("X-Here" in server.get(target)) == (target in path), target


def test_headers_apply_to_error_responses(monkey, files):
    server = with_headers(monkey, "Set X-A 1\nSet status:405 X-B 2")
    for reply in (server.get("/none"), server.get("/", "POST", {"Content-Length": "0"}), server.get("/", "OPTIONS"),
                  server.get("/", "HEAD"), server.get("/", fields={"Range": "bytes=0-1"}),
                  server.get("/", fields={"Range": "bytes=99-"})):
        assert reply["X-A"] == "1"
        assert ("X-B" in reply) == (reply.status == 405)


def test_headers_on_304_equal_those_of_200(monkey, files):
    server = with_headers(monkey, "Set type:text/css X-Css yes\nSet type:text/html X-Html yes\nExpires text/css 1h")
    for target, name in (("/style.css", "X-Css"), ("/", "X-Html"), ("/index.html", "X-Html")):
        etag = server.get(target)["ETag"]
        reply = server.get(target, fields={"If-None-Match": etag})
        assert reply.status == 304 and reply[name] == "yes"
        assert len([n for n in ("X-Css", "X-Html") if n in reply]) == 1
    assert server.get("/style.css", fields={"If-None-Match": server.get("/style.css")["ETag"]})["Cache-Control"] == "max-age=3600"


def test_headers_can_change_content_type(monkey, files):
    server = with_headers(monkey, """
        Set *.css Content-Type "text/plain; charset=utf-8"
        Set type:text/css X-Css yes
        Remove type:text/html Content-Type
        Set type:text/html X-Html yes
    """)
    reply = server.get("/style.css")  # conditions test the response as it was before any rule changed it
    assert reply["Content-Type"] == "text/plain; charset=utf-8" and reply["X-Css"] == "yes"
    reply = server.get("/")
    assert "Content-Type" not in reply and reply["X-Html"] == "yes"


def test_headers_apply_to_each_request_of_connection(monkey, files):
    server = with_headers(monkey, "Set X-A 1\nRemove ETag\nSecure on", server="KeepAliveRequests 0")
    with server.connect() as c:
        for _ in range(200):
            reply = c.get("/")
            assert reply["X-A"] == "1" and "ETag" not in reply and reply.text == "<p>hello"
        c.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        assert {c.read("GET")["X-A"] for _ in range(20)} == {"1"}


def test_headers_support_many_rules(monkey, files):
    server = with_headers(monkey, "\n".join(f"Set X-{i} {i}" for i in range(100)))
    reply = server.get("/")
    assert [reply[f"X-{i}"] for i in range(100)] == [str(i) for i in range(100)]


# ---- Expires ----

def expires(reply):
    return (parsedate_to_datetime(reply["Expires"]) - parsedate_to_datetime(reply["Date"])).total_seconds()


@pytest.mark.parametrize("text, seconds", [("90", 90), ("90s", 90), ("5m", 300), ("12h", 43200), ("30d", 2592000),
                                           ("2w", 1209600), ("1y", 31536000), ("1D", 86400), ("2147483647", 2147483647)])
def test_expires_durations_are_parsed(monkey, files, text, seconds):
    reply = with_headers(monkey, f"Expires {text}").get("/")
    assert reply["Cache-Control"] == f"max-age={seconds}"
    assert abs(expires(reply) - seconds) <= 1


def test_expires_applies_by_type_and_path(monkey, files):
    server = with_headers(monkey, """
        Expires /app/* off
        Expires image/* 30d
        Expires *.css 1h
        Expires text/html 0
        Expires status:2xx application/json 5m
        Expires 10m
    """)
    files.add("other/x")
    assert server.get("/logo.svg")["Cache-Control"] == "max-age=2592000"
    assert server.get("/style.css")["Cache-Control"] == "max-age=3600"
    reply = server.get("/")
    assert reply["Cache-Control"] == "no-cache" and abs(expires(reply)) <= 1
    assert "Cache-Control" not in server.get("/app/data.json")
    assert server.get("/a%20b.txt")["Cache-Control"] == "max-age=600"
    assert server.get("/other")["Cache-Control"] == "no-cache"  # this response is a 301 with a body
    for target in ("/none", "/none.css"):
        reply = server.get(target)
        assert "Cache-Control" not in reply and "Expires" not in reply


def test_expires_is_omitted_with_cache_control(monkey, files):
    server = with_headers(monkey, "Expires 1h", more="[CACHE_CONTROL]\n    *.css no-store\n")
    reply = server.get("/style.css")
    assert reply["Cache-Control"] == "no-store" and "Expires" not in reply
    assert server.get("/")["Cache-Control"] == "max-age=3600"


def test_expires_advances_with_the_clock(monkey, files):
    server = with_headers(monkey, "Expires 1h")
    first = server.get("/")["Expires"]
    end = time.monotonic() + 10
    while server.get("/")["Expires"] == first:
        assert time.monotonic() < end
        time.sleep(0.05)


# ---- Security headers ----

ON = {"X-Content-Type-Options": "nosniff", "X-Frame-Options": "SAMEORIGIN",
      "Referrer-Policy": "strict-origin-when-cross-origin", "Content-Security-Policy": "frame-ancestors 'self'"}


def test_secure_on_sets_default_headers(monkey, files):
    server = with_headers(monkey, "Secure on")
    for target in ("/", "/none", "/app"):
        reply = server.get(target)
        assert {name: reply[name] for name in ON} == ON
        assert "Strict-Transport-Security" not in reply and "Permissions-Policy" not in reply


def test_secure_strict_sets_strict_headers(monkey, files):
    reply = with_headers(monkey, "Secure strict").get("/")
    assert reply["X-Frame-Options"] == "DENY" and reply["Referrer-Policy"] == "no-referrer"
    assert "default-src 'self'" in reply["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in reply["Content-Security-Policy"]
    assert "camera=()" in reply["Permissions-Policy"]
    assert reply["Cross-Origin-Opener-Policy"] == reply["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Strict-Transport-Security" not in reply  # never sent without TLS


def test_secure_rules_override_defaults(monkey, files):
    assert not set(ON) & {name for name, _ in with_headers(monkey, "Secure off\nSet X-A 1").get("/").fields}
    server = with_headers(monkey, "Secure on\nRemove X-Frame-Options\nSet Referrer-Policy no-referrer")
    reply = server.get("/")
    assert "X-Frame-Options" not in reply and reply["Referrer-Policy"] == "no-referrer"


def test_secure_keeps_headers_of_handlers(monkey, site):
    site.add("x")
    server = with_headers(monkey, "Secure strict", plugins=["headers", "dirlisting"], more="[DIRLISTING]\n    Theme plain\n")
    reply = server.get("/")
    assert reply["Content-Security-Policy"].startswith("default-src 'none'; style-src")
    assert reply["X-Content-Type-Options"] == "nosniff"


# ---- CORS ----

APP = {"Origin": "https://app.example.org"}
PREFLIGHT = APP | {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "content-type"}
ACAO = "Access-Control-Allow-Origin"


def cors_fields(reply):
    return {name: value for name, value in reply.fields if name.startswith("Access-Control-")}


def test_cors_wildcard_allows_every_origin(monkey, files):
    server = with_headers(monkey, "Cors *")
    for fields in (APP, {"Origin": "null"}, {"Origin": "x\"<>"}):
        reply = server.get("/", fields=fields)
        assert cors_fields(reply) == {ACAO: "*"} and "Vary" not in reply
    assert not cors_fields(server.get("/"))


def test_cors_list_allows_matching_origins(monkey, files):
    server = with_headers(monkey, "Cors https://app.example.org http://localhost:3000 https://*.friends.example "
                                  "expose=X-Total,X-Page credentials")
    for origin in ("https://app.example.org", "HTTPS://APP.EXAMPLE.ORG", "http://localhost:3000", "https://a.friends.example",
                   "https://a.b-c.friends.example"):
        reply = server.get("/", fields={"Origin": origin})
        assert reply["Vary"] == "Origin"
        assert cors_fields(reply) == {ACAO: origin, "Access-Control-Allow-Credentials": "true",
                                      "Access-Control-Expose-Headers": "X-Total, X-Page"}
    for origin in ("https://app.example.org.evil.com", "https://evil-app.example.org", "http://app.example.org",
                   "https://app.example.org:444", "https://app.example.org/", "null", "*", "", "http://localhost:30000",
                   "https://friends.example", "https://.friends.example", "https://evil.com/.friends.example",
                   "https://evil.com?.friends.example", "https://evil.com#.friends.example", "https://a@.friends.example",
                   "https://evil.com:1.friends.example", "https://evil\\.friends.example", "https://x y.friends.example",
                   "https://a.friends.example.evil.com", "https://a.friends.example:443", "https://*.friends.example",
                   "http://a.friends.example", "https://evilfriends.example", "https://a..friends.example",
                   "https://\xe4.friends.example"):
        reply = server.get("/", fields={"Origin": origin})
        assert not cors_fields(reply), origin
        assert reply["Vary"] == "Origin" and reply.status == 200
    assert server.get("/")["Vary"] == "Origin"


def test_cors_applies_to_error_responses(monkey, files):
    reply = with_headers(monkey, "Cors https://app.example.org").get("/none", fields=APP)
    assert reply.status == 404 and reply[ACAO] == "https://app.example.org"


def test_cors_preflight_is_answered(monkey, files):
    server = with_headers(monkey, "Cors /app/* https://app.example.org methods=GET,PUT,DELETE headers=Content-Type,X-Token "
                                  "expose=X-Total max-age=1h credentials\nCors /fonts/* * methods=* headers=*")
    reply = server.get("/app/data.json", "OPTIONS", PREFLIGHT)
    assert reply.status == 204 and reply["Vary"] == "Origin"
    assert cors_fields(reply) == {ACAO: "https://app.example.org", "Access-Control-Allow-Credentials": "true",
                                  "Access-Control-Allow-Methods": "GET, PUT, DELETE",
                                  "Access-Control-Allow-Headers": "Content-Type, X-Token",
                                  "Access-Control-Max-Age": "3600"}
    reply = server.get("/fonts/none.woff2", "OPTIONS", PREFLIGHT)
    assert reply.status == 204 and "Vary" not in reply
    assert cors_fields(reply) == {ACAO: "*", "Access-Control-Allow-Methods": "*", "Access-Control-Allow-Headers": "*"}


def test_cors_preflight_of_other_origin_is_refused(monkey, files):
    server = with_headers(monkey, "Cors /app/* https://app.example.org methods=PUT")
    reply = server.get("/app/x", "OPTIONS", PREFLIGHT | {"Origin": "https://evil.com"})
    assert reply.status == 403 and not cors_fields(reply) and reply["Vary"] == "Origin"


def test_cors_other_options_requests_are_not_preflights(monkey, files):
    server = with_headers(monkey, "Cors /app/* *")
    for target, fields in (("/app/data.json", APP), ("/app/data.json", {"Access-Control-Request-Method": "PUT"}),
                           ("/style.css", PREFLIGHT), ("*", PREFLIGHT)):
        reply = server.get(target, "OPTIONS", fields)
        assert reply.status == 200 and "get" in reply.tokens("Allow"), target
    assert server.get("/app/data.json", fields=PREFLIGHT).status == 200


def test_cors_first_matching_rule_wins(monkey, files):
    server = with_headers(monkey, "Cors /app/* https://app.example.org\nCors /app/data.json *\nCors *")
    assert not cors_fields(server.get("/app/data.json", fields={"Origin": "https://other.org"}))
    assert cors_fields(server.get("/", fields={"Origin": "https://other.org"})) == {ACAO: "*"}


# ---- Activation ----

def test_headers_of_host_replace_global_rules(monkey, files):
    server = monkey(plugins=["headers"], top="[HEADERS]\n    Set X-A all\n", sections=f"""
[HOST]
    ServerName own
    DocumentRoot {files}
[HEADERS]
    Set X-B own
[HOST]
    ServerName empty
    DocumentRoot {files}
[HEADERS]
[HOST]
    ServerName same
    DocumentRoot {files}
""")
    for host, names in (("first", ["X-A"]), ("own", ["X-B"]), ("empty", []), ("same", ["X-A"])):
        reply = server.get("/", fields={"Host": host})
        assert [n for n in ("X-A", "X-B") if n in reply] == names, host


def test_headers_readme_examples_work(monkey, files):
    """Tests the first example of the README, which is a whole configuration, and its Expires rules."""
    text = (ROOT / "plugins/headers/README.md").read_text()
    blocks = [re.sub("^    ", "", block, flags=re.MULTILINE) for block in re.findall(r"(?:^    .*\n|^\n)+", text, re.MULTILINE)]
    blocks = [block.strip("\n") + "\n" for block in blocks if block.strip()]
    first = blocks[0].replace("/srv/www", str(files))
    server = monkey(config="[SERVER]\n    Listen 127.0.0.1:0\n" + first)
    assert server.get("/logo.svg")["Cache-Control"] == "max-age=2592000"
    more = next(block for block in blocks if block.startswith("Expires  /live"))
    assert with_headers(monkey, more).get("/")["Cache-Control"] == "no-cache"


def test_headers_shipped_config_loads(monkey, files):
    server = monkey(config="[SERVER]\n    Listen 127.0.0.1:0\n"
                           f"@INCLUDE {ROOT / 'plugins/headers/headers.conf'}\n[HOST]\n    DocumentRoot {files}\n")
    assert server.get("/")["X-Frame-Options"] == "SAMEORIGIN"


def test_headers_shipped_config_comments_are_valid(monkey, files):
    text = (ROOT / "plugins/headers/headers.conf").read_text()
    text = re.sub(r"^    # (Expires|Cors|Add|Set|Remove)\b", r"    \1", text, flags=re.MULTILINE)
    server = monkey(config=f"[SERVER]\n    Listen 127.0.0.1:0\n{text}\n[HOST]\n    DocumentRoot {files}\n")
    reply = server.get("/logo.svg")
    assert reply["X-Clacks-Overhead"] == "GNU Terry Pratchett" and reply["Cache-Control"] == "max-age=2592000"


def test_headers_printed_config_loads_again(monkey, files, tmp_path):
    rules = ["Add X-One 1", 'Set /x type:text/* status:4xx X-Two "a \\"b\\""', "Remove X-One", "Expires image/* 30d",
             "Cors /app/* https://app.example.org methods=GET,PUT credentials"]
    server = with_headers(monkey, "\n".join(rules) + "\nSecure strict")
    printed = monkey(args=["-T", "-c", server.config], expect_start=False)
    printed.wait()
    section = printed.out.text.split("[HEADERS]")[1]
    lines = [" ".join(line.split()) for line in section.splitlines()]
    assert [line for line in lines if line in rules and line.split()[0] in ("Add", "Set", "Remove")] == rules[:3]
    assert set(rules) | {"Secure strict"} <= set(lines)


BAD = [
    ("Set", "no value"), ("Set X-A", "missing value of `X-A`"), ("Set /x", "missing header name"), ("Set /x /y X-A 1", "a rule accepts one path"),
    ("Set type:text/css type:a/b X-A 1", "a rule accepts one type"), ("Set status:404 status:4xx X-A 1", "a rule accepts one status"),
    ("Set X-A: 1", "nor the name of a header"), ("Set X(A) 1", "nor the name of a header"), ('Set "" 1', "nor the name"),
    ('Set X-A "1" 2', "after the value"), ('Set X-A "1', "quote"), ("Set X-A a\x01b", "control byte"),
    ("Set X-A a\x7fb", "control byte"), ("Remove X-A now", "after the name"), ("Remove /x", "missing header name"),
    ("Set type:css X-A 1", "not a media type"), ("Set type:*/css X-A 1", "not a media type"),
    ("Set type:text/c* X-A 1", "not a media type"), ("Set type:text/ X-A 1", "not a media type"),
    ("Set status:99 X-A 1", "not a status"), ("Set status:1xx X-A 1", "not a status"), ("Set status:6xx X-A 1", "not a status"),
    ("Set status:600 X-A 1", "not a status"), ("Set status:x X-A 1", "not a status"), ("Set status: X-A 1", "not a status"),
    *[(f"Set {name} 1", "cannot be changed: the server sets it") for name in
      ("Content-Length", "transfer-encoding", "Connection", "Keep-Alive", "Upgrade", "Date", "SERVER", "Trailer")],
    ("Remove Server", "HideVersion"), ("Add /x Date now", "cannot be changed: the server sets it"),
    ("Sett X-A 1", "unknown key `Sett`"), ("Secure maybe", "off, on, strict"), ("Secure on\n    Secure on", "already set"),
    ("Expires image/*", "missing time"), ("Expires soon", "not a time"), ("Expires image/* 30", None), ("Expires 1d 2d", "after the time"),
    ("Expires image/* text/css 1d", "not a time"), ("Expires 3e9", "not a time"), ("Expires 2147483648", "not a time"),
    ("Expires 99999999999999999999y", "not a time"), ("Expires -1", "not a time"), ("Expires d", "not a time"),
    ("Cors", "no value"), ("Cors /x", "no origin given"), ("Cors example.org", "neither an origin"),
    ("Cors https://example.org/", "neither an origin"), ("Cors https://a*.example.org", "neither an origin"),
    ("Cors https://*", "neither an origin"), ("Cors null", "any page can give itself"), ("Cors * credentials", "every site could read"),
    ("Cors * https://example.org", "allows all origins already"), ("Cors https://", "neither an origin"),
    ("Cors https://example.org methods=GET,,PUT", "not a list"), ("Cors https://example.org headers=", "not a list"),
    ("Cors https://example.org methods=* credentials", "list the names"), ("Cors https://example.org max-age=x", "not a time"),
    ("Cors https://example.org color=red", "neither an origin"), ("Cors https://user@example.org", "neither an origin"),
]


@pytest.mark.parametrize("rule, message", [case for case in BAD if case[1]])
def test_headers_invalid_configuration_is_rejected(monkey, rule, message):
    server = with_headers(monkey, "Set X-Fine 1\n" + rule, expect_start=False)
    server.exit_code = 3
    server.wait()
    at = server.config.read_text().splitlines().index("[HEADERS]") + len(rule.splitlines()) + 2
    assert re.search(rf"monkey\.conf:{at}\b", server.err.text), server.err.text
    assert message in server.err.text, server.err.text


def test_headers_value_from_environment_cannot_inject_header(monkey):
    server = monkey(plugins=["headers"], sections="[HEADERS]\n    Set X-A ${EVIL}\n", environment={"EVIL": "a\r\nX-B: 1"},
                    expect_start=False)
    server.exit_code = 3
    server.wait()
    assert re.search(r"monkey\.conf:\d+", server.err.text) and "control" in server.err.text


def test_headers_errors_are_reported_together(monkey):
    server = with_headers(monkey, "Set Date 1\nCors null\nExpires x\nSett a b", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert len(re.findall(r"monkey\.conf:\d+", server.err.text)) >= 4


# ---- Variables ----

def test_headers_variables_are_expanded(monkey, files):
    server = with_headers(monkey, """
        Set X-All "$host|$server_name|$scheme|$method|$target|$path|$query|$remote_addr|$remote_user|$protocol"
        Set X-Dollar $$host costs 5$$
        Set X-Braces a$${host}b
        Add X-Where https://$host$target
    """, host="ServerName main.example other.example")
    reply = server.get("/a%20b.txt?x=%41&y", host="Other.example:81")
    scheme, protocol = ("https", "HTTP/2.0") if server.is_h2 else ("http", "HTTP/1.1")
    assert reply["X-All"].lower() == (f"other.example|main.example|{scheme}|get|/a%20b.txt?x=%41&y|/a%20b.txt|x=%41&y|127.0.0.1||"
                                      f"{protocol}").lower()
    assert (reply["X-Dollar"], reply["X-Braces"].lower()) == ("$host costs 5$", "aother.exampleb")
    assert reply["X-Where"].lower() == "https://other.example/a%20b.txt?x=%41&y"
    assert server.get("/none", "HEAD", host="main.example")["X-Where"] == "https://main.example/none"


@pytest.mark.parametrize("target, shown", [
    ("/a%0d%0aX-Evil:%201", "/a%0D%0AX-Evil:%201"), ("/%22%5c", "/%22%5C"), ("/%c3%a4", "/%C3%A4"), ("/100%2525", "/100%2525"),
    ("/%7f%01", "/%7F%01"),
])
def test_headers_variables_cannot_inject_header(monkey, files, target, shown):
    server = with_headers(monkey, 'Set X-Path "$path"\nSet X-Query $query')
    reply = server.get(target + "?%0d%0aX-Evil:2")
    assert (reply["X-Path"], reply["X-Query"]) == (shown, "%0d%0aX-Evil:2")
    assert "X-Evil" not in reply


def test_headers_long_value_is_complete(monkey, files):
    server = with_headers(monkey, "Set X-Target $target")
    target = "/" + "x" * 6000
    assert server.get(target)["X-Target"] == target


def test_headers_remote_user_variable_is_escaped(monkey, files, tmp_path):
    name = "ana maria%"
    (tmp_path / "users").write_text(f"{name}:{{SHA}}{base64.b64encode(hashlib.sha1(b'x').digest()).decode()}\n")
    server = with_headers(monkey, "Set X-User [$remote_user]", plugins=("headers", "auth"),
                          more="[AUTH]\n    Location /\n    Realm t\n    UserFile users\n")
    token = base64.b64encode(f"{name}:x".encode()).decode()
    assert server.get("/", fields={"Authorization": f"Basic {token}"})["X-User"] == "[ana%20maria%25]"
    assert server.get("/")["X-User"] == "[]"


@pytest.mark.parametrize("value, message, hint", [
    ("$hots", "there is no variable `$hots`", "did you mean `$host`?"), ("$remote_adr", "there is no variable", "`$remote_addr`"),
    ("$zzzzzzzzz", "there is no variable `$zzzzzzzzz`", "write `$$` for a dollar"), ("5$", "expected the name of a variable", "write `$$`"),
    ("a $ b", "expected the name of a variable after `$`", "write `$$`"), ("$${host", "expected the name of a variable", "write `$$`"),
])
def test_headers_unknown_variable_is_rejected(run, tmp_path, files, value, message, hint):
    (tmp_path / "monkey.conf").write_text(f"[PLUGINS]\n    Load headers\n[HOST]\n    DocumentRoot site\n[HEADERS]\n    Set X-A {value}\n")
    done = run("-t", "-c", "monkey.conf")
    assert done.code == 3 and message in done.err and "monkey.conf:6" in done.err and hint in done.err, done.err
