/* SPDX-License-Identifier: Apache-2.0 */
/* The client's command line: which client it is, and which option sets the concurrency. */
#ifndef WR_COMMAND_H
#define WR_COMMAND_H

#include "base/arena.h"
#include "base/buf.h"
#include "wr/client_type.h"

struct wr_command {
    const struct wr_client_type *kind;
    char *const *words; /* as given, NULL-terminated */
    size_t n;
    char **fields; /* the fields of its option -H, NULL-terminated */
};

/* False, with a message, for an unknown client or an unusable option. */
bool wr_command_init(struct wr_command *c, char *const *words, struct mk_arena *arena) MK_MUST_USE;
/* wr's first form: a URL alone is for weighttp, as it was then. NULL when memory is out. */
char **wr_command_from_url(char *url, uint64_t requests, bool keep_alive, struct mk_arena *arena);
/* The words to run: `{c}` is replaced, else the value behind the client's own option, else the option is put
 * behind the program's name. `concurrency` 0 leaves all that as it is. NULL when memory is out. */
char **wr_command_words(const struct wr_command *c, unsigned concurrency, struct mk_arena *arena);
/* The concurrency that the words have by themselves; 0 when they tell none. */
unsigned wr_command_concurrency(const struct wr_command *c);
/* Does it contain {c}? Then only its author knows how many connections that makes. */
bool wr_command_has_placeholder(const struct wr_command *c);
/* Does it hold an option that wr would contradict, as --connections=10 or -kc 10? That word, or NULL. */
const char *wr_command_conflict(const struct wr_command *c);
/* The first word that is a URL; absent when there is none. */
mk_str wr_command_url(char *const *words);
/* For people: words with blanks or quotes are quoted for a shell. */
void wr_command_format(char *const *words, struct mk_buf *out);

#endif
