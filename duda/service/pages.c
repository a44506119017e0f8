/* SPDX-License-Identifier: Apache-2.0 */
#include "service/pages.h"
#include "service/board.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/task.h"

enum { FILE_MAX = 1 << 20, REASON_MAX = 512, PAGE_MAX = 64 << 20, MISSING_TOLD = 5 };

/* ---- Files ---- */

static int open_beside(const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    char path[4096];
    struct mk_buf b = mk_buf_fixed(path, sizeof path);
    if (!slash || file[0] != '/')
        return -1;
    mk_buf_addf(&b, "%.*s/templates", (int)(slash - file), file);
    mk_buf_add_char(&b, '\0');
    return b.failed ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_folder(const struct duda_service *service)
{
    Dl_info info;
    int fd = dladdr(service, &info) && info.dli_fname ? open_beside(info.dli_fname) : -1;
    return fd < 0 ? open_beside(service->file) : fd;
}

/* 0, or a negated errno value; -EFBIG: it is no file that a template would be in. */
static int read_file(int folder, const char *name, struct mk_buf *out)
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

static bool add_file(struct mk_config *config, struct duda_templates *set, int folder, const char *name)
{
    char reason[REASON_MAX];
    struct mk_buf text = mk_buf_growing(2 * FILE_MAX), why = mk_buf_fixed(reason, sizeof reason);
    int e = read_file(folder, name, &text);
    if (e)
        mk_buf_addf(&why, "%s: %s", name, e == -EFBIG ? "no file of at most 1 MB" : strerror(-e));
    else
        e = duda_templates_add(set, name, mk_buf_str(&text), &why);
    mk_buf_free(&text);
    if (e)
        mk_config_error(config, NULL, NULL, "templates/%.*s", MK_STR_ARG(mk_buf_str(&why)));
    return !e;
}

static bool add_folder(struct mk_config *config, struct duda_templates *set, int fd)
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
            good &= add_file(config, set, dirfd(folder), entry->d_name);
    closedir(folder);
    return good;
}

static void free_set(void *data)
{
    duda_templates_free(data);
}

bool duda_pages_load(struct mk_config *config, const struct duda_service *service,
                     const struct duda_templates **out)
{
    int fd = open_folder(service);
    *out = NULL;
    if (fd < 0)
        return true;
    struct duda_templates *set = duda_templates_new();
    if (!set || !mk_config_on_end(config, free_set, set)) {
        duda_templates_free(set);
        close(fd);
        return false;
    }
    *out = set;
    return add_folder(config, set, fd);
}

/* ---- Pages ---- */

struct saying {
    struct duda *d;
    unsigned told; /* messages about what is missing */
};

static const struct duda_template *find_page(const struct duda *d, mk_str name)
{
    return d->pages ? duda_templates_find(d->pages, name) : NULL;
}

static const struct duda_template *find(void *ctx, mk_str name)
{
    const struct saying *s = ctx;
    return find_page(s->d, name);
}

/* For developers alone: in a loop, a wrong name is missing each time. */
static void on_missing(void *ctx, mk_str what)
{
    struct saying *s = ctx;
    if (s->told++ < MISSING_TOLD)
        duda_task_log(s->d, MK_LOG_WARN, "%.*s", MK_STR_ARG(what));
}

static int say_page(struct duda *d, const struct duda_template *t, bool is_text,
                    const struct duda_value *value)
{
    char reason[REASON_MAX];
    struct mk_buf why = mk_buf_fixed(reason, sizeof reason);
    struct duda_scratch page;
    struct saying saying = {.d = d};
    const struct duda_rendering how = {
        .find = find, .ctx = &saying, .missing = d->home->rules->tries ? on_missing : NULL};
    int e = duda_scratch_begin(d, &page, PAGE_MAX);
    if (e)
        return e;
    e = duda_template_render(t, value, &how, &page.buf, &why);
    if (why.len)
        duda_task_log(d, MK_LOG_ERROR, "%.*s", MK_STR_ARG(mk_buf_str(&why)));
    if (!e)
        e = is_text ? duda_say(d, mk_buf_str(&page.buf)) : duda_html(d, mk_buf_str(&page.buf));
    duda_wait_end(&page.wait);
    return e;
}

int duda_render(struct duda *d, const char *name, struct duda_value value)
{
    const struct duda_template *t = find_page(d, mk_str_from_c(name));
    if (t)
        return say_page(d, t, mk_str_ends(mk_str_from_c(name), MK_STR(".txt")), &value);
    duda_task_log(d, MK_LOG_ERROR, "the service has no templates/%s", name);
    return -EINVAL; /* a mistake of the service: -ENOENT would be a 404 */
}

/* A template that is used once. */
struct compiled {
    struct duda_wait wait; /* the first */
    struct duda_template *template;
};

static void free_compiled(struct duda_wait *w)
{
    duda_template_free(((struct compiled *)w)->template);
}

int duda_render_text(struct duda *d, mk_str text, struct duda_value value)
{
    char reason[REASON_MAX];
    struct mk_buf why = mk_buf_fixed(reason, sizeof reason);
    struct compiled c = {.template = NULL};
    int e = duda_wait_begin(d, &c.wait, free_compiled);
    if (e)
        return e;
    c.template = duda_template_new(text, "template", &why);
    if (!c.template)
        duda_task_log(d, MK_LOG_ERROR, "%.*s", MK_STR_ARG(mk_buf_str(&why)));
    e = c.template ? say_page(d, c.template, false, &value) : -EINVAL;
    duda_wait_end(&c.wait);
    return e;
}
