/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/discovery_lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/mem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "upstream/dns_client.h"
#include "upstream/endpoint.h"

enum { LOOKUP_MS = 10000, FILE_MAX = 64 * 1024 };

static int fail(struct mk_discovery_lookup *l, int error, const char *fmt, ...) MK_API_PRINTF(3, 4);

static int fail(struct mk_discovery_lookup *l, int error, const char *fmt, ...)
{
    struct mk_buf text = mk_buf_fixed(l->message, sizeof l->message - 1);
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&text, fmt, args);
    va_end(args);
    l->message[text.len] = '\0';
    return error;
}

/* ---- The list ---- */

static struct mk_discovered_server *find_found(struct mk_discovered *list, mk_str name)
{
    for (unsigned i = 0; i < list->n; i++)
        if (mk_str_eq(mk_str_from_c(list->of[i].name), name))
            return &list->of[i];
    return NULL;
}

/* A server that is listed twice counts once. */
static void append_found(struct mk_discovered *list, mk_str name, unsigned weight, bool is_backup)
{
    if (find_found(list, name))
        return;
    list->n_listed++;
    if (list->n == MK_LEN(list->of) || name.len >= MK_SERVER_NAME_MAX)
        return;
    struct mk_discovered_server *s = &list->of[list->n++];
    memcpy(s->name, name.p, name.len);
    s->name[name.len] = '\0';
    s->weight = weight;
    s->is_backup = is_backup;
}

/* ---- Files ---- */

static const char *parse_option(mk_str word, struct mk_discovered_server *out)
{
    static const mk_str weight = MK_STR_INIT("weight=");
    uint64_t n;
    if (mk_str_eq(word, MK_STR("backup"))) {
        out->is_backup = true;
        return NULL;
    }
    if (!mk_str_starts(word, weight) || !mk_num_parse(mk_str_skip(word, weight.len), &n) || n < 1 ||
        n > MK_SERVER_WEIGHT_MAX)
        return "`backup`, or `weight=` with a number from 1 to 100";
    out->weight = (unsigned)n;
    return NULL;
}

/* Returns NULL, or a text that describes valid input. */
static const char *parse_server(const struct mk_discovery_source *source, mk_str line,
                                struct mk_discovered *list)
{
    struct mk_discovered_server s = {.weight = 1};
    struct mk_endpoint at;
    mk_str name = mk_str_word(&line), word;
    const char *expected = NULL;
    if (name.len >= MK_SERVER_NAME_MAX || !mk_endpoint_parse(&at, name) || (at.path.p && at.path.p[0] != '/'))
        return "HOST:PORT, [ADDRESS6]:PORT or unix:/path";
    if (!at.path.p && !at.port && !source->port)
        return "a port after the host";
    while (!expected && (word = mk_str_word(&line)).len)
        expected = parse_option(word, &s);
    if (!expected && find_found(list, name))
        expected = "each server once";
    if (!expected)
        append_found(list, name, s.weight, s.is_backup);
    return expected;
}

int mk_discovery_parse_file(struct mk_discovery_lookup *l, mk_str text)
{
    for (unsigned n = 1; text.len; n++) {
        mk_str line = mk_str_trim(mk_str_cut(&text, '\n'));
        const char *expected =
            !line.len || line.p[0] == '#' ? NULL : parse_server(l->source, line, &l->found);
        if (expected) {
            l->found.n = l->found.n_listed = 0;
            return fail(l, -EBADMSG, "line %u: expected %s", n, expected);
        }
    }
    return l->found.n ? 0 : fail(l, -ENOENT, "the file lists no server");
}

static struct mk_file_version version_of(const struct stat *st)
{
    return (struct mk_file_version){.device = st->st_dev,
                                    .inode = st->st_ino,
                                    .size = st->st_size,
                                    .changed_s = st->st_ctim.tv_sec,
                                    .changed_ns = st->st_ctim.tv_nsec};
}

static bool version_is_equal(const struct mk_file_version *a, const struct mk_file_version *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed_s == b->changed_s && a->changed_ns == b->changed_ns;
}

/* Reads the file, unless its version is the same as before. */
static ssize_t read_open_file(struct mk_discovery_lookup *l, int fd, char *buf)
{
    struct stat st;
    size_t n = 0;
    ssize_t more = 1;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    struct mk_file_version now = version_of(&st);
    if (version_is_equal(&now, &l->version))
        return -EALREADY;
    l->version = now;
    while (n < FILE_MAX && (more = read(fd, buf + n, FILE_MAX - n)) > 0)
        n += (size_t)more;
    return more < 0 ? -errno : n == FILE_MAX ? -EFBIG : (ssize_t)n;
}

