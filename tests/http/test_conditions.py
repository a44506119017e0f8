# SPDX-License-Identifier: Apache-2.0
"""Conditional requests: five header fields and their precedence (RFC 9110, section 13)."""
import gzip
import itertools
import os
import time
from email.utils import formatdate, parsedate_to_datetime

import pytest

MTIME = 1_600_000_000  # Sun, 13 Sep 2020 12:26:40 GMT
DATE, BEFORE, AFTER = (formatdate(MTIME + d, usegmt=True) for d in (0, -1, 1))


def prepare(monkey, site):
    site.add("a.txt", "0123456789", mtime=MTIME)
    return monkey(host="Resume on")


@pytest.fixture
def server(lasting):
    """A shared server for tests that only send requests."""
    return lasting(prepare)


@pytest.fixture
def own(monkey, site):
    """A server for tests that change its files."""
    return prepare(monkey, site)


@pytest.fixture
def etag(server):
    tag = server.get("/a.txt")["ETag"]
    assert tag.startswith('"') and tag.endswith('"'), "strong"
    return tag


def test_validators_identify_file_version(own, site):
    reply = own.get("/a.txt")
    assert reply["Last-Modified"] == DATE
    assert own.get("/a.txt")["ETag"] == reply["ETag"], "the same file has the same tag"
    site.add("same.txt", "9876543210", mtime=MTIME + 1)
    site.add("short.txt", "01234567", mtime=MTIME)
    tags = {own.get(t)["ETag"] for t in ("/a.txt", "/same.txt", "/short.txt")}
    assert len(tags) == 3


def test_etag_is_equal_on_servers_of_the_same_files(monkey, own):
    assert monkey().get("/a.txt")["ETag"] == own.get("/a.txt")["ETag"]


def test_last_modified_is_never_in_the_future(own, site):
    site.add("new.txt", "x", mtime=time.time() + 100_000)
    reply = own.get("/new.txt")
    assert parsedate_to_datetime(reply["Last-Modified"]) <= parsedate_to_datetime(reply["Date"])


def test_last_modified_before_1970_is_valid(own, site):
    site.add("old.txt", "x", mtime=-86400)
    assert own.get("/old.txt")["Last-Modified"] == "Wed, 31 Dec 1969 00:00:00 GMT"
    assert own.get("/old.txt", fields={"If-Modified-Since": "Wed, 31 Dec 1969 00:00:00 GMT"}).status == 304


def status(server, fields, method="GET"):
    reply = server.get("/a.txt", method, fields)
    if reply.status == 304:
        assert reply.body == b"" and "Content-Length" not in reply and "Content-Type" not in reply
        assert reply["ETag"] and reply["Last-Modified"] == DATE
    elif reply.status == 200:
        assert reply.body == (b"0123456789" if method == "GET" else b"")
    return reply.status


@pytest.mark.parametrize("value, expected", [
    ("{tag}", 304), ('"other"', 200), ('"other", {tag}', 304), ('{tag},"other"', 304), ("W/{tag}", 304),
    ('W/"other" , W/{tag}', 304), ("*", 304), ("{bare}", 200), ('"', 200), ("", 200), (",,{tag},,", 304),
    ('"{bare}', 200), ('w/{tag}', 200), ('"a,b", {tag}', 304), ('"{bare},x"', 200), ("{tag} x", 200),
])
def test_if_none_match_compares_etags(server, etag, value, expected):
    value = value.format(tag=etag, bare=etag.strip('"'))
    assert status(server, {"If-None-Match": value}) == expected
    assert status(server, {"If-None-Match": value}, "HEAD") == expected


def test_if_none_match_lines_form_one_list(server, etag):
    assert status(server, [("If-None-Match", '"x"'), ("If-None-Match", etag), ("If-None-Match", '"y"')]) == 304


@pytest.mark.parametrize("value, expected", [
    ("{tag}", 200), ('"other"', 412), ('"other", {tag}', 200), ("W/{tag}", 412), ("*", 200), ("", 412), ("x", 412),
])
def test_if_match_compares_etags(server, etag, value, expected):
    assert status(server, {"If-Match": value.format(tag=etag)}) == expected


@pytest.mark.parametrize("value, expected", [
    (DATE, 304), (AFTER, 304), (BEFORE, 200), ("yesterday", 200), ("", 200), ("0", 200),
    ("Sunday, 13-Sep-20 12:26:40 GMT", 304), ("Sun Sep 13 12:26:40 2020", 304),
    ("Sunday, 13-Sep-20 12:26:39 GMT", 200), ("Sun Sep 13 12:26:39 2020", 200),
    ("Sun, 13 Sep 2020 12:26:40", 200), ("Sun, 13 Sep 2020 12:26:40 CET", 200), ("Mon, 99 Sep 2020 12:26:40 GMT", 200),
])
def test_if_modified_since_compares_dates(server, value, expected):
    assert status(server, {"If-Modified-Since": value}) == expected
    assert status(server, {"If-Modified-Since": value}, "HEAD") == expected


