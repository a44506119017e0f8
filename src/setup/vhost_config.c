/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/vhost_config.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "base/num.h"
#include "conf/path.h"
#include "conf/table.h"
#include "http/authority.h"
#include "os/fd.h"
#include "os/identity.h"
#include "setup/alias.h"
#include "setup/cache_control.h"
#include "setup/conf_regex.h"
#include "setup/keys.h"
#include "setup/location.h"
#include "setup/plugins.h"
#include "setup/route_conditions.h"
#include "setup/route_handlers.h"
#include "setup/script_names.h"
#include "web/redirect.h"

struct host_builder {
    struct mk_config_generation *g;
    struct mk_vhost_config *site;
    struct mk_conf_report *report;
    struct mk_arena *arena;
    struct mk_regex **name_regexes; /* regexes of the names, by index; NULL: none */
};

static void *alloc_zeroed(struct host_builder *b, size_t n, size_t size)
{
    return mk_arena_zalloc(b->arena, n ? n : 1, size);
}

static struct mk_conf_source_pos host_key_pos(const struct host_builder *b, const char *key)
{
    const struct mk_conf_entry *e = mk_conf_table_find_entry(b->site->section, mk_str_from_c(key));
    return e ? mk_conf_tree_value_pos(e, e->value) : b->site->section->at;
}

/* Resolves a path relative to the folder of the configuration file, like @INCLUDE; NUL-terminated. */
static mk_str resolve_host_path(struct host_builder *b, mk_str path)
{
    mk_str file = b->site->section->at.file;
    size_t slash = mk_str_find_last(file, '/');
    mk_str folder = slash == MK_STR_NONE ? b->g->folder : mk_str_first(file, slash);
    return mk_conf_path_resolve_in(b->arena, folder, path);
}

static void open_document_root(struct host_builder *b)
{
    struct mk_root *root = &b->site->host.root;
    struct mk_conf_source_pos at = host_key_pos(b, "DocumentRoot");
    root->how.symlink = (enum mk_symlink)b->site->settings.site.symlink;
    if (b->site->settings.root.len == 0)
        return;
    mk_str path = resolve_host_path(b, b->site->settings.root);
    if (!path.p)
        return;
    root->path = path.p;
    mk_alias_open_folder(b->g, path.p, &at, b->report, &root->fd);
}

static bool is_safe_relative_path(mk_str path)
{
    while (path.p) {
        mk_str part = mk_str_cut(&path, '/');
        if (part.len == 0 || mk_str_eq(part, MK_STR(".")) || mk_str_eq(part, MK_STR("..")))
            return false;
    }
    return true;
}

/* ---- Users ---- */

/* A user's symbolic link may lead anywhere: the master, as root, must not open a folder that the workers
 * could not enter. */
static mk_err open_folder_as_worker(const struct host_builder *b, const char *path, int *fd)
{
    struct mk_identity_saved own;
    if (!b->g->has_identity)
        return mk_file_open_root(path, fd);
    mk_err e = mk_identity_impersonate(&b->g->identity, &own);
    if (e)
        return e;
    e = mk_file_open_root(path, fd);
    mk_identity_revert(&own);
    return e;
}

static void add_user_home(struct host_builder *b, struct mk_user_homes *homes, const struct passwd *pw)
{
    char path[PATH_MAX];
    int fd;
    mk_str dir = b->site->settings.site.user_dir;
    int len = snprintf(path, sizeof path, "%s/%.*s", pw->pw_dir, MK_STR_ARG(dir));
    if (len < 0 || (size_t)len >= sizeof path)
        return;
    bool follows = b->site->host.root.how.symlink == MK_SYMLINK_ON;
    if (follows ? open_folder_as_worker(b, path, &fd)
                : mk_file_open_owned_root(pw->pw_dir, path + (size_t)len - dir.len, pw->pw_uid, &fd))
        return;
    struct mk_user_home *home = alloc_zeroed(b, 1, sizeof *home);
    mk_str name = mk_arena_copy(b->arena, mk_str_from_c(pw->pw_name));
    mk_str kept = mk_arena_copy(b->arena, mk_str_of(path, (size_t)len));
    if (!home || !name.p || !kept.p || !mk_map_put(&homes->by_name, name, home)) {
        mk_fd_close(&fd);
        return;
    }
    home->root = (struct mk_root){.fd = fd, .path = kept.p, .how = b->site->host.root.how};
}

