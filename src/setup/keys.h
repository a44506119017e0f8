/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of all built-in sections: used to parse, validate, print and document the keys. */
#ifndef MK_SETUP_KEYS_H
#define MK_SETUP_KEYS_H

#include "conf/bind.h"
#include "setup/settings.h"

enum mk_builtin_section {
    MK_SECTION_SERVER,
    MK_SECTION_HOST,
    MK_SECTION_LOCATION,
    MK_SECTION_ROUTES,
    MK_SECTION_ERROR_PAGES,
    MK_SECTION_CACHE_CONTROL,
    MK_SECTION_MIMETYPES,
    MK_SECTION_HANDLERS,
    MK_SECTION_PLUGINS,
    MK_SECTIONS
};

/* Parses the flags after an address of Listen. Returns NULL, or an error message about *word. */
const char *mk_keys_parse_listen_flags(mk_str *rest, struct mk_listen *one, mk_str *word);

extern const struct mk_conf_table mk_keys_server; /* [SERVER] */
/* One table per section. Sections with free-form entries, such as [ROUTES], fill a struct mk_conf_pairs. */
extern const struct mk_conf_table *const mk_keys_tables[MK_SECTIONS];

#endif
