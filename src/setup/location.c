/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/location.h"

#include <string.h>

#include "conf/path.h"
#include "conf/table.h"
#include "setup/conf_regex.h"
#include "setup/keys.h"
#include "web/effective_limits.h"

void mk_location_set_limits(struct mk_config_generation *g, const struct mk_request_settings *settings,
                            struct mk_logfile *log, struct mk_request_limits *out)
{
    *out = (struct mk_request_limits){
        .content_max = settings->max_body_size ? settings->max_body_size : UINT64_MAX,
        .rate_bytes = settings->rate_bytes * settings->rate_ms / 1000,
        .rate_ms = settings->rate_bytes ? settings->rate_ms : 0,
        .handler_ms = settings->handler_ms,
        .tunnel_ms = settings->tunnel_ms,
        .log = log,
        .log_format = settings->access_format,
    };
    g->logs_access |= log && log->kind != MK_LOGFILE_OFF;
}

static bool is_log_enabled(const struct mk_request_limits *l)
{
    return l->log && l->log->kind != MK_LOGFILE_OFF;
}

static struct mk_request_limits stricter_limits(const struct mk_request_limits *own,
                                                const struct mk_request_limits *host)
{
    struct mk_request_limits both = mk_effective_limits_stricter(own, host);
    const struct mk_request_limits *log = is_log_enabled(own) ? own : host;
    both.log = log->log;
    both.log_format = log->log_format;
    return both;
}

static bool are_limits_equal(const struct mk_request_limits *a, const struct mk_request_limits *b)
{
    return a->content_max == b->content_max && a->rate_bytes == b->rate_bytes && a->rate_ms == b->rate_ms &&
           a->handler_ms == b->handler_ms && a->tunnel_ms == b->tunnel_ms && a->log == b->log &&
           a->log_format == b->log_format;
}

/* Opens the access log of the section; without one, returns `otherwise`. Relative names start at the folder
 * of the file that contains the section. */
static struct mk_logfile *open_access_log(struct mk_config_generation *g,
                                          const struct mk_conf_section *section,
                                          struct mk_request_settings *settings, struct mk_logfile *otherwise,
                                          struct mk_conf_report *report)
{
    const struct mk_conf_entry *e = mk_conf_table_find_entry(section, MK_STR("AccessLog"));
    if (!e || !settings->access_log.len) {
        settings->access_log = otherwise ? otherwise->where : settings->access_log;
        return otherwise;
    }
    struct mk_conf_source_pos at = mk_conf_tree_value_pos(e, e->value);
    mk_str where = settings->access_log;
    mk_str path = mk_logfile_is_special_name(where)
                      ? mk_arena_copy(&g->arena, where)
                      : mk_conf_path_resolve(&g->arena, section->at.file, where);
    struct mk_logfile *f = path.p ? mk_logset_open_or_report(&g->logs, path, 0, 0, &at, report) : NULL;
    if (f) /* absolute paths are valid from any folder */
        settings->access_log = f->where;
    return f;
}

static mk_str section_pos_text(struct mk_config_generation *g, const struct mk_conf_section *s)
{
    return mk_arena_printf(&g->arena, "%.*s:%u", MK_STR_ARG(s->at.file), s->at.line);
}

/* Returns the position of a word of `Path`, a key that may occur several times. */
static struct mk_conf_source_pos word_pos(const struct mk_conf_section *section, mk_str word)
{
    for (const struct mk_conf_entry *e = section->first; e; e = e->next)
        if (word.p >= e->value.p && word.p < e->value.p + e->value.len)
            return mk_conf_tree_value_pos(e, word);
    return section->at;
}

static struct mk_location_path *add_location_pattern(const struct mk_conf_source_pos *at, mk_str word,
                                                     struct mk_location_path *out,
                                                     struct mk_conf_report *report)
{
    if (mk_pattern_set(&out->pattern, word))
        return out + 1;
    mk_conf_report_error(report, at, "`%.*s` is not a pattern: it must begin with /, * or ~",
                         MK_CONF_REPORT_ARG(word));
    return out;
}

