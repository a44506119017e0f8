/* SPDX-License-Identifier: Apache-2.0 */
#include "source_set.h"

#include "config_include.h"
#include "inputs.h"
#include "options.h"
#include "sanitizer.h"

#include <errno.h>
#include <glob.h>
#include <monkey/clock.h>
#include <monkey/mem.h>
#include <monkey/text.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RETRY_MS = 20, LIST_MAX = 1 << 20, TEMPLATES_DEPTH_MAX = 4, ASSETS_DEPTH_MAX = 16 };

static bool report_source_error(const char *path, const char *problem)
{
    fprintf(stderr, "monkey run: %s: %s\n", path, problem);
    return false;
}

static struct dev_source_unit *add_source(struct dev_source_set *u, const char *path, mk_str url_segment)
{
    struct dev_source_unit *unit = u->n < DEV_SOURCE_SET_MAX ? mk_mem_zalloc(1, sizeof *unit) : NULL;
    if (!unit)
        return NULL;
    unit->is_new = true;
    if (!dev_paths_format(unit->path, "%s", path) || url_segment.len >= sizeof unit->url_segment) {
        mk_mem_free(unit);
        return NULL;
    }
    memcpy(unit->url_segment, url_segment.p ? url_segment.p : "", url_segment.len);
    return u->at[u->n++] = unit;
}

/* Returns the length of the path of the folder that contains the file. */
static int folder_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == path ? 1 : (int)(slash - path);
}

/* Sets the folder of the service, which also contains html/, and the folders of the templates, assets and
 * translations, which are next to the main source. */
static bool set_folders(struct dev_source_set *u, const char *main_source)
{
    bool is_folder = u->is_folder || u->is_service_folder;
    int len = is_folder ? (int)strlen(u->path) : folder_len(u->path);
    int templates = u->is_folder ? len : folder_len(main_source);
    return dev_paths_format(u->folder, "%.*s", len, u->path) &&
           dev_paths_format(u->env_path, "%s/.env", u->folder) &&
           dev_paths_format(u->templates, "%.*s/templates", templates, main_source) &&
           dev_paths_format(u->assets, "%.*s/assets", templates, main_source) &&
           dev_paths_format(u->translations, "%.*s/translations", templates, main_source);
}

bool dev_source_set_init(struct dev_source_set *u, const struct dev_paths *paths,
                         const struct dev_service_words *words)
{
    struct stat st;
    struct dev_source source;
    char problem[DEV_PROBLEM_MAX];
    const char *path = words->at[0];
    *u = (struct dev_source_set){.how = {.paths = paths,
                                         .kind = DEV_COMPILE_QUICK,
                                         .color = isatty(STDERR_FILENO) == 1 && !getenv("NO_COLOR")},
                                 .words = *words};
    if (!realpath(path, u->path) || stat(u->path, &st) < 0)
        return report_source_error(path, strerror(errno));
    bool is_folder = S_ISDIR(st.st_mode);
    u->is_service_folder = is_folder && words->n == 1 && dev_folder_is_service(path);
    u->is_folder = is_folder && !u->is_service_folder;
    if (u->is_folder && words->n > 1)
        return report_source_error(path, "name either one folder or files");
    if (u->is_folder)
        return set_folders(u, u->path) || report_source_error(path, "its path is too long");
    if (!dev_service_load(&source, words, problem))
        return report_source_error(path, problem);
    bool ok = set_folders(u, source.path) || report_source_error(path, "its path is too long");
    dev_source_free(&source);
    return ok && (add_source(u, u->path, MK_STR("")) || report_source_error(path, strerror(ENOMEM)));
}

void dev_source_set_list_folders(const struct dev_source_set *u, struct mk_buf *folders)
{
    struct dev_folder_scan scan;
    dev_list_tree(u->templates, TEMPLATES_DEPTH_MAX, NULL, folders);
    dev_list_tree(u->assets, ASSETS_DEPTH_MAX, NULL, folders);
    dev_list_tree(u->translations, 0, NULL, folders);
    if (!u->is_service_folder)
        return;
    dev_folder_scan_begin(&scan, u->folder);
    mk_buf_add(folders, mk_buf_str(&scan.folders));
    dev_folder_scan_free(&scan);
}

