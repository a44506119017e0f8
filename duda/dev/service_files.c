/* SPDX-License-Identifier: Apache-2.0 */
#include "service_files.h"

#include "paths.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LIST_MAX = 1024 * 1024, DEPTH_MAX = 8 };

/* ---- Folders ---- */

static bool is_test_name(mk_str name)
{
    size_t dot = mk_str_find_last(name, '.');
    return mk_str_ends(mk_str_first(name, dot), MK_STR("_test"));
}

/* Returns whether the file or folder is ignored: it is hidden, or its name ends with `_`. */
static bool is_disabled_name(mk_str name)
{
    size_t dot = mk_str_find_last(name, '.');
    return name.p[0] == '.' ||
           mk_str_ends(mk_str_first(name, dot == MK_STR_NONE ? name.len : dot), MK_STR("_"));
}

/* Returns whether the folder holds no code of the service, but files for browsers, templates or results of
 * another build. */
static bool is_other_folder(mk_str name)
{
    static const mk_str known[] = {MK_STR_INIT("html"),        MK_STR_INIT("templates"),
                                   MK_STR_INIT("assets"),      MK_STR_INIT("migrations"),
                                   MK_STR_INIT("build"),       MK_STR_INIT("node_modules"),
                                   MK_STR_INIT("translations")};
    bool any = false;
    for (size_t i = 0; i < MK_LEN(known); i++)
        any = any || mk_str_eq(name, known[i]);
    return any;
}

static void scan_folder(struct dev_folder_scan *scan, const char *folder, unsigned depth);

static void scan_entry(struct dev_folder_scan *scan, const char *folder, mk_str name, unsigned depth)
{
    char path[PATH_MAX];
    struct stat st;
    if (is_disabled_name(name) || !dev_paths_format(path, "%s/%.*s", folder, MK_STR_ARG(name)) ||
        stat(path, &st) < 0)
        return;
    if (S_ISDIR(st.st_mode) && !is_other_folder(name))
        scan_folder(scan, path, depth + 1);
    else if (S_ISREG(st.st_mode) && dev_source_is_code(name))
        mk_buf_addf(is_test_name(name) ? &scan->tests : &scan->files, "%s\n", path);
}

/* Lists the names in a folder, one per line. Returns false if it cannot be read. */
static bool list_names(const char *folder, struct mk_buf *names)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (!strchr(entry->d_name, '\n'))
            mk_buf_addf(names, "%s\n", entry->d_name);
    return dir && closedir(dir) == 0;
}

/* Returns the first of the names after `last` in alphabetical order; absent if there is none. */
static mk_str next_name(mk_str names, mk_str last)
{
    mk_str found = MK_STR_NULL;
    while (names.len) {
        mk_str name = mk_str_cut(&names, '\n');
        if ((!last.p || mk_str_cmp(last, name) < 0) && (!found.p || mk_str_cmp(name, found) < 0))
            found = name;
    }
    return found;
}

static void scan_folder(struct dev_folder_scan *scan, const char *folder, unsigned depth)
{
    struct mk_buf names = mk_buf_growing(LIST_MAX);
    if (depth <= DEPTH_MAX && list_names(folder, &names)) {
        mk_buf_addf(&scan->folders, "%s\n", folder);
        for (mk_str name = MK_STR_NULL; (name = next_name(mk_buf_str(&names), name)).p;)
            scan_entry(scan, folder, name, depth);
    }
    mk_buf_free(&names);
}

void dev_folder_scan_begin(struct dev_folder_scan *scan, const char *folder)
{
    char path[PATH_MAX];
    *scan = (struct dev_folder_scan){.files = mk_buf_growing(LIST_MAX),
                                     .tests = mk_buf_growing(LIST_MAX),
                                     .folders = mk_buf_growing(LIST_MAX)};
    if (realpath(folder, path))
        scan_folder(scan, path, 0);
}

void dev_folder_scan_free(struct dev_folder_scan *scan)
{
    mk_buf_free(&scan->files);
    mk_buf_free(&scan->tests);
    mk_buf_free(&scan->folders);
}

void dev_list_tree(const char *folder, unsigned depth, struct mk_buf *files, struct mk_buf *folders)
{
    struct mk_buf names = mk_buf_growing(LIST_MAX);
    char path[PATH_MAX];
    struct stat st;
    if (folders)
        mk_buf_addf(folders, "%s\n", folder);
    (void)list_names(folder, &names);
    for (mk_str name = MK_STR_NULL; (name = next_name(mk_buf_str(&names), name)).p;) {
        if (name.p[0] == '.' || !dev_paths_format(path, "%s/%.*s", folder, MK_STR_ARG(name)) ||
            stat(path, &st) < 0)
            continue;
        if (S_ISDIR(st.st_mode) && depth)
            dev_list_tree(path, depth - 1, files, folders);
        else if (!S_ISDIR(st.st_mode) && files)
            mk_buf_addf(files, "%s\n", path);
    }
    mk_buf_free(&names);
}

/* ---- The main file ---- */

/* What the files of a folder declare. */
struct folder_facts {
    size_t top, top_services, top_handlers;   /* files directly in the folder */
    size_t below_services;                    /* in subfolders */
    char service[PATH_MAX], second[PATH_MAX]; /* the files with a DUDA_SERVICE() */
    struct mk_buf services;                   /* subfolders with a DUDA_SERVICE(), one per line */
};

static mk_str folder_of(mk_str path)
{
    return mk_str_first(path, mk_str_find_last(path, '/'));
}

