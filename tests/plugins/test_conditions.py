# SPDX-License-Identifier: Apache-2.0
"""Conditions on requests, which several plugins share: here in [SECURITY] and [REWRITE]."""
import functools
import random
import re
import subprocess
import time

import pytest

import mmdb
import regexes
import services
import users
from backend import Backend
from monkey import PROGRAM, SECONDS
from security_server import guard, is_refused, status

regex = pytest.mark.skipif(not regexes.ARE_THERE, reason="built without PCRE2")
BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"


@pytest.fixture
def guarded(monkey, site):
    site.add("index.html", "index")
    site.add("a/x.txt", "text")
    return functools.partial(guard, monkey)


def code(server, target="/", **fields):
    return server.get(target, fields={name.replace("_", "-"): value for name, value in fields.items()}).status


# ---- Headers ----


def test_header_globs_ignore_case(guarded):
    server = guarded("Deny header User-Agent *GPTBot* Evil/?.0 curl*")
    for agent in ("Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)", "gptbot", "evil/1.0", "CURL/8.0"):
        assert code(server, User_Agent=agent) == 403
        assert server.get("/", fields={"uSER-aGENT": agent}).status == 403
    for agent in (BROWSER, "GPTBo", "Evil/10.0", "libcurl/8", ""):
        assert code(server, User_Agent=agent) == 200
    assert code(server) == 200


def test_header_contains_takes_wildcards_literally(guarded):
    server = guarded('Deny header X-Test contains a*b "c d"')
    assert code(server, X_Test="xxA*Bxx") == 403 and code(server, X_Test="xc Dx") == 403
    assert code(server, X_Test="aXb") == 200


def test_header_empty_value_means_missing_or_empty(guarded):
    server = guarded('Deny /a/* header X-Key ""\nDeny /index.html not header X-Key *')
    assert code(server, "/a/x.txt") == 403 and code(server, "/a/x.txt", X_Key="") == 403 and code(server, "/a/x.txt", X_Key="k") == 200
    assert code(server, "/index.html") == 403 and code(server, "/index.html", X_Key="") == 403
    assert code(server, "/index.html", X_Key="k") == 200


def test_header_of_several_lines_matches_if_any_line_does(guarded):
    server = guarded("Deny header X-Test bad\nDeny /a/* not header X-Role admin")
    with server.connect() as c:
        assert c.get("/", fields=[("X-Test", "good"), ("X-Test", "bad")]).status == 403
    with server.connect() as c:
        assert c.get("/a/x.txt", fields=[("X-Role", "user"), ("x-role", "admin")]).status == 200
    assert code(server, "/a/x.txt", X_Role="user") == 403


def test_several_headers_must_all_match(guarded):
    server = guarded("Deny header X-A 1 header X-B 2 not header X-C 3")
    assert code(server, X_A="1", X_B="2") == 403 and code(server, X_A="1", X_B="2", X_C="4") == 403
    assert code(server, X_A="1") == 200 and code(server, X_B="2") == 200 and code(server, X_A="1", X_B="2", X_C="3") == 200


def test_quoted_word_is_a_value(guarded):
    server = guarded('Deny header Sec-Fetch-Dest "path" "not" "contains"')
    for value in ("path", "not", "contains"):
        assert code(server, Sec_Fetch_Dest=value) == 403
    assert code(server, Sec_Fetch_Dest="document") == 200


def test_many_patterns_match_like_a_naive_search(guarded):
    rng = random.Random(7)
    names = ["".join(rng.choice("abcAB") for _ in range(rng.randint(3, 6))) for _ in range(50)]
    server = guarded("Deny header User-Agent " + " ".join(f"*{name}*" for name in names))
    with server.connect() as c:
        for _ in range(300):
            agent = "".join(rng.choice("abcABx/ ") for _ in range(rng.randint(1, 60))).strip() or "x"
            bad = any(name.lower() in agent.lower() for name in names)
            for _ in range(2):  # the second result may be a remembered one
                assert c.get("/", fields={"User-Agent": agent}).status == (403 if bad else 200), agent


@regex
def test_regular_expressions_match_anywhere(guarded):
    server = guarded(r"Deny header User-Agent ~bot[0-9]+$" "\n" r"Deny path ~^/a/\w+\.txt$" "\n" "Deny parameter id ~^[^0-9]")
    assert code(server, User_Agent="x BOT12") == 403 and code(server, User_Agent="bot12x") == 200
    assert code(server, "/a/x.txt") == 403 and code(server, "/a/y.tx") == 404
    assert code(server, "/?id=x") == 403 and code(server, "/?id=1x") == 200