int mk_discovery_read_file(struct mk_discovery_lookup *l)
{
    int fd = open(l->source->path.p, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char *buf = fd < 0 ? NULL : mk_mem_alloc(FILE_MAX);
    ssize_t n = fd < 0 ? -errno : !buf ? -ENOMEM : read_open_file(l, fd, buf);
    int e = n < 0 ? (int)n : mk_discovery_parse_file(l, mk_str_of(buf, (size_t)n));
    if (n < 0 && n != -EALREADY)
        fail(l, e, "%s", strerror(-e));
    if (fd >= 0)
        close(fd);
    mk_mem_free(buf);
    return e;
}

/* ---- Names ---- */

/* Too large for the stack of a thread. */
struct names {
    struct mk_dns_client client;
    struct mk_dns_answer answer, services;
    size_t services_len;
    unsigned char services_message[MK_DNS_MESSAGE_MAX];
};

static const char *describe_dns_error(int e)
{
    switch (e) {
    case -ENOENT:
        return "the name does not exist";
    case -ETIMEDOUT:
        return "the name servers do not answer";
    case -ECONNREFUSED:
        return "the name servers refuse connections";
    case -EREMOTEIO:
        return "the name servers answer with an error";
    case -EBADMSG:
        return "the answer is malformed";
    case -ELOOP:
        return "the name has too many aliases";
    case -EINVAL:
        return "it is not a valid domain name";
    default:
        return strerror(-e);
    }
}

/* Does this machine have a route to the address? The connection of a datagram socket sends nothing. */
static bool has_route(const struct mk_sockaddr *to)
{
    int fd = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && connect(fd, &to->any, to->len) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

static struct mk_sockaddr sockaddr_of(const struct names *n, enum mk_dns_type type, unsigned i, uint16_t port)
{
    struct mk_sockaddr a = {0};
    const unsigned char *at = n->client.message + n->answer.records[i].at;
    if (type == MK_DNS_A) {
        a.len = sizeof a.v4;
        a.v4.sin_family = AF_INET;
        a.v4.sin_port = htons(port);
        memcpy(&a.v4.sin_addr, at, sizeof a.v4.sin_addr);
    } else {
        a.len = sizeof a.v6;
        a.v6.sin6_family = AF_INET6;
        a.v6.sin6_port = htons(port);
        memcpy(&a.v6.sin6_addr, at, sizeof a.v6.sin6_addr);
    }
    return a;
}

/* Name servers rotate the addresses: sorted, the same ones are dropped when there are too many. */
static void sort_addresses(struct names *n, size_t size)
{
    struct mk_dns_record *r = n->answer.records;
    for (unsigned i = 1; i < n->answer.n; i++)
        for (unsigned k = i;
             k && memcmp(n->client.message + r[k - 1].at, n->client.message + r[k].at, size) > 0; k--) {
            struct mk_dns_record swap = r[k];
            r[k] = r[k - 1];
            r[k - 1] = swap;
        }
}

/* Appends the addresses of one family. */
static int add_addresses(struct mk_discovery_lookup *l, struct names *n, mk_str host, enum mk_dns_type type,
                         const struct mk_discovered_server *like, uint16_t port)
{
    int e = mk_dns_client_query(&n->client, host, type, &n->answer);
    if (e)
        return e;
    sort_addresses(n, type == MK_DNS_A ? 4 : 16);
    for (unsigned i = 0; i < n->answer.n; i++) {
        char text[MK_SOCKADDR_TEXT_MAX];
        struct mk_buf buf = mk_buf_fixed(text, sizeof text);
        struct mk_sockaddr at = sockaddr_of(n, type, i, port);
        if (l->found.n == MK_SERVERS_MAX || !has_route(&at)) {
            l->found.n_listed += l->found.n == MK_SERVERS_MAX;
            continue;
        }
        mk_sockaddr_format(&at, &buf);
        append_found(&l->found, mk_buf_str(&buf), like->weight, like->is_backup);
    }
    if (n->answer.n && n->answer.ttl < l->ttl)
        l->ttl = n->answer.ttl;
    return 0;
}

static int add_family(struct mk_discovery_lookup *l, struct names *n, mk_str host, enum mk_dns_type type,
                      const struct mk_discovered_server *like, uint16_t port)
{
    int e = add_addresses(l, n, host, type, like, port);
    if (e && e != -ENOENT) {
        l->found.is_partial = true;
        l->found.keeps[type == MK_DNS_AAAA] = true;
        (void)fail(l, e, "%s of %.*s: %s", type == MK_DNS_A ? "A" : "AAAA", MK_STR_ARG(host),
                   describe_dns_error(e));
    }
    return e;
}

static int add_host(struct mk_discovery_lookup *l, struct names *n, mk_str host,
                    const struct mk_discovered_server *like, uint16_t port)
{
    int e4 = add_family(l, n, host, MK_DNS_A, like, port);
    int e6 = e4 == -ENOENT || e4 == -ECANCELED ? e4 : add_family(l, n, host, MK_DNS_AAAA, like, port);
    return e4 && e6 ? e4 : 0;
}

static int compare_services(const void *a, const void *b)
{
    const struct mk_dns_record *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->port > y->port) - (x->port < y->port);
}

/* SRV has weights up to 65535: larger ones than ours are scaled down. */
static unsigned scale_weight(unsigned weight, unsigned most)
{
    unsigned scaled = most > MK_SERVER_WEIGHT_MAX ? weight * MK_SERVER_WEIGHT_MAX / most : weight;
    return scaled ? scaled : 1;
}

/* Weights are relative to the others of the same priority (RFC 2782). */
static unsigned largest_weight(const struct names *n, unsigned priority)
{
    unsigned most = 0;
    for (unsigned i = 0; i < n->services.n; i++)
        if (n->services.records[i].priority == priority && n->services.records[i].weight > most)
            most = n->services.records[i].weight;
    return most;
}

static int add_service(struct mk_discovery_lookup *l, struct names *n, unsigned i)
{
    const struct mk_dns_record *r = &n->services.records[i];
    char target[MK_DNS_NAME_MAX];
    const struct mk_discovered_server like = {
        .weight = scale_weight(r->weight, largest_weight(n, r->priority)),
        .is_backup = l->source->is_backup || r->priority != n->services.records[0].priority};
    if (!r->port || !mk_dns_read_name(n->services_message, n->services_len, r->at, target))
        return 0; /* the target `.`: the service is not available */
    return add_host(l, n, mk_str_from_c(target), &like, r->port);
}

/* The servers of the lowest priority value are the primary servers, all others are backups. */
static int look_up_services(struct mk_discovery_lookup *l, struct names *n)
{
    int e = mk_dns_client_query(&n->client, l->source->host, MK_DNS_SRV, &n->services);
    if (e)
        return e;
    memcpy(n->services_message, n->client.message, n->client.len);
    n->services_len = n->client.len;
    qsort(n->services.records, n->services.n, sizeof *n->services.records, compare_services);
    l->ttl = n->services.n ? n->services.ttl : UINT32_MAX;
    for (unsigned i = 0; i < n->services.n && i < MK_SERVERS_MAX; i++) {
        int each = add_service(l, n, i);
        e = each && each != -ENOENT ? each : e; /* a target that does not exist has no servers */
    }
    if (n->services.n > MK_SERVERS_MAX)
        l->found.n_listed += n->services.n - MK_SERVERS_MAX;
    return l->found.n ? 0 : e;
}

static int look_up_name(struct mk_discovery_lookup *l)
{
    const struct mk_upstream *u = l->source->upstream;
    const struct mk_discovered_server like = {.weight = l->source->weight, .is_backup = l->source->is_backup};
    struct names *n = mk_mem_alloc(sizeof *n);
    if (!n)
        return fail(l, -ENOMEM, "out of memory");
    n->client.servers = u->resolvers->of;
    n->client.n_servers = u->resolvers->n;
    n->client.deadline_ms = mk_clock_ms() + LOOKUP_MS;
    n->client.cancel_fd = l->cancel_fd;
    l->ttl = UINT32_MAX;
    int e = l->source->kind == MK_DISCOVER_SRV ? look_up_services(l, n)
                                               : add_host(l, n, l->source->host, &like, l->source->port);
    mk_mem_free(n);
    if (e)
        return fail(l, e, "%s", describe_dns_error(e));
    return l->found.n ? 0 : fail(l, -ENOENT, "the answer is empty");
}

void mk_discovery_lookup_run(struct mk_discovery_lookup *l)
{
    l->error = l->source->kind == MK_DISCOVER_FILE ? mk_discovery_read_file(l) : look_up_name(l);
}
