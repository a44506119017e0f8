/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/keys.h"

#include "base/log.h"
#include "connection/conn_manager_type.h"
#include "os/file.h"
#include "setup/alias.h"
#include "setup/keys_tls.h"

static const char *const symlink_words[] = {"off", "owner", "on", NULL};
static const char *const sandbox_modes[] = {"off", "on", "required", NULL}; /* enum mk_sandbox_mode */
static const char *const overcapacity_words[] = {"Drop", "Resist", "TooBusy", NULL};
static const char *const error_formats[] = {"html", "json", NULL}; /* enum mk_error_format */
static const char *const level_words[] = {"error", "warn", "info", "debug", NULL};
static const char *const log_formats[] = {[MK_ERROR_LOG_TEXT] = "text", [MK_ERROR_LOG_JSON] = "json", NULL};
static const char *const access_formats[] = {"combined", "json", "short", NULL}; /* enum mk_access_format */

/* ---- Listen ---- */

/* Applies a flag; returns NULL or an error message. `h2` and `h2c` have no effect: Monkey 1.8 required them,
 * but now each client may choose HTTP/2. */
static const char *parse_listen_flag(struct mk_listen *one, mk_str word)
{
    if (mk_str_eq_nocase(word, MK_STR("tls")) || mk_str_eq_nocase(word, MK_STR("ssl"))) {
        one->tls = true;
        return NULL;
    }
    if (mk_str_eq_nocase(word, MK_STR("h2")))
        return one->tls ? NULL : "is HTTP/2 over TLS: expected `tls` before it (without TLS it is `h2c`)";
    if (mk_str_eq_nocase(word, MK_STR("h2c")))
        return one->tls ? "is HTTP/2 without TLS: expected `h2`" : NULL;
    if (mk_str_eq_nocase(word, MK_STR("http2"))) {
        one->http2 = true;
        return one->tls ? "means HTTP/2 without TLS; with `tls`, clients negotiate HTTP/2 anyway" : NULL;
    }
    if (mk_str_eq_nocase(word, MK_STR("!http")))
        return "is no longer supported: every address accepts HTTP/1";
    return "is not a flag of Listen: expected `tls` or `http2`";
}

const char *mk_keys_parse_listen_flags(mk_str *rest, struct mk_listen *one, mk_str *word)
{
    const char *problem = NULL;
    while (!problem && (*word = mk_str_word(rest)).len)
        problem = parse_listen_flag(one, *word);
    return problem;
}

/* A bare address gets the port that the key `Port` sets, as in Monkey before 1.6. */
static mk_err parse_listen_addr(struct mk_listen *one)
{
    char buf[MK_SOCKADDR_TEXT_MAX];
    struct mk_buf with_port = mk_buf_fixed(buf, sizeof buf);
    mk_err e = mk_sockaddr_parse(one->written, MK_STR("0.0.0.0"), &one->addr);
    if (!e)
        return 0;
    one->takes_port = true;
    mk_buf_addf(&with_port, "%.*s:0", MK_STR_ARG(one->written));
    return with_port.failed ? e : mk_sockaddr_parse(mk_buf_str(&with_port), MK_STR("0.0.0.0"), &one->addr);
}

static bool parse_listen(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct mk_listens *list = field;
    mk_str rest = value, word = mk_str_word(&rest);
    struct mk_listen one = {.written = word};
    if (ctx->entry)
        one.at = mk_conf_tree_value_pos(ctx->entry, word);
    if (parse_listen_addr(&one)) {
        mk_conf_ctx_error(ctx, word, "`%.*s` is not an address to listen on: expected %s", MK_STR_ARG(word),
                          ctx->key->syntax);
        return false;
    }
    const char *problem = mk_keys_parse_listen_flags(&rest, &one, &word);
    if (problem) {
        mk_conf_ctx_error(ctx, word, "`%.*s` %s", MK_CONF_REPORT_ARG(word), problem);
        return false;
    }
    return mk_arena_append(ctx->arena, &list->at, &list->n, &one, sizeof one);
}

static bool show_listen(const void *field, size_t i, struct mk_buf *out)
{
    const struct mk_listens *list = field;
    if (i >= list->n)
        return false;
    mk_sockaddr_format(&list->at[i].addr, out);
    mk_buf_add(out, list->at[i].tls ? MK_STR(" tls") : list->at[i].http2 ? MK_STR(" http2") : MK_STR(""));
    return true;
}

