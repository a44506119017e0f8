/* SPDX-License-Identifier: Apache-2.0 */
#include "config_include.h"

#include "paths.h"
#include "service_files.h"
#include "source.h"

#include <glob.h>
#include <monkey/text.h>
#include <string.h>

enum { DEPTH_MAX = 8, FILES_MAX = 256, TEXT_MAX = 1024 * 1024 };

struct config_scan {
    const char *section, *key;
    struct mk_buf *files;
    bool found, in_section;
    unsigned depth, n;
};

static void scan_config_file(struct config_scan *r, const char *path);

/* Scans the files that an `@INCLUDE` in the file `path` names: one file or a glob pattern, relative to the
 * folder of `path`. */
static void scan_include(struct config_scan *r, const char *path, mk_str pattern)
{
    char full[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int len = slash && pattern.p[0] != '/' ? (int)(slash - path) + 1 : 0;
    glob_t found;
    if (!dev_paths_format(full, "%.*s%.*s", len, path, MK_STR_ARG(pattern)) ||
        glob(full, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        scan_config_file(r, found.gl_pathv[i]);
    globfree(&found);
}

/* Lists the files in the folder that a key `Migrations` names. The server reads them when it starts. */
static void list_migrations(struct config_scan *r, const char *path, mk_str folder)
{
    char full[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (folder.len > 2 && folder.p[0] == '"' && mk_str_ends(folder, MK_STR("\"")))
        folder = mk_str_of(folder.p + 1, folder.len - 2);
    int len = slash && folder.p[0] != '/' ? (int)(slash - path) + 1 : 0;
    if (!dev_paths_format(full, "%.*s%.*s", len, path, MK_STR_ARG(folder)))
        return;
    mk_buf_addf(r->files, "%s/\n", full); /* watched even while it is empty */
    dev_list_tree(full, 0, r->files, NULL);
}

static void scan_config_line(struct config_scan *r, const char *path, mk_str line)
{
    mk_str rest = mk_str_trim(line), word = mk_str_word(&rest);
    rest = mk_str_trim(rest);
    if (mk_str_eq_nocase(word, MK_STR("@INCLUDE")) && rest.len) {
        scan_include(r, path, rest);
    } else if (word.len > 2 && word.p[0] == '[') {
        mk_str name = mk_str_of(word.p + 1, mk_str_find(mk_str_skip(word, 1), ']'));
        r->in_section =
            name.len < word.len && r->section && mk_str_eq_nocase(name, mk_str_from_c(r->section));
        r->found = r->found || (r->in_section && !r->key);
    } else if (r->files && mk_str_eq_nocase(word, MK_STR("Migrations")) && rest.len) {
        list_migrations(r, path, rest);
    } else if (r->in_section && r->key) {
        r->found = r->found || mk_str_eq_nocase(word, mk_str_from_c(r->key));
    }
}

static void scan_config_file(struct config_scan *r, const char *path)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    if (r->depth++ < DEPTH_MAX && r->n++ < FILES_MAX && dev_source_read_file(path, &text)) {
        mk_str rest = mk_buf_str(&text);
        if (r->files)
            mk_buf_addf(r->files, "%s\n", path);
        while (rest.len)
            scan_config_line(r, path, mk_str_cut(&rest, '\n'));
    }
    r->depth--;
    mk_buf_free(&text);
}

bool dev_config_include_has(const char *path, const char *section, const char *key)
{
    struct config_scan r = {.section = section, .key = key};
    scan_config_file(&r, path);
    return r.found;
}

void dev_config_include_list_files(const char *path, struct mk_buf *files)
{
    struct config_scan r = {.files = files};
    size_t before = files->len;
    scan_config_file(&r, path);
    if (files->len == before) /* the file does not exist yet */
        mk_buf_addf(files, "%s\n", path);
}
