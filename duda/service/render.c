/* SPDX-License-Identifier: Apache-2.0 */
#include "service/render.h"
#include "service/crash_table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "service/assets.h"
#include "service/memory.h"
#include "service/page_values.h"
#include "service/service_folder.h"
#include "service/suspend.h"
#include "service/url.h"
#include "text/template.h"

enum { FILE_MAX = 1 << 20, REASON_MAX = 512, PAGE_MAX = 64 << 20, PATH_LEN_MAX = 256, DEPTH_MAX = 4 };

/* ---- Files ---- */

static bool add_template_file(struct mk_config *config, struct duda_templates *set, int folder,
                              const char *path, const char *name)
{
    char reason[REASON_MAX];
    struct mk_buf text = mk_buf_growing(2 * FILE_MAX), error = mk_buf_fixed(reason, sizeof reason);
    int e = duda_service_folder_read(folder, name, FILE_MAX, &text);
    if (e)
        mk_buf_addf(&error, "%s: %s", path,
                    e == -EFBIG ? "it is not a file, or is larger than 1 MB" : strerror(-e));
    else
        e = duda_templates_add(set, path, mk_buf_str(&text), &error);
    mk_buf_free(&text);
    if (e)
        mk_config_error(config, NULL, NULL, "templates/%.*s", MK_STR_ARG(mk_buf_str(&error)));
    return !e;
}

