# SPDX-License-Identifier: Apache-2.0
"""Services built with the headers of an earlier release, whose structs had fewer members, run without a rebuild."""
import json
import re
import signal

import pytest

import services
from monkey import ROOT

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>

struct place {
    mk_str city;
    unsigned zip;
};
static const struct duda_schema_field place_fields[] = {
    DUDA_STRING(struct place, city, .max_length = 20),
    DUDA_INTEGER(struct place, zip, DUDA_MAXIMUM(99999)),
};
static const struct duda_schema place_schema = DUDA_SCHEMA(struct place, place_fields);

static int create(struct duda_ctx *d)
{
    struct place place = {.zip = 1};
    int e = duda_bind_json(d, &place_schema, &place, NULL);
    return e ? e : duda_send_json_struct(d, &place_schema, &place);
}

static int show(struct duda_ctx *d)
{
    return duda_puts(d, duda_path(d).p);
}

static bool is_staff(struct duda_ctx *d)
{
    return duda_header(d, "X-Staff").p != NULL;
}

static unsigned started;

static int start(struct mk_worker *worker)
{
    (void)worker;
    started++;
    return 0;
}

static int show_started(struct duda_ctx *d)
{
    return duda_printf(d, "%u", started);
}

DUDA_ROUTES(inner, DUDA_REQUIRE(is_staff, 403), DUDA_GET("/page", show, "Staff only."));
DUDA_SERVICE(older,
    DUDA_GET("/", show, "The root."),
    DUDA_GET("/deep", show, "A larger stack.", .stack = 131072),
    DUDA_START(start),
    DUDA_GROUP("/staff", inner, "For staff."),
    DUDA_POST("/places", create, "Creates a place."),
    DUDA_GET("/started", show_started, "Calls of start()."),
);
"""


def without(folder, header, *members):
    """Writes a copy of a header without the lines of these members, and returns the flags that compile a service with it."""
    text = (ROOT / "duda/include/duda" / header).read_text()
    for member in members:
        assert text.count(member) == 1, member
        text = text.replace(member, "")
    path = folder / header
    path.write_text(text)
    return ["-include", path]


JSON = [("Content-Type", "application/json")]
ROUTE = "    uint64_t body_max;\n"
FIELD = "    const struct duda_schema *schema; /**< DUDA_KIND_OBJECT */\n"


@pytest.mark.parametrize("header, member", [(None, None), ("service.h", ROUTE), ("schema.h", FIELD)], ids=["current", "route", "schema_field"])
def test_service_built_with_smaller_structs_runs(monkey, tmp_path, header, member):
    flags = without(tmp_path, header, member) if header else []
    server = monkey(plugins=[services.build(tmp_path, "older", SOURCE, *flags)])
    assert server.get("/").text == "/"
    assert server.get("/deep").text == "/deep"
    assert server.get("/staff/page").status == 403
    assert server.get("/staff/page", fields=[("X-Staff", "1")]).text == "/staff/page"
    assert server.get("/started").text == "1"
    made = server.get("/places", method="POST", body=b'{"city": "Ulm", "zip": 89073}', fields=JSON)
    assert (made.status, json.loads(made.text)) == (200, {"city": "Ulm", "zip": 89073})
    wrong = server.get("/places", method="POST", body=b'{"city": "Ulm", "zip": 100000}', fields=JSON)
    assert wrong.status in (400, 422) and "zip" in wrong.text


TASKS = r"""
#include <duda.h>

static int start_task(struct duda_ctx *d)
{
    duda_log(d, MK_LOG_INFO, "start task begins");
    int e = duda_sleep(d, 60000);
    duda_log(d, MK_LOG_INFO, "start task ends");
    return e;
}

static int later(struct duda_ctx *d)
{
    duda_log(d, MK_LOG_INFO, "later begins");
    int e = duda_sleep(d, 60000);
    duda_log(d, MK_LOG_INFO, "later ends");
    return e;
}

static void stop(struct mk_worker *w)
{
    mk_worker_log(w, MK_LOG_INFO, "the service stops");
}

static int after(struct duda_ctx *d)
{
    return duda_after_response(d, later, NULL, 0) ? 500 : duda_puts(d, "started");
}

