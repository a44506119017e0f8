/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/read.h"

#include "conf/lexer.h"
#include "conf/other_server.h"
#include "conf/path.h"
#include "conf/suggest.h"
#include "conf/vars.h"
#include "conf/words.h"

/* A file being read; `up` is the file that includes this one, or NULL. */
struct include_frame {
    const struct include_frame *up;
    mk_str path;
    unsigned depth;
    struct mk_conf_source_pos include; /* the last @INCLUDE of this file; line 0: none */
    struct mk_conf_section *section;   /* section of the following entries; NULL: there is none */
    bool drop_entries;                 /* drop entries silently: their missing section or invalid header was
                                        * reported */
};

struct reader {
    struct mk_conf_tree *tree;
    struct mk_arena *arena;
    const struct mk_conf_io *io;
    struct mk_conf_report *report;
    struct mk_conf_vars vars;
    size_t n_files, n_bytes;
    bool limit_exceeded; /* the files together exceed a limit, which was reported: open no more files */
};

/* Returns the position of the line's value. */
static struct mk_conf_source_pos value_pos(const struct mk_conf_line *line)
{
    struct mk_conf_source_pos at = line->at;
    at.column = line->rest_column;
    return at;
}

static void on_section(struct reader *r, struct include_frame *f, const struct mk_conf_line *line)
{
    f->drop_entries = !line->word.p;
    f->section = f->drop_entries ? NULL : mk_conf_tree_add_section(r->tree, r->arena, line->word, &line->at);
}

static void report_no_section(struct reader *r, struct include_frame *f, const struct mk_conf_line *line)
{
    if (f->drop_entries || mk_conf_report_out_of_memory(r->report))
        return;
    f->drop_entries = true;
    mk_conf_report_error(r->report, &line->at, "`%.*s` is not in a section", MK_CONF_REPORT_ARG(line->word));
    if (f->include.line)
        mk_conf_report_hint(r->report, "the @INCLUDE on line %u ended the section above it", f->include.line);
    else
        mk_conf_report_hint(r->report, "a line with `[SECTION]` must come first");
}

static void on_entry(struct reader *r, struct include_frame *f, const struct mk_conf_line *line)
{
    if (!f->section) {
        report_no_section(r, f, line);
        return;
    }
    struct mk_conf_source_pos at = value_pos(line);
    struct mk_conf_entry e = {.key = line->word, .at = line->at, .value_column = line->rest_column};
    r->vars.key = line->word;
    e.broken = !mk_conf_vars_expand(&r->vars, line->rest, &at, &e.value);
    r->vars.key = MK_STR("");
    (void)!mk_conf_tree_add_entry(f->section, r->arena, &e);
}

static void on_set(struct reader *r, const struct mk_conf_line *line)
{
    mk_str rest = line->rest, name = mk_str_word(&rest), value = mk_str_trim(rest);
    struct mk_conf_source_pos at = value_pos(line);
    if (!mk_conf_vars_is_name(name) || value.len == 0) {
        mk_conf_report_error(r->report, &at,
                             "expected `@SET NAME value`, with a name of letters, digits and `_`");
        return;
    }
    at.column += (unsigned)(value.p - line->rest.p);
    mk_str expanded;
    if (!mk_conf_vars_expand(&r->vars, value, &at, &expanded))
        expanded = MK_STR(""); /* define the variable anyway, so that its uses are not reported as well */
    mk_conf_vars_set(&r->vars, name, expanded);
}

static void read_config_file(struct reader *r, const struct include_frame *up, mk_str path);

static void include_matches(struct reader *r, struct include_frame *f, mk_str pattern)
{
    struct mk_conf_path_list list;
    mk_err err = mk_conf_path_glob(r->arena, r->io, pattern, &list);
    if (err == -ENOMEM)
        r->report->no_memory = true; /* glob() may have run out of memory outside the arena */
    else if (err)
        mk_conf_report_error(r->report, &f->include, "`%.*s` cannot be expanded: %s", MK_STR_ARG(pattern),
                             mk_err_text(err));
    for (size_t i = 0; i < list.n; i++)
        read_config_file(r, f, list.v[i]);
}

