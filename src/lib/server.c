/* SPDX-License-Identifier: Apache-2.0 */
/* Setup of a server. */
#include <dlfcn.h>
#include <monkey/sized.h>
#include <pthread.h>

#include "base/mem.h"
#include "files/mime.h"
#include "lib/handle_registry.h"
#include "lib/last_error.h"
#include "lib/setting_check.h"
#include "os/module_path.h"
#include "setup/config_reader.h"

enum {
    ERROR_TEXT_MAX = 64 * 1024,
    FILE_PATH_MAX = 1024,
    FILE_TYPE_MAX = 200,
    OPTIONS_SIZE_MIN = offsetof(struct mk_server_options, in_memory),
    FILE_SIZE_MIN = offsetof(struct mk_memory_file, gzip),
};

static bool copy_options(struct mk_server_options *copy, const struct mk_server_options *options)
{
    if (!options)
        return true;
    if (options->size < OPTIONS_SIZE_MIN || options->size > sizeof *options)
        return false;
    memcpy(copy, options, options->size);
    return !copy->plugin_folder || mk_module_path_set_folder(copy->plugin_folder);
}

static void export_own_symbols(void)
{
    Dl_info own;
    /* The handle stays open, because exported symbols cannot be hidden again. In a program that is linked
     * with the static library, dlopen() has no effect: the program itself exports the symbols, or plugins do
     * not need them. */
    if (dladdr((void *)(uintptr_t)mk_server_new, &own) && own.dli_fname)
        (void)!dlopen(own.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

/* Makes our symbols visible to objects loaded later if a program has loaded us with RTLD_LOCAL, as
 * interpreters do. */
static void export_own_symbols_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, export_own_symbols);
}

struct mk_server *mk_server_new(const struct mk_server_options *options)
{
    int before MK_KEEP_ERRNO = errno;
    mk_last_error_clear_misuse(); /* the new server may have the address of a freed one */
    struct mk_server_options copy = {0};
    struct mk_server *s = copy_options(&copy, options) ? mk_mem_zalloc(1, sizeof *s) : NULL;
    if (!s || !mk_handle_register(s)) {
        mk_mem_free(s);
        return NULL;
    }
    s->options = copy;
    s->error_text = mk_buf_growing(ERROR_TEXT_MAX);
    s->plugins[s->embedding.n_plugins++] = &mk_app_routes_plugin;
    s->embedding.plugins = s->plugins;
    s->embedding.listens_if_told = true;
    s->embedding.listens_nowhere = s->options.in_memory;
    s->embedding.ctx = &s->program;
    s->program.default_type = MK_STR("text/plain; charset=utf-8");
    atomic_init(&s->stop_at, MK_SERVER_STOP_NOT_REQUESTED);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->changing, NULL);
    pthread_cond_init(&s->changed, NULL);
    export_own_symbols_once();
    return s;
}

int mk_server_load_config(struct mk_server *s, const char *file_or_folder)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_last_error_require_setup(s);
    if (e)
        return e;
    if (!file_or_folder || !*file_or_folder)
        return mk_last_error_set(s, -EINVAL, "the file name is NULL");
    if (s->path)
        return mk_last_error_set(s, -EINVAL, "`%s` was loaded already", s->path);
    size_t len = strlen(file_or_folder);
    s->path = mk_mem_alloc(len + 1);
    if (!s->path)
        return mk_last_error_set_code(s, -ENOMEM);
    memcpy(s->path, file_or_folder, len + 1);
    s->reader = &mk_config_reader;
    s->embedding.listens_if_told = false;
    return 0;
}

/* Returns the name of the argument that is NULL; NULL: all arguments are given. */
static const char *missing_argument(const char *section, const char *key, const char *value)
{
    return !section ? "section" : !key ? "key" : !value ? "value" : NULL;
}

