# SPDX-License-Identifier: Apache-2.0
"""services.build() compiles a service once, and again as soon as anything that the compiler reads has changed."""
import os
import subprocess
import time

import pytest

import services

SOURCE = '#include <duda.h>\nint number(void);\nint number(void)\n{\n    return %d;\n}\n'
pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="no Duda in this build")


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """The number of compilations so far. The stored objects are in a folder of this test."""
    compilations = []
    original = subprocess.run

    def count(command, *args, **how):
        if "-o" in command:
            compilations.append(command)
        return original(command, *args, **how)

    monkeypatch.setattr(subprocess, "run", count)
    (tmp_path / "stored").mkdir()
    monkeypatch.setattr(services, "stored_objects", lambda: tmp_path / "stored")
    return lambda: len(compilations)


def build(tmp_path, folder, source=SOURCE % 1, *flags, name="same"):
    (tmp_path / folder).mkdir(exist_ok=True)
    return services.build(tmp_path / folder, name, source, *flags)


def test_same_service_is_compiled_once(compiled, tmp_path):
    first, second = build(tmp_path, "a"), build(tmp_path, "b")
    assert compiled() == 1
    assert first != second and first.read_bytes() == second.read_bytes()
    assert os.access(second, os.X_OK)


def test_other_service_is_compiled(compiled, tmp_path, monkeypatch):
    build(tmp_path, "a")
    build(tmp_path, "a", SOURCE % 2)
    build(tmp_path, "a", SOURCE % 1, "-DX")
    build(tmp_path, "a", name="other")
    assert compiled() == 4
    monkeypatch.setattr(services, "headers", lambda: "others")
    build(tmp_path, "a")
    assert compiled() == 5


@pytest.mark.parametrize("flags", [(), ("-include", "{}/own.h"), ("-I{}",)], ids=["source", "included", "folder"])
def test_service_with_files_of_the_test_is_always_compiled(compiled, tmp_path, flags):
    (tmp_path / "own.h").write_text("")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/own.h").write_text("")
    for _ in range(2):
        build(tmp_path, "a", SOURCE % 1 if flags else '#include "own.h"\n' + SOURCE % 1, *(flag.format(tmp_path) for flag in flags))
    assert compiled() == 2


def test_loaded_object_is_replaced_not_overwritten(compiled, tmp_path):
    """A server that has loaded the object keeps the old file."""
    build(tmp_path, "b", SOURCE % 2)
    with open(build(tmp_path, "a"), "rb") as old:
        before = old.read()
        build(tmp_path, "a", SOURCE % 2)
        old.seek(0)
        assert old.read() == before
    assert compiled() == 2


def test_unused_objects_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(services, "OBJECTS", tmp_path / "plugins")
    (tmp_path / "services").mkdir()
    for name, days in (("old", services.UNUSED_DAYS + 1), ("new", 0)):
        (tmp_path / "services" / name).write_text("")
        os.utime(tmp_path / "services" / name, (time.time() - days * 86400,) * 2)
    assert [path.name for path in services.stored_objects.__wrapped__().iterdir()] == ["new"]
