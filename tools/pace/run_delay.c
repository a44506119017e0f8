/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/run_delay.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/num.h"

int pace_run_delay_open(void)
{
    return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

uint64_t pace_run_delay_read(int fd)
{
    char buf[128];
    uint64_t ns;
    ssize_t n = fd < 0 ? -1 : pread(fd, buf, sizeof buf, 0);
    mk_str text = mk_str_of(buf, n > 0 ? (size_t)n : 0);
    (void)mk_str_word(&text); /* the time on the CPU comes first */
    return mk_num_parse(mk_str_word(&text), &ns) ? ns : 0;
}
