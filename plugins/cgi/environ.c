/* SPDX-License-Identifier: Apache-2.0 */
#include "environ.h"

#include <errno.h>

#include <monkey/cgi.h>

enum { TEXT_MAX = 118 * 1024, HEAD_MAX = 64 * 1024, ARGUMENTS_MAX = 64 };

struct writer {
    struct mk_buf *out;
    struct mk_request *request;
    const struct cgi_script *script;
    const struct cgi_settings *settings;
    int64_t length; /* body length; -1: unknown */
    size_t n;       /* variables so far */
};

/* ---- Variables ---- */

static void append_nul(struct writer *w)
{
    mk_buf_add_char(w->out, '\0');
}

static void set_variable(struct writer *w, mk_str name, mk_str value)
{
    mk_buf_add(w->out, name);
    mk_buf_add_char(w->out, '=');
    mk_buf_add(w->out, value);
    append_nul(w);
    w->n++;
}

/* Sets a variable, unless SetEnv or PassEnv has set it. */
static void set_unless_configured(struct writer *w, mk_str name, mk_str value)
{
    for (size_t i = 0; i < w->settings->n_variables; i++)
        if (mk_str_eq(w->settings->variables[i].name, name))
            return;
    if (value.p)
        set_variable(w, name, value);
}

static void set_content_length(struct writer *w)
{
    char digits[24];
    struct mk_buf text = mk_buf_fixed(digits, sizeof digits);
    enum mk_method method = mk_request_method(w->request);
    bool has_none = method == MK_METHOD_GET || method == MK_METHOD_HEAD;
    bool is_told = mk_request_header(w->request, MK_STR("Content-Length")).p && !has_none;
    if (w->length < 0 || (w->length == 0 && !is_told))
        return;
    mk_buf_add_num(&text, (uint64_t)w->length);
    set_unless_configured(w, MK_STR("CONTENT_LENGTH"), mk_buf_str(&text));
}

/* Sets the variables that only programs started by the plugin get. */
static void set_process_variables(struct writer *w)
{
    set_content_length(w);
    if (w->length < 0) /* tells the script that there is a body */
        set_unless_configured(w, MK_STR("HTTP_TRANSFER_ENCODING"),
                              mk_request_header(w->request, MK_STR("Transfer-Encoding")));
    set_unless_configured(w, MK_STR("PATH"), MK_STR(CGI_PATH));
}

/* Returns false if out of memory. */
static bool set_all_variables(struct writer *w)
{
    const struct cgi_script *script = w->script;
    const struct mk_cgi_options options = {
        .script_name = script->name,
        .script_filename = script->file,
        .document_root = mk_vhost_root(mk_request_vhost(w->request)),
        .path_info = script->info,
        .path_translated =
            script->info.len ? mk_request_translate_path(w->request, script->info) : mk_str_of(NULL, 0),
        .length = w->length,
        .authorization = w->settings->authorization,
        .underscores = w->settings->underscores,
        .forwarded = w->settings->forwarded,
        .overrides = w->settings->variables,
        .n_overrides = w->settings->n_variables};
    struct mk_header *variables;
    size_t n;
    if (mk_request_add_context(w->request) || mk_cgi_variables(w->request, &options, &variables, &n))
        return false;
    for (size_t i = 0; i < n; i++)
        set_variable(w, variables[i].name, variables[i].value);
    set_process_variables(w);
    return true;
}

/* ---- Arguments ---- */

/* Adds the words of a command-line query (section 4.4), either all of them or none. */
static size_t add_arguments(struct writer *w)
{
    mk_str query = mk_request_query(w->request);
    enum mk_method method = mk_request_method(w->request);
    size_t n = 0, from = w->out->len;
    bool expected = w->settings->arguments && !w->script->interpreter && query.len > 0 &&
                    (method == MK_METHOD_GET || method == MK_METHOD_HEAD) &&
                    mk_str_find(query, '=') == MK_STR_NONE;
    while (expected && query.p) {
        mk_str word = mk_str_cut(&query, '+');
        size_t at = w->out->len;
        expected = n++ < ARGUMENTS_MAX && mk_url_unescape(w->out, word) &&
                   mk_str_find(mk_str_skip(mk_buf_str(w->out), at), '\0') == MK_STR_NONE;
        append_nul(w);
    }
    if (expected)
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
    append_nul(w);
    return n + 1 + add_arguments(w);
}

/* ---- Building ---- */

/* Fills in pointers to `n` consecutive strings; returns the start of the next string. */
static const char *fill_pointers(const char **to, const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++, at += strlen(at) + 1)
        to[i] = at;
    to[n] = NULL;
    return at;
}

int cgi_environ_build(struct cgi_environ *e, struct mk_request *request, const struct cgi_script *script,
                      const struct cgi_settings *settings, int64_t length)
{
    *e = (struct cgi_environ){.text = mk_buf_growing(TEXT_MAX)};
    struct writer w = {
        .out = &e->text, .request = request, .script = script, .settings = settings, .length = length};
    if (!set_all_variables(&w))
        return -ENOMEM;
    size_t n_args = add_command(&w);
    /* The buffer failed either because the text exceeds TEXT_MAX or because memory ran out. No variable is
     * longer than a request head, so if a whole head would still have fit, memory ran out. */
    if (e->text.failed)
        return e->text.len + HEAD_MAX > TEXT_MAX ? -E2BIG : -ENOMEM;
    e->envp = mk_mem_zalloc(w.n + n_args + 2, sizeof *e->envp);
    if (!e->envp)
        return -ENOMEM;
    e->argv = e->envp + w.n + 1;
    fill_pointers(e->argv, fill_pointers(e->envp, e->text.p, w.n), n_args);
    return 0;
}

void cgi_environ_free(struct cgi_environ *e)
{
    mk_mem_free(e->envp);
    mk_buf_free(&e->text);
    *e = (struct cgi_environ){0};
}
