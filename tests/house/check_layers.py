#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Code depends only on lower layers: no include and no symbol leads to a higher layer or to another layer of the same level,
plugins use only the public interface, and neither object files nor source files form a dependency cycle.
"""
import re
from collections import defaultdict

import house

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
# Code outside the layers sees only the public headers.
GUESTS = {"plugins": {"monkey"}, "duda": {"monkey", "duda"}, "examples": {"monkey", "duda"}, "include": {"monkey"}}


def includes(path):
    """Yields (line, name, quoted) for each include."""
    text = house.read(path)
    for m in INCLUDE.finditer(text):
        yield text.count("\n", 0, m.start()) + 1, m.group(1) or m.group(2), m.group(1) is not None


def check_layer_includes(root):
    complaints = []
    for layer in house.LAYERS:
        allowed = house.below(layer)
        for path in house.files(root, (f"src/{layer}", f"tests/unit/{layer}"), (".c", ".h", ".inc")):
            for line, name, _ in includes(path):
                first = name.split("/")[0]
                where = f"{path.relative_to(root)}:{line}"
                if first in house.LAYERS and "/" in name and first not in allowed:
                    complaints.append(f"{where}: {layer} may not include {name}")
                elif name.startswith("../"):
                    complaints.append(f"{where}: {name} hides which layer it means")
    return complaints


def check_layer_folders(root):
    top = root / "src"
    return [f"src/{path.name}: house.py does not know this layer" for path in (sorted(top.iterdir()) if top.is_dir() else [])
            if path.is_dir() and path.name not in house.LAYERS]


def check_guest_includes(root):
    complaints = []
    for folder, public in GUESTS.items():
        for path in house.files(root, (folder,), (".c", ".h", ".inc")):
            for line, name, quoted in includes(path):
                first = name.split("/")[0]
                where = f"{path.relative_to(root)}:{line}"
                if "/" in name and first in house.LAYERS:
                    complaints.append(f"{where}: {folder} may not include {name}; it sees only <monkey/...>")
                elif "/" in name and first in ("monkey", "duda") and first not in public:
                    complaints.append(f"{where}: {folder} may not include {name}")
                elif quoted and name.startswith("../../"):
                    complaints.append(f"{where}: {name} leaves its own folder")
    return complaints


# Third-party libraries, and the server's only folders that may include them.
VENDORS = {"openssl": ("src/tls",), "pcre2.h": ("src/os/regex_pcre2.c",), "nghttp2": ("src/http2frame",), "zlib.h": ("src/websocket",)}


# Files of other layers that are also omitted from a build without the optional layer.
WITH_OPTIONAL = {"src/lib/test_client/h2_client.c": "http2frame"}


def check_vendor_includes(root):
    complaints = []
    for path in house.files(root, ("src", "include"), (".c", ".h", ".inc")):
        where = path.relative_to(root).as_posix()
        for line, name, _ in includes(path):
            homes = VENDORS.get(name.split("/")[0])
            if homes and not where.startswith(tuple(home if home.endswith(".c") else f"{home}/" for home in homes)):
                complaints.append(f"{where}:{line}: {name} may be included in {' and '.join(homes)} only")
            layer = name.split("/")[0]
            above = house.BENEATH_OPTIONAL.get(layer, ())
            if ((layer in house.OPTIONAL or above) and "/" in name and where.split("/")[1] not in (layer, *above)
                    and WITH_OPTIONAL.get(where) != layer):
                complaints.append(f"{where}:{line}: {name} is for src/{above[0] if above else layer} only, which a build may lack")
    return complaints


# The folders of Duda, and the folders that each may include; all of them see the public headers.
DUDA_FOLDERS = {"fiber": set(), "text": set(), "trace": set(), "seal": set(), "service": {"fiber", "text", "trace", "seal"},
                "dev": {"text", "trace"}, "packages": {"text"}}


def check_duda_folders(root):
    complaints = []
    for folder, below in DUDA_FOLDERS.items():
        for path in house.files(root, (f"duda/{folder}",), (".c", ".h", ".inc")):
            for line, name, _ in includes(path):
                first = name.split("/")[0]
                if "/" in name and first in DUDA_FOLDERS and first not in below | {folder}:
                    complaints.append(f"{path.relative_to(root)}:{line}: {folder} may not include {name}")
    top = root / "duda"
    known = {*DUDA_FOLDERS, "include"}
    return complaints + [f"duda/{path.name}: check_layers.py does not know this folder" for path in
                         (sorted(top.iterdir()) if top.is_dir() else []) if path.is_dir() and path.name not in known]


def files_graph(root):
    """{file without suffix: {included file: location}}; NAME.c and NAME.h are one node."""
    graph = defaultdict(dict)
    for path in house.files(root, ("src", "plugins", *(f"duda/{folder}" for folder in DUDA_FOLDERS)), (".c", ".h")):
        name = path.relative_to(root).with_suffix("").as_posix()
        for line, included, _ in includes(path):
            for target in (root / "src" / included, root / "duda" / included, root / "duda/packages" / included,
                           path.parent / included):
                other = target.relative_to(root).with_suffix("").as_posix()
                if other != name and target.exists():
                    graph[other]  # creates a node for it, too
                    graph[name].setdefault(other, f"{path.name}:{line}")
    return dict(graph)


def check_file_rings(root):
    """Reports a cycle of two or more files: common declarations belong in a header without functions."""
    return ring_complaints(files_graph(root), "files")


class Objects:
    """The symbols that each object defines and needs, read from nm's output for static libraries or single objects."""

    def __init__(self, libraries=()):
        self.layer = {}  # object -> layer
        self.needs = defaultdict(set)  # object -> symbols
        self.home = {}  # symbol -> object
        self.lto = False
        for library in libraries:
            self.read(library, re.sub(r"^libmk_|\.a$", "", library.name))

    def read(self, path, layer):
        done = house.call("nm", "-A", "-P", path)
        for row in done.stdout.splitlines():
            m = re.match(r"(?:.*\[(.+?)\]|(.+?)): (\S+) (\S)", row)
            if not m:
                continue
            member, alone, symbol, kind = m.groups()
            obj = f"{layer}/{member or alone.rsplit('/', 1)[-1]}"
            self.layer[obj] = layer
            self.lto = self.lto or symbol.startswith("__gnu_lto_")
            if kind == "U":  # weak symbols may be missing
                self.needs[obj].add(symbol)
            elif kind.isupper():
                self.home.setdefault(symbol, obj)

    def edges(self):
        """{object: {needed object: one symbol as evidence}}"""
        graph = {obj: {} for obj in self.layer}
        for obj, symbols in self.needs.items():
            for symbol in sorted(symbols):
                home = self.home.get(symbol)
                if home and home != obj:
                    graph[obj].setdefault(home, symbol)
        return graph


