/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/upstream_settings.h"

#include <monkey/plugin.h>
#include <stdlib.h>

#include "upstream/endpoint.h"

#define AT(member) MK_CONF_AT(struct mk_upstream_settings, member)

static const char server_form[] =
    "ADDRESS:PORT, HOST:PORT or unix:/path, then [weight=NUMBER] [backup] [resolve]";

static bool parse_server_option(const struct mk_conf_ctx *ctx, struct mk_upstream_server_line *line,
                                mk_str word)
{
    mk_str prefix = MK_STR("weight=");
    uint64_t n;
    if (mk_str_eq(word, MK_STR("backup"))) {
        line->backup = true;
        return true;
    }
    if (mk_str_eq(word, MK_STR("resolve"))) {
        line->resolves = true;
        return true;
    }
    if (!mk_str_starts(word, prefix) || !mk_num_parse(mk_str_skip(word, prefix.len), &n) || n < 1 ||
        n > MK_SERVER_WEIGHT_MAX) {
        mk_conf_ctx_error(ctx, word, "expected `backup`, `resolve` or `weight=` with a number from 1 to %d",
                          MK_SERVER_WEIGHT_MAX);
        return false;
    }
    line->weight = (unsigned)n;
    return true;
}

static bool check_server_address(const struct mk_conf_ctx *ctx, mk_str address)
{
    struct mk_endpoint ignored;
    if (mk_endpoint_parse(&ignored, address))
        return true;
    mk_conf_ctx_error(ctx, address,
                      "`%.*s` is not a server: expected HOST:PORT, [ADDRESS6]:PORT or unix:/path",
                      MK_STR_ARG(mk_str_first(address, 80)));
    if (mk_str_starts(address, MK_STR("http://")) || mk_str_starts(address, MK_STR("https://")))
        mk_conf_ctx_hint(ctx, "write it without http:// or https://; the key TLS is for the latter");
    return false;
}

static bool parse_server_line(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct mk_upstream_server_line **end = field, *line = mk_conf_ctx_alloc(ctx, sizeof *line);
    mk_str word;
    if (!line || !mk_conf_ctx_word(ctx, &value, &line->address))
        return false;
    while (*end)
        end = &(*end)->next;
    *end = line; /* kept even if invalid: an additional "no server" error would be misleading */
    line->weight = 1;
    if (!check_server_address(ctx, line->address))
        return false;
    for (;;) {
        if (!mk_conf_ctx_word(ctx, &value, &word))
            return false;
        if (!word.p)
            break;
        if (!parse_server_option(ctx, line, word))
            return false;
    }
    if (line->resolves)
        MK_CONTAINER(field, struct mk_upstream_settings, servers)->n_resolved++;
    return true;
}

static bool format_server(const void *field, size_t i, struct mk_buf *out)
{
    struct mk_upstream_server_line *const *first = field;
    const struct mk_upstream_server_line *line = *first;
    for (; line && i; i--)
        line = line->next;
    if (!line)
        return false;
    mk_buf_add(out, line->address);
    if (line->weight != 1)
        mk_buf_addf(out, " weight=%u", line->weight);
    if (line->backup)
        mk_buf_add(out, MK_STR(" backup"));
    if (line->resolves)
        mk_buf_add(out, MK_STR(" resolve"));
    return true;
}

/* Parses a number, or `auto` (MK_SETTING_UNSET). */
static bool parse_number_or_auto(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    uint32_t *out = field;
    uint64_t n;
    (void)ctx;
    if (mk_str_eq(value, MK_STR("auto"))) {
        *out = MK_SETTING_UNSET;
        return true;
    }
    if (!mk_num_parse(value, &n) || n > MK_CONN_LIMIT_MAX)
        return false;
    *out = (uint32_t)n;
    return true;
}

static bool format_number_or_auto(const void *field, size_t i, struct mk_buf *out)
{
    const uint32_t *n = field;
    if (i)
        return false;
    if (*n == MK_SETTING_UNSET)
        mk_buf_add(out, MK_STR("auto"));
    else
        mk_buf_add_num(out, *n);
    return true;
}

