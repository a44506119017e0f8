/* SPDX-License-Identifier: Apache-2.0 */
#include "web/representation.h"

#include "base/clock.h"
#include "http/date.h"
#include "http/etag.h"

#include "unit/headers.h"
#include "unit/site.h"
#include "unit/test.h"

enum { TIME = 1700000000 }; /* Tue, 14 Nov 2023 22:13:20 GMT */

static struct site site;

static void setup(void)
{
    site_setup(&site);
    site_add(&site, "page.html", MK_STR("identity"));
}

static struct mk_open_file *acquire_file(const char *name)
{
    struct mk_open_file *f = NULL;
    assert_int_equal(
        mk_file_cache_acquire(&site.web.files, &site.host.root, mk_str_from_c(name), site.now_ms, &f), 0);
    return f;
}

/* Chooses the representation for a client that accepts these codings (NULL: no Accept-Encoding). */
static const struct mk_representation *choose(struct mk_open_file *f, const char *accepted)
{
    struct mk_header_field buffer[1];
    struct mk_headers wishes;
    mk_headers_init(&wishes, buffer);
    if (accepted)
        assert_true(headers_add(&wishes, 1, MK_STR("Accept-Encoding"), mk_str_from_c(accepted)));
    const struct mk_representation *r = mk_representation_choose(f, &site.host, &wishes, site.now_ms);
    assert_non_null(r);
    return r;
}

static mk_str field(const struct mk_representation *r, const char *name)
{
    for (unsigned i = 0; i < r->whole.n; i++)
        if (mk_str_eq(r->whole.fields[i].name, mk_str_from_c(name)))
            return r->whole.fields[i].value;
    return MK_STR_NULL;
}

/* Checks that the text of a block and its parsed fields agree. */
static void check_block(const struct mk_header_block *b)
{
    char buffer[2048];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    for (unsigned i = 0; i < b->n; i++)
        mk_buf_addf(&text, "%.*s: %.*s\r\n", MK_STR_ARG(b->fields[i].name), MK_STR_ARG(b->fields[i].value));
    assert_true(mk_str_eq(b->text, mk_buf_str(&text)));
}

static void check_blocks(const struct mk_representation *r)
{
    char buffer[2048];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    check_block(&r->about);
    check_block(&r->form);
    check_block(&r->whole);
    assert_int_equal(r->about.n + r->form.n, r->whole.n);
    mk_buf_addf(&text, "HTTP/1.1 200 OK\r\n%.*sContent-Length: %u\r\n", MK_STR_ARG(r->whole.text),
                (unsigned)r->file->size);
    if (r->whole.ready.p) /* cached */
        assert_true(mk_str_eq(r->whole.ready, mk_buf_str(&text)));
    assert_null(r->about.ready.p);
    assert_null(r->form.ready.p);
    assert_true(mk_str_eq(r->validators.etag, field(r, "ETag")));
    assert_true(mk_str_eq(r->type, field(r, "Content-Type")));
}

/* Acquires the file, chooses a representation, compares its coding, and releases the file. */
static void expect_coding(const char *accepted, const char *coding)
{
    struct mk_open_file *f = acquire_file("page.html");
    const struct mk_representation *r = choose(f, accepted);
    mk_str found = field(r, "Content-Encoding");
    if (!mk_str_eq(found, mk_str_from_c(coding)))
        fail_msg("\"%s\" gets \"%.*s\", not \"%s\"", accepted ? accepted : "", MK_STR_ARG(found), coding);
    check_blocks(r);
    mk_open_file_release(f);
}

static void representation_of_file_has_headers(void **state)
{
    (void)state;
    char etag[MK_ETAG_MAX + 1];
    struct mk_open_file *f = acquire_file("page.html");
    const struct mk_representation *r = choose(f, NULL);
    snprintf(etag, sizeof etag, "\"%llx-8\"", (unsigned long long)TIME * 1000000000);
    assert_str(field(r, "ETag"), etag);
    assert_str(field(r, "Last-Modified"), "Tue, 14 Nov 2023 22:13:20 GMT");
    assert_str(field(r, "Content-Type"), "text/html; charset=utf-8");
    assert_str(field(r, "Accept-Ranges"), "bytes");
    assert_int_equal(r->whole.n, 4);
    assert_int_equal(r->validators.modified, TIME);
    assert_ptr_equal(r->file, f);
    check_blocks(r);
    assert_ptr_equal(choose(f, NULL), r);
    mk_open_file_release(f);
}

