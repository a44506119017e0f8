# SPDX-License-Identifier: Apache-2.0
"""Does this build support regular expressions?"""
import re

from monkey import PROGRAM

_CACHE = PROGRAM.parent / "CMakeCache.txt"
ARE_THERE = not _CACHE.exists() or not re.search(r"^MK_PCRE2:\w+=OFF|^pcre2_FOUND:INTERNAL=$", _CACHE.read_text(), re.MULTILINE)
