/* SPDX-License-Identifier: Apache-2.0 */
/* What every answer must be: the first one is recorded and held against what was asked for, all others are
 * compared with it byte by byte as they come in. */
#ifndef PACE_RESPONSE_CHECK_H
#define PACE_RESPONSE_CHECK_H

#include "base/buf.h"
#include "http/response_parser.h"
#include "load/option.h"

enum { PACE_RESPONSE_CHECK_MAX = 256 * 1024 * 1024, PACE_RESPONSE_CHECK_ERROR_MAX = 200 };

struct pace_response_check {
    struct load_expected expected; /* what was asked for */
    bool varies;                   /* answers may differ from each other */
    /* Recorded. */
    bool recorded;
    uint64_t body_length;
    unsigned char body_sha1[MK_SHA1_LEN]; /* unless it varies */
    struct mk_buf body;                   /* empty when it varies */
};

/* One answer on its way; zero is its beginning. */
struct pace_comparison {
    uint64_t at;
    uint64_t differs_at; /* 1 + the first place */
};

enum pace_verdict { PACE_RESPONSE_OK, PACE_RESPONSE_WRONG_STATUS, PACE_RESPONSE_WRONG_BODY };

void pace_response_check_fini(struct pace_response_check *r);

/* A piece of the content of `reply`, in order: it is compared, or recorded when it is that of the first.
 * False: no more is wanted, since it is longer than it may be, or than can be kept; `why` gets the words. */
bool pace_response_check_body(struct pace_response_check *r, struct pace_comparison *c,
                              const struct mk_response_parser *reply, mk_str data,
                              char why[PACE_RESPONSE_CHECK_ERROR_MAX]) MK_MUST_USE;

/* Judges a complete answer; `why` gets the words if it is wrong. */
enum pace_verdict pace_response_check_verify(const struct pace_response_check *r,
                                             const struct pace_comparison *c,
                                             const struct mk_response_parser *reply,
                                             char why[PACE_RESPONSE_CHECK_ERROR_MAX]);
/* Ends the recording, and judges that answer. */
enum pace_verdict pace_response_check_end_recording(struct pace_response_check *r,
                                                    const struct mk_response_parser *reply,
                                                    char why[PACE_RESPONSE_CHECK_ERROR_MAX]);

#endif
