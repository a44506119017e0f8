/* SPDX-License-Identifier: Apache-2.0 */
#include "environ.h"

#include <errno.h>

#include <monkey/tls.h>
#include <monkey/version.h>

enum { TEXT_MAX = 118 * 1024, HEAD_MAX = 64 * 1024, ARGUMENTS_MAX = 64 };

struct writer {
    struct mk_buf *out;
    struct mk_request *request;
    const struct cgi_script *script;
    const struct cgi_settings *settings;
    bool counted; /* the length of the content is known */
    size_t n;     /* variables so far */
};

/* ---- One variable ---- */

/* False: the configuration sets this variable itself. */
static bool begin(struct writer *w, mk_str name)
{
    if (cgi_settings_has(w->settings, name))
        return false;
    mk_buf_add(w->out, name);
    mk_buf_add_char(w->out, '=');
    w->n++;
    return true;
}

static void end(struct writer *w)
{
    mk_buf_add_char(w->out, '\0');
}

static void set(struct writer *w, const char *name, mk_str value)
{
    if (!value.p || !begin(w, mk_str_from_c(name)))
        return;
    mk_buf_add(w->out, value);
    end(w);
}

static void set_num(struct writer *w, const char *name, uint64_t n)
{
    if (!begin(w, mk_str_from_c(name)))
        return;
    mk_buf_add_num(w->out, n);
    end(w);
}

static void set_peer(struct writer *w, const char *name, const struct mk_peer *peer)
{
    if (!begin(w, mk_str_from_c(name)))
        return;
    mk_peer_print(peer, w->out);
    end(w);
}

/* ---- The request ---- */

/* After a local redirect it differs from what the client sent. */
static mk_str method_of(const struct mk_request *request)
{
    return mk_request_method(request) == MK_METHOD_GET ? MK_STR("GET") : mk_request_method_text(request);
}

static void set_content(struct writer *w, int64_t length)
{
    enum mk_method method = mk_request_method(w->request);
    bool none = method == MK_METHOD_GET || method == MK_METHOD_HEAD;
    bool told = mk_request_field(w->request, MK_STR("Content-Length")).p != NULL;
    if (length > 0 || (length == 0 && told && !none))
        set_num(w, "CONTENT_LENGTH", (uint64_t)length);
    if (length || (told && !none))
        set(w, "CONTENT_TYPE", mk_request_field(w->request, MK_STR("Content-Type")));
}

static void set_target(struct writer *w)
{
    mk_str query = mk_request_query(w->request);
    set(w, "REQUEST_METHOD", method_of(w->request));
    set(w, "REQUEST_URI", mk_request_target(w->request));
    set(w, "QUERY_STRING", query.p ? query : MK_STR(""));
    set(w, "SCRIPT_NAME", w->script->name);
    set(w, "SCRIPT_FILENAME", w->script->file);
    set(w, "DOCUMENT_ROOT", mk_host_root(mk_request_site(w->request)));
    if (w->script->info.len == 0)
        return;
    set(w, "PATH_INFO", w->script->info);
    set(w, "PATH_TRANSLATED", mk_request_file_name(w->request, w->script->info));
}

static void set_client(struct writer *w)
{
    const struct mk_peer *peer = mk_request_address(w->request);
    mk_str user = mk_request_user(w->request);
    mk_str credentials = mk_request_field(w->request, MK_STR("Authorization"));
    set_peer(w, "REMOTE_ADDR", peer);
    set_peer(w, "REMOTE_HOST", peer); /* names are not looked up (section 4.1.9) */
    if (peer->port)
        set_num(w, "REMOTE_PORT", peer->port);
    if (!user.p)
        return;
    set(w, "REMOTE_USER", user);
    if (credentials.p)
        set(w, "AUTH_TYPE", mk_str_word(&credentials));
}

/* As in a URL. */
static mk_str in_brackets(const struct mk_peer *peer, struct mk_buf *out)
{
    mk_buf_add_char(out, '[');
    mk_peer_print(peer, out);
    mk_str bare = mk_str_skip(mk_buf_str(out), 1);
    if (mk_str_find(bare, ':') == MK_STR_NONE)
        return bare;
    mk_buf_add_char(out, ']');
    return mk_buf_str(out);
}

/* The name that the client used, else that of the host, else the address that the client connected to. */
static void set_server_name(struct writer *w, const struct mk_peer *local)
{
    char room[64];
    struct mk_buf address = mk_buf_fixed(room, sizeof room);
    mk_str name = mk_request_host(w->request);
    if (!name.len)
        name = mk_host_name(mk_request_site(w->request));
    if (name.len && !mk_str_starts(name, MK_STR("~")) && mk_str_find(name, '*') == MK_STR_NONE)
        set(w, "SERVER_NAME", name);
    else if (local && !local->is_unix)
        set(w, "SERVER_NAME", in_brackets(local, &address));
    else
        set(w, "SERVER_NAME", MK_STR("localhost"));
}

