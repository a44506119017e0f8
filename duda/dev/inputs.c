/* SPDX-License-Identifier: Apache-2.0 */
#include "inputs.h"

#include "paths.h"

#include <monkey/text.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 1024 * 1024 };

/* The hashes protect against accidents only: attackers cannot write to the cache. */
uint64_t dev_inputs_hash_text(mk_str text)
{
    static const struct mk_hash_key key = {1, 2};
    return mk_hash(&key, text);
}

static void append_file_hash(struct mk_buf *sums, bool is_there, mk_str text)
{
    mk_buf_addf(sums, "%d %llx ", is_there, (unsigned long long)dev_inputs_hash_text(text));
}

uint64_t dev_inputs_hash_with(mk_str files, const struct dev_source *source)
{
    struct mk_buf sums = mk_buf_growing(FILES_MAX);
    while (files.len) {
        mk_str line = mk_str_cut(&files, '\n');
        if (source && mk_str_eq(line, mk_str_from_c(source->path))) {
            append_file_hash(&sums, true, mk_buf_str(&source->text));
            continue;
        }
        char path[PATH_MAX];
        struct mk_buf text = mk_buf_growing(DEV_SOURCE_MAX);
        bool ok = dev_paths_format(path, "%.*s", MK_STR_ARG(line)) && dev_source_read_file(path, &text);
        append_file_hash(&sums, ok, mk_buf_str(&text));
        mk_buf_free(&text);
    }
    uint64_t stamp = dev_inputs_hash_text(mk_buf_str(&sums));
    mk_buf_free(&sums);
    return stamp;
}

uint64_t dev_inputs_hash(mk_str files)
{
    return dev_inputs_hash_with(files, NULL);
}

/* ---- Files saved during a compilation ---- */

/* Returns a hash that changes when one of the files is written or replaced, even with the same content. */
static uint64_t hash_file_stats(mk_str files)
{
    struct mk_buf marks = mk_buf_growing(FILES_MAX);
    while (files.len) {
        struct stat st;
        char path[PATH_MAX];
        mk_str line = mk_str_cut(&files, '\n');
        if (!dev_paths_format(path, "%.*s", MK_STR_ARG(line)) || stat(path, &st) < 0)
            st = (struct stat){0};
        mk_buf_addf(&marks, "%llx %llx %lld.%ld ", (unsigned long long)st.st_dev,
                    (unsigned long long)st.st_ino, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
    }
    uint64_t mark = dev_inputs_hash_text(mk_buf_str(&marks));
    mk_buf_free(&marks);
    return mark;
}

struct dev_inputs_snapshot dev_inputs_take_snapshot(mk_str known, mk_str sources)
{
    struct dev_inputs_snapshot m = {.files = mk_buf_growing(2 * FILES_MAX)};
    mk_buf_add(&m.files, known);
    mk_buf_add(&m.files, sources);
    m.mark = hash_file_stats(mk_buf_str(&m.files));
    /* File systems use this clock for modification times. */
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &m.begin);
    return m;
}

static bool has_line(mk_str lines, mk_str line)
{
    while (lines.len)
        if (mk_str_eq(mk_str_cut(&lines, '\n'), line))
            return true;
    return false;
}

static bool is_newer_than(mk_str file, const struct timespec *t)
{
    char path[PATH_MAX];
    struct stat st;
    if (!dev_paths_format(path, "%.*s", MK_STR_ARG(file)) || stat(path, &st) < 0)
        return true;
    return st.st_ctim.tv_sec > t->tv_sec ||
           (st.st_ctim.tv_sec == t->tv_sec && st.st_ctim.tv_nsec >= t->tv_nsec);
}

bool dev_inputs_changed_since(const struct dev_inputs_snapshot *m, mk_str files)
{
    bool any = hash_file_stats(mk_buf_str(&m->files)) != m->mark;
    while (!any && files.len) {
        mk_str line = mk_str_cut(&files, '\n');
        any = !has_line(mk_buf_str(&m->files), line) && is_newer_than(line, &m->begin);
    }
    return any;
}

/* ---- Dependencies ---- */

void dev_inputs_add_files(struct mk_buf *files, mk_str more)
{
    while (more.len) {
        mk_str line = mk_str_cut(&more, '\n');
        if (!has_line(mk_buf_str(files), line))
            mk_buf_addf(files, "%.*s\n", MK_STR_ARG(line));
    }
}

void dev_inputs_parse_depfile(mk_str rule, const char *cache, struct mk_buf *files)
{
    size_t at = mk_str_find(rule, ':'), begin = files->len;
    for (size_t i = at == MK_STR_NONE ? rule.len : at + 1; i <= rule.len; i++) {
        char c = i < rule.len ? rule.p[i] : ' ';
        bool quotes = c == '\\' && i + 1 < rule.len;
        if (quotes && rule.p[i + 1] != '\n')
            mk_buf_add_char(files, rule.p[++i]);
        else if (c == '$' && i + 1 < rule.len && rule.p[i + 1] == '$')
            mk_buf_add_char(files, rule.p[++i]);
        else if (c != ' ' && c != '\n' && c != '\t' && !quotes)
            mk_buf_add_char(files, c);
        else if (files->len > begin) {
            mk_str name = mk_str_skip(mk_buf_str(files), begin);
            if (mk_str_starts(name, mk_str_from_c(cache)))
                files->len = begin; /* drops a generated file, which only includes the source */
            else
                mk_buf_add_char(files, '\n');
            begin = files->len;
        }
    }
}

void dev_inputs_read_depfile(const char *path, const char *cache, struct mk_buf *files)
{
    struct mk_buf rule = mk_buf_growing(FILES_MAX);
    struct mk_buf found = mk_buf_growing(FILES_MAX);
    if (dev_source_read_file(path, &rule))
        dev_inputs_parse_depfile(mk_buf_str(&rule), cache, &found);
    (void)unlink(path);
    dev_inputs_add_files(files, mk_buf_str(&found));
    mk_buf_free(&rule);
    mk_buf_free(&found);
}
