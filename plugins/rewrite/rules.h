/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a host, as configured. */
#ifndef REWRITE_RULES_H
#define REWRITE_RULES_H

#include <monkey/condition.h>
#include <monkey/plugin.h>

enum kind { KIND_PREFIX, KIND_GLOB, KIND_REGEX, KINDS };

/* A piece of a rule's target: text or a substitution. */
struct piece {
    mk_str text;      /* absent: the piece is a capture or the host */
    unsigned capture; /* capture number */
    bool is_host;
    bool follows_slash; /* the piece follows a `/` in a path, and must not add another one */
};

struct target {
    struct piece *pieces;
    size_t n;
    size_t query;    /* index of the piece that begins with `?`; n: none */
    size_t fragment; /* index of the piece that begins with `#`; n: none */
    bool is_url;     /* the target has a scheme and a host; otherwise it is a path */
};

struct rule {
    unsigned status; /* redirect status; 0: rewrite */
    enum kind kind;
    mk_str pattern;
    bool nocase, drop_query, last;
    struct mk_regex *regex; /* compiled when a host gets the rules; NULL for other kinds */
    struct target target;
    struct mk_conditions *conditions; /* NULL: none */
    size_t index;                     /* index among the rules of the section */
    /* The rule tests a file, and this or a later rule is a redirect, which would reveal whether the file
     * exists: limits and auth must check the current path before this rule is tried. */
    bool rechecks_access;
    mk_str key, value; /* the rule as written */
    struct rule *next;
};

/* A configuration line as written. */
struct line {
    mk_str key, value;
    struct line *next;
};

/* A [REWRITE] section. */
struct rules {
    struct rule *first, **end;
    struct line *lines, **lines_end;
    struct mk_conditions *pending; /* conditions of the next rule; NULL: none */
    size_t n;
    /* Set once, if enough rules have conditions: */
    const struct mk_condition_index *index; /* of the conditions that do not depend on the path; NULL: none */
    const struct rule **at;                 /* n rules */
};

extern const struct mk_conf_table rewrite_rules_table;

/* Parses a target and reports errors. `regex` has the names of captures; NULL: none. Defined in target.c. */
bool rewrite_target_parse(const struct mk_conf_ctx *ctx, mk_str text, struct rule *rule,
                          const struct mk_regex *regex);
/* Writes the request's current path and query. */
void rewrite_target_print_current(const struct mk_request *request, struct mk_buf *out);
/* Expands the target for a request. Returns false if that is impossible, because the request has no host. */
bool rewrite_target_expand(const struct rule *rule, const struct mk_request *request,
                           const struct mk_regex_captures *found, struct mk_buf *out);

/* Returns whether the rule matches. *error is set only if a regex has exceeded its limit: then the rule does
 * not match. Defined in match.c. */
bool rewrite_rule_matches(const struct rule *rule, struct mk_request *request, struct mk_regex_captures *out,
                          const char **error);
/* Builds the index of conditions, once for each section. Returns false if out of memory. */
bool rewrite_rules_index(struct mk_config *config, struct rules *rules);
/* Returns the first rule, from `rule` on, whose conditions may hold for the path of the request and its variants; NULL:
 * none. */
const struct rule *rewrite_rules_skip(const struct rules *rules, const struct rule *rule,
                                      struct mk_request *request);
/* Returns whether the conditions may hold for a variant of the path. */
bool rewrite_rule_conditions_may_hold(const struct rule *rule, struct mk_request *request);
/* Returns whether the rule would match if the path were one of its variants. */
bool rewrite_rule_may_match_variants(const struct rule *rule, struct mk_request *request,
                                     const mk_str *variants, size_t n);
/* Returns whether the rule has a file condition. */
bool rewrite_rule_checks_files(const struct rule *rule);

#endif
