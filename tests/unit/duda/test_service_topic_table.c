/* SPDX-License-Identifier: Apache-2.0 */
/* Topics whose subscribers unsubscribe, or publish to other topics, while they receive a message. */
#include "service/topic_table.h"

#include <string.h>

#include "unit/test.h"

enum { GUESTS = 3 };

static struct duda_topic_table *rooms;

struct subscriber {
    struct duda_subscriber guest;
    unsigned heard;
    void (*reaction)(void);
};

static struct subscriber hall[GUESTS], bar[GUESTS];

/* This test creates no frames. */
void mk_websocket_message_free(struct mk_websocket_message *m)
{
    assert_null(m);
}

static void on_message(void *owner, struct duda_topic_delivery *news)
{
    struct subscriber *v = owner;
    assert_str(news->text, "news");
    v->heard++;
    if (v->reaction)
        v->reaction();
}

static void subscribe(struct subscriber *v, const char *room)
{
    *v = (struct subscriber){.guest = {.owner = v, .on_message = on_message}};
    assert_int_equal(duda_topic_table_add(rooms, mk_str_from_c(room), &v->guest), 0);
}

static void setup(void)
{
    rooms = duda_topic_table_new();
    for (int i = GUESTS - 1; i >= 0; i--) { /* the last subscriber receives messages first */
        subscribe(&hall[i], "hall");
        subscribe(&bar[i], "bar");
    }
}

static void teardown(void)
{
    for (int i = 0; i < GUESTS; i++) {
        duda_topic_table_remove(rooms, &hall[i].guest);
        duda_topic_table_remove(rooms, &bar[i].guest);
    }
    duda_topic_table_free(rooms);
}

static void publish(const char *room)
{
    duda_topic_table_publish(rooms, mk_str_from_c(room), MK_WEBSOCKET_TEXT, MK_STR("news"));
}

static void unsubscribe(struct subscriber *v)
{
    duda_topic_table_remove(rooms, &v->guest);
    memset(&v->guest, 0xaa, sizeof v->guest); /* another object reuses its memory */
    v->guest.topic = NULL;
}

static void topic_table_delivers_to_all_subscribers(void **state)
{
    (void)state;
    publish("hall");
    publish("nowhere");
    for (int i = 0; i < GUESTS; i++) {
        assert_int_equal(hall[i].heard, 1);
        assert_int_equal(bar[i].heard, 0);
    }
}

static void leave_first(void)
{
    unsubscribe(&hall[0]);
    unsubscribe(&hall[1]);
}

static void topic_table_subscriber_may_unsubscribe_others_during_delivery(void **state)
{
    (void)state;
    hall[0].reaction = leave_first;
    publish("hall");
    assert_int_equal(hall[1].heard, 0);
    assert_int_equal(hall[2].heard, 1);
    assert_int_equal(duda_topic_table_count(rooms, MK_STR("hall")), 1);
}

static void publish_to_bar(void)
{
    publish("bar");
}

static void unsubscribe_from_hall(void)
{
    unsubscribe(&hall[0]); /* unsubscribes the subscriber that is receiving */
}

static void topic_table_subscriber_may_unsubscribe_during_nested_delivery(void **state)
{
    (void)state;
    hall[0].reaction = publish_to_bar;
    bar[0].reaction = unsubscribe_from_hall;
    publish("hall");
    for (int i = 0; i < GUESTS; i++) {
        assert_int_equal(hall[i].heard, 1);
        assert_int_equal(bar[i].heard, 1);
    }
    assert_int_equal(duda_topic_table_count(rooms, MK_STR("hall")), GUESTS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(topic_table_delivers_to_all_subscribers, setup, teardown),
        fixture_test(topic_table_subscriber_may_unsubscribe_others_during_delivery, setup, teardown),
        fixture_test(topic_table_subscriber_may_unsubscribe_during_nested_delivery, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