static void free_source_unit(struct dev_source_unit *unit)
{
    dev_compile_result_free(&unit->built);
    mk_buf_free(&unit->why);
    mk_mem_free(unit);
}

void dev_source_set_free(struct dev_source_set *u)
{
    mk_buf_free(&u->extra_files);
    while (u->n)
        free_source_unit(u->at[--u->n]);
}

/* ---- Folders ---- */

static bool is_valid_url_segment(mk_str s)
{
    bool ok = s.len > 0 && s.len < DEV_NAME_MAX && s.p[0] != '_';
    for (size_t i = 0; ok && i < s.len; i++)
        ok = mk_char_is_alpha(s.p[i]) || mk_char_is_digit(s.p[i]) || s.p[i] == '_' || s.p[i] == '-';
    return ok && s.p[s.len - 1] != '_';
}

static bool has_source(const struct dev_source_set *u, mk_str url_segment)
{
    for (size_t i = 0; i < u->n; i++)
        if (mk_str_eq(mk_str_from_c(u->at[i]->url_segment), url_segment))
            return true;
    return false;
}

static bool add_file_if_exists(struct dev_source_set *u, mk_str url_segment, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    return !has_source(u, url_segment) && dev_paths_format(path, "%s/%s.c", u->folder, name) &&
           stat(path, &st) == 0 && S_ISREG(st.st_mode) && add_source(u, path, url_segment);
}

/* Returns the first path segment of a target. */
static mk_str first_path_segment(mk_str target)
{
    size_t n = 0;
    target = mk_str_skip(target, 1);
    while (n < target.len && target.p[n] != '/' && target.p[n] != '?')
        n++;
    return mk_str_first(target, n);
}

/* In a folder, NAME.c serves paths below /NAME, and index.c serves all other paths. */
bool dev_source_set_add_for_target(struct dev_source_set *u, mk_str target)
{
    char name[DEV_NAME_MAX];
    if (!u->is_folder)
        return false;
    bool any = add_file_if_exists(u, MK_STR(""), "index");
    mk_str url_segment = first_path_segment(target);
    if (!is_valid_url_segment(url_segment) || mk_str_eq(url_segment, MK_STR("index")))
        return any;
    memcpy(name, url_segment.p, url_segment.len);
    name[url_segment.len] = '\0';
    return add_file_if_exists(u, url_segment, name) || any;
}

const struct dev_source_unit *dev_source_set_find_by_target(const struct dev_source_set *u, mk_str target)
{
    const struct dev_source_unit *found = NULL;
    mk_str url_segment = first_path_segment(target);
    for (size_t i = 0; i < u->n; i++) {
        mk_str own = mk_str_from_c(u->at[i]->url_segment);
        if (own.len && mk_str_eq(own, url_segment))
            return u->at[i];
        if (!own.len)
            found = u->at[i];
    }
    return found;
}

/* ---- Compilation ---- */

static void print_compile_result(const struct dev_source_unit *unit, double ms)
{
    if (unit->built.messages.len)
        dev_print_text(stderr, mk_buf_str(&unit->built.messages));
    if (unit->built.ok && !unit->built.was_cached)
        printf("%s: compiled in %.0f ms\n", unit->label, ms);
    else if (!unit->built.ok)
        printf("%s: compilation failed\n", unit->label);
    fflush(stdout);
}

static void set_label(struct dev_source_unit *unit, const char *path)
{
    snprintf(unit->label, sizeof unit->label, "%s", strrchr(path, '/') + 1);
}

static void use_compiled_object(struct dev_source_set *u, struct dev_source_unit *unit)
{
    (void)dev_paths_format(unit->object, "%s", unit->built.object);
    memcpy(unit->service, unit->name, sizeof unit->service);
    u->is_changed = true;
}

/* Returns whether the compilation has failed as before. If so, the error is not printed again. */
static bool is_same_failure(const struct dev_source_unit *unit, const struct dev_compile_result *before,
                            const char *error)
{
    return !before->ok && !unit->built.ok && strcmp(unit->error, error) == 0 &&
           mk_str_eq(mk_buf_str(&before->messages), mk_buf_str(&unit->built.messages));
}