/* ---- [SERVER] ---- */

#define LISTEN_FORM      "PORT, ADDRESS:PORT, [ADDRESS6]:PORT or unix:/path, and `tls` or `http2`"
#define SERVER(member)   MK_CONF_AT(struct mk_server_settings, member)
#define HOST(member)     MK_CONF_AT(struct mk_vhost_settings, member)
#define LOCATION(member) MK_CONF_AT(struct mk_location_settings, member)

/* clang-format off */
#define ACCESS_LOG_FORMAT(AT, IN, DEF) \
    {.name = "AccessLogFormat", .type = MK_CONF_ENUM, AT(IN.access_format), .choices = access_formats, .default_value = DEF("combined"), \
     .help = MK_HELP("`combined` (the Combined Log Format), `json` (one object per line) or `short` (for terminals).")}
/* clang-format on */

/* The keys of struct mk_request_settings: in [SERVER] with defaults, in [HOST] and [LOCATION] without. */
#define REQUEST_KEYS(AT, IN, DEF)                                                                            \
    {.name = "MaxBodySize",                                                                                  \
     .type = MK_CONF_SIZE,                                                                                   \
     AT(IN.max_body_size),                                                                                   \
     .zero_word = "unlimited",                                                                               \
     .default_value = DEF("1M"),                                                                             \
     .help = MK_HELP("Maximum bytes of a request body (413).")},                                             \
        {.name = "HandlerTimeout",                                                                           \
         .type = MK_CONF_TIME,                                                                               \
         AT(IN.handler_ms),                                                                                  \
         .max = 86400000,                                                                                    \
         .zero_word = "unlimited",                                                                           \
         .default_value = DEF("60"),                                                                         \
         .help = MK_HELP("How long a handler may wait for something other than the client (504).")},         \
        {.name = "TunnelTimeout",                                                                            \
         .type = MK_CONF_TIME,                                                                               \
         AT(IN.tunnel_ms),                                                                                   \
         .min = 100,                                                                                         \
         .max = 86400000,                                                                                    \
         .zero_word = "unlimited",                                                                           \
         .default_value = DEF("5m"),                                                                         \
         .help = MK_HELP("How long a tunnel (WebSocket) may stay idle, without data in either direction.")}, \
        {.name = "MinRate",                                                                                  \
         .type = MK_CONF_SIZE,                                                                               \
         AT(IN.rate_bytes),                                                                                  \
         .max = 1 << 30,                                                                                     \
         .zero_word = "off",                                                                                 \
         .default_value = DEF("500"),                                                                        \
         .help =                                                                                             \
             MK_HELP("Bytes per second that a client must send or receive at least; slower clients are cut " \
                     "off.")},                                                                               \
        {.name = "MinRateInterval",                                                                          \
         .type = MK_CONF_TIME,                                                                               \
         AT(IN.rate_ms),                                                                                     \
         .min = 1000,                                                                                        \
         .max = 3600000,                                                                                     \
         .default_value = DEF("10"),                                                                         \
         .help = MK_HELP("The interval over which `MinRate` is measured.")},                                 \
        {.name = "AccessLog",                                                                                \
         .type = MK_CONF_TEXT,                                                                               \
         AT(IN.access_log),                                                                                  \
         .default_value = DEF("off"),                                                                        \
         .help = MK_HELP(                                                                                    \
             "A file, `stdout`, `syslog` or `off`. Written in blocks, after a second at the latest.")},      \
        ACCESS_LOG_FORMAT(AT, IN, DEF)

/* The keys of struct mk_vhost_common_settings except request keys: in [SERVER] with defaults, in [HOST]
 * without. */
