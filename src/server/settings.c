/* SPDX-License-Identifier: Apache-2.0 */
#include "server/settings.h"

#include "base/log.h"
#include "os/file.h"
#include "proto/service.h"
#include "server/settings_list.h"
#include "server/settings_tls.h"

static const char *const symlink_words[] = {"off", "owner", "on", NULL};
static const char *const overcapacity_words[] = {"Drop", "Resist", "TooBusy", NULL};
static const char *const level_words[] = {"error", "warn", "info", "debug", NULL};
static const char *const access_formats[] = {"combined", "json", "short", NULL}; /* enum mk_access_format */

/* ---- Listen ---- */

/* Sets what a flag means; NULL, or what is wrong with it. HTTP/2 is spoken with whoever asks for it:
 * Monkey 1.8 wanted to be told. */
static const char *take_flag(struct mk_listen *one, mk_str word)
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
        return one->tls ? "is HTTP/2 alone, without TLS; with `tls` it is spoken with whoever asks for it"
                        : NULL;
    }
    if (mk_str_eq_nocase(word, MK_STR("!http")))
        return "is gone: HTTP/1 is spoken on every address";
    return "is not a flag of Listen: expected `tls` or `http2`";
}

const char *mk_settings_take_flags(mk_str *rest, struct mk_listen *one, mk_str *word)
{
    const char *problem = NULL;
    while (!problem && (*word = mk_str_word(rest)).len)
        problem = take_flag(one, *word);
    return problem;
}

/* An address alone gets the port of Port, as in Monkey before 1.6. */
static mk_err parse_listen_addr(struct mk_listen *one)
{
    char room[MK_ADDR_TEXT];
    struct mk_buf with_port = mk_buf_fixed(room, sizeof room);
    mk_err e = mk_addr_parse(one->written, MK_STR("0.0.0.0"), &one->addr);
    if (!e)
        return 0;
    one->takes_port = true;
    mk_buf_addf(&with_port, "%.*s:0", MK_STR_ARG(one->written));
    return with_port.failed ? e : mk_addr_parse(mk_buf_str(&with_port), MK_STR("0.0.0.0"), &one->addr);
}

static bool parse_listen(const struct mk_conf_spot *spot, mk_str value, void *field)
{
    struct mk_listens *list = field;
    mk_str rest = value, word = mk_str_word(&rest);
    struct mk_listen one = {.written = word};
    if (spot->entry)
        one.at = mk_conf_tree_place(spot->entry, word);
    if (parse_listen_addr(&one)) {
        mk_conf_spot_error(spot, word, "`%.*s` is not an address to listen on: expected %s", MK_STR_ARG(word),
                           spot->key->form);
        return false;
    }
    const char *problem = mk_settings_take_flags(&rest, &one, &word);
    if (problem) {
        mk_conf_spot_error(spot, word, "`%.*s` %s", MK_CONF_REPORT_ARG(word), problem);
        return false;
    }
    void *at = list->at;
    if (!mk_settings_list_grow(spot->arena, &at, list->n, &list->cap, sizeof *list->at)) {
        spot->report->no_memory = true;
        return false;
    }
    list->at = at;
    list->at[list->n++] = one;
    return true;
}

static bool show_listen(const void *field, size_t i, struct mk_buf *out)
{
    const struct mk_listens *list = field;
    if (i >= list->n)
        return false;
    mk_addr_print(&list->at[i].addr, out);
    mk_buf_add(out, list->at[i].tls ? MK_STR(" tls") : list->at[i].http2 ? MK_STR(" http2") : MK_STR(""));
    return true;
}

/* ---- [SERVER] ---- */

#define SERVER(member) MK_CONF_AT(struct mk_server_settings, member)
#define HOST(member)   MK_CONF_AT(struct mk_host_settings, member)

