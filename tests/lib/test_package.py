# SPDX-License-Identifier: Apache-2.0
"""The installed library: pkg-config and CMake find it in any folder; C and C++ programs use it, shared or static; and it works in
the same program as the library of Monkey 1.
"""
import os
import re
import shutil
import signal
import subprocess

import pytest

from monkey import ROOT, SECONDS
from package import RELEASE, Program, call, exported, guide_test, has_package

HERE = ROOT / "tests" / "lib"
EXAMPLES = ROOT / "examples" / "embed"
ELSEWHERE = 0 - signal.SIGTERM

PROJECT = """cmake_minimum_required(VERSION 3.21)
project(consumer LANGUAGES C)
find_package(libmonkey 2.0 REQUIRED)
add_executable(shared hello.c)
target_link_libraries(shared libmonkey::libmonkey)
add_executable(static hello.c)
target_link_libraries(static libmonkey::static)
add_executable(tested hello.c)
target_link_libraries(tested libmonkey::test)
"""


def serves(program):
    with program:
        assert program.get() == (200, "hello\n")
        program.end(code=ELSEWHERE)


def test_package_builds_c_program(package, tmp_path):
    serves(package.run(package.compile(EXAMPLES / "hello.c", tmp_path / "hello", "-std=c11"), "127.0.0.1:0"))


def test_package_builds_cxx_program(package, tmp_path):
    if not shutil.which("c++"):
        pytest.skip("needs a compiler of C++")
    made = package.compile(HERE / "consumer.cc", tmp_path / "consumer", "-std=c++17", compiler="c++")
    with package.run(made, "127.0.0.1:0") as program:
        assert program.get() == (200, "hello from C++\n")
        program.end()


def test_package_builds_static_program(package, tmp_path):
    made = package.compile(EXAMPLES / "hello.c", tmp_path / "hello", packages=["libmonkey-static"], sanitizers=[])
    assert "libmonkey" not in call("readelf", "-d", made)
    serves(package.run(made, "127.0.0.1:0"))


SETS = """#include <monkey/server.h>
int main(void)
{
    struct mk_server *s = mk_server_new(NULL);
    return mk_server_set(s, "SERVER", "Timeout", "5") || mk_server_run(s);
}
"""


def test_static_program_contains_the_configuration_only_if_it_sets_something(package, tmp_path):
    (tmp_path / "sets.c").write_text(SETS)

    def parts_of(source):
        made = tmp_path / "made"
        flags = [flag for flag in package.flags("libmonkey-static") if flag != "-rdynamic"]  # which keeps all public functions
        call("cc", source, "-Wl,--gc-sections", *flags, "-o", made)
        names = {line.split()[-1].partition(".")[0] for line in call("nm", made).splitlines()}
        return names & {"mk_config_reader", "mk_keys_tables", "mk_builtin_plugins", "mk_conf_read_text", "mk_vhost_config_build"}

    assert parts_of(EXAMPLES / "hello.c") == set()
    assert {"mk_config_reader", "mk_builtin_plugins"} <= parts_of(tmp_path / "sets.c")


def has_tls_and_http2():
    """Does this build support TLS and HTTP/2?"""
    features = RELEASE / "features.txt"
    return (RELEASE / "plugins/monkey-tls.so").exists() and "HTTP/2" in features.read_text().partition(";")[0]


@pytest.mark.skipif(not has_tls_and_http2() or not shutil.which("curl"), reason="needs TLS, HTTP/2 and curl")
@pytest.mark.parametrize("kind", ["libmonkey", "libmonkey-static"])
@pytest.mark.usefixtures("objects")
def test_package_supports_tls_and_http2(package, tmp_path, encryption, kind):
    made = package.compile(HERE / "tls_server.c", tmp_path / "secure", packages=[kind], sanitizers=[])
    with package.run(made, "127.0.0.1:0", encryption.certificate, encryption.key) as program:
        for flag, version in (("--http1.1", 11), ("--http2", 20)):
            assert call("curl", "-sS", flag, "--cacert", encryption.trust, program.url) == f"https {version}\n"
        program.end()


@pytest.mark.skipif(not has_tls_and_http2() or not shutil.which("curl"), reason="needs TLS, HTTP/2 and curl")
def test_library_moved_with_its_modules_finds_them(package, tmp_path, encryption):
    """The library finds its modules in the folder `monkey` beside it, wherever it is installed."""
    made = package.compile(HERE / "tls_server.c", tmp_path / "secure", sanitizers=[])
    moved = tmp_path / "vendor" / "lib"
    (moved / "monkey").mkdir(parents=True)
    shutil.copy((package.lib / "libmonkey.so.1").resolve(), moved / "libmonkey.so.1")
    command = [made, "127.0.0.1:0", encryption.certificate, encryption.key]
    environment = {"LD_LIBRARY_PATH": str(moved)}
    lacking = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert lacking.returncode != 0 and f"monkey-tls.so is not in {moved}/monkey or /" in lacking.stderr
    shutil.copy(RELEASE / "plugins/monkey-tls.so", moved / "monkey")
    with Program(command, environment) as program:
        assert call("curl", "-sS", "--http2", "--cacert", encryption.trust, program.url) == "https 20\n"
        program.end()