int mk_server_set(struct mk_server *s, const char *section, const char *key, const char *value)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_last_error_require_setup(s);
    const char *odd = missing_argument(section, key, value);
    if (e)
        return e;
    if (odd)
        return mk_last_error_set(s, -EINVAL, "there is no %s", odd);
    mk_str in = mk_str_from_c(section), k = mk_str_from_c(key), v = mk_str_from_c(value);
    if (mk_str_find(v, '\n') != MK_STR_NONE)
        return mk_last_error_set(s, -EINVAL,
                                 "the value of `%s` in [%s] has more than one line; expected text that "
                                 "fits on one line of a configuration file, such as the path of a file",
                                 key, section);
    e = mk_setting_check(in, k, v, &s->error_text);
    if (e)
        return mk_last_error_terminate(s, e);
    s->reader = &mk_config_reader;
    e = mk_config_builder_set(&s->lines, in, k, v);
    return e == -EINVAL
               ? mk_last_error_set(s, e, "`%s` in [%s] cannot be a line of a configuration", key, section)
           : e ? mk_last_error_set_code(s, e)
               : 0;
}

int mk_server_add_section(struct mk_server *s, const char *section)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_last_error_require_setup(s);
    if (!e && !section)
        e = mk_last_error_set(s, -EINVAL, "there is no section");
    if (e)
        return e;
    s->reader = &mk_config_reader;
    e = mk_config_builder_begin_section(&s->lines, mk_str_from_c(section));
    return e == -EINVAL ? mk_last_error_set(s, e, "`%s` cannot be a section", section)
           : e          ? mk_last_error_set_code(s, e)
                        : 0;
}

int mk_server_add_vhost(struct mk_server *s, const char *names, const char *root)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_server_add_section(s, "HOST");
    if (!e && names)
        e = mk_server_set(s, "HOST", "ServerName", names);
    if (!e && root)
        e = mk_server_set(s, "HOST", "DocumentRoot", root);
    return e;
}

int mk_server_add_certificate(struct mk_server *s, const char *certificate, const char *key)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_last_error_require_setup(s);
    if (e)
        return e;
    if (!certificate)
        return mk_last_error_set(s, -EINVAL, "there is no certificate");
    e = mk_app_certificates_add(&s->program.certificates, s->lines.n_hosts, certificate, key, &s->error_text);
    return !e ? 0 : s->error_text.len ? mk_last_error_terminate(s, e) : mk_last_error_set_code(s, e);
}

/* Has the program added a different plugin with that name? The loader identifies plugins of a program only by
 * name, and keeps the first. */
static bool has_plugin_named(const struct mk_server *s, const struct mk_plugin *plugin)
{
    for (size_t i = 0; i < s->embedding.n_plugins; i++) {
        const struct mk_plugin *p = s->plugins[i];
        if (p != plugin && p->name && plugin->name && strcmp(p->name, plugin->name) == 0)
            return true;
    }
    return false;
}

static mk_err add_plugin(struct mk_server *s, const struct mk_plugin *plugin)
{
    if (has_plugin_named(s, plugin))
        return mk_last_error_set(s, -EINVAL, "another plugin named `%s` was added already", plugin->name);
    if (s->embedding.n_plugins == MK_LEN(s->plugins))
        return mk_last_error_set(s, -EINVAL, "too many plugins: at most %zu are possible",
                                 MK_LEN(s->plugins) - 1);
    s->plugins[s->embedding.n_plugins++] = plugin;
    return 0;
}

int mk_server_add_plugin(struct mk_server *s, const struct mk_plugin *plugin)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_last_error_require_setup(s);
    if (!e && !plugin)
        e = mk_last_error_set(s, -EINVAL, "there is no plugin");
    if (e)
        return e;
    s->reader = &mk_config_reader; /* the plugin may need built-in plugins */
    return add_plugin(s, plugin);
}

int mk_server_set_accept_filter(struct mk_server *s, bool (*accepts)(const struct mk_addr *client, void *ctx),
                                void *ctx)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_last_error_require_setup(s);
    if (!e && !accepts)
        e = mk_last_error_set(s, -EINVAL, "there is no function");
    if (!e && !s->program.accept_filter.accepts)
        e = add_plugin(s, &mk_app_accept_plugin);
    if (!e)
        s->program.accept_filter = (struct mk_app_accept_filter){.accepts = accepts, .ctx = ctx};
    return e;
}

int mk_server_set_error_handler(struct mk_server *s, mk_server_fn *fn, void *data)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_last_error_require_setup(s);
    if (!e && !fn)
        e = mk_last_error_set(s, -EINVAL, "there is no function");
    if (!e && !s->program.error_handler.fn)
        e = add_plugin(s, &mk_app_error_plugin);
    if (!e)
        s->program.error_handler = (struct mk_app_error_handler){.fn = fn, .data = data};
    return e;
}

