/* SPDX-License-Identifier: Apache-2.0 */
#include "web/representation.h"

#include <limits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "files/sibling_suffixes.h"
#include "http/date.h"
#include "http/etag.h"
#include "http/negotiate.h"
#include "http/serialize.h"

enum { NO_CODING = -1 };

static const mk_str codings[MK_CODINGS] = {MK_STR_INIT("br"), MK_STR_INIT("zstd"), MK_STR_INIT("gzip")};
static const mk_str suffixes[MK_CODINGS] = {MK_STR_INIT(".br"), MK_STR_INIT(".zst"), MK_STR_INIT(".gz")};

enum {
    /* Space for the header text of one representation: a date, an ETag, names. text_size_max() adds the
     * values of unlimited length. */
    TEXT_MAX = 512,
    ALL = (1 << MK_CODINGS) - 1,
};

/* The representations of a file, stored with the open file. */
struct representations {
    struct mk_open_file_attachment note;
    struct mk_representation self;
    struct mk_representation *others[MK_CODINGS]; /* NULL: no such variant */
    uint64_t looked_ms;                           /* time of the last search for variants */
    bool was_searched;
    bool has_variant;  /* a variant exists */
    bool is_permanent; /* kept as long as the cache entry of the file, so preparing heads is worthwhile */
};

static void free_encoded_variant(struct representations *f, size_t i)
{
    if (!f->others[i])
        return;
    mk_open_file_release(f->others[i]->file);
    mk_mem_free(f->others[i]->room);
    mk_mem_free(f->others[i]);
    f->others[i] = NULL;
}

static void free_representations(struct mk_open_file_attachment *note)
{
    struct representations *f = MK_CONTAINER(note, struct representations, note);
    for (size_t i = 0; i < MK_CODINGS; i++)
        free_encoded_variant(f, i);
    mk_mem_free(f->self.room);
    mk_mem_free(f);
}

void mk_representation_append_header(struct mk_representation *r, struct mk_header_block *b,
                                     struct mk_buf *text, mk_str name, mk_str value)
{
    struct mk_header_field *field = &r->fields[r->whole.n];
    char *line = text->p + text->len;
    mk_buf_add(text, name);
    mk_buf_add(text, MK_STR(": "));
    mk_buf_add(text, value);
    mk_buf_add(text, MK_STR("\r\n"));
    if (text->failed)
        return;
    *field = (struct mk_header_field){.name = mk_str_of(line, name.len),
                                      .value = mk_str_of(line + name.len + 2, value.len)};
    if (b->n == 0) {
        b->fields = field;
        b->text.p = line;
    }
    b->n++;
    b->text.len = (size_t)(text->p + text->len - b->text.p);
    r->whole.n++;
}

static void append_etag(struct mk_representation *r, struct mk_buf *text, int coding)
{
    char etag[MK_ETAG_MAX + 8];
    size_t len = mk_etag_write(etag, r->file->mtime_ns, r->file->size);
    if (coding != NO_CODING) { /* two representations of the same size and time must have different ETags */
        etag[len - 1] = '-';
        mk_str suffix = mk_str_skip(suffixes[coding], 1);
        memcpy(etag + len, suffix.p, suffix.len);
        len += suffix.len;
        etag[len++] = '"';
    }
    mk_representation_append_header(r, &r->about, text, MK_STR("ETag"), mk_str_of(etag, len));
    r->validators.etag = r->fields[0].value;
}

static void append_last_modified(struct mk_representation *r, struct mk_buf *text)
{
    char date[MK_DATE_LEN];
    int64_t seconds = r->file->mtime_ns / 1000000000, now = mk_clock_unix();
    if (seconds > now) /* RFC 9110, section 8.8.2.1: Last-Modified must not be in the future */
        seconds = now;
    r->validators.modified = seconds;
    mk_date_write(date, seconds);
    mk_representation_append_header(r, &r->about, text, MK_STR("Last-Modified"),
                                    mk_str_of(date, sizeof date));
}

