# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs the recipes of docs/guide/duda-cookbook.md."""
import concurrent.futures
import json
import re

import pytest

import services
from monkey import ROOT

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

PAGE = (ROOT / "docs" / "guide" / "duda-cookbook.md").read_text()
RECIPES = dict(re.findall(r"^```c\n/\* (\w+)\.c \*/\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
TEMPLATES = dict(re.findall(r"^```html\n<!-- templates/(\S+) -->\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
FORM = ("Content-Type", "application/x-www-form-urlencoded")


def prepare(monkey, site):
    site.add("file.txt", "a file")
    folder = site.path.parent
    (folder / "templates").mkdir()
    (folder / "album/templates").mkdir(parents=True)
    for name, text in TEMPLATES.items():
        (folder / ("album" if name == "album.html" else "") / "templates" / name).write_text(text)
    (folder / "greeting.key").write_text("sesame\n")
    (folder / "translations").mkdir()
    for name, text in re.findall(r"^```\n# (translations/\w+\.txt)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        (folder / name).write_text(text)
    sections = re.search(r"^    \[GREETING\]\n(?:        .*\n)+", PAGE, re.MULTILINE)[0]
    (folder / "photos").mkdir()
    (folder / "names").mkdir()
    shown = re.search(r"^    \[DUDA\]\n.*\n +Share.*\n\n    \[KV\]\n.*\n", PAGE, re.MULTILINE)[0].replace("\n    ", "\n").strip()
    top = shown.replace("/var/lib/photos", str(folder / "photos")).replace("/var/lib/album", str(folder / "names"))
    monkey(top=top + "\n", sections=sections.replace("env:GREETING_KEY", f"file:{folder}/greeting.key"), plugins=[services.build(folder / ("album" if name == "album" else ""), name, source.replace("/var/lib/photos", str(folder / "photos")), packages=re.findall(r'"duda-(\w+)"', source))
                    for name, source in RECIPES.items()])


@pytest.fixture
def server(lasting):
    return lasting(prepare)


def post(server, path, body, *fields):
    return server.get(path, method="POST", fields=fields, body=body.encode())


def test_cookbook_has_all_recipes():
    assert PAGE.count("```c\n") == len(RECIPES) == 17
    assert list(TEMPLATES) == ["guests.html", "layout.html", "products.html", "album.html"]


def test_basket_recipe_stores_a_struct(server):
    assert post(server, "/basket/tea", "").text == "1\n"


def test_json_recipe_validates_input(server):
    kind = ("Content-Type", "application/json")
    answer = post(server, "/people", '{"name": "Ana", "tags": ["x"]}', kind)
    assert (answer.status, json.loads(answer.text)) == (201, {"name": "Ana", "age": 18, "tags": ["x"]})
    answer = post(server, "/people", '{"name":"Ana","age":151}', kind)
    assert answer.status == 422
    shown = re.search(r"^    (\{\"title.*?\]\})$", PAGE, re.DOTALL | re.MULTILINE).group(1)
    assert json.loads(answer.text) == json.loads(shown)


def test_form_recipe_checks_the_csrf_token(server):
    page = server.get("/guests")
    token = re.search(r'name="csrf_token" value="(\w+)"', page.text).group(1)
    cookie = ("Cookie", page["Set-Cookie"].split(";")[0])
    assert post(server, "/guests", "name=Eve", FORM).status == 403
    answer = post(server, "/guests", f"csrf_token={token}&name=%3Cb%3E", FORM, cookie)
    assert (answer.status, answer["Location"]) == (303, "/guests")
    assert "  <li>&lt;b&gt;\n" in server.get("/guests").text
    assert "must be a string of 1 to 40 characters" in post(server, "/guests", f"csrf_token={token}&name=", FORM, cookie).text


def test_feature_flags_recipe_changes_flags(server):
    def statuses():
        return [server.get("/checkout").status for _ in range(3)]

    assert statuses() == [404] * 3
    for percent, status in ((100, 200), (0, 404), (100, 200)):
        assert server.get("/features/checkout2", "PUT", body=str(percent).encode()).status == 204
        assert statuses() == [status] * 3
    assert server.get("/features/checkout2", "PUT", body=b"1000").status == 413


def test_translations_recipe_speaks_the_language_of_the_client(server):
    def said(target, language):
        answer = server.get(target, fields=[("Accept-Language", language)])
        assert "Accept-Language" in answer["Vary"] and answer.status == 200
        return answer

    german = said("/welcome?name=Ana", "de-CH, en;q=0.5")
    assert (german.text, german["Content-Language"]) == ("Guten Tag, Ana.\n", "de")
    assert said("/welcome?name=Ana", "fr").text == "Good day, Ana.\n"
    assert said("/welcome", "de").text == "Please enter your name.\n"
    assert server.get("/welcome?name=Ana&language=de").text == "Guten Tag, Ana.\n"
    assert server.get("/welcome?language=fr").status == 400
    assert said("/welcome.html", "de").text == "<p>Please enter your name."


def test_upload_recipe_limits_the_body(server):
    kind = ("Content-Type", "multipart/form-data; boundary=xyz")
    body = ('--xyz\r\nContent-Disposition: form-data; name="album"\r\n\r\nsummer\r\n--xyz\r\nContent-Disposition: form-data; '
            'name="photo"; filename="../a b.png"\r\n\r\n12345\r\n--xyz--')
    assert post(server, "/photos", body, kind).text == "a_b.png: 5 bytes for summer\n"
    assert post(server, "/photos", "--xyz--", kind).status == 422
    assert post(server, "/photos", "a=1", FORM).status == 422
    large = body.replace("12345", "x" * (3 << 20))
    assert post(server, "/photos", large, kind).text == f"a_b.png: {3 << 20} bytes for summer\n", "a photo of 3 MB is accepted"
    assert post(server, "/photos", body.replace("12345", "x" * ((5 << 20) + 1)), kind).status == 413
    assert post(server, "/photos", body.replace("12345", "x" * (7 << 20)), kind).status == 413


def test_products_recipe_extends_the_layout(server):
    page = server.get("/products?all").text
    assert page == (
        '<!doctype html>\n<title>Products</title>\n<p>1. <a href="/search?q=Tea%20%26%20biscuits%20for%20two">Tea &amp; biscu…</a> 1,234.50;\n'
        '<p>2. <a href="/search?q=Cup">Cup</a> 3.00\n<script>const names = [{"name":"Tea \\u0026 biscuits for two","price":1234.5},{"name":"Cup","price":3}]</script>\n\n'
        "<p>Last change: 21 September 2026\n")
    assert "<p>Sold out.\n" in server.get("/products").text


def test_downloads_recipe_serves_ranges_and_etags(server):
    manual = server.get("/manual", fields=[("Range", "bytes=2-")])
    assert (manual.status, manual.text) == (206, "file")
    assert manual["Content-Disposition"].endswith("filename*=UTF-8''Handbuch%20f%C3%BCr%20G%C3%A4ste.txt")
    report = server.get("/report")
    assert server.get("/report", fields=[("If-None-Match", report["ETag"])]).status == 304
    assert server.get("/report", fields=[("Range", "bytes=0-3"), ("If-Range", report["ETag"])]).text == "1,1\n"
    assert server.get("/pages/news", fields=[("If-None-Match", '"version-7"')]).status == 304
    assert server.get("/pages/news").text == "<h1>Version 7</h1>\n"


def test_album_recipe_serves_the_photos_of_users(server):
    assert server.get("/album").status == 401
    cookies = {}

    def ask(target, body=None, *fields):
        method = "POST" if body is not None else "GET"
        answer = server.get(target, method, [*fields, ("Cookie", "; ".join(f"{k}={v}" for k, v in cookies.items()))], body or b"")
        cookies.update(line.partition(";")[0].split("=", 1) for line in answer.all("Set-Cookie"))
        return answer

    assert ask("/members/log-in", b"user=ana&password=open+sesame", FORM).status == 303
    kind = ("Content-Type", "multipart/form-data; boundary=xyz")
    form = '--xyz\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n{}\r\n' \
           '--xyz\r\nContent-Disposition: form-data; name="photo"; filename="T\u00f6pfe <1>.png"\r\n\r\n12345\r\n--xyz--'
    assert ask("/album", form.format("x").encode(), kind).status == 403
    token = re.search(r'name="csrf_token" value="([^"]+)"', ask("/album").text)[1]
    saved = ask("/album", form.format(token).encode(), kind)
    assert (saved.status, saved["Location"]) == (303, "/album"), saved.text
    link, name = re.search(r'<a href="(/album/[0-9a-f]{32})">(.*)</a>', ask("/album").text).groups()
    photo = ask(link)
    assert name == "Töpfe &lt;1&gt;.png" and (photo.status, photo.text) == (200, "12345")
    assert photo["Content-Disposition"].startswith("attachment") and photo["Content-Type"] == "application/octet-stream"
    part = ask(link, None, ("Range", "bytes=1-2"), ("If-Range", photo["ETag"]))
    assert (part.status, part.text) == (206, "23")
    assert ask(link, None, ("If-None-Match", photo["ETag"])).status == 304
    assert server.get(link).status == 401 and ask("/album/none").status == 404


@pytest.mark.skipif(not (services.OBJECTS / "monkey-duda-dev.so").exists(), reason="this build has no monkey run")
def test_upload_recipe_runs_as_printed(monkey, tmp_path):
    """`monkey run photos.c` without a configuration accepts 3 MB; the page of the 413 response names the limit."""
    (tmp_path / "photos.c").write_text(RECIPES["photos"])
    (tmp_path / "cache").mkdir()
    server = monkey(args=["run", "-p", "0", tmp_path / "photos.c"],
                    environment={"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_RUNTIME_DIR": str(tmp_path)})
    kind = ("Content-Type", "multipart/form-data; boundary=xyz")
    form = '--xyz\r\nContent-Disposition: form-data; name="photo"; filename="a.png"\r\n\r\n{}\r\n--xyz--'
    assert post(server, "/photos", form.format("x" * (3 << 20)), kind).text.startswith(f"a.png: {3 << 20} bytes")
    refused = post(server, "/photos", form.format("x" * (6 << 20)), kind)
    assert refused.status == 413 and "`.body_max`" in refused.text, refused.text
    refused = post(server, "/photos", form.format("x" * ((5 << 20) + 1)), kind)
    assert refused.status == 413 and "`.file`" in refused.text, refused.text


def test_session_recipe_logs_in_and_out(server):
    assert server.get("/members").status == 401
    assert post(server, "/members/log-in", "user=ana&password=x", FORM).status == 403
    answer = post(server, "/members/log-in", "user=ana&password=open+sesame", FORM)
    cookie = ("Cookie", answer.all("Set-Cookie")[-1].split(";")[0])
    assert answer.status == 303
    assert server.get("/members", fields=[cookie]).text == "Hello ana.\n"
    assert post(server, "/members/log-out", "", FORM, cookie).status == 303
    assert server.get("/members", fields=[cookie]).status == 401
    cookies = [("Cookie", post(server, "/members/log-in", "user=ana&password=open+sesame", FORM)["Set-Cookie"].split(";")[0]) for _ in range(2)]
    assert post(server, "/members/log-out-everywhere", "", FORM, cookies[0]).status == 303
    assert [server.get("/members", fields=[c]).status for c in cookies] == [401, 401]


def test_flash_recipe_shows_a_message_once(server):
    answer = post(server, "/notes", "", FORM)
    cookie = ("Cookie", answer.all("Set-Cookie")[-1].split(";")[0])
    assert answer.status == 303
    assert server.get("/notes", fields=[cookie]).text == "success: Your note is saved.\nYour notes.\n"
    assert server.get("/notes", fields=[cookie]).text == "Your notes.\n"


@pytest.mark.skipif(not (services.OBJECTS / "monkey-duda-seal.so").exists(), reason="this build has no OpenSSL")
def test_encrypted_cookie_recipe_rejects_forged_cookies(server):
    answer = server.get("/visits")
    assert answer.text == "visit 1\n"
    assert server.get("/visits", fields=[("Cookie", answer["Set-Cookie"].split(";")[0])]).text == "visit 2\n"
    assert server.get("/visits", fields=[("Cookie", "visits=100")]).text == "visit 1\n"


def test_middleware_recipe_checks_the_key(server):
    assert server.get("/greeting", fields=[("X-Key", "sesame")]).text == "good day\ngood day\n"
    assert server.get("/greeting").status == 403 and server.get("/greeting", fields=[("X-Key", "open")]).status == 403


def test_lock_recipe_sells_no_item_twice(server):
    def sell(_):
        answer = post(server, "/stock/tea/sell", "")
        return answer.status, answer.text if answer.status == 200 else ""

    with concurrent.futures.ThreadPoolExecutor(6) as buyers:
        answers = sorted(buyers.map(sell, range(6)))
    assert answers == [(200, "0 left\n"), (200, "1 left\n"), (200, "2 left\n"), *[(409, "")] * 3]


@pytest.mark.processes("an embedded server starts no programs")
def test_subprocess_recipe_sorts_lines(server):
    assert post(server, "/sort", "b\na\nb\n").text == "a\nb\n"


def test_negotiation_recipe_selects_type_and_language(server):
    assert server.get("/weather").text == "rain\n"
    answer = server.get("/weather", fields=[("Accept", "application/json"), ("Accept-Language", "de")])
    assert answer.text == '{"weather":"Regen"}'
    assert server.get("/weather", fields=[("Accept", "image/png")]).status == 406


def test_rules_of_members_are_enforced(server):
    """The recipe club.c: formats, patterns, checks, maps, codes and messages."""
    good = {"email": "ana@example.org", "fee": "12.50", "since": "2026-03-01T12:30:00+01:00", "tags": ["new"], "seats": {"hall": 2}}
    answer = post(server, "/club", json.dumps(good), ("Content-Type", "application/json"))
    assert answer.status == 200 and json.loads(answer.text) == good | {"since": "2026-03-01T11:30:00Z"}
    bad = {"email": "ana", "site": "javascript:x", "fee": "1e3", "since": "1969-12-31T23:59:59Z", "tags": ["a", "a"],
           "seats": {"Hall": 1, "bar": 0}}
    answer = post(server, "/club", json.dumps(bad), ("Content-Type", "application/json"))
    assert answer.status == 422
    assert [(e["pointer"], e["code"], e.get("expected", e.get("minimum"))) for e in json.loads(answer.text)["errors"]] == [
        ("/email", "format", "email"), ("/site", "format", "uri"), ("/fee", "format", "decimal"), ("/since", "too_early", None),
        ("/tags", "uniqueItems", None), ("/seats/Hall", "pattern", "^[a-z]+$"), ("/seats/bar", "minimum", 1)]
    assert json.loads(answer.text)["errors"][0]["detail"] == "Please enter your email address"
