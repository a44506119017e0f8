# SPDX-License-Identifier: Apache-2.0
"""Several requests that replace or destroy one session at the same time. A copy of its cookie must not multiply it, and no request
may undo a logout.
"""
import contextlib
import itertools

import pytest

import services
import wsframes

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>

static int show(struct duda_ctx *d)
{
    mk_str user, cart;
    int e = duda_session_user(d, &user);
    (void)!duda_session_get(d, "cart", &cart);
    return e ? e : duda_printf(d, "%s %s\n", user.p ? user.p : "-", cart.p ? cart.p : "-");
}

static int begin(struct duda_ctx *d)
{
    int e = duda_session_set(d, "cart", MK_STR("full"));
    if (!e && duda_query(d, "user").p)
        e = duda_session_log_in(d, duda_query(d, "user"));
    return e ? e : show(d);
}

static int end(struct duda_ctx *d)
{
    int e = duda_session_destroy(d);
    return e ? e : show(d);
}

static int execute(struct duda_ctx *d, mk_str command)
{
    int e = mk_str_eq(command, MK_STR("set")) ? duda_session_set(d, "cart", MK_STR("late"))
            : mk_str_eq(command, MK_STR("regenerate")) ? duda_session_regenerate(d)
            : mk_str_eq(command, MK_STR("destroy")) ? duda_session_destroy(d)
            : mk_str_eq(command, MK_STR("fail")) ? 404
            : mk_str_eq(command, MK_STR("flush")) ? duda_flush(d) : 0;
    return e == -ESTALE ? duda_puts(d, "stale\n") : e ? e : show(d);
}

/* Replaces the session, and executes the commands in the request body when it has arrived. */
static int hold(struct duda_ctx *d)
{
    mk_str user = duda_query(d, "user"), commands;
    int e = user.p ? duda_session_log_in(d, user) : duda_session_regenerate(d);
    if (!e && user.p)
        e = duda_session_set(d, "role", MK_STR("buyer"));
    duda_log(d, MK_LOG_WARN, "request %s waits", duda_query_or(d, "n", ""));
    e = e ? e : duda_read_all(d, 100, &commands);
    while (!e && commands.len)
        e = execute(d, mk_str_cut(&commands, '\n'));
    return e;
}

static int role(struct duda_ctx *d)
{
    mk_str value;
    int e = duda_session_get(d, "role", &value);
    return e ? e : duda_puts(d, value.p);
}

static int chat(struct duda_ctx *d)
{
    int e = duda_session_regenerate(d);
    struct duda_websocket *socket;
    e = e ? e : duda_websocket_open(d, NULL, NULL, &socket);
    return e ? e : duda_websocket_printf(d, socket, "hello");
}

DUDA_SERVICE(races, DUDA_ERROR(show), DUDA_GET("/begin", begin), DUDA_GET("/show", show), DUDA_GET("/role", role),
             DUDA_GET("/end", end), DUDA_POST("/hold", hold), DUDA_GET("/chat", chat));
