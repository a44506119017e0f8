/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates conditions on requests. */
#include "web/condition.h"
#include "web/request_type.h"
#include "web/web.h"

/* ---- Values ---- */

/* Does a value that the client has sent match? Missing and empty values are the same. */
static enum mk_regex_result value_matches(const struct mk_condition *c, const struct mk_request *r,
                                          mk_str value)
{
    enum mk_regex_result result = MK_REGEX_NO_MATCH;
    if (value.len == 0)
        return c->matches_empty ? MK_REGEX_MATCH : MK_REGEX_NO_MATCH;
    for (size_t i = 0; i < c->n_globs; i++)
        if (mk_glob_set_is_slow(c->globs[i], value.len)
                ? mk_condition_memo_match(&r->web->conditions, c->globs[i], value)
                : mk_glob_set_matches(c->globs[i], value))
            return MK_REGEX_MATCH;
    for (size_t i = 0; i < c->n_regexes && result != MK_REGEX_MATCH; i++) {
        enum mk_regex_result one = mk_regex_match(c->regexes[i], value, NULL);
        result = one == MK_REGEX_NO_MATCH ? result : one;
    }
    return result;
}

/* Values of which one must match: of several header lines, cookies or parameters with the same name. */
struct values {
    const struct mk_condition *condition;
    struct mk_request *request;
    enum mk_regex_result result;
    bool has_value; /* the client has sent at least one */
};

/* Returns false if the result is final. */
static bool add_value(struct values *v, mk_str value)
{
    enum mk_regex_result one = value_matches(v->condition, v->request, value);
    v->has_value = true;
    if (one != MK_REGEX_NO_MATCH)
        v->result = one;
    return v->result != MK_REGEX_MATCH;
}

static enum mk_regex_result values_result(struct values *v)
{
    if (!v->has_value)
        add_value(v, MK_STR_NULL);
    return v->result;
}

static enum mk_regex_result header_matches(const struct mk_condition *c, struct mk_request *r)
{
    struct values v = {.condition = c, .request = r, .result = MK_REGEX_NO_MATCH};
    mk_str name, value;
    if (c->header_id != MK_HEADER_OTHER && !mk_request_body_was_dropped(r)) {
        for (unsigned at = 0; mk_headers_next(&r->fields, (enum mk_header_id)c->header_id, &at, &value);)
            if (!add_value(&v, value))
                break;
        return values_result(&v);
    }
    for (size_t i = 0; mk_request_header_at(r, i, &name, &value); i++)
        if (mk_str_eq_nocase(name, c->name) && !add_value(&v, value))
            break;
    return values_result(&v);
}

static enum mk_regex_result cookie_matches(const struct mk_condition *c, struct mk_request *r)
{
    struct values v = {.condition = c, .request = r, .result = MK_REGEX_NO_MATCH};
    mk_str line;
    for (unsigned at = 0; mk_headers_next(&r->fields, MK_HEADER_COOKIE, &at, &line);)
        while (line.p) {
            mk_str value = mk_str_trim(mk_str_cut(&line, ';'));
            mk_str name = mk_str_trim(mk_str_cut(&value, '='));
            value = mk_str_trim(value);
            if (value.p && mk_str_eq(name, c->name) && !add_value(&v, value))
                return v.result;
        }
    return values_result(&v);
}

/* Decodes a name or a value of a query to `to`. A malformed escape stands for itself. */
static mk_str decode_query_text(mk_str text, char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        int high = text.p[i] == '%' && i + 2 < text.len ? mk_char_hex(text.p[i + 1]) : -1;
        int low = high >= 0 ? mk_char_hex(text.p[i + 2]) : -1;
        to[n] = text.p[i];
        if (low >= 0) {
            to[n] = (char)(high << 4 | low);
            i += 2;
        } else if (text.p[i] == '+') {
            to[n] = ' ';
        }
        n++;
    }
    return mk_str_of(to, n);
}

/* Cuts the next parameter off the query, undecoded. */
static void next_parameter(mk_str *query, mk_str *name, mk_str *value)
{
    *value = mk_str_cut(query, '&');
    *name = mk_str_cut(value, '=');
}

