/* SPDX-License-Identifier: Apache-2.0 */
/* Format strings: configuration values with request variables, such as `$host`. */
#ifndef MONKEY_FORMAT_H
#define MONKEY_FORMAT_H

#include <monkey/buf.h>
#include <monkey/config.h>
#include <monkey/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A parsed format string. It lives as long as the configuration. */
struct mk_format;

/**
 * Parses a format string: `$name` or `${name}` is a variable, and `$$` a dollar sign. Call it while the
 * configuration is loaded. Returns NULL if the string is invalid or memory runs out; the error is reported
 * through `ctx`.
 */
MK_API const struct mk_format *mk_format_parse(const struct mk_conf_ctx *ctx, mk_str text);
/**
 * Expands the format string for a request. The result lives as long as the request. Values contain only
 * visible ASCII characters other than `"` and `\`; all other characters are written as %XX, so that no client
 * can insert a line break or close a quoted string. Absent if out of memory.
 */
MK_API mk_str mk_format_expand(const struct mk_format *format, struct mk_request *request);

/** Appends the value of a variable, such as "host", escaped in the same way. Returns false if there is
 * no such variable. */
MK_API bool mk_variable_print(mk_str name, const struct mk_request *request, struct mk_buf *out);
/** The name of the i-th variable in alphabetical order; NULL if `i` is out of range. */
MK_API const char *mk_variable_name(size_t i);

#ifdef __cplusplus
}
#endif

#endif
