/* SPDX-License-Identifier: Apache-2.0 */
#include "units.h"

#include "include.h"
#include "order.h"
#include "sanitizer.h"

#include <errno.h>
#include <glob.h>
#include <monkey/clock.h>
#include <monkey/mem.h>
#include <monkey/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool complain(const char *path, const char *what)
{
    fprintf(stderr, "monkey run: %s: %s\n", path, what);
    return false;
}

static struct dev_unit *add(struct dev_units *u, const char *path, mk_str place)
{
    struct dev_unit *one = u->n < DEV_UNITS_MAX ? mk_mem_zalloc(1, sizeof *one) : NULL;
    if (!one)
        return NULL;
    one->is_new = true;
    if (!dev_places_print(one->path, "%s", path) || place.len >= sizeof one->place) {
        mk_mem_free(one);
        return NULL;
    }
    memcpy(one->place, place.p ? place.p : "", place.len);
    return u->at[u->n++] = one;
}

bool dev_units_init(struct dev_units *u, const struct dev_places *places, const char *path)
{
    struct stat st;
    *u = (struct dev_units){.how = {.places = places,
                                    .kind = DEV_COMPILE_QUICK,
                                    .color = isatty(STDERR_FILENO) == 1 && !getenv("NO_COLOR")}};
    if (!realpath(path, u->path) || stat(u->path, &st) < 0)
        return complain(path, strerror(errno));
    u->is_folder = S_ISDIR(st.st_mode);
    if (!dev_places_print(u->folder, "%s", u->path))
        return complain(path, "its path is too long");
    if (u->is_folder)
        return dev_places_print(u->templates, "%s/templates", u->folder) ||
               complain(path, "its path is too long");
    char *slash = strrchr(u->folder, '/');
    slash[slash == u->folder] = '\0';
    if (!dev_places_print(u->templates, "%s/templates", u->folder))
        return complain(path, "its path is too long");
    return add(u, u->path, MK_STR("")) || complain(path, strerror(ENOMEM));
}

static void free_unit(struct dev_unit *one)
{
    dev_compiled_free(&one->built);
    mk_buf_free(&one->why);
    mk_mem_free(one);
}

void dev_units_free(struct dev_units *u)
{
    mk_buf_free(&u->extra_files);
    while (u->n)
        free_unit(u->at[--u->n]);
}

/* ---- Folders ---- */

static bool is_place(mk_str s)
{
    bool ok = s.len > 0 && s.len < DEV_NAME_MAX && s.p[0] != '_';
    for (size_t i = 0; ok && i < s.len; i++)
        ok = mk_char_is_alpha(s.p[i]) || mk_char_is_digit(s.p[i]) || s.p[i] == '_' || s.p[i] == '-';
    return ok && s.p[s.len - 1] != '_';
}

static bool has(const struct dev_units *u, mk_str place)
{
    for (size_t i = 0; i < u->n; i++)
        if (mk_str_eq(mk_str_from_c(u->at[i]->place), place))
            return true;
    return false;
}

static bool want_file(struct dev_units *u, mk_str place, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    return !has(u, place) && dev_places_print(path, "%s/%s.c", u->folder, name) && stat(path, &st) == 0 &&
           S_ISREG(st.st_mode) && add(u, path, place);
}

/* The first segment of the path of a target. */
static mk_str place_of(mk_str target)
{
    size_t n = 0;
    target = mk_str_skip(target, 1);
    while (n < target.len && target.p[n] != '/' && target.p[n] != '?')
        n++;
    return mk_str_first(target, n);
}

/* NAME.c answers below /NAME; index.c at all that nothing else answers. */
bool dev_units_want(struct dev_units *u, mk_str target)
{
    char name[DEV_NAME_MAX];
    if (!u->is_folder)
        return false;
    bool any = want_file(u, MK_STR(""), "index");
    mk_str place = place_of(target);
    if (!is_place(place) || mk_str_eq(place, MK_STR("index")))
        return any;
    memcpy(name, place.p, place.len);
    name[place.len] = '\0';
    return want_file(u, place, name) || any;
}

const struct dev_unit *dev_units_find(const struct dev_units *u, mk_str target)
{
    const struct dev_unit *found = NULL;
    mk_str place = place_of(target);
    for (size_t i = 0; i < u->n; i++) {
        mk_str own = mk_str_from_c(u->at[i]->place);
        if (own.len && mk_str_eq(own, place))
            return u->at[i];
        if (!own.len)
            found = u->at[i];
    }
    return found;
}

/* ---- Compiling ---- */

static void tell(const struct dev_unit *one, double ms)
{
    const char *slash = strrchr(one->path, '/');
    if (one->built.said.len)
        dev_order_write(stderr, mk_buf_str(&one->built.said));
    if (one->built.ok && !one->built.was_cached)
        printf("%s: compiled in %.0f ms\n", slash + 1, ms);
    else if (!one->built.ok)
        printf("%s: not compiled; save it to try again\n", slash + 1);
    fflush(stdout);
}

static void use(struct dev_units *u, struct dev_unit *one)
{
    (void)dev_places_print(one->object, "%s", one->built.object);
    memcpy(one->service, one->name, sizeof one->service);
    u->is_changed = true;
}

/* The same mistake as before is no news. */
static bool is_same(const struct dev_unit *one, const struct dev_compiled *before, const char *error)
{
    return !before->ok && !one->built.ok && strcmp(one->error, error) == 0 &&
           mk_str_eq(mk_buf_str(&before->said), mk_buf_str(&one->built.said));
}

