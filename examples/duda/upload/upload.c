/* SPDX-License-Identifier: Apache-2.0 */
/* A file upload, read in pieces as it arrives: only a few KB are in memory, whatever the size of the file.
 * The response contains the name, size and SHA-256 of the file. The route overrides MaxBodySize. */
#include <duda.h>
#include <duda/crypto.h>
#include <errno.h>

enum { SIZE_MAX_ = 1 << 30 };

static const char page[] =
    "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>upload</title>\n"
    "<form method=post enctype=multipart/form-data>\n"
    "<input type=file name=file aria-label=File required> <button>Send</button></form>\n";

static int show(struct duda_ctx *d)
{
    return duda_html(d, mk_str_from_c(page));
}

struct reading {
    struct duda_ctx *d;
    struct duda_hasher *hasher;
    char room[128];
    struct mk_buf name;
    unsigned long long size;
    bool is_file;
};

/* The file name is for display only. Never use it as a path. */
static int on_part(void *ctx, const struct mk_multipart_part *part)
{
    struct reading *r = ctx;
    r->is_file = part->file_name.p != NULL && r->name.len == 0;
    if (r->is_file)
        mk_file_name_clean(&r->name, part->file_name);
    return 0;
}

static int on_data(void *ctx, mk_str bytes)
{
    struct reading *r = ctx;
    if (!r->is_file)
        return 0;
    r->size += bytes.len;
    return duda_hasher_update(r->hasher, bytes);
}

static void free_hasher(void *ctx)
{
    duda_hasher_free(ctx);
}

static int take(struct duda_ctx *d)
{
    static const struct mk_multipart_ops ops = {.part = on_part, .data = on_data};
    static const struct mk_multipart_limits limits = {.size = SIZE_MAX_, .file = SIZE_MAX_};
    struct reading r = {.d = d, .hasher = duda_hasher_new(DUDA_SHA256)};
    struct duda_hash sum;
    char buf[160];
    struct mk_buf hex = mk_buf_fixed(buf, sizeof buf);
    r.name = mk_buf_fixed(r.room, sizeof r.room);
    int e = r.hasher ? duda_defer(d, free_hasher, r.hasher) : -ENOMEM;
    if (!e)
        e = duda_multipart_read(d, &limits, &ops, &r);
    if (!e && r.name.len == 0)
        return duda_problem(d, 422, "there is no file in the form");
    if (!e)
        e = duda_hasher_final(r.hasher, &sum);
    if (e)
        return e;
    mk_hex_encode(&hex, mk_str_of((const char *)sum.bytes, sum.len));
    return duda_printf(d, "%.*s: %llu bytes, SHA-256 %.*s\n", MK_STR_ARG(mk_buf_str(&r.name)), r.size,
                       MK_STR_ARG(mk_buf_str(&hex)));
}

DUDA_SERVICE(upload, DUDA_GET("/", show, "The form."),
             DUDA_POST("/", take, "Takes a file.", .deadline_ms = 3600000, .body_max = SIZE_MAX_));
