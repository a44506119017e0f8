/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that master and workers read through a signalfd. */
#ifndef MK_SERVER_SIGNALS_H
#define MK_SERVER_SIGNALS_H

/* Blocks the signals that a signalfd receives, and ignores SIGPIPE and SIGXFSZ. */
void mk_signals_block(void);
/* Returns a non-blocking signalfd for the blocked signals, or a negative errno value. */
int mk_signals_open_fd(void);

#endif
