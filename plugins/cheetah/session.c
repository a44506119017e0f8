/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <monkey/version.h>
#include <stdio.h>
#include <unistd.h>

#include "escape.h"
#include "http.h"
#include "protocol.h"

enum {
    OUT_MAX = 4 << 20, /* maximum size of a response that is written at once */
    ROOM = 64 * 1024,  /* a deferred response continues when less unsent output than this is left */
    KEPT = 64 * 1024,  /* buffer size that a session without output keeps */
    COMMANDS_MAX = 16, /* maximum number of commands per loop iteration */
    RESUME_MS = 1,
    CHUNK_MIN = 32 * 1024, /* a response that becomes longer is sent in chunks */
};

struct cheetah_session {
    struct cheetah_session *next, **link;
    struct shell *shell;
    int fd, slot;
    struct ucred who;
    struct mk_watcher *watcher;
    struct mk_timer idle, timer;
    struct mk_timer request; /* limits the time in which an HTTP request arrives */
    uint64_t active_ms;
    struct mk_buf out;
    struct cheetah_http http;
    bool is_http;                               /* the client speaks HTTP */
    enum cheetah_http_type type;                /* of the response over HTTP */
    const struct cheetah_deferred_command *job; /* NULL: ready for the next line */
    void *state;
    uint64_t token;
    bool holds_worker;
    size_t in_len;
    bool overlong;   /* input is ignored until the end of the line */
    bool is_closing; /* the session ends when all output is sent */
    bool dead;
    char in[CHEETAH_LINE_MAX];
};

/* ---- For commands ---- */

struct shell *cheetah_session_shell(const struct cheetah_session *s)
{
    return s->shell;
}

void cheetah_session_log(const struct cheetah_session *s, const char *what)
{
    mk_worker_log(s->shell->worker, MK_LOG_INFO, "shell: process %d of user %u, group %u %s", (int)s->who.pid,
                  (unsigned)s->who.uid, (unsigned)s->who.gid, what);
}

void cheetah_session_describe_client(const struct cheetah_session *s, char *buf, size_t size)
{
    snprintf(buf, size, "process %d of user %u", (int)s->who.pid, (unsigned)s->who.uid);
}

void cheetah_session_log_command(const struct cheetah_session *s, const char *name, mk_str args,
                                 mk_str result)
{
    char buf[2 * CHEETAH_LINE_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf - 1);
    mk_buf_addf(&text, "runs: %s ", name);
    mk_log_escape(&text, args);
    mk_buf_add(&text, MK_STR(": "));
    mk_log_escape(&text, result);
    text.p[text.len] = '\0';
    cheetah_session_log(s, text.p);
}

static void append_line(struct cheetah_session *s, char tag, mk_str line)
{
    mk_buf_add_char(&s->out, tag);
    cheetah_escape_append(&s->out, line);
    mk_buf_add_char(&s->out, '\n');
}

void cheetah_session_write_output(struct cheetah_session *s, mk_str lines)
{
    if (s->http.is_active) {
        mk_buf_add(&s->http.content, lines);
        if (lines.len && !mk_str_ends(lines, MK_STR("\n")))
            mk_buf_add_char(&s->http.content, '\n');
    }
    while (!s->http.is_active && lines.len && !s->out.failed)
        append_line(s, ' ', mk_str_cut(&lines, '\n'));
}

/* ---- HTTP ---- */

/* Sends an error as the response, or aborts a response that has begun. */
static void send_http_error(struct cheetah_session *s, unsigned status, mk_str text)
{
    struct cheetah_http *h = &s->http;
    if (h->is_head_sent) {
        s->is_closing = true;
        cheetah_http_reset(h);
        return;
    }
    mk_buf_clear(&h->content);
    cheetah_http_write_text(h, &h->content, "error", text);
    cheetah_http_write_head(h, &s->out, status, CHEETAH_HTTP_JSON, (int64_t)h->content.len);
    mk_buf_add(&s->out, mk_buf_str(&h->content));
    s->is_closing |= h->closes;
    cheetah_http_reset(h);
}

