/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/proc_parse.h"

#include "unit/test.h"

#define STAT_OF(name)                                                                                        \
    MK_STR("1292 " name " S 1279 1292 23574 0 -1 4194304 101 5 0 0 31 42 7 9 20 0 1 0 3469620 3133440 418 "  \
           "18446744073709551615 94343788593152 0 0 0 0 0 0\n")

static void proc_stat_is_parsed(void **state)
{
    (void)state;
    struct wr_stat s;
    assert_true(wr_stat_parse(STAT_OF("(nginx)"), &s));
    assert_int_equal(s.pid, 1292);
    assert_int_equal(s.parent, 1279);
    assert_string_equal(s.name, "nginx");
    assert_int_equal(s.user, 31);
    assert_int_equal(s.system, 42);
    assert_int_equal(s.waited_user, 7);
    assert_int_equal(s.waited_system, 9);
    assert_int_equal(s.start, 3469620);
    assert_false(wr_stat_is_dead(&s));
}

static void proc_stat_name_can_contain_brackets_and_blanks(void **state)
{
    (void)state;
    struct wr_stat s;
    assert_true(wr_stat_parse(STAT_OF("(a) R 1 (b c)"), &s));
    assert_string_equal(s.name, "a) R 1 (b c");
    assert_int_equal(s.parent, 1279);
    assert_true(wr_stat_parse(STAT_OF("()) )"), &s));
    assert_string_equal(s.name, ")) ");
    assert_int_equal(s.user, 31);
    assert_true(wr_stat_parse(STAT_OF("(a\nb)"), &s));
    assert_string_equal(s.name, "a\nb");
    assert_true(wr_stat_parse(STAT_OF("()"), &s));
    assert_string_equal(s.name, "");
}

static void proc_stat_long_name_is_truncated(void **state)
{
    (void)state;
    struct wr_stat s;
    assert_true(wr_stat_parse(
        STAT_OF("(0123456789012345678901234567890123456789012345678901234567890123456789)"), &s));
    assert_int_equal(strlen(s.name), sizeof s.name - 1);
    assert_int_equal(s.system, 42);
}

static void proc_stat_invalid_is_rejected(void **state)
{
    (void)state;
    struct wr_stat s;
    assert_false(wr_stat_parse(MK_STR(""), &s));
    assert_false(wr_stat_parse(MK_STR("12 nginx S 1"), &s));
    assert_false(wr_stat_parse(MK_STR("12 )nginx( S 1"), &s));
    assert_false(wr_stat_parse(MK_STR("12 (nginx) S 1 2 3"), &s));
    assert_false(wr_stat_parse(MK_STR("x (nginx) S 1279 1292 1 0 -1 4 1 5 0 0 1 2 7 9 20 0 1 0 3\n"), &s));
    assert_false(wr_stat_parse(MK_STR("1 (nginx) S 1279 1292 1 0 -1 4 1 5 0 0 x 2 7 9 20 0 1 0 3\n"), &s));
}

static void proc_stat_zombie_is_dead(void **state)
{
    (void)state;
    struct wr_stat s = {.state = 'Z'};
    assert_true(wr_stat_is_dead(&s));
    s.state = 'D';
    assert_false(wr_stat_is_dead(&s));
}

static void proc_numbers_of_status_and_smaps_are_parsed(void **state)
{
    (void)state;
    uint64_t n;
    mk_str rollup =
        MK_STR("5-7 ---p 00000000 00:00 0     [rollup]\nRss:        1688 kB\nPss:         222 kB\n"
               "Pss_Dirty:   112 kB\n");
    assert_true(wr_proc_parse_named_number(rollup, MK_STR("Pss"), &n));
    assert_int_equal(n, 222);
    assert_true(wr_proc_parse_named_number(rollup, MK_STR("Pss_Dirty"), &n));
    assert_int_equal(n, 112);
    assert_false(wr_proc_parse_named_number(rollup, MK_STR("VmHWM"), &n));
    mk_str status = MK_STR("Name:\tvoluntary_ctxt_switches: 9\nvoluntary_ctxt_switches:\t14\n"
                           "nonvoluntary_ctxt_switches:\t3");
    assert_true(wr_proc_parse_named_number(status, MK_STR("voluntary_ctxt_switches"), &n));
    assert_int_equal(n, 14);
    assert_true(wr_proc_parse_named_number(status, MK_STR("nonvoluntary_ctxt_switches"), &n));
    assert_int_equal(n, 3);
    assert_false(wr_proc_parse_named_number(MK_STR("Pss: lots\n"), MK_STR("Pss"), &n));
}

static void proc_schedstat_is_parsed(void **state)
{
    (void)state;
    struct wr_schedstat s;
    assert_true(wr_schedstat_parse(MK_STR("279457 4309750 2\n"), &s));
    assert_int_equal(s.ran, 279457);
    assert_int_equal(s.waited, 4309750);
    assert_false(wr_schedstat_parse(MK_STR("279457\n"), &s));
}

static void proc_cgroup_of_version_2_is_found(void **state)
{
    (void)state;
    assert_str(wr_proc_parse_cgroup(MK_STR("9:name=systemd:/a\n3:cpu:/b\n0::/contest/nginx\n")),
               "/contest/nginx");
    assert_str(wr_proc_parse_cgroup(MK_STR("0::/\n")), "/");
    assert_str(wr_proc_parse_cgroup(MK_STR("10::/x\n0::/with blank: and colon\n")), "/with blank: and colon");
    assert_null(wr_proc_parse_cgroup(MK_STR("9:name=systemd:/a\n")).p);
    assert_null(wr_proc_parse_cgroup(MK_STR("")).p);
}

