/* SPDX-License-Identifier: Apache-2.0 */
/* The commands `monkey reload`, `monkey confirm` and `monkey rollback`: `monkey shell` with one command, a limited
 * time and no questions. */
#ifndef CHEETAH_CONFIG_CLIENT_H
#define CHEETAH_CONFIG_CLIENT_H

int cheetah_config_client_reload(int argc, char **argv);
int cheetah_config_client_confirm(int argc, char **argv);
int cheetah_config_client_rollback(int argc, char **argv);

#endif
