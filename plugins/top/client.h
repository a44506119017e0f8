/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey recorder`: prints the requests that a running or crashed server has recorded. */
#ifndef TOP_RECORDER_CLIENT_H
#define TOP_RECORDER_CLIENT_H

int top_client_run(int argc, char **argv);

#endif