static void find_user_homes(struct host_builder *b)
{
    mk_str dir = b->site->settings.site.user_dir;
    if (dir.len == 0 || mk_str_eq_nocase(dir, MK_STR("off")))
        return;
    if (!is_safe_relative_path(dir)) {
        struct mk_conf_source_pos at = host_key_pos(b, "UserDir");
        mk_conf_report_error(b->report, &at, "`%.*s` is not a folder in home directories", MK_STR_ARG(dir));
        return;
    }
    struct mk_user_homes *homes = alloc_zeroed(b, 1, sizeof *homes);
    if (!homes)
        return;
    mk_map_init(&homes->by_name, b->arena);
    setpwent();
    for (const struct passwd *pw; (pw = getpwent());)
        add_user_home(b, homes, pw);
    endpwent();
    b->site->host.homes = homes;
}

/* ---- Routes ---- */

static bool bind_status_route(struct host_builder *b, unsigned status, mk_str written, struct mk_route *route)
{
    return mk_route_handlers_bind_status(b->arena, status, written, route);
}

/* Binds `Match REGEX HANDLER...` of Monkey 1.6. False: the line is invalid, and the error was reported. */
static bool bind_match_route(struct host_builder *b, const struct mk_conf_pair *pair, struct mk_route *route)
{
    mk_str rest = pair->value, pattern = mk_arena_copy(b->arena, mk_str_word(&rest));
    mk_str words = mk_str_trim(rest), name = mk_str_word(&rest);
    struct mk_conf_source_pos at = mk_conf_tree_value_pos(pair->entry, words);
    if (!mk_str_eq_nocase(pair->key, MK_STR("Match")) || name.len == 0) {
        mk_conf_report_error(b->report, &pair->entry->at, "expected `Match REGEX HANDLER [WORDS...]`");
        return false;
    }
    struct mk_regex *regex = mk_conf_regex_new_posix(b->arena, b->report, &pair->entry->at, pattern);
    if (!regex)
        return false;
    *route = (struct mk_route){.pattern = {.text = pattern}, .regex = regex};
    if (mk_route_handlers_has(b->g, name))
        return mk_route_handlers_bind(b->g, b->site, b->report, pair->entry, words, route);
    mk_conf_report_warn(b->report, &at, "there is no handler `%.*s`: matching requests get 501",
                        MK_CONF_REPORT_ARG(name));
    const char *plugin = mk_plugins_suggest_for_handler(b->g, name);
    if (plugin)
        mk_conf_report_hint(b->report, "the plugin `%s` has it: add `Load %s` to [PLUGINS]", plugin, plugin);
    return bind_status_route(b, 501, words, route);
}

/* Binds `~ REGEX HANDLER...` or `~REGEX HANDLER...`. False: the line is invalid, and the error was
 * reported. */
static bool bind_regex_route(struct host_builder *b, const struct mk_conf_pair *pair, struct mk_route *route)
{
    mk_str rest = pair->value, pattern = mk_str_skip(pair->key, 1);
    struct mk_conf_source_pos at = pair->entry->at;
    if (pattern.len == 0) {
        pattern = mk_str_word(&rest);
        at = mk_conf_tree_value_pos(pair->entry, pattern);
    }
    if (mk_str_trim(rest).len == 0) {
        mk_conf_report_error(b->report, &at, "expected `~ REGEX HANDLER [WORDS...]`");
        return false;
    }
    route->regex = mk_conf_regex_new(b->arena, b->report, &at, pattern, false);
    if (!route->regex && mk_str_eq(pair->key, MK_STR("~*")))
        mk_conf_report_hint(b->report, "to ignore case, write `~ (?i)REGEX`");
    route->pattern.text = mk_arena_printf(b->arena, "~ %.*s", MK_STR_ARG(pattern));
    return route->regex && route->pattern.text.p &&
           mk_route_handlers_bind(b->g, b->site, b->report, pair->entry, mk_str_trim(rest), route);
}

