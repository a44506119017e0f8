/* SPDX-License-Identifier: Apache-2.0 */
/* Checks every response: the first one is recorded and compared with the command-line options; all later ones
 * are compared with the first, byte by byte, as they arrive. */
#ifndef PACE_RESPONSE_CHECK_H
#define PACE_RESPONSE_CHECK_H

#include "base/buf.h"
#include "http/response_parser.h"
#include "load/option.h"

enum { PACE_RESPONSE_CHECK_MAX = 256 * 1024 * 1024, PACE_RESPONSE_CHECK_ERROR_MAX = 200 };

struct pace_response_check {
    struct load_expected expected; /* from the command line */
    bool varies;                   /* responses may differ from each other */
    /* The recorded response. */
    bool recorded;
    uint64_t body_length;
    unsigned char body_sha1[MK_SHA1_LEN]; /* unset if `varies` */
    struct mk_buf body;                   /* empty if `varies` */
};

/* Progress of one comparison; zero-initialized at the start of a response. */
struct pace_comparison {
    uint64_t at;
    uint64_t differs_at; /* 1 + offset of the first difference */
};

enum pace_verdict { PACE_RESPONSE_OK, PACE_RESPONSE_WRONG_STATUS, PACE_RESPONSE_WRONG_BODY };

void pace_response_check_fini(struct pace_response_check *r);

/* Compares the next piece of the body, or records it if the response is the first. If the body is too long to
 * match or to record, writes the reason to `why` and returns false. */
bool pace_response_check_body(struct pace_response_check *r, struct pace_comparison *c,
                              const struct mk_response_parser *reply, mk_str data,
                              char why[PACE_RESPONSE_CHECK_ERROR_MAX]) MK_MUST_USE;

/* Checks a complete response; if it is wrong, writes the reason to `why`. */
enum pace_verdict pace_response_check_verify(const struct pace_response_check *r,
                                             const struct pace_comparison *c,
                                             const struct mk_response_parser *reply,
                                             char why[PACE_RESPONSE_CHECK_ERROR_MAX]);
/* Completes the recording and checks the recorded response. */
enum pace_verdict pace_response_check_end_recording(struct pace_response_check *r,
                                                    const struct mk_response_parser *reply,
                                                    char why[PACE_RESPONSE_CHECK_ERROR_MAX]);

#endif