/* Names as in Apache's mod_ssl, which programs know. Texts of a certificate may hold anything. */
static void set_foreign(struct writer *w, const char *name, mk_str value)
{
    if (value.p && mk_str_find(value, '\0') == MK_STR_NONE)
        set(w, name, value);
}

static void set_encryption(struct writer *w)
{
    struct mk_tls_info tls;
    if (!mk_request_tls(w->request, &tls))
        return;
    bool has_certificate = tls.client_subject.p != NULL;
    set(w, "HTTPS", MK_STR("on"));
    set(w, "SSL_PROTOCOL", tls.version);
    set(w, "SSL_CIPHER", tls.cipher);
    set_foreign(w, "SSL_TLS_SNI", tls.server_name);
    set(w, "SSL_SESSION_RESUMED", tls.resumed ? MK_STR("Resumed") : MK_STR("Initial"));
    set(w, "SSL_CLIENT_VERIFY", has_certificate ? MK_STR("SUCCESS") : MK_STR("NONE"));
    set_foreign(w, "SSL_CLIENT_S_DN", tls.client_subject);
    set_foreign(w, "SSL_CLIENT_I_DN", tls.client_issuer);
    set_foreign(w, "SSL_CLIENT_M_SERIAL", tls.client_serial);
    set_foreign(w, "SSL_CLIENT_FINGERPRINT", tls.client_fingerprint);
}

static void set_server(struct writer *w)
{
    struct mk_peer local;
    bool known = mk_request_local(w->request, &local) == 0;
    mk_str scheme = mk_request_scheme(w->request);
    bool secure = mk_str_eq(scheme, MK_STR("https"));
    unsigned version = mk_request_version(w->request);
    char protocol[] = {'H', 'T', 'T', 'P', '/', (char)('0' + version / 10), '.', (char)('0' + version % 10)};
    set(w, "GATEWAY_INTERFACE", MK_STR("CGI/1.1"));
    set(w, "SERVER_SOFTWARE", MK_STR("Monkey/" MONKEY_VERSION));
    set(w, "SERVER_PROTOCOL", mk_str_of(protocol, sizeof protocol));
    set_server_name(w, known ? &local : NULL);
    set_num(w, "SERVER_PORT", known && local.port ? local.port : secure ? 443 : 80);
    if (known && !local.is_unix)
        set_peer(w, "SERVER_ADDR", &local);
    set(w, "REQUEST_SCHEME", scheme);
    set_encryption(w);
    set(w, "REDIRECT_STATUS", MK_STR("200")); /* php-cgi refuses to run without it */
    set(w, "PATH", MK_STR("/usr/local/bin:/usr/bin:/bin"));
}

/* ---- Its fields ---- */

/* `Proxy` would become HTTP_PROXY, which programs obey. The server has removed the transfer coding already.
 * Names with other characters could pose as a field that a proxy has checked: X_User as X-User. */
static bool passes(const struct writer *w, mk_str name)
{
    static const mk_str others[] = {MK_STR_INIT("Content-Length"), MK_STR_INIT("Content-Type"),
                                    MK_STR_INIT("Proxy"), MK_STR_INIT("Proxy-Authorization")};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (mk_str_eq_nocase(name, others[i]))
            return false;
    for (size_t i = 0; i < name.len; i++)
        if (!mk_char_is_alpha(name.p[i]) && !mk_char_is_digit(name.p[i]) && name.p[i] != '-')
            return false;
    if (mk_str_eq_nocase(name, MK_STR("Authorization")))
        return w->settings->authorization;
    return !w->counted || !mk_str_eq_nocase(name, MK_STR("Transfer-Encoding"));
}

static bool is_repeated(struct mk_request *request, mk_str name, size_t i)
{
    mk_str other, value;
    for (size_t j = 0; j < i && mk_request_field_at(request, j, &other, &value); j++)
        if (mk_str_eq_nocase(other, name))
            return true;
    return false;
}