@pytest.mark.parametrize("value, expected", [(DATE, 200), (AFTER, 200), (BEFORE, 412), ("yesterday", 200), ("", 200)])
def test_if_unmodified_since_compares_dates(server, value, expected):
    assert status(server, {"If-Unmodified-Since": value}) == expected


def test_duplicate_date_conditions_are_ignored(server):
    assert status(server, [("If-Modified-Since", AFTER), ("If-Modified-Since", AFTER)]) == 200
    assert status(server, [("If-Unmodified-Since", BEFORE), ("If-Unmodified-Since", BEFORE)]) == 200


def test_conditions_follow_rfc_precedence(server, etag):
    """Compares all combinations of the four fields with section 13.2.2."""
    names = ("If-Match", "If-Unmodified-Since", "If-None-Match", "If-Modified-Since")
    values = ((None, etag, '"x"'), (None, AFTER, BEFORE), (None, etag, '"x"'), (None, AFTER, BEFORE))
    with server.connect() as c:
        for match, unmodified, none, modified in itertools.product(*values):
            if match is not None:
                passes = match == etag
            else:
                passes = unmodified is None or unmodified == AFTER
            if not passes:
                expected = 412
            elif none is not None:
                expected = 304 if none == etag else 200
            else:
                expected = 304 if modified == AFTER else 200
            fields = [(n, v) for n, v in zip(names, (match, unmodified, none, modified)) if v is not None]
            assert c.get("/a.txt", fields=fields).status == expected, fields
            assert c.get("/a.txt", fields=reversed(fields)).status == expected, "the order of the fields is irrelevant"


def test_conditions_are_evaluated_before_range(server, etag):
    for fields, expected in [({"If-None-Match": etag}, 304), ({"If-Match": '"x"'}, 412), ({"If-Match": etag}, 206),
                             ({"If-Modified-Since": BEFORE}, 206), ({"If-None-Match": '"x"'}, 206)]:
        assert server.get("/a.txt", fields={"Range": "bytes=1-2"} | fields).status == expected


@pytest.mark.parametrize("value, expected", [
    ("{tag}", 206), ('"other"', 200), ("W/{tag}", 200), (DATE, 200), (BEFORE, 200), (AFTER, 200), ("*", 200),
    ("", 200), ("x", 200), ('{tag}, "other"', 200), ("Sun Sep 13 12:26:40 2020", 200),
])
def test_if_range_selects_part_or_whole(server, etag, value, expected):
    reply = server.get("/a.txt", fields={"Range": "bytes=2-4", "If-Range": value.format(tag=etag)})
    assert (reply.status, reply.body) == (expected, b"234" if expected == 206 else b"0123456789")


def test_if_range_without_range_is_ignored(server):
    assert server.get("/a.txt", fields={"If-Range": '"x"'}).status == 200


def test_if_range_mismatch_ignores_unsatisfiable_range(server, etag):
    for value, expected in ((etag, 416), ('"x"', 200)):
        assert server.get("/a.txt", fields={"Range": "bytes=99-", "If-Range": value}).status == expected


def test_if_range_date_never_combines_two_versions(monkey, site):
    """A file may change twice within a second (RFC 9110, section 8.8.2.2), so a client that has the ETag must use it."""
    site.add("a.txt", "A" * 10, mtime=MTIME)
    server = monkey(server="OpenFileCacheTTL 0")
    modified = server.get("/a.txt")["Last-Modified"]
    site.add("b.txt", "B" * 10, mtime=MTIME + 0.5)
    (site / "b.txt").rename(site / "a.txt")
    assert server.get("/a.txt")["Last-Modified"] == modified
    reply = server.get("/a.txt", fields={"Range": "bytes=5-", "If-Range": modified})
    assert (reply.status, reply.text) == (200, "B" * 10)


def test_file_change_changes_validators(monkey, site):
    site.add("a.txt", "one", mtime=MTIME)
    server = monkey(server="OpenFileCacheTTL 0")
    first = server.get("/a.txt")
    site.add("a.txt", "two", mtime=MTIME + 1)
    second = server.get("/a.txt", fields={"If-None-Match": first["ETag"]})
    assert (second.status, second.text) == (200, "two") and second["ETag"] != first["ETag"]
    os.replace(site.add("b.txt", "abc", mtime=MTIME + 1), site / "a.txt")
    third = server.get("/a.txt", fields={"If-Modified-Since": second["Last-Modified"]})
    assert third.status == 304, "a date has a resolution of one second"
    assert server.get("/a.txt").text == "abc"


def test_not_modified_repeats_headers_of_200(monkey, site):
    site.add("z.txt", "hello " * 50, mtime=MTIME)
    site.add("z.txt.gz", gzip.compress(b"hello " * 50), mtime=MTIME)
    server = monkey(sections="[CACHE_CONTROL]\n    *.txt max-age=60, public\n")
    for accept in ("gzip", "identity"):
        full = server.get("/z.txt", fields={"Accept-Encoding": accept})
        short = server.get("/z.txt", fields={"Accept-Encoding": accept, "If-None-Match": full["ETag"]})
        assert short.status == 304
        for name in ("ETag", "Last-Modified", "Cache-Control", "Vary"):
            assert short[name] == full[name]
