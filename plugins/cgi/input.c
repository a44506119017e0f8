/* SPDX-License-Identifier: Apache-2.0 */
#include "input.h"

#include <errno.h>

static bool has_room(struct cgi_input *in)
{
    if (!in->room)
        in->room = mk_mem_alloc(CGI_INPUT_ROOM);
    return in->room != NULL;
}

int cgi_input_gather(struct cgi_input *in, struct mk_request *request)
{
    if (!has_room(in))
        return -ENOMEM;
    while (in->to < CGI_INPUT_ROOM) {
        ssize_t n = mk_request_read(request, in->room + in->to, CGI_INPUT_ROOM - in->to);
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
    return -EFBIG;
}

/* The script takes no more of it. */
static int finish(struct cgi_input *in, struct cgi_process *process)
{
    in->ended = true;
    cgi_process_end_input(process);
    cgi_input_fini(in);
    return CGI_INPUT_OVER;
}

int cgi_input_pump(struct cgi_input *in, struct mk_request *request, struct cgi_process *process)
{
    if (process->in < 0)
        return finish(in, process);
    if (!has_room(in))
        return -ENOMEM;
    for (;;) {
        while (in->from < in->to) {
            ssize_t n = cgi_process_write(process, mk_str_of(in->room + in->from, in->to - in->from));
            if (n == -EAGAIN)
                return CGI_INPUT_SCRIPT;
            if (n < 0)
                return finish(in, process);
            in->from += (size_t)n;
        }
        if (in->ended)
            return finish(in, process);
        in->from = in->to = 0;
        ssize_t n = mk_request_read(request, in->room, CGI_INPUT_ROOM);
        if (n < 0)
            return n == -EAGAIN ? CGI_INPUT_CLIENT : (int)n;
        in->to = (size_t)n;
        in->ended = n == 0;
    }
}

void cgi_input_fini(struct cgi_input *in)
{
    mk_mem_free(in->room);
    in->room = NULL;
    in->from = in->to = 0;
}
