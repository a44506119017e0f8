/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates from a CA (RFC 8555). A separate program, monkey-acme, communicates with the CA. This file
 * passes jobs to it, and serves the challenge responses. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <monkey/version.h>
#include <stdlib.h>
#include <unistd.h>

#include "helper_process.h"
#include "state_folder.h"
#include "tokens.h"

#define PROGRAM "monkey-acme"

struct acme {
    struct acme_settings *settings; /* NULL: no [ACME] */
    struct acme_cert_spec *specs;
    struct acme_helper_job job;
    const char *answers; /* folder of http-01 responses */
    bool is_prepared, has_alpn;
};

MK_PLUGIN_DECLARE(acme);

/* ---- The configuration ---- */

static const char *join_path(struct mk_config *config, mk_str folder, const char *middle, mk_str name,
                             const char *end)
{
    size_t size = folder.len + strlen(middle) + name.len + strlen(end) + 1;
    char *buf = mk_config_alloc(config, size);
    struct mk_buf text = mk_buf_fixed(buf, buf ? size : 0);
    mk_buf_addf(&text, "%.*s%s%.*s%s", MK_STR_ARG(folder), middle, MK_STR_ARG(name), end);
    return buf;
}

/* Writes the path of this plugin's shared object or, if the plugin is built in, of the server program. The
 * helper program is in the same folder. */
static bool find_own_executable(char path[PATH_MAX])
{
#ifdef MK_PLUGIN_STATIC
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[len > 0 ? len : 0] = '\0';
    return len > 0;
#else
    Dl_info info;
    return dladdr(&MK_PLUGIN_OF(acme), &info) && info.dli_fname && realpath(info.dli_fname, path);
#endif
}

static const char *find_helper(struct mk_config *config)
{
    char ourselves[PATH_MAX];
    mk_str folders[2] = {{NULL, 0}, MK_STR_INIT(ACME_PROGRAM_FOLDER)};
    if (find_own_executable(ourselves))
        folders[0] = mk_str_first(mk_str_from_c(ourselves), mk_str_find_last(mk_str_from_c(ourselves), '/'));
    for (size_t i = 0; i < MK_LEN(folders); i++) {
        const char *file = join_path(config, folders[i], "/", MK_STR(PROGRAM), "");
        if (!file || access(file, X_OK) == 0)
            return file;
    }
    mk_config_error(config, NULL, NULL, "cannot find the program %s, which obtains certificates, in %s",
                    PROGRAM, ACME_PROGRAM_FOLDER);
    return NULL;
}

static int load_settings(struct mk_config *config, void **data)
{
    struct acme *a = mk_config_alloc(config, sizeof *a);
    if (!a)
        return -ENOMEM;
    *data = a;
    a->settings = acme_settings_load(config);
    return 0;
}

/* Runs once, for the first host that needs a certificate. Without such a host, incomplete settings are not an
 * error. */
static int prepare_helper_once(struct mk_config *config, struct acme *a)
{
    if (a->is_prepared)
        return 0;
    a->is_prepared = true;
    acme_settings_check(config, a->settings);
    if (!a->settings)
        return 0;
    a->job = (struct acme_helper_job){.settings = a->settings, .program = find_helper(config)};
    a->answers = join_path(config, a->settings->state, "/", MK_STR(ACME_HTTP_FOLDER), "");
    if (!a->answers)
        return -ENOMEM;
    mk_config_allow_path(config, mk_str_from_c(a->answers));
    mk_config_enable_subprocesses(config);
    acme_state_folder_check(config, a->settings);
    return 0;
}

static void enable_tls_alpn(struct mk_config *config, struct acme *a, const struct acme_cert_spec *w)
{
    if (strcmp(w->challenge, "tls-alpn-01") != 0 || a->has_alpn)
        return;
    a->has_alpn = true;
    if (!mk_config_has_tls(config)) {
        mk_config_error(config, a->settings, "Challenge",
                        "tls-alpn-01 needs TLS, but no Listen uses it: "
                        "expected `Listen 443 tls`");
        return;
    }
    const char *folder = join_path(config, a->settings->state, "/", MK_STR(ACME_ALPN_FOLDER), "");
    if (folder)
        mk_config_tls_challenges(config, folder);
}

