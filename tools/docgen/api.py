#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates docs/reference/api.md from include/monkey/*.h, and docs/reference/duda-api.md from duda/include/duda/*.h: every
function, type and macro with its comment.

A comment applies to all declarations below it up to the next blank line; a comment followed by a blank line describes the whole
section. Declarations without a comment are errors: api.py --check lists them, and reports outdated pages.
"""
import argparse
import dataclasses
import re
import sys
from pathlib import Path

@dataclasses.dataclass(frozen=True)
class Book:
    """A folder of headers and the page generated from them."""

    folder: str
    page: str
    prefix: str  # of the path in #include
    names: str   # prefix of the interface's names, in lower case
    order: list  # order of the headers on the page; the rest follows
    head: str

    def headers(self, root):
        paths = (root / self.folder).glob("*.h")
        return sorted(paths, key=lambda path: (self.order.index(path.stem) if path.stem in self.order else 99, path.name))


MONKEY = Book(
    folder="include/monkey", page="docs/reference/api.md", prefix="monkey", names="mk",
    order="plugin handler request response body_source filter tunnel access_record host config connection worker timer subprocess "
          "str buf text json addr http log mem api version".split(),
    head="""# The interface of plugins

<!-- Made from include/monkey/*.h by `make docs`. -->

All functions, types and macros that a plugin can use, header by header. `#include <monkey/plugin.h>` includes all of these
headers. For a first example, see [Write a plugin in ten minutes](../guide/plugins.md).

""")
DUDA = Book(
    folder="duda/include/duda", page="docs/reference/duda-api.md", prefix="duda", names="duda",
    order="service cors url pagination request response form json body upload cookie session render template websocket topic memory wait lock config "
          "test store jobs kv redis memcached sql postgres http smtp subprocess crypto auth jwt oidc gzip csv chart qr mail mime multipart schema "
          "value".split(),
    head="""# The interface of Duda

<!-- Made from duda/include/duda/*.h by `make docs`. -->

All functions, types and macros that a service can use, header by header. `#include <duda.h>` includes the headers that every
service needs; each package has its own headers. For a first example, see [Duda](../guide/duda.md). Strings, buffers and all
other names that begin with `mk_` are in [the interface of plugins](api.md).

Common tasks, what they are called in Express, Flask, FastAPI and Go, and the functions of Duda for them. Search this table for the word
that you know; [From Express, Flask and FastAPI](../guide/from-web-frameworks.md) has links to the guides.

| Task | Others | Duda |
|---|---|---|
| route, router, endpoint, route group, URL parameter | `app.get()`, `@app.route`, `Blueprint`, `APIRouter`, `express.Router()` | DUDA_GET(), DUDA_POST(), DUDA_GROUP() |
| middleware, filter, hook, interceptor | `app.use()`, `next()`, `before_request`, `after_request`, `Depends()`, `call_next` | DUDA_BEFORE(), DUDA_AROUND(), DUDA_AFTER(), DUDA_REQUIRE(), duda_next() |
| data of a request | `res.locals`, `flask.g`, `request.state` | duda_attach(), duda_attached() |
| path parameter, query parameter, query string | `req.params`, `req.query`, `request.args` | duda_param(), duda_query(), duda_query_int_or(), duda_bind_query() |
| request header, client IP address, host, scheme | `req.get()`, `request.headers`, `req.ip`, `remote_addr` | duda_header(), duda_client_ip(), duda_host(), duda_scheme() |
| request body, raw body | `req.body`, `get_data()`, body-parser | duda_read(), duda_read_all() |
| response header, status code | `res.set()`, `res.status()`, `make_response()` | duda_header_set(), duda_status() |
| response body, text | `res.send()`, `res.end()`, `Response` | duda_puts(), duda_printf(), duda_write() |
| redirect | `res.redirect()`, `redirect()`, `RedirectResponse` | duda_redirect(), duda_redirect_local() |
| send a file, static files, assets | `res.sendFile()`, `send_file()`, `express.static()`, `StaticFiles` | duda_send_file(), DUDA_ASSETS() |
| parse a JSON body, JSON response, validation | `req.json()`, `express.json()`, `res.json()`, `jsonify()`, Pydantic, Joi | duda_bind_json(), duda_send_json(), struct duda_schema |
| form, multipart, file upload | `request.form`, `express.urlencoded()`, `request.files`, `UploadFile`, multer | duda_form(), duda_bind_form(), duda_upload() |
| read a cookie, set a cookie, signed cookie | `req.cookies`, cookie-parser, `res.cookie()`, `set_cookie()`, `clearCookie()` | duda_cookie(), duda_cookie_set(), duda_cookie_set_signed() |
| session, new session ID after login, log out | `req.session`, express-session, Flask-Login | duda_session_get(), duda_session_log_in(), duda_session_destroy() |
| log out everywhere, list of devices | Devise, Laravel `logoutOtherDevices()` | duda_session_revoke_all(), duda_session_list() |
| flash message | `flash()`, connect-flash | duda_flash(), duda_flash_redirect(), duda_flash_take() |
| CSRF token | csurf, Flask-WTF | duda_csrf_token(), duda_csrf_check() |
| password hash, JWT | bcrypt, PyJWT | duda_password_hash(), duda_jwt_verify() |
| template, view, layout | `render_template()`, `res.render()`, Jinja, EJS, Mustache | duda_render(), duda_render_to_string() |
| form with errors, shown again | WTForms, `validate_on_submit()`, express-validator | duda_render_form(), duda_bind_form_or_render() |
| translation, i18n, localization, language | i18next, Flask-Babel, gettext | duda_translate(), duda_translations(), duda_language() |
| server-sent events, WebSocket | `EventSource`, ws | duda_sse_send(), duda_websocket_open() |
| keep-alive, heartbeat, reconnection of an event stream | sse-starlette `ping` | duda_sse_set_keep_alive(), duda_sse_last_id() |
| broadcast, publish and subscribe | Socket.IO rooms | duda_topic_publish(), duda_topic_attach() |
| broadcast to all but the sender | `socket.broadcast.emit()` | duda_topic_publish_others() |
| background task, work after the response | `BackgroundTasks` | duda_after_response(), duda_task_spawn() |
| job queue, worker queue | Celery, RQ, BullMQ | duda_jobs_enqueue(), duda_jobs_register() |
| blocking work in a thread, thread pool | `run_in_threadpool()`, worker_threads | duda_offload() |
| HTTP client | `fetch()`, requests, axios, httpx | duda_http_fetch() |
| SQL query, transaction, ORM | `db.query()`, SQLAlchemy, pg | duda_sql_query(), duda_sql_query_rows(), duda_sql_query_row(), duda_sql_transaction() |
| bearer token, API key, Basic, Authorization | `HTTPBearer`, passport | duda_auth_bearer(), duda_auth_jwt(), duda_auth_basic() |
| OpenID Connect, OAuth login | `passport-openidconnect`, Authlib | duda_oidc_log_in(), duda_oidc_callback() |
| current user, role, permission | `req.user`, `current_user` | duda_identity(), duda_require_role() |
| download (Content-Disposition) | `res.download()`, `as_attachment` | duda_attachment(), duda_send_file() |
| ETag, conditional request, 304, range | `req.fresh`, `conditional=True` | duda_auto_etag(), duda_check_preconditions(), duda_make_conditional() |
| rate limit, token bucket, quota | express-rate-limit, slowapi | struct duda_route, duda_store_rate_limit(), duda_store_token_bucket() |
| URL of a route, URL with another query | `url_for()`, `reverse()` | duda_url_for(), duda_absolute_url(), duda_url_with_query() |
| pagination, pages of a list, Link header, cursor | `paginate()`, express-paginate, fastapi-pagination | duda_page_read(), duda_page_links(), duda_cursor_new() |
| CORS | cors, Flask-CORS | DUDA_CORS(), struct duda_cors |
| cache with TTL | Flask-Caching | duda_store_get(), duda_store_set() |
| lock, mutex | `asyncio.Lock` | duda_lock(), duda_store_lock() |
| schedule, cron | node-cron, Celery beat | struct duda_job_type |
| sleep, timer; timeout, deadline | `asyncio.sleep()`, `wait_for()` | duda_sleep(), duda_deadline() |
| escape HTML (XSS) | `escape()` | duda_html_escape() |
| log a message, logger, structured log, request ID | `app.logger`, winston, morgan | duda_log(), duda_log_fields(), duda_request_id() |
| metrics, counter, histogram | prom-client, prometheus_client | DUDA_COUNTER(), DUDA_GAUGE(), DUDA_HISTOGRAM() |
| startup, shutdown, lifespan | `lifespan`, `on_event` | DUDA_START(), DUDA_STOP(), DUDA_START_TASK() |
| graceful shutdown, drain | terminus, `server.close()`, `SIGTERM` | duda_end_on_drain(), duda_is_draining() |
| readiness, health check, probe | terminus, `/healthz` | duda_set_readiness() |
| config value, environment variable, secret | `process.env`, `app.config` | duda_settings(), duda_secret() |
| error response (RFC 9457), error handler, abort | `HTTPException`, `abort()`, `errorhandler`, `next(err)` | duda_problem(), DUDA_ERROR(), duda_error_problem() |
| content negotiation | `req.accepts()`, `accept_mimetypes` | duda_accepts() |
| stream a response | `res.write()`, `stream_with_context()`, `StreamingResponse` | duda_flush() |
| upload progress, large upload, body as a file | busboy, `req.pipe()` | duda_multipart_read(), duda_body_save() |
| send mail | nodemailer, smtplib | duda_smtp_send() |
| subprocess | `child_process`, subprocess | duda_subprocess_run() |
| test client | supertest, `TestClient` | `duda/test.h` |

""")
BOOKS = (MONKEY, DUDA)


class Entry:
    """One comment with its declarations and their names."""

    def __init__(self, line, comment):
        self.line, self.comment = line, comment
        self.names, self.code, self.constants = [], [], []

    @property
    def title(self):
        return ", ".join(written(kind, name) for kind, name in self.names)


class Part:
    """A header, or one section of it."""

    def __init__(self, header, title=None):
        self.header, self.title = header, title
        self.texts, self.entries = [], []

    @property
    def heading(self):
        return self.header + (f": {self.title.lower()}" if self.title else "")


# ---- Parsing ----

def comment_text(raw):
    """Returns the text of a comment without its asterisks; keeps the indentation."""
    inner = re.sub(r"^/\*\*?<? ?|\s*\*/$", "", raw.strip(), flags=re.DOTALL)
    lines = [re.sub(r"^\s*\* ?", "", line) if i else line for i, line in enumerate(inner.split("\n"))]
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def clean(code):
    """Removes attributes and export macros from a declaration."""
    code = re.sub(r"\n?\s*\bMK_API_(PRINTF\([^)]*\)|MUST_USE)", "", code)
    return re.sub(r"^MK_API ", "", code, flags=re.MULTILINE).rstrip()


