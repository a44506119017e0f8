/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP dates (RFC 9110, section 5.6.7). The whole interface is public, in monkey/text.h. */
#ifndef MK_HTTP_DATE_H
#define MK_HTTP_DATE_H

#include <monkey/text.h>

#include "base/str.h"

#endif
