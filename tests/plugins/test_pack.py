# SPDX-License-Identifier: Apache-2.0
"""`monkey pack` writes a folder as C source. (tests/lib/test_packed_folder.py compiles and serves it.)"""
import os
import subprocess

import pytest


@pytest.fixture
def web(tmp_path):
    folder = tmp_path / "web"
    (folder / "js").mkdir(parents=True)
    (folder / "index.html").write_text("<p>page</p>")
    (folder / "js/app.js").write_text("let a = 1;\n" * 200)
    (folder / "empty.txt").write_text("")
    (folder / "made.css").write_text("p { color: red }")
    (folder / "made.css.gz").write_bytes(b"not really gzip")
    (folder / "made.css.br").write_bytes(b"not really br")
    (folder / ".hidden").write_text("secret")
    return folder


def test_pack_output_depends_only_on_paths_and_bytes(run, web, tmp_path):
    first = run("pack", web).out
    copy = tmp_path / "copy"
    for path in sorted(web.rglob("*"), reverse=True):
        if path.is_file():
            (copy / path.relative_to(web)).parent.mkdir(parents=True, exist_ok=True)
            (copy / path.relative_to(web)).write_bytes(path.read_bytes())
            os.utime(copy / path.relative_to(web), (1, 1))
    assert run("pack", f"{copy}/").out == first and first.count("{.path") == 4


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
