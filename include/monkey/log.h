/* SPDX-License-Identifier: Apache-2.0 */
/* The levels of the error log. */
#ifndef MONKEY_LOG_H
#define MONKEY_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

/** The severity of a message in the error log. Later releases add no levels. */
enum mk_log_level {
    MK_LOG_ERROR, /**< requires operator action */
    MK_LOG_WARN,  /**< unexpected, but service continues */
    MK_LOG_INFO,  /**< lifecycle of the server: started, reloaded, stopped */
    MK_LOG_DEBUG, /**< details for developers */
};

#ifdef __cplusplus
}
#endif

#endif
