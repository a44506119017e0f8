/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <monkey/clock.h>
#include <monkey/text.h>

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

/* ---- Arguments ---- */

static const struct top_option *find_option(const struct top_option *at, size_t n, mk_str name)
{
    for (size_t i = 0; i < n; i++)
        if (mk_str_eq(name, mk_str_from_c(at[i].name)) || mk_str_eq(name, mk_str_from_c(at[i].letter)))
            return &at[i];
    return NULL;
}

static int append_error(struct mk_buf *error, const char *what, mk_str text)
{
    mk_buf_addf(error, "%s: ", what);
    mk_log_escape(error, text);
    return TOP_USAGE;
}

static void append_parameter(struct mk_buf *query, const struct top_option *option, mk_str value)
{
    mk_buf_addf(query, "&%s=", option->name + 2);
    for (size_t i = 0; i < value.len; i++)
        if (mk_char_is_alpha(value.p[i]) || mk_char_is_digit(value.p[i]))
            mk_buf_add_char(query, value.p[i]);
        else
            mk_buf_addf(query, "%%%02X", (unsigned char)value.p[i]);
}

static int parse_option(struct top_options *o, int argc, char **argv, int *i, struct mk_buf *error)
{
    mk_str value = mk_str_from_c(argv[*i]), name = value;
    if (mk_str_starts(value, MK_STR("--")))
        name = mk_str_cut(&value, '=');
    else
        value = MK_STR_NULL;
    const struct top_option *own = find_option(o->own, o->n_own, name),
                            *option = own ? own : find_option(common, MK_LEN(common), name);
    if (mk_str_eq(name, MK_STR("--help")) || mk_str_eq(name, MK_STR("-h")))
        return TOP_HELP;
    if (!option || (!option->has_value && value.p))
        return append_error(error, "unknown option", mk_str_from_c(argv[*i]));
    if (option->has_value && !value.p) {
        if (*i + 1 >= argc)
            return append_error(error, "expected a value of the option", mk_str_from_c(option->name));
        value = mk_str_from_c(argv[++*i]);
    }
    if (option->set(own ? o->ctx : &o->filter, value)) {
        if (!own)
            append_parameter(&o->query, option, value);
        return TOP_CONTINUE;
    }
    mk_buf_addf(error, "invalid value of %s: ", option->name);
    mk_log_escape(error, value);
    return TOP_USAGE;
}

int top_options_parse(struct top_options *o, int argc, char **argv, struct mk_buf *error)
{
    bool only_paths = false;
    for (int i = 0; i < argc; i++) {
        if (!only_paths && argv[i][0] == '-' && argv[i][1]) {
            only_paths = mk_str_eq(mk_str_from_c(argv[i]), MK_STR("--"));
            int code = only_paths ? TOP_CONTINUE : parse_option(o, argc, argv, &i, error);
            if (code != TOP_CONTINUE)
                return code;
        } else if (o->has_no_file) {
            return append_error(error, "unexpected argument", mk_str_from_c(argv[i]));
        } else if (o->has_path) {
            return append_error(error, "more than one FILE", mk_str_from_c(argv[i]));
        } else {
            o->has_path = true;
            o->path = argv[i];
        }
    }
    return TOP_CONTINUE;
}

int top_options_read(struct top_options *o, int argc, char **argv)
{
    char text[1024];
    struct mk_buf error = mk_buf_fixed(text, sizeof text);
    int code = top_options_parse(o, argc - 1, argv + 1, &error);
    if (code == TOP_HELP)
        return o->print_usage(stdout, 0);
    if (code == TOP_USAGE)
        fprintf(stderr, "monkey %s: %.*s\n`monkey %s --help` lists the options.\n", o->command,
                MK_STR_ARG(mk_buf_str(&error)), o->command);
    return code;
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