"""
COOKIE = "races-session"
numbers = itertools.count()


def start(monkey, tmp_path, store, workers):
    if store == "cookie" and not services.has("seal"):
        pytest.skip("this build has no sessions in cookies")
    if store == "main" and not services.has("kv"):
        pytest.skip("this build has no kv")
    top = f"[SESSIONS]\n    Store {store}\n" + (f"[KV]\n    Folder {tmp_path}/data\n" if store == "main" else "")
    plugins = [services.build(tmp_path, "races", SOURCE)] + (["duda-kv"] if store == "main" else [])
    return monkey(plugins=plugins, top=top, workers=workers)


@pytest.fixture(params=[1, 3], ids=["1-worker", "3-workers"])
def server(monkey, tmp_path, request):
    return start(monkey, tmp_path, "cookie", request.param)


@pytest.fixture(params=["memory", "main", "cookie"])
def any_server(monkey, tmp_path, request):
    return start(monkey, tmp_path, request.param, 3)


def cookie_of(answer):
    """Returns the session cookie that the response sets; "" if it deletes it, None if it sets none."""
    found = [line.split(";")[0].split("=", 1)[1] for line in answer.all("Set-Cookie") if line.startswith(COOKIE)]
    return found[-1] if found else None


def get(server, path, cookie=None, **how):
    return server.get(path, fields=[("Cookie", f"{COOKIE}={cookie}")] if cookie else [], **how)


def begin(server, user="kim"):
    answer = get(server, f"/begin?user={user}" if user else "/begin")
    assert answer.text == f"{user or '-'} full\n"
    return cookie_of(answer)


def show(server, cookie):
    return get(server, "/show", cookie).text


class Held:
    """A request that has replaced its session and waits for its body."""

    def __init__(self, server, stack, cookie, user=None):
        n = next(numbers)
        self.connection = stack.enter_context(server.connect())
        self.connection.ask(f"/hold?n={n}" + (f"&user={user}" if user else ""), "POST",
                            [("Cookie", f"{COOKIE}={cookie}")] if cookie else [], streamed=True)
        server.err.wait_for(f"request {n} waits")

    def finish(self, *commands):
        self.connection.more("".join(f"{c}\n" for c in commands or ["show"]).encode())
        self.connection.done()
        return self.connection.read()


@pytest.fixture
def stack():
    with contextlib.ExitStack() as s:
        yield s


def test_concurrent_regenerations_leave_one_session(any_server, stack):
    old = begin(any_server)
    held = [Held(any_server, stack, old) for _ in range(4)]
    cookies = [cookie_of(h.finish()) for h in held]
    assert sum(show(any_server, c) == "kim full\n" for c in cookies if c) == 1
    assert show(any_server, old) == "- -\n"


def test_first_regeneration_writes_its_cookie(server, stack):
    old = begin(server)
    held = [Held(server, stack, old) for _ in range(3)]
    first = cookie_of(held[1].finish())
    assert show(server, first) == "kim full\n"
    assert [cookie_of(held[i].finish()) for i in (0, 2)] == [None, None]
    assert get(server, "/end", first).text == "- -\n"
    assert {show(server, c) for c in (old, first)} == {"- -\n"}


@pytest.mark.parametrize("commands, text", [(["show"], "kim full\n"), (["set"], "stale\n"), (["fail"], "- -\n"), (["destroy"], "- -\n")])
def test_logout_precedes_a_pending_regeneration(server, stack, commands, text):
    """The first `show` still has what the handler has loaded; whatever happens then, the client gets no session."""
    old = begin(server)
    held = Held(server, stack, old)
    assert get(server, "/end", old).text == "- -\n"
    answer = held.finish(*commands)
    assert not cookie_of(answer), answer
    if commands != ["fail"]:
        assert answer.text == text
    assert show(server, old) == "- -\n"


def test_regeneration_after_a_logout_creates_an_empty_session(server, stack):
    old = begin(server)
    held = Held(server, stack, old)
    get(server, "/end", old)
    answer = held.finish("regenerate", "set")
    assert answer.text.endswith("- late\n")
    assert show(server, cookie_of(answer)) == "- late\n"


@pytest.mark.parametrize("user", [None, "kim"])
def test_concurrent_logins_all_succeed(any_server, stack, user):
    """The user may submit the login form twice. Each request has proved who the user is."""
    old = begin(any_server, user)
    held = [Held(any_server, stack, old, user="kim") for _ in range(3)]
    cookies = [cookie_of(h.finish()) for h in held]
    assert {show(any_server, c).split()[0] for c in cookies} == {"kim"}
    assert sorted(show(any_server, c).split()[1] for c in cookies) == ["-", "-", "full"]
    assert {get(any_server, "/role", c).text for c in cookies} == {"buyer"}
    assert show(any_server, old) == "- -\n"


def test_login_after_a_logout_has_nothing_of_the_old_session(server, stack):
    old = begin(server)
    held = Held(server, stack, old, user="kim")
    get(server, "/end", old)
    answer = held.finish("set", "show")
    assert answer.text == "kim late\nkim late\n"
    assert show(server, cookie_of(answer)) == "kim late\n"
    assert get(server, "/role", cookie_of(answer)).text == "buyer"


def test_logins_without_a_session_do_not_depend_on_each_other(server, stack):
    held = [Held(server, stack, None, user=user) for user in ("kim", "eve")]
    assert [show(server, cookie_of(h.finish())) for h in held] == ["kim -\n", "eve -\n"]


def test_session_stays_valid_if_the_response_has_started(server, stack):
    old = begin(server)
    assert cookie_of(Held(server, stack, old).finish("flush")) is None
    server.err.wait_for("cannot save the session in its cookie")
    assert show(server, old) == "kim full\n"


def test_session_stays_valid_if_the_connection_is_upgraded(server):
    old = begin(server)
    with wsframes.Peer(server, "/chat", [("Cookie", f"{COOKIE}={old}")]) as peer:
        peer.expect("hello")
    server.err.wait_for("cannot save the session in its cookie")
    assert show(server, old) == "kim full\n"


def test_error_handler_continues_the_regenerated_session(server, stack):
    old = begin(server)
    answer = Held(server, stack, old).finish("set", "fail")
    assert (answer.status, show(server, cookie_of(answer))) == (404, "kim late\n")
    assert show(server, old) == "- -\n"
