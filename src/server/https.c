/* SPDX-License-Identifier: Apache-2.0 */
#include "server/https.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "conf/print.h"
#include "conf/words.h"
#include "os/sockaddr.h"
#include "server/master.h"

#define DEFAULT_PORT "8443"

enum { WHY_MAX = 8 * 1024 };

/* ---- Listen addresses ---- */

/* Adds a listen address to the names of the certificate: browsers may use an address that no interface has,
 * such as 127.0.0.5. False: out of memory. */
static bool add_certified_address(struct mk_https *h, const char *listen, size_t *n)
{
    struct mk_sockaddr a;
    char buf[INET6_ADDRSTRLEN];
    if (mk_sockaddr_parse(mk_str_from_c(listen), MK_STR("127.0.0.1"), &a) || mk_sockaddr_is_any(&a))
        return true; /* the configuration parser reports the error */
    if (a.any.sa_family == AF_INET)
        inet_ntop(AF_INET, &a.v4.sin_addr, buf, sizeof buf);
    else if (a.any.sa_family == AF_INET6)
        inet_ntop(AF_INET6, &a.v6.sin6_addr, buf, sizeof buf);
    else
        return true;
    mk_str copy = mk_arena_copy(&h->arena, mk_str_from_c(buf));
    h->extra[*n] = copy.p;
    *n += copy.p != NULL;
    return copy.p != NULL;
}

static bool collect_listens(struct mk_https *h, const struct mk_arguments *a)
{
    size_t n_extra = 0;
    if (a->n_listens == 0)
        h->listens[0] = DEFAULT_PORT " tls";
    for (size_t i = 0; i < a->n_listens; i++) {
        mk_str text = mk_arena_printf(&h->arena, "%s tls", a->listens[i]);
        h->listens[i] = text.p;
        if (!text.p || !add_certified_address(h, a->listens[i], &n_extra))
            return false;
    }
    return true;
}

/* ---- Starting ---- */

static int print_error(const struct mk_buf *error)
{
    fprintf(stderr, "monkey: %.*s", MK_STR_ARG(mk_buf_str(error)));
    return MK_EXIT_FAILED;
}

bool mk_https_init(struct mk_https *h, const struct mk_arguments *a)
{
    char buf[WHY_MAX];
    struct mk_buf error = mk_buf_fixed(buf, sizeof buf);
    *h = (struct mk_https){0};
    mk_arena_init(&h->arena, NULL);
    bool ok = collect_listens(h, a);
    if (!ok)
        mk_buf_add(&error, MK_STR("out of memory\n"));
    ok = ok && mk_local_ca_ensure(h->extra, MK_LOCAL_CA_WAIT_MS, &h->arena, &h->ca, &error);
    if (ok)
        return true;
    (void)print_error(&error);
    mk_https_fini(h);
    return false;
}

void mk_https_fini(struct mk_https *h)
{
    mk_arena_fini(&h->arena);
}

void mk_https_write_config(const struct mk_https *h, struct mk_buf *out)
{
    struct mk_buf quoted = mk_buf_growing(2 * PATH_MAX);
    mk_conf_words_quote_text(&quoted, mk_str_from_c(h->ca.leaf));
    mk_conf_print_entry(MK_STR("Certificate"), mk_buf_str(&quoted), out);
    if (quoted.failed)
        out->failed = true;
    mk_buf_free(&quoted);
}

/* ---- While serving ---- */

void mk_https_renew(struct mk_https *h, struct mk_log *log)
{
    char buf[WHY_MAX];
    struct mk_buf error = mk_buf_fixed(buf, sizeof buf);
    struct mk_local_ca now;
    struct mk_arena arena;
    mk_arena_init(&arena, NULL);
    bool ok = mk_local_ca_ensure(h->extra, 0, &arena, &now, &error);
    mk_str first = mk_str_first(mk_buf_str(&error), mk_str_find(mk_buf_str(&error), '\n'));
    if (!ok && !h->failed)
        mk_log_warn(log, "cannot renew the certificate: %.*s", MK_STR_ARG(first));
    if (ok && now.is_new)
        mk_log_warn(log, "created a new CA, which every device must trust again: SHA-256 %s",
                    now.facts.fingerprint);
    if (ok && now.issued_why)
        mk_log_info(log, "issued a new certificate for HTTPS: %s", now.issued_why);
    h->failed = !ok;
    mk_arena_fini(&arena);
}

/* ---- Messages to the user ---- */

static void write_uncertified_names(const struct mk_local_ca *a, struct mk_buf *out)
{
    for (size_t i = 0; i < a->foreign.n; i++)
        mk_buf_addf(out, "%s%s",
                    i ? ", " : "Its CA was created for another name of this machine and cannot certify ",
                    a->foreign.at[i]);
    if (a->foreign.n)
        mk_buf_addf(out, ":\nto create a new CA, delete %s/ca.key\n", a->folder);
}

void mk_https_write_notice(const struct mk_https *h, struct mk_buf *out)
{
    const struct mk_local_ca *a = &h->ca;
    if (a->is_new) {
        mk_buf_add(out, MK_STR("The certificate is from a private CA, which was just created for this "
                               "machine. Browsers warn\n"
                               "until you make them trust this CA, here and on other devices:\n"));
        mk_local_ca_write_trust_help(a, out);
    } else {
        mk_buf_addf(
            out,
            "Issued by the CA: %s, SHA-256 %s\nTo trust it: curl --cacert %s; for browsers, see `monkey "
            "ca`.\n",
            a->facts.name, a->facts.fingerprint, a->certificate);
    }
    write_uncertified_names(a, out);
}

int mk_https_show_ca(void)
{
    char buf[WHY_MAX], text_room[4 * WHY_MAX];
    struct mk_buf error = mk_buf_fixed(buf, sizeof buf), text = mk_buf_fixed(text_room, sizeof text_room);
    struct mk_local_ca a;
    struct mk_arena arena;
    mk_arena_init(&arena, NULL);
    bool ok = mk_local_ca_ensure(NULL, MK_LOCAL_CA_WAIT_MS, &arena, &a, &error);
    int code = MK_EXIT_OK;
    if (ok) {
        mk_buf_addf(&text, "%s\n", a.certificate);
        mk_local_ca_write_trust_help(&a, &text);
        write_uncertified_names(&a, &text);
        mk_str s = mk_buf_str(&text);
        if (fwrite(s.p, 1, s.len, stdout) != s.len || fflush(stdout) != 0)
            code = MK_EXIT_FAILED;
    } else {
        code = print_error(&error);
    }
    mk_arena_fini(&arena);
    return code;
}
