# SPDX-License-Identifier: Apache-2.0
"""Services of several files: `monkey run`, `build`, `test`, `routes` and `doc` with a folder or several files."""
import json
import re
import shutil
import subprocess

import pytest

import services
from running import BROWSER, cache, compilers, runtime, src, start  # pylint: disable=unused-import

pytestmark = pytest.mark.skipif(not services.BUILT.exists() or not shutil.which("cc"), reason="no Duda, or no compiler here")

FILES = {
    "main.c": '#include "shop.h"\nstatic int home(struct duda_ctx *d) { return duda_printf(d, "home %d\\n", util_add(1, 2)); }\n'
              'DUDA_SERVICE(shop, DUDA_GET("/", home, "Home."), DUDA_GROUP("/items", items, "Items."));\n',
    "shop.h": '#ifndef SHOP_H\n#define SHOP_H\n#include <duda.h>\nint util_add(int a, int b);\nDUDA_ROUTES_DECLARE(items);\n#endif\n',
    "util.c": '#include "shop.h"\n#include "more.h"\nint util_add(int a, int b) { return a + b + MORE; }\n',
    "more.h": "#define MORE 0\n",
    "src/items.c": '#include "../shop.h"\nstatic int list(struct duda_ctx *d) { return duda_puts(d, "list\\n"); }\n'
                   'DUDA_ROUTES(items, DUDA_GET("/", list, "Lists."));\n',
    "off_.c": "not compiled\n",
    "html/page.c": "a page\n",
    "shop_test.c": '#include <duda/test.h>\nDUDA_TEST(home) { duda_expect_text(t, duda_test_get(t, "/").body, "home 3\\n"); }\n',
    "tests/deep/items_test.c": '#include <duda/test.h>\nDUDA_TEST(list) { duda_expect_text(t, duda_test_get(t, "/items/").body, "list\\n"); }\n',
}