static bool bind_route(struct host_builder *b, const struct mk_conf_pair *pair, struct mk_route *route)
{
    *route = (struct mk_route){0};
    if (mk_str_starts(pair->key, MK_STR("~")))
        return bind_regex_route(b, pair, route);
    if (!mk_pattern_set(&route->pattern, pair->key)) {
        mk_conf_report_error(b->report, &pair->entry->at,
                             "`%.*s` is not a pattern: it must begin with /, * or ~", MK_STR_ARG(pair->key));
        return false;
    }
    return mk_route_handlers_bind(b->g, b->site, b->report, pair->entry, pair->value, route);
}

/* Parses `When CONDITION...`, for the next route. */
static void bind_when(struct host_builder *b, const struct mk_conf_pair *pair, struct mk_conditions **pending)
{
    struct mk_conf_ctx ctx = {.arena = b->arena, .report = b->report, .entry = pair->entry};
    if (!*pending)
        *pending = mk_route_conditions_new(&ctx);
    if (*pending)
        mk_route_conditions_parse(*pending, &ctx, pair->value);
}

/* Returns the number of routes, which `routes` receives. */
static size_t bind_conditional_routes(struct host_builder *b, struct mk_route *routes)
{
    const struct mk_conf_pairs *written = &b->site->routes;
    struct mk_conditions *pending = NULL;
    size_t n = 0;
    for (size_t i = 0; i < written->n; i++) {
        bool is_when = mk_str_eq_nocase(written->at[i].key, MK_STR("When"));
        if (is_when)
            bind_when(b, &written->at[i], &pending);
        if (is_when && i + 1 == written->n)
            mk_conf_report_error(b->report, &written->at[i].entry->at, "condition without a route after it");
        if (is_when)
            continue;
        if (bind_route(b, &written->at[i], &routes[n]))
            routes[n++].when = pending;
        pending = NULL;
    }
    return n;
}

static void add_redirect_route(struct host_builder *b, struct mk_route *routes, size_t *n)
{
    struct mk_redirect *to = alloc_zeroed(b, 1, sizeof *to);
    if (!b->site->settings.redirect.len || !to)
        return;
    *to = (struct mk_redirect){.status = 301, .url = b->site->settings.redirect};
    mk_str written = mk_arena_printf(b->arena, "redirect 301 %.*s", MK_STR_ARG(to->url));
    if (!written.p)
        return;
    routes[(*n)++] = (struct mk_route){.pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL},
                                       .handler = &mk_redirect,
                                       .data = to,
                                       .written = written};
}

static void add_default_route(struct host_builder *b, struct mk_route *routes, size_t *n)
{
    static const struct mk_conf_entry nowhere;
    bool has_files = b->site->host.root.fd >= 0 || b->site->host.n_aliases || !b->g->embedding;
    if (b->site->routes.n || !has_files)
        return;
    routes[*n] = (struct mk_route){.pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL}};
    *n += mk_route_handlers_bind(b->g, b->site, b->report, &nowhere, MK_STR("static"), &routes[*n]);
}

static bool handler_has_trait(const struct mk_route *route, unsigned trait)
{
    return route->handler && route->handler->traits & trait;
}

/* The routes of a host that forward requests for more than one path. */
struct forwarding_routes {
    const struct mk_route **at;
    size_t n;
};

static bool find_forwarding_routes(const struct host_builder *b, struct forwarding_routes *forwarding_routes)
{
    const struct mk_vhost *h = &b->site->host;
    *forwarding_routes = (struct forwarding_routes){
        .at = mk_arena_zalloc(b->arena, h->n_routes + 1, sizeof *forwarding_routes->at)};
    for (size_t i = 0; forwarding_routes->at && i < h->n_routes; i++) {
        const struct mk_route *r = &h->routes[i];
        if (handler_has_trait(r, MK_HANDLER_FORWARDS) && (r->regex || r->pattern.kind != MK_PATTERN_EXACT))
            forwarding_routes->at[forwarding_routes->n++] = r;
    }
    return forwarding_routes->at;
}

