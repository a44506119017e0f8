# SPDX-License-Identifier: Apache-2.0
"""The loadable objects of a service: the process has one copy of Duda, and loads OpenSSL only for services that use it."""
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")
HELLO = r"""
#include <duda.h>

static int hello(struct duda_ctx *d)
{
    return CALL;
}

DUDA_SERVICE(hello, DUDA_GET("/", hello, ""));
"""
CALLS = {"puts": 'duda_puts(d, "hello\\n")',
         "signs": 'duda_cookie_signed(d, "who").p ? 0 : duda_puts(d, "hello\\n")',
         "seals": 'duda_cookie_set_encrypted(d, &(const struct mk_cookie){.name = "who", .value = MK_STR("me")})'
                  ' ? 500 : duda_puts(d, "hello\\n")'}


def has(pid, name):
    return name in Path(f"/proc/{pid}/maps").read_text()


def build(tmp_path, call, *flags):
    return services.build(tmp_path, "hello", HELLO.replace("CALL", CALLS[call]), *flags)


@pytest.mark.skipif(not (services.OBJECTS / "monkey-duda-seal.so").exists(), reason="this build has no OpenSSL")
@pytest.mark.parametrize("call, top, wanted", [("puts", "", False), ("signs", "", True), ("seals", "", True),
                                               ("puts", "[SESSIONS]\n    Store cookie\n", True)])
def test_openssl_is_loaded_only_for_services_that_use_it(monkey, tmp_path, call, top, wanted):
    server = monkey(plugins=[build(tmp_path, call)], top=top)
    assert server.get("/").text == "hello\n"
    assert {has(pid, "libcrypto") for pid in [server.pid, *server.workers]} == {wanted}


@pytest.mark.parametrize("line", [0, 1])
def test_second_copy_of_duda_is_rejected(run, tmp_path, line):
    """A service that is linked to one copy of Duda is rejected if the server loads another copy, before or after the service."""
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(services.OBJECTS / "monkey-duda.so", copy)
    lines = [str(build(tmp_path, "puts"))]
    lines.insert(line, str(copy / "monkey-duda.so"))
    (tmp_path / "site").mkdir(exist_ok=True)
    (tmp_path / "monkey.conf").write_text("[PLUGINS]\n" + "".join(f"    Load {each}\n" for each in lines)
                                          + f"[HOST]\n    DocumentRoot {tmp_path}/site\n")
    done = run("-t", "-c", tmp_path / "monkey.conf")
    assert done.code == 3 and "second copy" in done.err, done.err


@pytest.mark.parametrize("again", ["duda", "the same file"])
def test_same_copy_loaded_twice_is_accepted(monkey, tmp_path, again):
    same = "duda" if again == "duda" else services.BUILT
    server = monkey(plugins=[same, build(tmp_path, "puts"), same])
    assert server.get("/").text == "hello\n"


UNNAMED = r"""
#include <duda.h>
#include <duda/sql.h>
#include <duda/store.h>

static int look(struct duda_ctx *d)
{
    return duda_store_find(d, NULL) && duda_sql_find(d, NULL) ? 200 : 404;
}

DUDA_SERVICE(forgets, DUDA_GET("/", look, ""));
"""


@pytest.mark.parametrize("named, error", [("", "store|sql"), ('"duda-sql"', "store"), ('"duda-sql", "duda-store"', None)])
def test_package_missing_in_duda_use_is_rejected(run, tmp_path, named, error):
    """A Load line for the package does not replace DUDA_USE: under a configuration without that line, the service would crash."""
    flags = [f"-DDUDA_USE={named}"] if named else []
    service = services.build(tmp_path, "forgets", UNNAMED, *flags, packages=("sql", "store"))
    (tmp_path / "site").mkdir()
    (tmp_path / "monkey.conf").write_text(f"[PLUGINS]\n    Load duda-store\n    Load {service}\n"
                                          f"[HOST]\n    DocumentRoot {tmp_path}/site\n")
    done = run("-t", "-c", tmp_path / "monkey.conf")
    if not error:
        assert done.code == 0, done.err
        return
    assert done.code == 3
    assert re.search(f"`forgets` calls the package `duda-({error})`, but does not declare it", done.err), done.err
    line = re.search(r"add before the first #include of .*forgets.c: `#define DUDA_USE (.*)`", done.err)
    assert line and sorted(line[1].split(", ")) == ['"duda-sql"', '"duda-store"'], done.err


def test_service_that_calls_a_function_of_another_release_is_refused(run, tmp_path):
    """Packages have no sonames that would reveal the other release, so the message must say what to do."""
    source = """
#include <duda.h>
int duda_store_of_the_future(struct duda_ctx *d);
static int hello(struct duda_ctx *d)
{
    return duda_store_of_the_future(d);
}
DUDA_SERVICE(future, DUDA_GET("/", hello));
"""
    service = services.build(tmp_path, "future", source)
    (tmp_path / "site").mkdir()
    (tmp_path / "monkey.conf").write_text(f"[PLUGINS]\n    Load duda\n    Load {service}\n[HOST]\n    DocumentRoot {tmp_path}/site\n")
    done = run("-t", "-c", tmp_path / "monkey.conf")
    assert done.code == 3
    assert "none of the packages that it links has duda_store_of_the_future(): link the package of this function, or build it again" in done.err, done.err


FRAMED = r"""
#include <duda.h>

int more(struct duda_ctx *d);

static int hello(struct duda_ctx *d)
{
    return more(d);
}

DUDA_SERVICE(framed, DUDA_GET("/", hello, ""));
"""
MORE = '#include <duda.h>\nint more(struct duda_ctx *d);\nint more(struct duda_ctx *d)\n{\n    return duda_puts(d, "more\\n");\n}\n'
COMPILERS = [pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"{name} is not installed"))
             for name in ("gcc", "clang")]


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("exposed", [None, "framed.c", "more.c"])
def test_service_without_stack_clash_protection_is_rejected(run, tmp_path, compiler, level, exposed):
    """Every source file is checked: the error names the file that was compiled without the flag."""
    for name, text in (("framed.c", FRAMED), ("more.c", MORE)):
        (tmp_path / name).write_text(text)
        flag = "-fno-stack-clash-protection" if name == exposed else "-fstack-clash-protection"
        subprocess.run([compiler, *(each for each in services.FLAGS if each not in ("-shared", "-O1")), level, flag, "-c", name], cwd=tmp_path,
                       check=True)
    subprocess.run([compiler, "-shared", "-o", "monkey-framed.so", "framed.o", "more.o", f"-L{services.OBJECTS}", "-l:monkey-duda.so",
                    f"-Wl,-rpath,{services.OBJECTS}"], cwd=tmp_path, check=True)
    (tmp_path / "monkey.conf").write_text("[PLUGINS]\n    Load ./monkey-framed.so\n[HOST]\n    DocumentRoot .\n")
    done = run("-t", "-c", tmp_path / "monkey.conf")
    if not exposed:
        assert done.code == 0, done.err
        return
    assert done.code == 3
    assert f"the service `framed`: {exposed} was compiled without -fstack-clash-protection" in done.err, done.err
    assert "monkey build" in done.err
