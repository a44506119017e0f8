/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the kernel look older: it has at most the Landlock ABI that MONKEY_LANDLOCK_ABI names, a digit; 0: no
 * Landlock. With MONKEY_NO_SECCOMP, it has no filter for system calls. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/landlock.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "fault/fault.h"

enum { ASKED /* number of questions for the ABI */ };

static long limit_abi(long abi)
{
    const char *text = getenv("MONKEY_LANDLOCK_ABI");
    long max = text ? text[0] - '0' : abi;
    if (fault)
        atomic_fetch_add(&fault[ASKED], 1);
    if (max <= 0)
        errno = ENOSYS;
    return max <= 0 ? -1 : abi < max ? abi : max;
}

long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (!real)
        real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_seccomp && getenv("MONKEY_NO_SECCOMP")) {
        errno = EINVAL; /* as without CONFIG_SECCOMP_FILTER */
        return -1;
    }
    long r = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return number == SYS_landlock_create_ruleset && a[2] == LANDLOCK_CREATE_RULESET_VERSION ? limit_abi(r)
                                                                                            : r;
}
