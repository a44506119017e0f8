/* SPDX-License-Identifier: Apache-2.0 */
/* Converts request methods between text and enum (RFC 9110, section 9; RFC 5789). */
#ifndef MK_HTTP_METHOD_H
#define MK_HTTP_METHOD_H

#include <monkey/http.h>

#include "base/str.h"

/* Not public: plugins would keep the count with which they were built. */
enum { MK_METHOD_COUNT = MK_METHOD_PATCH + 1 };

/* Returns static text; empty for MK_METHOD_UNKNOWN and invalid values. */
mk_str mk_method_name(enum mk_method method);

#endif