def find_rings(graph):
    """Returns the strongly connected components of two or more nodes (Tarjan's algorithm, without recursion)."""
    index, low, on_stack, stack, rings = {}, {}, set(), [], []
    for start in graph:
        if start in index:
            continue
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        work = [(start, iter(graph[start]))]
        while work:
            node, rest = work[-1]
            for nxt in rest:
                if nxt not in index:
                    index[nxt] = low[nxt] = len(index)
                    stack.append(nxt)
                    on_stack.add(nxt)
                    work.append((nxt, iter(graph[nxt])))
                    break
                if nxt in on_stack:
                    low[node] = min(low[node], index[nxt])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    ring, stack[at:] = stack[at:], []
                    on_stack.difference_update(ring)
                    if len(ring) > 1:
                        rings.append(sorted(ring))
    return rings


def ring_complaints(graph, what="objects"):
    complaints = []
    for ring in find_rings(graph):
        steps = [f"  {a} -> {b} ({graph[a][b]})" for a in ring for b in ring if b in graph[a]]
        complaints.append("\n".join([f"ring of {len(ring)} {what}:"] + steps))
    return complaints


# Layers that use the public interface as plugins do.
PLUGINS = {*house.WING, "websocket", "cgi", "readers"}


def check_symbols(objects, public=frozenset()):
    for obj, symbols in objects.needs.items():
        if objects.layer[obj] in PLUGINS:
            symbols -= {s for s in symbols & public if objects.layer.get(objects.home.get(s)) not in house.below(objects.layer[obj])}
    graph = objects.edges()
    complaints = []
    for obj, targets in graph.items():
        layer = objects.layer[obj]
        for target, symbol in targets.items():
            other = objects.layer[target]
            if layer in house.LAYERS and other not in house.below(layer):
                complaints.append(f"{obj} calls up: it needs {symbol} of {target}")
    return complaints + ring_complaints(graph)


