/* SPDX-License-Identifier: Apache-2.0 */
/* Lists folders without an index file. */
#include <errno.h>
#include <limits.h>
#include <monkey/host.h>
#include <monkey/plugin.h>
#include <monkey/spool.h>
#include <monkey/text.h>
#include <sys/stat.h>
#include <unistd.h>

#include "upload.h"

MK_PLUGIN_DECLARE(dirlisting);

static const char *const order_words[] = {"asc", "desc", NULL};
static const char *const theme_words[] = {"guineo", "plain", NULL};
static const char *const upload_words[] = {"off", "users", "anyone", NULL}; /* enum upload_mode */
static const struct format *const formats[] = {&dirlisting_format_html, &dirlisting_format_json,
                                               &dirlisting_format_text}; /* in order of preference */

enum { N_FORMATS = MK_LEN(formats) };

/* The state of a worker. */
struct state {
    size_t sort_memory; /* used by all listings */
    struct upload_queue uploads;
};

static struct state *state_of(const struct mk_request *request)
{
    return mk_worker_data(mk_request_worker(request), &MK_PLUGIN_OF(dirlisting));
}

/* ---- Configuration ---- */

#define AT(member) MK_CONF_AT(struct settings, member)

static const struct mk_conf_key keys[] = {
    {.name = "Listing",
     .type = MK_CONF_BOOL,
     AT(listing),
     .default_value = "on",
     .help =
         MK_HELP("Lists folders without an index file, after all other routes. `off` disables listings for a "
                 "host if a section before all hosts enables them.")},
    {.name = "Theme",
     .type = MK_CONF_ENUM,
     AT(theme),
     .choices = theme_words,
     .default_value = "guineo",
     .help = MK_HELP("Appearance of the pages.")},
    {.name = "Sort",
     .type = MK_CONF_ENUM,
     AT(sort),
     .choices = dirlisting_sort_words,
     .default_value = "name",
     .help = MK_HELP("The default order (`?sort=`); `none`: as the file system returns entries.")},
    {.name = "Order",
     .type = MK_CONF_ENUM,
     AT(order),
     .choices = order_words,
     .default_value = "asc",
     .help = MK_HELP("The default direction (`?order=`).")},
    {.name = "SortMax",
     .type = MK_CONF_NUM,
     AT(sort_max),
     .default_value = "10000",
     .max = 1000000,
     .help = MK_HELP("Maximum number of entries to sort; larger folders are not sorted. 0: never sort.")},
    {.name = "SortMemory",
     .type = MK_CONF_SIZE,
     AT(sort_memory),
     .default_value = "1M",
     .help = MK_HELP(
         "Memory for sorting, shared by all listings of a worker. A listing that needs more is not sorted.")},
    {.name = "Hide",
     .type = MK_CONF_WORDS,
     AT(hide),
     .help = MK_HELP(
         "Patterns of names that are not listed, with `*` and `?`. Clients can still request such files.")},
    {.name = "Upload",
     .type = MK_CONF_ENUM,
     AT(upload),
     .choices = upload_words,
     .default_value = "off",
     .help = MK_HELP(
         "Permission to upload files to folders that are listed. `users`: clients that a plugin such as "
         "auth has authenticated. `anyone`: all clients.")},
    {.name = "UploadMax",
     .type = MK_CONF_SIZE,
     AT(upload_max),
     .default_value = "32M",
     .min = 1,
     .help = MK_HELP("Maximum bytes of an upload, with all of its files (413). It replaces `MaxBodySize`.")},
    {.name = "Overwrite",
     .type = MK_CONF_BOOL,
     AT(overwrite),
     .default_value = "off",
     .help = MK_HELP("Uploads replace files of the same name. Otherwise, they are rejected (409).")},
};

static const struct mk_conf_table table = {
    .section = "DIRLISTING",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Lists folders without an index file."),
    .size = sizeof(struct settings),
    .scope = MK_CONF_VHOST,
};

/* ---- Request ---- */

static const struct format *choose_format(const struct mk_request *request)
{
    const struct format *best = formats[0];
    unsigned best_q = 0;
    for (size_t i = 0; i < N_FORMATS; i++) {
        unsigned q = mk_request_accepts_type(request, formats[i]->type);
        if (q > best_q) {
            best = formats[i];
            best_q = q;
        }
    }
    return best;
}

