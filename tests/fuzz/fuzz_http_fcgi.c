/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the records of a FastCGI response at once and in pieces: output, end and remaining input are the
 * same. */
#include "base/assert.h"
#include "http/fcgi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 4096 };

struct result {
    enum mk_fcgi_event step;
    const char *problem;
    unsigned status;
    size_t rest, n_out, n_err;
    char out[INPUT_MAX], err[INPUT_MAX];
};

static void add(char *buffer, size_t *len, mk_str data)
{
    MK_ASSERT(*len + data.len <= INPUT_MAX);
    memcpy(buffer + *len, data.p, data.len);
    *len += data.len;
}

/* Returns the last `back` bytes of every other piece of output to the parser, if the piece is longer. */
static void parse_piece(struct mk_fcgi *f, mk_str *in, struct result *r, size_t back)
{
    bool gave_back = false;
    mk_str data = MK_STR_NULL, whole = *in;
    do {
        r->step = mk_fcgi_parse(f, in, &data);
        if (r->step != MK_FCGI_OUT && r->step != MK_FCGI_ERR)
            return;
        MK_ASSERT(data.len > 0 && data.p >= whole.p && data.p + data.len == in->p);
        if (r->step == MK_FCGI_OUT && data.len > back && !gave_back) {
            mk_fcgi_unread(f, in, back);
            data.len -= back;
        }
        gave_back = !gave_back;
        if (r->step == MK_FCGI_OUT)
            add(r->out, &r->n_out, data);
        else
            add(r->err, &r->n_err, data);
    } while (true);
}

static void read_records(mk_str text, size_t size, struct result *r)
{
    struct mk_fcgi f;
    mk_str in = mk_str_first(text, 0);
    *r = (struct result){.step = MK_FCGI_MORE};
    mk_fcgi_init(&f);
    while (r->step == MK_FCGI_MORE && text.len) {
        in = mk_str_first(text, size);
        text = mk_str_skip(text, in.len);
        parse_piece(&f, &in, r, size % 3);
        MK_ASSERT(r->step != MK_FCGI_MORE || in.len == 0);
    }
    MK_ASSERT((r->step == MK_FCGI_BAD) == (f.problem != NULL));
    r->problem = f.problem;
    r->status = f.status;
    r->rest = in.len + text.len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct result whole, pieces;
    if (size > INPUT_MAX)
        return 0;
    mk_str text = mk_str_of((const char *)data, size);
    read_records(text, INPUT_MAX, &whole);
    MK_ASSERT(whole.step != MK_FCGI_OVER || whole.status <= MK_FCGI_UNKNOWN_ROLE);
    for (size_t step = 1; step < 20; step += 3) {
        read_records(text, step, &pieces);
        MK_ASSERT(pieces.step == whole.step && pieces.problem == whole.problem && pieces.rest == whole.rest);
        MK_ASSERT(pieces.n_out == whole.n_out && memcmp(pieces.out, whole.out, whole.n_out) == 0);
        MK_ASSERT(pieces.n_err == whole.n_err && memcmp(pieces.err, whole.err, whole.n_err) == 0);
    }
    return 0;
}
