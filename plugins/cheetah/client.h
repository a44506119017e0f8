/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey shell`. */
#ifndef SHELL_CLIENT_H
#define SHELL_CLIENT_H

int shell_client_run(int argc, char **argv);

#endif