PROXIES = """
#include <monkey/server.h>
#include <signal.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    unsigned port;
    int number;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct mk_server *s = mk_server_new(NULL);
    if (argc < 3 || mk_server_set(s, "PLUGINS", "Load", "proxy") || mk_server_set(s, "UPSTREAM", "Name", "secure") ||
        mk_server_set(s, "UPSTREAM", "Server", argv[1]) || mk_server_set(s, "UPSTREAM", "TLSAuthority", argv[2]) ||
        mk_server_set(s, "UPSTREAM", "TLS", "on") || mk_server_set(s, "UPSTREAM", "TLSName", "localhost") ||
        mk_server_set(s, "ROUTES", "/*", "proxy http://secure") || mk_server_listen(s, "127.0.0.1:0", &port) ||
        mk_server_start(s, 1)) {
        fprintf(stderr, "%s\\n", mk_server_error(s));
        return 1;
    }
    printf("http://127.0.0.1:%u/version\\n", port);
    fflush(stdout);
    sigwait(&set, &number);
    mk_server_stop(s, 1000);
    mk_server_wait(s);
    mk_server_free(s);
    return 0;
}
"""


@pytest.mark.skipif(not has_tls_and_http2(), reason="needs TLS and HTTP/2")
@pytest.mark.usefixtures("objects")
def test_library_moved_finds_tls_for_proxy(package, tmp_path, encryption):
    """The library searches beside its own file, not beside the program."""
    source = tmp_path / "proxies.c"
    source.write_text(PROXIES)
    made = package.compile(source, tmp_path / "proxies", sanitizers=[])
    moved = tmp_path / "vendor" / "private"
    (moved / "monkey").mkdir(parents=True)
    shutil.copy((package.lib / "libmonkey.so.1").resolve(), moved / "libmonkey.so.1")
    shutil.copy(RELEASE / "plugins" / "monkey-tls.so", moved / "monkey")
    secure = package.compile(HERE / "tls_server.c", tmp_path / "secure", sanitizers=[])
    with package.run(secure, "127.0.0.1:0", encryption.certificate, encryption.key) as behind:
        command = [made, behind.url.removeprefix("https://").partition("/")[0], encryption.trust]
        with Program(command, {"LD_LIBRARY_PATH": str(moved)}) as program:
            assert program.get() == (200, "https 11\n")
            program.end()
        (moved / "monkey" / "monkey-tls.so").unlink()
        lacking = subprocess.run(command, env=os.environ | {"LD_LIBRARY_PATH": str(moved)}, capture_output=True, text=True,
                                 timeout=SECONDS, check=False)
        assert lacking.returncode != 0 and f"monkey-tls.so is not in {moved}/monkey or /" in lacking.stderr


LOADS_A_PLUGIN = """
#include <monkey/server.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct mk_server *s = mk_server_new(NULL);
    int e = argc < 2 || mk_server_set(s, "PLUGINS", "Load", argv[1]) || mk_server_start(s, 1);
    puts(e ? mk_server_error(s) : "it serves");
    mk_server_free(s);
    return 0;
}
"""


