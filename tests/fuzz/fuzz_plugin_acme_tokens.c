/* SPDX-License-Identifier: Apache-2.0 */
/* A path contains no token, or a token that is a plain file name and cannot lead out of its folder. */
#include <stdint.h>
#include <stdlib.h>

#include "acme/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char buffer[ACME_RESPONSE_MAX];
    mk_str path = mk_str_of((const char *)data, size), token = acme_token_from_path(path);
    if (!token.p)
        return 0;
    if (token.len == 0 || token.len > ACME_TOKEN_MAX || mk_str_find(token, '/') != MK_STR_NONE ||
        mk_str_find(token, '.') != MK_STR_NONE || mk_str_find(token, '\0') != MK_STR_NONE ||
        !mk_str_ends(path, token))
        abort();
    (void)acme_token_read_response("/nonexistent", token, buffer);
    return 0;
}
