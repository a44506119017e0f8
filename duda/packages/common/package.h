/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of packages with configuration sections: sections with a Name and a location, and the
 * per-worker instance of each. This code is compiled into each package and depends on none. */
#ifndef DUDA_COMMON_PACKAGE_H
#define DUDA_COMMON_PACKAGE_H

#include <duda/wait.h>
#include <errno.h>
#include <monkey/clock.h>
#include <monkey/meter.h>
#include <monkey/plugin.h>
#include <monkey/worker.h>

/* Must be the first member of the settings of a section. */
struct package_settings {
    mk_str name, location;
    uint32_t meter; /* series of the section's statistics; set when the section is read */
};

/* Returns this worker's metrics for the calls that use a section. `settings`: those of the section, which
 * begin with a struct package_settings. */
static inline uint64_t *package_meter(const struct mk_worker *w, const void *settings)
{
    return mk_worker_cells(w, ((const struct package_settings *)settings)->meter);
}

/* Starts to measure a call; pass the result to package_meter_end(). */
static inline uint64_t package_meter_begin(uint64_t *p)
{
    mk_meter_begin(p);
    return mk_clock_us();
}

/* Returns whether the error is a failure. A missing or changed entry, or a violated constraint, is a regular
 * result. */
static inline bool package_meter_is_failure(int e)
{
    return e < 0 && e != -ENOENT && e != -EEXIST && e != -ERANGE && e != -ESTALE && e != -EDOM &&
           e != -EDQUOT;
}

static inline void package_meter_end(uint64_t *p, uint64_t began_us, int e)
{
    mk_meter_end(p, mk_clock_us() - began_us, package_meter_is_failure(e));
}

/* A handler's call into a package: one wait, counted as one call. A cancelled handler starts no call, so
 * no call acquires a connection or memory that would not be released. */
struct package_call {
    struct duda_wait wait; /* must be first */
    uint64_t *meter;
    uint64_t began_us;
    int result;
};

void package_call_record(struct duda_wait *w);

/* Begins a call. Returns 0, or the error that cancelled the handler. The call is not counted if `meter` is
 * NULL. */
static inline int package_call_begin(struct package_call *c, struct duda_ctx *d, uint64_t *meter)
{
    int e = duda_wait_begin(d, &c->wait, package_call_record);
    if (e)
        return e;
    c->meter = meter;
    c->result = -ECANCELED; /* unless the call finishes */
    c->began_us = meter ? package_meter_begin(meter) : 0;
    return 0;
}

/* Ends the call and returns `result`. Does nothing else if the call did not begin. */
static inline int package_call_end(struct package_call *c, int result)
{
    c->result = result;
    duda_wait_end(&c->wait);
    return result;
}

/* clang-format off */
/* The default `Name` of a section. A function whose `name` is NULL selects the section with this Name. */
#define PACKAGE_MAIN "main"
/* The key `Name` of a section's settings. */
#define PACKAGE_NAME_KEY                                                                                        \
    {.name = "Name", .type = MK_CONF_TEXT, MK_CONF_AT(struct package_settings, name), .default_value = PACKAGE_MAIN,            \
     .min = 1, .max = 63, .help = "Name by which services refer to it."}
/* clang-format on */

enum { PACKAGE_SECTIONS_MAX = 64 };

struct package_type;

/* The sections of a configuration, in order. */
struct package_sections {
    const struct package_type *kind;
    void *v[PACKAGE_SECTIONS_MAX]; /* settings of the valid sections */
    size_t n;
    bool has_invalid;
};

struct package_type {
    const struct mk_plugin *plugin;
    const struct mk_conf_table *table;
    const char *name;           /* name of the package: "kv" */
    const char *location;       /* name of the key that each section must set, unless it is optional */
    bool location_is_optional;  /* check_section() decides whether the section needs it */
    size_t max;                 /* maximum number of sections; up to PACKAGE_SECTIONS_MAX */
    bool works_without_section; /* another package may need this one: do not warn about missing sections */
    /* Validates the other keys of a section. Reports an error and returns false if one of them is invalid. */
    bool (*check_section)(struct mk_config *config, const struct package_sections *before, void *settings);
    /* Registers the Name of a valid section with other plugins; may be NULL. */
    void (*declare)(struct mk_config *config, const void *settings, mk_str name);
    size_t size; /* size of the per-worker instance, initially zeroed */
    /* Opens an instance. Returns 0 or a negated errno value; -EEXIST: a section of another type already has
     * the Name. If the pointer is NULL, the instance is a copy of the settings. */
    int (*open)(void *instance, struct mk_worker *w, const void *settings);
    /* Cancels the tasks of the instance, for package_worker_cancel(). */
    void (*cancel)(void *instance);
    /* Also called if open() failed; may be NULL. */
    void (*close)(void *instance);
};

