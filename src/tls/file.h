/* SPDX-License-Identifier: Apache-2.0 */
/* Reads small files and strings completely. */
#ifndef MK_TLS_FILE_H
#define MK_TLS_FILE_H

#include <openssl/bio.h>

#include "tls/settings_error.h"

/* Reads a whole file; free it with BIO_free. `what`: its purpose ("certificate"), for the error. `foreign`: a
 * less privileged user may write to its folder, so links are refused, also in place of the folder: they could lead to
 * files that this user cannot read. */
mk_err mk_tls_file_read_to_bio(const char *file, bool foreign, const char *what, BIO **out,
                               struct mk_tls_settings_error *problem);

/* Like mk_tls_file_read_to_bio(), but for a string, which must outlive the BIO; errors refer to it as
 * `name`. */
mk_err mk_tls_file_text_to_bio(const char *text, const char *name, const char *what, BIO **out,
                               struct mk_tls_settings_error *problem);

/* Callback for OpenSSL's PEM readers, which would otherwise prompt for a password on the terminal and block
 * the server. */
int mk_tls_file_refuse_password_cb(char *buf, int cap, int for_writing, void *unused);

#endif
