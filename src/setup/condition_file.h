/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of values in files: one value in each line, and comments. A list is read when the configuration is
 * loaded; conditions that name the same file share it. */
#ifndef MK_SETUP_CONDITION_FILE_H
#define MK_SETUP_CONDITION_FILE_H

#include "setup/condition_parser.h"

/* Bytes of a list. */
enum { MK_CONDITION_FILE_MAX = 64 << 20 };

/* These functions add the values of the file to the condition of the parser. They return false after reporting an
 * error. */
bool mk_condition_file_add_networks(struct mk_condition_parser *p, mk_str name);
bool mk_condition_file_add_texts(struct mk_condition_parser *p, mk_str name, bool nocase);
bool mk_condition_file_add_values(struct mk_condition_parser *p, mk_str name);

#endif
