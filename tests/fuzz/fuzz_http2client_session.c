/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds an HTTP/2 session with the bytes of a hostile backend. The first byte determines the size of the pieces
 * in which the bytes arrive. */
#include "unit/http2client/scripted_session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str bytes = mk_str_of((const char *)data, size);
    scripted_session_run(mk_str_skip(bytes, 1), size && data[0] ? data[0] : SIZE_MAX);
    return 0;
}
