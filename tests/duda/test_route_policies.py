# SPDX-License-Identifier: Apache-2.0
"""The policies of routes: `.rate`, `.auth` and DUDA_CORS()."""
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>

static const char user_key;

static int show(struct duda_ctx *d)
{
    const char *user = duda_attached(d, &user_key);
    return duda_printf(d, "%s\n", user ? user : "-");
}

static int fail(struct duda_ctx *d)
{
    return duda_query(d, "e").p ? -ENOMEM : 422;
}

static int authenticate(struct duda_ctx *d)
{
    mk_str user = duda_header(d, "X-User");
    if (!user.p)
        return 403;
    int e = duda_attach(d, &user_key, (void *)(uintptr_t)user.p, NULL);
    return e ? e : DUDA_NEXT;
}

static int authorize(struct duda_ctx *d)
{
    const char *user = duda_attached(d, &user_key), *role = duda_middleware_data(d);
    return user && strcmp(user, role) == 0 ? DUDA_NEXT : 409;
}

static mk_str by_user(struct duda_ctx *d)
{
    return mk_str_from_c(duda_attached(d, &user_key));
}

static int not_found(struct duda_ctx *d)
{
    return duda_puts(d, "handled\n");
}

static const struct duda_route_auth users = {.authenticate = authenticate},
                                    admins = {.authenticate = authenticate, .authorize = authorize, .authorize_data = "root"};
static const struct duda_cors app = {.origins = "https://app.example https://*.apps.example:8443 http://localhost:3000", .credentials = true,
                                     .headers = "Authorization, Content-Type", .expose = "X-Total", .max_age_s = 77},
                              anyone = {.origins = "*"};

DUDA_ROUTES(limited, DUDA_GET("/a", show), DUDA_GET("/b", show, "", .rate = "2/hour"));
DUDA_ROUTES(guarded, DUDA_GET("/x", show), DUDA_GET("/y", show, "", .rate = "2/hour", .rate_key = by_user));
DUDA_ROUTES(api, DUDA_GET("/closed", show), DUDA_CORS(&app), DUDA_GET("/items/:id", show), DUDA_POST("/items/:id", show), DUDA_GET("/fail", fail),
            DUDA_ANY("/any", show), DUDA_ROUTE("OPTIONS", "/own", show), DUDA_GET("/own", show), DUDA_GET("/auth", show, "", .auth = &users),
            DUDA_GET("/rated", show, "", .rate = "1/hour"), DUDA_CORS(&anyone), DUDA_GET("/open", show), DUDA_CORS(NULL), DUDA_GET("/end", show));
DUDA_ROUTES(public, DUDA_CORS(&anyone), DUDA_ERROR(not_found), DUDA_GET("/x", show));
DUDA_SERVICE(policies, DUDA_GET("/free", show), DUDA_GET("/three", show, "", .rate = "3/minute"), DUDA_POST("/three", show, "", .rate = "1/day"),
             DUDA_GET("/second", show, "", .rate = "2/second"), DUDA_GET("/many", show, "", .rate = "100/hour"),
             DUDA_GET("/users", show, "", .auth = &users), DUDA_GET("/admins", show, "", .auth = &admins),
             DUDA_GET("/keyed", show, "", .auth = &users, .rate = "2/hour", .rate_key = by_user),
             DUDA_GET("/first", show, "", .auth = &users, .rate = "2/hour"),
             DUDA_GROUP("/limited", limited, "", .rate = "3/hour"), DUDA_GROUP("/guarded", guarded, "", .auth = &users),
             DUDA_GROUP("/api", api), DUDA_GROUP("/public", public));
