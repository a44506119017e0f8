/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes registered with IANA, and their reason phrases (RFC 9110, section 15). */
#ifndef MK_HTTP_STATUS_H
#define MK_HTTP_STATUS_H

#include "base/str.h"

/* Returns "404 Not Found"; empty for an unregistered code. The text is static. */
mk_str mk_status_text(unsigned status);

#endif
