/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes text for HTML, URLs, JSON and logs, so that it cannot break the syntax around it. Also handles
 * base64 and hexadecimal. */
#ifndef MK_BASE_CODEC_H
#define MK_BASE_CODEC_H

#include <monkey/text.h>

#include "base/buf.h"

/* Returns the length of the prefix that needs no escaping in JSON and in log lines: visible ASCII without
 * quotes and backslashes. */
size_t mk_codec_plain_len(mk_str s);
/* Encodes 8 bytes as hexadecimal digits. */
void mk_codec_hex_8(char out[16], const void *in);

#endif