static void find_word_index(const char *const *words, mk_str word, unsigned *out)
{
    for (unsigned i = 0; words[i]; i++)
        if (mk_str_eq(word, mk_str_from_c(words[i])))
            *out = i;
}

/* Ignores invalid values. */
static void parse_query(mk_str query, struct listing_options *w)
{
    unsigned sort = w->sort, order = w->down;
    while (query.p) {
        mk_str value = mk_str_cut(&query, '&'), name = mk_str_cut(&value, '=');
        if (mk_str_eq(name, MK_STR("sort")))
            find_word_index(dirlisting_sort_words, value, &sort);
        else if (mk_str_eq(name, MK_STR("order")))
            find_word_index(order_words, value, &order);
        for (size_t i = 0; mk_str_eq(name, MK_STR("format")) && i < N_FORMATS; i++)
            if (mk_str_eq(value, mk_str_from_c(formats[i]->word)))
                w->format = formats[i];
    }
    w->sort = (enum sort_key)sort;
    w->down = order != 0;
}

static struct listing_options choose_options(const struct mk_request *request, const struct settings *s)
{
    struct listing_options w = {.sort = (enum sort_key)s->sort, .down = s->order != 0};
    parse_query(mk_request_query(request), &w);
    w.has_format_query = w.format != NULL;
    if (!w.format)
        w.format = choose_format(request);
    return w;
}

/* ---- Folders that accept uploads ---- */

/* Does a GET return an index file, or its error, instead of the listing? */
static bool has_index_file(const struct mk_request *request)
{
    char buf[PATH_MAX];
    mk_str name;
    for (size_t i = 0; (name = mk_vhost_index_at(mk_request_vhost(request), i)).p; i++) {
        struct mk_buf path = mk_buf_fixed(buf, sizeof buf);
        mk_buf_add(&path, mk_request_path(request));
        mk_buf_add(&path, name);
        int kind = path.failed ? -ENAMETOOLONG : mk_request_stat(request, mk_buf_str(&path), NULL);
        if (kind != MK_FILE_FOLDER && kind != -ENOENT && kind != -ENOTDIR && kind != -ENAMETOOLONG)
            return true;
    }
    return false;
}

static bool is_upload_route(mk_str handler)
{
    return mk_str_eq_nocase(mk_str_word(&handler), MK_STR("dirlisting-upload"));
}

/* Regular expressions never match, because this function does not compile them. */
static bool has_upload_route(const struct mk_request *request)
{
    struct mk_pattern pattern;
    mk_str text, written;
    for (size_t i = 0; mk_vhost_route_at(mk_request_vhost(request), i, &text, &written); i++)
        if (is_upload_route(written) && mk_pattern_set(&pattern, text) &&
            mk_pattern_matches(&pattern, mk_request_path(request)))
            return true;
    return false;
}

static bool shows_form(const struct mk_request *request, const struct settings *settings)
{
    return dirlisting_upload_is_allowed(request, settings) && has_upload_route(request) &&
           !has_index_file(request);
}

/* ---- Responses ---- */

static enum mk_verdict respond_error(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    return MK_ERROR;
}

static enum mk_verdict respond_errno(struct mk_request *request, struct mk_response *response, int e)
{
    switch (e) {
    case -EACCES:
    case -EPERM:
    case -ELOOP:
    case -EXDEV:
        return respond_error(response, 403);
    case -ENOMEM:
    case -EMFILE:
    case -ENFILE:
    case -EAGAIN:
        return respond_error(response, 503);
    case -ENOENT:
    case -ENOTDIR:
    case -ENAMETOOLONG:
        mk_response_set_status(response, 404); /* used unless another handler responds */
        return MK_NEXT;
    default:
        mk_request_log(request, MK_LOG_ERROR, "cannot open the folder: %s", strerror(-e));
        return respond_error(response, 500);
    }
}

/* Redirects to the path with a slash at the end, because links in a listing are relative. */
static enum mk_verdict redirect_to_slash(struct mk_request *request, struct mk_response *response)
{
    mk_str path = mk_request_path(request), query = mk_request_query(request);
    size_t cap = 3 * path.len + query.len + 2;
    char *buf = mk_request_alloc(request, cap);
    if (!buf)
        return respond_error(response, 503);
    struct mk_buf to = mk_buf_fixed(buf, cap);
    mk_url_escape(&to, path);
    mk_buf_add_char(&to, '/');
    if (query.p) {
        mk_buf_add_char(&to, '?');
        mk_buf_add(&to, query);
    }
    mk_response_set_status(response, 301);
    return to.failed || mk_response_add_header(response, MK_STR("Location"), mk_buf_str(&to))
               ? respond_error(response, 503)
               : MK_DONE;
}

