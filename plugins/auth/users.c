/* SPDX-License-Identifier: Apache-2.0 */
#include "users.h"

#include "credentials.h"
#include "verify.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/mem.h>
#include <monkey/text.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 64 << 20, FAULTS_MAX = 20 };

struct users_parser {
    struct mk_config *config;
    const void *section;
    struct auth_users *users;
    unsigned line, faults, weak;
};

static void report_line_error(struct users_parser *r, unsigned line, const char *what)
{
    if (r->faults++ < FAULTS_MAX)
        mk_config_error(r->config, r->section, "UserFile", "%.*s:%u: %s", MK_STR_ARG(r->users->path), line,
                        what);
}

/* Reads the file into the configuration's arena; entries point into it. Returns false after reporting an
 * error. */
static bool read_whole_file(struct users_parser *r, int fd, size_t size, mk_str *text)
{
    char *p = mk_config_alloc(r->config, size + 1);
    size_t len = 0;
    ssize_t n = 1;
    while (p && len < size && (n = read(fd, p + len, size - len)) > 0)
        len += (size_t)n;
    if (p && n < 0)
        mk_config_error(r->config, r->section, "UserFile", "cannot read %.*s: %s", MK_STR_ARG(r->users->path),
                        strerror(errno));
    *text = mk_str_of(p, len);
    return p && n >= 0;
}

static bool check_file_stat(struct users_parser *r, int fd, size_t *size)
{
    struct stat st;
    const char *fault = NULL;
    if (fstat(fd, &st) != 0)
        fault = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        fault = "it is not a regular file";
    else if (st.st_size > FILE_MAX)
        fault = "it is larger than 64 MB";
    if (fault) {
        mk_config_error(r->config, r->section, "UserFile", "cannot read %.*s: %s", MK_STR_ARG(r->users->path),
                        fault);
        return false;
    }
    if (st.st_mode & S_IROTH) {
        mk_config_warn(r->config, r->section, "UserFile", "every user of this machine can read %.*s",
                       MK_STR_ARG(r->users->path));
        mk_config_hint(r->config, "chmod o-r %.*s", MK_STR_ARG(r->users->path));
    }
    *size = (size_t)st.st_size;
    return true;
}

static bool load_file_text(struct users_parser *r, mk_str *text)
{
    size_t size = 0;
    int fd = open(r->users->path.p, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        mk_config_error(r->config, r->section, "UserFile", "cannot open %.*s: %s", MK_STR_ARG(r->users->path),
                        strerror(errno));
        if (errno == ENOENT)
            mk_config_hint(r->config, "`monkey passwd -c %.*s NAME` creates it", MK_STR_ARG(r->users->path));
        return false;
    }
    bool good = check_file_stat(r, fd, &size) && read_whole_file(r, fd, size, text);
    close(fd);
    return good;
}

static mk_str next_line(mk_str *text)
{
    mk_str line = mk_str_cut(text, '\n');
    if (line.len && line.p[line.len - 1] == '\r')
        line.len--;
    return mk_str_trim(line);
}

static const char *parse_digest_entry(struct users_parser *r, mk_str name, mk_str realm, mk_str hex)
{
    struct auth_digest_user *d = &r->users->digest[r->users->n_digest];
    enum auth_hash kind = hex.len == 2 * auth_hash_len(AUTH_MD5) ? AUTH_MD5 : AUTH_SHA256;
    if (realm.len == 0)
        return "the realm is empty: expected name:realm:hash";
    if (!auth_hex_decode(hex, d->ha1, auth_hash_len(kind)))
        return "invalid hash after the realm: expected 64 (SHA-256) or 32 (MD5) hexadecimal digits";
    d->name = name;
    d->realm = realm;
    d->kind = kind;
    d->line = r->line;
    r->users->n_digest++;
    return NULL;
}

/* Returns an error or NULL. An error never quotes the line, which may be a password. */
static const char *parse_user_line(struct users_parser *r, mk_str line)
{
    mk_str rest = line, realm;
    mk_str name = mk_str_cut(&rest, ':');
    if (!rest.p || rest.len == 0)
        return "expected name:hash or name:realm:hash";
    if (name.len == 0 || name.len > AUTH_NAME_MAX)
        return "a name has 1 to 255 bytes";
    if (!auth_has_no_controls(line))
        return "control characters are not allowed";
    if (mk_str_find(rest, ':') != MK_STR_NONE) {
        realm = mk_str_cut(&rest, ':');
        return parse_digest_entry(r, name, realm, rest);
    }
    const char *fault = auth_hash_error(rest);
    if (fault)
        return fault;
    r->weak += auth_hash_is_fast(rest);
    r->users->basic[r->users->n_basic++] = (struct auth_user){name, rest, r->line};
    return NULL;
}

