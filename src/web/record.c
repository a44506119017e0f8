/* SPDX-License-Identifier: Apache-2.0 */
#include "web/record.h"

#include "base/clock.h"

static const char *const names[MK_ENDINGS] = {
    [MK_ENDING_DONE] = "done",       [MK_ENDING_REFUSED] = "refused", [MK_ENDING_GONE] = "gone",
    [MK_ENDING_TIMEOUT] = "timeout", [MK_ENDING_ABORTED] = "aborted", [MK_ENDING_SHUTDOWN] = "shutdown",
};

const char *mk_ending_name(enum mk_ending ending)
{
    return (unsigned)ending < MK_ENDINGS ? names[ending] : "";
}

const struct mk_request *mk_record_request(const struct mk_record *r)
{
    return r->request;
}

unsigned mk_record_status(const struct mk_record *r)
{
    return r->status;
}

enum mk_ending mk_record_ending(const struct mk_record *r)
{
    return r->ending;
}

uint64_t mk_record_sent(const struct mk_record *r)
{
    return r->content_sent;
}

uint64_t mk_record_duration_us(const struct mk_record *r)
{
    return r->began_us ? mk_clock_us() - r->began_us : r->duration_ms * 1000;
}

mk_str mk_record_field(const struct mk_record *r, mk_str name)
{
    return r->response ? mk_response_field(r->response, name) : (mk_str){NULL, 0};
}
