/* SPDX-License-Identifier: Apache-2.0 */
#include "os/capabilities.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/child.h"
#include "unit/test.h"

static uint64_t read_set(size_t offset)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    uint32_t half[2];
    if (syscall(SYS_capget, &head, sets) < 0)
        return UINT64_MAX;
    for (int i = 0; i < 2; i++)
        memcpy(&half[i], (const char *)&sets[i] + offset, sizeof half[i]);
    return half[0] | (uint64_t)half[1] << 32;
}

#define SET(member) read_set(offsetof(struct __user_cap_data_struct, member))

static uint64_t read_bounding_set(void)
{
    uint64_t set = 0;
    for (unsigned i = 0; i < 64; i++)
        if (prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
            set |= UINT64_C(1) << i;
    return set;
}

/* The functions below run in a child as root, and return the number of the first failed line, or 0. */

static int keep_nothing(void)
{
    if (!SET(effective) || mk_capabilities_limit(0))
        return __LINE__ % 256;
    if (SET(effective) || SET(permitted) || SET(inheritable) || read_bounding_set())
        return __LINE__ % 256;
    return chroot("/") == 0 ? __LINE__ % 256 : 0;
}

static int keep_access_to_files(void)
{
    const uint64_t keep = mk_capabilities_of_root_worker(false), before = SET(permitted);
    if (mk_capabilities_limit(keep))
        return __LINE__ % 256;
    if (SET(effective) != (keep & before) || SET(permitted) != (keep & before) || SET(inheritable) ||
        read_bounding_set() & ~keep)
        return __LINE__ % 256;
    return setuid(65534) == 0 || keep & (1 << CAP_SYS_ADMIN | 1 << CAP_SETUID) ? __LINE__ % 256 : 0;
}

/* The bounding set does not affect what the process has. */
static int limit_gain(void)
{
    const uint64_t before = SET(permitted);
    mk_capabilities_limit_gain(0);
    return read_bounding_set() || SET(permitted) != before || SET(effective) != before ? __LINE__ % 256 : 0;
}

/* Without CAP_SETPCAP the bounding set stays, which is not an error. */
static int limit_twice(void)
{
    if (mk_capabilities_limit(1 << CAP_CHOWN) || mk_capabilities_limit(0))
        return __LINE__ % 256;
    return SET(permitted) || SET(effective) ? __LINE__ % 256 : 0;
}

static void run_as_root(int (*child)(void))
{
    if (geteuid() != 0 || !(SET(effective) >> CAP_SETPCAP & 1))
        skip();
    if (mk_capabilities_of_root_worker(true) == UINT64_MAX)
        skip(); /* MK_FULL_SANDBOX=OFF */
    assert_int_equal(run_in_child(child), 0);
}

static void capabilities_can_all_be_dropped(void **state)
{
    (void)state;
    run_as_root(keep_nothing);
    run_as_root(limit_twice);
}

static void capabilities_of_root_worker_are_kept(void **state)
{
    (void)state;
    run_as_root(keep_access_to_files);
}

static void capabilities_survive_a_smaller_bounding_set(void **state)
{
    (void)state;
    run_as_root(limit_gain);
}

static void capabilities_have_names(void **state)
{
    char text[200];
    struct mk_buf out = mk_buf_fixed(text, sizeof text);
    (void)state;
    if (mk_capabilities_of_root_worker(true) == UINT64_MAX)
        skip(); /* MK_FULL_SANDBOX=OFF */
    mk_capabilities_print(1 << CAP_CHOWN | 1 << CAP_NET_BIND_SERVICE, &out);
    assert_true(mk_str_eq(mk_buf_str(&out), MK_STR("CAP_CHOWN CAP_NET_BIND_SERVICE")));
    uint64_t more = mk_capabilities_of_root_worker(true) & ~mk_capabilities_of_root_worker(false);
    assert_true(more == 1 << CAP_NET_BIND_SERVICE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capabilities_can_all_be_dropped),
        cmocka_unit_test(capabilities_of_root_worker_are_kept),
        cmocka_unit_test(capabilities_survive_a_smaller_bounding_set),
        cmocka_unit_test(capabilities_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
