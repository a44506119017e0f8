/* SPDX-License-Identifier: Apache-2.0 */
/* The levels of the error log. */
#ifndef MONKEY_LOG_H
#define MONKEY_LOG_H

#include <monkey/str.h>

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

/** The fields of a log message, formatted for both log formats. In text logs they follow the message; in JSON
 * logs (`ErrorLogFormat json`) they are members of the object. */
struct mk_log_fields {
    mk_str text; /**< begins with a space: " order=17 (request 5f0c)" */
    mk_str json; /**< members of a JSON object, without braces: `"order":17`; may be empty */
};

#ifdef __cplusplus
}
#endif

#endif
