/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets whose clients must miss no kept message. The test replaces the endpoint, the handler and the
 * clock; the log and the table of topics are real. */
#include <duda/scope.h>
#include <errno.h>
#include <monkey/clock.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "service/suspend.h"
#include "service/topic_announce.h"
#include "service/topic_replay.h"
#include "service/websocket_type.h"
#include "service/worker_ctx.h"
#include "unit/fake_clock.h"
#include "unit/test.h"

enum { SIZE = 256 << 10, CHECK_MS = 5000, SOCKETS = 3, LINES = 100 };

struct mk_websocket_message {
    enum mk_websocket_kind kind;
    char text[200];
};

struct mk_websocket {
    int result; /* of the next attempts to send */
    unsigned closed, n;
    enum mk_websocket_kind kinds[LINES];
    char lines[LINES][200]; /* messages to the client, without IDs */
};

static struct duda_worker_ctx worker_ctx;
static struct duda_topic_log messages;
static void *memory;
static struct duda_ctx d;
static struct mk_websocket ends[SOCKETS];
static struct duda_websocket sockets[SOCKETS];
static struct duda_websocket_profile profile;
static struct duda_wait *waits;
static unsigned n_frames, n_new_frames, n_ended;
static unsigned n_read_last;
static bool is_terminated_in_wait, is_log_busy;
static jmp_buf after_termination;
static const struct duda_topic news = {.name = MK_STR_INIT("news"), .keep = 100},
                               brief = {.name = MK_STR_INIT("news"), .keep = 100, .keep_s = 1},
                               other = {.name = MK_STR_INIT("other"), .keep = 100};

/* ---- Fakes ---- */

struct mk_websocket_message *mk_websocket_message_new(enum mk_websocket_kind kind, mk_str text)
{
    struct mk_websocket_message *m = malloc(sizeof *m);
    m->kind = kind;
    snprintf(m->text, sizeof m->text, "%.*s", MK_STR_ARG(text));
    n_frames++;
    n_new_frames++;
    return m;
}

void mk_websocket_message_free(struct mk_websocket_message *m)
{
    n_frames -= m != NULL;
    free(m);
}

int mk_websocket_send_message(struct mk_websocket *s, struct mk_websocket_message *m)
{
    char word[20], text[150] = "";
    if (s->result || s->closed)
        return s->closed ? -ESHUTDOWN : s->result;
    assert_true(s->n < LINES);
    sscanf(m->text, "%19s %*s %149s", word, text);
    s->kinds[s->n] = m->kind;
    snprintf(s->lines[s->n++], sizeof s->lines[0], "%s%s%s", word, *text ? " " : "", text);
    return 0;
}

int mk_websocket_close(struct mk_websocket *s, unsigned code, mk_str reason)
{
    (void)reason;
    s->closed = s->closed ? s->closed : code;
    return 0;
}

void duda_websocket_end_callbacks(struct duda_websocket *s, unsigned code)
{
    (void)s, (void)code;
    n_ended++;
}

int duda_wait_begin(struct duda_ctx *self, struct duda_wait *w, void (*on_end)(struct duda_wait *w))
{
    *w = (struct duda_wait){.d = self, .outer = waits, .on_end = on_end, .is_active = true};
    waits = w;
    return 0;
}

void duda_wait_end(struct duda_wait *w)
{
    if (!w->is_active)
        return;
    waits = w->outer;
    w->is_active = false;
    w->on_end(w);
}

/* The client never reads: the handler is cancelled, or terminated like a handler that ignores this. */
int duda_suspend(struct duda_ctx *self)
{
    (void)self;
    while (is_terminated_in_wait && waits)
        duda_wait_end(waits);
    if (is_terminated_in_wait)
        longjmp(after_termination, 1);
    return -ECANCELED;
}

mk_str duda_strdup(struct duda_ctx *self, mk_str text)
{
    static char copy[200];
    (void)self;
    memcpy(copy, text.p, text.len);
    return mk_str_of(copy, text.len);
}

