/* SPDX-License-Identifier: Apache-2.0 */
#include "sanitizer.h"

#include "compile.h"
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { OUTPUT_MAX = 8192 };

/* Returns whether the flags enable AddressSanitizer, as in "-fsanitize=undefined,address". */
static bool uses_address_sanitizer(const struct dev_source *source)
{
    mk_str rest = mk_buf_str(&source->flags), word;
    bool any = false;
    while ((word = dev_argv_next_word(&rest)).len)
        any = any || (mk_str_starts(word, MK_STR("-fsanitize=")) && memmem(word.p, word.len, "address", 7));
    return any;
}

/* Asks the compiler for the path of the library. A compiler that does not have the library prints only its
 * name. */
static bool find_compiler_library(const char *name, char library[PATH_MAX])
{
    struct dev_argv words;
    struct mk_buf output = mk_buf_growing(OUTPUT_MAX);
    dev_argv_init(&words);
    dev_compile_add_compiler(&words, false);
    dev_argv_addf(&words, "-print-file-name=%s", name);
    bool ok = dev_process_run(&words, &output) == 0;
    mk_str rest = mk_buf_str(&output), line = mk_str_cut(&rest, '\n');
    ok = ok && dev_paths_format(library, "%.*s", MK_STR_ARG(line)) && library[0] == '/' &&
         access(library, R_OK) == 0;
    dev_argv_free(&words);
    mk_buf_free(&output);
    return ok;
}

void dev_sanitizer_find_library(const struct dev_source *source, char library[PATH_MAX])
{
    struct utsname machine;
    char name[sizeof machine.machine + 32];
    snprintf(name, sizeof name, "libclang_rt.asan-%s.so", uname(&machine) == 0 ? machine.machine : "");
    if (!uses_address_sanitizer(source) ||
        (!find_compiler_library("libasan.so", library) && !find_compiler_library(name, library) &&
         !find_compiler_library("libclang_rt.asan.so", library)))
        library[0] = '\0';
}

/* Sets options: abort() triggers our report with source lines, and memory in use at the exit of a worker is
 * not a leak. */
void dev_sanitizer_add_preload(struct dev_argv *w, const char *library)
{
    const char *own = getenv("ASAN_OPTIONS");
    if (!*library)
        return;
    dev_argv_add(w, MK_STR("env"));
    dev_argv_addf(w, "LD_PRELOAD=%s", library);
    dev_argv_addf(w, "ASAN_OPTIONS=abort_on_error=1:detect_leaks=0:%s", own ? own : "");
}
