/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the state folder, which is the working folder. Whoever reads one sees all of it, old or new.
 */
#ifndef ACME_STORE_H
#define ACME_STORE_H

#include "say.h"

#define ACME_ACCOUNT_KEY "account.key"
#define ACME_ACCOUNT     "account.json"

/* Folders below it. */
#define ACME_CERTIFICATES "certificates" /* NAME.pem: chain and key */
#define ACME_ORDERS       "orders"       /* NAME.json, NAME.key: what is under way */
#define ACME_FAILURES     "failures"     /* NAME.json: when to try again */
#define ACME_HTTP         "http-01"      /* TOKEN */
#define ACME_ALPN         "tls-alpn-01"  /* NAME.pem */

/* Makes the folders that are not there, takes the lock, and removes old answers to challenges. -EAGAIN:
 * somebody else works here. Else 0 or a negated errno value, with the fault filled. */
int acme_store_open(struct acme_fault *f);

/* Replaces the file FOLDER/NAMESUFFIX (an empty folder: of the state folder itself); only its owner can read
 * it. */
bool acme_store_write(const char *folder, const char *name, const char *suffix, mk_str text,
                      struct acme_fault *f);
/* All of it, at most 1 MB; *out is the caller's to free. 0 or a negated errno value. */
int acme_store_read(const char *folder, const char *name, const char *suffix, struct mk_buf *out);
/* When it was written; 0: it is not there. */
int64_t acme_store_time(const char *folder, const char *name, const char *suffix);
void acme_store_remove(const char *folder, const char *name, const char *suffix);

#endif