size_t duda_arena_mark(struct duda_ctx *self)
{
    (void)self;
    return 0;
}

void duda_arena_rewind(struct duda_ctx *self, size_t mark)
{
    (void)self, (void)mark;
}

mk_str duda_scope(struct duda_ctx *self)
{
    (void)self;
    return MK_STR("s");
}

mk_str duda_scope_of(const struct duda_service_ref *owner)
{
    (void)owner;
    return MK_STR("s");
}

bool duda_subscriber_counts_add(struct duda_subscriber_counts *c, mk_str topic)
{
    (void)c, (void)topic;
    return true;
}

void duda_subscriber_counts_remove(struct duda_subscriber_counts *c, mk_str topic)
{
    (void)c, (void)topic;
}

uint64_t duda_subscriber_counts_sum(const struct duda_subscriber_counts *c, mk_str topic)
{
    (void)c, (void)topic;
    return 0;
}

void duda_topic_announce_change(struct duda_worker_ctx *ctx, mk_str topic, int change)
{
    (void)ctx, (void)topic, (void)change;
}

void duda_topic_announce_stop(struct duda_worker_ctx *ctx)
{
    (void)ctx;
}

struct duda_worker_ctx *duda_worker_ctx(struct mk_worker *worker)
{
    (void)worker;
    return &worker_ctx;
}

const struct mk_plugin *duda_worker_ctx_plugin(void)
{
    return NULL;
}

unsigned mk_worker_count(const struct mk_worker *w)
{
    (void)w;
    return 1;
}

unsigned mk_worker_index(const struct mk_worker *w)
{
    (void)w;
    return 0;
}

int mk_worker_send(struct mk_worker *w, const struct mk_plugin *plugin, unsigned to, mk_str message)
{
    (void)w, (void)plugin, (void)to, (void)message;
    return 0;
}

void mk_worker_log(struct mk_worker *w, enum mk_log_level level, const char *fmt, ...)
{
    (void)w, (void)level, (void)fmt;
}

int __real_duda_topic_log_last(const struct duda_topic_log *log, mk_str topic, struct duda_topic_id *id);
int __wrap_duda_topic_log_last(const struct duda_topic_log *log, mk_str topic, struct duda_topic_id *id);

int __wrap_duda_topic_log_last(const struct duda_topic_log *log, mk_str topic, struct duda_topic_id *id)
{
    n_read_last++;
    return is_log_busy ? -EBUSY : __real_duda_topic_log_last(log, topic, id);
}

/* ---- Helpers ---- */

static void setup(void)
{
    memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(duda_topic_log_init(&messages, memory, SIZE), 0);
    fake_clock_init(1000);
    worker_ctx = (struct duda_worker_ctx){.topic_log = &messages};
    mk_timer_init(&worker_ctx.topic_timer, NULL);
    d = (struct duda_ctx){.worker_ctx = &worker_ctx};
    memset(ends, 0, sizeof ends);
    for (int i = 0; i < SOCKETS; i++)
        sockets[i] = (struct duda_websocket){.end = &ends[i], .worker_ctx = &worker_ctx, .profile = &profile};
    n_frames = n_new_frames = n_ended = 0;
    is_terminated_in_wait = is_log_busy = false;
}

static void teardown(void)
{
    for (int i = 0; i < SOCKETS; i++)
        duda_topics_unsubscribe_all(&worker_ctx, &sockets[i].members);
    mk_timer_stop(&worker_ctx.topic_timer);
    duda_topic_table_free(worker_ctx.topics);
    assert_int_equal(n_frames, 0);
    assert_null(waits);
    munmap(memory, SIZE);
    fake_clock_fini();
}

/* Keeps a message that no worker delivers, published `age_s` seconds ago. */
static struct duda_topic_delivery keep_kind(const struct duda_topic *topic, const char *text, unsigned age_s,
                                            enum mk_websocket_kind kind)
{
    const struct duda_topic_log_rule rule = {topic->keep, topic->keep_s};
    struct duda_topic_delivery m = {
        .topic = MK_STR("s:news"), .text = mk_str_from_c(text), .kind = kind, .is_kept = true};
    assert_int_equal(duda_topic_log_append(&messages, m.topic, &rule, (unsigned char)kind, m.text,
                                           mk_clock_unix_ms() - age_s * 1000, &m.prev, &m.id),
                     0);
    return m;
}

