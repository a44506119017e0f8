/* SPDX-License-Identifier: Apache-2.0 */
#include "server/certificates_command.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "server/certificate_entries.h"
#include "server/master.h"
#include "server/report_output.h"
#include "setup/config_generation.h"

enum { OUT_MAX = 256 << 20, DAYS_MAX = 36500 };

/* ---- The command line ---- */

static const struct mk_option option_table[] = {
    {1, "json", MK_ARG_NONE, NULL, "Print the list as JSON."},
    {2, "days", MK_ARG_WORD, "N", "Exit with 1 if a certificate expires within N days (default: 14)."},
};

const struct mk_option *mk_certificates_command_options(size_t *n)
{
    *n = MK_LEN(option_table);
    return option_table;
}

static bool parse_days(const char *text, struct mk_certificates_options *out)
{
    if (text && mk_num_parse(mk_str_from_c(text), &out->days) && out->days <= DAYS_MAX)
        return out->has_days = true;
    fprintf(stderr, "monkey: --days expects a number from 0 to %d%s%s\nTry `monkey help certificates`.\n",
            DAYS_MAX, text ? ", not " : "", text ? text : "");
    return false;
}

bool mk_certificates_command_take_options(int *argc, char **argv, const char *word,
                                          struct mk_certificates_options *out)
{
    int i = 0, kept;
    *out = (struct mk_certificates_options){0};
    if (!word || strcmp(word, "certificates") != 0)
        return true;
    while (argv[i] != word)
        i++;
    for (kept = ++i; i < *argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            out->json = true;
        else if (strncmp(argv[i], "--days=", 7) == 0) {
            if (!parse_days(argv[i] + 7, out))
                return false;
        } else if (strcmp(argv[i], "--days") == 0) {
            if (!parse_days(argv[i + 1], out))
                return false;
            i++;
        } else {
            argv[kept++] = argv[i];
        }
    }
    argv[ *argc = kept] = NULL;
    return true;
}

/* ---- The command ---- */

static mk_err write_list(struct mk_config_generation *g, const struct mk_certificates_options *o,
                         struct mk_buf *out, bool *has_problem)
{
    struct mk_tls_inventory_settings settings = {.json = o->json, .has_days = o->has_days, .days = o->days};
    const char *error;
    struct mk_certificate_entries all;
    const struct mk_tls_module *tls = mk_tls_load(&error);
    if (!tls) {
        mk_report_output_print_error("this server does not support TLS: %s", error);
        return -ENOSYS;
    }
    if (!mk_certificate_entries_collect(g, &g->arena, &all))
        return -ENOMEM;
    mk_err e = tls->inventory(all.at, all.n, &settings, out, has_problem);
    if (e == -ENOSYS)
        mk_report_output_print_error(
            "monkey-tls.so was built without the command `certificates` (MK_CERTIFICATES)");
    return out->failed ? -ENOMEM : e;
}

static int print_list(const struct mk_buf *out)
{
    mk_str text = mk_buf_str(out);
    return fwrite(text.p, 1, text.len, stdout) == text.len && fflush(stdout) == 0 ? MK_EXIT_OK
                                                                                  : MK_EXIT_FAILED;
}

int mk_certificates_command_run(const struct mk_config_source *origin,
                                const struct mk_certificates_options *options)
{
    struct mk_config_source source = *origin;
    struct mk_arena arena;
    struct mk_conf_report report;
    struct mk_buf out = mk_buf_growing(OUT_MAX);
    bool has_problem = false;
    source.skips_certificates = true;
    mk_arena_init(&arena, NULL);
    struct mk_config_generation *g = mk_config_generation_load(&source, &arena, &report);
    mk_report_output_print(&report);
    int code = g                                       ? MK_EXIT_OK
               : mk_conf_report_out_of_memory(&report) ? MK_EXIT_FAILED
                                                       : MK_EXIT_CONFIGURATION;
    if (g) {
        mk_err e = write_list(g, options, &out, &has_problem);
        if (e == -ENOMEM)
            mk_report_output_print_error("out of memory");
        code = e == -ENOSYS ? MK_EXIT_USAGE : e || has_problem ? MK_EXIT_FAILED : MK_EXIT_OK;
        if (!e && print_list(&out) != MK_EXIT_OK)
            code = MK_EXIT_FAILED;
        mk_config_generation_free(g);
    }
    mk_buf_free(&out);
    mk_arena_fini(&arena);
    return code;
}
