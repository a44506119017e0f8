# SPDX-License-Identifier: Apache-2.0
"""Helpers for the dirlisting tests."""
import json
from html.parser import HTMLParser

import proc

ON = "[DIRLISTING]\n    Theme guineo\n"


class Page(HTMLParser):
    """Parses a listing as a browser does."""

    def __init__(self, reply):
        super().__init__(convert_charrefs=True)
        assert reply.status == 200 and reply["Content-Type"] == "text/html; charset=utf-8"
        self.tags, self.links, self.rows, self.heads, self.text, self.title = set(), [], [], [], "", ""
        self.at, self.cell = [], None
        self.feed(reply.text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.add(tag)
        assert not [name for name in attrs if name.startswith("on") or name == "style"], attrs
        if tag not in ("meta", "link"):
            self.at.append(tag)
        if tag == "a":
            self.links.append(attrs["href"])
        if tag == "th":
            self.heads.append(attrs.get("aria-sort"))
        if tag == "tr" and "tbody" in self.at:
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")
        if tag == "a" and "td" in self.at:
            self.rows[-1].append(attrs["href"])

    def handle_endtag(self, tag):
        while self.at and self.at.pop() != tag:
            raise AssertionError(f"</{tag}> ends something else")

    def handle_data(self, data):
        if "style" in self.at:
            return
        self.text += data
        if "title" in self.at:
            self.title += data
        if "td" in self.at:
            self.rows[-1][0 if len(self.rows[-1]) == 2 else -1] += data

    @property
    def entries(self):
        """Returns (displayed name, link, size, time) for each entry."""
        return [tuple(row) for row in self.rows if row[1] != "../"]

    @property
    def names(self):
        return [row[0] for row in self.entries]


def listed(server, target="/", **how):
    return Page(server.get(target, **how))


def listed_json(server, target="/", how="?format=json"):
    reply = server.get(target + how)
    assert reply.status == 200 and reply["Content-Type"] == "application/json"
    return json.loads(reply.body)


def names_of(server, target="/", how=""):
    return [entry["name"] for entry in listed_json(server, target, "?format=json" + how)["entries"]]


def lister(monkey, section=ON, **keys):
    return monkey(plugins=["dirlisting"], sections=section, **keys)


def open_below(server, path):
    """Returns the only worker's descriptors of files and folders below the given folder."""
    worker, = server.workers
    return [name for name in proc.descriptors(worker).values() if name.startswith(str(path))]
