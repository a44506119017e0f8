/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <monkey/clock.h>

/* ---- The options that select requests ---- */

static bool set_last(void *ctx, mk_str value)
{
    struct top_filter *f = ctx;
    bool ok = top_filter_parse_ms(value, &f->last_ms) && f->last_ms;
    top_filter_set_now(f, mk_clock_unix_ms());
    return ok;
}

static bool set_slower(void *ctx, mk_str value)
{
    struct top_filter *f = ctx;
    uint64_t ms;
    bool ok = top_filter_parse_ms(value, &ms);
    f->slower_us = ok ? ms * 1000 : 0;
    return ok;
}

static bool set_status(void *ctx, mk_str value)
{
    return top_filter_parse_status(value, ctx);
}

static bool set_client(void *ctx, mk_str value)
{
    struct top_filter *f = ctx;
    return f->has_client = mk_network_parse(value, &f->client);
}

static bool set_text(mk_str *text, mk_str value)
{
    *text = value;
    return value.len > 0;
}

static bool set_host(void *ctx, mk_str value)
{
    return set_text(&((struct top_filter *)ctx)->host, value);
}

static bool set_path(void *ctx, mk_str value)
{
    return set_text(&((struct top_filter *)ctx)->path, value);
}

static bool set_upstream(void *ctx, mk_str value)
{
    return set_text(&((struct top_filter *)ctx)->upstream, value);
}

static bool set_id(void *ctx, mk_str value)
{
    return set_text(&((struct top_filter *)ctx)->id, value);
}

static bool set_failed(void *ctx, mk_str value)
{
    (void)value;
    return ((struct top_filter *)ctx)->only_failed = true;
}

static bool set_open(void *ctx, mk_str value)
{
    (void)value;
    return ((struct top_filter *)ctx)->only_open = true;
}

static const struct top_option common[] = {
    {"--last", "-l", true, set_last},     {"--status", "-s", true, set_status},
    {"--host", "-H", true, set_host},     {"--path", "-p", true, set_path},
    {"--client", "-c", true, set_client}, {"--upstream", "-u", true, set_upstream},
    {"--id", "-i", true, set_id},         {"--slower", "", true, set_slower},
    {"--failed", "", false, set_failed},  {"--open", "", false, set_open},
};

/* ---- The command line ---- */

static const struct top_option *find_option(const struct top_option *at, size_t n, mk_str name)
{
    for (size_t i = 0; i < n; i++)
        if (mk_str_eq(name, mk_str_from_c(at[i].name)) || mk_str_eq(name, mk_str_from_c(at[i].letter)))
            return &at[i];
    return NULL;
}

/* Returns an exit code, or -1 to continue. */
static int read_option(struct top_options *o, int argc, char **argv, int *i)
{
    mk_str value = mk_str_from_c(argv[*i]), name = value;
    if (mk_str_starts(value, MK_STR("--")))
        name = mk_str_cut(&value, '=');
    else
        value = MK_STR_NULL;
    const struct top_option *own = find_option(o->own, o->n_own, name),
                            *option = own ? own : find_option(common, MK_LEN(common), name);
    if (mk_str_eq(name, MK_STR("--help")) || mk_str_eq(name, MK_STR("-h")))
        return o->print_usage(stdout, 0);
    if (!option || (!option->has_value && value.p)) {
        fprintf(stderr, "monkey %s: unknown option: %s\n", o->command, argv[*i]);
        return o->print_usage(stderr, TOP_USAGE);
    }
    if (option->has_value && !value.p) {
        if (*i + 1 >= argc) {
            fprintf(stderr, "monkey %s: %s needs a value\n", o->command, option->name);
            return TOP_USAGE;
        }
        value = mk_str_from_c(argv[++*i]);
    }
    if (option->set(own ? o->ctx : &o->filter, value))
        return -1;
    fprintf(stderr, "monkey %s: invalid value of %s: %.*s\n", o->command, option->name, MK_STR_ARG(value));
    return TOP_USAGE;
}

int top_options_read(struct top_options *o, int argc, char **argv)
{
    bool has_path = false, only_paths = false;
    for (int i = 1; i < argc; i++) {
        if (!only_paths && argv[i][0] == '-' && argv[i][1]) {
            only_paths = mk_str_eq(mk_str_from_c(argv[i]), MK_STR("--"));
            int code = only_paths ? -1 : read_option(o, argc, argv, &i);
            if (code >= 0)
                return code;
        } else if (has_path) {
            fprintf(stderr, "monkey %s: more than one FILE\n", o->command);
            return TOP_USAGE;
        } else {
            has_path = true;
            o->path = argv[i];
        }
    }
    return -1;
}

int top_options_report(const struct top_options *o, const char *path, const char *error, bool is_missing)
{
    fprintf(stderr, "monkey %s: cannot read %s: %s\n", o->command, path, error);
    if (is_missing)
        fputs("A server records requests if its configuration has `Load recorder` in [PLUGINS]; `File` in "
              "[RECORDER] names "
              "the recording.\n",
              stderr);
    return TOP_FAILURE;
}
