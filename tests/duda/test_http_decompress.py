# SPDX-License-Identifier: Apache-2.0
"""The http package: compressed responses."""
import errno
import gzip
import zlib

import pytest

import services
from backend import Backend, response
from http_call_service import start

pytestmark = pytest.mark.skipif(not services.has("http") or not services.has("gzip"), reason="this build has no Duda, or no zlib")

TEXT = b"".join(b"line %d of a text\n" % i for i in range(20000))


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def coded(coding, body, fields=()):
    return response(body, fields=[("Content-Encoding", coding), ("Content-Type", "text/plain"), *fields])


def chunked(coding, body, size):
    pieces = [body[i:i + size] for i in range(0, len(body), size)]
    return [f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n\r\n".encode(),
            *(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces), b"0\r\n\r\n"]


def client(monkey, site, backend, keys=""):
    return start(monkey, site, f"    Server {backend.address}\n{keys}")


FORMS = {"gzip": coded("gzip", gzip.compress(TEXT)), "x-gzip": coded("X-GZIP", gzip.compress(TEXT)), "zlib": coded("deflate", zlib.compress(TEXT)),
         "raw": coded("deflate", raw_deflate(TEXT)), "members": coded("gzip", gzip.compress(TEXT[:777]) + gzip.compress(TEXT[777:])),
         "chunked": chunked("gzip", gzip.compress(TEXT), 1), "pieces": chunked("deflate", zlib.compress(TEXT), 4000)}


@pytest.mark.parametrize("how", ["fetch", "open", "begin"])
def test_compressed_responses_are_decoded(monkey, site, how):
    with Backend(lambda request: FORMS[request.target[1:]]) as backend:
        caller = client(monkey, site, backend)
        for name in FORMS:
            r = caller.call(f"/{name}", how=how, decompress=1)
            assert (r.errno, r.coding) == (0, ""), (name, r.error)
            assert r.body == TEXT, name
            assert backend.requests[-1].get("Accept-Encoding") == "gzip, deflate"
        assert len({request.connection for request in backend.requests}) == 1, "the connection is reused"


def test_bodies_stay_encoded_without_the_option_or_with_an_unknown_coding(monkey, site):
    packed = gzip.compress(TEXT)
    with Backend(lambda request: coded({"/1": "gzip", "/2": "br", "/3": "gzip, gzip"}[request.target], packed)) as backend:
        caller = client(monkey, site, backend)
        r = caller.call("/1")
        assert (r.coding, r.body) == ("gzip", packed) and backend.requests[-1].get("Accept-Encoding") is None
        for target, coding in ("/2", "br"), ("/3", "gzip, gzip"):
            r = caller.call(target, decompress=1)
            assert (r.errno, r.coding, r.body) == (0, coding, packed)


def test_plain_responses_and_responses_without_content_are_unchanged(monkey, site):
    answers = {"/plain": response("plain"), "/empty": coded("gzip", b""), "/identity": coded("identity", b"same"),
               "/204": b"HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n"}
    with Backend(lambda request: answers[request.target]) as backend:
        caller = client(monkey, site, backend)
        assert caller.call("/plain", decompress=1).body == b"plain"
        assert caller.call("/identity", decompress=1).body == b"same"
        for target in "/empty", "/204":
            r = caller.call(target, decompress=1)
            assert (r.errno, r.body) == (0, b"")


def test_head_keeps_the_headers_of_the_encoded_body(monkey, site):
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 500\r\n\r\n"
    with Backend(lambda request: head) as backend:
        r = client(monkey, site, backend).call("/", method="HEAD", decompress=1)
        assert (r.errno, r.coding, r.body) == (0, "gzip", b"")


MALFORMED = {"text": b"no gzip", "cut trailer": gzip.compress(TEXT)[:-9], "cut": gzip.compress(TEXT)[:200], "rest": gzip.compress(b"x") + b"rest",
             "length": gzip.compress(b"x")[:-1] + b"\1", "byte": b"\x1f"}


@pytest.mark.parametrize("how", ["fetch", "open"])
@pytest.mark.parametrize("form", MALFORMED)
def test_malformed_bodies_are_errors(monkey, site, how, form):
    with Backend(lambda request: coded("gzip", MALFORMED[form])) as backend:
        r = client(monkey, site, backend).call("/", how=how, decompress=1)
        assert r.errno == errno.EPROTO
        assert how == "open" or "the compressed body of the response is malformed" in r.error


def test_malformed_deflate_is_an_error(monkey, site):
    bodies = {"/rest": zlib.compress(TEXT) + b"x", "/cut": zlib.compress(TEXT)[:-1], "/raw": raw_deflate(TEXT)[:-1], "/bad": b"\xff\xff\xff"}
    with Backend(lambda request: coded("deflate", bodies[request.target])) as backend:
        caller = client(monkey, site, backend)
        for target in bodies:
            assert caller.call(target, decompress=1).errno == errno.EPROTO, target


def test_max_body_size_limits_the_decoded_body(monkey, site):
    """Sends a decompression bomb: 100 MB in 100 KB."""
    bomb = gzip.compress(b"\0" * 100_000_000, 9)
    exact = gzip.compress(b"y" * 50000)
    with Backend(lambda request: coded("gzip", exact if request.target == "/exact" else bomb)) as backend:
        caller = client(monkey, site, backend, "    MaxBodySize 50000\n")
        assert caller.call("/exact", decompress=1).body == b"y" * 50000
        r = caller.call("/bomb", decompress=1)
        assert r.errno == errno.EMSGSIZE and "MaxBodySize" in r.error
        assert caller.call("/exact", decompress=1).body == b"y" * 50000, "the pool works after the error"


def test_redirects_and_decompression_work_together(monkey, site):
    packed = gzip.compress(b"final")
    with Backend(lambda request: coded("gzip", packed) if request.target == "/to" else
                 response(gzip.compress(b"moved"), "302 Found", [("Location", "/to"), ("Content-Encoding", "gzip")])) as backend:
        caller = client(monkey, site, backend)
        assert caller.call("/from", decompress=1, redirects=1).body == b"final"
        assert caller.call("/from", decompress=1).body == b"moved"
