/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts: the connections to backend servers that were made for a request, for logs and traces. */
#ifndef MONKEY_ATTEMPT_H
#define MONKEY_ATTEMPT_H

#include <monkey/addr.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_config;
struct mk_request;

/** One attempt to obtain the response from a backend server. Times are readings of mk_clock_us(); 0: the
 * attempt did not get that far. */
struct mk_attempt {
    mk_str server;          /**< as written in the configuration */
    struct mk_addr address; /**< address of the server */
    uint64_t began_us;      /**< when the server was chosen */
    uint64_t connected_us;  /**< when the connection was ready for the request, including its TLS handshake */
    uint64_t first_byte_us; /**< when the first byte of the response arrived */
    uint64_t ended_us;      /**< when the connection was released */
    uint64_t received;      /**< bytes received from the server */
    unsigned status;        /**< status of the response; 0: none */
    int error;              /**< the error as a negative errno value; 0: none */
    unsigned char span_id[8]; /**< ID of its span if the trace is recorded (monkey/trace.h); else zeros */
    struct mk_attempt *next;
};

/** Only in host(): records the attempts of all requests to this virtual host. Without this call, the server
 * records only the attempts of requests whose trace is recorded (monkey/trace.h). */
MK_API void mk_config_record_attempts(struct mk_config *config);
/** For plugins that connect to backend servers: adds an attempt that starts now and lives as long as the
 * request; all members except began_us are zero. Returns NULL if attempts are not recorded or memory is
 * exhausted; programs built with MK_UPSTREAM=OFF and MK_EXPORTS=OFF never record attempts. */
MK_API struct mk_attempt *mk_request_add_attempt(struct mk_request *request);
/** The first attempt of the request; `next` links to the following ones. NULL if there is none, or if
 * attempts are not recorded. */
MK_API const struct mk_attempt *mk_request_attempts(const struct mk_request *request);

#ifdef __cplusplus
}
#endif

#endif
