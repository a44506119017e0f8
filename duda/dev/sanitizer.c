/* SPDX-License-Identifier: Apache-2.0 */
#include "sanitizer.h"

#include "child.h"
#include "compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { ANSWER_MAX = 8192 };

/* "-fsanitize=undefined,address" */
static bool is_wanted(const struct dev_source *source)
{
    mk_str rest = mk_buf_str(&source->flags), word;
    bool any = false;
    while ((word = dev_words_cut(&rest)).len)
        any = any || (mk_str_starts(word, MK_STR("-fsanitize=")) && memmem(word.p, word.len, "address", 7));
    return any;
}

/* A compiler that does not have the file prints its name alone. */
static bool ask(const char *name, char library[PATH_MAX])
{
    struct dev_words words;
    struct mk_buf answer = mk_buf_growing(ANSWER_MAX);
    dev_words_init(&words);
    dev_compile_add_program(&words);
    dev_words_addf(&words, "-print-file-name=%s", name);
    bool ok = dev_child_run(&words, &answer) == 0;
    mk_str rest = mk_buf_str(&answer), line = mk_str_cut(&rest, '\n');
    ok = ok && dev_places_print(library, "%.*s", MK_STR_ARG(line)) && library[0] == '/' &&
         access(library, R_OK) == 0;
    dev_words_free(&words);
    mk_buf_free(&answer);
    return ok;
}

void dev_sanitizer_find(const struct dev_source *source, char library[PATH_MAX])
{
    struct utsname machine;
    char name[sizeof machine.machine + 32];
    snprintf(name, sizeof name, "libclang_rt.asan-%s.so", uname(&machine) == 0 ? machine.machine : "");
    if (!is_wanted(source) ||
        (!ask("libasan.so", library) && !ask(name, library) && !ask("libclang_rt.asan.so", library)))
        library[0] = '\0';
}

/* abort() leads to the report with the lines of the source; memory that is in use at the end of a worker is no leak. */
void dev_sanitizer_add(struct dev_words *w, const char *library)
{
    const char *own = getenv("ASAN_OPTIONS");
    if (!*library)
        return;
    dev_words_add(w, MK_STR("env"));
    dev_words_addf(w, "LD_PRELOAD=%s", library);
    dev_words_addf(w, "ASAN_OPTIONS=abort_on_error=1:detect_leaks=0:%s", own ? own : "");
}
