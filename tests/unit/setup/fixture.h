/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with a configuration, which the tests load as the program does. */
#ifndef MK_UNIT_SETUP_FIXTURE_H
#define MK_UNIT_SETUP_FIXTURE_H

#include "setup/config_generation.h"
#include "setup/config_reader.h"
#include "unit/folder.h"
#include "unit/harness.h"
#include "unit/test.h"

struct config_fixture {
    struct folder folder;
    struct mk_arena arena; /* memory of the report */
    struct mk_conf_report report;
    struct mk_config_overrides overrides;
    struct mk_config_generation *g;
};

/* Creates the folder, and in it a folder `site` with an index.html. */
static inline void config_init(struct config_fixture *c)
{
    memset(c, 0, sizeof *c);
    folder_init(&c->folder);
    mk_arena_init(&c->arena, NULL);
    folder_add_folder(&c->folder, "site");
    folder_add(&c->folder, "site/index.html", MK_STR("index"));
}

static inline void config_unload(struct config_fixture *c)
{
    if (c->g)
        mk_config_generation_free(c->g);
    c->g = NULL;
    mk_arena_fini(&c->arena);
}

static inline void config_fini(struct config_fixture *c)
{
    config_unload(c);
    folder_fini(&c->folder);
}

HARNESS_FIXTURE(config, struct config_fixture);

/* Loads the file `name`, or the folder (""). Returns false if the configuration is rejected. */
static inline bool config_load_file(struct config_fixture *c, const char *name)
{
    char path[PATH_MAX];
    struct mk_config_source origin = {
        .reader = &mk_config_reader, .path = folder_path(&c->folder, name, path), .overrides = c->overrides};
    config_unload(c);
    c->g = mk_config_generation_load(&origin, &c->arena, &c->report);
    return c->g != NULL;
}

/* Loads a monkey.conf with this text. */
static inline bool config_load(struct config_fixture *c, const char *text)
{
    folder_add(&c->folder, "monkey.conf", mk_str_from_c(text));
    return config_load_file(c, "monkey.conf");
}

static inline void config_expect(struct config_fixture *c, const char *text)
{
    if (config_load(c, text))
        return;
    struct mk_buf out = mk_buf_growing(1 << 16);
    mk_conf_report_print(&c->report, &out);
    fail_msg("refused: %.*s", MK_STR_ARG(mk_buf_str(&out)));
}

/* Writes the `n`-th problem (from 0) to `buffer` as "file:line: text", without the folder of the file; "" if
 * there are fewer problems. */
static inline mk_str config_problem(const struct config_fixture *c, size_t n, char buffer[512])
{
    struct mk_buf out = mk_buf_fixed(buffer, 512);
    const struct mk_conf_problem *p = c->report.first;
    while (p && n--)
        p = p->next;
    if (!p)
        return MK_STR("");
    mk_str file = p->at.file;
    size_t slash = mk_str_find_last(file, '/');
    mk_buf_addf(&out, "%.*s:%u: %.*s", MK_STR_ARG(mk_str_skip(file, slash == MK_STR_NONE ? 0 : slash + 1)),
                p->at.line, MK_STR_ARG(p->text));
    return mk_buf_str(&out);
}

/* Expects the configuration to be rejected, and the first problem to start with `problem`. */
static inline void config_expect_rejected(struct config_fixture *c, const char *text, const char *problem)
{
    char buffer[512];
    if (config_load(c, text))
        fail_msg("taken: %s", text);
    mk_str first = config_problem(c, 0, buffer);
    if (!mk_str_starts(first, mk_str_from_c(problem)))
        fail_msg("\"%.*s\", not \"%s\"", MK_STR_ARG(first), problem);
}

#endif
