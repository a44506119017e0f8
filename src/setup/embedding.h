/* SPDX-License-Identifier: Apache-2.0 */
/* What is different when a program has the server inside of it. */
#ifndef MK_SETUP_EMBEDDING_H
#define MK_SETUP_EMBEDDING_H

#include "settings/config_generation_type.h"

/* The file of its lines, for messages. */
#define MK_EMBEDDING_NAME MK_STR("the program")

/* Adds the sections of the program to those of its configuration file. Its keys of [SERVER] replace those of
 * the file. */
void mk_embedding_merge_text(struct mk_config_generation *g, mk_str text, struct mk_conf_report *report);
/* Without an ErrorLog there is none. */
void mk_embedding_default_logs(struct mk_config_generation *g);

#endif
