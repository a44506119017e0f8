# SPDX-License-Identifier: Apache-2.0
"""Responses of services: redirects, conditional requests, files, events, early hints, and injection attempts by
clients."""
import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <fcntl.h>
#include <stdlib.h>
#include <errno.h>
#include <time.h>

static int away(struct duda_ctx *d)
{
    return duda_redirect(d, 303, mk_str_from_c(duda_query_or(d, "to", "/")));
}

static int local(struct duda_ctx *d)
{
    return duda_redirect_local(d, 303, duda_query(d, "to"));
}

static int page(struct duda_ctx *d)
{
    int e = duda_check_preconditions(d, MK_STR("v1"), 1000000000);
    return e ? e : duda_puts(d, "a page\n");
}

static int file(struct duda_ctx *d)
{
    return duda_send_file(d, mk_str_from_c(duda_query_or(d, "name", "/none")));
}

static int event(struct duda_ctx *d)
{
    int e = duda_sse_send(d, NULL);
    for (int i = 0; i < 3 && !e; i++) {
        size_t mark = duda_arena_mark(d);
        e = duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("tick"), .data = duda_sprintf(d, "one\r\ntwo %d", i), .id = MK_STR("7")});
        duda_arena_rewind(d, mark);
        if (!e)
            e = duda_sleep(d, 20);
    }
    return e;
}

static int hinted(struct duda_ctx *d)
{
    int e = duda_early_hints(d, MK_STR("</style.css>; rel=preload; as=style"));
    return e ? e : duda_html(d, duda_html_escape(d, MK_STR("<b>\"&\"</b>")));
}

static int field(struct duda_ctx *d)
{
    int e = duda_header_set(d, "X-Said", duda_query(d, "value"));
    return e == -EINVAL ? duda_puts(d, "refused\n") : e ? e : duda_puts(d, "set\n");
}

static int typed(struct duda_ctx *d)
{
    int e = mk_str_eq(duda_query(d, "how"), MK_STR("added")) ? duda_header_add(d, "content-type", MK_STR("text/x")) : 0;
    if (mk_str_eq(duda_query(d, "how"), MK_STR("set")))
        e = duda_content_type(d, MK_STR("text/x"));
    e = e ? e : duda_send_json(d, duda_value_integer(1));
    e = e ? e : duda_send_json(d, duda_value_integer(2));
    return !e && mk_str_eq(duda_query(d, "how"), MK_STR("changed")) ? duda_problem(d, 409, "no") : e;
}

/* A function of the server sets the type; the parameter `by` selects the function that sets the body. */
static int typed_by_server(struct duda_ctx *d)
{
    mk_str by = duda_query(d, "by");
    int e = mk_response_add_header(duda_response(d), MK_STR("content-type"), MK_STR("text/x"));
    if (!e && mk_str_eq(by, MK_STR("body")))
        return mk_response_set_body_nocopy(duda_response(d), MK_STR("body"));
    if (!e && mk_str_eq(by, MK_STR("status")))
        return mk_response_set_status(duda_response(d), 200);
    if (!e && mk_str_eq(by, MK_STR("reset")))
        e = (duda_status(d, 201) || duda_puts(d, "dropped")) ? -EINVAL : duda_response_reset(d);
    if (e || mk_str_eq(by, MK_STR("reset")))
        return e;
    return mk_str_eq(by, MK_STR("json"))     ? duda_send_json(d, duda_value_integer(1))
           : mk_str_eq(by, MK_STR("html"))   ? duda_html(d, MK_STR("page"))
           : mk_str_eq(by, MK_STR("file"))   ? duda_send_file(d, MK_STR("/a.html"))
           : mk_str_eq(by, MK_STR("stream")) ? duda_puts(d, "text") || duda_flush(d)
           : mk_str_eq(by, MK_STR("event"))  ? duda_sse_send(d, &(struct mk_sse_event){.data = MK_STR("text")})
                                             : duda_puts(d, "text");
}

static int logged(struct duda_ctx *d)
{
    duda_log(d, MK_LOG_WARN, "said by %s", "me");
    return duda_puts(d, duda_request_id(d).p);
}

static int endless(struct duda_ctx *d)
{
    for (int e = 0; ; )
        if ((e = duda_puts(d, "all work and no play makes a long page\n")))
            return e;
}

static void note(void *ctx)
{
    struct duda_ctx *d = ctx;
    duda_log(d, MK_LOG_WARN, "deferred, result %d", duda_cancelled(d));
}

static int patient(struct duda_ctx *d)
{
    if (duda_defer(d, note, d))
        return 503;
    int e = duda_sleep(d, 3600000);
    duda_log(d, MK_LOG_WARN, "cancelled: %d %d", e == -ECANCELED, duda_sleep(d, 1) == -ECANCELED);
    return e;
}

static int stubborn(struct duda_ctx *d)
{
    if (duda_defer(d, note, d))
        return 503;
    for (int i = 0; ; i++)
        if (duda_sleep(d, 10) && i == -1)
            return 0;
}

