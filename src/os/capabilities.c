/* SPDX-License-Identifier: Apache-2.0 */
#include "os/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NUMBERS = 64 /* of a set; the kernel uses about 41 */ };

static const struct {
    unsigned number;
    char name[24];
} known[] = {
    {CAP_CHOWN, "CAP_CHOWN"},   {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
    {CAP_FOWNER, "CAP_FOWNER"}, {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"},
    {CAP_FSETID, "CAP_FSETID"}, {CAP_NET_BIND_SERVICE, "CAP_NET_BIND_SERVICE"},
};

uint64_t mk_capabilities_of_root_worker(bool binds_ports)
{
    uint64_t set = 0;
    for (size_t i = 0; i < MK_LEN(known); i++)
        if (binds_ports || known[i].number != CAP_NET_BIND_SERVICE)
            set |= UINT64_C(1) << known[i].number;
    return set;
}

void mk_capabilities_limit_gain(uint64_t keep)
{
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (unsigned i = 0; i < NUMBERS; i++)
        if (!(keep >> i & 1) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
            (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
}

mk_err mk_capabilities_limit(uint64_t keep)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    mk_capabilities_limit_gain(keep);
    if (syscall(SYS_capget, &head, sets) < 0)
        return mk_err_last();
    for (unsigned i = 0; i < MK_LEN(sets); i++) {
        uint32_t half = (uint32_t)(keep >> 32 * i);
        sets[i].permitted &= half;
        sets[i].effective &= half;
        sets[i].inheritable = 0;
    }
    return syscall(SYS_capset, &head, sets) < 0 ? mk_err_last() : 0;
}

void mk_capabilities_print(uint64_t set, struct mk_buf *out)
{
    const char *before = "";
    for (size_t i = 0; i < MK_LEN(known); i++)
        if (set >> known[i].number & 1) {
            mk_buf_addf(out, "%s%s", before, known[i].name);
            before = " ";
        }
}
