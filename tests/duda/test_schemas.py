# SPDX-License-Identifier: Apache-2.0
"""Structured input and output of services: JSON schemas, forms with files, templates, problem details, and content
negotiation."""
import ctypes
import json
import os
import re
import subprocess

import pytest

import services
from fault_injection import Fault
from monkey import PROTOCOLS
from proc import RELEASE

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SOURCE = r"""
#include <duda.h>
#include <errno.h>

struct person {
    mk_str name;
    unsigned age;
    mk_str *tags;
    size_t n_tags;
};
static const struct duda_schema_field members[] = {
    DUDA_STRING(struct person, name, .min_length = 1, .max_length = 20),
    DUDA_INTEGER(struct person, age, .optional = true, DUDA_MAXIMUM(150)),
    DUDA_LIST(struct person, tags, n_tags, DUDA_KIND_STRING, .optional = true),
};
static const struct duda_schema shape = DUDA_SCHEMA(struct person, members);

static int one(struct duda_ctx *d)
{
    struct person p = {.age = 18};
    int e = duda_bind_json(d, &shape, &p, &(struct mk_json_limits){.size = 1000});
    return e ? e : duda_send_json_struct(d, &shape, &p);
}

static int many(struct duda_ctx *d)
{
    struct person *list;
    size_t n;
    int e = duda_bind_json_list(d, &shape, &list, &n, NULL);
    return e ? e : duda_send_json(d, duda_value_structs(&shape, list, n));
}

static int any(struct duda_ctx *d)
{
    struct duda_value v;
    int e = duda_read_json(d, &v, NULL);
    return e ? e : duda_send_json(d, v);
}

static int taken(struct duda_ctx *d)
{
    int e = duda_puts(d, "dropped");
    return e ? e : duda_problem(d, 409, "the name \"%s\" is taken", duda_query_or(d, "name", "x"));
}

static int likes(struct duda_ctx *d)
{
    static const char *const types[] = {"text/html", "application/json", NULL};
    static const char *const languages[] = {"en", "de", NULL};
    int type = duda_accepts(d, types);
    return duda_printf(d, "%d %s\n", type, languages[duda_accepts_language(d, languages)]);
}

static int say_form(struct duda_ctx *d, int e)
{
    const struct mk_form *fields = duda_form_all(d);
    const struct mk_upload *u;
    for (size_t i = 0; !e && i < fields->n; i++)
        e = duda_printf(d, "%s=%s\n", fields->fields[i].name.p, fields->fields[i].value.p);
    for (size_t i = 0; !e && (u = duda_upload_at(d, i)); i++) {
        char bytes[8];
        ssize_t n = u->size > 8 ? duda_upload_read(d, u, bytes, 8, u->size - 8) : 0;
        e = n < 0 ? (int)n : duda_printf(d, "%s: %s (%s) %llu ..%.*s\n", u->name.p, u->file_name.p, u->content_type.p ? u->content_type.p : "-",
                        (unsigned long long)u->size, (int)n, bytes);
    }
    return e;
}

static int form(struct duda_ctx *d)
{
    return say_form(d, duda_form_load(d, NULL, NULL));
}

static int narrow(struct duda_ctx *d)
{
    return say_form(d, duda_form_load(d, &(struct mk_form_limits){.size = 100},
                                      &(struct mk_multipart_limits){.size = 2000, .file = 1000, .parts = 3}));
}

static int check(struct duda_ctx *d)
{
    struct person p = {.age = 18};
    struct duda_validation_errors flaws;
    int e = duda_bind_form(d, &shape, &p, &flaws);
    return e == -EINVAL ? duda_problem_errors(d, 422, &flaws) : e ? e : duda_send_json_struct(d, &shape, &p);
}

static int save(struct duda_ctx *d)
{
    const struct mk_upload *u = duda_upload(d, "photo");
    int e = u ? duda_upload_save(d, u, TARGET) : 400;
    return e == -EEXIST ? 409 : e ? e : duda_puts(d, "saved\n");
}

static int put(struct duda_ctx *d)
{
    int e = duda_body_save(d, TARGET);
    return e ? e : 201;
}

static int save_unique(struct duda_ctx *d)
{
    const struct mk_upload *u = duda_upload(d, "photo");
    mk_str name;
    int e = u ? duda_upload_save_unique(d, u, duda_query(d, "none").p ? FOLDER "/none" : FOLDER, &name) : 400;
    return e && u && name.p ? 200 : e ? e : duda_write(d, name);
}

static int content(struct duda_ctx *d)
{
    const struct mk_upload *u = duda_upload(d, "photo");
    mk_str all;
    int e = u ? duda_upload_content(d, u, &all) : 400;
    return e ? e : all.p[all.len] ? 500 : duda_write(d, all);
}

/* Handles the form with a deadline of one millisecond. */
static int hurry(struct duda_ctx *d)
{
    int e = duda_form_load(d, NULL, NULL);
    e = e ? e : duda_deadline(d, 1);
    return e ? e : save(d);
}

struct sum {
    struct duda_ctx *d;
    uint64_t bytes;
    unsigned parts;
};

static int on_part(void *ctx, const struct mk_multipart_part *part)
{
    struct sum *s = ctx;
    s->parts++;
    return mk_str_eq(part->name, MK_STR("evil")) ? -ENOSPC : 0;
}

static int on_data(void *ctx, mk_str bytes)
{
    struct sum *s = ctx;
    s->bytes += bytes.len;
    return s->parts % 2 ? 0 : duda_sleep(s->d, 1);
}

static int stream(struct duda_ctx *d)
{
    static const struct mk_multipart_ops ops = {.part = on_part, .data = on_data};
    struct sum s = {.d = d};
    int e = duda_multipart_read(d, &(struct mk_multipart_limits){.size = 1 << 30, .file = 1 << 30}, &ops, &s);
    return e ? e : duda_printf(d, "%u parts, %llu bytes\n", s.parts, (unsigned long long)s.bytes);
}

static int page(struct duda_ctx *d)
{
    mk_str tags[] = {MK_STR("a"), MK_STR("<b>")};
    struct person p = {duda_query(d, "name"), 7, tags, 2};
    return duda_render(d, duda_query_or(d, "page", "person.html"), duda_value_struct(&shape, &p));
}

static int query(struct duda_ctx *d)
{
    int e = duda_puts(d, duda_query_or(d, "my name", "-"));
    return e || !duda_query(d, "plus").p ? e : duda_printf(d, " %s", duda_query_or(d, "a+b", "-"));
}

static int inline_page(struct duda_ctx *d)
{
    const struct duda_entry v[] = {{"n", duda_value_integer(3)}};
    return duda_render_text(d, MK_STR("<p>{{n}}"), duda_value_map(v, MK_LEN(v)));
}

DUDA_SERVICE(texts,
    DUDA_POST("/one", one, "Reads a person."),
    DUDA_POST("/many", many, "Reads persons."),
    DUDA_POST("/any", any, "Reads anything."),
    DUDA_GET("/taken", taken, "Has a problem."),
    DUDA_GET("/likes", likes, "Negotiates."),
    DUDA_POST("/form", form, "Shows a form."),
    DUDA_POST("/narrow", narrow, "Shows a small form."),
    DUDA_POST("/check", check, "Reads a form into a struct."),
    DUDA_POST("/save", save, "Saves a file."),
    DUDA_POST("/save-unique", save_unique, "Saves a file under a unique name.", .body_max = 8 << 20),
    DUDA_POST("/content", content, "Returns the content of a file.", .body_max = 8 << 20),
    DUDA_POST("/hurry", hurry, "Saves a file before a short deadline."),
    DUDA_PUT("/put", put, "Saves the body.", .body_max = 3 << 20),
    DUDA_POST("/stream", stream, "Counts parts."),
    DUDA_GET("/query", query, "Names with blanks."),
    DUDA_GET("/page", page, "A page."),
    DUDA_GET("/inline", inline_page, "A page of the source."));
"""
JSON = [("Content-Type", "application/json")]
URLENCODED = [("Content-Type", "application/x-www-form-urlencoded")]
MULTIPART = [("Content-Type", "multipart/form-data; boundary=xyz")]


