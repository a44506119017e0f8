/* SPDX-License-Identifier: Apache-2.0 */
/* What packages with sections have in common: sections with a Name and a place, and what each worker has for
 * each of them. It is compiled into each package, and knows none of them. */
#ifndef DUDA_PACKS_SECTIONS_H
#define DUDA_PACKS_SECTIONS_H

#include <duda/wait.h>
#include <errno.h>
#include <monkey/clock.h>
#include <monkey/meter.h>
#include <monkey/plugin.h>
#include <monkey/worker.h>

/* What the struct of a section begins with. */
struct pack_settings {
    mk_str name, place;
    uint32_t meter; /* filled when the section is read */
};

/* What this worker counts of the calls to a section. */
static inline uint64_t *pack_meter(const struct mk_worker *w, const void *settings)
{
    return mk_worker_cells(w, ((const struct pack_settings *)settings)->meter);
}

/* A call begins; what it answers is for pack_meter_end(). */
static inline uint64_t pack_meter_begin(uint64_t *p)
{
    mk_meter_begin(p);
    return mk_clock_us();
}

/* That something is not there, or is another one, is an answer as good as any. */
static inline bool pack_meter_is_failure(int e)
{
    return e < 0 && e != -ENOENT && e != -EEXIST && e != -ESTALE && e != -EDOM && e != -EDQUOT;
}

static inline void pack_meter_end(uint64_t *p, uint64_t begun, int e)
{
    mk_meter_end(p, mk_clock_us() - begun, pack_meter_is_failure(e));
}

/* What a handler calls: it is a wait from its begin to its end, and counted as one call. A handler that has ended begins none,
 * so that a call takes a connection or memory only for one that will give it back. */
struct pack_call {
    struct duda_wait wait; /* the first */
    uint64_t *meter;
    uint64_t begun;
    int result;
};

void pack_call_count(struct duda_wait *w);

/* 0, or what has ended the handler. Without a meter (NULL) it is not counted. */
static inline int pack_call_begin(struct pack_call *c, struct duda *d, uint64_t *meter)
{
    int e = duda_wait_begin(d, &c->wait, pack_call_count);
    if (e)
        return e;
    c->meter = meter;
    c->result = -ECANCELED; /* unless it comes to its end */
    c->begun = meter ? pack_meter_begin(meter) : 0;
    return 0;
}

/* Its result, which it answers; nothing else if it has not begun. */
static inline int pack_call_end(struct pack_call *c, int result)
{
    c->result = result;
    duda_wait_end(&c->wait);
    return result;
}

/* clang-format off */
/* The key `Name` of such a struct. */
#define PACK_NAME_KEY                                                                                        \
    {.name = "Name", .type = MK_CONF_TEXT, MK_CONF_AT(struct pack_settings, name), .def = "main",            \
     .min = 1, .max = 63, .help = "What services call it, if there are several."}
/* clang-format on */

enum { PACK_SECTIONS_MAX = 64 };

struct pack_kind;

/* The sections of a configuration, in their order. */
struct pack_sections {
    const struct pack_kind *kind;
    void *v[PACK_SECTIONS_MAX];
    size_t n;
};

struct pack_kind {
    const struct mk_plugin *plugin;
    const struct mk_conf_table *table;
    const char *name;  /* of the package: "kv" */
    const char *place; /* the key that a section must have */
    size_t max;        /* sections; up to PACK_SECTIONS_MAX */
    /* Looks at the other keys of a section. False: it is wrong, and that is reported. */
    bool (*check)(struct mk_config *config, const struct pack_sections *before, void *settings);
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
 * for each, `about` the help. The other arguments are members of struct pack_kind. */
#define PACK_KIND(id, section_name, settings, in_worker, about, ...)                                         \
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
    static const struct pack_kind kind = {.plugin = &MK_PLUGIN_OF(duda_##id),                                \
                                          .table = &table,                                                   \
                                          .name = #id,                                                       \
                                          .size = sizeof(in_worker),                                         \
                                          __VA_ARGS__}

#define PACK_NEEDS(...)                                                                                      \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

/* Its plugin, with that help; the other arguments are members of struct mk_plugin. */
#define PACK_PLUGIN(id, about, ...)                                                                          \
    static int load(struct mk_config *config, void **data)                                                   \
    {                                                                                                        \
        return pack_load(&kind, config, data);                                                               \
    }                                                                                                        \
    MK_PLUGIN(duda_##id) = {                                                                                 \
        MK_PLUGIN_HEAD,                                                                                      \
        .name = "duda-" #id,                                                                                 \
        .version = MK_VERSION,                                                                               \
        .help = about,                                                                                       \
        .sections = (const struct mk_conf_table *const[]){&table, NULL},                                     \
        .load = load,                                                                                        \
        .worker_start = pack_worker_start,                                                                   \
        .worker_stop = pack_worker_stop,                                                                     \
        __VA_ARGS__,                                                                                         \
    }

/* Hooks of its plugin: load() calls the first one. */
int pack_load(const struct pack_kind *kind, struct mk_config *config, void **data);
int pack_worker_start(struct mk_worker *w, void *data);
void pack_worker_stop(struct mk_worker *w, void *data);
/* What this worker has for the section of that Name; NULL names the first. NULL: there is none, which is reported. */
void *pack_find(const struct pack_kind *kind, struct duda *d, const char *name);

/* A handler has asked for a section that is missing: an error in the log, once for each Name, and the reason if the handler
 * returns -ENODEV, which functions of packages answer without a section. */
void pack_report_missing(struct duda *d, const char *section, const char *name);

#endif