static bool parse_status_range(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct mk_health_check_status *out = field;
    mk_str to = value, from = mk_str_cut(&to, '-');
    uint64_t low, high;
    (void)ctx;
    if (!mk_num_parse(from, &low) || !mk_num_parse(to.p ? to : from, &high) || low < 100 || high > 599 ||
        low > high)
        return false;
    *out = (struct mk_health_check_status){(uint16_t)low, (uint16_t)high};
    return true;
}

static bool format_status_range(const void *field, size_t i, struct mk_buf *out)
{
    const struct mk_health_check_status *s = field;
    if (i)
        return false;
    mk_buf_addf(out, "%u-%u", s->from, s->to);
    return true;
}

static bool parse_health_header(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct mk_health_header **end = field, *header = mk_conf_ctx_alloc(ctx, sizeof *header);
    mk_str content = value, name = mk_str_cut(&content, ':');
    if (!header)
        return false;
    content = mk_str_trim(content);
    if (!content.p || !mk_is_token(name) || !mk_is_header_value(content))
        return false;
    if (mk_str_eq_nocase(name, MK_STR("Host")) || mk_str_eq_nocase(name, MK_STR("Connection")) ||
        mk_str_eq_nocase(name, MK_STR("Content-Length")) ||
        mk_str_eq_nocase(name, MK_STR("Transfer-Encoding"))) {
        mk_conf_ctx_error(ctx, value, "checks set `%.*s` themselves%s", MK_STR_ARG(name),
                          mk_str_eq_nocase(name, MK_STR("Host")) ? ": see HealthHost" : "");
        return false;
    }
    while (*end)
        end = &(*end)->next;
    header->text = value;
    *end = header;
    return true;
}

static bool format_health_header(const void *field, size_t i, struct mk_buf *out)
{
    struct mk_health_header *const *first = field;
    const struct mk_health_header *header = *first;
    for (; header && i; i--)
        header = header->next;
    if (header)
        mk_buf_add(out, header->text);
    return header;
}

static const char *const health_tls[] = {"auto", "on", "off", NULL};
static const char *const balances[] = {"round_robin", "least_conn", "hash", NULL};