DUDA_SERVICE(older, DUDA_STOP(stop), DUDA_START_TASK(start_task), DUDA_GET("/after", after));
"""
HOOK = re.compile(r"^ *\.worker_cancel = duda_service_cancel, *\\\n", re.MULTILINE)


@pytest.mark.processes("the server stops")
@pytest.mark.parametrize("has_hook", [True, False], ids=["current", "older"])
def test_tasks_end_before_their_service_stops(monkey, tmp_path, has_hook):
    (hook,) = HOOK.findall((ROOT / "duda/include/duda/service.h").read_text())
    flags = [] if has_hook else without(tmp_path, "service.h", hook)
    server = monkey(plugins=[services.build(tmp_path, "older", TASKS, *flags)], workers=1)
    server.allow("was cancelled: the worker stops")
    assert server.get("/after").text == "started"
    server.err.wait_for("start task begins")
    server.err.wait_for("later begins")
    server.tell(signal.SIGTERM)
    server.wait()
    log = server.err.text
    before = log[:log.index("the service stops")]
    assert "start task ends" in before and "later ends" in before, log


@pytest.mark.parametrize("size", ["sizeof(struct duda_route) + 8", "offsetof(struct duda_route, routes)"], ids=["larger", "too_small"])
@pytest.mark.parametrize("table", ["duda_routes_older", "inner"])
def test_table_with_unsupported_entry_size_is_rejected(monkey, tmp_path, table, size):
    header = (ROOT / "duda/include/duda/service.h").read_text()
    wrong = header.replace("sizeof duda_entries_##word[0]}", f"sizeof #word == sizeof \"{table}\" ? {size} : sizeof(struct duda_route)}}")
    assert wrong != header
    (tmp_path / "service.h").write_text(wrong)
    server = monkey(plugins=[services.build(tmp_path, "older", SOURCE, "-include", tmp_path / "service.h")], expect_start=False)
    server.exit_code = 3
    server.wait()
    server.err.wait_for("was built for another version of Duda: rebuild it")


@pytest.mark.parametrize("size", ["0", "8", "sizeof(struct duda_schema_field) + 8"])
def test_schema_without_valid_field_size_is_rejected(monkey, tmp_path, size):
    source = SOURCE.replace("= DUDA_SCHEMA(struct place, place_fields);",
                            f'= {{.name = "struct place", .size = sizeof(struct place), .fields = place_fields, .n = 2, .field_size = {size}}};')
    source = source.replace('"Creates a place."', '"Creates a place.", .request_body = &place_schema')
    server = monkey(plugins=[services.build(tmp_path, "older", source)], expect_start=False)
    server.exit_code = 3
    server.wait()
    server.err.wait_for("a schema has no valid `.field_size`: define each schema with DUDA_SCHEMA")


def test_hand_written_schema_of_no_route_fails_with_a_message(monkey, tmp_path):
    source = SOURCE.replace("= DUDA_SCHEMA(struct place, place_fields);",
                            '= {.name = "struct place", .size = sizeof(struct place), .fields = place_fields, .n = 2};')
    server = monkey(plugins=[services.build(tmp_path, "older", source)])
    made = server.get("/places", method="POST", body=b'{"city": "Ulm", "zip": 89073}', fields=JSON)
    assert made.status in (400, 422) and "use DUDA_SCHEMA()" in made.text


@pytest.mark.parametrize("old, new", [
    ("sizeof(struct duda_service), ", "8, "), ("sizeof(struct duda_service), ", "sizeof(struct duda_service) + 8, "),
    ("{DUDA_ABI, ", "{DUDA_ABI + 1, "), ("{DUDA_ABI, ", "{DUDA_ABI_OLDEST - 1, ")], ids=["smaller", "larger", "later_abi", "earlier_abi"])
def test_service_of_unsupported_version_is_rejected(monkey, tmp_path, old, new):
    header = (ROOT / "duda/include/duda/service.h").read_text()
    wrong = header.replace(old, new)
    assert wrong != header
    (tmp_path / "service.h").write_text(wrong)
    server = monkey(plugins=[services.build(tmp_path, "older", SOURCE, "-include", tmp_path / "service.h")], expect_start=False)
    server.exit_code = 3
    server.wait()
    server.err.wait_for("the service `older` was built for another version of Duda: rebuild it")
