/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a process and of its control groups, in a folder that imitates /proc and the cgroup file system. */
#include "usage.h"

#include <stdio.h>

#include "unit/folder.h"
#include "unit/test.h"

static struct folder top;

static void put(const char *name, const char *text)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", top.path, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void setup(void)
{
    char mounts[512];
    folder_setup(&top);
    (void)snprintf(mounts, sizeof mounts, "proc /proc proc rw 0 0\ncgroup2 %s cgroup2 rw 0 0\n", top.path);
    put("mounts", mounts);
    put("cgroup", "4:memory:/old\n0::/web/monkey.service\n");
    folder_add_folder(&top, "web");
    folder_add_folder(&top, "web/monkey.service");
    put("web/memory.max", "max\n");
    put("web/monkey.service/memory.max", "max\n");
}

static void usage_counts_anonymous_memory(void **state)
{
    (void)state;
    assert_int_equal(memory_usage_parse(MK_STR("5000 300 100 20 0 900 0\n"), 4096), 200 * 4096);
    assert_int_equal(memory_usage_parse(MK_STR("5000 300"), 4096), 0);
    assert_int_equal(memory_usage_parse(MK_STR("5000 100 300 20"), 4096), 0);
    assert_int_equal(memory_usage_parse(MK_STR("5000 x 300 20"), 4096), 0);
    assert_int_equal(memory_usage_parse(MK_STR(""), 4096), 0);
}

static void usage_finds_the_lowest_limit_of_the_groups(void **state)
{
    (void)state;
    setup();
    assert_true(memory_usage_cgroup_max(top.path) == UINT64_MAX);
    put("web/memory.max", "1073741824\n");
    assert_int_equal(memory_usage_cgroup_max(top.path), 1 << 30);
    put("web/monkey.service/memory.max", "67108864\n");
    assert_int_equal(memory_usage_cgroup_max(top.path), 64 << 20);
    put("memory.max", "1048576\n"); /* in a container, the group at the top has a limit, too */
    assert_int_equal(memory_usage_cgroup_max(top.path), 1 << 20);
}

static void usage_finds_the_limit_of_a_container(void **state)
{
    (void)state;
    setup();
    put("cgroup", "0::/\n");
    put("memory.max", "1048576\n");
    assert_int_equal(memory_usage_cgroup_max(top.path), 1 << 20);
}

static void usage_is_unlimited_without_groups(void **state)
{
    (void)state;
    setup();
    put("cgroup", "4:memory:/old\n");
    assert_true(memory_usage_cgroup_max(top.path) == UINT64_MAX);
    put("cgroup", "0::/gone\n");
    assert_true(memory_usage_cgroup_max(top.path) == UINT64_MAX);
    put("cgroup", "0::/web\n");
    put("web/memory.max", "much\n");
    assert_true(memory_usage_cgroup_max(top.path) == UINT64_MAX);
    put("mounts", "proc /proc proc rw 0 0\n");
    assert_true(memory_usage_cgroup_max(top.path) == UINT64_MAX);
    assert_true(memory_usage_cgroup_max("/nowhere") == UINT64_MAX);
}

static void usage_share_has_a_minimum(void **state)
{
    (void)state;
    assert_int_equal(memory_usage_share(1000000, 4, 1000), 200000);
    assert_int_equal(memory_usage_share(1000000, 800, 1000), 1000);
    assert_int_equal(memory_usage_share(1000000, 801, 1000), 1000);
    assert_int_equal(memory_usage_share(0, 1, 1000), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_counts_anonymous_memory),
        cmocka_unit_test(usage_finds_the_lowest_limit_of_the_groups),
        cmocka_unit_test(usage_finds_the_limit_of_a_container),
        cmocka_unit_test(usage_is_unlimited_without_groups),
        cmocka_unit_test(usage_share_has_a_minimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