static void representation_type_follows_extension(void **state)
{
    (void)state;
    site_add(&site, "x.png", MK_STR(""));
    site_add(&site, "x", MK_STR(""));
    struct mk_open_file *png = acquire_file("x.png"), *unknown = acquire_file("x");
    assert_str(choose(png, NULL)->type, "image/png");
    assert_str(choose(unknown, NULL)->type, "application/octet-stream");
    mk_open_file_release(png);
    mk_open_file_release(unknown);
}

static void representation_ranges_off_omits_accept_ranges(void **state)
{
    (void)state;
    site.host.ranges = false;
    struct mk_open_file *f = acquire_file("page.html");
    const struct mk_representation *r = choose(f, NULL);
    assert_null(field(r, "Accept-Ranges").p);
    check_blocks(r);
    mk_open_file_release(f);
}

static void representation_first_cache_rule_applies(void **state)
{
    (void)state;
    static const struct mk_cache_rule rules[] = {
        {.match = {.text = MK_STR_INIT("/a/*"), .kind = MK_PATTERN_PREFIX}, .value = MK_STR_INIT("no-store")},
        {.match = {.text = MK_STR_INIT("*.html"), .kind = MK_PATTERN_SUFFIX},
         .value = MK_STR_INIT("max-age=1")},
        {.match = {.text = MK_STR_INIT("/*"), .kind = MK_PATTERN_ALL}, .value = MK_STR_INIT("max-age=2")},
    };
    site.host.cache_rules = rules;
    site.host.n_cache_rules = MK_LEN(rules) - 1;
    folder_add_folder(&site.folder, "a");
    site_add(&site, "a/x.html", MK_STR(""));
    site_add(&site, "x.css", MK_STR(""));
    struct mk_open_file *a = acquire_file("a/x.html"), *html = acquire_file("page.html"),
                        *css = acquire_file("x.css");
    assert_str(field(choose(a, NULL), "Cache-Control"), "no-store");
    assert_str(field(choose(html, NULL), "Cache-Control"), "max-age=1");
    assert_null(field(choose(css, NULL), "Cache-Control").p);
    check_blocks(choose(html, NULL));
    mk_open_file_release(a);
    mk_open_file_release(html);
    mk_open_file_release(css);
}

static void representation_last_modified_is_never_in_future(void **state)
{
    (void)state;
    char date[MK_DATE_LEN + 1] = "";
    folder_set_time(&site.folder, "page.html", 4000000000);
    struct mk_open_file *f = acquire_file("page.html");
    const struct mk_representation *r = choose(f, NULL);
    assert_true(r->validators.modified <= mk_clock_unix());
    mk_date_write(date, r->validators.modified);
    assert_str(field(r, "Last-Modified"), date);
    mk_open_file_release(f);
}

/* ---- Precompressed files ---- */

static void add_neighbors(void)
{
    site_add(&site, "page.html.gz", MK_STR("gzip"));
    site_add(&site, "page.html.br", MK_STR("br"));
    site_add(&site, "page.html.zst", MK_STR("zstd"));
}

static void representation_follows_accept_encoding(void **state)
{
    (void)state;
    add_neighbors();
    expect_coding(NULL, "");
    expect_coding("", "");
    expect_coding("gzip", "gzip");
    expect_coding("x-gzip", "gzip");
    expect_coding("zstd", "zstd");
    expect_coding("br", "br");
    expect_coding("gzip, br, zstd", "br");
    expect_coding("gzip, zstd", "zstd");
    expect_coding("*", "br");
    expect_coding("br;q=0.5, gzip", "gzip");
    expect_coding("br;q=0, gzip;q=0.1", "gzip");
    expect_coding("br;q=0, *", "zstd");
    expect_coding("deflate, compress", "");
    expect_coding("identity, gzip;q=0.9", "");
    expect_coding("identity, gzip", "gzip");
    expect_coding("gzip;q=0", "");
    expect_coding("*;q=0", ""); /* no other representation is better */
}

static void representation_only_existing_codings_are_chosen(void **state)
{
    (void)state;
    expect_coding("gzip, br, zstd", "");
    site_add(&site, "page.html.gz", MK_STR("gzip"));
    site.now_ms += 1000;
    expect_coding("gzip, br, zstd", "gzip");
    expect_coding("br, zstd", "");
    expect_coding("gzip;q=0.1, br", "gzip");
}

