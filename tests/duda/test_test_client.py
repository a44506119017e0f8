# SPDX-License-Identifier: Apache-2.0
"""The client of `monkey test` (duda/test.h): cookies, forms, JSON, redirects, streams, WebSockets, time, fake servers, and tests
that do not see each other's data."""
import re
import shutil
import xml.etree.ElementTree as ElementTree

import pytest

import postgres_server
import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here")

SERVICE = r"""#define DUDA_USE "duda-sql", "duda-sqlite", "duda-kv", "duda-http", "duda-store"
#include <duda.h>
#include <duda/http.h>
#include <duda/kv.h>
#include <duda/sql.h>
#include <duda/store.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

static int n_cancelled, n_closed; /* streams and WebSockets that the client has ended */
static int count_calls; /* static, so zero at the start of each test */

static int calls(struct duda_ctx *d)
{
    return duda_printf(d, "%d\n", ++count_calls);
}

static int form(struct duda_ctx *d)
{
    return duda_printf(d, "<form method=post><input type=hidden name=csrf_token value=\"%s\"></form>\n", duda_csrf_token(d).p);
}

static int add(struct duda_ctx *d)
{
    int e = duda_form_load(d, NULL, NULL);
    if (e)
        return e;
    e = duda_session_set(d, "name", duda_form(d, "name"));
    return e ? e : duda_redirect(d, 303, MK_STR("/chain?n=2#part"));
}

static int chain(struct duda_ctx *d)
{
    int64_t n = 0;
    mk_str name;
    (void)duda_query_int(d, "n", &n);
    if (n > 0)
        return duda_redirect(d, n == 2 ? 302 : 301, n == 2 ? MK_STR("?n=1") : MK_STR("chain"));
    int e = duda_session_get(d, "name", &name);
    return e ? e : duda_printf(d, "hello %s\n", name.p);
}

static int again(struct duda_ctx *d)
{
    return duda_redirect(d, 307, MK_STR("/echo"));
}

static int away(struct duda_ctx *d)
{
    return duda_redirect(d, 303, MK_STR("https://example.org/"));
}

static int echo(struct duda_ctx *d)
{
    mk_str body;
    int e = duda_read_all(d, 1 << 20, &body);
    return e ? e : duda_printf(d, "%s %s", duda_method(d).p, body.len ? body.p : "");
}

static int upload(struct duda_ctx *d)
{
    int e = duda_form_load(d, NULL, NULL);
    const struct mk_upload *file = e ? NULL : duda_upload(d, "file");
    return e ? e : duda_printf(d, "%s|%.*s", duda_form(d, "title").p, MK_STR_ARG(file->file_name));
}

static int expire(struct duda_ctx *d)
{
    duda_header_add(d, "Set-Cookie", MK_STR("short=1; Max-Age=60; Path=/"));
    duda_header_add(d, "Set-Cookie", MK_STR("deep=2; Path=/deep"));
    duda_header_add(d, "Set-Cookie", MK_STR("long=3; Path=/"));
    return duda_puts(d, "set\n");
}

static int cookies(struct duda_ctx *d)
{
    return duda_printf(d, "%s\n", duda_header(d, "Cookie").p ? duda_header(d, "Cookie").p : "none");
}

static int json(struct duda_ctx *d)
{
    duda_content_type(d, MK_STR("application/json"));
    return duda_puts(d, "{\"items\": [{\"name\": \"t\\u00e9a\", \"price\": 2.50}, {\"name\": \"milk\"}], \"more\": null}");
}

static int news(struct duda_ctx *d)
{
    for (int i = 0; i < 3; i++) {
        char text[32];
        snprintf(text, sizeof text, "line %d\nsecond", i);
        int e = duda_sse_send(d, &(struct mk_sse_event){.name = i == 1 ? MK_STR("one") : MK_STR_NULL, .data = mk_str_from_c(text)});
        if (e)
            return e;
        e = duda_sleep(d, i == 0 ? 0 : 3600000);
        n_cancelled += e == -ECANCELED;
        if (e)
            return e;
    }
    return 0;
}

static int chunks(struct duda_ctx *d)
{
    int e = duda_puts(d, "first");
    e = e ? e : duda_flush(d);
    e = e ? e : duda_sleep(d, 20);
    return e ? e : duda_puts(d, "second");
}

static int chat(struct duda_ctx *d)
{
    struct duda_websocket *w = NULL;
    struct duda_message m;
    int e = duda_websocket_open(d, NULL, NULL, &w);
    while (!e && (e = duda_websocket_receive(d, w, &m)) == 1 && !(e = 0))
        if (mk_str_eq(m.data, MK_STR("bye")))
            duda_websocket_close(w, 4000, MK_STR("so long"));
        else
            e = duda_websocket_send(d, w, m.kind, m.data);
    n_closed += w != NULL;
    return e;
}

static int ended(struct duda_ctx *d)
{
    return duda_printf(d, "%d %d", n_cancelled, n_closed);
}

static int now(struct duda_ctx *d)
{
    return duda_printf(d, "%lld\n", (long long)time(NULL));
}

static int insert(struct duda_ctx *d)
{
    struct duda_sql_db *sql = duda_sql_find(d, NULL);
    struct duda_sql_result result;
    int e = duda_sql_query(d, sql, &result, "INSERT INTO t (x) VALUES (1)");
    e = e ? e : duda_sql_query(d, sql, &result, "SELECT count(*) FROM t");
    return e ? e : duda_printf(d, "%lld\n", (long long)duda_sql_cell(&result, 0, 0)->number);
}

static int keep(struct duda_ctx *d)
{
    struct duda_kv *kv = duda_kv_find(d, NULL);
    mk_str value;
    int e = duda_kv_get(d, kv, MK_STR("k"), &value);
    if (e == 0)
        return duda_puts(d, "there\n");
    e = duda_kv_set(d, kv, MK_STR("k"), MK_STR("v"), 0);
    return e ? e : duda_puts(d, "new\n");
}

static int price(struct duda_ctx *d)
{
    struct duda_http_response response;
    const struct duda_http_request request = {.method = MK_STR("POST"), .target = MK_STR("/rates?of=EUR"), .body = MK_STR("please")};
    int e = duda_http_fetch(d, duda_http_find(d, "rates"), &request, &response);
    return e ? e : duda_printf(d, "%u %s\n", response.status, response.body.p);
}

static int hook(struct duda_ctx *d)
{
    struct duda_http_response response;
    const struct duda_http_request request = {.url = MK_STR("https://hooks.example.org/a?b"), .max_redirects = 1};
    int e = duda_http_fetch(d, duda_http_find(d, "hooks"), &request, &response);
    return e ? e : duda_printf(d, "%u %s\n", response.status, response.url.p);
}

DUDA_SERVICE(tested, DUDA_GET("/hook", hook), DUDA_GET("/calls", calls), DUDA_GET("/form", form), DUDA_POST("/form", add), DUDA_GET("/chain", chain),
    DUDA_POST("/again", again), DUDA_ANY("/echo", echo), DUDA_GET("/away", away), DUDA_POST("/upload", upload),
    DUDA_GET("/expire", expire), DUDA_GET("/cookies", cookies), DUDA_GET("/deep/cookies", cookies), DUDA_GET("/json", json),
    DUDA_GET("/news", news), DUDA_GET("/chunks", chunks), DUDA_GET("/chat", chat), DUDA_GET("/now", now), DUDA_GET("/insert", insert),
    DUDA_GET("/ended", ended), DUDA_GET("/keep", keep), DUDA_GET("/price", price));
"""
CONF = """[PLUGINS]
    Load duda-sqlite
[SQLITE]
    File       {folder}/data.db
    Migrations {folder}/migrations
[KV]
    Folder     {folder}/store
[HTTP_CLIENT]
    Name       rates
    Server     127.0.0.1:1
[HTTP_CLIENT]
    Name       hooks
    AllowHosts hooks.example.org
"""