static mk_str find_cache_control(const struct mk_vhost *host, const struct mk_root *root, mk_str name)
{
    char buf[2 * PATH_MAX];
    struct mk_buf path = mk_buf_fixed(buf, sizeof buf);
    mk_buf_add(&path, root->at);
    mk_buf_add_char(&path, '/');
    mk_buf_add(&path, name);
    for (size_t i = 0; i < host->n_cache_rules; i++)
        if (mk_pattern_matches(&host->cache_rules[i].match, mk_buf_str(&path)))
            return host->cache_rules[i].value;
    return (mk_str){NULL, 0};
}

static void append_content_type(struct mk_representation *r, struct mk_buf *text, mk_str type)
{
    char with_charset[128];
    struct mk_buf full = mk_buf_fixed(with_charset, sizeof with_charset);
    mk_buf_add(&full, type);
    if (mk_mime_wants_charset(type))
        mk_buf_add(&full, MK_STR("; charset=utf-8"));
    mk_representation_append_header(r, &r->form, text, MK_STR("Content-Type"),
                                    full.failed ? type : mk_buf_str(&full));
    r->type = r->form.fields[0].value;
}

static mk_str write_cached_head_http1(struct mk_buf *text, mk_str fields, uint64_t size)
{
    char *from = text->p + text->len;
    mk_serialize_status_line(text, 200);
    mk_buf_add(text, fields);
    mk_serialize_header_num(text, MK_STR("Content-Length"), size);
    return mk_str_of(from, (size_t)(text->p + text->len - from));
}

/* Writes the cached head, HPACK-encoded. */
static mk_str write_cached_head_http2(struct mk_buf *text, const struct mk_representation *r,
                                      mk_h2_head_writer *pack)
{
    char *from = text->p + text->len;
    pack(text, &r->whole, r->file->size);
    size_t len = (size_t)(text->p + text->len - from);
    return len ? mk_str_of(from, len) : MK_STR_NULL;
}

static void rebase_str(mk_str *s, const char *from, char *to)
{
    if (s->p)
        s->p = to + (s->p - from);
}

/* Copies the text of a permanent representation to memory of exactly its size. */
static bool shrink_text_memory(struct mk_representation *r, const struct mk_buf *text)
{
    r->room = text->failed ? NULL : mk_mem_alloc(text->len);
    if (!r->room)
        return false;
    memcpy(r->room, text->p, text->len);
    mk_str *all[] = {&r->validators.etag, &r->type,        &r->about.text,          &r->form.text,
                     &r->whole.text,      &r->whole.ready, &r->whole.cached_head_h2};
    for (size_t i = 0; i < MK_LEN(all); i++)
        rebase_str(all[i], text->p, r->room);
    for (unsigned i = 0; i < r->whole.n; i++) {
        rebase_str(&r->fields[i].name, text->p, r->room);
        rebase_str(&r->fields[i].value, text->p, r->room);
    }
    return true;
}

/* Properties from which a representation is built. */
struct representation_origin {
    const struct mk_vhost *host;
    mk_str type, cached; /* media type and Cache-Control of the requested file, also for its variants */
    int coding;
    bool varies, is_permanent;
};

static struct representation_origin describe_origin(const struct representations *f,
                                                    const struct mk_vhost *host, int coding, bool varies)
{
    mk_str name = mk_open_file_path(f->self.file);
    return (struct representation_origin){.host = host,
                                          .type = mk_mime_find(host->mime, name),
                                          .cached = find_cache_control(host, f->self.file->root, name),
                                          .coding = coding,
                                          .varies = varies,
                                          .is_permanent = f->is_permanent};
}

