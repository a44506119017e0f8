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

/** An attempt to obtain the response from a backend server. Times are in microseconds, of a monotonic clock;
 * 0: not reached. */
struct mk_attempt {
    mk_str server;          /**< as written in the configuration */
    struct mk_addr address; /**< its address */
    uint64_t began_us;      /**< when the server was chosen */
    uint64_t connected_us;  /**< when the connection was ready for the request, including its TLS handshake */
    uint64_t first_byte_us; /**< when the first byte of the response arrived */
    uint64_t ended_us;      /**< when the connection was released */
    uint64_t received;      /**< bytes received from the server */
    unsigned status;        /**< status of the response; 0: none */
    int error;              /**< why the attempt failed, a negative errno value; 0: it did not fail */
    unsigned char span_id[8]; /**< its span, if the trace is recorded (monkey/trace.h); else 0 */
    struct mk_attempt *next;
};

/** Records the attempts of all requests for the virtual host that is being configured. Call it in host(). Otherwise,
 * only attempts of requests whose trace is recorded (monkey/trace.h) are recorded. */
MK_API void mk_config_record_attempts(struct mk_config *config);
/** For plugins that connect to backend servers: adds an attempt, which lives as long as the request; all
 * its members except began_us are zero. Returns NULL if attempts are not recorded, as in
 * programs built with MK_UPSTREAM=OFF and MK_EXPORTS=OFF, or if out of memory. */
MK_API struct mk_attempt *mk_request_add_attempt(struct mk_request *request);
/** The first attempt of the request; the others follow through `next`. NULL: there is none, or attempts are
 * not recorded. */
MK_API const struct mk_attempt *mk_request_attempts(const struct mk_request *request);

#ifdef __cplusplus
}
#endif

#endif