/* The keys of struct mk_site_settings, in [SERVER] with defaults and in [HOST] without. */
#define SITE_KEYS(AT, DEF)                                                                                   \
    {.name = "Indexfile",                                                                                    \
     .type = MK_CONF_WORDS,                                                                                  \
     AT(site.index),                                                                                         \
     .def = DEF("index.html index.htm"),                                                                     \
     .help = "Files that stand for their folder, in the order in which they are tried."},                    \
        {.name = "SymLink",                                                                                  \
         .type = MK_CONF_ENUM,                                                                               \
         AT(site.symlink),                                                                                   \
         .choices = symlink_words,                                                                           \
         .def = DEF("off"),                                                                                  \
         .help = "Symbolic links: `off` follows none, `owner` those that lead to something of the same "     \
                 "owner, `on` all, also out of the root."},                                                  \
        {.name = "Resume",                                                                                   \
         .type = MK_CONF_BOOL,                                                                               \
         AT(site.resume),                                                                                    \
         .def = DEF("on"),                                                                                   \
         .help = "Answer requests for ranges of a file (206), so that downloads can be resumed."},           \
        {.name = "Precompressed",                                                                            \
         .type = MK_CONF_BOOL,                                                                               \
         AT(site.precompressed),                                                                             \
         .def = DEF("on"),                                                                                   \
         .help = "Send `page.html.br`, `.zst` or `.gz` in place of `page.html` to clients that accept it. "  \
                 "A neighbour that is older than its file is not used."},                                    \
        {.name = "DotFiles",                                                                                 \
         .type = MK_CONF_BOOL,                                                                               \
         AT(site.dot_files),                                                                                 \
         .def = DEF("off"),                                                                                  \
         .help = "Serve names that begin with a dot. `/.well-known/` is served in any case."},               \
        {.name = "Fallback",                                                                                 \
         .type = MK_CONF_TEXT,                                                                               \
         AT(site.fallback),                                                                                  \
         .help = "The page of a single-page application: sent for paths that lead nowhere, unless they "     \
                 "look like a file."},                                                                       \
        {.name = "UserDir",                                                                                  \
         .type = MK_CONF_TEXT,                                                                               \
         AT(site.user_dir),                                                                                  \
         .help = "Serve this folder in the homes of users as `/~name/`; `off` (the default) serves none. "   \
                 "Users are looked up when the configuration is loaded."},                                   \
        MK_SETTINGS_TLS_KEYS(AT, DEF)
#define WITH_DEFAULT(text) text
#define NO_DEFAULT(text)   NULL

