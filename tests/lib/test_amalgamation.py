# SPDX-License-Identifier: Apache-2.0
"""libmonkey as one C file (tools/package/amalgamate.py)."""
import importlib.util
import shutil
import signal

import pytest

from monkey import ROOT
from package import RELEASE, Program, call

SCRIPT = ROOT / "tools/package/amalgamate.py"
WARNINGS = ("-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not (RELEASE / "build.ninja").exists() or not shutil.which("ninja"):
        pytest.skip("needs the release build and Ninja")
    out = tmp_path_factory.mktemp("amalgamation")
    call("python3", SCRIPT, "--build", RELEASE, "--out", out)
    return out


@pytest.mark.parametrize("compiler, options", [
    ("gcc", ["-std=c11"]), ("g++", ["-std=c++17", "-x", "c++"]), ("clang", ["-std=c11"]), ("clang++", ["-std=c++17", "-x", "c++"])])
def test_header_is_plain_c_and_cpp(folder, tmp_path, compiler, options):
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    source = tmp_path / "program.c"
    source.write_text('#include "monkey.h"\n#include "monkey.h"\nint main(void) { return !mk_version(); }\n')
    call(compiler, *options, "-pedantic", *WARNINGS, "-fsyntax-only", "-I", folder, source)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_clang_compiles_it_without_warnings(folder):
    if not shutil.which("clang"):
        pytest.skip("needs clang")
    call("clang", "-std=gnu17", *WARNINGS, "-fsyntax-only", folder / "monkey.c", seconds=600)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_program_with_the_file_serves(folder, tmp_path):
    """The example needs nothing but the two files and the libraries that the comment in monkey.c lists."""
    example = tmp_path / "hello.c"
    example.write_text((ROOT / "examples/embed/hello.c").read_text().replace("<monkey/server.h>", '"monkey.h"'))
    (line,) = [line for line in (folder / "monkey.c").read_text().splitlines() if "program.c monkey.o" in line]
    libraries = [word for word in line.split() if word.startswith("-l")]
    call("cc", "-std=gnu17", "-O0", *WARNINGS, "-c", folder / "monkey.c", "-o", tmp_path / "monkey.o", seconds=600)
    call("cc", *WARNINGS, "-I", folder, example, tmp_path / "monkey.o", "-o", tmp_path / "hello", *libraries)
    names = call("nm", "--defined-only", "--extern-only", tmp_path / "monkey.o")
    assert " mk_server_run\n" in names and " mk_worker_init\n" not in names
    hello = Program([tmp_path / "hello", "127.0.0.1:0"], {})
    assert hello.get() == (200, "hello\n")
    hello.end(code=-signal.SIGTERM)


# ---- The script

@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("amalgamate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_scope_of_a_file(script):
    scope = script.FileScope("""
        #define LIMIT 3
        enum { ONE, TWO = 1 << (2), THREE };
        struct pair { int first; struct other *next; };
        typedef int number, *pointer;
        static const char *const names[] = {"a", [TWO] = "b"}, *more;
        static int (*callback)(int x);
        __attribute__((noinline)) static struct pair *find(int key) { struct local { int x; } l; return 0; }
        int mk_public(void);
        int mk_public(void) { static int hidden; return hidden; }
        extern const int mk_table[];
    """)
    assert scope.ordinary == {"ONE", "TWO", "THREE", "number", "pointer", "names", "more", "callback", "find"}
    assert scope.tags >= {"pair"} and scope.macros == {"LIMIT"}
    assert scope.external == {"mk_public", "mk_table"}
    assert [name for _, name in scope.functions] == ["mk_public", "mk_public"]


def test_renaming_knows_the_name_spaces(script):
    rename = script.Renamer("f.c", {"find": "find__f", "MAX": "MAX__f"}, {"find": "find__f"}).apply
    assert rename("struct find { int find; int a[MAX]; int (*find)(int); };") == \
        "struct find__f { int find; int a[MAX__f]; int (*find)(int); };"
    assert rename('x.find = p->find + find(&(struct find){.find = MAX}); /* find */ "find"') == \
        'x.find = p->find + find__f(&(struct find__f){.find = MAX__f}); /* find */ "find"'
    assert rename("MK_CONTAINER(find, struct find, find.link)") == "MK_CONTAINER(find__f, struct find__f, find.link)"


def test_name_that_becomes_text_is_an_error(script):
    with pytest.raises(script.Problem, match="a macro makes text of `find`"):
        script.Renamer("f.c", {"find": "find__f"}, {}).apply("#define NAME(x) #find\n")
