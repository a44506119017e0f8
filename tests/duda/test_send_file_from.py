# SPDX-License-Identifier: Apache-2.0
"""duda_send_file_from(): files of a folder that the service has chosen, and folders that the sandbox denies."""
import os
import shutil

import pytest

import services
from running import cache, runtime, src, start  # pylint: disable=unused-import

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>

static int get(struct duda_ctx *d) { return duda_send_file_from(d, FOLDER, duda_param(d, "name")); }
static int query(struct duda_ctx *d) { return duda_send_file_from(d, FOLDER, duda_query(d, "name")); }
static int none(struct duda_ctx *d) { return duda_send_file_from(d, FOLDER "/none", MK_STR("a.txt")); }
static int late(struct duda_ctx *d)
{
    int e = duda_puts(d, "x");
    e = e ? e : duda_flush(d);
    return e ? e : duda_send_file_from(d, FOLDER, MK_STR("a.txt")) == 0 ? 500 : 0;
}
static int typed(struct duda_ctx *d)
{
    int e = duda_content_type(d, MK_STR("image/x-test"));
    return e ? e : duda_send_file_from(d, FOLDER, MK_STR("a.txt"));
}
static int save(struct duda_ctx *d)
{
    int e = duda_body_save(d, duda_query(d, "none").p ? FOLDER "/none/b" : FOLDER "/b");
    return e ? e : 201;
}
DUDA_SERVICE(files, DUDA_GET("/files/*name", get), DUDA_GET("/query", query), DUDA_GET("/none", none), DUDA_GET("/late", late),
             DUDA_GET("/typed", typed), DUDA_PUT("/save", save));
"""
ALLOWED = "[DUDA]\n    {} data\n"


@pytest.fixture
def files(monkey, tmp_path):
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "a.txt").write_text("0123456789")
    (folder / "sub/b.css").write_text("b{}")
    (folder / ".hidden").write_text("hidden")
    (folder / "link").symlink_to("a.txt")
    (folder / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "fifo")

    def serve(key="ReadablePaths", **how):
        return monkey(plugins=[services.build(tmp_path, "files", SOURCE, f'-DFOLDER="{folder}"')], top=ALLOWED.format(key) if key else "", **how)
    return serve


@pytest.mark.parametrize("key", ["ReadablePaths", "WritablePaths"])
def test_file_has_validators_type_and_ranges(files, key):
    server = files(key)
    answer = server.get("/files/a.txt")
    assert (answer.status, answer.text) == (200, "0123456789") and answer["Content-Type"].startswith("text/plain")
    assert answer["ETag"] and answer["Last-Modified"]
    assert server.get("/files/a.txt", "HEAD")["Content-Length"] == "10"
    assert server.get("/files/sub/b.css")["Content-Type"].startswith("text/css")
    assert server.get("/typed")["Content-Type"] == "image/x-test"
    part = server.get("/files/a.txt", fields=[("Range", "bytes=2-4"), ("If-Range", answer["ETag"])])
    assert (part.status, part.text) == (206, "234")
    assert server.get("/files/a.txt", fields=[("If-None-Match", answer["ETag"])]).status == 304
    assert server.get("/files/a.txt", fields=[("If-Match", '"x"')]).status == 412


@pytest.mark.parametrize("name", ["none", "", "sub", "sub/", "/sub/b.css", "a.txt/", "a.txt/x", "../secret.txt", "sub/../a.txt", "sub//b.css", "./a.txt", ".hidden",
                                  "link", "out/secret.txt", "fifo", "a.txt%00", "x" * 300])
def test_names_that_are_no_files_of_the_folder_are_not_found(files, name):
    server = files()
    assert server.get(f"/query?name={name}").status == 404
    assert server.get("/query?name=a.txt").status == 200


def test_missing_folder_is_an_error_of_the_server(files):
    server = files("WritablePaths")
    server.allow("cannot be opened|cannot be saved")
    assert server.get("/none").status == 500
    server.err.wait_for("data/none cannot be opened: No such file or directory")
    assert server.get("/save?none=1", "PUT", body=b"x").status == 500
    server.err.wait_for("cannot be saved as .*/data/none/b: No such file or directory")
    assert server.get("/late").text == "x"


@pytest.mark.processes("the sandbox applies to worker processes")
def test_folder_that_the_sandbox_denies_is_an_error_of_the_server(files):
    server = files(None)
    if server.get("/files/a.txt").status == 200:
        pytest.skip("this kernel has no Landlock")
    server.allow("cannot be opened|cannot be saved")
    assert server.get("/files/a.txt").status == 500
    server.err.wait_for("data/a.txt cannot be opened: Permission denied: the folder must be in `ReadablePaths` or `WritablePaths` of .DUDA.")
    assert server.get("/save", "PUT", body=b"x").status == 500
    server.err.wait_for("cannot be saved as .*/data/b: Permission denied: the folder must be in `WritablePaths` of .DUDA.")


def test_readable_folder_is_not_writable(files):
    server = files("ReadablePaths")
    server.allow("cannot be saved")
    assert server.get("/files/a.txt").status == 200
    if server.get("/save", "PUT", body=b"x").status == 201:
        pytest.skip("this kernel has no Landlock")
    server.err.wait_for("WritablePaths")


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler here")
def test_monkey_run_names_the_key_on_the_page(start, src, tmp_path):
    (tmp_path / "data").mkdir()
    (src / "files.c").write_text(SOURCE.replace("FOLDER", f'"{tmp_path}/data"'))
    server = start(src / "files.c")
    server.allow("cannot be saved")
    answer = server.get("/save", "PUT", [("Accept", "text/html")], b"x")
    if answer.status == 201:
        pytest.skip("this kernel has no Landlock")
    assert answer.status == 500 and "WritablePaths" in answer.text, answer.text
