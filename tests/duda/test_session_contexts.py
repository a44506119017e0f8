# SPDX-License-Identifier: Apache-2.0
"""The session of a request whose error handlers have another context than its handler, or belong to another service."""
import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>

static int log_in(struct duda_ctx *d)
{
    int e = duda_session_log_in(d, MK_STR("NAME"));
    return e ? e : duda_puts(d, "in\n");
}

static int slow(struct duda_ctx *d)
{
    mk_str user;
    int e = duda_session_user(d, &user);
    return e ? e : duda_sleep(d, 60000);
}

static int log_in_slowly(struct duda_ctx *d)
{
    int e = duda_session_log_in(d, MK_STR("NAME"));
    return e ? e : duda_sleep(d, 60000);
}

static int renew_slowly(struct duda_ctx *d)
{
    int e = duda_session_regenerate(d);
    return e ? e : duda_sleep(d, 60000);
}

static int renew_and_leave(struct duda_ctx *d)
{
    int e = duda_session_regenerate(d);
    e = e ? e : duda_session_destroy(d);
    return e ? e : duda_puts(d, "out\n");
}

static int who(struct duda_ctx *d)
{
    mk_str user;
    int e = duda_session_user(d, &user);
    return e ? e : duda_printf(d, "%s\n", user.p ? user.p : "-");
}

static int fail(struct duda_ctx *d)
{
    mk_str user;
    int e = duda_session_user(d, &user);
    return e ? e : duda_csrf_token(d).p ? 404 : 500;
}

static int enter(struct duda_ctx *d)
{
    int e = duda_session_log_in(d, MK_STR("NAME"));
    return e ? e : 404;
}

static int check(struct duda_ctx *d)
{
    return duda_puts(d, "checked\n");
}

static int status(struct duda_ctx *d)
{
    mk_str value;
    (void)!duda_session_get(d, "status", &value);
    return duda_printf(d, "%s\n", value.p ? value.p : "-");
}

#ifdef HAS_PAGES
static int show(struct duda_ctx *d)
{
    mk_str user;
    int e = duda_session_user(d, &user);
#ifndef READS_ONLY
    e = e ? e : duda_session_set(d, "status", duda_sprintf(d, "%u", duda_error_status(d)));
#endif
    return e         ? e
           : user.p ? duda_printf(d, "NAME: %u %s\n", duda_error_status(d), user.p)
                    : duda_printf(d, "NAME: %u - %s\n", duda_error_status(d), duda_csrf_token(d).p);
}

#define PAGES DUDA_ERROR(show),
#else
#define PAGES
#endif
DUDA_SERVICE(NAME_, PAGES DUDA_GET("/in", log_in), DUDA_GET("/enter", enter), DUDA_GET("/who", who),
             DUDA_GET("/log-in-slowly", log_in_slowly), DUDA_GET("/renew-slowly", renew_slowly), DUDA_GET("/renew-and-leave", renew_and_leave), DUDA_GET("/slow/:text", slow), DUDA_GET("/fail", fail), DUDA_GET("/status", status),
             DUDA_BEFORE(duda_csrf_check), DUDA_POST("/check", check));