static void representation_each_coding_has_headers(void **state)
{
    (void)state;
    add_neighbors();
    struct mk_open_file *f = acquire_file("page.html");
    const struct mk_representation *self = choose(f, NULL), *gzip = choose(f, "gzip"), *br = choose(f, "br");
    assert_str(field(gzip, "Content-Type"), "text/html; charset=utf-8");
    assert_str(field(gzip, "Content-Encoding"), "gzip");
    assert_int_equal(gzip->file->size, 4);
    assert_int_equal(br->file->size, 2);
    assert_null(field(self, "Content-Encoding").p);
    assert_str(field(self, "Vary"), "Accept-Encoding");
    assert_str(field(gzip, "Vary"), "Accept-Encoding");
    assert_false(mk_str_eq(self->validators.etag, gzip->validators.etag));
    assert_false(mk_str_eq(br->validators.etag, gzip->validators.etag));
    assert_true(mk_etag_is_valid(gzip->validators.etag));
    mk_open_file_release(f);
}

static void representation_codings_have_distinct_etags(void **state)
{
    (void)state;
    site_add(&site, "page.html.gz", MK_STR("12345678"));
    site_add(&site, "page.html.br", MK_STR("12345678"));
    struct mk_open_file *f = acquire_file("page.html");
    mk_str self = choose(f, NULL)->validators.etag, gzip = choose(f, "gzip")->validators.etag,
           br = choose(f, "br")->validators.etag;
    assert_false(mk_str_eq(self, gzip) || mk_str_eq(self, br) || mk_str_eq(gzip, br));
    mk_open_file_release(f);
}

static void representation_without_precompressed_files_has_no_vary(void **state)
{
    (void)state;
    struct mk_open_file *f = acquire_file("page.html");
    assert_null(field(choose(f, "gzip"), "Vary").p);
    mk_open_file_release(f);
}

static void representation_precompressed_files_can_be_off(void **state)
{
    (void)state;
    add_neighbors();
    site.host.precompressed = false;
    expect_coding("gzip, br, zstd", "");
    struct mk_open_file *f = acquire_file("page.html");
    assert_null(field(choose(f, "gzip"), "Vary").p);
    mk_open_file_release(f);
}

static void representation_outdated_precompressed_file_is_ignored(void **state)
{
    (void)state;
    add_neighbors();
    folder_set_time(&site.folder, "page.html.br", TIME - 1);
    folder_set_time(&site.folder, "page.html.gz", TIME + 1);
    expect_coding("br, gzip", "gzip");
    expect_coding("br", "");
    expect_coding("zstd", "zstd"); /* modified in the same second */
}

static void representation_precompressed_must_be_regular_file(void **state)
{
    (void)state;
    folder_add_folder(&site.folder, "page.html.br");
    assert_int_equal(mkfifoat(site.folder.fd, "page.html.gz", 0644), 0);
    expect_coding("br, gzip", "");
}

static void representation_precompressed_files_may_appear_and_disappear(void **state)
{
    (void)state;
    expect_coding("gzip", "");
    site_add(&site, "page.html.gz", MK_STR("gzip"));
    expect_coding("gzip", ""); /* the cache remembers for a second that the file is absent */
    site.now_ms += 1000;
    expect_coding("gzip", "gzip");
    struct mk_open_file *f = acquire_file("page.html");
    assert_str(field(choose(f, NULL), "Vary"), "Accept-Encoding");
    mk_open_file_release(f);
    assert_int_equal(unlinkat(site.folder.fd, "page.html.gz", 0), 0);
    site.now_ms += 1000;
    expect_coding("gzip", "");
    f = acquire_file("page.html");
    assert_null(field(choose(f, NULL), "Vary").p);
    mk_open_file_release(f);
}

static void representation_changed_precompressed_file_is_reloaded(void **state)
{
    (void)state;
    site_add(&site, "page.html.gz", MK_STR("gzip"));
    expect_coding("gzip", "gzip");
    site_add(&site, "page.html.gz", MK_STR("longer gzip"));
    site.now_ms += 1000;
    struct mk_open_file *f = acquire_file("page.html");
    const struct mk_representation *r = choose(f, "gzip");
    assert_int_equal(r->file->size, 11);
    assert_str(r->file->content, "longer gzip");
    mk_open_file_release(f);
}

