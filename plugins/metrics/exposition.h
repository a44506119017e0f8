/* SPDX-License-Identifier: Apache-2.0 */
/* Writes parts of lines in the Prometheus exposition format 0.0.4. Independent of the metrics. */
#ifndef METRICS_EXPOSITION_H
#define METRICS_EXPOSITION_H

#include <monkey/text.h>

/* Writes the HELP and TYPE lines, which precede the samples of a family. */
void metrics_exposition_begin(struct mk_buf *out, const char *name, const char *type, const char *help);
/* Writes `,name="value"`, or `{name="value"` for the first label. The caller closes the labels. */
void metrics_exposition_add_label(struct mk_buf *out, bool is_first, const char *name, mk_str value);
/* Writes a space, the value and a newline. */
void metrics_exposition_add_value(struct mk_buf *out, uint64_t n);
/* Writes microseconds as seconds, without trailing zeroes or spaces. */
void metrics_exposition_add_seconds(struct mk_buf *out, uint64_t us);

#endif
