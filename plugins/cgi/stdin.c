/* SPDX-License-Identifier: Apache-2.0 */
#include "stdin.h"

#include <errno.h>

static bool ensure_buffer(struct cgi_stdin *in)
{
    if (!in->buf)
        in->buf = mk_mem_alloc(CGI_STDIN_BUF_SIZE);
    return in->buf != NULL;
}

int cgi_stdin_buffer_body(struct cgi_stdin *in, struct mk_request *request)
{
    if (!ensure_buffer(in))
        return -ENOMEM;
    while (in->to < CGI_STDIN_BUF_SIZE) {
        ssize_t n = mk_request_read(request, in->buf + in->to, CGI_STDIN_BUF_SIZE - in->to);
        if (n == -EAGAIN)
            return 0;
        if (n < 0)
            return (int)n;
        if (n == 0) {
            in->ended = true;
            return 1;
        }
        in->to += (size_t)n;
    }
    return CGI_STDIN_TOO_LONG;
}

/* Call this when the script has all input or accepts no more. */
static int close_script_stdin(struct cgi_stdin *in, struct cgi_process *process)
{
    in->ended = true;
    cgi_process_close_stdin(process);
    cgi_stdin_fini(in);
    return CGI_STDIN_CLOSED;
}

int cgi_stdin_copy_body(struct cgi_stdin *in, struct mk_request *request, struct cgi_process *process)
{
    if (process->in < 0)
        return close_script_stdin(in, process);
    if (!ensure_buffer(in))
        return -ENOMEM;
    for (;;) {
        while (in->from < in->to) {
            ssize_t n = cgi_process_write(process, mk_str_of(in->buf + in->from, in->to - in->from));
            if (n == -EAGAIN)
                return CGI_STDIN_NEEDS_SCRIPT;
            if (n < 0)
                return close_script_stdin(in, process);
            in->from += (size_t)n;
        }
        if (in->ended)
            return close_script_stdin(in, process);
        in->from = in->to = 0;
        ssize_t n = mk_request_read(request, in->buf, CGI_STDIN_BUF_SIZE);
        if (n < 0)
            return n == -EAGAIN ? CGI_STDIN_NEEDS_CLIENT : (int)n;
        in->to = (size_t)n;
        in->ended = n == 0;
    }
}

void cgi_stdin_fini(struct cgi_stdin *in)
{
    mk_mem_free(in->buf);
    in->buf = NULL;
    in->from = in->to = 0;
}