/* Parses the words of `Path`: patterns as in [ROUTES], `~REGEX` and `~ REGEX`. */
static void build_location_paths(struct mk_config_generation *g, const struct mk_location_config *from,
                                 struct mk_location *out, struct mk_conf_report *report)
{
    const struct mk_conf_words *words = &from->settings.paths;
    struct mk_location_path *end = mk_arena_zalloc(&g->arena, words->n + 1, sizeof *end);
    out->paths = end;
    if (!mk_conf_table_find_entry(from->section, MK_STR("Path"))) {
        mk_conf_report_error(report, &from->section->at, "[LOCATION] must have `Path`");
        mk_conf_report_hint(report, "name its paths as in [ROUTES]: `Path /upload/*`");
    }
    for (size_t i = 0; end && i < words->n; i++) {
        struct mk_conf_source_pos at = word_pos(from->section, words->v[i]);
        bool is_regex = mk_str_starts(words->v[i], MK_STR("~"));
        mk_str word = is_regex ? mk_str_skip(words->v[i], 1) : words->v[i];
        if (is_regex && !word.len && i + 1 < words->n)
            word = words->v[++i];
        if (!is_regex)
            end = add_location_pattern(&at, word, end, report);
        else if ((end->regex = mk_conf_regex_new(&g->arena, report, &at, word, false)))
            end++;
    }
    out->n_paths = end ? (size_t)(end - out->paths) : 0;
}

void mk_location_build_for_host(struct mk_config_generation *g, struct mk_vhost_config *site,
                                struct mk_conf_report *report)
{
    struct mk_request_settings *settings = &site->settings.site.request;
    struct mk_request_limits *limits = mk_arena_zalloc(&g->arena, 1, sizeof *limits);
    struct mk_location *at = mk_arena_zalloc(&g->arena, site->n_locations + 1, sizeof *at);
    if (!limits || !at)
        return;
    struct mk_logfile *log = open_access_log(g, site->section, settings, g->access_log, report);
    mk_location_set_limits(g, settings, log, limits);
    site->host.limits = are_limits_equal(limits, &g->limits) ? NULL : limits;
    site->host.locations = at;
    site->host.n_locations = site->n_locations;
    for (struct mk_location_config *l = site->locations; l; l = l->next, at++) {
        struct mk_request_settings *own = &l->settings.request;
        mk_location_set_limits(g, own, open_access_log(g, l->section, own, log, report), &at->limits);
        at->strict = stricter_limits(&at->limits, limits);
        build_location_paths(g, l, at, report);
        at->written_at = section_pos_text(g, l->section);
        at->source = l;
    }
}

static void warn_replaced_log_keys(const struct mk_conf_section *section,
                                   const struct mk_request_limits *limits,
                                   const struct mk_request_limits *otherwise, struct mk_conf_report *report)
{
    static const char *const keys[] = {"AccessLog", "AccessLogFormat"};
    bool differs[] = {limits->log != otherwise->log, limits->log_format != otherwise->log_format};
    for (size_t i = 0; i < MK_LEN(keys); i++) {
        const struct mk_conf_entry *e = mk_conf_table_find_entry(section, mk_str_from_c(keys[i]));
        if (!e || !differs[i])
            continue;
        mk_conf_report_warn(report, &e->at, "a plugin writes the access log of this host: `%s` has no effect",
                            keys[i]);
    }
}

void mk_location_check_access_logs(const struct mk_config_generation *g, struct mk_conf_report *report)
{
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next) {
        const struct mk_vhost *h = &s->host;
        if (!h->has_own_access_log)
            continue;
        if (h->limits)
            warn_replaced_log_keys(s->section, h->limits, &g->limits, report);
        for (size_t i = 0; i < h->n_locations; i++) {
            const struct mk_location_config *l = h->locations[i].source;
            warn_replaced_log_keys(l->section, &h->locations[i].limits, &g->limits, report);
        }
    }
}
