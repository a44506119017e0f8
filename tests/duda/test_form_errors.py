# SPDX-License-Identifier: Apache-2.0
"""A form that cannot be received is not taken for an empty one, even by a handler that does not call duda_form_load()."""
import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>

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

DUDA_SERVICE(forms, DUDA_ANY("/greet", greet, "Greets."), DUDA_POST("/require", require, "Needs a name."),
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
