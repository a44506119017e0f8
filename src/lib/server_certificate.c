/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/server_certificate.h"

#include "base/mem.h"
#include "lib/app_certificates.h"
#include "lib/handle_registry.h"
#include "lib/last_error.h"
#include "setup/certificates.h"

/* Contexts that were replaced. A worker may have chosen one of them for a handshake in its current loop
 * iteration, so they are freed only when each worker has begun another iteration. Connections hold their own
 * references. */
struct mk_replaced_contexts {
    struct mk_replaced_contexts *next; /* in s->replaced */
    const struct mk_tls_module *tls;
    size_t n;
    struct mk_tls_context *at[];
};

static void free_replaced_contexts(void *ctx)
{
    struct mk_replaced_contexts *r = ctx;
    for (size_t i = 0; i < r->n; i++)
        r->tls->context_free(r->at[i]);
    mk_mem_free(r);
}

void mk_server_certificate_free_replaced(struct mk_server *s)
{
    while (s->replaced) {
        struct mk_replaced_contexts *r = s->replaced;
        s->replaced = r->next;
        free_replaced_contexts(r);
    }
}

static void pass_iteration(struct mk_worker *w, void *ctx)
{
    (void)w, (void)ctx;
}

/* Without memory for the calls, or without workers, the contexts stay until the server is freed. */
static void free_after_iteration(struct mk_server *s, struct mk_replaced_contexts *r)
{
    if (mk_server_post(s, pass_iteration, free_replaced_contexts, r) == 0)
        return;
    r->next = s->replaced;
    s->replaced = r;
}

static void set_problem(const struct mk_server *s, mk_err e, const struct mk_tls_settings_error *problem)
{
    const char *file = *problem->text && problem->file ? problem->file : "";
    (void)mk_last_error_set_running(s, e, "%s%s%s", file, *file ? ": " : "",
                                    *problem->text ? problem->text : mk_err_text(e));
}

static mk_err replace_certificate(struct mk_server *s, mk_str name, const struct mk_tls_keypair *pair)
{
    struct mk_config_generation *g = s->generation;
    struct mk_tls_settings_error problem = {0};
    size_t n = mk_certificates_count_contexts(g);
    if (!g->tls || !n)
        return mk_last_error_set_running(
            s, -ENOENT, "this server has no certificate to replace: add one before the start");
    struct mk_replaced_contexts *r = mk_mem_zalloc(1, sizeof *r + n * sizeof *r->at);
    mk_err e = r ? mk_certificates_replace(g, name, pair, r->at, &problem) : -ENOMEM;
    if (e == -ENOENT)
        (void)mk_last_error_set_running(s, e, "no host `%.*s` has a certificate", MK_STR_ARG(name));
    else if (e || *problem.text) /* or a warning */
        set_problem(s, e, &problem);
    if (e) {
        mk_mem_free(r);
        return e;
    }
    r->tls = g->tls;
    r->n = n;
    free_after_iteration(s, r);
    return 0;
}

int mk_server_replace_certificate(struct mk_server *s, const char *name, const char *certificate,
                                  const char *key)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_last_error_require_running(s);
    if (e)
        return e;
    if (!certificate)
        return mk_last_error_set_running(s, -EINVAL, "there is no certificate");
    const struct mk_tls_keypair pair = mk_app_certificate_pair(certificate, key);
    pthread_mutex_lock(&s->changing);
    e = replace_certificate(s, mk_str_from_c(name), &pair);
    pthread_mutex_unlock(&s->changing);
    return e;
}