# Directives for clang-format, ignored here.
FORMATTER = ("/* clang-format off */", "/* clang-format on */")


class Reader:
    """Parses one header line by line. All declarations and comments begin in column 0."""

    def __init__(self, book, path):
        self.book = book
        self.lines = path.read_text(encoding="utf-8").split("\n")
        self.at = 0
        self.parts = [Part(f"{book.prefix}/{path.name}")]
        self.comment = self.entry = None
        self.branches = []  # for each open #if: whether its text is part of the page

    def take(self, ends):
        """Returns the lines up to and including the first one for which `ends` is true."""
        begin = self.at
        while not ends(self.lines[self.at]):
            self.at += 1
        self.at += 1
        return "\n".join(self.lines[begin:self.at])

    def add(self, kind, name, code, constants=()):
        part = self.parts[-1]
        if any((kind, name) in entry.names for entry in part.entries):
            return
        if self.comment or not self.entry:
            self.entry = Entry(self.at, self.comment)
            part.entries.append(self.entry)
        self.comment = None
        self.entry.names.append((kind, name))
        self.entry.code.append(clean(code))
        self.entry.constants += constants

    def read_comment(self):
        raw = self.take(lambda line: line.rstrip().endswith("*/"))
        text = comment_text(raw)
        headline = re.fullmatch(r"-+ (.*) -+", text)
        if text.startswith("SPDX"):
            return
        if headline:
            self.parts.append(Part(self.parts[0].header, headline[1]))
        elif not self.lines[self.at].strip() or not raw.startswith("/**"):
            self.parts[-1].texts.append(text)
        else:
            self.comment, self.entry = text, None

    def read_directive(self):
        text = self.take(lambda line: not line.endswith("\\"))
        word = text.split()[0]
        if word in ("#if", "#ifdef", "#ifndef"):
            self.branches.append(word != "#ifdef" or "__cplusplus" not in text)
        elif word == "#else":
            self.branches[-1] = not self.branches[-1]
        elif word == "#endif":
            self.branches.pop()
        elif word == "#define" and all(self.branches):
            name, args = re.match(r"#define (\w+)(\([^)]*\))?", text).groups()
            value = " ".join(text.replace("\\\n", " ").split()[2:]) if not args else ""
            if name.endswith("_H") and not value:
                return
            if any(("function", name) in entry.names for entry in self.parts[-1].entries):  # it wraps that function
                return
            self.add("macro", name, f"#define {name}{args or ''}{' ' + value if value else ''}")

    def read_declaration(self):
        line = self.lines[self.at]
        forward = re.fullmatch(r"struct (\w+);", line)
        if forward:
            self.at += 1
            if self.comment:
                self.add("struct", forward[1], line)
            return
        typed = re.match(r"(?:typedef )?(struct|enum)\b ?(\w*) ?\{", line)
        if typed:
            code = self.take(lambda each: each.startswith("}") or (each is line and each.rstrip().endswith("};")))
            constants = re.findall(rf"\b({self.book.names.upper()}_\w+)(?= *[,=}}\n]| *//|\s*/\*)", code) if typed[1] == "enum" else []
            self.add(typed[1] if typed[2] else "constants", typed[2] or constants[0], code, constants)
            return
        if line.startswith("static inline"):
            code = self.take(lambda each: each == "}")
            code = code[:code.index("\n{")] + ";"
            self.add("function", re.search(r"(\w+)\(", code)[1], code)
            return
        code = self.take(lambda each: each.rstrip().endswith(";"))
        if line.startswith("typedef "):
            named = re.search(r"(\w+)\(|(\w+);$", code)
            self.add("type", named[1] or named[2], code)
        elif line.startswith("MK_API "):
            variable = re.fullmatch(r"MK_API extern const struct \w+ (\w+);", code.strip())
            if variable:
                self.add("type", variable[1], code)
                return
            name = re.search(rf"\b({self.book.names}_\w+)\(", code)[1]
            if name.endswith("_sized"):  # the inline function below calls it: monkey/sized.h
                return
            self.add("function", name, code)
        else:
            raise SystemExit(f"api.py: {self.parts[0].header}:{self.at}: unexpected line: {line}")

    def read(self):
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.strip():
                self.at += 1
                self.entry = None
            elif line in FORMATTER:
                self.at += 1
            elif line.startswith("#"):
                self.read_directive()
            elif not all(self.branches):
                self.at += 1
            elif line.startswith("/*"):
                self.read_comment()
            else:
                self.read_declaration()
        return [part for part in self.parts if part.texts or part.entries]


