# SPDX-License-Identifier: Apache-2.0
"""DUDA_ASSETS(): URLs with a fingerprint, which browsers cache forever, whether the service is loaded, mounted below a path,
isolated, or run by `monkey run`."""
import re
import signal

import pytest

import services
from proc import wait_until
from running import cache, compilers, runtime, src, start  # pylint: disable=unused-import

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>

static int url(struct duda_ctx *d)
{
    mk_str found = duda_asset_url(d, duda_query(d, "name"));
    return found.p ? duda_write(d, found) : 404;
}

static int page(struct duda_ctx *d)
{
    return duda_render(d, "page.html", duda_value_map(NULL, 0));
}

DUDA_ROUTES(inner, DUDA_ASSETS("/static"));
DUDA_SERVICE(shop, DUDA_GROUP("/v1", inner, ""), DUDA_GET("/url", url, ""), DUDA_GET("/page", page, ""));
"""
CSS, FOREVER = "body { color: red }\n", "public, max-age=31536000, immutable"


def write_files(folder):
    for name, text in {"assets/app.css": CSS, "assets/LICENSE": "free", "assets/img/logo.min.svg": "<svg/>", "assets/a/b/c/d/e/f/g.txt": "deep", "assets/empty.js": "",
                       "assets/.hidden": "no", "templates/page.html": '<link rel=stylesheet href="{{asset "app.css"}}">'}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def build(folder):
    write_files(folder)
    return services.build(folder, "shop", SOURCE)


def load(monkey, site):
    monkey(plugins=[build(site.path.parent)])


def mount(monkey, site):
    monkey(plugins=[build(site.path.parent)], sections="[ROUTES]\n    /my/shop/* shop\n")


def isolate(monkey, site):
    monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {build(site.path.parent)}\n", sections="[ROUTES]\n    /* isolate shop\n")


WAYS = {"loaded": (load, ""), "mounted": (mount, "/my/shop")}
if (services.OBJECTS / "monkey-isolate.so").exists():
    WAYS["isolated"] = (isolate, "")


@pytest.fixture(params=WAYS)
def served(request, lasting):
    prepare, prefix = WAYS[request.param]
    return lasting(prepare), prefix


@pytest.mark.parametrize("name,pattern,kind,text", [
    ("app.css", r"app\.[0-9a-f]{10}\.css", "text/css; charset=utf-8", CSS), ("LICENSE", r"LICENSE\.[0-9a-f]{10}", None, "free"),
    ("img/logo.min.svg", r"img/logo\.min\.[0-9a-f]{10}\.svg", "image/svg+xml", "<svg/>"), ("empty.js", r"empty\.[0-9a-f]{10}\.js", "text/javascript; charset=utf-8", ""),
    ("a/b/c/d/e/f/g.txt", r"a/b/c/d/e/f/g\.[0-9a-f]{10}\.txt", "text/plain; charset=utf-8", "deep")])
def test_url_of_an_asset_is_cached_forever(served, name, pattern, kind, text):
    server, prefix = served
    url = server.get(f"{prefix}/url?name={name}").text
    assert re.fullmatch(f"{prefix}/v1/static/{pattern}", url)
    answer = server.get(url)
    assert (answer.status, answer.text, answer["Cache-Control"]) == (200, text, FOREVER)
    assert kind is None or answer["Content-Type"] == kind
    assert server.get(url, fields=[("If-None-Match", answer["ETag"])]).status == 304
    assert server.get(url, method="HEAD")["Content-Length"] == str(len(text))
    assert len(text) < 3 or server.get(url, fields=[("Range", "bytes=1-2")]).text == text[1:3]


def test_other_urls_of_an_asset_are_revalidated(served):
    server, prefix = served
    for path in ("app.css", "app.0123456789.css", "LICENSE.0123456789", "img/logo.min.0123456789.svg"):
        answer = server.get(f"{prefix}/v1/static/{path}")
        assert (answer.status, answer["Cache-Control"]) == (200, "no-cache"), path
    for path in ("", "none.css", "app.012345678.css", "img", "img/", ".hidden", "../shop.c", "%2e%2e/shop.c", "app.css/", "0123456789", ".0123456789"):
        assert server.get(f"{prefix}/v1/static/{path}").status in (400, 403, 404), path


def test_template_contains_the_url(served):
    server, prefix = served
    url = server.get(f"{prefix}/url?name=app.css").text
    assert server.get(f"{prefix}/page").text == f'<link rel=stylesheet href="{url}">'


def test_unknown_asset_has_no_url(served):
    server, prefix = served
    assert server.get(f"{prefix}/url?name=app.0123456789.css").status == 404
    assert server.get(f"{prefix}/url").status == 404
    server.err.wait_for("the service has no asset `app.0123456789.css`")


@pytest.mark.processes("the test reloads the server")
def test_url_changes_with_the_content(monkey, tmp_path):
    server = monkey(plugins=[build(tmp_path)])
    old = server.get("/url?name=app.css").text
    (tmp_path / "assets/app.css").write_text("body { color: blue }\n")
    assert server.get(old).text == CSS, "the server has read the files when it loaded the service"
    server.tell(signal.SIGHUP)
    wait_until(lambda: server.get("/url?name=app.css").text != old, "the new content serves", 20)
    answer = server.get(old)
    assert (answer.text, answer["Cache-Control"]) == ("body { color: blue }\n", "no-cache")


def test_service_without_the_folder_is_an_error(monkey, tmp_path, run):
    object_ = services.build(tmp_path, "shop", SOURCE)
    server = monkey(plugins=[object_], expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "the service `shop` has DUDA_ASSETS(), but no folder `assets`" in server.err.text
    assert run("-t", "-c", server.config).code == 3


def test_asset_with_a_long_path_is_an_error(monkey, tmp_path):
    object_ = build(tmp_path)
    (tmp_path / "assets/img" / ("x" * 197)).write_text("x")
    server = monkey(plugins=[object_], expect_start=False)
    server.exit_code = 3
    server.wait()
    assert re.search("assets/img/x{197}: the path is longer than 200 bytes", server.err.text)


def test_many_assets_are_found_by_name(monkey, tmp_path):
    object_ = build(tmp_path)
    names = [f"{chr(97 + i % 26)}{i}.txt" for i in range(300)] + ["A.txt", "b", "ab.txt", "a.txt.gz"]
    for name in names:
        (tmp_path / "assets" / name).write_text(name)
    server = monkey(plugins=[object_])
    for name in names:
        assert server.get(f"/v1/static/{name}").text == name
        assert server.get(server.get(f"/url?name={name}").text).text == name
    assert {server.get(f"/v1/static/{name}").status for name in ("a300.txt", "a.tx", "z.txt", "0", "~")} == {404}


def test_link_to_a_folder_is_an_error(monkey, tmp_path):
    object_ = build(tmp_path)
    (tmp_path / "assets/loop").symlink_to(tmp_path / "assets")
    server = monkey(plugins=[object_], expect_start=False)
    server.exit_code = 3
    server.wait()
    assert "assets/loop: not a regular file" in server.err.text


@pytest.mark.skipif(not (services.OBJECTS / "monkey-duda-dev.so").exists(), reason="this build has no monkey run")
def test_monkey_run_follows_the_assets(start, src):
    write_files(src)
    (src / "shop.c").write_text(SOURCE)
    server = start(src / "shop.c")
    old = server.get("/page").text
    (src / "assets/app.css").write_text("body { color: blue }\n")
    wait_until(lambda: server.get("/page").text != old, "the new URL is on the page", 20)
    for folder in ("a/b/c/d/e/f", "a/b/new/folder"):
        (src / "assets" / folder).mkdir(parents=True, exist_ok=True)
        (src / "assets" / folder / "g.txt").write_text(f"in {folder}")
        wait_until(lambda path=f"/v1/static/{folder}/g.txt", text=f"in {folder}": server.get(path).text == text, "the new file", 20)