static const struct mk_conf_key server_keys[] = {
    {.name = "Port",
     .type = MK_CONF_NUM,
     SERVER(port),
     .min = 1,
     .max = 65535,
     .def = "2001",
     .flags = MK_CONF_DEPRECATED,
     .help = "The port of every `Listen` that is only an address, as before Monkey 1.6."},
    {.name = "Listen",
     .type = MK_CONF_CUSTOM,
     SERVER(listens),
     .flags = MK_CONF_REPEATABLE,
     .form = "PORT, ADDRESS:PORT, [ADDRESS6]:PORT or unix:/path, and `tls` or `http2`",
     .parse = parse_listen,
     .show = show_listen,
     .help = "Where to listen. A bare port means all IPv4 addresses; `tls` behind it, that all who come "
             "there are to speak it; `http2`, that they speak HTTP/2 without TLS and nothing else (without "
             "it they "
             "may). `2001` if there is none."},
    {.name = "Workers",
     .type = MK_CONF_NUM,
     SERVER(workers),
     .max = 512,
     .zero = "auto",
     .def = "auto",
     .help = "Worker processes; `auto` (or 0) is one for each processor."},
    {.name = "User",
     .type = MK_CONF_TEXT,
     SERVER(user),
     .help = "Workers become this user for good. Only root can do that; others get a warning."},
    {.name = "Group",
     .type = MK_CONF_TEXT,
     SERVER(group),
     .help = "The group of the workers; by default the user's own."},
    {.name = "PidFile",
     .type = MK_CONF_TEXT,
     SERVER(pid_file),
     .help = "Keeps the number of the master process while it runs."},
    {.name = "Sandbox",
     .type = MK_CONF_BOOL,
     SERVER(sandbox),
     .def = "on",
     .help = "Workers may open nothing but the folders they serve (Landlock), where the kernel can do that."},
    {.name = "HideVersion",
     .type = MK_CONF_BOOL,
     SERVER(hide_version),
     .def = "off",
     .help = "Say `Server: Monkey`, without a version."},
    {.name = "DefaultMimeType",
     .type = MK_CONF_TEXT,
     SERVER(default_type),
     .def = "text/plain",
     .help = "The type of a file whose extension is not known."},
    {.name = "KeepAlive",
     .type = MK_CONF_BOOL,
     SERVER(keep_alive),
     .def = "on",
     .help = "Serve several requests on one connection."},
    {.name = "KeepAliveTimeout",
     .type = MK_CONF_TIME,
     SERVER(idle_ms),
     .min = 100,
     .max = 86400000,
     .def = "5",
     .help = "How long a connection may be idle between two requests."},
    {.name = "MaxKeepAliveRequest",
     .type = MK_CONF_NUM,
     SERVER(max_requests),
     .zero = "unlimited",
     .def = "1000",
     .help = "Requests on one connection; then it is closed."},
    {.name = "Timeout",
     .type = MK_CONF_TIME,
     SERVER(head_ms),
     .min = 100,
     .max = 86400000,
     .def = "15",
     .help = "Time for a whole request head to arrive (408). Bytes that trickle in do not extend it."},
    {.name = "HandlerTimeout",
     .type = MK_CONF_TIME,
     SERVER(handler_ms),
     .max = 86400000,
     .zero = "unlimited",
     .def = "60",
     .help = "How long a handler may wait for something of its own (504)."},
    {.name = "TunnelTimeout",
     .type = MK_CONF_TIME,
     SERVER(tunnel_ms),
     .min = 100,
     .max = 86400000,
     .zero = "unlimited",
     .def = "5m",
     .help = "How long a tunnel (WebSocket) may be idle: no byte moves in either direction."},
    {.name = "LingerTimeout",
     .type = MK_CONF_TIME,
     SERVER(linger_ms),
     .min = 100,
     .max = 60000,
     .def = "2",
     .help = "How long to wait for a client to take in a last answer while it is still sending."},
    {.name = "DrainTimeout",
     .type = MK_CONF_TIME,
     SERVER(drain_ms),
     .max = 86400000,
     .zero = "unlimited",
     .def = "60",
     .help = "How long old workers may finish what they have begun after a reload or QUIT."},
    {.name = "TicketLifetime",
     .type = MK_CONF_TIME,
     SERVER(ticket_ms),
     .min = 1000,
     .max = 7 * 86400000,
     .zero = "off",
     .def = "12h",
     .help = "How long a key is used for the tickets with which TLS sessions are continued; then there is a "
             "new one, and the old one is understood for as long again. `off` gives no tickets."},
    {.name = "MinRate",
     .type = MK_CONF_SIZE,
     SERVER(rate_bytes),
     .max = 1 << 30,
     .zero = "off",
     .def = "500",
     .help = "Bytes a second that a client must send of its content, or take of an answer, or be cut off."},
    {.name = "MinRateTime",
     .type = MK_CONF_TIME,
     SERVER(rate_ms),
     .min = 1000,
     .max = 3600000,
     .def = "10",
     .help = "Over how long `MinRate` is measured."},
    {.name = "MaxConnections",
     .type = MK_CONF_NUM,
     SERVER(max_connections),
     .zero = "auto",
     .def = "auto",
     .help = "Open connections of all workers together; `auto`: what descriptors allow."},
    {.name = "MaxConnectionsPerAddress",
     .type = MK_CONF_NUM,
     SERVER(max_per_address),
     .zero = "unlimited",
     .def = "unlimited",
     .help = "Open connections of one client address (of one /64 network in IPv6), counted by each worker."},
    {.name = "OverCapacity",
     .type = MK_CONF_ENUM,
     SERVER(overcapacity),
     .choices = overcapacity_words,
     .def = "Resist",
     .help = "Beyond MaxConnections: `Drop` closes new connections, `Resist` lets them wait, `TooBusy` "
             "answers 503."},
    {.name = "FDLimit",
     .type = MK_CONF_NUM,
     SERVER(fd_limit),
     .zero = "auto",
     .def = "auto",
     .help = "File descriptors of a worker; `auto` is the limit it was started with. Above the hard limit "
             "only for root."},
    {.name = "MaxRequestSize",
     .type = MK_CONF_SIZE,
     SERVER(max_request_size),
     .unit = 1024,
     .zero = "unlimited",
     .def = "unlimited",
     .help = "Head and content of a request together (413); a bare number counts KB, as in Monkey 1.6."},
    {.name = "MaxHeadSize",
     .type = MK_CONF_SIZE,
     SERVER(max_head_size),
     .min = 256,
     .max = 60 * 1024,
     .def = "16K",
     .help = "Bytes of a request head (431)."},
    {.name = "MaxURISize",
     .type = MK_CONF_SIZE,
     SERVER(max_uri_size),
     .min = 64,
     .max = 59 * 1024,
     .def = "8K",
     .help = "Bytes of a request target (414)."},
    {.name = "MaxFields",
     .type = MK_CONF_NUM,
     SERVER(max_fields),
     .min = 8,
     .max = MK_FIELDS_MAX,
     .def = "100",
     .help = "Field lines of a request head (431)."},
    {.name = "MaxStreams",
     .type = MK_CONF_NUM,
     SERVER(max_streams),
     .min = 1,
     .max = 1000,
     .def = "100",
     .help = "Requests at a time on one connection of HTTP/2; those above it are refused."},
    {.name = "Patience",
     .type = MK_CONF_NUM,
     SERVER(patience),
     .min = 100,
     .max = 1000000,
     .def = "1000",
     .help =
         "What a client of HTTP/2 may do that is of no use: a request that it takes back counts 5, a PING, a "
         "SETTINGS, an empty frame and the like 1. A tenth of it comes back each second; when it is used "
         "up the connection ends."},
    {.name = "MaxBodySize",
     .type = MK_CONF_SIZE,
     SERVER(max_body_size),
     .zero = "unlimited",
     .def = "1M",
     .help = "Bytes of the content of a request (413)."},
    {.name = "FDT",
     .type = MK_CONF_BOOL,
     SERVER(fdt),
     .def = "on",
     .help = "Keep files open between requests. `off` opens every file anew."},
    {.name = "FileCache",
     .type = MK_CONF_NUM,
     SERVER(file_cache),
     .max = 1 << 20,
     .def = "1024",
     .help = "Files kept open by each worker."},
    {.name = "FileCacheMemory",
     .type = MK_CONF_SIZE,
     SERVER(file_cache_memory),
     .def = "1M",
     .help = "Memory of each worker for the content of small files."},
    {.name = "FileCacheTime",
     .type = MK_CONF_TIME,
     SERVER(file_cache_ms),
     .max = 3600000,
     .def = "1",
     .help = "How long a file is believed to be what it was before it is looked at again."},
    {.name = "SmallFile",
     .type = MK_CONF_SIZE,
     SERVER(small_file),
     .max = 60 * 1024,
     .def = "8K",
     .help = "Files up to this size are kept in memory."},
    {.name = "AccessLog",
     .type = MK_CONF_TEXT,
     SERVER(access_log),
     .def = "off",
     .help = "A file, `stdout`, `syslog` or `off`. Written in blocks, at the latest after a second."},
    {.name = "AccessLogFormat",
     .type = MK_CONF_ENUM,
     SERVER(access_format),
     .choices = access_formats,
     .def = "combined",
     .help = "`combined` (the Combined Log Format), `json` (an object a line) or `short` (for people)."},
    {.name = "ErrorLog",
     .type = MK_CONF_TEXT,
     SERVER(error_log),
     .def = "stderr",
     .help = "A file, `stderr` or `syslog`."},
    {.name = "LogLevel",
     .type = MK_CONF_ENUM,
     SERVER(log_level),
     .choices = level_words,
     .def = "info",
     .help = "What the error log holds: this and everything more urgent."},
    SITE_KEYS(SERVER, WITH_DEFAULT),
    {.name = "TransportLayer",
     .flags = MK_CONF_IGNORED,
     .help = "Monkey 1.6 chose a network plugin here; there is one way now."},
};

