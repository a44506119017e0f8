/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/proxy.h"
#include "upstream/route_option.h"

#include <monkey/spool.h>

enum { KEEP = 128 };

const char mk_proxy_route_form[] =
    "http[s]|h2[c]://SERVER[/PATH], where SERVER is HOST:PORT, unix:/path: or the Name of an [UPSTREAM], "
    "then "
    "[host=client|upstream|NAME] [forwarded=replace|append|off] [certificate=off|on|pass] "
    "[hash=address|path|cookie:NAME|field:NAME] [sticky=COOKIE] [redirects=on|off] [cookies=on|off] "
    "[destination=path|absolute] [paths=checked|raw] [underscores=off|on] "
    "[intercept_errors=on|off|STATUS,...] [tunnel=TIME] [stream] "
    "[mirror=http[s]|h2[c]://SERVER] "
    "[share=PERCENT] " MK_UPSTREAM_LIMITS_SYNTAX;

/* ---- Servers ---- */

/* The schemes of Apache's mod_proxy and mod_proxy_http2. */
static const struct scheme {
    mk_str text;
    bool tls, http2;
} schemes[] = {
    {MK_STR_INIT("http://"), false, false},
    {MK_STR_INIT("https://"), true, false},
    {MK_STR_INIT("h2c://"), false, true},
    {MK_STR_INIT("h2://"), true, true},
};

/* Length of the scheme with "://"; 0: unknown. */
static size_t target_parse_scheme(mk_str target, struct mk_upstream_defaults *defaults)
{
    for (size_t i = 0; i < MK_LEN(schemes); i++) {
        const struct scheme *s = &schemes[i];
        if (!mk_str_starts(target, s->text))
            continue;
        *defaults = (struct mk_upstream_defaults){
            .port = s->tls ? 443 : 80, .tls = s->tls, .http2 = s->http2, .keepalive = KEEP};
        return s->text.len;
    }
    return 0;
}

/* `unix:/path` ends at the next colon, followed by the target's path. */
static void target_split(mk_str rest, mk_str *server, mk_str *path)
{
    bool is_unix = mk_str_starts(rest, MK_STR("unix:"));
    size_t end = is_unix ? mk_str_find(mk_str_skip(rest, 5), ':') : mk_str_find(rest, '/');
    if (end != MK_STR_NONE && is_unix)
        end += 5;
    *server = mk_str_first(rest, end);
    *path = end == MK_STR_NONE ? mk_str_of(NULL, 0) : mk_str_skip(rest, end + is_unix);
}

/* ---- Values ---- */

static bool option_read_host(const struct mk_route_option *o)
{
    struct mk_proxy_route *r = o->route;
    if (mk_str_eq(o->value, MK_STR("client")))
        r->host = mk_str_of(NULL, 0);
    else if (mk_str_eq(o->value, MK_STR("upstream")))
        r->host = r->authority;
    else
        r->host = o->value;
    return !r->host.p || (r->host.len && mk_is_header_value(r->host)) ||
           mk_route_option_fail(o, "`client`, `upstream` or a host");
}

static bool option_read_hash(const struct mk_route_option *o)
{
    struct mk_proxy_route *r = o->route;
    mk_str name = o->value, kind = mk_str_cut(&name, ':');
    r->hash_name = name;
    if (mk_str_eq(kind, MK_STR("address")) && !name.len)
        r->hash = MK_PROXY_HASH_ADDRESS;
    else if (mk_str_eq(kind, MK_STR("path")) && !name.len)
        r->hash = MK_PROXY_HASH_PATH;
    else if (mk_str_eq(kind, MK_STR("cookie")) && mk_is_token(name))
        r->hash = MK_PROXY_HASH_COOKIE;
    else if (mk_str_eq(kind, MK_STR("field")) && mk_is_token(name))
        r->hash = MK_PROXY_HASH_FIELD;
    else
        return mk_route_option_fail(o, "`address`, `path`, `cookie:NAME` or `field:NAME`");
    return true;
}

static bool option_read_sticky(const struct mk_route_option *o)
{
    struct mk_proxy_route *r = o->route;
    r->sticky = o->value;
    return mk_is_token(o->value) || mk_route_option_fail(o, "the name of a cookie");
}

static bool option_read_mirror(const struct mk_route_option *o)
{
    struct mk_proxy_route *r = o->route;
    struct mk_upstream_defaults defaults;
    size_t scheme = target_parse_scheme(o->value, &defaults);
    mk_str server, path;
    target_split(mk_str_skip(o->value, scheme), &server, &path);
    if (!scheme || path.p)
        return mk_route_option_fail(o, "a server without a path, such as `http://127.0.0.1:3000`");
    r->mirror = mk_upstream_find(o->ctx, server, &defaults);
    return r->mirror;
}

/* "10", "0.5%" */
static bool option_read_mirror_share(const struct mk_route_option *o)
{
    struct mk_proxy_route *r = o->route;
    mk_str rest = mk_str_first(o->value, o->value.len - mk_str_ends(o->value, MK_STR("%"))),
           whole = mk_str_cut(&rest, '.');
    uint64_t percent, part = 0;
    bool is_number =
        mk_num_parse(whole, &percent) && (!rest.p || (rest.len <= 2 && mk_num_parse(rest, &part)));
    part *= rest.len == 1 ? 10 : 1;
    if (!is_number || percent > 100 || (percent == 100 && part) || !(percent || part))
        return mk_route_option_fail(o, "a percentage above 0, at most 100, such as `10%` or `0.5%`");
    r->share = (unsigned)(percent * 100 + part);
    return true;
}