@pytest.fixture
def case(run, tmp_path, tmp_path_factory):
    """case(TESTS, words...) runs tests of the service above."""
    cache = tmp_path_factory.getbasetemp() / "cache"
    cache.mkdir(exist_ok=True)
    (tmp_path / "tested.c").write_text(SERVICE)
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations/1-t.sql").write_text("CREATE TABLE t (x INTEGER);\n")
    (tmp_path / "tested.conf").write_text(CONF.format(folder=tmp_path))

    def start(tests, *words):
        (tmp_path / "tested_test.c").write_text("#include <duda/test.h>\n#include <stdio.h>\n" + tests)
        return run("test", "-i", tmp_path / "tested.conf", *words, tmp_path / "tested_test.c",
                   environment={"XDG_CACHE_HOME": str(cache), "TMPDIR": "/tmp"})
    return start


def passes(done, n):
    assert done.code == 0 and re.search(rf"^{n} tests? passed$", done.out, re.MULTILINE), done


def test_each_test_meets_a_new_service_without_data(case, tmp_path):
    """Each test begins with zeroed static variables and empty databases and stores; the configured ones remain untouched, also in a
    second run."""
    tests = "\n".join("""
DUDA_TEST(%s)
{
    duda_expect_text(t, duda_test_get(t, "/calls").body, "1\\n");
    duda_expect_text(t, duda_test_get(t, "/insert").body, "1\\n");
    duda_expect_text(t, duda_test_get(t, "/insert").body, "2\\n");
    duda_expect_text(t, duda_test_get(t, "/keep").body, "new\\n");
    duda_expect_text(t, duda_test_get(t, "/keep").body, "there\\n");
}""" % name for name in ("one", "two"))
    passes(case(tests), 2)
    passes(case(tests), 2)
    assert not (tmp_path / "data.db").exists() and not (tmp_path / "store").exists()


