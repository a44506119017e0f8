/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the load client, and the option in it that sets the concurrency. */
#ifndef WR_COMMAND_H
#define WR_COMMAND_H

#include "base/arena.h"
#include "base/buf.h"
#include "wr/client_type.h"

struct wr_command {
    const struct wr_client_type *kind;
    char *const *words; /* the command as given, NULL-terminated */
    size_t n;
    char **fields; /* header lines from its -H options, NULL-terminated */
};

/* Prints a message and returns false for an unknown client or an unusable option. */
bool wr_command_init(struct wr_command *c, char *const *words, struct mk_arena *arena) MK_MUST_USE;
/* Builds the weighttp command for the syntax of the first wr, which had only a URL. NULL if out of memory. */
char **wr_command_from_url(char *url, uint64_t requests, bool keep_alive, struct mk_arena *arena);
/* Returns the words to run: the concurrency replaces `{c}`, or else the value of the client's option; without
 * either, wr inserts the option after the program's name. If `concurrency` is 0, the command keeps its own
 * concurrency. Returns NULL if out of memory. */
char **wr_command_build_argv(const struct wr_command *c, unsigned concurrency, struct mk_arena *arena);
/* Returns the concurrency in the command itself; 0 if unknown. */
unsigned wr_command_concurrency(const struct wr_command *c);
/* Returns whether the command contains {c}: wr then does not know how many connections the client opens. */
bool wr_command_has_placeholder(const struct wr_command *c);
/* Returns an option that conflicts with wr's own concurrency, such as --connections=10 or -kc 10; NULL if
 * there is none. */
const char *wr_command_find_concurrency_conflict(const struct wr_command *c);
/* Returns the first URL in the command, or MK_STR_NULL. */
mk_str wr_command_find_url(char *const *words);
/* Formats the command for display; quotes words for the shell where needed. */
void wr_command_format(char *const *words, struct mk_buf *out);

#endif