#define SITE_KEYS(AT, DEF)                                                                                   \
    {.name = "Index",                                                                                        \
     .type = MK_CONF_WORDS,                                                                                  \
     AT(site.index),                                                                                         \
     .default_value = DEF("index.html index.htm"),                                                           \
     .help = MK_HELP("Index files of folders, in the order in which they are tried.")},                      \
        {.name = "FollowSymlinks",                                                                           \
         .type = MK_CONF_ENUM,                                                                               \
         AT(site.symlink),                                                                                   \
         .choices = symlink_words,                                                                           \
         .default_value = DEF("off"),                                                                        \
         .help = MK_HELP(                                                                                    \
             "Symbolic links: `off` follows none, `owner` those whose target has the same owner, `on` "      \
             "all, even out of the root.")},                                                                 \
        {.name = "Ranges",                                                                                   \
         .type = MK_CONF_BOOL,                                                                               \
         AT(site.resume),                                                                                    \
         .default_value = DEF("on"),                                                                         \
         .help = MK_HELP("Support range requests (206), so that clients can resume downloads.")},            \
        {.name = "Precompressed",                                                                            \
         .type = MK_CONF_BOOL,                                                                               \
         AT(site.precompressed),                                                                             \
         .default_value = DEF("on"),                                                                         \
         .help = MK_HELP(                                                                                    \
             "Send `page.html.br`, `.zst` or `.gz` in place of `page.html` to clients that accept it. "      \
             "A copy older than its original is ignored.")},                                                 \
        {.name = "DotFiles",                                                                                 \
         .type = MK_CONF_BOOL,                                                                               \
         AT(site.dot_files),                                                                                 \
         .default_value = DEF("off"),                                                                        \
         .help = MK_HELP("Serve names that begin with a dot. `/.well-known/` is always served.")},           \
        {.name = "Fallback",                                                                                 \
         .type = MK_CONF_TEXT,                                                                               \
         AT(site.fallback),                                                                                  \
         .help = MK_HELP(                                                                                    \
             "The page of a single-page application: sent for paths that lead to no file, unless they "      \
             "look like a file name.")},                                                                     \
        {.name = "ErrorFormat",                                                                              \
         .type = MK_CONF_ENUM,                                                                               \
         AT(site.error_format),                                                                              \
         .choices = error_formats,                                                                           \
         .default_value = DEF("html"),                                                                       \
         .help = MK_HELP(                                                                                    \
             "Bodies of the server's own errors: `html` pages, or `json` for application/problem+json "      \
             "(RFC 9457).")},                                                                                \
        {.name = "UserDir",                                                                                  \
         .type = MK_CONF_TEXT,                                                                               \
         .flags = MK_CONF_READS,                                                                             \
         AT(site.user_dir),                                                                                  \
         .help = MK_HELP(                                                                                    \
             "Serve this folder of each home directory as `/~name/`; `off` (the default) serves none. "      \
             "Users are looked up when the configuration is loaded.")},                                      \
        {.name = "Indexfile", .alias_of = "Index"}, /* names of Monkey 1.6 */                                \
        {.name = "SymLink", .alias_of = "FollowSymlinks"}, {.name = "Resume", .alias_of = "Ranges"},         \
        MK_SETTINGS_TLS_KEYS(AT, DEF)
#define WITH_DEFAULT(text) text
#define NO_DEFAULT(text)   NULL

