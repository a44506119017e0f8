/* SPDX-License-Identifier: Apache-2.0 */
#include "package.h"

#include <dlfcn.h>
#include <duda/request.h>
#include <errno.h>
#include <monkey/mem.h>
#include <monkey/text.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>

/* ---- Calls ---- */

void package_call_record(struct duda_wait *w)
{
    const struct package_call *c = (struct package_call *)w;
    if (c->meter)
        package_meter_end(c->meter, c->began_us, c->result);
}

/* ---- In a configuration ---- */

static bool validate_section(const struct package_type *kind, struct mk_config *config,
                             const struct package_sections *before, void *settings)
{
    const struct package_settings *s = settings;
    const char *section = kind->table->section;
    for (size_t i = 0; i < before->n; i++) {
        const struct package_settings *other = before->v[i];
        if (mk_str_eq(other->name, s->name)) {
            mk_config_error(config, s, "Name", "another [%s] already has the Name `%.*s`", section,
                            MK_STR_ARG(s->name));
            return false;
        }
    }
    if (before->n == kind->max) {
        mk_config_error(config, s, NULL, "more than %zu sections [%s]", kind->max, section);
        return false;
    }
    if (!s->location.len && !kind->location_is_optional) {
        mk_config_error(config, s, NULL, "[%s] has no %s", section, kind->location);
        return false;
    }
    ((struct package_settings *)settings)->meter = mk_meter_get(config, mk_str_from_c(kind->name), s->name);
    return kind->check_section(config, before, settings);
}

int package_load(const struct package_type *kind, struct mk_config *config, void **data)
{
    struct package_sections *all = mk_config_alloc(config, sizeof *all);
    void *settings = NULL;
    *data = all;
    if (!all)
        return -ENOMEM;
    all->kind = kind;
    while ((settings = mk_config_section(config, kind->table, settings)))
        if (validate_section(kind, config, all, settings))
            all->v[all->n++] = settings;
        else
            all->has_invalid = true;
    if (!all->n && !kind->works_without_section)
        mk_config_warn(config, NULL, NULL, "%s is loaded, but there is no section [%s] with a key %s",
                       kind->plugin->name, kind->table->section, kind->location);
    for (size_t i = 0; kind->declare && i < all->n; i++)
        kind->declare(config, all->v[i], ((const struct package_settings *)all->v[i])->name);
    return 0;
}

/* ---- Tests ---- */

const char *package_test_folder(void)
{
    const char *(*folder)(void) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "duda_test_folder"); /* the program of `monkey test` defines it */
    memcpy(&folder, &found, sizeof folder);
    return folder ? folder() : NULL;
}

mk_str package_data_path(struct mk_config *config, const void *settings, mk_str path)
{
    const char *folder = package_test_folder();
    struct mk_buf text = mk_buf_growing(8192);
    path = mk_config_path(config, settings, path);
    if (!folder || !path.p)
        return path;
    mk_buf_addf(&text, "%s/", folder);
    for (size_t i = 0; i < path.len; i++) /* the configured path becomes the name of a file */
        mk_buf_add_char(&text, path.p[i] == '/' ? '%' : path.p[i]);
    mk_str moved = MK_STR_NULL;
    if (text.failed)
        mk_config_error(config, settings, NULL, "the path `%.*s` is too long", MK_STR_ARG(path));
    else
        moved = mk_config_copy(config, mk_buf_str(&text));
    mk_buf_free(&text);
    return moved;
}

/* ---- In a worker ---- */

struct package_worker {
    const struct package_sections *sections;
    size_t n; /* number of open() calls, successful or not */
    alignas(max_align_t) unsigned char instances[];
};

static void *instance_at(const struct package_type *kind, struct package_worker *package_worker, size_t i)
{
    return package_worker->instances + i * kind->size;
}

void package_worker_cancel(struct mk_worker *w, void *data)
{
    const struct package_type *kind = ((const struct package_sections *)data)->kind;
    struct package_worker *package_worker = mk_worker_data(w, kind->plugin);
    for (size_t i = 0; package_worker && i < package_worker->n; i++)
        kind->cancel(instance_at(kind, package_worker, i));
}

void package_worker_stop(struct mk_worker *w, void *data)
{
    const struct package_type *kind = ((const struct package_sections *)data)->kind;
    struct package_worker *package_worker = mk_worker_data(w, kind->plugin);
    for (size_t i = 0; package_worker && kind->close && i < package_worker->n; i++)
        kind->close(instance_at(kind, package_worker, i));
    mk_worker_set_data(w, kind->plugin, NULL);
    mk_mem_free(package_worker);
}

