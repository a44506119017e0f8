/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs about the attempts to get a response from backend servers. */
#ifndef LOGGER_ATTEMPTS_H
#define LOGGER_ATTEMPTS_H

#include <monkey/request.h>

enum attempt_property {
    ATTEMPT_ADDRESS,
    ATTEMPT_SERVER,
    ATTEMPT_STATUS,
    ATTEMPT_CONNECT, /* the times of struct mk_attempt, from the beginning of the attempt */
    ATTEMPT_HEADER,
    ATTEMPT_RESPONSE,
    ATTEMPT_RECEIVED
};

/* Writes a property of all attempts of the request as a list: "a, b". */
mk_str logger_attempts_print(const struct mk_request *request, enum attempt_property which, char *buf,
                             size_t cap);
size_t logger_attempts_count(const struct mk_request *request);

#endif
