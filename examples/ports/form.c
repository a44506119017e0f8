/* SPDX-License-Identifier: Apache-2.0 */
/* A form, in the manner of the post examples of libmicrohttpd: a page with a form, its evaluation, and a cookie that
 * counts visits. docs/guide/from-libmicrohttpd.md compares it with the original. */
#include <errno.h>
#include <monkey/cookie.h>
#include <monkey/form.h>
#include <monkey/server.h>
#include <monkey/text.h>
#include <signal.h>
#include <stdio.h>

static const char page[] = "<!doctype html><title>Form</title>\n"
                           "<form method=post action=/greet><label>Name <input name=name></label>\n"
                           "<button>Send</button></form>\n";

/* The number of visits according to the cookie; 0 if the client sent none, or an invalid one. */
static uint64_t visits_of(const struct mk_request *request)
{
    uint64_t n;
    return mk_num_parse(mk_request_cookie_view(request, "visits"), &n) && n < 1000000 ? n : 0;
}

static int count_visit(struct mk_request *request, struct mk_response *response)
{
    char text[24];
    struct mk_buf value = mk_buf_fixed(text, sizeof text);
    mk_buf_add_num(&value, visits_of(request) + 1);
    const struct mk_cookie cookie = {.name = "visits", .value = mk_buf_str(&value), .max_age = 86400};
    return mk_response_add_cookie(request, response, &cookie);
}

static enum mk_verdict show_form(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    if (count_visit(request, response))
        return MK_ERROR;
    mk_response_set_body_nocopy(response, mk_str_of(page, sizeof page - 1));
    return MK_DONE;
}

/* Called when the request arrives, and again each time more of its body has arrived. */
static enum mk_verdict greet(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct mk_form *form;
    int err = mk_request_form(request, NULL, NULL, &form);
    (void)data;
    if (err == -EAGAIN)
        return MK_WAIT;
    if (err) {
        mk_response_set_status(response, mk_form_status(err));
        return MK_ERROR;
    }
    mk_str name = mk_form_get(form, "name");
    struct mk_buf text = mk_buf_growing(4096);
    mk_buf_addf(&text, "<!doctype html><title>Form</title>\n<p>Hello ");
    mk_html_escape(&text, name.len ? name : MK_STR("stranger"));
    mk_buf_addf(&text, ", visit %llu</p>\n", (unsigned long long)visits_of(request));
    if (!text.failed)
        mk_response_set_body(response, mk_buf_str(&text));
    bool failed = text.failed;
    mk_buf_free(&text);
    return failed ? MK_ERROR : MK_DONE;
}

int main(int argc, char **argv)
{
    unsigned port;
    int number;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct mk_server *s = mk_server_new(NULL);
    if (mk_server_set_default_type(s, "text/html; charset=utf-8") ||
        mk_server_add_route(s, "GET /", show_form, NULL) ||
        mk_server_add_route(s, "POST /greet", greet, NULL) ||
        mk_server_listen(s, argc > 1 ? argv[1] : "127.0.0.1:2001", &port) || mk_server_start(s, 1)) {
        fprintf(stderr, "form: %s\n", mk_server_error(s));
        mk_server_free(s);
        return 1;
    }
    printf("http://127.0.0.1:%u/\n", port);
    fflush(stdout);
    sigwait(&set, &number);
    mk_server_stop(s, 5000);
    int err = mk_server_wait(s);
    mk_server_free(s);
    return err != 0;
}
