# SPDX-License-Identifier: Apache-2.0
"""A form that cannot be received is not taken for an empty one, even by a handler that does not call duda_form_load()."""
import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>

static int greet(struct duda_ctx *d)
{
    mk_str name = duda_form(d, "name");
    return duda_printf(d, "hello %s\n", name.p ? name.p : "stranger");
}

static int require(struct duda_ctx *d)
{
    return duda_form(d, "name").p ? duda_puts(d, "named\n") : 422;
}

static int count(struct duda_ctx *d)
{
    return duda_printf(d, "%d", duda_upload_at(d, 0) != NULL);
}

struct person {
    mk_str name, mail, *tags;
    size_t n_tags;
    unsigned age;
};
static const struct duda_schema_field members[] = {
    DUDA_STRING(struct person, name, .max_length = 3, .pattern = "^[a-z]*$"),
    DUDA_STRING(struct person, mail, .format = DUDA_FORMAT_EMAIL),
    DUDA_LIST(struct person, tags, n_tags, DUDA_KIND_STRING, .optional = true, .pattern = "^[a-z]$"),
    DUDA_INTEGER(struct person, age, .optional = true, DUDA_MAXIMUM(9)),
};
static const struct duda_schema schema = DUDA_SCHEMA(struct person, members);

static int again(struct duda_ctx *d)
{
    struct person person = {.name = MK_STR("-"), .mail = MK_STR("-"), .age = 1};
    struct duda_validation_errors errors;
    int e = duda_bind_form(d, &schema, &person, &errors);
    if (e && e != -EINVAL)
        return e;
    return duda_printf(d, "%zu %.*s %.*s %u", e ? errors.n : 0, MK_STR_ARG(person.name), MK_STR_ARG(person.mail), person.age);
}

DUDA_SERVICE(forms, DUDA_POST("/again", again), DUDA_ANY("/greet", greet, "Greets."), DUDA_POST("/require", require, "Needs a name."),
    DUDA_POST("/count", count, "Counts files."));
"""
FORM = [("Content-Type", "application/x-www-form-urlencoded")]


@pytest.fixture
def server(monkey, tmp_path):
    return monkey(plugins=[services.build(tmp_path, "forms", SOURCE)])


@pytest.mark.parametrize("path", ["/greet", "/count"])
@pytest.mark.parametrize("body, status", [(b"name=" + b"x" * 70000, 413), (b"name=%zz", 400)], ids=["large", "malformed"])
def test_form_error_replaces_success(server, path, body, status):
    assert server.get(path, "POST", body=body, fields=FORM).status == status


def test_result_of_the_handler_that_reports_an_error_stays(server):
    assert server.get("/require", "POST", body=b"name=%zz", fields=FORM).status == 422


@pytest.mark.parametrize("method, body, fields", [("GET", b"", []), ("POST", b"", []), ("POST", b"{}", [("Content-Type", "application/json")])])
def test_request_without_a_form_has_no_fields(server, method, body, fields):
    assert server.get("/greet", method, body=body, fields=fields).text == "hello stranger\n"


def test_valid_form_is_received(server):
    assert server.get("/greet", "POST", body=b"name=ana", fields=FORM).text == "hello ana\n"


@pytest.mark.parametrize("body, again", [
    (b"name=ana&mail=a@b.org&age=3", "0 ana a@b.org 3"),
    (b"name=anna&mail=a&age=3", "2 anna a 3"),      # length, format
    (b"name=A%3Cb&mail=a@b.org", "1 A<b a@b.org 1"),  # pattern
    (b"name=a%ff&mail=&age=99", "3 -  1"),          # not UTF-8, empty; numbers are not stored
    (b"name=ana&mail=a@b.org&tags=a&tags=BB", "1 ana a@b.org 1"),
])
def test_invalid_form_can_be_shown_again(server, body, again):
    assert server.get("/again", "POST", body=body, fields=FORM).text == again
