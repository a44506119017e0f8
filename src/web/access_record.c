/* SPDX-License-Identifier: Apache-2.0 */
#include "web/access_record.h"

#include "base/clock.h"

static const char *const names[] = {
    [MK_OUTCOME_OK] = "ok",
    [MK_OUTCOME_REJECTED] = "rejected",
    [MK_OUTCOME_CLIENT_ABORTED] = "client_aborted",
    [MK_OUTCOME_TIMEOUT] = "timeout",
    [MK_OUTCOME_FAILED] = "failed",
    [MK_OUTCOME_SHUTDOWN] = "shutdown",
};

const char *mk_outcome_name(enum mk_outcome outcome)
{
    return (unsigned)outcome < MK_LEN(names) ? names[outcome] : "";
}

const struct mk_request *mk_access_record_request(const struct mk_access_record *r)
{
    return r->request;
}

unsigned mk_access_record_status(const struct mk_access_record *r)
{
    return r->status;
}

enum mk_outcome mk_access_record_outcome(const struct mk_access_record *r)
{
    return r->outcome;
}

uint64_t mk_access_record_sent(const struct mk_access_record *r)
{
    return r->content_sent;
}

const char *mk_access_record_reason(const struct mk_access_record *r)
{
    bool is_known = r->reason && (r->is_reason_set || r->outcome == MK_OUTCOME_OK);
    return is_known ? r->reason : mk_outcome_name(r->outcome);
}

uint64_t mk_access_record_received(const struct mk_access_record *r)
{
    return r->content_received;
}

uint64_t mk_access_record_duration_us(const struct mk_access_record *r)
{
    return r->began_us ? mk_clock_us() - r->began_us : r->duration_ms * 1000;
}

mk_str mk_access_record_header(const struct mk_access_record *r, mk_str name)
{
    return r->response ? mk_response_header(r->response, name) : (mk_str){NULL, 0};
}