static const struct mk_conf_key server_keys[] = {
    {.name = "Port",
     .type = MK_CONF_NUM,
     SERVER(port),
     .min = 1,
     .max = 65535,
     .default_value = "2001",
     .flags = MK_CONF_DEPRECATED,
     .help = MK_HELP("The port of every `Listen` that is only an address, as before Monkey 1.6.")},
    {.name = "MaxKeepAliveRequest", .alias_of = "KeepAliveRequests"},
    {.name = "Timeout", .alias_of = "HeaderTimeout"},
    {.name = "FDT", .alias_of = "OpenFileCache"},
    {.name = "Listen",
     .type = MK_CONF_CUSTOM,
     SERVER(listens),
     .flags = MK_CONF_REPEATABLE,
     .syntax = LISTEN_FORM,
     .parse = parse_listen,
     .show = show_listen,
     .help = MK_HELP(
         "Address to listen on. A bare port means all IPv4 addresses. `tls` accepts only TLS "
         "connections; `http2` accepts only HTTP/2 without TLS (otherwise both versions are accepted). "
         "Without any `Listen`, the port is `2001`.")},
    {.name = "Workers",
     .type = MK_CONF_NUM,
     SERVER(workers),
     .max = 512,
     .zero_word = "auto",
     .default_value = "auto",
     .help = MK_HELP("Worker processes; `auto` (or 0) is one per processor.")},
    {.name = "User",
     .type = MK_CONF_TEXT,
     SERVER(user),
     .help = MK_HELP(
         "Workers switch to this user permanently; of several names, to the first that exists. Needs root; "
         "otherwise it only causes a warning.")},
    {.name = "Group",
     .type = MK_CONF_TEXT,
     SERVER(group),
     .help = MK_HELP("Group of the workers; by default the user's primary group.")},
    {.name = "PidFile",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_WRITES,
     SERVER(pid_file),
     .help = MK_HELP("The file that contains the process ID of the master while it runs.")},
    {.name = "GeoDatabase",
     .type = MK_CONF_WORDS,
     .flags = MK_CONF_READS,
     SERVER(geo_databases),
     .help = MK_HELP(
         "Databases of addresses in the format of MaxMind (.mmdb), for the conditions `country` and `asn`.")},
    {.name = "Sandbox",
     .type = MK_CONF_ENUM,
     SERVER(sandbox),
     .choices = sandbox_modes,
     .default_value = "on",
     .help = MK_HELP(
         "Restrict workers to the files and TCP ports that the configuration needs (Landlock), and filter "
         "their "
         "system calls (seccomp), as far as the kernel supports it. `required`: fail if the kernel does not "
         "support all of it (Linux 6.12).")},
    {.name = "HideVersion",
     .type = MK_CONF_BOOL,
     SERVER(hide_version),
     .default_value = "off",
     .help = MK_HELP("Send `Server: Monkey` without the version.")},
    {.name = "DefaultMimeType",
     .type = MK_CONF_TEXT,
     SERVER(default_type),
     .default_value = "text/plain",
     .help = MK_HELP("Media type of files with an unknown extension.")},
    {.name = "KeepAlive",
     .type = MK_CONF_BOOL,
     SERVER(keep_alive),
     .default_value = "on",
     .help = MK_HELP("Serve multiple requests on one connection.")},
    {.name = "KeepAliveTimeout",
     .type = MK_CONF_TIME,
     SERVER(idle_ms),
     .min = 100,
     .max = 86400000,
     .default_value = "5",
     .help = MK_HELP("How long a connection may stay idle between two requests.")},
    {.name = "KeepAliveRequests",
     .type = MK_CONF_NUM,
     SERVER(max_requests),
     .zero_word = "unlimited",
     .default_value = "1000",
     .help = MK_HELP("Requests on one connection before it is closed.")},
    {.name = "HeaderTimeout",
     .type = MK_CONF_TIME,
     SERVER(head_ms),
     .min = 100,
     .max = 86400000,
     .default_value = "15",
     .help =
         MK_HELP("Time for a whole request head to arrive (408). Slowly arriving bytes do not extend it.")},
    {.name = "LingerTimeout",
     .type = MK_CONF_TIME,
     SERVER(linger_ms),
     .min = 100,
     .max = 60000,
     .default_value = "2",
     .help = MK_HELP("How long a client that is still sending has to read the final response.")},
    {.name = "DrainTimeout",
     .type = MK_CONF_TIME,
     SERVER(drain_ms),
     .max = 86400000,
     .zero_word = "unlimited",
     .default_value = "60",
     .help = MK_HELP("How long old workers may finish open requests after a reload or QUIT.")},
    {.name = "WatchdogTimeout",
     .type = MK_CONF_TIME,
     SERVER(loop_ms),
     .min = 2000,
     .max = 86400000,
     .zero_word = "unlimited",
     .default_value = "30",
     .help = MK_HELP(
         "How long a plugin may block a worker, while it starts, serves or ends, before the master kills "
         "and replaces the worker. A blocked worker is reported within 2 seconds. A worker that a debugger "
         "has stopped is spared.")},
    {.name = "TicketLifetime",
     .type = MK_CONF_TIME,
     SERVER(ticket_ms),
     .min = 1000,
     .max = 7 * 86400000,
     .zero_word = "off",
     .default_value = "12h",
     .help = MK_HELP("How long a key issues TLS session tickets. Then a new key replaces it; its tickets are "
                     "accepted for as long again. `off` disables tickets.")},
    {.name = "MaxConnections",
     .type = MK_CONF_NUM,
     SERVER(max_connections),
     .zero_word = "auto",
     .default_value = "auto",
     .help = MK_HELP("Open connections of all workers together; `auto`: as many as descriptors allow.")},
    {.name = "MaxConnectionsPerAddress",
     .type = MK_CONF_NUM,
     SERVER(max_per_address),
     .zero_word = "unlimited",
     .default_value = "unlimited",
     .help = MK_HELP("Open connections per client address (per /64 network in IPv6), counted by each worker. "
                     "Above it: 429, or a reset with `OverCapacity Drop`.")},
    {.name = "OverCapacity",
     .type = MK_CONF_ENUM,
     SERVER(overcapacity),
     .choices = overcapacity_words,
     .default_value = "Resist",
     .help =
         MK_HELP("Connections above MaxConnections: `Drop` closes them, `Resist` lets them wait, `TooBusy` "
                 "answers 503.")},
    {.name = "FDLimit",
     .type = MK_CONF_NUM,
     SERVER(fd_limit),
     .zero_word = "auto",
     .default_value = "auto",
     .help = MK_HELP(
         "File descriptors of a worker; `auto`: the hard limit of the environment, to which the server "
         "raises the soft one. Only root can exceed the hard limit. Programs that a worker starts get the "
         "soft limit of the environment.")},
    {.name = "MaxRequestSize",
     .type = MK_CONF_SIZE,
     SERVER(max_request_size),
     .unit = 1024,
     .zero_word = "unlimited",
     .default_value = "unlimited",
     .help =
         MK_HELP("Maximum bytes of a request's head and body together (413); a bare number counts KB, as in "
                 "Monkey 1.6.")},
    {.name = "MaxHeaderSize",
     .type = MK_CONF_SIZE,
     SERVER(max_head_size),
     .min = 256,
     .max = 60 * 1024,
     .default_value = "16K",
     .help = MK_HELP("Maximum bytes of a request head (431).")},
    {.name = "MaxURISize",
     .type = MK_CONF_SIZE,
     SERVER(max_uri_size),
     .min = 64,
     .max = 59 * 1024,
     .default_value = "8K",
     .help = MK_HELP("Maximum bytes of a request target (414).")},
    {.name = "MaxHeaders",
     .type = MK_CONF_NUM,
     SERVER(max_fields),
     .min = 8,
     .max = MK_HEADERS_MAX,
     .default_value = "100",
     .help = MK_HELP("Maximum number of headers of a request (431).")},
    {.name = "MaxStreams",
     .type = MK_CONF_NUM,
     SERVER(max_streams),
     .min = 1,
     .max = 1000,
     .default_value = "100",
     .help = MK_HELP("Concurrent requests on one HTTP/2 connection; further requests are refused.")},
    {.name = "HTTP2ConnWindow",
     .type = MK_CONF_SIZE,
     SERVER(max_unread_body),
     .min = 128 * 1024,
     .max = 1024 * 1024 * 1024,
     .default_value = "1M",
     .help = MK_HELP(
         "Bytes of request bodies on one HTTP/2 connection that no handler has read yet; at this limit, the "
         "client must wait.")},
    {.name = "HTTP2AbuseBudget",
     .type = MK_CONF_NUM,
     SERVER(abuse_budget),
     .min = 100,
     .max = 1000000,
     .default_value = "1000",
     .help = MK_HELP(
         "Budget of an HTTP/2 connection for abusive or useless frames: a canceled request costs 5; a "
         "PING, a SETTINGS, an empty frame and the like cost 1. A tenth is restored each second; the "
         "connection is closed when the budget is used up.")},
    {.name = "SpoolFolder",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_WRITES,
     SERVER(spool_folder),
     .default_value = "/var/tmp",
     .help = MK_HELP(
         "The folder for request bodies above 64 KB: unlinked files hold a body while it arrives, if a "
         "plugin such as cgi needs all of it first. The workers' user must be able to write to the "
         "folder, and the file system must support O_TMPFILE.")},
    {.name = "SpoolMax",
     .type = MK_CONF_SIZE,
     SERVER(spool_max),
     .zero_word = "unlimited",
     .default_value = "1G",
     .help = MK_HELP(
         "Bytes that one worker keeps in such files (503 above it). One client address may use half of "
         "them.")},
    {.name = "OpenFileCache",
     .type = MK_CONF_BOOL,
     SERVER(fdt),
     .default_value = "on",
     .help = MK_HELP("Keep files open between requests. `off` opens files for each request.")},
    {.name = "OpenFileCacheSize",
     .type = MK_CONF_NUM,
     SERVER(file_cache),
     .max = 1 << 20,
     .default_value = "16384",
     .help = MK_HELP("Files that each worker keeps open, as far as descriptors allow.")},
    {.name = "OpenFileCacheMemory",
     .type = MK_CONF_SIZE,
     SERVER(file_cache_memory),
     .default_value = "1M",
     .help = MK_HELP("Memory of each worker for the content of small files and for prepared heads.")},
    {.name = "OpenFileCacheTTL",
     .type = MK_CONF_TIME,
     SERVER(file_cache_ms),
     .max = 3600000,
     .default_value = "1",
     .help = MK_HELP("How long cached information about a file is trusted before it is checked again.")},
    {.name = "InlineFileMax",
     .type = MK_CONF_SIZE,
     SERVER(small_file),
     .max = 60 * 1024,
     .default_value = "8K",
     .help = MK_HELP("Files up to this size are cached in memory.")},
    {.name = "ErrorLog",
     .type = MK_CONF_TEXT,
     SERVER(error_log),
     .default_value = "stderr",
     .help = MK_HELP("A file, `stderr` or `syslog`.")},
    {.name = "ErrorLogFormat",
     .type = MK_CONF_ENUM,
     SERVER(error_log_format),
     .choices = log_formats,
     .default_value = "text",
     .help = MK_HELP("`text`, or `json` (one object per line, with the fields of messages as members).")},
    {.name = "LogLevel",
     .type = MK_CONF_ENUM,
     SERVER(log_level),
     .choices = level_words,
     .default_value = "info",
     .help = MK_HELP("Least severe messages to log.")},
    REQUEST_KEYS(SERVER, site.request, WITH_DEFAULT),
    SITE_KEYS(SERVER, WITH_DEFAULT),
    {.name = "TransportLayer",
     .flags = MK_CONF_IGNORED,
     .help = MK_HELP("It selected the network plugin of Monkey 1.6.")},
};

