/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes text so that it cannot break the syntax around it: HTML, URLs, JSON, logs, base64, hex. */
#ifndef MK_BASE_CODEC_H
#define MK_BASE_CODEC_H

#include <monkey/text.h>

#include "base/buf.h"

#endif
