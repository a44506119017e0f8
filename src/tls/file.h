/* SPDX-License-Identifier: Apache-2.0 */
/* Small files, whole. */
#ifndef MK_TLS_FILE_H
#define MK_TLS_FILE_H

#include <openssl/bio.h>

#include "tls/problem.h"

/* All of a file; free it with BIO_free. `what` it is to be ("certificate") is for the problem. `foreign`: who
 * may write in its folder has fewer rights than we, and shall not lead us to what he can't read: links are
 * refused. */
mk_err mk_tls_file_read(const char *file, bool foreign, const char *what, BIO **out,
                        struct mk_tls_problem *problem);

/* For what OpenSSL reads of it: else it asks for passwords at the terminal, and the server waits. */
int mk_tls_file_no_password(char *room, int cap, int for_writing, void *unused);

#endif