@regex
def test_regular_expression_above_its_limit_denies_and_does_not_allow(guarded):
    evil = r"^(a+)+$"
    server = guarded(f"Allow /a/* header X-A ~{evil}\nDeny /a/*\nDeny header X-A ~{evil}")
    long = "a" * 4000 + "!"
    assert code(server, "/a/x.txt", X_A="aaa") == 200
    assert code(server, "/a/x.txt", X_A=long) == 403 and code(server, "/", X_A=long) == 403 and code(server, "/", X_A="b") == 200


# ---- Cookies, parameters, hosts and others ----


def test_cookie_is_compared_by_name_and_value(guarded):
    server = guarded("Deny /a/* not cookie session s-*")
    assert code(server, "/a/x.txt") == 403
    assert code(server, "/a/x.txt", Cookie="x=1; session=s-12; y=2") == 200
    assert code(server, "/a/x.txt", Cookie="Session=s-12") == 403 and code(server, "/a/x.txt", Cookie="session=S-12") == 403
    assert code(server, "/a/x.txt", Cookie="xsession=s-12; session") == 403
    with server.connect() as c:
        assert c.get("/a/x.txt", fields=[("Cookie", "a=b"), ("Cookie", "session=s-1")]).status == 200


def test_parameter_is_decoded(guarded):
    server = guarded('Deny parameter q "a b" *<script*\nDeny parameter "x y" 1')
    for target in ("/?q=a+b", "/?q=a%20b", "/?%71=a%20b", "/?x&q=1&q=a+b", "/?q=%3Cscript%3E", "/?x+y=1"):
        assert code(server, target) == 403, target
    for target in ("/", "/?q", "/?q=a", "/?Q=a+b", "/?q=a%2", "/?q=a%zzb", "/?&&=&q=", "/?x%20y=2"):
        assert code(server, target) == 200, target


def test_host_scheme_and_query_select_requests(guarded):
    server = guarded('Deny host *.bad.example scheme http\nDeny query *debug* not query *debug=no*\nDeny scheme https\nDeny /a/* query ""')
    assert code(server, Host="X.BAD.example:80") == 403 and code(server, Host="bad.example") == 200
    assert code(server, "/?x=debug") == 403 and code(server, "/?debug=no") == 200 and code(server, "/?Debug") == 200
    assert code(server, "/a/x.txt") == 403 and code(server, "/a/x.txt?") == 403 and code(server, "/a/x.txt?x") == 200


def test_trailing_dot_of_a_host_makes_no_difference(guarded):
    server = guarded("Deny host secret.example dotted.example.\nDeny /a/* not referer self siblings links.example.")
    for host in ("secret.example.", "SECRET.example.:80", "secret.example", "dotted.example", "dotted.example."):
        assert code(server, Host=host) == 403, host
    assert code(server, Host="other.example.") == 200
    for host, referer, expected in [("x.org.", "x.org", 200), ("x.org", "x.org.", 200), ("www.x.org.", "img.x.org", 200), ("www.x.org", "img.x.org.", 200),
                                    ("x.org.", "y.org.", 403), ("x.org", "links.example", 200), ("x.org", "links.example.:80", 200)]:
        assert code(server, "/a/x.txt", Host=host, Referer=f"http://{referer}/") == expected, (host, referer)


def test_limit_of_a_host_counts_its_name_with_a_trailing_dot(monkey, site):
    site.add("index.html", "index")
    server = monkey(plugins=["limits"], top="[LIMITS]\n    Requests 1/d by all when host secret.example\n")
    assert [code(server, Host=host) for host in ("secret.example", "secret.example.", "other.example.")] == [200, 429, 200]


def test_condition_and_its_exception_can_be_combined(guarded):
    server = guarded("Deny /a/* not path *.txt\nDeny from 127.0.0.0/8 not from 127.0.0.1 127.0.0.2 header X-A *")
    assert code(server, "/a/x.txt") == 200 and code(server, "/a/y") == 403
    for source, expected in (("127.0.0.1", 200), ("127.0.0.3", 403)):
        assert status(server, source=source, fields={"X-A": "1"}) == expected