def prepare(monkey, site):
    site.add("file.txt", "a file")
    folder = site.path.parent
    templates = folder / "templates"
    templates.mkdir()
    (templates / "person.html").write_text("{{>head.html}}\n<ul>\n  {{#tags}}\n  <li>{{.}}\n  {{/tags}}\n</ul>\n")
    (templates / "head.html").write_text("<title>{{name}}</title>\n")
    (folder / "kept").mkdir(mode=0o777)
    (templates / "note.txt").write_text("{{&name}} is {{age}}\n")
    monkey(plugins=[services.build(folder, "texts", SOURCE, f'-DFOLDER="{folder}/kept"', '-DTARGET=FOLDER "/file"')], server="ErrorLog stderr",
           top="[DUDA]\n    WritablePaths kept\n")


@pytest.fixture
def server(lasting):
    return lasting(prepare)


def post(server, path, body, fields=JSON):
    return server.get(path, method="POST", fields=fields, body=body.encode() if isinstance(body, str) else body)


def test_json_is_bound_to_a_struct_and_back(server):
    answer = post(server, "/one", '{"name": "Jörg \\u00e4", "tags": ["x"]}')
    assert (answer.status, answer["Content-Type"]) == (200, "application/json")
    assert json.loads(answer.text) == {"name": "Jörg ä", "age": 18, "tags": ["x"]}
    assert post(server, "/many", '[{"name": "a"}, {"name": "b", "age": 1}]').text == \
        '[{"name":"a","age":0,"tags":[]},{"name":"b","age":1,"tags":[]}]'
    assert json.loads(post(server, "/any", '{"a":[1,2.5,null,{"b":"c"}]}').text) == {"a": [1, 2.5, None, {"b": "c"}]}
    assert post(server, "/any", "3", [("Content-Type", "application/vnd.x+json; charset=utf-8")]).text == "3"