static void representation_in_use_is_not_changed(void **state)
{
    (void)state;
    struct mk_open_file *sending = acquire_file("page.html");
    const struct mk_representation *before = choose(sending, "gzip");
    mk_str text = before->whole.text;
    char copy[1024];
    assert_true(text.len < sizeof copy);
    memcpy(copy, text.p, text.len);
    for (int i = 0; i < 3; i++) {
        site_add(&site, "page.html.gz", MK_STR("gzip"));
        site.now_ms += 1000;
        struct mk_open_file *f = acquire_file("page.html");
        (void)choose(f, "gzip");
        mk_open_file_release(f);
    }
    expect_coding("gzip", "gzip"); /* later requests eventually get the new file */
    assert_ptr_equal(before->file, sending);
    assert_true(mk_str_eq(before->whole.text, mk_str_of(copy, text.len)));
    mk_open_file_release(sending);
}

static void representation_works_without_cache(void **state)
{
    (void)state;
    static const struct mk_file_cache_limits none = {.files = 0, .small = 100};
    mk_file_cache_fini(&site.web.files);
    assert_int_equal(mk_file_cache_init(&site.web.files, &none), 0);
    add_neighbors();
    expect_coding("br", "br");
    expect_coding(NULL, "");
}

static void init_cache(const struct mk_file_cache_limits *limits)
{
    mk_file_cache_fini(&site.web.files);
    assert_int_equal(mk_file_cache_init(&site.web.files, limits), 0);
}

static void pack(struct mk_buf *out, const struct mk_header_block *whole, uint64_t size)
{
    mk_buf_addf(out, "%u fields, %u bytes", whole->n, (unsigned)size);
}

static void representation_only_cached_files_have_prepared_heads(void **state)
{
    (void)state;
    site.host.pack_head = pack;
    struct mk_open_file *f = acquire_file("page.html");
    const struct mk_representation *r = choose(f, NULL);
    assert_non_null(r->whole.ready.p);
    assert_true(mk_str_ends(r->whole.cached_head_h2, MK_STR(" bytes")));
    mk_open_file_release(f);
    init_cache(&(struct mk_file_cache_limits){.files = 64, .small = 100, .recheck_ms = 1000});
    f = acquire_file("page.html");
    r = choose(f, NULL);
    check_blocks(r);
    assert_null(r->whole.ready.p);
    assert_null(r->whole.cached_head_h2.p);
    assert_ptr_equal(choose(f, NULL), r); /* the representation is valid as long as the request */
    mk_open_file_release(f);
    assert_null(f->note);
    assert_true(site.web.files.memory < 100); /* the cache has only data about the folder */
}

static void representation_absence_is_cached_without_memory(void **state)
{
    (void)state;
    init_cache(&(struct mk_file_cache_limits){.files = 64, .small = 100, .recheck_ms = 1000});
    site.now_ms += 5000;
    expect_coding("gzip", "");
    site_add(&site, "page.html.gz", MK_STR("gzip"));
    site.now_ms += 999;
    expect_coding("gzip", "");
    site.now_ms += 1;
    expect_coding("gzip", "gzip");
    expect_coding("br, gzip", "gzip");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(representation_of_file_has_headers, setup),
        fixture_test(representation_type_follows_extension, setup),
        fixture_test(representation_ranges_off_omits_accept_ranges, setup),
        fixture_test(representation_first_cache_rule_applies, setup),
        fixture_test(representation_last_modified_is_never_in_future, setup),
        fixture_test(representation_follows_accept_encoding, setup),
        fixture_test(representation_only_existing_codings_are_chosen, setup),
        fixture_test(representation_each_coding_has_headers, setup),
        fixture_test(representation_codings_have_distinct_etags, setup),
        fixture_test(representation_without_precompressed_files_has_no_vary, setup),
        fixture_test(representation_precompressed_files_can_be_off, setup),
        fixture_test(representation_outdated_precompressed_file_is_ignored, setup),
        fixture_test(representation_precompressed_must_be_regular_file, setup),
        fixture_test(representation_precompressed_files_may_appear_and_disappear, setup),
        fixture_test(representation_changed_precompressed_file_is_reloaded, setup),
        fixture_test(representation_in_use_is_not_changed, setup),
        fixture_test(representation_works_without_cache, setup),
        fixture_test(representation_only_cached_files_have_prepared_heads, setup),
        fixture_test(representation_absence_is_cached_without_memory, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
