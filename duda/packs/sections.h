/* SPDX-License-Identifier: Apache-2.0 */
/* What packages with sections have in common: sections with a Name and a place, and what each worker has for
 * each of them. It is compiled into each package, and knows none of them. */
#ifndef DUDA_PACKS_SECTIONS_H
#define DUDA_PACKS_SECTIONS_H

#include <monkey/plugin.h>

/* What the struct of a section begins with. */
struct pack_settings {
    mk_str name, place;
};

/* The key `Name` of such a struct. */
#define PACK_NAME_KEY                                                                                        \
    {                                                                                                        \
        .name = "Name", .type = MK_CONF_TEXT, MK_CONF_AT(struct pack_settings, name), .def = "main",         \
        .min = 1, .max = 63, .help = "What services call it, if there are several."                          \
    }

enum { PACK_SECTIONS_MAX = 64 };

/* The sections of a configuration, in their order. */
struct pack_sections {
    void *v[PACK_SECTIONS_MAX];
    size_t n;
};

struct pack_kind {
    const struct mk_plugin *plugin;
    const struct mk_conf_table *table;
    const char *place; /* the key that a section must have */
    size_t max;        /* sections; up to PACK_SECTIONS_MAX */
    /* Looks at the other keys of a section. False: it is wrong, and that is reported. */
    bool (*check)(struct mk_config *config, const struct pack_sections *before, void *settings);
    size_t size; /* of what a worker has for each section: zeroes at first */
    /* 0 or a negated errno value; -EEXIST: the name is taken by another kind of section. */
    int (*open)(void *one, struct mk_worker *w, const void *settings);
    /* Also after an open() that failed. */
    void (*close)(void *one);
};

/* NULL: memory is out, which is reported. */
struct pack_sections *pack_sections_read(const struct pack_kind *kind, struct mk_config *config);

/* For worker_start and worker_stop. */
int pack_sections_start(const struct pack_kind *kind, struct mk_worker *w,
                        const struct pack_sections *sections);
void pack_sections_stop(const struct pack_kind *kind, struct mk_worker *w);
/* What this worker has for the section of that Name; NULL names the first. NULL: there is none. */
void *pack_sections_find(const struct pack_kind *kind, const struct mk_worker *w, const char *name);

#endif
