# SPDX-License-Identifier: Apache-2.0
"""Libraries that are loaded before the optimised program and make what it rests on fail. See tests/fault."""
import mmap
import os
import struct
from pathlib import Path

from monkey import ROOT
from proc import RELEASE

LIBRARIES = Path(os.environ.get("MONKEY_FAULTS", ROOT / "build" / "dev" / "tests" / "fault")).resolve()
WORDS = 16
LAYOUTS = {
    "failmalloc": ["after", "count", "master", "seen", "failed"],
    "shortio": ["chance", "most", "state", "short", "again", "interrupted"],
    "oldfs": ["refused", "links"],
    "clock": ["ahead_ms"],
    "probe": ["done", "read", "write", "create", "list", "run", "root"],
}


class Fault:
    """`fault.chance = 300` is at once known in the processes of the server that was started with `**fault.how`."""

    def __init__(self, name, folder, environment=None):
        library = LIBRARIES / f"{name}.so"
        assert library.exists() and RELEASE.exists(), f"{library} or {RELEASE} is not built"
        path = folder / f"{name}.fault"
        path.write_bytes(bytes(8 * WORDS))
        with open(path, "r+b") as file:
            memory = mmap.mmap(file.fileno(), 8 * WORDS)
        self.__dict__.update(_layout=LAYOUTS[name], _memory=memory)
        self.__dict__["environment"] = {"LD_PRELOAD": str(library), "MONKEY_FAULT": str(path), **(environment or {})}
        self.__dict__["how"] = {"program": RELEASE, "environment": self.environment}

    def __getattr__(self, name):
        return struct.unpack_from("<q", self._memory, 8 * self._layout.index(name))[0]

    def __setattr__(self, name, value):
        struct.pack_into("<q", self._memory, 8 * self._layout.index(name), value)
