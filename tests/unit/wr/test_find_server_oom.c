/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/oom.h"
#include "unit/wr/holders.h"
#include "wr/find_server.h"

static struct reserved port;

static bool find_it(void)
{
    struct wr_find what = {.by = WR_FIND_BY_PORT, .port = port.port};
    struct wr_process_tree family;
    wr_process_tree_init(&family);
    bool found = wr_find_server(&what, &family);
    assert_true(!found || family.n == 1);
    wr_process_tree_fini(&family);
    return found;
}

static void find_server_oom_by_port_fails(void **state)
{
    (void)state;
    port = holders_reserve();
    pid_t a = holders_start("one", "127.0.0.1", NULL, port.port);
    oom_at_each_allocation(find_it);
    holders_end(a);
    close(port.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_server_oom_by_port_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