def test_conditions_see_the_client_behind_a_proxy(guarded):
    server = guarded("TrustedProxy 127.0.0.1\nRealAddress X-Forwarded-For\nDeny from 192.0.2.0/24 header User-Agent bot")
    assert code(server, X_Forwarded_For="192.0.2.9", User_Agent="bot") == 403
    assert code(server, X_Forwarded_For="192.0.3.9", User_Agent="bot") == 200 and code(server, User_Agent="bot") == 200


def test_address_with_a_header_rule_is_not_refused_at_accept(guarded):
    """A rule that also tests a header cannot decide about a connection."""
    server = guarded("Deny from 127.0.0.2 header User-Agent bot\nDeny from 127.0.0.3")
    assert status(server, source="127.0.0.2") == 200 and is_refused(server, "127.0.0.3")
    assert status(server, source="127.0.0.2", fields={"User-Agent": "bot"}) == 403


def test_rewrite_uses_the_same_conditions(monkey, site):
    site.add("index.html", "index")
    server = monkey(plugins=["rewrite"], sections="""
[REWRITE]
    When     header Accept-Language de* cookie lang ""
    Redirect 302 prefix /start /de
    When     not header Accept-Language de*
    When     from 127.0.0.1 parameter v 2
    Redirect 302 prefix /start /v2
    When     !cookie lang "" query *
    Redirect 302 prefix /start /lang
""")

    def location(target, **fields):
        return server.get(target, fields={name.replace("_", "-"): value for name, value in fields.items()}).get("Location")

    assert location("/start", Accept_Language="de-AT") == "/de"
    assert location("/start", Accept_Language="de-AT", Cookie="lang=en") is None
    assert location("/start?v=2") == "/v2?v=2"
    assert location("/start?v=2", Accept_Language="de") == "/de?v=2"
    assert location("/start?x", Cookie="lang=en") == "/lang?x"


# ---- Lists in files ----


def test_list_of_networks_is_read_from_file(guarded, tmp_path):
    (tmp_path / "bad.txt").write_text("# comment\n\n127.0.0.2\r\n  127.0.0.8/29 # trailing\n127.0.0.2\n2001:db8::/32 ; SBL1\n")
    server = guarded(f"Deny /a/* from file:{tmp_path}/bad.txt 127.0.0.20\nDeny /index.html not from file:{tmp_path}/bad.txt")
    for source, expected in (("127.0.0.2", 403), ("127.0.0.9", 403), ("127.0.0.20", 403), ("127.0.0.16", 200)):
        assert status(server, "/a/x.txt", source) == expected
    assert status(server, "/index.html", "127.0.0.9") == 200 and status(server, "/index.html", "127.0.0.16") == 403


def test_list_that_denies_an_address_refuses_its_connections(guarded, tmp_path):
    (tmp_path / "bad.txt").write_text("127.0.0.2\n")
    server = guarded(f"Deny from file:{tmp_path}/bad.txt")
    assert is_refused(server, "127.0.0.2") and status(server, source="127.0.0.3") == 200


