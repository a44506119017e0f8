/* SPDX-License-Identifier: Apache-2.0 */
#include "dns.h"

#include <dirent.h>
#include <stdio.h>
#include <time.h>

#include "hook.h"
#include "jws.h"
#include "store.h"

enum { VALUE_SIZE = 64, VALUE_LEN = 43 /* SHA-256 as base64url */, DOMAIN_MAX = 253, KEPT_S = 7 * 86400 };

/* Writes the value of the TXT record: the digest of the key authorization. */
static bool format_value(const struct acme_client *c, const char *token, char value[VALUE_SIZE])
{
    char digest[32];
    struct mk_buf text = mk_buf_growing(4096), out = mk_buf_fixed(value, VALUE_SIZE - 1);
    bool ok = acme_jws_key_authorization(&text, c->key, token) && acme_sha256(mk_buf_str(&text), digest);
    if (ok)
        acme_base64url_encode(&out, mk_str_of(digest, sizeof digest));
    value[out.len] = '\0';
    mk_buf_free(&text);
    return ok && out.len == VALUE_LEN;
}

bool acme_dns_present(struct acme_client *c, const char *domain, const char *token, struct acme_error *f)
{
    char value[VALUE_SIZE];
    if (!format_value(c, token, value))
        return acme_error_set(f, "cannot compute the DNS record for %s: %s", domain, acme_key_error());
    mk_buf_addf(&c->dns_records, "%s\n", value);
    return acme_store_write(ACME_DNS, value, "", mk_str_from_c(domain), f) &&
           acme_hook_run(c->plan, "present", domain, value, f);
}

/* ---- Removing ---- */

static bool is_value(const char *name)
{
    size_t n = 0;
    for (; name[n]; n++)
        if (!mk_char_is_alpha(name[n]) && !mk_char_is_digit(name[n]) && name[n] != '-' && name[n] != '_')
            return false;
    return n == VALUE_LEN;
}

/* Reads the domain of a record. The check keeps damaged files away from the hook. */
static bool read_domain(const char *value, char domain[DOMAIN_MAX + 1])
{
    struct mk_buf text;
    int e = acme_store_read(ACME_DNS, value, "", &text);
    mk_str s = e ? MK_STR("") : mk_buf_str(&text);
    bool ok = s.len > 0 && s.len <= DOMAIN_MAX && s.p[0] != '-' && s.p[0] != '.';
    for (size_t i = 0; ok && i < s.len; i++)
        ok = mk_char_is_alpha(s.p[i]) || mk_char_is_digit(s.p[i]) || s.p[i] == '-' || s.p[i] == '.';
    (void)snprintf(domain, DOMAIN_MAX + 1, "%.*s", ok ? (int)s.len : 0, ok ? s.p : "");
    mk_buf_free(&text);
    return ok;
}

static bool remove_record(const struct acme_job *job, const char *value)
{
    char domain[DOMAIN_MAX + 1];
    struct acme_error f = {0};
    bool ok = !read_domain(value, domain) || acme_hook_run(job, "cleanup", domain, value, &f);
    bool is_old = acme_store_mtime(ACME_DNS, value, "") < time(NULL) - KEPT_S;
    if (!ok)
        acme_report_log(MK_LOG_WARN, "%s: %s; the DNS record is left%s", domain, f.text,
                        is_old ? "" : " until the next run");
    if (ok || is_old)
        acme_store_remove(ACME_DNS, value, "");
    return ok;
}

void acme_dns_remove_added(struct acme_client *c)
{
    char value[VALUE_SIZE];
    mk_str rest = mk_buf_str(&c->dns_records);
    for (mk_str line; (line = mk_str_cut(&rest, '\n')).len;) {
        (void)snprintf(value, sizeof value, "%.*s", MK_STR_ARG(line));
        (void)remove_record(c->plan, value);
    }
    mk_buf_clear(&c->dns_records);
}

void acme_dns_remove_left(const struct acme_job *job)
{
    DIR *d = job->n_hook ? opendir(ACME_DNS) : NULL;
    const struct dirent *e;
    while (d && (e = readdir(d)) && (!is_value(e->d_name) || remove_record(job, e->d_name)))
        continue;
    if (d)
        closedir(d);
}