static bool add_headers(struct mk_response *r, const struct listing_options *w)
{
    mk_str policy = w->has_form ? MK_STR("default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
                                         "base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
                                : MK_STR("default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
                                         "base-uri 'none'; form-action 'none'");
    return mk_response_add_header_nocopy(r, MK_STR("Content-Type"), w->format->content_type) == 0 &&
           (w->has_format_query || mk_response_add_header_nocopy(r, MK_STR("Vary"), MK_STR("Accept")) == 0) &&
           mk_response_add_header_nocopy(r, MK_STR("X-Content-Type-Options"), MK_STR("nosniff")) == 0 &&
           (w->format != &dirlisting_format_html ||
            mk_response_add_header_nocopy(r, MK_STR("Content-Security-Policy"), policy) == 0);
}

/* `note`: why an upload failed; empty: no upload has failed. */
static enum mk_verdict respond_with_listing(struct mk_request *request, struct mk_response *response, int fd,
                                            const struct settings *settings, unsigned status, mk_str note)
{
    struct listing_options options = choose_options(request, settings);
    options.has_form = shows_form(request, settings);
    options.note = note;
    struct listing *l =
        dirlisting_listing_new(request, fd, settings, &state_of(request)->sort_memory, &options);
    if (!l)
        return respond_error(response, 503);
    if (mk_response_set_body_source(response, &dirlisting_source, l, MK_LENGTH_UNKNOWN) != 0 ||
        !add_headers(response, &options))
        return respond_error(response, 503);
    mk_response_set_status(response, status);
    mk_request_explain(request, "dirlisting", "lists the folder as %s", options.format->word);
    return MK_DONE;
}

/* Uses the same rule as for files: segments that begin with a dot are hidden, except /.well-known (RFC
 * 8615). */
static bool has_hidden_segment(mk_str path)
{
    if (mk_str_starts(path, MK_STR("/.well-known/")))
        path = mk_str_skip(path, sizeof "/.well-known" - 1);
    for (size_t i = 0; i + 1 < path.len; i++)
        if (path.p[i] == '/' && path.p[i + 1] == '.')
            return true;
    return false;
}

static const struct settings *settings_of(const struct mk_request *request, const void *data)
{
    return data ? data : mk_vhost_data(mk_request_vhost(request), &MK_PLUGIN_OF(dirlisting));
}

static enum mk_verdict handle_request(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct settings *settings = settings_of(request, data);
    mk_str path = mk_request_path(request);
    struct stat st;
    if (mk_request_has_encoded_slash(request))
        return MK_NEXT;
    if (!mk_request_shows_dot_files(request) && has_hidden_segment(path))
        return respond_error(response, 403);
    int fd = mk_request_open(request, path);
    if (fd < 0)
        return respond_errno(request, response, fd);
    if (fstat(fd, &st) != 0 || !S_ISDIR(st.st_mode)) {
        close(fd);
        return MK_NEXT;
    }
    if (path.p[path.len - 1] == '/')
        return respond_with_listing(request, response, fd, settings, 200, MK_STR(""));
    close(fd);
    return redirect_to_slash(request, response);
}

/* ---- Uploads ---- */

/* Opens the folder at the path. Returns -ENOTDIR for anything else, and for folders with an index file. */
static int open_folder(const struct mk_request *request)
{
    mk_str path = mk_request_path(request);
    struct stat st;
    if (mk_request_has_encoded_slash(request) || path.p[path.len - 1] != '/')
        return -ENOTDIR;
    if (!mk_request_shows_dot_files(request) && has_hidden_segment(path))
        return -EACCES;
    int fd = mk_request_open(request, path);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISDIR(st.st_mode) || has_index_file(request))) {
        close(fd);
        fd = -ENOTDIR;
    }
    return fd;
}

/* Browsers get the listing, with the reason, if the client may upload files. A route in [ROUTES] to this handler does not
 * imply that a GET lists the folder: then all clients get text. */