def test_static_program_reports_that_plugins_must_be_built_in(package, tmp_path):
    source = tmp_path / "loads.c"
    source.write_text(LOADS_A_PLUGIN)
    libraries = call("pkg-config", "--static", "--cflags", "--libs", "libmonkey-static", environment=package.environment).split()
    done = subprocess.run(["cc", "-static", source, *libraries, "-o", tmp_path / "loads"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("needs all libraries as archives: " + done.stderr.splitlines()[-1])
    output = call(tmp_path / "loads", RELEASE / "plugins" / "monkey-limits.so")
    assert "for plugins: it and the plugin are from different builds of Monkey, or it is static and needs the plugin built in" in output


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="needs pkg-config")
def test_archive_with_plugins_names_their_libraries(tmp_path):
    """A program that links the archive needs the libraries of its built-in plugins."""
    packages = {"auth": ("nettle", "-lnettle"), "compress": ("zlib", "-lz")}
    if not all(has_package(name) for name, _flag in packages.values()):
        pytest.skip("needs nettle and zlib")
    call("cmake", "--preset", "release", "-B", tmp_path, f"-DMK_PLUGINS_STATIC={';'.join(packages)}", folder=ROOT)
    flags = call("pkg-config", "--libs", "libmonkey-static", environment={"PKG_CONFIG_PATH": str(tmp_path / "packaging")}).split()
    assert {flag for _name, flag in packages.values()} <= set(flags)
    config = (tmp_path / "packaging" / "libmonkeyConfig.cmake").read_text()
    assert ";nettle;" in config


def test_package_is_found_by_cmake(package, tmp_path):
    shutil.copy(EXAMPLES / "hello.c", tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    build = tmp_path / "build"
    call("cmake", "-S", tmp_path, "-B", build, environment=package.environment)
    call("cmake", "--build", build)
    for name in ("shared", "static", "tested"):
        serves(package.run(build / name, "127.0.0.1:0"))


def of_plugins():
    """Returns the functions of the public headers that plugins define."""
    text = "".join(path.read_text() for path in (ROOT / "plugins").rglob("*.c"))
    return set(re.findall(r"^[a-z][^;={}()]*\b(mk_\w+)\(", text, re.MULTILINE))


@pytest.mark.skipif(not has_tls_and_http2(), reason="needs HTTP/2")
def test_package_builds_test_client_example_of_guide(package, tmp_path):
    source = guide_test(tmp_path)
    made = package.compile(source, tmp_path / "test", packages=["libmonkey-test"], sanitizers=[])
    assert call(made, environment=package.environment) == "1: 0 200 hello\n2: 0 200 hello\n"


def test_public_symbols_are_versioned(package):
    names = set((RELEASE / "libmonkey.names").read_text().split())
    found = exported(package.lib / "libmonkey.so", "-D")
    assert set(found) - {"MONKEY_2"} <= names
    assert {name: found[name] for name in names if found.get(name, "MONKEY_2") != "MONKEY_2"} == {}
    assert names - set(found) - of_plugins() == set()
    assert len(names) > 200 and {"mk_server_new", "mk_router_find_sized", "mk_request_path"} <= set(found)


@pytest.mark.parametrize("name", ["libmonkey", "libmonkey-test"])
def test_archives_export_only_public_symbols(package, name):
    names = set((RELEASE / f"{name}.names").read_text().split())
    assert set(exported(package.lib / f"{name}.a")) <= names


def symbols(path, *flags):
    """Returns all names of a symbol table, hidden or not."""
    return {row.split()[0] for row in call("nm", "-P", *flags, path).splitlines() if not row.endswith(":")}


def test_client_is_only_in_libmonkey_test(package):
    functions = set(re.findall(r"^MK_API [^(]*\b(mk_test_client_\w+)\(", (ROOT / "include/monkey/test_client.h").read_text(), re.MULTILINE))
    assert len(functions) == 8 and functions <= set(exported(package.lib / "libmonkey-test.a"))
    for path, flags in ((package.lib / "libmonkey.so", ["-D"]), (package.lib / "libmonkey.a", []), (RELEASE / "monkey", ["-D"])):
        assert [name for name in symbols(path, *flags) if "test_client" in name or "h2_client" in name] == [], path


@pytest.mark.parametrize("kind", ["libmonkey", "libmonkey-static"])
def test_library_coexists_with_library_of_monkey_1(package, tmp_path, kind):
    """A program links both libraries, and each calls its own functions."""
    old = tmp_path / "libold.so"
    call("cc", "-shared", "-fPIC", HERE / "monkey_1.c", "-o", old)
    for name, flags in (("shared", [f"-L{tmp_path}", "-Wl,--no-as-needed", "-lold", f"-Wl,-rpath,{tmp_path}"]),
                        ("one", [HERE / "monkey_1.c"])):
        made = package.compile(HERE / "both_libraries.c", tmp_path / name, *flags, packages=[kind], sanitizers=[])
        with package.run(made, "127.0.0.1:0") as program:
            assert program.get() == (200, "1 call of Monkey 1\n")
            program.end()


def test_manual_page_is_valid_and_complete(package):
    (page,) = package.lib.parent.rglob("libmonkey.3")
    if not shutil.which("groff"):
        pytest.skip("needs groff")
    assert len(call("groff", "-man", "-Tutf8", "-ww", page)) > 1000
    declared = set(re.findall(r"^MK_API [^(]*\b(mk_server_\w+)\(", (ROOT / "include/monkey/server.h").read_text(), re.MULTILINE))
    named = set(re.findall(r"mk_server_\w+", page.read_text())) - {"mk_server_fn", "mk_server_options"}
    assert len(named) > 15 and named == declared, named ^ declared


def test_objects_contain_no_build_paths():
    folders = [f"{ROOT}/{name}/".encode() for name in ("build", "src", "include", "plugins", "duda/service")]
    files = [RELEASE / "libmonkey.so", RELEASE / "libmonkey.a", RELEASE / "monkey", *(RELEASE / "plugins").glob("monkey-*.so")]
    assert [path.name for path in files if any(folder in path.read_bytes() for folder in folders)] == []
