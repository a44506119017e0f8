/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sd_notify.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/num.h"
#include "os/fd.h"

enum { SOCKETS_MAX = 1024, WATCHDOG_MAX_MS = 24 * 3600 * 1000 };

mk_err mk_sd_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (!path || !*path)
        return 0;
    size_t len = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || len >= sizeof to.sun_path)
        return -EINVAL;
    memcpy(to.sun_path, path, len);
    if (path[0] == '@')
        to.sun_path[0] = '\0'; /* abstract namespace */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return mk_err_last();
    socklen_t to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    ssize_t n = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, to_len);
    mk_err e = n < 0 ? mk_err_last() : 0;
    mk_fd_close(&fd);
    return e;
}

uint32_t mk_sd_watchdog_ms(void)
{
    uint64_t us, pid;
    mk_str manager = mk_str_from_c(getenv("NOTIFY_SOCKET")), wanted = mk_str_from_c(getenv("WATCHDOG_PID"));
    if (!manager.len || !mk_num_parse(mk_str_from_c(getenv("WATCHDOG_USEC")), &us))
        return 0;
    if (wanted.len && (!mk_num_parse(wanted, &pid) || pid != (uint64_t)getpid()))
        return 0;
    unsetenv("WATCHDOG_PID");
    return us / 1000 < WATCHDOG_MAX_MS ? (uint32_t)(us / 1000) : WATCHDOG_MAX_MS;
}

unsigned mk_sd_listen_fds(void)
{
    uint64_t pid, n;
    if (!mk_num_parse(mk_str_from_c(getenv("LISTEN_PID")), &pid) || pid != (uint64_t)getpid())
        return 0;
    if (!mk_num_parse(mk_str_from_c(getenv("LISTEN_FDS")), &n) || n > SOCKETS_MAX)
        return 0;
    return (unsigned)n;
}

bool mk_sd_is_journal_stream(int fd)
{
    struct stat st;
    uint64_t device, inode;
    mk_str rest = mk_str_from_c(getenv("JOURNAL_STREAM")), first = mk_str_cut(&rest, ':');
    return mk_num_parse(first, &device) && mk_num_parse(rest, &inode) && fstat(fd, &st) == 0 &&
           st.st_dev == device && st.st_ino == inode;
}
