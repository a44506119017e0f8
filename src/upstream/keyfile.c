/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/sha1.h"

enum { SECRET_MIN = 32, FILE_MAX = 16 * 1024 };

static ssize_t read_file(const char *path, char *room, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, room, cap) : -1;
    int e = errno;
    if (fd >= 0)
        close(fd);
    errno = e;
    return n;
}

/* Editors leave one behind, and others do not. */
static mk_str without_line_end(mk_str s)
{
    while (mk_str_ends(s, MK_STR("\n")) || mk_str_ends(s, MK_STR("\r")))
        s.len--;
    return s;
}

bool mk_keyfile_read(struct mk_config *config, const void *section, mk_str path, struct mk_hash_key *out)
{
    char text[FILE_MAX];
    unsigned char sum[MK_SHA1_LEN];
    ssize_t n = path.p ? read_file(path.p, text, sizeof text) : -1;
    mk_str secret = without_line_end(mk_str_of(text, n > 0 ? (size_t)n : 0));
    if (n < 0)
        mk_config_error(config, section, "KeyFile", "`%.*s` cannot be read: %s", MK_STR_ARG(path),
                        strerror(errno));
    else if (secret.len < SECRET_MIN)
        mk_config_error(config, section, "KeyFile", "`%.*s` has %zu characters: a secret needs at least %d",
                        MK_STR_ARG(path), secret.len, SECRET_MIN);
    mk_sha1(secret, sum);
    memcpy(out, sum, sizeof *out);
    explicit_bzero(text, sizeof text);
    return n >= 0 && secret.len >= SECRET_MIN;
}
