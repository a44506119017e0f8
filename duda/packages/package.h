/* SPDX-License-Identifier: Apache-2.0 */
/* What packages with sections have in common: sections with a Name and a place, and what each worker has for
 * each of them. It is compiled into each package, and knows none of them. */
#ifndef DUDA_PACKAGES_PACKAGE_H
#define DUDA_PACKAGES_PACKAGE_H

#include <duda/wait.h>
#include <errno.h>
#include <monkey/clock.h>
#include <monkey/meter.h>
#include <monkey/plugin.h>
#include <monkey/worker.h>

/* What the struct of a section begins with. */
struct package_settings {
    mk_str name, place;
    uint32_t meter; /* filled when the section is read */
};

/* What this worker counts of the calls to a section. */
static inline uint64_t *package_meter(const struct mk_worker *w, const void *settings)
{
    return mk_worker_cells(w, ((const struct package_settings *)settings)->meter);
}

/* A call begins; what it answers is for package_meter_end(). */
static inline uint64_t package_meter_begin(uint64_t *p)
{
    mk_meter_begin(p);
    return mk_clock_us();
}

/* That something is not there, or is another one, is an answer as good as any. */
static inline bool package_meter_is_failure(int e)
{
    return e < 0 && e != -ENOENT && e != -EEXIST && e != -ESTALE && e != -EDOM && e != -EDQUOT;
}

static inline void package_meter_end(uint64_t *p, uint64_t begun, int e)
{
    mk_meter_end(p, mk_clock_us() - begun, package_meter_is_failure(e));
}

/* What a handler calls: it is a wait from its begin to its end, and counted as one call. A handler that has ended begins none,
 * so that a call takes a connection or memory only for one that will give it back. */
struct package_call {
    struct duda_wait wait; /* the first */
    uint64_t *meter;
    uint64_t begun;
    int result;
};

void package_call_record(struct duda_wait *w);

/* 0, or what has ended the handler. Without a meter (NULL) it is not counted. */
static inline int package_call_begin(struct package_call *c, struct duda_ctx *d, uint64_t *meter)
{
    int e = duda_wait_begin(d, &c->wait, package_call_record);
    if (e)
        return e;
    c->meter = meter;
    c->result = -ECANCELED; /* unless it comes to its end */
    c->begun = meter ? package_meter_begin(meter) : 0;
    return 0;
}

/* Its result, which it answers; nothing else if it has not begun. */
static inline int package_call_end(struct package_call *c, int result)
{
    c->result = result;
    duda_wait_end(&c->wait);
    return result;
}

/* clang-format off */
/* The key `Name` of such a struct. */
#define PACKAGE_NAME_KEY                                                                                        \
    {.name = "Name", .type = MK_CONF_TEXT, MK_CONF_AT(struct package_settings, name), .def = "main",            \
     .min = 1, .max = 63, .help = "What services call it, if there are several."}
/* clang-format on */

enum { PACKAGE_SECTIONS_MAX = 64 };

struct package_type;

/* The sections of a configuration, in their order. */
struct package_sections {
    const struct package_type *kind;
    void *v[PACKAGE_SECTIONS_MAX];
    size_t n;
};

struct package_type {
    const struct mk_plugin *plugin;
    const struct mk_conf_table *table;
    const char *name;  /* of the package: "kv" */
    const char *place; /* the key that a section must have */
    size_t max;        /* sections; up to PACKAGE_SECTIONS_MAX */
    /* Looks at the other keys of a section. False: it is wrong, and that is reported. */
    bool (*check_section)(struct mk_config *config, const struct package_sections *before, void *settings);
    /* Makes the Name of a right one known to those that find it by that; may be NULL. */
    void (*declare)(struct mk_config *config, const void *settings, mk_str name);
    size_t size; /* of what a worker has for each section: zeroes at first */
    /* 0 or a negated errno value; -EEXIST: the name is taken by another kind of section. NULL: a worker has a copy of the
     * settings. */
    int (*open)(void *one, struct mk_worker *w, const void *settings);
    /* Also after an open() that failed; may be NULL. */
    void (*close)(void *one);
};

/* The sections of the package `id`, whose keys are in `keys`: `settings` is the struct of a section, `in_worker` what a worker has
 * for each, `about` the help. The other arguments are members of struct package_type. */
#define PACKAGE_TYPE(id, section_name, settings, in_worker, about, ...)                                      \
    MK_PLUGIN_DECLARE(duda_##id);                                                                            \
    static const struct mk_conf_table table = {                                                              \
        .section = section_name,                                                                             \
        .keys = keys,                                                                                        \
        .n = MK_LEN(keys),                                                                                   \
        .repeatable = true,                                                                                  \
        .help = about,                                                                                       \
        .size = sizeof(settings),                                                                            \
        .scope = MK_CONF_SERVER,                                                                             \
    };                                                                                                       \
    static const struct package_type kind = {.plugin = &MK_PLUGIN_OF(duda_##id),                             \
                                             .table = &table,                                                \
                                             .name = #id,                                                    \
                                             .size = sizeof(in_worker),                                      \
                                             __VA_ARGS__}

#define PACKAGE_NEEDS(...)                                                                                   \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

/* Its plugin, with that help; the other arguments are members of struct mk_plugin. */
#define PACKAGE_PLUGIN(id, about, ...)                                                                       \
    static int load(struct mk_config *config, void **data)                                                   \
    {                                                                                                        \
        return package_load(&kind, config, data);                                                            \
    }                                                                                                        \
    MK_PLUGIN(duda_##id) = {                                                                                 \
        MK_PLUGIN_HEAD,                                                                                      \
        .name = "duda-" #id,                                                                                 \
        .version = MK_VERSION,                                                                               \
        .help = about,                                                                                       \
        .sections = (const struct mk_conf_table *const[]){&table, NULL},                                     \
        .load = load,                                                                                        \
        .worker_start = package_worker_start,                                                                \
        .worker_stop = package_worker_stop,                                                                  \
        __VA_ARGS__,                                                                                         \
    }

/* Hooks of its plugin: load() calls the first one. */
int package_load(const struct package_type *kind, struct mk_config *config, void **data);
int package_worker_start(struct mk_worker *w, void *data);
void package_worker_stop(struct mk_worker *w, void *data);
/* What this worker has for the section of that Name; NULL names the first. NULL: there is none, which is reported. */
void *package_find_instance(const struct package_type *kind, struct duda_ctx *d, const char *name);

/* A handler has asked for a section that is missing: an error in the log, once for each Name, and the reason if the handler
 * returns -ENODEV, which functions of packages answer without a section. */
void package_log_missing_section(struct duda_ctx *d, const char *section, const char *name);

#endif
