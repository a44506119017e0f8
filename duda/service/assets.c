/* SPDX-License-Identifier: Apache-2.0 */
#include "service/assets.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/text.h>
#include <stdlib.h>
#include <unistd.h>

#include "service/response.h"
#include "service/service_folder.h"
#include "service/url.h"

enum {
    FILE_SIZE_MAX = 16 << 20,
    TOTAL_MAX = 64 << 20,
    TAG_BYTES = 5,
    TAG_LEN = 2 * TAG_BYTES,
    ETAG_BYTES = 12,
    NAME_MAX_LEN = 200,
};

struct asset {
    char name[NAME_MAX_LEN + 1];             /* "img/logo.png" */
    char tagged[NAME_MAX_LEN + TAG_LEN + 2]; /* "img/logo.0123456789.png" */
    char etag[2 * ETAG_BYTES + 1];
    struct mk_buf content;
};

struct duda_assets {
    mk_str prefix; /* "/static" of DUDA_ASSETS("/static") */
    struct asset **at;
    size_t n, size;
    struct asset_key *names, *tags; /* sorted: the `name` and the `tagged` of each asset */
};

struct asset_key {
    mk_str text;
    const struct asset *asset;
};

/* ---- Loading ---- */

/* Returns the offset of the extension in the name; name.len if there is none. */
static size_t extension_at(mk_str name)
{
    size_t slash = mk_str_find_last(name, '/'), dot = mk_str_find_last(name, '.');
    size_t begin = slash == MK_STR_NONE ? 0 : slash + 1;
    return dot == MK_STR_NONE || dot <= begin ? name.len : dot;
}

static void set_fingerprint(struct asset *a)
{
    char digest[32];
    mk_str name = mk_str_from_c(a->name);
    size_t dot = extension_at(name);
    struct mk_buf etag = mk_buf_fixed(a->etag, sizeof a->etag - 1),
                  tagged = mk_buf_fixed(a->tagged, sizeof a->tagged - 1);
    mk_hmac_sha256(MK_STR("duda asset"), mk_buf_str(&a->content), digest);
    mk_hex_encode(&etag, mk_str_of(digest, ETAG_BYTES));
    mk_buf_addf(&tagged, "%.*s.%.*s%.*s", MK_STR_ARG(mk_str_first(name, dot)), TAG_LEN, a->etag,
                MK_STR_ARG(mk_str_skip(name, dot)));
}

static bool append_asset(struct duda_assets *all, struct asset *a)
{
    struct asset **at = mk_mem_realloc(all->at, (all->n + 1) * sizeof(struct asset *));
    if (!at)
        return false;
    all->at = at;
    all->at[all->n++] = a;
    return true;
}

static bool add_file(struct mk_config *config, struct duda_assets *all, int folder, const char *path,
                     const char *name)
{
    struct asset *a = mk_mem_zalloc(1, sizeof *a);
    int e = a && append_asset(all, a) ? 0 : -ENOMEM;
    if (!e) {
        memcpy(a->name, path, strlen(path));
        a->content = mk_buf_growing(FILE_SIZE_MAX + 8192);
        e = duda_service_folder_read(folder, name, FILE_SIZE_MAX, &a->content);
        all->size += a->content.len;
    } else {
        mk_mem_free(a);
    }
    if (!e && all->size > TOTAL_MAX)
        e = -EFBIG;
    if (e)
        mk_config_error(config, NULL, NULL, "assets/%s: %s", path,
                        e == -EFBIG
                            ? "not a regular file, or larger than 16 MB, or all assets together exceed 64 MB"
                            : strerror(-e));
    else
        set_fingerprint(a);
    return !e;
}

static bool report_asset_error(struct mk_config *config, const char *path, const char *name,
                               const char *error)
{
    mk_config_error(config, NULL, NULL, "assets/%s%s: %s", path, name, error);
    return false;
}

