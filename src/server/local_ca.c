/* SPDX-License-Identifier: Apache-2.0 */
#include "server/local_ca.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "event/tls.h"
#include "os/fd.h"
#include "os/state_dir.h"

#define KEY         "ca.key" /* key and certificate in one file, so that they always match */
#define CERTIFICATE "ca.crt"

enum { SECRET = S_IRUSR | S_IWUSR, OPEN = SECRET | S_IRGRP | S_IROTH, FILE_MAX = 64 * 1024 };

/* State of one check of the CA folder. */
struct ca_check {
    const struct mk_tls_local_ca_ops *ops;
    struct mk_tls_local_ca *ca;
    struct mk_local_ca *out;
    struct mk_arena *arena;
    struct mk_local_names names;
    struct mk_buf *why;
    int64_t now;
    int dir;
    char leaf_name[64];
};

static bool report_ca_error(const struct ca_check *l, const char *name, const char *what, const char *hint)
{
    mk_buf_addf(l->why, "%s%s%s: %s\n%s", l->out->folder, *name ? "/" : "", name, what, hint);
    return false;
}

#define ANEW                                                                                                 \
    "  Delete it to create a new CA; every device that trusts the old one must then trust the new one.\n"
#define ELSEWHERE                                                                                            \
    "  This folder is for the CA and its certificates. To use another one, set MONKEY_STATE=/path in "       \
    "the environment.\n"

/* ---- The CA ---- */

/* The subject contains the user, because each user of a machine has a separate CA. */
static mk_str ca_subject_name(struct ca_check *l)
{
    mk_str host = mk_local_hostname(l->arena);
    const struct passwd *user = geteuid() == 0 ? NULL : getpwuid(geteuid());
    if (user && host.len)
        host = mk_arena_printf(l->arena, "%.*s (%s)", MK_STR_ARG(host), user->pw_name);
    return host.len ? host : MK_STR("this machine");
}

static bool create_ca(struct ca_check *l, struct mk_buf *pem)
{
    const struct mk_tls_names names = {l->names.at, l->names.n};
    mk_err e = l->ops->make(ca_subject_name(l), &names, l->now, pem);
    if (e)
        return report_ca_error(l, KEY, "the TLS library cannot create a new CA", "");
    e = mk_state_dir_write(l->dir, KEY, SECRET, mk_buf_str(pem));
    l->out->is_new = !e;
    return !e || report_ca_error(l, KEY, mk_err_text(e), ELSEWHERE);
}

static bool check_ca_validity(struct ca_check *l)
{
    char text[96], day[32] = "";
    time_t until = (time_t)l->out->facts.until;
    struct tm tm;
    if (l->now < l->out->facts.until)
        return l->now >= l->out->facts.since ||
               report_ca_error(l, KEY, "the CA is not valid yet: check the clock of this machine", "");
    if (gmtime_r(&until, &tm))
        strftime(day, sizeof day, " on %Y-%m-%d", &tm);
    snprintf(text, sizeof text, "the CA expired%s", day);
    return report_ca_error(l, KEY, text, ANEW);
}

static bool open_ca(struct ca_check *l)
{
    char buf[FILE_MAX];
    struct mk_buf pem = mk_buf_fixed(buf, sizeof buf);
    const char *error = NULL;
    mk_err e = mk_state_dir_read(l->dir, KEY, true, &pem, &error);
    bool ok = !e || (e == -ENOENT ? create_ca(l, &pem) : report_ca_error(l, KEY, error, ANEW));
    if (ok && l->ops->open(mk_buf_str(&pem), &l->ca, &error))
        ok = report_ca_error(l, KEY, error, ANEW);
    explicit_bzero(buf, sizeof buf);
    if (!ok)
        return false;
    l->ops->facts(l->ca, &l->out->facts);
    return check_ca_validity(l);
}

/* ---- Creating and renewing certificates ---- */