/* Decodes all parameters. Returns NULL if out of memory. */
static struct mk_request_parameters *decode_parameters(struct mk_request *r, mk_str query)
{
    size_t n = 1, at = 0;
    for (size_t i = 0; i < query.len; i++)
        n += query.p[i] == '&';
    struct mk_request_parameters *all = mk_request_alloc(r, sizeof *all + n * sizeof all->list[0]);
    char *text = mk_request_alloc(r, query.len + 1);
    if (!all || !text)
        return NULL;
    for (all->n = 0; query.p && all->n < n; all->n++) {
        mk_str name, value;
        next_parameter(&query, &name, &value);
        name = decode_query_text(name, text + at);
        at += name.len;
        value = decode_query_text(value, text + at);
        at += value.len;
        all->list[all->n].name = name;
        all->list[all->n].value = value;
    }
    return all;
}

static enum mk_regex_result match_decoded_parameters(struct values *v, mk_str query)
{
    struct mk_request_target *target = (struct mk_request_target *)(uintptr_t)v->request->target;
    if (!target->parameters) /* decoded once per target */
        target->parameters = decode_parameters(v->request, query);
    if (!target->parameters)
        return MK_REGEX_LIMIT;
    for (size_t i = 0; i < target->parameters->n; i++)
        if (mk_str_eq(target->parameters->list[i].name, v->condition->name) &&
            !add_value(v, target->parameters->list[i].value))
            break;
    return values_result(v);
}

/* The result is MK_REGEX_LIMIT if there is no memory to decode the query. */
static enum mk_regex_result parameter_matches(const struct mk_condition *c, struct mk_request *r)
{
    struct values v = {.condition = c, .request = r, .result = MK_REGEX_NO_MATCH};
    mk_str query = mk_request_query(r), name, value;
    if (mk_str_find(query, '%') != MK_STR_NONE || mk_str_find(query, '+') != MK_STR_NONE)
        return match_decoded_parameters(&v, query);
    while (query.p) {
        next_parameter(&query, &name, &value);
        if (mk_str_eq(name, c->name) && !add_value(&v, value))
            break;
    }
    return values_result(&v);
}

/* ---- Subjects ---- */

static enum mk_regex_result path_matches(const struct mk_condition *c, mk_str path)
{
    enum mk_regex_result result = MK_REGEX_NO_MATCH;
    for (size_t i = 0; i < c->n_paths; i++)
        if (mk_pattern_matches(&c->paths[i], path))
            return MK_REGEX_MATCH;
    for (size_t i = 0; i < c->n_regexes && result != MK_REGEX_MATCH; i++) {
        enum mk_regex_result one = mk_regex_match(c->regexes[i], path, NULL);
        result = one == MK_REGEX_NO_MATCH ? result : one;
    }
    return result;
}

static bool contains_matches(const struct mk_condition *c, mk_str path)
{
    for (size_t i = 0; i < c->n_globs; i++)
        if (mk_glob_set_matches(c->globs[i], path))
            return true;
    return false;
}

static bool address_matches(const struct mk_condition *c, const struct mk_addr *addr)
{
    for (size_t i = 0; i < c->n_sets; i++)
        if (mk_network_set_contains(c->sets[i], addr))
            return true;
    if (c->own_set)
        return mk_network_set_contains(c->own_set, addr);
    for (size_t i = 0; i < c->n_networks; i++)
        if (mk_network_contains(&c->networks[i], addr))
            return true;
    return false;
}

static bool is_one_of(const struct mk_condition *c, mk_str text)
{
    for (size_t i = 0; i < c->n_words; i++)
        if (mk_str_eq(text, c->words[i]))
            return true;
    return false;
}

static bool method_matches(const struct mk_condition *c, const struct mk_request *r)
{
    enum mk_method method = mk_request_method(r);
    return method == MK_METHOD_UNKNOWN ? is_one_of(c, mk_request_method_text(r))
                                       : (c->methods & MK_METHOD_BIT(method)) != 0;
}

/* Does a name in the path begin with a dot, while the host hides such names? A top-level `.well-known` is
 * public (RFC 8615). */
static bool is_path_hidden(const struct mk_request *r)
{
    mk_str path = mk_request_path(r), known = MK_STR("/.well-known");
    if (mk_request_shows_dot_files(r))
        return false;
    if (mk_str_starts(path, MK_STR("/.well-known/")) || mk_str_eq(path, known))
        path = mk_str_skip(path, known.len);
    for (size_t i = 0; i + 1 < path.len; i++)
        if (path.p[i] == '/' && path.p[i + 1] == '.')
            return true;
    return false;
}

static bool file_exists(const struct mk_request *r)
{
    return !is_path_hidden(r) && mk_request_stat(r, mk_request_path(r), NULL) >= 0;
}

static enum mk_regex_result result_of(bool matches)
{
    return matches ? MK_REGEX_MATCH : MK_REGEX_NO_MATCH;
}

