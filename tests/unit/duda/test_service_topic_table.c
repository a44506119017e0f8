/* SPDX-License-Identifier: Apache-2.0 */
/* Topics whose subscribers unsubscribe, or publish to other topics, while they receive a message. */
#include "service/topic_table.h"

#include <string.h>

#include "unit/test.h"

enum { SUBSCRIBERS = 3 };

static struct duda_topic_table *sizes;

struct subscriber {
    struct duda_subscriber member;
    unsigned received;
    void (*reaction)(void);
};

static struct subscriber first_topic[SUBSCRIBERS], second_topic[SUBSCRIBERS];

/* This test creates no frames. */
void mk_websocket_message_free(struct mk_websocket_message *m)
{
    assert_null(m);
}

static void on_message(struct duda_subscriber *m, struct duda_topic_delivery *delivery)
{
    struct subscriber *v = m->owner;
    assert_str(delivery->text, "news");
    v->received++;
    if (v->reaction)
        v->reaction();
}

static void subscribe(struct subscriber *v, const char *buffer)
{
    *v = (struct subscriber){.member = {.owner = v, .on_message = on_message}};
    assert_int_equal(duda_topic_table_add(sizes, mk_str_from_c(buffer), &v->member), 0);
}

static size_t n_counted;

static bool count_if_in_hall(struct duda_subscriber *m, void *ctx)
{
    (void)ctx;
    n_counted += mk_str_eq(duda_topic_table_name(m), MK_STR("hall"));
    return true;
}

static size_t count_subscribers_of_hall(void)
{
    n_counted = 0;
    duda_topic_table_for_each(sizes, count_if_in_hall, NULL);
    return n_counted;
}

static void setup(void)
{
    sizes = duda_topic_table_new();
    for (int i = SUBSCRIBERS - 1; i >= 0; i--) { /* the last subscriber receives messages first */
        subscribe(&first_topic[i], "hall");
        subscribe(&second_topic[i], "bar");
    }
}

static void teardown(void)
{
    for (int i = 0; i < SUBSCRIBERS; i++) {
        duda_topic_table_remove(sizes, &first_topic[i].member);
        duda_topic_table_remove(sizes, &second_topic[i].member);
    }
    duda_topic_table_free(sizes);
}

static void publish_to_others(const char *buffer, const void *except)
{
    struct duda_topic_delivery delivery = {
        .topic = mk_str_from_c(buffer), .text = MK_STR("news"), .kind = MK_WEBSOCKET_TEXT, .except = except};
    duda_topic_table_publish(sizes, &delivery);
}

static void publish(const char *buffer)
{
    publish_to_others(buffer, NULL);
}

static void unsubscribe(struct subscriber *v)
{
    duda_topic_table_remove(sizes, &v->member);
    memset(&v->member, 0xaa, sizeof v->member); /* another object reuses its memory */
    v->member.topic = NULL;
}

static void topic_table_delivers_to_all_subscribers_but_one(void **state)
{
    (void)state;
    publish_to_others("hall", &first_topic[1]);
    for (int i = 0; i < SUBSCRIBERS; i++)
        assert_int_equal(first_topic[i].received, i != 1);
}

static void topic_table_delivers_to_all_subscribers(void **state)
{
    (void)state;
    publish("hall");
    publish("nowhere");
    for (int i = 0; i < SUBSCRIBERS; i++) {
        assert_int_equal(first_topic[i].received, 1);
        assert_int_equal(second_topic[i].received, 0);
    }
}

static void leave_first(void)
{
    unsubscribe(&first_topic[0]);
    unsubscribe(&first_topic[1]);
}

static void topic_table_subscriber_may_unsubscribe_others_during_delivery(void **state)
{
    (void)state;
    first_topic[0].reaction = leave_first;
    publish("hall");
    assert_int_equal(first_topic[1].received, 0);
    assert_int_equal(first_topic[2].received, 1);
    assert_int_equal(count_subscribers_of_hall(), 1);
}

static void publish_to_bar(void)
{
    publish("bar");
}

static void unsubscribe_from_hall(void)
{
    unsubscribe(&first_topic[0]); /* unsubscribes the subscriber that is receiving */
}

static void topic_table_subscriber_may_unsubscribe_during_nested_delivery(void **state)
{
    (void)state;
    first_topic[0].reaction = publish_to_bar;
    second_topic[0].reaction = unsubscribe_from_hall;
    publish("hall");
    for (int i = 0; i < SUBSCRIBERS; i++) {
        assert_int_equal(first_topic[i].received, 1);
        assert_int_equal(second_topic[i].received, 1);
    }
    assert_int_equal(count_subscribers_of_hall(), SUBSCRIBERS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(topic_table_delivers_to_all_subscribers, setup, teardown),
        fixture_test(topic_table_delivers_to_all_subscribers_but_one, setup, teardown),
        fixture_test(topic_table_subscriber_may_unsubscribe_others_during_delivery, setup, teardown),
        fixture_test(topic_table_subscriber_may_unsubscribe_during_nested_delivery, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
