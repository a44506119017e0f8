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
    char room[128];
    uint64_t ns;
    ssize_t n = fd < 0 ? -1 : pread(fd, room, sizeof room, 0);
    mk_str text = mk_str_of(room, n > 0 ? (size_t)n : 0);
    (void)mk_str_word(&text); /* how long it ran */
    return mk_num_parse(mk_str_word(&text), &ns) ? ns : 0;
}