static void parse_user_lines(struct users_parser *r, mk_str text)
{
    while (text.p) {
        mk_str line = next_line(&text);
        r->line++;
        if (line.len == 0 || line.p[0] == '#')
            continue;
        const char *fault = parse_user_line(r, line);
        if (fault)
            report_line_error(r, r->line, fault);
    }
    if (r->weak)
        mk_config_warn(
            r->config, r->section, "UserFile",
            "%.*s: %u %s {SHA1}, which offers no protection if the file is stolen: set these passwords again",
            MK_STR_ARG(r->users->path), r->weak,
            r->weak == 1 ? "password is hashed with" : "passwords are hashed with");
}

static int compare_user_names(const void *a, const void *b)
{
    return mk_str_cmp(((const struct auth_user *)a)->name, ((const struct auth_user *)b)->name);
}

static int compare_digest_users(const void *a, const void *b)
{
    const struct auth_digest_user *x = a, *y = b;
    int c = mk_str_cmp(x->realm, y->realm);
    if (c == 0)
        c = (int)x->kind - (int)y->kind;
    return c ? c : mk_str_cmp(x->name, y->name);
}

static void report_duplicate(struct users_parser *r, mk_str name, unsigned a, unsigned b)
{
    char buf[AUTH_NAME_MAX + 64];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf - 1);
    mk_buf_addf(&text, "%.*s is already on line %u", MK_STR_ARG(name), a < b ? a : b);
    buf[text.len] = '\0';
    report_line_error(r, a < b ? b : a, buf);
}

static void report_duplicates(struct users_parser *r)
{
    const struct auth_users *u = r->users;
    for (size_t i = 1; i < u->n_basic; i++)
        if (compare_user_names(&u->basic[i - 1], &u->basic[i]) == 0)
            report_duplicate(r, u->basic[i].name, u->basic[i - 1].line, u->basic[i].line);
    for (size_t i = 1; i < u->n_digest; i++)
        if (compare_digest_users(&u->digest[i - 1], &u->digest[i]) == 0)
            report_duplicate(r, u->digest[i].name, u->digest[i - 1].line, u->digest[i].line);
}

static bool alloc_entries(struct users_parser *r, mk_str text)
{
    size_t n_basic = 1, n_digest = 1;
    while (text.p) {
        mk_str rest = mk_str_cut(&text, '\n');
        mk_str_cut(&rest, ':');
        if (mk_str_find(rest, ':') == MK_STR_NONE)
            n_basic++;
        else
            n_digest++;
    }
    r->users->basic = mk_config_alloc(r->config, n_basic * sizeof *r->users->basic);
    r->users->digest = mk_config_alloc(r->config, n_digest * sizeof *r->users->digest);
    return r->users->basic && r->users->digest;
}

struct auth_users *auth_users_load(struct mk_config *c, const void *section, mk_str path)
{
    mk_str text;
    struct auth_users *u = mk_config_alloc(c, sizeof *u);
    if (!u)
        return NULL;
    struct users_parser r = {.config = c, .section = section, .users = u};
    u->path = path;
    if (!load_file_text(&r, &text))
        return u;
    if (!alloc_entries(&r, text))
        return NULL;
    parse_user_lines(&r, text);
    qsort(u->basic, u->n_basic, sizeof *u->basic, compare_user_names);
    qsort(u->digest, u->n_digest, sizeof *u->digest, compare_digest_users);
    report_duplicates(&r);
    if (r.faults > FAULTS_MAX)
        mk_config_error(c, section, "UserFile", "%.*s: %u more invalid lines", MK_STR_ARG(path),
                        r.faults - FAULTS_MAX);
    return u;
}

const struct auth_user *auth_users_find(const struct auth_users *u, mk_str name)
{
    struct auth_user key = {.name = name};
    return u->n_basic ? bsearch(&key, u->basic, u->n_basic, sizeof key, compare_user_names) : NULL;
}

const struct auth_user *auth_users_find_decoy(const struct auth_users *u, const uint8_t key[AUTH_KEY_LEN],
                                              mk_str name)
{
    uint8_t mac[AUTH_MAC_LEN];
    uint64_t number;
    mk_str parts[] = {MK_STR("stand-in"), name};
    auth_hash_mac(key, parts, 2, mac);
    memcpy(&number, mac, sizeof number);
    return u->n_basic ? &u->basic[number % u->n_basic] : NULL;
}

const struct auth_digest_user *auth_users_find_digest(const struct auth_users *u, mk_str name, mk_str realm,
                                                      enum auth_hash kind)
{
    struct auth_digest_user key = {.name = name, .realm = realm, .kind = kind};
    return u->n_digest ? bsearch(&key, u->digest, u->n_digest, sizeof key, compare_digest_users) : NULL;
}

bool auth_users_has_realm(const struct auth_users *u, mk_str realm, enum auth_hash kind)
{
    for (size_t i = 0; i < u->n_digest; i++)
        if (u->digest[i].kind == kind && mk_str_eq(u->digest[i].realm, realm))
            return true;
    return false;
}