def read_all(root, book):
    return [part for path in book.headers(root) for part in Reader(book, path).read()]


# ---- Writing ----

NAMED = r"(?:(?:struct|enum) )?\b(?:(?:mk|duda)_\w+(?:\(\))?|(?:MK|DUDA)_\w+(?:\(\))?|(?:monkey|duda)/\w+\.h)"


class Links:
    """Maps names of the interface to their anchors."""

    def __init__(self, parts, page="", others=()):
        self.anchors = {}
        for part in parts:
            self.anchors.setdefault(part.header, anchor_of(part.heading))
            for entry in part.entries:
                first = entry_anchor(*entry.names[0])
                for kind, name in entry.names:
                    self.anchors[written(kind, name)] = self.anchors[name] = entry_anchor(kind, name)
                for name in entry.constants:
                    self.anchors[name] = first
        # A name without `struct` refers to the function of that name, not to the struct.
        self.anchors |= {name: name for part in parts for entry in part.entries for kind, name in entry.names if not tag(kind)}
        self.page = f"{page}#" if page else "#"
        self.others = others

    def target(self, word):
        """Returns where a name is described, on this page or another; None if it is not described."""
        word = word.removesuffix("()")
        anchor = self.anchors.get(word) or self.anchors.get(word.removeprefix("struct ").removeprefix("enum "))
        return self.page + anchor if anchor else next((found for links in self.others if (found := links.target(word))), None)

    def mark(self, match):
        target = self.target(match[0])
        return f"[`{match[0]}`]({target})" if target else f"`{match[0]}`"

    def text(self, text):
        """Converts a paragraph to Markdown and links the names in it."""
        pieces = re.split(r"(`[^`]*`)", text)
        for i in range(0, len(pieces), 2):
            escaped = re.sub(r"[*<>]", lambda m: "\\" + m[0], pieces[i])
            pieces[i] = re.sub(NAMED, self.mark, escaped)
        return "".join(pieces)

    def blocks(self, comment):
        """Converts a whole comment: paragraphs, lists, tables and indented code."""
        out, paragraph, table = [], [], []

        def end():
            if paragraph:
                out.append(self.text(" ".join(paragraph)))
                paragraph.clear()
            if table:
                out.append("\n".join(table))
                table.clear()

        code = []
        for line in (comment or "").split("\n") + [""]:
            if line.startswith("    ") or (code and not line):
                end()
                code.append(line)
                continue
            if code:
                out.append("\n".join(code).rstrip("\n"))
                code = []
            if line.startswith("- "):
                end()
                paragraph.append(line)
            elif line.startswith("|"):
                table.append(self.text(line))
            elif line:
                paragraph.append(line.strip())
            else:
                end()
        if code:
            out.append("\n".join(code).rstrip("\n"))
        return re.sub(r"^(- .*)\n\n(?=- )", r"\1\n", "\n\n".join(block for block in out if block.strip()), flags=re.M).split("\n\n")


