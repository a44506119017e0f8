/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the state folder, which is the current directory. Readers see a complete file, old or new. */
#ifndef ACME_STORE_H
#define ACME_STORE_H

#include "report.h"

#define ACME_ACCOUNT_KEY "account.key"
#define ACME_ACCOUNT     "account.json"

/* Subfolders of the state folder. */
#define ACME_CERTIFICATES "certificates" /* NAME.pem: chain and key */
#define ACME_ORDERS       "orders"       /* NAME.json, NAME.key: unfinished orders */
#define ACME_FAILURES     "failures"     /* NAME.json: time of the next attempt */
#define ACME_HTTP         "http-01"      /* TOKEN */
#define ACME_ALPN         "tls-alpn-01"  /* NAME.pem */
#define ACME_RENEWAL      "renewal"      /* NAME.json: when the authority suggests to renew */
#define ACME_DNS          "dns-01"       /* one file for each DNS record, named by its value: the domain */

/* Creates missing folders, takes the lock, and removes old challenge responses. Returns -EAGAIN if another
 * process has the lock; otherwise 0, or a negative errno value with *f filled in. */
int acme_store_open(struct acme_error *f);

/* Like acme_store_open(), for a state folder of certificates on demand: a subfolder of the state folder with the account
 * and the challenge responses. `takes_lock`: only one such process runs at a time. */
int acme_store_open_on_demand(bool takes_lock, struct acme_error *f);
/* Waits until no other process obtains a certificate for the name; until this process ends. */
bool acme_store_lock_name(const char *name, struct acme_error *f);
/* Waits until no other process creates the account. Returns a descriptor to close, or -1. */
int acme_store_lock_account(void);
/* Calls fn() for the name of each file NAMESUFFIX in the folder, as long as it returns true. */
void acme_store_each(const char *folder, const char *suffix, bool (*fn)(void *ctx, const char *name),
                     void *ctx);

/* Replaces the file FOLDER/NAMESUFFIX; an empty FOLDER is the state folder itself. Only the owner can read
 * the file. */
bool acme_store_write(const char *folder, const char *name, const char *suffix, mk_str text,
                      struct acme_error *f);
/* Reads the whole file, at most 1 MB; the caller frees *out. Returns 0 or a negated errno value. */
int acme_store_read(const char *folder, const char *name, const char *suffix, struct mk_buf *out);
/* Returns the modification time of the file; 0 if it does not exist. */
int64_t acme_store_mtime(const char *folder, const char *name, const char *suffix);
void acme_store_remove(const char *folder, const char *name, const char *suffix);

#endif