def test_violations_are_sent_as_problem_details(server):
    answer = post(server, "/one", '{"name": "a",\n\n      "age": 151, "x": 1}')
    assert (answer.status, answer["Content-Type"]) == (422, "application/problem+json")
    problem = json.loads(answer.text)
    assert (problem["title"], problem["status"]) == ("Unprocessable Content", 422)
    assert problem["detail"] == "line 3, column 14: `age` must be an integer from 0 to 150; and 1 more"
    assert problem["errors"] == [
        {"detail": "`age` must be an integer from 0 to 150", "pointer": "/age", "code": "maximum", "maximum": 150,
         "line": 3, "column": 14},
        {"detail": "`x` is unknown", "pointer": "/x", "code": "unknown", "line": 3, "column": 19}]


@pytest.mark.parametrize("body, fields, status, detail", [
    ('{"name"', JSON, 400, "line 1, column 8: expected `:`, but the text ends"),
    ("", JSON, 400, "line 1, column 1: expected a value, but the text ends"),
    ("[" * 40, JSON, 413, "line 1, column 33: lists and objects are nested more than 32 deep"),
    ('{"name": "' + "a" * 1000 + '"}', JSON, 413, "the content must have at most 1000 bytes"),
    ("{}", URLENCODED, 415, "the content must be JSON: Content-Type: application/json"),
    ('{"name": "a"}', [*JSON, ("Content-Encoding", "gzip")], 415, "the content must not be encoded: omit Content-Encoding"),
    ('{"name": "a", "name": "b"}', JSON, 422, "line 1, column 15: `name` occurs more than once"),
    ('{"name\\u0000x": "a"}', JSON, 400, "line 1, column 2: a name must not contain NUL"),
], ids=["cut", "empty", "deep", "long", "type", "encoded", "twice", "nul"])
def test_invalid_json_is_rejected(server, body, fields, status, detail):
    answer = post(server, "/one", body, fields)
    assert (answer.status, answer["Content-Type"]) == (status, "application/problem+json")
    assert json.loads(answer.text)["detail"] == detail


def test_syntax_error_is_reported_alone(server):
    """Members that seem to be missing or wrong may be a consequence of the syntax error."""
    problem = json.loads(post(server, "/one", '{"name": 7, "age": "x"').text)
    assert problem["status"] == 400
    assert problem["errors"] == [{"detail": "expected `,` or `}`, but the text ends", "pointer": "", "code": "syntax", "line": 1, "column": 23}]
    assert problem["detail"] == "line 1, column 23: expected `,` or `}`, but the text ends"


def test_invalid_json_without_schema_is_rejected(server):
    for body, status in (("1e400", 422), ('{"a":1,"a":2}', 422), ('{"a\\u0000":1}', 400)):
        assert post(server, "/any", body).status == status, body


def test_encoded_request_body_is_rejected(server):
    for path, kind in (("/any", JSON), ("/form", URLENCODED), ("/form", MULTIPART), ("/stream", MULTIPART)):
        for coding, is_fine in (("gzip", False), ("br, identity", False), ("identity, x-y", False), ("identity", True), ("", True)):
            answer = post(server, path, "1", [*kind, ("Content-Encoding", coding)])
            assert (answer.status == 415) != is_fine, (path, coding)
            assert is_fine or answer["Accept-Encoding"] == "identity"


