# SPDX-License-Identifier: Apache-2.0
"""Features that depend on libraries: configure finds the libraries and notices when one is installed or removed; the
program lists its features."""
import json
import os
import re
import shutil
import subprocess

import pytest

from monkey import PROGRAM, ROOT

pytestmark = pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("ninja")), reason="needs cmake and ninja")


class Build:
    """A build folder whose pkg-config searches only the test's own folder."""

    def __init__(self, top):
        self.folder, self.packages = top / "build", top / "packages"
        self.packages.mkdir()
        self.environment = os.environ | {"PKG_CONFIG_LIBDIR": str(self.packages), "PKG_CONFIG_PATH": ""}

    def add(self, name):
        (self.packages / f"{name}.pc").write_text(f"Name: {name}\nDescription: -\nVersion: 99\nLibs:\n")

    def call(self, *command):
        return subprocess.run([*map(str, command)], env=self.environment, capture_output=True, text=True, check=False)

    def run(self, *command):
        done = self.call(*command)
        assert done.returncode == 0, done.stdout + done.stderr

    def try_configure(self, *options):
        return self.call("cmake", "-G", "Ninja", "-S", ROOT, "-B", self.folder, "-DMK_TLS=OFF", "-DCMAKE_BUILD_TYPE=Debug", *options)

    def configure(self, *options):
        done = self.try_configure(*options)
        assert done.returncode == 0, done.stdout + done.stderr

    def build_again(self):
        """Runs the first step of every build, which runs configure again if needed."""
        os.utime(self.packages)
        self.run("ninja", "-C", self.folder, "build.ninja")

    def features(self):
        line = (self.folder / "features.txt").read_text()
        parts = dict(part.split(" ", 1) for part in line.strip().split("; "))
        return [parts[word].split(", ") if word in parts else [] for word in ("with", "without")]

    def line_of(self, target):
        """The build rule of `target`, with its objects and libraries."""
        return re.search(rf"^build {target}: [^\n]*", self.text("build.ninja"), re.MULTILINE)[0]

    def links(self, layer):
        """Is the layer linked into the program?"""
        return f"mk_{layer}.dir" in self.line_of("monkey")

    def text(self, name):
        return (self.folder / name).read_text()


@pytest.fixture
def build(tmp_path):
    return Build(tmp_path)


@pytest.mark.parametrize("package, feature, layer", [("libpcre2-8", "regular expressions", "regex"), ("libnghttp2", "HTTP/2", "http2"),
                                                     ("libmaxminddb", "countries and network operators", "geo")])
def test_next_build_notices_an_added_or_removed_library(build, package, feature, layer):
    build.configure()
    assert build.features()[0] == []
    build.add(package)
    build.build_again()
    assert build.features()[0] == [feature] and build.links(layer)
    (build.packages / f"{package}.pc").unlink()
    build.build_again()
    assert build.features()[0] == [] and not build.links(layer)


@pytest.mark.parametrize("option, layer, plugins, others", [
    ("MK_WEBSOCKET", "websocket", {"websocket"}, set()),
    ("MK_UPSTREAM", "upstream", {"upstream", "proxy", "fastcgi", "scgi", "uwsgi"}, {"isolate"}),
])
def test_option_off_leaves_out_a_layer_and_its_plugins(build, option, layer, plugins, others):
    def inside():
        return set(re.findall(r"&mk_plugin_(\w+)", build.text("monkey-builtin.c")))

    build.configure("-DMK_DUDA=OFF")
    assert build.links(layer) and plugins <= inside()
    build.configure("-DMK_DUDA=OFF", f"-D{option}=OFF")
    assert not build.links(layer) and not plugins & inside()
    assert not any(f"monkey-{name}.so" in build.text("build.ninja") for name in others)


@pytest.mark.parametrize("option, package", [("MK_PCRE2", "libpcre2-8"), ("MK_HTTP2", "libnghttp2"), ("MK_MAXMINDDB", "libmaxminddb")])
def test_library_option_on_requires_and_off_ignores_the_library(build, option, package):
    done = build.try_configure(f"-D{option}=ON")
    assert done.returncode == 1 and f"{option} is ON, and pkg-config does not find {package}" in done.stderr
    build.add(package)
    build.configure(f"-D{option}=ON")
    assert build.features()[0] != []
    build.configure(f"-D{option}=OFF")
    assert build.features()[0] == []


def test_plugin_whose_library_was_removed_is_deleted(build):
    build.add("zlib")
    build.configure()
    assert build.features()[0] == ["gzip"]
    old = build.folder / "plugins" / "monkey-compress.so"
    old.parent.mkdir(exist_ok=True)
    old.touch()
    (build.packages / "zlib.pc").unlink()
    build.build_again()
    assert not old.exists()


def test_build_without_libraries_links_only_libc(build):
    for name in ("libpcre2-8", "zlib", "libnghttp2", "libcrypt", "nettle"):
        build.add(name)
    build.configure("-DMK_LIBRARIES=OFF", "-DMK_TLS=AUTO")
    found, missing = build.features()
    assert found == [] and len(missing) == 10
    links = re.search(r"^build monkey: .*?^  LINK_LIBRARIES = ([^\n]*)", build.text("build.ninja"), re.MULTILINE | re.DOTALL)
    assert {word for word in links[1].split() if word.startswith("-l") or ".so" in word} <= {"-ldl"}


def test_options_leave_out_exports_and_unwind_tables(build):
    def of_program():
        text = build.text("build.ninja")
        link = re.search(r"^build monkey: .*?^  LINK_FLAGS = ([^\n]*)", text, re.MULTILINE | re.DOTALL)[1]
        compiled = re.search(r"^build \S*server/main\.c\.o: .*?^  FLAGS = ([^\n]*)", text, re.MULTILINE | re.DOTALL)[1]
        return "-rdynamic" in link, "-fno-unwind-tables" in compiled

    build.configure()
    assert of_program() == (True, False)
    build.configure("-DMK_EXPORTS=OFF", "-DMK_UNWIND_TABLES=OFF")
    assert of_program() == (False, True)


