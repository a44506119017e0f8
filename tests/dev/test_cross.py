# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/guide/cross-compiling.md literally in a copy of the tree, with and without an emulator."""
import os
import re
import shutil
import subprocess
import urllib.request

import pytest

from monkey import ROOT, SECONDS

GUIDE = ROOT / "docs" / "guide" / "cross-compiling.md"
COMPILER = "arm-linux-gnueabihf-gcc"
BUILD_SECONDS = 1800
pytestmark = [pytest.mark.slow, pytest.mark.timeout(BUILD_SECONDS),
              pytest.mark.skipif(not all(map(shutil.which, (COMPILER, "cmake", "ninja", "git"))), reason=f"needs {COMPILER}, cmake and git")]


def commands(begin):
    """Returns the commands of the code block that contains `begin`."""
    blocks = re.findall(r"(?:^    .+\n)+", GUIDE.read_text(), re.MULTILINE)
    (block,) = [block for block in blocks if begin in block]
    return [line.strip() for line in block.splitlines()]


def sh(command, folder, seconds=BUILD_SECONDS):
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, (command, done.stdout[-4000:], done.stderr[-4000:])
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Copies all files that git tracks, with their uncommitted changes."""
    folder = tmp_path_factory.mktemp("cross")
    sh(f"git -C {ROOT} ls-files -z | (cd {ROOT} && xargs -0 tar -cf - --ignore-failed-read 2>/dev/null) | tar -xf - -C {folder}", ROOT)
    return folder


def request_status(command, folder):
    """Starts a server that prints its address, and returns the status of its index page."""
    process = subprocess.Popen(command, shell=True, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        for line in process.stdout:
            if "http://" in line:
                return urllib.request.urlopen(line.strip(), timeout=SECONDS).status
        return None
    finally:
        os.killpg(process.pid, 15)
        process.wait(SECONDS)
        process.stdout.close()


def stripped_kb(path, triplet):
    """The size of the stripped program in KB, as the guide states it."""
    made = path.with_suffix(".stripped")
    subprocess.run([f"{triplet}-strip", "-o", made, path], check=True)
    return made.stat().st_size / 1024


def sizes_of_guide():
    """Returns the sizes stated in the guide: {"armhf": KB, "arm64": KB}."""
    return dict(zip(("armhf", "arm64"), map(int, re.search(r"are (\d+) KB and (\d+) KB in size", GUIDE.read_text()).groups())))


@pytest.mark.skipif(not shutil.which("qemu-arm"), reason="needs qemu-arm")
def test_guide_installs_into_a_folder_for_the_board(tree):
    install, *build = commands("cmake --preset armhf")
    assert install.startswith("tools/dev/need.sh ")  # the test skips this command, which installs packages
    for command in build + commands("cmake --install"):
        sh(command, tree)
    installed = {str(path.relative_to(tree / "board/usr/local")) for path in (tree / "board").rglob("*") if path.is_file()}
    for name in ("bin/monkey", "lib/libmonkey.a", "lib/pkgconfig/libmonkey.pc", "include/monkey/server.h", "share/man/man1/monkey.1",
                 "etc/monkey/monkey.conf"):
        assert name in installed, (name, sorted(installed))
    assert stripped_kb(tree / "build/armhf/monkey", "arm-linux-gnueabihf") == pytest.approx(sizes_of_guide()["armhf"], rel=0.15)
    (run,) = commands("qemu-arm -L")
    assert " -p 8080 " in run
    assert request_status("exec " + run.replace(" -p 8080 ", " -p 127.0.0.1:0 "), tree) == 200


@pytest.mark.skipif(not all(map(shutil.which, ("aarch64-linux-gnu-gcc", "qemu-aarch64"))), reason="needs aarch64-linux-gnu-gcc and qemu-aarch64")
def test_foreign_libraries_of_the_guide_add_tls_and_http2(tree):
    foreign, *build = commands("tools/dev/foreign.sh arm64")
    fetched = subprocess.run(foreign, shell=True, cwd=tree, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    if fetched.returncode != 0:
        pytest.skip(f"needs a mirror of Debian: {fetched.stderr.strip()}")
    for command in build:
        sh(command, tree)
    root = tree / "build/foreign/arm64/root/usr/lib/aarch64-linux-gnu"
    emulator = f"qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH={root} build/arm64-tls/monkey"
    features = sh(f"{emulator} -V", tree)
    for name in ("TLS", "HTTP/2", "gzip", "auth"):
        assert name in features, features
    # Without a certificate, the server loads neither the TLS object nor its library.
    assert request_status(f"exec {emulator} -p 127.0.0.1:0 site", tree) == 200


def test_toolchain_without_emulator_runs_no_target_program(tree, tmp_path):
    (tmp_path / "toolchain.cmake").write_text("set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR arm)\n"
                                              f"set(CMAKE_C_COMPILER {COMPILER})\n")
    sh(f"cmake -S {tree} -B foreign -G Ninja --toolchain {tmp_path}/toolchain.cmake -DMK_LIBRARIES=OFF", tmp_path)
    sh("cmake --build foreign --target pages", tmp_path)
    run = [line for line in sh("ninja -C foreign -t commands all", tmp_path).splitlines() if re.search(r"docgen [a-z]+ *(>|\S*\.so)", line)]
    assert not run
    scripts = "".join(path.read_text() for path in (tmp_path / "foreign").rglob("cmake_install.cmake"))
    assert "libmonkey.a" in scripts and "/docs/" not in scripts
