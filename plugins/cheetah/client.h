/* SPDX-License-Identifier: Apache-2.0 */
/* The command `monkey shell`. */
#ifndef CHEETAH_CLIENT_H
#define CHEETAH_CLIENT_H

int cheetah_client_run(int argc, char **argv);

#endif