static const struct mk_conf_key keys[] = {
    {.name = "Name",
     .type = MK_CONF_TEXT,
     AT(name),
     .help = MK_HELP("The name that routes use: `proxy http://NAME`.")},
    {.name = "Server",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     AT(servers),
     .syntax = server_form,
     .parse = parse_server_line,
     .show = format_server,
     .help = MK_HELP(
         "A server, with its share of the requests. A `backup` serves only while no other server does. With "
         "`resolve`, each address of the name is a server, or each record of a name such as "
         "`_http._tcp.example.org` (DNS SRV); the name is resolved again when its TTL ends.")},
    {.name = "ServersFile",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_READS,
     AT(servers_file),
     .help = MK_HELP(
         "A file that lists further servers, one per line, with the options `weight=` and `backup` of "
         "`Server`. Monkey watches the file, and applies its changes without a reload.")},
    {.name = "Resolver",
     .type = MK_CONF_WORDS,
     AT(resolvers),
     .help =
         MK_HELP("The name servers for names with `resolve`: up to 4 addresses, with a port other than 53 if "
                 "needed. Without it, those of `/etc/resolv.conf`.")},
    {.name = "MaxServers",
     .type = MK_CONF_NUM,
     AT(max_servers),
     .default_value = "0",
     .max = MK_SERVERS_MAX,
     .zero_word = "off",
     .help = MK_HELP(
         "The room for servers, those of `Server` included: `monkey shell upstream NAME add` fills "
         "it. `off`: no servers can be added. With `resolve` or `ServersFile`, the default is room for 16 "
         "servers more than the configuration contains.")},
    {.name = "StateFile",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_WRITES,
     AT(state_file),
     .help =
         MK_HELP("The file of the changes that `monkey shell upstream` saves with `--save`. It is read after "
                 "the configuration, at each start and reload. The user of the workers must be able to "
                 "write to its folder.")},
    {.name = "Balance",
     .type = MK_CONF_ENUM,
     AT(balance),
     .choices = balances,
     .default_value = "round_robin",
     .help = MK_HELP(
         "Which server gets the next request: `round_robin`, each in turn, by weight; `least_conn`, the "
         "one with the fewest connections in use; `hash`, the one selected by a hash of the value that the "
         "route names.")},
    {.name = "MaxConnections",
     .type = MK_CONF_CUSTOM,
     AT(max),
     .syntax = "a number up to 1024, or `auto`",
     .parse = parse_number_or_auto,
     .show = format_number_or_auto,
     .default_value = "auto",
     .help = MK_HELP(
         "Connections to each server, of all workers together; 0 is no limit. `auto` is what the handler "
         "prefers. Other requests queue. For PHP, set it to `pm.max_children`.")},
    {.name = "MaxConnectionsPerAddress",
     .type = MK_CONF_CUSTOM,
     AT(max_client),
     .syntax = "a number up to 1024, or `auto`",
     .parse = parse_number_or_auto,
     .show = format_number_or_auto,
     .default_value = "auto",
     .help = MK_HELP(
         "How many of these connections the requests of one client address, or IPv6 /64 network, may use at "
         "the same time; 0 is no limit. `auto` is half of `MaxConnections`. Further requests of that client "
         "wait, and requests of others pass them; one client may have half of `MaxQueue`. Behind a proxy, "
         "let its clients count, with `TrustedProxy` and `RealAddress` of [SECURITY], or set this to 0.")},
    {.name = "KeepAliveConnections",
     .type = MK_CONF_CUSTOM,
     AT(keep),
     .syntax = "a number up to 1024, or `auto`",
     .parse = parse_number_or_auto,
     .show = format_number_or_auto,
     .default_value = "auto",
     .help =
         MK_HELP("Idle connections to each server that one worker keeps for the next requests; 0 keeps none. "
                 "`auto` is what the handler prefers: 128 for `proxy`.")},
    {.name = "KeepAliveTimeout",
     .type = MK_CONF_TIME,
     AT(idle_ms),
     .default_value = "60s",
     .min = 1,
     .help = MK_HELP("How long an idle connection is kept. Choose less than the server does.")},
    {.name = "ConnectTimeout",
     .type = MK_CONF_TIME,
     AT(connect_ms),
     .default_value = "5s",
     .min = 1,
     .help =
         MK_HELP("How long connecting may take, the TLS handshake included; then the next server is tried.")},
    {.name = "QueueTimeout",
     .type = MK_CONF_TIME,
     AT(queue_ms),
     .default_value = "30s",
     .min = 1,
     .help = MK_HELP("How long a request may wait for a connection; then the client gets a 503.")},
    {.name = "MaxQueue",
     .type = MK_CONF_NUM,
     AT(queue_max),
     .default_value = "1000",
     .help = MK_HELP("Requests of one worker that may wait for a connection; more get a 503.")},
    {.name = "MaxFails",
     .type = MK_CONF_NUM,
     AT(max_fails),
     .default_value = "3",
     .zero_word = "off",
     .help = MK_HELP("Failures in a row after which a server is down for `HoldDown`.")},
    {.name = "HoldDown",
     .type = MK_CONF_TIME,
     AT(fail_ms),
     .default_value = "10s",
     .min = 1,
     .help =
         MK_HELP("How long a server that failed gets no requests. If all servers are down, all are tried.")},
    {.name = "OutlierErrors",
     .type = MK_CONF_NUM,
     AT(outlier_percent),
     .default_value = "0",
     .max = 100,
     .zero_word = "off",
     .help = MK_HELP(
         "The percentage of errors at which a server is ejected: it gets no requests for a while. Errors "
         "are responses with a status of 500 or above, timeouts and failed connections.")},
    {.name = "OutlierRequests",
     .type = MK_CONF_NUM,
     AT(outlier_requests),
     .default_value = "50",
     .min = 1,
     .help = MK_HELP("The number of requests in an `OutlierInterval` below which no server is ejected.")},
    {.name = "OutlierInterval",
     .type = MK_CONF_TIME,
     AT(outlier_ms),
     .default_value = "10s",
     .min = 100,
     .help = MK_HELP("The time over which `OutlierErrors` counts.")},
    {.name = "OutlierTime",
     .type = MK_CONF_TIME,
     AT(outlier_eject_ms),
     .default_value = "30s",
     .min = 100,
     .help =
         MK_HELP("How long a server is ejected. If it is ejected again soon after its return, twice as long, "
                 "then three times, up to ten times.")},
    {.name = "OutlierMax",
     .type = MK_CONF_NUM,
     AT(outlier_max_percent),
     .default_value = "50",
     .min = 1,
     .max = 100,
     .help = MK_HELP("The percentage of the servers that may be ejected at the same time.")},
    {.name = "SlowStart",
     .type = MK_CONF_TIME,
     AT(slow_ms),
     .default_value = "0",
     .zero_word = "off",
     .help = MK_HELP("How long a server that is up again gets a growing share of the requests.")},
    {.name = "HealthCheck",
     .type = MK_CONF_TEXT,
     AT(check),
     .help = MK_HELP(
         "A path that each server answers with a status below 400 while it is healthy, or `connect`: it "
         "accepts connections. A server that fails the check is down.")},
    {.name = "HealthInterval",
     .type = MK_CONF_TIME,
     AT(check_ms),
     .default_value = "5s",
     .min = 100,
     .help = MK_HELP(
         "The time between two checks. A server whose last check failed is checked again after a second at "
         "the latest.")},
    {.name = "HealthTimeout",
     .type = MK_CONF_TIME,
     AT(check_timeout_ms),
     .default_value = "0",
     .zero_word = "auto",
     .help = MK_HELP("How long a check may take; `auto` is `HealthInterval`.")},
    {.name = "HealthFall",
     .type = MK_CONF_NUM,
     AT(check_fall),
     .default_value = "2",
     .min = 1,
     .max = 100,
     .help = MK_HELP("Checks that fail in a row until a server is down.")},
    {.name = "HealthRise",
     .type = MK_CONF_NUM,
     AT(check_rise),
     .default_value = "1",
     .min = 1,
     .max = 100,
     .help = MK_HELP("Checks that pass in a row until a server is up again.")},
    {.name = "HealthHost",
     .type = MK_CONF_TEXT,
     AT(check_host),
     .help = MK_HELP("The `Host` field of checks; without it, the server's name and port.")},
    {.name = "HealthMethod",
     .type = MK_CONF_TEXT,
     AT(check_method),
     .default_value = "GET",
     .help = MK_HELP("The method of checks: `GET`, `HEAD`, `OPTIONS`, or `POST` without content.")},
    {.name = "HealthHeader",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_REPEATABLE,
     AT(check_headers),
     .syntax = "NAME: VALUE",
     .parse = parse_health_header,
     .show = format_health_header,
     .help = MK_HELP("A header of checks, such as `Authorization: Bearer TOKEN`.")},
    {.name = "HealthText",
     .type = MK_CONF_TEXT,
     AT(check_text),
     .help =
         MK_HELP("A text that the first 64 KB of a healthy server's response contain, besides its status.")},
    {.name = "HealthPort",
     .type = MK_CONF_NUM,
     AT(check_port),
     .default_value = "0",
     .max = 65535,
     .zero_word = "auto",
     .help = MK_HELP("The port for checks; `auto` is the port of the server.")},
    {.name = "HealthTLS",
     .type = MK_CONF_ENUM,
     AT(check_tls),
     .choices = health_tls,
     .default_value = "auto",
     .help = MK_HELP("Whether checks use TLS, with the keys `TLS...`; `auto` is like requests.")},
    {.name = "HealthStatus",
     .type = MK_CONF_CUSTOM,
     AT(check_status),
     .syntax = "a status such as `204`, or a range such as `200-299`",
     .parse = parse_status_range,
     .show = format_status_range,
     .default_value = "200-399",
     .help = MK_HELP("The status that a healthy server answers with.")},
    {.name = "ResolveTTL",
     .type = MK_CONF_TIME,
     AT(resolve_ms),
     .default_value = "auto",
     .zero_word = "auto",
     .min = 1000,
     .help =
         MK_HELP("How long the addresses of a host name are used before it is resolved again. `auto` is 30 "
                 "seconds; for a name with `resolve`, the TTL of the answer.")},
    {.name = "RetryBudget",
     .type = MK_CONF_NUM,
     AT(retry_percent),
     .default_value = "20",
     .max = 100,
     .zero_word = "off",
     .help = MK_HELP("Percentage of requests that may be tried again at another server. It keeps "
                     "a failing group of servers from getting several times its load.")},
    {.name = "KeyFile",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_READS,
     AT(key_file),
     .help = MK_HELP(
         "A file with a secret of at least 32 characters, from which the cookies of `sticky=` are made. "
         "Give it "
         "to all machines that share a group of servers. Without it, each server has a secret of its "
         "own, which "
         "stays over reloads and upgrades.")},
    {.name = "TLS",
     .type = MK_CONF_BOOL,
     AT(tls),
     .default_value = "off",
     .help = MK_HELP("The servers speak TLS.")},
    {.name = "TLSVerify",
     .type = MK_CONF_BOOL,
     AT(tls_verify),
     .default_value = "on",
     .help = MK_HELP("Verify the certificates of the servers, and their names. `off` is for tests.")},
    {.name = "TLSAuthority",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_READS,
     AT(tls_authority),
     .help = MK_HELP("A PEM file with the authorities to trust; without it, those of the system.")},
    {.name = "TLSCertificate",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_READS,
     AT(tls_certificate),
     .help = MK_HELP("A PEM file with the certificate to present, followed by its chain.")},
    {.name = "TLSKey",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_READS,
     AT(tls_key),
     .help = MK_HELP("Its key; without it, the key is in the same file.")},
    {.name = "TLSName",
     .type = MK_CONF_TEXT,
     AT(tls_name),
     .help = MK_HELP("The name to send (SNI) and to verify; without it, the host of `Server`.")},
};

