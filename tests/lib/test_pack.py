# SPDX-License-Identifier: Apache-2.0
"""`monkey pack` writes a folder as C source; a program serves it from memory."""
import gzip
import os
import shutil
import subprocess

import pytest

PROGRAM_C = r"""
#include <monkey/server.h>
#include <stdio.h>

extern const struct mk_memory_file site[];
extern const size_t site_n;

int main(void)
{
    unsigned port;
    struct mk_server *s = mk_server_new(NULL);
    if (mk_server_add_files(s, site, site_n, sizeof site[0]) || mk_server_listen(s, "127.0.0.1:0", &port)) {
        fprintf(stderr, "%s\n", mk_server_error(s));
        return 1;
    }
    printf("http://127.0.0.1:%u/\n", port);
    fflush(stdout);
    return mk_server_run(s);
}
"""
EVERY_BYTE = bytes(range(256)) * 3


@pytest.fixture
def web(tmp_path):
    folder = tmp_path / "web"
    (folder / "js").mkdir(parents=True)
    (folder / "index.html").write_text("<p>page</p>")
    (folder / "js/app.js").write_text("let a = 1;\n" * 200)
    (folder / "bytes.bin").write_bytes(EVERY_BYTE)
    (folder / "empty.txt").write_text("")
    (folder / "made.css").write_text("p { color: red }")
    (folder / "made.css.gz").write_bytes(b"not really gzip")
    (folder / "made.css.br").write_bytes(b"not really br")
    (folder / "alone.gz").write_bytes(b"a file of its own")
    (folder / ".hidden").write_text("secret")
    return folder


def fetch(program, path, **headers):
    connection = program.connect()
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, response.headers, body


def test_packed_folder_is_served_from_memory(run, web, package, tmp_path):
    done = run("pack", "-o", tmp_path / "site.c", "-n", "site", web)
    assert (done.code, done.out, done.err) == (0, "", "")
    (tmp_path / "main.c").write_text(PROGRAM_C)
    shutil.rmtree(web)
    made = package.compile(tmp_path / "main.c", tmp_path / "main", "-std=c11", "-Wpedantic", "-Wconversion", tmp_path / "site.c")
    with package.run(made) as program:
        assert fetch(program, "/")[2] == fetch(program, "/index.html")[2] == b"<p>page</p>"
        assert fetch(program, "/index.html")[1]["Content-Type"].startswith("text/html")
        assert fetch(program, "/bytes.bin")[2] == EVERY_BYTE
        assert fetch(program, "/empty.txt")[2] == b""
        assert fetch(program, "/alone.gz")[2] == b"a file of its own"
        assert [fetch(program, path)[0] for path in ("/.hidden", "/made.css.gz")] == [404, 404]
        status, headers, body = fetch(program, "/js/app.js", **{"Accept-Encoding": "gzip"})
        assert (status, headers["Content-Encoding"], gzip.decompress(body)) == (200, "gzip", b"let a = 1;\n" * 200)
        assert fetch(program, "/js/app.js")[2] == b"let a = 1;\n" * 200
        assert fetch(program, "/made.css", **{"Accept-Encoding": "gzip"})[2] == b"not really gzip"
        assert fetch(program, "/made.css", **{"Accept-Encoding": "br"})[2] == b"not really br"
        assert fetch(program, "/made.css")[2] == b"p { color: red }"
        program.end(code=-15)


def test_pack_output_depends_only_on_paths_and_bytes(run, web, tmp_path):
    first = run("pack", web).out
    copy = tmp_path / "copy"
    for path in sorted(web.rglob("*"), reverse=True):
        if path.is_file():
            (copy / path.relative_to(web)).parent.mkdir(parents=True, exist_ok=True)
            (copy / path.relative_to(web)).write_bytes(path.read_bytes())
            os.utime(copy / path.relative_to(web), (1, 1))
    assert run("pack", f"{copy}/").out == first and first.count("{.path") == 6


def test_pack_no_gzip_omits_compression(run, web):
    assert "gzip_" in run("pack", web).out
    (web / "made.css.gz").unlink()
    assert "gzip_" not in run("pack", "--no-gzip", web).out


@pytest.mark.parametrize("name, message", [("a b.txt", "cannot contain a space"), ("a:b", "cannot contain `:`"), ("a*", "cannot contain `*`")])
def test_pack_path_without_url_is_an_error(run, web, tmp_path, name, message):
    (web / name).write_text("x")
    (tmp_path / "out.c").write_text("before")
    done = run("pack", "-o", tmp_path / "out.c", web)
    assert (done.code, done.out) == (1, "") and done.err == f"monkey pack: {web}/{name}: a path of a URL {message}\n"
    assert (tmp_path / "out.c").read_text() == "before"


def test_pack_follows_links_to_files_but_not_to_folders(run, web):
    (web / "loop").symlink_to(web)
    (web / "linked.txt").symlink_to(web / "index.html")
    (web / "pipe.txt").unlink(missing_ok=True)
    os.mkfifo(web / "pipe.txt")
    out = run("pack", web).out
    assert '"/linked.txt"' in out and "loop" not in out and "pipe" not in out
    (web / "dangling").symlink_to(web / "nowhere")
    done = run("pack", web)
    assert done.code == 1 and done.err == f"monkey pack: {web}/dangling: No such file or directory\n"


def test_pack_full_disk_is_an_error(run, web):
    done = run("pack", "-o", "/dev/full", web)
    assert done.code == 1 and done.err == "monkey pack: /dev/full: No space left on device\n"
    with open("/dev/full", "w", encoding="ascii") as full:
        done = run("pack", web, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.code == 1 and done.err == "monkey pack: standard output: No space left on device\n"


@pytest.mark.parametrize("words, message", [
    ([], "usage: monkey pack"), (["a", "b"], "usage: monkey pack"), (["-x", "a"], "usage: monkey pack"),
    (["-n", "1a", "a"], "1a: not a C identifier"), (["-n", "", "a"], "not a C identifier")])
def test_pack_wrong_usage_exits_with_2(run, words, message):
    done = run("pack", *words)
    assert (done.code, done.out) == (2, "") and message in done.err


def test_pack_empty_or_absent_folder_is_an_error(run, tmp_path):
    (tmp_path / "none").mkdir()
    assert run("pack", tmp_path / "none").err == f"monkey pack: {tmp_path}/none: no files to pack\n"
    assert run("pack", tmp_path / "absent").err == f"monkey pack: {tmp_path}/absent: No such file or directory\n"
    assert run("pack", "--help").out.startswith("usage: monkey pack")
