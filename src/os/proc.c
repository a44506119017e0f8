/* SPDX-License-Identifier: Apache-2.0 */
#include "os/proc.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

unsigned mk_proc_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

void mk_proc_hide(void)
{
#ifndef __SANITIZE_ADDRESS__
    (void)prctl(PR_SET_DUMPABLE, 0);
#endif
}

void mk_proc_set_name(const char *name)
{
    (void)prctl(PR_SET_NAME, name);
}

mk_err mk_proc_die_with_parent(pid_t parent, int signal)
{
    if (prctl(PR_SET_PDEATHSIG, signal) < 0)
        return mk_err_last();
    return getppid() == parent ? 0 : -ESRCH;
}