def check_plugin(name, paths, ours, public):
    """The objects of one plugin form no cycle, and need only those symbols of the server that include/monkey declares."""
    objects = Objects()
    for path in paths:
        objects.read(path, name)
    if objects.lto:
        return []
    complaints = []
    for obj, symbols in sorted(objects.needs.items()):
        for symbol in sorted(symbols):
            if symbol in ours.home and symbol not in objects.home and symbol not in public:
                complaints.append(f"{obj} needs {symbol} of {ours.home[symbol]}, which no public header declares")
    return complaints + ring_complaints(objects.edges())


def check_includes(root):
    return (check_layer_folders(root) + check_layer_includes(root) + check_guest_includes(root) +
            check_vendor_includes(root) + check_duda_folders(root) + check_file_rings(root))


def check(args):
    complaints = check_includes(args.root)
    libraries = sorted(args.build.rglob("libmk_*.a")) if args.build else []
    if not libraries:
        house.note("no libraries of ours found, so only the includes were checked")
        return complaints
    ours = Objects(libraries)
    if ours.lto:
        house.note(f"{args.build} is optimized at link time; symbols are checked in a debug build only")
        return complaints
    public = house.public_names(args.root)
    for name, paths in house.plugin_objects(args.build).items():
        complaints += check_plugin(name, paths, ours, public)
    folders = sorted(args.build.glob("duda/**/CMakeFiles/duda_*.dir"))
    complaints += check_plugin("duda", house.objects_in(args.build, *folders), ours, public)
    for package in sorted(args.build.glob("duda/packages/CMakeFiles/package_*.dir")):
        parts = package.with_name(f"mk_{package.name}")
        complaints += check_plugin(package.stem, house.objects_in(args.build, package, parts), ours, public)
    return complaints + check_symbols(ours, public)


def build_libraries(test, sources):
    """Compiles {"os/file.c": text} into libmk_os.a and so on, as the build does."""
    root = test.tree(sources)
    members = defaultdict(list)
    for name in sources:
        layer, leaf = name.split("/")
        obj = root / layer / f"{leaf}.o"
        done = house.call("cc", "-c", root / name, "-o", obj)
        assert done.returncode == 0, done.stderr
        members[layer].append(obj)
    for layer, objs in members.items():
        house.call("ar", "rcs", root / f"libmk_{layer}.a", *objs)
    return sorted(root.glob("libmk_*.a"))


def objects_of(test, sources):
    return Objects(build_libraries(test, sources))


def judge_plugin(test, sources, public=()):
    """Checks a plugin of these files ({file name: text}) against a server with mk_filter_next and mk_public."""
    server = {"base/a.c": "void mk_filter_next(void) {}\nvoid mk_public(void) {}\n"}
    libraries = build_libraries(test, server | {f"x/{leaf}": text for leaf, text in sources.items()})
    objects = sorted(libraries[0].parent.glob("x/*.o"))
    return check_plugin("x", objects, Objects([lib for lib in libraries if lib.name == "libmk_base.a"]), set(public))


