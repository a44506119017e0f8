# SPDX-License-Identifier: Apache-2.0
"""A program serves from memory the folder that `monkey pack` has packed."""
import gzip
import shutil

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
