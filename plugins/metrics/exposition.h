/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus exposition format 0.0.4: parts of lines. Independent of metrics. */
#ifndef METRICS_EXPOSITION_H
#define METRICS_EXPOSITION_H

#include <monkey/text.h>

/* HELP and TYPE, before the samples of a family. */
void metrics_exposition_begin(struct mk_buf *out, const char *name, const char *type, const char *help);
/* `,name="value"`, or `{name="value"` if it is the first one. The caller closes the labels. */
void metrics_exposition_add_label(struct mk_buf *out, bool is_first, const char *name, mk_str value);
/* A space, the value and the end of the line. */
void metrics_exposition_add_value(struct mk_buf *out, uint64_t n);
/* Microseconds as seconds, without trailing zeroes or spaces. */
void metrics_exposition_add_seconds(struct mk_buf *out, uint64_t us);

#endif
