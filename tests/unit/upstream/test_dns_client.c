/* SPDX-License-Identifier: Apache-2.0 */
/* The DNS client against name servers on loopback that answer, refuse or stay silent. */
#include "upstream/dns_client.h"

#include <errno.h>
#include <monkey/clock.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "unit/test.h"

static struct mk_dns_client client;
static struct mk_dns_answer answer;
static struct mk_sockaddr servers[2];
static int fds[2]; /* the sockets of the servers */

static int setup(void **s)
{
    (void)s;
    for (unsigned i = 0; i < MK_LEN(servers); i++) {
        servers[i] = (struct mk_sockaddr){.len = sizeof servers[i].v4};
        servers[i].v4.sin_family = AF_INET;
        servers[i].v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        fds[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fds[i], &servers[i].any, servers[i].len), 0);
        assert_int_equal(getsockname(fds[i], &servers[i].any, &servers[i].len), 0);
    }
    client.servers = servers;
    client.n_servers = 1;
    client.deadline_ms = mk_clock_ms() + 10000;
    client.cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return client.cancel_fd < 0;
}

static int teardown(void **s)
{
    (void)s;
    close(fds[0]);
    close(fds[1]);
    close(client.cancel_fd);
    return 0;
}

static int query(void)
{
    return mk_dns_client_query(&client, MK_STR("app.example"), MK_DNS_A, &answer);
}

/* Answers one query with an address. `change` is added to the number of the query. */
static void answer_query(int fd, unsigned char change)
{
    static const unsigned char record[] = "\xc0\x0c\0\1\0\1\0\0\0\x1e\0\4\1\2\3\4";
    unsigned char message[512];
    struct mk_sockaddr from = {.len = sizeof from.v4};
    ssize_t n = recvfrom(fd, message, sizeof message - sizeof record, 0, &from.any, &from.len);
    assert_true(n > 12);
    message[1] = (unsigned char)(message[1] + change);
    message[2] |= 0x80; /* an answer */
    message[7] = 1;     /* with one record */
    memcpy(message + n, record, sizeof record - 1);
    n += (ssize_t)sizeof record - 1;
    assert_int_equal(sendto(fd, message, (size_t)n, 0, &from.any, from.len), n);
    if (change) { /* the client waits for the right answer */
        message[1] = (unsigned char)(message[1] - change);
        assert_int_equal(sendto(fd, message, (size_t)n, 0, &from.any, from.len), n);
    }
}

static void *answer_main(void *change)
{
    answer_query(fds[0], *(unsigned char *)change);
    return NULL;
}

static void check_answer(unsigned char change)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, answer_main, &change), 0);
    assert_int_equal(query(), 0);
    pthread_join(thread, NULL);
    assert_int_equal(answer.n, 1);
    assert_int_equal(answer.ttl, 30);
    assert_memory_equal(client.message + answer.records[0].at, "\1\2\3\4", 4);
}

static void dns_client_reads_the_answer(void **s)
{
    (void)s;
    check_answer(0);
}

static void dns_client_ignores_answers_to_other_queries(void **s)
{
    (void)s;
    check_answer(1);
}

static void dns_client_asks_the_next_server_if_one_refuses(void **s)
{
    (void)s;
    client.n_servers = 2;
    close(fds[1]);
    fds[1] = -1;
    struct mk_sockaddr refuses = servers[1];
    servers[1] = servers[0];
    servers[0] = refuses;
    check_answer(0);
}

static void dns_client_ends_at_the_deadline(void **s)
{
    (void)s;
    uint64_t began = mk_clock_ms();
    client.deadline_ms = began + 30;
    assert_int_equal(query(), -ETIMEDOUT);
    assert_true(mk_clock_ms() - began >= 30);
}

static void *cancel_main(void *ctx)
{
    char ignored[512];
    (void)ctx;
    assert_true(recv(fds[0], ignored, sizeof ignored, 0) > 0); /* now the client waits for the answer */
    assert_int_equal(eventfd_write(client.cancel_fd, 1), 0);
    return NULL;
}

/* Without the event, the query would take 1.5 seconds. */
static void dns_client_waiting_is_cancelled_at_once(void **s)
{
    (void)s;
    pthread_t thread;
    uint64_t began = mk_clock_ms();
    assert_int_equal(pthread_create(&thread, NULL, cancel_main, NULL), 0);
    assert_int_equal(query(), -ECANCELED);
    pthread_join(thread, NULL);
    assert_true(mk_clock_ms() - began < 1400);
    assert_int_equal(query(), -ECANCELED); /* the event stays */
}

static void dns_client_invalid_name_is_not_asked(void **s)
{
    char ignored[1];
    (void)s;
    assert_int_equal(mk_dns_client_query(&client, MK_STR("a..b"), MK_DNS_A, &answer), -EINVAL);
    assert_int_equal(recv(fds[0], ignored, sizeof ignored, MSG_DONTWAIT), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(dns_client_reads_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(dns_client_ignores_answers_to_other_queries, setup, teardown),
        cmocka_unit_test_setup_teardown(dns_client_asks_the_next_server_if_one_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(dns_client_ends_at_the_deadline, setup, teardown),
        cmocka_unit_test_setup_teardown(dns_client_waiting_is_cancelled_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(dns_client_invalid_name_is_not_asked, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