/* True: there is news. */
static bool compile(struct dev_units *u, struct dev_unit *one)
{
    struct dev_source source;
    struct dev_compiled before = one->built;
    char error[sizeof one->error];
    double begin = (double)mk_clock_us() / 1e3;
    memcpy(error, one->error, sizeof error);
    one->error[0] = '\0';
    one->built = (struct dev_compiled){0};
    u->how.known = mk_buf_str(&before.files);
    if (dev_source_read(&source, one->path)) {
        memcpy(one->name, source.name, sizeof one->name);
        dev_compile(&u->how, &source, &one->built);
        dev_sanitizer_find(&source, one->sanitizer);
        dev_source_free(&source);
    } else {
        snprintf(one->error, sizeof one->error, "it cannot be read: %s", strerror(errno));
    }
    bool news = one->is_new || !is_same(one, &before, error);
    one->is_new = false;
    dev_compiled_free(&before);
    if (news && one->error[0])
        complain(one->path, one->error);
    else if (news)
        tell(one, (double)mk_clock_us() / 1e3 - begin);
    if (one->built.ok)
        use(u, one);
    return news;
}

static bool is_outdated(const struct dev_unit *one)
{
    return one->built.is_unsure || dev_compile_stamp(mk_buf_str(&one->built.files)) != one->built.stamp;
}

/* What failed may have missed a file that is there now, so it is always tried again. */
static bool is_due(const struct dev_unit *one)
{
    return one->is_new || !one->built.ok || is_outdated(one);
}

/* Templates are compiled by the server when it loads the service, so that it must do so again. */
static bool look_at_templates(struct dev_units *u)
{
    char pattern[PATH_MAX];
    struct mk_buf files = mk_buf_growing(1 << 20);
    glob_t found;
    if (dev_places_print(pattern, "%s/*", u->templates) && glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            mk_buf_addf(&files, "%s\n", found.gl_pathv[i]);
        globfree(&found);
    }
    uint64_t stamp = files.len ? dev_compile_stamp(mk_buf_str(&files)) : 0, before = u->stamp;
    mk_buf_free(&files);
    u->stamp = stamp;
    u->is_changed = u->is_changed || stamp != before;
    return stamp != before;
}

/* The server reads it, and so must be started again. */
static bool look_at_extra(struct dev_units *u)
{
    uint64_t before = u->extra_stamp;
    if (!u->extra)
        return false;
    if (!u->extra_files.p)
        u->extra_files = mk_buf_growing(1 << 20);
    mk_buf_clear(&u->extra_files);
    dev_include_list(u->extra, &u->extra_files);
    u->extra_stamp = dev_compile_stamp(mk_buf_str(&u->extra_files));
    u->is_changed = u->is_changed || u->extra_stamp != before;
    return u->extra_stamp != before;
}

static bool look_for_html(struct dev_units *u)
{
    struct stat st;
    bool was_there = u->html[0];
    bool is_there =
        dev_places_print(u->html, "%s/html", u->folder) && stat(u->html, &st) == 0 && S_ISDIR(st.st_mode);
    if (!is_there)
        u->html[0] = '\0';
    u->is_changed = u->is_changed || is_there != was_there;
    return is_there != was_there;
}

bool dev_units_update(struct dev_units *u)
{
    bool any = look_at_templates(u);
    any = look_for_html(u) || any;
    any = look_at_extra(u) || any;
    for (size_t i = 0; i < u->n;) {
        struct dev_unit *one = u->at[i];
        if (u->is_folder && access(one->path, F_OK) != 0) {
            free_unit(one);
            u->at[i] = u->at[--u->n];
            any = u->is_changed = true;
            continue;
        }
        if (is_due(one))
            any = compile(u, one) || any;
        i++;
    }
    return any;
}

bool dev_units_are_outdated(const struct dev_units *u)
{
    bool any = false;
    for (size_t i = 0; i < u->n; i++)
        any = any || is_outdated(u->at[i]);
    return any;
}

bool dev_units_are_unsure(const struct dev_units *u)
{
    bool any = false;
    for (size_t i = 0; i < u->n; i++)
        any = any || u->at[i]->built.is_unsure;
    return any;
}

bool dev_units_are_fine(const struct dev_units *u)
{
    bool fine = true;
    for (size_t i = 0; i < u->n; i++)
        fine = fine && u->at[i]->built.ok;
    return fine;
}

void dev_units_write_fault(const struct dev_unit *one, const struct dev_page *p)
{
    if (one->error[0]) {
        dev_page_note(p, mk_str_from_c(one->path));
        dev_page_text(p, mk_str_from_c(one->error));
    } else {
        dev_page_messages(p, mk_buf_str(&one->built.said), MK_STR("The compiler's words"));
    }
}

/* ---- What the server has ---- */

const char *dev_units_sanitizer(const struct dev_units *u)
{
    const char *found = "";
    for (size_t i = 0; i < u->n && !*found; i++)
        found = u->at[i]->sanitizer;
    return found;
}

const char *dev_units_object(const struct dev_unit *one)
{
    return one->is_held ? one->running : one->object;
}

static bool waits(const struct dev_unit *one)
{
    return !one->is_held && strcmp(one->object, one->running) != 0;
}

bool dev_units_wait(const struct dev_units *u)
{
    bool any = u->is_changed;
    for (size_t i = 0; i < u->n; i++)
        any = any || waits(u->at[i]);
    return any;
}

bool dev_units_settle(struct dev_units *u, bool loaded)
{
    bool any = false;
    u->is_changed = false;
    for (size_t i = 0; i < u->n; i++) {
        struct dev_unit *one = u->at[i];
        bool is_new = waits(one);
        any = any || is_new;
        if (loaded)
            memcpy(one->running, dev_units_object(one), sizeof one->running);
        else if (u->is_folder)
            one->is_held = one->is_held || is_new;
    }
    return any;
}

void dev_units_retry(struct dev_units *u)
{
    for (size_t i = 0; i < u->n; i++)
        u->at[i]->is_held = false;
}
