# SPDX-License-Identifier: Apache-2.0
"""Reads the terminal sessions of the guides."""
import re
import shlex
from urllib.parse import urlsplit

import pytest

OPTIONS = {"-d": "body", "-X": "method", "-H": "fields"}


def calls(text):
    """Yields the request of each `$ curl ...` line and the response lines below it."""
    for match in re.finditer(r"^    \$ (curl .*)\n((?:    (?!\$).*\n|\n(?=    \S))*)", text, re.MULTILINE):
        words, how = shlex.split(match[1])[1:], {"fields": [], "body": b"", "method": None}
        while words[0] in OPTIONS:
            option, value, *words = words
            if option == "-H":
                how["fields"].append(tuple(value.split(": ", 1)))
            else:
                how[OPTIONS[option]] = value.encode() if option == "-d" else value
        if how["body"] and not any(name.lower() == "content-type" for name, _ in how["fields"]):
            how["fields"].append(("Content-Type", "application/x-www-form-urlencoded"))  # as curl does
        how["method"] = how["method"] or ("POST" if how["body"] else "GET")
        (url,), wanted = words, re.sub("^    ", "", match[2], flags=re.MULTILINE)
        parts = urlsplit(url)
        yield parts.path + (f"?{parts.query}" if parts.query else ""), how, wanted


@pytest.fixture
def environment(tmp_path, tmp_path_factory):
    cache = tmp_path_factory.getbasetemp() / "cache"
    cache.mkdir(exist_ok=True)
    return {"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": str(tmp_path)}