/* Returns a hash that changes when a source is added to the folder of a service. */
static uint64_t hash_folder_list(const struct dev_source_set *u)
{
    struct dev_folder_scan scan;
    if (!u->is_service_folder)
        return 0;
    dev_folder_scan_begin(&scan, u->folder);
    uint64_t hash = dev_inputs_hash_text(mk_buf_str(&scan.files));
    dev_folder_scan_free(&scan);
    return hash;
}

/* Loads the service. On failure, tries again: an editor that is saving the file may just have emptied it. */
static bool load_service(struct dev_source *source, const struct dev_service_words *words,
                         char problem[DEV_PROBLEM_MAX])
{
    if (dev_service_load(source, words, problem))
        return true;
    (void)poll(NULL, 0, RETRY_MS);
    return dev_service_load(source, words, problem);
}

/* Returns true if the result has changed. */
static bool compile_source(struct dev_source_set *u, struct dev_source_unit *unit)
{
    const char *const path = unit->path;
    const struct dev_service_words one = {.at = &path, .n = 1};
    struct dev_source source;
    struct dev_compile_result before = unit->built;
    char error[sizeof unit->error], problem[DEV_PROBLEM_MAX];
    double begin = (double)mk_clock_us() / 1e3;
    memcpy(error, unit->error, sizeof error);
    unit->error[0] = '\0';
    unit->built = (struct dev_compile_result){0};
    unit->folder_stamp = hash_folder_list(u);
    u->how.known = mk_buf_str(&before.files);
    set_label(unit, unit->path);
    if (load_service(&source, u->is_folder ? &one : &u->words, problem)) {
        if (source.others.len == 0)
            set_label(unit, source.path);
        memcpy(unit->name, source.name, sizeof unit->name);
        dev_compile(&u->how, &source, &unit->built);
        dev_sanitizer_find_library(&source, unit->sanitizer);
        dev_source_free(&source);
    } else {
        snprintf(unit->error, sizeof unit->error, "%s", problem);
    }
    bool has_new_error = unit->is_new || !is_same_failure(unit, &before, error);
    unit->is_new = false;
    dev_compile_result_free(&before);
    if (has_new_error && unit->error[0])
        report_source_error(unit->path, unit->error);
    else if (has_new_error)
        print_compile_result(unit, (double)mk_clock_us() / 1e3 - begin);
    if (unit->built.ok)
        use_compiled_object(u, unit);
    return has_new_error;
}

static bool is_source_outdated(const struct dev_source_set *u, const struct dev_source_unit *unit)
{
    return unit->built.is_unsure || unit->folder_stamp != hash_folder_list(u) ||
           dev_inputs_hash(mk_buf_str(&unit->built.files)) != unit->built.stamp;
}

/* A failed source is always compiled again, because a missing file may exist now. */
static bool needs_compile(const struct dev_source_set *u, const struct dev_source_unit *unit)
{
    return unit->is_new || !unit->built.ok || is_source_outdated(u, unit);
}

/* Returns a hash of the names and the contents of the files; 0 if the list is empty. */
static uint64_t hash_files(const struct mk_buf *files)
{
    mk_str list = mk_buf_str(files);
    return list.len ? dev_inputs_hash(list) ^ dev_inputs_hash_text(list) : 0;
}

/* Returns whether the templates, assets or translations have changed. The server reads them when it loads the
 * service, so it must then be restarted. */
static bool check_resources_changed(struct dev_source_set *u)
{
    struct mk_buf files = mk_buf_growing(LIST_MAX);
    dev_list_tree(u->templates, TEMPLATES_DEPTH_MAX, &files, NULL);
    dev_list_tree(u->assets, ASSETS_DEPTH_MAX, &files, NULL);
    dev_list_tree(u->translations, 0, &files, NULL);
    uint64_t stamp = hash_files(&files), before = u->stamp;
    mk_buf_free(&files);
    u->stamp = stamp;
    u->is_changed = u->is_changed || stamp != before;
    return stamp != before;
}

/* Returns whether the configuration file has changed. The server reads it only at startup, so it must then be
 * restarted. */
static bool check_extra_config_changed(struct dev_source_set *u)
{
    uint64_t before = u->extra_stamp;
    if (!u->extra)
        return false;
    if (!u->extra_files.p)
        u->extra_files = mk_buf_growing(LIST_MAX);
    mk_buf_clear(&u->extra_files);
    dev_config_include_list_files(u->extra, &u->extra_files);
    u->extra_stamp = hash_files(&u->extra_files);
    u->is_changed = u->is_changed || u->extra_stamp != before;
    return u->extra_stamp != before;
}