def test_client_sends_forms_and_cookies_and_follows_redirects(case):
    passes(case(r"""
DUDA_TEST(logs_in)
{
    struct duda_test_response page = duda_test_get(t, "/form");
    struct duda_test_response reply = duda_test_post_form(t, "/form", "name", "Ada & \"co\"", "csrf_token",
                                                          duda_test_csrf_token(t, page), NULL);
    duda_expect_status(t, reply, 303);
    reply = duda_test_follow(t, reply);
    duda_expect_text(t, reply.body, "hello Ada & \"co\"\n");
    duda_expect_text(t, reply.target, "/chain");
    duda_test_clear_cookies(t);
    duda_expect(t, duda_test_get(t, "/chain").status != 200);
}
DUDA_TEST(repeats_the_request)
{
    duda_expect_text(t, duda_test_follow(t, duda_test_post(t, "/again", "text/plain", "body")).body, "POST body");
}
DUDA_TEST(uploads)
{
    const struct duda_test_part parts[] = {{.name = "title", .value = "a \"title\""},
                                           {.name = "file", .file_name = "a.txt", .type = "text/plain", .content = MK_STR_INIT("bytes")}};
    duda_expect_text(t, duda_test_post_multipart(t, "/upload", parts, 2).body, "a \"title\"|a.txt");
}
DUDA_TEST(cookies_have_paths_and_expire)
{
    duda_test_get(t, "/expire");
    duda_expect_text(t, duda_test_get(t, "/cookies").body, "short=1; long=3\n");
    duda_expect_text(t, duda_test_get(t, "/deep/cookies").body, "short=1; deep=2; long=3\n");
    duda_test_advance_clock(t, 61000);
    duda_expect_text(t, duda_test_get(t, "/cookies").body, "long=3\n");
    duda_expect_text(t, duda_test_cookie(t, "long"), "3");
    duda_expect(t, !duda_test_cookie(t, "short").p);
    duda_test_set_cookie(t, "long", NULL);
    duda_test_set_cookie(t, "own", "4");
    duda_expect_text(t, duda_test_get(t, "/cookies").body, "own=4\n");
    duda_expect_text(t, duda_test_send(t, &(struct duda_test_request){.target = "/cookies", .headers = "Cookie: a=b\r\n"}).body, "a=b\n");
}
"""), 4)