const struct mk_conf_table mk_upstream_settings_table = {
    .section = "UPSTREAM",
    .keys = keys,
    .n = MK_LEN(keys),
    .repeatable = true,
    .help = MK_HELP("A group of interchangeable backend servers."),
    .size = sizeof(struct mk_upstream_settings),
    .scope = MK_CONF_SERVER,
};

/* ---- By name ---- */

struct mk_upstream_settings_row {
    const struct mk_upstream_settings *settings;
    size_t place; /* position in the configuration: the first of two with the same Name wins */
};

static int compare_by_name(const void *a, const void *b)
{
    const struct mk_upstream_settings_row *x = a, *y = b;
    int order = mk_str_cmp(x->settings->name, y->settings->name);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

bool mk_upstream_settings_index_init(struct mk_upstream_settings_index *out, struct mk_config *config)
{
    const struct mk_upstream_settings *s = NULL;
    *out = (struct mk_upstream_settings_index){0};
    while ((s = mk_config_section(config, &mk_upstream_settings_table, s)))
        out->n++;
    struct mk_upstream_settings_row *rows = mk_config_alloc(config, (out->n + 1) * sizeof *rows);
    for (size_t i = 0; rows && (s = mk_config_section(config, &mk_upstream_settings_table, s)); i++)
        rows[i] = (struct mk_upstream_settings_row){.settings = s, .place = i};
    if (rows)
        qsort(rows, out->n, sizeof *rows, compare_by_name);
    out->rows = rows;
    return rows;
}

const struct mk_upstream_settings *mk_upstream_settings_find(const struct mk_upstream_settings_index *index,
                                                             mk_str name)
{
    size_t low = 0, high = index->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mk_str_cmp(index->rows[middle].settings->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < index->n && mk_str_eq(index->rows[low].settings->name, name);
    return found ? index->rows[low].settings : NULL;
}