static struct duda_topic_delivery keep(const struct duda_topic *topic, const char *text, unsigned age_s)
{
    return keep_kind(topic, text, age_s, MK_WEBSOCKET_TEXT);
}

static void deliver(struct duda_topic_delivery m)
{
    duda_topic_table_publish(worker_ctx.topics, &m);
}

static void publish(const char *text)
{
    deliver(keep(&news, text, 0));
}

__attribute__((noinline)) static void attach(int i, const struct duda_topic *topic, const char *last_id)
{
    assert_int_equal(duda_topic_attach_after(&d, &sockets[i], topic, mk_str_from_c(last_id)), 0);
    assert_null(sockets[i].attaching);
}

static void pass_checks(unsigned n)
{
    for (; n; n--) {
        fake_clock.now_ms += CHECK_MS;
        assert_true(fake_clock_fire());
    }
}

static void assert_lines(int i, const char *first, const char *second)
{
    const char *lines[] = {first, second};
    unsigned n = second ? 2 : first ? 1 : 0;
    assert_int_equal(ends[i].n, n);
    for (unsigned k = 0; k < n; k++)
        assert_string_equal(ends[i].lines[k], lines[k]);
}

/* ---- Tests ---- */

static void attached_websocket_has_read_an_expired_topic(void **state)
{
    (void)state;
    keep(&brief, "old", 10);
    attach(0, &brief, "0");
    pass_checks(3);
    assert_int_equal(ends[0].closed, 0);
    deliver(keep(&brief, "new", 0));
    assert_lines(0, "message new", NULL);
    pass_checks(3);
    assert_int_equal(ends[0].closed, 0);
}

static int read_expired(struct duda_ctx *self, void *ctx, mk_str topic, mk_str after, uint32_t keep_s,
                        enum mk_websocket_kind *kind, mk_str *text, mk_str *prev, mk_str *id)
{
    (void)self, (void)ctx, (void)topic, (void)after, (void)keep_s, (void)kind, (void)text, (void)prev;
    *id = MK_STR("7-3");
    return 0;
}

static void attached_websocket_has_read_an_expired_topic_of_a_relay(void **state)
{
    static const struct duda_topic_relay relay = {.read_kept = read_expired};
    (void)state;
    worker_ctx.relay = &relay;
    attach(0, &brief, "0");
    duda_topic_deliver_kept(NULL, MK_STR("s:news"), MK_WEBSOCKET_TEXT, MK_STR("new"), MK_STR("7-3"),
                            MK_STR("8-0"));
    assert_lines(0, "message new", NULL);
    assert_int_equal(ends[0].closed, 0);
    duda_topic_deliver_kept(NULL, MK_STR("s:news"), MK_WEBSOCKET_TEXT, MK_STR("newer"), MK_STR("8-1"),
                            MK_STR("8-2"));
    assert_int_equal(ends[0].closed, 1013);
}

static void attached_websocket_that_misses_a_message_is_closed(void **state)
{
    (void)state;
    attach(0, &news, "0");
    attach(1, &news, "0");
    publish("a");
    pass_checks(3);
    keep(&news, "lost", 0);
    pass_checks(1);
    assert_int_equal(ends[0].closed, 0);
    pass_checks(1);
    assert_int_equal(ends[0].closed, 1013);
    assert_int_equal(ends[1].closed, 1013);
    assert_lines(0, "message a", NULL);
}