static bool ensure_ca_certificate(struct ca_check *l)
{
    char buf[FILE_MAX], old_room[FILE_MAX];
    struct mk_buf pem = mk_buf_fixed(buf, sizeof buf), old = mk_buf_fixed(old_room, sizeof old_room);
    const char *error;
    if (l->ops->certificate(l->ca, &pem))
        return report_ca_error(l, CERTIFICATE, "the TLS library cannot write it", "");
    if (!mk_state_dir_read(l->dir, CERTIFICATE, false, &old, &error) &&
        mk_str_eq(mk_buf_str(&old), mk_buf_str(&pem)))
        return true;
    mk_err e = mk_state_dir_write(l->dir, CERTIFICATE, OPEN, mk_buf_str(&pem));
    return !e || report_ca_error(l, CERTIFICATE, mk_err_text(e), ELSEWHERE);
}

/* Moves the names that the CA cannot certify to out->foreign: names that the machine got after the CA was
 * created may violate the CA's name constraints. */
static bool split_certifiable_names(struct ca_check *l)
{
    struct mk_local_names all = l->names;
    l->names.n = l->out->foreign.n = 0;
    for (size_t i = 0; i < all.n; i++) {
        bool ours = l->ops->may(l->ca, all.at[i]);
        struct mk_local_names *list = ours ? &l->names : &l->out->foreign;
        list->at[list->n++] = all.at[i];
    }
    return l->names.n > 0 || report_ca_error(l, KEY, "the CA cannot certify any name of this machine", ANEW);
}

static bool issue_leaf(struct ca_check *l, const struct mk_tls_names *names, struct mk_buf *pem)
{
    mk_buf_clear(pem);
    if (l->ops->issue(l->ca, names, l->now, pem))
        return report_ca_error(l, l->leaf_name, "the TLS library cannot issue it", "");
    mk_err e = mk_state_dir_write(l->dir, l->leaf_name, SECRET, mk_buf_str(pem));
    return !e || report_ca_error(l, l->leaf_name, mk_err_text(e), ELSEWHERE);
}

static bool ensure_leaf(struct ca_check *l)
{
    char buf[FILE_MAX];
    struct mk_buf pem = mk_buf_fixed(buf, sizeof buf);
    const struct mk_tls_names names = {l->names.at, l->names.n};
    const char *error;
    /* a file that cannot be read is not an error: a new certificate replaces it */
    mk_err e = mk_state_dir_read(l->dir, l->leaf_name, true, &pem, &error);
    if (!e)
        error = l->ops->is_due(l->ca, mk_buf_str(&pem), &names, l->now);
    l->out->issued_why = error;
    bool ok = !error || issue_leaf(l, &names, &pem);
    explicit_bzero(buf, sizeof buf);
    return ok;
}

/* ---- Checking the folder ---- */

/* Chooses a file name for the set of addresses: servers with different addresses would keep replacing each
 * other's certificate in a common file. */
static void choose_leaf_name(struct ca_check *l, const char *const *extra)
{
    static const struct mk_hash_key always_the_same = {0};
    uint64_t hash = 0;
    for (size_t i = 0; extra && extra[i]; i++) {
        size_t before = l->names.n;
        if (mk_local_names_add(l->arena, &l->names, mk_str_from_c(extra[i])) && l->names.n > before)
            hash ^= mk_hash(&always_the_same, mk_str_from_c(extra[i]));
    }
    if (hash)
        snprintf(l->leaf_name, sizeof l->leaf_name, "server-%016" PRIx64 ".pem", hash);
    else
        snprintf(l->leaf_name, sizeof l->leaf_name, "server.pem");
}

static bool open_state_folder(struct ca_check *l, unsigned wait_ms)
{
    const char *error = "";
    mk_err e = mk_state_dir_path(l->out->folder);
    if (e) {
        mk_buf_addf(l->why, "no state folder: %s\n  Set MONKEY_STATE=/path in the environment.\n",
                    e == -ENOENT   ? "this user has no home directory"
                    : e == -EINVAL ? "the path in the environment is not absolute"
                                   : mk_err_text(e));
        return false;
    }
    e = mk_state_dir_open(l->out->folder, &l->dir, &error);
    if (e)
        return report_ca_error(l, "", error, ELSEWHERE);
    e = mk_state_dir_lock(l->dir, wait_ms);
    return !e ||
           report_ca_error(l, "", e == -EBUSY ? "another Monkey process is using it" : mk_err_text(e), "");
}