static void send_http_success(struct cheetah_session *s, mk_str text)
{
    struct cheetah_http *h = &s->http;
    bool is_change = strcmp(h->method, "GET") != 0; /* a GET request may have no output */
    if (!h->content.len && !h->is_head_sent && (is_change || text.len)) {
        cheetah_http_write_text(h, &h->content, "message", text);
        s->type = CHEETAH_HTTP_JSON;
    }
    if (!h->is_head_sent)
        cheetah_http_write_head(h, &s->out, 200, s->type, (int64_t)h->content.len);
    if (h->is_chunked && h->content.len)
        cheetah_http_write_chunk(&s->out, mk_buf_str(&h->content));
    if (h->is_chunked)
        cheetah_http_write_chunk(&s->out, MK_STR(""));
    else
        mk_buf_add(&s->out, mk_buf_str(&h->content));
    s->is_closing |= h->closes;
    cheetah_http_reset(h);
}

static void finish_http_response(struct cheetah_session *s, enum cheetah_tag tag, mk_str text)
{
    bool reconnects = tag == CHEETAH_RECONNECT;
    s->http.closes |= reconnects;
    if (s->http.content.failed)
        send_http_error(s, 500, MK_STR("the response is too large, or the server is out of memory"));
    else if (tag == CHEETAH_OK)
        send_http_success(s, text);
    else
        send_http_error(s, reconnects ? 503 : tag == CHEETAH_USAGE_ERROR ? 400 : 409, text);
}

/* Sends a part of a long response. */
static void send_http_chunk(struct cheetah_session *s)
{
    struct cheetah_http *h = &s->http;
    if (!h->is_active || h->content.len < CHUNK_MIN || h->content.failed)
        return;
    if (!h->is_head_sent)
        cheetah_http_write_head(h, &s->out, 200, s->type, -1);
    cheetah_http_write_chunk(&s->out, mk_buf_str(&h->content));
    mk_buf_clear(&h->content);
}

/* ---- Lines of a response ---- */

static void append_formatted(struct cheetah_session *s, char tag, const char *fmt, va_list args)
    MK_API_PRINTF(3, 0);

static void append_formatted(struct cheetah_session *s, char tag, const char *fmt, va_list args)
{
    char buf[1024];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addv(&text, fmt, args);
    if (s->http.is_active && tag == '#')
        mk_buf_addf(&s->http.notes, "%.*s\n", MK_STR_ARG(mk_buf_str(&text)));
    else if (s->http.is_active)
        finish_http_response(s, (enum cheetah_tag)tag, mk_buf_str(&text));
    else
        append_line(s, tag, mk_buf_str(&text));
}

void cheetah_session_write_note(struct cheetah_session *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    append_formatted(s, '#', fmt, args);
    va_end(args);
}

static void release_worker(struct cheetah_session *s)
{
    if (s->holds_worker)
        mk_worker_unref(s->shell->worker);
    s->holds_worker = false;
}

void cheetah_session_hold_worker(struct cheetah_session *s)
{
    if (!s->holds_worker)
        mk_worker_ref(s->shell->worker);
    s->holds_worker = true;
}

void cheetah_session_finish_response(struct cheetah_session *s, enum cheetah_tag tag, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    append_formatted(s, (char)tag, fmt, args);
    va_end(args);
    s->job = NULL;
    mk_mem_free(s->state);
    s->state = NULL;
    mk_timer_stop(&s->timer);
    release_worker(s);
}

void cheetah_session_close_later(struct cheetah_session *s)
{
    s->is_closing = true;
}

void *cheetah_session_defer_response(struct cheetah_session *s, const struct cheetah_deferred_command *job,
                                     size_t size)
{
    s->state = mk_mem_zalloc(1, size);
    if (!s->state) {
        cheetah_session_finish_response(s, CHEETAH_FAILED, "out of memory");
        return NULL;
    }
    s->job = job;
    mk_random(&s->token, sizeof s->token);
    return s->state;
}

