/* SPDX-License-Identifier: Apache-2.0 */
/* Support for services built with AddressSanitizer, whose library must be the first one in the process. The
 * program itself is built without it. */
#ifndef DUDA_DEV_SANITIZER_H
#define DUDA_DEV_SANITIZER_H

#include "argv.h"
#include "source.h"

/* Finds the library that the flags of a source require, with the help of the compiler; empty: none. */
void dev_sanitizer_find_library(const struct dev_source *source, char library[PATH_MAX]);
/* Begins a command line with words that preload the library. Does nothing if `library` is empty. */
void dev_sanitizer_add_preload(struct dev_argv *w, const char *library);

#endif
