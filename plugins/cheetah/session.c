/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <unistd.h>

#include "commands.h"
#include "safe.h"

enum {
    OUT_MAX = 4 << 20, /* of an answer that is made at once */
    ROOM = 64 * 1024,  /* below this there is room for more of one that is made bit by bit */
    KEPT = 64 * 1024,  /* memory of a session that has nothing to say */
    COMMANDS_MAX = 16, /* in one turn */
    NEXT_TURN_MS = 1,
};

struct shell_session {
    struct shell_session *next, **link;
    struct shell *shell;
    int fd, seat;
    struct ucred who;
    struct mk_watcher *watcher;
    struct mk_alarm *idle, *clock;
    uint64_t active_ms;
    struct mk_buf out;
    const struct shell_job *job; /* NULL: the next line may be looked at */
    void *state;
    uint64_t token;
    size_t in_len;
    bool overlong;  /* what comes up to the end of the line is not wanted */
    bool dismissed; /* ends once everything is said */
    bool dead;
    char in[SHELL_LINE_MAX];
};

/* ---- What commands call ---- */

struct shell *shell_session_shell(const struct shell_session *s)
{
    return s->shell;
}

void shell_session_log(const struct shell_session *s, const char *what)
{
    mk_worker_log(s->shell->worker, MK_LOG_INFO, "shell: process %d of user %u, group %u %s", (int)s->who.pid,
                  (unsigned)s->who.uid, (unsigned)s->who.gid, what);
}

static void add_line(struct shell_session *s, char tag, mk_str line)
{
    mk_buf_add_char(&s->out, tag);
    shell_safe_add(&s->out, line);
    mk_buf_add_char(&s->out, '\n');
}

void shell_session_say(struct shell_session *s, mk_str lines)
{
    while (lines.len && !s->out.failed)
        add_line(s, ' ', mk_str_cut(&lines, '\n'));
}

static void add_formatted(struct shell_session *s, char tag, const char *fmt, va_list args)
    MK_API_PRINTF(3, 0);

static void add_formatted(struct shell_session *s, char tag, const char *fmt, va_list args)
{
    char room[1024];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    mk_buf_addv(&text, fmt, args);
    add_line(s, tag, mk_buf_str(&text));
}

void shell_session_remark(struct shell_session *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_formatted(s, '#', fmt, args);
    va_end(args);
}

void shell_session_answer(struct shell_session *s, enum shell_tag tag, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_formatted(s, (char)tag, fmt, args);
    va_end(args);
    s->job = NULL;
    mk_mem_free(s->state);
    s->state = NULL;
    mk_alarm_stop(s->clock);
}

void shell_session_dismiss(struct shell_session *s)
{
    s->dismissed = true;
}

void *shell_session_wait(struct shell_session *s, const struct shell_job *job, size_t size)
{
    s->state = mk_mem_zalloc(1, size);
    if (!s->state) {
        shell_session_answer(s, SHELL_FAILED, "out of memory");
        return NULL;
    }
    s->job = job;
    mk_random(&s->token, sizeof s->token);
    return s->state;
}

void *shell_session_state(const struct shell_session *s)
{
    return s->state;
}

uint64_t shell_session_token(const struct shell_session *s)
{
    return s->token;
}

void shell_session_set_time(struct shell_session *s, uint32_t ms)
{
    mk_alarm_set(s->clock, ms);
}

/* ---- Out ---- */

/* Sends what can be sent. An answer that could not be made whole breaks off: the client sees that its last
 * line is missing. */
static void flush(struct shell_session *s)
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
            mk_buf_drop(&s->out, (size_t)n);
            s->active_ms = mk_worker_now_ms(s->shell->worker);
        }
    }
    if (!s->out.len && s->out.cap > KEPT)
        mk_buf_free(&s->out);
}

/* Nothing of it was sent yet: then it can be said that it cannot be said. */
static void replace_failed_answer(struct shell_session *s)
{
    mk_buf_clear(&s->out);
    shell_session_answer(s, SHELL_FAILED, "the answer is longer than %d MB, or there is no memory for it",
                         OUT_MAX >> 20);
}

/* ---- In ---- */

static void run(struct shell_session *s, mk_str line)
{
    if (mk_str_ends(line, MK_STR("\r")))
        line = mk_str_take(line, line.len - 1);
    if (s->overlong)
        shell_session_answer(s, SHELL_MISUSED, "a line has at most %d bytes", SHELL_LINE_MAX - 1);
    else if (shell_is_superseded(s->shell->worker))
        shell_session_answer(s, SHELL_ELSEWHERE, "this process ends");
    else
        shell_command_run(s, line);
    s->overlong = false;
    if (s->out.failed)
        replace_failed_answer(s);
}

