/* SPDX-License-Identifier: Apache-2.0 */
/* Rooms whose members leave, or speak in other rooms, while they hear something. */
#include "service/topic_table.h"

#include <string.h>

#include "unit/test.h"

enum { GUESTS = 3 };

static struct duda_topic_table *rooms;

struct visitor {
    struct duda_subscriber guest;
    unsigned heard;
    void (*reaction)(void);
};

static struct visitor hall[GUESTS], bar[GUESTS];

/* No frames are made here. */
void mk_websocket_message_free(struct mk_websocket_message *m)
{
    assert_null(m);
}

static void on_message(void *owner, struct duda_topic_delivery *news)
{
    struct visitor *v = owner;
    assert_str(news->text, "news");
    v->heard++;
    if (v->reaction)
        v->reaction();
}

static void enter(struct visitor *v, const char *room)
{
    *v = (struct visitor){.guest = {.owner = v, .on_message = on_message}};
    assert_int_equal(duda_topic_table_add(rooms, mk_str_from_c(room), &v->guest), 0);
}

static int start(void **state)
{
    (void)state;
    rooms = duda_topic_table_new();
    for (int i = GUESTS - 1; i >= 0; i--) { /* the last to come hears first */
        enter(&hall[i], "hall");
        enter(&bar[i], "bar");
    }
    return 0;
}

static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < GUESTS; i++) {
        duda_topic_table_remove(rooms, &hall[i].guest);
        duda_topic_table_remove(rooms, &bar[i].guest);
    }
    duda_topic_table_free(rooms);
    return 0;
}

static void tell(const char *room)
{
    duda_topic_table_publish(rooms, mk_str_from_c(room), MK_WEBSOCKET_TEXT, MK_STR("news"));
}

static void leave(struct visitor *v)
{
    duda_topic_table_remove(rooms, &v->guest);
    memset(&v->guest, 0xaa, sizeof v->guest); /* its memory is used for something else */
    v->guest.room = NULL;
}

static void all_hear(void **state)
{
    (void)state;
    tell("hall");
    tell("nowhere");
    for (int i = 0; i < GUESTS; i++) {
        assert_int_equal(hall[i].heard, 1);
        assert_int_equal(bar[i].heard, 0);
    }
}

static void leave_first(void)
{
    leave(&hall[0]);
    leave(&hall[1]);
}

static void one_may_leave_and_take_the_next_along(void **state)
{
    (void)state;
    hall[0].reaction = leave_first;
    tell("hall");
    assert_int_equal(hall[1].heard, 0);
    assert_int_equal(hall[2].heard, 1);
    assert_int_equal(duda_topic_table_count(rooms, MK_STR("hall")), 1);
}

static void tell_the_bar(void)
{
    tell("bar");
}

static void leave_the_hall(void)
{
    leave(&hall[0]); /* at which the telling of the hall is now */
}

static void one_may_leave_while_another_room_is_told(void **state)
{
    (void)state;
    hall[0].reaction = tell_the_bar;
    bar[0].reaction = leave_the_hall;
    tell("hall");
    for (int i = 0; i < GUESTS; i++) {
        assert_int_equal(hall[i].heard, 1);
        assert_int_equal(bar[i].heard, 1);
    }
    assert_int_equal(duda_topic_table_count(rooms, MK_STR("hall")), GUESTS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_hear, start, stop),
        cmocka_unit_test_setup_teardown(one_may_leave_and_take_the_next_along, start, stop),
        cmocka_unit_test_setup_teardown(one_may_leave_while_another_room_is_told, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