def test_json_is_compared_by_value(case):
    done = case(r"""
DUDA_TEST(equal)
{
    mk_str body = duda_test_get(t, "/json").body;
    duda_expect_json(t, body, "{\"more\":null, \"items\":[{\"price\":2.5,\"name\":\"t\xc3\xa9" "a\"},{\"name\":\"milk\"}]}");
    duda_expect_text(t, duda_test_json(t, body, "/items/1/name"), "milk");
    duda_expect_text(t, duda_test_json(t, body, "/items/0/price"), "2.50");
    duda_expect(t, !duda_test_json(t, body, "/items/2").p && !duda_test_json(t, body, "/nothing/at/all").p);
}
DUDA_TEST(differs)
{
    duda_expect_json(t, MK_STR("{\"a\":[1,{\"b\":\"x\"}]}"), "{\"a\":[1,{\"b\":\"y\"}]}");
    duda_expect_json(t, MK_STR("{\"a\":1}"), "{\"a\":1,\"b\":true}");
    duda_expect_json(t, MK_STR("{\"a\":1,\"c\":[]}"), "{\"a\":1}");
    duda_expect_json(t, MK_STR("[1,2]"), "[1]");
    duda_expect_json(t, MK_STR("{\"a\":1"), "{\"a\":1}");
    duda_expect_json(t, MK_STR("1"), "{1}");
}
""")
    assert done.code == 1 and "ok tested.equal" in done.out
    shown = [line.split("tested_test.c:")[1] for line in done.out.splitlines() if "tested_test.c:" in line]
    assert [re.sub(r'^\d+: MK_STR\(.*?\): (?=\$|it is|the exp)', "", line) for line in shown] == [
        '$.a[1].b: expected "y", got "x"', "$.b: expected true, got nothing", "$.c: expected nothing, got []",
        "$[1]: expected nothing, got 2", 'it is not JSON: expected {"a":1}, got {"a":1', "the expected text is not JSON: expected {1}, got 1"]


def test_client_reads_streams_and_websockets(case):
    passes(case(r"""
DUDA_TEST(events)
{
    struct duda_test_event event;
    struct duda_test_stream *s = duda_test_stream_open(t, &(struct duda_test_request){.target = "/news"});
    duda_expect_status(t, duda_test_stream_response(s), 200);
    duda_expect(t, duda_test_stream_event(s, 5000, &event));
    duda_expect_text(t, event.data, "line 0\nsecond");
    duda_expect_text(t, event.name, "message");
    duda_expect(t, duda_test_stream_event(s, 5000, &event));
    duda_expect_text(t, event.name, "one");
    duda_expect(t, !duda_test_stream_event(s, 50, &event));
    duda_test_advance_clock(t, 3600000);
    duda_expect(t, duda_test_stream_event(s, 5000, &event));
    duda_expect_text(t, event.data, "line 2\nsecond");
    duda_expect(t, !duda_test_stream_ended(s, 50));
    duda_test_advance_clock(t, 3600000);
    duda_expect(t, duda_test_stream_ended(s, 5000));
}
DUDA_TEST(chunks)
{
    mk_str data;
    struct duda_test_stream *s = duda_test_stream_open(t, &(struct duda_test_request){.target = "/chunks"});
    duda_expect(t, duda_test_stream_read(s, 5000, &data));
    duda_expect_text(t, data, "first");
    duda_expect(t, duda_test_stream_read(s, 5000, &data));
    duda_expect_text(t, data, "second");
    duda_expect(t, !duda_test_stream_read(s, 5000, &data) && duda_test_stream_ended(s, 0));
}
DUDA_TEST(open_stream_does_not_delay_the_end)
{
    duda_expect_status(t, duda_test_stream_response(duda_test_stream_open(t, &(struct duda_test_request){.target = "/news"})), 200);
}
DUDA_TEST(client_disconnects)
{
    struct duda_test_event event;
    struct duda_test_stream *s = duda_test_stream_open(t, &(struct duda_test_request){.target = "/news"});
    duda_expect(t, duda_test_stream_event(s, 5000, &event));
    duda_test_stream_close(s);
    struct duda_test_websocket *w = duda_test_websocket_open(t, &(struct duda_test_request){.target = "/chat"});
    duda_test_websocket_close(w, 4001);
    duda_test_wait(t, 200);
    duda_expect_text(t, duda_test_get(t, "/ended").body, "1 1");
}
DUDA_TEST(websocket)
{
    static char large[70000];
    struct duda_test_message m;
    struct duda_test_websocket *w = duda_test_websocket_open(t, &(struct duda_test_request){.target = "/chat"});
    duda_expect_status(t, duda_test_websocket_response(w), 101);
    duda_expect(t, duda_test_websocket_send(w, "hi") && duda_test_websocket_receive(w, 5000, &m));
    duda_expect_text(t, m.data, "hi");
    duda_expect(t, duda_test_websocket_send_binary(w, mk_str_of(large, sizeof large)) && duda_test_websocket_receive(w, 5000, &m));
    duda_expect(t, m.kind == DUDA_TEST_BINARY && m.data.len == sizeof large);
    duda_expect(t, !duda_test_websocket_receive(w, 20, &m));
    duda_expect(t, duda_test_websocket_send(w, "bye") && duda_test_websocket_receive(w, 5000, &m));
    duda_expect(t, m.kind == DUDA_TEST_CLOSE);
    duda_expect_int(t, m.close_code, 4000);
    duda_expect_text(t, m.data, "so long");
    duda_expect(t, !duda_test_websocket_send(w, "late"));
    duda_expect_status(t, duda_test_websocket_response(duda_test_websocket_open(t, &(struct duda_test_request){.target = "/none"})), 404);
}
"""), 5)