def test_log_names_the_error_of_a_form(server):
    def check_response(path, body, kind, status, pattern):
        assert post(server, path, body, kind).status == status
        server.err.wait_for(pattern)

    good = part("a", b"x")
    check_response("/form", good + b'--xyz\r\nContent-Disposition: form-data; filename="a"b"\r\n\r\nx\r\n--xyz--', MULTIPART, 400,
         r"answered -EBADMSG \(Bad message\): multipart/form-data, part 2: its Content-Disposition is malformed")
    check_response("/stream", good + good + b"--xyz\r\nnonsense\r\n\r\nx\r\n--xyz--", MULTIPART, 400, r"part 3: a line of its headers is malformed")
    check_response("/stream", good, MULTIPART, 400, r"part 1: the content ends without a closing boundary")
    check_response("/narrow", part("f", b"x" * 1001, "f") + b"--xyz--", MULTIPART, 413, r"\(Message too long\): multipart/form-data, part 1: the file exceeds `.file` of the struct mk_multipart_limits")
    check_response("/form", good, [("Content-Type", "multipart/form-data")], 400, r"multipart/form-data without a boundary")
    check_response("/form", "a=%4", URLENCODED, 400, r"the form has a % without two hexadecimal digits")
    check_response("/narrow", "a=" + "b" * 100, URLENCODED, 413, r"the form is too long, has too many fields, or a field is too long")


def test_file_names_are_parsed_in_both_encodings(server):
    def named(parameters):
        return post(server, "/form", f"--xyz\r\nContent-Disposition: form-data; {parameters}\r\n\r\n0123456789\r\n--xyz--", MULTIPART).text

    assert named("name=\"a\"; filename*=utf-8''%C3%A9t%C3%A9.txt") == "a: été.txt (-) 10 ..23456789\n"
    assert named('name="a"; filename="notes\\"') == "a: notes\\ (-) 10 ..23456789\n"
    assert named('name="dir\\"') == "dir\\=0123456789\n"


def test_query_names_are_decoded(server):
    for query in ("my+name=Ana", "my%20name=Ana", "my%20n%61me=Ana", "x=1&my+name=Ana"):
        assert server.get(f"/query?{query}").text == "Ana", query
    assert server.get("/query?my%2Bname=Ana").text == "-"
    assert server.get("/query?plus=1&a+b=2&a%2Bb=3").text == "- 3", "a literal plus is encoded as %2B"


def test_problem_details_are_escaped(server):
    answer = server.get("/taken?name=%22%3Cb%3E%0A")
    assert answer.status == 409
    assert json.loads(answer.text) == {"title": "Conflict", "status": 409, "detail": 'the name ""<b>\n" is taken'}


def test_negotiation_selects_type_and_language(server):
    answer = server.get("/likes", fields=[("Accept", "application/json, text/*;q=0.5"), ("Accept-Language", "fr, de-AT;q=0.2")])
    assert (answer.text, answer.tokens("Vary")) == ("1 de\n", ["accept", "accept-language"])
    assert server.get("/likes").text == "0 en\n"
    assert server.get("/likes", fields=[("Accept", "image/png"), ("Accept-Language", "fr")]).text == "-1 en\n"


def test_urlencoded_form_is_parsed_within_limits(server):
    assert post(server, "/form", "a=1&b=x+y%21&a=2", URLENCODED).text == "a=1\nb=x y!\na=2\n"
    assert post(server, "/form", "a=%4", URLENCODED).status == 400
    assert post(server, "/form", "a=1", [("Content-Type", "text/plain")]).status == 415
    assert post(server, "/narrow", "a=" + "b" * 100, URLENCODED).status == 413
    assert post(server, "/form", "&".join("a=1" for _ in range(300)), URLENCODED).status == 413


def test_form_is_bound_to_a_struct(server):
    answer = post(server, "/check", "name=Ana&age=&tags=x&tags=y&button=Send", URLENCODED)
    assert json.loads(answer.text) == {"name": "Ana", "age": 18, "tags": ["x", "y"]}
    answer = post(server, "/check", "age=many", URLENCODED)
    assert answer.status == 422
    assert [each["pointer"] for each in json.loads(answer.text)["errors"]] == ["/name", "/age"]


def test_mistake_in_a_schema_is_an_error_at_startup(monkey, tmp_path):
    source = SOURCE.replace(".max_length = 20)", '.pattern = "a(b")').replace('DUDA_POST("/one", one, "Reads a person.")',
                                                                              'DUDA_POST("/one", one, "Reads a person.", .request_body = &shape)')
    server = monkey(plugins=[services.build(tmp_path, "texts", source, '-DTARGET="x"', '-DFOLDER="x"')], expect_start=False)
    server.exit_code = 3
    server.wait()
    server.err.wait_for(r"texts\.c:\d+: the member `name` of the schema of struct person: `\.pattern`, offset 3: missing closing parenthesis")


