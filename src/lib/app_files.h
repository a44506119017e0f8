/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the program has in memory. */
#ifndef MK_LIB_APP_FILES_H
#define MK_LIB_APP_FILES_H

#include <monkey/server.h>

#include "base/err.h"

struct mk_app_file;

/* Zeroed: no files. */
struct mk_app_files {
    struct mk_app_file *first;
};

/* Prepares the headers of a file and its variants for mk_app_file_serve(). The bytes are not copied. NULL:
 * out of memory. */
struct mk_app_file *mk_app_files_add(struct mk_app_files *p, const struct mk_memory_file *file) MK_MUST_USE;
void mk_app_files_free(struct mk_app_files *p);

/* The handler of a file; `data` is the file. */
enum mk_verdict mk_app_file_serve(struct mk_request *request, struct mk_response *response, void *data);

#endif
