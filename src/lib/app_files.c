/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/app_files.h"

#include "base/mem.h"
#include "base/sha1.h"
#include "files/mime.h"
#include "http/date.h"
#include "http/negotiate.h"
#include "web/representation.h"
#include "web/static.h"
#include "web/web.h"

enum { VARIANTS = 3, ETAG_BYTES = 10, TEXT_MAX = 512 };

static const mk_str codings[VARIANTS] = {MK_STR_INIT("br"), MK_STR_INIT("gzip"), MK_STR_INIT("identity")};

/* The file with one content coding, or without any. */
struct variant {
    struct mk_open_file *file; /* NULL: no such variant */
    struct mk_representation r;
};

struct mk_app_file {
    struct mk_app_file *next;
    struct variant variants[VARIANTS]; /* as in `codings` */
};

/* ---- Adding ---- */

/* Variants have different bytes, and therefore different ETags. */
static void add_etag(struct mk_representation *r, struct mk_buf *text)
{
    unsigned char digest[MK_SHA1_LEN];
    char room[2 * ETAG_BYTES + 3];
    struct mk_buf etag = mk_buf_fixed(room, sizeof room);
    mk_sha1(r->file->content, digest);
    mk_buf_add_char(&etag, '"');
    for (size_t i = 0; i < ETAG_BYTES; i++)
        mk_buf_addf(&etag, "%02x", digest[i]);
    mk_buf_add_char(&etag, '"');
    mk_representation_append_header(r, &r->about, text, MK_STR("ETag"), mk_buf_str(&etag));
    r->validators.etag = r->fields[0].value;
}

static void add_last_modified(struct mk_representation *r, struct mk_buf *text, int64_t modified)
{
    char date[MK_DATE_LEN];
    r->validators.modified = modified ? modified : MK_MODIFIED_NONE;
    if (!modified)
        return;
    mk_date_write(date, modified);
    mk_representation_append_header(r, &r->about, text, MK_STR("Last-Modified"),
                                    mk_str_of(date, sizeof date));
}

static void add_content_type(struct mk_representation *r, struct mk_buf *text,
                             const struct mk_memory_file *file)
{
    char room[256];
    struct mk_buf full = mk_buf_fixed(room, sizeof room);
    const struct mk_mime builtin = {.default_type = MK_STR_INIT("application/octet-stream")};
    mk_buf_add(&full,
               file->type ? mk_str_from_c(file->type) : mk_mime_find(&builtin, mk_str_from_c(file->path)));
    if (!file->type && mk_mime_wants_charset(mk_buf_str(&full)))
        mk_buf_add(&full, MK_STR("; charset=utf-8"));
    text->failed |= full.failed;
    mk_representation_append_header(r, &r->form, text, MK_STR("Content-Type"), mk_buf_str(&full));
    r->type = r->form.n ? r->form.fields[0].value : MK_STR_NULL;
}

static bool add_variant(struct variant *v, mk_str coding, mk_str content, const struct mk_memory_file *file)
{
    bool is_coded = !mk_str_eq(coding, codings[VARIANTS - 1]);
    v->file = mk_mem_zalloc(1, sizeof *v->file);
    v->r.room = mk_mem_alloc(TEXT_MAX);
    if (!v->file || !v->r.room)
        return false;
    struct mk_buf text = mk_buf_fixed(v->r.room, TEXT_MAX);
    *v->file = (struct mk_open_file){.content = content.p ? content : MK_STR(""),
                                     .size = content.len,
                                     .kind = MK_OPEN_FILE,
                                     .fd = -1,
                                     .refs = 1};
    v->r.file = v->file;
    v->r.coded = is_coded;
    add_etag(&v->r, &text);
    add_last_modified(&v->r, &text, file->modified);
    if (file->br.p || file->gzip.p)
        mk_representation_append_header(&v->r, &v->r.about, &text, MK_STR("Vary"), MK_STR("Accept-Encoding"));
    add_content_type(&v->r, &text, file);
    if (is_coded)
        mk_representation_append_header(&v->r, &v->r.form, &text, MK_STR("Content-Encoding"), coding);
    mk_representation_append_header(&v->r, &v->r.form, &text, MK_STR("Accept-Ranges"), MK_STR("bytes"));
    v->r.whole.text = mk_buf_str(&text);
    v->r.whole.fields = v->r.fields;
    return !text.failed;
}

struct mk_app_file *mk_app_files_add(struct mk_app_files *p, const struct mk_memory_file *file)
{
    const mk_str contents[VARIANTS] = {file->br, file->gzip, file->content};
    struct mk_app_file *f = mk_mem_zalloc(1, sizeof *f);
    bool ok = f;
    if (!f)
        return NULL;
    f->next = p->first;
    p->first = f;
    for (size_t i = 0; i < VARIANTS && ok; i++)
        if (contents[i].p || i == VARIANTS - 1)
            ok = add_variant(&f->variants[i], codings[i], contents[i], file);
    return ok ? f : NULL; /* freed with all other files */
}

void mk_app_files_free(struct mk_app_files *p)
{
    while (p->first) {
        struct mk_app_file *f = p->first;
        p->first = f->next;
        for (size_t i = 0; i < VARIANTS; i++) {
            mk_mem_free(f->variants[i].file);
            mk_mem_free(f->variants[i].r.room);
        }
        mk_mem_free(f);
    }
}

/* ---- Serving ---- */

enum mk_verdict mk_app_file_serve(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct mk_app_file *f = data;
    const struct mk_representation *best = &f->variants[VARIANTS - 1].r;
    unsigned best_q = 0;
    for (size_t i = 0; i < VARIANTS; i++) {
        unsigned q = !f->variants[i].file
                         ? 0
                         : mk_negotiate_coding_q(&request->fields, MK_HEADER_ACCEPT_ENCODING, codings[i]);
        if (q > best_q) {
            best_q = q;
            best = &f->variants[i].r;
        }
    }
    return mk_static_serve_representation(request, response, best);
}
