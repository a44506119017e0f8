/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/listeners.h"

#include "unit/wr/holders.h"

enum { PORT = 8080 };

/* Expects that a client that connects to `to` can reach exactly the sockets in `letters`; letter a is the
 * socket at the first of the `hosts`. */
static void expect_kept(const char *hosts, const char *to, const char *letters)
{
    struct wr_listener sockets[8];
    struct wr_listeners l = {.sockets = sockets};
    struct mk_sockaddr at[8];
    char kept[9] = "";
    size_t n = 0;
    for (mk_str rest = mk_str_from_c(hosts); rest.p; l.n++) {
        char host[64] = "";
        mk_str word = mk_str_cut(&rest, ' ');
        memcpy(host, word.p, word.len);
        sockets[l.n] = (struct wr_listener){.at = holders_address(host, PORT), .inode = l.n};
    }
    for (mk_str rest = mk_str_from_c(to); rest.p; n++) {
        char host[64] = "";
        mk_str word = mk_str_cut(&rest, ' ');
        memcpy(host, word.p, word.len);
        at[n] = holders_address(host, PORT);
    }
    assert_int_equal(wr_listeners_filter(&l, at, n), *letters != '\0');
    for (size_t i = 0; *letters && i < l.n; i++) {
        kept[i] = (char)('a' + sockets[i].inode);
        assert_int_equal(sockets[i].server, i);
    }
    assert_string_equal(kept, letters);
}

static void listeners_exact_address_has_priority(void **state)
{
    (void)state;
    expect_kept("127.0.0.1 127.0.0.2", "127.0.0.1", "a");
    expect_kept("0.0.0.0 127.0.0.1 127.0.0.1", "127.0.0.1", "bc");
    expect_kept("0.0.0.0 127.0.0.1", "127.0.0.2", "a");
    expect_kept("[::] 0.0.0.0", "127.0.0.1", "b");
    expect_kept("[::] 127.0.0.2", "127.0.0.1", "a");
    expect_kept("[::] 0.0.0.0", "[::1]", "a");
    expect_kept("[::ffff:127.0.0.1] 0.0.0.0", "127.0.0.1", "a");
    expect_kept("[::] [::1]", "[::1]", "b");
}

static void listeners_addresses_are_tried_in_order(void **state)
{
    (void)state;
    expect_kept("127.0.0.1", "[::1] 127.0.0.1", "a");
    expect_kept("127.0.0.1 [::1]", "[::1] 127.0.0.1", "b");
    expect_kept("0.0.0.0 127.0.0.3", "[::1] 127.0.0.1", "a");
}

static void listeners_at_other_addresses_are_ignored(void **state)
{
    (void)state;
    expect_kept("127.0.0.2 [::1]", "127.0.0.1", "");
    expect_kept("0.0.0.0", "[::1]", "");
}

/* Expects this number of servers, and of processes that hold the port. */
static void expect_found(const struct reserved *r, size_t n_servers, size_t n_holders)
{
    struct wr_listeners l;
    size_t n = 0;
    assert_true(wr_listeners_read(&l, r->port));
    assert_true(wr_listeners_find_holders(&l));
    assert_int_equal(l.n_holders, n_holders);
    for (size_t i = 0; i < l.n_holders; i++) {
        size_t first = 0;
        while (wr_listeners_server_of(&l, &l.holders[first]) != wr_listeners_server_of(&l, &l.holders[i]))
            first++;
        n += first == i;
    }
    assert_int_equal(n, n_servers);
    wr_listeners_fini(&l);
}

static void listeners_at_two_addresses_are_two_servers(void **state)
{
    (void)state;
    struct reserved r = holders_reserve();
    expect_found(&r, 0, 0);
    pid_t a = holders_start("one", "127.0.0.1", NULL, r.port);
    expect_found(&r, 1, 1);
    pid_t b = holders_start("one", "127.0.0.2", NULL, r.port);
    expect_found(&r, 2, 2);
    holders_end(a);
    holders_end(b);
    close(r.fd);
}

static void listeners_of_one_name_and_address_are_one_server(void **state)
{
    (void)state;
    struct reserved r = holders_reserve();
    pid_t a = holders_start("one", "127.0.0.1", NULL, r.port);
    pid_t b = holders_start("one", "127.0.0.1", NULL, r.port);
    expect_found(&r, 1, 2);
    pid_t c = holders_start("two", "127.0.0.1", NULL, r.port);
    expect_found(&r, 2, 3);
    holders_end(a);
    holders_end(b);
    holders_end(c);
    close(r.fd);
}

static void listeners_of_a_child_belong_to_the_parent(void **state)
{
    (void)state;
    struct reserved r = holders_reserve();
    pid_t a = holders_start("one", "127.0.0.1", "127.0.0.2", r.port);
    expect_found(&r, 1, 2);
    holders_end(a);
    close(r.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listeners_exact_address_has_priority),
        cmocka_unit_test(listeners_addresses_are_tried_in_order),
        cmocka_unit_test(listeners_at_other_addresses_are_ignored),
        cmocka_unit_test(listeners_at_two_addresses_are_two_servers),
        cmocka_unit_test(listeners_of_one_name_and_address_are_one_server),
        cmocka_unit_test(listeners_of_a_child_belong_to_the_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