def anchor_of(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def tag(kind):
    return kind in ("struct", "enum")


def written(kind, name):
    return f"{kind} {name}" if tag(kind) else name


def entry_anchor(kind, name):
    """Returns the anchor of an entry. It includes the kind, because a struct and a function may have the same name."""
    return f"{kind}-{name}" if tag(kind) else name


def write_entry(entry, links, used):
    """`used` holds the anchors of earlier entries: a struct may be declared in one header, and defined in another."""
    anchors = [entry_anchor(kind, name) for kind, name in entry.names]
    anchors = [anchor for anchor in anchors if anchor not in used and not used.add(anchor)]
    code = "\n".join(entry.code)
    anchors = "".join(f'<a id="{anchor}"></a>' for anchor in anchors)
    return [f"### {entry.title}", anchors, f"```c\n{code}\n```", *links.blocks(entry.comment)]


def write_contents(parts, links):
    lines = []
    for part in parts:
        lines.append(f"- [{part.heading}](#{anchor_of(part.heading)})")
        names = [f"[{name}](#{entry_anchor(kind, name)})" for entry in part.entries for kind, name in entry.names]
        if names:
            lines.append("  " + ", ".join(names))
    return ["\n".join(lines)]


def write_page(root, book, parts):
    others = [Links(read_all(root, other), Path(other.page).name) for other in BOOKS if other is not book]
    links = Links(parts, others=others)
    blocks, used = write_contents(parts, links), set()
    for part in parts:
        blocks.append(f"## {part.heading}")
        for text in part.texts:
            blocks += links.blocks(text)
        for entry in part.entries:
            blocks += write_entry(entry, links, used)
    head = "\n".join(links.text(line) if line.startswith("| ") else line for line in book.head.split("\n"))
    return head + "\n\n".join(blocks) + "\n"


# ---- Checking ----

def complaints(root, book):
    """Lists undocumented declarations, and the page if it is outdated."""
    parts = read_all(root, book)
    above = str(Path(book.folder).parent)
    found = [f"{above}/{part.header}:{entry.line}: {entry.title} has no comment"
             for part in parts for entry in part.entries if not entry.comment]
    told = {name for part in parts for entry in part.entries for kind, name in entry.names if kind == "struct"}
    for path in book.headers(root):
        for name in re.findall(r"^struct (\w+);$", path.read_text(encoding="utf-8"), re.MULTILINE):
            if name not in told and name.startswith(book.names):
                found.append(f"{book.folder}/{path.name}: struct {name} is not described")
                told.add(name)
    found += [f"{above}/{part.header}: there is no comment about the header's purpose after the SPDX line"
              for part in parts if not part.title and not part.texts]
    page = root / book.page
    if not page.exists() or page.read_text(encoding="utf-8") != write_page(root, book, parts):
        found.append(f"{book.page} is out of date: run `make docs`")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2], help="the source tree")
    parser.add_argument("--check", action="store_true", help="only report errors; write nothing")
    args = parser.parse_args()
    if not args.check:
        for book in BOOKS:
            (args.root / book.page).write_text(write_page(args.root, book, read_all(args.root, book)), encoding="utf-8")
        return 0
    found = [each for book in BOOKS for each in complaints(args.root, book)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