def test_size_option_builds_nothing_for_speed(build):
    def levels():
        flags = re.findall(r"^build src/\S*\.c\.o: .*?^  FLAGS = ([^\n]*)", build.text("build.ninja"), re.MULTILINE | re.DOTALL)
        return {re.findall(r"-O\S", line)[-1] for line in flags}

    build.configure("-DCMAKE_BUILD_TYPE=Release")
    assert levels() in ({"-O2", "-Oz"}, {"-O2", "-Os"})
    build.configure("-DCMAKE_BUILD_TYPE=Release", "-DMK_OPTIMIZE=size")
    assert levels() in ({"-Oz"}, {"-Os"})


def test_options_leave_out_files(build):
    def files():
        return set(re.findall(r"/(\w+)\.c\.o", build.line_of("monkey")))

    names = {"error_page_text", "offload", "bind_unix"}
    substitutes = {f"{name}_none" for name in names}
    build.configure()
    assert names <= files() and not substitutes & files()
    build.configure("-DMK_STYLES=OFF", "-DMK_THREADS=OFF", "-DMK_UPSTREAM=OFF", "-DMK_DUDA=OFF")
    assert substitutes <= files() and not names & files()


@pytest.mark.parametrize("options, message", [
    (["-DMK_THREADS=OFF", "-DMK_DUDA=OFF"], "MK_UPSTREAM and MK_DUDA need threads"),
    (["-DMK_SMALL_LIBC=ON"], "MK_SMALL_LIBC cannot print floating-point numbers"),
])
def test_options_that_need_each_other_are_checked(build, options, message):
    done = build.try_configure(*options)
    assert done.returncode != 0 and message in " ".join(done.stderr.split())


FLOAT = re.compile(r"%(?![0-9A-Fa-f]{2})[-+#0]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?L?[efgEFG](?![a-zA-Z])|\bmk_json_(?:double|fixed)\(")


@pytest.mark.parametrize("line, prints", [
    ('f("%f")', True), ('f("%.2f s")', True), ('f("%-8.*g", 1, x)', True), ("mk_json_fixed(w, 1, 2);", True),
    ('f("%s %d%% %u")', False), ('"%2F"', False), ('"%23f"', False), ('strftime(b, n, "%d/%b")', False),
])
def test_search_finds_floating_point_numbers(line, prints):
    assert bool(FLOAT.search(line)) == prints


def test_server_and_plugins_print_no_floating_point_numbers():
    """printf() of MK_SMALL_LIBC does not support them. The JSON functions print them, but only Duda and programs with libmonkey
    call these functions."""
    found = []
    for path in [*(ROOT / "src").rglob("*.c"), *(ROOT / "plugins").rglob("*.c")]:
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        if path.parent != ROOT / "src/readers" and path != ROOT / "src/base/json.c" and FLOAT.search(text):
            found.append((path, FLOAT.search(text)[0]))
    assert not found


def test_pie_option_fixes_the_address(build):
    def link():
        return re.search(r"^build monkey: .*?^  LINK_FLAGS = ([^\n]*)", build.text("build.ninja"), re.MULTILINE | re.DOTALL)[1]

    build.configure()
    assert "-no-pie" not in link()
    build.configure("-DMK_PIE=OFF")
    assert "-no-pie" in link()
    build.configure("-DMK_PIE=ON", "-DCMAKE_EXE_LINKER_FLAGS=-static")
    assert "-fno-pie" in link()
    build.configure("-DCMAKE_EXE_LINKER_FLAGS=-static-pie")
    assert "-fno-pie" not in link()


def test_common_media_types_are_a_part_of_all(build):
    def types():
        build.run("ninja", "-C", build.folder, "mime_table.c")
        return set(re.findall(r'^    "(\S+) (\S+)\\n"', build.text("mime_table.c"), re.MULTILINE))

    build.configure("-DMK_DUDA=OFF")
    every = types()
    build.configure("-DMK_DUDA=OFF", "-DMK_MIME_TYPES=common")
    common = types()
    assert common < every and {("html", "text/html"), ("svg", "image/svg+xml"), ("woff2", "font/woff2")} <= common and len(common) > 40


def test_std_preset_names_its_parts():
    presets = {one["name"]: one.get("cacheVariables", {}) for one in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}
    assert "AUTO" not in presets["std"].values()
    assert {"MK_HTTP2", "MK_TLS", "MK_PCRE2", "MK_BROTLI", "MK_ZSTD", "MK_UPSTREAM", "MK_WEBSOCKET", "MK_DUDA", "MK_PLUGINS"} <= set(presets["std"])


def test_wr_and_pace_are_built_only_on_request(build):
    build.configure()
    assert not re.search(r"^build (wr|pace): ", build.text("build.ninja"), re.MULTILINE)
    build.configure("-DMK_TOOLS=ON")
    assert re.search(r"^build (wr|pace): ", build.text("build.ninja"), re.MULTILINE)
    server = re.search(r"^build server: phony (.*)$", build.text("build.ninja"), re.MULTILINE)[1]
    assert "monkey" in server.split() and not {"wr", "pace", "docgen"} & set(server.split())


def test_version_option_lists_features(run):
    output = run("-V").out
    line = (PROGRAM.parent / "features.txt").read_text()
    found, missing = re.fullmatch(r"with (.+?)(?:; without (.+))?\n", line).groups()
    assert f"\nwith      {found}\n" + (f"without   {missing}\n" if missing else "") in output