"""


@pytest.fixture
def policies(monkey, tmp_path):
    def start(**how):
        return monkey(plugins=[services.build(tmp_path, "policies", SOURCE)], **how)
    return start


class Reply:
    """A response whose missing headers are None."""

    def __init__(self, reply):
        self.status, self.text, self.all = reply.status, reply.text, reply.all

    def __getitem__(self, name):
        return ", ".join(self.all(name)) or None


def get(server, path, source=None, method="GET", protocol=None, **fields):
    with server.connect(source=source, **({"protocol": protocol} if protocol else {})) as c:
        return Reply(c.get(path, method=method, fields={name.replace("_", "-"): value for name, value in fields.items()}))


# ---- Rate limits ----

def test_rate_limit_counts_for_all_workers_and_tells_the_client(policies):
    server = policies(workers=3)
    replies = [get(server, "/three") for _ in range(5)]
    assert [r.status for r in replies] == [200, 200, 200, 429, 429]
    assert [r["RateLimit-Remaining"] for r in replies] == ["2", "1", "0", "0", "0"]
    assert {r["RateLimit-Limit"] for r in replies} == {"3"}
    assert all(50 <= int(r["RateLimit-Reset"]) <= 60 for r in replies)
    assert [r["Retry-After"] for r in replies][:3] == [None] * 3
    assert replies[4]["Retry-After"] == replies[4]["RateLimit-Reset"]
    assert get(server, "/three", source="127.0.0.2").status == 200, "another client"
    assert get(server, "/three", method="POST").status == 200, "another route"
    assert get(server, "/three", method="POST").status == 429
    assert get(server, "/free")["RateLimit-Limit"] is None


def test_rate_limit_is_exact_under_load(policies):
    server = policies(workers=2)
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: get(server, "/many").status, range(160)))
    assert (statuses.count(200), statuses.count(429)) == (100, 60)


def test_rate_limit_window_ends(policies):
    server = policies()
    while [get(server, "/second").status for _ in range(3)].count(429) == 0:
        pass
    time.sleep(int(get(server, "/second")["RateLimit-Reset"]) + 1.1)
    assert get(server, "/second").status == 200


def test_rate_limit_survives_a_reload(policies):
    server = policies()
    assert [get(server, "/three").status for _ in range(4)] == [200] * 3 + [429]
    server.tell(signal.SIGHUP)
    server.err.wait_for("the new configuration serves")
    assert get(server, "/three").status == 429


def test_rate_limit_of_a_group_counts_its_routes_together(policies):
    server = policies()
    assert [get(server, f"/limited/{x}").status for x in "abaab"] == [200, 200, 200, 429, 429]
    other = [get(server, f"/limited/{x}", source="127.0.0.2").status for x in "bbb"]
    assert other == [200, 200, 429], "the limit of the route"


def test_rate_limit_by_user_runs_after_authentication(policies):
    server = policies()
    assert [get(server, "/keyed", X_User="ana").status for _ in range(3)] == [200, 200, 429]
    assert [get(server, "/keyed", X_User="ben").status for _ in range(3)] == [200, 200, 429]
    assert get(server, "/keyed").status == 403, "unauthenticated requests do not count"
    assert [get(server, "/guarded/y", X_User="ana").status for _ in range(3)] == [200, 200, 429], "the `.auth` of the group"


def test_rate_limit_by_address_runs_before_authentication(policies):
    server = policies()
    assert [get(server, "/first").status for _ in range(3)] == [403, 403, 429]


def test_many_clients_do_not_reset_the_counter_of_one(policies):
    server = policies(server="KeepAliveRequests unlimited")
    assert [get(server, "/three").status for _ in range(4)] == [200] * 3 + [429]
    for i in range(1, 200):
        get(server, "/three", source=f"127.0.1.{i}")
    assert get(server, "/three").status == 429


@pytest.mark.parametrize("rate", ["", "10", "0/minute", "10/fortnight", "/minute", "-1/minute", "262144/day", "10/minute/hour", "1e3/hour", "10 /minute"])
def test_invalid_rates_are_errors_at_startup(monkey, tmp_path, rate):
    source = f'#include <duda.h>\nstatic int f(struct duda_ctx *d) {{ return duda_puts(d, ""); }}\nDUDA_SERVICE(odd, DUDA_GET("/", f, "", .rate = "{rate}"));\n'
    server = monkey(plugins=[services.build(tmp_path, "odd", source)], expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "odd.c:3: a `.rate` is a number" in server.log


@pytest.mark.parametrize("functions, policies, is_allowed", [(64, "", True), (63, ', .rate = "9/hour"', True), (64, ', .rate = "9/hour"', False), (65, "", False),
                                                             (62, ", .auth = &both", True), (63, ", .auth = &both", False)])
def test_at_most_64_functions_run_before_the_handler_of_a_group(monkey, tmp_path, functions, policies, is_allowed):
    source = f"""#include <duda.h>
