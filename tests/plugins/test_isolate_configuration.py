# SPDX-License-Identifier: Apache-2.0
"""The section [ISOLATE]: errors in it, and how it is printed."""
import re

import pytest

import services
from monkey import write_config

pytestmark = [pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda"),
              pytest.mark.processes("it starts no group of processes")]

SOURCE = r"""
#define DUDA_SETTINGS table
#include <duda.h>

struct settings {
    mk_str word;
};

static const struct mk_conf_key keys[] = {
    {.name = "Word", .type = MK_CONF_TEXT, MK_CONF_AT(struct settings, word), .default_value = "none", .help = "A word."}};
static const struct mk_conf_table table = {
    .section = "GUEST", .keys = keys, .n = 1, .size = sizeof(struct settings), .help = "A guest."};

static int pid(struct duda_ctx *d)
{
    return duda_printf(d, "1\n");
}

DUDA_SERVICE(guest, DUDA_GET("/pid", pid, ""));
"""

ISOLATED = "[ROUTES]\n    /guest/* isolate guest\n    /* static\n"


@pytest.fixture(scope="module")
def guest(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("guest"), "guest", SOURCE)


def section(guest, *keys):
    return f"[ISOLATE]\n    Service {guest}\n" + "".join(f"    {key}\n" for key in keys)


@pytest.mark.parametrize("keys, routes, message", [
    (["Include none.conf"], "", r"a\.conf:\d+:\d+: error: the service `guest` cannot serve: .*none\.conf"),
    (["Include bad.conf"], "", r"the service `guest` cannot serve: .*bad\.conf:2:\d+: error: .*Wrod"),
    (["Name Guest"], "", "the name of a service may contain only lower-case letters"),
    (["User no-such-user"], "", "there is no such user"),
    ([], "    /x isolate other\n", "no \\[ISOLATE\\] has a service with this name"),
    (["Memory 1M"], "", "Memory"),
])
def test_isolate_invalid_configuration_is_rejected(run, tmp_path, guest, keys, routes, message):
    (tmp_path / "bad.conf").write_text("[GUEST]\n    Wrod x\n")
    config = write_config(tmp_path / "a.conf", plugins=["isolate"], top=section(guest, *keys), root=tmp_path,
                          sections=ISOLATED + routes)
    done = run("-t", "-c", config)
    assert done.code == 3 and re.search(message, done.err), done.err


def test_isolate_duplicate_service_name_is_rejected(run, tmp_path, guest):
    config = write_config(tmp_path / "a.conf", plugins=["isolate"], top=2 * section(guest), root=tmp_path)
    assert "another [ISOLATE] already has a service named `guest`" in run("-t", "-c", config).err


MANY = r"""
#include <duda.h>

static int item(struct duda_ctx *d)
{
    return duda_puts(d, "item\n");
}

DUDA_ROUTES(inner, ITEMS);
DUDA_SERVICE(many, GROUPS);
"""


@pytest.mark.parametrize("path, is_accepted", [("/", True), ("/" + 600 * "x", False)])
def test_isolate_service_with_too_many_routes_is_rejected(run, tmp_path, path, is_accepted):
    """The descriptions of 2,000 routes with long paths have more than 1 MiB."""
    text = MANY.replace("ITEMS", ", ".join(f'DUDA_GET("{path}{i}", item)' for i in range(100)))
    service = services.build(tmp_path, "many", text.replace("GROUPS", ", ".join(f'DUDA_GROUP("/{i}", inner)' for i in range(20))))
    done = run("-t", "-c", write_config(tmp_path / "a.conf", plugins=["isolate"], top=section(service), root=tmp_path))
    assert done.code == (0 if is_accepted else 3), done.err
    assert ("the service `many` has too many routes: expected at most 10000, in a report below 1024 KiB" in done.err) != is_accepted


def test_isolate_section_appears_in_printed_config_and_explain(run, tmp_path, guest):
    config = write_config(tmp_path / "a.conf", plugins=["isolate"], top=section(guest, "Nice 3"), root=tmp_path, sections=ISOLATED)
    assert re.search(r"\[ISOLATE\]\n(    .*\n)*    Nice +3\n", run("-T", "-c", config).out)
    assert "isolate guest" in run("explain", "GET", "/guest/pid", "-c", config).out