def part(name, content, file_name=None, kind=None):
    head = f'--xyz\r\nContent-Disposition: form-data; name="{name}"'
    head += "" if file_name is None else f'; filename="{file_name}"'
    head += "" if kind is None else f"\r\nContent-Type: {kind}"
    return head.encode() + b"\r\n\r\n" + content + b"\r\n"


def test_multipart_form_with_files_is_parsed(server):
    large = bytes(range(256)) * 2000 + b"the end."
    body = part("title", "Grüße".encode()) + part("photo", large, "../../etc/passwd", "image/png") + \
        part("none", b"", "") + part("empty", b"", "e.txt") + b"--xyz--\r\n"
    assert post(server, "/form", body, MULTIPART).text == \
        f"title=Grüße\nphoto: ../../etc/passwd (image/png) {len(large)} ..the end.\nempty: e.txt (-) 0 ..\n"
    small = part("photo", b"0123456789", "a.txt") + b"--xyz--"
    assert post(server, "/form", small, MULTIPART).text == "photo: a.txt (-) 10 ..23456789\n"


def test_invalid_multipart_form_is_rejected(server):
    for body, status in ((part("f", b"x" * 1001, "f"), 413), (part("f", b"x" * 1990, "f"), 413),
                         (b"".join(part(f"f{i}", b"x") for i in range(4)), 413), (part("a\x01", b"x"), 400)):
        assert post(server, "/narrow", body + b"--xyz--", MULTIPART).status == status, body[:100]
    assert post(server, "/form", part("f", b"x", "f"), MULTIPART).status == 400
    assert post(server, "/form", b"--xyz--", [("Content-Type", "multipart/form-data")]).status == 400


def test_uploaded_file_is_saved(server):
    content = b"kept " * 50_000
    body = part("photo", content, "a.png") + b"--xyz--"
    assert post(server, "/save", body, MULTIPART).text == "saved\n"
    assert (server.folder / "kept/file").read_bytes() == content
    assert post(server, "/save", body, MULTIPART).status == 409
    (server.folder / "kept/file").unlink()
    assert post(server, "/save", part("other", content, "a.png") + b"--xyz--", MULTIPART).status == 400


def has_unnamed_files(folder):
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except OSError:
        return False
    return True


def test_uploaded_file_is_saved_under_a_unique_name(server):
    folder, names = server.folder / "kept", set()
    for content, name in ((b"one", "../../evil.php"), (b"one", "a.html"), (b"", "a"), (os.urandom(3 << 20), "b")):
        answer = post(server, "/save-unique", part("photo", content, name) + b"--xyz--", MULTIPART)
        assert answer.status == 200 and re.fullmatch("[0-9a-f]{32}", answer.text), answer.text
        assert (folder / answer.text).read_bytes() == content
        names.add(answer.text)
    assert len(names) == 4
    assert post(server, "/save-unique?none", part("photo", b"x", "a") + b"--xyz--", MULTIPART).status == 500
    server.err.wait_for("the content cannot be saved as .*/kept/none/[0-9a-f]{32}: No such file or directory")
    assert post(server, "/save-unique", part("other", b"x", "a") + b"--xyz--", MULTIPART).status == 400
    for name in names:
        (folder / name).unlink()


@pytest.mark.skipif(not (services.OBJECTS / "monkey-isolate.so").exists(), reason="this build has no isolate")
@pytest.mark.processes("an embedded server starts no process group")
def test_isolated_service_saves_an_uploaded_file(monkey, site):
    folder = site.path.parent
    folder.chmod(0o755)
    (folder / "kept").mkdir(mode=0o777)
    (folder / "kept").chmod(0o777)
    (folder / "templates").mkdir()
    service = services.build(folder, "texts", SOURCE, f'-DFOLDER="{folder}/kept"', '-DTARGET=FOLDER "/file"')
    (folder / "own.conf").write_text(f"[DUDA]\n    WritablePaths {folder}/kept\n")
    server = monkey(plugins=["isolate"], top=f"[ISOLATE]\n    Service {service}\n    Include {folder}/own.conf\n", sections="[ROUTES]\n    /* isolate texts\n")
    answer = post(server, "/save-unique", part("photo", b"x" * 100_000, "a") + b"--xyz--", MULTIPART)
    assert answer.status == 200 and (folder / "kept" / answer.text).read_bytes() == b"x" * 100_000
    assert post(server, "/content", part("photo", b"x" * 100_000, "a") + b"--xyz--", MULTIPART).body == b"x" * 100_000