/* Each read may block the worker while another process holds the lock of the log. */
static void check_of_positions_reads_the_log_once_for_each_topic(void **state)
{
    (void)state;
    for (int i = 0; i < SOCKETS; i++)
        attach(i, i < 2 ? &news : &other, "0");
    publish("a");
    n_read_last = 0;
    pass_checks(1);
    assert_int_equal(n_read_last, 2);
    is_log_busy = true;
    pass_checks(3);
    assert_int_equal(n_read_last, 5);
    is_log_busy = false;
    pass_checks(2);
    for (int i = 0; i < SOCKETS; i++)
        assert_int_equal(ends[i].closed, 0);
}

static void attached_websocket_gets_missed_messages_with_the_next_one(void **state)
{
    (void)state;
    for (int i = 0; i < SOCKETS; i++)
        attach(i, &news, "0");
    struct duda_topic_delivery late = keep(&news, "a", 0);
    n_new_frames = 0;
    publish("b");
    assert_int_equal(n_new_frames, 2); /* all WebSockets share the frames */
    deliver(late);
    pass_checks(3);
    for (int i = 0; i < SOCKETS; i++) {
        assert_lines(i, "message a", "message b");
        assert_int_equal(ends[i].closed, 0);
    }
}

static void attached_websocket_that_refuses_a_message_is_closed(void **state)
{
    static const int errors[] = {-EAGAIN, -ENOMEM, -EBUSY};
    (void)state;
    for (int i = 0; i < SOCKETS; i++) {
        attach(i, &news, "0");
        ends[i].result = errors[i];
    }
    publish("a");
    for (int i = 0; i < SOCKETS; i++) {
        assert_int_equal(ends[i].closed, 1013);
        assert_null(sockets[i].members);
    }
}

static void attach_of_a_terminated_handler_ends(void **state)
{
    (void)state;
    keep(&news, "a", 0);
    ends[0].result = -EAGAIN;
    is_terminated_in_wait = true;
    if (!setjmp(after_termination))
        attach(0, &news, "0");
    assert_null(sockets[0].attaching);
    assert_null(sockets[0].members);
    assert_int_equal(n_ended, 0);
}

static void replay_sends_each_message_with_its_kind(void **state)
{
    (void)state;
    keep_kind(&news, "a", 0, MK_WEBSOCKET_BINARY);
    attach(0, &news, "0");
    assert_int_equal(ends[0].kinds[0], MK_WEBSOCKET_BINARY);
    keep_kind(&news, "b", 0, MK_WEBSOCKET_BINARY);
    publish("c");
    assert_int_equal(ends[0].n, 3);
    assert_int_equal(ends[0].kinds[1], MK_WEBSOCKET_BINARY);
    assert_int_equal(ends[0].kinds[2], MK_WEBSOCKET_TEXT);
}

static void attach_after_excludes_other_topics(void **state)
{
    (void)state;
    attach(0, &news, "0");
    assert_int_equal(duda_topic_attach_after(&d, &sockets[0], &news, MK_STR("0")), -EALREADY);
    assert_int_equal(duda_topic_attach_after(&d, &sockets[0], &other, MK_STR("0")), -EALREADY);
    assert_int_equal(duda_topic_attach(&sockets[0], &other), -EALREADY);
    assert_int_equal(duda_topic_attach(&sockets[1], &other), 0);
    assert_int_equal(duda_topic_attach_after(&d, &sockets[1], &news, MK_STR("0")), -EALREADY);
    duda_topic_detach(&sockets[1], &other);
    attach(1, &news, "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(attached_websocket_has_read_an_expired_topic, setup, teardown),
        fixture_test(attached_websocket_has_read_an_expired_topic_of_a_relay, setup, teardown),
        fixture_test(attached_websocket_that_misses_a_message_is_closed, setup, teardown),
        fixture_test(check_of_positions_reads_the_log_once_for_each_topic, setup, teardown),
        fixture_test(attached_websocket_gets_missed_messages_with_the_next_one, setup, teardown),
        fixture_test(attached_websocket_that_refuses_a_message_is_closed, setup, teardown),
        fixture_test(attach_of_a_terminated_handler_ends, setup, teardown),
        fixture_test(replay_sends_each_message_with_its_kind, setup, teardown),
        fixture_test(attach_after_excludes_other_topics, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
