/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on requests: struct mk_conditions, which is opaque in monkey/condition.h. setup/condition_parse.c
 * builds it. */
#ifndef MK_WEB_CONDITION_H
#define MK_WEB_CONDITION_H

#include <monkey/condition.h>
#include <monkey/text.h>

#include "base/glob_set.h"
#include "http/header.h"

/* Sites of pages that need no name. */
enum mk_referer_kind {
    MK_REFERER_NONE = 1,     /* requests without a Referer */
    MK_REFERER_SELF = 2,     /* pages of the requested host */
    MK_REFERER_SIBLINGS = 4, /* pages of hosts with the same last two labels */
};

/* What the databases know about an address. */
struct mk_geo_record {
    char country[2]; /* ISO 3166-1, in capitals; zero: unknown */
    uint32_t asn;    /* number of the autonomous system; 0: unknown */
};

/* A database of addresses. */
struct mk_geo {
    const struct mk_geo *next;
    /* Sets the members of *out that the database knows. */
    void (*find)(const struct mk_geo *geo, const struct mk_addr *addr, struct mk_geo_record *out);
};

struct mk_condition {
    struct mk_condition *next;
    enum mk_condition_subject subject;
    bool is_negated;
    bool matches_empty; /* a missing or empty value is one of the values */
    uint8_t header_id;  /* enum mk_header_id of `name` */
    mk_str name;        /* of the header, cookie or parameter */
    struct mk_pattern *paths;
    struct mk_network *networks;
    const struct mk_network_set *own_set; /* `networks`, if they are many; NULL: they are few */
    const struct mk_network_set **sets;   /* networks of files */
    const struct mk_glob_set **globs;     /* from files, and from the condition itself */
    struct mk_regex **regexes;
    mk_str *words;     /* PATH: regular expressions; METHOD: unknown methods; REFERER: hosts; schemes;
                        * countries */
    uint32_t *numbers; /* autonomous systems */
    size_t n_paths, n_networks, n_sets, n_globs, n_regexes, n_words, n_numbers;
    unsigned methods; /* MK_METHOD_BITs */
    unsigned kinds;   /* enum mk_referer_kind */
    const struct mk_geo *geo;
    /* For an index: a value that matches the condition matches one of these, if each regular expression has texts and no
     * values are from files. */
    struct mk_glob *own_globs;
    size_t n_own_globs;
    bool has_own_set; /* one of the sets `globs` is from the condition itself */
    bool has_regex_without_texts;
};

/* Are texts compared without regard to case? */
static inline bool mk_condition_ignores_case(enum mk_condition_subject subject)
{
    return subject == MK_CONDITION_CONTAINS || subject == MK_CONDITION_HOST || subject == MK_CONDITION_HEADER;
}

struct mk_conditions {
    /* Evaluates the conditions of a route: dispatch.c does not depend on condition_match.c, which a build
     * without conditions lacks. NULL: not of a route. */
    enum mk_regex_result (*match)(const struct mk_conditions *conditions, struct mk_request *request,
                                  mk_str path);
    struct mk_condition *first, **end;
    unsigned subjects;
};

/* Consecutive lists of an index. If `any` is false, all of them are false. */
struct mk_condition_run {
    struct mk_conditions any; /* one condition: `condition`; without `match` */
    struct mk_condition condition;
    size_t end; /* the list after the last one */
};

struct mk_condition_index {
    size_t n;
    const struct mk_condition_run *runs[]; /* by list: the run that begins with it; NULL: none */
};

/* Like mk_conditions_match_path(), but with the headers as hooks have changed them. */
enum mk_regex_result mk_conditions_match_current(const struct mk_conditions *conditions,
                                                 struct mk_request *request, mk_str path, unsigned without);

/* Does the Referer match the condition? */
bool mk_condition_referer_matches(const struct mk_condition *c, const struct mk_request *request,
                                  mk_str referer);

/* Does the country or the autonomous system of the address match the condition? */
bool mk_condition_geo_matches(const struct mk_condition *c, const struct mk_addr *addr);

/* Remembers the results of expensive searches: clients send the same headers with each request. One per
 * worker, which has the sets of a single configuration. */
struct mk_condition_memo;
/* Does the text match the set? *memo is NULL at first; it is created when it is needed, and a failure only
 * costs time. */
bool mk_condition_memo_match(struct mk_condition_memo **memo, const struct mk_glob_set *set, mk_str text);

#endif