/* `path` is the path of the folder below `templates`, with a slash at its end. */
static bool add_template_folder(struct mk_config *config, struct duda_templates *set, int fd,
                                const char *path, unsigned depth)
{
    DIR *folder = fdopendir(fd);
    const struct dirent *entry;
    bool good = folder != NULL;
    if (!folder)
        close(fd);
    while (folder && (entry = readdir(folder))) {
        char inner[PATH_LEN_MAX];
        if (entry->d_name[0] == '.')
            continue;
        int len = snprintf(inner, sizeof inner, "%s%s", path, entry->d_name);
        if (len >= (int)sizeof inner - 1) {
            mk_config_error(config, NULL, NULL, "templates/%s%s: its path is too long", path, entry->d_name);
            good = false;
            continue;
        }
        int sub = depth ? openat(dirfd(folder), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (sub < 0)
            good &= add_template_file(config, set, dirfd(folder), inner, entry->d_name);
        if (sub >= 0) {
            memcpy(inner + len, "/", 2);
            good &= add_template_folder(config, set, sub, inner, depth - 1);
        }
    }
    if (folder)
        closedir(folder);
    return good;
}

static void free_template_set(void *data)
{
    duda_templates_free(data);
}

bool duda_render_load_templates(struct mk_config *config, const struct duda_service *service,
                                const struct duda_templates **out)
{
    int fd = duda_service_folder_open(service, "templates");
    *out = NULL;
    if (fd < 0)
        return true;
    struct duda_templates *set = duda_templates_new();
    if (!set || !mk_config_add_cleanup(config, free_template_set, set)) {
        duda_templates_free(set);
        close(fd);
        return false;
    }
    *out = set;
    return add_template_folder(config, set, fd, "", DEPTH_MAX);
}

/* ---- Rendering ---- */

static const struct duda_template *find_template(struct duda_ctx *d, mk_str name)
{
    return d->templates ? duda_templates_find(d->templates, name) : NULL;
}

static const struct duda_template *find_partial_template(void *ctx, mk_str name)
{
    return find_template(((struct duda_page_values *)ctx)->d, name);
}

/* Returns whether URLs have a base. Otherwise records that the rendering must fail. */
static bool check_url_base(struct duda_page_values *values)
{
    bool has_base = duda_url_has_base(values->d, values->is_absolute);
    values->lacks_public_url |= !has_base;
    return has_base;
}

static int append_asset_url(void *ctx, mk_str name, struct mk_buf *url)
{
    struct duda_page_values *values = ctx;
    return check_url_base(values) ? duda_assets_append_url(values->d, values->is_absolute, name, url) : 0;
}

static int append_url(void *ctx, mk_str route, const struct duda_entry *params, size_t n, struct mk_buf *url)
{
    struct duda_page_values *values = ctx;
    return check_url_base(values) ? duda_url_append(values->d, values->is_absolute, route, params, n, url)
                                  : 0;
}

static int fail_without_public_url(struct duda_ctx *d)
{
    static const char text[] =
        "the template contains a URL, which must be absolute here: set PublicUrl of [DUDA]";
    duda_log_handler(d, MK_LOG_ERROR, "%s", text);
    return duda_reason(d, -EINVAL, "%s", text);
}

static int render_to_buf(struct duda_ctx *d, const struct duda_template *t, unsigned flags,
                         const struct duda_value *value, struct mk_buf *out)
{
    char reason[REASON_MAX];
    struct mk_buf error = mk_buf_fixed(reason, sizeof reason);
    struct duda_page_values values = {.d = d, .is_absolute = flags & DUDA_RENDER_ABSOLUTE_URLS};
    const struct duda_render_options how = {.find_partial = find_partial_template,
                                            .ctx = &values,
                                            .strict = duda_memory_is_dev_mode(d->worker_ctx),
                                            .asset_url = append_asset_url,
                                            .find_global = duda_page_values_find,
                                            .url_for = append_url};
    int e = duda_template_render(t, value, &how, out, &error);
    if (error.len && e != -ECANCELED)
        duda_log_handler(d, MK_LOG_ERROR, "%.*s", MK_STR_ARG(mk_buf_str(&error)));
    if (e == -ENOENT)
        e = -EINVAL; /* a bug in the service; -ENOENT would become a 404 */
    return !e && values.lacks_public_url ? fail_without_public_url(d) : e;
}

static int render_template(struct duda_ctx *d, const struct duda_template *t, bool is_text,
                           const struct duda_value *value)
{
    struct duda_scratch_buf page;
    int e = duda_scratch_buf_begin(d, &page, PAGE_MAX);
    if (e)
        return e;
    e = render_to_buf(d, t, 0, value, &page.buf);
    if (!e)
        e = is_text ? duda_write(d, mk_buf_str(&page.buf)) : duda_html(d, mk_buf_str(&page.buf));
    duda_wait_end(&page.wait);
    return e;
}

static const struct duda_template *require_template(struct duda_ctx *d, const char *name)
{
    const struct duda_template *t = find_template(d, mk_str_from_c(name));
    if (!t)
        duda_log_handler(d, MK_LOG_ERROR, "the service has no template templates/%s", name);
    return t;
}

int duda_render(struct duda_ctx *d, const char *name, struct duda_value value)
{
    const struct duda_template *t = require_template(d, name);
    bool is_text = duda_template_is_plain_text(mk_str_from_c(name));
    return t ? render_template(d, t, is_text, &value)
             : -EINVAL; /* a bug in the service; -ENOENT would become a 404 */
}

int duda_render_to_string(struct duda_ctx *d, const char *name, struct duda_value value, unsigned flags,
                          mk_str *out)
{
    struct duda_scratch_buf text;
    const struct duda_template *t = require_template(d, name);
    *out = MK_STR_NULL;
    int e = t ? duda_scratch_buf_begin(d, &text, PAGE_MAX) : -EINVAL;
    if (e)
        return e;
    e = render_to_buf(d, t, flags, &value, &text.buf);
    if (!e)
        *out = duda_strdup(d, mk_buf_str(&text.buf));
    duda_wait_end(&text.wait);
    return e || out->p ? e : -ENOMEM;
}

/* A template that is used once. */
struct one_off_template {
    struct duda_wait wait; /* must be first */
    struct duda_template *template;
};

static void free_one_off_template(struct duda_wait *w)
{
    duda_template_free(((struct one_off_template *)w)->template);
}

int duda_render_text(struct duda_ctx *d, mk_str text, struct duda_value value)
{
    char reason[REASON_MAX];
    struct mk_buf error = mk_buf_fixed(reason, sizeof reason);
    struct one_off_template c = {.template = NULL};
    int e = duda_wait_begin(d, &c.wait, free_one_off_template);
    if (e)
        return e;
    c.template = duda_template_new(text, "template", &error);
    if (!c.template)
        duda_log_handler(d, MK_LOG_ERROR, "%.*s", MK_STR_ARG(mk_buf_str(&error)));
    e = c.template ? render_template(d, c.template, false, &value) : -EINVAL;
    duda_wait_end(&c.wait);
    return e;
}
