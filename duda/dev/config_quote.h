/* SPDX-License-Identifier: Apache-2.0 */
/* Values for the configuration of a server, whatever characters are in them. */
#ifndef DUDA_DEV_CONFIG_QUOTE_H
#define DUDA_DEV_CONFIG_QUOTE_H

#include <monkey/buf.h>

/* A text, in quotes. */
void dev_config_quote_text(struct mk_buf *out, const char *text);
/* A path for `Load`, which takes it as it is. */
void dev_config_quote_path(struct mk_buf *out, const char *path);

#endif