static const struct mk_conf_table server_table = {
    .section = "SERVER",
    .keys = server_keys,
    .n = MK_LEN(server_keys),
    .help = "The server as a whole, and what all its hosts have in common.",
};

/* ---- [HOST] and what belongs to it ---- */

static const struct mk_conf_key host_keys[] = {
    {.name = "ServerName",
     .type = MK_CONF_WORDS,
     HOST(names),
     .help = "Names of this host, without a port; `*.example.org` stands for all names below. The first host "
             "gets what no other claims, unless another says `Default on`."},
    {.name = "DocumentRoot",
     .type = MK_CONF_TEXT,
     HOST(root),
     .help = "The folder with its files, seen from the folder of the file that says so."},
    {.name = "Default",
     .type = MK_CONF_BOOL,
     HOST(is_default),
     .def = "off",
     .help = "This host gets the requests for names that no host has."},
    {.name = "Redirect",
     .type = MK_CONF_TEXT,
     HOST(redirect),
     .help =
         "Send every request to this URL (301). Path and query are appended to a URL that ends at its host."},
    SITE_KEYS(HOST, NO_DEFAULT),
};

static const struct mk_conf_table host_table = {
    .section = "HOST",
    .keys = host_keys,
    .n = MK_LEN(host_keys),
    .repeatable = true,
    .help = "A virtual host. The sections below it, up to the next [HOST], belong to it. Keys that [SERVER] "
            "has too "
            "change it for this host.",
};

