# SPDX-License-Identifier: Apache-2.0
"""Handlers, tasks and deferred functions that call Duda with hostile values, or at the wrong time, get the documented errors."""
import pytest

import services
from monkey import ENVIRONMENT, needs_processes
from proc import wait_until

PACKAGES = ["crypto", "small", "gzip", "store", "kv", "subprocess", "jobs", "http", "smtp", "qr"]

pytestmark = pytest.mark.skipif(not all(services.has(package) for package in PACKAGES), reason="this build lacks a package of Duda")

SOURCE = r"""
#define DUDA_USE "duda-store", "duda-kv", "duda-subprocess", "duda-jobs", "duda-http", "duda-smtp"
#include <duda.h>
#include <duda/chart.h>
#include <duda/crypto.h>
#include <duda/csv.h>
#include <duda/gzip.h>
#include <duda/http.h>
#include <duda/jobs.h>
#include <duda/kv.h>
#include <duda/mail.h>
#include <duda/mime.h>
#include <duda/qr.h>
#include <duda/smtp.h>
#include <duda/store.h>
#include <duda/subprocess.h>
#include <duda/topic.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

static _Thread_local struct mk_buf failures;

static void expect(bool ok, int line, const char *text)
{
    if (!ok)
        mk_buf_addf(&failures, "%d: %s\n", line, text);
}
#define EXPECT(condition) expect(condition, __LINE__, #condition)

static const mk_str nul = {"a\0b", 3}, lines = {"a\r\nb: c", 7}, absent = {NULL, 0}, empty = {"", 0};

static mk_str large(size_t n)
{
    static char text[3 << 20];
    memset(text, 'a', sizeof text);
    return mk_str_of(text, n);
}

static int report(struct duda_ctx *d)
{
    mk_buf_add(&failures, MK_STR("end\n"));
    mk_str text = duda_strdup(d, mk_buf_str(&failures));
    mk_buf_free(&failures);
    return duda_write(d, text);
}

static int request(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    int64_t n = 5;
    EXPECT(!duda_param(d, "none").p && !duda_param(d, "").p && !duda_param_int(d, "none", &n) && n == 5);
    EXPECT(!duda_query(d, "none").p && !duda_query_int(d, "none", &n) && n == 5 && duda_query_int_or(d, "none", 5, &n) && !duda_query_int(d, "word", &n));
    EXPECT(!duda_query_int(d, "large", &n) && !duda_query(d, "").p);
    EXPECT(strcmp(duda_query_or(d, "nul", "x"), "x") == 0 && duda_query(d, "nul").len == 3);
    EXPECT(!duda_header(d, "").p && !duda_header(d, "a\r\nb").p && !duda_cookie(d, "").p && !duda_cookie(d, "a=b").p);
    EXPECT(!duda_cookie_signed(d, "x").p && !duda_cookie_encrypted(d, "").p);
    char buf[10];
    mk_str all;
    EXPECT(duda_read(d, buf, sizeof buf) == 0 && duda_read_all(d, SIZE_MAX, &all) == 0 && duda_read_all(d, 0, &all) == 0);
    EXPECT(!duda_upload(d, "x") && !duda_upload_at(d, SIZE_MAX) && !duda_form(d, "x").p && duda_form_all(d)->n == 0);
    static const char *const none[] = {NULL}, *const odd[] = {"", "a", "/", NULL};
    EXPECT(duda_accepts(d, none) == -1 && duda_accepts_language(d, none) == 0);
    (void)duda_accepts(d, odd), (void)duda_accepts_language(d, odd);
    EXPECT(duda_negotiate_language(absent, none) == -1 && duda_negotiate_language(lines, odd) == -1);
    EXPECT(duda_task_context(d) == NULL && duda_task_owner(duda_worker(d)) == NULL);
    EXPECT(duda_reason(d, -EIO, "%.*s", MK_STR_ARG(large(10000))) == -EIO);
    duda_log(d, (enum mk_log_level)77, "level 77");
    EXPECT(duda_response_reset(d) == 0); /* duda_form() has set no status */
    return report(d);
}

static int response(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    const unsigned statuses[] = {1, 99, 100, 199, 600, UINT32_MAX};
    for (size_t i = 0; i < MK_LEN(statuses); i++)
        EXPECT(duda_status(d, statuses[i]) == -EINVAL);
    const char *const names[] = {"", "a b", "a:", "a\r\nb", "Content-Length", "connection"};
    for (size_t i = 0; i < MK_LEN(names); i++)
        EXPECT(duda_header_set(d, names[i], MK_STR("x")) == -EINVAL && duda_header_add(d, names[i], MK_STR("x")) == -EINVAL);
    EXPECT(duda_header_set(d, "X", lines) == -EINVAL && duda_header_add(d, "X", nul) == -EINVAL);
    EXPECT(duda_header_set(d, "Set-Cookie", MK_STR("hostile-session=x")) == -EPERM);
    EXPECT(duda_content_type(d, MK_STR("a\r\nb")) == -EINVAL);
    EXPECT(duda_redirect(d, 200, MK_STR("/")) == -EINVAL && duda_redirect(d, 304, MK_STR("/")) == -EINVAL);
    EXPECT(duda_redirect(d, 303, MK_STR_NULL) == -EINVAL && duda_flash_redirect(d, "info", MK_STR("saved"), MK_STR_NULL) == -EINVAL);
    const char *const urls[] = {"", "//a", "/\\a", "http://a", "/\r\n", "javascript:x"};
    for (size_t i = 0; i < MK_LEN(urls); i++)
        EXPECT(duda_redirect_local(d, 303, mk_str_from_c(urls[i])) == 400);
    EXPECT(duda_early_hints(d, MK_STR("a\r\nb")) == -EINVAL);
    EXPECT(duda_send_file(d, MK_STR("")) != 0 && duda_send_file(d, MK_STR("none")) != 0 && duda_send_file(d, MK_STR("/../etc/passwd")) != 0);
    EXPECT(duda_send_fd(d, -1, 0, 1) == -EINVAL && duda_send_fd(d, INT32_MAX, 0, 1) == -EINVAL);
    EXPECT(duda_send_fd(d, open("/dev/null", O_RDONLY | O_CLOEXEC), UINT64_MAX, 1) == -EINVAL);
    EXPECT(duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("a\nb"), .data = empty}) == -EINVAL && duda_sse_send(d, &(struct mk_sse_event){.data = MK_STR("x"), .id = MK_STR("a\rb")}) == -EINVAL);
    EXPECT(duda_render(d, "none.html", duda_value_null()) == -EINVAL && duda_render(d, "", duda_value_null()) == -EINVAL);
    EXPECT(duda_render_text(d, MK_STR("{{#a}}"), duda_value_null()) == -EINVAL);
    EXPECT(duda_write(d, absent) == 0 && duda_write(d, empty) == 0 && duda_response_reset(d) == 0);
    return report(d);
}

static int streamed(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    const struct mk_cookie cookie = {.name = "a", .value = MK_STR("b")};
    int e = duda_puts(d, "begun\n");
    e = e ? e : duda_flush(d);
    EXPECT(duda_status(d, 200) == -EALREADY && duda_header_set(d, "X", MK_STR("x")) == -EALREADY);
    EXPECT(duda_response_reset(d) == -EALREADY && duda_content_type(d, MK_STR("a/b")) == -EALREADY);
    EXPECT(duda_cookie_set(d, &cookie) == -EALREADY && duda_session_set(d, "a", MK_STR("b")) == -EALREADY);
    EXPECT(duda_early_hints(d, MK_STR("</a>; rel=preload")) == -EALREADY && !duda_csrf_token(d).p);
    EXPECT(duda_send_fd(d, open("/dev/null", O_RDONLY | O_CLOEXEC), 0, 0) == -EALREADY);
    return e ? e : report(d);
}

static void forget(void *ctx)
{
    (void)ctx;
}

static int ignore(void *job)
{
    (void)job;
    return 0;
}

static void ignore_wait(struct duda_wait *w)
{
    (void)w;
}

static int waits(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    int fds[] = {-1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < MK_LEN(fds); i++)
        EXPECT(duda_wait_fd(d, fds[i], MK_READABLE, 1) < 0);
    EXPECT(duda_sleep(d, 0) == 0);
    EXPECT(duda_lock(d, absent, 1) == -EINVAL && duda_lock(d, empty, 1) == -EINVAL && duda_lock(d, large(251), 1) == -EINVAL);
    EXPECT(duda_lock(d, absent, 0) == -EINVAL && duda_unlock(d, absent) == -EPERM && duda_unlock(d, MK_STR("x")) == -EPERM);
    EXPECT(duda_lock(d, nul, 1) == 0 && duda_lock(d, nul, 1) == -EDEADLK && duda_lock(d, nul, 0) == -EDEADLK);
    EXPECT(duda_unlock(d, nul) == 0 && duda_unlock(d, nul) == -EPERM);
    char job[4] = "abc";
    EXPECT(duda_offload(d, NULL, ignore, job, sizeof job) == 0 && duda_offload(d, NULL, ignore, NULL, 0) == 0);
    EXPECT(duda_offload(d, NULL, ignore, job, SIZE_MAX) == -ENOMEM);
    struct duda_wait w;
    EXPECT(duda_wait_begin(d, &w, ignore_wait) == 0);
    duda_wait_wake(&w), duda_wait_wake(&w);
    EXPECT(duda_wait_suspend(&w) == 0);
    duda_wait_end(&w), duda_wait_end(&w);
    duda_wait_wake(&w);
    duda_wake(d), duda_wake(d);
    EXPECT(duda_suspend(d) == 0);
    EXPECT(duda_deadline(d, UINT32_MAX - 1) == 0 && duda_deadline(d, MK_FOREVER) == 0);
    EXPECT(!duda_alloc(d, SIZE_MAX) && !duda_alloc(d, SIZE_MAX / 2) && duda_alloc(d, 0));
    EXPECT(duda_strdup(d, absent).len == 0 && duda_strdup(d, nul).len == 3);
    EXPECT(!duda_undefer(d, forget, NULL));
    size_t mark = duda_arena_mark(d);
    duda_arena_rewind(d, mark), duda_arena_rewind(d, mark);
    return report(d);
}

DUDA_TOPIC(a, "a");
DUDA_TOPIC_FAMILY(family, "t");

static int topics(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    const struct duda_topic bad[] = {family.topic, duda_topic_named(&family, absent), duda_topic_named(&family, empty),
                                     duda_topic_named(&family, large(64)), duda_topic_named(&family, large(70000))},
                            null_byte = duda_topic_named(&family, nul);
    struct duda_topic_message m;
    uint64_t subscribers = 7;
    mk_str text;
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        EXPECT(duda_topic_subscribe(d, &bad[i]) == -EINVAL);
        EXPECT(duda_topic_publish(d, &bad[i], empty) == -EINVAL);
        EXPECT(duda_topic_subscribers(d, &bad[i], &subscribers) == -EINVAL && subscribers == 0);
        duda_topic_unsubscribe(d, &bad[i]);
    }
    EXPECT(duda_topic_subscribe(d, NULL) == -EINVAL && duda_topic_subscribe_after(d, NULL, empty) == -EINVAL);
    EXPECT(duda_topic_publish(d, NULL, empty) == -EINVAL && duda_topic_subscribers(d, NULL, &subscribers) == -EINVAL);
    EXPECT(duda_topic_subscribers(d, &a, &subscribers) == -EINVAL);
    EXPECT(duda_topic_subscribe_after(d, &a, empty) == -EINVAL);
    duda_topic_unsubscribe(d, NULL);
    EXPECT(duda_topic_publish(d, &a, large(DUDA_TOPIC_MESSAGE_MAX + 1)) == -EMSGSIZE);
    EXPECT(duda_topic_receive(d, 1, &text) == -ETIME && duda_topic_receive_message(d, 1, &m) == -ETIME);
    EXPECT(duda_topic_subscribe(d, &null_byte) == 0 && duda_topic_subscribe(d, &null_byte) == -EALREADY);
    EXPECT(duda_topic_publish_as(duda_worker(d), NULL, &null_byte, empty) == 0);
    duda_topic_deliver(duda_worker(d), absent), duda_topic_deliver(duda_worker(d), large(70000));
    for (char c = 0; c < 127; c++)
        duda_topic_deliver(duda_worker(d), mk_str_of(&c, 1));
    EXPECT(duda_topic_set_relay(duda_worker(d), NULL) == 0);
    for (int i = 1; i < DUDA_TOPIC_SUBSCRIPTIONS_MAX; i++) {
        const struct duda_topic t = duda_topic_named(&family, duda_sprintf(d, "%d", i));
        (void)duda_topic_subscribe(d, &t);
    }
    EXPECT(duda_topic_subscribe(d, &a) == -EDQUOT);
    return report(d);
}

static int cookies(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    const struct mk_cookie bad[] = {
        {.name = NULL}, {.name = ""}, {.name = "a b"}, {.name = "a;"}, {.name = "a", .value = lines}, {.name = "a", .value = nul},
        {.name = "a", .path = MK_STR("b")}, {.name = "a", .path = lines}, {.name = "a", .domain = lines},
        {.name = "a", .value = large(5000)}, {.name = "a", .same_site = (enum mk_same_site)77}, {.name = "__Host-a", .insecure = true},
        {.name = "a", .same_site = MK_SAME_SITE_NONE}};
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        struct mk_buf out = mk_buf_growing(10000);
        if (mk_cookie_write(&out, &bad[i], false) != -EINVAL || out.len || duda_cookie_set(d, &bad[i]) != -EINVAL)
            mk_buf_addf(&failures, "cookie %zu is set\n", i);
        mk_buf_free(&out);
    }
    const struct mk_cookie own = {.name = "hostile-session"}, nameless = {.name = NULL};
    EXPECT(duda_cookie_set(d, &own) == -EPERM && duda_cookie_set_signed(d, &own) == -EPERM);
    EXPECT(duda_cookie_set_encrypted(d, &own) == -EPERM && duda_cookie_delete(d, "hostile-token") == -EPERM);
    EXPECT(duda_cookie_set_signed(d, &nameless) == -EINVAL && duda_cookie_set_encrypted(d, &nameless) == -EINVAL);
    EXPECT(duda_cookie_delete(d, "") == -EINVAL);
    mk_str value, rest = absent, name;
    EXPECT(duda_session_get(d, "none", &value) == -ENOENT && !value.p && duda_session_get(d, "", &value) == -ENOENT);
    EXPECT(duda_session_set(d, "a", large(DUDA_SESSION_MAX + 1)) == -EMSGSIZE);
    EXPECT(duda_session_set(d, "nul", nul) == 0 && duda_session_get(d, "nul", &value) == 0 && value.len == 3);
    EXPECT(duda_session_set(d, "nul", absent) == 0 && duda_session_get(d, "nul", &value) == -ENOENT);
    EXPECT(duda_session_destroy(d) == 0 && duda_session_destroy(d) == 0);
    EXPECT(!mk_cookie_next(&rest, &name, &value) && !mk_cookie_find(absent, absent).p);
    return report(d);
}

static int crypto(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    struct mk_buf out = mk_buf_growing(1 << 20), full = mk_buf_fixed(NULL, 0);
    struct duda_hash hash;
    char key[32], text[DUDA_PASSWORD_SIZE];
    const enum duda_digest odd = (enum duda_digest)77;
    EXPECT(duda_hash(DUDA_SHA256, absent, &hash) == 0 && duda_hash(odd, absent, &hash) < 0 && duda_hmac(odd, absent, absent, &hash) < 0);
    EXPECT(duda_hkdf(DUDA_SHA256, absent, absent, absent, key, SIZE_MAX) == -EINVAL);
    EXPECT(duda_hkdf(DUDA_SHA256, absent, absent, absent, key, 255 * 32 + 1) == -EINVAL);
    EXPECT(!duda_hasher_new(odd) && duda_password_hash_blocking(absent, text) == -EINVAL && duda_password_hash_blocking(nul, text) == -EINVAL);
    EXPECT(duda_password_hash_blocking(large(DUDA_PASSWORD_MAX + 1), text) == -EINVAL);
    EXPECT(!duda_password_verify_blocking(absent, absent) && !duda_password_verify_blocking(MK_STR("x"), nul) && !duda_password_verify_blocking(MK_STR("x"), large(1000)));
    EXPECT(!duda_base64url_decode(&out, MK_STR("a=")) && !duda_hex_decode(&out, MK_STR("abc")) && duda_hex_decode(&out, absent));
    errno = 0;
    EXPECT(!duda_jwt_key_new(DUDA_JWT_HS256, absent, MK_STR("short")) && errno == EINVAL);
    EXPECT(!duda_jwt_key_new(DUDA_JWT_RS256, absent, nul) && !duda_jwt_key_new((enum duda_jwt_algorithm)77, absent, large(64)));
    EXPECT(!duda_jwks_new(absent) && !duda_jwks_new(MK_STR("[]")) && !duda_jwks_new(large(DUDA_JWKS_TEXT_MAX + 1)));
    struct duda_jwt_key *k = duda_jwt_key_new(DUDA_JWT_HS256, absent, large(32));
    struct duda_jwks *set = duda_jwks_new(MK_STR("{\"keys\":[]}"));
    const struct duda_jwt_rules rules = {.now = INT64_MAX, .leeway_s = UINT32_MAX}, early = {.now = INT64_MIN, .leeway_s = UINT32_MAX};
    EXPECT(k && set && duda_jwks_count(set) == 0);
    EXPECT(duda_jwt_sign(&out, k, absent) == -EINVAL && duda_jwt_sign(&out, k, MK_STR("[]")) == -EINVAL);
    EXPECT(duda_jwt_sign(&out, k, large(20000)) == -EMSGSIZE && duda_jws_sign(&out, k, large(20000)) == -EMSGSIZE);
    mk_buf_clear(&out);
    EXPECT(duda_jwt_sign(&full, k, MK_STR("{}")) == -ENOMEM && duda_jwt_sign(&out, k, MK_STR("{\"exp\":9e99}")) == 0);
    mk_str token = mk_buf_str(&out);
    struct mk_buf claims = mk_buf_growing(1 << 16);
    EXPECT(duda_jwt_verify(&claims, k, absent, &rules) == -EBADMSG && duda_jwt_verify(&claims, k, large(1 << 20), &rules) == -EBADMSG);
    (void)!duda_jwt_verify(&claims, k, token, &rules), (void)!duda_jwt_verify(&claims, k, token, &early);
    EXPECT(duda_jwt_verify_jwks(&claims, set, absent, &rules) == -EBADMSG);
    EXPECT(duda_jwt_verify_jwks(&claims, set, token, &rules) == -EKEYREJECTED);
    duda_jwt_key_free(k), duda_jwt_key_free(NULL), duda_jwks_free(set), duda_jwks_free(NULL), duda_hasher_free(NULL);
    mk_buf_free(&out), mk_buf_free(&claims);
    return report(d);
}

static int texts(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    struct mk_buf out = mk_buf_growing(1 << 20), message = mk_buf_growing(1000), full = mk_buf_fixed(NULL, 0);
    struct duda_mime mime;
    EXPECT(!duda_mime_read(absent, &mime) && !duda_mime_read(empty, &mime) && !duda_mime_read(lines, &mime));
    struct duda_csv csv = duda_csv_of(absent, '\0', &out);
    mk_str cell;
    EXPECT(duda_csv_next(&csv, &cell) == 0 && duda_csv_next(&csv, &cell) == 0);
    csv = duda_csv_of(MK_STR("\"a"), ',', &out);
    EXPECT(duda_csv_next(&csv, &cell) == -EBADMSG && csv.error && duda_csv_next(&csv, &cell) == -EBADMSG);
    EXPECT(duda_gzip(&out, empty, -5) == -EINVAL && duda_gzip(&out, empty, 100) == -EINVAL && duda_gzip(&full, empty, 6) == -ENOMEM);
    EXPECT(duda_gunzip(&out, absent) == -EBADMSG && duda_gunzip(&out, MK_STR("x")) == -EBADMSG && !duda_gzip_new(77));
    duda_gzip_free(NULL);
    EXPECT(duda_qr_svg(&out, absent, DUDA_QR_LOW, 100) == -EINVAL && duda_qr_svg(&out, MK_STR("x"), DUDA_QR_LOW, 0) == -EINVAL);
    EXPECT(duda_qr_svg(&out, MK_STR("x"), DUDA_QR_LOW, 10001) == -EINVAL && duda_qr_svg(&out, large(3000), DUDA_QR_LOW, 100) == -EMSGSIZE);
    const struct duda_chart_series series = {.n = SIZE_MAX};
    const struct duda_chart charts[] = {{.n_series = SIZE_MAX, .series = &series}, {.n_series = 1, .series = &series}, {.width = UINT32_MAX}, {.height = 10001}};
    for (size_t i = 0; i < MK_LEN(charts); i++)
        EXPECT(duda_chart_svg(&out, &charts[i]) == -EINVAL);
    const mk_str to[] = {MK_STR("a@example.org")}, bad[] = {lines};
    const struct duda_mail mails[] = {{.from = absent, .to = to, .n_to = 1}, {.from = to[0]}, {.from = to[0], .to = bad, .n_to = 1},
                                      {.from = to[0], .to = to, .n_to = 1, .subject = lines}, {.from = to[0], .to = to, .n_to = 1, .content_type = lines}};
    for (size_t i = 0; i < MK_LEN(mails); i++)
        EXPECT(duda_mail_write(&out, &mails[i], INT64_MAX) == -EINVAL);
    const struct duda_mail many = {.from = to[0], .to = to, .n_to = SIZE_MAX}, good = {.from = to[0], .to = to, .n_to = 1};
    EXPECT(duda_mail_write(&out, &many, 0) == -EMSGSIZE && duda_mail_write(&full, &good, INT64_MIN) == -ENOMEM && !duda_mail_is_address(absent));
    EXPECT(!duda_template_new(MK_STR("{{/a}}"), "t", &message) && !duda_template_new(MK_STR("{{"), "", &message));
    struct duda_template *t = duda_template_new(MK_STR("{{a}}"), "t", &message);
    const struct duda_render_options strict = {.strict = true};
    const struct duda_value null = duda_value_null(), list = duda_value_list(NULL, 0), map = duda_value_map(NULL, 0);
    struct duda_value member;
    const char *name;
    EXPECT(duda_template_render(t, &null, &strict, &out, &message) == -ENOENT && duda_template_render(t, &null, NULL, &out, &message) == 0);
    EXPECT(duda_value_item(&list, SIZE_MAX).kind == DUDA_VALUE_NULL && duda_value_item(&null, 0).kind == DUDA_VALUE_NULL);
    EXPECT(!duda_value_member(&map, absent, &member) && !duda_value_member(&null, MK_STR("a"), &member));
    EXPECT(!duda_value_member_at(&map, SIZE_MAX, &name, &member) && !duda_value_is_true(&list) && !duda_value_is_true(&null));
    duda_template_free(t), duda_template_free(NULL), duda_templates_free(NULL);
    size_t part;
    mk_str boundary;
    EXPECT(!mk_multipart_boundary(absent, &boundary) && !mk_multipart_boundary(MK_STR("multipart/form-data; boundary="), &boundary));
    static const struct mk_multipart_ops ops = {0};
    struct mk_multipart *m = mk_multipart_new(MK_STR("b"), NULL, &ops, NULL);
    EXPECT(m && mk_multipart_feed(m, MK_STR("x")) == 0 && mk_multipart_end(m) == -EBADMSG && mk_multipart_feed(m, MK_STR("y")) == -EBADMSG);
    (void)mk_multipart_error(m, &part), (void)mk_multipart_offset(m);
    mk_multipart_free(m), mk_multipart_free(NULL);
    mk_file_name_clean(&out, absent), mk_file_name_clean(&out, nul), mk_file_name_clean(&out, large(1000));
    mk_buf_free(&out), mk_buf_free(&message);
    return report(d);
}

static bool each(void *ctx, mk_str key, mk_str value)
{
    (void)ctx, (void)key, (void)value;
    return false;
}

static int packages(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    struct duda_store *s = duda_store_find(d, "memory");
    struct duda_kv *kv = duda_kv_find(d, NULL);
    struct duda_store_lock lock;
    mk_str value;
    int64_t n;
    EXPECT(!duda_store_find(d, "none") && duda_store_get(d, NULL, MK_STR("a"), &value) == -ENODEV);
    EXPECT(duda_store_set(d, NULL, MK_STR("a"), empty, 0) == -ENODEV && duda_store_incr(d, NULL, MK_STR("a"), 1, 0, &n) == -ENODEV);
    EXPECT(duda_store_lock(d, NULL, MK_STR("a"), 1, 0, &lock) == -ENODEV && duda_store_rate_limit(d, NULL, MK_STR("a"), 1, 1) == -ENODEV);
    EXPECT(duda_store_get(d, s, MK_STR("none"), &value) == -ENOENT && duda_store_replace(d, s, MK_STR("none"), empty, 0) == -ENOENT);
    EXPECT(duda_store_set(d, s, large(DUDA_STORE_KEY_MAX + 1), empty, 0) < 0 && duda_store_set(d, s, MK_STR("a"), large(1 << 20), 0) == -EMSGSIZE);
    EXPECT(duda_store_add(d, s, MK_STR("b"), empty, UINT64_MAX) == 0 && duda_store_add(d, s, MK_STR("b"), empty, 0) == -EEXIST);
    EXPECT(duda_store_delete_if(d, s, MK_STR("b"), MK_STR("x")) == -ESTALE && duda_store_delete_if(d, s, MK_STR("b"), absent) == 0);
    EXPECT(duda_store_rate_limit(d, s, MK_STR("r"), 0, 1000) == -EDQUOT && duda_store_rate_limit(d, s, MK_STR("r"), INT64_MIN, UINT64_MAX) == -EDQUOT);
    EXPECT(duda_store_incr(d, s, duda_request_id(d), INT64_MAX, 0, &n) == 0 && duda_store_incr(d, s, duda_request_id(d), INT64_MAX, 0, &n) < 0);
    EXPECT(duda_store_rate_limit(d, s, duda_request_id(d), 1, UINT64_MAX) == 0 && duda_store_rate_limit(d, s, duda_request_id(d), 1, UINT64_MAX) == -EDQUOT);
    EXPECT(duda_store_lock(d, s, MK_STR("l"), UINT64_MAX, 0, &lock) == 0);
    struct duda_store_lock other;
    EXPECT(duda_store_lock(d, s, MK_STR("l"), 60000, 0, &other) == -EBUSY && duda_store_lock(d, s, MK_STR("l"), 60000, 20, &other) == -ETIME);
    EXPECT(duda_store_unlock(d, &lock) == 0 && duda_store_unlock(d, &lock) == -ESTALE);
    EXPECT(!duda_kv_find(d, "none") && duda_kv_set(d, NULL, MK_STR("a"), empty, 0) == -ENODEV && duda_kv_get(d, NULL, MK_STR("a"), &value) == -ENODEV);
    EXPECT(duda_kv_get(d, kv, MK_STR("none"), &value) == -ENOENT && duda_kv_delete(d, kv, MK_STR("none")) == -ENOENT);
    EXPECT(duda_kv_expire(d, kv, MK_STR("none"), 0) == -ENOENT && duda_kv_set(d, kv, absent, empty, 0) < 0 && duda_kv_set(d, kv, large(1000), empty, 0) < 0);
    EXPECT(duda_kv_set(d, kv, MK_STR("a"), empty, UINT64_MAX) == -EINVAL && duda_kv_compare_and_set(d, kv, MK_STR("a"), MK_STR("x"), empty, 0) == -ESTALE);
    EXPECT(duda_kv_set(d, kv, MK_STR("w"), MK_STR("word"), 0) == 0 && duda_kv_incr(d, kv, MK_STR("w"), 1, 0, &n) == -EDOM);
    EXPECT(duda_kv_scan(d, NULL, absent, absent, each, NULL) == -ENODEV && duda_kv_scan(d, kv, absent, absent, each, NULL) >= 0);
    EXPECT(duda_kv_batch_commit(d, NULL) == -ENOMEM);
    duda_kv_batch_abort(NULL), duda_kv_batch_set(NULL, empty, empty, 0), duda_kv_batch_delete(NULL, empty), duda_kv_batch_expect(NULL, empty, empty);
    struct duda_kv_batch *b = duda_kv_batch_begin(kv);
    duda_kv_batch_set(b, absent, absent, UINT64_MAX);
    EXPECT(duda_kv_batch_commit(d, b) < 0);
    return report(d);
}

static int clients(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    struct duda_http_client *http = duda_http_find(d, NULL);
    struct duda_http_response response;
    struct duda_http_stream *stream;
    const struct mk_header bad = {MK_STR("X"), lines};
    const struct duda_http_request requests[] = {{.target = MK_STR("a")}, {.target = lines}, {.method = MK_STR("G T")}, {.headers = &bad, .n_headers = 1},
                                                 {.content_type = lines, .body = MK_STR("x")}};
    const struct duda_http_request good = {.target = absent};
    for (size_t i = 0; i < MK_LEN(requests); i++)
        if (duda_http_fetch(d, http, &requests[i], &response) != -EINVAL || duda_http_open(d, http, &requests[i], &response, &stream) != -EINVAL)
            mk_buf_addf(&failures, "request %zu is sent: %.*s\n", i, MK_STR_ARG(response.error));
    EXPECT(!duda_http_find(d, "none") && duda_http_fetch(d, NULL, &good, &response) == -ENODEV && response.error.len);
    EXPECT(duda_http_open(d, NULL, &good, &response, &stream) == -ENODEV && duda_http_begin(d, NULL, &good, 1, &response, &stream) == -ENODEV);
    const struct duda_http_request with_body = {.body = MK_STR("x")};
    EXPECT(duda_http_begin(d, http, &with_body, 1, &response, &stream) == -EINVAL && duda_http_begin(d, http, &good, -5, &response, &stream) == -EINVAL);
    EXPECT(duda_http_fetch(d, http, &good, &response) == -ECONNREFUSED);
    struct duda_smtp_result result;
    const struct duda_mail mail = {.from = lines};
    EXPECT(duda_smtp_send(d, NULL, &mail, &result) == -ENODEV && duda_smtp_send(d, duda_smtp_find(d, NULL), &mail, &result) == -EINVAL);
    EXPECT(!duda_smtp_find(d, "none"));
    const char *const none[] = {NULL}, *const bare[] = {"true", NULL}, *const missing[] = {"/none/such", NULL}, *const cat[] = {"/bin/cat", NULL};
    const struct duda_subprocess_options programs[] = {{.argv = none}, {.argv = bare}, {.argv = missing}, {.argv = cat, .timeout_ms = 50}, {.argv = cat}};
    mk_str output;
    int status;
    EXPECT(duda_subprocess_run(d, &programs[0], empty, 1, &output, &status) == -EINVAL && duda_subprocess_run(d, &programs[1], empty, 1, &output, &status) == -EINVAL);
    EXPECT(duda_subprocess_run(d, &programs[2], empty, 1, &output, &status) == -ENOENT);
    EXPECT(duda_subprocess_run(d, &programs[4], MK_STR("abc"), 1, &output, &status) == -EMSGSIZE && duda_subprocess_run(d, &programs[4], nul, SIZE_MAX, &output, &status) == 0);
    struct duda_subprocess *p;
    char buf[10];
    EXPECT(duda_subprocess_start(d, &programs[3], &p) == 0);
    duda_subprocess_signal(p, -1), duda_subprocess_signal(p, 12345), duda_subprocess_signal(p, 0);
    EXPECT(duda_subprocess_read(d, p, buf, sizeof buf) == -ETIME && duda_subprocess_wait(d, p, &status) == -ETIME);
    duda_subprocess_close_stdin(p), duda_subprocess_close_stdin(p);
    EXPECT(duda_subprocess_write(d, p, MK_STR("x")) < 0);
    struct duda_job_counts counts;
    mk_str id;
    EXPECT(duda_jobs_enqueue(d, "", empty, NULL, &id) == -EINVAL && duda_jobs_enqueue(d, "a b", empty, NULL, NULL) == -EINVAL);
    EXPECT(duda_jobs_enqueue(d, "a", large(DUDA_JOBS_PAYLOAD_MAX + 1), NULL, NULL) == -EMSGSIZE);
    const struct duda_job_options unique = {.unique_key = duda_request_id(d), .delay_ms = 100000}, too_long = {.unique_key = large(201)}, never = {.delay_ms = UINT64_MAX};
    EXPECT(duda_jobs_enqueue(d, "a", empty, &unique, &id) == 0 && duda_jobs_enqueue(d, "a", empty, &unique, NULL) == -EEXIST);
    EXPECT(duda_jobs_enqueue(d, "a", empty, &too_long, NULL) < 0);
    EXPECT(duda_jobs_enqueue(d, "a", empty, &never, NULL) == -EINVAL);
    EXPECT(duda_jobs_count(d, "", &counts) == -EINVAL && duda_jobs_retry(d, "a", absent) == -ENOENT && duda_jobs_delete(d, "a", lines) == -ENOENT);
    EXPECT(duda_jobs_register(duda_worker(d), &(const struct duda_job_type){.name = "a b"}) == -EINVAL);
    return report(d);
}

/* ---- Lifetimes ---- */

static mk_str handed_out[40];
static char *copies[MK_LEN(handed_out)];
static size_t n_texts;

/* Records a text that must end in a NUL, and must not change until the handler returns. */
static void record(mk_str text, int line)
{
    if (!text.p || text.p[text.len] != '\0') {
        mk_buf_addf(&failures, "%d: no text that ends in NUL\n", line);
        return;
    }
    copies[n_texts] = malloc(text.len + 1);
    memcpy(copies[n_texts], text.p, text.len + 1);
    handed_out[n_texts++] = text;
}
#define RECORD(text) record(text, __LINE__)

static int lifetimes(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    n_texts = 0;
    struct duda_store *s = duda_store_find(d, "memory");
    struct duda_kv *kv = duda_kv_find(d, NULL);
    const char *const echo[] = {"/bin/echo", "hello", NULL};
    const struct duda_subprocess_options program = {.argv = echo};
    const struct duda_http_request request = {.target = MK_STR("/")};
    struct duda_http_response response;
    struct duda_topic_message m;
    struct duda_smtp_result result;
    const mk_str to[] = {MK_STR("a@example.org")};
    const struct duda_mail mail = {.from = to[0], .to = to, .n_to = 1};
    mk_str text;
    int status;
    RECORD(duda_method(d)), RECORD(duda_path(d)), RECORD(duda_param(d, "id")), RECORD(duda_query(d, "a"));
    RECORD(mk_str_from_c(duda_query_or(d, "a", "x"))), RECORD(duda_header(d, "Host")), RECORD(duda_client_ip(d));
    RECORD(duda_request_id(d)), RECORD(duda_cookie(d, "c")), RECORD(duda_strdup(d, MK_STR("copy"))), RECORD(duda_sprintf(d, "%d", 5));
    RECORD(duda_html_escape(d, MK_STR("<a>"))), RECORD(duda_csrf_token(d)), RECORD(mk_request_path(duda_request(d)));
    RECORD(mk_request_translate_path(duda_request(d), MK_STR("/a")));
    EXPECT(duda_session_set(d, "k", MK_STR("kept")) == 0 && duda_session_get(d, "k", &text) == 0);
    RECORD(text);
    EXPECT(duda_store_set(d, s, MK_STR("k"), MK_STR("stored"), 0) == 0 && duda_store_get(d, s, MK_STR("k"), &text) == 0);
    RECORD(text);
    EXPECT(duda_kv_set(d, kv, MK_STR("k"), MK_STR("value"), 0) == 0 && duda_kv_get(d, kv, MK_STR("k"), &text) == 0);
    RECORD(text);
    EXPECT(duda_subprocess_run(d, &program, empty, 100, &text, &status) == 0 && mk_str_eq(text, MK_STR("hello\n")));
    EXPECT(duda_http_fetch(d, duda_http_find(d, NULL), &request, &response) < 0);
    RECORD(response.error), RECORD(response.server);
    EXPECT(duda_smtp_send(d, duda_smtp_find(d, NULL), &mail, &result) < 0);
    RECORD(result.error);
    EXPECT(duda_jobs_enqueue(d, "a", MK_STR("job"), NULL, &text) == 0);
    RECORD(text);
    const struct duda_topic t = duda_topic_named(&family, MK_STR("t"));
    EXPECT(duda_topic_subscribe(d, &t) == 0 && duda_topic_publish(d, &t, MK_STR("news")) == 0);
    EXPECT(duda_topic_receive_message(d, 5000, &m) == 0);
    RECORD(m.topic), RECORD(m.data);
    EXPECT(n_texts == 24);
    for (int i = 0; i < 100; i++) /* other requests and values reuse whatever was freed too early */
        EXPECT(duda_alloc(d, 1000) && duda_kv_set(d, kv, MK_STR("k"), MK_STR("other"), 0) == 0 && duda_session_set(d, "k", MK_STR("other")) == 0);
    EXPECT(duda_store_set(d, s, MK_STR("k"), MK_STR("others"), 0) == 0 && duda_sleep(d, 20) == 0);
    for (size_t i = 0; i < n_texts; i++) {
        if (memcmp(copies[i], handed_out[i].p, handed_out[i].len + 1) != 0)
            mk_buf_addf(&failures, "text %zu has changed: %s\n", i, copies[i]);
        free(copies[i]);
    }
    return report(d);
}

/* ---- Tasks and deferred functions ---- */

static _Thread_local char task_failures[4000];

static void keep(void)
{
    mk_buf_add_char(&failures, '\0');
    strncat(task_failures, mk_buf_str(&failures).p, sizeof task_failures - strlen(task_failures) - 1);
    mk_buf_free(&failures);
}

static int run_task(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    const struct mk_cookie cookie = {.name = "a", .value = MK_STR("b")};
    mk_str text;
    char buf[10];
    EXPECT(!duda_request(d) && !duda_response(d) && !duda_client_ip(d).p && !duda_header(d, "Host").p && !duda_query(d, "a").p);
    EXPECT(!duda_param(d, "a").p && !duda_path(d).p && !duda_method(d).p && !duda_cookie(d, "a").p && !duda_cookie_signed(d, "a").p);
    EXPECT(duda_write(d, MK_STR("x")) == -EALREADY && duda_status(d, 200) == -EALREADY && duda_header_set(d, "X", empty) == -EALREADY);
    EXPECT(duda_flush(d) == -EALREADY && duda_response_reset(d) == -EALREADY && duda_cookie_set(d, &cookie) == -EALREADY);
    EXPECT(duda_read(d, buf, sizeof buf) <= 0 && duda_read_all(d, 10, &text) <= 0);
    EXPECT(duda_session_get(d, "a", &text) == -EALREADY && !text.p && duda_session_set(d, "a", empty) == -EALREADY);
    EXPECT(!duda_csrf_token(d).p && !duda_form(d, "a").p && !duda_upload(d, "a") && !duda_upload_at(d, 0));
    EXPECT(duda_send_file(d, MK_STR("/a")) != 0 && duda_sse_send(d, &(struct mk_sse_event){.data = empty}) == -EALREADY && duda_early_hints(d, MK_STR("</a>")) == -EALREADY);
    EXPECT(duda_send_fd(d, open("/dev/null", O_RDONLY | O_CLOEXEC), 0, 0) == -EALREADY);
    EXPECT(duda_check_preconditions(d, MK_STR("x"), 0) <= 0);
    (void)!duda_session_destroy(d), (void)!duda_session_regenerate(d), (void)!duda_redirect(d, 303, MK_STR("/")), (void)!duda_problem(d, 400, "x");
    (void)!duda_csrf_check(d), (void)duda_request_id(d), (void)duda_render_text(d, MK_STR("x"), duda_value_null());
    duda_log(d, MK_LOG_DEBUG, "task");
    keep();
    return 0;
}

static int tasks(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    struct duda_ctx *spawned = d;
    const struct duda_task huge = {.name = "huge", .fn = run_task, .stack = SIZE_MAX}, task = {.name = "task", .fn = run_task};
    EXPECT(duda_task_spawn(duda_worker(d), &huge, &spawned) == -EINVAL && !spawned);
    task_failures[0] = '\0';
    EXPECT(duda_task_spawn(duda_worker(d), &task, &spawned) == 0 && duda_sleep(d, 100) == 0);
    mk_buf_add(&failures, mk_str_from_c(task_failures));
    return report(d);
}

static void wait_when_ended(void *ctx)
{
    struct duda_ctx *d = ctx;
    failures = mk_buf_growing(1 << 16);
    struct duda_wait w;
    mk_str text;
    int e = duda_cancelled(d); /* a deferred function's wait succeeds, or fails as the handler's waits did */
    EXPECT(duda_sleep(d, 1) == e && duda_wait_begin(d, &w, ignore_wait) == e);
    if (!e)
        duda_wait_end(&w);
    int f = duda_wait_fd(d, -1, MK_READABLE, 1), t = duda_topic_receive(d, 1, &text);
    if (f >= 0 || t >= 0)
        mk_buf_addf(&failures, "waits return %d and %d\n", f, t);
    EXPECT(duda_write(d, empty) <= 0 && duda_lock(d, MK_STR("late"), 1) == e);
    keep();
}

/* Keeps waiting although its deadline has passed, and is terminated. */
static int stubborn(struct duda_ctx *d)
{
    task_failures[0] = '\0';
    int e = duda_deadline(d, 1);
    e = e ? e : duda_defer(d, wait_when_ended, d);
    while (duda_sleep(d, 10) || e == 0)
        continue;
    return e;
}

static void ignore_message(struct duda_websocket *s, enum mk_websocket_kind kind, mk_str data, void *ctx)
{
    (void)s, (void)kind, (void)data, (void)ctx;
}

static void log_close(struct duda_websocket *s, unsigned code, void *ctx)
{
    (void)s, (void)code;
    mk_worker_log(ctx, MK_LOG_WARN, "the stubborn socket is closed");
}

DUDA_TOPIC(backlog, "backlog", .keep = 300);

/* The client does not read: the handler is cancelled while it sends the kept messages, and is terminated. */
static int stubborn_socket(struct duda_ctx *d)
{
    static const struct duda_websocket_options options = {.on_message = ignore_message, .on_close = log_close, .queue_max = 65536};
    struct duda_websocket *s;
    int e = 0;
    for (int i = 0; i < 300 && !e; i++)
        e = duda_topic_publish(d, &backlog, large(30000));
    e = e ? e : duda_websocket_open(d, &options, duda_worker(d), &s);
    e = e ? e : duda_deadline(d, 100);
    while (!e && duda_topic_attach_after(d, s, &backlog, MK_STR("0")))
        continue;
    return e;
}

static int deferred(struct duda_ctx *d)
{
    failures = mk_buf_growing(1 << 16);
    mk_buf_add(&failures, mk_str_from_c(task_failures)); /* of the tasks of the last request */
    task_failures[0] = '\0';
    int e = report(d);
    return e ? e : duda_defer(d, wait_when_ended, d);
}

DUDA_SERVICE(hostile, DUDA_GET("/request/:id", request, "Reads."), DUDA_GET("/response", response, "Writes."),
    DUDA_GET("/streamed", streamed, "Streams."), DUDA_GET("/waits", waits, "Waits."), DUDA_GET("/topics", topics, "Subscribes."),
    DUDA_GET("/cookies", cookies, "Sets cookies."), DUDA_GET("/crypto", crypto, "Verifies."), DUDA_GET("/texts", texts, "Parses."),
    DUDA_GET("/packages", packages, "Stores."), DUDA_GET("/clients", clients, "Sends."), DUDA_GET("/tasks", tasks, "Spawns."),
    DUDA_GET("/deferred", deferred, "Defers."), DUDA_GET("/stubborn", stubborn, "Waits."),
    DUDA_GET("/stubborn-socket", stubborn_socket, "Attaches."), DUDA_GET("/lifetimes/:id", lifetimes, "Keeps texts."));
"""