static int f(struct duda_ctx *d) {{ return duda_puts(d, "x"); }}
static duda_verdict next(struct duda_ctx *d) {{ (void)d; return DUDA_NEXT; }}
extern const struct duda_route_auth both;
const struct duda_route_auth both = {{.authenticate = next, .authorize = next}};
DUDA_ROUTES(inner, DUDA_GET("/", f));
DUDA_SERVICE(odd, {"DUDA_BEFORE(next), " * functions} DUDA_GROUP("/g", inner, ""{policies}));
"""
    server = monkey(plugins=[services.build(tmp_path, "odd", source)], expect_start=is_allowed)
    if is_allowed:
        assert server.get("/g/").text == "x"
        return
    server.exit_code = 3
    server.wait()
    assert "odd.c:7: more than 64 functions would run before one handler" in server.log


# ---- Authentication ----

def test_auth_of_a_route_runs_before_its_handler(policies):
    server = policies()
    assert [get(server, "/users", **f).status for f in ({}, {"X_User": "ana"})] == [403, 200]
    assert [get(server, "/admins", **f).status for f in ({}, {"X_User": "ana"}, {"X_User": "root"})] == [403, 409, 200]
    assert get(server, "/admins", X_User="root").text == "root\n"
    assert [get(server, "/guarded/x", **f).status for f in ({}, {"X_User": "ana"})] == [403, 200]


@pytest.mark.parametrize("entry, message", [("DUDA_GET(\"/\", f, \"\", .auth = &none)", "needs a function"), ("DUDA_GET(\"/\", f, \"\", .rate_key = k)", "needs a `.rate`"),
                                            ("DUDA_CORS(&c1), DUDA_GET(\"/\", f)", "needs a policy"), ("DUDA_CORS(&c2), DUDA_GET(\"/\", f)", "not \"*\""),
                                            ("DUDA_CORS(&c3), DUDA_GET(\"/\", f)", "without a path"), ("DUDA_CORS(&c4), DUDA_GET(\"/\", f)", "without a path")])
def test_invalid_policies_are_errors_at_startup(monkey, tmp_path, entry, message):
    source = f"""#include <duda.h>
