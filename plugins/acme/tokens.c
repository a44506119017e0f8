/* SPDX-License-Identifier: Apache-2.0 */
#include "tokens.h"

#include <fcntl.h>
#include <limits.h>
#include <monkey/text.h>
#include <stdio.h>
#include <unistd.h>

mk_str acme_token_from_path(mk_str path)
{
    mk_str token = mk_acme_token(path);
    return token.len <= ACME_TOKEN_MAX ? token : MK_STR_NULL;
}

size_t acme_token_read_response(const char *folder, mk_str token, char buf[ACME_RESPONSE_MAX])
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/%.*s", folder, MK_STR_ARG(token));
    if (len < 0 || len >= (int)sizeof path)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, buf, ACME_RESPONSE_MAX);
    close(fd);
    return n > 0 ? (size_t)n : 0;
}
