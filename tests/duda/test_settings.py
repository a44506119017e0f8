# SPDX-License-Identifier: Apache-2.0
"""A service's own configuration section, with typed keys and secrets."""
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
