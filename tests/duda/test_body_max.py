# SPDX-License-Identifier: Apache-2.0
"""`.body_max` of a route replaces MaxBodySize, whether the service is loaded, isolated or run by `monkey run`, for known
and unknown lengths, over HTTP/1 and HTTP/2, above and below MaxBodySize. All other routes and paths keep MaxBodySize."""
import shutil
import textwrap

import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

MB = 1 << 20
SERVICE = r"""
#include <duda.h>

static int count(struct duda_ctx *d)
{
    static char buffer[4096];
    unsigned long long all = 0;
    ssize_t n;
    while ((n = duda_read(d, buffer, sizeof buffer)) > 0)
        all += (unsigned long long)n;
    return n < 0 ? (int)n : duda_printf(d, "%llu\n", all);
}

static int count_all(struct duda_ctx *d)
{
    mk_str all;
    int e = duda_read_all(d, 64 << 20, &all);
    return e ? e : duda_printf(d, "%zu\n", all.len);
}

static int form(struct duda_ctx *d)
{
    int e = duda_form_load(d, NULL, NULL);
    return e ? e : duda_printf(d, "%llu\n", (unsigned long long)duda_upload_at(d, 0)->size);
}

static int refuse(struct duda_ctx *d)
{
    (void)d;
    return 403;
}

static int ignore(struct duda_ctx *d)
{
    return duda_puts(d, "not read\n");
}

DUDA_ROUTES(group, DUDA_POST("/:id<int>/file", count, "In a group.", .body_max = 2 << 20));

DUDA_SERVICE(bodies,
    DUDA_POST("/big", count, "Reads pieces.", .body_max = 2 << 20),
    DUDA_PUT("/big", count, "Another method, another limit."),
    DUDA_POST("/all", count_all, "Reads all.", .body_max = 2 << 20),
    DUDA_POST("/small", count, "Accepts 10 bytes.", .body_max = 10),
    DUDA_POST("/plain", count, "As configured."),
    DUDA_POST("/free", count, "Has no limit.", .body_max = UINT64_MAX),
    DUDA_POST("/form", form, "Takes a file.", .body_max = 16 << 20),
    DUDA_POST("/refused", refuse, "Refuses all."),
    DUDA_POST("/ignored", ignore, "Does not read.", .body_max = 10),
    DUDA_GROUP("/in", group, "A group."));
"""


LIMITS = "MaxBodySize 100K\nSpoolMax 4M"


def build(folder):
    return services.build(folder, "bodies", SERVICE)


def load(monkey, site):
    site.add("file.txt", "a file")
    monkey(plugins=[build(site.path.parent)], server=LIMITS)


def isolate(monkey, site):
    site.add("file.txt", "a file")
    object_ = build(site.path.parent)
    monkey(plugins=["isolate"], server=LIMITS, top=f"[ISOLATE]\n    Service {object_}\n", sections="[ROUTES]\n    /* isolate bodies\n    /* static\n")


def run_source(monkey, site):
    folder = site.path.parent
    (folder / "bodies.c").write_text(SERVICE)
    (folder / "more.conf").write_text("[SERVER]\n" + textwrap.indent(LIMITS, "    ") + "\n")
    (folder / "cache").mkdir()
    monkey(args=["run", "-p", "0", "-i", folder / "more.conf", folder / "bodies.c"],
           environment={"XDG_CACHE_HOME": str(folder / "cache"), "XDG_RUNTIME_DIR": str(folder)})


WAYS = {"loaded": load}
if (services.OBJECTS / "monkey-isolate.so").exists():
    WAYS["isolated"] = isolate
if (services.OBJECTS / "monkey-duda-dev.so").exists() and shutil.which("cc"):
    WAYS["run"] = run_source


@pytest.fixture(params=WAYS)
def server(request, lasting):
    return lasting(WAYS[request.param])


def send_content(server, speaks, path, body, known, method="POST", fields=()):
    with server.connect(protocol=speaks) as c:
        if known:
            return c.get(path, method=method, fields=fields, body=body)
        c.ask(path, method=method, fields=fields, streamed=True)
        try:
            for at in range(0, len(body), 10000):
                c.more(body[at:at + 10000])
            c.done()
        except OSError:
            pass  # rejected before the body was complete
        return c.read()


def send(server, speaks, path, size, known, method="POST"):
    return send_content(server, speaks, path, b"x" * size, known, method)


@pytest.mark.parametrize("speaks", ["h1", "h2"])
@pytest.mark.parametrize("known", [True, False], ids=["length", "stream"])
@pytest.mark.parametrize("path, fits, exceeds", [
    ("/big", 2 * MB, 2 * MB + 1), ("/all", 2 * MB, 2 * MB + 1), ("/in/7/file", 2 * MB, 2 * MB + 1), ("/small", 10, 11),
    ("/plain", 100 << 10, (100 << 10) + 1), ("/free", 5 * MB, None)])
def test_route_limits_its_own_body(server, speaks, known, path, fits, exceeds):
    answer = send(server, speaks, path, fits, known)
    assert (answer.status, answer.text) == (200, f"{fits}\n")
    assert exceeds is None or send(server, speaks, path, exceeds, known).status == 413


@pytest.mark.parametrize("speaks", ["h1", "h2"])
def test_other_methods_and_paths_keep_the_configured_limit(server, speaks):
    too_much = (100 << 10) + 1
    assert send(server, speaks, "/big", too_much, True, "PUT").status == 413
    assert send(server, speaks, "/none", too_much, True).status in (404, 405, 413)
    assert send(server, speaks, "/file.txt", too_much, True).status in (404, 405, 413)
    assert send(server, speaks, "/ignored", 11, True).status == 413, "the handler is not even called"
    assert send(server, speaks, "/small", 5, True).text == "5\n"