const struct mk_conf_table mk_keys_server = {
    .section = "SERVER",
    .keys = server_keys,
    .n = MK_LEN(server_keys),
    .help = MK_HELP("Settings of the server, and defaults for all hosts."),
};

/* ---- [HOST] and its sections ---- */

static const struct mk_conf_key host_keys[] = {
    {.name = "ServerName",
     .type = MK_CONF_WORDS,
     HOST(names),
     .help = MK_HELP(
         "Names of this host, without a port; `*.example.org` matches all names below example.org, and "
         "`~REGEX` all that match a regular expression (PCRE2), case-insensitively. The first "
         "host also gets requests for unknown names, unless another host sets `Default on`.")},
    {.name = "DocumentRoot",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_READS,
     HOST(root),
     .help = MK_HELP("The folder with the files of the host. A relative path starts at the folder of the "
                     "configuration file that contains the key.")},
    {.name = "Listen",
     .type = MK_CONF_CUSTOM,
     HOST(listens),
     .flags = MK_CONF_REPEATABLE,
     .syntax = LISTEN_FORM,
     .parse = parse_listen,
     .show = show_listen,
     .help = MK_HELP(
         "Where this host listens. With it, the host is reachable at these addresses only; hosts without "
         "it are reachable at those of [SERVER]. Hosts may share an address.")},
    {.name = "Alias",
     .type = MK_CONF_CUSTOM,
     HOST(aliases),
     .flags = MK_CONF_REPEATABLE,
     .syntax = "PATH FOLDER, such as `/docs/ /usr/share/doc`",
     .parse = mk_alias_parse,
     .show = mk_alias_show,
     .help = MK_HELP(
         "Serve paths below PATH from this folder instead of the DocumentRoot. The longest matching PATH "
         "counts.")},
    {.name = "Default",
     .type = MK_CONF_BOOL,
     HOST(is_default),
     .default_value = "off",
     .help = MK_HELP("Send requests for unknown names to this host.")},
    {.name = "Redirect",
     .type = MK_CONF_TEXT,
     HOST(redirect),
     .help = MK_HELP(
         "Redirect every request to this URL (301). Path and query are appended to a URL that ends after "
         "its host name.")},
    REQUEST_KEYS(HOST, site.request, NO_DEFAULT),
    SITE_KEYS(HOST, NO_DEFAULT),
};