static enum mk_regex_result subject_matches(const struct mk_condition *c, struct mk_request *r, mk_str path)
{
    switch (c->subject) {
    case MK_CONDITION_PATH:
        return path_matches(c, path);
    case MK_CONDITION_CONTAINS:
        return result_of(contains_matches(c, path));
    case MK_CONDITION_FROM:
        return result_of(address_matches(c, mk_request_client_addr(r)));
    case MK_CONDITION_METHOD:
        return result_of(method_matches(c, r));
    case MK_CONDITION_REFERER:
        return result_of(mk_condition_referer_matches(c, r, mk_request_header(r, MK_STR("Referer"))));
    case MK_CONDITION_HOST:
        return value_matches(c, r, mk_request_host(r));
    case MK_CONDITION_SCHEME:
        return result_of(is_one_of(c, mk_request_scheme(r)));
    case MK_CONDITION_QUERY:
        return value_matches(c, r, mk_request_query(r));
    case MK_CONDITION_HEADER:
        return header_matches(c, r);
    case MK_CONDITION_COOKIE:
        return cookie_matches(c, r);
    case MK_CONDITION_PARAMETER:
        return parameter_matches(c, r);
    case MK_CONDITION_FILE:
        return result_of(file_exists(r));
    case MK_CONDITION_COUNTRY:
    case MK_CONDITION_ASN:
        return result_of(mk_condition_geo_matches(c, mk_request_client_addr(r)));
    }
    return MK_REGEX_NO_MATCH;
}

enum mk_regex_result mk_conditions_match_current(const struct mk_conditions *conditions, struct mk_request *r,
                                                 mk_str path, unsigned without)
{
    enum mk_regex_result all = MK_REGEX_MATCH;
    for (const struct mk_condition *c = conditions->first; c; c = c->next) {
        if (c->subject & without)
            continue;
        enum mk_regex_result one = subject_matches(c, r, path);
        if (one == MK_REGEX_LIMIT)
            all = MK_REGEX_LIMIT;
        else if ((one == MK_REGEX_MATCH) == c->is_negated)
            return MK_REGEX_NO_MATCH;
    }
    return all;
}

enum mk_regex_result mk_conditions_match_path(const struct mk_conditions *conditions, struct mk_request *r,
                                              mk_str path, unsigned without)
{
    struct mk_request_header_changes *changes = mk_request_header_changes(r);
    if (MK_LIKELY(!changes))
        return mk_conditions_match_current(conditions, r, path, without);
    struct mk_headers changed = r->fields;
    mk_request_restore_headers(r);
    enum mk_regex_result result = mk_conditions_match_current(conditions, r, path, without);
    r->fields = changed;
    r->extras->header_changes = changes;
    return result;
}

/* Skips the run that begins at `at`, and those after it. */
MK_NOINLINE static size_t skip_runs(const struct mk_condition_index *index, struct mk_request *r, mk_str path,
                                    size_t at)
{
    const struct mk_condition_run *run = index->runs[at];
    while (run && mk_conditions_match_path(&run->any, r, path, 0) == MK_REGEX_NO_MATCH) {
        at = run->end;
        run = at < index->n ? index->runs[at] : NULL;
    }
    return at;
}

size_t mk_condition_index_next(const struct mk_condition_index *index, struct mk_request *r, mk_str path,
                               size_t at)
{
    return at < index->n && index->runs[at] ? skip_runs(index, r, path, at) : at;
}

bool mk_conditions_match_addr(const struct mk_conditions *conditions, const struct mk_addr *addr)
{
    for (const struct mk_condition *c = conditions->first; c; c = c->next) {
        if (c->subject == MK_CONDITION_FROM && address_matches(c, addr) == c->is_negated)
            return false;
        if (c->subject & (MK_CONDITION_COUNTRY | MK_CONDITION_ASN) &&
            mk_condition_geo_matches(c, addr) == c->is_negated)
            return false;
    }
    return true;
}

unsigned mk_conditions_subjects(const struct mk_conditions *conditions)
{
    return conditions->subjects;
}

const struct mk_network *mk_conditions_networks(const struct mk_conditions *conditions, size_t *n)
{
    const struct mk_condition *found = NULL;
    *n = 0;
    for (const struct mk_condition *c = conditions->first; c; c = c->next) {
        if (c->subject != MK_CONDITION_FROM)
            continue;
        if (found)
            return NULL;
        found = c;
    }
    if (!found || found->is_negated || found->n_sets)
        return NULL;
    *n = found->n_networks;
    return found->networks;
}