static bool option_read_tunnel(const struct mk_route_option *o)
{
    struct mk_proxy_route *r = o->route;
    return r->limits_tunnel = mk_conf_ctx_time(o->ctx, o->value, &r->tunnel_ms);
}

static bool option_read_intercept(const struct mk_route_option *o)
{
    struct mk_proxy_route *r = o->route;
    return mk_route_option_read_statuses(o, &r->intercepts);
}

static const char *const checked_or_raw[] = {"checked", "raw"};
static const char *const off_or_on[] = {"off", "on"};
static const char *const path_or_absolute[] = {"path", "absolute"};
/* The values, in the order of enum mk_proxy_forwarded and enum mk_proxy_certificate. */
static const char *const forwarded[] = {"replace", "append", "off", "local"};
static const char *const certificate[] = {"off", "on", "pass"};

static const struct mk_route_option_type proxy_options[] = {
    {"host", .read = option_read_host},
    {"forwarded", MK_ROUTE_OPTION_CHOICE(struct mk_proxy_route, forwarded, forwarded)},
    {"certificate", MK_ROUTE_OPTION_CHOICE(struct mk_proxy_route, certificate, certificate)},
    {"hash", .read = option_read_hash},
    {"sticky", .read = option_read_sticky},
    {"redirects", MK_ROUTE_OPTION_CHOICE(struct mk_proxy_route, rewrites_redirects, off_or_on)},
    {"cookies", MK_ROUTE_OPTION_CHOICE(struct mk_proxy_route, rewrites_cookies, off_or_on)},
    {"destination", MK_ROUTE_OPTION_CHOICE(struct mk_proxy_route, absolute_destination, path_or_absolute)},
    {"paths", MK_ROUTE_OPTION_CHOICE(struct mk_proxy_route, raw_paths, checked_or_raw)},
    {"underscores", MK_ROUTE_OPTION_CHOICE(struct mk_proxy_route, passes_underscores, off_or_on)},
    {"intercept_errors", .read = option_read_intercept},
    {"stream", MK_ROUTE_OPTION_FLAG(struct mk_proxy_route, streams)},
    {"mirror", .read = option_read_mirror},
    {"share", .read = option_read_mirror_share},
    {"tunnel", .read = option_read_tunnel},
};

static bool route_check_mirror_share(const struct mk_route_option *o)
{
    struct mk_proxy_route *r = o->route;
    if (!r->mirror && r->share) {
        mk_conf_ctx_error(o->ctx, o->word, "`share` needs a mirror: expected `mirror=http://SERVER` as well");
        return false;
    }
    r->share = r->share ? r->share : MK_PROXY_SHARE_ALL;
    return true;
}

/* ---- The target ---- */

/* Sets the prefix to the pattern up to its first wildcard. False: the pattern does not begin with `/`. */
static bool route_set_prefix(const struct mk_route_option *o, struct mk_proxy_route *r)
{
    mk_str pattern = mk_conf_ctx_key(o->ctx);
    size_t end = mk_str_find(pattern, '*'), other = mk_str_find(pattern, '?');
    r->prefix = mk_str_first(pattern, end < other ? end : other);
    if (pattern.len && pattern.p[0] == '/')
        return true;
    mk_conf_ctx_error(o->ctx, o->word,
                      "the path of the target replaces the beginning of the pattern, so the pattern must "
                      "begin with `/`");
    return false;
}

static bool route_read_target(struct mk_route_option *o)
{
    struct mk_proxy_route *r = o->route;
    struct mk_upstream_defaults defaults;
    size_t scheme = target_parse_scheme(o->word, &defaults);
    if (!scheme)
        return mk_route_option_fail(o, "a target such as `http://127.0.0.1:3000`, or `h2c://127.0.0.1:50051` "
                                       "for HTTP/2 and gRPC");
    mk_str server, path;
    target_split(mk_str_skip(o->word, scheme), &server, &path);
    if (path.p &&
        (!path.len || path.p[0] != '/' || mk_str_find(path, '?') != MK_STR_NONE || !mk_is_header_value(path)))
        return mk_route_option_fail(o, "a path that begins with `/`, without a query");
    r->upstream = mk_upstream_find(o->ctx, server, &defaults);
    r->authority = mk_str_starts(server, MK_STR("unix:")) ? MK_STR("localhost") : server;
    r->port = defaults.port;
    r->is_http2 = defaults.http2;
    r->path = path;
    return r->upstream && (!path.p || route_set_prefix(o, r));
}

bool mk_proxy_route_bind(const struct mk_conf_ctx *ctx, mk_str words, void **data)
{
    struct mk_proxy_route *r = mk_conf_ctx_alloc(ctx, sizeof *r);
    struct mk_route_option o = {.ctx = ctx, .route = r};
    if (!r || !mk_conf_ctx_word(ctx, &words, &o.word) || !o.word.p || !route_read_target(&o))
        return false;
    r->rewrites_redirects = true;
    *data = r;
    if (!mk_route_options_read(ctx, words, proxy_options, MK_LEN(proxy_options), r, &r->limits) ||
        !route_check_mirror_share(&o))
        return false;
    if (!r->streams)
        mk_config_enable_body_spool(mk_conf_ctx_config(ctx));
    return true;
}
