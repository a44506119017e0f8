/* SPDX-License-Identifier: Apache-2.0 */
/* Detects configurations of other servers. The caller can then report a single error with a hint instead of many errors. Builds
 * without MK_KEY_HELP detect none. */
#ifndef MK_CONF_OTHER_SERVER_H
#define MK_CONF_OTHER_SERVER_H

#include "base/str.h"

struct mk_conf_other_server {
    const char *name; /* the server whose format was detected; NULL: none */
    const char *hint; /* how to write the configuration for Monkey */
    unsigned line;    /* from 1: the line that identifies the format */
    mk_str source;    /* that line */
};

/* Detects a text that is, even in part, a configuration of nginx, Apache, Caddy or HAProxy. Considers only lines that
 * are meaningless in Monkey's format. */
struct mk_conf_other_server mk_conf_other_server_detect(mk_str text);

#endif
