# SPDX-License-Identifier: Apache-2.0
"""Conditional requests, byte ranges and downloads of services: files, descriptors and bodies in memory, whether the service
is loaded or isolated, over HTTP/1 and HTTP/2."""
import re
from urllib.parse import quote, unquote

import pytest

import services

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SERVICE = r"""
#define _GNU_SOURCE /* memfd_create() */
#include <duda.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARGE = 300000 };

/* Writes a body of `size` bytes; the digit at offset i is i % 10. */
static int put_digits(struct duda_ctx *d, int size)
{
    int e = 0;
    for (int i = 0; i < size && !e; i += 10)
        e = duda_write(d, mk_str_of("0123456789", size - i < 10 ? (size_t)(size - i) : 10));
    return e;
}

static int file(struct duda_ctx *d)
{
    return duda_send_file(d, MK_STR("/digits.txt"));
}

/* Sends bytes 10 to 29 of a file, with a version as ETag. */
static int part(struct duda_ctx *d)
{
    int e = duda_check_preconditions(d, MK_STR("v7"), 1000000000);
    e = e ? e : duda_content_type(d, MK_STR("text/plain; charset=utf-8"));
    if (e)
        return e;
    int fd = memfd_create("digits", MFD_CLOEXEC);
    if (write(fd, "0123456789012345678901234567890123456789", 40) != 40)
        return -EIO;
    return duda_send_fd(d, fd, 10, 20);
}

static int memory(struct duda_ctx *d)
{
    int e = duda_make_conditional(d, MK_CONDITIONAL_ETAG | MK_CONDITIONAL_RANGES);
    return e ? e : put_digits(d, 20);
}

static int large(struct duda_ctx *d)
{
    int e = duda_make_conditional(d, MK_CONDITIONAL_ETAG | MK_CONDITIONAL_RANGES);
    return e ? e : put_digits(d, LARGE);
}

static int huge(struct duda_ctx *d)
{
    static char piece[1 << 20];
    int e = duda_make_conditional(d, MK_CONDITIONAL_ETAG | MK_CONDITIONAL_RANGES);
    for (int i = 0; i < 10 && !e; i++)
        e = duda_write(d, mk_str_of(piece, sizeof piece));
    return e;
}

static int by_server(struct duda_ctx *d)
{
    int e = duda_make_conditional(d, MK_CONDITIONAL_ETAG | MK_CONDITIONAL_RANGES);
    return e ? e : mk_response_set_body(duda_response(d), MK_STR("01234567890123456789"));
}

static int page(struct duda_ctx *d)
{
    return duda_html(d, MK_STR("<p>a page"));
}

static int own_tag(struct duda_ctx *d)
{
    int e = duda_check_preconditions(d, MK_STR("mine"), 0);
    return e ? e : duda_puts(d, "text");
}

static int created(struct duda_ctx *d)
{
    int e = duda_puts(d, "made");
    return e ? e : 201;
}

static int long_page(struct duda_ctx *d)
{
    return put_digits(d, LARGE);
}

static int too_late(struct duda_ctx *d)
{
    int e = duda_puts(d, "x");
    e = e ? e : duda_flush(d);
    return e ? e : duda_printf(d, "%d", duda_make_conditional(d, MK_CONDITIONAL_ETAG) < 0);
}

static int download(struct duda_ctx *d)
{
    int e = duda_attachment(d, duda_query(d, "name"));
    return e ? e : put_digits(d, 40);
}

DUDA_ROUTES(tagged, DUDA_BEFORE(duda_auto_etag), DUDA_GET("/page", page, ""), DUDA_GET("/own", own_tag, ""),
    DUDA_POST("/created", created, ""), DUDA_GET("/created", created, ""), DUDA_GET("/long", long_page, ""));

DUDA_SERVICE(ranges, DUDA_GET("/file", file, ""), DUDA_GET("/part", part, ""), DUDA_GET("/memory", memory, ""),
    DUDA_GET("/large", large, ""), DUDA_GET("/huge", huge, ""), DUDA_GET("/by-server", by_server, ""),
    DUDA_GET("/plain", page, ""), DUDA_GET("/late", too_late, ""), DUDA_GET("/download", download, ""),
    DUDA_GROUP("/tagged", tagged, ""));
"""
DIGITS = "0123456789" * 2


def build(site):
    site.add("digits.txt", DIGITS * 2, mtime=1_500_000_000)
    return services.build(site.path.parent, "ranges", SERVICE)


def load(monkey, site):
    monkey(plugins=[build(site)])


def load_compressed(monkey, site):
    monkey(plugins=["compress", build(site)], top="[COMPRESS]\n    MinLength 1\n")


def load_without_ranges(monkey, site):
    monkey(plugins=[build(site)], host="Ranges off")


