/* SPDX-License-Identifier: Apache-2.0 */
/* A server without a filter of system calls (MK_FULL_SANDBOX=OFF). */
#include "os/syscall_filter.h"

bool mk_syscall_filter_is_supported(void)
{
    return false;
}

mk_err mk_syscall_filter_enforce(const struct mk_syscall_filter *f)
{
    (void)f;
    return -EOPNOTSUPP;
}

unsigned short mk_syscall_filter_build(const struct mk_syscall_filter *f, int self, struct sock_filter *code)
{
    (void)f, (void)self, (void)code;
    return 0;
}

void mk_syscall_filter_print(const struct mk_syscall_filter *f, struct mk_buf *out)
{
    (void)f, (void)out;
}
