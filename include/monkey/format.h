/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: texts of the configuration that say something about the request, such as `$host`. */
#ifndef MONKEY_FORMAT_H
#define MONKEY_FORMAT_H

#include <monkey/buf.h>
#include <monkey/config.h>
#include <monkey/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A text with variables, read once. It lives as long as the configuration. */
struct mk_format;

/**
 * Reads a text: `$name` or `${name}` is a variable, `$$` a dollar. Call it while the configuration is read.
 * NULL: it is wrong, or memory is out; that is reported at the spot.
 */
MK_API const struct mk_format *mk_format_parse(const struct mk_conf_ctx *spot, mk_str text);
/**
 * The text for a request; it lives as long as the request. A value holds visible ASCII characters without `"`
 * and
 * `\`: all others are written as %XX, so no client can end a line or a quote. Absent when memory is out.
 */
MK_API mk_str mk_format_expand(const struct mk_format *t, struct mk_request *r);

/** Appends the value of one variable, such as "host", written as above. False: there is none of that name. */
MK_API bool mk_variable_print(mk_str name, const struct mk_request *r, struct mk_buf *out);
/** The name of the i-th variable, in alphabetical order; NULL: there are no more. */
MK_API const char *mk_variable_name(size_t i);

#ifdef __cplusplus
}
#endif

#endif