static void write_representation_headers(struct mk_representation *r, struct mk_buf *text,
                                         const struct representation_origin *o)
{
    append_etag(r, text, o->coding);
    append_last_modified(r, text);
    if (o->cached.p)
        mk_representation_append_header(r, &r->about, text, MK_STR("Cache-Control"), o->cached);
    if (o->varies)
        mk_representation_append_header(r, &r->about, text, MK_STR("Vary"), MK_STR("Accept-Encoding"));
    append_content_type(r, text, o->type);
    r->coded = o->coding != NO_CODING;
    if (r->coded)
        mk_representation_append_header(r, &r->form, text, MK_STR("Content-Encoding"), codings[o->coding]);
    if (o->host->ranges)
        mk_representation_append_header(r, &r->form, text, MK_STR("Accept-Ranges"), MK_STR("bytes"));
    r->whole.text = mk_buf_str(text);
    r->whole.fields = r->fields;
    if (!o->is_permanent)
        return;
    r->whole.ready = write_cached_head_http1(text, r->whole.text, r->file->size);
    if (o->host->pack_head)
        r->whole.cached_head_h2 = write_cached_head_http2(text, r, o->host->pack_head);
}

/* Headers are written up to three times: as text, and in each prepared head. */
static size_t text_size_max(const struct representation_origin *o)
{
    return (TEXT_MAX + o->cached.len + o->type.len) * (o->is_permanent ? 3 : 1);
}

static bool build_representation(struct mk_representation *r, const struct representation_origin *o)
{
    size_t cap = text_size_max(o);
    char *buf = mk_mem_alloc(cap);
    if (!buf)
        return false;
    struct mk_buf text = mk_buf_fixed(buf, cap);
    write_representation_headers(r, &text, o);
    if (!o->is_permanent && !text.failed) {
        r->room = buf;
        return true;
    }
    bool ok = shrink_text_memory(r, &text);
    mk_mem_free(buf);
    return ok;
}

static bool build_identity_representation(struct representations *f, const struct mk_vhost *host, bool varies)
{
    struct mk_representation before = f->self;
    struct representation_origin o = describe_origin(f, host, NO_CODING, varies);
    f->self = (struct mk_representation){.file = before.file};
    if (!build_representation(&f->self, &o)) {
        f->self = before;
        return false;
    }
    mk_mem_free(before.room);
    return true;
}

enum {
    LASTING_SIZE = sizeof(struct representations) + 640
}; /* memory to reserve, including the header text of a typical file */

MK_COLD static struct representations *new_representations(struct mk_open_file *file,
                                                           const struct mk_vhost *host, uint64_t now_ms)
{
    struct representations *f = mk_mem_zalloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->note.free = free_representations;
    f->self.file = file;
    f->is_permanent = mk_file_cache_may_attach(file, LASTING_SIZE, now_ms);
    if (!build_identity_representation(f, host, false)) {
        mk_mem_free(f);
        return NULL;
    }
    mk_file_cache_attach(file, &f->note, f->is_permanent ? LASTING_SIZE : 0);
    return f;
}

static struct mk_open_file *open_precompressed_file(const struct mk_open_file *file, mk_str suffix,
                                                    uint64_t now_ms)
{
    char buf[PATH_MAX];
    struct mk_buf path = mk_buf_fixed(buf, sizeof buf);
    struct mk_open_file *found;
    mk_buf_add(&path, mk_open_file_path(file));
    mk_buf_add(&path, suffix);
    if (path.failed || mk_file_cache_acquire(file->cache, file->root, mk_buf_str(&path), now_ms, &found))
        return NULL;
    /* A variant older than the file was made from an earlier version of it. */
    if (found->kind == MK_OPEN_FILE && found->mtime_ns / 1000000000 >= file->mtime_ns / 1000000000)
        return found;
    mk_open_file_release(found);
    return NULL;
}

static struct mk_representation *new_encoded_variant(const struct representations *f,
                                                     struct mk_open_file *variant_file,
                                                     const struct mk_vhost *host, int coding)
{
    struct representation_origin o = describe_origin(f, host, coding, true);
    struct mk_representation *r = mk_mem_zalloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->file = variant_file;
    if (build_representation(r, &o))
        return r;
    mk_mem_free(r);
    return NULL;
}