void *cheetah_session_state(const struct cheetah_session *s)
{
    return s->state;
}

uint64_t cheetah_session_token(const struct cheetah_session *s)
{
    return s->token;
}

void cheetah_session_set_timer(struct cheetah_session *s, uint32_t ms)
{
    mk_timer_set(&s->timer, s->shell->worker, ms);
}

/* ---- Output ---- */

/* Sends as much as possible. If the response is incomplete, ends the session: the client sees that the last
 * line is missing. */
static void flush_output(struct cheetah_session *s)
{
    if (s->out.failed)
        s->dead = true;
    while (s->out.len && !s->dead) {
        ssize_t n = send(s->fd, s->out.p, s->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0 && errno != EINTR)
            s->dead = true;
        if (n > 0) {
            mk_buf_consume(&s->out, (size_t)n);
            s->active_ms = mk_worker_now_ms(s->shell->worker);
        }
    }
    if (!s->out.len && s->out.cap > KEPT)
        mk_buf_free(&s->out);
}

/* Replaces the response with an error, which is possible because nothing was sent yet. */
static void replace_failed_response(struct cheetah_session *s)
{
    mk_buf_clear(&s->out);
    cheetah_session_finish_response(
        s, CHEETAH_FAILED, "the response exceeds %d MB, or the server is out of memory", OUT_MAX >> 20);
}

/* ---- Input ---- */

static void reject_http_request(struct cheetah_session *s, struct cheetah_http_error e)
{
    mk_timer_stop(&s->request);
    s->http.closes |= !s->http.has_head; /* the rest of the request is not read */
    send_http_error(s, e.status, mk_str_from_c(e.text));
}

static void run_http_request(struct cheetah_session *s, mk_str content)
{
    char buf[CHEETAH_LINE_MAX];
    struct mk_buf command = mk_buf_fixed(buf, sizeof buf);
    struct cheetah_http_error e = cheetah_http_command(&s->http, content, &command, &s->type);
    mk_timer_stop(&s->request);
    if (command.failed)
        e = (struct cheetah_http_error){400, "the request is too long"};
    if (e.status)
        reject_http_request(s, e);
    else if (cheetah_is_worker_superseded(s->shell->worker))
        cheetah_session_finish_response(s, CHEETAH_RECONNECT, "this process exits");
    else
        s->shell->run(s, mk_buf_str(&command));
}

/* Reads a line of a client that speaks HTTP, or its first request line. After a request, only another request may
 * follow: content that a client sends against the rules must not run as a command. */
static void read_http_line(struct cheetah_session *s, mk_str line)
{
    struct cheetah_http_error e = {0, NULL};
    bool is_first = !s->http.is_active;
    if (is_first && !line.len && !s->overlong)
        return; /* RFC 9112, 2.2: empty lines before a request are ignored */
    if (s->overlong)
        e = (struct cheetah_http_error){431, "a line has at most 4095 bytes"};
    else if (s->http.is_active)
        e = cheetah_http_read_line(&s->http, line);
    else if (!cheetah_http_is_request_line(line))
        e = (struct cheetah_http_error){400, "expected a request line"};
    else
        e = cheetah_http_begin(&s->http, line);
    s->is_http = true;
    s->overlong = false;
    if (e.status) {
        s->http.closes = true;
        reject_http_request(s, e);
    } else if (is_first) {
        mk_timer_set(&s->request, s->shell->worker, s->shell->cheetah->settings.request_ms);
    }
}