static int work_slowly(void *job)
{
    struct timespec t = {.tv_nsec = 300000000};
    nanosleep(&t, NULL);
    *(int *)job = 1;
    return 0;
}

static int abandoned(struct duda_ctx *d)
{
    int done = 0, e = duda_offload(d, NULL, work_slowly, &done, sizeof done);
    duda_log(d, MK_LOG_WARN, "abandoned: %d", e == -ECANCELED);
    return e;
}

static int echo(struct duda_ctx *d)
{
    char buffer[1000];
    ssize_t n;
    int e = 0;
    while (!e && (n = duda_read(d, buffer, sizeof buffer)) > 0)
        e = duda_write(d, mk_str_of(buffer, (size_t)n));
    return e ? e : n < 0 ? (int)n : 0;
}

static int broken(struct duda_ctx *d)
{
    int e = duda_puts(d, "begun");
    e = e ? e : duda_flush(d);
    e = e ? e : duda_sleep(d, 10);
    return e ? e : -EIO;
}

DUDA_SERVICE(third,
    DUDA_GET("/away", away, ""), DUDA_GET("/local", local, ""), DUDA_GET("/page", page, ""), DUDA_PUT("/page", page, ""),
    DUDA_GET("/file", file, ""), DUDA_GET("/events", event, ""), DUDA_GET("/hinted", hinted, ""),
    DUDA_GET("/field", field, ""), DUDA_GET("/typed", typed, ""),
    DUDA_GET("/typed_by_server", typed_by_server, ""), DUDA_GET("/logged", logged, ""), DUDA_GET("/endless", endless, ""),
    DUDA_GET("/patient", patient, ""), DUDA_GET("/stubborn", stubborn, "", .deadline_ms = 50),
    DUDA_GET("/abandoned", abandoned, ""), DUDA_POST("/echo", echo, ""), DUDA_GET("/broken", broken, ""));