static void proc_cpu_stat_is_parsed(void **state)
{
    (void)state;
    struct wr_cpu_stat s;
    assert_true(
        wr_cpu_stat_parse(MK_STR("usage_usec 300\nuser_usec 100\nsystem_usec 200\nnice_usec 5\n"), &s));
    assert_int_equal(s.usage, 300);
    assert_int_equal(s.user, 100);
    assert_int_equal(s.system, 200);
    assert_false(wr_cpu_stat_parse(MK_STR("usage_usec 300\nuser_usec 100\n"), &s));
    assert_false(wr_cpu_stat_parse(MK_STR("usage_usec 300\nuser_usec many\nsystem_usec 200\n"), &s));
}

static void proc_listeners_are_found_by_port(void **state)
{
    (void)state;
    struct wr_listener l;
    mk_str v4 =
        MK_STR("   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        "
               "0 17245 1 0000000000000000 100 0 0 10 0");
    mk_str v6 =
        MK_STR("   1: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A "
               "00000000:00000000 00:00000000 00000000     0        0 99 1 0000000000000000 100 0 0 10 0");
    mk_str connected =
        MK_STR("   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0  "
               "      0 17246 1 0000000000000000 20 4 30 10 -1");
    assert_true(wr_proc_parse_listener(v4, 8080, &l));
    assert_int_equal(l.inode, 17245);
    assert_int_equal(l.at.v4.sin_family, AF_INET);
    assert_int_equal(mk_sockaddr_port(&l.at), 8080);
    assert_true(wr_proc_parse_listener(v6, 8080, &l));
    assert_int_equal(l.inode, 99);
    assert_int_equal(l.at.v6.sin6_family, AF_INET6);
    assert_true(mk_sockaddr_is_any(&l.at));
    assert_false(wr_proc_parse_listener(MK_STR("0: 0100007:1F90 0:0 0A 0 0 0 0 0 99"), 8080, &l));
    assert_false(wr_proc_parse_listener(MK_STR("0: :1F90 0:0 0A 0 0 0 0 0 99"), 8080, &l));
    assert_false(wr_proc_parse_listener(MK_STR("0: 0100007F:11F90 0:0 0A 0 0 0 0 0 99"), 8080, &l));
    assert_false(wr_proc_parse_listener(MK_STR("0: 0100007F 0:0 0A 0 0 0 0 0 99"), 8080, &l));
    assert_false(wr_proc_parse_listener(v4, 8081, &l));
    assert_false(wr_proc_parse_listener(connected, 8080, &l));
    assert_false(wr_proc_parse_listener(MK_STR("  sl  local_address rem_address   st"), 8080, &l));
    assert_false(wr_proc_parse_listener(MK_STR(""), 8080, &l));
}

static void proc_mounts_are_found_by_type(void **state)
{
    (void)state;
    char buffer[64];
    struct mk_buf path = mk_buf_fixed(buffer, sizeof buffer);
    mk_str mounts = MK_STR("cgroup2 /not/a/type tmpfs rw 0 0\nnone /sys/fs/cgroup\\040two cgroup2 rw 0 0\n");
    assert_true(wr_proc_parse_mount(mounts, MK_STR("cgroup2"), &path));
    assert_str(mk_buf_str(&path), "/sys/fs/cgroup two");
    mk_buf_clear(&path);
    assert_false(wr_proc_parse_mount(mounts, MK_STR("tracefs"), &path));
}

static void proc_core_lists_are_parsed(void **state)
{
    (void)state;
    cpu_set_t set;
    assert_true(wr_proc_parse_cpu_list(MK_STR("0-2,5"), &set));
    assert_int_equal(CPU_COUNT(&set), 4);
    assert_true(CPU_ISSET(5, &set));
    assert_false(CPU_ISSET(3, &set));
    assert_false(wr_proc_parse_cpu_list(MK_STR(""), &set));
    assert_false(wr_proc_parse_cpu_list(MK_STR("2-1"), &set));
    assert_false(wr_proc_parse_cpu_list(MK_STR("a"), &set));
    assert_false(wr_proc_parse_cpu_list(MK_STR("1,"), &set));
    assert_false(wr_proc_parse_cpu_list(MK_STR("0-99999"), &set));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proc_stat_is_parsed),
        cmocka_unit_test(proc_stat_name_can_contain_brackets_and_blanks),
        cmocka_unit_test(proc_stat_long_name_is_truncated),
        cmocka_unit_test(proc_stat_invalid_is_rejected),
        cmocka_unit_test(proc_stat_zombie_is_dead),
        cmocka_unit_test(proc_numbers_of_status_and_smaps_are_parsed),
        cmocka_unit_test(proc_schedstat_is_parsed),
        cmocka_unit_test(proc_cgroup_of_version_2_is_found),
        cmocka_unit_test(proc_cpu_stat_is_parsed),
        cmocka_unit_test(proc_listeners_are_found_by_port),
        cmocka_unit_test(proc_mounts_are_found_by_type),
        cmocka_unit_test(proc_core_lists_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
