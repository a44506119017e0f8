/* SPDX-License-Identifier: Apache-2.0 */
/* What was agreed upon. */
#ifndef MK_TLS_FACTS_H
#define MK_TLS_FACTS_H

#include "tls/stream_type.h"

void mk_tls_facts_of(const struct mk_stream *s, struct mk_tls_facts *out);

#endif