"""


def prepare(monkey, site):
    site.add("a.html", "<p>a file", mtime=1_500_000_000)
    site.add("folder/b.txt", "b")
    monkey(plugins=["security", services.build(site.path.parent, "third", SOURCE)], top="[SECURITY]\n    TrustedProxy 127.0.0.1\n")


@pytest.fixture
def server(lasting):
    return lasting(prepare)


def test_redirect_encodes_the_location(server):
    answer = server.get("/away?to=/x%3Fa%3D1")
    assert (answer.status, answer["Location"]) == (303, "/x?a=1")
    assert server.get("/away?to=/%D0%80")["Location"] == "/%D0%80", "the first byte beyond ASCII"
    assert server.get("/away?to=/caf%C3%A9%20%3C%22%25zz%3Fa%3Db%23c")["Location"] == "/caf%C3%A9%20%3C%22%zz?a=b#c"
    assert server.get("/away?to=/x%0D%0ASet-Cookie:%20a")["Location"] == "/x%0D%0ASet-Cookie:%20a"
    assert server.get("/away?to=/%09/evil.example")["Location"] == "/%09/evil.example", "browsers remove a tab"
    for byte in [*range(1, 33), 0x7f]:
        assert server.get(f"/away?to=/%{byte:02X}/x")["Location"] == f"/%{byte:02X}/x"


def test_local_redirect_rejects_other_hosts(server):
    for to, location in [("/", "/"), ("/a/b%3Fc=d%23e", "/a/b?c=d#e"), ("/a//b", "/a//b"), ("/caf%C3%A9%20x", "/caf%C3%A9%20x"),
                         ("/a%5Cb", "/a%5Cb"), ("/@x:80", "/@x:80")]:
        answer = server.get(f"/local?to={to}")
        assert (answer.status, answer["Location"]) == (303, location), to
    for to in ["//evil.example", "/%5Cevil.example", "https://evil.example", "evil.example", "", "%5C/evil.example", "/%09/evil.example",
               "/%0A/evil.example", "%09//evil.example", "%20//evil.example", "javascript:alert(1)", "/a%7F", "/%00/evil.example"]:
        answer = server.get(f"/local?to={to}")
        assert answer.status == 400 or answer["Location"] == "/", to
    assert server.get("/local").status == 400


def test_header_with_line_break_is_rejected(server):
    assert server.get("/field?value=x").text == "set\n"
    answer = server.get("/field?value=x%0D%0ASet-Cookie:%20a=b")
    assert answer.text == "refused\n" and "Set-Cookie" not in answer and "X-Said" not in answer


def test_response_has_one_content_type(server):
    for how, status, kind in (("", 200, "application/json"), ("added", 200, "text/x"), ("set", 200, "text/x"),
                              ("changed", 409, "application/problem+json")):
        answer = server.get(f"/typed?how={how}")
        assert (answer.status, answer.all("Content-Type")) == (status, [kind]), how
        assert how == "changed" or answer.text == "12"


def test_content_type_set_by_server_function_is_kept(server):
    """A header, status or body that a handler sets with duda_response() has the same effect as one set with Duda's
    functions."""
    for by, text in (("puts", "text"), ("json", "1"), ("html", "page"), ("file", "<p>a file"), ("stream", "text"), ("body", "body"), ("status", "")):
        answer = server.get(f"/typed_by_server?by={by}")
        assert (answer.status, answer.all("Content-Type"), answer.text) == (200, ["text/x"], text), by
    assert server.get("/typed_by_server?by=event").all("Content-Type") == ["text/event-stream"]
    assert server.get("/typed_by_server?by=reset").status == 204


def test_preconditions_select_the_status(server):
    page = server.get("/page")
    assert (page.status, page["ETag"], page.text) == (200, '"v1"', "a page\n")
    for fields, method, status in (
            ([("If-None-Match", '"v1"')], "GET", 304), ([("If-None-Match", 'W/"v1", "x"')], "GET", 304),
            ([("If-None-Match", '"v2"')], "GET", 200), ([("If-None-Match", "*")], "PUT", 412),
            ([("If-Modified-Since", page["Last-Modified"])], "GET", 304), ([("If-Match", '"v2"')], "PUT", 412),
            ([("If-Match", '"v1"')], "PUT", 200),
            ([("If-Unmodified-Since", "Sat, 08 Sep 2001 01:46:39 GMT")], "PUT", 412)):
        assert server.get("/page", method=method, fields=fields).status == status, fields


def test_send_static_stays_in_its_folder(server):
    answer = server.get("/file?name=/a.html")
    assert (answer.text, answer["Last-Modified"]) == ("<p>a file", "Fri, 14 Jul 2017 02:40:00 GMT")
    assert answer["Content-Type"].startswith("text/html")
    assert server.get("/file?name=/a.html", fields=[("If-None-Match", answer["ETag"])]).status == 304
    for name in ("/none", "/folder", "/../monkey.conf", "/folder/../../monkey.conf", "a.html", "/a.html/", "/a.html%00"):
        assert server.get(f"/file?name={name}").status == 404, name


def test_sse_events_are_formatted(server):
    answer = server.get("/events")
    assert [answer[name] for name in ("Content-Type", "Cache-Control", "X-Accel-Buffering")] == ["text/event-stream", "no-store", "no"]
    assert answer.text == ":\n\n" + "".join(f"event: tick\nid: 7\ndata: one\ndata: two {i}\n\n" for i in range(3))


def test_early_hints_precede_the_response(server):
    with server.connect() as client:
        client.ask("/hinted")
        hint = client.read_interim()
        assert (hint.status, hint["Link"]) == (103, "</style.css>; rel=preload; as=style")
        assert client.read().text == "&lt;b&gt;&quot;&amp;&quot;&lt;/b&gt;"


def test_request_id_is_generated_or_taken_from_the_client(server):
    name = server.get("/logged").text
    assert len(name) == 32
    server.err.wait_for(rf"said by me \(request {name}\)")
    assert server.get("/logged", fields=[("X-Request-Id", "a-1")]).text == "a-1"
    assert len(server.get("/logged", fields=[("X-Request-Id", "a b")]).text) == 32


def test_client_may_leave_an_endless_response(server):
    with server.connect() as client:
        client.ask("/endless")
        client.read_head()
        client.read_exactly(100_000)


def test_handler_is_cancelled_when_its_client_disconnects(server):
    with server.connect() as client:
        client.ask("/patient")
    server.err.wait_for("cancelled: 1 1")
    server.err.wait_for("deferred, result -125")


def test_handler_that_ignores_cancellation_is_terminated(server):
    assert server.get("/stubborn").status == 504
    server.err.wait_for(r"stubborn\(\) in .*third.c:\d+ ignores cancellation and was terminated")


def test_offloaded_thread_may_outlive_its_handler(server):
    with server.connect() as client:
        client.ask("/abandoned")
    server.err.wait_for("abandoned: 1")


def test_echo_reads_and_writes_at_the_same_time(server):
    data = bytes(range(256)) * 4000
    answer = server.get("/echo", method="POST", body=data)
    assert answer.body == data


def test_client_that_expects_100_continue_gets_it(server):
    with server.connect() as client:
        client.ask("/echo", method="POST", fields=[("Content-Length", "3"), ("Expect", "100-continue")])
        assert client.read_interim().status == 100
        client.more(b"abc")
        assert client.read(method="POST").text == "abc"


def test_head_of_a_streamed_response_has_no_body(server):
    for path in ("/events", "/endless", "/broken"):
        answer = server.get(path, method="HEAD")
        assert (answer.status, answer.text) == (200, ""), path


def test_failure_in_the_middle_of_a_response_aborts_it(server):
    with server.connect() as client:
        client.ask("/broken")
        with pytest.raises(AssertionError):
            client.read()
    server.err.wait_for(r"broken\(\) in .*third.c:\d+ answered -EIO")
