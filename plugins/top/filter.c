/* SPDX-License-Identifier: Apache-2.0 */
#include "filter.h"

#include <monkey/access_record.h>

#include "print.h"

enum { STATUS_MAX = 999 };

bool top_filter_parse_ms(mk_str text, uint64_t *ms)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {"", 1000}};
    size_t digits = 0;
    while (digits < text.len && text.p[digits] >= '0' && text.p[digits] <= '9')
        digits++;
    mk_str unit = mk_str_skip(text, digits);
    for (size_t i = 0; i < MK_LEN(units); i++)
        if (mk_str_eq(unit, mk_str_from_c(units[i].name))) {
            bool ok = mk_num_parse(mk_str_first(text, digits), ms) && *ms <= UINT64_MAX / 1000 / units[i].ms;
            *ms *= units[i].ms;
            return ok;
        }
    return false;
}

static bool parse_status_number(mk_str text, unsigned *out)
{
    uint64_t n;
    bool ok = mk_num_parse(text, &n) && n <= STATUS_MAX;
    *out = ok ? (unsigned)n : 0;
    return ok;
}

bool top_filter_parse_status(mk_str text, struct top_filter *f)
{
    mk_str last = text, first = mk_str_cut(&last, '-');
    if (text.len == 3 && mk_str_ends(text, MK_STR("xx")) && text.p[0] >= '1' && text.p[0] <= '5') {
        f->status_min = 100 * (unsigned)(text.p[0] - '0');
        f->status_max = f->status_min + 99;
        return true;
    }
    if (!parse_status_number(first, &f->status_min))
        return false;
    f->status_max = f->status_min;
    return f->status_min &&
           (!last.p || (parse_status_number(last, &f->status_max) && f->status_max >= f->status_min));
}

void top_filter_set_now(struct top_filter *f, uint64_t now_ms)
{
    f->since_ms = f->last_ms && f->last_ms < now_ms ? now_ms - f->last_ms : 0;
}

bool top_filter_is_failed(const struct mk_recorder_record *r)
{
    return r->state == MK_RECORDER_LOST ||
           (r->state == MK_RECORDER_ENDED &&
            (r->status >= 500 || !r->status || r->outcome > MK_OUTCOME_REJECTED));
}

static bool matches_result(const struct top_filter *f, const struct mk_recorder_record *r)
{
    if (f->only_open && r->state != MK_RECORDER_OPEN && r->state != MK_RECORDER_LOST)
        return false;
    if (f->only_failed && !top_filter_is_failed(r))
        return false;
    if (f->status_min &&
        (r->state != MK_RECORDER_ENDED || r->status < f->status_min || r->status > f->status_max))
        return false;
    return r->duration_us >= f->slower_us || (f->slower_us == 0);
}

bool top_filter_match(const struct top_filter *f, const struct top_entry *e)
{
    const struct mk_recorder_record *r = &e->record;
    return (r->state == MK_RECORDER_OPEN || top_entry_ended_ms(e) >= f->since_ms) && matches_result(f, r) &&
           (!f->has_client || mk_network_contains(&f->client, &r->client)) &&
           (!f->host.len || mk_str_match_nocase(e->text[MK_RECORDER_HOST], f->host)) &&
           (!f->path.len || mk_str_match(e->text[MK_RECORDER_PATH], f->path)) &&
           (!f->upstream.len || mk_str_match(e->text[MK_RECORDER_UPSTREAM], f->upstream)) &&
           (!f->id.len || mk_str_eq(e->text[MK_RECORDER_ID], f->id));
}
