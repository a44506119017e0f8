/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that master and workers read through a signalfd. */
#ifndef MK_SERVER_SIGNALS_H
#define MK_SERVER_SIGNALS_H

/* Blocks these signals, and ignores SIGPIPE and SIGXFSZ. */
void mk_signals_block(void);
/* Returns a non-blocking signalfd for these signals, or an error. */
int mk_signals_open_fd(void);

#endif
