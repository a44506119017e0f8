/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that is asked and said, and problems. */
#include <duda.h>
#include <errno.h>

#include "service/forms.h"
#include "service/said.h"
#include "service/task.h"

enum { SIZE_DEFAULT = 1 << 20, PROBLEM_MAX = 32 << 10, DETAIL_MAX = 1024 };

/* ---- Said ---- */

int duda_json(struct duda *d, struct duda_value value)
{
    int e = duda_said_begin(d);
    if (!e && !d->typed)
        e = duda_said_type(d, MK_STR("application/json"));
    if (e)
        return e;
    size_t before = d->out.len;
    duda_json_write(&d->out, &value);
    if (d->out.failed) /* a part of it is no JSON */
        d->out.len = before;
    return duda_said_end(d);
}

int duda_json_of(struct duda *d, const struct duda_shape *shape, const void *at)
{
    return duda_json(d, duda_value_struct(shape, at));
}

/* ---- Problems ---- */

static const char *title_of(unsigned status)
{
    static const struct {
        unsigned status;
        const char *title;
    } titles[] = {{400, "Bad Request"},
                  {401, "Unauthorized"},
                  {403, "Forbidden"},
                  {404, "Not Found"},
                  {406, "Not Acceptable"},
                  {409, "Conflict"},
                  {410, "Gone"},
                  {412, "Precondition Failed"},
                  {413, "Content Too Large"},
                  {415, "Unsupported Media Type"},
                  {422, "Unprocessable Content"},
                  {429, "Too Many Requests"},
                  {500, "Internal Server Error"},
                  {503, "Service Unavailable"}};
    for (size_t i = 0; i < MK_LEN(titles); i++)
        if (titles[i].status == status)
            return titles[i].title;
    return NULL;
}

static void begin_problem(struct mk_buf *out, unsigned status, mk_str detail)
{
    const char *title = title_of(status);
    if (title)
        mk_buf_addf(out, "{\"title\":\"%s\",\"status\":%u,\"detail\":", title, status);
    else
        mk_buf_addf(out, "{\"status\":%u,\"detail\":", status);
    mk_json_string(out, detail);
}

/* In the place of what was said. A response that has begun ends as one that has failed. */
static int say_problem(struct duda *d, unsigned status, const struct mk_buf *text)
{
    if (text->failed)
        return (int)status;
    mk_buf_clear(&d->out);
    int e = duda_said_type(d, MK_STR("application/problem+json"));
    if (!e)
        e = duda_status(d, status);
    if (!e)
        e = duda_say(d, mk_buf_str(text));
    return e ? e : DUDA_ANSWERED;
}

int duda_problem(struct duda *d, unsigned status, const char *fmt, ...)
{
    char room[DETAIL_MAX];
    struct mk_buf detail = mk_buf_fixed(room, sizeof room);
    struct duda_scratch out;
    if (d->streams)
        return (int)status;
    int e = duda_scratch_begin(d, &out, PROBLEM_MAX);
    if (e)
        return e;
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&detail, fmt, args);
    va_end(args);
    begin_problem(&out.buf, status, mk_buf_str(&detail));
    mk_buf_add_char(&out.buf, '}');
    e = say_problem(d, status, &out.buf);
    duda_wait_end(&out.wait);
    return e;
}

static void add_flaw(struct mk_buf *out, const struct duda_flaw *flaw)
{
    mk_buf_add(out, MK_STR("{\"detail\":"));
    mk_json_string(out, flaw->text);
    mk_buf_add(out, MK_STR(",\"pointer\":"));
    mk_json_string(out, flaw->pointer);
    if (flaw->line)
        mk_buf_addf(out, ",\"line\":%zu,\"column\":%zu", flaw->line, flaw->column);
    mk_buf_add_char(out, '}');
}

int duda_problem_flaws(struct duda *d, unsigned status, const struct duda_flaws *flaws)
{
    char room[DETAIL_MAX];
    struct mk_buf detail = mk_buf_fixed(room, sizeof room);
    struct duda_scratch scratch;
    struct mk_buf *out = &scratch.buf;
    if (d->streams)
        return (int)status;
    int e = duda_scratch_begin(d, &scratch, PROBLEM_MAX);
    if (e)
        return e;
    if (flaws->n)
        duda_flaw_write(&detail, &flaws->at[0]);
    if (flaws->n > 1)
        mk_buf_addf(&detail, "; and %zu more", flaws->n - 1);
    begin_problem(out, status, mk_buf_str(&detail));
    mk_buf_add(out, MK_STR(",\"errors\":["));
    for (size_t i = 0; i < flaws->n; i++) {
        if (i)
            mk_buf_add_char(out, ',');
        add_flaw(out, &flaws->at[i]);
    }
    mk_buf_add(out, MK_STR("]}"));
    e = say_problem(d, status, out);
    duda_wait_end(&scratch.wait);
    return e;
}

