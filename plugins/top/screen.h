/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal of `monkey top`: reads single keys, shows pages on its alternate screen, and restores it however the
 * program ends, except by SIGKILL. */
#ifndef TOP_RECORDER_SCREEN_H
#define TOP_RECORDER_SCREEN_H

#include <monkey/buf.h>
#include <monkey/str.h>
#include <stdbool.h>

enum top_event {
    TOP_TIMEOUT,
    TOP_KEY,
    TOP_RESIZED, /* or the program was continued: draw again */
    TOP_QUIT     /* a signal, or the terminal has gone */
};

/* Can pages be shown on standard output? */
bool top_screen_is_possible(void);
/* Returns 0 or a negative errno value. */
int top_screen_open(void);
/* Restores the terminal. If a signal has asked for the end, it then ends the process. */
void top_screen_close(void);
void top_screen_size(unsigned *columns, unsigned *lines);
/* Waits for a key. Arrow keys are '<' and '>', and other special keys are ignored. */
enum top_event top_screen_wait(unsigned ms, char *key);
/* Replaces the page. Lines consist of printable ASCII characters, end with a line feed, and are cut to the size of the screen.
 * The first characters of a line that begins with TOP_REVERSED are shown in reverse video. Returns false if the
 * terminal has gone. */
#define TOP_REVERSED '\1'
bool top_screen_show(mk_str page);

#endif