/* Does another route of the host forward paths below that folder? */
static bool is_folder_forwarded(const struct host_builder *b,
                                const struct forwarding_routes *forwarding_routes, mk_str folder)
{
    mk_str below = mk_arena_printf(b->arena, "%.*sx", MK_STR_ARG(folder));
    for (size_t i = 0; below.p && i < forwarding_routes->n; i++)
        if (forwarding_routes->at[i]->regex || mk_pattern_matches(&forwarding_routes->at[i]->pattern, below))
            return true;
    return !below.p;
}

static bool forwards_folder(const struct mk_route *r)
{
    return !r->regex && r->pattern.kind == MK_PATTERN_EXACT && mk_str_ends(r->pattern.text, MK_STR("/")) &&
           handler_has_trait(r, MK_HANDLER_FORWARDS);
}

/* Warns about routes that forward only a path such as `/api/`: an nginx location is a prefix, but here the
 * pattern matches only that path. */
static void warn_of_exact_folders(struct host_builder *b)
{
    const struct mk_conf_pairs *written = &b->site->routes;
    struct forwarding_routes forwarding_routes;
    size_t from = 0; /* route lines are in the order of the routes */
    if (!find_forwarding_routes(b, &forwarding_routes))
        return;
    for (size_t i = 0; i < b->site->host.n_routes; i++) {
        mk_str path = b->site->host.routes[i].pattern.text;
        if (!forwards_folder(&b->site->host.routes[i]) || is_folder_forwarded(b, &forwarding_routes, path))
            continue;
        size_t j = from;
        while (j < written->n && !mk_str_eq(written->at[j].key, path))
            j++;
        if (j == written->n)
            continue;
        from = j + 1;
        mk_conf_report_warn(b->report, &written->at[j].entry->at,
                            "`%.*s` matches only this path, not the paths below it",
                            MK_CONF_REPORT_ARG(path));
        mk_conf_report_hint(b->report, "did you mean `%.*s*`?", MK_CONF_REPORT_ARG(path));
    }
}

/* With [ROUTES], files need a route, too. Does not warn if there is a catch-all route or a regular
 * expression, which may handle the paths of the files on purpose. */
static void warn_of_unserved_root(struct host_builder *b)
{
    const struct mk_vhost *h = &b->site->host;
    struct mk_conf_source_pos at = host_key_pos(b, "DocumentRoot");
    if (h->root.fd < 0 || !b->site->routes.n || b->g->embedding)
        return;
    for (size_t i = 0; i < h->n_routes; i++)
        if (handler_has_trait(&h->routes[i], MK_HANDLER_FILES) || h->routes[i].regex ||
            h->routes[i].pattern.kind == MK_PATTERN_ALL)
            return;
    mk_conf_report_warn(b->report, &at, "no route of this host leads to its files");
    mk_conf_report_hint(b->report, "add `/* static` as its last route, or leave out DocumentRoot");
}

/* Reports a missing DocumentRoot. A host whose routes use no files needs none. */
static void check_root_required(struct host_builder *b)
{
    const struct mk_vhost *h = &b->site->host;
    bool needs = !b->site->routes.n;
    for (size_t i = 0; i < h->n_routes; i++)
        needs = needs || handler_has_trait(&h->routes[i], MK_HANDLER_FILES);
    if (needs && !b->site->settings.root.len && !b->site->settings.redirect.len && !b->g->embedding)
        mk_conf_report_error(b->report, &b->site->section->at,
                             "this [HOST] has no DocumentRoot (and no Redirect)");
}

static void build_routes(struct host_builder *b)
{
    struct mk_vhost_config *s = b->site;
    struct mk_route *routes = alloc_zeroed(b, s->routes.n + s->handlers.n + 2, sizeof *routes);
    size_t n = 0, errors = b->report->n_errors;
    if (!routes)
        return;
    add_redirect_route(b, routes, &n);
    for (size_t i = 0; i < s->handlers.n; i++)
        n += bind_match_route(b, &s->handlers.at[i], &routes[n]);
    n += bind_conditional_routes(b, routes + n);
    add_default_route(b, routes, &n);
    mk_route_conditions_index(b->arena, routes, n);
    s->host.routes = routes;
    s->host.n_routes = n;
    if (!mk_script_names_collect(b->arena, &s->host)) /* out of memory: the host gets no routes */
        s->host.n_routes = 0;
    warn_of_exact_folders(b);
    if (b->report->n_errors == errors) /* otherwise the route of the files may be among the invalid ones */
        warn_of_unserved_root(b);
    check_root_required(b);
}