/* False: there is none, whole. */
static bool run_line(struct shell_session *s)
{
    char line[SHELL_LINE_MAX];
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
    run(s, mk_str_of(line, len));
    return true;
}

/* False: there is nothing to receive. */
static bool receive(struct shell_session *s)
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

/* ---- Going on ---- */

static void end(struct shell_session *s)
{
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    mk_watcher_free(s->watcher);
    mk_alarm_free(s->idle);
    mk_alarm_free(s->clock);
    close(s->fd);
    shell_seat_leave(s->shell->cheetah->seats, s->seat);
    mk_buf_free(&s->out);
    mk_mem_free(s->state);
    mk_mem_free(s);
}

/* False: it waits for something. Nothing is read from a client that does not take what it asked for. */
static bool go_on(struct shell_session *s, unsigned *commands)
{
    const struct shell_job *job = s->job;
    flush(s);
    if (s->dead)
        return false;
    if (job) {
        if (s->out.len < ROOM && job->on_room)
            job->on_room(s);
        return !s->job;
    }
    if (s->out.len)
        return false;
    if (s->dismissed) {
        s->dead = true;
        return false;
    }
    if (*commands == COMMANDS_MAX) {
        mk_alarm_set(s->clock, NEXT_TURN_MS);
        return false;
    }
    ++*commands;
    return run_line(s) || receive(s);
}

/* Whoever calls this does not use the session any more. */
static void advance(struct shell_session *s)
{
    unsigned commands = 0;
    while (!s->dead && go_on(s, &commands))
        ;
    if (s->dead)
        end(s);
}

/* ---- What it waits for ---- */

static void on_ready(void *ctx, unsigned which)
{
    (void)which;
    advance(ctx);
}

static void on_clock(void *ctx)
{
    struct shell_session *s = ctx;
    if (s->job && s->job->on_time)
        s->job->on_time(s);
    advance(s);
}

static void on_idle(void *ctx)
{
    struct shell_session *s = ctx;
    uint64_t idle_ms = s->shell->cheetah->settings.idle_ms;
    uint64_t passed_ms = mk_worker_now_ms(s->shell->worker) - s->active_ms;
    if (passed_ms < idle_ms || s->job) {
        uint64_t rest_ms = passed_ms < idle_ms ? idle_ms - passed_ms : idle_ms;
        mk_alarm_set(s->idle, rest_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)rest_ms);
        return;
    }
    if (!s->out.len)
        shell_session_answer(s, SHELL_ELSEWHERE, "nothing was asked for too long");
    flush(s);
    end(s);
}

/* ---- Life ---- */

static bool start_waiting(struct shell_session *s)
{
    struct mk_worker *w = s->shell->worker;
    uint64_t idle_ms = s->shell->cheetah->settings.idle_ms;
    s->idle = mk_alarm_new(w, on_idle, s);
    s->clock = mk_alarm_new(w, on_clock, s);
    s->watcher = mk_watcher_new(w, s->fd, MK_READABLE | MK_WRITABLE, on_ready, s);
    if (!s->idle || !s->clock || !s->watcher)
        return false;
    if (idle_ms)
        mk_alarm_set(s->idle, idle_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)idle_ms);
    return true;
}

bool shell_session_begin(struct shell *shell, int fd, int seat, const struct ucred *who)
{
    struct shell_session *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return false;
    s->shell = shell;
    s->fd = fd;
    s->seat = seat;
    s->who = *who;
    s->active_ms = mk_worker_now_ms(shell->worker);
    s->out = mk_buf_growing(OUT_MAX);
    if (!start_waiting(s)) {
        mk_watcher_free(s->watcher);
        mk_alarm_free(s->idle);
        mk_alarm_free(s->clock);
        mk_mem_free(s);
        return false;
    }
    s->next = shell->sessions;
    s->link = &shell->sessions;
    if (s->next)
        s->next->link = &s->next;
    shell->sessions = s;
    shell_session_log(s, "is here");
    shell_command_greet(s);
    advance(s);
    return true;
}

static void tell_end(struct shell_session *s)
{
    if (s->job && s->job->on_stop)
        s->job->on_stop(s);
    if (s->job)
        shell_session_answer(s, SHELL_FAILED, "the process that was asked ends");
    shell_session_answer(s, SHELL_ELSEWHERE, "this process ends");
    flush(s);
}

void shell_session_end_all(struct shell *shell)
{
    while (shell->sessions) {
        struct shell_session *s = shell->sessions;
        tell_end(s);
        end(s);
    }
}

void shell_session_hear(struct shell *shell, const struct shell_note *note, mk_str text)
{
    struct shell_session *s = shell->sessions;
    while (s && !(s->job && s->token == note->token))
        s = s->next;
    if (!s || !s->job->on_note)
        return;
    s->job->on_note(s, note, text);
    advance(s);
}
