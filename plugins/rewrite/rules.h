/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a host, as configured. */
#ifndef REWRITE_RULES_H
#define REWRITE_RULES_H

#include <monkey/plugin.h>

enum kind { KIND_PREFIX, KIND_GLOB, KIND_REGEX, KINDS };

/* Target of a rule: text and substitutions. */
struct piece {
    mk_str text;      /* absent: a capture, or the host */
    unsigned capture; /* capture number */
    bool is_host;
    bool follows_slash; /* within a path, after a `/`: must not add another one */
};

struct target {
    struct piece *pieces;
    size_t n;
    size_t query;    /* piece that begins with `?`; n: none */
    size_t fragment; /* piece that begins with `#`; n: none */
    bool is_url;     /* has scheme and host, otherwise a path */
};

enum subject { SUBJECT_HOST, SUBJECT_METHOD, SUBJECT_SCHEME, SUBJECT_QUERY, SUBJECT_FILE, SUBJECTS };

struct condition {
    enum subject subject;
    bool negated;
    mk_str *words; /* one match is enough */
    size_t n;
    struct condition *next;
};

struct rule {
    unsigned status; /* redirect status; 0: rewrite */
    enum kind kind;
    mk_str pattern;
    bool nocase, drop_query, last;
    struct mk_regex *regex; /* compiled when the rules are accepted; NULL for other kinds */
    struct target target;
    struct condition *conditions; /* all of them must hold */
    bool looks_first;  /* checks files, and a redirect here or in a later rule would reveal what exists */
    mk_str key, value; /* as written */
    struct rule *next;
};

/* A line as written. */
struct line {
    mk_str key, value;
    struct line *next;
};

/* A [REWRITE]. */
struct rules {
    struct rule *first, **end;
    struct line *lines, **lines_end;
    struct condition *pending; /* conditions of the next rule */
};

extern const struct mk_conf_table rewrite_rules_table;

/* target.c: parses a target; errors are reported. `regex`: for names of captures (NULL: none). */
bool rewrite_target_parse(const struct mk_conf_ctx *ctx, mk_str text, struct rule *rule,
                          const struct mk_regex *regex);
/* Writes the request's current path and query. */
void rewrite_target_print_current(const struct mk_request *request, struct mk_buf *out);
/* Expands the target for a request. False: impossible, because the request has no host to insert. */
bool rewrite_target_expand(const struct rule *rule, const struct mk_request *request,
                           const struct mk_regex_captures *found, struct mk_buf *out);

/* match.c: does the rule match? *error is set only if a regex exceeded its limit: then the rule does not
 * match. */
bool rewrite_rule_matches(const struct rule *rule, const struct mk_request *request,
                          struct mk_regex_captures *out, const char **error);
/* Would the rule match if the path were one of its variants? */
bool rewrite_rule_may_match_variants(const struct rule *rule, const struct mk_request *request,
                                     const mk_str *variants, size_t n);
/* Does the rule have a file condition? */
bool rewrite_rule_checks_files(const struct rule *rule);

#endif