static const struct mk_conf_table host_table = {
    .section = "HOST",
    .keys = host_keys,
    .n = MK_LEN(host_keys),
    .repeatable = true,
    .help = MK_HELP(
        "A virtual host. The sections after it, up to the next [HOST], belong to it. Its keys override "
        "those of the same name in [SERVER]."),
};

static const struct mk_conf_key location_keys[] = {
    {.name = "Path",
     .type = MK_CONF_WORDS,
     LOCATION(paths),
     .help = MK_HELP(
         "Patterns of paths and regular expressions (`~ REGEX`), as in [ROUTES]. They are compared with "
         "the path "
         "that the client requests, before any rewrite.")},
    REQUEST_KEYS(LOCATION, request, NO_DEFAULT),
};

static const struct mk_conf_table location_table = {
    .section = "LOCATION",
    .keys = location_keys,
    .n = MK_LEN(location_keys),
    .repeatable = true,
    .help =
        MK_HELP("Limits and access logs for some paths of the host above it. Its keys override those of the "
                "same name in the [HOST]. The first [LOCATION] with a `Path` that matches decides."),
};

static void parse_key_value(const struct mk_conf_ctx *ctx)
{
    struct mk_conf_pairs *pairs = ctx->out;
    struct mk_conf_pair one = {.key = ctx->entry->key, .value = ctx->entry->value, .entry = ctx->entry};
    (void)!mk_arena_append(ctx->arena, &pairs->at, &pairs->n, &one,
                           sizeof one); /* the arena records the failure */
}