/* ---- Asked ---- */

/* "application/json", "application/problem+json", whatever their parameters. */
static bool is_json(mk_str type)
{
    size_t end = mk_str_find(type, ';');
    type = mk_str_trim(mk_str_first(type, end == MK_STR_NONE ? type.len : end));
    if (mk_str_eq_nocase(type, MK_STR("application/json")))
        return true;
    return type.len > 5 && mk_str_eq_nocase(mk_str_skip(type, type.len - 5), MK_STR("+json"));
}

static int receive(struct duda *d, const struct duda_json_limits *limits, mk_str *text)
{
    size_t max = limits && limits->size ? limits->size : SIZE_DEFAULT;
    if (!is_json(duda_task_field(d, "Content-Type")))
        return duda_problem(d, 415, "the content must be JSON: Content-Type: application/json");
    if (duda_coding_check(d))
        return duda_problem(d, 415, "the content must not be encoded: no Content-Encoding");
    int e = duda_read_all(d, max, text);
    return e == -EMSGSIZE ? duda_problem(d, 413, "the content must have at most %zu bytes", max) : e;
}

static int judge(struct duda *d, int e, const struct duda_flaws *flaws)
{
    switch (e) {
    case -EBADMSG:
        return duda_problem_flaws(d, 400, flaws);
    case -EFBIG:
        return duda_problem_flaws(d, 413, flaws);
    case -EINVAL:
        return duda_problem_flaws(d, 422, flaws);
    default:
        return e;
    }
}

int duda_read_json(struct duda *d, const struct duda_shape *shape, void *out,
                   const struct duda_json_limits *limits)
{
    const struct duda_allocator memory = duda_allocator_of(d);
    struct duda_flaws flaws;
    mk_str text;
    int e = receive(d, limits, &text);
    return e ? e : judge(d, duda_json_read(text, shape, &memory, limits, out, &flaws), &flaws);
}

int duda_read_json_list(struct duda *d, const struct duda_shape *shape, void *list, size_t *n,
                        const struct duda_json_limits *limits)
{
    const struct duda_allocator memory = duda_allocator_of(d);
    struct duda_flaws flaws;
    mk_str text;
    int e = receive(d, limits, &text);
    return e ? e : judge(d, duda_json_read_list(text, shape, &memory, limits, list, n, &flaws), &flaws);
}

int duda_read_json_value(struct duda *d, struct duda_value *out, const struct duda_json_limits *limits)
{
    const struct duda_allocator memory = duda_allocator_of(d);
    struct duda_flaws flaws;
    mk_str text;
    int e = receive(d, limits, &text);
    return e ? e : judge(d, duda_json_read_value(text, &memory, limits, out, &flaws), &flaws);
}

int duda_query_read(struct duda *d, const struct duda_shape *shape, void *out)
{
    const struct duda_allocator memory = duda_allocator_of(d);
    struct duda_fields fields;
    struct duda_flaws flaws;
    int e = duda_fields_parse(d->request ? mk_request_query(d->request) : MK_ABSENT, &memory, NULL, &fields);
    if (e == -EBADMSG)
        return duda_problem(d, 400, "the query has a %% without two hexadecimal digits");
    if (e == -EFBIG)
        return duda_problem(d, 413, "the query has too many names, or too long ones");
    if (!e)
        e = duda_fields_read(&fields, shape, &memory, out, &flaws);
    return e == -EINVAL ? duda_problem_flaws(d, 400, &flaws) : e;
}

/* ---- What the client likes ---- */

int duda_choose_type(struct duda *d, const char *const *types)
{
    unsigned best_q = 0;
    int best = -1;
    for (int i = 0; d->request && types[i]; i++) {
        unsigned q = mk_request_accepts_type(d->request, mk_str_from_c(types[i]));
        if (q > best_q) {
            best = i;
            best_q = q;
        }
    }
    (void)duda_add(d, "Vary", MK_STR("Accept"));
    return best;
}

int duda_choose_language(struct duda *d, const char *const *languages)
{
    int best = duda_language_choose(duda_task_field(d, "Accept-Language"), languages);
    (void)duda_add(d, "Vary", MK_STR("Accept-Language"));
    return best < 0 ? 0 : best;
}
