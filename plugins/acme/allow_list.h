/* SPDX-License-Identifier: Apache-2.0 */
/* The file of names that get a certificate on demand: one name to a line, or `*.DOMAIN` for all names below the domain. */
#ifndef ACME_ALLOW_LIST_H
#define ACME_ALLOW_LIST_H

#include <monkey/config.h>

struct acme_allow_list {
    mk_str *names; /* in order, in lower case; those of a domain begin with a dot */
    size_t n;
};

/* Reads the file, and reports errors. `section` is that of the key AllowFile. */
void acme_allow_list_read(struct mk_config *config, const void *section, const char *path,
                          struct acme_allow_list *list);
/* Is the name, which is in lower case, in the list? */
bool acme_allow_list_has(const struct acme_allow_list *list, mk_str name);

#endif