def isolate(monkey, site):
    object_ = build(site)
    monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {object_}\n", sections="[ROUTES]\n    /* isolate ranges\n    /* static\n")


WAYS = {"loaded": load}
if (services.OBJECTS / "monkey-isolate.so").exists():
    WAYS["isolated"] = isolate


@pytest.fixture(params=WAYS)
def server(request, lasting):
    return lasting(WAYS[request.param])


# An isolated service has no document root.
SOURCES = {"/file": DIGITS * 2, "/part": DIGITS, "/memory": DIGITS, "/by-server": DIGITS, "/large": "0123456789" * 30_000}
EACH_SOURCE = pytest.mark.parametrize("server,path", [(way, path) for way in WAYS for path in SOURCES if (way, path) != ("isolated", "/file")],
                                      indirect=["server"])


@pytest.mark.parametrize("protocol", ["h1", "h2"], indirect=True)
@EACH_SOURCE
def test_single_range_gets_206(server, path):
    body = SOURCES[path]
    whole = server.get(path)
    assert (whole.status, whole.text, whole["Accept-Ranges"]) == (200, body, "bytes")
    for text, first, last in (("0-0", 0, 0), ("5-14", 5, 14), ("15-", 15, len(body) - 1), ("-3", len(body) - 3, len(body) - 1),
                              ("3-9999999", 3, len(body) - 1)):
        part = server.get(path, fields=[("Range", f"bytes={text}")])
        assert (part.status, part["Content-Range"]) == (206, f"bytes {first}-{last}/{len(body)}"), text
        assert part.text == body[first:last + 1]
        assert part["ETag"] == whole["ETag"] and part.get("Content-Type") == whole.get("Content-Type")


@pytest.mark.parametrize("protocol", ["h1", "h2"], indirect=True)
@EACH_SOURCE
def test_several_ranges_are_multipart(server, path):
    whole, body = server.get(path), SOURCES[path]
    answer = server.get(path, fields=[("Range", "bytes=2-3, 7-8, -1")])
    boundary = re.fullmatch(r"multipart/byteranges; boundary=(\w+)", answer["Content-Type"])[1]
    kind = f"Content-Type: {whole['Content-Type']}\r\n" if "Content-Type" in whole else ""
    wanted = "".join(f"\r\n--{boundary}\r\n{kind}Content-Range: bytes {a}-{b}/{len(body)}"
                     f"\r\n\r\n{body[a:b + 1]}" for a, b in ((2, 3), (7, 8), (len(body) - 1, len(body) - 1)))
    assert (answer.status, answer.text) == (206, f"{wanted}\r\n--{boundary}--\r\n")


@EACH_SOURCE
def test_unsatisfiable_range_gets_416(server, path):
    answer = server.get(path, fields=[("Range", f"bytes={len(SOURCES[path])}-")])
    assert (answer.status, answer["Content-Range"]) == (416, f"bytes */{len(SOURCES[path])}")
    assert "ETag" not in answer and "Accept-Ranges" not in answer


@EACH_SOURCE
def test_malformed_range_is_ignored(server, path):
    for text in ("bytes=9-2", "lines=0-1", "bytes=x-", "bytes=" + ",".join(f"{2 * i}-{2 * i}" for i in range(17))):
        answer = server.get(path, fields=[("Range", text)])
        assert (answer.status, answer.text) == (200, SOURCES[path]), text


@EACH_SOURCE
def test_if_range_requires_the_current_etag(server, path):
    etag = server.get(path)["ETag"]
    for value, status in ((etag, 206), ('"other"', 200), (f"W/{etag}", 200), ("Sat, 01 Jan 2000 00:00:00 GMT", 200)):
        assert server.get(path, fields=[("Range", "bytes=0-1"), ("If-Range", value)]).status == status, value


@EACH_SOURCE
def test_preconditions_precede_the_range(server, path):
    etag = server.get(path)["ETag"]
    for fields, status in (([("If-None-Match", etag)], 304), ([("If-None-Match", f'"x", W/{etag}')], 304), ([("If-None-Match", '"x"')], 206),
                           ([("If-Match", etag)], 206), ([("If-Match", '"x"')], 412), ([("If-None-Match", "*")], 304)):
        answer = server.get(path, fields=[*fields, ("Range", "bytes=0-1")])
        assert answer.status == status, fields
        assert status != 304 or (answer["ETag"] == etag and "Accept-Ranges" not in answer and answer.text == "")


@pytest.mark.parametrize("protocol", ["h1", "h2"], indirect=True)
@EACH_SOURCE
def test_head_ignores_the_range(server, path):
    answer, whole = server.get(path, method="HEAD", fields=[("Range", "bytes=0-1")]), server.get(path)
    assert (answer.status, answer["Content-Length"], answer["ETag"]) == (200, str(len(SOURCES[path])), whole["ETag"])
    assert answer["Accept-Ranges"] == "bytes" and answer.text == ""
    assert server.get(path, method="HEAD", fields=[("If-None-Match", whole["ETag"])]).status == 304