static void run_command(struct cheetah_session *s, mk_str line)
{
    if (mk_str_ends(line, MK_STR("\r")))
        line = mk_str_first(line, line.len - 1);
    if (s->is_http || (!s->overlong && cheetah_http_is_request_line(line))) {
        read_http_line(s, line);
        return;
    }
    if (s->overlong)
        cheetah_session_finish_response(s, CHEETAH_USAGE_ERROR, "a line has at most %d bytes",
                                        CHEETAH_LINE_MAX - 1);
    else if (cheetah_is_worker_superseded(s->shell->worker))
        cheetah_session_finish_response(s, CHEETAH_RECONNECT, "this process exits");
    else if (mk_str_eq(line, MK_STR(CHEETAH_HELLO)))
        cheetah_session_finish_response(s, CHEETAH_OK, CHEETAH_GREETING " monkey/%s process %d", mk_version(),
                                        (int)getpid());
    else
        s->shell->run(s, line);
    s->overlong = false;
    if (s->out.failed)
        replace_failed_response(s);
}

/* Returns false if the content of the request is incomplete. */
static bool run_buffered_request(struct cheetah_session *s)
{
    char content[CHEETAH_LINE_MAX];
    size_t len = s->http.length;
    if (s->in_len < len)
        return false;
    memcpy(content, s->in, len);
    s->in_len -= len;
    memmove(s->in, s->in + len, s->in_len);
    run_http_request(s, mk_str_of(content, len));
    return true;
}

/* Returns false if there is no complete line. */
static bool run_buffered_line(struct cheetah_session *s)
{
    char line[CHEETAH_LINE_MAX];
    if (s->http.has_head)
        return run_buffered_request(s);
    size_t len = mk_str_find(mk_str_of(s->in, s->in_len), '\n');
    if (len == MK_STR_NONE) {
        if (s->in_len == sizeof s->in) {
            s->overlong = true;
            s->in_len = 0;
        }
        return false;
    }
    memcpy(line, s->in, len);
    s->in_len -= len + 1;
    memmove(s->in, s->in + len + 1, s->in_len);
    run_command(s, mk_str_of(line, len));
    return true;
}

/* Returns false if there is nothing to receive. */
static bool receive_input(struct cheetah_session *s)
{
    ssize_t n = recv(s->fd, s->in + s->in_len, sizeof s->in - s->in_len, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR)
        return true;
    if (n == 0 || (n < 0 && errno != EAGAIN))
        s->dead = true;
    if (n <= 0)
        return false;
    s->in_len += (size_t)n;
    s->active_ms = mk_worker_now_ms(s->shell->worker);
    return true;
}

/* ---- Progress ---- */

static void free_session(struct cheetah_session *s)
{
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    mk_watcher_free(s->watcher);
    mk_timer_stop(&s->idle);
    mk_timer_stop(&s->timer);
    mk_timer_stop(&s->request);
    release_worker(s);
    close(s->fd);
    cheetah_session_slot_release(s->shell->cheetah->slots, s->slot);
    mk_buf_free(&s->out);
    cheetah_http_reset(&s->http);
    mk_mem_free(s->state);
    mk_mem_free(s);
}

/* Returns false if the session has to wait. Does not read from a client that does not read its responses. */
static bool advance_session_once(struct cheetah_session *s, unsigned *commands)
{
    const struct cheetah_deferred_command *job = s->job;
    send_http_chunk(s);
    flush_output(s);
    if (s->dead)
        return false;
    if (job) {
        if (s->out.len < ROOM && job->on_output_sent)
            job->on_output_sent(s);
        return !s->job;
    }
    if (s->out.len)
        return false;
    if (s->is_closing) {
        s->dead = true;
        return false;
    }
    if (*commands == COMMANDS_MAX) {
        mk_timer_set(&s->timer, s->shell->worker, RESUME_MS);
        return false;
    }
    ++*commands;
    return run_buffered_line(s) || receive_input(s);
}

/* May free the session, so the caller must not use it afterwards. */
static void advance_session_until_blocked(struct cheetah_session *s)
{
    unsigned commands = 0;
    while (!s->dead && advance_session_once(s, &commands))
        ;
    if (s->dead)
        free_session(s);
}

/* ---- Events ---- */

static void on_session_io(void *ctx, unsigned which)
{
    (void)which;
    advance_session_until_blocked(ctx);
}

