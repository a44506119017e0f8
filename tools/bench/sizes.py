#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the size of Monkey: each preset as a stripped dynamic program (glibc) and as a static one (musl), and the memory of an
idle server.

    sizes.py [--write FILE] [--keep FOLDER] [--libraries FOLDER] [PRESET...]

The presets are tiny, std and full; builds go to a temporary folder, or to the folder of --keep. Static programs are built without
libraries, since Debian has none for musl, and cannot load shared objects. --libraries: the pkgconfig folder of zlib and nghttp2, which
you compiled with musl-gcc; adds a static std with both. --write puts the table into FILE, between two comments.
RSS is that of the worker; PSS is that of master and worker together and counts shared pages once.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRESETS = ("tiny", "std", "full")
BEGIN, END = "<!-- sizes -->\n", "<!-- /sizes -->\n"
HEAD = ("| preset | libc | program | objects it can load | RSS of the worker | PSS of all | libmonkey hello |\n|---|---|---|---|---|---|---|\n")


def call(*command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}")
    return done.stdout


def kernel_headers(folder):
    """Symlinks the kernel headers, which Debian's musl-gcc does not find, into the folder; returns the folder."""
    multiarch = call("gcc", "-print-multiarch").strip()
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("linux", "asm", "asm-generic"):
        at = next(path for path in (f"/usr/include/{multiarch}/{name}", f"/usr/include/{name}") if os.path.isdir(path))
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(at)
    return folder


def configure(preset, is_static, libraries, folder):
    options, environment = [], os.environ
    if is_static:
        headers = kernel_headers(folder.parent / "kernel")
        options = ["-DCMAKE_C_COMPILER=musl-gcc", f"-DCMAKE_C_COMPILER_AR={shutil.which('gcc-ar')}",
                   f"-DCMAKE_C_COMPILER_RANLIB={shutil.which('gcc-ranlib')}", f"-DCMAKE_C_FLAGS=-isystem {headers}", "-DCMAKE_EXE_LINKER_FLAGS=-static",
                   "-DMK_TLS=OFF", "-DMK_EXPORTS=OFF", "-DMK_PLUGINS_STATIC=all"]
        options += ["-DMK_HTTP2=ON"] if libraries else ["-DMK_LIBRARIES=OFF", "-DMK_HTTP2=OFF"]
    if libraries:
        environment = os.environ | {"PKG_CONFIG_LIBDIR": str(libraries)}
    call("cmake", "-S", ROOT, "--preset", preset, "-B", folder, *options, cwd=ROOT, env=environment)
    call("cmake", "--build", folder, "--target", "server", "libmonkey.a", "--", "-j2")


def stripped(path):
    copy = f"{path}.stripped"
    call("strip", "-o", copy, path)
    return os.path.getsize(copy)


def loadable(folder):
    """Returns how many objects the program can load, and their stripped size."""
    sizes = [stripped(path) for path in folder.rglob("monkey-*.so")]
    return f"{len(sizes)}, {kb(sum(sizes))}" if sizes else "none"


def hello(is_static, folder):
    """Returns the stripped size of a program with one handler, statically linked to libmonkey."""
    made = folder / "hello"
    flags = call("pkg-config", "--static", "--libs", folder / "packaging/libmonkey-static.pc").split()
    flags = [flag for flag in flags if not re.match(r"-L|\S*(-lmonkey|libmonkey\.a)$", flag)]
    compiler = ["musl-gcc", "-static"] if is_static else ["gcc"]
    call(*compiler, "-Os", f"-I{ROOT}/include", ROOT / "examples/embed/hello.c", folder / "libmonkey.a", *flags,
         "-Wl,--gc-sections,-z,noseparate-code", "-o", made)
    return stripped(made)


def memory(pid, key):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(rf"^{key}:\s+(\d+)", text, re.MULTILINE)[1])


def idle(program):
    """Returns the worker's RSS and the PSS of master and worker in KB, after startup."""
    with tempfile.TemporaryDirectory() as www:
        command = [str(program), "-w", "1", "-p", "127.0.0.1:0", www]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            for line in server.stdout:
                if "http://" in line:
                    break
            workers = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
            pids = [str(server.pid), *workers]
            rss, pss = memory(workers[0], "Rss"), sum(memory(pid, "Pss") for pid in pids)
            server.send_signal(signal.SIGTERM)
            server.stdout.read()
    return rss, pss


def kb(size):
    return f"{size / 1024:,.0f} KB"


def row(preset, is_static, libraries, folder):
    configure(preset, is_static, libraries, folder)
    objects = "none" if is_static else loadable(folder)
    rss, pss = idle(folder / "monkey")
    libc = f"musl, static, {'zlib and nghttp2' if libraries else 'no libraries'}" if is_static else "glibc, dynamic"
    return (f"| `{preset}` | {libc} | {kb(stripped(folder / 'monkey'))} | {objects} | {rss:,} KB | {pss:,} KB "
            f"| {'' if libraries else kb(hello(is_static, folder))} |\n")


def write(path, table):
    text = path.read_text()
    if BEGIN not in text:
        sys.exit(f"{path}: there is no {BEGIN.strip()}")
    before, rest = text.split(BEGIN, 1)
    path.write_text(before + BEGIN + table + END + rest.split(END, 1)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", default=PRESETS, metavar="PRESET")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--libraries", type=pathlib.Path)
    options = parser.parse_args()
    folder = options.keep or pathlib.Path(tempfile.mkdtemp())
    table = HEAD
    try:
        for preset in options.presets:
            for is_static in (False, True):
                if not is_static or shutil.which("musl-gcc"):
                    table += row(preset, is_static, None, folder / f"{preset}-{'musl' if is_static else 'glibc'}")
            if preset == "std" and options.libraries:
                table += row(preset, True, options.libraries.resolve(), folder / "std-libraries")
    finally:
        if not options.keep:
            shutil.rmtree(folder)
    print(table, end="")
    if options.write:
        write(options.write, table)


if __name__ == "__main__":
    main()