static void log_open_error(const struct package_type *kind, struct mk_worker *w,
                           const struct package_settings *s, int e)
{
    if (e == -EEXIST)
        mk_worker_log(w, MK_LOG_ERROR, "[%s] %.*s: a section of another package already has this Name",
                      kind->table->section, MK_STR_ARG(s->name));
    else
        mk_worker_log(w, MK_LOG_ERROR, "[%s] %.*s: cannot open %.*s: %s", kind->table->section,
                      MK_STR_ARG(s->name), MK_STR_ARG(s->location),
                      e == -EIO ? "its files are damaged, or have an incompatible version" : strerror(-e));
}

static int open_instance(const struct package_type *kind, void *instance, struct mk_worker *w,
                         const void *settings)
{
    if (kind->open)
        return kind->open(instance, w, settings);
    memcpy(instance, settings, kind->size);
    return 0;
}

int package_worker_start(struct mk_worker *w, void *data)
{
    const struct package_sections *sections = data;
    const struct package_type *kind = sections->kind;
    struct package_worker *package_worker =
        mk_mem_zalloc(1, sizeof *package_worker + sections->n * kind->size);
    if (!package_worker)
        return -ENOMEM;
    package_worker->sections = sections;
    mk_worker_set_data(w, kind->plugin, package_worker);
    while (package_worker->n < sections->n) {
        const void *settings = sections->v[package_worker->n];
        int e = open_instance(kind, instance_at(kind, package_worker, package_worker->n++), w, settings);
        if (!e)
            continue;
        log_open_error(kind, w, settings, e);
        package_worker_stop(w, data);
        return e;
    }
    return 0;
}

static void *find_instance(const struct package_type *kind, const struct mk_worker *w, const char *name)
{
    struct package_worker *package_worker = mk_worker_data(w, kind->plugin);
    for (size_t i = 0; package_worker && i < package_worker->n; i++) {
        const struct package_settings *s = package_worker->sections->v[i];
        bool is_only = !name && package_worker->n == 1;
        if (is_only || mk_str_eq(s->name, mk_str_from_c(name ? name : PACKAGE_MAIN)))
            return instance_at(kind, package_worker, i);
    }
    return NULL;
}

void *package_find_instance(const struct package_type *kind, struct duda_ctx *d, const char *name)
{
    char section[64];
    void *found = find_instance(kind, duda_worker(d), name);
    snprintf(section, sizeof section, "[%s]", kind->table->section);
    if (!found)
        package_log_missing_section(d, section, name);
    return found;
}

void *package_instance_of(const struct package_type *kind, struct mk_worker *w, const char *name)
{
    char section[64];
    void *found = find_instance(kind, w, name);
    snprintf(section, sizeof section, "[%s]", kind->table->section);
    if (!found)
        package_log_missing_section_in(w, section, name);
    return found;
}

/* Limits the number of log messages, because a client may choose the Name. Returns true for a new Name. */
static bool is_first_report(const char *section, const char *name)
{
    enum { NAMES = 16 };
    static const struct mk_hash_key key = {0x6e6f73756368, 0x73656374696f6e};
    static __thread struct {
        uint64_t hashes[NAMES];
        size_t n;
    } reported;
    uint64_t hash = mk_hash(&key, mk_str_from_c(section)) ^ mk_hash(&key, mk_str_from_c(name));
    for (size_t i = 0; i < reported.n; i++)
        if (reported.hashes[i] == hash)
            return false;
    if (reported.n == NAMES)
        return false;
    reported.hashes[reported.n++] = hash;
    return true;
}

enum { MISSING_TEXT_MAX = 160 };

static void describe_missing_section(char *text, const char *section, const char *name)
{
    snprintf(text, MISSING_TEXT_MAX, "there is no %s with the Name `%.63s`", section, name);
}

void package_log_missing_section(struct duda_ctx *d, const char *section, const char *name)
{
    char text[MISSING_TEXT_MAX];
    name = name ? name : PACKAGE_MAIN;
    describe_missing_section(text, section, name);
    if (is_first_report(section, name))
        duda_log_handler(d, MK_LOG_ERROR, "%s: functions that need it return -ENODEV", text);
    (void)duda_reason(d, -ENODEV, "%s", text);
}

void package_log_missing_section_in(struct mk_worker *w, const char *section, const char *name)
{
    char text[MISSING_TEXT_MAX];
    name = name ? name : PACKAGE_MAIN;
    describe_missing_section(text, section, name);
    if (is_first_report(section, name))
        mk_worker_log(w, MK_LOG_ERROR, "%s: functions that need it return -ENODEV", text);
}