def test_body_over_the_limit_is_streamed_without_etag(server):
    answer = server.get("/huge", fields=[("Range", "bytes=0-1")])
    assert (answer.status, len(answer.body)) == (200, 10 << 20)
    assert "ETag" not in answer and "Accept-Ranges" not in answer


def test_auto_etag_applies_to_buffered_pages(server):
    page = server.get("/tagged/page")
    assert re.fullmatch(r'"[0-9a-f]{24}"', page["ETag"]) and "Accept-Ranges" not in page
    again = server.get("/tagged/page", fields=[("If-None-Match", page["ETag"])])
    assert (again.status, again["ETag"], again.text) == (304, page["ETag"], "") and "Content-Type" not in again
    assert server.get("/tagged/page", fields=[("Range", "bytes=0-1")]).status == 200
    assert server.get("/tagged/own")["ETag"] == '"mine"', "an ETag that the handler sets stays"
    assert "ETag" not in server.get("/plain") and "ETag" not in server.get("/tagged/long")
    for method in ("POST", "GET"):
        answer = server.get("/tagged/created", method=method, fields=[("If-None-Match", "*")])
        assert (answer.status, answer.text) == (201, "made") and "ETag" not in answer


def test_make_conditional_after_the_head_fails(server):
    assert server.get("/late").text == "x1"


def test_ranges_can_be_disabled(lasting):
    server = lasting(load_without_ranges)
    for path, body in SOURCES.items():
        answer = server.get(path, fields=[("Range", "bytes=0-1")])
        assert (answer.status, answer.text) == (200, body) and "Accept-Ranges" not in answer


@pytest.mark.skipif(not (services.OBJECTS / "monkey-compress.so").exists(), reason="this build has no compress")
@pytest.mark.parametrize("path", SOURCES)
def test_compressed_body_has_a_weak_etag_and_no_ranges(lasting, path):
    server = lasting(load_compressed)
    gzip = ("Accept-Encoding", "gzip")
    plain, packed = server.get(path), server.get(path, fields=[gzip])
    if "Content-Type" not in plain:  # not compressed: its type is unknown
        assert packed["ETag"] == plain["ETag"]
        return
    assert (packed["Content-Encoding"], packed["ETag"]) == ("gzip", f"W/{plain['ETag']}") and "Accept-Ranges" not in packed
    part = server.get(path, fields=[gzip, ("Range", "bytes=3-6")])
    assert (part.status, part.text) == (206, "3456") and "Content-Encoding" not in part
    assert server.get(path, fields=[gzip, ("If-None-Match", packed["ETag"])]).status == 304
    assert server.get(path, fields=[gzip, ("Range", "bytes=3-6"), ("If-Range", packed["ETag"])]).status == 200


NAMES = {
    "report.pdf": 'attachment; filename="report.pdf"',
    "two words.pdf": 'attachment; filename="two words.pdf"',
    "": "attachment",
    "Übersicht €.txt": "attachment; filename=\"_bersicht _.txt\"; filename*=UTF-8''%C3%9Cbersicht%20%E2%82%AC.txt",
    'a"b%41.txt': "attachment; filename=\"a_b_41.txt\"; filename*=UTF-8''a%22b%2541.txt",
    "a\r\nSet-Cookie: x=1": 'attachment; filename="a__Set-Cookie: x=1"',
    "../../etc\\passwd": 'attachment; filename=".._.._etc_passwd"',
    "exe\u202egnp.png": 'attachment; filename="exe_gnp.png"',
    "a;b'c*(d).txt": 'attachment; filename="a;b\'c*(d).txt"',
}


@pytest.mark.parametrize("name", NAMES)
def test_attachment_encodes_any_file_name(server, name):
    answer = server.get(f"/download?name={quote(name)}")
    assert answer.all("Content-Disposition") == [NAMES[name]] and answer.text == DIGITS * 2 and "Set-Cookie" not in answer
    if "filename*" in NAMES[name]:
        assert unquote(NAMES[name].split("''")[1]) == name


def test_attachment_survives_every_byte_and_long_names(server):
    for byte in range(256):
        value = server.get(f"/download?name=a%{byte:02X}b")["Content-Disposition"]
        assert re.fullmatch(r"attachment(; filename=\"[^\"\\%\x00-\x1f\x7f-\xff]*\")(; filename\*=UTF-8''[\w.%~!#$&+^`|-]*)?", value), byte
    long = server.get(f"/download?name={quote('é' * 200)}")["Content-Disposition"]
    assert unquote(long.split("''")[1]) == "é" * 127
