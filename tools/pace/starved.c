/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/starved.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/num.h"
#include "os/fd.h"

bool pace_starved_read(uint64_t *ns)
{
    char room[128];
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, room, sizeof room);
    mk_fd_close(&fd);
    mk_str text = mk_str_of(room, n > 0 ? (size_t)n : 0);
    (void)mk_str_word(&text); /* how long it ran */
    return mk_num_parse(mk_str_word(&text), ns);
}
