/* SPDX-License-Identifier: Apache-2.0 */
#include "service/topic_load.h"

#include <string.h>

/* The size of the struct in the first release. */
enum { TOPIC_SIZE_OLDEST = sizeof(struct duda_topic) };

/* Returns the reason why the topic is invalid; NULL if it is valid. */
static const char *check_topic(const struct duda_topic *t)
{
    if (t->size < TOPIC_SIZE_OLDEST || t->size > sizeof *t)
        return "it was compiled for another version of Duda: rebuild the service";
    if (t->name.len > DUDA_TOPIC_NAME_MAX || (!t->name.len && !t->is_family))
        return "a name has 1 to 64 bytes";
    if (t->kind && t->kind != MK_WEBSOCKET_TEXT && t->kind != MK_WEBSOCKET_BINARY)
        return "`.kind` must be MK_WEBSOCKET_TEXT or MK_WEBSOCKET_BINARY";
    if (t->keep_s && !t->keep)
        return "`.keep_s` has no effect without `.keep`";
    if (t->keep_s > DUDA_TOPIC_KEEP_S_MAX)
        return "`.keep_s` is at most 315360000 (ten years)";
    return NULL;
}

/* Returns whether a topic can belong to both definitions. */
static bool have_common_name(const struct duda_topic *a, const struct duda_topic *b)
{
    return (a->is_family && mk_str_starts(b->name, a->name)) ||
           (b->is_family && mk_str_starts(a->name, b->name)) || mk_str_eq(a->name, b->name);
}

static bool is_binary(const struct duda_topic *t)
{
    return t->kind == MK_WEBSOCKET_BINARY;
}

static bool have_equal_definitions(const struct duda_topic *a, const struct duda_topic *b)
{
    return a->is_family == b->is_family && mk_str_eq(a->name, b->name) && is_binary(a) == is_binary(b) &&
           a->keep == b->keep && a->keep_s == b->keep_s && a->counts_subscribers == b->counts_subscribers;
}

static bool report_topic(struct mk_config *config, const struct duda_service *service,
                         const struct duda_topic *t, const char *problem)
{
    mk_config_error(config, NULL, NULL, "the topic `%.*s` of the service `%s` (%s:%d): %s",
                    MK_STR_ARG(t->name), service->name, t->file, t->line, problem);
    return false;
}

static bool check_against_own(struct mk_config *config, const struct duda_service *service, size_t i)
{
    const struct duda_topic *t = service->topics[i];
    for (size_t k = 0; k < i; k++) {
        const struct duda_topic *earlier = service->topics[k];
        if (!have_common_name(t, earlier))
            continue;
        mk_config_error(config, NULL, NULL,
                        "the topic `%.*s` of the service `%s` (%s:%d) is also defined in %s:%d",
                        MK_STR_ARG(t->name), service->name, t->file, t->line, earlier->file, earlier->line);
        mk_config_hint(config, "define it once, and use DUDA_TOPIC_DECLARE() in other source files");
        return false;
    }
    return true;
}

/* Services with a common scope have common topics. */
static bool check_against_other(struct mk_config *config, const struct duda_service *service,
                                const struct duda_topic *t, const struct duda_service *other)
{
    for (const struct duda_topic *const *at = other->topics; at < other->topics_end; at++) {
        if (!have_common_name(t, *at) || have_equal_definitions(t, *at))
            continue;
        mk_config_error(config, NULL, NULL,
                        "the topic `%.*s` of the service `%s` (%s:%d) has other options than `%.*s` of the "
                        "service `%s` (%s:%d)",
                        MK_STR_ARG(t->name), service->name, t->file, t->line, MK_STR_ARG((*at)->name),
                        other->name, (*at)->file, (*at)->line);
        mk_config_hint(config, "services with a common `Share` have common topics: give them equal options");
        return false;
    }
    return true;
}

bool duda_topics_load(struct mk_config *config, struct duda_plugin_config *duda,
                      const struct duda_service *service)
{
    size_t n = (size_t)(service->topics_end - service->topics), own = duda->n_services - 1;
    for (size_t i = 0; i < n; i++) {
        const struct duda_topic *t = service->topics[i];
        const char *problem = check_topic(t);
        if (problem)
            return report_topic(config, service, t, problem);
        if (!check_against_own(config, service, i))
            return false;
        for (size_t k = 0; k < own; k++)
            if (mk_str_eq(duda->scopes[k], duda->scopes[own]) &&
                !check_against_other(config, service, t, duda->loaded[k]))
                return false;
    }
    return true;
}
