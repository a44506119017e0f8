/* SPDX-License-Identifier: Apache-2.0 */
#include "on_demand.h"

#include <monkey/mem.h>
#include <time.h>

#include "../hostname.h"
#include "order.h"
#include "run.h"
#include "store.h"

enum {
    LOOK_AGAIN_S = 3600, /* for certificates that are due, but may not be renewed, or could not */
    FULL_S = 60,         /* until names beyond the limit are considered again */
    GONE_S = 7 * 86400,  /* an expired certificate is kept this long, to be seen in lists */
    FORGET_S = 86400,    /* the failures of a name without a certificate are kept this long */
};

static struct acme_cert_spec spec_for_name(const struct acme_job *plan, const char *name)
{
    struct acme_cert_spec spec = plan->on_demand.pattern;
    spec.name = spec.names[0] = name;
    return spec;
}

/* ---- Issuing ---- */

static bool count_file(void *ctx, const char *name)
{
    size_t *n = ctx;
    (void)name;
    ++*n;
    return true;
}

/* Certificates that are being issued do not count, so there may be a few more. */
static bool has_space(const struct acme_job *plan, const struct acme_cert_spec *spec)
{
    size_t n = 0;
    if (acme_store_mtime(ACME_CERTIFICATES, spec->name, ".pem"))
        return true;
    acme_store_each(ACME_CERTIFICATES, ".pem", count_file, &n);
    if (n < plan->on_demand.max)
        return true;
    acme_report_log(MK_LOG_ERROR,
                    "%s gets no certificate: there are %zu certificates on demand, as many as "
                    "MaxCertificates allows",
                    spec->name, n);
    return false;
}

bool acme_on_demand_issue(const struct acme_job *plan)
{
    struct acme_cert_spec spec = spec_for_name(plan, plan->on_demand.name);
    struct acme_error f = {0};
    if (!acme_store_lock_name(spec.name, &f)) {
        acme_report_log(MK_LOG_ERROR, "%s", f.text);
        return false;
    }
    struct acme_run r = acme_run_begin(plan);
    int64_t now = time(NULL);
    bool ok = acme_order_renewal_time(plan, &spec, now, &f) > now; /* another process may have obtained it */
    if (ok)
        acme_report_issued();
    else if (!has_space(plan, &spec))
        acme_run_schedule(&r, now + FULL_S);
    else
        ok = acme_run_is_due(&r, &spec) && acme_run_obtain(&r, &spec);
    acme_run_end(&r);
    return ok;
}

/* ---- Renewal ---- */

static bool collect_name(void *ctx, const char *name)
{
    struct mk_buf *list = ctx; /* names, one to a line */
    if (acme_hostname_is_public(mk_str_from_c(name)))
        mk_buf_addf(list, "%s\n", name);
    return !list->failed;
}

static void remove_certificate(const struct acme_cert_spec *spec)
{
    acme_store_remove(ACME_CERTIFICATES, spec->name, ".pem");
    acme_store_remove(ACME_RENEWAL, spec->name, ".json");
    acme_store_remove(ACME_FAILURES, spec->name, ".json");
    acme_report_log(MK_LOG_INFO, "%s: the expired certificate was removed", spec->name);
}

/* The authority's clock confirms that the certificate has expired: with a wrong clock, all certificates would be lost. */
static bool remove_if_gone(struct acme_run *r, const struct acme_cert_spec *spec)
{
    int64_t until = acme_order_expiry(spec);
    if (!until || until + GONE_S > time(NULL) || !acme_run_open_client(r) || !r->client.has_same_time)
        return false;
    remove_certificate(spec);
    return true;
}

static void look_at(struct acme_run *r, const char *name)
{
    struct acme_cert_spec spec = spec_for_name(r->plan, name);
    if (remove_if_gone(r, &spec) || !acme_run_is_due(r, &spec))
        return;
    acme_report_due(name);
    acme_run_schedule(r, time(NULL) + LOOK_AGAIN_S);
}

static bool forget_old_failure(void *ctx, const char *name)
{
    const int64_t *now = ctx;
    if (!acme_store_mtime(ACME_CERTIFICATES, name, ".pem") &&
        acme_store_mtime(ACME_FAILURES, name, ".json") < *now - FORGET_S)
        acme_store_remove(ACME_FAILURES, name, ".json");
    return true;
}

bool acme_on_demand_look(const struct acme_job *plan)
{
    enum { NAMES_BYTES = 64 << 20 };
    struct mk_buf list = mk_buf_growing(NAMES_BYTES);
    struct acme_run r = acme_run_begin(plan);
    int64_t now = time(NULL);
    acme_store_each(ACME_CERTIFICATES, ".pem", collect_name, &list);
    mk_str rest = mk_buf_str(&list);
    for (mk_str name; (name = mk_str_cut(&rest, '\n')).len;) {
        char text[256];
        memcpy(text, name.p, name.len);
        text[name.len] = '\0';
        look_at(&r, text);
    }
    acme_store_each(ACME_FAILURES, ".json", forget_old_failure, &now);
    mk_buf_free(&list);
    acme_run_end(&r);
    return true;
}