static void on_command_timer(struct mk_timer *t)
{
    struct cheetah_session *s = MK_CONTAINER(t, struct cheetah_session, timer);
    if (s->job && s->job->on_timer)
        s->job->on_timer(s);
    advance_session_until_blocked(s);
}

static void on_request_timeout(struct mk_timer *t)
{
    struct cheetah_session *s = MK_CONTAINER(t, struct cheetah_session, request);
    s->http.closes = true;
    send_http_error(s, 408, MK_STR("the request was not complete in time"));
    advance_session_until_blocked(s);
}

static void on_idle_timeout(struct mk_timer *t)
{
    struct cheetah_session *s = MK_CONTAINER(t, struct cheetah_session, idle);
    uint64_t idle_ms = s->shell->cheetah->settings.idle_ms;
    uint64_t passed_ms = mk_worker_now_ms(s->shell->worker) - s->active_ms;
    if (passed_ms < idle_ms || s->job) {
        uint64_t rest_ms = passed_ms < idle_ms ? idle_ms - passed_ms : idle_ms;
        mk_timer_set(&s->idle, s->shell->worker, rest_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)rest_ms);
        return;
    }
    if (!s->out.len && !s->is_http)
        cheetah_session_finish_response(s, CHEETAH_RECONNECT, "no command for too long");
    flush_output(s);
    free_session(s);
}

/* ---- Lifetime ---- */

static bool watch_socket(struct cheetah_session *s)
{
    struct mk_worker *w = s->shell->worker;
    uint64_t idle_ms = s->shell->cheetah->settings.idle_ms;
    mk_timer_init(&s->idle, on_idle_timeout);
    mk_timer_init(&s->timer, on_command_timer);
    mk_timer_init(&s->request, on_request_timeout);
    s->watcher = mk_watcher_new(w, s->fd, MK_READABLE | MK_WRITABLE, on_session_io, s);
    if (!s->watcher)
        return false;
    if (idle_ms)
        mk_timer_set(&s->idle, w, idle_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)idle_ms);
    return true;
}

bool cheetah_session_open(struct shell *shell, int fd, int slot, const struct ucred *who)
{
    struct cheetah_session *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return false;
    s->shell = shell;
    s->fd = fd;
    s->slot = slot;
    s->who = *who;
    s->active_ms = mk_worker_now_ms(shell->worker);
    s->out = mk_buf_growing(OUT_MAX);
    cheetah_http_reset(&s->http);
    if (!watch_socket(s)) {
        mk_mem_free(s);
        return false;
    }
    s->next = shell->sessions;
    s->link = &shell->sessions;
    if (s->next)
        s->next->link = &s->next;
    shell->sessions = s;
    cheetah_session_log(s, "has connected");
    advance_session_until_blocked(s);
    return true;
}

static void end_session_on_worker_exit(struct cheetah_session *s)
{
    if (s->job && s->job->on_stop)
        s->job->on_stop(s);
    if (s->job)
        cheetah_session_finish_response(s, CHEETAH_FAILED, "this process exits");
    if (!s->is_http || s->http.is_active)
        cheetah_session_finish_response(s, CHEETAH_RECONNECT, "this process exits");
    flush_output(s);
}

void cheetah_session_close_all(struct shell *shell)
{
    while (shell->sessions) {
        struct cheetah_session *s = shell->sessions;
        end_session_on_worker_exit(s);
        free_session(s);
    }
}

struct cheetah_session *cheetah_session_find(const struct shell *shell, uint64_t token)
{
    struct cheetah_session *s = shell->sessions;
    while (s && !(s->job && s->token == token))
        s = s->next;
    return s;
}

void cheetah_session_advance(struct cheetah_session *s)
{
    advance_session_until_blocked(s);
}

void cheetah_session_on_message(struct shell *shell, const struct cheetah_message *note, mk_str text)
{
    struct cheetah_session *s = cheetah_session_find(shell, note->token);
    if (!s || !s->job->on_message)
        return;
    s->job->on_message(s, note, text);
    advance_session_until_blocked(s);
}