int mk_server_add_route(struct mk_server *s, const char *what, mk_server_fn *fn, void *data)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_last_error_require_setup(s);
    if (e)
        return e;
    if (!what || !fn)
        return mk_last_error_set(s, -EINVAL, "there is no %s", what ? "handler" : "route");
    e = mk_app_routes_add(&s->program, mk_str_from_c(what), s->lines.n_hosts, fn, data, &s->error_text);
    return !e ? 0 : s->error_text.len ? mk_last_error_terminate(s, e) : mk_last_error_set_code(s, e);
}

int mk_server_set_default_type(struct mk_server *s, const char *type)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_last_error_require_setup(s);
    if (!e && type && !mk_mime_is_type(mk_str_from_c(type)))
        e = mk_last_error_set(s, -EINVAL, "`%s` is not a media type: expected TYPE/SUBTYPE", type);
    if (e)
        return e;
    e = mk_app_routes_set_default_type(&s->program, type ? mk_str_from_c(type) : MK_STR_NULL);
    return e ? mk_last_error_set_code(s, e) : 0;
}

int mk_server_enable_body_spool(struct mk_server *s)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_last_error_require_setup(s);
    if (!e)
        s->program.spools_bodies = true;
    return e;
}

/* ---- Files in memory ---- */

/* Is the path free of characters that a route or a header would take for syntax? */
static bool is_plain_path(const char *path)
{
    if (!path || *path != '/')
        return false;
    for (const unsigned char *p = (const unsigned char *)path; *p; p++)
        if (*p <= ' ' || *p == 0x7f || strchr(":*?#<>\"\\", *p))
            return false;
    return true;
}

static mk_err add_file_route(struct mk_server *s, mk_str path, struct mk_app_file *file)
{
    char room[FILE_PATH_MAX + sizeof "GET "];
    struct mk_buf what = mk_buf_fixed(room, sizeof room);
    mk_buf_addf(&what, "GET %.*s", MK_STR_ARG(path));
    mk_err e = what.failed ? -ENAMETOOLONG
                           : mk_app_routes_add(&s->program, mk_buf_str(&what), s->lines.n_hosts,
                                               mk_app_file_serve, file, &s->error_text);
    return !e ? 0 : s->error_text.len ? mk_last_error_terminate(s, e) : mk_last_error_set_code(s, e);
}

static mk_err add_file(struct mk_server *s, const struct mk_memory_file *file)
{
    mk_str path = mk_str_from_c(file->path ? file->path : "");
    mk_str index = MK_STR("/index.html");
    if (!is_plain_path(file->path))
        return mk_last_error_set(s, -EINVAL,
                                 "`%s` is not the path of a file: expected `/` first, as in a URL", path.p);
    mk_str type = mk_str_from_c(file->type ? file->type : "a/b");
    if (type.len > FILE_TYPE_MAX || !mk_mime_is_type(type))
        return mk_last_error_set(s, -EINVAL, "the type of `%s` is not a media type: expected TYPE/SUBTYPE",
                                 path.p);
    struct mk_app_file *prepared = mk_app_files_add(&s->program.files, file);
    mk_err e = prepared ? add_file_route(s, path, prepared) : mk_last_error_set_code(s, -ENOMEM);
    if (!e && mk_str_ends(path, index))
        e = add_file_route(s, mk_str_first(path, path.len - index.len + 1), prepared);
    return e;
}

int mk_server_add_files(struct mk_server *s, const struct mk_memory_file *files, size_t n, size_t size)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_last_error_require_setup(s);
    if (!e && (size < FILE_SIZE_MIN || size > sizeof *files || (n && !files)))
        e = mk_last_error_set(s, -EINVAL, "%s",
                              files ? "the size of a file is unknown" : "there are no files");
    for (size_t i = 0; i < n && !e; i++) {
        struct mk_memory_file file; /* the program may be built for a smaller struct of an older version */
        e = add_file(s, mk_sized_in(&file, sizeof file, (const char *)files + i * size, size));
    }
    return e;
}
