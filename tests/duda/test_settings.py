# SPDX-License-Identifier: Apache-2.0
"""A service's own configuration section, with typed keys and secrets."""
import shutil

import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#define DUDA_SETTINGS shop_table
#include <duda.h>

struct shop {
    uint32_t items_max;
    mk_str name, key;
};

static const struct mk_conf_key shop_keys[] = {
    {.name = "ItemsMax", .type = MK_CONF_NUM, MK_CONF_AT(struct shop, items_max), .default_value = "100", .max = 1000,
     .help = "How many."},
    {.name = "Name", .type = MK_CONF_TEXT, MK_CONF_AT(struct shop, name), .default_value = "shop", .help = "Its name."},
    {.name = "Key", .type = MK_CONF_CUSTOM, MK_CONF_AT(struct shop, key), .parse = duda_secret,
     .syntax = DUDA_SECRET_SYNTAX, .help = "Its key."},
};
static const struct mk_conf_table shop_table = {
    .section = "SHOP", .keys = shop_keys, .n = MK_LEN(shop_keys), .size = sizeof(struct shop), .help = "A shop."};

static int show(struct duda_ctx *d)
{
    const struct shop *shop = duda_settings(d);
    return duda_printf(d, "%s %u %.*s", shop->name.p, shop->items_max, MK_STR_ARG(shop->key));
}

DUDA_SERVICE(shop, DUDA_GET("/", show, "Shows its settings."));
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("shop"), "shop", SOURCE)


def test_section_sets_values_and_keeps_defaults(monkey, shop):
    assert monkey(plugins=[shop]).get("/").text == "shop 100 "
    server = monkey(plugins=[shop], top="[SHOP]\n    ItemsMax 7\n    Name x\n")
    assert server.get("/").text == "x 7 "


def test_secret_is_read_from_its_source_and_never_printed(monkey, run, shop, tmp_path):
    (tmp_path / "key").write_text("from a file\n")
    server = monkey(plugins=[shop], top="[SHOP]\n    Key file:key\n")
    assert server.get("/").text == "shop 100 from a file"
    assert "from a file" not in run("-T", "-c", server.config).out
    server = monkey(plugins=[shop], top="[SHOP]\n    Key env:SHOP_KEY\n", environment={"SHOP_KEY": "of the environment"})
    assert server.get("/").text == "shop 100 of the environment"


@pytest.mark.parametrize("line, message", [
    ("Key env:NO_SUCH_KEY", "the environment variable `NO_SUCH_KEY` is not set"),
    ("Key file:none", "cannot read .*none`: No such file"),
    ("Key file:empty", "the secret is empty"),
    ("Key plain", "env:NAME or file:PATH"),
    ("ItemsMax 1001", "ItemsMax"),
    ("Itemsmax x", "ItemsMax|number"),
])
def test_invalid_values_are_rejected(monkey, shop, tmp_path, line, message):
    (tmp_path / "empty").write_text("\n")
    server = monkey(plugins=[shop], top=f"[SHOP]\n    {line}\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    server.err.wait_for(message)


PATHS = r"""
#define DUDA_SETTINGS files_table
#include <duda.h>

struct files {
    mk_str uploads, manual, other;
};
static const struct mk_conf_key files_keys[] = {
    {.name = "Uploads", .type = MK_CONF_TEXT, MK_CONF_AT(struct files, uploads), .flags = MK_CONF_WRITES, .default_value = "up"},
    {.name = "Manual", .type = MK_CONF_TEXT, MK_CONF_AT(struct files, manual), .flags = MK_CONF_READS},
    {.name = "Other", .type = MK_CONF_TEXT, MK_CONF_AT(struct files, other), .default_value = "other"},
};
static const struct mk_conf_table files_table = {
    .section = "FILES", .keys = files_keys, .n = MK_LEN(files_keys), .size = sizeof(struct files)};

static int save(struct duda_ctx *d)
{
    const struct files *files = duda_settings(d);
    mk_str path = duda_sprintf(d, "%s/%s", files->uploads.p, duda_param(d, "name").p);
    int e = duda_body_save(d, path.p);
    return e ? e : duda_printf(d, "%s\n", path.p);
}

static int load(struct duda_ctx *d)
{
    return duda_send_file_from(d, ((const struct files *)duda_settings(d))->uploads.p, duda_param(d, "name"));
}

static int manual(struct duda_ctx *d)
{
    return duda_send_file_from(d, ((const struct files *)duda_settings(d))->manual.p, MK_STR("a.txt"));
}

static int other(struct duda_ctx *d)
{
    return duda_puts(d, ((const struct files *)duda_settings(d))->other.p);
}

static int relative(struct duda_ctx *d)
{
    return duda_body_save(d, "no-such-folder/x");
}

DUDA_SERVICE(files, DUDA_PUT("/up/:name", save), DUDA_GET("/up/:name", load), DUDA_GET("/manual", manual), DUDA_GET("/other", other),
             DUDA_PUT("/relative", relative));
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("files"), "files", PATHS)


@pytest.mark.parametrize("section", ["[FILES]\n", "[FILES]\n    Uploads ./up\n"])
def test_paths_are_absolute_and_permitted(monkey, files, section, tmp_path):
    """Relative paths begin at the folder of the configuration file."""
    (tmp_path / "up").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.txt").write_text("manual")
    server = monkey(plugins=[files], top=section + "    Manual docs\n")
    assert server.get("/up/a", "PUT", body=b"content").text == f"{tmp_path}/up/a\n"
    assert server.get("/up/a").text == "content" and (tmp_path / "up/a").read_text() == "content"
    assert server.get("/manual").text == "manual"
    assert server.get("/other").text == "other", "a text without the flags stays as it is"
    assert server.get("/relative", "PUT", body=b"x").status == 500
    server.err.wait_for("no-such-folder/x: No such file or directory .a relative path starts at the working directory")


def test_missing_folder_is_an_error(monkey, files):
    server = monkey(plugins=[files], top="[FILES]\n    Uploads none\n", expect_start=False)
    server.exit_code = 3
    server.wait()
    server.err.wait_for("there is no folder `/.*/none`: create it")


TESTS = r"""
#include <duda/test.h>

DUDA_TEST(one)
{
    duda_expect_status(t, duda_test_send(t, &(struct duda_test_request){.method = "PUT", .target = "/up/a", .body = MK_STR("x")}), 200);
    duda_expect_text(t, duda_test_get(t, "/up/a").body, "x");
}

DUDA_TEST(two)
{
    duda_expect_status(t, duda_test_get(t, "/up/a"), 404);
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler here")
def test_tests_write_into_their_own_folder(run, tmp_path, tmp_path_factory):
    (tmp_path / "up").mkdir()
    (tmp_path / "files.c").write_text(PATHS)
    (tmp_path / "files_test.c").write_text(TESTS)
    (tmp_path / "files.conf").write_text("[FILES]\n    Uploads up\n")
    done = run("test", "-i", tmp_path / "files.conf", tmp_path / "files_test.c",
               environment={"XDG_CACHE_HOME": str(tmp_path_factory.getbasetemp() / "cache"), "TMPDIR": "/tmp"})
    assert done.code == 0 and "2 tests passed" in done.out, done
    assert not list((tmp_path / "up").iterdir())