def self_test(test):
    def judge(sample):
        return check_includes(test.tree(sample))

    test.expect("down is fine", judge({"src/web/a.c": '#include "base/str.h"\n#include <stdio.h>\n#include "web/b.h"\n'}))
    test.expect("up", judge({"src/base/a.c": '\n#include "os/fd.h"\n'}), r"^src/base/a\.c:2: base may not include os/fd\.h")
    test.expect("up in a header, with odd spaces", judge({"src/event/a.h": '  #  include "web/b.h"\n'}), "event may not")
    test.expect("a neighbor", judge({"src/http/a.c": '#include "conf/tree.h"\n'}), "http may not")
    test.expect("up, in angle brackets", judge({"src/os/a.c": "#include <server/w.h>\n"}), "os may not")
    test.expect("setup down", judge({"src/setup/a.c": '#include "conf/tree.h"\n#include "connection/conn.h"\n'}))
    test.expect("setup up", judge({"src/setup/a.c": '#include "worker/worker.h"\n'}), "setup may not include worker")
    test.expect("up from a unit test", judge({"tests/unit/base/test_a.c": '#include "event/loop.h"\n'}), "base may not")
    test.expect("by a path", judge({"src/os/a.c": '#include "../web/x.h"\n'}), "hides which layer")
    test.expect("plugin on the public side", judge({"plugins/x/x.c": '#include <monkey/plugin.h>\n#include "x.h"\n'}))
    test.expect("plugin inside", judge({"plugins/x/x.c": '#include "web/dispatch.h"\n'}), "plugins may not include web/dispatch")
    test.expect("plugin and Duda", judge({"plugins/x/x.c": "#include <duda/duda.h>\n"}), "plugins may not include duda")
    test.expect("Duda inside", judge({"duda/text/x.c": '#include "base/buf.h"\n'}), "duda may not")
    test.expect("a folder of Duda", judge({"duda/service/x.c": '#include "fiber/fiber.h"\n#include "service/y.h"\n'}))
    test.expect("a folder above", judge({"duda/fiber/x.c": '#include "service/scheduler.h"\n'}), "fiber may not include service/scheduler.h")
    test.expect("an unknown folder", judge({"duda/attic/x.c": ""}), "duda/attic: check_layers.py does not know")
    test.expect("public header inside", judge({"include/monkey/x.h": '#include "base/compiler.h"\n'}), "include may not")
    test.expect("example inside", judge({"examples/x.c": "#include <http/request_head.h>\n"}), "examples may not")

    inner = {"src/os/a.c": '#include "os/a.h"\n#include "os/b.h"\n', "src/os/a.h": "struct a;\n",
             "src/os/b.h": '#include "os/a.h"\n'}
    test.expect("files in a ring", judge(inner), r"ring of 2 files:\n  src/os/a -> src/os/b \(a\.c:2\)")
    test.expect("a header of types opens it", judge(inner | {"src/os/b.h": '#include "os/a_type.h"\n', "src/os/a_type.h": ""}))
    test.expect("files of a plugin in a ring", judge({"plugins/x/a.c": '#include "a.h"\n#include "b.h"\n', "plugins/x/a.h": "",
                                                      "plugins/x/b.h": '#include "a.h"\n'}), "ring of 2 files")
    test.expect("files of a package in a ring", judge({"duda/packages/x/a.c": '#include "b.h"\n', "duda/packages/x/a.h": "",
                                                       "duda/packages/x/b.h": '#include "a.h"\n'}), "ring of 2 files")
    test.expect("OpenSSL in its place", judge({"src/tls/a.c": '#include <openssl/ssl.h>\n#include "tls/b.h"\n'}))
    test.expect("OpenSSL elsewhere", judge({"src/event/a.c": "#include <openssl/rand.h>\n"}), r"^src/event/a\.c:1: openssl/rand\.h may be")
    test.expect("OpenSSL in public", judge({"include/monkey/a.h": "#include <openssl/ssl.h>\n"}), "in src/tls only")
    test.expect("an optional layer from outside", judge({"src/connection/a.c": '#include "tls/stream.h"\n'}), "is for src/tls only")
    test.expect("nghttp2 elsewhere", judge({"src/http/a.c": "#include <nghttp2/nghttp2.h>\n"}), "in src/http2frame only")
    test.expect("a layer of a plugin that looks down", judge({"src/upstream/a.c": '#include "cgi/cgi.h"\n#include "event/loop.h"\n'}))
    test.expect("a layer of a plugin that looks at the server", judge({"src/upstream/a.c": '#include "web/dispatch.h"\n'}), "upstream may not include")
    test.expect("the recorder looks down", judge({"src/recorder/a.c": '#include "web/exchange.h"\n'}))
    test.expect("the recorder looks up", judge({"src/recorder/a.c": '#include "setup/config.h"\n'}), "recorder may not include setup")
    test.expect("the recorder from outside", judge({"src/setup/a.c": '#include "recorder/a.h"\n'}), "setup may not include recorder")
    test.expect("an unknown layer", judge({"src/attic/a.c": ""}), "src/attic: house.py does not know")
    test.expect("a layer of a plugin from outside", judge({"src/server/a.c": '#include "upstream/pool.h"\n'}), "server may not include")
    test.expect("HTTP/2 from a file that is built with it", judge({"src/lib/test_client/h2_client.c": '#include "http2frame/hpack.h"\n'}))
    test.expect("HTTP/2 from its neighbor", judge({"src/lib/test_client/a.c": '#include "http2frame/hpack.h"\n'}), "is for src/http2 only")
    test.expect("HTTP/2 from above", judge({"src/server/a.c": '#include "http2/h2.h"\n'}), "is for src/http2 only")

    base = {"base/a.c": "void mk_a(void) {}\n"}
    down = {"os/b.c": "void mk_a(void);\nvoid mk_b(void) { mk_a(); }\n"}
    test.expect("libraries that look down", check_symbols(objects_of(test, base | down)))
    up = {"base/c.c": "void mk_b(void);\nvoid mk_c(void) { mk_b(); }\n"}
    test.expect("library that calls up", check_symbols(objects_of(test, base | down | up)),
                r"base/c\.c\.o calls up: it needs mk_b of os/b\.c\.o")
    guest = {"upstream/c.c": "void mk_w(void);\nvoid mk_c(void) { mk_w(); }\n", "web/w.c": "void mk_w(void) {}\n"}
    test.expect("a layer of a plugin calls the public interface", check_symbols(objects_of(test, guest), {"mk_w"}))
    test.expect("and nothing else", check_symbols(objects_of(test, guest)), r"upstream/c\.c\.o calls up")
    aside = {"http/c.c": "extern int mk_b(void);\nint (*mk_c)(void) = mk_b;\n"}
    test.expect("library that points to a neighbor", check_symbols(objects_of(test, base | down | aside)),
                "http/c.c.o calls up")
    ring = {"base/d.c": "void mk_e(void);\nvoid mk_d(void) { mk_e(); }\n",
            "base/e.c": "void mk_f(void);\nvoid mk_e(void) { mk_f(); }\n",
            "base/f.c": "void mk_d(void);\nvoid mk_f(void) { mk_d(); }\n"}
    test.expect("ring of three", check_symbols(objects_of(test, base | ring)), r"ring of 3 objects:\n  base/d")
    same = {"base/g.c": "static void tick(void) {}\nvoid mk_g(void) { tick(); }\n",
            "base/h.c": "static void tick(void) {}\nvoid mk_h(void) { tick(); }\n"}
    call = "void x_b(void);\nvoid mk_public(void);\nvoid x_a(void) { x_b(); mk_public(); }\n"
    test.expect("a plugin", judge_plugin(test, {"a.c": call, "b.c": "void x_b(void) {}\n"}, ["mk_public"]))
    test.expect("a plugin that looks inside", judge_plugin(test, {"a.c": call, "b.c": "void x_b(void) {}\n"}),
                r"x/a\.c\.o needs mk_public of base/a\.c\.o, which no public")
    test.expect("a ring in a plugin",
                judge_plugin(test, {"a.c": call, "b.c": "void x_a(void);\nvoid x_b(void) { x_a(); }\n"}, ["mk_public"]),
                r"ring of 2 objects:\n  x/a")
    test.expect("statics of one name", check_symbols(objects_of(test, same)))


if __name__ == "__main__":
    house.run(__doc__, check, self_test, build_dir=True)