/* The lines of one name as one value (RFC 9110, section 5.3; of cookies RFC 6265, section 5.4). */
static void set_field(struct writer *w, mk_str name, mk_str value, size_t i)
{
    char room[8 + 128];
    struct mk_buf variable = mk_buf_fixed(room, sizeof room);
    mk_str other, more, comma = mk_str_eq_nocase(name, MK_STR("Cookie")) ? MK_STR("; ") : MK_STR(", ");
    mk_buf_add(&variable, MK_STR("HTTP_"));
    for (size_t c = 0; c < name.len; c++)
        mk_buf_add_char(&variable, name.p[c] == '-'                       ? '_'
                                   : name.p[c] >= 'a' && name.p[c] <= 'z' ? (char)(name.p[c] - 'a' + 'A')
                                                                          : name.p[c]);
    if (variable.failed || !begin(w, mk_buf_str(&variable)))
        return;
    mk_buf_add(w->out, value);
    while (mk_request_field_at(w->request, ++i, &other, &more)) {
        if (!mk_str_eq_nocase(other, name))
            continue;
        mk_buf_add(w->out, comma);
        mk_buf_add(w->out, more);
    }
    end(w);
}

static void set_fields(struct writer *w)
{
    mk_str name, value;
    for (size_t i = 0; mk_request_field_at(w->request, i, &name, &value); i++)
        if (passes(w, name) && !is_repeated(w->request, name, i))
            set_field(w, name, value, i);
}

/* ---- What the configuration adds ---- */

static void set_configured(struct writer *w, const struct cgi_list *list, const struct cgi_list *unless)
{
    for (const struct cgi_item *i = list->first; i; i = i->next) {
        const struct cgi_variable *v = (const struct cgi_variable *)i;
        bool again = false;
        for (const struct cgi_item *j = i->next; j && !again; j = j->next)
            again = mk_str_eq(((const struct cgi_variable *)j)->name, v->name);
        for (const struct cgi_item *j = unless ? unless->first : NULL; j && !again; j = j->next)
            again = mk_str_eq(((const struct cgi_variable *)j)->name, v->name);
        if (again)
            continue; /* the last one wins, and SetEnv over PassEnv */
        mk_buf_add(w->out, mk_str_of(v->line, strlen(v->line) + 1));
        w->n++;
    }
}

/* ---- Arguments ---- */

/* The words of a query that is one for the command line (section 4.4): all of them or none. */
static size_t add_arguments(struct writer *w)
{
    mk_str query = mk_request_query(w->request);
    enum mk_method method = mk_request_method(w->request);
    size_t n = 0, from = w->out->len;
    bool wanted = w->settings->arguments && !w->script->interpreter && query.len > 0 &&
                  (method == MK_METHOD_GET || method == MK_METHOD_HEAD) &&
                  mk_str_find(query, '=') == MK_STR_NONE;
    while (wanted && query.p) {
        mk_str word = mk_str_cut(&query, '+');
        size_t at = w->out->len;
        wanted = n++ < ARGUMENTS_MAX && mk_url_unescape(w->out, word) &&
                 mk_str_find(mk_str_skip(mk_buf_str(w->out), at), '\0') == MK_STR_NONE;
        end(w);
    }
    if (wanted)
        return n;
    w->out->len = from;
    return 0;
}

static size_t add_command(struct writer *w)
{
    const struct cgi_interpreter *in = w->script->interpreter;
    size_t n = 0;
    for (; in && in->words[n]; n++)
        mk_buf_add(w->out, mk_str_of(in->words[n], strlen(in->words[n]) + 1));
    mk_buf_add(w->out, w->script->file);
    end(w);
    return n + 1 + add_arguments(w);
}

/* ---- Everything ---- */

/* The addresses of `n` texts that follow each other; answers where the next one begins. */
static const char *point(const char **to, const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++, at += strlen(at) + 1)
        to[i] = at;
    to[n] = NULL;
    return at;
}

int cgi_environ_make(struct cgi_environ *e, struct mk_request *request, const struct cgi_script *script,
                     const struct cgi_settings *settings, int64_t length)
{
    *e = (struct cgi_environ){.text = mk_buf_growing(TEXT_MAX)};
    struct writer w = {
        .out = &e->text, .request = request, .script = script, .settings = settings, .counted = length >= 0};
    set_configured(&w, &settings->set, NULL);
    set_configured(&w, &settings->passed, &settings->set);
    set_server(&w);
    set_target(&w);
    set_client(&w);
    set_content(&w, length);
    set_fields(&w);
    size_t n_args = add_command(&w);
    if (e->text.failed) /* no single variable is longer than a head */
        return e->text.len + HEAD_MAX > TEXT_MAX ? -E2BIG : -ENOMEM;
    e->envp = mk_mem_zalloc(w.n + n_args + 2, sizeof *e->envp);
    if (!e->envp)
        return -ENOMEM;
    e->argv = e->envp + w.n + 1;
    point(e->argv, point(e->envp, e->text.p, w.n), n_args);
    return 0;
}

void cgi_environ_free(struct cgi_environ *e)
{
    mk_mem_free(e->envp);
    mk_buf_free(&e->text);
    *e = (struct cgi_environ){0};
}
