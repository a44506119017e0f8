/* SPDX-License-Identifier: Apache-2.0 */
/* `Alias PATH FOLDER` in [HOST]: serves FOLDER, which may be outside the document root, at PATH. */
#ifndef MK_SETUP_ALIAS_H
#define MK_SETUP_ALIAS_H

#include "setup/config_generation_type.h"

/* These two functions parse and print values of Alias, for the key tables. */
mk_conf_parse_fn mk_alias_parse;
mk_conf_show_fn mk_alias_show;

/* Opens the folders of all aliases, and adds them to the host with the symlink rules of its document root.
 * Errors go to the report. */
void mk_alias_open_all(struct mk_config_generation *g, struct mk_vhost_config *site,
                       struct mk_conf_report *report);
/* Closes the folders of all aliases. */
void mk_alias_close_all(struct mk_config_generation *g, struct mk_vhost_config *site);
/* Opens a folder of a host, or finds its shared descriptor. Reports errors at the position `at`. */
void mk_alias_open_folder(struct mk_config_generation *g, const char *path,
                          const struct mk_conf_source_pos *at, struct mk_conf_report *report, int *fd);

#endif