static void refresh_encoded_variant(struct representations *f, size_t i, const struct mk_vhost *host,
                                    uint64_t now_ms)
{
    struct mk_open_file *found = open_precompressed_file(f->self.file, suffixes[i], now_ms);
    if (found && f->others[i] && f->others[i]->file == found) {
        mk_open_file_release(found);
        return;
    }
    free_encoded_variant(f, i);
    if (found)
        f->others[i] = new_encoded_variant(f, found, host, (int)i);
    if (found && !f->others[i])
        mk_open_file_release(found);
}

static uint32_t missing_codings(const struct representations *f)
{
    uint32_t absent = 0;
    for (size_t i = 0; i < MK_CODINGS; i++)
        absent |= (uint32_t)!f->others[i] << i;
    return absent;
}

/* Refreshes the variants. The cache entry of the file remembers which variants are missing, so that later
 * temporary representations need not search for them. */
static void refresh_encoded_variants(struct representations *f, const struct mk_vhost *host, uint64_t now_ms)
{
    struct mk_open_file *file = f->self.file;
    bool remembers = !f->was_searched && (uint32_t)now_ms - file->absent_ms < file->cache->limits.recheck_ms;
    uint32_t absent = remembers ? file->absent : 0;
    uint32_t beside =
        absent == ALL
            ? 0
            : mk_sibling_suffixes_find(file, suffixes, MK_CODINGS, now_ms, mk_clock_unix()) & ~absent;
    for (size_t i = 0; i < MK_CODINGS; i++)
        if (beside >> i & 1 || f->others[i])
            refresh_encoded_variant(f, i, host, now_ms);
    file->absent = (uint8_t)missing_codings(f);
    f->has_variant = file->absent != ALL;
    if (!remembers)
        file->absent_ms = (uint32_t)now_ms;
}

/* Refreshes the variants no more often than the files themselves are checked. In-flight responses point into
 * the old data: if another request uses the file, the next request reopens the file instead. */
MK_NOINLINE static void refresh_encoded_variants_if_stale(struct representations *f,
                                                          const struct mk_vhost *host, uint64_t now_ms)
{
    struct mk_open_file *file = f->self.file;
    bool trusted = f->was_searched && now_ms - f->looked_ms < file->cache->limits.recheck_ms;
    bool in_use = file->refs > (file->listed ? 2u : 1u);
    if (trusted)
        return;
    if (f->was_searched && in_use) {
        mk_file_cache_invalidate(file);
        return;
    }
    bool varied = f->self.about.n > 0 && f->has_variant;
    refresh_encoded_variants(f, host, now_ms);
    f->was_searched = true;
    f->looked_ms = now_ms;
    if (f->has_variant != varied)
        (void)build_identity_representation(f, host, f->has_variant);
}

static const struct mk_representation *negotiate_representation(const struct representations *f,
                                                                const struct mk_headers *request_headers)
{
    const struct mk_representation *best = &f->self;
    unsigned best_q = 0;
    if (!f->has_variant)
        return best;
    best_q = mk_negotiate_coding_q(request_headers, MK_HEADER_ACCEPT_ENCODING, MK_STR("identity"));
    for (size_t i = MK_CODINGS; i-- > 0;) {
        unsigned q =
            f->others[i] ? mk_negotiate_coding_q(request_headers, MK_HEADER_ACCEPT_ENCODING, codings[i]) : 0;
        if (q > 0 && q >= best_q) {
            best = f->others[i];
            best_q = q;
        }
    }
    return best;
}

const struct mk_representation *mk_representation_choose(struct mk_open_file *file,
                                                         const struct mk_vhost *host,
                                                         const struct mk_headers *request_headers,
                                                         uint64_t now_ms)
{
    struct representations *f = file->note ? MK_CONTAINER(file->note, struct representations, note)
                                           : new_representations(file, host, now_ms);
    if (!f)
        return NULL;
    if (!host->precompressed)
        return &f->self;
    if (!f->was_searched || mk_headers_has(request_headers, MK_HEADER_ACCEPT_ENCODING))
        refresh_encoded_variants_if_stale(f, host, now_ms);
    return negotiate_representation(f, request_headers);
}