static inline int f(struct duda_ctx *d) {{ return duda_puts(d, ""); }}
static inline mk_str k(struct duda_ctx *d) {{ return duda_path(d); }}
extern const struct duda_route_auth none; const struct duda_route_auth none = {{.authorize = f}};
extern const struct duda_cors c1, c2, c3, c4;
const struct duda_cors c1 = {{.credentials = true}}, c2 = {{.origins = "*", .credentials = true}}, c3 = {{.origins = "https://a.example/"}}, c4 = {{.origins = "a.example"}};
mk_str (*use)(struct duda_ctx *);
mk_str (*use)(struct duda_ctx *) = k;
DUDA_SERVICE(odd, {entry});
"""
    server = monkey(plugins=[services.build(tmp_path, "odd", source)], expect_start=False)
    server.exit_code = 3
    server.wait()
    assert message in server.log


# ---- CORS ----

ORIGINS = {"https://app.example": True, "http://localhost:3000": True, "https://a.apps.example:8443": True, "https://a.b.apps.example:8443": True,
           "https://apps.example:8443": False, "https://.apps.example:8443": False, "https://a.apps.example": False, "http://app.example": False,
           "https://app.example.evil.example": False, "https://evil.example": False, "https://app.example:443": False, "https://APP.example": False,
           "null": False, "https://evil.example/.apps.example:8443": False, "https://evil.example?.apps.example:8443": False,
           "https://evil@a.apps.example:8443": False, "https://app.example http://localhost:3000": False, "": False, "*": False}


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_cors_allows_listed_origins_only(policies, protocol):
    server = policies()
    for origin, allowed in ORIGINS.items():
        reply = get(server, "/api/items/1", protocol=protocol, Origin=origin)
        assert reply.status == 200, "CORS does not reject requests"
        assert reply["Access-Control-Allow-Origin"] == (origin if allowed else None), origin
        assert reply["Access-Control-Allow-Credentials"] == ("true" if allowed else None)
        assert reply["Access-Control-Expose-Headers"] == ("X-Total" if allowed else None)
        assert "Origin" in reply.all("Vary")
    reply = get(server, "/api/items/1", protocol=protocol)
    assert reply["Access-Control-Allow-Origin"] is None and reply["Vary"] == "Origin"


def preflight(server, path, origin="https://app.example", method="POST", headers=None, **how):
    fields = {"Origin": origin, "Access_Control_Request_Method": method}
    if headers:
        fields["Access_Control_Request_Headers"] = headers
    return get(server, path, method="OPTIONS", **fields, **how)


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_cors_preflight_is_answered_before_middleware(policies, protocol):
    server = policies()
    reply = preflight(server, "/api/items/1", headers="content-type", protocol=protocol)
    assert (reply.status, reply.text) == (204, "")
    assert {n: reply[f"Access-Control-{n}"] for n in ("Allow-Origin", "Allow-Credentials", "Allow-Methods", "Allow-Headers", "Max-Age")} == {
        "Allow-Origin": "https://app.example", "Allow-Credentials": "true", "Allow-Methods": "POST", "Allow-Headers": "Authorization, Content-Type", "Max-Age": "77"}
    assert {name.strip() for line in reply.all("Vary") for name in line.split(",")} == {
        "Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"}
    assert preflight(server, "/api/auth", method="GET", protocol=protocol)["Access-Control-Allow-Methods"] == "GET"
    for _ in range(3):
        assert preflight(server, "/api/rated", method="GET").status == 204, "preflight requests do not count"


def test_cors_preflight_rejects_other_origins_and_methods(policies):
    server = policies()
    for origin, allowed in ORIGINS.items():
        reply = preflight(server, "/api/items/1", origin)
        assert (reply["Access-Control-Allow-Methods"] is not None) == allowed, origin
    for path, method in (("/api/items/1", "DELETE"), ("/api/items/1", "x y"), ("/api/closed", "GET"), ("/api/end", "GET"), ("/free", "GET"), ("/api/none", "GET")):
        assert preflight(server, path, method=method)["Access-Control-Allow-Origin"] is None or path == "/api/items/1", path
        assert preflight(server, path, method=method)["Access-Control-Allow-Methods"] is None, path


def test_cors_of_every_origin_has_no_credentials(policies):
    server = policies()
    for origin in ("https://anything.example", "null"):
        reply = get(server, "/api/open", Origin=origin)
        assert reply["Access-Control-Allow-Origin"] == "*"
        assert reply["Access-Control-Allow-Credentials"] is None and reply["Vary"] is None
    reply = preflight(server, "/api/open", "https://x.example", "GET", "x-a, x-b")
    assert (reply["Access-Control-Allow-Headers"], reply["Access-Control-Max-Age"]) == ("x-a, x-b", "600")
    assert get(server, "/api/closed", Origin="https://app.example")["Access-Control-Allow-Origin"] is None
    assert get(server, "/api/end", Origin="https://app.example")["Access-Control-Allow-Origin"] is None


def test_cors_headers_are_sent_with_errors(policies):
    server = policies()
    server.allow("fail")
    app = {"Origin": "https://app.example"}
    for path, status in {"/api/fail": 422, "/api/fail?e=1": 503, "/api/auth": 403}.items():
        reply = get(server, path, **app)
        assert (reply.status, reply["Access-Control-Allow-Origin"]) == (status, "https://app.example"), path
    assert [get(server, "/api/rated", **app)["Access-Control-Allow-Origin"] for _ in range(2)] == ["https://app.example"] * 2
    reply = get(server, "/api/items/1", method="DELETE", **app)
    assert (reply.status, reply["Access-Control-Allow-Origin"]) == (405, "https://app.example")
    assert {"GET", "POST"} <= set(reply["Allow"].replace(",", "").split())
    assert get(server, "/public/none", Origin="https://x.example")["Access-Control-Allow-Origin"] == "*"
    assert get(server, "/publicity", Origin="https://x.example")["Access-Control-Allow-Origin"] is None
    assert get(server, "/api/none", **app)["Access-Control-Allow-Origin"] is None, "DUDA_CORS(NULL) has ended the policy"


def test_cors_leaves_options_to_routes_of_the_service(policies):
    server = policies()
    assert preflight(server, "/api/own").text == "-\n", "the service's own route"
    assert preflight(server, "/api/any", method="PUT")["Access-Control-Allow-Methods"] == "PUT"
    assert get(server, "/api/any", method="OPTIONS").text == "-\n", "not a preflight request"
    plain = get(server, "/api/items/1", method="OPTIONS")
    assert (plain.status, plain["Access-Control-Allow-Methods"]) == (204, None)
    assert "GET" in plain["Allow"]