static bool show_key_value(const void *in, size_t i, struct mk_buf *key, struct mk_buf *value)
{
    const struct mk_conf_pairs *pairs = in;
    if (i >= pairs->n)
        return false;
    mk_buf_add(key, pairs->at[i].key);
    mk_buf_add(value, pairs->at[i].value);
    return true;
}

#define PAIRS_TABLE(name, sect, form, help_text, entry_text)                                                 \
    static const struct mk_conf_table name = {                                                               \
        .section = sect,                                                                                     \
        .repeatable = true,                                                                                  \
        .help = MK_HELP(help_text),                                                                          \
        .entry = parse_key_value,                                                                            \
        .show_entry = show_key_value,                                                                        \
        .entry_syntax = form,                                                                                \
        .entry_help = MK_HELP(entry_text),                                                                   \
    }

PAIRS_TABLE(
    routes_table, "ROUTES", "PATTERN HANDLER [WORDS...], or When [not] SUBJECT VALUE...",
    "Maps paths to handlers. Routes are tried in order, until a handler answers. Without this "
    "section: `/* static`.",
    "In a pattern, `*` matches any sequence of characters and `?` one character; `/dir/*` is the "
    "folder and everything below it. `~ REGEX` is a regular expression (PCRE2), found anywhere in the "
    "path. `When` adds a condition on the request to the next route. Handlers: `static`, `redirect STATUS "
    "URL`, `status STATUS "
    "[TEXT]`, and those of plugins.");
PAIRS_TABLE(error_pages_table, "ERROR_PAGES", "STATUS|4xx|5xx FILE",
            "Files to send instead of the built-in error pages.",
            "A status from 400 to 599 and a file beneath the document root. `4xx` and `5xx` apply to every "
            "status of their class without a line of its own.");
PAIRS_TABLE(cache_table, "CACHE_CONTROL", "PATTERN... DIRECTIVE, ...", "Cache-Control headers of files.",
            "Patterns of paths, then directives of RFC 9111, RFC 8246 and RFC 5861. The first line with a "
            "pattern that matches the path of the file decides.");
PAIRS_TABLE(mime_table, "MIMETYPES", "EXTENSION TYPE", "Media types, in addition to the built-in ones.",
            "The extension without its dot, case-insensitive.");

PAIRS_TABLE(handlers_table, "HANDLERS", "Match REGEX HANDLER [WORDS...]",
            "The routes of Monkey 1.6, tried before [ROUTES]. A pattern is a POSIX extended regular "
            "expression, matched anywhere in the path, case-insensitive.",
            "A missing handler answers 501, so that scripts are never sent as text.");

PAIRS_TABLE(plugins_table, "PLUGINS", "Load NAME|FILE",
            "Plugins to load; `monkey plugins` lists those available.",
            "A name (`Load auth`), or the path of a plugin file.");

const struct mk_conf_table *const mk_keys_tables[MK_SECTIONS] = {
    [MK_SECTION_SERVER] = &mk_keys_server,     [MK_SECTION_HOST] = &host_table,
    [MK_SECTION_ROUTES] = &routes_table,       [MK_SECTION_ERROR_PAGES] = &error_pages_table,
    [MK_SECTION_CACHE_CONTROL] = &cache_table, [MK_SECTION_MIMETYPES] = &mime_table,
    [MK_SECTION_HANDLERS] = &handlers_table,   [MK_SECTION_PLUGINS] = &plugins_table,
    [MK_SECTION_LOCATION] = &location_table,
};