# Without this option, AddressSanitizer ends the program when an allocation is too large.
FAILING = {"ASAN_OPTIONS": ENVIRONMENT["ASAN_OPTIONS"] + ":allocator_may_return_null=1"}
QUERY = "word=x&large=9223372036854775808&nul=a%00b"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("hostile"), "hostile", SOURCE, packages=PACKAGES)


@pytest.mark.parametrize("path", ["request/7?" + QUERY, "response", "streamed", "waits", "topics", "cookies", "crypto", "texts", "packages", "clients",
                                  "tasks", "deferred", "lifetimes/7?a=b"])
def test_hostile_calls_return_documented_errors(monkey, tmp_path, service, path):
    if path.startswith(("clients", "lifetimes")):
        needs_processes("it starts subprocesses")
    top = (f"[KV]\n    Folder {tmp_path}/data\n[DUDA]\n    WritablePaths {tmp_path}\n[HTTP_CLIENT]\n    Server 127.0.0.1:1\n"
           "[SMTP]\n    Server 127.0.0.1:1\n    EhloName a\n[SESSIONS]\n    Store memory\n")
    server = monkey(plugins=[service], top=top, environment=FAILING)
    server.allow(".*")
    for _ in range(2):
        assert server.get(f"/{path}", fields=[("Cookie", "c=d")]).text.removeprefix("begun\n") == "end\n"
    assert server.get("/request/1?" + QUERY).status == 200


def test_terminated_handler_may_call_functions_in_its_deferred_functions(monkey, service):
    server = monkey(plugins=[service], top="[HTTP_CLIENT]\n    Server 127.0.0.1:1\n", environment=FAILING)
    server.allow(".*")
    assert server.get("/stubborn").status == 504
    assert server.get("/deferred").text == "end\n"


def test_handler_that_is_terminated_while_it_attaches_a_websocket_harms_nobody(monkey, service):
    server = monkey(plugins=[service], top="[HTTP_CLIENT]\n    Server 127.0.0.1:1\n[DUDA]\n    TopicMemory 64M\n", environment=FAILING)
    server.allow(".*")
    with server.connect() as c:
        c.send(b"GET /stubborn-socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
        wait_until(lambda: "stubborn_socket() in" in server.log and "was terminated" in server.log, "it is terminated")
        assert "the stubborn socket is closed" not in server.log
    wait_until(lambda: "the stubborn socket is closed" in server.log, "the callback is called although the handler has not returned")
    for _ in range(3):
        assert server.get("/request/1?" + QUERY).status == 200
