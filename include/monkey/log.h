/* SPDX-License-Identifier: Apache-2.0 */
/* The levels of the error log. */
#ifndef MONKEY_LOG_H
#define MONKEY_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

/** How urgent a message of the error log is. */
enum mk_log_level {
    MK_LOG_ERROR, /**< something is broken and wants its owner */
    MK_LOG_WARN,  /**< something is odd, service goes on */
    MK_LOG_INFO,  /**< life of the server: started, reloaded, stopped */
    MK_LOG_DEBUG, /**< what a developer asks for */
    MK_LOG_LEVELS
};

#ifdef __cplusplus
}
#endif

#endif