/* The section of the package `id`, with the keys in `keys`: `settings` is the struct that holds their values,
 * `about` the help text. The other arguments are members of struct mk_conf_table. Pass
 * `.sections = sections` to PACKAGE_PLUGIN(). */
#define PACKAGE_TABLE(id, section_name, settings, about, ...)                                                \
    MK_PLUGIN_DECLARE(duda_##id);                                                                            \
    static const struct mk_conf_table table = {.section = section_name,                                      \
                                               .keys = keys,                                                 \
                                               .n = MK_LEN(keys),                                            \
                                               .help = about,                                                \
                                               .size = sizeof(settings),                                     \
                                               .scope = MK_CONF_SERVER,                                      \
                                               __VA_ARGS__};                                                 \
    static const struct mk_conf_table *const sections[] = {&table, NULL}

/* Like PACKAGE_TABLE(), for a section that may occur several times: each has a Name and an instance of struct
 * `in_worker` in each worker. The other arguments are members of struct package_type. */
#define PACKAGE_TYPE(id, section_name, settings, in_worker, about, ...)                                      \
    PACKAGE_TABLE(id, section_name, settings, about, .repeatable = true);                                    \
    static const struct package_type kind = {.plugin = &MK_PLUGIN_OF(duda_##id),                             \
                                             .table = &table,                                                \
                                             .name = #id,                                                    \
                                             .size = sizeof(in_worker),                                      \
                                             __VA_ARGS__};                                                   \
    static int load_sections(struct mk_config *config, void **data)                                          \
    {                                                                                                        \
        return package_load(&kind, config, data);                                                            \
    }                                                                                                        \
    MK_PLUGIN_DECLARE(duda_##id)

#define PACKAGE_NEEDS(...)                                                                                   \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

/* Pass this to PACKAGE_PLUGIN() if the package defines its section with PACKAGE_TYPE(). */
#define PACKAGE_HAS_TYPE                                                                                     \
    .sections = sections, .load = load_sections, .worker_start = package_worker_start,                       \
    .worker_stop = package_worker_stop

/* The plugin of the package, with the help text `about`; other arguments are members of struct mk_plugin. */
#define PACKAGE_PLUGIN(id, about, ...)                                                                       \
    MK_PLUGIN(duda_##id) = {MK_PLUGIN_HEAD, .name = "duda-" #id, .version = MK_VERSION, .help = about,       \
                            __VA_ARGS__}

/* Returns the absolute path of a file or folder with data, as mk_config_path() does. In `monkey test`, it is
 * in the folder of the running test, so that each test begins without data. */
mk_str package_data_path(struct mk_config *config, const void *settings, mk_str path);
/* Returns the folder of the running test; NULL outside of `monkey test`. */
const char *package_test_folder(void);

/* The hooks that PACKAGE_HAS_TYPE sets; load_sections(), which PACKAGE_TYPE() defines, calls
 * package_load(). */
int package_load(const struct package_type *kind, struct mk_config *config, void **data);
int package_worker_start(struct mk_worker *w, void *data);
void package_worker_cancel(struct mk_worker *w, void *data);
void package_worker_stop(struct mk_worker *w, void *data);
/* Return this worker's instance of the section with that Name; `name` NULL selects PACKAGE_MAIN, or the only
 * section. Without such a section, they log an error and return NULL. */
void *package_find_instance(const struct package_type *kind, struct duda_ctx *d, const char *name);
void *package_instance_of(const struct package_type *kind, struct mk_worker *w, const char *name);

/* Logs that a handler used a missing section, once for each Name. Package functions then return -ENODEV; if
 * the handler returns this error as well, the log message about it contains the recorded reason. */
void package_log_missing_section(struct duda_ctx *d, const char *section, const char *name);
/* Like the function above, but for a worker, outside of handlers. */
void package_log_missing_section_in(struct mk_worker *w, const char *section, const char *name);

#endif
