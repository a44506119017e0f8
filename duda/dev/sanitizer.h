/* SPDX-License-Identifier: Apache-2.0 */
/* Support for services built with AddressSanitizer, whose library must be the first one in the process. The
 * server itself is built without AddressSanitizer. */
#ifndef DUDA_DEV_SANITIZER_H
#define DUDA_DEV_SANITIZER_H

#include "argv.h"
#include "source.h"

/* Asks the compiler for the path of the AddressSanitizer library if the compiler flags of the source require
 * it; empty: not required, or not found. */
void dev_sanitizer_find_library(const struct dev_source *source, char library[PATH_MAX]);
/* Begins a command line with words that preload the library. Does nothing if `library` is empty. */
void dev_sanitizer_add_preload(struct dev_argv *w, const char *library);

#endif