static bool add_folder(struct mk_config *config, struct duda_assets *all, int fd, const char *path);

/* `path` is the path of the folder below `assets`, with a slash at its end. The limit of its length also
 * limits the depth. */
static bool add_entry(struct mk_config *config, struct duda_assets *all, DIR *folder, const char *path,
                      const struct dirent *entry)
{
    char inner[NAME_MAX_LEN + 2];
    struct mk_buf text = mk_buf_fixed(inner, NAME_MAX_LEN);
    mk_buf_addf(&text, "%s%s", path, entry->d_name);
    if (text.failed)
        return report_asset_error(config, path, entry->d_name, "the path is longer than 200 bytes");
    inner[text.len] = '\0';
    if (!duda_service_folder_is_folder(dirfd(folder), entry))
        return add_file(config, all, dirfd(folder), inner, entry->d_name);
    int fd = openat(dirfd(folder), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return report_asset_error(config, path, entry->d_name, strerror(errno));
    memcpy(inner + text.len, "/", 2);
    return add_folder(config, all, fd, inner);
}

static bool add_folder(struct mk_config *config, struct duda_assets *all, int fd, const char *path)
{
    DIR *folder = fdopendir(fd);
    const struct dirent *entry;
    bool good = folder != NULL;
    if (!folder)
        close(fd);
    while (good && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            good = add_entry(config, all, folder, path, entry);
    if (folder)
        closedir(folder);
    return good;
}

static int compare_keys(const void *a, const void *b)
{
    const struct asset_key *x = a, *y = b;
    return mk_str_cmp(x->text, y->text);
}

static bool sort_keys(struct duda_assets *all)
{
    all->names = all->n ? mk_mem_zalloc(2 * all->n, sizeof *all->names) : NULL;
    if (!all->names)
        return !all->n;
    all->tags = all->names + all->n;
    for (size_t i = 0; i < all->n; i++) {
        all->names[i] = (struct asset_key){mk_str_from_c(all->at[i]->name), all->at[i]};
        all->tags[i] = (struct asset_key){mk_str_from_c(all->at[i]->tagged), all->at[i]};
    }
    qsort(all->names, all->n, sizeof *all->names, compare_keys);
    qsort(all->tags, all->n, sizeof *all->tags, compare_keys);
    return true;
}

static void free_assets(void *data)
{
    struct duda_assets *all = data;
    for (size_t i = 0; i < all->n; i++) {
        mk_buf_free(&all->at[i]->content);
        mk_mem_free(all->at[i]);
    }
    mk_mem_free(all->at);
    mk_mem_free(all->names);
    mk_mem_free(all);
}

/* Returns the prefix of DUDA_ASSETS(); absent: there is none. */
static mk_str find_prefix(const struct duda_route_table *table)
{
    const struct duda_route_entry *entry;
    for (size_t i = 0; (entry = duda_route_table_at(table, i)); i++)
        if (entry->route->fn == duda_send_asset)
            return mk_str_first(entry->pattern, mk_str_find_last(entry->pattern, '/'));
    return MK_STR_NULL;
}

bool duda_assets_load(struct mk_config *config, const struct duda_service *service,
                      const struct duda_route_table *table, const struct duda_assets **out)
{
    mk_str prefix = find_prefix(table);
    *out = NULL;
    if (!prefix.p)
        return true;
    int fd = duda_service_folder_open(service, "assets");
    if (fd < 0) {
        mk_config_error(config, NULL, NULL,
                        "the service `%s` has DUDA_ASSETS(), but no folder `assets` next to its "
                        "object file or its source",
                        service->name);
        return false;
    }
    struct duda_assets *all = mk_mem_zalloc(1, sizeof *all);
    if (!all || !mk_config_add_cleanup(config, free_assets, all)) {
        mk_mem_free(all);
        close(fd);
        return false;
    }
    all->prefix = prefix;
    *out = all;
    return add_folder(config, all, fd, "") && sort_keys(all);
}

/* ---- URLs ---- */

static const struct asset *find_key(const struct asset_key *keys, size_t n, mk_str text)
{
    const struct asset_key wanted = {.text = text}, *found = NULL;
    if (n)
        found = bsearch(&wanted, keys, n, sizeof *keys, compare_keys);
    return found ? found->asset : NULL;
}

static const struct asset *find_asset(const struct duda_assets *all, mk_str name)
{
    return all ? find_key(all->names, all->n, name) : NULL;
}

int duda_assets_append_url(struct duda_ctx *d, bool is_absolute, mk_str name, struct mk_buf *out)
{
    const struct asset *a = find_asset(d->assets, name);
    if (!a || duda_url_append_base(d, is_absolute, out))
        return -ENOENT;
    mk_buf_add(out, d->assets->prefix);
    mk_buf_add_char(out, '/');
    mk_url_escape(out, mk_str_from_c(a->tagged));
    return 0;
}

mk_str duda_asset_url(struct duda_ctx *d, mk_str name)
{
    struct mk_buf url = mk_buf_growing(1 << 16);
    int e = duda_assets_append_url(d, false, name, &url);
    if (e)
        duda_log_handler(
            d, MK_LOG_ERROR, "the service has no asset `%.*s`%s", MK_STR_ARG(name),
            duda_url_has_base(d, false) ? "" : " with an absolute URL: PublicUrl of [DUDA] is not set");
    mk_str copy = e || url.failed ? MK_STR_NULL : duda_strdup(d, mk_buf_str(&url));
    mk_buf_free(&url);
    return copy;
}

/* ---- Serving ---- */

/* Removes the fingerprint of an earlier version from the name, and writes the result to `out`. */
static mk_str strip_fingerprint(mk_str name, char out[NAME_MAX_LEN + 1])
{
    size_t dot = extension_at(name), tag = extension_at(mk_str_first(name, dot));
    struct mk_buf plain = mk_buf_fixed(out, NAME_MAX_LEN);
    if (dot - tag != TAG_LEN + 1) { /* in a name without an extension, the fingerprint takes its place */
        tag = dot;
        dot = name.len;
    }
    mk_buf_add(&plain, mk_str_first(name, tag));
    mk_buf_add(&plain, mk_str_skip(name, dot));
    return plain.failed ? MK_STR_NULL : mk_buf_str(&plain);
}

static int set_asset_type(struct duda_ctx *d, const struct asset *a)
{
    mk_str type = mk_request_media_type(d->request, mk_str_from_c(a->name));
    if (!type.p)
        return 0;
    if (mk_str_starts(type, MK_STR("text/")) && mk_str_find(type, ';') == MK_STR_NONE)
        type = duda_sprintf(d, "%.*s; charset=utf-8", MK_STR_ARG(type));
    return duda_content_type(d, type);
}

duda_verdict duda_send_asset(struct duda_ctx *d)
{
    char plain[NAME_MAX_LEN + 1];
    mk_str name = duda_param(d, "path");
    const struct asset *a = d->assets ? find_key(d->assets->tags, d->assets->n, name) : NULL;
    bool is_current = a != NULL;
    a = a ? a : find_asset(d->assets, name);
    a = a ? a : find_asset(d->assets, strip_fingerprint(name, plain));
    if (!a)
        return 404;
    int e = duda_header_set(d, "Cache-Control",
                            is_current ? MK_STR("public, max-age=31536000, immutable") : MK_STR("no-cache"));
    e = e ? e : duda_check_preconditions(d, mk_str_from_c(a->etag), 0);
    e = e ? e : set_asset_type(d, a);
    e = e ? e : duda_make_conditional(d, MK_CONDITIONAL_RANGES);
    mk_str content = a->content.len ? mk_buf_str(&a->content) : MK_STR("");
    e = e ? e : mk_response_set_body_nocopy(d->response, content);
    return e ? e : 200;
}
