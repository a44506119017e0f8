/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of a server that is embedded in a program. */
#ifndef MK_SETUP_EMBEDDING_H
#define MK_SETUP_EMBEDDING_H

#include "setup/config_generation_type.h"

/* Name that messages show as the file of the program's configuration lines. */
#define MK_EMBEDDING_NAME MK_STR("the program")

/* Merges the program's sections into those of its configuration file. The program's [SERVER] keys override
 * the file's. */
void mk_embedding_merge_text(struct mk_config_generation *g, mk_str text, struct mk_conf_report *report);
/* Turns off the error log if ErrorLog is not set. */
void mk_embedding_default_logs(struct mk_config_generation *g);

#endif
