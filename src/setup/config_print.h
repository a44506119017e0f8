/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the effective configuration: every key with its effective value, as text that can be loaded again.
 */
#ifndef MK_SETUP_CONFIG_PRINT_H
#define MK_SETUP_CONFIG_PRINT_H

#include "setup/config_generation_type.h"

void mk_config_print_effective(const struct mk_config_generation *g, struct mk_buf *out);
/* The same, but values of the environment are references: for people and their terminals, logs and tickets. */
void mk_config_print_references(const struct mk_config_generation *g, struct mk_buf *out);
/* The same for the first line of this text, which is the rest of mk_config_print_effective(). See
 * mk_conf_print_line_references(). */
size_t mk_config_print_line_references(const struct mk_config_generation *g, mk_str text, struct mk_buf *out);

#endif
