/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/client.h>
#include <monkey/request.h>

struct mk_field_line *mk_client_lines_new(struct mk_request *request, size_t n, size_t size,
                                          struct mk_buf *text)
{
    struct mk_field_line *lines = mk_request_alloc(request, n * sizeof *lines + size);
    if (lines)
        *text = mk_buf_fixed((char *)(lines + n), size);
    return lines;
}