static void take_pair(const struct mk_conf_spot *spot)
{
    struct mk_pairs *pairs = spot->out;
    void *at = pairs->at;
    if (!mk_settings_list_grow(spot->arena, &at, pairs->n, &pairs->cap, sizeof *pairs->at)) {
        spot->report->no_memory = true;
        return;
    }
    pairs->at = at;
    pairs->at[pairs->n++] =
        (struct mk_pair){.key = spot->entry->key, .value = spot->entry->value, .entry = spot->entry};
}

static bool show_pair(const void *in, size_t i, struct mk_buf *key, struct mk_buf *value)
{
    const struct mk_pairs *pairs = in;
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
        .help = help_text,                                                                                   \
        .entry = take_pair,                                                                                  \
        .show_entry = show_pair,                                                                             \
        .entry_form = form,                                                                                  \
        .entry_help = entry_text,                                                                            \
    }

PAIRS_TABLE(routes_table, "ROUTES", "PATTERN HANDLER [WORDS...]",
            "Who answers which path, in order; the first that matches and does not pass decides. Without "
            "this section: "
            "`/* static`.",
            "`*` in a pattern stands for any run of characters, `?` for one; `/dir/*` is the folder and all "
            "below it. "
            "Handlers: `static`, `redirect STATUS URL`, `status STATUS`, and those of plugins.");
PAIRS_TABLE(error_pages_table, "ERROR_PAGES", "STATUS FILE",
            "Files that are sent instead of the built-in error pages.",
            "A status from 400 to 599 and a file beneath the document root.");
PAIRS_TABLE(cache_table, "CACHE_CONTROL", "PATTERN VALUE", "The Cache-Control field of files.",
            "The first pattern that matches the path of the file decides.");
PAIRS_TABLE(mime_table, "MIMETYPES", "EXTENSION TYPE", "Media types, over the built-in ones.",
            "The extension without its dot, in any case of letters.");

PAIRS_TABLE(
    handlers_table, "HANDLERS", "Match REGEX HANDLER [WORDS...]",
    "The routes of Monkey 1.6. A pattern is a POSIX extended regular expression, found anywhere in the path, "
    "in any "
    "case of letters. Tried before [ROUTES].",
    "A handler that is not there answers 501, so that no script is sent as text.");

PAIRS_TABLE(plugins_table, "PLUGINS", "Load NAME|FILE",
            "The plugins of the server; `monkey plugins` lists those that are there.",
            "A name (`Load auth`), or the file of a plugin that did not come with the server.");

const struct mk_conf_table *const mk_settings_tables[MK_SECTIONS] = {
    [MK_SECTION_SERVER] = &server_table,       [MK_SECTION_HOST] = &host_table,
    [MK_SECTION_ROUTES] = &routes_table,       [MK_SECTION_ERROR_PAGES] = &error_pages_table,
    [MK_SECTION_CACHE_CONTROL] = &cache_table, [MK_SECTION_MIMETYPES] = &mime_table,
    [MK_SECTION_HANDLERS] = &handlers_table,   [MK_SECTION_PLUGINS] = &plugins_table,
};
