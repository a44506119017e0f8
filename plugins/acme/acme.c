/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates from a CA (RFC 8555). A separate program, monkey-acme, communicates with the CA. This file
 * passes jobs to it, and serves the challenge responses. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <monkey/version.h>
#include <stdlib.h>
#include <unistd.h>

#include "allow_endpoint.h"
#include "demand.h"
#include "helper_process.h"
#include "hook_file.h"
#include "state_folder.h"
#include "tokens.h"

#define PROGRAM "monkey-acme"

struct acme {
    struct acme_settings *settings; /* NULL: no [ACME] */
    struct acme_cert_spec *specs;
    struct acme_demand_stats stats;
    struct acme_helper_job job, on_demand; /* on_demand.on_demand is NULL if no host uses it */
    const char *answers;                   /* folder of http-01 responses */
    bool is_prepared, has_alpn;
};

/* Data of a worker. */
struct acme_worker {
    struct acme_helper_process *renewals; /* of the certificates in the configuration; only in worker 0 */
    struct acme_issuer *issuer;           /* only in worker 0 */
    struct acme_demand *demand;           /* NULL: no host gets certificates on demand */
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

/* Returns the path of a program that is installed with this plugin; NULL if it is missing, or memory is. */
static const char *find_program(struct mk_config *config, const char *prefix, mk_str name)
{
    char ourselves[PATH_MAX];
    mk_str folders[2] = {{NULL, 0}, MK_STR_INIT(ACME_PROGRAM_FOLDER)};
    if (find_own_executable(ourselves))
        folders[0] = mk_str_first(mk_str_from_c(ourselves), mk_str_find_last(mk_str_from_c(ourselves), '/'));
    for (size_t i = 0; i < MK_LEN(folders); i++) {
        const char *file = join_path(config, folders[i], prefix, name, "");
        if (!file || access(file, X_OK) == 0)
            return file;
    }
    return NULL;
}

static const char *find_helper(struct mk_config *config)
{
    const char *file = find_program(config, "/", MK_STR(PROGRAM));
    if (!file)
        mk_config_error(config, NULL, NULL, "cannot find the program %s, which obtains certificates, in %s",
                        PROGRAM, ACME_PROGRAM_FOLDER);
    return file;
}

/* Returns the path of DNSHook, checked; NULL if there is none, or after an error. */
static const char *find_hook(struct mk_config *config, const struct acme_settings *s)
{
    uid_t uid;
    gid_t gid;
    if (!s->hook.n)
        return NULL;
    mk_str word = s->hook.v[0];
    const char *path = mk_str_starts(word, MK_STR("/")) ? join_path(config, word, "", MK_STR(""), "") : NULL;
    if (!path && mk_str_find(word, '/') == MK_STR_NONE)
        path = find_program(config, "/acme-dns-", word);
    if (!path) {
        mk_config_report(config, MK_LOG_ERROR, s, "DNSHook", word,
                         "`%.*s` is no bundled program: expected an absolute path, `rfc2136` or `http`",
                         MK_STR_ARG(word));
        return NULL;
    }
    if (!mk_config_user(config, &uid, &gid))
        uid = geteuid();
    const char *problem = acme_hook_file_problem(path, uid);
    if (problem)
        mk_config_report(config, MK_LOG_ERROR, s, "DNSHook", word, "%s is not started: %s", path, problem);
    return problem ? NULL : path;
}

static int load_settings(struct mk_config *config, void **data)
{
    struct acme *a = mk_config_alloc(config, sizeof *a);
    if (!a)
        return -ENOMEM;
    *data = a;
    a->settings = acme_settings_load(config);
    if (a->settings && a->settings->endpoint.len)
        acme_allow_endpoint_open(config, a->settings);
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
    a->job.folder = a->settings->state.p;
    a->job.hook = find_hook(config, a->settings);
    a->answers = join_path(config, a->settings->state, "/", MK_STR(ACME_HTTP_FOLDER), "");
    if (!a->answers)
        return -ENOMEM;
    mk_config_allow_path(config, a->settings, "StateFolder", mk_str_from_c(a->answers));
    if (!acme_helper_job_set_variables(config, &a->job))
        return -ENOMEM;
    static const char *const no_arguments[] = {NULL};
    if (a->job.program)
        mk_config_allow_program(config, a->settings, NULL,
                                &(struct mk_program){.path = a->job.program,
                                                     .arguments = no_arguments,
                                                     .variables = a->job.variables,
                                                     .first_worker_only = true});
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

static void check_dns(struct mk_config *config, const struct acme *a, const struct acme_cert_spec *w)
{
    if (strcmp(w->challenge, "dns-01") == 0 && !a->settings->hook.n) {
        mk_config_error(config, a->settings, "Challenge",
                        "dns-01 needs `DNSHook`, which adds the DNS records");
        mk_config_hint(config, "for example `DNSHook rfc2136` in [ACME]");
    }
}

static bool same_names(const struct acme_cert_spec *a, const struct acme_cert_spec *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = mk_str_eq(a->names[i], b->names[i]);
    return same && mk_str_eq(a->profile, b->profile) && strcmp(a->challenge, b->challenge) == 0 &&
           strcmp(a->key, b->key) == 0;
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
    check_dns(config, a, w);
    return 0;
}

static struct acme_worker *worker_data(const struct mk_worker *worker)
{
    return mk_worker_data(worker, &MK_PLUGIN_OF(acme));
}

static int request_certificate(struct mk_worker *worker, mk_str name, const struct mk_addr *client,
                               struct mk_tls_waiter *waiter, void *ctx)
{
    (void)ctx;
    return acme_demand_request(worker_data(worker)->demand, name, client, waiter);
}

static void cancel_request(struct mk_worker *worker, struct mk_tls_waiter *waiter, void *ctx)
{
    (void)ctx;
    acme_demand_cancel(worker_data(worker)->demand, waiter);
}

static void check_on_demand(struct mk_config *config, const struct acme *a, const struct acme_cert_spec *w)
{
    const struct acme_cert_spec *other = a->on_demand.on_demand;
    if (!a->settings->endpoint.len && !a->settings->allow_file.len) {
        mk_config_error(config, a->settings, "AllowEndpoint",
                        "`OnDemand on` needs `AllowEndpoint` or `AllowFile`, which decide which names get a "
                        "certificate");
        mk_config_hint(config, "without it, strangers could use up the limits of the authority");
    }
    if (strcmp(w->challenge, "dns-01") == 0)
        mk_config_error(
            config, a->settings, "Challenge",
            "`OnDemand on` needs http-01 or tls-alpn-01: dns-01 takes too long for a client that waits");
    if (other && (!mk_str_eq(other->profile, w->profile) || strcmp(other->challenge, w->challenge) != 0 ||
                  strcmp(other->key, w->key) != 0))
        mk_config_error(config, NULL, NULL,
                        "two hosts with `OnDemand on` have different values of Challenge, Key or Profile");
}

static int bind_on_demand(struct mk_config *config, struct acme *a)
{
    struct acme_cert_spec *w = acme_settings_cert_options(config, a->settings);
    const char *folder = join_path(config, a->settings->state, "/", MK_STR(ACME_ON_DEMAND_FOLDER), "");
    const char *certificates =
        join_path(config, a->settings->state, "/", MK_STR(ACME_ON_DEMAND_FOLDER), "/certificates");
    if (!w || !folder || !certificates)
        return -ENOMEM;
    check_on_demand(config, a, w);
    enable_tls_alpn(config, a, w);
    a->on_demand = a->job;
    a->on_demand.folder = folder;
    a->on_demand.on_demand = w;
    acme_demand_stats_register(config, &a->stats);
    mk_config_tls_on_demand(config, certificates, request_certificate, cancel_request, NULL);
    return 0;
}

static int bind_host(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct acme *a = data;
    bool is_on_demand = acme_settings_has_on_demand(config),
         answers_all = a->settings && (a->settings->endpoint.len || a->settings->allow_file.len);
    bool needs_cert = acme_settings_needs_cert(config, host);
    if (!needs_cert && !is_on_demand && !answers_all)
        return 0;
    int e = prepare_helper_once(config, a);
    if (!e && is_on_demand && a->settings)
        e = bind_on_demand(config, a);
    if (!e && answers_all) /* a host may be the default host of port 80 */
        *host_data = a;
    if (!needs_cert)
        return e;
    struct acme_cert_spec *w = !e && a->settings ? acme_settings_vhost_cert(config, a->settings, host) : NULL;
    if (!w)
        return e;
    *host_data = a;
    mk_str folder = a->settings->state;
    const char *file = join_path(config, folder, "/certificates/", w->file, ".pem");
    if (!file)
        return -ENOMEM;
    mk_config_add_certificate(config, file, NULL);
    return add_cert_spec(config, a, w);
}

static int master_start(struct mk_config *config, void *data)
{
    const struct acme *a = data;
    bool on_demand = a->on_demand.on_demand;
    return a->specs || on_demand ? acme_state_folder_create(config, a->settings, on_demand) : 0;
}

/* ---- The worker ---- */

static void free_worker(struct acme_worker *w)
{
    acme_helper_process_stop(w->renewals);
    acme_demand_free(w->demand);
    acme_issuer_free(w->issuer);
    mk_mem_free(w);
}

static bool start_on_demand(struct mk_worker *worker, const struct acme *a, struct acme_worker *w)
{
    w->demand =
        acme_demand_new(worker, &MK_PLUGIN_OF(acme), &a->stats, a->specs, &a->on_demand.settings->allow_list);
    if (!w->demand || mk_worker_index(worker) != 0)
        return w->demand;
    w->issuer = acme_issuer_new(worker, &MK_PLUGIN_OF(acme), &a->stats, &a->on_demand);
    return w->issuer;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    const struct acme *a = data;
    bool is_first = mk_worker_index(worker) == 0, ok = true;
    if (!a->on_demand.on_demand && !(is_first && a->specs))
        return 0;
    struct acme_worker *w = mk_mem_zalloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    if (is_first && a->specs)
        ok = (w->renewals = acme_helper_process_start(worker, &a->job, NULL, NULL)) != NULL;
    if (ok && a->on_demand.on_demand)
        ok = start_on_demand(worker, a, w);
    if (ok)
        mk_worker_set_data(worker, &MK_PLUGIN_OF(acme), w);
    else
        free_worker(w);
    return ok ? 0 : -ENOMEM;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    struct acme_worker *w = worker_data(worker);
    (void)data;
    if (w)
        free_worker(w);
}

static void worker_drain(struct mk_worker *worker, void *data)
{
    const struct acme_worker *w = worker_data(worker);
    (void)data;
    if (w && w->issuer)
        acme_issuer_drain(w->issuer);
}

static void on_message(struct mk_worker *worker, mk_str text, void *data)
{
    const struct acme_worker *w = worker_data(worker);
    struct acme_message m;
    mk_str name;
    (void)data;
    if (!w || !acme_message_parse(text, &m, &name))
        return;
    if (m.kind == ACME_MESSAGE_REQUEST && w->issuer)
        acme_issuer_on_request(w->issuer, &m, name);
    else if (m.kind != ACME_MESSAGE_REQUEST && w->demand)
        acme_demand_on_answer(w->demand, &m, name);
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

static const char *const needs[] = {"upstream", NULL};
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
    .worker_drain = worker_drain,
    .on_message = on_message,
    .needs = needs,
    .on_request = serve_challenge,
};