static enum mk_verdict respond_with_note(struct mk_request *request, struct mk_response *response,
                                         const struct settings *settings, bool is_listed,
                                         const struct upload_result *r)
{
    bool wants_page = is_listed && dirlisting_upload_is_allowed(request, settings) &&
                      choose_options(request, settings).format == &dirlisting_format_html;
    mk_response_add_header_nocopy(response, MK_STR("Cache-Control"), MK_STR("no-store"));
    int fd = wants_page ? open_folder(request) : -1;
    if (fd >= 0)
        return respond_with_listing(request, response, fd, settings, r->status, r->note);
    mk_response_set_status(response, r->status);
    return mk_response_add_header_nocopy(response, MK_STR("Content-Type"),
                                         MK_STR("text/plain; charset=utf-8")) ||
                   mk_response_set_body_nocopy(response, r->note)
               ? respond_error(response, 503)
               : MK_DONE;
}

static enum mk_verdict handle_upload(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct settings *settings = settings_of(request, data);
    int fd = -1;
    if (!dirlisting_upload_has_begun(request)) {
        fd = open_folder(request);
        if (fd == -ENOTDIR || fd == -ENOENT)
            return MK_NEXT;
        if (fd < 0)
            return respond_errno(request, response, fd);
    }
    struct upload_result r = dirlisting_upload_run(request, settings, &state_of(request)->uploads, fd);
    if (!r.status)
        return MK_WAIT;
    if (r.status != 303)
        return respond_with_note(request, response, settings, data != NULL, &r);
    mk_response_set_status(response, 303);
    return mk_response_add_header_nocopy(response, MK_STR("Location"), MK_STR("./"))
               ? respond_error(response, 503)
               : MK_DONE;
}

/* The limit of a folder without an index file; other paths are not for this handler. */
static uint64_t upload_body_max(struct mk_request *request, void *data)
{
    mk_str path = mk_request_path(request);
    const struct settings *settings = settings_of(request, data);
    return path.p[path.len - 1] == '/' && !has_index_file(request) ? settings->upload_max : MK_BODY_MAX_PASS;
}

static const struct mk_handler upload_handler = {
    .name = "dirlisting-upload",
    .methods = MK_METHOD_BIT(MK_METHOD_POST),
    .handle = handle_upload,
    .body_max = upload_body_max,
    .body_max_setting = "UploadMax in [DIRLISTING]",
    .traits = MK_HANDLER_FILES,
};

static const struct mk_handler handler = {
    .name = "dirlisting",
    .methods = MK_METHOD_BIT(MK_METHOD_GET),
    .handle = handle_request,
    .traits = MK_HANDLER_FILES,
};

/* ---- The plugin ---- */

static bool vhost_accepts_uploads(const struct mk_vhost *host, const struct settings *s)
{
    mk_str text, written;
    bool accepts = s->listing;
    for (size_t i = 0; !accepts && mk_vhost_route_at(host, i, &text, &written); i++)
        accepts = is_upload_route(written);
    return accepts;
}

static int bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct settings *s = mk_config_settings(config, &table);
    (void)data;
    *host_data = s;
    mk_str root = mk_vhost_root(host);
    const void *section = mk_config_section(config, &table, NULL);
    if (!section || !root.len)
        return 0;
    if (s->listing)
        mk_config_add_route(config, MK_STR("/*"), &handler, s);
    if (s->upload == UPLOAD_OFF)
        return 0;
    if (!dirlisting_upload_is_built) {
        mk_config_error(config, section, "Upload", "this server was built without uploads (MK_UPLOADS)");
        return -EINVAL;
    }
    if (s->listing)
        mk_config_add_route(config, MK_STR("/*"), &upload_handler, s);
    if (vhost_accepts_uploads(host, s)) {
        mk_config_allow_writing(config, section, "Upload", root);
        mk_config_enable_body_spool(config);
    }
    return 0;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    struct state *state = mk_mem_zalloc(1, sizeof *state);
    (void)data;
    if (!state)
        return -ENOMEM;
    state->uploads.worker = worker;
    mk_worker_set_data(worker, &MK_PLUGIN_OF(dirlisting), state);
    return 0;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_mem_free(mk_worker_data(worker, &MK_PLUGIN_OF(dirlisting)));
}

static const struct mk_conf_table *const sections[] = {&table, NULL};
static const struct mk_handler *const handlers[] = {&handler, &upload_handler, NULL};

MK_PLUGIN(dirlisting) = {
    MK_PLUGIN_HEAD,
    .name = "dirlisting",
    .version = "1.0",
    .help = "Lists folders without an index file.",
    .sections = sections,
    .handlers = handlers,
    .host = bind_vhost,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
};