/* ---- Pages ---- */

static mk_str strip_leading_slashes(mk_str path)
{
    while (path.len > 0 && path.p[0] == '/')
        path = mk_str_skip(path, 1);
    return path;
}

static void warn_of_missing_page(struct host_builder *b, const struct mk_conf_entry *entry, mk_str path)
{
    mk_str name = mk_arena_copy(b->arena, path);
    if (name.p && b->site->host.root.fd >= 0 && faccessat(b->site->host.root.fd, name.p, F_OK, 0) < 0)
        mk_conf_report_warn(b->report, &entry->at, "there is no `%s` beneath the document root", name.p);
}

static bool has_error_page(const struct mk_error_page *pages, size_t n, unsigned status)
{
    for (size_t i = 0; i < n; i++)
        if (pages[i].status == status)
            return true;
    return false;
}

/* Returns the status, such as 404, or the class, such as 4 for `4xx`; 0: invalid. */
static unsigned parse_error_status(mk_str word)
{
    uint64_t status;
    if (mk_str_eq_nocase(word, MK_STR("4xx")) || mk_str_eq_nocase(word, MK_STR("5xx")))
        return (unsigned)(word.p[0] - '0');
    return mk_num_parse(word, &status) && status >= 400 && status <= 599 ? (unsigned)status : 0;
}

static void build_error_pages(struct host_builder *b)
{
    const struct mk_conf_pairs *pairs = &b->site->error_pages;
    struct mk_error_page *pages = alloc_zeroed(b, pairs->n, sizeof *pages);
    size_t n = 0;
    for (size_t i = 0; pages && i < pairs->n; i++) {
        unsigned status = parse_error_status(pairs->at[i].key);
        mk_str path = strip_leading_slashes(pairs->at[i].value);
        if (!status)
            mk_conf_report_error(b->report, &pairs->at[i].entry->at,
                                 "`%.*s` is neither a status from 400 to 599 nor `4xx` or `5xx`",
                                 MK_STR_ARG(pairs->at[i].key));
        else if (!is_safe_relative_path(path))
            mk_conf_report_error(b->report, &pairs->at[i].entry->at,
                                 "`%.*s` is not a file beneath the document root",
                                 MK_STR_ARG(pairs->at[i].value));
        else if (has_error_page(pages, n, status))
            mk_conf_report_error(b->report, &pairs->at[i].entry->at, "there is already a page for %.*s",
                                 MK_STR_ARG(pairs->at[i].key));
        else
            pages[n++] = (struct mk_error_page){.status = status, .path = path};
        if (pages && n && pages[n - 1].path.p == path.p)
            warn_of_missing_page(b, pairs->at[i].entry, path);
    }
    b->site->host.error_pages = pages;
    b->site->host.n_error_pages = n;
}

/* Rejects values of Index and Fallback that lead out of their folder. */
static void check_file_names(struct host_builder *b)
{
    const struct mk_vhost_common_settings *s = &b->site->settings.site;
    struct mk_conf_source_pos at = host_key_pos(b, "Index");
    for (size_t i = 0; i < s->index.n; i++)
        if (!is_safe_relative_path(s->index.v[i]))
            mk_conf_report_error(b->report, &at, "`%.*s` is not a file in a folder",
                                 MK_STR_ARG(s->index.v[i]));
    at = host_key_pos(b, "Fallback");
    if (b->site->host.fallback.p && !is_safe_relative_path(b->site->host.fallback))
        mk_conf_report_error(b->report, &at, "`%.*s` is not a file beneath the document root",
                             MK_STR_ARG(s->fallback));
}

/* Is `name` a valid Host value without a port? */
static bool is_host_name(mk_str name)
{
    mk_str host;
    uint32_t port;
    return mk_authority_parse(name, &host, &port) == 0 && host.len == name.len;
}

