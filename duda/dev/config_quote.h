/* SPDX-License-Identifier: Apache-2.0 */
/* Quotes arbitrary values for a server configuration. */
#ifndef DUDA_DEV_CONFIG_QUOTE_H
#define DUDA_DEV_CONFIG_QUOTE_H

#include <monkey/buf.h>

/* Appends a quoted string. */
void dev_config_quote_text(struct mk_buf *out, const char *text);
/* Appends a path for `Load`, which does not unquote. */
void dev_config_quote_path(struct mk_buf *out, const char *path);

#endif
