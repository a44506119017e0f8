/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP endpoint that decides which names get a certificate on demand: GET URL?domain=NAME; status 200 allows the
 * name. */
#ifndef ACME_ALLOW_ENDPOINT_H
#define ACME_ALLOW_ENDPOINT_H

#include "settings.h"

/* Opens the upstream of AllowEndpoint, and reports errors. */
void acme_allow_endpoint_open(struct mk_config *config, struct acme_settings *s);

enum acme_answer { ACME_ALLOWED, ACME_REFUSED, ACME_NO_ANSWER };

struct acme_question;
/* Asks. on_answer() is called once, unless the question is freed before, and never from inside this function. `text`
 * describes a failure (ACME_NO_ANSWER), or the status. NULL: out of memory. */
struct acme_question *acme_question_ask(struct mk_worker *worker, const struct acme_settings *s, mk_str name,
                                        void (*on_answer)(void *ctx, enum acme_answer answer,
                                                          const char *text),
                                        void *ctx) MK_API_MUST_USE;
/* Allowed in on_answer(). Accepts NULL. */
void acme_question_free(struct acme_question *q);

#endif
