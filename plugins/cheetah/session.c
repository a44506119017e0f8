/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <monkey/version.h>
#include <unistd.h>

#include "escape.h"
#include "protocol.h"

enum {
    OUT_MAX = 4 << 20, /* maximum size of a response that is written at once */
    ROOM = 64 * 1024,  /* a deferred response continues when less unsent output than this is left */
    KEPT = 64 * 1024,  /* buffer size that a session without output keeps */
    COMMANDS_MAX = 16, /* maximum number of commands per loop iteration */
    RESUME_MS = 1,
};

struct cheetah_session {
    struct cheetah_session *next, **link;
    struct shell *shell;
    int fd, slot;
    struct ucred who;
    struct mk_watcher *watcher;
    struct mk_timer idle, timer;
    uint64_t active_ms;
    struct mk_buf out;
    const struct cheetah_deferred_command *job; /* NULL: ready for the next line */
    void *state;
    uint64_t token;
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

static void append_line(struct cheetah_session *s, char tag, mk_str line)
{
    mk_buf_add_char(&s->out, tag);
    cheetah_escape_append(&s->out, line);
    mk_buf_add_char(&s->out, '\n');
}

void cheetah_session_write_output(struct cheetah_session *s, mk_str lines)
{
    while (lines.len && !s->out.failed)
        append_line(s, ' ', mk_str_cut(&lines, '\n'));
}

static void append_formatted(struct cheetah_session *s, char tag, const char *fmt, va_list args)
    MK_API_PRINTF(3, 0);

static void append_formatted(struct cheetah_session *s, char tag, const char *fmt, va_list args)
{
    char buf[1024];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addv(&text, fmt, args);
    append_line(s, tag, mk_buf_str(&text));
}

void cheetah_session_write_note(struct cheetah_session *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    append_formatted(s, '#', fmt, args);
    va_end(args);
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

static void run_command(struct cheetah_session *s, mk_str line)
{
    if (mk_str_ends(line, MK_STR("\r")))
        line = mk_str_first(line, line.len - 1);
    if (s->overlong)
        cheetah_session_finish_response(s, CHEETAH_USAGE_ERROR, "a line has at most %d bytes",
                                        CHEETAH_LINE_MAX - 1);
    else if (cheetah_is_worker_superseded(s->shell->worker))
        cheetah_session_finish_response(s, CHEETAH_RECONNECT, "this process exits");
    else
        s->shell->run(s, line);
    s->overlong = false;
    if (s->out.failed)
        replace_failed_response(s);
}

/* Returns false if there is no complete line. */
static bool run_buffered_line(struct cheetah_session *s)
{
    char line[CHEETAH_LINE_MAX];
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
    close(s->fd);
    cheetah_session_slot_release(s->shell->cheetah->slots, s->slot);
    mk_buf_free(&s->out);
    mk_mem_free(s->state);
    mk_mem_free(s);
}

/* Returns false if the session has to wait. Does not read from a client that does not read its responses. */
static bool advance_session_once(struct cheetah_session *s, unsigned *commands)
{
    const struct cheetah_deferred_command *job = s->job;
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
    if (!s->out.len)
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
    cheetah_session_finish_response(s, CHEETAH_OK, CHEETAH_GREETING " monkey/%s process %d", mk_version(),
                                    (int)getpid());
    advance_session_until_blocked(s);
    return true;
}

static void end_session_on_worker_exit(struct cheetah_session *s)
{
    if (s->job && s->job->on_stop)
        s->job->on_stop(s);
    if (s->job)
        cheetah_session_finish_response(s, CHEETAH_FAILED, "this process exits");
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

void cheetah_session_on_message(struct shell *shell, const struct cheetah_message *note, mk_str text)
{
    struct cheetah_session *s = shell->sessions;
    while (s && !(s->job && s->token == note->token))
        s = s->next;
    if (!s || !s->job->on_message)
        return;
    s->job->on_message(s, note, text);
    advance_session_until_blocked(s);
}