@pytest.mark.parametrize("size", [0, 1, 70_000, 3 << 20])
def test_content_of_an_uploaded_file_is_a_string(server, size):
    """Small forms are in memory, large ones in a file."""
    content = os.urandom(size)
    answer = post(server, "/content", part("first", b"other", "a") + part("photo", content, "b") + b"--xyz--", MULTIPART)
    assert (answer.status, answer.body) == (200, content)


def test_uploaded_file_has_no_name_until_it_is_complete(server):
    """A program that watches or serves the folder sees only the final name."""
    if not has_unnamed_files(server.folder / "kept"):
        pytest.skip("the file system does not support O_TMPFILE")
    libc, created, moved_to = ctypes.CDLL(None, use_errno=True), 0x100, 0x80
    watch = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        assert watch >= 0 and libc.inotify_add_watch(watch, os.fsencode(server.folder / "kept"), created | moved_to) >= 0
        assert post(server, "/save", part("photo", b"x" * 50_000, "a.png") + b"--xyz--", MULTIPART).text == "saved\n"
        events = os.read(watch, 4096)
        assert len(events) == 16 + 16 and events[16:].rstrip(b"\0") == b"file", events
    finally:
        os.close(watch)
        (server.folder / "kept/file").unlink(missing_ok=True)


@pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True)
@pytest.mark.parametrize("size", [0, 10, 2_000_000])
def test_body_is_saved_as_a_file(lasting, protocol, size):
    server = lasting(prepare)
    saved, body = server.folder / "kept/file", (b"0123456789" * (size // 10 + 1))[:size]
    try:
        assert server.get("/put", "PUT", body=body).status == 201
        assert saved.read_bytes() == body and saved.stat().st_mode & 0o777 == 0o640
        assert server.get("/put", "PUT", body=b"other").status == 409 and saved.read_bytes() == body
    finally:
        saved.unlink(missing_ok=True)


def test_body_that_cannot_be_saved_leaves_no_file(server):
    assert server.get("/put", "PUT", body=bytes(3 << 20) + b"x").status == 413
    assert server.get("/put", "PUT", [("Content-Encoding", "gzip")], b"x").status == 415
    with server.connect() as c:
        c.send(b"PUT /put HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\npart of it")
    assert post(server, "/one", '{"name": "after"}').status == 200
    assert os.listdir(server.folder / "kept") == []


def test_upload_to_a_full_disk_leaves_no_file(monkey, site):
    """The file system of the folder holds only 64 KB."""
    folder = site.path.parent
    (folder / "kept").mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=777", "none", folder / "kept"], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        server = monkey(plugins=[services.build(folder, "texts", SOURCE, f'-DFOLDER="{folder}/kept"', '-DTARGET=FOLDER "/file"')], top="[DUDA]\n    WritablePaths kept\n")
        body = part("photo", b"x" * 200_000, "a.png") + b"--xyz--"
        assert post(server, "/save", body, MULTIPART).status == 507 and os.listdir(folder / "kept") == []
        small = part("photo", b"x" * 20_000, "a.png") + b"--xyz--"
        assert post(server, "/save", small, MULTIPART).text == "saved\n" and os.listdir(folder / "kept") == ["file"]
        assert post(server, "/save", small, MULTIPART).status == 409 and os.listdir(folder / "kept") == ["file"]
        server.stop()
    finally:
        subprocess.run(["umount", folder / "kept"], check=True)


def test_upload_of_a_cancelled_handler_leaves_no_file(monkey, site):
    """The thread that copies the file continues after the deadline, but the file never gets a name."""
    folder = site.path.parent
    (folder / "kept").mkdir(mode=0o777)
    server = monkey(plugins=[services.build(folder, "texts", SOURCE, f'-DFOLDER="{folder}/kept"', '-DTARGET=FOLDER "/file"')], top="[DUDA]\n    WritablePaths kept\n",
                    server="MaxBodySize 100M")
    body = part("photo", bytes(15_000_000), "a.png") + b"--xyz--"
    for _ in range(50):
        answer = post(server, "/hurry", body, MULTIPART)
        if answer.status == 504:
            break
        (folder / "kept/file").unlink()
    assert answer.status == 504, "the deadline never expired"
    server.stop()  # stop() waits for the thread
    assert os.listdir(folder / "kept") == []


@pytest.mark.skipif(not RELEASE.exists(), reason="the optimized program is not built")
@pytest.mark.parametrize("links", [0, 1])
def test_upload_works_without_unnamed_files(monkey, site, tmp_path, links):
    folder = site.path.parent
    (folder / "kept").mkdir(mode=0o777)
    fault = Fault("oldfs", tmp_path, {"MONKEY_OLDFS": f"{folder}/kept"})
    fault.links = links
    service = services.build(folder, "texts", SOURCE, f'-DFOLDER="{folder}/kept"', '-DTARGET=FOLDER "/file"', objects=RELEASE.parent / "plugins")
    server = monkey(plugins=[service], top="[DUDA]\n    WritablePaths kept\n", server="MaxBodySize 100M", **fault.how)
    body = part("photo", b"kept " * 50_000, "a.png") + b"--xyz--"
    assert post(server, "/save", body, MULTIPART).text == "saved\n" and fault.refused == 1
    assert (folder / "kept/file").read_bytes() == b"kept " * 50_000
    assert post(server, "/save", body, MULTIPART).status == 409 and os.listdir(folder / "kept") == ["file"]
    (folder / "kept/file").unlink()
    late = part("photo", bytes(15_000_000), "a.png") + b"--xyz--"
    while post(server, "/hurry", late, MULTIPART).status != 504:
        (folder / "kept/file").unlink()
    server.stop()
    assert os.listdir(folder / "kept") == []


def test_multipart_parts_are_streamed(server):
    body = part("a", b"x" * 300_000, "a") + part("b", b"y" * 5000, "b") + b"--xyz--"
    assert post(server, "/stream", body, MULTIPART).text == "2 parts, 305000 bytes\n"
    assert post(server, "/stream", part("a", b"x"), MULTIPART).status == 400
    assert post(server, "/stream", part("evil", b"x") + b"--xyz--", MULTIPART).status == 507


def test_template_renders_escaped_values(server):
    answer = server.get("/page?name=%3Ci%3E")
    assert answer["Content-Type"] == "text/html; charset=utf-8"
    assert answer.text == "<title>&lt;i&gt;</title>\n<ul>\n  <li>a\n  <li>&lt;b&gt;\n</ul>\n"
    answer = server.get("/page?name=%3Ci%3E&page=note.txt")
    assert (answer["Content-Type"], answer.text) == ("text/plain; charset=utf-8", "<i> is 7\n")
    assert server.get("/page?page=none").status == 500
    assert server.get("/inline").text == "<p>3"


def test_invalid_template_is_rejected_at_startup(monkey, site, tmp_path):
    folder = tmp_path / "service"
    (folder / "templates").mkdir(parents=True)
    (folder / "templates" / "bad.html").write_text("<p>\n  {{#open}}\n")
    server = monkey(plugins=[services.build(folder, "texts", SOURCE, '-DTARGET="x"', '-DFOLDER="x"')], expect_start=False)
    server.exit_code = 3
    server.err.wait_for(r"templates/bad\.html, line 2, column 3: the section `open` is not closed")
    server.process.wait(30)


# Data of other clients surrounds the texts in memory: `%s` with a text that lacks its NUL would reveal it.
ENDED = r"""
#include <duda.h>
#include <duda/csv.h>

/* Returns an absent string if there is no such value or the store is down. */
static inline mk_str session_value(struct duda_ctx *d, const char *name)
{
    mk_str value;
    (void)!duda_session_get(d, name, &value);
    return value;
}

struct note {
    mk_str title;
};
static const struct duda_schema_field members[] = {DUDA_STRING(struct note, title, .max_length = 100)};
static const struct duda_schema shape = DUDA_SCHEMA(struct note, members);

static int show(struct duda_ctx *d, const char *name, mk_str text)
{
    if (!text.p)
        return duda_printf(d, "%s: absent\n", name);
    if (text.p[text.len])
        return duda_printf(d, "%s: no NUL\n", name);
    return duda_printf(d, "%s: %s\n", name, text.p);
}

static int all(struct duda_ctx *d)
{
    return show(d, "method", duda_method(d)) || show(d, "path", duda_path(d)) || show(d, "field", duda_header(d, "User-Agent")) ||
           show(d, "client", duda_client_ip(d)) || show(d, "none", duda_header(d, "X-None")) ||
           show(d, "param", duda_param(d, "p")) || show(d, "query", duda_query(d, "q")) ||
           show(d, "empty", duda_query(d, "e")) || show(d, "cookie", duda_cookie(d, "a")) || show(d, "id", duda_request_id(d)) ||
           show(d, "session", session_value(d, "kept")) || show(d, "token", duda_csrf_token(d));
}

static int keep(struct duda_ctx *d)
{
    int e = duda_session_set(d, "kept", MK_STR("in the session"));
    e = e ? e : duda_session_set(d, "next", MK_STR("another"));
    return e ? e : duda_puts(d, "kept");
}

static int json(struct duda_ctx *d)
{
    struct note note;
    int e = duda_bind_json(d, &shape, &note, NULL);
    return e ? e : show(d, "title", note.title);
}

static int value(struct duda_ctx *d)
{
    struct duda_value v;
    int e = duda_read_json(d, &v, NULL);
    return e ? e : show(d, "value", v.of.text);
}

static int form(struct duda_ctx *d)
{
    const struct mk_upload *u = duda_upload(d, "f");
    int e = show(d, "form", duda_form(d, "a"));
    return e || !u ? e : show(d, "name", u->name) || show(d, "file", u->file_name) || show(d, "type", u->content_type);
}

static int content(struct duda_ctx *d)
{
    mk_str text;
    int e = duda_read_all(d, 1000, &text);
    return e ? e : show(d, "content", text);
}

static int cells(struct duda_ctx *d)
{
    struct mk_buf buffer = mk_buf_growing(1000);
    struct duda_csv csv = duda_csv_of(MK_STR("a,\"b\"\"c\",\"d\",e\n"), ',', &buffer);
    mk_str cell;
    int e = 0;
    while (!e && duda_csv_next(&csv, &cell) > 0)
        e = show(d, "cell", cell);
    mk_buf_free(&buffer);
    return e;
}

DUDA_SERVICE(ended, DUDA_ANY("/all/:p/more", all, ""), DUDA_GET("/keep", keep, ""), DUDA_POST("/json", json, ""), DUDA_POST("/value", value, ""),
    DUDA_POST("/form", form, ""), DUDA_POST("/content", content, ""), DUDA_GET("/cells", cells, ""));
"""


def prepare_ended(monkey, site):
    monkey(plugins=["security", services.build(site.path.parent, "ended", ENDED, packages=("small",))],
           top="[SECURITY]\n    TrustedProxy 127.0.0.1\n")


@pytest.fixture
def ended(lasting):
    return lasting(prepare_ended)


def shown(answer):
    assert answer.status == 200 and "no NUL" not in answer.text, answer.text
    return dict(line.split(": ", 1) for line in answer.text.splitlines())


@pytest.mark.parametrize("method", ["GET", "DELETE", "PROPFIND"])
def test_request_text_ends_with_nul(ended, method):
    """`%s` reveals no header that follows the text, such as one with a secret."""
    kept = ended.get("/keep").all("Set-Cookie")[0].split(";")[0]
    fields = [("User-Agent", "curl/8"), ("Cookie", f"a=b; {kept}; secret=cookie"), ("Authorization", "Basic secret"), ("X-Request-Id", "id-1")]
    texts = shown(ended.get("/all/par%20am/more?q=x%20y&e=&secret=1", method, fields))
    assert texts.pop("token").isalnum()
    assert texts == {"method": method, "path": "/all/par am/more", "field": "curl/8", "client": "127.0.0.1", "none": "absent", "param": "par am", "query": "x y",
                     "empty": "", "cookie": "b", "id": "id-1", "session": "in the session"}


@pytest.mark.parametrize("path, type_, body, texts", [
    ("/json", "application/json", b'{"title":"plain"}', {"title": "plain"}),
    ("/json", "application/json", rb'{"title":"\u0065scaped"}', {"title": "escaped"}),
    ("/value", "application/json", b'"plain"', {"value": "plain"}),
    ("/value", "application/json", rb'"\u0065scaped"', {"value": "escaped"}),
    ("/form", "application/x-www-form-urlencoded", b"a=b&c=d", {"form": "b"}),
    ("/form", "multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x\r\nContent-Disposition: '
     b'form-data; name="f"; filename="g.txt"\r\nContent-Type: text/plain\r\n\r\nc\r\n--x--\r\n',
     {"form": "b", "name": "f", "file": "g.txt", "type": "text/plain"}),
    ("/content", "text/plain", b"some", {"content": "some"})])
def test_request_body_text_ends_with_nul(ended, path, type_, body, texts):
    assert shown(ended.get(path, "POST", [("Content-Type", type_)], body)) == texts


def test_csv_cell_ends_with_nul(ended):
    assert ended.get("/cells").text == 'cell: a\ncell: b"c\ncell: d\ncell: e\n'