def test_clock_is_advanced_and_set(case):
    passes(case(r"""
#include <stdlib.h>
#include <time.h>
DUDA_TEST(advances)
{
    long before = atol(duda_test_get(t, "/now").body.p);
    duda_test_advance_clock(t, 86400000);
    long after = atol(duda_test_get(t, "/now").body.p);
    duda_expect(t, after - before >= 86400 && after - before < 86430);
    duda_test_set_time(t, 1000000000);
    after = atol(duda_test_get(t, "/now").body.p);
    duda_expect(t, after >= 1000000000 && after < 1000000030);
    duda_expect(t, time(NULL) >= 1000000000 && time(NULL) < 1000000030);
}
DUDA_TEST(starts_anew)
{
    duda_expect(t, atol(duda_test_get(t, "/now").body.p) > 1600000000);
}
"""), 2)


def test_fake_server_responds_and_records_requests(case):
    done = case(r"""
DUDA_TEST(responds)
{
    struct duda_test_backend *rates = duda_test_backend_start(t, "rates");
    duda_test_backend_respond(rates, "POST /rates", 200, "text/plain", "one");
    duda_expect_text(t, duda_test_get(t, "/price").body, "200 one\n");
    duda_test_backend_respond(rates, "POST /rates?of=EUR", 503, "text/plain", "two");
    duda_expect_text(t, duda_test_get(t, "/price").body, "503 two\n");
    duda_expect_int(t, duda_test_backend_count(rates), 2);
    duda_expect_text(t, duda_test_backend_received(rates, 1).target, "/rates?of=EUR");
    duda_expect_text(t, duda_test_backend_received(rates, 1).body, "please");
    duda_expect_contains(t, duda_test_backend_received(rates, 0).headers, "ost: ");
    duda_expect(t, !duda_test_backend_received(rates, 2).method.p);
}
DUDA_TEST(any_host)
{
    struct duda_test_backend *hooks = duda_test_backend_start(t, "hooks");
    duda_test_backend_respond(hooks, "GET /a", 200, "text/plain", "one");
    duda_expect_text(t, duda_test_get(t, "/hook").body, "200 https://hooks.example.org/a?b\n");
    duda_expect_contains(t, duda_test_backend_received(hooks, 0).headers, "hooks.example.org");
}
DUDA_TEST(unexpected)
{
    duda_test_backend_start(t, "rates");
    duda_expect_text(t, duda_test_get(t, "/price").body, "501 unexpected request\n\n");
}
DUDA_TEST(without) { duda_expect_status(t, duda_test_get(t, "/price"), 503); }
DUDA_TEST(late) { duda_test_get(t, "/now"); duda_test_backend_start(t, "rates"); }
""")
    assert "\nok tested.responds" in "\n" + done.out and "\nok tested.any_host" in done.out and "\nok tested.without" in done.out, done
    assert "backend `rates`: unexpected request: POST /rates?of=EUR" in done.out and "not ok tested.unexpected" in done.out
    assert "create it before the first request" in done.out and "not ok tested.late" in done.out and done.code == 1


def test_failures_of_helpers_are_reported(case):
    done = case(r"""
DUDA_TEST(token) { duda_test_csrf_token(t, duda_test_get(t, "/calls")); }
DUDA_TEST(redirect) { duda_test_follow(t, duda_test_get(t, "/calls")); }
DUDA_TEST(away) { duda_test_follow(t, duda_test_get(t, "/away")); }
DUDA_TEST(fine) { duda_expect_status(t, duda_test_get(t, "/calls"), 200); }
""")
    assert done.code == 1 and done.out.endswith("3 of 4 tests failed\n")
    assert "  GET /calls: the response contains no CSRF token\nnot ok tested.token" in done.out
    assert "  GET /calls: the response is no redirect\nnot ok tested.redirect" in done.out
    assert "  GET /away: the redirect leads to another host, or nowhere\nnot ok tested.away" in done.out


