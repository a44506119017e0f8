/* SPDX-License-Identifier: Apache-2.0 */
/* A fake environment for configuration tests: in-memory files and environment variables. */
#ifndef MK_UNIT_CONF_FIXTURE_H
#define MK_UNIT_CONF_FIXTURE_H

#include "conf/read.h"
#include "unit/harness.h"
#include "unit/test.h"

struct conf_file {
    const char *path, *text;
};

struct conf_fixture {
    const struct conf_file *files; /* the path of the last entry is NULL */
    const struct conf_file *env;   /* names and values; the last name is NULL */
    struct mk_conf_io io;
    struct mk_arena arena;
    struct mk_conf_report report;
    struct mk_conf_tree tree;
    size_t n_reads;
};

static inline mk_err conf_fixture_read(void *ctx, mk_str path, struct mk_buf *out)
{
    struct conf_fixture *w = ctx;
    w->n_reads++;
    for (const struct conf_file *f = w->files; f && f->path; f++)
        if (mk_str_eq(mk_str_from_c(f->path), path)) {
            mk_buf_add(out, mk_str_from_c(f->text));
            return out->failed ? -ENOMEM : 0;
        }
    return -ENOENT;
}

static inline mk_err conf_fixture_glob(void *ctx, mk_str pattern, bool (*found)(void *data, mk_str path),
                                       void *data)
{
    struct conf_fixture *w = ctx;
    for (const struct conf_file *f = w->files; f && f->path; f++)
        if (mk_str_match(mk_str_from_c(f->path), pattern) && !found(data, mk_str_from_c(f->path)))
            break;
    return 0;
}

static inline mk_str conf_fixture_env(void *ctx, mk_str name)
{
    struct conf_fixture *w = ctx;
    for (const struct conf_file *f = w->env; f && f->path; f++)
        if (mk_str_eq(mk_str_from_c(f->path), name))
            return mk_str_from_c(f->text);
    return MK_STR_NULL;
}

static inline void conf_fixture_init(struct conf_fixture *w, const struct conf_file *files,
                                     const struct conf_file *env)
{
    *w = (struct conf_fixture){.files = files, .env = env};
    w->io = (struct mk_conf_io){
        .read = conf_fixture_read, .glob = conf_fixture_glob, .env = conf_fixture_env, .ctx = w};
    mk_arena_init(&w->arena, NULL);
    mk_conf_report_init(&w->report, &w->arena);
}

static inline void conf_fixture_fini(struct conf_fixture *w)
{
    mk_arena_fini(&w->arena);
}

static inline void conf_fixture_end(void *p)
{
    conf_fixture_fini(p);
}

/* Sets up an environment without files, which the harness frees when the test case ends. */
static inline void conf_fixture_setup(struct conf_fixture *w)
{
    conf_fixture_init(w, NULL, NULL);
    harness_defer(conf_fixture_end, w);
}

static inline mk_err conf_fixture_read_text(struct conf_fixture *w, const char *text)
{
    return mk_conf_read_text(&w->tree, &w->arena, &w->io, MK_STR("t.conf"), mk_str_from_c(text), &w->report);
}

/* Returns one problem per line: "t.conf:3:5: error: text (hint)". */
static inline mk_str conf_fixture_problems(struct conf_fixture *w)
{
    struct mk_buf b = mk_buf_growing(1 << 20);
    for (const struct mk_conf_problem *p = w->report.first; p; p = p->next) {
        mk_buf_addf(&b, "%.*s:%u:%u: %s: %.*s", MK_STR_ARG(p->at.file), p->at.line, p->at.column,
                    p->severity == MK_CONF_ERROR ? "error" : "warning", MK_STR_ARG(p->text));
        if (p->hint.p)
            mk_buf_addf(&b, " (%.*s)", MK_STR_ARG(p->hint));
        mk_buf_add_char(&b, '\n');
    }
    mk_str text = mk_arena_copy(&w->arena, mk_buf_str(&b));
    mk_buf_free(&b);
    return text;
}

/* Returns the tree as text: "[A] k=v k=v [B]". */
static inline mk_str conf_fixture_tree(struct conf_fixture *w)
{
    struct mk_buf b = mk_buf_growing(1 << 20);
    for (const struct mk_conf_section *s = w->tree.first; s; s = s->next) {
        mk_buf_addf(&b, "%s[%.*s]", b.len ? " " : "", MK_STR_ARG(s->name));
        for (const struct mk_conf_entry *e = s->first; e; e = e->next)
            mk_buf_addf(&b, " %.*s=%.*s", MK_STR_ARG(e->key), MK_STR_ARG(e->value));
    }
    mk_str text = mk_arena_copy(&w->arena, mk_buf_str(&b));
    mk_buf_free(&b);
    return text;
}

/* Reads `text` and compares the tree and the problems with the expected strings. */
static inline void conf_fixture_expect(const struct conf_file *files, const struct conf_file *env,
                                       const char *text, const char *tree, const char *problems)
{
    struct conf_fixture w;
    conf_fixture_init(&w, files, env);
    mk_err err = conf_fixture_read_text(&w, text);
    assert_str(conf_fixture_problems(&w), problems);
    assert_str(conf_fixture_tree(&w), tree);
    assert_int_equal(err, w.report.n_errors ? -EINVAL : 0);
    conf_fixture_fini(&w);
}

#endif
