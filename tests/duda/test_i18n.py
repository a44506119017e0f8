# SPDX-License-Identifier: Apache-2.0
"""Translations of a service: files, placeholders, the language of a request, and mistakes in the files."""
import pytest

import services
from monkey import PROTOCOLS
from running import cache, runtime, src, start  # noqa: F401
from samples import CAN_RUN

pytestmark = CAN_RUN

SOURCE = r"""
#include <duda.h>
#include <duda/task.h>

static int text(struct duda_ctx *d)
{
    const struct duda_entry params[] = {{"name", duda_value_text(duda_query(d, "name"))}, {"n", duda_value_integer(7)}};
    mk_str found = duda_translate(d, duda_query_or(d, "key", "a"), duda_query(d, "none").p ? duda_value_null() : duda_value_map(params, 2));
    return duda_printf(d, "%s: %s", duda_language(d) ? duda_language(d) : "-", found.p);
}

static int in_task(struct duda_ctx *d)
{
    int e = duda_set_language(d, MK_STR("de"));
    duda_log(d, MK_LOG_WARN, "task: %d %s", e, duda_translate(d, "a", duda_value_null()).p);
    return 0;
}

static int task(struct duda_ctx *d)
{
    int e = duda_after_response(d, in_task, "", 1);
    return e ? e : 204;
}

static int twice(struct duda_ctx *d)
{
    int unknown = duda_set_language(d, MK_STR("xx")), e = duda_set_language(d, MK_STR("de"));
    return e ? e : duda_printf(d, "%d %s", unknown, duda_language(d));
}

DUDA_SERVICE(words, DUDA_GET("/text", text), DUDA_GET("/task", task), DUDA_GET("/twice", twice));
"""
ENGLISH = "# English\n\na = one\n b.c-d_e=  {name} has {n} {of} them {  \nlines = x\\ny\r\nempty =\neq = 1 = 1\n"
GERMAN = "a = eins\nlines = ä\\nö"


def files(folder, **texts):
    (folder / "translations").mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / "translations" / f"{name}.txt").write_text(text)


@pytest.fixture
def words(monkey, tmp_path):
    def serve(english=ENGLISH, german=GERMAN, **how):
        files(tmp_path, en=english, de=german)
        return monkey(plugins=[services.build(tmp_path, "words", SOURCE)], **how)
    return serve


@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
def test_messages_are_in_the_language_of_the_client(words):
    server = words(workers=2)
    for _ in range(4):
        assert server.get("/text", fields=[("Accept-Language", "de")]).text == "de: eins"
        assert server.get("/text").text == "en: one"
    assert server.get("/text?key=lines", fields=[("Accept-Language", "de")]).text == "de: ä\nö"
    assert server.get("/text?key=lines").text == "en: x\ny"
    assert server.get("/text?key=eq", fields=[("Accept-Language", "de")]).text == "de: 1 = 1"
    assert server.get("/text?key=empty").text == "en: " and server.get("/text?key=none").text == "en: none"


def test_placeholders_are_replaced_once(words):
    server = words()
    assert server.get("/text?key=b.c-d_e&name=%7Bn%7D").text == "en: {n} has 7 {of} them {"
    assert server.get("/text?key=b.c-d_e&none=1").text == "en: {name} has {n} {of} them {"


def test_service_chooses_the_language(words):
    server = words()
    assert server.get("/twice").text == "-2 de"
    assert server.get("/task").status == 204
    server.err.wait_for("task: 0 eins")


def test_isolated_service_has_its_translations(monkey, tmp_path):
    files(tmp_path, en=ENGLISH, de=GERMAN)
    service = services.build(tmp_path, "words", SOURCE)
    server = monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {service}\n    Name words\n", sections="[ROUTES]\n    /w/* isolate words\n")
    assert server.get("/w/text", fields=[("Accept-Language", "de")]).text == "de: eins"


def test_service_without_translations_returns_keys(monkey, tmp_path):
    server = monkey(plugins=[services.build(tmp_path, "words", SOURCE)])
    assert server.get("/text").text == "-: a" and server.get("/twice").status == 404


@pytest.mark.parametrize("english, german, problem", [
    ("a = 1\nnonsense\n", "", "translations/en.txt, line 2: expected `key = text`"), ("a b = 1\n", "", "translations/en.txt, line 1: expected"),
    ("a = 1\n", "a = 1\nb = 2\n", "translations/de.txt: the key `b` is not in en.txt"), ("a = 1\na = 2\n", "", "translations/en.txt: the key `a` appears twice"),
    ("a = " + "x" * (1 << 20), "", "translations/en.txt: larger than 1 MB")], ids=range(5))
def test_mistake_in_a_file_is_a_configuration_error(words, english, german, problem):
    server = words(english, german, expect_start=False)
    server.exit_code = 3
    server.wait()
    assert problem in server.err.text


def test_first_language_is_the_default_without_english(monkey, tmp_path):
    files(tmp_path, nl="a = een\n", fr="a = un\n")
    server = monkey(plugins=[services.build(tmp_path, "words", SOURCE)])
    assert server.get("/text").text == "fr: un"


def test_run_reloads_changed_translations(start, src):  # noqa: F811
    (src / "words.c").write_text(SOURCE)
    files(src, en="a = one\n")
    server = start(src / "words.c")
    assert server.get("/text").text == "en: one"
    files(src, en="a = two\n")
    assert server.get("/text").text == "en: two"