static bool ensure_ca_and_leaf(struct ca_check *l, const char *const *extra, unsigned wait_ms)
{
    if (!mk_local_names_collect(l->arena, &l->names)) {
        mk_buf_add(l->why, MK_STR("out of memory\n"));
        return false;
    }
    choose_leaf_name(l, extra);
    if (!open_state_folder(l, wait_ms))
        return false;
    snprintf(l->out->certificate, sizeof l->out->certificate, "%s/" CERTIFICATE, l->out->folder);
    snprintf(l->out->leaf, sizeof l->out->leaf, "%s/%s", l->out->folder, l->leaf_name);
    return open_ca(l) && ensure_ca_certificate(l) && split_certifiable_names(l) && ensure_leaf(l);
}

bool mk_local_ca_ensure(const char *const *extra, unsigned wait_ms, struct mk_arena *arena,
                        struct mk_local_ca *out, struct mk_buf *error)
{
    const char *missing = NULL;
    const struct mk_tls_module *tls = mk_tls_load(&missing);
    struct ca_check l = {.out = out, .arena = arena, .why = error, .now = mk_clock_unix(), .dir = -1};
    *out = (struct mk_local_ca){0};
    if (!tls) {
        mk_buf_addf(error, "TLS is not available: %s\n", missing);
        return false;
    }
    l.ops = tls->authority;
    bool ok = ensure_ca_and_leaf(&l, extra, wait_ms);
    l.ops->close(l.ca);
    mk_fd_close(&l.dir);
    return ok;
}

/* ---- Messages to the user ---- */

/* Quotes the path, so that users can paste it into a shell. */
static mk_str shell_quote(const char *path, struct mk_buf *buf)
{
    mk_buf_add_char(buf, '\'');
    for (; *path; path++) {
        if (*path == '\'')
            mk_buf_add(buf, MK_STR("'\\'"));
        mk_buf_add_char(buf, *path);
    }
    mk_buf_add_char(buf, '\'');
    return mk_buf_str(buf);
}

static bool needs_no_quotes(const char *path)
{
    while (mk_char_is_alpha(*path) || mk_char_is_digit(*path) || (*path && strchr("/._-+:@", *path)))
        path++;
    return *path == '\0';
}

void mk_local_ca_write_trust_help(const struct mk_local_ca *a, struct mk_buf *out)
{
    char buf[4 * sizeof a->certificate + 2];
    struct mk_buf quotes = mk_buf_fixed(buf, sizeof buf);
    mk_str path = mk_str_from_c(a->certificate);
    if (!needs_no_quotes(a->certificate))
        path = shell_quote(a->certificate, &quotes);
    mk_buf_addf(out, "%s, SHA-256 %s\n", a->facts.name, a->facts.fingerprint);
    mk_buf_addf(out, "  curl     curl --cacert %.*s https://...\n", MK_STR_ARG(path));
    mk_buf_addf(out,
                "  Linux    sudo cp %.*s /usr/local/share/ca-certificates/monkey.crt && sudo "
                "update-ca-certificates\n",
                MK_STR_ARG(path));
    mk_buf_addf(out, "           (Fedora, Arch: sudo trust anchor %.*s)\n", MK_STR_ARG(path));
    mk_buf_add(out,
               MK_STR("  macOS    copy " CERTIFICATE
                      " there, then: sudo security add-trusted-cert -d -r trustRoot -k "
                      "/Library/Keychains/System.keychain " CERTIFICATE "\n"
                      "  Chrome   Settings, Privacy and security, Security, Manage certificates: import it "
                      "as trusted\n"
                      "  Firefox  Settings, Privacy & Security, View Certificates, Authorities: import it to "
                      "identify websites\n"));
}
