/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of HTTP requests on the control socket: the input is read line by line, as a session does. A header whose
 * name another parser could take for Content-Length or Transfer-Encoding is never ignored, and the command of a request
 * is one line of printable words. */
#include "cheetah/http.h"

#include <monkey/plugin.h>

#include "base/assert.h"
#include "cheetah/http_content.c"

enum { COMMAND_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Is this the name, ignoring all characters that no name contains? */
static bool resembles(mk_str name, mk_str known)
{
    size_t n = 0;
    for (size_t i = 0; i < name.len; i++) {
        mk_str c = mk_str_first(mk_str_skip(name, i), 1);
        if (!mk_is_token(c))
            continue;
        if (n == known.len || !mk_str_eq_nocase(c, mk_str_first(mk_str_skip(known, n), 1)))
            return false;
        n++;
    }
    return n == known.len;
}

static void check_header(const struct cheetah_http *h, mk_str line)
{
    mk_str name = mk_str_cut(&line, ':');
    MK_ASSERT(!resembles(name, MK_STR("Transfer-Encoding")));
    MK_ASSERT(!resembles(name, MK_STR("Content-Length")) || h->has_length);
}

static void check_command(const struct cheetah_http *h, mk_str content)
{
    char buf[COMMAND_MAX];
    struct mk_buf command = mk_buf_fixed(buf, sizeof buf);
    enum cheetah_http_type type;
    struct cheetah_http_error e = cheetah_http_command(h, content, &command, &type);
    if (e.status || command.failed)
        return;
    mk_str text = mk_buf_str(&command), target = mk_str_from_c(h->target);
    bool has_options = mk_str_starts(target, MK_STR("/top?")) || mk_str_starts(target, MK_STR("/requests?"));
    MK_ASSERT(text.len > 0 && text.p[0] != ' ');
    for (size_t i = 0; i < text.len; i++)
        MK_ASSERT((text.p[i] >= ' ' && text.p[i] <= '~') || (has_options && (unsigned char)text.p[i] > 0x7f));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str in = mk_str_of((const char *)data, size), line = mk_str_cut(&in, '\n');
    struct cheetah_http h = {0};
    if (mk_str_ends(line, MK_STR("\r")))
        line = mk_str_first(line, line.len - 1);
    if (!cheetah_http_is_request_line(line))
        return 0;
    struct cheetah_http_error e = cheetah_http_begin(&h, line);
    while (!e.status && !h.has_head && in.len) {
        line = mk_str_cut(&in, '\n');
        if (mk_str_ends(line, MK_STR("\r")))
            line = mk_str_first(line, line.len - 1);
        e = cheetah_http_read_line(&h, line);
        if (!e.status && !h.has_head)
            check_header(&h, line);
    }
    MK_ASSERT(h.length <= CHEETAH_HTTP_CONTENT_MAX);
    if (!e.status && h.has_head && h.length <= in.len)
        check_command(&h, mk_str_first(in, h.length));
    cheetah_http_reset(&h);
    return 0;
}