@pytest.fixture
def shop(src):
    folder = src / "shop"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def call(run, tmp_path, cache):
    cache.mkdir(exist_ok=True)
    return lambda *words, environment=(), **how: run(
        *words, environment={"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(tmp_path)} | dict(environment), **how)


@compilers
def test_folder_is_served_as_one_service(start, shop, compiler):
    """Every file is watched: sources, headers, new files and files in new subfolders."""
    server = start(shop, compiler=compiler)
    assert [server.get(path).text for path in ("/", "/items/", "/page.c")] == ["home 3\n", "list\n", "a page\n"]
    assert "as one service" in server.out.text
    (shop / "more.h").write_text("#define MORE 4\n")
    assert server.get("/").text == "home 7\n"
    (shop / "src/items.c").write_text(FILES["src/items.c"].replace('"list', '"new list'))
    assert server.get("/items/").text == "new list\n"
    (shop / "main.c").write_text(FILES["main.c"].replace('"shop.h"', '"shop.h"\nint late(void);').replace("util_add(1, 2)", "late()"))
    page = server.get("/", fields=BROWSER).text
    assert "main.c:3: error: `late` is used, but not defined" in page, page
    (shop / "late").mkdir()
    assert server.get("/").status == 500
    (shop / "late/late.c").write_text("int late(void);\nint late(void) { return 9; }\n")
    assert server.get("/").text == "home 9\n"
    (shop / "late/late.c").unlink()
    assert server.get("/").status == 500


def test_only_changed_files_are_compiled(start, shop, tmp_path):
    """$CC is a script that records its arguments: a saved file costs one compilation and one link."""
    log, wrapper = tmp_path / "log", tmp_path / "cc"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec cc "$@"\n')
    wrapper.chmod(0o755)
    server = start(shop, compiler=str(wrapper))
    assert server.get("/").text == "home 3\n"
    compiled = re.findall(r"-c (\S+)", log.read_text())
    assert sorted(path.rsplit("/", 1)[1] for path in compiled) == ["items.c", "main.c", "util.c"]
    log.write_text("")
    (shop / "util.c").write_text(FILES["util.c"].replace("a + b", "a * b"))
    assert server.get("/").text == "home 2\n"
    assert [path.rsplit("/", 1)[1] for path in re.findall(r"-c (\S+)", log.read_text())] == ["util.c"]
    assert log.read_text().count("-shared") == 1


def test_second_service_in_the_folder_is_an_error(start, shop):
    server = start(shop)
    assert server.get("/").text == "home 3\n"
    (shop / "second.c").write_text(FILES["main.c"].replace("DUDA_SERVICE(shop", "DUDA_SERVICE(second"))
    assert "main.c and second.c both have a DUDA_SERVICE()" in server.get("/").text
    (shop / "second.c").unlink()
    assert server.get("/").text == "home 3\n"


def test_service_in_a_subfolder_is_another_service(call, shop, tmp_path):
    (shop / "other").mkdir()
    (shop / "other/other.c").write_text(FILES["main.c"].replace('"shop.h"', '"../shop.h"').replace("DUDA_SERVICE(shop", "DUDA_SERVICE(other"))
    (shop / "other/part.c").write_text("not compiled\n")
    done = call("build", "-o", tmp_path / "shop.so", shop)
    assert done.code == 0, done


def test_main_file_may_be_in_a_subfolder(call, tmp_path):
    (tmp_path / "app/src").mkdir(parents=True)
    for name in ("main.c", "shop.h", "util.c", "more.h"):
        (tmp_path / "app/src" / name).write_text(FILES[name].replace(', DUDA_GROUP("/items", items, "Items.")', ""))
    (tmp_path / "app/app_test.c").write_text(FILES["shop_test.c"])
    done = call("test", tmp_path / "app")
    assert done.code == 0 and done.out.endswith("ok app.home\n1 test passed\n"), done


def test_several_files_on_the_command_line_form_a_service(start, call, monkey, shop, tmp_path):
    """The order of the files does not matter."""
    files = [shop / "util.c", shop / "main.c", shop / "src/items.c"]
    server = start(*files)
    assert server.get("/").text == "home 3\n"
    (shop / "util.c").write_text(FILES["util.c"].replace("a + b", "a * b"))
    assert server.get("/").text == "home 2\n"
    assert "Lists." in server.get("/.duda/doc").text
    out = tmp_path / "shop.so"
    done = call("build", "-o", out, *files)
    assert done.code == 0 and monkey(plugins=[out]).get("/items/").text == "list\n", done
    done = call("build", "-o", out, shop / "util.c", shop / "src/items.c")
    assert done.code == 1 and "none of these files has a DUDA_SERVICE()" in done.err
    done = call("build", "-o", out, shop / "util.c", shop / "none.c")
    assert done.code == 1 and "none.c: No such file or directory" in done.err
    deep = tmp_path / ("x" * 200) / ("y" * 200) / "none.c"
    done = call("build", "-o", out, shop / "util.c", deep)
    assert done.code == 1 and f"{deep}: No such file or directory" in done.err


def test_tests_of_a_folder_run(call, shop):
    done = call("test", shop)
    assert done.code == 0 and done.out.endswith("ok shop.home\nok items.list\n2 tests passed\n"), done
    done = call("test", shop / "shop_test.c")
    assert done.code == 0 and done.out.endswith("1 test passed\n"), done
    assert [line.split()[:2] for line in call("routes", shop).out.splitlines()] == [["GET", "/"], ["GET", "/items/"]]


@compilers
def test_name_that_two_files_define_is_reported_with_its_lines(call, shop, compiler, tmp_path):
    (shop / "src/again.c").write_text("int util_add(int a, int b);\nint util_add(int a, int b) { return a - b; }\n")
    done = call("build", "-o", tmp_path / "shop.so", shop, environment={"CC": compiler} if compiler else {})
    assert done.code == 1 and not (tmp_path / "shop.so").exists()
    assert re.search(r"util\.c:3: error: `util_add` is defined in several files of the service, first in \S*/again\.c:2\n", done.err), done
    assert "/cache/" not in done.err and "ld" not in done.err.split(), done


def test_options_of_all_files_apply_from_any_folder(call, monkey, shop, tmp_path):
    """Paths in `cflags:` are relative to the file; an object is linked, and watched like a source."""
    (shop / "inc").mkdir()
    (shop / "inc/deep.h").write_text("#define MORE 10\n")
    (shop / "util.c").write_text("/* cflags: -Iinc part.o */\n" + FILES["util.c"].replace("more.h", "deep.h").replace("MORE", "MORE + part()")
                                 .replace("int util_add", "int part(void);\nint util_add"))
    out = tmp_path / "shop.so"
    texts = []
    for number in (100, 200):
        (tmp_path / "part.c").write_text(f"int part(void);\nint part(void) {{ return {number}; }}\n")
        subprocess.run(["cc", "-fPIC", "-c", tmp_path / "part.c", "-o", shop / "part.o"], check=True, timeout=60)
        done = call("build", "-o", out, shop, folder="/")
        assert done.code == 0, done
        texts.append(monkey(plugins=[out]).get("/").text)
    assert texts == ["home 113\n", "home 213\n"]


def test_compile_commands_contain_sources_and_tests(call, shop):
    done = call("build", "--compile-commands", shop)
    assert done.code == 0, done
    commands = json.loads((shop / "compile_commands.json").read_text())
    assert sorted(entry["file"].rsplit("/", 1)[1] for entry in commands) == ["items.c", "items_test.c", "main.c", "shop_test.c", "util.c"]
    for entry in commands:
        assert entry["directory"] == str(shop.resolve())
        subprocess.run([*entry["arguments"], "-fsyntax-only"], cwd=entry["directory"], check=True, timeout=60)
    shop.chmod(0o500)
    try:
        if shutil.os.geteuid():
            assert call("build", "--compile-commands", shop).code == 1
    finally:
        shop.chmod(0o700)


@pytest.mark.skipif(not shutil.which("c++"), reason="there is no C++ compiler")
def test_cpp_and_c_files_form_a_service(call, monkey, shop, tmp_path):
    (shop / "util.c").unlink()
    (shop / "util.cpp").write_text('#include <string>\nextern "C" int util_add(int a, int b);\n'
                                   'int util_add(int a, int b) { return static_cast<int>(std::string(size_t(a + b), \'x\').size()); }\n')
    out = tmp_path / "shop.so"
    done = call("build", "-o", out, shop)
    assert done.code == 0, done
    assert monkey(plugins=[out]).get("/").text == "home 3\n"
    (tmp_path / "one.cpp").write_text('#include <duda.h>\nstatic int home(duda_ctx *d) { return duda_puts(d, "c++\\n"); }\n'
                                      'DUDA_SERVICE(one, DUDA_GET("/", home, "Home."));\n')
    done = call("build", "-o", tmp_path / "one.so", tmp_path / "one.cpp")
    assert done.code == 0 and monkey(plugins=[tmp_path / "one.so"]).get("/").text == "c++\n", done
