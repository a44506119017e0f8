/* SPDX-License-Identifier: Apache-2.0 */
#include "service/render.h"
#include "service/crash_table.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/memory.h"
#include "service/suspend.h"

enum { FILE_MAX = 1 << 20, REASON_MAX = 512, PAGE_MAX = 64 << 20 };

/* ---- Files ---- */

static int open_templates_beside(const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    struct mk_buf path = mk_buf_growing(PATH_MAX);
    if (!slash || file[0] != '/')
        return -1;
    mk_buf_addf(&path, "%.*s/templates", (int)(slash - file), file);
    mk_buf_add_char(&path, '\0');
    int fd = path.failed ? -1 : open(path.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mk_buf_free(&path);
    return fd;
}

static int open_templates_folder(const struct duda_service *service)
{
    Dl_info info;
    int fd = dladdr(service, &info) && info.dli_fname ? open_templates_beside(info.dli_fname) : -1;
    return fd < 0 ? open_templates_beside(service->file) : fd;
}

/* Returns 0 or a negative errno value; -EFBIG: the file is too large for a template. */
static int read_template_file(int folder, const char *name, struct mk_buf *out)
{
    struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int e = fstat(fd, &st) ? -errno : 0;
    if (!e && (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX))
        e = -EFBIG;
    while (!e && mk_buf_reserve(out, 4096)) {
        ssize_t n = read(fd, out->p + out->len, 4096);
        if (n <= 0) {
            e = n < 0 ? -errno : 0;
            break;
        }
        out->len += (size_t)n;
    }
    close(fd);
    return e ? e : out->failed ? -ENOMEM : 0;
}

static bool add_template_file(struct mk_config *config, struct duda_templates *set, int folder,
                              const char *name)
{
    char reason[REASON_MAX];
    struct mk_buf text = mk_buf_growing(2 * FILE_MAX), error = mk_buf_fixed(reason, sizeof reason);
    int e = read_template_file(folder, name, &text);
    if (e)
        mk_buf_addf(&error, "%s: %s", name,
                    e == -EFBIG ? "it is not a file, or is larger than 1 MB" : strerror(-e));
    else
        e = duda_templates_add(set, name, mk_buf_str(&text), &error);
    mk_buf_free(&text);
    if (e)
        mk_config_error(config, NULL, NULL, "templates/%.*s", MK_STR_ARG(mk_buf_str(&error)));
    return !e;
}

static bool add_template_folder(struct mk_config *config, struct duda_templates *set, int fd)
{
    DIR *folder = fdopendir(fd);
    const struct dirent *entry;
    bool good = true;
    if (!folder) {
        close(fd);
        return false;
    }
    while ((entry = readdir(folder)))
        if (entry->d_name[0] != '.' && entry->d_type != DT_DIR)
            good &= add_template_file(config, set, dirfd(folder), entry->d_name);
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
    int fd = open_templates_folder(service);
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
    return add_template_folder(config, set, fd);
}

/* ---- Rendering ---- */

static const struct duda_template *find_template(struct duda_ctx *d, mk_str name)
{
    return d->templates ? duda_templates_find(d->templates, name) : NULL;
}

static const struct duda_template *find_partial_template(void *ctx, mk_str name)
{
    return find_template(ctx, name);
}

static int render_template(struct duda_ctx *d, const struct duda_template *t, bool is_text,
                           const struct duda_value *value)
{
    char reason[REASON_MAX];
    struct mk_buf error = mk_buf_fixed(reason, sizeof reason);
    struct duda_scratch_buf page;
    /* During development a misspelled name is an error. Optional sections are common, and stay allowed. */
    const struct duda_render_options how = {.find_partial = find_partial_template,
                                            .ctx = d,
                                            .strict = duda_memory_is_dev_mode(d->worker_ctx),
                                            .allows_unknown_sections = true};
    int e = duda_scratch_buf_begin(d, &page, PAGE_MAX);
    if (e)
        return e;
    e = duda_template_render(t, value, &how, &page.buf, &error);
    if (error.len)
        duda_log_plain(d, MK_LOG_ERROR, "%.*s", MK_STR_ARG(mk_buf_str(&error)));
    if (e == -ENOENT)
        e = -EINVAL; /* a bug in the service; -ENOENT would become a 404 */
    if (!e)
        e = is_text ? duda_write(d, mk_buf_str(&page.buf)) : duda_html(d, mk_buf_str(&page.buf));
    duda_wait_end(&page.wait);
    return e;
}

int duda_render(struct duda_ctx *d, const char *name, struct duda_value value)
{
    const struct duda_template *t = find_template(d, mk_str_from_c(name));
    if (t)
        return render_template(d, t, mk_str_ends(mk_str_from_c(name), MK_STR(".txt")), &value);
    duda_log_plain(d, MK_LOG_ERROR, "the service has no template templates/%s", name);
    return -EINVAL; /* a bug in the service; -ENOENT would become a 404 */
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
        duda_log_plain(d, MK_LOG_ERROR, "%.*s", MK_STR_ARG(mk_buf_str(&error)));
    e = c.template ? render_template(d, c.template, false, &value) : -EINVAL;
    duda_wait_end(&c.wait);
    return e;
}