def test_list_of_texts_is_read_from_file(guarded, tmp_path):
    (tmp_path / "bots.txt").write_text("# Crawlers\nGPTBot\n  Some Bot  \nc#\n")
    server = guarded(f"Deny header User-Agent contains file:{tmp_path}/bots.txt\nDeny method file:{tmp_path}/methods.txt",
                     expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "cannot read the list" in server.err.text and "methods.txt: No such file or directory" in server.err.text
    (tmp_path / "methods.txt").write_text("PUT # no\nPROPFIND\n")
    server = guarded(f"Deny header User-Agent contains file:{tmp_path}/bots.txt\nDeny method file:{tmp_path}/methods.txt")
    for agent in ("x gptbot/1", "Some bot 2", "lang C#"):
        assert code(server, User_Agent=agent) == 403
    assert code(server, User_Agent="# Crawlers") == 200
    assert server.get("/", method="PROPFIND").status == 403


def test_list_is_relative_to_the_configuration_and_read_again_at_reload(guarded, tmp_path):
    bad = tmp_path / "lists" / "bad.txt"
    bad.parent.mkdir()
    bad.write_text("127.0.0.2\n")
    server = guarded("Deny /a/* from file:lists/bad.txt", wrapper=["env", "-C", "/"])
    assert status(server, "/a/x.txt", "127.0.0.2") == 403 and status(server, "/a/x.txt", "127.0.0.3") == 200
    bad.write_text("127.0.0.3\n")
    server.tell(1)
    server.err.wait_for("the new configuration serves")
    assert status(server, "/a/x.txt", "127.0.0.2") == 200 and status(server, "/a/x.txt", "127.0.0.3") == 403
    bad.write_text("127.0.0.4\n127.0.0.5/8\n")
    server.tell(1)
    server.err.wait_for(r"bad\.txt:2:1: .*`127\.0\.0\.5/8` is not an address or a network")
    assert status(server, "/a/x.txt", "127.0.0.3") == 403 and status(server, "/a/x.txt", "127.0.0.4") == 200
    bad.unlink()
    server.tell(1)
    server.err.wait_for("cannot read the list .*No such file or directory")
    assert status(server, "/a/x.txt", "127.0.0.3") == 403


def test_list_of_a_hundred_thousand_networks(guarded, tmp_path):
    rng = random.Random(1)
    lines = [f"{rng.randint(1, 126)}.{rng.randint(0, 255)}.{rng.randint(0, 255)}.0/24" for _ in range(60000)]
    lines += [f"2a{rng.randint(0, 255):02x}:{rng.randint(0, 65535):x}::/32" for _ in range(60000)] + ["127.0.0.2"]
    rng.shuffle(lines)
    (tmp_path / "bad.txt").write_text("\n".join(lines))
    server = guarded(f"TrustedProxy 127.0.0.1\nRealAddress X-Forwarded-For\nDeny from file:{tmp_path}/bad.txt")
    known = set(lines)
    for line in rng.sample(lines, 50):
        if "/24" in line:
            assert code(server, X_Forwarded_For=line.replace(".0/24", ".77")) == 403
        elif "::/32" in line:
            assert code(server, X_Forwarded_For=line.replace("::/32", "::7")) == 403
    for _ in range(50):
        network = f"{rng.randint(1, 126)}.{rng.randint(0, 255)}.{rng.randint(0, 255)}"
        assert code(server, X_Forwarded_For=f"{network}.1") == (403 if f"{network}.0/24" in known else 200)


WRONG = {
    "Deny header": "`header` is without a value",
    "Deny header User-Agent": "`header` is without a value",
    "Deny header A:B x": "`A:B` is not a name: expected the name of a header",
    "Deny cookie a=b x": "`a=b` is not a name: expected the name of a cookie",
    "Deny parameter \"\" x": "`` is not a name: expected the name of a parameter",
    "Deny header X contains": "`contains` is without a value",
    "Deny header X contains \"\"": "`` is empty: expected a part of the value",
    "Deny not heder X y": "did you mean `header`?",
    "Deny /x from 10.0.0.0/8 from 11.0.0.0/8": "`from` is already set",
    "Deny from file:": "`file:` is not a list",
    "Deny from file:/": "/ is not a regular file",
    "Deny scheme ftp": "`ftp` is not a scheme: expected http or https",
}


@pytest.mark.parametrize("line", WRONG)
def test_invalid_conditions_are_rejected_with_location(guarded, line):
    server = guarded(line, expect_start=False)
    server.exit_code = 3
    server.wait()
    assert re.search(rf"monkey\.conf:\d+:\d+: error: .*{re.escape(WRONG[line])}", server.err.text.replace("\n", " ")), server.err.text


@regex
def test_invalid_regular_expression_is_rejected_with_location(guarded):
    server = guarded("Deny header X ~(a", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "missing closing parenthesis" in server.err.text


# ---- [LIMITS] ----


def test_limit_applies_when_its_conditions_are_true(monkey, site):
    site.add("index.html", "index")
    server = monkey(plugins=["limits"], top="""
[LIMITS]
    Requests 2/d by all when header User-Agent contains bot not cookie session *
    Requests /a* 1/d when method POST
    Except   when header X-Key k?y-*
""")
    assert [code(server, User_Agent=f"a Bot {i}") for i in range(4)] == [200, 200, 429, 429]
    assert code(server, User_Agent="browser") == 200 and code(server, User_Agent="bot", Cookie="session=1") == 200
    assert code(server, User_Agent="bot", X_Key="key-1") == 200 and code(server, User_Agent="bot", X_Key="kkey-1") == 429
    assert [server.get("/a", method="POST", body=b"").status for _ in range(2)][1] == 429
    assert server.get("/a").status == 404


def test_bandwidth_applies_when_its_conditions_are_true(monkey, site):
    site.add("big", "x" * 400_000)
    server = monkey(plugins=["limits"], top="[LIMITS]\n    Bandwidth 100K burst 100K by response when header User-Agent bot\n")
    begin = time.monotonic()
    assert len(server.get("/big").body) == 400_000
    assert time.monotonic() - begin < 1.5 * SECONDS / 10
    begin = time.monotonic()
    assert len(server.get("/big", fields={"User-Agent": "bot"}).body) == 400_000
    assert time.monotonic() - begin > 1.5


@pytest.mark.parametrize("line,message", [
    ("Requests 1/s when", "`when` is the last word"),
    ("Requests 1/s by address when", "`when` is the last word"),
    ("Requests 1/s when heder X y", "`heder` is not a condition"),
    ("Requests 1/s when file", "`file` is not a condition"),
    ("Except when", "`when` is the last word"),
    ("Except when from x", "`x` is not an address or a network"),
])
def test_invalid_conditions_of_limits_are_rejected(monkey, line, message):
    server = monkey(plugins=["limits"], top=f"[LIMITS]\n    {line}\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert message in server.err.text


def test_rewrite_security_and_limits_share_conditions(monkey, site, tmp_path):
    """The rewrite comes first: the other two see the new path."""
    site.add("new/a.txt", "text")
    site.add("index.html", "index")
    (tmp_path / "bots").write_text("bot\n")
    server = monkey(plugins=["rewrite", "security", "limits"], sections=f"""
[REWRITE]
    When    header User-Agent contains file:{tmp_path}/bots
    Rewrite prefix /old /new
[SECURITY]
    Deny    /new/* header X-Bad *
[LIMITS]
    Requests /new/* 2/d when header User-Agent contains file:{tmp_path}/bots
""")
    assert code(server, "/old/a.txt") == 404
    assert code(server, "/old/a.txt", User_Agent="bot", X_Bad="1") == 403
    assert [code(server, "/old/a.txt", User_Agent="bot") for _ in range(3)] == [200, 200, 429]
    assert code(server, "/new/a.txt") == 200


def test_rewrite_auth_and_limits_are_combined(monkey, site, tmp_path):
    """The rewrite comes first: the new path needs a password and counts for the limit. The limit also counts requests without
    a valid password, so that it bounds their number."""
    site.add("new/a.txt", "text")
    users.add(tmp_path / "users", "ana", "secret", "-b", "bcrypt", "-r", "4")
    server = monkey(plugins=["rewrite", "auth", "limits"], sections="""
[REWRITE]
    When    header X-Beta 1 not cookie classic *
    Rewrite prefix /old /new
[AUTH]
    Location /new
    UserFile users
[LIMITS]
    Requests /new/* 3/d when header User-Agent contains bot
    Except   when header X-Key k
""")
    password = users.basic("ana", "secret")
    assert code(server, "/old/a.txt") == 404 and code(server, "/old/a.txt", X_Beta="1", Cookie="classic=1") == 404
    assert code(server, "/old/a.txt", X_Beta="1") == 401 and code(server, "/old/a.txt", X_Beta="1", **password) == 200
    bot = {"X_Beta": "1", "User_Agent": "a bot"}
    assert [code(server, "/old/a.txt", **bot), code(server, "/old/a.txt", **bot, **password), code(server, "/new/a.txt", **bot, **password)] == [401, 200, 200]
    assert code(server, "/old/a.txt", **bot, **password) == code(server, "/old/a.txt", **bot) == 429
    assert code(server, "/old/a.txt", X_Key="k", **bot, **password) == 200 and code(server, "/old/a.txt", X_Key="k", **bot) == 401
    assert code(server, "/old/a.txt", User_Agent="bot") == 404, "the old path is not limited"


# ---- [ROUTES] ----


@pytest.fixture
def routed(monkey, site):
    site.add("index.html", "index")
    site.add("a.txt", "text")

    def start(routes, **how):
        return monkey(sections="[ROUTES]\n" + "".join(f"    {line}\n" for line in routes), **how)
    return start


def test_route_applies_when_its_conditions_are_true(routed):
    server = routed(["When header User-Agent *bot*", "When not cookie session *", "/*.txt status 403", "when method DELETE", "/* status 410",
                     "When parameter old 1", "/a.txt redirect 302 /index.html", "/* static"])
    assert code(server, "/a.txt") == 200 and code(server, "/a.txt", User_Agent="a BOT") == 403
    assert code(server, "/a.txt", User_Agent="bot", Cookie="session=x") == 200 and code(server, "/", User_Agent="bot") == 200
    assert server.get("/", method="DELETE").status == 410
    assert code(server, "/a.txt?old=1") == 302 and code(server, "/a.txt?old=2") == 200


def test_route_condition_applies_to_one_route(routed):
    server = routed(["When header X-A 1", "/a.txt status 410", "/a.txt static", "/* status 404"])
    assert code(server, "/a.txt") == 200 and code(server, "/a.txt", X_A="1") == 410 and code(server, "/") == 404


@pytest.mark.parametrize("routes,message", [
    (["/* static", "When header X y"], "condition without a route after it"),
    (["When hedr X y", "/* static"], "did you mean `header`?"),
    (["When", "/* static"], "`When` has no value"),
])
def test_invalid_conditions_of_routes_are_rejected(routed, routes, message):
    server = routed(routes, expect_start=False)
    server.exit_code = 3
    server.wait()
    assert message in server.err.text


def test_conditions_survive_the_printed_configuration(routed):
    server = routed(["When header X-A 1 not from 10.0.0.0/8", "/a.txt status 410", "/* static"])
    done = subprocess.run([PROGRAM, "-T", "-c", server.config], capture_output=True, text=True, check=True)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    at = lines.index("When header X-A 1 not from 10.0.0.0/8")
    assert lines[at + 1] == "/a.txt status 410"


# ---- Isolated services ----

PARTS = r"""
#include <duda.h>

static int show(struct duda_ctx *d)
{
    return duda_printf(d, "NAME %.*s %.*s\n", MK_STR_ARG(mk_request_client_text(duda_request(d))),
                       MK_STR_ARG(mk_request_path(duda_request(d))));
}

DUDA_SERVICE(NAME, DUDA_GET("/", show), DUDA_GET("/old", show), DUDA_GET("/new", show));
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    if not services.BUILT.exists():
        pytest.skip("this build has no Duda")
    folder = tmp_path_factory.mktemp("parts")
    folder.chmod(0o755)
    return {name: f"[ISOLATE]\n    Service {services.build(folder, name, PARTS.replace('NAME', name))}\n" for name in ("one", "two")}


@pytest.mark.processes("it starts no group of processes")
def test_conditions_select_an_isolated_service(monkey, site, parts):
    server = monkey(plugins=["isolate"], top=parts["one"] + parts["two"], sections="""[ROUTES]
    When header X-Beta 1 not from 127.0.0.2
    /* isolate two
    When cookie beta 1
    /* isolate two
    When not method DELETE
    /* isolate one
    /* status 410
""")
    for fields, name in (({}, "one"), ({"X-Beta": "1"}, "two"), ({"X-Beta": "2"}, "one"), ({"Cookie": "a=b; beta=1"}, "two")):
        assert server.get("/old", fields=fields).text == f"{name} 127.0.0.1 /old\n"
    with server.connect(source="127.0.0.2") as c:
        assert c.get("/", fields={"X-Beta": "1"}).text == "one 127.0.0.2 /\n"
    assert server.get("/old", method="DELETE").status == 410


@pytest.mark.processes("it starts no group of processes")
def test_conditions_protect_an_isolated_service(monkey, site, parts):
    """The conditions of the front server see the client's request and address, before the service does."""
    server = monkey(plugins=["isolate", "rewrite", "security", "limits"], top=parts["one"], sections="""[ROUTES]
    /* isolate one
[REWRITE]
    When    parameter v 2
    Rewrite prefix /old /new
[SECURITY]
    Deny    /new header X-Bad contains bad
    Deny    from 127.0.0.3 header X-A *
[LIMITS]
    Requests /new 2/d when header User-Agent contains bot
""")
    assert server.get("/old").text == "one 127.0.0.1 /old\n" and server.get("/old?v=2").text == "one 127.0.0.1 /new\n"
    assert status(server, source="127.0.0.3") == 200 and status(server, source="127.0.0.3", fields={"X-A": "1"}) == 403
    assert code(server, "/old", X_Bad="bad") == 200 and code(server, "/old?v=2", X_Bad="a bad one") == 403
    assert [code(server, "/old?v=2", User_Agent="bot") for _ in range(3)] == [200, 200, 429] and code(server, "/old", User_Agent="bot") == 200
VARIANTS = ("/admin%2Fx", "/admin;a/x", "/x%2F..%2Fadmin/x")


@pytest.mark.parametrize("condition", ["not path /admin/*", "not contains /admin/"])
@pytest.mark.parametrize("target", VARIANTS)
def test_route_condition_on_the_path_covers_its_interpretations(routed, condition, target):
    with Backend() as backend:
        server = routed([f"When {condition}", f"/* proxy http://{backend.address}", "/admin* status 403", "/* status 404"], plugins=["proxy"])
        assert code(server, target) == 400 and code(server, "/admin/x") == 403
        assert code(server, "/other;a/b%2Fc") == 200 and code(server, "/administration") == 200
        assert all("admin/" not in request.target and ";a/x" not in request.target for request in backend.requests)


def test_route_condition_that_ignores_the_path_accepts_its_interpretations(routed):
    with Backend() as backend:
        server = routed(["When header X-A 1", "/a* status 403", "When not header X-A 1 not path /admin/*", f"/* proxy http://{backend.address}"],
                        plugins=["proxy"])
        assert code(server, "/a;b/c") == 200 and code(server, "/a;b/c", X_A="1") == 403 and code(server, "/admin;b/c") == 400


def test_path_after_a_script_must_not_meet_a_condition_that_rejects_it(routed):
    with Backend() as backend:
        server = routed(["When path /admin/*", "/* status 403", f"*.php/* proxy http://{backend.address}", "/* status 404"], plugins=["proxy"])
        assert code(server, "/index.php/admin/x") == 400 and code(server, "/admin/x") == 403


# ---- Headers that other plugins change ----


def test_limits_see_the_headers_of_the_client_when_they_respond(monkey, site):
    """The bandwidth is decided again when the response is sent; by then, rules have changed the headers."""
    site.add("big", "x" * 400_000)
    server = monkey(plugins=["limits", "headers"], top="[LIMITS]\n    Bandwidth 100K burst 100K by response\n    Except when header X-Key secret\n",
                    sections="[REQUEST_HEADERS]\n    Remove X-Key\n")
    begin = time.monotonic()
    assert len(server.get("/big", fields={"X-Key": "secret"}).body) == 400_000
    assert time.monotonic() - begin < 1.5
    site.add("index.html", "x" * 400_000)
    begin = time.monotonic()
    assert len(server.get("/", fields={"X-Key": "secret"}).body) == 400_000  # the path of the index was not seen before
    assert time.monotonic() - begin < 1.5


def test_header_of_a_rule_does_not_exempt_from_limits(monkey, site):
    site.add("big", "x" * 400_000)
    server = monkey(plugins=["limits", "headers"], top="[LIMITS]\n    Bandwidth 100K burst 100K by response\n    Except when header X-Key *\n",
                    sections="[REQUEST_HEADERS]\n    Set X-Key secret\n")
    begin = time.monotonic()
    assert len(server.get("/big").body) == 400_000
    assert time.monotonic() - begin > 1.5


def test_route_conditions_see_the_headers_of_rules(routed):
    server = routed(["When header X-Key secret", "/a.txt status 410", "/* static"], plugins=["headers"], top="[REQUEST_HEADERS]\n    Set X-Key secret\n")
    assert code(server, "/a.txt") == 410


# ---- Countries and autonomous systems ----

WITHOUT_GEO = "countries" in subprocess.run([PROGRAM, "-V"], capture_output=True, text=True, check=True).stdout.partition("without")[2]
geo = pytest.mark.skipif(WITHOUT_GEO, reason="built without libmaxminddb")


@pytest.fixture
def located(guarded, tmp_path):
    mmdb.write(tmp_path / "country.mmdb", {"192.0.2.0/24": {"country": {"iso_code": "DE"}}, "198.51.100.0/25": {"country": {"iso_code": "FR"}},
                                           "2001:db8::/32": {"country": {"iso_code": "DE"}}, "203.0.113.0/24": {"country": {"x": "y"}}})
    mmdb.write(tmp_path / "asn.mmdb", {"192.0.2.0/25": {"autonomous_system_number": 64500}, "2001:db8:1::/48": {"autonomous_system_number": 64501}})

    def start(rules, databases="country.mmdb asn.mmdb", **how):
        return guarded("TrustedProxy 127.0.0.1\nRealAddress X-Forwarded-For\n" + rules, server=f"    GeoDatabase {databases}\n", **how)
    return start


def place(server, address, target="/"):
    return code(server, target, X_Forwarded_For=address)


@geo
def test_country_of_the_client_selects_requests(located):
    server = located("Deny country de\nDeny /a/* country \"\"")
    for address in ("192.0.2.1", "192.0.2.255", "2001:db8::1", "2001:db8:ffff::"):
        assert place(server, address) == 403
    for address in ("198.51.100.1", "198.51.100.200", "203.0.113.1", "2001:db9::1", "192.0.3.0"):
        assert place(server, address) == 200
    assert place(server, "198.51.100.1", "/a/x.txt") == 200 and place(server, "198.51.100.200", "/a/x.txt") == 403
    assert place(server, "203.0.113.1", "/a/x.txt") == 403


@geo
def test_autonomous_system_of_the_client_selects_requests(located):
    server = located("Deny asn AS64500 64501\nDeny /a/* not country DE FR")
    assert place(server, "192.0.2.1") == 403 and place(server, "2001:db8:1::9") == 403
    assert place(server, "192.0.2.200") == 200 and place(server, "2001:db8:2::") == 200
    assert place(server, "192.0.2.200", "/a/x.txt") == 200 and place(server, "203.0.113.1", "/a/x.txt") == 403


@geo
def test_databases_are_opened_again_at_reload(located, tmp_path):
    server = located("Deny country DE")
    assert place(server, "192.0.2.1") == 403
    mmdb.write(tmp_path / "new.mmdb", {"192.0.2.0/24": {"country": {"iso_code": "FR"}}})
    (tmp_path / "new.mmdb").rename(tmp_path / "country.mmdb")
    server.tell(1)
    server.err.wait_for("the new configuration serves")
    assert place(server, "192.0.2.1") == 200
    (tmp_path / "bad.mmdb").write_bytes(b"\xab\xcd\xefMaxMind.com" + bytes(100))
    (tmp_path / "bad.mmdb").rename(tmp_path / "country.mmdb")
    server.tell(1)
    server.err.wait_for(r"monkey\.conf:\d+:\d+: .*cannot open the database .*country\.mmdb: ")
    assert place(server, "192.0.2.1") == 200


@geo
def test_file_of_a_database_may_be_overwritten(located, tmp_path):
    """`cp new.mmdb country.mmdb` truncates the file that the workers use."""
    mmdb.write(tmp_path / "country.mmdb", {"192.0.2.0/24": {"country": {"iso_code": "DE"}}, **{
        f"10.{i}.{k}.0/24": {"country": {"iso_code": "FR"}} for i in range(8) for k in range(256)}})
    size = (tmp_path / "country.mmdb").stat().st_size
    assert size > 3 * 4096
    server = located("Deny country DE FR")
    (tmp_path / "country.mmdb").write_bytes(b"")
    assert place(server, "10.7.255.1") == 403 and place(server, "192.0.2.1") == 403 and place(server, "198.51.100.1") == 200
    (tmp_path / "country.mmdb").write_bytes(bytes(size))
    assert place(server, "10.7.255.1") == 403 and place(server, "192.0.2.1") == 403
    server.tell(1)
    server.err.wait_for(r"cannot open the database .*country\.mmdb: ")
    assert place(server, "192.0.2.1") == 403


@geo
@pytest.mark.parametrize("rules,databases,message", [
    ("Deny country DE", "none.mmdb", "cannot open the database"), ("Deny country Germany", "country.mmdb", "`Germany` is not a country"),
    ("Deny asn x", "asn.mmdb", "`x` is not the number of an autonomous system"), ("Deny asn 0", "asn.mmdb", "`0` is not the number"),
])
def test_invalid_countries_are_rejected(located, rules, databases, message):
    server = located(rules, databases, expect_start=False)
    server.exit_code = 3
    server.wait()
    assert message in server.err.text


def test_country_without_a_database_is_an_error(guarded):
    server = guarded("Deny country DE", expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "`country` without a database: expected `GeoDatabase FILE` in [SERVER]" in server.err.text