@pytest.mark.parametrize("speaks", ["h1", "h2"])
@pytest.mark.parametrize("known", [True, False], ids=["length", "stream"])
def test_form_beyond_half_of_the_spool_is_rejected_and_logged(server, speaks, known):
    def upload(size):
        body = b'--B\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\n' + b"x" * size + b"\r\n--B--\r\n"
        return send_content(server, speaks, "/form", body, known, fields=[("Content-Type", "multipart/form-data; boundary=B")])

    assert upload(MB).text == f"{MB}\n"
    n = server.log.count("half of SpoolMax")
    assert upload(3 * MB).status == 413
    server.err.wait_for("POST /form from 127.0.0.1: the body is rejected: it is larger than half of SpoolMax", count=n + 1)


@pytest.mark.skipif("isolated" not in WAYS, reason="this build has no isolate")
def test_isolated_service_may_have_a_spool_folder_of_its_own(monkey, run, tmp_path):
    def settings(own):
        return {"plugins": ["isolate"], "server": f"SpoolFolder {tmp_path}/server\n",
                "top": f"[ISOLATE]\n    Service {object_}\n    SpoolFolder {own}\n", "sections": "[ROUTES]\n    /* isolate bodies\n"}

    object_ = build(tmp_path)
    (tmp_path / "own").mkdir()
    server = monkey(**settings(tmp_path / "own"))
    assert server.get("/all", method="POST", body=b"x" * MB).text == f"{MB}\n"
    server.config.write_text(server.config.read_text().replace("/own", "/none"))
    assert f"the service `bodies` cannot serve: cannot spool request bodies in `{tmp_path}/none`" in run("-t", "-c", server.config).err
    server.config.write_text(server.config.read_text().replace(f"    SpoolFolder {tmp_path}/none\n", ""))
    assert f"cannot spool request bodies in `{tmp_path}/server`" in run("-t", "-c", server.config).err


def test_client_cannot_raise_the_limit(server):
    """A client cannot set the header in which the server passes the limit to an isolated group."""
    answer = server.get("/plain", method="POST", fields={"Monkey-Body-Max": "99999999"}, body=b"x" * ((100 << 10) + 1))
    assert answer.status == 413


def test_http2_connection_survives_a_rejected_body(server):
    with server.connect(protocol="h1") as c:
        assert c.get("/small", method="POST", body=b"x" * 100).status == 413
    with server.connect(protocol="h2") as c:
        assert c.get("/small", method="POST", body=b"x" * 100).status == 413
        assert c.get("/small", method="POST", body=b"x" * 5).text == "5\n"


EXPECTS = [("Expect", "100-continue")]


@pytest.mark.parametrize("speaks", ["h1", "h2"])
@pytest.mark.parametrize("path, size, status", [("/small", 11, 413), ("/big", 3 * MB, 413), ("/refused", 5, 403), ("/ignored", 5, 200)])
def test_client_that_expects_100_gets_the_response_without_sending_its_body(server, speaks, path, size, status):
    with server.connect(protocol=speaks) as c:
        if speaks == "h1":
            c.send(b"POST %s HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (path.encode(), size))
        else:
            c.ask(path, method="POST", fields=EXPECTS + [("Content-Length", str(size))], streamed=True)
        answer = c.read()
        assert (answer.status, answer.interim) == (status, [])


@pytest.mark.parametrize("speaks", ["h1", "h2"])
@pytest.mark.parametrize("path, size", [("/small", 10), ("/big", 200000), ("/all", 2 * MB)])
def test_client_that_expects_100_gets_it_when_the_handler_reads(server, speaks, path, size):
    with server.connect(protocol=speaks) as c:
        for _ in range(2):
            c.ask(path, method="POST", fields=EXPECTS, streamed=True)
            assert c.read_interim().status == 100
            c.more(b"x" * size)
            c.done()
            assert c.read().text == f"{size}\n"


@pytest.mark.skipif(not (services.OBJECTS / "monkey-rewrite.so").exists(), reason="this build has no rewrite")
def test_route_after_a_rewrite_limits_the_body(monkey, tmp_path):
    server = monkey(plugins=[build(tmp_path), "rewrite"], sections="[REWRITE]\n    Rewrite glob /up /big\n    Rewrite glob /tiny /small\n")
    assert server.get("/up", method="POST", body=b"x" * (2 * MB)).text == f"{2 * MB}\n"
    assert server.get("/up", method="POST", body=b"x" * (2 * MB + 1)).status == 413
    assert server.get("/tiny", method="POST", body=b"x" * 11).status == 413


def test_max_request_size_caps_every_route(monkey, tmp_path):
    server = monkey(plugins=[build(tmp_path)], server="MaxRequestSize 1M")
    assert server.get("/big", method="POST", body=b"x" * (MB + 1)).status == 413
    assert server.get("/free", method="POST", body=b"x" * (MB // 2)).status == 200


def test_explain_names_route_handler_and_limit(run, monkey, tmp_path, site):
    server = monkey(plugins=[build(tmp_path)])
    out = run("-c", server.config, "explain", "POST", "/big").out
    assert "bodies: POST /big, count() in " in out and "2097152 bytes" in out, out
    assert "has no route for this path" in run("-c", server.config, "explain", "GET", "/nowhere").out