static void on_include(struct reader *r, struct include_frame *f, const struct mk_conf_line *line)
{
    mk_str text, pattern;
    f->section = NULL;
    f->drop_entries = false;
    f->include = value_pos(line);
    if (!mk_conf_vars_expand(&r->vars, line->rest, &f->include, &text))
        return;
    mk_err err = mk_conf_words_unquote(r->arena, text, &pattern);
    if (err == -ENOMEM)
        return;
    if (err || pattern.len == 0) {
        mk_conf_report_error(r->report, &f->include, "expected `@INCLUDE file` or `@INCLUDE folder/*.conf`");
        return;
    }
    mk_str path = mk_conf_path_resolve(r->arena, f->path, pattern);
    if (!path.p)
        return;
    if (mk_conf_path_is_pattern(pattern))
        include_matches(r, f, path);
    else
        read_config_file(r, f, path);
}

static void on_directive(struct reader *r, struct include_frame *f, const struct mk_conf_line *line)
{
    const mk_str include = MK_STR("@INCLUDE"), set = MK_STR("@SET");
    if (mk_str_eq_nocase(line->word, include)) {
        on_include(r, f, line);
    } else if (mk_str_eq_nocase(line->word, set)) {
        on_set(r, line);
    } else {
        struct mk_conf_suggest near = mk_conf_suggest_for(line->word);
        mk_conf_suggest_try(&near, include);
        mk_conf_suggest_try(&near, set);
        mk_conf_report_error(r->report, &line->at, "unknown directive `%.*s`: expected @INCLUDE or @SET",
                             MK_CONF_REPORT_ARG(line->word));
        mk_conf_report_suggest(r->report, near.best);
    }
}

static void parse_lines(struct reader *r, struct include_frame *f, mk_str text)
{
    struct mk_conf_lexer lexer;
    struct mk_conf_line line;
    mk_conf_lexer_init(&lexer, f->path, text, r->report);
    while (mk_conf_lexer_next(&lexer, &line) && !mk_conf_report_out_of_memory(r->report)) {
        if (line.kind == MK_CONF_LINE_SECTION)
            on_section(r, f, &line);
        else if (line.kind == MK_CONF_LINE_ENTRY)
            on_entry(r, f, &line);
        else
            on_directive(r, f, &line);
    }
}

/* Appends "a.conf:3 -> b.conf:1 -> ": the file and the line of each @INCLUDE, outermost file first. */
static void append_include_chain(struct mk_buf *out, const struct include_frame *f)
{
    if (f->up)
        append_include_chain(out, f->up);
    mk_buf_addf(out, "%.*s:%u -> ", MK_CONF_REPORT_ARG(f->path), f->include.line);
}

static void report_include_cycle(struct reader *r, const struct include_frame *up, mk_str path)
{
    char room[512];
    struct mk_buf chain = mk_buf_fixed(room, sizeof room);
    append_include_chain(&chain, up);
    mk_buf_addf(&chain, "%.*s", MK_CONF_REPORT_ARG(path));
    mk_conf_report_error(r->report, &up->include, "`%.*s` includes itself", MK_CONF_REPORT_ARG(path));
    mk_conf_report_hint(r->report, "%.*s", MK_STR_ARG(mk_buf_str(&chain)));
}

/* May the file be included? The limits bound recursion and memory. After the limit on the number of files is
 * exceeded, no further file is read. */
static bool may_include(struct reader *r, const struct include_frame *up, mk_str path)
{
    for (const struct include_frame *f = up; f; f = f->up)
        if (mk_str_eq(f->path, path)) {
            report_include_cycle(r, up, path);
            return false;
        }
    if (up && up->depth == MK_CONF_DEPTH_MAX) {
        mk_conf_report_error(r->report, &up->include, "more than %d nested @INCLUDEs", MK_CONF_DEPTH_MAX);
        return false;
    }
    if (up && r->n_files == MK_CONF_FILES_MAX && !r->limit_exceeded) {
        mk_conf_report_error(r->report, &up->include, "the configuration has more than %d files",
                             MK_CONF_FILES_MAX);
        r->limit_exceeded = true;
    }
    return !r->limit_exceeded;
}

