/* SPDX-License-Identifier: Apache-2.0 */
/* A form in two steps: asks for a name, then for an address, and keeps both in a session, which a cookie identifies.
 * The calling thread runs the server, so the sessions need no lock. */
#include <errno.h>
#include <monkey/cookie.h>
#include <monkey/form.h>
#include <monkey/server.h>
#include <monkey/text.h>
#include <stdio.h>

/* ---- Sessions ---- */

enum { ID_LEN = 32, VALUE_MAX = 63, SESSIONS = 1000 };

struct session {
    char id[ID_LEN + 1]; /* empty: not in use */
    char name[VALUE_MAX + 1], mail[VALUE_MAX + 1];
};

static struct session sessions[SESSIONS];
static unsigned next_session; /* the next one to use; when all are in use, the oldest one ends */

static struct session *find_session(mk_str id)
{
    for (size_t i = 0; id.len == ID_LEN && i < SESSIONS; i++)
        if (mk_consttime_eq(id, mk_str_of(sessions[i].id, ID_LEN)))
            return &sessions[i];
    return NULL;
}

/* Starts a session, and sends its cookie. A client can never choose the ID. NULL: out of memory. */
static struct session *begin_session(struct mk_request *request, struct mk_response *response)
{
    struct session *s = &sessions[next_session++ % SESSIONS];
    unsigned char random[ID_LEN / 2];
    mk_random(random, sizeof random);
    *s = (struct session){.name = "", .mail = ""};
    struct mk_buf id = mk_buf_fixed(s->id, ID_LEN);
    mk_hex_encode(&id, mk_str_of((const char *)random, sizeof random));
    const struct mk_cookie cookie = {.name = "session", .value = mk_buf_str(&id)};
    return mk_response_add_cookie(request, response, &cookie) ? NULL : s;
}

/* The session of the client, which begins with the first request. NULL: out of memory. */
static struct session *current_session(struct mk_request *request, struct mk_response *response)
{
    mk_str id;
    int e = mk_request_cookie(request, "session", &id);
    struct session *s = e ? NULL : find_session(id);
    return s || e == -ENOMEM ? s : begin_session(request, response);
}

/* ---- Pages ---- */

static enum mk_verdict fail(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    return MK_ERROR;
}

static enum mk_verdict send_page(struct mk_response *response, const struct mk_buf *page)
{
    if (page->failed ||
        mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("text/html; charset=utf-8")) ||
        mk_response_add_header(response, MK_STR("Cache-Control"), MK_STR("no-store")) ||
        mk_response_set_body(response, mk_buf_str(page)))
        return fail(response, 503);
    return MK_DONE;
}

/* Answers a POST with the address of the next page, so that a reload does not send the form again. */
static enum mk_verdict redirect(struct mk_response *response, const char *path)
{
    mk_response_set_status(response, 303);
    mk_response_add_header(response, MK_STR("Location"), mk_str_from_c(path));
    return MK_DONE;
}

/* A page with one text field. */
static enum mk_verdict send_form(struct mk_response *response, const char *field, const char *label,
                                 const char *value)
{
    char room[2048];
    struct mk_buf page = mk_buf_fixed(room, sizeof room);
    mk_buf_addf(
        &page,
        "<!doctype html><title>%s</title><form method=post><label>%s <input name=%s maxlength=%d value=\"",
        label, label, field, VALUE_MAX);
    mk_html_escape(&page, mk_str_from_c(value));
    mk_buf_addf(&page, "\"></label> <button>Next</button></form>\n");
    return send_page(response, &page);
}

/* ---- Handlers ---- */

/* Where a step of the form is in a session, and what follows it. */
struct step {
    const char *field, *label, *next;
    size_t offset;
};

static struct step first = {"name", "Your name", "/mail", offsetof(struct session, name)};
static struct step second = {"mail", "Your address", "/done", offsetof(struct session, mail)};

static enum mk_verdict show_step(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct step *step = data;
    const struct session *s = current_session(request, response);
    return s ? send_form(response, step->field, step->label, (const char *)s + step->offset)
             : fail(response, 503);
}

static enum mk_verdict receive_step(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_form_limits limits = {.size = 1024, .value = VALUE_MAX};
    const struct step *step = data;
    const struct mk_form *form;
    int e = mk_request_form(request, &limits, NULL, &form);
    if (e == -EAGAIN)
        return MK_WAIT;
    if (e)
        return fail(response, mk_form_status(e));
    mk_str value = mk_form_get(form, step->field);
    if (!value.p) /* absent; an empty field is present */
        return fail(response, 400);
    struct session *s = current_session(request, response);
    if (!s)
        return fail(response, 503);
    memcpy((char *)s + step->offset, value.p, value.len + 1);
    return redirect(response, value.len ? step->next : mk_request_path(request).p);
}

static enum mk_verdict show_end(struct mk_request *request, struct mk_response *response, void *data)
{
    char room[2048];
    struct mk_buf page = mk_buf_fixed(room, sizeof room);
    const struct session *s = current_session(request, response);
    (void)data;
    if (!s)
        return fail(response, 503);
    if (!*s->name || !*s->mail)
        return redirect(response, *s->name ? "/mail" : "/");
    mk_buf_addf(&page, "<!doctype html><title>Thank you</title><p>Thank you, ");
    mk_html_escape(&page, mk_str_from_c(s->name));
    mk_buf_addf(&page, ". We will write to ");
    mk_html_escape(&page, mk_str_from_c(s->mail));
    mk_buf_addf(&page, ".\n");
    return send_page(response, &page);
}

static int add_routes(struct mk_server *s)
{
    int e = mk_server_add_route(s, "GET /", show_step, &first);
    e = e ? e : mk_server_add_route(s, "POST /", receive_step, &first);
    e = e ? e : mk_server_add_route(s, "GET /mail", show_step, &second);
    e = e ? e : mk_server_add_route(s, "POST /mail", receive_step, &second);
    return e ? e : mk_server_add_route(s, "GET /done", show_end, NULL);
}

int main(int argc, char **argv)
{
    unsigned port;
    struct mk_server *s = mk_server_new(NULL);
    if (add_routes(s) || mk_server_listen(s, argc > 1 ? argv[1] : "127.0.0.1:2001", &port)) {
        fprintf(stderr, "forms: %s\n", mk_server_error(s));
        mk_server_free(s);
        return 1;
    }
    printf("http://127.0.0.1:%u/\n", port);
    fflush(stdout);
    int err = mk_server_run(s);
    mk_server_free(s);
    return err != 0;
}