static void count_file(struct folder_facts *facts, mk_str root, mk_str path)
{
    struct dev_source s;
    char name[PATH_MAX];
    bool is_top = mk_str_eq(folder_of(path), root);
    if (!dev_paths_format(name, "%.*s", MK_STR_ARG(path)) || !dev_source_load(&s, name))
        return;
    bool counts = s.is_service && (is_top || !facts->top_services);
    if (is_top && s.is_service && !facts->top_services) /* replaces one of a subfolder */
        facts->service[0] = facts->second[0] = '\0';
    if (counts)
        (void)dev_paths_format(facts->service[0] ? facts->second : facts->service, "%s", name);
    facts->top += is_top;
    facts->top_services += is_top && s.is_service;
    facts->top_handlers += is_top && !s.is_service && s.has_handle;
    facts->below_services += !is_top && s.is_service;
    if (!is_top && s.is_service)
        mk_buf_addf(&facts->services, "%.*s\n", MK_STR_ARG(folder_of(path)));
    dev_source_free(&s);
}

static void read_folder(struct folder_facts *facts, const struct dev_folder_scan *scan)
{
    mk_str folders = mk_buf_str(&scan->folders), root = mk_str_cut(&folders, '\n');
    *facts = (struct folder_facts){.services = mk_buf_growing(LIST_MAX)};
    for (mk_str rest = mk_buf_str(&scan->files); rest.len;)
        count_file(facts, root, mk_str_cut(&rest, '\n'));
}

bool dev_folder_is_service(const char *folder)
{
    struct dev_folder_scan scan;
    struct folder_facts facts;
    dev_folder_scan_begin(&scan, folder);
    read_folder(&facts, &scan);
    bool is_one = facts.top_services == 1 || (facts.top_services == 0 && facts.below_services == 1);
    mk_buf_free(&facts.services);
    dev_folder_scan_free(&scan);
    return is_one && facts.top_handlers == 0;
}

/* Returns whether the file is in a subfolder that contains a service of its own. */
static bool belongs_to_another_service(const struct folder_facts *facts, mk_str path)
{
    for (mk_str rest = mk_buf_str(&facts->services); rest.len;) {
        mk_str other = mk_str_cut(&rest, '\n');
        if (mk_str_starts(path, other) && path.p[other.len] == '/' &&
            !mk_str_starts(mk_str_from_c(facts->service), other))
            return true;
    }
    return false;
}

static bool report_problem(char problem[DEV_PROBLEM_MAX], const char *text)
{
    snprintf(problem, DEV_PROBLEM_MAX, "%s", text);
    return false;
}

static const char *leaf_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool report_second_service(char problem[DEV_PROBLEM_MAX], const char *one, const char *other)
{
    snprintf(problem, DEV_PROBLEM_MAX, "%.255s and %.255s both have a DUDA_SERVICE(): a service has one",
             leaf_of(one), leaf_of(other));
    return false;
}

static bool load_folder(struct dev_source *s, const char *folder, char problem[DEV_PROBLEM_MAX])
{
    struct dev_folder_scan scan;
    struct folder_facts facts;
    dev_folder_scan_begin(&scan, folder);
    read_folder(&facts, &scan);
    bool ok = facts.service[0] || report_problem(problem, "no file of this folder has a DUDA_SERVICE()");
    if (ok && facts.second[0])
        ok = report_second_service(problem, facts.service, facts.second);
    if (ok && !dev_source_load(s, facts.service))
        ok = report_problem(problem, strerror(errno));
    for (mk_str rest = mk_buf_str(&scan.files); ok && rest.len;) {
        char path[PATH_MAX];
        mk_str file = mk_str_cut(&rest, '\n');
        if (!belongs_to_another_service(&facts, file) && dev_paths_format(path, "%.*s", MK_STR_ARG(file)))
            dev_source_add(s, path);
    }
    mk_buf_free(&facts.services);
    dev_folder_scan_free(&scan);
    return ok;
}

/* ---- Several files ---- */

/* Sets `index` to the only file with a DUDA_SERVICE(). */
static bool find_main_file(const struct dev_service_words *words, size_t *index,
                           char problem[DEV_PROBLEM_MAX])
{
    size_t found = 0;
    for (size_t i = 0; i < words->n; i++) {
        struct dev_source s;
        if (!dev_source_load(&s, words->at[i])) {
            snprintf(problem, DEV_PROBLEM_MAX, "%s: %s", words->at[i], strerror(errno));
            return false;
        }
        bool is_service = s.is_service;
        dev_source_free(&s);
        if (is_service && found++)
            return report_second_service(problem, words->at[*index], words->at[i]);
        if (is_service)
            *index = i;
    }
    return found || report_problem(problem, "none of these files has a DUDA_SERVICE()");
}

static bool load_files(struct dev_source *s, const struct dev_service_words *words,
                       char problem[DEV_PROBLEM_MAX])
{
    size_t first = 0;
    char path[PATH_MAX];
    if (!find_main_file(words, &first, problem))
        return false;
    if (!dev_source_load(s, words->at[first]))
        return report_problem(problem, strerror(errno));
    for (size_t i = 0; i < words->n; i++)
        if (realpath(words->at[i], path))
            dev_source_add(s, path);
    return true;
}

bool dev_service_load(struct dev_source *s, const struct dev_service_words *words,
                      char problem[DEV_PROBLEM_MAX])
{
    struct stat st;
    if (words->n > 1)
        return load_files(s, words, problem);
    if (stat(words->at[0], &st) == 0 && S_ISDIR(st.st_mode))
        return load_folder(s, words->at[0], problem);
    return dev_source_load(s, words->at[0]) || report_problem(problem, strerror(errno));
}
