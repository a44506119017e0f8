# SPDX-License-Identifier: Apache-2.0
"""The reference of Duda's sections (tests/docs loads its examples), and the man pages of its commands."""
import re
import shutil
import subprocess

import pytest

import services
from monkey import PROGRAM, ROOT, SECONDS

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="no Duda here")

PAGE = (ROOT / "docs/reference/duda.md").read_text()
PAGES = PROGRAM.parent / "docs"


def test_reference_sections_have_examples():
    assert {"DUDA", "SESSIONS", "KV", "REDIS", "SQLITE", "POSTGRES", "HTTP_CLIENT"} <= set(re.findall(r"^```\n\[PLUGINS\]\n    Load  duda.*\n\n\[(\w+)\]", PAGE, re.MULTILINE))


@pytest.mark.parametrize("verb", ["run", "new", "test", "routes", "doc", "openapi", "build"])
def test_man_page_lists_options_and_renders(run, verb):
    page = PAGES / f"monkey-{verb}.1"
    if not page.exists():
        pytest.skip("the man pages are not built")
    text, told = page.read_text().replace("\\-", "-"), run(verb, "--help").out
    for option in re.findall(r"^  (-.*?)  ", told, re.MULTILINE):
        assert f"\\fB{option}\\fR" in text, option
    assert f"monkey {verb} " in text.split(".SH EXAMPLES")[1]
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True, timeout=SECONDS, check=True)
        assert done.stderr == "" and len(done.stdout) > 500


# What users of other frameworks search for, and a function that the same row of the reference must name.
WORDS = {"before_request": "DUDA_BEFORE", "app.use": "DUDA_BEFORE", "middleware": "DUDA_AROUND", "next()": "duda_next", "query string": "duda_query",
         "req.query": "duda_query", "request.args": "duda_query", "cookie": "duda_cookie", "redirect": "duda_redirect", "res.download": "duda_attachment",
         "background task": "duda_after_response", "BackgroundTasks": "duda_after_response", "static files": "DUDA_ASSETS", "flask.g": "duda_attach",
         "res.json": "duda_send_json", "Pydantic": "duda_bind_json", "render_template": "duda_render", "url_for": "duda_url_for", "CORS": "DUDA_CORS",
         "flash": "duda_flash", "errorhandler": "DUDA_ERROR", "abort": "duda_problem", "StreamingResponse": "duda_flush", "Celery": "duda_jobs_enqueue",
         "axios": "duda_http_fetch", "logger": "duda_log", "ETag": "duda_auto_etag", "router": "DUDA_GROUP", "transaction": "duda_sql_transaction",
         "pagination": "duda_page_read", "Link header": "duda_page_links", "cursor": "duda_cursor_new", "readiness": "duda_set_readiness",
         "i18n": "duda_translate", "gettext": "duda_translate", "graceful shutdown": "duda_end_on_drain", "heartbeat": "duda_sse_set_keep_alive", "socket.broadcast": "duda_topic_publish_others",
         "body as a file": "duda_body_save", "rate limit": "duda_store_rate_limit", "API key": "duda_auth_bearer", "metrics": "DUDA_COUNTER",
         "structured log": "duda_log_fields", "role": "duda_require_role", "environment variable": "duda_settings"}


@pytest.mark.parametrize("word", WORDS)
def test_index_of_the_reference_has_the_words_of_other_frameworks(word):
    rows = re.findall(r"^\| (?!Task|---).*\|$", (ROOT / "docs/reference/duda-api.md").read_text(), re.MULTILINE)
    assert any(word in row.rsplit("|", 2)[0] and f"`{WORDS[word]}()`" in row.rsplit("|", 2)[1] for row in rows), word