def test_selected_tests_are_reported_as_junit(case, tmp_path):
    tests = r"""
#include <stdlib.h>
DUDA_TEST(first_one) { (void)t; }
DUDA_TEST(second_one) { duda_expect_text(t, duda_test_get(t, "/calls").body, "<&>\n"); }
DUDA_TEST(crashes) { (void)t; abort(); }
"""
    done = case(tests, "-k", "one", "--junit", tmp_path / "out.xml")
    assert done.code == 1 and done.out.endswith("1 of 2 tests failed\n"), done
    suite = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    cases = {one.get("name"): one for one in suite}
    assert set(cases) == {"first_one", "second_one"} and cases["first_one"].find("failure") is None
    assert '"<&>\\n"' in cases["second_one"].find("failure").text
    passes(case(tests, "-k", "first*"), 1)
    passes(case(tests, "-k", "tested.first"), 1)
    done = case(tests, "-k", "none")
    assert done.code == 1 and "none: no test has such a name" in done.err
    done = case(tests, "--junit", tmp_path / "out.xml")
    assert done.code == 1 and done.out.endswith("2 of 3 tests failed\n"), done
    crash = ElementTree.parse(tmp_path / "out.xml").getroot()[2]
    assert crash.get("name") == "crashes" and "it crashed" in crash.find("failure").text
    done = case(tests, "-k", "first", "--junit", tmp_path / "none/out.xml")
    assert done.code == 1 and "out.xml: No such file" in done.err


@pytest.mark.skipif(not services.has("postgres") or not postgres_server.is_usable(), reason="this build has no libpq, or there is no PostgreSQL")
def test_each_test_has_its_own_schema(run, tmp_path, tmp_path_factory):
    """Tests neither see nor change the existing tables of the database, and no schema remains."""
    cache = tmp_path_factory.getbasetemp() / "cache"
    cache.mkdir(exist_ok=True)
    source = SERVICE.replace('"duda-sqlite", "duda-kv", "duda-http", "duda-store"', '"duda-postgres", "duda-kv", "duda-http", "duda-store"')
    (tmp_path / "tested.c").write_text(source)
    (tmp_path / "tested_test.c").write_text("""#include <duda/test.h>
DUDA_TEST(one)
{
    duda_expect_text(t, duda_test_get(t, "/insert").body, "1\\n");
    duda_expect_text(t, duda_test_get(t, "/insert").body, "2\\n");
}
DUDA_TEST(two) { duda_expect_text(t, duda_test_get(t, "/insert").body, "1\\n"); }
""")
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations/1-t.sql").write_text("CREATE TABLE t (x INTEGER);\n")
    server = postgres_server.Postgres()
    address = server.database()
    server.sql("CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (7);", "d1")
    (tmp_path / "tested.conf").write_text(f"[POSTGRES]\n    Server {address}\n    Migrations {tmp_path}/migrations\n")
    for _ in range(2):
        passes(run("test", "-i", tmp_path / "tested.conf", tmp_path / "tested_test.c",
                   environment={"XDG_CACHE_HOME": str(cache), "TMPDIR": "/tmp"}), 2)
    assert server.sql("SELECT count(*) FROM t", "d1") == "1"
    assert server.sql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'monkey%'", "d1") == "0"
    server.sql("CREATE ROLE poor LOGIN", "d1")
    (tmp_path / "tested.conf").write_text(f"[POSTGRES]\n    Server {address.replace('user=ana', 'user=poor')}\n")
    done = run("test", "-i", tmp_path / "tested.conf", "-k", "two", tmp_path / "tested_test.c",
               environment={"XDG_CACHE_HOME": str(cache), "TMPDIR": "/tmp"})
    assert done.code == 1 and "cannot create a schema for this test: ERROR:  permission denied" in done.err, done
    assert server.sql("SELECT count(*) FROM t", "d1") == "1"