/* `~REGEX` */
static void add_name_regex(struct host_builder *b, size_t i)
{
    struct mk_vhost *h = &b->site->host;
    struct mk_conf_source_pos at = host_key_pos(b, "ServerName");
    struct mk_regex **regexes = b->name_regexes;
    if (!regexes)
        h->regexes = regexes = b->name_regexes = alloc_zeroed(b, h->n_names, sizeof(struct mk_regex *));
    if (regexes)
        regexes[i] = mk_conf_regex_new(b->arena, b->report, &at, mk_str_skip(h->names[i], 1), true);
}

static void check_server_names(struct host_builder *b)
{
    const struct mk_conf_words *names = &b->site->settings.names;
    for (size_t i = 0; i < names->n; i++) {
        mk_str name = names->v[i];
        mk_str rest = mk_str_starts(name, MK_STR("*.")) ? mk_str_skip(name, 2) : name;
        struct mk_conf_source_pos at = host_key_pos(b, "ServerName");
        if (mk_str_starts(name, MK_STR("~")))
            add_name_regex(b, i);
        else if (rest.len == 0 || mk_str_find(rest, '*') != MK_STR_NONE)
            mk_conf_report_error(
                b->report, &at,
                "`%.*s` is not a host name: `*` is allowed only at the beginning, before a dot",
                MK_STR_ARG(name));
        else if (!is_host_name(rest))
            mk_conf_report_error(b->report, &at,
                                 "`%.*s` is not a host name: expected letters, digits, `-`, `_` and dots, or "
                                 "[ADDRESS6], without a port, separated by blanks",
                                 MK_STR_ARG(name));
    }
}

static void check_redirect_url(struct host_builder *b)
{
    mk_str url = b->site->settings.redirect;
    struct mk_conf_source_pos at = host_key_pos(b, "Redirect");
    if (url.len && !(mk_is_header_value(url) && mk_redirect_is_valid_url(url)))
        mk_conf_report_error(b->report, &at,
                             "`%.*s` is not a URL to redirect to: expected SCHEME://HOST... or /PATH, "
                             "without blanks",
                             MK_STR_ARG(url));
}

void mk_vhost_config_init(struct mk_config_generation *g, struct mk_vhost_config *site)
{
    const struct mk_vhost_settings *s = &site->settings;
    site->host = (struct mk_vhost){
        .names = s->names.v,
        .n_names = s->names.n,
        .index = s->site.index.v,
        .n_index = s->site.index.n,
        .mime = &g->mime,
        .error_format = (enum mk_error_format)s->site.error_format,
        .ranges = s->site.resume,
        .precompressed = s->site.precompressed,
        .dot_files = s->site.dot_files,
        .root = {.fd = -1, .path = ""},
        .source = site,
    };
    site->host.written_at =
        mk_arena_printf(&g->arena, "%.*s:%u", MK_STR_ARG(site->section->at.file), site->section->at.line);
}

void mk_vhost_config_build(struct mk_config_generation *g, struct mk_vhost_config *site,
                           struct mk_conf_report *report)
{
    struct host_builder b = {.g = g, .site = site, .report = report, .arena = &g->arena};
    if (site->settings.site.fallback.len)
        site->host.fallback = strip_leading_slashes(site->settings.site.fallback);
    check_server_names(&b);
    check_redirect_url(&b);
    check_file_names(&b);
    open_document_root(&b);
    mk_alias_open_all(g, site, report);
    find_user_homes(&b);
    build_routes(&b);
    build_error_pages(&b);
    mk_cache_control_build(b.arena, site, report);
    mk_location_build_for_host(g, site, report);
}

void mk_vhost_config_close(struct mk_config_generation *g, struct mk_vhost_config *site)
{
    mk_folder_cache_release(&g->shared->folders, &site->host.root.fd);
    mk_alias_close_all(g, site);
    for (size_t i = 0; site->host.homes && i < site->host.homes->by_name.cap; i++) {
        struct mk_user_home *home = site->host.homes->by_name.slots[i].value;
        if (home)
            mk_fd_close(&home->root.fd);
    }
}