/* Reports a file in the format of another server, and returns true. The caller then does not parse the file,
 * because most of its lines would be errors. */
static bool report_other_server(struct reader *r, mk_str path, mk_str text)
{
    struct mk_conf_other_server found = mk_conf_other_server_detect(text);
    if (!found.name)
        return false;
    struct mk_conf_source_pos at = {.file = path, .line = found.line, .source = found.source};
    mk_conf_report_error(r->report, &at, "this is a configuration for %s, not for Monkey", found.name);
    mk_conf_report_hint(r->report, "%s", found.hint);
    return true;
}

/* Parses the text of a file; the text is already in the arena. */
static void parse_file_text(struct reader *r, const struct include_frame *up, mk_str path, mk_str text)
{
    struct include_frame f = {.up = up, .path = path, .depth = up ? up->depth + 1 : 1};
    r->n_bytes += text.len;
    if (!text.p)
        return;
    if (report_other_server(r, path, text))
        return;
    if (r->n_bytes <= MK_CONF_TOTAL_MAX)
        parse_lines(r, &f, text);
    else if (!r->limit_exceeded)
        mk_conf_report_error(r->report, &(struct mk_conf_source_pos){.file = path},
                             "the files of the configuration have more than %d bytes", MK_CONF_TOTAL_MAX);
    r->limit_exceeded = r->limit_exceeded || r->n_bytes > MK_CONF_TOTAL_MAX;
}

static void report_unreadable(struct reader *r, const struct include_frame *up, mk_str path, mk_err err)
{
    struct mk_conf_source_pos itself = {.file = path};
    if (err == -ENOMEM)
        r->report->no_memory = true;
    else if (err == -EFBIG)
        mk_conf_report_error(r->report, up ? &up->include : &itself, "`%.*s` has more than %d bytes",
                             MK_STR_ARG(path), MK_CONF_FILE_MAX);
    else
        mk_conf_report_error(r->report, up ? &up->include : &itself, "`%.*s` cannot be read: %s",
                             MK_STR_ARG(path), mk_err_text(err));
}

static void read_config_file(struct reader *r, const struct include_frame *up, mk_str path)
{
    if (!may_include(r, up, path))
        return;
    r->n_files++;
    struct mk_buf buf = mk_buf_growing(MK_CONF_FILE_MAX);
    mk_err err = r->io->read(r->io->ctx, path, &buf);
    if (!err && buf.failed)
        err = -EFBIG;
    if (err)
        report_unreadable(r, up, path, err);
    else
        parse_file_text(r, up, path, mk_arena_copy(r->arena, mk_buf_str(&buf)));
    mk_buf_free(&buf);
}

static struct reader init_reader(struct mk_conf_tree *tree, struct mk_arena *arena,
                                 const struct mk_conf_io *io, struct mk_conf_report *report)
{
    return (struct reader){
        .tree = tree,
        .arena = arena,
        .io = io,
        .report = report,
        .vars = {
            .arena = arena, .io = io, .report = report, .key = MK_STR(""), .env_values = tree->env_values}};
}

mk_err mk_conf_read_file(struct mk_conf_tree *tree, struct mk_arena *arena, const struct mk_conf_io *io,
                         mk_str path, struct mk_conf_report *report)
{
    struct reader r = init_reader(tree, arena, io, report);
    mk_str clean = mk_conf_path_resolve(arena, MK_STR(""), path);
    if (clean.p)
        read_config_file(&r, NULL, clean);
    tree->env_values = r.vars.env_values;
    return mk_conf_report_result(report);
}

mk_err mk_conf_read_text(struct mk_conf_tree *tree, struct mk_arena *arena, const struct mk_conf_io *io,
                         mk_str name, mk_str text, struct mk_conf_report *report)
{
    struct reader r = init_reader(tree, arena, io, report);
    mk_str clean = mk_conf_path_resolve(arena, MK_STR(""), name);
    r.n_files++;
    if (clean.p)
        parse_file_text(&r, NULL, clean, mk_arena_copy(arena, text));
    tree->env_values = r.vars.env_values;
    return mk_conf_report_result(report);
}
