/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "os/module.h"
#include "os/regex.h"

/* Defined in programs with regular expressions built in. */
extern const struct mk_regex_module mk_regex_module __attribute__((weak));

static const struct mk_regex_module *module;
static char why_not[MK_MODULE_WHY];

static void load(void)
{
    module = mk_module_load(&(struct mk_module){.name = "regex",
                                                .symbol = "mk_regex_module",
                                                .needs = "PCRE2",
                                                .abi = MK_REGEX_ABI,
                                                .built_in = &mk_regex_module},
                            why_not);
}

struct mk_regex *mk_regex_new(mk_str pattern, bool nocase, struct mk_regex_error *why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (module)
        return module->compile(pattern, nocase, why);
    why->code = -ENOENT;
    why->at = 0;
    memcpy(why->text, why_not, sizeof why->text);
    return NULL;
}
