/* SPDX-License-Identifier: Apache-2.0 */
#include "tokens.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

mk_str acme_token_from_path(mk_str path)
{
    mk_str prefix = MK_STR("/.well-known/acme-challenge/"), none = {NULL, 0};
    mk_str token = mk_str_skip(path, prefix.len);
    if (!mk_str_starts(path, prefix) || token.len == 0 || token.len > ACME_TOKEN_MAX)
        return none;
    for (size_t i = 0; i < token.len; i++)
        if (!mk_char_is_alpha(token.p[i]) && !mk_char_is_digit(token.p[i]) && token.p[i] != '-' &&
            token.p[i] != '_')
            return none;
    return token;
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