/* Returns whether the file `.env` has changed. A server gets its environment only when it starts. */
static bool check_env_file_changed(struct dev_source_set *u)
{
    uint64_t before = u->env_stamp;
    u->env_stamp = access(u->env_path, F_OK) == 0 ? dev_inputs_hash(mk_str_from_c(u->env_path)) : 0;
    u->is_changed = u->is_changed || u->env_stamp != before;
    return u->env_stamp != before;
}

static bool check_html_folder_changed(struct dev_source_set *u)
{
    struct stat st;
    bool was_there = u->html[0];
    bool is_there =
        dev_paths_format(u->html, "%s/html", u->folder) && stat(u->html, &st) == 0 && S_ISDIR(st.st_mode);
    if (!is_there)
        u->html[0] = '\0';
    u->is_changed = u->is_changed || is_there != was_there;
    return is_there != was_there;
}

bool dev_source_set_update(struct dev_source_set *u)
{
    bool any = check_resources_changed(u);
    any = check_html_folder_changed(u) || any;
    any = check_extra_config_changed(u) || any;
    any = check_env_file_changed(u) || any;
    for (size_t i = 0; i < u->n;) {
        struct dev_source_unit *unit = u->at[i];
        if (u->is_folder && access(unit->path, F_OK) != 0) {
            free_source_unit(unit);
            u->at[i] = u->at[--u->n];
            any = u->is_changed = true;
            continue;
        }
        if (needs_compile(u, unit))
            any = compile_source(u, unit) || any;
        i++;
    }
    return any;
}

bool dev_source_set_is_outdated(const struct dev_source_set *u)
{
    bool any = false;
    for (size_t i = 0; i < u->n; i++)
        any = any || is_source_outdated(u, u->at[i]);
    return any;
}

bool dev_source_set_changed_in_build(const struct dev_source_set *u)
{
    bool any = false;
    for (size_t i = 0; i < u->n; i++)
        any = any || u->at[i]->built.is_unsure;
    return any;
}

bool dev_source_set_is_compiled(const struct dev_source_set *u)
{
    bool fine = true;
    for (size_t i = 0; i < u->n; i++)
        fine = fine && u->at[i]->built.ok;
    return fine;
}

void dev_source_set_write_errors(const struct dev_source_unit *unit, const struct dev_error_page *p)
{
    if (unit->error[0]) {
        dev_error_page_add_heading(p, mk_str_from_c(unit->path));
        dev_error_page_add_text(p, mk_str_from_c(unit->error));
    } else {
        dev_error_page_add_messages(p, mk_buf_str(&unit->built.messages), MK_STR("Messages of the compiler"));
    }
}

/* ---- State of the server ---- */

const char *dev_source_set_sanitizer(const struct dev_source_set *u)
{
    const char *found = "";
    for (size_t i = 0; i < u->n && !*found; i++)
        found = u->at[i]->sanitizer;
    return found;
}

const char *dev_source_set_object_path(const struct dev_source_unit *unit)
{
    return unit->is_held ? unit->running : unit->object;
}

static bool needs_load(const struct dev_source_unit *unit)
{
    return !unit->is_held && strcmp(unit->object, unit->running) != 0;
}

bool dev_source_set_needs_restart(const struct dev_source_set *u)
{
    bool any = u->is_changed;
    for (size_t i = 0; i < u->n; i++)
        any = any || needs_load(u->at[i]);
    return any;
}

bool dev_source_set_mark_loaded(struct dev_source_set *u, bool loaded)
{
    bool any = false;
    u->is_changed = false;
    for (size_t i = 0; i < u->n; i++) {
        struct dev_source_unit *unit = u->at[i];
        bool is_new = needs_load(unit);
        any = any || is_new;
        if (loaded)
            memcpy(unit->running, dev_source_set_object_path(unit), sizeof unit->running);
        else if (u->is_folder)
            unit->is_held = unit->is_held || is_new;
    }
    return any;
}

void dev_source_set_retry_failed(struct dev_source_set *u)
{
    for (size_t i = 0; i < u->n; i++)
        u->at[i]->is_held = false;
}
