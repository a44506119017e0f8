/* SPDX-License-Identifier: Apache-2.0 */
/* mk_bind_unix() for a server without threads (MK_THREADS=OFF). It changes the umask of the process during
 * the call. */
#include "os/bind_unix.h"

#include <sys/stat.h>

mk_err mk_bind_unix(int fd, const struct mk_sockaddr *a, unsigned mode)
{
    if (fchmod(fd, mode) < 0)
        return mk_err_last();
    mode_t before = umask(~(mode_t)mode & 0777);
    mk_err e = bind(fd, &a->any, a->len) < 0 ? mk_err_last() : 0;
    (void)umask(before);
    return e;
}
