/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a configuration from files or text: its sections, the plugins that it loads, and the contents of its
 * hosts. Only code that refers to mk_config_reader is linked with the parser, the keys of hosts, and the
 * built-in plugins: a program with libmonkey that sets nothing contains none of them. */
#ifndef MK_SETUP_CONFIG_READER_H
#define MK_SETUP_CONFIG_READER_H

#include "setup/config_generation_type.h"

struct mk_config_loader;

struct mk_config_reader {
    /* Reads all sections. Errors go to the report. */
    void (*read)(struct mk_config_loader *l);
    /* Reads all sections, opens the plugins, and binds the sections of the server and of plugins. */
    void (*load)(struct mk_config_loader *l);
    /* Builds what the keys and sections of the host configure. */
    void (*build_host)(struct mk_config_generation *g, struct mk_vhost_config *site,
                       struct mk_conf_report *report);
    /* Warns of folders that workers cannot enter. */
    void (*check_hosts)(struct mk_config_loader *l);
};

extern const struct mk_config_reader mk_config_reader;

#endif