"""


def build(folder, name, *flags):
    return services.build(folder, name, SOURCE.replace("NAME_", name).replace("NAME", name), *flags)


class Browser:
    def __init__(self, server):
        self.server, self.cookies = server, {}

    def get(self, path, method="GET", **fields):
        if self.cookies:
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        reply = self.server.get(path, method, fields=fields)
        self.cookies.update(line.split(";")[0].split("=", 1) for line in reply.all("Set-Cookie"))
        return reply


STORES = pytest.mark.parametrize("store", ["memory", "cookie"])


def sections(store):
    if store == "cookie" and not services.has("seal"):
        pytest.skip("this build has no sessions in cookies")
    return f"[SESSIONS]\n    Store {store}\n"


@STORES
def test_error_handler_reads_the_session_after_a_handler_timeout(monkey, tmp_path, store):
    """The context of the handler is freed before the error handlers get theirs."""
    server = monkey(plugins=[build(tmp_path, "shop", "-DHAS_PAGES")], server="HandlerTimeout 1s", top=sections(store))
    b = Browser(server)
    assert b.get("/in").text == "in\n"
    reply = b.get("/slow/" + "t" * 2000)
    assert (reply.status, reply.text) == (504, "shop: 504 shop\n")
    assert b.get("/status").text == "504\n"


@STORES
def test_error_handler_of_another_service_has_its_own_session(monkey, tmp_path, store):
    server = monkey(plugins=[build(tmp_path, "outer", "-DHAS_PAGES"), build(tmp_path, "inner")], top=sections(store),
                    sections="[ROUTES]\n    /inner/* inner\n    /* outer\n")
    b = Browser(server)
    assert b.get("/inner/in").text == "in\n"
    reply = b.get("/inner/fail")
    *words, token = reply.text.split()
    assert (reply.status, words) == (404, ["outer:", "404", "-"])
    assert b.get("/inner/status").text == "-\n"
    assert b.get("/status").text == "404\n"
    assert b.get("/check", "POST", **{"X-CSRF-Token": token}).text == "checked\n"


SHARED = "[DUDA]\n    Share both outer inner\n"
NESTED = "[ROUTES]\n    /inner/* inner\n    /* outer\n"


@STORES
def test_error_handler_of_a_sharing_service_continues_the_session(monkey, tmp_path, store):
    server = monkey(plugins=[build(tmp_path, "outer", "-DHAS_PAGES"), build(tmp_path, "inner")],
                    top=sections(store) + SHARED, sections=NESTED)
    b = Browser(server)
    reply = b.get("/inner/enter")
    assert (reply.status, reply.text) == (404, "outer: 404 inner\n")
    names = [line.split("=")[0] for line in reply.all("Set-Cookie")]
    assert set(names) == {"both-session"} and (store == "cookie" or len(names) == 1)  # each handler writes its state into the cookie
    assert b.get("/inner/status").text == "404\n"
    assert b.get("/inner/fail").text == "outer: 404 inner\n"


@STORES
def test_sharing_services_send_one_csrf_secret(monkey, tmp_path, store):
    server = monkey(plugins=[build(tmp_path, "outer", "-DHAS_PAGES"), build(tmp_path, "inner")],
                    top=sections(store) + SHARED, sections=NESTED)
    b = Browser(server)
    reply = b.get("/inner/fail")
    token = reply.text.split()[-1]
    names = [line.split("=")[0] for line in reply.all("Set-Cookie")]
    assert reply.status == 404 and names.count("both-token") == 1
    assert b.get("/check", "POST", **{"X-CSRF-Token": token}).text == "checked\n"
    assert b.get("/inner/check", "POST", **{"X-CSRF-Token": token}).text == "checked\n"


@STORES
def test_error_handler_saves_the_session_of_a_cancelled_login(monkey, tmp_path, store):
    b = Browser(monkey(plugins=[build(tmp_path, "shop", "-DHAS_PAGES", "-DREADS_ONLY")], server="HandlerTimeout 1s", top=sections(store)))
    reply = b.get("/log-in-slowly")
    assert (reply.status, reply.text) == (504, "shop: 504 shop\n")
    assert b.get("/who").text == "shop\n"


@STORES
def test_error_handler_saves_the_new_id_of_a_cancelled_handler(monkey, tmp_path, store):
    b = Browser(monkey(plugins=[build(tmp_path, "shop", "-DHAS_PAGES", "-DREADS_ONLY")], server="HandlerTimeout 1s", top=sections(store)))
    b.get("/in")
    old = dict(b.cookies)
    assert b.get("/renew-slowly").text == "shop: 504 shop\n"
    assert b.get("/who").text == "shop\n"
    b.cookies = old
    assert b.get("/who").text == "-\n"


def test_cookie_session_survives_a_cancelled_regeneration(monkey, tmp_path):
    """The client never gets the new cookie, so the server must not revoke the old one."""
    b = Browser(monkey(plugins=[build(tmp_path, "shop")], server="HandlerTimeout 1s", top=sections("cookie")))
    b.get("/in")
    assert b.get("/renew-slowly").status == 504
    assert b.get("/who").text == "shop\n"


@STORES
def test_session_that_is_renewed_and_destroyed_leaves_no_copy(monkey, tmp_path, store):
    b = Browser(monkey(plugins=[build(tmp_path, "shop")], top=sections(store)))
    b.get("/in")
    old = dict(b.cookies)
    assert b.get("/renew-and-leave").text == "out\n"
    b.cookies = old
    assert b.get("/who").text == "-\n"
