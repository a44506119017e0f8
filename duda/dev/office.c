/* SPDX-License-Identifier: Apache-2.0 */
#include "office.h"

#include <errno.h>
#include <monkey/sse.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool dev_office_open(struct dev_office *o, const char *path, const struct dev_office_ops *ops, void *ctx)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    *o = (struct dev_office){.fd = -1, .ops = ops, .ctx = ctx};
    for (size_t i = 0; i < DEV_VISITORS_MAX; i++)
        o->at[i].fd = -1;
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    o->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (o->fd >= 0 && bind(o->fd, (const struct sockaddr *)&a, sizeof a) == 0 && listen(o->fd, 1024) == 0)
        return true;
    fprintf(stderr, "monkey run: %s: %s\n", path, strerror(errno));
    return false;
}

static void leave(struct dev_visitor *v)
{
    close(v->fd);
    v->fd = -1;
    mk_buf_free(&v->question);
    mk_buf_free(&v->answer);
}

void dev_office_close(struct dev_office *o)
{
    for (size_t i = 0; i < DEV_VISITORS_MAX; i++)
        if (o->at[i].fd >= 0)
            leave(&o->at[i]);
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
}

static void add_event(struct dev_visitor *v, uint64_t state)
{
    char room[24];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    mk_buf_add_num(&text, state);
    if (mk_sse_write(&v->answer, &(struct mk_sse_event){.data = mk_buf_str(&text)}))
        v->answer.failed = true;
}

static void send_answer(struct dev_visitor *v)
{
    ssize_t n = 0;
    while (v->answer.len && (n = send(v->fd, v->answer.p, v->answer.len, MSG_NOSIGNAL | MSG_DONTWAIT)) > 0)
        mk_buf_drop(&v->answer, (size_t)n);
    bool broken = v->answer.failed || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (broken || (v->ends && v->answer.len == 0))
        leave(v);
}

void dev_office_set_state(struct dev_office *o, uint64_t state)
{
    o->state = state;
    for (size_t i = 0; i < DEV_VISITORS_MAX; i++)
        if (o->at[i].fd >= 0 && o->at[i].gets_events) {
            add_event(&o->at[i], state);
            send_answer(&o->at[i]);
        }
}

size_t dev_office_poll(const struct dev_office *o, struct pollfd *fds)
{
    size_t n = 0;
    for (size_t i = 0; i < DEV_VISITORS_MAX; i++)
        if (o->at[i].fd >= 0)
            fds[n++] = (struct pollfd){.fd = o->at[i].fd,
                                       .events = (short)(POLLIN | (o->at[i].answer.len ? POLLOUT : 0))};
    if (n < DEV_VISITORS_MAX) /* else nobody could come in */
        fds[n++] = (struct pollfd){.fd = o->fd, .events = POLLIN};
    return n;
}

static void enter(struct dev_office *o)
{
    int fd;
    for (size_t i = 0; i < DEV_VISITORS_MAX; i++) {
        if (o->at[i].fd >= 0)
            continue;
        if ((fd = accept4(o->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0)
            return;
        o->at[i] = (struct dev_visitor){
            .fd = fd, .question = mk_buf_growing(DEV_LINE_MAX), .answer = mk_buf_growing(2 * DEV_PAGE_MAX)};
    }
}

/* Pages that nobody looks at any more may hold streams: the oldest makes room. A browser that misses it asks
 * again. */
static void add_stream(struct dev_office *o, struct dev_visitor *v)
{
    struct dev_visitor *oldest = NULL;
    size_t n = 0;
    for (size_t i = 0; i < DEV_VISITORS_MAX; i++) {
        struct dev_visitor *one = &o->at[i];
        bool counts = one->fd >= 0 && one->gets_events;
        n += counts;
        if (counts && (!oldest || one->since < oldest->since))
            oldest = one;
    }
    if (oldest && n >= DEV_STREAMS_MAX)
        leave(oldest);
    v->gets_events = true;
    v->since = o->n_streams++;
    add_event(v, o->state);
}

static void answer(struct dev_office *o, struct dev_visitor *v, mk_str question)
{
    mk_str what = mk_str_word(&question);
    if (mk_str_eq(what, MK_STR("events"))) {
        add_stream(o, v);
        return;
    }
    bool html = mk_str_eq(mk_str_word(&question), MK_STR("html"));
    mk_str method = mk_str_word(&question), target = mk_str_word(&question);
    v->ends = true;
    if (!mk_str_eq(what, MK_STR("ask")))
        o->ops->fault(o->ctx, html, method, target, &v->answer);
    else if (!o->ops->ask(o->ctx, html, method, target, v->fd, &v->answer))
        leave(v);
}

static void read_question(struct dev_office *o, struct dev_visitor *v)
{
    char room[4096];
    ssize_t n;
    while ((n = recv(v->fd, room, sizeof room, MSG_DONTWAIT)) > 0)
        mk_buf_add(&v->question, mk_str_of(room, (size_t)n));
    size_t end = mk_str_find(mk_buf_str(&v->question), '\n');
    bool has_left = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || v->question.failed;
    if (has_left) {
        leave(v);
    } else if (end != MK_STR_NONE && !v->ends && !v->gets_events) {
        answer(o, v, mk_str_of(v->question.p, end));
        if (v->fd >= 0)
            send_answer(v);
    }
}

void dev_office_serve(struct dev_office *o)
{
    enter(o);
    for (size_t i = 0; i < DEV_VISITORS_MAX; i++)
        if (o->at[i].fd >= 0)
            read_question(o, &o->at[i]);
    for (size_t i = 0; i < DEV_VISITORS_MAX; i++)
        if (o->at[i].fd >= 0 && o->at[i].answer.len)
            send_answer(&o->at[i]);
}