static bool same_names(const struct acme_cert_spec *a, const struct acme_cert_spec *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = mk_str_eq(a->names[i], b->names[i]);
    return same && strcmp(a->challenge, b->challenge) == 0 && strcmp(a->key, b->key) == 0;
}

/* Adds the certificate to the job, unless an earlier host has the same names and thus shares its
 * certificate. */
static int add_cert_spec(struct mk_config *config, struct acme *a, struct acme_cert_spec *w)
{
    struct acme_cert_spec **end = &a->specs;
    for (; *end; end = &(*end)->next) {
        if (same_names(*end, w))
            return 0;
        if (mk_str_eq((*end)->names[0], w->names[0])) {
            mk_config_error(config, NULL, NULL,
                            "two hosts request different certificates with the same first name %.*s",
                            MK_STR_ARG(w->names[0]));
            mk_config_hint(config,
                           "add [ACME_HOST] to one of them, with other `Domains` or another first name");
            return 0;
        }
    }
    *end = w;
    a->job.specs = a->specs;
    enable_tls_alpn(config, a, w);
    return 0;
}

static int bind_host(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct acme *a = data;
    if (!acme_settings_needs_cert(config, host))
        return 0;
    int e = prepare_helper_once(config, a);
    struct acme_cert_spec *w = !e && a->settings ? acme_settings_vhost_cert(config, a->settings, host) : NULL;
    if (!w)
        return e;
    *host_data = a;
    mk_str folder = a->settings->state;
    const char *file = join_path(config, folder, "/certificates/", w->names[0], ".pem");
    if (!file)
        return -ENOMEM;
    mk_config_add_certificate(config, file, NULL);
    return add_cert_spec(config, a, w);
}

static int master_start(struct mk_config *config, void *data)
{
    const struct acme *a = data;
    return a->specs ? acme_state_folder_create(config, a->settings) : 0;
}

/* ---- The worker ---- */

static int worker_start(struct mk_worker *worker, void *data)
{
    const struct acme *a = data;
    if (mk_worker_index(worker) != 0 || !a->specs)
        return 0;
    struct acme_helper_process *r = acme_helper_process_start(worker, &a->job);
    mk_worker_set_data(worker, &MK_PLUGIN_OF(acme), r);
    return r ? 0 : -ENOMEM;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    acme_helper_process_stop(mk_worker_data(worker, &MK_PLUGIN_OF(acme)));
}

/* ---- A request ---- */

/* Declines unknown tokens: another ACME client may have put the response into the document root. */
static enum mk_verdict serve_challenge(struct mk_request *request, struct mk_response *response,
                                       void *host_data)
{
    const struct acme *a = host_data;
    char buf[ACME_RESPONSE_MAX];
    enum mk_method method = mk_request_method(request);
    mk_str token = acme_token_from_path(mk_request_path(request));
    if (!token.p || (method != MK_METHOD_GET && method != MK_METHOD_HEAD))
        return MK_NEXT;
    size_t len = acme_token_read_response(a->answers, token, buf);
    mk_request_explain(request, "acme", "challenge response: %s", len ? "found" : "none");
    if (!len)
        return MK_NEXT;
    mk_response_add_header_nocopy(response, MK_STR("Content-Type"), MK_STR("application/octet-stream"));
    mk_response_add_header_nocopy(response, MK_STR("Cache-Control"), MK_STR("no-store"));
    if (mk_response_set_body(response, mk_str_of(buf, len)))
        return MK_ERROR;
    return MK_DONE;
}

static const struct mk_conf_table *const sections[] = {&acme_table, &acme_host_table, NULL};

MK_PLUGIN(acme) = {
    MK_PLUGIN_HEAD,
    .name = "acme",
    .version = MONKEY_VERSION,
    .help = "Obtains and renews certificates from an ACME authority, such as Let's Encrypt (RFC 8555).",
    .priority =
        1, /* run before authentication and redirects: the CA has no password, and HTTPS may not work yet */
    .sections = sections,
    .load = load_settings,
    .host = bind_host,
    .master_start = master_start,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_request = serve_challenge,
};
